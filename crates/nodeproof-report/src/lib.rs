//! What people see of nodeproof's results: plots, and an interactive report.
//!
//! No mathematics of networks happens here: everything starts from the [`results`] that were written to files, counts
//! them ([`shares`]) and holds them against the graph ([`structure`]). [`page`] makes a report of them.

pub mod page;
pub mod results;
pub mod shares;
pub mod structure;

//! What people see of nodeproof's results: plots, and an interactive report.
//!
//! No mathematics of networks happens here: everything starts from the [`results`] that were written to files, counts
//! them ([`shares`]) and holds them against the graph ([`structure`]). [`plot`] draws figures of them, [`page`] makes a
//! report.

pub mod page;
pub mod plot;
pub mod results;
pub mod shares;
pub mod structure;

//! What people see of nodeproof's results: the story of a node, tallies, figures, and an interactive report.
//!
//! No mathematics of networks happens here: everything starts from certificates and radii, as `nodeproof-problem` has them.
//!
//! | module | what it makes |
//! |---|---|
//! | [`story`] | the story of one node, in words or as JSON |
//! | [`tally`] | counts of verdicts and radii, as tables or as JSON |
//! | [`shares`], [`structure`] | numbers by budget, by degree and by purity |
//! | [`plot`] | figures: SVG and PNG |
//! | [`page`] | the report: one interactive HTML file |
//! | [`text`] | what text for people is made of: safe names, tables, paragraphs |

mod attack;
pub mod page;
pub mod plot;
pub mod shares;
pub mod story;
pub mod structure;
pub mod tally;
pub mod text;

pub use attack::Attack;

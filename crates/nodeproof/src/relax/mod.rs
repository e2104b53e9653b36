//! ReLUs between bounds that are additive in the flips: lines, and what is tighter than lines.

pub(crate) mod additive;
mod lines;

pub(crate) use lines::Lines;
pub use lines::Slopes;

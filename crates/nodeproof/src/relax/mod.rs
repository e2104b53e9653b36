//! ReLUs between bounds that are additive in the flips: lines, and what is tighter than lines.

pub(crate) mod additive;
mod lines;

pub use lines::Slopes;
pub(crate) use lines::{Lines, chord};

//! Bounds of first order: the network is linearised at a base point, and each flip is charged for its own curvature
//! (Lemmas 36 to 42 of `docs/maths.md`).
//!
//! No bounds of hidden units are needed, so that the margin of the base itself is the bound with no flips left, and nothing is lost with
//! the number of layers but what flips lose together.

mod base;
mod bound;
mod cones;
mod exchange;
mod linearisation;
mod reach;
mod screening;
mod search;
mod tables;
mod target;
#[cfg(test)]
mod tests;

pub(super) use search::{decide, tighten};
pub(crate) use tables::Tables;

//! Bounds of first order: the network is linearised at a base point, and each flip is charged for its own curvature
//! (Lemmas 22 to 26, 36 to 44 and 80 of `docs/maths.md`).
//!
//! Bounds of hidden units help where they are known, but none are needed: the margin of the base itself is the bound with no flips left, and
//! nothing is lost with the number of layers but what flips lose together.

mod base;
mod bound;
mod bounded;
mod branch;
mod climb;
mod cones;
mod derivative;
mod exchange;
mod linearisation;
mod lines;
mod listing;
mod parts;
mod proof;
mod reach;
mod routes;
mod rows;
mod screening;
mod search;
mod subproblem;
mod tables;
mod target;
#[cfg(test)]
mod tests;

use crate::certificate::Obstacle;
use crate::settings::Engine;

pub(crate) use derivative::{CleanTarget, Margins};
pub(crate) use parts::{Listed, RowParts, parts};
pub(crate) use proof::prove;
pub(crate) use reach::Reach;
pub(crate) use search::{Raised, decide, tighten};
pub(crate) use tables::Tables;

/// What norms, reaches and other sums of non-negative products are raised by where they must not be too small, and thresholds lowered by:
/// far more than rounding takes from any of them, and too little to matter.
const RAISE: f64 = 1.0 + 1e-8;
const LOWER: f64 = 1.0 - 1e-8;

/// What was done about a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Decision {
    /// The strongest engine that was tried; the fast one if there was no time, or no hope.
    pub(crate) engine: Engine,
    /// Subproblems that were looked at.
    pub(crate) branches: u64,
    /// What keeps the target from being decided, if it is not.
    pub(crate) obstacle: Obstacle,
}

impl Decision {
    /// Nothing was done yet.
    fn nothing() -> Self {
        Self { engine: Engine::Fast, branches: 0, obstacle: Obstacle::Engine }
    }
}

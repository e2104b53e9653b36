//! The `tight` engine: additive bounds with optimised parameters, without branching.
//!
//! A unit whose ReLU can have both signs is bounded by something additive in the flips (`relax::additive`), with parameters
//! that climb towards the best bound; the flips that attain a bound are tried as an attack.

mod ascent;
mod bounding;
mod flips;
mod potential;
mod root;
mod subproblem;
mod surroundings;
mod tail;

pub(super) use ascent::Aim;
#[cfg(test)]
pub(super) use ascent::Parameters;
pub(super) use bounding::{Bounding, Evaluation};
pub(super) use flips::Flips;
pub(super) use potential::Listing;
#[cfg(test)]
pub(super) use potential::Tuning;
pub(super) use root::{Root, highest, listed, with_all_flips};
pub(super) use subproblem::Subproblem;
pub(super) use surroundings::Surroundings;
pub(super) use tail::rounding_error;

//! `nodeproof bench`: how long the engines take.

mod certify;
mod engines;
mod train;

pub(super) use certify::run as certify;
pub(super) use engines::run as engines;
pub(super) use train::run as train;

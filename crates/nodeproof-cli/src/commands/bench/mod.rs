//! `nodeproof bench`: how long the engines take.

mod certify;
mod train;

pub(super) use certify::run as certify;
pub(super) use train::run as train;

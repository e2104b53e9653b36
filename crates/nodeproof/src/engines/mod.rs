//! The engines, from the fastest to the strongest, and the attacks that they try.

pub(crate) mod attack;
pub(crate) mod best;
pub(crate) mod derivative;
pub(crate) mod fast;
pub(crate) mod first_order;
pub(crate) mod patience;

//! Second opinions: the same quantities as the engines compute, from the plain formulas.
//!
//! Nothing here is shared with the engines beyond the data types and the propagation matrix, so that a mistake in one
//! place shows up as a disagreement between the two.

pub mod textbook;

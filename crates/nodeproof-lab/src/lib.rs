//! What measures nodeproof: benchmarks, and the experiments of the paper again.
//!
//! | module | what it measures |
//! |---|---|
//! | [`bench::certify`] | the `fast` engine against the plain dense formula |
//! | [`bench::engines`] | what each engine decides, and how long it takes |
//! | [`bench::scale`] | how the cost of certificates grows with the graph |
//! | [`bench::train`] | a step of training |
//! | [`reproduce`] | the paper's table and figures, ours beside the published numbers |
//!
//! Everything takes plain settings, keeps an observer informed, and returns data that can be serialised and put
//! into words. Nothing is printed.

pub mod bench;
pub mod reproduce;

mod error;
mod memory;
mod threads;

pub use error::LabError;

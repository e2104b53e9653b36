//! Files that are written so that nothing is lost.
//!
//! * [`Place`]: where an output goes, checked before any work is done: inputs are never overwritten, under whatever name.
//! * [`Unfinished`]: results that grow line by line. They are in `NAME.unfinished` until they are complete, and a run that
//!   was interrupted is resumed from there. The old `NAME` stays as it was until then.
//! * [`replace`] and [`AtomicFile`]: files that are written as a whole, or not at all.
//! * [`Lock`]: two runs never write the same output.

mod atomic;
mod direct;
mod error;
mod lock;
mod paths;
mod place;
mod resume;
mod unfinished;

pub use atomic::{AtomicFile, replace};
pub use error::FileError;
pub use lock::Lock;
pub use place::Place;
pub use resume::Keep;
pub use unfinished::Unfinished;

#[cfg(test)]
mod tests;

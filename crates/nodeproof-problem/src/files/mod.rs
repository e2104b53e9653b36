//! Files that are written so that nothing is lost.
//!
//! * [`Destination`]: where an output goes, checked before any work is done: inputs are never overwritten, under whatever name.
//! * [`Unfinished`]: results that grow line by line. They are in `NAME.unfinished` until they are complete, and a run that
//!   was interrupted is resumed from there. The old `NAME` stays as it was until then.
//! * [`replace`] and [`AtomicFile`]: files that are written as a whole, or not at all.
//! * [`Lock`]: two runs never write the same output.

mod atomic;
mod destination;
mod direct;
mod error;
pub(crate) mod gzip;
mod lock;
mod paths;
mod resume;
mod unfinished;

pub use atomic::{AtomicFile, replace};
pub use destination::Destination;
pub use error::FileError;
pub use lock::Lock;
pub use resume::Keep;
pub use unfinished::Unfinished;

#[cfg(test)]
mod tests;

//! Threads for training, whose library functions run on those of the caller.

use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::LabError;

/// Threads that the machine has.
pub(crate) fn available() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// A pool of this many threads; 0 takes as many as there are cores.
///
/// # Errors
/// If the system refuses.
pub(crate) fn pool(threads: usize) -> Result<ThreadPool, LabError> {
    let pool = ThreadPoolBuilder::new().num_threads(threads).build();
    pool.map_err(|error| LabError::Threads { threads, problem: error.to_string() })
}

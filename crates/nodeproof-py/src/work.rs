//! Long work: on a thread of its own, so that Python goes on, hears how far it has come, and can stop it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use nodeproof::settings::check_threads;
use pyo3::prelude::*;

use crate::errors::Failure;

/// Time between two looks at signals and progress.
const LOOK: Duration = Duration::from_millis(50);

/// Time that work has to end by itself once it is stopped, such as to keep where it was; then it is left alone.
const GRACE: Duration = Duration::from_secs(1);

/// What the working thread and the waiting one share.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    stop: AtomicBool,
    done: AtomicUsize,
    total: AtomicUsize,
}

impl Watch {
    /// Says how far the work has come, unless there is none, as behind the last round of a search; whether to stop is the answer.
    pub(crate) fn tell(&self, done: usize, total: usize) -> bool {
        if total > 0 {
            self.done.store(done, Ordering::Relaxed);
            self.total.store(total, Ordering::Relaxed);
        }
        self.stop.load(Ordering::Relaxed)
    }
}

/// Does `job` without Python's lock. Meanwhile `progress(done, total)` is called every now and then, at the end with all steps done, and signals such as
/// Ctrl-C are seen to within about a second: the work ends by itself, at the next [`Watch::tell`].
///
/// # Errors
/// If the job fails, panics, is interrupted, or `progress` raises.
pub(crate) fn run<T: Send + 'static>(
    py: Python<'_>,
    progress: Option<&Bound<'_, PyAny>>,
    job: impl FnOnce(&Watch) -> Result<T, Failure> + Send + 'static,
) -> PyResult<T> {
    let watch = Arc::new(Watch::default());
    let (sender, mut receiver) = channel();
    let theirs = Arc::clone(&watch);
    let work = move || {
        let result = catch_unwind(AssertUnwindSafe(|| job(&theirs)));
        // If nobody waits any more, nobody needs it.
        let _ = sender.send(result.unwrap_or_else(|_| Err(Failure::Internal(INTERNAL.to_owned()))));
    };
    let spawned = std::thread::Builder::new().name("nodeproof".to_owned()).spawn(work);
    spawned.map_err(|error| Failure::input(format!("cannot start a thread: {error}")).raise(py))?;
    let mut told = (0, 0);
    loop {
        let received;
        (received, receiver) = py.detach(move || (receiver.recv_timeout(LOOK), receiver));
        match received {
            Ok(result) => {
                let result = result.map_err(|failure| failure.raise(py))?;
                // Work may be done early, or between two looks.
                let total = watch.total.load(Ordering::Relaxed);
                if let Some(progress) = progress.filter(|_| total > 0 && told != (total, total)) {
                    progress.call1((total, total))?;
                }
                return Ok(result);
            }
            Err(RecvTimeoutError::Disconnected) => return Err(Failure::Internal(INTERNAL.to_owned()).raise(py)),
            Err(RecvTimeoutError::Timeout) => {}
        }
        let now = (watch.done.load(Ordering::Relaxed), watch.total.load(Ordering::Relaxed));
        let heard = py.check_signals().and_then(|()| match progress {
            Some(progress) if now != told => progress.call1(now).map(|_| told = now),
            _ => Ok(()),
        });
        if let Err(error) = heard {
            watch.stop.store(true, Ordering::Relaxed);
            let _ = py.detach(move || receiver.recv_timeout(GRACE));
            return Err(error);
        }
    }
}

const INTERNAL: &str = "nodeproof made a mistake, which is on stderr; please report it with the graph and the model";

/// A pool of this many threads, or as many as there are cores; of its own, so that a forked process has one too.
///
/// # Errors
/// If there are too many, or the system refuses.
pub(crate) fn pool(threads: usize) -> Result<rayon::ThreadPool, Failure> {
    check_threads(threads)?;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    pool.map_err(|error| Failure::input(format!("cannot start {threads} threads: {error}; ask for fewer")))
}

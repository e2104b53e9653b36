//! Targets on threads: results come in the order asked for, and do not depend on the number of threads.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use rayon::ThreadPool;

use super::CertifyError;

/// The observer hears this often of what is new, or that nothing is.
const LOOK: Duration = Duration::from_millis(50);
/// Workers keep results back for about this long, so as not to wake the observer for each.
const KEEP: Duration = Duration::from_millis(20);

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Finish {
    /// Everything asked for was done.
    Complete,
    /// The observer broke off.
    Cancelled,
}

/// A pool of this many threads, or of as many as there are cores.
pub(super) fn pool(threads: usize) -> Result<ThreadPool, CertifyError> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    pool.map_err(|error| CertifyError::Threads { threads, problem: error.to_string() })
}

/// Makes workers and has them `work` on `targets`, and calls `observer` with each result, in order, and every now and then without one; it may
/// break off, which sets `stopped`.
pub(super) fn each_target<I: Copy + Sync, W, T: Send>(
    targets: &[I],
    pool: &ThreadPool,
    stopped: &AtomicBool,
    make: impl Fn() -> W + Sync,
    work: impl Fn(&mut W, I) -> T + Sync,
    mut observer: impl FnMut(Option<T>) -> ControlFlow<()>,
) -> Finish {
    let next = AtomicUsize::new(0);
    let run = |results: Sender<Vec<(usize, T)>>| {
        let mut worker = make();
        let (mut kept, mut since) = (Vec::new(), Instant::now());
        loop {
            let place = next.fetch_add(1, Ordering::Relaxed);
            let Some(&target) = targets.get(place) else { break };
            let result = work(&mut worker, target);
            if stopped.load(Ordering::Relaxed) {
                return;
            }
            kept.push((place, result));
            if since.elapsed() >= KEEP {
                // If nobody waits any more, nobody needs them.
                let _ = results.send(std::mem::take(&mut kept));
                since = Instant::now();
            }
        }
        let _ = results.send(kept);
    };
    pool.in_place_scope(|scope| {
        let (sender, receiver) = channel();
        for _ in 0..pool.current_num_threads().min(targets.len()) {
            let sender = sender.clone();
            scope.spawn(|_| run(sender));
        }
        drop(sender);
        let (mut waiting, mut turn) = (BTreeMap::new(), 0);
        let mut tell = |result| {
            let goes_on = observer(result).is_continue();
            stopped.store(!goes_on, Ordering::Relaxed);
            goes_on
        };
        while turn < targets.len() {
            match receiver.recv_timeout(LOOK) {
                Ok(results) => waiting.extend(results),
                Err(RecvTimeoutError::Timeout) if tell(None) => {}
                // The observer broke off, or a worker panicked, which the scope passes on.
                Err(_) => return Finish::Cancelled,
            }
            while let Some(result) = waiting.remove(&turn) {
                turn += 1;
                if !tell(Some(result)) {
                    return Finish::Cancelled;
                }
            }
        }
        Finish::Complete
    })
}

//! Targets on threads: results come in the order asked for, and do not depend on the number of threads.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rayon::ThreadPool;
use rayon::prelude::*;

use super::CertifyError;
use super::worker::{Effort, Worker};
use crate::ids::NodeId;
use crate::prepare::Shard;
use crate::settings::Engine;

/// Nodes in the first chunk, and for each thread where one node may take long; the observer hears of a chunk once all of
/// it is done.
const FIRST_CHUNK: usize = 64;
const FIRST_CHUNK_EACH: usize = 2;
/// Chunks grow until one takes about this long: rare enough to keep all threads busy, often enough for the observer.
const CHUNK_TIME: Duration = Duration::from_millis(200);
/// The observer is asked this often whether to go on.
const LOOK: Duration = Duration::from_millis(50);
/// Nodes that a thread takes at a time: few, since some cost a hundred times as much as others.
const PIECE: usize = 4;

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

/// Has workers `work` on `targets`, and calls `observer` with each result, in order, and every now and then without one; it may
/// break off, and the workers stop within a target.
pub(super) fn each_target<T: Send>(
    shard: &Shard,
    effort: Effort,
    targets: &[NodeId],
    pool: &ThreadPool,
    work: impl Fn(&mut Worker, NodeId) -> T + Sync,
    mut observer: impl FnMut(Option<T>) -> ControlFlow<()>,
) -> Finish {
    let stopped = AtomicBool::new(false);
    let threads = pool.current_num_threads();
    let workers: Vec<Mutex<Option<Worker>>> = (0..threads).map(|_| Mutex::default()).collect();
    let work = |&target: &NodeId| {
        let thread = rayon::current_thread_index().unwrap_or(0);
        let mut worker = workers[thread].lock().unwrap_or_else(PoisonError::into_inner);
        work(worker.get_or_insert_with(|| Worker::new(shard, effort, &stopped)), target)
    };
    let (smallest, piece) = match effort.engine {
        Engine::Fast => (FIRST_CHUNK, PIECE),
        _ => (FIRST_CHUNK_EACH * threads, 1),
    };
    let (mut rest, mut size) = (targets, smallest);
    while !rest.is_empty() {
        let (chunk, after) = rest.split_at(size.min(rest.len()));
        let start = Instant::now();
        let (sender, receiver) = channel();
        let results = pool.in_place_scope(|scope| {
            scope.spawn(|_| {
                // If nobody waits any more, nobody needs them.
                let _ = sender.send(chunk.par_iter().with_max_len(piece).map(work).collect());
            });
            loop {
                match receiver.recv_timeout(LOOK) {
                    Ok(results) => return results,
                    Err(RecvTimeoutError::Timeout) if observer(None).is_break() => break,
                    Err(RecvTimeoutError::Timeout) => {}
                    // A worker panicked, which the scope passes on.
                    Err(RecvTimeoutError::Disconnected) => break,
                }
            }
            stopped.store(true, Ordering::Relaxed);
            Vec::new()
        });
        if stopped.load(Ordering::Relaxed) {
            return Finish::Cancelled;
        }
        size = if start.elapsed() < CHUNK_TIME / 2 { 2 * size } else { (size / 2).max(smallest) };
        rest = after;
        for result in results {
            if observer(Some(result)).is_break() {
                return Finish::Cancelled;
            }
        }
    }
    Finish::Complete
}

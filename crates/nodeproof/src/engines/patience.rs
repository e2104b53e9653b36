//! When to give up on a target.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use crate::certificate::Obstacle;

/// How far to go with a target.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience<'p> {
    /// Whether to branch.
    pub(crate) branch: bool,
    /// When to stop.
    pub(crate) deadline: Option<Instant>,
    /// Most bytes for lists and subproblems.
    pub(crate) memory: usize,
    /// Set once nobody waits for the result any more.
    pub(crate) stopped: &'p AtomicBool,
}

impl Patience<'_> {
    /// The same with the first part of the time that is left: an eighth is kept for each of `others`, as long as that leaves more than an
    /// equal share.
    pub(crate) fn first_part(self, others: usize) -> Self {
        let share = (1.0 - others as f64 / 8.0).max(1.0 / (others + 1) as f64);
        let deadline = self.deadline.map(|deadline| {
            let now = Instant::now();
            now + deadline.saturating_duration_since(now).mul_f64(share)
        });
        Self { deadline, ..self }
    }

    /// Whether there is no time left.
    pub(crate) fn is_spent(&self) -> bool {
        self.stopped.load(Ordering::Relaxed) || self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// What forbids to go on with so many bytes at hand.
    pub(crate) fn obstacle(&self, bytes: usize) -> Option<Obstacle> {
        if bytes > self.memory {
            return Some(Obstacle::Memory);
        }
        self.is_spent().then_some(Obstacle::Time)
    }
}

#[cfg(test)]
impl Patience<'static> {
    /// Without limits.
    pub(crate) fn endless() -> Self {
        static NEVER: AtomicBool = AtomicBool::new(false);
        Self { branch: true, deadline: None, memory: usize::MAX, stopped: &NEVER }
    }
}

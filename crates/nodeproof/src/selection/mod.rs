//! Taking the best flips under the budget: the one routine in which every bound, dual and attack ends.
//!
//! Admissible sets of flips are independent sets of a truncated partition matroid, so the sum of the gains is largest
//! for the greedy choice: in each row the q_n largest gains, of those the Q largest. Only gains > 0 are ever taken (Lemma 2 of
//! `docs/maths.md`).

mod by_rows;

pub(crate) use by_rows::{OverRows, RowGains, RowScores, share};

/// The largest `capacity` gains seen so far, each with what it stands for, in decreasing order.
///
/// Of equal gains the ones offered first are kept.
#[derive(Debug, Clone)]
pub(crate) struct Selection<T> {
    capacity: usize,
    best: Vec<(f64, T)>,
    pending: Vec<(f64, T)>,
}

/// Up to this capacity an offer is inserted at once; above it offers are collected and merged in batches.
const INSERT_UP_TO: usize = 64;

impl<T: Copy> Selection<T> {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { capacity, best: Vec::new(), pending: Vec::new() }
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.best.clear();
        self.pending.clear();
    }

    /// Forgets everything and takes at most `capacity` from now on.
    pub(crate) fn reset(&mut self, capacity: usize) {
        self.capacity = capacity;
        self.clear();
    }

    /// A gain that is not larger than this cannot enter.
    #[inline]
    pub(crate) fn threshold(&self) -> f64 {
        if self.best.len() < self.capacity { 0.0 } else { self.best.last().map_or(f64::INFINITY, |&(gain, _)| gain) }
    }

    /// Whether a gain is large enough to enter; NaN never is.
    #[inline]
    fn admits(&self, gain: f64) -> bool {
        gain > self.threshold()
    }

    /// Takes `item` if its gain is among the largest.
    #[inline]
    pub(crate) fn offer(&mut self, gain: f64, item: T) {
        if !self.admits(gain) {
            return;
        }
        if self.capacity > INSERT_UP_TO {
            self.pending.push((gain, item));
            if self.pending.len() >= self.capacity {
                self.settle();
            }
            return;
        }
        if self.best.len() == self.capacity {
            self.best.pop();
        }
        let mut place = self.best.len();
        while place > 0 && self.best[place - 1].0 < gain {
            place -= 1;
        }
        self.best.insert(place, (gain, item));
    }

    /// Merges what was offered into the sorted list; needed before it is read.
    pub(crate) fn settle(&mut self) {
        if self.pending.is_empty() {
            return;
        }
        self.best.append(&mut self.pending);
        self.best.sort_by(|a, b| b.0.total_cmp(&a.0));
        self.best.truncate(self.capacity);
    }

    /// What was taken, by decreasing gain. Call [`Selection::settle`] first.
    #[inline]
    pub(crate) fn best(&self) -> &[(f64, T)] {
        debug_assert!(self.pending.is_empty(), "settle() comes first");
        &self.best
    }

    /// The sum of the gains taken. Call [`Selection::settle`] first.
    #[inline]
    pub(crate) fn total(&self) -> f64 {
        self.best().iter().map(|&(gain, _)| gain).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn expected(capacity: usize, gains: impl IntoIterator<Item = f64>) -> Vec<f64> {
        let mut gains: Vec<f64> = gains.into_iter().filter(|&gain| gain > 0.0).collect();
        gains.sort_by(|a, b| b.total_cmp(a));
        gains.truncate(capacity);
        gains
    }

    fn gains_of<T: Copy>(selection: &Selection<T>) -> Vec<f64> {
        selection.best().iter().map(|&(gain, _)| gain).collect()
    }

    proptest! {
        #![proptest_config(crate::seed::config(256))]

        #[test]
        fn offers_keep_the_largest(
            capacity in 0usize..100,
            gains in prop::collection::vec(prop_oneof![-1.0..1.0, Just(0.5), Just(0.0), Just(f64::NAN)], 0..300),
        ) {
            let mut selection = Selection::new(capacity);
            for (i, &gain) in gains.iter().enumerate() {
                selection.offer(gain, i);
            }
            selection.settle();
            prop_assert_eq!(gains_of(&selection), expected(capacity, gains.iter().copied()));
            for &(gain, i) in selection.best() {
                prop_assert_eq!(gain, gains[i]);
            }
        }
    }

    #[test]
    fn of_equal_gains_the_first_are_kept() {
        for capacity in [2, 100] {
            let mut selection = Selection::new(capacity);
            (0..200).for_each(|i| selection.offer(1.0, i));
            selection.settle();
            assert_eq!(selection.best().iter().map(|&(_, i)| i).collect::<Vec<_>>(), (0..capacity).collect::<Vec<_>>());
        }
    }
}

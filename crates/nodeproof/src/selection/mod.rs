//! Taking the best flips under the budget: the one routine in which every bound, dual and attack ends.
//!
//! Admissible sets of flips are independent sets of a truncated partition matroid, so the sum of the gains is largest
//! for the greedy choice: in each row the q_n largest gains, of those the Q largest. Only gains > 0 are ever taken (Lemma 2 of
//! `docs/maths.md`).

mod by_rows;

use crate::slice::SlicedFlip;

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
        self.merge(|_| ());
    }

    /// The same, with `arrange` called on the sorted list before it is cut.
    fn merge(&mut self, arrange: impl FnOnce(&mut [(f64, T)])) {
        if self.pending.is_empty() {
            return;
        }
        self.best.append(&mut self.pending);
        self.best.sort_by(|a, b| b.0.total_cmp(&a.0));
        arrange(&mut self.best);
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

impl Selection<SlicedFlip> {
    /// Takes a flip of the row whose flips are offered now if its gain is among the largest. Of equal gains those of rows before it are kept,
    /// and of its own those with the smallest attributes, in whatever order they are offered.
    #[inline]
    pub(crate) fn offer_of_row(&mut self, gain: f64, flip: SlicedFlip) {
        // Whether it comes before what was taken.
        let precedes = |&(other, (row, attribute)): &(f64, SlicedFlip)| {
            gain > other || (gain == other && row == flip.0 && flip.1 < attribute)
        };
        let is_full = self.best.len() >= self.capacity;
        if !(gain > 0.0 && (!is_full || self.best.last().is_some_and(precedes))) {
            return;
        }
        if self.capacity > INSERT_UP_TO {
            self.pending.push((gain, flip));
            if self.pending.len() >= self.capacity {
                self.settle_rows();
            }
            return;
        }
        if is_full {
            self.best.pop();
        }
        let place = self.best.iter().rposition(|other| !precedes(other)).map_or(0, |last| last + 1);
        self.best.insert(place, (gain, flip));
    }

    /// [`Selection::settle`] after [`Selection::offer_of_row`].
    pub(crate) fn settle_rows(&mut self) {
        self.merge(|best| {
            let same = |a: &(f64, SlicedFlip), b: &(f64, SlicedFlip)| a.0 == b.0 && a.1.0 == b.1.0;
            best.chunk_by_mut(same).for_each(|ties| ties.sort_by_key(|&(_, (_, attribute))| attribute));
        });
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

    /// Rows one after the other, each with its flips in some order: which order does not matter.
    #[test]
    fn of_equal_gains_in_a_row_the_smallest_attributes_are_kept() {
        let rows: [&[(f64, u32)]; 3] =
            [&[(1.0, 4), (2.0, 9)], &[(1.0, 5), (1.0, 2), (3.0, 7), (1.0, 3), (1.0, 0)], &[(1.0, 1)]];
        let expected = [(3.0, (1, 7)), (2.0, (0, 9)), (1.0, (0, 4)), (1.0, (1, 0)), (1.0, (1, 2)), (1.0, (1, 3))];
        let capacities = [1, 2, 3, 4, 5, 6].into_iter();
        for (capacity, turn) in capacities.flat_map(|capacity| (0..5).map(move |turn| (capacity, turn))) {
            let mut selection = Selection::new(capacity);
            for (row, flips) in (0..).zip(&rows) {
                let mut flips = flips.to_vec();
                let count = flips.len();
                flips.rotate_left(turn % count);
                flips.iter().for_each(|&(gain, attribute)| selection.offer_of_row(gain, (row, attribute)));
            }
            selection.settle_rows();
            assert_eq!(selection.best(), &expected[..capacity], "turned by {turn}");
        }
    }

    proptest! {
        #![proptest_config(crate::seed::config(256))]

        #[test]
        fn ties_in_a_row_do_not_depend_on_the_order_of_offers(
            gains in prop::collection::vec(0u8..4, 1..400), capacity in 1usize..130, row in 1usize..150, seed in any::<u64>(),
        ) {
            let select = |shuffled: bool| {
                let mut selection = Selection::new(capacity);
                for (number, gains) in gains.chunks(row).enumerate() {
                    let mut flips: Vec<(u64, u32, f64)> = (0u32..).zip(gains).map(|(attribute, &gain)| {
                        let key = seed.wrapping_mul(u64::from(attribute) * 2 + 1) >> 7;
                        (if shuffled { key } else { u64::from(attribute) }, attribute, f64::from(gain))
                    }).collect();
                    flips.sort_by_key(|&(key, ..)| key);
                    flips.iter().for_each(|&(_, attribute, gain)| selection.offer_of_row(gain, (number as u32, attribute)));
                }
                selection.settle_rows();
                selection.best().to_vec()
            };
            let best = select(false);
            prop_assert_eq!(&best, &select(true));
            let taken: Vec<f64> = best.iter().map(|&(gain, _)| gain).collect();
            prop_assert_eq!(taken, expected(capacity, gains.iter().map(|&gain| f64::from(gain))));
        }

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

//! Taking the best flips where what a flip gains depends on how many its row has: the ones of a row are divided by their number.
//!
//! With m ones in a row, a additions and r removals leave m' = m + a − r, and together they gain `(Σ scores) / m'` if m' ≥ 1 (Lemma 46 of
//! `docs/maths.md`). So for each number of flips the best of a row is that of all pairs (a, r), with the a best additions and the r best
//! removals; and rows share the budget by a recursion over their numbers of flips, as in a knapsack.

/// The most that flips of one row gain, for each number of them.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct RowGains {
    /// For at most 0, 1, … flips.
    totals: Vec<f64>,
    /// How many of them are additions, and how many removals.
    ways: Vec<(u32, u32)>,
}

/// A row, and what its flips score.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowScores<'s> {
    /// Ones in the row.
    pub(crate) ones: usize,
    /// Most flips in it.
    pub(crate) capacity: usize,
    /// Scores, largest first.
    pub(crate) additions: &'s [f64],
    pub(crate) removals: &'s [f64],
    /// What it gains to remove all ones, if that may be done.
    pub(crate) emptied: Option<f64>,
}

impl RowGains {
    /// Nothing, for up to so many flips.
    pub(crate) fn none(flips: usize) -> Self {
        Self { totals: vec![0.0; flips + 1], ways: vec![(0, 0); flips + 1] }
    }

    /// The best of a row for each number of flips.
    pub(crate) fn best(row: RowScores) -> Self {
        let RowScores { ones, additions, removals, emptied, .. } = row;
        let listed = (additions.len() + removals.len()).max(if emptied.is_some() { ones } else { 0 });
        let capacity = row.capacity.min(listed);
        let mut best = Self::none(capacity);
        let mut removed = 0.0;
        for r in 0..=removals.len().min(capacity) {
            if r > 0 {
                removed += removals[r - 1];
            }
            let mut sum = removed;
            for a in 0..=additions.len().min(capacity - r) {
                if a > 0 {
                    sum += additions[a - 1];
                }
                if ones + a > r {
                    best.offer(a + r, sum / (ones + a - r) as f64, (a as u32, r as u32));
                }
            }
        }
        best.settle(emptied.map(|gain| (ones, gain)));
        best
    }

    /// Offers what a row gains to lose all of its ones, and has more flips gain no less than fewer.
    pub(crate) fn settle(&mut self, emptied: Option<(usize, f64)>) {
        if let Some((ones, gain)) = emptied.filter(|(ones, _)| *ones < self.totals.len()) {
            self.offer(ones, gain, (0, ones as u32));
        }
        for k in 1..self.totals.len() {
            if self.totals[k] < self.totals[k - 1] {
                (self.totals[k], self.ways[k]) = (self.totals[k - 1], self.ways[k - 1]);
            }
        }
    }

    /// Offers what so many flips gain, and how many of them are additions and removals.
    #[inline]
    pub(crate) fn offer(&mut self, flips: usize, total: f64, way: (u32, u32)) {
        // What is not a number counts as much as anything.
        let total = if total.is_nan() { f64::INFINITY } else { total };
        if total > self.totals[flips] {
            (self.totals[flips], self.ways[flips]) = (total, way);
        }
    }

    /// How many additions and removals gain most, for at most so many flips.
    pub(crate) fn way(&self, flips: usize) -> (usize, usize) {
        let (a, r) = self.ways[flips];
        (a as usize, r as usize)
    }

    /// The most that at most 0, 1, … flips gain.
    pub(crate) fn totals(&self) -> &[f64] {
        &self.totals
    }
}

/// The most that flips of several rows gain together.
#[derive(Debug, Clone, Default)]
pub(crate) struct OverRows {
    /// For at most 0, 1, … flips.
    totals: Vec<f64>,
    /// For each row how many of them it has, one row after the other.
    taken: Vec<u32>,
}

impl OverRows {
    /// No rows, and at most so many flips.
    pub(crate) fn new(flips: usize) -> Self {
        Self { totals: vec![0.0; flips + 1], taken: Vec::new() }
    }

    /// Adds a row, what it gains being multiplied by `factor` ≥ 0.
    pub(crate) fn add(&mut self, row: &RowGains, factor: f64) {
        let first = self.taken.len();
        self.taken.resize(first + self.totals.len(), 0);
        let taken = &mut self.taken[first..];
        share(&mut self.totals, row, factor, |flips, k| taken[flips] = k as u32);
    }

    /// The most that at most 0, 1, … flips gain.
    pub(crate) fn totals(&self) -> &[f64] {
        &self.totals
    }

    /// The least that one more flip gains, whatever their number: a row changes nothing if it gains no more than that for each flip, nor
    /// does it once there are other rows.
    pub(crate) fn threshold(&self) -> f64 {
        self.totals.windows(2).map(|pair| pair[1] - pair[0]).fold(f64::INFINITY, f64::min)
    }

    /// How many flips each row has where at most so many gain most, last row first.
    pub(crate) fn taken(&self, mut flips: usize) -> impl Iterator<Item = usize> + '_ {
        self.taken.chunks(self.totals.len()).rev().map(move |taken| {
            let of_row = taken[flips] as usize;
            flips -= of_row;
            of_row
        })
    }
}

/// Has a row share the flips with what was there before: `totals` are the most that at most 0, 1, … flips gain. `taken` hears for how many
/// flips how many are of the row, as far as it has any.
pub(crate) fn share(totals: &mut [f64], row: &RowGains, factor: f64, mut taken: impl FnMut(usize, usize)) {
    for flips in (1..totals.len()).rev() {
        let (mut best, mut of_row) = (totals[flips], 0);
        for (k, gain) in row.totals.iter().enumerate().take(flips + 1).skip(1) {
            let total = totals[flips - k] + factor * gain;
            if total > best {
                (best, of_row) = (total, k);
            }
        }
        if of_row > 0 {
            totals[flips] = best;
            taken(flips, of_row);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The best over all subsets of flips of a row, given scores with a sign for additions.
    fn by_brute_force(
        ones: usize,
        capacity: usize,
        additions: &[f64],
        removals: &[f64],
        emptied: Option<f64>,
    ) -> Vec<f64> {
        let mut best = vec![0.0f64; capacity + 1];
        let all: Vec<(f64, bool)> =
            additions.iter().map(|&s| (s, true)).chain(removals.iter().map(|&s| (s, false))).collect();
        for set in 0u32..1 << all.len() {
            let chosen = || all.iter().enumerate().filter(|(i, _)| set >> i & 1 == 1).map(|(_, flip)| flip);
            let (count, added) = (chosen().count(), chosen().filter(|flip| flip.1).count());
            let left = ones + added - (count - added);
            let total = match (left, emptied) {
                (0, Some(gain)) => gain,
                (0, None) => continue,
                _ => chosen().map(|flip| flip.0).sum::<f64>() / left as f64,
            };
            (count..=capacity).for_each(|k| best[k] = best[k].max(total));
        }
        best
    }

    fn falling(mut scores: Vec<f64>) -> Vec<f64> {
        scores.sort_by(|a, b| b.total_cmp(a));
        scores
    }

    proptest! {
        #![proptest_config(crate::seed::config(256))]

        #[test]
        fn the_best_of_a_row_is_that_of_all_sets(
            additions in prop::collection::vec(-2.0f64..4.0, 0..4),
            removals in prop::collection::vec(-4.0f64..2.0, 0..5),
            capacity in 0usize..6,
            emptied in prop::option::of(-1.0f64..3.0),
        ) {
            let (additions, removals) = (falling(additions), falling(removals));
            let ones = removals.len();
            let row = RowScores { ones, capacity, additions: &additions, removals: &removals, emptied };
            let found = RowGains::best(row);
            let expected = by_brute_force(ones, capacity, &additions, &removals, emptied);
            for (found, expected) in found.totals().iter().zip(&expected) {
                prop_assert!((found - expected).abs() < 1e-12, "{found} {expected}");
            }
            let most = found.totals()[found.totals().len() - 1];
            prop_assert!((most - expected[capacity]).abs() < 1e-12);
        }

        #[test]
        fn rows_share_the_budget_as_well_as_can_be(
            rows in prop::collection::vec(prop::collection::vec(0.0f64..3.0, 0..4), 0..4),
            flips in 0usize..6,
        ) {
            let rows: Vec<RowGains> = rows.into_iter().map(|mut totals| {
                totals.insert(0, 0.0);
                totals.sort_by(f64::total_cmp);
                let ways = vec![(0, 0); totals.len()];
                RowGains { totals, ways }
            }).collect();
            let mut over = OverRows::new(flips);
            rows.iter().for_each(|row| over.add(row, 0.5));
            let mut sums = vec![(0usize, 0.0f64)];
            for row in &rows {
                sums = sums.iter().flat_map(|&(used, sum)| {
                    row.totals.iter().enumerate().map(move |(k, total)| (used + k, sum + 0.5 * total))
                }).collect();
            }
            let best = sums.iter().filter(|sum| sum.0 <= flips).map(|sum| sum.1).fold(0.0, f64::max);
            prop_assert!((over.totals()[flips] - best).abs() < 1e-12);
            let taken: Vec<usize> = over.taken(flips).collect();
            let total: f64 = rows.iter().rev().zip(&taken).map(|(row, &k)| 0.5 * row.totals[k]).sum();
            prop_assert!((total - best).abs() < 1e-12 && taken.iter().sum::<usize>() <= flips);
        }
    }
}

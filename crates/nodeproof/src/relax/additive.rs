//! Bounds on one ReLU that are additive in the flips (Definition 9 and Lemmas 15 to 17 of `docs/maths.md`).
//!
//! A unit has pre-activation z, and flip f moves it by a_f. Each bound has the form
//!
//! ```text
//! relu(z + Σ_f a_f) ≤ constant + Σ_f weight(a_f)      (≥ for a line below),
//! ```
//!
//! so that the worst set of flips is the greedy choice of the best single ones. There are
//!
//! * the *line* `s x`: for s in [0, 1] below the ReLU, with s = 1 or 0 equal to it where the sign of x is known;
//! * the *sign split*: with p ≥ 0 the sum of the upward moves and n ≤ 0 that of the downward ones, for every c in
//!   [relu(z), hi (z − lo) / (hi − lo)] and all moves with z + p ≤ hi and z + n ≥ lo,
//!   `relu(z + p + n) ≤ c + (hi − c) / (hi − z) · p + c / (z − lo) · n`. The top end is the paper's chord;
//! * the *threshold bound* for at most Q flips, since the ReLU is convex and positively homogeneous:
//!   `relu(z + Σ a_f) ≤ Q relu(z / Q) + Σ_f [relu(z / Q + a_f) − relu(z / Q)]`. It is exact where nothing is flipped and
//!   needs no lo and hi;
//! * and mixes of the last two.

use crate::dense::relu;

/// A bound `constant + Σ_f weight(a_f)` with
/// `weight(a) = up · a₊ − down · a₋ + share · (relu(threshold + a) − relu(threshold))`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Additive {
    pub(crate) constant: f64,
    up: f64,
    down: f64,
    share: f64,
    threshold: f64,
}

impl Additive {
    /// `slope · x`.
    pub(crate) fn line(z: f64, slope: f64) -> Self {
        Self { constant: slope * z, up: slope, down: slope, share: 0.0, threshold: 0.0 }
    }

    /// The sign split of a unit with lo < 0 < hi, c at `position` in [0, 1] of its range.
    pub(crate) fn sign_split(z: f64, (lo, hi): (f64, f64), position: f64) -> Self {
        let (lowest, highest) = split_range(z, (lo, hi));
        let c = lowest + position * (highest - lowest);
        // A unit that cannot move in a direction has no move there to weigh.
        let up = if hi > z { ((hi - c) / (hi - z)).clamp(0.0, 1.0) } else { 0.0 };
        let down = if z > lo { (c / (z - lo)).clamp(0.0, 1.0) } else { 0.0 };
        Self { constant: c, up, down, share: 0.0, threshold: 0.0 }
    }

    /// The threshold bound for at most `flips` flips.
    pub(crate) fn threshold(z: f64, flips: usize) -> Self {
        let threshold = z / flips.max(1) as f64;
        Self { constant: relu(z), up: 0.0, down: 0.0, share: 1.0, threshold }
    }

    /// `share` of the threshold bound `self` and the rest of the sign split `split`.
    pub(crate) fn mixed(self, split: Self, share: f64) -> Self {
        let rest = 1.0 - share;
        Self {
            constant: share * self.constant + rest * split.constant,
            up: rest * split.up,
            down: rest * split.down,
            share,
            threshold: self.threshold,
        }
    }

    /// The bound for moves that add up to `up` and `down`, given the sum of `relu(threshold + a) − relu(threshold)`.
    pub(crate) fn total(&self, up: f64, down: f64, threshold: f64) -> f64 {
        self.constant + self.up * up + self.down * down + self.share * threshold
    }

    /// What a flip that moves the unit by `a` adds to the bound.
    #[inline(always)]
    pub(crate) fn weight(&self, a: f64) -> f64 {
        let linear = if a > 0.0 { self.up * a } else { self.down * a };
        linear + self.share * (relu(self.threshold + a) - relu(self.threshold))
    }
}

/// The range of c in the sign split.
pub(crate) fn split_range(z: f64, (lo, hi): (f64, f64)) -> (f64, f64) {
    let lowest = relu(z);
    (lowest, (hi * (z - lo) / (hi - lo)).max(lowest))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// z, the moves of some flips, of which at most as many as the last number are made.
    fn units() -> impl Strategy<Value = (f64, Vec<f64>, usize)> {
        let step = prop_oneof![-1.0..1.0, Just(0.0), Just(0.5), Just(-0.5)];
        (prop_oneof![-2.0..2.0, Just(0.0)], prop::collection::vec(step, 0..7), 0usize..6)
    }

    /// Sums of moves of every set of at most `most` flips, with the moves.
    fn sets(moves: &[f64], most: usize) -> Vec<Vec<f64>> {
        let all = (0u32..1 << moves.len()).filter(|set| set.count_ones() as usize <= most);
        all.map(|set| (0..moves.len()).filter(|f| set >> f & 1 == 1).map(|f| moves[f]).collect()).collect()
    }

    fn bound(additive: Additive, moves: &[f64]) -> f64 {
        additive.constant + moves.iter().map(|&a| additive.weight(a)).sum::<f64>()
    }

    proptest! {
        #![proptest_config(crate::seed::config(256))]

        #[test]
        fn bounds_hold_for_every_set(
            (z, moves, most) in units(), position in 0.0..=1.0, share in 0.0..=1.0, slope in 0.0..=1.0,
        ) {
            let sets = sets(&moves, most);
            let at = |set: &Vec<f64>| z + set.iter().sum::<f64>();
            let (lo, hi) = sets.iter().map(at).fold((z, z), |(lo, hi), x| (lo.min(x), hi.max(x)));
            let threshold = Additive::threshold(z, most);
            prop_assert!((bound(threshold, &[]) - relu(z)).abs() < 1e-12, "exact where nothing is flipped");
            let mut upper = vec![threshold];
            if lo < 0.0 && hi > 0.0 {
                let split = Additive::sign_split(z, (lo, hi), position);
                upper.extend([split, threshold.mixed(split, share)]);
                let (slope, chord) = (hi / (hi - lo), Additive::sign_split(z, (lo, hi), 1.0));
                for set in &sets {
                    let expected = slope * (at(set) - lo);
                    prop_assert!((bound(chord, set) - expected).abs() < 1e-9, "the chord is the paper's");
                }
            }
            for set in &sets {
                let exact = relu(at(set));
                for additive in &upper {
                    let bound = bound(*additive, set);
                    prop_assert!(bound >= exact - 1e-12, "{additive:?} gives {bound} for {exact}");
                }
                prop_assert!(bound(Additive::line(z, slope), set) <= exact + 1e-12);
            }
        }
    }
}

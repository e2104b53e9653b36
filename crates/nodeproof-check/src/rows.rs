//! Rows whose ones are divided by their number: what the flips of one gain together (Lemmas 45 to 47 of `docs/maths.md`).
//!
//! With μ = x_n W of the row as it is, m its ones, and m' those after a additions and ρ removals,
//!
//! ```text
//! x'_n W − μ = (1 / m') Σ_flips σ (W_d − μ) = (1 / m') (Σ_added (W_d − μ) + Σ_kept (W_d − μ)),   −μ if m' = 0.
//! ```
//!
//! So flips, or flips and kept ones if these are no more, gain `score / m'` each, and a score at fewer ones is not smaller.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use nodeproof_problem::AttributeId;

use crate::base::Base;
use crate::bound::{Linearised, Query};
use crate::interval::{Interval, down, up};
use crate::network::length;
use crate::number::Number;

/// Numbers of ones that may be left, other than none. Scores are those at the fewest of them: bounds by the row's query, or flip by flip.
#[derive(Clone)]
struct Stage {
    ones: RangeInclusive<usize>,
    is_close: bool,
}

/// What is known of one row.
pub(crate) struct Row<'r, 'n> {
    base: &'r Base<'n>,
    row: usize,
    ones: Vec<AttributeId>,
    /// Of these the ones that may be removed, and those that are kept anyway.
    removable: Vec<AttributeId>,
    permanent: Vec<AttributeId>,
    /// Most flips, and the fewest ones other than none that they leave.
    most: usize,
    fewest: usize,
    stages: Vec<Stage>,
    /// For each number of flips the stage where they gain most, and how many ones they leave.
    reached: Vec<Option<(usize, usize)>>,
    /// All additions that may score more than this, and all removals, with bounds of their scores, which fall.
    listed_above: f64,
    additions: Vec<(f64, AttributeId)>,
    removals: Vec<(f64, AttributeId)>,
    /// Scores that were computed: of attributes with a sign, at so many ones, as moves that stand for so many flips.
    scores: RefCell<BTreeMap<(AttributeId, bool, usize, u64), f64>>,
}

/// Additions are listed down to this part of what is asked for, since less will be asked for next.
const AHEAD: f64 = 0.25;

impl<'r, 'n> Row<'r, 'n> {
    pub(crate) fn new(base: &'r Base<'n>, row: usize) -> Self {
        let (network, node) = (base.network, base.region.rows[row]);
        let ones: Vec<AttributeId> = network.row(node, &base.flips).into_keys().collect();
        let may = |&d: &AttributeId| network.limits.deletions() && base.may_flip(row, d);
        let (removable, permanent): (Vec<_>, Vec<_>) = ones.iter().copied().partition(may);
        let most = base.capacities[row].min(base.left);
        let fewest = (ones.len() - removable.len().min(most)).max(1);
        let stages = vec![Stage { ones: fewest..=ones.len() + most, is_close: false }];
        let listed_above = f64::INFINITY;
        let (reached, additions, removals, scores) = Default::default();
        Self {
            base,
            row,
            ones,
            removable,
            permanent,
            most,
            fewest,
            stages,
            reached,
            listed_above,
            additions,
            removals,
            scores,
        }
    }

    /// The most that a flip can do to `X_n W`, beside twice the largest weights.
    pub(crate) fn scale(&self) -> f64 {
        if self.most == 0 { 0.0 } else { up(2.0 / self.fewest as f64) }
    }

    /// Looks more closely at where so many flips gained most; whether that is possible.
    pub(crate) fn look_closer(&mut self, flips: usize) -> bool {
        let Some((place, left)) = self.reached[flips] else { return false };
        let (start, end) = self.stages[place].ones.clone().into_inner();
        if !self.stages[place].is_close {
            self.stages[place].is_close = true;
        } else if start < end {
            let middle = left.max(start + 1);
            self.stages[place].ones = start..=middle - 1;
            self.stages.push(Stage { ones: middle..=end, is_close: true });
        } else {
            return false;
        }
        true
    }

    /// `σ (W_d − μ) / left`.
    fn change(&self, attribute: AttributeId, sign: f64, left: usize) -> Vec<Interval> {
        let weights = self.base.network.weight.row(attribute.index());
        let mean = self.base.sums[self.row].iter();
        mean.zip(weights).map(|(&mean, &w)| (Interval::of(w) + -mean).times(sign).over(left)).collect()
    }

    /// For each number of flips at most what so many gain together; `None` if that is no more than `level` for each of them.
    pub(crate) fn gains(&mut self, linear: &Linearised, query: &Query, level: f64) -> Option<Vec<f64>> {
        let network = self.base.network;
        let longest = network.by_length.first().map_or(0.0, |d| network.lengths[d.index()]);
        let longest = up(longest + length(self.base.sums[self.row].iter().map(|mean| mean.size())));
        if self.most == 0 || up(up(query.length * longest) / self.fewest as f64) <= level {
            return None;
        }
        // Additions that are not listed score at most the floor.
        let floor = level * (self.ones.len() + 1) as f64;
        if floor < self.listed_above {
            self.listed_above = AHEAD * floor;
            self.additions = self.additions_above(query, self.listed_above);
            let removal = |&d: &AttributeId| (known(query.bound(&self.change(d, -1.0, 1))), d);
            self.removals = by_falling_bounds(self.removable.iter().map(removal).collect());
        }
        let most_removed = self.most.min(self.removable.len());
        let is_halved = 2 * self.fewest <= self.ones.len();
        let mut gains = vec![0.0; self.most + 1];
        self.reached = vec![None; gains.len()];
        for (place, stage) in self.stages.iter().enumerate() {
            let (start, end) = stage.ones.clone().into_inner();
            // At most `start` times what a move gains where at least so many ones are left.
            let score = |d: AttributeId, sign: f64, flips: f64| {
                if !stage.is_close {
                    return query.bound(&self.change(d, sign, 1));
                }
                let gain = || up(linear.gain(self.row, &self.change(d, sign, start), flips) * start as f64);
                let of = (d, sign > 0.0, start, flips.to_bits());
                *self.scores.borrow_mut().entry(of).or_insert_with(gain)
            };
            let added = largest_sums(&self.additions, floor, self.most, |d| score(d, 1.0, 1.0));
            let removed = largest_sums(&self.removals, f64::NEG_INFINITY, most_removed, |d| score(d, -1.0, 1.0));
            // Ones that cannot be removed are kept anyway.
            let kept = is_halved.then(|| {
                let flips = 1f64.max(down(self.ones.len().saturating_sub(end) as f64 / end as f64));
                let always = self.permanent.iter().fold(0.0, |sum, &d| up(sum + score(d, 1.0, flips)));
                let may: Vec<_> = self.removable.iter().map(|&d| (f64::INFINITY, d)).collect();
                (always, largest_sums(&may, f64::NEG_INFINITY, may.len(), |d| score(d, 1.0, flips)))
            });
            for a in 0..=if network.limits.additions() { self.most } else { 0 } {
                for removals in 0..=(self.most - a).min(most_removed) {
                    let stays = self.ones.len() - removals;
                    if !stage.ones.contains(&(stays + a)) {
                        continue;
                    }
                    let of_removed = match &kept {
                        Some((always, sums)) if stays <= removals => {
                            let of_kept = up(always + sums[stays - self.permanent.len()]);
                            if of_kept < removed[removals] { of_kept } else { removed[removals] }
                        }
                        _ => removed[removals],
                    };
                    let gain = known(up(up(added[a] + of_removed) / (stays + a) as f64));
                    if gain > gains[a + removals] {
                        gains[a + removals] = gain;
                        self.reached[a + removals] = Some((place, stays + a));
                    }
                }
            }
        }
        if self.removable.len() == self.ones.len() && (1..=self.most).contains(&self.ones.len()) {
            let emptied: Vec<Interval> = self.base.sums[self.row].iter().map(|&mean| -mean).collect();
            let gain = known(linear.gain(self.row, &emptied, self.ones.len() as f64));
            gains[self.ones.len()] = gains[self.ones.len()].max(gain);
        }
        for k in 1..gains.len() {
            if gains[k - 1] > gains[k] {
                (gains[k], self.reached[k]) = (gains[k - 1], self.reached[k - 1]);
            }
        }
        let is_small = |(k, &gain): (usize, &f64)| gain <= down(k as f64 * level);
        if gains.iter().enumerate().skip(1).all(is_small) { None } else { Some(gains) }
    }

    /// The additions that may score more than `floor`, by falling bounds of their scores.
    fn additions_above(&self, query: &Query, floor: f64) -> Vec<(f64, AttributeId)> {
        let (network, mut listed) = (self.base.network, Vec::new());
        let mean: Vec<Interval> = self.base.sums[self.row].iter().map(|&mean| -mean).collect();
        let of_mean = query.bound(&mean);
        let needed = down(floor - of_mean);
        for &attribute in network.by_length.iter().filter(|_| network.limits.additions()) {
            let length = network.lengths[attribute.index()];
            if up(query.length * length) < needed {
                break;
            }
            let bound = query.bounds(network.weight.row(attribute.index()), length).0;
            let is_one = || self.ones.binary_search(&attribute).is_ok();
            // NaN, too, may be more.
            let is_less = bound <= needed;
            if !is_less && !is_one() && self.base.may_flip(self.row, attribute) {
                listed.push((known(up(bound + of_mean)), attribute));
            }
        }
        by_falling_bounds(listed)
    }
}

/// What is not a number may be anything.
fn known(x: f64) -> f64 {
    if x.is_nan() { f64::INFINITY } else { x }
}

fn by_falling_bounds(mut listed: Vec<(f64, AttributeId)>) -> Vec<(f64, AttributeId)> {
    listed.sort_by(|a, b| b.0.total_cmp(&a.0));
    listed
}

/// For each number up to `most` at most the sum of the scores of so many: of some that are listed by falling bounds, and of any number of
/// others that score at most the floor. Scores are computed as long as one may be among the largest.
fn largest_sums(
    listed: &[(f64, AttributeId)],
    floor: f64,
    most: usize,
    score: impl Fn(AttributeId) -> f64,
) -> Vec<f64> {
    let mut largest = vec![floor; most];
    for &(bound, attribute) in listed {
        if largest.last().is_none_or(|&last| bound <= last) {
            break;
        }
        let score = score(attribute);
        let score = if score < bound { score } else { bound };
        largest.insert(largest.partition_point(|&other| other >= score), score);
        largest.pop();
    }
    let mut sums = vec![0.0];
    for next in largest {
        sums.push(known(up(sums[sums.len() - 1] + next)));
    }
    sums
}

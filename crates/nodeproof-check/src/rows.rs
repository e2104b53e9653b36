//! Rows whose ones are divided by their number: what the flips of one gain together (Lemmas 45 to 47 of `docs/maths.md`).
//!
//! With μ = x_n W of the row as it is, m its ones, and m' those after a additions and ρ removals,
//!
//! ```text
//! x'_n W − μ = (1 / m') Σ_flips σ (W_d − μ) = (1 / m') (Σ_added (W_d − μ) + Σ_kept (W_d − μ)),   −μ if m' = 0.
//! ```
//!
//! So flips, or flips and kept ones if these are no more, gain `score / m'` each, and a score at fewer ones is not smaller.

use nodeproof_problem::AttributeId;

use crate::base::Base;
use crate::bound::{Linearised, Query};
use crate::interval::{Interval, down, larger, up};
use crate::network::length;
use crate::number::Number;

/// How closely gains are looked at: by queries, one by one for a few numbers of ones that are left, or for all of them.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Care {
    Little,
    Some,
    Much,
}

/// What is known of one row.
pub(crate) struct Row<'r, 'n> {
    base: &'r Base<'n>,
    row: usize,
    ones: Vec<AttributeId>,
    removable: Vec<AttributeId>,
    /// Most flips, and the fewest ones other than none that they leave.
    most: usize,
    fewest: usize,
    /// All additions that may score more than this, with bounds of their scores, which fall.
    listed_above: f64,
    listed: Vec<(f64, AttributeId)>,
}

/// Additions are listed down to this part of what is asked for, since less will be asked for next.
const AHEAD: f64 = 0.25;

impl<'r, 'n> Row<'r, 'n> {
    pub(crate) fn new(base: &'r Base<'n>, row: usize) -> Self {
        let (network, node) = (base.network, base.region.rows[row]);
        let ones: Vec<AttributeId> = network.row(node, &base.flips).into_keys().collect();
        let may = |d: &&AttributeId| network.limits.deletions() && base.may_flip(row, **d);
        let removable: Vec<AttributeId> = ones.iter().filter(may).copied().collect();
        let most = base.capacities[row].min(base.left);
        let fewest = (ones.len() - removable.len().min(most)).max(1);
        Self { base, row, ones, removable, most, fewest, listed_above: f64::INFINITY, listed: Vec::new() }
    }

    /// The most that a flip can do to `X_n W`, beside twice the largest weights.
    pub(crate) fn scale(&self) -> f64 {
        if self.most == 0 { 0.0 } else { up(2.0 / self.fewest as f64) }
    }

    /// `σ (W_d − μ) / left`.
    fn change(&self, attribute: AttributeId, sign: f64, left: usize) -> Vec<Interval> {
        let weights = self.base.network.weight.row(attribute.index());
        let mean = self.base.sums[self.row].iter();
        mean.zip(weights).map(|(&mean, &w)| (Interval::of(w) + -mean).times(sign).over(left)).collect()
    }

    /// At most `left` times what a move gains where at least so many ones are left.
    fn score(&self, linear: &Linearised, attribute: AttributeId, sign: f64, left: usize, flips: f64) -> f64 {
        up(linear.gain(self.row, &self.change(attribute, sign, left), flips) * left as f64)
    }

    /// For each number of flips at most what so many gain together; `None` if each of them gains no more than `level`.
    pub(crate) fn gains(&mut self, linear: &Linearised, query: &Query, level: f64, care: Care) -> Option<Vec<f64>> {
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
            self.listed = self.additions_above(query, self.listed_above);
        }
        let score = |d: AttributeId, sign: f64, left: usize, flips: f64| match care {
            Care::Little => query.bound(&self.change(d, sign, 1)),
            _ => self.score(linear, d, sign, left, flips),
        };
        let is_halved = 2 * self.fewest <= self.ones.len();
        let mut gains = vec![0.0; self.most + 1];
        for stage in self.stages(care) {
            let start = *stage.start();
            let added = self.largest_additions(floor, |d| score(d, 1.0, start, 1.0));
            let removed = largest_sums(self.removable.iter().map(|&d| score(d, -1.0, start, 1.0)), self.most);
            // Ones that cannot be removed are kept anyway.
            let (may, must): (Vec<_>, Vec<_>) = self.ones.iter().partition(|d| self.removable.contains(d));
            let kept = is_halved.then(|| {
                let flips = 1f64.max(down(self.ones.len().saturating_sub(*stage.end()) as f64 / *stage.end() as f64));
                let always = must.iter().fold(0.0, |sum, &&d| up(sum + score(d, 1.0, start, flips)));
                (always, largest_sums(may.iter().map(|&&d| score(d, 1.0, start, flips)), may.len()))
            });
            for a in 0..=if network.limits.additions() { self.most } else { 0 } {
                for removals in 0..=(self.most - a).min(self.removable.len()) {
                    let stays = self.ones.len() - removals;
                    if !stage.contains(&(stays + a)) {
                        continue;
                    }
                    let of_removed = match &kept {
                        Some((always, sums)) if stays <= removals => {
                            let of_kept = up(always + sums[stays - must.len()]);
                            if of_kept < removed[removals] { of_kept } else { removed[removals] }
                        }
                        _ => removed[removals],
                    };
                    let gain = up(up(added[a] + of_removed) / (stays + a) as f64);
                    gains[a + removals] = larger(gains[a + removals], gain);
                }
            }
        }
        if self.removable.len() == self.ones.len() && (1..=self.most).contains(&self.ones.len()) {
            let emptied: Vec<Interval> = self.base.sums[self.row].iter().map(|&mean| -mean).collect();
            gains[self.ones.len()] =
                larger(gains[self.ones.len()], linear.gain(self.row, &emptied, self.ones.len() as f64));
        }
        for k in 1..gains.len() {
            gains[k] = larger(gains[k], gains[k - 1]);
        }
        Some(gains)
    }

    /// Numbers of ones that may be left, in ranges: scores of a range are those at its start.
    fn stages(&self, care: Care) -> Vec<std::ops::RangeInclusive<usize>> {
        let (ones, most) = (self.ones.len(), self.ones.len() + self.most);
        let mut starts = match care {
            Care::Little => vec![self.fewest],
            Care::Some => vec![self.fewest, (self.fewest + ones) / 2, ones, ones + self.most / 2],
            Care::Much => (self.fewest..=most).collect(),
        };
        starts.retain(|&start| start >= self.fewest);
        starts.dedup();
        let ends = starts.iter().skip(1).map(|&next| next - 1).chain([most]);
        starts.iter().zip(ends).map(|(&start, end)| start..=end).collect()
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
        listed.sort_by(|a, b| b.0.total_cmp(&a.0));
        listed
    }

    /// The sums of the largest scores of additions, with those that are not listed at the floor. Scores are computed as long as one may be
    /// among these.
    fn largest_additions(&self, floor: f64, score: impl Fn(AttributeId) -> f64) -> Vec<f64> {
        let mut largest: Vec<f64> = vec![floor; self.most];
        for &(bound, attribute) in &self.listed {
            if bound <= largest[self.most - 1] {
                break;
            }
            let score = score(attribute);
            largest.push(if score < bound { score } else { bound });
            largest.sort_by(|a, b| b.total_cmp(a));
            largest.pop();
        }
        largest_sums(largest.into_iter(), self.most)
    }
}

/// What is not a number may be anything.
fn known(x: f64) -> f64 {
    if x.is_nan() { f64::INFINITY } else { x }
}

/// For each number up to `most`, which is no more than there are, at most the sum of so many of these numbers.
fn largest_sums(numbers: impl Iterator<Item = f64>, most: usize) -> Vec<f64> {
    let mut numbers: Vec<f64> = numbers.map(known).collect();
    numbers.sort_by(|a, b| b.total_cmp(a));
    let mut sums = vec![0.0];
    for next in numbers.into_iter().take(most) {
        sums.push(up(sums[sums.len() - 1] + next));
    }
    sums
}

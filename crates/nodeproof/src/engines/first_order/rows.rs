//! Rows whose ones are divided by their number (Lemmas 45 to 48 of `docs/maths.md`).
//!
//! A set of flips at node n that leaves m' ≥ 1 ones changes `X_n W` by `1/m' Σ σ (W_d − μ_n)`, and one that leaves none by −μ_n. So with m'
//! given a flip is a move like any other, `σ (W_d − μ_n) / m'`, and what it gains is convex in 1/m': if it gains g where m' is as
//! small as it can be, m°, it gains at most `g m° / m'`. That is what is kept of a flip, g; `g m°` is its *score*. A row that loses
//! all of its ones is moved once, by −μ_n.

use std::collections::{BTreeMap, HashMap};

use super::base::Base;
use super::bounded::Bounded;
use super::target::Target;
use crate::dense::add_scaled;
use crate::ids::AttributeId;
use crate::selection::{OverRows, RowGains, RowScores};
use crate::slice::SlicedFlip;

/// In place of an attribute: all that the row has are removed.
pub(super) const ALL: u32 = u32::MAX;

/// The rows of level 0 at a base point.
#[derive(Debug, Clone)]
pub(super) struct Rows {
    /// Ones of each.
    ones: Vec<u32>,
    /// μ of the rows that have flips.
    means: HashMap<u32, Vec<f64>>,
    /// Those that flips have added to, which they keep.
    grown: Vec<u32>,
    deletions: bool,
}

impl Rows {
    /// The rows under flips; `None` where nothing is divided.
    pub(super) fn new(target: &Target, flips: &[SlicedFlip]) -> Option<Self> {
        let network = target.shared.network;
        target.shared.bounds.clean.means.as_ref()?;
        let attributes = network.graph().attributes();
        let ones = target.slice.level(0).iter().map(|&n| attributes.row(n as usize).len() as u32).collect();
        let deletions = target.shared.limits.deletions();
        let mut rows = Self { ones, means: HashMap::new(), grown: Vec::new(), deletions };
        for &(position, _) in flips {
            if rows.means.contains_key(&position) {
                continue;
            }
            let added =
                flips.iter().filter(|flip| flip.0 == position && target.shared.change(target.slice, **flip) > 0.0);
            let added: Vec<u32> = added.map(|flip| flip.1).collect();
            let own = left_of_row(target, flips, position);
            let (mut mean, mut ones) = (vec![0.0; network.attribute_weight().columns()], 0);
            for d in own.chain(added.iter().copied()) {
                add_scaled(&mut mean, 1.0, network.attribute_weight().row(d as usize));
                ones += 1;
            }
            mean.iter_mut().for_each(|mean| *mean /= f64::from(ones.max(1)));
            rows.means.insert(position, mean);
            rows.ones[position as usize] = ones;
            if !added.is_empty() {
                rows.grown.push(position);
            }
        }
        Some(rows)
    }

    /// μ of a row.
    pub(super) fn mean<'r>(&'r self, target: &'r Target, position: u32) -> &'r [f64] {
        let clean = |means: &'r crate::dense::Matrix| {
            means.row(target.shared.region.level(0).place(target.slice.level(0)[position as usize]))
        };
        match self.means.get(&position) {
            Some(mean) => mean,
            None => target.shared.bounds.clean.means.as_ref().map_or(&[], clean),
        }
    }

    /// Ones of a row.
    pub(super) fn ones(&self, position: u32) -> usize {
        self.ones[position as usize] as usize
    }

    /// The fewest ones, but at least 1, that a row can have in sets with a given addition, or removal, or with any flip.
    pub(super) fn fewest(&self, base: &Base, position: u32, adds: bool) -> f64 {
        let (ones, flips) = (self.ones(position), most_flips(base, position));
        let removed = if self.deletions { flips } else { 0 };
        let fewest =
            if adds { ones + 1 - removed.saturating_sub(1).min(ones + 1) } else { ones.saturating_sub(removed) };
        fewest.max(1) as f64
    }

    /// Whether all ones of a row may be removed, as far as the budget goes.
    pub(super) fn can_be_emptied(&self, target: &Target, base: &Base, position: u32) -> bool {
        let (ones, limits) = (self.ones(position), target.shared.limits);
        ones > 0
            && self.deletions
            && ones <= most_flips(base, position)
            && !self.grown.contains(&position)
            && self.own(target, base, position).all(|d| limits.flippable(AttributeId(d)))
    }

    /// The ones of a row that are left of those that it had.
    pub(super) fn own<'r>(
        &self,
        target: &'r Target,
        base: &'r Base,
        position: u32,
    ) -> impl Iterator<Item = u32> + Clone + use<'r> {
        left_of_row(target, &base.flips, position)
    }

    /// The rows that can lose all of their ones by listed flips.
    pub(super) fn emptied_by(&self, target: &Target, base: &Base, listed: &[SlicedFlip]) -> Vec<u32> {
        let mut positions: Vec<u32> = listed.iter().map(|flip| flip.0).collect();
        positions.sort_unstable();
        positions.dedup();
        let mut sorted = listed.to_vec();
        sorted.sort_unstable();
        let is_listed = |position: u32, d: u32| sorted.binary_search(&(position, d)).is_ok();
        positions.retain(|&position| {
            self.can_be_emptied(target, base, position)
                && self.own(target, base, position).all(|d| is_listed(position, d))
        });
        positions
    }
}

/// The ones that flips leave of those that a row has.
fn left_of_row<'r>(
    target: &'r Target,
    flips: &'r [SlicedFlip],
    position: u32,
) -> impl Iterator<Item = u32> + Clone + use<'r> {
    let attributes = target.shared.network.graph().attributes();
    let row = attributes.row(target.slice.level(0)[position as usize] as usize).iter().copied();
    row.filter(move |&d| !flips.contains(&(position, d)))
}

/// Most flips of a row that are left.
pub(super) fn most_flips(base: &Base, position: u32) -> usize {
    (base.capacities[position as usize] as usize).min(base.left)
}

/// What is known of flips whose gains were not computed.
#[derive(Debug, Clone, Default)]
pub(super) struct Rest {
    /// Listed flips, with bounds of their scores.
    pub(super) additions: Vec<(f64, SlicedFlip)>,
    pub(super) removals: Vec<(f64, SlicedFlip)>,
    /// Rows that were looked at: their removals are listed, and additions that are not score at most this.
    pub(super) floors: BTreeMap<u32, f64>,
    /// Flips of other rows gain at most so much each.
    pub(super) others: f64,
}

impl Rest {
    /// Bytes that it takes, about.
    pub(super) fn bytes(&self) -> usize {
        2 * (size_of_val(&self.additions[..]) + size_of_val(&self.removals[..]))
    }
}

/// The flips of one row, as far as any set can have them.
#[derive(Debug, Default)]
struct Listed {
    position: u32,
    ones: usize,
    capacity: usize,
    /// Bounds of scores, or scores: as many as a set can have, the largest first. Additions that are not listed stand at their floor.
    additions: Vec<(f64, Option<SlicedFlip>)>,
    removals: Vec<(f64, SlicedFlip)>,
    /// What it gains to lose all ones.
    emptied: Option<f64>,
    gains: RowGains,
}

impl Listed {
    /// Finds the best for each number of flips, given all flips of the row.
    fn settle(&mut self) {
        keep_largest(&mut self.additions, self.capacity);
        keep_largest(&mut self.removals, self.capacity);
        self.gains = RowGains::best(RowScores {
            ones: self.ones,
            capacity: self.capacity,
            additions: &self.additions.iter().map(|flip| flip.0).collect::<Vec<f64>>(),
            removals: &self.removals.iter().map(|flip| flip.0).collect::<Vec<f64>>(),
            emptied: self.emptied,
        });
    }
}

/// The listed flips by rows, with scores in place of gains, and the best of each row for each number of flips.
fn by_rows(target: &Target, base: &Base, rows: &Rows, bounded: &Bounded) -> Vec<Listed> {
    let Rest { additions, removals, floors, .. } = &bounded.rest;
    let mut places: HashMap<u32, usize> = HashMap::new();
    let mut all: Vec<Listed> = Vec::new();
    let mut of = |all: &mut Vec<Listed>, position: u32| {
        *places.entry(position).or_insert_with(|| {
            let (ones, capacity) = (rows.ones(position), most_flips(base, position));
            all.push(Listed { position, ones, capacity, ..Listed::default() });
            all.len() - 1
        })
    };
    for &(gain, flip) in &bounded.gains {
        let (place, adds) = (of(&mut all, flip.0), target.shared.change(target.slice, flip) > 0.0);
        let score = gain * rows.fewest(base, flip.0, adds);
        if adds { all[place].additions.push((score, Some(flip))) } else { all[place].removals.push((score, flip)) }
    }
    for &(score, flip) in additions {
        let place = of(&mut all, flip.0);
        all[place].additions.push((score, Some(flip)));
    }
    for &(score, flip) in removals {
        let place = of(&mut all, flip.0);
        all[place].removals.push((score, flip));
    }
    for (&position, &floor) in floors.iter().filter(|(_, floor)| **floor > 0.0) {
        let place = of(&mut all, position);
        let unlisted = std::iter::repeat_n((floor, None), all[place].capacity);
        all[place].additions.extend(unlisted);
    }
    for &(position, gain) in &bounded.emptied {
        let place = of(&mut all, position);
        all[place].emptied = Some(gain);
    }
    all.retain(|listed| listed.capacity > 0);
    all.sort_unstable_by_key(|listed| listed.position);
    all.iter_mut().for_each(Listed::settle);
    all
}

/// Keeps so many, the largest first.
fn keep_largest<T: Ord>(flips: &mut Vec<(f64, T)>, count: usize) {
    let falling = |a: &(f64, T), b: &(f64, T)| b.0.total_cmp(&a.0).then_with(|| b.1.cmp(&a.1));
    if flips.len() > count && count > 0 {
        flips.select_nth_unstable_by(count - 1, falling);
        flips.truncate(count);
    }
    flips.sort_unstable_by(falling);
}

/// The most that 0, 1, … flips of all rows gain, those that are not listed at most `others` each.
fn filled(totals: &[f64], others: f64) -> Vec<f64> {
    let mut filled = totals.to_vec();
    for flips in 1..filled.len() {
        filled[flips] = filled[flips].max(filled[flips - 1] + others);
    }
    filled
}

/// Selects the admissible flips that gain most (Lemma 46), as far as is known.
pub(super) fn select(target: &Target, base: &Base, rows: &Rows, bounded: &mut Bounded) {
    let all = by_rows(target, base, rows, bounded);
    let mut over = OverRows::new(base.left);
    all.iter().for_each(|listed| over.add(&listed.gains, 1.0));
    let others = bounded.rest.others;
    let totals = filled(over.totals(), others);
    bounded.value = bounded.constant - totals[base.left];
    bounded.last = totals[base.left] - totals[base.left.saturating_sub(1)];
    let worth = |&flips: &usize| over.totals()[flips] + (base.left - flips) as f64 * others;
    let best = (0..=base.left).rev().max_by(|a, b| worth(a).total_cmp(&worth(b))).unwrap_or(0);
    bounded.selected.clear();
    bounded.filled = if others > 0.0 { base.left - best } else { 0 };
    for (listed, flips) in all.iter().rev().zip(over.taken(best)) {
        let (added, removed) = listed.gains.way(flips);
        let additions = listed.additions[..added].iter().filter_map(|flip| flip.1);
        bounded.filled += added - additions.clone().count();
        bounded.selected.extend(additions);
        if removed > listed.removals.len() {
            bounded.selected.extend(rows.own(target, base, listed.position).map(|d| (listed.position, d)));
        } else {
            bounded.selected.extend(listed.removals[..removed].iter().map(|&(_, flip)| flip));
        }
    }
}

/// What flips of a row must score in order to be in a set that gains enough.
#[derive(Debug, Clone, Copy)]
pub(super) struct Needs {
    pub(super) addition: f64,
    pub(super) removal: f64,
    /// Whether it may lose all of its ones.
    pub(super) emptied: bool,
}

/// What a counterexample needs of each row that is listed (Lemma 48): an addition of score A in a set with a additions and r removals of its
/// row, so that `(A + the best others) / m' + what other rows gain with the flips that are left` comes up to what is needed.
pub(super) fn needs(target: &Target, base: &Base, rows: &Rows, bounded: &Bounded) -> BTreeMap<u32, Needs> {
    let all = by_rows(target, base, rows, bounded);
    let mut before = vec![OverRows::new(base.left)];
    for listed in &all {
        let mut over = before[before.len() - 1].clone();
        over.add(&listed.gains, 1.0);
        before.push(over);
    }
    let mut after = OverRows::new(base.left);
    let size = bounded.constant.abs() + before[all.len()].totals()[base.left].abs() + bounded.rest.others;
    let enough = bounded.constant - bounded.error - SLACK * size;
    let mut needs = BTreeMap::new();
    for (place, listed) in all.iter().enumerate().rev() {
        let without: Vec<f64> = together(before[place].totals(), after.totals());
        let without = filled(&without, bounded.rest.others);
        needs.insert(listed.position, listed.needs(base, &without, enough));
        after.add(&listed.gains, 1.0);
    }
    needs
}

/// Far above what rounding can do to a few sums.
const SLACK: f64 = 1e-12;

/// The most that 0, 1, … flips gain that two groups of rows share.
fn together(a: &[f64], b: &[f64]) -> Vec<f64> {
    (0..a.len()).map(|flips| (0..=flips).map(|k| a[k] + b[flips - k]).fold(0.0, f64::max)).collect()
}

impl Listed {
    /// What flips of the row must score, given what other rows gain for each number of flips.
    fn needs(&self, base: &Base, others: &[f64], enough: f64) -> Needs {
        let sums = |scores: &mut dyn Iterator<Item = f64>| {
            let mut sums = vec![0.0];
            scores.for_each(|score| sums.push(sums[sums.len() - 1] + score));
            sums
        };
        let added = sums(&mut self.additions.iter().map(|flip| flip.0));
        let removed = sums(&mut self.removals.iter().map(|flip| flip.0));
        let mut needs = Needs { addition: f64::INFINITY, removal: f64::INFINITY, emptied: false };
        // With a further flip of the row, which is not among these.
        for (r, removed) in removed.iter().enumerate() {
            for (a, added) in added.iter().enumerate().take_while(|(a, _)| a + r < self.capacity) {
                let rest = enough - others[base.left - a - r - 1];
                let score = |ones: usize| {
                    let score = rest * ones as f64 - added - removed;
                    if score.is_nan() { f64::NEG_INFINITY } else { score }
                };
                if self.ones + a + 1 > r {
                    needs.addition = needs.addition.min(score(self.ones + a + 1 - r));
                }
                if self.ones + a > r + 1 {
                    needs.removal = needs.removal.min(score(self.ones + a - r - 1));
                }
            }
        }
        if let Some(gain) = self.emptied {
            let too_little = gain + others[base.left - self.ones.min(base.left)] < enough;
            needs.emptied = !too_little;
        }
        needs
    }
}

/// Drops flips that no counterexample has, if all are listed, and tells which flips all of them have (Lemma 48).
pub(super) fn reduce(
    target: &Target,
    base: &Base,
    rows: &Rows,
    bounded: &mut Bounded,
    lists_all: bool,
) -> Vec<SlicedFlip> {
    if lists_all {
        let needs = needs(target, base, rows, bounded);
        bounded.gains.retain(|&(gain, flip)| {
            let adds = target.shared.change(target.slice, flip) > 0.0;
            let score = gain * rows.fewest(base, flip.0, adds);
            needs.get(&flip.0).is_none_or(|needs| needs.is_met(score, adds))
        });
        let flips: Vec<SlicedFlip> = bounded.gains.iter().map(|&(_, flip)| flip).collect();
        let still = rows.emptied_by(target, base, &flips);
        bounded.emptied.retain(|row| still.contains(&row.0) && needs.get(&row.0).is_none_or(|needs| needs.emptied));
    }
    let all_have = |&flip: &SlicedFlip| {
        let mut without = bounded.clone();
        without.drop_flip(target, flip);
        select(target, base, rows, &mut without);
        without.value > without.error
    };
    let known = |flip: &SlicedFlip| bounded.gains.iter().any(|(_, listed)| listed == flip);
    bounded.selected.iter().copied().filter(known).filter(all_have).collect()
}

impl Needs {
    /// Whether a flip of this score may be in a set that gains enough.
    pub(super) fn is_met(self, score: f64, adds: bool) -> bool {
        let too_little = if adds { score < self.addition } else { score < self.removal && !self.emptied };
        !too_little
    }
}

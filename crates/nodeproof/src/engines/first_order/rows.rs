//! Rows whose ones are divided by their number (Lemmas 45 to 48 of `docs/maths.md`).
//!
//! A set of flips at node n that leaves m' ≥ 1 ones changes `X_n W` by `1/m' Σ σ (W_d − μ_n)`, and one that leaves none by −μ_n. So with m'
//! given a flip is a move like any other, `σ (W_d − μ_n) / m'`, and what it gains is convex in 1/m'. m' times that is its *score*, which falls as
//! m' grows. A row that loses all of its ones is moved once, by −μ_n.

use std::collections::HashMap;
use std::ops::RangeInclusive;

use super::base::Base;
use super::target::Target;
use crate::dense::add_scaled;
use crate::ids::AttributeId;
use crate::slice::{DOWN, SlicedFlip};

/// In place of an attribute: all that the row has are removed.
pub(super) const ALL: u32 = u32::MAX;

/// Added to an attribute that the row has: it is one of those that are left. As `Σ (W_d − μ_n) = 0` over the ones of a row, those that are removed
/// and those that are left move it alike, but for the sign.
pub(super) const KEPT: u32 = DOWN;

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
        match self.means.get(&position) {
            Some(mean) => mean,
            None => target.shared.mean(target.slice, position).unwrap_or_default(),
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

    /// The fewest ones, but at least 1, that a row can have in sets with a move.
    pub(super) fn fewest_with(&self, target: &Target, base: &Base, flip: SlicedFlip) -> f64 {
        if flip.1 >= KEPT {
            return *self.possible(base, flip.0).start() as f64;
        }
        self.fewest(base, flip.0, target.shared.change(target.slice, flip) > 0.0)
    }

    /// Whether so many of its ones may be removed that fewer are left.
    pub(super) fn can_be_halved(&self, base: &Base, position: u32) -> bool {
        self.deletions && 2 * most_flips(base, position) >= self.ones(position) && self.ones(position) > 0
    }

    /// The ones of a row, as moves of those that are left.
    pub(super) fn kept<'r>(
        &self,
        target: &'r Target,
        base: &'r Base,
        position: u32,
    ) -> impl Iterator<Item = SlicedFlip> + use<'r> {
        let added = base
            .flips
            .iter()
            .filter(move |&&flip| flip.0 == position && target.shared.change(target.slice, flip) > 0.0);
        let ones = left_of_row(target, &base.flips, position).chain(added.map(|flip| flip.1));
        ones.map(move |d| (position, d | KEPT))
    }

    /// How many ones a row can be left with, but for none.
    pub(super) fn possible(&self, base: &Base, position: u32) -> RangeInclusive<usize> {
        let (ones, flips) = (self.ones(position), most_flips(base, position));
        let removed = if self.deletions { flips } else { 0 };
        ones.saturating_sub(removed).max(1)..=ones + flips.max(1)
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

    /// The rows of which listed flips can remove as many ones as they leave.
    pub(super) fn halved_by(&self, target: &Target, base: &Base, listed: &[SlicedFlip]) -> Vec<u32> {
        let mut removals = vec![0; base.capacities.len()];
        for flip in listed.iter().filter(|&&flip| target.shared.change(target.slice, flip) < 0.0) {
            removals[flip.0 as usize] += 1;
        }
        let can_be = |&position: &u32| {
            2 * removals[position as usize] >= self.ones(position) && self.can_be_halved(base, position)
        };
        (0..removals.len() as u32).filter(can_be).collect()
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

//! Branch and bound over the admissible sets of flips.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::rc::Rc;

use super::Attacks;
use super::part::{Aim, Bounding, Evaluation, Part};
use super::potential::Listing;
use super::problem::{Flips, Surroundings};
use super::root::{self, Root};
use super::tail::rounding_error;
use crate::graph::ClassId;

/// Concave units and flips of which the consequences of branching are tried.
const TRIED: usize = 3;

/// A search for a set of flips with which class k overtakes y, or the proof that there is none.
pub(super) struct Search<'a> {
    around: &'a Surroundings<'a>,
    bounding: Bounding<'a>,
    pair: (ClassId, ClassId),
    open: BinaryHeap<Open>,
    /// The smallest bound over parts that were dropped.
    least: f64,
    error: f64,
    /// Whether a witness was found, so that parts were left as they were.
    abandoned: bool,
}

/// A part that is to be looked at: the one with the lowest bound first.
struct Open(Part);

impl PartialEq for Open {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Open {}

impl PartialOrd for Open {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Open {
    fn cmp(&self, other: &Self) -> Ordering {
        other.0.bound.total_cmp(&self.0.bound)
    }
}

impl<'a> Search<'a> {
    /// The bound over all sets, as good as it gets without branching; `None` where the problem is too large.
    pub(super) fn begin(
        around: &'a Surroundings<'a>,
        listing: &mut Listing,
        pair: (ClassId, ClassId),
        attacks: &mut Attacks,
    ) -> Option<Self> {
        let error = rounding_error(around, pair);
        let one_hidden = around.has_relu() && around.is_shallow();
        let Root { bounding, part, least } = if one_hidden {
            root::listed(around, listing, pair, error, |evaluation, flips| {
                !attempt(attacks, flips, &[], evaluation, error)
            })
        } else {
            root::everything(around, pair)?
        };
        let mut search = Self { around, bounding, pair, open: BinaryHeap::new(), least, error, abandoned: false };
        if !one_hidden {
            let part = search.tightened(part, listing.tuning.steps.0, listing, attacks);
            search.push(part);
        } else if part.bound <= error {
            search.push(Some(part));
        }
        search.abandoned = attacks.best.succeeds();
        Some(search)
    }

    pub(super) fn pair(&self) -> (ClassId, ClassId) {
        self.pair
    }

    /// Whether it is proven that k does not overtake.
    pub(super) fn is_closed(&self) -> bool {
        self.open.is_empty()
    }

    /// A lower bound on the margin over all sets.
    pub(super) fn lower(&self) -> f64 {
        let open = self.open.peek().map_or(f64::INFINITY, |open| open.0.bound);
        let lower = self.least.min(open) - self.error;
        // What was dropped was proven to be positive.
        if self.is_closed() && !self.abandoned { lower.max(f64::from_bits(1)) } else { lower }
    }

    fn push(&mut self, part: Option<Part>) {
        self.open.extend(part.map(Open));
    }

    /// Takes up the part with the lowest bound and splits it.
    pub(super) fn branch(&mut self, listing: &mut Listing, attacks: &mut Attacks) {
        let Some(Open(part)) = self.open.pop() else { return };
        let bound = part.bound;
        if let Some(part) = self.tightened(part, listing.tuning.steps.1, listing, attacks)
            && !attacks.best.succeeds()
        {
            self.split(part);
        }
        if attacks.best.succeeds() {
            self.abandoned = true;
            self.least = self.least.min(bound);
        }
    }

    /// The part with a better bound and fewer flips; `None` if nothing is left of it.
    fn tightened(
        &mut self,
        mut part: Part,
        steps: usize,
        listing: &mut Listing,
        attacks: &mut Attacks,
    ) -> Option<Part> {
        loop {
            self.bounding.take(&part);
            let flips = Rc::clone(&part.flips);
            let mut parameters = (*part.parameters).clone();
            let (mut found, error) = (false, self.error);
            let best = self.bounding.climb(&mut parameters, &part.free, steps, Aim::Above(error), |evaluation| {
                found = attempt(attacks, &flips, &part.fixed, evaluation, error);
                !found
            });
            part.bound = part.bound.max(best.bound);
            part.parameters = Rc::new(parameters);
            if found {
                return Some(part);
            }
            if part.bound > error {
                self.least = self.least.min(part.bound);
                return None;
            }
            if self.bounding.left() == 0 || (part.free.is_empty() && part.unlisted.is_none()) {
                return self.leaf(part, attacks);
            }
            if part.unlisted.is_some() && (best.incomplete || part.free.is_empty()) {
                part = root::with_all_flips(self.around, listing, self.pair, part);
                continue;
            }
            if !self.fix(&mut part, &best) {
                return Some(part);
            }
        }
    }

    /// A part of a single set whose margin is too close to 0 for doubles.
    fn leaf(&mut self, part: Part, attacks: &mut Attacks) -> Option<Part> {
        let all = part.fixed.iter().map(|&flip| part.flips.flips[flip as usize]);
        if !attacks.attempt(all.clone()) && attacks.holds(self.pair.1, all) {
            self.least = self.least.min(self.error);
            return None;
        }
        Some(part)
    }

    /// Excludes flips that no counterexample has, and fixes those that all have; whether much changed.
    fn fix(&mut self, part: &mut Part, best: &Evaluation) -> bool {
        let (before, error) = (part.free.len(), self.error);
        let mut least = self.least;
        let selected: Vec<u32> = best.selected.iter().map(|&(_, flip)| flip).collect();
        let bounding = &self.bounding;
        part.free.retain(|flip| {
            let bound = best.bound + bounding.threshold_for(*flip) - bounding.gain_of(*flip);
            let keep = selected.contains(flip) || bound <= error;
            if !keep {
                least = least.min(bound);
            }
            keep
        });
        let next = part.free.iter().filter(|flip| !selected.contains(flip)).map(|&flip| bounding.gain_of(flip));
        let next = next.chain(part.unlisted.iter().flat_map(|gains| gains.iter().copied())).fold(0.0, f64::max);
        let mut fixed = 0;
        for &(gain, flip) in &best.selected {
            let bound = best.bound + gain - next;
            if bound > error {
                least = least.min(bound);
                fixed += 1;
                self.include(part, flip);
            }
        }
        self.least = least;
        if part.unlisted.is_none() && 3 * (part.free.len() + part.fixed.len()) < part.flips.len() {
            part.compact(self.around.most);
        }
        fixed > 0 || 5 * part.free.len() < 4 * before
    }

    /// Makes `flip` one that every set has.
    fn include(&self, part: &mut Part, flip: u32) {
        let flips = Rc::clone(&part.flips);
        let flips = &flips.flips;
        part.free.retain(|&other| other != flip);
        part.fixed.push(flip);
        let row = flips[flip as usize].0;
        let used = part.fixed.iter().filter(|&&other| flips[other as usize].0 == row).count();
        if used >= self.around.capacities[row as usize] as usize {
            part.free.retain(|&other| flips[other as usize].0 != row);
        }
        if part.fixed.len() >= self.around.most {
            part.free.clear();
            part.unlisted = None;
        }
    }

    /// Splits a part in two where that helps most.
    fn split(&mut self, part: Part) {
        self.bounding.take(&part);
        let evaluation = self.bounding.evaluate(&part.parameters, &part.free);
        let mut pairs: Vec<[Part; 2]> = Vec::new();
        for unit in self.bounding.widest_gaps(TRIED) {
            pairs.push([false, true].map(|linear| {
                let mut part = part.clone();
                part.phases.push((unit, linear));
                part
            }));
        }
        let selected = evaluation.selected.iter().map(|&(_, flip)| flip).take(TRIED);
        let mut flips: Vec<u32> = selected.collect();
        if flips.is_empty() {
            let best =
                |&a: &u32, &b: &u32| self.bounding.gain_of(a).total_cmp(&self.bounding.gain_of(b)).then(b.cmp(&a));
            flips.extend(part.free.iter().copied().max_by(best));
        }
        for flip in flips {
            let (mut with, mut without) = (part.clone(), part.clone());
            self.include(&mut with, flip);
            without.free.retain(|&other| other != flip);
            pairs.push([with, without]);
        }
        let mut best: Option<([f64; 2], [Part; 2])> = None;
        for mut pair in pairs {
            for part in &mut pair {
                self.bounding.take(part);
                let evaluation = self.bounding.evaluate(&part.parameters, &part.free);
                part.bound = part.bound.max(evaluation.bound);
            }
            let [a, b] = [pair[0].bound.min(self.error), pair[1].bound.min(self.error)];
            let score = [a.min(b), a.max(b)];
            if best.as_ref().is_none_or(|(known, _)| score > *known) {
                best = Some((score, pair));
            }
        }
        for part in best.into_iter().flat_map(|(_, pair)| pair) {
            if part.bound > self.error {
                self.least = self.least.min(part.bound);
            } else {
                self.push(Some(part));
            }
        }
    }
}

/// Tries the flips of an evaluation on the network if they promise something; true if they are a witness.
pub(super) fn attempt(
    attacks: &mut Attacks,
    flips: &Flips,
    fixed: &[u32],
    evaluation: &Evaluation,
    error: f64,
) -> bool {
    let deep = attacks.shared.network.layers().len() > 2;
    if !deep && evaluation.margin > error && evaluation.margin > attacks.best.margin() {
        return false;
    }
    let chosen = evaluation.selected.iter().map(|(_, flip)| flip);
    attacks.attempt(fixed.iter().chain(chosen).map(|&flip| flips.flips[flip as usize]))
}

//! Branch and bound over the admissible sets of flips (Lemmas 22 to 26 of `docs/maths.md`).

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::rc::Rc;

use super::Attacks;
use crate::certificate::{Bound, Obstacle};
use crate::engines::patience::Patience;
use crate::engines::tight::{self, Aim, Bounding, Evaluation, Flips, Listing, Root, Subproblem, Surroundings};
use crate::ids::ClassId;

/// Concave units and flips of which the consequences of branching are tried.
const TRIED: usize = 3;

/// A search for a set of flips with which class k overtakes y, or the proof that there is none.
pub(super) struct Search<'a> {
    around: &'a Surroundings<'a>,
    bounding: Bounding<'a>,
    pair: (ClassId, ClassId),
    open: BinaryHeap<Open>,
    /// Bytes of the subproblems that are open.
    bytes: usize,
    /// The smallest bound over subproblems that were dropped.
    least: f64,
    error: f64,
    /// Whether a witness was found, so that subproblems were left as they were.
    abandoned: bool,
}

/// A subproblem that is to be looked at, and its bytes: the one with the lowest bound first.
struct Open(Subproblem, usize);

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
    /// The bound over all sets, as good as it gets without branching.
    ///
    /// # Errors
    /// If a limit is reached before.
    pub(super) fn begin(
        around: &'a Surroundings<'a>,
        listing: &mut Listing,
        pair: (ClassId, ClassId),
        attacks: &mut Attacks,
        patience: Patience,
    ) -> Result<Self, Obstacle> {
        let error = tight::rounding_error(around, pair);
        let visit = |evaluation: &Evaluation, flips: &Flips| !attempt(attacks, flips, &[], evaluation, error);
        let Root { bounding, subproblem, least } = tight::listed(around, listing, pair, error, patience, visit)?;
        let abandoned = attacks.best.succeeds();
        let mut search = Self { around, bounding, pair, open: BinaryHeap::new(), bytes: 0, least, error, abandoned };
        if !is_above(subproblem.bound, error) {
            search.push(subproblem);
        }
        Ok(search)
    }

    /// Bytes of the subproblems that are open.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn pair(&self) -> (ClassId, ClassId) {
        self.pair
    }

    /// Whether it is proven that k does not overtake.
    pub(super) fn is_closed(&self) -> bool {
        self.open.is_empty()
    }

    /// A lower bound on the margin over all sets.
    pub(super) fn lower(&self) -> Bound {
        let open = self.open.peek().map_or(f64::INFINITY, |open| open.0.bound);
        let lower = Bound::AtLeast(self.least.min(open) - self.error);
        // What was dropped was proven to be positive.
        if self.is_closed() && !self.abandoned { lower.max(Bound::Positive) } else { lower }
    }

    fn push(&mut self, subproblem: Subproblem) {
        let bytes = subproblem.bytes();
        self.bytes += bytes;
        self.open.push(Open(subproblem, bytes));
    }

    /// Takes up the subproblem with the lowest bound and splits it.
    ///
    /// # Errors
    /// If a limit is reached before; it stays open.
    pub(super) fn branch(
        &mut self,
        listing: &mut Listing,
        attacks: &mut Attacks,
        patience: Patience,
    ) -> Result<(), Obstacle> {
        let Some(Open(subproblem, bytes)) = self.open.pop() else { return Ok(()) };
        self.bytes -= bytes;
        let bound = subproblem.bound;
        if let Some(subproblem) = self.tightened(subproblem, listing.tuning.steps.1, listing, attacks, patience)?
            && !attacks.best.succeeds()
        {
            self.split(subproblem);
        }
        if attacks.best.succeeds() {
            self.abandoned = true;
            self.least = self.least.min(bound);
        }
        Ok(())
    }

    /// The subproblem with a better bound and fewer flips; `None` if nothing is left of it.
    ///
    /// # Errors
    /// If a limit is reached before; it stays open.
    fn tightened(
        &mut self,
        mut subproblem: Subproblem,
        steps: usize,
        listing: &mut Listing,
        attacks: &mut Attacks,
        patience: Patience,
    ) -> Result<Option<Subproblem>, Obstacle> {
        loop {
            self.bounding.take(&subproblem);
            let flips = Rc::clone(&subproblem.flips);
            let mut parameters = (*subproblem.parameters).clone();
            let (mut found, error) = (false, self.error);
            let best = self.bounding.climb(&mut parameters, &subproblem.free, steps, Aim::Above(error), |evaluation| {
                found = attempt(attacks, &flips, &subproblem.fixed, evaluation, error);
                !found
            });
            subproblem.bound = subproblem.bound.max(best.bound);
            subproblem.parameters = Rc::new(parameters);
            if found {
                return Ok(Some(subproblem));
            }
            if subproblem.bound > error {
                self.least = self.least.min(subproblem.bound);
                return Ok(None);
            }
            if self.bounding.left() == 0 || (subproblem.free.is_empty() && subproblem.unlisted.is_none()) {
                return Ok(self.leaf(subproblem, attacks));
            }
            if subproblem.unlisted.is_some() && (best.incomplete || subproblem.free.is_empty()) {
                match tight::with_all_flips(self.around, listing, self.pair, &subproblem, patience) {
                    Ok(listed) => subproblem = listed,
                    Err(obstacle) => {
                        self.push(subproblem);
                        return Err(obstacle);
                    }
                }
                continue;
            }
            if !self.fix(&mut subproblem, &best) {
                return Ok(Some(subproblem));
            }
        }
    }

    /// A subproblem of a single set whose margin is too close to 0 for doubles (Lemma 24).
    fn leaf(&mut self, subproblem: Subproblem, attacks: &mut Attacks) -> Option<Subproblem> {
        let all = subproblem.fixed.iter().map(|&flip| subproblem.flips.flips[flip as usize]);
        if !attacks.attempt(all.clone()) && attacks.holds(self.pair.1, all) {
            self.least = self.least.min(self.error);
            return None;
        }
        Some(subproblem)
    }

    /// Excludes flips that no counterexample has, and fixes those that all have (Lemma 22); whether much changed.
    fn fix(&mut self, subproblem: &mut Subproblem, best: &Evaluation) -> bool {
        let (before, error) = (subproblem.free.len(), self.error);
        let mut least = self.least;
        let selected: Vec<u32> = best.selected.iter().map(|&(_, flip)| flip).collect();
        let bounding = &self.bounding;
        subproblem.free.retain(|flip| {
            let bound = best.bound + bounding.threshold_for(*flip) - bounding.gain_of(*flip);
            let keep = selected.contains(flip) || !is_above(bound, error);
            if !keep {
                least = least.min(bound);
            }
            keep
        });
        let next = subproblem.free.iter().filter(|flip| !selected.contains(flip)).map(|&flip| bounding.gain_of(flip));
        let next = next.chain(subproblem.unlisted.iter().flat_map(|gains| gains.iter().copied())).fold(0.0, f64::max);
        let mut fixed = 0;
        for &(gain, flip) in &best.selected {
            let bound = best.bound + gain - next;
            if bound > error {
                least = least.min(bound);
                fixed += 1;
                self.include(subproblem, flip);
            }
        }
        self.least = least;
        if subproblem.unlisted.is_none()
            && 3 * (subproblem.free.len() + subproblem.fixed.len()) < subproblem.flips.len()
        {
            subproblem.compact(self.around.most);
        }
        fixed > 0 || 5 * subproblem.free.len() < 4 * before
    }

    /// Makes `flip` one that every set has.
    fn include(&self, subproblem: &mut Subproblem, flip: u32) {
        let flips = Rc::clone(&subproblem.flips);
        let flips = &flips.flips;
        subproblem.free.retain(|&other| other != flip);
        subproblem.fixed.push(flip);
        let row = flips[flip as usize].0;
        let used = subproblem.fixed.iter().filter(|&&other| flips[other as usize].0 == row).count();
        if used >= self.around.capacities[row as usize] as usize {
            subproblem.free.retain(|&other| flips[other as usize].0 != row);
        }
        if subproblem.fixed.len() >= self.around.most {
            subproblem.free.clear();
            subproblem.unlisted = None;
        }
    }

    /// Splits a subproblem in two where that helps most.
    fn split(&mut self, subproblem: Subproblem) {
        self.bounding.take(&subproblem);
        let evaluation = self.bounding.evaluate(&subproblem.parameters, &subproblem.free);
        let mut pairs: Vec<[Subproblem; 2]> = Vec::new();
        for unit in self.bounding.widest_gaps(TRIED) {
            pairs.push([false, true].map(|linear| {
                let mut subproblem = subproblem.clone();
                subproblem.phases.push((unit, linear));
                subproblem
            }));
        }
        let selected = evaluation.selected.iter().map(|&(_, flip)| flip).take(TRIED);
        let mut flips: Vec<u32> = selected.collect();
        if flips.is_empty() {
            let best =
                |&a: &u32, &b: &u32| self.bounding.gain_of(a).total_cmp(&self.bounding.gain_of(b)).then(b.cmp(&a));
            flips.extend(subproblem.free.iter().copied().max_by(best));
        }
        for flip in flips {
            let (mut with, mut without) = (subproblem.clone(), subproblem.clone());
            self.include(&mut with, flip);
            without.free.retain(|&other| other != flip);
            pairs.push([with, without]);
        }
        let mut best: Option<([f64; 2], [Subproblem; 2])> = None;
        for mut pair in pairs {
            for subproblem in &mut pair {
                self.bounding.take(subproblem);
                let evaluation = self.bounding.evaluate(&subproblem.parameters, &subproblem.free);
                subproblem.bound = subproblem.bound.max(evaluation.bound);
            }
            let [a, b] = [pair[0].bound.min(self.error), pair[1].bound.min(self.error)];
            let score = [a.min(b), a.max(b)];
            if best.as_ref().is_none_or(|(known, _)| score > *known) {
                best = Some((score, pair));
            }
        }
        for subproblem in best.into_iter().flat_map(|(_, pair)| pair) {
            if subproblem.bound > self.error {
                self.least = self.least.min(subproblem.bound);
            } else {
                self.push(subproblem);
            }
        }
    }
}

/// Whether a bound proves that it is above `error`; NaN proves nothing (Lemma 33).
fn is_above(bound: f64, error: f64) -> bool {
    bound > error
}

/// Tries the flips of an evaluation on the network if they promise something; true if they are a witness.
pub(super) fn attempt(
    attacks: &mut Attacks,
    flips: &Flips,
    fixed: &[u32],
    evaluation: &Evaluation,
    error: f64,
) -> bool {
    if evaluation.margin > error && evaluation.margin > attacks.best.margin() {
        return false;
    }
    let chosen = evaluation.selected.iter().map(|(_, flip)| flip);
    attacks.attempt(fixed.iter().chain(chosen).map(|&flip| flips.flips[flip as usize]))
}

//! Engines `tight` and `complete`: what the fast engine leaves open.
//!
//! `tight` climbs to better parameters of the additive bounds of a target and a pair of classes, and tries every set of
//! flips that attains a bound as an attack. `complete` goes on by branch and bound: it splits the admissible sets into
//! parts (a flip is in or out; a concave unit is linear or 0), drops parts whose bound is positive, and excludes flips
//! that no counterexample of a part can have.

mod branch;
mod part;
mod potential;
mod problem;
mod root;
mod tail;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::time::Instant;

use super::Engine;
use super::attack::Attack;
use super::best::BestAttack;
use crate::budget::Flip;
use crate::exact::compare_logits;
use crate::graph::{ClassId, NodeId};
use crate::relaxation::Relaxation;
use crate::slice::{Slice, SlicedFlip};

use branch::{Search, attempt};
use potential::{Listing, Tuning};
use problem::Surroundings;
use tail::rounding_error;

/// Parts that are looked at for one class before it is the next one's turn.
const TURN: usize = 16;

/// Most steps of climbing where a bound is wanted as high as it gets.
const CLIMB: usize = 200;

/// When to give up.
#[derive(Debug, Clone, Copy)]
pub(super) struct Effort {
    /// Whether to branch.
    pub(super) branch: bool,
    /// No part is begun after this.
    pub(super) deadline: Option<Instant>,
}

impl Effort {
    fn is_spent(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }
}

/// What was done about a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Decision {
    /// The strongest engine that was tried; the fast one if there was no time, or no hope.
    pub(super) engine: Engine,
    /// Parts that were looked at.
    pub(super) branches: u64,
}

/// Decides one target after the other, with scratch space of its own.
pub(super) struct Decider<'a> {
    shared: &'a Relaxation<'a>,
    listing: Option<Listing>,
    tuning: Tuning,
}

/// Tries flips on the network itself, and remembers the best.
pub(super) struct Attacks<'b, 'a> {
    pub(super) shared: &'a Relaxation<'a>,
    pub(super) slice: &'b Slice,
    pub(super) y: ClassId,
    pub(super) attack: &'b mut Attack<'a>,
    pub(super) best: &'b mut BestAttack,
}

impl Attacks<'_, '_> {
    /// Tries flips; true if they are a witness.
    fn attempt(&mut self, flips: impl Iterator<Item = SlicedFlip> + Clone) -> bool {
        let found = self.attack.margin(self.slice, self.y, flips.clone());
        self.best.improve(found, flips);
        self.best.succeeds()
    }

    /// Whether the margin of y over k under flips is positive, in exact arithmetic; otherwise remembers them, without
    /// those that it does not take.
    fn holds(&mut self, k: ClassId, flips: impl Iterator<Item = SlicedFlip>) -> bool {
        let mut flips: Vec<SlicedFlip> = flips.collect();
        if self.exactly(k, &flips) == Ordering::Greater {
            return true;
        }
        for i in (0..flips.len()).rev() {
            let flip = flips.remove(i);
            if self.exactly(k, &flips) == Ordering::Greater {
                flips.insert(i, flip);
            }
        }
        self.best.settle(k, flips);
        false
    }

    /// How the margin of y over k under flips compares with 0.
    fn exactly(&self, k: ClassId, flips: &[SlicedFlip]) -> Ordering {
        let node = NodeId(self.slice.level(self.shared.network.layers().len())[0]);
        let flips: Vec<Flip> = flips.iter().map(|&flip| self.slice.flip(flip)).collect();
        compare_logits(self.shared.network, node, &flips, self.y, k)
    }
}

impl<'a> Decider<'a> {
    pub(super) fn new(shared: &'a Relaxation<'a>) -> Self {
        Self { shared, listing: None, tuning: Tuning::default() }
    }

    /// Raises every lower bound in `margins` that is below the best attack as far as it goes without branching, and tries the
    /// flips that attain it. Nothing happens with other than one hidden layer, or where numbers may overflow.
    pub(super) fn tighten(&mut self, slice: &Slice, margins: &mut [Option<f64>], mut attacks: Attacks<'_, 'a>) {
        let around = Surroundings::new(self.shared, slice);
        if !self.shared.overflow_error.is_finite() || !around.has_relu() || !around.is_shallow() {
            return;
        }
        let listing = self.listing.get_or_insert_with(|| Listing::new(self.shared, self.tuning));
        for (k, margin) in margins.iter_mut().enumerate() {
            let Some(known) = margin.as_mut().filter(|known| **known < attacks.best.margin()) else { continue };
            let pair = (attacks.y, ClassId(k as u32));
            let error = rounding_error(&around, pair);
            let highest = root::highest(&around, listing, pair, CLIMB, |evaluation, flips| {
                attempt(&mut attacks, flips, &[], evaluation, error);
            });
            *known = known.max(highest - error);
        }
    }

    /// Goes on where the fast engine stopped: `margins` has its lower bounds and gets better ones, `attacks` what was tried.
    pub(super) fn decide(
        &mut self,
        slice: &Slice,
        margins: &mut [Option<f64>],
        mut attacks: Attacks<'_, 'a>,
        effort: Effort,
    ) -> Decision {
        let mut decision = Decision { engine: Engine::Fast, branches: 0 };
        if !self.shared.overflow_error.is_finite() {
            return decision;
        }
        let y = attacks.y;
        let around = Surroundings::new(self.shared, slice);
        let listing = self.listing.get_or_insert_with(|| Listing::new(self.shared, self.tuning));
        let mut searches: Vec<Search> = Vec::new();
        let mut open: Vec<usize> =
            (0..margins.len()).filter(|&k| margins[k].is_some_and(|margin| margin <= 0.0)).collect();
        open.sort_by(|&a, &b| margins[a].unwrap_or(0.0).total_cmp(&margins[b].unwrap_or(0.0)));
        for k in open {
            if effort.is_spent() {
                break;
            }
            let pair = (y, ClassId(k as u32));
            let Some(search) = Search::begin(&around, listing, pair, &mut attacks) else {
                continue;
            };
            decision.engine = Engine::Tight;
            margins[k] = margins[k].map(|known| known.max(search.lower()));
            if attacks.best.succeeds() {
                return decision;
            }
            if !search.is_closed() {
                searches.push(search);
            }
        }
        if !effort.branch {
            return decision;
        }
        while !searches.is_empty() && !effort.is_spent() {
            for search in &mut searches {
                for _ in 0..TURN {
                    if search.is_closed() || attacks.best.succeeds() || effort.is_spent() {
                        break;
                    }
                    search.branch(listing, &mut attacks);
                    decision.engine = Engine::Complete;
                    decision.branches += 1;
                }
                let k = search.pair().1.index();
                margins[k] = margins[k].map(|known| known.max(search.lower()));
                if attacks.best.succeeds() {
                    return decision;
                }
            }
            searches.retain(|search| !search.is_closed());
        }
        decision
    }
}

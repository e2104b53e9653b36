//! The engines beyond `fast`: bounds of first order ([`first_order`](super::first_order)), and branch and bound over what they leave open;
//! here with one hidden layer, and otherwise by flips alone.
//!
//! With one hidden layer it splits the admissible sets into subproblems (a flip is in or out; a concave unit is linear or 0), drops those whose
//! bound is positive, and excludes flips that no counterexample of a subproblem can have.

mod branch;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;

use super::attack::Attack;
use super::best::BestAttack;
use super::fast::Dual;
use super::first_order;
use super::patience::Patience;
use super::tight::{self, Listing, Surroundings};
use crate::certificate::{Bound, Obstacle};
use crate::exact::compare_logits;
use crate::flip::Flip;
use crate::ids::ClassId;
use crate::prepare::Shard;
use crate::settings::Engine;
use crate::slice::{Slice, SlicedFlip};

use branch::{Search, attempt};

/// Subproblems that are looked at for one class before it is the next one's turn.
const TURN: usize = 16;

/// Most steps of climbing where a bound is wanted as high as it gets.
const CLIMB: usize = 200;

/// What was done about a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Decision {
    /// The strongest engine that was tried; the fast one if there was no time, or no hope.
    pub(crate) engine: Engine,
    /// Subproblems that were looked at.
    pub(crate) branches: u64,
    /// What keeps the target from being decided, if it is not.
    pub(crate) obstacle: Obstacle,
}

/// Decides one target after the other, with scratch space of its own.
pub(crate) struct Decider<'a> {
    shared: &'a Shard<'a>,
    listing: Listing,
}

/// Tries flips on the network itself, and remembers the best.
pub(crate) struct Attacks<'b, 'a> {
    pub(crate) shared: &'a Shard<'a>,
    pub(crate) slice: &'b Slice,
    pub(crate) y: ClassId,
    pub(crate) attack: &'b mut Attack<'a>,
    pub(crate) best: &'b mut BestAttack,
}

impl Attacks<'_, '_> {
    /// Tries flips; true if they are a witness.
    pub(super) fn attempt(&mut self, flips: impl Iterator<Item = SlicedFlip> + Clone) -> bool {
        let found = self.attack.margin(self.slice, self.y, flips.clone());
        self.best.improve(found, flips);
        self.best.succeeds()
    }

    /// Whether the margin of y over k under flips is positive, in exact arithmetic; otherwise remembers them, without
    /// those that it does not take.
    pub(super) fn holds(&mut self, k: ClassId, flips: impl Iterator<Item = SlicedFlip>) -> bool {
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
        let network = self.shared.network;
        let flips: Vec<Flip> = flips.iter().map(|&flip| self.slice.flip(network.graph(), flip)).collect();
        compare_logits(network, self.slice.target(), &flips, self.y, k)
    }
}

impl<'a> Decider<'a> {
    pub(crate) fn new(shared: &'a Shard<'a>) -> Self {
        Self { shared, listing: Listing::default() }
    }

    /// Raises every lower bound in `margins` that is below the best attack as far as it goes without branching, and tries the
    /// flips that attain it. Nothing happens where numbers may overflow.
    pub(crate) fn tighten(
        &mut self,
        slice: &Slice,
        margins: &mut [Option<Bound>],
        mut attacks: Attacks<'_, 'a>,
        patience: Patience,
    ) {
        if !self.shared.overflow_error.is_finite() {
            return;
        }
        let Some(around) = Surroundings::new(self.shared, slice) else {
            return first_order::tighten(margins, &mut attacks, patience);
        };
        let listing = &mut self.listing;
        for (k, margin) in margins.iter_mut().enumerate() {
            let Some(known) = margin.as_mut().filter(|known| known.value() < attacks.best.margin()) else { continue };
            let pair = (attacks.y, ClassId(k as u32));
            let error = tight::rounding_error(&around, pair);
            let highest = tight::highest(&around, listing, pair, CLIMB, patience, |evaluation, flips| {
                attempt(&mut attacks, flips, &[], evaluation, error);
            });
            if let Ok(highest) = highest {
                *known = known.max(Bound::AtLeast(highest - error));
            }
        }
    }

    /// Goes on where the fast engine stopped: `margins` has its lower bounds and gets better ones, `attacks` what was tried. The dual
    /// is asked where that was not begun with.
    pub(crate) fn decide(
        &mut self,
        slice: &Slice,
        margins: &mut [Option<Bound>],
        mut attacks: Attacks<'_, 'a>,
        dual: &mut Dual<'a>,
        patience: Patience,
    ) -> Decision {
        if !self.shared.overflow_error.is_finite() {
            return Decision { engine: Engine::Fast, branches: 0, obstacle: Obstacle::Overflow };
        }
        let Some(around) = Surroundings::new(self.shared, slice) else {
            return first_order::decide(margins, &mut attacks, Some(dual), patience);
        };
        let decision = first_order::decide(margins, &mut attacks, None, Patience { branch: false, ..patience });
        if attacks.best.succeeds() || !patience.branch {
            return decision;
        }
        self.search(&around, margins, &mut attacks, patience, decision)
    }

    /// Branches where there is one hidden layer, until no class is open.
    fn search(
        &mut self,
        around: &Surroundings,
        margins: &mut [Option<Bound>],
        attacks: &mut Attacks<'_, 'a>,
        patience: Patience,
        mut decision: Decision,
    ) -> Decision {
        let listing = &mut self.listing;
        let mut searches: Vec<Search> = Vec::new();
        let mut open: Vec<usize> =
            (0..margins.len()).filter(|&k| margins[k].is_some_and(|margin| !margin.is_positive())).collect();
        let value = |k: usize| margins[k].map_or(0.0, Bound::value);
        open.sort_by(|&a, &b| value(a).total_cmp(&value(b)));
        for k in open {
            let pair = (attacks.y, ClassId(k as u32));
            let search = match Search::begin(around, listing, pair, attacks, patience) {
                Ok(search) => search,
                Err(obstacle) => return Decision { obstacle, ..decision },
            };
            decision.engine = Engine::Complete;
            margins[k] = margins[k].map(|known| known.max(search.lower()));
            if attacks.best.succeeds() {
                return decision;
            }
            if !search.is_closed() {
                searches.push(search);
            }
        }
        while !searches.is_empty() {
            let mut held: usize = searches.iter().map(Search::bytes).sum();
            for search in &mut searches {
                held -= search.bytes();
                let mut reached = None;
                for _ in 0..TURN {
                    reached = patience.obstacle(held + search.bytes());
                    if search.is_closed() || attacks.best.succeeds() || reached.is_some() {
                        break;
                    }
                    reached = search.branch(listing, attacks, patience).err();
                    decision.branches += 1;
                }
                held += search.bytes();
                let k = search.pair().1.index();
                margins[k] = margins[k].map(|known| known.max(search.lower()));
                if attacks.best.succeeds() {
                    return decision;
                }
                if let Some(obstacle) = reached {
                    return Decision { obstacle, ..decision };
                }
            }
            searches.retain(|search| !search.is_closed());
        }
        decision
    }
}

//! Branch and bound (Lemmas 22 to 26 of `docs/maths.md`).
//!
//! A subproblem has some flips made, its base point, some that are possible, and the signs of some units. It is dropped if its bound is
//! positive; otherwise flips that no counterexample has are dropped, those that all have are made, and it is split in two: with and without
//! a flip, or by the sign of a unit.
//!
//! Where nothing is left to split of a subproblem but real values between the ends of their ranges, robustness cannot be shown any more. What
//! may still be found is a witness, which has values at ends: it is searched for in all that is open.

use std::rc::Rc;

use super::base::{Base, Knows};
use super::bound::At;
use super::bounded::{Bounded, select};
use super::search::{Outcome, Search};
use super::subproblem::{Possible, Subproblem};
use crate::certificate::{Bound, Obstacle};
use crate::slice::SlicedFlip;

impl Search<'_, '_, '_, '_> {
    /// Looks at a subproblem, and at what it is split into, until all is closed. What is known of the margin if a limit is reached.
    pub(super) fn branch(&mut self, first: Subproblem, bounded: Bounded) -> (Outcome, Bound) {
        self.held += first.bytes();
        self.bounding.cones.keep_moves = true;
        self.only_ends = false;
        let mut open = vec![(first, bounded)];
        // What is known of all values, once only ends are looked at.
        let mut of_values = None;
        while let Some((of, bounded)) = open.pop() {
            self.held -= of.bytes();
            let lower = of.lower;
            let outcome = match self.look(of, bounded) {
                Step::Into(parts) => {
                    self.held += parts.iter().map(|(part, _)| part.bytes()).sum::<usize>();
                    open.extend(parts);
                    continue;
                }
                Step::Between(part) => {
                    of_values = Some(self.least(lower, &open));
                    self.only_ends = true;
                    self.held += part.0.bytes();
                    open.push(*part);
                    continue;
                }
                Step::Ends(Outcome::Closed) => continue,
                Step::Ends(outcome) => outcome,
            };
            self.held -= open.iter().map(|(of, _)| of.bytes()).sum::<usize>();
            return (outcome, of_values.unwrap_or_else(|| self.least(lower, &open)));
        }
        of_values.map_or((Outcome::Closed, Bound::Positive), |lower| (Outcome::Open(Obstacle::Values), lower))
    }

    /// What the margin is at least in open subproblems, and in one with this bound.
    fn least(&self, lower: f64, open: &[Part]) -> Bound {
        let lower = open.iter().fold(lower, |lower, (of, _)| lower.min(of.lower));
        Bound::AtLeast(lower + self.bounding.linear.level)
    }

    /// The bound of a subproblem.
    fn bound(&mut self, of: &mut Subproblem) -> Bounded {
        let bounded = match &of.possible {
            Possible::These(flips) => self.listed(&of.base, of.pair, Some(&of.lines), flips),
            Possible::AllBut(excluded, threshold) => {
                self.screened(&of.base, of.pair, Some(&of.lines), excluded, Some(*threshold))
            }
        };
        of.lower = of.lower.max(bounded.lower());
        bounded
    }

    /// Looks at a subproblem with a bound that may decide it, drops flips and makes others as long as that helps, or splits it.
    fn look(&mut self, mut of: Subproblem, mut bounded: Bounded) -> Step {
        if let Some(cones) = of.cones.take() {
            self.bounding.cones.put_back(cones);
            self.around = Some(Rc::clone(&of.base));
        } else if self.around.as_ref().is_none_or(|base| !Rc::ptr_eq(base, &of.base)) {
            self.bounding.cones.clear();
            self.around = Some(Rc::clone(&of.base));
        }
        if self.only_ends
            && let Some(base) = of.base.at_ends(self.target)
        {
            of.base = Rc::new(base);
            bounded = self.bound_anew(&mut of);
        }
        loop {
            if let Some(outcome) = self.settled(&bounded) {
                return Step::Ends(outcome);
            }
            if let Some(obstacle) = self.patience.obstacle(self.held + of.bytes() + self.bounding.cones.bytes()) {
                return Step::Ends(Outcome::Open(obstacle));
            }
            let (base, k) = (Rc::clone(&of.base), of.pair.1);
            // NaN, too, is for exact arithmetic.
            let is_sure = base.margin(k) > bounded.error;
            if !is_sure && !self.attacks.holds(k, base.flips.iter().copied()) {
                return Step::Ends(Outcome::Found);
            }
            if base.moves_left() == 0 {
                return Step::Ends(Outcome::Closed);
            }
            if !bounded.selected.is_empty() && self.attacks.attempt(base.with(&bounded.selected)) {
                return Step::Ends(Outcome::Found);
            }
            if let Some(outcome) = self.list(&mut of, &mut bounded) {
                return Step::Ends(outcome);
            }
            let before = bounded.gains.len();
            let needed = bounded.reduce(self.target, &base, &mut of.possible);
            if base.freed.is_empty() && matches!(&of.possible, Possible::These(flips) if flips.is_empty()) {
                return Step::Ends(Outcome::Closed);
            }
            if !needed.is_empty() {
                let with = match self.with(&of, &needed) {
                    Ok(with) => with,
                    Err(outcome) => return Step::Ends(outcome),
                };
                return Step::Into(vec![with]);
            }
            if of.climbed > 0 && is_most(bounded.gains.len(), of.climbed) {
                break;
            }
            of.climbed = bounded.gains.len();
            if let Some(outcome) = self.narrow(&mut of, &mut bounded) {
                return Step::Ends(outcome);
            }
            let base = Rc::clone(&of.base);
            if let Some(better) = self.climbed(&base, of.pair, &bounded, of.lines.clone()) {
                of.lines = better;
                bounded = self.bound(&mut of);
            }
            if is_most(bounded.gains.len(), before) {
                break;
            }
        }
        match self.settled(&bounded) {
            Some(outcome) => Step::Ends(outcome),
            None => self.split(of, bounded),
        }
    }

    /// Lists all flips that a counterexample may have, if that can be told, or nothing else is left to do.
    fn list(&mut self, of: &mut Subproblem, bounded: &mut Bounded) -> Option<Outcome> {
        if matches!(of.possible, Possible::AllBut(..)) && (bounded.filled > 0 || !bounded.knows_selected()) {
            *bounded = self.bound(of);
            if let Some(outcome) = self.settled(bounded) {
                return Some(outcome);
            }
        }
        let Possible::AllBut(excluded, threshold) = &mut of.possible else { return None };
        let at = At { target: self.target, base: &of.base, pair: of.pair };
        if !bounded.lists_needed(&of.base) && bounded.needed() > f64::MIN_POSITIVE {
            *bounded = self.bounding.list_needed(at, &of.lines, excluded, bounded, &self.patience);
        }
        if let Some(obstacle) = bounded.cut {
            return Some(Outcome::Open(obstacle));
        }
        *threshold = bounded.threshold;
        if bounded.lists_needed(&of.base) {
            of.possible = Possible::These(bounded.gains.iter().map(|&(_, flip)| flip).collect());
        } else if bounded.filled > 0 {
            // Too little is gained for screening to tell.
            if let Some(obstacle) = self.patience.obstacle(self.held + self.target.bytes_of_all_flips()) {
                return Some(Outcome::Open(obstacle));
            }
            let mut all = self.target.all_flips(&of.base);
            if self.target.check_left_out().is_err() {
                return Some(Outcome::Open(Obstacle::Engine));
            }
            all.retain(|flip| excluded.binary_search(flip).is_err());
            of.possible = Possible::These(all);
            *bounded = self.bound(of);
            return self.settled(bounded);
        }
        None
    }

    /// Has lines and base point know what listed flips can do to units (Lemma 43), and bounds anew.
    fn narrow(&mut self, of: &mut Subproblem, bounded: &mut Bounded) -> Option<Outcome> {
        let Possible::These(flips) = &of.possible else { return None };
        match self.bounding.narrow(self.target, &of.base, flips, &mut of.lines, &self.patience) {
            Ok(true) => {}
            Ok(false) => return Some(Outcome::Closed),
            Err(obstacle) => return Some(Outcome::Open(obstacle)),
        }
        let narrowed = Base::clone(&of.base).narrowed(self.target, &of.lines);
        of.base = Rc::new(self.bounding.tuned(self.target, &narrowed, bounded));
        self.around = Some(Rc::clone(&of.base));
        *bounded = self.bound(of);
        self.settled(bounded)
    }

    /// Splits a subproblem in two, by a flip or by the sign of a unit: whichever leaves the better bounds.
    fn split(&mut self, of: Subproblem, bounded: Bounded) -> Step {
        let Some(&(_, flip)) = bounded.gains.first() else { return self.split_freed(of, bounded) };
        self.branches += 1;
        let mut without = bounded.clone();
        without.drop_flip(self.target, flip);
        select(self.target, &of.base, &mut without, bounded.threshold.max(0.0));
        // Where few sets are left, flips come to an end sooner than units.
        let few = of.base.left == 1 || bounded.gains.len() <= FEW;
        let tried = if few || without.is_positive() { 0 } else { self.signs.tries(self.bounding.tuning.signs) };
        let mut signs = match self.by_sign(&of, &bounded, tried) {
            Ok(signs) => signs,
            Err(obstacle) => return Step::Ends(Outcome::Open(obstacle)),
        };
        // No need to look at the sets with the flip where those without it are worse already.
        if let Some((_, halves)) = signs.take_if(|(score, _)| score[0] >= without.value.min(bounded.error)) {
            self.signs.won();
            return Step::Into(halves.into());
        }
        let cones = self.bounding.cones.take();
        self.held += cones.bytes();
        let with = self.with(&of, &[flip]);
        self.held -= cones.bytes();
        let with = match with {
            Ok(with) => with,
            Err(outcome) => return Step::Ends(outcome),
        };
        let by_flip = score([with.1.value, without.value], bounded.error);
        if let Some((_, halves)) = signs.take_if(|(score, _)| with.1.cut.is_none() && *score > by_flip) {
            self.signs.won();
            self.bounding.cones.put_back(cones);
            self.around = Some(of.base);
            return Step::Into(halves.into());
        }
        if tried > 0 {
            self.signs.lost();
        }
        let mut others = of.without(flip, &without);
        others.cones = Some(cones);
        Step::Into(vec![(others, without), with])
    }

    /// Splits a subproblem with no flips left but those that do not count: by the sign of a unit alone, or by the ends of a range where only
    /// these are looked at.
    fn split_freed(&mut self, of: Subproblem, bounded: Bounded) -> Step {
        let Some(&freed) = of.base.freed.first() else { return Step::Ends(Outcome::Open(Obstacle::Overflow)) };
        self.branches += 1;
        if self.only_ends {
            return self.by_end(of, freed);
        }
        match self.by_sign(&of, &bounded, self.bounding.tuning.signs) {
            Ok(Some((_, halves))) => Step::Into(halves.into()),
            Ok(None) if !self.attacks.holds(of.pair.1, of.base.with(&bounded.selected)) => Step::Ends(Outcome::Found),
            Ok(None) => Step::Between(Box::new((of, bounded))),
            Err(obstacle) => Step::Ends(Outcome::Open(obstacle)),
        }
    }

    /// The sets of a subproblem in which an entry stays at its end, and those in which a freed flip has brought it to the other one.
    fn by_end(&mut self, mut of: Subproblem, freed: SlicedFlip) -> Step {
        if let Some(obstacle) = self.patience.obstacle(self.held + of.bytes() + Base::bytes(self.target)) {
            return Step::Ends(Outcome::Open(obstacle));
        }
        let rest: Vec<SlicedFlip> = of.base.freed.iter().copied().filter(|&flip| flip != freed).collect();
        let flips: Vec<SlicedFlip> = of.base.with(&[freed]).collect();
        if self.attacks.attempt(flips.iter().copied()) {
            return Step::Ends(Outcome::Found);
        }
        let base = Base::tried_at_ends(self.target, self.attacks.attack, self.attacks.y, flips);
        let mut other = of.around(base.with_freed(rest.clone()));
        let there = self.bound_anew(&mut other);
        of.base = Rc::new(Base::clone(&of.base).with_freed(rest));
        let here = self.bound_anew(&mut of);
        Step::Into(vec![(other, there), (of, here)])
    }

    /// The bound of a subproblem with a new base point, of which the lines may know more.
    fn bound_anew(&mut self, of: &mut Subproblem) -> Bounded {
        of.base = Rc::new(Base::clone(&of.base).narrowed(self.target, &of.lines));
        self.bounding.cones.clear();
        self.around = Some(Rc::clone(&of.base));
        self.bound(of)
    }

    /// The better halves by the sign of one of some units, and what they are worth.
    fn by_sign(&mut self, of: &Subproblem, bounded: &Bounded, tried: usize) -> Result<Option<Halves>, Obstacle> {
        let mut best: Option<Halves> = None;
        for unit in self.bounding.widest_gaps(self.target, &of.base, &of.lines, bounded, tried) {
            let halves = [true, false].map(|on| {
                let mut half = of.with_sign(unit, on);
                let bounded = self.bound(&mut half);
                (half, bounded)
            });
            if let Some(obstacle) = halves.iter().find_map(|(_, half)| half.cut) {
                return Err(obstacle);
            }
            let score = score([halves[0].1.value, halves[1].1.value], bounded.error);
            if best.as_ref().is_none_or(|best| score > best.0) {
                best = Some((score, halves));
            }
        }
        Ok(best)
    }

    /// The sets that have all of `flips`, with their bound.
    fn with(&mut self, of: &Subproblem, flips: &[SlicedFlip]) -> Result<Part, Outcome> {
        self.branches += 1;
        if let Some(obstacle) = self.patience.obstacle(self.held + of.bytes() + Base::bytes(self.target)) {
            return Err(Outcome::Open(obstacle));
        }
        let flips = [&of.base.flips, flips].concat();
        if self.attacks.attempt(flips.iter().copied()) {
            return Err(Outcome::Found);
        }
        let (attack, y) = (&*self.attacks.attack, self.attacks.y);
        let base = if self.only_ends {
            Base::tried_at_ends(self.target, attack, y, flips)
        } else {
            Base::tried(self.target, attack, y, flips, Knows::Bounds)
        };
        let mut with = of.around(base);
        let bounded = self.bound_anew(&mut with);
        Ok((with, bounded))
    }
}

/// So few flips are made or not without looking at the signs of units.
pub(super) const FEW: usize = 8;

/// A subproblem, and its bound.
type Part = (Subproblem, Bounded);

/// Two halves of a subproblem, after what they are worth.
type Halves = ([f64; 2], [Part; 2]);

/// Whether so little was dropped that there is no need to look again.
fn is_most(now: usize, before: usize) -> bool {
    5 * now >= 4 * before
}

/// What bounds of two halves are worth: the worse one counts first, and above `enough` nothing is gained.
fn score(bounds: [f64; 2], enough: f64) -> [f64; 2] {
    let [a, b] = bounds.map(|bound| bound.min(enough));
    [a.min(b), a.max(b)]
}

/// Whether to try signs: not at once, since a few flips often end the search, and ever more rarely while flips win.
pub(super) struct Signs {
    /// Splits without, after they last lost and that are still to come.
    pause: u32,
    left: u32,
}

impl Default for Signs {
    fn default() -> Self {
        Self { pause: 0, left: Self::FIRST }
    }
}

impl Signs {
    const FIRST: u32 = 7;
    const LONGEST: u32 = 31;

    /// How many of `most` units to try.
    fn tries(&mut self, most: usize) -> usize {
        if self.left == 0 {
            return most;
        }
        self.left -= 1;
        0
    }

    fn won(&mut self) {
        (self.pause, self.left) = (0, 0);
    }

    fn lost(&mut self) {
        self.pause = (2 * self.pause + 1).min(Self::LONGEST);
        self.left = self.pause;
    }
}

/// What comes of looking at a subproblem.
enum Step {
    Ends(Outcome),
    /// It is split into these; the last is looked at first.
    Into(Vec<Part>),
    /// Nothing is left to split but values between the ends of their ranges: from now on only ends are looked at, of this one, too.
    Between(Box<Part>),
}

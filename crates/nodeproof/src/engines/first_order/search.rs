//! Branch and bound on flips (Lemma 42 of `docs/maths.md`).
//!
//! A subproblem has some flips made, its base point, and some excluded. Its children make one more flip each: the i-th child that of the i-th
//! largest gain, with those before it excluded, until what is left cannot overcome the margin.

use super::base::Base;
use super::bound::{Bounded, Bounding};
use super::linearisation::UnitSlopes;
use super::target::Target;
use crate::certificate::Bound;
use crate::engines::complete::{Attacks, Decision, Patience};
use crate::ids::ClassId;
use crate::settings::Engine;
use crate::slice::SlicedFlip;

/// How a subproblem ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// No set of it is a counterexample.
    Closed,
    /// A witness was found.
    Found,
    /// A limit was reached.
    Open,
}

/// Decides the target of `attacks`, class by class: `margins` has lower bounds and gets better ones.
pub(in crate::engines) fn decide(margins: &mut [Option<Bound>], attacks: &mut Attacks, patience: Patience) -> Decision {
    let mut decision = Decision { engine: Engine::Fast, branches: 0 };
    let target = Target::new(attacks.shared, attacks.slice);
    let base = Base::new(&target, attacks.attack, attacks.y, Vec::new());
    let mut open: Vec<usize> =
        (0..margins.len()).filter(|&k| margins[k].is_some_and(|margin| !margin.is_positive())).collect();
    open.sort_by(|&a, &b| base.margin(ClassId(a as u32)).total_cmp(&base.margin(ClassId(b as u32))));
    let mut search = Search { target: &target, attacks, patience, bounding: Bounding::default(), branches: 0 };
    for k in open {
        if search.patience.is_spent() {
            break;
        }
        if decision.engine == Engine::Fast {
            decision.engine = Engine::Tight;
        }
        let before = search.branches;
        let (outcome, lower) = search.root(&base, ClassId(k as u32));
        if search.branches > before {
            decision.engine = Engine::Complete;
        }
        margins[k] = margins[k].map(|known| known.max(lower));
        if outcome == Outcome::Closed {
            margins[k] = margins[k].map(|known| known.max(Bound::Positive));
        }
        if outcome == Outcome::Found {
            break;
        }
    }
    decision.branches = search.branches;
    decision
}

struct Search<'s, 't, 'b, 'a> {
    target: &'s Target<'t>,
    attacks: &'s mut Attacks<'b, 'a>,
    patience: Patience,
    bounding: Bounding,
    branches: u64,
}

impl Search<'_, '_, '_, '_> {
    /// Decides one class; with a lower bound of the margin.
    fn root(&mut self, base: &Base, k: ClassId) -> (Outcome, Bound) {
        let pair = (self.attacks.y, k);
        // The attack's own numbers are those of the base again.
        let mut bounded = self.screened(base, pair, None, &[]);
        let mut lower = lower(&bounded);
        if let Some(outcome) = self.settled(&bounded) {
            return (outcome, lower);
        }
        if !bounded.cut
            && let Some(slopes) = self.climbed(base, pair, &bounded)
        {
            bounded = self.screened(base, pair, Some(&slopes), &[]);
            lower = lower.max(self::lower(&bounded));
            if let Some(outcome) = self.settled(&bounded) {
                return (outcome, lower);
            }
        }
        if !self.patience.branch || bounded.cut {
            return (Outcome::Open, lower);
        }
        (self.leaf_or_split(base, pair, bounded, &[]), lower)
    }

    fn settled(&self, bounded: &Bounded) -> Option<Outcome> {
        if self.attacks.best.succeeds() {
            return Some(Outcome::Found);
        }
        bounded.is_positive().then_some(Outcome::Closed)
    }

    /// The bound by screening around a base point; flips that attain it are tried.
    fn screened(
        &mut self,
        base: &Base,
        pair: (ClassId, ClassId),
        slopes: Option<&UnitSlopes>,
        excluded: &[SlicedFlip],
    ) -> Bounded {
        let Self { target, attacks, patience, bounding, .. } = self;
        let Attacks { attack, best, slice, y, .. } = &mut **attacks;
        bounding.by_screening(target, base, attack, pair, slopes, excluded, patience, |attack, flips| {
            let all = || base.flips.iter().chain(flips).copied();
            let found = attack.margin(slice, *y, all());
            best.improve(found, all());
            best.succeeds()
        })
    }

    /// Slopes with a better bound for the flips that are listed.
    fn climbed(&mut self, base: &Base, pair: (ClassId, ClassId), bounded: &Bounded) -> Option<UnitSlopes> {
        let goal = self.attacks.best.margin().max(2.0 * bounded.error);
        self.bounding.climb(self.target, base, self.attacks.attack, pair, bounded, goal)
    }

    /// Splits a subproblem by the flips that are made next.
    fn split(&mut self, base: &Base, pair: (ClassId, ClassId), bounded: Bounded, excluded: &[SlicedFlip]) -> Outcome {
        let Bounded { value, error, constant, gains, threshold, last, .. } = bounded;
        // Every flip of a counterexample gains at least this.
        let needed = last + value - error;
        let complete = threshold < needed;
        let floor = if complete { 0.0 } else { threshold.max(0.0) };
        let listed: Vec<(f64, SlicedFlip)> =
            gains.into_iter().filter(|&(gain, _)| if complete { gain >= needed } else { gain > floor }).collect();
        let mut excluded = excluded.to_vec();
        for i in 0..listed.len() {
            let mut rest = Bounded { constant, error, gains: listed[i..].to_vec(), ..Bounded::default() };
            super::bound::select(base, &mut rest, floor);
            if rest.is_positive() {
                return Outcome::Closed;
            }
            let flip = listed[i].1;
            let mut flips = base.flips.clone();
            flips.push(flip);
            let list: Option<Vec<SlicedFlip>> =
                complete.then(|| listed[i + 1..].iter().map(|&(_, flip)| flip).collect());
            match self.child(flips, pair, list, &excluded) {
                Outcome::Closed => {}
                outcome => return outcome,
            }
            let place = excluded.binary_search(&flip).unwrap_or_else(|place| place);
            excluded.insert(place, flip);
        }
        // Sets without any of the listed flips: those of a complete list are the base alone, which was looked at.
        if complete || is_above(constant - base.left as f64 * floor, error) { Outcome::Closed } else { Outcome::Open }
    }

    /// The sets with `flips`, of which no other is in `excluded`; all that matter are in `list` if there is one.
    fn child(
        &mut self,
        flips: Vec<SlicedFlip>,
        pair: (ClassId, ClassId),
        list: Option<Vec<SlicedFlip>>,
        excluded: &[SlicedFlip],
    ) -> Outcome {
        self.branches += 1;
        if self.patience.is_spent() {
            return Outcome::Open;
        }
        if self.attacks.attempt(flips.iter().copied()) {
            return Outcome::Found;
        }
        let base = Base::new(self.target, self.attacks.attack, self.attacks.y, flips);
        self.bounding.cones.clear();
        let mut excluded = [excluded, &base.flips].concat();
        excluded.sort_unstable();
        let outcome = self.bounded_child(&base, pair, list, &excluded);
        self.bounding.cones.clear();
        outcome
    }

    fn bounded_child(
        &mut self,
        base: &Base,
        pair: (ClassId, ClassId),
        list: Option<Vec<SlicedFlip>>,
        excluded: &[SlicedFlip],
    ) -> Outcome {
        let Some(mut list) = list else {
            let bounded = self.screened(base, pair, None, excluded);
            if let Some(outcome) = self.settled(&bounded) {
                return outcome;
            }
            if bounded.cut {
                return Outcome::Open;
            }
            return self.leaf_or_split(base, pair, bounded, excluded);
        };
        list.retain(|flip| base.capacities[flip.0 as usize] > 0);
        if base.left == 0 {
            list.clear();
        }
        let attack = &*self.attacks.attack;
        let mut bounded = self.bounding.of_list(self.target, base, attack, pair, None, &list, &self.patience);
        if bounded.cut {
            return Outcome::Open;
        }
        if bounded.is_positive() {
            return Outcome::Closed;
        }
        if !bounded.selected.is_empty() {
            let all: Vec<SlicedFlip> = base.flips.iter().chain(&bounded.selected).copied().collect();
            if self.attacks.attempt(all.iter().copied()) {
                return Outcome::Found;
            }
            if let Some(slopes) = self.climbed(base, pair, &bounded) {
                let attack = &*self.attacks.attack;
                bounded = self.bounding.of_list(self.target, base, attack, pair, Some(&slopes), &list, &self.patience);
                if bounded.is_positive() {
                    return Outcome::Closed;
                }
            }
        }
        self.leaf_or_split(base, pair, bounded, excluded)
    }

    /// A subproblem that is not closed: of a single set, which is compared exactly, or to be split.
    fn leaf_or_split(
        &mut self,
        base: &Base,
        pair: (ClassId, ClassId),
        bounded: Bounded,
        excluded: &[SlicedFlip],
    ) -> Outcome {
        if base.margin(pair.1) <= bounded.error && !self.attacks.holds(pair.1, base.flips.iter().copied()) {
            return Outcome::Found;
        }
        let unlisted = bounded.threshold.max(0.0) * base.left as f64;
        if bounded.threshold > f64::NEG_INFINITY && !is_above(bounded.constant - unlisted, bounded.error) {
            // Flips that are not listed could be a counterexample without any of those that are.
            let mut all = self.target.all_flips(base);
            all.retain(|flip| excluded.binary_search(flip).is_err());
            let attack = &*self.attacks.attack;
            let bounded = self.bounding.of_list(self.target, base, attack, pair, None, &all, &self.patience);
            return if bounded.cut { Outcome::Open } else { self.split(base, pair, bounded, excluded) };
        }
        self.split(base, pair, bounded, excluded)
    }
}

/// Whether a bound proves that it is above `error`; NaN proves nothing.
fn is_above(bound: f64, error: f64) -> bool {
    bound > error
}

/// What a bound says.
fn lower(bounded: &Bounded) -> Bound {
    if bounded.cut { Bound::Unknown } else { Bound::AtLeast(bounded.value - 1.01 * bounded.error.abs()) }
}

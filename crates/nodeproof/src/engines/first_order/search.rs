//! Branch and bound on flips (Lemma 42 of `docs/maths.md`).
//!
//! A subproblem has some flips made, its base point, and some excluded. Its children make one more flip each: the i-th child that of the i-th
//! largest gain, with those before it excluded, until what is left cannot overcome the margin.

use super::base::Base;
use super::bound::{At, Bounded, Bounding};
use super::exchange::exchange;
use super::linearisation::UnitSlopes;
use super::target::Target;
use crate::certificate::{Bound, Obstacle};
use crate::engines::complete::{Attacks, Decision};
use crate::engines::fast::Dual;
use crate::engines::patience::Patience;
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
    /// Neither, because of a limit.
    Open(Obstacle),
}

/// Decides the target of `attacks`, class by class: `margins` has lower bounds and gets better ones. `dual` is asked of classes that
/// stay open without branching, if it was not before.
pub(in crate::engines) fn decide(
    margins: &mut [Option<Bound>],
    attacks: &mut Attacks,
    dual: Option<&mut Dual>,
    patience: Patience,
) -> Decision {
    let mut decision = Decision { engine: Engine::Fast, branches: 0, obstacle: Obstacle::Engine };
    let target = Target::new(attacks.shared, attacks.slice);
    let base = Base::clean(&target, attacks.y);
    let mut classes: Vec<usize> =
        (0..margins.len()).filter(|&k| margins[k].is_some_and(|margin| !margin.is_positive())).collect();
    classes.sort_by(|&a, &b| base.margin(ClassId(a as u32)).total_cmp(&base.margin(ClassId(b as u32))));
    let mut search = Search::new(&target, attacks, patience);
    let mut open: Vec<(ClassId, Root)> = Vec::new();
    for k in classes {
        if let Some(obstacle) = patience.obstacle(search.held) {
            open.push((ClassId(k as u32), Root::unknown(obstacle)));
            continue;
        }
        decision.engine = Engine::Tight;
        let root = search.root(&base, ClassId(k as u32));
        margins[k] = margins[k].map(|known| known.max(root.lower));
        match root.outcome {
            Outcome::Found => return decision,
            Outcome::Closed => margins[k] = margins[k].map(|known| known.max(Bound::Positive)),
            Outcome::Open(_) => open.push((ClassId(k as u32), root)),
        }
    }
    if let Some(dual) = dual {
        for &(k, _) in &open {
            let attacks = &mut *search.attacks;
            let lower = dual.lower_bound(attacks.slice, attacks.y, k).lower();
            margins[k.index()] = margins[k.index()].map(|known| known.max(lower));
            if !lower.is_positive() && attacks.attempt(dual.selection().best().iter().map(|&(_, flip)| flip)) {
                return decision;
            }
        }
    }
    open.retain(|(k, _)| margins[k.index()].is_some_and(|margin| !margin.is_positive()));
    let open_classes = open.len();
    for (place, (k, root)) in open.into_iter().enumerate() {
        let mut outcome = root.outcome;
        if let Some((base, bounded)) = root.rest.filter(|_| patience.branch) {
            decision.engine = Engine::Complete;
            search.patience = patience.share_of(open_classes - place);
            outcome = search.leaf_or_split(&base, (search.attacks.y, k), bounded, &[]);
            decision.branches = search.branches;
        }
        match outcome {
            Outcome::Found => return decision,
            Outcome::Closed => margins[k.index()] = margins[k.index()].map(|known| known.max(Bound::Positive)),
            Outcome::Open(obstacle) => decision.obstacle = decision.obstacle.max(obstacle),
        }
    }
    decision
}

/// Raises every lower bound in `margins` that is below the best attack as far as it goes without branching.
pub(in crate::engines) fn tighten(margins: &mut [Option<Bound>], attacks: &mut Attacks, patience: Patience) {
    let target = Target::new(attacks.shared, attacks.slice);
    let base = Base::clean(&target, attacks.y);
    let mut search = Search::new(&target, attacks, patience);
    for (k, margin) in margins.iter_mut().enumerate() {
        let best = search.attacks.best.margin();
        if let Some(known) = margin.as_mut().filter(|known| known.value() < best) {
            search.aim = Aim::Highest;
            search.bounding.linear.level = best;
            *known = known.max(search.root(&base, ClassId(k as u32)).lower);
        }
    }
}

/// What is searched for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Aim {
    /// Whether the margin is positive for all sets; a witness ends the search.
    Verdict,
    /// The highest bound, which the best attack limits, but does not end.
    Highest,
}

struct Search<'s, 't, 'b, 'a> {
    target: &'s Target<'t>,
    attacks: &'s mut Attacks<'b, 'a>,
    patience: Patience<'s>,
    bounding: Bounding,
    branches: u64,
    aim: Aim,
    /// Bytes of the base points at hand.
    held: usize,
}

/// What is known of a class without branching.
struct Root {
    outcome: Outcome,
    lower: Bound,
    /// From where to branch, if it is open and no limit was reached.
    rest: Option<(Base, Bounded)>,
}

impl Root {
    /// Nothing is known, because of a limit.
    fn unknown(obstacle: Obstacle) -> Self {
        Self { outcome: Outcome::Open(obstacle), lower: Bound::Unknown, rest: None }
    }
}

impl<'s, 't, 'b, 'a> Search<'s, 't, 'b, 'a> {
    fn new(target: &'s Target<'t>, attacks: &'s mut Attacks<'b, 'a>, patience: Patience<'s>) -> Self {
        let held = Base::bytes(target);
        Self { target, attacks, patience, bounding: Bounding::default(), branches: 0, aim: Aim::Verdict, held }
    }

    /// The bound of one class over all sets, as good as it gets without branching, and attacks.
    fn root(&mut self, base: &Base, k: ClassId) -> Root {
        let pair = (self.attacks.y, k);
        let mut bounded = self.screened(base, pair, None, &[]);
        let mut root = Root::unknown(Obstacle::Engine);
        if self.ends(&mut root, &bounded) {
            return root;
        }
        let slopes = self.climbed(base, pair, &bounded, &base.tangents);
        if let Some(slopes) = &slopes {
            bounded = self.screened(base, pair, Some(slopes), &[]);
            if self.ends(&mut root, &bounded) {
                return root;
            }
        }
        let candidates: Vec<SlicedFlip> = bounded.gains.iter().map(|&(_, flip)| flip).collect();
        let (linear, flips) = (&mut self.bounding.linear, bounded.selected.clone());
        let found = exchange(self.target, self.attacks, linear, k, flips, &candidates, &self.patience);
        if self.aim == Aim::Verdict && (found || self.ties(k, &bounded)) {
            root.outcome = Outcome::Found;
            return root;
        }
        // The class's own base point: what is known of its flips is forgotten again at the end.
        let attack = &*self.attacks.attack;
        self.bounding.linear.compute(self.target, base, attack, pair, slopes.as_ref());
        let base = self.bounding.tuned(self.target, base, &bounded.selected);
        bounded = self.screened(&base, pair, slopes.as_ref(), &[]);
        if !self.ends(&mut root, &bounded) {
            if let Some(slopes) = self.climbed(&base, pair, &bounded, slopes.as_ref().unwrap_or(&base.tangents)) {
                bounded = self.screened(&base, pair, Some(&slopes), &[]);
            }
            if !self.ends(&mut root, &bounded) {
                root.rest = Some((base, bounded));
            }
        }
        self.bounding.cones.clear();
        root
    }

    /// Whether the flips that attain a bound bring class k level, or above, by so little that doubles cannot tell.
    fn ties(&mut self, k: ClassId, bounded: &Bounded) -> bool {
        let found = self.attacks.attempt(bounded.selected.iter().copied());
        let margin = self.attacks.attack.margin_of(self.attacks.y, k);
        found || (margin <= bounded.error && !self.attacks.holds(k, bounded.selected.iter().copied()))
    }

    /// Takes note of a bound; whether nothing more is to be done without branching.
    fn ends(&self, root: &mut Root, bounded: &Bounded) -> bool {
        root.lower = root.lower.max(self.lower(bounded));
        match self.settled(bounded) {
            Some(outcome) => root.outcome = outcome,
            None => return false,
        }
        true
    }

    /// What a bound decides, or that it was not computed.
    fn settled(&self, bounded: &Bounded) -> Option<Outcome> {
        if self.aim == Aim::Verdict && self.attacks.best.succeeds() {
            return Some(Outcome::Found);
        }
        if bounded.is_positive() {
            return Some(Outcome::Closed);
        }
        bounded.cut.map(Outcome::Open)
    }

    /// What a bound says.
    fn lower(&self, bounded: &Bounded) -> Bound {
        let lower = bounded.value - 1.01 * bounded.error.abs() + self.bounding.linear.level;
        if bounded.value == f64::NEG_INFINITY { Bound::Unknown } else { Bound::AtLeast(lower) }
    }

    /// The bound by screening around a base point; flips that attain it are tried.
    fn screened(
        &mut self,
        base: &Base,
        pair: (ClassId, ClassId),
        slopes: Option<&UnitSlopes>,
        excluded: &[SlicedFlip],
    ) -> Bounded {
        let Self { target, attacks, patience, bounding, aim, .. } = self;
        let Attacks { attack, best, slice, y, .. } = &mut **attacks;
        let at = At { target, base, pair };
        bounding.by_screening(at, attack, slopes, excluded, patience, |attack, flips| {
            let all = || base.flips.iter().chain(flips).copied();
            let found = attack.margin(slice, *y, all());
            best.improve(found, all());
            *aim == Aim::Verdict && best.succeeds()
        })
    }

    /// The bound over sets of these flips alone.
    fn listed(
        &mut self,
        base: &Base,
        pair: (ClassId, ClassId),
        slopes: Option<&UnitSlopes>,
        flips: &[SlicedFlip],
    ) -> Bounded {
        let at = At { target: self.target, base, pair };
        self.bounding.of_list(at, self.attacks.attack, slopes, flips, &self.patience)
    }

    /// Slopes with a better bound for the flips that are listed.
    fn climbed(
        &mut self,
        base: &Base,
        pair: (ClassId, ClassId),
        bounded: &Bounded,
        from: &UnitSlopes,
    ) -> Option<UnitSlopes> {
        let goal = (self.attacks.best.margin() - self.bounding.linear.level).max(2.0 * bounded.error);
        let at = At { target: self.target, base, pair };
        self.bounding.climb(at, self.attacks.attack, bounded, from, goal, &self.patience)
    }

    /// Splits a subproblem by the flips that are made next.
    fn split(&mut self, base: &Base, pair: (ClassId, ClassId), bounded: Bounded, excluded: &[SlicedFlip]) -> Outcome {
        let needed = bounded.needed();
        let Bounded { error, constant, gains, threshold, .. } = bounded;
        let complete = threshold < needed;
        let floor = if complete { 0.0 } else { threshold.max(0.0) };
        let listed: Vec<(f64, SlicedFlip)> = gains
            .into_iter()
            .filter(|&(gain, _)| gain.is_nan() || if complete { gain >= needed } else { gain > floor })
            .collect();
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
        if complete || is_above(constant - base.left as f64 * floor, error) {
            Outcome::Closed
        } else {
            Outcome::Open(Obstacle::Overflow)
        }
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
        let bytes = Base::bytes(self.target);
        if let Some(obstacle) = self.patience.obstacle(self.held + bytes) {
            return Outcome::Open(obstacle);
        }
        if self.attacks.attempt(flips.iter().copied()) {
            return Outcome::Found;
        }
        let base = Base::tried(self.target, self.attacks.attack, self.attacks.y, flips);
        self.held += bytes;
        self.bounding.cones.clear();
        let mut excluded = [excluded, &base.flips].concat();
        excluded.sort_unstable();
        let outcome = self.bounded_child(&base, pair, list, &excluded);
        self.bounding.cones.clear();
        self.held -= bytes;
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
            return self.leaf_or_split(base, pair, bounded, excluded);
        };
        list.retain(|flip| base.capacities[flip.0 as usize] > 0);
        if base.left == 0 {
            list.clear();
        }
        let mut bounded = self.listed(base, pair, None, &list);
        if let Some(outcome) = self.settled(&bounded) {
            return outcome;
        }
        if !bounded.selected.is_empty() {
            let all: Vec<SlicedFlip> = base.flips.iter().chain(&bounded.selected).copied().collect();
            if self.attacks.attempt(all.iter().copied()) {
                return Outcome::Found;
            }
            if let Some(slopes) = self.climbed(base, pair, &bounded, &base.tangents) {
                bounded = self.listed(base, pair, Some(&slopes), &list);
                if let Some(outcome) = self.settled(&bounded) {
                    return outcome;
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
        if base.left == 0 {
            return Outcome::Closed;
        }
        let unlisted = bounded.threshold.max(0.0) * base.left as f64;
        if bounded.threshold > f64::NEG_INFINITY && !is_above(bounded.constant - unlisted, bounded.error) {
            // Flips that are not listed could be a counterexample without any of those that are.
            if let Some(obstacle) = self.patience.obstacle(self.held + self.target.bytes_of_all_flips()) {
                return Outcome::Open(obstacle);
            }
            let mut all = self.target.all_flips(base);
            all.retain(|flip| excluded.binary_search(flip).is_err());
            let bounded = self.listed(base, pair, None, &all);
            return self.settled(&bounded).unwrap_or_else(|| self.split(base, pair, bounded, excluded));
        }
        self.split(base, pair, bounded, excluded)
    }
}

/// Whether a bound proves that it is above `error`; NaN proves nothing.
fn is_above(bound: f64, error: f64) -> bool {
    bound > error
}

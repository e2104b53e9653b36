//! What decides a target: the bound of each class without branching, attacks, and branching where that leaves a class open.

use std::cell::LazyCell;
use std::rc::Rc;

use super::Decision;
use super::base::{Base, Knows};
use super::bound::{At, Bounding};
use super::bounded::Bounded;
use super::branch::Signs;
use super::exchange::exchange;
use super::lines::{Lines, tangents};
use super::proof::{Prover, SHORT};
use super::subproblem::Subproblem;
use super::target::Target;
use crate::certificate::{Bound, Obstacle};
use crate::engines::best::Attacks;
use crate::engines::fast::Dual;
use crate::engines::patience::Patience;
use crate::ids::ClassId;
use crate::proof::{Proof, Proofs};
use crate::settings::Engine;
use crate::slice::{LeftOut, SlicedFlip};

/// How a subproblem ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// No set of it is a counterexample.
    Closed,
    /// A witness was found.
    Found,
    /// Neither, because of a limit.
    Open(Obstacle),
}

/// Decides the target of `attacks`, class by class: `margins` has lower bounds and gets better ones. `dual` is asked of classes that
/// stay open without branching, if it was not before.
///
/// With `proofs`, classes are first tried with the bound that a checker has, and those that it can show with a short proof are listed.
///
/// # Errors
/// If no witness was found, and the rest may depend on what the slice leaves out.
pub(crate) fn decide(
    margins: &mut [Option<Bound>],
    attacks: &mut Attacks,
    dual: Option<&mut Dual>,
    proofs: Option<&mut Proofs>,
    patience: Patience,
) -> Result<Decision, LeftOut> {
    if !attacks.shared.overflow_error.is_finite() {
        return Ok(Decision { obstacle: Obstacle::Overflow, ..Decision::nothing() });
    }
    let target = Target::new(attacks.shared, attacks.slice);
    let decision = decide_around(&target, margins, attacks, dual, proofs, patience);
    if !attacks.best.succeeds() {
        target.check_left_out()?;
    }
    Ok(decision)
}

/// The same around a target, as far as nothing depends on what its slice leaves out.
fn decide_around(
    target: &Target,
    margins: &mut [Option<Bound>],
    attacks: &mut Attacks,
    dual: Option<&mut Dual>,
    mut proofs: Option<&mut Proofs>,
    patience: Patience,
) -> Decision {
    let mut decision = Decision::nothing();
    let y = attacks.y;
    let bare = proofs.is_some().then(|| Base::clean(target, y, Knows::Nothing));
    let base = LazyCell::new(|| Base::clean(target, y, Knows::Bounds));
    let first = bare.as_ref().unwrap_or_else(|| &base);
    let mut classes: Vec<usize> =
        (0..margins.len()).filter(|&k| margins[k].is_some_and(|margin| !margin.is_positive())).collect();
    classes.sort_by(|&a, &b| first.margin(ClassId(a as u32)).total_cmp(&first.margin(ClassId(b as u32))));
    let mut search = Search::new(target, attacks, patience);
    let mut open: Vec<(ClassId, Root)> = Vec::new();
    if let Some(&k) = classes.first().filter(|_| first.rows.is_some() && patience.obstacle(search.held).is_none()) {
        let at = At { target, base: first, pair: (y, ClassId(k as u32)) };
        let flips = search.bounding.steep_of_rows(at);
        if search.attacks.attempt(flips.into_iter()) {
            return Decision { engine: Engine::Tight, ..decision };
        }
    }
    for k in classes {
        if target.check_left_out().is_err() {
            return decision;
        }
        if let Some(obstacle) = patience.obstacle(search.held) {
            open.push((ClassId(k as u32), Root::unknown(obstacle)));
            continue;
        }
        decision.engine = decision.engine.max(Engine::Tight);
        if let Some((bare, proofs)) = bare.as_ref().zip(proofs.as_deref_mut()) {
            let proven = search.proven(bare, ClassId(k as u32));
            decision.branches = search.branches;
            if search.branches > 0 {
                decision.engine = Engine::Complete;
            }
            if search.attacks.best.succeeds() {
                return decision;
            }
            if let Some((proof, shown)) = proven {
                margins[k] = Some(shown);
                proofs.insert(ClassId(k as u32), proof);
                continue;
            }
        }
        let root = search.root(&base, ClassId(k as u32));
        margins[k] = margins[k].map(|known| known.max(root.lower));
        match root.outcome {
            Outcome::Found => return decision,
            Outcome::Closed => margins[k] = margins[k].map(|known| known.max(Bound::Positive)),
            Outcome::Open(_) => open.push((ClassId(k as u32), root)),
        }
    }
    // The dual of a network with more layers needs all units. Branching does without it, but it is the last word where there is none.
    let has_units = target.slice.left_out_nodes().is_none();
    if dual.is_some() && !open.is_empty() && !has_units && !patience.branch {
        target.ask_for_more();
        return decision;
    }
    if let Some(dual) = dual.filter(|_| !open.is_empty() && has_units) {
        dual.begin(search.attacks.slice, search.attacks.y);
        for &(k, _) in &open {
            let attacks = &mut *search.attacks;
            let lower = dual.lower_bound(attacks.slice, attacks.y, k).lower();
            if !dual.sees_enough(attacks.slice, attacks.y, k) {
                target.ask_for_more();
                return decision;
            }
            margins[k.index()] = margins[k.index()].map(|known| known.max(lower));
            if !lower.is_positive() && attacks.attempt(dual.selection().best().iter().map(|&(_, flip)| flip)) {
                return decision;
            }
        }
    }
    open.retain(|(k, _)| margins[k.index()].is_some_and(|margin| !margin.is_positive()));
    let open_classes = open.len();
    for (place, (k, root)) in open.into_iter().enumerate() {
        if target.check_left_out().is_err() {
            return decision;
        }
        let mut outcome = root.outcome;
        if let Some((base, lines, bounded)) = root.rest.filter(|_| patience.branch) {
            decision.engine = Engine::Complete;
            search.patience = patience.first_part(open_classes - place - 1);
            let lower;
            (outcome, lower) = search.branch(Subproblem::all(base, (search.attacks.y, k), lines, &bounded), bounded);
            margins[k.index()] = margins[k.index()].map(|known| known.max(lower));
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

/// How far lower bounds are raised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Raised {
    /// Up to the margin of the best attack, beyond which the smallest one cannot be.
    Smallest,
    /// Each up to the margin that its own class has under the best attack, or without one.
    Each,
}

/// Raises the lower bounds in `margins` as far as they go without branching. Nothing happens where numbers may overflow, or to what is
/// left at a limit.
pub(crate) fn tighten(margins: &mut [Option<Bound>], attacks: &mut Attacks, of: Raised, patience: Patience) {
    if !attacks.shared.overflow_error.is_finite() {
        return;
    }
    let target = Target::new(attacks.shared, attacks.slice);
    let base = Base::clean(&target, attacks.y, Knows::Bounds);
    let mut search = Search::new(&target, attacks, patience);
    for (k, margin) in margins.iter_mut().enumerate() {
        let k = ClassId(k as u32);
        let level = match of {
            Raised::Smallest => search.attacks.best.margin(),
            Raised::Each => base.margin(k).min(search.attacks.margin_under_best(k)),
        };
        let Some(known) = margin.as_mut().filter(|known| known.value() < level) else { continue };
        if patience.obstacle(search.held).is_none() {
            search.aim = Aim::Highest;
            search.bounding.linear.level = level;
            *known = known.max(search.root(&base, k).lower);
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

pub(super) struct Search<'s, 't, 'b, 'a> {
    pub(super) target: &'s Target<'t>,
    pub(super) attacks: &'s mut Attacks<'b, 'a>,
    pub(super) patience: Patience<'s>,
    pub(super) bounding: Bounding,
    pub(super) branches: u64,
    aim: Aim,
    /// Bytes of the base point without flips and of the subproblems that are open.
    pub(super) held: usize,
    /// The base point that the cones are of.
    pub(super) around: Option<Rc<Base>>,
    pub(super) signs: Signs,
    /// Whether branching looks at real values at ends of their ranges alone, since others keep it from closing.
    pub(super) only_ends: bool,
}

/// What is known of a class without branching.
struct Root {
    outcome: Outcome,
    lower: Bound,
    /// From where to branch, if it is open and no limit was reached.
    rest: Option<(Base, Option<Lines>, Bounded)>,
}

impl Root {
    /// Nothing is known, because of a limit.
    fn unknown(obstacle: Obstacle) -> Self {
        Self { outcome: Outcome::Open(obstacle), lower: Bound::Unknown, rest: None }
    }
}

impl<'s, 't, 'b, 'a> Search<'s, 't, 'b, 'a> {
    pub(super) fn new(target: &'s Target<'t>, attacks: &'s mut Attacks<'b, 'a>, patience: Patience<'s>) -> Self {
        let held = Base::bytes(target);
        Self {
            target,
            attacks,
            patience,
            bounding: Bounding::default(),
            branches: 0,
            aim: Aim::Verdict,
            held,
            around: None,
            signs: Signs::default(),
            only_ends: false,
        }
    }

    /// The bound of one class over all sets, as good as it gets without branching, and attacks.
    fn root(&mut self, base: &Base, k: ClassId) -> Root {
        let pair = (self.attacks.y, k);
        let mut bounded = self.screened(base, pair, None, &[], None);
        let mut root = Root::unknown(Obstacle::Engine);
        if self.ends(&mut root, &bounded) {
            return root;
        }
        let mut lines = self.climbed(base, pair, &bounded, tangents(base));
        if let Some(lines) = &lines {
            bounded = self.screened(base, pair, Some(lines), &[], None);
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
        self.bounding.linear.compute(At { target: self.target, base, pair }, lines.as_ref());
        let base = self.bounding.tuned(self.target, base, &bounded);
        bounded = self.screened(&base, pair, lines.as_ref(), &[], None);
        if !self.ends(&mut root, &bounded) {
            let from = lines.clone().unwrap_or_else(|| tangents(&base));
            if let Some(better) = self.climbed(&base, pair, &bounded, from) {
                bounded = self.screened(&base, pair, Some(&better), &[], None);
                lines = Some(better);
            }
            if !self.ends(&mut root, &bounded) {
                root.rest = Some((base, lines, bounded));
            }
        }
        self.bounding.cones.clear();
        root
    }

    /// A short proof of a class for a checker, if there is one, and what it shows.
    fn proven(&mut self, base: &Base, k: ClassId) -> Option<(Proof, Bound)> {
        let most = if self.patience.branch { SHORT } else { 1 };
        let Self { target, attacks, patience, bounding, .. } = self;
        let mut prover = Prover { target, attacks, patience: *patience, bounding, bounds: 0, most };
        let proof = prover.prove(base, k);
        // No bound was computed if time is up.
        self.branches += prover.bounds.saturating_sub(1);
        proof
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
    pub(super) fn settled(&self, bounded: &Bounded) -> Option<Outcome> {
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
        let level = self.bounding.linear.level;
        let lower = if level == 0.0 { bounded.lower() } else { (bounded.lower() + level).next_down() };
        if bounded.value == f64::NEG_INFINITY { Bound::Unknown } else { Bound::AtLeast(lower) }
    }

    /// The bound by screening around a base point; flips that attain it are tried.
    pub(super) fn screened(
        &mut self,
        base: &Base,
        pair: (ClassId, ClassId),
        lines: Option<&Lines>,
        excluded: &[SlicedFlip],
        from: Option<f64>,
    ) -> Bounded {
        let Self { target, attacks, patience, bounding, aim, .. } = self;
        let Attacks { attack, best, slice, y, .. } = &mut **attacks;
        bounding.by_screening(At { target, base, pair }, lines, (excluded, from), patience, |flips| {
            let found = attack.margin(slice, *y, base.with(flips));
            best.improve(found, base.with(flips));
            *aim == Aim::Verdict && best.succeeds()
        })
    }

    /// The bound over sets of these flips alone.
    pub(super) fn listed(
        &mut self,
        base: &Base,
        pair: (ClassId, ClassId),
        lines: Option<&Lines>,
        flips: &[SlicedFlip],
    ) -> Bounded {
        let at = At { target: self.target, base, pair };
        self.bounding.of_list(at, lines, flips, &self.patience)
    }

    /// Lines with a better bound for the flips that are listed.
    pub(super) fn climbed(
        &mut self,
        base: &Base,
        pair: (ClassId, ClassId),
        bounded: &Bounded,
        from: Lines,
    ) -> Option<Lines> {
        let goal = (self.attacks.best.margin() - self.bounding.linear.level).max(2.0 * bounded.error);
        let at = At { target: self.target, base, pair };
        self.bounding.climb(at, bounded, from, goal, &self.patience)
    }
}

//! Proofs for a checker that knows one bound, that of first order around a base point (Lemma 52 of `docs/maths.md`).

use super::base::{Base, Knows};
use super::bound::{At, Bounding};
use super::bounded::Bounded;
use super::lines::{Lines, tangents};
use super::target::Target;
use crate::certificate::Bound;
use crate::engines::best::Attacks;
use crate::engines::patience::Patience;
use crate::ids::{ClassId, NodeId};
use crate::proof::{Branch, Proof, Proofs, UnitSlope};
use crate::slice::{LeftOut, SlicedFlip, reversed};

/// Most flips of a proof within one another: readers of JSON follow 128 levels, three a flip.
const DEEPEST: usize = 40;

/// Smaller margins are less than what a checker takes off for what may underflow at each step.
const SMALLEST: f64 = 1e-280;

/// Most bounds of a short proof; 99 of 100 take fewer.
pub(super) const SHORT: u64 = 64;

/// What a climb is after, as a part of the margin of the base point.
const GOAL: f64 = 0.1;

/// What a checker needs for a target, and what that shows.
pub(crate) struct Proven {
    pub(crate) proofs: Proofs,
    pub(crate) margins: Vec<Option<Bound>>,
}

/// Proofs that the margins of a robust target are positive, for the classes for which a checker needs one, given those that are known.
/// Nothing if a limit is reached, or margins are too small for the checker.
///
/// # Errors
/// If it may depend on what the slice leaves out.
pub(crate) fn prove(
    margins: &[Option<Bound>],
    attacks: &mut Attacks,
    known: Proofs,
    patience: Patience,
) -> Result<Option<Proven>, LeftOut> {
    if !attacks.shared.overflow_error.is_finite() {
        return Ok(None);
    }
    let mut proven = Proven { proofs: known, margins: margins.to_vec() };
    if margins.iter().flatten().count() > proven.proofs.len() {
        let target = Target::new(attacks.shared, attacks.slice);
        let base = Base::clean(&target, attacks.y, Knows::Nothing);
        let bounding = &mut Bounding::default();
        let mut prover = Prover { target: &target, attacks, patience, bounding, bounds: 0, most: u64::MAX };
        for (k, margin) in (0..).map(ClassId).zip(&mut proven.margins) {
            if margin.is_some() && !proven.proofs.contains_key(&k) {
                let proof = prover.prove(&base, k);
                target.check_left_out()?;
                let Some((proof, shown)) = proof else { return Ok(None) };
                *margin = Some(shown);
                proven.proofs.insert(k, proof);
            }
        }
    }
    proven.proofs.retain(|_, proof| !proof.is_empty());
    Ok(Some(proven))
}

pub(super) struct Prover<'s, 't, 'b, 'a> {
    pub(super) target: &'s Target<'t>,
    pub(super) attacks: &'s mut Attacks<'b, 'a>,
    pub(super) patience: Patience<'s>,
    pub(super) bounding: &'s mut Bounding,
    /// Bounds that were computed, and most that may be.
    pub(super) bounds: u64,
    pub(super) most: u64,
}

impl Prover<'_, '_, '_, '_> {
    /// A proof for all sets around a base point without flips, and what it shows. `None` at a limit, where margins are too small for the
    /// checker, and where a witness was found.
    pub(super) fn prove(&mut self, base: &Base, k: ClassId) -> Option<(Proof, Bound)> {
        // What is known of flips is of another base point, before and after.
        self.bounding.cones.clear();
        let proof = self.proof(base, (self.attacks.y, k), Vec::new(), None);
        self.bounding.cones.clear();
        self.bounding.gives_up = false;
        proof
    }

    /// The same for the sets around a base point that have no flip of a sorted list, beginning with these lines.
    fn proof(
        &mut self,
        base: &Base,
        pair: (ClassId, ClassId),
        mut excluded: Vec<SlicedFlip>,
        mut lines: Option<Lines>,
    ) -> Option<(Proof, Bound)> {
        let (mut branches, mut climbs) = (Vec::new(), true);
        loop {
            if self.bounds == self.most || self.patience.obstacle(size_of_val(&excluded[..])).is_some() {
                return None;
            }
            let at = At { target: self.target, base, pair };
            let bounded;
            (bounded, lines) = self.bound(at, lines, &excluded, &mut climbs);
            if self.attacks.best.succeeds() {
                return None;
            }
            if let Some(shown) = shown(base, &bounded) {
                let shown = if branches.is_empty() { shown } else { Bound::Positive };
                return Some((Proof { branches, slopes: slopes(at, lines.as_ref()) }, shown));
            }
            let next = self.next(base, &bounded, &excluded, 1 + branches.len() / 2);
            self.target.check_left_out().ok()?;
            if next.is_empty() {
                // With no flips left, the checker has exact arithmetic.
                let proof = Proof { branches, slopes: Vec::new() };
                let is_shown = base.freed.is_empty() && self.attacks.holds(pair.1, base.flips.iter().copied());
                return is_shown.then_some((proof, Bound::Positive));
            }
            // Rounding may hide a margin that is large enough, but not add to one by more than its error.
            if base.flips.len() == DEEPEST || base.margin(pair.1) + bounded.error.abs() < SMALLEST {
                return None;
            }
            for flip in next {
                branches.push(self.branch(base, pair, flip, &excluded, lines.clone())?);
                exclude(&mut excluded, flip);
                if self.target.shared.network.graph().values().is_some() {
                    exclude(&mut excluded, reversed(flip));
                }
            }
        }
    }

    /// The bound of a checker with the tangents, or the lines that were best before, and where that shows nothing, if there was no climb yet,
    /// with those that one finds; and the lines, if they are not the tangents.
    fn bound(
        &mut self,
        at: At,
        lines: Option<Lines>,
        excluded: &[SlicedFlip],
        climbs: &mut bool,
    ) -> (Bounded, Option<Lines>) {
        // The first bound is not given up, for the sake of the flips that attain it.
        self.bounding.gives_up = self.bounds > 0;
        self.bounds += 1;
        let bounded = self.screened(at, lines.as_ref(), excluded);
        let is_final = self.attacks.best.succeeds() || shown(at.base, &bounded).is_some() || bounded.cut.is_some();
        if is_final || !*climbs || self.is_brief(at.base) || at.base.left == 0 {
            return (bounded, lines);
        }
        *climbs = false;
        let goal = GOAL * at.base.margin(at.pair.1);
        let from = lines.clone().unwrap_or_else(|| tangents(at.base));
        let Some(mut better) = self.bounding.climb(at, &bounded, from, goal, &self.patience) else {
            return (bounded, lines);
        };
        for ((layer, better), tangents) in better.iter_mut().enumerate().zip(&at.base.tangents) {
            let least = at.target.shared.network.layers()[layer].activation().slope();
            let lines = better.values_mut().iter_mut().zip(tangents.values());
            lines
                .filter(|(line, tangent)| line.slope != **tangent)
                .for_each(|(line, _)| line.slope = rounded(line.slope).clamp(least, 1.0));
        }
        let raised = self.screened(at, Some(&better), excluded);
        if raised.value > bounded.value { (raised, Some(better)) } else { (bounded, lines) }
    }

    /// Whether a proof does without lines around a base point: where rows are divided, they cost more than the branches that they save in
    /// a short proof, unless it is the base point of all sets.
    fn is_brief(&self, base: &Base) -> bool {
        base.rows.is_some() && !base.flips.is_empty() && self.most <= SHORT
    }

    /// The bound by screening; flips that attain it are tried.
    fn screened(&mut self, at: At, lines: Option<&Lines>, excluded: &[SlicedFlip]) -> Bounded {
        let Attacks { attack, best, slice, y, .. } = &mut *self.attacks;
        self.bounding.by_screening(at, lines, (excluded, None), &self.patience, |flips| {
            best.improve(attack.margin(slice, *y, at.base.with(flips)), at.base.with(flips));
            best.succeeds()
        })
    }

    /// A proof for the sets that have a flip as well, beginning with the lines of those that may have it.
    fn branch(
        &mut self,
        base: &Base,
        pair: (ClassId, ClassId),
        flip: SlicedFlip,
        excluded: &[SlicedFlip],
        lines: Option<Lines>,
    ) -> Option<Branch> {
        let flips = [&base.flips[..], &[flip]].concat();
        if self.attacks.attempt(flips.iter().copied()) {
            return None;
        }
        let with = Base::tried(self.target, self.attacks.attack, self.attacks.y, flips, Knows::Nothing);
        let mut others = [excluded, &with.flips, &with.freed].concat();
        others.sort_unstable();
        others.dedup();
        self.bounding.cones.clear();
        let lines = lines.filter(|_| !self.is_brief(&with)).map(|lines| moved(lines, base, &with));
        let (proof, _) = self.proof(&with, pair, others, lines)?;
        self.bounding.cones.clear();
        Some(Branch { flip: self.attacks.shared.flip(self.attacks.slice, flip), proof })
    }

    /// At most so many flips to branch on, of different entries: those that gain most, or any if none is listed. Bounds that show nothing take
    /// longest, so that the more were not enough, the more come at once.
    fn next(&self, base: &Base, bounded: &Bounded, excluded: &[SlicedFlip], most: usize) -> Vec<SlicedFlip> {
        let may = |flip: &SlicedFlip| {
            base.left > 0 && base.capacities[flip.0 as usize] > 0 && excluded.binary_search(flip).is_err()
        };
        let mut next: Vec<SlicedFlip> = Vec::new();
        for flip in bounded.gains.iter().map(|&(_, flip)| flip).chain(bounded.selected.iter().copied()).filter(may) {
            if next.len() < most && !next.contains(&flip) && !next.contains(&reversed(flip)) {
                next.push(flip);
            }
        }
        if next.is_empty() {
            next.extend(self.target.all_flips(base).into_iter().find(may));
        }
        next
    }
}

/// The lines of a base point for another one: tangents become those of that one.
fn moved(mut lines: Lines, from: &Base, to: &Base) -> Lines {
    for (lines, (from, to)) in lines.iter_mut().zip(from.tangents.iter().zip(&to.tangents)) {
        let tangents = from.values().iter().zip(to.values());
        lines
            .values_mut()
            .iter_mut()
            .zip(tangents)
            .filter(|(line, (from, _))| line.slope == **from)
            .for_each(|(line, (_, &to))| line.slope = to);
    }
    lines
}

/// A slope that takes few digits to write.
fn rounded(slope: f64) -> f64 {
    (100.0 * slope).round() / 100.0
}

/// The slopes that are not those of the tangents.
fn slopes(At { target, base, .. }: At, lines: Option<&Lines>) -> Vec<UnitSlope> {
    let mut slopes = Vec::new();
    for ((layer, lines), tangents) in lines.into_iter().flatten().enumerate().zip(&base.tangents) {
        for (row, &node) in target.slice.level(layer + 1).iter().enumerate() {
            for (unit, (line, &tangent)) in lines.row(row).iter().zip(tangents.row(row)).enumerate() {
                if line.slope != tangent {
                    let (layer, node, unit) = (layer as u32, NodeId(node), unit as u32);
                    slopes.push(UnitSlope { layer, node, unit, slope: line.slope });
                }
            }
        }
    }
    slopes
}

fn exclude(excluded: &mut Vec<SlicedFlip>, flip: SlicedFlip) {
    let place = excluded.binary_search(&flip).unwrap_or_else(|place| place);
    excluded.insert(place, flip);
}

/// What a checker can show where the engine has this bound: it rounds otherwise, but by less than what is taken off.
fn shown(base: &Base, bounded: &Bounded) -> Option<Bound> {
    let shown = bounded.lower() - 16.0 * bounded.error.abs() - 1e-9 * bounded.constant.abs();
    // Where rows are divided, a checker takes long for more than the sign.
    let said = if base.rows.is_none() { Bound::AtLeast(shown) } else { Bound::Positive };
    (bounded.cut.is_none() && shown > SMALLEST).then_some(said)
}

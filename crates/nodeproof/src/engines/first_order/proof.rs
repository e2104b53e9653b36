//! Proofs for a checker that knows one bound, that of first order around a base point with tangents (Lemma 52 of `docs/maths.md`).

use std::collections::BTreeMap;

use super::base::{Base, Knows};
use super::bound::{At, Bounding};
use super::bounded::Bounded;
use super::target::Target;
use crate::certificate::Bound;
use crate::engines::best::Attacks;
use crate::engines::patience::Patience;
use crate::ids::ClassId;
use crate::proof::{Branch, Proof};
use crate::slice::{SlicedFlip, reversed};

/// Most flips of a proof within one another: readers of JSON follow 128 levels, three a flip.
const DEEPEST: usize = 40;

/// What a checker needs for a target, and what that shows.
pub(crate) struct Proven {
    pub(crate) proofs: BTreeMap<ClassId, Proof>,
    pub(crate) margins: Vec<Option<Bound>>,
}

/// Proofs that the margins of a robust target are positive, for the classes for which a checker needs one, given those that it shows
/// anyway. `None` if a limit is reached.
pub(crate) fn prove(
    margins: &[Option<Bound>],
    attacks: &mut Attacks,
    plain: &[ClassId],
    patience: Patience,
) -> Option<Proven> {
    if !attacks.shared.overflow_error.is_finite() {
        return None;
    }
    let mut proven = Proven { proofs: BTreeMap::new(), margins: margins.to_vec() };
    if margins.iter().flatten().count() == plain.len() {
        return Some(proven);
    }
    let target = Target::new(attacks.shared, attacks.slice);
    let (base, y) = (Base::clean(&target, attacks.y, Knows::Nothing), attacks.y);
    let mut prover = Prover { target: &target, attacks, patience, bounding: Bounding::default() };
    for (k, margin) in (0..).map(ClassId).zip(&mut proven.margins) {
        if margin.is_some() && !plain.contains(&k) {
            let (proof, shown) = prover.proof(&base, (y, k), Vec::new())?;
            *margin = Some(shown);
            proven.proofs.extend((!proof.is_empty()).then_some((k, proof)));
        }
        prover.bounding.cones.clear();
    }
    Some(proven)
}

struct Prover<'s, 't, 'b, 'a> {
    target: &'s Target<'t>,
    attacks: &'s mut Attacks<'b, 'a>,
    patience: Patience<'s>,
    bounding: Bounding,
}

impl Prover<'_, '_, '_, '_> {
    /// A proof for all sets around a base point that have no flip of a sorted list, and what it shows.
    fn proof(
        &mut self,
        base: &Base,
        pair: (ClassId, ClassId),
        mut excluded: Vec<SlicedFlip>,
    ) -> Option<(Proof, Bound)> {
        let mut branches = Vec::new();
        loop {
            if self.patience.obstacle(size_of_val(&excluded[..])).is_some() {
                return None;
            }
            let at = At { target: self.target, base, pair };
            let bounded = self.bounding.by_screening(at, None, (&excluded, None), &self.patience, |_| false);
            if let Some(shown) = shown(base, &bounded) {
                let shown = if branches.is_empty() { shown } else { Bound::Positive };
                return Some((Proof { branches }, shown));
            }
            // With no flips left, the checker has exact arithmetic, as the engine did.
            let Some(flip) = self.next(base, &bounded, &excluded) else {
                return base.freed.is_empty().then_some((Proof { branches }, Bound::Positive));
            };
            if base.flips.len() == DEEPEST {
                return None;
            }
            let flips = [&base.flips[..], &[flip]].concat();
            let Attacks { shared, slice, attack, y, .. } = &mut *self.attacks;
            let _ = attack.margin(slice, *y, flips.iter().copied());
            let with = Base::tried(self.target, attack, *y, flips, Knows::Nothing);
            let flip_of_graph = shared.flip(slice, flip);
            let mut others = [&excluded[..], &with.flips, &with.freed].concat();
            others.sort_unstable();
            others.dedup();
            self.bounding.cones.clear();
            let (proof, _) = self.proof(&with, pair, others)?;
            self.bounding.cones.clear();
            branches.push(Branch { flip: flip_of_graph, proof });
            exclude(&mut excluded, flip);
            if self.target.shared.network.graph().values().is_some() {
                exclude(&mut excluded, reversed(flip));
            }
        }
    }

    /// The flip to branch on: the one that gains most, or any if none is listed.
    fn next(&self, base: &Base, bounded: &Bounded, excluded: &[SlicedFlip]) -> Option<SlicedFlip> {
        let may = |flip: &SlicedFlip| {
            base.left > 0 && base.capacities[flip.0 as usize] > 0 && excluded.binary_search(flip).is_err()
        };
        let listed = bounded.gains.iter().map(|&(_, flip)| flip).chain(bounded.selected.iter().copied()).find(may);
        listed.or_else(|| self.target.all_flips(base).into_iter().find(may))
    }
}

fn exclude(excluded: &mut Vec<SlicedFlip>, flip: SlicedFlip) {
    let place = excluded.binary_search(&flip).unwrap_or_else(|place| place);
    excluded.insert(place, flip);
}

/// What a checker can show where the engine has this bound: it rounds otherwise, but by less than what is taken off.
pub(super) fn shown(base: &Base, bounded: &Bounded) -> Option<Bound> {
    let shown = bounded.lower() - 16.0 * bounded.error.abs() - 1e-9 * bounded.constant.abs();
    // Where rows are divided, a checker takes long for more than the sign.
    let said = if base.rows.is_none() { Bound::AtLeast(shown) } else { Bound::Positive };
    (bounded.cut.is_none() && shown > 0.0).then_some(said)
}

//! Subproblems of branch and bound (Definition 10 of `docs/maths.md`).

use std::rc::Rc;

use super::base::Base;
use super::bounded::Bounded;
use super::cones::Cones;
use super::lines::{Line, Lines, tangents};
use crate::ids::ClassId;
use crate::slice::SlicedFlip;

/// Sets of flips: those of the base point, and others of those that are possible.
pub(super) struct Subproblem {
    pub(super) base: Rc<Base>,
    pub(super) pair: (ClassId, ClassId),
    /// What stands for activations; phases and ends hold in all sets.
    pub(super) lines: Lines,
    pub(super) possible: Possible,
    /// What the margin is at least in all sets, above the level.
    pub(super) lower: f64,
    /// Flips that were listed when its lines were climbed to; 0 if the base point or a sign has changed since.
    pub(super) climbed: usize,
    /// What was known of the flips of its base point when it was put aside.
    pub(super) cones: Option<Cones>,
}

/// Which flips may be made beside those of the base point.
#[derive(Clone)]
pub(super) enum Possible {
    /// These alone.
    These(Vec<SlicedFlip>),
    /// All but these; and the gain from which on they are listed at first.
    AllBut(Vec<SlicedFlip>, f64),
}

impl Subproblem {
    /// All sets, given a base point without flips, lines other than the tangents if there are any, and the bound that they lead to.
    pub(super) fn all(base: Base, pair: (ClassId, ClassId), lines: Option<Lines>, bounded: &Bounded) -> Self {
        let lines = lines.unwrap_or_else(|| tangents(&base));
        let possible = Possible::AllBut(Vec::new(), bounded.threshold);
        Self { base: Rc::new(base), pair, lines, possible, lower: bounded.lower(), climbed: 0, cones: None }
    }

    /// Those of its sets in which a unit has this sign.
    pub(super) fn with_sign(&self, (layer, at): (usize, usize), on: bool) -> Self {
        let mut lines = self.lines.clone();
        lines[layer].values_mut()[at].phase = Some(on);
        let possible = self.possible.clone();
        Self {
            base: Rc::clone(&self.base),
            pair: self.pair,
            lines,
            possible,
            lower: self.lower,
            climbed: 0,
            cones: None,
        }
    }

    /// Those of its sets that do not have a flip.
    pub(super) fn without(mut self, flip: SlicedFlip, bounded: &Bounded) -> Self {
        self.lower = self.lower.max(bounded.lower());
        match &mut self.possible {
            Possible::These(flips) => flips.retain(|&other| other != flip),
            Possible::AllBut(excluded, _) => {
                let place = excluded.binary_search(&flip).unwrap_or_else(|place| place);
                excluded.insert(place, flip);
            }
        }
        self
    }

    /// Those of its sets that have the flips of another base point.
    pub(super) fn around(&self, base: Base) -> Self {
        let possible = match &self.possible {
            Possible::These(flips) => {
                let may = |flip: &&SlicedFlip| {
                    let is_made = base.flips.contains(flip) || base.opposite.contains(flip);
                    base.left > 0 && base.capacities[flip.0 as usize] > 0 && !is_made
                };
                Possible::These(flips.iter().filter(may).copied().collect())
            }
            Possible::AllBut(excluded, threshold) => {
                let mut excluded = [&excluded[..], &base.flips, &base.opposite].concat();
                excluded.sort_unstable();
                excluded.dedup();
                Possible::AllBut(excluded, *threshold)
            }
        };
        Self {
            base: Rc::new(base),
            pair: self.pair,
            lines: self.lines.clone(),
            possible,
            lower: self.lower,
            climbed: 0,
            cones: None,
        }
    }

    /// Bytes that it takes, about.
    pub(super) fn bytes(&self) -> usize {
        let flips = match &self.possible {
            Possible::These(flips) | Possible::AllBut(flips, _) => flips.len(),
        };
        let units: usize = self.lines.iter().map(|lines| lines.values().len()).sum();
        let cones = self.cones.as_ref().map_or(0, Cones::bytes);
        cones
            + flips * (size_of::<SlicedFlip>() + size_of::<(f64, SlicedFlip)>())
            + units * (size_of::<Line>() + Base::BYTES_OF_UNIT)
    }
}

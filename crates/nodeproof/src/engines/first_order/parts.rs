//! What single flips take of the margins of a target at most, for sums over many targets (Lemma 72 of `docs/maths.md`).
//!
//! With `margin_k ≥ constant_k − Σ_f gain_kf` around the attributes as they are, a set that changes the class has `Σ_f part_f ≥ 1` with
//!
//! ```text
//! part_f = max_k (gain_kf)₊ / (constant_k − error_k).
//! ```

use std::collections::BTreeMap;

use super::RAISE;
use super::base::{Base, Knows};
use super::bound::{At, Bounding};
use super::target::Target;
use crate::engines::patience::Patience;
use crate::ids::ClassId;
use crate::prepare::Shard;
use crate::slice::{Slice, SlicedFlip};

/// What flips of one row take at most.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RowParts {
    /// The node whose row it is.
    pub(crate) node: u32,
    /// What each flip takes at most that is not listed.
    pub(crate) cap: f64,
    /// Attributes, with [`DOWN`](crate::slice::DOWN) where it is lowered, and parts; ascending.
    pub(crate) flips: Vec<(u32, f64)>,
}

/// How many flips are listed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Listed {
    /// Those that may take at least this part,
    pub(crate) floor: f64,
    /// and no more than this many of a row.
    pub(crate) most: usize,
}

/// The parts of the target of a slice that has class y, given the other classes that may overtake it; of each row that may be flipped at.
/// `None` if none are known.
pub(crate) fn parts(
    shared: &Shard,
    slice: &Slice,
    y: ClassId,
    classes: &[ClassId],
    listed: Listed,
    patience: &Patience,
) -> Option<Vec<RowParts>> {
    if !shared.overflow_error.is_finite() || shared.network.graph().kind().is_normalised() {
        return None;
    }
    let target = Target::new(shared, slice);
    let base = Base::clean(&target, y, Knows::Bounds);
    let mut rows = Rows::new(&target);
    let mut bounding = Bounding::default();
    for &k in classes {
        let at = At { target: &target, base: &base, pair: (y, k) };
        let parts = bounding.parts(at, listed, patience)?;
        if parts.reach_one(base.left) {
            rows.add(parts);
        }
    }
    Some(rows.merged(&target))
}

/// Those of one class.
pub(super) struct ClassParts {
    /// For each node of level 0 what a flip takes at most that is not listed.
    pub(super) caps: Vec<f64>,
    pub(super) flips: Vec<(SlicedFlip, f64)>,
}

impl ClassParts {
    /// Whether so many flips may take the whole margin.
    fn reach_one(&self, most: usize) -> bool {
        let cap = self.caps.iter().copied().fold(0.0, f64::max);
        let mut parts: Vec<f64> = self.flips.iter().map(|&(_, part)| part).filter(|&part| part > cap).collect();
        parts.sort_by(|a, b| b.total_cmp(a));
        parts.truncate(most);
        let rest = (most - parts.len()) as f64 * cap;
        // What is not a number reaches anything.
        let stays_below = (parts.iter().sum::<f64>() + rest) * RAISE < 1.0;
        !stays_below
    }
}

/// The parts of all classes so far.
struct Rows {
    /// For each node of level 0 the largest cap.
    caps: Vec<f64>,
    of_classes: Vec<ClassParts>,
}

impl Rows {
    fn new(target: &Target) -> Self {
        Self { caps: vec![0.0; target.capacities.len()], of_classes: Vec::new() }
    }

    fn add(&mut self, parts: ClassParts) {
        self.caps.iter_mut().zip(&parts.caps).for_each(|(all, &cap)| *all = all.max(cap));
        self.of_classes.push(parts);
    }

    /// The largest over the classes; a flip that a class does not list takes as much as its cap says.
    fn merged(self, target: &Target) -> Vec<RowParts> {
        let mut largest: BTreeMap<SlicedFlip, (f64, usize)> = BTreeMap::new();
        for &(flip, part) in self.of_classes.iter().flat_map(|parts| &parts.flips) {
            let (all, times) = largest.entry(flip).or_default();
            (*all, *times) = (all.max(part), *times + 1);
        }
        let all_classes = self.of_classes.len();
        let mut rows: Vec<RowParts> = Vec::new();
        let mut listed = largest.into_iter().peekable();
        for (position, &node) in (0u32..).zip(target.slice.level(0)) {
            let cap = self.caps[position as usize];
            let mut flips = Vec::new();
            while let Some(((_, d), (part, times))) = listed.next_if(|((of, _), _)| *of == position) {
                flips.push((d, if times < all_classes { part.max(cap) } else { part }));
            }
            if target.capacities[position as usize] > 0 {
                rows.push(RowParts { node, cap, flips });
            }
        }
        rows
    }
}

//! The network around one target with its flips listed one by one.
//!
//! A *unit* is a hidden unit of the first layer at a node of level 1; a flip (n, d) moves unit (m, j) by
//! `a = P_mn σ W⁰_dj`. The deeper layers turn the margin into, or bound it from below by,
//!
//! ```text
//! margin ≥ constant + Σ_i c_i relu(z_i + Σ_f a_fi).
//! ```

use crate::dense::Matrix;
use crate::graph::{AttributeId, NodeId};
use crate::relaxation::Relaxation;
use crate::slice::{Slice, SlicedFlip};

/// For each node of level 0 the nodes of level 1 that aggregate it, with weights.
#[derive(Debug, Default)]
pub(super) struct Aggregators {
    offsets: Vec<u32>,
    entries: Vec<(u32, f64)>,
}

impl Aggregators {
    pub(super) fn new(slice: &Slice) -> Self {
        let mut lists: Vec<Vec<(u32, f64)>> = vec![Vec::new(); slice.level(0).len()];
        for m in 0..slice.level(1).len() {
            for (n, p) in slice.hop(0).row(m).filter(|&(_, p)| p != 0.0) {
                lists[n].push((m as u32, p));
            }
        }
        let mut all = Self { offsets: vec![0], entries: Vec::new() };
        for list in lists {
            all.entries.extend(list);
            all.offsets.push(all.entries.len() as u32);
        }
        all
    }

    pub(super) fn of(&self, position: u32) -> &[(u32, f64)] {
        let range = self.offsets[position as usize] as usize..self.offsets[position as usize + 1] as usize;
        &self.entries[range]
    }
}

/// One target and everything in sight of it, the same for all classes.
pub(super) struct Surroundings<'a> {
    pub(super) shared: &'a Relaxation<'a>,
    pub(super) slice: &'a Slice,
    pub(super) aggregators: Aggregators,
    /// Units of a node.
    pub(super) width: usize,
    /// Most flips at each node of level 0.
    pub(super) capacities: Vec<u32>,
    /// Most flips in all that can be made here.
    pub(super) most: usize,
}

impl<'a> Surroundings<'a> {
    pub(super) fn new(shared: &'a Relaxation<'a>, slice: &'a Slice) -> Self {
        let limits = shared.limits;
        Self {
            shared,
            slice,
            aggregators: Aggregators::new(slice),
            width: shared.network.layers()[0].bias().len(),
            capacities: slice.level(0).iter().map(|&n| limits.local(NodeId(n)) as u32).collect(),
            most: limits.flips_within(slice.level(0)),
        }
    }

    /// Whether the units' ReLU counts: without hidden layers they are the logits.
    pub(super) fn has_relu(&self) -> bool {
        self.shared.network.layers().len() > 1
    }

    /// Whether the margin is linear in the units' activations, so that no part changes their coefficients.
    pub(super) fn is_shallow(&self) -> bool {
        self.shared.network.layers().len() <= 2
    }

    /// Number of units.
    pub(super) fn units(&self) -> usize {
        self.slice.level(1).len() * self.width
    }

    /// Rows of level 1 in the region's matrices.
    pub(super) fn place(&self, m: usize) -> usize {
        self.shared.region.level(1).place(self.slice.level(1)[m])
    }

    /// +1 for a flip that adds its attribute, −1 for one that removes it, `None` for one that is not allowed.
    pub(super) fn sign(&self, flip: SlicedFlip) -> Option<f64> {
        let (limits, sign) = (self.shared.limits, self.shared.sign(self.slice, flip));
        let direction = if sign < 0.0 { limits.deletions() } else { limits.additions() };
        (direction && limits.flippable(AttributeId(flip.1))).then_some(sign)
    }

    /// Every flip that is allowed and moves something.
    pub(super) fn all_flips(&self) -> Vec<SlicedFlip> {
        let weight = self.shared.network.layers()[0].weight();
        let moving: Vec<u32> =
            (0..weight.rows() as u32).filter(|&d| weight.row(d as usize).iter().any(|&w| w != 0.0)).collect();
        let mut flips = Vec::new();
        for position in (0..self.slice.level(0).len() as u32).filter(|&p| self.capacities[p as usize] > 0) {
            flips.extend(moving.iter().map(|&d| (position, d)).filter(|&flip| self.sign(flip).is_some()));
        }
        flips
    }

    /// Pre-activations of all units on the graph as it is.
    pub(super) fn clean(&self) -> Vec<f64> {
        let clean: &Matrix = &self.shared.bounds.clean[0];
        (0..self.slice.level(1).len()).flat_map(|m| clean.row(self.place(m)).iter().copied()).collect()
    }
}

/// Flips, each with the units it moves. Those of a node stand together, in the order of falling potentials.
#[derive(Debug, Default)]
pub(super) struct Flips {
    pub(super) flips: Vec<SlicedFlip>,
    /// An upper bound on the gain of each, whatever the additive bound.
    pub(super) potentials: Vec<f64>,
    offsets: Vec<u32>,
    entries: Vec<(u32, f64)>,
    units: usize,
    /// For each unit its moves up and its moves down.
    by_unit: Vec<[Moves; 2]>,
}

/// Moves of one unit in one direction, with the flips that make them.
#[derive(Debug, Default, Clone)]
pub(super) struct Moves {
    /// The largest, largest first.
    pub(super) largest: Vec<(f64, u32)>,
    /// The largest of the others, 0 if there are none.
    pub(super) next: f64,
}

impl Moves {
    /// Sorts the moves and keeps about `enough`.
    fn sort(&mut self, enough: usize) {
        let falling = |a: &(f64, u32), b: &(f64, u32)| b.0.abs().total_cmp(&a.0.abs()).then(a.1.cmp(&b.1));
        if self.largest.len() > enough {
            let (_, next, _) = self.largest.select_nth_unstable_by(enough, falling);
            self.next = next.0;
            self.largest.truncate(enough);
        }
        self.largest.sort_unstable_by(falling);
    }
}

impl Flips {
    /// `potential` tells that of a flip, `matters` whether moves of a unit are kept.
    pub(super) fn new(
        around: &Surroundings,
        flips: Vec<SlicedFlip>,
        potential: impl Fn(SlicedFlip) -> f64,
        matters: impl Fn(usize) -> bool,
    ) -> Self {
        let mut flips: Vec<(f64, SlicedFlip)> = flips.into_iter().map(|flip| (potential(flip), flip)).collect();
        flips.sort_unstable_by(|a, b| a.1.0.cmp(&b.1.0).then(b.0.total_cmp(&a.0)).then(a.1.cmp(&b.1)));
        let weight = around.shared.network.layers()[0].weight();
        let mut all = Self { offsets: vec![0], units: around.units(), ..Self::default() };
        for &(_, flip) in &flips {
            let sign = around.sign(flip).unwrap_or(0.0);
            for &(m, p) in around.aggregators.of(flip.0) {
                for (j, &w) in weight.row(flip.1 as usize).iter().enumerate() {
                    let (unit, a) = (m as usize * around.width + j, p * (sign * w));
                    if a != 0.0 && matters(unit) {
                        all.entries.push((unit as u32, a));
                    }
                }
            }
            all.offsets.push(all.entries.len() as u32);
        }
        (all.potentials, all.flips) = flips.into_iter().unzip();
        all
    }

    /// Some of the flips alone, given in their order.
    pub(super) fn restricted(&self, to: &[u32], most: usize) -> Self {
        let mut all = Self { offsets: vec![0], units: self.units, ..Self::default() };
        for &flip in to {
            all.flips.push(self.flips[flip as usize]);
            all.potentials.push(self.potentials[flip as usize]);
            all.entries.extend_from_slice(self.moves(flip));
            all.offsets.push(all.entries.len() as u32);
        }
        all.sort_by_unit(most);
        all
    }

    /// Makes the lists of each unit's moves, which bounds of parts need, of those that matter with `most` flips.
    pub(super) fn sort_by_unit(&mut self, most: usize) {
        let mut lists: Vec<[Moves; 2]> = vec![Default::default(); self.units];
        for flip in 0..self.len() as u32 {
            for &(unit, a) in self.moves(flip) {
                lists[unit as usize][usize::from(a < 0.0)].largest.push((a, flip));
            }
        }
        lists.iter_mut().flatten().for_each(|moves| moves.sort(4 * most + 32));
        self.by_unit = lists;
    }

    pub(super) fn len(&self) -> usize {
        self.flips.len()
    }

    /// The units that a flip moves, and how far.
    #[inline]
    pub(super) fn moves(&self, flip: u32) -> &[(u32, f64)] {
        &self.entries[self.offsets[flip as usize] as usize..self.offsets[flip as usize + 1] as usize]
    }

    /// Moves of a unit up (0) or down (1).
    pub(super) fn of_unit(&self, unit: usize, way: usize) -> &Moves {
        &self.by_unit[unit][way]
    }
}

//! The network around one target: a chain of layers (`Network::chain`) with one hidden, as the paper has them.
//!
//! A *unit* is a hidden unit of the first layer at a node of level 1; a flip (n, d) moves unit (m, j) by
//! `a = P_mn σ W⁰_dj`, and
//!
//! ```text
//! margin = constant + Σ_i c_i relu(z_i + Σ_f a_fi).
//! ```

use crate::bounds::AttributeError;
use crate::dense::Matrix;
use crate::ids::{AttributeId, NodeId};
use crate::prepare::Shard;
use crate::slice::{Hop, Slice, SlicedFlip};

/// For each node of level 0 the nodes of level 1 that aggregate it, with weights.
#[derive(Debug, Default)]
pub(crate) struct Aggregators {
    offsets: Vec<u32>,
    entries: Vec<(u32, f64)>,
}

impl Aggregators {
    pub(crate) fn new(slice: &Slice) -> Self {
        let mut lists: Vec<Vec<(u32, f64)>> = vec![Vec::new(); slice.level(0).len()];
        for m in 0..slice.level(1).len() {
            for (n, p) in slice.hop(0, 0).row(m).filter(|&(_, p)| p != 0.0) {
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

    pub(crate) fn of(&self, position: u32) -> &[(u32, f64)] {
        let range = self.offsets[position as usize] as usize..self.offsets[position as usize + 1] as usize;
        &self.entries[range]
    }
}

/// One target and everything in sight of it, the same for all classes.
pub(crate) struct Surroundings<'a> {
    pub(crate) shared: &'a Shard<'a>,
    pub(crate) slice: &'a Slice,
    /// Rounding errors of the first layer.
    pub(crate) first_error: &'a AttributeError,
    pub(crate) aggregators: Aggregators,
    /// Units of a node.
    pub(crate) width: usize,
    /// Most flips at each node of level 0.
    pub(crate) capacities: Vec<u32>,
    /// Most flips in total that can be made here.
    pub(crate) most: usize,
}

impl<'a> Surroundings<'a> {
    /// What is around the target of `slice`; `None` if the network is not a chain with one hidden layer.
    pub(crate) fn new(shared: &'a Shard<'a>, slice: &'a Slice) -> Option<Self> {
        let limits = shared.limits;
        if !shared.network.has_one_hidden_layer() {
            return None;
        }
        Some(Self {
            shared,
            slice,
            first_error: shared.bounds.attribute_errors[0].as_ref()?,
            aggregators: Aggregators::new(slice),
            width: shared.network.attribute_weight().columns(),
            capacities: slice.level(0).iter().map(|&n| limits.local(NodeId(n)) as u32).collect(),
            most: limits.flips_within(slice.level(0)),
        })
    }

    /// Number of units.
    pub(crate) fn units(&self) -> usize {
        self.slice.level(1).len() * self.width
    }

    /// Rows of level 1 in the region's matrices.
    pub(crate) fn place(&self, m: usize) -> usize {
        self.shared.region.level(1).place(self.slice.level(1)[m])
    }

    /// +1 for a flip that adds its attribute, −1 for one that removes it, `None` for one that is not allowed.
    pub(crate) fn sign(&self, flip: SlicedFlip) -> Option<f64> {
        let (limits, sign) = (self.shared.limits, self.shared.sign(self.slice, flip));
        let direction = if sign < 0.0 { limits.deletions() } else { limits.additions() };
        (direction && limits.flippable(AttributeId(flip.1))).then_some(sign)
    }

    /// Every flip that is allowed and moves something.
    #[cfg(test)]
    pub(crate) fn all_flips(&self) -> Vec<SlicedFlip> {
        let weight = self.shared.network.attribute_weight();
        let moving: Vec<u32> =
            (0..weight.rows() as u32).filter(|&d| weight.row(d as usize).iter().any(|&w| w != 0.0)).collect();
        let mut flips = Vec::new();
        for position in (0..self.slice.level(0).len() as u32).filter(|&p| self.capacities[p as usize] > 0) {
            flips.extend(moving.iter().map(|&d| (position, d)).filter(|&flip| self.sign(flip).is_some()));
        }
        flips
    }

    /// Pre-activations of all units on the graph as it is.
    pub(crate) fn clean(&self) -> Vec<f64> {
        let clean: &Matrix = &self.shared.bounds.clean.layers[0];
        (0..self.slice.level(1).len()).flat_map(|m| clean.row(self.place(m)).iter().copied()).collect()
    }
}

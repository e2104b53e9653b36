//! A base point: the attributes with some flips made, and what may still be flipped (Lemma 36 of `docs/maths.md`).

use std::collections::BTreeSet;

use nodeproof_problem::{AttributeId, ClassId, Flip, NodeId};

use crate::interval::{Interval, down, relu};
use crate::network::{Network, Region, Units};

/// The sets of flips that have `flips` and none of `without`, and at most `left` others.
#[derive(Clone)]
pub(crate) struct Base<'n> {
    pub(crate) network: &'n Network<'n>,
    pub(crate) region: &'n Region,
    pub(crate) flips: Vec<Flip>,
    pub(crate) without: BTreeSet<(NodeId, AttributeId)>,
    pub(crate) left: usize,
    /// Most flips of a set, those of the base point included.
    pub(crate) most: usize,
    /// Most further flips of each row of the region.
    pub(crate) capacities: Vec<usize>,
    /// `X W` of the rows, and pre-activations.
    pub(crate) sums: Units<Interval>,
    pub(crate) z: Vec<Units<Interval>>,
}

/// How a unit is at a base point.
#[derive(Clone, Copy)]
pub(crate) struct Unit {
    /// Whether it is above 0 for sure, and whether it is sure on which side it is.
    pub(crate) on: bool,
    pub(crate) is_sure: bool,
    /// The threshold θ: times the number of moves that are left, it is at most |z|.
    pub(crate) threshold: f64,
}

impl<'n> Base<'n> {
    /// All sets of at most `left` flips that are admissible but for their number.
    pub(crate) fn clean(network: &'n Network<'n>, region: &'n Region, left: usize) -> Self {
        let capacities: Vec<usize> = region.rows.iter().map(|&node| network.limits.local(node)).collect();
        let (flips, without, sums, z) = Default::default();
        Self { network, region, flips, without, left, most: left, capacities, sums, z }.evaluated()
    }

    /// Those of the sets that have a flip; `None` if none of them may.
    pub(crate) fn with(&self, flip: Flip) -> Option<Self> {
        let row = self.region.rows.binary_search(&flip.node).ok()?;
        let may = self.network.limits.allows(self.network.graph, flip) && self.may_flip(row, flip.attribute);
        if !may || self.left == 0 || self.capacities[row] == 0 {
            return None;
        }
        let mut other = self.clone();
        other.flips.push(flip);
        other.left -= 1;
        other.capacities[row] -= 1;
        Some(other.evaluated())
    }

    fn evaluated(mut self) -> Self {
        self.left = self.left.min(self.capacities.iter().sum());
        self.sums = self.region.rows.iter().map(|&node| self.network.sum(node, &self.flips)).collect();
        self.z = self.region.forward(self.network, &self.sums, &Interval::of(1.0));
        self
    }

    /// Whether an entry of a row may still be flipped, as far as that does not depend on what it is.
    pub(crate) fn may_flip(&self, row: usize, attribute: AttributeId) -> bool {
        let entry = (self.region.rows[row], attribute);
        let is_made = self.flips.iter().any(|flip| (flip.node, flip.attribute) == entry);
        !is_made && !self.without.contains(&entry) && self.network.limits.flippable(attribute)
    }

    /// The margin of the base point itself.
    pub(crate) fn margin(&self, (y, k): (ClassId, ClassId)) -> Interval {
        let logits = &self.z[self.z.len() - 1][0];
        logits[y.index()] + -logits[k.index()]
    }

    /// A class that no other one is ahead of for sure.
    pub(crate) fn predicted(&self) -> ClassId {
        let logits = self.z[self.z.len() - 1][0].iter().enumerate();
        let largest = logits.max_by(|a, b| a.1.lo.total_cmp(&b.1.lo)).map_or(0, |(class, _)| class);
        ClassId(largest as u32)
    }

    /// Real values that were changed may be changed to others without counting again: those entries.
    pub(crate) fn freed(&self) -> &[Flip] {
        if self.network.graph.kind().is_values() { &self.flips } else { &[] }
    }

    /// The units of a layer.
    pub(crate) fn units(&self, layer: usize) -> Units<Unit> {
        let moves = (self.left + self.freed().len()).max(1) as f64;
        let unit = |&z: &Interval| {
            let (on, is_off) = (z.lo > 0.0, z.hi <= 0.0);
            let threshold = relu(down(relu(if on { z.lo } else { -z.hi }) / moves));
            Unit { on, is_sure: on || is_off, threshold }
        };
        self.z[layer].iter().map(|z| z.iter().map(unit).collect()).collect()
    }
}

//! A budget resolved for one graph.

use std::collections::{BTreeMap, BTreeSet};

use super::EdgeLimits;
use crate::flip::Flip;
use crate::graph::Graph;
use crate::ids::{AttributeId, NodeId};
use crate::values::Values;

/// A [`Budget`](super::Budget) resolved for one graph: what every engine asks.
#[derive(Debug, Clone)]
pub struct Limits {
    pub(super) global: usize,
    pub(super) local: Vec<u32>,
    pub(super) additions: bool,
    pub(super) deletions: bool,
    pub(super) flippable: Vec<bool>,
    pub(super) edges: Option<EdgeLimits>,
}

impl Limits {
    /// The same for attributes of some of the nodes, in this order.
    #[must_use]
    pub fn of_nodes(&self, nodes: &[u32]) -> Self {
        let local = nodes.iter().map(|&node| self.local[node as usize]).collect();
        Self { local, flippable: self.flippable.clone(), edges: None, ..*self }
    }

    /// Most flips in total, Q.
    #[inline]
    pub fn global(&self) -> usize {
        self.global
    }

    /// Most flips at `node`, q_n; at most the number of attributes.
    #[inline]
    pub fn local(&self, node: NodeId) -> usize {
        self.local[node.index()] as usize
    }

    /// Whether attributes may be turned from 0 to 1, or values raised.
    #[inline]
    pub fn additions(&self) -> bool {
        self.additions
    }

    /// Whether attributes may be turned from 1 to 0, or values lowered.
    #[inline]
    pub fn deletions(&self) -> bool {
        self.deletions
    }

    /// Whether `attribute` may be flipped at all.
    #[inline]
    pub fn flippable(&self, attribute: AttributeId) -> bool {
        self.flippable[attribute.index()]
    }

    /// Which edges may be deleted, if any may.
    pub fn edges(&self) -> Option<&EdgeLimits> {
        self.edges.as_ref()
    }

    /// The lowest and the highest value that an entry, one of real `values`, may be given; `None` if it must stay as it is.
    #[inline]
    pub fn range(&self, values: &Values, node: NodeId, attribute: AttributeId) -> Option<(f64, f64)> {
        let (value, (low, high)) = (values.get(node, attribute), values.range(attribute));
        let low = if self.deletions { low } else { low.max(value) };
        let high = if self.additions { high } else { high.min(value) };
        (self.flippable(attribute) && low <= high).then_some((low, high))
    }

    /// Most flips at `nodes` together: the global budget, or less if their local budgets do not add up to it.
    pub fn flips_within(&self, nodes: &[u32]) -> usize {
        let local: usize = nodes.iter().map(|&node| self.local[node as usize] as usize).sum();
        local.min(self.global)
    }

    /// Whether `flip` on its own is one of `graph` and within the budget.
    pub fn allows(&self, graph: &Graph, flip: Flip) -> bool {
        if !flip.is_of(graph) || self.global == 0 || self.local(flip.node) == 0 {
            return false;
        }
        match graph.values() {
            Some(values) => {
                let range = self.range(values, flip.node, flip.attribute);
                range.is_some_and(|(low, high)| (low..=high).contains(&flip.to))
            }
            None => (if flip.adds() { self.additions } else { self.deletions }) && self.flippable(flip.attribute),
        }
    }

    /// Whether the set `flips` is admissible: allowed, no flip twice, within the local and the global budget.
    pub fn admits(&self, graph: &Graph, flips: &[Flip]) -> bool {
        let mut at_node: BTreeMap<NodeId, BTreeSet<AttributeId>> = BTreeMap::new();
        let distinct = flips.iter().all(|flip| at_node.entry(flip.node).or_default().insert(flip.attribute));
        distinct
            && flips.len() <= self.global
            && flips.iter().all(|&flip| self.allows(graph, flip))
            && at_node.iter().all(|(&node, attributes)| attributes.len() <= self.local(node))
    }
}

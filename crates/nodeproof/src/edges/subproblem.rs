//! Sets of deletions that have some edges in common, and others not.

use std::collections::BTreeSet;

use crate::budget::EdgeLimits;
use crate::edge::Edge;
use crate::graph::Graph;
use crate::ids::NodeId;

/// All admissible sets that have all edges of `deleted`, and none of `kept`.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Subproblem {
    pub(super) deleted: Vec<Edge>,
    pub(super) kept: BTreeSet<Edge>,
}

impl Subproblem {
    /// The sets that have an edge, too.
    pub(super) fn with(&self, edge: Edge) -> Self {
        let mut other = self.clone();
        other.deleted.push(edge);
        other
    }

    /// The sets that have none of these edges.
    pub(super) fn without(&self, edges: impl IntoIterator<Item = Edge>) -> Self {
        let mut other = self.clone();
        other.kept.extend(edges);
        other
    }

    /// How many other edges a set may have.
    pub(super) fn left(&self, limits: &EdgeLimits) -> usize {
        limits.global().saturating_sub(self.deleted.len())
    }

    fn deleted_at(&self, node: NodeId) -> usize {
        self.deleted.iter().filter(|edge| edge.ends().contains(&node)).count()
    }

    /// The neighbours that a node has left, itself included if it has a self-loop.
    pub(super) fn neighbours<'s>(&'s self, graph: &'s Graph, node: NodeId) -> impl Iterator<Item = NodeId> + 's {
        let is_left = move |&other: &NodeId| {
            self.deleted.is_empty() || Edge::between(node, other).is_none_or(|edge| !self.deleted.contains(&edge))
        };
        graph.adjacency().row(node.index()).iter().map(|&other| NodeId(other)).filter(is_left)
    }

    /// How many they are.
    pub(super) fn degree(&self, graph: &Graph, node: NodeId) -> usize {
        graph.adjacency().row(node.index()).len() - self.deleted_at(node)
    }

    /// How many more edges may be deleted at a node, the limit in total left aside.
    pub(super) fn left_at(&self, limits: &EdgeLimits, node: NodeId) -> usize {
        limits.at(node).saturating_sub(self.deleted_at(node))
    }

    /// Whether a set may have this edge beside those that all have.
    pub(super) fn may_delete(&self, limits: &EdgeLimits, edge: Edge) -> bool {
        self.left(limits) > 0
            && limits.may_delete(edge)
            && !self.kept.contains(&edge)
            && !self.deleted.contains(&edge)
            && edge.ends().iter().all(|&node| self.left_at(limits, node) > 0)
    }
}

//! How many edges an attacker may delete, and which.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::BudgetError;
use crate::edge::Edge;
use crate::graph::Graph;
use crate::ids::NodeId;

/// How many edges an attacker may delete: a part of a [`Budget`](super::Budget), whose protected nodes keep their edges, too.
///
/// ```
/// use nodeproof_problem::{Budget, Edge, EdgeBudget, LocalBudget, NodeId};
/// let edges = EdgeBudget::new(5).at_node(2).keep_one(true).protect(Edge::between(NodeId(0), NodeId(3)));
/// let budget = Budget::new(0, LocalBudget::Count(0)).delete_edges(edges);
/// # let _ = budget;
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EdgeBudget {
    global: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    at_node: Option<u32>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    keep_one: bool,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    protected: BTreeSet<Edge>,
}

impl EdgeBudget {
    /// At most so many edges in total, and any number of them at a node.
    pub fn new(global: u32) -> Self {
        Self { global, at_node: None, keep_one: false, protected: BTreeSet::new() }
    }

    /// Allows at most so many in total, and leaves the rest as it is.
    pub fn with_global(mut self, global: u32) -> Self {
        self.global = global;
        self
    }

    /// Allows at most `count` of the edges of each node to be deleted; an edge counts at both of its ends.
    pub fn at_node(mut self, count: u32) -> Self {
        self.at_node = Some(count);
        self
    }

    /// Sets whether each node keeps one of its edges at least.
    pub fn keep_one(mut self, keep: bool) -> Self {
        self.keep_one = keep;
        self
    }

    /// Protects these edges.
    pub fn protect(mut self, edges: impl IntoIterator<Item = Edge>) -> Self {
        self.protected.extend(edges);
        self
    }

    /// Most deletions in total, Q.
    pub fn global(&self) -> u32 {
        self.global
    }

    /// Most deletions at a node, if there is such a limit.
    pub fn most_at_node(&self) -> Option<u32> {
        self.at_node
    }

    /// Whether each node keeps one of its edges.
    pub fn keeps_one(&self) -> bool {
        self.keep_one
    }

    /// Edges that may not be deleted.
    pub fn protected(&self) -> &BTreeSet<Edge> {
        &self.protected
    }

    /// Resolves the budget for a graph of which some nodes are protected.
    ///
    /// # Errors
    /// If it protects an edge that the graph does not have.
    pub(super) fn limits(&self, graph: &Graph, protected_nodes: &BTreeSet<NodeId>) -> Result<EdgeLimits, BudgetError> {
        if let Some(&edge) = self.protected.iter().find(|edge| !edge.is_of(graph)) {
            return Err(BudgetError::Edge { edge });
        }
        let at_node = |node: NodeId| {
            let neighbours = graph.adjacency().row(node.index());
            let edges = neighbours.len() - usize::from(neighbours.binary_search(&node.0).is_ok());
            let most = edges.saturating_sub(usize::from(self.keep_one)) as u32;
            if protected_nodes.contains(&node) { 0 } else { self.at_node.map_or(most, |count| count.min(most)) }
        };
        let at_node = graph.node_ids().map(at_node).collect();
        Ok(EdgeLimits { global: self.global as usize, at_node, protected: self.protected.clone() })
    }
}

/// An [`EdgeBudget`] resolved for one graph.
#[derive(Debug, Clone)]
pub struct EdgeLimits {
    global: usize,
    at_node: Vec<u32>,
    protected: BTreeSet<Edge>,
}

impl EdgeLimits {
    /// Most deletions in total, Q.
    pub fn global(&self) -> usize {
        self.global
    }

    /// Most deletions at `node`; at most the number of its edges, without a self-loop, which cannot be deleted.
    pub fn at(&self, node: NodeId) -> usize {
        self.at_node[node.index()] as usize
    }

    /// Whether an edge of the graph may be deleted on its own.
    pub fn may_delete(&self, edge: Edge) -> bool {
        self.global > 0 && edge.ends().iter().all(|&node| self.at(node) > 0) && !self.protected.contains(&edge)
    }

    /// Whether deleting these edges of `graph` is admissible: allowed, none twice, within the limits in total and at each node.
    pub fn admits(&self, graph: &Graph, edges: &[Edge]) -> bool {
        let distinct: BTreeSet<Edge> = edges.iter().copied().collect();
        let mut at_node: BTreeMap<NodeId, usize> = BTreeMap::new();
        for node in edges.iter().flat_map(|edge| edge.ends()) {
            *at_node.entry(node).or_default() += 1;
        }
        distinct.len() == edges.len()
            && edges.len() <= self.global
            && edges.iter().all(|&edge| edge.is_of(graph) && self.may_delete(edge))
            && at_node.iter().all(|(&node, &count)| count <= self.at(node))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::{Budget, LocalBudget};
    use crate::graph::GraphOptions;

    fn edge(a: u32, b: u32) -> Edge {
        Edge::between(NodeId(a), NodeId(b)).unwrap()
    }

    /// A triangle with a tail and a self-loop.
    fn graph() -> Graph {
        let edges = [(0, 1), (1, 2), (2, 0), (2, 3), (3, 3)];
        Graph::with_options(4, 1, &edges, &[], GraphOptions::new().keep_self_loops(true)).unwrap()
    }

    fn limits(edges: EdgeBudget) -> EdgeLimits {
        Budget::new(0, LocalBudget::Count(0)).delete_edges(edges).limits(&graph()).unwrap().edges().cloned().unwrap()
    }

    #[test]
    fn limits_honour_every_feature() {
        let of = limits(EdgeBudget::new(2));
        assert_eq!([0, 1, 2, 3].map(|node| of.at(NodeId(node))), [2, 2, 3, 1], "a self-loop is no edge to delete");
        assert!(of.admits(&graph(), &[]) && of.admits(&graph(), &[edge(0, 1), edge(2, 3)]));
        assert!(!of.admits(&graph(), &[edge(0, 1), edge(2, 3), edge(0, 2)]), "global budget");
        assert!(!of.admits(&graph(), &[edge(0, 1), edge(1, 0)]), "the same edge twice");
        assert!(!of.admits(&graph(), &[edge(0, 3)]), "no edge of the graph");
        let of = limits(EdgeBudget::new(3).at_node(1));
        assert!(of.admits(&graph(), &[edge(0, 1), edge(2, 3)]) && !of.admits(&graph(), &[edge(0, 1), edge(1, 2)]));
        let of = limits(EdgeBudget::new(3).keep_one(true));
        assert!(!of.may_delete(edge(2, 3)), "the only edge of node 3");
        assert!(of.admits(&graph(), &[edge(0, 1)]) && !of.admits(&graph(), &[edge(0, 1), edge(1, 2)]));
        let of = limits(EdgeBudget::new(3).protect([edge(0, 1)]));
        assert!(!of.may_delete(edge(0, 1)) && of.may_delete(edge(1, 2)));
        assert!(!limits(EdgeBudget::new(0)).may_delete(edge(0, 1)));
        let budget = Budget::new(0, LocalBudget::Count(0)).delete_edges(EdgeBudget::new(3)).protect_nodes([NodeId(2)]);
        let of = budget.limits(&graph()).unwrap();
        assert!(!of.edges().unwrap().may_delete(edge(2, 3)) && of.edges().unwrap().may_delete(edge(0, 1)));
    }

    #[test]
    fn unknown_edges_are_errors_and_budgets_survive_files() {
        let budget = |edges| Budget::new(0, LocalBudget::Count(0)).delete_edges(edges);
        let error = budget(EdgeBudget::new(1).protect([edge(1, 3)])).limits(&graph()).unwrap_err();
        assert!(error.to_string().contains("protects the edge 1–3"), "{error}");
        let written = budget(EdgeBudget::new(3).at_node(2).keep_one(true).protect([edge(0, 1)]));
        let text = serde_json::to_string(&written).unwrap();
        assert!(text.contains(r#""edges":{"global":3,"at_node":2,"keep_one":true,"protected":[[0,1]]}"#), "{text}");
        assert_eq!(serde_json::from_str::<Budget>(&text).unwrap(), written);
    }
}

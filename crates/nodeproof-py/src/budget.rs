//! Budgets.

use std::collections::BTreeMap;

use nodeproof::{AttributeId, Budget, Direction, Edge, EdgeBudget, LocalBudget, NodeId};
use pyo3::prelude::*;

use crate::errors::{Failure, Raised};
use crate::graph::PyGraph;

/// Whether text is a local budget.
#[pyfunction]
pub(crate) fn check_local_budget(py: Python<'_>, text: &str) -> PyResult<()> {
    text.parse::<LocalBudget>().map(drop).raised(py)
}

/// Most deletions of edges in total and at a node, whether each node keeps one, and protected edges.
type Deletions = (u32, Option<u32>, bool, Vec<(u32, u32)>);

/// Edges between these nodes.
pub(crate) fn edges(pairs: &[(u32, u32)]) -> Result<Vec<Edge>, Failure> {
    let edge = |&(a, b): &(u32, u32)| {
        let edge = Edge::between(NodeId(a), NodeId(b));
        edge.ok_or_else(|| Failure::input(format!("node {a} cannot be unlinked from itself; give two nodes")))
    };
    pairs.iter().map(edge).collect()
}

/// What an attacker may change.
#[pyclass(name = "Budget", module = "nodeproof._core", frozen)]
pub(crate) struct PyBudget(pub(crate) Budget);

#[pymethods]
impl PyBudget {
    /// A budget that fits `graph`; where it is `capped`, with a global budget of no more than there is to flip.
    #[new]
    #[expect(clippy::too_many_arguments, reason = "one for each part of a budget")]
    fn new(
        py: Python<'_>,
        graph: &PyGraph,
        global_budget: u32,
        local_budget: &str,
        direction: &str,
        local_at: BTreeMap<u32, u32>,
        protected_nodes: Vec<u32>,
        protected_attributes: Vec<u32>,
        deletions: Option<Deletions>,
        capped: bool,
    ) -> PyResult<Self> {
        let local: LocalBudget = local_budget.parse().raised(py)?;
        let direction: Direction = direction.parse().raised(py)?;
        let mut budget = Budget::new(global_budget, local)
            .direction(direction)
            .protect_nodes(protected_nodes.into_iter().map(NodeId))
            .protect_attributes(protected_attributes.into_iter().map(AttributeId));
        for (node, count) in local_at {
            budget = budget.local_at(NodeId(node), count);
        }
        if let Some((global, at_node, keep_one, protected)) = deletions {
            let protected = edges(&protected).raised(py)?;
            let edges = EdgeBudget::new(global).keep_one(keep_one).protect(protected);
            budget = budget.delete_edges(at_node.map_or(edges.clone(), |count| edges.at_node(count)));
        }
        if capped {
            budget = budget.capped(&graph.0);
        }
        budget.validate(&graph.0).raised(py)?;
        Ok(Self(budget))
    }

    /// The budget as a person would say it.
    fn in_words(&self, graph: &PyGraph) -> String {
        self.0.in_words(graph.0.attribute_count())
    }
}

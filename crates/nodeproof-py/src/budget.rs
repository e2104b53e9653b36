//! Budgets.

use std::collections::BTreeMap;

use nodeproof::{AttributeId, Budget, Direction, LocalBudget, NodeId};
use nodeproof_report::results::ResultBudget;
use pyo3::prelude::*;

use crate::errors::{Failure, Raised};
use crate::graph::PyGraph;

/// What an attacker may change.
#[pyclass(name = "Budget", module = "nodeproof._core", frozen)]
pub(crate) struct PyBudget(pub(crate) Budget);

#[pymethods]
impl PyBudget {
    /// A budget that fits `graph`.
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
    ) -> PyResult<Self> {
        let local: LocalBudget = local_budget.parse().raised(py)?;
        let direction = match direction {
            "add-only" => Direction::AddOnly,
            "delete-only" => Direction::DeleteOnly,
            _ => Direction::Both,
        };
        let mut budget = Budget::new(global_budget, local)
            .direction(direction)
            .protect_nodes(protected_nodes.into_iter().map(NodeId))
            .protect_attributes(protected_attributes.into_iter().map(AttributeId));
        for (node, count) in local_at {
            budget = budget.local_at(NodeId(node), count);
        }
        budget.limits(&graph.0).raised(py)?;
        let attributes = graph.0.attribute_count();
        if local.count(attributes) > attributes {
            let problem = format!(
                "local_budget={local} is more than the {attributes} attributes that a node of the graph has; give at most \
                 {attributes}, or a share such as \"1%\""
            );
            return Err(Failure::Input(problem).raise(py));
        }
        Ok(Self(budget))
    }

    /// The budget as a person would say it.
    fn in_words(&self, graph: &PyGraph) -> String {
        ResultBudget::of(&self.0, &graph.0).in_words(graph.0.attribute_count())
    }

    /// The most flips at one node of a graph with so many attributes.
    fn local_count(&self, attributes: usize) -> usize {
        self.0.local().count(attributes)
    }
}

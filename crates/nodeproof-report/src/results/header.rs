//! What a file is about.

use nodeproof::{Budget, Graph, Model};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Which graph a file is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct GraphHeader {
    /// [`Graph::fingerprint`].
    pub fingerprint: String,
    /// Number of nodes.
    pub nodes: usize,
    /// Number of edges.
    pub edges: usize,
    /// Number of attributes.
    pub attributes: usize,
}

impl GraphHeader {
    /// Names `graph`.
    pub fn new(graph: &Graph) -> Self {
        let (nodes, edges, attributes) = (graph.nodes(), graph.edges(), graph.attribute_count());
        Self { fingerprint: graph.fingerprint(), nodes, edges, attributes }
    }
}

/// Which model a file is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ModelHeader {
    /// [`Model::fingerprint`].
    pub fingerprint: String,
    /// Number of layers; 2 with one hidden layer.
    pub layers: usize,
    /// Name of the propagation.
    pub propagation: String,
    /// Number of classes.
    pub classes: usize,
}

impl ModelHeader {
    /// Names `model`.
    pub fn new(model: &Model) -> Self {
        Self {
            fingerprint: model.fingerprint(),
            layers: model.layers().len(),
            propagation: model.propagation().name().to_owned(),
            classes: model.classes(),
        }
    }
}

/// The budget of a file: of radii, the largest global one.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResultBudget {
    /// The budget.
    pub budget: Budget,
    /// The most flips at one node.
    pub local_count: u32,
    /// The local budget as it was given, such as `1%`.
    pub local: String,
}

impl ResultBudget {
    /// `budget`, for `graph`.
    pub fn of(budget: &Budget, graph: &Graph) -> Self {
        let local_count = budget.local().count(graph.attribute_count());
        Self {
            budget: budget.clone(),
            local_count: u32::try_from(local_count).unwrap_or(u32::MAX),
            local: String::from(budget.local()),
        }
    }

    /// The budget in a header; `global` where the header has it elsewhere.
    pub(super) fn read(mut value: Value, global: Option<u32>) -> Result<Self, serde_json::Error> {
        #[derive(Deserialize)]
        struct Local {
            local: String,
            local_count: u32,
        }
        if let (Some(fields), Some(global)) = (value.as_object_mut(), global) {
            fields.insert("global".to_owned(), global.into());
        }
        let Local { local, local_count } = Local::deserialize(&value)?;
        Ok(Self { budget: Budget::deserialize(&value)?, local_count, local })
    }
}

//! What a file is about.

use nodeproof::{Budget, Direction, Graph, LocalBudget, Model};
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

fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
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

    /// The budget as a person would say it, for a graph with so many attributes: “at most 12 flips, 28 at one node (1% of
    /// 2879 attributes), only additions”.
    pub fn in_words(&self, attributes: usize) -> String {
        format!("at most {}, {}", counted(self.budget.global() as usize, "flip"), self.local_in_words(attributes))
    }

    /// The same, but for the number of flips in all.
    pub fn local_in_words(&self, attributes: usize) -> String {
        let share = match self.budget.local() {
            LocalBudget::Percent(percent) => format!(" ({percent} of {attributes} attributes)"),
            _ => String::new(),
        };
        let direction = match self.budget.allowed() {
            Direction::AddOnly => Some("only additions".to_owned()),
            Direction::DeleteOnly => Some("only deletions".to_owned()),
            _ => None,
        };
        let words = [format!("{} at one node{share}", self.local_count)];
        words.into_iter().chain(direction).chain(self.exceptions()).collect::<Vec<_>>().join(", ")
    }

    /// To what the budget does not apply, in words: “3 nodes protected”.
    pub fn exceptions(&self) -> Vec<String> {
        let (own, nodes, attributes) = (
            self.budget.own_locals().len(),
            self.budget.protected_nodes().len(),
            self.budget.protected_attributes().len(),
        );
        let mut words = Vec::new();
        if own > 0 {
            words.push(format!("{} with a local budget of their own", counted(own, "node")));
        }
        if nodes > 0 {
            words.push(format!("{} protected", counted(nodes, "node")));
        }
        if attributes > 0 {
            words.push(format!("{} protected", counted(attributes, "attribute")));
        }
        words
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

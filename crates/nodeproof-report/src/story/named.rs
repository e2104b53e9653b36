//! Ids with their names.

use nodeproof_problem::{AttributeId, ClassId, Graph, NodeId};
use serde::Serialize;

use crate::text::{short_class, short_name};

/// An id, and the name that the graph has for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Named<I> {
    /// The id.
    pub id: I,
    /// The name, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl Named<NodeId> {
    /// A node of `graph`.
    pub fn node(graph: &Graph, id: NodeId) -> Self {
        Self { id, name: name_of(graph.names().nodes.as_deref(), id.index()) }
    }

    /// `A perceptron revisited (node 17)` or `17`.
    pub fn in_words(&self) -> String {
        match &self.name {
            Some(name) => format!("{} (node {})", short_name(name), self.id),
            None => self.id.to_string(),
        }
    }
}

impl Named<ClassId> {
    /// A class of `graph`.
    pub fn class(graph: &Graph, id: ClassId) -> Self {
        Self { id, name: name_of(graph.names().classes.as_deref(), id.index()) }
    }

    /// `Theory (class 3)` or `class 3`.
    pub fn in_words(&self) -> String {
        match &self.name {
            Some(name) => format!("{} (class {})", short_class(name), self.id),
            None => format!("class {}", self.id),
        }
    }
}

impl Named<AttributeId> {
    /// An attribute of `graph`.
    pub fn attribute(graph: &Graph, id: AttributeId) -> Self {
        Self { id, name: name_of(graph.names().attributes.as_deref(), id.index()) }
    }
}

fn name_of(names: Option<&[String]>, index: usize) -> Option<String> {
    names.and_then(|names| names.get(index)).filter(|name| !name.is_empty()).cloned()
}

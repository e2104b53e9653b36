//! The one thing an attacker does.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use serde::{Deserialize, Serialize, Serializer};

use crate::graph::Graph;
use crate::ids::{AttributeId, NodeId};

/// One change: attribute `attribute` of node `node` becomes `to`, which it was not before.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Flip {
    /// The node.
    pub node: NodeId,
    /// The attribute.
    pub attribute: AttributeId,
    /// Its new value: 0 or 1, or any where attributes are real values.
    #[serde(serialize_with = "as_plain_number")]
    pub to: f64,
}

/// Serialises 0 and 1 without a decimal point.
///
/// # Errors
/// Those of the serialiser.
pub fn as_plain_number<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    match *value {
        0.0 => serializer.serialize_u8(0),
        1.0 => serializer.serialize_u8(1),
        value => serializer.serialize_f64(value),
    }
}

impl Flip {
    /// The flip of a bit of `graph`.
    ///
    /// ```
    /// # use nodeproof_problem::{AttributeId, Flip, Graph, NodeId};
    /// let graph = Graph::new(1, 2, &[], &[(0, 1)])?;
    /// assert_eq!([0, 1].map(|attribute| Flip::of(&graph, NodeId(0), AttributeId(attribute)).to), [1.0, 0.0]);
    /// # Ok::<(), nodeproof_problem::GraphError>(())
    /// ```
    ///
    /// # Panics
    /// If the graph does not have the node or the attribute.
    pub fn of(graph: &Graph, node: NodeId, attribute: AttributeId) -> Self {
        Self { node, attribute, to: 1.0 - graph.value(node, attribute) }
    }

    /// Whether it turns a 0 into a 1.
    pub fn adds(self) -> bool {
        self.to == 1.0
    }

    /// Whether `graph` has this entry, with another value, and one that its kind of attributes can have.
    pub fn is_of(self, graph: &Graph) -> bool {
        let exists = self.node.index() < graph.nodes() && self.attribute.index() < graph.attribute_count();
        let possible = if graph.kind().is_values() { self.to.is_finite() } else { self.to == 0.0 || self.to == 1.0 };
        exists && possible && graph.value(self.node, self.attribute) != self.to
    }

    fn key(&self) -> (NodeId, AttributeId) {
        (self.node, self.attribute)
    }
}

impl PartialEq for Flip {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Flip {}

impl PartialOrd for Flip {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Flip {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key()).then(self.to.total_cmp(&other.to))
    }
}

impl Hash for Flip {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.key(), self.to.to_bits()).hash(state);
    }
}

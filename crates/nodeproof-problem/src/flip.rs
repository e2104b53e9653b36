//! The one thing an attacker does.

use serde::{Deserialize, Serialize};

use crate::graph::Graph;
use crate::ids::{AttributeId, NodeId};

/// One change: attribute `attribute` of node `node` becomes `to`, which it was not before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Flip {
    /// The node.
    pub node: NodeId,
    /// The attribute.
    pub attribute: AttributeId,
    /// Its new value, 0 or 1.
    pub to: u8,
}

impl Flip {
    /// The flip of an attribute of a node of `graph`.
    ///
    /// ```
    /// # use nodeproof_problem::{AttributeId, Flip, Graph, NodeId};
    /// let graph = Graph::new(1, 2, &[], &[(0, 1)])?;
    /// assert_eq!([0, 1].map(|attribute| Flip::of(&graph, NodeId(0), AttributeId(attribute)).to), [1, 0]);
    /// # Ok::<(), nodeproof_problem::GraphError>(())
    /// ```
    ///
    /// # Panics
    /// If the graph does not have the node.
    pub fn of(graph: &Graph, node: NodeId, attribute: AttributeId) -> Self {
        Self { node, attribute, to: u8::from(!graph.attributes().contains(node.index(), attribute.0)) }
    }

    /// Whether it turns a 0 into a 1.
    pub fn adds(self) -> bool {
        self.to == 1
    }

    /// Whether `graph` has this entry, with the other value.
    pub fn is_of(self, graph: &Graph) -> bool {
        let exists = self.node.index() < graph.nodes() && self.attribute.index() < graph.attribute_count();
        exists && Self::of(graph, self.node, self.attribute) == self
    }
}

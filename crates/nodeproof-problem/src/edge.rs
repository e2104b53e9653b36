//! The other thing an attacker does.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::graph::Graph;
use crate::ids::NodeId;

/// Two different nodes that are joined, or may be: an edge without direction. Files have it as `[a, b]`, the smaller id first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Edge {
    a: NodeId,
    b: NodeId,
}

impl Edge {
    /// The edge between two nodes; `None` from a node to itself.
    pub fn between(a: NodeId, b: NodeId) -> Option<Self> {
        (a != b).then(|| Self { a: a.min(b), b: a.max(b) })
    }

    /// Its two ends, the smaller id first.
    pub fn ends(self) -> [NodeId; 2] {
        [self.a, self.b]
    }

    /// Whether `graph` has it.
    pub fn is_of(self, graph: &Graph) -> bool {
        self.b.index() < graph.nodes() && graph.adjacency().contains(self.a.index(), self.b.0)
    }
}

impl fmt::Display for Edge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}–{}", self.a, self.b)
    }
}

impl Serialize for Edge {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.ends().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Edge {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let [a, b] = <[NodeId; 2]>::deserialize(deserializer)?;
        Self::between(a, b).ok_or_else(|| de::Error::custom(format!("node {a} cannot be unlinked from itself")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edge_has_no_direction() {
        let edge = Edge::between(NodeId(5), NodeId(2)).unwrap();
        assert_eq!(Edge::between(NodeId(2), NodeId(5)), Some(edge));
        assert_eq!(Edge::between(NodeId(2), NodeId(2)), None);
        assert_eq!(serde_json::to_string(&edge).unwrap(), "[2,5]");
        assert_eq!(serde_json::from_str::<Edge>("[5,2]").unwrap(), edge);
        assert!(serde_json::from_str::<Edge>("[3,3]").unwrap_err().to_string().contains("from itself"));
    }

    #[test]
    fn a_graph_has_the_edges_that_it_was_given() {
        let graph = Graph::new(3, 1, &[(2, 0)], &[]).unwrap();
        let edge = |a, b| Edge::between(NodeId(a), NodeId(b)).unwrap();
        assert!(edge(0, 2).is_of(&graph) && !edge(0, 1).is_of(&graph) && !edge(0, 7).is_of(&graph));
    }
}

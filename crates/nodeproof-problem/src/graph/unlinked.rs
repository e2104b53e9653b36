//! Graphs that have lost edges.

use super::{Fingerprint, Graph, GraphError};
use crate::edge::Edge;
use crate::sparse::Pattern;

impl Graph {
    /// The graph without these edges, in both directions, and with all else as it is: self-loops, too.
    ///
    /// ```
    /// # use nodeproof_problem::{Edge, Graph, NodeId};
    /// let graph = Graph::new(3, 1, &[(0, 1), (1, 2)], &[])?;
    /// let edge = Edge::between(NodeId(0), NodeId(1)).unwrap();
    /// assert_eq!(graph.without_edges(&[edge])?.edges(), 1);
    /// # Ok::<(), nodeproof_problem::GraphError>(())
    /// ```
    ///
    /// # Errors
    /// If the graph does not have an edge, or it is given twice.
    pub fn without_edges(&self, edges: &[Edge]) -> Result<Self, GraphError> {
        let mut deleted: Vec<Edge> = edges.to_vec();
        deleted.sort_unstable();
        if let Some(pair) = deleted.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(GraphError::Edge { edge: pair[0], problem: "deleted twice; give each edge once" });
        }
        if let Some(&edge) = deleted.iter().find(|edge| !edge.is_of(self)) {
            return Err(GraphError::Edge { edge, problem: "not an edge of this graph; is it another one?" });
        }
        let is_kept = |&(a, b): &(u32, u32)| {
            let edge = Edge::between(a.into(), b.into());
            edge.is_none_or(|edge| deleted.binary_search(&edge).is_err())
        };
        let adjacency = Pattern::from_entries(self.nodes(), self.nodes(), || self.adjacency.iter().filter(is_kept));
        Ok(Self { fingerprint: Fingerprint::default(), adjacency, ..self.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::GraphOptions;
    use crate::ids::NodeId;

    fn edge(a: u32, b: u32) -> Edge {
        Edge::between(NodeId(a), NodeId(b)).unwrap()
    }

    #[test]
    fn deleted_edges_are_those_and_no_others() {
        let edges = [(0, 1), (1, 2), (2, 0), (2, 2)];
        let options = GraphOptions::new().keep_self_loops(true);
        let graph = Graph::with_options(4, 2, &edges, &[(0, 1)], options).unwrap();
        let left = graph.without_edges(&[edge(2, 1), edge(0, 1)]).unwrap();
        assert_eq!(left, Graph::with_options(4, 2, &[(2, 0), (2, 2)], &[(0, 1)], options).unwrap());
        assert_ne!(left.fingerprint(), graph.fingerprint());
        assert_eq!(graph.without_edges(&[]).unwrap(), graph);
        for (edges, words) in [(vec![edge(0, 3)], "not an edge"), (vec![edge(0, 1), edge(1, 0)], "twice")] {
            let error = graph.without_edges(&edges).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}

//! Graphs that were tampered with.

use std::collections::BTreeSet;

use super::{Fingerprint, Graph, GraphError};
use crate::flip::Flip;
use crate::sparse::Pattern;
use crate::values::Values;

impl Graph {
    /// The graph with these entries of its attributes changed, and all else as it is: ranges of real values, too. What networks read
    /// of rows that are normalised follows from the bits.
    ///
    /// ```
    /// # use nodeproof_problem::{AttributeId, Flip, Graph, NodeId};
    /// let graph = Graph::new(2, 2, &[(0, 1)], &[(0, 0)])?;
    /// let flip = Flip::of(&graph, NodeId(1), AttributeId(0));
    /// assert_eq!(graph.with_flips(&[flip])?.value(NodeId(1), AttributeId(0)), 1.0);
    /// # Ok::<(), nodeproof_problem::GraphError>(())
    /// ```
    ///
    /// # Errors
    /// If an entry does not exist, has the new value already or cannot have it, or is changed twice.
    pub fn with_flips(&self, flips: &[Flip]) -> Result<Self, GraphError> {
        let mut changed = BTreeSet::new();
        for flip in flips {
            self.check_flip(*flip)?;
            if !changed.insert((flip.node.0, flip.attribute.0)) {
                return Err(no_flip(*flip, "changed twice; give each entry once"));
            }
        }
        let mut graph = Self { fingerprint: Fingerprint::default(), ..self.clone() };
        if let Some(values) = &self.values {
            let mut entries = values.entries().clone();
            for flip in flips {
                entries.row_mut(flip.node.index())[flip.attribute.index()] = flip.to;
            }
            graph.values = Some(Values::new(entries)?.with_ranges(values.ranges().to_vec())?);
        } else {
            let added: Vec<(u32, u32)> =
                flips.iter().filter(|flip| flip.adds()).map(|flip| (flip.node.0, flip.attribute.0)).collect();
            let kept = || self.attributes.iter().filter(|entry| !changed.contains(entry));
            graph.attributes =
                Pattern::from_entries(self.nodes(), self.attribute_count(), || kept().chain(added.iter().copied()));
        }
        Ok(graph)
    }

    /// Checks that `flip` changes an entry of this graph to a value that it can have.
    ///
    /// # Errors
    /// If it does not.
    pub fn check_flip(&self, flip: Flip) -> Result<(), GraphError> {
        if flip.is_of(self) {
            return Ok(());
        }
        let exists = flip.node.index() < self.nodes() && flip.attribute.index() < self.attribute_count();
        Err(if !exists {
            no_flip(flip, "not an entry of this graph; is it another one?")
        } else if self.value(flip.node, flip.attribute) == flip.to {
            no_flip(flip, "that already; is the graph another one, or tampered with?")
        } else if self.kind().is_values() {
            no_flip(flip, "to be no finite number; give one")
        } else {
            no_flip(flip, "a bit; give 0 or 1")
        })
    }
}

fn no_flip(flip: Flip, problem: &'static str) -> GraphError {
    GraphError::Flip { flip, problem }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attributes::AttributeKind;
    use crate::graph::Names;
    use crate::ids::{AttributeId, ClassId, NodeId};
    use crate::matrix::Matrix;

    fn flip(node: u32, attribute: u32, to: f64) -> Flip {
        Flip { node: NodeId(node), attribute: AttributeId(attribute), to }
    }

    fn graph() -> Graph {
        let names = Names { nodes: Some(["a", "b", "c"].map(str::to_owned).to_vec()), ..Names::default() };
        let graph = Graph::new(3, 3, &[(0, 1)], &[(0, 0), (0, 2), (1, 1)]).unwrap();
        graph.with_labels(vec![Some(ClassId(1)), None, Some(ClassId(0))]).unwrap().with_names(names).unwrap()
    }

    #[test]
    fn flipped_bits_are_those_and_no_others() {
        for kind in [AttributeKind::Bits, AttributeKind::NormalisedRows] {
            let graph = graph().with_kind(kind);
            let before = graph.fingerprint();
            let tampered = graph.with_flips(&[flip(0, 2, 0.0), flip(2, 1, 1.0), flip(0, 1, 1.0)]).unwrap();
            assert_eq!(tampered.attributes().iter().collect::<Vec<_>>(), [(0, 0), (0, 1), (1, 1), (2, 1)]);
            assert_eq!((tampered.kind(), tampered.adjacency()), (kind, graph.adjacency()));
            assert_eq!((tampered.label(NodeId(0)), tampered.names()), (graph.label(NodeId(0)), graph.names()));
            assert_ne!(tampered.fingerprint(), before);
            let back = tampered.with_flips(&[flip(0, 2, 1.0), flip(2, 1, 0.0), flip(0, 1, 0.0)]).unwrap();
            assert_eq!((back.fingerprint(), &back), (before, &graph));
        }
        assert_eq!(graph().with_flips(&[]).unwrap(), graph());
    }

    #[test]
    fn values_keep_their_ranges() {
        let values = Values::new(Matrix::from_values(2, 2, vec![0.5, 0.0, 2.0, -1.0])).unwrap();
        let graph = Graph::new(2, 2, &[(0, 1)], &[]).unwrap().with_values(values).unwrap();
        let tampered = graph.with_flips(&[flip(1, 0, 0.25), flip(0, 1, -0.5)]).unwrap();
        assert_eq!(tampered.values().unwrap().entries().values(), [0.5, -0.5, 0.25, -1.0]);
        assert_eq!(tampered.values().unwrap().ranges(), [(0.0, 2.0), (-1.0, 0.0)], "not that of the new column");
        assert_eq!(tampered.row_length(NodeId(0)), 2);
    }

    #[test]
    fn what_is_no_flip_is_refused() {
        let values = Values::new(Matrix::from_values(3, 3, vec![0.5; 9])).unwrap();
        let real = Graph::new(3, 3, &[], &[]).unwrap().with_values(values).unwrap();
        for (graph, flips, words) in [
            (
                &graph(),
                vec![flip(3, 0, 1.0)],
                "attribute 0 of node 3 cannot become 1: it is not an entry of this graph",
            ),
            (&graph(), vec![flip(0, 3, 1.0)], "not an entry"),
            (&graph(), vec![flip(0, 0, 1.0)], "attribute 0 of node 0 cannot become 1: it is that already"),
            (&graph(), vec![flip(1, 0, 0.5)], "cannot become 0.5: it is a bit; give 0 or 1"),
            (&graph(), vec![flip(1, 0, 1.0), flip(0, 0, 0.0), flip(1, 0, 1.0)], "it is changed twice"),
            (&real, vec![flip(0, 0, f64::NAN)], "finite"),
            (&real, vec![flip(0, 0, 0.5)], "that already"),
        ] {
            let error = graph.with_flips(&flips).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}

//! The graph that comes with the library.

use super::{Cleaning, Graph, GraphError, GraphOptions};
use crate::npz::Archive;

const FILE: &[u8] = include_bytes!("../../data/wordnet.npz");

impl Graph {
    /// The licence of WordNet, from which the bundled graph is made: it is to go with every copy.
    pub const BUNDLED_LICENCE: &str = include_str!("../../data/LICENSE-WordNet");

    /// The bundled graph: 3,304 nouns of WordNet 3.0, joined where WordNet points from one to the other, with the words of
    /// their definitions as attributes, in six classes (animal, artifact, body, food, plant, substance), all named.
    ///
    /// WordNet 3.0 Copyright 2006 by Princeton University. All rights reserved. Its licence is in `data/LICENSE-WordNet`, and
    /// how the graph was made in `data/README.md`.
    ///
    /// # Example
    /// ```
    /// use nodeproof_problem::{Graph, NodeId};
    /// let graph = Graph::bundled();
    /// assert_eq!(graph.node_name(NodeId(1)), "horn");
    /// ```
    pub fn bundled() -> Self {
        let (graph, _) = Self::read_bundled(GraphOptions::new()).expect("the bundled graph is whole");
        graph
    }

    fn read_bundled(options: GraphOptions) -> Result<(Self, Cleaning), GraphError> {
        Self::from_archive(Archive::in_memory("the bundled graph", FILE)?, options)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn it_has_the_sizes_that_are_promised() {
        let graph = Graph::bundled();
        let statistics = graph.statistics();
        assert_eq!((graph.nodes(), graph.edges(), graph.attribute_count(), graph.classes()), (3304, 5162, 2048, 6));
        assert_eq!((statistics.components, statistics.labelled), (1, graph.nodes()));
        assert_eq!((statistics.degree.min, statistics.attributes_per_node.min), (2, 4), "per node");
        assert!(FILE.len() < 400_000);
    }

    #[test]
    fn everything_has_a_name_of_its_own() {
        let graph = Graph::bundled();
        let names = graph.names();
        for (names, count) in
            [(&names.nodes, graph.nodes()), (&names.attributes, graph.attribute_count()), (&names.classes, 6)]
        {
            let names: HashSet<_> = names.iter().flatten().filter(|name| !name.is_empty()).collect();
            assert_eq!(names.len(), count);
        }
    }

    #[test]
    fn nothing_in_it_needs_cleaning() {
        let all = GraphOptions {
            binarise: true,
            largest_component: true,
            keep_self_loops: true,
            directed: true,
            ..GraphOptions::default()
        };
        for options in [GraphOptions::new(), all] {
            let (graph, cleaning) = Graph::read_bundled(options).unwrap();
            assert_eq!(cleaning, Cleaning { edges_on_file: 2 * graph.edges(), ..Cleaning::default() });
            assert_eq!(graph, Graph::bundled(), "{options:?}");
        }
    }
}

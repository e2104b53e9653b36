//! Where a node stands in the graph: its degree, and how much of its surroundings agree with it.

use nodeproof_problem::results::Radii;
use nodeproof_problem::{ClassId, Graph, NodeId};

/// Number of neighbours of `node`, itself not counted.
pub fn degree(graph: &Graph, node: NodeId) -> usize {
    graph.adjacency().row(node.index()).iter().filter(|&&neighbour| neighbour != node.0).count()
}

/// Of each node its degree, and the largest budget that it is proven robust against.
pub fn degrees(graph: &Graph, radii: &Radii) -> Vec<(usize, u32)> {
    radii.records.iter().map(|radius| (degree(graph, radius.node), radius.withstood())).collect()
}

/// The same with the purity of its neighbourhood, as far as predictions are known: radii must be about predicted classes.
pub fn purities(graph: &Graph, radii: &Radii) -> Vec<(f64, u32)> {
    let mut classes = vec![None; graph.nodes()];
    radii.records.iter().for_each(|radius| classes[radius.node.index()] = radius.class());
    let mut purity = Purity::new(graph, &classes);
    radii.records.iter().filter_map(|radius| Some((purity.of(radius.node)?, radius.withstood()))).collect()
}

/// Computes the purity of neighbourhoods, one node after the other, reusing its memory.
#[derive(Debug)]
pub struct Purity<'a> {
    graph: &'a Graph,
    classes: &'a [Option<ClassId>],
    /// For each node the last round in which it was counted.
    seen: Vec<u32>,
    round: u32,
}

impl<'a> Purity<'a> {
    /// For the classes that a model predicts, one for each node of `graph` where it is known.
    ///
    /// # Panics
    /// If there are not as many classes as nodes.
    pub fn new(graph: &'a Graph, classes: &'a [Option<ClassId>]) -> Self {
        assert_eq!(classes.len(), graph.nodes(), "one class a node");
        Self { graph, classes, seen: vec![0; graph.nodes()], round: 0 }
    }

    /// The share of nodes within two hops of `node`, itself included, that are predicted to be of its class: what the
    /// paper calls neighbourhood purity. `None` where a prediction is not known.
    pub fn of(&mut self, node: NodeId) -> Option<f64> {
        let class = self.classes[node.index()]?;
        let adjacency = self.graph.adjacency();
        let (mut nodes, mut same) = (0usize, 0usize);
        self.round += 1;
        let own = std::iter::once(&node.0);
        for &first in own.clone().chain(adjacency.row(node.index())) {
            for &second in own.clone().chain([&first]).chain(adjacency.row(first as usize)) {
                let seen = &mut self.seen[second as usize];
                if *seen != self.round {
                    *seen = self.round;
                    nodes += 1;
                    same += usize::from(self.classes[second as usize]? == class);
                }
            }
        }
        Some(same as f64 / nodes as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 0 – 1 – 2 – 3, and 4 alone.
    fn path() -> Graph {
        Graph::new(5, 1, &[(0, 1), (1, 2), (2, 3)], &[]).unwrap()
    }

    #[test]
    fn degrees_count_neighbours() {
        assert_eq!([0, 1, 4].map(|node| degree(&path(), NodeId(node))), [1, 2, 0]);
    }

    #[test]
    fn purity_looks_two_hops_far() {
        let graph = path();
        let classes = [0, 0, 1, 0, 1].map(|class| Some(ClassId(class)));
        let mut purity = Purity::new(&graph, &classes);
        let all: Vec<f64> = graph.node_ids().map(|node| purity.of(node).unwrap()).collect();
        assert_eq!(all, [2.0 / 3.0, 0.75, 0.25, 2.0 / 3.0, 1.0]);
        assert_eq!(purity.of(NodeId(3)), Some(2.0 / 3.0), "the same when asked again");
    }

    #[test]
    fn an_unknown_prediction_leaves_purity_unknown() {
        let graph = path();
        let classes = [Some(0), Some(0), Some(1), None, Some(1)].map(|class| class.map(ClassId));
        let mut purity = Purity::new(&graph, &classes);
        let known: Vec<bool> = graph.node_ids().map(|node| purity.of(node).is_some()).collect();
        assert_eq!(known, [true, false, false, false, true]);
    }
}

//! Where a node stands in the graph: its degree, and how much of its surroundings agree with it.

use std::collections::BTreeSet;

use nodeproof_problem::results::Radii;
use nodeproof_problem::{ClassId, Edge, EdgeLimits, Graph, Limits, NodeId, Radius};

use crate::attack::Attack;

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

/// Of each radius whether the node withstands any number of deletions, and not only those that were tried: no more edges may be deleted
/// that it may notice. Those are the edges with an end as many steps away as the network has layers, or nearer.
pub fn withstand_any(graph: &Graph, radii: &Radii) -> Vec<bool> {
    let is_about_deletions = Attack::of(&radii.header.budget) == Attack::Deletions;
    let limits = radii.header.budget.limits(graph).ok().filter(|_| is_about_deletions);
    let any = |radius: &Radius| match (limits.as_ref().and_then(Limits::edges), radius.robust_up_to) {
        (Some(limits), Some(most)) => {
            let (steps, most) = (radii.header.model.layers, most as usize);
            noticed(graph, limits, radius.node, steps, most) <= most
        }
        _ => false,
    };
    radii.records.iter().map(any).collect()
}

/// How many edges with an end at most so many steps away from a node may be deleted; no more than one beyond `most` are counted.
fn noticed(graph: &Graph, limits: &EdgeLimits, node: NodeId, steps: usize, most: usize) -> usize {
    let (mut near, mut frontier, mut edges) = (BTreeSet::from([node]), vec![node], BTreeSet::new());
    for _ in 0..=steps {
        let mut next = Vec::new();
        for &a in &frontier {
            for b in graph.adjacency().row(a.index()).iter().map(|&b| NodeId(b)) {
                edges.extend(Edge::between(a, b).filter(|&edge| limits.may_delete(edge)));
                if edges.len() > most {
                    return edges.len();
                }
                next.extend(near.insert(b).then_some(b));
            }
        }
        frontier = next;
    }
    edges.len()
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
    use nodeproof_problem::results::Header;
    use nodeproof_problem::{Budget, CertifySettings, EdgeBudget, LocalBudget, Matrix, Model, Propagation};

    use super::*;

    /// 0 – 1 – 2 – 3, and 4 alone.
    fn path() -> Graph {
        Graph::new(5, 1, &[(0, 1), (1, 2), (2, 3)], &[]).unwrap()
    }

    #[test]
    fn degrees_count_neighbours() {
        assert_eq!([0, 1, 4].map(|node| degree(&path(), NodeId(node))), [1, 2, 0]);
    }

    /// A path of seven nodes, and one alone; a network of two layers.
    #[test]
    fn nodes_withstand_any_deletions_where_all_that_they_notice_were_tried() {
        let edges: Vec<(u32, u32)> = (0..6).map(|node| (node, node + 1)).collect();
        let graph = Graph::new(8, 1, &edges, &[]).unwrap();
        let zeros = || (Matrix::zeros(1, 1), vec![0.0]);
        let last = (Matrix::zeros(1, 2), vec![0.0; 2]);
        let model = Model::gcn(vec![zeros(), last], Propagation::SymmetricGcn).unwrap();
        let any = |budget: Budget, up_to: Option<u32>| {
            let header = Header::new(&graph, &model, &CertifySettings::new(budget), 8);
            let mut radii = Radii::new(header);
            radii.records = graph.node_ids().map(|node| Radius::new(node, &graph, up_to, None)).collect();
            withstand_any(&graph, &radii)
        };
        let flips = |global| Budget::new(global, LocalBudget::Count(1));
        let of = |up_to| any(flips(0).delete_edges(EdgeBudget::new(9)), up_to);
        // Node 0 notices 0–1, 1–2 and 2–3, node 3 all six.
        assert_eq!(of(Some(2)), [false, false, false, false, false, false, false, true]);
        assert_eq!(of(Some(3)), [true, false, false, false, false, false, true, true]);
        assert_eq!(of(Some(5)), [true, true, true, false, true, true, true, true]);
        assert_eq!(of(Some(6)), [true; 8]);
        assert_eq!(of(None), [false; 8], "the class does not hold as it is");
        let protected = EdgeBudget::new(9).protect(Edge::between(NodeId(0), NodeId(1)));
        assert!(any(flips(0).delete_edges(protected), Some(2))[0], "0–1 stays");
        assert_eq!(any(flips(9), Some(9)), [false; 8], "flips are something else");
        assert_eq!(any(flips(9).delete_edges(EdgeBudget::new(9)), Some(9)), [false; 8]);
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

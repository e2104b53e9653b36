//! The nodes of a report: those with results, and those that are drawn around them.

use nodeproof_problem::{Graph, NodeId};

/// Neighbours that are kept of one node.
const NEIGHBOURS: usize = 64;
/// Nodes that are kept only to be drawn, beyond those that witnesses change.
const DRAWN: usize = 20_000;

/// Positions of nodes in the columns of the report.
#[derive(Debug)]
pub(super) struct Surroundings {
    /// Node at each position.
    pub(super) nodes: Vec<NodeId>,
    /// Position of each node, or [`u32::MAX`].
    positions: Vec<u32>,
    /// Nodes with results; they come first.
    pub(super) subjects: usize,
    /// Positions of neighbours, by position.
    pub(super) neighbours: Vec<Vec<u32>>,
}

impl Surroundings {
    /// `subjects` in increasing order, nodes that witnesses have `changed`, and what lies within two hops of a subject, as far as there is
    /// room.
    pub(super) fn new(graph: &Graph, mut subjects: Vec<NodeId>, changed: impl Iterator<Item = NodeId>) -> Self {
        subjects.sort_unstable();
        subjects.dedup();
        let count = subjects.len();
        let mut found = Self {
            nodes: Vec::new(),
            positions: vec![u32::MAX; graph.nodes()],
            subjects: count,
            neighbours: Vec::new(),
        };
        subjects.into_iter().for_each(|node| found.add(node));
        changed.for_each(|node| found.add(node));
        let room = found.nodes.len() + DRAWN;
        let mut from = 0;
        for _hop in 0..2 {
            let until = found.nodes.len();
            for position in from..until {
                for node in neighbours(graph, found.nodes[position]) {
                    if found.nodes.len() < room {
                        found.add(node);
                    }
                }
            }
            from = until;
        }
        found.neighbours = found.nodes.iter().map(|&node| found.positions_of(neighbours(graph, node))).collect();
        found
    }

    fn add(&mut self, node: NodeId) {
        let position = &mut self.positions[node.index()];
        if *position == u32::MAX {
            *position = self.nodes.len() as u32;
            self.nodes.push(node);
        }
    }

    fn positions_of(&self, nodes: impl Iterator<Item = NodeId>) -> Vec<u32> {
        nodes.map(|node| self.position(node)).filter(|&position| position != u32::MAX).collect()
    }

    /// The position of a node, [`u32::MAX`] if it is not there.
    pub(super) fn position(&self, node: NodeId) -> u32 {
        self.positions[node.index()]
    }
}

/// The first neighbours of `node`, itself left out.
fn neighbours(graph: &Graph, node: NodeId) -> impl Iterator<Item = NodeId> {
    let others = graph.adjacency().row(node.index()).iter().map(|&other| NodeId(other));
    others.filter(move |&other| other != node).take(NEIGHBOURS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_drawn_lies_within_two_hops() {
        let path: Vec<(u32, u32)> = (0..9).map(|node| (node, node + 1)).collect();
        let graph = Graph::new(10, 1, &path, &[]).unwrap();
        let found = Surroundings::new(&graph, [3, 2, 3].map(NodeId).to_vec(), [NodeId(9)].into_iter());
        assert_eq!((found.subjects, &found.nodes[..3]), (2, &[2, 3, 9].map(NodeId)[..]));
        let mut nodes = found.nodes.clone();
        nodes.sort_unstable();
        assert_eq!(nodes, [0, 1, 2, 3, 4, 5, 7, 8, 9].map(NodeId));
        let [before, own, after] = [3, 4, 5].map(|node| found.position(NodeId(node)));
        assert_eq!(found.neighbours[own as usize], [before, after]);
    }

    #[test]
    fn a_hub_keeps_some_of_its_neighbours() {
        let star: Vec<(u32, u32)> = (1..200).map(|node| (0, node)).collect();
        let graph = Graph::new(200, 1, &star, &[]).unwrap();
        let found = Surroundings::new(&graph, vec![NodeId(0)], std::iter::empty());
        assert_eq!((found.nodes.len(), found.neighbours[0].len()), (NEIGHBOURS + 1, NEIGHBOURS));
    }
}

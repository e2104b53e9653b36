//! What a target sees of the graph when no edge is deleted, and which deletions it notices.

use std::collections::{BTreeMap, BTreeSet};

use super::super::Problem;
use super::super::evaluate::{Sent, levels};
use super::super::mixing::{Mixing, has_loop};
use super::super::subproblem::Subproblem;
use crate::dense::Matrix;
use crate::edge::Edge;
use crate::ids::NodeId;
use crate::model::Source;

/// The place of a node that is not there.
pub(super) const NOWHERE: u32 = u32::MAX;

/// The nodes that layers read, numbered from 0 in the order of their ids.
#[derive(Debug)]
pub(super) struct Region {
    pub(super) nodes: Vec<NodeId>,
    /// Of each layer: the numbers of the nodes whose units the target reads, and the place of each node among them.
    pub(super) rows: Vec<Vec<u32>>,
    pub(super) places: Vec<Vec<u32>>,
    pub(super) has_loop: Vec<bool>,
    /// `X W` of each node for all terms that read the attributes.
    pub(super) sent: Matrix,
    /// The magnitudes of what that is the sum of.
    pub(super) sizes: Matrix,
}

/// A deletion that the target may notice, or several that do the same to it.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    /// The numbers of its ends, or [`NOWHERE`].
    pub(super) ends: [u32; 2],
    /// Edges of which it does not matter which one is deleted.
    pub(super) alike: Vec<Edge>,
}

impl Region {
    pub(super) fn new(problem: &Problem, target: NodeId) -> Self {
        let (graph, layers) = (problem.network.graph(), problem.network.layers());
        let levels = levels(problem, &Subproblem::default(), target);
        let mut nodes = BTreeSet::new();
        for (layer, level) in layers.iter().zip(&levels) {
            nodes.extend(level);
            if layer.terms().iter().any(|term| problem.shares[term.propagation()].mixed != 0.0) {
                let neighbours = level.iter().flat_map(|node| graph.adjacency().row(node.index()));
                nodes.extend(neighbours.map(|&other| NodeId(other)));
            }
        }
        let nodes: Vec<NodeId> = nodes.into_iter().collect();
        let number = |node: &NodeId| nodes.binary_search(node).map_or(NOWHERE, |number| number as u32);
        let rows: Vec<Vec<u32>> = levels.iter().map(|level| level.iter().map(number).collect()).collect();
        let place = |rows: &Vec<u32>| {
            let mut places = vec![NOWHERE; nodes.len()];
            rows.iter().enumerate().for_each(|(place, &row)| places[row as usize] = place as u32);
            places
        };
        let places = rows.iter().map(place).collect();
        let has_loop = nodes.iter().map(|&node| has_loop(graph, node)).collect();
        let reads = layers.iter().flat_map(|layer| layer.terms()).any(|term| term.source() == Source::Attributes);
        let columns = if reads { problem.network.attribute_weight().columns() } else { 0 };
        let (mut sent, mut sizes) = (Matrix::zeros(nodes.len(), columns), Matrix::zeros(nodes.len(), columns));
        let mut sums = Sent::default();
        for (number, &node) in nodes.iter().enumerate().filter(|_| reads) {
            sent.row_mut(number).copy_from_slice(&sums.of(problem, node).values);
            sizes.row_mut(number).copy_from_slice(&sums.of(problem, node).sizes);
        }
        Self { nodes, rows, places, has_loop, sent, sizes }
    }

    pub(super) fn number(&self, node: NodeId) -> u32 {
        self.nodes.binary_search(&node).map_or(NOWHERE, |number| number as u32)
    }

    /// All deletions that the target may notice. Those at one node whose other ends it does not see, and are not limited, are alike.
    pub(super) fn candidates(&self, problem: &Problem) -> Vec<Candidate> {
        let (graph, limits, layers) = (problem.network.graph(), problem.limits, problem.network.layers());
        let shares = || layers.iter().flat_map(|layer| layer.terms()).map(|term| problem.shares[term.propagation()]);
        let sees_degrees = shares().any(|share| share.mixed != 0.0 && share.mixing == Mixing::Symmetric);
        let mixes = |i: usize| layers[i].terms().iter().any(|term| problem.shares[term.propagation()].mixed != 0.0);
        let is_row = |n: u32| (0..layers.len()).any(|i| self.places[i][n as usize] != NOWHERE && mixes(i));
        let (mut found, mut beyond) = (Vec::new(), BTreeMap::<u32, Vec<Edge>>::new());
        for (n, &node) in self.nodes.iter().enumerate() {
            let n = n as u32;
            for &other in graph.adjacency().row(node.index()) {
                let Some(edge) = Edge::between(node, NodeId(other)).filter(|&edge| limits.may_delete(edge)) else {
                    continue;
                };
                let m = self.number(NodeId(other));
                if m == NOWHERE && sees_degrees {
                    let row = graph.adjacency().row(other as usize);
                    let is_limited =
                        limits.at(NodeId(other)) < row.len() - usize::from(row.binary_search(&other).is_ok());
                    if is_limited {
                        found.push(Candidate { ends: [n, NOWHERE], alike: vec![edge] });
                    } else {
                        beyond.entry(n).or_default().push(edge);
                    }
                } else if m != NOWHERE && n < m && (sees_degrees || is_row(n) || is_row(m)) {
                    found.push(Candidate { ends: [n, m], alike: vec![edge] });
                }
            }
        }
        found.extend(beyond.into_iter().map(|(n, alike)| Candidate { ends: [n, NOWHERE], alike }));
        found
    }
}

//! Which edges a target can notice at all.

use std::collections::BTreeSet;

use super::Problem;
use crate::edge::Edge;
use crate::ids::NodeId;

/// The edges at nodes within as many hops of the target as there are layers, the nearest first: a layer reads neighbours, and the degrees of
/// neighbours.
pub(super) fn edges(problem: &Problem, target: NodeId) -> Vec<Edge> {
    let adjacency = problem.network.graph().adjacency();
    let (mut seen, mut level) = (BTreeSet::from([target]), vec![target]);
    let (mut found, mut all) = (BTreeSet::new(), Vec::new());
    for _ in 0..=problem.network.layers().len() {
        let mut next = Vec::new();
        for &node in &level {
            for &other in adjacency.row(node.index()) {
                let other = NodeId(other);
                if let Some(edge) = Edge::between(node, other).filter(|&edge| problem.limits.may_delete(edge))
                    && found.insert(edge)
                {
                    all.push(edge);
                }
                if seen.insert(other) {
                    next.push(other);
                }
            }
        }
        level = next;
    }
    all
}

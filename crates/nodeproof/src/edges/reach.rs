//! Which edges a target can notice at all.

use std::collections::BTreeSet;

use super::Problem;
use crate::edge::Edge;
use crate::ids::NodeId;

/// The nodes within one hop more than there are layers, ascending: what the target sees, and what gives that its degrees.
pub(super) fn nodes(problem: &Problem, target: NodeId) -> Vec<u32> {
    let adjacency = problem.network.graph().adjacency();
    let (mut seen, mut level) = (BTreeSet::from([target.0]), vec![target.0]);
    for _ in 0..=problem.network.layers().len() {
        let next: Vec<u32> = level.iter().flat_map(|&node| adjacency.row(node as usize)).copied().collect();
        level = next.into_iter().filter(|&node| seen.insert(node)).collect();
    }
    seen.into_iter().collect()
}

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

//! Which nodes and edges a target can notice at all.

use std::collections::BTreeSet;

use super::Problem;
use crate::edge::Edge;
use crate::ids::NodeId;

/// The nodes within so many hops of a target, the nearest first.
fn within(problem: &Problem, target: NodeId, hops: usize) -> Vec<NodeId> {
    let adjacency = problem.network.graph().adjacency();
    let (mut seen, mut found) = (BTreeSet::from([target.0]), vec![target]);
    let mut done = 0;
    for _ in 0..hops {
        for place in std::mem::replace(&mut done, found.len())..found.len() {
            let neighbours = adjacency.row(found[place].index());
            found.extend(neighbours.iter().filter(|&&node| seen.insert(node)).map(|&node| NodeId(node)));
        }
    }
    found
}

/// The edges at nodes within as many hops of the target as there are layers, the nearest first: a layer reads neighbours, and the degrees of
/// neighbours.
pub(super) fn edges(problem: &Problem, target: NodeId) -> Vec<Edge> {
    let adjacency = problem.network.graph().adjacency();
    let at = |node: NodeId| {
        let edges = adjacency.row(node.index()).iter().filter_map(move |&other| Edge::between(node, NodeId(other)));
        edges.filter(|&edge| problem.limits.may_delete(edge))
    };
    let mut seen = BTreeSet::new();
    let all = within(problem, target, problem.network.layers().len()).into_iter().flat_map(at);
    all.filter(|&edge| seen.insert(edge)).collect()
}

//! What a target with one hidden layer sees of a subproblem: rows, and the nodes at their ends.

use std::collections::HashMap;

use super::weights::{AllInputs, Weights};
use crate::edge::Edge;
use crate::edges::Problem;
use crate::edges::evaluate::Sent;
use crate::edges::mixing::{Mixing, has_loop};
use crate::edges::subproblem::Subproblem;
use crate::ids::NodeId;

/// The rows of the hidden layer that the last layer reads, that of the target first, and the nodes that these read.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) rows: Vec<Row>,
    pub(super) ends: Vec<End>,
    /// Edges that are at no row, but change what rows read.
    pub(super) rest: Vec<Rest>,
    /// How many more edges may be deleted.
    pub(super) left: usize,
    /// Neighbours of the longest row.
    pub(super) longest: usize,
}

/// A node whose hidden units are read: the target, or a neighbour of it.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) node: NodeId,
    pub(super) degree: usize,
    pub(super) has_loop: bool,
    /// Most deletions at it, but for that of its edge to the target.
    pub(super) most: usize,
    /// Whether the edge to the target may be deleted.
    pub(super) may_drop: bool,
    /// What it reads, but for itself.
    pub(super) reads: Vec<Read>,
    /// Whether one deletion may change what two of its neighbours send.
    pub(super) has_triangles: bool,
}

/// A neighbour of a row.
#[derive(Debug, Clone, Copy)]
pub(super) struct Read {
    /// Its place among all ends.
    pub(super) end: usize,
    pub(super) may_delete: bool,
}

/// A node that rows read.
#[derive(Debug)]
pub(super) struct End {
    pub(super) node: NodeId,
    /// Its place among the rows, if it is one.
    pub(super) row: Option<usize>,
    /// What it sends is multiplied by this now,
    pub(super) from: f64,
    /// by at most so much more for each deletion at it,
    pub(super) rise: f64,
    /// and by at most this in the end.
    pub(super) largest: f64,
}

/// Edges at no row, of which it does not matter which one is deleted.
#[derive(Debug)]
pub(super) struct Rest {
    pub(super) edges: Vec<Edge>,
    /// The ends that rows read.
    pub(super) ends: [Option<usize>; 2],
    /// How many of them may be deleted.
    pub(super) most: usize,
}

impl Seen {
    pub(super) fn new(
        problem: &Problem,
        weights: &Weights,
        (inputs, sent): (&mut AllInputs, &mut Sent),
        sub: &Subproblem,
        target: NodeId,
        left: usize,
    ) -> Self {
        let (graph, limits, mixing) = (problem.network.graph(), problem.limits, weights.mixing);
        let neighbours = |node: NodeId| sub.neighbours(graph, node).filter(move |&other| other != node);
        let row_nodes: Vec<NodeId> = std::iter::once(target).chain(neighbours(target)).collect();
        let mut places: HashMap<NodeId, usize> = HashMap::new();
        let mut ends: Vec<End> = Vec::new();
        let mut place_of = |node: NodeId, row: Option<usize>| {
            *places.entry(node).or_insert_with(|| {
                inputs.know(problem, sent, node);
                let degree = sub.degree(graph, node);
                let most = sub.left_at(limits, node).min(left);
                let (from, largest) = (mixing.from(degree), mixing.from(degree - most.min(degree)));
                let rise = if most == 0 { 0.0 } else { (largest - from) / most as f64 };
                ends.push(End { node, row, from, rise, largest });
                ends.len() - 1
            })
        };
        // Rows are ends themselves, in the same places.
        for (row, &node) in row_nodes.iter().enumerate() {
            place_of(node, Some(row));
        }
        let may_delete = |a: NodeId, b: NodeId| Edge::between(a, b).is_some_and(|edge| sub.may_delete(limits, edge));
        let mut rows = Vec::with_capacity(row_nodes.len());
        for &node in &row_nodes {
            let reads: Vec<Read> = neighbours(node)
                .map(|end| Read { end: place_of(end, None), may_delete: may_delete(node, end) })
                .collect();
            let may_drop = may_delete(target, node);
            let deletable = reads.iter().filter(|read| read.may_delete && read.end != 0).count();
            rows.push(Row {
                node,
                degree: sub.degree(graph, node),
                has_loop: has_loop(graph, node),
                most: deletable.min(left).min(sub.left_at(limits, node)),
                may_drop,
                reads,
                has_triangles: false,
            });
        }
        let longest = rows.iter().map(|row| row.reads.len()).max().unwrap_or(0);
        let mut seen = Self { rows, ends, rest: Vec::new(), left, longest };
        if mixing == Mixing::Symmetric && left > 0 {
            seen.look_around(problem, sub, &places);
        }
        seen
    }

    /// Finds the triangles of rows, and the edges at no row.
    fn look_around(&mut self, problem: &Problem, sub: &Subproblem, places: &HashMap<NodeId, usize>) {
        let (graph, limits, rows) = (problem.network.graph(), problem.limits, self.rows.len());
        let mut reads = vec![usize::MAX; self.ends.len()];
        for row in 0..rows {
            self.rows[row].reads.iter().for_each(|read| reads[read.end] = row);
            let is_read = |node: NodeId| places.get(&node).is_some_and(|&place| reads[place] == row);
            let ends = self.rows[row].reads.iter().map(|read| self.ends[read.end].node);
            let mut pairs = ends.flat_map(|end| sub.neighbours(graph, end).filter(move |&other| other != end));
            self.rows[row].has_triangles = pairs.any(is_read);
        }
        for place in rows..self.ends.len() {
            let node = self.ends[place].node;
            let mut alike = Vec::new();
            for other in sub.neighbours(graph, node).filter(|&other| other != node) {
                let Some(edge) = Edge::between(node, other).filter(|&edge| sub.may_delete(limits, edge)) else {
                    continue;
                };
                match places.get(&other) {
                    Some(&other) if other < rows => {}
                    Some(&other) if other > place => {
                        self.rest.push(Rest { edges: vec![edge], ends: [Some(place), Some(other)], most: 1 });
                    }
                    Some(_) => {}
                    // The limit of a node far away may bind where it has several edges here.
                    None => {
                        let here = sub.neighbours(graph, other).filter(|end| places.contains_key(end)).count();
                        if sub.left_at(limits, other) >= here {
                            alike.push(edge);
                        } else {
                            self.rest.push(Rest { edges: vec![edge], ends: [Some(place), None], most: 1 });
                        }
                    }
                }
            }
            if !alike.is_empty() {
                let most = alike.len().min(sub.left_at(limits, node)).min(self.left);
                self.rest.push(Rest { edges: alike, ends: [Some(place), None], most });
            }
        }
    }
}

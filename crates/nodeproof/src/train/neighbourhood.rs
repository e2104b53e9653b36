//! What a batch of nodes sees, as a graph of its own: a step costs what its batch sees, however large the graph is.

use std::ops::Deref;

use super::dropout::Dropout;
use super::robust::Target;
use crate::budget::Limits;
use crate::graph::Graph;
use crate::ids::NodeId;
use crate::model::Model;
use crate::slice::level_of;
use crate::sparse::SparseMatrix;

/// The part of a graph that some nodes see, with the propagations there. Nodes are renumbered in their order, so that every sum and every
/// choice is the same as on the whole graph.
#[derive(Debug)]
pub(super) struct Neighbourhood {
    /// The nodes with their attributes.
    pub(super) graph: Graph,
    /// The propagations: all entries of the rows that some layer reads.
    pub(super) matrices: Vec<SparseMatrix>,
    pub(super) limits: Limits,
    /// The nodes as the whole graph has them, ascending.
    nodes: Vec<u32>,
}

impl Neighbourhood {
    /// Where a node of the whole graph is among these.
    ///
    /// # Panics
    /// If it is not.
    pub(super) fn place(&self, node: NodeId) -> NodeId {
        let place = self.nodes.binary_search(&node.0);
        NodeId(place.unwrap_or_else(|_| unreachable!("node {node} is in its own neighbourhood")) as u32)
    }

    /// The same without the attributes that a step leaves out.
    pub(super) fn thinned(self, dropout: Dropout) -> Self {
        Self { graph: dropout.thinned(&self.graph, &self.nodes), ..self }
    }
}

/// Finds neighbourhoods in one graph.
#[derive(Debug)]
pub(super) struct Surroundings<G> {
    graph: G,
    matrices: Vec<SparseMatrix>,
    limits: Limits,
    /// Where nodes of the last neighbourhood are in it; of others, whatever was there before.
    places: Vec<u32>,
}

impl<G: Deref<Target = Graph>> Surroundings<G> {
    /// A graph with the propagations of the models to come.
    pub(super) fn new(graph: G, matrices: Vec<SparseMatrix>, limits: Limits) -> Self {
        Self { places: vec![0; graph.nodes()], graph, matrices, limits }
    }

    /// The graph.
    pub(super) fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The propagations on the whole graph.
    pub(super) fn matrices(&self) -> &[SparseMatrix] {
        &self.matrices
    }

    /// What `targets` see of `model`.
    pub(super) fn of(&mut self, model: &Model, targets: impl IntoIterator<Item = NodeId>) -> Neighbourhood {
        let (nodes, read) = self.seen(model, targets);
        for (place, &node) in (0..).zip(&nodes) {
            self.places[node as usize] = place;
        }
        let place = |node: u32| self.places[node as usize];
        let cut = |(matrix, rows): (&SparseMatrix, &Vec<u32>)| matrix.renumbered(nodes.len(), rows, place);
        Neighbourhood {
            graph: self.graph.attributes_of(&nodes),
            matrices: self.matrices.iter().zip(&read).map(cut).collect(),
            limits: self.limits.of_nodes(&nodes),
            nodes,
        }
    }

    /// What `targets` see of `model`, and they themselves as they are numbered there.
    pub(super) fn of_targets<L>(
        &mut self,
        model: &Model,
        mut targets: Vec<Target<L>>,
    ) -> (Neighbourhood, Vec<Target<L>>) {
        let seen = self.of(model, targets.iter().map(|target| target.node));
        targets.iter_mut().for_each(|target| target.node = seen.place(target.node));
        (seen, targets)
    }

    /// All nodes that `targets` see, and the rows of each propagation that they read, ascending. Columns of terms of the constant 1 are
    /// among the nodes, too: they count, though nothing of them does.
    fn seen(&self, model: &Model, targets: impl IntoIterator<Item = NodeId>) -> (Vec<u32>, Vec<Vec<u32>>) {
        let layers = model.layers();
        let mut levels: Vec<Vec<u32>> = vec![Vec::new(); layers.len() + 1];
        levels[layers.len()] = targets.into_iter().map(|target| target.0).collect();
        let (mut counted, mut read) = (Vec::new(), vec![Vec::new(); self.matrices.len()]);
        for (i, layer) in layers.iter().enumerate().rev() {
            let (lower, upper) = levels.split_at_mut(i + 1);
            let rows = &mut upper[0];
            sort_once(rows);
            for term in layer.terms() {
                let below = level_of(term.source()).map_or(&mut counted, |level| &mut lower[level]);
                let matrix = &self.matrices[term.propagation()];
                rows.iter().for_each(|&row| below.extend_from_slice(matrix.row(row as usize).0));
                read[term.propagation()].extend_from_slice(rows);
            }
        }
        let mut nodes = levels.concat();
        nodes.append(&mut counted);
        sort_once(&mut nodes);
        read.iter_mut().for_each(sort_once);
        (nodes, read)
    }
}

/// Sorts numbers and leaves each only once.
fn sort_once(numbers: &mut Vec<u32>) {
    numbers.sort_unstable();
    numbers.dedup();
}

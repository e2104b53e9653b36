//! The network on a graph that is being tampered with, flip by flip.

use std::collections::BTreeMap;

use crate::dense::{Matrix, add_scaled};
use crate::flip::Flip;
use crate::ids::NodeId;
use crate::model::{Source, Weight};
use crate::network::Network;
use crate::sparse::SparseMatrix;

/// What the network computes of all nodes under some flips.
pub(crate) struct Tampered<'n> {
    network: &'n Network<'n>,
    /// Of each propagation the nodes that read a node, with weights.
    readers: Vec<SparseMatrix>,
    /// The flips of each row that has some.
    flips: BTreeMap<NodeId, Vec<Flip>>,
    /// Pre-activations of all layers.
    layers: Vec<Matrix>,
    changes: Vec<Changes>,
    row: Vec<f64>,
}

/// By what rows of one layer change.
#[derive(Default)]
struct Changes {
    /// 1 + the place of each node among those that change, or 0.
    places: Vec<u32>,
    nodes: Vec<u32>,
    values: Vec<f64>,
    units: usize,
}

impl Changes {
    fn new(nodes: usize, units: usize) -> Self {
        Self { places: vec![0; nodes], units, ..Self::default() }
    }

    fn clear(&mut self) {
        self.nodes.drain(..).for_each(|node| self.places[node as usize] = 0);
        self.values.clear();
    }

    /// The change of a node.
    fn row_mut(&mut self, node: u32) -> &mut [f64] {
        let place = &mut self.places[node as usize];
        if *place == 0 {
            self.nodes.push(node);
            *place = self.nodes.len() as u32;
            self.values.resize(self.values.len() + self.units, 0.0);
        }
        let start = (*place as usize - 1) * self.units;
        &mut self.values[start..start + self.units]
    }

    fn rows(&self) -> impl Iterator<Item = (u32, &[f64])> {
        self.nodes.iter().copied().zip(self.values.chunks_exact(self.units))
    }
}

impl<'n> Tampered<'n> {
    pub(crate) fn new(network: &'n Network<'n>) -> Self {
        let all: Vec<NodeId> = network.graph().node_ids().collect();
        let region = network.region(&all);
        let sums = network.attribute_sums(region.level(0).nodes());
        let nodes = network.graph().nodes();
        let layers = network.pre_activations(&region, &sums);
        let of_all = |(i, layer): (usize, &Matrix)| {
            let mut whole = Matrix::zeros(nodes, layer.columns());
            for (place, &node) in region.level(i + 1).nodes().iter().enumerate() {
                whole.row_mut(node as usize).copy_from_slice(layer.row(place));
            }
            whole
        };
        Self {
            network,
            readers: network.matrices().iter().map(readers_of).collect(),
            flips: BTreeMap::new(),
            layers: layers.iter().enumerate().map(of_all).collect(),
            changes: network.layers().iter().map(|layer| Changes::new(nodes, layer.units())).collect(),
            row: Vec::new(),
        }
    }

    /// The logits of a node.
    pub(crate) fn logits(&self, node: NodeId) -> &[f64] {
        self.layers[self.layers.len() - 1].row(node.index())
    }

    /// All flips that are made.
    pub(crate) fn flips(&self) -> impl Iterator<Item = &Flip> {
        self.flips.values().flatten()
    }

    /// How many flips are made at a node.
    pub(crate) fn flips_at(&self, node: NodeId) -> usize {
        self.flips.get(&node).map_or(0, Vec::len)
    }

    /// Whether an entry is flipped.
    pub(crate) fn is_flipped(&self, flip: &Flip) -> bool {
        self.flips.get(&flip.node).is_some_and(|flips| flips.iter().any(|of| of.attribute == flip.attribute))
    }

    /// By what the logits of nodes change if a flip is made, or undone if it is.
    pub(crate) fn look(&mut self, flip: &Flip) -> impl Iterator<Item = (NodeId, &[f64])> {
        let other = self.toggled(flip);
        self.change(flip.node, &other);
        self.changes[self.changes.len() - 1].rows().map(|(node, row)| (NodeId(node), row))
    }

    /// Makes a flip, or undoes it.
    pub(crate) fn toggle(&mut self, flip: &Flip) {
        let other = self.toggled(flip);
        self.change(flip.node, &other);
        for (layer, changes) in self.layers.iter_mut().zip(&self.changes) {
            for (node, change) in changes.rows() {
                add_scaled(layer.row_mut(node as usize), 1.0, change);
            }
        }
        self.flips.insert(flip.node, other);
    }

    /// The flips of a row with another one, or without it.
    fn toggled(&self, flip: &Flip) -> Vec<Flip> {
        let mut flips = self.flips.get(&flip.node).cloned().unwrap_or_default();
        match flips.iter().position(|of| of.attribute == flip.attribute) {
            Some(place) => _ = flips.remove(place),
            None => flips.push(*flip),
        }
        flips
    }

    /// By what all layers change if a row has other flips than it has.
    fn change(&mut self, node: NodeId, flips: &[Flip]) {
        let Self { network, readers, layers, changes, row, .. } = self;
        let weight = network.attribute_weight();
        row.clear();
        row.resize(weight.columns(), 0.0);
        add_row(network, node, flips, 1.0, row);
        let before = self.flips.get(&node).map_or(&[][..], Vec::as_slice);
        add_row(network, node, before, -1.0, row);
        for (i, layer) in network.layers().iter().enumerate() {
            let (below, above) = changes.split_at_mut(i);
            let here = &mut above[0];
            here.clear();
            for (k, term) in layer.terms().iter().enumerate() {
                let readers = &readers[term.propagation()];
                match term.source() {
                    Source::Ones => {}
                    Source::Attributes => {
                        let of_term = &row[network.attribute_columns(i, k)];
                        send(readers, node.0, of_term, here);
                    }
                    Source::Layer(source) => {
                        let activation = network.layers()[source].activation();
                        for (n, change) in below[source].rows() {
                            let z = layers[source].row(n as usize).iter().zip(change);
                            let moved = z.map(|(z, change)| activation.of(z + change) - activation.of(*z));
                            let moved: Vec<f64> = moved.collect();
                            if moved.iter().any(|&x| x != 0.0) {
                                send(readers, n, &product(&moved, term.weight()), here);
                            }
                        }
                    }
                }
            }
        }
    }
}

/// `x W`.
fn product(x: &[f64], weight: &Weight) -> Vec<f64> {
    match weight {
        Weight::Scalar(factor) => x.iter().map(|x| factor * x).collect(),
        Weight::Dense(weight) => {
            let mut sums = vec![0.0; weight.columns()];
            for (input, &x) in x.iter().enumerate().filter(|(_, x)| **x != 0.0) {
                add_scaled(&mut sums, x, weight.row(input));
            }
            sums
        }
    }
}

/// Adds what a node sends, times the weights of those that read it.
fn send(readers: &SparseMatrix, node: u32, change: &[f64], to: &mut Changes) {
    let (nodes, weights) = readers.row(node as usize);
    for (&m, &p) in nodes.iter().zip(weights) {
        add_scaled(to.row_mut(m), p, change);
    }
}

/// Who reads each node, with weights: the propagation transposed.
fn readers_of(propagation: &SparseMatrix) -> SparseMatrix {
    let rows = 0..propagation.rows() as u32;
    let of_row = |m: u32| {
        let (columns, weights) = propagation.row(m as usize);
        columns.iter().zip(weights).map(move |(&n, &p)| (n, m, p))
    };
    let entries: Vec<(u32, u32, f64)> = rows.flat_map(of_row).collect();
    SparseMatrix::from_triplets(propagation.rows(), propagation.rows(), &entries)
}

/// Adds to `sums` a multiple of what flips of a row change `X_n W` by.
fn add_row(network: &Network, node: NodeId, flips: &[Flip], multiple: f64, sums: &mut [f64]) {
    let (graph, weight) = (network.graph(), network.attribute_weight());
    let (before, after) = network.divisors(node, flips.iter().map(|flip| flip.adds()));
    if before != after {
        let by = multiple * (1.0 / after - 1.0 / before);
        graph.entries_of(node).for_each(|(d, value)| add_scaled(sums, by * value, weight.row(d.index())));
    }
    for flip in flips {
        let change = (flip.to - graph.value(node, flip.attribute)) / after;
        add_scaled(sums, multiple * change, weight.row(flip.attribute.index()));
    }
}

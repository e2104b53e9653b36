//! The network on its graph, and the part of both that one node sees.

use std::collections::BTreeMap;
use std::ops::Range;

use nodeproof_problem::{
    AttributeId, Flip, Graph, Layer, Limits, Matrix, Model, ModelError, NodeId, Source, SparseMatrix, Term, Weight,
};
use num_bigint::BigInt;

use crate::interval::{Interval, larger, up};
use crate::number::{Activated, Exact, Number, add_product, add_scaled, add_transposed};

/// What is checked against, and what all nodes have in common.
pub(crate) struct Network<'a> {
    pub(crate) graph: &'a Graph,
    pub(crate) model: &'a Model,
    pub(crate) limits: Limits,
    /// P of each of the model's propagations.
    pub(crate) matrices: Vec<SparseMatrix>,
    /// The weights W of all terms that read the attributes side by side, attributes × width, in the order of the terms.
    pub(crate) weight: Matrix,
    /// `X W`, nodes × width.
    sums: Vec<Vec<Interval>>,
    /// Upper bounds of `‖W_d‖`, and the attributes that may be flipped by falling bounds.
    pub(crate) lengths: Vec<f64>,
    pub(crate) by_length: Vec<AttributeId>,
    /// The most that an entry can change by.
    pub(crate) widest: f64,
}

impl<'a> Network<'a> {
    pub(crate) fn new(graph: &'a Graph, model: &'a Model, limits: Limits) -> Result<Self, ModelError> {
        model.check_fits(graph)?;
        let matrices = model.propagations().iter().map(|of| of.matrix(graph)).collect::<Result<_, _>>()?;
        let weight = attribute_weight(model);
        let lengths: Vec<f64> = (0..weight.rows()).map(|d| length(weight.row(d).iter().copied())).collect();
        let mut by_length: Vec<AttributeId> = (0..weight.rows() as u32).map(AttributeId).collect();
        by_length.retain(|&attribute| limits.flippable(attribute));
        by_length.sort_by(|a, b| lengths[b.index()].total_cmp(&lengths[a.index()]));
        let sums = Vec::new();
        let mut network = Self { graph, model, limits, matrices, weight, sums, lengths, by_length, widest: 0.0 };
        network.widest = (0..network.weight.rows()).map(|d| network.width(d)).fold(0.0, larger);
        network.sums = graph.node_ids().map(|node| network.sum_of(&network.row(node, &[]))).collect();
        Ok(network)
    }

    /// The most that an entry of an attribute can change by.
    pub(crate) fn width(&self, attribute: usize) -> f64 {
        self.graph.values().map_or(1.0, |values| up(values.widest(AttributeId(attribute as u32))))
    }

    pub(crate) fn layers(&self) -> &'a [Layer] {
        self.model.layers()
    }

    /// The entries of a node's attributes other than 0 with flips made.
    pub(crate) fn row(&self, node: NodeId, flips: &[Flip]) -> BTreeMap<AttributeId, f64> {
        let mut row: BTreeMap<_, _> = self.graph.entries_of(node).collect();
        row.extend(flips.iter().filter(|flip| flip.node == node).map(|flip| (flip.attribute, flip.to)));
        row.retain(|_, value| *value != 0.0);
        row
    }

    /// `x W` of a row of attributes, divided by the number of its ones where that is what the network reads.
    fn sum_of(&self, row: &BTreeMap<AttributeId, f64>) -> Vec<Interval> {
        let divisor = self.divisor(row);
        self.whole_sum(row, &Interval::of(1.0)).into_iter().map(|sum| sum.over(divisor)).collect()
    }

    /// The same times `one`, and not divided.
    pub(crate) fn whole_sum<N: Number>(&self, row: &BTreeMap<AttributeId, f64>, one: &N) -> Vec<N> {
        let mut sum = vec![N::ZERO; self.weight.columns()];
        for (attribute, &value) in row {
            let (value, weights) = (one.times(value), self.weight.row(attribute.index()));
            sum.iter_mut().zip(weights).for_each(|(sum, &w)| *sum = sum.plus(&value.times(w)));
        }
        sum
    }

    pub(crate) fn divisor(&self, row: &BTreeMap<AttributeId, f64>) -> usize {
        self.graph.kind().divisor(row.len()) as usize
    }

    /// `X W` of a node with flips made.
    pub(crate) fn sum(&self, node: NodeId, flips: &[Flip]) -> Vec<Interval> {
        if flips.iter().any(|flip| flip.node == node) {
            return self.sum_of(&self.row(node, flips));
        }
        self.sums[node.index()].clone()
    }
}

/// Rows of propagations: those of matrices, but for some that are others.
pub(crate) struct Rows<'m> {
    matrices: &'m [SparseMatrix],
    /// By propagation and node.
    pub(crate) others: BTreeMap<(usize, NodeId), (Vec<u32>, Vec<f64>)>,
}

impl<'m> Rows<'m> {
    pub(crate) fn of(matrices: &'m [SparseMatrix]) -> Self {
        Self { matrices, others: BTreeMap::new() }
    }

    /// Columns and entries.
    pub(crate) fn row(&self, propagation: usize, node: NodeId) -> (&[u32], &[f64]) {
        let usual = || self.matrices[propagation].row(node.index());
        self.others.get(&(propagation, node)).map_or_else(usual, |(columns, entries)| (columns, entries))
    }
}

/// An upper bound of the Euclidean length.
pub(crate) fn length(numbers: impl Iterator<Item = f64>) -> f64 {
    up(numbers.fold(0.0, |sum, x| up(sum + up(x * x))).sqrt())
}

/// The weights that the attributes meet side by side.
fn attribute_weight(model: &Model) -> Matrix {
    let mut columns: Vec<(&Weight, usize)> = Vec::new();
    for layer in model.layers() {
        for term in layer.terms().iter().filter(|term| term.source() == Source::Attributes) {
            columns.extend((0..layer.units()).map(|j| (term.weight(), j)));
        }
    }
    let entry = |d: usize, (weight, j): (&Weight, usize)| match weight {
        Weight::Dense(dense) => dense.get(d, j),
        Weight::Scalar(factor) => factor * f64::from(u8::from(d == j)),
    };
    let row = |d: usize| columns.iter().map(move |&column| entry(d, column));
    Matrix::from_values(model.attributes(), columns.len(), (0..model.attributes()).flat_map(row).collect())
}

/// What one node sees: the nodes whose attributes matter to it, and for each layer those whose units do, numbered in this order.
pub(crate) struct Region {
    pub(crate) rows: Vec<NodeId>,
    pub(crate) nodes: Vec<Vec<NodeId>>,
    /// For each term of each layer.
    pub(crate) terms: Vec<Vec<LocalTerm>>,
}

/// For each node that a term reads, or for the constant 1, those that read it there, and the entries of P by which they do; of a term that
/// reads the attributes, the columns of their weights.
pub(crate) struct LocalTerm {
    pub(crate) readers: Vec<Vec<(usize, f64)>>,
    pub(crate) columns: Range<usize>,
}

/// Numbers of the units of a layer, or of the columns of rows, node by node; no numbers where all are 0.
pub(crate) type Units<N> = Vec<Vec<N>>;

impl Region {
    /// The region of a target where these are the rows of propagations.
    pub(crate) fn new(network: &Network, of: &Rows, target: NodeId) -> Self {
        let layers = network.layers();
        let (mut rows, mut nodes) = (Vec::new(), vec![Vec::new(); layers.len()]);
        nodes[layers.len() - 1].push(target);
        for (i, layer) in layers.iter().enumerate().rev() {
            nodes[i].sort_unstable();
            nodes[i].dedup();
            for term in layer.terms() {
                let read = nodes[i].iter().flat_map(|&m| of.row(term.propagation(), m).0);
                let read: Vec<NodeId> = read.map(|&n| NodeId(n)).collect();
                match term.source() {
                    Source::Attributes => rows.extend(read),
                    Source::Layer(source) => nodes[source].extend(read),
                    Source::Ones => {}
                }
            }
        }
        rows.sort_unstable();
        rows.dedup();
        let (mut terms, mut column) = (Vec::new(), 0);
        for (i, layer) in layers.iter().enumerate() {
            let local = |term: &Term| {
                let (read, columns): (&[NodeId], usize) = match term.source() {
                    Source::Attributes => (&rows, layer.units()),
                    Source::Layer(source) => (&nodes[source], 0),
                    Source::Ones => (&[], 0),
                };
                let mut readers = vec![Vec::new(); read.len().max(1)];
                for (m, &node) in nodes[i].iter().enumerate() {
                    let (from, values) = of.row(term.propagation(), node);
                    for (&n, &p) in from.iter().zip(values) {
                        readers[read.partition_point(|other| other.0 < n)].push((m, p));
                    }
                }
                column += columns;
                LocalTerm { readers, columns: column - columns..column }
            };
            terms.push(layer.terms().iter().map(local).collect());
        }
        Self { rows, nodes, terms }
    }

    /// The node that sees it.
    pub(crate) fn target(&self) -> NodeId {
        self.nodes[self.nodes.len() - 1][0]
    }

    /// `Σ P h W` over the terms of a layer, given what some rows send and the activations of the layers below.
    pub(crate) fn arrive<'s, N: Number + 's>(
        &self,
        network: &Network,
        layer: usize,
        sent: impl Iterator<Item = (usize, &'s [N])> + Clone,
        below: &[Units<N>],
    ) -> Units<N> {
        let of = &network.layers()[layer];
        let mut sums: Units<N> = vec![Vec::new(); self.nodes[layer].len()];
        let mut add = |readers: &[(usize, f64)], row: &[N]| {
            for &(m, p) in readers {
                sums[m].resize(of.units(), N::ZERO);
                add_scaled(&mut sums[m], p, row);
            }
        };
        for (term, local) in of.terms().iter().zip(&self.terms[layer]) {
            match term.source() {
                Source::Ones => {}
                Source::Attributes => {
                    sent.clone().for_each(|(n, row)| add(&local.readers[n], &row[local.columns.clone()]));
                }
                Source::Layer(source) => {
                    for (h, readers) in below[source].iter().zip(&local.readers).filter(|(h, _)| !h.is_empty()) {
                        let mut row = vec![N::ZERO; of.units()];
                        add_product(&mut row, h, term.weight());
                        add(readers, &row);
                    }
                }
            }
        }
        sums
    }

    /// Adds `Pᵀ λ Wᵀ` of a layer to the coefficients of what its terms read: of layers below, and of rows.
    pub(crate) fn back<N: Number>(
        &self,
        network: &Network,
        layer: usize,
        lambda: &Units<N>,
        below: &mut [Units<N>],
        rows: &mut Units<N>,
    ) {
        for (term, local) in network.layers()[layer].terms().iter().zip(&self.terms[layer]) {
            match term.source() {
                Source::Ones => {}
                Source::Attributes => {
                    for (row, readers) in rows.iter_mut().zip(&local.readers) {
                        readers.iter().for_each(|&(m, p)| add_scaled(&mut row[local.columns.clone()], p, &lambda[m]));
                    }
                }
                Source::Layer(source) => {
                    let width = network.layers()[source].units();
                    let turned = |lambda: &Vec<N>| {
                        let mut back = vec![N::ZERO; width];
                        add_transposed(&mut back, lambda, term.weight());
                        back
                    };
                    let back: Vec<Vec<N>> = lambda.iter().map(turned).collect();
                    for (sums, readers) in below[source].iter_mut().zip(&local.readers) {
                        readers.iter().for_each(|&(m, p)| add_scaled(sums, p, &back[m]));
                    }
                }
            }
        }
    }

    /// The pre-activations of all layers, given `X W` of the rows; all of it times `one`.
    pub(crate) fn forward<N: Activated>(&self, network: &Network, sums: &[Vec<N>], one: &N) -> Vec<Units<N>> {
        let (mut all, mut activations) = (Vec::new(), Vec::new());
        for (i, layer) in network.layers().iter().enumerate() {
            let sent = sums.iter().enumerate().map(|(n, sum)| (n, &sum[..]));
            let mut z = self.arrive(network, i, sent, &activations);
            for z in &mut z {
                z.resize(layer.units(), N::ZERO);
                z.iter_mut().zip(layer.bias()).for_each(|(z, &bias)| *z = z.plus(&one.times(bias)));
            }
            let terms = layer.terms().iter().zip(&self.terms[i]);
            for (term, local) in terms.filter(|(term, _)| term.source() == Source::Ones) {
                local.readers[0].iter().for_each(|&(m, p)| add_product(&mut z[m], &[one.times(p)], term.weight()));
            }
            let activated = |z: &Vec<N>| z.iter().map(|z| z.activated(layer.activation())).collect();
            activations.push(z.iter().map(activated).collect());
            all.push(z);
        }
        all
    }

    /// The logits of the target with flips made, and 1, in exact numbers, all times a positive whole number: the product of what rows are
    /// divided by, which no activation minds.
    pub(crate) fn exact_logits(&self, network: &Network, flips: &[Flip]) -> (Vec<Exact>, Exact) {
        let rows: Vec<_> = self.rows.iter().map(|&node| network.row(node, flips)).collect();
        let mut divisors: Vec<usize> = rows.iter().map(|row| network.divisor(row)).collect();
        divisors.sort_unstable();
        divisors.dedup();
        let scale: BigInt = divisors.iter().product();
        let one = |divisor: usize| Exact::whole(&scale / divisor);
        let sums: Vec<_> = rows.iter().map(|row| network.whole_sum(row, &one(network.divisor(row)))).collect();
        let logits = self.forward(network, &sums, &one(1)).pop().and_then(|mut last| last.pop());
        (logits.unwrap_or_default(), one(1))
    }
}

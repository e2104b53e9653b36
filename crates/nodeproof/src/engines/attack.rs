//! The exact network under given flips, on a slice.

use crate::dense::{Matrix, add_scaled};
use crate::forward::{self, Link, Values};
use crate::ids::{ClassId, NodeId};
use crate::model::{Activation, Source, Term, Weight};
use crate::prepare::Shard;
use crate::rounding::{Approximate, gamma_after, magnitude};
use crate::slice::{Hop, Slice, SliceHop, SlicedFlip, attribute_of};

/// Evaluates the network under flips, reusing its memory.
pub(crate) struct Attack<'a> {
    shared: &'a Shard<'a>,
    /// Change of `X_n W` for each node of level 0 that is flipped at, and which those are.
    moves: Matrix,
    moved: Vec<u32>,
    flips: Vec<SlicedFlip>,
    /// Pre-activations of each layer.
    layers: Vec<Matrix>,
    /// How flips change the activations of each layer, where units were left out of the slice.
    changes: Vec<Matrix>,
    sums: Vec<f64>,
    one: Matrix,
    /// Those of the target that was looked at last.
    errors: Option<MarginErrors>,
}

/// The smallest margin under some flips.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AttackMargin {
    /// The class that comes closest to y, or overtakes it.
    pub(crate) class: ClassId,
    /// `logit_y − logit_class`.
    pub(crate) margin: Approximate,
}

impl<'a> Attack<'a> {
    pub(crate) fn new(shared: &'a Shard<'a>) -> Self {
        Self {
            shared,
            moves: Matrix::default(),
            moved: Vec::new(),
            flips: Vec::new(),
            layers: shared.network.layers().iter().map(|_| Matrix::default()).collect(),
            changes: shared.network.layers().iter().map(|_| Matrix::default()).collect(),
            sums: Vec::new(),
            one: Matrix::from_values(1, 1, vec![1.0]),
            errors: None,
        }
    }

    /// The smallest margin of `y` under `flips`.
    pub(crate) fn margin(
        &mut self,
        slice: &Slice,
        y: ClassId,
        flips: impl Iterator<Item = SlicedFlip>,
    ) -> AttackMargin {
        self.flip(slice, flips);
        let has_units = slice.left_out_nodes().is_none();
        for layer in 0..self.layers.len() {
            if has_units || layer == 0 {
                self.evaluate(slice, layer);
            }
            if !has_units {
                self.move_on(slice, layer);
            }
        }
        let logits = self.layers[self.layers.len() - 1].row(0);
        let others = (0..logits.len()).filter(|&k| k != y.index());
        let closest = others.reduce(|a, b| if logits[b] > logits[a] { b } else { a });
        let class = ClassId(closest.unwrap_or_else(|| unreachable!("a model has at least two classes")) as u32);
        let value = logits[y.index()] - logits[class.index()];
        let shared = self.shared;
        self.errors.take_if(|errors| errors.target != slice.target());
        let errors = self.errors.get_or_insert_with(|| MarginErrors::new(shared, slice));
        let error = errors_of(slice) * errors.of(shared, y, class) + shared.overflow_error;
        AttackMargin { class, margin: Approximate { value, error } }
    }

    /// Adds up how `X W` changes at each node that is flipped at.
    fn flip(&mut self, slice: &Slice, flips: impl Iterator<Item = SlicedFlip>) {
        let weight = self.shared.network.attribute_weight();
        self.moved.clear();
        self.moved.resize(slice.level(0).len(), u32::MAX);
        self.flips.clear();
        self.flips.extend(flips);
        let mut rows = 0;
        for &(position, _) in &self.flips {
            if self.moved[position as usize] == u32::MAX {
                self.moved[position as usize] = rows;
                rows += 1;
            }
        }
        self.moves.reset(rows as usize, weight.columns());
        for &flip in &self.flips {
            let row = self.moves.row_mut(self.moved[flip.0 as usize] as usize);
            add_scaled(row, self.shared.change(slice, flip), weight.row(attribute_of(flip)));
        }
        if let Some(means) = &self.shared.bounds.clean.means {
            self.divide(slice, means);
        }
    }

    /// From `Σ σ W_d` to the change of `X_n W`, where rows are divided by the number of their ones: with m and m' of them, but at least 1,
    /// `(Σ σ W_d + (m − m') μ_n) / m'`.
    fn divide(&mut self, slice: &Slice, means: &Matrix) {
        let Shard { network, region, .. } = self.shared;
        let rows = self.moved.iter().zip(0u32..).filter(|&(&row, _)| row != u32::MAX);
        for (&row, position) in rows {
            let node = slice.level(0)[position as usize];
            let adds = self.flips.iter().filter(|flip| flip.0 == position);
            let adds = adds.map(|&flip| self.shared.change(slice, flip) > 0.0);
            let (before, after) = network.divisors(NodeId(node), adds);
            let mean = means.row(region.level(0).place(node));
            let row = self.moves.row_mut(row as usize);
            row.iter_mut().zip(mean).for_each(|(change, mean)| *change = (*change + (before - after) * mean) / after);
        }
    }

    /// `Z` of a layer under the flips, a row for each node of its level, where units were left out that the flips do not move: with Z and z
    /// the pre-activations with and without them,
    ///
    /// ```text
    /// Z = z + Σ_T P_T (act(Z') − act(z')) W_T   over the terms T that read another layer, z' being of that one.
    /// ```
    fn move_on(&mut self, slice: &Slice, layer: usize) {
        let network = self.shared.network;
        if !network.reads_attributes(layer) {
            let links: Vec<_> = links(self.shared, slice, layer, &self.changes, None)
                .into_iter()
                .map(|link| Link { activation: Activation::None, ..link })
                .collect();
            let out = &mut self.layers[layer];
            copy_clean(self.shared, slice, layer, out);
            for row in 0..out.rows() {
                forward::add_terms::<Values>(&links, row, 0.0, &mut self.sums, out.row_mut(row));
            }
        }
        let (activation, change) = (network.layers()[layer].activation(), &mut self.changes[layer]);
        copy_clean(self.shared, slice, layer, change);
        let moved = self.layers[layer].values();
        change.values_mut().iter_mut().zip(moved).for_each(|(z, &moved)| *z = activation.of(moved) - activation.of(*z));
    }

    /// `Z` of a layer under the flips, a row for each node of its level.
    fn evaluate(&mut self, slice: &Slice, layer: usize) {
        let (network, rows) = (self.shared.network, slice.level(layer + 1).len());
        let reads_attributes = network.reads_attributes(layer);
        let (below, above) = self.layers.split_at_mut(layer);
        let (out, bias) = (&mut above[0], network.layers()[layer].bias());
        let links = links(self.shared, slice, layer, below, (!reads_attributes).then_some(&self.one));
        if !reads_attributes {
            forward::layer_into::<Values>(rows, bias, &links, &mut self.sums, out);
            return;
        }
        let (region, part) = (&self.shared.region, self.shared.bounds.clean.part(layer));
        out.reset(rows, bias.len());
        for (row, &node) in slice.level(layer + 1).iter().enumerate() {
            let values = out.row_mut(row);
            values.copy_from_slice(part.row(region.level(layer + 1).place(node)));
            for term in network.attribute_terms_of(layer) {
                for (n, p) in slice.hop(layer, term.term).row(row) {
                    if self.moved[n] != u32::MAX {
                        add_scaled(values, p, &self.moves.row(self.moved[n] as usize)[term.columns.clone()]);
                    }
                }
            }
            forward::add_terms::<Values>(&links, row, 0.0, &mut self.sums, values);
        }
    }

    /// The margin of y over k under the flips that were tried last, as computed.
    pub(super) fn margin_of(&self, y: ClassId, k: ClassId) -> f64 {
        let logits = self.layers[self.layers.len() - 1].row(0);
        logits[y.index()] - logits[k.index()]
    }

    /// `Z` of each layer under the flips that were tried last, a row for each node of its level.
    pub(super) fn pre_activations(&self) -> &[Matrix] {
        &self.layers
    }
}

/// How far differences of a target's logits may be off by rounding, under any admissible flips (Lemma 32e).
///
/// With h and ε the bounds and errors of what terms of the last layer read, that of y and k is
/// `Σ_j (|W_jy| + |W_jk|) Σ_m |P_tm| (2 ε_mj + γ |h_mj|)`, γ times biases and constants, and twice the error of what it makes
/// of the attributes.
#[derive(Debug)]
pub(crate) struct MarginErrors {
    target: NodeId,
    gamma: f64,
    /// For each term of the last layer that reads no attributes the sums over m, one for each unit that it reads.
    sums: Vec<(usize, Vec<f64>)>,
}

impl MarginErrors {
    /// Those of the target of a slice.
    pub(crate) fn new(shared: &Shard, slice: &Slice) -> Self {
        let Shard { network, region, bounds, .. } = shared;
        let layer = network.layers().len() - 1;
        let terms = network.layers()[layer].terms().iter().enumerate();
        let others = terms.filter(|(_, term)| term.source() != Source::Attributes);
        let length =
            |(i, term): (usize, &Term)| slice.hop(layer, i).row_length(0) + network.model().width(term.source());
        let gamma = gamma_after(others.clone().map(length).sum::<usize>() + 16);
        let sums = others.map(|(i, term)| {
            let hop = slice.hop(layer, i).row(0);
            let Source::Layer(source) = term.source() else {
                let sum: f64 = hop.map(|(_, p)| p.abs()).sum();
                return (i, vec![gamma * magnitude(sum)]);
            };
            let (below, activation) = (&bounds.layers[source], network.layers()[source].activation());
            let mut sums = vec![0.0; below.lo.columns()];
            for (n, p) in hop.filter(|&(_, p)| p != 0.0) {
                let place = region.level(source + 1).place(slice.level(source + 1)[n]);
                for (j, sum) in sums.iter_mut().enumerate() {
                    let largest = magnitude(below.largest(activation, place, j));
                    *sum += magnitude(p * (2.0 * below.error.unit(place, j) + gamma * largest));
                }
            }
            (i, sums)
        });
        Self { target: slice.target(), gamma, sums: sums.collect() }
    }

    /// That of `logit_y − logit_k`.
    pub(crate) fn of(&self, shared: &Shard, y: ClassId, k: ClassId) -> f64 {
        let Shard { network, region, bounds, .. } = shared;
        let (y, k, layer) = (y.index(), k.index(), network.layers().len() - 1);
        let last = &network.layers()[layer];
        let mut error = match &bounds.attribute_errors[layer] {
            None => self.gamma * (magnitude(last.bias()[y]) + magnitude(last.bias()[k])),
            Some(error) => {
                let place = region.level(layer + 1).place(self.target.0);
                2.0 * (error.gammas[place] + self.gamma) * (error.magnitude(place, y) + error.magnitude(place, k))
            }
        };
        for (i, sums) in &self.sums {
            let weight = last.terms()[*i].weight();
            for (j, sum) in sums.iter().enumerate() {
                error += magnitude(weight_at(weight, j, y).abs() + weight_at(weight, j, k).abs()) * sum;
            }
        }
        error
    }
}

/// So many times their errors pre-activations and margins may be off where flips are carried through the units of a slice that has not all
/// (Lemma 75).
pub(crate) fn errors_of(slice: &Slice) -> f64 {
    if slice.left_out_nodes().is_some() { 16.0 } else { 1.0 }
}

/// Writes the pre-activations of a layer on the graph as it is, a row for each node of its level.
fn copy_clean(shared: &Shard, slice: &Slice, layer: usize, out: &mut Matrix) {
    let (clean, level) = (&shared.bounds.clean.layers[layer], shared.region.level(layer + 1));
    out.reshape(slice.level(layer + 1).len(), clean.columns());
    for (row, &node) in slice.level(layer + 1).iter().enumerate() {
        out.row_mut(row).copy_from_slice(clean.row(level.place(node)));
    }
}

/// The terms of a layer that read other layers, and the constant if it is given.
fn links<'l>(
    shared: &'l Shard,
    slice: &'l Slice,
    layer: usize,
    below: &'l [Matrix],
    one: Option<&'l Matrix>,
) -> Vec<Link<'l, &'l SliceHop, f64>> {
    let layers = shared.network.layers();
    let link = |(k, term): (usize, &'l Term)| {
        let (below, activation) = match term.source() {
            Source::Attributes => return None,
            Source::Ones => (one?, Activation::None),
            Source::Layer(source) => (&below[source], layers[source].activation()),
        };
        let (hop, columns) = (slice.hop(layer, k), 0..below.columns());
        Some(Link { hop, below, columns, activation, weight: Some(term.weight()) })
    };
    layers[layer].terms().iter().enumerate().filter_map(link).collect()
}

/// An entry of W.
fn weight_at(weight: &Weight, input: usize, unit: usize) -> f64 {
    match weight {
        Weight::Dense(weight) => weight.get(input, unit),
        Weight::Scalar(factor) if input == unit => *factor,
        Weight::Scalar(_) => 0.0,
    }
}

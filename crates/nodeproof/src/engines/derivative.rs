//! The derivative of worst-case margins, duals and those of first order, by all that they depend on (Lemmas 34, 35, 44 and
//! 50 of `docs/maths.md`).
//!
//! The flips that a margin charges are held fixed (the envelope theorem): it is then a smooth function of slopes, offsets,
//! pre-activations, weights and biases. Its derivative by the coefficients of `Zⁱ` are the values that the network with
//! lines for activations has at the tampered attributes: the gradient is a forward pass.

use crate::bounds::{Bounds, ByBounds, Ends};
use crate::dense::{Matrix, add_scaled};
use crate::forward::{Carried, Values};
use crate::gradient::Gradient;
use crate::ids::ClassId;
use crate::model::{Activation, Source};
use crate::network::Network;
use crate::prepare::{Change, Shard};
use crate::slice::{Hop, Region, Slice, SlicedFlip};

/// One worst-case margin of a target, `logit_class − logit_other`, in a weighted sum of them.
#[derive(Debug)]
pub(crate) struct Term {
    /// The other class.
    pub(crate) other: ClassId,
    /// The derivative of the sum by this margin.
    pub(crate) weight: f64,
    /// The flips that it charges.
    pub(crate) flips: Vec<SlicedFlip>,
}

/// The derivative of a weighted sum of worst-case margins of one target.
#[derive(Debug, Default)]
pub(crate) struct TargetDerivative {
    /// For each layer the places in the region of the nodes of its level of the slice.
    pub(super) places: Vec<Vec<u32>>,
    /// By the lines of each layer at these nodes; empty without an activation.
    pub(super) lines: Vec<ByLines>,
    /// By the pre-activations of each layer at these nodes on the graph as it is, beyond what is in the parts; empty for duals.
    pub(super) by_clean: Vec<Matrix>,
    /// By what each layer makes of the attributes as they are and of constants; empty for layers that do not read them.
    pub(super) by_parts: Vec<Matrix>,
    /// By rows of the attributes' weights: the attribute of each, and the rows one after the other.
    pub(super) attributes: Vec<u32>,
    pub(super) by_attributes: Vec<f64>,
    /// By rows of `X W` as they are: the node of each, and the rows one after the other.
    pub(super) rows: Vec<u32>,
    pub(super) by_rows: Vec<f64>,
    /// By all other weights, and by the biases of layers that do not read the attributes.
    pub(super) gradient: Gradient,
}

/// The derivative by slope and offset of one layer's lines, a row for each node.
#[derive(Debug, Default, Clone)]
pub(super) struct ByLines {
    /// By the slope, which upper and lower line share.
    pub(super) slope: Matrix,
    pub(super) offset: Matrix,
}

impl ByLines {
    fn zeros(network: &Network, layer: usize, nodes: usize) -> Self {
        let of = &network.layers()[layer];
        let rows = if of.is_hidden() { nodes } else { 0 };
        Self { slope: Matrix::zeros(rows, of.units()), offset: Matrix::zeros(rows, of.units()) }
    }
}

/// Zeros for the units of a layer at so many nodes.
fn zeros(network: &Network, layer: usize, nodes: usize) -> Matrix {
    Matrix::zeros(nodes, network.layers()[layer].units())
}

/// Zeros for the part of a layer at so many nodes, if it has one.
fn zero_part(network: &Network, layer: usize, nodes: usize) -> Matrix {
    Matrix::zeros(if network.reads_attributes(layer) { nodes } else { 0 }, network.layers()[layer].units())
}

impl TargetDerivative {
    /// Makes everything 0 in the shape of a slice whose levels from 1 on have these places.
    pub(super) fn zeros(network: &Network, places: Vec<Vec<u32>>) -> Self {
        let layers = || places.iter().map(Vec::len).enumerate();
        Self {
            lines: layers().map(|(layer, nodes)| ByLines::zeros(network, layer, nodes)).collect(),
            by_clean: places.iter().map(|_| Matrix::default()).collect(),
            by_parts: layers().map(|(layer, nodes)| zero_part(network, layer, nodes)).collect(),
            attributes: Vec::new(),
            by_attributes: Vec::new(),
            rows: Vec::new(),
            by_rows: Vec::new(),
            gradient: Gradient::zeros_behind_attributes(network.model()),
            places,
        }
    }

    /// Adds the derivative by weights of the attributes of what a change of node `node` does, `by` being that by `ΔX_n W`.
    pub(super) fn add_change(&mut self, change: Change, node: u32, scale: f64, by: &[f64]) {
        for &(attribute, amount) in change.entries {
            let factor = scale * amount;
            self.attributes.push(attribute);
            self.by_attributes.extend(by.iter().map(|by| factor * by));
        }
        if change.multiple != 0.0 {
            let factor = scale * change.multiple;
            self.rows.push(node);
            self.by_rows.extend(by.iter().map(|by| factor * by));
        }
    }
}

/// The sum of the derivatives of many targets.
pub(crate) struct Derivative<'n> {
    network: &'n Network<'n>,
    lines: Vec<ByLines>,
    /// By the pre-activations of each layer on the graph as it is, beyond what is in the parts.
    pub(crate) by_clean: Vec<Matrix>,
    /// By what each layer makes of the attributes as they are and of constants.
    pub(crate) by_parts: Vec<Matrix>,
}

impl<'n> Derivative<'n> {
    /// Zeros for the nodes of `region`.
    pub(crate) fn zeros(network: &'n Network<'n>, region: &Region) -> Self {
        let layers = || (0..network.layers().len()).map(|layer| (layer, region.level(layer + 1).nodes().len()));
        Self {
            network,
            lines: layers().map(|(layer, nodes)| ByLines::zeros(network, layer, nodes)).collect(),
            by_clean: layers().map(|(layer, nodes)| zeros(network, layer, nodes)).collect(),
            by_parts: layers().map(|(layer, nodes)| zero_part(network, layer, nodes)).collect(),
        }
    }

    /// Adds the derivative of one target; its part by weights and biases goes to `gradient`.
    pub(crate) fn add(&mut self, target: &TargetDerivative, gradient: &mut Gradient) {
        for (layer, places) in target.places.iter().enumerate() {
            let (lines, by_lines) = (&mut self.lines[layer], &target.lines[layer]);
            add_rows_at(&mut lines.slope, places, &by_lines.slope);
            add_rows_at(&mut lines.offset, places, &by_lines.offset);
            add_rows_at(&mut self.by_clean[layer], places, &target.by_clean[layer]);
            add_rows_at(&mut self.by_parts[layer], places, &target.by_parts[layer]);
        }
        let width = self.network.attribute_weight().columns();
        let mut add = |attribute: u32, factor: f64, row: &[f64]| {
            for term in self.network.attribute_terms() {
                if let Some(gradient) = &mut gradient.weights[term.layer][term.term] {
                    add_scaled(gradient.row_mut(attribute as usize), factor, &row[term.columns.clone()]);
                }
            }
        };
        for (&attribute, row) in target.attributes.iter().zip(target.by_attributes.chunks_exact(width)) {
            add(attribute, 1.0, row);
        }
        let graph = self.network.graph();
        for (&node, row) in target.rows.iter().zip(target.by_rows.chunks_exact(width)) {
            let own = graph.attributes().row(node as usize);
            own.iter().for_each(|&attribute| add(attribute, 1.0 / graph.kind().divisor(own.len()), row));
        }
        gradient.add(&target.gradient);
    }

    /// From lines to bounds, of all layers but the last. Of an unstable unit's chord
    ///
    /// ```text
    /// ∂slope/∂hi = −lo / (hi − lo)²,   ∂slope/∂lo = hi / (hi − lo)²,
    /// ∂offset/∂hi = lo² / (hi − lo)²,  ∂offset/∂lo = −hi² / (hi − lo)²,
    /// ```
    ///
    /// times 1 − β for a leaky ReLU with slope β.
    pub(crate) fn by_bounds(&self, bounds: &Bounds) -> Vec<ByBounds> {
        let layers = bounds.layers.iter().zip(&self.lines).zip(self.network.layers());
        let by_bounds = layers.map(|((bounds, by), layer)| {
            let mut all = ByBounds::zeros(bounds.lo.rows(), bounds.lo.columns());
            let factor = 1.0 - layer.activation().slope();
            let derivatives = by.slope.values().iter().zip(by.offset.values());
            let ends = bounds.lo.values().iter().zip(bounds.hi.values());
            for ((by, (&by_slope, &by_offset)), (&lo, &hi)) in all.values_mut().iter_mut().zip(derivatives).zip(ends) {
                if lo < 0.0 && hi > 0.0 {
                    let width = hi - lo;
                    let (low, high) = (lo / width, hi / width);
                    *by = Ends {
                        lo: factor * (by_slope * high / width - by_offset * high * high),
                        hi: factor * (by_offset * low * low - by_slope * low / width),
                    };
                }
            }
            all
        });
        by_bounds.collect()
    }
}

/// Adds each row of `rows` at its place.
fn add_rows_at(sum: &mut Matrix, places: &[u32], rows: &Matrix) {
    for (row, &place) in (0..rows.rows()).zip(places) {
        add_scaled(sum.row_mut(place as usize), 1.0, rows.row(row));
    }
}

/// Runs the network with lines for activations forward on the tampered attributes, and adds the derivatives by weights, biases and
/// parts of a bound with coefficients `lambda` of the pre-activations; `activate` puts those of a hidden layer on their lines.
pub(super) fn add_relaxed(
    shared: &Shard,
    slice: &Slice,
    term: &Term,
    lambda: &[Matrix],
    by: &mut TargetDerivative,
    mut activate: impl FnMut(usize, &mut Matrix, &mut TargetDerivative),
) {
    let (network, scale) = (shared.network, term.weight);
    let changes = changes(shared, slice, term);
    let mut activations: Vec<Matrix> = Vec::with_capacity(lambda.len());
    for (layer, lambda) in lambda.iter().enumerate() {
        let (of, reads_attributes) = (&network.layers()[layer], network.reads_attributes(layer));
        let mut values = Matrix::zeros(lambda.rows(), lambda.columns());
        for row in 0..lambda.rows() {
            let lambda = lambda.row(row);
            let values = values.row_mut(row);
            if reads_attributes {
                let place = by.places[layer][row] as usize;
                values.copy_from_slice(shared.bounds.clean.part(layer).row(place));
                add_scaled(by.by_parts[layer].row_mut(row), scale, lambda);
            } else {
                values.copy_from_slice(of.bias());
                add_scaled(&mut by.gradient.biases[layer], scale, lambda);
            }
            for (k, term) in of.terms().iter().enumerate() {
                let hop = slice.hop(layer, k).row(row);
                let sums = match term.source() {
                    Source::Attributes => {
                        let columns = network.attribute_columns(layer, k);
                        let rows = hop.map(|(n, p)| (p, &changes.row(n)[columns.clone()]));
                        Values::gather(values, rows, Activation::None, 0.0);
                        continue;
                    }
                    // They are in the parts, and their derivative follows from that by these.
                    Source::Ones if reads_attributes => continue,
                    Source::Ones => vec![hop.map(|(_, p)| p).sum()],
                    Source::Layer(source) => {
                        let below = &activations[source];
                        let mut sums = vec![0.0; below.columns()];
                        let rows = hop.map(|(n, p)| (p, below.row(n)));
                        Values::gather(&mut sums, rows, Activation::None, 0.0);
                        sums
                    }
                };
                if let Some(gradient) = &mut by.gradient.weights[layer][k] {
                    for (j, &sum) in sums.iter().enumerate() {
                        add_scaled(gradient.row_mut(j), scale * sum, lambda);
                    }
                }
                Values::add_product(values, &sums, term.weight());
            }
        }
        if of.is_hidden() {
            activate(layer, &mut values, by);
        }
        activations.push(values);
    }
}

/// The change of X W by the flips, a row for each node of level 0.
fn changes(shared: &Shard, slice: &Slice, term: &Term) -> Matrix {
    let weight = shared.network.attribute_weight();
    let mut changes = Matrix::zeros(slice.level(0).len(), weight.columns());
    for change in shared.changes(slice, &term.flips).iter() {
        change.add_to(changes.row_mut(change.row as usize), weight, shared.mean(slice, change.row));
    }
    changes
}

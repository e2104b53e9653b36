//! The network on the graph as it is, and its derivative.

use crate::backward::{self, CarriedBack, Coefficients};
use crate::dense::{Matrix, add_scaled, dot};
use crate::forward::{Carried, Values};
use crate::gradient::Gradient;
use crate::ids::NodeId;
use crate::kernels::add_rows;
use crate::model::Source;
use crate::network::Network;
use crate::slice::{Hop, Region};
use crate::sparse::Pattern;

/// The network on the graph as it is.
#[derive(Debug, Default)]
pub(crate) struct Clean {
    /// `Zⁱ`; the last are the logits.
    pub(crate) layers: Vec<Matrix>,
    /// What a layer makes of the attributes and of constants alone, biases included, where it reads the attributes and other
    /// layers as well.
    pub(crate) parts: Vec<Option<Matrix>>,
    /// μ = X W for each node of level 0, where rows are divided by the number of their ones.
    pub(crate) means: Option<Matrix>,
}

impl Clean {
    pub(crate) fn new(network: &Network, region: &Region) -> Self {
        let sums = network.attribute_sums(region.level(0).nodes());
        let part = |layer: usize| {
            let mixed = network.reads_attributes(layer) && network.reads_layers(layer);
            mixed.then(|| network.attribute_part(region, layer, &sums))
        };
        let parts = (0..network.layers().len()).map(part).collect();
        let layers = network.pre_activations(region, &sums);
        Self { layers, parts, means: network.graph().kind().is_normalised().then_some(sums) }
    }

    /// What a layer that reads the attributes makes of them and of constants alone, biases included.
    pub(crate) fn part(&self, layer: usize) -> &Matrix {
        self.parts[layer].as_ref().unwrap_or(&self.layers[layer])
    }

    /// Adds to `gradient` the derivative by weights and biases of a number, given those by the pre-activations of every layer and,
    /// beyond that, by what every layer makes of the attributes (`by_parts`; nothing for layers that do not read them).
    pub(crate) fn add_gradient(
        &self,
        network: &Network,
        region: &Region,
        mut by: Vec<Matrix>,
        mut by_parts: Vec<Matrix>,
        gradient: &mut Gradient,
    ) {
        for (layer, of) in network.layers().iter().enumerate().rev() {
            let (below, above) = by.split_at_mut(layer);
            let above = &above[0];
            for (k, term) in of.terms().iter().enumerate() {
                let Source::Layer(source) = term.source() else { continue };
                let (hop, activation, z) =
                    (network.hop(region, layer, k), network.layers()[source].activation(), &self.layers[source]);
                if let Some(gradient) = &mut gradient.weights[layer][k] {
                    let mut sums = vec![0.0; z.columns()];
                    for row in (0..above.rows()).filter(|&row| !is_zero(above.row(row))) {
                        sums.fill(0.0);
                        Values::gather(&mut sums, hop.row(row).map(|(n, p)| (p, z.row(n))), activation, 0.0);
                        sums.iter()
                            .enumerate()
                            .for_each(|(j, &sum)| add_scaled(gradient.row_mut(j), sum, above.row(row)));
                    }
                }
                let through = ThroughActivation { z, slope: activation.slope() };
                backward::term(&through, &hop, term.weight(), above, &mut Vec::new(), &mut below[source]);
            }
            if network.reads_attributes(layer) {
                add_scaled(by_parts[layer].values_mut(), 1.0, above.values());
            } else {
                add_bias_gradient(network, region, layer, above, gradient);
            }
        }
        let places_with = network.graph().attributes().turned(region.level(0).nodes());
        add_part_gradient(network, region, &places_with, &by_parts, gradient);
    }
}

/// Derivatives on their way back through the activations of pre-activations z.
struct ThroughActivation<'a> {
    z: &'a Matrix,
    /// That of the activation below 0.
    slope: f64,
}

impl CarriedBack for ThroughActivation<'_> {
    type Number = f64;

    fn is_zero(&self, above: &[f64]) -> bool {
        is_zero(above)
    }

    fn through_weight(&self, above: &[f64], weight: &[f64]) -> f64 {
        dot(above, weight)
    }

    fn spread(&self, n: usize, below: &mut [f64], p: f64, back: &[f64]) {
        for ((below, back), &z) in below.iter_mut().zip(back).zip(self.z.row(n)) {
            *below += p * if z > 0.0 { 1.0 } else { self.slope } * back;
        }
    }
}

fn is_zero(numbers: &[f64]) -> bool {
    numbers.iter().all(|&number| number == 0.0)
}

/// Adds the derivative by the weights of the terms that read the attributes, and by what is added to their products, given those by what
/// each layer makes of the attributes as they are. `places_with` has for each attribute the places in level 0 that have it.
pub(super) fn add_part_gradient(
    network: &Network,
    region: &Region,
    places_with: &Pattern,
    by_parts: &[Matrix],
    gradient: &mut Gradient,
) {
    for (layer, by_part) in by_parts.iter().enumerate().filter(|&(layer, _)| network.reads_attributes(layer)) {
        add_bias_gradient(network, region, layer, by_part, gradient);
    }
    for term in network.attribute_terms() {
        let Some(gradient) = &mut gradient.weights[term.layer][term.term] else { continue };
        let by_part = &by_parts[term.layer];
        let mut by_sums = Matrix::zeros(region.level(0).nodes().len(), by_part.columns());
        let hop = network.hop(region, term.layer, term.term);
        backward::spread(&Coefficients, &hop, by_part, 0..by_part.columns(), &mut by_sums);
        if let Some(values) = network.graph().values() {
            for (row, &node) in region.level(0).nodes().iter().enumerate() {
                let entries = values.row(NodeId(node)).iter().enumerate().filter(|&(_, &x)| x != 0.0);
                entries.for_each(|(d, &x)| add_scaled(gradient.row_mut(d), x, by_sums.row(row)));
            }
            continue;
        }
        divide_rows(network, region, &mut by_sums);
        for attribute in 0..places_with.rows() {
            let places = places_with.row(attribute).iter();
            add_rows(gradient.row_mut(attribute), places.map(|&place| (1.0, by_sums.row(place as usize))));
        }
    }
}

/// Divides what belongs to each node of level 0 by what its ones are divided by.
fn divide_rows(network: &Network, region: &Region, rows: &mut Matrix) {
    let graph = network.graph();
    for (row, &node) in region.level(0).nodes().iter().enumerate() {
        let divisor = graph.kind().divisor(graph.attributes().row(node as usize).len());
        if divisor != 1.0 {
            rows.row_mut(row).iter_mut().for_each(|value| *value /= divisor);
        }
    }
}

/// Adds the derivative by the bias of a layer, and by the weights of its terms of the constant 1, given that by `Z` at each
/// node of the region.
pub(super) fn add_bias_gradient(
    network: &Network,
    region: &Region,
    layer: usize,
    by: &Matrix,
    gradient: &mut Gradient,
) {
    add_rows(&mut gradient.biases[layer], (0..by.rows()).map(|row| (1.0, by.row(row))));
    let terms = network.layers()[layer].terms().iter().enumerate();
    for (k, _) in terms.filter(|(_, term)| term.source() == Source::Ones) {
        if let Some(gradient) = &mut gradient.weights[layer][k] {
            let hop = network.hop(region, layer, k);
            let sum = |row: usize| hop.row(row).map(|(_, p)| p).sum::<f64>();
            add_rows(gradient.row_mut(0), (0..by.rows()).map(|row| (sum(row), by.row(row))));
        }
    }
}

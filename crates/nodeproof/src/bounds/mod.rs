//! Bounds `lo ≤ Z ≤ hi` on every pre-activation over all admissible sets of flips (the paper's R and S).
//!
//! Bounds of what layers make of the attributes are exact (Lemma 5 of `docs/maths.md`); those of what they make of other layers
//! follow by interval arithmetic (Lemma 7).

mod clean;
mod deeper;
mod first;

use std::ops::ControlFlow;
use std::sync::Arc;

use rayon::ThreadPool;

use crate::budget::Limits;
use crate::dense::{Matrix, add_scaled};
use crate::forward::Interval;
use crate::gradient::Gradient;
use crate::ids::NodeId;
use crate::model::{Activation, Source};
use crate::network::Network;
use crate::rounding::{gamma_after, magnitude};
use crate::slice::Region;
use crate::sparse::Pattern;

pub(crate) use clean::Clean;

/// Bounds of one layer, a row for each node of its level.
#[derive(Debug, Clone)]
pub(crate) struct LayerBounds {
    pub(crate) lo: Matrix,
    pub(crate) hi: Matrix,
    /// How far pre-activations and bounds may be off by rounding.
    pub(crate) error: LayerError,
}

impl LayerBounds {
    /// The largest magnitude of a unit's activation within its bounds.
    #[inline]
    pub(crate) fn largest(&self, activation: Activation, place: usize, unit: usize) -> f64 {
        activation.of(self.lo.get(place, unit)).abs().max(activation.of(self.hi.get(place, unit)).abs())
    }

    /// Bounds and errors, unit by unit.
    fn of_intervals(bounds: &Matrix<Interval>) -> Self {
        let part = |of: fn(&Interval) -> f64| {
            Matrix::from_values(bounds.rows(), bounds.columns(), bounds.values().iter().map(of).collect())
        };
        let error = LayerError::Units(part(|unit| unit.error));
        Self { lo: part(|unit| unit.lo), hi: part(|unit| unit.hi), error }
    }

    /// Bounds and errors, unit by unit.
    fn intervals(&self) -> Matrix<Interval> {
        let mut intervals = Matrix::zeros(self.lo.rows(), self.lo.columns());
        for place in 0..self.lo.rows() {
            for (j, interval) in intervals.row_mut(place).iter_mut().enumerate() {
                let (lo, hi) = (self.lo.get(place, j), self.hi.get(place, j));
                *interval = Interval { lo, hi, error: self.error.unit(place, j) };
            }
        }
        intervals
    }
}

/// Rounding errors of one layer.
#[derive(Debug, Clone)]
pub(crate) enum LayerError {
    /// Those of a layer that reads nothing but the attributes.
    OfAttributes(AttributeError),
    /// One for each unit.
    Units(Matrix),
}

impl LayerError {
    /// A bound on the error of `Z`, `lo` and `hi` of a unit.
    #[inline]
    pub(crate) fn unit(&self, place: usize, unit: usize) -> f64 {
        match self {
            Self::OfAttributes(error) => error.unit(place, unit),
            Self::Units(errors) => errors.get(place, unit),
        }
    }
}

/// Magnitudes behind what a layer makes of the attributes, in a form that costs one number a node:
/// `|Z_mj|, |lo_mj|, |hi_mj|` and all their partial sums are at most `reach_m · weight_j + bias_j`, where, summed over the terms,
/// `reach_m = Σ_n |P_mn| |X_n| + Q max_n |P_mn|`, `weight_j` is the largest `|W_dj|`, and `bias_j = |b_j|`, to which comes what terms of
/// the constant 1 add at m. Where rows are divided by the number of their ones, |X_n| is at most 1, and k flips that leave m' ≥ 1 ones
/// change `X_n W` by `(Σ ± (W_d − μ)) / m'`, so by at most 2 k weights: Q counts twice. Where attributes are real values, none larger than
/// s_d, `weight_j` is the largest `|W_dj| s_d`, |X_n| the number of entries that are not 0, and a flip changes one by at most 2 s_d.
///
/// Each is a sum in which no term passes through more than n_m roundings, so off by at most `γ_m` times that (Lemma 32a).
#[derive(Debug, Clone)]
pub(crate) struct AttributeError {
    /// γ_m for each node of the layer's level.
    pub(crate) gammas: Vec<f64>,
    pub(crate) reach: Vec<f64>,
    pub(crate) weight: Vec<f64>,
    pub(crate) bias: Vec<f64>,
    /// What terms of the constant 1 can add to each unit, a row for each node; `None` if there are none.
    constants: Option<Matrix>,
}

impl AttributeError {
    fn new(network: &Network, limits: &Limits, region: &Region, layer: usize) -> Self {
        let (graph, kind) = (network.graph(), network.graph().kind());
        let row_length = |n: u32| graph.row_length(NodeId(n));
        let sizes: Option<Vec<f64>> = network.value_sizes().map(Iterator::collect);
        let size = |d: usize| sizes.as_ref().map_or(1.0, |sizes| sizes[d]);
        let mut weight = vec![0.0f64; network.layers()[layer].units()];
        for term in network.attribute_terms_of(layer) {
            for d in 0..network.model().attributes() {
                let row = &network.attribute_weight().row(d)[term.columns.clone()];
                weight.iter_mut().zip(row).for_each(|(largest, &w)| *largest = largest.max(w.abs() * size(d)));
            }
        }
        let constants = Constants::new(network, region, layer);
        let (mut gammas, mut reach) = (Vec::new(), Vec::new());
        let changes = if kind.is_bits() { 1.0 } else { 2.0 };
        for (place, &m) in region.level(layer + 1).nodes().iter().enumerate() {
            let (mut longest, mut roundings, mut reach_m) = (0, constants.lengths[place], 0.0);
            for term in network.attribute_terms_of(layer) {
                let (neighbours, weights) = network.matrix(layer, term.term).row(m as usize);
                longest = neighbours.iter().map(|&n| row_length(n)).max().unwrap_or(0).max(longest);
                let flips = limits.flips_within(neighbours);
                roundings += neighbours.len() + flips;
                let largest = weights.iter().fold(0.0f64, |largest, p| largest.max(p.abs()));
                let of_row = |n: u32| row_length(n) as f64 / kind.divisor(row_length(n));
                let clean: f64 = neighbours.iter().zip(weights).map(|(&n, p)| p.abs() * of_row(n)).sum();
                reach_m += clean + changes * flips as f64 * largest;
            }
            // A row's sum, its place in the neighbourhood's sum, the flips' sum, the chord's division and product.
            gammas.push(gamma_after(longest + roundings + 16));
            reach.push(reach_m);
        }
        Self {
            gammas,
            reach,
            weight: weight.into_iter().map(magnitude).collect(),
            bias: network.layers()[layer].bias().iter().map(|&b| magnitude(b)).collect(),
            constants: constants.most,
        }
    }

    /// A bound on the error of a unit.
    #[inline]
    pub(crate) fn unit(&self, place: usize, unit: usize) -> f64 {
        self.gammas[place] * self.magnitude(place, unit)
    }

    /// The bound on magnitudes of a unit.
    #[inline]
    pub(crate) fn magnitude(&self, place: usize, unit: usize) -> f64 {
        let constant = self.constants.as_ref().map_or(0.0, |constants| constants.get(place, unit));
        self.reach[place] * self.weight[unit] + (self.bias[unit] + constant)
    }
}

/// What terms of the constant 1 can add to the units of a layer.
struct Constants {
    /// The most that it can be, a row for each node of the layer's level; `None` if there are no such terms.
    most: Option<Matrix>,
    /// The most numbers that are added up at each of these nodes.
    lengths: Vec<usize>,
}

impl Constants {
    fn new(network: &Network, region: &Region, layer: usize) -> Self {
        let (nodes, of) = (region.level(layer + 1).nodes(), &network.layers()[layer]);
        let (mut most, mut lengths) = (None, vec![0; nodes.len()]);
        for (k, term) in of.terms().iter().enumerate().filter(|(_, term)| term.source() == Source::Ones) {
            let most = most.get_or_insert_with(|| Matrix::zeros(nodes.len(), of.units()));
            for (place, &m) in nodes.iter().enumerate() {
                let (_, values) = network.matrix(layer, k).row(m as usize);
                let sum: f64 = values.iter().map(|p| p.abs()).sum();
                lengths[place] += values.len() + 2;
                // A single number is a 1 × 1 matrix here: the constant has one column.
                let weights = term.weight().values().iter();
                most.row_mut(place).iter_mut().zip(weights).for_each(|(most, w)| *most += magnitude(w * sum));
            }
        }
        Self { most, lengths }
    }
}

/// Pre-activations of every layer and bounds of all but the last, for all nodes that some target sees.
#[derive(Debug)]
pub(crate) struct Bounds {
    pub(crate) clean: Arc<Clean>,
    /// Bounds of the layers.
    pub(crate) layers: Vec<LayerBounds>,
    /// Rounding errors of what each layer makes of the attributes, where it reads them.
    pub(crate) attribute_errors: Vec<Option<AttributeError>>,
}

impl Bounds {
    /// What is known without looking at any flip: nothing. Rounding is left out, which will do for training, and for no certificate.
    pub(crate) fn unknown(network: &Network, clean: Arc<Clean>) -> Self {
        let filled = |clean: &Matrix, value: f64| {
            Matrix::from_values(clean.rows(), clean.columns(), vec![value; clean.values().len()])
        };
        let layer = |clean: &Matrix| LayerBounds {
            lo: filled(clean, f64::NEG_INFINITY),
            hi: filled(clean, f64::INFINITY),
            error: LayerError::Units(filled(clean, 0.0)),
        };
        let hidden = network.layers().len() - 1;
        let layers = clean.layers.iter().take(hidden).map(layer).collect();
        Self { clean, layers, attribute_errors: network.layers().iter().map(|_| None).collect() }
    }

    /// Computes the bounds around the pre-activations `clean`; `None` if `observer`, called with `(done, total)` steps, breaks off.
    pub(crate) fn compute(
        network: &Network,
        limits: &Limits,
        region: &Region,
        clean: Arc<Clean>,
        pool: &ThreadPool,
        mut observer: impl FnMut(usize, usize) -> ControlFlow<()>,
    ) -> Option<Self> {
        let places_with = network.graph().attributes().turned(region.level(0).nodes());
        let units = |layer: usize| if network.reads_attributes(layer) { network.layers()[layer].units() } else { 0 };
        let total: usize = (0..network.layers().len() - 1).map(units).sum();
        let mut done = 0;
        Self::with(network, limits, region, clean, &places_with, Some(pool), |asked| {
            let units = asked.clean.columns();
            let bounds = first::bounds(asked, pool, &mut |batch| observer(done + batch, total));
            done += units;
            bounds
        })
    }

    /// The bounds, those of what layers make of the attributes as `first` finds them.
    fn with<'a>(
        network: &'a Network,
        limits: &'a Limits,
        region: &'a Region,
        clean: Arc<Clean>,
        places_with: &'a Pattern,
        pool: Option<&ThreadPool>,
        mut first: impl FnMut(first::Asked) -> Option<(Matrix, Matrix)>,
    ) -> Option<Self> {
        let error =
            |layer: usize| network.reads_attributes(layer).then(|| AttributeError::new(network, limits, region, layer));
        let attribute_errors: Vec<_> = (0..network.layers().len()).map(error).collect();
        let mut layers: Vec<LayerBounds> = Vec::with_capacity(network.layers().len() - 1);
        for (layer, error) in attribute_errors.iter().enumerate().take(network.layers().len() - 1) {
            let mut of_attributes = None;
            if let Some(error) = error {
                // Lines depend on nothing but the sign of a stable unit, bounds of other layers on its bounds.
                let only_signs_matter = !network.reads_layers(layer)
                    && network.readers(layer).all(|reader| reader == network.layers().len() - 1);
                let (of_layer, means) = (clean.part(layer), clean.means.as_ref());
                let asked = first::Asked {
                    network,
                    limits,
                    region,
                    places_with,
                    layer,
                    clean: of_layer,
                    means,
                    only_signs_matter,
                };
                let (lo, hi) = first(asked)?;
                of_attributes = Some(LayerBounds { lo, hi, error: LayerError::OfAttributes(error.clone()) });
            }
            layers.push(match of_attributes {
                Some(bounds) if !network.reads_layers(layer) => bounds,
                of_attributes => {
                    let of_attributes = of_attributes.as_ref().zip(error.as_ref());
                    let made = || deeper::bounds(network, region, layer, &layers, of_attributes);
                    pool.map_or_else(made, |pool| pool.install(made))
                }
            });
        }
        Some(Self { clean, layers, attribute_errors })
    }
}

/// How [`Bounds`] depend on weights and biases.
#[derive(Debug)]
pub(crate) struct DifferentiableBounds {
    /// For each layer but the last the flips that attain the bounds of what it makes of the attributes, where it reads them.
    attained: Vec<Option<first::Attained>>,
    /// For each attribute the places in level 0 of the nodes that have it.
    places_with: Pattern,
}

/// Derivative of some number by `lo` and `hi` of a unit.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Ends {
    pub(crate) lo: f64,
    pub(crate) hi: f64,
}

/// Derivative of some number by `lo` and `hi` of one layer.
pub(crate) type ByBounds = Matrix<Ends>;

impl DifferentiableBounds {
    /// Computes what [`Bounds::compute`] does, and how it depends on weights and biases.
    pub(crate) fn compute(network: &Network, limits: &Limits, region: &Region) -> (Bounds, Self) {
        let clean = Arc::new(Clean::new(network, region));
        let places_with = network.graph().attributes().turned(region.level(0).nodes());
        let mut attained: Vec<Option<first::Attained>> = (1..network.layers().len()).map(|_| None).collect();
        let bounds = Bounds::with(network, limits, region, clean, &places_with, None, |asked| {
            let layer = asked.layer;
            let (lo, hi, flips) = first::attained_bounds(asked);
            attained[layer] = Some(flips);
            Some((lo, hi))
        });
        let bounds = bounds.unwrap_or_else(|| unreachable!("nobody breaks off"));
        (bounds, Self { attained, places_with })
    }

    /// Adds to `gradient` the derivative by weights and biases of a number, given those by the bounds of every layer but the
    /// last and by what every layer makes of the attributes as they are (`by_parts`; nothing for layers that do not read them).
    /// The flips that attain the bounds are held fixed (the envelope theorem, Lemma 35).
    pub(crate) fn add_gradient(
        &self,
        bounds: &Bounds,
        (network, limits, region): (&Network, &Limits, &Region),
        mut by_bounds: Vec<ByBounds>,
        mut by_parts: Vec<Matrix>,
        gradient: &mut Gradient,
    ) {
        for layer in (0..by_bounds.len()).rev() {
            let by = std::mem::take(&mut by_bounds[layer]);
            if network.reads_layers(layer) {
                deeper::add_gradient(network, region, layer, &bounds.layers, &by, &mut by_bounds[..layer], gradient);
            }
            let Some(attained) = &self.attained[layer] else {
                clean::add_bias_gradient(network, region, layer, &sum_of_ends(&by), gradient);
                continue;
            };
            let terms: Vec<_> = network.attribute_terms_of(layer).collect();
            let weights: Vec<Matrix> = terms.iter().map(|term| network.attribute_weight_of(term)).collect();
            attained.add_gradient((network, limits, region), &weights, &by, |term, attribute, by| {
                if let Some(gradient) = &mut gradient.weights[layer][terms[term].term] {
                    add_scaled(gradient.row_mut(attribute), 1.0, by);
                }
            });
            for (by_part, by) in by_parts[layer].values_mut().iter_mut().zip(by.values()) {
                *by_part = (*by_part + by.lo) + by.hi;
            }
        }
        clean::add_part_gradient(network, region, &self.places_with, &by_parts, gradient);
    }
}

/// The derivative by what is added to both ends.
fn sum_of_ends(by: &ByBounds) -> Matrix {
    Matrix::from_values(by.rows(), by.columns(), by.values().iter().map(|by| by.lo + by.hi).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Budget;
    use crate::graph::Graph;
    use crate::ids::NodeId;
    use crate::model::{Layer, Model, Propagation, Term};

    /// A part of 1 and many products of 1.2 units roundoff, each of which rounds up to 2: the error must cover all of them.
    #[test]
    fn adding_to_what_a_layer_makes_of_the_attributes_rounds_too() {
        let (units, small) = (256, 1.2 * f64::EPSILON / 2.0);
        let row = |value: f64, columns: usize| Matrix::from_values(1, columns, vec![value; columns]);
        let first = vec![Term::new(Source::Attributes, 0, row(small, units))];
        let second = vec![
            Term::new(Source::Attributes, 0, row(1.0, 1)),
            Term::new(Source::Layer(0), 0, Matrix::from_values(units, 1, vec![1.0; units])),
        ];
        let layers = vec![
            Layer::new(first, vec![0.0; units], Activation::Relu),
            Layer::new(second, vec![0.0], Activation::Relu),
            Layer::new(vec![Term::new(Source::Layer(1), 0, row(1.0, 2))], vec![0.0; 2], Activation::None),
        ];
        let graph = Graph::new(1, 1, &[], &[(0, 0)]).unwrap();
        let model = Model::new(1, vec![Propagation::Identity], layers).unwrap();
        let network = Network::new(&graph, &model).unwrap();
        let limits = Budget::new(0, 1.into()).limits(&graph).unwrap();
        let region = network.region(&[NodeId(0)]);
        let (bounds, _) = DifferentiableBounds::compute(&network, &limits, &region);
        let LayerBounds { lo, hi, error } = &bounds.layers[1];
        // Both are near 1, so that their difference is exact.
        let off = (lo.get(0, 0) - 1.0) - units as f64 * small;
        assert_eq!(lo.get(0, 0), hi.get(0, 0));
        assert!(off > 100.0 * f64::EPSILON / 2.0, "the sum does round");
        assert!(error.unit(0, 0) >= off, "{} < {off}", error.unit(0, 0));
    }
}

//! Bounds `lo ≤ Z ≤ hi` on every pre-activation over all admissible sets of flips (the paper's R and S).
//!
//! The first layer's bounds are exact; deeper ones follow from them by interval arithmetic. The paper's formula for
//! deeper layers leaves out bias and ReLU and is not sound; see [`deeper`].

mod deeper;
mod first;

use std::ops::ControlFlow;

use rayon::ThreadPool;

use crate::budget::Limits;
use crate::dense::{Matrix, add_scaled};
use crate::kernels::add_rows;
use crate::model::Gradient;
use crate::network::Network;
use crate::rounding::{gamma_after, magnitude};
use crate::slice::Region;
use crate::sparse::Pattern;

/// Bounds of one hidden layer, a row for each node of its level.
#[derive(Debug, Clone)]
pub(crate) struct LayerBounds {
    pub(crate) lo: Matrix,
    pub(crate) hi: Matrix,
    /// How far pre-activations and bounds may be off by rounding.
    pub(crate) error: LayerError,
}

/// Rounding errors of one hidden layer.
#[derive(Debug, Clone)]
pub(crate) enum LayerError {
    /// The first layer's, from [`FirstLayerError`].
    First(FirstLayerError),
    /// A deeper layer's, one for each unit.
    Deeper(Matrix),
}

impl LayerError {
    /// A bound on the error of `Z`, `lo` and `hi` of a unit.
    #[inline]
    pub(crate) fn unit(&self, place: usize, unit: usize) -> f64 {
        match self {
            Self::First(error) => error.gammas[place] * error.magnitude(place, unit),
            Self::Deeper(errors) => errors.get(place, unit),
        }
    }
}

/// Magnitudes behind a first-layer pre-activation, in a form that costs one number a node:
/// `|Z_mj|, |lo_mj|, |hi_mj|` and all their partial sums are at most `reach_m · weight_j + bias_j`, where
/// `reach_m = Σ_n P_mn |X_n| + Q max_n P_mn`, `weight_j = max_d |W_dj|`, `bias_j = |b_j|`.
///
/// Each is a sum in which no term passes through more than n_m roundings, so off by at most `γ_m` times that.
#[derive(Debug, Clone)]
pub(crate) struct FirstLayerError {
    /// γ_m for each node of level 1.
    pub(crate) gammas: Vec<f64>,
    pub(crate) reach: Vec<f64>,
    pub(crate) weight: Vec<f64>,
    pub(crate) bias: Vec<f64>,
}

impl FirstLayerError {
    fn new(network: &Network, limits: &Limits, region: &Region) -> Self {
        let layer = &network.layers()[0];
        let attributes = network.graph().attributes();
        let mut weight = vec![0.0f64; layer.weight().columns()];
        for d in 0..layer.weight().rows() {
            for (largest, &w) in weight.iter_mut().zip(layer.weight().row(d)) {
                *largest = largest.max(w.abs());
            }
        }
        let (mut gammas, mut reach) = (Vec::new(), Vec::new());
        for &m in region.level(1).nodes() {
            let (neighbours, weights) = network.propagation().row(m as usize);
            let row_length = |n: u32| attributes.row(n as usize).len();
            let longest = neighbours.iter().map(|&n| row_length(n)).max().unwrap_or(0);
            let flips = limits.flips_within(neighbours);
            // A row's sum, its place in the neighbourhood's sum, the flips' sum, the chord's division and product.
            gammas.push(gamma_after(longest + neighbours.len() + flips + 16));
            let largest = weights.iter().copied().fold(0.0, f64::max);
            let clean: f64 = neighbours.iter().zip(weights).map(|(&n, p)| p * row_length(n) as f64).sum();
            reach.push(clean + flips as f64 * largest);
        }
        Self {
            gammas,
            reach,
            weight: weight.into_iter().map(magnitude).collect(),
            bias: layer.bias().iter().copied().map(magnitude).collect(),
        }
    }

    /// The bound on magnitudes of a unit.
    #[inline]
    pub(crate) fn magnitude(&self, place: usize, unit: usize) -> f64 {
        self.reach[place] * self.weight[unit] + self.bias[unit]
    }
}

/// Pre-activations of every layer and bounds of every hidden one, for all nodes that some target sees.
#[derive(Debug)]
pub(crate) struct Bounds {
    /// `Zⁱ` on the graph as it is; the last are the logits.
    pub(crate) clean: Vec<Matrix>,
    /// Bounds of the hidden layers.
    pub(crate) hidden: Vec<LayerBounds>,
    /// Rounding errors of the first layer's pre-activations.
    pub(crate) first_error: FirstLayerError,
}

impl Bounds {
    /// Computes everything; `None` if `observer`, told `(done, total)` steps, breaks off.
    pub(crate) fn compute(
        network: &Network,
        limits: &Limits,
        region: &Region,
        pool: &ThreadPool,
        mut observer: impl FnMut(usize, usize) -> ControlFlow<()>,
    ) -> Option<Self> {
        let layers = network.layers();
        let sums = || network.attribute_sums(region.level(0).nodes());
        let clean = pool.install(|| network.pre_activations(region, &sums()));
        let first_error = FirstLayerError::new(network, limits, region);
        let mut hidden = Vec::with_capacity(layers.len() - 1);
        if layers.len() > 1 {
            let places_with = network.graph().attributes().turned(region.level(0).nodes());
            let (lo, hi) = first::bounds(network, limits, region, &places_with, &clean[0], pool, &mut observer)?;
            hidden.push(LayerBounds { lo, hi, error: LayerError::First(first_error.clone()) });
        }
        for layer in 1..layers.len() - 1 {
            hidden.push(pool.install(|| deeper::bounds(network, region, layer, &hidden[layer - 1])));
        }
        Some(Self { clean, hidden, first_error })
    }
}

/// [`Bounds`] that also know how they depend on weights and biases.
#[derive(Debug)]
pub(crate) struct DifferentiableBounds {
    pub(crate) bounds: Bounds,
    attained: Option<first::Attained>,
    /// For each attribute the places in level 0 of the nodes that have it.
    places_with: Pattern,
}

/// Derivative of some number by `lo` and `hi` of one hidden layer.
#[derive(Debug)]
pub(crate) struct ByBounds {
    pub(crate) lo: Matrix,
    pub(crate) hi: Matrix,
}

impl DifferentiableBounds {
    /// Computes what [`Bounds::compute`] does.
    pub(crate) fn compute(network: &Network, limits: &Limits, region: &Region) -> Self {
        let layers = network.layers();
        let clean = network.pre_activations(region, &network.attribute_sums(region.level(0).nodes()));
        let first_error = FirstLayerError::new(network, limits, region);
        let mut hidden: Vec<LayerBounds> = Vec::with_capacity(layers.len() - 1);
        let places_with = network.graph().attributes().turned(region.level(0).nodes());
        let mut attained = None;
        if layers.len() > 1 {
            let (lo, hi, flips) = first::attained_bounds(network, limits, region, &places_with, &clean[0]);
            hidden.push(LayerBounds { lo, hi, error: LayerError::First(first_error.clone()) });
            attained = Some(flips);
        }
        for layer in 1..layers.len() - 1 {
            hidden.push(deeper::bounds(network, region, layer, &hidden[layer - 1]));
        }
        Self { bounds: Bounds { clean, hidden, first_error }, attained, places_with }
    }

    /// Adds to `gradient` the derivative by weights and biases of a number, given those by the bounds of every hidden
    /// layer and by the first layer's pre-activations. The flips that attain the bounds are held fixed (the envelope
    /// theorem).
    pub(crate) fn add_gradient(
        &self,
        network: &Network,
        region: &Region,
        mut by_bounds: Vec<ByBounds>,
        mut by_clean: Matrix,
        gradient: &mut Gradient,
    ) {
        while by_bounds.len() > 1
            && let Some(by) = by_bounds.pop()
        {
            let layer = by_bounds.len();
            let before = &self.bounds.hidden[layer - 1];
            deeper::add_gradient(network, region, layer, before, &by, &mut by_bounds[layer - 1], gradient);
        }
        if let (Some(by), Some(attained)) = (by_bounds.pop(), &self.attained) {
            attained.add_gradient(network.layers()[0].weight(), &by.lo, &by.hi, &mut gradient.weights[0]);
            add_scaled(by_clean.values_mut(), 1.0, by.lo.values());
            add_scaled(by_clean.values_mut(), 1.0, by.hi.values());
        }
        let by_sums = by_sums(network, region, &by_clean);
        add_rows(&mut gradient.biases[0], (0..by_clean.rows()).map(|row| (1.0, by_clean.row(row))));
        for attribute in 0..self.places_with.rows() {
            let places = self.places_with.row(attribute).iter();
            add_rows(gradient.weights[0].row_mut(attribute), places.map(|&place| (1.0, by_sums.row(place as usize))));
        }
    }
}

/// The derivative of a number by the attribute sums `X W⁰`, given that by `Z⁰ = P X W⁰ + b⁰`: `Pᵀ by_clean`.
fn by_sums(network: &Network, region: &Region, by_clean: &Matrix) -> Matrix {
    let inputs = region.level(0);
    let mut by_sums = Matrix::zeros(inputs.nodes().len(), by_clean.columns());
    for (row, &m) in region.level(1).nodes().iter().enumerate() {
        let (neighbours, weights) = network.propagation().row(m as usize);
        for (&n, &p) in neighbours.iter().zip(weights) {
            add_scaled(by_sums.row_mut(inputs.place(n)), p, by_clean.row(row));
        }
    }
    by_sums
}

//! Bounds `lo ≤ Z ≤ hi` on every pre-activation over all admissible sets of flips (the paper's R and S).
//!
//! The first layer's bounds are exact (Lemma 5 of `docs/maths.md`); deeper ones follow from them by interval arithmetic
//! (Lemma 7).

mod deeper;
mod first;

use std::ops::ControlFlow;
use std::sync::Arc;

use rayon::ThreadPool;

use crate::backward::{self, Coefficients};
use crate::budget::Limits;
use crate::dense::Matrix;
use crate::forward::Interval;
use crate::gradient::Gradient;
use crate::kernels::add_rows;
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

impl LayerBounds {
    /// Bounds and errors of a deeper layer.
    fn deeper(bounds: &Matrix<Interval>) -> Self {
        let part = |of: fn(&Interval) -> f64| {
            Matrix::from_values(bounds.rows(), bounds.columns(), bounds.values().iter().map(of).collect())
        };
        let error = LayerError::Deeper(part(|unit| unit.error));
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
/// Each is a sum in which no term passes through more than n_m roundings, so off by at most `γ_m` times that (Lemma 32a).
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
    pub(crate) clean: Arc<Vec<Matrix>>,
    /// Bounds of the hidden layers.
    pub(crate) hidden: Vec<LayerBounds>,
    /// Rounding errors of the first layer's pre-activations.
    pub(crate) first_error: FirstLayerError,
}

impl Bounds {
    /// Computes the bounds around the pre-activations `clean`; `None` if `observer`, called with `(done, total)` steps, breaks off.
    pub(crate) fn compute(
        network: &Network,
        limits: &Limits,
        region: &Region,
        clean: Arc<Vec<Matrix>>,
        pool: &ThreadPool,
        mut observer: impl FnMut(usize, usize) -> ControlFlow<()>,
    ) -> Option<Self> {
        let mut bounds = Self::of_first_layer(network, limits, region, clean, |clean| {
            let places_with = network.graph().attributes().turned(region.level(0).nodes());
            first::bounds(network, limits, region, &places_with, clean, pool, &mut observer)
        })?;
        pool.install(|| bounds.add_deeper(network, region));
        Some(bounds)
    }

    /// Bounds of the first layer alone, if it is a hidden one, as `first` finds them.
    fn of_first_layer(
        network: &Network,
        limits: &Limits,
        region: &Region,
        clean: Arc<Vec<Matrix>>,
        first: impl FnOnce(&Matrix) -> Option<(Matrix, Matrix)>,
    ) -> Option<Self> {
        let first_error = FirstLayerError::new(network, limits, region);
        let mut hidden = Vec::with_capacity(network.layers().len() - 1);
        if network.model().hidden_layers() > 0 {
            let (lo, hi) = first(&clean[0])?;
            hidden.push(LayerBounds { lo, hi, error: LayerError::First(first_error.clone()) });
        }
        Some(Self { clean, hidden, first_error })
    }

    /// Adds the bounds of the deeper hidden layers.
    fn add_deeper(&mut self, network: &Network, region: &Region) {
        for layer in 1..network.model().hidden_layers() {
            self.hidden.push(deeper::bounds(network, region, layer, &self.hidden[layer - 1]));
        }
    }
}

/// How [`Bounds`] depend on weights and biases.
#[derive(Debug)]
pub(crate) struct DifferentiableBounds {
    attained: Option<first::Attained>,
    /// For each attribute the places in level 0 of the nodes that have it.
    places_with: Pattern,
}

/// Derivative of some number by `lo` and `hi` of a unit.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Ends {
    pub(crate) lo: f64,
    pub(crate) hi: f64,
}

/// Derivative of some number by `lo` and `hi` of one hidden layer.
pub(crate) type ByBounds = Matrix<Ends>;

impl DifferentiableBounds {
    /// Computes what [`Bounds::compute`] does, and how it depends on weights and biases.
    pub(crate) fn compute(network: &Network, limits: &Limits, region: &Region) -> (Bounds, Self) {
        let clean = network.pre_activations(region, &network.attribute_sums(region.level(0).nodes()));
        let places_with = network.graph().attributes().turned(region.level(0).nodes());
        let mut attained = None;
        let bounds = Bounds::of_first_layer(network, limits, region, Arc::new(clean), |clean| {
            let (lo, hi, flips) = first::attained_bounds(network, limits, region, &places_with, clean);
            attained = Some(flips);
            Some((lo, hi))
        });
        let mut bounds = bounds.unwrap_or_else(|| unreachable!("nobody breaks off"));
        bounds.add_deeper(network, region);
        (bounds, Self { attained, places_with })
    }

    /// Adds to `gradient` the derivative by weights and biases of a number, given those by the bounds of every hidden
    /// layer and by the first layer's pre-activations. The flips that attain the bounds are held fixed (the envelope
    /// theorem, Lemma 35).
    pub(crate) fn add_gradient(
        &self,
        bounds: &Bounds,
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
            let before = &bounds.hidden[layer - 1];
            deeper::add_gradient(network, region, layer, before, &by, &mut by_bounds[layer - 1], gradient);
        }
        if let (Some(by), Some(attained)) = (by_bounds.pop(), &self.attained) {
            attained.add_gradient(network.attribute_weight(), &by, &mut gradient.weights[0]);
            for (by_clean, by) in by_clean.values_mut().iter_mut().zip(by.values()) {
                *by_clean = (*by_clean + by.lo) + by.hi;
            }
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
    let mut by_sums = Matrix::zeros(region.level(0).nodes().len(), by_clean.columns());
    backward::spread(&Coefficients, &region.hop(network.propagation(), 0), by_clean, &mut by_sums);
    by_sums
}

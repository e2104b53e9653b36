//! What lies behind the first hidden layer, as a bound that is linear in its activations (Lemma 18 of `docs/maths.md`).
//!
//! With one hidden layer the margin itself is linear in them. With more, every deeper ReLU is replaced by a line below
//! it where its coefficient is positive and by its chord where that is negative, from the last layer back (as the paper
//! and CROWN do), over bounds that follow from those of the first layer by interval arithmetic.

use super::surroundings::Surroundings;
use crate::backward::{self, CarriedBack};
use crate::dense::{Matrix, dot};
use crate::forward::{self, Carried, Interval, Intervals, Link};
use crate::ids::ClassId;
use crate::model::Activation;
use crate::relax::chord;
use crate::rounding::{gamma_after, magnitude};

/// `constant + Σ_i c_i relu(x_i)`, a lower bound on the margin.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tail {
    pub(crate) constant: f64,
    pub(crate) coefficients: Vec<f64>,
}

impl Tail {
    /// The margin of y over k, given bounds of the first layer's units (only looked at if there are deeper ones).
    pub(crate) fn new(around: &Surroundings, pair: (ClassId, ClassId), lo: &[f64], hi: &[f64]) -> Self {
        let (layers, slice) = (around.shared.network.layers(), around.slice);
        let mut above = difference(around, pair);
        // Without hidden layers the logits are the units, and their biases are in the units' values.
        let Some(last) = layers.last().filter(|_| layers.len() > 1) else {
            return Self { constant: 0.0, coefficients: above.values().to_vec() };
        };
        let deeper = deeper_bounds(around, lo, hi);
        let mut constant = last.bias()[pair.0.index()] - last.bias()[pair.1.index()];
        for i in (1..layers.len()).rev() {
            let mut below = Matrix::zeros(slice.level(i).len(), layers[i - 1].units());
            let weight = layers[i].terms()[0].weight();
            backward::term(&Nonzero, slice.hop(i, 0), weight, &above, &mut Vec::new(), &mut below);
            if i > 1 {
                apply_chords(&mut below, &mut constant, &deeper[i - 2], layers[i - 1].bias());
            }
            above = below;
        }
        Self { constant, coefficients: above.values().to_vec() }
    }
}

/// The margin as coefficients of the logits.
fn difference(around: &Surroundings, (y, k): (ClassId, ClassId)) -> Matrix {
    let mut coefficients = Matrix::zeros(1, around.shared.network.model().classes());
    coefficients.row_mut(0)[y.index()] = 1.0;
    coefficients.row_mut(0)[k.index()] -= 1.0;
    coefficients
}

/// From coefficients of activations to those of pre-activations; chords and biases add to the constant.
fn apply_chords(coefficients: &mut Matrix, constant: &mut f64, bounds: &Matrix<Interval>, bias: &[f64]) {
    for row in 0..coefficients.rows() {
        let units = coefficients.row_mut(row).iter_mut().zip(bounds.row(row)).zip(bias);
        for ((coefficient, bounds), bias) in units {
            let (slope, offset) = chord(bounds.lo, bounds.hi);
            *constant += coefficient.min(0.0) * offset;
            *coefficient *= slope;
            *constant += *coefficient * bias;
        }
    }
}

/// Coefficients that underflow does not turn into 0: flips that move what has no coefficient are left out for good.
struct Nonzero;

impl CarriedBack for Nonzero {
    type Number = f64;

    fn through_weight(&self, above: &[f64], weight: &[f64]) -> f64 {
        dot(above, weight)
    }

    fn spread(&self, _: usize, below: &mut [f64], p: f64, back: &[f64]) {
        for (below, &back) in below.iter_mut().zip(back) {
            let product = p * back;
            let lost = product == 0.0 && p != 0.0 && back != 0.0;
            *below += if lost { f64::from_bits(1).copysign(back) } else { product };
        }
    }
}

/// Bounds of each hidden layer after the first, without their errors.
fn deeper_bounds(around: &Surroundings, lo: &[f64], hi: &[f64]) -> Vec<Matrix<Interval>> {
    let (layers, slice) = (around.shared.network.layers(), around.slice);
    let hidden = layers.len() - 1;
    if hidden < 2 {
        return Vec::new();
    }
    let first = lo.iter().zip(hi).map(|(&lo, &hi)| Interval { lo, hi, error: 0.0 });
    let mut all = vec![Matrix::from_values(slice.level(1).len(), around.width, first.collect())];
    for i in 1..hidden {
        let bounds = next_layer::<Intervals>(around, i, &all[i - 1]);
        all.push(bounds);
    }
    all.split_off(1)
}

/// Layer i from the one below.
fn next_layer<C: Carried>(around: &Surroundings, i: usize, below: &Matrix<C::Number>) -> Matrix<C::Number> {
    let (slice, layer) = (around.slice, &around.shared.network.layers()[i]);
    let (hop, weight) = (slice.hop(i, 0), Some(layer.terms()[0].weight()));
    let link = Link { hop, below, columns: 0..below.columns(), activation: Activation::Relu, weight };
    let mut next = Matrix::default();
    forward::layer_into::<C>(slice.level(i + 1).len(), layer.bias(), &[link], &mut Vec::new(), &mut next);
    next
}

/// A bound on the rounding error of everything that is computed about the margin of y over k (Lemma 32f).
///
/// The network of absolute values, `M⁰ = reach · |W⁰| + |b⁰|` and `Mⁱ = P Mⁱ⁻¹ |Wⁱ| + |bⁱ|`, bounds the magnitude of every
/// pre-activation and bound, of their partial sums, and of every product of a coefficient with what it is multiplied by:
/// slopes and shares are at most 1. A number of the bound is a sum of such products, over the units of all nodes one after
/// the other, and no term passes through more than n roundings, so that the sum is off by at most `γ_n M` of the last
/// layer. That lines are drawn over bounds that are off themselves adds as much for every layer, and choosing flips by
/// rounded gains once more.
///
/// What underflows depends on the order of the factors. So M is also computed as `Σ Cⁱ Mⁱ` for every hidden layer i, with C
/// the magnitudes of the coefficients, made from the last layer back, and the largest is taken.
pub(crate) fn rounding_error(around: &Surroundings, pair: (ClassId, ClassId)) -> f64 {
    let (shared, slice) = (around.shared, around.slice);
    let layers = shared.network.layers();
    let attributes = shared.network.graph().attributes();
    let longest = slice.level(0).iter().map(|&n| attributes.row(n as usize).len()).max().unwrap_or(0);
    let mut roundings = longest + around.most + slice.level(0).len() + 64;
    for i in 1..layers.len() {
        roundings += slice.level(i).len() * layers[i - 1].units() + slice.level(i).len() + 8;
    }
    let factor = 8.0 * (layers.len() + 1) as f64;
    factor * gamma_after(roundings) * largest_magnitude(around, pair) + shared.overflow_error
}

/// M of [`rounding_error`].
fn largest_magnitude(around: &Surroundings, pair: (ClassId, ClassId)) -> f64 {
    let (slice, layers) = (around.slice, around.shared.network.layers());
    let mut magnitudes = vec![Matrix::zeros(slice.level(1).len(), around.width)];
    for m in 0..slice.level(1).len() {
        let place = around.place(m);
        magnitudes[0]
            .row_mut(m)
            .iter_mut()
            .enumerate()
            .for_each(|(j, value)| *value = around.first_error.magnitude(place, j));
    }
    for i in 1..layers.len() {
        let next = next_layer::<forward::Magnitudes>(around, i, &magnitudes[i - 1]);
        magnitudes.push(next);
    }
    let last = &layers[layers.len() - 1];
    let [y, k] = [pair.0.index(), pair.1.index()];
    let logits = magnitudes[layers.len() - 1].row(0);
    let mut largest = logits[y] + logits[k];
    let biases = magnitude(last.bias()[y]) + magnitude(last.bias()[k]);
    let mut above = difference(around, pair);
    for i in (1..layers.len()).rev() {
        let mut below = Matrix::zeros(slice.level(i).len(), layers[i - 1].units());
        let weight = layers[i].terms()[0].weight();
        backward::term(&backward::Magnitudes, slice.hop(i, 0), weight, &above, &mut Vec::new(), &mut below);
        let terms = below.values().iter().zip(magnitudes[i - 1].values());
        largest = largest.max(biases + terms.map(|(c, inner)| c * inner).sum::<f64>());
        above = below;
    }
    largest
}

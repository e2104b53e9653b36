//! What lies behind the first hidden layer, as a bound that is linear in its activations.
//!
//! With one hidden layer the margin itself is linear in them. With more, every deeper ReLU is replaced by a line below
//! it where its coefficient is positive and by its chord where that is negative, from the last layer back (as the paper
//! and CROWN do), over bounds that follow from those of the first layer by interval arithmetic.

use super::problem::Surroundings;
use crate::dense::{Matrix, relu};
use crate::graph::ClassId;
use crate::relaxation::chord;
use crate::rounding::{gamma_after, magnitude, magnitude_dot};

/// `constant + Σ_i c_i relu(x_i)`, a lower bound on the margin.
#[derive(Debug, Clone, Default)]
pub(super) struct Tail {
    pub(super) constant: f64,
    pub(super) coefficients: Vec<f64>,
}

impl Tail {
    /// The margin of y over k, given bounds of the first layer's units (only looked at if there are deeper ones).
    pub(super) fn new(around: &Surroundings, (y, k): (ClassId, ClassId), lo: &[f64], hi: &[f64]) -> Self {
        let (layers, slice) = (around.shared.network.layers(), around.slice);
        let hidden = layers.len() - 1;
        if hidden == 0 {
            // Logits are the units, and no ReLU comes after them.
            let mut coefficients = vec![0.0; around.width];
            coefficients[y.index()] = 1.0;
            coefficients[k.index()] -= 1.0;
            return Self { constant: 0.0, coefficients };
        }
        let deeper = deeper_bounds(around, lo, hi);
        let last = &layers[hidden];
        let mut constant = last.bias()[y.index()] - last.bias()[k.index()];
        let difference = |j: usize| last.weight().get(j, y.index()) - last.weight().get(j, k.index());
        let mut by_values = Matrix::zeros(slice.level(hidden).len(), last.weight().rows());
        for (m, p) in slice.hop(hidden).row(0) {
            for (j, value) in by_values.row_mut(m).iter_mut().enumerate() {
                *value += product(p, difference(j));
            }
        }
        for layer in (1..hidden).rev() {
            let (lo, hi) = &deeper[layer - 1];
            let weights = &layers[layer];
            let mut by_inputs = Matrix::zeros(slice.level(layer).len(), weights.weight().rows());
            for m in 0..slice.level(layer + 1).len() {
                for (j, by_value) in by_values.row_mut(m).iter_mut().enumerate() {
                    let (slope, offset) = chord(lo.get(m, j), hi.get(m, j));
                    constant += by_value.min(0.0) * offset;
                    *by_value *= slope;
                    constant += *by_value * weights.bias()[j];
                }
                let by_values = by_values.row(m);
                for (input, w) in (0..weights.weight().rows()).map(|input| (input, weights.weight().row(input))) {
                    let sum: f64 = w.iter().zip(by_values).map(|(w, by)| w * by).sum();
                    for (n, p) in slice.hop(layer).row(m) {
                        by_inputs.row_mut(n)[input] += p * sum;
                    }
                }
            }
            by_values = by_inputs;
        }
        Self { constant, coefficients: by_values.values().to_vec() }
    }
}

/// `p · x`, but not 0 where neither is: flips that move what has no coefficient are left out for good.
fn product(p: f64, x: f64) -> f64 {
    let product = p * x;
    if product == 0.0 && p != 0.0 && x != 0.0 { f64::from_bits(1).copysign(x) } else { product }
}

/// lo and hi of each hidden layer after the first.
fn deeper_bounds(around: &Surroundings, lo: &[f64], hi: &[f64]) -> Vec<(Matrix, Matrix)> {
    let (layers, slice) = (around.shared.network.layers(), around.slice);
    let mut all: Vec<(Matrix, Matrix)> = Vec::new();
    for (layer, weights) in layers.iter().enumerate().take(layers.len() - 1).skip(1) {
        let (inputs, rows) = (weights.weight().rows(), slice.level(layer + 1).len());
        let mut bounds = (Matrix::zeros(rows, weights.bias().len()), Matrix::zeros(rows, weights.bias().len()));
        for m in 0..rows {
            let (mut low, mut high) = (vec![0.0; inputs], vec![0.0; inputs]);
            for (n, p) in slice.hop(layer).row(m) {
                for j in 0..inputs {
                    let (lo, hi) = match all.last() {
                        None => (lo[n * inputs + j], hi[n * inputs + j]),
                        Some((lo, hi)) => (lo.get(n, j), hi.get(n, j)),
                    };
                    low[j] += p * relu(lo);
                    high[j] += p * relu(hi);
                }
            }
            let (lo, hi) = (bounds.0.row_mut(m), bounds.1.row_mut(m));
            lo.copy_from_slice(weights.bias());
            hi.copy_from_slice(weights.bias());
            for j in 0..inputs {
                for (unit, &w) in weights.weight().row(j).iter().enumerate() {
                    let (smaller, larger) = if w >= 0.0 { (low[j], high[j]) } else { (high[j], low[j]) };
                    lo[unit] += smaller * w;
                    hi[unit] += larger * w;
                }
            }
        }
        all.push(bounds);
    }
    all
}

/// A bound on the rounding error of everything that is computed about the margin of y over k.
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
pub(super) fn rounding_error(around: &Surroundings, pair: (ClassId, ClassId)) -> f64 {
    let (shared, slice) = (around.shared, around.slice);
    let layers = shared.network.layers();
    let attributes = shared.network.graph().attributes();
    let longest = slice.level(0).iter().map(|&n| attributes.row(n as usize).len()).max().unwrap_or(0);
    let mut roundings = longest + around.most + slice.level(0).len() + 64;
    for (i, layer) in layers.iter().enumerate().skip(1) {
        roundings += slice.level(i).len() * layer.weight().rows() + slice.level(i).len() + 8;
    }
    let factor = 8.0 * (layers.len() + 1) as f64;
    factor * gamma_after(roundings) * largest_magnitude(around, pair) + shared.overflow_error
}

/// M of [`rounding_error`].
fn largest_magnitude(around: &Surroundings, (y, k): (ClassId, ClassId)) -> f64 {
    let (slice, layers) = (around.slice, around.shared.network.layers());
    let first = &around.shared.bounds.first_error;
    let mut magnitudes = vec![Matrix::zeros(slice.level(1).len(), around.width)];
    for m in 0..slice.level(1).len() {
        let place = around.place(m);
        magnitudes[0].row_mut(m).iter_mut().enumerate().for_each(|(j, value)| *value = first.magnitude(place, j));
    }
    for (i, layer) in layers.iter().enumerate().skip(1) {
        let mut next = Matrix::zeros(slice.level(i + 1).len(), layer.bias().len());
        for m in 0..slice.level(i + 1).len() {
            let values = next.row_mut(m);
            values.iter_mut().zip(layer.bias()).for_each(|(value, &b)| *value = magnitude(b));
            for (n, p) in slice.hop(i).row(m) {
                for (input, &inner) in magnitudes[i - 1].row(n).iter().enumerate() {
                    for (value, &w) in values.iter_mut().zip(layer.weight().row(input)) {
                        let either = (magnitude(p * w) * inner).max(w.abs() * magnitude(p * inner));
                        *value += magnitude(either);
                    }
                }
            }
        }
        magnitudes.push(next);
    }
    let hidden = layers.len() - 1;
    let logits = magnitudes[hidden].row(0);
    let mut largest = logits[y.index()] + logits[k.index()];
    if hidden == 0 {
        return largest;
    }
    let last = &layers[hidden];
    let difference = |j: usize| magnitude(last.weight().get(j, y.index())) + magnitude(last.weight().get(j, k.index()));
    let biases = magnitude(last.bias()[y.index()]) + magnitude(last.bias()[k.index()]);
    let mut coefficients = Matrix::zeros(slice.level(hidden).len(), last.weight().rows());
    for (m, p) in slice.hop(hidden).row(0) {
        coefficients.row_mut(m).iter_mut().enumerate().for_each(|(j, c)| *c += magnitude(p * difference(j)));
    }
    for i in (0..hidden).rev() {
        let terms = coefficients.values().iter().zip(magnitudes[i].values());
        largest = largest.max(biases + terms.map(|(c, inner)| c * inner).sum::<f64>());
        if i == 0 {
            break;
        }
        let weight = layers[i].weight();
        let mut before = Matrix::zeros(slice.level(i).len(), weight.rows());
        for m in 0..slice.level(i + 1).len() {
            for input in 0..weight.rows() {
                let sum = magnitude_dot(weight.row(input), coefficients.row(m));
                for (n, p) in slice.hop(i).row(m) {
                    before.row_mut(n)[input] += magnitude(p * sum);
                }
            }
        }
        coefficients = before;
    }
    largest
}

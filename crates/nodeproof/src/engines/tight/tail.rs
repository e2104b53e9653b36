//! What lies behind the hidden layer: the margin is linear in its activations (Lemma 18 of `docs/maths.md`).

use super::surroundings::Surroundings;
use crate::backward::{self, CarriedBack};
use crate::dense::{Matrix, dot};
use crate::forward::{self, Link};
use crate::ids::ClassId;
use crate::model::Activation;
use crate::rounding::{gamma_after, magnitude};

/// The margin, `constant + Σ_i c_i relu(x_i)`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tail {
    pub(crate) constant: f64,
    pub(crate) coefficients: Vec<f64>,
}

impl Tail {
    /// The margin of y over k.
    pub(crate) fn new(around: &Surroundings, pair: (ClassId, ClassId)) -> Self {
        let last = &around.shared.network.layers()[1];
        let mut below = Matrix::zeros(around.slice.level(1).len(), around.width);
        let (hop, weight) = (around.slice.hop(1, 0), last.terms()[0].weight());
        backward::term(&Nonzero, hop, weight, &difference(around, pair), &mut Vec::new(), &mut below);
        let constant = last.bias()[pair.0.index()] - last.bias()[pair.1.index()];
        Self { constant, coefficients: below.values().to_vec() }
    }
}

/// The margin as coefficients of the logits.
fn difference(around: &Surroundings, (y, k): (ClassId, ClassId)) -> Matrix {
    let mut coefficients = Matrix::zeros(1, around.shared.network.model().classes());
    coefficients.row_mut(0)[y.index()] = 1.0;
    coefficients.row_mut(0)[k.index()] -= 1.0;
    coefficients
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

/// A bound on the rounding error of everything that is computed about the margin of y over k (Lemma 32f).
///
/// The network of absolute values, `M⁰ = reach · |W⁰| + |b⁰|` and `M = P M⁰ |W¹| + |b¹|`, bounds the magnitude of every
/// pre-activation and bound, of their partial sums, and of every product of a coefficient with what it is multiplied by:
/// slopes and shares are at most 1. A number of the bound is a sum of such products, over the units of all nodes one after
/// the other, and no term passes through more than n roundings, so that the sum is off by at most `γ_n M`. That lines are drawn
/// over bounds that are off themselves adds as much, and choosing flips by rounded gains once more.
///
/// What underflows depends on the order of the factors. So M is also computed as `Σ C M⁰`, with C the magnitudes of the
/// coefficients, made from the last layer back, and the larger is taken.
pub(crate) fn rounding_error(around: &Surroundings, pair: (ClassId, ClassId)) -> f64 {
    let (shared, slice) = (around.shared, around.slice);
    let attributes = shared.network.graph().attributes();
    let longest = slice.level(0).iter().map(|&n| attributes.row(n as usize).len()).max().unwrap_or(0);
    let roundings = longest + around.most + slice.level(0).len() + slice.level(1).len() * (around.width + 1) + 72;
    24.0 * gamma_after(roundings) * largest_magnitude(around, pair) + shared.overflow_error
}

/// M of [`rounding_error`].
fn largest_magnitude(around: &Surroundings, pair: (ClassId, ClassId)) -> f64 {
    let (slice, last) = (around.slice, &around.shared.network.layers()[1]);
    let mut hidden = Matrix::zeros(slice.level(1).len(), around.width);
    for m in 0..slice.level(1).len() {
        let place = around.place(m);
        let units = hidden.row_mut(m).iter_mut().enumerate();
        units.for_each(|(j, value)| *value = around.first_error.magnitude(place, j));
    }
    let (hop, weight) = (slice.hop(1, 0), last.terms()[0].weight());
    let link =
        Link { hop, below: &hidden, columns: 0..around.width, activation: Activation::Relu, weight: Some(weight) };
    let mut logits = Matrix::default();
    forward::layer_into::<forward::Magnitudes>(1, last.bias(), &[link], &mut Vec::new(), &mut logits);
    let [y, k] = [pair.0.index(), pair.1.index()];
    let mut below = Matrix::zeros(slice.level(1).len(), around.width);
    backward::term(&backward::Magnitudes, hop, weight, &difference(around, pair), &mut Vec::new(), &mut below);
    let biases = magnitude(last.bias()[y]) + magnitude(last.bias()[k]);
    let products = below.values().iter().zip(hidden.values()).map(|(c, inner)| c * inner);
    (logits.get(0, y) + logits.get(0, k)).max(biases + products.sum::<f64>())
}

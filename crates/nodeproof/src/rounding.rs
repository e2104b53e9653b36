//! A rigorous bound on the rounding errors of a computation (Lemmas 28 to 33 of `docs/maths.md`).
//!
//! A verdict is about real numbers: the weights and the propagation as they are stored, with exact arithmetic on
//! them. `f64` arithmetic rounds, so every bound comes with a bound on its own error, and `robust` is said only when
//! the first exceeds the second.
//!
//! The standard model (Higham, *Accuracy and Stability of Numerical Algorithms*, section 3.1): a sum of products in
//! which no term passes through more than n roundings, in whatever order, is off by at most `γ_n · Σ |terms|` with
//! `γ_n = n u / (1 − n u)`, `u = 2⁻⁵³`.
//!
//! *Underflow* adds at most 2⁻¹⁰⁷⁵ to a product, whatever its factors, and later factors can make much of that. So the
//! magnitude of every intermediate product is raised by [`FLOOR`] = 2⁻¹⁰²² before it is multiplied on: its γ_n-fold is
//! at least n such errors.
//!
//! *Overflow* is ruled out beforehand: where the magnitudes of weights, propagation and budget leave any chance of it
//! ([`cannot_overflow`]), every bound gets an infinite error and nothing is claimed.

use crate::budget::Limits;
use crate::certificate::Bound;
use crate::network::Network;

/// Unit roundoff of `f64`.
const UNIT: f64 = f64::EPSILON / 2.0;

/// `γ_n`, raised by one per cent for the rounding of error bounds themselves.
pub(crate) fn gamma_after(roundings: usize) -> f64 {
    let nu = roundings as f64 * UNIT;
    if nu < 1e-3 { 1.01 * nu } else { f64::INFINITY }
}

/// What magnitudes are raised by so that errors by underflow are covered.
pub(crate) const FLOOR: f64 = f64::MIN_POSITIVE;

/// `|x|`, raised so that errors by underflow are covered.
#[inline]
pub(crate) fn magnitude(x: f64) -> f64 {
    x.abs() + FLOOR
}

/// `Σ_j |a_j| |b_j|`, each term raised so that its underflow is covered.
#[inline]
pub(crate) fn magnitude_dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| magnitude(a * b)).sum()
}

/// Results above this are too close to overflow; what is computed from a few of them still fits.
const LARGEST: f64 = 1e300;

/// Whether no intermediate result of bounds, duals and forward passes on `network` can overflow.
///
/// Bounds the magnitudes of all pre-activations from the first layer to the last, of all coefficients of the dual from
/// the last layer to the first, and of their products, each by the largest entries of its factors.
pub(crate) fn cannot_overflow(network: &Network, limits: &Limits) -> bool {
    let largest = |values: &[f64]| values.iter().fold(0.0f64, |largest, value| largest.max(value.abs()));
    let (layers, propagation) = (network.layers(), network.propagation());
    let nodes = propagation.rows() as f64;
    let mut column_sums = vec![0.0; propagation.rows()];
    let (mut row_sum, mut row_length) = (1.0f64, 0);
    for row in 0..propagation.rows() {
        let (columns, values) = propagation.row(row);
        row_sum = row_sum.max(values.iter().sum());
        columns.iter().zip(values).for_each(|(&column, &p)| column_sums[column as usize] += p);
        row_length = row_length.max(network.graph().attributes().row(row).len());
    }
    let column_sum = column_sums.into_iter().fold(1.0, f64::max);
    let flips = limits.global() as f64;

    let mut results = Vec::new();
    let mut values = row_sum * (row_length as f64 + flips) * largest(layers[0].weight().values());
    let mut pre_activations = Vec::new();
    for (i, layer) in layers.iter().enumerate() {
        if i > 0 {
            results.push(values * row_sum);
            values *= row_sum * layer.weight().rows() as f64 * largest(layer.weight().values());
        }
        values += largest(layer.bias());
        pre_activations.push(values);
    }
    let mut coefficients = 2.0;
    for (layer, pre_activation) in layers.iter().zip(&pre_activations).rev() {
        results.push(nodes * layer.bias().len() as f64 * coefficients * (1.0 + pre_activation));
        coefficients *= column_sum * layer.bias().len() as f64 * (1.0 + largest(layer.weight().values()));
        results.push(coefficients * (1.0 + flips));
    }
    results.push(coefficients * column_sum * (1.0 + flips));
    results.into_iter().chain(pre_activations).all(|result| result <= LARGEST)
}

/// A computed value with a bound on its distance from the exact one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Approximate {
    pub(crate) value: f64,
    pub(crate) error: f64,
}

impl Approximate {
    /// A bound that is certainly not above the exact value.
    pub(crate) fn lower(self) -> Bound {
        let lower = self.value - self.raised_error();
        if lower.is_finite() { Bound::AtLeast(lower) } else { Bound::Unknown }
    }

    /// A number that is certainly not below the exact value; infinite if nothing is known.
    pub(crate) fn upper(self) -> f64 {
        let upper = self.value + self.raised_error();
        if upper.is_finite() { upper } else { f64::INFINITY }
    }

    /// The error, raised by the rounding of the subtraction or addition that uses it and by underflow.
    fn raised_error(self) -> f64 {
        self.error + 4.0 * UNIT * (self.value.abs() + self.error) + FLOOR
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_known_of_what_overflowed() {
        for (value, error) in [(f64::INFINITY, 1.0), (1.0, f64::INFINITY), (f64::NAN, 0.0), (0.0, f64::NAN)] {
            let approximate = Approximate { value, error };
            assert_eq!((approximate.lower(), approximate.upper()), (Bound::Unknown, f64::INFINITY));
        }
    }

    #[test]
    fn an_exact_zero_is_not_positive() {
        assert!(!Approximate { value: 0.0, error: 0.0 }.lower().is_positive());
        assert!(!Approximate { value: 1.0, error: 1.0 }.lower().is_positive());
        assert!(Approximate { value: 1.0, error: 0.5 }.lower().is_positive());
    }

    #[test]
    fn gamma_covers_its_definition() {
        for n in [1usize, 10, 1000, 1 << 42] {
            let nu = n as f64 * UNIT;
            assert!(gamma_after(n) >= 1.008 * nu / (1.0 - nu));
        }
        assert_eq!(gamma_after(usize::MAX), f64::INFINITY);
    }
}

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
use crate::model::{Layer, Source, Term};
use crate::network::Network;
use crate::sparse::SparseMatrix;

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

/// What magnitudes are raised by where any number of layers may multiply what underflow has cost: [`FLOOR`] times `Π_i (1 + 2 κ_i)`, κ_i
/// being the most that layer i makes of an error in what it reads, or in the coefficients that it hands back (Lemma 41). It is rounded up to
/// a power of two, so that it is the same number before and after nearly all edits of a graph.
pub(crate) fn floor_through_layers(network: &Network) -> f64 {
    let sums: Vec<LargestSums> = network.matrices().iter().map(LargestSums::of).collect();
    let of_layer = |layer: &Layer| {
        let of_term = |term: &Term| {
            let sums = sums[term.propagation()];
            let width = network.model().width(term.source()).max(layer.units()) as f64;
            sums.row.max(sums.column) * (width * largest(term.weight().values())).max(1.0)
        };
        1.0 + 2.0 * layer.terms().iter().map(of_term).sum::<f64>()
    };
    power_of_two_above(1.01 * FLOOR * network.layers().iter().map(of_layer).product::<f64>())
}

/// The next power of two that is larger than a normal positive number; what is not finite stays so.
fn power_of_two_above(x: f64) -> f64 {
    const EXPONENT: u64 = 0x7ff << (f64::MANTISSA_DIGITS - 1);
    2.0 * f64::from_bits(x.to_bits() & EXPONENT)
}

/// Results above this are too close to overflow; what is computed from a few of them still fits.
const LARGEST: f64 = 1e300;

/// Whether no intermediate result of bounds, duals and forward passes on `network` can overflow.
///
/// Bounds the magnitudes of all pre-activations from the first layer to the last, of all coefficients of the dual from
/// the last layer to the first, and of their products, each by the largest entries of its factors.
pub(crate) fn cannot_overflow(network: &Network, limits: &Limits) -> bool {
    let (layers, graph) = (network.layers(), network.graph());
    let sums: Vec<LargestSums> = network.matrices().iter().map(LargestSums::of).collect();
    let sums = |term: &Term| sums[term.propagation()];
    let (nodes, flips) = (graph.nodes() as f64, limits.global() as f64);
    let longest = graph.node_ids().map(|node| graph.row_length(node)).max().unwrap_or(0) as f64;
    let size = network.value_sizes().map_or(1.0, |sizes| 2.0 * sizes.fold(1.0, f64::max));

    let mut results = Vec::new();
    let mut pre_activations: Vec<f64> = Vec::new();
    for layer in layers {
        let mut values = 0.0;
        for term in layer.terms() {
            let gathered = sums(term).row
                * match term.source() {
                    Source::Attributes => size * (longest + flips),
                    Source::Ones => 1.0,
                    Source::Layer(source) => pre_activations[source] * network.model().width(term.source()) as f64,
                };
            results.push(gathered);
            values += gathered * largest(term.weight().values());
        }
        pre_activations.push(values + largest(layer.bias()));
    }
    let mut coefficients = vec![0.0; layers.len()];
    coefficients[layers.len() - 1] = 2.0;
    let mut of_attributes = 0.0;
    for (i, layer) in layers.iter().enumerate().rev() {
        let units = layer.units() as f64;
        results.push(nodes * units * coefficients[i] * (1.0 + pre_activations[i]));
        for term in layer.terms() {
            let back = coefficients[i] * sums(term).column * units * (1.0 + largest(term.weight().values()));
            results.push(back * (1.0 + flips));
            match term.source() {
                Source::Attributes => of_attributes += size * back * sums(term).column,
                Source::Layer(source) => coefficients[source] += back,
                Source::Ones => {}
            }
        }
    }
    results.push(of_attributes * (1.0 + flips));
    results.into_iter().chain(pre_activations).all(|result| result <= LARGEST)
}

/// The largest magnitude, 0 of nothing.
fn largest(values: &[f64]) -> f64 {
    values.iter().fold(0.0, |largest, value| value.abs().max(largest))
}

/// The largest sum of magnitudes in a row and in a column of a propagation, and at least 1.
#[derive(Debug, Clone, Copy)]
struct LargestSums {
    row: f64,
    column: f64,
}

impl LargestSums {
    fn of(propagation: &SparseMatrix) -> Self {
        let mut columns = vec![0.0; propagation.rows()];
        let mut largest_row = 1.0f64;
        for row in 0..propagation.rows() {
            let (places, values) = propagation.row(row);
            largest_row = largest_row.max(values.iter().map(|p| p.abs()).sum());
            places.iter().zip(values).for_each(|(&column, p)| columns[column as usize] += p.abs());
        }
        Self { row: largest_row, column: columns.into_iter().fold(1.0, f64::max) }
    }
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
    fn powers_of_two_are_above() {
        for (x, power) in [(1.0, 2.0), (1.5, 2.0), (3.99, 4.0), (FLOOR, 2.0 * FLOOR), (f64::MAX, f64::INFINITY)] {
            assert_eq!(power_of_two_above(x), power);
        }
        assert_eq!(power_of_two_above(f64::INFINITY), f64::INFINITY);
        assert!(!power_of_two_above(f64::NAN).is_finite());
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

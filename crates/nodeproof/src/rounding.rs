//! A rigorous bound on the rounding errors of a computation.
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
//! at least n such errors. *Overflow* makes a bound infinite or NaN, and neither counts as robust.

/// Unit roundoff of `f64`.
const UNIT: f64 = f64::EPSILON / 2.0;

/// `γ_n`, raised by one per cent for the rounding of error bounds themselves.
pub(crate) fn gamma(roundings: usize) -> f64 {
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

/// A computed value with a bound on its distance from the exact one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Approximate {
    pub(crate) value: f64,
    pub(crate) error: f64,
}

impl Approximate {
    /// A number that is certainly not above the exact value; the lowest there is if nothing is known.
    pub(crate) fn lower(self) -> f64 {
        finite_or(self.value - self.raised_error(), f64::MIN)
    }

    /// A number that is certainly not below the exact value; the highest there is if nothing is known.
    pub(crate) fn upper(self) -> f64 {
        finite_or(self.value + self.raised_error(), f64::MAX)
    }

    /// The error, raised by the rounding of the subtraction or addition that uses it and by underflow.
    fn raised_error(self) -> f64 {
        self.error + 4.0 * UNIT * (self.value.abs() + self.error) + FLOOR
    }
}

fn finite_or(x: f64, otherwise: f64) -> f64 {
    if x.is_finite() { x } else { otherwise }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_known_of_what_overflowed() {
        for (value, error) in [(f64::INFINITY, 1.0), (1.0, f64::INFINITY), (f64::NAN, 0.0), (0.0, f64::NAN)] {
            let approximate = Approximate { value, error };
            assert_eq!((approximate.lower(), approximate.upper()), (f64::MIN, f64::MAX));
        }
    }

    #[test]
    fn an_exact_zero_is_not_positive() {
        assert!(Approximate { value: 0.0, error: 0.0 }.lower() < 0.0);
        assert!(Approximate { value: 1.0, error: 1.0 }.lower() < 0.0);
        assert!(Approximate { value: 1.0, error: 0.5 }.lower() > 0.0);
    }

    #[test]
    fn gamma_covers_its_definition() {
        for n in [1usize, 10, 1000, 1 << 42] {
            let nu = n as f64 * UNIT;
            assert!(gamma(n) >= 1.008 * nu / (1.0 - nu));
        }
        assert_eq!(gamma(usize::MAX), f64::INFINITY);
    }
}

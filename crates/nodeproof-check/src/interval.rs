//! Numbers that are known up to rounding: intervals whose ends are rounded outwards (Lemma 51 of `docs/maths.md`).

use std::ops::{Add, Neg};

use nodeproof_problem::Activation;

use crate::number::{Activated, Number};

/// A real number between two doubles. Every operation rounds its ends outwards by more than a double can be off, so that what is
/// computed contains what is meant. Numbers that overflow end as NaN or infinity, which prove nothing.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Interval {
    pub(crate) lo: f64,
    pub(crate) hi: f64,
}

/// Four times the relative error of an operation; the smallest normal number, which is added, is more than the error of one that underflows.
const STEP: f64 = 2.0 * f64::EPSILON;

/// At most the real number that rounds to `x`.
#[inline]
pub(crate) fn down(x: f64) -> f64 {
    x - (x.abs() * STEP + f64::MIN_POSITIVE)
}

/// At least the real number that rounds to `x`.
#[inline]
pub(crate) fn up(x: f64) -> f64 {
    x + (x.abs() * STEP + f64::MIN_POSITIVE)
}

/// `x` where it is positive, and 0 elsewhere. Unlike `f64::max`, it keeps NaN.
#[inline]
pub(crate) fn relu(x: f64) -> f64 {
    if x <= 0.0 { 0.0 } else { x }
}

/// The larger of two numbers, NaN if one of them is.
#[inline]
pub(crate) fn larger(a: f64, b: f64) -> f64 {
    if a > b || a.is_nan() { a } else { b }
}

impl Interval {
    #[inline]
    fn is_zero(self) -> bool {
        self == Self::ZERO
    }

    /// A number that is a double.
    #[inline]
    pub(crate) fn of(x: f64) -> Self {
        Self { lo: x, hi: x }
    }

    /// The quotient by a whole number above 0.
    #[inline]
    pub(crate) fn over(self, divisor: usize) -> Self {
        if divisor == 1 || self.is_zero() {
            return self;
        }
        Self { lo: down(self.lo / divisor as f64), hi: up(self.hi / divisor as f64) }
    }

    /// The product with another interval.
    #[inline]
    pub(crate) fn product(self, other: Self) -> Self {
        let (a, b) = (self.times(other.lo), self.times(other.hi));
        Self { lo: -larger(-a.lo, -b.lo), hi: larger(a.hi, b.hi) }
    }

    /// The largest magnitude.
    #[inline]
    pub(crate) fn size(self) -> f64 {
        larger(self.lo.abs(), self.hi.abs())
    }
}

impl Add for Interval {
    type Output = Self;

    #[inline]
    fn add(self, other: Self) -> Self {
        if self.is_zero() || other.is_zero() {
            return if other.is_zero() { self } else { other };
        }
        Self { lo: down(self.lo + other.lo), hi: up(self.hi + other.hi) }
    }
}

impl Neg for Interval {
    type Output = Self;

    #[inline]
    fn neg(self) -> Self {
        Self { lo: -self.hi, hi: -self.lo }
    }
}

impl Number for Interval {
    const ZERO: Self = Self { lo: 0.0, hi: 0.0 };

    #[inline]
    fn plus(&self, other: &Self) -> Self {
        *self + *other
    }

    #[inline]
    fn times(&self, factor: f64) -> Self {
        if factor == 0.0 || self.is_zero() {
            return Self::ZERO;
        }
        let (a, b) = (self.lo * factor, self.hi * factor);
        if factor > 0.0 { Self { lo: down(a), hi: up(b) } } else { Self { lo: down(b), hi: up(a) } }
    }
}

impl Activated for Interval {
    #[inline]
    fn activated(&self, activation: Activation) -> Self {
        let slope = activation.slope();
        let end = |x: f64, rounded: fn(f64) -> f64| if x > 0.0 || slope == 1.0 { x } else { rounded(slope * x) };
        if slope == 0.0 {
            return Self { lo: relu(self.lo), hi: relu(self.hi) };
        }
        Self { lo: end(self.lo, down), hi: end(self.hi, up) }
    }
}

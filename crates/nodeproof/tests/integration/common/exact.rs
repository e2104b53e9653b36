//! Exact arithmetic: every finite `f64` is a whole number times a power of two, and so are sums and products of such.

use std::cmp::Ordering;

use num_bigint::{BigInt, Sign};

/// What a forward pass needs of numbers.
pub trait Number: Clone + PartialOrd {
    /// Whether nothing is rounded.
    const EXACT: bool;
    fn of(value: f64) -> Self;
    fn plus(&self, other: &Self) -> Self;
    fn minus(&self, other: &Self) -> Self;
    fn times(&self, other: &Self) -> Self;
}

impl Number for f64 {
    const EXACT: bool = false;

    fn of(value: f64) -> Self {
        value
    }

    fn plus(&self, other: &Self) -> Self {
        self + other
    }

    fn minus(&self, other: &Self) -> Self {
        self - other
    }

    fn times(&self, other: &Self) -> Self {
        self * other
    }
}

/// `mantissa · 2^exponent`, exactly.
#[derive(Debug, Clone)]
pub struct Dyadic {
    mantissa: BigInt,
    exponent: i64,
}

impl Dyadic {
    /// The mantissa for a lower exponent.
    fn aligned(&self, exponent: i64) -> BigInt {
        &self.mantissa << (self.exponent - exponent) as u64
    }

    /// Whether this is at least `bound`; −∞ is no bound at all.
    pub fn at_least(&self, bound: f64) -> bool {
        assert!(!bound.is_nan() && bound < f64::INFINITY, "a lower bound is {bound}");
        bound == f64::NEG_INFINITY || *self >= Self::of(bound)
    }

    /// Whether this is at most `bound`; ∞ is no bound at all.
    pub fn at_most(&self, bound: f64) -> bool {
        assert!(!bound.is_nan() && bound > f64::NEG_INFINITY, "an upper bound is {bound}");
        bound == f64::INFINITY || *self <= Self::of(bound)
    }
}

impl Number for Dyadic {
    const EXACT: bool = true;

    fn of(value: f64) -> Self {
        assert!(value.is_finite());
        let bits = value.to_bits();
        let biased = (bits >> 52 & 0x7ff) as i64;
        let fraction = (bits & ((1 << 52) - 1)) as i64;
        let mantissa = if biased == 0 { fraction } else { fraction | 1 << 52 };
        let zeros = mantissa.trailing_zeros() % 64;
        let signed = if value.is_sign_negative() { -mantissa } else { mantissa };
        Self { mantissa: BigInt::from(signed >> zeros), exponent: biased.max(1) - 1075 + i64::from(zeros) }
    }

    fn plus(&self, other: &Self) -> Self {
        if self.mantissa.sign() == Sign::NoSign {
            return other.clone();
        }
        let exponent = self.exponent.min(other.exponent);
        Self { mantissa: self.aligned(exponent) + other.aligned(exponent), exponent }
    }

    fn minus(&self, other: &Self) -> Self {
        let exponent = self.exponent.min(other.exponent);
        Self { mantissa: self.aligned(exponent) - other.aligned(exponent), exponent }
    }

    fn times(&self, other: &Self) -> Self {
        Self { mantissa: &self.mantissa * &other.mantissa, exponent: self.exponent + other.exponent }
    }
}

impl PartialEq for Dyadic {
    fn eq(&self, other: &Self) -> bool {
        self.partial_cmp(other) == Some(Ordering::Equal)
    }
}

impl PartialOrd for Dyadic {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        let exponent = self.exponent.min(other.exponent);
        self.aligned(exponent).partial_cmp(&other.aligned(exponent))
    }
}

//! What is carried through a network: intervals, and exact numbers.

use std::cmp::Ordering;

use nodeproof_problem::{Activation, Weight};
use num_bigint::{BigInt, Sign};

/// What can be added up and multiplied by doubles.
pub(crate) trait Number: Clone {
    const ZERO: Self;
    fn plus(&self, other: &Self) -> Self;
    fn times(&self, factor: f64) -> Self;
}

/// Numbers that can be sent through activations.
pub(crate) trait Activated: Number {
    fn activated(&self, activation: Activation) -> Self;
}

/// `sums += factor · row`.
#[inline]
pub(crate) fn add_scaled<N: Number>(sums: &mut [N], factor: f64, row: &[N]) {
    sums.iter_mut().zip(row).for_each(|(sum, x)| *sum = sum.plus(&x.times(factor)));
}

/// `out += x W`.
pub(crate) fn add_product<N: Number>(out: &mut [N], x: &[N], weight: &Weight) {
    match weight {
        Weight::Scalar(factor) => add_scaled(out, *factor, x),
        Weight::Dense(dense) => {
            for (input, x) in x.iter().enumerate() {
                out.iter_mut().zip(dense.row(input)).for_each(|(out, &w)| *out = out.plus(&x.times(w)));
            }
        }
    }
}

/// `out += x Wᵀ`.
pub(crate) fn add_transposed<N: Number>(out: &mut [N], x: &[N], weight: &Weight) {
    match weight {
        Weight::Scalar(factor) => add_scaled(out, *factor, x),
        Weight::Dense(dense) => {
            for (input, out) in out.iter_mut().enumerate() {
                *out = x.iter().zip(dense.row(input)).fold(out.clone(), |sum, (x, &w)| sum.plus(&x.times(w)));
            }
        }
    }
}

/// `mantissa · 2^exponent`, which every finite double is, and every sum and product of such numbers (Lemma 24 of `docs/maths.md`).
#[derive(Debug, Clone)]
pub(crate) struct Exact {
    mantissa: BigInt,
    exponent: i64,
}

impl Exact {
    /// A whole number.
    pub(crate) fn whole(mantissa: BigInt) -> Self {
        Self { mantissa, exponent: 0 }
    }

    /// How it compares with 0.
    pub(crate) fn sign(&self) -> Ordering {
        self.mantissa.sign().cmp(&Sign::NoSign)
    }
}

impl Number for Exact {
    const ZERO: Self = Self { mantissa: BigInt::ZERO, exponent: 0 };

    fn plus(&self, other: &Self) -> Self {
        let exponent = self.exponent.min(other.exponent);
        let at = |of: &Self| &of.mantissa << (of.exponent - exponent) as u64;
        Self { mantissa: at(self) + at(other), exponent }
    }

    fn times(&self, factor: f64) -> Self {
        let bits = factor.to_bits();
        let fraction = bits & ((1 << 52) - 1);
        let (mantissa, exponent) = match (bits >> 52 & 0x7ff) as i64 {
            _ if factor == 0.0 || self.sign().is_eq() => return Self::ZERO,
            0 => (fraction as i64, -1074),
            biased => ((fraction | 1 << 52) as i64, biased - 1075),
        };
        let mantissa = if factor < 0.0 { -mantissa } else { mantissa };
        Self { mantissa: &self.mantissa * mantissa, exponent: self.exponent + exponent }
    }
}

impl Activated for Exact {
    fn activated(&self, activation: Activation) -> Self {
        if self.sign().is_gt() { self.clone() } else { self.times(activation.slope()) }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Multiples of 1/8, with sums and products that doubles have, and what they are multiplied by: the last makes most of them subnormal.
    const SOME: [f64; 10] = [0.0, -0.0, 1.0, -1.0, 3.0, -7.5, 0.375, -1024.0, 4097.0, -0.125];
    const SCALES: [f64; 3] = [1.0, (1u128 << 100) as f64, f64::MIN_POSITIVE / 1024.0];

    pub(crate) fn exact(x: f64) -> Exact {
        Exact::whole(1.into()).times(x)
    }

    /// How a number compares with a double.
    pub(crate) fn compared(number: &Exact, with: f64) -> Ordering {
        number.plus(&exact(with).times(-1.0)).sign()
    }

    #[test]
    fn exact_numbers_are_what_doubles_are_where_these_are_exact() {
        for (x, y, scale) in SOME.iter().flat_map(|x| SOME.iter().flat_map(move |y| SCALES.map(|scale| (x, y, scale))))
        {
            let (of_x, of_y) = (exact(x * scale), exact(y * scale));
            assert_eq!(Some(of_x.sign()), x.partial_cmp(&0.0), "{x}");
            assert_eq!(Some(compared(&of_x, y * scale)), x.partial_cmp(y), "{x}, {y}, {scale:e}");
            assert!(compared(&of_x.plus(&of_y), (x + y) * scale).is_eq(), "({x} + {y}) {scale:e}");
            assert!(compared(&of_x.times(*y), x * y * scale).is_eq(), "{x} {y} {scale:e}");
        }
        assert!(compared(&exact(1.0).plus(&exact(5e-324)), 1.0).is_gt(), "no digit is lost");
        assert!(compared(&exact(1e300).times(1e300), f64::MAX).is_gt(), "nothing overflows");
        assert_eq!(compared(&Exact::whole(12.into()), 12.0), Ordering::Equal);
    }

    #[test]
    fn exact_numbers_are_sent_through_activations() {
        for (x, slope) in [(3.5, 0.25), (-3.5, 0.25), (0.0, 0.25), (-1.0, 0.0), (2.0, 0.0)] {
            let activated = exact(x).activated(Activation::LeakyRelu(slope));
            assert!(compared(&activated, if x > 0.0 { x } else { slope * x }).is_eq(), "{x}");
        }
    }
}

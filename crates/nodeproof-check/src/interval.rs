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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::number::Exact;
    use crate::number::tests::{compared, exact};

    /// Of both signs, with sums and products that are rounded, that underflow, and that cancel.
    const SOME: [f64; 14] = [
        0.0,
        1.0,
        -1.0,
        0.1,
        -0.1,
        0.3,
        -1.0 / 3.0,
        12345.678,
        -7e100,
        f64::MIN_POSITIVE,
        -f64::MIN_POSITIVE,
        5e-324,
        -1e-200,
        1e-170,
    ];

    fn pairs() -> impl Iterator<Item = (f64, f64)> {
        SOME.into_iter().flat_map(|x| SOME.map(|y| (x, y)))
    }

    /// That an interval has a number, and is no wider than a few roundings of what it is made of.
    fn assert_close(interval: Interval, number: &Exact, size: f64) {
        assert!(compared(number, interval.lo).is_ge() && compared(number, interval.hi).is_le(), "{interval:?}");
        let width = interval.hi - interval.lo;
        assert!(width <= 8.0 * STEP * size + 8.0 * f64::MIN_POSITIVE, "{interval:?} is too wide");
    }

    #[test]
    fn numbers_are_rounded_outwards() {
        for x in SOME {
            assert!(down(x) < x && x < up(x), "{x:e}");
            assert!(x - down(x) >= x.abs() * 1.5 * f64::EPSILON && up(x) - x >= x.abs() * 1.5 * f64::EPSILON, "{x:e}");
            assert!(up(x) - down(x) <= x.abs() * 8.0 * f64::EPSILON + 4.0 * f64::MIN_POSITIVE, "{x:e}");
        }
    }

    #[test]
    fn sums_products_and_quotients_are_within() {
        for (x, y) in pairs() {
            assert_close(Interval::of(x) + Interval::of(y), &exact(x).plus(&exact(y)), (x + y).abs());
            assert_close(Interval::of(x).times(y), &exact(x).times(y), (x * y).abs());
            assert_close(-Interval::of(x), &exact(x).times(-1.0), 0.0);
            for divisor in [1, 2, 3, 7] {
                let quotient = Interval::of(x).over(divisor);
                let times = |end: f64| exact(end).times(divisor as f64);
                assert!(compared(&times(quotient.lo), x).is_le() && compared(&times(quotient.hi), x).is_ge(), "{x:e}");
                let width = 8.0 * STEP * (x / divisor as f64).abs() + 8.0 * f64::MIN_POSITIVE;
                assert!(quotient.hi - quotient.lo <= width, "{x:e} / {divisor}");
            }
        }
        assert_eq!(Interval::of(0.1).over(1), Interval::of(0.1), "nothing is divided");
        assert_eq!(Interval::of(0.1) + Interval::ZERO, Interval::of(0.1), "nothing is added");
        assert_eq!(Interval::ZERO + Interval::of(0.1), Interval::of(0.1), "nothing is added");
        assert_eq!(Interval::of(0.1).times(0.0), Interval::ZERO);
        assert_eq!(Interval::of(f64::NAN).times(0.0), Interval::ZERO, "whatever finite number is meant");
    }

    #[test]
    fn intervals_have_what_their_numbers_make() {
        for (a, b) in pairs().filter(|(a, b)| a <= b) {
            let first = Interval { lo: a, hi: b };
            assert_eq!(first.size(), a.abs().max(b.abs()));
            for (c, d) in pairs().filter(|(c, d)| c <= d) {
                let second = Interval { lo: c, hi: d };
                let (sum, product) = (first + second, first.product(second));
                let corners = [(a, c), (a, d), (b, c), (b, d)];
                for (x, y) in corners {
                    let of_sum = exact(x).plus(&exact(y));
                    assert!(
                        compared(&of_sum, sum.lo).is_ge() && compared(&of_sum, sum.hi).is_le(),
                        "{first:?} + {second:?}"
                    );
                    let of_product = exact(x).times(y);
                    let is_in = compared(&of_product, product.lo).is_ge() && compared(&of_product, product.hi).is_le();
                    assert!(is_in, "{first:?} · {second:?}");
                }
                let products = corners.map(|(x, y)| x * y);
                let ends = products.into_iter().fold((f64::MAX, f64::MIN), |(lo, hi), x| (x.min(lo), x.max(hi)));
                let is_close =
                    |end: f64, other: f64| (end - other).abs() <= 2.0 * STEP * end.abs() + 4.0 * f64::MIN_POSITIVE;
                assert!(
                    is_close(ends.0, product.lo) && is_close(ends.1, product.hi),
                    "{first:?} · {second:?} is {product:?}"
                );
            }
        }
    }

    #[test]
    fn activations_are_within() {
        let some = [Activation::None, Activation::Relu, Activation::LeakyRelu(0.1), Activation::LeakyRelu(0.0)];
        for (activation, x) in some.into_iter().flat_map(|activation| SOME.map(|x| (activation, x))) {
            let activated = if x > 0.0 { exact(x) } else { exact(x).times(activation.slope()) };
            assert_close(Interval::of(x).activated(activation), &activated, x.abs());
            assert!(x <= 0.0 || Interval::of(x).activated(activation) == Interval::of(x), "{x:e} is left as it is");
        }
    }

    /// What overflows or is no number proves nothing.
    #[test]
    fn what_is_no_number_stays_so() {
        let nan = f64::NAN;
        assert!(relu(nan).is_nan() && larger(nan, 1.0).is_nan() && larger(1.0, nan).is_nan());
        assert!(up(nan).is_nan() && down(nan).is_nan());
        let interval = Interval { lo: nan, hi: nan };
        for made in [
            interval + Interval::of(1.0),
            Interval::of(1.0) + interval,
            interval.times(-2.0),
            -interval,
            interval.over(2),
        ] {
            assert!(made.lo.is_nan() && made.hi.is_nan(), "{made:?}");
        }
        let product = interval.product(Interval { lo: -1.0, hi: 2.0 });
        assert!(product.lo.is_nan() && product.hi.is_nan());
        let activated = interval.activated(Activation::Relu);
        assert!(activated.lo.is_nan() && activated.hi.is_nan());
        assert_eq!((relu(-1.0), relu(2.0), larger(1.0, 2.0), larger(2.0, 1.0)), (0.0, 2.0, 2.0, 2.0));
    }
}

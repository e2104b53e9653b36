//! The attributes' weights in single precision, for bounds that need not be sharp.
//!
//! Weights are stored in units of the largest one, row by row for single inner products and column by column for those of all
//! attributes at once. An inner product of a row with a vector of length 1 is off by at most [`RoughWeights::slack`]; whoever
//! uses one adds that, so that nothing is left out by mistake (Lemma 14 of `docs/maths.md`).

use crate::dense::{Matrix, dot};
use crate::kernels::{LANES, vectorised};

/// Below this, squares may have lost digits to underflow.
pub(crate) const SAFE_SQUARE: f64 = 1e-280;

/// A number that is at least `√Σ x_j²`, up to rounding, even where squares underflow.
pub(crate) fn norm_above(x: &[f64]) -> f64 {
    let squares = dot(x, x);
    if squares > SAFE_SQUARE {
        return squares.sqrt();
    }
    x.iter().fold(0.0f64, |largest, x| largest.max(x.abs())) * (x.len() as f64).sqrt()
}

/// The smallest single that is at least `x`.
#[inline(always)]
pub(crate) fn round_up(x: f64) -> f32 {
    let single = x as f32;
    if f64::from(single) < x { single.next_up() } else { single }
}

/// How far an inner product of two vectors of length h and of norm at most 1 may be off in single precision, with
/// something to spare: `(h + 8) 2⁻²⁴` is half an ulp for each rounding of an input, a product or a sum and for a few
/// operations with the result, and underflow does next to nothing.
fn slack_of(length: usize) -> f64 {
    1.25 * (length + 8) as f64 * f64::from(f32::EPSILON) / 2.0
}

/// Attributes whose inner products are computed together, their sums in registers.
const BLOCK: usize = 32;
/// Lengths in this range are far from where singles overflow or underflow.
const SAFE_LENGTHS: std::ops::Range<f64> = 1e-30..1e30;

/// The attributes' weights W, side by side, in single precision.
#[derive(Debug)]
pub(crate) struct RoughWeights {
    attributes: usize,
    units: usize,
    /// Length of a row, padded with zeros.
    pub(super) width: usize,
    rows: Vec<f32>,
    columns: Vec<f32>,
    /// The unit in which they are stored: the largest weight, or the smallest normal number where that is larger.
    pub(crate) unit: f64,
    /// How far an inner product of a row with a vector of length 1 may be off, in units.
    pub(super) slack: f64,
}

impl RoughWeights {
    pub(crate) fn new(weight: &Matrix) -> Self {
        let (attributes, units) = (weight.rows(), weight.columns());
        let width = units.next_multiple_of(LANES);
        let largest = weight.values().iter().fold(0.0f64, |largest, w| largest.max(w.abs()));
        // A subnormal unit would lose digits: weights far below it are stored as the small numbers that they are.
        let unit = if largest > 0.0 { largest.max(f64::MIN_POSITIVE) } else { 0.0 };
        let (mut rows, mut columns) = (vec![0.0; attributes * width], vec![0.0; attributes * units]);
        let mut longest = 0.0f64;
        for first in (0..attributes).step_by(BLOCK) {
            for d in first..(first + BLOCK).min(attributes) {
                let row = weight.row(d);
                longest = longest.max(norm_above(row));
                for (j, w) in row.iter().enumerate() {
                    let rough = if unit > 0.0 { (w / unit) as f32 } else { 0.0 };
                    rows[d * width + j] = rough;
                    columns[j * attributes + d] = rough;
                }
            }
        }
        let slack = if unit > 0.0 { slack_of(units) * longest / unit } else { 0.0 };
        Self { attributes, units, width, rows, columns, unit, slack }
    }

    /// The row of an attribute.
    #[inline(always)]
    pub(super) fn row(&self, attribute: u32) -> &[f32] {
        &self.rows[attribute as usize * self.width..][..self.width]
    }

    /// For each attribute d upper bounds of `x · W_d` and of `−x · W_d`.
    pub(super) fn products(&self, x: &[f64]) -> [Vec<f32>; 2] {
        match self.scaled(x) {
            Some((x, scale)) => self.bounds_of(self.inner_products(&x, |w| w), scale),
            None => self.no_bounds(),
        }
    }

    /// The same for a vector of length 1, of which the rough inner products with all attributes are known.
    pub(super) fn products_from(&self, scores: Vec<f32>) -> [Vec<f32>; 2] {
        if SAFE_LENGTHS.contains(&self.unit) { self.bounds_of(scores, round_up(self.unit)) } else { self.no_bounds() }
    }

    /// Upper bounds of what rough inner products stand for, and of its negative, if `scale` is what 1 stands for.
    fn bounds_of(&self, mut above: Vec<f32>, scale: f32) -> [Vec<f32>; 2] {
        let mut below = vec![0.0; above.len()];
        let slack = round_up(self.slack);
        vectorised(|| {
            for (above, below) in above.iter_mut().zip(&mut below) {
                *below = (slack - *above) * scale;
                *above = (slack + *above) * scale;
            }
        });
        [above, below]
    }

    fn no_bounds(&self) -> [Vec<f32>; 2] {
        [vec![f32::INFINITY; self.attributes], vec![f32::INFINITY; self.attributes]]
    }

    /// For each attribute d an upper bound of `‖W_d‖`.
    pub(super) fn lengths(&self) -> Vec<f32> {
        self.norms(&vec![1.0; self.units])
    }

    /// For each attribute d an upper bound of `‖x ∘ W_d‖`, above that of every `±(x ∘ y) · W_d` with y of length 1.
    pub(super) fn norms(&self, x: &[f64]) -> Vec<f32> {
        let Some((mut x, scale)) = self.scaled(x) else { return vec![f32::INFINITY; self.attributes] };
        x.iter_mut().for_each(|x| *x *= *x);
        let mut norms = self.inner_products(&x, |w| w * w);
        let slack = 4.0 * round_up(self.slack);
        vectorised(|| norms.iter_mut().for_each(|norm| *norm = (norm.sqrt() + slack) * scale));
        norms
    }

    /// `x` scaled to length 1, and what an inner product with it stands for; `None` where singles cannot hold that.
    fn scaled(&self, x: &[f64]) -> Option<(Vec<f32>, f32)> {
        let length = norm_above(x);
        let scale = length * self.unit;
        if length == 0.0 || self.unit == 0.0 {
            return Some((vec![0.0; x.len()], 0.0));
        }
        SAFE_LENGTHS.contains(&scale).then(|| (x.iter().map(|x| (x / length) as f32).collect(), round_up(scale)))
    }

    /// `Σ_j x_j f(W_dj)` for each attribute d.
    fn inner_products(&self, x: &[f32], f: impl Fn(f32) -> f32) -> Vec<f32> {
        let mut sums = vec![0.0; self.attributes];
        vectorised(|| {
            let terms = || x.iter().zip(self.columns.chunks_exact(self.attributes));
            let (blocks, rest) = sums.as_chunks_mut::<BLOCK>();
            for (i, block) in blocks.iter_mut().enumerate() {
                let mut sums = [0.0; BLOCK];
                for (x, column) in terms() {
                    let column = &column.as_chunks::<BLOCK>().0[i];
                    for lane in 0..BLOCK {
                        sums[lane] += x * f(column[lane]);
                    }
                }
                *block = sums;
            }
            for (x, column) in terms() {
                rest.iter_mut().zip(column.as_chunks::<BLOCK>().1).for_each(|(sum, &w)| *sum += x * f(w));
            }
        });
        sums
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Numbers of very different sizes.
    fn numbers(count: usize) -> impl Strategy<Value = Vec<f64>> {
        prop::collection::vec((-1.0..1.0, -3..3).prop_map(|(x, size): (f64, i32)| x * 10f64.powi(2 * size)), count)
    }

    /// As exact as doubles are.
    fn exact(x: &[f64], w: &[f64]) -> (f64, f64) {
        let norm = x.iter().zip(w).map(|(x, w)| (x * w) * (x * w)).sum::<f64>().sqrt();
        (dot(x, w), norm)
    }

    proptest! {
        #![proptest_config(crate::seed::config(256))]

        /// Of 40 attributes with 50 units, rounding to singles alone would put about half below.
        #[test]
        fn rough_bounds_are_above_and_close(
            (x, w, size) in (numbers(50), numbers(2000), -14..14).prop_map(|(x, w, size)| (x, w, 10f64.powi(size))),
        ) {
            let x: Vec<f64> = x.iter().map(|x| x * size).collect();
            let weight = Matrix::from_values(40, 50, w);
            let rough = RoughWeights::new(&weight);
            let ([above, below], norms) = (rough.products(&x), rough.norms(&x));
            let longest = (0..40).map(|d| norm_above(weight.row(d))).fold(0.0, f64::max);
            let spare = 1e-4 * norm_above(&x) * longest;
            for d in 0..40 {
                let (product, norm) = exact(&x, weight.row(d));
                let bounds = [(above[d], product), (below[d], -product), (norms[d], norm)];
                for (bound, value) in bounds.map(|(bound, value)| (f64::from(bound), value)) {
                    prop_assert!(bound >= value && bound <= value + spare, "{bound} is to bound {value}");
                }
            }
        }

        /// What the search compares with a threshold, in the precision in which it does.
        #[test]
        fn rough_inner_products_are_off_by_at_most_the_slack(x in numbers(50), w in numbers(2000)) {
            let weight = Matrix::from_values(40, 50, w);
            let rough = RoughWeights::new(&weight);
            let length = norm_above(&x);
            for d in 0..40u32 {
                let rounded = x.iter().zip(rough.row(d)).map(|(x, w)| (x / length) as f32 * w).sum::<f32>();
                let exact = dot(&x, weight.row(d as usize)) / (length * rough.unit);
                prop_assert!((f64::from(rounded) - exact).abs() <= rough.slack);
            }
        }
    }

    #[test]
    fn where_singles_end_nothing_is_said() {
        for (x, w) in [(1e20, 1e20), (1e-20, 1e-20), (1e200, 1.0), (1.0, 1e-300)] {
            let rough = RoughWeights::new(&Matrix::from_values(2, 1, vec![w, -w / 2.0]));
            assert_eq!(rough.products(&[x]), [vec![f32::INFINITY; 2], vec![f32::INFINITY; 2]]);
            assert_eq!(rough.norms(&[x]), [f32::INFINITY; 2]);
        }
    }

    #[test]
    fn nothing_is_gained_from_zeros() {
        for (x, w) in [(0.0, 1.0), (1.0, 0.0), (0.0, 0.0)] {
            let rough = RoughWeights::new(&Matrix::from_values(2, 1, vec![w, -w / 2.0]));
            assert_eq!((rough.products(&[x]), rough.norms(&[x])), ([vec![0.0; 2], vec![0.0; 2]], vec![0.0; 2]));
        }
    }

    #[test]
    fn norms_survive_underflow() {
        assert_eq!(norm_above(&[3.0, 4.0]), 5.0);
        assert_eq!(norm_above(&[0.0, 0.0]), 0.0);
        assert!(norm_above(&[3e-200, 4e-200]) >= 5e-200);
        assert!(norm_above(&[f64::MIN_POSITIVE / 4.0]) > 0.0);
        assert_eq!(norm_above(&[1e200, 1e200]), f64::INFINITY);
    }
}

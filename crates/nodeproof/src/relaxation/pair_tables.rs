//! For each ordered pair of classes the attributes in the order in which a search visits them.
//!
//! With one hidden layer and default slopes the queries of a target of class y against k are `v ∘ y_n`, `v = W¹_k − W¹_y`,
//! and y_n is close to a multiple of the mean ȳ of targets of the same class. So a table needs, for each attribute d,
//!
//! ```text
//! (v ∘ ȳ) · W⁰_d   and   ‖v ∘ W⁰_d‖ = √(Σ_j v_j² W⁰_dj²).
//! ```
//!
//! As bounds they need not be sharp: they are computed in single precision, for all attributes at once, from factors that
//! are scaled to a length of at most 1, and get what rounding and underflow can take from them on top.

use std::sync::Arc;

use rayon::prelude::*;

use super::Lines;
use crate::bounds::Bounds;
use crate::budget::Limits;
use crate::dense::{Matrix, add_scaled, dot};
use crate::graph::{AttributeId, ClassId};
use crate::kernels::vectorised;
use crate::network::{Network, largest};
use crate::search::{Reaches, Table, norm_above, rough_slack, round_up};
use crate::slice::Region;

/// Tables of all ordered pairs of classes take at most this many bytes; with more the common table is used.
const MAX_TABLE_BYTES: usize = 256 << 20;

/// For each ordered pair of classes the attributes by their gain for the mean query of targets of the first class.
#[derive(Debug)]
pub(crate) struct PairTables {
    /// ȳ of each class, of length 1.
    means: Vec<Vec<f64>>,
    /// For each pair y < k, in the order of k, those of (y, k) and of (k, y).
    tables: Vec<[Table; 2]>,
}

impl PairTables {
    /// The tables, or `None` if they would be too large.
    pub(super) fn new(
        network: &Network,
        limits: &Limits,
        region: &Region,
        bounds: &Bounds,
        lines: &Lines,
    ) -> Option<Self> {
        let classes = network.model().classes();
        let bytes_each = network.model().attributes() * Reaches::BYTES_EACH;
        let bytes = classes.checked_mul(classes).and_then(|pairs| pairs.checked_mul(bytes_each));
        if bytes.is_none_or(|bytes| bytes > MAX_TABLE_BYTES) {
            return None;
        }
        let means = mean_slopes(network, region, &bounds.clean[1], lines);
        let pairs: Vec<(usize, usize)> = (0..classes).flat_map(|k| (0..k).map(move |y| (y, k))).collect();
        let columns = RoughColumns::new(network.layers()[0].weight());
        let tables = pairs.into_par_iter().map(|(y, k)| pair_tables(network, limits, &means, &columns, y, k));
        let tables = tables.collect();
        Some(Self { means, tables })
    }

    pub(super) fn of(&self, y: ClassId, k: ClassId) -> &Table {
        let (smaller, larger) = (y.min(k).index(), y.max(k).index());
        &self.tables[larger * (larger - 1) / 2 + smaller][usize::from(y > k)]
    }

    /// The mean ȳ of the tables of targets of class `y`.
    pub(super) fn mean(&self, y: ClassId) -> &[f64] {
        &self.means[y.index()]
    }
}

/// For each class the sum of `Σ_m P_tm s_m` over all targets that are predicted to have it, or over all targets if none
/// is, scaled to length 1.
fn mean_slopes(network: &Network, region: &Region, logits: &Matrix, lines: &Lines) -> Vec<Vec<f64>> {
    let units = lines.upper.columns();
    let mut sums = vec![vec![0.0; units]; network.model().classes()];
    for (row, &target) in region.level(2).nodes().iter().enumerate() {
        let sum = &mut sums[largest(logits.row(row)).index()];
        let (neighbours, weights) = network.propagation().row(target as usize);
        for (&m, &p) in neighbours.iter().zip(weights) {
            add_scaled(sum, p, lines.upper.row(region.level(1).place(m)));
        }
    }
    let mut all = vec![0.0; units];
    sums.iter().for_each(|sum| add_scaled(&mut all, 1.0, sum));
    for sum in &mut sums {
        if sum.iter().all(|&slope| slope == 0.0) {
            sum.copy_from_slice(&all);
        }
        let length = dot(sum, sum).sqrt();
        if length > 0.0 && length.is_finite() {
            sum.iter_mut().for_each(|slope| *slope /= length);
        } else {
            sum.fill(0.0);
        }
    }
    sums
}

/// The tables of (y, k) and of (k, y): what adding gains in one, removing gains in the other.
fn pair_tables(
    network: &Network,
    limits: &Limits,
    means: &[Vec<f64>],
    columns: &RoughColumns,
    y: usize,
    k: usize,
) -> [Table; 2] {
    let last = network.layers()[1].weight();
    let v: Vec<f64> = (0..last.rows()).map(|j| last.get(j, k) - last.get(j, y)).collect();
    let times_v = |mean: &[f64]| -> Vec<f64> { mean.iter().zip(&v).map(|(mean, v)| mean * v).collect() };
    let [gains_y, losses_y] = columns.products(&times_v(&means[y]));
    let [gains_k, losses_k] = columns.products(&times_v(&means[k]));
    let mut norms = columns.norms(&v);
    for (d, norm) in norms.iter_mut().enumerate() {
        if !limits.flippable(AttributeId(d as u32)) {
            *norm = Reaches::NOT_ALLOWED;
        }
    }
    let norms = Arc::new(norms);
    [
        Table::new(limits, Reaches { additions: gains_y, deletions: losses_y, norms: Arc::clone(&norms) }),
        Table::new(limits, Reaches { additions: losses_k, deletions: gains_k, norms }),
    ]
}

/// The columns of W⁰ in single precision, scaled so that no row is longer than 1.
struct RoughColumns {
    attributes: usize,
    columns: Vec<f32>,
    squares: Vec<f32>,
    /// Length of the longest row, the unit in which they are stored.
    unit: f64,
    /// How far an inner product with a vector of length 1 may be off, as for
    /// [`RoughWeights`](crate::search::RoughWeights).
    slack: f32,
}

/// Attributes whose inner products are computed together, their sums in registers.
const BLOCK: usize = 32;
/// Lengths in this range are far from where singles overflow or underflow.
const SAFE_LENGTHS: std::ops::Range<f64> = 1e-30..1e30;

impl RoughColumns {
    fn new(weight: &Matrix) -> Self {
        let unit = (0..weight.rows()).map(|row| norm_above(weight.row(row))).fold(0.0, f64::max);
        let (attributes, units) = (weight.rows(), weight.columns());
        let mut columns = vec![0.0; attributes * units];
        for first in (0..attributes).step_by(BLOCK) {
            for d in first..(first + BLOCK).min(attributes) {
                for (j, w) in weight.row(d).iter().enumerate() {
                    columns[j * attributes + d] = if unit > 0.0 { (w / unit) as f32 } else { 0.0 };
                }
            }
        }
        let squares = columns.iter().map(|w| w * w).collect();
        Self { attributes, columns, squares, unit, slack: round_up(rough_slack(units)) }
    }

    /// For each attribute d upper bounds of `x · W⁰_d` and of `−x · W⁰_d`.
    fn products(&self, x: &[f64]) -> [Vec<f32>; 2] {
        let Some((x, scale)) = self.scaled(x) else {
            return [vec![f32::INFINITY; self.attributes], vec![f32::INFINITY; self.attributes]];
        };
        let mut above = self.inner_products(&self.columns, &x);
        let mut below = vec![0.0; self.attributes];
        vectorised(|| {
            for (above, below) in above.iter_mut().zip(&mut below) {
                *below = (self.slack - *above) * scale;
                *above = (self.slack + *above) * scale;
            }
        });
        [above, below]
    }

    /// For each attribute d an upper bound of `‖x ∘ W⁰_d‖`, above that of every `±(x ∘ y) · W⁰_d` with y of length 1.
    fn norms(&self, x: &[f64]) -> Vec<f32> {
        let Some((mut x, scale)) = self.scaled(x) else { return vec![f32::INFINITY; self.attributes] };
        x.iter_mut().for_each(|x| *x *= *x);
        let mut norms = self.inner_products(&self.squares, &x);
        vectorised(|| norms.iter_mut().for_each(|norm| *norm = (norm.sqrt() + 4.0 * self.slack) * scale));
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

    /// `Σ_j x_j C_dj` for each attribute d.
    fn inner_products(&self, columns: &[f32], x: &[f32]) -> Vec<f32> {
        let mut sums = vec![0.0; self.attributes];
        vectorised(|| {
            let terms = || x.iter().zip(columns.chunks_exact(self.attributes));
            let (blocks, rest) = sums.as_chunks_mut::<BLOCK>();
            for (i, block) in blocks.iter_mut().enumerate() {
                let mut sums = [0.0; BLOCK];
                for (x, column) in terms() {
                    let column = &column.as_chunks::<BLOCK>().0[i];
                    for lane in 0..BLOCK {
                        sums[lane] += x * column[lane];
                    }
                }
                *block = sums;
            }
            for (x, column) in terms() {
                rest.iter_mut().zip(column.as_chunks::<BLOCK>().1).for_each(|(sum, w)| *sum += x * w);
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
        /// Of 40 attributes with 50 units, rounding to singles alone would put about half below.
        #[test]
        fn rough_bounds_are_above_and_close(
            (x, w, size) in (numbers(50), numbers(2000), -14..14).prop_map(|(x, w, size)| (x, w, 10f64.powi(size))),
        ) {
            let x: Vec<f64> = x.iter().map(|x| x * size).collect();
            let weight = Matrix::from_values(40, 50, w);
            let columns = RoughColumns::new(&weight);
            let ([above, below], norms) = (columns.products(&x), columns.norms(&x));
            let spare = 1e-4 * norm_above(&x) * columns.unit;
            for d in 0..40 {
                let (product, norm) = exact(&x, weight.row(d));
                let bounds = [(above[d], product), (below[d], -product), (norms[d], norm)];
                for (bound, value) in bounds.map(|(bound, value)| (f64::from(bound), value)) {
                    prop_assert!(bound >= value && bound <= value + spare, "{bound} is to bound {value}");
                }
            }
        }
    }

    #[test]
    fn where_singles_end_nothing_is_said() {
        for (x, w) in [(1e20, 1e20), (1e-20, 1e-20), (1e200, 1.0), (1.0, 1e-300)] {
            let columns = RoughColumns::new(&Matrix::from_values(2, 1, vec![w, -w / 2.0]));
            assert_eq!(columns.products(&[x]), [vec![f32::INFINITY; 2], vec![f32::INFINITY; 2]]);
            assert_eq!(columns.norms(&[x]), [f32::INFINITY; 2]);
        }
    }

    #[test]
    fn nothing_is_gained_from_zeros() {
        for (x, w) in [(0.0, 1.0), (1.0, 0.0), (0.0, 0.0)] {
            let columns = RoughColumns::new(&Matrix::from_values(2, 1, vec![w, -w / 2.0]));
            assert_eq!((columns.products(&[x]), columns.norms(&[x])), ([vec![0.0; 2], vec![0.0; 2]], vec![0.0; 2]));
        }
    }
}

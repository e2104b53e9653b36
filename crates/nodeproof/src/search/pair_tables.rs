//! For each ordered pair of classes the attributes in the order in which a search visits them.
//!
//! With one hidden layer and default slopes the queries of a target of class y against k are `v ∘ y_n`, `v = W¹_k − W¹_y`,
//! and y_n is close to a multiple of the mean ȳ of targets of the same class. So a table needs, for each attribute d,
//!
//! ```text
//! (v ∘ ȳ) · W⁰_d   and   ‖v ∘ W⁰_d‖ = √(Σ_j v_j² W⁰_dj²).
//! ```
//!
//! As bounds they need not be sharp: they are computed in single precision, for all attributes at once. The norms do not
//! depend on the budget.

use std::sync::Arc;

use rayon::prelude::*;

use super::rough::RoughWeights;
use super::table::{Reaches, Table};
use crate::budget::Limits;
use crate::dense::{Matrix, add_scaled, dot};
use crate::ids::{AttributeId, ClassId};
use crate::network::{Network, largest};
use crate::slice::{Hop, Region};

/// Tables of all ordered pairs of classes take at most this many bytes; with more the common table is used.
const MAX_TABLE_BYTES: usize = 256 << 20;

/// For each pair of classes y < k, in the order of k, the norms `‖v ∘ W⁰_d‖` of all attributes.
#[derive(Debug)]
pub(crate) struct PairNorms(Vec<Arc<Vec<f32>>>);

impl PairNorms {
    /// The norms, or `None` if the tables made of them would be too large.
    pub(super) fn new(network: &Network, rough: &RoughWeights) -> Option<Self> {
        let classes = network.model().classes();
        let bytes_each = network.model().attributes() * Reaches::BYTES_EACH;
        let bytes = classes.checked_mul(classes).and_then(|pairs| pairs.checked_mul(bytes_each));
        if bytes.is_none_or(|bytes| bytes > MAX_TABLE_BYTES) {
            return None;
        }
        let norms = pairs(classes).into_par_iter().map(|(y, k)| Arc::new(rough.norms(&difference(network, y, k))));
        Some(Self(norms.collect()))
    }
}

/// All pairs y < k, in the order of k.
fn pairs(classes: usize) -> Vec<(usize, usize)> {
    (0..classes).flat_map(|k| (0..k).map(move |y| (y, k))).collect()
}

/// v of the pair: `W¹_k − W¹_y`.
fn difference(network: &Network, y: usize, k: usize) -> Vec<f64> {
    let Some([_, last]) = network.chain() else { return Vec::new() };
    let last = last.weight;
    (0..last.rows()).map(|j| last.get(j, k) - last.get(j, y)).collect()
}

/// For each ordered pair of classes the attributes by their gain for the mean query of targets of the first class.
#[derive(Debug)]
pub(crate) struct PairTables {
    /// ȳ of each class, of length 1.
    means: Vec<Vec<f64>>,
    /// For each pair y < k, in the order of k, those of (y, k) and of (k, y).
    tables: Vec<[Table; 2]>,
}

impl PairTables {
    /// The tables for targets with these logits; `slopes` are those of the units of level 1.
    pub(crate) fn new(
        network: &Network,
        limits: &Limits,
        region: &Region,
        logits: &Matrix,
        slopes: &Matrix,
        (rough, norms): (&RoughWeights, &PairNorms),
    ) -> Self {
        let means = mean_slopes(network, region, logits, slopes);
        let pairs = pairs(network.model().classes());
        let tables = pairs.into_par_iter().zip(&norms.0).map(|((y, k), norms)| {
            let v = difference(network, y, k);
            pair_tables(limits, &v, rough, norms, [&means[y], &means[k]])
        });
        Self { tables: tables.collect(), means }
    }

    pub(crate) fn of(&self, y: ClassId, k: ClassId) -> &Table {
        let (smaller, larger) = (y.min(k).index(), y.max(k).index());
        &self.tables[larger * (larger - 1) / 2 + smaller][usize::from(y > k)]
    }

    /// The mean ȳ of the tables of targets of class `y`.
    pub(crate) fn mean(&self, y: ClassId) -> &[f64] {
        &self.means[y.index()]
    }
}

/// For each class the sum of `Σ_m P_tm s_m` over all targets that are predicted to have it, or over all targets if none
/// is, scaled to length 1.
fn mean_slopes(network: &Network, region: &Region, logits: &Matrix, slopes: &Matrix) -> Vec<Vec<f64>> {
    let units = slopes.columns();
    let mut sums = vec![vec![0.0; units]; network.model().classes()];
    let hop = network.hop(region, 1, 0);
    for row in 0..hop.rows() {
        let sum = &mut sums[largest(logits.row(row)).index()];
        hop.row(row).for_each(|(m, p)| add_scaled(sum, p, slopes.row(m)));
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

/// The tables of (y, k) and of (k, y), given their v and the mean slopes of targets of class y and of class k: what adding
/// gains in one, removing gains in the other.
fn pair_tables(
    limits: &Limits,
    v: &[f64],
    rough: &RoughWeights,
    norms: &Arc<Vec<f32>>,
    [mean_y, mean_k]: [&[f64]; 2],
) -> [Table; 2] {
    let times_v = |mean: &[f64]| -> Vec<f64> { mean.iter().zip(v).map(|(mean, v)| mean * v).collect() };
    let [gains_y, losses_y] = rough.products(&times_v(mean_y));
    let [gains_k, losses_k] = rough.products(&times_v(mean_k));
    let norms = allowed(norms, limits);
    [
        Table::new(limits, Reaches { additions: gains_y, deletions: losses_y, norms: Arc::clone(&norms) }),
        Table::new(limits, Reaches { additions: losses_k, deletions: gains_k, norms }),
    ]
}

/// The norms, with those of attributes that may not be flipped marked.
fn allowed(norms: &Arc<Vec<f32>>, limits: &Limits) -> Arc<Vec<f32>> {
    let flippable = |d: usize| limits.flippable(AttributeId(d as u32));
    if (0..norms.len()).all(flippable) {
        return Arc::clone(norms);
    }
    let mark = |(d, &norm): (usize, &f32)| if flippable(d) { norm } else { Reaches::NOT_ALLOWED };
    Arc::new(norms.iter().enumerate().map(mark).collect())
}

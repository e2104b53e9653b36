//! The dual of networks with one hidden layer and default slopes.
//!
//! With `u = W¹_y − W¹_k`, s and r the slope and offset of the lines, t the target (the paper's v is −u):
//!
//! ```text
//! g = b¹_y − b¹_k + Σ_j u_j Σ_m P_tm s_mj Z_mj + Σ_{u_j < 0} u_j Σ_m P_tm r_mj − Σ selected gains,
//! gain of adding d at n = z_n · W⁰_d,   of removing it −z_n · W⁰_d,   z_n = −u ∘ y_n,   y_n = Σ_m P_tm P_mn s_m.
//! ```
//!
//! Everything but u is the same for all classes, and y_n is close to a multiple of the mean ȳ of targets of the same
//! class. So for each ordered pair of classes the search visits attributes by `−(u ∘ ȳ) · W⁰_d`.
//!
//! *Rounding.* The lines hold for the exact pre-activation x up to `ε_mj`, the error of lo and hi: if x leaves [lo, hi]
//! by ε, relu(x) exceeds the upper line by at most ε. All other terms are sums of products of magnitudes at most
//! `reach · weight + bias` (see `FirstLayerError`), so with `U = Σ_j |u_j| weight_j` and `V = Σ_j |u_j| bias_j`
//!
//! ```text
//! |error| ≤ 3 Σ_m P_tm (γ_m + γ) (reach_m · U + V) + 3 γ Q Σ_m P_tm max P · U + γ (|b_y| + |b_k|):
//! ```
//!
//! thrice for ε, the sum of s Z and the sum of r; and thrice for Q gains, their sum and what the search leaves out, since
//! it leaves out only what the rounded product of norms puts below a gain that was selected. Underflow of the products
//! `P_tm s Z`, `u y`, `u W⁰` and of the norms' is covered by terms with `FLOOR`.

use std::sync::Arc;

use rayon::prelude::*;

use super::{Lines, Relaxation, TargetDerivative, Term};
use crate::bounds::Bounds;
use crate::budget::Limits;
use crate::dense::{Matrix, add_scaled, dot};
use crate::graph::{AttributeId, ClassId};
use crate::kernels::{InnerProduct, Work, dispatch};
use crate::network::{Network, largest};
use crate::rounding::{Approximate, FLOOR, gamma_after, magnitude};
use crate::search::{Reaches, Row, SAFE_SQUARE, Search, Table, norm_above, round_up, sort_rows};
use crate::selection::Selection;
use crate::slice::{Region, Slice, SlicedFlip};

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
        let weight = network.layers()[0].weight();
        let squares = Squares::new(weight);
        let tables = pairs.into_par_iter().map(|(y, k)| pair_tables(network, limits, &means, &squares, y, k));
        let tables = tables.collect();
        Some(Self { means, tables })
    }

    fn of(&self, y: ClassId, k: ClassId) -> &Table {
        let (smaller, larger) = (y.min(k).index(), y.max(k).index());
        &self.tables[larger * (larger - 1) / 2 + smaller][usize::from(y > k)]
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
    means_of: &[Vec<f64>],
    squares: &Squares,
    y: usize,
    k: usize,
) -> [Table; 2] {
    let (first, last) = (network.layers()[0].weight(), network.layers()[1].weight());
    let v: Vec<f64> = (0..last.rows()).map(|j| last.get(j, k) - last.get(j, y)).collect();
    let times_v = |mean: &[f64]| -> Vec<f64> { mean.iter().zip(&v).map(|(mean, v)| mean * v).collect() };
    let mut means = PairMeans::default();
    dispatch(PairReaches {
        first,
        squares,
        v: &v,
        v_squares: &times_v(&v),
        mean_y: &times_v(&means_of[y]),
        mean_k: &times_v(&means_of[k]),
        means: &mut means,
    });
    for (d, norm) in means.norms.iter_mut().enumerate() {
        if !limits.flippable(AttributeId(d as u32)) {
            *norm = Reaches::NOT_ALLOWED;
        }
    }
    let PairMeans { gains_y, losses_y, gains_k, losses_k, norms } = means;
    let norms = Arc::new(norms);
    [
        Table::new(limits, Reaches { additions: gains_y, deletions: losses_y, norms: Arc::clone(&norms) }),
        Table::new(limits, Reaches { additions: losses_k, deletions: gains_k, norms }),
    ]
}

/// For each attribute d `(v ∘ ȳ) · W⁰_d` and minus that, for the means of both classes, and `‖v ∘ W⁰_d‖`, all rounded up.
#[derive(Default)]
struct PairMeans {
    gains_y: Vec<f32>,
    losses_y: Vec<f32>,
    gains_k: Vec<f32>,
    losses_k: Vec<f32>,
    norms: Vec<f32>,
}

/// The squares of W⁰, and whether products with them are to be trusted.
struct Squares {
    of: Matrix,
    hold: bool,
}

impl Squares {
    fn new(weight: &Matrix) -> Self {
        let values = weight.values().iter().map(|w| w * w).collect();
        Self { of: Matrix::from_values(weight.rows(), weight.columns(), values), hold: squares_hold(weight.values()) }
    }
}

/// Whether no square underflows: the product of two squares is lost where one of them does, however large the other is.
fn squares_hold(values: &[f64]) -> bool {
    values.iter().all(|&x| x == 0.0 || x.abs() > 1e-140)
}

/// Computes [`PairMeans`].
struct PairReaches<'a> {
    first: &'a Matrix,
    squares: &'a Squares,
    v: &'a [f64],
    v_squares: &'a [f64],
    mean_y: &'a [f64],
    mean_k: &'a [f64],
    means: &'a mut PairMeans,
}

impl Work for PairReaches<'_> {
    #[inline(always)]
    fn run(self, inner_product: impl InnerProduct) {
        let PairMeans { gains_y, losses_y, gains_k, losses_k, norms } = self.means;
        for all in [&mut *gains_y, losses_y, gains_k, losses_k, norms] {
            all.reserve(self.first.rows());
        }
        let squares_hold = self.squares.hold && squares_hold(self.v);
        for d in 0..self.first.rows() {
            let weights = self.first.row(d);
            let (by_y, by_k) = (inner_product.of(self.mean_y, weights), inner_product.of(self.mean_k, weights));
            gains_y.push(round_up(by_y));
            losses_y.push(round_up(-by_y));
            gains_k.push(round_up(by_k));
            losses_k.push(round_up(-by_k));
            let square = inner_product.of(self.v_squares, self.squares.of.row(d));
            let norm = if squares_hold && square > SAFE_SQUARE {
                square.sqrt()
            } else {
                norm_above(&self.v.iter().zip(weights).map(|(v, w)| v * w).collect::<Vec<_>>())
            };
            norms.push(round_up(norm));
        }
    }
}

/// The dual of one target after the other.
pub(crate) struct OneHidden<'a> {
    shared: &'a Relaxation<'a>,
    tables: &'a PairTables,
    search: Search<'a>,
    selection: Selection<SlicedFlip>,
    /// y_n, a row for each node of level 0.
    y: Matrix,
    rows: Vec<Row>,
    /// `Σ_m P_tm s_mj Z_mj` and `Σ_m P_tm r_mj`.
    sloped: Vec<f64>,
    offset: Vec<f64>,
    magnitudes: Magnitudes,
    u: Vec<f64>,
    z: Vec<f64>,
    /// F_n, and whether it was touched at all.
    flipped: Matrix,
    touched: Vec<bool>,
}

/// The sums of the rounding bound that do not depend on the classes.
#[derive(Default)]
struct Magnitudes {
    gamma: f64,
    /// The factor of U.
    weights: f64,
    /// The factor of V.
    biases: f64,
    /// What underflow can take from the selected gains.
    floor: f64,
}

impl<'a> OneHidden<'a> {
    pub(super) fn new(shared: &'a Relaxation<'a>, tables: &'a PairTables) -> Self {
        let units = shared.network.layers()[0].bias().len();
        Self {
            shared,
            tables,
            search: shared.search(),
            selection: Selection::new(0),
            y: Matrix::default(),
            rows: Vec::new(),
            sloped: vec![0.0; units],
            offset: vec![0.0; units],
            magnitudes: Magnitudes::default(),
            u: vec![0.0; units],
            z: vec![0.0; units],
            flipped: Matrix::default(),
            touched: Vec::new(),
        }
    }

    pub(super) fn shared(&self) -> &'a Relaxation<'a> {
        self.shared
    }

    pub(super) fn selection(&self) -> &Selection<SlicedFlip> {
        &self.selection
    }

    /// Computes what is the same for all other classes.
    pub(super) fn begin(&mut self, slice: &Slice, y: ClassId) {
        let Relaxation { region, bounds, lines, .. } = self.shared;
        let (clean, lines) = (&bounds.clean[0], &lines[0]);
        self.y.reset(slice.level(0).len(), self.sloped.len());
        self.sloped.fill(0.0);
        self.offset.fill(0.0);
        let flips = self.shared.limits.flips_within(slice.level(0));
        let gamma = gamma_after(slice.level(1).len() + self.sloped.len() + flips + 32);
        let first_error = &bounds.first_error;
        let (mut weights, mut biases, mut total, mut largest) = (0.0, 0.0, 0.0, 0.0f64);
        for (m, p) in slice.hop(1).row(0) {
            let place = region.level(1).place(slice.level(1)[m]);
            let slopes = lines.upper.row(place);
            for ((sum, &s), &z) in self.sloped.iter_mut().zip(slopes).zip(clean.row(place)) {
                *sum += p * (s * z);
            }
            add_scaled(&mut self.offset, p, lines.offset.row(place));
            for (n, inner) in slice.hop(0).row(m) {
                add_scaled(self.y.row_mut(n), p * inner, slopes);
                largest = largest.max(inner);
            }
            let factor = 3.0 * p * (first_error.gammas[place] + gamma);
            weights += factor * first_error.reach[place];
            biases += factor;
            total += p;
        }
        weights += 3.0 * gamma * flips as f64 * total * largest;
        let units = self.sloped.len() as f64;
        let floor = flips as f64 * FLOOR * (1.0 + first_error.weight.iter().sum::<f64>() + units * total * largest);
        self.magnitudes = Magnitudes { gamma, weights: weights + FLOOR, biases: biases + FLOOR, floor };
        self.rows.clear();
        let mean = &self.tables.means[y.index()];
        let row = |position: usize| Row::with_mean(position as u32, self.y.row(position), mean);
        self.rows.extend((0..self.y.rows()).map(row));
        sort_rows(&mut self.rows);
    }

    pub(super) fn lower_bound(&mut self, slice: &Slice, y: ClassId, k: ClassId) -> Approximate {
        let last = &self.shared.network.layers()[1];
        for (j, u) in self.u.iter_mut().enumerate() {
            *u = last.weight().get(j, y.index()) - last.weight().get(j, k.index());
        }
        let (queries, u) = (&self.y, &self.u);
        let query = |position: usize, z: &mut [f64]| {
            for ((z, y), u) in z.iter_mut().zip(queries.row(position)).zip(u) {
                *z = -u * y;
            }
        };
        let table = self.tables.of(y, k);
        self.search.run(table, slice.level(0), &self.rows, query, &mut self.z, &mut self.selection);
        let (bias_y, bias_k) = (last.bias()[y.index()], last.bias()[k.index()]);
        let offsets: f64 = u.iter().zip(&self.offset).map(|(u, r)| u.min(0.0) * r).sum();
        Approximate {
            value: (bias_y - bias_k) + dot(u, &self.sloped) + offsets - self.selection.total(),
            error: self.error(bias_y, bias_k),
        }
    }

    /// With c the weight of a term, `A = Σ c u`, `A⁻ = Σ c u 1[u < 0]` and `F_n = Σ c σ u ∘ W⁰_d` over all flips (n, d):
    ///
    /// ```text
    /// by s_m:  P_tm (A ∘ Z_m + Σ_n P_mn F_n),   by r_m:  P_tm A⁻,   by Z_m:  P_tm A ∘ s_m,
    /// by W⁰_d: c σ u ∘ y_n,   by u: c (Σ_m P_tm (s_m ∘ Z_m + r_m 1[u < 0]) + Σ σ y_n ∘ W⁰_d).
    /// ```
    pub(super) fn derivative(&mut self, slice: &Slice, y: ClassId, terms: &[Term]) -> TargetDerivative {
        let Relaxation { network, bounds, lines, .. } = self.shared;
        let (first, last) = (network.layers()[0].weight(), network.layers()[1].weight());
        let units = self.sloped.len();
        let mut by = TargetDerivative::zeros(network.model(), self.shared.places(slice));
        let (mut all, mut negative) = (vec![0.0; units], vec![0.0; units]);
        let mut by_u = vec![0.0; units];
        self.flipped.reset(slice.level(0).len(), units);
        self.touched.clear();
        self.touched.resize(slice.level(0).len(), false);
        for Term { other, weight, flips } in terms {
            by_u.copy_from_slice(&self.sloped);
            for j in 0..units {
                let u = last.get(j, y.index()) - last.get(j, other.index());
                self.u[j] = u;
                all[j] += weight * u;
                if u < 0.0 {
                    negative[j] += weight * u;
                    by_u[j] += self.offset[j];
                }
            }
            for &(position, attribute) in flips {
                let sign = self.shared.sign(slice, (position, attribute));
                let (y, w) = (self.y.row(position as usize), first.row(attribute as usize));
                let flipped = self.flipped.row_mut(position as usize);
                self.touched[position as usize] = true;
                by.attributes.push(attribute);
                for j in 0..units {
                    by_u[j] += sign * y[j] * w[j];
                    let factor = weight * sign * self.u[j];
                    flipped[j] += factor * w[j];
                    by.by_attributes.push(factor * y[j]);
                }
            }
            for (j, by_u) in by_u.iter().enumerate() {
                by.deeper.weights[0].row_mut(j)[y.index()] += weight * by_u;
                by.deeper.weights[0].row_mut(j)[other.index()] -= weight * by_u;
            }
            by.deeper.biases[0][y.index()] += weight;
            by.deeper.biases[0][other.index()] -= weight;
        }
        for (m, p) in slice.hop(1).row(0) {
            let place = by.places[m] as usize;
            let (slopes, z) = (lines[0].chords(place).0, bounds.clean[0].row(place));
            let by_slope = by.lines[0].slope.row_mut(m);
            for (n, inner) in slice.hop(0).row(m).filter(|&(n, _)| self.touched[n]) {
                add_scaled(by_slope, p * inner, self.flipped.row(n));
            }
            for j in 0..units {
                by_slope[j] += p * all[j] * z[j];
                by.by_clean.row_mut(m)[j] += p * all[j] * slopes[j];
            }
            add_scaled(by.lines[0].offset.row_mut(m), p, &negative);
        }
        by
    }

    fn error(&self, bias_y: f64, bias_k: f64) -> f64 {
        let first = &self.shared.bounds.first_error;
        let Magnitudes { gamma, weights, biases, floor } = self.magnitudes;
        let mut error = gamma * (magnitude(bias_y) + magnitude(bias_k)) + floor;
        for ((&u, weight), bias) in self.u.iter().zip(&first.weight).zip(&first.bias) {
            error += magnitude(u) * (weights * weight + biases * bias + FLOOR);
        }
        error
    }
}

//! The dual of networks with one hidden layer and default slopes (Lemma 11 of `docs/maths.md`; its rounding: Lemma 32d).
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
//! Most nodes are too far away to matter, and for most it is enough to know that `‖y_n‖ ≤ Σ_m P_tm P_mn ‖s_m‖`, their *reach*. By
//! that, nodes are looked at one batch after the other, until no other one can add to the selection.
//!
//! *Rounding.* The lines hold for the exact pre-activation x up to `ε_mj`, the error of lo and hi: if x leaves [lo, hi]
//! by ε, relu(x) exceeds the upper line by at most ε. All other terms are sums of products of magnitudes at most
//! `reach · weight + bias` (see `AttributeError`), so with `U = Σ_j |u_j| weight_j` and `V = Σ_j |u_j| bias_j`
//!
//! ```text
//! |error| ≤ 3 Σ_m P_tm (γ_m + γ) (reach_m · U + V) + 3 γ Q Σ_m P_tm max P · U + γ (|b_y| + |b_k|):
//! ```
//!
//! thrice for ε, the sum of s Z and the sum of r; and thrice for Q gains, their sum and what the search leaves out, since
//! it leaves out only what the rounded product of norms puts below a gain that was selected. Underflow of the products
//! `P_tm s Z`, `u y`, `u W⁰` and of the norms' is covered by terms with `FLOOR`.

use crate::bounds::AttributeError;
use crate::dense::{Matrix, add_scaled, dot};
use crate::engines::derivative::{TargetDerivative, Term};
use crate::ids::ClassId;
use crate::network::ChainLayer;
use crate::prepare::Shard;
use crate::rounding::{Approximate, FLOOR, gamma_after, magnitude};
use crate::search::{PairTables, Row, Search, VisitingOrder, norm_above, sort_rows};
use crate::selection::Selection;
use crate::slice::{Hop, Slice, SlicedFlip};

/// The dual of one target after the other.
pub(crate) struct OneHidden<'a> {
    shared: &'a Shard<'a>,
    /// The class of the target.
    class: ClassId,
    /// The layer behind the hidden one.
    last: ChainLayer<'a>,
    first_error: &'a AttributeError,
    tables: &'a PairTables,
    search: Search<'a>,
    selection: Selection<SlicedFlip>,
    /// ‖s_m‖, by places.
    lengths: Vec<f64>,
    /// Nodes of level 0 with their reach: first those that were looked at, then the others in no order.
    nodes: Vec<(f64, u32)>,
    entries: Entries,
    /// y_n of the nodes that were looked at, and their rows, sorted batch by batch.
    y: Vec<f64>,
    rows: Vec<Row>,
    /// For each position the place of its y_n.
    places: Vec<u32>,
    /// At least ‖y_n‖ of every node that was not looked at, and of every one that the slice leaves out.
    beyond: f64,
    left_out: f64,
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

/// The entries of P between levels 0 and 1 by columns: each has the number of the next one.
#[derive(Default)]
struct Entries {
    first: Vec<u32>,
    last: Vec<u32>,
    /// The place of m, `P_tm P_mn`, and the next entry.
    all: Vec<(u32, f64, u32)>,
}

const NONE: u32 = u32::MAX;

impl Entries {
    fn clear(&mut self, columns: usize) {
        self.first.clear();
        self.first.resize(columns, NONE);
        self.last.resize(columns.max(self.last.len()), NONE);
        self.all.clear();
    }

    #[inline]
    fn push(&mut self, column: usize, place: usize, weight: f64) {
        let number = self.all.len() as u32;
        if self.first[column] == NONE {
            self.first[column] = number;
        } else {
            self.all[self.last[column] as usize].2 = number;
        }
        self.last[column] = number;
        self.all.push((place as u32, weight, NONE));
    }

    /// Places and weights of a column, in the order in which they came.
    fn column(&self, column: u32) -> impl Iterator<Item = (usize, f64)> {
        let at = |number: u32| self.all.get(number as usize).copied();
        let entries = std::iter::successors(at(self.first[column as usize]), move |&(_, _, next)| at(next));
        entries.map(|(place, weight, _)| (place as usize, weight))
    }
}

/// Nodes that are looked at first; each further batch has as many as all before.
const BATCH: usize = 16;

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
    pub(super) fn new(shared: &'a Shard<'a>, tables: &'a PairTables) -> Self {
        let units = shared.network.attribute_weight().columns();
        let (Some(&[_, last]), Some(first_error)) = (shared.network.chain(), &shared.bounds.attribute_errors[0]) else {
            unreachable!("tables of pairs are made for chains with one hidden layer");
        };
        Self {
            shared,
            class: ClassId(0),
            last,
            first_error,
            tables,
            search: shared.search(),
            selection: Selection::new(0),
            lengths: (0..shared.lines[0].upper.rows()).map(|m| norm_above(shared.lines[0].upper.row(m))).collect(),
            nodes: Vec::new(),
            entries: Entries::default(),
            y: Vec::new(),
            rows: Vec::new(),
            places: Vec::new(),
            beyond: 0.0,
            left_out: 0.0,
            sloped: vec![0.0; units],
            offset: vec![0.0; units],
            magnitudes: Magnitudes::default(),
            u: vec![0.0; units],
            z: vec![0.0; units],
            flipped: Matrix::default(),
            touched: Vec::new(),
        }
    }

    pub(super) fn shared(&self) -> &'a Shard<'a> {
        self.shared
    }

    pub(super) fn selection(&self) -> &Selection<SlicedFlip> {
        &self.selection
    }

    /// Computes what is the same for all other classes.
    pub(super) fn begin(&mut self, slice: &Slice, y: ClassId) {
        let Shard { region, bounds, lines, .. } = self.shared;
        let (clean, lines) = (&bounds.clean.layers[0], &lines[0]);
        let count = slice.level(0).len();
        self.class = y;
        self.entries.clear(count);
        self.nodes.clear();
        self.nodes.extend((0..count as u32).map(|position| (0.0, position)));
        self.sloped.fill(0.0);
        self.offset.fill(0.0);
        let flips = self.shared.flips_within(slice);
        let gamma = gamma_after(slice.level(1).len() + self.sloped.len() + flips + 32);
        let first_error = self.first_error;
        let (mut weights, mut biases, mut total, mut largest) = (0.0, 0.0, 0.0, 0.0f64);
        self.left_out = 0.0;
        for (m, p) in slice.hop(1, 0).row(0) {
            let place = region.level(1).place(slice.level(1)[m]);
            let slopes = lines.upper.row(place);
            for ((sum, &s), &z) in self.sloped.iter_mut().zip(slopes).zip(clean.row(place)) {
                *sum += p * (s * z);
            }
            add_scaled(&mut self.offset, p, lines.offset.row(place));
            let reach = p.abs() * self.lengths[place];
            for (n, inner) in slice.hop(0, 0).row(m) {
                self.nodes[n].0 += reach * inner.abs();
                self.entries.push(n, place, p * inner);
                largest = largest.max(inner);
            }
            self.left_out += reach * slice.left_out(m);
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
        self.y.clear();
        self.places.clear();
        self.places.resize(count, NONE);
        self.set_beyond();
    }

    /// The largest reach of what was not looked at. Reaches are sums of positive numbers, so that γ and a floor are far more than they are off by.
    fn set_beyond(&mut self) {
        let others = self.nodes[self.rows.len()..].iter().map(|&(reach, _)| reach);
        let largest = others.fold(self.left_out, f64::max);
        self.beyond = if self.sees_all() { 0.0 } else { largest * (1.0 + self.magnitudes.gamma) + FLOOR };
    }

    /// Whether there is no other node.
    fn sees_all(&self) -> bool {
        self.rows.len() == self.nodes.len() && self.left_out == 0.0
    }

    /// Looks at the next batch of nodes.
    fn look_further(&mut self) {
        let (start, units) = (self.rows.len(), self.sloped.len());
        let by_reach = |a: &(f64, u32), b: &(f64, u32)| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1));
        let others = &mut self.nodes[start..];
        let batch = start.max(BATCH);
        if batch < others.len() {
            others.select_nth_unstable_by(batch, by_reach);
        }
        let slopes = &self.shared.lines[0].upper;
        for &(_, position) in others.iter().take(batch) {
            let from = self.y.len();
            self.y.resize(from + units, 0.0);
            for (m, weight) in self.entries.column(position) {
                add_scaled(&mut self.y[from..], weight, slopes.row(m));
            }
            self.places[position as usize] = (from / units) as u32;
            self.rows.push(Row::with_mean(position, &self.y[from..], self.tables.mean(self.class)));
        }
        sort_rows(&mut self.rows[start..]);
        self.set_beyond();
    }

    pub(super) fn lower_bound(&mut self, slice: &Slice, y: ClassId, k: ClassId) -> Approximate {
        let last = self.last;
        for (j, u) in self.u.iter_mut().enumerate() {
            *u = last.weight.get(j, y.index()) - last.weight.get(j, k.index());
        }
        let (table, units) = (self.tables.of(y, k), self.sloped.len());
        self.selection.reset(self.shared.limits.global());
        let mut searched = 0;
        loop {
            let (queries, places, u) = (&self.y, &self.places, &self.u);
            let query = |position: usize, z: &mut [f64]| {
                let y = &queries[places[position] as usize * units..];
                for ((z, y), u) in z.iter_mut().zip(y).zip(u) {
                    *z = -u * y;
                }
            };
            let rows = &self.rows[searched..];
            self.search.extend(table, slice.level(0), rows, query, &mut self.z, &mut self.selection);
            searched = self.rows.len();
            if self.sees_enough(y, k) || searched == self.nodes.len() {
                break;
            }
            self.look_further();
        }
        let u = &self.u;
        let (bias_y, bias_k) = (last.bias[y.index()], last.bias[k.index()]);
        let offsets: f64 = u.iter().zip(&self.offset).map(|(u, r)| u.min(0.0) * r).sum();
        Approximate {
            value: (bias_y - bias_k) + dot(u, &self.sloped) + offsets - self.selection.total(),
            error: self.error(bias_y, bias_k),
        }
    }

    /// Whether no flip of a node that was not looked at could be among those of the last bound, of `y` and `k`.
    pub(super) fn sees_enough(&self, y: ClassId, k: ClassId) -> bool {
        self.beyond == 0.0 || self.beyond * self.tables.of(y, k).largest_norm() <= self.selection.threshold()
    }

    /// With c the weight of a term, `A = Σ c u`, `A⁻ = Σ c u 1[u < 0]` and `F_n = Σ c σ u ∘ W⁰_d` over all flips (n, d):
    ///
    /// ```text
    /// by s_m:  P_tm (A ∘ Z_m + Σ_n P_mn F_n),   by r_m:  P_tm A⁻,   by Z_m:  P_tm A ∘ s_m,
    /// by W⁰_d: c σ u ∘ y_n,   by u: c (Σ_m P_tm (s_m ∘ Z_m + r_m 1[u < 0]) + Σ σ y_n ∘ W⁰_d).
    /// ```
    pub(super) fn derivative(&mut self, slice: &Slice, y: ClassId, terms: &[Term]) -> TargetDerivative {
        let Shard { network, bounds, lines, .. } = self.shared;
        let (first, last) = (network.attribute_weight(), self.last.weight);
        let units = self.sloped.len();
        let mut by = TargetDerivative::zeros(network, self.shared.places(slice));
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
                let sign = self.shared.change(slice, (position, attribute));
                let (place, w) = (self.places[position as usize] as usize, first.row(attribute as usize));
                let y = &self.y[place * units..(place + 1) * units];
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
                let Some(by_last) = &mut by.gradient.weights[1][0] else { continue };
                by_last.row_mut(j)[y.index()] += weight * by_u;
                by_last.row_mut(j)[other.index()] -= weight * by_u;
            }
            by.gradient.biases[1][y.index()] += weight;
            by.gradient.biases[1][other.index()] -= weight;
        }
        for (m, p) in slice.hop(1, 0).row(0) {
            let place = by.places[0][m] as usize;
            let (slopes, z) = (lines[0].chords(place).0, bounds.clean.layers[0].row(place));
            let by_slope = by.lines[0].slope.row_mut(m);
            for (n, inner) in slice.hop(0, 0).row(m).filter(|&(n, _)| self.touched[n]) {
                add_scaled(by_slope, p * inner, self.flipped.row(n));
            }
            for j in 0..units {
                by_slope[j] += p * all[j] * z[j];
                by.by_parts[0].row_mut(m)[j] += p * all[j] * slopes[j];
            }
            add_scaled(by.lines[0].offset.row_mut(m), p, &negative);
        }
        by
    }

    fn error(&self, bias_y: f64, bias_k: f64) -> f64 {
        let first = self.first_error;
        let Magnitudes { gamma, weights, biases, floor } = self.magnitudes;
        let mut error = gamma * (magnitude(bias_y) + magnitude(bias_k)) + floor;
        for ((&u, weight), bias) in self.u.iter().zip(&first.weight).zip(&first.bias) {
            error += magnitude(u) * (weights * weight + biases * bias + FLOOR);
        }
        error
    }
}

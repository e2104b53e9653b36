//! The dual of networks of any depth with any slopes (Lemma 9 of `docs/maths.md`; its rounding: Lemma 32c).
//!
//! `margin ≥ constant + Σ λ_mj Z_mj` is carried from the last layer (λ = e_y − e_k) to the first. Layer i turns
//! coefficients λ of `Zⁱ` into `α = Pᵀ λ (Wⁱ)ᵀ` of `relu(Zⁱ⁻¹)`, and the lines turn those into coefficients of `Zⁱ⁻¹`:
//!
//! ```text
//! λ' = α · lower                        where α ≥ 0,
//! λ' = α · upper, constant += α · offset   where α < 0.
//! ```
//!
//! At the first layer the flips enter: one at (n, d) changes the sum by ± w_n · W⁰_d with `w = Pᵀ λ`.
//!
//! *Rounding.* Each λ as computed is taken as the number it is, so only the step to the next has an error: α is off by at
//! most `γ ᾱ` with `ᾱ = Pᵀ |λ| |Wⁱ|ᵀ`, which costs `γ ᾱ (relu(hi) + ε)`; an upper line may miss by twice the error ε of its
//! bounds, which costs `2 |α| ε`; rounding λ' costs `γ |λ'| max(|lo|, |hi|)`. The flips' gains and their sum are off by γ times Q
//! times the largest magnitude `Σ_j |w_nj| max_d |W⁰_dj|`; so is what the search leaves out, since it leaves out only what
//! the rounded product of norms puts below a gain that was selected. Adding up costs γ times the sum of all magnitudes.

use super::{TargetDerivative, Term};
use crate::backward::{self, Coefficients, Magnitudes};
use crate::dense::{Matrix, add_scaled, dot, relu};
use crate::forward::{Activation, Carried, Values};
use crate::ids::ClassId;
use crate::prepare::Shard;
use crate::rounding::{Approximate, FLOOR, gamma_after, magnitude, magnitude_dot};
use crate::search::{Row, Search, Table, sort_rows};
use crate::selection::Selection;
use crate::slice::{Hop, Slice, SlicedFlip};

/// The dual of one target after the other.
pub(crate) struct AnyDepth<'a> {
    shared: &'a Shard<'a>,
    table: &'a Table,
    search: Search<'a>,
    selection: Selection<SlicedFlip>,
    /// λ of the level at hand, and of the one below.
    coefficients: Matrix,
    below: Matrix,
    /// ᾱ, or |w| at the end.
    magnitudes: Matrix,
    back: Vec<f64>,
    rows: Vec<Row>,
    z: Vec<f64>,
}

/// The constant so far, its error, and the sum of the magnitudes of all its terms.
#[derive(Default)]
struct Constant {
    value: f64,
    error: f64,
    magnitude: f64,
    terms: usize,
}

impl Constant {
    /// Adds a term that is at most `magnitude` in absolute value and off by at most `error`.
    fn add(&mut self, value: f64, magnitude: f64, error: f64) {
        self.value += value;
        self.magnitude += magnitude;
        self.error += error;
        self.terms += 1;
    }

    fn sum(self) -> Approximate {
        let gamma = gamma_after(self.terms + 8);
        Approximate { value: self.value, error: 2.0 * self.error + gamma * self.magnitude }
    }
}

impl<'a> AnyDepth<'a> {
    pub(super) fn new(shared: &'a Shard<'a>, table: &'a Table) -> Self {
        Self {
            shared,
            table,
            search: shared.search(),
            selection: Selection::new(0),
            coefficients: Matrix::default(),
            below: Matrix::default(),
            magnitudes: Matrix::default(),
            back: Vec::new(),
            rows: Vec::new(),
            z: vec![0.0; shared.network.attribute_weight().columns()],
        }
    }

    pub(super) fn shared(&self) -> &'a Shard<'a> {
        self.shared
    }

    pub(super) fn selection(&self) -> &Selection<SlicedFlip> {
        &self.selection
    }

    pub(super) fn lower_bound(&mut self, slice: &Slice, y: ClassId, k: ClassId) -> Approximate {
        let layers = self.shared.network.layers();
        self.coefficients.reset(1, self.shared.network.model().classes());
        self.coefficients.row_mut(0)[y.index()] = 1.0;
        self.coefficients.row_mut(0)[k.index()] = -1.0;
        let mut constant = Constant::default();
        for layer in (1..layers.len()).rev() {
            self.step_back(slice, layer, &mut constant);
        }
        self.charge_flips(slice, &mut constant);
        constant.sum()
    }

    /// Lemma 34: the network with lines for ReLUs, run forward on the tampered attributes, gives the derivative by the
    /// coefficients: with v_i that by λ of `Zⁱ`,
    ///
    /// ```text
    /// v_0 = Z⁰ + δ,   a = v ∘ slope + offset 1[α < 0],   v' = P a W + b,
    /// by slope: v α,   by offset: α 1[α < 0],   by W: (P a)ᵀ λ',   by b: Σ λ',   by Z⁰: λ⁰,   by W⁰_d: σ (Pᵀ λ⁰)_n.
    /// ```
    pub(super) fn derivative(&mut self, slice: &Slice, y: ClassId, terms: &[Term]) -> TargetDerivative {
        let model = self.shared.network.model();
        let places = self.shared.places(slice);
        let mut by = TargetDerivative::zeros(model, places.clone());
        for term in terms {
            let passes = self.coefficients(slice, &places, y, term.other);
            self.add_term(slice, &places, term, &passes, &mut by);
        }
        by
    }

    /// λ of `Zⁱ` and, but for the last layer, α of `relu(Zⁱ)`, first layer first.
    fn coefficients(&self, slice: &Slice, places: &[Vec<u32>], y: ClassId, k: ClassId) -> Vec<(Matrix, Matrix)> {
        let layers = self.shared.network.layers();
        let mut lambda = Matrix::zeros(1, layers[layers.len() - 1].bias().len());
        lambda.row_mut(0)[y.index()] = 1.0;
        lambda.row_mut(0)[k.index()] = -1.0;
        let mut passes = vec![(lambda, Matrix::default())];
        for layer in (1..layers.len()).rev() {
            let (weight, above) = (layers[layer].weight(), &passes[passes.len() - 1].0);
            let mut alpha = Matrix::zeros(slice.level(layer).len(), weight.rows());
            backward::layer(&Coefficients, slice.hop(layer), weight, above, &mut Vec::new(), &mut alpha);
            let mut lambda = alpha.clone();
            for (row, &place) in places[layer - 1].iter().enumerate() {
                let (slopes, _) = self.shared.lines[layer - 1].chords(place as usize);
                lambda.row_mut(row).iter_mut().zip(slopes).for_each(|(coefficient, slope)| *coefficient *= slope);
            }
            passes.push((lambda, alpha));
        }
        passes.reverse();
        passes
    }

    fn add_term(
        &self,
        slice: &Slice,
        places: &[Vec<u32>],
        term: &Term,
        passes: &[(Matrix, Matrix)],
        by: &mut TargetDerivative,
    ) {
        let (layers, scale) = (self.shared.network.layers(), term.weight);
        let mut values = self.tampered(slice, places, term, &passes[0].0, by);
        for layer in 1..layers.len() {
            let (alpha, lambda) = (&passes[layer - 1].1, &passes[layer].0);
            let by_lines = &mut by.lines[layer - 1];
            for (row, &place) in places[layer - 1].iter().enumerate() {
                let (slopes, offsets) = self.shared.lines[layer - 1].chords(place as usize);
                for (j, &alpha) in alpha.row(row).iter().enumerate() {
                    let value = &mut values.row_mut(row)[j];
                    by_lines.slope.row_mut(row)[j] += scale * alpha * *value;
                    *value *= slopes[j];
                    if alpha < 0.0 {
                        by_lines.offset.row_mut(row)[j] += scale * alpha;
                        *value += offsets[j];
                    }
                }
            }
            let mut next = Matrix::zeros(lambda.rows(), lambda.columns());
            let mut sums = vec![0.0; values.columns()];
            for row in 0..lambda.rows() {
                sums.fill(0.0);
                let rows = slice.hop(layer).row(row).map(|(n, p)| (p, values.row(n)));
                Values::gather(&mut sums, rows, Activation::None);
                for (j, &sum) in sums.iter().enumerate() {
                    add_scaled(by.deeper.weights[layer - 1].row_mut(j), scale * sum, lambda.row(row));
                }
                add_scaled(&mut by.deeper.biases[layer - 1], scale, lambda.row(row));
                Values::transform(&layers[layer], &sums, 0, next.row_mut(row));
            }
            values = next;
        }
    }

    /// `Z⁰ + δ` on level 1, with the derivatives by Z⁰ and by the flipped attributes' weights added to `by`.
    fn tampered(
        &self,
        slice: &Slice,
        places: &[Vec<u32>],
        term: &Term,
        lambda: &Matrix,
        by: &mut TargetDerivative,
    ) -> Matrix {
        let weight = self.shared.network.attribute_weight();
        let units = weight.columns();
        let mut changes = Matrix::zeros(slice.level(0).len(), units);
        let signs: Vec<f64> = term.flips.iter().map(|&flip| self.shared.sign(slice, flip)).collect();
        for (&(position, attribute), &sign) in term.flips.iter().zip(&signs) {
            add_scaled(changes.row_mut(position as usize), sign, weight.row(attribute as usize));
        }
        let mut values = Matrix::zeros(lambda.rows(), units);
        let mut by_sums = Matrix::zeros(slice.level(0).len(), units);
        for (row, &place) in places[0].iter().enumerate() {
            values.row_mut(row).copy_from_slice(self.shared.bounds.clean[0].row(place as usize));
            let rows = slice.hop(0).row(row).map(|(n, p)| (p, changes.row(n)));
            Values::gather(values.row_mut(row), rows, Activation::None);
            add_scaled(by.by_clean.row_mut(row), term.weight, lambda.row(row));
        }
        backward::spread(&Coefficients, slice.hop(0), lambda, &mut by_sums);
        for (&(position, attribute), &sign) in term.flips.iter().zip(&signs) {
            by.attributes.push(attribute);
            by.by_attributes.extend(by_sums.row(position as usize).iter().map(|by| term.weight * sign * by));
        }
        values
    }

    /// From coefficients of `Z^layer` to those of `Z^(layer − 1)`.
    fn step_back(&mut self, slice: &Slice, layer: usize, constant: &mut Constant) {
        let layer_above = &self.shared.network.layers()[layer];
        let (weight, bias) = (layer_above.weight(), layer_above.bias());
        let gamma = gamma_after(slice.level(layer + 1).len() + bias.len() + 16);
        for row in 0..self.coefficients.rows() {
            let coefficients = self.coefficients.row(row);
            let magnitude = magnitude_dot(coefficients, bias);
            constant.add(dot(coefficients, bias), magnitude, gamma * magnitude);
        }
        let (hop, rows) = (slice.hop(layer), slice.level(layer).len());
        self.below.reset(rows, weight.rows());
        self.magnitudes.reset(rows, weight.rows());
        backward::layer(&Coefficients, hop, weight, &self.coefficients, &mut self.back, &mut self.below);
        backward::layer(&Magnitudes, hop, weight, &self.coefficients, &mut self.back, &mut self.magnitudes);
        self.apply_lines(slice, layer, gamma, constant);
        std::mem::swap(&mut self.coefficients, &mut self.below);
    }

    /// From coefficients of `relu(Z^(layer − 1))` to those of `Z^(layer − 1)`.
    fn apply_lines(&mut self, slice: &Slice, layer: usize, gamma: f64, constant: &mut Constant) {
        let lines = &self.shared.lines[layer - 1];
        let bounds = &self.shared.bounds.hidden[layer - 1];
        let units = self.below.columns();
        let (mut offsets, mut offset_magnitude) = (0.0, 0.0);
        for (row, &node) in slice.level(layer).iter().enumerate() {
            let place = self.shared.region.level(layer).place(node);
            let (lower, upper, offset) = (lines.lower().row(place), lines.upper.row(place), lines.offset.row(place));
            let coefficients = self.below.row_mut(row);
            for j in 0..units {
                let alpha = coefficients[j];
                let (lo, hi) = (bounds.lo.get(place, j), bounds.hi.get(place, j));
                let unit_error = bounds.error.unit(place, j);
                let largest = lo.abs().max(hi.abs()) + unit_error;
                constant.error += gamma * self.magnitudes.get(row, j) * (relu(hi) + unit_error);
                if alpha >= 0.0 {
                    coefficients[j] = alpha * lower[j];
                } else {
                    coefficients[j] = alpha * upper[j];
                    offsets += alpha * offset[j];
                    offset_magnitude += magnitude(alpha * offset[j]);
                    constant.error += magnitude(alpha) * 2.0 * unit_error;
                }
                constant.error += gamma * magnitude(coefficients[j]) * largest;
            }
        }
        let terms = units * slice.level(layer).len();
        constant.add(offsets, offset_magnitude, gamma_after(terms + 8) * offset_magnitude);
    }

    /// Adds the clean pre-activations of the first layer and charges the best flips.
    fn charge_flips(&mut self, slice: &Slice, constant: &mut Constant) {
        let Shard { region, bounds, limits, .. } = self.shared;
        let (units, first) = (self.coefficients.columns(), &bounds.first_error);
        let flips = limits.flips_within(slice.level(0));
        let gamma = gamma_after(slice.level(1).len() + units + flips + 32);
        self.below.reset(slice.level(0).len(), units);
        self.magnitudes.reset(slice.level(0).len(), units);
        for (row, &node) in slice.level(1).iter().enumerate() {
            let place = region.level(1).place(node);
            let coefficients = self.coefficients.row(row);
            let terms = coefficients.iter().enumerate();
            let reach: f64 = terms.map(|(j, &coefficient)| magnitude(coefficient) * first.magnitude(place, j)).sum();
            let value = dot(coefficients, bounds.clean[0].row(place));
            constant.add(value, reach, (gamma + first.gammas[place]) * reach);
        }
        backward::spread(&Coefficients, slice.hop(0), &self.coefficients, &mut self.below);
        backward::spread(&Magnitudes, slice.hop(0), &self.coefficients, &mut self.magnitudes);
        let mut largest_gain = 0.0f64;
        self.rows.clear();
        for position in 0..self.below.rows() {
            let magnitudes = self.magnitudes.row(position);
            largest_gain = largest_gain.max(dot(magnitudes, &first.weight));
            self.rows.push(Row::without_mean(position as u32, self.below.row(position)));
        }
        sort_rows(&mut self.rows);
        let queries = &self.below;
        let query = |position: usize, z: &mut [f64]| {
            for (z, w) in z.iter_mut().zip(queries.row(position)) {
                *z = -w;
            }
        };
        self.search.run(self.table, slice.level(0), &self.rows, query, &mut self.z, &mut self.selection);
        let gains = flips as f64 * largest_gain;
        let floor = flips as f64 * FLOOR * (1.0 + first.weight.iter().sum::<f64>());
        constant.add(-self.selection.total(), gains, 3.0 * gamma * gains + floor);
    }
}

//! The dual of any network with any slopes (Lemma 9 of `docs/maths.md`; its rounding: Lemma 32c).
//!
//! `margin ≥ constant + Σ α h` is carried from the last layer (α = e_y − e_k) to the first. Lines turn coefficients α of a
//! layer's activations into coefficients λ of its pre-activations,
//!
//! ```text
//! λ = α · lower                           where α ≥ 0,
//! λ = α · upper, constant += α · offset   where α < 0,
//! ```
//!
//! and each of its terms adds `Pᵀ λ Wᵀ` to the coefficients of what it reads. Where that is the attributes, the flips enter: one
//! at (n, d) changes the sum by ± w_n · W_d with `w = Pᵀ λ` for each such term.
//!
//! *Rounding.* Each λ as computed is taken as the number it is, so only the step to the next has an error: α is off by at
//! most `γ |P|ᵀ |λ| |W|ᵀ`, which costs that times `|h| + ε` (see `StepError`); an upper line may miss by twice the error ε of its
//! bounds, which costs `2 |α| ε`; rounding λ costs `γ |λ| max(|lo|, |hi|)`. The flips' gains and their sum are off by γ times Q
//! times the largest magnitude `Σ_j |w_nj| max_d |W_dj|`; so is what the search leaves out, since it leaves out only what
//! the rounded bounds of Lemma 13 put below a gain that was selected. Adding up costs γ times the sum of all magnitudes.

use crate::backward::{self, Coefficients};
use crate::dense::{Matrix, dot};
use crate::engines::derivative::{TargetDerivative, Term, add_relaxed};
use crate::ids::ClassId;
use crate::model::Source;
use crate::prepare::Shard;
use crate::rounding::{Approximate, FLOOR, gamma_after, magnitude, magnitude_dot};
use crate::search::{AnyKind, NormTable, Row, sort_rows};
use crate::selection::Selection;
use crate::slice::{Hop, Slice, SlicedFlip};

/// The dual of one target after the other.
pub(crate) struct AnyDepth<'a> {
    shared: &'a Shard<'a>,
    search: AnyKind<'a>,
    selection: Selection<SlicedFlip>,
    /// For each layer α, and λ once the lines are applied; a row for each node of its level.
    coefficients: Vec<Matrix>,
    /// w at the nodes of level 0, for the terms that read the attributes side by side, and `Σ_j |w_nj| max_d |W_dj|` before any
    /// cancellation.
    queries: Matrix,
    reaches: Vec<f64>,
    /// For each column of the attributes' weights the largest `|W_dj|` of that unit, over all terms of its layer.
    largest_weights: Vec<f64>,
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
    pub(super) fn new(shared: &'a Shard<'a>, table: &'a NormTable) -> Self {
        let network = shared.network;
        let width = network.attribute_weight().columns();
        let mut largest_weights = vec![0.0; width];
        for term in network.attribute_terms() {
            if let Some(error) = &shared.bounds.attribute_errors[term.layer] {
                largest_weights[term.columns.clone()].copy_from_slice(&error.weight);
            }
        }
        Self {
            shared,
            search: AnyKind::new(shared, table),
            selection: Selection::new(0),
            coefficients: network.layers().iter().map(|_| Matrix::default()).collect(),
            queries: Matrix::default(),
            reaches: Vec::new(),
            largest_weights,
            back: Vec::new(),
            rows: Vec::new(),
            z: vec![0.0; width],
        }
    }

    pub(super) fn shared(&self) -> &'a Shard<'a> {
        self.shared
    }

    pub(super) fn selection(&self) -> &Selection<SlicedFlip> {
        &self.selection
    }

    pub(super) fn lower_bound(&mut self, slice: &Slice, y: ClassId, k: ClassId) -> Approximate {
        self.begin(slice, y, k);
        let gamma = self.gamma(slice);
        let mut constant = Constant::default();
        for layer in (0..self.coefficients.len()).rev() {
            self.apply_lines(slice, layer, gamma, &mut constant);
            self.add_constants(slice, layer, &mut constant);
            self.add_step_errors(slice, layer, gamma, &mut constant);
            self.step_back(slice, layer);
        }
        self.charge_flips(slice, &mut constant);
        constant.sum()
    }

    /// Sets all coefficients to 0, but those of the logits to e_y − e_k.
    fn begin(&mut self, slice: &Slice, y: ClassId, k: ClassId) {
        for (i, (coefficients, layer)) in self.coefficients.iter_mut().zip(self.shared.network.layers()).enumerate() {
            coefficients.reset(slice.level(i + 1).len(), layer.units());
        }
        self.queries.reset(slice.level(0).len(), self.z.len());
        self.reaches.clear();
        self.reaches.resize(slice.level(0).len(), 0.0);
        let last = self.coefficients.len() - 1;
        let logits = self.coefficients[last].row_mut(0);
        logits[y.index()] = 1.0;
        logits[k.index()] = -1.0;
    }

    /// What an α of this slice may be off by, relative to the magnitudes that are added up in it: whoever reads a layer adds the
    /// nodes of its own level, after a product with W.
    fn gamma(&self, slice: &Slice) -> f64 {
        let layers = self.shared.network.layers().iter().enumerate();
        let roundings = layers.map(|(i, layer)| layer.terms().len() * (slice.level(i + 1).len() + layer.units()));
        gamma_after(roundings.sum::<usize>() + 16)
    }

    /// From coefficients of a layer's activations to those of its pre-activations. The logits have exact ones.
    fn apply_lines(&mut self, slice: &Slice, layer: usize, gamma: f64, constant: &mut Constant) {
        let Shard { network, region, bounds, lines, .. } = self.shared;
        if !network.layers()[layer].is_hidden() {
            return;
        }
        let (bounds, lines) = (&bounds.layers[layer], &lines[layer]);
        let (mut offsets, mut offset_magnitude, mut error) = (0.0, 0.0, 0.0);
        // Products of `FLOOR` and numbers below 1 are subnormal, and slow: those are made once, of the sum.
        let (mut rounded, mut largest_sum) = (0.0, 0.0);
        for (row, &node) in slice.level(layer + 1).iter().enumerate() {
            let place = region.level(layer + 1).place(node);
            let (lower, upper, offset) = (lines.lower().row(place), lines.upper.row(place), lines.offset.row(place));
            let (lo, hi) = (bounds.lo.row(place), bounds.hi.row(place));
            for (j, coefficient) in self.coefficients[layer].row_mut(row).iter_mut().enumerate() {
                let (alpha, unit_error) = (*coefficient, bounds.error.unit(place, j));
                if alpha >= 0.0 {
                    *coefficient = alpha * lower[j];
                } else {
                    *coefficient = alpha * upper[j];
                    offsets += alpha * offset[j];
                    offset_magnitude += magnitude(alpha * offset[j]);
                    error += magnitude(alpha) * 2.0 * unit_error;
                }
                let largest = lo[j].abs().max(hi[j].abs()) + unit_error;
                rounded += coefficient.abs() * largest;
                largest_sum += largest;
            }
        }
        let terms = network.layers()[layer].units() * slice.level(layer + 1).len();
        constant.error += error + gamma * rounded + FLOOR * largest_sum;
        constant.add(offsets, offset_magnitude, gamma_after(terms + 8) * offset_magnitude);
    }

    /// Charges what is lost by rounding when a layer's coefficients are carried back to other layers.
    fn add_step_errors(&self, slice: &Slice, layer: usize, gamma: f64, constant: &mut Constant) {
        if !self.shared.network.reads_layers(layer) {
            return;
        }
        let error = |(row, &node): (usize, &u32)| {
            let place = self.shared.region.level(layer + 1).place(node);
            self.shared.step_errors[layer].of(place, self.coefficients[layer].row(row))
        };
        constant.error += gamma * slice.level(layer + 1).iter().enumerate().map(error).sum::<f64>();
    }

    /// Adds what a layer has without any other: its biases, its constants, and what it makes of the attributes as they are.
    fn add_constants(&self, slice: &Slice, layer: usize, constant: &mut Constant) {
        let Shard { network, region, bounds, .. } = self.shared;
        let (coefficients, of) = (&self.coefficients[layer], &network.layers()[layer]);
        if let Some(error) = &bounds.attribute_errors[layer] {
            let gamma = gamma_after(of.units() + 16);
            for (row, &node) in slice.level(layer + 1).iter().enumerate() {
                let place = region.level(layer + 1).place(node);
                let coefficients = coefficients.row(row);
                let (mut reach, mut floor) = (0.0, 0.0);
                for (j, &coefficient) in coefficients.iter().enumerate() {
                    let magnitude = error.magnitude(place, j);
                    reach += coefficient.abs() * magnitude;
                    floor += magnitude;
                }
                let reach = reach + FLOOR * floor;
                let value = dot(coefficients, bounds.clean.part(layer).row(place));
                constant.add(value, reach, (gamma + error.gammas[place]) * reach);
            }
            return;
        }
        for row in 0..coefficients.rows() {
            let (coefficients, gamma) = (coefficients.row(row), gamma_after(of.units() + 16));
            let magnitude = magnitude_dot(coefficients, of.bias());
            constant.add(dot(coefficients, of.bias()), magnitude, gamma * magnitude);
            for (k, term) in of.terms().iter().enumerate().filter(|(_, term)| term.source() == Source::Ones) {
                let hop = slice.hop(layer, k);
                let sum: f64 = hop.row(row).map(|(_, p)| p).sum();
                let sum_of_magnitudes: f64 = hop.row(row).map(|(_, p)| p.abs()).sum();
                let weight = term.weight().values();
                let magnitude = magnitude_dot(coefficients, weight) * sum_of_magnitudes + FLOOR;
                let gamma = gamma_after(of.units() + hop.row_length(row) + 16);
                constant.add(sum * dot(coefficients, weight), magnitude, gamma * magnitude);
            }
        }
    }

    /// Adds a layer's coefficients to those of what its terms read.
    fn step_back(&mut self, slice: &Slice, layer: usize) {
        let network = self.shared.network;
        let (below, above) = self.coefficients.split_at_mut(layer);
        let above = &above[0];
        for (k, term) in network.layers()[layer].terms().iter().enumerate() {
            let hop = slice.hop(layer, k);
            match term.source() {
                Source::Ones => {}
                Source::Layer(source) => {
                    backward::term(&Coefficients, hop, term.weight(), above, &mut self.back, &mut below[source]);
                }
                Source::Attributes => {
                    let columns = network.attribute_columns(layer, k);
                    backward::spread(&Coefficients, hop, above, columns.clone(), &mut self.queries);
                    let largest = &self.largest_weights[columns];
                    for row in 0..above.rows() {
                        let terms = above.row(row).iter().zip(largest);
                        let reach: f64 = terms.map(|(coefficient, weight)| magnitude(coefficient * weight)).sum();
                        hop.row(row).for_each(|(n, p)| self.reaches[n] += magnitude(p * reach));
                    }
                }
            }
        }
    }

    /// Charges the best flips.
    fn charge_flips(&mut self, slice: &Slice, constant: &mut Constant) {
        let Shard { network, limits, .. } = self.shared;
        let flips = limits.flips_within(slice.level(0));
        let aggregators: usize = network.attribute_terms().iter().map(|term| slice.level(term.layer + 1).len()).sum();
        let gamma = gamma_after(aggregators + self.z.len() + flips + self.shared.longest_mean(slice) + 32);
        // Where the ones of a row are divided by their number, a flip gains at most `σ (W_d − μ) · z`; and a real value of at most s changes
        // by at most 2 s.
        let differences = if network.graph().kind().is_bits() { 1.0 } else { 2.0 };
        let largest_gain = differences * self.reaches.iter().copied().fold(0.0, f64::max);
        self.rows.clear();
        let row = |position: usize| Row::without_mean(position as u32, self.queries.row(position));
        self.rows.extend((0..self.queries.rows()).map(row));
        sort_rows(&mut self.rows);
        let queries = &self.queries;
        let query = |position: usize, z: &mut [f64]| {
            for (z, w) in z.iter_mut().zip(queries.row(position)) {
                *z = -w;
            }
        };
        self.search.run(slice, &self.rows, query, &mut self.z, &mut self.selection);
        let gains = flips as f64 * largest_gain;
        let floor = flips as f64 * FLOOR * (1.0 + self.largest_weights.iter().sum::<f64>());
        constant.add(-self.selection.total(), gains, 3.0 * gamma * gains + floor);
    }

    /// Lemma 34: the network with lines for activations, run forward on the tampered attributes, gives the derivative by the
    /// coefficients: with v that by λ of a layer,
    ///
    /// ```text
    /// a = v ∘ slope + offset 1[α < 0],   v = Σ P a W + P δ + b over its terms, δ being the change of X W,
    /// by slope: v α,   by offset: α 1[α < 0],   by W: (P a)ᵀ λ,   by b: Σ λ,   by ΔX_n W: (Pᵀ λ)_n.
    /// ```
    pub(super) fn derivative(&mut self, slice: &Slice, y: ClassId, terms: &[Term]) -> TargetDerivative {
        let mut by = TargetDerivative::zeros(self.shared.network, self.shared.places(slice));
        for term in terms {
            let alphas = self.carry_back(slice, &by.places, y, term.other);
            self.add_by_attributes(slice, term, &mut by);
            add_relaxed(self.shared, slice, term, &self.coefficients, &mut by, |layer, values, by| {
                self.activate(layer, term.weight, &alphas[layer], values, by);
            });
        }
        by
    }

    /// Leaves λ in `self.coefficients` and w in `self.queries`; the result is α.
    fn carry_back(&mut self, slice: &Slice, places: &[Vec<u32>], y: ClassId, k: ClassId) -> Vec<Matrix> {
        self.begin(slice, y, k);
        let mut alphas: Vec<Matrix> = self.coefficients.iter().map(|_| Matrix::default()).collect();
        for layer in (0..self.coefficients.len()).rev() {
            let lambda = &mut self.coefficients[layer];
            if self.shared.network.layers()[layer].is_hidden() {
                alphas[layer] = lambda.clone();
                for (row, &place) in places[layer].iter().enumerate() {
                    let (slopes, _) = self.shared.lines[layer].chords(place as usize);
                    lambda.row_mut(row).iter_mut().zip(slopes).for_each(|(coefficient, slope)| *coefficient *= slope);
                }
            }
            self.step_back(slice, layer);
        }
        alphas
    }

    /// Adds the derivatives by the flipped attributes' weights.
    fn add_by_attributes(&self, slice: &Slice, term: &Term, by: &mut TargetDerivative) {
        for change in self.shared.changes(slice, &term.flips).iter() {
            let position = change.row as usize;
            by.add_change(change, slice.level(0)[position], term.weight, self.queries.row(position));
        }
    }

    /// Puts values on their lines, and adds the derivatives by these.
    fn activate(&self, layer: usize, scale: f64, alphas: &Matrix, values: &mut Matrix, by: &mut TargetDerivative) {
        let by_lines = &mut by.lines[layer];
        for (row, &place) in by.places[layer].iter().enumerate() {
            let (slopes, offsets) = self.shared.lines[layer].chords(place as usize);
            for (j, &alpha) in alphas.row(row).iter().enumerate() {
                let value = &mut values.row_mut(row)[j];
                by_lines.slope.row_mut(row)[j] += scale * alpha * *value;
                *value *= slopes[j];
                if alpha < 0.0 {
                    by_lines.offset.row_mut(row)[j] += scale * alpha;
                    *value += offsets[j];
                }
            }
        }
    }
}

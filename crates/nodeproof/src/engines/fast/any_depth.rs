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
//! most `γ ᾱ` with `ᾱ = Σ |P|ᵀ |λ| |W|ᵀ`, which costs `γ ᾱ (|h| + ε)`; an upper line may miss by twice the error ε of its
//! bounds, which costs `2 |α| ε`; rounding λ costs `γ |λ| max(|lo|, |hi|)`. The flips' gains and their sum are off by γ times Q
//! times the largest magnitude `Σ_j |w_nj| max_d |W_dj|`; so is what the search leaves out, since it leaves out only what
//! the rounded product of norms puts below a gain that was selected. Adding up costs γ times the sum of all magnitudes.

use super::{TargetDerivative, Term};
use crate::backward::{self, Coefficients, Magnitudes};
use crate::dense::{Matrix, add_scaled, dot};
use crate::forward::{Carried, Values};
use crate::ids::ClassId;
use crate::model::{Activation, Source};
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
    passes: Vec<Pass>,
    /// w at the nodes of level 0, for the terms that read the attributes side by side, and bounds on its magnitude.
    queries: Matrix,
    query_magnitudes: Matrix,
    /// The largest `|W_dj|` of each column of the attributes' weights.
    largest_weights: Vec<f64>,
    back: Vec<f64>,
    rows: Vec<Row>,
    z: Vec<f64>,
}

/// What is carried back for one layer, a row for each node of its level.
#[derive(Debug, Default)]
struct Pass {
    /// α, and λ once the lines are applied.
    coefficients: Matrix,
    /// ᾱ.
    magnitudes: Matrix,
    /// The most roundings behind an α.
    roundings: usize,
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
            table,
            search: shared.search(),
            selection: Selection::new(0),
            passes: network.layers().iter().map(|_| Pass::default()).collect(),
            queries: Matrix::default(),
            query_magnitudes: Matrix::default(),
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
        let mut constant = Constant::default();
        for layer in (0..self.passes.len()).rev() {
            self.apply_lines(slice, layer, &mut constant);
            self.add_constants(slice, layer, &mut constant);
            self.step_back(slice, layer);
        }
        self.charge_flips(slice, &mut constant);
        constant.sum()
    }

    /// Sets all coefficients to 0, but those of the logits to e_y − e_k.
    fn begin(&mut self, slice: &Slice, y: ClassId, k: ClassId) {
        for (i, (pass, layer)) in self.passes.iter_mut().zip(self.shared.network.layers()).enumerate() {
            let rows = slice.level(i + 1).len();
            pass.coefficients.reset(rows, layer.units());
            pass.magnitudes.reset(rows, layer.units());
            pass.roundings = 16;
        }
        self.queries.reset(slice.level(0).len(), self.z.len());
        self.query_magnitudes.reset(slice.level(0).len(), self.z.len());
        let logits = self.passes[self.shared.network.layers().len() - 1].coefficients.row_mut(0);
        logits[y.index()] = 1.0;
        logits[k.index()] = -1.0;
    }

    /// From coefficients of a layer's activations to those of its pre-activations. The logits have exact ones.
    fn apply_lines(&mut self, slice: &Slice, layer: usize, constant: &mut Constant) {
        let Shard { network, region, bounds, lines, .. } = self.shared;
        let (Some(bounds), Some(lines)) = (bounds.layers.get(layer), lines.get(layer)) else { return };
        let (activation, units) = (network.layers()[layer].activation(), network.layers()[layer].units());
        let Pass { coefficients, magnitudes, roundings } = &mut self.passes[layer];
        let gamma = gamma_after(*roundings);
        let (mut offsets, mut offset_magnitude) = (0.0, 0.0);
        for (row, &node) in slice.level(layer + 1).iter().enumerate() {
            let place = region.level(layer + 1).place(node);
            let (coefficients, magnitudes) = (coefficients.row_mut(row), magnitudes.row(row));
            for (j, magnitude) in magnitudes.iter().enumerate() {
                let largest = bounds.largest(activation, place, j) + bounds.error.unit(place, j);
                constant.error += gamma * magnitude * largest;
            }
            if activation == Activation::None {
                continue;
            }
            let (lower, upper, offset) = (lines.lower().row(place), lines.upper.row(place), lines.offset.row(place));
            for j in 0..units {
                let (alpha, error) = (coefficients[j], bounds.error.unit(place, j));
                if alpha >= 0.0 {
                    coefficients[j] = alpha * lower[j];
                } else {
                    coefficients[j] = alpha * upper[j];
                    offsets += alpha * offset[j];
                    offset_magnitude += magnitude(alpha * offset[j]);
                    constant.error += magnitude(alpha) * 2.0 * error;
                }
                let largest = bounds.largest(Activation::None, place, j) + error;
                constant.error += gamma * magnitude(coefficients[j]) * largest;
            }
        }
        let terms = units * slice.level(layer + 1).len();
        constant.add(offsets, offset_magnitude, gamma_after(terms + 8) * offset_magnitude);
    }

    /// Adds what a layer has without any other: its biases, its constants, and what it makes of the attributes as they are.
    fn add_constants(&self, slice: &Slice, layer: usize, constant: &mut Constant) {
        let Shard { network, region, bounds, .. } = self.shared;
        let (coefficients, of) = (&self.passes[layer].coefficients, &network.layers()[layer]);
        if let Some(error) = &bounds.attribute_errors[layer] {
            let gamma = gamma_after(of.units() + 16);
            for (row, &node) in slice.level(layer + 1).iter().enumerate() {
                let place = region.level(layer + 1).place(node);
                let coefficients = coefficients.row(row);
                let terms = coefficients.iter().enumerate();
                let reach: f64 =
                    terms.map(|(j, &coefficient)| magnitude(coefficient) * error.magnitude(place, j)).sum();
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
        let of = &network.layers()[layer];
        let (below, above) = self.passes.split_at_mut(layer);
        let above = &above[0].coefficients;
        for (k, term) in of.terms().iter().enumerate() {
            let hop = slice.hop(layer, k);
            match term.source() {
                Source::Ones => {}
                Source::Layer(source) => {
                    let Pass { coefficients, magnitudes, roundings } = &mut below[source];
                    backward::term(&Coefficients, hop, term.weight(), above, &mut self.back, coefficients);
                    backward::term(&Magnitudes, hop, term.weight(), above, &mut self.back, magnitudes);
                    *roundings += above.rows() + of.units();
                }
                Source::Attributes => {
                    let columns = network.attribute_columns(layer, k);
                    backward::spread(&Coefficients, hop, above, columns.clone(), &mut self.queries);
                    backward::spread(&Magnitudes, hop, above, columns, &mut self.query_magnitudes);
                }
            }
        }
    }

    /// Charges the best flips.
    fn charge_flips(&mut self, slice: &Slice, constant: &mut Constant) {
        let Shard { network, limits, .. } = self.shared;
        let flips = limits.flips_within(slice.level(0));
        let aggregators: usize = network.attribute_terms().iter().map(|term| slice.level(term.layer + 1).len()).sum();
        let gamma = gamma_after(aggregators + self.z.len() + flips + 32);
        let mut largest_gain = 0.0f64;
        self.rows.clear();
        for position in 0..self.queries.rows() {
            let magnitudes = self.query_magnitudes.row(position);
            largest_gain = largest_gain.max(dot(magnitudes, &self.largest_weights));
            self.rows.push(Row::without_mean(position as u32, self.queries.row(position)));
        }
        sort_rows(&mut self.rows);
        let queries = &self.queries;
        let query = |position: usize, z: &mut [f64]| {
            for (z, w) in z.iter_mut().zip(queries.row(position)) {
                *z = -w;
            }
        };
        self.search.run(self.table, slice.level(0), &self.rows, query, &mut self.z, &mut self.selection);
        let gains = flips as f64 * largest_gain;
        let floor = flips as f64 * FLOOR * (1.0 + self.largest_weights.iter().sum::<f64>());
        constant.add(-self.selection.total(), gains, 3.0 * gamma * gains + floor);
    }

    /// Lemma 34: the network with lines for activations, run forward on the tampered attributes, gives the derivative by the
    /// coefficients: with v that by λ of a layer,
    ///
    /// ```text
    /// a = v ∘ slope + offset 1[α < 0],   v = Σ P a W + P δ + b over its terms, δ being the change of X W,
    /// by slope: v α,   by offset: α 1[α < 0],   by W: (P a)ᵀ λ,   by b: Σ λ,   by W_d: σ (Pᵀ λ)_n.
    /// ```
    pub(super) fn derivative(&mut self, slice: &Slice, y: ClassId, terms: &[Term]) -> TargetDerivative {
        let mut by = TargetDerivative::zeros(self.shared.network, self.shared.places(slice));
        for term in terms {
            let alphas = self.carry_back(slice, &by.places, y, term.other);
            self.add_by_attributes(slice, term, &mut by);
            self.run_forward(slice, term, &alphas, &mut by);
        }
        by
    }

    /// Leaves λ in `self.passes` and w in `self.queries`; the result is α.
    fn carry_back(&mut self, slice: &Slice, places: &[Vec<u32>], y: ClassId, k: ClassId) -> Vec<Matrix> {
        self.begin(slice, y, k);
        let mut alphas: Vec<Matrix> = self.passes.iter().map(|_| Matrix::default()).collect();
        for layer in (0..self.passes.len()).rev() {
            let lambda = &mut self.passes[layer].coefficients;
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
        for &(position, attribute) in &term.flips {
            let factor = term.weight * self.shared.sign(slice, (position, attribute));
            by.attributes.push(attribute);
            by.by_attributes.extend(self.queries.row(position as usize).iter().map(|by| factor * by));
        }
    }

    /// Runs the tampered network with lines forward, and adds the derivatives by lines, weights, biases and parts.
    fn run_forward(&self, slice: &Slice, term: &Term, alphas: &[Matrix], by: &mut TargetDerivative) {
        let (network, scale) = (self.shared.network, term.weight);
        let changes = self.changes(slice, term);
        let mut activations: Vec<Matrix> = Vec::with_capacity(self.passes.len());
        for (layer, pass) in self.passes.iter().enumerate() {
            let (of, lambda) = (&network.layers()[layer], &pass.coefficients);
            let mut values = Matrix::zeros(lambda.rows(), lambda.columns());
            for row in 0..lambda.rows() {
                let lambda = lambda.row(row);
                let values = values.row_mut(row);
                match by.by_parts[layer].rows() {
                    0 => {
                        values.copy_from_slice(of.bias());
                        add_scaled(&mut by.gradient.biases[layer], scale, lambda);
                    }
                    _ => {
                        let place = by.places[layer][row] as usize;
                        values.copy_from_slice(self.shared.bounds.clean.part(layer).row(place));
                        add_scaled(by.by_parts[layer].row_mut(row), scale, lambda);
                    }
                }
                for (k, term) in of.terms().iter().enumerate() {
                    let hop = slice.hop(layer, k).row(row);
                    let sums = match term.source() {
                        Source::Attributes => {
                            let columns = network.attribute_columns(layer, k);
                            let rows = hop.map(|(n, p)| (p, &changes.row(n)[columns.clone()]));
                            Values::gather(values, rows, Activation::None, 0.0);
                            continue;
                        }
                        // They are in the parts, and their derivative follows from that by these.
                        Source::Ones if by.by_parts[layer].rows() > 0 => continue,
                        Source::Ones => vec![hop.map(|(_, p)| p).sum()],
                        Source::Layer(source) => {
                            let below = &activations[source];
                            let mut sums = vec![0.0; below.columns()];
                            let rows = hop.map(|(n, p)| (p, below.row(n)));
                            Values::gather(&mut sums, rows, Activation::None, 0.0);
                            sums
                        }
                    };
                    if let Some(gradient) = &mut by.gradient.weights[layer][k] {
                        for (j, &sum) in sums.iter().enumerate() {
                            add_scaled(gradient.row_mut(j), scale * sum, lambda);
                        }
                    }
                    Values::add_product(values, &sums, term.weight());
                }
            }
            if of.is_hidden() {
                self.activate(layer, scale, &alphas[layer], &mut values, by);
            }
            activations.push(values);
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

    /// The change of X W by the flips, a row for each node of level 0.
    fn changes(&self, slice: &Slice, term: &Term) -> Matrix {
        let weight = self.shared.network.attribute_weight();
        let mut changes = Matrix::zeros(slice.level(0).len(), weight.columns());
        for &(position, attribute) in &term.flips {
            let sign = self.shared.sign(slice, (position, attribute));
            add_scaled(changes.row_mut(position as usize), sign, weight.row(attribute as usize));
        }
        changes
    }
}

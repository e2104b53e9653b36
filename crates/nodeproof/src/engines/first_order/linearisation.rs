//! The margin as a constant minus a gain for each flip (Lemma 39 of `docs/maths.md`).
//!
//! With α the coefficient of a unit's activation, s its slope and λ = α s that of its pre-activation, carried back from the logits
//! at a base point, every set of at most r further flips has
//!
//! ```text
//! margin ≥ constant − Σ_f gain_f,   gain_f = −σ w_n · W_d + Σ_{α < 0} |α| · excess_f,
//! constant = margin of the base + Σ_{α > 0} α (s z − σ(z)).
//! ```
//!
//! Where α ≤ 0 the slope is the tangent's; where α > 0 any slope between β and 1 will do, and the tangent's makes the constant the
//! margin itself. Other [`Lines`] take the place of the tangent and the excess where α < 0. A unit whose sign is known has a multiplier ν,
//! which adds ν to λ and ν z to the constant.
//!
//! *Rounding.* A flip moves no unit by more than its reach X, and all that is computed of a flip is a sum of products whose
//! magnitudes add up to at most `Σ (|α| + |ν|) X` over all units, so that a gain, and what rounding of α costs, is off by at most a few γ
//! times that (Lemma 41). What underflows is multiplied on by later factors, so that α and X are raised by what covers that.

use super::base::Base;
use super::bound::At;
use super::lines::Lines;
use super::target::Target;
use crate::backward::transposed_term;
use crate::dense::{Matrix, add_scaled, dot};
use crate::kernels::vectorised;
use crate::model::{Activation, Source};
use crate::rounding::{gamma_after, magnitude};
use crate::slice::SlicedFlip;

/// What the errors of gains, of what screening leaves out and of the steps of α add up to, in units of `γ Σ (|α| + |ν|) X`.
const ERRORS: f64 = 16.0;

/// The margin of one pair of classes around a base point.
#[derive(Default)]
pub(super) struct Linearisation {
    /// What the margin is compared with, and reckoned from.
    pub(super) level: f64,
    pub(super) constant: f64,
    /// How far the constant minus the gains of any admissible set may be off.
    pub(super) error: f64,
    /// α of all layers but the last.
    pub(super) alpha: Vec<Matrix>,
    /// What the excess of a flip costs at each unit, numbered through all layers: (−α)₊ but for the chord's share.
    pub(super) against: Vec<f64>,
    /// λ of all layers.
    pub(super) lambda: Vec<Matrix>,
    /// Whether a unit has a multiplier.
    pub(super) is_multiplied: bool,
    back: Vec<f64>,
}

impl Linearisation {
    /// Around a base point, with the tangents or other lines.
    pub(super) fn compute(&mut self, At { target, base, pair }: At, lines: Option<&Lines>) {
        let (network, slice) = (target.shared.network, target.slice);
        let layers = network.layers();
        let mut alphas: Vec<Matrix> = std::mem::take(&mut self.alpha);
        alphas.resize_with(layers.len(), Matrix::default);
        for (i, (alpha, layer)) in alphas.iter_mut().zip(layers).enumerate() {
            alpha.reset(slice.level(i + 1).len(), layer.units());
        }
        self.against.resize(target.first_unit[target.hidden()], 0.0);
        let last = layers.len() - 1;
        alphas[last].row_mut(0)[pair.0.index()] = 1.0;
        alphas[last].row_mut(0)[pair.1.index()] = -1.0;

        let gamma = gamma_after(target.roundings());
        self.constant = base.margin(pair.1) - self.level;
        self.is_multiplied = false;
        // What the clean margin, lines that are no tangents and the flips may be off by.
        let mut error = target.margin_error(pair) + gamma * (base.margin(pair.1).abs() + 2.0 * self.level.abs());
        let floor = target.reaches.floor;
        let mut of_a_flip = floor;
        let mut lambdas = std::mem::take(&mut self.lambda);
        lambdas.resize_with(layers.len(), Matrix::default);
        for layer in (0..layers.len()).rev() {
            let (below, above) = alphas.split_at_mut(layer);
            let (alpha, lambda) = (&above[0], &mut lambdas[layer]);
            if layer < last {
                let errors = self.bend((target, base, layer), lines, alpha, lambda, gamma);
                error += errors.constant;
                of_a_flip += magnitudes(alpha.values(), target.reach[layer].values(), floor) + errors.multipliers;
            } else {
                lambda.clone_from(alpha);
                let most = (0..lambda.columns()).map(|j| target.reaches.unit(layer, slice.level(layer + 1)[0], j));
                of_a_flip += 2.0 * most.fold(0.0, f64::max);
            }
            for (k, term) in layers[layer].terms().iter().enumerate() {
                if let Source::Layer(source) = term.source() {
                    let (hop, weight) = (slice.hop(layer, k), target.tables.transposed(layer, k));
                    transposed_term(hop, |p| p, weight, lambda, &mut self.back, &mut below[source]);
                }
            }
        }
        self.lambda = lambdas;
        self.alpha = alphas;
        self.error = 1.01 * (error + ERRORS * gamma * base.moves_left().max(1) as f64 * of_a_flip)
            + target.shared.overflow_error;
    }

    /// From α to λ of a layer. Lines that are no tangents, and multipliers, change the constant.
    fn bend(
        &mut self,
        (target, base, layer): (&Target, &Base, usize),
        lines: Option<&Lines>,
        alpha: &Matrix,
        lambda: &mut Matrix,
        gamma: f64,
    ) -> Errors {
        let activation = target.shared.network.layers()[layer].activation();
        let against = &mut self.against[target.first_unit[layer]..target.first_unit[layer + 1]];
        if activation == Activation::None {
            lambda.clone_from(alpha);
            against.fill(0.0);
            return Errors::default();
        }
        let columns = alpha.columns();
        lambda.reshape(alpha.rows(), columns);
        let error_of = |unit: usize| target.error(layer, unit / columns, unit % columns);
        let mut errors = Errors::default();
        for &unit in &base.unsure[layer] {
            errors.constant += magnitude(alpha.values()[unit as usize].max(0.0)) * error_of(unit as usize);
        }
        let coefficients = alpha.values().iter().zip(lambda.values_mut()).zip(against);
        let units = coefficients.zip(base.tangents[layer].values());
        let Some(lines) = lines else {
            vectorised(|| {
                units.for_each(|(((alpha, lambda), against), tangent)| {
                    (*lambda, *against) = (alpha * tangent, (-alpha).max(0.0))
                });
            });
            return errors;
        };
        let (z, reach) = (base.z[layer].values(), target.reach[layer].values());
        let mut shift = 0.0;
        for (unit, ((((&alpha, lambda), against), &tangent), line)) in units.zip(lines[layer].values()).enumerate() {
            let relaxed = line.relaxed(activation, z[unit], tangent, alpha);
            *against = (-alpha).max(0.0) * relaxed.excess;
            *lambda = alpha * relaxed.slope;
            if relaxed.slope != tangent || relaxed.value != tangent * z[unit] {
                shift += alpha * (relaxed.value - tangent * z[unit]);
                let (lo, hi) = line.ends;
                let size = if alpha < 0.0 { hi.abs() + lo.abs() } else { 0.0 };
                errors.constant += magnitude(alpha) * (gamma * (z[unit].abs() + size) + error_of(unit));
            }
            if line.multiplier != 0.0 {
                self.is_multiplied = true;
                *lambda += line.multiplier;
                shift += line.multiplier * z[unit];
                errors.constant += magnitude(line.multiplier) * (gamma * z[unit].abs() + error_of(unit));
                errors.multipliers += magnitude(line.multiplier) * reach[unit];
            }
        }
        self.constant += shift;
        errors
    }

    /// Writes `w = Pᵀ λ` of a node of level 0, for the terms that read the attributes side by side.
    pub(super) fn write_gradient(&self, target: &Target, position: usize, w: &mut [f64]) {
        w.fill(0.0);
        for term in target.shared.network.attribute_terms() {
            let w = &mut w[term.columns.clone()];
            for &(m, p) in target.readers[term.layer][term.term].of(position) {
                add_scaled(w, p, self.lambda[term.layer].row(m as usize));
            }
        }
    }

    /// The gain of a flip without its excess.
    #[inline]
    pub(super) fn linear_gain(&self, target: &Target, base: &Base, flip: SlicedFlip) -> f64 {
        let (mut gain, mut buffer) = (0.0, Vec::new());
        let effect = target.effect(base, flip, &mut buffer);
        for (layer, lambda) in self.lambda.iter().enumerate() {
            target.each_reader(layer, &effect, |m, p, weight| gain -= p * dot(lambda.row(m as usize), weight));
        }
        gain
    }

    /// What the excess of a flip adds to its gain.
    #[inline]
    pub(super) fn excess_gain(&self, excess: &[(u32, f64)]) -> f64 {
        excess.iter().map(|&(unit, excess)| self.against[unit as usize] * excess).sum()
    }
}

/// What the lines of a layer add to errors.
#[derive(Default)]
struct Errors {
    /// How far the constant may be off.
    constant: f64,
    /// `Σ |ν| X`.
    multipliers: f64,
}

/// `Σ (|α| + floor) X`.
fn magnitudes(alpha: &[f64], reach: &[f64], floor: f64) -> f64 {
    let mut lanes = [0.0; 8];
    let ((alpha8, alpha), (reach8, reach)) = (alpha.as_chunks::<8>(), reach.as_chunks::<8>());
    vectorised(|| {
        for (alpha, reach) in alpha8.iter().zip(reach8) {
            for lane in 0..8 {
                lanes[lane] += (alpha[lane].abs() + floor) * reach[lane];
            }
        }
    });
    let rest: f64 = alpha.iter().zip(reach).map(|(alpha, reach)| (alpha.abs() + floor) * reach).sum();
    lanes.iter().sum::<f64>() + rest
}

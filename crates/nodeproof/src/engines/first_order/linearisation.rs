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
//! margin itself.
//!
//! *Rounding.* A flip moves no unit by more than its reach X, and all that is computed of a flip is a sum of products whose
//! magnitudes add up to at most `Σ |α| X` over all units, so that a gain, and what rounding of α costs, is off by at most γ times
//! that (Lemma 41).

use super::base::Base;
use super::target::Target;
use crate::backward::{self, Coefficients};
use crate::dense::{Matrix, dot};
use crate::engines::attack::Attack;
use crate::ids::ClassId;
use crate::model::{Activation, Source};
use crate::rounding::{gamma_after, magnitude};
use crate::slice::SlicedFlip;

/// What the errors of gains, of what screening leaves out and of the steps of α add up to, in units of `γ Σ |α| X`.
const ERRORS: f64 = 16.0;

/// Slopes of units, a row for each node of a layer's level; those of units with α ≤ 0 are not used.
pub(super) type UnitSlopes = Vec<Matrix>;

/// The margin of one pair of classes around a base point.
#[derive(Default)]
pub(super) struct Linearisation {
    pub(super) constant: f64,
    /// How far the constant minus the gains of any admissible set may be off.
    pub(super) error: f64,
    /// α of all layers but the last.
    pub(super) alpha: Vec<Matrix>,
    /// (−α)₊ of all units, numbered through all layers.
    pub(super) against: Vec<f64>,
    /// w, a row for each node of level 0.
    pub(super) gradient: Matrix,
    back: Vec<f64>,
}

impl Linearisation {
    /// Around `base`, with the slopes of the tangents or others.
    pub(super) fn compute(
        &mut self,
        target: &Target,
        base: &Base,
        attack: &Attack,
        pair: (ClassId, ClassId),
        slopes: Option<&UnitSlopes>,
    ) {
        let (network, slice) = (target.shared.network, target.slice);
        let layers = network.layers();
        let mut alphas: Vec<Matrix> = std::mem::take(&mut self.alpha);
        alphas.resize_with(layers.len(), Matrix::default);
        for (i, (alpha, layer)) in alphas.iter_mut().zip(layers).enumerate() {
            alpha.reset(slice.level(i + 1).len(), layer.units());
        }
        self.gradient.reset(slice.level(0).len(), network.attribute_weight().columns());
        self.against.clear();
        self.against.resize(target.first_unit[target.hidden()], 0.0);
        let last = layers.len() - 1;
        alphas[last].row_mut(0)[pair.0.index()] = 1.0;
        alphas[last].row_mut(0)[pair.1.index()] = -1.0;

        let gamma = gamma_after(target.roundings());
        self.constant = base.margin(pair.1);
        // What the clean margin, slopes that are no tangents and the flips may be off by.
        let mut error = attack.error(slice, pair.0, pair.1) + gamma * self.constant.abs();
        let mut of_a_flip = 0.0;
        let mut lambda = Matrix::default();
        for layer in (0..layers.len()).rev() {
            let (below, above) = alphas.split_at_mut(layer);
            let alpha = &above[0];
            lambda.clone_from(alpha);
            if layer < last {
                for (row, &node) in slice.level(layer + 1).iter().enumerate() {
                    for (j, alpha) in alpha.row(row).iter().enumerate() {
                        of_a_flip += magnitude(*alpha) * target.tables.reach.unit(layer, node, j);
                    }
                }
                if layers[layer].activation() != Activation::None {
                    error += self.bend(target, base, layer, slopes, alpha, &mut lambda, gamma);
                }
            } else {
                let most = (0..lambda.columns()).map(|j| target.tables.reach.unit(layer, slice.level(layer + 1)[0], j));
                of_a_flip += 2.0 * most.fold(0.0, f64::max);
            }
            for (k, term) in layers[layer].terms().iter().enumerate() {
                let hop = slice.hop(layer, k);
                match term.source() {
                    Source::Ones => {}
                    Source::Layer(source) => {
                        backward::term(&Coefficients, hop, term.weight(), &lambda, &mut self.back, &mut below[source]);
                    }
                    Source::Attributes => {
                        let columns = network.attribute_columns(layer, k);
                        backward::spread(&Coefficients, hop, &lambda, columns, &mut self.gradient);
                    }
                }
            }
        }
        self.alpha = alphas;
        self.error =
            1.01 * (error + ERRORS * gamma * base.left.max(1) as f64 * of_a_flip) + target.shared.overflow_error;
    }

    /// From α to λ of a layer. Where α > 0, slopes that are no tangents lower the constant; the result is what that may be off by.
    #[allow(clippy::too_many_arguments)]
    fn bend(
        &mut self,
        target: &Target,
        base: &Base,
        layer: usize,
        slopes: Option<&UnitSlopes>,
        alpha: &Matrix,
        lambda: &mut Matrix,
        gamma: f64,
    ) -> f64 {
        let activation = target.shared.network.layers()[layer].activation();
        let (region, errors) = (&target.shared.region, &target.shared.bounds.layers[layer].error);
        let (units, mut error, mut lost) = (alpha.columns(), 0.0, 0.0);
        for (row, &node) in target.slice.level(layer + 1).iter().enumerate() {
            let place = region.level(layer + 1).place(node);
            let first = target.first_unit[layer] + row * units;
            let z = base.z[layer].row(row);
            for (j, (lambda, &unit)) in lambda.row_mut(row).iter_mut().zip(base.units[layer].row(row)).enumerate() {
                let (alpha, tangent) = (*lambda, unit.tangent(activation));
                if alpha <= 0.0 {
                    self.against[first + j] = -alpha;
                    *lambda = alpha * tangent;
                    continue;
                }
                let slope = slopes.map_or(tangent, |slopes| slopes[layer].get(row, j));
                *lambda = alpha * slope;
                if slope != tangent {
                    lost += alpha * (tangent - slope) * z[j];
                    error += gamma * magnitude(alpha * z[j]);
                }
                if slope != tangent || !unit.is_sure() {
                    error += magnitude(alpha) * errors.unit(place, j);
                }
            }
        }
        self.constant -= lost;
        error
    }

    /// The gain of a flip without its excess.
    #[inline]
    pub(super) fn linear_gain(&self, target: &Target, flip: SlicedFlip) -> f64 {
        let sign = target.shared.sign(target.slice, flip);
        let weight = target.shared.network.attribute_weight().row(flip.1 as usize);
        -sign * dot(self.gradient.row(flip.0 as usize), weight)
    }

    /// What the excess of a flip adds to its gain.
    #[inline]
    pub(super) fn excess_gain(&self, excess: &[(u32, f64)]) -> f64 {
        excess.iter().map(|&(unit, excess)| self.against[unit as usize] * excess).sum()
    }
}

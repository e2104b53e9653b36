//! Finding the flips that may gain much, without a cone for each (Lemma 40 of `docs/maths.md`).
//!
//! Coefficients cU on (U)₊ and cL on (−L)₊ of every unit are carried back beside α, as their sum S and difference T:
//!
//! ```text
//! z ≤ 0:   cU = (β + (1 − β) ζ) A + (1 − β) ζ c,   cL = β B          c = (−α)₊,   ζ = (1 − θ / X)₊,
//! z > 0:   cU = A,   cL = B + (1 − β) ζ c                            A, B = (S ± T) / 2 arriving on (U')₊ and (−L')₊
//! through a layer: S' = |P|ᵀ S |W|ᵀ,   T' = Pᵀ T Wᵀ
//! at the attributes: gain ≤ σ W_d · h_n + |W_d| · k_n,   h = T / 2 − w,   k = S / 2.
//! ```

use super::base::Base;
use super::linearisation::Linearisation;
use super::target::Target;
use crate::backward::{self, Coefficients};
use crate::dense::{Matrix, add_scaled};
use crate::ids::AttributeId;
use crate::kernels::vectorised;
use crate::model::{Activation, Source, Weight};
use crate::slice::{Hop, SlicedFlip};

/// What bounds are raised by, above what rounding may take from norms.
const RAISE: f64 = 1.0 + 1e-9;

/// Upper bounds of the gains of all flips around a base point.
#[derive(Default)]
pub(super) struct Screening {
    /// h and k, a row for each node of level 0.
    h: Matrix,
    k: Matrix,
    /// `‖|h| + k‖` of each.
    norms: Vec<f64>,
    sums: Vec<Matrix>,
    differences: Vec<Matrix>,
    back: Vec<f64>,
}

impl Screening {
    pub(super) fn compute(&mut self, target: &Target, base: &Base, linear: &Linearisation) {
        let (network, slice) = (target.shared.network, target.slice);
        let width = network.attribute_weight().columns();
        for carried in [&mut self.sums, &mut self.differences] {
            carried.resize_with(target.hidden(), Matrix::default);
            for (i, carried) in carried.iter_mut().enumerate() {
                carried.reset(slice.level(i + 1).len(), network.layers()[i].units());
            }
        }
        self.h.reset(slice.level(0).len(), width);
        self.k.reset(slice.level(0).len(), width);
        for layer in (0..target.hidden()).rev() {
            self.bend(target, base, linear, layer);
            self.step_back(target, layer);
        }
        self.norms.clear();
        for row in 0..self.h.rows() {
            let (h, k) = (self.h.row_mut(row), self.k.row_mut(row));
            let mut squares = 0.0;
            for ((h, k), w) in h.iter_mut().zip(k).zip(linear.gradient.row(row)) {
                (*h, *k) = (0.5 * *h - w, 0.5 * *k);
                squares += (h.abs() + *k) * (h.abs() + *k);
            }
            self.norms.push(squares.sqrt() * RAISE + f64::MIN_POSITIVE);
        }
    }

    /// Through the activation of a layer.
    fn bend(&mut self, target: &Target, base: &Base, linear: &Linearisation, layer: usize) {
        let activation = target.shared.network.layers()[layer].activation();
        if activation == Activation::None {
            return;
        }
        let slope = activation.slope();
        for (row, &node) in target.slice.level(layer + 1).iter().enumerate() {
            let against = &linear.against[target.first_unit[layer] + row * self.sums[layer].columns()..];
            let carried = self.sums[layer].row_mut(row).iter_mut().zip(self.differences[layer].row_mut(row));
            for (j, ((sum, difference), &unit)) in carried.zip(base.units[layer].row(row)).enumerate() {
                let (a, b) = (0.5 * (*sum + *difference), 0.5 * (*sum - *difference));
                if a == 0.0 && b == 0.0 && against[j] == 0.0 {
                    continue;
                }
                let share = (1.0 - unit.threshold / target.tables.reach.unit(layer, node, j)).max(0.0);
                let bent = (1.0 - slope) * share;
                let (up, down) = if unit.on {
                    (a, b + bent * against[j])
                } else {
                    ((slope + bent) * a + bent * against[j], if unit.is_sure() { slope * b } else { b })
                };
                (*sum, *difference) = (up + down, up - down);
            }
        }
    }

    /// Carries the coefficients of a layer back to what its terms read.
    fn step_back(&mut self, target: &Target, layer: usize) {
        let (network, slice) = (target.shared.network, target.slice);
        for (k, term) in network.layers()[layer].terms().iter().enumerate() {
            let hop = slice.hop(layer, k);
            match term.source() {
                Source::Ones => {}
                Source::Layer(source) => {
                    let (below, above) = self.differences.split_at_mut(layer);
                    backward::term(&Coefficients, hop, term.weight(), &above[0], &mut self.back, &mut below[source]);
                    let (below, above) = self.sums.split_at_mut(layer);
                    let magnitudes = target.tables.magnitude(layer, k);
                    spread_magnitudes(hop, magnitudes, &above[0], &mut self.back, &mut below[source]);
                }
                Source::Attributes => {
                    let columns = network.attribute_columns(layer, k);
                    backward::spread(&Coefficients, hop, &self.differences[layer], columns.clone(), &mut self.h);
                    for row in 0..hop.rows() {
                        let above = self.sums[layer].row(row);
                        hop.row(row)
                            .for_each(|(n, p)| add_scaled(&mut self.k.row_mut(n)[columns.clone()], p.abs(), above));
                    }
                }
            }
        }
    }

    /// A bound on the gain of every flip that is left.
    pub(super) fn largest(&self, base: &Base, longest: f64) -> f64 {
        let rows = self.norms.iter().zip(&base.capacities).filter(|&(_, &capacity)| capacity > 0);
        rows.map(|(norm, _)| norm * longest).fold(0.0, f64::max)
    }

    /// Calls `visit` with every flip that may gain at least `threshold`, which is positive.
    pub(super) fn above(&self, target: &Target, base: &Base, threshold: f64, mut visit: impl FnMut(SlicedFlip)) {
        let (limits, weight) = (target.shared.limits, target.shared.network.attribute_weight());
        let attributes = target.shared.network.graph().attributes();
        let by_length = &target.tables.by_length;
        for (position, &node) in target.slice.level(0).iter().enumerate() {
            let norm = self.norms[position];
            if base.capacities[position] == 0 || norm * by_length.longest() < threshold {
                continue;
            }
            let (h, k, own) = (self.h.row(position), self.k.row(position), attributes.row(node as usize));
            if limits.deletions() {
                for &d in own.iter().filter(|&&d| norm * by_length.of(d) >= threshold) {
                    let (product, magnitude) = products(weight.row(d as usize), h, k);
                    if magnitude - product >= threshold && limits.flippable(AttributeId(d)) {
                        visit((position as u32, d));
                    }
                }
            }
            if limits.additions() {
                vectorised(|| {
                    for &d in by_length.down_to(threshold / norm) {
                        let (product, magnitude) = products(weight.row(d as usize), h, k);
                        if magnitude + product >= threshold
                            && own.binary_search(&d).is_err()
                            && limits.flippable(AttributeId(d))
                        {
                            visit((position as u32, d));
                        }
                    }
                });
            }
        }
    }
}

/// `W_d · h` and `|W_d| · k`.
#[inline(always)]
fn products(weight: &[f64], h: &[f64], k: &[f64]) -> (f64, f64) {
    let (mut products, mut magnitudes) = ([0.0; 8], [0.0; 8]);
    let ((w8, w), (h8, h), (k8, k)) = (weight.as_chunks::<8>(), h.as_chunks::<8>(), k.as_chunks::<8>());
    for ((w, h), k) in w8.iter().zip(h8).zip(k8) {
        for lane in 0..8 {
            products[lane] += w[lane] * h[lane];
            magnitudes[lane] += w[lane].abs() * k[lane];
        }
    }
    let (mut product, mut magnitude): (f64, f64) = (products.iter().sum(), magnitudes.iter().sum());
    for ((w, h), k) in w.iter().zip(h).zip(k) {
        product += w * h;
        magnitude += w.abs() * k;
    }
    (product, magnitude)
}

/// Adds `|P|ᵀ S |W|ᵀ`, given |W|.
fn spread_magnitudes(hop: &impl Hop, magnitudes: &Weight, above: &Matrix, back: &mut Vec<f64>, below: &mut Matrix) {
    for row in (0..above.rows()).filter(|&row| above.row(row).iter().any(|&sum| sum != 0.0)) {
        back.clear();
        match magnitudes {
            Weight::Dense(weight) => {
                backward::CarriedBack::through_matrix(&Coefficients, above.row(row), weight, back);
            }
            Weight::Scalar(factor) => back.extend(above.row(row).iter().map(|sum| factor * sum)),
        }
        hop.row(row).for_each(|(n, p)| add_scaled(below.row_mut(n), p.abs(), back));
    }
}

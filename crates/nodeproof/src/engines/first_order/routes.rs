//! What flips can gain at nodes that a slice leaves out, given no more than the weights of these (Lemma 75 of `docs/maths.md`).
//!
//! With w the weights of [`LeftOutNodes`], numbers p and q for each unit of a layer have, at every node of its level,
//!
//! ```text
//! |α| ≤ w p,   S arriving ≤ w q   and so   |λ| ≤ w p,   S ≤ w s,   s = q + (1 − β) p.
//! below the top hidden layer:   p = max_T max_m |λ_m W_Tᵀ| / w_m,   q = max_T max_m S_m |W_T|ᵀ / w_m   over the nodes m of its level,
//! further down:                 p = max_T p |W_T|ᵀ,                 q = max_T s |W_T|ᵀ
//! at the attributes:            ‖ |w_n| + S_n ‖ ≤ w ‖p + s‖.
//! ```

use super::RAISE;
use super::linearisation::Linearisation;
use super::screening::norm_of;
use super::target::Target;
use crate::dense::Matrix;
use crate::kernels::add_rows;
use crate::model::{Source, Weight};
use crate::rounding::FLOOR;
use crate::slice::LeftOutNodes;

/// This part of the magnitudes that are added up in a number is far more than rounding takes from it, layer after layer.
const ROUNDED: f64 = 1e-10;

/// At least `‖ |w_n| + S_n ‖` of every node of level 0 that the slice leaves out, given S of all layers but the last.
pub(super) fn norm_of_left_out(target: &Target, linear: &Linearisation, sums: &[Matrix], nodes: &LeftOutNodes) -> f64 {
    let layers = target.shared.network.layers();
    let top = target.hidden() - 1;
    let per_weight = |layer: usize, of: &Matrix| largest_per_weight(nodes.weights(layer + 1), of);
    let (mut p, mut s);
    if top == 0 {
        (p, s) = (per_weight(0, &linear.lambda[0]), per_weight(0, &sums[0]));
    } else {
        let mut q;
        (p, q) = below_top(target, linear, &sums[top], nodes.weights(top + 1));
        let mut layer = top - 1;
        loop {
            if linear.is_multiplied {
                // Multipliers, which only units of the slice have, are in λ, but not in α.
                raise(&mut p, per_weight(layer, &linear.lambda[layer]));
            }
            let bends = 1.0 - layers[layer].activation().slope();
            s = q.iter().zip(&p).map(|(q, p)| q + bends * p).collect();
            if layer == 0 {
                break;
            }
            let magnitudes = |k: usize| target.tables.transposed_magnitudes(layer, k);
            let through = |x: &[f64]| {
                let terms = layers[layer].terms().iter().enumerate();
                let reading = terms.filter(|(_, term)| matches!(term.source(), Source::Layer(_)));
                let mut most = vec![0.0; layers[layer - 1].units()];
                reading.for_each(|(k, _)| raise(&mut most, through(x, magnitudes(k)).into_iter().map(raised)));
                most
            };
            (p, q) = (through(&p), through(&s));
            layer -= 1;
        }
    }
    nodes.heaviest() * norm_of(p.iter().zip(&s).map(|(p, s)| p + s)) * RAISE + f64::MIN_POSITIVE
}

/// p and q of the layer below the top hidden one.
fn below_top(target: &Target, linear: &Linearisation, sums: &Matrix, weights: &[f64]) -> (Vec<f64>, Vec<f64>) {
    let (network, top) = (target.shared.network, target.hidden() - 1);
    let units = network.layers()[top - 1].units();
    let (mut p, mut q) = (vec![0.0; units], vec![0.0; units]);
    let terms = network.layers()[top].terms().iter().enumerate();
    for (k, _) in terms.filter(|(_, term)| matches!(term.source(), Source::Layer(_))) {
        for (row, &weight) in weights.iter().enumerate() {
            let (lambda, sums) = (linear.lambda[top].row(row), sums.row(row));
            if lambda.iter().chain(sums).all(|&x| x == 0.0) {
                continue;
            }
            let per_weight = |x: f64| per_weight(x, weight);
            raise(&mut p, through(lambda, target.tables.transposed(top, k)).into_iter().map(per_weight));
            let sums: Vec<f64> = sums.iter().zip(lambda).map(|(s, l)| s + ROUNDED * l.abs() + FLOOR).collect();
            let back = through(&sums, target.tables.transposed_magnitudes(top, k));
            raise(&mut q, back.into_iter().map(per_weight));
        }
    }
    (p, q)
}

/// `x Wᵀ`, given Wᵀ.
fn through(x: &[f64], transposed: &Weight) -> Vec<f64> {
    match transposed {
        Weight::Scalar(factor) => x.iter().map(|x| factor * x).collect(),
        Weight::Dense(transposed) => {
            let mut back = vec![0.0; transposed.columns()];
            add_rows(&mut back, x.iter().enumerate().map(|(unit, &x)| (x, transposed.row(unit))));
            back
        }
    }
}

/// For each column the largest magnitude of an entry, divided by the weight of its row.
fn largest_per_weight(weights: &[f64], of: &Matrix) -> Vec<f64> {
    let mut most = vec![0.0; of.columns()];
    for (row, &weight) in weights.iter().enumerate() {
        raise(&mut most, of.row(row).iter().map(|&x| per_weight(x, weight)));
    }
    most
}

/// At least `|x| / w`; infinite where a multiplier has made x something of nothing.
fn per_weight(x: f64, weight: f64) -> f64 {
    if x == 0.0 { 0.0 } else { raised(x) / weight + FLOOR }
}

/// More than rounding and underflow can have taken from a magnitude that is a sum of magnitudes.
fn raised(x: f64) -> f64 {
    x.abs() * RAISE + FLOOR
}

/// Replaces numbers by others that are larger, or no numbers.
fn raise(most: &mut [f64], others: impl IntoIterator<Item = f64>) {
    for (most, other) in most.iter_mut().zip(others) {
        if other > *most || other.is_nan() {
            *most = other;
        }
    }
}

//! Bounds of deeper layers by interval arithmetic.
//!
//! With `W₊ = max(W, 0)`, `W₋ = max(−W, 0)` and P ≥ 0:
//!
//! ```text
//! lo' = P (relu(lo) W₊ − relu(hi) W₋) + b,     hi' = P (relu(hi) W₊ − relu(lo) W₋) + b.
//! ```
//!
//! The paper has `lo` and `hi` in place of `relu(lo)` and `relu(hi)`, and no b. That is not sound: a unit with hi < 0
//! contributes 0, not `hi · w`, so that its `hi'` is too low for w > 0 and its `lo'` too high for w < 0.

use super::{ByBounds, LayerBounds, LayerError};
use crate::dense::{Matrix, add_scaled, relu};
use crate::model::Gradient;
use crate::network::{Network, add_activations};
use crate::rounding::{gamma_after, magnitude};
use crate::slice::Region;

/// Bounds of layer `layer` ≥ 1 from those of the layer `before` it.
pub(super) fn bounds(network: &Network, region: &Region, layer: usize, before: &LayerBounds) -> LayerBounds {
    let weight = network.layers()[layer].weight();
    let bias = network.layers()[layer].bias();
    let nodes = region.level(layer + 1).nodes();
    let (inputs, units) = (weight.rows(), weight.columns());
    // Per node: lo, hi and error of each unit, side by side.
    let packed = Matrix::par_fill(nodes.len(), 3 * units, |row, values| {
        let (lo, rest) = values.split_at_mut(units);
        let (hi, error) = rest.split_at_mut(units);
        let (mut low, mut high, mut off) = (vec![0.0; inputs], vec![0.0; inputs], vec![0.0; inputs]);
        let (neighbours, weights) = network.propagation().row(nodes[row] as usize);
        for (&n, &p) in neighbours.iter().zip(weights) {
            let place = region.level(layer).place(n);
            for j in 0..inputs {
                low[j] += p * relu(before.lo.get(place, j));
                high[j] += p * relu(before.hi.get(place, j));
                off[j] += p * before.error.unit(place, j);
            }
        }
        let gamma = gamma_after(neighbours.len() + inputs + 8);
        lo.copy_from_slice(bias);
        hi.copy_from_slice(bias);
        for (error, &b) in error.iter_mut().zip(bias) {
            *error = gamma * magnitude(b);
        }
        for j in 0..inputs {
            for (unit, &w) in weight.row(j).iter().enumerate() {
                let (smaller, larger) = if w >= 0.0 { (low[j], high[j]) } else { (high[j], low[j]) };
                lo[unit] += smaller * w;
                hi[unit] += larger * w;
                // Twice the propagated error: its own computation rounds, too.
                error[unit] += magnitude(w) * (2.0 * off[j] + gamma * magnitude(high[j]));
            }
        }
    });
    let part = |offset: usize| {
        let values = (0..nodes.len()).flat_map(|row| packed.row(row)[offset..offset + units].iter().copied());
        Matrix::from_values(nodes.len(), units, values.collect())
    };
    LayerBounds { lo: part(0), hi: part(units), error: LayerError::Deeper(part(2 * units)) }
}

/// Adds the derivative of a number by the layer's weight and bias to `gradient`, and that by the bounds of the layer
/// before to `by_before`, given that by the layer's own bounds.
pub(super) fn add_gradient(
    network: &Network,
    region: &Region,
    layer: usize,
    before: &LayerBounds,
    by: &ByBounds,
    by_before: &mut ByBounds,
    gradient: &mut Gradient,
) {
    let weight = network.layers()[layer].weight();
    let inputs = weight.rows();
    let (mut low, mut high) = (vec![0.0; inputs], vec![0.0; inputs]);
    let (mut by_low, mut by_high) = (vec![0.0; inputs], vec![0.0; inputs]);
    for (row, &m) in region.level(layer + 1).nodes().iter().enumerate() {
        let (by_lo, by_hi) = (by.lo.row(row), by.hi.row(row));
        if by_lo.iter().chain(by_hi).all(|&derivative| derivative == 0.0) {
            continue;
        }
        add_scaled(&mut gradient.biases[layer], 1.0, by_lo);
        add_scaled(&mut gradient.biases[layer], 1.0, by_hi);
        low.fill(0.0);
        high.fill(0.0);
        let (neighbours, weights) = network.propagation().row(m as usize);
        for (&n, &p) in neighbours.iter().zip(weights) {
            let place = region.level(layer).place(n);
            add_activations(&mut low, p, before.lo.row(place));
            add_activations(&mut high, p, before.hi.row(place));
        }
        for j in 0..inputs {
            (by_low[j], by_high[j]) = (0.0, 0.0);
            let by_weight = gradient.weights[layer].row_mut(j);
            for (unit, &w) in weight.row(j).iter().enumerate() {
                let (by_smaller, by_larger) =
                    if w >= 0.0 { (by_lo[unit], by_hi[unit]) } else { (by_hi[unit], by_lo[unit]) };
                by_low[j] += w * by_smaller;
                by_high[j] += w * by_larger;
                by_weight[unit] += low[j] * by_smaller + high[j] * by_larger;
            }
        }
        for (&n, &p) in neighbours.iter().zip(weights) {
            let place = region.level(layer).place(n);
            for j in 0..inputs {
                if before.lo.get(place, j) > 0.0 {
                    by_before.lo.row_mut(place)[j] += p * by_low[j];
                }
                if before.hi.get(place, j) > 0.0 {
                    by_before.hi.row_mut(place)[j] += p * by_high[j];
                }
            }
        }
    }
}

//! Bounds of deeper layers by interval arithmetic ([`Intervals`]), and their derivative.

use super::{ByBounds, Ends, LayerBounds};
use crate::backward::{self, CarriedBack};
use crate::dense::add_scaled;
use crate::forward::{self, Activation, Carried, Interval, Intervals};
use crate::gradient::Gradient;
use crate::network::Network;
use crate::slice::{Hop, Region};

/// Bounds of layer `layer` ≥ 1 from those of the layer `before` it.
pub(super) fn bounds(network: &Network, region: &Region, layer: usize, before: &LayerBounds) -> LayerBounds {
    let hop = region.hop(network.propagation(), layer);
    let bounds = forward::layer::<Intervals>(&hop, &network.layers()[layer], &before.intervals(), Activation::Relu);
    LayerBounds::deeper(&bounds)
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
    let hop = region.hop(network.propagation(), layer);
    let intervals = before.intervals();
    let mut sums = vec![Interval::default(); weight.rows()];
    for row in (0..by.rows()).filter(|&row| !by.row(row).iter().all(Ends::is_zero)) {
        let by = by.row(row);
        for end in [|by: &Ends| by.lo, |by: &Ends| by.hi] {
            let by_bias: Vec<f64> = by.iter().map(end).collect();
            add_scaled(&mut gradient.biases[layer], 1.0, &by_bias);
        }
        sums.fill(Interval::default());
        Intervals::gather(&mut sums, hop.row(row).map(|(n, p)| (p, intervals.row(n))), Activation::Relu);
        for (input, sum) in sums.iter().enumerate() {
            let by_weight = gradient.weights[layer].row_mut(input).iter_mut();
            for ((by_weight, &w), by) in by_weight.zip(weight.row(input)).zip(by) {
                let (by_smaller, by_larger) = by.of_weight(w);
                *by_weight += sum.lo * by_smaller + sum.hi * by_larger;
            }
        }
    }
    backward::layer(&ByEnds { before }, &hop, weight, by, &mut Vec::new(), by_before);
}

impl Ends {
    fn is_zero(&self) -> bool {
        self.lo == 0.0 && self.hi == 0.0
    }

    /// The derivatives that a weight's smaller and larger input get: a negative weight turns the ends around.
    fn of_weight(self, w: f64) -> (f64, f64) {
        if w >= 0.0 { (self.lo, self.hi) } else { (self.hi, self.lo) }
    }
}

/// Derivatives by lo and hi, on their way back through the interval arithmetic.
struct ByEnds<'a> {
    before: &'a LayerBounds,
}

impl CarriedBack for ByEnds<'_> {
    type Number = Ends;

    fn is_zero(&self, above: &[Ends]) -> bool {
        above.iter().all(Ends::is_zero)
    }

    fn through_weight(&self, above: &[Ends], weight: &[f64]) -> Ends {
        let mut sum = Ends::default();
        for (by, &w) in above.iter().zip(weight) {
            let (by_smaller, by_larger) = by.of_weight(w);
            sum.lo += w * by_smaller;
            sum.hi += w * by_larger;
        }
        sum
    }

    fn spread(&self, n: usize, below: &mut [Ends], p: f64, back: &[Ends]) {
        let bounds = self.before.lo.row(n).iter().zip(self.before.hi.row(n));
        for ((below, back), (&lo, &hi)) in below.iter_mut().zip(back).zip(bounds) {
            if lo > 0.0 {
                below.lo += p * back.lo;
            }
            if hi > 0.0 {
                below.hi += p * back.hi;
            }
        }
    }
}

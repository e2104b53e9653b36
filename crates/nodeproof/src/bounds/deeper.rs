//! Bounds of what layers make of other layers by interval arithmetic ([`Intervals`]), and their derivative.

use super::{AttributeError, ByBounds, Ends, LayerBounds};
use crate::backward::{self, CarriedBack};
use crate::dense::par_fill;
use crate::forward::{self, Interval, Intervals, Link};
use crate::gradient::Gradient;
use crate::matrix::Matrix;
use crate::model::{Activation, Source, Weight};
use crate::network::Network;
use crate::slice::{Hop, Region, RegionHop};

/// Bounds of layer `layer` from those of the layers `before` it and of what it makes of the attributes, with its error, if it
/// reads them.
pub(super) fn bounds(
    network: &Network,
    region: &Region,
    layer: usize,
    before: &[LayerBounds],
    of_attributes: Option<(&LayerBounds, &AttributeError)>,
) -> LayerBounds {
    let before = Before::new(network, layer, before);
    // What a layer makes of the attributes has its bias and its constants in it.
    let links = before.links(network, region, layer, of_attributes.is_none());
    let (rows, bias) = (region.level(layer + 1).nodes().len(), network.layers()[layer].bias());
    let made = match of_attributes {
        None => forward::layer::<Intervals>(rows, bias, &links),
        Some((part, error)) => par_fill(rows, bias.len(), |row, out| {
            let gamma = forward::gamma_of(&links, row);
            for (unit, out) in out.iter_mut().enumerate() {
                // Every addition rounds relative to the whole sum, and so to the part as well.
                let error = error.unit(row, unit) + gamma * error.magnitude(row, unit);
                *out = Interval { lo: part.lo.get(row, unit), hi: part.hi.get(row, unit), error };
            }
            forward::add_terms::<Intervals>(&links, row, gamma, &mut Vec::new(), out);
        }),
    };
    LayerBounds::of_intervals(&made)
}

/// What a layer reads: bounds of other layers, and the constant 1.
struct Before {
    /// Empty for layers that it does not read.
    intervals: Vec<Matrix<Interval>>,
    one: Matrix<Interval>,
}

impl Before {
    fn new(network: &Network, layer: usize, before: &[LayerBounds]) -> Self {
        let is_read = |i: usize| network.layers()[layer].terms().iter().any(|term| term.source() == Source::Layer(i));
        let intervals =
            |(i, bounds): (usize, &LayerBounds)| if is_read(i) { bounds.intervals() } else { Matrix::default() };
        let one = Matrix::from_values(1, 1, vec![Interval { lo: 1.0, hi: 1.0, error: 0.0 }]);
        Self { intervals: before.iter().take(layer).enumerate().map(intervals).collect(), one }
    }

    /// The terms that read them, those of the constant 1 only if asked for.
    fn links<'l>(
        &'l self,
        network: &'l Network,
        region: &'l Region,
        layer: usize,
        constants: bool,
    ) -> Vec<Link<'l, RegionHop<'l>, Interval>> {
        let mut links = Vec::new();
        for (k, term) in network.layers()[layer].terms().iter().enumerate() {
            let (below, activation) = match term.source() {
                Source::Layer(i) => (&self.intervals[i], network.layers()[i].activation()),
                Source::Ones if constants => (&self.one, Activation::None),
                Source::Ones | Source::Attributes => continue,
            };
            let (hop, columns) = (network.hop(region, layer, k), 0..below.columns());
            links.push(Link { hop, below, columns, activation, weight: Some(term.weight()) });
        }
        links
    }
}

/// Adds the derivative of a number by the weights of terms that read other layers to `gradient`, and that by the bounds of those
/// layers to `by_before`, given that by the layer's own bounds.
pub(super) fn add_gradient(
    network: &Network,
    region: &Region,
    layer: usize,
    bounds: &[LayerBounds],
    by: &ByBounds,
    by_before: &mut [ByBounds],
    gradient: &mut Gradient,
) {
    for (k, term) in network.layers()[layer].terms().iter().enumerate() {
        let Source::Layer(source) = term.source() else { continue };
        let (hop, activation) = (network.hop(region, layer, k), network.layers()[source].activation());
        if let (Weight::Dense(weight), Some(gradient)) = (term.weight(), &mut gradient.weights[layer][k]) {
            let intervals = bounds[source].intervals();
            let mut sums = vec![Interval::default(); weight.rows()];
            for row in (0..by.rows()).filter(|&row| !by.row(row).iter().all(Ends::is_zero)) {
                let by = by.row(row);
                sums.fill(Interval::default());
                let rows = hop.row(row).map(|(n, p)| (p, intervals.row(n)));
                <Intervals as forward::Carried>::gather(&mut sums, rows, activation, 0.0);
                for (input, sum) in sums.iter().enumerate() {
                    let by_weight = gradient.row_mut(input).iter_mut();
                    for ((by_weight, &w), by) in by_weight.zip(weight.row(input)).zip(by) {
                        let (by_smaller, by_larger) = by.through(w);
                        *by_weight += sum.lo * by_smaller + sum.hi * by_larger;
                    }
                }
            }
        }
        let ends = ByEnds { before: &bounds[source], slope: activation.slope() };
        backward::term(&ends, &hop, term.weight(), by, &mut Vec::new(), &mut by_before[source]);
    }
}

impl Ends {
    fn is_zero(&self) -> bool {
        self.lo == 0.0 && self.hi == 0.0
    }

    /// The derivatives that the smaller and the larger end of what a factor multiplies get: a negative one turns them around.
    fn through(self, factor: f64) -> (f64, f64) {
        if factor >= 0.0 { (self.lo, self.hi) } else { (self.hi, self.lo) }
    }
}

/// Derivatives by lo and hi, on their way back through the interval arithmetic.
struct ByEnds<'a> {
    before: &'a LayerBounds,
    /// That of the activation below 0.
    slope: f64,
}

impl CarriedBack for ByEnds<'_> {
    type Number = Ends;

    fn is_zero(&self, above: &[Ends]) -> bool {
        above.iter().all(Ends::is_zero)
    }

    fn through_weight(&self, above: &[Ends], weight: &[f64]) -> Ends {
        let mut sum = Ends::default();
        for (by, &w) in above.iter().zip(weight) {
            let (by_smaller, by_larger) = by.through(w);
            sum.lo += w * by_smaller;
            sum.hi += w * by_larger;
        }
        sum
    }

    fn spread(&self, n: usize, below: &mut [Ends], p: f64, back: &[Ends]) {
        let slope = |x: f64| if x > 0.0 { 1.0 } else { self.slope };
        let bounds = self.before.lo.row(n).iter().zip(self.before.hi.row(n));
        for ((below, back), (&lo, &hi)) in below.iter_mut().zip(back).zip(bounds) {
            let (by_smaller, by_larger) = back.through(p);
            below.lo += p * slope(lo) * by_smaller;
            below.hi += p * slope(hi) * by_larger;
        }
    }
}

//! The network linearised at a base point, and what flips gain (Lemmas 37 to 40 of `docs/maths.md`).

use std::collections::BTreeMap;

use nodeproof_problem::{ClassId, UnitSlope};

use crate::base::{Base, Unit};
use crate::interval::{Interval, down, relu, up};
use crate::network::{Units, length};
use crate::number::Number;

/// For every set F of a base point
///
/// ```text
/// margin(F) ≥ constant − Σ_{f ∈ F} gain_f,   gain_f = −w_n · δ_f + Σ_units cost · excess_f
/// ```
///
/// with δ_f what the flip adds to `X_n W`, and w the gradient.
pub(crate) struct Linearised<'b, 'n> {
    base: &'b Base<'n>,
    pub(crate) constant: f64,
    /// w, for each row of the region.
    gradient: Units<Interval>,
    /// Of each unit of each layer but the last: how it is, and what its excess costs.
    units: Vec<Units<Unit>>,
    costs: Vec<Units<f64>>,
}

impl<'b, 'n> Linearised<'b, 'n> {
    /// Goes back from the margin, with lines of these slopes below some activations; `None` if they are not below.
    pub(crate) fn new(base: &'b Base<'n>, (y, k): (ClassId, ClassId), slopes: &[UnitSlope]) -> Option<Self> {
        let (network, region) = (base.network, base.region);
        let (layers, last) = (network.layers(), network.layers().len() - 1);
        let zeros = |layer: usize| vec![vec![Interval::ZERO; layers[layer].units()]; region.nodes[layer].len()];
        let mut lambda: Vec<Units<Interval>> = (0..=last).map(zeros).collect();
        lambda[last][0][y.index()] = Interval::of(1.0);
        lambda[last][0][k.index()] = Interval::of(-1.0);
        let mut gradient = vec![vec![Interval::ZERO; network.weight.columns()]; region.rows.len()];
        let units: Vec<Units<Unit>> = (0..last).map(|layer| base.units(layer)).collect();
        let mut costs: Vec<Units<f64>> =
            units.iter().map(|of| of.iter().map(|of| vec![0.0; of.len()]).collect()).collect();
        let lines = lines(base, slopes)?;
        let mut constant = base.margin((y, k)).lo;
        for layer in (0..=last).rev() {
            let below = layers[layer].activation().slope();
            for (m, lambda) in lambda[layer].iter_mut().enumerate().filter(|_| layer < last) {
                for (j, alpha) in lambda.iter_mut().enumerate() {
                    let (z, on) = (base.z[layer][m][j], units[layer][m][j].on);
                    // Where α ≥ 0, activation(Z) ≥ slope · Z; where α < 0, it is the tangent and the excess.
                    let line = lines.get(&(layer, m, j)).filter(|_| alpha.lo >= 0.0);
                    let slope = line.copied().unwrap_or(if on { 1.0 } else { below });
                    let lost = up(up(up(1.0 - slope) * relu(z.hi)) + up(up(slope - below) * relu(-z.lo)));
                    constant = down(constant - up(relu(alpha.hi) * lost));
                    costs[layer][m][j] = up(relu(-alpha.lo) * up(1.0 - below));
                    *alpha = alpha.times(slope);
                }
            }
            let (lower, upper) = lambda.split_at_mut(layer);
            region.back(network, layer, &upper[0], lower, &mut gradient);
        }
        Some(Self { base, constant, gradient, units, costs })
    }

    /// At most what a move of a row gains that adds `change` to its `X_n W`, and stands for at least so many flips.
    pub(crate) fn gain(&self, row: usize, change: &[Interval], flips: f64) -> f64 {
        let (network, region) = (self.base.network, self.base.region);
        let products = self.gradient[row].iter().zip(change).map(|(&w, &x)| w.product(x));
        let mut gain = products.fold(Interval::ZERO, |sum, product| sum + -product).hi;
        // What each layer's activations are moved by.
        let mut all: Vec<Units<Interval>> = Vec::new();
        for (layer, (units, costs)) in self.units.iter().zip(&self.costs).enumerate() {
            let mut moves = region.arrive(network, layer, std::iter::once((row, change)), &all);
            let below = network.layers()[layer].activation().slope();
            for ((moves, units), costs) in moves.iter_mut().zip(units).zip(costs) {
                for ((by, unit), &cost) in moves.iter_mut().zip(units).zip(costs) {
                    let unit = Unit {
                        threshold: if flips == 1.0 { unit.threshold } else { down(unit.threshold * flips) },
                        ..*unit
                    };
                    let excess = unit.excess(if unit.on { -by.lo } else { by.hi });
                    gain = if excess == 0.0 { gain } else { up(gain + up(cost * excess)) };
                    *by = unit.bent(*by, below);
                }
            }
            all.push(moves);
        }
        gain
    }

    /// What bounds the gains of all flips of each row (Lemma 40).
    pub(crate) fn queries(&self) -> Vec<Query> {
        let (network, region) = (self.base.network, self.base.region);
        let zeros = |of: &Units<Unit>| of.iter().map(|of| vec![Interval::ZERO; of.len()]).collect();
        // A move up costs at most `hi` times as much, one down `-lo` times.
        let mut carried: Vec<Units<Interval>> = self.units.iter().map(zeros).collect();
        let mut at_rows = vec![vec![Interval::ZERO; network.weight.columns()]; region.rows.len()];
        for layer in (0..carried.len()).rev() {
            let below = network.layers()[layer].activation().slope();
            for (m, carried) in carried[layer].iter_mut().enumerate() {
                for (j, costs) in carried.iter_mut().enumerate() {
                    let (unit, of_excess) = (self.units[layer][m][j], self.costs[layer][m][j]);
                    if unit.on {
                        costs.lo = down(costs.lo - of_excess);
                    } else {
                        let fall = if unit.is_sure { below } else { 1.0 };
                        *costs = Interval { lo: down(costs.lo * fall), hi: up(costs.hi + of_excess) };
                    }
                }
            }
            let (lower, upper) = carried.split_at_mut(layer);
            region.back(network, layer, &upper[0], lower, &mut at_rows);
        }
        at_rows.iter().zip(&self.gradient).map(|(costs, gradient)| Query::new(costs, gradient)).collect()
    }
}

/// The slopes of lines by layer, place of the node and unit, if the activations are above all of them.
fn lines(base: &Base, slopes: &[UnitSlope]) -> Option<BTreeMap<(usize, usize, usize), f64>> {
    let line = |of: &UnitSlope| {
        let (layer, unit) = (of.layer as usize, of.unit as usize);
        let in_layer = base.network.layers().get(layer).filter(|in_layer| unit < in_layer.units())?;
        let place = base.region.nodes[layer].binary_search(&of.node).ok()?;
        let is_below = (in_layer.activation().slope()..=1.0).contains(&of.slope);
        is_below.then_some(((layer, place, unit), of.slope))
    };
    slopes.iter().map(line).collect()
}

impl Unit {
    /// What a move towards 0 and beyond exceeds the threshold by.
    #[inline]
    fn excess(self, by: f64) -> f64 {
        if by <= self.threshold { 0.0 } else { up(by - self.threshold) }
    }

    /// A move after an activation whose slope left of 0 is `below` (Lemma 38).
    #[inline]
    fn bent(self, by: Interval, below: f64) -> Interval {
        let scaled = by.times(below);
        if !self.is_sure {
            let lo = if by.lo >= 0.0 { scaled.lo } else { by.lo };
            return Interval { lo, hi: if by.hi <= 0.0 { scaled.hi } else { by.hi } };
        }
        let straight = if self.on { by } else { scaled };
        let excess = self.excess(if self.on { -by.hi } else { by.hi });
        if excess == 0.0 {
            straight
        } else {
            Interval { hi: up(straight.hi + up(up(1.0 - below) * excess)), ..straight }
        }
    }
}

/// What adds δ to `X_n W` gains at most the upper end of `Σ_j q_j δ_j`.
pub(crate) struct Query {
    q: Vec<Interval>,
    /// At least the length of any q.
    pub(crate) length: f64,
}

impl Query {
    fn new(costs: &[Interval], gradient: &[Interval]) -> Self {
        let q: Vec<Interval> = costs.iter().zip(gradient).map(|(&costs, &w)| costs + -w).collect();
        let length = length(q.iter().map(|q| q.size()));
        Self { q, length }
    }

    /// At most what is gained by what adds `change` to `X_n W`.
    pub(crate) fn bound(&self, change: &[Interval]) -> f64 {
        self.q.iter().zip(change).fold(0.0, |sum, (q, &by)| up(sum + q.product(by).hi))
    }

    /// At most what is gained by what adds `weights` of at most this length to `X_n W`, and by what takes them away: the sums are off by
    /// less than what is added to them (Lemma 51).
    #[inline]
    pub(crate) fn bounds(&self, weights: &[f64], length: f64) -> (f64, f64) {
        let (mut added, mut taken) = (0.0, 0.0);
        for (&w, q) in weights.iter().zip(&self.q) {
            let (above, below) = (w.max(0.0), w.min(0.0));
            added += above * q.hi + below * q.lo;
            taken -= above * q.lo + below * q.hi;
        }
        let error = 2.0 * (weights.len() as f64 + 8.0) * f64::EPSILON * self.length * length + f64::MIN_POSITIVE;
        (up(added + error), up(taken + error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lemma 51: sums that are added up in doubles are off by less than what is added to them, and that is what the lemma says.
    #[test]
    fn sums_are_off_by_less_than_is_added() {
        for n in 1..6 {
            let number = |i: usize| ((i + n) as f64 * 0.618).fract() - 0.5;
            let gradient: Vec<Interval> = (0..n).map(|i| -Interval::of(number(i))).collect();
            let query = Query::new(&vec![Interval::ZERO; n], &gradient);
            let weights: Vec<f64> = (0..n).map(|i| 3.0 * number(i + 7)).collect();
            let length = length(weights.iter().copied());
            let exact: f64 = (0..n).map(|i| number(i) * weights[i]).sum();
            let (added, taken) = query.bounds(&weights, length);
            let error = 2.0 * (n as f64 + 8.0) * f64::EPSILON * query.length * length;
            let rounding = 8.0 * f64::EPSILON * query.length * length;
            for (bound, sum) in [(added, exact), (taken, -exact)] {
                assert!(
                    bound - sum >= error - rounding && bound - sum <= error + rounding,
                    "{n}: {:e}, {error:e}",
                    bound - sum
                );
            }
        }
        let tiny = Query::new(&[Interval::ZERO], &[Interval::of(1e-200)]);
        let (added, taken) = tiny.bounds(&[1e-200], length([1e-200].into_iter()));
        assert!(added >= f64::MIN_POSITIVE && taken >= f64::MIN_POSITIVE, "products that underflow");
    }

    /// Where ends of coefficients differ, sums take the larger of what they make.
    #[test]
    fn sums_are_those_of_the_right_ends() {
        let query = Query::new(&[Interval { lo: -1.0, hi: 2.0 }, Interval { lo: -3.0, hi: 5.0 }], &[Interval::ZERO; 2]);
        let near = |x: (f64, f64), y: (f64, f64)| (x.0 - y.0).abs() < 1e-12 && (x.1 - y.1).abs() < 1e-12;
        assert!(near(query.bounds(&[10.0, 1.0], 11.0), (25.0, 13.0)));
        assert!(near(query.bounds(&[-10.0, 1.0], 11.0), (15.0, 23.0)));
        assert!(near(query.bounds(&[-10.0, -1.0], 11.0), (13.0, 25.0)));
        for weights in [[10.0, 1.0], [-10.0, 1.0], [10.0, -1.0]] {
            let change = weights.map(Interval::of);
            assert!((query.bound(&change) - query.bounds(&weights, 11.0).0).abs() < 1e-12);
        }
    }

    /// The table of Lemma 38.
    #[test]
    fn moves_are_bent_as_the_table_has_it() {
        let unit = |on, is_sure, threshold| Unit { on, is_sure, threshold };
        let bent = |of: Unit, lo: f64, hi: f64, below: f64| {
            let by = of.bent(Interval { lo, hi }, below);
            (by.lo, by.hi)
        };
        let near = |x: (f64, f64), y: (f64, f64)| (x.0 - y.0).abs() < 1e-12 && (x.1 - y.1).abs() < 1e-12;
        for below in [0.0, 0.25] {
            let off = unit(false, true, 1.0);
            assert!(near(bent(off, -2.0, 1.0, below), (-2.0 * below, below)), "no further than the threshold");
            assert!(near(bent(off, -2.0, 3.0, below), (-2.0 * below, 3.0 * below + (1.0 - below) * 2.0)));
            let on = unit(true, true, 1.0);
            assert!(near(bent(on, -2.0, -1.0, below), (-2.0, -1.0)), "no further than the threshold");
            assert!(near(bent(on, -5.0, -3.0, below), (-5.0, -3.0 + (1.0 - below) * 2.0)));
            let unsure = unit(false, false, 0.0);
            assert!(near(bent(unsure, -2.0, 3.0, below), (-2.0, 3.0)));
            assert!(near(bent(unsure, 2.0, 3.0, below), (2.0 * below, 3.0)));
            assert!(near(bent(unsure, -3.0, -2.0, below), (-3.0, -2.0 * below)));
        }
    }
}

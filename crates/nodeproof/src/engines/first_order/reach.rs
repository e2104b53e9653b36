//! How far one flip can move a unit, whatever the target and the budget.

use std::ops::Range;

use super::RAISE;
use crate::dense::Matrix;
use crate::ids::AttributeId;
use crate::model::{Source, Weight};
use crate::network::Network;
use crate::rounding::{floor_through_layers, magnitude};

/// One flip moves unit j of layer i at node m by at most `nodes[i][m] · units[i][j]` (Lemma 37 of `docs/maths.md`).
///
/// With `Aⁱ = Σ |W|` over the terms that read the attributes, its rows times the most that a flip changes an entry by, plus `Σ Aˢ |W|` over those that read layer s, attributes × units,
/// `units` are the largest entries of the columns of Aⁱ. `nodes` are, for the term for which that is most, the largest `|P_mn|` of
/// the row, or `Σ_n |P_mn| nodesˢ_n`.
#[derive(Debug)]
pub(crate) struct Reach {
    nodes: Vec<Vec<f64>>,
    units: Vec<Vec<f64>>,
    /// What underflow on the way may cost, raised as [`floor_through_layers`] says.
    pub(super) floor: f64,
}

impl Reach {
    pub(crate) fn of(network: &Network) -> Self {
        Self::with_factors(network, |_| 1.0)
    }

    /// That of a network whose rows are divided by the number of their ones, given the fewest, but at least 1, that a row can have: a flip
    /// does `σ (W_d − μ) / m'`, and no entry of μ is larger than the largest weight.
    pub(crate) fn of_normalised(network: &Network, fewest: impl Fn(u32) -> f64) -> Self {
        Self::with_factors(network, |n| 1.0 / fewest(n))
    }

    /// With what each node sends multiplied by a factor.
    fn with_factors(network: &Network, factor: impl Fn(u32) -> f64) -> Self {
        let count = network.graph().nodes();
        let mut effects: Vec<Matrix> = Vec::new();
        let mut all = Self { nodes: Vec::new(), units: Vec::new(), floor: floor_through_layers(network) };
        for (i, layer) in network.layers().iter().enumerate() {
            let (mut nodes, mut effect) =
                (vec![0.0; count], Matrix::zeros(network.model().attributes(), layer.units()));
            for (k, term) in layer.terms().iter().enumerate() {
                let (matrix, rows) = (network.matrix(i, k), 0..count);
                let of_term: Vec<f64> = match term.source() {
                    Source::Ones => continue,
                    Source::Attributes => {
                        add_magnitudes(&mut effect, network, i, k);
                        let largest = |m: usize| {
                            let (columns, weights) = matrix.row(m);
                            let sizes = columns.iter().zip(weights).map(|(&n, p)| p.abs() * factor(n));
                            sizes.fold(0.0, f64::max)
                        };
                        rows.map(largest).collect()
                    }
                    Source::Layer(source) => {
                        add_product(&mut effect, &effects[source], term.weight());
                        let below: &[f64] = &all.nodes[source];
                        let sum = |m: usize| {
                            let (columns, weights) = matrix.row(m);
                            columns.iter().zip(weights).map(|(&n, p)| magnitude(p * below[n as usize])).sum::<f64>()
                        };
                        rows.map(sum).collect()
                    }
                };
                nodes.iter_mut().zip(of_term).for_each(|(node, of_term)| *node = f64::max(*node, of_term * RAISE));
            }
            let mut units = vec![0.0; layer.units()];
            for d in 0..effect.rows() {
                units.iter_mut().zip(effect.row(d)).for_each(|(unit, &effect)| *unit = f64::max(*unit, effect * RAISE));
            }
            effects.push(effect);
            all.nodes.push(nodes);
            all.units.push(units);
        }
        all
    }

    /// That of a unit of a node.
    #[inline]
    pub(super) fn unit(&self, layer: usize, node: u32, unit: usize) -> f64 {
        self.nodes[layer][node as usize] * self.units[layer][unit] * RAISE + self.floor
    }
}

/// Adds |W| of a term that reads the attributes, times the most that a flip changes an entry by.
fn add_magnitudes(effect: &mut Matrix, network: &Network, layer: usize, term: usize) {
    let columns = network.attribute_columns(layer, term);
    for d in 0..effect.rows() {
        let weights = &network.attribute_weight().row(d)[columns.clone()];
        let width = network.graph().values().map_or(1.0, |values| values.widest(AttributeId(d as u32)));
        effect.row_mut(d).iter_mut().zip(weights).for_each(|(effect, w)| *effect += magnitude(width * w));
    }
    if network.graph().kind().is_normalised() {
        add_largest(effect, network, columns);
    }
}

/// Adds the largest |W| of each unit, which no entry of μ exceeds.
fn add_largest(effect: &mut Matrix, network: &Network, columns: Range<usize>) {
    let weight = network.attribute_weight();
    let size = |unit: usize| (0..weight.rows()).map(|d| magnitude(weight.get(d, unit))).fold(0.0, f64::max);
    let largest: Vec<f64> = columns.map(size).collect();
    for d in 0..effect.rows() {
        effect.row_mut(d).iter_mut().zip(&largest).for_each(|(effect, largest)| *effect += largest);
    }
}

/// Adds `A |W|`.
fn add_product(effect: &mut Matrix, below: &Matrix, weight: &Weight) {
    for d in 0..effect.rows() {
        let row = effect.row_mut(d);
        match weight {
            Weight::Scalar(factor) => {
                row.iter_mut().zip(below.row(d)).for_each(|(effect, a)| *effect += magnitude(factor * a));
            }
            Weight::Dense(weight) => {
                for (input, &a) in below.row(d).iter().enumerate() {
                    row.iter_mut().zip(weight.row(input)).for_each(|(effect, w)| *effect += magnitude(a * w));
                }
            }
        }
    }
}

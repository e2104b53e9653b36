//! How far one flip can move a unit, whatever the target and the budget.

use super::RAISE;
use crate::dense::Matrix;
use crate::model::{Source, Weight};
use crate::network::Network;
use crate::rounding::{floor_through_layers, magnitude};

/// One flip moves unit j of layer i at node m by at most `nodes[i][m] · units[i][j]` (Lemma 37 of `docs/maths.md`).
///
/// With `Aⁱ = Σ |W|` over the terms that read the attributes, plus `Σ Aˢ |W|` over those that read layer s, attributes × units,
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
                        rows.map(|m| matrix.row(m).1.iter().fold(0.0, |most: f64, p| most.max(p.abs()))).collect()
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

/// Adds |W| of a term that reads the attributes.
fn add_magnitudes(effect: &mut Matrix, network: &Network, layer: usize, term: usize) {
    let columns = network.attribute_columns(layer, term);
    for d in 0..effect.rows() {
        let weights = &network.attribute_weight().row(d)[columns.clone()];
        effect.row_mut(d).iter_mut().zip(weights).for_each(|(effect, w)| *effect += magnitude(*w));
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

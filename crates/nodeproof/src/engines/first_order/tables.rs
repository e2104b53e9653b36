//! What bounds of first order need of a network, whatever the target and the budget.

use super::reach::Reach;
use crate::dense::{Matrix, add_scaled};
use crate::kernels::{add_rows, vectorised};
use crate::model::{Term, Weight};
use crate::network::Network;
use crate::search::norm_above;
use crate::slice::Hop;

/// Tables of a network.
#[derive(Debug)]
pub(crate) struct Tables {
    pub(super) reach: Reach,
    /// Wᵀ and |W|ᵀ of each term of each layer.
    turned: Vec<Vec<(Weight, Weight)>>,
    pub(super) by_length: ByLength,
}

impl Tables {
    pub(crate) fn new(network: &Network) -> Self {
        let layers = network.layers().iter();
        let turned = |term: &Term| {
            let turned = transposed(term.weight());
            let magnitudes = magnitude(&turned);
            (turned, magnitudes)
        };
        Self {
            reach: Reach::of(network),
            turned: layers.map(|layer| layer.terms().iter().map(turned).collect()).collect(),
            by_length: ByLength::new(network.attribute_weight()),
        }
    }

    /// Adds `Pᵀ λ Wᵀ` of a term to `below`, where λ are the rows of `above`; `back` is scratch space.
    pub(super) fn carry_back(
        &self,
        (layer, term): (usize, usize),
        hop: &impl Hop,
        above: &Matrix,
        back: &mut Vec<f64>,
        below: &mut Matrix,
    ) {
        carry_back(hop, |p| p, &self.turned[layer][term].0, above, back, below);
    }

    /// Adds `|P|ᵀ λ |W|ᵀ`.
    pub(super) fn carry_magnitudes_back(
        &self,
        (layer, term): (usize, usize),
        hop: &impl Hop,
        above: &Matrix,
        back: &mut Vec<f64>,
        below: &mut Matrix,
    ) {
        carry_back(hop, f64::abs, &self.turned[layer][term].1, above, back, below);
    }
}

/// Adds `Pᵀ λ Wᵀ`, given Wᵀ and what to make of P. It adds up row after row of Wᵀ, which takes less than the inner products of
/// [`backward::term`](crate::backward::term).
fn carry_back(
    hop: &impl Hop,
    of_p: impl Fn(f64) -> f64,
    turned: &Weight,
    above: &Matrix,
    back: &mut Vec<f64>,
    below: &mut Matrix,
) {
    vectorised(|| {
        for row in 0..above.rows() {
            let above = above.row(row);
            back.clear();
            match turned {
                Weight::Dense(turned) => {
                    back.resize(turned.columns(), 0.0);
                    add_rows(back, above.iter().enumerate().map(|(unit, &lambda)| (lambda, turned.row(unit))));
                }
                Weight::Scalar(factor) => back.extend(above.iter().map(|lambda| factor * lambda)),
            }
            hop.row(row).for_each(|(n, p)| add_scaled(below.row_mut(n), of_p(p), back));
        }
    });
}

fn transposed(weight: &Weight) -> Weight {
    match weight {
        Weight::Scalar(factor) => Weight::Scalar(*factor),
        Weight::Dense(weight) => Weight::Dense(weight.transposed()),
    }
}

fn magnitude(weight: &Weight) -> Weight {
    match weight {
        Weight::Scalar(factor) => Weight::Scalar(factor.abs()),
        Weight::Dense(weight) => {
            let values = weight.values().iter().map(|w| w.abs()).collect();
            Weight::Dense(Matrix::from_values(weight.rows(), weight.columns(), values))
        }
    }
}

/// The attributes by falling norm of their weights.
#[derive(Debug)]
pub(super) struct ByLength {
    attributes: Vec<u32>,
    /// Upper bounds of the norms of all attributes, and in the order of `attributes`.
    lengths: Vec<f64>,
    falling: Vec<f64>,
}

impl ByLength {
    fn new(weight: &Matrix) -> Self {
        let lengths: Vec<f64> = (0..weight.rows()).map(|d| norm_above(weight.row(d))).collect();
        let mut attributes: Vec<u32> = (0..weight.rows() as u32).collect();
        attributes.sort_by(|&a, &b| lengths[b as usize].total_cmp(&lengths[a as usize]));
        let falling = attributes.iter().map(|&d| lengths[d as usize]).collect();
        Self { attributes, lengths, falling }
    }

    /// The largest norm.
    pub(super) fn longest(&self) -> f64 {
        self.falling.first().copied().unwrap_or(0.0)
    }

    /// That of an attribute.
    #[inline]
    pub(super) fn of(&self, attribute: u32) -> f64 {
        self.lengths[attribute as usize]
    }

    /// The attributes whose norm is at least `length`.
    pub(super) fn down_to(&self, length: f64) -> &[u32] {
        &self.attributes[..self.falling.partition_point(|&falling| falling >= length)]
    }
}

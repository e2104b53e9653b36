//! What bounds of first order need of a network, whatever the target and the budget.

use super::RAISE;
use super::reach::Reach;
use crate::dense::Matrix;
use crate::ids::AttributeId;
use crate::model::{Term, Weight};
use crate::network::Network;
use crate::search::norm_above;

/// Tables of a network.
#[derive(Debug)]
pub(crate) struct Tables {
    pub(super) reach: Reach,
    /// Wᵀ and |W|ᵀ of each term of each layer.
    transposed: Vec<Vec<(Weight, Weight)>>,
    pub(super) by_length: ByLength,
}

impl Tables {
    pub(crate) fn new(network: &Network) -> Self {
        let layers = network.layers().iter();
        let both = |term: &Term| {
            let transposed = transposed(term.weight());
            let magnitudes = magnitude(&transposed);
            (transposed, magnitudes)
        };
        Self {
            reach: Reach::of(network),
            transposed: layers.map(|layer| layer.terms().iter().map(both).collect()).collect(),
            by_length: ByLength::new(network),
        }
    }

    /// Wᵀ of a term.
    pub(super) fn transposed(&self, layer: usize, term: usize) -> &Weight {
        &self.transposed[layer][term].0
    }

    /// |W|ᵀ of a term.
    pub(super) fn transposed_magnitudes(&self, layer: usize, term: usize) -> &Weight {
        &self.transposed[layer][term].1
    }
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

/// The attributes by falling norm of their weights, times the most that a flip changes an entry by.
#[derive(Debug)]
pub(super) struct ByLength {
    attributes: Vec<u32>,
    /// Upper bounds of the norms of all attributes, and in the order of `attributes`.
    lengths: Vec<f64>,
    falling: Vec<f64>,
}

impl ByLength {
    fn new(network: &Network) -> Self {
        let (weight, values) = (network.attribute_weight(), network.graph().values());
        let width = |d: usize| values.map_or(1.0, |values| values.widest(AttributeId(d as u32)) * RAISE);
        let lengths: Vec<f64> = (0..weight.rows()).map(|d| norm_above(weight.row(d)) * width(d)).collect();
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

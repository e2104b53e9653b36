//! What rounding costs on the way back through a layer (Lemma 32c of `docs/maths.md`).

use crate::bounds::LayerBounds;
use crate::dense::{Matrix, par_fill};
use crate::forward::{self, Link, Magnitudes};
use crate::model::{Activation, Source};
use crate::network::Network;
use crate::rounding::{FLOOR, magnitude};
use crate::slice::{Hop, Region};

/// Coefficients λ of a layer make coefficients `α = Pᵀ λ Wᵀ` of the activations h that its terms read, off by at most γ times
/// `|P|ᵀ |λ| |W|ᵀ`. Multiplied by the largest `|h| + ε` and added up this is
///
/// ```text
/// Σ_mu |λ_mu| E_mu,   E = Σ |P| (|h| + ε) |W|   over the terms,
/// ```
///
/// and E is the same for all targets and classes.
#[derive(Debug)]
pub(crate) struct StepError {
    /// E, a row for each node of the layer's level.
    units: Matrix,
    /// What underflow can cost at each node, whatever λ is.
    floors: Vec<f64>,
}

impl StepError {
    /// That of every layer, given bounds of all but the last.
    pub(crate) fn of_layers(network: &Network, region: &Region, bounds: &[LayerBounds]) -> Vec<Self> {
        let largest = |(bounds, layer): (&LayerBounds, usize)| {
            let activation = network.layers()[layer].activation();
            par_fill(bounds.lo.rows(), bounds.lo.columns(), |place, row| {
                for (unit, value) in row.iter_mut().enumerate() {
                    *value = magnitude(bounds.largest(activation, place, unit) + bounds.error.unit(place, unit));
                }
            })
        };
        let largest: Vec<Matrix> = bounds.iter().zip(0..).map(largest).collect();
        (0..network.layers().len()).map(|layer| Self::new(network, region, layer, &largest)).collect()
    }

    fn new(network: &Network, region: &Region, layer: usize, largest: &[Matrix]) -> Self {
        let of = &network.layers()[layer];
        let mut links = Vec::new();
        for (k, term) in of.terms().iter().enumerate() {
            if let Source::Layer(source) = term.source() {
                let (hop, below) = (network.hop(region, layer, k), &largest[source]);
                let (columns, weight) = (0..below.columns(), Some(term.weight()));
                links.push(Link { hop, below, columns, activation: Activation::None, weight });
            }
        }
        let rows = region.level(layer + 1).nodes().len();
        let floor = |row: usize| {
            let reads = links.iter().flat_map(|link| link.hop.row(row).map(|(n, p)| (p, link.below.row(n))));
            let products = reads.map(|(p, below)| (1.0 + p.abs()) * below.iter().map(|h| 1.0 + h).sum::<f64>());
            FLOOR * of.units() as f64 * products.sum::<f64>()
        };
        Self {
            units: forward::layer::<Magnitudes>(rows, &vec![0.0; of.units()], &links),
            floors: (0..rows).map(floor).collect(),
        }
    }

    /// What rounding costs with these coefficients of a node, in units of γ.
    #[inline]
    pub(crate) fn of(&self, place: usize, coefficients: &[f64]) -> f64 {
        let units = coefficients.iter().zip(self.units.row(place));
        units.map(|(coefficient, unit)| coefficient.abs() * unit).sum::<f64>() + self.floors[place]
    }
}

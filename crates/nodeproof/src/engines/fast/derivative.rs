//! The derivative of duals by all that they depend on (Lemmas 34 and 35 of `docs/maths.md`).
//!
//! The flips that a dual charges are held fixed (the envelope theorem): it is then a smooth function of slopes, offsets,
//! pre-activations, weights and biases. Its derivative by the coefficients of `Zⁱ` are the values that the network with
//! lines for ReLUs has at the tampered attributes: the gradient is a forward pass.

use crate::bounds::{Bounds, ByBounds, Ends, LayerBounds};
use crate::dense::{Matrix, add_scaled};
use crate::gradient::Gradient;
use crate::ids::ClassId;
use crate::model::Model;
use crate::slice::{Region, SlicedFlip};

/// One dual of a target, `logit_class − logit_other`, in a weighted sum of duals.
#[derive(Debug)]
pub(crate) struct Term {
    /// The other class.
    pub(crate) other: ClassId,
    /// The derivative of the sum by this dual.
    pub(crate) weight: f64,
    /// The flips that the dual charges.
    pub(crate) flips: Vec<SlicedFlip>,
}

/// The derivative of a weighted sum of duals of one target.
#[derive(Debug, Default)]
pub(crate) struct TargetDerivative {
    /// By the lines of each hidden layer at the nodes of the slice.
    pub(super) lines: Vec<ByLines>,
    /// By `Z⁰`, a row for each node of level 1 of the slice.
    pub(super) by_clean: Matrix,
    /// Places of these nodes in level 1 of the region.
    pub(super) places: Vec<u32>,
    /// By rows of W⁰: the attribute of each, and the rows one after the other.
    pub(super) attributes: Vec<u32>,
    pub(super) by_attributes: Vec<f64>,
    /// By weights and biases of the layers from 1 on.
    pub(super) deeper: Gradient,
}

/// The derivative by slope and offset of one layer's lines.
#[derive(Debug, Default, Clone)]
pub(super) struct ByLines {
    /// Places of the nodes in the region.
    pub(super) places: Vec<u32>,
    /// By the slope, which upper and lower line share.
    pub(super) slope: Matrix,
    pub(super) offset: Matrix,
}

/// The sum of the derivatives of many targets.
pub(crate) struct Derivative {
    lines: Vec<(Matrix, Matrix)>,
    /// By `Z⁰` of the graph as it is.
    pub(crate) by_clean: Matrix,
}

impl Derivative {
    /// Zeros for the nodes of `region`.
    pub(crate) fn zeros(model: &Model, region: &Region) -> Self {
        let zeros =
            |layer: usize| Matrix::zeros(region.level(layer + 1).nodes().len(), model.layers()[layer].bias().len());
        Self {
            lines: (0..model.hidden_layers()).map(|layer| (zeros(layer), zeros(layer))).collect(),
            by_clean: zeros(0),
        }
    }

    /// Adds the derivative of one target; its part by weights and biases goes to `gradient`.
    pub(crate) fn add(&mut self, target: &TargetDerivative, gradient: &mut Gradient) {
        for ((slopes, offsets), by) in self.lines.iter_mut().zip(&target.lines) {
            for (row, &place) in by.places.iter().enumerate() {
                add_scaled(slopes.row_mut(place as usize), 1.0, by.slope.row(row));
                add_scaled(offsets.row_mut(place as usize), 1.0, by.offset.row(row));
            }
        }
        for (row, &place) in target.places.iter().enumerate() {
            add_scaled(self.by_clean.row_mut(place as usize), 1.0, target.by_clean.row(row));
        }
        let units = self.by_clean.columns();
        for (&attribute, row) in target.attributes.iter().zip(target.by_attributes.chunks_exact(units)) {
            add_scaled(gradient.weights[0].row_mut(attribute as usize), 1.0, row);
        }
        for layer in 1..gradient.weights.len() {
            add_scaled(gradient.weights[layer].values_mut(), 1.0, target.deeper.weights[layer - 1].values());
            add_scaled(&mut gradient.biases[layer], 1.0, &target.deeper.biases[layer - 1]);
        }
    }

    /// From lines to bounds. Of an unstable unit's chord
    ///
    /// ```text
    /// ∂slope/∂hi = −lo / (hi − lo)²,   ∂slope/∂lo = hi / (hi − lo)²,
    /// ∂offset/∂hi = lo² / (hi − lo)²,  ∂offset/∂lo = −hi² / (hi − lo)².
    /// ```
    pub(crate) fn by_bounds(&self, bounds: &Bounds) -> Vec<ByBounds> {
        let layer = |((by_slope, by_offset), bounds): (&(Matrix, Matrix), &LayerBounds)| {
            let derivatives = by_slope.values().iter().zip(by_offset.values());
            let ends = bounds.lo.values().iter().zip(bounds.hi.values());
            let by = derivatives.zip(ends).map(|((&by_slope, &by_offset), (&lo, &hi))| {
                let width = hi - lo;
                if lo < 0.0 && hi > 0.0 {
                    let (low, high) = (lo / width, hi / width);
                    Ends {
                        lo: by_slope * high / width - by_offset * high * high,
                        hi: by_offset * low * low - by_slope * low / width,
                    }
                } else {
                    Ends::default()
                }
            });
            ByBounds::from_values(by_slope.rows(), by_slope.columns(), by.collect())
        };
        self.lines.iter().zip(&bounds.hidden).map(layer).collect()
    }
}

impl TargetDerivative {
    /// Makes everything 0 in the shape of a slice whose levels from 1 on have these places.
    pub(super) fn zeros(model: &Model, places: Vec<Vec<u32>>) -> Self {
        let layers = model.layers();
        let units = |layer: usize| layers[layer].bias().len();
        let by_lines = |(layer, places): (usize, &Vec<u32>)| ByLines {
            places: places.clone(),
            slope: Matrix::zeros(places.len(), units(layer)),
            offset: Matrix::zeros(places.len(), units(layer)),
        };
        Self {
            lines: places.iter().take(layers.len() - 1).enumerate().map(by_lines).collect(),
            by_clean: Matrix::zeros(places[0].len(), units(0)),
            places: places.into_iter().next().unwrap_or_default(),
            attributes: Vec::new(),
            by_attributes: Vec::new(),
            deeper: Gradient {
                weights: (1..layers.len()).map(|layer| Matrix::zeros(units(layer - 1), units(layer))).collect(),
                biases: (1..layers.len()).map(|layer| vec![0.0; units(layer)]).collect(),
            },
        }
    }
}

//! A base point: the attributes with some flips made, around which the network is linearised.

use super::target::Target;
use crate::dense::Matrix;
use crate::engines::attack::Attack;
use crate::ids::ClassId;
use crate::model::Activation;
use crate::slice::SlicedFlip;

/// How a unit is at a base point.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Unit {
    /// What a flip must move it by before its ReLU bends: at most |z| / r, with r flips left; 0 where the sign of z is not sure.
    pub(super) threshold: f64,
    /// Whether z > 0.
    pub(super) on: bool,
}

impl Unit {
    /// The slope of the activation at z.
    #[inline]
    pub(super) fn tangent(self, activation: Activation) -> f64 {
        if self.on { 1.0 } else { activation.slope() }
    }

    /// Whether the sign of z is known.
    #[inline]
    pub(super) fn is_sure(self) -> bool {
        self.threshold > 0.0
    }
}

/// The attributes with some flips made, and what may still be flipped.
pub(super) struct Base {
    pub(super) flips: Vec<SlicedFlip>,
    /// Most flips at each node of level 0 that are left, and in total.
    pub(super) capacities: Vec<u32>,
    pub(super) left: usize,
    /// Pre-activations of all layers.
    pub(super) z: Vec<Matrix>,
    /// The units of all layers but the last.
    pub(super) units: Vec<Matrix<Unit>>,
    y: ClassId,
}

impl Base {
    /// The base point of `flips`.
    pub(super) fn new(target: &Target, attack: &mut Attack, y: ClassId, flips: Vec<SlicedFlip>) -> Self {
        let _ = attack.margin(target.slice, y, flips.iter().copied());
        let z = attack.pre_activations().to_vec();
        let mut capacities = target.capacities.clone();
        flips.iter().for_each(|&(position, _)| capacities[position as usize] -= 1);
        let still: usize = capacities.iter().map(|&capacity| capacity as usize).sum();
        let left = (target.most - flips.len()).min(still);
        let units = (0..target.hidden()).map(|layer| units(target, layer, &z[layer], left)).collect();
        Self { flips, capacities, left, z, units, y }
    }

    /// The margin of y over `k` as computed.
    pub(super) fn margin(&self, k: ClassId) -> f64 {
        let logits = self.z[self.z.len() - 1].row(0);
        logits[self.y.index()] - logits[k.index()]
    }
}

fn units(target: &Target, layer: usize, z: &Matrix, left: usize) -> Matrix<Unit> {
    let (region, bounds) = (&target.shared.region, &target.shared.bounds.layers[layer]);
    let mut units = Matrix::zeros(z.rows(), z.columns());
    // A quotient that is rounded down, as far as a sum of `left` of them is concerned.
    let share = (1.0 - 1e-12) / left.max(1) as f64;
    for (row, &node) in target.slice.level(layer + 1).iter().enumerate() {
        let place = region.level(layer + 1).place(node);
        for (j, (unit, &z)) in units.row_mut(row).iter_mut().zip(z.row(row)).enumerate() {
            let sure = z.abs() - bounds.error.unit(place, j);
            *unit = Unit { threshold: if sure > f64::MIN_POSITIVE { sure * share } else { 0.0 }, on: z > 0.0 };
        }
    }
    units
}

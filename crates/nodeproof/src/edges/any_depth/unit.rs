//! A unit that deletions move.

use crate::model::Activation;

/// A unit at the base point.
#[derive(Debug)]
pub(super) struct Unit {
    pub(super) z: f64,
    /// At most how far z is off.
    pub(super) error: f64,
    /// Most deletions of a set.
    pub(super) left: f64,
    pub(super) activation: Activation,
    /// How far all deletions of a set move it up and down at most.
    pub(super) most: [f64; 2],
}

impl Unit {
    /// The excess, and the move of the activation, where one deletion moves the unit from `low` to `high`.
    pub(super) fn bend(&self, low: f64, high: f64) -> (f64, f64, f64) {
        let (z, below, on) = (self.z, self.activation.slope(), self.z > 0.0);
        let (bent, distance) = (1.0 - below, z.abs() - self.error);
        let toward = if on { -low } else { high };
        if distance <= 0.0 {
            let (low, high) =
                (if low >= 0.0 { below * low } else { low }, if high <= 0.0 { below * high } else { high });
            return (bent * toward.max(0.0), low, high);
        }
        if self.most[usize::from(on)] * (1.0 + 1e-9) < distance {
            return if on { (0.0, low, high) } else { (0.0, below * low, below * high) };
        }
        let threshold = distance / self.left;
        let excess = bent * (toward - threshold).max(0.0);
        if self.left == 1.0 {
            let of = |by: f64| self.activation.of(z + by) - self.activation.of(z);
            (excess, of(low) - 2.0 * self.error, of(high) + 2.0 * self.error)
        } else if on {
            (excess, low, high + bent * (-high - threshold).max(0.0))
        } else {
            (excess, below * low, below * high + excess)
        }
    }
}

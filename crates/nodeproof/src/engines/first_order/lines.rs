//! The lines that stand for activations in a linearisation (Lemma 39 of `docs/maths.md`).

use super::base::{Base, Unit};
use crate::dense::{Matrix, relu};
use crate::model::Activation;

/// What stands for the activation of one unit, according to the sign of its coefficient α.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Line {
    /// Where α > 0: the slope of a line through 0, between β and 1.
    pub(super) slope: f64,
    /// Where α < 0: the share of the chord between the ends; the rest is the tangent, and the excess of each flip.
    pub(super) chord: f64,
    /// Whether the pre-activation is at least 0, or at most, in all sets that are looked at: then the activation is linear.
    pub(super) phase: Option<bool>,
    /// Where there is a phase: so many times the pre-activation is added to the margin, which raises it in no set that is looked at.
    pub(super) multiplier: f64,
    /// What the pre-activation stays between in all sets that are looked at.
    pub(super) ends: (f64, f64),
}

/// The lines of all units, a row for each node of a layer's level.
pub(super) type Lines = Vec<Matrix<Line>>;

/// The tangents of a base point.
pub(super) fn tangents(base: &Base) -> Lines {
    let line = |(&slope, unit): (&f64, &Unit)| Line { slope, ends: unit.ends, ..Line::default() };
    let of_layer = |(tangents, units): (&Matrix, &Matrix<Unit>)| {
        let lines = tangents.values().iter().zip(units.values()).map(line).collect();
        Matrix::from_values(tangents.rows(), tangents.columns(), lines)
    };
    base.tangents.iter().zip(&base.units).map(of_layer).collect()
}

/// A line `slope · (Z − z) + value` in place of an activation, and the share of flips' excess that is to be added.
#[derive(Debug, Clone, Copy)]
pub(super) struct Relaxed {
    pub(super) slope: f64,
    pub(super) value: f64,
    pub(super) excess: f64,
}

impl Line {
    /// What the multiplier may be: at most 0 where the pre-activation is at least 0, and the other way round.
    pub(super) fn multipliers(self) -> (f64, f64) {
        match self.phase {
            Some(true) => (f64::NEG_INFINITY, 0.0),
            Some(false) => (0.0, f64::INFINITY),
            None => (0.0, 0.0),
        }
    }

    /// The line of a unit with pre-activation z at the base point that lies on the side that a coefficient α of this sign asks for.
    #[inline]
    pub(super) fn relaxed(self, activation: Activation, z: f64, tangent: f64, alpha: f64) -> Relaxed {
        let slope = activation.slope();
        if let Some(on) = self.phase {
            let slope = if on { 1.0 } else { slope };
            return Relaxed { slope, value: slope * z, excess: 0.0 };
        }
        if alpha > 0.0 {
            return Relaxed { slope: self.slope, value: self.slope * z, excess: 0.0 };
        }
        let (share, (lo, hi)) = (self.chord, self.ends);
        if share == 0.0 || hi <= 0.0 || lo >= 0.0 {
            return Relaxed { slope: tangent, value: tangent * z, excess: 1.0 };
        }
        let steep = hi / (hi - lo);
        let chord = Relaxed {
            slope: slope + (1.0 - slope) * steep,
            value: slope * z + (1.0 - slope) * (steep * (z - lo)).max(relu(z)),
            excess: 0.0,
        };
        Relaxed {
            slope: tangent + share * (chord.slope - tangent),
            value: tangent * z + share * (chord.value - tangent * z),
            excess: 1.0 - share,
        }
    }
}

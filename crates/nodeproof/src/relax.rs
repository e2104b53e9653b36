//! The ReLU between two lines (Lemma 8 of `docs/maths.md`).
//!
//! A unit whose pre-activation x lies in [lo, hi] has
//!
//! ```text
//! lower · x ≤ relu(x) ≤ upper · x + offset,
//! ```
//!
//! with `upper = 1, offset = 0` when active (lo ≥ 0), `upper = offset = 0` when dead (hi ≤ 0), and the chord
//! `upper = hi / (hi − lo), offset = −upper · lo` when unstable. The lower line has any slope in [0, 1] there; the
//! paper's default is the chord's. A unit with lo = 0 < hi is active.
//!
//! A leaky ReLU with slope β is `β x + (1 − β) relu(x)`, so that its lines have slopes `β + (1 − β) s` and offsets `(1 − β) r`.

use crate::bounds::LayerBounds;
use crate::dense::{Matrix, par_fill};
use crate::model::Activation;

/// Slopes of the lower lines of unstable ReLUs (the paper's Ω): `relu(x) ≥ slope · x`.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub enum Slopes {
    /// `hi / (hi − lo)`, the paper's default.
    #[default]
    Default,
    /// One matrix a layer with an activation, nodes × units, each slope in [0, 1]; of a leaky ReLU that of its ReLU.
    Given(Vec<Matrix>),
}

/// The lines of one layer, a row for each node of its level; none of a layer without activation.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    /// Slope of the upper line.
    pub(crate) upper: Matrix,
    /// Height of the upper line at 0.
    pub(crate) offset: Matrix,
    /// Slope of the lower line, where it is not the upper one's.
    given_lower: Option<Matrix>,
}

impl Lines {
    pub(crate) fn new(bounds: &LayerBounds, activation: Activation, nodes: &[u32], given: Option<&Matrix>) -> Self {
        if activation == Activation::None {
            return Self::default();
        }
        let (rows, units) = (bounds.lo.rows(), bounds.lo.columns());
        let chords = |row: usize| {
            let ends = bounds.lo.row(row).iter().zip(bounds.hi.row(row));
            ends.map(|(&lo, &hi)| leaky_chord(lo, hi, activation.slope()))
        };
        let lower = |given: &Matrix| {
            par_fill(rows, units, |row, slopes| {
                let given = given.row(nodes[row] as usize);
                for ((slope, (upper, offset)), &given) in slopes.iter_mut().zip(chords(row)).zip(given) {
                    *slope = if offset == 0.0 { upper } else { leaky(given, activation.slope()) };
                }
            })
        };
        Self {
            upper: par_fill(rows, units, |row, slopes| {
                slopes.iter_mut().zip(chords(row)).for_each(|(slope, (upper, _))| *slope = upper);
            }),
            offset: par_fill(rows, units, |row, offsets| {
                offsets.iter_mut().zip(chords(row)).for_each(|(value, (_, offset))| *value = offset);
            }),
            given_lower: given.map(lower),
        }
    }

    /// Slope of the lower line.
    pub(crate) fn lower(&self) -> &Matrix {
        self.given_lower.as_ref().unwrap_or(&self.upper)
    }

    /// Slopes and offsets of the node at `place`; upper and lower line share the slope.
    #[inline]
    pub(crate) fn chords(&self, place: usize) -> (&[f64], &[f64]) {
        debug_assert!(self.given_lower.is_none(), "derivatives are those of the default slopes");
        (self.upper.row(place), self.offset.row(place))
    }
}

/// Slope and offset of the upper line of a unit in [lo, hi].
#[inline]
pub(crate) fn chord(lo: f64, hi: f64) -> (f64, f64) {
    if lo >= 0.0 {
        (1.0, 0.0)
    } else if hi <= 0.0 {
        (0.0, 0.0)
    } else {
        let slope = hi / (hi - lo);
        (slope, -slope * lo)
    }
}

/// The slope of a line for a leaky ReLU, given that for its ReLU.
fn leaky(slope: f64, below: f64) -> f64 {
    if below == 0.0 || slope == 1.0 { slope } else { below + (1.0 - below) * slope }
}

/// Slope and offset of the upper line of a unit in [lo, hi] with slope `below` below 0.
fn leaky_chord(lo: f64, hi: f64, below: f64) -> (f64, f64) {
    let (slope, offset) = chord(lo, hi);
    (leaky(slope, below), (1.0 - below) * offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaky_chords_meet_the_leaky_relu_at_both_ends() {
        for below in [0.0, 0.1, 0.5, 0.999] {
            let activation = Activation::LeakyRelu(below);
            for (lo, hi) in [(-1.0, 3.0), (0.0, 2.0), (0.5, 2.0), (-2.0, 0.0), (-2.0, -1.0), (-0.25, 7.0)] {
                let (slope, offset) = leaky_chord(lo, hi, below);
                for end in [lo, hi] {
                    assert!((slope * end + offset - activation.of(end)).abs() < 1e-12, "[{lo}, {hi}], {below}");
                }
            }
        }
    }

    #[test]
    fn chords_by_hand() {
        assert_eq!(chord(-1.0, 3.0), (0.75, 0.75));
        assert_eq!(chord(0.0, 3.0), (1.0, 0.0), "lo = 0 is active");
        assert_eq!(chord(-3.0, 0.0), (0.0, 0.0));
        assert_eq!(chord(0.0, 0.0), (1.0, 0.0));
        let (slope, _) = chord(-f64::MIN_POSITIVE, 1e300);
        assert!(slope <= 1.0);
        assert!(chord(f64::NAN, 1.0).0.is_nan());
    }
}

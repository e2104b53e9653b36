//! What one attacker does to all predictions together.

use nodeproof_problem::Collective;
use nodeproof_problem::results::Collectives;

use super::{Area, Axis, Colour, Figure, Fill, Line, Point, Stroke, palette};
use crate::plot::Dots;

/// Shares of the predictions that change under one global budget for all of them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Together {
    /// The global budget.
    pub global: u32,
    /// At most this share changes.
    pub at_most: f64,
    /// An attack changes this share.
    pub at_least: f64,
    /// This share is not proven to hold if all flips are for one prediction: single certificates, added up.
    pub alone: f64,
}

impl Together {
    /// Those of collective certificates, by budget.
    pub fn of(found: &Collectives) -> Vec<Self> {
        found.records.iter().map(Self::of_one).collect()
    }

    fn of_one(of: &Collective) -> Self {
        let share = |count: usize| if of.targets == 0 { 0.0 } else { count as f64 / of.targets as f64 };
        let (at_most, at_least, alone) = (share(of.at_most), share(of.at_least()), share(of.alone));
        Self { global: of.global, at_most, at_least, alone }
    }
}

/// Which share of all predictions one attacker changes, against the global budget: what is proven, what an attack does, and
/// the grey area between them; and dashed what single certificates, added up, would say.
///
/// Dots are the budgets that were asked about, and lines only join them. As single certificates often say a hundred times as
/// much, the axis of shares is logarithmic, with a place for none at all where that comes up.
pub fn collective(answers: &[Together]) -> Figure {
    let last = answers.iter().map(|answer| answer.global).max().unwrap_or(0);
    let curve = |share: fn(&Together) -> f64| -> Vec<Point> {
        answers.iter().map(|answer| (f64::from(answer.global), 100.0 * share(answer))).collect()
    };
    let (most, least, alone) = (curve(|of| of.at_most), curve(|of| of.at_least), curve(|of| of.alone));
    let all = || most.iter().chain(&least).chain(&alone).map(|point| point.1).filter(|&share| share > 0.0);
    let (from, to) = (power_below(all().fold(100.0, f64::min)), power_above(all().fold(0.0, f64::max)));
    let y = Axis::new("Predictions that change (%)", from, to);
    let y = if least.iter().any(|point| point.1 == 0.0) { y.log_with_zero() } else { y.log() };
    let figure = Figure::new(Axis::new("Global budget Q", 0.0, f64::from(last.max(1))).whole(), y).area(Area::new(
        least.clone(),
        most.clone(),
        Fill::Solid(palette::FAINT.tint(0.25)),
    ));
    let figure = marked(figure, alone, Stroke::dashed(palette::FAINT), "single certificates added up");
    let figure = marked(figure, most, Stroke::solid(palette::ROBUST), "at most: proven");
    marked(figure, least, Stroke::solid(palette::NONROBUST), "changed by an attack")
}

/// A line with a dot at each of its points.
fn marked(figure: Figure, points: Vec<Point>, stroke: Stroke, name: &str) -> Figure {
    let colour: Colour = stroke.colour;
    figure.line(Line::new(points.clone(), stroke).named(name)).dots(Dots::new(points, colour, 1.8, 1.0))
}

/// The power of ten that is no larger than a share in per cent.
fn power_below(share: f64) -> f64 {
    10f64.powf((share.log10() + 1e-9).floor())
}

/// The power of ten that is no smaller; 100 at most, as all predictions are.
fn power_above(share: f64) -> f64 {
    if share > 0.0 { 10f64.powf((share.log10() - 1e-9).ceil()).min(100.0) } else { 100.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_axis_of_shares_has_whole_powers() {
        assert_eq!([0.15, 1.0, 99.6].map(power_below), [0.1, 1.0, 10.0]);
        assert_eq!([0.15, 1.0, 99.6, 100.0, 0.0].map(power_above), [1.0, 1.0, 100.0, 100.0, 100.0]);
    }

    #[test]
    fn shares_are_of_the_predictions_that_count() {
        let share = |targets| {
            let mut answer = Collective::new(3, targets);
            (answer.at_most, answer.alone) = (targets / 2, targets);
            Together::of_one(&answer)
        };
        assert_eq!(share(4), Together { global: 3, at_most: 0.5, at_least: 0.0, alone: 1.0 });
        assert_eq!(share(0), Together { global: 3, at_most: 0.0, at_least: 0.0, alone: 0.0 });
    }
}

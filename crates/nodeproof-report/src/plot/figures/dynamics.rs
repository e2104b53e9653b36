//! Figure 8: margins while training.

use nodeproof_problem::results::{StepRecord, TrainingLog};

use super::{Axis, Figure, Line, Point, Stroke, palette};
use crate::plot::{Dash, Marker};

/// A training run: mean worst-case margins by step, where they are known.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Run {
    /// Its name.
    pub name: String,
    /// Step and mean margin of labelled nodes.
    pub labelled: Vec<Point>,
    /// Step and mean margin of unlabelled nodes.
    pub unlabelled: Vec<Point>,
}

impl Run {
    /// The margins of a training log.
    pub fn of(name: String, log: &TrainingLog) -> Self {
        Self::of_steps(name, &log.steps)
    }

    /// The margins of these steps.
    pub fn of_steps(name: String, steps: &[StepRecord]) -> Self {
        let points = |margin: fn(&StepRecord) -> Option<f64>| -> Vec<Point> {
            steps.iter().filter_map(|step| Some((step.step as f64, margin(step)?))).collect()
        };
        let (labelled, unlabelled) = (points(|step| step.labelled_margin), points(|step| step.unlabelled_margin));
        Self { name, labelled, unlabelled }
    }
}

/// The worst-case margins that training aims at.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Aims {
    /// M₁, of labelled nodes.
    pub labelled: f64,
    /// M₂, of unlabelled nodes.
    pub unlabelled: f64,
}

impl Aims {
    /// What a training aims at, if its loss is a hinge: no other has an aim.
    pub fn of(log: &TrainingLog) -> Option<Self> {
        let is_hinge = matches!(log.method.as_str(), "rh" | "rh-u");
        is_hinge.then_some(Self { labelled: log.labelled_margin, unlabelled: log.unlabelled_margin })
    }
}

/// Figure 8 of the paper: the mean worst-case margin of labelled (solid) and unlabelled nodes (dashed) against the step, one
/// colour for each training run, with lines at the margins aimed at.
///
/// Each step is faint; the line is a moving average over a fiftieth of the steps.
pub fn dynamics(runs: &[Run], aims: Option<Aims>) -> Figure {
    let last =
        runs.iter().flat_map(|run| run.labelled.iter().chain(&run.unlabelled)).map(|point| point.0).fold(1.0, f64::max);
    let smooth: Vec<[Vec<Point>; 2]> =
        runs.iter().map(|run| [smoothed(&run.labelled), smoothed(&run.unlabelled)]).collect();
    let raw = runs.iter().flat_map(|run| [middle(&run.labelled), middle(&run.unlabelled)]).flatten();
    let (from, to) = range(smooth.iter().flatten().flatten().map(|point| point.1).chain(raw), aims);
    let mut figure =
        Figure::new(Axis::new("Training step", 0.0, last).whole(), Axis::new("Mean worst-case margin", from, to));
    if let Some(aims) = aims {
        figure =
            figure.marker(Marker::horizontal(aims.labelled, "M₁")).marker(Marker::horizontal(aims.unlabelled, "M₂"));
    }
    for (number, run) in runs.iter().enumerate() {
        for raw in [&run.labelled, &run.unlabelled] {
            let stroke = Stroke::solid(palette::series(number).tint(0.25)).width(0.4);
            figure = figure.line(Line::new(raw.clone(), stroke).background());
        }
    }
    for (number, (run, curves)) in runs.iter().zip(smooth).enumerate() {
        for (curve, (kind, dash)) in curves.into_iter().zip([("labelled", Dash::Solid), ("unlabelled", Dash::Dashed)]) {
            if !curve.is_empty() {
                let stroke = Stroke::solid(palette::series(number)).dash(dash);
                figure = figure.line(Line::new(curve, stroke).named(format!("{}, {kind}", run.name)));
            }
        }
    }
    figure
}

/// The moving average over a fiftieth of the points, over fewer at both ends.
fn smoothed(points: &[Point]) -> Vec<Point> {
    let half = points.len() / 100;
    (0..points.len())
        .map(|middle| {
            let reach = half.min(middle).min(points.len() - 1 - middle);
            let window = &points[middle - reach..=middle + reach];
            (points[middle].0, window.iter().map(|point| point.1).sum::<f64>() / window.len() as f64)
        })
        .collect()
}

/// The range of all margins but the smallest and the largest 3 %.
fn middle(points: &[Point]) -> Vec<f64> {
    let mut margins: Vec<f64> = points.iter().map(|point| point.1).collect();
    margins.sort_by(f64::total_cmp);
    let last = margins.len().saturating_sub(1);
    let cut = margins.len() * 3 / 100;
    [margins.get(cut), margins.get(last - cut.min(last))].into_iter().flatten().copied().collect()
}

/// The range of margins, those aimed at included, and a little more.
fn range(margins: impl Iterator<Item = f64>, aims: Option<Aims>) -> (f64, f64) {
    let aimed = aims.into_iter().flat_map(|aims| [aims.labelled, aims.unlabelled]);
    let all = margins.chain(aimed).filter(|margin| margin.is_finite());
    let (least, most) = all.fold((0.0f64, 0.0f64), |(least, most), margin| (least.min(margin), most.max(margin)));
    let room = (most - least) * 0.06;
    (if least < 0.0 { least - room } else { 0.0 }, most + room)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smoothing_keeps_lines_straight_and_the_number_of_points() {
        let line: Vec<Point> = (0..1000).map(|step| (f64::from(step), 2.0 * f64::from(step))).collect();
        let smooth = smoothed(&line);
        assert_eq!(smooth.len(), line.len());
        assert!(smooth.iter().zip(&line).all(|(a, b)| (a.1 - b.1).abs() < 1e-9));
        assert!(smoothed(&[]).is_empty());
    }

    #[test]
    fn the_range_holds_zero_and_the_aims() {
        let (from, to) = range([-1.0, 0.5].into_iter(), Some(Aims { labelled: 2.0, unlabelled: 0.4 }));
        assert!(from < -1.0 && from > -1.5 && to > 2.0 && to < 2.5);
    }
}

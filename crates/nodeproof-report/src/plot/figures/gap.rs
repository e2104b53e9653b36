//! Figure 7: how tight the bounds are.

use super::{Axis, Figure, Line, Point, Stroke, palette};
use crate::plot::palette::Colour;
use crate::plot::{Dots, number};

/// Gaps below this are rounding and count as zero.
const ZERO: f64 = 1e-6;
/// Most points of a curve.
const MOST_POINTS: usize = 500;

/// Figure 7 of the paper: how far the lower bound (dual) and the margin of the best flips known (primal) are apart, with
/// default and with optimised slopes.
///
/// For each gap on the logarithmic axis, the share of nodes whose gap is no larger; nodes with no gap at all (up to
/// rounding, 10⁻⁶) are the dots at 0. Gaps that are not numbers count as infinite.
pub fn gap(default: &[f64], optimised: &[f64]) -> Figure {
    let both = || default.iter().chain(optimised).copied().filter(|gap| gap.is_finite() && *gap > ZERO);
    let mut open: Vec<f64> = both().collect();
    open.sort_by(f64::total_cmp);
    // One in a hundred may lie before the first power of ten.
    let least = open.get(open.len() / 100).copied().unwrap_or(0.1);
    let largest = open.last().copied().unwrap_or(1.0);
    let from = 10f64.powf(least.log10().floor());
    let to = 10f64.powf(largest.log10().ceil()).max(from * 10.0);
    let x = Axis::new("Gap between bound and best attack", from, to).log_with_zero();
    let figure = Figure::new(x, Axis::new("Nodes with at most this gap (%)", 0.0, 1.0).percent());
    let figure = with_gaps(figure, default, "default slopes", palette::NONROBUST, to);
    with_gaps(figure, optimised, "optimised slopes", palette::ROBUST, to)
}

fn with_gaps(figure: Figure, gaps: &[f64], name: &str, colour: Colour, to: f64) -> Figure {
    if gaps.is_empty() {
        return figure;
    }
    let curve = distribution(gaps, to);
    let none = curve.first().map_or(0.0, |point| point.1);
    let name = match number::plain(none * 100.0, 0).as_str() {
        "0" => name.to_owned(),
        percent => format!("{name} (no gap: {percent} %)"),
    };
    figure.line(Line::new(curve.clone(), Stroke::solid(colour)).named(name)).dots(Dots::new(
        curve.into_iter().take(1).collect(),
        colour,
        1.8,
        1.0,
    ))
}

/// The empirical distribution: gap, and the share of nodes with no larger one, from 0 to `to`.
fn distribution(gaps: &[f64], to: f64) -> Vec<Point> {
    let mut sorted: Vec<f64> = gaps
        .iter()
        .map(|&gap| {
            if gap.is_nan() {
                f64::INFINITY
            } else if gap <= ZERO {
                0.0
            } else {
                gap
            }
        })
        .collect();
    sorted.sort_by(f64::total_cmp);
    let nodes = sorted.len();
    let share = |count: usize| count as f64 / nodes as f64;
    let closed = sorted.partition_point(|&gap| gap <= 0.0);
    let finite = sorted.partition_point(|&gap| gap <= to);
    let every = ((finite - closed) / MOST_POINTS).max(1);
    let mut curve = vec![(0.0, share(closed))];
    for position in (closed..finite).step_by(every) {
        curve.push((sorted[position], share(position + 1)));
    }
    curve.push((to, share(finite)));
    curve
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distribution_counts_nodes() {
        let gaps = [0.0, 1e-12, 0.5, 2.0];
        assert_eq!(distribution(&gaps, 10.0), [(0.0, 0.5), (0.5, 0.75), (2.0, 1.0), (10.0, 1.0)]);
    }

    #[test]
    fn what_is_not_a_number_is_never_reached() {
        assert_eq!(distribution(&[f64::NAN, f64::INFINITY], 1.0), [(0.0, 0.0), (1.0, 0.0)]);
    }

    #[test]
    fn many_nodes_give_few_points() {
        let gaps: Vec<f64> = (1..=20_000).map(|gap| f64::from(gap) / 1000.0).collect();
        let curve = distribution(&gaps, 20.0);
        assert!(curve.len() < 600, "{}", curve.len());
        assert_eq!(curve.last(), Some(&(20.0, 1.0)));
    }
}

//! Figures 2 and 3: robustness against what is around a node.

use super::groups::{Group, geometric_mean, groups, mean};
use super::{Area, Axis, Figure, Fill, Line, Point, Stroke, palette};
use crate::attack::Attack;
use crate::plot::Dots;

/// How far axes go beyond the data, as a share of their length: dots on a spine are hard to see.
const MARGIN: f64 = 0.02;

/// Figure 2 of the paper: the largest global budget that each node is proven robust against, and the purity of its
/// neighbourhood: the share of nodes within two hops that the model assigns the same class.
///
/// `nodes` are purities from 0 to 1 and budgets, which count what the `attack` does; `most` is the largest budget that was tried. Each node is a faint dot; the
/// line is the median of groups a tenth wide, the band their quartiles.
pub fn purity(nodes: &[(f64, u32)], attack: Attack, most: u32) -> Figure {
    let points = points(nodes.iter().copied());
    let groups = groups(&points, |purity| (purity * 10.0 + 1e-9).floor().min(9.0) as i64, mean);
    let least = points.iter().map(|point| point.0).fold(1.0, f64::min);
    let from = (least * 5.0 - 1e-9).floor().clamp(0.0, 4.0) / 5.0;
    let margin = MARGIN * (1.0 - from);
    let axis = Axis::new("Neighbourhood purity (%)", from - margin, 1.0 + margin).percent();
    scatter(axis, points, &groups, (attack, most))
}

/// Figure 3 of the paper: the largest global budget that each node is proven robust against, and its degree.
///
/// `nodes` are degrees and budgets, which count what the `attack` does; `most` is the largest budget that was tried. The axis of degrees is logarithmic, with
/// a place for nodes without neighbours if there are any. Each node is a faint dot; the line is the median of groups that
/// double in width every other time, the band their quartiles.
pub fn degree(nodes: &[(usize, u32)], attack: Attack, most: u32) -> Figure {
    let points = points(nodes.iter().map(|&(degree, budget)| (degree as f64, budget)));
    let (lonely, others): (Vec<Point>, Vec<Point>) = points.iter().partition(|point| point.0 < 1.0);
    let groups = groups(&others, |degree| (2.0 * degree.log2() + 1e-9).floor() as i64, geometric_mean);
    let largest = others.iter().map(|point| point.0).fold(2.0, f64::max);
    let margin = largest.powf(MARGIN);
    let axis = Axis::new("Degree", 1.0 / margin, largest * margin);
    let axis = if lonely.is_empty() { axis.log() } else { axis.log_with_zero() };
    scatter(axis, points, &groups, (attack, most))
}

fn points(nodes: impl Iterator<Item = (f64, u32)>) -> Vec<Point> {
    nodes.map(|(x, budget)| (x, f64::from(budget))).collect()
}

fn scatter(x: Axis, points: Vec<Point>, groups: &[Group], (attack, most): (Attack, u32)) -> Figure {
    let largest = points.iter().map(|point| point.1).fold(1.0, f64::max);
    let margin = MARGIN * largest;
    let what = if attack == Attack::Flips { "Largest Q proven robust" } else { "Most deletions withstood" };
    let y = Axis::new(what, -margin, largest + margin).whole();
    let y = if largest >= f64::from(most) { y.capped(largest) } else { y };
    let curve = |height: fn(&Group) -> f64| groups.iter().map(|group| (group.at, height(group))).collect::<Vec<_>>();
    let opacity = (60.0 / points.len().max(1) as f64).sqrt().clamp(0.06, 0.5);
    let band =
        Area::new(curve(|group| group.lower), curve(|group| group.upper), Fill::Solid(palette::ROBUST.tint(0.3)));
    let median = curve(|group| group.median);
    Figure::new(x, y)
        .area(band.listed("quartiles"))
        .dots(Dots::new(points, palette::FAINT, 0.6, opacity))
        .line(Line::new(median.clone(), Stroke::solid(palette::ROBUST)).named("median"))
        .dots(Dots::new(median, palette::ROBUST, 1.5, 1.0))
}

//! Groups of nodes: median and quartiles of each.

use std::collections::BTreeMap;

use crate::plot::Point;

/// Groups with fewer nodes, or a smaller share of all nodes, are left out: their quartiles say nothing.
const LEAST: usize = 5;
const LEAST_SHARE: f64 = 0.001;

/// Median and quartiles of a group, and where it stands.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Group {
    pub(super) at: f64,
    pub(super) lower: f64,
    pub(super) median: f64,
    pub(super) upper: f64,
}

/// The groups of points that `key` distinguishes, in its order; each stands at `centre` of its x values.
pub(super) fn groups(points: &[Point], key: impl Fn(f64) -> i64, centre: impl Fn(&[f64]) -> f64) -> Vec<Group> {
    let mut members: BTreeMap<i64, (Vec<f64>, Vec<f64>)> = BTreeMap::new();
    for &(x, y) in points {
        let (xs, ys) = members.entry(key(x)).or_default();
        xs.push(x);
        ys.push(y);
    }
    let least = LEAST.max((points.len() as f64 * LEAST_SHARE) as usize);
    let large = members.into_values().filter(|(_, ys)| ys.len() >= least);
    large
        .map(|(xs, mut ys)| {
            ys.sort_by(f64::total_cmp);
            let [lower, median, upper] = [0.25, 0.5, 0.75].map(|share| quantile(&ys, share));
            Group { at: centre(&xs), lower, median, upper }
        })
        .collect()
}

/// The quantile of sorted values, between two of them if it must be.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let place = share * (sorted.len() - 1) as f64;
    let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    below + (above - below) * place.fract()
}

pub(super) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The mean on a logarithmic scale.
pub(super) fn geometric_mean(values: &[f64]) -> f64 {
    (values.iter().map(|value| value.ln()).sum::<f64>() / values.len() as f64).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_of_groups() {
        let points: Vec<Point> = (0..=8)
            .map(|y| (1.0, f64::from(y)))
            .chain((0..5).map(|y| (3.0, 10.0 * f64::from(y))))
            .chain([(9.0, 1.0)])
            .collect();
        let groups = groups(&points, |x| x as i64, mean);
        assert_eq!(groups.len(), 2, "one node is no group");
        assert_eq!(groups[0], Group { at: 1.0, lower: 2.0, median: 4.0, upper: 6.0 });
        assert_eq!(groups[1], Group { at: 3.0, lower: 10.0, median: 20.0, upper: 30.0 });
    }

    #[test]
    fn means() {
        assert_eq!(mean(&[1.0, 3.0]), 2.0);
        assert!((geometric_mean(&[1.0, 100.0]) - 10.0).abs() < 1e-9);
    }
}

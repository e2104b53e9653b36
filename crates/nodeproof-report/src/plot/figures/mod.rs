//! The figures of the paper, and two that the paper could not have.
//!
//! | function | figure of the paper |
//! |---|---|
//! | [`certificates`] | 1; with another model over it 4 and 5 |
//! | [`purity`] | 2 |
//! | [`degree`] | 3 |
//! | [`comparison`] | 6; with the budgets of training marked 9 |
//! | [`gap`] | 7 |
//! | [`dynamics`] | 8 |
//! | [`truth`] | none: what the paper's certificate leaves open, and what is the case |
//! | [`collective`] | none: what one attacker does to all predictions together |

mod certificates;
mod collective;
mod comparison;
mod dynamics;
mod gap;
mod groups;
mod neighbourhood;
mod truth;

pub use certificates::certificates;
pub use collective::{Together, collective};
pub use comparison::{Compared, comparison};
pub use dynamics::{Aims, Run, dynamics};
pub use gap::gap;
pub use neighbourhood::{degree, purity};
pub use truth::truth;

use nodeproof_problem::results::{Certificates, Radii};

use super::layer::{Area, Fill, Line, Point, Stroke};
use super::palette::{self, Colour};
use super::{Axis, Figure};
use crate::attack::Attack;
use crate::shares::Shares;

/// Least share of the nodes that the area of undecided ones must reach somewhere to be named.
const WORTH_A_NAME: f64 = 0.002;

/// Shares of nodes by global budget: those at Q = 0, 1, 2, ….
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Curves {
    /// Share proven robust.
    pub robust: Vec<f64>,
    /// Share with a known witness; empty where that was not asked.
    pub nonrobust: Vec<f64>,
    /// What Q counts.
    pub attack: Attack,
}

impl Curves {
    /// Those of radii; of a scan, the share proven robust alone.
    pub fn of(radii: &Radii) -> Self {
        let shares = Shares::of(radii);
        let nonrobust = if radii.header.scan { Vec::new() } else { shares.nonrobust_shares() };
        Self { robust: shares.robust_shares(), nonrobust, attack: Attack::of(&radii.header.budget) }
    }

    /// Those that follow from certificates, see [`Shares::of_certificates`]; what does not follow counts as undecided.
    pub fn of_certificates(under: &[&Certificates]) -> Self {
        let shares = Shares::of_certificates(under);
        let attack = under.first().map_or(Attack::default(), |results| Attack::of(&results.header.budget));
        Self { robust: shares.robust_shares(), nonrobust: shares.nonrobust_shares(), attack }
    }
}

/// Curves from elsewhere, such as those of a publication.
#[derive(Debug, Clone, PartialEq)]
pub struct Reference {
    /// Where they are from.
    pub name: String,
    /// The curves: of each its name, and global budgets and shares, from 0 to 1.
    pub curves: Vec<(String, Vec<Point>)>,
}

impl Curves {
    fn robust_points(&self) -> Vec<Point> {
        points(&self.robust)
    }

    /// Shares that are *not* known to be nonrobust; 1 everywhere if nothing is known.
    fn not_nonrobust_points(&self) -> Vec<Point> {
        points(&self.not_nonrobust())
    }

    fn not_nonrobust(&self) -> Vec<f64> {
        (0..self.robust.len()).map(|q| 1.0 - self.nonrobust.get(q).copied().unwrap_or(0.0)).collect()
    }

    /// Whether some nodes are neither robust nor nonrobust under some budget.
    fn has_undecided(&self) -> bool {
        self.robust.iter().zip(self.not_nonrobust()).any(|(robust, rest)| rest - robust > WORTH_A_NAME)
    }

    /// The last budget worth showing: where no node is robust any more and nothing changes, or the last one of all.
    fn last(&self) -> usize {
        last_of(&self.robust).max(last_change(&self.nonrobust))
    }
}

/// The budget at which shares reach zero for good; the last one if they do not.
fn last_of(robust: &[f64]) -> usize {
    match robust.last() {
        Some(0.0) => last_change(robust),
        _ => robust.len().saturating_sub(1),
    }
}

/// Shares by Q as points: those where something changes, and the ends, which draw the same.
fn points(shares: &[f64]) -> Vec<Point> {
    let changes =
        |q: usize| q == 0 || q + 1 == shares.len() || shares[q] != shares[q - 1] || shares[q] != shares[q + 1];
    (0..shares.len()).filter(|&q| changes(q)).map(|q| (q as f64, shares[q])).collect()
}

/// The last position at which a value differs from the one before.
fn last_change(values: &[f64]) -> usize {
    values.windows(2).rposition(|pair| pair[0] != pair[1]).map_or(0, |position| position + 1)
}

/// A figure with the share of nodes against what these attacks count, up to `last`.
fn shares_by_budget(what: &str, attacks: impl IntoIterator<Item = Attack>, last: usize) -> Figure {
    let mut counted: Vec<&str> = attacks.into_iter().map(Attack::counted_by).collect();
    counted.dedup();
    let counted = match counted[..] {
        [] => Attack::default().counted_by(),
        [one] => one,
        _ => "Flips or deletions Q",
    };
    Figure::new(Axis::new(counted, 0.0, last.max(1) as f64).whole(), Axis::new(what, 0.0, 1.0).percent())
}

/// Curves as areas: robust nodes from below, nonrobust ones from above, white between.
fn with_areas(figure: Figure, curves: &Curves) -> Figure {
    let (robust, rest) = (curves.robust_points(), curves.not_nonrobust_points());
    let level = |height: f64| robust.iter().map(|&(q, _)| (q, height)).collect::<Vec<_>>();
    let fill = |colour: Colour| Fill::Solid(colour.tint(0.42));
    let between = Area::new(robust.clone(), rest.clone(), Fill::Solid(palette::WHITE));
    let between = if curves.has_undecided() { between.named("undecided") } else { between };
    let mut figure = figure
        .area(between)
        .area(Area::new(level(0.0), robust.clone(), fill(palette::ROBUST)).named("robust"))
        .line(Line::new(robust.clone(), Stroke::solid(palette::ROBUST)));
    if curves.nonrobust.iter().any(|&share| share > 0.0) {
        figure = figure
            .area(Area::new(rest.clone(), level(1.0), fill(palette::NONROBUST)).named("nonrobust"))
            .line(Line::new(rest.clone(), Stroke::solid(palette::NONROBUST)));
    }
    figure
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_change_is_where_a_curve_becomes_flat() {
        assert_eq!(last_change(&[1.0, 1.0, 0.5, 0.5, 0.5]), 2);
        assert_eq!(last_change(&[1.0, 1.0]), 0);
        assert_eq!(last_change(&[]), 0);
        assert_eq!(last_of(&[1.0, 0.5, 0.0, 0.0]), 2, "nothing is left to see");
        assert_eq!(last_of(&[1.0, 0.5, 0.5, 0.5]), 3, "half of the nodes withstand all budgets");
    }
}

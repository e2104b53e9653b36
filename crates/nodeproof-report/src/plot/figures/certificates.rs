//! Figures 1, 4 and 5: certificates of one model.

use super::{Curves, Figure, Line, Reference, Stroke, palette, shares_by_budget, with_areas};

/// Figure 1 of the paper: which share of the nodes is robust (from below) and nonrobust (from above) against the global
/// budget; the white area between is undecided.
///
/// The curves of another model, with its name, are drawn dashed over it (figures 4 and 5: robust training against standard
/// training); those of `reference` are dotted.
pub fn certificates(
    (name, curves): (Option<&str>, &Curves),
    against: Option<(&str, &Curves)>,
    reference: Option<&Reference>,
) -> Figure {
    let last = curves.last().max(against.map_or(0, |(_, other)| other.last()));
    let attacks = [curves.attack].into_iter().chain(against.map(|(_, other)| other.attack));
    let mut figure = with_areas(shares_by_budget("Nodes (%)", attacks, last), curves);
    if let Some(name) = name {
        figure = figure.line(Line::new(curves.robust_points(), Stroke::solid(palette::ROBUST)).named(name));
    }
    if let Some((name, other)) = against {
        let stroke = Stroke::dashed(palette::INK).width(0.9);
        figure = figure.line(Line::new(other.robust_points(), stroke).named(name));
        if !other.nonrobust.is_empty() {
            figure = figure.line(Line::new(other.not_nonrobust_points(), stroke));
        }
    }
    for (number, (_, points)) in reference.iter().flat_map(|reference| &reference.curves).enumerate() {
        let line = Line::new(points.clone(), Stroke::dotted(palette::INK).width(1.0));
        // One entry in the legend for all of them.
        figure = figure.line(match reference {
            Some(reference) if number == 0 => line.named(reference.name.as_str()),
            _ => line,
        });
    }
    figure
}

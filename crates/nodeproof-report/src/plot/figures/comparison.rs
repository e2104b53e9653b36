//! Figures 6 and 9: several models.

use super::{Colour, Figure, Line, Point, Reference, Stroke, last_of, palette, points, shares_by_budget};
use crate::attack::Attack;
use crate::plot::{Dash, Dots};

/// A model in a comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct Compared {
    /// Its name.
    pub name: String,
    /// Share of nodes proven robust at Q = 0, 1, 2, ….
    pub robust: Vec<f64>,
    /// What Q counts.
    pub attack: Attack,
    /// The global budget that it was trained for; marked on its curve.
    pub trained_for: Option<u32>,
}

/// Figure 6 of the paper: which share of the nodes is robust against the global budget, one line for each model; and
/// figure 9, where each was trained for another budget, which is marked.
///
/// The curves of `reference` are dotted: in the colour of the model of the same name (upper and lower case aside), else with an
/// entry of their own in the legend.
pub fn comparison(models: &[Compared], reference: Option<&Reference>) -> Figure {
    let last = models.iter().map(|model| last_of(&model.robust)).max().unwrap_or(0);
    let mut figure = shares_by_budget("Robust nodes (%)", models.iter().map(|model| model.attack), last);
    for (number, (name, points)) in reference.iter().flat_map(|reference| &reference.curves).enumerate() {
        figure = figure.line(reference_line(name, points, models, number));
    }
    for (number, model) in models.iter().enumerate() {
        figure = with_model(figure, model, number);
    }
    match reference.filter(|reference| reference.curves.iter().any(|(name, _)| number_of(name, models).is_some())) {
        Some(reference) => figure.line(Line::new(Vec::new(), dotted(palette::FAINT)).named(reference.name.as_str())),
        None => figure,
    }
}

fn with_model(figure: Figure, model: &Compared, number: usize) -> Figure {
    let colour = palette::series(number);
    // Colours repeat; then dashes distinguish lines.
    let dash = if number < palette::series_count() { Dash::Solid } else { Dash::Dashed };
    let line = Line::new(points(&model.robust), Stroke::solid(colour).dash(dash)).named(model.name.as_str());
    let figure = figure.line(line);
    match model.trained_for.and_then(|q| Some((f64::from(q), *model.robust.get(q as usize)?))) {
        Some(mark) => figure.dots(Dots::new(vec![mark], colour, 2.0, 1.0)),
        None => figure,
    }
}

fn reference_line(name: &str, points: &[Point], models: &[Compared], number: usize) -> Line {
    match number_of(name, models) {
        Some(model) => Line::new(points.to_vec(), dotted(palette::series(model))),
        None => Line::new(points.to_vec(), dotted(palette::series(models.len() + number))).named(name),
    }
}

fn dotted(colour: Colour) -> Stroke {
    Stroke::dotted(colour).width(1.2)
}

/// Number of the model that a curve belongs to.
fn number_of(name: &str, models: &[Compared]) -> Option<usize> {
    models.iter().position(|model| model.name.to_lowercase() == name.to_lowercase())
}

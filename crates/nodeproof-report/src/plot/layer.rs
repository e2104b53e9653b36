//! What a figure shows: areas, lines, dots and markers.

use super::palette::{self, Colour};

/// A value on the x axis and one on the y axis. Points that have no place on the axes are left out.
pub type Point = (f64, f64);

/// Whether a line is drawn through or interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dash {
    /// Without gaps.
    Solid,
    /// Long dashes.
    Dashed,
    /// Dots.
    Dotted,
}

/// How a line is drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stroke {
    pub(crate) colour: Colour,
    pub(crate) width: f64,
    pub(crate) dash: Dash,
}

/// How an area is filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fill {
    /// With one colour.
    Solid(Colour),
    /// With thin diagonal lines.
    Hatched(Colour),
}

/// The area between two curves, both from left to right.
#[derive(Debug, Clone)]
pub struct Area {
    pub(crate) lower: Vec<Point>,
    pub(crate) upper: Vec<Point>,
    pub(crate) fill: Fill,
    pub(crate) name: Option<String>,
    pub(crate) is_listed: bool,
}

/// A curve, as straight lines between its points.
#[derive(Debug, Clone)]
pub struct Line {
    pub(crate) points: Vec<Point>,
    pub(crate) stroke: Stroke,
    pub(crate) name: Option<String>,
    pub(crate) is_background: bool,
}

/// Dots. Where faint ones lie on each other they get darker; opaque ones are marks, over everything else and never cut off.
#[derive(Debug, Clone)]
pub struct Dots {
    pub(crate) points: Vec<Point>,
    pub(crate) colour: Colour,
    pub(crate) radius: f64,
    pub(crate) opacity: f64,
    pub(crate) name: Option<String>,
}

/// A thin line across the figure at one value, with a label outside.
#[derive(Debug, Clone)]
pub struct Marker {
    pub(crate) at: f64,
    pub(crate) is_vertical: bool,
    pub(crate) label: String,
    pub(crate) colour: Colour,
}

#[derive(Debug, Clone)]
pub(crate) enum Layer {
    Area(Area),
    Line(Line),
    Dots(Dots),
}

impl Stroke {
    /// A solid line.
    pub fn solid(colour: Colour) -> Self {
        Self { colour, width: 1.1, dash: Dash::Solid }
    }

    /// A dashed line.
    pub fn dashed(colour: Colour) -> Self {
        Self { dash: Dash::Dashed, ..Self::solid(colour) }
    }

    /// A dotted line.
    pub fn dotted(colour: Colour) -> Self {
        Self { dash: Dash::Dotted, ..Self::solid(colour) }
    }

    /// The same stroke with another dash.
    #[must_use]
    pub fn dash(mut self, dash: Dash) -> Self {
        self.dash = dash;
        self
    }

    /// The same stroke with another width, in points.
    #[must_use]
    pub fn width(mut self, width: f64) -> Self {
        self.width = width;
        self
    }

    /// Lengths of dashes and gaps, as SVG wants them; round caps make dots of dashes without length.
    pub(crate) fn pattern(&self) -> Option<String> {
        match self.dash {
            Dash::Solid => None,
            Dash::Dashed => Some(format!("{:.2} {:.2}", 3.2 * self.width, 2.0 * self.width)),
            Dash::Dotted => Some(format!("0 {:.2}", 2.1 * self.width)),
        }
    }
}

impl Area {
    /// The area between a lower and an upper curve.
    pub fn new(lower: Vec<Point>, upper: Vec<Point>, fill: Fill) -> Self {
        Self { lower, upper, fill, name: None, is_listed: false }
    }

    /// The same area with a name, which stands in it if there is room, else in the legend.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// The same area with a name for the legend.
    #[must_use]
    pub fn listed(mut self, name: impl Into<String>) -> Self {
        self.is_listed = true;
        self.named(name)
    }
}

impl Line {
    /// A curve through these points, from left to right.
    pub fn new(points: Vec<Point>, stroke: Stroke) -> Self {
        Self { points, stroke, name: None, is_background: false }
    }

    /// The same curve with a name for the legend.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// The same curve, which a legend may cover: noise behind others.
    #[must_use]
    pub fn background(mut self) -> Self {
        self.is_background = true;
        self
    }
}

impl Dots {
    /// Dots of a radius in points and an opacity from 0 to 1.
    pub fn new(points: Vec<Point>, colour: Colour, radius: f64, opacity: f64) -> Self {
        Self { points, colour, radius, opacity, name: None }
    }

    /// The same dots with a name for the legend.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }
}

impl Dots {
    pub(crate) fn are_marks(&self) -> bool {
        self.opacity >= 1.0
    }
}

impl Marker {
    /// A vertical line at a value of the x axis; the label stands above.
    pub fn vertical(at: f64, label: impl Into<String>) -> Self {
        Self { at, is_vertical: true, label: label.into(), colour: palette::FAINT }
    }

    /// A horizontal line at a value of the y axis; the label stands on the right.
    pub fn horizontal(at: f64, label: impl Into<String>) -> Self {
        Self { is_vertical: false, ..Self::vertical(at, label) }
    }

    /// The same marker in another colour.
    #[must_use]
    pub fn coloured(mut self, colour: Colour) -> Self {
        self.colour = colour;
        self
    }
}

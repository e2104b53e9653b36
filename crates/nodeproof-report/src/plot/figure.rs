//! A figure: its description, and how it is drawn.

use std::collections::BTreeMap;

use super::axis::Axis;
use super::error::PlotError;
use super::font;
use super::geometry::{Rect, Spot};
use super::hatch;
use super::layer::{Area, Dots, Fill, Layer, Line, Marker, Stroke};
use super::layout::{Layout, SMALL_SIZE};
use super::legend::Symbol;
use super::palette;
use super::png;
use super::svg::{Anchor, Document, Label, TEXT_FAMILY, number, path};
use super::text;

/// Points in a millimetre.
const POINTS: f64 = 72.0 / 25.4;

/// Distance of the lines of a hatched area.
const HATCH_SPACING: f64 = 2.6;

/// How many degrees of darkness dots come in.
const SHADES: f64 = 12.0;

/// Width and height of a figure in millimetres.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Size {
    width: f64,
    height: f64,
}

/// A figure: two axes, and layers between them.
#[derive(Debug, Clone)]
pub struct Figure {
    pub(crate) size: Size,
    pub(crate) title: Option<String>,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) layers: Vec<Layer>,
    pub(crate) markers: Vec<Marker>,
}

impl Size {
    /// Smallest width and height.
    pub const MIN: f64 = 30.0;
    /// Largest width and height.
    pub const MAX: f64 = 1000.0;

    /// A size in millimetres.
    ///
    /// # Errors
    ///
    /// Where width or height are below [`Size::MIN`] or above [`Size::MAX`].
    pub fn new(width: f64, height: f64) -> Result<Self, PlotError> {
        let is_possible = |length: f64| (Self::MIN..=Self::MAX).contains(&length);
        if is_possible(width) && is_possible(height) {
            Ok(Self { width, height })
        } else {
            Err(PlotError::Size { width, height, min: Self::MIN, max: Self::MAX })
        }
    }

    /// Width in millimetres.
    pub fn width(&self) -> f64 {
        self.width
    }

    /// Height in millimetres.
    pub fn height(&self) -> f64 {
        self.height
    }

    /// Width and height in points, the unit in which figures are laid out.
    pub(crate) fn in_points(&self) -> (f64, f64) {
        (self.width * POINTS, self.height * POINTS)
    }
}

impl Default for Size {
    /// A column of a paper: 84 × 58 mm.
    fn default() -> Self {
        Self { width: 84.0, height: 58.0 }
    }
}

impl Figure {
    /// An empty figure of the default size.
    pub fn new(x: Axis, y: Axis) -> Self {
        Self { size: Size::default(), title: None, x, y, layers: Vec::new(), markers: Vec::new() }
    }

    /// The same figure in another size.
    #[must_use]
    pub fn size(mut self, size: Size) -> Self {
        self.size = size;
        self
    }

    /// The same figure with a title.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// The same figure with an area over what is there.
    #[must_use]
    pub fn area(mut self, area: Area) -> Self {
        self.layers.push(Layer::Area(area));
        self
    }

    /// The same figure with a line over what is there.
    #[must_use]
    pub fn line(mut self, line: Line) -> Self {
        self.layers.push(Layer::Line(line));
        self
    }

    /// The same figure with dots over what is there.
    #[must_use]
    pub fn dots(mut self, dots: Dots) -> Self {
        self.layers.push(Layer::Dots(dots));
        self
    }

    /// The same figure with a marker, which is drawn over areas and below everything else.
    #[must_use]
    pub fn marker(mut self, marker: Marker) -> Self {
        self.markers.push(marker);
        self
    }

    /// The figure as an SVG document. Text stays text.
    pub fn svg(&self) -> String {
        let layout = Layout::of(self);
        let mut document = Document::default();
        self.open(&mut document);
        self.draw_layers(&layout, &mut document);
        draw_axes(&layout, &mut document);
        draw_legend(&layout, &mut document);
        for label in &layout.labels {
            document.label(label);
        }
        document.close("svg");
        document.finish()
    }

    /// The figure as a PNG image: its SVG, rendered with the embedded font.
    ///
    /// # Errors
    ///
    /// Where the resolution gives no pixels at all or too many.
    pub fn png(&self, dots_per_inch: f64) -> Result<Vec<u8>, PlotError> {
        png::render(&self.svg(), self.size, dots_per_inch)
    }

    fn open(&self, document: &mut Document) {
        let (width, height) = self.size.in_points();
        let view = format!("0 0 {} {}", number(width), number(height));
        document.open(
            "svg",
            &[
                ("xmlns", "http://www.w3.org/2000/svg"),
                ("width", &format!("{}mm", self.size.width)),
                ("height", &format!("{}mm", self.size.height)),
                ("viewBox", &view),
                ("role", "img"),
                TEXT_FAMILY,
            ],
        );
        document.text_element("title", &[], &self.description());
        let (width, height) = (number(width), number(height));
        document.element("rect", &[("width", &width), ("height", &height), ("fill", &palette::WHITE.to_string())]);
    }

    /// What a screen reader says.
    fn description(&self) -> String {
        match &self.title {
            Some(title) => text::clean(title),
            None => format!("{} against {}", text::clean(&self.y.label), text::clean(&self.x.label)),
        }
    }

    /// Layers, clipped to the frame by an inner document.
    fn draw_layers(&self, layout: &Layout, document: &mut Document) {
        // Half the width of a line more, so that lines along the border are whole.
        let clip = layout.frame.grown(0.6);
        let (x, y, width, height) = (number(clip.left), number(clip.top), number(clip.width()), number(clip.height()));
        let view = format!("{x} {y} {width} {height}");
        document.open(
            "svg",
            &[("class", "plot"), ("x", &x), ("y", &y), ("width", &width), ("height", &height), ("viewBox", &view)],
        );
        let is_area = |layer: &&Layer| matches!(layer, Layer::Area(_));
        self.layers.iter().filter(is_area).for_each(|layer| draw_layer(layer, layout, document));
        self.markers.iter().for_each(|marker| draw_marker(marker, layout, document));
        self.layers.iter().filter(|layer| !is_area(layer)).for_each(|layer| draw_layer(layer, layout, document));
        document.close("svg");
        for layer in &self.layers {
            if let Layer::Dots(dots) = layer
                && dots.are_marks()
            {
                draw_marks(&layout.spots(&dots.points), dots, &layout.frame, document);
            }
        }
    }
}

fn draw_layer(layer: &Layer, layout: &Layout, document: &mut Document) {
    match layer {
        Layer::Area(area) => draw_area("area", &layout.outline(area), area.fill, document),
        Layer::Line(line) => document.stroke("line", &path(&layout.spots(&line.points)), &line.stroke),
        Layer::Dots(dots) if dots.are_marks() => {}
        Layer::Dots(dots) => draw_dots(&layout.spots(&dots.points), dots, document),
    }
}

fn draw_area(class: &str, outline: &[Spot], fill: Fill, document: &mut Document) {
    match fill {
        Fill::Solid(_) if outline.len() < 3 => {}
        Fill::Solid(colour) => {
            let closed = format!("{}Z", path(outline));
            document.element("path", &[("class", class), ("d", &closed), ("fill", &colour.to_string())]);
        }
        Fill::Hatched(colour) => {
            let segments: String =
                hatch::lines(outline, HATCH_SPACING).iter().map(|&(from, to)| path(&[from, to])).collect();
            document.stroke(class, &segments, &Stroke::solid(colour).width(0.4));
        }
    }
}

/// Dots that lie within one radius become one, the darker the more they are.
fn draw_dots(spots: &[Spot], dots: &Dots, document: &mut Document) {
    let mut counts: BTreeMap<(i64, i64), i32> = BTreeMap::new();
    for &(x, y) in spots {
        let cell = ((x / dots.radius).round() as i64, (y / dots.radius).round() as i64);
        *counts.entry(cell).or_default() += 1;
    }
    let mut shades: BTreeMap<i64, String> = BTreeMap::new();
    for ((column, row), count) in counts {
        let opacity = 1.0 - (1.0 - dots.opacity.clamp(0.0, 1.0)).powi(count);
        let dot = format!("M{} {}h0", number(column as f64 * dots.radius), number(row as f64 * dots.radius));
        shades.entry((opacity * SHADES).ceil() as i64).or_default().push_str(&dot);
    }
    for (shade, path) in shades {
        document.element(
            "path",
            &[
                ("class", "dots"),
                ("d", &path),
                ("stroke", &dots.colour.to_string()),
                ("stroke-width", &number(dots.radius * 2.0)),
                ("stroke-linecap", "round"),
                ("stroke-opacity", &number(shade as f64 / SHADES)),
            ],
        );
    }
}

/// Opaque dots where they are, as long as that is in the frame.
fn draw_marks(spots: &[Spot], dots: &Dots, frame: &Rect, document: &mut Document) {
    let (radius, colour) = (number(dots.radius), dots.colour.to_string());
    for &(x, y) in spots.iter().filter(|&&spot| frame.grown(0.01).contains(spot)) {
        let (x, y) = (number(x), number(y));
        document.element("circle", &[("class", "mark"), ("cx", &x), ("cy", &y), ("r", &radius), ("fill", &colour)]);
    }
}

fn draw_marker(marker: &Marker, layout: &Layout, document: &mut Document) {
    let frame = &layout.frame;
    let ends = if marker.is_vertical {
        layout.x_place(marker.at).map(|x| [(x, frame.top), (x, frame.bottom)])
    } else {
        layout.y_place(marker.at).map(|y| [(frame.left, y), (frame.right, y)])
    };
    if let Some(ends) = ends {
        document.stroke("marker", &path(&ends), &Stroke::dashed(marker.colour).width(0.5));
    }
}

/// Two spines, their ticks and the labels of the ticks.
fn draw_axes(layout: &Layout, document: &mut Document) {
    let frame = &layout.frame;
    let thin = Stroke::solid(palette::INK).width(0.5);
    let corner = (frame.left, frame.bottom);
    document.stroke("spines", &path(&[(frame.left, frame.top), corner, (frame.right, frame.bottom)]), &thin);
    let mut marks = String::new();
    for tick in &layout.x_ticks {
        let length = if tick.label.is_some() { 2.5 } else { 1.5 };
        let x = frame.left + tick.position * frame.width();
        marks.push_str(&path(&[(x, frame.bottom), (x, frame.bottom + length)]));
    }
    for tick in &layout.y_ticks {
        let length = if tick.label.is_some() { 2.5 } else { 1.5 };
        let y = frame.bottom - tick.position * frame.height();
        marks.push_str(&path(&[(frame.left - length, y), (frame.left, y)]));
    }
    document.stroke("ticks", &marks, &thin);
    if let Some(position) = layout.x_break {
        let at = (frame.left + position * frame.width(), frame.bottom);
        draw_break(|along, across| (at.0 + along, at.1 + across), document);
    }
    if let Some(position) = layout.y_break {
        let at = (frame.left, frame.bottom - position * frame.height());
        draw_break(|along, across| (at.0 + across, at.1 - along), document);
    }
}

/// Two slanted strokes over a gap: here an axis is interrupted. `place` says where so much along the axis and across it is.
fn draw_break(place: impl Fn(f64, f64) -> Spot, document: &mut Document) {
    let gap = path(&[place(-1.2, 0.0), place(1.2, 0.0)]);
    document.stroke("break", &gap, &Stroke::solid(palette::WHITE).width(1.5));
    let strokes: String =
        [-1.2, 1.2].iter().map(|shift| path(&[place(shift - 0.9, 2.2), place(shift + 0.9, -2.2)])).collect();
    document.stroke("break", &strokes, &Stroke::solid(palette::INK).width(0.5));
}

fn draw_legend(layout: &Layout, document: &mut Document) {
    for entry in &layout.legend {
        draw_symbol(&entry.symbol, &entry.place, document);
        document.label(&Label {
            text: entry.name.clone(),
            at: (
                entry.place.right + 3.0,
                entry.place.bottom - (entry.place.height() - font::CAPITAL_HEIGHT * SMALL_SIZE) / 2.0,
            ),
            anchor: Anchor::Start,
            size: SMALL_SIZE,
            colour: palette::INK,
            is_turned: false,
        });
    }
}

fn draw_symbol(symbol: &Symbol, place: &Rect, document: &mut Document) {
    let middle = (place.top + place.bottom) / 2.0;
    match symbol {
        Symbol::Line(stroke) => {
            document.stroke("symbol", &path(&[(place.left, middle), (place.right, middle)]), stroke)
        }
        Symbol::Dot(colour) => document.element(
            "circle",
            &[
                ("class", "symbol"),
                ("cx", &number((place.left + place.right) / 2.0)),
                ("cy", &number(middle)),
                ("r", "1.4"),
                ("fill", &colour.to_string()),
            ],
        ),
        Symbol::Box(fill) => {
            let corners = [
                (place.left, place.top),
                (place.right, place.top),
                (place.right, place.bottom),
                (place.left, place.bottom),
            ];
            draw_area("symbol", &corners, *fill, document);
            let border = format!("{}Z", path(&corners));
            document.stroke("symbol", &border, &Stroke::solid(palette::FAINT).width(0.3));
        }
    }
}

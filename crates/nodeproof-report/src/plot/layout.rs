//! Where everything goes: the frame, ticks, labels, the legend. All lengths in points.

use super::axis::Tick;
use super::figure::Figure;
use super::font;
use super::geometry::{Rect, Spot, heights_between, spread};
use super::layer::{Area, Fill, Layer, Marker, Point};
use super::legend::{self, Entry, Ink, Placed, ROW};
use super::palette;
use super::svg::{Anchor, Label};
use super::text;

/// Size of ticks' labels, names and markers' labels.
pub(crate) const SMALL_SIZE: f64 = 7.0;
/// Size of axes' labels.
const LABEL_SIZE: f64 = 7.5;
const TITLE_SIZE: f64 = 8.5;

/// Distance of everything from the border.
const PAD: f64 = 2.0;
/// From a spine to the labels of its ticks, and from these to the label of the axis.
const TICK_GAP: f64 = 4.5;
const LABEL_GAP: f64 = 4.5;
/// Room for a tick's label on an axis.
const X_ROOM: f64 = 26.0;
const Y_ROOM: f64 = 20.0;

/// A figure, laid out.
#[derive(Debug)]
pub(crate) struct Layout<'a> {
    figure: &'a Figure,
    pub(crate) frame: Rect,
    pub(crate) x_ticks: Vec<Tick>,
    pub(crate) y_ticks: Vec<Tick>,
    pub(crate) x_break: Option<f64>,
    pub(crate) y_break: Option<f64>,
    pub(crate) labels: Vec<Label>,
    pub(crate) legend: Vec<Placed>,
}

impl<'a> Layout<'a> {
    /// Names areas where they are, if there is room; puts everything else that has a name into a legend, in the frame
    /// where it covers no data, or above.
    pub(crate) fn of(figure: &'a Figure) -> Self {
        let mut layout = Layout::with_rows(figure, 0);
        let outside = layout.areas_without_room();
        let mut entries = layout.entries(&outside);
        if entries.is_empty() {
            return layout.with_labels(&outside, Vec::new());
        }
        if let Some(placed) = legend::inside(&entries, &layout.frame, &layout.ink()) {
            return layout.with_labels(&outside, placed);
        }
        // Less height may leave more areas without room, which makes the legend larger.
        for _ in 0..3 {
            let rows = layout.legend_rows(&entries);
            layout = Layout::with_rows(figure, rows.len());
            let still_outside = layout.areas_without_room();
            let more = layout.entries(&still_outside);
            if more.len() <= entries.len() {
                break;
            }
            entries = more;
        }
        let rows = layout.legend_rows(&entries);
        let layout = Layout::with_rows(figure, rows.len());
        let outside = layout.areas_without_room();
        let placed = legend::above(&rows, layout.frame.left, layout.legend_top());
        layout.with_labels(&outside, placed)
    }

    /// The frame and its ticks, with room above it for so many rows of a legend.
    fn with_rows(figure: &'a Figure, rows: usize) -> Self {
        let (width, height) = figure.size.in_points();
        let capital = font::CAPITAL_HEIGHT;
        let mut top = PAD + capital * SMALL_SIZE / 2.0 + rows as f64 * ROW;
        if figure.title.is_some() {
            top += TITLE_SIZE + 3.0;
        }
        if figure.markers.iter().any(|marker| marker.is_vertical) {
            top += SMALL_SIZE + 1.5;
        }
        let bottom = height - PAD - LABEL_SIZE * 0.95 - LABEL_GAP - capital * SMALL_SIZE - TICK_GAP;
        let bottom = bottom.max(top + 10.0);
        let y_ticks = figure.y.ticks((bottom - top) / Y_ROOM);
        let tick_width = widest(y_ticks.iter().filter_map(|tick| tick.label.as_deref()));
        let left = (PAD + LABEL_SIZE + LABEL_GAP + tick_width + TICK_GAP).min(width / 2.0);
        let beside =
            figure.markers.iter().filter(|marker| !marker.is_vertical).map(|marker| marker_text(marker, width));
        let beside: Vec<String> = beside.collect();
        let marker_width = if beside.is_empty() { 0.0 } else { widest(beside.iter().map(String::as_str)) + 3.0 };
        let x_ticks = figure.x.ticks((width - left) / X_ROOM);
        let last = x_ticks.iter().rev().find_map(|tick| tick.label.as_deref().map(|label| (tick.position, label)));
        let overhang = last
            .map_or(0.0, |(position, label)| font::width(label, SMALL_SIZE) / 2.0 - (1.0 - position) * (width - left));
        let right = (width - PAD - marker_width.max(overhang).max(0.0)).max(left + 10.0);
        let frame = Rect { left, top, right, bottom };
        let (x_break, y_break) = (figure.x.break_position(), figure.y.break_position());
        Layout { figure, frame, x_ticks, y_ticks, x_break, y_break, labels: Vec::new(), legend: Vec::new() }
    }

    /// Place of a value of the x axis.
    pub(crate) fn x_place(&self, value: f64) -> Option<f64> {
        self.figure.x.position(value).map(|position| self.frame.left + position * self.frame.width())
    }

    /// Place of a value of the y axis.
    pub(crate) fn y_place(&self, value: f64) -> Option<f64> {
        self.figure.y.position(value).map(|position| self.frame.bottom - position * self.frame.height())
    }

    /// Places of those points that have one.
    pub(crate) fn spots(&self, points: &[Point]) -> Vec<Spot> {
        points.iter().filter_map(|&(x, y)| Some((self.x_place(x)?, self.y_place(y)?))).collect()
    }

    /// Outline of an area: along its upper curve and back along the lower one.
    pub(crate) fn outline(&self, area: &Area) -> Vec<Spot> {
        let mut outline = self.spots(&area.upper);
        outline.extend(self.spots(&area.lower).into_iter().rev());
        outline
    }

    fn ink(&self) -> Ink {
        let mut ink = Ink::default();
        for layer in &self.figure.layers {
            match layer {
                Layer::Area(area) => ink.areas.push((self.spots(&area.lower), self.spots(&area.upper))),
                Layer::Line(line) if line.is_background => {}
                Layer::Line(line) => ink.lines.push(self.spots(&line.points)),
                Layer::Dots(dots) => ink.dots.extend(self.spots(&dots.points)),
            }
        }
        for marker in &self.figure.markers {
            let Rect { left, top, right, bottom } = self.frame;
            if marker.is_vertical {
                ink.lines.extend(self.x_place(marker.at).map(|x| vec![(x, top), (x, bottom)]));
            } else {
                ink.lines.extend(self.y_place(marker.at).map(|y| vec![(left, y), (right, y)]));
            }
        }
        ink
    }

    /// Numbers of the layers that are named areas in which their name has no room.
    fn areas_without_room(&self) -> Vec<usize> {
        let ink = self.ink();
        let layers = self.figure.layers.iter().enumerate();
        layers
            .filter(|(_, layer)| matches!(layer, Layer::Area(area) if area.name.is_some() && self.name_in(area, &ink).is_none()))
            .map(|(number, _)| number)
            .collect()
    }

    /// The name of an area, where it covers no line: in the middle of the places where the area is high.
    fn name_in(&self, area: &Area, ink: &Ink) -> Option<Label> {
        let name = text::fit(area.name.as_ref()?, SMALL_SIZE, self.frame.width() / 2.0);
        if area.is_listed || !matches!(area.fill, Fill::Solid(_)) {
            return None;
        }
        let places = self.places_in(area, ink, font::width(&name, SMALL_SIZE) + 10.0, SMALL_SIZE + 4.0);
        let highest = places.iter().map(|place| place.0).fold(0.0, f64::max);
        let high: Vec<Spot> =
            places.into_iter().filter(|place| place.0 >= 0.6 * highest).map(|place| place.1).collect();
        let &(x, y) = high.get(high.len() / 2)?;
        Some(label(name, (x, y + font::CAPITAL_HEIGHT * SMALL_SIZE / 2.0), Anchor::Middle, SMALL_SIZE))
    }

    /// Centres of rectangles of this size in an area that cover no line, from left to right, and how high the area is there.
    fn places_in(&self, area: &Area, ink: &Ink, width: f64, height: f64) -> Vec<(f64, Spot)> {
        let (lower, upper) = (self.spots(&area.lower), self.spots(&area.upper));
        let steps = ((self.frame.width() - width) / 2.0).max(0.0) as usize;
        let at_step = |step: usize| {
            let left = self.frame.left + step as f64 * 2.0;
            let (_, top) = heights_between(&upper, left, left + width)?;
            let (bottom, _) = heights_between(&lower, left, left + width)?;
            let free = bottom - top - height;
            // The middle is best, if no line is there.
            let shares = [0.5, 0.35, 0.65, 0.2, 0.8, 0.05, 0.95].into_iter().filter(|_| free >= 0.0);
            let mut centres = shares.map(|share| (left + width / 2.0, top + height / 2.0 + share * free));
            Some((free, centres.find(|&centre| ink.is_free_of_lines(&centred(centre, width - 2.0, height - 2.0)))?))
        };
        (0..=steps).filter_map(at_step).collect()
    }

    /// Entries of the legend: all layers with names, of areas only these.
    fn entries(&self, areas: &[usize]) -> Vec<Entry> {
        let layers = self.figure.layers.iter().enumerate();
        let listed = layers.filter(|(number, layer)| match layer {
            Layer::Area(area) => areas.contains(number) && area.lower.len() > 1,
            _ => true,
        });
        listed.filter_map(|(_, layer)| Entry::of(layer, self.frame.width() * 0.75)).collect()
    }

    fn legend_rows(&self, entries: &[Entry]) -> Vec<Vec<Entry>> {
        let (width, height) = self.figure.size.in_points();
        let most = (height / 3.0 / ROW).max(1.0) as usize;
        legend::rows(entries, width - self.frame.left - PAD, most)
    }

    fn legend_top(&self) -> f64 {
        if self.figure.title.is_some() { PAD + TITLE_SIZE + 2.0 } else { PAD }
    }

    fn with_labels(mut self, areas_in_legend: &[usize], legend: Vec<Placed>) -> Self {
        let ink = self.ink();
        let mut labels = self.axis_labels();
        labels.extend(self.tick_labels());
        labels.extend(self.marker_labels());
        for (number, layer) in self.figure.layers.iter().enumerate() {
            if let Layer::Area(area) = layer
                && !areas_in_legend.contains(&number)
            {
                labels.extend(self.name_in(area, &ink));
            }
        }
        self.labels = labels;
        self.legend = legend;
        self
    }

    fn axis_labels(&self) -> Vec<Label> {
        let (width, height) = self.figure.size.in_points();
        let frame = &self.frame;
        let mut labels = Vec::new();
        if let Some(title) = &self.figure.title {
            let title = text::fit(title, TITLE_SIZE, width - frame.left - PAD);
            labels.push(label(title, (frame.left, PAD + TITLE_SIZE * font::CAPITAL_HEIGHT), Anchor::Start, TITLE_SIZE));
        }
        let x_label = text::fit(&self.figure.x.label, LABEL_SIZE, frame.width());
        let below = (height - PAD - LABEL_SIZE * 0.22).max(frame.bottom + 18.0);
        labels.push(label(x_label, ((frame.left + frame.right) / 2.0, below), Anchor::Middle, LABEL_SIZE));
        let y_label = text::fit(&self.figure.y.label, LABEL_SIZE, height - 2.0 * PAD);
        // Centred on the frame, if the label does not leave the page there.
        let half = font::width(&y_label, LABEL_SIZE) / 2.0;
        let middle = ((frame.top + frame.bottom) / 2.0).clamp(PAD + half, (height - PAD - half).max(PAD + half));
        let mut y_label = label(y_label, (PAD + LABEL_SIZE * font::CAPITAL_HEIGHT, middle), Anchor::Middle, LABEL_SIZE);
        y_label.is_turned = true;
        labels.push(y_label);
        labels
    }

    fn tick_labels(&self) -> Vec<Label> {
        let frame = &self.frame;
        let capital = font::CAPITAL_HEIGHT * SMALL_SIZE;
        let x = self.x_ticks.iter().filter_map(|tick| {
            let at = (frame.left + tick.position * frame.width(), frame.bottom + TICK_GAP + capital);
            Some(label(tick.label.clone()?, at, Anchor::Middle, SMALL_SIZE))
        });
        let y = self.y_ticks.iter().filter_map(|tick| {
            let at = (frame.left - TICK_GAP, frame.bottom - tick.position * frame.height() + capital / 2.0);
            Some(label(tick.label.clone()?, at, Anchor::End, SMALL_SIZE))
        });
        x.chain(y).collect()
    }

    fn marker_labels(&self) -> Vec<Label> {
        let mut labels = self.labels_above();
        labels.extend(self.labels_beside());
        labels
    }

    /// Labels of vertical markers, above the frame.
    fn labels_above(&self) -> Vec<Label> {
        let (page, _) = self.figure.size.in_points();
        let (markers, places) = self.placed_markers(true);
        let texts: Vec<String> = markers.iter().map(|marker| marker_text(marker, page)).collect();
        let widths: Vec<f64> = texts.iter().map(|text| font::width(text, SMALL_SIZE) + 3.0).collect();
        let centres = spread(&places, &widths, self.frame.left, page - PAD);
        let placed = markers.iter().zip(texts).zip(centres);
        placed
            .map(|((marker, text), x)| {
                let mut label = label(text, (x, self.frame.top - 2.5), Anchor::Middle, SMALL_SIZE);
                label.colour = marker.colour;
                label
            })
            .collect()
    }

    /// Labels of horizontal markers, to the right of the frame.
    fn labels_beside(&self) -> Vec<Label> {
        let (page, _) = self.figure.size.in_points();
        let (markers, places) = self.placed_markers(false);
        let heights = vec![SMALL_SIZE + 1.0; places.len()];
        let centres = spread(&places, &heights, self.frame.top, self.frame.bottom);
        let placed = markers.iter().zip(centres);
        placed
            .map(|(marker, y)| {
                let at = (self.frame.right + 3.0, y + font::CAPITAL_HEIGHT * SMALL_SIZE / 2.0);
                let mut label = label(marker_text(marker, page), at, Anchor::Start, SMALL_SIZE);
                label.colour = marker.colour;
                label
            })
            .collect()
    }

    /// Markers of one direction that are in the frame, and their places.
    fn placed_markers(&self, is_vertical: bool) -> (Vec<&Marker>, Vec<f64>) {
        let markers = self.figure.markers.iter().filter(|marker| marker.is_vertical == is_vertical);
        let place = |marker: &&Marker| {
            let frame = &self.frame;
            if is_vertical {
                self.x_place(marker.at).filter(|&x| x >= frame.left && x <= frame.right)
            } else {
                self.y_place(marker.at).filter(|&y| y >= frame.top && y <= frame.bottom)
            }
        };
        markers.filter_map(|marker| Some((marker, place(&marker)?))).unzip()
    }
}

/// The label of a marker, no wider than a quarter of the page.
fn marker_text(marker: &Marker, page: f64) -> String {
    text::fit(&marker.label, SMALL_SIZE, page / 4.0)
}

fn widest<'t>(texts: impl Iterator<Item = &'t str>) -> f64 {
    texts.map(|text| font::width(text, SMALL_SIZE)).fold(0.0, f64::max)
}

fn centred((x, y): Spot, width: f64, height: f64) -> Rect {
    Rect { left: x - width / 2.0, top: y - height / 2.0, right: x + width / 2.0, bottom: y + height / 2.0 }
}

fn label(text: String, at: Spot, anchor: Anchor, size: f64) -> Label {
    Label { text, at, anchor, size, colour: palette::INK, is_turned: false }
}

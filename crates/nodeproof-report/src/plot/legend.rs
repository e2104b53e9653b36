//! The legend: what is in it, and where it covers no data.

use super::font;
use super::geometry::{Rect, Spot, heights_between};
use super::layer::{Fill, Layer, Stroke};
use super::layout::SMALL_SIZE;
use super::palette::Colour;
use super::text;

/// Width of a symbol, and of the gap after it.
const SYMBOL: f64 = 13.0;
const SYMBOL_GAP: f64 = 3.0;
/// Height of a line of the legend, and of a symbol that has an area.
pub(crate) const ROW: f64 = 9.4;
const SYMBOL_HEIGHT: f64 = 5.4;
/// Distance between entries in a row.
const ENTRY_GAP: f64 = 9.0;
/// Distance of a legend in the frame from spines and data.
const INSET: f64 = 3.5;

/// What stands before a name.
#[derive(Debug, Clone)]
pub(crate) enum Symbol {
    Line(Stroke),
    Dot(Colour),
    Box(Fill),
}

/// A name and its symbol.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) symbol: Symbol,
    pub(crate) name: String,
}

/// An entry that has its place; `place` is that of the symbol.
#[derive(Debug, Clone)]
pub(crate) struct Placed {
    pub(crate) symbol: Symbol,
    pub(crate) name: String,
    pub(crate) place: Rect,
}

/// What a legend must not cover.
#[derive(Debug, Default)]
pub(crate) struct Ink {
    pub(crate) lines: Vec<Vec<Spot>>,
    pub(crate) dots: Vec<Spot>,
    /// Lower and upper curve of areas.
    pub(crate) areas: Vec<(Vec<Spot>, Vec<Spot>)>,
}

impl Entry {
    /// The entry of a layer, its name shortened to `room`; none where it has no name.
    pub(crate) fn of(layer: &Layer, room: f64) -> Option<Entry> {
        let (symbol, name) = match layer {
            Layer::Area(area) => (Symbol::Box(area.fill), area.name.as_ref()?),
            Layer::Line(line) => (Symbol::Line(line.stroke), line.name.as_ref()?),
            Layer::Dots(dots) => (Symbol::Dot(dots.colour), dots.name.as_ref()?),
        };
        Some(Entry { symbol, name: text::fit(name, SMALL_SIZE, room - SYMBOL - SYMBOL_GAP) })
    }

    fn width(&self) -> f64 {
        SYMBOL + SYMBOL_GAP + font::width(&self.name, SMALL_SIZE)
    }

    fn place_at(&self, left: f64, top: f64) -> Placed {
        let top = top + (ROW - SYMBOL_HEIGHT) / 2.0;
        let place = Rect { left, top, right: left + SYMBOL, bottom: top + SYMBOL_HEIGHT };
        Placed { symbol: self.symbol.clone(), name: self.name.clone(), place }
    }
}

/// The entries below each other, where they cover nothing; `None` if there is no such place.
pub(crate) fn inside(entries: &[Entry], frame: &Rect, ink: &Ink) -> Option<Vec<Placed>> {
    let width = entries.iter().map(Entry::width).fold(0.0, f64::max);
    let height = entries.len() as f64 * ROW;
    let room = Rect {
        left: frame.left + INSET,
        right: frame.right - width,
        top: frame.top,
        bottom: frame.bottom - height - INSET,
    };
    if room.width() < 0.0 || room.height() < 0.0 {
        return None;
    }
    let spot = candidates(&room).into_iter().find(|&(left, top)| {
        let block = Rect { left, top, right: left + width, bottom: top + height };
        ink.is_free(&block.grown(INSET))
    })?;
    Some(entries.iter().enumerate().map(|(row, entry)| entry.place_at(spot.0, spot.1 + row as f64 * ROW)).collect())
}

/// Corners first, the top right before all; then places all over, from the right.
fn candidates(room: &Rect) -> Vec<Spot> {
    let mut spots =
        vec![(room.right, room.top), (room.left, room.bottom), (room.right, room.bottom), (room.left, room.top)];
    const STEPS: u8 = 12;
    for column in (0..=STEPS).rev() {
        for row in 0..=STEPS {
            let share = |step: u8| f64::from(step) / f64::from(STEPS);
            spots.push((room.left + share(column) * room.width(), room.top + share(row) * room.height()));
        }
    }
    spots
}

/// The entries in columns that together are no wider than `width`, as rows; what does not fit into `most` rows is counted in
/// the last entry.
pub(crate) fn rows(entries: &[Entry], width: f64, most: usize) -> Vec<Vec<Entry>> {
    let fits = |&columns: &usize| column_widths(entries, columns).iter().sum::<f64>() <= width + ENTRY_GAP;
    let columns = (1..=entries.len()).rev().find(fits).unwrap_or(1);
    // No more columns than the rows need: four entries in two rows are two and two.
    let columns = entries.len().div_ceil(entries.len().div_ceil(columns).max(1)).max(1);
    let mut rows: Vec<Vec<Entry>> = entries.chunks(columns).map(<[Entry]>::to_vec).collect();
    if rows.len() > most {
        let missing = rows.drain(most..).map(|row| row.len()).sum();
        count_the_rest(&mut rows, missing);
    }
    rows
}

/// Width of each column, with the gap after it.
fn column_widths(entries: &[Entry], columns: usize) -> Vec<f64> {
    let widest = |column: usize| entries.iter().skip(column).step_by(columns).map(Entry::width).fold(0.0, f64::max);
    (0..columns).map(|column| widest(column) + ENTRY_GAP).collect()
}

/// Replaces the last entry by the number of those that are not there.
fn count_the_rest(rows: &mut [Vec<Entry>], missing: usize) {
    if let Some(last) = rows.last_mut().and_then(|row| row.last_mut()) {
        last.name = format!("… and {} more", missing + 1);
    }
}

/// Rows of entries below each other, from a place at the top left.
pub(crate) fn above(rows: &[Vec<Entry>], left: f64, top: f64) -> Vec<Placed> {
    let columns = rows.first().map_or(1, Vec::len);
    let widths = column_widths(&rows.concat(), columns.max(1));
    let mut placed = Vec::new();
    for (row, entries) in rows.iter().enumerate() {
        let mut x = left;
        for (entry, width) in entries.iter().zip(&widths) {
            placed.push(entry.place_at(x, top + row as f64 * ROW));
            x += width;
        }
    }
    placed
}

impl Ink {
    /// Whether nothing is drawn in a rectangle.
    pub(crate) fn is_free(&self, block: &Rect) -> bool {
        self.is_free_of_lines(block)
            && !self.dots.iter().any(|&dot| block.contains(dot))
            && !self.areas.iter().any(|(lower, upper)| covers(lower, upper, block))
    }

    pub(crate) fn is_free_of_lines(&self, block: &Rect) -> bool {
        !self.lines.iter().any(|line| line.windows(2).any(|ends| block.touches(ends[0], ends[1])))
    }
}

/// Whether the area between two curves reaches into a rectangle.
fn covers(lower: &[Spot], upper: &[Spot], block: &Rect) -> bool {
    let first = lower.iter().chain(upper).map(|spot| spot.0).fold(f64::INFINITY, f64::min);
    let last = lower.iter().chain(upper).map(|spot| spot.0).fold(f64::NEG_INFINITY, f64::max);
    let (from, to) = (block.left.max(first), block.right.min(last));
    if from >= to {
        return false;
    }
    match (heights_between(lower, from, to), heights_between(upper, from, to)) {
        (Some((_, bottom)), Some((top, _))) => bottom > block.top && top < block.bottom,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::palette;

    const FRAME: Rect = Rect { left: 0.0, top: 0.0, right: 200.0, bottom: 100.0 };

    fn entries(count: usize) -> Vec<Entry> {
        let symbol = Symbol::Line(Stroke::solid(palette::INK));
        (0..count).map(|number| Entry { symbol: symbol.clone(), name: format!("model {number}") }).collect()
    }

    #[test]
    fn the_legend_stands_where_no_line_is() {
        let falling = Ink { lines: vec![vec![(0.0, 0.0), (100.0, 90.0), (200.0, 100.0)]], ..Ink::default() };
        let placed = inside(&entries(3), &FRAME, &falling).unwrap();
        assert!(placed[0].place.left > 100.0 && placed[0].place.top < 20.0);
        let high = Ink { lines: vec![vec![(0.0, 0.0), (200.0, 10.0)]], ..Ink::default() };
        let placed = inside(&entries(3), &FRAME, &high).unwrap();
        assert!(placed[0].place.left < 10.0 && placed[2].place.bottom > 85.0);
    }

    #[test]
    fn there_may_be_no_place() {
        let area = (vec![(0.0, 100.0), (200.0, 100.0)], vec![(0.0, 0.0), (200.0, 0.0)]);
        let full = Ink { areas: vec![area], ..Ink::default() };
        assert!(inside(&entries(1), &FRAME, &full).is_none());
        assert!(inside(&entries(50), &FRAME, &Ink::default()).is_none());
    }

    #[test]
    fn rows_are_filled_and_the_rest_is_counted() {
        let entries = entries(20);
        let rows = rows(&entries, 120.0, 3);
        assert_eq!(rows.len(), 3);
        let shown: usize = rows.iter().map(Vec::len).sum();
        assert_eq!(rows[2].last().unwrap().name, format!("… and {} more", 20 - shown + 1));
        assert!(rows.iter().all(|row| row.iter().map(Entry::width).sum::<f64>() <= 120.0));
    }
}

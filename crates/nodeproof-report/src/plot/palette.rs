//! Colours that stay apart for colour-blind readers and in print: those of Okabe and Ito, 2008.

use std::fmt;

/// A colour of the sRGB space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Colour(u8, u8, u8);

/// Robust nodes: blue.
pub const ROBUST: Colour = Colour(0, 114, 178);
/// Nonrobust nodes: vermilion.
pub const NONROBUST: Colour = Colour(213, 94, 0);
/// Axes, text and whatever has no colour of its own.
pub const INK: Colour = Colour(38, 38, 38);
/// Markers and other things in the background.
pub const FAINT: Colour = Colour(120, 120, 120);
/// Paper; undecided nodes.
pub const WHITE: Colour = Colour(255, 255, 255);

const SERIES: [Colour; 7] = [
    ROBUST,
    NONROBUST,
    Colour(0, 140, 102),
    Colour(170, 80, 140),
    Colour(214, 148, 0),
    Colour(70, 165, 220),
    Colour(90, 90, 90),
];

/// The colour of the series with this number; they repeat after seven.
pub fn series(number: usize) -> Colour {
    SERIES[number % SERIES.len()]
}

/// How many series differ in colour.
pub fn series_count() -> usize {
    SERIES.len()
}

impl Colour {
    /// This colour mixed with white: 1 is the colour itself, 0 is white.
    pub fn tint(self, strength: f64) -> Colour {
        let mix = |value: u8| (255.0 - (255.0 - f64::from(value)) * strength.clamp(0.0, 1.0)).round() as u8;
        Colour(mix(self.0), mix(self.1), mix(self.2))
    }
}

impl fmt::Display for Colour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{:02x}{:02x}{:02x}", self.0, self.1, self.2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tints_go_from_white_to_the_colour() {
        assert_eq!(ROBUST.tint(0.0), WHITE);
        assert_eq!(ROBUST.tint(1.0), ROBUST);
        assert_eq!(ROBUST.tint(0.5).to_string(), "#80b9d9");
    }

    #[test]
    fn series_repeat() {
        assert_eq!(series(0), series(series_count()));
        assert_ne!(series(0), series(1));
    }
}

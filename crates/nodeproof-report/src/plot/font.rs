//! The one font of all figures, and the widths of its letters.

use std::sync::LazyLock;

use skrifa::instance::{LocationRef, Size};
use skrifa::{FontRef, MetadataProvider};

/// Inter Regular, the letters of Western Europe and Greek, digits, punctuation, arrows and signs; see `assets/README.md`.
pub(crate) const DATA: &[u8] = include_bytes!("../../assets/Inter-Regular-subset.ttf");

/// Name of the font in the file.
pub(crate) const NAME: &str = "Inter";

/// What an SVG asks for: the font itself, or what looks most like it.
pub(crate) const FAMILY: &str = "Inter, Helvetica, Arial, sans-serif";

/// Height of a capital letter or digit, as a share of the size.
pub(crate) const CAPITAL_HEIGHT: f64 = 1490.0 / 2048.0;

/// Width of a letter that the font does not have, as a share of the size: that of an ideograph or emoji.
const UNKNOWN_WIDTH: f64 = 1.0;

static FONT: LazyLock<Option<FontRef<'static>>> = LazyLock::new(|| FontRef::new(DATA).ok());

/// Width of a text without kerning, in the unit of `size`.
pub(crate) fn width(text: &str, size: f64) -> f64 {
    text.chars().map(|character| advance(character, size)).sum()
}

/// Width of one character.
pub(crate) fn advance(character: char, size: f64) -> f64 {
    known_advance(character).unwrap_or(UNKNOWN_WIDTH) * size
}

/// Width of a character that the font has, as a share of the size.
fn known_advance(character: char) -> Option<f64> {
    let font = FONT.as_ref()?;
    let glyph = font.charmap().map(character)?;
    let metrics = font.glyph_metrics(Size::new(1.0), LocationRef::default());
    metrics.advance_width(glyph).map(f64::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_font_has_what_figures_say() {
        let needed = "0123456789AZaz−×·…≤≥≈→←αΩ%()₁₂⁻¹⁰²³⁴⁵⁶⁷⁸⁹éßœ–—‘’“”";
        let missing: String = needed.chars().filter(|&character| known_advance(character).is_none()).collect();
        assert_eq!(missing, "");
    }

    #[test]
    fn widths_are_those_of_the_font() {
        // The table `hmtx` of the font has 1850 of 2048 units for M and 1355 for the minus sign.
        assert!((width("M", 20.48) - 18.5).abs() < 1e-3 && (width("−", 20.48) - 13.55).abs() < 1e-3);
        assert!(width("i", 10.0) < width("m", 10.0));
        assert!((width("mm", 10.0) - 2.0 * width("m", 10.0)).abs() < 1e-9);
        assert!((width("😀", 10.0) - 10.0).abs() < 1e-9);
    }
}

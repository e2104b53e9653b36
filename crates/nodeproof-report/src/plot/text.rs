//! Labels from outside, made fit for a figure.

use super::font;

/// Longer labels are cut before anything else is done with them.
const LONGEST: usize = 2_000;

/// The text in one line, without characters that XML forbids or that reorder or hide what stands around them.
pub(crate) fn clean(text: &str) -> String {
    let mut cleaned = String::new();
    for character in text.chars().take(LONGEST) {
        if character.is_whitespace() || character.is_control() {
            if !cleaned.is_empty() && !cleaned.ends_with(' ') {
                cleaned.push(' ');
            }
        } else if !is_hidden(character) {
            cleaned.push(character);
        }
    }
    cleaned.truncate(cleaned.trim_end().len());
    cleaned
}

/// Whether a character has no shape of its own: marks of direction, zero-width characters, noncharacters.
fn is_hidden(character: char) -> bool {
    matches!(character,
        '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{061c}'
        | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{fdd0}'..='\u{fdef}')
        || (character as u32) & 0xfffe == 0xfffe
}

/// The cleaned text if it is no wider than `room`; else its beginning, as much as fits with an ellipsis.
pub(crate) fn fit(text: &str, size: f64, room: f64) -> String {
    let cleaned = clean(text);
    let is_whole = text.chars().nth(LONGEST).is_none();
    if is_whole && font::width(&cleaned, size) <= room {
        return cleaned;
    }
    let mut left = room - font::width("…", size);
    let kept: String = cleaned
        .chars()
        .take_while(|&character| {
            left -= font::advance(character, size);
            left >= 0.0
        })
        .collect();
    format!("{}…", kept.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_and_marks_of_direction_go() {
        assert_eq!(clean(" a\u{0}\u{1b}[31m\tb\u{202e}c\u{feff}\n\u{ffff} "), "a [31m bc");
        assert_eq!(clean("\u{7}\n"), "");
        assert_eq!(clean("é → ≤ 𝕏 שלום 😀"), "é → ≤ 𝕏 שלום 😀");
    }

    #[test]
    fn long_labels_are_shortened_to_the_room() {
        let long = "network ".repeat(1_300);
        let fitted = fit(&long, 7.0, 100.0);
        assert!(fitted.ends_with('…') && font::width(&fitted, 7.0) <= 100.0, "{fitted}");
        assert!(font::width(&fitted, 7.0) > 80.0, "{fitted}");
        assert_eq!(fit("short", 7.0, 100.0), "short");
    }

    #[test]
    fn a_label_that_was_cut_says_so_however_wide_the_room() {
        assert!(fit(&"x".repeat(LONGEST + 1), 7.0, 1e9).ends_with('…'));
    }
}

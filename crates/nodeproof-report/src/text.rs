//! Text for people: names that are safe to print, tables, paragraphs, counts.
//!
//! Nothing here asks what the terminal is like: the caller says how wide lines are and whether there is bold type.

use comfy_table::{CellAlignment, LineStyle, Table, TableStyle};

/// Width of lines where nothing else is said.
pub const LINE_WIDTH: usize = 80;
/// Longest name that is printed in full.
const LONGEST_NAME: usize = 48;
/// Longest class name that is printed in full.
const LONGEST_CLASS: usize = 34;
/// What the line under a header is made of.
const RULE: char = '─';

/// How text is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Whether words are emphasised.
    pub emphasis: Emphasis,
    /// Most characters of a line that can be broken.
    pub width: usize,
}

impl Default for Style {
    /// Lines of [`LINE_WIDTH`] characters without emphasis.
    fn default() -> Self {
        Self { emphasis: Emphasis::default(), width: LINE_WIDTH }
    }
}

/// Emphasis by the escape sequences of terminals, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Emphasis {
    /// Whether there is bold and faint type.
    pub bold: bool,
}

impl Emphasis {
    /// No emphasis at all.
    pub const NONE: Self = Self { bold: false };

    /// `text` in bold.
    pub fn strong(self, text: &str) -> String {
        self.marked("1", text)
    }

    /// `text`, set back.
    pub fn faint(self, text: &str) -> String {
        self.marked("2", text)
    }

    fn marked(self, mark: &str, text: &str) -> String {
        if self.bold { format!("\u{1b}[{mark}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}

/// `text` with everything escaped that could steer a terminal or reorder its text: names come from files, and files
/// from strangers.
pub fn printable(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() || steers_text(c) { safe.extend(c.escape_unicode()) } else { safe.push(c) }
    }
    safe
}

/// Line separators and the marks that change the direction of text or are not seen at all.
fn steers_text(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// A name that fits a line: printable and not too long.
pub fn short_name(name: &str) -> String {
    short(name, LONGEST_NAME)
}

/// `text`, printable and of at most `width` characters.
pub fn short(text: &str, width: usize) -> String {
    shorten(&printable(text), width)
}

/// A class name that fits a table: printable and not too long. Classes are often paths that differ only at their ends, so
/// the middle goes.
pub fn short_class(name: &str) -> String {
    let name: Vec<char> = printable(name).chars().collect();
    if name.len() <= LONGEST_CLASS {
        return name.into_iter().collect();
    }
    let head = LONGEST_CLASS / 3;
    let tail = name.len() - (LONGEST_CLASS - head - 1);
    name[..head].iter().chain(&['…']).chain(&name[tail..]).collect()
}

/// `text`, its end replaced by `…` if it has more than `width` characters.
pub fn shorten(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let kept: String = text.chars().take(width.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

/// A word as a shell takes it.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./%=:,@".contains(c);
    let word = printable(word);
    if !word.is_empty() && word.chars().all(plain) { word } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

/// `text` in lines of at most `width` characters, the last one ended.
pub fn paragraph(text: &str, width: usize) -> String {
    wrap(text, width).join("\n") + "\n"
}

/// Lines of `name  value`, the values in one column and wrapped so that lines have at most `width` characters.
pub fn facts(rows: &[(&str, String)], width: usize) -> String {
    let indent = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0) + 2;
    let mut text = String::new();
    for (name, value) in rows {
        let mut start = format!("{name:indent$}");
        for line in wrap(value, width.saturating_sub(indent)) {
            text += &start;
            text += &line;
            text.push('\n');
            start = " ".repeat(indent);
        }
    }
    text
}

/// `text` in lines of at most `width` characters; a longer word has a line of its own.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.len() - 1;
        let line = &mut lines[last];
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() <= width {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

/// A table with a line under its header and white space between its columns, which are aligned as `alignment` says:
/// `l` left, `r` right.
pub fn table(alignment: &str, header: Option<Vec<String>>, rows: Vec<Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(TableStyle::new().header_separator(LineStyle::none().fill(RULE).junction(RULE)));
    if let Some(header) = header {
        table.set_header(header);
    }
    table.add_rows(rows);
    for (column, side) in table.column_iter_mut().zip(alignment.chars()) {
        // The space where a vertical line would be is the second of two.
        column.set_padding((0, 1));
        column.set_cell_alignment(if side == 'r' { CellAlignment::Right } else { CellAlignment::Left });
    }
    let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_owned()).collect();
    let width = lines.iter().filter(|line| !line.starts_with(RULE)).map(|line| line.chars().count()).max();
    let cut = |line: &String| match width {
        Some(width) if line.starts_with(RULE) => line.chars().take(width).collect(),
        _ => line.clone(),
    };
    lines.iter().map(|line| cut(line) + "\n").collect()
}

/// `count` with an `s` behind `noun` unless it is one.
pub fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// `count` as a percentage of `total`, five characters at most. Only all is `100%` and only none is `0.0%`.
pub fn percentage(count: usize, total: usize) -> String {
    if total == 0 {
        return "–".to_owned();
    }
    let percent = 100.0 * count as f64 / total as f64;
    match count {
        0 => "0.0%".to_owned(),
        _ if count == total => "100%".to_owned(),
        _ if percent < 0.05 => "<0.1%".to_owned(),
        _ => format!("{:.1}%", percent.min(99.9)),
    }
}

/// A number with commas between thousands.
pub fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> = digits.as_bytes().rchunks(3).rev().filter_map(|group| str::from_utf8(group).ok()).collect();
    groups.join(",")
}

/// A time with its unit.
pub fn duration(seconds: f64) -> String {
    match seconds {
        seconds if seconds < 10.0 => format!("{seconds:.2} s"),
        seconds if seconds < 120.0 => format!("{seconds:.1} s"),
        seconds if seconds < 7200.0 => format!("{:.1} min", seconds / 60.0),
        seconds => format!("{:.1} h", seconds / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_do_not_get_through() {
        assert_eq!(printable("a\u{1b}[31mb\u{7}\n"), "a\\u{1b}[31mb\\u{7}\\u{a}");
        assert_eq!(printable("\u{9b}2J\u{202e}x"), "\\u{9b}2J\\u{202e}x");
        assert_eq!(printable("Zügner, 图"), "Zügner, 图");
    }

    #[test]
    fn long_names_are_shortened() {
        assert_eq!(shorten("abcdef", 6), "abcdef");
        assert_eq!(shorten("abcd fgh", 6), "abcd…");
        let path = "Artificial_Intelligence/Machine_Learning/Genetic_Algorithms";
        assert_eq!(short_class(path), "Artificial_…ing/Genetic_Algorithms");
        assert_eq!(short_class("Theory"), "Theory");
    }

    #[test]
    fn words_are_quoted_where_a_shell_needs_it() {
        assert_eq!(
            ["a-b/c.npz", "", "two words", "it's"].map(quoted),
            ["a-b/c.npz", "''", "'two words'", r"'it'\''s'"]
        );
    }

    #[test]
    fn emphasis_is_there_only_where_it_is_wanted() {
        assert_eq!(Emphasis::NONE.strong("x"), "x");
        let bold = Emphasis { bold: true };
        assert_eq!((bold.strong("x"), bold.faint("x")), ("\u{1b}[1mx\u{1b}[0m".into(), "\u{1b}[2mx\u{1b}[0m".into()));
    }

    #[test]
    fn percentages_never_round_to_all_or_none() {
        assert_eq!(percentage(9999, 10000), "99.9%");
        assert_eq!(percentage(1, 100_000), "<0.1%");
        assert_eq!(
            (percentage(0, 3), percentage(3, 3), percentage(1, 3)),
            ("0.0%".into(), "100%".into(), "33.3%".into())
        );
        assert_eq!(percentage(0, 0), "–");
    }

    #[test]
    fn facts_are_aligned_and_wrapped() {
        assert_eq!(facts(&[("a", "1".into()), ("long", "2".into())], LINE_WIDTH), "a     1\nlong  2\n");
        let text = facts(&[("name", "word ".repeat(20).trim_end().to_owned())], LINE_WIDTH);
        assert!(text.lines().count() == 2 && text.lines().all(|line| line.len() <= LINE_WIDTH));
        assert!(text.lines().nth(1).is_some_and(|line| line.starts_with("      word")));
        assert_eq!(paragraph("one two three", 7), "one two\nthree\n");
    }

    #[test]
    fn tables_have_no_trailing_white_space() {
        let text = table("lr", Some(vec!["a".into(), "b".into()]), vec![vec!["x".into(), "10".into()]]);
        assert_eq!(text, "a   b\n─────\nx  10\n");
    }

    #[test]
    fn thousands_are_grouped_and_times_have_units() {
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([0.5, 130.0, 7300.0].map(duration), ["0.50 s", "2.2 min", "2.0 h"]);
    }
}

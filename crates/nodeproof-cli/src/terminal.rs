//! Text for people: what may be printed, how tables look, and where talk goes.

use std::io::{self, IsTerminal, Write};

use comfy_table::{CellAlignment, LineStyle, Table, TableStyle};

/// Longest name that is printed in full.
const LONGEST_NAME: usize = 48;
/// Longest line that is written where lines can be broken, and the shortest that a narrow terminal makes of it.
const LINE_WIDTH: usize = 80;
const NARROWEST: usize = 40;
/// Longest class name that is printed in full.
const LONGEST_CLASS: usize = 34;
/// What the line under a header is made of.
const RULE: char = '─';

/// `text` with everything escaped that could steer a terminal or reorder its text: names come from files, and files
/// from strangers.
pub(crate) fn printable(text: &str) -> String {
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
pub(crate) fn short_name(name: &str) -> String {
    short(name, LONGEST_NAME)
}

/// `text`, printable and of at most `width` characters.
pub(crate) fn short(text: &str, width: usize) -> String {
    shorten(&printable(text), width)
}

/// A class name that fits a table. Classes are often paths that differ only at their ends, so the middle goes.
pub(crate) fn short_class(name: &str) -> String {
    let name: Vec<char> = printable(name).chars().collect();
    if name.len() <= LONGEST_CLASS {
        return name.into_iter().collect();
    }
    let head = LONGEST_CLASS / 3;
    let tail = name.len() - (LONGEST_CLASS - head - 1);
    name[..head].iter().chain(&['…']).chain(&name[tail..]).collect()
}

/// The width of lines: that of the terminal, if it is a narrow one.
pub(crate) fn line_width() -> usize {
    let terminal = terminal_size::terminal_size_of(io::stdout());
    terminal.map_or(LINE_WIDTH, |(width, _)| usize::from(width.0).clamp(NARROWEST, LINE_WIDTH))
}

/// A word as a shell takes it.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./%=:".contains(c);
    let word = printable(word);
    if !word.is_empty() && word.chars().all(plain) { word } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

/// Breaks `text` into lines that fit.
pub(crate) fn paragraph(text: &str) -> String {
    wrap(text, line_width()).join("\n") + "\n"
}

/// `text`, its end replaced by `…` if it has more than `width` characters.
pub(crate) fn shorten(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let kept: String = text.chars().take(width.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

/// Prints a result.
///
/// # Errors
/// Whatever stdout says, unchanged: a broken pipe must be told from other failures.
pub(crate) fn print(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}

/// Says something that is not a result. If stderr is gone there is nobody to tell.
pub(crate) fn complain(text: &str) {
    let _ = writeln!(io::stderr(), "{}", printable(text));
}

/// Says something that is not a result, unless it is unwelcome.
pub(crate) fn note(quiet: bool, text: &str) {
    if !quiet {
        complain(&format!("note: {text}"));
    }
}

/// Emphasis, if stdout can show it and the reader wants it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Emphasis(bool);

impl Emphasis {
    /// What suits stdout: none in pipes, on dumb terminals or with `NO_COLOR`.
    pub(crate) fn of_stdout() -> Self {
        let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Self(io::stdout().is_terminal() && !unwanted && !dumb)
    }

    /// No emphasis at all.
    #[cfg(test)]
    pub(crate) fn none() -> Self {
        Self(false)
    }

    /// `text` in bold.
    pub(crate) fn strong(self, text: &str) -> String {
        self.marked("1", text)
    }

    /// `text`, set back.
    pub(crate) fn faint(self, text: &str) -> String {
        self.marked("2", text)
    }

    fn marked(self, mark: &str, text: &str) -> String {
        if self.0 { format!("\u{1b}[{mark}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}

/// A table with a line under its header and white space between its columns, which are aligned as `alignment` says:
/// `l` left, `r` right.
pub(crate) fn table(alignment: &str, header: Option<Vec<String>>, rows: Vec<Vec<String>>) -> String {
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

/// Lines of `name  value`, the values in one column and wrapped.
pub(crate) fn facts(rows: &[(&str, String)]) -> String {
    let indent = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0) + 2;
    let mut text = String::new();
    for (name, value) in rows {
        let mut start = format!("{name:indent$}");
        for line in wrap(value, line_width().saturating_sub(indent)) {
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

/// `count` with an `s` behind `noun` unless it is one.
pub(crate) fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// `count` as a percentage of `total`, five characters at most. Only all is `100%` and only none is `0.0%`.
pub(crate) fn percentage(count: usize, total: usize) -> String {
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
        assert_eq!(facts(&[("a", "1".into()), ("long", "2".into())]), "a     1\nlong  2\n");
        let text = facts(&[("name", "word ".repeat(20).trim_end().to_owned())]);
        assert!(text.lines().count() == 2 && text.lines().all(|line| line.len() <= LINE_WIDTH));
        assert!(text.lines().nth(1).is_some_and(|line| line.starts_with("      word")));
    }

    #[test]
    fn tables_have_no_trailing_white_space() {
        let text = table("lr", Some(vec!["a".into(), "b".into()]), vec![vec!["x".into(), "10".into()]]);
        assert_eq!(text, "a   b\n─────\nx  10\n");
    }
}

//! The terminal: what it is like, where results go and where everything else does.

use std::io::{self, IsTerminal, Write};
use std::path::Path;

use nodeproof_report::text::{self, Emphasis, LINE_WIDTH, Style, printable};

/// The shortest line that a narrow terminal makes.
const NARROWEST: usize = 40;

/// The width of lines: that of the terminal, if it is a narrow one.
pub(crate) fn line_width() -> usize {
    let terminal = terminal_size::terminal_size_of(io::stdout());
    terminal.map_or(LINE_WIDTH, |(width, _)| usize::from(width.0).clamp(NARROWEST, LINE_WIDTH))
}

/// Emphasis that suits stdout: none in pipes, on dumb terminals or with `NO_COLOR`.
pub(crate) fn emphasis() -> Emphasis {
    let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    Emphasis { bold: io::stdout().is_terminal() && !unwanted && !dumb }
}

/// How text on stdout is laid out.
pub(crate) fn style() -> Style {
    Style { emphasis: emphasis(), width: line_width() }
}

/// Lines of `name  value` that fit the terminal.
pub(crate) fn facts(rows: &[(&str, String)]) -> String {
    text::facts(rows, line_width())
}

/// `text` in lines that fit the terminal.
pub(crate) fn paragraph(text: &str) -> String {
    text::paragraph(text, line_width())
}

/// A path that is safe to print.
pub(crate) fn shown(path: &Path) -> String {
    printable(&path.display().to_string())
}

/// Prints a result.
///
/// # Errors
/// Whatever stdout says, unchanged: a broken pipe must be distinguished from other failures.
pub(crate) fn print(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}

/// Says something that is not a result. If stderr is gone nobody can read it.
pub(crate) fn complain(text: &str) {
    let _ = writeln!(io::stderr(), "{}", printable(text));
}

/// Says something that is not a result, unless it is unwelcome.
pub(crate) fn note(quiet: bool, text: &str) {
    if !quiet {
        complain(&format!("note: {text}"));
    }
}

//! Command lines of nodeproof, as text to be shown.

use std::ffi::OsString;
use std::path::Path;

use nodeproof_report::text::quoted;

/// A command line of nodeproof.
#[derive(Debug, Clone)]
pub(super) struct Line {
    command: &'static str,
    /// Words that stay together, such as an option and its value.
    groups: Vec<Vec<OsString>>,
}

impl Line {
    /// `nodeproof command`, which may be several words.
    pub(super) fn new(command: &'static str) -> Self {
        Self { command, groups: Vec::new() }
    }

    /// With an option and its value.
    pub(super) fn with(mut self, option: &'static str, value: impl Into<OsString>) -> Self {
        self.groups.push(vec![option.into(), value.into()]);
        self
    }

    /// With a word alone: a file, or an option that takes no value.
    pub(super) fn word(mut self, word: impl Into<OsString>) -> Self {
        self.groups.push(vec![word.into()]);
        self
    }

    /// With a file that is given a name.
    pub(super) fn named(self, name: &str, path: &Path) -> Self {
        self.word(named(name, path))
    }

    /// As a shell takes it after `prompt`, broken between options so that lines fit `width` where they can.
    pub(super) fn shown(&self, prompt: &str, width: usize) -> String {
        let mut lines = vec![format!("{prompt}nodeproof {}", self.command)];
        for group in &self.groups {
            let words: Vec<String> = group.iter().map(|word| quoted(&word.to_string_lossy())).collect();
            let words = words.join(" ");
            match lines.last_mut() {
                // Room for a space, and for ` \` at the end.
                Some(line) if line.chars().count() + words.chars().count() + 3 <= width => {
                    *line += &format!(" {words}")
                }
                _ => lines.push(format!("      {words}")),
            }
        }
        lines.join(" \\\n")
    }
}

/// `NAME=FILE`.
pub(super) fn named(name: &str, path: &Path) -> OsString {
    let mut word = OsString::from(format!("{name}="));
    word.push(path);
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_is_shown_as_it_is_typed() {
        let line = Line::new("data get").with("--out", "a b").word("--quiet").with("--mirror", "it's");
        assert_eq!(line.shown("$ ", 80), "$ nodeproof data get --out 'a b' --quiet --mirror 'it'\\''s'");
        assert_eq!(line.shown("", 34), "nodeproof data get --out 'a b' \\\n      --quiet --mirror 'it'\\''s'");
    }
}

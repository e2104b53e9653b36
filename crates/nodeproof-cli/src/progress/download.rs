//! How a download goes: a bar on a terminal, nothing elsewhere.

use std::io::{self, IsTerminal};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget};

use super::style;
use crate::download::Event;
use crate::terminal;

const SIZED: &str = "  {bar:30} {msg}, {decimal_bytes} of {decimal_total_bytes}";
const UNSIZED: &str = "  {spinner} {msg}, {decimal_bytes}";
/// Time between two turns of the spinner.
const TURN: Duration = Duration::from_millis(100);

/// How far a download has come. Cheap to clone; shows nothing in pipes.
#[derive(Debug, Clone)]
pub(crate) struct DownloadProgress {
    bar: ProgressBar,
    quiet: bool,
}

impl DownloadProgress {
    /// A bar that appears when there is something to show.
    pub(crate) fn new(quiet: bool) -> Self {
        let visible = !quiet && io::stderr().is_terminal();
        let target = if visible { ProgressDrawTarget::stderr_with_hz(10) } else { ProgressDrawTarget::hidden() };
        Self { bar: ProgressBar::with_draw_target(None, target), quiet }
    }

    /// Shows what happens; notes do not tear the bar apart.
    pub(crate) fn show(&self, event: Event) {
        match event {
            Event::Asking(name) => {
                self.bar.set_style(style(UNSIZED));
                self.bar.set_message(name.to_owned());
                self.bar.unset_length();
                self.bar.reset();
                self.bar.enable_steady_tick(TURN);
            }
            Event::Received(bytes, size) => {
                if let Some(size) = size
                    && self.bar.length() != Some(size)
                {
                    self.bar.set_style(style(SIZED));
                    self.bar.set_length(size);
                }
                self.bar.set_position(bytes);
            }
            Event::Note(note) => self.bar.suspend(|| terminal::note(self.quiet, &note)),
        }
    }

    /// Takes the bar away.
    pub(crate) fn clear(&self) {
        self.bar.disable_steady_tick();
        self.bar.finish_and_clear();
    }
}

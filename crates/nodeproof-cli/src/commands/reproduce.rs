//! `nodeproof reproduce`: the paper's experiments, with its numbers beside ours.

use std::io::{self, IsTerminal};
use std::ops::ControlFlow;

use anyhow::anyhow;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use nodeproof_lab::LabError;
use nodeproof_lab::reproduce::{self, Event, Settings, paper};
use nodeproof_report::text;

use super::bench;
use crate::cli::ReproduceArguments;
use crate::interrupt::Interrupt;
use crate::outcome::Outcome;
use crate::terminal;

/// Runs the command.
///
/// # Errors
/// If there is no data set, or a file cannot be read or written.
pub(super) fn run(arguments: &ReproduceArguments) -> anyhow::Result<Outcome> {
    let settings = Settings {
        data: arguments.data.clone(),
        out: arguments.out.clone(),
        splits: if arguments.quick { 1 } else { paper::SPLITS },
        threads: arguments.threads.count(),
    };
    let screen = Screen::new(arguments.quiet);
    let interrupt = Interrupt::listen({
        let screen = screen.clone();
        move || screen.note("stopping; press Ctrl-C again to stop at once")
    })?;
    let mut shown = Ok(());
    let reproduced = reproduce::run(&settings, |event| {
        shown = screen.show(event);
        if interrupt.asked() || shown.is_err() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    screen.bar.finish_and_clear();
    shown?;
    let Some(summary) = reproduced.map_err(in_words)? else {
        terminal::complain("stopped; run the same command to continue");
        return Ok(Outcome::Interrupted);
    };
    screen.print(&format!("\n{}", summary.in_words(terminal::line_width())))?;
    Ok(Outcome::Done)
}

/// The error with options called as they are typed.
fn in_words(error: LabError) -> anyhow::Error {
    match &error {
        LabError::NoData { folder } if cfg!(feature = "download") => {
            let folder = text::quoted(&folder.to_string_lossy());
            anyhow!("--data: {error} (`nodeproof data get cora_ml citeseer pubmed --out {folder}` downloads them)")
        }
        LabError::NoData { .. } | LabError::NotAFolder { .. } => anyhow!("--data: {error}"),
        LabError::Folder { .. } | LabError::Steps { .. } => anyhow!("{error} (--out)"),
        _ => bench::in_words(error),
    }
}

/// What is seen of a run: a line for each step and, on a terminal, a bar for the one that is done.
#[derive(Debug, Clone)]
struct Screen {
    bar: ProgressBar,
    quiet: bool,
}

impl Screen {
    fn new(quiet: bool) -> Self {
        let visible = !quiet && io::stderr().is_terminal();
        let target = if visible { ProgressDrawTarget::stderr_with_hz(10) } else { ProgressDrawTarget::hidden() };
        let style = ProgressStyle::with_template("  {bar:30} {human_pos}/{human_len} {msg}");
        let style = style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("━╸─");
        Self { bar: ProgressBar::with_draw_target(None, target).with_style(style), quiet }
    }

    /// Shows what happens.
    fn show(&self, event: Event) -> io::Result<()> {
        match event {
            Event::OtherGraph { file, nodes, expected } => {
                self.note(&format!("{} is not the paper's: it has {nodes} nodes, not {expected}", file.display()));
                Ok(())
            }
            Event::Planned(outline) => self.print(&(outline.in_words(terminal::line_width()) + "\n")),
            Event::Step(step) => self.print(&format!("{step}\n")),
            Event::Progress { doing, done, total } => {
                self.bar.set_length(total as u64);
                self.bar.set_position(done as u64);
                self.bar.set_message(doing.to_owned());
                Ok(())
            }
            Event::Drawing => self.print("        drawing the figures\n"),
            _ => Ok(()),
        }
    }

    fn print(&self, text: &str) -> io::Result<()> {
        if self.quiet { Ok(()) } else { self.bar.suspend(|| terminal::print(text)) }
    }

    fn note(&self, text: &str) {
        self.bar.suspend(|| terminal::note(self.quiet, text));
    }
}

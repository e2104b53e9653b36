//! The progress bar: on stderr, for people only.

#[cfg(feature = "download")]
mod download;
mod training;

use std::fmt::Write;
use std::io::{self, IsTerminal};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use nodeproof_report::text;

#[cfg(feature = "download")]
pub(crate) use download::DownloadProgress;
pub(crate) use training::{GroupSight, Sight, TrainingProgress};

use crate::terminal;

const NODES: &str = "  {bar:30} {human_pos}/{human_len} nodes{rate}";
const PREPARING: &str = "  {bar:30} preparing, {human_pos} of {human_len} steps";
const BISECTING: &str = "  {bar:30} {human_pos}/{human_len} nodes, {msg}";
const SCANNING: &str = "  {bar:20} budget {human_pos} of {human_len}{msg}";
const STAGE: &str = "  {bar:30} {msg}";
/// Time after which a rate means something.
const WARM_UP: Duration = Duration::from_millis(500);

/// How far a run has come. Cheap to clone; shows nothing in pipes.
#[derive(Debug, Clone)]
pub(crate) struct Progress {
    bar: ProgressBar,
    nodes: u64,
    done: u64,
    started: Arc<OnceLock<Instant>>,
    quiet: bool,
}

impl Progress {
    /// A bar for `nodes` nodes; it appears when there is something to show.
    pub(crate) fn new(nodes: usize, quiet: bool) -> Self {
        let visible = !quiet && io::stderr().is_terminal();
        let target = if visible { ProgressDrawTarget::stderr_with_hz(10) } else { ProgressDrawTarget::hidden() };
        let nodes = nodes as u64;
        let bar = ProgressBar::with_draw_target(Some(nodes), target);
        Self { bar, nodes, done: 0, started: Arc::default(), quiet }
    }

    /// Says how many nodes an earlier run has done.
    pub(crate) fn set_done_before(&mut self, done: usize) {
        self.done = done as u64;
        self.bar.set_position(self.done);
    }

    /// Shows work that is done once for all nodes.
    pub(crate) fn preparing(&self, done: usize, total: usize) {
        self.bar.set_style(style(PREPARING));
        self.bar.set_length(total as u64);
        self.bar.set_position(done as u64);
    }

    /// One more node is done.
    pub(crate) fn advance(&self) {
        if self.started.set(Instant::now()).is_ok() {
            self.bar.set_style(self.node_style());
            self.bar.set_length(self.nodes);
            self.bar.set_position(self.done);
        }
        self.bar.inc(1);
    }

    /// Shows how many nodes of a round of a bisection are done. There are fewer from round to round.
    pub(crate) fn bisecting(&self, round: usize, done: usize, total: usize) {
        // The round after the last one has nothing to do.
        if total == 0 {
            return;
        }
        // A bar is drawn after each change: the message comes before the style that shows it, and the position before the length,
        // because a new round may be shorter than the last one was long.
        self.bar.set_message(format!("round {round}"));
        self.bar.set_style(style(BISECTING));
        self.bar.set_position(done as u64);
        self.bar.set_length(total as u64);
    }

    /// Shows the global budget that a scan tries, and on how many nodes.
    pub(crate) fn scanning(&self, global: usize, nodes: usize) {
        self.bar.set_style(style(SCANNING));
        self.bar.set_position(global as u64);
        self.bar.set_message(format!(", {} left", text::counted(nodes, "node")));
    }

    /// Shows how far one stage of the work under a global budget is.
    pub(crate) fn stage(&self, what: &'static str, global: u32, done: usize, total: usize) {
        self.bar.set_message(format!("{}: {what}", text::counted(global as usize, "flip")));
        self.bar.set_style(style(STAGE));
        self.bar.set_position(done as u64);
        self.bar.set_length(total as u64);
    }

    /// Rate and time left are those of this run, not of one that it resumes.
    fn node_style(&self) -> ProgressStyle {
        let (started, before) = (Arc::clone(&self.started), self.done);
        let rate = move |state: &ProgressState, text: &mut dyn Write| {
            let elapsed = started.get().map(Instant::elapsed).unwrap_or_default();
            let done = state.pos().saturating_sub(before);
            if elapsed < WARM_UP || done == 0 {
                return;
            }
            let rate = done as f64 / elapsed.as_secs_f64();
            let left = state.len().unwrap_or(0).saturating_sub(state.pos()) as f64 / rate;
            let _ = write!(text, "  {rate:.0}/s  {:#} left", HumanDuration(Duration::from_secs_f64(left)));
        };
        style(NODES).with_key("rate", rate)
    }

    /// Says something without tearing the bar apart.
    pub(crate) fn say(&self, text: &str) {
        if self.bar.is_hidden() {
            terminal::note(self.quiet, text);
        } else {
            self.bar.println(text);
        }
    }

    /// Takes the bar away, so that results stand alone.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

fn style(template: &str) -> ProgressStyle {
    let plain = ProgressStyle::default_bar().progress_chars("━╸─");
    plain.clone().template(template).unwrap_or(plain)
}

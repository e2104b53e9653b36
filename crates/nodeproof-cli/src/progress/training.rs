//! How training goes: a bar and a few lines under it on a terminal, a line every now and then elsewhere.

use std::fmt::Write;
use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState};

use super::{WARM_UP, style};
use crate::terminal;

const TRAINING: &str = "  {bar:20} {human_pos}/{human_len} steps{left}\n{msg}";
/// Time between two looks at the network for a bar.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Lines that are printed where there is no terminal.
const LINES: usize = 10;

/// What is known of the network in training.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sight {
    /// Which of the splits, and which phase, where there are several.
    pub(crate) place: String,
    pub(crate) loss: f64,
    /// The share of nodes whose worst-case margin was above 0 in the last steps.
    pub(crate) positive_share: Option<f64>,
    pub(crate) labelled: GroupSight,
    pub(crate) unlabelled: GroupSight,
}

/// What is known of a group of nodes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct GroupSight {
    pub(crate) accuracy: Option<f64>,
    /// The mean worst-case margin.
    pub(crate) margin: Option<f64>,
}

impl Sight {
    /// Three lines of at most 60 columns.
    fn lines(&self) -> String {
        let group = |name: &str, group: &GroupSight| {
            let margin = group.margin.map_or("–".to_owned(), |margin| format!("{margin:.3}"));
            format!("  {name:10}  accuracy {:>6}   worst-case margin {margin:>8}", percent(group.accuracy))
        };
        format!(
            "  {}\n{}\n{}",
            self.first_line("   "),
            group("labelled", &self.labelled),
            group("unlabelled", &self.unlabelled)
        )
    }

    /// The most important of it in one line.
    fn line(&self, step: usize, steps: usize) -> String {
        let accuracy = percent(self.unlabelled.accuracy.or(self.labelled.accuracy));
        let group = if self.unlabelled.accuracy.is_some() { "unlabelled" } else { "labelled" };
        format!("step {step}/{steps}  {}  accuracy {accuracy} {group}", self.first_line("  "))
    }

    fn first_line(&self, gap: &str) -> String {
        let place = if self.place.is_empty() { String::new() } else { format!("{}{gap}", self.place) };
        format!("{place}loss {:.3}{gap}margins > 0: {}", self.loss, percent(self.positive_share))
    }
}

fn percent(share: Option<f64>) -> String {
    share.map_or("–".to_owned(), |share| format!("{:.1}%", 100.0 * share))
}

/// The progress of one run of training.
#[derive(Debug)]
pub(crate) struct TrainingProgress {
    kind: Kind,
    steps: usize,
}

#[derive(Debug)]
enum Kind {
    Bar { bar: ProgressBar, looked: Option<Instant> },
    Lines,
    Nothing,
}

impl TrainingProgress {
    /// Progress over `steps` steps, of which `done` are done.
    pub(crate) fn new(steps: usize, done: usize, quiet: bool) -> Self {
        let kind = if quiet {
            Kind::Nothing
        } else if io::stderr().is_terminal() {
            let target = ProgressDrawTarget::stderr_with_hz(10);
            let bar = ProgressBar::with_draw_target(Some(steps as u64), target).with_position(done as u64);
            bar.reset_eta();
            let started = Instant::now();
            let left = move |state: &ProgressState, text: &mut dyn Write| {
                if started.elapsed() >= WARM_UP && state.pos() > done as u64 {
                    let _ = write!(text, "  {:#} left", HumanDuration(state.eta()));
                }
            };
            bar.set_style(style(TRAINING).with_key("left", left));
            Kind::Bar { bar, looked: None }
        } else {
            Kind::Lines
        };
        Self { kind, steps }
    }

    /// Whether nobody looks.
    pub(crate) fn is_hidden(&self) -> bool {
        matches!(self.kind, Kind::Nothing)
    }

    /// Whether it is time to look at accuracy again, after `step`.
    pub(crate) fn wants_a_look(&mut self, step: usize) -> bool {
        match &mut self.kind {
            Kind::Bar { looked, .. } => {
                let due = looked.is_none_or(|looked| looked.elapsed() >= LOOK_EVERY);
                if due {
                    *looked = Some(Instant::now());
                }
                due
            }
            Kind::Lines => self.is_due(step),
            Kind::Nothing => false,
        }
    }

    fn is_due(&self, step: usize) -> bool {
        step.is_multiple_of(self.steps.div_ceil(LINES).max(1)) || step == self.steps
    }

    /// Shows what is known after `step`.
    pub(crate) fn show(&self, step: usize, sight: &Sight) {
        match &self.kind {
            Kind::Bar { bar, .. } => {
                bar.set_message(sight.lines());
                bar.set_position(step as u64);
            }
            Kind::Lines if self.is_due(step) => terminal::complain(&sight.line(step, self.steps)),
            Kind::Lines | Kind::Nothing => {}
        }
    }

    /// Takes the bar away, so that results stand alone.
    pub(crate) fn clear(&self) {
        if let Kind::Bar { bar, .. } = &self.kind {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sight() -> Sight {
        Sight {
            place: "split 12/20, phase 1/2".to_owned(),
            loss: 12.3456,
            positive_share: Some(0.5),
            labelled: GroupSight { accuracy: Some(1.0), margin: Some(-12.3456) },
            unlabelled: GroupSight::default(),
        }
    }

    #[test]
    fn the_lines_fit_a_narrow_terminal() {
        let lines = sight().lines();
        assert!(lines.lines().all(|line| line.chars().count() <= 60), "{lines}");
        assert!(lines.contains("accuracy 100.0%   worst-case margin  -12.346"), "{lines}");
        assert!(lines.contains("unlabelled  accuracy      –"), "{lines}");
    }

    #[test]
    fn there_are_ten_lines_at_most_and_one_at_the_end() {
        for steps in [1, 7, 10, 45, 1000] {
            let progress = TrainingProgress { kind: Kind::Lines, steps };
            let due = (1..=steps).filter(|&step| progress.is_due(step)).count();
            assert!((1..=LINES).contains(&due) && progress.is_due(steps), "{steps}: {due}");
        }
        let mut sight = Sight { place: "phase 1/2".to_owned(), ..sight() };
        let line = sight.line(1000, 1400);
        assert_eq!(line, "step 1000/1400  phase 1/2  loss 12.346  margins > 0: 50.0%  accuracy 100.0% labelled");
        sight.unlabelled.accuracy = Some(0.75);
        assert!(sight.line(40, 400).ends_with("accuracy 75.0% unlabelled"));
    }
}

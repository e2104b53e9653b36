//! How long a step of training takes.

use std::time::{Duration, Instant};

use cpu_time::ProcessTime;
use nodeproof::train::{Method, StepTimes, TrainError, TrainSettings, Trainer};
use nodeproof::{Graph, Model, Split, SplitSize};
use nodeproof_report::text;
use rayon::ThreadPool;
use serde::Serialize;

use crate::{LabError, threads};

/// Nodes that the reference implementation looks at in an iteration: 5 batches of 8.
const REFERENCE_BATCH: usize = 40;
/// Steps before each measurement that fill caches and memory.
const SETTLING_STEPS: usize = 3;
/// Share of each class that is labelled where there is no split.
const TRAIN_SHARE: f64 = 0.1;

/// What is measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// How the network is trained. All steps are taken, and RH-U is in its second phase from the start.
    pub training: TrainSettings,
    /// Which nodes are labelled; `None` for a tenth of each class.
    pub split: Option<Split>,
    /// Steps that are measured.
    pub steps: usize,
    /// Steps before, so that the weights are those of a network in training.
    pub warm_up: usize,
}

/// Trains for a while, then measures steps on one thread, with the batch of the settings and with that of the reference
/// implementation, and on all threads. `observe` hears what happens next.
///
/// # Errors
/// If the settings do not fit the graph, or training diverges.
pub fn run(graph: &Graph, settings: &Settings, mut observe: impl FnMut(&str)) -> Result<Report, LabError> {
    let split = match &settings.split {
        Some(split) => split.clone(),
        None => Split::stratified(graph, SplitSize::Fraction(TRAIN_SHARE), SplitSize::PerClass(0), 0)?,
    };
    settings.training.budget.validate(graph).map_err(TrainError::from)?;
    let mut training = settings.training.clone();
    (training.labelled_steps, training.patience) = (0, None);
    let bench = Bench { graph, split: &split, settings: &training, steps: settings.steps.max(1) };
    let threads = threads::available();
    let (one, all) = (threads::pool(1)?, threads::pool(threads)?);
    observe(&format!("training for {} first", text::counted(settings.warm_up, "step")));
    let model = all.install(|| bench.warm_up(settings.warm_up))?;
    observe(&format!("measuring {} at a time", text::counted(bench.steps, "step")));
    let batches = batches(&training);
    let measured = batches.iter().map(|&batch| bench.measure(&one, batch, &model)).collect::<Result<Vec<_>, _>>()?;
    let many = bench.measure(&all, training.batch, &model)?;
    Ok(Report::new(training.method, settings.warm_up, bench.steps, &measured, &many, threads))
}

/// The batches to measure: the reference's, and then that of `settings`.
fn batches(settings: &TrainSettings) -> Vec<Option<usize>> {
    if settings.method.is_robust() && settings.batch != Some(REFERENCE_BATCH) {
        vec![Some(REFERENCE_BATCH), settings.batch]
    } else {
        vec![settings.batch]
    }
}

struct Bench<'a> {
    graph: &'a Graph,
    split: &'a Split,
    settings: &'a TrainSettings,
    steps: usize,
}

/// What some steps took.
struct Measured {
    batch: Option<usize>,
    /// A step's CPU time and wall time.
    cpu: Duration,
    wall: Duration,
    work: Vec<(&'static str, Duration)>,
}

impl Bench<'_> {
    /// The weights after some steps.
    fn warm_up(&self, steps: usize) -> Result<Model, TrainError> {
        let mut trainer = self.trainer(self.settings.batch, steps)?;
        for _ in 0..steps {
            trainer.step()?;
        }
        Ok(trainer.into_model())
    }

    fn trainer(&self, batch: Option<usize>, steps: usize) -> Result<Trainer<'_>, TrainError> {
        let mut settings = self.settings.clone();
        (settings.batch, settings.steps) = (batch, steps.max(1));
        Trainer::new(self.graph, self.split, settings)
    }

    /// Measures steps from `model` on.
    fn measure(&self, pool: &ThreadPool, batch: Option<usize>, model: &Model) -> Result<Measured, TrainError> {
        let mut trainer = self.trainer(batch, SETTLING_STEPS + self.steps)?.start_from(model.clone())?;
        pool.install(|| {
            for _ in 0..SETTLING_STEPS {
                trainer.step()?;
            }
            let mut times = Vec::new();
            let (start, cpu) = (Instant::now(), ProcessTime::now());
            for _ in 0..self.steps {
                if trainer.step()?.is_some() {
                    times.push(trainer.times());
                }
            }
            let each = |all: Duration| all.div_f64(self.steps as f64);
            let (wall, cpu) = (each(start.elapsed()), each(cpu.elapsed()));
            Ok(Measured { batch, cpu, wall, work: sum_of_work(&times) })
        })
    }
}

fn sum_of_work(times: &[StepTimes]) -> Vec<(&'static str, Duration)> {
    let mut sums = StepTimes::default().parts();
    for times in times {
        sums.iter_mut().zip(times.parts()).for_each(|(sum, (_, time))| sum.1 += time);
    }
    sums.to_vec()
}

/// What was measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// How the network was trained.
    pub method: Method,
    /// Steps before.
    pub warm_up_steps: usize,
    /// Steps that were measured.
    pub measured_steps: usize,
    /// One a size of batches.
    pub rows: Vec<Row>,
    /// Threads that the machine has.
    pub threads: usize,
    /// Wall time of a step on one thread.
    pub wall_seconds_per_step_one_thread: f64,
    /// Wall time of a step on all threads.
    pub wall_seconds_per_step_all_threads: f64,
}

/// What a batch of some size takes on one thread.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Row {
    /// None for all nodes, or where the method knows no batches.
    pub batch: Option<usize>,
    /// CPU seconds of a step, user and system.
    pub cpu_seconds_per_step: f64,
    /// The same of 1000 steps.
    pub cpu_seconds_per_1000_steps: f64,
    /// Where the time goes.
    pub parts: Vec<PartShare>,
}

/// The share of the time that one kind of work in a step takes.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct PartShare {
    /// The work.
    pub part: &'static str,
    /// Its share.
    pub share: f64,
}

impl Row {
    fn new(measured: &Measured) -> Self {
        let total: f64 = measured.work.iter().map(|(_, time)| time.as_secs_f64()).sum();
        let share = |&(part, time): &(&'static str, Duration)| PartShare {
            part,
            share: time.as_secs_f64() / total.max(f64::MIN_POSITIVE),
        };
        let seconds = measured.cpu.as_secs_f64();
        Self {
            batch: measured.batch,
            cpu_seconds_per_step: seconds,
            cpu_seconds_per_1000_steps: 1000.0 * seconds,
            parts: measured.work.iter().filter(|(_, time)| !time.is_zero()).map(share).collect(),
        }
    }
}

impl Report {
    fn new(
        method: Method,
        warm_up_steps: usize,
        measured_steps: usize,
        measured: &[Measured],
        many: &Measured,
        threads: usize,
    ) -> Self {
        let one = measured.iter().find(|measured| measured.batch == many.batch).unwrap_or(many);
        Self {
            method,
            warm_up_steps,
            measured_steps,
            rows: measured.iter().map(Row::new).collect(),
            threads,
            wall_seconds_per_step_one_thread: one.wall.as_secs_f64(),
            wall_seconds_per_step_all_threads: many.wall.as_secs_f64(),
        }
    }

    /// The table, and how it was made, in lines of at most `width` characters where they can be broken.
    pub fn in_words(&self, width: usize) -> String {
        let line = |name: &str, cell: &dyn Fn(&Row) -> String| {
            std::iter::once(name.to_owned()).chain(self.rows.iter().map(cell)).collect::<Vec<_>>()
        };
        let header = line("one thread, batch of", &|row| self.batch_in_words(row.batch));
        let mut lines = vec![
            line("CPU seconds a step", &|row| format!("{:.4}", row.cpu_seconds_per_step)),
            line("CPU seconds for 1000 steps", &|row| format!("{:.1}", row.cpu_seconds_per_1000_steps)),
        ];
        for PartShare { part, .. } in self.rows.iter().take(1).flat_map(|row| &row.parts) {
            let share = |row: &Row| row.parts.iter().find(|found| found.part == *part).map(|found| found.share);
            let cell = |row: &Row| share(row).map_or("–".to_owned(), |share| format!("{:.1}%", 100.0 * share));
            lines.push(line(&format!("  {part}"), &cell));
        }
        let table = text::table(&format!("l{}", "r".repeat(self.rows.len())), Some(header), lines);
        let phase = if self.method.has_two_phases() { ", second phase" } else { "" };
        let counted = |steps: usize| text::counted(steps, "step");
        let steps = counted(self.measured_steps);
        let (one, many) = (self.wall_seconds_per_step_one_thread, self.wall_seconds_per_step_all_threads);
        let faster = format!("{many:.4} s of wall time, {:.2} times faster", one / many);
        let facts = [
            ("method", format!("{}{phase}", self.method)),
            ("measured", format!("{steps} each, after {} of training", counted(self.warm_up_steps))),
            ("threads", format!("1: {one:.4} s a step, {}: {faster}", self.threads)),
        ];
        format!("{table}\n{}", text::facts(&facts, width))
    }

    fn batch_in_words(&self, batch: Option<usize>) -> String {
        match batch {
            None if self.method.is_robust() => "all nodes".to_owned(),
            None => "labelled nodes".to_owned(),
            Some(REFERENCE_BATCH) => format!("{REFERENCE_BATCH} (reference)"),
            Some(batch) => batch.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_measured_with_the_batch_of_the_reference_too() {
        let (graph, _) = crate::bench::tests::problem();
        let mut training = TrainSettings::new(Method::RobustHingeUnlabelled);
        training.hidden = Some(vec![4]);
        let mut settings = Settings { training, split: None, steps: 2, warm_up: 3 };
        let report = run(&graph, &settings, |_| ()).unwrap();
        assert_eq!(report.rows.iter().map(|row| row.batch).collect::<Vec<_>>(), [Some(40), Some(256)]);
        for row in &report.rows {
            assert!((row.parts.iter().map(|part| part.share).sum::<f64>() - 1.0).abs() < 1e-9, "{row:?}");
        }
        let text = report.in_words(80);
        assert!(text.contains("40 (reference)") && text.contains("second phase") && text.contains("duals"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        settings.training = TrainSettings::new(Method::CrossEntropy);
        assert!(run(&graph, &settings, |_| ()).unwrap().in_words(80).contains("labelled nodes"));
    }
}

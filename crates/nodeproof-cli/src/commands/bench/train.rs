//! `nodeproof bench train`: how long a step of training takes.

use std::time::{Duration, Instant};

use cpu_time::ProcessTime;
use nodeproof::train::{Method, StepTimes, TrainOptions, Trainer};
use nodeproof::{Graph, Model, Split, SplitSize};
use rayon::ThreadPool;
use serde::Serialize;

use crate::budget::CheckedBudget;
use crate::cli::BenchTrainArguments;
use crate::commands::train::thread_pool;
use crate::outcome::Outcome;
use crate::{inputs, terminal};

/// Nodes that the reference implementation looks at in an iteration: 5 batches of 8.
const REFERENCE_BATCH: usize = 40;
/// Steps before each measurement that fill caches and memory.
const SETTLING_STEPS: u32 = 3;
/// Share of each class that is labelled where there is no split.
const TRAIN_SHARE: f64 = 0.1;

/// Runs the command.
///
/// # Errors
/// If the input is bad.
pub(in crate::commands) fn run(arguments: &BenchTrainArguments) -> anyhow::Result<Outcome> {
    arguments.graph.graph.check_readable("--graph")?;
    let (graph, cleaning) = inputs::read_graph(&arguments.graph.graph, &arguments.graph.flags)?;
    inputs::note_cleaning(&cleaning, arguments.print.quiet);
    let split = match &arguments.budget.flips.split {
        Some(path) => inputs::read_split(path, &graph)?,
        None => Split::stratified(&graph, SplitSize::Fraction(TRAIN_SHARE), SplitSize::PerClass(0), 0)?,
    };
    let budget = CheckedBudget::new(&arguments.budget, &graph, Some(&split))?;
    let options = options(arguments, &budget);
    let bench = Bench { graph: &graph, split: &split, options: &options, steps: arguments.steps };

    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let (one, all) = (thread_pool(1)?, thread_pool(threads)?);
    let say = |text: &str| terminal::note(arguments.print.quiet, text);
    say(&format!("training for {} first", terminal::counted(arguments.warm_up as usize, "step")));
    let model = all.install(|| bench.warm_up(arguments.warm_up))?;
    say(&format!("measuring {} at a time", terminal::counted(arguments.steps as usize, "step")));
    let batches = batches(&options);
    let measured: Vec<_> = batches.iter().map(|&batch| bench.measure(&one, batch, &model)).collect::<Result<_, _>>()?;
    let many = bench.measure(&all, options.batch, &model)?;

    let report = Report::new(&options, arguments, &measured, &many, threads);
    let text = if arguments.print.json { serde_json::to_string_pretty(&report)? + "\n" } else { report.in_words() };
    terminal::print(&text)?;
    Ok(Outcome::Done)
}

/// Options that take every step asked for, with rh-u in its second phase from the start.
fn options(arguments: &BenchTrainArguments, budget: &CheckedBudget) -> TrainOptions {
    let mut options = TrainOptions::new(arguments.method.into());
    options.budget = budget.budget().clone();
    options.labelled_steps = 0;
    options.patience = None;
    if let Some(hidden) = &arguments.hidden {
        options.hidden.clone_from(&hidden.0);
    }
    if let Some(batch) = arguments.batch {
        options.batch = batch.0;
    }
    options
}

/// The batches to measure: the reference's, and then that of `options`.
fn batches(options: &TrainOptions) -> Vec<Option<usize>> {
    if options.method.is_robust() && options.batch != Some(REFERENCE_BATCH) {
        vec![Some(REFERENCE_BATCH), options.batch]
    } else {
        vec![options.batch]
    }
}

struct Bench<'a> {
    graph: &'a Graph,
    split: &'a Split,
    options: &'a TrainOptions,
    steps: u32,
}

/// What some steps took.
struct Measured {
    batch: Option<usize>,
    /// A step's CPU time and wall time.
    cpu: Duration,
    wall: Duration,
    parts: Vec<(&'static str, Duration)>,
}

impl Bench<'_> {
    /// The weights after some steps.
    fn warm_up(&self, steps: u32) -> anyhow::Result<Model> {
        let mut trainer = self.trainer(self.options.batch, steps)?;
        for _ in 0..steps {
            trainer.step()?;
        }
        Ok(trainer.into_model())
    }

    fn trainer(&self, batch: Option<usize>, steps: u32) -> anyhow::Result<Trainer<'_>> {
        let mut options = self.options.clone();
        (options.batch, options.steps) = (batch, steps.max(1) as usize);
        Ok(Trainer::new(self.graph, self.split, options)?)
    }

    /// Measures steps from `model` on.
    fn measure(&self, pool: &ThreadPool, batch: Option<usize>, model: &Model) -> anyhow::Result<Measured> {
        let mut trainer = self.trainer(batch, SETTLING_STEPS + self.steps)?.start_from(model.clone())?;
        pool.install(|| {
            for _ in 0..SETTLING_STEPS {
                trainer.step()?;
            }
            let mut times = Vec::new();
            let (start, cpu) = (Instant::now(), ProcessTime::now());
            for _ in 0..self.steps {
                times.extend(trainer.step()?.map(|report| report.times));
            }
            let (wall, cpu) = (start.elapsed() / self.steps, cpu.elapsed() / self.steps);
            Ok(Measured { batch, cpu, wall, parts: sum_of_parts(&times) })
        })
    }
}

fn sum_of_parts(times: &[StepTimes]) -> Vec<(&'static str, Duration)> {
    let mut sums = StepTimes::default().parts();
    for times in times {
        sums.iter_mut().zip(times.parts()).for_each(|(sum, (_, time))| sum.1 += time);
    }
    sums.to_vec()
}

#[derive(Debug, Serialize)]
struct Report {
    method: Method,
    warm_up_steps: u32,
    measured_steps: u32,
    rows: Vec<Row>,
    threads: usize,
    wall_seconds_per_step_one_thread: f64,
    wall_seconds_per_step_all_threads: f64,
}

/// What a batch of some size takes on one thread.
#[derive(Debug, Serialize)]
struct Row {
    /// None for all nodes, or where the method knows no batches.
    batch: Option<usize>,
    cpu_seconds_per_step: f64,
    cpu_seconds_per_1000_steps: f64,
    parts: Vec<PartShare>,
}

#[derive(Debug, Serialize)]
struct PartShare {
    part: &'static str,
    share: f64,
}

impl Row {
    fn new(measured: &Measured) -> Self {
        let total: f64 = measured.parts.iter().map(|(_, time)| time.as_secs_f64()).sum();
        let share = |&(part, time): &(&'static str, Duration)| PartShare {
            part,
            share: time.as_secs_f64() / total.max(f64::MIN_POSITIVE),
        };
        let seconds = measured.cpu.as_secs_f64();
        Self {
            batch: measured.batch,
            cpu_seconds_per_step: seconds,
            cpu_seconds_per_1000_steps: 1000.0 * seconds,
            parts: measured.parts.iter().filter(|(_, time)| !time.is_zero()).map(share).collect(),
        }
    }
}

impl Report {
    fn new(
        options: &TrainOptions,
        arguments: &BenchTrainArguments,
        measured: &[Measured],
        many: &Measured,
        threads: usize,
    ) -> Self {
        let one = measured.iter().find(|measured| measured.batch == many.batch).unwrap_or(many);
        Self {
            method: options.method,
            warm_up_steps: arguments.warm_up,
            measured_steps: arguments.steps,
            rows: measured.iter().map(Row::new).collect(),
            threads,
            wall_seconds_per_step_one_thread: one.wall.as_secs_f64(),
            wall_seconds_per_step_all_threads: many.wall.as_secs_f64(),
        }
    }

    fn in_words(&self) -> String {
        let line = |name: &str, cell: &dyn Fn(&Row) -> String| {
            std::iter::once(name.to_owned()).chain(self.rows.iter().map(cell)).collect::<Vec<_>>()
        };
        let header = line("one thread, batch of", &|row| self.batch_in_words(row.batch));
        let mut lines = vec![
            line("CPU seconds a step", &|row| format!("{:.4}", row.cpu_seconds_per_step)),
            line("CPU seconds for 1000 steps", &|row| format!("{:.1}", row.cpu_seconds_per_1000_steps)),
        ];
        for (i, part) in self.rows.iter().flat_map(|row| &row.parts).map(|part| part.part).enumerate() {
            if i < self.rows[0].parts.len() {
                let share = |row: &Row| row.parts.iter().find(|found| found.part == part).map(|found| found.share);
                lines.push(line(&format!("  {part}"), &|row| {
                    share(row).map_or("–".to_owned(), |share| format!("{:.1}%", 100.0 * share))
                }));
            }
        }
        let table = terminal::table(&format!("l{}", "r".repeat(self.rows.len())), Some(header), lines);
        let phase = if self.method.has_two_phases() { ", second phase" } else { "" };
        let counted = |steps: u32| terminal::counted(steps as usize, "step");
        let steps = counted(self.measured_steps);
        let (one, many) = (self.wall_seconds_per_step_one_thread, self.wall_seconds_per_step_all_threads);
        let facts = terminal::facts(&[
            ("method", format!("{}{phase}", self.method)),
            ("measured", format!("{steps} each, after {} of training", counted(self.warm_up_steps))),
            (
                "threads",
                format!(
                    "1: {one:.4} s a step, {}: {many:.4} s of wall time, {:.2} times faster",
                    self.threads,
                    one / many
                ),
            ),
        ]);
        format!("{table}\n{facts}")
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

//! `nodeproof train`: networks that withstand tampering.

mod evaluate;
mod files;
mod log;
pub(super) mod metadata;
mod monitor;
mod options;
mod plan;
mod report;
mod sample;

use std::time::Instant;

use anyhow::anyhow;
use cpu_time::ProcessTime;
use nodeproof::Graph;
use nodeproof::train::Trainer;

use crate::cli::TrainArguments;
use crate::interrupt::Interrupt;
use crate::outcome::Outcome;
use crate::progress::TrainingProgress;
use crate::{inputs, terminal};
use evaluate::evaluate;
use log::{Header, Log};
use monitor::Monitor;
use plan::Plan;
use report::{Finished, Run};
use sample::Sample;

/// Steps between two looks at accuracy for the log.
const ACCURACY_EVERY: usize = 10;

/// Runs the command.
///
/// # Errors
/// If the input is bad, training diverges or an output cannot be written.
pub(crate) fn run(arguments: &TrainArguments) -> anyhow::Result<Outcome> {
    let Some(Trained { graph, plans, finished }) = train(arguments)? else { return Ok(Outcome::Interrupted) };
    report::print(arguments, &graph, &plans, &finished)?;
    Ok(Outcome::Done)
}

/// Networks that were trained.
pub(super) struct Trained {
    graph: Graph,
    plans: Vec<Plan>,
    finished: Vec<Finished>,
}

/// Trains and certifies all that is asked for; `None` if the user stopped it, and was told how to go on. Everything is
/// checked before training begins.
///
/// # Errors
/// If the input is bad, training diverges or an output cannot be written.
pub(super) fn train(arguments: &TrainArguments) -> anyhow::Result<Option<Trained>> {
    let options = options::chosen(arguments.method.into(), &arguments.options)?;
    arguments.graph.graph.check_readable("--graph")?;
    let files = files::check(arguments)?;
    let (graph, cleaning) = inputs::read_graph(&arguments.graph.graph, &arguments.graph.flags)?;
    inputs::note_cleaning(&cleaning, arguments.output.quiet);
    let plans = plan::make(arguments, &graph, &options, files)?;
    for plan in &plans {
        Trainer::new(&graph, &plan.split, plan.options.clone()).map_err(options::in_words)?;
    }
    if let Some(plan) = plans.first() {
        plan.note_oddities(arguments.output.quiet);
    }

    let pool = thread_pool(arguments.threads.count())?;
    let interrupt = Interrupt::listen(|| ())?;
    let session = Session { arguments, graph: &graph, interrupt };
    let mut finished = Vec::new();
    for (number, plan) in plans.iter().enumerate() {
        let name = if plans.len() > 1 { format!("split {}/{}", number + 1, plans.len()) } else { String::new() };
        match pool.install(|| session.run(plan, name))? {
            Ended::Finished(run) => finished.push(*run),
            Ended::Interrupted { steps, trained } => {
                let place =
                    if plans.len() > 1 { format!(" of split {}/{}", number + 1, plans.len()) } else { String::new() };
                terminal::complain(&session.interrupted_in_words(steps, trained, plan, &place));
                return Ok(None);
            }
        }
    }
    Ok(Some(Trained { graph, plans, finished }))
}

/// A pool of this many threads, or as many as there are cores.
///
/// # Errors
/// If the system refuses.
pub(super) fn thread_pool(threads: usize) -> anyhow::Result<rayon::ThreadPool> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    pool.map_err(|error| anyhow!("cannot start {threads} threads: {error}; ask for fewer with --threads"))
}

/// What all runs have in common.
struct Session<'a> {
    arguments: &'a TrainArguments,
    graph: &'a Graph,
    interrupt: Interrupt,
}

enum Ended {
    Finished(Box<Finished>),
    Interrupted {
        steps: usize,
        /// Whether all steps were taken, and the model is there.
        trained: bool,
    },
}

impl Session<'_> {
    /// Trains and certifies one network.
    fn run(&self, plan: &Plan, name: String) -> anyhow::Result<Ended> {
        let mut trainer = Trainer::new(self.graph, &plan.split, plan.options.clone()).map_err(options::in_words)?;
        self.resume(&mut trainer, plan)?;
        let resumed = trainer.steps_done();
        let header = Header::new(self.graph, plan, self.arguments.output.log_margins);
        let log = plan.files.log.as_deref().map(|path| Log::open(path, &header, resumed)).transpose()?;
        if let Some(path) = &plan.files.split {
            super::data::write_split(&plan.split, path)?;
        }

        let (start, cpu) = (Instant::now(), ProcessTime::now());
        let progress = TrainingProgress::new(plan.options.all_steps(), resumed, self.arguments.output.quiet);
        let monitor = Monitor::new(self.graph, plan, self.arguments.threads.count(), name, progress);
        let complete = self.take_steps(&mut trainer, plan, log, monitor)?;
        let (seconds, cpu_seconds) = (start.elapsed().as_secs_f64(), cpu.elapsed().as_secs_f64());
        let steps = trainer.steps_done();
        if !complete {
            return Ok(Ended::Interrupted { steps, trained: false });
        }

        let model = trainer.into_model();
        // Should certifying be cut short, the network is not lost.
        metadata::write(&model, self.graph, plan, steps, None)?;
        let evaluated = evaluate(self.arguments, self.graph, plan, &model, self.interrupt)?;
        let Some(evaluation) = evaluated else { return Ok(Ended::Interrupted { steps, trained: true }) };
        metadata::write(&model, self.graph, plan, steps, Some(&evaluation))?;
        let run = Run { steps, resumed, seconds, cpu_seconds };
        Ok(Ended::Finished(Box::new(Finished { run, evaluation })))
    }

    /// Brings `trainer` to where an earlier run stopped, if there was one.
    fn resume(&self, trainer: &mut Trainer, plan: &Plan) -> anyhow::Result<()> {
        let Some(path) = &plan.files.checkpoint else { return Ok(()) };
        let (there, resume) = (path.exists(), self.arguments.output.resume);
        let path_shown = path.display();
        if resume && there {
            trainer.resume(path)?;
        } else if resume && self.arguments.split.splits == 1 {
            let note = format!("there is no checkpoint {path_shown} yet; training begins");
            terminal::note(self.arguments.output.quiet, &note);
        } else if there {
            let note = format!("{path_shown} is overwritten; --resume would continue the run that wrote it");
            terminal::note(self.arguments.output.quiet, &note);
        }
        Ok(())
    }

    /// Takes steps until the end, or an interrupt: `false`.
    fn take_steps(
        &self,
        trainer: &mut Trainer,
        plan: &Plan,
        mut log: Option<Log>,
        mut monitor: Monitor,
    ) -> anyhow::Result<bool> {
        let output = &self.arguments.output;
        let sampled = Some(output.log_margins).filter(|&count| count > 0);
        let sample = sampled.map(|count| Sample::of_each(self.graph, plan, self.arguments.threads.count(), count));
        while !trainer.is_finished() && !self.interrupt.asked() {
            let before = sample.as_ref().map(|_| trainer.current().clone());
            let Some(mut report) = trainer.step().map_err(options::in_words)? else { break };
            monitor.step(&report, trainer.current())?;
            if let Some(log) = &mut log {
                if let (Some(sample), Some(model)) = (&sample, &before) {
                    if report.labelled_margin.is_none() {
                        report.labelled_margin = sample.labelled(model)?.margin;
                    }
                    if report.unlabelled_margin.is_none() {
                        report.unlabelled_margin = sample.unlabelled(model)?.margin;
                    }
                }
                let due = report.step.is_multiple_of(ACCURACY_EVERY) || trainer.is_finished();
                log.step(&report, due.then(|| monitor.accuracies(trainer.current())).transpose()?)?;
            }
            if report.step.is_multiple_of(output.checkpoint_every as usize) {
                keep(trainer, plan, log.as_mut())?;
            }
        }
        monitor.clear();
        keep(trainer, plan, log.as_mut())?;
        Ok(trainer.is_finished())
    }

    fn interrupted_in_words(&self, steps: usize, trained: bool, plan: &Plan, place: &str) -> String {
        let what = if trained {
            format!("interrupted while certifying{place}; {} is trained", plan.files.out.display())
        } else {
            format!("interrupted after {steps} of {} steps{place}", plan.options.all_steps())
        };
        let remedy = match plan.files.checkpoint {
            Some(_) if self.arguments.output.resume => "run the same command to continue",
            Some(_) => "add --resume to continue",
            None if trained => "`nodeproof certify` tells the rest",
            None => "with --checkpoint FILE it could go on",
        };
        format!("{what}; {remedy}")
    }
}

/// Writes log and checkpoint, in this order: a log may be ahead of its checkpoint, never behind.
fn keep(trainer: &Trainer, plan: &Plan, log: Option<&mut Log>) -> anyhow::Result<()> {
    if let Some(log) = log {
        log.flush()?;
    }
    if let Some(path) = &plan.files.checkpoint {
        let written = trainer.write_checkpoint(path);
        written.map_err(|error| anyhow!("{error}; make room there or choose another place"))?;
    }
    Ok(())
}

//! `nodeproof train`: networks, robust ones included.

mod evaluate;
mod files;
mod log;
pub(super) mod metadata;
mod monitor;
mod plan;
mod settings;
mod summary;

use anyhow::anyhow;
use nodeproof::Graph;
use nodeproof::train::{Sample, Trainer};

use crate::cli::TrainArguments;
use crate::interrupt::Interrupt;
use crate::outcome::Outcome;
use crate::progress::TrainingProgress;
use crate::run::Clock;
use crate::{inputs, terminal, words};
use evaluate::evaluate;
pub(super) use files::RunFiles;
use log::Log;
use monitor::Monitor;
pub(super) use plan::Plan;
pub(super) use summary::Finished;
use summary::Run;

/// Steps between two looks at accuracy for the log.
const ACCURACY_EVERY: usize = 10;
/// Steps between two checkpoints, if nothing else is said.
const CHECKPOINT_EVERY: usize = 50;

/// Runs the command.
///
/// # Errors
/// If the input is bad, training diverges or an output cannot be written.
pub(crate) fn run(arguments: &TrainArguments) -> anyhow::Result<Outcome> {
    let (graph, job) = read(arguments)?;
    let Some(finished) = train(&graph, &job)? else { return Ok(Outcome::Interrupted) };
    summary::print(&graph, &job, &finished, arguments.output.json)?;
    Ok(Outcome::Done)
}

/// What is to be trained, and how.
pub(super) struct Job {
    plans: Vec<Plan>,
    /// Whether runs are continued from their checkpoints.
    resume: bool,
    checkpoint_every: usize,
    /// Labelled and unlabelled nodes that are certified before each step, for the log.
    log_margins: usize,
    /// Whether accuracies and verdicts of all nodes are looked at.
    evaluation: bool,
    /// The largest budget up to which the average radius is looked for, if it is.
    average_radius: Option<u32>,
    threads: usize,
    quiet: bool,
}

impl Job {
    /// One run that writes its files and nothing else.
    pub(super) fn new(plan: Plan, quiet: bool) -> Self {
        Self {
            plans: vec![plan],
            resume: false,
            checkpoint_every: CHECKPOINT_EVERY,
            log_margins: 0,
            evaluation: true,
            average_radius: None,
            threads: 0,
            quiet,
        }
    }
}

/// What the arguments ask for, and the graph to train on.
fn read(arguments: &TrainArguments) -> anyhow::Result<(Graph, Job)> {
    let output = &arguments.output;
    let settings = settings::read(arguments)?;
    arguments.graph.graph.check_readable("--graph")?;
    let files = files::check(arguments)?;
    let graph = inputs::read_noted(&arguments.graph, output.quiet)?;
    let job = Job {
        plans: plan::read(arguments, &graph, &settings, files)?,
        resume: output.resume,
        checkpoint_every: output.checkpoint_every as usize,
        log_margins: output.log_margins,
        evaluation: !output.no_evaluation,
        average_radius: output.average_radius.then_some(output.max_budget),
        threads: arguments.threads.count(),
        quiet: output.quiet,
    };
    Ok((graph, job))
}

/// Trains and certifies all that is asked for; `None` if the user stopped it, who then knows how to continue. Everything is
/// checked before training begins.
///
/// # Errors
/// If the settings do not fit, training diverges or an output cannot be written.
pub(super) fn train(graph: &Graph, job: &Job) -> anyhow::Result<Option<Vec<Finished>>> {
    let nodes: Vec<_> = graph.node_ids().collect();
    for plan in &job.plans {
        // Whether the network fits into memory comes before anything that needs some.
        plan.settings.validate_for(graph, &plan.split).map_err(words::settings)?;
        evaluate::settings(plan, job.threads).validate(graph, &nodes).map_err(words::settings)?;
    }
    let locks = job.plans.iter().map(|plan| plan.files.lock()).collect::<Result<Vec<_>, _>>();
    let _locks = locks.map_err(words::file)?;
    if let Some(plan) = job.plans.first() {
        plan.note_oddities(job.quiet);
    }

    let pool = thread_pool(job.threads)?;
    let interrupt = Interrupt::listen(|| ())?;
    let session = Session { job, graph, interrupt };
    let mut finished = Vec::new();
    let runs = job.plans.len();
    for (number, plan) in job.plans.iter().enumerate() {
        let name = if runs > 1 { format!("split {}/{runs}", number + 1) } else { String::new() };
        match pool.install(|| session.run(plan, &name))? {
            Ended::Finished(run) => finished.push(*run),
            Ended::Interrupted { steps, trained } => {
                let place = if runs > 1 { format!(" of {name}") } else { String::new() };
                terminal::complain(&session.interrupted_in_words(steps, trained, plan, &place));
                return Ok(None);
            }
        }
    }
    Ok(Some(finished))
}

/// A pool of this many threads, or as many as there are cores.
fn thread_pool(threads: usize) -> anyhow::Result<rayon::ThreadPool> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    pool.map_err(|error| anyhow!("cannot start {threads} threads: {error}; ask for fewer (--threads)"))
}

/// What all runs have in common.
struct Session<'a> {
    job: &'a Job,
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
    fn run(&self, plan: &Plan, name: &str) -> anyhow::Result<Ended> {
        let (job, graph) = (self.job, self.graph);
        let mut trainer = Trainer::new(graph, &plan.split, plan.settings.clone()).map_err(words::training)?;
        self.resume(&mut trainer, plan)?;
        let resumed = trainer.steps_done();
        let mut log = Log::open(graph, plan, job.log_margins, resumed)?;
        if let Some(path) = &plan.files.split {
            super::data::write_split(&plan.split, path)?;
        }

        let clock = Clock::start();
        let progress = TrainingProgress::new(plan.settings.all_steps(), resumed, job.quiet);
        let looks = job.evaluation.then_some(job.threads);
        let monitor = Monitor::new(graph, plan, looks, name.to_owned(), progress);
        let complete = self.take_steps(&mut trainer, plan, &mut log, monitor)?;
        let time = clock.time();
        let steps = trainer.steps_done();
        if !complete {
            return Ok(Ended::Interrupted { steps, trained: false });
        }
        log.finish()?;

        let (model, run) = (trainer.into_model(), Run { steps, resumed, time });
        // Should certifying be cut short, the network is not lost.
        metadata::write(&model, graph, plan, steps, None)?;
        if !job.evaluation {
            return Ok(Ended::Finished(Box::new(Finished { run, model, evaluation: None })));
        }
        let evaluated = evaluate(job, graph, plan, &model, self.interrupt)?;
        let Some(evaluation) = evaluated else { return Ok(Ended::Interrupted { steps, trained: true }) };
        metadata::write(&model, graph, plan, steps, Some(&evaluation))?;
        Ok(Ended::Finished(Box::new(Finished { run, model, evaluation: Some(evaluation) })))
    }

    /// Brings `trainer` to where an earlier run stopped, if there was one.
    fn resume(&self, trainer: &mut Trainer, plan: &Plan) -> anyhow::Result<()> {
        let Some(path) = &plan.files.checkpoint else { return Ok(()) };
        let (there, resume) = (path.exists(), self.job.resume);
        let path_shown = path.display();
        if resume && there {
            trainer.resume(path)?;
        } else if resume && self.job.plans.len() == 1 {
            let note = format!("there is no checkpoint {path_shown} yet; training begins");
            terminal::note(self.job.quiet, &note);
        } else if there {
            let note = format!("{path_shown} is overwritten; --resume would continue the run that wrote it");
            terminal::note(self.job.quiet, &note);
        }
        Ok(())
    }

    /// Takes steps until the end, or an interrupt: `false`.
    fn take_steps(
        &self,
        trainer: &mut Trainer,
        plan: &Plan,
        log: &mut Log,
        mut monitor: Monitor,
    ) -> anyhow::Result<bool> {
        let job = self.job;
        let sampled = Some(job.log_margins).filter(|&count| count > 0);
        let sample = sampled
            .map(|count| Sample::of_each(self.graph, &plan.split, &plan.settings.budget, count).threads(job.threads));
        while !trainer.is_finished() && !self.interrupt.asked() {
            let before = sample.as_ref().map(|_| trainer.current().clone());
            let Some(mut step) = trainer.step().map_err(words::training)? else { break };
            monitor.step(&step, trainer.current())?;
            if log.is_there() {
                if let (Some(sample), Some(before)) = (&sample, &before) {
                    sample.complete(&mut step, before)?;
                }
                if step.step.is_multiple_of(ACCURACY_EVERY) || trainer.is_finished() {
                    [step.accuracy_labelled, step.accuracy_unlabelled] = monitor.accuracies(trainer.current())?;
                }
                log.step(&step)?;
            }
            if step.step.is_multiple_of(job.checkpoint_every) {
                keep(trainer, plan, log)?;
            }
        }
        monitor.clear();
        keep(trainer, plan, log)?;
        Ok(trainer.is_finished())
    }

    fn interrupted_in_words(&self, steps: usize, trained: bool, plan: &Plan, place: &str) -> String {
        let what = if trained {
            format!("interrupted while certifying{place}; {} is trained", plan.files.out.display())
        } else {
            format!("interrupted after {steps} of {} steps{place}", plan.settings.all_steps())
        };
        let remedy = match plan.files.checkpoint {
            Some(_) if self.job.resume => "run the same command to continue",
            Some(_) => "add --resume to continue",
            None if trained => "`nodeproof certify` certifies it",
            None => "with --checkpoint FILE it could be continued",
        };
        format!("{what}; {remedy}")
    }
}

/// Writes log and checkpoint, in this order: a log may be ahead of its checkpoint, never behind.
fn keep(trainer: &Trainer, plan: &Plan, log: &mut Log) -> anyhow::Result<()> {
    log.flush()?;
    if let Some(path) = &plan.files.checkpoint {
        let written = trainer.write_checkpoint(path);
        written.map_err(|error| anyhow!("{error}; make room there or choose another place"))?;
    }
    Ok(())
}

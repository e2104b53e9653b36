//! Training a network, with a log and a checkpoint, so that a training that is stopped continues where it was.

use std::ops::ControlFlow;
use std::path::Path;

use nodeproof::checkpoint::CheckpointError;
use nodeproof::files::{Destination, Keep, Unfinished};
use nodeproof::provenance::Provenance;
use nodeproof::results::{GraphHeader, SplitFields, StepRecord, TrainingLogHeader};
use nodeproof::train::{Sample, TrainSettings, Trainer, accuracy};
use nodeproof::{Budget, Certifier, Event, Finish, Graph, LocalBudget, Model, NodeId, Part, Percent, Split, SplitSize};
use nodeproof_report::tally::Summary;
use rayon::ThreadPool;
use serde::Serialize;

use super::Observer;
use super::plan::{LOG_MARGINS, Network, Plan};
use super::steps::{is_of_no_use, remove, tell};
use crate::{LabError, threads};

/// Share of each class that is labelled.
const TRAIN_SHARE: f64 = 0.1;
/// Steps between two looks at accuracy for the log.
const ACCURACY_EVERY: usize = 10;
/// Steps between two checkpoints.
const CHECKPOINT_EVERY: usize = 50;

/// Trains `network` and writes it, as `nodeproof train` does.
///
/// # Errors
/// If training diverges, or a file cannot be written.
pub(super) fn train(plan: &Plan, network: &Network, logged: bool, observe: Observer) -> Result<Finish, LabError> {
    let graph = &network.source.graph;
    let (train, validation) = (SplitSize::Fraction(TRAIN_SHARE), SplitSize::Fraction(0.0));
    let split = Split::stratified(graph, train, validation, network.split)?;
    let mut settings = TrainSettings::new(network.method);
    settings.budget = Budget::new(network.budget, LocalBudget::Percent(Percent::ONE));
    settings.seed = network.split;
    let pool = threads::pool(plan.threads)?;
    let run = Run { plan, network, graph, split: &split, fields: SplitFields::new(&split, None), pool };

    let (mut trainer, mut log) = run.begin(settings, logged)?;
    let all = trainer.settings().all_steps();
    let budget = trainer.settings().budget.clone();
    let sample = log.as_ref().map(|_| Sample::of_each(graph, &split, &budget, LOG_MARGINS).threads(plan.threads));
    while !trainer.is_finished() {
        let before = sample.as_ref().map(|_| trainer.current().clone());
        let Some(mut step) = run.pool.install(|| trainer.step())? else { break };
        if let (Some(log), Some(sample), Some(before)) = (&mut log, &sample, &before) {
            sample.complete(&mut step, before)?;
            if step.step.is_multiple_of(ACCURACY_EVERY) || trainer.is_finished() {
                [step.accuracy_labelled, step.accuracy_unlabelled] = run.accuracies(trainer.current())?;
            }
            log.record(&step)?;
        }
        let stop = tell(observe, "steps of training", step.step, all).is_break();
        if stop || step.step.is_multiple_of(CHECKPOINT_EVERY) || trainer.is_finished() {
            // A log may be ahead of its checkpoint, never behind.
            log.as_mut().map_or(Ok(()), Unfinished::flush)?;
            trainer.write_checkpoint(network.checkpoint(plan.folder))?;
        }
        if stop {
            return Ok(Finish::Cancelled);
        }
    }
    let Some(summary) = run.certify(&trainer, observe)? else { return Ok(Finish::Cancelled) };
    let (settings, steps, worth) = (trainer.settings(), trainer.steps_done(), summary.worth());
    let provenance = Provenance { graph, settings, split: &run.fields, steps, worth };
    trainer.model().write_with(network.model(plan.folder), &provenance.metadata())?;
    log.map_or(Ok(()), Unfinished::finish)?;
    remove(&network.checkpoint(plan.folder))?;
    Ok(Finish::Complete)
}

/// A training, and what it is about.
struct Run<'a> {
    plan: &'a Plan<'a>,
    network: &'a Network<'a>,
    graph: &'a Graph,
    split: &'a Split,
    fields: SplitFields,
    pool: ThreadPool,
}

impl<'a> Run<'a> {
    /// A trainer where an earlier run stopped, and the log of as many steps; both from the start if there is none, or none
    /// that can be trusted.
    fn begin(&self, settings: TrainSettings, logged: bool) -> Result<(Trainer<'a>, Option<Unfinished>), LabError> {
        let start = || self.pool.install(|| Trainer::new(self.graph, self.split, settings.clone()));
        let path = logged.then(|| self.network.log(self.plan.folder));
        let mut trainer = start()?;
        if self.resume(&mut trainer)? {
            let log = path.as_deref().map(|path| self.continue_log(path, &trainer)).transpose()?;
            match log {
                None => return Ok((trainer, None)),
                Some(Some(log)) => return Ok((trainer, Some(log))),
                // The steps of the checkpoint are not all in the log.
                Some(None) => trainer = start()?,
            }
        }
        let begin = |path: &Path| Unfinished::begin(&Destination::of(path), &self.log_header(&trainer));
        let log = path.as_deref().map(begin).transpose()?;
        Ok((trainer, log))
    }

    /// Brings `trainer` to where an earlier run stopped; `false` if there was none of use.
    fn resume(&self, trainer: &mut Trainer) -> Result<bool, LabError> {
        match trainer.resume(self.network.checkpoint(self.plan.folder)) {
            Ok(()) => Ok(true),
            Err(CheckpointError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => Ok(false),
            Err(error @ CheckpointError::Io { .. }) => Err(error.into()),
            Err(_) => Ok(false),
        }
    }

    /// The log of the steps that `trainer` has done, to be continued; `None` if there is none.
    fn continue_log(&self, path: &Path, trainer: &Trainer) -> Result<Option<Unfinished>, LabError> {
        let done = trainer.steps_done();
        let keep = |record: StepRecord| Ok(if record.step <= done { Keep::Keep } else { Keep::Stop });
        match Unfinished::resume(&Destination::of(path), &self.log_header(trainer), keep) {
            Ok(log) => Ok(Some(log).filter(|log| log.kept() == done)),
            Err(error) if is_of_no_use(&error) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn log_header<'t>(&'t self, trainer: &'t Trainer) -> impl Serialize + 't {
        TrainingLogHeader::new(GraphHeader::new(self.graph), &self.fields, trainer.settings(), LOG_MARGINS)
    }

    /// Accuracy of `model` on labelled and on unlabelled nodes.
    fn accuracies(&self, model: &Model) -> Result<[Option<f64>; 2], LabError> {
        let of = |part| accuracy(self.graph, model, &self.split.part(part));
        self.pool.install(|| Ok([of(Part::Train)?, of(Part::Unlabelled)?]))
    }

    /// Certifies all nodes under the budget of training; `None` if the observer broke off.
    fn certify(&self, trainer: &Trainer, observe: Observer) -> Result<Option<Summary>, LabError> {
        let nodes: Vec<NodeId> = self.graph.node_ids().collect();
        let certifier = Certifier::new(self.graph, trainer.model())?;
        let certifier = certifier.budget(trainer.settings().budget.clone()).threads(self.plan.threads);
        let mut summary = Summary::new(Some(self.split.clone()));
        let finish = certifier.certify_each(&nodes, |event| match event {
            Event::Certified(certificate) => {
                summary.add(&certificate);
                tell(observe, "nodes certified", summary.all().nodes, nodes.len())
            }
            _ => ControlFlow::Continue(()),
        })?;
        Ok((finish == Finish::Complete).then_some(summary))
    }
}

//! Training a network, with a log and a checkpoint, so that a training that is stopped goes on where it was.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;

use nodeproof::checkpoint::CheckpointError;
use nodeproof::files::{Keep, Place, Unfinished};
use nodeproof::results::{BudgetFields, GraphHeader, StepRecord, TrainingLogHeader};
use nodeproof::train::{StepReport, TrainSettings, Trainer, accuracy};
use nodeproof::{
    Bound, Budget, Certifier, Event, Finish, Graph, LocalBudget, Model, NodeId, Part, Percent, Split, SplitSize,
    TargetClass,
};
use nodeproof_report::tally::Summary;
use rayon::ThreadPool;
use serde::Serialize;

use super::Observer;
use super::plan::{LOG_MARGINS, Network, Plan};
use super::steps::{is_of_no_use, remove, tell};
use crate::{LabError, spread, threads};

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
    let run = Run { plan, network, graph, split: &split, facts: SplitFacts::new(&split), pool };

    let (mut trainer, mut log) = run.begin(settings, logged)?;
    let all = trainer.options().all_steps();
    let sample = log.as_ref().map(|_| Sample::new(graph, &split, &trainer.options().budget, plan.threads));
    while !trainer.is_finished() {
        let before = sample.as_ref().map(|_| trainer.current().clone());
        let Some(mut report) = run.pool.install(|| trainer.step())? else { break };
        if let (Some(log), Some(sample), Some(before)) = (&mut log, &sample, &before) {
            sample.complete(&mut report, before)?;
            let due = report.step.is_multiple_of(ACCURACY_EVERY) || trainer.is_finished();
            let accuracies = due.then(|| run.accuracies(trainer.current())).transpose()?;
            log.record(&Line { report: &report, accuracies })?;
        }
        let stop = tell(observe, "steps of training", report.step, all).is_break();
        if stop || report.step.is_multiple_of(CHECKPOINT_EVERY) || trainer.is_finished() {
            // A log may be ahead of its checkpoint, never behind.
            log.as_mut().map_or(Ok(()), Unfinished::flush)?;
            trainer.write_checkpoint(network.checkpoint(plan.folder))?;
        }
        if stop {
            return Ok(Finish::Cancelled);
        }
    }
    let Some(summary) = run.certify(&trainer, observe)? else { return Ok(Finish::Cancelled) };
    trainer.model().write_with(network.model(plan.folder), &run.metadata(&trainer, &summary))?;
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
    facts: SplitFacts,
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
        let begin = |path: &Path| Unfinished::begin(&Place::of(path), &self.log_header(&trainer));
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
        match Unfinished::resume(&Place::of(path), &self.log_header(trainer), keep) {
            Ok(log) => Ok(Some(log).filter(|log| log.kept() == done)),
            Err(error) if is_of_no_use(&error) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn log_header<'t>(&'t self, trainer: &'t Trainer) -> impl Serialize + 't {
        TrainingLogHeader::new(GraphHeader::new(self.graph), &self.facts, trainer.options(), LOG_MARGINS)
    }

    fn accuracies(&self, model: &Model) -> Result<Accuracies, LabError> {
        self.pool.install(|| {
            let of = |part| accuracy(self.graph, model, &self.split.part(part));
            Ok(Accuracies { labelled: of(Part::Train)?, unlabelled: of(Part::Unlabelled)? })
        })
    }

    /// Certifies all nodes under the budget of training; `None` if the observer broke off.
    fn certify(&self, trainer: &Trainer, observe: Observer) -> Result<Option<Summary>, LabError> {
        let nodes: Vec<NodeId> = self.graph.node_ids().collect();
        let certifier = Certifier::new(self.graph, trainer.model())?;
        let certifier = certifier.budget(trainer.options().budget.clone()).threads(self.plan.threads);
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

    /// How the network was trained, and what came of it.
    fn metadata(&self, trainer: &Trainer, summary: &Summary) -> BTreeMap<String, String> {
        let settings = trainer.options();
        let found = summary.figures();
        let mut metadata = vec![
            ("method", settings.method.to_string()),
            ("budget", BudgetFields::new(&settings.budget, self.graph.attribute_count()).to_json()),
            ("split", json(&self.facts)),
            ("seed", settings.seed.to_string()),
            ("options", json(settings)),
            ("steps", trainer.steps_done().to_string()),
            ("nodeproof", env!("CARGO_PKG_VERSION").to_owned()),
            ("graph", self.network.source.fingerprint.clone()),
        ];
        let shares = [
            ("accuracy_labelled", found.labelled.and_then(|part| part.accuracy)),
            ("accuracy_unlabelled", found.unlabelled.and_then(|part| part.accuracy)),
            ("robust_share", found.all.robust_share),
        ];
        metadata.extend(shares.into_iter().filter_map(|(key, share)| Some((key, share?.to_string()))));
        metadata.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
    }
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("settings and sizes are plain numbers and names")
}

/// Where a split comes from, and its sizes.
#[derive(Debug, Serialize)]
struct SplitFacts {
    seed: Option<u64>,
    train: usize,
    validation: usize,
    test: usize,
}

impl SplitFacts {
    fn new(split: &Split) -> Self {
        let size = |part| split.part(part).len();
        let (train, validation, test) = (size(Part::Train), size(Part::Validation), size(Part::Test));
        Self { seed: split.seed, train, validation, test }
    }
}

/// Accuracy on labelled and on unlabelled nodes after a step.
#[derive(Debug, Serialize)]
struct Accuracies {
    #[serde(rename = "accuracy_labelled")]
    labelled: Option<f64>,
    #[serde(rename = "accuracy_unlabelled")]
    unlabelled: Option<f64>,
}

/// A line of the log.
#[derive(Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    report: &'a StepReport,
    #[serde(flatten)]
    accuracies: Option<Accuracies>,
}

/// A few nodes whose worst-case margins stand for those of all: labelled ones, certified for their label, and unlabelled
/// ones, for the class they are predicted to have.
struct Sample<'a> {
    graph: &'a Graph,
    budget: Budget,
    threads: usize,
    labelled: Vec<NodeId>,
    unlabelled: Vec<NodeId>,
}

impl<'a> Sample<'a> {
    fn new(graph: &'a Graph, split: &Split, budget: &Budget, threads: usize) -> Self {
        let some = |nodes: Vec<NodeId>| spread(&nodes, LOG_MARGINS).into_iter().copied().collect();
        let mut labelled = split.part(Part::Train);
        labelled.retain(|&node| graph.label(node).is_some());
        let (labelled, unlabelled) = (some(labelled), some(split.part(Part::Unlabelled)));
        Self { graph, budget: budget.clone(), threads, labelled, unlabelled }
    }

    /// Puts the mean margins of the network before a step where the step itself says nothing of them.
    fn complete(&self, report: &mut StepReport, before: &Model) -> Result<(), LabError> {
        if report.labelled_margin.is_none() {
            report.labelled_margin = self.margin(before, &self.labelled, TargetClass::Label)?;
        }
        if report.unlabelled_margin.is_none() {
            report.unlabelled_margin = self.margin(before, &self.unlabelled, TargetClass::Predicted)?;
        }
        Ok(())
    }

    /// The mean of the smallest margins; `None` without nodes, or if one is not known.
    fn margin(&self, model: &Model, nodes: &[NodeId], class: TargetClass) -> Result<Option<f64>, LabError> {
        let certifier = Certifier::new(self.graph, model)?.budget(self.budget.clone()).target_class(class);
        let certificates = certifier.threads(self.threads).certify(nodes)?;
        let margins: Vec<Bound> = certificates.iter().map(|certificate| certificate.margin()).collect();
        let known = !margins.is_empty() && !margins.contains(&Bound::Unknown);
        Ok(known.then(|| margins.iter().map(|margin| margin.value()).sum::<f64>() / margins.len() as f64))
    }
}

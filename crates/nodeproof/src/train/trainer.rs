//! Training, one step at a time.

use std::path::Path;
use std::time::{Duration, Instant};

use nodeproof_problem::checkpoint::CheckpointError;
use nodeproof_problem::results::{Phase, StepRecord};

use super::TrainError;
use super::adam::Adam;
use super::batches::{Batches, Stream};
use super::cross_entropy::CrossEntropy;
use super::dropout::Dropout;
use super::goal::Goal;
use super::neighbourhood::{Neighbourhood, Surroundings};
use super::robust::{RobustTerm, Target, Value};
use super::state::{Progress, State, run_key};
use super::{architecture, check_no_edges, labelled};
use crate::gradient::Gradient;
use crate::graph::{Graph, Part, Split};
use crate::ids::{ClassId, NodeId};
use crate::model::{Layer, Model, ModelError, Term, Weight};
use crate::settings::{Method, TrainSettings, WorstCase};
use crate::sparse::SparseMatrix;

/// Steps of a robust method between two looks at the validation part, whose margins cost as much as a batch of its size.
const ROBUST_VALIDATION_EVERY: usize = 10;
/// Weight of the past in the smoothed training loss.
const SMOOTHING: f64 = 0.98;
/// A smoothed training loss that is not this much lower, relatively, is not better.
const CONVERGED: f64 = 1e-3;

/// Wall time of the parts of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct StepTimes {
    /// Cross entropy and its gradient.
    pub cross_entropy: Duration,
    /// What the batch sees, and bounds, lines and the search's tables there.
    pub bounds: Duration,
    /// Duals of the batch and their derivatives.
    pub duals: Duration,
    /// From lines through bounds to weights.
    pub gradient: Duration,
    /// Adam.
    pub optimiser: Duration,
    /// The loss on the validation part.
    pub validation: Duration,
}

impl StepTimes {
    /// All parts with their names, in the order in which they happen.
    pub fn parts(&self) -> [(&'static str, Duration); 6] {
        [
            ("cross entropy", self.cross_entropy),
            ("bounds", self.bounds),
            ("duals", self.duals),
            ("gradient", self.gradient),
            ("optimiser", self.optimiser),
            ("validation", self.validation),
        ]
    }
}

/// A network in training.
///
/// ```
/// use nodeproof::train::{Method, TrainSettings, Trainer};
/// use nodeproof::{ClassId, Graph, Split, SplitSize};
/// let graph = Graph::new(4, 2, &[(0, 1), (2, 3)], &[(0, 0), (1, 0), (2, 1), (3, 1)])?
///     .with_labels([0, 0, 1, 1].map(|class| Some(ClassId(class))).to_vec())?;
/// let split = Split::stratified(&graph, SplitSize::PerClass(1), SplitSize::PerClass(0), 0)?;
/// let mut settings = TrainSettings::new(Method::RobustHingeUnlabelled);
/// settings.steps = 30;
/// let mut trainer = Trainer::new(&graph, &split, settings)?;
/// while let Some(step) = trainer.step()? {
///     assert!(step.loss.is_finite());
/// }
/// assert_eq!(trainer.model().classes(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Trainer<'a> {
    graph: &'a Graph,
    split: &'a Split,
    settings: TrainSettings,
    surroundings: Surroundings<&'a Graph>,
    cross_entropy: LabelledLoss,
    validation: Option<Validation>,
    labelled_batches: Batches<NodeId>,
    all_batches: Batches<NodeId>,
    gradient: Gradient,
    times: StepTimes,
    pub(super) state: State,
    /// Fingerprint of everything that a run depends on.
    pub(super) key: String,
}

/// The cross entropy of labelled nodes.
#[derive(Debug)]
enum LabelledLoss {
    /// Of all.
    All(CrossEntropy),
    /// Of some in each step.
    Batches(Batches<(NodeId, ClassId)>),
}

impl LabelledLoss {
    fn new(graph: &Graph, model: &Model, matrices: &[SparseMatrix], batches: Batches<(NodeId, ClassId)>) -> Self {
        if batches.are_whole() {
            Self::All(CrossEntropy::new(graph, model, matrices, batches.nodes()))
        } else {
            Self::Batches(batches)
        }
    }
}

/// The validation part.
#[derive(Debug)]
struct Validation {
    cross_entropy: CrossEntropy,
    /// What it sees, and its nodes there; nothing where there is no worst-case loss.
    worst_case: Option<(Neighbourhood, Vec<Target>)>,
}

impl<'a> Trainer<'a> {
    /// A network that has yet to learn anything.
    ///
    /// # Errors
    /// If an option makes no sense, the split is one of another graph, or there is nothing to learn from.
    pub fn new(graph: &'a Graph, split: &'a Split, settings: TrainSettings) -> Result<Self, TrainError> {
        settings.validate_for(graph, split)?;
        let train = labelled(graph, &split.part(Part::Train));
        let settings = settings.suited_to(graph, train.len());
        check_no_edges(&settings.budget)?;
        let limits = settings.budget.limits(graph)?;
        let model = architecture::initial(&settings, graph.attribute_count(), graph.classes())?.with_kind(graph.kind());
        let matrices = model.propagations().iter().map(|propagation| propagation.matrix(graph));
        let matrices = matrices.collect::<Result<Vec<_>, _>>()?;

        let mut surroundings = Surroundings::new(graph, matrices, limits);
        let held_back = labelled(graph, &split.part(Part::Validation));
        let validation = (!held_back.is_empty() && settings.patience.is_some()).then(|| Validation {
            cross_entropy: CrossEntropy::new(graph, &model, surroundings.matrices(), &held_back),
            worst_case: settings.method.is_robust().then(|| {
                let targets = held_back.iter().map(|&(node, _)| target(graph, &settings, node, true)).collect();
                surroundings.of_targets(&model, targets)
            }),
        });
        let nodes: Vec<NodeId> = train.iter().map(|&(node, _)| node).collect();
        let labelled_batches = Batches::new(train, settings.labelled_batch, settings.seed, Stream::CrossEntropy);
        let straight_to_all = settings.method.has_two_phases() && settings.labelled_steps == 0;
        let phase = if straight_to_all { Phase::All } else { Phase::Labelled };
        Ok(Self {
            key: run_key(graph, split, &settings, &model),
            cross_entropy: LabelledLoss::new(graph, &model, surroundings.matrices(), labelled_batches),
            surroundings,
            validation,
            labelled_batches: Batches::new(nodes, settings.batch, settings.seed, Stream::WorstCase),
            all_batches: Batches::new(graph.node_ids().collect(), settings.batch, settings.seed, Stream::WorstCase),
            gradient: Gradient::zeros(&model),
            times: StepTimes::default(),
            state: State {
                adam: Adam::new(&model),
                model,
                best: None,
                progress: Progress { step: 0, phase, finished: false, smoothed: None, best_loss: None, best_step: 0 },
            },
            graph,
            split,
            settings,
        })
    }

    /// How it is trained.
    pub fn settings(&self) -> &TrainSettings {
        &self.settings
    }

    /// Where the time of the last step went.
    pub fn times(&self) -> StepTimes {
        self.times
    }

    /// The network as it is now.
    pub fn current(&self) -> &Model {
        &self.state.model
    }

    /// The network to use: the one with the smallest validation loss, or the current one where there is none.
    pub fn model(&self) -> &Model {
        self.state.best.as_ref().unwrap_or(&self.state.model)
    }

    /// The network to use, see [`Trainer::model`].
    pub fn into_model(self) -> Model {
        self.state.best.unwrap_or(self.state.model)
    }

    /// Steps done so far.
    pub fn steps_done(&self) -> usize {
        self.state.progress.step
    }

    /// Whether training has ended.
    pub fn is_finished(&self) -> bool {
        self.state.progress.finished
    }

    /// Starts from the weights of `model` instead of random ones.
    ///
    /// # Errors
    /// If its layers or its propagations are not those that the settings ask for.
    pub fn start_from(mut self, model: Model) -> Result<Self, ModelError> {
        let asked = &self.state.model;
        let fail = |problem: String| Err(ModelError::Mismatch { problem });
        if model.propagations() != asked.propagations() {
            let (found, expected) = (propagations(&model), propagations(asked));
            return fail(format!(
                "its propagation is {found}, but the settings ask for {expected}; change the settings"
            ));
        }
        if sizes(&model) != sizes(asked) {
            let (found, expected) = (sizes(&model), sizes(asked));
            return fail(format!(
                "its layers have sizes {found:?}, but the settings ask for {expected:?}; change `hidden`"
            ));
        }
        if model.kind() != asked.kind() {
            return Err(ModelError::Kind { model: model.kind(), graph: asked.kind() });
        }
        if !have_one_plan(&model, asked) {
            let architecture = self.settings.architecture;
            return fail(format!(
                "its layers are not put together as those of {architecture} are; change `architecture`"
            ));
        }
        self.key = run_key(self.graph, self.split, &self.settings, &model);
        self.state.adam = Adam::new(&model);
        self.state.model = model;
        Ok(self)
    }

    /// Writes everything that is needed to go on later.
    ///
    /// # Errors
    /// If the file cannot be written; an existing one is then left as it was.
    pub fn write_checkpoint(&self, path: impl AsRef<Path>) -> Result<(), CheckpointError> {
        self.state.checkpoint(self.key.clone()).write(path)
    }

    /// Continues where the run that wrote `path` stood; the rest is the same to the last bit as if it had never stopped.
    ///
    /// # Errors
    /// If the file is unreadable, not a checkpoint or not as it was written, or one of a run with another graph, split or
    /// settings.
    pub fn resume(&mut self, path: impl AsRef<Path>) -> Result<(), CheckpointError> {
        self.state = self.state.read(path.as_ref(), &self.key)?;
        Ok(())
    }

    /// Takes one step; `None` when training has ended.
    ///
    /// # Errors
    /// If a number becomes infinite or NaN.
    pub fn step(&mut self) -> Result<Option<StepRecord>, TrainError> {
        if self.state.progress.finished {
            return Ok(None);
        }
        let Progress { step: done, phase, .. } = self.state.progress;
        let mut times = StepTimes::default();
        let cross_entropy = self.put_cross_entropy(&mut times);
        let robust = self.settings.method.is_robust().then(|| self.add_robust(&mut times));
        let loss = self.settings.cross_entropy_weight * cross_entropy.unwrap_or(0.0)
            + self.robust_weight() * robust.as_ref().map_or(0.0, |(_, value)| value.loss);

        let start = Instant::now();
        hold_fixed(&self.state.model, &mut self.gradient);
        let gradient_norm = self.gradient.norm();
        if let Some(clip) = self.settings.clip.filter(|&clip| gradient_norm > clip) {
            self.gradient.scale(clip / gradient_norm);
        }
        let factor = self.settings.schedule.factor(done, self.settings.all_steps());
        let learning_rate = self.settings.learning_rate * factor;
        let State { model, adam, .. } = &mut self.state;
        adam.step(model, &self.gradient, learning_rate, self.settings.weight_decay.unwrap_or(0.0));
        times.optimiser = start.elapsed();

        self.state.progress.step += 1;
        let step = self.state.progress.step;
        if !loss.is_finite() || !self.state.model.tensors().flatten().all(|value| value.is_finite()) {
            return Err(TrainError::Diverged { step });
        }
        let validation_loss = self.validate(&mut times);
        self.count_patience(loss, validation_loss);
        self.times = times;
        Ok(Some(StepRecord {
            step,
            phase,
            loss,
            cross_entropy,
            robust_loss: robust.as_ref().map(|(_, value)| value.loss),
            labelled_margin: robust.as_ref().and_then(|(targets, value)| self.mean_margin(targets, value, true)),
            unlabelled_margin: robust.as_ref().and_then(|(targets, value)| self.mean_margin(targets, value, false)),
            robust_share: robust.as_ref().map(|(_, value)| mean(value.margins.iter().map(|&m| f64::from(m > 0.0)))),
            validation_loss,
            learning_rate,
            gradient_norm,
            accuracy_labelled: None,
            accuracy_unlabelled: None,
        }))
    }

    /// Puts the gradient of the weighted cross entropy into `self.gradient`, and returns its value.
    fn put_cross_entropy(&mut self, times: &mut StepTimes) -> Option<f64> {
        let start = Instant::now();
        let weight = self.settings.cross_entropy_weight;
        if weight == 0.0 {
            self.gradient.clear();
            return None;
        }
        let dropout = self.dropout(self.settings.dropout.unwrap_or(0.0));
        let Self { cross_entropy, surroundings, state: State { model, progress, .. }, gradient, .. } = self;
        let loss = match cross_entropy {
            LabelledLoss::All(all) => all.evaluate(model, dropout, weight, gradient),
            LabelledLoss::Batches(batches) => {
                let batch = batches.batch(progress.step as u64);
                let seen = surroundings.of(model, batch.iter().map(|&(node, _)| node));
                let targets: Vec<_> = batch.into_iter().map(|(node, label)| (seen.place(node), label)).collect();
                let some = CrossEntropy::new(&seen.graph, model, &seen.matrices, &targets);
                some.evaluate(model, dropout, weight, gradient)
            }
        };
        times.cross_entropy = start.elapsed();
        Some(loss)
    }

    /// What is left out in this step, if anything.
    fn dropout(&self, rate: f64) -> Option<Dropout> {
        let step = self.state.progress.step as u64 + 1;
        (rate > 0.0).then_some(Dropout { rate, seed: self.settings.seed, step })
    }

    fn robust_term<'n>(&self, on: &'n Neighbourhood) -> RobustTerm<'n> {
        let Neighbourhood { graph, matrices, limits, .. } = on;
        RobustTerm { graph, matrices, limits, worst_case: self.settings.worst_case.unwrap_or(WorstCase::Dual) }
    }

    /// The weight of the worst-case loss once it has grown.
    fn full_robust_weight(&self) -> f64 {
        self.settings.robust_weight.unwrap_or(1.0)
    }

    /// The weight of the worst-case loss in this step.
    fn robust_weight(&self) -> f64 {
        let (robust_weight, warm_up) = (self.full_robust_weight(), self.settings.warm_up);
        let done = self.state.progress.step + 1;
        if done < warm_up { robust_weight * done as f64 / warm_up as f64 } else { robust_weight }
    }

    /// Adds the gradient of the weighted worst-case loss of this step's batch to `self.gradient`.
    fn add_robust(&mut self, times: &mut StepTimes) -> (Vec<Target>, Value) {
        let Progress { step, phase, .. } = self.state.progress;
        let nodes = match phase {
            Phase::Labelled => self.labelled_batches.batch(step as u64),
            Phase::All => self.all_batches.batch(step as u64),
        };
        let targets: Vec<Target> = nodes
            .into_iter()
            .map(|node| target(self.graph, &self.settings, node, self.split.is_labelled(node)))
            .collect();
        let start = Instant::now();
        let (mut seen, targets_there) = self.surroundings.of_targets(&self.state.model, targets.clone());
        if let Some(dropout) = self.dropout(self.settings.attribute_dropout.unwrap_or(0.0)) {
            seen = seen.thinned(dropout);
        }
        let cutting_time = start.elapsed();
        let mut gradient = std::mem::take(&mut self.gradient);
        let with_gradient = Some((self.robust_weight(), &mut gradient));
        let value = self.robust_term(&seen).evaluate(&self.state.model, &targets_there, with_gradient);
        self.gradient = gradient;
        times.bounds = cutting_time + value.bounds_time;
        (times.duals, times.gradient) = (value.dual_time, value.gradient_time);
        (targets, value)
    }

    /// The loss on the validation part, if it is due.
    fn validate(&self, times: &mut StepTimes) -> Option<f64> {
        let validation = self.validation.as_ref()?;
        let robust = self.settings.method.is_robust();
        if robust && !self.state.progress.step.is_multiple_of(ROBUST_VALIDATION_EVERY) {
            return None;
        }
        let start = Instant::now();
        let mut loss = 0.0;
        if self.settings.cross_entropy_weight > 0.0 {
            loss += self.settings.cross_entropy_weight * validation.cross_entropy.value(&self.state.model);
        }
        if let Some((seen, targets)) = &validation.worst_case {
            let value = self.robust_term(seen).evaluate(&self.state.model, targets, None);
            loss += self.full_robust_weight() * value.loss;
        }
        times.validation = start.elapsed();
        Some(loss)
    }

    /// Remembers the best loss, and ends the phase where it is over.
    fn count_patience(&mut self, loss: f64, validation_loss: Option<f64>) {
        let State { model, best, progress, .. } = &mut self.state;
        if progress.step <= self.settings.warm_up {
            // Losses of different weights do not compare.
            (progress.smoothed, progress.best_loss, progress.best_step) = (None, None, progress.step);
        }
        let smoothed = progress.smoothed.map_or(loss, |smoothed| SMOOTHING * smoothed + (1.0 - SMOOTHING) * loss);
        progress.smoothed = Some(smoothed);
        let better = match (&self.validation, validation_loss) {
            (Some(_), Some(loss)) => progress.best_loss.is_none_or(|best| loss <= best).then_some(loss),
            (Some(_), None) => None,
            (None, _) => progress.best_loss.is_none_or(|best| smoothed < (1.0 - CONVERGED) * best).then_some(smoothed),
        };
        if better.is_some() {
            (progress.best_loss, progress.best_step) = (better, progress.step);
            if self.validation.is_some() {
                *best = Some(model.clone());
            }
        }
        let looked = self.validation.is_none() || validation_loss.is_some();
        let out_of_patience =
            looked && self.settings.patience.is_some_and(|patience| progress.step - progress.best_step >= patience);
        let another_phase = progress.phase == Phase::Labelled && self.settings.method.has_two_phases();
        let last_step = if another_phase { self.settings.labelled_steps } else { self.settings.all_steps() };
        if !out_of_patience && progress.step < last_step {
            return;
        }
        if another_phase {
            let step = progress.step;
            *progress = Progress { phase: Phase::All, smoothed: None, best_loss: None, best_step: step, ..*progress };
            *best = None;
        } else {
            progress.finished = true;
        }
    }

    fn mean_margin(&self, targets: &[Target], value: &Value, labelled: bool) -> Option<f64> {
        let margins = targets.iter().zip(&value.margins);
        let chosen: Vec<f64> = margins
            .filter(|(target, _)| self.split.is_labelled(target.node) == labelled)
            .map(|(_, &margin)| margin)
            .collect();
        (!chosen.is_empty()).then(|| mean(chosen.into_iter()))
    }
}

/// Number of attributes, and units of each layer; those of the last are classes.
fn sizes(model: &Model) -> Vec<usize> {
    std::iter::once(model.attributes()).chain(model.layers().iter().map(Layer::units)).collect()
}

/// The propagations, in words.
fn propagations(model: &Model) -> String {
    model.propagations().iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ")
}

/// Whether two models of the same sizes are put together in the same way: all but the numbers that are trained.
fn have_one_plan(a: &Model, b: &Model) -> bool {
    let scalar = |weight: &Weight| match weight {
        Weight::Dense(_) => None,
        Weight::Scalar(factor) => Some(*factor),
    };
    let term = |term: &Term| (term.source(), term.propagation(), scalar(term.weight()));
    let same = |(a, b): (&Layer, &Layer)| {
        a.activation() == b.activation() && a.terms().iter().map(term).eq(b.terms().iter().map(term))
    };
    a.layers().len() == b.layers().len() && a.layers().iter().zip(b.layers()).all(same)
}

/// Layers without a weight to train, such as S of GCNII, have no bias to train either.
fn hold_fixed(model: &Model, gradient: &mut Gradient) {
    for (layer, bias) in model.layers().iter().zip(&mut gradient.biases) {
        if layer.terms().iter().all(|term| term.weight().dense().is_none()) {
            bias.fill(0.0);
        }
    }
}

/// What `node` is asked for.
fn target(graph: &Graph, settings: &TrainSettings, node: NodeId, labelled: bool) -> Target {
    let class = graph.label(node).filter(|_| labelled);
    let goal = match settings.method {
        Method::RobustCrossEntropy => Goal::CrossEntropy,
        _ if class.is_some() => Goal::Hinge { margin: settings.labelled_margin, saturation: None },
        _ => Goal::Hinge { margin: settings.unlabelled_margin, saturation: settings.saturation },
    };
    Target { node, class, goal }
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len().max(1) as f64;
    values.sum::<f64>() / count
}

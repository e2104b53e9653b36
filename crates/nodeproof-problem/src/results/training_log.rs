//! Training logs on file.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::header::{BudgetFields, SplitFields};
use super::lines::{LineReader, VERSION};
use super::{GraphHeader, Results, ResultsError, wrong_kind};
use crate::settings::TrainSettings;

/// A training log.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct TrainingLog {
    /// The graph.
    pub graph: GraphHeader,
    /// How it was trained: `ce`, `rce`, `rh` or `rh-u`.
    pub method: String,
    /// The worst-case margin that labelled nodes were trained to have.
    pub labelled_margin: f64,
    /// The same of unlabelled nodes.
    pub unlabelled_margin: f64,
    /// One record a step.
    pub steps: Vec<StepRecord>,
}

/// What a step of training looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Labelled nodes alone.
    Labelled,
    /// The worst-case margins of all nodes, labelled or not.
    All,
}

/// What one step of training came to. Losses and margins are those before it, accuracies those after it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepRecord {
    /// The step, counted from 1.
    pub step: usize,
    /// What it looked at.
    pub phase: Phase,
    /// The loss, without weight decay.
    pub loss: f64,
    /// The cross entropy of the labelled nodes, with dropout; `None` if it has no weight.
    pub cross_entropy: Option<f64>,
    /// The mean worst-case loss of the batch.
    pub robust_loss: Option<f64>,
    /// The mean worst-case margin of the batch's labelled nodes, or of a sample of all labelled nodes.
    pub labelled_margin: Option<f64>,
    /// The same of unlabelled nodes.
    pub unlabelled_margin: Option<f64>,
    /// The share of the batch whose worst-case margin is above 0.
    pub robust_share: Option<f64>,
    /// The loss on the validation part, without dropout, after the step, where it was computed.
    pub validation_loss: Option<f64>,
    /// The learning rate.
    pub learning_rate: f64,
    /// The norm of the gradient before it was clipped.
    pub gradient_norm: f64,
    /// Accuracy on labelled nodes, where it was computed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accuracy_labelled: Option<f64>,
    /// Accuracy on unlabelled nodes, where it was computed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accuracy_unlabelled: Option<f64>,
}

/// The first line of a training log.
#[derive(Debug, Serialize)]
pub struct TrainingLogHeader<'a> {
    format: &'static str,
    version: u64,
    nodeproof: &'static str,
    graph: GraphHeader,
    budget: BudgetFields,
    split: &'a SplitFields,
    options: &'a TrainSettings,
    log_margins: usize,
}

impl<'a> TrainingLogHeader<'a> {
    /// The header of a training on `graph` with this split, with the margins of so many nodes of each group in every step.
    pub fn new(graph: GraphHeader, split: &'a SplitFields, options: &'a TrainSettings, log_margins: usize) -> Self {
        Self {
            format: TrainingLog::FORMAT,
            version: VERSION,
            nodeproof: env!("CARGO_PKG_VERSION"),
            budget: BudgetFields::new(&options.budget, graph.attributes),
            graph,
            split,
            options,
            log_margins,
        }
    }
}

impl TrainingLog {
    /// The `format` of its header.
    pub const FORMAT: &'static str = "nodeproof-training-log";

    /// Reads the file at `path`, which must be a training log.
    ///
    /// # Errors
    /// As [`Results::read`], and if it is something else.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, ResultsError> {
        match Results::read(path.as_ref())? {
            Results::Training(log) => Ok(log),
            other => {
                Err(wrong_kind(path.as_ref(), &other, "steps of a training", "`nodeproof train --log` writes them"))
            }
        }
    }

    pub(super) fn read_lines(reader: &mut LineReader, header: serde_json::Value) -> Result<Self, ResultsError> {
        #[derive(Deserialize)]
        struct Options {
            method: String,
            labelled_margin: f64,
            unlabelled_margin: f64,
        }
        #[derive(Deserialize)]
        struct Header {
            graph: GraphHeader,
            options: Options,
        }
        let Header { graph, options } = serde_json::from_value(header).map_err(|error| reader.damaged(error))?;
        let Options { method, labelled_margin, unlabelled_margin } = options;
        let mut steps: Vec<StepRecord> = Vec::new();
        while let Some(step) = reader.record::<StepRecord>()? {
            if step.step != steps.len() + 1 {
                return Err(reader.damaged(format!("step {} does not come after step {}", step.step, steps.len())));
            }
            steps.push(step);
        }
        Ok(Self { graph, method, labelled_margin, unlabelled_margin, steps })
    }
}

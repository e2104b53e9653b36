//! What changes from step to step: with this, a run can be continued.

use nodeproof_problem::checkpoint::{Checkpoint, CheckpointError};
use nodeproof_problem::fingerprint::hex;
use nodeproof_problem::results::Phase;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::adam::Adam;
use crate::graph::{Graph, Part, Split};
use crate::model::Model;
use crate::settings::TrainSettings;

/// Weights, moments of the gradient, and how far training has come.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct State {
    pub(super) model: Model,
    pub(super) adam: Adam,
    /// The weights with the smallest validation loss of the phase.
    pub(super) best: Option<Model>,
    pub(super) progress: Progress,
}

/// How far training has come.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct Progress {
    /// Steps done.
    pub(super) step: usize,
    pub(super) phase: Phase,
    /// Whether nothing is left to do.
    pub(super) finished: bool,
    /// The smoothed training loss of this phase.
    pub(super) smoothed: Option<f64>,
    /// The smallest loss of this phase by which patience is counted, and when it was.
    pub(super) best_loss: Option<f64>,
    pub(super) best_step: usize,
}

/// A fingerprint of everything that a run depends on. The initial network stands for architecture, sizes, seed and
/// propagation.
pub(super) fn run_key(graph: &Graph, split: &Split, settings: &TrainSettings, initial: &Model) -> String {
    let mut hash = Sha256::new();
    hash.update(graph.fingerprint());
    hash.update(initial.fingerprint());
    for part in [Part::Train, Part::Validation] {
        let nodes = split.part(part);
        hash.update((nodes.len() as u64).to_le_bytes());
        nodes.iter().for_each(|node| hash.update(node.0.to_le_bytes()));
    }
    hash.update(serde_json::to_string(settings).expect("settings are plain numbers and names"));
    hex(&hash.finalize())
}

/// Names of the groups of numbers on file.
const GROUPS: [&str; 4] = ["model", "first", "second", "best"];

impl State {
    /// What is kept of the run with this fingerprint.
    pub(super) fn checkpoint(&self, run: String) -> Checkpoint {
        let copied = |tensors: &mut dyn Iterator<Item = &[f64]>| tensors.map(<[f64]>::to_vec).collect::<Vec<_>>();
        let mut groups = vec![
            copied(&mut self.model.tensors()),
            copied(&mut self.adam.first.tensors()),
            copied(&mut self.adam.second.tensors()),
        ];
        groups.extend(self.best.as_ref().map(|best| copied(&mut best.tensors())));
        let groups = GROUPS.map(str::to_owned).into_iter().zip(groups).collect();
        let progress = serde_json::to_string(&self.progress).expect("progress is plain numbers and names");
        Checkpoint { run, progress, groups }
    }

    /// The state of the same run that a checkpoint kept.
    pub(super) fn restored(&self, checkpoint: &Checkpoint) -> Result<Self, String> {
        let progress: Progress =
            serde_json::from_str(&checkpoint.progress).map_err(|error| format!("its progress: {error}"))?;
        if progress.best_step > progress.step {
            return Err(format!("its best step is {}, of {} steps", progress.best_step, progress.step));
        }
        let mut state = self.clone();
        fill(checkpoint, "model", state.model.tensors_mut())?;
        fill(checkpoint, "first", state.adam.first.tensors_mut())?;
        fill(checkpoint, "second", state.adam.second.tensors_mut())?;
        state.best = None;
        if checkpoint.group("best").is_some() {
            let mut best = state.model.clone();
            fill(checkpoint, "best", best.tensors_mut())?;
            state.best = Some(best);
        }
        state.adam.steps = u32::try_from(progress.step).unwrap_or(u32::MAX);
        state.progress = progress;
        Ok(state)
    }

    /// Reads the state of the run with this fingerprint.
    pub(super) fn read(&self, path: &std::path::Path, run: &str) -> Result<Self, CheckpointError> {
        let checkpoint = Checkpoint::read(path, run)?;
        let format = |problem| CheckpointError::Format { path: path.to_owned(), problem };
        self.restored(&checkpoint).map_err(format)
    }
}

/// Copies the tensors of a group into `numbers`.
fn fill<'a>(checkpoint: &Checkpoint, group: &str, numbers: impl Iterator<Item = &'a mut [f64]>) -> Result<(), String> {
    let mut tensors = checkpoint.group(group).unwrap_or_default().iter();
    for (i, values) in numbers.enumerate() {
        let found = tensors.next().ok_or_else(|| format!("tensor {group}.{i} is missing"))?;
        if found.len() != values.len() {
            return Err(format!("tensor {group}.{i} has {} numbers, not {}", found.len(), values.len()));
        }
        if found.iter().any(|value| !value.is_finite()) {
            return Err(format!("tensor {group}.{i} holds a number that is not finite"));
        }
        values.copy_from_slice(found);
    }
    Ok(())
}

//! Training on file, to be continued: weights, Adam's moments, the best weights so far and how far it has come.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use safetensors::SafeTensors;
use sha2::{Digest, Sha256};

use super::options::TrainOptions;
use super::trainer::{Progress, Trainer};
use crate::graph::{Graph, Part, Split, hex};
use crate::model::Model;
use crate::tensors::{self, Tensor, floats};

const FORMAT: &str = "nodeproof-checkpoint";
const VERSION: &str = "1";

/// Why training cannot be continued from a file, or not be written to one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// The file could not be read or written.
    #[error("cannot access {path}: {source}", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file is not a checkpoint.
    #[error(
        "{path} is not a checkpoint that nodeproof can read: {problem}; start anew without it", path = path.display()
    )]
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// The checkpoint is one of another run.
    #[error(
        "{path} is a checkpoint of a run with another graph, split or options; continue with those of that run, or start \
         anew without it", path = path.display()
    )]
    OtherRun {
        /// The file.
        path: PathBuf,
    },
}

/// A fingerprint of everything that a run depends on. The initial weights stand for sizes, seed and propagation.
pub(super) fn key(graph: &Graph, split: &Split, options: &TrainOptions, initial: &Model) -> String {
    let mut hash = Sha256::new();
    hash.update(graph.fingerprint());
    hash.update(initial.fingerprint());
    for part in [Part::Train, Part::Validation] {
        let nodes = split.part(part);
        hash.update((nodes.len() as u64).to_le_bytes());
        nodes.iter().for_each(|node| hash.update(node.0.to_le_bytes()));
    }
    hash.update(serde_json::to_string(options).expect("options are plain numbers and names"));
    hex(&hash.finalize())
}

/// Whether there is a checkpoint of some run at `path`.
pub fn is_checkpoint(path: impl AsRef<Path>) -> bool {
    let metadata = fs::read(path).ok().and_then(|bytes| Some(SafeTensors::read_metadata(&bytes).ok()?.1));
    let metadata = metadata.and_then(|metadata| metadata.metadata().clone()).unwrap_or_default();
    metadata.get("format").is_some_and(|format| format == FORMAT)
}

impl Trainer<'_> {
    /// Writes everything that is needed to go on later.
    ///
    /// # Errors
    /// If the file cannot be written; an existing one is then left as it was.
    pub fn write_checkpoint(&self, path: impl AsRef<Path>) -> Result<(), CheckpointError> {
        let path = path.as_ref();
        let state = &self.state;
        let mut tensors = Vec::new();
        let mut add = |group: &str, numbers: &mut dyn Iterator<Item = &[f64]>| {
            for (i, values) in numbers.enumerate() {
                tensors.push((format!("{group}.{i}"), Tensor::floats(vec![values.len()], values)));
            }
        };
        add("model", &mut state.model.tensors());
        add("first", &mut state.adam.first.tensors());
        add("second", &mut state.adam.second.tensors());
        if let Some(best) = &state.best {
            add("best", &mut best.tensors());
        }
        let progress = serde_json::to_string(&state.progress).map_err(std::io::Error::other);
        let written = progress.and_then(|progress| {
            let metadata = [
                ("format", FORMAT.to_owned()),
                ("version", VERSION.to_owned()),
                ("run", self.key.clone()),
                ("progress", progress),
            ];
            let metadata: HashMap<_, _> = metadata.map(|(key, value)| (key.to_owned(), value)).into();
            tensors::write(path, tensors, metadata)
        });
        written.map_err(|source| CheckpointError::Io { path: path.to_owned(), source })
    }

    /// Continues where the run that wrote `path` stood; the rest is the same to the last bit as if it had never stopped.
    ///
    /// # Errors
    /// If the file is unreadable, not a checkpoint, or one of a run with another graph, split or options.
    pub fn resume(&mut self, path: impl AsRef<Path>) -> Result<(), CheckpointError> {
        let path = path.as_ref();
        let bytes = fs::read(path).map_err(|source| CheckpointError::Io { path: path.to_owned(), source })?;
        let format = |problem: String| CheckpointError::Format { path: path.to_owned(), problem };
        let tensors = SafeTensors::deserialize(&bytes).map_err(|error| format(tensors::damaged(error)))?;
        let (_, metadata) = SafeTensors::read_metadata(&bytes).map_err(|error| format(tensors::damaged(error)))?;
        let metadata = metadata.metadata().clone().unwrap_or_default();
        let get = |key: &str| metadata.get(key).map(String::as_str).unwrap_or_default();
        if get("format") != FORMAT {
            return Err(format("its metadata do not say that it is one".to_owned()));
        }
        if get("version") != VERSION {
            return Err(format(format!("it has version {}, this nodeproof reads {VERSION}", get("version"))));
        }
        if get("run") != self.key {
            return Err(CheckpointError::OtherRun { path: path.to_owned() });
        }
        let progress: Progress =
            serde_json::from_str(get("progress")).map_err(|error| format(format!("its progress: {error}")))?;

        let mut state = self.state.clone();
        fill(&tensors, "model", state.model.tensors_mut()).map_err(format)?;
        fill(&tensors, "first", state.adam.first.tensors_mut()).map_err(format)?;
        fill(&tensors, "second", state.adam.second.tensors_mut()).map_err(format)?;
        state.best = None;
        if tensors.names().iter().any(|name| name.starts_with("best.")) {
            let mut best = state.model.clone();
            fill(&tensors, "best", best.tensors_mut()).map_err(format)?;
            state.best = Some(best);
        }
        state.adam.steps = u32::try_from(progress.step).unwrap_or(u32::MAX);
        state.progress = progress;
        self.state = state;
        Ok(())
    }
}

/// Reads the tensors of a group into `numbers`.
fn fill<'a>(tensors: &SafeTensors, group: &str, numbers: impl Iterator<Item = &'a mut [f64]>) -> Result<(), String> {
    for (i, values) in numbers.enumerate() {
        let name = format!("{group}.{i}");
        let (_, found) = floats(tensors, &name)?;
        if found.len() != values.len() {
            return Err(format!("tensor {name} has {} numbers, not {}", found.len(), values.len()));
        }
        if found.iter().any(|value| !value.is_finite()) {
            return Err(format!("tensor {name} holds a number that is not finite"));
        }
        values.copy_from_slice(&found);
    }
    Ok(())
}

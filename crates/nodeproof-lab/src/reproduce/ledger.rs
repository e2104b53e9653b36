//! Which steps are done, on file so that a run can continue where an earlier one stopped.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use nodeproof::files::{Destination, Lock, replace};
use serde::{Deserialize, Serialize};

use super::plan::Step;
use crate::LabError;

/// What is kept of a step that is done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Entry {
    title: String,
    /// The command that gives the same files.
    command: String,
    graph: String,
    nodeproof: String,
    seconds: f64,
    pub(super) cpu_seconds: f64,
}

/// The steps that are done, and the right to do more of them in this folder.
#[derive(Debug)]
pub(super) struct Ledger {
    path: PathBuf,
    entries: Vec<Entry>,
    _lock: Lock,
}

impl Ledger {
    /// Reads what is done in `folder`; a line that was cut off does not count.
    ///
    /// # Errors
    /// If the file is there, but cannot be read; and if another run is at work there.
    pub(super) fn open(folder: &Path) -> Result<Self, LabError> {
        let path = folder.join("steps.jsonl");
        let lock = Lock::of_output(&path)?;
        let text = match fs::read(&path) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(source) => return Err(LabError::Steps { path, source }),
        };
        let entries = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        Ok(Self { path, entries, _lock: lock })
    }

    /// The entry of `step`, if it is done and its files are still there.
    pub(super) fn entry(&self, step: &Step, folder: &Path) -> Option<&Entry> {
        let command = step.command(folder);
        // What was run last is what the files are of.
        let last = self.entries.iter().rev().find(|entry| entry.command == command)?;
        let current = last.graph == step.network.source.fingerprint && last.nodeproof == env!("CARGO_PKG_VERSION");
        (current && step.outputs(folder).iter().all(|path| path.is_file())).then_some(last)
    }

    /// Notes that `step` is done.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(super) fn add(&mut self, step: &Step, folder: &Path, seconds: f64, cpu_seconds: f64) -> Result<(), LabError> {
        self.entries.push(Entry {
            title: step.title(),
            command: step.command(folder),
            graph: step.network.source.fingerprint.clone(),
            nodeproof: env!("CARGO_PKG_VERSION").to_owned(),
            seconds,
            cpu_seconds,
        });
        let mut lines = Vec::new();
        let written = self
            .entries
            .iter()
            .try_for_each(|entry| {
                serde_json::to_writer(&mut lines, entry)?;
                lines.write_all(b"\n")
            })
            .and_then(|()| replace(&self.path, |file| file.write_all(&lines)));
        written.map_err(|error| Destination::of(&self.path).failure(error).into())
    }
}

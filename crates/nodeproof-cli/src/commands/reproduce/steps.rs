//! Doing one step after the other, and knowing which are done.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, anyhow, bail};
use cpu_time::ProcessTime;
use nodeproof::Graph;
use serde::{Deserialize, Serialize};

use super::plan::Step;
use crate::cli::Command;
use crate::commands::{radius, train};
use crate::terminal;

/// What is kept of a step that is done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Entry {
    pub(super) title: String,
    /// What was run: the same again gives the same files.
    command: String,
    graph: String,
    nodeproof: String,
    pub(super) seconds: f64,
    pub(super) cpu_seconds: f64,
}

/// The steps that are done, on file so that a run can go on where an earlier one stopped.
#[derive(Debug)]
pub(super) struct Ledger {
    path: PathBuf,
    entries: Vec<Entry>,
}

impl Ledger {
    /// Reads what is done in `folder`; a line that was cut off is none.
    ///
    /// # Errors
    /// If the file is there, but cannot be read.
    pub(super) fn read(folder: &Path) -> anyhow::Result<Self> {
        let path = folder.join("steps.jsonl");
        let text = match fs::read(&path) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => bail!("cannot read {}: {error}; choose another folder with --out", path.display()),
        };
        let entries = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        Ok(Self { path, entries })
    }

    /// The entry of `step` on the graph with this fingerprint, if it is done and its files are still there.
    pub(super) fn entry(&self, step: &Step, graph: &str) -> Option<&Entry> {
        let command = step.line.shown("", usize::MAX);
        // What was run last is what the files are of.
        let last = self.entries.iter().rev().find(|entry| entry.command == command)?;
        let current = last.graph == graph && last.nodeproof == env!("CARGO_PKG_VERSION");
        (current && step.outputs.iter().all(|path| path.is_file())).then_some(last)
    }

    fn add(&mut self, entry: Entry) -> anyhow::Result<()> {
        let line = serde_json::to_string(&entry)? + "\n";
        let written = OpenOptions::new().append(true).create(true).open(&self.path);
        let written = written.and_then(|mut file| file.write_all(line.as_bytes()));
        written.map_err(|error| anyhow!("cannot write {}: {error}; make room there", self.path.display()))?;
        self.entries.push(entry);
        Ok(())
    }
}

/// How steps are done; results do not depend on it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Manner {
    pub(super) threads: usize,
    pub(super) quiet: bool,
}

/// Graphs by the file they were read from.
pub(super) type Graphs = BTreeMap<PathBuf, Graph>;

/// Does all steps that are not done yet; `false` if the user stopped it.
///
/// # Errors
/// If a step fails.
pub(super) fn run(steps: &[Step], graphs: &Graphs, ledger: &mut Ledger, manner: Manner) -> anyhow::Result<bool> {
    let start = Instant::now();
    for (number, step) in steps.iter().enumerate() {
        let graph = &graphs[&step.source.file];
        let fingerprint = graph.fingerprint();
        if ledger.entry(step, &fingerprint).is_some() {
            continue;
        }
        if !manner.quiet {
            let (clock, width) = (clock(start.elapsed().as_secs()), steps.len().to_string().len());
            terminal::print(&format!("{clock}  {:>width$}/{}  {}\n", number + 1, steps.len(), step.title))?;
        }
        let (start, cpu) = (Instant::now(), ProcessTime::now());
        for folder in step.outputs.iter().filter_map(|path| path.parent()) {
            fs::create_dir_all(folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
        }
        if !perform(step, &fingerprint, manner).with_context(|| step.title.clone())? {
            return Ok(false);
        }
        ledger.add(Entry {
            title: step.title.clone(),
            command: step.line.shown("", usize::MAX),
            graph: fingerprint,
            nodeproof: env!("CARGO_PKG_VERSION").to_owned(),
            seconds: start.elapsed().as_secs_f64(),
            cpu_seconds: cpu.elapsed().as_secs_f64(),
        })?;
    }
    Ok(true)
}

/// Minutes and seconds.
fn clock(seconds: u64) -> String {
    format!("{:>3}:{:02}", seconds / 60, seconds % 60)
}

/// Does one step; `false` if the user stopped it.
fn perform(step: &Step, graph: &str, manner: Manner) -> anyhow::Result<bool> {
    // Bars are for terminals; what commands say elsewhere would drown the list of steps.
    let quiet = manner.quiet || !io::stderr().is_terminal();
    let mut line = step.line.clone().with("--threads", manner.threads.to_string());
    if quiet {
        line = line.word("--quiet");
    }
    let checkpoint = step.checkpoint.as_ref().map(|path| path.with_extension(format!("{graph:.12}.checkpoint")));
    let mut resumes = false;
    if let Some(path) = &checkpoint {
        line = line.with("--checkpoint", path);
        // A log is continued with its training.
        resumes = path.exists() && step.outputs.iter().skip(1).all(|log| log.exists());
        if resumes {
            line = line.word("--resume");
        } else if path.exists() {
            remove(path)?;
        }
    }
    if !resumes {
        // Should this be stopped, nobody must take what an earlier run left for its results.
        step.outputs.iter().filter(|path| path.exists()).try_for_each(|path| remove(path))?;
    }
    let finished = match line.parse()? {
        Command::Train(arguments) => train::train(&arguments)?.is_some(),
        Command::Radius(arguments) => radius::find(&arguments)?.is_some(),
        _ => bail!("there is no such step"),
    };
    if let Some(path) = checkpoint.filter(|path| finished && path.exists()) {
        remove(&path)?;
    }
    Ok(finished)
}

fn remove(path: &Path) -> anyhow::Result<()> {
    fs::remove_file(path).with_context(|| format!("cannot remove {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_told_in_minutes_and_seconds() {
        assert_eq!([0, 61, 6000].map(clock), ["  0:00", "  1:01", "100:00"]);
    }
}

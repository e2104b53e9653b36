//! The log of a run: JSON Lines, a header and one line a step, without anything that differs from run to run.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{anyhow, bail};
use nodeproof::Graph;
use nodeproof::train::{StepReport, TrainOptions};
use nodeproof_report::results::GraphHeader;
use serde::Serialize;

use super::plan::{Plan, SplitFacts};
use crate::budget::CheckedBudget;
use crate::export::{Destination, Opened, open_all};

const FORMAT: &str = "nodeproof-training-log";
const VERSION: u32 = 1;

/// What a log is about.
#[derive(Debug, Serialize)]
pub(super) struct Header<'a> {
    format: &'static str,
    version: u32,
    nodeproof: &'static str,
    graph: GraphHeader,
    budget: &'a CheckedBudget,
    split: &'a SplitFacts,
    options: &'a TrainOptions,
    log_margins: usize,
}

impl<'a> Header<'a> {
    /// The header of a run.
    pub(super) fn new(graph: &Graph, plan: &'a Plan, log_margins: usize) -> Self {
        Self {
            format: FORMAT,
            version: VERSION,
            nodeproof: env!("CARGO_PKG_VERSION"),
            graph: GraphHeader::new(graph),
            budget: &plan.budget,
            split: &plan.split_facts,
            options: &plan.options,
            log_margins,
        }
    }
}

/// Accuracy on labelled and on unlabelled nodes after a step.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(super) struct Accuracies {
    #[serde(rename = "accuracy_labelled")]
    pub(super) labelled: Option<f64>,
    #[serde(rename = "accuracy_unlabelled")]
    pub(super) unlabelled: Option<f64>,
}

#[derive(Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    report: &'a StepReport,
    #[serde(flatten)]
    accuracies: Option<Accuracies>,
}

/// A log that is being written.
pub(super) struct Log {
    writer: BufWriter<Opened>,
    path: PathBuf,
}

impl Log {
    /// Begins a log or, where `steps` steps are done already, cuts it back to these.
    ///
    /// # Errors
    /// If the file cannot be written, or is not the log of these steps.
    pub(super) fn open(path: &Path, header: &Header, steps: usize) -> anyhow::Result<Self> {
        let header = serde_json::to_string(header)? + "\n";
        let kept = if steps == 0 { 0 } else { length_of(path, &header, steps)? };
        let place = Destination::File(path.to_owned());
        let opened = open_all(&[(place, kept)])?.pop().ok_or_else(|| anyhow!("cannot open {}", path.display()))?;
        let mut log = Self { writer: BufWriter::new(opened), path: path.to_owned() };
        if kept == 0 {
            log.write(|writer| writer.write_all(header.as_bytes()).and_then(|()| writer.flush()))?;
        }
        Ok(log)
    }

    /// Writes what a step came to.
    pub(super) fn step(&mut self, report: &StepReport, accuracies: Option<Accuracies>) -> anyhow::Result<()> {
        let line = serde_json::to_string(&Line { report, accuracies })?;
        self.write(|writer| writeln!(writer, "{line}"))
    }

    /// Hands everything to the system.
    pub(super) fn flush(&mut self) -> anyhow::Result<()> {
        self.write(Write::flush)
    }

    fn write(&mut self, write: impl FnOnce(&mut BufWriter<Opened>) -> io::Result<()>) -> anyhow::Result<()> {
        write(&mut self.writer).map_err(|error| {
            anyhow!("cannot write {}: {error}; make room there or choose another place", self.path.display())
        })
    }
}

/// Bytes of the header and the first `steps` steps.
fn length_of(path: &Path, header: &str, steps: usize) -> anyhow::Result<u64> {
    let path_shown = path.display();
    let cannot_read = |error: io::Error| {
        anyhow!("cannot continue the log {path_shown}: {error}; give the log of this run, or begin without --resume")
    };
    let mut lines = BufReader::new(File::open(path).map_err(cannot_read)?);
    let mut line = String::new();
    lines.read_line(&mut line).map_err(cannot_read)?;
    if line != header {
        bail!("{path_shown} is not the log of this run; give the one that is, or begin without --resume");
    }
    let mut length = line.len() as u64;
    for done in 0..steps {
        line.clear();
        lines.read_line(&mut line).map_err(cannot_read)?;
        if !line.ends_with('\n') {
            bail!(
                "the log {path_shown} ends after step {done}, but the checkpoint is one after step {steps}; begin \
                 without --resume, or go on without --log"
            );
        }
        length += line.len() as u64;
    }
    Ok(length)
}

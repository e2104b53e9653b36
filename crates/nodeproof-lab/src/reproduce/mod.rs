//! The paper's experiments (Zügner and Günnemann, KDD 2019), with its numbers beside ours.
//!
//! [`run`] trains the networks of the paper on its data sets, as far as they are there, finds their radii, draws its figures,
//! and writes a summary. Each step leaves its files and a line in `steps.jsonl`; a run that was stopped continues where it was
//! when the same one is started again, also in the middle of a training or of a search for radii.

mod figures;
mod findings;
mod ledger;
pub mod paper;
mod plan;
mod radii;
mod steps;
mod summary;
mod training;

use std::fmt;
use std::fs;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nodeproof::files::{Destination, replace};
use nodeproof::{Finish, Graph};
use nodeproof_report::text;
use serde::Serialize;

use crate::LabError;
pub use figures::Drawn;
pub use findings::{Mean, Outcome, Slopes};
use ledger::Ledger;
use plan::{Plan, Source};
pub use summary::{Findings, Summary};

/// What is reproduced, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The folder with cora_ml.npz, citeseer.npz and pubmed.npz, or some of them.
    pub data: PathBuf,
    /// The folder for summary, tables, figures, networks and radii; what an earlier run did there is kept.
    pub out: PathBuf,
    /// Splits to take the mean of; the paper has [`paper::SPLITS`].
    pub splits: u64,
    /// Threads to use; 0 takes as many as there are cores. Results do not depend on it.
    pub threads: usize,
}

/// Progress of [`run`]; the observer may break off.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'e> {
    /// A graph has the name of one of the paper's, but not its size.
    OtherGraph {
        /// The file.
        file: &'e Path,
        /// Its nodes.
        nodes: usize,
        /// The nodes of the paper's graph.
        expected: usize,
    },
    /// What there is to do.
    Planned(&'e Outline),
    /// A step begins.
    Step(&'e Started),
    /// So much of a step is done.
    Progress {
        /// What is counted, such as “steps of training”.
        doing: &'e str,
        /// How many are done.
        done: usize,
        /// How many there are.
        total: usize,
    },
    /// All steps are done, and figures are drawn.
    Drawing,
}

/// Who observes.
type Observer<'o> = &'o mut dyn FnMut(Event<'_>) -> ControlFlow<()>;

/// What there is to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Outline {
    /// Titles of the data sets that are there.
    pub data: Vec<&'static str>,
    /// Titles of those that are not.
    pub missing: Vec<&'static str>,
    /// Splits of each.
    pub splits: u64,
    /// Steps in total.
    pub steps: usize,
    /// Steps that an earlier run has done.
    pub done: usize,
}

impl Outline {
    /// In lines of at most `width` characters where they can be broken.
    pub fn in_words(&self, width: usize) -> String {
        let mut facts = vec![("data", self.data.join(", "))];
        if !self.missing.is_empty() {
            facts.push(("missing", self.missing.join(", ")));
        }
        facts.push(("splits", self.splits.to_string()));
        let before = if self.done > 0 { format!(", {} done before", self.done) } else { String::new() };
        facts.push(("steps", format!("{}{before}", self.steps)));
        text::facts(&facts, width)
    }
}

/// A step that begins; shown as `  1:05   7/23  Cora-ML, split 0, RH-U: train`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Started {
    /// Its number, counted from 1.
    pub number: usize,
    /// Steps in total.
    pub steps: usize,
    /// What is done.
    pub title: String,
    /// The time since the run began.
    pub elapsed: Duration,
}

impl fmt::Display for Started {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, width) = (self.elapsed.as_secs(), self.steps.to_string().len());
        let clock = format!("{:>3}:{:02}", seconds / 60, seconds % 60);
        write!(f, "{clock}  {:>width$}/{}  {}", self.number, self.steps, self.title)
    }
}

/// Does everything that was not done before, and writes the summary; `None` if the observer broke off.
///
/// # Errors
/// If there is no data set, a file cannot be read or written, or a training diverges.
pub fn run(
    settings: &Settings,
    mut observe: impl FnMut(Event<'_>) -> ControlFlow<()>,
) -> Result<Option<Summary>, LabError> {
    let observe: Observer = &mut observe;
    let (sources, missing) = sources(&settings.data)?;
    let folder = &settings.out;
    fs::create_dir_all(folder.join("figures")).map_err(|source| LabError::Folder { path: folder.clone(), source })?;
    let mut ledger = Ledger::open(folder)?;
    for source in &sources {
        let (file, nodes, expected) = (source.file.as_path(), source.graph.nodes(), source.data.sizes[0]);
        if nodes != expected && observe(Event::OtherGraph { file, nodes, expected }).is_break() {
            return Ok(None);
        }
    }
    let plan = Plan { sources: &sources, splits: settings.splits.max(1), folder, threads: settings.threads };
    let steps = plan.steps();
    let outline = Outline {
        data: sources.iter().map(|source| source.data.title).collect(),
        missing,
        splits: plan.splits,
        steps: steps.len(),
        done: steps.iter().filter(|step| ledger.entry(step, folder).is_some()).count(),
    };
    if observe(Event::Planned(&outline)).is_break()
        || steps::run(&plan, &steps, &mut ledger, observe)? == Finish::Cancelled
        || observe(Event::Drawing).is_break()
    {
        return Ok(None);
    }
    let Some(figures) = figures::draw(&plan, observe)? else { return Ok(None) };
    let summary = Summary {
        findings: sources.iter().map(|source| plan.find(source)).collect::<Result<_, _>>()?,
        missing: outline.missing,
        splits: plan.splits,
        figures,
        machine: summary::machine(settings.threads),
        cpu_seconds: steps.iter().filter_map(|step| Some(ledger.entry(step, folder)?.cpu_seconds)).sum(),
        file: folder.join("README.md"),
    };
    write(&summary.file, summary.markdown())?;
    write(&folder.join("table1.csv"), summary.csv())?;
    Ok(Some(summary))
}

/// The data sets that are in `folder`, and titles of those that are not.
fn sources(folder: &Path) -> Result<(Vec<Source>, Vec<&'static str>), LabError> {
    if folder.is_file() {
        return Err(LabError::NotAFolder { path: folder.to_owned() });
    }
    let (mut sources, mut missing) = (Vec::new(), Vec::new());
    for data in paper::DATA_SETS {
        let file = folder.join(format!("{}.npz", data.stem));
        if !file.is_file() {
            missing.push(data.title);
            continue;
        }
        let read = Graph::read(&file, data.options());
        let (graph, _) = read.map_err(|source| LabError::Graph { path: file.clone(), source })?;
        let fingerprint = graph.fingerprint();
        sources.push(Source { data, file, graph, fingerprint });
    }
    if sources.is_empty() {
        return Err(LabError::NoData { folder: folder.to_owned() });
    }
    Ok((sources, missing))
}

/// Makes `content` that of the file at `path`.
fn write(path: &Path, content: impl AsRef<[u8]>) -> Result<(), LabError> {
    let written = replace(path, |file| file.write_all(content.as_ref()));
    written.map_err(|error| Destination::of(path).failure(error).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_told_in_minutes_and_seconds() {
        let shown = |seconds| {
            let elapsed = Duration::from_secs(seconds);
            Started { number: 7, steps: 23, title: "train".to_owned(), elapsed }.to_string()
        };
        assert_eq!([0, 61, 6000].map(shown), ["  0:00   7/23  train", "  1:01   7/23  train", "100:00   7/23  train"]);
    }

    #[test]
    fn without_data_nothing_is_made() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("out");
        let problem = |data: &Path| {
            let settings = Settings { data: data.to_owned(), out: out.clone(), splits: 1, threads: 1 };
            run(&settings, |_| ControlFlow::Continue(())).unwrap_err().to_string()
        };
        assert!(problem(folder.path()).contains("there is none of cora_ml.npz"));
        let file = folder.path().join("cora_ml.npz");
        fs::write(&file, "no graph").unwrap();
        assert!(problem(folder.path()).contains("cora_ml.npz"));
        assert!(problem(&file).contains("give the folder that it is in"));
        assert!(!out.exists());
    }
}

//! What there is to do, in order, and where its files are.

use std::path::{Path, PathBuf};

use super::paper::{BUDGET, DataSet, METHODS, Method, OTHER_BUDGETS, ROBUST, STANDARD};
use crate::commands::line::Line;

/// The largest global budget for which radii are looked for. On Cora-ML and Citeseer few nodes withstand more; on PubMed
/// many withstand whatever the local budgets admit.
pub(super) const MAX_BUDGET: u32 = 200;
/// The same where engines go further, which takes longest where nodes withstand most.
pub(super) const MAX_BUDGET_BEYOND: u32 = 40;
/// Seconds that the truth about a node under one budget may take.
const TIME_LIMIT: u32 = 2;
/// Nodes of each group whose margins are logged while training.
const LOG_MARGINS: u32 = 40;

/// A data set that is there.
#[derive(Debug, Clone)]
pub(super) struct Source {
    pub(super) data: DataSet,
    pub(super) file: PathBuf,
}

impl Source {
    /// `line`, about this graph.
    pub(super) fn graph(&self, line: Line) -> Line {
        self.data.flags.iter().fold(line.with("--graph", &self.file), |line, flag| line.word(*flag))
    }
}

/// A network that is trained.
#[derive(Debug, Clone)]
pub(super) struct Network<'a> {
    pub(super) source: &'a Source,
    pub(super) split: u64,
    pub(super) method: Method,
    pub(super) budget: u32,
}

impl Network<'_> {
    /// The file with this ending.
    fn file(&self, folder: &Path, ending: &str) -> PathBuf {
        let budget = if self.budget == BUDGET { String::new() } else { format!("-{}", self.budget) };
        let name = format!("{}{budget}{ending}", self.method.option);
        folder.join("runs").join(self.source.data.stem).join(self.split.to_string()).join(name)
    }

    pub(super) fn model(&self, folder: &Path) -> PathBuf {
        self.file(folder, ".safetensors")
    }

    pub(super) fn log(&self, folder: &Path) -> PathBuf {
        self.file(folder, "-training.jsonl")
    }

    pub(super) fn radii(&self, folder: &Path, engine: &str) -> PathBuf {
        self.file(folder, &format!("-radii-{engine}.jsonl"))
    }

    fn title(&self) -> String {
        let budget = if self.budget == BUDGET { String::new() } else { format!(", Q = {}", self.budget) };
        format!("{}, split {}, {}{budget}", self.source.data.title, self.split, self.method.name)
    }
}

/// A command to run, after which its files are there.
#[derive(Debug, Clone)]
pub(super) struct Step<'a> {
    pub(super) source: &'a Source,
    pub(super) title: String,
    pub(super) line: Line,
    pub(super) outputs: Vec<PathBuf>,
    /// Where a training that is stopped is kept.
    pub(super) checkpoint: Option<PathBuf>,
}

/// Everything to do, and where.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plan<'a> {
    pub(super) sources: &'a [Source],
    pub(super) splits: u64,
    pub(super) folder: &'a Path,
}

impl<'a> Plan<'a> {
    /// The data set that figures of a single one are about.
    pub(super) fn main(&self) -> Option<&'a Source> {
        self.sources.first()
    }

    /// The network of a way of training against the paper's budget.
    pub(super) fn network(&self, source: &'a Source, split: u64, method: Method) -> Network<'a> {
        Network { source, split, method, budget: BUDGET }
    }

    /// Networks of the main data set that are trained against other budgets.
    pub(super) fn other_budgets(&self) -> Vec<Network<'a>> {
        let of = |source| OTHER_BUDGETS.map(|budget| Network { source, split: 0, method: ROBUST, budget });
        self.main().map(of).into_iter().flatten().collect()
    }

    /// All steps: first what one split takes, so that there is something to see soon.
    pub(super) fn steps(&self) -> Vec<Step<'a>> {
        let mut steps = Vec::new();
        for split in 0..self.splits {
            for source in self.sources {
                for method in METHODS {
                    steps.extend(self.train_and_search(&self.network(source, split, method)));
                }
            }
            if split == 0 {
                steps.extend(self.once());
            }
        }
        steps
    }

    /// What is done for the first split alone.
    fn once(&self) -> Vec<Step<'a>> {
        let mut steps: Vec<Step> = Vec::new();
        for source in self.sources {
            steps.push(self.search(&self.network(source, 0, STANDARD), "tight", MAX_BUDGET_BEYOND));
        }
        for network in self.other_budgets() {
            steps.extend(self.train_and_search(&network));
        }
        if let Some(source) = self.main() {
            let standard = self.network(source, 0, STANDARD);
            steps.push(self.search(&standard, "complete", MAX_BUDGET_BEYOND));
        }
        steps
    }

    fn train_and_search(&self, network: &Network<'a>) -> [Step<'a>; 2] {
        [self.train(network), self.search(network, "fast", MAX_BUDGET)]
    }

    fn train(&self, network: &Network<'a>) -> Step<'a> {
        let Network { source, split, method, budget } = network;
        let (model, split) = (network.model(self.folder), split.to_string());
        let mut line = source
            .graph(Line::new("train"))
            .with("--method", method.option)
            .with("--global-budget", budget.to_string())
            .with("--split-seed", &split)
            .with("--seed", &split)
            .with("--out", &model);
        let mut outputs = vec![model];
        let checkpoint = Some(network.file(self.folder, ".checkpoint"));
        if self.is_logged(network) {
            let log = network.log(self.folder);
            line = line.with("--log", &log).with("--log-margins", LOG_MARGINS.to_string());
            outputs.push(log);
        }
        Step { source, title: format!("{}: train", network.title()), line, outputs, checkpoint }
    }

    /// Whether the training of `network` is shown step by step.
    fn is_logged(&self, network: &Network) -> bool {
        let main = self.main().is_some_and(|main| main.data == network.source.data);
        main && network.split == 0 && network.budget == BUDGET && [STANDARD, ROBUST].contains(&network.method)
    }

    fn search(&self, network: &Network<'a>, engine: &'static str, most: u32) -> Step<'a> {
        let (source, out) = (network.source, network.radii(self.folder, engine));
        let line = source
            .graph(Line::new("radius"))
            .with("--model", network.model(self.folder))
            .with("--engine", engine)
            .with("--time-limit", TIME_LIMIT.to_string())
            .with("--max-budget", most.to_string())
            .with("--out", &out);
        let title = format!("{}: radii, engine {engine}", network.title());
        Step { source, title, line, outputs: vec![out], checkpoint: None }
    }
}

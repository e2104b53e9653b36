//! What there is to do, in order, and where its files are.

use std::path::{Path, PathBuf};

use nodeproof::{Engine, Graph, Method};
use nodeproof_report::text;

use super::paper::{self, BUDGET, DataSet, OTHER_BUDGETS, ROBUST, STANDARD};

/// The largest global budget for which radii are looked for. On Cora-ML and Citeseer few nodes withstand more; on PubMed
/// many withstand whatever the local budgets admit.
pub(super) const MAX_BUDGET: u32 = 200;
/// The same where engines go further, which takes longest where nodes withstand most.
pub(super) const MAX_BUDGET_BEYOND: u32 = 40;
/// Seconds that a verdict on a node may take.
pub(super) const TIME_LIMIT: u32 = 2;
/// Nodes of each group whose margins are logged while training.
pub(super) const LOG_MARGINS: usize = 40;

/// A data set that is there.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) data: DataSet,
    pub(super) file: PathBuf,
    pub(super) graph: Graph,
    /// [`Graph::fingerprint`].
    pub(super) fingerprint: String,
}

/// A network that is trained.
#[derive(Debug, Clone, Copy)]
pub(super) struct Network<'a> {
    pub(super) source: &'a Source,
    pub(super) split: u64,
    pub(super) method: Method,
    /// The global budget that it is trained against.
    pub(super) budget: u32,
}

impl Network<'_> {
    /// The file with this ending.
    fn file(&self, folder: &Path, ending: &str) -> PathBuf {
        let budget = if self.budget == BUDGET { String::new() } else { format!("-{}", self.budget) };
        let name = format!("{}{budget}{ending}", self.method.name());
        folder.join("runs").join(self.source.data.stem).join(self.split.to_string()).join(name)
    }

    pub(super) fn model(&self, folder: &Path) -> PathBuf {
        self.file(folder, ".safetensors")
    }

    pub(super) fn log(&self, folder: &Path) -> PathBuf {
        self.file(folder, "-training.jsonl")
    }

    /// Where a training that is stopped is kept.
    pub(super) fn checkpoint(&self, folder: &Path) -> PathBuf {
        self.file(folder, ".checkpoint")
    }

    pub(super) fn radii(&self, folder: &Path, engine: Engine) -> PathBuf {
        self.file(folder, &format!("-radii-{}.jsonl", engine.name()))
    }

    fn title(&self) -> String {
        let budget = if self.budget == BUDGET { String::new() } else { format!(", Q = {}", self.budget) };
        format!("{}, split {}, {}{budget}", self.source.data.title, self.split, paper::name(self.method))
    }
}

/// What is done with a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Task {
    /// It is trained, and every step logged or not.
    Train { logged: bool },
    /// Its radii are found, up to the global budget `most`.
    Search { engine: Engine, most: u32 },
}

/// A step, after which its files are there.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step<'a> {
    pub(super) network: Network<'a>,
    pub(super) task: Task,
}

impl Step<'_> {
    pub(super) fn title(&self) -> String {
        let network = self.network.title();
        match self.task {
            Task::Train { .. } => format!("{network}: train"),
            Task::Search { engine, .. } => format!("{network}: radii, {} engine", engine.name()),
        }
    }

    /// The files that it writes.
    pub(super) fn outputs(&self, folder: &Path) -> Vec<PathBuf> {
        let network = &self.network;
        match self.task {
            Task::Train { logged: false } => vec![network.model(folder)],
            Task::Train { logged: true } => vec![network.model(folder), network.log(folder)],
            Task::Search { engine, .. } => vec![network.radii(folder, engine)],
        }
    }

    /// The command that writes the same files: what a reader can run to check the step.
    pub(super) fn command(&self, folder: &Path) -> String {
        let Network { source, split, method, budget } = self.network;
        let path = |path: &Path| path.to_string_lossy().into_owned();
        let mut words: Vec<String> = Vec::new();
        let mut add = |option: &str, value: String| words.extend([option.to_owned(), value]);
        match self.task {
            Task::Train { logged } => {
                add("--method", method.name().to_owned());
                add("--global-budget", budget.to_string());
                add("--split-seed", split.to_string());
                add("--seed", split.to_string());
                add("--out", path(&self.network.model(folder)));
                if logged {
                    add("--log", path(&self.network.log(folder)));
                    add("--log-margins", LOG_MARGINS.to_string());
                }
            }
            Task::Search { engine, most } => {
                add("--model", path(&self.network.model(folder)));
                add("--engine", engine.name().to_owned());
                add("--time-limit", TIME_LIMIT.to_string());
                add("--max-budget", most.to_string());
                add("--out", path(&self.network.radii(folder, engine)));
            }
        }
        let command = if matches!(self.task, Task::Train { .. }) { "train" } else { "radius" };
        let graph = ["nodeproof", command, "--graph"].map(str::to_owned).into_iter().chain([path(&source.file)]);
        let flags = source.data.flags().iter().map(|&flag| flag.to_owned());
        graph.chain(flags).chain(words).map(|word| text::quoted(&word)).collect::<Vec<_>>().join(" ")
    }
}

/// Everything to do, and where.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plan<'a> {
    pub(super) sources: &'a [Source],
    pub(super) splits: u64,
    pub(super) folder: &'a Path,
    /// Threads to use; results do not depend on it.
    pub(super) threads: usize,
}

impl<'a> Plan<'a> {
    /// The data set that figures of a single one are about.
    pub(super) fn main(&self) -> Option<&'a Source> {
        self.sources.first()
    }

    /// The network of a method of training against the paper's budget.
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
                for method in Method::ALL {
                    steps.extend(self.train_and_search(self.network(source, split, method)));
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
        let beyond = |source, engine| Step {
            network: self.network(source, 0, STANDARD),
            task: Task::Search { engine, most: MAX_BUDGET_BEYOND },
        };
        let mut steps: Vec<Step> = self.sources.iter().map(|source| beyond(source, Engine::Tight)).collect();
        for network in self.other_budgets() {
            steps.extend(self.train_and_search(network));
        }
        steps.extend(self.main().map(|source| beyond(source, Engine::Complete)));
        steps
    }

    fn train_and_search(&self, network: Network<'a>) -> [Step<'a>; 2] {
        let train = Task::Train { logged: self.is_logged(&network) };
        [train, Task::Search { engine: Engine::Fast, most: MAX_BUDGET }].map(|task| Step { network, task })
    }

    /// Whether the training of `network` is shown step by step.
    fn is_logged(&self, network: &Network) -> bool {
        let main = self.main().is_some_and(|main| main.data == network.source.data);
        main && network.split == 0 && network.budget == BUDGET && [STANDARD, ROBUST].contains(&network.method)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_shown_as_they_are_typed() {
        let graph = Graph::new(1, 1, &[], &[]).unwrap();
        let source =
            |data, file: &str| Source { data, file: file.into(), graph: graph.clone(), fingerprint: String::new() };
        let sources = [source(paper::DATA_SETS[0], "my data/cora_ml.npz"), source(paper::DATA_SETS[1], "citeseer.npz")];
        let plan = Plan { sources: &sources, splits: 5, folder: Path::new("out"), threads: 0 };
        let steps = plan.steps();
        assert_eq!(steps.len(), 2 * 4 * 2 * 5 + 2 + 2 * 2 + 1);
        assert_eq!(
            steps[0].command(plan.folder),
            "nodeproof train --graph 'my data/cora_ml.npz' --binarise --method ce --global-budget 12 --split-seed 0 --seed 0 \
             --out out/runs/cora_ml/0/ce.safetensors --log out/runs/cora_ml/0/ce-training.jsonl --log-margins 40"
        );
        assert_eq!(
            steps[11].command(plan.folder),
            "nodeproof radius --graph citeseer.npz --binarise --keep-self-loops --model out/runs/citeseer/0/rce.safetensors \
             --engine fast --time-limit 2 --max-budget 200 --out out/runs/citeseer/0/rce-radii-fast.jsonl"
        );
        assert_eq!(steps[11].title(), "Citeseer, split 0, RCE: radii, fast engine");
    }
}

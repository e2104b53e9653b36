//! What each run trains on, and against what.

use anyhow::bail;
use nodeproof::train::TrainOptions;
use nodeproof::{Graph, Part, Split, SplitSize};
use serde::Serialize;

use super::files::RunFiles;
use crate::budget::CheckedBudget;
use crate::cli::TrainArguments;
use crate::commands::data;
use crate::{inputs, terminal};

/// One run.
pub(super) struct Plan {
    pub(super) split: Split,
    pub(super) split_facts: SplitFacts,
    pub(super) budget: CheckedBudget,
    pub(super) options: TrainOptions,
    pub(super) files: RunFiles,
}

impl Plan {
    /// Notes what is allowed but hardly meant.
    fn oddities(&self) -> Vec<String> {
        let (method, steps) = (self.options.method, self.options.all_steps());
        let mut oddities = Vec::new();
        if method.is_robust() && self.options.warm_up > steps {
            oddities.push(format!(
                "--warm-up {} is longer than all {}: the worst-case loss never gets its full weight",
                self.options.warm_up,
                terminal::counted(steps, "step")
            ));
        }
        if method.has_two_phases() && self.split.part(Part::Unlabelled).is_empty() {
            oddities.push(format!(
                "{method} has no unlabelled nodes to learn from; rh is made for that",
                method = method.name()
            ));
        }
        oddities
    }

    pub(super) fn note_oddities(&self, quiet: bool) {
        self.oddities().iter().for_each(|oddity| terminal::note(quiet, oddity));
    }
}

/// Where a split comes from, and its sizes.
#[derive(Debug, Clone, Serialize)]
pub(super) struct SplitFacts {
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) seed: Option<u64>,
    train: usize,
    validation: usize,
    test: usize,
}

impl SplitFacts {
    fn new(split: &Split, file: Option<String>) -> Self {
        let size = |part| split.part(part).len();
        let (train, validation, test) = (size(Part::Train), size(Part::Validation), size(Part::Test));
        Self { file, seed: split.seed, train, validation, test }
    }

    pub(super) fn in_words(&self) -> String {
        let origin = match (&self.file, self.seed) {
            (Some(file), _) => format!("from {}", terminal::printable(file)),
            (None, Some(seed)) => format!("drawn with seed {seed}"),
            (None, None) => String::new(),
        };
        format!("{} train, {} validation, {} test, {origin}", self.train, self.validation, self.test)
    }
}

/// A plan for each of `files`.
///
/// # Errors
/// If a split cannot be read or drawn, or the budget does not fit the graph.
pub(super) fn make(
    arguments: &TrainArguments,
    graph: &Graph,
    options: &TrainOptions,
    files: Vec<RunFiles>,
) -> anyhow::Result<Vec<Plan>> {
    let plan = |(run, files): (usize, RunFiles)| {
        let (split, split_facts) = split(arguments, graph, run as u64)?;
        let budget = CheckedBudget::new(&arguments.budget, graph, Some(&split))?;
        let labelled = split.part(Part::Train).iter().filter(|&&node| graph.label(node).is_some()).count();
        let mut options = options.clone().suited_to(graph, labelled);
        options.budget = budget.budget().clone();
        options.seed = options.seed.wrapping_add(run as u64);
        Ok(Plan { split, split_facts, budget, options, files })
    };
    files.into_iter().enumerate().map(plan).collect()
}

fn split(arguments: &TrainArguments, graph: &Graph, run: u64) -> anyhow::Result<(Split, SplitFacts)> {
    if let Some(path) = &arguments.budget.flips.split {
        let split = inputs::read_split(path, graph)?;
        let facts = SplitFacts::new(&split, Some(path.display().to_string()));
        return Ok((split, facts));
    }
    if !graph.has_labels() {
        bail!("the graph has no labels to learn from; add a `labels` array to its file");
    }
    let sizes = &arguments.split;
    let train = data::train_size(sizes.train, sizes.train_per_class)?;
    let validation = SplitSize::Fraction(sizes.validation.fraction());
    let seed = sizes.split_seed.unwrap_or(arguments.options.seed).wrapping_add(run);
    let split = Split::stratified(graph, train, validation, seed)?;
    let facts = SplitFacts::new(&split, None);
    Ok((split, facts))
}

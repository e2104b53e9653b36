//! What each run trains on, and against what.

use anyhow::bail;
use nodeproof::results::SplitFields;
use nodeproof::{Graph, Part, Split, SplitSize, TrainSettings};
use nodeproof_report::text::{counted, printable};

use super::files::RunFiles;
use crate::budget;
use crate::cli::TrainArguments;
use crate::commands::data;
use crate::{inputs, terminal};

/// One run.
pub(in crate::commands) struct Plan {
    pub(in crate::commands) split: Split,
    pub(super) split_fields: SplitFields,
    pub(super) settings: TrainSettings,
    pub(super) files: RunFiles,
}

impl Plan {
    /// Trains on `split`, read from `file` or drawn, as `settings` say; what they leave open suits the graph.
    pub(in crate::commands) fn new(
        graph: &Graph,
        split: Split,
        file: Option<String>,
        settings: TrainSettings,
        files: RunFiles,
    ) -> Self {
        let labelled = split.part(Part::Train).iter().filter(|&&node| graph.label(node).is_some()).count();
        let split_fields = SplitFields::new(&split, file);
        Self { split, split_fields, settings: settings.suited_to(graph, labelled), files }
    }

    /// Notes what is allowed but hardly meant.
    fn oddities(&self) -> Vec<String> {
        let (method, steps) = (self.settings.method, self.settings.all_steps());
        let mut oddities = Vec::new();
        if method.is_robust() && self.settings.warm_up > steps {
            oddities.push(format!(
                "--warm-up {} is longer than all {}: the worst-case loss never gets its full weight",
                self.settings.warm_up,
                counted(steps, "step")
            ));
        }
        if method.has_two_phases() && self.split.part(Part::Unlabelled).is_empty() {
            oddities.push(format!("{method} has no unlabelled nodes to learn from; choose rh instead"));
        }
        oddities
    }

    pub(super) fn note_oddities(&self, quiet: bool) {
        self.oddities().iter().for_each(|oddity| terminal::note(quiet, oddity));
    }
}

/// Sizes of a split, and where it comes from.
pub(super) fn split_in_words(split: &SplitFields) -> String {
    let sizes = format!("{} train, {} validation, {} test", split.train, split.validation, split.test);
    match (&split.file, split.seed) {
        (Some(file), _) => format!("{sizes}, from {}", printable(file)),
        (None, Some(seed)) => format!("{sizes}, drawn with seed {seed}"),
        (None, None) => sizes,
    }
}

/// The runs that the arguments ask for.
///
/// # Errors
/// If there is nothing to train on, or the budget names what the graph does not have.
pub(super) fn read(
    arguments: &TrainArguments,
    graph: &Graph,
    settings: &TrainSettings,
    files: Vec<RunFiles>,
) -> anyhow::Result<Vec<Plan>> {
    let plan = |(run, files): (usize, RunFiles)| {
        let (split, file) = split(arguments, graph, run as u64)?;
        let mut settings = settings.clone();
        settings.budget = budget::read(arguments.budget.global_budget, &arguments.budget.flips, graph, Some(&split))?;
        settings.seed = settings.seed.wrapping_add(run as u64);
        Ok(Plan::new(graph, split, file, settings, files))
    };
    files.into_iter().enumerate().map(plan).collect()
}

/// The split of a run, and the file it was read from.
fn split(arguments: &TrainArguments, graph: &Graph, run: u64) -> anyhow::Result<(Split, Option<String>)> {
    if let Some(path) = &arguments.budget.flips.split {
        return Ok((inputs::read_split(path, graph)?, Some(path.display().to_string())));
    }
    if !graph.has_labels() {
        bail!("the graph has no labels to learn from; add a `labels` array to its file");
    }
    let sizes = &arguments.split;
    let train = data::train_size(sizes.train, sizes.train_per_class)?;
    let validation = SplitSize::Fraction(sizes.validation.fraction());
    let seed = sizes.split_seed.unwrap_or(arguments.options.seed).wrapping_add(run);
    Ok((Split::stratified(graph, train, validation, seed)?, None))
}

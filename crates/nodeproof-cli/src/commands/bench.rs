//! `nodeproof bench`: how long the engines and training take.

use anyhow::anyhow;
use nodeproof::Budget;
use nodeproof::graph::Synthetic;
use nodeproof::train::TrainSettings;
use nodeproof_lab::{LabError, bench};
use serde::Serialize;

use crate::cli::{
    BenchCertifyArguments, BenchEnginesArguments, BenchScaleArguments, BenchTrainArguments, PrintArguments,
};
use crate::inputs::{self, Inputs};
use crate::outcome::Outcome;
use crate::{budget, terminal, words};

/// `nodeproof bench certify`.
///
/// # Errors
/// If the input is bad.
pub(super) fn certify(arguments: &BenchCertifyArguments) -> anyhow::Result<Outcome> {
    let BenchCertifyArguments { graph, model, budget, print, .. } = arguments;
    let inputs = Inputs::read(graph, &model.model, budget.flips.split.as_deref(), print.quiet)?;
    let settings = bench::certify::Settings {
        budget: budget::read(budget.global_budget, &budget.flips, &inputs.graph, inputs.split.as_ref())?,
        target_class: model.class.into(),
        sample: arguments.sample.into(),
        repeats: arguments.repeats.into(),
    };
    let report = bench::certify::run(&inputs.graph, &inputs.model, &settings, notes(*print));
    let report = report.map_err(words::certifying)?;
    show(*print, &report, || report.in_words(terminal::line_width()))
}

/// `nodeproof bench engines`.
///
/// # Errors
/// If the input is bad.
pub(super) fn engines(arguments: &BenchEnginesArguments) -> anyhow::Result<Outcome> {
    let BenchEnginesArguments { graph, model, budget, print, .. } = arguments;
    let inputs = Inputs::read(graph, &model.model, budget.flips.split.as_deref(), print.quiet)?;
    let global_budgets = budget.budgets.0.clone();
    let most = global_budgets.iter().copied().max().unwrap_or(1);
    let settings = bench::engines::Settings {
        budget: budget::read(most, &budget.flips, &inputs.graph, inputs.split.as_ref())?,
        global_budgets,
        target_class: model.class.into(),
        time_limit: arguments.limit.time_limit.0,
        sample: arguments.sample.0,
    };
    let report = bench::engines::run(&inputs.graph, &inputs.model, &settings, notes(*print));
    let report = report.map_err(words::certifying)?;
    show(*print, &report, || match arguments.markdown {
        true => report.markdown(),
        false => report.in_words(terminal::line_width()),
    })
}

/// `nodeproof bench scale`.
///
/// # Errors
/// If there are no such graphs, or the model or the budget does not fit them.
pub(super) fn scale(arguments: &BenchScaleArguments) -> anyhow::Result<Outcome> {
    let mut family = Synthetic::new(1).degree(arguments.degree).seed(arguments.seed);
    if let Some(hub) = arguments.hub {
        family = family.hub(hub as usize);
    }
    let settings = bench::scale::Settings {
        sizes: arguments.sizes.0.clone(),
        family,
        budget: Budget::new(arguments.global_budget, arguments.local_budget),
        engine: arguments.engine.into(),
        time_limit: arguments.limit.time_limit.0,
        sample: arguments.sample.0,
        model: arguments.model.as_deref().map(inputs::read_model).transpose()?,
    };
    let report = bench::scale::run(&settings, notes(arguments.print)).map_err(|error| match error {
        LabError::Synthetic { .. } => anyhow!("{error} (--sizes, --degree, --hub)"),
        error => in_words(error),
    })?;
    show(arguments.print, &report, || match arguments.markdown {
        true => report.markdown(),
        false => report.in_words(terminal::line_width()),
    })
}

/// `nodeproof bench train`.
///
/// # Errors
/// If the input is bad.
pub(super) fn train(arguments: &BenchTrainArguments) -> anyhow::Result<Outcome> {
    let BenchTrainArguments { graph, budget, print, .. } = arguments;
    graph.graph.check_readable("--graph")?;
    let graph = inputs::read_noted(graph, print.quiet)?;
    let split = budget.flips.split.as_deref().map(|path| inputs::read_split(path, &graph)).transpose()?;
    let mut training = TrainSettings::new(arguments.method.into());
    training.budget = budget::read(budget.global_budget, &budget.flips, &graph, split.as_ref())?;
    training.hidden = arguments.hidden.as_ref().map(|hidden| hidden.0.clone());
    if let Some(batch) = arguments.batch {
        training.batch = batch.0;
    }
    let (steps, warm_up) = (arguments.steps as usize, arguments.warm_up as usize);
    let settings = bench::train::Settings { training, split, steps, warm_up };
    let report = bench::train::run(&graph, &settings, notes(*print)).map_err(in_words)?;
    show(*print, &report, || report.in_words(terminal::line_width()))
}

/// Notes what is measured.
fn notes(print: PrintArguments) -> impl FnMut(&str) {
    move |what| terminal::note(print.quiet, what)
}

/// Prints a report.
fn show(print: PrintArguments, report: &impl Serialize, in_words: impl FnOnce() -> String) -> anyhow::Result<Outcome> {
    let text = if print.json { serde_json::to_string_pretty(report)? + "\n" } else { in_words() };
    terminal::print(&text)?;
    Ok(Outcome::Done)
}

/// The error with options called as they are typed.
pub(super) fn in_words(error: LabError) -> anyhow::Error {
    match error {
        LabError::Certify(error) => words::certifying(error),
        LabError::Train(error) => words::training(error),
        LabError::File(error) => words::file(error),
        error => error.into(),
    }
}

//! The figure of margins while training.

use std::path::Path;

use anyhow::bail;
use nodeproof::results::{StepRecord, TrainingLog};
use nodeproof_report::plot::Point;
use nodeproof_report::plot::figures::{self, Aims, Run};

use super::output::Output;
use crate::cli::PlotDynamicsArguments;
use crate::outcome::Outcome;
use crate::values::NamedFile;

/// `nodeproof plot dynamics`.
///
/// # Errors
/// If a file is not a log with margins, or the figure cannot be written.
pub(super) fn run(arguments: &PlotDynamicsArguments) -> anyhow::Result<Outcome> {
    let inputs: Vec<&Path> = arguments.logs.iter().map(|file| file.path.as_path()).collect();
    let output = Output::check(&arguments.figure, &inputs)?;
    let logs = arguments.logs.iter().map(|file| TrainingLog::read(&file.path)).collect::<Result<Vec<_>, _>>()?;
    let runs = arguments.logs.iter().zip(&logs).map(|(file, log)| of_log(file, log)).collect::<Result<Vec<_>, _>>()?;
    output.write(figures::dynamics(&runs, aims(&logs)))
}

fn of_log(file: &NamedFile, log: &TrainingLog) -> anyhow::Result<Run> {
    let points = |margin: fn(&StepRecord) -> Option<f64>| -> Vec<Point> {
        log.steps.iter().filter_map(|step| Some((step.step as f64, margin(step)?))).collect()
    };
    let (labelled, unlabelled) = (points(|step| step.labelled_margin), points(|step| step.unlabelled_margin));
    if labelled.is_empty() && unlabelled.is_empty() {
        bail!("{} has no margins; train with --log-margins 40 to have them logged", file.path.display());
    }
    Ok(Run { name: file.shown_name(), labelled, unlabelled })
}

/// What the first run with a hinge loss aims at: no other loss has an aim.
fn aims(logs: &[TrainingLog]) -> Option<Aims> {
    let hinge = logs.iter().find(|log| matches!(log.method.as_str(), "rh" | "rh-u"))?;
    Some(Aims { labelled: hinge.labelled_margin, unlabelled: hinge.unlabelled_margin })
}

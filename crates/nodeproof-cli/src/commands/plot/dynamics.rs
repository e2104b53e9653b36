//! The figure of margins while training.

use std::path::Path;

use anyhow::bail;
use nodeproof::results::TrainingLog;
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
    output.write(figures::dynamics(&runs, logs.iter().find_map(Aims::of)))
}

fn of_log(file: &NamedFile, log: &TrainingLog) -> anyhow::Result<Run> {
    let run = Run::of(file.shown_name(), log);
    if run.labelled.is_empty() && run.unlabelled.is_empty() {
        bail!("{} has no margins; train with --log-margins 40 to have them logged", file.path.display());
    }
    Ok(run)
}

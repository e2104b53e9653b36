//! Doing one step after the other.

use std::fs;
use std::io;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

use cpu_time::ProcessTime;
use nodeproof::Finish;
use nodeproof::files::{Destination, FileError};

use super::ledger::Ledger;
use super::plan::{Plan, Step, Task};
use super::{Event, Observer, Started, radii, training};
use crate::LabError;

/// Does all steps that are not done yet.
///
/// # Errors
/// If a step fails.
pub(super) fn run(plan: &Plan, steps: &[Step], ledger: &mut Ledger, observe: Observer) -> Result<Finish, LabError> {
    let start = Instant::now();
    for (number, step) in steps.iter().enumerate() {
        if ledger.entry(step, plan.folder).is_some() {
            continue;
        }
        let title = step.title();
        let started =
            Started { number: number + 1, steps: steps.len(), title: title.clone(), elapsed: start.elapsed() };
        if observe(Event::Step(&started)).is_break() {
            return Ok(Finish::Cancelled);
        }
        let (start, cpu) = (Instant::now(), ProcessTime::now());
        let finish = perform(plan, step, observe).map_err(|error| LabError::Step { title, source: error.into() })?;
        if finish == Finish::Cancelled {
            return Ok(finish);
        }
        ledger.add(step, plan.folder, start.elapsed().as_secs_f64(), cpu.elapsed().as_secs_f64())?;
    }
    Ok(Finish::Complete)
}

/// Does one step, from where an earlier run of it stopped.
fn perform(plan: &Plan, step: &Step, observe: Observer) -> Result<Finish, LabError> {
    for path in step.outputs(plan.folder) {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(|source| LabError::Folder { path: folder.to_owned(), source })?;
        }
        // Should this be stopped before the step is noted as done, nobody must take one graph's results for another's.
        remove(&path)?;
    }
    match step.task {
        Task::Train { logged } => training::train(plan, &step.network, logged, observe),
        Task::Search { engine, most } => radii::search(plan, &step.network, (engine, most), observe),
    }
}

/// Removes the file at `path`, if there is one.
///
/// # Errors
/// If it stays.
pub(super) fn remove(path: &Path) -> Result<(), LabError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Destination::of(path).failure(error).into()),
        _ => Ok(()),
    }
}

/// Whether what an interrupted run left is of no use, so that the step starts again.
pub(super) fn is_of_no_use(error: &FileError) -> bool {
    matches!(
        error,
        FileError::NotResumable { .. }
            | FileError::NothingUnfinished { .. }
            | FileError::Version { .. }
            | FileError::OtherRun { .. }
            | FileError::Damaged { .. }
            | FileError::DoesNotFit { .. }
    )
}

/// Says how far a step has come.
pub(super) fn tell(observe: Observer, doing: &str, done: usize, total: usize) -> ControlFlow<()> {
    observe(Event::Progress { doing, done, total })
}

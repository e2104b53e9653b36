//! The log of a run: JSON Lines, a header and one line a step, without anything that differs from run to run.

use std::path::Path;

use anyhow::bail;
use nodeproof::Graph;
use nodeproof::files::{Destination, Keep, Unfinished};
use nodeproof::results::{GraphHeader, StepRecord, TrainingLogHeader};

use super::plan::Plan;
use crate::outputs::Output;

/// A log that is being written.
pub(super) struct Log(Output<Unfinished>);

impl Log {
    /// Begins the log of `plan`, if it has one, or, where `steps` steps are done already, cuts it back to these.
    ///
    /// # Errors
    /// If the file cannot be written, or is not the log of these steps.
    pub(super) fn open(graph: &Graph, plan: &Plan, log_margins: usize, steps: usize) -> anyhow::Result<Self> {
        let Some(path) = &plan.files.log else { return Ok(Self(Output::Nowhere)) };
        let graph = GraphHeader::new(graph);
        let header = TrainingLogHeader::new(graph, &plan.split_fields, &plan.settings, log_margins);
        let destination = Destination::of(path);
        if steps == 0 {
            return Ok(Self(Output::begin(Some(&destination), |destination| Unfinished::begin(destination, &header))?));
        }
        let mut done = 0;
        let lines = Output::begin(Some(&destination), |destination| {
            Unfinished::resume(destination, &header, |line: StepRecord| {
                if line.step != done + 1 {
                    return Err(format!("it is about step {}, where step {} comes next", line.step, done + 1));
                }
                if done == steps {
                    return Ok(Keep::Stop);
                }
                done += 1;
                Ok(Keep::Keep)
            })
        })?;
        // What went to a pipe or a device cannot be read back.
        if done < steps && !destination.is_special() {
            too_short(path, done, steps)?;
        }
        Ok(Self(lines))
    }

    /// Writes what a step came to.
    pub(super) fn step(&mut self, step: &StepRecord) -> anyhow::Result<()> {
        self.0.write(|lines| lines.record(step))
    }

    /// Whether there is a log to write.
    pub(super) fn is_there(&self) -> bool {
        matches!(self.0, Output::Open(_))
    }

    /// Hands everything to the system.
    pub(super) fn flush(&mut self) -> anyhow::Result<()> {
        self.0.write(Unfinished::flush)
    }

    /// Ends the log of a training that has ended.
    pub(super) fn finish(self) -> anyhow::Result<()> {
        self.0.end(Unfinished::finish)
    }
}

fn too_short(path: &Path, done: usize, steps: usize) -> anyhow::Result<()> {
    bail!(
        "the log {} ends after step {done}, but the checkpoint is one after step {steps}; begin without --resume, or \
         continue without --log",
        path.display()
    )
}

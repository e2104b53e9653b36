//! The commands: each turns its arguments into settings and questions, has them answered, and prints the answer.

mod bench;
mod certify;
mod check;
mod collective;
mod data;
mod demo;
mod explain;
mod line;
mod manual;
mod merge;
mod model;
mod plot;
mod predict;
mod radius;
mod report;
mod reproduce;
mod train;

use crate::cli::{BenchCommand, Command, DataCommand, ModelCommand};
use crate::outcome::Outcome;

/// Runs `command`.
///
/// # Errors
/// If its input is bad.
pub(crate) fn run(command: Command) -> anyhow::Result<Outcome> {
    match command {
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Certify(arguments) => certify::run(&arguments),
        Command::Check(arguments) => check::run(&arguments),
        Command::Merge(arguments) => merge::run(&arguments),
        Command::Explain(arguments) => explain::run(&arguments),
        Command::Predict(arguments) => predict::run(&arguments),
        Command::Radius(arguments) => radius::run(&arguments),
        Command::Collective(arguments) => collective::run(&arguments),
        Command::Report(arguments) => report::run(&arguments),
        Command::Plot(command) => plot::run(&command),
        Command::Reproduce(arguments) => reproduce::run(&arguments),
        Command::Train(arguments) => train::run(&arguments),
        Command::Data(DataCommand::Info(arguments)) => data::info(&arguments),
        #[cfg(feature = "download")]
        Command::Data(DataCommand::Get(arguments)) => data::get(&arguments),
        Command::Data(DataCommand::Split(arguments)) => data::split(&arguments),
        Command::Data(DataCommand::Convert(arguments)) => data::convert(&arguments),
        Command::Data(DataCommand::Synth(arguments)) => data::synth(&arguments),
        Command::Model(ModelCommand::Info(arguments)) => model::info(&arguments),
        Command::Model(ModelCommand::Convert(arguments)) => model::convert(&arguments),
        Command::Completions(arguments) => manual::completions(&arguments),
        Command::Man(arguments) => manual::man(&arguments),
        Command::Bench(BenchCommand::Certify(arguments)) => bench::certify(&arguments),
        Command::Bench(BenchCommand::Engines(arguments)) => bench::engines(&arguments),
        Command::Bench(BenchCommand::Scale(arguments)) => bench::scale(&arguments),
        Command::Bench(BenchCommand::Train(arguments)) => bench::train(&arguments),
    }
}

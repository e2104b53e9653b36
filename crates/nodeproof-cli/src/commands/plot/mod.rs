//! `nodeproof plot`: results as figures for papers.

mod curves;
mod dynamics;
mod gap;
mod output;
mod reference;
mod structure;

pub(super) use output::Output;

use crate::cli::PlotCommand;
use crate::outcome::Outcome;

/// Runs the command.
///
/// # Errors
/// If a file is not what it should be, or the figure cannot be written.
pub(super) fn run(command: &PlotCommand) -> anyhow::Result<Outcome> {
    match command {
        PlotCommand::Certificates(arguments) => curves::certificates(arguments),
        PlotCommand::Comparison(arguments) => curves::comparison(arguments),
        PlotCommand::Truth(arguments) => curves::truth(arguments),
        PlotCommand::Purity(arguments) => structure::purity(arguments),
        PlotCommand::Degree(arguments) => structure::degree(arguments),
        PlotCommand::Collective(arguments) => curves::collective(arguments),
        PlotCommand::Dynamics(arguments) => dynamics::run(arguments),
        PlotCommand::Gap(arguments) => gap::run(arguments),
    }
}

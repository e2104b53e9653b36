//! The command line of nodeproof: arguments, progress, tables and files; the mathematics lives in the library.

mod budget;
mod cli;
mod commands;
#[cfg(feature = "download")]
mod download;
mod engine;
mod inputs;
mod interrupt;
mod lists;
mod outcome;
mod outputs;
mod progress;
mod run;
mod since;
mod terminal;
mod values;
mod words;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    outcome::exit_code_of(|| commands::run(cli.command))
}

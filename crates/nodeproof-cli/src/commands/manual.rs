//! `nodeproof completions` and `nodeproof man`: what a shell and `man` want to know of the command line.

use std::fs;
use std::path::Path;

use anyhow::{Context, bail};
use clap::CommandFactory;
use clap_complete::Shell;

use crate::cli::{Cli, CompletionsArguments, ManArguments};
use crate::outcome::Outcome;
use crate::terminal;

const NAME: &str = "nodeproof";

/// Prints a script that completes commands and options.
///
/// # Errors
/// If stdout cannot be written.
pub(crate) fn completions(arguments: &CompletionsArguments) -> anyhow::Result<Outcome> {
    let Some(shell) = arguments.shell.or_else(Shell::from_env) else {
        bail!("the shell cannot be recognised; name it, as in `{NAME} completions bash`");
    };
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), NAME, &mut script);
    terminal::print(&String::from_utf8(script)?)?;
    Ok(Outcome::Done)
}

/// Prints the manual page, or writes those of all commands into a folder.
///
/// # Errors
/// If a page cannot be written.
pub(crate) fn man(arguments: &ManArguments) -> anyhow::Result<Outcome> {
    let Some(folder) = &arguments.out else {
        let mut page = Vec::new();
        clap_mangen::Man::new(Cli::command()).render(&mut page)?;
        terminal::print(&String::from_utf8(page)?)?;
        return Ok(Outcome::Done);
    };
    fs::create_dir_all(folder).with_context(|| cannot_write(folder))?;
    clap_mangen::generate_to(Cli::command(), folder).with_context(|| cannot_write(folder))?;
    Ok(Outcome::Done)
}

fn cannot_write(path: &Path) -> String {
    format!("cannot write {}; choose a place where you may write", path.display())
}

//! Arguments of `completions` and `man`.

use std::path::PathBuf;

use clap::Args;

pub(super) const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  source <(nodeproof completions bash)
  nodeproof completions zsh > ~/.zfunc/_nodeproof
  nodeproof completions fish > ~/.config/fish/completions/nodeproof.fish";

pub(super) const MAN_EXAMPLES: &str = "\
Examples:
  nodeproof man | man -l -
  nodeproof man --out ~/.local/share/man/man1";

/// Arguments of `completions`.
#[derive(Debug, Args)]
pub(crate) struct CompletionsArguments {
    /// The shell [default: the one that runs this]
    #[arg(value_enum)]
    pub(crate) shell: Option<clap_complete::Shell>,
}

/// Arguments of `man`.
#[derive(Debug, Args)]
pub(crate) struct ManArguments {
    /// Write a page for each command into this folder
    #[arg(long, value_name = "FOLDER")]
    pub(crate) out: Option<PathBuf>,
}

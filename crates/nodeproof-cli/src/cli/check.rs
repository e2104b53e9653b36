//! Arguments of `check`.

use std::path::PathBuf;

use clap::Args;

use super::{GraphArguments, PrintArguments, ThreadArguments};

pub(super) const EXAMPLES: &str = "\
Examples:
  nodeproof certify --graph g.npz --model m.safetensors --global-budget 12 \\
      --proof --out certificates.jsonl
  nodeproof check certificates.jsonl --graph g.npz --model m.safetensors

  # certificates about deletions of edges
  nodeproof certify --graph g.npz --model m.safetensors --delete-edges 1 \\
      --out unlinked.jsonl
  nodeproof check unlinked.jsonl --graph g.npz --model m.safetensors";

pub(super) const USAGE: &str = "nodeproof check <CERTIFICATES> --graph <FILE> --model <FILE> [OPTIONS]";

/// Arguments of `check`.
#[derive(Debug, Args)]
pub(crate) struct CheckArguments {
    /// Certificates (`certify --proof --out`) or radii (`radius --proof --out`); without --proof if edges are deleted
    #[arg(value_name = "CERTIFICATES")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) graph: GraphArguments,
    /// The model that they are about
    #[arg(long, value_name = "FILE", help_heading = "Model")]
    pub(crate) model: PathBuf,
    #[command(flatten)]
    pub(crate) print: PrintArguments,
    #[command(flatten)]
    pub(crate) threads: ThreadArguments,
}

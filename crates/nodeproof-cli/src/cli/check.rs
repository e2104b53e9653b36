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
  nodeproof check unlinked.jsonl --graph g.npz --model m.safetensors

  # how many predictions change at most, and the radii that this rests on
  nodeproof radius --graph g.npz --model m.safetensors --max-budget 20 \\
      --proof --out radii.jsonl
  nodeproof collective --graph g.npz --model m.safetensors \\
      --global-budget 1,5,20 --radii radii.jsonl --out together.jsonl
  nodeproof check together.jsonl --radii radii.jsonl \\
      --graph g.npz --model m.safetensors";

pub(super) const USAGE: &str = "nodeproof check <CERTIFICATES> --graph <FILE> --model <FILE> [OPTIONS]";

/// Arguments of `check`.
#[derive(Debug, Args)]
pub(crate) struct CheckArguments {
    /// Certificates (`certify --proof --out`), radii (`radius --proof --out`), both without --proof if edges are deleted, or
    /// collective certificates (`collective --out`)
    #[arg(value_name = "CERTIFICATES")]
    pub(crate) file: PathBuf,
    /// Radii with proofs, for collective certificates: they are checked where a node needs a proof
    #[arg(long, value_name = "FILE")]
    pub(crate) radii: Option<PathBuf>,
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

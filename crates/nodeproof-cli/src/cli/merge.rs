//! Arguments of `merge`.

use std::path::PathBuf;

use clap::Args;

use super::PrintArguments;

pub(super) const EXAMPLES: &str = "\
Examples:
  nodeproof certify --graph g.npz --model m.safetensors --global-budget 12 \\
      --shard 1/2 --out part-1.jsonl
  nodeproof certify --graph g.npz --model m.safetensors --global-budget 12 \\
      --shard 2/2 --out part-2.jsonl
  nodeproof merge part-1.jsonl part-2.jsonl --out certificates.jsonl";

pub(super) const USAGE: &str = "nodeproof merge <FILE>... --out <FILE> [OPTIONS]";

/// Arguments of `merge`.
#[derive(Debug, Args)]
pub(crate) struct MergeArguments {
    /// What `certify --shard` or `radius --shard` wrote: all parts, in any order
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Write the whole here, `-` for stdout; compressed if the name ends in .gz
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) out: PathBuf,
    #[command(flatten)]
    pub(crate) print: PrintArguments,
}

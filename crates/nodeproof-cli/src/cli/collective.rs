//! Arguments of `collective`.

use std::path::PathBuf;

use clap::Args;

use super::{
    EngineArguments, FlipArguments, GraphArguments, ModelArguments, NodeArguments, PrintArguments, ThreadArguments,
};
use crate::values::Budgets;

pub(super) const EXAMPLES: &str = "\
Examples:
  # how many predictions 1, 5 and 20 flips anywhere in the graph can change
  nodeproof collective --graph g.npz --model m.safetensors \\
      --global-budget 1,5,20

  # radii once, and then as many questions as you like
  nodeproof radius --graph g.npz --model m.safetensors --out radii.jsonl
  nodeproof collective --graph g.npz --model m.safetensors \\
      --global-budget 20 --radii radii.jsonl --out collective.jsonl

  # of the test nodes, by an attacker who adds attributes of other nodes alone
  nodeproof collective --graph g.npz --model m.safetensors \\
      --global-budget 5 --add-only --split split.json --nodes test \\
      --protect-nodes test";

pub(super) const USAGE: &str = "nodeproof collective --graph <FILE> --model <FILE>
                            --global-budget <Q,Q,…> [OPTIONS]";

/// Arguments of `collective`.
#[derive(Debug, Args)]
pub(crate) struct CollectiveArguments {
    #[command(flatten)]
    pub(crate) graph: GraphArguments,
    #[command(flatten)]
    pub(crate) model: ModelArguments,
    /// Most flips in total, anywhere in the graph: one number, or several
    #[arg(long, value_name = "Q,Q,…", allow_hyphen_values = true, help_heading = "Budget")]
    pub(crate) global_budget: Budgets,
    #[command(flatten)]
    pub(crate) flips: FlipArguments,
    /// Radii of these nodes that `nodeproof radius` wrote, for the same graph, model and budget; without them they are found first
    #[arg(long, value_name = "FILE", help_heading = "Engine")]
    pub(crate) radii: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) engine: EngineArguments,
    #[command(flatten)]
    pub(crate) nodes: NodeArguments,
    /// Write all that is found, one global budget a line, as JSON Lines; `-` is stdout, .gz compresses them
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) out: Option<PathBuf>,
    /// Write a table, one global budget a row, as CSV; `-` is stdout
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) csv: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) print: PrintArguments,
    #[command(flatten)]
    pub(crate) threads: ThreadArguments,
}

//! Arguments of `radius`.

use clap::Args;

use super::{
    AskedArguments, EdgeArguments, EngineArguments, GraphArguments, MaxBudgetArguments, ModelArguments, NodeArguments,
    ProofArguments, ResultArguments, ShardArguments, ThreadArguments,
};

pub(super) const EXAMPLES: &str = "\
Examples:
  # how many flips each prediction withstands, 1% of the attributes at each node
  nodeproof radius --graph g.npz --model m.safetensors

  # radii to keep, with the flips that are one too many; a table
  nodeproof radius --graph g.npz --model m.safetensors --max-budget 40 \\
      --out radii.jsonl --csv radii.csv

  # a run that can be stopped at any time and continued by the same line
  nodeproof radius --graph g.npz --model m.safetensors \\
      --out radii.jsonl --resume

  # the test nodes of a split, against an attacker who can only add attributes
  nodeproof radius --graph g.npz --model m.safetensors --add-only \\
      --split split.json --nodes test

  # radii that anyone can check, and the check
  nodeproof radius --graph g.npz --model m.safetensors --proof \\
      --out radii.jsonl
  nodeproof check radii.jsonl --graph g.npz --model m.safetensors

  # flips that no evaluation in single precision may be fooled by
  nodeproof radius --graph g.npz --model m.safetensors --arithmetic f32

  # how many deleted edges each prediction withstands, up to 10
  nodeproof radius --graph g.npz --model m.safetensors --delete-edges 10

  # the average largest budget of the paper
  nodeproof radius --graph g.npz --model m.safetensors --engine fast --scan";

pub(super) const USAGE: &str = "nodeproof radius --graph <FILE> --model <FILE> [OPTIONS]";

/// Arguments of `radius`.
#[derive(Debug, Args)]
pub(crate) struct RadiusArguments {
    #[command(flatten)]
    pub(crate) graph: GraphArguments,
    #[command(flatten)]
    pub(crate) model: ModelArguments,
    #[command(flatten)]
    pub(crate) budget: MaxBudgetArguments,
    #[command(flatten)]
    pub(crate) edges: EdgeArguments,
    #[command(flatten)]
    pub(crate) engine: EngineArguments,
    /// Scan global budgets upwards from 1 until the `fast` engine proves nothing more, as the paper does
    ///
    /// The number of a node is then the last of the global budgets 1, 2, 3, … under which it was proven robust, without a
    /// gap, and 0 if there is none; nothing is said about witnesses. Only with --engine fast.
    #[arg(long, conflicts_with_all = ["timings", "proof"], help_heading = "Engine")]
    pub(crate) scan: bool,
    #[command(flatten)]
    pub(crate) nodes: NodeArguments,
    #[command(flatten)]
    pub(crate) shard: ShardArguments,
    #[command(flatten)]
    pub(crate) results: ResultArguments,
    #[command(flatten)]
    pub(crate) asked: AskedArguments,
    #[command(flatten)]
    pub(crate) proof: ProofArguments,
    #[command(flatten)]
    pub(crate) threads: ThreadArguments,
}

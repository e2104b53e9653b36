//! Arguments of `certify`.

use std::time::Duration;

use clap::Args;

use super::{
    AskedArguments, EngineArguments, FlipOrEdgeArguments, GraphArguments, ModelArguments, NodeArguments,
    ProofArguments, ResultArguments, ShardArguments, SinceArguments, ThreadArguments,
};
use crate::values::{self, Limit, Share};

pub(super) const EXAMPLES: &str = "\
Examples:
  # every node, at most 12 flips in total and 1% of the attributes at each node
  nodeproof certify --graph g.npz --model m.safetensors --global-budget 12

  # certificates to keep, a table for a spreadsheet, and a gate for CI
  nodeproof certify --graph g.npz --model m.safetensors --global-budget 12 \\
      --out certificates.jsonl --csv verdicts.csv --fail-under 80%

  # an attacker who can only add attributes, never attribute 3 or `bayesian`
  nodeproof certify --graph g.npz --model m.safetensors --global-budget 5 \\
      --local-budget 2 --add-only --protect-attributes 3,bayesian

  # an attacker who deletes up to 5 edges, 2 of them at one node
  nodeproof certify --graph g.npz --model m.safetensors --delete-edges 5 \\
      --edges-per-node 2

  # an attacker who flips up to 3 attributes and deletes one edge
  nodeproof certify --graph g.npz --model m.safetensors --global-budget 3 \\
      --delete-edges 1

  # the test nodes of a split; continue after Ctrl-C
  nodeproof certify --graph g.npz --model m.safetensors --global-budget 12 \\
      --split split.json --nodes test --out certificates.jsonl --resume

  # certificates that anyone can check, and the check
  nodeproof certify --graph g.npz --model m.safetensors --global-budget 12 \\
      --proof --out certificates.jsonl
  nodeproof check certificates.jsonl --graph g.npz --model m.safetensors

  # predictions that no evaluation in single precision changes
  nodeproof certify --graph g.npz --model m.safetensors --global-budget 12 \\
      --arithmetic f32

  # the first of four parts, for one of four machines; then all of them
  nodeproof certify --graph g.npz --model m.safetensors --global-budget 12 \\
      --shard 1/4 --out part-1.jsonl
  nodeproof merge part-1.jsonl part-2.jsonl part-3.jsonl part-4.jsonl \\
      --out certificates.jsonl

  # after edits of the graph: only what they touch is certified again
  nodeproof certify --graph new.npz --model m.safetensors --global-budget 12 \\
      --since old.jsonl --since-graph old.npz --out new.jsonl

  # a large graph: the paper's bound only; what it cannot decide is undecided
  nodeproof certify --graph g.npz --model m.safetensors --global-budget 12 \\
      --engine fast";

pub(super) const USAGE: &str = "nodeproof certify --graph <FILE> --model <FILE> --global-budget <Q>
                         [OPTIONS]
       nodeproof certify --graph <FILE> --model <FILE> --delete-edges <Q>
                         [OPTIONS]";

/// Arguments of `certify`.
#[derive(Debug, Args)]
pub(crate) struct CertifyArguments {
    #[command(flatten)]
    pub(crate) graph: GraphArguments,
    #[command(flatten)]
    pub(crate) model: ModelArguments,
    #[command(flatten)]
    pub(crate) budget: FlipOrEdgeArguments,
    #[command(flatten)]
    pub(crate) engine: EngineArguments,
    /// Seconds after which no node gets more than the `fast` engine, or `none`
    #[arg(long, value_name = "SECONDS|none", default_value = "none", value_parser = values::time_limit, allow_hyphen_values = true, help_heading = "Engine")]
    pub(crate) total_time_limit: Limit<Duration>,
    #[command(flatten)]
    pub(crate) nodes: NodeArguments,
    #[command(flatten)]
    pub(crate) shard: ShardArguments,
    #[command(flatten)]
    pub(crate) since: SinceArguments,
    #[command(flatten)]
    pub(crate) results: ResultArguments,
    #[command(flatten)]
    pub(crate) asked: AskedArguments,
    #[command(flatten)]
    pub(crate) proof: ProofArguments,
    /// Exit with code 1 if a smaller share of the nodes is robust, such as 80%
    #[arg(long, value_name = "SHARE", help_heading = "Running")]
    pub(crate) fail_under: Option<Share>,
    #[command(flatten)]
    pub(crate) threads: ThreadArguments,
}

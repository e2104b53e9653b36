//! Arguments of `explain`.

use clap::Args;

use super::{EngineArguments, FlipOrEdgeArguments, GraphArguments, ModelArguments, PrintArguments};

pub(super) const EXAMPLES: &str = "\
Examples:
  nodeproof explain --graph g.npz --model m.safetensors --global-budget 12 \\
      --node 17
  nodeproof explain --graph g.npz --model m.safetensors --global-budget 12 \\
      --node \"Bayesian networks\" --json

  # against an attacker who deletes edges
  nodeproof explain --graph g.npz --model m.safetensors --delete-edges 5 \\
      --node 17";

pub(super) const USAGE: &str = "nodeproof explain --graph <FILE> --model <FILE> --global-budget <Q>
                         --node <NODE> [OPTIONS]
       nodeproof explain --graph <FILE> --model <FILE> --delete-edges <Q>
                         --node <NODE> [OPTIONS]";

/// Arguments of `explain`.
#[derive(Debug, Args)]
pub(crate) struct ExplainArguments {
    /// The node: its id, or its name; name:17 is the node that is called 17
    #[arg(long, value_name = "NODE", help_heading = "Nodes", allow_hyphen_values = true)]
    pub(crate) node: String,
    #[command(flatten)]
    pub(crate) graph: GraphArguments,
    #[command(flatten)]
    pub(crate) model: ModelArguments,
    #[command(flatten)]
    pub(crate) budget: FlipOrEdgeArguments,
    #[command(flatten)]
    pub(crate) engine: EngineArguments,
    #[command(flatten)]
    pub(crate) print: PrintArguments,
}

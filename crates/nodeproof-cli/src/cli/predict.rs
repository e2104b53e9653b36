//! Arguments of `predict`.

use std::path::PathBuf;

use clap::Args;

use super::{GraphArguments, NodeArguments, PrintArguments};

pub(super) const EXAMPLES: &str = "\
Examples:
  nodeproof predict --graph g.npz --model m.safetensors
  nodeproof predict --graph g.npz --model m.safetensors --nodes 17,20-25
  nodeproof predict --graph g.npz --model m.safetensors --csv logits.csv";

pub(super) const USAGE: &str = "nodeproof predict --graph <FILE> --model <FILE> [OPTIONS]";

/// Arguments of `predict`.
#[derive(Debug, Args)]
pub(crate) struct PredictArguments {
    #[command(flatten)]
    pub(crate) graph: GraphArguments,
    /// The model, a .safetensors file, or an .npz file with W0, b0, W1, b1, …
    #[arg(long, value_name = "FILE", help_heading = "Model")]
    pub(crate) model: PathBuf,
    #[command(flatten)]
    pub(crate) nodes: NodeArguments,
    /// A split of the nodes (.json of `nodeproof data split`, or .npz with idx_train and idx_val)
    #[arg(long, value_name = "FILE", help_heading = "Nodes")]
    pub(crate) split: Option<PathBuf>,
    /// Write label, predicted class and all logits, one node a line; `-` is stdout
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) csv: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) print: PrintArguments,
}

//! Arguments of `model`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::choices::PropagationChoice;

const INFO_EXAMPLES: &str = "\
Examples:
  nodeproof model info m.safetensors
  nodeproof model info weights.npz --json";

const CONVERT_EXAMPLES: &str = "\
Examples:
  nodeproof model convert weights.npz m.safetensors
  nodeproof model convert weights.npz m.safetensors --propagation row-normalised";

#[derive(Debug, Subcommand)]
pub(crate) enum ModelCommand {
    /// Show layers, shapes and propagation of a model
    ///
    /// The fingerprint is the one that certificates name in their header.
    #[command(after_help = INFO_EXAMPLES)]
    Info(ModelInfoArguments),
    /// Convert a model to .safetensors
    ///
    /// Reads an .npz with W0, b0, W1, b1, … (inputs × outputs) or a .safetensors file, and writes a .safetensors file
    /// that also names the propagation.
    #[command(after_help = CONVERT_EXAMPLES)]
    Convert(ModelConvertArguments),
}

/// Arguments of `model info`.
#[derive(Debug, Args)]
pub(crate) struct ModelInfoArguments {
    /// The model, .safetensors or .npz
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Print JSON
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}

/// Arguments of `model convert`.
#[derive(Debug, Args)]
pub(crate) struct ModelConvertArguments {
    /// The model to read, .npz or .safetensors
    #[arg(value_name = "IN")]
    pub(crate) input: PathBuf,
    /// The .safetensors file to write
    #[arg(value_name = "OUT")]
    pub(crate) output: PathBuf,
    /// The propagation that the model was trained with [default: what IN says, symmetric-gcn for .npz]
    #[arg(long, value_name = "WHICH", value_enum)]
    pub(crate) propagation: Option<PropagationChoice>,
}

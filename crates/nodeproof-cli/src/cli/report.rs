//! Arguments of `report`.

use std::path::PathBuf;

use clap::Args;

use super::GraphArguments;
use crate::values::NamedFile;

pub(super) const EXAMPLES: &str = "\
Examples:
  # certificates and radii of one model
  nodeproof certify --graph g.npz --model m.safetensors --global-budget 12 \\
      --out certificates.jsonl
  nodeproof radius --graph g.npz --model m.safetensors --out radii.jsonl
  nodeproof report certificates.jsonl radii.jsonl --graph g.npz --open

  # and what one attacker does to all predictions together
  nodeproof collective --graph g.npz --model m.safetensors \\
      --global-budget 1,5,20 --radii radii.jsonl --out together.jsonl
  nodeproof report certificates.jsonl radii.jsonl together.jsonl --graph g.npz

  # two models side by side, under names of your own
  nodeproof report standard=ce.jsonl standard=ce-radii.jsonl \\
      robust=rh-u.jsonl --graph g.npz --split split.json --out compare.html";

/// Arguments of `report`.
#[derive(Debug, Args)]
pub(crate) struct ReportArguments {
    /// Certificates (`certify --out`), radii (`radius --out`) and collective certificates (`collective --out`)
    ///
    /// Any of the three will do. Files of the same model belong together; several models are shown side by side, in this
    /// order. NAME= says what a model is called [default: the name of its first file].
    #[arg(required = true, value_name = "[NAME=]FILE")]
    pub(crate) files: Vec<NamedFile>,
    #[command(flatten)]
    pub(crate) graph: GraphArguments,
    /// Check all results against this model first; the report then says so
    ///
    /// Nothing is written, and the exit code is 1, if something is rejected. `certify --proof` and `radius --proof` write
    /// what it takes. Give it once for each model. Collective certificates are checked by the
    /// radii of their model, if there are any.
    #[arg(long, value_name = "MODEL", help_heading = "Running")]
    pub(crate) check: Vec<PathBuf>,
    /// The split that the models were trained with; accuracy is then that of the unlabelled nodes
    #[arg(long, value_name = "FILE", help_heading = "Nodes")]
    pub(crate) split: Option<PathBuf>,
    /// Write the report to this file
    #[arg(long, value_name = "FILE", default_value = "report.html", help_heading = "Output")]
    pub(crate) out: PathBuf,
    /// What the report is called
    #[arg(long, value_name = "TEXT", help_heading = "Output")]
    pub(crate) title: Option<String>,
    /// Open the report in the browser
    #[arg(long, help_heading = "Output")]
    pub(crate) open: bool,
    /// Print no notes and not where the report is
    #[arg(long, short, help_heading = "Output")]
    pub(crate) quiet: bool,
}

//! Arguments of `reproduce`.

use std::path::PathBuf;

use clap::Args;

use super::ThreadArguments;

pub(super) const EXAMPLES: &str = "\
Examples:
  nodeproof data get cora_ml citeseer pubmed --out data
  nodeproof reproduce --data data --quick
  nodeproof reproduce --data data --out five-splits";

/// Arguments of `reproduce`.
#[derive(Debug, Args)]
pub(crate) struct ReproduceArguments {
    /// The folder with cora_ml.npz, citeseer.npz and pubmed.npz, or some of them
    #[arg(long, value_name = "FOLDER")]
    pub(crate) data: PathBuf,
    /// One split instead of the paper's five
    #[arg(long)]
    pub(crate) quick: bool,
    /// Write the summary, tables, figures, networks and radii into this folder; what an earlier run did there is kept
    #[arg(long, value_name = "FOLDER", default_value = "reproduction")]
    pub(crate) out: PathBuf,
    #[command(flatten)]
    pub(crate) threads: ThreadArguments,
    /// Print neither progress nor the table
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

//! Arguments of `data get`.

use std::path::PathBuf;

use clap::Args;

use crate::download::{self, DataSet};

pub(super) const EXAMPLES: &str = "\
Examples:
  nodeproof data get cora_ml citeseer
  nodeproof data get cora_ml citeseer pubmed --out data

  # where the file is, for a script
  nodeproof data get cora_ml --json | jq -r '.[].file'

  # from a server of your own
  nodeproof data get cora_ml --mirror http://localhost:8000";

/// Arguments of `data get`.
#[derive(Debug, Args)]
pub(crate) struct DataGetArguments {
    /// The data sets
    #[arg(value_name = "NAME", value_enum, required = true)]
    pub(crate) data_sets: Vec<DataSet>,
    /// Put the files into this folder instead of the cache; a different file of the same name is not replaced there
    #[arg(long, value_name = "FOLDER", help_heading = "Output")]
    pub(crate) out: Option<PathBuf>,
    /// The URL under which the files are, as NAME.npz
    #[arg(long, value_name = "URL", env = "NODEPROOF_MIRROR", default_value = download::AUTHORS, value_parser = download::mirror, help_heading = "Network")]
    pub(crate) mirror: String,
    /// Print where the files are as JSON
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
    /// Print neither progress nor notes nor where the files are
    #[arg(long, short, help_heading = "Output")]
    pub(crate) quiet: bool,
}

//! The command line of `data get`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::download::{DataSet, Mirror};
use crate::values;

pub(super) const EXAMPLES: &str = "\
Examples:
  nodeproof data get cora_ml citeseer
  nodeproof data get pubmed --out data --timeout 120

  # where the files are, for a script; nothing is asked of the network
  nodeproof data get cora_ml --offline --json | jq -r '.[].file'

  # from a server of your own, a graph of your own with it
  nodeproof data get cora_ml --mirror http://localhost:8000
  nodeproof data get papers=$(git hash-object papers.npz) \\
      --mirror http://localhost:8000";

/// Arguments of `data get`.
#[derive(Debug, Args)]
pub(crate) struct DataGetArguments {
    /// The data sets: cora_ml, citeseer, pubmed
    ///
    /// Another file of --mirror, NAME.npz, is had by NAME=CHECKSUM, with the checksum that `git hash-object NAME.npz`
    /// prints.
    #[arg(value_name = "NAME", required = true)]
    pub(crate) data_sets: Vec<DataSet>,
    /// Put the files into this folder instead of the cache; a different file of the same name is not replaced there
    #[arg(long, value_name = "FOLDER", help_heading = "Output")]
    pub(crate) out: Option<PathBuf>,
    /// The URL under which the files lie, as NAME.npz
    #[arg(long, value_name = "URL", env = "NODEPROOF_MIRROR", default_value = Mirror::AUTHORS, help_heading = "Network")]
    pub(crate) mirror: Mirror,
    /// Ask nothing of the network: fail unless the files are there already
    #[arg(long, help_heading = "Network")]
    pub(crate) offline: bool,
    /// Most seconds to wait for a connection, and for the next bytes; a slow download may take longer
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = values::timeout, allow_hyphen_values = true, help_heading = "Network")]
    pub(crate) timeout: Duration,
    /// How often to try again, with growing pauses, when a failure may pass
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u8).range(0..=100), help_heading = "Network")]
    pub(crate) retries: u8,
    /// Print where the files are as JSON
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
    /// Print neither progress nor notes nor where the files are
    #[arg(long, short, help_heading = "Output")]
    pub(crate) quiet: bool,
}

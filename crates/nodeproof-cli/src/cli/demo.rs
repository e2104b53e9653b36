//! Arguments of `demo`.

use std::path::PathBuf;

use clap::Args;

pub(super) const EXAMPLES: &str = "\
Examples:
  nodeproof demo
  nodeproof demo --out elsewhere";

/// Arguments of `demo`.
#[derive(Debug, Args)]
pub(crate) struct DemoArguments {
    /// Write networks, training logs, certificates, figures and the report into this folder; files of an earlier demo are
    /// replaced
    #[arg(long, value_name = "FOLDER", default_value = "nodeproof-demo")]
    pub(crate) out: PathBuf,
    /// Print no progress and no notes
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

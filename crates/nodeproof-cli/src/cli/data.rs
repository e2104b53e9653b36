//! Arguments of `data`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[cfg(feature = "download")]
use super::get::{self, DataGetArguments};
use super::{GraphArguments, GraphFlags, PrintArguments};
use crate::inputs::GraphSource;
use crate::values::Share;

const INFO_EXAMPLES: &str = "\
Examples:
  nodeproof data info bundled
  nodeproof data info g.npz
  nodeproof data info counts.npz --binarise --largest-component
  nodeproof data info g.npz --json | jq .statistics.class_sizes";

const SPLIT_EXAMPLES: &str = "\
Examples:
  nodeproof data split --graph g.npz --train 10% --validation 10% \\
      --out split.json
  nodeproof data split --graph g.npz --train-per-class 20 \\
      --validation-per-class 30 --seed 7 --out split.json";

const CONVERT_EXAMPLES: &str = "\
Examples:
  nodeproof data convert g.npz --out g.graph
  nodeproof data convert counts.npz --binarise --largest-component \\
      --out bits.graph
  nodeproof data convert g.graph --out g.npz";

const SYNTH_EXAMPLES: &str = "\
Examples:
  nodeproof data synth --nodes 10000 --out g.npz
  nodeproof data synth --nodes 1000000 --degree 25 --hub 45000 \\
      --seed 1 --out hubs.npz
  nodeproof train --graph g.npz --method ce --global-budget 12 \\
      --out m.safetensors";

#[derive(Debug, Subcommand)]
pub(crate) enum DataCommand {
    /// Show facts about a graph
    ///
    /// Counts nodes, edges, attributes and classes, and says what was cleaned while the file was read.
    #[command(after_help = INFO_EXAMPLES)]
    Info(DataInfoArguments),
    /// Download the data sets of the paper
    ///
    /// Downloads graphs from the repository of the paper's authors, danielzuegner/robust-gcn, and checks that they are the
    /// ones meant. What is there already is not downloaded again. Files are kept in the folder NODEPROOF_CACHE, or in
    /// nodeproof in the system's folder for caches ($XDG_CACHE_HOME, or ~/.cache). HTTPS_PROXY and HTTP_PROXY are honoured.
    #[cfg(feature = "download")]
    #[command(after_help = get::EXAMPLES)]
    Get(DataGetArguments),
    /// Split nodes into train, validation and test
    ///
    /// Draws the same share or number of nodes from each class; all others are for test. The same graph, sizes and
    /// seed give the same split everywhere.
    #[command(after_help = SPLIT_EXAMPLES)]
    Split(DataSplitArguments),
    /// Write a graph so that it is opened fast, or as .npz
    ///
    /// A name that ends in .graph gives a file with the arrays of the graph as they lie in memory and with its fingerprint:
    /// a million nodes are opened in a fraction of a second. Every command reads it as it reads an .npz. All other names
    /// give an .npz in the sparse-graph layout.
    #[command(after_help = CONVERT_EXAMPLES)]
    Convert(DataConvertArguments),
    /// Draw a graph of any size by chance
    ///
    /// Nodes of a class like to be neighbours and share attributes; degrees and attributes follow a power law, so that there
    /// are hubs and frequent words. The same sizes and seed give the same graph everywhere. From 100 to 10 million nodes.
    #[command(after_help = SYNTH_EXAMPLES)]
    Synth(DataSynthArguments),
}

/// Arguments of `data info`.
#[derive(Debug, Args)]
pub(crate) struct DataInfoArguments {
    /// The graph, an .npz file in the sparse-graph layout, a .graph file, or `bundled`
    ///
    /// `bundled` is a graph of 3304 nouns of WordNet that comes with nodeproof; a file of that name is `./bundled`.
    #[arg(value_name = "FILE|bundled")]
    pub(crate) graph: GraphSource,
    #[command(flatten)]
    pub(crate) flags: GraphFlags,
    /// Print JSON
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}

/// Arguments of `data convert`.
#[derive(Debug, Args)]
pub(crate) struct DataConvertArguments {
    /// The graph, an .npz file in the sparse-graph layout, a .graph file, or `bundled`
    #[arg(value_name = "FILE|bundled")]
    pub(crate) graph: GraphSource,
    #[command(flatten)]
    pub(crate) flags: GraphFlags,
    /// Write the graph here: in the .graph layout if the name ends in .graph, else as .npz
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) out: PathBuf,
    #[command(flatten)]
    pub(crate) print: PrintArguments,
}

/// Arguments of `data synth`.
#[derive(Debug, Args)]
pub(crate) struct DataSynthArguments {
    /// Number of nodes
    #[arg(long, value_name = "N", help_heading = "Graph")]
    pub(crate) nodes: u32,
    /// Mean number of neighbours, about
    #[arg(long, value_name = "NUMBER", default_value_t = 7.0, help_heading = "Graph")]
    pub(crate) degree: f64,
    /// Number of neighbours of the largest node of each class, about
    ///
    /// By default 30 times the mean, if there are enough nodes.
    #[arg(long, value_name = "N", help_heading = "Graph")]
    pub(crate) hub: Option<u32>,
    /// Number of classes
    #[arg(long, value_name = "N", default_value_t = 6, help_heading = "Graph")]
    pub(crate) classes: u32,
    /// Share of edges that join nodes of one class on purpose
    #[arg(long, value_name = "SHARE", default_value = "80%", help_heading = "Graph")]
    pub(crate) homophily: Share,
    /// Number of attributes
    #[arg(long, value_name = "N", default_value_t = 2000, help_heading = "Graph")]
    pub(crate) attributes: u32,
    /// Mean number of attributes of a node, about
    #[arg(long, value_name = "N", default_value_t = 20, help_heading = "Graph")]
    pub(crate) words: u32,
    /// Share of them that are of the node's class on purpose
    #[arg(long, value_name = "SHARE", default_value = "30%", help_heading = "Graph")]
    pub(crate) topical: Share,
    /// Seed of the draw
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Graph")]
    pub(crate) seed: u64,
    /// Write the graph here: in the .graph layout if the name ends in .graph, else as .npz
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) out: PathBuf,
    #[command(flatten)]
    pub(crate) print: PrintArguments,
}

/// Arguments of `data split`.
#[derive(Debug, Args)]
pub(crate) struct DataSplitArguments {
    #[command(flatten)]
    pub(crate) graph: GraphArguments,
    /// Share of each class for training
    #[arg(long, value_name = "SHARE", default_value = "10%", help_heading = "Split")]
    pub(crate) train: Share,
    /// Number of nodes of each class for training, instead of a share
    #[arg(long, value_name = "N", conflicts_with = "train", help_heading = "Split")]
    pub(crate) train_per_class: Option<u32>,
    /// Share of each class for validation
    #[arg(long, value_name = "SHARE", default_value = "10%", help_heading = "Split")]
    pub(crate) validation: Share,
    /// Number of nodes of each class for validation, instead of a share
    #[arg(long, value_name = "N", conflicts_with = "validation", help_heading = "Split")]
    pub(crate) validation_per_class: Option<u32>,
    /// Seed of the draw
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Split")]
    pub(crate) seed: u64,
    /// Write the split here, as JSON
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) out: PathBuf,
    /// Print the sizes as JSON
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
    /// Print neither notes nor the table of sizes
    #[arg(long, short, help_heading = "Output")]
    pub(crate) quiet: bool,
}

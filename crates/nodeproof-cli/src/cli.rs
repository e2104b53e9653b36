//! The command line as it is typed: commands, options and their help.

#[cfg(feature = "download")]
mod get;
mod plot;
mod report;
mod reproduce;
mod train;

use std::path::{Path, PathBuf};

use clap::{Args, Parser, Subcommand, ValueEnum};
use nodeproof::{Engine, LocalBudget, Propagation, TargetClass};

#[cfg(feature = "download")]
pub(crate) use get::DataGetArguments;
pub(crate) use plot::{
    FigureArguments, PlotCertificatesArguments, PlotCommand, PlotComparisonArguments, PlotDynamicsArguments,
    PlotGapArguments, PlotStructureArguments, PlotTruthArguments, RangeArguments,
};
pub(crate) use report::ReportArguments;
pub(crate) use reproduce::ReproduceArguments;
pub(crate) use train::{BenchTrainArguments, OptionArguments, TrainArguments};

use crate::inputs::GraphSource;
use crate::lists;
use crate::values::{self, Budgets, Limit, NodeList, Seconds, Share};

const EXIT_CODES: &str = "\
Exit codes:
  0    done
  1    fewer nodes are robust than --fail-under asks for
  2    bad input or usage, or a file that cannot be read, written or downloaded
  3    internal error; please report it
  130  interrupted; every line written so far is whole

Examples:
  nodeproof demo
  nodeproof data info g.npz
  nodeproof train --graph g.npz --method rh-u --global-budget 12 \\
      --out m.safetensors
  nodeproof certify --graph g.npz --model m.safetensors --global-budget 12
  nodeproof radius --graph g.npz --model m.safetensors
  nodeproof explain --graph g.npz --model m.safetensors --global-budget 12 \\
      --node 17";

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  source <(nodeproof completions bash)
  nodeproof completions zsh > ~/.zfunc/_nodeproof
  nodeproof completions fish > ~/.config/fish/completions/nodeproof.fish";

const MAN_EXAMPLES: &str = "\
Examples:
  nodeproof man | man -l -
  nodeproof man --out ~/.local/share/man/man1";

const DEMO_EXAMPLES: &str = "\
Examples:
  nodeproof demo
  nodeproof demo --out elsewhere";

const CERTIFY_EXAMPLES: &str = "\
Examples:
  # every node, at most 12 flips in all and 1% of the attributes at each node
  nodeproof certify --graph g.npz --model m.safetensors --global-budget 12

  # certificates to keep, a table for a spreadsheet, and a gate for CI
  nodeproof certify --graph g.npz --model m.safetensors --global-budget 12 \\
      --out certificates.jsonl --csv verdicts.csv --fail-under 80%

  # an attacker who can only add attributes, never attribute 3 or `bayesian`
  nodeproof certify --graph g.npz --model m.safetensors --global-budget 5 \\
      --local-budget 2 --add-only --protect-attributes 3,bayesian

  # the test nodes of a split; continue after Ctrl-C
  nodeproof certify --graph g.npz --model m.safetensors --global-budget 12 \\
      --split split.json --nodes test --out certificates.jsonl --resume

  # a large graph: the paper's bound only, nodes it cannot settle stay undecided
  nodeproof certify --graph g.npz --model m.safetensors --global-budget 12 \\
      --engine fast";

const RADIUS_EXAMPLES: &str = "\
Examples:
  # how many flips each prediction withstands, 1% of the attributes at each node
  nodeproof radius --graph g.npz --model m.safetensors

  # radii to keep, with the flips that are one too many; a table
  nodeproof radius --graph g.npz --model m.safetensors --max-budget 40 \\
      --out radii.jsonl --csv radii.csv

  # the test nodes of a split, against an attacker who can only add attributes
  nodeproof radius --graph g.npz --model m.safetensors --add-only \\
      --split split.json --nodes test

  # the average largest budget of the paper
  nodeproof radius --graph g.npz --model m.safetensors --engine fast --scan";

const EXPLAIN_EXAMPLES: &str = "\
Examples:
  nodeproof explain --graph g.npz --model m.safetensors --global-budget 12 \\
      --node 17
  nodeproof explain --graph g.npz --model m.safetensors --global-budget 12 \\
      --node \"Bayesian networks\" --json";

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

const MODEL_INFO_EXAMPLES: &str = "\
Examples:
  nodeproof model info m.safetensors
  nodeproof model info weights.npz --json";

const CONVERT_EXAMPLES: &str = "\
Examples:
  nodeproof model convert weights.npz m.safetensors
  nodeproof model convert weights.npz m.safetensors --propagation row-normalised";

const BENCH_CERTIFY_EXAMPLES: &str = "\
Examples:
  nodeproof bench certify --graph g.npz --model m.safetensors --global-budget 12
  nodeproof bench certify --graph g.npz --model m.safetensors \\
      --global-budget 12 --sample 200 --json";

const BENCH_ENGINES_EXAMPLES: &str = "\
Examples:
  nodeproof bench engines --graph g.npz --model m.safetensors
  nodeproof bench engines --graph g.npz --model m.safetensors --budgets 12 \\
      --sample 500 --time-limit 60 --markdown";

/// Proves that a graph convolutional network's predictions hold when node attributes are tampered with
///
/// A graph convolutional network predicts the class of a node from the binary attributes of that node and its
/// neighbours. nodeproof proves which predictions no attacker with a given budget of attribute flips can change, and
/// shows the flips (a witness) that change one where it finds them.
#[derive(Debug, Parser)]
#[command(name = "nodeproof", version, max_term_width = 100, after_help = EXIT_CODES, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// See what nodeproof does, within a minute
    ///
    /// Trains a standard and a robust network on the bundled graph, certifies both, compares them, and tells what an
    /// attacker would do to one node. Every command is shown as it is run. Nothing is downloaded.
    #[command(after_help = DEMO_EXAMPLES)]
    Demo(DemoArguments),
    /// Prove which predictions hold, node by node
    ///
    /// Gives every node a verdict: robust (no admissible set of flips changes its class), nonrobust (a witness that
    /// does is shown) or undecided. Prints a summary, in which the mean margin is the mean of the nodes' smallest lower
    /// bounds; --out keeps the certificates.
    #[command(
        after_help = CERTIFY_EXAMPLES,
        override_usage = "nodeproof certify --graph <FILE> --model <FILE> --global-budget <Q>\n                         [OPTIONS]"
    )]
    Certify(CertifyArguments),
    /// Tell the story of one node
    ///
    /// Shows prediction, verdict, the margin to every other class before and under attack, and the flips that change
    /// the prediction, in words where the graph has names.
    #[command(
        after_help = EXPLAIN_EXAMPLES,
        override_usage = "nodeproof explain --graph <FILE> --model <FILE> --global-budget <Q>\n                         --node <NODE> [OPTIONS]"
    )]
    Explain(ExplainArguments),
    /// Find how many flips each prediction withstands
    ///
    /// The radius of a node is the largest global budget under which it is robust. It is found by bisection over global
    /// budgets, from below (robust) and from above (a witness); where the two meet it is exact. With one hidden layer,
    /// the engine complete and enough time, all are. Prints a table and a histogram, which counts a node that is not exact by the budget it
    /// is proven for; --out keeps the radii.
    #[command(
        after_help = RADIUS_EXAMPLES,
        override_usage = "nodeproof radius --graph <FILE> --model <FILE> [OPTIONS]"
    )]
    Radius(RadiusArguments),
    /// Make a page to look at and to hand on
    ///
    /// Writes certificates and radii, of one model or of several side by side, into one HTML file that needs no network:
    /// shares and curves, what the guarantee means, a table of all nodes, and for each node its surroundings, its
    /// margins and the flips that change its class, in words.
    #[command(
        after_help = report::EXAMPLES,
        override_usage = "nodeproof report <[NAME=]FILE>... --graph <FILE> [OPTIONS]"
    )]
    Report(ReportArguments),
    /// Draw figures for papers, as SVG or PNG
    #[command(subcommand)]
    Plot(PlotCommand),
    /// Repeat the paper's experiments
    ///
    /// Trains the networks of the paper on its data sets, as far as they are there, finds their radii, and writes a summary:
    /// the paper's table and figures, ours beside the published ones. A run that was stopped goes on where it was when the
    /// same command is given again. With --quick it takes a quarter of an hour on two cores.
    #[command(after_help = reproduce::EXAMPLES)]
    Reproduce(ReproduceArguments),
    /// Train a network, also such that its predictions withstand tampering
    ///
    /// Learns from the labelled nodes of a split by cross entropy or by a robust loss, which makes worst-case margins
    /// large, and certifies the result under the same budget with the engine fast. Options of training that are left out
    /// depend on the method; their defaults are listed below. The same command gives the same bytes.
    #[command(
        after_help = train::after_help(),
        mut_arg("split", |split| split.help_heading("Split").long_help(None)),
        override_usage = "nodeproof train --graph <FILE> --method <WHICH> --global-budget <Q>\n                       --out <FILE> [OPTIONS]"
    )]
    Train(Box<TrainArguments>),
    /// Inspect, split and download graphs
    #[command(subcommand)]
    Data(DataCommand),
    /// Inspect and convert models
    #[command(subcommand)]
    Model(ModelCommand),
    /// Measure how long the engines take
    #[command(subcommand)]
    Bench(BenchCommand),
    /// Print a script that has a shell complete commands and options
    ///
    /// For bash, elvish, fish, PowerShell and zsh. Where the script goes is up to the shell; see the examples.
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions(CompletionsArguments),
    /// Print the manual page, or write those of all commands
    ///
    /// The pages say what --help says, for `man`.
    #[command(after_help = MAN_EXAMPLES)]
    Man(ManArguments),
}

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
}

#[derive(Debug, Subcommand)]
pub(crate) enum ModelCommand {
    /// Show layers, shapes and propagation of a model
    ///
    /// The fingerprint is the one that certificates name in their header.
    #[command(after_help = MODEL_INFO_EXAMPLES)]
    Info(ModelInfoArguments),
    /// Convert a model to .safetensors
    ///
    /// Reads an .npz with W0, b0, W1, b1, … (inputs × outputs) or a .safetensors file, and writes a .safetensors file
    /// that also names the propagation.
    #[command(after_help = CONVERT_EXAMPLES)]
    Convert(ModelConvertArguments),
}

#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    /// Time certification against the plain dense formula
    ///
    /// Certifies every node on one thread and then on all, evaluates the paper's formulas densely on a sample of the
    /// same nodes, and prints CPU seconds and ratios. The machine should have nothing else to do.
    #[command(
        after_help = BENCH_CERTIFY_EXAMPLES,
        override_usage = "nodeproof bench certify --graph <FILE> --model <FILE>\n                               --global-budget <Q> [OPTIONS]"
    )]
    Certify(BenchCertifyArguments),
    /// Compare the engines: what each decides, and what it takes
    ///
    /// Certifies the same nodes with each engine under several global budgets, on one thread, and prints the shares of the
    /// verdicts, CPU seconds for all nodes together, and the time that single nodes take. The machine should have nothing
    /// else to do.
    #[command(
        after_help = BENCH_ENGINES_EXAMPLES,
        override_usage = "nodeproof bench engines --graph <FILE> --model <FILE> [OPTIONS]"
    )]
    Engines(BenchEnginesArguments),
    /// Time the steps of training
    ///
    /// Trains for a while, then measures CPU seconds a step on one thread and how they divide, with the batch of the
    /// method and with 40 nodes (the reference implementation takes 5 times 8 an iteration), and the gain of more
    /// threads. With rh-u, its second phase is measured. The machine should have nothing else to do.
    #[command(
        after_help = train::BENCH_EXAMPLES,
        mut_arg("split", |split| split.help_heading("Split").long_help(None)),
        override_usage = "nodeproof bench train --graph <FILE> --global-budget <Q> [OPTIONS]"
    )]
    Train(BenchTrainArguments),
}

/// Arguments of `demo`.
#[derive(Debug, Args)]
pub(crate) struct DemoArguments {
    /// Write networks, training logs and certificates into this folder; files of an earlier demo are replaced
    #[arg(long, value_name = "FOLDER", default_value = "nodeproof-demo")]
    pub(crate) out: PathBuf,
    /// Print no progress and no notes
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// Arguments of `completions`.
#[derive(Debug, Args)]
pub(crate) struct CompletionsArguments {
    /// The shell [default: the one that runs this]
    #[arg(value_enum)]
    pub(crate) shell: Option<clap_complete::Shell>,
}

/// Arguments of `man`.
#[derive(Debug, Args)]
pub(crate) struct ManArguments {
    /// Write a page for each command into this folder
    #[arg(long, value_name = "FOLDER")]
    pub(crate) out: Option<PathBuf>,
}

/// How a graph on file is read.
#[derive(Debug, Clone, Copy, Default, Args)]
#[command(next_help_heading = "Graph")]
pub(crate) struct GraphFlags {
    /// Count every attribute value above 0 as 1 instead of refusing values other than 0 and 1
    #[arg(long)]
    pub(crate) binarise: bool,
    /// Keep only the largest connected component; nodes are then numbered anew
    #[arg(long)]
    pub(crate) largest_component: bool,
    /// Keep self-loops that are on file
    #[arg(long)]
    pub(crate) keep_self_loops: bool,
    /// Keep the direction of edges: a row of the adjacency lists the nodes that its node aggregates
    #[arg(long)]
    pub(crate) directed: bool,
}

/// The graph to work on.
#[derive(Debug, Args)]
#[command(next_help_heading = "Graph")]
pub(crate) struct GraphArguments {
    /// The graph, an .npz file in the sparse-graph layout (adj_*, attr_*, labels, names), or `bundled`
    ///
    /// `bundled` is a graph of 3304 nouns of WordNet that comes with nodeproof; a file of that name is `./bundled`.
    #[arg(long, value_name = "FILE|bundled")]
    pub(crate) graph: GraphSource,
    #[command(flatten)]
    pub(crate) flags: GraphFlags,
}

/// The model to put on the graph.
#[derive(Debug, Args)]
#[command(next_help_heading = "Model")]
pub(crate) struct ModelArguments {
    /// The model, a .safetensors file, or an .npz file with W0, b0, W1, b1, …
    #[arg(long, value_name = "FILE")]
    pub(crate) model: PathBuf,
    /// Whose margins are certified: the predicted class, or the label
    #[arg(long, value_name = "WHICH", value_enum, default_value_t = ClassChoice::Predicted)]
    pub(crate) class: ClassChoice,
}

/// What the attacker may change.
#[derive(Debug, Args)]
#[command(next_help_heading = "Budget")]
pub(crate) struct BudgetArguments {
    /// Most flips in all
    #[arg(long, value_name = "Q", value_parser = values::global_budget, allow_hyphen_values = true)]
    pub(crate) global_budget: u32,
    #[command(flatten)]
    pub(crate) flips: FlipArguments,
}

/// What the attacker may change, as long as a prediction withstands it.
#[derive(Debug, Args)]
#[command(next_help_heading = "Budget")]
pub(crate) struct MaxBudgetArguments {
    /// Largest global budget (flips in all) that is tried
    #[arg(long, value_name = "Q", default_value_t = 100, value_parser = values::global_budget, allow_hyphen_values = true)]
    pub(crate) max_budget: u32,
    #[command(flatten)]
    pub(crate) flips: FlipArguments,
}

/// What several attackers may change.
#[derive(Debug, Args)]
#[command(next_help_heading = "Budget")]
pub(crate) struct BudgetListArguments {
    /// Global budgets (flips in all) to compare under
    #[arg(long, value_name = "Q,Q,…", default_value = "5,12,25,40", allow_hyphen_values = true)]
    pub(crate) budgets: Budgets,
    #[command(flatten)]
    pub(crate) flips: FlipArguments,
}

/// Which flips are admissible, but for how many in all.
#[derive(Debug, Args)]
#[command(next_help_heading = "Budget")]
pub(crate) struct FlipArguments {
    /// Most flips at one node: a count, or a share of the attributes
    #[arg(long, value_name = "q|q%", default_value = "1%", value_parser = values::local_budget, allow_hyphen_values = true)]
    pub(crate) local_budget: LocalBudget,
    /// Nodes with a local budget of their own: lines of `node count`; `#` starts a comment
    #[arg(long, value_name = "FILE")]
    pub(crate) local_budget_file: Option<PathBuf>,
    /// The attacker can only add attributes (0 to 1)
    #[arg(long, conflicts_with = "delete_only")]
    pub(crate) add_only: bool,
    /// The attacker can only remove attributes (1 to 0)
    #[arg(long)]
    pub(crate) delete_only: bool,
    /// Attributes that cannot be flipped: ids, ranges and names such as 3,10-20,bayesian, or @FILE
    #[arg(long, value_name = "LIST")]
    pub(crate) protect_attributes: Option<String>,
    /// Nodes whose attributes cannot be flipped: ids and ranges such as 0,4,10-20, @FILE, or a part of the split
    #[arg(long, value_name = "LIST")]
    pub(crate) protect_nodes: Option<NodeList>,
    /// A split of the nodes (.json of `nodeproof data split`, or .npz with idx_train and idx_val)
    ///
    /// Lists of nodes may then name its parts, and summaries count labelled (train) and unlabelled nodes apart.
    #[arg(long, value_name = "FILE", help_heading = "Nodes")]
    pub(crate) split: Option<PathBuf>,
}

impl FlipArguments {
    /// The files that they name.
    pub(crate) fn files(&self) -> impl Iterator<Item = &Path> {
        let protected = self.protect_nodes.as_ref().and_then(NodeList::file);
        let attributes = self.protect_attributes.as_deref().and_then(lists::attribute_file);
        [self.split.as_deref(), self.local_budget_file.as_deref(), protected, attributes].into_iter().flatten()
    }
}

/// How hard to try.
#[derive(Debug, Args)]
#[command(next_help_heading = "Engine")]
pub(crate) struct EngineArguments {
    /// The strongest engine to try; a node goes from the fastest to this one until it is settled
    #[arg(long, value_name = "WHICH", value_enum, default_value_t = EngineChoice::Complete)]
    pub(crate) engine: EngineChoice,
    #[command(flatten)]
    pub(crate) limit: TimeLimitArguments,
}

/// When to give a node up.
#[derive(Debug, Args)]
#[command(next_help_heading = "Engine")]
pub(crate) struct TimeLimitArguments {
    /// Most seconds for one node under one budget, or `none`; one that takes longer stays undecided
    ///
    /// Results depend on the machine, and on the number of threads, only where a node runs into a limit of time.
    #[arg(long, value_name = "SECONDS|none", default_value = "10", value_parser = values::time_limit, allow_hyphen_values = true)]
    pub(crate) time_limit: Limit<Seconds>,
}

/// Which nodes to look at.
#[derive(Debug, Args)]
#[command(next_help_heading = "Nodes")]
pub(crate) struct NodeArguments {
    /// Nodes to look at: all, ids and ranges such as 0,4,10-20, @FILE, or a part of the split
    ///
    /// Parts of the split are train (or labelled), validation, test and unlabelled (every node outside train). A file
    /// lists ids and ranges, separated by white space or commas; `#` starts a comment. A node given twice counts once.
    #[arg(long, value_name = "LIST", default_value = "all")]
    pub(crate) nodes: NodeList,
}

/// What is written and printed.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct ResultArguments {
    /// Write all that was found, node by node, as JSON Lines; `-` is stdout
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Write a table with a row a node, as CSV; `-` is stdout
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,
    /// Add the seconds spent on each node to --out; its bytes then differ from run to run
    #[arg(long, requires = "out")]
    pub(crate) timings: bool,
    /// Print the summary as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Print neither progress nor notes nor the summary
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// How many threads to use.
#[derive(Debug, Clone, Copy, Args)]
#[command(next_help_heading = "Running")]
pub(crate) struct ThreadArguments {
    /// Threads to use; 0 takes as many as there are cores. Results do not depend on it
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u16).range(0..=1024))]
    threads: u16,
}

impl ThreadArguments {
    /// The number of threads, as the library takes it.
    pub(crate) fn count(self) -> usize {
        self.threads.into()
    }
}

/// Arguments of `certify`.
#[derive(Debug, Args)]
pub(crate) struct CertifyArguments {
    #[command(flatten)]
    pub(crate) graph: GraphArguments,
    #[command(flatten)]
    pub(crate) model: ModelArguments,
    #[command(flatten)]
    pub(crate) budget: BudgetArguments,
    #[command(flatten)]
    pub(crate) engine: EngineArguments,
    /// Seconds after which no node gets more than the engine fast, or `none`
    #[arg(long, value_name = "SECONDS|none", default_value = "none", value_parser = values::time_limit, allow_hyphen_values = true, help_heading = "Engine")]
    pub(crate) total_time_limit: Limit<Seconds>,
    #[command(flatten)]
    pub(crate) nodes: NodeArguments,
    #[command(flatten)]
    pub(crate) results: ResultArguments,
    /// Continue the --out file of an interrupted run with the same settings; limits of time may differ
    #[arg(long, requires = "out", help_heading = "Output")]
    pub(crate) resume: bool,
    /// Exit with code 1 if a smaller share of the nodes is robust, such as 80%
    #[arg(long, value_name = "SHARE", help_heading = "Running")]
    pub(crate) fail_under: Option<Share>,
    #[command(flatten)]
    pub(crate) threads: ThreadArguments,
}

/// Arguments of `radius`.
#[derive(Debug, Args)]
pub(crate) struct RadiusArguments {
    #[command(flatten)]
    pub(crate) graph: GraphArguments,
    #[command(flatten)]
    pub(crate) model: ModelArguments,
    #[command(flatten)]
    pub(crate) budget: MaxBudgetArguments,
    #[command(flatten)]
    pub(crate) engine: EngineArguments,
    /// Scan global budgets upwards from 1 until the engine fast proves nothing more, as the paper does
    ///
    /// A node's number is then the last global budget of 1, 2, 3, … under which it was proven robust, without a gap, and 0
    /// if there is none; nothing is said about witnesses. Only with --engine fast.
    #[arg(long, conflicts_with = "timings", help_heading = "Engine")]
    pub(crate) scan: bool,
    #[command(flatten)]
    pub(crate) nodes: NodeArguments,
    #[command(flatten)]
    pub(crate) results: ResultArguments,
    #[command(flatten)]
    pub(crate) threads: ThreadArguments,
}

/// How an answer is printed.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct PrintArguments {
    /// Print JSON
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
    /// Print no notes
    #[arg(long, short, help_heading = "Output")]
    pub(crate) quiet: bool,
}

/// Arguments of `explain`.
#[derive(Debug, Args)]
pub(crate) struct ExplainArguments {
    /// The node: its id, or its name
    #[arg(long, value_name = "NODE", help_heading = "Nodes", allow_hyphen_values = true)]
    pub(crate) node: String,
    #[command(flatten)]
    pub(crate) graph: GraphArguments,
    #[command(flatten)]
    pub(crate) model: ModelArguments,
    #[command(flatten)]
    pub(crate) budget: BudgetArguments,
    #[command(flatten)]
    pub(crate) engine: EngineArguments,
    #[command(flatten)]
    pub(crate) print: PrintArguments,
}

/// Arguments of `data info`.
#[derive(Debug, Args)]
pub(crate) struct DataInfoArguments {
    /// The graph, an .npz file in the sparse-graph layout, or `bundled`
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

/// Arguments of `bench certify`.
#[derive(Debug, Args)]
pub(crate) struct BenchCertifyArguments {
    #[command(flatten)]
    pub(crate) graph: GraphArguments,
    #[command(flatten)]
    pub(crate) model: ModelArguments,
    #[command(flatten)]
    pub(crate) budget: BudgetArguments,
    /// Nodes on which the dense formula is evaluated, evenly spaced; few of them make a poor estimate, since nodes differ a
    /// hundredfold
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u16).range(1..), help_heading = "Running")]
    pub(crate) sample: u16,
    /// Runs of the engine, of which the one with the least CPU time counts
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..), help_heading = "Running")]
    pub(crate) repeats: u16,
    #[command(flatten)]
    pub(crate) print: PrintArguments,
}

/// Arguments of `bench engines`.
#[derive(Debug, Args)]
pub(crate) struct BenchEnginesArguments {
    #[command(flatten)]
    pub(crate) graph: GraphArguments,
    #[command(flatten)]
    pub(crate) model: ModelArguments,
    #[command(flatten)]
    pub(crate) budget: BudgetListArguments,
    #[command(flatten)]
    pub(crate) limit: TimeLimitArguments,
    /// Nodes to certify, evenly spaced, or `all`
    #[arg(long, value_name = "N|all", default_value = "all", value_parser = values::sample, help_heading = "Running")]
    pub(crate) sample: Limit<usize>,
    #[command(flatten)]
    pub(crate) print: PrintArguments,
    /// Print the table as Markdown
    #[arg(long, conflicts_with = "json", help_heading = "Output")]
    pub(crate) markdown: bool,
}

/// Values of `--engine`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum EngineChoice {
    /// The paper's bound, evaluated once, and the flips that fall out of it
    Fast,
    /// Then bounds whose parameters are optimised for the node
    Tight,
    /// Then branch and bound until the node is decided
    Complete,
}

impl From<EngineChoice> for Engine {
    fn from(choice: EngineChoice) -> Self {
        match choice {
            EngineChoice::Fast => Self::Fast,
            EngineChoice::Tight => Self::Tight,
            EngineChoice::Complete => Self::Complete,
        }
    }
}

/// Values of `--class`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ClassChoice {
    /// The class that the model predicts on the graph as it is
    Predicted,
    /// The node's label; a misclassified node is then nonrobust without any flip
    Label,
}

impl From<ClassChoice> for TargetClass {
    fn from(choice: ClassChoice) -> Self {
        match choice {
            ClassChoice::Predicted => Self::Predicted,
            ClassChoice::Label => Self::Label,
        }
    }
}

/// Values of `--propagation`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PropagationChoice {
    /// Weights 1 / √(degree × degree), as in Kipf and Welling's GCN
    SymmetricGcn,
    /// The mean of the neighbours and the node itself
    RowNormalised,
}

impl From<PropagationChoice> for Propagation {
    fn from(choice: PropagationChoice) -> Self {
        match choice {
            PropagationChoice::SymmetricGcn => Self::SymmetricGcn,
            PropagationChoice::RowNormalised => Self::RowNormalised,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_engine_can_be_chosen_by_its_name() {
        for engine in Engine::ALL {
            assert_eq!(EngineChoice::from_str(engine.name(), false).map(Engine::from), Ok(engine));
        }
    }

    #[test]
    fn every_leaf_command_has_examples() {
        fn check(command: &clap::Command) {
            let leaf = command.get_subcommands().next().is_none();
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(!leaf || help.contains("Examples:"), "{}", command.get_name());
            assert!(help.lines().all(|line| line.chars().count() <= 80), "{}", command.get_name());
            assert!(!leaf || command.get_long_about().is_some(), "{}", command.get_name());
            command.get_subcommands().for_each(check);
        }
        check(&Cli::command());
    }
}

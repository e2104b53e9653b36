//! Groups of options that several commands have.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use nodeproof::results::ShardFields;
use nodeproof::{LocalBudget, NodeId};

use super::choices::{ArithmeticChoice, ClassChoice, EngineChoice};
use crate::inputs::GraphSource;
use crate::lists;
use crate::values::{self, Budgets, Limit, NodeList, Shard};

/// How a graph on file is read.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Graph")]
pub(crate) struct GraphFlags {
    /// Count every attribute value above 0 as 1 instead of refusing values other than 0 and 1
    #[arg(long)]
    pub(crate) binarise: bool,
    /// Let the network read attributes divided by the number of ones in their row, as PyTorch Geometric's NormalizeFeatures does
    #[arg(long)]
    pub(crate) normalise_rows: bool,
    /// Read attributes as real values: a flip then sets one to any other in the range of its attribute
    #[arg(long, conflicts_with_all = ["binarise", "normalise_rows"])]
    pub(crate) real_values: bool,
    /// Ranges of real values, one a line, such as `10-20, 0, 1.5`: attributes by id or name (or all), lowest and highest value
    ///
    /// The range of an attribute that is not in the file is that of its column, with 0 in it.
    #[arg(long, value_name = "FILE")]
    pub(crate) ranges: Option<PathBuf>,
    /// Keep only the largest connected component; node ids then start again from 0
    #[arg(long)]
    pub(crate) largest_component: bool,
    /// Keep the self-loops of the file
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
    /// The graph, an .npz file in the sparse-graph layout (adj_*, attr_*, labels, names), a .graph file, or `bundled`
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
    /// Which class is certified: the predicted one, or the label
    #[arg(long, value_name = "WHICH", value_enum, default_value_t = ClassChoice::Predicted)]
    pub(crate) class: ClassChoice,
}

/// What the attacker may change.
#[derive(Debug, Args)]
#[command(next_help_heading = "Budget")]
pub(crate) struct BudgetArguments {
    /// Most flips in total
    #[arg(long, value_name = "Q", value_parser = values::global_budget, allow_hyphen_values = true)]
    pub(crate) global_budget: u32,
    #[command(flatten)]
    pub(crate) flips: FlipArguments,
}

/// What the attacker may change, edges included.
#[derive(Debug, Args)]
#[command(next_help_heading = "Budget")]
pub(crate) struct FlipOrEdgeArguments {
    /// Most flips in total; may be left out if edges are deleted
    #[arg(long, value_name = "Q", required_unless_present = "delete_edges", value_parser = values::flips_beside, allow_hyphen_values = true)]
    pub(crate) global_budget: Option<u32>,
    #[command(flatten)]
    pub(crate) flips: FlipArguments,
    #[command(flatten)]
    pub(crate) edges: EdgeArguments,
}

/// Which edges the attacker may delete.
#[derive(Debug, Args)]
#[command(next_help_heading = "Budget")]
pub(crate) struct EdgeArguments {
    /// Most edges that the attacker may delete; with `radius`, the largest number that is tried
    ///
    /// An edge goes in both directions. Attributes stay as they are, unless flips are allowed as well: then at most one edge
    /// may be deleted beside them. Edges that the attacker adds are not covered yet.
    #[arg(long, value_name = "Q", value_parser = values::deletions, allow_hyphen_values = true)]
    pub(crate) delete_edges: Option<u32>,
    /// Most edges of one node that may be deleted; an edge counts at both ends
    #[arg(long, value_name = "q", value_parser = values::deletions, requires = "delete_edges", allow_hyphen_values = true)]
    pub(crate) edges_per_node: Option<u32>,
    /// Each node keeps at least one of its edges
    #[arg(long, requires = "delete_edges")]
    pub(crate) keep_one_edge: bool,
    /// Edges that cannot be deleted: lines of two node ids, such as `17 3`; `#` starts a comment
    #[arg(long, value_name = "FILE", requires = "delete_edges")]
    pub(crate) protect_edges: Option<PathBuf>,
}

/// What the attacker may change, under growing global budgets.
#[derive(Debug, Args)]
#[command(next_help_heading = "Budget")]
pub(crate) struct MaxBudgetArguments {
    /// Largest global budget (flips in total) that is tried [default: 100]
    #[arg(long, alias = "global-budget", value_name = "Q", value_parser = values::global_budget, allow_hyphen_values = true)]
    pub(crate) max_budget: Option<u32>,
    #[command(flatten)]
    pub(crate) flips: FlipArguments,
}

/// What the attacker may change, under several global budgets.
#[derive(Debug, Args)]
#[command(next_help_heading = "Budget")]
pub(crate) struct BudgetListArguments {
    /// Global budgets (flips in total) to compare under
    #[arg(long, value_name = "Q,Q,…", default_value = "5,12,25,40", allow_hyphen_values = true)]
    pub(crate) budgets: Budgets,
    #[command(flatten)]
    pub(crate) flips: FlipArguments,
}

/// Which flips are admissible, but for how many in all.
#[derive(Debug, Args)]
#[command(next_help_heading = "Budget")]
pub(crate) struct FlipArguments {
    /// Most flips at one node: a count, or a share of the attributes [default: 1%]
    #[arg(long, value_name = "q|q%", value_parser = values::local_budget, allow_hyphen_values = true)]
    pub(crate) local_budget: Option<LocalBudget>,
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
    ///
    /// `name:` before a name says that it is one: 3 is the attribute with the id 3, name:3 the one that is called 3. A file
    /// has one or more of these on a line; `#` starts a comment.
    #[arg(long, value_name = "LIST")]
    pub(crate) protect_attributes: Option<String>,
    /// Nodes whose attributes cannot be flipped, nor their edges deleted: ids and ranges such as 0,4,10-20, @FILE, or a part of the split
    #[arg(long, value_name = "LIST")]
    pub(crate) protect_nodes: Option<NodeList>,
    /// A split of the nodes (.json of `nodeproof data split`, or .npz with idx_train and idx_val)
    ///
    /// Lists of nodes may then name its parts, and summaries count labelled (train) and unlabelled nodes separately.
    #[arg(long, value_name = "FILE", help_heading = "Nodes")]
    pub(crate) split: Option<PathBuf>,
}

impl FlipArguments {
    /// The most flips at one node.
    pub(crate) fn local_budget(&self) -> LocalBudget {
        let usual = || "1%".parse().unwrap_or_else(|error| unreachable!("a share: {error}"));
        self.local_budget.unwrap_or_else(usual)
    }

    /// An option that limits nothing but flips, if one is given.
    pub(crate) fn limit_of_flips(&self) -> Option<&'static str> {
        let limits = [
            (self.local_budget.is_some(), "--local-budget"),
            (self.local_budget_file.is_some(), "--local-budget-file"),
            (self.add_only, "--add-only"),
            (self.delete_only, "--delete-only"),
            (self.protect_attributes.is_some(), "--protect-attributes"),
        ];
        limits.into_iter().find(|(is_given, _)| *is_given).map(|(_, option)| option)
    }

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
    /// The strongest engine to try; a node goes from the fastest to this one until it is decided
    #[arg(long, value_name = "WHICH", value_enum, default_value_t = EngineChoice::Complete)]
    pub(crate) engine: EngineChoice,
    #[command(flatten)]
    pub(crate) limit: TimeLimitArguments,
    /// Most memory for one node, as bytes or with K, M, G or T; a node that needs more stays undecided
    ///
    /// As many nodes are looked at at a time as there are threads. The `fast` engine needs little and has no limit. `collective`
    /// keeps what flips take of all predictions within this, too; with less its bound is larger.
    #[arg(long, value_name = "BYTES", default_value = "1G", value_parser = values::memory_limit, allow_hyphen_values = true)]
    pub(crate) memory_limit: usize,
}

/// When to give up on a node.
#[derive(Debug, Args)]
#[command(next_help_heading = "Engine")]
pub(crate) struct TimeLimitArguments {
    /// Most seconds for one node under one budget, or `none`; a node that takes longer stays undecided
    ///
    /// Results depend on the machine, and on the number of threads, only where a node reaches a time limit.
    #[arg(long, value_name = "SECONDS|none", default_value = "10", value_parser = values::time_limit, allow_hyphen_values = true)]
    pub(crate) time_limit: Limit<Duration>,
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

/// Which part of the nodes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Nodes")]
pub(crate) struct ShardArguments {
    /// Only one of several parts of these nodes, such as 1/4 for the first of four
    ///
    /// `nodeproof merge` puts the files of all parts together, to the bytes that one run writes.
    #[arg(long, value_name = "I/N", allow_hyphen_values = true)]
    pub(crate) shard: Option<Shard>,
}

/// An earlier run whose certificates are carried over.
#[derive(Debug, Args)]
#[command(next_help_heading = "Earlier run")]
pub(crate) struct SinceArguments {
    /// Carry over the certificates of an earlier run that an edit of the graph leaves as they are, and certify the other nodes
    ///
    /// FILE is what `--out` of the earlier run wrote, with the same settings. A node is certified again if something that its network
    /// sees is not, bit for bit, what it was. The results are those of a run without --since, and say where they come from.
    #[arg(long, value_name = "FILE")]
    pub(crate) since: Option<PathBuf>,
    /// The graph of the earlier run, if it is not the same; it is read with the same options
    #[arg(long, value_name = "FILE|bundled", requires = "since")]
    pub(crate) since_graph: Option<GraphSource>,
    /// The model of the earlier run, if it is not the same; then every node is certified again
    #[arg(long, value_name = "FILE", requires = "since")]
    pub(crate) since_model: Option<PathBuf>,
}

impl SinceArguments {
    /// The files that they name.
    pub(crate) fn files(&self) -> impl Iterator<Item = &Path> {
        let graph = self.since_graph.as_ref().and_then(GraphSource::file);
        [self.since.as_deref(), graph, self.since_model.as_deref()].into_iter().flatten()
    }
}

impl ShardArguments {
    /// Keeps of `nodes` those of the shard, if there is one.
    pub(crate) fn keep(&self, nodes: &mut Vec<NodeId>) -> Option<ShardFields> {
        let shard = self.shard?.of(nodes.len())?;
        *nodes = nodes[shard.range()].to_vec();
        Some(shard)
    }
}

/// What is written and printed.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct ResultArguments {
    /// Write the results, one node a line, as JSON Lines; `-` is stdout, .gz compresses them
    ///
    /// Until the results are complete they are in FILE.unfinished, and a file that was there before stays as it was.
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Continue an interrupted run with the same settings from --out; time limits may differ
    ///
    /// What the earlier run wrote is checked: that nobody has changed it, and that it can be true. Without an interrupted
    /// run, this begins one.
    #[arg(long, requires = "out")]
    pub(crate) resume: bool,
    /// Write a table, one node a row, as CSV; `-` is stdout
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

/// What is asked for beyond positive margins without rounding.
#[derive(Debug, Clone, Copy, Args)]
#[command(next_help_heading = "Model")]
pub(crate) struct AskedArguments {
    /// Margins of robust nodes must exceed this
    ///
    /// A node is then nonrobust if flips bring another class this close.
    #[arg(long, value_name = "MARGIN", default_value_t = 0.0, allow_hyphen_values = true)]
    pub(crate) margin: f64,
    /// The arithmetic in which predictions must hold
    ///
    /// In all but `exact`, robust is what no evaluation of the network changes,
    /// in whatever order it adds up.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) arithmetic: ArithmeticChoice,
}

/// What is written for a sceptic, and whether that is checked at once.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct ProofArguments {
    /// Write what `nodeproof check` needs to see for itself that nodes are robust
    ///
    /// Margins are then what it can show, which is less than the engines know, and the bound of `tight` comes first. It takes `--out`;
    /// deletions of edges have no proofs, and mostly need none.
    #[arg(long, help_heading = "Output")]
    pub(crate) proof: bool,
    /// Check the results once they are written, as `nodeproof check` does
    ///
    /// The exit code is 1 if one is rejected. It takes `--out FILE`, and `--proof` unless edges are deleted. Nodes with too many sets of
    /// deletions to go through are not checked; robust ones among them do not count for `--fail-under`.
    #[arg(long, requires = "out", help_heading = "Running")]
    pub(crate) check: bool,
}

/// How many threads to use.
#[derive(Debug, Clone, Copy, Args)]
#[command(next_help_heading = "Running")]
pub(crate) struct ThreadArguments {
    /// Threads to use; 0 takes as many as there are cores. Results do not depend on it
    #[arg(long, value_name = "N", default_value_t = 0)]
    threads: usize,
}

impl ThreadArguments {
    /// The number of threads, as the library takes it.
    pub(crate) fn count(self) -> usize {
        self.threads
    }
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

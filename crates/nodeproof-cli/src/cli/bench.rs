//! Arguments of `bench`.

use clap::{Args, Subcommand};

use std::path::PathBuf;

use nodeproof::LocalBudget;

use super::choices::{EngineChoice, MethodChoice};
use super::{BudgetArguments, BudgetListArguments, GraphArguments, ModelArguments, PrintArguments, TimeLimitArguments};
use crate::values::{self, HiddenSizes, Limit, Sizes};

const CERTIFY_EXAMPLES: &str = "\
Examples:
  nodeproof bench certify --graph g.npz --model m.safetensors --global-budget 12
  nodeproof bench certify --graph g.npz --model m.safetensors \\
      --global-budget 12 --sample 200 --json";

const ENGINES_EXAMPLES: &str = "\
Examples:
  nodeproof bench engines --graph g.npz --model m.safetensors
  nodeproof bench engines --graph g.npz --model m.safetensors --budgets 12 \\
      --sample 500 --time-limit 60 --markdown";

const SCALE_EXAMPLES: &str = "\
Examples:
  nodeproof bench scale
  nodeproof bench scale --sizes 10000,100000,1000000 --markdown
  nodeproof bench scale --degree 25 --hub 500 --engine complete --sample 1000";

const TRAIN_EXAMPLES: &str = "\
Examples:
  nodeproof bench train --graph g.npz --global-budget 12
  nodeproof bench train --graph g.npz --global-budget 12 --method rh \\
      --steps 20 --json";

#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    /// Time certification against the plain dense formula
    ///
    /// Certifies every node on one thread and then on all, evaluates the paper's formulas densely on a sample of the
    /// same nodes, and prints CPU seconds and ratios. The machine should have nothing else to do.
    #[command(
        after_help = CERTIFY_EXAMPLES,
        override_usage = "nodeproof bench certify --graph <FILE> --model <FILE>\n                               --global-budget <Q> [OPTIONS]"
    )]
    Certify(BenchCertifyArguments),
    /// Compare the engines: what each decides, and how long it takes
    ///
    /// Certifies the same nodes with each engine under several global budgets, on one thread, and prints the shares of the
    /// verdicts, CPU seconds for all nodes together, and the time that single nodes take. The machine should have nothing
    /// else to do.
    #[command(
        after_help = ENGINES_EXAMPLES,
        override_usage = "nodeproof bench engines --graph <FILE> --model <FILE> [OPTIONS]"
    )]
    Engines(BenchEnginesArguments),
    /// Measure how the cost of certificates grows with the graph
    ///
    /// Draws a graph of each size, all of one family, as `nodeproof data synth` does, certifies its nodes on one thread, and
    /// prints CPU seconds for what is prepared once and for each node, peak memory, and the power laws that fit the time a
    /// node takes best. The machine should have nothing else to do.
    #[command(after_help = SCALE_EXAMPLES, override_usage = "nodeproof bench scale [OPTIONS]")]
    Scale(BenchScaleArguments),
    /// Time the steps of training
    ///
    /// Trains for a while, then measures CPU seconds a step on one thread and how they divide, with the batch of the
    /// method and with 40 nodes (the reference implementation takes 5 times 8 an iteration), and the gain of more
    /// threads. With rh-u, its second phase is measured. The machine should have nothing else to do.
    #[command(
        after_help = TRAIN_EXAMPLES,
        mut_arg("split", |split| split.help_heading("Split").long_help(None)),
        override_usage = "nodeproof bench train --graph <FILE> --global-budget <Q> [OPTIONS]"
    )]
    Train(BenchTrainArguments),
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

/// Arguments of `bench scale`.
#[derive(Debug, Args)]
pub(crate) struct BenchScaleArguments {
    /// Numbers of nodes
    #[arg(long, value_name = "N,N,…", default_value = "1000,10000,100000", help_heading = "Graphs")]
    pub(crate) sizes: Sizes,
    /// Mean number of neighbours, about
    #[arg(long, value_name = "NUMBER", default_value_t = 7.0, help_heading = "Graphs")]
    pub(crate) degree: f64,
    /// Number of neighbours of the largest node of each class, about
    ///
    /// By default 30 times the mean, if there are enough nodes.
    #[arg(long, value_name = "N", help_heading = "Graphs")]
    pub(crate) hub: Option<u32>,
    /// Seed of the draw
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Graphs")]
    pub(crate) seed: u64,
    /// The network; without it one is trained on the smallest graph (ce, 32 hidden units), the same each time
    #[arg(long, value_name = "FILE", help_heading = "Model")]
    pub(crate) model: Option<PathBuf>,
    /// Most flips in total
    #[arg(long, value_name = "Q", default_value_t = 12, value_parser = values::global_budget, allow_hyphen_values = true, help_heading = "Budget")]
    pub(crate) global_budget: u32,
    /// Most flips at one node: a count, or a share of the attributes
    #[arg(long, value_name = "q|q%", default_value = "1%", value_parser = values::local_budget, allow_hyphen_values = true, help_heading = "Budget")]
    pub(crate) local_budget: LocalBudget,
    /// The strongest engine to use
    #[arg(long, value_name = "WHICH", value_enum, default_value_t = EngineChoice::Fast, help_heading = "Engine")]
    pub(crate) engine: EngineChoice,
    #[command(flatten)]
    pub(crate) limit: TimeLimitArguments,
    /// Nodes of each graph to certify, evenly spaced, or `all`
    ///
    /// What is prepared once is then about what these nodes see, and shared by fewer.
    #[arg(long, value_name = "N|all", default_value = "all", value_parser = values::sample, help_heading = "Running")]
    pub(crate) sample: Limit<usize>,
    #[command(flatten)]
    pub(crate) print: PrintArguments,
    /// Print the table as Markdown
    #[arg(long, conflicts_with = "json", help_heading = "Output")]
    pub(crate) markdown: bool,
}

/// Arguments of `bench train`.
#[derive(Debug, Args)]
pub(crate) struct BenchTrainArguments {
    #[command(flatten)]
    pub(crate) graph: GraphArguments,
    #[command(flatten)]
    pub(crate) budget: BudgetArguments,
    /// The loss to minimise
    #[arg(long, value_name = "WHICH", value_enum, default_value_t = MethodChoice::RhU, help_heading = "Training")]
    pub(crate) method: MethodChoice,
    /// Units of each hidden layer, such as 32 or 64,32; `none` for no hidden layer
    #[arg(long, value_name = "SIZES", help_heading = "Training")]
    pub(crate) hidden: Option<HiddenSizes>,
    /// Nodes whose worst-case margins a step looks at, or `all` [default: that of the method]
    #[arg(long, value_name = "N|all", value_parser = values::batch, help_heading = "Training")]
    pub(crate) batch: Option<Limit<usize>>,
    /// Steps that are measured
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..), help_heading = "Running")]
    pub(crate) steps: u32,
    /// Steps before, so that the weights are those of a network in training
    #[arg(long, value_name = "N", default_value_t = 100, help_heading = "Running")]
    pub(crate) warm_up: u32,
    #[command(flatten)]
    pub(crate) print: PrintArguments,
}

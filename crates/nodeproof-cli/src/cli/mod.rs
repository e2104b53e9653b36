//! The command line as it is typed: commands, options and their help.
//!
//! Arguments become settings once, in `commands`; nothing behind that knows how they were typed.

mod bench;
mod certify;
mod check;
mod choices;
mod collective;
mod data;
mod demo;
mod explain;
#[cfg(feature = "download")]
mod get;
mod groups;
mod manual;
mod merge;
mod model;
mod plot;
mod predict;
mod radius;
mod report;
mod reproduce;
mod train;

use clap::{Parser, Subcommand};

pub(crate) use bench::{
    BenchCertifyArguments, BenchCommand, BenchEnginesArguments, BenchScaleArguments, BenchTrainArguments,
};
pub(crate) use certify::CertifyArguments;
pub(crate) use check::CheckArguments;
pub(crate) use collective::CollectiveArguments;
pub(crate) use data::{DataCommand, DataConvertArguments, DataInfoArguments, DataSplitArguments, DataSynthArguments};
pub(crate) use demo::DemoArguments;
pub(crate) use explain::ExplainArguments;
#[cfg(feature = "download")]
pub(crate) use get::DataGetArguments;
pub(crate) use groups::{
    AskedArguments, BudgetArguments, BudgetListArguments, EdgeArguments, EngineArguments, FlipArguments,
    FlipOrEdgeArguments, GraphArguments, GraphFlags, MaxBudgetArguments, ModelArguments, NodeArguments, PrintArguments,
    ProofArguments, ResultArguments, ShardArguments, SinceArguments, ThreadArguments, TimeLimitArguments,
};
pub(crate) use manual::{CompletionsArguments, ManArguments};
pub(crate) use merge::MergeArguments;
pub(crate) use model::{ModelCommand, ModelConvertArguments, ModelInfoArguments};
pub(crate) use plot::{
    FigureArguments, PlotCertificatesArguments, PlotCollectiveArguments, PlotCommand, PlotComparisonArguments,
    PlotDynamicsArguments, PlotGapArguments, PlotStructureArguments, PlotTruthArguments, RangeArguments,
};
pub(crate) use predict::PredictArguments;
pub(crate) use radius::RadiusArguments;
pub(crate) use report::ReportArguments;
pub(crate) use reproduce::ReproduceArguments;
pub(crate) use train::{OptionArguments, TrainArguments};

const EXIT_CODES: &str = "\
Exit codes:
  0    done
  1    fewer nodes are robust than --fail-under asks for, or one is rejected
  2    bad input or usage, or a file that cannot be read, written or downloaded
  3    internal error; please report it
  130  interrupted; --resume continues certify, radius and train

Examples:
  nodeproof demo
  nodeproof data info g.npz
  nodeproof train --graph g.npz --method rh-u --global-budget 12 \\
      --out m.safetensors
  nodeproof certify --graph g.npz --model m.safetensors --global-budget 12
  nodeproof radius --graph g.npz --model m.safetensors
  nodeproof explain --graph g.npz --model m.safetensors --global-budget 12 \\
      --node 17";

/// Proves that a graph neural network's predictions hold when node attributes are tampered with
///
/// A graph neural network predicts the class of a node from the attributes of that node and its
/// neighbours. nodeproof proves which predictions no attacker with a given budget of attribute flips can change, and
/// shows the flips (a witness) that change one where it finds them. With --delete-edges the attacker deletes edges
/// instead.
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
    /// Trains a standard and a robust network on the bundled graph, certifies both, compares them, and shows what an
    /// attacker would do to one node. Each step shows the command line that does the same. Nothing is downloaded.
    #[command(after_help = demo::EXAMPLES)]
    Demo(DemoArguments),
    /// Prove which predictions hold, node by node
    ///
    /// Gives every node a verdict: robust (no admissible set of flips changes its class, or of deleted edges with
    /// --delete-edges), nonrobust (a witness that does is shown) or undecided. Prints a summary, with --engine fast also the
    /// mean of the nodes' smallest lower bounds; --out keeps the certificates.
    #[command(after_help = certify::EXAMPLES, override_usage = certify::USAGE)]
    Certify(CertifyArguments),
    /// See for yourself whether certificates are right
    ///
    /// Checks every certificate of a file with a program that has none of the code of the engines that found them, but
    /// one bound of its own, in arithmetic that rounds outwards: `robust` is accepted where that bound, or the proof that
    /// `certify --proof` wrote, shows it, and `nonrobust` where the witness is within the budget and changes the class in exact
    /// arithmetic.
    ///
    /// Deletions of edges need no proof: all sets that a node may notice are tried, up to 20,000 of them. Where there are
    /// more, only single deletions are, and unless one speaks against it the node counts as not checked.
    ///
    /// Of collective certificates, the bound is added up anew from the multipliers that they have, and the attack is tried.
    ///
    /// The exit code is 1 if something is rejected, and 0 if nothing is, whether or not some nodes were not checked; --json lists both.
    #[command(after_help = check::EXAMPLES, override_usage = check::USAGE)]
    Check(CheckArguments),
    /// Put the parts of a run together
    ///
    /// Makes one file of certificates or radii of those that `certify --shard` and `radius --shard` wrote, on one machine or on
    /// several. It has the bytes that one run of all nodes writes.
    #[command(after_help = merge::EXAMPLES, override_usage = merge::USAGE)]
    Merge(MergeArguments),
    /// Show what the network says of nodes as they are
    ///
    /// Prints label, predicted class and how far it is ahead of the next one; --csv keeps all logits.
    #[command(after_help = predict::EXAMPLES, override_usage = predict::USAGE)]
    Predict(PredictArguments),
    /// Tell the story of one node
    ///
    /// Shows prediction, verdict, the margin to every other class before and under attack, and the smallest set of flips, or
    /// of deleted edges, found that changes the prediction, in words where the graph has names.
    #[command(after_help = explain::EXAMPLES, override_usage = explain::USAGE)]
    Explain(ExplainArguments),
    /// Find how many flips each prediction withstands
    ///
    /// The radius of a node is the largest global budget under which it is robust. It is found by bisection over global
    /// budgets, from below (robust) and from above (a witness); where the two meet it is exact. With the `complete`
    /// engine and enough time all are. Prints a table and a histogram, which counts a node whose radius is not exact by
    /// the budget it is proven for; --out keeps the radii.
    ///
    /// With --delete-edges Q the radius is the largest number of deleted edges under which the node is robust, up to Q.
    #[command(after_help = radius::EXAMPLES, override_usage = radius::USAGE)]
    Radius(RadiusArguments),
    /// Prove how many predictions one attacker can change at most
    ///
    /// One set of flips, anywhere in the graph, is made for all predictions together: how many can it change? Prints for each
    /// global budget the proven maximum and the best attack that was found, which a pass over the whole network has
    /// confirmed. With a budget of 1 all flips of bits are tried, so that the two are equal. A prediction that is wrong
    /// already (--class label) counts as changed.
    ///
    /// It needs the radius of each node, and finds it first unless --radii has it. Deletions of edges are not covered.
    #[command(after_help = collective::EXAMPLES, override_usage = collective::USAGE)]
    Collective(CollectiveArguments),
    /// Make a report: one HTML page to look at and to hand on
    ///
    /// Writes certificates and radii, of one model or of several side by side, into one HTML file that needs no network:
    /// shares and curves, what the guarantee means, a table of all nodes, and for each node its surroundings, its
    /// margins and the flips or deletions that change its class, in words.
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
    /// the paper's table and figures, ours beside the published ones. A run that was stopped continues where it was when the
    /// same command is given again. With --quick it takes a quarter of an hour on two cores.
    #[command(after_help = reproduce::EXAMPLES)]
    Reproduce(ReproduceArguments),
    /// Train a network, standard or robust
    ///
    /// Learns from the labelled nodes of a split by cross entropy or by a robust loss, which makes worst-case margins
    /// large, and certifies the result under the same budget with the `fast` engine, or with `tight` from two hidden layers
    /// on and where attributes are not plain bits. Training options that are left out depend on the method; their defaults
    /// are listed below. The same command gives the same bytes.
    #[command(
        after_help = train::after_help(),
        mut_arg("split", |split| split.help_heading("Split").long_help(None)),
        override_usage = train::USAGE
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
    /// For bash, elvish, fish, PowerShell and zsh. Where the script goes depends on the shell; see the examples.
    #[command(after_help = manual::COMPLETIONS_EXAMPLES)]
    Completions(CompletionsArguments),
    /// Print the manual page, or write those of all commands
    ///
    /// The pages say what --help says, for `man`.
    #[command(after_help = manual::MAN_EXAMPLES)]
    Man(ManArguments),
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

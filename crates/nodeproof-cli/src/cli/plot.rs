//! Arguments of `plot`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{BudgetArguments, GraphArguments, ModelArguments, NodeArguments, ThreadArguments};
use crate::values::{self, Budgets, NamedFile};

const CERTIFICATES_EXAMPLES: &str = "\
Examples:
  nodeproof radius --graph g.npz --model m.safetensors --engine fast \\
      --out radii.jsonl
  nodeproof plot certificates radii.jsonl --out certificates.svg

  # robust training against standard training
  nodeproof plot certificates rh-u.jsonl --against standard=ce.jsonl \\
      --out robust.png

  # with published curves
  nodeproof plot certificates radii.jsonl --reference published=paper.csv \\
      --out certificates.svg";

const COMPARISON_EXAMPLES: &str = "\
Examples:
  nodeproof plot comparison RH-U=rh-u.jsonl RCE=rce.jsonl CE=ce.jsonl \\
      --out comparison.svg

  # dotted curves, in the colours of the models of the same names
  nodeproof plot comparison RH-U=rh-u.jsonl CE=ce.jsonl \\
      --reference published=paper.csv --out comparison.svg

  # models that were trained for different budgets, each marked on its curve
  nodeproof plot comparison Q12=a.jsonl Q24=b.jsonl Q48=c.jsonl \\
      --trained-for 12,24,48 --out budgets.svg";

const PURITY_EXAMPLES: &str = "\
Examples:
  nodeproof plot purity radii.jsonl --graph g.npz --out purity.svg
  nodeproof plot purity radii.jsonl --graph counts.npz --binarise \\
      --out purity.png --dpi 600";

const DEGREE_EXAMPLES: &str = "\
Examples:
  nodeproof plot degree radii.jsonl --graph g.npz --out degree.svg";

const TRUTH_EXAMPLES: &str = "\
Examples:
  nodeproof radius --graph g.npz --model m.safetensors --engine fast \\
      --out fast.jsonl
  nodeproof radius --graph g.npz --model m.safetensors --out complete.jsonl
  nodeproof plot truth fast.jsonl complete.jsonl --out truth.svg";

const COLLECTIVE_EXAMPLES: &str = "\
Examples:
  nodeproof collective --graph g.npz --model m.safetensors \\
      --global-budget 1,2,5,10,20 --out together.jsonl
  nodeproof plot collective together.jsonl --out together.svg";

const DYNAMICS_EXAMPLES: &str = "\
Examples:
  nodeproof train --graph g.npz --method rh-u --global-budget 12 \\
      --out rh-u.safetensors --log rh-u.jsonl --log-margins 40
  nodeproof train --graph g.npz --method ce --global-budget 12 \\
      --out ce.safetensors --log ce.jsonl --log-margins 40
  nodeproof plot dynamics RH-U=rh-u.jsonl CE=ce.jsonl --out dynamics.svg";

const GAP_EXAMPLES: &str = "\
Examples:
  nodeproof plot gap --graph g.npz --model m.safetensors --global-budget 12 \\
      --out gap.svg";

#[derive(Debug, Subcommand)]
pub(crate) enum PlotCommand {
    /// Draw which share of the nodes is robust and nonrobust, by global budget
    ///
    /// Robust nodes from below, nonrobust ones from above; the white area between is undecided (figure 1 of the paper).
    /// --against draws the curves of another model dashed over it (figures 4 and 5).
    #[command(after_help = CERTIFICATES_EXAMPLES, override_usage = "nodeproof plot certificates <RADII> --out <FILE> [OPTIONS]")]
    Certificates(PlotCertificatesArguments),
    /// Draw which share of the nodes is robust, one line for each model
    ///
    /// Compares models, such as those of several training methods (figure 6 of the paper) or of one method for several
    /// budgets (figure 9).
    #[command(after_help = COMPARISON_EXAMPLES, override_usage = "nodeproof plot comparison <[NAME=]RADII>... --out <FILE> [OPTIONS]")]
    Comparison(PlotComparisonArguments),
    /// Draw robustness against the purity of neighbourhoods
    ///
    /// The largest global budget that each node is proven robust against, and the share of nodes within two hops that the
    /// model assigns the same class (figure 2 of the paper). Dots are nodes; the line is the median of groups of a tenth,
    /// the band their quartiles. Nodes with a neighbour that is not among the radii are left out.
    #[command(after_help = PURITY_EXAMPLES, override_usage = "nodeproof plot purity <RADII> --graph <FILE> --out <FILE> [OPTIONS]")]
    Purity(PlotStructureArguments),
    /// Draw robustness against the degree
    ///
    /// The largest global budget that each node is proven robust against, and its number of neighbours (figure 3 of the
    /// paper). Dots are nodes; the line is the median of groups of degrees, the band their quartiles.
    #[command(after_help = DEGREE_EXAMPLES, override_usage = "nodeproof plot degree <RADII> --graph <FILE> --out <FILE> [OPTIONS]")]
    Degree(PlotStructureArguments),
    /// Draw what the `fast` engine leaves undecided, and what is true
    ///
    /// The areas are the radii of the `complete` engine. What the `fast` engine, the paper's certificate, leaves undecided is
    /// hatched. Both are radii of one model under one budget.
    #[command(after_help = TRUTH_EXAMPLES, override_usage = "nodeproof plot truth <FAST> <COMPLETE> --out <FILE> [OPTIONS]")]
    Truth(PlotTruthArguments),
    /// Draw how many predictions one attacker changes in all
    ///
    /// The share of predictions that change under each global budget: at most, which is proven; by an attack; and, dashed, as
    /// many as single certificates added up would say. What the best attack does lies in the grey area.
    #[command(after_help = COLLECTIVE_EXAMPLES, override_usage = "nodeproof plot collective <FILE> --out <FILE> [OPTIONS]")]
    Collective(PlotCollectiveArguments),
    /// Draw worst-case margins while training
    ///
    /// The mean worst-case margin of labelled and unlabelled nodes, step by step, with lines at the margins M1 and M2
    /// that robust training aims at (figure 8 of the paper). Single steps are faint, the lines a moving average.
    #[command(after_help = DYNAMICS_EXAMPLES, override_usage = "nodeproof plot dynamics <[NAME=]LOG>... --out <FILE> [OPTIONS]")]
    Dynamics(PlotDynamicsArguments),
    /// Draw how tight the bounds are, with default and with optimised slopes
    ///
    /// Certifies each node with the `fast` engine (default slopes) and the `tight` one (optimised), and draws for which share of the
    /// nodes the lower bound and the best attack are at most so far apart (figure 7 of the paper).
    #[command(
        after_help = GAP_EXAMPLES,
        override_usage = "nodeproof plot gap --graph <FILE> --model <FILE> --global-budget <Q>\n                          --out <FILE> [OPTIONS]"
    )]
    Gap(Box<PlotGapArguments>),
}

/// The figure as a file.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct FigureArguments {
    /// Write the figure to this file, as its name says: .svg or .png; may be given for both
    #[arg(long, value_name = "FILE", required = true)]
    pub(crate) out: Vec<PathBuf>,
    /// Width in millimetres; 84 is a column of a paper
    #[arg(long, value_name = "MM", default_value = "84", value_parser = values::millimetres, allow_hyphen_values = true)]
    pub(crate) width: f64,
    /// Height in millimetres
    #[arg(long, value_name = "MM", default_value = "58", value_parser = values::millimetres, allow_hyphen_values = true)]
    pub(crate) height: f64,
    /// Pixels in an inch of a .png [default: 300]
    #[arg(long, value_name = "N", value_parser = values::dots_per_inch, allow_hyphen_values = true)]
    pub(crate) dpi: Option<f64>,
    /// Title above the figure
    #[arg(long, value_name = "TEXT")]
    pub(crate) title: Option<String>,
    /// Print no notes and not where the figure is
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// How much of the radii is shown.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct RangeArguments {
    /// Show global budgets up to this one [default: until nothing changes]
    #[arg(long, value_name = "Q", value_parser = values::global_budget, allow_hyphen_values = true)]
    pub(crate) up_to: Option<u32>,
}

/// Curves from elsewhere.
#[derive(Debug, Args)]
pub(crate) struct ReferenceArguments {
    /// Curves from elsewhere, drawn dotted: a CSV file
    ///
    /// Its first column is the global budget; the others, named in the first row, are percentages of nodes. NAME= says what
    /// they are called [default: the name of the file].
    #[arg(long, value_name = "[NAME=]CSV")]
    pub(crate) reference: Option<NamedFile>,
}

/// Arguments of `plot certificates`.
#[derive(Debug, Args)]
pub(crate) struct PlotCertificatesArguments {
    /// Radii (`radius --out`), and what their model is called
    #[arg(value_name = "[NAME=]RADII")]
    pub(crate) radii: NamedFile,
    /// Radii of another model, drawn dashed
    #[arg(long, value_name = "[NAME=]RADII")]
    pub(crate) against: Option<NamedFile>,
    #[command(flatten)]
    pub(crate) reference: ReferenceArguments,
    #[command(flatten)]
    pub(crate) range: RangeArguments,
    #[command(flatten)]
    pub(crate) figure: FigureArguments,
}

/// Arguments of `plot comparison`.
#[derive(Debug, Args)]
pub(crate) struct PlotComparisonArguments {
    /// Radii (`radius --out`) of each model, and what it is called [default: the name of the file]
    #[arg(required = true, value_name = "[NAME=]RADII")]
    pub(crate) radii: Vec<NamedFile>,
    /// Global budgets that the first models were trained for, in the same order; marked on the curves
    #[arg(long, value_name = "Q,Q,…", allow_hyphen_values = true)]
    pub(crate) trained_for: Option<Budgets>,
    #[command(flatten)]
    pub(crate) reference: ReferenceArguments,
    #[command(flatten)]
    pub(crate) range: RangeArguments,
    #[command(flatten)]
    pub(crate) figure: FigureArguments,
}

/// Arguments of `plot purity` and `plot degree`.
#[derive(Debug, Args)]
pub(crate) struct PlotStructureArguments {
    /// Radii (`radius --out`)
    pub(crate) radii: PathBuf,
    #[command(flatten)]
    pub(crate) graph: GraphArguments,
    #[command(flatten)]
    pub(crate) range: RangeArguments,
    #[command(flatten)]
    pub(crate) figure: FigureArguments,
}

/// Arguments of `plot truth`.
#[derive(Debug, Args)]
pub(crate) struct PlotTruthArguments {
    /// Radii of the `fast` engine
    pub(crate) fast: PathBuf,
    /// Radii of the `complete` engine
    pub(crate) complete: PathBuf,
    #[command(flatten)]
    pub(crate) range: RangeArguments,
    #[command(flatten)]
    pub(crate) figure: FigureArguments,
}

/// Arguments of `plot collective`.
#[derive(Debug, Args)]
pub(crate) struct PlotCollectiveArguments {
    /// Collective certificates (`collective --out`)
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) figure: FigureArguments,
}

/// Arguments of `plot dynamics`.
#[derive(Debug, Args)]
pub(crate) struct PlotDynamicsArguments {
    /// Training logs (`train --log`), and what each is called [default: the name of the file]
    #[arg(required = true, value_name = "[NAME=]LOG")]
    pub(crate) logs: Vec<NamedFile>,
    #[command(flatten)]
    pub(crate) figure: FigureArguments,
}

/// Arguments of `plot gap`.
#[derive(Debug, Args)]
pub(crate) struct PlotGapArguments {
    #[command(flatten)]
    pub(crate) graph: GraphArguments,
    #[command(flatten)]
    pub(crate) model: ModelArguments,
    #[command(flatten)]
    pub(crate) budget: BudgetArguments,
    #[command(flatten)]
    pub(crate) nodes: NodeArguments,
    #[command(flatten)]
    pub(crate) figure: FigureArguments,
    #[command(flatten)]
    pub(crate) threads: ThreadArguments,
}

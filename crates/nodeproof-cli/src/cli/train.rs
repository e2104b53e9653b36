//! Arguments of `train`.

use std::path::PathBuf;

use clap::Args;
use nodeproof::{Architecture, Method, Schedule, TrainSettings};

use super::choices::{ArchitectureChoice, MethodChoice, PropagationChoice, ScheduleChoice, WorstCaseChoice};
use super::{BudgetArguments, GraphArguments, ThreadArguments};
use crate::values::{self, HiddenSizes, Limit, Share};
use crate::words;

const EXAMPLES: &str = "\
Examples:
  # 10% of each class labelled, as in the paper
  nodeproof train --graph g.npz --method rh-u --global-budget 12 \\
      --out m.safetensors

  # a run that can be killed at any time and started again by the same line
  nodeproof train --graph g.npz --method rh --global-budget 12 \\
      --out m.safetensors --log m.jsonl --checkpoint m.checkpoint --resume

  # mean and standard deviation over 5 splits: m-0.safetensors to m-4…
  nodeproof train --graph g.npz --method ce --global-budget 12 \\
      --splits 5 --average-radius --out m.safetensors

  # GraphSAGE instead of a GCN
  nodeproof train --graph g.npz --method rh-u --global-budget 12 \\
      --architecture sage --out m.safetensors

  # a large graph: a step looks at 512 labelled nodes, and nothing at all
  # nodes; nodeproof certify says what the network is worth
  nodeproof train --graph large.npz --method rh-u --global-budget 12 \\
      --labelled-batch 512 --no-evaluation --out m.safetensors

  # a split of your own, two hidden layers
  nodeproof train --graph g.npz --method rce --global-budget 12 \\
      --split split.json --hidden 64,32 --out m.safetensors";

pub(super) const USAGE: &str = "nodeproof train --graph <FILE> --method <WHICH> --global-budget <Q>
                       --out <FILE> [OPTIONS]";

/// Weights that suit a graph: see [`TrainSettings::suited_to`].
const SUITED: &str = "\
\nSuited to the graph, with few = 300 / labelled nodes, at most 1:
  weight decay        ce 0.01, rce 0.01 few, rh 0.03 few,
                      rh-u 0.1 times the share of ones among the attributes
  robust weight       rce 1, rh 0.2, rh-u 0.6 few,
                      with first-order times the number of hidden layers
  attribute dropout   rce and rh 0.35 few, rh-u 0
  worst case          dual for up to one hidden layer, otherwise first-order
  dropout             gin 0, all others 0.5
";

/// What stands below the options: the defaults of each method, and examples.
pub(super) fn after_help() -> String {
    format!("{}\n{EXAMPLES}", defaults())
}

/// The defaults of each method, as a table; a dash where the method has no use for the option.
fn defaults() -> String {
    let all = Method::ALL.map(TrainSettings::new);
    let mut text = format!("{:24}", "Defaults of the methods:");
    all.iter().for_each(|settings| text += &format!("{:>9}", settings.method));
    text.push('\n');
    let mut row = |option: &str, value: &dyn Fn(&TrainSettings) -> String| {
        text += &format!("  {:22}", words::flag(option));
        for settings in &all {
            let used = settings.method.check_use(option).is_ok();
            let value = if used { value(settings) } else { "–".to_owned() };
            text += &format!("{value:>9}");
        }
        text.push('\n');
    };
    row("steps", &|settings| settings.steps.to_string());
    row("labelled_steps", &|settings| settings.labelled_steps.to_string());
    row("batch", &|settings| limit_in_words(settings.batch, "all"));
    row("labelled_batch", &|settings| limit_in_words(settings.labelled_batch, "all"));
    row("learning_rate", &|settings| settings.learning_rate.to_string());
    row("schedule", &|settings| schedule_name(settings.schedule));
    row("weight_decay", &|settings| limit_in_words(settings.weight_decay, "suited"));
    row("dropout", &|settings| limit_in_words(settings.dropout, "suited"));
    row("attribute_dropout", &|settings| limit_in_words(settings.attribute_dropout, "suited"));
    row("cross_entropy_weight", &|settings| settings.cross_entropy_weight.to_string());
    row("robust_weight", &|settings| limit_in_words(settings.robust_weight, "suited"));
    row("worst_case", &|settings| limit_in_words(settings.worst_case, "suited"));
    row("warm_up", &|settings| settings.warm_up.to_string());
    row("labelled_margin", &|settings| format!("{:.3}", settings.labelled_margin));
    row("unlabelled_margin", &|settings| format!("{:.3}", settings.unlabelled_margin));
    row("saturation", &|settings| limit_in_words(settings.saturation, "none"));
    row("clip", &|settings| limit_in_words(settings.clip, "none"));
    row("patience", &|settings| limit_in_words(settings.patience, "none"));
    text + SUITED + &architectures()
}

fn limit_in_words(limit: Option<impl ToString>, none: &str) -> String {
    limit.map_or(none.to_owned(), |limit| limit.to_string())
}

fn hidden_in_words(sizes: &[usize]) -> String {
    if sizes.is_empty() {
        return "none".to_owned();
    }
    sizes.iter().map(usize::to_string).collect::<Vec<_>>().join(",")
}

fn schedule_name(schedule: Schedule) -> String {
    format!("{schedule:?}").to_lowercase()
}

/// What `--hidden` and `--propagation` mean to each architecture, with the default sizes.
fn architectures() -> String {
    let mut text = "\nArchitectures, with their default --hidden:\n".to_owned();
    for architecture in Architecture::ALL {
        let hidden = hidden_in_words(architecture.default_hidden());
        text += &format!("  {:6} {hidden:9} {}\n", architecture, meaning_of_hidden(architecture));
    }
    let without: Vec<_> = Architecture::ALL.into_iter().filter(|which| !which.has_propagation()).collect();
    let without: Vec<_> = without.into_iter().map(Architecture::name).collect();
    text + &format!("--propagation is of no use with {}.\n", without.join(", "))
}

fn meaning_of_hidden(architecture: Architecture) -> &'static str {
    match architecture {
        Architecture::Gcn | Architecture::Sage => "units between convolutions",
        Architecture::Gin => "units between convolutions, and inside them",
        Architecture::Sgc => "none possible",
        Architecture::Appnp => "units of the perceptron before the ten steps",
        Architecture::Gcnii => "units of the first layer and of each convolution, all equal",
        Architecture::Mlp => "units of each hidden layer",
        _ => "units of the hidden layers",
    }
}

/// Arguments of `train`.
#[derive(Debug, Args)]
pub(crate) struct TrainArguments {
    #[command(flatten)]
    pub(crate) graph: GraphArguments,
    /// The loss to minimise
    #[arg(long, value_name = "WHICH", value_enum, help_heading = "Training")]
    pub(crate) method: MethodChoice,
    #[command(flatten)]
    pub(crate) options: OptionArguments,
    #[command(flatten)]
    pub(crate) budget: BudgetArguments,
    #[command(flatten)]
    pub(crate) split: SplitArguments,
    #[command(flatten)]
    pub(crate) output: TrainOutputArguments,
    #[command(flatten)]
    pub(crate) threads: ThreadArguments,
}

/// How the network is trained; an option that is left out has the default of the method.
#[derive(Debug, Args)]
#[command(next_help_heading = "Training")]
pub(crate) struct OptionArguments {
    /// How the layers of the network are put together
    #[arg(long, value_name = "WHICH", value_enum, default_value_t = ArchitectureChoice::Gcn)]
    pub(crate) architecture: ArchitectureChoice,
    /// Units of each hidden layer, such as 32 or 64,32; `none` for no hidden layer
    #[arg(long, value_name = "SIZES")]
    pub(crate) hidden: Option<HiddenSizes>,
    /// Most steps; with rh-u, those after --labelled-steps
    #[arg(long, value_name = "N")]
    pub(crate) steps: Option<usize>,
    /// Most steps of the first phase of rh-u, on labelled nodes alone
    #[arg(long, value_name = "N")]
    pub(crate) labelled_steps: Option<usize>,
    /// Nodes whose worst-case margins a step looks at, or `all`
    #[arg(long, value_name = "N|all", value_parser = values::batch)]
    pub(crate) batch: Option<Limit<usize>>,
    /// Labelled nodes whose cross entropy a step looks at, drawn anew each time, or `all` [default: all]
    #[arg(long, value_name = "N|all", value_parser = values::batch)]
    pub(crate) labelled_batch: Option<Limit<usize>>,
    /// Learning rate of Adam
    #[arg(long, value_name = "RATE", allow_negative_numbers = true)]
    pub(crate) learning_rate: Option<f64>,
    /// How the learning rate changes
    #[arg(long, value_name = "WHICH", value_enum)]
    pub(crate) schedule: Option<ScheduleChoice>,
    /// Weight of the L2 term on weights
    #[arg(long, value_name = "WEIGHT", allow_negative_numbers = true)]
    pub(crate) weight_decay: Option<f64>,
    /// Share of hidden activations left out of the cross entropy in each step, such as 0.5
    #[arg(long, value_name = "RATE", allow_negative_numbers = true)]
    pub(crate) dropout: Option<f64>,
    /// Share of each node's attributes taken as 0 in the worst-case loss of a step, such as 0.3
    #[arg(long, value_name = "RATE", allow_negative_numbers = true)]
    pub(crate) attribute_dropout: Option<f64>,
    /// Weight of the cross entropy of the network as it is
    #[arg(long, value_name = "WEIGHT", allow_negative_numbers = true)]
    pub(crate) cross_entropy_weight: Option<f64>,
    /// Weight of the worst-case loss
    #[arg(long, value_name = "WEIGHT", allow_negative_numbers = true)]
    pub(crate) robust_weight: Option<f64>,
    /// What worst-case margins are taken to be
    #[arg(long, value_name = "WHICH", value_enum)]
    pub(crate) worst_case: Option<WorstCaseChoice>,
    /// Steps over which the weight of the worst-case loss grows from 0 to its full value
    #[arg(long, value_name = "N")]
    pub(crate) warm_up: Option<usize>,
    /// The worst-case margin that rh and rh-u ask for at labelled nodes
    #[arg(long, value_name = "MARGIN", allow_negative_numbers = true)]
    pub(crate) labelled_margin: Option<f64>,
    /// The worst-case margin that rh-u asks for at unlabelled nodes
    #[arg(long, value_name = "MARGIN", allow_negative_numbers = true)]
    pub(crate) unlabelled_margin: Option<f64>,
    /// How much of its margin an unlabelled node may lack until its gradient is halved; `none` as in the paper
    #[arg(long, value_name = "MARGIN|none", value_parser = values::positive_or_none, allow_negative_numbers = true)]
    pub(crate) saturation: Option<Limit<f64>>,
    /// Longest gradient; a longer one is scaled down. `none` for any length
    #[arg(long, value_name = "NORM|none", value_parser = values::positive_or_none, allow_negative_numbers = true)]
    pub(crate) clip: Option<Limit<f64>>,
    /// Steps without a better loss (of the validation part, if there is one) that end a phase, or `none`
    #[arg(long, value_name = "N|none", value_parser = values::patience)]
    pub(crate) patience: Option<Limit<usize>>,
    /// What a node takes from its neighbours [default: symmetric-gcn]
    #[arg(long, value_name = "WHICH", value_enum)]
    pub(crate) propagation: Option<PropagationChoice>,
    /// Seed of initialisation, dropout and batches
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
}

/// Which nodes are labelled: a file (--split), or a draw.
#[derive(Debug, Args)]
#[command(next_help_heading = "Split")]
pub(crate) struct SplitArguments {
    /// Share of each class that is labelled
    #[arg(long, value_name = "SHARE", default_value = "10%", conflicts_with = "split")]
    pub(crate) train: Share,
    /// Number of nodes of each class that are labelled, instead of a share
    #[arg(long, value_name = "N", conflicts_with_all = ["train", "split"])]
    pub(crate) train_per_class: Option<u32>,
    /// Share of each class held back to judge when to stop (see --patience)
    #[arg(long, value_name = "SHARE", default_value = "0%", conflicts_with = "split")]
    pub(crate) validation: Share,
    /// Seed of the draw [default: --seed]
    #[arg(long, value_name = "N", conflicts_with = "split")]
    pub(crate) split_seed: Option<u64>,
    /// Write the split that was drawn, as JSON
    #[arg(long, value_name = "FILE", conflicts_with = "split")]
    pub(crate) write_split: Option<PathBuf>,
    /// Draw this many splits and train on each, with mean and standard deviation at the end
    ///
    /// The seeds of draw and training count upwards from split to split. Files are numbered: m.safetensors becomes
    /// m-0.safetensors, m-1.safetensors, …, and so for every file written.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1000), conflicts_with = "split")]
    pub(crate) splits: u16,
}

/// What is written, and what is measured at the end.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct TrainOutputArguments {
    /// Write the model here, as .safetensors; `nodeproof model info` shows how it was trained
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,
    /// Write loss, margins and accuracies of each step, as JSON Lines
    ///
    /// Until training has ended they are in FILE.unfinished.
    #[arg(long, value_name = "FILE")]
    pub(crate) log: Option<PathBuf>,
    /// Certify N labelled and N unlabelled nodes before each step, and log their mean margins where the method has none
    #[arg(long, value_name = "N", default_value_t = 0, requires = "log")]
    pub(crate) log_margins: usize,
    /// Keep here what is needed to continue after an interrupt
    #[arg(long, value_name = "FILE")]
    pub(crate) checkpoint: Option<PathBuf>,
    /// Steps between two checkpoints
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..), requires = "checkpoint")]
    pub(crate) checkpoint_every: u32,
    /// Continue from --checkpoint with the same settings; without that file, begin
    ///
    /// The result is the same to the last bit as that of a run that never stopped.
    #[arg(long, requires = "checkpoint")]
    pub(crate) resume: bool,
    /// Also find the largest global budget that each node withstands, and print the mean
    ///
    /// Certifies with the `fast` engine under global budgets of 1, 2, 3, … flips, each time the nodes that were robust
    /// before, until none is or --max-budget is reached; a node's largest budget is the last one it was robust under.
    /// `nodeproof radius --engine fast --scan` finds the same.
    #[arg(long)]
    pub(crate) average_radius: bool,
    /// Largest global budget that --average-radius tries
    #[arg(long, value_name = "Q", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..), requires = "average_radius")]
    pub(crate) max_budget: u32,
    /// Look at nothing that takes time for every node: neither accuracies, in progress and log, nor verdicts at the end
    ///
    /// The summary and the model's metadata then say nothing of what the network is worth; `nodeproof certify` does.
    #[arg(long, conflicts_with_all = ["average_radius", "log_margins"])]
    pub(crate) no_evaluation: bool,
    /// Print the summary as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Print neither progress nor notes, nor the summary unless --json asks for it
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_those_of_the_library() {
        let table = defaults();
        assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
        let rate = table.lines().find(|line| line.contains("--learning-rate")).unwrap();
        let shown: Vec<f64> = rate.split_whitespace().skip(1).map(|rate| rate.parse().unwrap()).collect();
        assert_eq!(shown, Method::ALL.map(|method| TrainSettings::new(method).learning_rate));
        let batch: Vec<_> = table.lines().find(|line| line.contains("--batch")).unwrap().split_whitespace().collect();
        assert_eq!(batch[1], "–", "of no use with ce");
        let gcnii = table.lines().find(|line| line.contains("gcnii ")).unwrap();
        assert!(gcnii.contains("32,32,32"), "{gcnii}");
        assert!(table.contains("of no use with sage, gin, mlp"), "{table}");
    }
}

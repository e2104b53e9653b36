//! What can be asked for, and which of it makes no sense: one type for each kind of work, with `validate()`, for every front.

mod architecture;
mod arithmetic;
mod certification;
mod training;

use crate::budget::BudgetError;
use crate::ids::{ClassId, NodeId};
use crate::model::ModelError;
use crate::nearest::did_you_mean;

pub use architecture::Architecture;
pub use arithmetic::{Arithmetic, Roundoff};
pub use certification::{
    CertifySettings, Engine, TargetClass, asked_in_words, check_threads, memory_limit, time_limit,
};
pub use training::{Method, Schedule, TrainSettings, WorstCase, check_hinge};

/// What can be wrong with settings.
///
/// Each front has its own way to write an option (`time_limit`, `--time-limit`): [`SettingsError::in_words`] takes it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// An option with a value that makes no sense.
    #[error("{option} is {value}; {remedy}")]
    Value {
        /// The option.
        option: &'static str,
        /// Its value.
        value: String,
        /// What to give instead.
        remedy: String,
    },
    /// A method of training against an attacker, without a budget for that.
    #[error("method {method} trains against a budget; give {option}, such as 12, or train by ce")]
    NoBudget {
        /// The option.
        option: &'static str,
        /// The method.
        method: Method,
    },
    /// An option that the method of training has no use for.
    #[error("{option}: method {method} has no use for it; leave it out, or choose {used_by}")]
    Unused {
        /// The option.
        option: &'static str,
        /// The method.
        method: Method,
        /// The methods that use it.
        used_by: String,
    },
    /// A propagation for a network that has none to choose.
    #[error("{option}: architecture {architecture} has none to choose; leave it out, or choose {used_by}")]
    NoPropagation {
        /// The option.
        option: &'static str,
        /// The architecture.
        architecture: Architecture,
        /// The architectures that have one.
        used_by: String,
    },
    /// A scan with another engine than the one it is about.
    #[error(
        "a scan is the paper's measure, which is about the fast engine, not {}; choose the fast engine, or find radii by \
         bisection instead of a scan", engine.name()
    )]
    Scan {
        /// The engine.
        engine: Engine,
    },
    /// A node that the graph does not have.
    #[error("node {node} does not exist: the graph has {nodes} nodes, numbered from 0")]
    NoSuchNode {
        /// The node.
        node: NodeId,
        /// Number of nodes.
        nodes: usize,
    },
    /// Labels are to be certified, but the graph has none.
    #[error("the graph has no labels; add a `labels` array to its file, or certify the predicted classes")]
    NoLabels,
    /// Labels are to be certified, but some nodes have none.
    #[error(
        "{} no label, the first is node {first}; leave such nodes out, or certify the predicted classes",
        if *count == 1 { "1 node has".to_owned() } else { format!("{count} nodes have") }
    )]
    WithoutLabel {
        /// The first such node.
        first: NodeId,
        /// How many there are.
        count: usize,
    },
    /// A split of another graph.
    #[error("the split is one of {split} nodes, but the graph has {nodes}; draw a split of this graph")]
    Split {
        /// Nodes of the split.
        split: usize,
        /// Nodes of the graph.
        nodes: usize,
    },
    /// There is nothing to learn from.
    #[error("the train part of the split has no labelled node; give the graph labels, or make the part larger")]
    NothingToLearn,
    /// The graph's labels make fewer than two classes.
    #[error("the graph has {classes} classes; training needs at least two")]
    TooFewClasses {
        /// Number of classes.
        classes: usize,
    },
    /// A class that training never sees, although some node has it.
    #[error("class {class} has no node in the train part of the split; draw a stratified split, or a larger one")]
    UnseenClass {
        /// The class.
        class: ClassId,
    },
    /// More numbers than memory can hold.
    #[error("{what} would take {gigabytes:.0} GB of memory; {remedy}")]
    TooLarge {
        /// What would be too large.
        what: String,
        /// How large.
        gigabytes: f64,
        /// What to do about it.
        remedy: &'static str,
    },
    /// The budget does not fit the graph.
    #[error(transparent)]
    Budget(#[from] BudgetError),
    /// The propagation does not fit the graph.
    #[error(transparent)]
    Model(#[from] ModelError),
}

impl SettingsError {
    /// An option with a value that makes no sense.
    pub fn value(option: &'static str, value: impl ToString, remedy: impl Into<String>) -> Self {
        Self::Value { option, value: value.to_string(), remedy: remedy.into() }
    }

    /// An option that is to be one of these names, and is another.
    pub fn unknown(option: &'static str, given: &str, names: &[&'static str]) -> Self {
        let hint = did_you_mean(given, names.iter().copied());
        Self::value(option, given, format!("choose {}{hint}", one_of(names)))
    }

    /// The error with options written as `name` writes them.
    ///
    /// ```
    /// # use nodeproof_problem::settings::time_limit;
    /// let error = time_limit("time_limit", -1.0).unwrap_err();
    /// let flag = |option: &str| format!("--{}", option.replace('_', "-"));
    /// assert_eq!(error.in_words(flag), "--time-limit is -1; give a number of seconds such as 10");
    /// ```
    pub fn in_words(&self, name: impl Fn(&str) -> String) -> String {
        let text = self.to_string();
        match self {
            // A phrase such as “the weight of every part of the loss” is not the name of an option.
            Self::Value { option, .. }
            | Self::Unused { option, .. }
            | Self::NoBudget { option, .. }
            | Self::NoPropagation { option, .. }
                if !option.contains(' ') =>
            {
                text.replacen(option, &name(option), 1)
            }
            _ => text,
        }
    }
}

/// `a, b or c`.
fn one_of(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [name] => (*name).to_owned(),
        [names @ .., last] => format!("{} or {last}", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Part;
    use crate::model::Propagation;

    #[test]
    fn names_that_are_nearly_right_are_answered_with_the_right_one() {
        let words = |error: SettingsError| error.to_string();
        let engine = words("compleet".parse::<Engine>().unwrap_err());
        assert_eq!(engine, "engine is compleet; choose fast, tight or complete; did you mean complete?");
        assert_eq!(words("ray".parse::<Engine>().unwrap_err()), "engine is ray; choose fast, tight or complete");
        assert!(words("RHU".parse::<Method>().unwrap_err()).ends_with("rh or rh-u; did you mean rh-u?"));
        assert!(words("labels".parse::<TargetClass>().unwrap_err()).ends_with("; did you mean label?"));
        assert!(words("cosin".parse::<Schedule>().unwrap_err()).ends_with("; did you mean cosine?"));
        assert!(words("first_ordr".parse::<WorstCase>().unwrap_err()).ends_with("; did you mean first-order?"));
        assert!(words("F-32".parse::<Arithmetic>().unwrap_err()).ends_with("; did you mean f32?"));
        assert!(words("GCN2".parse::<Architecture>().unwrap_err()).ends_with("; did you mean gcn?"));
        assert!("tset".parse::<Part>().unwrap_err().to_string().ends_with("unlabelled; did you mean test?"));
        assert_eq!(Propagation::did_you_mean("symetric_gcn"), "; did you mean symmetric-gcn?");
    }

    #[test]
    fn methods_that_look_at_an_attacker_need_a_budget() {
        assert!(Method::CrossEntropy.check_budget(false).is_ok() && Method::RobustHinge.check_budget(true).is_ok());
        let error = Method::RobustHinge.check_budget(false).unwrap_err();
        let shown = error.in_words(|option| format!("--{}", option.replace('_', "-")));
        assert_eq!(shown, "method rh trains against a budget; give --global-budget, such as 12, or train by ce");
    }
}

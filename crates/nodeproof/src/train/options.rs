//! How a network is trained, and what can be wrong with that.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize, Serializer};

use crate::budget::{Budget, BudgetError, LocalBudget, Percent};
use crate::graph::{ClassId, Graph, NodeId};
use crate::model::{ModelError, Propagation};

/// Up to this many labelled nodes weights that suit a graph are as large as they get.
const FEW_LABELLED: f64 = 300.0;

/// The loss that is made small.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Method {
    /// Cross entropy of the exact network on the labelled nodes.
    #[serde(rename = "ce")]
    CrossEntropy,
    /// Cross entropy of the worst-case logits of the labelled nodes.
    #[serde(rename = "rce")]
    RobustCrossEntropy,
    /// Hinge loss of the worst-case margins of the labelled nodes, and cross entropy.
    #[serde(rename = "rh")]
    RobustHinge,
    /// The same, with the worst-case margins of unlabelled nodes around their predicted class.
    #[serde(rename = "rh-u")]
    RobustHingeUnlabelled,
}

impl Method {
    /// All methods, in the paper's order.
    pub const ALL: [Self; 4] =
        [Self::CrossEntropy, Self::RobustCrossEntropy, Self::RobustHinge, Self::RobustHingeUnlabelled];

    /// Its short name: `ce`, `rce`, `rh` or `rh-u`.
    pub fn name(self) -> &'static str {
        match self {
            Self::CrossEntropy => "ce",
            Self::RobustCrossEntropy => "rce",
            Self::RobustHinge => "rh",
            Self::RobustHingeUnlabelled => "rh-u",
        }
    }

    /// Whether worst-case margins are part of the loss.
    pub fn is_robust(self) -> bool {
        self != Self::CrossEntropy
    }

    /// Whether a worst-case margin is asked for.
    pub fn has_hinge(self) -> bool {
        matches!(self, Self::RobustHinge | Self::RobustHingeUnlabelled)
    }

    /// Whether unlabelled nodes are part of the loss, after a phase without them.
    pub fn has_two_phases(self) -> bool {
        self == Self::RobustHingeUnlabelled
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Method {
    type Err = TrainError;

    fn from_str(text: &str) -> Result<Self, TrainError> {
        let found = Self::ALL.into_iter().find(|method| method.name() == text);
        found.ok_or_else(|| TrainError::Method(text.to_owned()))
    }
}

/// How the learning rate changes from step to step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Schedule {
    /// It does not.
    #[default]
    Constant,
    /// It falls to 0 along half a cosine over all steps (Loshchilov and Hutter, 2017).
    Cosine,
}

impl Schedule {
    /// The factor of the learning rate when `done` of `steps` steps are done.
    pub(super) fn factor(self, done: usize, steps: usize) -> f64 {
        match self {
            Self::Constant => 1.0,
            Self::Cosine => (1.0 + (std::f64::consts::PI * done as f64 / steps.max(1) as f64).cos()) / 2.0,
        }
    }
}

/// How a network is trained. [`TrainOptions::new`] has the defaults of each method.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct TrainOptions {
    /// The loss.
    pub method: Method,
    /// What the network is to withstand; default 12 flips in all, 1 % of the attributes at one node.
    pub budget: Budget,
    /// Units of each hidden layer; default one layer of 32.
    pub hidden: Vec<usize>,
    /// Most steps. RH-U has its `labelled_steps` before them.
    pub steps: usize,
    /// Most steps of the first phase of RH-U, on labelled nodes alone.
    pub labelled_steps: usize,
    /// Nodes whose worst-case margins a step looks at; `None` for all. The cross entropy is always that of all
    /// labelled nodes.
    pub batch: Option<usize>,
    /// Learning rate of Adam.
    pub learning_rate: f64,
    /// How the learning rate changes.
    pub schedule: Schedule,
    /// Weight of the L2 term on weights; `None` for one that suits method and graph, see [`TrainOptions::suited_to`].
    pub weight_decay: Option<f64>,
    /// Share of hidden activations left out of the cross entropy in each step.
    pub dropout: f64,
    /// Share of each node's attributes that a step takes as 0 in the worst-case loss; `None` for one that suits method and
    /// graph, see [`TrainOptions::suited_to`].
    pub attribute_dropout: Option<f64>,
    /// Weight of the cross entropy of the exact network.
    pub cross_entropy_weight: f64,
    /// Weight of the worst-case loss; `None` for one that suits method and graph, see [`TrainOptions::suited_to`].
    pub robust_weight: Option<f64>,
    /// Steps over which the weight of the worst-case loss grows to what it is.
    pub warm_up: usize,
    /// The worst-case margin asked for at labelled nodes, the paper's M₁; default log(0.9 / 0.1).
    pub labelled_margin: f64,
    /// The worst-case margin asked for at unlabelled nodes, M₂; default log(0.6 / 0.4).
    pub unlabelled_margin: f64,
    /// How much may be missing of the margin of an unlabelled node until its pull on the network is halved. `None` for
    /// the paper's hinge loss: every node pulls alike, also those that no training will make robust.
    pub saturation: Option<f64>,
    /// The gradient is scaled down to this norm where it is longer.
    pub clip: Option<f64>,
    /// A phase ends after this many steps without a better loss: that of the validation part where there is one,
    /// otherwise the training loss, smoothed over steps. With a validation part the best weights are kept.
    pub patience: Option<usize>,
    /// The propagation; default symmetric GCN.
    #[serde(serialize_with = "propagation_name")]
    pub propagation: Propagation,
    /// Seed of initialisation, dropout and batches; default 0.
    pub seed: u64,
}

impl TrainOptions {
    /// The defaults of `method`.
    pub fn new(method: Method) -> Self {
        let common = Self {
            method,
            budget: Budget::new(12, LocalBudget::Percent(Percent::ONE)),
            hidden: vec![32],
            steps: 300,
            labelled_steps: 0,
            batch: None,
            learning_rate: 0.01,
            schedule: Schedule::Constant,
            weight_decay: None,
            dropout: 0.5,
            attribute_dropout: None,
            cross_entropy_weight: 1.0,
            robust_weight: None,
            warm_up: 0,
            labelled_margin: (0.9f64 / 0.1).ln(),
            unlabelled_margin: (0.6f64 / 0.4).ln(),
            saturation: None,
            clip: None,
            patience: Some(50),
            propagation: Propagation::SymmetricGcn,
            seed: 0,
        };
        match method {
            Method::CrossEntropy => common,
            // A little cross entropy of the exact network and a slow start keep classes from being given up.
            Method::RobustCrossEntropy => {
                Self { steps: 400, cross_entropy_weight: 0.1, warm_up: 150, ..common.robust() }
            }
            Method::RobustHinge => Self { steps: 200, ..common.robust() },
            Method::RobustHingeUnlabelled => {
                Self { steps: 800, labelled_steps: 100, warm_up: 200, saturation: Some(1.0), ..common.robust() }
            }
        }
    }

    /// The options with weights in place of those that are `None`, for `graph` with so many labelled nodes.
    ///
    /// With n labelled nodes and `few = min(1, 300 / n)`:
    ///
    /// | method | weight decay | weight of the worst-case loss | attribute dropout |
    /// |---|---|---|---|
    /// | CE | 0.01 | | |
    /// | RCE | 0.01 few | 1 | 0.35 few |
    /// | RH | 0.03 few | 0.2 | 0.35 few |
    /// | RH-U | 0.1 × the share of ones among the attributes | 0.6 few | 0 |
    ///
    /// Robustness of labelled nodes carries over to others only with small weights, and if it does not hang on the very
    /// words of the labelled ones; the more labels there are, the less of either is needed. With unlabelled nodes in the loss, what weights have to be kept from is fitting an
    /// attribute to the few nodes that have it.
    pub fn suited_to(mut self, graph: &Graph, labelled: usize) -> Self {
        let few = (FEW_LABELLED / labelled.max(1) as f64).min(1.0);
        let cells = (graph.nodes() * graph.attribute_count()).max(1);
        let density = graph.attributes().entries() as f64 / cells as f64;
        let (weight_decay, robust_weight, attribute_dropout) = match self.method {
            Method::CrossEntropy => (0.01, 1.0, 0.0),
            Method::RobustCrossEntropy => (0.01 * few, 1.0, 0.35 * few),
            Method::RobustHinge => (0.03 * few, 0.2, 0.35 * few),
            Method::RobustHingeUnlabelled => (0.1 * density, 0.6 * few, 0.0),
        };
        self.weight_decay.get_or_insert(weight_decay);
        self.robust_weight.get_or_insert(robust_weight);
        self.attribute_dropout.get_or_insert(attribute_dropout);
        self
    }

    /// Steps of all phases together.
    pub fn all_steps(&self) -> usize {
        self.first_phase_steps() + self.steps
    }

    /// Steps of a phase before the last one.
    pub(super) fn first_phase_steps(&self) -> usize {
        if self.method.has_two_phases() { self.labelled_steps } else { 0 }
    }

    /// What the robust methods have in common.
    fn robust(self) -> Self {
        Self { batch: Some(256), schedule: Schedule::Cosine, patience: None, ..self }
    }

    pub(super) fn check(&self) -> Result<(), TrainError> {
        let fail = |option, value, remedy| Err(TrainError::Option { option, value, remedy });
        let not_negative = |value: f64| value >= 0.0 && value.is_finite();
        if let Some(&units) = self.hidden.iter().find(|&&units| units == 0) {
            return fail("a hidden layer's size", units as f64, "give each hidden layer at least 1 unit");
        }
        if self.steps == 0 {
            return fail("steps", 0.0, "train for at least 1 step");
        }
        if self.batch == Some(0) {
            return fail("batch", 0.0, "give at least 1 node, or none for all");
        }
        if self.patience == Some(0) {
            return fail("patience", 0.0, "give at least 1 step, or none to run all steps");
        }
        if !(self.learning_rate > 0.0 && self.learning_rate.is_finite()) {
            return fail("learning_rate", self.learning_rate, "give a positive number such as 0.01");
        }
        if let Some(weight) = self.weight_decay.filter(|&weight| !not_negative(weight)) {
            return fail("weight_decay", weight, "give 0 or a positive number such as 0.0005");
        }
        if !(0.0..1.0).contains(&self.dropout) {
            return fail("dropout", self.dropout, "give a share from 0 to below 1, such as 0.5");
        }
        if let Some(rate) = self.attribute_dropout.filter(|rate| !(0.0..1.0).contains(rate)) {
            return fail("attribute_dropout", rate, "give a share from 0 to below 1, such as 0.3");
        }
        let robust_weight = self.robust_weight.unwrap_or(1.0);
        for (option, weight) in [("cross_entropy_weight", self.cross_entropy_weight), ("robust_weight", robust_weight)]
        {
            if !not_negative(weight) {
                return fail(option, weight, "give 0 or a positive number such as 1");
            }
        }
        let weights = (self.cross_entropy_weight, robust_weight);
        if weights.0 == 0.0 && (weights.1 == 0.0 || !self.method.is_robust()) {
            return fail("the weight of every part of the loss", 0.0, "give at least one part a weight");
        }
        for (option, margin) in
            [("labelled_margin", self.labelled_margin), ("unlabelled_margin", self.unlabelled_margin)]
        {
            if !not_negative(margin) {
                return fail(option, margin, "give 0 or a positive number such as 2.2");
            }
        }
        if let Some(saturation) = self.saturation.filter(|&saturation| !(saturation.is_finite() && saturation > 0.0)) {
            return fail("saturation", saturation, "give a positive number such as 1, or none");
        }
        if let Some(clip) = self.clip.filter(|&clip| clip.is_nan() || clip <= 0.0) {
            return fail("clip", clip, "give a positive number such as 5, or none");
        }
        Ok(())
    }
}

fn propagation_name<S: Serializer>(propagation: &Propagation, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(propagation.name())
}

/// Why a network cannot be trained.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrainError {
    /// A method that does not exist.
    #[error("`{0}` is no method of training; there are ce, rce, rh and rh-u")]
    Method(String),
    /// An option that makes no sense.
    #[error("{option} is {value}; {remedy}")]
    Option {
        /// The option.
        option: &'static str,
        /// Its value.
        value: f64,
        /// What to give instead.
        remedy: &'static str,
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
    NoLabels,
    /// The graph's labels make fewer than two classes.
    #[error("the graph has {classes} classes; training needs at least two")]
    TooFewClasses {
        /// Number of classes.
        classes: usize,
    },
    /// A class that training never sees.
    #[error("class {class} has no node in the train part of the split; draw a stratified split, or a larger one")]
    UnseenClass {
        /// The class.
        class: ClassId,
    },
    /// A number became infinite or NaN.
    #[error("training diverged in step {step}; try a smaller learning rate")]
    Diverged {
        /// The step.
        step: usize,
    },
    /// The budget names what the graph does not have.
    #[error(transparent)]
    Budget(#[from] BudgetError),
    /// The propagation does not fit the graph.
    #[error(transparent)]
    Model(#[from] ModelError),
}

/// Checks that every class can be learnt.
pub(super) fn check_labels(graph: &Graph, labelled: &[(NodeId, ClassId)]) -> Result<(), TrainError> {
    if labelled.is_empty() {
        return Err(TrainError::NoLabels);
    }
    if graph.classes() < 2 {
        return Err(TrainError::TooFewClasses { classes: graph.classes() });
    }
    let mut seen = vec![false; graph.classes()];
    labelled.iter().for_each(|(_, label)| seen[label.index()] = true);
    match seen.iter().position(|&seen| !seen) {
        Some(class) => Err(TrainError::UnseenClass { class: ClassId(class as u32) }),
        None => Ok(()),
    }
}

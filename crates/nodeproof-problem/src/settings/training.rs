//! How a network is trained.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize, Serializer};

use super::{Architecture, SettingsError, one_of};
use crate::budget::{Budget, LocalBudget, Percent};
use crate::graph::{Graph, Part, Split};
use crate::ids::{ClassId, NodeId};
use crate::model::Propagation;

/// Up to this many labelled nodes weights that suit a graph are as large as they get.
const FEW_LABELLED: f64 = 300.0;
/// From so many hidden layers on interval bounds lose more than flips that bend activations together.
const DEEP: usize = 2;

/// The loss that is minimised.
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

    /// Checks that a method that looks at an attacker is told what that may do.
    ///
    /// # Errors
    /// If worst-case margins are part of the loss, and no budget was given.
    pub fn check_budget(self, is_given: bool) -> Result<(), SettingsError> {
        if is_given || !self.is_robust() {
            return Ok(());
        }
        Err(SettingsError::NoBudget { option: "global_budget", method: self })
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
    type Err = SettingsError;

    fn from_str(text: &str) -> Result<Self, SettingsError> {
        let found = Self::ALL.into_iter().find(|method| method.name() == text);
        found.ok_or_else(|| SettingsError::unknown("method", text, &Self::ALL.map(Self::name)))
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
    pub fn factor(self, done: usize, steps: usize) -> f64 {
        match self {
            Self::Constant => 1.0,
            Self::Cosine => (1.0 + (std::f64::consts::PI * done as f64 / steps.max(1) as f64).cos()) / 2.0,
        }
    }
}

impl FromStr for Schedule {
    type Err = SettingsError;

    fn from_str(text: &str) -> Result<Self, SettingsError> {
        match text {
            "constant" => Ok(Self::Constant),
            "cosine" => Ok(Self::Cosine),
            other => Err(SettingsError::unknown("schedule", other, &["constant", "cosine"])),
        }
    }
}

/// What worst-case margins are taken to be in a robust loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum WorstCase {
    /// The dual with default slopes: a lower bound, as in the paper.
    Dual,
    /// Under the flips that gain most at first, each charged with what it can gain by bending activations: the bound of first order, but for the
    /// choice of flips. Nothing is lost layer by layer.
    FirstOrder,
}

impl WorstCase {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Dual, Self::FirstOrder];

    /// What suits a network of so many layers with an activation: the dual up to one of them, otherwise first order.
    pub fn suited_to(hidden_layers: usize) -> Self {
        if hidden_layers < DEEP { Self::Dual } else { Self::FirstOrder }
    }

    /// Its name: `dual` or `first-order`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Dual => "dual",
            Self::FirstOrder => "first-order",
        }
    }
}

impl fmt::Display for WorstCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for WorstCase {
    type Err = SettingsError;

    fn from_str(text: &str) -> Result<Self, SettingsError> {
        let found = Self::ALL.into_iter().find(|worst_case| worst_case.name() == text);
        found.ok_or_else(|| SettingsError::unknown("worst_case", text, &Self::ALL.map(Self::name)))
    }
}

/// How a network is trained. [`TrainSettings::new`] has the defaults of each method.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct TrainSettings {
    /// The loss.
    pub method: Method,
    /// What the network is to withstand; default 12 flips in total, 1 % of the attributes at one node.
    pub budget: Budget,
    /// How the layers are put together; default GCN.
    pub architecture: Architecture,
    /// Units of each hidden layer; `None` for what suits the architecture, one layer of 32 for a GCN.
    pub hidden: Option<Vec<usize>>,
    /// Most steps. RH-U has its `labelled_steps` before them.
    pub steps: usize,
    /// Most steps of the first phase of RH-U, on labelled nodes alone.
    pub labelled_steps: usize,
    /// Nodes whose worst-case margins a step looks at; `None` for all.
    pub batch: Option<usize>,
    /// Labelled nodes whose cross entropy a step looks at, drawn anew each time: their mean stands for that of all. `None` for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labelled_batch: Option<usize>,
    /// Learning rate of Adam.
    pub learning_rate: f64,
    /// How the learning rate changes.
    pub schedule: Schedule,
    /// Weight of the L2 term on weights; `None` for one that suits method and graph, see [`TrainSettings::suited_to`].
    pub weight_decay: Option<f64>,
    /// Share of hidden activations left out of the cross entropy in each step; `None` for what suits the architecture.
    pub dropout: Option<f64>,
    /// Share of each node's attributes that a step takes as 0 in the worst-case loss; `None` for one that suits method and
    /// graph, see [`TrainSettings::suited_to`].
    pub attribute_dropout: Option<f64>,
    /// Weight of the cross entropy of the exact network.
    pub cross_entropy_weight: f64,
    /// Weight of the worst-case loss; `None` for one that suits method and graph, see [`TrainSettings::suited_to`].
    pub robust_weight: Option<f64>,
    /// What worst-case margins are taken to be; `None` for what suits the depth: the dual for up to one hidden layer, otherwise
    /// that of first order.
    pub worst_case: Option<WorstCase>,
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
    /// The propagation of an architecture that has one to choose; `None` for symmetric GCN there.
    #[serde(serialize_with = "propagation_name")]
    pub propagation: Option<Propagation>,
    /// Seed of initialisation, dropout and batches; default 0.
    pub seed: u64,
}

impl TrainSettings {
    /// The defaults of `method`.
    pub fn new(method: Method) -> Self {
        let common = Self {
            method,
            budget: Budget::new(12, LocalBudget::Percent(Percent::ONE)),
            architecture: Architecture::Gcn,
            hidden: None,
            steps: 300,
            labelled_steps: 0,
            batch: None,
            labelled_batch: None,
            learning_rate: 0.01,
            schedule: Schedule::Constant,
            weight_decay: None,
            dropout: None,
            attribute_dropout: None,
            cross_entropy_weight: 1.0,
            robust_weight: None,
            worst_case: None,
            warm_up: 0,
            labelled_margin: (0.9f64 / 0.1).ln(),
            unlabelled_margin: (0.6f64 / 0.4).ln(),
            saturation: None,
            clip: None,
            patience: Some(50),
            propagation: None,
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

    /// Units of each hidden layer: those given, or those that suit the architecture.
    pub fn hidden_sizes(&self) -> &[usize] {
        self.hidden.as_deref().unwrap_or(self.architecture.default_hidden())
    }

    /// Number of layers with an activation.
    pub fn hidden_layers(&self) -> usize {
        self.architecture.widths(1, self.hidden_sizes(), 1).len() - 2
    }

    /// The options with hidden layers, propagation, dropout and weights in place of those that are `None`, for `graph` with so
    /// many labelled nodes.
    ///
    /// With n labelled nodes and `few = min(1, 300 / n)`:
    ///
    /// | method | weight decay | weight of the worst-case loss | attribute dropout |
    /// |---|---|---|---|
    /// | CE | 0.01 | | |
    /// | RCE | 0.01 few | 1 | 0.35 few |
    /// | RH | 0.03 few | 0.2 | 0.35 few |
    /// | RH-U | 0.1 × the share of ones among the attributes | 0.6 few, of first order times the number of hidden layers | 0 |
    ///
    /// Where rows are normalised, weight decay is a hundredth of that: ones that are divided need larger weights.
    ///
    /// Robustness of labelled nodes carries over to others only with small weights, and if it does not hang on the very
    /// words of the labelled ones; the more labels there are, the less of either is needed. With unlabelled nodes in the loss, what weights have to be kept from is fitting an
    /// attribute to the few nodes that have it.
    pub fn suited_to(mut self, graph: &Graph, labelled: usize) -> Self {
        let few = (FEW_LABELLED / labelled.max(1) as f64).min(1.0);
        let cells = (graph.nodes() * graph.attribute_count()).max(1);
        let density = graph.node_ids().map(|node| graph.row_length(node)).sum::<usize>() as f64 / cells as f64;
        let worst_case = *self.worst_case.get_or_insert(WorstCase::suited_to(self.hidden_layers()));
        let (mut weight_decay, robust_weight, attribute_dropout) = match (self.method, worst_case) {
            (Method::CrossEntropy, _) => (0.01, 1.0, 0.0),
            (Method::RobustCrossEntropy, _) => (0.01 * few, 1.0, 0.35 * few),
            (Method::RobustHinge, _) => (0.03 * few, 0.2, 0.35 * few),
            (Method::RobustHingeUnlabelled, WorstCase::Dual) => (0.1 * density, 0.6 * few, 0.0),
            (Method::RobustHingeUnlabelled, WorstCase::FirstOrder) => {
                (0.1 * density, 0.6 * few * self.hidden_layers().max(1) as f64, 0.0)
            }
        };
        if graph.kind().is_normalised() {
            weight_decay *= 0.01;
        }
        self.hidden = Some(self.hidden_sizes().to_vec());
        if self.architecture.has_propagation() {
            self.propagation.get_or_insert(Propagation::SymmetricGcn);
        }
        self.dropout.get_or_insert(self.architecture.default_dropout());
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
    pub fn first_phase_steps(&self) -> usize {
        if self.method.has_two_phases() { self.labelled_steps } else { 0 }
    }

    /// What the robust methods have in common.
    fn robust(self) -> Self {
        Self { batch: Some(256), schedule: Schedule::Cosine, patience: None, ..self }
    }

    /// Checks the numbers.
    ///
    /// # Errors
    /// If one makes no sense.
    pub fn validate(&self) -> Result<(), SettingsError> {
        let fail = |option, value: f64, remedy: &str| Err(SettingsError::value(option, value, remedy));
        let not_negative = |value: f64| value >= 0.0 && value.is_finite();
        if self.hidden_sizes().contains(&0) {
            return fail("a hidden layer's size", 0.0, "give each hidden layer at least 1 unit");
        }
        self.architecture.check_hidden(self.hidden_sizes())?;
        if self.propagation.is_some() {
            self.architecture.check_propagation()?;
        }
        if self.steps == 0 {
            return fail("steps", 0.0, "train for at least 1 step");
        }
        if self.batch == Some(0) {
            return fail("batch", 0.0, "give at least 1 node, or none for all");
        }
        if self.labelled_batch == Some(0) {
            return fail("labelled_batch", 0.0, "give at least 1 node, or none for all");
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
        if let Some(rate) = self.dropout.filter(|rate| !(0.0..1.0).contains(rate)) {
            return fail("dropout", rate, "give a share from 0 to below 1, such as 0.5");
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
        check_hinge("labelled_margin", self.labelled_margin, None)?;
        check_hinge("unlabelled_margin", self.unlabelled_margin, self.saturation)?;
        if let Some(clip) = self.clip.filter(|&clip| clip.is_nan() || clip <= 0.0) {
            return fail("clip", clip, "give a positive number such as 5, or none");
        }
        Ok(())
    }

    /// Checks everything against the graph and its split.
    ///
    /// # Errors
    /// If a number makes no sense, the budget or the split does not fit the graph, there is nothing to learn from, or the
    /// network would not fit into memory.
    pub fn validate_for(&self, graph: &Graph, split: &Split) -> Result<(), SettingsError> {
        self.validate()?;
        if split.nodes() != graph.nodes() {
            return Err(SettingsError::Split { split: split.nodes(), nodes: graph.nodes() });
        }
        check_labels(graph, &split.part(Part::Train))?;
        self.check_size(graph)?;
        Ok(self.budget.limits(graph).map(drop)?)
    }

    /// Training keeps the weights, their gradient, two moments and the best weights so far.
    fn check_size(&self, graph: &Graph) -> Result<(), SettingsError> {
        let sizes = self.architecture.widths(graph.attribute_count(), self.hidden_sizes(), graph.classes());
        let gigabytes = 5.0 * 8.0 * self.architecture.parameters(&sizes) / 1e9;
        if gigabytes <= MOST_GIGABYTES {
            return Ok(());
        }
        let shape: Vec<String> = sizes.iter().map(ToString::to_string).collect();
        let what = format!("training a network of {} weights", shape.join(" × "));
        Err(SettingsError::TooLarge { what, gigabytes, remedy: "use fewer attributes or smaller hidden layers" })
    }
}

/// Checks the margin that a hinge loss asks for, and where its pull on a node is halved.
///
/// # Errors
/// If the margin is negative, the saturation is not positive, or one of them is not a number.
pub fn check_hinge(option: &'static str, margin: f64, saturation: Option<f64>) -> Result<(), SettingsError> {
    if !(margin >= 0.0 && margin.is_finite()) {
        return Err(SettingsError::value(option, margin, "give 0 or a positive number such as 2.2"));
    }
    match saturation.filter(|&saturation| !(saturation.is_finite() && saturation > 0.0)) {
        Some(saturation) => {
            Err(SettingsError::value("saturation", saturation, "give a positive number such as 1, or none"))
        }
        None => Ok(()),
    }
}

/// Larger networks than this are a mistake in the input rather than a network.
const MOST_GIGABYTES: f64 = 64.0;

fn propagation_name<S: Serializer>(propagation: &Option<Propagation>, serializer: S) -> Result<S::Ok, S::Error> {
    propagation.as_ref().map(Propagation::name).serialize(serializer)
}

/// Checks that every class that some node of the graph has can be learnt from the nodes `train`.
fn check_labels(graph: &Graph, train: &[NodeId]) -> Result<(), SettingsError> {
    let mut seen = vec![false; graph.classes()];
    train.iter().filter_map(|&node| graph.label(node)).for_each(|label| seen[label.index()] = true);
    if !seen.contains(&true) {
        return Err(SettingsError::NothingToLearn);
    }
    if graph.classes() < 2 {
        return Err(SettingsError::TooFewClasses { classes: graph.classes() });
    }
    let unseen = graph.node_ids().filter_map(|node| graph.label(node)).find(|label| !seen[label.index()]);
    unseen.map_or(Ok(()), |class: ClassId| Err(SettingsError::UnseenClass { class }))
}

/// Says something of a method.
type MethodTest = fn(Method) -> bool;

/// Options that not every method has a use for, and which do.
const USES: [(&str, MethodTest); 9] = [
    ("batch", Method::is_robust),
    ("attribute_dropout", Method::is_robust),
    ("robust_weight", Method::is_robust),
    ("worst_case", Method::is_robust),
    ("warm_up", Method::is_robust),
    ("saturation", Method::has_two_phases),
    ("labelled_margin", Method::has_hinge),
    ("unlabelled_margin", Method::has_two_phases),
    ("labelled_steps", Method::has_two_phases),
];

impl Method {
    /// Checks that the method has a use for an option that was given.
    ///
    /// # Errors
    /// If it has none.
    pub fn check_use(self, option: &str) -> Result<(), SettingsError> {
        match USES.into_iter().find(|&(name, used)| name == option && !used(self)) {
            None => Ok(()),
            Some((option, used)) => {
                let names: Vec<_> = Self::ALL.into_iter().filter(|&method| used(method)).map(Self::name).collect();
                Err(SettingsError::Unused { option, method: self, used_by: one_of(&names) })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_without_use_are_refused_with_the_methods_that_use_them() {
        let error = Method::CrossEntropy.check_use("batch").unwrap_err();
        assert_eq!(error.to_string(), "batch: method ce has no use for it; leave it out, or choose rce, rh or rh-u");
        assert!(Method::RobustHinge.check_use("batch").is_ok() && Method::CrossEntropy.check_use("steps").is_ok());
        assert!(Method::RobustHinge.check_use("saturation").is_err());
    }

    #[test]
    fn only_classes_that_some_node_has_must_be_seen() {
        let labels = |labels: [u32; 4]| {
            let graph = Graph::new(4, 1, &[], &[]).unwrap();
            graph.with_labels(labels.map(|label| Some(ClassId(label))).to_vec()).unwrap()
        };
        let train: Vec<NodeId> = [0, 1, 2].map(NodeId).to_vec();
        assert!(check_labels(&labels([1, 2, 1, 2]), &train).is_ok(), "labels that count from 1");
        let unseen = check_labels(&labels([0, 1, 0, 2]), &train);
        assert!(matches!(unseen, Err(SettingsError::UnseenClass { class: ClassId(2) })));
        assert!(matches!(check_labels(&labels([0; 4]), &train), Err(SettingsError::TooFewClasses { .. })));
        assert!(matches!(check_labels(&labels([0; 4]), &[]), Err(SettingsError::NothingToLearn)));
    }

    #[test]
    fn networks_beyond_memory_are_refused() {
        let labels = vec![Some(ClassId(0)), Some(ClassId(1))];
        let graph = Graph::new(2, 4_000_000_000, &[], &[]).unwrap().with_labels(labels).unwrap();
        let split = Split::new(2, vec![NodeId(0), NodeId(1)], vec![]).unwrap();
        let error = TrainSettings::new(Method::CrossEntropy).validate_for(&graph, &split).unwrap_err();
        assert!(error.to_string().contains("5120 GB of memory"), "{error}");
    }
}

//! How nodes are certified.

use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Arithmetic, SettingsError};
use crate::budget::{Budget, LocalBudget};
use crate::graph::Graph;
use crate::ids::NodeId;
use crate::model::Model;

/// How a verdict is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Engine {
    /// The paper's dual bound, evaluated once, and the witness that falls out of it.
    #[default]
    Fast,
    /// Additive bounds with optimised parameters.
    Tight,
    /// Branch and bound until every node is decided, or out of time.
    Complete,
}

impl Engine {
    /// All engines, from the fastest to the strongest.
    pub const ALL: [Self; 3] = [Self::Fast, Self::Tight, Self::Complete];

    /// `fast`, `tight` or `complete`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fast => "fast",
            Self::Tight => "tight",
            Self::Complete => "complete",
        }
    }

    /// The engine to begin with: [`Engine::Fast`] without hidden layers, where it is exact, and for chains with one that read plain
    /// bits; for other networks [`Engine::Tight`], which proves far more there.
    pub fn to_begin_with(model: &Model) -> Self {
        let is_shallow = model.is_plain() && model.layers().len() == 2 && model.kind().is_bits();
        if is_shallow || model.hidden_layers() == 0 { Self::Fast } else { Self::Tight }
    }
}

impl FromStr for Engine {
    type Err = SettingsError;

    fn from_str(text: &str) -> Result<Self, SettingsError> {
        let found = Self::ALL.into_iter().find(|engine| engine.name() == text);
        found.ok_or_else(|| SettingsError::unknown("engine", text, &Self::ALL.map(Self::name)))
    }
}

/// Whose margins are certified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum TargetClass {
    /// The class that the model predicts on the graph as it is.
    #[default]
    Predicted,
    /// The node's label: a misclassified node is then nonrobust without any flip.
    Label,
}

impl FromStr for TargetClass {
    type Err = SettingsError;

    fn from_str(text: &str) -> Result<Self, SettingsError> {
        match text {
            "predicted" => Ok(Self::Predicted),
            "label" => Ok(Self::Label),
            other => Err(SettingsError::unknown("target_class", other, &["predicted", "label"])),
        }
    }
}

/// How nodes are certified: against what, how hard, and with how many threads.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct CertifySettings {
    /// What the attacker may change; default one flip.
    pub budget: Budget,
    /// Whose margins are certified.
    pub target_class: TargetClass,
    /// What margins must exceed: a node is robust if all of them are larger than this.
    pub margin: f64,
    /// The arithmetic in which they must: robust is what no evaluation of the network in it can bring to this margin.
    pub arithmetic: Arithmetic,
    /// The strongest engine that is tried; each target goes from the fastest to this one until it is decided.
    pub engine: Engine,
    /// The most time that one target may take under one budget; one that is not decided by then stays undecided.
    pub time_limit: Option<Duration>,
    /// Whether certificates come with what a checker needs to see for itself that robust nodes are robust.
    pub proofs: bool,
    /// The time after which no target gets more than the `fast` engine.
    pub total_time_limit: Option<Duration>,
    /// The most bytes of memory that engines beyond `fast` may take for the lists and subproblems of one target.
    pub memory_limit: usize,
    /// Threads to use; 0 takes as many as there are cores. Results do not depend on it.
    pub threads: usize,
}

/// Bytes of memory that a target may take, unless another limit is set.
const MEMORY_LIMIT: usize = 1 << 30;

/// The largest margin that may be asked for.
const LARGEST_MARGIN: f64 = 1e100;

/// Most threads that may be asked for.
const MOST_THREADS: usize = 1024;

/// Checks that so many threads may be asked for.
///
/// # Errors
/// If there are too many.
pub fn check_threads(threads: usize) -> Result<(), SettingsError> {
    if threads > MOST_THREADS {
        return Err(SettingsError::value("threads", threads, format!("give at most {MOST_THREADS}")));
    }
    Ok(())
}

impl CertifySettings {
    /// The predicted classes under `budget`, the `fast` engine, no time limits, a gibibyte of memory for a target, as many
    /// threads as cores.
    pub fn new(budget: Budget) -> Self {
        Self {
            budget,
            target_class: TargetClass::default(),
            margin: 0.0,
            arithmetic: Arithmetic::default(),
            engine: Engine::default(),
            time_limit: None,
            proofs: false,
            total_time_limit: None,
            memory_limit: MEMORY_LIMIT,
            threads: 0,
        }
    }

    /// Checks everything against the graph and the nodes that are to be certified.
    ///
    /// # Errors
    /// If the budget does not fit the graph, a node does not exist, or has no label where that is to be certified.
    pub fn validate(&self, graph: &Graph, nodes: &[NodeId]) -> Result<(), SettingsError> {
        check_threads(self.threads)?;
        self.check_margin()?;
        self.budget.validate(graph)?;
        self.check_nodes(graph, nodes)
    }

    /// Checks what margins must exceed.
    ///
    /// # Errors
    /// If that is negative, or not a number that a margin can exceed.
    pub fn check_margin(&self) -> Result<(), SettingsError> {
        let is_margin = self.margin == 0.0 || (f64::MIN_POSITIVE..=LARGEST_MARGIN).contains(&self.margin);
        if is_margin {
            return Ok(());
        }
        let remedy = format!("give 0, or a number such as 0.1, from {:e} to {LARGEST_MARGIN:e}", f64::MIN_POSITIVE);
        Err(SettingsError::value("margin", format!("{:?}", self.margin), remedy))
    }

    /// What is asked for beyond positive margins without rounding, to be said after the budget.
    pub fn asked_in_words(&self) -> String {
        asked_in_words(self.margin, self.arithmetic)
    }

    /// Whether more is asked for than that no evaluation without rounding changes the class.
    pub fn asks_for_more(&self) -> bool {
        self.margin > 0.0 || !self.arithmetic.is_exact()
    }

    /// Checks that `nodes` can be certified.
    ///
    /// # Errors
    /// If one does not exist, or has no label where that is to be certified.
    pub fn check_nodes(&self, graph: &Graph, nodes: &[NodeId]) -> Result<(), SettingsError> {
        if let Some(&node) = nodes.iter().find(|node| node.index() >= graph.nodes()) {
            return Err(SettingsError::NoSuchNode { node, nodes: graph.nodes() });
        }
        if self.target_class == TargetClass::Label {
            if !graph.has_labels() {
                return Err(SettingsError::NoLabels);
            }
            let mut without = nodes.iter().filter(|&&node| graph.label(node).is_none());
            if let Some(&first) = without.next() {
                return Err(SettingsError::WithoutLabel { first, count: 1 + without.count() });
            }
        }
        Ok(())
    }

    /// Checks that a scan, the paper's measure of a radius, is asked for with the engine that it is about.
    ///
    /// # Errors
    /// If it is not.
    pub fn validate_scan(&self) -> Result<(), SettingsError> {
        if self.engine == Engine::Fast { Ok(()) } else { Err(SettingsError::Scan { engine: self.engine }) }
    }
}

/// What is asked for beyond positive margins without rounding, to be said after a budget.
pub fn asked_in_words(margin: f64, arithmetic: Arithmetic) -> String {
    let margin = if margin > 0.0 { format!("; margins above {margin}") } else { String::new() };
    let arithmetic =
        if arithmetic.is_exact() { String::new() } else { format!("; in {} arithmetic", arithmetic.name()) };
    margin + &arithmetic
}

impl Default for CertifySettings {
    fn default() -> Self {
        Self::new(Budget::new(1, LocalBudget::Count(1)))
    }
}

/// A time limit in seconds.
///
/// # Errors
/// If it is negative, not a number, or longer than anyone can wait.
pub fn time_limit(option: &'static str, seconds: f64) -> Result<Duration, SettingsError> {
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| SettingsError::value(option, seconds, "give a number of seconds such as 10"))
}

/// A number of bytes such as `512M`, with K, M, G or T for powers of 1024.
///
/// # Errors
/// If it is something else, or more than fits.
pub fn memory_limit(option: &'static str, text: &str) -> Result<usize, SettingsError> {
    let trimmed = text.trim();
    let (number, power) = match trimmed.char_indices().last() {
        Some((end, unit)) if !unit.is_ascii_digit() => {
            (&trimmed[..end], "KMGT".find(unit.to_ascii_uppercase()).map(|place| place + 1))
        }
        _ => (trimmed, Some(0)),
    };
    let bytes =
        power.and_then(|power| number.trim().parse::<usize>().ok()?.checked_mul(1024usize.checked_pow(power as u32)?));
    bytes.ok_or_else(|| SettingsError::value(option, text, "give a number of bytes such as 512M or 4G"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attributes::AttributeKind;
    use crate::ids::ClassId;
    use crate::matrix::Matrix;
    use crate::model::Propagation;
    use crate::sparse::SparseMatrix;

    #[test]
    fn plain_networks_with_one_hidden_layer_begin_with_the_fast_engine() {
        let network = |hidden: usize, p: f64| {
            let layer = || (Matrix::zeros(2, 2), vec![0.0; 2]);
            let propagation = Propagation::Custom(SparseMatrix::from_triplets(1, 1, &[(0, 0, p)]));
            Model::gcn((0..=hidden).map(|_| layer()).collect(), propagation).unwrap()
        };
        let divided = network(1, 1.0).with_kind(AttributeKind::NormalisedRows);
        assert_eq!(Engine::to_begin_with(&divided), Engine::Tight);
        let first = |hidden: usize, p: f64| Engine::to_begin_with(&network(hidden, p));
        assert_eq!([first(0, 1.0), first(1, 1.0), first(2, 1.0)], [Engine::Fast, Engine::Fast, Engine::Tight]);
        assert_eq!([first(0, -1.0), first(1, -1.0)], [Engine::Fast, Engine::Tight]);
    }

    #[test]
    fn memory_has_units() {
        let bytes = |text| memory_limit("memory_limit", text).ok();
        assert_eq!(bytes("1000"), Some(1000));
        assert_eq!((bytes("512M"), bytes(" 2 g ")), (Some(512 << 20), Some(2 << 30)));
        for bad in ["", "M", "-1", "1.5G", "10X", "1GB", "99999999999999999999", "99999999999T"] {
            assert_eq!(bytes(bad), None, "{bad}");
        }
    }

    #[test]
    fn nodes_are_checked() {
        let graph = Graph::new(3, 2, &[], &[]).unwrap();
        let labelled = graph.clone().with_labels(vec![Some(ClassId(0)), None, None]).unwrap();
        let mut settings = CertifySettings::default();
        assert!(settings.validate(&graph, &[NodeId(2)]).is_ok());
        assert!(matches!(settings.validate(&graph, &[NodeId(3)]), Err(SettingsError::NoSuchNode { .. })));
        settings.target_class = TargetClass::Label;
        assert!(matches!(settings.validate(&graph, &[]), Err(SettingsError::NoLabels)));
        assert!(settings.validate(&labelled, &[NodeId(0)]).is_ok());
        let error = settings.validate(&labelled, &[NodeId(0), NodeId(1), NodeId(2)]).unwrap_err();
        assert!(error.to_string().starts_with("2 nodes have no label, the first is node 1"), "{error}");
    }

    #[test]
    fn names_read_back() {
        for engine in Engine::ALL {
            assert_eq!(engine.name().parse::<Engine>().unwrap(), engine);
        }
        assert!("slow".parse::<Engine>().unwrap_err().to_string().contains("complete"));
        assert_eq!("label".parse::<TargetClass>().unwrap(), TargetClass::Label);
        assert!(time_limit("time_limit", -1.0).is_err() && time_limit("time_limit", f64::NAN).is_err());
    }
}

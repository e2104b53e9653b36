//! Verdicts: which predictions hold under every admissible set of flips, and a witness where one does not.

mod attack;
mod best;
mod complete;
mod gap;
mod radius;
mod worker;

use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rayon::prelude::*;

use serde::{Deserialize, Serialize};

use crate::bounds::Bounds;
use crate::budget::{Budget, BudgetError, Flip, LocalBudget};
use crate::graph::{ClassId, Graph, NodeId};
use crate::model::{Model, ModelError};
use crate::network::Network;
use crate::relaxation::Relaxation;
use crate::slice::Region;

use worker::{Settings, Worker};

pub use crate::relaxation::Slopes;
pub use gap::Gap;
pub use radius::Radius;

/// Nodes in the first chunk, and for each thread where one node may take long; the observer hears of a chunk once all of
/// it is done.
const FIRST_CHUNK: usize = 64;
const FIRST_CHUNK_EACH: usize = 2;
/// Chunks grow until one takes about this long: rare enough to keep all threads busy, often enough for the observer.
const CHUNK_TIME: Duration = Duration::from_millis(200);
/// Nodes that a thread takes at a time: few, since some cost a hundred times as much as others.
const PIECE: usize = 4;

/// The way a verdict was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Engine {
    /// The paper's dual bound, evaluated once, and the witness that falls out of it.
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

/// Flips that change a prediction.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Witness {
    /// The flips, by node and attribute; an admissible set.
    pub flips: Vec<Flip>,
    /// The class that overtakes.
    pub class: ClassId,
    /// `logit_y − logit_class` under the flips, rounded up: negative, or 0 where it is 0 or too close to 0 for a double:
    /// a tie, which [`Engine::Fast`] leaves undecided.
    pub margin: f64,
}

/// What is known of a node under the budget.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Verdict {
    /// No admissible set of flips changes the class.
    Robust {
        /// The smallest margin is at least this, for every admissible set: positive.
        margin: f64,
    },
    /// These flips change the class.
    Nonrobust {
        /// The proof.
        witness: Witness,
    },
    /// Neither could be shown.
    Undecided {
        /// The smallest margin over all admissible sets is at least this; [`f64::MIN`] if numbers overflowed and
        /// nothing is known.
        lower: f64,
        /// The smallest margin found under an admissible set: the truth lies between. [`f64::MAX`] if nothing is
        /// known.
        upper: f64,
    },
}

impl Verdict {
    /// `robust`, `nonrobust` or `undecided`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Robust { .. } => "robust",
            Self::Nonrobust { .. } => "nonrobust",
            Self::Undecided { .. } => "undecided",
        }
    }

    /// Whether it is [`Verdict::Robust`].
    pub fn is_robust(&self) -> bool {
        matches!(self, Self::Robust { .. })
    }
}

/// A verdict on one node, with what is needed to re-check it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Certificate {
    /// The node.
    pub node: NodeId,
    /// Its label, if it has one.
    pub label: Option<ClassId>,
    /// The class that the model predicts on the graph as it is.
    pub predicted: ClassId,
    /// The class that is certified, y: predicted or label, as [`TargetClass`] says.
    pub class: ClassId,
    /// The verdict.
    pub verdict: Verdict,
    /// Per class k a lower bound on `logit_y − logit_k` over all admissible sets, rounded down; `None` for y itself,
    /// [`f64::MIN`] if numbers overflowed and nothing is known.
    pub margins: Vec<Option<f64>>,
    /// The class with the smallest lower bound.
    pub worst_class: ClassId,
    /// The engine that settled the verdict.
    pub engine: Engine,
    /// Parts that branch and bound looked at.
    pub branches: u64,
    /// Time spent on this node alone.
    pub time: Duration,
}

impl Certificate {
    /// The smallest lower bound over all classes.
    pub fn margin(&self) -> f64 {
        self.margins.iter().flatten().copied().fold(f64::INFINITY, f64::min)
    }
}

/// What a [`Certifier`] tells while it works, always from the calling thread.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event {
    /// Preparations for all nodes together, such as bounds, have come this far.
    Preparing {
        /// Steps done.
        done: usize,
        /// Steps in all.
        total: usize,
    },
    /// One more node is done; they come in the order in which they were asked for.
    Certified(Certificate),
}

/// What [`Certifier::each_target`] tells.
enum Told<T> {
    /// As [`Event::Preparing`].
    Preparing { done: usize, total: usize },
    /// What came of one more node.
    Done(T),
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Finish {
    /// Every node was certified.
    Complete,
    /// The observer broke off.
    Cancelled,
}

/// Why nodes cannot be certified.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CertifyError {
    /// The model does not fit the graph.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The budget does not fit the graph.
    #[error(transparent)]
    Budget(#[from] BudgetError),
    /// A node that the graph does not have.
    #[error("node {node} does not exist: the graph has {nodes} nodes, numbered from 0")]
    NoSuchNode {
        /// The node.
        node: NodeId,
        /// Number of nodes.
        nodes: usize,
    },
    /// The label is to be certified, but the node has none.
    #[error("node {node} has no label, so its label cannot be certified; certify the predicted class instead")]
    NoLabel {
        /// The node.
        node: NodeId,
    },
    /// Slopes of the wrong shape or outside [0, 1].
    #[error("the given slopes do not fit: {problem}")]
    Slopes {
        /// What is wrong.
        problem: String,
    },
    /// The system refused to start threads.
    #[error("cannot start {threads} threads: {problem}; ask for fewer")]
    Threads {
        /// Threads asked for.
        threads: usize,
        /// What the system said.
        problem: String,
    },
}

/// Certifies nodes of a graph.
///
/// ```no_run
/// use nodeproof::{Budget, Certifier, Graph, GraphOptions, Model};
/// let (graph, _) = Graph::read("cora_ml.npz", GraphOptions::new().binarise(true))?;
/// let model = Model::read("model.safetensors")?;
/// let nodes: Vec<_> = graph.node_ids().collect();
/// let certificates = Certifier::new(&graph, &model)?.budget(Budget::new(12, "1%".parse()?)).certify(&nodes)?;
/// let robust = certificates.iter().filter(|certificate| certificate.verdict.is_robust()).count();
/// println!("{robust} of {} nodes are robust", nodes.len());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Certifier<'a> {
    network: Network<'a>,
    budget: Budget,
    target_class: TargetClass,
    slopes: Slopes,
    engine: Engine,
    time_limit: Option<Duration>,
    total_time_limit: Option<Duration>,
    threads: usize,
}

impl<'a> Certifier<'a> {
    /// A certifier with a budget of one flip, the predicted classes, engine [`Engine::Fast`], default slopes, no limits of
    /// time and as many threads as cores.
    ///
    /// # Errors
    /// If the model does not fit the graph.
    pub fn new(graph: &'a Graph, model: &'a Model) -> Result<Self, CertifyError> {
        Ok(Self {
            network: Network::new(graph, model)?,
            budget: Budget::new(1, LocalBudget::Count(1)),
            target_class: TargetClass::default(),
            slopes: Slopes::default(),
            engine: Engine::Fast,
            time_limit: None,
            total_time_limit: None,
            threads: 0,
        })
    }

    /// Sets what the attacker may change.
    pub fn budget(mut self, budget: Budget) -> Self {
        self.budget = budget;
        self
    }

    /// Sets whose margins are certified.
    pub fn target_class(mut self, target_class: TargetClass) -> Self {
        self.target_class = target_class;
        self
    }

    /// Sets the slopes of the lower lines.
    pub fn slopes(mut self, slopes: Slopes) -> Self {
        self.slopes = slopes;
        self
    }

    /// Sets the strongest engine that is tried; each target goes from the fastest to this one until it is decided.
    pub fn engine(mut self, engine: Engine) -> Self {
        self.engine = engine;
        self
    }

    /// Sets the most time that one target may take; one that is not decided by then stays undecided, with the best bounds
    /// that were found.
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.time_limit = Some(limit);
        self
    }

    /// Sets the time after which no target gets more than the fast engine.
    pub fn total_time_limit(mut self, limit: Duration) -> Self {
        self.total_time_limit = Some(limit);
        self
    }

    /// Sets the number of threads; 0 takes as many as there are cores. Results do not depend on it.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Certifies `nodes`, in this order.
    ///
    /// # Errors
    /// If a node does not exist or the settings do not fit the graph.
    pub fn certify(&self, nodes: &[NodeId]) -> Result<Vec<Certificate>, CertifyError> {
        let mut certificates = Vec::with_capacity(nodes.len());
        let _ = self.certify_each(nodes, |event| {
            if let Event::Certified(certificate) = event {
                certificates.push(certificate);
            }
            ControlFlow::Continue(())
        })?;
        Ok(certificates)
    }

    /// Certifies `nodes`, in this order, and tells `observer` as it goes; the observer may break off.
    ///
    /// # Errors
    /// If a node does not exist or the settings do not fit the graph.
    pub fn certify_each(
        &self,
        nodes: &[NodeId],
        observer: impl FnMut(Event) -> ControlFlow<()>,
    ) -> Result<Finish, CertifyError> {
        self.certify_under(&self.budget, nodes, observer)
    }

    /// The same under another budget.
    fn certify_under(
        &self,
        budget: &Budget,
        nodes: &[NodeId],
        mut observer: impl FnMut(Event) -> ControlFlow<()>,
    ) -> Result<Finish, CertifyError> {
        self.each_target(
            budget,
            nodes,
            |worker, node| worker.certify(node),
            |told| {
                observer(match told {
                    Told::Preparing { done, total } => Event::Preparing { done, total },
                    Told::Done(certificate) => Event::Certified(certificate),
                })
            },
        )
    }

    /// Has workers `work` on `nodes` under `budget`, and tells `observer` of each, in order; it may break off.
    fn each_target<T: Send>(
        &self,
        budget: &Budget,
        nodes: &[NodeId],
        work: impl Fn(&mut Worker, NodeId) -> T + Sync,
        mut observer: impl FnMut(Told<T>) -> ControlFlow<()>,
    ) -> Result<Finish, CertifyError> {
        let started = Instant::now();
        let limits = budget.limits(self.network.graph())?;
        self.check_nodes(nodes)?;
        self.check_slopes()?;
        let pool = rayon::ThreadPoolBuilder::new().num_threads(self.threads).build();
        let pool = pool.map_err(|error| CertifyError::Threads { threads: self.threads, problem: error.to_string() })?;

        let region = Region::around(self.network.propagation(), nodes, self.network.layers().len());
        let tell = |done, total| observer(Told::Preparing { done, total });
        let prepared = Bounds::compute(&self.network, &limits, &region, &pool, tell);
        let Some(bounds) = prepared else { return Ok(Finish::Cancelled) };
        let relaxation = pool.install(|| Relaxation::new(&self.network, &limits, &region, &bounds, &self.slopes));

        let settings = Settings {
            target_class: self.target_class,
            engine: self.engine,
            time_limit: self.time_limit,
            deadline: self.total_time_limit.and_then(|limit| started.checked_add(limit)),
        };
        let workers: Vec<Mutex<Option<Worker>>> = (0..pool.current_num_threads()).map(|_| Mutex::default()).collect();
        let work = |&node: &NodeId| {
            let thread = rayon::current_thread_index().unwrap_or(0);
            let mut worker = workers[thread].lock().unwrap_or_else(PoisonError::into_inner);
            work(worker.get_or_insert_with(|| Worker::new(&relaxation, settings)), node)
        };
        let smallest = match self.engine {
            Engine::Fast => FIRST_CHUNK,
            Engine::Tight | Engine::Complete => FIRST_CHUNK_EACH * pool.current_num_threads(),
        };
        let (mut rest, mut size) = (nodes, smallest);
        while !rest.is_empty() {
            let (chunk, after) = rest.split_at(size.min(rest.len()));
            let piece = if self.engine == Engine::Fast { PIECE } else { 1 };
            let start = Instant::now();
            let results: Vec<T> = pool.install(|| chunk.par_iter().with_max_len(piece).map(work).collect());
            size = if start.elapsed() < CHUNK_TIME / 2 { 2 * size } else { (size / 2).max(smallest) };
            rest = after;
            for result in results {
                if observer(Told::Done(result)).is_break() {
                    return Ok(Finish::Cancelled);
                }
            }
        }
        Ok(Finish::Complete)
    }

    fn check_nodes(&self, nodes: &[NodeId]) -> Result<(), CertifyError> {
        let graph = self.network.graph();
        for &node in nodes {
            if node.index() >= graph.nodes() {
                return Err(CertifyError::NoSuchNode { node, nodes: graph.nodes() });
            }
            if self.target_class == TargetClass::Label && graph.label(node).is_none() {
                return Err(CertifyError::NoLabel { node });
            }
        }
        Ok(())
    }

    fn check_slopes(&self) -> Result<(), CertifyError> {
        let Slopes::Given(slopes) = &self.slopes else { return Ok(()) };
        let fail = |problem: String| Err(CertifyError::Slopes { problem });
        let hidden = &self.network.layers()[..self.network.layers().len() - 1];
        if slopes.len() != hidden.len() {
            return fail(format!("there are {} matrices for {} hidden layers", slopes.len(), hidden.len()));
        }
        for (i, (slopes, layer)) in slopes.iter().zip(hidden).enumerate() {
            let expected = (self.network.graph().nodes(), layer.bias().len());
            if (slopes.rows(), slopes.columns()) != expected {
                let found = format!("{} × {}", slopes.rows(), slopes.columns());
                return fail(format!("matrix {i} is {found}, it must be {} × {}", expected.0, expected.1));
            }
            if let Some(slope) = slopes.values().iter().find(|slope| !(0.0..=1.0).contains(*slope)) {
                return fail(format!("matrix {i} holds {slope}, outside [0, 1]"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dense::Matrix;
    use crate::graph::AttributeId;
    use crate::model::{Layer, Propagation};

    /// A ring of nodes, each with one of two words; the network counts them.
    pub(super) fn ring(nodes: u32) -> (Graph, Model) {
        let edges: Vec<_> = (0..nodes).map(|node| (node, (node + 1) % nodes)).collect();
        let ones: Vec<_> = (0..nodes).map(|node| (node, node / 5 % 2)).collect();
        let layers = vec![
            Layer::new(Matrix::from_values(3, 2, vec![1.0, -0.5, -0.5, 1.0, 0.1, 0.2]), vec![0.0, 0.05]),
            Layer::new(Matrix::from_values(2, 2, vec![1.0, 0.0, 0.0, 1.0]), vec![0.0; 2]),
        ];
        let model = Model::new(layers, Propagation::SymmetricGcn).unwrap();
        (Graph::new(nodes as usize, 3, &edges, &ones).unwrap(), model)
    }

    #[test]
    fn results_do_not_depend_on_threads() {
        let (graph, model) = ring(300);
        let nodes: Vec<NodeId> = graph.node_ids().collect();
        let certify = |threads: usize| {
            let certifier = Certifier::new(&graph, &model).unwrap().threads(threads);
            let mut certificates = certifier.budget(Budget::new(2, 2.into())).certify(&nodes).unwrap();
            certificates.iter_mut().for_each(|certificate| certificate.time = Duration::ZERO);
            certificates
        };
        let one = certify(1);
        assert!(one.iter().any(|c| c.verdict.is_robust()) && one.iter().any(|c| !c.verdict.is_robust()));
        assert_eq!(one, certify(2));
        assert_eq!(one, certify(7));
    }

    #[test]
    fn the_observer_may_break_off_at_any_time() {
        let (graph, model) = ring(100);
        let nodes: Vec<NodeId> = graph.node_ids().collect();
        let certifier = Certifier::new(&graph, &model).unwrap();
        for stop_after in 1..=102 {
            let (mut events, mut seen) = (0, Vec::new());
            let finish = certifier.certify_each(&nodes, |event| {
                events += 1;
                if let Event::Certified(certificate) = event {
                    seen.push(certificate.node);
                }
                if events == stop_after { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            let expected = if stop_after <= 101 { Finish::Cancelled } else { Finish::Complete };
            assert_eq!(finish.unwrap(), expected, "one step of preparation and 100 nodes");
            assert_eq!(seen, nodes[..stop_after.min(101) - 1]);
        }
    }

    #[test]
    fn what_cannot_be_certified_is_an_error() {
        let (graph, model) = ring(10);
        let certifier = || Certifier::new(&graph, &model).unwrap();
        assert!(matches!(certifier().certify(&[NodeId(10)]), Err(CertifyError::NoSuchNode { .. })));
        let by_label = certifier().target_class(TargetClass::Label);
        assert!(matches!(by_label.certify(&[NodeId(0)]), Err(CertifyError::NoLabel { .. })));
        let protected = Budget::new(1, 1.into()).protect_attributes([AttributeId(3)]);
        assert!(matches!(certifier().budget(protected).certify(&[]), Err(CertifyError::Budget(_))));
        for slopes in [vec![], vec![Matrix::zeros(10, 3)], vec![Matrix::from_values(10, 2, vec![1.5; 20])]] {
            let given = certifier().slopes(Slopes::Given(slopes));
            assert!(matches!(given.certify(&[NodeId(0)]), Err(CertifyError::Slopes { .. })));
        }
        assert_eq!(certifier().certify(&[]).unwrap(), []);
    }
}

//! The front of all engines.

use std::ops::{ControlFlow, Range};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use rayon::ThreadPool;

use super::asked::{Asked, Thin};
use super::schedule::{each_target, pool};
use super::worker::{Effort, Worker};
use super::{CertifyError, Finish};
use crate::budget::Budget;
use crate::certificate::Certificate;
use crate::graph::Graph;
use crate::ids::{ClassId, NodeId};
use crate::model::Model;
use crate::network::Network;
use crate::prepare::Prepared;
use crate::relax::Slopes;
use crate::settings::{Arithmetic, CertifySettings, Engine, TargetClass};

/// Progress of a [`Certifier`], always observed from the calling thread.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event {
    /// Preparations for all nodes together, such as bounds, have come this far.
    Preparing {
        /// Steps done.
        done: usize,
        /// Steps in total.
        total: usize,
    },
    /// Nothing new, but it goes on.
    Working,
    /// One more node is done; they come in the order in which they were asked for.
    Certified(Certificate),
}

/// Progress of [`Certifier::look_at`].
pub(super) enum Progress<T> {
    /// As [`Event::Preparing`].
    Preparing { done: usize, total: usize },
    /// As [`Event::Working`].
    Working,
    /// What came of one more node.
    Done(T),
}

impl Progress<Certificate> {
    /// What others hear of it.
    fn event(self) -> Event {
        match self {
            Self::Preparing { done, total } => Event::Preparing { done, total },
            Self::Working => Event::Working,
            Self::Done(certificate) => Event::Certified(certificate),
        }
    }
}

/// Certifies nodes of a graph.
///
/// ```no_run
/// use nodeproof::{Budget, Certifier, Graph, GraphOptions, Model};
/// let (graph, _) = Graph::read("cora_ml.npz", GraphOptions::new().binarise(true))?;
/// let model = Model::read("model.safetensors")?;
/// let nodes: Vec<_> = graph.node_ids().collect();
/// let certificates = Certifier::new(&graph, &model)?.budget(Budget::new(12, "1%".parse()?)).certify(&nodes)?;
/// let robust = certificates.iter().filter(|certificate| certificate.is_robust()).count();
/// println!("{robust} of {} nodes are robust", nodes.len());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Certifier<'a> {
    pub(super) network: Network<'a>,
    pub(super) settings: CertifySettings,
    pub(super) slopes: Slopes,
    /// The classes to certify of all nodes, if they do not follow from the settings.
    pub(super) classes: Option<Vec<ClassId>>,
}

impl<'a> Certifier<'a> {
    /// A certifier with the default settings: a budget of one flip, the predicted classes, the `fast` engine with default
    /// slopes, no time limits and as many threads as cores.
    ///
    /// # Errors
    /// If the model does not fit the graph.
    pub fn new(graph: &'a Graph, model: &'a Model) -> Result<Self, CertifyError> {
        let network = Network::new(graph, model)?;
        Ok(Self { network, settings: CertifySettings::default(), slopes: Slopes::default(), classes: None })
    }

    /// The model whose predictions are certified.
    pub fn model(&self) -> &'a Model {
        self.network.model()
    }

    /// Sets everything but the slopes.
    pub fn settings(mut self, settings: CertifySettings) -> Self {
        self.settings = settings;
        self
    }

    /// Sets what the attacker may change.
    pub fn budget(mut self, budget: Budget) -> Self {
        self.settings.budget = budget;
        self
    }

    /// Sets whose margins are certified.
    pub fn target_class(mut self, target_class: TargetClass) -> Self {
        self.settings.target_class = target_class;
        self
    }

    /// Sets what margins must exceed, 0 unless set: [`CertifySettings::margin`].
    pub fn margin(mut self, margin: f64) -> Self {
        self.settings.margin = margin;
        self
    }

    /// Sets the arithmetic in which they must, exact unless set: [`CertifySettings::arithmetic`].
    pub fn arithmetic(mut self, arithmetic: Arithmetic) -> Self {
        self.settings.arithmetic = arithmetic;
        self
    }

    /// Sets the slopes of the lower lines.
    pub fn slopes(mut self, slopes: Slopes) -> Self {
        self.slopes = slopes;
        self
    }

    /// Sets the strongest engine that is tried; each target goes from the fastest to this one until it is decided.
    pub fn engine(mut self, engine: Engine) -> Self {
        self.settings.engine = engine;
        self
    }

    /// Sets the most time that one target may take; one that is not decided by then stays undecided, with the best bounds
    /// that were found.
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.settings.time_limit = Some(limit);
        self
    }

    /// Sets whether certificates of robust nodes come with what a checker needs to see for itself that they are. Margins are then
    /// what it can show.
    pub fn proofs(mut self, proofs: bool) -> Self {
        self.settings.proofs = proofs;
        self
    }

    /// Sets the time after which no target gets more than the `fast` engine.
    pub fn total_time_limit(mut self, limit: Duration) -> Self {
        self.settings.total_time_limit = Some(limit);
        self
    }

    /// Sets the most bytes of memory that engines beyond `fast` may take for the lists and subproblems of one target; one that
    /// needs more stays undecided.
    pub fn memory_limit(mut self, bytes: usize) -> Self {
        self.settings.memory_limit = bytes;
        self
    }

    /// Sets the number of threads; 0 takes as many as there are cores. Results do not depend on it.
    pub fn threads(mut self, threads: usize) -> Self {
        self.settings.threads = threads;
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

    /// Certifies `nodes`, in this order, and calls `observer` as it goes; it may break off.
    ///
    /// # Errors
    /// If a node does not exist or the settings do not fit the graph.
    pub fn certify_each(
        &self,
        nodes: &[NodeId],
        mut observer: impl FnMut(Event) -> ControlFlow<()>,
    ) -> Result<Finish, CertifyError> {
        let observer = |progress: Progress<Certificate>| observer(progress.event());
        if self.shares_nothing() {
            return self.certify_alone(nodes, observer);
        }
        self.each(nodes, |worker, node| worker.certify(node), observer)
    }

    /// Whether nothing that is prepared for one run serves another: of more than positive margins even the network that bounds are computed for
    /// depends on the budget, and of deletions nothing is prepared.
    fn shares_nothing(&self) -> bool {
        self.settings.asks_for_more() || self.settings.budget.edges().is_some()
    }

    /// Certifies `nodes` in a run that shares nothing with others.
    pub(super) fn certify_alone(
        &self,
        nodes: &[NodeId],
        observer: impl FnMut(Progress<Certificate>) -> ControlFlow<()>,
    ) -> Result<Finish, CertifyError> {
        match self.settings.budget.edges() {
            Some(_) => self.certify_deletions(nodes, observer),
            None => self.certify_more(nodes, observer),
        }
    }

    /// What runs of these nodes under several budgets share, if they share anything.
    pub(super) fn ready_for_budgets(&self, nodes: &[NodeId]) -> Result<Option<Ready<'_>>, CertifyError> {
        if self.shares_nothing() { Ok(None) } else { self.ready(nodes).map(Some) }
    }

    /// Certifies parts of `nodes`, given by places among them, which `next` names until it has no more. What they share is prepared once, for all
    /// of `nodes`; the certificates are those of [`Certifier::certify_each`].
    ///
    /// # Errors
    /// If a node does not exist or the settings do not fit the graph.
    pub fn certify_parts(
        &self,
        nodes: &[NodeId],
        mut next: impl FnMut() -> Option<Range<usize>>,
        mut observer: impl FnMut(Event) -> ControlFlow<()>,
    ) -> Result<Finish, CertifyError> {
        if self.shares_nothing() {
            while let Some(part) = next() {
                if self.certify_each(&nodes[part], &mut observer)? == Finish::Cancelled {
                    return Ok(Finish::Cancelled);
                }
            }
            return Ok(Finish::Complete);
        }
        let Ready { prepared, pool, started } = self.ready(nodes)?;
        let limits = self.settings.budget.limits(self.network.graph())?;
        let tell = |done, total| observer(Event::Preparing { done, total });
        let Some(shard) = prepared.shard(&limits, nodes, &pool, tell) else { return Ok(Finish::Cancelled) };
        let effort = Effort::new(&self.settings, self.classes.as_deref(), started);
        while let Some(part) = next() {
            let tell = |found: Option<Certificate>| observer(found.map_or(Event::Working, Event::Certified));
            let work = |worker: &mut Worker, node| worker.certify(node);
            let stopped = AtomicBool::new(false);
            let make = || Worker::new(&shard, effort, &stopped);
            if each_target(&nodes[part], &pool, &stopped, make, work, tell) == Finish::Cancelled {
                return Ok(Finish::Cancelled);
            }
        }
        Ok(Finish::Complete)
    }

    /// Certifies `nodes` under one global budget after the other, all else being as in the settings, and calls `observer` with the
    /// budget and what happens under it. What does not depend on the budget is prepared once; the certificates are those of
    /// [`Certifier::certify_each`] under each budget. The total time limit is one for all budgets together.
    ///
    /// # Errors
    /// If a node does not exist or the settings do not fit the graph.
    pub fn certify_budgets(
        &self,
        nodes: &[NodeId],
        budgets: &[u32],
        mut observer: impl FnMut(u32, Event) -> ControlFlow<()>,
    ) -> Result<Finish, CertifyError> {
        let ready = self.ready_for_budgets(nodes)?;
        for &global in budgets {
            let observer = |progress: Progress<Certificate>| observer(global, progress.event());
            let finish = match &ready {
                Some(ready) => {
                    self.look_at(ready, global, (nodes, nodes), |worker, node| worker.certify(node), observer)?
                }
                None => self.under(global).certify_alone(nodes, observer)?,
            };
            if finish == Finish::Cancelled {
                return Ok(finish);
            }
        }
        Ok(Finish::Complete)
    }

    /// The same certifier with another global budget.
    pub(super) fn under(&self, global: u32) -> Certifier<'_> {
        let mut settings = self.settings.clone();
        settings.budget = settings.budget.with_varied(global);
        Certifier {
            network: self.network.clone(),
            settings,
            slopes: self.slopes.clone(),
            classes: self.classes.clone(),
        }
    }

    /// Certifies that margins exceed what the settings ask for: in a network with that taken off, and, where flips are found that only
    /// rounding makes matter, without anything taken off for it.
    pub(super) fn certify_more(
        &self,
        nodes: &[NodeId],
        mut observer: impl FnMut(Progress<Certificate>) -> ControlFlow<()>,
    ) -> Result<Finish, CertifyError> {
        self.settings.check_margin()?;
        self.settings.check_nodes(self.network.graph(), nodes)?;
        let limits = self.settings.budget.limits(self.network.graph())?;
        let asked = Asked::new(&self.network, &self.settings, &limits)?;
        let model = asked.model(self.network.model())?;
        let certifier = self.of_network(&model, &asked)?;
        if self.settings.arithmetic.is_exact() {
            return certifier.each(nodes, |worker, node| asked.translated(worker.certify(node)), observer);
        }
        let exactly = asked.without_rounding(&self.settings);
        let model = exactly.model(self.network.model())?;
        let other = self.of_network(&model, &exactly)?;
        let ready = other.ready(nodes)?;
        let tell = |done, total| observer(Progress::Preparing { done, total });
        let Some(shard) = ready.prepared.shard(&limits, nodes, &ready.pool, tell) else { return Ok(Finish::Cancelled) };
        let work = |worker: &mut Worker, node| {
            let found = (!asked.is_hopeless(node)).then(|| asked.translated(worker.certify(node)));
            match Thin::of(found, self.settings.margin) {
                Ok(certificate) => certificate,
                Err(thin) => {
                    let effort = Effort::new(&other.settings, other.classes.as_deref(), ready.started);
                    thin.settle(exactly.translated(worker.beside(&shard, effort).certify(node)))
                }
            }
        };
        certifier.each(nodes, work, observer)
    }

    /// The same for another network on the graph, of which no more is asked than that margins are positive.
    pub(super) fn of_network<'m>(&self, model: &'m Model, asked: &Asked) -> Result<Certifier<'m>, CertifyError>
    where
        'a: 'm,
    {
        let mut certifier = Certifier::new(self.network.graph(), model)?.settings(self.settings.clone());
        (certifier.slopes, certifier.classes) = (self.slopes.clone(), Some(asked.classes.clone()));
        Ok(certifier.margin(0.0).arithmetic(Arithmetic::Exact))
    }

    /// Has workers `work` on `nodes` under the budget of the settings.
    pub(super) fn each<T: Send>(
        &self,
        nodes: &[NodeId],
        work: impl Fn(&mut Worker, NodeId) -> T + Sync,
        observer: impl FnMut(Progress<T>) -> ControlFlow<()>,
    ) -> Result<Finish, CertifyError> {
        let ready = self.ready(nodes)?;
        self.look_at(&ready, self.settings.budget.global(), (nodes, nodes), work, observer)
    }

    /// Checks the settings and prepares for `nodes`.
    pub(super) fn ready(&self, nodes: &[NodeId]) -> Result<Ready<'_>, CertifyError> {
        self.check_no_edges("gaps", &[])?;
        self.settings.budget.limits(self.network.graph())?;
        self.settings.check_nodes(self.network.graph(), nodes)?;
        self.check_slopes()?;
        let (started, pool) = (Instant::now(), pool(self.settings.threads)?);
        let prepared = Prepared::new(&self.network, nodes, &self.slopes, &pool);
        Ok(Ready { prepared, pool, started })
    }

    /// Has workers `work` on the second of the targets, which share what is prepared for the first, under the global budget
    /// `global`, and calls `observer` with each, in order; it may break off.
    pub(super) fn look_at<T: Send>(
        &self,
        ready: &Ready,
        global: u32,
        (all, left): (&[NodeId], &[NodeId]),
        work: impl Fn(&mut Worker, NodeId) -> T + Sync,
        mut observer: impl FnMut(Progress<T>) -> ControlFlow<()>,
    ) -> Result<Finish, CertifyError> {
        let Ready { prepared, pool, started } = ready;
        let limits = self.settings.budget.clone().with_global(global).limits(self.network.graph())?;
        let tell = |done, total| observer(Progress::Preparing { done, total });
        let Some(shard) = prepared.shard(&limits, all, pool, tell) else { return Ok(Finish::Cancelled) };
        let effort = Effort::new(&self.settings, self.classes.as_deref(), *started);
        let observer = |result: Option<T>| observer(result.map_or(Progress::Working, Progress::Done));
        let stopped = AtomicBool::new(false);
        Ok(each_target(left, pool, &stopped, || Worker::new(&shard, effort, &stopped), work, observer))
    }

    fn check_slopes(&self) -> Result<(), CertifyError> {
        let Slopes::Given(slopes) = &self.slopes else { return Ok(()) };
        let fail = |problem: String| Err(CertifyError::Slopes { problem });
        let hidden: Vec<_> = self.network.layers().iter().filter(|layer| layer.is_hidden()).collect();
        if slopes.len() != hidden.len() {
            return fail(format!("there are {} matrices for {} hidden layers", slopes.len(), hidden.len()));
        }
        for (i, (slopes, layer)) in slopes.iter().zip(hidden).enumerate() {
            let expected = (self.network.graph().nodes(), layer.units());
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

/// A certifier that has checked its settings and prepared for its targets.
#[derive(Debug)]
pub(super) struct Ready<'r> {
    pub(super) prepared: Prepared<'r>,
    pub(super) pool: ThreadPool,
    pub(super) started: Instant,
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::dense::Matrix;
    use crate::ids::AttributeId;
    use crate::model::Propagation;
    use crate::settings::SettingsError;

    /// A ring of nodes, each with one of two words; the network counts them.
    pub(in crate::run) fn ring(nodes: u32) -> (Graph, Model) {
        let edges: Vec<_> = (0..nodes).map(|node| (node, (node + 1) % nodes)).collect();
        let ones: Vec<_> = (0..nodes).map(|node| (node, node / 5 % 2)).collect();
        let layers = vec![
            (Matrix::from_values(3, 2, vec![1.0, -0.5, -0.5, 1.0, 0.1, 0.2]), vec![0.0, 0.05]),
            (Matrix::from_values(2, 2, vec![1.0, 0.0, 0.0, 1.0]), vec![0.0; 2]),
        ];
        let model = Model::gcn(layers, Propagation::SymmetricGcn).unwrap();
        (Graph::new(nodes as usize, 3, &edges, &ones).unwrap(), model)
    }

    /// Parts in any order, and of margins that are asked for, too, are what certifying them alone comes to.
    #[test]
    fn parts_are_certified_as_if_alone() {
        let (graph, model) = ring(60);
        let nodes: Vec<NodeId> = graph.node_ids().collect();
        for margin in [0.0, 0.1] {
            let certifier = Certifier::new(&graph, &model).unwrap().budget(Budget::new(2, 1.into())).margin(margin);
            let certifier = certifier.engine(Engine::Complete).threads(2);
            let whole = certifier.certify(&nodes).unwrap();
            let parts = [30..45, 0..0, 50..60, 0..7];
            let (mut left, mut found) = (parts.iter().cloned(), Vec::new());
            let finish = certifier.certify_parts(
                &nodes,
                || left.next(),
                |event| {
                    if let Event::Certified(certificate) = event {
                        found.push(certificate);
                    }
                    ControlFlow::Continue(())
                },
            );
            assert_eq!(finish.unwrap(), Finish::Complete);
            let mut expected: Vec<Certificate> = parts.into_iter().flat_map(|part| &whole[part]).cloned().collect();
            found.iter_mut().chain(&mut expected).for_each(|certificate| certificate.time = None);
            assert_eq!(found, expected);
            let stopped = certifier.certify_parts(&nodes, || Some(0..60), |_| ControlFlow::Break(()));
            assert_eq!(stopped.unwrap(), Finish::Cancelled);
        }
    }

    /// In any order, twice the same included, and of margins that are asked for, too.
    #[test]
    fn budgets_in_one_pass_are_certified_as_if_alone() {
        let (graph, model) = ring(60);
        let nodes: Vec<NodeId> = graph.node_ids().collect();
        for (margin, engine) in [(0.0, Engine::Fast), (0.0, Engine::Complete), (0.1, Engine::Complete)] {
            let certifier = Certifier::new(&graph, &model).unwrap().budget(Budget::new(7, 2.into())).engine(engine);
            let certifier = certifier.margin(margin).threads(2);
            let (budgets, mut found) = ([3, 1, 0, 3], Vec::new());
            let finish = certifier.certify_budgets(&nodes, &budgets, |global, event| {
                if let Event::Certified(mut certificate) = event {
                    certificate.time = None;
                    found.push((global, certificate));
                }
                ControlFlow::Continue(())
            });
            assert_eq!(finish.unwrap(), Finish::Complete);
            let mut expected = Vec::new();
            for global in budgets {
                let alone = Certifier::new(&graph, &model).unwrap().budget(Budget::new(global, 2.into()));
                for mut certificate in alone.engine(engine).margin(margin).threads(1).certify(&nodes).unwrap() {
                    certificate.time = None;
                    expected.push((global, certificate));
                }
            }
            assert_eq!(found, expected);
            assert!(found[..60].iter().any(|(_, found)| !found.is_robust()));
            let stopped = certifier.certify_budgets(&nodes, &budgets, |_, _| ControlFlow::Break(()));
            assert_eq!(stopped.unwrap(), Finish::Cancelled);
        }
    }

    #[test]
    fn results_do_not_depend_on_threads() {
        let (graph, model) = ring(300);
        let nodes: Vec<NodeId> = graph.node_ids().collect();
        let certify = |threads: usize| {
            let certifier = Certifier::new(&graph, &model).unwrap().threads(threads);
            let mut certificates = certifier.budget(Budget::new(2, 2.into())).certify(&nodes).unwrap();
            certificates.iter_mut().for_each(|certificate| certificate.time = None);
            certificates
        };
        let one = certify(1);
        assert!(one.iter().any(|c| c.is_robust()) && one.iter().any(|c| !c.is_robust()));
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
                match event {
                    Event::Working => return ControlFlow::Continue(()),
                    Event::Certified(certificate) => seen.push(certificate.node),
                    Event::Preparing { .. } => {}
                }
                events += 1;
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
        assert!(matches!(
            certifier().certify(&[NodeId(10)]),
            Err(CertifyError::Settings(SettingsError::NoSuchNode { .. }))
        ));
        let by_label = certifier().target_class(TargetClass::Label);
        assert!(matches!(by_label.certify(&[NodeId(0)]), Err(CertifyError::Settings(SettingsError::NoLabels))));
        let protected = Budget::new(1, 1.into()).protect_attributes([AttributeId(3)]);
        assert!(matches!(certifier().budget(protected).certify(&[]), Err(CertifyError::Budget(_))));
        for slopes in [vec![], vec![Matrix::zeros(10, 3)], vec![Matrix::from_values(10, 2, vec![1.5; 20])]] {
            let given = certifier().slopes(Slopes::Given(slopes));
            assert!(matches!(given.certify(&[NodeId(0)]), Err(CertifyError::Slopes { .. })));
        }
        assert_eq!(certifier().certify(&[]).unwrap(), []);
    }
}

//! Flips of attributes beside the deletion of one edge: the flips on the graph as it is, and without each edge in turn.

use std::ops::ControlFlow;
use std::time::Instant;

use super::certifier::Progress;
use super::schedule::pool;
use super::{Certifier, CertifyError, Event, Finish};
use crate::certificate::{Bound, Certificate, Evidence, Obstacle, Witness, smallest};
use crate::edges::{Copies, Losses, Problem};
use crate::engines::first_order::Raised;
use crate::engines::patience::Patience;
use crate::flip::Flip;
use crate::ids::{ClassId, NodeId};
use crate::settings::{Engine, TargetClass};

/// What is asked about one target after the other.
pub(super) struct Beside<'b> {
    pub(super) certifier: &'b Certifier<'b>,
    pub(super) problem: &'b Problem<'b>,
    /// `None` where numbers may overflow.
    pub(super) losses: Option<&'b Losses<'b>>,
    pub(super) patience: Patience<'b>,
}

impl Beside<'_> {
    /// The verdict on a target, given that about flips alone: they are certified on the graph without each edge, too, unless a witness needs
    /// none, or the edge cannot take as much from any margin as flips alone leave of it.
    pub(super) fn certificate(&self, alone: &Certificate) -> Certificate {
        if alone.witness().is_some() {
            return Combined::new(alone).certificate(alone.witness().cloned());
        }
        // On threads of its own: one of the pool would take up other targets whenever it waits.
        let alone_in_pool = || {
            let pool = pool(1).unwrap_or_else(|error| panic!("{error}"));
            pool.install(|| self.over_edges(alone))
        };
        let found = std::thread::scope(|scope| scope.spawn(alone_in_pool).join());
        found.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    /// The smallest lower bounds of the margins of a class under flips beside no deletion or any one, as far as they go without branching.
    /// `None` if the observer breaks off.
    pub(super) fn margins(
        &self,
        target: NodeId,
        class: ClassId,
        mut observer: impl FnMut() -> ControlFlow<()>,
    ) -> Result<Option<Vec<Option<Bound>>>, CertifyError> {
        let network = &self.certifier.network;
        let mut edges = self.problem.single_deletions(target).into_iter();
        let mut smallest: Option<Vec<Option<Bound>>> = None;
        while smallest.is_none() || edges.len() > 0 {
            let Some(copies) = Copies::new(network, target, &mut edges) else {
                return Ok(Some(vec![None; network.model().classes()]));
            };
            let nodes: Vec<NodeId> = (0..=copies.edges.len() as u32).map(NodeId).collect();
            let finish = self.of(&copies, class).each(
                &nodes,
                |worker, node| worker.without_branching(node, Raised::Each, worker.patience()).0,
                |progress| {
                    if let Progress::Done(margins) = progress {
                        take_smaller(smallest.get_or_insert_with(|| margins.clone()), &margins);
                    }
                    observer()
                },
            )?;
            if finish == Finish::Cancelled {
                return Ok(None);
            }
        }
        Ok(smallest)
    }

    /// The verdict over all edges, given that flips alone break nothing.
    fn over_edges(&self, alone: &Certificate) -> Certificate {
        let mut all = Combined::new(alone);
        let mut edges = self.problem.single_deletions(alone.node).into_iter();
        while edges.len() > 0 {
            if self.patience.is_spent() {
                all.open(Bound::Unknown, None, Obstacle::Time);
                break;
            }
            let Some(copies) = Copies::new(&self.certifier.network, alone.node, &mut edges) else {
                all.open(Bound::Unknown, None, Obstacle::Overflow);
                continue;
            };
            if let ControlFlow::Break(witness) = self.certify(&copies, &alone.margins, &mut all) {
                return all.certificate(witness);
            }
        }
        all.certificate(None)
    }

    /// Takes the verdicts about flips on each copy, the smallest margins first; breaks off at a witness, or when there is no time left.
    fn certify(&self, copies: &Copies, alone: &[Option<Bound>], all: &mut Combined) -> ControlFlow<Option<Witness>> {
        let mut nodes = self.open_copies(copies, alone, all);
        if nodes.is_empty() {
            return ControlFlow::Continue(());
        }
        let certifier = self.of(copies, all.class);
        let logits = certifier.network.logits_of(&nodes);
        let margins = (0..nodes.len()).map(|row| smallest_margin(logits.row(row), all.class));
        let mut by_margin: Vec<(f64, NodeId)> = margins.zip(nodes).collect();
        by_margin.sort_by(|a, b| a.0.total_cmp(&b.0));
        nodes = by_margin.into_iter().map(|(_, node)| node).collect();
        let (mut left, mut witness) = (nodes.len(), None);
        let finish = certifier.certify_each(&nodes, |event| {
            if let Event::Certified(found) = event {
                left -= 1;
                witness = found.witness().map(|witness| of_graph(witness, copies, found.node));
                if witness.is_some() { all.count(&found) } else { all.take(&found) }
            }
            let goes_on = witness.is_none() && !self.patience.is_spent();
            if goes_on { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        let _ = finish.unwrap_or_else(|error| unreachable!("the settings fit the whole graph: {error}"));
        if left > 0 && witness.is_none() {
            all.open(Bound::Unknown, None, Obstacle::Time);
        }
        if left > 0 || witness.is_some() { ControlFlow::Break(witness) } else { ControlFlow::Continue(()) }
    }

    /// The copies that are not robust for what their edges take from the margins of flips alone at most.
    fn open_copies(&self, copies: &Copies, alone: &[Option<Bound>], all: &mut Combined) -> Vec<NodeId> {
        let nodes = (1..=copies.edges.len() as u32).map(NodeId);
        let Some(losses) = self.losses else { return nodes.collect() };
        let left = |(margin, &loss): (&Option<Bound>, &f64)| margin.map(|margin| reduced(margin, loss));
        let mut open = Vec::new();
        for (node, losses) in nodes.zip(losses.of(copies, all.class)) {
            let margins: Vec<Option<Bound>> = alone.iter().zip(&losses).map(left).collect();
            if smallest(&margins).1.is_positive() {
                take_smaller(&mut all.margins, &margins);
            } else {
                open.push(node);
            }
        }
        open
    }

    /// What certifies flips on copies.
    fn of<'c>(&self, copies: &'c Copies, class: ClassId) -> Certifier<'c> {
        let certifier = Certifier::new(&copies.graph, &copies.model);
        let certifier = certifier.unwrap_or_else(|error| unreachable!("the model fits the whole graph: {error}"));
        let mut settings = self.certifier.settings.clone();
        (settings.budget, settings.threads, settings.time_limit) = (settings.budget.of_part(&copies.nodes), 1, None);
        // The class is given, and copies have no labels.
        settings.target_class = TargetClass::Predicted;
        let left = |deadline: Instant| deadline.saturating_duration_since(Instant::now());
        settings.total_time_limit = self.patience.deadline.map(left);
        let mut certifier = certifier.settings(settings);
        certifier.classes = Some(vec![class; copies.graph.nodes()]);
        certifier
    }
}

/// A bound on a margin that is smaller by at most so much.
fn reduced(margin: Bound, loss: f64) -> Bound {
    let down = |bound: f64| bound - loss - 4.0 * f64::EPSILON * (bound.abs() + loss.abs());
    margin.at_least().map_or(Bound::Unknown, |bound| Bound::AtLeast(down(bound)))
}

/// Takes the smaller of two bounds on each margin.
fn take_smaller(known: &mut [Option<Bound>], other: &[Option<Bound>]) {
    for (known, other) in known.iter_mut().zip(other) {
        if let (Some(known), Some(other)) = (known, other)
            && other.is_below(*known)
        {
            *known = *other;
        }
    }
}

/// The lead of a class over the next.
fn smallest_margin(logits: &[f64], class: ClassId) -> f64 {
    let others = logits.iter().enumerate().filter(|&(k, _)| k != class.index());
    others.map(|(_, logit)| logits[class.index()] - logit).fold(f64::INFINITY, f64::min)
}

/// The witness on the graph that one on a copy stands for.
fn of_graph(witness: &Witness, copies: &Copies, copy: NodeId) -> Witness {
    let flip = |flip: &Flip| Flip { node: NodeId(copies.nodes[flip.node.index()]), ..*flip };
    let flips = witness.flips.iter().map(flip).collect();
    Witness::new(flips, witness.class, witness.margin).with_edges(vec![copies.edges[copy.index() - 1]])
}

/// What certificates of one target come to together.
struct Combined {
    target: NodeId,
    class: ClassId,
    predicted: ClassId,
    margins: Vec<Option<Bound>>,
    /// What was left open, with the smallest margins that were found.
    open: Option<(Option<f64>, Obstacle)>,
    engine: Engine,
    branches: u64,
}

impl Combined {
    /// Of one certificate alone.
    fn new(alone: &Certificate) -> Self {
        let margin = |margin: &Option<Bound>| margin.map(|_| Bound::AtLeast(f64::INFINITY));
        let mut all = Self {
            target: alone.node,
            class: alone.class,
            predicted: alone.predicted,
            margins: alone.margins.iter().map(margin).collect(),
            open: None,
            engine: Engine::Fast,
            branches: 0,
        };
        all.take(alone);
        all
    }

    fn count(&mut self, found: &Certificate) {
        self.engine = self.engine.max(found.engine);
        self.branches += found.branches;
    }

    fn take(&mut self, found: &Certificate) {
        self.count(found);
        take_smaller(&mut self.margins, &found.margins);
        if let Evidence::Open { lower, upper, because } = found.evidence {
            self.open(lower, upper, because.unwrap_or(Obstacle::Engine));
        }
    }

    fn open(&mut self, lower: Bound, upper: Option<f64>, because: Obstacle) {
        if lower == Bound::Unknown {
            let unknown: Vec<_> = self.margins.iter().map(|margin| margin.map(|_| Bound::Unknown)).collect();
            take_smaller(&mut self.margins, &unknown);
        }
        let (known, first) = self.open.unwrap_or((None, because));
        let smaller = [known, upper].into_iter().flatten().reduce(f64::min);
        self.open = Some((smaller, first));
    }

    fn certificate(mut self, witness: Option<Witness>) -> Certificate {
        if witness.is_some() {
            // Some deletions were not looked at.
            self.margins.iter_mut().flatten().for_each(|margin| *margin = Bound::Unknown);
        }
        let lower = smallest(&self.margins).1;
        let evidence = match (witness, self.open) {
            (Some(witness), _) => Evidence::Witness(witness),
            (None, Some((upper, because))) => Evidence::Open { lower, upper, because: Some(because) },
            (None, None) => Evidence::Robust,
        };
        let mut certificate = Certificate::new(self.target, self.class, self.predicted, evidence, self.margins);
        (certificate.engine, certificate.branches) = (self.engine, self.branches);
        certificate
    }
}

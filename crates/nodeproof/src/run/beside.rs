//! Flips of attributes beside the deletion of one edge: each edge in turn, and the flips on the graph without it.

use std::time::Instant;

use super::Certifier;
use crate::budget::Budget;
use crate::certificate::{Bound, Certificate, Evidence, Obstacle, Witness, smallest};
use crate::edge::Edge;
use crate::edges::Problem;
use crate::engines::patience::Patience;
use crate::flip::Flip;
use crate::graph::Graph;
use crate::ids::{ClassId, NodeId};
use crate::settings::{Engine, TargetClass};

/// What is asked about one target after the other.
pub(super) struct Beside<'b> {
    pub(super) certifier: &'b Certifier<'b>,
    pub(super) problem: &'b Problem<'b>,
    pub(super) patience: Patience<'b>,
}

impl Beside<'_> {
    /// The verdict on a target. Flips are certified on the part of the graph that it sees, without any deletion and with each.
    pub(super) fn certificate(&self, target: NodeId, class: ClassId, predicted: ClassId) -> Certificate {
        let graph = self.certifier.network.graph();
        let nodes = self.problem.around(target);
        let part = graph.part(&nodes);
        let budget = self.budget(&nodes);
        let edges = self.problem.single_deletions(target).into_iter().map(Some);
        let mut all = Combined::new(self.certifier.network.model().classes(), class);
        for edge in std::iter::once(None).chain(edges) {
            if self.patience.is_spent() {
                all.open(Bound::Unknown, None, Obstacle::Time);
                break;
            }
            let local = edge.map(|edge| Edge::between(place(&nodes, edge.ends()[0]), place(&nodes, edge.ends()[1])));
            let deleted: Vec<Edge> = local.flatten().into_iter().collect();
            let left = part.without_edges(&deleted);
            let left = left.unwrap_or_else(|error| unreachable!("an edge of what the target sees: {error}"));
            let found = self.on(&left, budget.clone(), place(&nodes, target), class);
            let Evidence::Witness(witness) = &found.evidence else {
                all.take(&found);
                continue;
            };
            all.count(&found);
            let flip = |flip: &Flip| Flip { node: NodeId(nodes[flip.node.index()]), ..*flip };
            let flips = witness.flips.iter().map(flip).collect();
            let witness = Witness::new(flips, witness.class, witness.margin).with_edges(edge.into_iter().collect());
            return all.certificate(target, class, predicted, Some(witness));
        }
        all.certificate(target, class, predicted, None)
    }

    /// The budget of flips, of a part of the nodes.
    fn budget(&self, nodes: &[u32]) -> Budget {
        let whole = &self.certifier.settings.budget;
        let local = |node: NodeId| nodes.binary_search(&node.0).ok().map(|place| NodeId(place as u32));
        let budget = Budget::new(whole.global(), whole.local())
            .direction(whole.allowed())
            .protect_nodes(whole.protected_nodes().iter().filter_map(|&node| local(node)))
            .protect_attributes(whole.protected_attributes().iter().copied());
        let own = whole.own_locals().iter().filter_map(|(&node, &count)| Some((local(node)?, count)));
        own.fold(budget, |budget, (node, count)| budget.local_at(node, count))
    }

    /// The verdict about flips alone on a graph.
    fn on(&self, graph: &Graph, budget: Budget, target: NodeId, class: ClassId) -> Certificate {
        let model = self.certifier.network.model();
        let certifier = Certifier::new(graph, model);
        let certifier = certifier.unwrap_or_else(|error| unreachable!("the model fits the whole graph: {error}"));
        let mut settings = self.certifier.settings.clone();
        (settings.budget, settings.threads, settings.total_time_limit) = (budget, 1, None);
        // The class is given, and the part has no labels.
        settings.target_class = TargetClass::Predicted;
        settings.time_limit = self.patience.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let mut certifier = certifier.settings(settings);
        certifier.classes = Some(vec![class; graph.nodes()]);
        let found = certifier.certify(&[target]);
        let found = found.unwrap_or_else(|error| unreachable!("the settings fit the whole graph: {error}"));
        found.into_iter().next().unwrap_or_else(|| unreachable!("one target, one certificate"))
    }
}

/// The place of a node among others.
fn place(nodes: &[u32], node: NodeId) -> NodeId {
    let place = nodes.binary_search(&node.0);
    NodeId(place.unwrap_or_else(|_| unreachable!("the target sees it")) as u32)
}

/// What certificates of one target come to together.
struct Combined {
    margins: Vec<Option<Bound>>,
    /// What was left open, with the smallest margins that were found.
    open: Option<(Option<f64>, Obstacle)>,
    engine: Engine,
    branches: u64,
}

impl Combined {
    fn new(classes: usize, class: ClassId) -> Self {
        let margin = |k: usize| (k != class.index()).then_some(Bound::AtLeast(f64::INFINITY));
        Self { margins: (0..classes).map(margin).collect(), open: None, engine: Engine::Fast, branches: 0 }
    }

    fn count(&mut self, found: &Certificate) {
        self.engine = self.engine.max(found.engine);
        self.branches += found.branches;
    }

    /// Takes the smaller of two bounds on each margin.
    fn lower(&mut self, margins: &[Option<Bound>]) {
        for (known, other) in self.margins.iter_mut().zip(margins) {
            if let (Some(known), Some(other)) = (known, other)
                && other.is_below(*known)
            {
                *known = *other;
            }
        }
    }

    fn take(&mut self, found: &Certificate) {
        self.count(found);
        self.lower(&found.margins);
        if let Evidence::Open { lower, upper, because } = found.evidence {
            self.open(lower, upper, because.unwrap_or(Obstacle::Engine));
        }
    }

    fn open(&mut self, lower: Bound, upper: Option<f64>, because: Obstacle) {
        if lower == Bound::Unknown {
            let unknown: Vec<_> = self.margins.iter().map(|margin| margin.map(|_| Bound::Unknown)).collect();
            self.lower(&unknown);
        }
        let (known, first) = self.open.unwrap_or((None, because));
        let smaller = [known, upper].into_iter().flatten().reduce(f64::min);
        self.open = Some((smaller, first));
    }

    fn certificate(
        mut self,
        target: NodeId,
        class: ClassId,
        predicted: ClassId,
        witness: Option<Witness>,
    ) -> Certificate {
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
        let mut certificate = Certificate::new(target, class, predicted, evidence, self.margins);
        (certificate.engine, certificate.branches) = (self.engine, self.branches);
        certificate
    }
}

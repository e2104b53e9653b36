//! Deletions of edges, in place of flips and beside them.

use std::ops::ControlFlow;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use super::beside::Beside;
use super::certifier::Progress;
use super::schedule::{each_target, pool};
use super::worker::{Effort, Worker};
use super::{Certifier, CertifyError, Finish};
use crate::certificate::{Bound, Certificate, Evidence};
use crate::edges::{Decision, EdgesError, Losses, Problem};
use crate::engines::first_order::Raised;
use crate::ids::{ClassId, NodeId};
use crate::network::largest;
use crate::prepare::Prepared;
use crate::relax::Slopes;
use crate::settings::{Engine, TargetClass};

/// The engine that settled a target, or the last one that tried: `fast` if nothing was branched on and no exact arithmetic was asked for,
/// since the bounds are those of `fast`, which computes what `tight` does.
fn settled_by(decision: &Decision, asked: Engine) -> Engine {
    let is_exact = match &decision.evidence {
        Evidence::Open { .. } => return asked,
        Evidence::Witness(witness) => witness.margin == 0.0,
        _ => decision.margins.contains(&Some(Bound::Positive)),
    };
    if decision.branches > 0 || is_exact { Engine::Complete } else { Engine::Fast }
}

impl Certifier<'_> {
    /// Refuses budgets that let edges be deleted, for what is about attributes alone.
    pub(super) fn check_no_edges(
        &self,
        what: &'static str,
        options: &'static [&'static str],
    ) -> Result<(), CertifyError> {
        match self.settings.budget.edges() {
            Some(_) => Err(EdgesError::NotYet { what, options }.into()),
            None => Ok(()),
        }
    }

    /// Certifies `nodes` against deletions of edges.
    pub(super) fn certify_deletions(
        &self,
        nodes: &[NodeId],
        mut observer: impl FnMut(Progress<Certificate>) -> ControlFlow<()>,
    ) -> Result<Finish, CertifyError> {
        let settings = &self.settings;
        let limits = settings.budget.limits(self.network.graph())?;
        let Some(edges) = limits.edges() else { return Ok(Finish::Complete) };
        let flips = settings.budget.global() > 0;
        if flips && edges.global() > 1 {
            return Err(EdgesError::Several.into());
        }
        let not_yet: [(bool, &'static str, &'static [&'static str]); 4] = [
            (settings.margin != 0.0, "margins above 0", &["margin"]),
            (!settings.arithmetic.is_exact(), "arithmetics that round", &["arithmetic"]),
            (settings.proofs, "proofs", &["proofs"]),
            (self.slopes != Slopes::Default, "slopes of one's own", &["slopes"]),
        ];
        if let Some(&(_, what, options)) = not_yet.iter().find(|(is_asked, ..)| *is_asked) {
            return Err(EdgesError::NotYet { what, options }.into());
        }
        settings.check_nodes(self.network.graph(), nodes)?;
        let problem = Problem::new(&self.network, edges)?;
        if !flips {
            problem.check_depth()?;
        }
        let (started, pool) = (Instant::now(), pool(settings.threads)?);
        let effort = Effort::new(settings, self.classes.as_deref(), started);
        let stopped = AtomicBool::new(false);
        if flips {
            let prepared = Prepared::new(&self.network, nodes, &Slopes::Default, &pool);
            let tell = |done, total| observer(Progress::Preparing { done, total });
            let Some(shard) = prepared.shard(&limits, nodes, &pool, tell) else { return Ok(Finish::Cancelled) };
            let losses = Losses::new(&shard);
            let make = || Worker::new(&shard, effort, &stopped);
            let work = |worker: &mut Worker, node: NodeId| {
                let start = Instant::now();
                let patience = effort.patience(start, &stopped);
                let mut alone = worker.certify(node);
                if alone.witness().is_none() {
                    alone.raise(&worker.without_branching(node, Raised::Each, patience).0);
                }
                let beside = Beside { certifier: self, problem: &problem, losses: losses.as_ref(), patience };
                self.finished(beside.certificate(&alone), start)
            };
            let tell = |found: Option<Certificate>| observer(found.map_or(Progress::Working, Progress::Done));
            return Ok(each_target(nodes, &pool, &stopped, make, work, tell));
        }
        let logits = self.network.logits_of(nodes);
        if observer(Progress::Preparing { done: 1, total: 1 }).is_break() {
            return Ok(Finish::Cancelled);
        }
        let places: Vec<usize> = (0..nodes.len()).collect();
        let work = |(): &mut (), place: usize| {
            let (node, start) = (nodes[place], Instant::now());
            let predicted = largest(logits.row(place));
            let class = self.class_of(node, predicted);
            let decision = problem.decide(node, class, effort.patience(start, &stopped));
            let engine = settled_by(&decision, settings.engine);
            let mut certificate = Certificate::new(node, class, predicted, decision.evidence, decision.margins);
            (certificate.engine, certificate.branches) = (engine, decision.branches);
            self.finished(certificate, start)
        };
        let tell = |found: Option<Certificate>| observer(found.map_or(Progress::Working, Progress::Done));
        Ok(each_target(&places, &pool, &stopped, || (), work, tell))
    }

    /// A certificate of a target that was begun at `start`, with what certificates tell of all targets.
    fn finished(&self, mut certificate: Certificate, start: Instant) -> Certificate {
        certificate.label = self.network.graph().label(certificate.node);
        certificate.time = Some(start.elapsed());
        certificate
    }

    /// Raises the margins of a certificate to what bounds of all deletions at once show; beside flips, those of a nonrobust node, of which
    /// nothing is known, to the smallest that show without any deletion and with each. The observer may break off.
    pub(super) fn raise_over_deletions(
        &self,
        certificate: &mut Certificate,
        observer: impl FnMut() -> ControlFlow<()>,
    ) -> Result<Finish, CertifyError> {
        let limits = self.settings.budget.limits(self.network.graph())?;
        self.settings.check_nodes(self.network.graph(), &[certificate.node])?;
        let Some(edges) = limits.edges() else { return Ok(Finish::Complete) };
        let problem = Problem::new(&self.network, edges)?;
        if self.settings.budget.global() == 0 {
            problem.check_depth()?;
            certificate.raise(&problem.margins(certificate.node, certificate.class));
        } else if certificate.witness().is_some() {
            let (started, stopped) = (Instant::now(), AtomicBool::new(false));
            let patience = Effort::new(&self.settings, self.classes.as_deref(), started).patience(started, &stopped);
            let beside = Beside { certifier: self, problem: &problem, losses: None, patience };
            let Some(margins) = beside.margins(certificate.node, certificate.class, observer)? else {
                return Ok(Finish::Cancelled);
            };
            certificate.raise(&margins);
        }
        Ok(Finish::Complete)
    }

    /// The class that is certified of a node.
    fn class_of(&self, node: NodeId, predicted: ClassId) -> ClassId {
        match (self.settings.target_class, self.network.graph().label(node)) {
            (TargetClass::Label, Some(label)) => label,
            _ => predicted,
        }
    }
}

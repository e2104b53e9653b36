//! Deletions of edges in place of flips.

use std::ops::ControlFlow;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use super::beside::Beside;
use super::certifier::Progress;
use super::schedule::{each_target, pool};
use super::worker::Effort;
use super::{Certifier, CertifyError, Finish};
use crate::certificate::Certificate;
use crate::edges::{EdgesError, Problem};
use crate::ids::{ClassId, NodeId};
use crate::network::largest;
use crate::settings::{Engine, TargetClass};

impl Certifier<'_> {
    /// Refuses budgets that let edges be deleted, for what is about attributes alone.
    pub(super) fn check_no_edges(&self, what: &'static str) -> Result<(), CertifyError> {
        match self.settings.budget.edges() {
            Some(_) => Err(EdgesError::NotYet(what).into()),
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
        for (is_asked, what) in [(settings.asks_for_more(), "margins and arithmetics"), (settings.proofs, "proofs")] {
            if is_asked {
                return Err(EdgesError::NotYet(what).into());
            }
        }
        settings.check_nodes(self.network.graph(), nodes)?;
        let problem = Problem::new(&self.network, edges)?;
        if !flips {
            problem.check_depth()?;
        }
        let (started, pool) = (Instant::now(), pool(settings.threads)?);
        let logits = self.network.logits_of(nodes);
        if observer(Progress::Preparing { done: 1, total: 1 }).is_break() {
            return Ok(Finish::Cancelled);
        }
        let effort = Effort::new(settings, self.classes.as_deref(), started);
        let places: Vec<usize> = (0..nodes.len()).collect();
        let stopped = AtomicBool::new(false);
        let work = |(): &mut (), place: usize| {
            let (node, start) = (nodes[place], Instant::now());
            let predicted = largest(logits.row(place));
            let class = self.class_of(node, predicted);
            let patience = effort.patience(start, &stopped);
            let mut certificate = if flips {
                // On a thread of its own: one of the pool would take up other targets whenever it waits.
                let beside = Beside { certifier: self, problem: &problem, patience };
                let found =
                    std::thread::scope(|scope| scope.spawn(|| beside.certificate(node, class, predicted)).join());
                found.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            } else {
                let decision = problem.decide(node, class, patience);
                let mut certificate = Certificate::new(node, class, predicted, decision.evidence, decision.margins);
                let engine = if decision.branches > 0 { Engine::Complete } else { Engine::Tight };
                (certificate.engine, certificate.branches) = (engine.min(settings.engine), decision.branches);
                certificate
            };
            certificate.label = self.network.graph().label(node);
            certificate.time = Some(start.elapsed());
            certificate
        };
        let tell = |found: Option<Certificate>| observer(found.map_or(Progress::Working, Progress::Done));
        Ok(each_target(&places, &pool, &stopped, || (), work, tell))
    }

    /// Raises the margins of a certificate to what bounds of all deletions at once show; beside flips they stay as they are.
    pub(super) fn raise_over_deletions(&self, certificate: &mut Certificate) -> Result<(), CertifyError> {
        let limits = self.settings.budget.limits(self.network.graph())?;
        self.settings.check_nodes(self.network.graph(), &[certificate.node])?;
        if let Some(edges) = limits.edges().filter(|_| self.settings.budget.global() == 0) {
            let problem = Problem::new(&self.network, edges)?;
            problem.check_depth()?;
            certificate.raise(&problem.margins(certificate.node, certificate.class));
        }
        Ok(())
    }

    /// The class that is certified of a node.
    fn class_of(&self, node: NodeId, predicted: ClassId) -> ClassId {
        match (self.settings.target_class, self.network.graph().label(node)) {
            (TargetClass::Label, Some(label)) => label,
            _ => predicted,
        }
    }
}

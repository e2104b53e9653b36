//! What a trained network is worth: accuracy and verdicts of all nodes, and the largest budgets they withstand.

use std::ops::ControlFlow;

use nodeproof::{Certifier, CertifySettings, Engine, Event, Finish, Graph, Model, NodeId, Radius, Split};
use nodeproof_report::tally::Summary;
use serde::Serialize;

use super::Job;
use super::plan::Plan;
use crate::interrupt::Interrupt;
use crate::progress::Progress;
use crate::words;

/// What is known of a network.
pub(in crate::commands) struct Evaluation {
    /// What it is certified with.
    pub(super) engine: Engine,
    pub(super) summary: Summary,
    pub(super) radius: Option<AverageRadius>,
}

/// The mean of the largest global budgets that nodes withstand.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct AverageRadius {
    pub(super) all: f64,
    pub(super) labelled: Option<f64>,
    pub(super) unlabelled: Option<f64>,
    /// Whether some node withstands the largest budget that was tried.
    pub(super) cut_off: bool,
}

impl AverageRadius {
    fn new(radii: &[Radius], split: &Split, most: u32) -> Self {
        let group = |labelled: bool| {
            mean(radii.iter().filter(|radius| split.is_labelled(radius.node) == labelled).map(Radius::withstood))
        };
        Self {
            all: mean(radii.iter().map(Radius::withstood)).unwrap_or(0.0),
            labelled: group(true),
            unlabelled: group(false),
            cut_off: radii.iter().any(|radius| radius.withstood() == most),
        }
    }
}

fn mean(values: impl Iterator<Item = u32>) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0);
    values.for_each(|value| (sum, count) = (sum + f64::from(value), count + 1));
    (count > 0).then(|| sum / f64::from(count))
}

/// How the network of `plan` is certified under the budget that it was trained for.
pub(super) fn settings(plan: &Plan, threads: usize) -> CertifySettings {
    let mut settings = CertifySettings::new(plan.settings.budget.clone());
    settings.threads = threads;
    settings
}

/// Certifies every node under the budget of `plan`; `None` if it was interrupted.
///
/// # Errors
/// If the system refuses threads.
pub(super) fn evaluate(
    job: &Job,
    graph: &Graph,
    plan: &Plan,
    model: &Model,
    interrupt: Interrupt,
) -> anyhow::Result<Option<Evaluation>> {
    let nodes: Vec<NodeId> = graph.node_ids().collect();
    let engine = Engine::to_begin_with(model);
    let certifier = Certifier::new(graph, model)?.settings(settings(plan, job.threads)).engine(engine);
    let mut summary = Summary::new(Some(plan.split.clone()));
    let progress = Progress::new(nodes.len(), job.quiet);
    let go_on = || if interrupt.asked() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
    let finish = certifier.certify_each(&nodes, |event| {
        match event {
            Event::Preparing { done, total } => progress.preparing(done, total),
            Event::Certified(certificate) => {
                summary.add(&certificate);
                progress.advance();
            }
            _ => {}
        }
        go_on()
    });
    progress.clear();
    if finish.map_err(words::certifying)? == Finish::Cancelled {
        return Ok(None);
    }
    let Some(most) = job.average_radius else { return Ok(Some(Evaluation { engine, summary, radius: None })) };
    let progress = Progress::new(most as usize, job.quiet);
    let certifier = certifier.engine(Engine::Fast);
    let mut search = certifier.scan_radii(&nodes, most);
    let finish = search.run(|search, _| {
        progress.scanning(search.round(), search.progress().1);
        go_on()
    });
    progress.clear();
    if finish.map_err(words::certifying)? == Finish::Cancelled {
        return Ok(None);
    }
    let radius = Some(AverageRadius::new(&search.radii(), &plan.split, most));
    Ok(Some(Evaluation { engine, summary, radius }))
}

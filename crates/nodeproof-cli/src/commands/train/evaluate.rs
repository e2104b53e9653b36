//! What a trained network is worth: accuracy and verdicts of all nodes, and the largest budgets they withstand.

use std::ops::ControlFlow;

use nodeproof::{Certifier, Event, Finish, Graph, Model, NodeId, Split};
use nodeproof_report::results::Record;
use serde::Serialize;

use super::plan::Plan;
use crate::cli::TrainArguments;
use crate::interrupt::Interrupt;
use crate::progress::Progress;
use crate::summary::Summary;

/// What is known of a network.
pub(super) struct Evaluation {
    pub(super) summary: Summary,
    pub(super) radius: Option<Radius>,
}

/// The mean of the largest global budgets that nodes withstand.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Radius {
    pub(super) all: f64,
    pub(super) labelled: Option<f64>,
    pub(super) unlabelled: Option<f64>,
    /// Whether some node withstands the largest budget that was tried.
    pub(super) cut_off: bool,
}

impl Radius {
    fn new(largest: &[u32], split: &Split, most: u32) -> Self {
        let group = |labelled: bool| {
            let of_group = |node: usize| split.is_labelled(NodeId(node as u32)) == labelled;
            mean(largest.iter().enumerate().filter(|(node, _)| of_group(*node)).map(|(_, &largest)| largest))
        };
        Self {
            all: mean(largest.iter().copied()).unwrap_or(0.0),
            labelled: group(true),
            unlabelled: group(false),
            cut_off: largest.contains(&most),
        }
    }
}

fn mean(values: impl Iterator<Item = u32>) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0);
    values.for_each(|value| (sum, count) = (sum + f64::from(value), count + 1));
    (count > 0).then(|| sum / f64::from(count))
}

/// Certifies every node under the budget of `plan`; `None` if it was interrupted.
///
/// # Errors
/// If the system refuses threads.
pub(super) fn evaluate(
    arguments: &TrainArguments,
    graph: &Graph,
    plan: &Plan,
    model: &Model,
    interrupt: Interrupt,
) -> anyhow::Result<Option<Evaluation>> {
    let nodes: Vec<NodeId> = graph.node_ids().collect();
    let certifier =
        Certifier::new(graph, model)?.budget(plan.budget.budget().clone()).threads(arguments.threads.count());
    let mut summary = Summary::new(Some(plan.split.clone()));
    let progress = Progress::new(nodes.len(), 0, arguments.output.quiet);
    let go_on = || if interrupt.asked() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
    let finish = certifier.certify_each(&nodes, |event| {
        match event {
            Event::Preparing { done, total } => progress.preparing(done, total),
            Event::Certified(certificate) => {
                summary.add(&Record::new(&certificate, graph, false));
                progress.advance();
            }
            _ => {}
        }
        go_on()
    });
    progress.clear();
    if finish? == Finish::Cancelled {
        return Ok(None);
    }
    if !arguments.output.average_radius {
        return Ok(Some(Evaluation { summary, radius: None }));
    }
    let most = arguments.output.max_budget;
    let progress = Progress::new(most as usize, 0, arguments.output.quiet);
    let largest = certifier.certified_radii(&nodes, most, |global, left| {
        progress.scanning(global, left);
        go_on()
    });
    progress.clear();
    Ok(largest?.map(|largest| {
        let radius = Some(Radius::new(&largest, &plan.split, most));
        Evaluation { summary, radius }
    }))
}

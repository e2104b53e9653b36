//! Training networks, robust ones included.
//!
//! Four methods, all after Zügner and Günnemann (KDD 2019): cross entropy (CE) on the exact network, the standard way;
//! robust cross entropy (RCE) of worst-case logits; robust hinge loss (RH), which asks for a worst-case margin and
//! keeps the cross entropy of the exact network beside it; and the robust hinge loss with unlabelled nodes (RH-U), which
//! asks for one, smaller, around the predicted class of all other nodes too. Worst-case margins are the duals of
//! [`Certifier`](crate::Certifier) with default slopes or, of deep networks, those of first order ([`WorstCase`]); their gradient is
//! written by hand.
//!
//! Everything is a function of graph, split, settings and seed: the same input gives the same bits, whatever the number of
//! threads. [`train`] does it in one call; a [`Trainer`] takes one step at a time, can be stopped, written to a file and
//! continued. Who has a training loop of their own takes worst-case margins, losses and gradients from a [`RobustLoss`].

mod adam;
mod architecture;
mod batches;
mod clean;
mod cross_entropy;
mod dropout;
mod goal;
mod neighbourhood;
mod robust;
mod robust_loss;
mod sample;
mod state;
mod trainer;
mod xavier;

use std::ops::ControlFlow;

use crate::budget::{Budget, BudgetError};
use crate::edges::EdgesError;
use crate::graph::{Graph, Split};
use crate::ids::{ClassId, NodeId};
use crate::model::{Model, ModelError};
use crate::network::{Network, largest};
use crate::settings::SettingsError;

pub use nodeproof_problem::checkpoint::{Checkpoint, CheckpointError};
pub use nodeproof_problem::results::{Phase, StepRecord};
pub use nodeproof_problem::settings::{Architecture, Method, Schedule, TrainSettings, WorstCase};
pub use robust_loss::{Logits, Margins, RobustLoss, RobustValue};
pub use sample::{Sample, Sampled, spread};
pub use trainer::{StepTimes, Trainer};

/// Why a network cannot be trained.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrainError {
    /// The settings make no sense for the graph, its split or its nodes.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// A number became infinite or NaN.
    #[error("training diverged in step {step}; try a smaller learning rate")]
    Diverged {
        /// The step.
        step: usize,
    },
    /// The weights are so large that worst-case margins, losses or derivatives overflow, or may have done so on the way.
    #[error("{what}: numbers overflow; make the weights smaller, for instance with a smaller learning rate")]
    Overflow {
        /// Where it shows.
        what: String,
    },
    /// The budget names what the graph does not have.
    #[error(transparent)]
    Budget(#[from] BudgetError),
    /// The model, or its propagation, does not fit the graph.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// Deletions of edges are asked about.
    #[error(transparent)]
    Edges(#[from] EdgesError),
}

/// Refuses budgets that let edges be deleted.
fn check_no_edges(budget: &Budget) -> Result<(), EdgesError> {
    budget.edges().map_or(Ok(()), |_| Err(EdgesError::NotYet { what: "training", options: &[] }))
}

/// Trains a network on the labelled nodes of `split` and calls `observer` after every step; it may break off.
///
/// # Errors
/// If a setting makes no sense, there is nothing to learn from, or training diverges.
///
/// # Example
/// ```
/// use nodeproof::train::{Method, TrainSettings, train};
/// use nodeproof::{ClassId, Graph, Split, SplitSize};
/// # use std::ops::ControlFlow;
/// let graph = Graph::new(4, 2, &[(0, 1), (2, 3)], &[(0, 0), (1, 0), (2, 1), (3, 1)])?
///     .with_labels([0, 0, 1, 1].map(|class| Some(ClassId(class))).to_vec())?;
/// let split = Split::stratified(&graph, SplitSize::PerClass(1), SplitSize::PerClass(0), 0)?;
/// let model = train(&graph, &split, TrainSettings::new(Method::CrossEntropy), |_| ControlFlow::Continue(()))?;
/// assert_eq!(nodeproof::train::accuracy(&graph, &model, &graph.node_ids().collect::<Vec<_>>())?, Some(1.0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn train(
    graph: &Graph,
    split: &Split,
    settings: TrainSettings,
    mut observer: impl FnMut(&StepRecord) -> ControlFlow<()>,
) -> Result<Model, TrainError> {
    let mut trainer = Trainer::new(graph, split, settings)?;
    while let Some(step) = trainer.step()? {
        if observer(&step).is_break() {
            break;
        }
    }
    Ok(trainer.into_model())
}

/// The share of `nodes` with a label whose predicted class is their label; `None` if none has a label.
///
/// # Errors
/// If the model does not fit the graph.
pub fn accuracy(graph: &Graph, model: &Model, nodes: &[NodeId]) -> Result<Option<f64>, ModelError> {
    let logits = Network::new(graph, model)?.logits();
    let labelled = labelled(graph, nodes);
    let right = labelled.iter().filter(|(node, label)| largest(logits.row(node.index())) == *label).count();
    Ok((!labelled.is_empty()).then(|| right as f64 / labelled.len() as f64))
}

/// Those of `nodes` that have a label, with it.
fn labelled(graph: &Graph, nodes: &[NodeId]) -> Vec<(NodeId, ClassId)> {
    nodes.iter().filter_map(|&node| graph.label(node).map(|label| (node, label))).collect()
}

#[cfg(test)]
mod tests;

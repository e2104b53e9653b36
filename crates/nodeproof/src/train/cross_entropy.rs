//! Cross entropy of the exact network, and its gradient, on what a set of targets sees.

use super::clean::CleanNetwork;
use super::dropout::Dropout;
use crate::dense::Matrix;
use crate::gradient::Gradient;
use crate::graph::Graph;
use crate::ids::{ClassId, NodeId};
use crate::model::Model;
use crate::sparse::SparseMatrix;

/// The mean over targets of `−log softmax(logits)_label`.
#[derive(Debug)]
pub(super) struct CrossEntropy {
    network: CleanNetwork,
    /// The label of each target as the network has them.
    labels: Vec<ClassId>,
}

impl CrossEntropy {
    /// The cross entropy of `targets` for networks put together as `model` is, with these matrices for its propagations.
    pub(super) fn new(graph: &Graph, model: &Model, matrices: &[SparseMatrix], targets: &[(NodeId, ClassId)]) -> Self {
        let nodes: Vec<NodeId> = targets.iter().map(|&(node, _)| node).collect();
        let network = CleanNetwork::new(graph, model, matrices, &nodes);
        let mut labels = vec![ClassId(0); network.targets()];
        for &(node, label) in targets {
            labels[network.place(node)] = label;
        }
        Self { network, labels }
    }

    /// The loss at `model`; `weight` times its gradient replaces `gradient`.
    pub(super) fn evaluate(
        &self,
        model: &Model,
        dropout: Option<Dropout>,
        weight: f64,
        gradient: &mut Gradient,
    ) -> f64 {
        let passes = self.network.forward(model.layers(), dropout);
        let (loss, mut errors) = self.loss(passes.logits());
        errors.values_mut().iter_mut().for_each(|error| *error *= weight);
        self.network.backward(model.layers(), &passes, errors, gradient);
        loss
    }

    /// The loss at `model`, without dropout.
    pub(super) fn value(&self, model: &Model) -> f64 {
        self.loss(self.network.forward(model.layers(), None).logits()).0
    }

    /// The loss of these logits, and its derivative by them.
    fn loss(&self, logits: &Matrix) -> (f64, Matrix) {
        let count = logits.rows().max(1) as f64;
        let mut errors = logits.clone();
        let mut loss = 0.0;
        for (row, label) in self.labels.iter().enumerate() {
            let row = errors.row_mut(row);
            let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let own = row[label.index()] - largest;
            row.iter_mut().for_each(|logit| *logit = (*logit - largest).exp());
            let total: f64 = row.iter().sum();
            loss += total.ln() - own;
            row.iter_mut().for_each(|share| *share /= total * count);
            row[label.index()] -= 1.0 / count;
        }
        (loss / count, errors)
    }
}

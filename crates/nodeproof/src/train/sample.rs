//! A few nodes whose worst-case margins stand for those of all.

use nodeproof_problem::results::StepRecord;

use crate::budget::Budget;
use crate::certificate::{Bound, Certificate};
use crate::graph::{Graph, Part, Split};
use crate::ids::NodeId;
use crate::model::Model;
use crate::run::{Certifier, CertifyError};
use crate::settings::TargetClass;

/// Labelled nodes, certified for their label, and unlabelled ones, for the class they are predicted to have: as training
/// looks at them.
#[derive(Debug)]
pub struct Sample<'a> {
    graph: &'a Graph,
    budget: &'a Budget,
    threads: usize,
    labelled: Vec<NodeId>,
    unlabelled: Vec<NodeId>,
}

/// What was found at the nodes of a group.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[non_exhaustive]
pub struct Sampled {
    /// The mean of the smallest margins; `None` without nodes, or if one is not known.
    pub margin: Option<f64>,
    /// Number of nodes.
    pub nodes: usize,
    /// Number of nodes that are robust.
    pub robust: usize,
}

impl<'a> Sample<'a> {
    /// `count` labelled and `count` unlabelled nodes, or as many as there are, evenly spaced.
    pub fn of_each(graph: &'a Graph, split: &Split, budget: &'a Budget, count: usize) -> Self {
        let (labelled, unlabelled) = groups(graph, split);
        Self::new(graph, budget, spread(&labelled, count), spread(&unlabelled, count))
    }

    /// `count` nodes of both groups together, each by its share.
    pub fn of_all(graph: &'a Graph, split: &Split, budget: &'a Budget, count: usize) -> Self {
        let (labelled, unlabelled) = groups(graph, split);
        let all = labelled.len() + unlabelled.len();
        let share = |group: &[NodeId]| spread(group, (count * group.len()).div_ceil(all.max(1)));
        Self::new(graph, budget, share(&labelled), share(&unlabelled))
    }

    fn new(graph: &'a Graph, budget: &'a Budget, labelled: Vec<NodeId>, unlabelled: Vec<NodeId>) -> Self {
        Self { graph, budget, threads: 0, labelled, unlabelled }
    }

    /// Certifies with so many threads; 0 for as many as there are cores.
    pub fn threads(self, threads: usize) -> Self {
        Self { threads, ..self }
    }

    /// Certifies the labelled nodes.
    ///
    /// # Errors
    /// If the model does not fit the graph.
    pub fn labelled(&self, model: &Model) -> Result<Sampled, CertifyError> {
        self.certify(model, &self.labelled, TargetClass::Label)
    }

    /// Certifies the unlabelled nodes.
    ///
    /// # Errors
    /// If the model does not fit the graph.
    pub fn unlabelled(&self, model: &Model) -> Result<Sampled, CertifyError> {
        self.certify(model, &self.unlabelled, TargetClass::Predicted)
    }

    /// Puts the mean margins of the network `before` a step where the step itself says nothing of them.
    ///
    /// # Errors
    /// If the model does not fit the graph.
    pub fn complete(&self, step: &mut StepRecord, before: &Model) -> Result<(), CertifyError> {
        if step.labelled_margin.is_none() {
            step.labelled_margin = self.labelled(before)?.margin;
        }
        if step.unlabelled_margin.is_none() {
            step.unlabelled_margin = self.unlabelled(before)?.margin;
        }
        Ok(())
    }

    fn certify(&self, model: &Model, nodes: &[NodeId], class: TargetClass) -> Result<Sampled, CertifyError> {
        if nodes.is_empty() {
            return Ok(Sampled::default());
        }
        let certifier = Certifier::new(self.graph, model)?.budget(self.budget.clone());
        let certificates = certifier.target_class(class).threads(self.threads).certify(nodes)?;
        let margins = certificates.iter().map(Certificate::margin);
        let known = margins.clone().all(|margin| margin != Bound::Unknown);
        Ok(Sampled {
            margin: known.then(|| margins.map(Bound::value).sum::<f64>() / certificates.len() as f64),
            nodes: nodes.len(),
            robust: certificates.iter().filter(|certificate| certificate.is_robust()).count(),
        })
    }
}

/// `count` members of `all`, or all if there are fewer, evenly spaced.
pub fn spread<T: Copy>(all: &[T], count: usize) -> Vec<T> {
    let count = count.min(all.len());
    (0..count).map(|i| all[i * all.len() / count]).collect()
}

/// Labelled nodes as far as they have a label, and unlabelled ones.
fn groups(graph: &Graph, split: &Split) -> (Vec<NodeId>, Vec<NodeId>) {
    let mut labelled = split.part(Part::Train);
    labelled.retain(|&node| graph.label(node).is_some());
    (labelled, split.part(Part::Unlabelled))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_spread() {
        let all: Vec<NodeId> = (0..10).map(NodeId).collect();
        assert_eq!(spread(&all, 4), [0, 2, 5, 7].map(NodeId));
        assert_eq!((spread(&all, 99).len(), spread(&all, 0).len(), spread(&all[..0], 3).len()), (10, 0, 0));
    }
}

//! A few nodes whose worst-case margins stand for those of all.

use nodeproof::{Bound, Budget, Certificate, Certifier, Graph, Model, NodeId, Part, Split, TargetClass};

use super::plan::Plan;
use crate::lists::spread;

/// Labelled nodes, certified for their label, and unlabelled ones, for the class they are predicted to have: as training
/// looks at them.
pub(super) struct Sample<'a> {
    graph: &'a Graph,
    budget: &'a Budget,
    threads: usize,
    labelled: Vec<NodeId>,
    unlabelled: Vec<NodeId>,
}

/// What was found at a group of nodes.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Found {
    /// The mean of the smallest margins.
    pub(super) margin: Option<f64>,
    pub(super) nodes: usize,
    pub(super) robust: usize,
}

impl<'a> Sample<'a> {
    /// `count` labelled and `count` unlabelled nodes, or as many as there are, evenly spaced.
    pub(super) fn of_each(graph: &'a Graph, plan: &'a Plan, threads: usize, count: usize) -> Self {
        let (labelled, unlabelled) = groups(graph, &plan.split);
        let budget = &plan.settings.budget;
        Self { graph, budget, threads, labelled: some(&labelled, count), unlabelled: some(&unlabelled, count) }
    }

    /// `count` nodes in all, labelled or not as it happens.
    pub(super) fn of_all(graph: &'a Graph, plan: &'a Plan, threads: usize, count: usize) -> Self {
        let (labelled, unlabelled) = groups(graph, &plan.split);
        let all = labelled.len() + unlabelled.len();
        let share = |group: &[NodeId]| some(group, (count * group.len()).div_ceil(all.max(1)));
        let (labelled, unlabelled) = (share(&labelled), share(&unlabelled));
        Self { graph, budget: &plan.settings.budget, threads, labelled, unlabelled }
    }

    /// Certifies the labelled nodes.
    pub(super) fn labelled(&self, model: &Model) -> anyhow::Result<Found> {
        self.certify(model, &self.labelled, TargetClass::Label)
    }

    /// Certifies the unlabelled nodes.
    pub(super) fn unlabelled(&self, model: &Model) -> anyhow::Result<Found> {
        self.certify(model, &self.unlabelled, TargetClass::Predicted)
    }

    fn certify(&self, model: &Model, nodes: &[NodeId], class: TargetClass) -> anyhow::Result<Found> {
        if nodes.is_empty() {
            return Ok(Found::default());
        }
        let certifier = Certifier::new(self.graph, model)?.budget(self.budget.clone());
        let certificates = certifier.target_class(class).threads(self.threads).certify(nodes)?;
        let margins = certificates.iter().map(Certificate::margin);
        let known = margins.clone().all(|margin| margin != Bound::Unknown);
        Ok(Found {
            margin: known.then(|| margins.map(Bound::value).sum::<f64>() / certificates.len() as f64),
            nodes: nodes.len(),
            robust: certificates.iter().filter(|certificate| certificate.is_robust()).count(),
        })
    }
}

/// `count` of `nodes`, or all if there are fewer, evenly spaced.
fn some(nodes: &[NodeId], count: usize) -> Vec<NodeId> {
    spread(nodes, count).into_iter().copied().collect()
}

/// Labelled nodes as far as they have a label, and unlabelled ones.
fn groups(graph: &Graph, split: &Split) -> (Vec<NodeId>, Vec<NodeId>) {
    let mut labelled = split.part(Part::Train);
    labelled.retain(|&node| graph.label(node).is_some());
    (labelled, split.part(Part::Unlabelled))
}

//! What can be checked of results that come from elsewhere, such as a file of an interrupted run, without proving them again.

use std::cmp::Ordering;

use super::{Certifier, CertifyError};
use crate::budget::Limits;
use crate::certificate::{Bound, Certificate, Witness};
use crate::dense::Matrix;
use crate::exact::compare_margin;
use crate::ids::{ClassId, NodeId};
use crate::network::{Network, largest};
use crate::radius::Radius;
use crate::results::Trial;
use crate::settings::TargetClass;

/// How far a lower bound may be above the margin without flips, relatively: rounding of that margin alone.
const TOLERANCE: f64 = 1e-9;

/// Checks results against the network itself: classes, witnesses in exact arithmetic, and bounds against margins.
#[derive(Debug)]
pub struct Recheck<'c> {
    network: &'c Network<'c>,
    limits: Limits,
    logits: Matrix,
    target_class: TargetClass,
    margin: f64,
}

impl Certifier<'_> {
    /// Checks for results of this certifier.
    ///
    /// # Errors
    /// If the budget does not fit the graph.
    pub fn recheck(&self) -> Result<Recheck<'_>, CertifyError> {
        let limits = self.settings.budget.limits(self.network.graph())?;
        let (target_class, margin) = (self.settings.target_class, self.settings.margin);
        Ok(Recheck { network: &self.network, limits, logits: self.network.logits(), target_class, margin })
    }
}

impl Recheck<'_> {
    /// Checks a certificate.
    ///
    /// # Errors
    /// Says what cannot be true.
    pub fn certificate(&self, certificate: &Certificate) -> Result<(), String> {
        let node = certificate.node;
        self.check_class(node, certificate.class)?;
        let (predicted, label) = (self.predicted(node), self.network.graph().label(node));
        if certificate.predicted != predicted {
            return Err(format!("the model predicts class {predicted}, not {}", certificate.predicted));
        }
        if certificate.label != label {
            return Err("its label is not the graph's".to_owned());
        }
        for (k, bound) in (0..).map(ClassId).zip(&certificate.margins) {
            if bound.is_some_and(|bound| !self.can_be(bound, node, (certificate.class, k))) {
                return Err(format!("its bound for class {k} is above the margin without any flip"));
            }
        }
        certificate.witness().map_or(Ok(()), |witness| self.witness(node, certificate.class, witness))
    }

    /// Checks a verdict of a search for a radius.
    ///
    /// # Errors
    /// Says what cannot be true.
    pub fn trial(&self, trial: &Trial) -> Result<(), String> {
        self.check_class(trial.node, trial.class)?;
        match &trial.witness {
            Some(witness) if witness.size() > trial.budget as usize => {
                Err(format!("its witness has {} changes under a budget of {}", witness.size(), trial.budget))
            }
            Some(witness) => self.witness(trial.node, trial.class, witness),
            None => Ok(()),
        }
    }

    /// Checks a radius.
    ///
    /// # Errors
    /// Says what cannot be true.
    pub fn radius(&self, radius: &Radius) -> Result<(), String> {
        let node = radius.node;
        if radius.label != self.network.graph().label(node) {
            return Err("its label is not the graph's".to_owned());
        }
        if radius.found.is_none() {
            return Ok(());
        }
        let class = radius.class().ok_or("it does not say which class is certified")?;
        self.check_class(node, class)?;
        match (radius.witness(), radius.nonrobust_from()) {
            (Some(witness), Some(from)) if witness.size() > from as usize => {
                Err(format!("its witness has {} changes under a budget of {from}", witness.size()))
            }
            (Some(witness), Some(_)) => self.witness(node, class, witness),
            (None, None) => Ok(()),
            _ => Err("a witness belongs to a budget that it needs, and to no other".to_owned()),
        }
    }

    /// Checks of a radius only which class it is about.
    ///
    /// # Errors
    /// Says what cannot be true.
    pub fn class_of_radius(&self, radius: &Radius) -> Result<(), String> {
        radius.class().map_or(Ok(()), |class| self.check_class(radius.node, class))
    }

    /// Whether `bound` can be a lower bound on the margin of y over k: the margin without flips is not below it. Exact arithmetic
    /// decides where doubles say no, since logits may cancel.
    fn can_be(&self, bound: Bound, node: NodeId, (y, k): (ClassId, ClassId)) -> bool {
        let (logits, lowest) = (self.logits.row(node.index()), bound.value());
        let clean = logits[y.index()] - logits[k.index()];
        lowest <= clean + TOLERANCE * (logits[k.index()].abs() + clean.abs())
            || lowest == f64::NEG_INFINITY
            || compare_margin(self.network, node, &[], (y, k), lowest) != Ordering::Less
    }

    fn predicted(&self, node: NodeId) -> ClassId {
        largest(self.logits.row(node.index()))
    }

    fn check_class(&self, node: NodeId, class: ClassId) -> Result<(), String> {
        let expected = match (self.target_class, self.network.graph().label(node)) {
            (TargetClass::Label, Some(label)) => label,
            _ => self.predicted(node),
        };
        if class == expected { Ok(()) } else { Err(format!("it certifies class {class} in place of {expected}")) }
    }

    /// Checks that the flips are admissible and take the class its lead, by as much as is said, in exact arithmetic.
    fn witness(&self, node: NodeId, class: ClassId, witness: &Witness) -> Result<(), String> {
        let &Witness { ref flips, ref edges, class: other, margin, .. } = witness;
        let graph = self.network.graph();
        let admits_edges = self.limits.edges().map_or(edges.is_empty(), |limits| limits.admits(graph, edges));
        if !self.limits.admits(graph, flips) || !admits_edges {
            return Err("its witness is not within the budget".to_owned());
        }
        let judged = |network: &Network| {
            let is_above = |lead| compare_margin(network, node, flips, (class, other), lead) == Ordering::Greater;
            match is_above(margin) {
                false => Ok(()),
                true if is_above(self.margin) => Err(format!("class {other} does not overtake under its witness")),
                true => Err(format!("the margin under its witness is not as small as {margin}")),
            }
        };
        if edges.is_empty() {
            return judged(self.network);
        }
        let left = graph.without_edges(edges).map_err(|error| error.to_string())?;
        judged(&Network::new(&left, self.network.model()).map_err(|error| error.to_string())?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::{Budget, LocalBudget};
    use crate::graph::Graph;
    use crate::model::{Model, Propagation};
    use crate::settings::Engine;

    /// The margin is 0.6, but logits of 6e15 cancel in doubles.
    #[test]
    fn bounds_of_margins_that_cancel_are_believed_and_larger_ones_are_not() {
        let graph = Graph::new(1, 2, &[], &[]).unwrap();
        let layers = vec![
            (Matrix::zeros(2, 2), vec![0.3, 0.3]),
            (Matrix::from_values(2, 2, vec![1e16 + 2.0, 1e16, -1e16, -1e16]), vec![0.0, 0.0]),
        ];
        let model = Model::gcn(layers, Propagation::SymmetricGcn).unwrap();
        for engine in Engine::ALL {
            let certifier = Certifier::new(&graph, &model).unwrap().budget(Budget::new(1, LocalBudget::Count(1)));
            let certifier = certifier.engine(engine);
            let mut certificate = certifier.certify(&[NodeId(0)]).unwrap().remove(0);
            assert!(certificate.is_robust());
            let recheck = certifier.recheck().unwrap();
            assert_eq!(recheck.certificate(&certificate), Ok(()));
            let other = usize::from(certificate.class == ClassId(0));
            certificate.margins[other] = Some(Bound::AtLeast(0.600_000_000_1));
            assert!(recheck.certificate(&certificate).unwrap_err().contains("above the margin"));
        }
    }
}

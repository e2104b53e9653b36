//! What can be checked of results that come from elsewhere, such as a file of an interrupted run, without proving them again.

use std::cmp::Ordering;

use super::{Certifier, CertifyError};
use crate::budget::Limits;
use crate::certificate::{Certificate, Witness};
use crate::dense::Matrix;
use crate::exact::compare_logits;
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
}

impl Certifier<'_> {
    /// Checks for results of this certifier.
    ///
    /// # Errors
    /// If the budget does not fit the graph.
    pub fn recheck(&self) -> Result<Recheck<'_>, CertifyError> {
        let limits = self.settings.budget.limits(self.network.graph())?;
        let target_class = self.settings.target_class;
        Ok(Recheck { network: &self.network, limits, logits: self.network.logits(), target_class })
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
        let logits = self.logits.row(node.index());
        for (k, bound) in certificate.margins.iter().enumerate() {
            let clean = logits[certificate.class.index()] - logits[k];
            let highest = clean + TOLERANCE * (logits[k].abs() + clean.abs());
            if bound.is_some_and(|bound| bound.value() > highest) {
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
            Some(witness) if witness.flips.len() > trial.budget as usize => {
                Err(format!("its witness has {} flips under a budget of {}", witness.flips.len(), trial.budget))
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
        let Some(class) = radius.class() else { return Ok(()) };
        self.check_class(node, class)?;
        match (radius.witness(), radius.nonrobust_from()) {
            (Some(witness), Some(from)) if witness.flips.len() > from as usize => {
                Err(format!("its witness has {} flips under a budget of {from}", witness.flips.len()))
            }
            (Some(witness), Some(_)) => self.witness(node, class, witness),
            (None, None) => Ok(()),
            _ => Err("a witness belongs to a budget that it needs, and to no other".to_owned()),
        }
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

    /// Checks that the flips are admissible and take the class its lead, in exact arithmetic.
    fn witness(&self, node: NodeId, class: ClassId, witness: &Witness) -> Result<(), String> {
        let Witness { flips, class: other, .. } = witness;
        if !self.limits.admits(self.network.graph(), flips) {
            return Err("its witness is not within the budget".to_owned());
        }
        if compare_logits(self.network, node, flips, class, *other) == Ordering::Greater {
            return Err(format!("class {other} does not overtake under its witness"));
        }
        Ok(())
    }
}

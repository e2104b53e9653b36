//! Margins that must exceed more than 0: a number that is given, and what an arithmetic may take off.
//!
//! That a margin exceeds τ means that it is positive in the same network with τ taken off the logit of the class. This is a network, too: for
//! each class it has one more term, which reads the constant 1 and gives each node of this class what is to be taken off (Lemma 54 of
//! `docs/maths.md`). So engines that know nothing of τ decide it.

use crate::arithmetic::logit_errors;
use crate::budget::Limits;
use crate::certificate::{Bound, Certificate, Evidence, Obstacle};
use crate::dense::Matrix;
use crate::ids::{ClassId, NodeId};
use crate::model::{Layer, Model, ModelError, Propagation, Source, Term};
use crate::network::Network;
use crate::settings::{CertifySettings, TargetClass};
use crate::sparse::SparseMatrix;

/// What is asked of each node.
#[derive(Debug)]
pub(super) struct Asked {
    /// The predicted class, and the one to certify.
    predicted: Vec<ClassId>,
    pub(super) classes: Vec<ClassId>,
    /// What the margins must exceed.
    margins: Vec<f64>,
}

impl Asked {
    /// What settings ask.
    ///
    /// # Errors
    /// If a propagation does not fit the graph.
    pub(super) fn new(network: &Network, settings: &CertifySettings, limits: &Limits) -> Result<Self, ModelError> {
        let (graph, predicted) = (network.graph(), network.predictions());
        let class = |node: NodeId| match (settings.target_class, graph.label(node)) {
            (TargetClass::Label, Some(label)) => label,
            _ => predicted[node.index()],
        };
        let classes: Vec<ClassId> = graph.node_ids().map(class).collect();
        let mut margins = vec![settings.margin; graph.nodes()];
        if let Some(roundoff) = settings.arithmetic.roundoff() {
            let errors = logit_errors(network, limits, roundoff)?;
            for (node, (margin, class)) in margins.iter_mut().zip(&classes).enumerate() {
                *margin = (1.0 + 1e-9) * (*margin + largest_pair(errors.row(node), class.index()));
            }
        }
        Ok(Self { predicted, classes, margins })
    }

    /// The same with nothing taken off for rounding.
    pub(super) fn without_rounding(&self, settings: &CertifySettings) -> Self {
        let margins = vec![settings.margin; self.margins.len()];
        Self { predicted: self.predicted.clone(), classes: self.classes.clone(), margins }
    }

    /// The nodes of which not the same is asked as by another one, or that it does not have.
    pub(super) fn differences(&self, other: &Self) -> Vec<bool> {
        let of = |asked: &Self, node: usize| {
            let margin = asked.margins.get(node).map(|margin| margin.to_bits());
            (margin, asked.classes.get(node).copied(), asked.predicted.get(node).copied())
        };
        (0..self.margins.len()).map(|node| of(self, node) != of(other, node)).collect()
    }

    /// The model whose margins are those that are asked about less what they must exceed.
    ///
    /// # Errors
    /// Never, for models that are well-formed.
    pub(super) fn model(&self, model: &Model) -> Result<Model, ModelError> {
        let nodes = self.margins.len();
        let (mut propagations, mut layers) = (model.propagations().to_vec(), model.layers().to_vec());
        let Some(last) = layers.pop() else { return Ok(model.clone()) };
        let mut terms = last.terms().to_vec();
        for class in (0..model.classes() as u32).map(ClassId) {
            let of_class = (0u32..).zip(self.classes.iter().zip(&self.margins)).filter(|&(_, (&of, _))| of == class);
            let finite = of_class.filter(|&(_, (_, margin))| margin.is_finite() && *margin > 0.0);
            let taken: Vec<_> = finite.map(|(node, (_, &margin))| (node, node, margin)).collect();
            let unit = |k: u32| if ClassId(k) == class { -1.0 } else { 0.0 };
            let weight = Matrix::from_values(1, model.classes(), (0..model.classes() as u32).map(unit).collect());
            terms.push(Term::new(Source::Ones, propagations.len(), weight));
            propagations.push(Propagation::Custom(SparseMatrix::from_triplets(nodes, nodes, &taken)));
        }
        layers.push(Layer::new(terms, last.bias().to_vec(), last.activation()));
        Ok(Model::new(model.attributes(), propagations, layers)?.with_kind(model.kind()))
    }

    /// Whether nothing that a margin exceeds could be enough.
    pub(super) fn is_hopeless(&self, node: NodeId) -> bool {
        self.margins[node.index()].is_infinite()
    }

    /// Says of the network itself what a certificate says of [`Asked::model`].
    pub(super) fn translated(&self, mut certificate: Certificate) -> Certificate {
        let node = certificate.node.index();
        let asked = self.margins[node];
        certificate.predicted = self.predicted[node];
        for margin in certificate.margins.iter_mut().flatten() {
            *margin = raised(*margin, asked);
        }
        match &mut certificate.evidence {
            Evidence::Robust => {}
            Evidence::Witness(witness) => witness.margin = (witness.margin + asked).next_up().min(asked),
            Evidence::Open { lower, upper, .. } => {
                *lower = raised(*lower, asked);
                *upper = upper.map(|upper| (upper + asked).next_up());
            }
            _ => {}
        }
        certificate
    }
}

/// A bound on the margin itself, given one on what it exceeds `asked` by.
fn raised(bound: Bound, asked: f64) -> Bound {
    match bound {
        Bound::Unknown => Bound::Unknown,
        Bound::Positive if asked == 0.0 => Bound::Positive,
        Bound::Positive => Bound::AtLeast(asked),
        Bound::AtLeast(bound) if asked == 0.0 => Bound::AtLeast(bound),
        Bound::AtLeast(bound) if bound > 0.0 => Bound::AtLeast((bound + asked).next_down().max(asked)),
        Bound::AtLeast(bound) => Bound::AtLeast((bound + asked).next_down()),
    }
}

/// A node whose margins may be lost in rounding, with the smallest that was found, if any.
#[derive(Debug)]
pub(super) struct Thin {
    upper: Option<f64>,
}

impl Thin {
    /// A certificate, or what is known of a node of which nothing is found but flips that leave a larger margin than `asked`.
    pub(super) fn of(found: Option<Certificate>, asked: f64) -> Result<Certificate, Self> {
        let Some(certificate) = found else { return Err(Self { upper: None }) };
        match certificate.witness() {
            Some(witness) if witness.margin > asked => Err(Self { upper: Some(witness.margin) }),
            _ => Ok(certificate),
        }
    }

    /// What a certificate without rounding says of one with it: no more than that the arithmetic keeps the node from being robust.
    pub(super) fn settle(self, mut certificate: Certificate) -> Certificate {
        if certificate.is_robust() {
            let (lower, because) = (certificate.margin(), Some(Obstacle::Arithmetic));
            (certificate.evidence, certificate.proofs) = (Evidence::Open { lower, upper: self.upper, because }, None);
        }
        certificate
    }
}

/// The largest error of the difference of a logit and another one.
fn largest_pair(errors: &[f64], class: usize) -> f64 {
    let others = errors.iter().enumerate().filter(|&(k, _)| k != class);
    others.fold(0.0, |most, (_, error)| (errors[class] + error).max(most))
}

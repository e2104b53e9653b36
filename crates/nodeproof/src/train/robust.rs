//! The robust term of the loss: worst-case margins of a batch of nodes, and the gradient.
//!
//! What all targets share is computed once for all that the batch sees; each target then costs its margins and a derivative that
//! touches only the slice and the rows of weights that its flips name (module `engines::derivative`). The derivatives of all
//! targets are added up and carried to weights and biases: those of duals through the lines and the bounds, those of first order through
//! the pre-activations. Nothing is as wide as the attributes but the gradient itself.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rayon::prelude::*;

use super::goal::{Goal, NodeLoss};
use crate::bounds::{Bounds, Clean, DifferentiableBounds};
use crate::budget::Limits;
use crate::dense::Matrix;
use crate::engines::derivative::{Derivative, TargetDerivative, Term};
use crate::engines::fast::Dual;
use crate::engines::first_order::{CleanTarget, Margins};
use crate::gradient::Gradient;
use crate::graph::Graph;
use crate::ids::{ClassId, NodeId};
use crate::model::Model;
use crate::network::{Network, largest};
use crate::prepare::Shard;
use crate::relax::Slopes;
use crate::search::AttributeTables;
use crate::settings::WorstCase;
use crate::slice::{Region, SlicedFlip, Slicer};
use crate::sparse::SparseMatrix;

/// Targets that one task works on.
const CHUNK: usize = 8;
/// Targets whose derivatives are held in memory at once.
const BLOCK: usize = 256;

/// A node whose worst-case margins are part of the loss.
#[derive(Debug, Clone, Copy)]
pub(super) struct Target<L = Goal> {
    pub(super) node: NodeId,
    /// The class that is to be kept, or `None` for the predicted one.
    pub(super) class: Option<ClassId>,
    pub(super) goal: L,
}

/// The graph and what may be changed in it.
#[derive(Debug)]
pub(super) struct RobustTerm<'a> {
    pub(super) graph: &'a Graph,
    /// Those of the model's propagations.
    pub(super) matrices: &'a [SparseMatrix],
    pub(super) limits: &'a Limits,
    pub(super) worst_case: WorstCase,
}

/// What a batch came to.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Value {
    /// The mean of the targets' losses, or another multiple of their sum that was asked for.
    pub(super) loss: f64,
    /// The class of each target that is to be kept.
    pub(super) classes: Vec<ClassId>,
    /// The worst-case margin of each target, the smallest over all classes.
    pub(super) margins: Vec<f64>,
    /// The worst-case margins of each target (rows) over each class (columns), 0 over its own.
    pub(super) margins_over: Matrix,
    /// Whether numbers may have overflowed on the way, so that none of these means anything.
    pub(super) may_overflow: bool,
    /// Time spent on what all targets share, on their margins and derivatives, and on the way back to weights.
    pub(super) bounds_time: Duration,
    pub(super) dual_time: Duration,
    pub(super) gradient_time: Duration,
}

impl RobustTerm<'_> {
    /// The mean loss of `targets`; a multiple of its gradient is added to a sum, where these are given.
    pub(super) fn evaluate(&self, model: &Model, targets: &[Target], gradient: Option<(f64, &mut Gradient)>) -> Value {
        self.evaluate_sum(model, targets, 1.0 / targets.len().max(1) as f64, gradient)
    }

    /// `share` times the sum of the losses of `targets`; a multiple of the gradient of that is added to a sum, where these are given.
    pub(super) fn evaluate_sum<L: NodeLoss>(
        &self,
        model: &Model,
        targets: &[Target<L>],
        share: f64,
        gradient: Option<(f64, &mut Gradient)>,
    ) -> Value {
        let start = Instant::now();
        let nodes: Vec<NodeId> = targets.iter().map(|target| target.node).collect();
        let region = Arc::new(Region::around(model, self.matrices, &nodes));
        let network = Network::with_matrices(self.graph, model, self.matrices);
        let (bounds, attained) = match self.worst_case {
            WorstCase::Dual => {
                let (bounds, attained) = DifferentiableBounds::compute(&network, self.limits, &region);
                (bounds, Some(attained))
            }
            _ => (Bounds::unknown(&network, Arc::new(Clean::new(&network, &region))), None),
        };
        let tables = AttributeTables::new(&network, attained.is_some() && network.has_one_hidden_layer());
        let shard = Shard::new(&network, self.limits, Arc::clone(&region), bounds, &tables, &Slopes::Default);
        let mut value =
            Value { may_overflow: !shard.overflow_error.is_finite(), bounds_time: start.elapsed(), ..Value::default() };

        let mut unused = Gradient::default();
        let (scale, gradient) = match gradient {
            Some((weight, gradient)) => (Some(weight * share), gradient),
            None => (None, &mut unused),
        };
        let mut sum = Derivative::zeros(&network, &region);
        let mut margins_over = Vec::with_capacity(targets.len() * model.classes());
        let start = Instant::now();
        for block in targets.chunks(BLOCK) {
            let found: Vec<Vec<TargetValue>> = block
                .par_chunks(CHUNK)
                .map_init(
                    || Worker::new(&shard, self.worst_case, scale),
                    |worker, chunk| chunk.iter().map(|&target| worker.evaluate(target)).collect(),
                )
                .collect();
            for target in found.into_iter().flatten() {
                value.loss += share * target.loss;
                value.classes.push(target.class);
                value.margins.push(target.margin);
                margins_over.extend(target.margins_over);
                if let Some(derivative) = target.derivative {
                    sum.add(&derivative, gradient);
                }
            }
        }
        value.margins_over = Matrix::from_values(targets.len(), model.classes(), margins_over);
        value.dual_time = start.elapsed();
        let start = Instant::now();
        if scale.is_some() {
            match attained {
                Some(attained) => {
                    let by_bounds = sum.by_bounds(&shard.bounds);
                    let on = (&network, self.limits, &*region);
                    attained.add_gradient(&shard.bounds, on, by_bounds, sum.by_parts, gradient);
                }
                None => shard.bounds.clean.add_gradient(&network, &region, sum.by_clean, sum.by_parts, gradient),
            }
        }
        value.gradient_time = start.elapsed();
        value
    }
}

/// What one target came to.
struct TargetValue {
    loss: f64,
    class: ClassId,
    /// The smallest of the margins.
    margin: f64,
    /// The margins over each class, 0 over its own.
    margins_over: Vec<f64>,
    /// `None` if the loss is flat.
    derivative: Option<TargetDerivative>,
}

/// Evaluates one target after the other.
struct Worker<'a> {
    shared: &'a Shard<'a>,
    slicer: Slicer<'a>,
    bound: Bounding<'a>,
    /// The factor of each target's loss, if derivatives are wanted.
    scale: Option<f64>,
}

/// What computes worst-case margins and their derivatives.
enum Bounding<'a> {
    Dual(Box<Dual<'a>>),
    FirstOrder(Box<Margins>),
}

impl<'a> Worker<'a> {
    fn new(shared: &'a Shard<'a>, worst_case: WorstCase, scale: Option<f64>) -> Self {
        let bound = match worst_case {
            WorstCase::Dual => Bounding::Dual(Box::new(Dual::new(shared))),
            _ => Bounding::FirstOrder(Box::default()),
        };
        Self { shared, slicer: shared.network.slicer(), bound, scale }
    }

    fn evaluate<L: NodeLoss>(&mut self, target: Target<L>) -> TargetValue {
        let logits = self.shared.logits(target.node);
        let class = target.class.unwrap_or_else(|| largest(logits));
        let others = (0..logits.len() as u32).map(ClassId).filter(|&other| other != class);
        let slice = self.slicer.slice(target.node);
        match &mut self.bound {
            Bounding::Dual(dual) => {
                dual.begin(slice, class);
                let mut bound = |other| {
                    let value = dual.lower_bound(slice, class, other).value;
                    (value, dual.selection().best().iter().map(|&(_, flip)| flip).collect())
                };
                let bounds = others.map(|other| (other, bound(other))).collect();
                value((class, target.goal), self.scale, bounds, |terms| dual.derivative(slice, class, terms))
            }
            Bounding::FirstOrder(margins) => {
                let clean = CleanTarget::new(self.shared, slice, class);
                margins.begin();
                let mut bound = |other| {
                    let value = margins.of(&clean, other);
                    (value, margins.selected().to_vec())
                };
                let bounds = others.map(|other| (other, bound(other))).collect();
                value((class, target.goal), self.scale, bounds, |terms| margins.derivative(&clean, terms))
            }
        }
    }
}

/// What bounds of the margins over each other class, and the flips that they charge, come to.
fn value(
    (class, goal): (ClassId, impl NodeLoss),
    scale: Option<f64>,
    bounds: Vec<(ClassId, (f64, Vec<SlicedFlip>))>,
    derivative: impl FnOnce(&[Term]) -> TargetDerivative,
) -> TargetValue {
    let mut duals: Vec<f64> = bounds.iter().map(|(_, (value, _))| *value).collect();
    let margin = duals.iter().copied().fold(f64::INFINITY, f64::min);
    let mut margins_over = duals.clone();
    margins_over.insert(class.index(), 0.0);
    let loss = goal.evaluate(&mut duals);
    let value = TargetValue { loss, class, margin, margins_over, derivative: None };
    let Some(scale) = scale else { return value };
    let term = |((other, (_, flips)), derivative)| Term { other, weight: scale * derivative, flips };
    let mut terms: Vec<Term> = bounds.into_iter().zip(duals).map(term).collect();
    terms.retain(|term| term.weight != 0.0);
    let derivative = (!terms.is_empty()).then(|| derivative(&terms));
    TargetValue { derivative, ..value }
}

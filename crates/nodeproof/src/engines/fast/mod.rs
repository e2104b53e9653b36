//! The `fast` engine: the paper's dual, evaluated once for each class.
//!
//! Put into the margin, layer by layer from the last, the lines of the ReLUs make it a function that is additive in the
//! flips: a constant minus the gain of each flip. Its minimum over the budget is one greedy selection. This is the paper's
//! dual with its optimal η and ρ (theorems 2 and 3): Ψ, η and ρ together charge exactly the selected Δ (Lemmas 9 and 10 of
//! `docs/maths.md`).

mod any_depth;
mod one_hidden;

use crate::engines::derivative::{TargetDerivative, Term};
use crate::ids::ClassId;
use crate::prepare::{Order, Shard};
use crate::rounding::Approximate;
use crate::selection::Selection;
use crate::slice::{Slice, SlicedFlip};

use any_depth::AnyDepth;
use one_hidden::OneHidden;

/// Evaluates the dual of one slice, class pair by class pair.
pub(crate) enum Dual<'a> {
    /// The fast path.
    OneHidden(Box<OneHidden<'a>>),
    /// Any number of hidden layers, any slopes.
    AnyDepth(Box<AnyDepth<'a>>),
}

impl<'a> Dual<'a> {
    /// The dual of one target of `shard` after the other, with its own scratch space.
    pub(crate) fn new(shard: &'a Shard<'a>) -> Self {
        match &shard.order {
            Order::Pairs(tables) => Self::OneHidden(Box::new(OneHidden::new(shard, tables))),
            Order::Norms(table) => Self::AnyDepth(Box::new(AnyDepth::new(shard, table))),
        }
    }

    /// Starts with the target of `slice`, whose class is `y`.
    pub(crate) fn begin(&mut self, slice: &Slice, y: ClassId) {
        match self {
            Self::OneHidden(dual) => dual.begin(slice, y),
            Self::AnyDepth(_) => {}
        }
    }

    /// A lower bound on `logit_y − logit_k` over all admissible sets of flips, y being the class begun with. The flips whose gains it charges are
    /// then in [`Dual::selection`].
    pub(crate) fn lower_bound(&mut self, slice: &Slice, y: ClassId, k: ClassId) -> Approximate {
        let (bound, shared) = match self {
            Self::OneHidden(dual) => (dual.lower_bound(slice, y, k), dual.shared()),
            Self::AnyDepth(dual) => (dual.lower_bound(slice, y, k), dual.shared()),
        };
        Approximate { error: bound.error + shared.overflow_error, ..bound }
    }

    /// Whether the last bound, of `y` and `k`, is that of the whole slice.
    pub(crate) fn sees_enough(&self, slice: &Slice, y: ClassId, k: ClassId) -> bool {
        match self {
            Self::OneHidden(dual) => dual.sees_enough(y, k),
            Self::AnyDepth(_) => slice.is_whole(),
        }
    }

    /// The derivative of `Σ weight · dual` over `terms`, duals of class `y` of the target that was begun with. Needs the
    /// default slopes.
    pub(crate) fn derivative(&mut self, slice: &Slice, y: ClassId, terms: &[Term]) -> TargetDerivative {
        match self {
            Self::OneHidden(dual) => dual.derivative(slice, y, terms),
            Self::AnyDepth(dual) => dual.derivative(slice, y, terms),
        }
    }

    /// The flips that the last bound charges: the attack that falls out of it.
    pub(crate) fn selection(&self) -> &Selection<SlicedFlip> {
        match self {
            Self::OneHidden(dual) => dual.selection(),
            Self::AnyDepth(dual) => dual.selection(),
        }
    }
}

#[cfg(test)]
mod tests;

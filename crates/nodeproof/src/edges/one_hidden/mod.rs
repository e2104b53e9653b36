//! One hidden layer: rows of the hidden layer one by one, as functions of the edges that they lose.

mod recursion;
mod rows;
mod seen;
mod weights;

use self::recursion::Recursion;
use self::rows::{AtTarget, Gains, OwnRow, States};
use self::seen::Seen;
use self::weights::{AllInputs, Weights};
use super::Problem;
use super::evaluate::Sent;
use super::mixing::Mixing;
use super::reach;
use super::search::{Relaxation, Relaxed, Selected};
use super::subproblem::Subproblem;
use crate::edge::Edge;
use crate::ids::{ClassId, NodeId};

/// From so many deletions on it is looked at whether there are as many edges.
const MANY: usize = 20;

/// The relaxation for one hidden layer.
#[derive(Debug)]
pub(super) struct OneHidden<'p> {
    problem: &'p Problem<'p>,
    weights: Weights,
    inputs: AllInputs,
    target: NodeId,
    /// What was looked at last.
    last: Option<Looked>,
}

/// What does not depend on classes.
#[derive(Debug)]
struct Looked {
    sub: Subproblem,
    seen: Seen,
    states: States,
}

impl<'p> OneHidden<'p> {
    /// The relaxation, if the network has one hidden layer and mixes in one way.
    pub(super) fn new(problem: &'p Problem<'p>, target: NodeId) -> Option<Self> {
        let weights = Weights::of(problem)?;
        Some(Self { problem, weights, inputs: AllInputs::default(), target, last: None })
    }

    fn look(&mut self, sent: &mut Sent, sub: &Subproblem) -> Looked {
        if let Some(last) = self.last.take_if(|last| last.sub == *sub) {
            return last;
        }
        let mut left = sub.left(self.problem.limits);
        if left > MANY {
            left = left.min(self.candidates().len().saturating_sub(sub.deleted.len()));
        }
        let seen = Seen::new(self.problem, &self.weights, (&mut self.inputs, sent), sub, self.target, left);
        let states = States::new(&seen, &self.weights, &self.inputs, AtTarget::Any);
        Looked { sub: sub.clone(), seen, states }
    }
}

impl Relaxation for OneHidden<'_> {
    fn bound(&mut self, sent: &mut Sent, sub: &Subproblem, y: ClassId, k: ClassId) -> Relaxed {
        let looked = self.look(sent, sub);
        let relaxed = self.relaxed(&looked, (y.index(), k.index()));
        self.last = Some(looked);
        relaxed
    }

    fn candidates(&self) -> Vec<Edge> {
        reach::edges(self.problem, self.target)
    }
}

impl OneHidden<'_> {
    fn relaxed(&self, Looked { seen, states, .. }: &Looked, pair: (usize, usize)) -> Relaxed {
        let Self { weights, inputs, .. } = self;
        let error = 8.0
            * (seen.left + 2) as f64
            * self.problem.relative_error(seen.longest)
            * rows::size(seen, weights, inputs, pair);
        let gains = Gains::new(seen, weights, inputs, states, pair);
        let droppable = seen.rows[1..].iter().filter(|row| row.may_drop).count();
        let most = droppable.min(seen.left).min(seen.rows[0].most);
        let mut lowest: (f64, Vec<Selected>) = (f64::INFINITY, Vec::new());
        for drops in 0..=most {
            let own = OwnRow::new(seen, weights, inputs, drops, pair);
            let (mut lower, _) = Recursion::new(seen, &gains, &own, drops).solve(false);
            let mut selection = Vec::new();
            let is_shown = |lower: f64| lower - error > 0.0;
            if !is_shown(lower) {
                let exact;
                let mut gains = &gains;
                if weights.mixing == Mixing::Symmetric && most > 0 {
                    let states = States::new(seen, weights, inputs, AtTarget::Exactly(drops));
                    exact = Gains::new(seen, weights, inputs, &states, pair);
                    gains = &exact;
                }
                (lower, selection) = Recursion::new(seen, gains, &own, drops).solve(true);
            }
            if lower < lowest.0 || lower.is_nan() {
                lowest = (lower, selection);
            }
        }
        let (lower, selection) = lowest;
        let lower = if lower.is_nan() { f64::NEG_INFINITY } else { lower - error };
        Relaxed { lower, selection, ..Relaxed::default() }
    }
}

//! Every admissible set, one after the other: for networks that no bound is made for, and to hold bounds against.

use super::Problem;
use super::evaluate::Sent;
use super::reach;
use super::search::{Relaxation, Relaxed};
use super::subproblem::Subproblem;
use crate::edge::Edge;
use crate::ids::{ClassId, NodeId};

/// Bounds nothing.
#[derive(Debug)]
pub(super) struct Enumeration {
    edges: Vec<Edge>,
}

impl Enumeration {
    pub(super) fn new(problem: &Problem, target: NodeId) -> Self {
        Self { edges: reach::edges(problem, target) }
    }
}

impl Relaxation for Enumeration {
    fn bound(&mut self, _: &mut Sent, _: &Subproblem, _: ClassId, _: ClassId) -> Relaxed {
        Relaxed { lower: f64::NEG_INFINITY, ..Relaxed::default() }
    }

    fn candidates(&self) -> Vec<Edge> {
        self.edges.clone()
    }
}

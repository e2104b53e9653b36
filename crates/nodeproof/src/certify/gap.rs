//! How far a lower bound and the best attack are apart.

use std::ops::ControlFlow;

use super::{Certifier, CertifyError, Finish, Told};
use crate::graph::NodeId;

/// The smallest margin of a node over all admissible sets and all other classes, from both sides: what the paper calls the
/// dual and the primal.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Gap {
    /// The node.
    pub node: NodeId,
    /// The smallest margin is at least this.
    pub lower: f64,
    /// A set of flips with this margin is known.
    pub upper: f64,
}

impl Gap {
    /// `upper − lower`; 0 where rounding alone is left between them and lets them cross.
    pub fn width(&self) -> f64 {
        (self.upper - self.lower).max(0.0)
    }
}

impl Certifier<'_> {
    /// The gap of each of `nodes`, in this order, whatever its verdict: of [`Engine::Fast`](super::Engine::Fast) between its
    /// bound and the flips that attain it; of the other engines after the bound was raised as far as it goes without branching,
    /// which takes a network with one hidden layer.
    ///
    /// The observer hears how many nodes are done; it may break off, and the result is `None`.
    ///
    /// # Errors
    /// If a node does not exist or the settings do not fit the graph.
    pub fn gaps(
        &self,
        nodes: &[NodeId],
        mut observer: impl FnMut(usize) -> ControlFlow<()>,
    ) -> Result<Option<Vec<Gap>>, CertifyError> {
        let mut gaps = Vec::with_capacity(nodes.len());
        let finish = self.each_target(
            &self.budget,
            nodes,
            |worker, node| worker.gap(node),
            |told| {
                if let Told::Done(gap) = told {
                    gaps.push(gap);
                }
                observer(gaps.len())
            },
        )?;
        Ok((finish == Finish::Complete).then_some(gaps))
    }
}

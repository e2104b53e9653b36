//! How far a lower bound and the best attack are apart, and margins that tell how close a node is to falling.

use std::ops::ControlFlow;

use super::certifier::{Certifier, Progress};
use super::{CertifyError, Finish};
use crate::certificate::{Bound, Certificate};
use crate::engines::first_order::Raised;
use crate::ids::NodeId;
use crate::settings::Engine;

/// The smallest margin of a node over all admissible sets and all other classes, from both sides: what the paper calls the
/// dual and the primal.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Gap {
    /// The node.
    pub node: NodeId,
    /// The smallest margin is not below this.
    pub lower: Bound,
    /// A set of flips with this margin is known; `None` if numbers may have overflowed.
    pub upper: Option<f64>,
}

impl Gap {
    /// `upper − lower`; 0 where rounding alone is left between them and lets them cross, infinite where one is not known.
    pub fn width(&self) -> f64 {
        (self.upper.unwrap_or(f64::INFINITY) - self.lower.value()).max(0.0)
    }
}

impl Certifier<'_> {
    /// The gap of each of `nodes`, in this order, whatever its verdict: of [`Engine::Fast`] between its
    /// bound and the flips that attain it; of the other engines after the bound was raised as far as it goes without branching.
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
        let finish = self.each(
            nodes,
            |worker, node| worker.gap(node),
            |progress| {
                if let Progress::Done(gap) = progress {
                    gaps.push(gap);
                }
                observer(gaps.len())
            },
        )?;
        Ok((finish == Finish::Complete).then_some(gaps))
    }

    /// Raises the margins of a certificate as far as they go without branching. Engines beyond [`Engine::Fast`]
    /// stop once a verdict is known, and leave margins that are positive, but say little, or none at all; these tell how close the
    /// node is to falling. A verdict stays what it is, but an undecided node may turn out to be robust.
    ///
    /// The observer hears that it goes on; it may break off, and the certificate stays as it is.
    ///
    /// # Errors
    /// If the node does not exist or the settings do not fit the graph.
    pub fn raise_margins(
        &self,
        certificate: &mut Certificate,
        mut observer: impl FnMut() -> ControlFlow<()>,
    ) -> Result<Finish, CertifyError> {
        if self.settings.engine == Engine::Fast || self.settings.asks_for_more() {
            return Ok(Finish::Complete);
        }
        if self.settings.budget.edges().is_some() {
            return self.raise_over_deletions(certificate, observer);
        }
        self.each(
            &[certificate.node],
            |worker, node| worker.without_branching(node, Raised::Each, worker.patience()).0,
            |progress| {
                if let Progress::Done(margins) = progress {
                    certificate.raise(&margins);
                }
                observer()
            },
        )
    }
}

//! The radius that the engine certifies: the largest global budget that a node is proven to withstand.

use std::ops::ControlFlow;

use super::{Certifier, CertifyError, Event, Finish};
use crate::graph::NodeId;

impl Certifier<'_> {
    /// For each of `nodes` its certified radius, the largest global budget under which it is proven robust, with all else
    /// in the budget as it is: scans upwards from 1, each time over the nodes that were robust before, until none is or `most` is reached. A
    /// node that is not robust against a single flip has 0.
    ///
    /// The observer hears the global budget in question and how many nodes are tried under it, again and again while
    /// they are; it may break off, and the result is `None`.
    ///
    /// # Errors
    /// If a node does not exist or the settings do not fit the graph.
    pub fn certified_radii(
        &self,
        nodes: &[NodeId],
        most: u32,
        mut observer: impl FnMut(u32, usize) -> ControlFlow<()>,
    ) -> Result<Option<Vec<u32>>, CertifyError> {
        let mut largest = vec![0; nodes.len()];
        let mut left: Vec<usize> = (0..nodes.len()).collect();
        for global in 1..=most {
            let tried: Vec<NodeId> = left.iter().map(|&i| nodes[i]).collect();
            let mut robust = Vec::with_capacity(tried.len());
            let budget = self.budget.clone().with_global(global);
            let finish = self.certify_under(&budget, &tried, |event| {
                if let Event::Certified(certificate) = event {
                    robust.push(certificate.verdict.is_robust());
                }
                observer(global, tried.len())
            })?;
            if finish == Finish::Cancelled {
                return Ok(None);
            }
            let mut robust = robust.into_iter();
            left.retain(|_| robust.next().unwrap_or(false));
            left.iter().for_each(|&i| largest[i] = global);
            if left.is_empty() {
                break;
            }
        }
        Ok(Some(largest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::{Budget, Direction};
    use crate::certify::tests::ring;

    #[test]
    fn scanning_agrees_with_certifying_under_each_budget() {
        let (graph, model) = ring(40);
        let nodes: Vec<NodeId> = graph.node_ids().collect();
        let budget = Budget::new(1, 1.into()).direction(Direction::AddOnly);
        let certifier = Certifier::new(&graph, &model).unwrap().budget(budget.clone());
        let largest = certifier.certified_radii(&nodes, 9, |_, _| ControlFlow::Continue(())).unwrap().unwrap();
        for global in 1..=9 {
            let certifier = Certifier::new(&graph, &model).unwrap().budget(budget.clone().with_global(global));
            for (certificate, &largest) in certifier.certify(&nodes).unwrap().iter().zip(&largest) {
                assert_eq!(certificate.verdict.is_robust(), global <= largest, "node {}", certificate.node);
            }
        }
        assert!(largest.iter().any(|&largest| largest < 9) && largest.iter().any(|&largest| largest > 0));
    }

    #[test]
    fn it_ends_at_the_largest_budget_asked_for_and_can_be_broken_off() {
        let (graph, model) = ring(40);
        let nodes: Vec<NodeId> = graph.node_ids().collect();
        let certifier = Certifier::new(&graph, &model).unwrap();
        let scan = |most, stop_at: u32| {
            let observer =
                |global, _| if global == stop_at { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
            certifier.certified_radii(&nodes, most, observer).unwrap()
        };
        assert!(scan(1, 0).unwrap().iter().all(|&largest| largest <= 1));
        assert_eq!(scan(0, 0).unwrap(), vec![0; 40]);
        assert_eq!(scan(9, 1), None);
    }
}

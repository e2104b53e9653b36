//! What is found out about a node under growing budgets.

use std::time::Duration;

use crate::certificate::Witness;
use crate::graph::Graph;
use crate::ids::{ClassId, NodeId};
use crate::proof::Proofs;

/// What is known of the radius of one node: the largest global budget under which it is robust.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Radius {
    /// The node.
    pub node: NodeId,
    /// Its label, if it has one.
    pub label: Option<ClassId>,
    /// The largest global budget under which it is proven robust; `None` if it is not even without flips.
    pub robust_up_to: Option<u32>,
    /// What a scan does not find.
    pub found: Option<Found>,
}

/// What is known of a radius from above, and how.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Found {
    /// The class that is certified.
    pub class: Option<ClassId>,
    /// The smallest global budget under which it is proven nonrobust; `None` if it is under none that was tried.
    pub nonrobust_from: Option<u32>,
    /// Whether no budget is left undecided.
    pub exact: bool,
    /// Flips that change the class under `nonrobust_from`. Where the radius is exact there is no smaller set.
    pub witness: Option<Witness>,
    /// Where they were asked for and found: proofs that the node is robust up to where it is said to be.
    pub proofs: Option<Proofs>,
    /// Verdicts that were needed.
    pub verdicts: u32,
    /// Subproblems that branch and bound looked at, in total.
    pub branches: u64,
    /// Time spent on this node alone, where it was asked for.
    pub time: Option<Duration>,
}

impl Found {
    /// Nothing but the class that is certified.
    pub fn of_class(class: Option<ClassId>) -> Self {
        let (nonrobust_from, witness, proofs, time) = (None, None, None, None);
        Self { class, nonrobust_from, exact: false, witness, proofs, verdicts: 0, branches: 0, time }
    }
}

impl Radius {
    /// The radius of a node of `graph`.
    pub fn new(node: NodeId, graph: &Graph, robust_up_to: Option<u32>, found: Option<Found>) -> Self {
        Self { node, label: graph.label(node), robust_up_to, found }
    }

    /// The largest budget that the node is proven robust against; 0 also for one that is not even robust without flips.
    pub fn withstood(&self) -> u32 {
        self.robust_up_to.unwrap_or(0)
    }

    /// Whether no budget up to `most` is undecided, given the largest that is proven and the smallest that has a witness: the two
    /// meet, or all budgets are withstood.
    pub fn all_decided(robust_up_to: Option<u32>, nonrobust_from: Option<u32>, most: u32) -> bool {
        let next = robust_up_to.map_or(0, |robust| u64::from(robust) + 1);
        nonrobust_from.map_or(next > u64::from(most), |from| u64::from(from) == next)
    }

    /// Whether no budget is left undecided.
    pub fn is_exact(&self) -> bool {
        self.found.as_ref().is_some_and(|found| found.exact)
    }

    /// The smallest global budget under which a witness is known, if there is one.
    pub fn nonrobust_from(&self) -> Option<u32> {
        self.found.as_ref().and_then(|found| found.nonrobust_from)
    }

    /// The class that is certified, where it is known.
    pub fn class(&self) -> Option<ClassId> {
        self.found.as_ref().and_then(|found| found.class)
    }

    /// Flips that change the class under [`Radius::nonrobust_from`], where they are known.
    pub fn witness(&self) -> Option<&Witness> {
        self.found.as_ref().and_then(|found| found.witness.as_ref())
    }
}

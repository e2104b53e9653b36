//! What is kept of a radius, in the order in which it is written.

use nodeproof::{Graph, NodeId, Radius};
use serde::{Deserialize, Serialize};

use super::FlipRecord;

/// A radius on file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RadiusRecord {
    /// The node.
    pub node: u32,
    /// Its label, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<u32>,
    /// The largest global budget under which the node is proven robust; `None` if it is not even without flips.
    pub robust_up_to: Option<u32>,
    /// What a scan does not tell.
    #[serde(flatten)]
    pub found: Option<Found>,
}

/// What is known of a radius from above, and how.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Found {
    /// The smallest global budget under which a witness is known, if there is one.
    pub nonrobust_from: Option<u32>,
    /// Whether no budget is left undecided.
    pub exact: bool,
    /// The class that is certified.
    pub class: Option<u32>,
    /// Flips that change it under `nonrobust_from`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub witness: Option<Vec<FlipRecord>>,
    /// The class that overtakes under the witness.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub witness_class: Option<u32>,
    /// The margin over that class under the witness.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub witness_margin: Option<f64>,
    /// Global budgets that were tried.
    pub verdicts: u32,
    /// Parts that branch and bound looked at.
    pub branches: u64,
    /// Time spent on this node, where it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
}

impl RadiusRecord {
    /// What is kept of `radius`, which was looked for up to the global budget `most`; its time only if `timed`.
    pub fn new(radius: &Radius, most: u32, graph: &Graph, timed: bool) -> Self {
        let witness = radius.witness.as_ref();
        let found = Found {
            nonrobust_from: radius.nonrobust_from,
            exact: radius.is_exact(most),
            class: radius.class.map(|class| class.0),
            witness: witness.map(|witness| FlipRecord::all(witness, graph)),
            witness_class: witness.map(|witness| witness.class.0),
            witness_margin: witness.map(|witness| witness.margin),
            verdicts: radius.verdicts,
            branches: radius.branches,
            seconds: timed.then_some(radius.time.as_secs_f64()),
        };
        let label = graph.label(radius.node).map(|label| label.0);
        Self { node: radius.node.0, label, robust_up_to: radius.robust_up_to, found: Some(found) }
    }

    /// What is kept of a scan that proved `node` robust up to the global budget `largest`.
    pub fn scanned(node: NodeId, largest: u32, graph: &Graph) -> Self {
        let label = graph.label(node).map(|label| label.0);
        Self { node: node.0, label, robust_up_to: Some(largest), found: None }
    }

    /// Whether no budget is left undecided.
    pub fn is_exact(&self) -> bool {
        self.found.as_ref().is_some_and(|found| found.exact)
    }

    /// The smallest global budget under which a witness is known, if there is one.
    pub fn nonrobust_from(&self) -> Option<u32> {
        self.found.as_ref().and_then(|found| found.nonrobust_from)
    }

    /// The class that is certified, where it is on file.
    pub fn class(&self) -> Option<u32> {
        self.found.as_ref().and_then(|found| found.class)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_scan_says_less() {
        let graph = Graph::new(2, 3, &[(0, 1)], &[(0, 0)]).unwrap();
        let record = RadiusRecord::scanned(NodeId(1), 4, &graph);
        let line = serde_json::to_string(&record).unwrap();
        assert_eq!(line, r#"{"node":1,"robust_up_to":4}"#);
        assert_eq!(serde_json::from_str::<RadiusRecord>(&line).unwrap(), record);
    }

    #[test]
    fn records_read_back() {
        let line = r#"{"node":9,"label":1,"robust_up_to":2,"nonrobust_from":3,"exact":true,"class":1,"witness":[{"node":9,"attribute":11,"to":0}],"witness_class":2,"witness_margin":-0.08489189628581635,"verdicts":5,"branches":0}"#;
        let record: RadiusRecord = serde_json::from_str(line).unwrap();
        assert!(record.is_exact());
        assert_eq!((record.nonrobust_from(), record.class()), (Some(3), Some(1)));
        assert_eq!(serde_json::to_string(&record).unwrap(), line);
    }
}

//! What is kept of a radius, in the order in which it is written.

use nodeproof::{Engine, Graph, NodeId, Radius, TargetClass};
use serde::Serialize;
use serde_json::Value;

use super::{Exported, FileHeader, FlipRecord, GraphHeader, ModelHeader, cell};
use crate::inputs::Inputs;

/// Name of the format of radii.
const FORMAT: &str = "nodeproof-radii";
/// Version of the format of radii.
const VERSION: u32 = 1;

/// What a file of radii is about.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct RadiiHeader {
    format: &'static str,
    version: u32,
    nodeproof: &'static str,
    engine: Engine,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    scan: bool,
    class: TargetClass,
    graph: GraphHeader,
    model: ModelHeader,
    /// The budget, but for the number of flips in all.
    budget: Value,
    pub(crate) max_budget: u32,
    nodes: usize,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    timings: bool,
    #[serde(skip)]
    names: Option<Vec<String>>,
}

impl RadiiHeader {
    /// The header of a run of `engine` over `nodes` nodes.
    ///
    /// # Errors
    /// If the budget cannot be written as JSON.
    pub(crate) fn new(inputs: &Inputs, engine: Engine, class: TargetClass, nodes: usize) -> anyhow::Result<Self> {
        let mut budget = serde_json::to_value(&inputs.budget)?;
        budget.as_object_mut().and_then(|fields| fields.remove("global"));
        Ok(Self {
            format: FORMAT,
            version: VERSION,
            nodeproof: env!("CARGO_PKG_VERSION"),
            engine,
            scan: false,
            class,
            graph: GraphHeader::new(&inputs.graph),
            model: ModelHeader::new(&inputs.model),
            budget,
            max_budget: inputs.budget.budget().global(),
            nodes,
            timings: false,
            names: inputs.graph.names().nodes.clone(),
        })
    }

    /// The header of a run that keeps the time of each node, or does not, and scans, or does not.
    pub(crate) fn with(mut self, timings: bool, scan: bool) -> Self {
        (self.timings, self.scan) = (timings, scan);
        self
    }
}

impl FileHeader for RadiiHeader {
    fn names(&self) -> Option<&[String]> {
        self.names.as_deref()
    }
}

/// A radius on file.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct RadiusRecord {
    pub(crate) node: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<u32>,
    /// The largest global budget under which the node is proven robust; `None` if it is not even without flips.
    pub(crate) robust_up_to: Option<u32>,
    /// What a scan does not tell.
    #[serde(flatten)]
    found: Option<Found>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct Found {
    nonrobust_from: Option<u32>,
    exact: bool,
    class: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    witness: Option<Vec<FlipRecord>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    witness_class: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    witness_margin: Option<f64>,
    verdicts: u32,
    branches: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds: Option<f64>,
}

impl RadiusRecord {
    /// What is kept of `radius`, which was looked for up to the global budget `most`; its time only if `timed`.
    pub(crate) fn new(radius: &Radius, most: u32, graph: &Graph, timed: bool) -> Self {
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
    pub(crate) fn scanned(node: NodeId, largest: u32, graph: &Graph) -> Self {
        let label = graph.label(node).map(|label| label.0);
        Self { node: node.0, label, robust_up_to: Some(largest), found: None }
    }

    /// Whether no budget is left undecided.
    pub(crate) fn is_exact(&self) -> bool {
        self.found.as_ref().is_some_and(|found| found.exact)
    }
}

impl Exported for RadiusRecord {
    type Header = RadiiHeader;
    const COLUMNS: &'static [&'static str] =
        &["label", "class", "robust_up_to", "nonrobust_from", "exact", "witness_margin", "verdicts", "branches"];

    fn node(&self) -> u32 {
        self.node
    }

    fn cells(&self) -> Vec<String> {
        let found = self.found.as_ref();
        vec![
            cell(self.label),
            cell(found.and_then(|found| found.class)),
            cell(self.robust_up_to),
            cell(found.and_then(|found| found.nonrobust_from)),
            cell(found.map(|found| found.exact)),
            cell(found.and_then(|found| found.witness_margin)),
            cell(found.map(|found| found.verdicts)),
            cell(found.map(|found| found.branches)),
        ]
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
        assert_eq!(serde_json::to_string(&record).unwrap(), r#"{"node":1,"robust_up_to":4}"#);
        assert_eq!(record.cells(), ["", "", "4", "", "", "", "", ""]);
        assert_eq!(record.cells().len(), RadiusRecord::COLUMNS.len());
    }
}

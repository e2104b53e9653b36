//! Files of radii: their header, and what of a radius is in a table.

use nodeproof::{Engine, TargetClass};
use nodeproof_report::results::{GraphHeader, ModelHeader, RadiusRecord};
use serde::Serialize;
use serde_json::Value;

use super::{Exported, FileHeader, cell};
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

    use nodeproof::{Graph, NodeId};

    use super::*;

    #[test]
    fn a_scan_says_less() {
        let graph = Graph::new(2, 3, &[(0, 1)], &[(0, 0)]).unwrap();
        let record = RadiusRecord::scanned(NodeId(1), 4, &graph);
        assert_eq!(record.cells(), ["", "", "4", "", "", "", "", ""]);
        assert_eq!(record.cells().len(), RadiusRecord::COLUMNS.len());
    }
}

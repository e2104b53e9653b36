//! What of a radius is in a table.

use nodeproof_report::results::{RadiiHeader, RadiusRecord};

use super::{Exported, cell};

impl Exported for RadiusRecord {
    type About = RadiiHeader;
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

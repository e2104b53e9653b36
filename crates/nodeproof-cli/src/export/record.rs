//! What of a certificate is in a table.

use nodeproof_report::results::{CertificatesHeader, Record};

use super::{Exported, cell};

impl Exported for Record {
    type About = CertificatesHeader;
    const COLUMNS: &'static [&'static str] = &[
        "label",
        "predicted",
        "class",
        "verdict",
        "margin",
        "worst_class",
        "flips",
        "witness_margin",
        "engine",
        "branches",
    ];

    fn node(&self) -> u32 {
        self.node
    }

    fn cells(&self) -> Vec<String> {
        vec![
            cell(self.label),
            self.predicted.to_string(),
            self.class.to_string(),
            self.verdict.word().to_owned(),
            cell(self.margin()),
            self.worst_class.to_string(),
            cell(self.witness.as_ref().map(Vec::len)),
            cell(self.witness_margin),
            self.engine.name().to_owned(),
            self.branches.to_string(),
        ]
    }
}

#[cfg(test)]
pub(crate) mod tests {
    #![allow(clippy::unwrap_used)]

    use nodeproof::{Budget, Engine, Graph, LocalBudget, Model, TargetClass};
    use nodeproof_report::results::{Certificates, VerdictName};

    use super::*;
    use crate::export::Header;

    /// A record for tests.
    pub(crate) fn record(node: u32, verdict: VerdictName) -> Record {
        Record {
            node,
            label: Some(1),
            predicted: 1,
            class: 1,
            verdict,
            margins: vec![Some(0.5), None],
            worst_class: 0,
            lower: None,
            upper: None,
            witness: None,
            witness_class: None,
            witness_margin: None,
            engine: Engine::Fast,
            branches: 0,
            seconds: None,
        }
    }

    /// A header for tests, of two nodes.
    pub(crate) fn header(global: u32) -> Header<CertificatesHeader> {
        let names = nodeproof::Names { nodes: Some(vec!["plain".into(), "a \"b\", c".into()]), ..Default::default() };
        let graph = Graph::new(2, 3, &[(0, 1)], &[(0, 0)]).unwrap().with_names(names).unwrap();
        let layer = nodeproof::Layer::new(nodeproof::Matrix::zeros(3, 2), vec![0.0, 1.0]);
        let model = Model::new(vec![layer], nodeproof::Propagation::SymmetricGcn).unwrap();
        let budget = Budget::new(global, "1%".parse::<LocalBudget>().unwrap());
        let about = Certificates::of(&[], (&graph, &model), &budget, Engine::Fast, TargetClass::Predicted);
        Header::new(about.header(2, false), &graph)
    }

    #[test]
    fn the_header_says_what_the_file_is_about() {
        let line = header(2).line().unwrap();
        assert!(line.starts_with(r#"{"format":"nodeproof-certificates","version":1,"nodeproof":""#), "{line}");
        assert!(line.contains(r#""budget":{"global":2,"local":"1%","direction":"both","local_count":1}"#), "{line}");
        assert!(line.ends_with(r#""nodes":2}"#), "{line}");
    }
}

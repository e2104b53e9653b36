//! Files of certificates: their header, and what of a certificate is in a table.

use nodeproof::{Engine, TargetClass};
use nodeproof_report::results::{GraphHeader, ModelHeader, Record};
use serde::Serialize;

use super::{Exported, FileHeader, cell};
use crate::budget::CheckedBudget;
use crate::inputs::Inputs;

/// Name of the certificate format.
const FORMAT: &str = "nodeproof-certificates";
/// Version of the certificate format.
const VERSION: u32 = 1;

/// What a file of certificates is about.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Header {
    format: &'static str,
    version: u32,
    nodeproof: &'static str,
    engine: Engine,
    class: TargetClass,
    graph: GraphHeader,
    model: ModelHeader,
    budget: CheckedBudget,
    nodes: usize,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    timings: bool,
    #[serde(skip)]
    names: Option<Vec<String>>,
}

impl Header {
    /// Nodes that were asked for.
    pub(crate) fn nodes(&self) -> usize {
        self.nodes
    }

    /// The header of a run of `engine` over `nodes` nodes.
    pub(crate) fn new(inputs: &Inputs, engine: Engine, class: TargetClass, nodes: usize) -> Self {
        let Inputs { graph, model, budget, .. } = inputs;
        Self {
            format: FORMAT,
            version: VERSION,
            nodeproof: env!("CARGO_PKG_VERSION"),
            engine,
            class,
            graph: GraphHeader::new(graph),
            model: ModelHeader::new(model),
            budget: budget.clone(),
            nodes,
            timings: false,
            names: graph.names().nodes.clone(),
        }
    }

    /// The header of a run that keeps the time of each node, or does not.
    pub(crate) fn timed(mut self, timings: bool) -> Self {
        self.timings = timings;
        self
    }
}

impl FileHeader for Header {
    fn names(&self) -> Option<&[String]> {
        self.names.as_deref()
    }
}

impl Exported for Record {
    type Header = Header;
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

    use nodeproof::{Graph, Model};
    use nodeproof_report::results::VerdictName;

    use super::*;

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
    pub(crate) fn header(global: u32) -> Header {
        use clap::Parser;
        #[derive(Parser)]
        struct Only {
            #[command(flatten)]
            budget: crate::cli::BudgetArguments,
        }
        let names = nodeproof::Names { nodes: Some(vec!["plain".into(), "a \"b\", c".into()]), ..Default::default() };
        let graph = Graph::new(2, 3, &[(0, 1)], &[(0, 0)]).unwrap().with_names(names).unwrap();
        let layer = nodeproof::Layer::new(nodeproof::Matrix::zeros(3, 2), vec![0.0, 1.0]);
        let model = Model::new(vec![layer], nodeproof::Propagation::SymmetricGcn).unwrap();
        let arguments = Only::parse_from(["test", "--global-budget", &global.to_string()]).budget;
        let budget = CheckedBudget::new(&arguments, &graph, None).unwrap();
        Header::new(&Inputs { graph, model, split: None, budget }, Engine::Fast, TargetClass::Predicted, 2)
    }

    #[test]
    fn the_header_says_what_the_file_is_about() {
        let line = header(2).line().unwrap();
        assert!(line.starts_with(r#"{"format":"nodeproof-certificates","version":1,"nodeproof":""#), "{line}");
        assert!(line.contains(r#""budget":{"global":2,"local":"1%","direction":"both","local_count":1}"#), "{line}");
        assert!(line.ends_with(r#""nodes":2}"#), "{line}");
    }
}

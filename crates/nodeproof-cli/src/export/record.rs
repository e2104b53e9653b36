//! What is kept of a certificate, in the order in which it is written.

use nodeproof::{Certificate, Engine, Flip, Graph, Model, TargetClass, Verdict, Witness};
use serde::{Deserialize, Serialize};

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

/// Which graph a file is about.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct GraphHeader {
    fingerprint: String,
    nodes: usize,
    edges: usize,
    attributes: usize,
}

impl GraphHeader {
    /// Names `graph`.
    pub(crate) fn new(graph: &Graph) -> Self {
        let (nodes, edges, attributes) = (graph.nodes(), graph.edges(), graph.attribute_count());
        Self { fingerprint: graph.fingerprint(), nodes, edges, attributes }
    }
}

/// Which model a file is about.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct ModelHeader {
    fingerprint: String,
    layers: usize,
    propagation: &'static str,
    classes: usize,
}

impl ModelHeader {
    /// Names `model`.
    pub(crate) fn new(model: &Model) -> Self {
        Self {
            fingerprint: model.fingerprint(),
            layers: model.layers().len(),
            propagation: model.propagation().name(),
            classes: model.classes(),
        }
    }
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

/// A verdict without its evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum VerdictName {
    Robust,
    Nonrobust,
    Undecided,
}

impl VerdictName {
    /// The name of `verdict`.
    pub(crate) fn of(verdict: &Verdict) -> Self {
        match verdict {
            Verdict::Robust { .. } => Self::Robust,
            Verdict::Nonrobust { .. } => Self::Nonrobust,
            // A kind of verdict that this program does not know proves nothing that it could report.
            _ => Self::Undecided,
        }
    }

    /// The word for it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Robust => "robust",
            Self::Nonrobust => "nonrobust",
            Self::Undecided => "undecided",
        }
    }
}

/// A flip and the value it leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FlipRecord {
    pub(crate) node: u32,
    pub(crate) attribute: u32,
    pub(crate) to: u8,
}

impl FlipRecord {
    /// The flips of `witness`, in their order.
    pub(crate) fn all(witness: &Witness, graph: &Graph) -> Vec<Self> {
        let record = |flip: &Flip| Self { node: flip.node.0, attribute: flip.attribute.0, to: flip.adds(graph).into() };
        witness.flips.iter().map(record).collect()
    }
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// A certificate on file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) node: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) label: Option<u32>,
    pub(crate) predicted: u32,
    pub(crate) class: u32,
    pub(crate) verdict: VerdictName,
    pub(crate) margins: Vec<Option<f64>>,
    pub(crate) worst_class: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) lower: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) upper: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) witness: Option<Vec<FlipRecord>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) witness_class: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) witness_margin: Option<f64>,
    pub(crate) engine: Engine,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) branches: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) seconds: Option<f64>,
}

impl Record {
    /// What is kept of `certificate`; its time only if `timed`.
    pub(crate) fn new(certificate: &Certificate, graph: &Graph, timed: bool) -> Self {
        let mut record = Self {
            node: certificate.node.0,
            label: certificate.label.map(|label| label.0),
            predicted: certificate.predicted.0,
            class: certificate.class.0,
            verdict: VerdictName::of(&certificate.verdict),
            margins: certificate.margins.clone(),
            worst_class: certificate.worst_class.0,
            lower: None,
            upper: None,
            witness: None,
            witness_class: None,
            witness_margin: None,
            engine: certificate.engine,
            branches: certificate.branches,
            seconds: timed.then_some(certificate.time.as_secs_f64()),
        };
        match &certificate.verdict {
            Verdict::Nonrobust { witness } => {
                record.witness = Some(FlipRecord::all(witness, graph));
                record.witness_class = Some(witness.class.0);
                record.witness_margin = Some(witness.margin);
            }
            Verdict::Undecided { lower, upper } => (record.lower, record.upper) = (Some(*lower), Some(*upper)),
            _ => {}
        }
        record
    }

    /// The smallest lower bound over all classes; `None` if numbers overflowed and nothing is known.
    pub(crate) fn margin(&self) -> Option<f64> {
        let smallest = self.margins.iter().flatten().copied().fold(f64::INFINITY, f64::min);
        Some(smallest).filter(|&margin| margin > f64::MIN)
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
    fn fields_without_a_value_are_left_out() {
        assert_eq!(
            serde_json::to_string(&record(4, VerdictName::Robust)).unwrap(),
            r#"{"node":4,"label":1,"predicted":1,"class":1,"verdict":"robust","margins":[0.5,null],"worst_class":0,"engine":"fast"}"#
        );
    }

    #[test]
    fn records_read_back() {
        let mut full = record(4, VerdictName::Nonrobust);
        full.witness = Some(vec![FlipRecord { node: 4, attribute: 2, to: 1 }]);
        (full.witness_class, full.witness_margin, full.seconds) = (Some(0), Some(-0.1), Some(1e-9));
        (full.engine, full.branches) = (Engine::Complete, 12);
        let line = serde_json::to_string(&full).unwrap();
        assert!(line.contains(r#""witness":[{"node":4,"attribute":2,"to":1}]"#), "{line}");
        assert_eq!(serde_json::from_str::<Record>(&line).unwrap(), full);
    }

    #[test]
    fn the_header_says_what_the_file_is_about() {
        let line = header(2).line().unwrap();
        assert!(line.starts_with(r#"{"format":"nodeproof-certificates","version":1,"nodeproof":""#), "{line}");
        assert!(line.contains(r#""budget":{"global":2,"local":"1%","direction":"both","local_count":1}"#), "{line}");
        assert!(line.ends_with(r#""nodes":2}"#), "{line}");
    }
}

//! What is kept of a certificate, in the order in which it is written.

use nodeproof::{Certificate, Engine, Flip, Graph, Verdict, Witness};
use serde::{Deserialize, Serialize};

/// A verdict without its evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum VerdictName {
    /// No admissible set of flips changes the class.
    Robust,
    /// Flips that change it are known.
    Nonrobust,
    /// Neither is proven.
    Undecided,
}

impl VerdictName {
    /// The name of `verdict`.
    pub fn of(verdict: &Verdict) -> Self {
        match verdict {
            Verdict::Robust { .. } => Self::Robust,
            Verdict::Nonrobust { .. } => Self::Nonrobust,
            // A kind of verdict that is not known here proves nothing that could be reported.
            _ => Self::Undecided,
        }
    }

    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Robust => "robust",
            Self::Nonrobust => "nonrobust",
            Self::Undecided => "undecided",
        }
    }
}

/// A flip and the value it leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlipRecord {
    /// The node.
    pub node: u32,
    /// The attribute.
    pub attribute: u32,
    /// Its new value, 0 or 1.
    pub to: u8,
}

impl FlipRecord {
    /// The flips of `witness`, in their order.
    pub fn all(witness: &Witness, graph: &Graph) -> Vec<Self> {
        let record = |flip: &Flip| Self { node: flip.node.0, attribute: flip.attribute.0, to: flip.adds(graph).into() };
        witness.flips.iter().map(record).collect()
    }
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// A certificate on file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The node.
    pub node: u32,
    /// Its label, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<u32>,
    /// The class that the model predicts on the graph as it is.
    pub predicted: u32,
    /// The class that is certified.
    pub class: u32,
    /// The verdict.
    pub verdict: VerdictName,
    /// Per class a lower bound on the margin over it; `None` for the class itself.
    pub margins: Vec<Option<f64>>,
    /// The class with the smallest of these.
    pub worst_class: u32,
    /// Undecided only: the smallest margin is at least this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lower: Option<f64>,
    /// Undecided only: the smallest margin is at most this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upper: Option<f64>,
    /// Nonrobust only: flips that change the class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub witness: Option<Vec<FlipRecord>>,
    /// The class that overtakes under the witness.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub witness_class: Option<u32>,
    /// The margin over that class under the witness.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub witness_margin: Option<f64>,
    /// The engine that settled the node, or the last one that tried.
    pub engine: Engine,
    /// Parts that branch and bound looked at.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub branches: u64,
    /// Time spent on this node, where it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
}

impl Record {
    /// What is kept of `certificate`; its time only if `timed`.
    pub fn new(certificate: &Certificate, graph: &Graph, timed: bool) -> Self {
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
    pub fn margin(&self) -> Option<f64> {
        let smallest = self.margins.iter().flatten().copied().fold(f64::INFINITY, f64::min);
        Some(smallest).filter(|&margin| margin > f64::MIN)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn record(node: u32, verdict: VerdictName) -> Record {
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
}

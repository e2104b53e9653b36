//! Certificates on file.

use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::lines::{LineWriter, PlainRecord};
use super::proofs::ProofFields;
use super::scan::scanned;
use super::{Header, Record, Results, ResultsError, wrong_kind};
use crate::certificate::{Bound, Certificate, Evidence, Obstacle, Verdict, Witness, smallest};
use crate::edge::Edge;
use crate::flip::Flip;
use crate::ids::{ClassId, NodeId};
use crate::settings::Engine;

/// Certificates of one model under one budget.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Certificates {
    /// What they are about.
    pub header: Header,
    /// One a node.
    pub records: Vec<Certificate>,
}

impl Certificates {
    /// Certificates about `header`, none yet.
    pub fn new(header: Header) -> Self {
        Self { header, records: Vec::new() }
    }

    /// Reads the file at `path`, which must have certificates.
    ///
    /// # Errors
    /// As [`Results::read`], and if it has something else.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, ResultsError> {
        Self::of(Results::read(path.as_ref())?, path.as_ref())
    }

    /// The certificates of `results`, read from `path`.
    ///
    /// # Errors
    /// If they are something else.
    pub fn of(results: Results, path: &Path) -> Result<Self, ResultsError> {
        match results {
            Results::Certificates(certificates) => Ok(certificates),
            other => Err(wrong_kind(path, &other, "certificates", "`nodeproof certify --out` writes them")),
        }
    }

    /// Writes the certificates, as `nodeproof certify --out` does.
    ///
    /// # Errors
    /// If `out` cannot be written to.
    pub fn write(&self, out: impl Write) -> io::Result<()> {
        let mut lines = LineWriter::begin(out, &Certificate::header_line(&self.header))?;
        self.records.iter().try_for_each(|record| lines.record(&record.line(&self.header)))?;
        lines.flush()
    }
}

/// A certificate as it is on file, in the order of its fields.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct CertificateLine {
    pub(super) node: NodeId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) label: Option<ClassId>,
    pub(super) predicted: ClassId,
    pub(super) class: ClassId,
    pub(super) verdict: Verdict,
    pub(super) margins: Vec<Bound>,
    pub(super) worst_class: ClassId,
    #[serde(flatten)]
    pub(super) proofs: ProofFields,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) lower: Option<Bound>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) upper: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) because: Option<Obstacle>,
    #[serde(flatten)]
    pub(super) witness: WitnessFields,
    pub(super) engine: Engine,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) branches: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) seconds: Option<f64>,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Record for Certificate {
    const FORMAT: &'static str = "nodeproof-certificates";
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
        "deleted_edges",
    ];
    type Line = CertificateLine;

    fn node(&self) -> NodeId {
        self.node
    }

    fn line(&self, header: &Header) -> CertificateLine {
        let (lower, upper) = match self.evidence {
            Evidence::Open { lower, upper, .. } => (Some(lower), upper),
            _ => (None, None),
        };
        CertificateLine {
            node: self.node,
            label: self.label,
            predicted: self.predicted,
            class: self.class,
            verdict: self.verdict(),
            margins: self.margins.iter().map(|margin| margin.unwrap_or(Bound::Unknown)).collect(),
            worst_class: self.worst_class,
            proofs: ProofFields::new(self.proofs.as_ref(), self.is_robust(), header),
            lower,
            upper,
            because: self.undecided_because(),
            witness: WitnessFields::new(self.witness()),
            engine: self.engine,
            branches: self.branches,
            seconds: self.time.filter(|_| header.timings).map(|time| time.as_secs_f64()),
        }
    }

    fn parse(line: &[u8]) -> serde_json::Result<CertificateLine> {
        PlainRecord::of_line(line).and_then(scanned).map_or_else(|| serde_json::from_slice(line), Ok)
    }

    fn of_line(line: CertificateLine, header: &Header) -> Result<Self, String> {
        let CertificateLine { node, label, predicted, class, verdict, worst_class, engine, branches, seconds, .. } =
            line;
        header.check_node(node)?;
        [predicted, class, worst_class].into_iter().chain(label).try_for_each(|class| header.check_class(class))?;
        if line.margins.len() != header.model.classes {
            return Err(format!("{} margins for {} classes", line.margins.len(), header.model.classes));
        }
        let other = |(k, margin): (u32, Bound)| (ClassId(k) != class).then_some(margin);
        let margins: Vec<Option<Bound>> = (0..).zip(line.margins).map(other).collect();
        let (worst, lower) = smallest(&margins);
        let witness = line.witness.witness()?;
        if let Some(witness) = &witness {
            header.check_witness(witness, Some(class))?;
        }
        let evidence = match (verdict, witness) {
            (Verdict::Robust, None) if lower.exceeds(header.margin) => Evidence::Robust,
            (Verdict::Robust, None) => {
                return Err(format!("it is called robust, but its margins do not exceed {}", header.margin));
            }
            (Verdict::Nonrobust, Some(witness)) => Evidence::Witness(witness),
            (Verdict::Undecided, None) if lower.exceeds(header.margin) && header.arithmetic.is_exact() => {
                return Err(format!("it is called undecided, but its margins exceed {}", header.margin));
            }
            (Verdict::Undecided, None) if line.upper.is_some_and(|upper| upper < header.margin) => {
                return Err(format!(
                    "it is called undecided, but flips with a margin below {} are known",
                    header.margin
                ));
            }
            (Verdict::Undecided, None) if line.lower.is_some_and(|stated| stated != lower) => {
                return Err("its smallest margin is not that of its margins".to_owned());
            }
            (Verdict::Undecided, None) => {
                let upper = line.upper.filter(|&upper| upper < f64::MAX);
                Evidence::Open { lower, upper, because: line.because }
            }
            _ => return Err("a witness belongs to the verdict nonrobust, and to no other".to_owned()),
        };
        if worst != worst_class {
            return Err(format!("its worst class is {worst}, not {worst_class}"));
        }
        let proofs = line.proofs.proofs(verdict == Verdict::Robust, Some(class), header)?;
        let time = seconds.map(duration).transpose()?;
        Ok(Self { node, label, predicted, class, evidence, margins, worst_class, proofs, engine, branches, time })
    }

    fn cells(&self) -> Vec<String> {
        let witness = self.witness();
        let margin = match self.margin() {
            Bound::Unknown => String::new(),
            Bound::Positive => POSITIVE.to_owned(),
            Bound::AtLeast(bound) => bound.to_string(),
        };
        vec![
            cell(self.label),
            self.predicted.to_string(),
            self.class.to_string(),
            self.verdict().name().to_owned(),
            margin,
            self.worst_class.to_string(),
            cell(witness.map(Witness::size)),
            cell(witness.map(|witness| witness.margin)),
            self.engine.name().to_owned(),
            self.branches.to_string(),
            witness.map_or(String::new(), |witness| in_words(&witness.edges)),
        ]
    }
}

/// Edges as they are told: `0–17; 3–4`.
fn in_words(edges: &[Edge]) -> String {
    edges.iter().map(Edge::to_string).collect::<Vec<_>>().join("; ")
}

/// A value in a table, empty if there is none.
pub(super) fn cell(value: Option<impl ToString>) -> String {
    value.map_or(String::new(), |value| value.to_string())
}

pub(super) fn duration(seconds: f64) -> Result<Duration, String> {
    Duration::try_from_secs_f64(seconds).map_err(|_| format!("{seconds} seconds is not a length of time"))
}

/// A witness as it is on file, among the fields of a record.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct WitnessFields {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    witness: Option<Vec<Flip>>,
    /// The edges that it deletes, if any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    witness_edges: Vec<Edge>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    witness_class: Option<ClassId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    witness_margin: Option<f64>,
}

impl WitnessFields {
    pub(super) fn new(witness: Option<&Witness>) -> Self {
        let Some(Witness { flips, edges, class, margin }) = witness else { return Self::default() };
        Self { witness_edges: edges.clone(), ..Self::of_parts(flips.clone(), *class, *margin) }
    }

    /// Those of a witness of these flips alone.
    pub(super) fn of_parts(flips: Vec<Flip>, class: ClassId, margin: f64) -> Self {
        let witness_edges = Vec::new();
        Self { witness: Some(flips), witness_edges, witness_class: Some(class), witness_margin: Some(margin) }
    }

    /// Whether there are flips.
    pub(super) fn is_there(&self) -> bool {
        self.witness.is_some()
    }

    pub(super) fn witness(self) -> Result<Option<Witness>, String> {
        match (self.witness, self.witness_class, self.witness_margin) {
            (None, None, None) if self.witness_edges.is_empty() => Ok(None),
            (Some(flips), Some(class), Some(margin)) => {
                Ok(Some(Witness::new(flips, class, margin).with_edges(self.witness_edges)))
            }
            _ => Err("a witness has flips, a class and a margin; one is missing".to_owned()),
        }
    }
}

/// How a positive bound of unknown size is written.
const POSITIVE: &str = "positive";

impl Serialize for Bound {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Unknown => serializer.serialize_unit(),
            Self::Positive => serializer.serialize_str(POSITIVE),
            Self::AtLeast(bound) => serializer.serialize_f64(*bound),
        }
    }
}

impl Bound {
    /// What a number on file says. Version 1 wrote the smallest positive one and the smallest of all for what is not known.
    pub(super) fn of_number(bound: f64) -> Self {
        match bound {
            bound if bound == f64::from_bits(1) => Self::Positive,
            bound if bound <= f64::MIN => Self::Unknown,
            bound => Self::AtLeast(bound),
        }
    }
}

impl<'de> Deserialize<'de> for Bound {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct BoundVisitor;

        impl Visitor<'_> for BoundVisitor {
            type Value = Bound;

            fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
                write!(f, "a number, \"{POSITIVE}\" or null")
            }

            fn visit_f64<E: de::Error>(self, bound: f64) -> Result<Bound, E> {
                Ok(Bound::of_number(bound))
            }

            fn visit_i64<E: de::Error>(self, bound: i64) -> Result<Bound, E> {
                Ok(Bound::AtLeast(bound as f64))
            }

            fn visit_u64<E: de::Error>(self, bound: u64) -> Result<Bound, E> {
                Ok(Bound::AtLeast(bound as f64))
            }

            fn visit_str<E: de::Error>(self, word: &str) -> Result<Bound, E> {
                if word == POSITIVE {
                    Ok(Bound::Positive)
                } else {
                    Err(E::invalid_value(de::Unexpected::Str(word), &self))
                }
            }

            fn visit_unit<E: de::Error>(self) -> Result<Bound, E> {
                Ok(Bound::Unknown)
            }
        }

        deserializer.deserialize_any(BoundVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::EdgeBudget;
    use crate::results::tests::header;

    fn certificate(evidence: Evidence, margin: Bound) -> Certificate {
        Certificate {
            label: Some(ClassId(1)),
            ..Certificate::new(NodeId(1), ClassId(1), ClassId(1), evidence, vec![Some(margin), None])
        }
    }

    fn text(certificate: &Certificate) -> String {
        serde_json::to_string(&certificate.line(&header())).unwrap()
    }

    #[test]
    fn fields_without_a_value_are_left_out() {
        assert_eq!(
            text(&certificate(Evidence::Robust, Bound::AtLeast(0.5))),
            r#"{"node":1,"label":1,"predicted":1,"class":1,"verdict":"robust","margins":[0.5,null],"worst_class":0,"engine":"fast"}"#
        );
        assert!(text(&certificate(Evidence::Robust, Bound::Positive)).contains(r#""margins":["positive",null]"#));
        let open = Evidence::Open { lower: Bound::Unknown, upper: None, because: Some(Obstacle::Overflow) };
        assert!(
            text(&certificate(open, Bound::Unknown))
                .contains(r#""margins":[null,null],"worst_class":0,"lower":null,"because":"overflow","#)
        );
    }

    #[test]
    fn certificates_read_back() {
        let flip = Flip { node: NodeId(1), attribute: crate::AttributeId(2), to: 1.0 };
        let witness = |flips| Witness::new(flips, ClassId(0), -0.1);
        let unlinked = witness(Vec::new()).with_edges(Edge::between(NodeId(1), NodeId(0)).into_iter().collect());
        let mut header = header();
        header.budget = header.budget.delete_edges(EdgeBudget::new(1));
        let open = |lower, because| Evidence::Open { lower, upper: Some(1.5), because };
        for (evidence, margin) in [
            (Evidence::Robust, Bound::AtLeast(0.5)),
            (Evidence::Robust, Bound::Positive),
            (Evidence::Witness(witness(vec![flip])), Bound::AtLeast(-0.5)),
            (Evidence::Witness(unlinked), Bound::Unknown),
            (open(Bound::AtLeast(-0.5), Some(Obstacle::Memory)), Bound::AtLeast(-0.5)),
            (open(Bound::Unknown, None), Bound::Unknown),
        ] {
            let mut certificate = certificate(evidence, margin);
            (certificate.engine, certificate.branches) = (Engine::Complete, 12);
            let line = serde_json::from_str(&text(&certificate)).unwrap();
            assert_eq!(Certificate::of_line(line, &header).unwrap(), certificate);
        }
    }

    #[test]
    fn deletions_beyond_the_budget_are_refused() {
        let pair = |a, b| Edge::between(NodeId(a), NodeId(b)).into_iter().collect::<Vec<_>>();
        let line = |edges: Vec<Edge>| {
            let witness = Witness::new(Vec::new(), ClassId(0), -0.1).with_edges(edges);
            serde_json::from_str(&text(&certificate(Evidence::Witness(witness), Bound::Unknown))).unwrap()
        };
        let problem = |line, header: &Header| Certificate::of_line(line, header).unwrap_err();
        assert_eq!(problem(line(pair(0, 1)), &header()), "its witness deletes 1, more than the budget");
        let mut header = header();
        header.budget = header.budget.delete_edges(EdgeBudget::new(1));
        assert_eq!(problem(line(pair(0, 7)), &header), "there is no node 7");
        assert_eq!(
            problem(line([pair(0, 1), pair(0, 1)].concat()), &header),
            "its witness deletes 2, more than the budget"
        );
    }

    #[test]
    fn numbers_of_version_1_are_understood() {
        let bound = |text: &str| serde_json::from_str::<Bound>(text).unwrap();
        assert_eq!((bound("5e-324"), bound("-1.7976931348623157e308")), (Bound::Positive, Bound::Unknown));
        assert_eq!(
            (bound("0.25"), bound("-3"), bound("null")),
            (Bound::AtLeast(0.25), Bound::AtLeast(-3.0), Bound::Unknown)
        );
        assert!(serde_json::from_str::<Bound>("\"large\"").is_err());
    }
}

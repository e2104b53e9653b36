//! Certificates of an earlier run, kept as the bytes that they are on file.

use std::fs::File;
use std::io::{BufReader, Read};
use std::ops::Range;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::certificates::Certificates;
use super::lines::{Chain, PlainRecord};
use super::outline::OutlineLine;
use super::{GraphHeader, Header, LineReader, ModelHeader, Record, ResultsError};
use crate::budget::Budget;
use crate::certificate::{Certificate, Outline};
use crate::files::gzip;
use crate::graph::Graph;
use crate::ids::NodeId;
use crate::model::Model;

/// Where certificates come from that were carried over from an earlier run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SinceFields {
    /// The fingerprint of the graph that the earlier run is about.
    pub graph: String,
    /// That of its model.
    pub model: String,
    /// The hash of its last record.
    pub hash: String,
    /// How many of its certificates were carried over.
    pub carried: usize,
}

/// Certificates of an earlier run, whose bytes can be carried over to another file.
#[derive(Debug)]
pub struct EarlierCertificates {
    header: Header,
    /// The header as it is on file.
    line: Value,
    chain: Chain,
    /// The file.
    bytes: Vec<u8>,
    /// By ascending nodes.
    records: Vec<EarlierRecord>,
}

/// One of [`EarlierCertificates`].
#[derive(Debug)]
struct EarlierRecord {
    outline: Outline,
    /// Its bytes, up to its hash.
    bytes: Range<usize>,
    /// Whether a limit of time or memory may have kept it from saying more.
    cut_short: bool,
}

/// In what an earlier run differs from one that is to go on from it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("it was asked something else: {}", differences.join("; "))]
#[non_exhaustive]
pub struct AskedOtherwise {
    /// The fields of the headers, and what they have.
    pub differences: Vec<String>,
    /// What is to be given in place of something else, or with other options.
    pub of: Mismatch,
}

/// What an earlier run does not have in common with one that is to go on from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mismatch {
    /// The graph, and perhaps more.
    Graph,
    /// The model, and perhaps settings.
    Model,
    /// Only settings.
    Settings,
}

impl EarlierCertificates {
    /// Reads the file at `path`. Its hashes are verified, and of its records what [`EarlierCertificates::outline`] says; what comes with a
    /// witness or a proof is verified by whoever reads it.
    ///
    /// # Errors
    /// If it cannot be read, has something else, is damaged, not finished, or of a version without hashes.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, ResultsError> {
        let path = path.as_ref();
        match Self::of_bytes(bytes(path)?, path) {
            // What else it is says more than that it is something else.
            Err(error @ ResultsError::NotResults { .. }) => Err(Certificates::read(path).err().unwrap_or(error)),
            read => read,
        }
    }

    /// The certificates whose file has these bytes; errors call it `path`.
    ///
    /// # Errors
    /// As [`EarlierCertificates::read`].
    pub fn of_bytes(bytes: Vec<u8>, path: &Path) -> Result<Self, ResultsError> {
        let mut reader = LineReader::new(&bytes[..], path);
        let Some(line) = reader.header(&[Certificate::FORMAT])? else {
            return Err(ResultsError::NotResults { path: path.to_owned() });
        };
        let Some(mut chain) = reader.chain() else {
            return Err(ResultsError::WithoutHashes { path: path.to_owned(), found: line["version"].to_string() });
        };
        let header = Header::read(line.clone()).map_err(|problem| reader.damaged(problem))?;
        let mut records = Vec::new();
        loop {
            let start = reader.bytes() as usize;
            if !reader.verify_record()? {
                break;
            }
            chain = reader.chain().unwrap_or(chain);
            let record = PlainRecord::of_line(reader.line()).ok_or_else(|| reader.damaged("it has no hash"))?;
            let outline = OutlineLine::read(record).and_then(|line| line.outline(&header));
            let (outline, cut_short) = outline.map_err(|problem| reader.damaged(problem))?;
            if records.len() == header.nodes {
                return Err(reader.damaged(format!("the file is to have {} nodes, and this is one more", header.nodes)));
            }
            records.push(EarlierRecord { outline, bytes: start..start + record.0.len(), cut_short });
        }
        if records.len() < header.nodes {
            let (path, found, nodes) = (path.to_owned(), records.len(), header.nodes);
            return Err(ResultsError::Unfinished { path, found, nodes });
        }
        if !reader.line().is_empty() {
            return Err(reader.damaged("the file has all of its nodes, and goes on"));
        }
        if !records.is_sorted_by_key(|record| record.outline.node) {
            records.sort_by_key(|record| record.outline.node);
        }
        if let Some(twice) = records.windows(2).find(|pair| pair[0].outline.node == pair[1].outline.node) {
            return Err(reader.damaged(format!("node {} comes up twice", twice[0].outline.node)));
        }
        drop(reader);
        Ok(Self { header, line, chain, bytes, records })
    }

    /// What they are about.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The budget that they are about.
    pub fn budget(&self) -> &Budget {
        &self.header.budget
    }

    /// Checks that they were asked what a run with header `now` is asked, about that graph and that model of theirs, if they are about others:
    /// nothing may differ but the nodes, and local budgets and protection of single ones.
    ///
    /// # Errors
    /// If something else does.
    pub fn check(&self, mut now: Header, graph: Option<&Graph>, model: Option<&Model>) -> Result<(), AskedOtherwise> {
        if let Some(graph) = graph {
            now.graph = GraphHeader::new(graph);
        }
        if let Some(model) = model {
            now.model = ModelHeader::new(model);
        }
        let differences = self.differences(&now);
        if differences.is_empty() {
            return Ok(());
        }
        let is_about = |what: &str| differences.iter().any(|difference| difference.starts_with(what));
        let of = match (is_about("graph."), is_about("model.")) {
            (true, _) => Mismatch::Graph,
            (_, true) => Mismatch::Model,
            _ => Mismatch::Settings,
        };
        Err(AskedOtherwise { differences, of })
    }

    fn differences(&self, now: &Header) -> Vec<String> {
        let plain = |mut line: Value| {
            let remove = |value: &mut Value, fields: &[&str]| {
                if let Some(object) = value.as_object_mut() {
                    fields.iter().for_each(|&field| drop(object.remove(field)));
                }
            };
            remove(&mut line, &["nodes", "shard", "since"]);
            remove(&mut line["graph"], &["binarised"]);
            remove(&mut line["budget"], &["local_at", "protected_nodes"]);
            line
        };
        let now = serde_json::to_value(Certificate::header_line(now)).unwrap_or_default();
        super::differences(&plain(self.line.clone()), &plain(now))
    }

    /// What to say in a header of certificates of which so many were carried over.
    pub fn since(&self, carried: usize) -> SinceFields {
        let (graph, model) = (self.header.graph.fingerprint.clone(), self.header.model.fingerprint.clone());
        SinceFields { graph, model, hash: self.chain.to_string(), carried }
    }

    /// The place of the record of a node, if it has one that no limit of time or memory has cut short.
    pub fn find(&self, node: NodeId) -> Option<usize> {
        let place = self.records.binary_search_by_key(&node, |record| record.outline.node).ok()?;
        (!self.records[place].cut_short).then_some(place)
    }

    /// What a record says.
    pub fn outline(&self, place: usize) -> &Outline {
        &self.records[place].outline
    }

    /// A record, to be written to another file.
    pub fn record(&self, place: usize) -> PlainRecord<'_> {
        PlainRecord(&self.bytes[self.records[place].bytes.clone()])
    }

    /// The certificate of a record.
    ///
    /// # Errors
    /// If it cannot be one.
    pub fn certificate(&self, place: usize) -> Result<Certificate, String> {
        let line = self.record(place).parse().map_err(|error| error.to_string())?;
        Certificate::of_line(line, &self.header)
    }
}

/// What the file at `path` has, decompressed if it is compressed.
fn bytes(path: &Path) -> Result<Vec<u8>, ResultsError> {
    let read = || {
        let file = File::open(path)?;
        let length = file.metadata()?.len();
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(usize::try_from(length).unwrap_or(usize::MAX).saturating_add(1))?;
        gzip::reader(BufReader::new(file))?.read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    read().map_err(|source| ResultsError::Io { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::certificate::{Bound, Evidence, Obstacle, Witness};
    use crate::flip::Flip;
    use crate::ids::{AttributeId, ClassId};
    use crate::results::tests::header;
    use crate::results::{LineWriter, MergeError, merged};
    use crate::settings::Engine;

    fn certificate(node: u32, evidence: Evidence, margin: Bound) -> Certificate {
        let mut certificate =
            Certificate::new(NodeId(node), ClassId(1), ClassId(1), evidence, vec![Some(margin), None]);
        certificate.label = Some(ClassId(0));
        certificate
    }

    /// Two certificates, in falling order of nodes.
    fn certificates() -> Certificates {
        let flip = Flip { node: NodeId(0), attribute: AttributeId(1), to: 1.0 };
        let witness = Witness::new(vec![flip], ClassId(0), -0.5);
        let mut certificates = Certificates::new(header());
        certificates.records.push(certificate(1, Evidence::Witness(witness), Bound::AtLeast(-1.0)));
        certificates.records.push(certificate(0, Evidence::Robust, Bound::Positive));
        certificates
    }

    fn read(bytes: &[u8]) -> Result<EarlierCertificates, String> {
        EarlierCertificates::of_bytes(bytes.to_vec(), Path::new("old.jsonl")).map_err(|error| error.to_string())
    }

    fn written(certificates: &Certificates) -> Vec<u8> {
        let mut bytes = Vec::new();
        certificates.write(&mut bytes).unwrap();
        bytes
    }

    /// The file of these records, each with its hash.
    fn of_records(records: &[&str]) -> Vec<u8> {
        let mut lines = LineWriter::begin(Vec::new(), &Certificate::header_line(&header())).unwrap();
        for record in records {
            lines.plain_record(PlainRecord(record.strip_suffix('}').unwrap().as_bytes())).unwrap();
        }
        lines.into_inner()
    }

    #[test]
    fn records_are_found_and_written_again_as_they_are() {
        let certificates = certificates();
        let bytes = written(&certificates);
        let earlier = read(&bytes).unwrap();
        for certificate in &certificates.records {
            let place = earlier.find(certificate.node).unwrap();
            assert_eq!(*earlier.outline(place), certificate.outline());
            assert_eq!(earlier.certificate(place).as_ref(), Ok(certificate));
        }
        assert_eq!(earlier.find(NodeId(2)), None);
        let mut again = LineWriter::begin(Vec::new(), &Certificate::header_line(&header())).unwrap();
        for node in [1, 0] {
            again.plain_record(earlier.record(earlier.find(NodeId(node)).unwrap())).unwrap();
        }
        assert_eq!(again.into_inner(), bytes);
        let since = earlier.since(2);
        let text = String::from_utf8(bytes).unwrap();
        assert!(text.ends_with(&format!(",\"hash\":\"{}\"}}\n", since.hash)), "{since:?}");
    }

    #[test]
    fn what_a_limit_cut_short_is_not_found() {
        let open = |because| Evidence::Open { lower: Bound::AtLeast(-1.0), upper: None, because };
        for (because, found) in [
            (Some(Obstacle::Time), false),
            (Some(Obstacle::Memory), false),
            (None, false),
            (Some(Obstacle::Engine), true),
            (Some(Obstacle::Overflow), true),
        ] {
            let mut certificates = certificates();
            certificates.records[0] = certificate(1, open(because), Bound::AtLeast(-1.0));
            assert_eq!(read(&written(&certificates)).unwrap().find(NodeId(1)).is_some(), found, "{because:?}");
        }
        let mut certificates = certificates();
        certificates.header.proofs = true;
        assert_eq!(read(&written(&certificates)).unwrap().find(NodeId(0)), None, "a proof that was not found");
    }

    #[test]
    fn records_that_cannot_be_are_refused() {
        let robust = r#"{"node":0,"predicted":1,"class":1,"verdict":"robust","margins":[0.5,null],"worst_class":0,"engine":"fast"}"#;
        let other = robust.replace("\"node\":0", "\"node\":1");
        assert!(read(&of_records(&[robust, &other])).is_ok());
        for (from, to, why) in [
            ("\"node\":1", "\"node\":0", "node 0 comes up twice"),
            ("\"node\":1", "\"node\":2", "there is no node 2"),
            ("\"class\":1", "\"class\":2", "there is no class 2"),
            ("0.5", "-0.5", "do not exceed"),
            ("[0.5,null]", "[0.5]", "1 margins for 2 classes"),
            ("\"robust\"", "\"nonrobust\"", "a witness belongs"),
            ("\"engine\"", "\"witness\":[],\"engine\"", "a witness belongs"),
            ("\"fast\"", "\"slow\"", "line 3 is damaged"),
        ] {
            let error = read(&of_records(&[robust, &other.replace(from, to)])).unwrap_err();
            assert!(error.contains(why), "{to}: {error}");
        }
        assert!(read(&of_records(&[robust])).unwrap_err().contains("has 1 of 2 nodes"));
        assert!(read(&of_records(&[robust, &other, robust])).unwrap_err().contains("one more"));
        let bytes = of_records(&[robust, &other]);
        assert!(read(&bytes[..bytes.len() - 1]).unwrap_err().contains("has 1 of 2 nodes"));
        assert!(read(&[&bytes[..], b"x"].concat()).unwrap_err().contains("goes on"));
    }

    #[test]
    fn differences_are_named_but_for_nodes() {
        let earlier = read(&written(&certificates())).unwrap();
        let mut now = header();
        now.nodes = 7;
        now.budget = now.budget.protect_nodes([NodeId(1)]).local_at(NodeId(0), 1);
        assert_eq!(earlier.differences(&now), Vec::<String>::new());
        now.engine = Engine::Tight;
        now.budget = now.budget.with_global(2);
        now.graph.edges = 2;
        let differences = earlier.differences(&now).join("; ");
        assert_eq!(
            differences,
            "budget.global: 1 there, 2 now; engine: \"fast\" there, \"tight\" now; graph.edges: 1 there, 2 now"
        );
    }

    #[test]
    fn parts_add_up_what_was_carried_over() {
        let since = read(&written(&certificates())).unwrap().since(1);
        let part = |number: usize, since: Option<SinceFields>| {
            let mut header = header().shard(super::super::ShardFields::new(number, 2, 2)).since(since);
            header.nodes = 1;
            (header, vec![certificate(number as u32 - 1, Evidence::Robust, Bound::Positive)])
        };
        let (header, _) = merged(vec![part(1, Some(since.clone())), part(2, Some(since.clone()))]).unwrap();
        assert_eq!(header.since.map(|since| since.carried), Some(2));
        let other = SinceFields { hash: "0".repeat(16), ..since.clone() };
        for other in [None, Some(other)] {
            let error = merged(vec![part(1, Some(since.clone())), part(2, other)]).unwrap_err();
            assert_eq!(error, MergeError::Another { file: 1 });
        }
    }
}

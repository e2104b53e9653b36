//! Reading files of results.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use nodeproof::{Budget, Certificate, Engine, Graph, Model, Radius, TargetClass};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{FlipRecord, GraphHeader, ModelHeader, RadiusRecord, Record, ResultBudget, StepRecord, VerdictName};

pub(super) const CERTIFICATES: &str = "nodeproof-certificates";
pub(super) const RADII: &str = "nodeproof-radii";
const TRAINING_LOG: &str = "nodeproof-training-log";
/// The version of all three formats.
pub(super) const VERSION: u64 = 1;

/// A file of certificates.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Certificates {
    /// The strongest engine that was asked for.
    pub engine: Engine,
    /// Whose margins were certified.
    pub target_class: TargetClass,
    /// The graph.
    pub graph: GraphHeader,
    /// The model.
    pub model: ModelHeader,
    /// The budget.
    pub budget: ResultBudget,
    /// One certificate a node.
    pub records: Vec<Record>,
}

/// A file of radii.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Radii {
    /// The engine.
    pub engine: Engine,
    /// Whether budgets were scanned upwards, so that only [`RadiusRecord::robust_up_to`] is known.
    pub scan: bool,
    /// Whose margins were certified.
    pub target_class: TargetClass,
    /// The graph.
    pub graph: GraphHeader,
    /// The model.
    pub model: ModelHeader,
    /// The budget, with the largest global budget that was tried.
    pub budget: ResultBudget,
    /// One radius a node.
    pub records: Vec<RadiusRecord>,
}

/// A training log.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct TrainingLog {
    /// The graph.
    pub graph: GraphHeader,
    /// How it was trained: `ce`, `rce`, `rh` or `rh-u`.
    pub method: String,
    /// The worst-case margin that labelled nodes were trained to have.
    pub labelled_margin: f64,
    /// The same of unlabelled nodes.
    pub unlabelled_margin: f64,
    /// One record a step.
    pub steps: Vec<StepRecord>,
}

/// What a file may hold.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Results {
    /// Certificates.
    Certificates(Certificates),
    /// Radii.
    Radii(Radii),
    /// The log of a training.
    Training(TrainingLog),
}

/// Why a file cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResultsError {
    /// The system does not give it.
    #[error("cannot read {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It is something else.
    #[error(
        "{} is not a file of certificates, radii or training steps; give one that `nodeproof certify --out`, \
         `nodeproof radius --out` or `nodeproof train --log` wrote", path.display()
    )]
    NotResults {
        /// The file.
        path: PathBuf,
    },
    /// It holds results of another kind than the one needed.
    #[error("{} has {found}, not {needed}; {remedy}", path.display())]
    WrongKind {
        /// The file.
        path: PathBuf,
        /// What it has.
        found: &'static str,
        /// What is needed.
        needed: &'static str,
        /// How to make what is needed.
        remedy: &'static str,
    },
    /// It is of another version of the format.
    #[error("{} has version {found} of its format, and this nodeproof reads version {VERSION}; make it anew", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: String,
    },
    /// A line is not what it should be.
    #[error("{}: line {line} is damaged: {problem}; make the file anew", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong.
        problem: String,
    },
    /// Nodes are missing at the end.
    #[error("{} has {found} of {nodes} nodes: the run that wrote it did not end; finish it (`certify --resume`) or make it anew", path.display())]
    Unfinished {
        /// The file.
        path: PathBuf,
        /// Nodes on file.
        found: usize,
        /// Nodes that its header promises.
        nodes: usize,
    },
}

impl Results {
    /// Reads the file at `path`.
    ///
    /// # Errors
    /// If it cannot be read, is not a file of results, damaged, or not finished.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, ResultsError> {
        Reader::open(path.as_ref())?.results()
    }

    /// What the file has.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Certificates(_) => "certificates",
            Self::Radii(_) => "radii",
            Self::Training(_) => "steps of a training",
        }
    }
}

impl Certificates {
    /// What would be on file of `certificates`, made by `engine` for the class `target_class` of nodes of `graph`.
    pub fn of(
        certificates: &[Certificate],
        (graph, model): (&Graph, &Model),
        budget: &Budget,
        engine: Engine,
        target_class: TargetClass,
    ) -> Self {
        Self {
            engine,
            target_class,
            graph: GraphHeader::new(graph),
            model: ModelHeader::new(model),
            budget: ResultBudget::of(budget, graph),
            records: certificates.iter().map(|certificate| Record::new(certificate, graph, false)).collect(),
        }
    }

    /// Reads the file at `path`, which must have certificates.
    ///
    /// # Errors
    /// As [`Results::read`], and if it has something else.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, ResultsError> {
        match Results::read(path.as_ref())? {
            Results::Certificates(certificates) => Ok(certificates),
            other => Err(wrong_kind(path.as_ref(), &other, "certificates", "`nodeproof certify --out` writes them")),
        }
    }
}

impl Radii {
    /// What a search up to the global budget `most` would have found.
    pub fn up_to(mut self, most: u32) -> Self {
        let most = most.min(self.budget.budget.global());
        self.budget.budget = self.budget.budget.with_global(most);
        for record in &mut self.records {
            record.robust_up_to = record.robust_up_to.map(|robust| robust.min(most));
            if let Some(found) = &mut record.found {
                found.exact |= record.robust_up_to == Some(most);
                if found.nonrobust_from.is_some_and(|from| from > most) {
                    found.nonrobust_from = None;
                    (found.witness, found.witness_class, found.witness_margin) = (None, None, None);
                }
            }
        }
        self
    }

    /// The largest global budget under which the node of `record` is proven robust. A scan begins with one flip: its 0 says that
    /// not even that is withstood, and nothing about the case without any.
    pub fn proven(&self, record: &RadiusRecord) -> Option<u32> {
        record.robust_up_to.filter(|&robust| !(self.scan && robust == 0))
    }

    /// What would be on file of `radii`, looked for by `engine` up to the global budget of `budget`, for the class
    /// `target_class` of nodes of `graph`.
    pub fn of(
        radii: &[Radius],
        (graph, model): (&Graph, &Model),
        budget: &Budget,
        engine: Engine,
        target_class: TargetClass,
    ) -> Self {
        let most = budget.global();
        Self {
            engine,
            scan: false,
            target_class,
            graph: GraphHeader::new(graph),
            model: ModelHeader::new(model),
            budget: ResultBudget::of(budget, graph),
            records: radii.iter().map(|radius| RadiusRecord::new(radius, most, graph, false)).collect(),
        }
    }

    /// Reads the file at `path`, which must have radii.
    ///
    /// # Errors
    /// As [`Results::read`], and if it has something else.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, ResultsError> {
        match Results::read(path.as_ref())? {
            Results::Radii(radii) => Ok(radii),
            other => Err(wrong_kind(path.as_ref(), &other, "radii", "`nodeproof radius --out` writes them")),
        }
    }
}

impl TrainingLog {
    /// Reads the file at `path`, which must be a training log.
    ///
    /// # Errors
    /// As [`Results::read`], and if it is something else.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, ResultsError> {
        match Results::read(path.as_ref())? {
            Results::Training(log) => Ok(log),
            other => {
                Err(wrong_kind(path.as_ref(), &other, "steps of a training", "`nodeproof train --log` writes them"))
            }
        }
    }
}

fn wrong_kind(path: &Path, found: &Results, needed: &'static str, remedy: &'static str) -> ResultsError {
    ResultsError::WrongKind { path: path.to_owned(), found: found.kind(), needed, remedy }
}

/// A file that is being read, line by line.
struct Reader {
    path: PathBuf,
    lines: BufReader<File>,
    /// The line that was read last, counted from 1.
    line: usize,
    text: Vec<u8>,
}

impl Reader {
    fn open(path: &Path) -> Result<Self, ResultsError> {
        let file = File::open(path).map_err(|source| ResultsError::Io { path: path.to_owned(), source })?;
        Ok(Self { path: path.to_owned(), lines: BufReader::new(file), line: 0, text: Vec::new() })
    }

    /// Reads the next line; `false` at the end, be it before a line without one.
    fn next(&mut self) -> Result<bool, ResultsError> {
        self.text.clear();
        let read = self.lines.read_until(b'\n', &mut self.text);
        read.map_err(|source| ResultsError::Io { path: self.path.clone(), source })?;
        self.line += 1;
        Ok(self.text.pop_if(|last| *last == b'\n').is_some())
    }

    fn damaged(&self, problem: impl ToString) -> ResultsError {
        ResultsError::Damaged { path: self.path.clone(), line: self.line, problem: problem.to_string() }
    }

    /// The line as a value of type `T`.
    fn parse<T: DeserializeOwned>(&self) -> Result<T, ResultsError> {
        serde_json::from_slice(&self.text).map_err(|error| self.damaged(error))
    }

    fn results(mut self) -> Result<Results, ResultsError> {
        let header = if self.next()? { serde_json::from_slice(&self.text).unwrap_or_default() } else { Value::Null };
        let format = header["format"].as_str().unwrap_or_default().to_owned();
        if ![CERTIFICATES, RADII, TRAINING_LOG].contains(&format.as_str()) {
            return Err(ResultsError::NotResults { path: self.path });
        }
        if header["version"] != VERSION {
            return Err(ResultsError::Version { path: self.path, found: header["version"].to_string() });
        }
        match format.as_str() {
            CERTIFICATES => self.certificates(header),
            RADII => self.radii(header),
            _ => self.training(header),
        }
    }

    fn certificates(mut self, header: Value) -> Result<Results, ResultsError> {
        #[derive(Deserialize)]
        struct Header {
            engine: Engine,
            class: TargetClass,
            graph: GraphHeader,
            model: ModelHeader,
            budget: Value,
            nodes: usize,
        }
        let Header { engine, class, graph, model, budget, nodes } = self.header(header)?;
        let budget = ResultBudget::read(budget, None).map_err(|error| self.damaged(error))?;
        let limits = Limits { graph: &graph, model: &model };
        let records = self.records(nodes, |record: &Record| {
            limits.node(record.node)?;
            for class in [Some(record.predicted), Some(record.class), Some(record.worst_class)] {
                limits.class(class)?;
            }
            limits.class(record.witness_class)?;
            if record.margins.len() != model.classes {
                return Err(format!("{} margins for {} classes", record.margins.len(), model.classes));
            }
            if record.verdict == VerdictName::Robust && !record.margin().is_some_and(|margin| margin > 0.0) {
                return Err("it is called robust, but its margins are not positive".to_owned());
            }
            if (record.verdict == VerdictName::Nonrobust) != record.witness.is_some() {
                return Err("a witness belongs to the verdict nonrobust, and to no other".to_owned());
            }
            limits.flips(record.witness.as_deref())
        })?;
        Ok(Results::Certificates(Certificates { engine, target_class: class, graph, model, budget, records }))
    }

    fn radii(mut self, header: Value) -> Result<Results, ResultsError> {
        #[derive(Deserialize)]
        struct Header {
            engine: Engine,
            #[serde(default)]
            scan: bool,
            class: TargetClass,
            graph: GraphHeader,
            model: ModelHeader,
            budget: Value,
            max_budget: u32,
            nodes: usize,
        }
        let Header { engine, scan, class, graph, model, budget, max_budget, nodes } = self.header(header)?;
        let budget = ResultBudget::read(budget, Some(max_budget)).map_err(|error| self.damaged(error))?;
        let flips = graph.nodes as u128 * graph.attributes as u128;
        if u128::from(max_budget) > flips.max(SMALL_BUDGET) {
            return Err(self.damaged("its largest budget exceeds the number of flips that there are"));
        }
        let limits = Limits { graph: &graph, model: &model };
        let records = self.records(nodes, |record: &RadiusRecord| {
            limits.node(record.node)?;
            if record.nonrobust_from().is_some_and(|from| record.robust_up_to >= Some(from)) {
                return Err("it is robust and nonrobust under the same budget".to_owned());
            }
            match &record.found {
                None if !scan => Err("it does not say what is known from above".to_owned()),
                None => Ok(()),
                Some(found) => {
                    limits.class(found.class)?;
                    limits.class(found.witness_class)?;
                    limits.flips(found.witness.as_deref())
                }
            }
        })?;
        Ok(Results::Radii(Radii { engine, scan, target_class: class, graph, model, budget, records }))
    }

    fn training(mut self, header: Value) -> Result<Results, ResultsError> {
        #[derive(Deserialize)]
        struct Options {
            method: String,
            labelled_margin: f64,
            unlabelled_margin: f64,
        }
        #[derive(Deserialize)]
        struct Header {
            graph: GraphHeader,
            options: Options,
        }
        let Header { graph, options } = self.header(header)?;
        let Options { method, labelled_margin, unlabelled_margin } = options;
        let mut steps = Vec::new();
        while self.next()? {
            steps.push(self.parse()?);
        }
        Ok(Results::Training(TrainingLog { graph, method, labelled_margin, unlabelled_margin, steps }))
    }

    fn header<T: DeserializeOwned>(&self, header: Value) -> Result<T, ResultsError> {
        if header["model"]["classes"].as_u64().is_some_and(|classes| classes > MOST_CLASSES as u64) {
            return Err(self.damaged(format!("no model has {} classes", header["model"]["classes"])));
        }
        serde_json::from_value(header).map_err(|error| self.damaged(error))
    }

    /// All records, of which there must be `nodes`, each of another node.
    fn records<T: DeserializeOwned + OfNode>(
        &mut self,
        nodes: usize,
        check: impl Fn(&T) -> Result<(), String>,
    ) -> Result<Vec<T>, ResultsError> {
        let (mut records, mut seen) = (Vec::new(), HashSet::new());
        while self.next()? {
            let record: T = self.parse()?;
            check(&record).map_err(|problem| self.damaged(problem))?;
            if !seen.insert(record.node()) {
                return Err(self.damaged(format!("node {} comes up twice", record.node())));
            }
            if records.len() == nodes {
                return Err(self.damaged(format!("the file is to have {nodes} nodes, and this is one more")));
            }
            records.push(record);
        }
        if records.len() < nodes {
            return Err(ResultsError::Unfinished { path: self.path.clone(), found: records.len(), nodes });
        }
        Ok(records)
    }
}

/// A record of one node.
trait OfNode {
    fn node(&self) -> u32;
}

impl OfNode for Record {
    fn node(&self) -> u32 {
        self.node
    }
}

impl OfNode for RadiusRecord {
    fn node(&self) -> u32 {
        self.node
    }
}

/// A largest budget that needs no reason: curves up to it are small.
const SMALL_BUDGET: u128 = 1_000_000;

/// Most classes that a file may speak of.
const MOST_CLASSES: usize = 100_000;

/// What numbers on file may be.
struct Limits<'a> {
    graph: &'a GraphHeader,
    model: &'a ModelHeader,
}

impl Limits<'_> {
    fn node(&self, node: u32) -> Result<(), String> {
        below("node", node, self.graph.nodes)
    }

    fn class(&self, class: Option<u32>) -> Result<(), String> {
        class.map_or(Ok(()), |class| below("class", class, self.model.classes))
    }

    fn flips(&self, flips: Option<&[FlipRecord]>) -> Result<(), String> {
        flips.unwrap_or_default().iter().try_for_each(|flip| {
            self.node(flip.node)?;
            below("value", flip.to.into(), 2)?;
            below("attribute", flip.attribute, self.graph.attributes)
        })
    }
}

fn below(what: &str, number: u32, count: usize) -> Result<(), String> {
    if (number as usize) < count { Ok(()) } else { Err(format!("there is no {what} {number}")) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    const CERTIFICATE_LINES: [&str; 2] = [
        r#"{"format":"nodeproof-certificates","version":1,"nodeproof":"0.1.0","engine":"fast","class":"predicted","graph":{"fingerprint":"95","nodes":24,"edges":38,"attributes":30},"model":{"fingerprint":"98","layers":2,"propagation":"symmetric-gcn","classes":3},"budget":{"global":4,"local":"2","direction":"both","local_at":{"3":1},"local_count":2},"nodes":1}"#,
        r#"{"node":9,"label":1,"predicted":1,"class":1,"verdict":"nonrobust","margins":[0.28,null,-0.54],"worst_class":2,"witness":[{"node":9,"attribute":11,"to":0}],"witness_class":2,"witness_margin":-0.33,"engine":"fast"}"#,
    ];
    const RADIUS_LINES: [&str; 2] = [
        r#"{"format":"nodeproof-radii","version":1,"nodeproof":"0.1.0","engine":"complete","class":"predicted","graph":{"fingerprint":"95","nodes":24,"edges":38,"attributes":30},"model":{"fingerprint":"98","layers":2,"propagation":"symmetric-gcn","classes":3},"budget":{"direction":"both","local":"2","local_count":2},"max_budget":100,"nodes":1}"#,
        r#"{"node":9,"label":1,"robust_up_to":2,"nonrobust_from":3,"exact":true,"class":1,"verdicts":5,"branches":0}"#,
    ];

    fn read(text: &str) -> Result<Results, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("results.jsonl");
        std::fs::write(&path, text).unwrap();
        Results::read(path).map_err(|error| error.to_string())
    }

    fn lines(lines: [&str; 2]) -> String {
        lines.map(|line| format!("{line}\n")).concat()
    }

    fn refused(text: &str, why: &str) {
        let error = read(text).unwrap_err();
        assert!(error.contains(why), "{error}");
    }

    #[test]
    fn each_kind_is_recognised() {
        let Results::Certificates(certificates) = read(&lines(CERTIFICATE_LINES)).unwrap() else {
            panic!("no certificates")
        };
        assert_eq!((certificates.budget.budget.global(), certificates.budget.local_count), (4, 2));
        assert_eq!(certificates.records[0].witness_class, Some(2));
        let Results::Radii(radii) = read(&lines(RADIUS_LINES)).unwrap() else { panic!("no radii") };
        assert_eq!((radii.budget.budget.global(), radii.records[0].nonrobust_from()), (100, Some(3)));
        let log = r#"{"format":"nodeproof-training-log","version":1,"graph":{"fingerprint":"95","nodes":24,"edges":38,"attributes":30},"options":{"method":"rh-u","labelled_margin":2.19,"unlabelled_margin":0.4}}
{"step":1,"phase":"all","labelled_margin":null,"unlabelled_margin":-0.5}
"#;
        let Results::Training(log) = read(log).unwrap() else { panic!("no log") };
        assert_eq!((log.method.as_str(), log.steps[0].unlabelled_margin), ("rh-u", Some(-0.5)));
    }

    #[test]
    fn what_is_not_ours_or_not_whole_is_refused() {
        refused("", "is not a file of certificates");
        refused("hello\n", "is not a file of certificates");
        refused("{\"format\":\"other\"}\n", "is not a file of certificates");
        let whole = lines(CERTIFICATE_LINES);
        refused(&whole.replace("\"version\":1", "\"version\":2"), "has version 2");
        refused(&whole.replace("\"nodes\":1}", "\"nodes\":2}"), "has 1 of 2 nodes");
        refused(&whole[..whole.len() - 1], "has 0 of 1 nodes");
        refused(&whole.replace("\"global\":4,", ""), "line 1 is damaged: missing field `global`");
    }

    #[test]
    fn numbers_that_lead_nowhere_are_refused() {
        let whole = lines(CERTIFICATE_LINES);
        for (old, new, why) in [
            ("{\"node\":9,\"label\"", "{\"node\":24,\"label\"", "line 2 is damaged: there is no node 24"),
            ("[{\"node\":9", "[{\"node\":99", "there is no node 99"),
            ("\"attribute\":11", "\"attribute\":30", "there is no attribute 30"),
            ("\"predicted\":1", "\"predicted\":3", "there is no class 3"),
            ("[0.28,null,-0.54]", "[0.28,null]", "2 margins for 3 classes"),
            ("\"to\":0", "\"to\":2", "there is no value 2"),
            ("\"verdict\":\"nonrobust\"", "\"verdict\":\"robust\"", "its margins are not positive"),
            ("\"verdict\":\"nonrobust\"", "\"verdict\":\"undecided\"", "a witness belongs to the verdict nonrobust"),
            ("\"classes\":3", "\"classes\":4000000000", "no model has 4000000000 classes"),
        ] {
            let changed = whole.replace(old, new);
            assert_ne!(changed, whole);
            refused(&changed, why);
        }
        let radii = lines(RADIUS_LINES);
        refused(&radii.replace("\"max_budget\":100", "\"max_budget\":4000000000"), "exceeds the number of flips");
        refused(
            &radii.replace("\"robust_up_to\":2", "\"robust_up_to\":3"),
            "robust and nonrobust under the same budget",
        );
        refused(&(radii.clone() + RADIUS_LINES[1] + "\n"), "node 9 comes up twice");
        let more = RADIUS_LINES[1].replace("\"node\":9", "\"node\":8") + "\n";
        refused(&(radii.clone() + &more), "this is one more");
        refused(&radii.replace("\"class\":1", "\"class\":7"), "there is no class 7");
        refused(&radii.replace("\"verdicts\":5", "\"verdicts\":\"many\""), "does not say what is known from above");
    }

    #[test]
    fn radii_can_be_cut_off() {
        let Results::Radii(radii) = read(&lines(RADIUS_LINES)).unwrap() else { panic!("no radii") };
        let [two, three, same] = [2, 3, 900].map(|most| radii.clone().up_to(most));
        assert_eq!((two.budget.budget.global(), two.records[0].nonrobust_from()), (2, None));
        assert_eq!((two.records[0].robust_up_to, two.records[0].is_exact()), (Some(2), true));
        assert_eq!((three.records[0].robust_up_to, three.records[0].nonrobust_from()), (Some(2), Some(3)));
        assert_eq!(same, radii);
    }

    #[test]
    fn another_kind_is_refused_with_a_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("results.jsonl");
        std::fs::write(&path, lines(RADIUS_LINES)).unwrap();
        let error = Certificates::read(&path).unwrap_err().to_string();
        assert!(error.contains("has radii, not certificates") && error.contains("certify --out"), "{error}");
        assert!(TrainingLog::read(&path).is_err() && Radii::read(&path).is_ok());
    }
}

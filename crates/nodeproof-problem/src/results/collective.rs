//! What sets of flips can do to all predictions together, on file.

use std::io::{self, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::certificates::duration;
use super::lines::{LineReader, LineWriter};
use super::{Header, Results, ResultsError, wrong_kind};
use crate::collective::{Collective, CutMultipliers};
use crate::flip::Flip;
use crate::ids::NodeId;

/// Collective certificates of one model, one for each global budget.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Collectives {
    /// What they are about; the budget has the largest global budget.
    pub header: Header,
    /// The nodes whose predictions count, ascending.
    pub nodes: Vec<NodeId>,
    /// The global budgets.
    pub budgets: Vec<u32>,
    /// One for each of them.
    pub records: Vec<Collective>,
}

impl Collectives {
    /// The `format` in the header of files of these.
    pub(super) const FORMAT: &'static str = "nodeproof-collective";

    /// Collective certificates about `header` and the predictions of these nodes, in any order, for these global budgets; none yet.
    pub fn new(header: Header, mut nodes: Vec<NodeId>, budgets: Vec<u32>) -> Self {
        nodes.sort_unstable();
        nodes.dedup();
        Self { header: Header { nodes: nodes.len(), ..header }, nodes, budgets, records: Vec::new() }
    }

    /// Whether the predictions of all nodes of the graph count.
    pub fn has_all_nodes(&self) -> bool {
        self.nodes.len() == self.header.graph.nodes
    }

    /// Reads the file at `path`, which must have collective certificates.
    ///
    /// # Errors
    /// As [`Results::read`], and if it has something else.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, ResultsError> {
        let path = path.as_ref();
        Self::of(Results::read(path)?, path)
    }

    /// The collective certificates among results that were read from `path`.
    ///
    /// # Errors
    /// If they are something else.
    pub fn of(results: Results, path: &Path) -> Result<Self, ResultsError> {
        match results {
            Results::Collectives(collectives) => Ok(collectives),
            other => {
                let remedy = "`nodeproof collective --out` writes them";
                Err(wrong_kind(path, &other, "collective certificates", remedy))
            }
        }
    }

    /// Writes them, as `nodeproof collective --out` does.
    ///
    /// # Errors
    /// If `out` cannot be written to.
    pub fn write(&self, out: impl Write) -> io::Result<()> {
        let mut lines = LineWriter::begin(out, &self.header_line())?;
        self.records.iter().try_for_each(|record| lines.record(&Self::line(record)))?;
        lines.flush()
    }

    /// The first line of the file.
    pub fn header_line(&self) -> impl Serialize + '_ {
        #[derive(Serialize)]
        struct Line<'a, H: Serialize> {
            #[serde(flatten)]
            header: H,
            #[serde(skip_serializing_if = "Option::is_none")]
            predictions: Option<&'a [NodeId]>,
            budgets: &'a [u32],
        }
        let predictions = (!self.has_all_nodes()).then_some(&self.nodes[..]);
        Line { header: self.header.line(Self::FORMAT), predictions, budgets: &self.budgets }
    }

    /// A record as it is on file.
    pub fn line(record: &Collective) -> impl Serialize + use<> {
        CollectiveLine::new(record)
    }

    pub(super) fn read_lines(reader: &mut LineReader, mut header: Value) -> Result<Self, ResultsError> {
        let (budgets, nodes) = (header["budgets"].take(), header["predictions"].take());
        let budgets: Vec<u32> = serde_json::from_value(budgets).map_err(|error| reader.damaged(error))?;
        let nodes: Option<Vec<NodeId>> = serde_json::from_value(nodes).map_err(|error| reader.damaged(error))?;
        let header = Header::read(header).map_err(|problem| reader.damaged(problem))?;
        let nodes = predictions(nodes, &header).map_err(|problem| reader.damaged(problem))?;
        if !budgets.is_sorted_by(|a, b| a < b) || budgets.last().is_some_and(|&most| most != header.budget.global()) {
            return Err(reader.damaged("its budgets do not rise to the global budget of its header"));
        }
        let mut records: Vec<Collective> = Vec::new();
        while let Some(line) = reader.record::<CollectiveLine>()? {
            let record = line.of(&header, &nodes).map_err(|problem| reader.damaged(problem))?;
            if budgets.get(records.len()) != Some(&record.global) {
                let problem = format!("it is about a budget of {}, which does not come next", record.global);
                return Err(reader.damaged(problem));
            }
            records.push(record);
        }
        if records.len() < budgets.len() {
            let (path, found, nodes) = (reader.path().to_owned(), records.len(), budgets.len());
            return Err(ResultsError::Unfinished { path, found, nodes });
        }
        if !reader.line().is_empty() {
            return Err(reader.damaged("the file has all of its budgets, and goes on"));
        }
        Ok(Self { header, nodes, budgets, records })
    }
}

/// The nodes whose predictions count, all of them if none are listed.
fn predictions(listed: Option<Vec<NodeId>>, header: &Header) -> Result<Vec<NodeId>, String> {
    let nodes = listed.unwrap_or_else(|| (0..header.graph.nodes as u32).map(NodeId).collect());
    nodes.iter().try_for_each(|&node| header.check_node(node))?;
    if !nodes.is_sorted_by(|a, b| a < b) || nodes.len() != header.nodes {
        return Err(format!("its header does not list {} nodes in ascending order", header.nodes));
    }
    Ok(nodes)
}

/// A record as it is on file, in the order of its fields.
#[derive(Debug, Serialize, Deserialize)]
struct CollectiveLine {
    global: u32,
    targets: usize,
    alone: usize,
    by_radii: usize,
    at_most: usize,
    at_least: usize,
    flips: Vec<Flip>,
    changed: Vec<NodeId>,
    multipliers: Vec<MultipliersLine>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    seconds: Option<f64>,
}

#[derive(Debug, Serialize, Deserialize)]
struct MultipliersLine {
    node: NodeId,
    withstands: u32,
    #[serde(default, skip_serializing_if = "is_zero")]
    count: f64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    gains: Vec<(f64, f64)>,
}

fn is_zero(x: &f64) -> bool {
    *x == 0.0
}

impl CollectiveLine {
    fn new(record: &Collective) -> Self {
        let multipliers = |of: &CutMultipliers| MultipliersLine {
            node: of.node,
            withstands: of.withstands,
            count: of.count,
            gains: of.gains.clone(),
        };
        Self {
            global: record.global,
            targets: record.targets,
            alone: record.alone,
            by_radii: record.by_radii,
            at_most: record.at_most,
            at_least: record.at_least(),
            flips: record.flips.clone(),
            changed: record.changed.clone(),
            multipliers: record.multipliers.iter().map(multipliers).collect(),
            seconds: record.time.map(|time| time.as_secs_f64()),
        }
    }

    /// The record, checked against the header and in itself.
    fn of(self, header: &Header, nodes: &[NodeId]) -> Result<Collective, String> {
        let of_record = self.changed.iter().chain(self.multipliers.iter().map(|of| &of.node));
        if let Some(other) = of_record.copied().find(|node| nodes.binary_search(node).is_err()) {
            return Err(format!("node {other} is none of those whose predictions count"));
        }
        self.flips.iter().try_for_each(|flip| header.check_flip(flip))?;
        let numbers = [self.at_least, self.at_most, self.by_radii, self.alone, self.targets];
        if !numbers.is_sorted() || self.targets > header.graph.nodes {
            return Err("its numbers contradict each other".to_owned());
        }
        if self.at_least != self.changed.len() || !self.changed.is_sorted_by(|a, b| a < b) {
            return Err("the predictions that change are not as many as it says, or not in order".to_owned());
        }
        if self.flips.len() > self.global as usize {
            return Err(format!("its attack has {} flips, more than the budget", self.flips.len()));
        }
        let is_multiplier = |x: f64| x >= 0.0 && x.is_finite();
        let mut before = None;
        let multipliers = |of: MultipliersLine| {
            let gains = of.gains.iter().all(|&(beyond, share)| (0.0..1.0).contains(&beyond) && is_multiplier(share));
            if gains && is_multiplier(of.count) && before.replace(of.node) < Some(of.node) {
                Ok(CutMultipliers { node: of.node, withstands: of.withstands, count: of.count, gains: of.gains })
            } else {
                Err(format!("the multipliers of node {} are none", of.node))
            }
        };
        let mut record = Collective::new(self.global, self.targets);
        (record.alone, record.by_radii, record.at_most) = (self.alone, self.by_radii, self.at_most);
        (record.flips, record.changed) = (self.flips, self.changed);
        record.multipliers = self.multipliers.into_iter().map(multipliers).collect::<Result<_, String>>()?;
        record.time = self.seconds.map(duration).transpose()?;
        Ok(record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::AttributeId;
    use crate::results::tests::header;

    fn written() -> Collectives {
        let mut record = Collective::new(1, 2);
        (record.by_radii, record.at_most) = (2, 1);
        record.flips = vec![Flip { node: NodeId(1), attribute: AttributeId(1), to: 0.0 }];
        record.changed = vec![NodeId(0)];
        record.multipliers =
            vec![CutMultipliers { node: NodeId(1), withstands: 0, count: 0.25, gains: vec![(0.6, 0.75)] }];
        Collectives { records: vec![record], ..Collectives::new(header(), vec![NodeId(1), NodeId(0)], vec![1]) }
    }

    fn read(bytes: &[u8]) -> Result<Results, ResultsError> {
        Results::read_from(bytes, "test")
    }

    #[test]
    fn what_was_written_reads_back() {
        let (collectives, mut bytes) = (written(), Vec::new());
        collectives.write(&mut bytes).unwrap();
        assert_eq!(read(&bytes).unwrap(), Results::Collectives(collectives));
        let header = bytes.iter().position(|&byte| byte == b'\n').unwrap() + 1;
        assert!(matches!(read(&bytes[..header]), Err(ResultsError::Unfinished { found: 0, .. })));
    }

    #[test]
    fn what_cannot_be_true_is_refused() {
        let problem = |change: fn(&mut Collective)| {
            let (mut collectives, mut bytes) = (written(), Vec::new());
            change(&mut collectives.records[0]);
            collectives.write(&mut bytes).unwrap();
            read(&bytes).unwrap_err().to_string()
        };
        assert!(problem(|of| of.at_most = 3).contains("contradict"));
        assert!(problem(|of| of.changed = vec![NodeId(1), NodeId(0)]).contains("contradict"));
        assert!(problem(|of| of.global = 2).contains("does not come next"));
        assert!(problem(|of| of.flips.push(of.flips[0])).contains("more than the budget"));
        assert!(problem(|of| of.multipliers[0].count = -1.0).contains("multipliers"));
        assert!(problem(|of| of.multipliers[0].gains[0].0 = 1.0).contains("multipliers"));
        assert!(problem(|of| of.changed = vec![NodeId(1000)]).contains("node 1000 is none"));
        assert!(problem(|of| of.multipliers.push(of.multipliers[0].clone())).contains("node 1 are none"));
    }

    #[test]
    fn budgets_rise_to_the_largest() {
        for budgets in [vec![1, 1], vec![2, 1], vec![1, 2], vec![0]] {
            let (of_budgets, mut bytes) = (Collectives::new(header(), vec![NodeId(1)], budgets), Vec::new());
            of_budgets.write(&mut bytes).unwrap();
            assert!(read(&bytes).unwrap_err().to_string().contains("do not rise"), "{:?}", of_budgets.budgets);
        }
    }

    #[test]
    fn predictions_that_count_are_listed() {
        let (of_one, mut bytes) = (Collectives::new(header(), vec![NodeId(1)], Vec::new()), Vec::new());
        of_one.write(&mut bytes).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        assert_eq!(read(text.as_bytes()).unwrap(), Results::Collectives(of_one));
        for other in ["[]", "[0,1]", "[1,1]", "[2]", "[0.5]"] {
            let changed = text.replace("\"predictions\":[1]", &format!("\"predictions\":{other}"));
            assert!(changed != text && read(changed.as_bytes()).is_err(), "{other}");
        }
    }
}

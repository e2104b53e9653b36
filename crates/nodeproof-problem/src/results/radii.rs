//! Radii on file.

use std::io::{self, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::certificates::{WitnessFields, cell, duration};
use super::lines::LineWriter;
use super::proofs::ProofFields;
use super::{GraphHeader, Header, ModelHeader, Record, Results, ResultsError, wrong_kind};
use crate::certificate::Witness;
use crate::graph::Graph;
use crate::ids::{ClassId, NodeId};
use crate::model::Model;
use crate::radius::{Found, Radius};

/// Radii of one model, looked for up to one budget.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Radii {
    /// What they are about; the budget has the largest global budget that was tried.
    pub header: Header,
    /// One a node.
    pub records: Vec<Radius>,
}

impl Radii {
    /// Radii about `header`, none yet.
    pub fn new(header: Header) -> Self {
        Self { header, records: Vec::new() }
    }

    /// The largest global budget that was tried.
    pub fn max_budget(&self) -> u32 {
        self.header.budget.varied()
    }

    /// What a search up to the global budget `most` would have found.
    pub fn up_to(mut self, most: u32) -> Self {
        let most = most.min(self.max_budget());
        self.header.budget = self.header.budget.with_varied(most);
        for record in &mut self.records {
            let is_cut = record.robust_up_to > Some(most);
            record.robust_up_to = record.robust_up_to.map(|robust| robust.min(most));
            if let Some(found) = &mut record.found {
                // A tree of flips is one for the budget that it was made for.
                found.proofs.take_if(|_| is_cut);
                found.exact |= record.robust_up_to == Some(most);
                if found.nonrobust_from.is_some_and(|from| from > most) {
                    (found.nonrobust_from, found.witness) = (None, None);
                }
            }
        }
        self
    }

    /// The largest global budget under which the node of `record` is proven robust. A scan begins with one flip: its 0 says
    /// that not even that is withstood, and nothing about the case without any.
    pub fn proven(&self, record: &Radius) -> Option<u32> {
        record.robust_up_to.filter(|&robust| !(self.header.scan && robust == 0))
    }

    /// Checks that they are about this graph and this model, and say which nodes hold without flips.
    ///
    /// # Errors
    /// If not.
    pub fn check_about(&self, graph: &Graph, model: &Model) -> Result<(), OtherRadii> {
        match &self.header {
            header if !header.graph.is_same_graph(&GraphHeader::new(graph)) => Err(OtherRadii::Graph),
            header if header.model != ModelHeader::new(model) => Err(OtherRadii::Model),
            header if header.scan => Err(OtherRadii::Scan),
            _ => Ok(()),
        }
    }

    /// Reads the file at `path`, which must have radii.
    ///
    /// # Errors
    /// As [`Results::read`], and if it has something else.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, ResultsError> {
        Self::of(Results::read(path.as_ref())?, path.as_ref())
    }

    /// The radii of `results`, read from `path`.
    ///
    /// # Errors
    /// If they are something else.
    pub fn of(results: Results, path: &Path) -> Result<Self, ResultsError> {
        match results {
            Results::Radii(radii) => Ok(radii),
            other => Err(wrong_kind(path, &other, "radii", "`nodeproof radius --out` writes them")),
        }
    }

    /// Writes the radii, as `nodeproof radius --out` does.
    ///
    /// # Errors
    /// If `out` cannot be written to.
    pub fn write(&self, out: impl Write) -> io::Result<()> {
        let mut lines = LineWriter::begin(out, &Radius::header_line(&self.header))?;
        self.records.iter().try_for_each(|record| lines.record(&record.line(&self.header)))?;
        lines.flush()
    }
}

/// Why radii do not tell what is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OtherRadii {
    /// They are about another graph.
    #[error("the radii are about another graph, or about this one read with other options; find those of this one")]
    Graph,
    /// They are about another model.
    #[error("the radii are about another model; find those of this one")]
    Model,
    /// They are those of a scan.
    #[error("the radii are those of a scan, which does not say which nodes hold without flips; find them without it")]
    Scan,
}

/// A radius as it is on file, in the order of its fields.
#[derive(Debug, Serialize, Deserialize)]
pub struct RadiusLine {
    node: NodeId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    label: Option<ClassId>,
    robust_up_to: Option<u32>,
    #[serde(flatten)]
    found: Option<FoundLine>,
}

#[derive(Debug, Serialize, Deserialize)]
struct FoundLine {
    nonrobust_from: Option<u32>,
    exact: bool,
    class: Option<ClassId>,
    #[serde(flatten)]
    proofs: ProofFields,
    #[serde(flatten)]
    witness: WitnessFields,
    verdicts: u32,
    branches: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    seconds: Option<f64>,
}

impl FoundLine {
    fn of(self, is_robust: bool, header: &Header) -> Result<Found, String> {
        let Self { nonrobust_from, exact, class, proofs, witness, verdicts, branches, seconds } = self;
        let proofs = proofs.proofs(is_robust, class, header)?;
        let (witness, time) = (witness.witness()?, seconds.map(duration).transpose()?);
        Ok(Found { class, nonrobust_from, exact, witness, proofs, verdicts, branches, time })
    }
}

impl Record for Radius {
    const FORMAT: &'static str = "nodeproof-radii";
    const COLUMNS: &'static [&'static str] =
        &["label", "class", "robust_up_to", "nonrobust_from", "exact", "witness_margin", "verdicts", "branches"];
    type Line = RadiusLine;

    fn node(&self) -> NodeId {
        self.node
    }

    fn line(&self, header: &Header) -> RadiusLine {
        let found = |found: &Found| FoundLine {
            nonrobust_from: found.nonrobust_from,
            exact: found.exact,
            class: found.class,
            proofs: ProofFields::new(found.proofs.as_ref(), self.robust_up_to.is_some(), header),
            witness: WitnessFields::new(found.witness.as_ref()),
            verdicts: found.verdicts,
            branches: found.branches,
            seconds: found.time.filter(|_| header.timings).map(|time| time.as_secs_f64()),
        };
        let (node, label, robust_up_to) = (self.node, self.label, self.robust_up_to);
        RadiusLine { node, label, robust_up_to, found: self.found.as_ref().map(found) }
    }

    fn of_line(line: RadiusLine, header: &Header) -> Result<Self, String> {
        let RadiusLine { node, label, robust_up_to, found } = line;
        header.check_node(node)?;
        label.into_iter().try_for_each(|label| header.check_class(label))?;
        let most = header.budget.varied();
        if robust_up_to > Some(most) {
            return Err(format!("it is robust under a larger budget than the largest that was tried, {most}"));
        }
        let found = found.map(|found| found.of(robust_up_to.is_some(), header)).transpose()?;
        match &found {
            None if !header.scan => return Err("it does not say what is known from above".to_owned()),
            None if robust_up_to.is_none() => return Err("a scan says nothing of the case without flips".to_owned()),
            None => {}
            Some(found) => check_found(robust_up_to, found, header)?,
        }
        Ok(Self { node, label, robust_up_to, found })
    }

    fn cells(&self) -> Vec<String> {
        let found = self.found.as_ref();
        vec![
            cell(self.label),
            cell(self.class()),
            cell(self.robust_up_to),
            cell(self.nonrobust_from()),
            cell(found.map(|found| found.exact)),
            cell(self.witness().map(|witness| witness.margin)),
            cell(found.map(|found| found.verdicts)),
            cell(found.map(|found| found.branches)),
        ]
    }
}

/// Checks what is known of a radius from above against what is known from below, and in itself.
fn check_found(robust_up_to: Option<u32>, found: &Found, header: &Header) -> Result<(), String> {
    let most = header.budget.varied();
    found.class.into_iter().try_for_each(|class| header.check_class(class))?;
    found.witness.iter().try_for_each(|witness| header.check_witness(witness, found.class))?;
    let size = found.witness.as_ref().map(Witness::size);
    if size.is_some_and(|size| found.nonrobust_from.map(|from| from as usize) != Some(size)) {
        return Err("it is nonrobust from another budget on than its witness needs".to_owned());
    }
    if found.nonrobust_from > Some(most) {
        return Err(format!("it is nonrobust from a larger budget on than the largest that was tried, {most}"));
    }
    if found.nonrobust_from.is_some_and(|from| robust_up_to >= Some(from)) {
        return Err("it is robust and nonrobust under the same budget".to_owned());
    }
    if found.exact != Radius::all_decided(robust_up_to, found.nonrobust_from, most) {
        return Err("whether it is exact does not follow from its budgets".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::tests::header;

    #[test]
    fn a_scan_says_less() {
        let radius = Radius { node: NodeId(1), label: None, robust_up_to: Some(1), found: None };
        let header = header().scan(true);
        let line = serde_json::to_string(&radius.line(&header)).unwrap();
        assert_eq!(line, r#"{"node":1,"robust_up_to":1}"#);
        assert_eq!(Radius::of_line(serde_json::from_str(&line).unwrap(), &header).unwrap(), radius);
        assert_eq!(radius.cells(), ["", "", "1", "", "", "", "", ""]);
        assert_eq!(radius.cells().len(), Radius::COLUMNS.len());
    }

    #[test]
    fn radii_read_back() {
        let text = r#"{"node":1,"label":1,"robust_up_to":0,"nonrobust_from":1,"exact":true,"class":1,"witness":[{"node":1,"attribute":1,"to":0}],"witness_class":0,"witness_margin":-0.08489189628581635,"verdicts":5,"branches":0}"#;
        let radius = Radius::of_line(serde_json::from_str(text).unwrap(), &header()).unwrap();
        assert!(radius.is_exact());
        assert_eq!((radius.nonrobust_from(), radius.class()), (Some(1), Some(ClassId(1))));
        assert_eq!(serde_json::to_string(&radius.line(&header())).unwrap(), text);
    }

    #[test]
    fn radii_that_cannot_be_true_are_refused() {
        let most = header().budget.global();
        let problem = |line: &str| Radius::of_line(serde_json::from_str(line).unwrap(), &header()).unwrap_err();
        let radius = |robust: &str, nonrobust: &str, exact: bool, class: u32, witness: &str| {
            problem(&format!(
                r#"{{"node":1,"robust_up_to":{robust},"nonrobust_from":{nonrobust},"exact":{exact},"class":{class},"witness":{witness},"witness_class":0,"witness_margin":-0.1,"verdicts":5,"branches":0}}"#
            ))
        };
        let [none, one] = ["[]", r#"[{"node":1,"attribute":1,"to":0}]"#];
        assert!(radius("null", "0", true, 0, none).contains("the class that is certified"));
        assert!(radius("1", "2", true, 1, one).contains("than its witness needs"));
        assert!(radius("1", "1", true, 1, one).contains("robust and nonrobust"));
        assert!(radius("0", "1", false, 1, one).contains("whether it is exact"));
        assert!(radius("null", "1", true, 1, one).contains("whether it is exact"));
        assert!(radius(&(most + 1).to_string(), "null", true, 1, none).contains("that was tried"));
        let open = format!(
            r#"{{"node":1,"robust_up_to":{},"nonrobust_from":null,"exact":true,"class":1,"verdicts":5,"branches":0}}"#,
            most - 1
        );
        assert!(problem(&open).contains("whether it is exact"));
        let scan = |line: &str| Radius::of_line(serde_json::from_str(line).unwrap(), &header().scan(true));
        assert!(scan(r#"{"node":1,"robust_up_to":null}"#).unwrap_err().contains("scan"));
        assert!(scan(r#"{"node":1,"robust_up_to":4000000000}"#).unwrap_err().contains("that was tried"));
    }
}

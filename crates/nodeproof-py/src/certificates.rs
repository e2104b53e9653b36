//! Certificates, as columns and on file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use nodeproof::results::{Certificates, Header, Record};
use nodeproof::{Certificate, ClassId, Evidence, Witness};
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict};

use crate::check;
use crate::errors::{Failure, Raised};
use crate::graph::PyGraph;
use crate::lines;
use crate::model::PyModel;
use crate::settings::PySettings;
use crate::shards;

/// Certificates of one model under one budget.
#[pyclass(name = "Certificates", module = "nodeproof._core", frozen)]
pub(crate) struct PyCertificates(pub(crate) Certificates);

/// Node, attribute and new value of each flip.
pub(crate) type Flips = Vec<(u32, u32, f64)>;

/// The ends of the edges that a witness deletes.
pub(crate) fn deleted(witness: &Witness) -> Vec<(u32, u32)> {
    witness.edges.iter().map(|edge| edge.ends().map(|node| node.0).into()).collect()
}

/// The flips of a witness.
pub(crate) fn flips(witness: &Witness) -> Flips {
    witness.flips.iter().map(|flip| (flip.node.0, flip.attribute.0, flip.to)).collect()
}

/// A class, or -1.
pub(crate) fn class(class: Option<ClassId>) -> i64 {
    class.map_or(-1, |class| class.0.into())
}

#[pymethods]
impl PyCertificates {
    /// Certificates of so many nodes, put together from the files of all shards.
    #[staticmethod]
    fn of_shards(
        py: Python<'_>,
        graph: &PyGraph,
        model: &PyModel,
        settings: &PySettings,
        nodes: usize,
        timings: bool,
        files: Vec<PyBackedBytes>,
    ) -> PyResult<Self> {
        let header = Header::new(&graph.0, &model.0, &settings.0, nodes).timings(timings);
        let mut results = Certificates::new(header);
        let read = |shard: &PyBackedBytes| lines::read(shard, Certificates::of).map(|of| (of.header, of.records));
        results.records = py.detach(|| shards::merged(&results.header, &files, read)).raised(py)?;
        Ok(Self(results))
    }

    fn __len__(&self) -> usize {
        self.0.records.len()
    }

    /// All columns but the margins and the witnesses.
    fn columns<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let columns = PyDict::new(py);
        let integers = |value: &dyn Fn(&Certificate) -> i64| -> Bound<'py, PyArray1<i64>> {
            self.0.records.iter().map(value).collect::<Vec<_>>().into_pyarray(py)
        };
        let floats = |value: &dyn Fn(&Certificate) -> Option<f64>| -> Bound<'py, PyArray1<f64>> {
            self.0.records.iter().map(|record| value(record).unwrap_or(f64::NAN)).collect::<Vec<_>>().into_pyarray(py)
        };
        columns.set_item("node", integers(&|record| record.node.0.into()))?;
        columns.set_item("label", integers(&|record| class(record.label)))?;
        columns.set_item("predicted", integers(&|record| record.predicted.0.into()))?;
        columns.set_item("class", integers(&|record| record.class.0.into()))?;
        columns.set_item("verdict", integers(&|record| record.verdict() as i64))?;
        columns.set_item("margin", floats(&|record| Some(record.margin().value())))?;
        columns.set_item("worst_class", integers(&|record| record.worst_class.0.into()))?;
        columns.set_item("lower", floats(&lower))?;
        columns.set_item("upper", floats(&upper))?;
        let because = |record: &Certificate| record.undecided_because().map_or(-1, |obstacle| obstacle as i64);
        columns.set_item("undecided_because", integers(&because))?;
        columns.set_item("flips", integers(&|record| record.witness().map_or(-1, |found| found.size() as i64)))?;
        columns.set_item("witness_class", integers(&|record| class(record.witness().map(|found| found.class))))?;
        columns.set_item("witness_margin", floats(&|record| record.witness().map(|found| found.margin)))?;
        columns.set_item("engine", integers(&|record| record.engine as i64))?;
        columns.set_item("branches", integers(&|record| record.branches as i64))?;
        let timings = self.0.header.timings;
        let seconds = |record: &Certificate| record.time.filter(|_| timings).map(|time| time.as_secs_f64());
        columns.set_item("seconds", floats(&seconds))?;
        Ok(columns)
    }

    /// How many robust nodes have no proof, if proofs were asked for.
    fn without_proof(&self) -> Option<usize> {
        let unproven = |record: &&Certificate| record.is_robust() && record.proofs.is_none();
        self.0.header.proofs.then(|| self.0.records.iter().filter(unproven).count())
    }

    /// Lower bounds on the margins, nodes × classes; NaN for the certified class.
    fn margins<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let margins = self.0.records.iter().flat_map(|record| &record.margins);
        let values: Vec<f64> = margins.map(|margin| margin.map_or(f64::NAN, |bound| bound.value())).collect();
        values.into_pyarray(py).reshape([self.0.records.len(), self.0.header.model.classes])
    }

    /// The flips of the witness at `place`, if there is one.
    fn witness(&self, place: usize) -> Option<Flips> {
        self.0.records.get(place).and_then(Certificate::witness).map(flips)
    }

    /// The edges that the witness at `place` deletes, if there is one.
    fn witness_edges(&self, place: usize) -> Option<Vec<(u32, u32)>> {
        self.0.records.get(place).and_then(Certificate::witness).map(deleted)
    }

    /// Those at these places.
    fn take(&self, py: Python<'_>, places: Vec<usize>) -> PyResult<Self> {
        let records = taken(&self.0.records, &places).raised(py)?;
        let mut results = Certificates::new(self.0.header.clone().shard(None).since(None));
        results.header.nodes = records.len();
        results.records = records;
        Ok(Self(results))
    }

    /// Those of several runs that asked the same of different nodes.
    #[staticmethod]
    fn joined(py: Python<'_>, parts: Vec<PyRef<'_, Self>>) -> PyResult<Self> {
        let parts: Vec<_> = parts.iter().map(|part| (&part.0.header, part.0.records.as_slice())).collect();
        let (header, records) = joined(&parts).raised(py)?;
        let mut results = Certificates::new(header);
        results.records = records;
        Ok(Self(results))
    }

    /// The nodes whose records the checker rejects, and why, and those that it did not check.
    fn check(
        &self,
        py: Python<'_>,
        graph: &PyGraph,
        model: &PyModel,
        threads: usize,
        progress: Option<Bound<'_, PyAny>>,
    ) -> PyResult<(BTreeMap<u32, String>, Vec<u32>)> {
        let results = (self.0.header.clone(), self.0.records.clone());
        check::judged(
            py,
            (graph, model),
            results,
            |checker, record| checker.certificate(record),
            threads,
            progress.as_ref(),
        )
    }

    #[getter]
    fn engine(&self) -> &'static str {
        self.0.header.engine.name()
    }

    #[getter]
    fn graph_fingerprint(&self) -> &str {
        &self.0.header.graph.fingerprint
    }

    /// How many values of attributes were neither 0 nor 1.
    #[getter]
    fn binarised(&self) -> usize {
        self.0.header.graph.binarised
    }

    /// How many of them were carried over from an earlier run.
    #[getter]
    fn carried(&self) -> usize {
        self.0.header.since.as_ref().map_or(0, |since| since.carried)
    }

    #[getter]
    fn model_fingerprint(&self) -> &str {
        &self.0.header.model.fingerprint
    }

    /// Number of classes of the model.
    #[getter]
    fn classes(&self) -> usize {
        self.0.header.model.classes
    }

    #[getter]
    fn global_budget(&self) -> u32 {
        self.0.header.budget.varied()
    }

    /// The budget as a person would say it.
    fn budget_in_words(&self) -> String {
        self.0.header.budget_in_words()
    }

    /// The file, as the command line writes it.
    fn lines<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        lines::written(py, |bytes| self.0.write(bytes))
    }

    /// The certificates whose file `lines` is.
    #[staticmethod]
    fn of_lines(py: Python<'_>, lines: &[u8]) -> PyResult<Self> {
        py.detach(|| lines::read(lines, Certificates::of)).map(Self).raised(py)
    }

    /// Reads a file.
    #[staticmethod]
    fn read(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        py.detach(|| Certificates::read(path)).map(Self).raised(py)
    }
}

/// The records at these places.
///
/// # Errors
/// If there is none at one.
pub(crate) fn taken<R: Clone>(records: &[R], places: &[usize]) -> Result<Vec<R>, Failure> {
    let record = |&place: &usize| records.get(place).cloned();
    let taken: Option<Vec<R>> = places.iter().map(record).collect();
    taken.ok_or_else(|| Failure::input(format!("there are no more than {} rows", records.len())))
}

/// What several results are about, and the records of all.
///
/// # Errors
/// If they are not about the same, or a node comes up twice.
pub(crate) fn joined<R: Record + Clone>(parts: &[(&Header, &[R])]) -> Result<(Header, Vec<R>), Failure> {
    let about = |header: &Header| {
        let mut header = header.clone().shard(None).since(None);
        header.nodes = 0;
        header
    };
    let (first, _) =
        parts.first().ok_or_else(|| Failure::input("there is nothing to put together; give some results"))?;
    let mut header = about(first);
    if let Some(place) = parts.iter().position(|(other, _)| about(other) != header) {
        let problem = "are of another graph, model or budget than the first, or were found with other settings";
        return Err(Failure::input(format!("results {} {problem}; put together those of one question", place + 1)));
    }
    let mut seen = BTreeSet::new();
    if let Some(record) = parts.iter().flat_map(|(_, records)| *records).find(|record| !seen.insert(record.node())) {
        let node = record.node();
        return Err(Failure::input(format!("node {node} is in two of the results; leave it out of one, with filter")));
    }
    let records: Vec<R> = parts.iter().flat_map(|(_, records)| records.iter().cloned()).collect();
    header.nodes = records.len();
    Ok((header, records))
}

/// What the smallest margin of an undecided node is not below.
fn lower(record: &Certificate) -> Option<f64> {
    match record.evidence {
        Evidence::Open { lower, .. } => Some(lower.value()),
        _ => None,
    }
}

/// What the smallest margin of an undecided node is not above, if that is known.
fn upper(record: &Certificate) -> Option<f64> {
    match record.evidence {
        Evidence::Open { upper, .. } => upper,
        _ => None,
    }
}

//! Radii, as columns and on file.

use std::collections::BTreeMap;
use std::path::PathBuf;

use nodeproof::results::{Header, Radii};
use nodeproof::{Found, Radius};
use nodeproof_report::tally::RadiusFigures;
use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict};

use crate::certificates::{Flips, class, deleted, flips, joined, taken};
use crate::check;
use crate::errors::{Failure, Raised};
use crate::graph::PyGraph;
use crate::lines;
use crate::model::PyModel;
use crate::settings::PySettings;
use crate::shards;

/// Radii of one model.
#[pyclass(name = "Radii", module = "nodeproof._core", frozen)]
pub(crate) struct PyRadii(pub(crate) Radii);

#[pymethods]
impl PyRadii {
    /// Radii of so many nodes, put together from the files of all shards.
    #[staticmethod]
    #[expect(clippy::too_many_arguments, reason = "one for each part of a header")]
    fn of_shards(
        py: Python<'_>,
        graph: &PyGraph,
        model: &PyModel,
        settings: &PySettings,
        nodes: usize,
        scan: bool,
        timings: bool,
        files: Vec<PyBackedBytes>,
    ) -> PyResult<Self> {
        let header = Header::new(&graph.0, &model.0, &settings.0, nodes).scan(scan).timings(timings);
        let mut results = Radii::new(header);
        let read = |shard: &PyBackedBytes| lines::read(shard, Radii::of).map(|of| (of.header, of.records));
        results.records = py.detach(|| shards::merged(&results.header, &files, read)).raised(py)?;
        Ok(Self(results))
    }

    fn __len__(&self) -> usize {
        self.0.records.len()
    }

    /// All columns but the witnesses.
    fn columns<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let columns = PyDict::new(py);
        let known = |value: &dyn Fn(&Radius) -> Option<i64>| -> Bound<'py, PyArray1<i64>> {
            self.0.records.iter().map(|record| value(record).unwrap_or(-1)).collect::<Vec<_>>().into_pyarray(py)
        };
        let found = |value: &dyn Fn(&Found) -> i64| known(&|record| record.found.as_ref().map(value));
        let floats = |value: &dyn Fn(&Radius) -> Option<f64>| -> Bound<'py, PyArray1<f64>> {
            self.0.records.iter().map(|record| value(record).unwrap_or(f64::NAN)).collect::<Vec<_>>().into_pyarray(py)
        };
        columns.set_item("node", known(&|record| Some(record.node.0.into())))?;
        columns.set_item("label", known(&|record| Some(class(record.label))))?;
        columns.set_item("class", known(&|record| Some(class(record.class()))))?;
        columns.set_item("robust_up_to", known(&|record| record.robust_up_to.map(i64::from)))?;
        columns.set_item("nonrobust_from", known(&|record| record.nonrobust_from().map(i64::from)))?;
        let exact: Vec<bool> = self.0.records.iter().map(Radius::is_exact).collect();
        columns.set_item("exact", exact.into_pyarray(py))?;
        columns.set_item("witness_class", known(&|record| Some(class(record.witness().map(|found| found.class)))))?;
        columns.set_item("witness_margin", floats(&|record| record.witness().map(|found| found.margin)))?;
        columns.set_item("verdicts", found(&|found| found.verdicts.into()))?;
        columns.set_item("branches", found(&|found| found.branches as i64))?;
        let timings = self.0.header.timings;
        let seconds = |record: &Radius| {
            record.found.as_ref().and_then(|found| found.time).filter(|_| timings).map(|time| time.as_secs_f64())
        };
        columns.set_item("seconds", floats(&seconds))?;
        Ok(columns)
    }

    /// The flips of the witness at `place`, if there is one.
    fn witness(&self, place: usize) -> Option<Flips> {
        self.0.records.get(place).and_then(Radius::witness).map(flips)
    }

    /// The edges that the witness at `place` deletes, if there is one.
    fn witness_edges(&self, place: usize) -> Option<Vec<(u32, u32)>> {
        self.0.records.get(place).and_then(Radius::witness).map(deleted)
    }

    /// Those at these places.
    fn take(&self, py: Python<'_>, places: Vec<usize>) -> PyResult<Self> {
        let records = taken(&self.0.records, &places).raised(py)?;
        let mut results = Radii::new(self.0.header.clone().shard(None).since(None));
        results.header.nodes = records.len();
        results.records = records;
        Ok(Self(results))
    }

    /// What they come to, as JSON, as in the summary of the command line; `null` without nodes.
    fn summary(&self, py: Python<'_>) -> PyResult<String> {
        let figures = RadiusFigures::new(self.0.records.iter(), self.0.header.scan);
        serde_json::to_string(&figures).map_err(Failure::from).raised(py)
    }

    /// Those of several runs that asked the same of different nodes.
    #[staticmethod]
    fn joined(py: Python<'_>, parts: Vec<PyRef<'_, Self>>) -> PyResult<Self> {
        let parts: Vec<_> = parts.iter().map(|part| (&part.0.header, part.0.records.as_slice())).collect();
        let (header, records) = joined(&parts).raised(py)?;
        let mut results = Radii::new(header);
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
        check::judged(py, (graph, model), results, |checker, radius| checker.radius(radius), threads, progress.as_ref())
    }

    #[getter]
    fn engine(&self) -> &'static str {
        self.0.header.engine.name()
    }

    #[getter]
    fn scan(&self) -> bool {
        self.0.header.scan
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

    #[getter]
    fn model_fingerprint(&self) -> &str {
        &self.0.header.model.fingerprint
    }

    /// Number of classes of the model.
    #[getter]
    fn classes(&self) -> usize {
        self.0.header.model.classes
    }

    /// Whether budgets count deletions of edges in place of flips.
    #[getter]
    fn counts_edges(&self) -> bool {
        self.0.header.budget.edges().is_some()
    }

    #[getter]
    fn max_budget(&self) -> u32 {
        self.0.max_budget()
    }

    /// The budget as a person would say it, the global one being the largest that was tried.
    fn budget_in_words(&self) -> String {
        self.0.header.budget_in_words()
    }

    /// The file, as the command line writes it.
    fn lines<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        lines::written(py, |bytes| self.0.write(bytes))
    }

    /// The radii whose file `lines` is.
    #[staticmethod]
    fn of_lines(py: Python<'_>, lines: &[u8]) -> PyResult<Self> {
        py.detach(|| lines::read(lines, Radii::of)).map(Self).raised(py)
    }

    /// Reads a file.
    #[staticmethod]
    fn read(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        py.detach(|| Radii::read(path)).map(Self).raised(py)
    }
}

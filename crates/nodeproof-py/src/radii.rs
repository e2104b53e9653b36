//! Radii, as columns and on file.

use std::path::PathBuf;

use nodeproof_report::results::{Found, Radii, RadiusRecord};
use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::certificates::{Flips, flips};
use crate::errors::Raised;
use crate::lines;

/// Radii of one model.
#[pyclass(name = "Radii", module = "nodeproof._core", frozen)]
pub(crate) struct PyRadii(pub(crate) Radii);

#[pymethods]
impl PyRadii {
    fn __len__(&self) -> usize {
        self.0.records.len()
    }

    /// All columns but the witnesses.
    fn columns<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let columns = PyDict::new(py);
        let known = |value: &dyn Fn(&RadiusRecord) -> Option<i64>| -> Bound<'py, PyArray1<i64>> {
            self.0.records.iter().map(|record| value(record).unwrap_or(-1)).collect::<Vec<_>>().into_pyarray(py)
        };
        let found = |value: &dyn Fn(&Found) -> Option<i64>| known(&|record| record.found.as_ref().and_then(value));
        let floats = |value: &dyn Fn(&Found) -> Option<f64>| -> Bound<'py, PyArray1<f64>> {
            let cell = |record: &RadiusRecord| record.found.as_ref().and_then(value).unwrap_or(f64::NAN);
            self.0.records.iter().map(cell).collect::<Vec<_>>().into_pyarray(py)
        };
        columns.set_item("node", known(&|record| Some(record.node.into())))?;
        columns.set_item("label", known(&|record| record.label.map(i64::from)))?;
        columns.set_item("class", found(&|found| found.class.map(i64::from)))?;
        columns.set_item("robust_up_to", known(&|record| record.robust_up_to.map(i64::from)))?;
        columns.set_item("nonrobust_from", found(&|found| found.nonrobust_from.map(i64::from)))?;
        let exact: Vec<bool> = self.0.records.iter().map(RadiusRecord::is_exact).collect();
        columns.set_item("exact", exact.into_pyarray(py))?;
        columns.set_item("witness_class", found(&|found| found.witness_class.map(i64::from)))?;
        columns.set_item("witness_margin", floats(&|found| found.witness_margin))?;
        columns.set_item("verdicts", found(&|found| Some(found.verdicts.into())))?;
        columns.set_item("branches", found(&|found| Some(found.branches as i64)))?;
        columns.set_item("seconds", floats(&|found| found.seconds))?;
        Ok(columns)
    }

    /// The flips of the witness at `place`, if there is one.
    fn witness(&self, place: usize) -> Option<Flips> {
        let found = self.0.records.get(place).and_then(|record| record.found.as_ref());
        found.and_then(|found| flips(found.witness.as_deref()))
    }

    #[getter]
    fn engine(&self) -> &'static str {
        self.0.engine.name()
    }

    #[getter]
    fn scan(&self) -> bool {
        self.0.scan
    }

    #[getter]
    fn graph_fingerprint(&self) -> &str {
        &self.0.graph.fingerprint
    }

    #[getter]
    fn model_fingerprint(&self) -> &str {
        &self.0.model.fingerprint
    }

    #[getter]
    fn max_budget(&self) -> u32 {
        self.0.budget.budget.global()
    }

    /// The budget as a person would say it, the global one being the largest that was tried.
    fn budget_in_words(&self) -> String {
        self.0.budget.in_words(self.0.graph.attributes)
    }

    /// The file, as the command line writes it.
    fn lines<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        lines::written(py, |bytes| self.0.write(bytes))
    }

    /// Reads a file.
    #[staticmethod]
    fn read(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        py.detach(|| Radii::read(path)).map(Self).raised(py)
    }

    /// The records alone, a line each.
    fn records<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        lines::of(py, &self.0.records)
    }

    /// The same results with other records: those of `chunks`, one after the other.
    fn with_records(&self, py: Python<'_>, chunks: Vec<Vec<u8>>) -> PyResult<Self> {
        let mut results = self.0.clone();
        results.records = lines::parsed(py, &chunks)?;
        Ok(Self(results))
    }
}

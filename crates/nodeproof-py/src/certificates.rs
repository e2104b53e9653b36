//! Certificates, as columns and on file.

use std::path::PathBuf;

use nodeproof_report::results::{Certificates, FlipRecord, Record};
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::errors::Raised;
use crate::lines;

/// Certificates of one model under one budget.
#[pyclass(name = "Certificates", module = "nodeproof._core", frozen)]
pub(crate) struct PyCertificates(pub(crate) Certificates);

/// Node, attribute and new value of each flip.
pub(crate) type Flips = Vec<(u32, u32, u8)>;

/// The flips of a witness.
pub(crate) fn flips(witness: Option<&[FlipRecord]>) -> Option<Flips> {
    witness.map(|flips| flips.iter().map(|flip| (flip.node, flip.attribute, flip.to)).collect())
}

/// A class, or -1.
fn class(class: Option<u32>) -> i64 {
    class.map_or(-1, i64::from)
}

#[pymethods]
impl PyCertificates {
    fn __len__(&self) -> usize {
        self.0.records.len()
    }

    /// All columns but the margins and the witnesses.
    fn columns<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let columns = PyDict::new(py);
        let integers = |value: &dyn Fn(&Record) -> i64| -> Bound<'py, PyArray1<i64>> {
            self.0.records.iter().map(value).collect::<Vec<_>>().into_pyarray(py)
        };
        let floats = |value: &dyn Fn(&Record) -> Option<f64>| -> Bound<'py, PyArray1<f64>> {
            self.0.records.iter().map(|record| value(record).unwrap_or(f64::NAN)).collect::<Vec<_>>().into_pyarray(py)
        };
        columns.set_item("node", integers(&|record| record.node.into()))?;
        columns.set_item("label", integers(&|record| class(record.label)))?;
        columns.set_item("predicted", integers(&|record| record.predicted.into()))?;
        columns.set_item("class", integers(&|record| record.class.into()))?;
        columns.set_item("verdict", integers(&|record| record.verdict as i64))?;
        columns.set_item("margin", floats(&Record::margin))?;
        columns.set_item("worst_class", integers(&|record| record.worst_class.into()))?;
        columns.set_item("lower", floats(&|record| record.lower))?;
        columns.set_item("upper", floats(&|record| record.upper))?;
        columns.set_item("flips", integers(&|record| record.witness.as_ref().map_or(-1, |w| w.len() as i64)))?;
        columns.set_item("witness_class", integers(&|record| class(record.witness_class)))?;
        columns.set_item("witness_margin", floats(&|record| record.witness_margin))?;
        columns.set_item("engine", integers(&|record| record.engine as i64))?;
        columns.set_item("branches", integers(&|record| record.branches as i64))?;
        columns.set_item("seconds", floats(&|record| record.seconds))?;
        Ok(columns)
    }

    /// Lower bounds on the margins, nodes × classes; NaN for the certified class.
    fn margins<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let margins = self.0.records.iter().flat_map(|record| &record.margins);
        let values: Vec<f64> = margins.map(|margin| margin.unwrap_or(f64::NAN)).collect();
        values.into_pyarray(py).reshape([self.0.records.len(), self.0.model.classes])
    }

    /// The flips of the witness at `place`, if there is one.
    fn witness(&self, place: usize) -> Option<Flips> {
        self.0.records.get(place).and_then(|record| flips(record.witness.as_deref()))
    }

    #[getter]
    fn engine(&self) -> &'static str {
        self.0.engine.name()
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
    fn global_budget(&self) -> u32 {
        self.0.budget.budget.global()
    }

    /// The budget as a person would say it.
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
        py.detach(|| Certificates::read(path)).map(Self).raised(py)
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

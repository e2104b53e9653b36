//! How nodes are certified.

use nodeproof::settings::{memory_limit as bytes, time_limit as seconds};
use nodeproof::{Certifier, CertifySettings};
use pyo3::prelude::*;

use crate::arrays;
use crate::budget::PyBudget;
use crate::errors::Raised;
use crate::graph::PyGraph;
use crate::model::PyModel;

/// Against what, how hard, and with how many threads nodes are certified.
#[pyclass(name = "Settings", module = "nodeproof._core", frozen)]
pub(crate) struct PySettings(pub(crate) CertifySettings);

#[pymethods]
impl PySettings {
    #[new]
    #[expect(clippy::too_many_arguments, reason = "one for each option")]
    fn new(
        py: Python<'_>,
        budget: &PyBudget,
        engine: &str,
        target_class: &str,
        time_limits: (Option<f64>, Option<f64>),
        memory_limit: &str,
        threads: usize,
        asked: (f64, String, bool),
    ) -> PyResult<Self> {
        let mut settings = CertifySettings::new(budget.0.clone());
        settings.engine = engine.parse().raised(py)?;
        settings.target_class = target_class.parse().raised(py)?;
        let (time_limit, total_time_limit) = time_limits;
        settings.time_limit = time_limit.map(|limit| seconds("time_limit", limit)).transpose().raised(py)?;
        settings.total_time_limit =
            total_time_limit.map(|limit| seconds("total_time_limit", limit)).transpose().raised(py)?;
        settings.memory_limit = bytes("memory_limit", memory_limit).raised(py)?;
        settings.threads = threads;
        let (margin, arithmetic, proofs) = asked;
        (settings.margin, settings.arithmetic, settings.proofs) = (margin, arithmetic.parse().raised(py)?, proofs);
        Ok(Self(settings))
    }

    /// Checks the settings before nodes are certified, or radii scanned, elsewhere.
    fn check(
        &self,
        py: Python<'_>,
        graph: &PyGraph,
        model: &PyModel,
        nodes: arrays::Array1<'_, u32>,
        scan: bool,
    ) -> PyResult<()> {
        self.0.validate(&graph.0, &arrays::nodes(&nodes)).raised(py)?;
        if scan {
            self.0.validate_scan().raised(py)?;
        }
        Certifier::new(&graph.0, &model.0).map(drop).raised(py)
    }
}

//! The page that shows results.

use nodeproof_report::page::{ModelResults, Page};
use pyo3::prelude::*;

use crate::certificates::PyCertificates;
use crate::collective::PyCollectives;
use crate::errors::Raised;
use crate::graph::PyGraph;
use crate::radii::PyRadii;
use crate::split::PySplit;

/// What there is of a model, and its name.
type Named<'py> =
    (String, Option<PyRef<'py, PyCertificates>>, Option<PyRef<'py, PyRadii>>, Option<PyRef<'py, PyCollectives>>);

/// The page as HTML.
#[pyfunction]
pub(crate) fn report(
    py: Python<'_>,
    graph: &PyGraph,
    graph_name: &str,
    title: Option<&str>,
    split: Option<PyRef<'_, PySplit>>,
    models: Vec<Named<'_>>,
) -> PyResult<String> {
    let mut page = Page::new(&graph.0, graph_name).split(split.as_ref().map(|split| &split.0));
    if let Some(title) = title {
        page = page.title(title);
    }
    for (name, certificates, radii, collectives) in models {
        let results = ModelResults {
            certificates: certificates.map(|results| results.0.clone()),
            radii: radii.map(|results| results.0.clone()),
            collectives: collectives.map(|results| results.0.clone()),
        };
        page = page.model(&name, results);
    }
    py.detach(|| page.html()).raised(py)
}

//! Certificates of an earlier run, from which another one goes on.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use nodeproof::results::{Certificates, EarlierCertificates, Header, Mismatch};
use nodeproof::{Before, Certificate, Certifier, Graph, NodeId};
use pyo3::prelude::*;

use crate::certificates::PyCertificates;
use crate::errors::{Failure, Raised};
use crate::graph::PyGraph;

/// Certificates of an earlier run, and the graph that they are about.
#[pyclass(name = "Earlier", module = "nodeproof._core", frozen)]
pub(crate) struct PyEarlier(pub(crate) Arc<Earlier>);

/// The same.
pub(crate) struct Earlier {
    certificates: EarlierCertificates,
    graph: Arc<Graph>,
    /// What errors call them.
    name: String,
}

#[pymethods]
impl PyEarlier {
    /// Those of a file.
    #[staticmethod]
    fn read(py: Python<'_>, path: PathBuf, graph: &PyGraph) -> PyResult<Self> {
        let name = path.display().to_string();
        let certificates = py.detach(|| EarlierCertificates::read(path)).raised(py)?;
        Ok(Self(Arc::new(Earlier { certificates, graph: Arc::clone(&graph.0), name })))
    }

    /// Those that are at hand.
    #[staticmethod]
    fn of(py: Python<'_>, certificates: &PyCertificates, graph: &PyGraph) -> PyResult<Self> {
        let (name, mut bytes) = ("the certificates".to_owned(), Vec::new());
        certificates.0.write(&mut bytes).map_err(Failure::from).raised(py)?;
        let certificates = py.detach(|| EarlierCertificates::of_bytes(bytes, Path::new(&name))).raised(py)?;
        Ok(Self(Arc::new(Earlier { certificates, graph: Arc::clone(&graph.0), name })))
    }
}

impl Earlier {
    /// For each of `nodes` the certificate that still holds, if there is one, beside the results that say where they come from.
    ///
    /// # Errors
    /// If the earlier run is about something else than it is said to be, or was asked something else.
    pub(crate) fn carried(
        &self,
        certifier: &Certifier,
        header: Header,
        nodes: &[NodeId],
    ) -> Result<(Certificates, Vec<Option<Certificate>>), Failure> {
        let Self { certificates, graph, name } = self;
        certificates.check(header.clone(), Some(graph), None).map_err(|error| {
            let remedy = match error.of {
                Mismatch::Graph => "give the graph that it is about as since_graph, made with the same options",
                Mismatch::Model => "it says nothing of this model; certify without since",
                _ => "certify with its settings, or without since",
            };
            Failure::input(format!(
                "since: the run behind {name} was asked something else: {}; {remedy}",
                error.differences.join("; ")
            ))
        })?;
        let before = Before { graph, model: certifier.model(), budget: certificates.budget() };
        let places = certifier.touched_since(before)?.places(certificates, nodes);
        let certificate = |place: Option<usize>| place.map(|place| certificates.certificate(place)).transpose();
        let carried = places.into_iter().map(certificate).collect::<Result<Vec<_>, _>>();
        let carried = carried.map_err(|problem| Failure::input(format!("since: {name} is damaged: {problem}")))?;
        let since = certificates.since(carried.iter().flatten().count());
        Ok((Certificates::new(header.since(Some(since))), carried))
    }
}

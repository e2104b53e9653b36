//! Splits.

use std::path::PathBuf;

use nodeproof::{NodeId, Split, SplitSize};
use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;

use crate::arrays;
use crate::errors::Raised;
use crate::graph::PyGraph;

/// Nodes for training, validation and test.
#[pyclass(name = "Split", module = "nodeproof._core", frozen)]
pub(crate) struct PySplit(pub(crate) Split);

/// A share of each class, or a number of nodes of each.
#[derive(FromPyObject)]
enum Size {
    /// So many of each class.
    PerClass(usize),
    /// This share of each class.
    Share(f64),
}

impl From<Size> for SplitSize {
    fn from(size: Size) -> Self {
        match size {
            Size::PerClass(count) => Self::PerClass(count),
            Size::Share(share) => Self::Fraction(share),
        }
    }
}

#[pymethods]
impl PySplit {
    /// Draws a stratified split.
    #[staticmethod]
    fn stratified(py: Python<'_>, graph: &PyGraph, train: Size, validation: Size, seed: u64) -> PyResult<Self> {
        Split::stratified(&graph.0, train.into(), validation.into(), seed).map(Self).raised(py)
    }

    /// A split with these nodes; all others are for test.
    #[staticmethod]
    fn of_nodes(
        py: Python<'_>,
        nodes: usize,
        train: arrays::Array1<'_, u32>,
        validation: arrays::Array1<'_, u32>,
        seed: Option<u64>,
    ) -> PyResult<Self> {
        let mut split = Split::new(nodes, arrays::nodes(&train), arrays::nodes(&validation)).raised(py)?;
        split.seed = seed;
        Ok(Self(split))
    }

    /// Reads a split for a graph of so many nodes.
    #[staticmethod]
    fn read(py: Python<'_>, path: PathBuf, nodes: usize) -> PyResult<Self> {
        Split::read(path, nodes).map(Self).raised(py)
    }

    /// Writes JSON.
    fn write(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        self.0.write(path).raised(py)
    }

    #[getter]
    fn seed(&self) -> Option<u64> {
        self.0.seed
    }

    #[getter]
    fn nodes(&self) -> usize {
        self.0.nodes()
    }

    /// The nodes of a part, ascending.
    fn part<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyArray1<u32>>> {
        let part = name.parse().raised(py)?;
        let nodes: Vec<u32> = self.0.part(part).into_iter().map(|NodeId(node)| node).collect();
        Ok(nodes.into_pyarray(py))
    }
}

//! Models.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use nodeproof::{AttributeId, Flip, Layer, Matrix, Model, Network, NodeId, Propagation, SparseMatrix};
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::arrays::{self, Csr, Ids, Values};
use crate::errors::{Failure, Raised};
use crate::graph::PyGraph;
use crate::work;

/// A graph convolutional network.
#[pyclass(name = "Model", module = "nodeproof._core", frozen)]
pub(crate) struct PyModel(pub(crate) Arc<Model>);

/// A propagation by its name, or as a matrix of so many nodes.
#[derive(FromPyObject)]
pub(crate) enum GivenPropagation<'py> {
    /// Its name.
    Name(String),
    /// Values, column ids and row starts.
    Matrix((Values<'py>, Ids<'py>, Ids<'py>)),
}

impl GivenPropagation<'_> {
    /// The propagation.
    ///
    /// # Errors
    /// If there is none of that name, or the matrix is not well formed.
    pub(crate) fn propagation(self) -> Result<Propagation, Failure> {
        match self {
            Self::Name(name) => match name.as_str() {
                "symmetric-gcn" => Ok(Propagation::SymmetricGcn),
                "row-normalised" => Ok(Propagation::RowNormalised),
                other => Err(Failure::input(format!(
                    "`{other}` is not a propagation; give symmetric-gcn, row-normalised or a sparse matrix, nodes × nodes"
                ))),
            },
            Self::Matrix((values, indices, offsets)) => {
                let nodes = offsets.len().saturating_sub(1);
                let matrix = Csr { matrix: "propagation", offsets, indices, values, columns: nodes };
                let entries = matrix.entries()?;
                for &(row, column, value) in &entries {
                    if !(value >= 0.0 && value.is_finite()) {
                        return Err(nodeproof::ModelError::Propagation { row: row as usize, column, value }.into());
                    }
                }
                Ok(Propagation::Custom(SparseMatrix::from_triplets(nodes, nodes, &entries)))
            }
        }
    }
}

#[pymethods]
impl PyModel {
    /// A model with these layers.
    #[new]
    fn new(
        py: Python<'_>,
        weights: Vec<arrays::Array2<'_, f64>>,
        biases: Vec<arrays::Array1<'_, f64>>,
        propagation: GivenPropagation<'_>,
    ) -> PyResult<Self> {
        let layer = |(weight, bias): (&arrays::Array2<'_, f64>, &arrays::Array1<'_, f64>)| {
            let (weight, bias) = (weight.view(), bias.view());
            let (rows, columns) = weight.dim();
            let weight = Matrix::from_values(rows, columns, weight.iter().copied().collect());
            (weight, bias.iter().copied().collect())
        };
        let layers = weights.iter().zip(&biases).map(layer).collect();
        let propagation = propagation.propagation().raised(py)?;
        Ok(Self(Arc::new(Model::gcn(layers, propagation).raised(py)?)))
    }

    /// Reads a model, with its metadata.
    #[staticmethod]
    fn read(py: Python<'_>, path: PathBuf) -> PyResult<(Self, BTreeMap<String, String>)> {
        let model = py.detach(|| Model::read(&path)).raised(py)?;
        Ok((Self(Arc::new(model)), Model::read_metadata(&path).raised(py)?))
    }

    /// Writes `.safetensors`.
    fn write(&self, py: Python<'_>, path: PathBuf, metadata: BTreeMap<String, String>) -> PyResult<()> {
        py.detach(|| self.0.write_with(path, &metadata)).raised(py)
    }

    #[getter]
    fn weights<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyArray2<f64>>>> {
        self.0.layers().iter().map(|layer| matrix(py, layer.weight())).collect()
    }

    #[getter]
    fn biases<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyArray1<f64>>> {
        self.0.layers().iter().map(|layer| layer.bias().to_vec().into_pyarray(py)).collect()
    }

    #[getter]
    fn propagation(&self) -> &'static str {
        self.0.propagation().name()
    }

    #[getter]
    fn attributes(&self) -> usize {
        self.0.attributes()
    }

    #[getter]
    fn classes(&self) -> usize {
        self.0.classes()
    }

    #[getter]
    fn fingerprint(&self, py: Python<'_>) -> String {
        py.detach(|| self.0.fingerprint())
    }

    /// Values, column ids and row starts of a custom propagation.
    fn custom_propagation<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        match self.0.propagation() {
            Propagation::Custom(matrix) => arrays::matrix(py, matrix).map(Some),
            _ => Ok(None),
        }
    }

    /// The same of the propagation on `graph`.
    fn propagation_on<'py>(&self, py: Python<'py>, graph: &PyGraph) -> PyResult<Bound<'py, PyTuple>> {
        let made = py.detach(|| self.0.propagation().matrix(&graph.0)).raised(py)?;
        arrays::matrix(py, &made)
    }

    /// The logits of all nodes, N × K.
    fn logits<'py>(&self, py: Python<'py>, graph: &PyGraph, threads: usize) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let (theirs, model) = (Arc::clone(&graph.0), Arc::clone(&self.0));
        let logits = work::run(py, None, move |_| {
            let pool = work::pool(threads)?;
            let network = Network::new(&theirs, &model)?;
            Ok(pool.install(|| network.logits()))
        })?;
        matrix(py, &logits)
    }

    /// The logits of a node after flips.
    fn logits_under<'py>(
        &self,
        py: Python<'py>,
        graph: &PyGraph,
        node: u32,
        flips: Vec<(u32, u32)>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let (theirs, model) = (Arc::clone(&graph.0), Arc::clone(&self.0));
        let inside = |node: u32, attribute: u32| {
            (node as usize) < theirs.nodes() && (attribute as usize) < theirs.attribute_count()
        };
        if !inside(node, 0) || !flips.iter().all(|&(node, attribute)| inside(node, attribute)) {
            return Err(Failure::input("a node or an attribute does not exist in the graph").raise(py));
        }
        let flip = |(node, attribute)| Flip::of(&theirs, NodeId(node), AttributeId(attribute));
        let mut flips: Vec<Flip> = flips.into_iter().map(flip).collect();
        flips.sort_unstable();
        if flips.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(Failure::input("a flip is given twice").raise(py));
        }
        let logits = work::run(py, None, move |_| {
            let pool = work::pool(1)?;
            let network = Network::new(&theirs, &model)?;
            Ok(pool.install(|| network.logits_under(NodeId(node), &flips)))
        })?;
        Ok(logits.into_pyarray(py))
    }
}

fn matrix<'py>(py: Python<'py>, matrix: &Matrix) -> PyResult<Bound<'py, PyArray2<f64>>> {
    matrix.values().to_vec().into_pyarray(py).reshape([matrix.rows(), matrix.columns()])
}

//! Graphs.

use std::path::PathBuf;
use std::sync::Arc;

use nodeproof::{
    AttributeId, AttributeKind, ClassId, Cleaning, Flip, Graph, GraphError, GraphOptions, Matrix, Names, NodeId, values,
};
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict, PyTuple};

use crate::arrays::{self, Csr, Ids, Values};
use crate::budget;
use crate::errors::{Failure, Raised};

/// A graph with attributes.
#[pyclass(name = "Graph", module = "nodeproof._core", frozen)]
pub(crate) struct PyGraph(pub(crate) Arc<Graph>);

/// Lists of names: of nodes, attributes and classes.
type NameLists = (Option<Vec<String>>, Option<Vec<String>>, Option<Vec<String>>);

/// Node, attribute and, if it is given, the new value.
pub(crate) type GivenFlip = (u32, u32, Option<f64>);

/// The lowest and the highest value of each attribute.
type Ranges<'py> = (Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>);

#[pymethods]
impl PyGraph {
    /// The bundled graph.
    #[staticmethod]
    fn bundled() -> Self {
        Self(Arc::new(Graph::bundled()))
    }

    /// Reads an `.npz` or a `.graph`; what was cleaned comes with it.
    #[staticmethod]
    #[expect(clippy::too_many_arguments, reason = "one for each option")]
    fn read(
        py: Python<'_>,
        path: PathBuf,
        binarise: bool,
        normalise_rows: bool,
        real_values: bool,
        largest_component: bool,
        keep_self_loops: bool,
        directed: bool,
    ) -> PyResult<(Self, Py<PyDict>)> {
        let options = GraphOptions::new()
            .binarise(binarise)
            .normalise_rows(normalise_rows)
            .real_values(real_values)
            .largest_component(largest_component)
            .keep_self_loops(keep_self_loops)
            .directed(directed);
        let (graph, cleaning) = py.detach(|| Graph::read(path, options)).raised(py)?;
        Ok((Self(Arc::new(graph)), cleaned(py, &cleaning)?.unbind()))
    }

    /// A graph of compressed row matrices; `directed` is `None` where an edge must have its other direction.
    #[staticmethod]
    #[expect(clippy::too_many_arguments, reason = "one for each array")]
    fn of_arrays(
        py: Python<'_>,
        adjacency: (Values<'_>, Ids<'_>, Ids<'_>),
        attributes: (Values<'_>, Ids<'_>, Ids<'_>),
        attribute_count: usize,
        labels: Option<arrays::Array1<'_, i64>>,
        names: NameLists,
        binarise: bool,
        normalise_rows: bool,
        largest_component: bool,
        keep_self_loops: bool,
        directed: Option<bool>,
    ) -> PyResult<(Self, Py<PyDict>)> {
        let columns = adjacency.2.len().saturating_sub(1);
        let matrix =
            Csr { matrix: "adjacency", values: adjacency.0, indices: adjacency.1, offsets: adjacency.2, columns };
        let mut cleaning = Cleaning::default();
        let edges = edges(&matrix, keep_self_loops, &mut cleaning).raised(py)?;
        if directed.is_none() {
            check_symmetric(&edges).raised(py)?;
        }
        let matrix = Csr {
            matrix: "attributes",
            values: attributes.0,
            indices: attributes.1,
            offsets: attributes.2,
            columns: attribute_count,
        };
        if matrix.rows() != columns {
            let found = matrix.rows();
            let what = "the attribute matrix";
            return Err(Failure::from(GraphError::Mismatch { what, found, expected: columns, unit: "nodes" }).raise(py));
        }
        let (pairs, normalised) = attribute_pairs(&matrix, binarise, &mut cleaning).raised(py)?;
        let options = GraphOptions::new()
            .keep_self_loops(keep_self_loops)
            .directed(directed == Some(true))
            .normalise_rows(normalised || normalise_rows);
        let mut graph = Graph::with_options(columns, attribute_count, &edges, &pairs, options).raised(py)?;
        if let Some(labels) = labels {
            graph = graph.with_labels(classes(&labels)).raised(py)?;
        }
        let (nodes, attributes, classes) = names;
        graph = graph.with_names(Names { nodes, attributes, classes }).raised(py)?;
        graph = graph.with_binarised(cleaning.attributes_binarised);
        if largest_component {
            let all = graph.nodes();
            graph = graph.largest_component();
            cleaning.nodes_dropped = all - graph.nodes();
        }
        Ok((Self(Arc::new(graph)), cleaned(py, &cleaning)?.unbind()))
    }

    /// The same graph, of whose attributes so many values were neither 0 nor 1.
    fn with_binarised(&self, values: usize) -> Self {
        Self(Arc::new((*self.0).clone().with_binarised(values)))
    }

    #[getter]
    fn binarised(&self) -> usize {
        self.0.binarised()
    }

    /// The same graph with these real values as attributes.
    fn with_values(&self, py: Python<'_>, values: arrays::Array2<'_, f64>) -> PyResult<Self> {
        let view = values.view();
        let entries = Matrix::from_values(view.nrows(), view.ncols(), view.iter().copied().collect());
        let graph = values::Values::new(entries).and_then(|values| (*self.0).clone().with_values(values)).raised(py)?;
        Ok(Self(Arc::new(graph)))
    }

    /// The same graph with these ranges of its real values.
    fn with_ranges(
        &self,
        py: Python<'_>,
        low: arrays::Array1<'_, f64>,
        high: arrays::Array1<'_, f64>,
    ) -> PyResult<Self> {
        let ranges = low.view().iter().copied().zip(high.view().iter().copied()).collect();
        Ok(Self(Arc::new((*self.0).clone().with_ranges(ranges).raised(py)?)))
    }

    /// The same graph without these edges.
    fn without_edges(&self, py: Python<'_>, pairs: Vec<(u32, u32)>) -> PyResult<Self> {
        let edges = budget::edges(&pairs).raised(py)?;
        Ok(Self(Arc::new(py.detach(|| self.0.without_edges(&edges)).raised(py)?)))
    }

    /// The same graph with these entries changed; a flip without a value is one of a bit.
    fn with_flips(&self, py: Python<'_>, flips: Vec<GivenFlip>) -> PyResult<Self> {
        let flips = given_flips(&self.0, &flips).raised(py)?;
        Ok(Self(Arc::new(py.detach(|| self.0.with_flips(&flips)).raised(py)?)))
    }

    /// Its largest connected component.
    fn largest_component(&self) -> Self {
        Self(Arc::new(self.0.largest_component()))
    }

    /// The real values, if attributes are that.
    fn values<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyArray2<f64>>>> {
        let of_values = |values: &values::Values| {
            let entries = values.entries();
            entries.values().to_vec().into_pyarray(py).reshape([entries.rows(), entries.columns()])
        };
        self.0.values().map(of_values).transpose()
    }

    /// The lowest and the highest value of each attribute, if they are real values.
    fn ranges<'py>(&self, py: Python<'py>) -> Option<Ranges<'py>> {
        let (low, high): (Vec<f64>, Vec<f64>) = self.0.values()?.ranges().iter().copied().unzip();
        Some((low.into_pyarray(py), high.into_pyarray(py)))
    }

    /// The same graph with these labels, negative for none.
    fn with_labels(&self, py: Python<'_>, labels: arrays::Array1<'_, i64>) -> PyResult<Self> {
        // Class names that no longer suffice are an error; labels decide otherwise how many classes there are.
        Ok(Self(Arc::new((*self.0).clone().with_labels(classes(&labels)).raised(py)?)))
    }

    /// What networks read of the attributes.
    #[getter]
    fn kind(&self) -> &'static str {
        self.0.kind().name()
    }

    #[getter]
    fn nodes(&self) -> usize {
        self.0.nodes()
    }

    /// Whether some edge has no edge back.
    #[getter]
    fn directed(&self) -> bool {
        !self.0.adjacency().is_symmetric()
    }

    #[getter]
    fn edges(&self) -> usize {
        self.0.edges()
    }

    #[getter]
    fn attribute_count(&self) -> usize {
        self.0.attribute_count()
    }

    #[getter]
    fn classes(&self) -> usize {
        self.0.classes()
    }

    #[getter]
    fn fingerprint(&self, py: Python<'_>) -> String {
        py.detach(|| self.0.fingerprint())
    }

    #[getter]
    fn fingerprint_without_ranges(&self, py: Python<'_>) -> String {
        py.detach(|| self.0.fingerprint_without_ranges())
    }

    #[getter]
    fn edges_fingerprint(&self, py: Python<'_>) -> String {
        py.detach(|| self.0.edges_fingerprint())
    }

    /// Column ids and row starts of the adjacency, the latter first.
    fn adjacency<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        arrays::pattern(py, self.0.adjacency())
    }

    /// The same of the attributes.
    fn attributes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        arrays::pattern(py, self.0.attributes())
    }

    /// The labels, -1 for none.
    fn labels<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyArray1<i64>>> {
        self.0.has_labels().then(|| {
            let label = |node| self.0.label(node).map_or(-1, |class| i64::from(class.0));
            self.0.node_ids().map(label).collect::<Vec<_>>().into_pyarray(py)
        })
    }

    /// Names of nodes, attributes and classes.
    fn names(&self) -> NameLists {
        let Names { nodes, attributes, classes } = self.0.names().clone();
        (nodes, attributes, classes)
    }

    /// The bytes of a `.graph` file.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &py.detach(|| self.0.to_bytes()))
    }

    /// The graph whose `.graph` file has these bytes.
    #[staticmethod]
    fn of_bytes(py: Python<'_>, bytes: PyBackedBytes) -> PyResult<Self> {
        let graph = py.detach(|| Graph::of_bytes(&bytes, "what was pickled")).raised(py)?;
        Ok(Self(Arc::new(graph)))
    }

    /// Writes a `.graph`, if the name ends so, or an `.npz`.
    fn write(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        py.detach(|| self.0.write(path)).raised(py)
    }
}

/// Flips of `graph`.
///
/// # Errors
/// If an entry does not exist, or cannot have its new value.
pub(crate) fn given_flips(graph: &Graph, given: &[GivenFlip]) -> Result<Vec<Flip>, Failure> {
    let flip = |&(node, attribute, to): &GivenFlip| {
        let (node, attribute) = (NodeId(node), AttributeId(attribute));
        let exists = node.index() < graph.nodes() && attribute.index() < graph.attribute_count();
        let flip = match to {
            Some(to) => Flip { node, attribute, to },
            None if exists && graph.kind().is_values() => {
                return Err(Failure::input(format!(
                    "attribute {attribute} of node {node} is a real value; say what it becomes: (node, attribute, to)"
                )));
            }
            None if exists => Flip::of(graph, node, attribute),
            None => Flip { node, attribute, to: 1.0 },
        };
        graph.check_flip(flip)?;
        Ok(flip)
    };
    given.iter().map(flip).collect()
}

fn classes(labels: &arrays::Array1<'_, i64>) -> Vec<Option<ClassId>> {
    labels.view().iter().map(|&label| u32::try_from(label).ok().map(ClassId)).collect()
}

/// The edges, without weights.
fn edges(matrix: &Csr, keep_self_loops: bool, cleaning: &mut Cleaning) -> Result<Vec<(u32, u32)>, Failure> {
    let mut edges = Vec::new();
    for (row, column, value) in matrix.entries()? {
        if value == 0.0 {
            continue;
        }
        if value != 1.0 {
            return Err(Failure::input(format!(
                "the edge from row {row} to column {column} of the adjacency has weight {value}, but a graph knows edges \
                 only as there or not: give `adjacency != 0`, and the weighted propagation to `Model(..., propagation=...)`"
            )));
        }
        cleaning.edges_on_file += 1;
        if row == column && !keep_self_loops {
            cleaning.self_loops_removed += 1;
        }
        edges.push((row, column));
    }
    Ok(edges)
}

/// Refuses an edge in one direction only.
fn check_symmetric(edges: &[(u32, u32)]) -> Result<(), Failure> {
    let mut sorted = edges.to_vec();
    sorted.sort_unstable();
    let one_way = sorted.iter().find(|&&(a, b)| sorted.binary_search(&(b, a)).is_err());
    match one_way {
        None => Ok(()),
        Some((a, b)) => Err(Failure::input(format!(
            "the adjacency is directed: it has an edge from row {a} to column {b}, but none back; pass directed=False to \
             add the other direction, or directed=True to have each row list the nodes that its node aggregates"
        ))),
    }
}

/// Where the attributes are 1, or that divided by the number of ones in their row; and whether they are.
fn attribute_pairs(matrix: &Csr, binarise: bool, cleaning: &mut Cleaning) -> Result<(Vec<(u32, u32)>, bool), Failure> {
    let mut pairs = Vec::new();
    let entries = matrix.entries()?;
    let normalised = !binarise && AttributeKind::are_normalised_rows(&entries);
    for (row, column, value) in entries {
        if !value.is_finite() {
            return Err(GraphError::NotFinite { matrix: "attributes", row: row as usize, column, value }.into());
        }
        if value != 0.0 && value != 1.0 && !normalised {
            if !binarise {
                return Err(GraphError::NotBinary { node: row as usize, attribute: column, value }.into());
            }
            cleaning.attributes_binarised += 1;
        }
        if value > 0.0 {
            pairs.push((row, column));
        } else if value == 0.0 {
            cleaning.attribute_zeros += 1;
        }
    }
    Ok((pairs, normalised))
}

/// What was cleaned, under its names in the library.
fn cleaned<'py>(py: Python<'py>, cleaning: &Cleaning) -> PyResult<Bound<'py, PyDict>> {
    let counts = PyDict::new(py);
    for (name, count) in [
        ("edges_on_file", cleaning.edges_on_file),
        ("self_loops_removed", cleaning.self_loops_removed),
        ("duplicate_edges", cleaning.duplicate_edges),
        ("directed_edges", cleaning.directed_edges),
        ("weights_ignored", cleaning.weights_ignored),
        ("attributes_binarised", cleaning.attributes_binarised),
        ("attribute_zeros", cleaning.attribute_zeros),
        ("duplicate_attributes", cleaning.duplicate_attributes),
        ("nodes_dropped", cleaning.nodes_dropped),
    ] {
        counts.set_item(name, count)?;
    }
    Ok(counts)
}

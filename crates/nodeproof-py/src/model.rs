//! Models.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use nodeproof::model::{Activation, Source, Term, Weight};
use nodeproof::{AttributeKind, Engine, Layer, Matrix, Model, Network, NodeId, Propagation, SparseMatrix};
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use crate::arrays::{self, Csr, Ids, Values};
use crate::errors::{Failure, Raised};
use crate::graph::{GivenFlip, PyGraph, given_flips};
use crate::work;

/// A network of layers of terms.
#[pyclass(name = "Model", module = "nodeproof._core", frozen)]
pub(crate) struct PyModel(pub(crate) Arc<Model>);

/// A propagation by its name, as a polynomial of another, or as a matrix of so many nodes.
#[derive(FromPyObject)]
pub(crate) enum GivenPropagation<'py> {
    /// Its name.
    Name(String),
    /// Coefficients, constant one first, and what they are of.
    Polynomial(GivenPolynomial<'py>),
    /// Values, column ids and row starts.
    Matrix((Values<'py>, Ids<'py>, Ids<'py>)),
}

/// `{"polynomial": [c₀, c₁, …], "of": propagation}`.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct GivenPolynomial<'py> {
    polynomial: Vec<f64>,
    of: Bound<'py, PyAny>,
}

impl GivenPropagation<'_> {
    /// The propagation.
    ///
    /// # Errors
    /// If there is none of that name, or the matrix is not well formed.
    pub(crate) fn propagation(self) -> Result<Propagation, Failure> {
        match self {
            Self::Name(name) => Propagation::named(&name).ok_or_else(|| {
                Failure::input(format!(
                    "`{name}` is not a propagation; give symmetric-gcn, row-normalised, row-mean, adjacency, identity or a \
                     sparse matrix, nodes × nodes{}",
                    Propagation::did_you_mean(&name)
                ))
            }),
            Self::Polynomial(GivenPolynomial { polynomial, of }) => {
                let of: GivenPropagation<'_> = of.extract().map_err(Failure::input)?;
                Ok(Propagation::Polynomial { of: Box::new(of.propagation()?), coefficients: polynomial })
            }
            Self::Matrix((values, indices, offsets)) => {
                let nodes = offsets.len().saturating_sub(1);
                let matrix = Csr { matrix: "propagation", offsets, indices, values, columns: nodes };
                Ok(Propagation::Custom(SparseMatrix::from_triplets(nodes, nodes, &matrix.entries()?)))
            }
        }
    }
}

/// Where a term reads: a name, or the place of a layer.
#[derive(FromPyObject)]
enum GivenSource {
    Layer(usize),
    Name(String),
}

impl GivenSource {
    fn source(self) -> Result<Source, Failure> {
        match self {
            Self::Layer(layer) => Ok(Source::Layer(layer)),
            Self::Name(name) => match name.as_str() {
                "attributes" => Ok(Source::Attributes),
                "ones" => Ok(Source::Ones),
                other => Err(Failure::input(format!(
                    "`{other}` is not what a term can read; give attributes, ones, or the place of an earlier layer"
                ))),
            },
        }
    }
}

/// W, inputs × units, or so many times the identity.
#[derive(FromPyObject)]
enum GivenWeight<'py> {
    Scalar(f64),
    Dense(arrays::Array2<'py, f64>),
}

impl GivenWeight<'_> {
    fn weight(&self) -> Weight {
        match self {
            Self::Scalar(factor) => Weight::Scalar(*factor),
            Self::Dense(matrix) => Weight::Dense(self::dense(matrix)),
        }
    }
}

/// `"none"`, `"relu"` or `("leaky-relu", slope)`.
#[derive(FromPyObject)]
enum GivenActivation {
    Name(String),
    WithSlope((String, f64)),
}

impl GivenActivation {
    fn activation(self) -> Result<Activation, Failure> {
        match self {
            Self::Name(name) if name == "none" => Ok(Activation::None),
            Self::Name(name) if name == "relu" => Ok(Activation::Relu),
            Self::WithSlope((name, slope)) if name == "leaky-relu" => Ok(Activation::LeakyRelu(slope)),
            Self::Name(name) | Self::WithSlope((name, _)) => Err(Failure::input(format!(
                "`{name}` is not an activation; give \"none\", \"relu\" or (\"leaky-relu\", slope)"
            ))),
        }
    }
}

/// Source, propagation and weight of a term.
type GivenTerm<'py> = (GivenSource, usize, GivenWeight<'py>);

/// Terms, bias and activation of a layer.
type GivenLayer<'py> = (Vec<GivenTerm<'py>>, arrays::Array1<'py, f64>, GivenActivation);

/// The kind of attributes of that name.
fn attribute_kind(name: &str) -> Result<AttributeKind, Failure> {
    let known = [AttributeKind::Bits, AttributeKind::NormalisedRows, AttributeKind::RealValues];
    let found = known.into_iter().find(|kind| kind.name() == name);
    found.ok_or_else(|| Failure::input(format!("kind={name:?}: choose 'bits', 'normalised-rows' or 'real-values'")))
}

fn layer((terms, bias, activation): GivenLayer<'_>) -> Result<Layer, Failure> {
    let term = |(source, propagation, weight): GivenTerm<'_>| {
        Ok::<_, Failure>(Term::new(source.source()?, propagation, weight.weight()))
    };
    let terms = terms.into_iter().map(term).collect::<Result<_, _>>()?;
    Ok(Layer::new(terms, bias.view().iter().copied().collect(), activation.activation()?))
}

#[pymethods]
impl PyModel {
    /// A graph convolutional network with these layers.
    #[new]
    fn new(
        py: Python<'_>,
        weights: Vec<arrays::Array2<'_, f64>>,
        biases: Vec<arrays::Array1<'_, f64>>,
        propagation: GivenPropagation<'_>,
        kind: &str,
    ) -> PyResult<Self> {
        let kind = attribute_kind(kind).raised(py)?;
        let layer = |(weight, bias): (&arrays::Array2<'_, f64>, &arrays::Array1<'_, f64>)| {
            (dense(weight), bias.view().iter().copied().collect())
        };
        let layers = weights.iter().zip(&biases).map(layer).collect();
        let propagation = propagation.propagation().raised(py)?;
        Ok(Self(Arc::new(Model::gcn(layers, propagation).raised(py)?.with_kind(kind))))
    }

    /// A network of layers of terms.
    #[staticmethod]
    fn of_terms(
        py: Python<'_>,
        attributes: usize,
        propagations: Vec<GivenPropagation<'_>>,
        layers: Vec<GivenLayer<'_>>,
        kind: &str,
    ) -> PyResult<Self> {
        let kind = attribute_kind(kind).raised(py)?;
        let propagations = propagations.into_iter().map(GivenPropagation::propagation).collect::<Result<_, _>>();
        let layers = layers.into_iter().map(layer).collect::<Result<_, _>>();
        let model = Model::new(attributes, propagations.raised(py)?, layers.raised(py)?).raised(py)?;
        Ok(Self(Arc::new(model.with_kind(kind))))
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

    /// Terms, bias and activation of each layer, as `of_terms` takes them.
    fn layers<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        let layer = |layer: &Layer| {
            let terms: PyResult<Vec<_>> = layer.terms().iter().map(|term| self::term(py, term)).collect();
            let bias = layer.bias().to_vec().into_pyarray(py);
            (PyList::new(py, terms?)?, bias, activation(py, layer.activation())?).into_pyobject(py)
        };
        self.0.layers().iter().map(layer).collect()
    }

    /// The propagations, as `of_terms` takes them.
    fn propagations<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        self.0.propagations().iter().map(|propagation| described(py, propagation)).collect()
    }

    /// What it reads of the attributes.
    #[getter]
    fn kind(&self) -> &'static str {
        self.0.kind().name()
    }

    #[getter]
    fn is_gcn(&self) -> bool {
        self.0.as_gcn().is_some()
    }

    #[getter]
    fn propagation(&self) -> &'static str {
        self.0.propagation_name()
    }

    #[getter]
    fn hidden_layers(&self) -> usize {
        self.0.hidden_layers()
    }

    #[getter]
    fn first_engine(&self) -> &'static str {
        Engine::to_begin_with(&self.0).name()
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

    /// Values, column ids and row starts of the propagation at `place` on `graph`.
    fn propagation_on<'py>(&self, py: Python<'py>, graph: &PyGraph, place: usize) -> PyResult<Bound<'py, PyTuple>> {
        let Some(propagation) = self.0.propagations().get(place) else {
            return Err(Failure::input(format!(
                "the model has no propagation {place}; it has {}, counted from 0",
                self.0.propagations().len()
            ))
            .raise(py));
        };
        let made = py.detach(|| propagation.matrix(&graph.0)).raised(py)?;
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
        flips: Vec<GivenFlip>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let (theirs, model) = (Arc::clone(&graph.0), Arc::clone(&self.0));
        if node as usize >= theirs.nodes() {
            return Err(Failure::input(format!("node {node} does not exist in the graph")).raise(py));
        }
        let mut flips = given_flips(&theirs, &flips).raised(py)?;
        flips.sort_unstable();
        if flips.windows(2).any(|pair| (pair[0].node, pair[0].attribute) == (pair[1].node, pair[1].attribute)) {
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

/// Source, propagation and weight of a term.
fn term<'py>(py: Python<'py>, term: &Term) -> PyResult<Bound<'py, PyTuple>> {
    let source = match term.source() {
        Source::Attributes => "attributes".into_pyobject(py)?.into_any(),
        Source::Ones => "ones".into_pyobject(py)?.into_any(),
        Source::Layer(layer) => layer.into_pyobject(py)?.into_any(),
    };
    let weight = match term.weight() {
        Weight::Scalar(factor) => factor.into_pyobject(py)?.into_any(),
        Weight::Dense(matrix) => self::matrix(py, matrix)?.into_any(),
    };
    (source, term.propagation(), weight).into_pyobject(py)
}

fn activation(py: Python<'_>, activation: Activation) -> PyResult<Bound<'_, PyAny>> {
    match activation {
        Activation::None => Ok("none".into_pyobject(py)?.into_any()),
        Activation::Relu => Ok("relu".into_pyobject(py)?.into_any()),
        Activation::LeakyRelu(slope) => Ok(("leaky-relu", slope).into_pyobject(py)?.into_any()),
    }
}

/// A propagation as [`GivenPropagation`] takes it.
fn described<'py>(py: Python<'py>, propagation: &Propagation) -> PyResult<Bound<'py, PyAny>> {
    match propagation {
        Propagation::Custom(matrix) => Ok(arrays::matrix(py, matrix)?.into_any()),
        Propagation::Polynomial { of, coefficients } => {
            let polynomial = PyDict::new(py);
            polynomial.set_item("polynomial", coefficients)?;
            polynomial.set_item("of", described(py, of)?)?;
            Ok(polynomial.into_any())
        }
        named => Ok(named.name().into_pyobject(py)?.into_any()),
    }
}

/// A matrix from NumPy.
fn dense(array: &arrays::Array2<'_, f64>) -> Matrix {
    let view = array.view();
    let (rows, columns) = view.dim();
    Matrix::from_values(rows, columns, view.iter().copied().collect())
}

fn matrix<'py>(py: Python<'py>, matrix: &Matrix) -> PyResult<Bound<'py, PyArray2<f64>>> {
    matrix.values().to_vec().into_pyarray(py).reshape([matrix.rows(), matrix.columns()])
}

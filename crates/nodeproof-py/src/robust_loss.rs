//! Worst-case margins as a loss for other people's training loops.

use std::process;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nodeproof::settings::check_threads;
use nodeproof::train::{Logits, RobustLoss, RobustValue, TrainError};
use nodeproof::{ClassId, Matrix, Model};
use numpy::ndarray::{ArrayView, Dimension, IxDyn};
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayDyn, PyArrayMethods};
use pyo3::prelude::*;
use rayon::ThreadPool;

use crate::arrays;
use crate::budget::PyBudget;
use crate::errors::{Failure, Raised};
use crate::graph::PyGraph;
use crate::model::PyModel;
use crate::work;

/// All weights and biases of a model, whatever their shapes: their numbers count, in C order.
type Tensors<'py> = Vec<arrays::Array<'py, f64, IxDyn>>;

/// A number for each of their numbers.
type Gradient<'py> = Vec<Bound<'py, PyArrayDyn<f64>>>;

/// The loss, the smallest margin of each node, and the gradient.
type Value<'py> = (f64, Bound<'py, PyArray1<f64>>, Option<Gradient<'py>>);

/// The margins of each node over each class, and the class that each is to keep.
type Margins<'py> = (Bound<'py, PyArray2<f64>>, Bound<'py, PyArray1<u32>>);

/// Losses of worst-case margins, for a network of fixed structure and ever new weights.
#[pyclass(name = "RobustLoss", module = "nodeproof._core", frozen)]
pub(crate) struct PyRobustLoss {
    kept: Arc<Mutex<Kept>>,
    worst_case: &'static str,
    /// The sizes of each tensor.
    shapes: Vec<Vec<usize>>,
}

/// Logits of some nodes, and what their gradient takes.
#[pyclass(name = "Logits", module = "nodeproof._core", frozen)]
pub(crate) struct PyLogits(Arc<Logits>);

/// What is kept from call to call.
struct Kept {
    loss: RobustLoss,
    threads: usize,
    pool: Option<Pool>,
}

impl Kept {
    /// Calls `job` with these weights, in the pool.
    fn run<T: Send>(
        &mut self,
        tensors: &[Vec<f64>],
        job: impl FnOnce(&mut RobustLoss) -> Result<T, TrainError> + Send,
    ) -> Result<T, Failure> {
        self.loss.set_tensors(tensors)?;
        let Self { loss, threads, pool } = self;
        Ok(Pool::ready(pool, *threads)?.install(|| job(loss))?)
    }
}

/// Threads, which a process forked from this one does not have.
struct Pool {
    threads: Option<ThreadPool>,
    process: u32,
}

impl Pool {
    fn new(threads: usize) -> Result<Self, Failure> {
        Ok(Self { threads: Some(work::pool(threads)?), process: process::id() })
    }

    /// The pool that there is, or a new one where there is none in this process.
    fn ready(pool: &mut Option<Self>, threads: usize) -> Result<&Self, Failure> {
        let ready = match pool.take().filter(Self::is_ours) {
            Some(ready) => ready,
            None => Self::new(threads)?,
        };
        Ok(pool.insert(ready))
    }

    /// Whether its threads are those of this process.
    fn is_ours(&self) -> bool {
        self.process == process::id()
    }

    fn install<T: Send>(&self, job: impl FnOnce() -> T + Send) -> T {
        match &self.threads {
            Some(threads) => threads.install(job),
            None => job(),
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        if !self.is_ours() {
            // There are no threads to be ended, but perhaps a lock that one of them held.
            std::mem::forget(self.threads.take());
        }
    }
}

#[pymethods]
impl PyRobustLoss {
    /// The loss of networks that are put together as `model` is.
    #[new]
    fn new(
        py: Python<'_>,
        graph: &PyGraph,
        model: &PyModel,
        budget: &PyBudget,
        worst_case: Option<&str>,
        threads: usize,
    ) -> PyResult<Self> {
        check_threads(threads).raised(py)?;
        let worst_case = worst_case.map(str::parse).transpose().raised(py)?;
        let (graph, model, budget) = (Arc::clone(&graph.0), Model::clone(&model.0), budget.0.clone());
        let shapes = model.tensor_shapes().into_iter().map(|(_, sizes)| sizes).collect();
        let loss = py.detach(|| RobustLoss::new(graph, model, &budget, worst_case)).raised(py)?;
        let worst_case = loss.worst_case().name();
        Ok(Self { kept: Arc::new(Mutex::new(Kept { loss, threads, pool: None })), worst_case, shapes })
    }

    /// What worst-case margins are taken to be.
    #[getter]
    fn worst_case(&self) -> &'static str {
        self.worst_case
    }

    /// The model with these weights.
    fn model(&self, py: Python<'_>, tensors: Tensors<'_>) -> PyResult<PyModel> {
        let tensors = numbers(&tensors);
        let model = py.detach(|| {
            let mut kept = lock(&self.kept);
            kept.loss.set_tensors(&tensors).map(|()| kept.loss.model().clone())
        });
        Ok(PyModel(Arc::new(model.raised(py)?)))
    }

    /// The mean hinge loss of `nodes` around `classes`, or around the predicted ones.
    #[expect(clippy::too_many_arguments, reason = "one for each option")]
    fn hinge<'py>(
        &self,
        py: Python<'py>,
        tensors: Tensors<'py>,
        nodes: arrays::Array1<'py, u32>,
        classes: Option<arrays::Array1<'py, u32>>,
        margin: f64,
        saturation: Option<f64>,
        with_gradient: bool,
    ) -> PyResult<Value<'py>> {
        let (nodes, classes) = (arrays::nodes(&nodes), classes.as_ref().map(self::classes));
        let value = self
            .run(py, &tensors, move |loss| loss.hinge(&nodes, classes.as_deref(), margin, saturation, with_gradient))?;
        self.value(py, value)
    }

    /// The mean cross entropy of the worst-case logits of `nodes` for `classes`, or for the predicted ones.
    fn cross_entropy<'py>(
        &self,
        py: Python<'py>,
        tensors: Tensors<'py>,
        nodes: arrays::Array1<'py, u32>,
        classes: Option<arrays::Array1<'py, u32>>,
        with_gradient: bool,
    ) -> PyResult<Value<'py>> {
        let (nodes, classes) = (arrays::nodes(&nodes), classes.as_ref().map(self::classes));
        let value =
            self.run(py, &tensors, move |loss| loss.cross_entropy(&nodes, classes.as_deref(), with_gradient))?;
        self.value(py, value)
    }

    /// The logits of `nodes` without any attack, and what their gradient takes.
    fn logits<'py>(
        &self,
        py: Python<'py>,
        tensors: Tensors<'py>,
        nodes: arrays::Array1<'py, u32>,
    ) -> PyResult<(Bound<'py, PyArray2<f64>>, PyLogits)> {
        let nodes = arrays::nodes(&nodes);
        let logits = self.run(py, &tensors, move |loss| loss.logits(&nodes))?;
        let values = matrix(py, logits.values())?;
        Ok((values, PyLogits(Arc::new(logits))))
    }

    /// The derivative of the sum of these logits, each times its weight.
    fn logits_gradient<'py>(
        &self,
        py: Python<'py>,
        logits: &PyLogits,
        weights: arrays::Array2<'py, f64>,
    ) -> PyResult<Gradient<'py>> {
        let (kept, logits, weights) = (Arc::clone(&self.kept), Arc::clone(&logits.0), from_array(&weights));
        let gradient = work::run(py, None, move |_| {
            let Kept { pool, threads, .. } = &mut *lock(&kept);
            Ok(Pool::ready(pool, *threads)?.install(|| logits.gradient(&weights))?)
        })?;
        self.gradient(py, gradient)
    }

    /// The margins of `nodes` over each class, and whose they are: of `classes`, or of the predicted ones.
    fn margins<'py>(
        &self,
        py: Python<'py>,
        tensors: Tensors<'py>,
        nodes: arrays::Array1<'py, u32>,
        classes: Option<arrays::Array1<'py, u32>>,
    ) -> PyResult<Margins<'py>> {
        let (nodes, classes) = (arrays::nodes(&nodes), classes.as_ref().map(self::classes));
        let margins = self.run(py, &tensors, move |loss| loss.margins(&nodes, classes.as_deref()))?;
        let kept: Vec<u32> = margins.classes.iter().map(|class| class.0).collect();
        Ok((matrix(py, &margins.over)?, kept.into_pyarray(py)))
    }

    /// The derivative of the sum of these margins, each times its weight.
    fn margins_gradient<'py>(
        &self,
        py: Python<'py>,
        tensors: Tensors<'py>,
        nodes: arrays::Array1<'py, u32>,
        classes: arrays::Array1<'py, u32>,
        weights: arrays::Array2<'py, f64>,
    ) -> PyResult<Gradient<'py>> {
        let (nodes, classes) = (arrays::nodes(&nodes), self::classes(&classes));
        let weights = from_array(&weights);
        let gradient = self.run(py, &tensors, move |loss| loss.margins_gradient(&nodes, &classes, &weights))?;
        self.gradient(py, gradient)
    }
}

impl PyRobustLoss {
    /// Calls `job` with these weights, without Python's lock.
    fn run<T: Send + 'static>(
        &self,
        py: Python<'_>,
        tensors: &Tensors<'_>,
        job: impl FnOnce(&mut RobustLoss) -> Result<T, TrainError> + Send + 'static,
    ) -> PyResult<T> {
        let (kept, tensors) = (Arc::clone(&self.kept), numbers(tensors));
        work::run(py, None, move |_| lock(&kept).run(&tensors, job))
    }

    fn value<'py>(&self, py: Python<'py>, value: RobustValue) -> PyResult<Value<'py>> {
        let gradient = value.gradient.map(|gradient| self.gradient(py, gradient)).transpose()?;
        Ok((value.loss, value.margins.into_pyarray(py), gradient))
    }

    /// Tensors of the shapes of the model's.
    fn gradient<'py>(&self, py: Python<'py>, gradient: Vec<Vec<f64>>) -> PyResult<Gradient<'py>> {
        let tensors = gradient.into_iter().zip(&self.shapes);
        tensors.map(|(values, sizes)| values.into_pyarray(py).reshape(IxDyn(sizes))).collect()
    }
}

/// What is kept, also after a call that panicked: whatever the next one needs, it sets.
fn lock(kept: &Mutex<Kept>) -> MutexGuard<'_, Kept> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The numbers of each tensor, in C order.
fn numbers(tensors: &Tensors<'_>) -> Vec<Vec<f64>> {
    tensors.iter().map(|tensor| elements(tensor.view())).collect()
}

/// Elements in C order, copied at once where they lie in that order.
fn elements<D: Dimension>(view: ArrayView<'_, f64, D>) -> Vec<f64> {
    view.as_slice().map_or_else(|| view.iter().copied().collect(), <[f64]>::to_vec)
}

fn from_array(values: &arrays::Array2<'_, f64>) -> Matrix {
    let (rows, columns) = values.view().dim();
    Matrix::from_values(rows, columns, elements(values.view()))
}

fn matrix<'py>(py: Python<'py>, values: &Matrix) -> PyResult<Bound<'py, PyArray2<f64>>> {
    values.values().to_vec().into_pyarray(py).reshape([values.rows(), values.columns()])
}

fn classes(ids: &arrays::Array1<'_, u32>) -> Vec<ClassId> {
    ids.view().iter().map(|&id| ClassId(id)).collect()
}

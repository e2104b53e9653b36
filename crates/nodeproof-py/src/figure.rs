//! Figures.

use nodeproof::TargetClass;
use nodeproof::results::{Certificates, StepRecord};
use nodeproof_report::Attack;
use nodeproof_report::plot::figures::{self, Aims, Curves, Run, Together};
use nodeproof_report::plot::{Figure, Size};
use nodeproof_report::structure;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::certificates::PyCertificates;
use crate::collective::PyCollectives;
use crate::errors::{Failure, Raised};
use crate::graph::PyGraph;
use crate::radii::PyRadii;

/// A figure.
#[pyclass(name = "Figure", module = "nodeproof._core", frozen)]
pub(crate) struct PyFigure(Figure);

/// Title, width and height in millimetres.
type Look = (Option<String>, f64, f64);

#[pymethods]
impl PyFigure {
    /// The SVG document.
    fn svg(&self, py: Python<'_>) -> String {
        py.detach(|| self.0.svg())
    }

    /// A PNG image with so many dots per inch.
    fn png<'py>(&self, py: Python<'py>, dots_per_inch: f64) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = py.detach(|| self.0.png(dots_per_inch)).raised(py)?;
        Ok(PyBytes::new(py, &bytes))
    }
}

/// What certificates of one model under one or several global budgets show of all budgets up to the largest.
#[pyfunction]
pub(crate) fn plot_certificates(
    py: Python<'_>,
    under: Vec<PyRef<'_, PyCertificates>>,
    look: Look,
) -> PyResult<PyFigure> {
    let under: Vec<&Certificates> = under.iter().map(|results| &results.0).collect();
    check_nodes(under.iter().map(|results| results.records.len()).sum()).raised(py)?;
    finished(py, figures::certificates((None, &Curves::of_certificates(&under)), None, None), look)
}

/// Shares of nodes by global budget, with those of another model dashed over them; each with its name in the legend, if it has one.
#[pyfunction]
pub(crate) fn plot_radii(
    py: Python<'_>,
    radii: (Option<String>, PyRef<'_, PyRadii>),
    against: Option<(String, PyRef<'_, PyRadii>)>,
    look: Look,
) -> PyResult<PyFigure> {
    let (name, radii) = radii;
    check_nodes(radii.0.records.len()).raised(py)?;
    let curves = Curves::of(&radii.0);
    let against = against.map(|(name, radii)| (name, Curves::of(&radii.0)));
    let against = against.as_ref().map(|(name, curves)| (name.as_str(), curves));
    finished(py, figures::certificates((name.as_deref(), &curves), against, None), look)
}

/// Radii against degrees.
#[pyfunction]
pub(crate) fn plot_degree(py: Python<'_>, graph: &PyGraph, radii: &PyRadii, look: Look) -> PyResult<PyFigure> {
    check_nodes(radii.0.records.len()).raised(py)?;
    finished(py, figures::degree(&structure::degrees(&graph.0, &radii.0), attack(radii), radii.0.max_budget()), look)
}

/// Radii against the purity of neighbourhoods, of the nodes whose neighbours' predictions are known.
#[pyfunction]
pub(crate) fn plot_purity(py: Python<'_>, graph: &PyGraph, radii: &PyRadii, look: Look) -> PyResult<PyFigure> {
    check_nodes(radii.0.records.len()).raised(py)?;
    check_predictions(radii).raised(py)?;
    let nodes = structure::purities(&graph.0, &radii.0);
    if nodes.is_empty() {
        let problem = "no node has all its neighbours among these radii; find the radii of all nodes";
        return Err(Failure::input(problem).raise(py));
    }
    finished(py, figures::purity(&nodes, attack(radii), radii.0.max_budget()), look)
}

/// What one attacker does to all predictions.
#[pyfunction]
pub(crate) fn plot_collective(py: Python<'_>, found: &PyCollectives, look: Look) -> PyResult<PyFigure> {
    finished(py, figures::collective(&Together::of(&found.0)), look)
}

/// Margins while training, of a log with a line of JSON a step; `aims` are the margins that labelled and unlabelled nodes are
/// to have, where the method asks for some.
#[pyfunction]
pub(crate) fn plot_training(
    py: Python<'_>,
    name: String,
    log: Vec<String>,
    aims: Option<(f64, f64)>,
    look: Look,
) -> PyResult<PyFigure> {
    let steps = log.iter().map(|line| serde_json::from_str(line)).collect::<Result<Vec<StepRecord>, _>>().raised(py)?;
    let run = Run::of_steps(name, &steps);
    if run.labelled.is_empty() && run.unlabelled.is_empty() {
        let problem = "the log has no margins; train with a budget and log_margins=40 to have them logged";
        return Err(Failure::input(problem).raise(py));
    }
    let aims = aims.map(|(labelled, unlabelled)| Aims { labelled, unlabelled });
    finished(py, figures::dynamics(&[run], aims), look)
}

fn attack(radii: &PyRadii) -> Attack {
    Attack::of(&radii.0.header.budget)
}

fn check_nodes(count: usize) -> Result<(), Failure> {
    if count == 0 { Err(Failure::input("there are no nodes to show; give results of at least one")) } else { Ok(()) }
}

/// Refuses radii that do not name the predicted class of each node.
fn check_predictions(radii: &PyRadii) -> Result<(), Failure> {
    let header = &radii.0.header;
    if header.scan {
        return Err(Failure::input("a scan does not name classes; find the radii without scan=True"));
    }
    if header.target_class != TargetClass::Predicted {
        return Err(Failure::input(
            "these radii are of labels, and purity is about predictions; find those of target_class=\"predicted\"",
        ));
    }
    Ok(())
}

fn finished(py: Python<'_>, figure: Figure, (title, width, height): Look) -> PyResult<PyFigure> {
    let figure = figure.size(Size::new(width, height).raised(py)?);
    Ok(PyFigure(match title {
        Some(title) => figure.title(title),
        None => figure,
    }))
}

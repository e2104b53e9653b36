//! Certifying nodes, and finding their radii.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use nodeproof::{Certifier, Engine, Event, Finish, Graph, Model, TargetClass};
use nodeproof_report::results::{Certificates, Radii, RadiusRecord, Record};
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;

use crate::arrays;
use crate::budget::PyBudget;
use crate::certificates::PyCertificates;
use crate::errors::{Failure, Raised};
use crate::graph::PyGraph;
use crate::model::PyModel;
use crate::radii::PyRadii;
use crate::work;

/// How hard to try, on what, and with how many threads.
#[derive(Debug, Clone, Copy)]
struct Settings {
    engine: Engine,
    class: TargetClass,
    time_limit: Option<Duration>,
    total_time_limit: Option<Duration>,
    threads: usize,
}

impl Settings {
    fn new(
        engine: &str,
        target_class: &str,
        time_limit: Option<f64>,
        total_time_limit: Option<f64>,
        threads: usize,
    ) -> Result<Self, Failure> {
        let named = Engine::ALL.into_iter().find(|known| known.name() == engine);
        let engine = named
            .ok_or_else(|| Failure::input(format!("`{engine}` is no engine; there are fast, tight and complete")))?;
        let class = match target_class {
            "predicted" => TargetClass::Predicted,
            "label" => TargetClass::Label,
            other => {
                return Err(Failure::input(format!(
                    "`{other}` cannot be certified; give predicted or label as target_class"
                )));
            }
        };
        let (time_limit, total_time_limit) =
            (limit("time_limit", time_limit)?, limit("total_time_limit", total_time_limit)?);
        Ok(Self { engine, class, time_limit, total_time_limit, threads })
    }

    fn certifier<'a>(self, graph: &'a Graph, model: &'a Model) -> Result<Certifier<'a>, Failure> {
        let mut certifier =
            Certifier::new(graph, model)?.engine(self.engine).target_class(self.class).threads(self.threads);
        if let Some(limit) = self.time_limit {
            certifier = certifier.time_limit(limit);
        }
        if let Some(limit) = self.total_time_limit {
            certifier = certifier.total_time_limit(limit);
        }
        Ok(certifier)
    }
}

fn limit(name: &str, seconds: Option<f64>) -> Result<Option<Duration>, Failure> {
    let Some(seconds) = seconds else { return Ok(None) };
    let duration = Duration::try_from_secs_f64(seconds);
    duration.map(Some).map_err(|_| Failure::input(format!("{name}={seconds} is no time; give seconds, or None")))
}

/// Certifies nodes.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "one for each option")]
pub(crate) fn certify(
    py: Python<'_>,
    graph: &PyGraph,
    model: &PyModel,
    budget: &PyBudget,
    nodes: PyReadonlyArray1<'_, u32>,
    engine: &str,
    target_class: &str,
    time_limit: Option<f64>,
    total_time_limit: Option<f64>,
    threads: usize,
    timings: bool,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<PyCertificates> {
    let settings = Settings::new(engine, target_class, time_limit, total_time_limit, threads).raised(py)?;
    let (graph, model, budget) = (Arc::clone(&graph.0), Arc::clone(&model.0), budget.0.clone());
    let nodes = arrays::nodes(&nodes);
    let results = work::run(py, progress.as_ref(), move |watch| {
        let mut results = Certificates::of(&[], (&graph, &model), &budget, settings.engine, settings.class);
        let certifier = settings.certifier(&graph, &model)?.budget(budget);
        let finish = certifier.certify_each(&nodes, |event| {
            if let Event::Certified(certificate) = event {
                results.records.push(Record::new(&certificate, &graph, timings));
            }
            go_on(watch.tell(results.records.len(), nodes.len()))
        })?;
        if finish == Finish::Complete { Ok(results) } else { Err(Failure::Stopped) }
    })?;
    Ok(PyCertificates(results))
}

/// Finds the radii of nodes up to the budget's global one.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "one for each option")]
pub(crate) fn radius(
    py: Python<'_>,
    graph: &PyGraph,
    model: &PyModel,
    budget: &PyBudget,
    nodes: PyReadonlyArray1<'_, u32>,
    engine: &str,
    target_class: &str,
    time_limit: Option<f64>,
    scan: bool,
    threads: usize,
    timings: bool,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<PyRadii> {
    let settings = Settings::new(engine, target_class, time_limit, None, threads).raised(py)?;
    if scan && settings.engine != Engine::Fast {
        let problem = "scan=True is the paper's measure, which is about the engine fast; add engine=\"fast\", or leave out \
                       scan to find radii by bisection";
        return Err(Failure::input(problem).raise(py));
    }
    let (graph, model, budget) = (Arc::clone(&graph.0), Arc::clone(&model.0), budget.0.clone());
    let nodes = arrays::nodes(&nodes);
    let results = work::run(py, progress.as_ref(), move |watch| {
        let most = budget.global();
        let mut results = Radii::of(&[], (&graph, &model), &budget, settings.engine, settings.class);
        results.scan = scan;
        let certifier = settings.certifier(&graph, &model)?.budget(budget);
        if scan {
            let tell = |global: u32, _| go_on(watch.tell(global as usize, most as usize));
            let largest = certifier.certified_radii(&nodes, most, tell)?.ok_or(Failure::Stopped)?;
            let scanned = nodes.iter().zip(largest);
            results.records = scanned.map(|(&node, largest)| RadiusRecord::scanned(node, largest, &graph)).collect();
        } else {
            let tell = |_, done, total| go_on(watch.tell(done, total));
            let radii = certifier.radii(&nodes, most, tell)?.ok_or(Failure::Stopped)?;
            results.records = radii.iter().map(|radius| RadiusRecord::new(radius, most, &graph, timings)).collect();
        }
        Ok(results)
    })?;
    Ok(PyRadii(results))
}

fn go_on(stop: bool) -> ControlFlow<()> {
    if stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

//! Certifying nodes, and finding their radii.

use std::ops::ControlFlow;
use std::sync::Arc;

use nodeproof::results::{Certificates, Header, Radii};
use nodeproof::{Certificate, Certifier, CertifySettings, Event, Finish};
use pyo3::prelude::*;

use crate::arrays;
use crate::certificates::PyCertificates;
use crate::earlier::PyEarlier;
use crate::errors::{Failure, Raised};
use crate::graph::PyGraph;
use crate::model::PyModel;
use crate::radii::PyRadii;
use crate::settings::PySettings;
use crate::work;

/// Certifies nodes, but for those whose certificates are among earlier ones and still hold.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "one for each option")]
pub(crate) fn certify(
    py: Python<'_>,
    graph: &PyGraph,
    model: &PyModel,
    settings: &PySettings,
    nodes: arrays::Array1<'_, u32>,
    timings: bool,
    since: Option<&PyEarlier>,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<PyCertificates> {
    let (graph, model, settings) = (Arc::clone(&graph.0), Arc::clone(&model.0), settings.0.clone());
    let nodes = arrays::nodes(&nodes);
    settings.validate(&graph, &nodes).raised(py)?;
    let since = since.map(|since| Arc::clone(&since.0));
    let results = work::run(py, progress.as_ref(), move |watch| {
        let header = Header::new(&graph, &model, &settings, nodes.len()).timings(timings);
        let certifier = Certifier::new(&graph, &model)?.settings(settings);
        let (mut results, mut carried) = match since {
            Some(since) => since.carried(&certifier, header, &nodes)?,
            None => (Certificates::new(header), vec![None; nodes.len()]),
        };
        let left: Vec<_> =
            nodes.iter().zip(&carried).filter(|(_, carried)| carried.is_none()).map(|(&node, _)| node).collect();
        let mut finish = Finish::Complete;
        if !left.is_empty() || nodes.is_empty() {
            finish = certifier.certify_each(&left, |event| {
                if let Event::Certified(certificate) = event {
                    take_carried(&mut carried, &mut results);
                    results.records.push(certificate);
                }
                go_on(watch.tell(results.records.len(), nodes.len()))
            })?;
        }
        take_carried(&mut carried, &mut results);
        if finish == Finish::Complete { Ok(results) } else { Err(Failure::Stopped) }
    })?;
    Ok(PyCertificates(results))
}

/// Takes what is carried over of the nodes that come next.
fn take_carried(carried: &mut [Option<Certificate>], results: &mut Certificates) {
    while let Some(certificate) = carried.get_mut(results.records.len()).and_then(Option::take) {
        results.records.push(certificate);
    }
}

/// Certifies nodes under one global budget after the other; what they share is prepared once.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "one for each option")]
pub(crate) fn certify_budgets(
    py: Python<'_>,
    graph: &PyGraph,
    model: &PyModel,
    settings: &PySettings,
    budgets: Vec<u32>,
    nodes: arrays::Array1<'_, u32>,
    timings: bool,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<Vec<PyCertificates>> {
    let (graph, model, settings) = (Arc::clone(&graph.0), Arc::clone(&model.0), settings.0.clone());
    let nodes = arrays::nodes(&nodes);
    let under = |global: u32| {
        let mut settings = settings.clone();
        settings.budget = settings.budget.with_global(global);
        settings
    };
    let all: Vec<CertifySettings> = budgets.iter().map(|&global| under(global)).collect();
    all.iter().try_for_each(|settings| settings.validate(&graph, &nodes)).raised(py)?;
    let results = work::run(py, progress.as_ref(), move |watch| {
        let header = |settings| Header::new(&graph, &model, settings, nodes.len()).timings(timings);
        let mut results: Vec<Certificates> = all.iter().map(|settings| Certificates::new(header(settings))).collect();
        let (mut done, total) = (0, nodes.len() * budgets.len());
        let certifier = Certifier::new(&graph, &model)?.settings(settings);
        let finish = certifier.certify_budgets(&nodes, &budgets, |_, event| {
            if let Event::Certified(certificate) = event {
                results[done / nodes.len()].records.push(certificate);
                done += 1;
            }
            go_on(watch.tell(done, total))
        })?;
        if finish == Finish::Complete { Ok(results) } else { Err(Failure::Stopped) }
    })?;
    Ok(results.into_iter().map(PyCertificates).collect())
}

/// Finds the radii of nodes up to the budget's global one.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "one for each option")]
pub(crate) fn radius(
    py: Python<'_>,
    graph: &PyGraph,
    model: &PyModel,
    settings: &PySettings,
    nodes: arrays::Array1<'_, u32>,
    scan: bool,
    timings: bool,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<PyRadii> {
    let (graph, model, settings) = (Arc::clone(&graph.0), Arc::clone(&model.0), settings.0.clone());
    let nodes = arrays::nodes(&nodes);
    settings.validate(&graph, &nodes).raised(py)?;
    if scan {
        settings.validate_scan().raised(py)?;
    }
    let results = work::run(py, progress.as_ref(), move |watch| {
        let most = settings.budget.varied();
        let header = Header::new(&graph, &model, &settings, nodes.len()).scan(scan).timings(timings);
        let mut results = Radii::new(header);
        let certifier = Certifier::new(&graph, &model)?.settings(settings);
        let mut search = if scan { certifier.scan_radii(&nodes, most) } else { certifier.search_radii(&nodes, most) };
        let finish = search.run(|search, _| {
            let (done, total) = if scan { (search.round(), most as usize) } else { search.progress() };
            go_on(watch.tell(done, total))
        })?;
        if finish == Finish::Cancelled {
            return Err(Failure::Stopped);
        }
        results.records = search.radii();
        Ok(results)
    })?;
    Ok(PyRadii(results))
}

fn go_on(stop: bool) -> ControlFlow<()> {
    if stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

//! What one attacker does to all predictions.

use std::ops::ControlFlow;
use std::sync::Arc;

use nodeproof::{Certifier, CertifySettings, Collective, Engine};
use pyo3::prelude::*;

use crate::certificates::Flips;
use crate::errors::Failure;
use crate::graph::PyGraph;
use crate::model::PyModel;
use crate::radii::PyRadii;
use crate::work;

/// The global budget, how many predictions count, change at most, do so as far as radii tell, and are not robust one by one; and the attack, with the
/// nodes that it changes.
type Answer = (u32, [usize; 4], Flips, Vec<u32>);

/// How many predictions change under each of these global budgets, all else in the budget being that of the radii.
#[pyfunction]
pub(crate) fn collective(
    py: Python<'_>,
    graph: &PyGraph,
    model: &PyModel,
    radii: &PyRadii,
    budgets: Vec<u32>,
    threads: usize,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<Vec<Answer>> {
    let (graph, model, radii) = (Arc::clone(&graph.0), Arc::clone(&model.0), radii.0.clone());
    let answers = work::run(py, progress.as_ref(), move |watch| {
        let header = &radii.header;
        radii.check_about(&graph, &model).map_err(Failure::input)?;
        let settings = |global: u32| {
            let mut settings = CertifySettings::new(header.budget.clone().with_varied(global));
            (settings.target_class, settings.engine, settings.threads) =
                (header.target_class, Engine::Complete, threads);
            (settings.margin, settings.arithmetic) = (header.margin, header.arithmetic);
            settings
        };
        let nodes: Vec<_> = radii.records.iter().map(|radius| radius.node).collect();
        let mut found: Vec<Collective> = Vec::new();
        for &global in &budgets {
            let settings = settings(global);
            settings.validate(&graph, &nodes)?;
            let certifier = Certifier::new(&graph, &model)?.settings(settings);
            let answer = certifier.collective(&radii.records, |_, done, total| {
                // All stages of a budget are one step, as nobody knows how long they take.
                let part = (1000 * done).checked_div(total).unwrap_or(0).min(999);
                let stop = watch.tell(1000 * found.len() + part, 1000 * budgets.len());
                if stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })?;
            found.push(answer.ok_or(Failure::Stopped)?);
        }
        Ok(found)
    })?;
    Ok(answers.iter().map(answer).collect())
}

fn answer(of: &Collective) -> Answer {
    let flips = of.flips.iter().map(|flip| (flip.node.0, flip.attribute.0, flip.to)).collect();
    let changed = of.changed.iter().map(|node| node.0).collect();
    (of.global, [of.targets, of.at_most, of.by_radii, of.alone], flips, changed)
}

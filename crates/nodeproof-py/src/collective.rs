//! What one attacker does to all predictions.

use std::ops::ControlFlow;
use std::sync::Arc;

use nodeproof::results::{Collectives, Header, Results};
use nodeproof::{Certifier, CertifySettings, Collective, Engine};
use pyo3::prelude::*;

use crate::certificates::Flips;
use crate::errors::Failure;
use crate::graph::PyGraph;
use crate::model::PyModel;
use crate::radii::PyRadii;
use crate::work;

/// The global budget, how many predictions count, change at most, do so as far as radii tell, and are not robust one by one; and the attack, with the
/// nodes that it changes; and all of it as a file.
type Answer = (u32, [usize; 4], Flips, Vec<u32>, Vec<u8>);

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
    work::run(py, progress.as_ref(), move |watch| {
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
        let mut found: Vec<Answer> = Vec::new();
        for &global in &budgets {
            let settings = settings(global);
            settings.validate(&graph, &nodes)?;
            let about = Header::new(&graph, &model, &settings, nodes.len());
            let certifier = Certifier::new(&graph, &model)?.settings(settings);
            let answer = certifier.collective(&radii.records, |_, done, total| {
                // All stages of a budget are one step, as nobody knows how long they take.
                let part = (1000 * done).checked_div(total).unwrap_or(0).min(999);
                let stop = watch.tell(1000 * found.len() + part, 1000 * budgets.len());
                if stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })?;
            let file = Collectives::new(about, nodes.clone(), vec![global]);
            found.push(as_answer(file, answer.ok_or(Failure::Stopped)?)?);
        }
        Ok(found)
    })
}

/// The answer, which is to go into `file`.
fn as_answer(mut file: Collectives, of: Collective) -> Result<Answer, Failure> {
    let flips = of.flips.iter().map(|flip| (flip.node.0, flip.attribute.0, flip.to)).collect();
    let changed = of.changed.iter().map(|node| node.0).collect();
    let (global, counts) = (of.global, [of.targets, of.at_most, of.by_radii, of.alone]);
    let mut written = Vec::new();
    file.records.push(of);
    file.write(&mut written).map_err(|error| Failure::Internal(error.to_string()))?;
    Ok((global, counts, flips, changed, written))
}

/// The collective certificates of these files, one of each budget, in one; `None` if there are none.
///
/// # Errors
/// If they are about different things, or two about one budget.
pub(crate) fn together(files: &[Vec<u8>]) -> Result<Option<Collectives>, Failure> {
    let mut all: Option<Collectives> = None;
    for file in files {
        let found = match Results::read_from(file.as_slice(), "the answer") {
            Ok(Results::Collectives(found)) => found,
            Ok(other) => return Err(Failure::Internal(format!("an answer is {}", other.kind()))),
            Err(error) => return Err(Failure::Internal(error.to_string())),
        };
        match &mut all {
            None => all = Some(found),
            Some(all) => add(all, found)?,
        }
    }
    Ok(all)
}

/// Puts more answers to those that there are.
fn add(all: &mut Collectives, more: Collectives) -> Result<(), Failure> {
    let of_any_budget = |header: &Header| {
        let mut header = header.clone();
        header.budget = header.budget.with_varied(1);
        header
    };
    if of_any_budget(&all.header) != of_any_budget(&more.header) || all.nodes != more.nodes {
        return Err(Failure::input(
            "collective certificates are about different graphs, models, limits or nodes; give them different names",
        ));
    }
    if let Some(twice) = more.budgets.iter().find(|&budget| all.budgets.contains(budget)) {
        return Err(Failure::input(format!("there are two collective certificates of a budget of {twice}; give one")));
    }
    if more.budgets.last() > all.budgets.last() {
        all.header = more.header;
    }
    all.records.extend(more.records);
    all.records.sort_by_key(|record| record.global);
    all.budgets = all.records.iter().map(|record| record.global).collect();
    Ok(())
}

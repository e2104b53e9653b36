//! What one attacker does to all predictions.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

use nodeproof::results::{Collectives, Header};
use nodeproof::{Certifier, CertifySettings, Engine, NodeId};
use nodeproof_check::{CollectiveChecker, KnownRadii, Rejection, Share, Shares};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use rayon::prelude::*;

use crate::certificates::Flips;
use crate::check::AT_ONCE;
use crate::errors::{Failure, Raised};
use crate::graph::PyGraph;
use crate::lines;
use crate::model::PyModel;
use crate::radii::PyRadii;
use crate::work;

/// The global budget, how many predictions count, change at most, do so as far as radii tell, and are not robust one by one; and the attack, with the
/// nodes that it changes.
type Answer = (u32, [usize; 4], Flips, Vec<u32>);

/// Collective certificates of one model.
#[pyclass(name = "Collectives", module = "nodeproof._core", frozen)]
pub(crate) struct PyCollectives(pub(crate) Collectives);

#[pymethods]
impl PyCollectives {
    /// What they say, budget by budget.
    fn answers(&self) -> Vec<Answer> {
        let answer = |of: &nodeproof::Collective| {
            let flips = of.flips.iter().map(|flip| (flip.node.0, flip.attribute.0, flip.to)).collect();
            let changed = of.changed.iter().map(|node| node.0).collect();
            (of.global, [of.targets, of.at_most, of.by_radii, of.alone], flips, changed)
        };
        self.0.records.iter().map(answer).collect()
    }

    /// The one at a place, alone.
    fn one(&self, py: Python<'_>, place: usize) -> PyResult<Self> {
        let record = self.0.records.get(place).ok_or_else(|| Failure::Internal(format!("there is no answer {place}")));
        let record = record.raised(py)?;
        let mut header = self.0.header.clone();
        header.budget = header.budget.with_varied(record.global);
        let mut one = Collectives::new(header, self.0.nodes.clone(), vec![record.global]);
        one.records.push(record.clone());
        Ok(Self(one))
    }

    /// Those of several runs that asked the same but for the global budget.
    #[staticmethod]
    fn joined(py: Python<'_>, parts: Vec<PyRef<'_, Self>>) -> PyResult<Self> {
        let mut parts = parts.iter().map(|part| part.0.clone());
        let first = parts.next().ok_or_else(|| Failure::input("there is nothing to put together; give some answers"));
        let mut all = first.raised(py)?;
        parts.try_for_each(|more| add(&mut all, more)).raised(py)?;
        Ok(Self(all))
    }

    /// The global budgets whose answers the checker rejects, and why.
    fn check(
        &self,
        py: Python<'_>,
        graph: &PyGraph,
        model: &PyModel,
        radii: Option<&PyRadii>,
        threads: usize,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<BTreeMap<u32, String>> {
        let (graph, model, found) = (Arc::clone(&graph.0), Arc::clone(&model.0), self.0.clone());
        let radii = radii.map(|radii| radii.0.clone());
        work::run(py, progress, move |watch| {
            let known = radii.map(|radii| KnownRadii::new(radii, &found, &graph, &model)).transpose();
            let known = known.map_err(Failure::input)?;
            let (pool, total) = (work::pool(threads)?, found.nodes.len() * found.records.len());
            let (mut rejected, mut done) = (BTreeMap::new(), 0);
            for record in &found.records {
                let checker = CollectiveChecker::new(&found, record, known.as_ref(), (&graph, &model));
                let (checker, mut shares) = (checker.map_err(Failure::input)?, Shares::default());
                for some in found.nodes.chunks(AT_ONCE) {
                    let share = |&node: &NodeId| checker.share(node);
                    let some_shares: Result<Vec<Share>, _> = pool.install(|| some.par_iter().map(share).collect());
                    some_shares.map_err(Failure::input)?.into_iter().for_each(|share| shares.add(share));
                    done += some.len();
                    if watch.tell(done, total) {
                        return Err(Failure::Stopped);
                    }
                }
                if let Err(rejection) = checker.judge(&shares) {
                    rejected.insert(record.global, in_words(&rejection, known.is_some()));
                }
            }
            Ok(rejected)
        })
    }

    fn __len__(&self) -> usize {
        self.0.records.len()
    }

    #[getter]
    fn graph_fingerprint(&self) -> &str {
        &self.0.header.graph.fingerprint
    }

    /// The file, as the command line writes it.
    fn lines<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        lines::written(py, |bytes| self.0.write(bytes))
    }

    /// Those whose file `lines` is.
    #[staticmethod]
    fn of_lines(py: Python<'_>, lines: &[u8]) -> PyResult<Self> {
        py.detach(|| lines::read(lines, Collectives::of)).map(Self).raised(py)
    }

    /// Reads a file.
    #[staticmethod]
    fn read(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        py.detach(|| Collectives::read(path)).map(Self).raised(py)
    }
}

/// How many predictions change under each of these global budgets, ascending, all else in the budget being that of the radii.
#[pyfunction]
pub(crate) fn collective(
    py: Python<'_>,
    graph: &PyGraph,
    model: &PyModel,
    radii: &PyRadii,
    budgets: Vec<u32>,
    threads: usize,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<PyCollectives> {
    let (graph, model, radii) = (Arc::clone(&graph.0), Arc::clone(&model.0), radii.0.clone());
    let found = work::run(py, progress.as_ref(), move |watch| {
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
        let largest = settings(budgets.last().copied().unwrap_or(0));
        let about = Header::new(&graph, &model, &largest, nodes.len());
        let mut found = Collectives::new(about, nodes.clone(), budgets.clone());
        for &global in &budgets {
            let settings = settings(global);
            settings.validate(&graph, &nodes)?;
            let certifier = Certifier::new(&graph, &model)?.settings(settings);
            let answer = certifier.collective(&radii.records, |_, done, total| {
                // All stages of a budget are one step, as nobody knows how long they take.
                let part = (1000 * done).checked_div(total).unwrap_or(0).min(999);
                let stop = watch.tell(1000 * found.records.len() + part, 1000 * budgets.len());
                if stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })?;
            found.records.push(answer.ok_or(Failure::Stopped)?);
        }
        Ok(found)
    })?;
    Ok(PyCollectives(found))
}

/// Why an answer is rejected, and what to do where radii may show more.
fn in_words(rejection: &Rejection, has_radii: bool) -> String {
    match rejection {
        Rejection::AtMost(_) if !has_radii => {
            format!("{rejection}; give the radii that it rests on, found with proofs=True")
        }
        _ => rejection.to_string(),
    }
}

/// Puts more answers to those that there are.
fn add(all: &mut Collectives, more: Collectives) -> Result<(), Failure> {
    let mut header = more.header.clone();
    header.budget = all.header.budget.clone();
    let is_same = all.header == header && all.header.budget.is_same_but_for_varied(&more.header.budget);
    if !is_same || all.nodes != more.nodes {
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

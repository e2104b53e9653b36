//! Training.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use nodeproof::provenance::{Provenance, Worth};
use nodeproof::results::SplitFields;
use nodeproof::train::{Sample, Trainer};
use nodeproof::{Method, TrainSettings};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arrays;
use crate::budget::PyBudget;
use crate::errors::{Failure, Raised};
use crate::graph::PyGraph;
use crate::model::{GivenPropagation, PyModel};
use crate::split::PySplit;
use crate::work;

/// Where a run is kept, so that it can go on.
#[derive(Debug, Clone, FromPyObject)]
pub(crate) struct Checkpoint {
    #[pyo3(item)]
    path: PathBuf,
    #[pyo3(item)]
    every: usize,
    #[pyo3(item)]
    resume: bool,
}

/// A model, its log, its metadata and its steps.
type Trained = (PyModel, Vec<String>, BTreeMap<String, String>, usize);

/// Trains a model. Returned with it: the log, a line of JSON a step; the metadata for its file; and the number of steps.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "one for each option")]
pub(crate) fn train(
    py: Python<'_>,
    graph: &PyGraph,
    split: &PySplit,
    method: &str,
    budget: Option<&PyBudget>,
    options: &Bound<'_, PyDict>,
    log_margins: usize,
    threads: usize,
    checkpoint: Option<Checkpoint>,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<Trained> {
    let method: Method = method.parse().raised(py)?;
    let mut settings = TrainSettings::new(method);
    method.check_budget(budget.is_some()).raised(py)?;
    if log_margins > 0 && budget.is_none() {
        return Err(Failure::input("log_margins are margins under a budget; give global_budget, such as 12").raise(py));
    }
    let is_given = budget.is_some();
    if let Some(budget) = budget {
        settings.budget = budget.0.clone();
    }
    set_all(&mut settings, options)?;
    let (graph, split) = (Arc::clone(&graph.0), split.0.clone());
    let (model, log, metadata, steps) = work::run(py, progress.as_ref(), move |watch| {
        let pool = work::pool(threads)?;
        pool.install(|| {
            let mut trainer = Trainer::new(&graph, &split, settings)?;
            if let Some(checkpoint) = checkpoint.as_ref().filter(|kept| kept.resume && kept.path.exists()) {
                trainer.resume(&checkpoint.path)?;
            }
            let all = trainer.settings().all_steps();
            let budget = trainer.settings().budget.clone();
            let sample = Sample::of_each(&graph, &split, &budget, log_margins).threads(threads);
            let mut log = Vec::new();
            while !trainer.is_finished() {
                let before = (log_margins > 0).then(|| trainer.current().clone());
                let Some(mut step) = trainer.step()? else { break };
                if let Some(before) = before {
                    sample.complete(&mut step, &before)?;
                }
                log.push(serde_json::to_string(&step)?);
                let stop = watch.tell(step.step, all);
                let due = |kept: &&Checkpoint| stop || step.step.is_multiple_of(kept.every.max(1));
                if let Some(kept) = checkpoint.as_ref().filter(due) {
                    trainer.write_checkpoint(&kept.path)?;
                }
                if stop {
                    return Err(Failure::Stopped);
                }
            }
            if let Some(kept) = &checkpoint {
                trainer.write_checkpoint(&kept.path)?;
            }
            let (settings, fields, steps) = (trainer.settings(), SplitFields::new(&split, None), trainer.steps_done());
            let provenance = Provenance { graph: &graph, settings, split: &fields, steps, worth: Worth::default() };
            let metadata = if is_given { provenance.metadata() } else { without_budget(provenance.metadata())? };
            Ok((trainer.into_model(), log, metadata, steps))
        })
    })?;
    Ok((PyModel(Arc::new(model)), log, metadata, steps))
}

/// What the file of a model says that was trained without a budget.
///
/// # Errors
/// If the options are not JSON.
fn without_budget(mut metadata: BTreeMap<String, String>) -> Result<BTreeMap<String, String>, Failure> {
    metadata.remove("budget");
    if let Some(options) = metadata.get_mut("options") {
        let mut fields: serde_json::Map<String, serde_json::Value> = serde_json::from_str(options)?;
        fields.remove("budget");
        *options = serde_json::to_string(&fields)?;
    }
    Ok(metadata)
}

/// The share of nodes with a label whose predicted class is their label.
#[pyfunction]
pub(crate) fn accuracy(
    py: Python<'_>,
    graph: &PyGraph,
    model: &PyModel,
    nodes: arrays::Array1<'_, u32>,
) -> PyResult<Option<f64>> {
    let (graph, model, nodes) = (Arc::clone(&graph.0), Arc::clone(&model.0), arrays::nodes(&nodes));
    work::run(py, None, move |_| {
        let pool = work::pool(0)?;
        Ok(pool.install(|| nodeproof::train::accuracy(&graph, &model, &nodes))?)
    })
}

/// Puts what was given in place of the defaults.
fn set_all(settings: &mut TrainSettings, given: &Bound<'_, PyDict>) -> PyResult<()> {
    let py = given.py();
    for (name, value) in given.iter() {
        let name: String = name.extract()?;
        settings.method.check_use(&name).raised(py)?;
        match name.as_str() {
            "architecture" => settings.architecture = value.extract::<String>()?.parse().raised(py)?,
            "hidden" => settings.hidden = Some(value.extract()?),
            "steps" => settings.steps = value.extract()?,
            "labelled_steps" => settings.labelled_steps = value.extract()?,
            "batch" => settings.batch = value.extract()?,
            "labelled_batch" => settings.labelled_batch = value.extract()?,
            "learning_rate" => settings.learning_rate = value.extract()?,
            "schedule" => settings.schedule = value.extract::<String>()?.parse().raised(py)?,
            "weight_decay" => settings.weight_decay = value.extract()?,
            "dropout" => settings.dropout = Some(value.extract()?),
            "attribute_dropout" => settings.attribute_dropout = value.extract()?,
            "cross_entropy_weight" => settings.cross_entropy_weight = value.extract()?,
            "robust_weight" => settings.robust_weight = value.extract()?,
            "worst_case" => settings.worst_case = Some(value.extract::<String>()?.parse().raised(py)?),
            "warm_up" => settings.warm_up = value.extract()?,
            "labelled_margin" => settings.labelled_margin = value.extract()?,
            "unlabelled_margin" => settings.unlabelled_margin = value.extract()?,
            "saturation" => settings.saturation = value.extract()?,
            "clip" => settings.clip = value.extract()?,
            "patience" => settings.patience = value.extract()?,
            "propagation" => {
                settings.propagation = Some(value.extract::<GivenPropagation>()?.propagation().raised(py)?);
            }
            "seed" => settings.seed = value.extract()?,
            other => return Err(Failure::input(format!("training has no option `{other}`")).raise(py)),
        }
    }
    Ok(())
}

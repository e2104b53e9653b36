//! Training.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use nodeproof::train::{Method, Schedule, StepReport, TrainOptions, Trainer};
use nodeproof::{NodeId, Part};
use numpy::PyReadonlyArray1;
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
    budget: &PyBudget,
    options: &Bound<'_, PyDict>,
    threads: usize,
    checkpoint: Option<Checkpoint>,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<Trained> {
    let method: Method = method.parse().raised(py)?;
    let mut chosen = TrainOptions::new(method);
    chosen.budget = budget.0.clone();
    set_all(&mut chosen, options)?;
    let (graph, split) = (Arc::clone(&graph.0), split.0.clone());
    let train = split.part(Part::Train);
    let labelled = train.iter().filter(|&&node: &&NodeId| graph.label(node).is_some()).count();
    let chosen = chosen.suited_to(&graph, labelled);
    let (model, log, metadata, steps) = work::run(py, progress.as_ref(), move |watch| {
        let pool = work::pool(threads)?;
        pool.install(|| {
            let mut trainer = Trainer::new(&graph, &split, chosen)?;
            if let Some(checkpoint) = checkpoint.as_ref().filter(|kept| kept.resume && kept.path.exists()) {
                trainer.resume(&checkpoint.path)?;
            }
            let all = trainer.options().all_steps();
            let mut log = Vec::new();
            while let Some(report) = trainer.step()? {
                log.push(step_line(&report)?);
                let stop = watch.tell(report.step, all);
                let due = |kept: &&Checkpoint| stop || report.step.is_multiple_of(kept.every.max(1));
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
            let metadata = BTreeMap::from([
                ("method", trainer.options().method.to_string()),
                ("seed", trainer.options().seed.to_string()),
                ("options", serde_json::to_string(trainer.options())?),
                ("steps", trainer.steps_done().to_string()),
                ("nodeproof", env!("CARGO_PKG_VERSION").to_owned()),
                ("graph", graph.fingerprint()),
            ]);
            let metadata: BTreeMap<String, String> =
                metadata.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
            let steps = trainer.steps_done();
            Ok((trainer.into_model(), log, metadata, steps))
        })
    })?;
    Ok((PyModel(Arc::new(model)), log, metadata, steps))
}

/// A step as a line of JSON, without times, which differ from run to run.
fn step_line(report: &StepReport) -> Result<String, Failure> {
    let mut value = serde_json::to_value(report)?;
    value.as_object_mut().and_then(|fields| fields.remove("times"));
    Ok(serde_json::to_string(&value)?)
}

/// The share of nodes with a label whose predicted class is their label.
#[pyfunction]
pub(crate) fn accuracy(
    py: Python<'_>,
    graph: &PyGraph,
    model: &PyModel,
    nodes: PyReadonlyArray1<'_, u32>,
) -> PyResult<Option<f64>> {
    let (graph, model, nodes) = (Arc::clone(&graph.0), Arc::clone(&model.0), arrays::nodes(&nodes));
    work::run(py, None, move |_| {
        let pool = work::pool(0)?;
        Ok(pool.install(|| nodeproof::train::accuracy(&graph, &model, &nodes))?)
    })
}

/// Puts what was given in place of the defaults.
fn set_all(options: &mut TrainOptions, given: &Bound<'_, PyDict>) -> PyResult<()> {
    for (name, value) in given.iter() {
        let name: String = name.extract()?;
        match name.as_str() {
            "hidden" => options.hidden = value.extract()?,
            "steps" => options.steps = value.extract()?,
            "labelled_steps" => options.labelled_steps = value.extract()?,
            "batch" => options.batch = value.extract()?,
            "learning_rate" => options.learning_rate = value.extract()?,
            "schedule" => options.schedule = schedule(&value)?,
            "weight_decay" => options.weight_decay = value.extract()?,
            "dropout" => options.dropout = value.extract()?,
            "attribute_dropout" => options.attribute_dropout = value.extract()?,
            "cross_entropy_weight" => options.cross_entropy_weight = value.extract()?,
            "robust_weight" => options.robust_weight = value.extract()?,
            "warm_up" => options.warm_up = value.extract()?,
            "labelled_margin" => options.labelled_margin = value.extract()?,
            "unlabelled_margin" => options.unlabelled_margin = value.extract()?,
            "saturation" => options.saturation = value.extract()?,
            "clip" => options.clip = value.extract()?,
            "patience" => options.patience = value.extract()?,
            "propagation" => {
                options.propagation = value.extract::<GivenPropagation>()?.propagation().raised(given.py())?;
            }
            "seed" => options.seed = value.extract()?,
            other => return Err(Failure::input(format!("training has no option `{other}`")).raise(given.py())),
        }
    }
    Ok(())
}

fn schedule(value: &Bound<'_, PyAny>) -> PyResult<Schedule> {
    match value.extract::<String>()?.as_str() {
        "constant" => Ok(Schedule::Constant),
        "cosine" => Ok(Schedule::Cosine),
        other => {
            Err(Failure::input(format!("`{other}` is no schedule; there are constant and cosine")).raise(value.py()))
        }
    }
}

//! What the runs came to, beside what the paper says.

use nodeproof::results::Radii;
use nodeproof::{Engine, Method, Model};
use nodeproof_report::shares::Shares;
use serde::Serialize;

use super::paper::{BUDGET, Row, STANDARD};
use super::plan::{MAX_BUDGET_BEYOND, Network, Plan, Source};
use super::summary::Findings;
use crate::LabError;

/// A mean over splits.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Mean {
    /// The mean.
    pub mean: f64,
    /// The standard deviation; `None` of a single split.
    pub deviation: Option<f64>,
}

impl Mean {
    fn of(values: &[f64]) -> Self {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let square = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
        Self { mean, deviation: (values.len() > 1).then(|| square.sqrt()) }
    }
}

/// What one method of training came to on one data set.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Outcome {
    /// The method.
    pub method: Method,
    /// What the paper says.
    pub paper: Row,
    /// The mean over nodes of the largest Q for which they are proven robust.
    pub radius: Mean,
    /// The share of nodes proven robust under the paper's budget.
    pub robust: Mean,
    /// Accuracy on labelled nodes.
    pub labelled: Mean,
    /// Accuracy on unlabelled nodes.
    pub unlabelled: Mean,
    /// Share of nodes that withstand the largest budget that was tried, and count with it in `radius`.
    pub withstand_all: f64,
}

/// Mean radii of a network trained by cross entropy, by engine.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Slopes {
    /// With default slopes: the `fast` engine.
    pub default: f64,
    /// With optimised bounds: the `tight` engine.
    pub optimised: f64,
}

/// The mean over nodes of the largest budget that they are proven to withstand; 0 where not even none.
fn mean_radius(radii: &Radii) -> f64 {
    let sum: f64 = radii.records.iter().map(|record| f64::from(record.withstood())).sum();
    sum / radii.records.len() as f64
}

impl<'a> Plan<'a> {
    /// What was found on one data set.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub(super) fn find(&self, source: &'a Source) -> Result<Findings, LabError> {
        let graph = &source.graph;
        let outcomes = Method::ALL.into_iter().zip(source.data.rows);
        Ok(Findings {
            data: source.data,
            sizes: [graph.nodes(), graph.edges(), graph.attribute_count(), graph.classes()],
            outcomes: outcomes.map(|(method, row)| self.outcome(source, method, row)).collect::<Result<_, _>>()?,
            slopes: self.slopes(source)?,
        })
    }

    fn outcome(&self, source: &'a Source, method: Method, paper: Row) -> Result<Outcome, LabError> {
        let mut columns: [Vec<f64>; 5] = Default::default();
        for split in 0..self.splits {
            let figures = self.figures_of(&self.network(source, split, method))?;
            columns.iter_mut().zip(figures).for_each(|(column, figure)| column.push(figure));
        }
        let [radius, robust, labelled, unlabelled, all] = columns.map(|column| Mean::of(&column));
        Ok(Outcome { method, paper, radius, robust, labelled, unlabelled, withstand_all: all.mean })
    }

    /// Mean radius, robust share, accuracy on labelled and unlabelled nodes, and the share that withstands every budget.
    fn figures_of(&self, network: &Network) -> Result<[f64; 5], LabError> {
        let radii = self.radii(network, Engine::Fast)?;
        let metadata = Model::read_metadata(network.model(self.folder))?;
        let accuracy = |key: &str| metadata.get(key).and_then(|text| text.parse().ok()).unwrap_or(f64::NAN);
        let shares = Shares::of(&radii).robust_shares();
        let robust = shares.get(BUDGET as usize).copied().unwrap_or(f64::NAN);
        let all = shares.last().copied().unwrap_or(f64::NAN);
        Ok([mean_radius(&radii), robust, accuracy("accuracy_labelled"), accuracy("accuracy_unlabelled"), all])
    }

    /// The radii of a network.
    ///
    /// # Errors
    /// If they cannot be read.
    pub(super) fn radii(&self, network: &Network, engine: Engine) -> Result<Radii, LabError> {
        let path = network.radii(self.folder, engine);
        Radii::read(&path).map_err(|source| LabError::Unreadable { path, source })
    }

    /// What optimised slopes gain.
    fn slopes(&self, source: &'a Source) -> Result<Slopes, LabError> {
        let network = self.network(source, 0, STANDARD);
        let mean = |engine| Ok::<_, LabError>(mean_radius(&self.radii(&network, engine)?.up_to(MAX_BUDGET_BEYOND)));
        Ok(Slopes { default: mean(Engine::Fast)?, optimised: mean(Engine::Tight)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_have_deviations_where_there_are_several() {
        assert_eq!(Mean::of(&[0.5]), Mean { mean: 0.5, deviation: None });
        assert_eq!(Mean::of(&[1.0, 3.0]), Mean { mean: 2.0, deviation: Some(2f64.sqrt()) });
    }
}

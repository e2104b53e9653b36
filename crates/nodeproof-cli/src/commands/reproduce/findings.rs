//! What the runs came to, beside what the paper says.

use anyhow::anyhow;
use nodeproof::Model;
use nodeproof_report::results::Radii;
use nodeproof_report::shares::Shares;

use super::paper::{BUDGET, METHODS, Method, Row, STANDARD};
use super::plan::{MAX_BUDGET_BEYOND, Network, Plan, Source};
use crate::commands::train::metadata;

/// A mean over splits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Mean {
    pub(super) mean: f64,
    /// The standard deviation; `None` of a single split.
    pub(super) deviation: Option<f64>,
}

impl Mean {
    fn of(values: &[f64]) -> Self {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let square = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
        Self { mean, deviation: (values.len() > 1).then(|| square.sqrt()) }
    }
}

/// What one way of training came to on one data set.
#[derive(Debug, Clone)]
pub(super) struct Outcome {
    pub(super) method: Method,
    pub(super) paper: Row,
    pub(super) radius: Mean,
    pub(super) robust: Mean,
    pub(super) labelled: Mean,
    pub(super) unlabelled: Mean,
    /// Share of nodes that withstand the largest budget that was tried, and count with it in `radius`.
    pub(super) withstand_all: f64,
}

/// Mean radii of a network trained by cross entropy, by engine.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slopes {
    pub(super) default: f64,
    pub(super) optimised: f64,
}

/// The mean over nodes of the largest budget that they are proven to withstand; 0 where not even none.
pub(super) fn mean_radius(radii: &Radii) -> f64 {
    let sum: f64 = radii.records.iter().map(|record| f64::from(record.robust_up_to.unwrap_or(0))).sum();
    sum / radii.records.len() as f64
}

impl<'a> Plan<'a> {
    /// The rows of the paper's table for one data set.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub(super) fn outcomes(&self, source: &'a Source) -> anyhow::Result<Vec<Outcome>> {
        METHODS.into_iter().zip(source.data.rows).map(|(method, paper)| self.outcome(source, method, paper)).collect()
    }

    fn outcome(&self, source: &'a Source, method: Method, paper: Row) -> anyhow::Result<Outcome> {
        let mut columns: [Vec<f64>; 5] = Default::default();
        for split in 0..self.splits {
            let figures = self.figures_of(&self.network(source, split, method))?;
            columns.iter_mut().zip(figures).for_each(|(column, figure)| column.push(figure));
        }
        let [radius, robust, labelled, unlabelled, all] = columns.map(|column| Mean::of(&column));
        Ok(Outcome { method, paper, radius, robust, labelled, unlabelled, withstand_all: all.mean })
    }

    /// Mean radius, robust share, accuracy on labelled and unlabelled nodes, and the share that withstands every budget.
    fn figures_of(&self, network: &Network) -> anyhow::Result<[f64; 5]> {
        let radii = self.radii(network, "fast")?;
        let training = metadata::read(&Model::read_metadata(network.model(self.folder))?).unwrap_or_default();
        let accuracy = |key: &str| training.get(key).and_then(serde_json::Value::as_f64).unwrap_or(f64::NAN);
        let shares = Shares::of(&radii).robust_shares();
        let robust = shares.get(BUDGET as usize).copied().unwrap_or(f64::NAN);
        let all = shares.last().copied().unwrap_or(f64::NAN);
        Ok([mean_radius(&radii), robust, accuracy("accuracy_labelled"), accuracy("accuracy_unlabelled"), all])
    }

    /// The radii of a network.
    ///
    /// # Errors
    /// If they cannot be read.
    pub(super) fn radii(&self, network: &Network, engine: &str) -> anyhow::Result<Radii> {
        let path = network.radii(self.folder, engine);
        Radii::read(&path).map_err(|error| anyhow!("{error}; remove {} and run the same command again", path.display()))
    }

    /// What optimised slopes gain on one data set.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub(super) fn slopes(&self, source: &'a Source) -> anyhow::Result<Slopes> {
        let network = self.network(source, 0, STANDARD);
        let mean = |engine| anyhow::Ok(mean_radius(&self.radii(&network, engine)?.up_to(MAX_BUDGET_BEYOND)));
        Ok(Slopes { default: mean("fast")?, optimised: mean("tight")? })
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

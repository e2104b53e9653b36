//! What plots need of a training log.

use serde::Deserialize;

/// A step of a training log.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[non_exhaustive]
pub struct StepRecord {
    /// The step, counted from 1.
    pub step: usize,
    /// The mean worst-case margin of labelled nodes before it, where it was logged.
    pub labelled_margin: Option<f64>,
    /// The same of unlabelled nodes.
    pub unlabelled_margin: Option<f64>,
}

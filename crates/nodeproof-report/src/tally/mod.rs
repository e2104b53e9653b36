//! What results come to: counts of verdicts and of radii, as tables for people and as JSON for programs.

mod histogram;
mod radii;
mod verdicts;

use serde::Serialize;

pub use histogram::{Bar, Histogram};
pub use radii::{RadiusFigures, RadiusSummary};
pub use verdicts::{Figures, Settled, Summary, Tally};

/// What all nodes come to and, with a split, its parts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Parts<F> {
    /// All nodes.
    pub all: F,
    /// Those that were labelled in training.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labelled: Option<F>,
    /// Those that were not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unlabelled: Option<F>,
}

impl<F> Parts<F> {
    /// Those that are there, with their names.
    fn named(&self) -> impl Iterator<Item = (&'static str, &F)> {
        let parts = [("labelled", self.labelled.as_ref()), ("unlabelled", self.unlabelled.as_ref())];
        let some = parts.into_iter().filter_map(|(name, part)| part.map(|part| (name, part)));
        std::iter::once(("all", &self.all)).chain(some)
    }
}

//! Why nodes cannot be certified.

use crate::budget::BudgetError;
use crate::edges::EdgesError;
use crate::model::ModelError;
use crate::settings::SettingsError;

/// Why nodes cannot be certified.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CertifyError {
    /// The model does not fit the graph.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The settings do not fit the graph.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The budget does not fit the graph.
    #[error(transparent)]
    Budget(#[from] BudgetError),
    /// Deletions of edges that cannot be decided.
    #[error(transparent)]
    Edges(#[from] EdgesError),
    /// More than positive margins of all predictions together.
    #[error(
        "how many predictions change together is known of positive margins in exact arithmetic alone; leave out margin and arithmetic"
    )]
    CollectiveAsksForMore,
    /// Slopes of the wrong shape or outside [0, 1].
    #[error("the given slopes do not fit: {problem}")]
    Slopes {
        /// What is wrong.
        problem: String,
    },
    /// The system refused to start threads.
    #[error("cannot start {threads} threads: {problem}; ask for fewer")]
    Threads {
        /// Threads asked for.
        threads: usize,
        /// What the system said.
        problem: String,
    },
}

//! The library's errors as Python's exceptions, which `nodeproof.errors` defines.

use std::io;

use nodeproof::files::FileError;
use nodeproof::results::ResultsError;
use nodeproof::train::{CheckpointError, TrainError};
use nodeproof::{BudgetError, CertifyError, GraphError, ModelError, SettingsError, SplitError};
use nodeproof_report::page::PageError;
use nodeproof_report::plot::PlotError;
use pyo3::prelude::*;

/// Why something cannot be done; becomes an exception once Python is at hand.
#[derive(Debug)]
pub(crate) enum Failure {
    /// What was given is wrong: `InputError`, a `ValueError`.
    Input(String),
    /// A file cannot be read or written: `FileError`, an `OSError`.
    File(String),
    /// A mistake of nodeproof: `InternalError`, a `RuntimeError`.
    Internal(String),
    /// Whoever asked for it has stopped it.
    Stopped,
}

impl Failure {
    /// What was given is wrong.
    pub(crate) fn input(message: impl ToString) -> Self {
        Self::Input(message.to_string())
    }

    /// The exception.
    pub(crate) fn raise(self, py: Python<'_>) -> PyErr {
        let (name, message) = match self {
            Self::Input(message) => ("InputError", message),
            Self::File(message) => ("FileError", message),
            Self::Internal(message) => ("InternalError", message),
            Self::Stopped => ("NodeproofError", "stopped".to_owned()),
        };
        let exception = py
            .import("nodeproof.errors")
            .and_then(|errors| errors.getattr(name))
            .and_then(|kind| kind.call1((message,)));
        match exception {
            Ok(exception) => PyErr::from_value(exception),
            Err(error) => error,
        }
    }
}

/// Turns results of the library into those that Python wants.
pub(crate) trait Raised<T> {
    /// The value, or the exception.
    ///
    /// # Errors
    /// If it is one.
    fn raised(self, py: Python<'_>) -> PyResult<T>;
}

impl<T, E: Into<Failure>> Raised<T> for Result<T, E> {
    fn raised(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|error| error.into().raise(py))
    }
}

impl From<GraphError> for Failure {
    fn from(error: GraphError) -> Self {
        match error {
            GraphError::NotBinary { node, attribute, value } => Self::Input(format!(
                "attribute {attribute} of node {node} is {value}, and not 0 or 1, or that divided by the number of ones in its row; \
                 pass real_values=True to take attributes for real values, which an attacker sets to others, or binarise=True to \
                 count every value > 0 as 1, and train on that"
            )),
            GraphError::Write { .. } => Self::File(error.to_string()),
            error => Self::input(error),
        }
    }
}

impl From<ModelError> for Failure {
    fn from(error: ModelError) -> Self {
        match error {
            ModelError::Io { .. } => Self::File(error.to_string()),
            error => Self::input(error),
        }
    }
}

impl From<SplitError> for Failure {
    fn from(error: SplitError) -> Self {
        match error {
            SplitError::Io { .. } => Self::File(error.to_string()),
            error => Self::input(error),
        }
    }
}

impl From<ResultsError> for Failure {
    fn from(error: ResultsError) -> Self {
        match error {
            ResultsError::Io { .. } => Self::File(error.to_string()),
            error => Self::input(error),
        }
    }
}

impl From<SettingsError> for Failure {
    fn from(error: SettingsError) -> Self {
        match error {
            SettingsError::Model(error) => error.into(),
            // Python's options have the names of the library's.
            error => Self::Input(error.in_words(str::to_owned)),
        }
    }
}

impl From<CertifyError> for Failure {
    fn from(error: CertifyError) -> Self {
        match error {
            CertifyError::Model(error) => error.into(),
            CertifyError::Settings(error) => error.into(),
            error => Self::input(error),
        }
    }
}

impl From<TrainError> for Failure {
    fn from(error: TrainError) -> Self {
        match error {
            TrainError::Model(error) => error.into(),
            TrainError::Settings(error) => error.into(),
            error => Self::input(error),
        }
    }
}

impl From<BudgetError> for Failure {
    fn from(error: BudgetError) -> Self {
        Self::input(error)
    }
}

impl From<PageError> for Failure {
    fn from(error: PageError) -> Self {
        Self::input(error)
    }
}

impl From<PlotError> for Failure {
    fn from(error: PlotError) -> Self {
        match error {
            PlotError::Render(_) => Self::Internal(error.to_string()),
            error => Self::input(error),
        }
    }
}

impl From<CheckpointError> for Failure {
    fn from(error: CheckpointError) -> Self {
        match error {
            CheckpointError::Io { .. } => Self::File(error.to_string()),
            error => Self::input(error),
        }
    }
}

impl From<FileError> for Failure {
    fn from(error: FileError) -> Self {
        Self::File(error.to_string())
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::File(error.to_string())
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Self::input(error)
    }
}

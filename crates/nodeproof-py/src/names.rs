//! Names that were probably meant.

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;

/// The one of `known` that `name` probably stands for, as something to add to a message: `; did you mean horn?`, or nothing.
#[pyfunction]
pub(crate) fn did_you_mean(name: &str, known: Vec<PyBackedStr>) -> String {
    nodeproof::did_you_mean(name, known.iter().map(|known| &**known))
}

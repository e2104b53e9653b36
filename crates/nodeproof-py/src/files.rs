//! Files that are written whole or not at all.

use std::io::Write;
use std::path::PathBuf;

use nodeproof::files::{Destination, replace};
use pyo3::prelude::*;

use crate::errors::Raised;

/// Whether a file can be written at `path`.
#[pyfunction]
pub(crate) fn check_destination(py: Python<'_>, path: PathBuf) -> PyResult<()> {
    Destination::File(path).check(&[]).raised(py)
}

/// Writes `content` beside `path` and moves it there once it is complete; what was there stays as it was if that fails.
#[pyfunction]
pub(crate) fn write_file(py: Python<'_>, path: PathBuf, content: &[u8]) -> PyResult<()> {
    let destination = Destination::File(path.clone());
    let write = || {
        destination.check(&[])?;
        replace(&path, |file| file.write_all(content)).map_err(|error| destination.failure(error))
    };
    py.detach(write).raised(py)
}

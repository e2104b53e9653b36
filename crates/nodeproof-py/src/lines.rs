//! Results as lines of JSON.

use std::io;
use std::path::Path;

use nodeproof::results::{Results, ResultsError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::{Failure, Raised};

/// What errors call results that were never in a file.
const IN_MEMORY: &str = "what was pickled";

/// What `write` writes.
///
/// # Errors
/// If it fails.
pub(crate) fn written(
    py: Python<'_>,
    write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>,
) -> PyResult<Bound<'_, PyBytes>> {
    let mut bytes = Vec::new();
    write(&mut bytes).map_err(Failure::from).raised(py)?;
    Ok(PyBytes::new(py, &bytes))
}

/// The results that `bytes` are the file of, if they are of the right kind.
///
/// # Errors
/// If they are not.
pub(crate) fn read<T>(
    bytes: &[u8],
    kind: impl FnOnce(Results, &Path) -> Result<T, ResultsError>,
) -> Result<T, ResultsError> {
    kind(Results::read_from(bytes, IN_MEMORY)?, Path::new(IN_MEMORY))
}

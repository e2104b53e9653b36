//! Results as lines of JSON: whole files, and the records alone, in which they travel.

use std::io;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::errors::{Failure, Raised};

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

/// Records, a line each.
///
/// # Errors
/// If one cannot be written.
pub(crate) fn of<'py>(py: Python<'py>, records: &[impl Serialize]) -> PyResult<Bound<'py, PyBytes>> {
    written(py, |bytes| {
        for record in records {
            serde_json::to_writer(&mut *bytes, record)?;
            bytes.push(b'\n');
        }
        Ok(())
    })
}

/// The records of `chunks`, one after the other.
///
/// # Errors
/// If a line is none.
pub(crate) fn parsed<T: DeserializeOwned>(py: Python<'_>, chunks: &[Vec<u8>]) -> PyResult<Vec<T>> {
    let lines = chunks.iter().flat_map(|chunk| chunk.split(|&byte| byte == b'\n'));
    let records = lines.filter(|line| !line.is_empty()).map(serde_json::from_slice);
    records.collect::<Result<_, _>>().map_err(Failure::from).raised(py)
}

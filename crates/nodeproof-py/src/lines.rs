//! Results as lines of JSON: whole files, and the records alone, in which they travel from worker to worker.

use std::io;
use std::path::Path;

use nodeproof::results::{Header, Record, Results, ResultsError};
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

/// Records, a line each.
///
/// # Errors
/// If one cannot be written.
pub(crate) fn of<'py, R: Record>(py: Python<'py>, header: &Header, records: &[R]) -> PyResult<Bound<'py, PyBytes>> {
    written(py, |bytes| {
        for record in records {
            serde_json::to_writer(&mut *bytes, &record.line(header))?;
            bytes.push(b'\n');
        }
        Ok(())
    })
}

/// The records of `chunks`, one after the other.
///
/// # Errors
/// If a line is none, or does not fit the header.
pub(crate) fn parsed<R: Record>(header: &Header, chunks: &[Vec<u8>]) -> Result<Vec<R>, Failure> {
    let lines = chunks.iter().flat_map(|chunk| chunk.split(|&byte| byte == b'\n'));
    let record = |line: &[u8]| R::of_line(serde_json::from_slice(line)?, header).map_err(Failure::Input);
    lines.filter(|line| !line.is_empty()).map(record).collect()
}

//! Reading what an interrupted run has written.

use std::io::{BufReader, Read};
use std::path::Path;

use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;

use super::FileError;
use crate::results::{Chain, LineReader, ResultsError, differences};

/// What is to become of a record of an interrupted run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// It stays.
    Keep,
    /// It is dropped, and so is everything after it.
    Stop,
}

/// What stays of a file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kept {
    /// Records that stay.
    pub(super) records: usize,
    /// Bytes up to the end of the last of them.
    pub(super) bytes: u64,
    /// The hash after the last of them.
    pub(super) chain: Chain,
}

/// A file that was read and verified up to its end.
#[derive(Debug)]
pub(super) struct Scanned {
    pub(super) kept: Kept,
    /// Whether records were dropped because [`Keep::Stop`] said so.
    pub(super) stopped: bool,
    /// What to say of the last line, if its end is missing and nothing should be.
    pub(super) cut_off: Option<FileError>,
}

/// Reads a file, which must begin with the line `header`, and hands its records to `each`. `None` if there is not even a
/// whole header. All lines are verified, also those that are dropped.
pub(super) fn scan<T: DeserializeOwned>(
    source: impl Read,
    path: &Path,
    header: &[u8],
    mut each: impl FnMut(T) -> Result<Keep, String>,
) -> Result<Option<Scanned>, FileError> {
    let mut lines = LineReader::new(BufReader::new(source), path);
    let Some(chain) = read_header(&mut lines, header)? else { return Ok(None) };
    let mut kept = Kept { records: 0, bytes: lines.bytes(), chain };
    let mut stopped = false;
    while !stopped && let Some(record) = lines.record::<T>().map_err(of_reading)? {
        let (path, line) = (path.to_owned(), kept.records + 2);
        match each(record).map_err(|problem| FileError::DoesNotFit { path, line, problem })? {
            Keep::Keep => {
                let chain = lines.chain().unwrap_or(chain);
                kept = Kept { records: kept.records + 1, bytes: lines.bytes(), chain };
            }
            Keep::Stop => stopped = true,
        }
    }
    while stopped && lines.record::<IgnoredAny>().map_err(of_reading)?.is_some() {}
    let is_cut_off = !lines.line().is_empty();
    let cut_off = is_cut_off.then(|| of_reading(lines.damaged("its end is missing")));
    Ok(Some(Scanned { kept, stopped, cut_off }))
}

/// Reads a header, which must be `expected`, and returns the hash after it; `None` if its end is missing.
fn read_header(lines: &mut LineReader, expected: &[u8]) -> Result<Option<Chain>, FileError> {
    let path = lines.path().to_owned();
    let now: Value = serde_json::from_slice(expected).unwrap_or_default();
    let version = |found: String| {
        let expected = now["version"].to_string();
        FileError::Version { path: path.clone(), found, expected }
    };
    let there = lines.header(&[now["format"].as_str().unwrap_or_default()]).map_err(|error| match error {
        ResultsError::Version { found, .. } => version(found),
        other => of_reading(other),
    })?;
    match (there, lines.chain()) {
        // Cut off: nothing is lost by starting again, if it is our header.
        (None, _) if expected.starts_with(lines.line()) => Ok(None),
        (None, _) => Err(FileError::NotResumable { path }),
        (Some(_), Some(chain)) if lines.line() == expected => Ok(Some(chain)),
        (Some(there), None) => Err(version(there["version"].to_string())),
        (Some(there), Some(_)) => {
            let differences = differences(&there, &now);
            if differences.is_empty() {
                let problem = "it is not as it was written".to_owned();
                return Err(FileError::Damaged { path, line: 1, problem });
            }
            Err(FileError::OtherRun { path, differences: differences.join("; ") })
        }
    }
}

fn of_reading(error: ResultsError) -> FileError {
    match error {
        ResultsError::Io { path, source } => FileError::Read { path, source },
        ResultsError::Damaged { path, line, problem } => FileError::Damaged { path, line, problem },
        ResultsError::NotResults { path }
        | ResultsError::Journal { path }
        | ResultsError::WrongKind { path, .. }
        | ResultsError::Version { path, .. }
        | ResultsError::WithoutHashes { path, .. }
        | ResultsError::Unfinished { path, .. } => FileError::NotResumable { path },
    }
}

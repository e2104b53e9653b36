//! `nodeproof merge`: the parts of a run, put together.

use std::path::{Path, PathBuf};

use anyhow::{anyhow, bail};
use nodeproof::files::{Destination, Unfinished};
use nodeproof::results::{Header, MergeError, Record, Results, merged};
use nodeproof_report::text::counted;
use serde::Serialize;

use crate::cli::MergeArguments;
use crate::outcome::Outcome;
use crate::outputs::{Output, Outputs, ResultFiles, destination};
use crate::{inputs, terminal};

/// Runs the command.
///
/// # Errors
/// If the files are not all the parts of one run, or the whole cannot be written.
pub(crate) fn run(arguments: &MergeArguments) -> anyhow::Result<Outcome> {
    let MergeArguments { files, out, print } = arguments;
    files.iter().try_for_each(|file| inputs::check_readable(file, "FILE"))?;
    let taken: Vec<&Path> = files.iter().map(PathBuf::as_path).collect();
    let place = destination(out, "--out", &taken)?;
    let (mut certificates, mut radii) = (Vec::new(), Vec::new());
    for file in files {
        match Results::read(file)? {
            Results::Certificates(of) => certificates.push((of.header, of.records)),
            Results::Radii(of) => radii.push((of.header, of.records)),
            other => bail!("{} has {}; certificates and radii have parts", terminal::shown(file), other.kind()),
        }
    }
    let nodes = match (certificates.is_empty(), radii.is_empty()) {
        (false, true) => write(certificates, files, &place)?,
        (true, false) => write(radii, files, &place)?,
        _ => bail!("some of the files have certificates and others radii; give those of one run"),
    };
    let told = Merged { parts: files.len(), nodes };
    let written = place.path().map(terminal::shown);
    let files = ResultFiles { out: Some(place), ..ResultFiles::default() };
    if print.json {
        files.print_summary(&(serde_json::to_string_pretty(&told)? + "\n"))?;
    } else if !print.quiet {
        files.print_summary(&told.in_words(written))?;
    }
    Ok(Outcome::Done)
}

/// Writes the whole; how many nodes it has.
fn write<R: Record>(parts: Vec<(Header, Vec<R>)>, files: &[PathBuf], place: &Destination) -> anyhow::Result<usize> {
    let (header, records) = merged(parts).map_err(|error| in_words(&error, files))?;
    let line = R::header_line(&header);
    let lines = Output::begin(Some(place), |place| Unfinished::begin(place, &line))?;
    let mut outputs = Outputs::new(lines, Output::Nowhere);
    records.iter().try_for_each(|record| outputs.line(&record.line(&header)))?;
    outputs.flush()?;
    outputs.finish()?;
    Ok(records.len())
}

/// What is wrong, and with which file.
fn in_words(error: &MergeError, files: &[PathBuf]) -> anyhow::Error {
    let (MergeError::NotAShard { file } | MergeError::Another { file } | MergeError::Twice { file, .. }) = error else {
        return anyhow!("{error}");
    };
    let remedy = match error {
        MergeError::NotAShard { .. } => "; certify --shard and radius --shard write shards",
        _ => "",
    };
    anyhow!("{}: {error}{remedy}", terminal::shown(&files[*file]))
}

/// What came of it.
#[derive(Serialize)]
struct Merged {
    parts: usize,
    nodes: usize,
}

impl Merged {
    fn in_words(&self, written: Option<String>) -> String {
        let merged = format!("{} with {}", counted(self.parts, "part"), counted(self.nodes, "node"));
        let facts = [("merged", merged)].into_iter().chain(written.map(|path| ("written", path)));
        terminal::facts(&facts.collect::<Vec<_>>())
    }
}

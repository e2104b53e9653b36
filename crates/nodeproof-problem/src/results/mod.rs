//! Certificates, radii, collective certificates and training logs as they are on file: JSON Lines, a header and one line a node, budget or
//! step.
//!
//! `docs/formats.md` describes every field.

mod certificates;
mod collective;
mod differences;
mod earlier;
mod error;
mod header;
mod lines;
mod merge;
mod outline;
mod proofs;
mod radii;
mod scan;
mod table;
mod training_log;
mod trial;

use std::collections::HashSet;
use std::io::BufRead;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::certificate::Certificate;
use crate::ids::NodeId;
use crate::radius::Radius;

pub use certificates::Certificates;
pub use collective::Collectives;
pub(crate) use differences::differences;
pub use earlier::{AskedOtherwise, EarlierCertificates, Mismatch, SinceFields};
pub use error::ResultsError;
pub use header::{BudgetFields, GraphHeader, Header, ModelHeader, ShardFields, SplitFields};
pub use lines::{Chain, LineReader, LineWriter, PlainRecord};
pub use merge::{MergeError, merged};
pub use radii::{OtherRadii, Radii};
pub use table::TableWriter;
pub use training_log::{Phase, StepRecord, TrainingLog, TrainingLogHeader};
pub use trial::Trial;

/// What is kept of one node: a certificate or a radius.
pub trait Record: Sized {
    /// The `format` in the header of files of these.
    const FORMAT: &'static str;
    /// Names of the columns in a table, after those of the node.
    const COLUMNS: &'static [&'static str];
    /// The record as it is on file.
    type Line: Serialize + DeserializeOwned;

    /// The node.
    fn node(&self) -> NodeId;

    /// The record as it is on file.
    fn line(&self, header: &Header) -> Self::Line;

    /// The record of a line on file, with its hash or without.
    ///
    /// # Errors
    /// If it is none.
    fn parse(line: &[u8]) -> serde_json::Result<Self::Line> {
        serde_json::from_slice(line)
    }

    /// The record of a line on file, checked against the header.
    ///
    /// # Errors
    /// If it cannot be a record of such a file.
    fn of_line(line: Self::Line, header: &Header) -> Result<Self, String>;

    /// The cells of its row in a table, one for each of [`Record::COLUMNS`].
    fn cells(&self) -> Vec<String>;

    /// The first line of a file about `header`.
    fn header_line(header: &Header) -> impl Serialize + '_ {
        header.line(Self::FORMAT)
    }
}

/// What a file may hold.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Results {
    /// Certificates.
    Certificates(Certificates),
    /// Radii.
    Radii(Radii),
    /// Collective certificates.
    Collectives(Collectives),
    /// The log of a training.
    Training(TrainingLog),
}

impl Results {
    /// Reads the file at `path`.
    ///
    /// # Errors
    /// If it cannot be read, is not a file of results, damaged, or not finished.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, ResultsError> {
        Self::read_lines(LineReader::open(path.as_ref())?)
    }

    /// Reads results from `source`; errors call it `name`.
    ///
    /// # Errors
    /// As [`Results::read`].
    pub fn read_from(source: impl BufRead, name: &str) -> Result<Self, ResultsError> {
        Self::read_lines(LineReader::new(source, Path::new(name)))
    }

    fn read_lines(mut reader: LineReader) -> Result<Self, ResultsError> {
        let formats = [Certificate::FORMAT, Radius::FORMAT, Collectives::FORMAT, TrainingLog::FORMAT, Trial::FORMAT];
        let header = reader.header(&formats)?;
        let header = header.ok_or_else(|| ResultsError::NotResults { path: reader.path().to_owned() })?;
        let format = header["format"].as_str().unwrap_or_default().to_owned();
        if format == Trial::FORMAT {
            return Err(ResultsError::Journal { path: reader.path().to_owned() });
        }
        if format == TrainingLog::FORMAT {
            return TrainingLog::read_lines(&mut reader, header).map(Self::Training);
        }
        if format == Collectives::FORMAT {
            return Collectives::read_lines(&mut reader, header).map(Self::Collectives);
        }
        let header = Header::read(header).map_err(|problem| reader.damaged(problem))?;
        if format == Certificate::FORMAT {
            let records = records(&mut reader, &header)?;
            Ok(Self::Certificates(Certificates { header, records }))
        } else {
            let records = records(&mut reader, &header)?;
            Ok(Self::Radii(Radii { header, records }))
        }
    }

    /// What the file has.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Certificates(_) => "certificates",
            Self::Radii(_) => "radii",
            Self::Collectives(_) => "collective certificates",
            Self::Training(_) => "steps of a training",
        }
    }
}

/// All records of a file, one for each node that its header promises.
fn records<R: Record>(reader: &mut LineReader, header: &Header) -> Result<Vec<R>, ResultsError> {
    let (mut records, mut seen) = (Vec::new(), HashSet::new());
    while reader.verify_record()? {
        let line = R::parse(reader.line()).map_err(|error| reader.damaged(error))?;
        let record = R::of_line(line, header).map_err(|problem| reader.damaged(problem))?;
        if !seen.insert(record.node()) {
            return Err(reader.damaged(format!("node {} comes up twice", record.node())));
        }
        if records.len() == header.nodes {
            return Err(reader.damaged(format!("the file is to have {} nodes, and this is one more", header.nodes)));
        }
        records.push(record);
    }
    if records.len() < header.nodes {
        let (path, found, nodes) = (reader.path().to_owned(), records.len(), header.nodes);
        return Err(ResultsError::Unfinished { path, found, nodes });
    }
    if !reader.line().is_empty() {
        return Err(reader.damaged("the file has all of its nodes, and goes on"));
    }
    Ok(records)
}

fn wrong_kind(path: &Path, found: &Results, needed: &'static str, remedy: &'static str) -> ResultsError {
    ResultsError::WrongKind { path: path.to_owned(), found: found.kind(), needed, remedy }
}

#[cfg(test)]
pub(crate) mod tests;

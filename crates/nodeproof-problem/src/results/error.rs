//! What can be wrong with files of results.

use std::io;
use std::path::PathBuf;

use super::lines::VERSION;

/// Why a file of results cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResultsError {
    /// The system does not give it.
    #[error("cannot read {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It is something else.
    #[error(
        "{} is not a file of certificates, radii or training steps; give one that `nodeproof certify --out`, \
         `nodeproof radius --out` or `nodeproof train --log` wrote", path.display()
    )]
    NotResults {
        /// The file.
        path: PathBuf,
    },
    /// It is the journal of a search for radii.
    #[error(
        "{} is the journal of a search for radii that did not end; continue that with `nodeproof radius … --resume`", path.display()
    )]
    Journal {
        /// The file.
        path: PathBuf,
    },
    /// It holds results of another kind than the one needed.
    #[error("{} has {found}, not {needed}; {remedy}", path.display())]
    WrongKind {
        /// The file.
        path: PathBuf,
        /// What it has.
        found: &'static str,
        /// What is needed.
        needed: &'static str,
        /// How to make what is needed.
        remedy: &'static str,
    },
    /// It is of another version of the format.
    #[error("{} has version {found} of its format, and this nodeproof reads versions up to {VERSION}; create it again", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: String,
    },
    /// Its records have no hashes, which is what certificates are carried over by.
    #[error(
        "{} has version {found} of its format, whose records have no hashes, so that nothing can be carried over from it; certify without it", path.display()
    )]
    WithoutHashes {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: String,
    },
    /// A line is not what it should be.
    #[error("{}: line {line} is damaged: {problem}; create the file again", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong.
        problem: String,
    },
    /// Nodes are missing at the end.
    #[error("{} has {found} of {nodes} nodes: the run that wrote it did not end; resume it, or create it again", path.display())]
    Unfinished {
        /// The file.
        path: PathBuf,
        /// Nodes on file.
        found: usize,
        /// Nodes that its header promises.
        nodes: usize,
    },
}

//! What can be wrong with a file that is to be written.

use std::fs::TryLockError;
use std::io;
use std::path::{Path, PathBuf};

/// Why a file cannot be written, or a run not be resumed from it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// The path does not end with the name of a file.
    #[error("cannot write {}: it is not the name of a file; give one", .path.display())]
    NoName {
        /// The path.
        path: PathBuf,
    },
    /// There is a directory.
    #[error("cannot write {}: it is a directory; give the name of a file in it", .path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
    },
    /// There is no directory for the file.
    #[error("cannot write {}: there is no directory {}; make it first", .path.display(), .directory.display())]
    NoDirectory {
        /// The file.
        path: PathBuf,
        /// The directory that is missing.
        directory: PathBuf,
    },
    /// The file is an input.
    #[error("cannot write {}: it is {}, an input of this command; choose another name", .path.display(), .input.display())]
    Input {
        /// The file.
        path: PathBuf,
        /// The same file, as it was given as an input.
        input: PathBuf,
    },
    /// A file that is needed while the output is written is an input.
    #[error(
        "cannot write {}: until it is complete it is written to {}, an input of this command; choose another name",
        .path.display(), .input.display()
    )]
    WorkingFileIsInput {
        /// The output.
        path: PathBuf,
        /// The input that would be overwritten.
        input: PathBuf,
    },
    /// Another run is writing the file.
    #[error(
        "cannot write {}: another run of nodeproof is writing it; wait for its end or choose another name", .path.display()
    )]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// The file cannot be created or replaced.
    #[error("cannot write {}: {source}; choose a place where you may write", .path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Writing failed; what was there before is as it was.
    #[error("cannot write {}: {source}; make room there or choose another place", .path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Writing failed; what was there before is as it was, and the run can be resumed.
    #[error(
        "cannot write {}: {source}; the records so far are in {}: make room there and resume", .path.display(),
        .unfinished.display()
    )]
    Unfinished {
        /// The file.
        path: PathBuf,
        /// Where the records are.
        unfinished: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Writing to stdout failed.
    #[error("cannot write to stdout: {source}")]
    Stdout {
        /// What the system said.
        source: io::Error,
    },
    /// What an earlier run wrote cannot be read.
    #[error("cannot resume {}: {source}; make it readable, or start again without resuming", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// What is there was not written by such a run.
    #[error(
        "cannot resume {}: it is not a file that this command writes; choose another name, or start again without resuming, \
         which replaces it", .path.display()
    )]
    NotResumable {
        /// The file.
        path: PathBuf,
    },
    /// The output is there, in a form that cannot be resumed, and no interrupted run of it.
    #[error(
        "cannot resume {}: it is there, but no unfinished run of it; choose another name, or start again without resuming, \
         which replaces it", .path.display()
    )]
    NothingUnfinished {
        /// The file.
        path: PathBuf,
    },
    /// What is there has another version of the format.
    #[error(
        "cannot resume {}: it has version {found} of its format, and this nodeproof writes version {expected}; start again \
         without resuming", .path.display()
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: String,
        /// The version that is written.
        expected: String,
    },
    /// What is there is of a run with other settings.
    #[error(
        "cannot resume {}: it belongs to another run ({differences}); use the same settings, or start again without resuming",
        .path.display()
    )]
    OtherRun {
        /// The file.
        path: PathBuf,
        /// The fields that differ, as `budget.global: 3 there, 2 now`.
        differences: String,
    },
    /// A line is not as it was written.
    #[error("cannot resume {}: line {line} is damaged: {problem}; start again without resuming", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong.
        problem: String,
    },
    /// A record is whole, but not what this run would have written there.
    #[error(
        "cannot resume {}: line {line} does not fit this run: {problem}; use the same settings, or start again without \
         resuming", .path.display()
    )]
    DoesNotFit {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong.
        problem: String,
    },
}

impl FileError {
    /// Whether the reader of a pipe closed it, which is seldom worth a message.
    pub fn is_closed_pipe(&self) -> bool {
        let (Self::Stdout { source } | Self::Write { source, .. }) = self else { return false };
        source.kind() == io::ErrorKind::BrokenPipe
    }

    pub(super) fn unwritable(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        |source| Self::Unwritable { path: path.to_owned(), source }
    }

    pub(super) fn read(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        |source| Self::Read { path: path.to_owned(), source }
    }

    /// Why `path` could not be opened and locked.
    pub(super) fn not_locked(path: &Path, error: TryLockError) -> Self {
        match error {
            TryLockError::WouldBlock => Self::Busy { path: path.to_owned() },
            TryLockError::Error(source) => Self::Unwritable { path: path.to_owned(), source },
        }
    }
}

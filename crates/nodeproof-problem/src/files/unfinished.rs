//! Results that grow line by line, and appear under their name when they are complete.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::FileError;
use super::atomic::{AtomicFile, replace};
use super::destination::Destination;
use super::direct::Direct;
use super::gzip;
use super::lock::open_locked;
use super::paths::{follow_links, is_at, keep_permissions, remove, rename, sync, unfinished_beside};
use super::resume::{Keep, Kept, Scanned, scan};
use crate::results::{Chain, LineWriter, PlainRecord};

/// Bytes of records that are handed to the system at once.
const BUFFER: usize = 1 << 16;

/// Results of a run that is not finished, one record a line.
///
/// Until [`Unfinished::finish`] they are in `NAME.unfinished` beside the file `NAME` that they will become; a file that had
/// the name before stays as it was until then. That file is locked: a second run with the same output is refused. If this
/// value is dropped without finishing, the records stay there to be resumed; without any record, nothing stays.
///
/// Where the final form is not these lines, [`Unfinished::begin_journal`] and [`Unfinished::finish_with`] do the same.
///
/// Stdout, devices and pipes are written to as they are: there is nothing to lock, to resume or to rename.
#[derive(Debug)]
pub struct Unfinished {
    destination: Destination,
    kept: usize,
    state: State,
}

#[derive(Debug)]
enum State {
    /// Lines go to stdout, a device or a pipe.
    Direct(LineWriter<BufWriter<Direct>>),
    /// Only the final form goes there, and nothing can be resumed.
    Nowhere,
    /// Lines go to `NAME.unfinished`.
    Journal(Journal),
    /// `NAME` was found complete.
    Whole(File, Kept),
    /// Writing failed, so that what would follow is not what the hashes say.
    Failed,
}

/// Whether the lines are what the output will be in the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lines {
    AreTheResult,
    AreAJournal,
}

impl Unfinished {
    /// Begins again with `header`; what an interrupted run left is discarded.
    ///
    /// # Errors
    /// If another run is writing there, or if it cannot be written.
    pub fn begin(destination: &Destination, header: &impl Serialize) -> Result<Self, FileError> {
        Self::begin_as(Lines::AreTheResult, destination, header)
    }

    /// Continues what an interrupted run with the same `header` began. Each record that it wrote is handed to `each`, which
    /// may refuse it with a reason, or drop it and all that follow. Without an interrupted run, the file itself must be a
    /// complete one of the same run; there is nothing left to do then, and finishing changes nothing. Without either, this
    /// is [`Unfinished::begin`].
    ///
    /// Nothing is changed before every line has been verified. A last line whose end is missing is dropped.
    ///
    /// # Errors
    /// As [`Unfinished::begin`]; and if what is there is of another run, of another version, damaged, or refused by `each`.
    pub fn resume<T: DeserializeOwned>(
        destination: &Destination,
        header: &impl Serialize,
        each: impl FnMut(T) -> Result<Keep, String>,
    ) -> Result<Self, FileError> {
        Self::resume_as(Lines::AreTheResult, destination, header, each)
    }

    /// As [`Unfinished::begin`], for an output that is written by [`Unfinished::finish_with`]: nothing goes to stdout, a
    /// device or a pipe before that.
    ///
    /// # Errors
    /// As [`Unfinished::begin`].
    pub fn begin_journal(destination: &Destination, header: &impl Serialize) -> Result<Self, FileError> {
        Self::begin_as(Lines::AreAJournal, destination, header)
    }

    /// As [`Unfinished::resume`], for an output that is written by [`Unfinished::finish_with`]. The final form cannot be
    /// resumed.
    ///
    /// # Errors
    /// As [`Unfinished::resume`]; and if there is a file, but no interrupted run of it.
    pub fn resume_journal<T: DeserializeOwned>(
        destination: &Destination,
        header: &impl Serialize,
        each: impl FnMut(T) -> Result<Keep, String>,
    ) -> Result<Self, FileError> {
        Self::resume_as(Lines::AreAJournal, destination, header, each)
    }

    fn begin_as(lines: Lines, destination: &Destination, header: &impl Serialize) -> Result<Self, FileError> {
        destination.check(&[])?;
        let state = match destination.regular() {
            Some(path) => {
                let opened = OpenJournal::create(path)?;
                State::Journal(opened.begin(header).map_err(|error| destination.failure(error))?)
            }
            None if lines == Lines::AreAJournal => State::Nowhere,
            None => Self::begin_direct(destination, header).map_err(|error| destination.failure(error))?,
        };
        Ok(Self { destination: destination.clone(), kept: 0, state })
    }

    fn begin_direct(destination: &Destination, header: &impl Serialize) -> io::Result<State> {
        LineWriter::begin(BufWriter::new(Direct::open(destination)?), header).map(State::Direct)
    }

    fn resume_as<T: DeserializeOwned>(
        lines: Lines,
        destination: &Destination,
        header: &impl Serialize,
        each: impl FnMut(T) -> Result<Keep, String>,
    ) -> Result<Self, FileError> {
        destination.check(&[])?;
        let Some(path) = destination.regular() else { return Self::begin_as(lines, destination, header) };
        let expected = serde_json::to_vec(header).map_err(|error| destination.failure(error.into()))?;
        let resumed = match OpenJournal::existing(path)? {
            Some(opened) => match scan(&opened.file, &opened.path, &expected, each)? {
                Some(scanned) => Some((opened.resume(scanned.kept).map(State::Journal), scanned.kept.records)),
                None => Some((opened.begin(header).map(State::Journal), 0)),
            },
            None if lines == Lines::AreAJournal && path.metadata().is_ok_and(|there| there.len() > 0) => {
                return Err(FileError::NothingUnfinished { path: path.to_owned() });
            }
            None if gzip::is_named(path) => {
                Self::resume_compressed(path, &expected, each)?.map(|(state, kept)| (Ok(state), kept))
            }
            None => Self::resume_complete(path, &expected, each)?.map(|(state, kept)| (Ok(state), kept)),
        };
        let Some((state, kept)) = resumed else { return Self::begin_as(lines, destination, header) };
        Ok(Self { destination: destination.clone(), kept, state: state.map_err(|error| destination.failure(error))? })
    }

    /// Goes on with the complete file at `path`, and says how many records it keeps; `None` if there is none.
    fn resume_complete<T: DeserializeOwned>(
        path: &Path,
        header: &[u8],
        each: impl FnMut(T) -> Result<Keep, String>,
    ) -> Result<Option<(State, usize)>, FileError> {
        let file = match File::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(FileError::read(path))?,
        };
        let Some(scanned) = scan(&file, path, header, each)? else { return Ok(None) };
        if let Some(error) = scanned.cut_off {
            return Err(error);
        }
        let kept = scanned.kept;
        if !scanned.stopped {
            return Ok(Some((State::Whole(file, kept), kept.records)));
        }
        let journal = OpenJournal::create(path)?.copy(&file, kept);
        let journal = journal.map_err(|source| FileError::Write { path: path.to_owned(), source })?;
        Ok(Some((State::Journal(journal), kept.records)))
    }

    /// The same for a file that is compressed: its lines are a journal again until they are compressed once more.
    fn resume_compressed<T: DeserializeOwned>(
        path: &Path,
        header: &[u8],
        each: impl FnMut(T) -> Result<Keep, String>,
    ) -> Result<Option<(State, usize)>, FileError> {
        let Some(opened) = OpenJournal::decompressed(path)? else { return Ok(None) };
        let scanned = scan(&opened.file, path, header, each).and_then(|scanned| match scanned {
            Some(Scanned { cut_off: Some(error), .. }) => Err(error),
            Some(scanned) => Ok(scanned.kept),
            None => Err(FileError::NothingUnfinished { path: path.to_owned() }),
        });
        match scanned {
            Ok(kept) => {
                let journal = opened.resume(kept);
                let journal = journal.map_err(|source| FileError::Write { path: path.to_owned(), source })?;
                Ok(Some((State::Journal(journal), kept.records)))
            }
            Err(error) => Err(opened.discarded(error)),
        }
    }

    /// Records that were kept of an earlier run.
    pub fn kept(&self) -> usize {
        self.kept
    }

    /// Whether the file was found complete when it was resumed, and nothing was added to it.
    pub fn is_whole(&self) -> bool {
        matches!(self.state, State::Whole(..))
    }

    /// Adds a record, which may stay in memory until [`Unfinished::flush`].
    ///
    /// # Errors
    /// If it cannot be written; then no other record can be, and the run can be resumed.
    pub fn record(&mut self, record: &impl Serialize) -> Result<(), FileError> {
        self.reopen()?;
        self.attempt(|state| match state {
            State::Direct(lines) => lines.record(record),
            State::Journal(journal) => journal.record(record),
            State::Nowhere | State::Whole(..) => Ok(()),
            State::Failed => Err(earlier_failure()),
        })
    }

    /// Adds a record that was on file.
    ///
    /// # Errors
    /// As [`Unfinished::record`].
    pub fn plain_record(&mut self, record: PlainRecord) -> Result<(), FileError> {
        self.reopen()?;
        self.attempt(|state| match state {
            State::Direct(lines) => lines.plain_record(record),
            State::Journal(journal) => journal.plain_record(record),
            State::Nowhere | State::Whole(..) => Ok(()),
            State::Failed => Err(earlier_failure()),
        })
    }

    /// Makes a journal of a file that was found complete, because there is more to come.
    fn reopen(&mut self) -> Result<(), FileError> {
        let (State::Whole(file, kept), Some(path)) = (&self.state, self.destination.path()) else { return Ok(()) };
        let journal = OpenJournal::create(path)
            .and_then(|opened| opened.copy(file, *kept).map_err(|error| self.destination.failure(error)));
        let (state, reopened) = match journal {
            Ok(journal) => (State::Journal(journal), Ok(())),
            Err(error) => (State::Failed, Err(error)),
        };
        self.state = state;
        reopened
    }

    /// Hands everything to the system, so that it survives the end of the process.
    ///
    /// # Errors
    /// As [`Unfinished::record`].
    pub fn flush(&mut self) -> Result<(), FileError> {
        self.attempt(|state| match state {
            State::Direct(lines) => lines.flush(),
            State::Journal(journal) => journal.lines.flush(),
            State::Nowhere | State::Whole(..) => Ok(()),
            State::Failed => Err(earlier_failure()),
        })
    }

    /// Ends the run: the results are on the disk, and have their name.
    ///
    /// # Errors
    /// If that fails; the file that had the name is then as it was, and the run can be resumed.
    pub fn finish(mut self) -> Result<(), FileError> {
        self.flush()?;
        self.attempt(|state| match state {
            State::Journal(journal) => journal.finish(),
            _ => Ok(()),
        })
    }

    /// Ends the run with a file of another form, which `write` writes in place of the lines.
    ///
    /// # Errors
    /// As [`Unfinished::finish`].
    pub fn finish_with(mut self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), FileError> {
        self.flush()?;
        let mut file = AtomicFile::create(&self.destination).map_err(|error| self.failure(error))?;
        let is_compressed = self.destination.path().is_some_and(gzip::is_named);
        let written = if is_compressed { gzip::compressed(&mut file, write) } else { write(&mut file) };
        written.and_then(|()| file.commit()).map_err(|error| self.failure(error))?;
        if let State::Journal(journal) = &self.state {
            remove(&journal.path, journal.file());
        }
        Ok(())
    }

    /// Writes, and never again once that has failed: a line may have been cut off, and the next one has a hash that counts
    /// on it.
    fn attempt(&mut self, write: impl FnOnce(&mut State) -> io::Result<()>) -> Result<(), FileError> {
        write(&mut self.state).map_err(|error| {
            let failure = self.failure(error);
            self.state = State::Failed;
            failure
        })
    }

    /// What to say if writing failed.
    fn failure(&self, source: io::Error) -> FileError {
        match (&self.state, self.destination.path()) {
            (State::Journal(journal), Some(path)) if !journal.is_empty => {
                FileError::Unfinished { path: path.to_owned(), unfinished: journal.path.clone(), source }
            }
            _ => self.destination.failure(source),
        }
    }
}

fn earlier_failure() -> io::Error {
    io::Error::other("writing to it failed before")
}

/// The file `NAME.unfinished`, locked, its content as it was found.
#[derive(Debug)]
struct OpenJournal {
    /// `NAME`.
    target: PathBuf,
    /// `NAME.unfinished`.
    path: PathBuf,
    file: File,
}

impl OpenJournal {
    /// Opens the journal of the output at `output`, and makes it if there is none.
    fn create(output: &Path) -> Result<Self, FileError> {
        Self::open(output, OpenOptions::new().read(true).write(true).create(true).truncate(false))
            .map_err(|error| FileError::not_locked(output, error))
    }

    /// Opens the journal of the output at `output`; `None` if there is none.
    fn existing(output: &Path) -> Result<Option<Self>, FileError> {
        match Self::open(output, OpenOptions::new().read(true).write(true)) {
            Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            opened => opened.map(Some).map_err(|error| FileError::not_locked(output, error)),
        }
    }

    /// A journal with what the complete and compressed output at `output` has; `None` if there is none.
    fn decompressed(output: &Path) -> Result<Option<Self>, FileError> {
        let file = match File::open(output) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(FileError::read(output))?,
        };
        let opened = Self::create(output)?;
        let copied = opened.empty().and_then(|()| gzip::reader(BufReader::new(file)));
        let copied = copied.and_then(|mut lines| io::copy(&mut lines, &mut &opened.file));
        match copied.and_then(|_| (&opened.file).rewind()) {
            Ok(()) => Ok(Some(opened)),
            Err(error) => Err(opened.discarded(FileError::read(output)(error))),
        }
    }

    /// Leaves nothing behind.
    fn discarded(self, error: FileError) -> FileError {
        remove(&self.path, &self.file);
        error
    }

    fn open(output: &Path, options: &OpenOptions) -> Result<Self, TryLockError> {
        let target = follow_links(output).map_err(TryLockError::Error)?;
        let path = unfinished_beside(&target);
        let file = open_locked(&path, options)?;
        Ok(Self { target, path, file })
    }

    /// Discards what is there and begins with `header`.
    fn begin(self, header: &impl Serialize) -> io::Result<Journal> {
        let begun = self.empty().and_then(|()| LineWriter::begin(&self.file, header));
        match begun.map(|lines| lines.chain()) {
            Ok(chain) => Ok(self.lines(chain, true)),
            Err(error) => Err(self.discard(error)),
        }
    }

    /// Discards what is there and begins with what is kept of `source`.
    fn copy(self, mut source: &File, kept: Kept) -> io::Result<Journal> {
        let copied = self
            .empty()
            .and_then(|()| source.rewind())
            .and_then(|()| io::copy(&mut source.take(kept.bytes), &mut &self.file));
        match copied {
            Ok(_) => self.resume(kept),
            Err(error) => Err(self.discard(error)),
        }
    }

    /// Goes on after what is kept, and cuts off the rest.
    fn resume(self, kept: Kept) -> io::Result<Journal> {
        self.file.set_len(kept.bytes)?;
        (&self.file).seek(io::SeekFrom::End(0))?;
        Ok(self.lines(kept.chain, kept.records == 0))
    }

    fn lines(self, chain: Chain, is_empty: bool) -> Journal {
        let lines = LineWriter::resume(BufWriter::with_capacity(BUFFER, self.file), chain);
        Journal { target: self.target, path: self.path, lines, is_empty }
    }

    fn empty(&self) -> io::Result<()> {
        self.file.set_len(0)?;
        keep_permissions(&self.target, &self.file);
        (&self.file).rewind()
    }

    /// Leaves nothing behind after `error`.
    fn discard(self, error: io::Error) -> io::Error {
        remove(&self.path, &self.file);
        error
    }
}

/// The file `NAME.unfinished` while lines are added to it.
#[derive(Debug)]
struct Journal {
    target: PathBuf,
    path: PathBuf,
    lines: LineWriter<BufWriter<File>>,
    /// Whether it has no records, so that there is nothing to resume.
    is_empty: bool,
}

impl Journal {
    fn file(&self) -> &File {
        self.lines.get_ref().get_ref()
    }

    fn record(&mut self, record: &impl Serialize) -> io::Result<()> {
        self.lines.record(record)?;
        self.is_empty = false;
        Ok(())
    }

    fn plain_record(&mut self, record: PlainRecord) -> io::Result<()> {
        self.lines.plain_record(record)?;
        self.is_empty = false;
        Ok(())
    }

    /// Moves the flushed lines to their destination.
    fn finish(&mut self) -> io::Result<()> {
        let mut file = self.file();
        if gzip::is_named(&self.target) {
            replace(&self.target, |target| gzip::compress(file, target))?;
            remove(&self.path, file);
            return Ok(());
        }
        if is_at(&self.path, file) {
            sync(file)?;
            return rename(&self.path, &self.target);
        }
        // Somebody has removed it; the lines are still there as long as it is open.
        file.rewind()?;
        replace(&self.target, |target| io::copy(&mut file, target).map(drop))
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        if self.is_empty {
            remove(&self.path, self.file());
        }
    }
}

//! Where results go: `--out` and `--csv`, and the summary beside them.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{anyhow, bail};
use nodeproof::Graph;
use nodeproof::files::{self, AtomicFile, Destination, FileError, Lock, Unfinished};
use nodeproof::results::{PlainRecord, Record, TableWriter};
use serde::Serialize;

use crate::cli::ResultArguments;
use crate::{terminal, words};

/// Longest time that a finished record waits in memory.
const FLUSH_INTERVAL: Duration = Duration::from_secs(1);

/// The destination that `path`, given with `option`, means.
///
/// # Errors
/// If nothing can be written there, or if it is one of the `inputs`.
pub(crate) fn destination(path: &Path, option: &str, inputs: &[&Path]) -> anyhow::Result<Destination> {
    let destination = Destination::of(path);
    let checked = destination.check(inputs).and_then(|()| destination.check_writable());
    checked.map_err(|error| match &error {
        FileError::Input { path, input } if path == input => {
            anyhow!("{option}: {} is an input of this command; choose another name", path.display())
        }
        _ => anyhow!("{option}: {error}"),
    })?;
    Ok(destination)
}

/// The file that `path`, given with `option`, means, for what cannot go to stdout: `what`, such as `such.as`.
///
/// # Errors
/// As [`destination`], and if it is stdout.
pub(crate) fn file(path: &Path, option: &str, inputs: &[&Path], what: &str, such_as: &str) -> anyhow::Result<PathBuf> {
    match destination(path, option, inputs)? {
        Destination::File(path) => Ok(path),
        Destination::Stdout => bail!("{option}: {what} is written to a file; give its name, such as {such_as}"),
    }
}

/// Makes `bytes` the content of the file at `path`, as a whole or not at all.
///
/// # Errors
/// If that is not possible; what was there before is then as it was.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    use io::Write;
    let replaced = files::replace(path, |file| file.write_all(bytes));
    replaced.map_err(|error| words::file(Destination::File(path.to_owned()).failure(error)))
}

/// Where the results of a run go, and how.
#[derive(Debug, Default)]
pub(crate) struct ResultFiles {
    pub(crate) out: Option<Destination>,
    pub(crate) csv: Option<Destination>,
    /// Whether what an interrupted run wrote to `out` is continued.
    pub(crate) resume: bool,
    /// Whether the time of each node is kept.
    pub(crate) timings: bool,
}

impl ResultFiles {
    /// Results that are written to one file and nowhere else.
    pub(crate) fn only(out: &Path) -> Self {
        Self { out: Some(Destination::of(out)), ..Self::default() }
    }

    /// What the options mean.
    ///
    /// # Errors
    /// If it can be seen that it cannot work, or if a destination is one of the `inputs`.
    pub(crate) fn check(arguments: &ResultArguments, inputs: &[&Path]) -> anyhow::Result<Self> {
        let check =
            |path: &Option<PathBuf>, option| path.as_deref().map(|path| destination(path, option, inputs)).transpose();
        let (out, csv) = (check(&arguments.out, "--out")?, check(&arguments.csv, "--csv")?);
        if out.as_ref().zip(csv.as_ref()).is_some_and(|(out, csv)| out.is_same(csv)) {
            bail!("--out and --csv write to the same place; give them different files");
        }
        if arguments.resume && out == Some(Destination::Stdout) {
            bail!("--resume continues a file, but --out is stdout; give --out the name of the file");
        }
        Ok(Self { out, csv, resume: arguments.resume, timings: arguments.timings })
    }

    /// Whether an interrupted run can be resumed.
    pub(crate) fn can_be_resumed(&self) -> bool {
        self.out.as_ref().is_some_and(|destination| destination.path().is_some() && !destination.is_special())
    }

    /// Prints the summary: on stdout, unless results go there.
    ///
    /// # Errors
    /// If it cannot be printed; that nobody reads it is no error.
    pub(crate) fn print_summary(&self, text: &str) -> anyhow::Result<()> {
        let printed = if self.all().any(|destination| *destination == Destination::Stdout) {
            use io::Write;
            io::stderr().write_all(text.as_bytes())
        } else {
            terminal::print(text)
        };
        match printed {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            Err(error) => bail!("cannot print the summary: {error}"),
            Ok(()) => Ok(()),
        }
    }

    /// The names of the files, for people.
    pub(crate) fn names(&self) -> Option<String> {
        let names: Vec<String> = self.all().filter_map(Destination::path).map(terminal::shown).collect();
        (!names.is_empty()).then(|| names.join(", "))
    }

    fn all(&self) -> impl Iterator<Item = &Destination> {
        [&self.out, &self.csv].into_iter().flatten()
    }
}

/// An output, as long as somebody reads it.
#[derive(Debug)]
pub(crate) enum Output<T> {
    /// There is none.
    Nowhere,
    /// It is written to.
    Open(T),
    /// Whoever read it has closed the pipe, and has seen enough.
    Closed,
}

impl<T> Output<T> {
    /// What `begin` begins, if there is a destination for it.
    ///
    /// # Errors
    /// If it cannot be written, or if another run writes it.
    pub(crate) fn begin(
        destination: Option<&Destination>,
        begin: impl FnOnce(&Destination) -> Result<T, FileError>,
    ) -> anyhow::Result<Self> {
        let Some(destination) = destination else { return Ok(Self::Nowhere) };
        match begin(destination) {
            Ok(output) => Ok(Self::Open(output)),
            Err(error) if error.is_closed_pipe() => Ok(Self::Closed),
            Err(error) => Err(words::file(error)),
        }
    }

    /// Writes, if somebody reads it.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(crate) fn write(&mut self, write: impl FnOnce(&mut T) -> Result<(), FileError>) -> anyhow::Result<()> {
        let Self::Open(output) = self else { return Ok(()) };
        match write(output) {
            Err(error) if error.is_closed_pipe() => {
                *self = Self::Closed;
                Ok(())
            }
            written => written.map_err(words::file),
        }
    }

    /// Ends it, if somebody reads it.
    ///
    /// # Errors
    /// If that fails.
    pub(crate) fn end(self, end: impl FnOnce(T) -> Result<(), FileError>) -> anyhow::Result<()> {
        let Self::Open(output) = self else { return Ok(()) };
        match end(output) {
            Err(error) if error.is_closed_pipe() => Ok(()),
            ended => ended.map_err(words::file),
        }
    }
}

/// A table that appears as a whole at the end.
#[derive(Debug)]
pub(crate) struct Table {
    destination: Destination,
    writer: TableWriter<AtomicFile>,
    _lock: Option<Lock>,
}

impl Table {
    /// Begins the table of records of this kind.
    ///
    /// # Errors
    /// If it cannot be written, or if another run writes it.
    pub(crate) fn begin<R: Record>(destination: &Destination, graph: &Graph) -> Result<Self, FileError> {
        let lock = destination.path().map(Lock::of_output).transpose()?;
        let writer = AtomicFile::create(destination).and_then(|file| TableWriter::begin::<R>(file, graph));
        Ok(Self {
            destination: destination.clone(),
            writer: writer.map_err(|error| destination.failure(error))?,
            _lock: lock,
        })
    }

    /// Adds a row.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(crate) fn row<R: Record>(&mut self, record: &R) -> Result<(), FileError> {
        self.writer.record(record).map_err(|error| self.destination.failure(error))
    }

    fn flush(&mut self) -> Result<(), FileError> {
        self.writer.flush().map_err(|error| self.destination.failure(error))
    }

    fn commit(self) -> Result<(), FileError> {
        let committed = self.writer.into_inner().and_then(AtomicFile::commit);
        committed.map_err(|error| self.destination.failure(error))
    }
}

/// All outputs of a run.
#[derive(Debug)]
pub(crate) struct Outputs {
    lines: Output<Unfinished>,
    table: Output<Table>,
    flushed: Instant,
}

impl Outputs {
    /// Outputs that have begun.
    pub(crate) fn new(lines: Output<Unfinished>, table: Output<Table>) -> Self {
        Self { lines, table, flushed: Instant::now() }
    }

    /// Adds a line; every now and then hands all to the system, so that a killed run loses little.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(crate) fn line(&mut self, line: &impl Serialize) -> anyhow::Result<()> {
        self.lines.write(|lines| lines.record(line))?;
        self.flush_now_and_then()
    }

    fn flush_now_and_then(&mut self) -> anyhow::Result<()> {
        if self.flushed.elapsed() >= FLUSH_INTERVAL {
            self.flush()?;
        }
        Ok(())
    }

    /// Adds a line of a record that was on file.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(crate) fn plain_line(&mut self, record: PlainRecord) -> anyhow::Result<()> {
        self.lines.write(|lines| lines.plain_record(record))?;
        self.flush_now_and_then()
    }

    /// Whether somebody reads a table.
    pub(crate) fn has_table(&self) -> bool {
        matches!(self.table, Output::Open(_))
    }

    /// Adds a row to the table.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(crate) fn row<R: Record>(&mut self, record: &R) -> anyhow::Result<()> {
        self.table.write(|table| table.row(record))
    }

    /// Hands everything to the system.
    ///
    /// # Errors
    /// If that fails.
    pub(crate) fn flush(&mut self) -> anyhow::Result<()> {
        self.flushed = Instant::now();
        self.lines.write(Unfinished::flush)?;
        self.table.write(Table::flush)
    }

    /// Whether there were outputs and nobody reads any of them any more.
    pub(crate) fn all_closed(&self) -> bool {
        matches!(
            (&self.lines, &self.table),
            (Output::Closed, Output::Closed | Output::Nowhere) | (Output::Nowhere, Output::Closed)
        )
    }

    /// Ends a run that has all its results: the files get their names.
    ///
    /// # Errors
    /// If that fails; files that had the names are then as they were.
    pub(crate) fn finish(self) -> anyhow::Result<()> {
        self.lines.end(Unfinished::finish)?;
        self.table.end(Table::commit)
    }

    /// Ends a run whose lines were a journal: `write` writes what replaces them.
    ///
    /// # Errors
    /// As [`Outputs::finish`].
    pub(crate) fn finish_with(self, write: impl FnOnce(&mut dyn io::Write) -> io::Result<()>) -> anyhow::Result<()> {
        self.lines.end(|lines| lines.finish_with(write))?;
        self.table.end(Table::commit)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::fs;

    use nodeproof::{NodeId, Radius};

    use super::*;

    fn closed() -> FileError {
        FileError::Stdout { source: io::ErrorKind::BrokenPipe.into() }
    }

    fn full() -> FileError {
        FileError::Stdout { source: io::ErrorKind::StorageFull.into() }
    }

    #[test]
    fn a_closed_pipe_ends_an_output_quietly_and_every_other_failure_aloud() {
        let destination = Destination::Stdout;
        let mut output = Output::begin(Some(&destination), |_| Ok(0)).unwrap();
        let add = |written: &mut i32| {
            *written += 1;
            Ok(())
        };
        output.write(add).unwrap();
        assert!(matches!(output, Output::Open(1)));
        assert!(output.write(|_| Err(full())).unwrap_err().to_string().contains("cannot write to stdout"));
        output.write(|_| Err(closed())).unwrap();
        assert!(matches!(output, Output::Closed));
        output.write(|_| Err(full())).unwrap();
        output.end(|_| Err(full())).unwrap();
        assert!(matches!(Output::<()>::begin(Some(&destination), |_| Err(closed())).unwrap(), Output::Closed));
        assert!(matches!(Output::<()>::begin(None, |_| Err(full())).unwrap(), Output::Nowhere));
        assert!(Output::<()>::begin(Some(&destination), |_| Err(full())).is_err());
        assert!(Output::Open(()).end(|()| Err(full())).is_err());
    }

    #[test]
    fn nobody_listens_once_all_outputs_are_closed() {
        let all_closed = |lines, table| Outputs::new(lines, table).all_closed();
        assert!(!all_closed(Output::Nowhere, Output::Nowhere), "a summary may still be wanted");
        assert!(all_closed(Output::Closed, Output::Nowhere));
        assert!(all_closed(Output::Nowhere, Output::Closed));
        assert!(all_closed(Output::Closed, Output::Closed));
        let folder = tempfile::tempdir().unwrap();
        let (graph, destination) = (Graph::new(1, 1, &[], &[]).unwrap(), Destination::of(folder.path().join("table")));
        let table = Output::Open(Table::begin::<Radius>(&destination, &graph).unwrap());
        assert!(!all_closed(Output::Closed, table));
    }

    #[test]
    fn a_table_appears_as_a_whole_and_is_written_by_one_run_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("table.csv");
        let (graph, destination) = (Graph::new(1, 1, &[], &[]).unwrap(), Destination::of(&path));
        fs::write(&path, "old").unwrap();
        let mut table = Table::begin::<Radius>(&destination, &graph).unwrap();
        table.row(&Radius::new(NodeId(0), &graph, Some(3), None)).unwrap();
        table.flush().unwrap();
        assert!(matches!(Table::begin::<Radius>(&destination, &graph), Err(FileError::Busy { .. })));
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        table.commit().unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("node,label,class,robust_up_to") && text.ends_with("\n0,,,3,,,,,\n"), "{text}");
    }

    #[test]
    fn destinations_are_named_with_their_options() {
        let folder = tempfile::tempdir().unwrap();
        let input = folder.path().join("graph.npz");
        fs::write(&input, "").unwrap();
        let problem = |path: &Path| destination(path, "--csv", &[&input]).unwrap_err().to_string();
        assert!(problem(&input).ends_with("graph.npz is an input of this command; choose another name"));
        let other = problem(&folder.path().join("./x/../graph.npz"));
        assert!(other.starts_with("--csv: cannot write "), "{other}");
        assert_eq!(destination(Path::new("-"), "--csv", &[]).unwrap(), Destination::Stdout);
        let stdout = file(Path::new("-"), "--out", &[], "a split", "split.json").unwrap_err().to_string();
        assert_eq!(stdout, "--out: a split is written to a file; give its name, such as split.json");
    }
}

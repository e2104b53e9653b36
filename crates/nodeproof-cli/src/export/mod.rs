//! Certificates and radii as files: one exporter a format, fed node by node.

mod csv;
mod destination;
mod jsonl;
mod places;
mod radii;
mod record;
mod resume;

use std::io;
use std::time::{Duration, Instant};

use anyhow::anyhow;
use nodeproof::Graph;
use serde::Serialize;

pub(crate) use self::csv::Csv;
#[cfg(feature = "download")]
pub(crate) use destination::place;
pub(crate) use destination::{Destination, Opened, check_openable, check_replaceable, open_all, replace};
pub(crate) use jsonl::JsonLines;
pub(crate) use places::Places;
pub(crate) use resume::{Kept, scan};

/// Longest time that a finished record waits in memory.
const FLUSH_INTERVAL: Duration = Duration::from_secs(1);

/// What a file is about, and what its nodes are called, for formats that show that.
#[derive(Debug, Clone)]
pub(crate) struct Header<A> {
    pub(crate) about: A,
    names: Option<Vec<String>>,
}

impl<A: Serialize> Header<A> {
    /// The header of a file about nodes of `graph`.
    pub(crate) fn new(about: A, graph: &Graph) -> Self {
        Self { about, names: graph.names().nodes.clone() }
    }

    /// What it is about as one line without its end.
    fn line(&self) -> serde_json::Result<String> {
        serde_json::to_string(&self.about)
    }
}

/// What is written of a node.
pub(crate) trait Exported: Serialize {
    /// What a file of these is about.
    type About: Serialize;
    /// Columns of a table, after the node and its name.
    const COLUMNS: &'static [&'static str];

    /// The node.
    fn node(&self) -> u32;

    /// What stands in the columns.
    fn cells(&self) -> Vec<String>;
}

/// A value as it stands in a table: nothing where there is none.
fn cell(value: Option<impl ToString>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

/// A file format.
pub(crate) trait Exporter<R: Exported> {
    /// Writes what comes before the first record.
    fn begin(&mut self, header: &Header<R::About>) -> io::Result<()>;
    /// Writes one record.
    fn record(&mut self, record: &R) -> io::Result<()>;
    /// Hands everything to the system.
    fn flush(&mut self) -> io::Result<()>;
}

/// An exporter and where it writes.
pub(crate) struct Output<R> {
    exporter: Box<dyn Exporter<R>>,
    destination: Destination,
    /// Whoever read it has seen enough.
    closed: bool,
}

impl<R: Exported> Output<R> {
    /// Writes to `destination` through `exporter`.
    pub(crate) fn new(exporter: Box<dyn Exporter<R>>, destination: Destination) -> Self {
        Self { exporter, destination, closed: false }
    }

    /// Writes what comes before the first record.
    pub(crate) fn begin(&mut self, header: &Header<R::About>) -> anyhow::Result<()> {
        self.attempt(|exporter| exporter.begin(header))
    }

    /// Writes one record.
    pub(crate) fn record(&mut self, record: &R) -> anyhow::Result<()> {
        self.attempt(|exporter| exporter.record(record))
    }

    /// Hands everything to the system.
    pub(crate) fn flush(&mut self) -> anyhow::Result<()> {
        self.attempt(|exporter| exporter.flush())
    }

    /// A closed stdout is no failure: nothing more goes there, and other outputs go on.
    fn attempt(&mut self, write: impl FnOnce(&mut dyn Exporter<R>) -> io::Result<()>) -> anyhow::Result<()> {
        if self.closed {
            return Ok(());
        }
        match write(self.exporter.as_mut()) {
            Err(error) if self.destination == Destination::Stdout && error.kind() == io::ErrorKind::BrokenPipe => {
                self.closed = true;
                Ok(())
            }
            written => written.map_err(|error| self.destination.failure(error)),
        }
    }
}

/// All outputs of a run.
pub(crate) struct Outputs<R> {
    outputs: Vec<Output<R>>,
    flushed: Instant,
}

impl<R: Exported> Outputs<R> {
    /// Feeds `outputs`, which have begun.
    pub(crate) fn new(outputs: Vec<Output<R>>) -> Self {
        Self { outputs, flushed: Instant::now() }
    }

    /// Writes one record everywhere; every now and then hands all to the system, so that a killed run loses little.
    pub(crate) fn record(&mut self, record: &R) -> anyhow::Result<()> {
        self.outputs.iter_mut().try_for_each(|output| output.record(record))?;
        if self.flushed.elapsed() >= FLUSH_INTERVAL {
            self.flush()?;
        }
        Ok(())
    }

    /// Whether there were outputs and nobody reads any of them any more.
    pub(crate) fn all_closed(&self) -> bool {
        !self.outputs.is_empty() && self.outputs.iter().all(|output| output.closed)
    }

    /// Hands everything to the system.
    pub(crate) fn flush(&mut self) -> anyhow::Result<()> {
        self.flushed = Instant::now();
        self.outputs.iter_mut().try_for_each(Output::flush)
    }
}

impl Destination {
    /// A closed stdout must reach `main` as it is; a file is named.
    fn failure(&self, error: io::Error) -> anyhow::Error {
        match self {
            Self::Stdout => error.into(),
            Self::File(path) => {
                anyhow!("cannot write {}: {error}; make room there or choose another place", path.display())
            }
        }
    }
}

//! Shards of a run, each in a file of its own, as `certify --shard` and `radius --shard` write them.

use std::cell::{Cell, OnceCell, RefCell};
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use nodeproof::files::{Destination, FileError, Keep, Unfinished};
use nodeproof::results::{self, Header, Radii, Record, ShardFields, Trial};
use nodeproof::{
    Certificate, Certifier, CertifySettings, Event, Finish, Graph, Model, NodeId, Radius, Recheck, SearchEvent,
};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

use crate::arrays;
use crate::errors::{Failure, Raised};
use crate::graph::PyGraph;
use crate::model::PyModel;
use crate::settings::PySettings;
use crate::work::{self, Watch};

/// Longest time that a finished record waits in memory.
const FLUSH_INTERVAL: Duration = Duration::from_secs(1);

/// Certifies shards of nodes, as many as `files` has names, each into its file.
///
/// `next` is called with the number of the shard that is whole now, or none, and says which one is next, or that there are no more. What an
/// earlier run wrote stays, and an unfinished shard is gone on with. What all shards share is prepared once.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "one for each option")]
pub(crate) fn certify_shards(
    py: Python<'_>,
    graph: &PyGraph,
    model: &PyModel,
    settings: &PySettings,
    nodes: arrays::Array1<'_, u32>,
    files: Vec<PathBuf>,
    next: Py<PyAny>,
    timings: bool,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<()> {
    let run = Run::new(py, graph, model, settings, &nodes, files, (false, timings))?;
    work::run(py, progress.as_ref(), move |watch| run.certify(&Numbers(next), watch))
}

/// Finds the radii of shards of nodes; otherwise as [`certify_shards`].
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "one for each option")]
pub(crate) fn radius_shards(
    py: Python<'_>,
    graph: &PyGraph,
    model: &PyModel,
    settings: &PySettings,
    nodes: arrays::Array1<'_, u32>,
    files: Vec<PathBuf>,
    next: Py<PyAny>,
    scan: bool,
    timings: bool,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<()> {
    let run = Run::new(py, graph, model, settings, &nodes, files, (scan, timings))?;
    if scan {
        run.settings.validate_scan().raised(py)?;
    }
    work::run(py, progress.as_ref(), move |watch| {
        let (numbers, mut done, mut whole) = (Numbers(next), 0, None);
        while let Some(number) = numbers.after(whole)? {
            run.find(number, &mut done, watch)?;
            whole = Some(number);
        }
        Ok(())
    })
}

/// Whoever says which shard is next.
struct Numbers(Py<PyAny>);

impl Numbers {
    /// The number of the shard to do after one that is whole.
    fn after(&self, whole: Option<usize>) -> Result<Option<usize>, Failure> {
        Python::attach(|py| self.0.call1(py, (whole,)).and_then(|number| number.extract(py)))
            .map_err(|error| Failure::Internal(format!("no shard is next: {error}")))
    }
}

/// A run that is written shard by shard.
struct Run {
    graph: Arc<Graph>,
    model: Arc<Model>,
    settings: CertifySettings,
    nodes: Vec<NodeId>,
    /// One file a shard.
    files: Vec<PathBuf>,
    /// Of all shards together.
    header: Header,
}

/// What checks records of an earlier run, made when there are some.
type Rechecks<'c> = OnceCell<Recheck<'c>>;

/// A shard whose certificates are being written.
struct Writing {
    number: usize,
    lines: Unfinished,
    header: Header,
    flushed: Instant,
}

impl Writing {
    fn take(&mut self, certificate: &Certificate) -> Result<(), Failure> {
        self.lines.record(&certificate.line(&self.header))?;
        if self.flushed.elapsed() >= FLUSH_INTERVAL {
            self.lines.flush()?;
            self.flushed = Instant::now();
        }
        Ok(())
    }
}

impl Run {
    fn new(
        py: Python<'_>,
        graph: &PyGraph,
        model: &PyModel,
        settings: &PySettings,
        nodes: &arrays::Array1<'_, u32>,
        files: Vec<PathBuf>,
        (scan, timings): (bool, bool),
    ) -> PyResult<Self> {
        let (graph, model, settings) = (Arc::clone(&graph.0), Arc::clone(&model.0), settings.0.clone());
        let nodes = arrays::nodes(nodes);
        settings.validate(&graph, &nodes).raised(py)?;
        let header = Header::new(&graph, &model, &settings, nodes.len()).scan(scan).timings(timings);
        Ok(Self { graph, model, settings, nodes, files, header })
    }

    fn certifier(&self) -> Result<Certifier<'_>, Failure> {
        Ok(Certifier::new(&self.graph, &self.model)?.settings(self.settings.clone()))
    }

    /// The header of a shard, the places of its nodes, and its file.
    fn shard(&self, number: usize) -> Result<(Header, Range<usize>, &Path), Failure> {
        let of = self.files.len();
        let shard = ShardFields::new(number, of, self.nodes.len());
        let shard = shard.ok_or_else(|| Failure::input(format!("there is no shard {number} of {of}")))?;
        let mut header = self.header.clone().shard(Some(shard));
        header.nodes = shard.range().len();
        Ok((header, shard.range(), &self.files[number - 1]))
    }

    fn certify(&self, numbers: &Numbers, watch: &Watch) -> Result<(), Failure> {
        let certifier = self.certifier()?;
        let (rechecks, total) = (OnceCell::new(), self.nodes.len());
        let (writing, done, failed) = (RefCell::new(None::<Writing>), Cell::new(0), RefCell::new(Ok(())));
        // Ends the shard before, and begins those that come until one has nodes left.
        let next = || -> Result<Option<Range<usize>>, Failure> {
            loop {
                let mut whole = None;
                if let Some(written) = writing.take() {
                    written.lines.finish()?;
                    whole = Some(written.number);
                }
                let Some(number) = numbers.after(whole)? else { return Ok(None) };
                let (begun, left) = self.begin(&certifier, number, &rechecks)?;
                done.set(done.get() + begun.header.nodes - left.len());
                watch.tell(done.get(), total);
                writing.replace(Some(begun));
                if !left.is_empty() {
                    return Ok(Some(left));
                }
            }
        };
        let next = || {
            next().unwrap_or_else(|failure| {
                *failed.borrow_mut() = Err(failure);
                None
            })
        };
        let finish = certifier.certify_parts(&self.nodes, next, |event| {
            if let (Event::Certified(certificate), Some(writing)) = (event, writing.borrow_mut().as_mut()) {
                *failed.borrow_mut() = writing.take(&certificate);
                done.set(done.get() + 1);
            }
            go_on(watch.tell(done.get(), total) || failed.borrow().is_err())
        })?;
        failed.into_inner()?;
        if let Some(mut writing) = writing.into_inner() {
            writing.lines.flush()?;
        }
        if finish == Finish::Complete { Ok(()) } else { Err(Failure::Stopped) }
    }

    /// Opens the file of a shard, and keeps what an earlier run wrote; the places of the nodes that are left.
    fn begin<'c>(
        &self,
        certifier: &'c Certifier,
        number: usize,
        rechecks: &Rechecks<'c>,
    ) -> Result<(Writing, Range<usize>), Failure> {
        let (header, places, file) = self.shard(number)?;
        let nodes = &self.nodes[places.clone()];
        let mut done = 0;
        let line = Certificate::header_line(&header);
        let lines = Unfinished::resume(&Destination::of(file), &line, |line| {
            let certificate = Certificate::of_line(line, &header)?;
            check_turn(nodes, done, certificate.node)?;
            made(rechecks, certifier)?.certificate(&certificate)?;
            done += 1;
            Ok(Keep::Keep)
        })?;
        drop(line);
        Ok((Writing { number, lines, header, flushed: Instant::now() }, places.start + done..places.end))
    }

    /// Finds the radii of a shard, and goes on where an earlier run was interrupted.
    fn find(&self, number: usize, done: &mut usize, watch: &Watch) -> Result<(), Failure> {
        let (header, places, file) = self.shard(number)?;
        let nodes = &self.nodes[places];
        let (certifier, most) = (self.certifier()?, self.settings.budget.varied());
        let scan = self.header.scan;
        let mut search = if scan { certifier.scan_radii(nodes, most) } else { certifier.search_radii(nodes, most) };
        let mut radii = Radii::new(header);
        let before = *done;
        *done += nodes.len();
        let rechecks = OnceCell::new();
        let destination = Destination::of(file);
        let lines = Unfinished::resume_journal(&destination, &Trial::header_line(&radii.header), |line| {
            let trial = Trial::of_line(line, &radii.header)?;
            made(&rechecks, &certifier)?.trial(&trial)?;
            search.learn(&trial)?;
            Ok(Keep::Keep)
        });
        let mut lines = match lines {
            Err(FileError::NothingUnfinished { .. }) => return self.check_whole(&certifier, number, &rechecks),
            lines => lines?,
        };
        let (mut written, mut flushed) = (Ok(()), Instant::now());
        let finish = search.run(|search, event| {
            if let SearchEvent::Verdict(trial) = event {
                written = lines.record(&trial.line(&radii.header));
            }
            if written.is_ok() && flushed.elapsed() >= FLUSH_INTERVAL {
                (written, flushed) = (lines.flush(), Instant::now());
            }
            let found = if scan { 0 } else { search.progress().0 };
            go_on(watch.tell(before + found.min(nodes.len()), self.nodes.len()) || written.is_err())
        })?;
        written?;
        if finish == Finish::Cancelled {
            lines.flush()?;
            return Err(Failure::Stopped);
        }
        radii.records = search.radii();
        lines.finish_with(|out| radii.write(out))?;
        watch.tell(*done, self.nodes.len());
        Ok(())
    }

    /// Checks that the file of a shard has the radii of all of its nodes.
    fn check_whole<'c>(&self, certifier: &'c Certifier, number: usize, rechecks: &Rechecks<'c>) -> Result<(), Failure> {
        let (header, places, file) = self.shard(number)?;
        let (nodes, mut done) = (&self.nodes[places], 0);
        Unfinished::resume(&Destination::of(file), &Radius::header_line(&header), |line| {
            let radius = Radius::of_line(line, &header)?;
            check_turn(nodes, done, radius.node)?;
            made(rechecks, certifier)?.radius(&radius)?;
            done += 1;
            Ok(Keep::Keep)
        })?;
        if done == nodes.len() {
            return Ok(());
        }
        Err(Failure::File(format!(
            "{} has {done} of {} nodes, and what led to them is gone; remove it, and run again",
            file.display(),
            nodes.len()
        )))
    }
}

/// What checks records, made once.
fn made<'r, 'c>(rechecks: &'r Rechecks<'c>, certifier: &'c Certifier) -> Result<&'r Recheck<'c>, String> {
    if rechecks.get().is_none() {
        let made = certifier.recheck().map_err(|error| error.to_string())?;
        let _ = rechecks.set(made);
    }
    rechecks.get().ok_or_else(|| "it cannot be checked".to_owned())
}

/// The records of a run with this header, of whose shards these are the files, in any order.
///
/// # Errors
/// If they are not.
pub(crate) fn merged<R: Record, E: Into<Failure>>(
    header: &Header,
    shards: &[PyBackedBytes],
    read: impl Fn(&PyBackedBytes) -> Result<(Header, Vec<R>), E>,
) -> Result<Vec<R>, Failure> {
    let shards = shards.iter().map(|shard| read(shard).map_err(Into::into)).collect::<Result<Vec<_>, Failure>>()?;
    let (found, records) = results::merged(shards).map_err(Failure::input)?;
    if found != *header {
        return Err(Failure::input("the shards are of another run"));
    }
    Ok(records)
}

/// Checks that a record of an earlier run is about the node that comes after `done` of `nodes`.
fn check_turn(nodes: &[NodeId], done: usize, node: NodeId) -> Result<(), String> {
    match nodes.get(done) {
        Some(&expected) if expected == node => Ok(()),
        _ => Err(format!("it is about node {node}, which does not come next")),
    }
}

fn go_on(stop: bool) -> ControlFlow<()> {
    if stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

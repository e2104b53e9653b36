//! `nodeproof radius`: how many flips each prediction withstands.

mod histogram;
mod report;

use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

use anyhow::bail;
use cpu_time::ProcessTime;
use nodeproof::{Certifier, Engine, Graph, NodeId, Radius};
use nodeproof_report::results::{Radii, RadiiHeader, RadiusRecord};

use crate::cli::{RadiusArguments, ResultArguments};
use crate::engine::Effort;
use crate::export::{Header, Kept, Outputs, Places};
use crate::inputs::Inputs;
use crate::interrupt::Interrupt;
use crate::outcome::Outcome;
use crate::progress::Progress;
use crate::summary::Run;
use crate::{lists, terminal};

use report::Report;

/// Runs the command.
///
/// # Errors
/// If the input is bad or an output cannot be written.
pub(super) fn run(arguments: &RadiusArguments) -> anyhow::Result<Outcome> {
    let results = &arguments.results;
    let Some(found) = find(arguments)? else {
        terminal::complain(
            "interrupted; nothing was written, since radii are at the end; give fewer --nodes to have some sooner",
        );
        return Ok(Outcome::Interrupted);
    };
    let Found { places, inputs, header, effort, records, run } = &found;
    let report = Report::new(inputs, &header.about, records, *effort, arguments.scan);
    if results.json {
        places.print_summary(&report.json(run)?)?;
    } else if !results.quiet {
        places.print_summary(&report.in_words(places, run))?;
    }
    Ok(Outcome::Done)
}

/// Radii that were found.
pub(super) struct Found {
    places: Places,
    inputs: Inputs,
    header: Header<RadiiHeader>,
    effort: Effort,
    records: Vec<RadiusRecord>,
    run: Run,
}

/// Finds what is asked for; `None` if the user stopped it. Everything is checked before any work; files are written at the
/// end.
///
/// # Errors
/// If the input is bad or an output cannot be written.
pub(super) fn find(arguments: &RadiusArguments) -> anyhow::Result<Option<Found>> {
    let results = &arguments.results;
    let effort = Effort::new(&arguments.engine);
    check_scan(arguments.scan, effort.engine())?;
    let places = check_places(arguments)?;
    let inputs = Inputs::read(&arguments.graph, &arguments.model, &arguments.budget, results.quiet)?;
    let nodes = lists::nodes(&arguments.nodes.nodes, &inputs.graph, inputs.split.as_ref(), "--nodes")?;
    inputs.check_class(arguments.model.class, &nodes)?;
    let class = arguments.model.class.into();
    let certifier = Certifier::new(&inputs.graph, &inputs.model)?
        .budget(inputs.budget.budget().clone())
        .target_class(class)
        .threads(arguments.threads.count());
    let certifier = effort.apply(certifier);
    let (problem, budget) = ((&inputs.graph, &inputs.model), inputs.budget.budget());
    let mut about = Radii::of(&[], problem, budget, effort.engine(), class);
    about.scan = arguments.scan;
    let header = Header::new(about.header(nodes.len(), results.timings)?, &inputs.graph);
    places.check_openable()?;

    let search = Search { certifier: &certifier, graph: &inputs.graph, nodes: &nodes, most: header.about.max_budget };
    let (start, cpu) = (Instant::now(), ProcessTime::now());
    let found = if arguments.scan { search.scan(results.quiet)? } else { search.bisect(results)? };
    let Some(records) = found else { return Ok(None) };
    let (seconds, cpu_seconds) = (start.elapsed().as_secs_f64(), cpu.elapsed().as_secs_f64());
    let run = Run { interrupted: false, resumed: 0, seconds, cpu_seconds };

    write(&places, &header, &records)?;
    drop(certifier);
    Ok(Some(Found { places, inputs, header, effort, records, run }))
}

/// The scan is a measure of the paper, and its bound is that of the engine fast.
fn check_scan(scan: bool, engine: Engine) -> anyhow::Result<()> {
    if scan && engine != Engine::Fast {
        bail!(
            "--scan is the paper's measure, which is about the engine fast, not {}; add --engine fast, or leave out \
             --scan to find radii by bisection",
            engine.name()
        );
    }
    Ok(())
}

fn check_places(arguments: &RadiusArguments) -> anyhow::Result<Places> {
    let mut inputs: Vec<&Path> = vec![&arguments.model.model];
    inputs.extend(arguments.graph.graph.file());
    inputs.extend(arguments.budget.flips.files());
    inputs.extend(arguments.nodes.nodes.file());
    Places::check(&arguments.results, &inputs)
}

/// What is asked for.
struct Search<'a> {
    certifier: &'a Certifier<'a>,
    graph: &'a Graph,
    nodes: &'a [NodeId],
    /// The largest global budget.
    most: u32,
}

impl Search<'_> {
    /// Radii by bisection; `None` if it was interrupted.
    fn bisect(&self, results: &ResultArguments) -> anyhow::Result<Option<Vec<RadiusRecord>>> {
        let progress = Progress::new(self.nodes.len(), 0, results.quiet);
        let interrupt = Interrupt::of(&progress)?;
        let radii = self.certifier.radii(self.nodes, self.most, |round, done, total| {
            progress.bisecting(round, done, total);
            go_on(interrupt)
        });
        progress.clear();
        let record = |radius: &Radius| RadiusRecord::new(radius, self.most, self.graph, results.timings);
        Ok(radii?.map(|radii| radii.iter().map(record).collect()))
    }

    /// The paper's scan; `None` if it was interrupted.
    fn scan(&self, quiet: bool) -> anyhow::Result<Option<Vec<RadiusRecord>>> {
        let progress = Progress::new(self.most as usize, 0, quiet);
        let interrupt = Interrupt::of(&progress)?;
        let largest = self.certifier.certified_radii(self.nodes, self.most, |global, left| {
            progress.scanning(global, left);
            go_on(interrupt)
        });
        progress.clear();
        let record = |(&node, largest)| RadiusRecord::scanned(node, largest, self.graph);
        Ok(largest?.map(|largest| self.nodes.iter().zip(largest).map(record).collect()))
    }
}

fn go_on(interrupt: Interrupt) -> ControlFlow<()> {
    if interrupt.asked() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

fn write(places: &Places, header: &Header<RadiiHeader>, records: &[RadiusRecord]) -> anyhow::Result<()> {
    let mut outputs = Outputs::new(places.open(header, Kept::default(), |_| Ok(()))?);
    records.iter().try_for_each(|record| outputs.record(record))?;
    outputs.flush()
}

//! `nodeproof certify`: verdicts for many nodes.

use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

use anyhow::bail;
use cpu_time::ProcessTime;
use nodeproof::{Certificate, Certifier, Event, Graph, NodeId};
use nodeproof_report::results::{Certificates, CertificatesHeader, Record};

use crate::cli::CertifyArguments;
use crate::engine::Effort;
use crate::export::{self, Destination, Header, Kept, Outputs, Places};
use crate::inputs::Inputs;
use crate::interrupt::Interrupt;
use crate::outcome::Outcome;
use crate::progress::Progress;
use crate::summary::{Run, Summary};
use crate::{lists, terminal};

/// Runs the command.
///
/// # Errors
/// If the input is bad or an output cannot be written.
pub(crate) fn run(arguments: &CertifyArguments) -> anyhow::Result<Outcome> {
    let results = &arguments.results;
    let Some(certified) = certify(arguments)? else { return Ok(Outcome::Done) };
    let Certified { places, summary, run, .. } = &certified;
    if results.json {
        places.print_summary(&summary.json(&certified.header.about, run)?)?;
    } else if !results.quiet {
        places.print_summary(&certified.in_words())?;
    }
    if run.interrupted {
        terminal::complain(&certified.interrupted_in_words());
        return Ok(Outcome::Interrupted);
    }
    Ok(gate(arguments, summary))
}

/// What certifying came to, be it to the end or up to an interrupt.
pub(super) struct Certified {
    places: Places,
    pub(super) inputs: Inputs,
    header: Header<CertificatesHeader>,
    effort: Effort,
    pub(super) summary: Summary,
    pub(super) run: Run,
}

/// Certifies what is asked for; `None` if nobody wants to know any more. Everything is checked before any output is
/// touched.
///
/// # Errors
/// If the input is bad or an output cannot be written.
pub(super) fn certify(arguments: &CertifyArguments) -> anyhow::Result<Option<Certified>> {
    let results = &arguments.results;
    let places = check_places(arguments)?;
    let effort = Effort::new(&arguments.engine).within(arguments.total_time_limit);
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
    let about = Certificates::of(&[], problem, budget, effort.engine(), class).header(nodes.len(), results.timings);
    let header = Header::new(about, &inputs.graph);

    let mut summary = Summary::new(inputs.split.clone());
    let kept = match &places.out {
        Some(Destination::File(path)) if arguments.resume => export::scan(path, &header, &nodes, |record| {
            summary.add(record);
            Ok(())
        })?,
        _ => Kept::default(),
    };
    let progress = Progress::new(nodes.len(), kept.records, results.quiet);
    let interrupt = Interrupt::of(&progress)?;
    let certified = open(&places, &header, kept, &nodes).and_then(|outputs| {
        let rest = &nodes[kept.records..];
        let gate = arguments.fail_under.is_some();
        let mut sinks = Sinks { outputs, summary: &mut summary, progress: &progress, timings: results.timings, gate };
        certify_each(&certifier, &inputs.graph, rest, interrupt, &mut sinks)
    });
    progress.clear();
    let Some(mut run) = certified? else { return Ok(None) };
    run.resumed = kept.records;
    run.interrupted = summary.all().nodes < nodes.len();
    drop(certifier);
    Ok(Some(Certified { places, inputs, header, effort, summary, run }))
}

/// All that wants to know of certificates.
struct Sinks<'a> {
    outputs: Outputs<Record>,
    summary: &'a mut Summary,
    progress: &'a Progress,
    timings: bool,
    /// Whether the share of robust nodes must be known in any case.
    gate: bool,
}

impl Sinks<'_> {
    fn take(&mut self, certificate: &Certificate, graph: &Graph) -> anyhow::Result<()> {
        let record = Record::new(certificate, graph, self.timings);
        self.outputs.record(&record)?;
        self.summary.add(&record);
        self.progress.advance();
        Ok(())
    }

    /// Whether nobody wants to know the rest.
    fn abandoned(&self) -> bool {
        self.outputs.all_closed() && !self.gate
    }
}

/// Certifies `nodes` until the end or an interrupt; `None` if nobody listens any more.
fn certify_each(
    certifier: &Certifier,
    graph: &Graph,
    nodes: &[NodeId],
    interrupt: Interrupt,
    sinks: &mut Sinks,
) -> anyhow::Result<Option<Run>> {
    let (start, cpu) = (Instant::now(), ProcessTime::now());
    let mut written = Ok(());
    if !nodes.is_empty() {
        let _ = certifier.certify_each(nodes, |event| {
            match event {
                Event::Preparing { done, total } => sinks.progress.preparing(done, total),
                Event::Certified(certificate) => written = sinks.take(&certificate, graph),
                _ => {}
            }
            let stop = written.is_err() || interrupt.asked() || sinks.abandoned();
            if stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
    }
    written?;
    sinks.outputs.flush()?;
    if sinks.abandoned() {
        return Ok(None);
    }
    let (seconds, cpu_seconds) = (start.elapsed().as_secs_f64(), cpu.elapsed().as_secs_f64());
    Ok(Some(Run { interrupted: false, resumed: 0, seconds, cpu_seconds }))
}

fn check_places(arguments: &CertifyArguments) -> anyhow::Result<Places> {
    let mut inputs: Vec<&Path> = vec![&arguments.model.model];
    inputs.extend(arguments.graph.graph.file());
    inputs.extend(arguments.budget.flips.files());
    inputs.extend(arguments.nodes.nodes.file());
    let places = Places::check(&arguments.results, &inputs)?;
    if arguments.resume && places.out == Some(Destination::Stdout) {
        bail!("--resume continues a file, but --out is stdout; give --out the name of the file");
    }
    Ok(places)
}

/// Opens the outputs and brings them to where the run goes on: certificates of an earlier run stay in --out and are
/// copied to the other formats.
fn open(
    places: &Places,
    header: &Header<CertificatesHeader>,
    kept: Kept,
    nodes: &[NodeId],
) -> anyhow::Result<Outputs<Record>> {
    let outputs = places.open(header, kept, |output| {
        if let (Some(Destination::File(path)), 1..) = (&places.out, kept.records) {
            export::scan(path, header, nodes, |record| output.record(record))?;
        }
        Ok(())
    })?;
    Ok(Outputs::new(outputs))
}

impl Certified {
    fn in_words(&self) -> String {
        let Self { places, inputs, effort, summary, run, .. } = self;
        let fresh = summary.all().nodes - run.resumed;
        let mut facts =
            vec![("budget", inputs.budget.in_words(&inputs.graph)), ("engine", summary.engines_in_words(*effort))];
        facts.extend(summary.hint(*effort).map(|hint| ("hint", hint)));
        facts.push(("time", run.time_in_words(fresh)));
        if run.resumed > 0 {
            facts.push(("resumed", format!("{} done before", terminal::counted(run.resumed, "node"))));
        }
        let files = places.files();
        if !files.is_empty() {
            facts.push(("written", files.join(", ")));
        }
        format!("{}\n{}", summary.table(), terminal::facts(&facts))
    }

    fn interrupted_in_words(&self) -> String {
        let remedy = match self.places.out {
            Some(Destination::File(_)) => "; add --resume to continue",
            _ => "",
        };
        format!("interrupted after {} of {} nodes{remedy}", self.summary.all().nodes, self.header.about.nodes)
    }
}

fn gate(arguments: &CertifyArguments, summary: &Summary) -> Outcome {
    let all = summary.all();
    match arguments.fail_under {
        Some(share) if share.exceeds(all.robust, all.nodes) => {
            terminal::complain(&format!(
                "failed: {} of {} nodes ({}) are robust, fewer than --fail-under {share} asks for",
                all.robust,
                all.nodes,
                terminal::percentage(all.robust, all.nodes)
            ));
            Outcome::GateFailed
        }
        _ => Outcome::Done,
    }
}

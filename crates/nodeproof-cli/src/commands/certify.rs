//! `nodeproof certify`: verdicts for many nodes.

use std::io;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

use anyhow::bail;
use cpu_time::ProcessTime;
use nodeproof::{Certificate, Certifier, Event, Graph, NodeId};

use crate::cli::CertifyArguments;
use crate::export::{self, Csv, Destination, Header, JsonLines, Kept, Output, Outputs, Record};
use crate::inputs::Inputs;
use crate::interrupt::Interrupt;
use crate::outcome::Outcome;
use crate::progress::Progress;
use crate::summary::{Run, Summary};
use crate::values::NodeList;
use crate::{lists, terminal};

/// Runs the command. Everything is checked before any output is touched.
///
/// # Errors
/// If the input is bad or an output cannot be written.
pub(crate) fn run(arguments: &CertifyArguments) -> anyhow::Result<Outcome> {
    let places = Places::check(arguments)?;
    let inputs = Inputs::read(&arguments.graph, &arguments.model, &arguments.budget, arguments.quiet)?;
    let nodes = lists::nodes(&arguments.nodes, &inputs.graph, inputs.split.as_ref(), "--nodes")?;
    inputs.check_class(arguments.model.class, &nodes)?;
    let class = arguments.model.class.into();
    let certifier = Certifier::new(&inputs.graph, &inputs.model)?
        .budget(inputs.budget.budget().clone())
        .target_class(class)
        .threads(arguments.threads.into());
    let header = Header::new(&inputs.graph, &inputs.model, &inputs.budget, class, nodes.len()).timed(arguments.timings);

    let mut summary = Summary::new(inputs.split.clone());
    let kept = match &places.out {
        Some(Destination::File(path)) if arguments.resume => export::scan(path, &header, &nodes, |record| {
            summary.add(record);
            Ok(())
        })?,
        _ => Kept::default(),
    };
    let progress = Progress::new(nodes.len(), kept.records, arguments.quiet);
    let interrupt = Interrupt::listen({
        let progress = progress.clone();
        move || progress.say("finishing the nodes in progress; press Ctrl-C again to stop at once")
    })?;
    let certified = places.open(&header, kept, &nodes).and_then(|outputs| {
        let rest = &nodes[kept.records..];
        let gate = arguments.fail_under.is_some();
        let mut sinks = Sinks { outputs, summary: &mut summary, progress: &progress, timings: arguments.timings, gate };
        certify(&certifier, &inputs.graph, rest, &interrupt, &mut sinks)
    });
    progress.clear();
    let Some(mut run) = certified? else { return Ok(Outcome::Done) };
    run.resumed = kept.records;
    run.interrupted = summary.all().nodes < nodes.len();

    report(arguments, &places, &inputs, &header, &summary, &run)?;
    if run.interrupted {
        terminal::complain(&interrupted_in_words(&places, summary.all().nodes, nodes.len()));
        return Ok(Outcome::Interrupted);
    }
    Ok(gate(arguments, &summary))
}

/// All that wants to know of certificates.
struct Sinks<'a> {
    outputs: Outputs,
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
fn certify(
    certifier: &Certifier,
    graph: &Graph,
    nodes: &[NodeId],
    interrupt: &Interrupt,
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

/// Where the files go.
struct Places {
    out: Option<Destination>,
    csv: Option<Destination>,
}

impl Places {
    fn check(arguments: &CertifyArguments) -> anyhow::Result<Self> {
        let mut inputs: Vec<&Path> = vec![&arguments.graph.graph, &arguments.model.model];
        inputs.extend(arguments.budget.split.as_deref());
        inputs.extend(arguments.budget.local_budget_file.as_deref());
        inputs.extend(arguments.nodes.file());
        inputs.extend(arguments.budget.protect_nodes.as_ref().and_then(NodeList::file));
        inputs.extend(arguments.budget.protect_attributes.as_deref().and_then(lists::attribute_file));
        let check = |path: &Option<std::path::PathBuf>, option| {
            path.as_deref().map(|path| Destination::check(path, option, &inputs)).transpose()
        };
        let places = Self { out: check(&arguments.out, "--out")?, csv: check(&arguments.csv, "--csv")? };
        if places.out.as_ref().zip(places.csv.as_ref()).is_some_and(|(out, csv)| out.is_same(csv)) {
            bail!("--out and --csv write to the same place; give them different files");
        }
        if arguments.resume && places.out == Some(Destination::Stdout) {
            bail!("--resume continues a file, but --out is stdout; give --out the name of the file");
        }
        Ok(places)
    }

    /// Opens the outputs and brings them to where the run goes on: certificates of an earlier run stay in --out and
    /// are copied to the other formats.
    fn open(&self, header: &Header, kept: Kept, nodes: &[NodeId]) -> anyhow::Result<Outputs> {
        let out = self.out.iter().map(|place| (place.clone(), kept.bytes));
        let csv = self.csv.iter().map(|place| (place.clone(), 0));
        let mut opened = export::open_all(&out.chain(csv).collect::<Vec<_>>())?.into_iter();
        let mut next = |place: &Option<Destination>| place.clone().and_then(|place| Some((place, opened.next()?)));
        let mut outputs = Vec::new();
        if let Some((place, opened)) = next(&self.out) {
            let mut output = Output::new(Box::new(JsonLines::new(opened)), place);
            if kept.bytes == 0 {
                output.begin(header)?;
            }
            outputs.push(output);
        }
        if let Some((place, opened)) = next(&self.csv) {
            let mut output = Output::new(Box::new(Csv::new(opened)), place);
            output.begin(header)?;
            if let (Some(Destination::File(path)), 1..) = (&self.out, kept.records) {
                export::scan(path, header, nodes, |record| output.record(record))?;
            }
            outputs.push(output);
        }
        Ok(Outputs::new(outputs))
    }

    fn use_stdout(&self) -> bool {
        [&self.out, &self.csv].into_iter().flatten().any(|place| *place == Destination::Stdout)
    }

    fn files(&self) -> Vec<String> {
        let file = |place: &Destination| match place {
            Destination::File(path) => Some(terminal::printable(&path.display().to_string())),
            Destination::Stdout => None,
        };
        [&self.out, &self.csv].into_iter().flatten().filter_map(file).collect()
    }
}

/// Prints the summary: on stdout, unless certificates go there.
fn report(
    arguments: &CertifyArguments,
    places: &Places,
    inputs: &Inputs,
    header: &Header,
    summary: &Summary,
    run: &Run,
) -> anyhow::Result<()> {
    let text = if arguments.json {
        summary.json(header, run)?
    } else if arguments.quiet {
        return Ok(());
    } else {
        summary_in_words(places, inputs, summary, run)
    };
    let printed = if places.use_stdout() {
        use io::Write;
        io::stderr().write_all(text.as_bytes())
    } else {
        terminal::print(&text)
    };
    match printed {
        // The gate must be judged even if nobody reads the summary.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => bail!("cannot print the summary: {error}"),
        Ok(()) => Ok(()),
    }
}

fn summary_in_words(places: &Places, inputs: &Inputs, summary: &Summary, run: &Run) -> String {
    let fresh = summary.all().nodes - run.resumed;
    let mut facts = vec![("budget", inputs.budget.in_words(&inputs.graph)), ("time", run.time_in_words(fresh))];
    if run.resumed > 0 {
        facts.push(("resumed", format!("{} done before", terminal::counted(run.resumed, "node"))));
    }
    let files = places.files();
    if !files.is_empty() {
        facts.push(("written", files.join(", ")));
    }
    format!("{}\n{}", summary.table(), terminal::facts(&facts))
}

fn interrupted_in_words(places: &Places, done: usize, all: usize) -> String {
    let remedy = match places.out {
        Some(Destination::File(_)) => "; add --resume to continue",
        _ => "",
    };
    format!("interrupted after {done} of {all} nodes{remedy}")
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

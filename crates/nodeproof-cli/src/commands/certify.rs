//! `nodeproof certify`: verdicts for many nodes.

use std::ops::ControlFlow;

use nodeproof::files::{Keep, Unfinished};
use nodeproof::results::{Header, Record};
use nodeproof::{Certificate, Certifier, CertifySettings, Event, NodeId, Obstacle};
use nodeproof_report::tally::Summary;
use nodeproof_report::text::{counted, percentage};
use serde::Serialize;

use super::check;
use crate::cli::CertifyArguments;
use crate::inputs::{self, Inputs, Question};
use crate::interrupt::Interrupt;
use crate::outcome::Outcome;
use crate::outputs::{Output, Outputs, ResultFiles, Table};
use crate::progress::Progress;
use crate::run::{Clock, Time};
use crate::since::{Carried, CarriedRecord, Since};
use crate::values::Share;
use crate::{budget, engine, lists, terminal, words};

/// Runs the command.
///
/// # Errors
/// If the input is bad or an output cannot be written.
pub(crate) fn run(arguments: &CertifyArguments) -> anyhow::Result<Outcome> {
    let (question, files) = read(arguments)?;
    let (results, gate) = (&arguments.results, arguments.fail_under);
    let listener = Listener { quiet: results.quiet, to_the_end: gate.is_some() };
    let Some(certified) = certify(&question, &files, listener)? else { return Ok(Outcome::Done) };
    if results.json {
        files.print_summary(&certified.json()?)?;
    } else if !results.quiet {
        files.print_summary(&certified.in_words(&question, &files))?;
    }
    if certified.interrupted() {
        terminal::complain(&certified.interrupted_in_words(&files));
        return Ok(Outcome::Interrupted);
    }
    let mut not_checked = 0;
    if arguments.proof.check {
        let outcome;
        (outcome, not_checked) = check::written(&question, &files, results.quiet || results.json)?;
        if outcome != Outcome::Done {
            return Ok(outcome);
        }
    }
    Ok(judge(gate, &certified.summary, not_checked))
}

/// What the arguments ask, and where the answer goes.
fn read(arguments: &CertifyArguments) -> anyhow::Result<(Question, ResultFiles)> {
    let CertifyArguments { graph, model, budget, results, .. } = arguments;
    let flips = &budget.flips;
    let mut taken = inputs::files(graph, model, flips);
    taken.extend(arguments.nodes.nodes.file().into_iter().chain(arguments.since.files()));
    taken.extend(budget.edges.protect_edges.as_deref());
    check::can_be_proven(arguments.proof, &budget.edges, results)?;
    let files = ResultFiles::check(results, &taken)?;
    if arguments.proof.check {
        check::can_be_checked(arguments.proof, &budget.edges, &files)?;
    }
    let inputs = Inputs::read(graph, &model.model, flips.split.as_deref(), results.quiet)?;
    let split = inputs.split.as_ref();
    let nodes = lists::nodes(&arguments.nodes.nodes, &inputs.graph, split, "--nodes")?;
    let budget = budget::read_both(budget, &inputs.graph, split)?;
    let mut settings = engine::settings(budget, model, &arguments.engine);
    settings.total_time_limit = arguments.total_time_limit.0;
    settings.threads = arguments.threads.count();
    settings.proofs = arguments.proof.proof;
    engine::ask(&mut settings, &arguments.asked)?;
    let since = Since::read(&arguments.since, &graph.flags)?;
    Ok((inputs.ask(nodes, settings).part(&arguments.shard).since(since), files))
}

/// Who waits for the certificates.
#[derive(Debug, Clone, Copy)]
pub(super) struct Listener {
    /// Whether no progress is shown.
    pub(super) quiet: bool,
    /// Whether all verdicts must be known, also if nobody reads the outputs any more.
    pub(super) to_the_end: bool,
}

/// What certifying came to, be it to the end or up to an interrupt.
pub(super) struct Certified {
    pub(super) header: Header,
    pub(super) summary: Summary,
    /// Nodes that an interrupted run had certified.
    resumed: usize,
    /// Nodes that were certified now.
    again: usize,
    /// What was carried over from an earlier run, in words.
    carried: Option<String>,
    pub(super) time: Time,
}

/// Certifies what is asked for; `None` if nobody wants to know any more. Everything is checked before any output is
/// touched.
///
/// # Errors
/// If the settings do not fit or an output cannot be written.
pub(super) fn certify(
    question: &Question,
    files: &ResultFiles,
    listener: Listener,
) -> anyhow::Result<Option<Certified>> {
    let Question { graph, model, split, nodes, shard, settings, since } = question;
    let certifier = question.certifier()?;
    let header = Header::new(graph, model, settings, nodes.len()).shard(*shard).timings(files.timings);
    let carried = since.as_ref().map(|since| since.carried(question, &certifier, &header)).transpose()?;
    let header = header.since(carried.as_ref().map(Carried::fields));
    let mut progress = Progress::new(nodes.len(), listener.quiet);
    let interrupt = Interrupt::of(&progress)?;
    let mut summary = Summary::new(split.clone());
    let mut outputs = begin(&certifier, question, files, &header, &mut summary)?;
    let resumed = summary.all().nodes;
    progress.set_done_before(resumed);
    let clock = Clock::start();
    let mut sinks = Sinks {
        nodes,
        done: resumed,
        carried: carried.as_ref(),
        outputs: &mut outputs,
        header: &header,
        summary: &mut summary,
        progress: &progress,
        listener,
    };
    let left: Vec<NodeId> =
        (resumed..nodes.len()).filter(|&turn| sinks.carried_at(turn).is_none()).map(|turn| nodes[turn]).collect();
    let certified = certify_each(&certifier, &left, interrupt, &mut sinks);
    progress.clear();
    let again = certified?;
    if outputs.all_closed() && !listener.to_the_end {
        return Ok(None);
    }
    let carried = carried.map(|carried| carried.in_words());
    let certified = Certified { header, summary, resumed, again, carried, time: clock.time() };
    if !certified.interrupted() {
        outputs.finish()?;
    }
    Ok(Some(certified))
}

/// Opens the outputs and brings them to where the run continues: certificates of an earlier run are checked, counted, and
/// copied to the table.
fn begin(
    certifier: &Certifier,
    question: &Question,
    files: &ResultFiles,
    header: &Header,
    summary: &mut Summary,
) -> anyhow::Result<Outputs> {
    let (out, line) = (files.out.as_ref(), Certificate::header_line(header));
    let mut table = Output::begin(files.csv.as_ref(), |place| Table::begin::<Certificate>(place, &question.graph))?;
    if !files.resume {
        return Ok(Outputs::new(Output::begin(out, |place| Unfinished::begin(place, &line))?, table));
    }
    let recheck = certifier.recheck().map_err(words::certifying)?;
    let mut copied = Ok(());
    let lines = Output::begin(out, |place| {
        Unfinished::resume(place, &line, |line| {
            let certificate = Certificate::of_line(line, header)?;
            check_turn(&question.nodes, summary.all().nodes, certificate.node)?;
            recheck.certificate(&certificate)?;
            summary.add(&certificate);
            if copied.is_ok() {
                copied = table.write(|table| table.row(&certificate));
            }
            Ok(Keep::Keep)
        })
    })?;
    copied?;
    Ok(Outputs::new(lines, table))
}

/// Checks that a record of an earlier run is about the node that comes after `done` of `nodes`.
///
/// # Errors
/// If it is about another one.
pub(super) fn check_turn(nodes: &[NodeId], done: usize, node: NodeId) -> Result<(), String> {
    match nodes.get(done) {
        Some(&expected) if expected == node => Ok(()),
        Some(expected) => Err(format!("it is about node {node}, where node {expected} comes next")),
        None => Err(format!("it is about node {node}, but this run has no more nodes")),
    }
}

/// All that wants to know of certificates.
struct Sinks<'a> {
    /// The nodes that are asked about, and how many of them are done.
    nodes: &'a [NodeId],
    done: usize,
    carried: Option<&'a Carried<'a>>,
    outputs: &'a mut Outputs,
    header: &'a Header,
    summary: &'a mut Summary,
    progress: &'a Progress,
    listener: Listener,
}

impl<'a> Sinks<'a> {
    fn take(&mut self, certificate: &Certificate) -> anyhow::Result<()> {
        self.carry()?;
        self.outputs.row(certificate)?;
        self.outputs.line(&certificate.line(self.header))?;
        self.summary.add(certificate);
        self.step();
        Ok(())
    }

    /// Takes what is carried over before the next node that is certified.
    fn carry(&mut self) -> anyhow::Result<()> {
        while let Some(record) = self.carried_at(self.done) {
            if self.outputs.has_table() {
                self.outputs.row(&record.certificate()?)?;
            }
            self.outputs.plain_line(record.record())?;
            self.summary.count(record.outline());
            self.step();
        }
        Ok(())
    }

    /// What is carried over of the node that comes at this place, if it is.
    fn carried_at(&self, turn: usize) -> Option<CarriedRecord<'a>> {
        self.carried.filter(|_| turn < self.nodes.len()).and_then(|carried| carried.at(turn))
    }

    fn step(&mut self) {
        self.done += 1;
        self.progress.advance();
    }

    /// Whether nobody wants to know the rest.
    fn abandoned(&self) -> bool {
        self.outputs.all_closed() && !self.listener.to_the_end
    }
}

/// Certifies `nodes`, and takes what is carried over between them, until the end or an interrupt, or until nobody listens any more; how
/// many were certified.
fn certify_each(
    certifier: &Certifier,
    nodes: &[NodeId],
    interrupt: Interrupt,
    sinks: &mut Sinks,
) -> anyhow::Result<usize> {
    let (mut written, mut certified) = (Ok(()), 0);
    if !nodes.is_empty() {
        let finish = certifier.certify_each(nodes, |event| {
            match event {
                Event::Preparing { done, total } => sinks.progress.preparing(done, total),
                Event::Certified(certificate) => {
                    written = sinks.take(&certificate);
                    certified += 1;
                }
                _ => {}
            }
            let stop = written.is_err() || interrupt.asked() || sinks.abandoned();
            if stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        let _ = finish.map_err(words::certifying)?;
    }
    written?;
    if certified == nodes.len() {
        sinks.carry()?;
    }
    sinks.outputs.flush()?;
    Ok(certified)
}

impl Certified {
    /// Whether nodes are missing.
    pub(super) fn interrupted(&self) -> bool {
        self.summary.all().nodes < self.header.nodes
    }

    fn json(&self) -> serde_json::Result<String> {
        #[derive(Serialize)]
        struct Json<'a, H: Serialize> {
            interrupted: bool,
            resumed: usize,
            certified: usize,
            #[serde(flatten)]
            time: Time,
            #[serde(flatten)]
            summary: &'a Summary,
            #[serde(skip_serializing_if = "Option::is_none")]
            without_proof: Option<usize>,
            header: H,
        }
        let Self { header, summary, resumed, again, time, .. } = self;
        let without_proof = header.proofs.then(|| summary.without_proof());
        let (interrupted, header) = (self.interrupted(), Certificate::header_line(header));
        let json =
            Json { interrupted, resumed: *resumed, certified: *again, time: *time, summary, without_proof, header };
        Ok(serde_json::to_string_pretty(&json)? + "\n")
    }

    fn in_words(&self, question: &Question, files: &ResultFiles) -> String {
        let Self { summary, resumed, again, carried, time, .. } = self;
        let settings = &question.settings;
        let mut facts = vec![
            ("budget", question.graph.budget_in_words(&settings.budget) + &settings.asked_in_words()),
            ("engine", summary.settled().in_words(settings.engine)),
        ];
        facts.extend((settings.proofs && summary.all().robust > 0).then(|| ("proofs", proofs_in_words(summary))));
        facts.extend(hint(summary, settings).map(|hint| ("hint", hint)));
        facts.push(("time", time.of_nodes(*again)));
        facts.extend(carried.clone().map(|carried| ("since", carried)));
        if *resumed > 0 {
            facts.push(("resumed", format!("{} done before", counted(*resumed, "node"))));
        }
        facts.extend(files.names().filter(|_| !self.interrupted()).map(|names| ("written", names)));
        format!("{}\n{}", summary.table(), terminal::facts(&facts))
    }

    fn interrupted_in_words(&self, files: &ResultFiles) -> String {
        let remedy = if files.can_be_resumed() { "; add --resume to continue" } else { "" };
        format!("interrupted after {} of {} nodes{remedy}", self.summary.all().nodes, self.header.nodes)
    }
}

/// How many robust nodes have what a checker needs.
fn proofs_in_words(summary: &Summary) -> String {
    let robust = counted(summary.all().robust, "robust node");
    match summary.without_proof() {
        0 => format!("for each of {robust}"),
        without => format!("none for {without} of {robust}, which `nodeproof check` may reject"),
    }
}

/// What would settle undecided nodes; `None` if there are none, or nothing would.
fn hint(summary: &Summary, settings: &CertifySettings) -> Option<String> {
    let obstacles = summary.obstacles();
    if let Some(&count) = obstacles.get(&Obstacle::Overflow) {
        let nodes = counted(count, "node");
        return Some(format!("numbers overflow at {nodes}, of which nothing is known; check the weights"));
    }
    if let Some(&count) = obstacles.get(&Obstacle::Arithmetic) {
        let (nodes, name) = (counted(count, "node"), settings.arithmetic.name());
        return Some(format!(
            "{nodes} hold without rounding, but may change in {name}; a finer --arithmetic may show more"
        ));
    }
    let undecided = summary.all().undecided;
    let remedy = engine::remedy(settings, obstacles.keys().copied()).filter(|_| undecided > 0)?;
    Some(format!("{remedy} may settle the {}", counted(undecided, "undecided node")))
}

/// Whether enough nodes are robust; of those called so, these many could not be checked, and do not count.
fn judge(gate: Option<Share>, summary: &Summary, not_checked: usize) -> Outcome {
    let all = summary.all();
    let robust = all.robust.saturating_sub(not_checked);
    match gate {
        Some(share) if share.exceeds(robust, all.nodes) => {
            let but = if not_checked > 0 { format!(" without {not_checked} not checked") } else { String::new() };
            terminal::complain(&format!(
                "failed: {robust} of {} nodes ({}) are robust{but}, fewer than --fail-under {share} asks for",
                all.nodes,
                percentage(robust, all.nodes)
            ));
            Outcome::GateFailed
        }
        _ => Outcome::Done,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::time::Duration;

    use nodeproof::{Bound, ClassId, Engine, Evidence};

    use super::*;

    #[test]
    fn records_come_in_the_order_of_the_nodes() {
        let nodes = [NodeId(4), NodeId(2)];
        assert_eq!((check_turn(&nodes, 0, NodeId(4)), check_turn(&nodes, 1, NodeId(2))), (Ok(()), Ok(())));
        let problem = |done, node| check_turn(&nodes, done, NodeId(node)).err();
        assert_eq!(problem(0, 2).as_deref(), Some("it is about node 2, where node 4 comes next"));
        assert_eq!(problem(2, 4).as_deref(), Some("it is about node 4, but this run has no more nodes"));
    }

    /// A summary of one undecided node.
    fn undecided(because: Obstacle) -> Summary {
        let mut summary = Summary::new(None);
        let lower = Bound::AtLeast(-1.0);
        let evidence = Evidence::Open { lower, upper: None, because: Some(because) };
        let margins = vec![None, Some(lower)];
        summary.add(&Certificate::new(NodeId(0), ClassId(0), ClassId(0), evidence, margins));
        summary
    }

    #[test]
    fn hints_are_given_where_they_help() {
        let mut settings = CertifySettings::default();
        let words = "--engine complete may settle the 1 undecided node";
        assert_eq!(hint(&undecided(Obstacle::Engine), &settings).as_deref(), Some(words));
        (settings.engine, settings.time_limit) = (Engine::Complete, Some(Duration::from_secs(10)));
        let words = "a longer --time-limit (now 10 s) may settle the 1 undecided node";
        assert_eq!(hint(&undecided(Obstacle::Time), &settings).as_deref(), Some(words));
        let words = "a larger --memory-limit (now 1G) may settle the 1 undecided node";
        assert_eq!(hint(&undecided(Obstacle::Memory), &settings).as_deref(), Some(words));
        let unknown = hint(&undecided(Obstacle::Overflow), &settings);
        assert!(unknown.is_some_and(|hint| hint.starts_with("numbers overflow at 1 node")));
        assert_eq!(hint(&Summary::new(None), &settings), None, "all are decided");
    }

    #[test]
    fn a_gate_is_met_or_not() {
        let gate = |share: &str| judge(share.parse().ok(), &undecided(Obstacle::Time), 0);
        assert_eq!((gate("0%"), gate("1%")), (Outcome::Done, Outcome::GateFailed));
        assert_eq!(judge(None, &Summary::new(None), 0), Outcome::Done);
    }
}

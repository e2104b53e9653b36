//! `nodeproof radius`: how many flips each prediction withstands.

use std::ops::ControlFlow;

use anyhow::bail;
use nodeproof::files::{Destination, FileError, Keep, Unfinished};
use nodeproof::results::{Header, Radii, Record, Trial};
use nodeproof::{Certifier, Engine, Finish, Obstacle, Radius, RadiusSearch, SearchEvent};
use nodeproof_report::structure;
use nodeproof_report::tally::RadiusSummary;
use nodeproof_report::text::counted;
use serde::Serialize;

use super::certify::check_turn;
use super::check;
use crate::cli::RadiusArguments;
use crate::inputs::{self, Inputs, Question};
use crate::interrupt::Interrupt;
use crate::outcome::Outcome;
use crate::outputs::{Output, Outputs, ResultFiles, Table};
use crate::progress::Progress;
use crate::run::{Clock, Time};
use crate::{budget, engine, lists, terminal, words};

/// The largest budget of flips that is tried where none is given.
const MAX_BUDGET: u32 = 100;

/// Runs the command.
///
/// # Errors
/// If the input is bad or an output cannot be written.
pub(super) fn run(arguments: &RadiusArguments) -> anyhow::Result<Outcome> {
    let (question, files) = read(arguments)?;
    let results = &arguments.results;
    let found = match find(&question, arguments.scan, &files, results.quiet)? {
        Ended::Found(found) => found,
        Ended::Interrupted { verdicts } => {
            terminal::complain(&interrupted_in_words(verdicts, &files));
            return Ok(Outcome::Interrupted);
        }
    };
    let summary = RadiusSummary::new(&found.radii, question.split.as_ref());
    if results.json {
        files.print_summary(&found.json(&summary)?)?;
    } else if !results.quiet {
        files.print_summary(&found.in_words(&summary, &question, &files))?;
    }
    if arguments.proof.check {
        Ok(check::written(&question, &files, results.quiet || results.json)?.0)
    } else {
        Ok(Outcome::Done)
    }
}

/// What the arguments ask, and where the answer goes. The budget is the largest that is tried.
fn read(arguments: &RadiusArguments) -> anyhow::Result<(Question, ResultFiles)> {
    let RadiusArguments { graph, model, budget, results, .. } = arguments;
    let flips = &budget.flips;
    let mut taken = inputs::files(graph, model, flips);
    taken.extend(arguments.nodes.nodes.file());
    taken.extend(arguments.edges.protect_edges.as_deref());
    check::can_be_proven(arguments.proof, &arguments.edges, results)?;
    let files = ResultFiles::check(results, &taken)?;
    if arguments.proof.check {
        check::can_be_checked(arguments.proof, &arguments.edges, &files)?;
    }
    let inputs = Inputs::read(graph, &model.model, flips.split.as_deref(), results.quiet)?;
    let split = inputs.split.as_ref();
    let nodes = lists::nodes(&arguments.nodes.nodes, &inputs.graph, split, "--nodes")?;
    let budget = budget::read(flips_in_all(arguments)?, flips, &inputs.graph, split)?;
    let budget = budget::with_edges(budget, &arguments.edges, &inputs.graph)?.capped(&inputs.graph);
    let mut settings = engine::settings(budget, model, &arguments.engine);
    settings.threads = arguments.threads.count();
    settings.proofs = arguments.proof.proof;
    engine::ask(&mut settings, &arguments.asked)?;
    Ok((inputs.ask(nodes, settings).part(&arguments.shard), files))
}

/// The most flips that are tried: either all that is tried is flips, or all is deletions.
///
/// # Errors
/// If both are asked about.
fn flips_in_all(arguments: &RadiusArguments) -> anyhow::Result<u32> {
    let RadiusArguments { budget, edges, .. } = arguments;
    if edges.delete_edges.is_none() {
        return Ok(budget.max_budget.unwrap_or(MAX_BUDGET));
    }
    if budget.max_budget.is_some() {
        bail!(
            "a radius is of flips alone or of deletions alone; leave out --max-budget (--global-budget) or --delete-edges. \
             `nodeproof certify` knows flips beside one deletion"
        );
    }
    budget::check_limits(&budget.flips, edges, "")?;
    Ok(0)
}

/// How a search ended.
pub(super) enum Ended {
    Found(Box<Found>),
    /// The user stopped it after so many verdicts.
    Interrupted {
        verdicts: usize,
    },
}

/// Radii that were found.
pub(super) struct Found {
    pub(super) radii: Radii,
    /// Verdicts that an earlier run had found.
    resumed: usize,
    /// Whether an earlier run had found all radii.
    was_complete: bool,
    time: Time,
}

/// Finds the radii of the nodes asked about up to the global budget of the settings, by bisection or, as the paper does, by
/// a scan. Everything is checked before any output is touched.
///
/// # Errors
/// If the settings do not fit or an output cannot be written.
pub(super) fn find(question: &Question, scan: bool, files: &ResultFiles, quiet: bool) -> anyhow::Result<Ended> {
    let Question { graph, model, nodes, shard, settings, .. } = question;
    if scan {
        settings.validate_scan().map_err(words::settings)?;
    }
    let certifier = question.certifier()?;
    let most = settings.budget.varied();
    let mut search = if scan { certifier.scan_radii(nodes, most) } else { certifier.search_radii(nodes, most) };
    let header = Header::new(graph, model, settings, nodes.len()).shard(*shard).scan(scan).timings(files.timings);
    let mut radii = Radii::new(header);
    let progress = Progress::new(if scan { most as usize } else { nodes.len() }, quiet);
    let interrupt = Interrupt::of(&progress)?;
    let table = Output::begin(files.csv.as_ref(), |destination| Table::begin::<Radius>(destination, graph))?;
    let begun = begin(&certifier, question, files, &mut radii, &mut search)?;
    let mut outputs = Outputs::new(begun.lines, table);

    let clock = Clock::start();
    let mut verdicts = begun.verdicts;
    if !begun.complete {
        let mut written = Ok(());
        let finish = search.run(|search, event| {
            show(&progress, search, scan);
            if let SearchEvent::Verdict(trial) = event {
                verdicts += 1;
                written = outputs.line(&trial.line(&radii.header));
            }
            let stop = written.is_err() || interrupt.asked();
            if stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        progress.clear();
        written?;
        if finish.map_err(words::certifying)? == Finish::Cancelled {
            outputs.flush()?;
            return Ok(Ended::Interrupted { verdicts });
        }
        radii.records = search.radii();
    }
    radii.records.iter().try_for_each(|record| outputs.row(record))?;
    if begun.complete {
        outputs.finish()?
    } else {
        outputs.finish_with(|out| radii.write(out))?
    }
    let (resumed, was_complete) = (begun.verdicts, begun.complete);
    Ok(Ended::Found(Box::new(Found { radii, resumed, was_complete, time: clock.time() })))
}

fn show(progress: &Progress, search: &RadiusSearch, scan: bool) {
    let (done, total) = search.progress();
    if scan { progress.scanning(search.round(), total) } else { progress.bisecting(search.round(), done, total) }
}

/// A search that has begun.
struct Begun {
    lines: Output<Unfinished>,
    /// Verdicts that an earlier run had found.
    verdicts: usize,
    /// Whether an earlier run had found all radii.
    complete: bool,
}

/// Opens the journal of the search, and takes from it what an earlier run has found out.
fn begin(
    certifier: &Certifier,
    question: &Question,
    files: &ResultFiles,
    radii: &mut Radii,
    search: &mut RadiusSearch,
) -> anyhow::Result<Begun> {
    let out = files.out.as_ref();
    if !files.resume {
        let line = Trial::header_line(&radii.header);
        let lines = Output::begin(out, |destination| Unfinished::begin_journal(destination, &line))?;
        return Ok(Begun { lines, verdicts: 0, complete: false });
    }
    let mut complete = false;
    let mut verdicts = 0;
    let lines = Output::begin(out, |destination| match resume(destination, certifier, radii, search, &mut verdicts) {
        Err(FileError::NothingUnfinished { .. }) => {
            complete = true;
            read_complete(destination, certifier, question, radii)
        }
        resumed => resumed,
    })?;
    if complete && radii.records.len() < question.nodes.len() {
        let (there, nodes) = (radii.records.len(), question.nodes.len());
        bail!(
            "cannot resume: --out has {there} of {nodes} nodes, and what led to them is gone; start again without --resume"
        );
    }
    Ok(Begun { lines, verdicts, complete })
}

/// Takes up a search from its journal.
fn resume(
    destination: &Destination,
    certifier: &Certifier,
    radii: &Radii,
    search: &mut RadiusSearch,
    verdicts: &mut usize,
) -> Result<Unfinished, FileError> {
    let recheck = certifier.recheck();
    Unfinished::resume_journal(destination, &Trial::header_line(&radii.header), |line| {
        let trial = Trial::of_line(line, &radii.header)?;
        recheck.as_ref().map_err(ToString::to_string)?.trial(&trial)?;
        search.learn(&trial)?;
        *verdicts += 1;
        Ok(Keep::Keep)
    })
}

/// Reads the radii of a run that was over.
fn read_complete(
    destination: &Destination,
    certifier: &Certifier,
    question: &Question,
    radii: &mut Radii,
) -> Result<Unfinished, FileError> {
    let recheck = certifier.recheck();
    let Radii { header, records, .. } = radii;
    Unfinished::resume(destination, &Radius::header_line(header), |line| {
        let radius = Radius::of_line(line, header)?;
        check_turn(&question.nodes, records.len(), radius.node)?;
        recheck.as_ref().map_err(ToString::to_string)?.radius(&radius)?;
        records.push(radius);
        Ok(Keep::Keep)
    })
}

fn interrupted_in_words(verdicts: usize, files: &ResultFiles) -> String {
    match counted(verdicts, "verdict") {
        _ if verdicts == 0 => "interrupted before the first verdict; nothing was written".to_owned(),
        verdicts if files.can_be_resumed() => format!("interrupted after {verdicts}; add --resume to continue"),
        verdicts => format!("interrupted after {verdicts}, now lost; with --out FILE the run could be resumed"),
    }
}

impl Found {
    fn json(&self, summary: &RadiusSummary) -> serde_json::Result<String> {
        #[derive(Serialize)]
        struct Json<'a, H: Serialize> {
            #[serde(flatten)]
            summary: &'a RadiusSummary,
            resumed: usize,
            #[serde(flatten)]
            time: Time,
            header: H,
        }
        let header = Radius::header_line(&self.radii.header);
        let json = Json { summary, resumed: self.resumed, time: self.time, header };
        Ok(serde_json::to_string_pretty(&json)? + "\n")
    }

    fn in_words(&self, summary: &RadiusSummary, question: &Question, files: &ResultFiles) -> String {
        let settings = &question.settings;
        let attributes = question.graph.beside_budget() + &settings.asked_in_words();
        let noun = if settings.budget.edges().is_some() { "deletion" } else { "flip" };
        let most = format!("up to {} tried", counted(settings.budget.varied() as usize, noun));
        let limits = settings.budget.limits_in_words(question.graph.attribute_count());
        let comma = if limits.is_empty() { "" } else { ", " };
        let budget = format!("{most}{comma}{limits}{attributes}");
        let engine = settings.engine.name();
        let engine = match self.radii.header.scan {
            true => format!("{engine}, scanning upwards from 1 {noun} as the paper does"),
            false => engine.to_owned(),
        };
        let mut facts = vec![("budget", budget), ("engine", engine)];
        facts.extend(summary.notes().into_iter().map(|note| ("note", note)));
        let any = structure::withstand_any(&question.graph, &self.radii).into_iter().filter(|&any| any).count();
        if any > 0 {
            let nodes = counted(any, "node");
            let withstand = if any == 1 { "withstands" } else { "withstand" };
            facts
                .push(("note", format!("{nodes} {withstand} any number of deletions: all that may matter were tried")));
        }
        facts.extend(hint(summary, any, question).map(|hint| ("hint", hint)));
        match counted(self.resumed, "verdict") {
            _ if self.was_complete => facts.push(("resumed", "all radii were found before".to_owned())),
            verdicts => {
                facts.push(("time", self.time.of_nodes(question.nodes.len())));
                facts.extend((self.resumed > 0).then(|| ("resumed", format!("{verdicts} found before"))));
            }
        }
        facts.extend(files.names().map(|names| ("written", names)));
        format!("{}\n{}\n{}", summary.table(), summary.histogram.in_words(), terminal::facts(&facts))
    }
}

/// What would say more; so many nodes withstand any number of deletions.
fn hint(summary: &RadiusSummary, any: usize, question: &Question) -> Option<String> {
    // Radii do not say which limit was reached.
    let is_complete = question.settings.engine == Engine::Complete;
    let obstacles: &[Obstacle] = if is_complete { &[Obstacle::Time, Obstacle::Memory] } else { &[Obstacle::Engine] };
    let arithmetic = question.settings.arithmetic;
    let finer = (!arithmetic.is_exact()).then(|| format!("a finer --arithmetic (now {})", arithmetic.name()));
    let remedies = [finer, engine::remedy(&question.settings, obstacles.iter().copied())];
    let remedies: Vec<String> = remedies.into_iter().flatten().collect();
    if summary.open > 0 && !remedies.is_empty() {
        return Some(format!("{} may make more radii exact", remedies.join(", ")));
    }
    let budget = &question.settings.budget;
    let all = if budget.edges().is_some() { question.graph.edges() as u128 } else { question.graph.entries() };
    if u128::from(budget.varied()) >= all {
        return None;
    }
    let open = summary.withstand_all.saturating_sub(any);
    let withstand = if open == 1 { "withstands" } else { "withstand" };
    let nodes = counted(open, "node");
    let option = if budget.edges().is_some() { "--delete-edges" } else { "--max-budget" };
    let more = format!("{nodes} {withstand} all of {option}, and may withstand more");
    (open > 0).then_some(more)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupt_is_told_with_what_can_be_done() {
        let (nowhere, file) = (ResultFiles::default(), ResultFiles::only(std::path::Path::new("no-such-radii.jsonl")));
        let stdout = ResultFiles { out: Some(Destination::Stdout), ..ResultFiles::default() };
        assert_eq!(interrupted_in_words(2, &file), "interrupted after 2 verdicts; add --resume to continue");
        for files in [&nowhere, &stdout] {
            assert!(interrupted_in_words(1, files).contains("1 verdict, now lost; with --out FILE"));
        }
        assert!(interrupted_in_words(0, &file).contains("nothing was written"));
    }
}

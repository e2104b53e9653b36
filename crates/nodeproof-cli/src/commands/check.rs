//! `nodeproof check`: certificates, radii and collective certificates, seen for oneself.

mod collective;

use std::path::Path;

use anyhow::{Context, anyhow, bail};
use nodeproof::results::{Header, Radii, Record, Results};
use nodeproof::{Certificate, Graph, Model, NodeId, Radius};
use nodeproof_check::{Checker, MOST_SETS, Mismatch, NotAccepted, Rejection};
use nodeproof_report::text::{counted, grouped};
use rayon::prelude::*;
use serde::Serialize;

use crate::cli::{CheckArguments, EdgeArguments, ProofArguments, ResultArguments};
use crate::inputs::{Inputs, Question};
use crate::interrupt::Interrupt;
use crate::outcome::Outcome;
use crate::outputs::ResultFiles;
use crate::progress::Progress;
use crate::run::{Clock, Time};
use crate::{inputs, terminal};

/// Rejections that are told of one by one.
const SHOWN: usize = 10;

/// Records that are checked between two looks at whether to stop.
const AT_ONCE: usize = 64;

/// Runs the command.
///
/// # Errors
/// If the files cannot be read, or are not about each other.
pub(crate) fn run(arguments: &CheckArguments) -> anyhow::Result<Outcome> {
    let CheckArguments { file, print, threads, .. } = arguments;
    inputs::check_readable(file, "CERTIFICATES")?;
    let Inputs { graph, model, .. } = Inputs::read(&arguments.graph, &arguments.model, None, print.quiet)?;
    let results = Results::read(file)?;
    let clock = Clock::start();
    let of = Of { graph: &graph, model: &model, threads: threads.count(), quiet: print.quiet };
    let name = terminal::shown(file);
    if let Results::Collectives(found) = &results {
        let path = arguments.radii.as_deref();
        let radii = path.map(|path| anyhow::Ok((terminal::shown(path), read_radii(path)?))).transpose()?;
        let radii = radii.as_ref().map(|(name, radii)| (&name[..], radii));
        let Some(checked) = of.check_collectives(&name, found, radii)? else { return Ok(Outcome::Interrupted) };
        let time = clock.time();
        if print.json {
            terminal::print(&(serde_json::to_string_pretty(&checked.json(time))? + "\n"))?;
        } else if !print.quiet {
            terminal::print(&checked.in_words(time))?;
        }
        return Ok(if checked.rejected().is_empty() { Outcome::Done } else { Outcome::GateFailed });
    }
    if arguments.radii.is_some() {
        bail!("--radii goes with collective certificates; {name} has {}", results.kind());
    }
    let Some((header, checked)) = of.check(&name, &results)? else { return Ok(Outcome::Interrupted) };
    let time = clock.time();
    if print.json {
        terminal::print(&(serde_json::to_string_pretty(&checked.json(time))? + "\n"))?;
    } else if !print.quiet {
        terminal::print(&checked.in_words(header, time))?;
    }
    Ok(if checked.rejected.is_empty() { Outcome::Done } else { Outcome::GateFailed })
}

fn read_radii(path: &Path) -> anyhow::Result<Radii> {
    inputs::check_readable(path, "--radii")?;
    Ok(Radii::read(path)?)
}

/// Checks the file that was written; how many records are not checked.
///
/// # Errors
/// If there is none.
pub(super) fn written(question: &Question, files: &ResultFiles, quiet: bool) -> anyhow::Result<(Outcome, usize)> {
    let Question { graph, model, settings, .. } = question;
    let path = to_be_checked(files)?;
    let of = Of { graph, model, threads: settings.threads, quiet };
    let results = Results::read(path)?;
    let (outcome, not_checked) = of.accepts(&terminal::shown(path), &results)?;
    if outcome == Outcome::Done && !quiet {
        files.print_summary(&terminal::facts(&facts(results.kind(), not_checked)))?;
    }
    Ok((outcome, not_checked))
}

/// What is to be said where nothing is rejected: of all results, or of all but those that were not checked.
pub(super) fn facts(what: &str, not_checked: usize) -> Vec<(&'static str, String)> {
    let all = format!("all {what} are accepted");
    if not_checked == 0 {
        return vec![("checked", all)];
    }
    vec![("checked", format!("{all} that could be checked")), ("not checked", too_many(not_checked))]
}

/// How many records are not checked, and why.
fn too_many(count: usize) -> String {
    let most = grouped(MOST_SETS);
    format!("{}: more than {most} sets of deletions to go through; they may be right", grouped(count))
}

/// Refuses to write proofs where there are none, or no file for them.
///
/// # Errors
/// If that is asked for.
pub(super) fn can_be_proven(
    proof: ProofArguments,
    edges: &EdgeArguments,
    results: &ResultArguments,
) -> anyhow::Result<()> {
    if proof.proof && edges.delete_edges.is_some() {
        bail!("deletions of edges have no proofs; leave out --proof. `nodeproof check` tries the deletions themselves");
    }
    if proof.proof && results.out.is_none() {
        bail!("--proof is written with the results; give --out the name of a file");
    }
    Ok(())
}

/// Refuses to check what cannot be read once it is written, or would not be accepted.
///
/// # Errors
/// If there will be no such file, or no proofs where these are needed.
pub(super) fn can_be_checked(proof: ProofArguments, edges: &EdgeArguments, files: &ResultFiles) -> anyhow::Result<()> {
    if !proof.proof && edges.delete_edges.is_none() {
        bail!("--check needs what shows that nodes are robust; add --proof");
    }
    to_be_checked(files).map(drop)
}

/// The file that is to be checked once it is written.
///
/// # Errors
/// If results are not written to a file.
fn to_be_checked(files: &ResultFiles) -> anyhow::Result<&Path> {
    let path = files.out.as_ref().and_then(|out| out.path());
    path.context("--check reads what was written; give --out the name of a file")
}

/// What results are about, and how they are checked.
#[derive(Clone, Copy)]
pub(super) struct Of<'o> {
    pub(super) graph: &'o Graph,
    pub(super) model: &'o Model,
    pub(super) threads: usize,
    pub(super) quiet: bool,
}

impl Of<'_> {
    /// Whether some results are accepted, and how many of them are not checked; says what is rejected.
    ///
    /// # Errors
    /// If they are not about these.
    pub(super) fn accepts(self, name: &str, results: &Results) -> anyhow::Result<(Outcome, usize)> {
        let Some((_, checked)) = self.check(name, results)? else { return Ok((Outcome::Interrupted, 0)) };
        let not_checked = checked.not_checked.len();
        let Some((node, kind, rejection)) = checked.rejected.first() else { return Ok((Outcome::Done, not_checked)) };
        let count = checked.rejected.len();
        terminal::complain(&format!(
            "failed: {count} of the {} of {name} are rejected; node {node}, called {kind}: {rejection}",
            results.kind()
        ));
        Ok((Outcome::GateFailed, not_checked))
    }

    /// What checking comes to, and the header; `None` if it was interrupted.
    fn check<'r>(self, name: &str, results: &'r Results) -> anyhow::Result<Option<(&'r Header, Checked)>> {
        let checker =
            |header: &Header| Checker::of(header, self.graph, self.model).map_err(|mismatch| in_words(name, mismatch));
        match results {
            Results::Certificates(of) => {
                let checker = checker(&of.header)?;
                let kinds = ["robust", "nonrobust", "undecided"];
                let kind = |record: &Certificate| record.verdict() as usize;
                let checked = self.judge(&of.records, kinds, kind, |record| checker.certificate(record))?;
                Ok(checked.map(|checked| (&of.header, checked)))
            }
            Results::Radii(of) => {
                let checker = checker(&of.header)?;
                let kinds = ["exact", "inexact", "scanned"];
                let kind = |record: &Radius| record.found.as_ref().map_or(2, |found| usize::from(!found.exact));
                let checked = self.judge(&of.records, kinds, kind, |record| checker.radius(record))?;
                Ok(checked.map(|checked| (&of.header, checked)))
            }
            other => {
                bail!("{name} has {}; certificates, radii and collective certificates can be checked", other.kind())
            }
        }
    }

    /// Checks records of three kinds.
    fn judge<R: Record + Sync>(
        self,
        records: &[R],
        kinds: [&'static str; 3],
        kind: impl Fn(&R) -> usize,
        check: impl Fn(&R) -> Result<(), NotAccepted> + Sync,
    ) -> anyhow::Result<Option<Checked>> {
        let threads = rayon::ThreadPoolBuilder::new().num_threads(self.threads).build()?;
        let progress = Progress::new(records.len(), self.quiet);
        let interrupt = Interrupt::of(&progress)?;
        let mut checked = Checked { kinds, accepted: [0; 3], not_checked: Vec::new(), rejected: Vec::new() };
        for some in records.chunks(AT_ONCE) {
            if interrupt.asked() {
                progress.clear();
                terminal::complain(&format!("interrupted after {}", counted(checked.all(), "record")));
                return Ok(None);
            }
            let check = |record: &R| {
                let judged = check(record);
                progress.advance();
                judged
            };
            let judged: Vec<Result<(), NotAccepted>> = threads.install(|| some.par_iter().map(check).collect());
            for (record, judged) in some.iter().zip(judged) {
                match judged {
                    Ok(()) => checked.accepted[kind(record)] += 1,
                    Err(NotAccepted::NotChecked) => checked.not_checked.push(record.node()),
                    Err(NotAccepted::Rejected(rejection)) => {
                        checked.rejected.push((record.node(), kinds[kind(record)], rejection));
                    }
                }
            }
        }
        progress.clear();
        Ok(Some(checked))
    }
}

/// The remedy for results that are about something else are options.
fn in_words(name: &str, mismatch: Mismatch) -> anyhow::Error {
    match mismatch {
        Mismatch::Graph => anyhow!(
            "{name} is about another graph; give --graph, --binarise, --keep-self-loops, … as they were given to certify"
        ),
        Mismatch::Model => anyhow!("{name} is about another model; give --model as it was given to certify"),
        other => anyhow!("{name}: {other}"),
    }
}

/// What checking came to.
struct Checked {
    /// Kinds of records, and how many of each are accepted.
    kinds: [&'static str; 3],
    accepted: [usize; 3],
    not_checked: Vec<NodeId>,
    rejected: Vec<(NodeId, &'static str, Rejection)>,
}

#[derive(Serialize)]
struct Json {
    checked: usize,
    #[serde(flatten)]
    accepted: serde_json::Map<String, serde_json::Value>,
    not_checked: Vec<NodeId>,
    rejected: Vec<JsonRejection>,
    #[serde(flatten)]
    time: Time,
}

#[derive(Serialize)]
struct JsonRejection {
    node: NodeId,
    verdict: &'static str,
    reason: String,
}

impl Checked {
    fn all(&self) -> usize {
        self.accepted.iter().sum::<usize>() + self.not_checked.len() + self.rejected.len()
    }

    fn json(&self, time: Time) -> Json {
        let rejection = |(node, verdict, rejection): &(NodeId, &'static str, Rejection)| JsonRejection {
            node: *node,
            verdict,
            reason: rejection.to_string(),
        };
        let accepted = self.kinds.iter().zip(self.accepted).map(|(&kind, count)| (kind.to_owned(), count.into()));
        let rejected = self.rejected.iter().map(rejection).collect();
        let checked = self.all() - self.not_checked.len();
        Json { checked, accepted: accepted.collect(), not_checked: self.not_checked.clone(), rejected, time }
    }

    fn in_words(&self, header: &Header, time: Time) -> String {
        let [first, second, third] = self.kinds;
        let [of_first, of_second, of_third] = self.accepted;
        let mut facts = vec![
            ("budget", header.budget_in_words()),
            ("accepted", format!("{of_first} {first}, {of_second} {second}")),
        ];
        match third {
            "undecided" if of_third > 0 => {
                facts.push(("undecided", format!("{} without a claim", counted(of_third, "node"))));
            }
            _ if of_third > 0 => facts.push((third, of_third.to_string())),
            _ => {}
        }
        if !self.not_checked.is_empty() {
            facts.push(("not checked", too_many(self.not_checked.len())));
        }
        facts.push(("rejected", self.rejected.len().to_string()));
        for (node, kind, rejection) in self.rejected.iter().take(SHOWN) {
            facts.push(("", format!("node {node}, called {kind}: {rejection}")));
        }
        if self.rejected.len() > SHOWN {
            facts.push(("", format!("and {} more; --json lists all", self.rejected.len() - SHOWN)));
        }
        if !self.rejected.is_empty() && !header.proofs && header.budget.edges().is_none() {
            facts.push(("hint", "--proof writes what is needed to check all robust nodes".to_owned()));
        }
        facts.push(("time", time.of_nodes(self.all())));
        terminal::facts(&facts)
    }
}

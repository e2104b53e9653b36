//! `nodeproof check`: certificates and radii, seen for oneself.

use anyhow::{anyhow, bail};
use nodeproof::results::{Header, Record, Results};
use nodeproof::{Certificate, NodeId, Radius};
use nodeproof_check::{Checker, Mismatch, Rejection};
use nodeproof_report::text::counted;
use rayon::prelude::*;
use serde::Serialize;

use crate::cli::CheckArguments;
use crate::inputs::Inputs;
use crate::interrupt::Interrupt;
use crate::outcome::Outcome;
use crate::progress::Progress;
use crate::run::{Clock, Time};
use crate::{inputs, terminal};

/// Rejections that are told of one by one.
const SHOWN: usize = 10;

/// Records that are checked between two looks at whether to stop.
const AT_ONCE: usize = 256;

/// Runs the command.
///
/// # Errors
/// If the files cannot be read, or are not about each other.
pub(crate) fn run(arguments: &CheckArguments) -> anyhow::Result<Outcome> {
    inputs::check_readable(&arguments.file, "CERTIFICATES")?;
    let Inputs { graph, model, .. } = Inputs::read(&arguments.graph, &arguments.model, None, arguments.print.quiet)?;
    let checker =
        |header: &Header| Checker::of(header, &graph, &model).map_err(|mismatch| in_words(mismatch, arguments));
    match Results::read(&arguments.file)? {
        Results::Certificates(of) => {
            let checker = checker(&of.header)?;
            let kinds = ["robust", "nonrobust", "undecided"];
            let kind = |record: &Certificate| record.verdict() as usize;
            judge(arguments, &of.header, &of.records, kinds, kind, |record| checker.certificate(record))
        }
        Results::Radii(of) => {
            let checker = checker(&of.header)?;
            let kinds = ["exact", "inexact", "scanned"];
            let kind = |record: &Radius| record.found.as_ref().map_or(2, |found| usize::from(!found.exact));
            judge(arguments, &of.header, &of.records, kinds, kind, |record| checker.radius(record))
        }
        _ => bail!("{} has neither certificates nor radii", terminal::shown(&arguments.file)),
    }
}

/// Checks records of three kinds, and tells what came of it.
fn judge<R: Record + Sync>(
    arguments: &CheckArguments,
    header: &Header,
    records: &[R],
    kinds: [&'static str; 3],
    kind: impl Fn(&R) -> usize,
    check: impl Fn(&R) -> Result<(), Rejection> + Sync,
) -> anyhow::Result<Outcome> {
    let threads = rayon::ThreadPoolBuilder::new().num_threads(arguments.threads.count()).build()?;
    let progress = Progress::new(records.len(), arguments.print.quiet);
    let interrupt = Interrupt::of(&progress)?;
    let (clock, mut checked) = (Clock::start(), Checked { kinds, accepted: [0; 3], rejected: Vec::new() });
    for some in records.chunks(AT_ONCE) {
        if interrupt.asked() {
            progress.clear();
            terminal::complain(&format!("interrupted after {}", counted(checked.all(), "record")));
            return Ok(Outcome::Interrupted);
        }
        let check = |record: &R| {
            let judged = check(record);
            progress.advance();
            judged
        };
        let judged: Vec<Result<(), Rejection>> = threads.install(|| some.par_iter().map(check).collect());
        for (record, judged) in some.iter().zip(judged) {
            match judged {
                Ok(()) => checked.accepted[kind(record)] += 1,
                Err(rejection) => checked.rejected.push((record.node(), kinds[kind(record)], rejection)),
            }
        }
    }
    progress.clear();
    let time = clock.time();
    if arguments.print.json {
        terminal::print(&(serde_json::to_string_pretty(&checked.json(time))? + "\n"))?;
    } else if !arguments.print.quiet {
        terminal::print(&checked.in_words(header, time))?;
    }
    Ok(if checked.rejected.is_empty() { Outcome::Done } else { Outcome::GateFailed })
}

/// The remedy for files that are not about each other are options.
fn in_words(mismatch: Mismatch, arguments: &CheckArguments) -> anyhow::Error {
    let file = terminal::shown(&arguments.file);
    match mismatch {
        Mismatch::Graph => anyhow!(
            "{file} is about another graph; give --graph, --binarise, --keep-self-loops, … as they were given to certify"
        ),
        Mismatch::Model => anyhow!("{file} is about another model; give --model as it was given to certify"),
        other => anyhow!("{file}: {other}"),
    }
}

/// What checking came to.
struct Checked {
    /// Kinds of records, and how many of each are accepted.
    kinds: [&'static str; 3],
    accepted: [usize; 3],
    rejected: Vec<(NodeId, &'static str, Rejection)>,
}

#[derive(Serialize)]
struct Json {
    checked: usize,
    #[serde(flatten)]
    accepted: serde_json::Map<String, serde_json::Value>,
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
        self.accepted.iter().sum::<usize>() + self.rejected.len()
    }

    fn json(&self, time: Time) -> Json {
        let rejection = |(node, verdict, rejection): &(NodeId, &'static str, Rejection)| JsonRejection {
            node: *node,
            verdict,
            reason: rejection.to_string(),
        };
        let accepted = self.kinds.iter().zip(self.accepted).map(|(&kind, count)| (kind.to_owned(), count.into()));
        let rejected = self.rejected.iter().map(rejection).collect();
        Json { checked: self.all(), accepted: accepted.collect(), rejected, time }
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
                facts.push(("undecided", format!("{}, which claim nothing", counted(of_third, "node"))));
            }
            _ if of_third > 0 => facts.push((third, of_third.to_string())),
            _ => {}
        }
        facts.push(("rejected", self.rejected.len().to_string()));
        for (node, kind, rejection) in self.rejected.iter().take(SHOWN) {
            facts.push(("", format!("node {node}, called {kind}: {rejection}")));
        }
        if self.rejected.len() > SHOWN {
            facts.push(("", format!("and {} more; --json lists all", self.rejected.len() - SHOWN)));
        }
        if !self.rejected.is_empty() && !header.proofs {
            facts.push(("hint", "--proof writes what is needed to check all robust nodes".to_owned()));
        }
        facts.push(("time", time.of_nodes(self.all())));
        terminal::facts(&facts)
    }
}

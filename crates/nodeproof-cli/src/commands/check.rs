//! `nodeproof check`: certificates, seen for oneself.

use anyhow::anyhow;
use nodeproof::results::Certificates;
use nodeproof::{Certificate, NodeId, Verdict};
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

/// Certificates that are checked between two looks at whether to stop.
const AT_ONCE: usize = 256;

/// Runs the command.
///
/// # Errors
/// If the files cannot be read, or are not about each other.
pub(crate) fn run(arguments: &CheckArguments) -> anyhow::Result<Outcome> {
    inputs::check_readable(&arguments.file, "CERTIFICATES")?;
    let Inputs { graph, model, .. } = Inputs::read(&arguments.graph, &arguments.model, None, arguments.print.quiet)?;
    let certificates = Certificates::read(&arguments.file)?;
    let checker =
        Checker::of(&certificates.header, &graph, &model).map_err(|mismatch| in_words(mismatch, arguments))?;
    let threads = rayon::ThreadPoolBuilder::new().num_threads(arguments.threads.count()).build()?;
    let progress = Progress::new(certificates.records.len(), arguments.print.quiet);
    let interrupt = Interrupt::of(&progress)?;
    let (clock, mut checked) = (Clock::start(), Checked::default());
    for records in certificates.records.chunks(AT_ONCE) {
        if interrupt.asked() {
            progress.clear();
            terminal::complain(&format!("interrupted after {}", counted(checked.certificates, "certificate")));
            return Ok(Outcome::Interrupted);
        }
        let judge = |certificate: &Certificate| {
            let judged = checker.certificate(certificate);
            progress.advance();
            judged
        };
        let judged: Vec<Result<(), Rejection>> = threads.install(|| records.par_iter().map(judge).collect());
        records.iter().zip(judged).for_each(|(certificate, judged)| checked.add(certificate, judged));
    }
    progress.clear();
    let time = clock.time();
    if arguments.print.json {
        terminal::print(&(serde_json::to_string_pretty(&checked.json(time))? + "\n"))?;
    } else if !arguments.print.quiet {
        terminal::print(&checked.in_words(&certificates, time))?;
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
#[derive(Default)]
struct Checked {
    certificates: usize,
    /// Robust, nonrobust and undecided nodes whose certificates are accepted.
    accepted: [usize; 3],
    rejected: Vec<(NodeId, Verdict, Rejection)>,
}

#[derive(Serialize)]
struct Json<'a> {
    certificates: usize,
    robust: usize,
    nonrobust: usize,
    undecided: usize,
    rejected: Vec<JsonRejection<'a>>,
    #[serde(flatten)]
    time: Time,
}

#[derive(Serialize)]
struct JsonRejection<'a> {
    node: NodeId,
    verdict: &'a str,
    reason: String,
}

impl Checked {
    fn add(&mut self, certificate: &Certificate, judged: Result<(), Rejection>) {
        self.certificates += 1;
        match judged {
            Ok(()) => self.accepted[certificate.verdict() as usize] += 1,
            Err(rejection) => self.rejected.push((certificate.node, certificate.verdict(), rejection)),
        }
    }

    fn json(&self, time: Time) -> Json<'_> {
        let [robust, nonrobust, undecided] = self.accepted;
        let rejection = |(node, verdict, rejection): &(NodeId, Verdict, Rejection)| JsonRejection {
            node: *node,
            verdict: verdict.name(),
            reason: rejection.to_string(),
        };
        let rejected = self.rejected.iter().map(rejection).collect();
        Json { certificates: self.certificates, robust, nonrobust, undecided, rejected, time }
    }

    fn in_words(&self, certificates: &Certificates, time: Time) -> String {
        let [robust, nonrobust, undecided] = self.accepted;
        let mut facts = vec![
            ("budget", certificates.header.budget_in_words()),
            ("accepted", format!("{robust} robust, {nonrobust} nonrobust")),
        ];
        if undecided > 0 {
            facts.push(("undecided", format!("{}, which claim nothing", counted(undecided, "node"))));
        }
        facts.push(("rejected", self.rejected.len().to_string()));
        for (node, verdict, rejection) in self.rejected.iter().take(SHOWN) {
            facts.push(("", format!("node {node}, called {}: {rejection}", verdict.name())));
        }
        if self.rejected.len() > SHOWN {
            facts.push(("", format!("and {} more; --json lists all", self.rejected.len() - SHOWN)));
        }
        if !self.rejected.is_empty() && !certificates.header.proofs {
            facts.push((
                "hint",
                "`nodeproof certify --proof` writes what is needed to check all robust nodes".to_owned(),
            ));
        }
        facts.push(("time", time.of_nodes(self.certificates)));
        terminal::facts(&facts)
    }
}

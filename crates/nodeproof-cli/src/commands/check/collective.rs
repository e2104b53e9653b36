//! Collective certificates, seen for oneself.

use anyhow::{Context, anyhow};
use nodeproof::results::{Collectives, Radii};
use nodeproof::{Collective, NodeId};
use nodeproof_check::{CollectiveChecker, KnownRadii, Mismatch, Rejection, Share, Shares};
use nodeproof_report::text::counted;
use rayon::prelude::*;
use serde::Serialize;

use super::{AT_ONCE, Of, in_words};
use crate::interrupt::Interrupt;
use crate::outcome::Outcome;
use crate::progress::Progress;
use crate::run::Time;
use crate::terminal;

/// What checking came to, budget by budget.
pub(super) struct Checked<'f> {
    found: &'f Collectives,
    has_radii: bool,
    judged: Vec<Result<(), Rejection>>,
}

#[derive(Serialize)]
struct Json {
    checked: usize,
    accepted: Vec<u32>,
    rejected: Vec<JsonRejection>,
    #[serde(flatten)]
    time: Time,
}

#[derive(Serialize)]
struct JsonRejection {
    global_budget: u32,
    reason: String,
}

impl Of<'_> {
    /// Whether collective certificates are accepted, by what radii of the same name say; says what is rejected.
    ///
    /// # Errors
    /// If they are about something else.
    pub(in crate::commands) fn accepts_collectives(
        self,
        name: &str,
        found: &Collectives,
        radii: Option<&Radii>,
    ) -> anyhow::Result<Outcome> {
        let radii = radii.map(|radii| (name, radii));
        let Some(checked) = self.check_collectives(name, found, radii)? else { return Ok(Outcome::Interrupted) };
        let rejected = checked.rejected();
        let Some((record, rejection)) = rejected.first() else { return Ok(Outcome::Done) };
        let (count, said, hint) = (rejected.len(), at_most(record), checked.hint());
        let hint = hint.map(|hint| format!("; {hint}")).unwrap_or_default();
        terminal::complain(&format!(
            "failed: {count} of the collective certificates of {name} are rejected; {said}: {rejection}{hint}"
        ));
        Ok(Outcome::GateFailed)
    }

    /// Checks collective certificates by what radii say where proofs are needed; `None` if it was interrupted.
    ///
    /// # Errors
    /// If they are about something else, or the radii are.
    pub(super) fn check_collectives<'f>(
        self,
        name: &str,
        found: &'f Collectives,
        radii: Option<(&str, &Radii)>,
    ) -> anyhow::Result<Option<Checked<'f>>> {
        let known = |(name, radii): (&str, &Radii)| {
            KnownRadii::new(radii.clone(), found, self.graph, self.model).map_err(|mismatch| match mismatch {
                Mismatch::Radii => anyhow!(
                    "{name} is about another budget (local, direction, protected) or --class than the collective certificates; \
                     give those that they were found from"
                ),
                other => in_words(name, other),
            })
        };
        let known = radii.map(known).transpose()?;
        let threads = rayon::ThreadPoolBuilder::new().num_threads(self.threads).build()?;
        let progress = Progress::new(found.nodes.len() * found.records.len(), self.quiet);
        let interrupt = Interrupt::of(&progress)?;
        let mut checked = Checked { found, has_radii: known.is_some(), judged: Vec::new() };
        for record in &found.records {
            let checker = CollectiveChecker::new(found, record, known.as_ref(), (self.graph, self.model));
            let checker = checker.map_err(|mismatch| in_words(name, mismatch))?;
            let mut shares = Shares::default();
            for nodes in found.nodes.chunks(AT_ONCE) {
                if interrupt.asked() {
                    progress.clear();
                    let done = counted(checked.judged.len(), "budget");
                    terminal::complain(&format!("interrupted after {done} of {}", found.records.len()));
                    return Ok(None);
                }
                let share = |&node: &NodeId| {
                    let share = checker.share(node);
                    progress.advance();
                    share
                };
                let some: Result<Vec<Share>, _> = threads.install(|| nodes.par_iter().map(share).collect());
                some.context("the header lists a node that there is not")?.into_iter().for_each(|of| shares.add(of));
            }
            checked.judged.push(checker.judge(&shares));
        }
        progress.clear();
        Ok(Some(checked))
    }
}

impl Checked<'_> {
    /// The budgets that are accepted.
    fn accepted(&self) -> Vec<u32> {
        let of = self.found.records.iter().zip(&self.judged);
        of.filter(|(_, judged)| judged.is_ok()).map(|(record, _)| record.global).collect()
    }

    /// What is rejected, and why.
    pub(super) fn rejected(&self) -> Vec<(&Collective, &Rejection)> {
        let of = self.found.records.iter().zip(&self.judged);
        of.filter_map(|(record, judged)| Some((record, judged.as_ref().err()?))).collect()
    }

    /// What to do where radii may show more.
    fn hint(&self) -> Option<&'static str> {
        let asks_for_radii = |(_, rejection): &(_, &Rejection)| matches!(rejection, Rejection::AtMost(_));
        let needs_radii = !self.has_radii && self.rejected().iter().any(asks_for_radii);
        needs_radii.then_some("some nodes may need proofs: give what `nodeproof radius --proof --out` writes")
    }

    pub(super) fn json(&self, time: Time) -> impl Serialize {
        let rejected = |(record, rejection): (&Collective, &Rejection)| JsonRejection {
            global_budget: record.global,
            reason: rejection.to_string(),
        };
        let rejected = self.rejected().into_iter().map(rejected).collect();
        Json { checked: self.judged.len(), accepted: self.accepted(), rejected, time }
    }

    pub(super) fn in_words(&self, time: Time) -> String {
        let accepted: Vec<String> = self.accepted().iter().map(u32::to_string).collect();
        let accepted = match accepted.len() {
            0 => "none".to_owned(),
            _ => format!("the bounds under a global budget of {}", accepted.join(", ")),
        };
        let mut facts = vec![("accepted", accepted), ("rejected", self.rejected().len().to_string())];
        for (record, rejection) in self.rejected() {
            facts.push(("", format!("{}: {rejection}", at_most(record))));
        }
        if let Some(hint) = self.hint() {
            facts.push(("hint", format!("{hint}, as --radii")));
        }
        facts.push(("time", time.of_nodes(self.found.nodes.len() * self.judged.len())));
        terminal::facts(&facts)
    }
}

/// What a collective certificate says.
fn at_most(record: &Collective) -> String {
    format!("at most {} of {} change by {}", record.at_most, record.targets, counted(record.global as usize, "flip"))
}

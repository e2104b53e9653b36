//! Counts of verdicts, as a table for people and as JSON for programs.

use nodeproof::{Engine, NodeId, Split};
use nodeproof_report::results::{CertificatesHeader, Record, VerdictName};
use serde::Serialize;

use crate::engine::Effort;
use crate::terminal;

/// Counts over a group of nodes.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Tally {
    pub(crate) nodes: usize,
    pub(crate) robust: usize,
    nonrobust: usize,
    undecided: usize,
    margins: f64,
    known_margins: usize,
    labelled: usize,
    correct: usize,
}

impl Tally {
    fn add(&mut self, record: &Record) {
        self.nodes += 1;
        match record.verdict {
            VerdictName::Robust => self.robust += 1,
            VerdictName::Nonrobust => self.nonrobust += 1,
            VerdictName::Undecided => self.undecided += 1,
        }
        self.margins += record.margin().unwrap_or(0.0);
        self.known_margins += usize::from(record.margin().is_some());
        self.labelled += usize::from(record.label.is_some());
        self.correct += usize::from(record.label == Some(record.predicted));
    }

    fn row(&self, name: &str) -> Vec<String> {
        let share = |count| format!("{count} {:>5}", terminal::percentage(count, self.nodes));
        let accuracy = if self.labelled > 0 { terminal::percentage(self.correct, self.labelled) } else { "–".into() };
        vec![
            name.to_owned(),
            self.nodes.to_string(),
            share(self.robust),
            share(self.nonrobust),
            share(self.undecided),
            self.mean_margin().map_or("–".into(), |margin| format!("{margin:.3}")),
            accuracy,
        ]
    }

    /// The mean of the nodes' smallest lower bounds, as far as they are known.
    fn mean_margin(&self) -> Option<f64> {
        (self.known_margins > 0).then(|| self.margins / self.known_margins as f64)
    }

    fn figures(&self) -> Figures {
        let of = |count: usize, total: usize| (total > 0).then(|| count as f64 / total as f64);
        Figures {
            nodes: self.nodes,
            robust: self.robust,
            nonrobust: self.nonrobust,
            undecided: self.undecided,
            robust_share: of(self.robust, self.nodes),
            mean_margin: self.mean_margin(),
            accuracy: of(self.correct, self.labelled),
        }
    }
}

/// What a group of nodes comes to.
#[derive(Debug, Serialize)]
pub(crate) struct Figures {
    pub(crate) nodes: usize,
    pub(crate) robust: usize,
    pub(crate) nonrobust: usize,
    pub(crate) undecided: usize,
    pub(crate) robust_share: Option<f64>,
    mean_margin: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) accuracy: Option<f64>,
}

/// What all nodes come to and, with a split, its parts.
#[derive(Debug, Serialize)]
pub(crate) struct Parts {
    pub(crate) all: Figures,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) labelled: Option<Figures>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) unlabelled: Option<Figures>,
}

/// How many nodes each engine settled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
struct Settled {
    fast: usize,
    tight: usize,
    complete: usize,
    /// Undecided nodes of which nothing is known, since numbers overflow: no engine can settle them.
    #[serde(skip)]
    unknown: usize,
    /// Undecided nodes that no engine but the fast one looked at.
    #[serde(skip)]
    untried: usize,
}

impl Settled {
    fn add(&mut self, record: &Record) {
        let count = match (record.verdict, record.engine) {
            (VerdictName::Undecided, _) if record.margin().is_none() => &mut self.unknown,
            (VerdictName::Undecided, Engine::Fast) => &mut self.untried,
            (VerdictName::Undecided, _) => return,
            (_, Engine::Fast) => &mut self.fast,
            (_, Engine::Tight) => &mut self.tight,
            (_, _) => &mut self.complete,
        };
        *count += 1;
    }

    /// How many nodes each engine up to `strongest` settled.
    fn in_words(self, strongest: Engine) -> String {
        let counts = [self.fast, self.tight, self.complete];
        let tried =
            Engine::ALL.into_iter().zip(counts).take_while(|(engine, _)| *engine as usize <= strongest as usize);
        let words: Vec<_> = tried.map(|(engine, count)| format!("{} {count}", engine.name())).collect();
        format!("{}; settled by {}", strongest.name(), words.join(", "))
    }
}

/// Counts of a run, over all nodes and over the parts of a split.
#[derive(Debug, Default)]
pub(crate) struct Summary {
    split: Option<Split>,
    all: Tally,
    labelled: Tally,
    unlabelled: Tally,
    settled: Settled,
}

impl Summary {
    /// Counts of nothing yet.
    pub(crate) fn new(split: Option<Split>) -> Self {
        Self { split, ..Self::default() }
    }

    /// Counts one more node.
    pub(crate) fn add(&mut self, record: &Record) {
        self.all.add(record);
        self.settled.add(record);
        if let Some(split) = &self.split {
            let part = if split.is_labelled(NodeId(record.node)) { &mut self.labelled } else { &mut self.unlabelled };
            part.add(record);
        }
    }

    /// Counts over all nodes.
    pub(crate) fn all(&self) -> &Tally {
        &self.all
    }

    /// The table.
    pub(crate) fn table(&self) -> String {
        let header = ["", "\nnodes", "\nrobust", "\nnonrobust", "\nundecided", "mean\nmargin", "\naccuracy"];
        let mut rows = vec![self.all.row("all")];
        let parts = [("labelled", &self.labelled), ("unlabelled", &self.unlabelled)];
        let some = |part: &Tally| part.nodes > 0 && part.nodes < self.all.nodes;
        rows.extend(parts.into_iter().filter(|(_, part)| some(part)).map(|(name, part)| part.row(name)));
        let mut header: Vec<String> = header.map(str::to_owned).to_vec();
        if self.all.labelled == 0 {
            header.pop();
            rows.iter_mut().for_each(|row| drop(row.pop()));
        }
        terminal::table("lrrrrrr", Some(header), rows)
    }

    /// The engine that was asked for, and how many nodes each engine settled.
    pub(crate) fn engines_in_words(&self, effort: Effort) -> String {
        self.settled.in_words(effort.engine())
    }

    /// What would settle undecided nodes; `None` if there are none, or nothing would.
    pub(crate) fn hint(&self, effort: Effort) -> Option<String> {
        let unknown = self.settled.unknown;
        if unknown > 0 {
            let nodes = terminal::counted(unknown, "node");
            return Some(format!("numbers overflow at {nodes}, of which nothing is known; are the weights meant so?"));
        }
        let untried = self.settled.untried;
        if effort.engine() != Engine::Fast
            && untried > 0
            && untried == self.all.undecided
            && !effort.may_run_out_at_once()
        {
            let nodes = terminal::counted(untried, "undecided node");
            return Some(format!("no stronger engine tries the {nodes}: too many flips for that depth"));
        }
        let remedy = effort.remedy().filter(|_| self.all.undecided > 0)?;
        Some(format!("{remedy} may settle the {}", terminal::counted(self.all.undecided, "undecided node")))
    }

    /// The figures behind the table.
    pub(crate) fn figures(&self) -> Parts {
        let part = |tally: &Tally| self.split.is_some().then(|| tally.figures());
        Parts { all: self.all.figures(), labelled: part(&self.labelled), unlabelled: part(&self.unlabelled) }
    }

    /// The summary as JSON, with what else is known of the run.
    pub(crate) fn json(&self, header: &CertificatesHeader, run: &Run) -> serde_json::Result<String> {
        #[derive(Serialize)]
        struct Json<'a> {
            #[serde(flatten)]
            run: &'a Run,
            #[serde(flatten)]
            parts: Parts,
            settled: Settled,
            header: &'a CertificatesHeader,
        }
        let json = Json { run, parts: self.figures(), settled: self.settled, header };
        Ok(serde_json::to_string_pretty(&json)? + "\n")
    }
}

/// How a run went.
#[derive(Debug, Serialize)]
pub(crate) struct Run {
    /// Whether it was stopped before its end.
    pub(crate) interrupted: bool,
    /// Nodes that an earlier run had certified.
    pub(crate) resumed: usize,
    /// Wall time of certifying.
    pub(crate) seconds: f64,
    /// CPU time of certifying, user and system.
    pub(crate) cpu_seconds: f64,
}

impl Run {
    /// The time and the rate in words; `fresh` nodes were certified now.
    pub(crate) fn time_in_words(&self, fresh: usize) -> String {
        let rate = match fresh {
            0 => String::new(),
            _ => format!(", {} nodes/s", rate(fresh as f64 / self.seconds.max(1e-9))),
        };
        format!("{} ({} CPU){rate}", duration(self.seconds), duration(self.cpu_seconds))
    }
}

fn rate(per_second: f64) -> String {
    if per_second < 10.0 { format!("{per_second:.1}") } else { format!("{per_second:.0}") }
}

/// A time with its unit.
pub(crate) fn duration(seconds: f64) -> String {
    match seconds {
        seconds if seconds < 10.0 => format!("{seconds:.2} s"),
        seconds if seconds < 120.0 => format!("{seconds:.1} s"),
        seconds if seconds < 7200.0 => format!("{:.1} min", seconds / 60.0),
        seconds => format!("{:.1} h", seconds / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn record(node: u32, verdict: VerdictName, label: Option<u32>) -> Record {
        let line = format!(
            r#"{{"node":{node},"predicted":1,"class":1,"verdict":"{}","margins":[0.5,null],"worst_class":0,"engine":"fast"}}"#,
            verdict.word()
        );
        Record { label, ..serde_json::from_str(&line).unwrap() }
    }

    #[test]
    fn parts_of_the_split_have_their_rows() {
        let split = Split::new(3, vec![NodeId(1)], vec![]).unwrap();
        let mut summary = Summary::new(Some(split));
        summary.add(&record(0, VerdictName::Robust, Some(0)));
        summary.add(&record(1, VerdictName::Nonrobust, Some(1)));
        summary.add(&record(2, VerdictName::Undecided, None));
        assert_eq!((summary.labelled.nodes, summary.unlabelled.nodes), (1, 2));
        assert_eq!(
            summary.table(),
            "                                                    mean\n\
             \u{20}           nodes   robust  nonrobust  undecided  margin  accuracy\n\
             ──────────────────────────────────────────────────────────────────\n\
             all             3  1 33.3%    1 33.3%    1 33.3%   0.500     50.0%\n\
             labelled        1  0  0.0%    1  100%    0  0.0%   0.500      100%\n\
             unlabelled      2  1 50.0%    0  0.0%    1 50.0%   0.500      0.0%\n"
        );
    }

    #[test]
    fn engines_are_counted_where_they_settled_something() {
        let mut summary = Summary::new(None);
        summary.add(&record(0, VerdictName::Robust, None));
        summary.add(&Record { engine: Engine::Complete, ..record(1, VerdictName::Nonrobust, None) });
        summary.add(&Record { engine: Engine::Complete, ..record(2, VerdictName::Undecided, None) });
        assert_eq!(summary.settled.in_words(Engine::Complete), "complete; settled by fast 1, tight 0, complete 1");
        assert_eq!(summary.settled.in_words(Engine::Fast), "fast; settled by fast 1");
    }

    #[test]
    fn accuracy_needs_labels() {
        let mut summary = Summary::new(None);
        summary.add(&record(0, VerdictName::Robust, None));
        assert!(!summary.table().contains("accuracy"));
        assert!(!summary.table().contains("labelled"));
    }

    #[test]
    fn times_have_units() {
        let run = Run { interrupted: false, resumed: 0, seconds: 0.5, cpu_seconds: 130.0 };
        assert_eq!(run.time_in_words(1000), "0.50 s (2.2 min CPU), 2000 nodes/s");
        assert_eq!(duration(7300.0), "2.0 h");
    }
}

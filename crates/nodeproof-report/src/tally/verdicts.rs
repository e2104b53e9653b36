//! Counts of verdicts.

use std::collections::BTreeMap;

use nodeproof_problem::certificate::Outline;
use nodeproof_problem::provenance::Worth;
use nodeproof_problem::{Bound, Certificate, Engine, Obstacle, Split, Verdict};
use serde::{Serialize, Serializer};

use super::Parts;
use crate::text;

/// Counts over a group of nodes.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Tally {
    /// Nodes in total.
    pub nodes: usize,
    /// Nodes that are robust.
    pub robust: usize,
    /// Nodes with a witness.
    pub nonrobust: usize,
    /// The other nodes.
    pub undecided: usize,
    /// Nodes with a label.
    pub labelled: usize,
    /// Nodes whose label is the predicted class.
    pub correct: usize,
    margins: f64,
    known_margins: usize,
    /// Nodes that an engine beyond `fast` looked at.
    beyond_fast: usize,
}

impl Tally {
    /// Counts one more node.
    pub fn add(&mut self, certificate: &Certificate) {
        self.count(&certificate.outline());
    }

    fn count(&mut self, outline: &Outline) {
        self.nodes += 1;
        match outline.verdict {
            Verdict::Robust => self.robust += 1,
            Verdict::Nonrobust => self.nonrobust += 1,
            Verdict::Undecided => self.undecided += 1,
        }
        if outline.margin != Bound::Unknown {
            self.margins += outline.margin.value();
            self.known_margins += 1;
        }
        self.beyond_fast += usize::from(outline.engine != Engine::Fast);
        self.labelled += usize::from(outline.label.is_some());
        self.correct += usize::from(outline.label == Some(outline.predicted));
    }

    /// The mean of the nodes' smallest lower bounds, as far as they are known. `None` where an engine beyond `fast` looked at a node:
    /// these stop once a verdict is known, and means of what they leave say nothing.
    pub fn mean_margin(&self) -> Option<f64> {
        (self.known_margins > 0 && self.beyond_fast == 0).then(|| self.margins / self.known_margins as f64)
    }

    /// The numbers with their shares.
    pub fn figures(&self) -> Figures {
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

    fn row(&self, name: &str, columns: Columns) -> Vec<String> {
        let share = |count| format!("{count} {:>5}", text::percentage(count, self.nodes));
        let mut row = vec![name.to_owned(), self.nodes.to_string()];
        row.extend([self.robust, self.nonrobust, self.undecided].map(share));
        if columns.margin {
            row.push(self.mean_margin().map_or("–".into(), |margin| format!("{margin:.3}")));
        }
        if columns.accuracy {
            row.push(text::percentage(self.correct, self.labelled));
        }
        row
    }
}

/// The columns of a table that are there if they say something.
#[derive(Clone, Copy)]
struct Columns {
    margin: bool,
    accuracy: bool,
}

/// What a group of nodes comes to.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Figures {
    /// Nodes in total.
    pub nodes: usize,
    /// Nodes that are robust.
    pub robust: usize,
    /// Nodes with a witness.
    pub nonrobust: usize,
    /// The other nodes.
    pub undecided: usize,
    /// The share of nodes that are robust; `None` without nodes.
    pub robust_share: Option<f64>,
    /// See [`Tally::mean_margin`].
    pub mean_margin: Option<f64>,
    /// The share of labelled nodes whose label is predicted; `None` without labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accuracy: Option<f64>,
}

/// How many nodes each engine settled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Settled {
    /// Nodes settled by the `fast` engine.
    pub fast: usize,
    /// Nodes settled by the `tight` engine.
    pub tight: usize,
    /// Nodes settled by the `complete` engine.
    pub complete: usize,
}

impl Settled {
    fn count(&mut self, outline: &Outline) {
        let count = match (outline.verdict, outline.engine) {
            (Verdict::Undecided, _) => return,
            (_, Engine::Fast) => &mut self.fast,
            (_, Engine::Tight) => &mut self.tight,
            (_, _) => &mut self.complete,
        };
        *count += 1;
    }

    /// How many nodes each engine up to `strongest` settled: “complete; settled by fast 40, tight 2, complete 1”.
    pub fn in_words(self, strongest: Engine) -> String {
        let counts = [self.fast, self.tight, self.complete];
        let tried = Engine::ALL.into_iter().zip(counts).take_while(|&(engine, _)| engine <= strongest);
        let words: Vec<_> = tried.map(|(engine, count)| format!("{} {count}", engine.name())).collect();
        format!("{}; settled by {}", strongest.name(), words.join(", "))
    }
}

/// Counts of a run, over all nodes and over the parts of a split. Its JSON has the fields of [`Parts`], `settled`
/// and, if nodes are undecided, `undecided_because`.
#[derive(Debug, Clone, Default)]
pub struct Summary {
    split: Option<Split>,
    all: Tally,
    labelled: Tally,
    unlabelled: Tally,
    settled: Settled,
    obstacles: BTreeMap<Obstacle, usize>,
    /// Robust nodes with proofs.
    proven: usize,
}

impl Summary {
    /// Counts of nothing yet.
    pub fn new(split: Option<Split>) -> Self {
        Self { split, ..Self::default() }
    }

    /// Counts one more node.
    pub fn add(&mut self, certificate: &Certificate) {
        self.count(&certificate.outline());
    }

    /// Counts one more node, of whose certificate this is known.
    pub fn count(&mut self, outline: &Outline) {
        self.all.count(outline);
        self.settled.count(outline);
        self.proven += usize::from(outline.proven);
        if let Some(obstacle) = outline.because {
            *self.obstacles.entry(obstacle).or_default() += 1;
        }
        if let Some(split) = &self.split {
            let part = if split.is_labelled(outline.node) { &mut self.labelled } else { &mut self.unlabelled };
            part.count(outline);
        }
    }

    /// Counts over all nodes.
    pub fn all(&self) -> &Tally {
        &self.all
    }

    /// How many nodes each engine settled.
    pub fn settled(&self) -> Settled {
        self.settled
    }

    /// What kept how many nodes from being decided, as far as that is known.
    pub fn obstacles(&self) -> &BTreeMap<Obstacle, usize> {
        &self.obstacles
    }

    /// How many robust nodes come without what a checker needs: all of them, unless proofs were asked for.
    pub fn without_proof(&self) -> usize {
        self.all.robust - self.proven
    }

    /// The table: a row for all nodes, and one for each part of the split that is not empty. The mean margin is there if it is known,
    /// accuracy if nodes have labels.
    pub fn table(&self) -> String {
        let columns = Columns { margin: self.all.mean_margin().is_some(), accuracy: self.all.labelled > 0 };
        let mut header = vec!["", "\nnodes", "\nrobust", "\nnonrobust", "\nundecided"];
        header.extend(columns.margin.then_some("mean\nmargin"));
        header.extend(columns.accuracy.then_some("\naccuracy"));
        if !columns.margin {
            header.iter_mut().for_each(|title| *title = title.trim_start());
        }
        let mut rows = vec![self.all.row("all", columns)];
        let parts = [("labelled", &self.labelled), ("unlabelled", &self.unlabelled)];
        let some = |part: &Tally| part.nodes > 0 && part.nodes < self.all.nodes;
        rows.extend(parts.into_iter().filter(|(_, part)| some(part)).map(|(name, part)| part.row(name, columns)));
        text::table("lrrrrrr", Some(header.into_iter().map(str::to_owned).collect()), rows)
    }

    /// What they make the model worth.
    pub fn worth(&self) -> Worth {
        let Parts { all, labelled, unlabelled } = self.figures();
        Worth {
            accuracy_labelled: labelled.and_then(|part| part.accuracy),
            accuracy_unlabelled: unlabelled.and_then(|part| part.accuracy),
            robust_share: all.robust_share,
        }
    }

    /// The figures behind the table.
    pub fn figures(&self) -> Parts<Figures> {
        let part = |tally: &Tally| self.split.is_some().then(|| tally.figures());
        Parts { all: self.all.figures(), labelled: part(&self.labelled), unlabelled: part(&self.unlabelled) }
    }
}

impl Serialize for Summary {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Fields<'s> {
            #[serde(flatten)]
            parts: Parts<Figures>,
            settled: Settled,
            #[serde(skip_serializing_if = "BTreeMap::is_empty")]
            undecided_because: &'s BTreeMap<Obstacle, usize>,
        }
        let (settled, undecided_because) = (self.settled, &self.obstacles);
        Fields { parts: self.figures(), settled, undecided_because }.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use nodeproof_problem::{ClassId, Evidence, NodeId, Witness};

    use super::*;

    fn certificate(node: u32, verdict: Verdict, label: Option<u32>) -> Certificate {
        let evidence = match verdict {
            Verdict::Robust => Evidence::Robust,
            Verdict::Nonrobust => Evidence::Witness(Witness::new(Vec::new(), ClassId(0), -0.5)),
            Verdict::Undecided => {
                Evidence::Open { lower: Bound::AtLeast(0.5), upper: None, because: Some(Obstacle::Time) }
            }
        };
        let margins = vec![Some(Bound::AtLeast(0.5)), None];
        let mut certificate = Certificate::new(NodeId(node), ClassId(1), ClassId(1), evidence, margins);
        certificate.label = label.map(ClassId);
        certificate
    }

    #[test]
    fn parts_of_the_split_have_their_rows() {
        let split = Split::new(3, vec![NodeId(1)], vec![]).unwrap();
        let mut summary = Summary::new(Some(split));
        summary.add(&certificate(0, Verdict::Robust, Some(0)));
        summary.add(&certificate(1, Verdict::Nonrobust, Some(1)));
        summary.add(&certificate(2, Verdict::Undecided, None));
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
        let json = serde_json::to_value(&summary).unwrap();
        assert_eq!((&json["all"]["nodes"], &json["labelled"]["accuracy"]), (&3.into(), &1.0.into()));
        assert_eq!(json["settled"], serde_json::json!({"fast": 2, "tight": 0, "complete": 0}));
        assert_eq!(json["undecided_because"], serde_json::json!({"time": 1}));
    }

    #[test]
    fn engines_are_counted_where_they_settled_something() {
        let mut summary = Summary::new(None);
        summary.add(&certificate(0, Verdict::Robust, None));
        for verdict in [Verdict::Nonrobust, Verdict::Undecided] {
            let mut certificate = certificate(1, verdict, None);
            certificate.engine = Engine::Complete;
            summary.add(&certificate);
        }
        assert_eq!(summary.settled().in_words(Engine::Complete), "complete; settled by fast 1, tight 0, complete 1");
        assert_eq!(summary.settled().in_words(Engine::Fast), "fast; settled by fast 1");
        assert_eq!(
            summary.table(),
            "     nodes   robust  nonrobust  undecided\n\
             ─────────────────────────────────────────\n\
             all      3  1 33.3%    1 33.3%    1 33.3%\n"
        );
    }

    #[test]
    fn margins_of_unknown_size_count_as_far_as_they_are_known() {
        let mut tally = Tally::default();
        for bound in [Bound::AtLeast(1.0), Bound::Positive, Bound::Unknown] {
            let mut certificate = certificate(0, Verdict::Undecided, None);
            certificate.margins = vec![Some(bound), None];
            tally.add(&certificate);
        }
        assert_eq!((tally.mean_margin(), tally.undecided), (Some(0.5), 3));
        let mut certificate = certificate(0, Verdict::Robust, None);
        certificate.engine = Engine::Tight;
        tally.add(&certificate);
        assert_eq!(tally.mean_margin(), None, "it may be any bound above 0");
    }

    #[test]
    fn accuracy_needs_labels() {
        let mut summary = Summary::new(None);
        summary.add(&certificate(0, Verdict::Robust, None));
        assert!(!summary.table().contains("accuracy"));
        assert!(!summary.table().contains("labelled"));
    }
}

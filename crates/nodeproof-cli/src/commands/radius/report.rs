//! What the radii come to, as a table and bars for people and as JSON for programs.

use nodeproof::{NodeId, Split};
use nodeproof_report::results::{RadiiHeader, RadiusRecord};
use serde::Serialize;

use super::histogram::Histogram;
use crate::engine::Effort;
use crate::export::Places;
use crate::inputs::Inputs;
use crate::summary::Run;
use crate::terminal::{self, counted};

/// What the radii of a group of nodes come to. A node that is not exact counts with the budget it is proven for, and one
/// that is not robust even without flips with 0.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Figures {
    nodes: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    exact: Option<usize>,
    mean: f64,
    median: f64,
    largest: u32,
}

impl Figures {
    /// What `records` come to; `None` if there are none. A scan does not tell what is exact.
    fn new<'r>(records: impl Iterator<Item = &'r RadiusRecord>, scan: bool) -> Option<Self> {
        let (mut radii, mut exact) = (Vec::new(), 0);
        for record in records {
            radii.push(record.robust_up_to.unwrap_or(0));
            exact += usize::from(record.is_exact());
        }
        radii.sort_unstable();
        let nodes = radii.len();
        let largest = *radii.last()?;
        let mean = radii.iter().map(|&radius| f64::from(radius)).sum::<f64>() / nodes as f64;
        let median = f64::midpoint(f64::from(radii[(nodes - 1) / 2]), f64::from(radii[nodes / 2]));
        Some(Self { nodes, exact: (!scan).then_some(exact), mean, median, largest })
    }

    /// A row of the table; `most` is the largest budget that was tried.
    fn row(&self, name: &str, most: u32) -> Vec<String> {
        let mut row = vec![name.to_owned(), self.nodes.to_string()];
        row.extend(self.exact.map(|exact| format!("{exact} {:>5}", terminal::percentage(exact, self.nodes))));
        let at_least = if self.largest < most { "" } else { "≥ " };
        row.extend([format!("{:.2}", self.mean), self.median.to_string(), format!("{at_least}{}", self.largest)]);
        row
    }
}

/// What the radii of a run come to.
pub(super) struct Report<'a> {
    inputs: &'a Inputs,
    header: &'a RadiiHeader,
    effort: Effort,
    scan: bool,
    all: Option<Figures>,
    labelled: Option<Figures>,
    unlabelled: Option<Figures>,
    histogram: Histogram,
    /// Nodes that are not robust even without flips.
    without: usize,
    /// Nodes that withstand the largest budget that was tried.
    withstand_all: usize,
    open: usize,
}

impl<'a> Report<'a> {
    /// What `records` come to.
    pub(super) fn new(
        inputs: &'a Inputs,
        header: &'a RadiiHeader,
        records: &[RadiusRecord],
        effort: Effort,
        scan: bool,
    ) -> Self {
        let part = |labelled: bool| {
            let within = |split: &Split, record: &RadiusRecord| split.is_labelled(NodeId(record.node)) == labelled;
            let split = inputs.split.as_ref()?;
            Figures::new(records.iter().filter(|record| within(split, record)), scan)
        };
        let count = |of: &dyn Fn(&RadiusRecord) -> bool| records.iter().filter(|record| of(record)).count();
        let radii: Vec<u32> = records.iter().map(|record| record.robust_up_to.unwrap_or(0)).collect();
        Self {
            inputs,
            header,
            effort,
            scan,
            all: Figures::new(records.iter(), scan),
            labelled: part(true),
            unlabelled: part(false),
            histogram: Histogram::new(&radii, header.max_budget),
            without: count(&|record| record.robust_up_to.is_none() && record.is_exact()),
            withstand_all: count(&|record| record.robust_up_to == Some(header.max_budget)),
            open: if scan { 0 } else { count(&|record| !record.is_exact()) },
        }
    }

    /// The report as JSON.
    pub(super) fn json(&self, run: &Run) -> serde_json::Result<String> {
        #[derive(Serialize)]
        struct Json<'a> {
            #[serde(skip_serializing_if = "Option::is_none")]
            all: Option<&'a Figures>,
            #[serde(skip_serializing_if = "Option::is_none")]
            labelled: Option<&'a Figures>,
            #[serde(skip_serializing_if = "Option::is_none")]
            unlabelled: Option<&'a Figures>,
            withstand_all: usize,
            histogram: &'a Histogram,
            seconds: f64,
            cpu_seconds: f64,
            header: &'a RadiiHeader,
        }
        let json = Json {
            all: self.all.as_ref(),
            labelled: self.labelled.as_ref(),
            unlabelled: self.unlabelled.as_ref(),
            withstand_all: self.withstand_all,
            histogram: &self.histogram,
            seconds: run.seconds,
            cpu_seconds: run.cpu_seconds,
            header: self.header,
        };
        Ok(serde_json::to_string_pretty(&json)? + "\n")
    }

    /// The report for people.
    pub(super) fn in_words(&self, places: &Places, run: &Run) -> String {
        let nodes = self.all.as_ref().map_or(0, |all| all.nodes);
        let most = counted(self.header.max_budget as usize, "flip");
        let local = self.inputs.budget.local_in_words(&self.inputs.graph);
        let mut facts = vec![("budget", format!("up to {most} tried, {local}")), ("engine", self.engine_in_words())];
        facts.extend(self.notes().into_iter().map(|note| ("note", note)));
        facts.extend(self.hint().map(|hint| ("hint", hint)));
        facts.push(("time", run.time_in_words(nodes)));
        let files = places.files();
        if !files.is_empty() {
            facts.push(("written", files.join(", ")));
        }
        format!("{}\n{}\n{}", self.table(), self.histogram.in_words(), terminal::facts(&facts))
    }

    fn table(&self) -> String {
        let exact = (!self.scan).then_some("exact");
        let header = ["", "nodes"].into_iter().chain(exact).chain(["mean", "median", "largest"]);
        let parts = [("all", &self.all), ("labelled", &self.labelled), ("unlabelled", &self.unlabelled)];
        let rows = parts
            .into_iter()
            .filter_map(|(name, part)| part.as_ref().map(|part| part.row(name, self.header.max_budget)));
        terminal::table("lrrrrr", Some(header.map(str::to_owned).collect()), rows.collect())
    }

    fn engine_in_words(&self) -> String {
        let engine = self.effort.engine().name();
        if self.scan { format!("{engine}, scanning upwards from 1 flip as the paper does") } else { engine.to_owned() }
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.without > 0 {
            let (nodes, are) = (counted(self.without, "node"), verb(self.without, "is", "are"));
            notes.push(format!("{nodes} {are} not robust even without flips; counted as 0"));
        }
        if self.open > 0 {
            let (nodes, are) = (counted(self.open, "node"), verb(self.open, "is", "are"));
            notes.push(format!("{nodes} {are} not exact; counted as the largest budget proven"));
        }
        notes
    }

    /// What would tell more.
    fn hint(&self) -> Option<String> {
        if self.open > 0
            && let Some(remedy) = self.effort.remedy()
        {
            return Some(format!("{remedy} may make more radii exact"));
        }
        let may = format!(
            "{} all of --max-budget, and may withstand more",
            verb(self.withstand_all, "withstands", "withstand")
        );
        (self.withstand_all > 0).then(|| format!("{} {may}", counted(self.withstand_all, "node")))
    }
}

fn verb<'w>(count: usize, one: &'w str, many: &'w str) -> &'w str {
    if count == 1 { one } else { many }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use nodeproof::Graph;

    use super::*;

    #[test]
    fn figures_are_those_of_the_radii() {
        let graph = Graph::new(4, 3, &[], &[]).unwrap();
        let records = [4, 0, 1, 9].map(|largest| RadiusRecord::scanned(NodeId(0), largest, &graph));
        let figures = |count: usize| Figures::new(records[..count].iter(), true);
        let expected = Figures { nodes: 4, exact: None, mean: 3.5, median: 2.5, largest: 9 };
        assert_eq!(figures(4), Some(expected));
        assert_eq!(figures(3).unwrap().median, 1.0);
        assert_eq!(figures(0), None);
        assert_eq!(figures(4).unwrap().row("all", 10), ["all", "4", "3.50", "2.5", "9"]);
        assert_eq!(figures(4).unwrap().row("all", 9)[4], "≥ 9");
    }
}

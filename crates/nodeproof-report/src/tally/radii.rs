//! Counts of radii.

use nodeproof_problem::results::Radii;
use nodeproof_problem::{Radius, Split};
use serde::Serialize;

use super::{Histogram, Parts};
use crate::attack::Attack;
use crate::text::{self, counted};

/// What the radii of a group of nodes come to. A node whose radius is not exact counts with the budget it is proven for, and
/// one that is not robust even without flips with 0.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RadiusFigures {
    /// Nodes in total.
    pub nodes: usize,
    /// Nodes whose radius is exact; `None` for a scan, which does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exact: Option<usize>,
    /// The mean radius.
    pub mean: f64,
    /// The median radius.
    pub median: f64,
    /// The largest radius.
    pub largest: u32,
}

impl RadiusFigures {
    /// What `records` come to; `None` if there are none.
    pub fn new<'r>(records: impl Iterator<Item = &'r Radius>, scan: bool) -> Option<Self> {
        let (mut radii, mut exact) = (Vec::new(), 0);
        for record in records {
            radii.push(record.withstood());
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
        row.extend(self.exact.map(|exact| format!("{exact} {:>5}", text::percentage(exact, self.nodes))));
        let at_least = if self.largest < most { "" } else { "≥ " };
        row.extend([format!("{:.2}", self.mean), self.median.to_string(), format!("{at_least}{}", self.largest)]);
        row
    }
}

/// What the radii of a run come to.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RadiusSummary {
    /// All nodes and, with a split, its parts; `None` without nodes.
    #[serde(flatten)]
    pub figures: Option<Parts<RadiusFigures>>,
    /// Nodes that withstand the largest budget that was tried, and may withstand more.
    pub withstand_all: usize,
    /// Counts of radii.
    pub histogram: Histogram,
    /// Nodes that are not robust even without flips.
    #[serde(skip)]
    pub not_robust: usize,
    /// Nodes whose radius is not exact; 0 for a scan, which does not say.
    #[serde(skip)]
    pub open: usize,
    #[serde(skip)]
    scan: bool,
    #[serde(skip)]
    most: u32,
    #[serde(skip)]
    attack: Attack,
}

impl RadiusSummary {
    /// What `radii` come to, over all nodes and over the parts of `split`.
    pub fn new(radii: &Radii, split: Option<&Split>) -> Self {
        let (records, scan, most) = (&radii.records, radii.header.scan, radii.max_budget());
        let part = |labelled: bool| {
            let split = split?;
            RadiusFigures::new(records.iter().filter(|record| split.is_labelled(record.node) == labelled), scan)
        };
        let count = |of: &dyn Fn(&Radius) -> bool| records.iter().filter(|record| of(record)).count();
        let figures = RadiusFigures::new(records.iter(), scan);
        Self {
            figures: figures.map(|all| Parts { all, labelled: part(true), unlabelled: part(false) }),
            withstand_all: count(&|record| record.robust_up_to == Some(most)),
            histogram: Histogram::new(&records.iter().map(Radius::withstood).collect::<Vec<_>>(), most),
            not_robust: count(&|record| record.robust_up_to.is_none() && record.is_exact()),
            open: if scan { 0 } else { count(&|record| !record.is_exact()) },
            scan,
            most,
            attack: Attack::of(&radii.header.budget),
        }
    }

    /// The table: a row for all nodes, and one for each part of the split.
    pub fn table(&self) -> String {
        let exact = (!self.scan).then_some("exact");
        let header = ["", "nodes"].into_iter().chain(exact).chain(["mean", "median", "largest"]);
        let rows = self.figures.iter().flat_map(Parts::named).map(|(name, part)| part.row(name, self.most));
        text::table("lrrrrr", Some(header.map(str::to_owned).collect()), rows.collect())
    }

    /// What a reader of the table must know.
    pub fn notes(&self) -> Vec<String> {
        let nodes = |count: usize| format!("{} {}", counted(count, "node"), if count == 1 { "is" } else { "are" });
        let mut notes = Vec::new();
        if self.not_robust > 0 {
            let without = self.attack.in_plural();
            notes.push(format!("{} not robust even without {without}; counted as 0", nodes(self.not_robust)));
        }
        if self.open > 0 {
            notes.push(format!("{} not exact; counted as the largest budget proven", nodes(self.open)));
        }
        notes
    }
}

#[cfg(test)]
mod tests {
    use nodeproof_problem::radius::Found;
    use nodeproof_problem::results::Header;
    use nodeproof_problem::{Budget, CertifySettings, Graph, LocalBudget, Matrix, Model, NodeId, Propagation};

    use super::*;

    fn graph() -> Graph {
        Graph::new(4, 3, &[], &[]).unwrap()
    }

    #[test]
    fn figures_are_those_of_the_radii() {
        let records = [4, 0, 1, 9].map(|largest| Radius::new(NodeId(0), &graph(), Some(largest), None));
        let figures = |count: usize| RadiusFigures::new(records[..count].iter(), true);
        let expected = RadiusFigures { nodes: 4, exact: None, mean: 3.5, median: 2.5, largest: 9 };
        assert_eq!(figures(4), Some(expected));
        assert_eq!(figures(3).unwrap().median, 1.0);
        assert_eq!(figures(0), None);
        assert_eq!(figures(4).unwrap().row("all", 10), ["all", "4", "3.50", "2.5", "9"]);
        assert_eq!(figures(4).unwrap().row("all", 9)[4], "≥ 9");
    }

    #[test]
    fn a_summary_has_parts_notes_and_json() {
        let graph = graph();
        let model = Model::gcn(vec![(Matrix::zeros(3, 2), vec![0.0; 2])], Propagation::SymmetricGcn).unwrap();
        let settings = CertifySettings::new(Budget::new(5, LocalBudget::Count(1)));
        let mut radii = Radii::new(Header::new(&graph, &model, &settings, 4));
        for (node, robust_up_to, exact) in
            [(0, None, true), (1, Some(2), true), (2, Some(3), false), (3, Some(5), true)]
        {
            let mut found = Found::of_class(None);
            found.exact = exact;
            radii.records.push(Radius::new(NodeId(node), &graph, robust_up_to, Some(found)));
        }
        let split = Split::new(4, vec![NodeId(3)], vec![]).unwrap();
        let summary = RadiusSummary::new(&radii, Some(&split));
        assert_eq!(
            summary.table(),
            "            nodes    exact  mean  median  largest\n\
             ─────────────────────────────────────────────────\n\
             all             4  3 75.0%  2.50     2.5      ≥ 5\n\
             labelled        1  1  100%  5.00       5      ≥ 5\n\
             unlabelled      3  2 66.7%  1.67       2        3\n"
        );
        assert_eq!(
            summary.notes(),
            [
                "1 node is not robust even without flips; counted as 0",
                "1 node is not exact; counted as the largest budget proven"
            ]
        );
        let json = serde_json::to_value(&summary).unwrap();
        assert_eq!((&json["all"]["exact"], &json["labelled"]["mean"]), (&3.into(), &5.0.into()));
        assert_eq!((&json["withstand_all"], &json["histogram"][0]["nodes"]), (&1.into(), &1.into()));
        radii.records.clear();
        assert!(!serde_json::to_string(&RadiusSummary::new(&radii, None)).unwrap().contains("all\":{"));
    }
}

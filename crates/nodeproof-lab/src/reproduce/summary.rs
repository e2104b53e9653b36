//! The summary: what was reproduced, as Markdown with tables and figures, and the table as CSV.

use std::fmt::Write;
use std::path::PathBuf;

use nodeproof_report::text::{counted, duration, facts, printable, table};
use serde::Serialize;

use super::figures::Drawn;
use super::findings::{Mean, Outcome, Slopes};
use super::paper::{self, BUDGET, DataSet};
use super::plan::{MAX_BUDGET, MAX_BUDGET_BEYOND};
use crate::threads;

/// What was found on one data set.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Findings {
    /// The data set, and what the paper says of it.
    pub data: DataSet,
    /// Nodes, edges, attributes and classes.
    pub sizes: [usize; 4],
    /// What each method of training came to.
    pub outcomes: Vec<Outcome>,
    /// What optimised slopes gain.
    pub slopes: Slopes,
}

/// Everything that was reproduced.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Summary {
    /// One a data set.
    pub findings: Vec<Findings>,
    /// Titles of data sets that were not there.
    pub missing: Vec<&'static str>,
    /// Splits of each.
    pub splits: u64,
    /// The figures that were drawn.
    pub figures: Vec<Drawn>,
    /// What the machine is, as far as it says so.
    pub machine: String,
    /// CPU seconds of all steps, also of earlier runs.
    pub cpu_seconds: f64,
    /// Where the summary is.
    pub file: PathBuf,
}

/// Differences from the paper smaller than this are those of rounding to two digits.
const ROUNDING: f64 = 0.005;

impl Summary {
    /// The whole of it as Markdown, with tables and figures.
    pub fn markdown(&self) -> String {
        let mut text = format!(
            "# The experiments of the paper, again\n\n\
             D. Zügner and S. Günnemann, *Certifiable Robustness and Robust Training for Graph Convolutional Networks*, KDD \
             2019, repeated with nodeproof {}: {}, 10 % of the nodes labelled, 32 hidden units, at most 1 % of the \
             attributes flipped at one node.\n",
            env!("CARGO_PKG_VERSION"),
            if self.splits == 1 { "one split".to_owned() } else { format!("{} splits", self.splits) },
        );
        if !self.missing.is_empty() {
            let _ = write!(text, "\nNot there, and left out: {}.\n", self.missing.join(", "));
        }
        text += &self.table();
        text += &self.slopes();
        text += &self.sizes();
        text += &self.drawn();
        let _ = write!(
            text,
            "\n## How\n\nMade by `nodeproof reproduce` in {:.1} CPU minutes on {}. `runs/` has the networks, their radii and \
             training logs; `steps.jsonl` for every step the command that gives the same files; `table1.csv` the first table.\n",
            self.cpu_seconds / 60.0,
            self.machine
        );
        text
    }

    /// The paper's table, ours beside it.
    fn table(&self) -> String {
        let (deviation, marks) = match self.splits {
            1 => ("", ""),
            _ => (
                ", with the standard deviation over splits",
                "; ▲ ours is higher, ▼ lower, by more than rounding and a standard deviation",
            ),
        };
        let mut text = format!(
            "\n## Robust training (table 1)\n\n\
             Trained against {BUDGET} flips, with the defaults of `nodeproof train`, which are not the paper's and were chosen by \
             robustness and accuracy, some of them on these splits (docs/training.md, also for why RH-U is not the best on \
             PubMed). Ours{deviation}, and in parentheses the paper's and the difference{marks}. *Largest Q*: mean over all \
             nodes of the largest global budget Q (flips in total) for which the paper's certificate (the `fast` engine) proves \
             them robust.\n\n\
             | data set | training | largest Q | robust, Q = {BUDGET} | accuracy, labelled | accuracy, unlabelled |\n\
             |---|---|--:|--:|--:|--:|\n"
        );
        for findings in &self.findings {
            for outcome in &findings.outcomes {
                let _ = writeln!(
                    text,
                    "| {} | {} | {} | {} | {} | {} |",
                    findings.data.title,
                    paper::name(outcome.method),
                    beside(outcome.radius, outcome.paper.radius, 2),
                    beside(outcome.robust, outcome.paper.robust, 3),
                    beside(outcome.labelled, outcome.paper.labelled, 3),
                    beside(outcome.unlabelled, outcome.paper.unlabelled, 3),
                );
            }
        }
        text += &self.withstanding();
        text
    }

    /// Where the largest Q is more than was looked for.
    fn withstanding(&self) -> String {
        let worth_telling = |outcome: &&Outcome| outcome.withstand_all >= 0.01;
        let of_data_set = |findings: &Findings| {
            let outcomes = findings.outcomes.iter().filter(worth_telling);
            let shares: Vec<String> = outcomes
                .map(|outcome| format!("{} {:.0} %", paper::name(outcome.method), 100.0 * outcome.withstand_all))
                .collect();
            (!shares.is_empty()).then(|| format!("{}: {}", findings.data.title, shares.join(", ")))
        };
        let told: Vec<String> = self.findings.iter().filter_map(of_data_set).collect();
        if told.is_empty() {
            return String::new();
        }
        format!(
            "\nA node that withstands {MAX_BUDGET} flips counts with {MAX_BUDGET}, so that means are too small where there are \
             many such nodes ({}). The paper does not say how far it looked.\n",
            told.join("; ")
        )
    }

    fn slopes(&self) -> String {
        let mut text = format!(
            "\n## Default and optimised slopes\n\n\
             The mean largest Q of the network trained by CE (split 0), proven with the paper's default slopes (the `fast` \
             engine), and with optimised bounds (the `tight` engine, whose family of bounds is larger than the paper's), up to {MAX_BUDGET_BEYOND}.\n\n\
             | data set | default | optimised | gained | gained in the paper |\n|---|--:|--:|--:|--:|\n"
        );
        for findings in &self.findings {
            let Slopes { default, optimised } = findings.slopes;
            let (title, drop) = (findings.data.title, findings.data.drop);
            let _ = writeln!(text, "| {title} | {default:.2} | {optimised:.2} | {:.2} | {drop} |", optimised - default);
        }
        text
    }

    fn sizes(&self) -> String {
        let mut text =
            "\n## Data\n\n| data set | nodes | edges | attributes | classes |\n|---|--:|--:|--:|--:|\n".to_owned();
        for findings in &self.findings {
            let cell = |(ours, paper): (&usize, &usize)| match ours == paper {
                true => ours.to_string(),
                false => format!("{ours} (paper {paper})"),
            };
            let cells: Vec<String> = findings.sizes.iter().zip(&findings.data.sizes).map(cell).collect();
            let _ = writeln!(text, "| {} | {} |", findings.data.title, cells.join(" | "));
        }
        text
    }

    fn drawn(&self) -> String {
        let mut text =
            "\n## Figures\n\nOf split 0; local budgets are 1 % of the attributes (28 on Cora-ML, 37 on Citeseer, 5 on PubMed). Dotted curves are the \
             paper's, where its numbers are known. Those curves are at 100 % under one flip for each of its networks, ours are \
             not; the paper does not say why.\n".to_owned();
        for Drawn { name, caption } in &self.figures {
            let _ = write!(text, "\n![{name}](figures/{name}.png)\n\n{caption} ([SVG](figures/{name}.svg))\n");
        }
        text
    }

    /// The table as CSV.
    pub fn csv(&self) -> String {
        let mut text = "data_set,training,figure,ours,deviation,paper\n".to_owned();
        for findings in &self.findings {
            for outcome in &findings.outcomes {
                let paper = outcome.paper;
                for (figure, ours, paper) in [
                    ("largest_q", outcome.radius, paper.radius),
                    ("robust_12", outcome.robust, paper.robust),
                    ("accuracy_labelled", outcome.labelled, paper.labelled),
                    ("accuracy_unlabelled", outcome.unlabelled, paper.unlabelled),
                ] {
                    let deviation = ours.deviation.map(|deviation| deviation.to_string()).unwrap_or_default();
                    let (stem, method) = (findings.data.stem, outcome.method.name());
                    let _ = writeln!(text, "{stem},{method},{figure},{},{deviation},{paper}", ours.mean);
                }
            }
        }
        text
    }

    /// The paper's table, in short, and where everything is; in lines of at most `width` characters where they can be broken.
    pub fn in_words(&self, width: usize) -> String {
        let header =
            ["", "", "largest Q\nours", "\npaper", "robust,\nQ = 12", "\npaper", "unlabelled\naccuracy", "\npaper"];
        let mut rows = Vec::new();
        for findings in &self.findings {
            for outcome in &findings.outcomes {
                let paper = outcome.paper;
                rows.push(vec![
                    findings.data.title.to_owned(),
                    paper::name(outcome.method),
                    format!("{:.2}", outcome.radius.mean),
                    format!("{:.2}", paper.radius),
                    format!("{:.3}", outcome.robust.mean),
                    format!("{:.2}", paper.robust),
                    format!("{:.3}", outcome.unlabelled.mean),
                    format!("{:.2}", paper.unlabelled),
                ]);
            }
        }
        let table = table("llrrrrrr", Some(header.map(str::to_owned).to_vec()), rows);
        let time = format!("{} CPU in total", duration(self.cpu_seconds));
        let written = printable(&self.file.display().to_string());
        format!("{table}\n{}", facts(&[("time", time), ("written", written)], width))
    }
}

/// Ours, with its deviation, and in parentheses the paper's.
fn beside(ours: Mean, paper: f64, digits: usize) -> String {
    // Without a deviation nothing can be said about chance.
    let beyond = ours.deviation.map_or(f64::INFINITY, |deviation| deviation + ROUNDING);
    let mark = match ours.mean - paper {
        difference if difference > beyond => " ▲",
        difference if difference < -beyond => " ▼",
        _ => "",
    };
    let deviation = ours.deviation.map(|deviation| format!(" ± {deviation:.digits$}")).unwrap_or_default();
    format!("{:.digits$}{deviation} ({paper:.2}, {:+.digits$}){mark}", ours.mean, ours.mean - paper)
}

/// What the machine is, as far as it says so, and how many threads of it are used; 0 for all.
pub(super) fn machine(threads: usize) -> String {
    let facts = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = facts.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": ").map(|(_, name)| name));
    let threads = counted(if threads == 0 { threads::available() } else { threads }, "thread");
    model.map_or(format!("a machine with {threads}"), |model| format!("{threads} of a machine with {}", model.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_told_and_marked_where_they_exceed_chance() {
        let ours = |mean| Mean { mean, deviation: None };
        assert_eq!(beside(ours(0.7907), 0.77, 3), "0.791 (0.77, +0.021)");
        let several = |mean, deviation| Mean { mean, deviation: Some(deviation) };
        assert_eq!(beside(several(0.7907, 0.007), 0.77, 3), "0.791 ± 0.007 (0.77, +0.021) ▲");
        assert_eq!(beside(several(0.7907, 0.02), 0.77, 3), "0.791 ± 0.020 (0.77, +0.021)");
        assert_eq!(beside(several(30.0, 1.5), 32.49, 2), "30.00 ± 1.50 (32.49, -2.49) ▼");
    }

    #[test]
    fn the_paper_is_quoted_right() {
        let rows = paper::DATA_SETS.iter().flat_map(|data| data.rows);
        assert_eq!(rows.clone().count(), 12);
        // The sums of the columns of its table.
        let sum = |column: fn(&paper::Row) -> f64| rows.clone().map(|row| column(&row)).sum::<f64>();
        assert!((sum(|row| row.radius) - 335.01).abs() < 1e-9, "{}", sum(|row| row.radius));
        assert!((sum(|row| row.robust) - 7.03).abs() < 1e-9, "{}", sum(|row| row.robust));
        assert!((sum(|row| row.labelled) - 11.64).abs() < 1e-9, "{}", sum(|row| row.labelled));
        assert!((sum(|row| row.unlabelled) - 9.45).abs() < 1e-9, "{}", sum(|row| row.unlabelled));
    }
}

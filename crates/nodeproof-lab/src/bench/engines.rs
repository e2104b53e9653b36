//! What each engine decides, and how long it takes.

use std::time::Duration;

use cpu_time::ProcessTime;
use nodeproof::train::spread;
use nodeproof::{
    Budget, Certificate, Certifier, CertifyError, CertifySettings, Engine, Graph, Model, NodeId, TargetClass, Verdict,
};
use nodeproof_report::text;
use serde::Serialize;

/// What is measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// What the attacker may change, but for the flips in all.
    pub budget: Budget,
    /// The global budgets to compare the engines under.
    pub global_budgets: Vec<u32>,
    /// Whose margins are certified.
    pub target_class: TargetClass,
    /// The most time that one node may take under one budget.
    pub time_limit: Option<Duration>,
    /// Nodes to certify, evenly spaced; `None` for all.
    pub sample: Option<usize>,
}

impl Settings {
    /// How `engine` certifies under the global budget `global`: on one thread.
    fn of(&self, engine: Engine, global: u32) -> CertifySettings {
        let mut settings = CertifySettings::new(self.budget.clone().with_global(global));
        (settings.target_class, settings.engine) = (self.target_class, engine);
        (settings.time_limit, settings.threads) = (self.time_limit, 1);
        settings
    }
}

/// Certifies the same nodes with each engine under each global budget, on one thread. `observe` hears what is measured
/// next.
///
/// # Errors
/// If the model or the settings do not fit the graph.
pub fn run(
    graph: &Graph,
    model: &Model,
    settings: &Settings,
    mut observe: impl FnMut(&str),
) -> Result<Report, CertifyError> {
    let all: Vec<NodeId> = graph.node_ids().collect();
    let nodes: Vec<NodeId> = spread(&all, settings.sample.unwrap_or(all.len()));
    for &global in &settings.global_budgets {
        settings.of(Engine::Fast, global).validate(graph, &nodes)?;
    }
    let mut rows = Vec::new();
    for &global in &settings.global_budgets {
        for engine in Engine::ALL {
            let counted = text::counted(nodes.len(), "node");
            observe(&format!("the {} engine, Q = {global}, {counted}", engine.name()));
            let start = ProcessTime::now();
            let certificates = Certifier::new(graph, model)?.settings(settings.of(engine, global)).certify(&nodes)?;
            rows.push(Row::new(engine, global, &certificates, start.elapsed()));
        }
    }
    Ok(Report {
        nodes: nodes.len(),
        nodes_of_graph: all.len(),
        local_budget: settings.budget.local().to_string(),
        time_limit_seconds: settings.time_limit.map(|limit| limit.as_secs_f64()),
        rows,
        local_in_words: settings.budget.local_in_words(graph.attribute_count()),
    })
}

/// What an engine made of all nodes under one budget.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Row {
    /// The global budget.
    pub global_budget: u32,
    /// The strongest engine that was tried.
    pub engine: Engine,
    /// Nodes that are robust.
    pub robust: usize,
    /// Nodes with a witness.
    pub nonrobust: usize,
    /// The other nodes.
    pub undecided: usize,
    /// CPU seconds of all nodes together, with what is prepared for them once.
    pub cpu_seconds: f64,
    /// Seconds that half of the nodes do not exceed.
    pub median_seconds: f64,
    /// Seconds that 95 % of the nodes do not exceed.
    pub percentile_95_seconds: f64,
    /// Seconds of the slowest node.
    pub max_seconds: f64,
}

impl Row {
    fn new(engine: Engine, global_budget: u32, certificates: &[Certificate], cpu: Duration) -> Self {
        let count =
            |verdict: Verdict| certificates.iter().filter(|certificate| certificate.verdict() == verdict).count();
        let mut times: Vec<f64> =
            certificates.iter().filter_map(|certificate| Some(certificate.time?.as_secs_f64())).collect();
        times.sort_by(f64::total_cmp);
        Self {
            global_budget,
            engine,
            robust: count(Verdict::Robust),
            nonrobust: count(Verdict::Nonrobust),
            undecided: count(Verdict::Undecided),
            cpu_seconds: cpu.as_secs_f64(),
            median_seconds: quantile(&times, 50),
            percentile_95_seconds: quantile(&times, 95),
            max_seconds: quantile(&times, 100),
        }
    }

    fn cells(&self) -> Vec<String> {
        let nodes = self.robust + self.nonrobust + self.undecided;
        vec![
            self.global_budget.to_string(),
            self.engine.name().to_owned(),
            text::percentage(self.robust, nodes),
            text::percentage(self.nonrobust, nodes),
            text::percentage(self.undecided, nodes),
            if self.cpu_seconds < 1.0 {
                format!("{:.3}", self.cpu_seconds)
            } else {
                format!("{:.1}", self.cpu_seconds)
            },
            short_time(self.median_seconds),
            short_time(self.percentile_95_seconds),
            short_time(self.max_seconds),
        ]
    }
}

/// The smallest of `sorted` that `percent` of them do not exceed.
fn quantile(sorted: &[f64], percent: usize) -> f64 {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or(0.0)
}

/// A short time with its unit.
fn short_time(seconds: f64) -> String {
    match seconds {
        seconds if seconds < 1e-3 => format!("{:.0} µs", 1e6 * seconds),
        seconds if seconds < 1.0 => format!("{:.1} ms", 1e3 * seconds),
        seconds => format!("{seconds:.1} s"),
    }
}

/// What was measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// Nodes that were certified.
    pub nodes: usize,
    /// Nodes of the graph.
    pub nodes_of_graph: usize,
    /// The local budget: a count, or a share such as `1%`.
    pub local_budget: String,
    /// The most seconds that one node may take under one budget.
    pub time_limit_seconds: Option<f64>,
    /// One a global budget and engine.
    pub rows: Vec<Row>,
    #[serde(skip)]
    local_in_words: String,
}

impl Report {
    /// The table, and how it was made, in lines of at most `width` characters where they can be broken.
    pub fn in_words(&self, width: usize) -> String {
        let header = [
            "\nQ",
            "\nengine",
            "\nrobust",
            "\nnonrobust",
            "\nundecided",
            "CPU\nseconds",
            "a node:\nmedian",
            "\n95%",
            "\nmax",
        ];
        let rows = self.rows.iter().map(Row::cells).collect();
        let table = text::table("rlrrrrrrr", Some(header.map(str::to_owned).to_vec()), rows);
        let nodes = match self.nodes {
            nodes if nodes == self.nodes_of_graph => format!("all {nodes}, on one thread"),
            nodes => format!("{nodes} of {}, evenly spaced, on one thread", self.nodes_of_graph),
        };
        let limit = self.time_limit_seconds.map_or("none".to_owned(), |seconds| format!("{seconds} s a node"));
        let budget = format!("Q flips, {}", self.local_in_words);
        let facts = text::facts(&[("nodes", nodes), ("budget", budget), ("time limit", limit)], width);
        format!("{table}\n{facts}")
    }

    /// The table as it stands in the documentation.
    pub fn markdown(&self) -> String {
        let header = ["Q", "engine", "robust", "nonrobust", "undecided", "CPU seconds", "median node", "95 %", "max"];
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let mut text = line(&header.map(str::to_owned));
        text += "|---:|---|---:|---:|---:|---:|---:|---:|---:|\n";
        self.rows.iter().for_each(|row| text += &line(&row.cells()));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_engine_has_a_row_for_every_budget() {
        let (graph, model) = crate::bench::tests::problem();
        let mut settings = Settings {
            budget: Budget::new(1, "2".parse().unwrap()),
            global_budgets: vec![2, 5],
            target_class: TargetClass::Predicted,
            time_limit: Some(Duration::from_secs(10)),
            sample: Some(6),
        };
        let mut told = Vec::new();
        let report = run(&graph, &model, &settings, |what| told.push(what.to_owned())).unwrap();
        let keys: Vec<_> = report.rows.iter().map(|row| (row.global_budget, row.engine)).collect();
        let expected: Vec<_> = [2, 5].iter().flat_map(|&q| Engine::ALL.map(|engine| (q, engine))).collect();
        assert_eq!((report.nodes, keys), (6, expected));
        assert_eq!(told[4], "the tight engine, Q = 5, 6 nodes");
        for row in &report.rows {
            assert_eq!(row.robust + row.nonrobust + row.undecided, 6);
            assert!(0.0 < row.median_seconds && row.median_seconds <= row.max_seconds && row.cpu_seconds > 0.0);
        }
        let text = report.in_words(80);
        assert!(text.contains("6 of 30, evenly spaced") && text.contains("10 s a node"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(report.markdown().lines().all(|line| line.matches('|').count() == 10));
        settings.global_budgets.push(99_999);
        let refused = run(&graph, &model, &settings, |_| panic!("nothing is measured before all is checked"));
        assert!(refused.unwrap_err().to_string().contains("99999 is more than"));
    }

    #[test]
    fn quantiles_are_members() {
        let times: Vec<f64> = (1..=20).map(f64::from).collect();
        assert_eq!((quantile(&times, 50), quantile(&times, 95), quantile(&times, 100)), (10.0, 19.0, 20.0));
        assert_eq!((quantile(&[3.0], 50), quantile(&[], 95)), (3.0, 0.0));
    }

    #[test]
    fn times_have_units() {
        assert_eq!([1.2e-5, 0.0123, 9.96].map(short_time), ["12 µs", "12.3 ms", "10.0 s"]);
    }
}

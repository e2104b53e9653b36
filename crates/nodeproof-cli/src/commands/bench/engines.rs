//! `nodeproof bench engines`: what each engine decides, and how long it takes.

use std::time::Duration;

use cpu_time::ProcessTime;
use nodeproof::{Certificate, Certifier, Engine, NodeId};
use nodeproof_report::results::VerdictName;
use serde::Serialize;

use crate::cli::BenchEnginesArguments;
use crate::inputs::Inputs;
use crate::lists::spread;
use crate::outcome::Outcome;
use crate::terminal;

/// Runs the command.
///
/// # Errors
/// If the input is bad.
pub(in crate::commands) fn run(arguments: &BenchEnginesArguments) -> anyhow::Result<Outcome> {
    let inputs = Inputs::read(&arguments.graph, &arguments.model, &arguments.budget, arguments.print.quiet)?;
    let all: Vec<NodeId> = inputs.graph.node_ids().collect();
    let sample = arguments.sample.0.unwrap_or(all.len());
    let nodes: Vec<NodeId> = spread(&all, sample).into_iter().copied().collect();
    inputs.check_class(arguments.model.class, &nodes)?;
    let mut rows = Vec::new();
    for &global in &arguments.budget.budgets.0 {
        for engine in Engine::ALL {
            let counted = terminal::counted(nodes.len(), "node");
            terminal::note(arguments.print.quiet, &format!("engine {}, Q = {global}, {counted}", engine.name()));
            rows.push(measure(arguments, &inputs, &nodes, engine, global)?);
        }
    }
    let report = Report {
        nodes: nodes.len(),
        nodes_of_graph: all.len(),
        local_budget: inputs.budget.budget().local().to_string(),
        time_limit_seconds: arguments.limit.time_limit.duration().map(|limit| limit.as_secs_f64()),
        rows,
    };
    let text = match arguments {
        arguments if arguments.print.json => serde_json::to_string_pretty(&report)? + "\n",
        arguments if arguments.markdown => report.markdown(),
        _ => report.in_words(&inputs, arguments),
    };
    terminal::print(&text)?;
    Ok(Outcome::Done)
}

/// Certifies `nodes` with `engine` on one thread.
fn measure(
    arguments: &BenchEnginesArguments,
    inputs: &Inputs,
    nodes: &[NodeId],
    engine: Engine,
    global: u32,
) -> anyhow::Result<Row> {
    let start = ProcessTime::now();
    let mut certifier = Certifier::new(&inputs.graph, &inputs.model)?
        .budget(inputs.budget.budget().clone().with_global(global))
        .target_class(arguments.model.class.into())
        .engine(engine)
        .threads(1);
    if let Some(limit) = arguments.limit.time_limit.duration() {
        certifier = certifier.time_limit(limit);
    }
    let certificates = certifier.certify(nodes)?;
    Ok(Row::new(engine, global, &certificates, start.elapsed()))
}

/// What an engine made of all nodes under one budget.
#[derive(Debug, Serialize)]
struct Row {
    global_budget: u32,
    engine: Engine,
    robust: usize,
    nonrobust: usize,
    undecided: usize,
    /// Of all nodes together, with what is prepared for them once.
    cpu_seconds: f64,
    /// Of single nodes.
    median_seconds: f64,
    percentile_95_seconds: f64,
    max_seconds: f64,
}

impl Row {
    fn new(engine: Engine, global_budget: u32, certificates: &[Certificate], cpu: Duration) -> Self {
        let count = |verdict: VerdictName| {
            certificates.iter().filter(|certificate| VerdictName::of(&certificate.verdict) == verdict).count()
        };
        let mut times: Vec<f64> = certificates.iter().map(|certificate| certificate.time.as_secs_f64()).collect();
        times.sort_by(f64::total_cmp);
        Self {
            global_budget,
            engine,
            robust: count(VerdictName::Robust),
            nonrobust: count(VerdictName::Nonrobust),
            undecided: count(VerdictName::Undecided),
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
            terminal::percentage(self.robust, nodes),
            terminal::percentage(self.nonrobust, nodes),
            terminal::percentage(self.undecided, nodes),
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

#[derive(Debug, Serialize)]
struct Report {
    nodes: usize,
    nodes_of_graph: usize,
    local_budget: String,
    time_limit_seconds: Option<f64>,
    rows: Vec<Row>,
}

impl Report {
    fn in_words(&self, inputs: &Inputs, arguments: &BenchEnginesArguments) -> String {
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
        let table = terminal::table("rlrrrrrrr", Some(header.map(str::to_owned).to_vec()), rows);
        let nodes = match self.nodes {
            nodes if nodes == self.nodes_of_graph => format!("all {nodes}, on one thread"),
            nodes => format!("{nodes} of {}, evenly spaced, on one thread", self.nodes_of_graph),
        };
        let facts = terminal::facts(&[
            ("nodes", nodes),
            ("budget", format!("Q flips, {}", inputs.budget.local_in_words(&inputs.graph))),
            ("time limit", format!("{} a node", arguments.limit.time_limit)),
        ]);
        format!("{table}\n{facts}")
    }

    /// The table as it stands in the documentation.
    fn markdown(&self) -> String {
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

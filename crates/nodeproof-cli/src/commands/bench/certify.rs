//! `nodeproof bench certify`: how long the engine takes, measured against the plain formula in the same run.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use cpu_time::ProcessTime;
use nodeproof::check::textbook::Textbook;
use nodeproof::{Certificate, Certifier, Event, Network, NodeId};
use serde::Serialize;

use crate::cli::BenchCertifyArguments;
use crate::inputs::Inputs;
use crate::lists::spread;
use crate::outcome::Outcome;
use crate::terminal;

/// Runs the command.
///
/// # Errors
/// If the input is bad.
pub(in crate::commands) fn run(arguments: &BenchCertifyArguments) -> anyhow::Result<Outcome> {
    let inputs = Inputs::read(&arguments.graph, &arguments.model, &arguments.budget, arguments.print.quiet)?;
    let nodes: Vec<NodeId> = inputs.graph.node_ids().collect();
    inputs.check_class(arguments.model.class, &nodes)?;
    let say = |text: &str| terminal::note(arguments.print.quiet, text);

    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let counted = terminal::counted(nodes.len(), "node");
    say(&format!("engine fast, {counted}, on 1 thread and on {threads}, best of {} each", arguments.repeats));
    let best = |threads: usize, time: fn(&EngineRun) -> Duration| -> anyhow::Result<EngineRun> {
        let mut best = EngineRun::measure(&inputs, arguments, threads, &nodes)?;
        for _ in 1..arguments.repeats {
            let run = EngineRun::measure(&inputs, arguments, threads, &nodes)?;
            if time(&run) < time(&best) {
                best = run;
            }
        }
        Ok(best)
    };
    let one = best(1, |run| run.cpu)?;
    let many = best(threads, |run| run.wall)?;
    let peak_memory = peak_memory();

    let sample = spread(&one.certificates, arguments.sample.into());
    say(&format!("dense formula: bounds of all nodes, then the dual of {}", terminal::counted(sample.len(), "node")));
    let dense = DenseRun::measure(&inputs, &sample)?;

    let report = Report::new(&one, &many, threads, &sample, &dense, peak_memory);
    let text = if arguments.print.json { serde_json::to_string_pretty(&report)? + "\n" } else { report.in_words() };
    terminal::print(&text)?;
    Ok(Outcome::Done)
}

/// One run of the engine over all nodes.
struct EngineRun {
    certificates: Vec<Certificate>,
    preparation: Duration,
    cpu: Duration,
    wall: Duration,
}

impl EngineRun {
    fn measure(
        inputs: &Inputs,
        arguments: &BenchCertifyArguments,
        threads: usize,
        nodes: &[NodeId],
    ) -> anyhow::Result<Self> {
        let (start, cpu) = (Instant::now(), ProcessTime::now());
        let mut preparation = Duration::ZERO;
        let mut certificates = Vec::with_capacity(nodes.len());
        let certifier = Certifier::new(&inputs.graph, &inputs.model)?
            .budget(inputs.budget.budget().clone())
            .target_class(arguments.model.class.into())
            .threads(threads);
        let _ = certifier.certify_each(nodes, |event| {
            match event {
                Event::Preparing { .. } => preparation = cpu.elapsed(),
                Event::Certified(certificate) => certificates.push(certificate),
                _ => {}
            }
            ControlFlow::Continue(())
        })?;
        Ok(Self { certificates, preparation, cpu: cpu.elapsed(), wall: start.elapsed() })
    }
}

/// One run of the dense formula: bounds of all nodes, the dual of a few.
struct DenseRun {
    bounds: Duration,
    dual: Duration,
    /// The largest difference between the engine's margins and the formula's, relative where margins exceed 1.
    difference: f64,
}

impl DenseRun {
    fn measure(inputs: &Inputs, sample: &[&Certificate]) -> anyhow::Result<Self> {
        let network = Network::new(&inputs.graph, &inputs.model)?;
        let limits = inputs.budget.budget().limits(&inputs.graph)?;
        let start = ProcessTime::now();
        let textbook = Textbook::new(&network, &limits);
        let bounds = start.elapsed();
        let mut difference = 0.0f64;
        for certificate in sample {
            let formula = textbook.lower_bounds(certificate.node, certificate.class, None);
            for (margin, formula) in certificate.margins.iter().zip(formula) {
                let off = margin.map_or(0.0, |margin| (margin - formula).abs() / formula.abs().max(1.0));
                difference = difference.max(off);
            }
        }
        Ok(Self { bounds, dual: start.elapsed() - bounds, difference })
    }
}

/// CPU seconds of engine and formula for one piece of work.
#[derive(Debug, Serialize)]
struct Row {
    work: String,
    engine_cpu_seconds: f64,
    dense_cpu_seconds: f64,
    ratio: f64,
}

impl Row {
    fn new(work: String, engine: f64, dense: f64) -> Self {
        Self { work, engine_cpu_seconds: engine, dense_cpu_seconds: dense, ratio: dense / engine.max(1e-9) }
    }
}

#[derive(Debug, Serialize)]
struct Report {
    nodes: usize,
    sampled_nodes: usize,
    rows: Vec<Row>,
    largest_difference: f64,
    threads: usize,
    wall_seconds_one_thread: f64,
    wall_seconds_all_threads: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    peak_memory_bytes: Option<u64>,
}

impl Report {
    fn new(
        one: &EngineRun,
        many: &EngineRun,
        threads: usize,
        sample: &[&Certificate],
        dense: &DenseRun,
        peak_memory_bytes: Option<u64>,
    ) -> Self {
        let nodes = one.certificates.len();
        let engine_sample: Duration = sample.iter().map(|certificate| certificate.time).sum();
        let dense_all =
            dense.bounds.as_secs_f64() + dense.dual.as_secs_f64() / sample.len().max(1) as f64 * nodes as f64;
        let seconds = Duration::as_secs_f64;
        let rows = vec![
            Row::new("bounds, all nodes".to_owned(), seconds(&one.preparation), seconds(&dense.bounds)),
            Row::new(
                format!("dual of {}, engine with witnesses", terminal::counted(sample.len(), "node")),
                seconds(&engine_sample),
                seconds(&dense.dual),
            ),
            Row::new("everything, all nodes (dense: scaled up)".to_owned(), seconds(&one.cpu), dense_all),
        ];
        Self {
            nodes,
            sampled_nodes: sample.len(),
            rows,
            largest_difference: dense.difference,
            threads,
            wall_seconds_one_thread: seconds(&one.wall),
            wall_seconds_all_threads: seconds(&many.wall),
            peak_memory_bytes,
        }
    }

    fn in_words(&self) -> String {
        let header = ["CPU seconds", "engine", "dense formula", "ratio"].map(str::to_owned).to_vec();
        let row = |row: &Row| {
            vec![
                row.work.clone(),
                format!("{:.4}", row.engine_cpu_seconds),
                format!("{:.2}", row.dense_cpu_seconds),
                format!("{:.0}", row.ratio),
            ]
        };
        let table = terminal::table("lrrr", Some(header), self.rows.iter().map(row).collect());
        let (one, many) = (self.wall_seconds_one_thread, self.wall_seconds_all_threads);
        let mut facts = vec![
            ("difference", format!("{:.1e} at most between engine and formula (relative)", self.largest_difference)),
            (
                "threads",
                format!("1: {one:.2} s, {}: {many:.2} s of wall time, {:.2} times faster", self.threads, one / many),
            ),
        ];
        if let Some(bytes) = self.peak_memory_bytes {
            facts.push(("memory", format!("{} MB at most, engine and input", bytes / 1_000_000)));
        }
        format!("{table}\n{}", terminal::facts(&facts))
    }
}

/// The most memory that this process has used so far, where the system tells.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

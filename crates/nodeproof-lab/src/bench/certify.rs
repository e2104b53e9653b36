//! How long the `fast` engine takes, measured against the plain formula in the same run.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use cpu_time::ProcessTime;
use nodeproof::check::textbook::Textbook;
use nodeproof::train::spread;
use nodeproof::{
    Bound, Budget, Certificate, Certifier, CertifyError, CertifySettings, Event, Graph, Model, ModelError, Network,
    NodeId, TargetClass,
};
use nodeproof_report::text;
use serde::Serialize;

use crate::{memory, threads};

/// What is measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// What the attacker may change.
    pub budget: Budget,
    /// Whose margins are certified.
    pub target_class: TargetClass,
    /// Nodes on which the dense formula is evaluated, evenly spaced. Few of them make a poor estimate, since nodes differ a
    /// hundredfold.
    pub sample: usize,
    /// Runs of the engine, of which the fastest counts.
    pub repeats: usize,
}

/// Certifies every node on one thread and then on all, and evaluates the paper's formulas densely on a sample of the same
/// nodes. `observe` hears what is measured next.
///
/// # Errors
/// If the model or the settings do not fit the graph.
pub fn run(
    graph: &Graph,
    model: &Model,
    settings: &Settings,
    mut observe: impl FnMut(&str),
) -> Result<Report, CertifyError> {
    let nodes: Vec<NodeId> = graph.node_ids().collect();
    let mut certify = CertifySettings::new(settings.budget.clone());
    certify.target_class = settings.target_class;
    certify.validate(graph, &nodes)?;
    let certifier = |threads| Ok(Certifier::new(graph, model)?.settings(certify.clone()).threads(threads));
    let (repeats, threads) = (settings.repeats.max(1), threads::available());
    let counted = text::counted(nodes.len(), "node");
    observe(&format!("the fast engine, {counted}, on 1 thread and on {threads}, best of {repeats} each"));
    let best = |threads: usize, time: fn(&EngineRun) -> Duration| {
        let mut best = EngineRun::measure(|| certifier(threads), &nodes)?;
        for _ in 1..repeats {
            let run = EngineRun::measure(|| certifier(threads), &nodes)?;
            if time(&run) < time(&best) {
                best = run;
            }
        }
        Ok::<_, CertifyError>(best)
    };
    let one = best(1, |run| run.cpu)?;
    let many = best(threads, |run| run.wall)?;
    let peak_memory = memory::peak();

    let sample = spread(&one.certificates.iter().collect::<Vec<_>>(), settings.sample);
    observe(&format!(
        "the dense formula: bounds of all nodes, then the dual of {}",
        text::counted(sample.len(), "node")
    ));
    let dense = DenseRun::measure(&Network::new(graph, model)?, &settings.budget, &sample)?;
    Ok(Report::new(&one, &many, threads, &sample, &dense, peak_memory))
}

/// One run of the engine over all nodes.
struct EngineRun {
    certificates: Vec<Certificate>,
    preparation: Duration,
    cpu: Duration,
    wall: Duration,
}

impl EngineRun {
    /// Certifies `nodes`; making the certifier counts.
    fn measure<'a>(
        certifier: impl FnOnce() -> Result<Certifier<'a>, CertifyError>,
        nodes: &[NodeId],
    ) -> Result<Self, CertifyError> {
        let (start, cpu) = (Instant::now(), ProcessTime::now());
        let mut preparation = Duration::ZERO;
        let mut certificates = Vec::with_capacity(nodes.len());
        let _ = certifier()?.certify_each(nodes, |event| {
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
    fn measure(network: &Network, budget: &Budget, sample: &[&Certificate]) -> Result<Self, CertifyError> {
        let limits = budget.limits(network.graph())?;
        let start = ProcessTime::now();
        let Some(textbook) = Textbook::new(network, &limits) else {
            let problem = "the dense formula is the paper's, for plain bits and layers that read the one before and have ReLUs between; \
                           give such a model";
            return Err(ModelError::Mismatch { problem: problem.to_owned() }.into());
        };
        let bounds = start.elapsed();
        let mut difference = 0.0f64;
        for certificate in sample {
            let formula = textbook.lower_bounds(certificate.node, certificate.class, None);
            for (margin, formula) in certificate.margins.iter().zip(formula) {
                let margin = margin.and_then(Bound::at_least);
                let off = margin.map_or(0.0, |margin| (margin - formula).abs() / formula.abs().max(1.0));
                difference = difference.max(off);
            }
        }
        Ok(Self { bounds, dual: start.elapsed() - bounds, difference })
    }
}

/// CPU seconds of engine and formula for one piece of work.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Row {
    /// The work.
    pub work: String,
    /// CPU seconds of the engine, user and system.
    pub engine_cpu_seconds: f64,
    /// CPU seconds of the dense formula.
    pub dense_cpu_seconds: f64,
    /// How many times as long the formula takes.
    pub ratio: f64,
}

impl Row {
    fn new(work: String, engine: f64, dense: f64) -> Self {
        Self { work, engine_cpu_seconds: engine, dense_cpu_seconds: dense, ratio: dense / engine.max(1e-9) }
    }
}

/// What was measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// Nodes that were certified.
    pub nodes: usize,
    /// Nodes on which the dense formula was evaluated.
    pub sampled_nodes: usize,
    /// CPU seconds for each piece of work.
    pub rows: Vec<Row>,
    /// The largest difference between the engine's margins and the formula's, relative where margins exceed 1.
    pub largest_difference: f64,
    /// Threads that the machine has.
    pub threads: usize,
    /// Wall time of the engine on one thread.
    pub wall_seconds_one_thread: f64,
    /// Wall time of the engine on all threads.
    pub wall_seconds_all_threads: f64,
    /// The most memory that the process has used before the dense formula, where the system says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_memory_bytes: Option<u64>,
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
        let engine_sample: Duration = sample.iter().filter_map(|certificate| certificate.time).sum();
        let dense_all =
            dense.bounds.as_secs_f64() + dense.dual.as_secs_f64() / sample.len().max(1) as f64 * nodes as f64;
        let seconds = Duration::as_secs_f64;
        let rows = vec![
            Row::new("bounds, all nodes".to_owned(), seconds(&one.preparation), seconds(&dense.bounds)),
            Row::new(
                format!("dual of {}, engine with witnesses", text::counted(sample.len(), "node")),
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

    /// The table, and what else is known, in lines of at most `width` characters where they can be broken.
    pub fn in_words(&self, width: usize) -> String {
        let header = ["CPU seconds", "engine", "dense formula", "ratio"].map(str::to_owned).to_vec();
        let row = |row: &Row| {
            vec![
                row.work.clone(),
                format!("{:.4}", row.engine_cpu_seconds),
                format!("{:.2}", row.dense_cpu_seconds),
                format!("{:.0}", row.ratio),
            ]
        };
        let table = text::table("lrrr", Some(header), self.rows.iter().map(row).collect());
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
        format!("{table}\n{}", text::facts(&facts, width))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_engine_agrees_with_the_formula() {
        let (graph, model) = crate::bench::tests::problem();
        let budget = Budget::new(3, "2".parse().unwrap());
        let settings = Settings { budget, target_class: TargetClass::Predicted, sample: 7, repeats: 1 };
        let mut told = Vec::new();
        let report = run(&graph, &model, &settings, |what| told.push(what.to_owned())).unwrap();
        assert_eq!((report.nodes, report.sampled_nodes, report.rows.len(), told.len()), (30, 7, 3, 2));
        assert!(report.largest_difference < 1e-10, "{report:?}");
        let text = report.in_words(80);
        assert!(text.contains("dense formula") && text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(text.contains("dual of 7 nodes") && told[0].contains("30 nodes"), "{text}");
    }
}

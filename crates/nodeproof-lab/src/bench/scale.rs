//! How the cost of certificates grows with the graph: the same network on graphs of one family, drawn by chance.

use std::ops::ControlFlow;
use std::time::Duration;

use cpu_time::ProcessTime;
use nodeproof::graph::Synthetic;
use nodeproof::train::{Method, TrainSettings, Trainer, spread};
use nodeproof::{Budget, Certifier, CertifySettings, Engine, Event, Graph, Model, NodeId, Split, SplitSize, Verdict};
use nodeproof_report::text;
use serde::Serialize;

use crate::{LabError, memory, threads};

/// Share of each class that is labelled where a network is trained.
const TRAIN_SHARE: f64 = 0.1;
/// Sizes that differ by less than this factor say nothing of how a cost depends on them.
const TELLING: f64 = 1.2;

/// What is measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Numbers of nodes.
    pub sizes: Vec<usize>,
    /// The family: what graphs are like but for their size.
    pub family: Synthetic,
    /// What the attacker may change.
    pub budget: Budget,
    /// The strongest engine.
    pub engine: Engine,
    /// The most time that one node may take.
    pub time_limit: Option<Duration>,
    /// Nodes to certify, evenly spaced; `None` for all.
    pub sample: Option<usize>,
    /// The network; `None` for one that is trained on the smallest graph.
    pub model: Option<Model>,
}

impl Settings {
    /// How nodes are certified: on one thread.
    fn certify(&self) -> CertifySettings {
        let mut settings = CertifySettings::new(self.budget.clone());
        (settings.engine, settings.time_limit, settings.threads) = (self.engine, self.time_limit, 1);
        settings
    }

    fn graph(&self, nodes: usize) -> Result<Graph, LabError> {
        let graph = self.family.clone().nodes(nodes).graph();
        graph.map_err(|source| LabError::Synthetic { nodes, source })
    }
}

/// Draws a graph of each size, from the smallest to the largest, and certifies its nodes on one thread. `observe` hears what
/// happens next.
///
/// # Errors
/// If a graph cannot be drawn, or the model or the settings do not fit.
pub fn run(settings: &Settings, mut observe: impl FnMut(&str)) -> Result<Report, LabError> {
    let mut sizes = settings.sizes.clone();
    sizes.sort_unstable();
    sizes.dedup();
    let trained = match (&settings.model, sizes.first()) {
        (None, Some(&nodes)) => {
            observe(&format!("training a network on a graph of {}", text::counted(nodes, "node")));
            Some(network(&settings.graph(nodes)?, &settings.budget)?)
        }
        _ => None,
    };
    let model = settings.model.as_ref().or(trained.as_ref());
    let mut rows = Vec::new();
    for nodes in sizes {
        let certified = text::counted(settings.sample.map_or(nodes, |sample| sample.min(nodes)), "node");
        observe(&format!("a graph of {}: certifying {certified}", text::counted(nodes, "node")));
        let graph = settings.graph(nodes)?;
        rows.extend(model.map(|model| Row::measure(&graph, model, settings)).transpose()?);
    }
    Ok(Report::new(rows, settings))
}

/// A network of 32 hidden units, trained by cross entropy: the same each time.
fn network(graph: &Graph, budget: &Budget) -> Result<Model, LabError> {
    let split = Split::stratified(graph, SplitSize::Fraction(TRAIN_SHARE), SplitSize::PerClass(0), 0)?;
    let mut training = TrainSettings::new(Method::CrossEntropy);
    training.budget = budget.clone();
    threads::pool(1)?.install(|| {
        let mut trainer = Trainer::new(graph, &split, training)?;
        while trainer.step()?.is_some() {}
        Ok(trainer.into_model())
    })
}

/// What one graph came to.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Row {
    /// Nodes of the graph.
    pub nodes: usize,
    /// Its edges.
    pub edges: usize,
    /// Neighbours of its largest node.
    pub largest_degree: usize,
    /// The mean, over the nodes that were certified, of the entries of a node's neighbours in the propagation, its own included:
    /// what can be reached within two hops, each node as often as paths lead there.
    pub two_hop_entries: f64,
    /// Nodes that were certified.
    pub certified: usize,
    /// Those that are robust, nonrobust and undecided.
    pub robust: usize,
    /// With a witness.
    pub nonrobust: usize,
    /// The others.
    pub undecided: usize,
    /// CPU seconds of what is prepared once for all nodes that are certified.
    pub preparation_cpu_seconds: f64,
    /// CPU seconds of each node on its own, in the mean.
    pub cpu_seconds_per_node: f64,
    /// The same with each node's share of the preparation.
    pub cpu_seconds_per_node_in_all: f64,
    /// The most memory that the process used while it certified, the graph included, where the system says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_memory_bytes: Option<u64>,
}

impl Row {
    fn measure(graph: &Graph, model: &Model, settings: &Settings) -> Result<Self, LabError> {
        let all: Vec<NodeId> = graph.node_ids().collect();
        let nodes = spread(&all, settings.sample.unwrap_or(all.len()));
        let certify = settings.certify();
        certify.validate(graph, &nodes).map_err(nodeproof::CertifyError::from)?;
        memory::forget_peak();
        let start = ProcessTime::now();
        let (mut preparation, mut verdicts) = (Duration::ZERO, [0; 3]);
        let _ = Certifier::new(graph, model)?.settings(certify).certify_each(&nodes, |event| {
            match event {
                Event::Preparing { .. } => preparation = start.elapsed(),
                Event::Certified(certificate) => verdicts[place(certificate.verdict())] += 1,
                _ => {}
            }
            ControlFlow::Continue(())
        })?;
        let (cpu, preparation) = (start.elapsed().as_secs_f64(), preparation.as_secs_f64());
        let degree = |node: u32| graph.adjacency().row(node as usize).len();
        let entries = |node: &NodeId| {
            let neighbours = graph.adjacency().row(node.index()).iter();
            (degree(node.0) + 1 + neighbours.map(|&other| degree(other) + 1).sum::<usize>()) as f64
        };
        let [robust, nonrobust, undecided] = verdicts;
        let count = nodes.len().max(1) as f64;
        Ok(Self {
            nodes: graph.nodes(),
            edges: graph.edges(),
            largest_degree: (0..graph.nodes() as u32).map(degree).max().unwrap_or(0),
            two_hop_entries: nodes.iter().map(entries).sum::<f64>() / count,
            certified: nodes.len(),
            robust,
            nonrobust,
            undecided,
            preparation_cpu_seconds: preparation,
            cpu_seconds_per_node: (cpu - preparation) / count,
            cpu_seconds_per_node_in_all: cpu / count,
            peak_memory_bytes: memory::peak(),
        })
    }

    fn cells(&self) -> Vec<String> {
        let micros = |seconds: f64| format!("{:.0}", 1e6 * seconds);
        vec![
            self.nodes.to_string(),
            self.edges.to_string(),
            format!("{:.0}", self.two_hop_entries),
            self.certified.to_string(),
            text::percentage(self.robust, self.certified),
            text::percentage(self.undecided, self.certified),
            format!("{:.2}", self.preparation_cpu_seconds),
            micros(self.cpu_seconds_per_node),
            micros(self.cpu_seconds_per_node_in_all),
            self.peak_memory_bytes.map_or("–".to_owned(), |bytes| (bytes / 1_000_000).to_string()),
        ]
    }
}

fn place(verdict: Verdict) -> usize {
    match verdict {
        Verdict::Robust => 0,
        Verdict::Nonrobust => 1,
        _ => 2,
    }
}

/// What was measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// The strongest engine.
    pub engine: Engine,
    /// Most flips in total.
    pub global_budget: u32,
    /// The local budget: a count, or a share such as `1%`.
    pub local_budget: String,
    /// The most seconds that one node may take.
    pub time_limit_seconds: Option<f64>,
    /// One a graph.
    pub rows: Vec<Row>,
    /// The exponent e of the power law `N^e` that fits CPU seconds a node, preparation included, best (least squares of
    /// logarithms); none for a single size.
    pub exponent_of_nodes: Option<f64>,
    /// The same for the mean number of two-hop entries; none where it hardly differs.
    pub exponent_of_two_hop_entries: Option<f64>,
}

impl Report {
    fn new(rows: Vec<Row>, settings: &Settings) -> Self {
        let fit = |size: fn(&Row) -> f64| {
            let points: Vec<_> = rows.iter().map(|row| (size(row), row.cpu_seconds_per_node_in_all)).collect();
            exponent(&points)
        };
        Self {
            engine: settings.engine,
            global_budget: settings.budget.global(),
            local_budget: settings.budget.local().to_string(),
            time_limit_seconds: settings.time_limit.map(|limit| limit.as_secs_f64()),
            exponent_of_nodes: fit(|row| row.nodes as f64),
            exponent_of_two_hop_entries: fit(|row| row.two_hop_entries),
            rows,
        }
    }

    /// The table, and how it was made, in lines of at most `width` characters where they can be broken.
    pub fn in_words(&self, width: usize) -> String {
        let header = [
            "\nnodes",
            "\nedges",
            "two-hop\nentries",
            "certi-\nfied",
            "\nrobust",
            "un-\ndecided",
            "CPU s\nbefore",
            "µs a\nnode",
            "in\nall",
            "peak\nMB",
        ];
        let rows = self.rows.iter().map(Row::cells).collect();
        let table = text::table("rrrrrrrrrr", Some(header.map(str::to_owned).to_vec()), rows);
        let limit = self.time_limit_seconds.map_or("none".to_owned(), |seconds| format!("{seconds} s a node"));
        let budget = format!("{} flips, {} at one node", self.global_budget, self.local_budget);
        let mut facts = vec![("engine", format!("{}, on one thread", self.engine.name())), ("budget", budget)];
        facts.push(("time limit", limit));
        facts.push(("fit", self.fits_in_words()));
        format!("{table}\n{}", text::facts(&facts, width))
    }

    fn fits_in_words(&self) -> String {
        let nodes = self.exponent_of_nodes.map_or("one size tells no exponent".to_owned(), |exponent| {
            format!("CPU time a node, in all, grows with the nodes of the graph to the power of {exponent:.2}")
        });
        let entries = self.exponent_of_two_hop_entries;
        let entries = entries.map(|exponent| format!(", with two-hop entries to that of {exponent:.2}"));
        nodes + &entries.unwrap_or_default()
    }

    /// The table as it stands in the documentation.
    pub fn markdown(&self) -> String {
        let header = [
            "nodes",
            "edges",
            "two-hop entries",
            "certified",
            "robust",
            "undecided",
            "CPU s before",
            "µs a node",
            "in all",
            "peak MB",
        ];
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let mut text = line(&header.map(str::to_owned));
        text += "|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n";
        self.rows.iter().for_each(|row| text += &line(&row.cells()));
        text + "\n" + &self.fits_in_words() + ".\n"
    }
}

/// The exponent of the power law through `points`, by least squares of logarithms; `None` if their sizes hardly differ.
fn exponent(points: &[(f64, f64)]) -> Option<f64> {
    let logarithms: Vec<(f64, f64)> = points.iter().map(|&(size, cost)| (size.ln(), cost.ln())).collect();
    let sizes = || logarithms.iter().map(|&(size, _)| size);
    let spread = sizes().fold(f64::NEG_INFINITY, f64::max) - sizes().fold(f64::INFINITY, f64::min);
    if !spread.is_finite() || spread < TELLING.ln() {
        return None;
    }
    let count = logarithms.len() as f64;
    let means = (sizes().sum::<f64>() / count, logarithms.iter().map(|&(_, cost)| cost).sum::<f64>() / count);
    let product: f64 = logarithms.iter().map(|&(size, cost)| (size - means.0) * (cost - means.1)).sum();
    let square: f64 = sizes().map(|size| (size - means.0).powi(2)).sum();
    Some(product / square).filter(|exponent| exponent.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(sizes: &[usize]) -> Settings {
        Settings {
            sizes: sizes.to_vec(),
            family: Synthetic::new(1).attributes(60).words(6).degree(3.0).classes(3),
            budget: Budget::new(2, "1".parse().unwrap()),
            engine: Engine::Fast,
            time_limit: None,
            sample: None,
            model: None,
        }
    }

    #[test]
    fn every_size_has_a_row() {
        let mut told = Vec::new();
        let report = run(&settings(&[120, 60, 120]), |what| told.push(what.to_owned())).unwrap();
        let sizes: Vec<_> = report.rows.iter().map(|row| (row.nodes, row.certified)).collect();
        assert_eq!((sizes, told.len()), (vec![(60, 60), (120, 120)], 3));
        for row in &report.rows {
            assert_eq!(row.robust + row.nonrobust + row.undecided, row.certified);
            assert!(row.cpu_seconds_per_node_in_all >= row.cpu_seconds_per_node && row.cpu_seconds_per_node > 0.0);
            // A node, its neighbours and theirs: each end of an edge and each node counts for all of its neighbours and itself.
            let graph = settings(&[]).graph(row.nodes).unwrap();
            let squares: usize = graph.node_ids().map(|n| (graph.adjacency().row(n.index()).len() + 1).pow(2)).sum();
            assert!((row.two_hop_entries - squares as f64 / row.nodes as f64).abs() < 1e-9);
        }
        let text = report.in_words(80);
        assert!(text.contains("CPU time a node") && text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert_eq!(report.markdown().lines().filter(|line| line.matches('|').count() == 11).count(), 4);
        let verdicts = |report: &Report| report.rows.iter().map(|row| (row.robust, row.nonrobust)).collect::<Vec<_>>();
        let again = run(&settings(&[60, 120]), |_| ()).unwrap();
        assert_eq!(verdicts(&again), verdicts(&report), "graphs and network are the same each time");
    }

    #[test]
    fn a_sample_is_certified_by_a_given_network() {
        let model = network(&settings(&[]).graph(90).unwrap(), &settings(&[]).budget).unwrap();
        let given = Settings { sample: Some(7), model: Some(model), ..settings(&[60]) };
        let mut told = 0;
        let report = run(&given, |_| told += 1).unwrap();
        assert_eq!((report.rows[0].certified, told), (7, 1));
        assert_eq!((report.exponent_of_nodes, report.exponent_of_two_hop_entries), (None, None));
        assert!(report.in_words(80).contains("one size tells no exponent"));
    }

    #[test]
    fn what_cannot_be_drawn_is_an_error() {
        let error = run(&settings(&[2]), |_| ()).unwrap_err();
        assert!(error.to_string().starts_with("2 nodes: "), "{error}");
        let report = run(&settings(&[]), |_| ()).unwrap();
        assert!(report.rows.is_empty());
    }

    #[test]
    fn exponents_by_hand() {
        let cube: Vec<(f64, f64)> = [1.0, 2.0, 10.0].map(|x: f64| (x, 5.0 * x.powi(3))).to_vec();
        assert!((exponent(&cube).unwrap() - 3.0).abs() < 1e-12);
        // Through (0, 0), (1, 1) and (2, 1) in logarithms the line of least squares has slope 1/2.
        let e = std::f64::consts::E;
        assert!((exponent(&[(1.0, 1.0), (e, e), (e * e, e)]).unwrap() - 0.5).abs() < 1e-12);
        assert_eq!(exponent(&[(100.0, 1.0), (110.0, 7.0)]), None, "sizes hardly differ");
        assert_eq!((exponent(&[]), exponent(&[(1.0, 0.0), (2.0, 1.0)])), (None, None));
    }
}

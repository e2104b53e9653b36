//! `nodeproof data synth`: graphs that are drawn by chance.

use anyhow::anyhow;
use nodeproof::files::Lock;
use nodeproof::graph::Synthetic;
use nodeproof::{Graph, GraphError};
use serde::Serialize;

use crate::cli::DataSynthArguments;
use crate::outcome::Outcome;
use crate::{outputs, terminal, words};

/// Draws a graph and writes it.
///
/// # Errors
/// If there is no such graph, or it cannot be written.
pub(crate) fn synth(arguments: &DataSynthArguments) -> anyhow::Result<Outcome> {
    let out = outputs::file(&arguments.out, "--out", &[], "a graph", "graph.npz")?;
    let graph = drawn(arguments)?;
    let _lock = Lock::of_output(&out).map_err(words::file)?;
    graph.write(&out)?;
    let sizes = Sizes::of(&graph);
    if arguments.print.json {
        terminal::print(&(serde_json::to_string_pretty(&sizes)? + "\n"))?;
    } else if !arguments.print.quiet {
        terminal::print(&sizes.in_words())?;
    }
    Ok(Outcome::Done)
}

fn drawn(arguments: &DataSynthArguments) -> anyhow::Result<Graph> {
    let mut synthetic = Synthetic::new(arguments.nodes as usize)
        .degree(arguments.degree)
        .classes(arguments.classes as usize)
        .homophily(arguments.homophily.fraction())
        .attributes(arguments.attributes as usize)
        .words(arguments.words as usize)
        .topical(arguments.topical.fraction())
        .seed(arguments.seed);
    if let Some(hub) = arguments.hub {
        synthetic = synthetic.hub(hub as usize);
    }
    synthetic.graph().map_err(|error| match error {
        GraphError::Synthetic { .. } => anyhow!("{error} (--nodes, --degree, --hub, --classes, --attributes, --words)"),
        _ => error.into(),
    })
}

/// What came of it.
#[derive(Serialize)]
struct Sizes {
    nodes: usize,
    edges: usize,
    mean_degree: f64,
    largest_degree: usize,
    attributes: usize,
    attribute_entries: usize,
    classes: usize,
    fingerprint: String,
}

impl Sizes {
    fn of(graph: &Graph) -> Self {
        let (nodes, entries) = (graph.nodes(), graph.adjacency().entries());
        Self {
            nodes,
            edges: entries / 2,
            mean_degree: entries as f64 / nodes as f64,
            largest_degree: (0..nodes).map(|n| graph.adjacency().row(n).len()).max().unwrap_or(0),
            attributes: graph.attribute_count(),
            attribute_entries: graph.attributes().entries(),
            classes: graph.classes(),
            fingerprint: graph.fingerprint(),
        }
    }

    fn in_words(&self) -> String {
        let Self { nodes, edges, mean_degree, largest_degree, .. } = self;
        let a_node = self.attribute_entries as f64 / *nodes as f64;
        terminal::facts(&[
            ("nodes", nodes.to_string()),
            ("edges", format!("{edges}, {mean_degree:.1} a node in the mean, {largest_degree} at most")),
            ("attributes", format!("{}, {a_node:.1} a node in the mean", self.attributes)),
            ("classes", self.classes.to_string()),
            ("fingerprint", self.fingerprint.clone()),
        ])
    }
}

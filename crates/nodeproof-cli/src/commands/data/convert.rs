//! `nodeproof data convert`: graphs in another layout.

use nodeproof::Graph;
use nodeproof::files::Lock;
use serde::Serialize;

use crate::cli::DataConvertArguments;
use crate::outcome::Outcome;
use crate::{inputs, outputs, terminal, words};

/// Reads a graph and writes it in the layout that the name of the output asks for.
///
/// # Errors
/// If the file is not a graph, or not the one that it says it is, or if it cannot be written.
pub(crate) fn convert(arguments: &DataConvertArguments) -> anyhow::Result<Outcome> {
    let source = &arguments.graph;
    let ranges = arguments.flags.ranges.as_deref();
    let files: Vec<_> = source.file().into_iter().chain(ranges).collect();
    let out = outputs::file(&arguments.out, "--out", &files, "a graph", "g.graph")?;
    source.check_readable("FILE")?;
    let (graph, cleaning) = inputs::read_graph(source, &arguments.flags)?;
    inputs::note_cleaning(&cleaning, arguments.print.quiet);
    inputs::verify(source, &graph)?;
    let _lock = Lock::of_output(&out).map_err(words::file)?;
    graph.write(&out)?;
    let facts = Facts::of(&graph);
    if arguments.print.json {
        terminal::print(&(serde_json::to_string_pretty(&facts)? + "\n"))?;
    } else if !arguments.print.quiet {
        terminal::print(&facts.in_words(terminal::shown(&out)))?;
    }
    Ok(Outcome::Done)
}

/// What was written.
#[derive(Serialize)]
struct Facts {
    nodes: usize,
    edges: usize,
    attributes: usize,
    fingerprint: String,
}

impl Facts {
    fn of(graph: &Graph) -> Self {
        Self {
            nodes: graph.nodes(),
            edges: graph.edges(),
            attributes: graph.attribute_count(),
            fingerprint: graph.fingerprint(),
        }
    }

    fn in_words(&self, written: String) -> String {
        terminal::facts(&[
            ("nodes", self.nodes.to_string()),
            ("edges", self.edges.to_string()),
            ("attributes", self.attributes.to_string()),
            ("fingerprint", self.fingerprint.clone()),
            ("written", written),
        ])
    }
}

//! `nodeproof predict`: what a network says of nodes as they are.

use std::io;

use nodeproof::files::{AtomicFile, Destination, FileError};
use nodeproof::results::TableWriter;
use nodeproof::{ClassId, Graph, Network, NodeId};
use nodeproof_report::text::{self, counted, percentage};
use serde::Serialize;

use crate::cli::PredictArguments;
use crate::inputs::Inputs;
use crate::outcome::Outcome;
use crate::outputs::{self, Output};
use crate::{lists, terminal, words};

/// Nodes that the table shows.
const SHOWN: usize = 20;

/// Runs the command.
///
/// # Errors
/// If the input is bad, or the table cannot be written.
pub(crate) fn run(arguments: &PredictArguments) -> anyhow::Result<Outcome> {
    let PredictArguments { graph, model, nodes, split, csv, print } = arguments;
    let files: Vec<_> = graph.graph.file().into_iter().chain([model.as_path()]).chain(split.as_deref()).collect();
    let csv = csv.as_deref().map(|path| outputs::destination(path, "--csv", &files)).transpose()?;
    let Inputs { graph, model, split } = Inputs::read(graph, model, split.as_deref(), print.quiet)?;
    let nodes = lists::nodes(&nodes.nodes, &graph, split.as_ref(), "--nodes")?;
    let network = Network::new(&graph, &model).map_err(|error| words::certifying(error.into()))?;
    let predictions = predictions(&network, &nodes);
    Output::begin(csv.as_ref(), |destination| Ok(destination.clone()))?.end(|to| write(&to, &graph, &predictions))?;
    if csv == Some(Destination::Stdout) {
        return Ok(Outcome::Done);
    }
    let json = || serde_json::to_string_pretty(&predictions).map(|text| text + "\n");
    terminal::print(&if print.json { json()? } else { in_words(&graph, &predictions) })?;
    Ok(Outcome::Done)
}

/// What is said of a node.
#[derive(Debug, Serialize)]
struct Prediction {
    node: NodeId,
    label: Option<ClassId>,
    predicted: ClassId,
    logits: Vec<f64>,
}

impl Prediction {
    /// The class that comes closest to the predicted one, and by how much it is behind.
    fn runner_up(&self) -> (ClassId, f64) {
        let others = (0..self.logits.len()).filter(|&class| class != self.predicted.index());
        let second = others.reduce(|a, b| if self.logits[b] > self.logits[a] { b } else { a });
        let second = second.unwrap_or_else(|| unreachable!("a model has at least two classes"));
        (ClassId(second as u32), self.logits[self.predicted.index()] - self.logits[second])
    }
}

fn predictions(network: &Network, nodes: &[NodeId]) -> Vec<Prediction> {
    let found = network.logits_of(nodes);
    let prediction = |(row, &node): (usize, &NodeId)| {
        let logits = found.row(row).to_vec();
        Prediction { node, label: network.graph().label(node), predicted: Network::predicted(&logits), logits }
    };
    nodes.iter().enumerate().map(prediction).collect()
}

/// Writes a table of all of them.
fn write(to: &Destination, graph: &Graph, predictions: &[Prediction]) -> Result<(), FileError> {
    let written = || -> io::Result<()> {
        let classes = predictions.first().map_or(0, |prediction| prediction.logits.len());
        let logits: Vec<String> = (0..classes).map(|class| format!("logit_{class}")).collect();
        let columns = ["label", "predicted"].into_iter().chain(logits.iter().map(String::as_str));
        let mut table = TableWriter::with_columns(AtomicFile::create(to)?, graph, columns)?;
        for Prediction { node, label, predicted, logits } in predictions {
            let first = [label.map(|label| label.to_string()).unwrap_or_default(), predicted.to_string()];
            table.row(*node, first.into_iter().chain(logits.iter().map(f64::to_string)))?;
        }
        table.into_inner()?.commit()
    };
    written().map_err(|error| to.failure(error))
}

fn in_words(graph: &Graph, predictions: &[Prediction]) -> String {
    let name =
        |node: NodeId| graph.names().nodes.as_ref().map_or_else(String::new, |names| names[node.index()].clone());
    let row = |prediction: &Prediction| {
        let (second, margin) = prediction.runner_up();
        vec![
            prediction.node.to_string(),
            text::printable(&name(prediction.node)),
            prediction.label.map_or_else(|| "–".to_owned(), |label| graph.class_name(label)),
            graph.class_name(prediction.predicted),
            format!("{margin:.3}"),
            graph.class_name(second),
        ]
    };
    let header = ["node", "name", "label", "predicted", "ahead by", "of"].map(str::to_owned).to_vec();
    let rows = predictions.iter().take(SHOWN).map(row).collect();
    let table = text::table("rlllrl", Some(header), rows);
    let more = match predictions.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!("… and {more} more; --csv FILE keeps them all\n"),
    };
    let overflowed =
        predictions.iter().filter(|prediction| prediction.logits.iter().any(|logit| !logit.is_finite())).count();
    let labelled = predictions.iter().filter(|prediction| prediction.label.is_some()).count();
    let right = predictions.iter().filter(|prediction| prediction.label == Some(prediction.predicted)).count();
    let mut facts = vec![("nodes", predictions.len().to_string())];
    if labelled > 0 {
        facts.push(("accuracy", format!("{} ({right} of {labelled} with a label)", percentage(right, labelled))));
    }
    if overflowed > 0 {
        let nodes = counted(overflowed, "node");
        facts.push(("hint", format!("numbers overflow at {nodes}, whose class means nothing; check the weights")));
    }
    format!("{table}{more}\n{}", terminal::facts(&facts))
}

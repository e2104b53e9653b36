//! Figures of radii against the graph.

use std::path::Path;

use anyhow::bail;
use nodeproof::results::Radii;
use nodeproof::{ClassId, Graph, Radius, TargetClass};
use nodeproof_report::plot::figures;
use nodeproof_report::structure::{self, Purity};
use nodeproof_report::text::counted;

use super::curves;
use super::output::Output;
use crate::cli::PlotStructureArguments;
use crate::outcome::Outcome;
use crate::{inputs, terminal};

/// `nodeproof plot degree`.
///
/// # Errors
/// If the files do not belong together, or the figure cannot be written.
pub(super) fn degree(arguments: &PlotStructureArguments) -> anyhow::Result<Outcome> {
    let output = check(arguments)?;
    let (radii, graph) = read(arguments)?;
    let node = |record: &Radius| (structure::degree(&graph, record.node), budget(record));
    let nodes: Vec<(usize, u32)> = radii.records.iter().map(node).collect();
    output.write(figures::degree(&nodes, radii.max_budget()))
}

/// `nodeproof plot purity`.
///
/// # Errors
/// If the files do not belong together or do not tell predictions, or the figure cannot be written.
pub(super) fn purity(arguments: &PlotStructureArguments) -> anyhow::Result<Outcome> {
    let output = check(arguments)?;
    let (radii, graph) = read(arguments)?;
    let classes = predictions(&radii, &graph, &arguments.radii)?;
    let mut purity = Purity::new(&graph, &classes);
    let node = |record: &Radius| Some((purity.of(record.node)?, budget(record)));
    let nodes: Vec<(f64, u32)> = radii.records.iter().filter_map(node).collect();
    let left_out = radii.records.len() - nodes.len();
    if nodes.is_empty() {
        bail!(
            "{} has no node whose neighbours are all in it, too; give radii of all nodes (`nodeproof radius` without --nodes)",
            arguments.radii.display()
        );
    }
    if left_out > 0 {
        let note = format!("left out {}, neighbours of which are not among the radii", counted(left_out, "node"));
        terminal::note(arguments.figure.quiet, &note);
    }
    output.write(figures::purity(&nodes, radii.max_budget()))
}

fn check(arguments: &PlotStructureArguments) -> anyhow::Result<Output> {
    let mut taken: Vec<&Path> = vec![&arguments.radii];
    taken.extend(arguments.graph.graph.file());
    let output = Output::check(&arguments.figure, &taken)?;
    arguments.graph.graph.check_readable("--graph")?;
    Ok(output)
}

/// Radii, and the graph that they are of.
fn read(arguments: &PlotStructureArguments) -> anyhow::Result<(Radii, Graph)> {
    let radii = curves::read(&arguments.radii, arguments.range)?;
    let graph = inputs::read_noted(&arguments.graph, arguments.figure.quiet)?;
    if graph.fingerprint() != radii.header.graph.fingerprint {
        bail!(
            "{} is about another graph than --graph; give --graph, --binarise, --keep-self-loops, … as they were given to \
             radius",
            arguments.radii.display()
        );
    }
    Ok((radii, graph))
}

/// The largest budget that a node is proven robust against; 0 for one that is not even without flips.
fn budget(record: &Radius) -> u32 {
    record.robust_up_to.unwrap_or(0)
}

/// The predicted class of each node that has a radius.
fn predictions(radii: &Radii, graph: &Graph, path: &Path) -> anyhow::Result<Vec<Option<ClassId>>> {
    if radii.header.scan {
        bail!("{} is a scan, which does not tell classes; make the radii without --scan", path.display());
    }
    if radii.header.target_class != TargetClass::Predicted {
        bail!("{} has labels, and purity is about predictions; make the radii with --class predicted", path.display());
    }
    let mut classes = vec![None; graph.nodes()];
    for record in &radii.records {
        classes[record.node.index()] = record.class();
    }
    Ok(classes)
}

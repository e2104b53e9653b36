//! Figures of radii against the graph.

use std::path::Path;

use anyhow::bail;
use nodeproof::results::Radii;
use nodeproof::{Graph, TargetClass};
use nodeproof_report::Attack;
use nodeproof_report::plot::figures;
use nodeproof_report::structure;
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
    output.write(figures::degree(
        &structure::degrees(&graph, &radii),
        Attack::of(&radii.header.budget),
        radii.max_budget(),
    ))
}

/// `nodeproof plot purity`.
///
/// # Errors
/// If the files do not belong together or do not name predictions, or the figure cannot be written.
pub(super) fn purity(arguments: &PlotStructureArguments) -> anyhow::Result<Outcome> {
    let output = check(arguments)?;
    let (radii, graph) = read(arguments)?;
    check_predictions(&radii, &arguments.radii)?;
    let nodes = structure::purities(&graph, &radii);
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
    output.write(figures::purity(&nodes, Attack::of(&radii.header.budget), radii.max_budget()))
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

/// Refuses radii that do not name the predicted class of each node.
fn check_predictions(radii: &Radii, path: &Path) -> anyhow::Result<()> {
    if radii.header.scan {
        bail!("{} is a scan, which does not name classes; make the radii without --scan", path.display());
    }
    if radii.header.target_class != TargetClass::Predicted {
        bail!("{} has labels, and purity is about predictions; make the radii with --class predicted", path.display());
    }
    Ok(())
}

//! The figure of gaps between bounds and attacks.

use std::ops::ControlFlow;
use std::path::Path;

use anyhow::bail;
use nodeproof::{Certifier, Engine, Gap, NodeId};
use nodeproof_report::plot::figures;

use super::output::Output;
use crate::cli::PlotGapArguments;
use crate::inputs::Inputs;
use crate::interrupt::Interrupt;
use crate::outcome::Outcome;
use crate::progress::Progress;
use crate::{lists, terminal};

/// Layers of a network with one hidden layer.
const LAYERS: usize = 2;

/// `nodeproof plot gap`.
///
/// # Errors
/// If the input is bad, or the figure cannot be written.
pub(super) fn run(arguments: &PlotGapArguments) -> anyhow::Result<Outcome> {
    let output = Output::check(&arguments.figure, &taken(arguments))?;
    let inputs = Inputs::read(&arguments.graph, &arguments.model, &arguments.budget, arguments.figure.quiet)?;
    let nodes = lists::nodes(&arguments.nodes.nodes, &inputs.graph, inputs.split.as_ref(), "--nodes")?;
    inputs.check_class(arguments.model.class, &nodes)?;
    if inputs.model.layers().len() != LAYERS {
        bail!("--model: slopes are optimised in networks with one hidden layer only; give such a model");
    }
    let mut found = Vec::new();
    for engine in [Engine::Fast, Engine::Tight] {
        let certifier = Certifier::new(&inputs.graph, &inputs.model)?
            .budget(inputs.budget.budget().clone())
            .target_class(arguments.model.class.into())
            .threads(arguments.threads.count())
            .engine(engine);
        let Some(gaps) = gaps(&certifier, &nodes, arguments.figure.quiet)? else {
            terminal::complain("interrupted; nothing was written");
            return Ok(Outcome::Interrupted);
        };
        found.push(gaps.iter().map(Gap::width).collect::<Vec<f64>>());
    }
    output.write(figures::gap(&found[0], &found[1]))
}

/// Files that are read.
fn taken(arguments: &PlotGapArguments) -> Vec<&Path> {
    let mut taken: Vec<&Path> = vec![&arguments.model.model];
    taken.extend(arguments.graph.graph.file());
    taken.extend(arguments.budget.flips.files());
    taken.extend(arguments.nodes.nodes.file());
    taken
}

/// The gaps of all nodes; `None` if it was interrupted.
fn gaps(certifier: &Certifier, nodes: &[NodeId], quiet: bool) -> anyhow::Result<Option<Vec<Gap>>> {
    let progress = Progress::new(nodes.len(), 0, quiet);
    let interrupt = Interrupt::of(&progress)?;
    let mut before = 0;
    let gaps = certifier.gaps(nodes, |done| {
        (before..done).for_each(|_| progress.advance());
        before = done;
        if interrupt.asked() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    progress.clear();
    Ok(gaps?)
}

//! The figure of gaps between bounds and attacks.

use std::ops::ControlFlow;

use nodeproof::{Certifier, CertifySettings, Engine, Gap, NodeId};
use nodeproof_report::plot::figures;

use super::output::Output;
use crate::cli::PlotGapArguments;
use crate::inputs::{self, Inputs};
use crate::interrupt::Interrupt;
use crate::outcome::Outcome;
use crate::progress::Progress;
use crate::{budget, lists, terminal, words};

/// `nodeproof plot gap`.
///
/// # Errors
/// If the input is bad, or the figure cannot be written.
pub(super) fn run(arguments: &PlotGapArguments) -> anyhow::Result<Outcome> {
    let PlotGapArguments { graph, model, budget, figure, .. } = arguments;
    let mut taken = inputs::files(graph, model, &budget.flips);
    taken.extend(arguments.nodes.nodes.file());
    let output = Output::check(figure, &taken)?;
    let inputs = Inputs::read(graph, &model.model, budget.flips.split.as_deref(), figure.quiet)?;
    let split = inputs.split.as_ref();
    let nodes = lists::nodes(&arguments.nodes.nodes, &inputs.graph, split, "--nodes")?;
    let mut settings = CertifySettings::new(budget::read(budget.global_budget, &budget.flips, &inputs.graph, split)?);
    settings.target_class = model.class.into();
    settings.threads = arguments.threads.count();
    let mut question = inputs.ask(nodes, settings);
    let mut found = Vec::new();
    for engine in [Engine::Fast, Engine::Tight] {
        question.settings.engine = engine;
        let Some(gaps) = gaps(&question.certifier()?, &question.nodes, figure.quiet)? else {
            terminal::complain("interrupted; nothing was written");
            return Ok(Outcome::Interrupted);
        };
        found.push(gaps.iter().map(Gap::width).collect::<Vec<f64>>());
    }
    output.write(figures::gap(&found[0], &found[1]))
}

/// The gaps of all nodes; `None` if it was interrupted.
fn gaps(certifier: &Certifier, nodes: &[NodeId], quiet: bool) -> anyhow::Result<Option<Vec<Gap>>> {
    let progress = Progress::new(nodes.len(), quiet);
    let interrupt = Interrupt::of(&progress)?;
    let mut before = 0;
    let gaps = certifier.gaps(nodes, |done| {
        (before..done).for_each(|_| progress.advance());
        before = done;
        if interrupt.asked() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    progress.clear();
    gaps.map_err(words::certifying)
}

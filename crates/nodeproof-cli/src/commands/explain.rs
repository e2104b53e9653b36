//! `nodeproof explain`: the story of one node.

use std::ops::ControlFlow;
use std::path::PathBuf;

use nodeproof::{Budget, Certificate, Certifier, Network, Radius};
use nodeproof_report::Attack;
use nodeproof_report::story::Story;
use nodeproof_report::text::quoted;

use crate::cli::{ExplainArguments, FlipOrEdgeArguments};
use crate::inputs::{Inputs, Question};
use crate::outcome::Outcome;
use crate::{budget, engine, lists, terminal, words};

/// Runs the command.
///
/// # Errors
/// If the input is bad.
pub(crate) fn run(arguments: &ExplainArguments) -> anyhow::Result<Outcome> {
    let question = read(arguments)?;
    let certifier = question.certifier()?;
    for mut certificate in certifier.certify(&question.nodes).map_err(words::certifying)? {
        let _ = certifier.raise_margins(&mut certificate, || ControlFlow::Continue(())).map_err(words::certifying)?;
        let budget = &question.settings.budget;
        if Attack::of(budget) == Attack::Both {
            certifier.leave_out_needless(&mut certificate).map_err(words::certifying)?;
        }
        let radius = radius(&certifier, &certificate, budget)?;
        let story = tell(&question, &certificate, radius.as_ref())?;
        let text = if arguments.print.json {
            serde_json::to_string_pretty(&story)? + "\n"
        } else {
            story.in_words(terminal::style(), hint(&question, &story, &limits(&arguments.budget)).as_deref())
        };
        terminal::print(&text)?;
    }
    Ok(Outcome::Done)
}

/// What the arguments ask.
fn read(arguments: &ExplainArguments) -> anyhow::Result<Question> {
    let ExplainArguments { graph, model, budget, print, .. } = arguments;
    let inputs = Inputs::read(graph, &model.model, budget.flips.split.as_deref(), print.quiet)?;
    let node = lists::node(&arguments.node, &inputs.graph)?;
    let budget = budget::read_both(budget, &inputs.graph, inputs.split.as_ref())?;
    let settings = engine::settings(budget, model, &arguments.engine);
    Ok(inputs.ask(vec![node], settings))
}

/// What is known of the radius of a node that a witness of several flips, or of several deletions, changes: whether fewer do. Flips beside
/// deletions have no radius.
fn radius(certifier: &Certifier, certificate: &Certificate, budget: &Budget) -> anyhow::Result<Option<Radius>> {
    if Attack::of(budget) == Attack::Both || certificate.witness().is_none_or(|witness| witness.size() < 2) {
        return Ok(None);
    }
    let mut radii = certifier.radii(&[certificate.node], budget.varied()).map_err(words::certifying)?;
    Ok(radii.pop())
}

/// All there is to say of the node.
fn tell(question: &Question, certificate: &Certificate, radius: Option<&Radius>) -> anyhow::Result<Story> {
    let logits = Network::new(&question.graph, &question.model)?.logits_under(certificate.node, &[]);
    let story = Story::new(&question.graph, &question.settings.budget, certificate, &logits);
    Ok(match radius {
        Some(radius) => story.with_radius(&question.graph, radius),
        None => story,
    })
}

/// The options that limit what is changed, as they are typed, each after a space.
fn limits(FlipOrEdgeArguments { flips, edges, .. }: &FlipOrEdgeArguments) -> String {
    let of_file = |path: &PathBuf| quoted(&path.to_string_lossy());
    let options = [
        ("--edges-per-node", edges.edges_per_node.map(|count| count.to_string())),
        ("--keep-one-edge", edges.keep_one_edge.then(String::new)),
        ("--protect-edges", edges.protect_edges.as_ref().map(of_file)),
        ("--local-budget", flips.local_budget.map(|local| local.to_string())),
        ("--local-budget-file", flips.local_budget_file.as_ref().map(of_file)),
        ("--add-only", flips.add_only.then(String::new)),
        ("--delete-only", flips.delete_only.then(String::new)),
        ("--protect-attributes", flips.protect_attributes.as_deref().map(quoted)),
        ("--protect-nodes", flips.protect_nodes.as_ref().map(|nodes| quoted(&nodes.to_string()))),
        ("--split", flips.split.as_ref().filter(|_| flips.protect_nodes.is_some()).map(of_file)),
    ];
    let typed = options.into_iter().filter_map(|(option, value)| Some(format!(" {option} {}", value?)));
    typed.map(|option| option.trim_end().to_owned()).collect()
}

/// What the reader might try next, if anything; `limits` are those that were typed.
fn hint(question: &Question, story: &Story, limits: &str) -> Option<String> {
    let budget = &question.settings.budget;
    // Twice as many, so that there is something to find.
    let edges = budget.edges().map(|edges| format!(" --delete-edges {}", edges.global().max(1).saturating_mul(2)));
    let search = format!("`nodeproof radius{}{limits} --nodes {}`", edges.unwrap_or_default(), story.node.id);
    story.hint(engine::remedy(&question.settings, story.because), &search)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use nodeproof::{CertifySettings, Engine, Graph, Matrix, Model, NodeId, Propagation};

    use super::*;

    /// A node whose three words keep its class as long as two of them are there; words without meaning come first.
    fn question(engine: Engine) -> Question {
        let graph = Graph::new(1, 6, &[], &[(0, 3), (0, 4), (0, 5)]).unwrap();
        let weight = [0.0, 0.0, 0.0, 1.0, 1.0, 1.0].into_iter().flat_map(|weight| [weight, 0.0]).collect();
        let layer = (Matrix::from_values(6, 2, weight), vec![0.0, 1.5]);
        let model = Model::gcn(vec![layer], Propagation::SymmetricGcn).unwrap();
        let mut settings = CertifySettings::new(Budget::new(3, 3.into()));
        settings.engine = engine;
        Question { graph, model, split: None, nodes: vec![NodeId(0)], shard: None, settings, since: None }
    }

    #[test]
    fn the_smallest_witness_is_shown() {
        for engine in Engine::ALL {
            let question = question(engine);
            let certifier = question.certifier().unwrap();
            let certificate = certifier.certify(&question.nodes).unwrap().remove(0);
            assert_eq!(certificate.witness().unwrap().flips.len(), 3, "all that the budget allows");
            let radius = radius(&certifier, &certificate, &question.settings.budget).unwrap().unwrap();
            let story = tell(&question, &certificate, Some(&radius)).unwrap();
            assert_eq!(story.witness.as_ref().unwrap().flips.len(), 2, "{}", engine.name());
            assert_eq!(story.verdict_in_words(), "nonrobust: 2 flips change the class, and no single one does");
            assert_eq!(hint(&question, &story, ""), None);
        }
    }

    #[test]
    fn hints_say_what_to_do_next() {
        let mut question = question(Engine::Fast);
        question.settings.budget = Budget::new(1, 1.into());
        let certifier = question.certifier().unwrap();
        let certificate = certifier.certify(&question.nodes).unwrap().remove(0);
        assert_eq!(radius(&certifier, &certificate, &question.settings.budget).unwrap(), None, "robust");
        let words = hint(&question, &tell(&question, &certificate, None).unwrap(), " --add-only").unwrap();
        assert_eq!(words, "`nodeproof radius --add-only --nodes 0` finds how many flips it withstands");
    }
}

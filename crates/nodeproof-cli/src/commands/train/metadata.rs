//! How a model was trained, in the metadata of its file.

use anyhow::bail;
use nodeproof::provenance::Provenance;
use nodeproof::results::SplitFields;
use nodeproof::{Graph, Model};
use nodeproof_report::text::{self, counted, printable};
use serde_json::{Map, Value};

use super::evaluate::Evaluation;
use super::plan::{Plan, split_in_words};

/// Writes the model of `plan` with all that is known of its training.
///
/// # Errors
/// If the file cannot be written.
pub(super) fn write(
    model: &Model,
    graph: &Graph,
    plan: &Plan,
    steps: usize,
    evaluation: Option<&Evaluation>,
) -> anyhow::Result<()> {
    let worth = evaluation.map(|evaluation| evaluation.summary.worth()).unwrap_or_default();
    let provenance = Provenance { graph, settings: &plan.settings, split: &plan.split_fields, steps, worth };
    if let Err(error) = model.write_with(&plan.files.out, &provenance.metadata()) {
        bail!("{error}; make room there or choose another place");
    }
    Ok(())
}

/// What the metadata of a model say of its training, in words. Files come from strangers: whatever is not as expected is left
/// out.
pub(in crate::commands) fn in_words(training: &Map<String, Value>) -> Vec<(&'static str, String)> {
    let null = Value::Null;
    let get = |key: &str| training.get(key).unwrap_or(&null);
    let mut facts = Vec::new();
    facts.extend(get("architecture").as_str().map(|architecture| ("architecture", printable(architecture))));
    if let Some(method) = get("method").as_str() {
        let steps = get("steps").as_u64().map(|steps| format!(", {}", counted(steps as usize, "step")));
        let seed = get("seed").as_u64().map(|seed| format!(", seed {seed}"));
        let trained = format!("{}{}{}", printable(method), steps.unwrap_or_default(), seed.unwrap_or_default());
        facts.push(("trained by", trained));
    }
    facts.extend(budget_in_words(get("budget")).map(|budget| ("against", budget)));
    let split = serde_json::from_value::<SplitFields>(get("split").clone());
    facts.extend(split.map(|split| ("split", split_in_words(&split))));
    let share = |key: &str| get(key).as_f64().map(|share| format!("{:.1}%", 100.0 * share));
    let accuracies = [("labelled", share("accuracy_labelled")), ("unlabelled", share("accuracy_unlabelled"))];
    let accuracies: Vec<_> =
        accuracies.into_iter().filter_map(|(group, share)| Some(format!("{} {group}", share?))).collect();
    if !accuracies.is_empty() {
        facts.push(("accuracy", accuracies.join(", ")));
    }
    facts.extend(share("robust_share").map(|share| ("robust", format!("{share} of all nodes"))));
    facts.extend(get("graph").as_str().map(|graph| ("on graph", text::short(graph, 64))));
    facts.extend(get("nodeproof").as_str().map(|version| ("nodeproof", text::short(version, 64))));
    facts
}

fn budget_in_words(budget: &Value) -> Option<String> {
    let flips = counted(budget["global"].as_u64()? as usize, "flip");
    let mut words = format!("at most {flips}, {} at one node", budget["local_count"].as_u64()?);
    let direction = budget["direction"].as_str().filter(|&direction| direction != "both");
    words.extend(direction.map(|direction| format!(", {}", printable(direction))));
    for (key, noun) in [("protected_nodes", "node"), ("protected_attributes", "attribute")] {
        words.extend(budget[key].as_array().map(|list| format!(", {} protected", counted(list.len(), noun))));
    }
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodeproof::provenance;

    #[test]
    fn strangers_metadata_cannot_harm() {
        let odd =
            [("method", "\u{1b}[31m"), ("budget", "{"), ("split", "[1]"), ("robust_share", "\"x\""), ("seed", "-1")];
        let odd = odd.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect();
        let facts = in_words(&provenance::read(&odd).unwrap_or_default());
        assert_eq!(facts, [("trained by", "\\u{1b}[31m".to_owned())]);
    }
}

//! How a model was trained, in the metadata of its file.

use std::collections::BTreeMap;

use anyhow::bail;
use nodeproof::results::BudgetFields;
use nodeproof::{Graph, Model};
use nodeproof_report::text::{self, counted, printable};
use serde_json::{Map, Value};

use super::evaluate::Evaluation;
use super::plan::Plan;

/// Keys whose values are JSON, and such whose values are plain text.
const JSON: [&str; 8] =
    ["budget", "split", "seed", "options", "steps", "accuracy_labelled", "accuracy_unlabelled", "robust_share"];
const TEXT: [&str; 3] = ["method", "nodeproof", "graph"];

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
    let mut metadata = BTreeMap::from([
        ("method", plan.settings.method.to_string()),
        ("budget", BudgetFields::new(&plan.settings.budget, graph.attribute_count()).to_json()),
        ("split", serde_json::to_string(&plan.split_facts)?),
        ("seed", plan.settings.seed.to_string()),
        ("options", serde_json::to_string(&plan.settings)?),
        ("steps", steps.to_string()),
        ("nodeproof", env!("CARGO_PKG_VERSION").to_owned()),
        ("graph", graph.fingerprint()),
    ]);
    if let Some(evaluation) = evaluation {
        let parts = evaluation.summary.figures();
        let known = [
            ("accuracy_labelled", parts.labelled.and_then(|part| part.accuracy)),
            ("accuracy_unlabelled", parts.unlabelled.and_then(|part| part.accuracy)),
            ("robust_share", parts.all.robust_share),
        ];
        metadata.extend(known.into_iter().filter_map(|(key, value)| Some((key, value?.to_string()))));
    }
    let metadata = metadata.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
    if let Err(error) = model.write_with(&plan.files.out, &metadata) {
        bail!("{error}; make room there or choose another place");
    }
    Ok(())
}

/// How a model was trained, as its file says; `None` if it does not say.
pub(in crate::commands) fn read(metadata: &BTreeMap<String, String>) -> Option<Map<String, Value>> {
    metadata.get("method")?;
    let mut found = Map::new();
    for (key, text) in metadata {
        let value = match key.as_str() {
            key if JSON.contains(&key) => serde_json::from_str(text).ok(),
            key if TEXT.contains(&key) => Some(Value::from(text.as_str())),
            _ => None,
        };
        found.extend(value.map(|value| (key.clone(), value)));
    }
    Some(found)
}

/// The same in words. Files come from strangers: whatever is not as expected is left out.
pub(in crate::commands) fn in_words(training: &Map<String, Value>) -> Vec<(&'static str, String)> {
    let null = Value::Null;
    let get = |key: &str| training.get(key).unwrap_or(&null);
    let mut facts = Vec::new();
    if let Some(method) = get("method").as_str() {
        let steps = get("steps").as_u64().map(|steps| format!(", {}", counted(steps as usize, "step")));
        let seed = get("seed").as_u64().map(|seed| format!(", seed {seed}"));
        let trained = format!("{}{}{}", printable(method), steps.unwrap_or_default(), seed.unwrap_or_default());
        facts.push(("trained by", trained));
    }
    facts.extend(budget_in_words(get("budget")).map(|budget| ("against", budget)));
    facts.extend(split_in_words(get("split")).map(|split| ("split", split)));
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

fn split_in_words(split: &Value) -> Option<String> {
    let size = |part: &str| split[part].as_u64();
    let sizes = format!("{} train, {} validation, {} test", size("train")?, size("validation")?, size("test")?);
    Some(match (split["file"].as_str(), split["seed"].as_u64()) {
        (Some(file), _) => format!("{sizes}, from {}", printable(file)),
        (None, Some(seed)) => format!("{sizes}, drawn with seed {seed}"),
        (None, None) => sizes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strangers_metadata_cannot_harm() {
        let read = |pairs: &[(&str, &str)]| {
            read(&pairs.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect())
        };
        assert!(read(&[("format", "nodeproof-model")]).is_none());
        let odd =
            [("method", "\u{1b}[31m"), ("budget", "{"), ("split", "[1]"), ("robust_share", "\"x\""), ("seed", "-1")];
        let facts = in_words(&read(&odd).unwrap_or_default());
        assert_eq!(facts, [("trained by", "\\u{1b}[31m".to_owned())]);
    }
}

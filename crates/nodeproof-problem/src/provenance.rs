//! How a model was trained, in the metadata of its file.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::graph::Graph;
use crate::results::{BudgetFields, SplitFields};
use crate::settings::TrainSettings;

/// Keys whose values are JSON.
const JSON: [&str; 8] =
    ["budget", "split", "seed", "options", "steps", "accuracy_labelled", "accuracy_unlabelled", "robust_share"];
/// Keys whose values are plain text.
const TEXT: [&str; 4] = ["method", "architecture", "nodeproof", "graph"];

/// How a model was trained, and what came of it.
#[derive(Debug)]
pub struct Provenance<'a> {
    /// The graph it was trained on.
    pub graph: &'a Graph,
    /// The settings.
    pub settings: &'a TrainSettings,
    /// The split.
    pub split: &'a SplitFields,
    /// Number of steps taken.
    pub steps: usize,
    /// What was found afterwards, where it was looked at.
    pub worth: Worth,
}

/// What a trained model was found to be worth, as far as it was looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Worth {
    /// Accuracy on labelled nodes.
    pub accuracy_labelled: Option<f64>,
    /// Accuracy on unlabelled nodes.
    pub accuracy_unlabelled: Option<f64>,
    /// Share of all nodes that are robust.
    pub robust_share: Option<f64>,
}

impl Provenance<'_> {
    /// The metadata to be written with the model.
    pub fn metadata(&self) -> BTreeMap<String, String> {
        let mut metadata = vec![
            ("method", self.settings.method.to_string()),
            ("architecture", self.settings.architecture.to_string()),
            ("budget", BudgetFields::new(&self.settings.budget, self.graph.attribute_count()).to_json()),
            ("split", json(self.split)),
            ("seed", self.settings.seed.to_string()),
            ("options", json(self.settings)),
            ("steps", self.steps.to_string()),
            ("nodeproof", env!("CARGO_PKG_VERSION").to_owned()),
            ("graph", self.graph.fingerprint_without_ranges()),
        ];
        let found = [
            ("accuracy_labelled", self.worth.accuracy_labelled),
            ("accuracy_unlabelled", self.worth.accuracy_unlabelled),
            ("robust_share", self.worth.robust_share),
        ];
        metadata.extend(found.into_iter().filter_map(|(key, share)| Some((key, share?.to_string()))));
        metadata.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
    }
}

/// What the metadata of a model say of its training, by key; `None` if they say nothing. Files come from strangers: whatever
/// is not as expected is left out.
pub fn read(metadata: &BTreeMap<String, String>) -> Option<Map<String, Value>> {
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

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("settings and sizes are plain numbers and names")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{Split, SplitSize};
    use crate::ids::ClassId;
    use crate::settings::Method;

    #[test]
    fn what_is_written_is_read() {
        let graph = Graph::new(2, 1, &[(0, 1)], &[]).unwrap();
        let graph = graph.with_labels(vec![Some(ClassId(0)), Some(ClassId(0))]).unwrap();
        let split = Split::stratified(&graph, SplitSize::PerClass(1), SplitSize::PerClass(0), 7).unwrap();
        let (settings, split) = (TrainSettings::new(Method::RobustHinge), SplitFields::new(&split, None));
        let worth = Worth { robust_share: Some(0.5), ..Worth::default() };
        let metadata = Provenance { graph: &graph, settings: &settings, split: &split, steps: 3, worth }.metadata();
        let found = read(&metadata).unwrap();
        assert_eq!(found.len(), metadata.len());
        assert_eq!((&found["method"], &found["steps"], &found["robust_share"]), (&"rh".into(), &3.into(), &0.5.into()));
        assert_eq!(found["architecture"], "gcn");
        assert_eq!(serde_json::from_value::<SplitFields>(found["split"].clone()).unwrap(), split);
        assert!(read(&BTreeMap::from([("format".to_owned(), "nodeproof-model".to_owned())])).is_none());
    }
}

//! `nodeproof model`: what a model is, and how to bring it into nodeproof's own format.

use anyhow::bail;
use nodeproof::files::Lock;
use nodeproof::{Model, provenance};
use nodeproof_report::text;
use serde::Serialize;
use serde_json::{Map, Value};

use super::train::metadata;
use crate::cli::{ModelConvertArguments, ModelInfoArguments};
use crate::outcome::Outcome;
use crate::{inputs, outputs, terminal, words};

/// Shows facts about a model.
///
/// # Errors
/// If the file is not a model.
pub(crate) fn info(arguments: &ModelInfoArguments) -> anyhow::Result<Outcome> {
    inputs::check_readable(&arguments.file, "FILE")?;
    let model = inputs::read_model(&arguments.file)?;
    let training = provenance::read(&Model::read_metadata(&arguments.file)?);
    let facts = ModelFacts { training, ..ModelFacts::new(&model) };
    let text = if arguments.json { serde_json::to_string_pretty(&facts)? + "\n" } else { facts.in_words() };
    terminal::print(&text)?;
    Ok(Outcome::Done)
}

/// Writes a model as `.safetensors`.
///
/// # Errors
/// If the input is not a model or the output cannot be written.
pub(crate) fn convert(arguments: &ModelConvertArguments) -> anyhow::Result<Outcome> {
    let output = &arguments.output;
    if output.extension().is_none_or(|extension| extension != "safetensors") {
        bail!(
            "OUT is {}; models are written as .safetensors; give it a name that ends in .safetensors",
            output.display()
        );
    }
    let output = &outputs::file(output, "OUT", &[&arguments.input], "a model", "m.safetensors")?;
    inputs::check_readable(&arguments.input, "IN")?;
    let mut model = inputs::read_model(&arguments.input)?;
    let mut training = Model::read_metadata(&arguments.input)?;
    if let Some(choice) = arguments.propagation {
        let converted = Model::gcn(model.layers().to_vec(), choice.into())?;
        if converted.propagation() != model.propagation() {
            // What was measured with the other propagation says nothing of this one.
            training.clear();
        }
        model = converted;
    }
    let _lock = Lock::of_output(output).map_err(words::file)?;
    if let Err(error) = model.write_with(output, &training) {
        bail!("{error}; choose a place where you may write");
    }
    let written = terminal::facts(&[("written", terminal::shown(output))]);
    terminal::print(&format!("{}\n{written}", ModelFacts::new(&model).in_words()))?;
    Ok(Outcome::Done)
}

#[derive(Debug, Serialize)]
struct ModelFacts {
    fingerprint: String,
    propagation: &'static str,
    attributes: usize,
    classes: usize,
    parameters: usize,
    layers: Vec<LayerFacts>,
    /// How it was trained, as its file says.
    #[serde(skip_serializing_if = "Option::is_none")]
    training: Option<Map<String, Value>>,
}

#[derive(Debug, Serialize)]
struct LayerFacts {
    inputs: usize,
    outputs: usize,
    parameters: usize,
    activation: Option<&'static str>,
}

impl ModelFacts {
    fn new(model: &Model) -> Self {
        let layer = |(i, layer): (usize, &nodeproof::Layer)| LayerFacts {
            inputs: layer.weight().rows(),
            outputs: layer.weight().columns(),
            parameters: layer.weight().values().len() + layer.bias().len(),
            activation: (i < model.hidden_layers()).then_some("relu"),
        };
        let layers: Vec<_> = model.layers().iter().enumerate().map(layer).collect();
        Self {
            fingerprint: model.fingerprint(),
            propagation: model.propagation().name(),
            attributes: model.attributes(),
            classes: model.classes(),
            parameters: layers.iter().map(|layer| layer.parameters).sum(),
            layers,
            training: None,
        }
    }

    fn in_words(&self) -> String {
        let row = |(i, layer): (usize, &LayerFacts)| {
            vec![
                i.to_string(),
                layer.inputs.to_string(),
                layer.outputs.to_string(),
                layer.parameters.to_string(),
                layer.activation.unwrap_or("none (logits)").to_owned(),
            ]
        };
        let header = ["layer", "inputs", "outputs", "parameters", "activation"].map(str::to_owned).to_vec();
        let layers = text::table("rrrrl", Some(header), self.layers.iter().enumerate().map(row).collect());
        let facts = terminal::facts(&[
            ("propagation", self.propagation.to_owned()),
            ("attributes", self.attributes.to_string()),
            ("classes", self.classes.to_string()),
            ("parameters", self.parameters.to_string()),
            ("fingerprint", self.fingerprint.clone()),
        ]);
        let training = self.training.as_ref().map(|training| terminal::facts(&metadata::in_words(training)));
        let training = training.map(|training| format!("\n{training}")).unwrap_or_default();
        format!("{facts}\n{layers}{training}")
    }
}

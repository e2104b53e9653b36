//! `nodeproof model`: what a model is, and how to bring it into nodeproof's own format.

use anyhow::bail;
use nodeproof::files::Lock;
use nodeproof::{AttributeKind, Layer, Model, Propagation, Source, Term, Weight, provenance};
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
        if model.propagations().len() > 1 {
            bail!(
                "--propagation: the model has {} propagations, and one cannot take the place of all; leave the option out",
                model.propagations().len()
            );
        }
        if let [propagation @ (Propagation::Polynomial { .. } | Propagation::Custom(_))] = model.propagations() {
            bail!(
                "--propagation: the model's own is {propagation}, which is more than a name; leave the option out, or import or \
                 train the network with the other one"
            );
        }
        let converted = model.clone().with_propagations(vec![choice.into()])?;
        if converted.propagations() != model.propagations() {
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
    kind: AttributeKind,
    classes: usize,
    parameters: usize,
    layers: Vec<LayerFacts>,
    /// How it was trained, as its file says.
    #[serde(skip_serializing_if = "Option::is_none")]
    training: Option<Map<String, Value>>,
}

#[derive(Debug, Serialize)]
struct LayerFacts {
    outputs: usize,
    parameters: usize,
    activation: Option<String>,
    terms: Vec<TermFacts>,
}

/// One summand of a layer.
#[derive(Debug, Serialize)]
struct TermFacts {
    reads: String,
    propagation: String,
    inputs: usize,
    /// The factor of a multiple of the identity.
    #[serde(skip_serializing_if = "Option::is_none")]
    factor: Option<f64>,
    #[serde(skip)]
    weight: String,
}

impl ModelFacts {
    fn new(model: &Model) -> Self {
        let layers: Vec<_> = model.layers().iter().map(|layer| LayerFacts::new(model, layer)).collect();
        Self {
            fingerprint: model.fingerprint(),
            propagation: model.propagation_name(),
            attributes: model.attributes(),
            kind: model.kind(),
            classes: model.classes(),
            parameters: layers.iter().map(|layer| layer.parameters).sum(),
            layers,
            training: None,
        }
    }

    fn in_words(&self) -> String {
        let header = ["layer", "reads", "through", "weight", "activation"].map(str::to_owned).to_vec();
        let rows = self.layers.iter().enumerate().flat_map(|(i, layer)| layer.rows(i)).collect();
        let layers = text::table("rllll", Some(header), rows);
        let facts = terminal::facts(&[
            ("attributes", format!("{}{}", self.attributes, self.kind.in_addition())),
            ("classes", self.classes.to_string()),
            ("parameters", self.parameters.to_string()),
            ("fingerprint", self.fingerprint.clone()),
        ]);
        let training = self.training.as_ref().map(|training| terminal::facts(&metadata::in_words(training)));
        let training = training.map(|training| format!("\n{training}")).unwrap_or_default();
        format!("{facts}\n{layers}{training}")
    }
}

impl LayerFacts {
    fn new(model: &Model, layer: &Layer) -> Self {
        let term = |term: &Term| TermFacts {
            reads: match term.source() {
                Source::Attributes => "attributes".to_owned(),
                Source::Layer(i) => format!("layer {i}"),
                Source::Ones => "the constant 1".to_owned(),
            },
            propagation: model.propagations()[term.propagation()].to_string(),
            inputs: model.width(term.source()),
            factor: match term.weight() {
                Weight::Dense(_) => None,
                Weight::Scalar(factor) => Some(*factor),
            },
            weight: term.weight().to_string(),
        };
        let weights = layer.terms().iter().filter_map(|term| term.weight().dense());
        Self {
            outputs: layer.units(),
            parameters: weights.map(|weight| weight.values().len()).sum::<usize>() + layer.bias().len(),
            activation: layer.is_hidden().then(|| layer.activation().to_string()),
            terms: layer.terms().iter().map(term).collect(),
        }
    }

    /// One line for each term; what belongs to the layer stands in the first.
    fn rows(&self, i: usize) -> impl Iterator<Item = Vec<String>> {
        let activation = self.activation.as_deref().unwrap_or("none");
        let of_layer = [i.to_string(), activation.to_owned()];
        self.terms.iter().enumerate().map(move |(k, term)| {
            let [layer, activation] = if k == 0 { of_layer.clone() } else { Default::default() };
            vec![layer, term.reads.clone(), term.propagation.clone(), term.weight.clone(), activation]
        })
    }
}

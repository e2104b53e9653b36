//! How the parts of a model are put together, as JSON: everything but the numbers in its tensors.

use serde::{Deserialize, Serialize};

use super::{Activation, Layer, Model, ModelError, Propagation, Source, Term, Weight};
use crate::attributes::AttributeKind;
use crate::matrix::Matrix;
use crate::sparse::SparseMatrix;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ModelFields {
    attributes: usize,
    #[serde(default, skip_serializing_if = "AttributeKind::is_bits")]
    kind: AttributeKind,
    propagations: Vec<PropagationFields>,
    layers: Vec<LayerFields>,
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum PropagationFields {
    Name(String),
    Polynomial { polynomial: Vec<f64>, of: Box<PropagationFields> },
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LayerFields {
    terms: Vec<TermFields>,
    activation: Activation,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TermFields {
    source: Source,
    propagation: usize,
    /// The multiple of the identity; a tensor otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    scalar: Option<f64>,
}

/// Where [`Model::described`] finds numbers.
pub(super) trait Tensors {
    /// The weight of that name, inputs × outputs.
    fn matrix(&mut self, name: &str) -> Result<Matrix, String>;
    /// The bias of that name.
    fn vector(&mut self, name: &str) -> Result<Vec<f64>, String>;
    /// The matrix behind the propagation at that place.
    fn sparse(&mut self, propagation: usize) -> Result<SparseMatrix, String>;
}

/// What is wrong with a description or the model that it makes.
pub(super) enum Problem {
    Format(String),
    Model(ModelError),
}

impl From<String> for Problem {
    fn from(problem: String) -> Self {
        Self::Format(problem)
    }
}

impl Model {
    /// The description of the model.
    pub(super) fn description(&self) -> String {
        let term = |term: &Term| TermFields {
            source: term.source,
            propagation: term.propagation,
            scalar: match term.weight {
                Weight::Dense(_) => None,
                Weight::Scalar(factor) => Some(factor),
            },
        };
        let layer =
            |layer: &Layer| LayerFields { terms: layer.terms.iter().map(term).collect(), activation: layer.activation };
        let fields = ModelFields {
            attributes: self.attributes,
            kind: self.kind,
            propagations: self.propagations.iter().map(propagation_fields).collect(),
            layers: self.layers.iter().map(layer).collect(),
        };
        serde_json::to_string(&fields).unwrap_or_else(|_| unreachable!("finite numbers and strings are JSON"))
    }

    /// The model of a description, with numbers from `tensors`.
    pub(super) fn described(description: &str, mut tensors: impl Tensors) -> Result<Self, Problem> {
        let fields: ModelFields =
            serde_json::from_str(description).map_err(|error| format!("its description is damaged: {error}"))?;
        let mut propagations = Vec::new();
        for (place, fields) in fields.propagations.iter().enumerate() {
            propagations.push(propagation(fields, &mut || tensors.sparse(place))?);
        }
        let mut layers = Vec::new();
        for (i, fields) in fields.layers.iter().enumerate() {
            let mut terms = Vec::new();
            for (k, term) in fields.terms.iter().enumerate() {
                let weight = match term.scalar {
                    Some(factor) => Weight::Scalar(factor),
                    None if fields.terms.len() == 1 => Weight::Dense(tensors.matrix(&format!("W{i}"))?),
                    None => Weight::Dense(tensors.matrix(&format!("W{i}.{k}"))?),
                };
                terms.push(Term { source: term.source, propagation: term.propagation, weight });
            }
            layers.push(Layer::new(terms, tensors.vector(&format!("b{i}"))?, fields.activation));
        }
        let model = Self::new(fields.attributes, propagations, layers).map_err(Problem::Model)?;
        Ok(model.with_kind(fields.kind))
    }
}

fn propagation_fields(propagation: &Propagation) -> PropagationFields {
    match propagation {
        Propagation::Polynomial { of, coefficients } => {
            PropagationFields::Polynomial { polynomial: coefficients.clone(), of: Box::new(propagation_fields(of)) }
        }
        other => PropagationFields::Name(other.name().to_owned()),
    }
}

fn propagation(
    fields: &PropagationFields,
    custom: &mut dyn FnMut() -> Result<SparseMatrix, String>,
) -> Result<Propagation, String> {
    match fields {
        PropagationFields::Polynomial { polynomial, of } => {
            let (of, coefficients) = (Box::new(propagation(of, custom)?), polynomial.clone());
            Ok(Propagation::Polynomial { of, coefficients })
        }
        PropagationFields::Name(name) if name == "custom" => Ok(Propagation::Custom(custom()?)),
        PropagationFields::Name(name) => named(name),
    }
}

/// The propagation of that name.
pub(super) fn named(name: &str) -> Result<Propagation, String> {
    Propagation::named(name).ok_or_else(|| {
        let known = "identity, symmetric-gcn, row-normalised, row-mean, adjacency and custom";
        format!("its propagation is `{name}`; known ones are {known}{}", Propagation::did_you_mean(name))
    })
}

//! A number for every weight and bias of a model: a gradient, or a moment of one.

use crate::dense::{Matrix, add_scaled};
use crate::model::{Model, Source, Term};

/// A matrix (inputs × outputs) for every term with a dense weight, and a vector for every layer.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Gradient {
    /// For each layer those of its terms.
    pub(crate) weights: Vec<Vec<Option<Matrix>>>,
    pub(crate) biases: Vec<Vec<f64>>,
}

impl Gradient {
    /// Zeros in the shape of `model`.
    pub(crate) fn zeros(model: &Model) -> Self {
        Self::zeros_where(model, |_| true)
    }

    /// Zeros in the shape of `model`, without the terms that read the attributes.
    pub(crate) fn zeros_behind_attributes(model: &Model) -> Self {
        Self::zeros_where(model, |source| source != Source::Attributes)
    }

    fn zeros_where(model: &Model, wanted: impl Fn(Source) -> bool) -> Self {
        let term = |term: &Term| {
            let weight = term.weight().dense().filter(|_| wanted(term.source()));
            weight.map(|weight| Matrix::zeros(weight.rows(), weight.columns()))
        };
        Self {
            weights: model.layers().iter().map(|layer| layer.terms().iter().map(term).collect()).collect(),
            biases: model.layers().iter().map(|layer| vec![0.0; layer.units()]).collect(),
        }
    }

    /// Adds another gradient; what that one lacks stays.
    pub(crate) fn add(&mut self, other: &Self) {
        let weights = self.weights.iter_mut().flatten().zip(other.weights.iter().flatten());
        for (sum, weight) in weights.filter_map(|(sum, weight)| sum.as_mut().zip(weight.as_ref())) {
            add_scaled(sum.values_mut(), 1.0, weight.values());
        }
        self.biases.iter_mut().zip(&other.biases).for_each(|(sum, bias)| add_scaled(sum, 1.0, bias));
    }

    /// Sets every number to 0.
    pub(crate) fn clear(&mut self) {
        self.tensors_mut().for_each(|tensor| tensor.fill(0.0));
    }

    /// Multiplies every number by `factor`.
    pub(crate) fn scale(&mut self, factor: f64) {
        self.tensors_mut().flatten().for_each(|value| *value *= factor);
    }

    /// The Euclidean norm of all numbers together.
    pub(crate) fn norm(&self) -> f64 {
        self.tensors().flatten().map(|value| value * value).sum::<f64>().sqrt()
    }

    /// All numbers, tensor by tensor, in the order of [`Model::tensors`].
    pub(crate) fn tensors(&self) -> impl Iterator<Item = &[f64]> {
        self.weights
            .iter()
            .zip(&self.biases)
            .flat_map(|(weights, bias)| weights.iter().flatten().map(Matrix::values).chain([&bias[..]]))
    }

    /// All numbers, to be changed.
    pub(crate) fn tensors_mut(&mut self) -> impl Iterator<Item = &mut [f64]> {
        self.weights.iter_mut().zip(&mut self.biases).flat_map(|(weights, bias)| {
            weights.iter_mut().flatten().map(Matrix::values_mut).chain([bias.as_mut_slice()])
        })
    }
}

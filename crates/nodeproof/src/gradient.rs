//! A number for every weight and bias of a model: a gradient, or a moment of one.

use crate::dense::Matrix;
use crate::model::Model;

/// One matrix (inputs × outputs) and one vector for every layer.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Gradient {
    pub(crate) weights: Vec<Matrix>,
    pub(crate) biases: Vec<Vec<f64>>,
}

impl Gradient {
    /// Zeros in the shape of `model`.
    pub(crate) fn zeros(model: &Model) -> Self {
        let weight = |weight: &Matrix| Matrix::zeros(weight.rows(), weight.columns());
        Self {
            weights: model.layers().iter().map(|layer| weight(layer.weight())).collect(),
            biases: model.layers().iter().map(|layer| vec![0.0; layer.bias().len()]).collect(),
        }
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

    /// All numbers, tensor by tensor: W0, b0, W1, b1, …
    pub(crate) fn tensors(&self) -> impl Iterator<Item = &[f64]> {
        self.weights.iter().map(Matrix::values).zip(&self.biases).flat_map(|(weight, bias)| [weight, bias])
    }

    /// All numbers, to be changed.
    pub(crate) fn tensors_mut(&mut self) -> impl Iterator<Item = &mut [f64]> {
        let weights = self.weights.iter_mut().map(Matrix::values_mut);
        weights.zip(&mut self.biases).flat_map(|(weight, bias)| [weight, bias.as_mut_slice()])
    }
}

//! Weights and biases in training, and gradients of the same shape.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::dense::Matrix;
use crate::model::{Layer, Model, ModelError, Propagation};

/// Weights (inputs × outputs) and biases of every layer, or their gradients.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Parameters {
    pub(crate) weights: Vec<Matrix>,
    pub(crate) biases: Vec<Vec<f64>>,
}

impl Parameters {
    /// Zeros for layers between `sizes`: attributes, hidden units, …, classes.
    pub(crate) fn zeros(sizes: &[usize]) -> Self {
        Self {
            weights: sizes.windows(2).map(|pair| Matrix::zeros(pair[0], pair[1])).collect(),
            biases: sizes[1..].iter().map(|&outputs| vec![0.0; outputs]).collect(),
        }
    }

    /// Xavier's uniform initialisation: weights in ±√(6 / (inputs + outputs)), biases 0. Each layer has a random stream
    /// of its own.
    pub(crate) fn xavier(sizes: &[usize], seed: u64) -> Self {
        let mut parameters = Self::zeros(sizes);
        for (layer, weight) in parameters.weights.iter_mut().enumerate() {
            let mut random = ChaCha8Rng::seed_from_u64(seed);
            random.set_stream(layer as u64);
            let (inputs, outputs) = (weight.rows(), weight.columns());
            let limit = (6.0 / (inputs + outputs) as f64).sqrt();
            let values = (0..inputs * outputs).map(|_| random.random_range(-limit..limit)).collect();
            *weight = Matrix::from_values(inputs, outputs, values);
        }
        parameters
    }

    /// A model with these weights and biases.
    pub(crate) fn into_model(self, propagation: Propagation) -> Result<Model, ModelError> {
        let layers = self.weights.into_iter().zip(self.biases).map(|(weight, bias)| Layer::new(weight, bias));
        Model::new(layers.collect(), propagation)
    }

    /// All numbers, tensor by tensor: W0, b0, W1, b1, …
    pub(crate) fn tensors_mut(&mut self) -> impl Iterator<Item = &mut [f64]> {
        let weights = self.weights.iter_mut().map(Matrix::values_mut);
        weights.zip(&mut self.biases).flat_map(|(weight, bias)| [weight, bias.as_mut_slice()])
    }

    /// All numbers, tensor by tensor: W0, b0, W1, b1, …
    pub(crate) fn tensors(&self) -> impl Iterator<Item = &[f64]> {
        let weights = self.weights.iter().map(Matrix::values);
        weights.zip(&self.biases).flat_map(|(weight, bias)| [weight, bias.as_slice()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn xavier_stays_in_its_limits_and_depends_on_the_seed() {
        let parameters = Parameters::xavier(&[30, 20, 4], 1);
        for weight in &parameters.weights {
            let limit = (6.0 / (weight.rows() + weight.columns()) as f64).sqrt();
            let largest = weight.values().iter().fold(0.0f64, |a, b| a.max(b.abs()));
            assert!(largest <= limit && largest > 0.8 * limit);
        }
        assert_eq!(parameters, Parameters::xavier(&[30, 20, 4], 1));
        assert_ne!(parameters, Parameters::xavier(&[30, 20, 4], 2));
    }
}

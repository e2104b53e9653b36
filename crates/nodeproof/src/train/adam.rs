//! Adam (Kingma and Ba, 2015), with weight decay as an L2 term in the gradient of the weights.

use rayon::prelude::*;

use crate::gradient::Gradient;
use crate::kernels::vectorised;
use crate::model::{Model, Source};

const BETA: (f64, f64) = (0.9, 0.999);
const EPSILON: f64 = 1e-8;
/// Numbers that one task updates.
const CHUNK: usize = 1 << 14;

/// Moments of the gradient.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Adam {
    pub(super) steps: u32,
    pub(super) first: Gradient,
    pub(super) second: Gradient,
}

impl Adam {
    pub(super) fn new(model: &Model) -> Self {
        Self { steps: 0, first: Gradient::zeros(model), second: Gradient::zeros(model) }
    }

    /// Takes one step against `gradient`.
    ///
    /// Every row of every weight moves, whether this step's loss touched it or not: a row without a gradient still has
    /// momentum and decay. The rest of a step costs so much more that leaving rows for later would gain nothing.
    pub(super) fn step(&mut self, model: &mut Model, gradient: &Gradient, learning_rate: f64, weight_decay: f64) {
        self.steps += 1;
        let corrections = (1.0 - power(BETA.0, self.steps), 1.0 - power(BETA.1, self.steps));
        let decays = decays(model);
        let tensors = model.tensors_mut().zip(gradient.tensors());
        let moments = self.first.tensors_mut().zip(self.second.tensors_mut());
        for ((decays, (values, gradients)), (first, second)) in decays.into_iter().zip(tensors).zip(moments) {
            let decay = if decays { weight_decay } else { 0.0 };
            let values = values.par_chunks_mut(CHUNK).zip(gradients.par_chunks(CHUNK));
            let moments = first.par_chunks_mut(CHUNK).zip(second.par_chunks_mut(CHUNK));
            values.zip(moments).for_each(|((values, gradients), (first, second))| {
                vectorised(|| {
                    let moments = first.iter_mut().zip(second);
                    for ((value, &gradient), (first, second)) in values.iter_mut().zip(gradients).zip(moments) {
                        let gradient = gradient + decay * *value;
                        *first = BETA.0 * *first + (1.0 - BETA.0) * gradient;
                        *second = BETA.1 * *second + (1.0 - BETA.1) * gradient * gradient;
                        let (mean, square) = (*first / corrections.0, *second / corrections.1);
                        *value -= learning_rate * mean / (square.sqrt() + EPSILON);
                    }
                });
            });
        }
    }
}

/// Whether a tensor decays, for each of [`Model::tensors`]: biases do not, nor do weights of the constant 1, which are biases.
fn decays(model: &Model) -> Vec<bool> {
    let mut all = Vec::new();
    for layer in model.layers() {
        let dense = layer.terms().iter().filter(|term| term.weight().dense().is_some());
        all.extend(dense.map(|term| term.source() != Source::Ones));
        all.push(false);
    }
    all
}

fn power(base: f64, exponent: u32) -> f64 {
    base.powi(exponent.min(i32::MAX as u32) as i32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dense::Matrix;
    use crate::model::{Activation, Layer, Propagation, Term};

    #[test]
    fn two_steps_by_hand() {
        let layer = (Matrix::from_values(1, 2, vec![2.0, 2.0]), vec![2.0, 2.0]);
        let mut model = Model::gcn(vec![layer], Propagation::SymmetricGcn).unwrap();
        let mut adam = Adam::new(&model);
        let mut gradient = Gradient::zeros(&model);
        gradient.weights[0][0] = Some(Matrix::from_values(1, 2, vec![1.0, 0.0]));
        gradient.biases[0] = vec![-4.0, 0.0];
        let weight = |model: &Model| model.layers()[0].terms()[0].weight().values().to_vec();
        adam.step(&mut model, &gradient, 0.1, 0.5);
        // The first step is the learning rate against the gradient's sign, whatever its size.
        assert!((weight(&model)[0] - 1.9).abs() < 1e-7);
        assert!((weight(&model)[1] - 1.9).abs() < 1e-7, "by decay alone");
        assert!((model.layers()[0].bias()[0] - 2.1).abs() < 1e-7);
        assert_eq!(model.layers()[0].bias()[1], 2.0, "biases do not decay");
        adam.step(&mut model, &gradient, 0.1, 0.5);
        // Weight: gradients 1 + 0.5·2 = 2 and 1 + 0.5·1.9 = 1.95.
        let mean: f64 = (0.9 * 0.1 * 2.0 + 0.1 * 1.95) / (1.0 - 0.81);
        let square: f64 = (0.999 * 0.001 * 4.0 + 0.001 * 1.95 * 1.95) / (1.0 - 0.999 * 0.999);
        assert!((weight(&model)[0] - (1.9 - 0.1 * mean / square.sqrt())).abs() < 1e-7);
        assert!((model.layers()[0].bias()[0] - 2.2).abs() < 1e-7);
    }

    #[test]
    fn of_several_terms_those_of_the_constant_do_not_decay() {
        let dense = |source, value| Term::new(source, 0, Matrix::from_values(1, 2, vec![value; 2]));
        let first = Layer::new(vec![dense(Source::Attributes, 1.0)], vec![4.0; 2], Activation::Relu);
        let terms = vec![Term::new(Source::Layer(0), 0, 0.5), dense(Source::Ones, 2.0), dense(Source::Attributes, 3.0)];
        let last = Layer::new(terms, vec![4.0; 2], Activation::None);
        let mut model = Model::new(1, vec![Propagation::Adjacency], vec![first, last]).unwrap();
        let gradient = Gradient::zeros(&model);
        Adam::new(&model).step(&mut model, &gradient, 0.1, 0.5);
        let values: Vec<f64> = model.tensors().map(|tensor| (tensor[0] * 1e6).round() / 1e6).collect();
        assert_eq!(values, [0.9, 4.0, 2.0, 2.9, 4.0]);
        assert_eq!(model.layers()[1].terms()[0].weight().values(), [0.5]);
    }
}

//! Adam (Kingma and Ba, 2015), with weight decay as an L2 term in the gradient of the weights.

use super::parameters::Parameters;

const BETA: (f64, f64) = (0.9, 0.999);
const EPSILON: f64 = 1e-8;

/// Moments of the gradient, and how to step.
#[derive(Debug, Clone)]
pub(crate) struct Adam {
    learning_rate: f64,
    weight_decay: f64,
    steps: i32,
    first: Parameters,
    second: Parameters,
}

impl Adam {
    pub(crate) fn new(sizes: &[usize], learning_rate: f64, weight_decay: f64) -> Self {
        let zeros = Parameters::zeros(sizes);
        Self { learning_rate, weight_decay, steps: 0, first: zeros.clone(), second: zeros }
    }

    /// Takes one step against `gradient`.
    pub(crate) fn step(&mut self, parameters: &mut Parameters, gradient: &Parameters) {
        self.steps += 1;
        let corrections = (1.0 - BETA.0.powi(self.steps), 1.0 - BETA.1.powi(self.steps));
        let tensors = parameters.tensors_mut().zip(gradient.tensors());
        let moments = self.first.tensors_mut().zip(self.second.tensors_mut());
        for (tensor, ((values, gradients), (first, second))) in tensors.zip(moments).enumerate() {
            let is_weight = tensor % 2 == 0;
            let decay = if is_weight { self.weight_decay } else { 0.0 };
            for i in 0..values.len() {
                let gradient = gradients[i] + decay * values[i];
                first[i] = BETA.0 * first[i] + (1.0 - BETA.0) * gradient;
                second[i] = BETA.1 * second[i] + (1.0 - BETA.1) * gradient * gradient;
                let (mean, square) = (first[i] / corrections.0, second[i] / corrections.1);
                values[i] -= self.learning_rate * mean / (square.sqrt() + EPSILON);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dense::Matrix;

    #[test]
    fn two_steps_by_hand() {
        let mut adam = Adam::new(&[1, 1], 0.1, 0.5);
        let mut parameters =
            Parameters { weights: vec![Matrix::from_values(1, 1, vec![2.0])], biases: vec![vec![2.0]] };
        let gradient = Parameters { weights: vec![Matrix::from_values(1, 1, vec![1.0])], biases: vec![vec![-4.0]] };
        adam.step(&mut parameters, &gradient);
        // The first step is the learning rate against the gradient's sign, whatever its size.
        assert!((parameters.weights[0].get(0, 0) - 1.9).abs() < 1e-7);
        assert!((parameters.biases[0][0] - 2.1).abs() < 1e-7);
        adam.step(&mut parameters, &gradient);
        // Weight: gradients 1 + 0.5·2 = 2 and 1 + 0.5·1.9 = 1.95.
        let mean: f64 = (0.9 * 0.1 * 2.0 + 0.1 * 1.95) / (1.0 - 0.81);
        let square: f64 = (0.999 * 0.001 * 4.0 + 0.001 * 1.95 * 1.95) / (1.0 - 0.999 * 0.999);
        assert!((parameters.weights[0].get(0, 0) - (1.9 - 0.1 * mean / square.sqrt())).abs() < 1e-7);
        assert!((parameters.biases[0][0] - 2.2).abs() < 1e-7);
    }
}

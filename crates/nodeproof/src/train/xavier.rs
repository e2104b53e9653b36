//! Where training starts.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::dense::Matrix;
use crate::model::{Layer, Model, ModelError, Propagation};

/// Xavier's uniform initialisation (Glorot and Bengio, 2010) for layers between `sizes` (attributes, hidden units, …,
/// classes): weights in ±√(6 / (inputs + outputs)), biases 0. Each layer has a random stream of its own.
pub(super) fn initial(sizes: &[usize], propagation: Propagation, seed: u64) -> Result<Model, ModelError> {
    let layer = |(layer, pair): (usize, &[usize])| {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        random.set_stream(layer as u64);
        let (inputs, outputs) = (pair[0], pair[1]);
        let limit = (6.0 / (inputs + outputs) as f64).sqrt();
        let values = (0..inputs * outputs).map(|_| random.random_range(-limit..limit)).collect();
        (Matrix::from_values(inputs, outputs, values), vec![0.0; outputs])
    };
    Model::gcn(sizes.windows(2).enumerate().map(layer).collect(), propagation)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_stay_in_their_limits_and_depend_on_the_seed() {
        let draw = |seed| initial(&[30, 20, 4], Propagation::SymmetricGcn, seed).unwrap();
        for layer in draw(1).layers() {
            let weight = layer.weight();
            let limit = (6.0 / (weight.rows() + weight.columns()) as f64).sqrt();
            let largest = weight.values().iter().fold(0.0f64, |a, b| a.max(b.abs()));
            assert!(largest <= limit && largest > 0.8 * limit);
        }
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }
}

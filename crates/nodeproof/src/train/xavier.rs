//! Where training starts.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::dense::Matrix;

/// Xavier's uniform initialisation (Glorot and Bengio, 2010): numbers in ±√(6 / (inputs + outputs)) for the weight of a term,
/// inputs × outputs. Each term of each layer has a random stream of its own.
pub(super) fn weight(inputs: usize, outputs: usize, (layer, term): (usize, usize), seed: u64) -> Matrix {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    random.set_stream(layer as u64 | (term as u64) << 32);
    let limit = (6.0 / (inputs + outputs) as f64).sqrt();
    let values = (0..inputs * outputs).map(|_| random.random_range(-limit..limit)).collect();
    Matrix::from_values(inputs, outputs, values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_stay_in_their_limits_and_depend_on_seed_and_place() {
        let draw = |place, seed| weight(30, 20, place, seed);
        let largest = draw((0, 0), 1).values().iter().fold(0.0f64, |a, b| a.max(b.abs()));
        let limit = (6.0f64 / 50.0).sqrt();
        assert!(largest <= limit && largest > 0.8 * limit);
        assert_eq!(draw((0, 0), 1), draw((0, 0), 1));
        for (place, seed) in [((0, 0), 2), ((1, 0), 1), ((0, 1), 1)] {
            assert_ne!(draw((0, 0), 1), draw(place, seed), "{place:?}, {seed}");
        }
    }
}

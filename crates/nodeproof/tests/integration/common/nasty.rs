//! Problems made of numbers that floats get wrong.

use proptest::collection::vec;
use proptest::prelude::*;

use super::{Problem, Sizes, Spread, problems};

/// Small enough for exact arithmetic over every set of flips.
pub const MICRO: Sizes = Sizes { nodes: 3, attributes: 3, hidden_layers: (0, 2), units: 4, global: 8 };

/// A decimal that no float holds exactly, times a power of ten in `exponents`.
pub fn decimal(exponents: std::ops::RangeInclusive<i32>) -> impl Strategy<Value = f64> {
    let number = (-99i32..=99, exponents).prop_map(|(digits, exponent)| format!("{digits}e{}", exponent - 1));
    prop_oneof![8 => number.prop_map(|text| text.parse().unwrap()), 1 => Just(0.0)]
}

/// A small multiple of the smallest float.
pub fn units() -> impl Strategy<Value = f64> {
    (-9i8..=9).prop_map(|units| f64::from(units) * f64::from_bits(1))
}

/// Problems in which every weight, bias and custom propagation value comes from these.
pub fn with_numbers<N, P>(numbers: N, factors: P) -> impl Strategy<Value = Problem>
where
    N: Strategy<Value = f64>,
    P: Strategy<Value = f64>,
{
    (problems(MICRO), vec(numbers, 64), vec(factors, 8)).prop_map(|(mut problem, numbers, factors)| {
        let mut numbers = numbers.into_iter().cycle();
        for layer in &mut problem.layers {
            layer.weight.iter_mut().chain(&mut layer.bias).for_each(|value| *value = numbers.next().unwrap());
        }
        if let Spread::Custom(triplets) = &mut problem.spread {
            for ((.., value), factor) in triplets.iter_mut().zip(factors) {
                *value = factor.abs();
            }
        }
        problem
    })
}

/// Problems whose margins are all `offset`, exactly, under every set of flips: the units of the last hidden layer are
/// equal, and the weights of the classes are each other's, rotated. In floats the sums differ by their order.
pub fn tied() -> impl Strategy<Value = Problem> {
    let offset = prop_oneof![
        2 => Just(0.0), 1 => Just(1e-17), 1 => Just(-1e-17), 1 => Just(-1e-18), 1 => Just(3e-16), 1 => Just(-3e-16)
    ];
    let sizes = Sizes { hidden_layers: (1, 2), ..MICRO };
    (problems(sizes), vec(decimal(0..=1), 64), offset).prop_map(|(mut problem, numbers, offset)| {
        let mut numbers = numbers.into_iter().cycle();
        let (units, last) = (3, problem.layers.len() - 1);
        let before = &mut problem.layers[last - 1];
        before.outputs = units;
        before.weight = (0..before.inputs).flat_map(|_| vec![numbers.next().unwrap(); units]).collect();
        before.bias = vec![numbers.next().unwrap().abs(); units];
        let output = &mut problem.layers[last];
        output.inputs = units;
        let first: Vec<f64> = numbers.take(units).collect();
        output.weight =
            (0..units).flat_map(|i| (0..output.outputs).map(move |k| (i + k) % units)).map(|i| first[i]).collect();
        output.bias = vec![0.0; output.outputs];
        output.bias[0] = offset;
        problem.certify_labels = true;
        problem.labels.fill(0);
        problem
    })
}

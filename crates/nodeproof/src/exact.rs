//! The network in exact arithmetic, for the rare margin that rounding leaves open.
//!
//! Every finite `f64` is a whole number times a power of two, and sums and products of such numbers are again.

use std::cmp::Ordering;

use num_bigint::{BigInt, Sign};

use crate::budget::Flip;
use crate::graph::{ClassId, NodeId};
use crate::network::Network;
use crate::slice::Region;

/// `mantissa · 2^exponent`.
#[derive(Debug, Clone, Default)]
struct Dyadic {
    mantissa: BigInt,
    exponent: i64,
}

impl Dyadic {
    fn of(value: f64) -> Self {
        let bits = value.to_bits();
        let fraction = bits & ((1 << 52) - 1);
        let (mantissa, exponent) = match (bits >> 52 & 0x7ff) as i64 {
            0 => (fraction, -1074),
            biased => (fraction | 1 << 52, biased - 1075),
        };
        let sign = if value < 0.0 { Sign::Minus } else { Sign::Plus };
        Self { mantissa: BigInt::from_biguint(sign, mantissa.into()), exponent }
    }

    fn add(&mut self, other: &Self) {
        if other.mantissa.sign() == Sign::NoSign {
            return;
        }
        if self.mantissa.sign() == Sign::NoSign || other.exponent < self.exponent {
            self.mantissa <<= (self.exponent - other.exponent).max(0) as u64;
            self.exponent = other.exponent;
        }
        self.mantissa += &other.mantissa << (other.exponent - self.exponent) as u64;
    }

    fn times(&self, other: &Self) -> Self {
        Self { mantissa: &self.mantissa * &other.mantissa, exponent: self.exponent + other.exponent }
    }

    fn minus(mut self) -> Self {
        self.mantissa = -self.mantissa;
        self
    }

    fn relu(self) -> Self {
        if self.mantissa.sign() == Sign::Minus { Self::default() } else { self }
    }
}

/// How `logit_y − logit_k` of `node` under `flips` compares with 0.
pub(crate) fn compare_logits(network: &Network, node: NodeId, flips: &[Flip], y: ClassId, k: ClassId) -> Ordering {
    let layers = network.layers();
    let region = Region::around(network.propagation(), &[node], layers.len());
    let mut values = attribute_sums(network, &region, flips);
    for (i, layer) in layers.iter().enumerate() {
        // The first layer's weight is in the sums already.
        let inputs = if i == 0 { layer.bias().len() } else { layer.weight().rows() };
        let level = region.level(i + 1).nodes().iter();
        values = level
            .map(|&m| {
                let mut sums = vec![Dyadic::default(); inputs];
                let (neighbours, weights) = network.propagation().row(m as usize);
                for (&n, &p) in neighbours.iter().zip(weights) {
                    let p = Dyadic::of(p);
                    let row = &values[region.level(i).place(n)];
                    sums.iter_mut().zip(row).for_each(|(sum, value)| sum.add(&p.times(value)));
                }
                let mut row: Vec<Dyadic> = layer.bias().iter().map(|&b| Dyadic::of(b)).collect();
                if i == 0 {
                    row.iter_mut().zip(&sums).for_each(|(value, sum)| value.add(sum));
                } else {
                    for (input, sum) in sums.iter().enumerate() {
                        let weights = layer.weight().row(input);
                        row.iter_mut().zip(weights).for_each(|(value, &w)| value.add(&sum.times(&Dyadic::of(w))));
                    }
                }
                if i + 1 < layers.len() { row.into_iter().map(Dyadic::relu).collect() } else { row }
            })
            .collect();
    }
    let mut difference = values[0][y.index()].clone();
    difference.add(&values[0][k.index()].clone().minus());
    match difference.mantissa.sign() {
        Sign::Minus => Ordering::Less,
        Sign::NoSign => Ordering::Equal,
        Sign::Plus => Ordering::Greater,
    }
}

/// `X_n W⁰` under the flips for each node of level 0.
fn attribute_sums(network: &Network, region: &Region, flips: &[Flip]) -> Vec<Vec<Dyadic>> {
    let weight = network.layers()[0].weight();
    let row = |&n: &u32| {
        let mut sums = vec![Dyadic::default(); weight.columns()];
        let mut add = |attribute: usize, negative: bool| {
            for (sum, &w) in sums.iter_mut().zip(weight.row(attribute)) {
                sum.add(&Dyadic::of(if negative { -w } else { w }));
            }
        };
        network.graph().attributes().row(n as usize).iter().for_each(|&attribute| add(attribute as usize, false));
        for flip in flips.iter().filter(|flip| flip.node.0 == n) {
            add(flip.attribute.index(), !flip.adds(network.graph()));
        }
        sums
    };
    region.level(0).nodes().iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dense::Matrix;
    use crate::graph::{AttributeId, Graph};
    use crate::model::{Layer, Model, Propagation};

    fn layer(rows: usize, weight: Vec<f64>, bias: Vec<f64>) -> Layer {
        Layer::new(Matrix::from_values(rows, bias.len(), weight), bias)
    }

    #[test]
    fn sums_that_doubles_get_wrong() {
        // 1e16 + 1 − 1e16, which is 0 in doubles.
        let model = |third: f64| {
            let first = layer(3, vec![1e16, 1.0, third], vec![0.0]);
            Model::new(vec![first, layer(1, vec![1.0, 0.0], vec![0.0, 0.5])], Propagation::RowNormalised).unwrap()
        };
        let graph = Graph::new(1, 3, &[], &[(0, 0), (0, 1), (0, 2)]).unwrap();
        let compare = |third: f64, flips: &[Flip]| {
            let model = model(third);
            let network = Network::new(&graph, &model).unwrap();
            compare_logits(&network, NodeId(0), flips, ClassId(0), ClassId(1))
        };
        assert_eq!(compare(-1e16, &[]), Ordering::Greater);
        let flip = |attribute| Flip { node: NodeId(0), attribute: AttributeId(attribute) };
        assert_eq!(compare(-1e16, &[flip(1)]), Ordering::Less);
        assert_eq!(compare(-1e16 - 2.0, &[]), Ordering::Less, "the ReLU is not passed");
        assert_eq!(compare(0.5, &[flip(0), flip(1)]), Ordering::Equal);
        assert_eq!(compare(5e-324, &[flip(0), flip(1)]), Ordering::Less);
    }
}

//! The network in exact arithmetic, for the rare margin that rounding leaves open (Lemma 24 of `docs/maths.md`).
//!
//! Every finite `f64` is a whole number times a power of two, and sums and products of such numbers are again. Where rows are divided by the
//! number of their ones, all numbers are carried times a common multiple of these divisors, which no activation minds.

use std::cmp::Ordering;

use num_bigint::{BigInt, Sign};

use crate::dense::Matrix;
use crate::flip::Flip;
use crate::forward::Carried;
use crate::ids::{ClassId, NodeId};
use crate::model::{Activation, Weight};
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
}

/// Numbers without any rounding.
struct Exact;

impl Carried for Exact {
    type Number = Dyadic;

    fn constant(x: f64, _: f64) -> Dyadic {
        Dyadic::of(x)
    }

    fn gather<'r>(
        sums: &mut [Dyadic],
        rows: impl Iterator<Item = (f64, &'r [Dyadic])> + Clone,
        activation: Activation,
        _: f64,
    ) {
        let slope = Dyadic::of(activation.slope());
        for (p, row) in rows {
            let positive = Dyadic::of(p);
            let negative = positive.times(&slope);
            for (sum, value) in sums.iter_mut().zip(row) {
                let is_positive = value.mantissa.sign() == Sign::Plus;
                if is_positive || activation.slope() != 0.0 {
                    sum.add(&if is_positive { &positive } else { &negative }.times(value));
                }
            }
        }
    }

    fn add_product(out: &mut [Dyadic], sums: &[Dyadic], weight: &Weight) {
        match weight {
            Weight::Dense(weight) => {
                for (input, sum) in sums.iter().enumerate() {
                    let weights = weight.row(input);
                    out.iter_mut().zip(weights).for_each(|(out, &w)| out.add(&sum.times(&Dyadic::of(w))));
                }
            }
            Weight::Scalar(factor) => {
                let factor = Dyadic::of(*factor);
                out.iter_mut().zip(sums).for_each(|(out, sum)| out.add(&sum.times(&factor)));
            }
        }
    }
}

/// How `logit_y − logit_k` of `node` under `flips` compares with 0.
pub(crate) fn compare_logits(network: &Network, node: NodeId, flips: &[Flip], y: ClassId, k: ClassId) -> Ordering {
    compare_margin(network, node, flips, (y, k), 0.0)
}

/// How `logit_y − logit_k` of `node` under `flips` compares with a finite number.
pub(crate) fn compare_margin(
    network: &Network,
    node: NodeId,
    flips: &[Flip],
    (y, k): (ClassId, ClassId),
    with: f64,
) -> Ordering {
    let region = network.region(&[node]);
    let (sums, scale) = attribute_sums(network, &region, flips);
    let rest = Dyadic { mantissa: &scale.mantissa - 1, exponent: 0 };
    let layers = network.walk::<Exact>(&region, &sums, scale.clone(), |layers| {
        let made = layers.len() - 1;
        let biases: Vec<Dyadic> = network.layers()[made].bias().iter().map(|&b| rest.times(&Dyadic::of(b))).collect();
        for row in 0..layers[made].rows() {
            layers[made].row_mut(row).iter_mut().zip(&biases).for_each(|(z, bias)| z.add(bias));
        }
    });
    let logits = layers[layers.len() - 1].row(0);
    let mut difference = logits[y.index()].clone();
    difference.add(&logits[k.index()].clone().minus());
    difference.add(&scale.times(&Dyadic::of(-with)));
    match difference.mantissa.sign() {
        Sign::Minus => Ordering::Less,
        Sign::NoSign => Ordering::Equal,
        Sign::Plus => Ordering::Greater,
    }
}

/// `scale · X_n W` under the flips for each node of level 0, W being the attributes' weights side by side; and the scale, a whole number.
fn attribute_sums(network: &Network, region: &Region, flips: &[Flip]) -> (Matrix<Dyadic>, Dyadic) {
    let (graph, weight, nodes) = (network.graph(), network.attribute_weight(), region.level(0).nodes());
    let divisor = |&n: &u32| {
        let adds = flips.iter().filter(|flip| flip.node.0 == n).map(|flip| flip.adds());
        network.divisors(NodeId(n), adds).1 as u64
    };
    let divisors: Vec<u64> = nodes.iter().map(divisor).collect();
    let scale = common_multiple(&divisors);
    let mut all: Matrix<Dyadic> = Matrix::zeros(nodes.len(), weight.columns());
    for (row, &n) in nodes.iter().enumerate() {
        let mut add = |attribute: usize, value: f64| {
            let value = Dyadic::of(value);
            for (sum, &w) in all.row_mut(row).iter_mut().zip(weight.row(attribute)) {
                sum.add(&value.times(&Dyadic::of(w)));
            }
        };
        for (attribute, value) in graph.entries_of(NodeId(n)) {
            add(attribute.index(), value);
        }
        for flip in flips.iter().filter(|flip| flip.node.0 == n) {
            add(flip.attribute.index(), flip.to);
            add(flip.attribute.index(), -graph.value(flip.node, flip.attribute));
        }
        let factor = &scale / divisors[row];
        all.row_mut(row).iter_mut().for_each(|sum| sum.mantissa *= &factor);
    }
    (all, Dyadic { mantissa: scale, exponent: 0 })
}

/// The smallest number that all of these divide.
fn common_multiple(numbers: &[u64]) -> BigInt {
    let gcd = |mut a: u64, mut b: u64| {
        while b > 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    numbers.iter().fold(BigInt::from(1), |multiple, &number| {
        let rest = (&multiple % number).to_u64_digits().1.first().copied().unwrap_or(0);
        multiple * (number / gcd(number, rest))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Graph;
    use crate::ids::AttributeId;
    use crate::model::{Model, Propagation};

    fn layer(rows: usize, weight: Vec<f64>, bias: Vec<f64>) -> (Matrix, Vec<f64>) {
        (Matrix::from_values(rows, bias.len(), weight), bias)
    }

    #[test]
    fn sums_that_doubles_get_wrong() {
        // 1e16 + 1 − 1e16, which is 0 in doubles.
        let model = |third: f64| {
            let first = layer(3, vec![1e16, 1.0, third], vec![0.0]);
            Model::gcn(vec![first, layer(1, vec![1.0, 0.0], vec![0.0, 0.5])], Propagation::RowNormalised).unwrap()
        };
        let graph = Graph::new(1, 3, &[], &[(0, 0), (0, 1), (0, 2)]).unwrap();
        let compare = |third: f64, flips: &[Flip]| {
            let model = model(third);
            let network = Network::new(&graph, &model).unwrap();
            compare_logits(&network, NodeId(0), flips, ClassId(0), ClassId(1))
        };
        assert_eq!(compare(-1e16, &[]), Ordering::Greater);
        let flip = |attribute| Flip::of(&graph, NodeId(0), AttributeId(attribute));
        assert_eq!(compare(-1e16, &[flip(1)]), Ordering::Less);
        assert_eq!(compare(-1e16 - 2.0, &[]), Ordering::Less, "the ReLU is not passed");
        assert_eq!(compare(0.5, &[flip(0), flip(1)]), Ordering::Equal);
        assert_eq!(compare(5e-324, &[flip(0), flip(1)]), Ordering::Less);
    }
}

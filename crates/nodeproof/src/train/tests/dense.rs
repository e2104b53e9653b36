//! The robust losses from the plain formulas, densely, with derivatives carried along number by number (forward mode).
//! Shares no code with the engines.

use std::cmp::Ordering;
use std::iter::Sum;
use std::ops::{Add, Mul, Sub};

use crate::budget::Limits;
use crate::graph::Graph;
use crate::ids::{AttributeId, NodeId};
use crate::model::{Activation, Model, Source, Weight};
use crate::sparse::SparseMatrix;
use crate::train::goal::Goal;
use crate::train::robust::Target;

/// A number and its derivative by one parameter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Jet {
    pub(super) value: f64,
    pub(super) derivative: f64,
}

const fn constant(value: f64) -> Jet {
    Jet { value, derivative: 0.0 }
}

impl Add for Jet {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { value: self.value + other.value, derivative: self.derivative + other.derivative }
    }
}

impl Sub for Jet {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        self + constant(-1.0) * other
    }
}

impl Mul for Jet {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        let derivative = self.derivative * other.value + self.value * other.derivative;
        Self { value: self.value * other.value, derivative }
    }
}

impl Sum for Jet {
    fn sum<I: Iterator<Item = Self>>(terms: I) -> Self {
        terms.fold(constant(0.0), Add::add)
    }
}

impl Jet {
    fn reciprocal(self) -> Self {
        Self { value: 1.0 / self.value, derivative: -self.derivative / (self.value * self.value) }
    }

    fn exp(self) -> Self {
        Self { value: self.value.exp(), derivative: self.derivative * self.value.exp() }
    }

    fn ln(self) -> Self {
        Self { value: self.value.ln(), derivative: self.derivative / self.value }
    }

    fn relu(self) -> Self {
        if self.value > 0.0 { self } else { constant(0.0) }
    }
}

type Rows = Vec<Vec<Jet>>;

/// A layer: its terms, its bias, and whether a ReLU follows.
struct DenseLayer {
    terms: Vec<DenseTerm>,
    bias: Vec<Jet>,
    relu: bool,
}

struct DenseTerm {
    source: Source,
    /// P, nodes × nodes.
    propagation: Vec<Vec<f64>>,
    /// W, inputs × units, also where it is a multiple of the identity.
    weight: Rows,
}

/// The parameters with a derivative of 1 at one of them.
pub(super) struct Dense<'a> {
    graph: &'a Graph,
    limits: &'a Limits,
    layers: Vec<DenseLayer>,
}

impl<'a> Dense<'a> {
    /// `parameter` is the number of the tensor (those of layer 0, b0, those of layer 1, …) and the position in it.
    pub(super) fn new(
        graph: &'a Graph,
        limits: &'a Limits,
        matrices: &[SparseMatrix],
        model: &Model,
        parameter: (usize, usize),
    ) -> Self {
        let mut tensors = model.tensors().enumerate().map(|(tensor, values)| {
            let jet = |(i, &value)| Jet { value, derivative: f64::from((tensor, i) == parameter) };
            values.iter().enumerate().map(jet).collect::<Vec<Jet>>()
        });
        let mut next = || tensors.next().expect("as many tensors as the model has");
        let mut layers = Vec::new();
        for layer in model.layers() {
            let units = layer.units();
            let mut weight = |weight: &Weight| -> Rows {
                match weight {
                    Weight::Dense(_) => next().chunks(units).map(<[Jet]>::to_vec).collect(),
                    Weight::Scalar(factor) => (0..units).map(|i| unit_vector(units, i, *factor)).collect(),
                }
            };
            let terms = layer.terms().iter().map(|term| DenseTerm {
                source: term.source(),
                propagation: spelled_out(&matrices[term.propagation()]),
                weight: weight(term.weight()),
            });
            let terms = terms.collect();
            let relu = match layer.activation() {
                Activation::Relu => true,
                Activation::None => false,
                Activation::LeakyRelu(_) => unreachable!("no architecture has it"),
            };
            layers.push(DenseLayer { terms, bias: next(), relu });
        }
        Self { graph, limits, layers }
    }

    fn has(&self, n: usize, d: usize) -> bool {
        self.graph.attributes().contains(n, d as u32)
    }

    /// +1 or −1, or `None` for a flip that is not allowed.
    fn sign(&self, n: usize, d: usize) -> Option<f64> {
        let has = self.has(n, d);
        let allowed = if has { self.limits.deletions() } else { self.limits.additions() };
        (allowed && self.limits.flippable(AttributeId(d as u32))).then_some(if has { -1.0 } else { 1.0 })
    }

    /// The sum of the largest gains: of each row n its q_n largest, of those the Q largest.
    fn best(&self, gain: impl Fn(usize, usize, f64) -> Jet) -> Jet {
        let falling = |a: &Jet, b: &Jet| b.value.partial_cmp(&a.value).unwrap_or(Ordering::Equal);
        let mut all = Vec::new();
        for n in 0..self.graph.nodes() {
            let attributes = 0..self.graph.attribute_count();
            let mut row: Vec<Jet> = attributes.filter_map(|d| self.sign(n, d).map(|sign| gain(n, d, sign))).collect();
            row.retain(|gain| gain.value > 0.0);
            row.sort_by(falling);
            row.truncate(self.limits.local(NodeId(n as u32)));
            all.extend(row);
        }
        all.sort_by(falling);
        all.truncate(self.limits.global());
        all.into_iter().sum()
    }

    /// What a term reads, from the pre-activations so far.
    fn input(&self, source: Source, so_far: &[Rows]) -> Rows {
        let (nodes, attributes) = (self.graph.nodes(), self.graph.attribute_count());
        match source {
            Source::Attributes => {
                (0..nodes).map(|n| (0..attributes).map(|d| constant(f64::from(self.has(n, d)))).collect()).collect()
            }
            Source::Layer(i) => {
                so_far[i].iter().map(|row| row.iter().map(|&z| self.activated(i, z)).collect()).collect()
            }
            Source::Ones => vec![vec![constant(1.0)]; nodes],
        }
    }

    fn activated(&self, layer: usize, z: Jet) -> Jet {
        if self.layers[layer].relu { z.relu() } else { z }
    }

    /// The bias and those terms of a layer for which `wanted` says yes.
    fn sum(&self, layer: &DenseLayer, so_far: &[Rows], wanted: impl Fn(Source) -> bool) -> Rows {
        let mut z = vec![layer.bias.clone(); self.graph.nodes()];
        for term in layer.terms.iter().filter(|term| wanted(term.source)) {
            let x = self.input(term.source, so_far);
            let sent = |x: &Vec<Jet>, j: usize| -> Jet { x.iter().zip(&term.weight).map(|(&x, w)| x * w[j]).sum() };
            let sent: Rows = x.iter().map(|x| (0..layer.bias.len()).map(|j| sent(x, j)).collect()).collect();
            for (z, row) in z.iter_mut().zip(&term.propagation) {
                for (j, z) in z.iter_mut().enumerate() {
                    *z = *z + row.iter().zip(&sent).map(|(&p, sent)| constant(p) * sent[j]).sum();
                }
            }
        }
        z
    }

    /// Pre-activations of every layer; the last are logits.
    fn clean(&self) -> Vec<Rows> {
        let mut all = Vec::new();
        for layer in &self.layers {
            let z = self.sum(layer, &all, |_| true);
            all.push(z);
        }
        all
    }

    /// lo and hi of every layer but the last: exact for what a layer makes of the attributes, plus intervals.
    fn bounds(&self) -> Vec<[Rows; 2]> {
        let mut all: Vec<[Rows; 2]> = Vec::new();
        for layer in &self.layers[..self.layers.len() - 1] {
            let start = self.sum(layer, &[], |source| !matches!(source, Source::Layer(_)));
            let (mut lo, mut hi) = (start.clone(), start);
            for m in 0..self.graph.nodes() {
                for j in 0..layer.bias.len() {
                    let of_attributes = || layer.terms.iter().filter(|term| term.source == Source::Attributes);
                    let gain = |direction: f64| {
                        self.best(|n, d, sign| {
                            let moves =
                                |t: &DenseTerm| constant(direction * t.propagation[m][n] * sign) * t.weight[d][j];
                            of_attributes().map(moves).sum()
                        })
                    };
                    if of_attributes().next().is_some() {
                        (lo[m][j], hi[m][j]) = (lo[m][j] - gain(-1.0), hi[m][j] + gain(1.0));
                    }
                    for term in &layer.terms {
                        let Source::Layer(source) = term.source else { continue };
                        for n in (0..self.graph.nodes()).filter(|&n| term.propagation[m][n] != 0.0) {
                            for (i, w) in term.weight.iter().enumerate() {
                                let factor = constant(term.propagation[m][n]) * w[j];
                                let end = |low: bool| {
                                    let side = usize::from((factor.value >= 0.0) != low);
                                    factor * self.activated(source, all[source][side][n][i])
                                };
                                (lo[m][j], hi[m][j]) = (lo[m][j] + end(true), hi[m][j] + end(false));
                            }
                        }
                    }
                }
            }
            all.push([lo, hi]);
        }
        all
    }

    /// The coefficient that the line of a ReLU between `lo` and `hi` passes on, and what its offset adds at worst.
    fn through_line(lo: Jet, hi: Jet, alpha: Jet) -> (Jet, Jet) {
        if lo.value >= 0.0 {
            return (alpha, constant(0.0));
        }
        if hi.value <= 0.0 {
            return (constant(0.0), constant(0.0));
        }
        let slope = hi * (hi - lo).reciprocal();
        let offset = if alpha.value < 0.0 { constant(-1.0) * alpha * slope * lo } else { constant(0.0) };
        (alpha * slope, offset)
    }

    /// The dual of `logit_y − logit_k` of node `t`.
    fn dual(&self, bounds: &[[Rows; 2]], t: usize, y: usize, k: usize) -> Jet {
        let nodes = self.graph.nodes();
        let zeros = |layer: &DenseLayer| vec![vec![constant(0.0); layer.bias.len()]; nodes];
        // Coefficients of activations, and then of pre-activations, of each layer.
        let mut lambdas: Vec<Rows> = self.layers.iter().map(zeros).collect();
        let last = self.layers.len() - 1;
        (lambdas[last][t][y], lambdas[last][t][k]) = (constant(1.0), constant(-1.0));
        let mut value = constant(0.0);
        for (i, layer) in self.layers.iter().enumerate().rev() {
            if layer.relu {
                let [lo, hi] = &bounds[i];
                for (n, lambda) in lambdas[i].iter_mut().enumerate() {
                    for (j, lambda) in lambda.iter_mut().enumerate() {
                        let (passed_on, offset) = Self::through_line(lo[n][j], hi[n][j], *lambda);
                        (*lambda, value) = (passed_on, value + offset);
                    }
                }
            }
            let own = self.sum(layer, &[], |source| !matches!(source, Source::Layer(_)));
            for (lambda, own) in lambdas[i].iter().zip(&own) {
                value = value + lambda.iter().zip(own).map(|(&l, &z)| l * z).sum();
            }
            for term in &layer.terms {
                let Source::Layer(source) = term.source else { continue };
                let (below, above) = lambdas.split_at_mut(i);
                for (lambda, row) in above[0].iter().zip(&term.propagation) {
                    for (input, w) in term.weight.iter().enumerate() {
                        let back: Jet = lambda.iter().zip(w).map(|(&l, &w)| l * w).sum();
                        let columns = below[source].iter_mut().zip(row);
                        columns.for_each(|(below, &p)| below[input] = below[input] + constant(p) * back);
                    }
                }
            }
        }
        value - self.best(|n, d, sign| constant(-sign) * self.pull(&lambdas, n, d))
    }

    /// What attribute d at node n adds, given the coefficients of all pre-activations.
    fn pull(&self, lambdas: &[Rows], n: usize, d: usize) -> Jet {
        let mut sum = constant(0.0);
        for (layer, lambda) in self.layers.iter().zip(lambdas) {
            for term in layer.terms.iter().filter(|term| term.source == Source::Attributes) {
                for (lambda, row) in lambda.iter().zip(&term.propagation).filter(|(_, row)| row[n] != 0.0) {
                    let back: Jet = lambda.iter().zip(&term.weight[d]).map(|(&l, &w)| l * w).sum();
                    sum = sum + constant(row[n]) * back;
                }
            }
        }
        sum
    }

    /// The mean loss of `targets`.
    pub(super) fn loss(&self, targets: &[Target]) -> Jet {
        let clean = self.clean();
        let bounds = self.bounds();
        let losses = targets.iter().map(|target| {
            let t = target.node.index();
            let logits = &clean[clean.len() - 1][t];
            let falling = |a: &usize, b: &usize| logits[*a].value.total_cmp(&logits[*b].value);
            let predicted = (0..logits.len()).max_by(falling).unwrap();
            let y = target.class.map_or(predicted, |class| class.index());
            let duals = (0..logits.len()).filter(|&k| k != y).map(|k| self.dual(&bounds, t, y, k));
            match target.goal {
                Goal::Hinge { margin, saturation } => duals
                    .map(|dual| {
                        let missing = (constant(margin) - dual).relu();
                        let Some(s) = saturation else { return missing };
                        constant(s) * (constant(1.0) + constant(1.0 / s) * missing).ln()
                    })
                    .sum(),
                Goal::CrossEntropy => (constant(1.0) + duals.map(|dual| (constant(-1.0) * dual).exp()).sum()).ln(),
            }
        });
        constant(1.0 / targets.len() as f64) * losses.sum()
    }
}

/// So many units, all 0 but one.
fn unit_vector(units: usize, at: usize, value: f64) -> Vec<Jet> {
    (0..units).map(|unit| constant(if unit == at { value } else { 0.0 })).collect()
}

/// All entries, row by row.
fn spelled_out(matrix: &SparseMatrix) -> Vec<Vec<f64>> {
    let row = |m: usize| {
        let mut entries = vec![0.0; matrix.pattern().columns()];
        let (columns, values) = matrix.row(m);
        columns.iter().zip(values).for_each(|(&n, &p)| entries[n as usize] = p);
        entries
    };
    (0..matrix.rows()).map(row).collect()
}

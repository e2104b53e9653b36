//! The robust losses from the plain formulas, densely, with derivatives carried along number by number (forward mode).
//! Shares no code with the engines.

use std::cmp::Ordering;
use std::iter::Sum;
use std::ops::{Add, Mul, Sub};

use crate::budget::Limits;
use crate::graph::Graph;
use crate::ids::{AttributeId, NodeId};
use crate::model::Model;
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

/// The parameters with a derivative of 1 at one of them.
pub(super) struct Dense<'a> {
    graph: &'a Graph,
    limits: &'a Limits,
    propagation: Vec<Vec<f64>>,
    weights: Vec<Rows>,
    biases: Vec<Vec<Jet>>,
}

impl<'a> Dense<'a> {
    /// `parameter` is the number of the tensor (W0, b0, W1, …) and the position in it.
    pub(super) fn new(
        graph: &'a Graph,
        limits: &'a Limits,
        propagation: &SparseMatrix,
        model: &Model,
        parameter: (usize, usize),
    ) -> Self {
        let tensors: Vec<Vec<Jet>> = model
            .tensors()
            .enumerate()
            .map(|(tensor, values)| {
                let jet = |(i, &value)| Jet { value, derivative: f64::from((tensor, i) == parameter) };
                values.iter().enumerate().map(jet).collect()
            })
            .collect();
        let rows = |(layer, values): (usize, &Vec<Jet>)| {
            values.chunks(model.layers()[layer].bias().len()).map(<[Jet]>::to_vec).collect()
        };
        let mut dense = vec![vec![0.0; graph.nodes()]; graph.nodes()];
        for (m, row) in dense.iter_mut().enumerate() {
            let (columns, values) = propagation.row(m);
            columns.iter().zip(values).for_each(|(&n, &p)| row[n as usize] = p);
        }
        Self {
            graph,
            limits,
            propagation: dense,
            weights: tensors.iter().step_by(2).enumerate().map(rows).collect(),
            biases: tensors.iter().skip(1).step_by(2).cloned().collect(),
        }
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

    /// `P x`.
    fn propagate(&self, x: &Rows) -> Rows {
        let entry = |row: &Vec<f64>, j: usize| row.iter().zip(x).map(|(&p, x)| constant(p) * x[j]).sum();
        self.propagation.iter().map(|row| (0..x[0].len()).map(|j| entry(row, j)).collect()).collect()
    }

    /// `x W + b`.
    fn transform(&self, layer: usize, x: &Rows) -> Rows {
        let (weight, bias) = (&self.weights[layer], &self.biases[layer]);
        let entry = |x: &Vec<Jet>, u: usize| bias[u] + x.iter().zip(weight).map(|(&x, w)| x * w[u]).sum();
        x.iter().map(|x| (0..bias.len()).map(|u| entry(x, u)).collect()).collect()
    }

    /// Pre-activations of every layer; the last are logits.
    fn clean(&self) -> Vec<Rows> {
        let (nodes, attributes) = (self.graph.nodes(), self.graph.attribute_count());
        let x: Rows =
            (0..nodes).map(|n| (0..attributes).map(|d| constant(f64::from(self.has(n, d)))).collect()).collect();
        let mut all = vec![self.transform(0, &self.propagate(&x))];
        for layer in 1..self.weights.len() {
            let active: Rows = all[layer - 1].iter().map(|row| row.iter().map(|z| z.relu()).collect()).collect();
            all.push(self.transform(layer, &self.propagate(&active)));
        }
        all
    }

    /// lo and hi of every hidden layer.
    fn bounds(&self, clean: &[Rows]) -> Vec<[Rows; 2]> {
        let mut all: Vec<[Rows; 2]> = Vec::new();
        for layer in 0..self.weights.len() - 1 {
            let weight = &self.weights[layer];
            let (mut lo, mut hi) = (clean[layer].clone(), clean[layer].clone());
            for m in 0..self.graph.nodes() {
                for j in 0..self.biases[layer].len() {
                    if layer == 0 {
                        let gain = |direction: f64| {
                            self.best(|n, d, sign| constant(direction * self.propagation[m][n] * sign) * weight[d][j])
                        };
                        hi[m][j] = hi[m][j] + gain(1.0);
                        lo[m][j] = lo[m][j] - gain(-1.0);
                    } else {
                        let end = |low: bool| -> Jet {
                            let term = |n: usize, i: usize| {
                                let w = weight[i][j];
                                let side = usize::from((w.value >= 0.0) != low);
                                constant(self.propagation[m][n]) * w * all[layer - 1][side][n][i].relu()
                            };
                            let nodes = 0..self.graph.nodes();
                            self.biases[layer][j]
                                + nodes
                                    .flat_map(|n| (0..weight.len()).map(move |i| (n, i)))
                                    .map(|(n, i)| term(n, i))
                                    .sum()
                        };
                        (lo[m][j], hi[m][j]) = (end(true), end(false));
                    }
                }
            }
            all.push([lo, hi]);
        }
        all
    }

    /// The dual of `logit_y − logit_k` of node `t`.
    fn dual(&self, clean: &[Rows], bounds: &[[Rows; 2]], t: usize, y: usize, k: usize) -> Jet {
        let nodes = self.graph.nodes();
        let classes = clean[clean.len() - 1][0].len();
        let mut lambda: Rows = vec![vec![constant(0.0); classes]; nodes];
        (lambda[t][y], lambda[t][k]) = (constant(1.0), constant(-1.0));
        let mut value = constant(0.0);
        for layer in (1..self.weights.len()).rev() {
            let weight = &self.weights[layer];
            let mut below: Rows = vec![vec![constant(0.0); weight.len()]; nodes];
            for (lambda, row) in lambda.iter().zip(&self.propagation) {
                value = value + lambda.iter().zip(&self.biases[layer]).map(|(&l, &b)| l * b).sum();
                for (i, w) in weight.iter().enumerate() {
                    let back: Jet = lambda.iter().zip(w).map(|(&l, &w)| l * w).sum();
                    below.iter_mut().zip(row).for_each(|(below, &p)| below[i] = below[i] + constant(p) * back);
                }
            }
            let [lo, hi] = &bounds[layer - 1];
            for n in 0..nodes {
                for i in 0..weight.len() {
                    let (lo, hi, alpha) = (lo[n][i], hi[n][i], below[n][i]);
                    below[n][i] = if lo.value >= 0.0 {
                        alpha
                    } else if hi.value <= 0.0 {
                        constant(0.0)
                    } else {
                        let slope = hi * (hi - lo).reciprocal();
                        if alpha.value < 0.0 {
                            value = value - alpha * slope * lo;
                        }
                        alpha * slope
                    };
                }
            }
            lambda = below;
        }
        for (lambda, z) in lambda.iter().zip(&clean[0]) {
            value = value + lambda.iter().zip(z).map(|(&l, &z)| l * z).sum();
        }
        let pull =
            |n: usize, j: usize| -> Jet { (0..nodes).map(|m| constant(self.propagation[m][n]) * lambda[m][j]).sum() };
        let units = self.biases[0].len();
        let pulls: Rows = (0..nodes).map(|n| (0..units).map(|j| pull(n, j)).collect()).collect();
        value
            - self.best(|n, d, sign| {
                constant(-sign) * pulls[n].iter().zip(&self.weights[0][d]).map(|(&p, &w)| p * w).sum()
            })
    }

    /// The mean loss of `targets`.
    pub(super) fn loss(&self, targets: &[Target]) -> Jet {
        let clean = self.clean();
        let bounds = self.bounds(&clean);
        let losses = targets.iter().map(|target| {
            let t = target.node.index();
            let logits = &clean[clean.len() - 1][t];
            let falling = |a: &usize, b: &usize| logits[*a].value.total_cmp(&logits[*b].value);
            let predicted = (0..logits.len()).max_by(falling).unwrap();
            let y = target.class.map_or(predicted, |class| class.index());
            let duals = (0..logits.len()).filter(|&k| k != y).map(|k| self.dual(&clean, &bounds, t, y, k));
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

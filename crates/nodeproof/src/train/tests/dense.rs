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

    /// X_nd, as the network reads it.
    fn attribute(&self, n: usize, d: usize) -> f64 {
        match self.graph.values() {
            Some(values) => values.get(NodeId(n as u32), AttributeId(d as u32)),
            None => f64::from(self.has(n, d)) / self.divisor(self.graph.attributes().row(n).len()),
        }
    }

    fn divisor(&self, ones: usize) -> f64 {
        if self.graph.kind().is_normalised() { ones.max(1) as f64 } else { 1.0 }
    }

    /// Whether a flip is allowed.
    fn may(&self, n: usize, d: usize) -> bool {
        let direction = if self.has(n, d) { self.limits.deletions() } else { self.limits.additions() };
        direction && self.limits.flippable(AttributeId(d as u32))
    }

    /// What each admissible change of row n moves the sum by, given what each of its entries adds to it: with the number of flips. Where entries
    /// do not depend on each other, those of one flip.
    fn changes(&self, n: usize, pull: &[Jet]) -> Vec<(usize, Jet)> {
        let entries = 0..pull.len();
        if let Some(values) = self.graph.values() {
            let node = NodeId(n as u32);
            let ends = |d: usize| {
                let range = self.limits.range(values, node, AttributeId(d as u32)).into_iter();
                range.flat_map(|(low, high)| [low, high]).map(move |end| constant(end - self.attribute(n, d)) * pull[d])
            };
            return entries.flat_map(ends).map(|change| (1, change)).collect();
        }
        if !self.graph.kind().is_normalised() {
            let change = |d: usize| constant(if self.has(n, d) { -1.0 } else { 1.0 }) * pull[d];
            return entries.filter(|&d| self.may(n, d)).map(|d| (1, change(d))).collect();
        }
        let mut all = Vec::new();
        for set in 1u32..1 << pull.len() {
            let flipped = |d: usize| set >> d & 1 == 1;
            if entries.clone().any(|d| flipped(d) && !self.may(n, d)) {
                continue;
            }
            let ones = entries.clone().filter(|&d| self.has(n, d) != flipped(d));
            let divisor = self.divisor(ones.clone().count());
            let after: Jet = ones.map(|d| constant(1.0 / divisor) * pull[d]).sum();
            let before: Jet = entries.clone().map(|d| constant(self.attribute(n, d)) * pull[d]).sum();
            all.push((set.count_ones() as usize, after - before));
        }
        all
    }

    /// The most that admissible changes move a sum by, `pull(n, d)` being what entry d of row n adds to it.
    fn best(&self, pull: impl Fn(usize, usize) -> Jet) -> Jet {
        let falling = |a: &Jet, b: &Jet| b.value.partial_cmp(&a.value).unwrap_or(Ordering::Equal);
        let larger = |a: Jet, b: Jet| if b.value > a.value { b } else { a };
        let most = |n: usize| self.limits.local(NodeId(n as u32)).min(self.limits.global());
        // The most that at most 0, 1, … flips move it by.
        let rows = (0..self.graph.nodes()).filter(|&n| most(n) > 0);
        let flips = rows.clone().map(|n| most(n).min(self.graph.attribute_count())).sum::<usize>();
        let mut totals = vec![constant(0.0); flips.min(self.limits.global()) + 1];
        for n in rows {
            let pull: Vec<Jet> = (0..self.graph.attribute_count()).map(|d| pull(n, d)).collect();
            let changes = self.changes(n, &pull);
            let mut of_row = vec![constant(0.0); most(n).min(pull.len()) + 1];
            if self.graph.kind().is_normalised() {
                for (flips, change) in changes {
                    of_row.iter_mut().skip(flips).for_each(|best| *best = larger(*best, change));
                }
            } else {
                let mut gains: Vec<Jet> = changes.into_iter().map(|(_, change)| change).collect();
                gains.retain(|gain| gain.value > 0.0);
                gains.sort_by(falling);
                for k in 1..of_row.len() {
                    of_row[k] = of_row[k - 1] + gains.get(k - 1).copied().unwrap_or(constant(0.0));
                }
            }
            for flips in (1..totals.len()).rev() {
                let shares = of_row.iter().enumerate().take(flips + 1);
                totals[flips] = shares.map(|(k, &gain)| totals[flips - k] + gain).reduce(larger).unwrap();
            }
        }
        totals[totals.len() - 1]
    }

    /// What a term reads, from the pre-activations so far.
    fn input(&self, source: Source, so_far: &[Rows]) -> Rows {
        let (nodes, attributes) = (self.graph.nodes(), self.graph.attribute_count());
        match source {
            Source::Attributes => {
                (0..nodes).map(|n| (0..attributes).map(|d| constant(self.attribute(n, d))).collect()).collect()
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
                        self.best(|n, d| {
                            let pull = |t: &DenseTerm| constant(direction * t.propagation[m][n]) * t.weight[d][j];
                            of_attributes().map(pull).sum()
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
        value - self.best(|n, d| constant(-1.0) * self.pull(&lambdas, n, d))
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

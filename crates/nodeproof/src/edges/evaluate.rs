//! The network where edges are gone, evaluated on what one target sees.

use std::collections::HashMap;

use super::Problem;
use super::mixing::has_loop;
use super::subproblem::Subproblem;
use crate::dense::add_scaled;
use crate::ids::NodeId;
use crate::model::{Source, Weight};

/// Numbers, and magnitudes of what they are sums of.
#[derive(Debug, Clone)]
pub(super) struct Sized {
    pub(super) values: Vec<f64>,
    pub(super) sizes: Vec<f64>,
}

impl Sized {
    fn zeros(width: usize) -> Self {
        Self { values: vec![0.0; width], sizes: vec![0.0; width] }
    }

    fn add(&mut self, factor: f64, other: &Self) {
        add_scaled(&mut self.values, factor, &other.values);
        add_scaled(&mut self.sizes, factor.abs(), &other.sizes);
    }
}

/// The logits of a target, and at most how far rounding has taken them from those of the network whose propagations are computed in
/// doubles on the graph without the edges.
#[derive(Debug, Clone)]
pub(super) struct Logits {
    pub(super) values: Vec<f64>,
    pub(super) errors: Vec<f64>,
}

impl Logits {
    /// The lead of y over k, rounded down and up.
    pub(super) fn margin(&self, y: usize, k: usize) -> (f64, f64) {
        let (lead, error) = (self.values[y] - self.values[k], self.errors[y] + self.errors[k]);
        let error = error + 4.0 * f64::EPSILON * (lead.abs() + error) + FLOOR;
        (lead - error, lead + error)
    }
}

/// More than what underflows on the way to a margin comes to, in networks of tame numbers.
pub(super) const FLOOR: f64 = 1e-40;

/// What nodes make of their attributes, remembered from one evaluation to the next.
#[derive(Debug, Default)]
pub(super) struct Sent {
    known: HashMap<NodeId, Sized>,
}

impl Sent {
    /// `X_n W` of a node for the weights of all terms that read the attributes, side by side.
    pub(super) fn of(&mut self, problem: &Problem, node: NodeId) -> &Sized {
        self.known.entry(node).or_insert_with(|| {
            let (graph, weight) = (problem.network.graph(), problem.network.attribute_weight());
            let mut sums = Sized::zeros(weight.columns());
            for (attribute, value) in graph.entries_of(node) {
                let row = weight.row(attribute.index());
                add_scaled(&mut sums.values, value, row);
                sums.sizes.iter_mut().zip(row).for_each(|(size, w)| *size += (value * w).abs());
            }
            let divisor = graph.kind().divisor(graph.attributes().row(node.index()).len());
            if divisor != 1.0 {
                sums.values.iter_mut().chain(&mut sums.sizes).for_each(|sum| *sum /= divisor);
            }
            sums
        })
    }
}

/// Layer by layer the nodes whose units the target reads there.
pub(super) fn levels(problem: &Problem, sub: &Subproblem, target: NodeId) -> Vec<Vec<NodeId>> {
    let (graph, layers) = (problem.network.graph(), problem.network.layers());
    let mut levels = vec![Vec::new(); layers.len()];
    levels[layers.len() - 1].push(target);
    for (i, layer) in layers.iter().enumerate().rev() {
        let mut nodes = std::mem::take(&mut levels[i]);
        nodes.sort_unstable();
        nodes.dedup();
        for term in layer.terms() {
            if let Source::Layer(source) = term.source() {
                levels[source].extend(&nodes);
                if problem.shares[term.propagation()].mixed != 0.0 {
                    levels[source].extend(nodes.iter().flat_map(|&node| sub.neighbours(graph, node)));
                }
            }
        }
        levels[i] = nodes;
    }
    levels
}

/// The logits of `target` on the graph without the edges that are deleted.
pub(super) fn logits(problem: &Problem, sent: &mut Sent, sub: &Subproblem, target: NodeId) -> Logits {
    let (graph, layers) = (problem.network.graph(), problem.network.layers());
    let mut known: Vec<HashMap<NodeId, Sized>> = Vec::with_capacity(layers.len());
    let mut longest = 0;
    for (i, nodes) in levels(problem, sub, target).iter().enumerate() {
        let layer = &layers[i];
        let made = nodes.iter().map(|&node| {
            let mut unit =
                Sized { values: layer.bias().to_vec(), sizes: layer.bias().iter().map(|b| b.abs()).collect() };
            let degree = sub.degree(graph, node);
            longest = longest.max(degree);
            for (place, term) in layer.terms().iter().enumerate() {
                let share = problem.shares[term.propagation()];
                let columns = problem.network.attribute_columns(i, place);
                let width = match term.source() {
                    Source::Attributes => layer.units(),
                    Source::Layer(source) => layers[source].units(),
                    Source::Ones => 1,
                };
                let mut sums = Sized::zeros(width);
                let mut add = |factor: f64, from: NodeId| match term.source() {
                    _ if factor == 0.0 => {}
                    Source::Attributes => {
                        let all = sent.of(problem, from);
                        add_scaled(&mut sums.values, factor, &all.values[columns.clone()]);
                        add_scaled(&mut sums.sizes, factor.abs(), &all.sizes[columns.clone()]);
                    }
                    Source::Layer(source) => sums.add(factor, &known[source][&from]),
                    Source::Ones => sums.add(factor, &Sized { values: vec![1.0], sizes: vec![1.0] }),
                };
                // One after the other, as they may cancel.
                add(share.identity, node);
                add(share.mixed * share.mixing.own(degree, has_loop(graph, node)), node);
                if share.mixed != 0.0 {
                    let into = share.mixed * share.mixing.into(degree);
                    for other in sub.neighbours(graph, node).filter(|&other| other != node) {
                        add(into * share.mixing.from(sub.degree(graph, other)), other);
                    }
                }
                match (term.source(), term.weight()) {
                    (Source::Attributes, _) => unit.add(1.0, &sums),
                    (_, weight) => add_product(&mut unit, &sums, weight),
                }
            }
            if i + 1 < layers.len() {
                let slope = layer.activation().slope();
                unit.values.iter_mut().for_each(|z| *z = if *z > 0.0 { *z } else { slope * *z });
            }
            (node, unit)
        });
        let made = made.collect();
        known.push(made);
    }
    let last = known.pop().and_then(|mut last| last.remove(&target)).unwrap_or_else(|| Sized::zeros(0));
    let relative = problem.relative_error(longest);
    Logits { values: last.values, errors: last.sizes.iter().map(|size| size * relative).collect() }
}

fn add_product(unit: &mut Sized, sums: &Sized, weight: &Weight) {
    match weight {
        Weight::Scalar(factor) => unit.add(*factor, sums),
        Weight::Dense(dense) => {
            for (input, (&value, &size)) in sums.values.iter().zip(&sums.sizes).enumerate() {
                let row = dense.row(input);
                add_scaled(&mut unit.values, value, row);
                unit.sizes.iter_mut().zip(row).for_each(|(sum, w)| *sum += size * w.abs());
            }
        }
    }
}

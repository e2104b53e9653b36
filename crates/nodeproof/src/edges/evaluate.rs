//! The network where edges are gone, evaluated on what one target sees.

use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use super::Problem;
use super::mixing::has_loop;
use super::subproblem::Subproblem;
use crate::dense::add_scaled;
use crate::forward::{Carried, Magnitudes, Values};
use crate::ids::NodeId;
use crate::model::{Source, Term, Weight};

/// Sums, and the magnitudes of what they add up.
#[derive(Debug, Clone, Default)]
pub(super) struct Sums {
    pub(super) values: Vec<f64>,
    pub(super) sizes: Vec<f64>,
}

impl Sums {
    pub(super) fn zeros(width: usize) -> Self {
        Self { values: vec![0.0; width], sizes: vec![0.0; width] }
    }

    pub(super) fn exact(values: Vec<f64>) -> Self {
        let sizes = values.iter().map(|x| x.abs()).collect();
        Self { values, sizes }
    }

    /// Adds a multiple of some of the columns of others.
    pub(super) fn add_columns(&mut self, factor: f64, other: &Self, columns: Range<usize>) {
        add_scaled(&mut self.values, factor, &other.values[columns.clone()]);
        add_scaled(&mut self.sizes, factor.abs(), &other.sizes[columns]);
    }

    /// Adds a multiple of others.
    pub(super) fn add(&mut self, factor: f64, other: &Self) {
        self.add_columns(factor, other, 0..other.values.len());
    }

    /// Adds `sums · W`.
    fn add_product(&mut self, sums: &Self, weight: &Weight) {
        Values::add_product(&mut self.values, &sums.values, weight);
        Magnitudes::add_product(&mut self.sizes, &sums.sizes, weight);
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

/// What nodes make of their attributes, remembered from one evaluation to the next, and units of the graph where nothing is deleted.
#[derive(Debug, Default)]
pub(super) struct Sent {
    known: HashMap<NodeId, Sums>,
    whole: HashMap<(usize, NodeId), Rc<Sums>>,
}

impl Sent {
    /// `X_n W` of a node for the weights of all terms that read the attributes, side by side.
    pub(super) fn of(&mut self, problem: &Problem, node: NodeId) -> &Sums {
        self.known.entry(node).or_insert_with(|| {
            let (graph, weight) = (problem.network.graph(), problem.network.attribute_weight());
            let mut sums = Sums::zeros(weight.columns());
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
    let mut known = Vec::with_capacity(layers.len());
    let mut longest = 0;
    for (i, nodes) in levels(problem, sub, target).iter().enumerate() {
        let mut made = HashMap::with_capacity(nodes.len());
        for &node in nodes {
            longest = longest.max(sub.degree(graph, node));
            made.insert(node, sent.unit(problem, sub, &known, (i, node)));
        }
        known.push(made);
    }
    let last = known.pop().and_then(|mut last| last.remove(&target)).unwrap_or_default();
    let relative = problem.relative_error(longest);
    Logits { values: last.values.clone(), errors: last.sizes.iter().map(|size| size * relative).collect() }
}

/// Of each layer below: the units of the nodes that the target reads.
type Units = [HashMap<NodeId, Rc<Sums>>];

impl Sent {
    /// A unit of a layer; one of which deletions change nothing is computed once only.
    fn unit(&mut self, problem: &Problem, sub: &Subproblem, known: &Units, (i, node): (usize, NodeId)) -> Rc<Sums> {
        let graph = problem.network.graph();
        let reads_layers = |term: &Term| matches!(term.source(), Source::Layer(_));
        let sees = |end: NodeId| end == node || graph.adjacency().row(node.index()).binary_search(&end.0).is_ok();
        let is_whole = !problem.network.layers()[i].terms().iter().any(reads_layers)
            && !sub.deleted.iter().flat_map(|edge| edge.ends()).any(sees);
        if !is_whole {
            return Rc::new(self.computed(problem, sub, known, (i, node)));
        }
        if let Some(unit) = self.whole.get(&(i, node)) {
            return Rc::clone(unit);
        }
        let unit = Rc::new(self.computed(problem, sub, known, (i, node)));
        self.whole.insert((i, node), Rc::clone(&unit));
        unit
    }

    /// A unit of a layer, from the nodes that are left beside it.
    fn computed(&mut self, problem: &Problem, sub: &Subproblem, known: &Units, (i, node): (usize, NodeId)) -> Sums {
        let (graph, layers) = (problem.network.graph(), problem.network.layers());
        let (layer, degree) = (&layers[i], sub.degree(graph, node));
        let mut unit = Sums::exact(layer.bias().to_vec());
        for (place, term) in layer.terms().iter().enumerate() {
            let share = problem.shares[term.propagation()];
            let columns = problem.network.attribute_columns(i, place);
            let width = match term.source() {
                Source::Attributes => layer.units(),
                Source::Layer(source) => layers[source].units(),
                Source::Ones => 1,
            };
            let mut sums = Sums::zeros(width);
            let mut add = |factor: f64, from: NodeId| match term.source() {
                _ if factor == 0.0 => {}
                Source::Attributes => sums.add_columns(factor, self.of(problem, from), columns.clone()),
                Source::Layer(source) => sums.add(factor, &known[source][&from]),
                Source::Ones => sums.add(factor, &Sums { values: vec![1.0], sizes: vec![1.0] }),
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
                (_, weight) => unit.add_product(&sums, weight),
            }
        }
        if i + 1 < layers.len() {
            let slope = layer.activation().slope();
            unit.values.iter_mut().for_each(|z| *z = if *z > 0.0 { *z } else { slope * *z });
        }
        unit
    }
}

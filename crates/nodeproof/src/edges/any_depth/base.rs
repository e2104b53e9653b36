//! The network on the graph without the edges that are deleted already.

use super::super::Problem;
use super::super::mixing::Mixing;
use super::super::subproblem::Subproblem;
use super::region::{NOWHERE, Region};
use crate::dense::{Matrix, add_scaled};
use crate::model::{Source, Term, Weight};

/// A part of the pre-activations of a layer: what its terms gather of other nodes by one mixing whose rows change with degrees; or all that
/// does not.
pub(super) type Part = Option<Mixing>;

/// The parts of a layer.
pub(super) fn parts(problem: &Problem, layer: usize) -> Vec<Part> {
    let terms = problem.network.layers()[layer].terms();
    let mut parts = Vec::new();
    for part in terms.iter().flat_map(|term| parts_of(problem, term)).flatten() {
        if !parts.contains(&part) {
            parts.push(part);
        }
    }
    parts
}

/// The parts that a term adds to: of its own node, and of others.
pub(super) fn parts_of(problem: &Problem, term: &Term) -> [Option<Part>; 2] {
    let share = problem.shares[term.propagation()];
    let mixed = (share.mixing != Mixing::Sum).then_some(share.mixing);
    [(share.identity != 0.0).then_some(None), (share.mixed != 0.0).then_some(mixed)]
}

/// The mixing by which all parts of a layer are gathered, if there is such a one that rows are divided by: the layer is then made as if its
/// rows were divided as they were, and its biases by more, and what is made is multiplied where it is read.
pub(super) fn scale(problem: &Problem, layer: usize) -> Part {
    let parts = parts(problem, layer);
    if let [part] = parts[..] { part } else { None }
}

/// By how much more a node's row is multiplied once k of its edges are gone; 1 where nothing is left to multiply.
pub(super) fn growth(mixing: Part, degree: usize, k: usize) -> f64 {
    let Some(mixing) = mixing else { return 1.0 };
    let into = mixing.into(degree.saturating_sub(k));
    if into == 0.0 { 1.0 } else { into / mixing.into(degree) }
}

/// What each of k deletions at a node does to what it sends: together they add `sent` k times to the factor of all that it sends, and each takes
/// away `sent + cut` times what was sent over its edge.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Step {
    pub(super) sent: f64,
    pub(super) cut: f64,
}

impl Step {
    /// For a term that mixes like this (or reads the node itself) what is to be multiplied by the growth of `scale`.
    pub(super) fn of(mixing: Part, scale: Part, degree: usize, k: usize) -> Self {
        let from = mixing.map_or(1.0, |mixing| mixing.from(degree.saturating_sub(k)) / mixing.from(degree));
        let sent = (from * growth(scale, degree, k) - 1.0) / k as f64;
        Self { sent, cut: 1.0 + (k as f64 - 1.0) * sent }
    }
}

/// The network at a subproblem's deletions.
#[derive(Debug)]
pub(super) struct Base {
    pub(super) degrees: Vec<usize>,
    /// Of each node the others that are joined to it and are seen.
    pub(super) neighbours: Vec<Vec<u32>>,
    /// Of each propagation: what nodes receive, send, and send to themselves is multiplied by.
    into: Vec<Vec<f64>>,
    from: Vec<Vec<f64>>,
    own: Vec<Vec<f64>>,
    /// Of each layer, for each of its nodes: pre-activations, activations, and [`parts`] side by side.
    pub(super) z: Vec<Matrix>,
    pub(super) h: Vec<Matrix>,
    pub(super) parts: Vec<Matrix>,
    /// The [`scale`] of each layer.
    pub(super) scales: Vec<Part>,
}

impl Base {
    pub(super) fn new(problem: &Problem, region: &Region, sub: &Subproblem) -> Self {
        let graph = problem.network.graph();
        let degrees: Vec<usize> = region.nodes.iter().map(|&node| sub.degree(graph, node)).collect();
        let neighbours = region.nodes.iter().map(|&node| {
            let others = sub.neighbours(graph, node).filter(|&other| other != node);
            others.map(|other| region.number(other)).filter(|&other| other != NOWHERE).collect()
        });
        let neighbours = neighbours.collect();
        let of_all = |of: &dyn Fn(usize, usize) -> f64| -> Vec<Vec<f64>> {
            (0..problem.shares.len()).map(|p| (0..degrees.len()).map(|n| of(p, n)).collect()).collect()
        };
        let into = of_all(&|p, n| problem.shares[p].mixed * problem.shares[p].mixing.into(degrees[n]));
        let from = of_all(&|p, n| problem.shares[p].mixing.from(degrees[n]));
        let own =
            of_all(&|p, n| problem.shares[p].mixed * problem.shares[p].mixing.own(degrees[n], region.has_loop[n]));
        let scales = (0..problem.network.layers().len()).map(|layer| scale(problem, layer)).collect();
        let mut base =
            Self { degrees, neighbours, into, from, own, z: Vec::new(), h: Vec::new(), parts: Vec::new(), scales };
        for layer in 0..problem.network.layers().len() {
            base.add_layer(problem, region, layer);
        }
        base
    }

    /// How many numbers it has, about.
    pub(super) fn size(&self) -> usize {
        let of_layers = self.z.iter().chain(&self.h).chain(&self.parts).map(|matrix| matrix.values().len());
        let of_nodes = (3 * self.into.len() + 4) * self.degrees.len();
        of_layers.sum::<usize>() + of_nodes + self.neighbours.iter().map(Vec::len).sum::<usize>()
    }

    /// The entry of a propagation, multiplied by its share, of two nodes that are joined, or of one and itself.
    pub(super) fn entry(&self, propagation: usize, m: u32, n: u32) -> f64 {
        if m == n {
            return self.own[propagation][m as usize];
        }
        self.into[propagation][m as usize] * self.from[propagation][n as usize]
    }

    /// The nodes that read a node, itself included.
    pub(super) fn readers(&self, n: u32) -> impl Iterator<Item = u32> + '_ {
        self.neighbours[n as usize].iter().copied().chain([n])
    }

    /// The scale of what a term reads.
    pub(super) fn source_scale(&self, term: &Term) -> Part {
        if let Source::Layer(source) = term.source() { self.scales[source] } else { None }
    }

    fn add_layer(&mut self, problem: &Problem, region: &Region, i: usize) {
        let layer = &problem.network.layers()[i];
        let (parts, units, rows) = (parts(problem, i), layer.units(), &region.rows[i]);
        let mut sums = Matrix::zeros(rows.len(), parts.len() * units);
        for (t, term) in layer.terms().iter().enumerate() {
            let offset =
                |part: Option<Part>| part.and_then(|part| parts.iter().position(|&of| of == part)).map(|p| p * units);
            let [identity, mixed] = parts_of(problem, term).map(offset);
            let share = problem.shares[term.propagation()];
            let width = width(problem, i, t);
            for (place, &m) in rows.iter().enumerate() {
                if let Some(offset) = identity {
                    let to = &mut sums.row_mut(place)[offset..offset + units];
                    add_product(to, share.identity, self.read(problem, region, i, t, m), term);
                }
                if let Some(offset) = mixed {
                    let mut gathered = vec![0.0; width];
                    for n in self.readers(m) {
                        let entry = self.entry(term.propagation(), m, n);
                        if entry != 0.0 {
                            add_scaled(&mut gathered, entry, self.read(problem, region, i, t, n));
                        }
                    }
                    add_product(&mut sums.row_mut(place)[offset..offset + units], 1.0, &gathered, term);
                }
            }
        }
        let mut z = Matrix::zeros(rows.len(), units);
        for place in 0..rows.len() {
            let row = z.row_mut(place);
            row.copy_from_slice(layer.bias());
            sums.row(place).chunks_exact(units.max(1)).for_each(|part| add_scaled(row, 1.0, part));
        }
        let mut h = z.clone();
        if i + 1 < problem.network.layers().len() {
            h.values_mut().iter_mut().for_each(|z| *z = layer.activation().of(*z));
        }
        self.z.push(z);
        self.h.push(h);
        self.parts.push(sums);
    }

    /// What a term reads of a node: activations, or what is made of attributes and ones already.
    pub(super) fn read<'b>(
        &'b self,
        problem: &'b Problem,
        region: &'b Region,
        i: usize,
        t: usize,
        n: u32,
    ) -> &'b [f64] {
        let term = &problem.network.layers()[i].terms()[t];
        match term.source() {
            Source::Attributes => &region.sent.row(n as usize)[problem.network.attribute_columns(i, t)],
            Source::Ones => term.weight().values(),
            Source::Layer(source) => self.h[source].row(region.places[source][n as usize] as usize),
        }
    }
}

/// How many numbers a term reads of a node, see [`Base::read`].
pub(super) fn width(problem: &Problem, i: usize, t: usize) -> usize {
    let layers = problem.network.layers();
    match layers[i].terms()[t].source() {
        Source::Layer(source) => layers[source].units(),
        Source::Attributes | Source::Ones => layers[i].units(),
    }
}

/// `to += factor · read · W`, where a layer is read.
pub(super) fn add_product(to: &mut [f64], factor: f64, read: &[f64], term: &Term) {
    match (term.source(), term.weight()) {
        (Source::Layer(_), Weight::Dense(dense)) => {
            for (input, &x) in read.iter().enumerate().filter(|(_, x)| **x != 0.0) {
                add_scaled(to, factor * x, dense.row(input));
            }
        }
        (Source::Layer(_), Weight::Scalar(by)) => add_scaled(to, factor * by, read),
        _ => add_scaled(to, factor, read),
    }
}

/// `to += radius · |W|`, where a layer is read.
pub(super) fn add_radius(to: &mut [f64], radius: &[f64], term: &Term) {
    match (term.source(), term.weight()) {
        (Source::Layer(_), Weight::Dense(dense)) => {
            for (input, &x) in radius.iter().enumerate().filter(|(_, x)| **x != 0.0) {
                to.iter_mut().zip(dense.row(input)).for_each(|(to, w)| *to += x * w.abs());
            }
        }
        (Source::Layer(_), Weight::Scalar(by)) => add_scaled(to, by.abs(), radius),
        _ => add_scaled(to, 1.0, radius),
    }
}

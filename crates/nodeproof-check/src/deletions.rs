//! Deletions of edges: those that a target may notice, and what it is without them (Lemma 68 of `docs/maths.md`).

use std::collections::{BTreeMap, BTreeSet};

use nodeproof_problem::{Edge, EdgeLimits, NodeId, Propagation, Source};

use crate::base::Base;
use crate::interval::Interval;
use crate::network::{Network, Region, Rows, Units};
use crate::number::{Activated, Number, add_product, add_scaled};

/// Most sets of deletions that are tried for one node, those that turn out not to be admissible included. It takes seconds at most where
/// few numbers follow from what is deleted.
pub const MOST_SETS: usize = 20_000;

/// The nodes that a region reads rows of propagations of, ascending.
pub(crate) fn readers(network: &Network, region: &Region) -> BTreeSet<NodeId> {
    let propagations = network.model.propagations();
    let mixes = |i: usize| {
        let terms = network.layers()[i].terms().iter();
        terms.map(|term| &propagations[term.propagation()]).any(|of| *of != Propagation::Identity)
    };
    let layers = region.nodes.iter().enumerate().filter(|&(i, _)| mixes(i));
    layers.flat_map(|(_, nodes)| nodes).copied().collect()
}

/// The rows of propagations without some edges, of these readers; `None` if a number is not finite.
pub(crate) fn without<'n>(network: &'n Network, readers: &BTreeSet<NodeId>, edges: &[Edge]) -> Option<Rows<'n>> {
    let (graph, mut rows) = (network.graph, Rows::of(&network.matrices));
    let ends: BTreeSet<NodeId> = edges.iter().flat_map(|edge| edge.ends()).collect();
    let beside = ends.iter().flat_map(|end| graph.adjacency().row(end.index())).map(|&n| NodeId(n));
    let touched: BTreeSet<NodeId> = beside.chain(ends.iter().copied()).filter(|n| readers.contains(n)).collect();
    for (i, propagation) in network.model.propagations().iter().enumerate() {
        for &node in touched.iter().filter(|node| propagation.reads_degrees() || ends.contains(node)) {
            rows.others.insert((i, node), propagation.row_without(graph, edges, node)?);
        }
    }
    Some(rows)
}

/// Activations of a layer that are not those with all edges.
type Changed = BTreeMap<NodeId, Vec<Interval>>;

/// A target with all edges, and which of them may be deleted.
pub(crate) struct Linked<'b, 'n> {
    base: &'b Base<'n>,
    limits: &'n EdgeLimits,
    readers: BTreeSet<NodeId>,
    /// Of each layer, of the base point.
    activations: Vec<Units<Interval>>,
}

impl<'b, 'n> Linked<'b, 'n> {
    pub(crate) fn new(base: &'b Base<'n>, limits: &'n EdgeLimits) -> Self {
        let readers = readers(base.network, base.region);
        let of_layers = base.z.iter().zip(base.network.layers());
        let activated = |(units, layer): (&Units<Interval>, &nodeproof_problem::Layer)| {
            units.iter().map(|z| z.iter().map(|z| z.activated(layer.activation())).collect()).collect()
        };
        Self { base, limits, readers, activations: of_layers.map(activated).collect() }
    }

    /// The rows of propagations without some edges; `None` if a number is not finite.
    pub(crate) fn without(&self, edges: &[Edge]) -> Option<Rows<'n>> {
        without(self.base.network, &self.readers, edges)
    }

    /// Admissible sets of at most so many deletions, among them for each other one a set that does the same to the target, and whether
    /// these are all; where more than [`MOST_SETS`] are to be tried, they are single deletions at most.
    pub(crate) fn sets(&self, most: usize) -> (Vec<Vec<Edge>>, bool) {
        let (graph, candidates) = (self.base.network.graph, self.candidates(most));
        let of = |sets: Vec<(usize, Vec<Edge>)>| sets.into_iter().map(|(_, set)| set).collect();
        // Each with the place of the candidate behind its last one.
        let mut sets: Vec<(usize, Vec<Edge>)> = vec![(0, Vec::new())];
        let (mut start, mut tried) = (0, 1);
        for round in 0..most {
            let smaller = start..sets.len();
            start = sets.len();
            for place in smaller {
                let next = sets[place].0;
                for (i, &(edge, is_alike)) in candidates.iter().enumerate().skip(next) {
                    if is_alike && i > next {
                        continue;
                    }
                    tried += 1;
                    if tried > MOST_SETS {
                        sets.retain(|(_, set)| set.len() <= round.min(1));
                        return (of(sets), false);
                    }
                    let larger = [&sets[place].1[..], &[edge]].concat();
                    if self.limits.admits(graph, &larger) {
                        sets.push((i + 1, larger));
                    }
                }
            }
            if start == sets.len() {
                break;
            }
        }
        (of(sets), true)
    }

    /// The edges that the target may notice, and whether deleting one does the same as deleting the one before it, which is to come first.
    fn candidates(&self, most: usize) -> Vec<(Edge, bool)> {
        let (network, limits) = (self.base.network, self.limits);
        let neighbours = |n: NodeId| network.graph.adjacency().row(n.index()).iter().map(|&n| NodeId(n));
        let mut seen = self.readers.clone();
        if network.model.propagations().iter().any(Propagation::reads_degrees) {
            seen.extend(self.readers.iter().flat_map(|&n| neighbours(n)));
        }
        let mut candidates = Vec::new();
        for &n in &seen {
            let mut alike = Vec::new();
            for other in neighbours(n).filter(|other| n < *other || !seen.contains(other)) {
                let Some(edge) = Edge::between(n, other).filter(|&edge| limits.may_delete(edge)) else { continue };
                let is_free = limits.at(other) == neighbours(other).filter(|&last| last != other).count();
                if is_free && !seen.contains(&other) && !self.readers.contains(&n) {
                    alike.push(edge);
                } else {
                    candidates.push((edge, false));
                }
            }
            candidates.extend(alike.into_iter().take(most).enumerate().map(|(i, edge)| (edge, i > 0)));
        }
        candidates
    }

    /// The logits of the target where rows of propagations are others. What follows from none of these is that of the base point.
    pub(crate) fn logits(&self, rows: &Rows) -> Vec<Interval> {
        let Base { network, region, .. } = self.base;
        let mut changed: Vec<Changed> = Vec::new();
        for (i, layer) in network.layers().iter().enumerate() {
            let place = |layer: usize, node: &NodeId| region.nodes[layer].binary_search(node).ok();
            let mut touched: BTreeSet<usize> = BTreeSet::new();
            for (term, local) in layer.terms().iter().zip(&region.terms[i]) {
                let others = rows.others.keys().filter(|(propagation, _)| *propagation == term.propagation());
                touched.extend(others.filter_map(|(_, node)| place(i, node)));
                if let Source::Layer(source) = term.source() {
                    let read = changed[source].keys().filter_map(|node| place(source, node));
                    touched.extend(read.flat_map(|n| &local.readers[n]).map(|&(m, _)| m));
                }
            }
            let units = touched.into_iter().map(|m| (region.nodes[i][m], self.units(rows, &changed, i, m)));
            let units = units.collect();
            changed.push(units);
        }
        let last = &self.activations[network.layers().len() - 1][0];
        changed.pop().and_then(|mut units| units.remove(&region.target())).unwrap_or_else(|| last.clone())
    }

    /// The activations of a layer at one of its nodes, where rows and activations of layers below have changed: what it reads of a node
    /// is taken away where it has, and added anew.
    fn units(&self, rows: &Rows, changed: &[Changed], layer: usize, place: usize) -> Vec<Interval> {
        let Base { network, region, sums, z, .. } = self.base;
        let (of, node, one) = (&network.layers()[layer], region.nodes[layer][place], [Interval::of(1.0)]);
        let mut z = z[layer][place].clone();
        for (term, local) in of.terms().iter().zip(&region.terms[layer]) {
            let (columns, entries) = rows.row(term.propagation(), node);
            let now = |n: &u32| columns.binary_search(n).map_or(0.0, |place| entries[place]);
            let mut sum: Vec<Interval> = Vec::new();
            let (columns, entries) = network.matrices[term.propagation()].row(node.index());
            for (n, &before) in columns.iter().zip(entries) {
                let (p, n) = (now(n), NodeId(*n));
                let at = |nodes: &[NodeId]| nodes.partition_point(|&other| other < n);
                let anew = match term.source() {
                    Source::Layer(source) => changed[source].get(&n),
                    Source::Attributes | Source::Ones => None,
                };
                if p == before && anew.is_none() {
                    continue;
                }
                let read = match term.source() {
                    Source::Ones => &one[..],
                    Source::Attributes => &sums[at(&region.rows)][local.columns.clone()],
                    Source::Layer(source) => &self.activations[source][at(&region.nodes[source])],
                };
                sum.resize(read.len(), Interval::ZERO);
                add_scaled(&mut sum, -before, read);
                add_scaled(&mut sum, p, anew.map_or(read, |anew| anew));
            }
            match term.source() {
                Source::Attributes => z.iter_mut().zip(&sum).for_each(|(z, x)| *z = z.plus(x)),
                Source::Ones | Source::Layer(_) => add_product(&mut z, &sum, term.weight()),
            }
        }
        z.iter().map(|z| z.activated(of.activation())).collect()
    }
}

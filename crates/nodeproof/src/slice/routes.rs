//! Slices that begin with the few nodes whose attributes count most, whatever the number of layers (Lemma 75 of `docs/maths.md`).
//!
//! The *weight* of a node is the sum over all routes from the target to it of the products of `|P|` on the way:
//!
//! ```text
//! w(target) = 1,   w(n) = Σ_T Σ_m |P_T,mn| w(m)   over the terms T that read the level of n, and the nodes m of the level above.
//! ```
//!
//! What a flip gains is at most proportional to the weight of its node. A slice keeps heavy nodes of level 0, the nodes above that their
//! flips move, and the whole level below the target. Of flips at the nodes that it keeps nothing is left out. Of the other nodes it knows
//! the largest weight.

use super::{Slice, SliceHop, Slicer};
use crate::ids::NodeId;
use crate::model::Source;
use crate::network::Network;
use crate::rounding::magnitude;
use crate::slice::{Hop, Mark};
use crate::sparse::{Pattern, SparseMatrix};

/// What sums of non-negative products are raised by, so that rounding does not make them too small.
const RAISE: f64 = 1.0 + 1e-8;

/// What costs time and what saves it; slices are right whatever the numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kept {
    /// Nodes of level 0 that are kept.
    pub(crate) nodes: usize,
    /// Most readers of one of them that does not weigh much.
    pub(crate) readers: usize,
    /// Slices with no more entries of the first layer than these are whole.
    pub(crate) few: usize,
    /// The rows of nodes of level 1 are not looked at where `w / s` is at most this part of the largest (see [`RouteTables`]).
    pub(crate) faint: f64,
    /// What weighs at least this part of the heaviest node weighs much: a slice is cut only if it leaves out less.
    pub(crate) light: f64,
}

impl Default for Kept {
    fn default() -> Self {
        Self { nodes: 32, readers: 512, few: 8192, faint: 1.0 / 2048.0, light: 0.5 }
    }
}

/// What a slice knows of the nodes that it leaves out.
#[derive(Debug, Default, Clone)]
pub(crate) struct LeftOutNodes {
    /// At least the weight of each of its nodes, for all levels but 0.
    weights: Vec<Vec<f64>>,
    /// At least the weight of every node of level 0 that it leaves out.
    heaviest: f64,
}

impl LeftOutNodes {
    /// At least the weight of each node of a level, which is not 0.
    pub(crate) fn weights(&self, level: usize) -> &[f64] {
        &self.weights[level]
    }

    /// At least the weight of every node of level 0 that is left out.
    pub(crate) fn heaviest(&self) -> f64 {
        self.heaviest
    }
}

/// What is known of the routes of a network, whatever the target.
#[derive(Debug)]
pub(crate) struct RouteTables {
    /// For each term of the first layer that reads the attributes its place, and which nodes read each node; `None` where these are the ones
    /// that it reads.
    readers: Vec<(usize, Option<Pattern>)>,
    /// `s_m = √(entries of row m)`, over these terms.
    sizes: Vec<f64>,
    /// `Σ_T Σ_m |P_T,mn| s_m` of each node n, and the largest.
    sums: Vec<f64>,
    largest_sum: f64,
    /// How many nodes read each node, term by term.
    counts: Vec<u32>,
    kept: Kept,
}

impl RouteTables {
    /// Those of a network with hidden layers of which each reads the one before, and the first one the attributes; `None` of others.
    pub(crate) fn new(network: &Network, kept: Kept) -> Option<Self> {
        let layers = network.layers();
        let reads_the_one_before = |(i, source): (usize, Source)| match source {
            Source::Attributes => i == 0,
            Source::Layer(below) => below + 1 == i,
            Source::Ones => true,
        };
        let mut sources =
            layers.iter().enumerate().flat_map(|(i, layer)| layer.terms().iter().map(move |term| (i, term.source())));
        if layers.len() < 2 || !sources.all(reads_the_one_before) {
            return None;
        }
        let nodes = network.graph().nodes();
        let matrices: Vec<(usize, &SparseMatrix)> =
            network.attribute_terms_of(0).map(|term| (term.term, network.matrix(0, term.term))).collect();
        let size = |m: usize| {
            (matrices.iter().map(|(_, matrix)| SparseMatrix::row(matrix, m).0.len()).sum::<usize>() as f64).sqrt()
        };
        let sizes: Vec<f64> = (0..nodes).map(size).collect();
        let (mut sums, mut counts) = (vec![0.0; nodes], vec![0u32; nodes]);
        for (_, matrix) in &matrices {
            for (m, size) in sizes.iter().enumerate() {
                for (n, p) in Hop::row(*matrix, m) {
                    sums[n] += magnitude(p * size);
                    counts[n] += 1;
                }
            }
        }
        sums.iter_mut().for_each(|sum| *sum *= RAISE);
        // With few digits, so that small edits of a graph seldom make another number of it, which would concern all slices.
        let largest_sum = few_digits(sums.iter().copied().fold(0.0, f64::max));
        let readers = matrices.iter().map(|&(term, matrix)| (term, readers(matrix.pattern()))).collect();
        Some(Self { readers, sizes, sums, largest_sum, counts, kept })
    }

    /// The nodes whose slices may be cut otherwise than by the tables of another graph; `None` if those of all nodes may.
    pub(crate) fn differences(&self, before: &Self) -> Option<Vec<bool>> {
        if self.largest_sum.to_bits() != before.largest_sum.to_bits() {
            return None;
        }
        let is_read_by_many = |of: &Self, n: usize| of.counts[n] as usize > of.kept.readers;
        let differs = |n: usize| {
            n >= before.sums.len()
                || self.sums[n].to_bits() != before.sums[n].to_bits()
                || is_read_by_many(self, n) != is_read_by_many(before, n)
        };
        Some((0..self.sums.len()).map(differs).collect())
    }

    /// The nodes that read a node, term by term.
    fn readers_of<'r>(
        &'r self,
        first: &'r [(Option<usize>, &SparseMatrix)],
        n: u32,
    ) -> impl Iterator<Item = &'r [u32]> {
        self.readers
            .iter()
            .map(move |(term, readers)| readers.as_ref().unwrap_or_else(|| first[*term].1.pattern()).row(n as usize))
    }
}

/// At least a number that is not negative, with the first digits alone: larger by a sixteenth at most.
fn few_digits(x: f64) -> f64 {
    const REST: u64 = (1 << 48) - 1;
    f64::from_bits((x.to_bits() + REST) & !REST)
}

/// For each column of a pattern its rows; `None` if they are the columns of the row.
fn readers(pattern: &Pattern) -> Option<Pattern> {
    let turned = || Pattern::from_entries(pattern.columns(), pattern.rows(), || pattern.iter().map(|(m, n)| (n, m)));
    (!pattern.is_symmetric()).then(turned)
}

/// Scratch space of cutting by weight.
#[derive(Debug, Default)]
pub(super) struct Cut {
    /// Weights of the nodes of each level but 0.
    weights: Vec<Vec<f64>>,
    /// The nodes of level 0 that were found, with their weights as far as they are known, and where each is.
    found: Vec<(f64, u32)>,
    places: Vec<Mark>,
    /// For each level the new position of each node that is kept, and `GONE` of others.
    positions: Vec<Vec<u32>>,
}

impl Cut {
    pub(super) fn new(nodes: usize) -> Self {
        Self { places: vec![Mark::default(); nodes], ..Self::default() }
    }

    /// Forgets where nodes were found, which stamps will be used for again.
    pub(super) fn forget(&mut self) {
        self.places.fill(Mark::default());
    }
}

/// No position.
const GONE: u32 = u32::MAX;

impl Slicer<'_> {
    /// The slice of `target` without those nodes of level 0 that are not among the heaviest, and what only these move; all of it where that
    /// is not much, or where much would be left out. All levels but the first ones are looked at as a whole.
    pub(crate) fn cut(&mut self, target: NodeId, tables: &RouteTables) -> &Slice {
        self.begin(target);
        (1..self.terms.len()).rev().for_each(|layer| self.gather(layer));
        if self.has_more_than(tables.kept.few) {
            self.weigh();
            let beyond = self.find(tables);
            if let Some(heaviest) = self.choose(tables, beyond) {
                self.keep_moved(tables);
                self.drop_others();
                self.gather_chosen();
                let weights = self.cut.weights.clone();
                self.slice.left_out_nodes = Some(LeftOutNodes { weights, heaviest });
                return &self.slice;
            }
        }
        self.gather(0);
        &self.slice
    }

    /// Whether the first layer has more than so many entries.
    fn has_more_than(&self, few: usize) -> bool {
        let mut entries = 0;
        self.slice.levels[1].iter().any(|&m| {
            let lengths = self.terms[0].iter().filter(|(level, _)| level.is_some());
            entries += lengths.map(|(_, matrix)| SparseMatrix::row(matrix, m as usize).0.len()).sum::<usize>();
            entries > few
        })
    }

    /// The weights of the nodes of all levels but 0.
    fn weigh(&mut self) {
        let Self { terms, slice, cut, .. } = self;
        cut.weights.resize_with(slice.levels.len(), Vec::new);
        for (weights, level) in cut.weights.iter_mut().zip(&slice.levels) {
            weights.clear();
            weights.resize(level.len(), 0.0);
        }
        cut.weights[terms.len()].fill(1.0);
        for layer in (1..terms.len()).rev() {
            let (below, above) = cut.weights.split_at_mut(layer + 1);
            let below = &mut below[layer];
            for (hop, _) in slice.hops[layer].iter().zip(&terms[layer]).filter(|(_, (level, _))| level.is_some()) {
                for (row, &weight) in above[0].iter().enumerate() {
                    hop.row(row).filter(|&(_, p)| p != 0.0).for_each(|(n, p)| below[n] += magnitude(p * weight));
                }
            }
            below.iter_mut().for_each(|weight| *weight *= RAISE);
        }
    }

    /// Finds the nodes of level 0 that heavy nodes of level 1 read, with weights of routes through these. The routes through all others
    /// weigh at most what is returned, times the sum of [`RouteTables`] of the node.
    fn find(&mut self, tables: &RouteTables) -> f64 {
        let Self { terms, slice, cut, stamp, .. } = self;
        let ratio = |(&m, &weight): (&u32, &f64)| weight / tables.sizes[m as usize].max(1.0);
        let ratios = || slice.levels[1].iter().zip(&cut.weights[1]).map(ratio);
        let faint = tables.kept.faint * ratios().fold(0.0, f64::max);
        let mut beyond = 0.0f64;
        cut.found.clear();
        for ((&m, &weight), ratio) in slice.levels[1].iter().zip(&cut.weights[1]).zip(ratios()) {
            if ratio <= faint {
                beyond = beyond.max(ratio);
                continue;
            }
            for (_, matrix) in terms[0].iter().filter(|(level, _)| level.is_some()) {
                for (n, p) in Hop::row(*matrix, m as usize) {
                    let place = &mut cut.places[n];
                    if place.stamp != *stamp {
                        *place = Mark { stamp: *stamp, position: cut.found.len() as u32 };
                        cut.found.push((0.0, n as u32));
                    }
                    cut.found[place.position as usize].0 += magnitude(p * weight);
                }
            }
        }
        beyond * RAISE
    }

    /// Chooses the heaviest nodes, of those that many read only the ones that weigh much; at least the weight of every other one. `None` if
    /// that is much.
    fn choose(&mut self, tables: &RouteTables, beyond: f64) -> Option<f64> {
        let Self { cut, chosen, .. } = self;
        for (weight, n) in &mut cut.found {
            *weight = (*weight + beyond * tables.sums[*n as usize]) * RAISE;
        }
        let falling = |a: &(f64, u32), b: &(f64, u32)| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1));
        let kept = tables.kept.nodes.min(cut.found.len());
        if kept < cut.found.len() {
            cut.found.select_nth_unstable_by(kept, falling);
        }
        let (heavy, others) = cut.found.split_at(kept);
        let first = heavy.iter().map(|&(weight, _)| weight).fold(0.0, f64::max);
        let mut left_out = others.iter().map(|&(weight, _)| weight).fold(beyond * tables.largest_sum * RAISE, f64::max);
        chosen.clear();
        for &(weight, n) in heavy {
            if tables.counts[n as usize] as usize <= tables.kept.readers || weight >= tables.kept.light * first {
                chosen.push(n);
            } else {
                left_out = left_out.max(weight);
            }
        }
        chosen.sort_unstable();
        // Not with NaN, either.
        (left_out < tables.kept.light * first).then_some(left_out)
    }

    /// Notes which nodes the chosen ones move: on level 1 those that read one of them, and so on; all of the level below the target.
    fn keep_moved(&mut self, tables: &RouteTables) {
        let Self { terms, marks, stamp, slice, cut, chosen, .. } = self;
        let top = terms.len() - 1;
        cut.positions.resize_with(top, Vec::new);
        for (level, positions) in cut.positions.iter_mut().enumerate() {
            positions.clear();
            positions.resize(slice.levels[level].len(), GONE);
        }
        if top == 1 {
            return;
        }
        for &n in chosen.iter() {
            for &m in tables.readers_of(&terms[0], n).flatten() {
                let mark = marks[1][m as usize];
                if mark.stamp == *stamp {
                    cut.positions[1][mark.position as usize] = 0;
                }
            }
        }
        for level in 2..top {
            let (below, above) = cut.positions.split_at_mut(level);
            let hops = slice.hops[level - 1].iter().zip(&terms[level - 1]);
            for (hop, _) in hops.filter(|(_, (level, _))| level.is_some()) {
                for (row, position) in above[0].iter_mut().enumerate() {
                    if hop.row(row).any(|(n, _)| below[level - 1][n] != GONE) {
                        *position = 0;
                    }
                }
            }
        }
        for positions in &mut cut.positions {
            let kept = positions.iter_mut().filter(|position| **position != GONE);
            kept.zip(0..).for_each(|(position, next)| *position = next);
        }
    }

    /// Drops the nodes that are not moved, and their entries.
    fn drop_others(&mut self) {
        let Self { terms, slice, cut, .. } = self;
        let top = terms.len() - 1;
        for (layer, terms) in terms.iter().enumerate().take(top).skip(1) {
            let columns = &cut.positions[layer];
            let rows = cut.positions.get(layer + 1);
            for (hop, (level, _)) in slice.hops[layer].iter_mut().zip(terms) {
                let rows = (0..hop.rows()).filter(|&row| rows.is_none_or(|rows| rows[row] != GONE));
                let column = |n: u32| if level.is_some() { columns[n as usize] } else { n };
                *hop = hop.restricted(rows, column);
            }
        }
        for level in 1..top {
            let mut positions = cut.positions[level].iter();
            slice.levels[level].retain(|_| positions.next().is_some_and(|&position| position != GONE));
            let mut positions = cut.positions[level].iter();
            cut.weights[level].retain(|_| positions.next().is_some_and(|&position| position != GONE));
        }
    }
}

impl SliceHop {
    /// Some of its rows, without the entries whose columns are gone.
    fn restricted(&self, rows: impl Iterator<Item = usize>, column: impl Fn(u32) -> u32) -> Self {
        let mut hop = Self::default();
        hop.clear();
        for row in rows {
            let range = self.range(row);
            let entries = self.columns[range.clone()].iter().zip(&self.weights[range]);
            for (n, &weight) in entries.map(|(&n, weight)| (column(n), weight)).filter(|&(n, _)| n != GONE) {
                hop.columns.push(n);
                hop.weights.push(weight);
            }
            hop.offsets.push(hop.columns.len() as u32);
        }
        hop
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dense::Matrix;
    use crate::graph::Graph;
    use crate::model::{Model, Propagation};

    #[test]
    fn few_digits_are_not_less() {
        for x in [0.0, 1.0, 1.0 + f64::EPSILON, 1.5, 0.1, 123_456.7, 1e-300, f64::MAX / 2.0, f64::INFINITY] {
            assert!(few_digits(x) >= x && few_digits(x) <= 1.0625 * x, "{x:e}");
            assert_eq!(few_digits(few_digits(x)), few_digits(x), "{x:e}");
        }
    }

    /// An edge makes slices others that are cut with the tables of the nodes around it, and leaves those of the rest as they are.
    #[test]
    fn edits_of_a_graph_make_others_of_the_tables_around_them() {
        let edges: Vec<(u32, u32)> = (0..11).map(|n| (n, n + 1)).collect();
        let model = || {
            let layer = || (Matrix::from_values(2, 2, vec![1.0, -1.0, 0.5, 2.0]), vec![0.0, 0.0]);
            Model::gcn(vec![layer(), layer(), layer()], Propagation::SymmetricGcn).unwrap()
        };
        let tables = |edges: &[(u32, u32)], readers: usize| {
            let (graph, model) = (Graph::new(12, 2, edges, &[]).unwrap(), model());
            let kept = Kept { readers, ..Kept::default() };
            RouteTables::new(&Network::new(&graph, &model).unwrap(), kept).unwrap()
        };
        let of = |readers: usize| tables(&edges, readers).differences(&tables(&edges[..10], readers)).unwrap();
        assert_eq!(tables(&edges, 2).differences(&tables(&edges, 2)), Some(vec![false; 12]));
        assert_eq!(of(512)[..8], [false; 8]);
        assert_eq!(of(512)[10..], [true; 2], "the edge is theirs");
        let mut hub = edges.clone();
        hub.extend((2..10).map(|n| (0, n)));
        assert_eq!(tables(&hub, 512).differences(&tables(&edges, 512)), None, "the largest sum is another one");
    }
}

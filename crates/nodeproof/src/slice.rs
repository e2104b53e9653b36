//! The part of a network that one target sees, and the union of those parts for many targets.
//!
//! With L + 1 layers, level L + 1 is the target alone; level i holds the nodes whose values the nodes of level i + 1
//! aggregate; level 0 holds the nodes whose attributes matter (Definition 3 and Lemma 1 of `docs/maths.md`). Pre-activations
//! `Zⁱ` live on level i + 1.
//!
//! A node has a *position* in a level of a [`Slice`] and a *place* in a level of a [`Region`], where bounds and
//! pre-activations of all targets are kept.

use std::ops::Range;

use crate::flip::Flip;
use crate::graph::Graph;
use crate::ids::{AttributeId, NodeId};
use crate::sparse::SparseMatrix;

/// The rows of a propagation between two levels: which nodes of the lower level each node of the upper one gathers from.
pub(crate) trait Hop: Sync {
    /// Number of nodes of the upper level.
    fn rows(&self) -> usize;

    /// Number of nodes that row `row` of the upper level gathers from.
    fn row_length(&self, row: usize) -> usize;

    /// Places in the lower level, and weights, of row `row` of the upper level.
    fn row(&self, row: usize) -> impl Iterator<Item = (usize, f64)> + Clone;
}

impl Hop for SparseMatrix {
    fn rows(&self) -> usize {
        SparseMatrix::rows(self)
    }

    fn row_length(&self, row: usize) -> usize {
        SparseMatrix::row(self, row).0.len()
    }

    #[inline]
    fn row(&self, row: usize) -> impl Iterator<Item = (usize, f64)> + Clone {
        let (columns, weights) = SparseMatrix::row(self, row);
        columns.iter().map(|&column| column as usize).zip(weights.iter().copied())
    }
}

/// A [`Hop`] of a slice, with columns as positions in the lower level.
#[derive(Debug, Default, Clone)]
pub(crate) struct SliceHop {
    offsets: Vec<u32>,
    columns: Vec<u32>,
    weights: Vec<f64>,
}

impl SliceHop {
    fn clear(&mut self) {
        self.offsets.clear();
        self.offsets.push(0);
        self.columns.clear();
        self.weights.clear();
    }

    #[inline]
    fn range(&self, row: usize) -> Range<usize> {
        self.offsets[row] as usize..self.offsets[row + 1] as usize
    }
}

impl Hop for SliceHop {
    fn rows(&self) -> usize {
        self.offsets.len() - 1
    }

    fn row_length(&self, row: usize) -> usize {
        self.range(row).len()
    }

    #[inline]
    fn row(&self, row: usize) -> impl Iterator<Item = (usize, f64)> + Clone {
        let range = self.range(row);
        self.columns[range.clone()].iter().map(|&column| column as usize).zip(self.weights[range].iter().copied())
    }
}

/// What one target sees.
#[derive(Debug, Default, Clone)]
pub(crate) struct Slice {
    levels: Vec<Vec<u32>>,
    hops: Vec<SliceHop>,
}

impl Slice {
    /// The nodes of level `level`.
    #[inline]
    pub(crate) fn level(&self, level: usize) -> &[u32] {
        &self.levels[level]
    }

    /// The target.
    pub(crate) fn target(&self) -> NodeId {
        NodeId(self.levels[self.levels.len() - 1][0])
    }

    /// The flip of `graph` that `(position, attribute)` stands for.
    pub(crate) fn flip(&self, graph: &Graph, (position, attribute): SlicedFlip) -> Flip {
        Flip::of(graph, NodeId(self.level(0)[position as usize]), AttributeId(attribute))
    }

    /// P between level `level` (columns) and the one above it (rows).
    #[inline]
    pub(crate) fn hop(&self, level: usize) -> &SliceHop {
        &self.hops[level]
    }
}

/// A selected flip: position of its node in level 0 of the slice, and its attribute.
pub(crate) type SlicedFlip = (u32, u32);

/// Cuts slices out of a propagation, reusing its memory.
pub(crate) struct Slicer<'a> {
    propagation: &'a SparseMatrix,
    seen: Vec<u32>,
    position: Vec<u32>,
    stamp: u32,
    slice: Slice,
}

impl<'a> Slicer<'a> {
    pub(crate) fn new(propagation: &'a SparseMatrix, layers: usize) -> Self {
        let nodes = propagation.rows();
        let slice = Slice { levels: vec![Vec::new(); layers + 1], hops: vec![SliceHop::default(); layers] };
        Self { propagation, seen: vec![0; nodes], position: vec![0; nodes], stamp: 0, slice }
    }

    /// The slice of `target`; it stays valid until the next call.
    pub(crate) fn slice(&mut self, target: NodeId) -> &Slice {
        let layers = self.slice.hops.len();
        self.slice.levels[layers].clear();
        self.slice.levels[layers].push(target.0);
        for level in (0..layers).rev() {
            self.next_stamp();
            let (below, above) = self.slice.levels.split_at_mut(level + 1);
            let (below, above) = (&mut below[level], &above[0]);
            let hop = &mut self.slice.hops[level];
            below.clear();
            hop.clear();
            for &m in above {
                let (columns, weights) = self.propagation.row(m as usize);
                for &n in columns {
                    if self.seen[n as usize] != self.stamp {
                        self.seen[n as usize] = self.stamp;
                        self.position[n as usize] = below.len() as u32;
                        below.push(n);
                    }
                    hop.columns.push(self.position[n as usize]);
                }
                hop.weights.extend_from_slice(weights);
                hop.offsets.push(hop.columns.len() as u32);
            }
        }
        &self.slice
    }

    fn next_stamp(&mut self) {
        self.stamp = self.stamp.wrapping_add(1);
        if self.stamp == 0 {
            self.seen.fill(0);
            self.stamp = 1;
        }
    }
}

/// A set of nodes with the place of each in it.
#[derive(Debug, Clone)]
pub(crate) struct NodeSet {
    nodes: Vec<u32>,
    places: Vec<u32>,
}

impl NodeSet {
    fn new(universe: usize, members: impl Iterator<Item = u32>) -> Self {
        let mut places = vec![u32::MAX; universe];
        for node in members {
            places[node as usize] = 0;
        }
        let nodes: Vec<u32> = (0..universe as u32).filter(|&node| places[node as usize] == 0).collect();
        for (place, &node) in nodes.iter().enumerate() {
            places[node as usize] = place as u32;
        }
        Self { nodes, places }
    }

    /// The nodes, ascending.
    pub(crate) fn nodes(&self) -> &[u32] {
        &self.nodes
    }

    /// Whether `node` is a member.
    pub(crate) fn contains(&self, node: u32) -> bool {
        self.places.get(node as usize).is_some_and(|&place| place != u32::MAX)
    }

    /// The position of a member.
    #[inline]
    pub(crate) fn place(&self, node: u32) -> usize {
        self.places[node as usize] as usize
    }
}

/// The union of the slices of many targets: what has to be computed for all of them.
#[derive(Debug, Clone)]
pub(crate) struct Region {
    levels: Vec<NodeSet>,
}

impl Region {
    pub(crate) fn around(propagation: &SparseMatrix, targets: &[NodeId], layers: usize) -> Self {
        let nodes = propagation.rows();
        let mut levels = vec![NodeSet::new(nodes, targets.iter().map(|target| target.0))];
        for _ in 0..layers {
            let above = levels[levels.len() - 1].nodes();
            let members = above.iter().flat_map(|&m| propagation.row(m as usize).0.iter().copied());
            levels.push(NodeSet::new(nodes, members));
        }
        levels.reverse();
        Self { levels }
    }

    /// The nodes of level `level`.
    pub(crate) fn level(&self, level: usize) -> &NodeSet {
        &self.levels[level]
    }

    /// The targets: the last level.
    pub(crate) fn targets(&self) -> &NodeSet {
        &self.levels[self.levels.len() - 1]
    }

    /// P between level `level` (columns) and the one above it (rows).
    pub(crate) fn hop<'r>(&'r self, propagation: &'r SparseMatrix, level: usize) -> RegionHop<'r> {
        RegionHop { propagation, below: &self.levels[level], above: &self.levels[level + 1] }
    }
}

/// A [`Hop`] of a region.
pub(crate) struct RegionHop<'r> {
    propagation: &'r SparseMatrix,
    below: &'r NodeSet,
    above: &'r NodeSet,
}

impl Hop for RegionHop<'_> {
    fn rows(&self) -> usize {
        self.above.nodes.len()
    }

    fn row_length(&self, row: usize) -> usize {
        self.propagation.row(self.above.nodes[row] as usize).0.len()
    }

    #[inline]
    fn row(&self, row: usize) -> impl Iterator<Item = (usize, f64)> + Clone {
        let (columns, weights) = self.propagation.row(self.above.nodes[row] as usize);
        columns.iter().map(|&n| self.below.place(n)).zip(weights.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The path 0 – 1 – 2 – 3 with weights m + n/10 and no diagonal.
    fn path() -> SparseMatrix {
        let entry = |m: u32, n: u32| (m, n, f64::from(m) + f64::from(n) / 10.0);
        SparseMatrix::from_triplets(
            4,
            4,
            &[entry(0, 1), entry(1, 0), entry(1, 2), entry(2, 1), entry(2, 3), entry(3, 2)],
        )
    }

    #[test]
    fn slices_need_not_be_nested() {
        let path = path();
        let mut slicer = Slicer::new(&path, 2);
        let slice = slicer.slice(NodeId(0));
        assert_eq!((slice.level(2), slice.level(1), slice.level(0)), (&[0][..], &[1][..], &[0, 2][..]));
        assert_eq!(slice.hop(0).row(0).collect::<Vec<_>>(), [(0, 1.0), (1, 1.2)]);
        let slice = slicer.slice(NodeId(2));
        assert_eq!((slice.level(1), slice.level(0)), (&[1, 3][..], &[0, 2][..]));
        assert_eq!(slice.hop(0).row(1).collect::<Vec<_>>(), [(1, 3.2)]);
    }

    #[test]
    fn a_region_is_the_union_of_slices() {
        let region = Region::around(&path(), &[NodeId(3), NodeId(0)], 2);
        assert_eq!(region.level(2).nodes(), [0, 3]);
        assert_eq!(region.level(1).nodes(), [1, 2]);
        assert_eq!(region.level(0).nodes(), [0, 1, 2, 3]);
        assert_eq!(region.level(1).place(2), 1);
    }
}

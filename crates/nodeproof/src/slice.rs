//! The part of a network that one target sees, and the union of those parts for many targets.
//!
//! Level i + 1 holds the nodes whose pre-activations `Zⁱ` matter, level 0 those whose attributes do. The last level is the
//! target alone; a node is on a lower level if a term of a layer above gathers from it (Definition 3 and Lemma 1 of
//! `docs/maths.md`).
//!
//! A node has a *position* in a level of a [`Slice`] and a *place* in a level of a [`Region`], where bounds and
//! pre-activations of all targets are kept.

mod routes;

use std::ops::Range;

use crate::ids::NodeId;
use crate::model::{Model, Source};
use crate::sparse::SparseMatrix;

pub(crate) use routes::{Kept, LeftOutNodes, RouteTables};

/// The level that a term reads; `None` for the constant 1, which is the same everywhere.
pub(crate) fn level_of(source: Source) -> Option<usize> {
    match source {
        Source::Attributes => Some(0),
        Source::Layer(layer) => Some(layer + 1),
        Source::Ones => None,
    }
}

/// The rows of a propagation between two levels: which nodes of the lower level each node of the upper one gathers from.
pub(crate) trait Hop: Sync {
    /// Number of nodes of the upper level.
    fn rows(&self) -> usize;

    /// Number of nodes that row `row` of the upper level gathers from.
    fn row_length(&self, row: usize) -> usize;

    /// Places in the lower level, and weights, of row `row` of the upper level.
    fn row(&self, row: usize) -> impl Iterator<Item = (usize, f64)> + Clone;
}

impl<H: Hop> Hop for &H {
    fn rows(&self) -> usize {
        (*self).rows()
    }

    fn row_length(&self, row: usize) -> usize {
        (*self).row_length(row)
    }

    #[inline]
    fn row(&self, row: usize) -> impl Iterator<Item = (usize, f64)> + Clone {
        (*self).row(row)
    }
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
    /// For each layer those of its terms.
    hops: Vec<Vec<SliceHop>>,
    /// Of a slice that is not whole, for each node of level 1 at least the magnitude of the weights of its row that were left out.
    left_out: Vec<f64>,
    /// What it knows of nodes that were left out by their weight.
    left_out_nodes: Option<LeftOutNodes>,
}

/// What was left out of a slice may matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LeftOut;

impl Slice {
    /// The nodes of level `level`.
    #[inline]
    pub(crate) fn level(&self, level: usize) -> &[u32] {
        &self.levels[level]
    }

    /// At least the magnitude of each weight that was left out of a row of the first layer.
    #[inline]
    pub(crate) fn left_out(&self, row: usize) -> f64 {
        self.left_out.get(row).copied().unwrap_or(0.0)
    }

    /// What is known of nodes that were left out by their weight.
    pub(crate) fn left_out_nodes(&self) -> Option<&LeftOutNodes> {
        self.left_out_nodes.as_ref()
    }

    /// Whether nothing was left out.
    pub(crate) fn is_whole(&self) -> bool {
        self.left_out.is_empty() && self.left_out_nodes.is_none()
    }

    /// The target.
    pub(crate) fn target(&self) -> NodeId {
        NodeId(self.levels[self.levels.len() - 1][0])
    }

    /// P of a term, between the level that it reads (columns) and that of its layer (rows). All columns are 0 where it reads
    /// the constant 1.
    #[inline]
    pub(crate) fn hop(&self, layer: usize, term: usize) -> &SliceHop {
        &self.hops[layer][term]
    }
}

/// A flip: position of its node in level 0 of the slice, and its attribute. Where attributes are real values, it raises its entry as far as
/// that may be, or, with [`DOWN`] added to the attribute, lowers it so.
pub(crate) type SlicedFlip = (u32, u32);

/// More than any attribute.
pub(crate) const DOWN: u32 = 1 << 31;

/// The attribute of a flip.
#[inline]
pub(crate) fn attribute_of((_, attribute): SlicedFlip) -> usize {
    (attribute & !DOWN) as usize
}

/// The flip of the same entry the other way.
#[inline]
pub(crate) fn reversed((position, attribute): SlicedFlip) -> SlicedFlip {
    (position, attribute ^ DOWN)
}

/// Cuts slices out of a network, reusing its memory.
pub(crate) struct Slicer<'a> {
    /// For each layer the level and the propagation of its terms.
    terms: Vec<Vec<(Option<usize>, &'a SparseMatrix)>>,
    /// For each level but the last which nodes are on it, and where.
    marks: Vec<Vec<Mark>>,
    stamp: u32,
    slice: Slice,
    /// The nodes of level 0 of a slice that is not whole, ascending.
    chosen: Vec<u32>,
    cut: routes::Cut,
}

/// A node's position on a level, if the stamp is that of the slice at hand.
#[derive(Debug, Clone, Copy, Default)]
struct Mark {
    stamp: u32,
    position: u32,
}

impl<'a> Slicer<'a> {
    /// Slices of `model` with these matrices for its propagations.
    pub(crate) fn new(model: &Model, matrices: &'a [SparseMatrix]) -> Self {
        let nodes = matrices.first().map_or(0, SparseMatrix::rows);
        let terms: Vec<Vec<_>> = model
            .layers()
            .iter()
            .map(|layer| {
                layer.terms().iter().map(|term| (level_of(term.source()), &matrices[term.propagation()])).collect()
            })
            .collect();
        let hops = terms.iter().map(|terms| vec![SliceHop::default(); terms.len()]).collect();
        let slice =
            Slice { levels: vec![Vec::new(); terms.len() + 1], hops, left_out: Vec::new(), left_out_nodes: None };
        let marks = vec![vec![Mark::default(); nodes]; terms.len()];
        let cut = routes::Cut::new(nodes);
        Self { marks, terms, stamp: 0, slice, chosen: Vec::new(), cut }
    }

    /// The slice of `target`; it stays valid until the next call.
    pub(crate) fn slice(&mut self, target: NodeId) -> &Slice {
        self.begin(target);
        (0..self.terms.len()).rev().for_each(|layer| self.gather(layer));
        &self.slice
    }

    /// The slice of `target` in a chain without those nodes of level 0 that are not among the heaviest of any row of the first layer; all of
    /// it where that is not many. Of the nodes that it has, it has all entries.
    pub(crate) fn near(&mut self, target: NodeId, heaviest: &Heaviest) -> &Slice {
        self.begin(target);
        (1..self.terms.len()).rev().for_each(|layer| self.gather(layer));
        let matrix = self.terms[0][0].1;
        let rows = &self.slice.levels[1];
        let entries: usize = rows.iter().map(|&m| matrix.row(m as usize).0.len()).sum();
        if entries <= heaviest.few || rows.iter().all(|&m| heaviest.of(m).is_none()) {
            self.gather(0);
        } else {
            self.gather_heaviest(matrix, heaviest);
        }
        &self.slice
    }

    fn begin(&mut self, target: NodeId) {
        self.next_stamp();
        self.slice.left_out.clear();
        self.slice.left_out_nodes = None;
        self.slice.levels.iter_mut().for_each(Vec::clear);
        self.slice.levels[self.terms.len()].push(target.0);
    }

    /// What the nodes of a layer gather from.
    fn gather(&mut self, layer: usize) {
        let Self { terms, marks, stamp, slice, .. } = self;
        for (&(level, matrix), hop) in terms[layer].iter().zip(&mut slice.hops[layer]) {
            hop.clear();
            let (lower, upper) = slice.levels.split_at_mut(layer + 1);
            for &m in &upper[0] {
                let (columns, weights) = matrix.row(m as usize);
                match level {
                    Some(level) => {
                        let (below, marks) = (&mut lower[level], &mut marks[level]);
                        for &n in columns {
                            let mark = &mut marks[n as usize];
                            if mark.stamp != *stamp {
                                *mark = Mark { stamp: *stamp, position: below.len() as u32 };
                                below.push(n);
                            }
                            hop.columns.push(mark.position);
                        }
                    }
                    None => hop.columns.resize(hop.columns.len() + columns.len(), 0),
                }
                hop.weights.extend_from_slice(weights);
                hop.offsets.push(hop.columns.len() as u32);
            }
        }
    }

    /// What the nodes of the first layer gather from, of all nodes that are among the heaviest of a row.
    fn gather_heaviest(&mut self, matrix: &SparseMatrix, heaviest: &Heaviest) {
        let Self { marks, stamp, slice, chosen, .. } = self;
        chosen.clear();
        for &m in &slice.levels[1] {
            for &n in heaviest.of(m).map_or(matrix.row(m as usize).0, |(columns, _)| columns) {
                let mark = &mut marks[0][n as usize];
                if mark.stamp != *stamp {
                    *mark = Mark { stamp: *stamp, position: u32::MAX };
                    chosen.push(n);
                }
            }
            slice.left_out.push(heaviest.of(m).map_or(0.0, |(_, rest)| rest));
        }
        chosen.sort_unstable();
        self.gather_chosen();
    }

    /// What the nodes of the first layer gather from, of the chosen nodes.
    fn gather_chosen(&mut self) {
        let Self { terms, marks, stamp, slice, chosen, .. } = self;
        let marks = &mut marks[0];
        chosen.iter().for_each(|&n| marks[n as usize] = Mark { stamp: *stamp, position: u32::MAX });
        let (below, above) = slice.levels.split_at_mut(1);
        for (&(level, matrix), hop) in terms[0].iter().zip(&mut slice.hops[0]) {
            hop.clear();
            for &m in &above[0] {
                let (columns, weights) = matrix.row(m as usize);
                let mut add = |n: u32, weight: f64| {
                    let mark = &mut marks[n as usize];
                    if mark.stamp != *stamp {
                        return;
                    }
                    if mark.position == u32::MAX {
                        mark.position = below[0].len() as u32;
                        below[0].push(n);
                    }
                    hop.columns.push(mark.position);
                    hop.weights.push(weight);
                };
                if level.is_none() {
                    hop.columns.resize(hop.columns.len() + columns.len(), 0);
                    hop.weights.extend_from_slice(weights);
                } else if columns.len() <= FAR * chosen.len() {
                    columns.iter().zip(weights).for_each(|(&n, &weight)| add(n, weight));
                } else {
                    let found = chosen.iter().filter_map(|n| columns.binary_search(n).ok());
                    found.for_each(|place| add(columns[place], weights[place]));
                }
                hop.offsets.push(hop.columns.len() as u32);
            }
        }
    }

    fn next_stamp(&mut self) {
        self.stamp = self.stamp.wrapping_add(1);
        if self.stamp == 0 {
            self.marks.iter_mut().for_each(|marks| marks.fill(Mark::default()));
            self.cut.forget();
            self.stamp = 1;
        }
    }
}

/// Rows that are so many times as long as a list are searched for what is on it, and others are gone through.
const FAR: usize = 8;

/// The heaviest entries of long rows of a matrix.
#[derive(Debug)]
pub(crate) struct Heaviest {
    /// For each row its number among the long ones, or `u32::MAX`.
    numbers: Vec<u32>,
    columns: Vec<u32>,
    /// The largest magnitude of the other weights.
    rest: Vec<f64>,
    kept: usize,
    few: usize,
}

impl Heaviest {
    /// Those of rows that have more than `kept` entries, for slices of more than `few` entries of the first layer.
    pub(crate) fn new(matrix: &SparseMatrix, kept: usize, few: usize) -> Self {
        let long: Vec<u32> = (0..matrix.rows() as u32).filter(|&row| matrix.row(row as usize).0.len() > kept).collect();
        let heaviest = |&row: &u32| {
            let (columns, weights) = matrix.row(row as usize);
            let mut entries: Vec<(f64, u32)> = weights.iter().map(|w| w.abs()).zip(columns.iter().copied()).collect();
            let by_weight = |a: &(f64, u32), b: &(f64, u32)| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1));
            let (heaviest, next, _) = entries.select_nth_unstable_by(kept, by_weight);
            (heaviest.iter().map(|&(_, column)| column).collect(), next.0)
        };
        let (columns, rest): (Vec<Vec<u32>>, Vec<f64>) = long.iter().map(heaviest).unzip();
        let mut numbers = vec![u32::MAX; matrix.rows()];
        long.iter().zip(0..).for_each(|(&row, number)| numbers[row as usize] = number);
        Self { numbers, columns: columns.concat(), rest, kept, few }
    }

    /// The heaviest entries of a row, and at least the magnitude of all others; `None` of a row that is not long.
    #[inline]
    fn of(&self, row: u32) -> Option<(&[u32], f64)> {
        let number = self.numbers[row as usize];
        let columns = |start: usize| &self.columns[start..start + self.kept];
        (number != u32::MAX).then(|| (columns(number as usize * self.kept), self.rest[number as usize]))
    }
}

/// A set of nodes with the place of each in it.
#[derive(Debug, Clone)]
pub(crate) struct NodeSet {
    nodes: Vec<u32>,
    places: Vec<u32>,
}

impl NodeSet {
    /// The nodes for which `members` says yes.
    fn new(members: &[bool]) -> Self {
        let mut places = vec![u32::MAX; members.len()];
        let nodes: Vec<u32> = (0..members.len() as u32).filter(|&node| members[node as usize]).collect();
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

    /// The place of a member.
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
    /// What `targets` see of `model` with these matrices for its propagations.
    pub(crate) fn around(model: &Model, matrices: &[SparseMatrix], targets: &[NodeId]) -> Self {
        let (nodes, layers) = (matrices.first().map_or(0, SparseMatrix::rows), model.layers());
        let mut members = vec![vec![false; nodes]; layers.len() + 1];
        targets.iter().for_each(|target| members[layers.len()][target.index()] = true);
        for (i, layer) in layers.iter().enumerate().rev() {
            for term in layer.terms() {
                let Some(level) = level_of(term.source()) else { continue };
                let (lower, upper) = members.split_at_mut(i + 1);
                for m in (0..nodes).filter(|&m| upper[0][m]) {
                    let columns = matrices[term.propagation()].row(m).0;
                    columns.iter().for_each(|&n| lower[level][n as usize] = true);
                }
            }
        }
        Self { levels: members.iter().map(|members| NodeSet::new(members)).collect() }
    }

    /// The nodes of level `level`.
    pub(crate) fn level(&self, level: usize) -> &NodeSet {
        &self.levels[level]
    }

    /// The targets: the last level.
    pub(crate) fn targets(&self) -> &NodeSet {
        &self.levels[self.levels.len() - 1]
    }

    /// The propagation of a term that reads `source` for layer `layer`, between their levels. All columns are 0 where it reads
    /// the constant 1.
    pub(crate) fn hop<'r>(&'r self, propagation: &'r SparseMatrix, source: Source, layer: usize) -> RegionHop<'r> {
        let below = level_of(source).map(|level| &self.levels[level]);
        RegionHop { propagation, below, above: &self.levels[layer + 1] }
    }
}

/// A [`Hop`] of a region.
pub(crate) struct RegionHop<'r> {
    propagation: &'r SparseMatrix,
    below: Option<&'r NodeSet>,
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
        columns.iter().map(|&n| self.below.map_or(0, |below| below.place(n))).zip(weights.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dense::Matrix;
    use crate::model::{Activation, Layer, Propagation, Term};

    /// The path 0 – 1 – 2 – 3 with weights m + n/10 and no diagonal.
    fn path() -> SparseMatrix {
        let entry = |m: u32, n: u32| (m, n, f64::from(m) + f64::from(n) / 10.0);
        SparseMatrix::from_triplets(
            4,
            4,
            &[entry(0, 1), entry(1, 0), entry(1, 2), entry(2, 1), entry(2, 3), entry(3, 2)],
        )
    }

    fn gcn() -> Model {
        let layer = || (Matrix::zeros(2, 2), vec![0.0; 2]);
        Model::gcn(vec![layer(), layer()], Propagation::Custom(path())).unwrap()
    }

    #[test]
    fn slices_need_not_be_nested() {
        let path = [path()];
        let mut slicer = Slicer::new(&gcn(), &path);
        let slice = slicer.slice(NodeId(0));
        assert_eq!((slice.level(2), slice.level(1), slice.level(0)), (&[0][..], &[1][..], &[0, 2][..]));
        assert_eq!(slice.hop(0, 0).row(0).collect::<Vec<_>>(), [(0, 1.0), (1, 1.2)]);
        let slice = slicer.slice(NodeId(2));
        assert_eq!((slice.level(1), slice.level(0)), (&[1, 3][..], &[0, 2][..]));
        assert_eq!(slice.hop(0, 0).row(1).collect::<Vec<_>>(), [(1, 3.2)]);
    }

    #[test]
    fn a_region_is_the_union_of_slices() {
        let region = Region::around(&gcn(), &[path()], &[NodeId(3), NodeId(0)]);
        assert_eq!(region.level(2).nodes(), [0, 3]);
        assert_eq!(region.level(1).nodes(), [1, 2]);
        assert_eq!(region.level(0).nodes(), [0, 1, 2, 3]);
        assert_eq!(region.level(1).place(2), 1);
    }

    #[test]
    fn slices_follow_the_terms() {
        // The last layer reads the first at the node itself, the attributes at its neighbours, and their number.
        let dense = |source, propagation, inputs| Term::new(source, propagation, Matrix::zeros(inputs, 2));
        let first = Layer::new(vec![dense(Source::Attributes, 1, 2)], vec![0.0; 2], Activation::Relu);
        let terms = vec![dense(Source::Layer(0), 1, 2), dense(Source::Attributes, 0, 2), dense(Source::Ones, 0, 1)];
        let last = Layer::new(terms, vec![0.0; 2], Activation::None);
        let model = Model::new(2, vec![Propagation::Custom(path()), Propagation::Identity], vec![first, last]).unwrap();
        let identity = SparseMatrix::from_triplets(4, 4, &[(0, 0, 1.0), (1, 1, 1.0), (2, 2, 1.0), (3, 3, 1.0)]);
        let matrices = [path(), identity];
        let mut slicer = Slicer::new(&model, &matrices);
        let slice = slicer.slice(NodeId(1));
        assert_eq!((slice.level(2), slice.level(1), slice.level(0)), (&[1][..], &[1][..], &[0, 2, 1][..]));
        assert_eq!(slice.hop(1, 1).row(0).collect::<Vec<_>>(), [(0, 1.0), (1, 1.2)]);
        assert_eq!(slice.hop(1, 2).row(0).collect::<Vec<_>>(), [(0, 1.0), (0, 1.2)]);
        let region = Region::around(&model, &matrices, &[NodeId(1)]);
        assert_eq!((region.level(1).nodes(), region.level(0).nodes()), (&[1][..], &[0, 1, 2][..]));
    }
}

//! Exact bounds of the first layer.
//!
//! `Z_mj = Σ_n P_mn X_n W_j + b_j` is additive in the flips: one of (n, d) raises it by `P_mn σ W_dj`, σ = 1 − 2 X_nd. So
//!
//! ```text
//! hi_mj = Z_mj + Σ of the Q largest P_mn · gain over the q_n largest gains (σ W_dj)₊ of each neighbour n,
//! ```
//!
//! and `lo` with −σ (the paper's equations for R⁽²⁾ and S⁽²⁾). Each column of W is sorted once; the largest gains of a
//! node come from walking it, past the attributes that the node has, merged with the few gains of removing an
//! attribute: O(min(q, Q) + |X_n|) a node and unit instead of O(D).

use std::ops::{ControlFlow, Range};

use rayon::ThreadPool;
use rayon::prelude::*;

use crate::budget::Limits;
use crate::dense::Matrix;
use crate::graph::{AttributeId, NodeId};
use crate::network::Network;
use crate::selection::Selection;
use crate::slice::Region;

/// Units between two calls of the observer.
const BATCH: usize = 8;

/// `lo` and `hi`, a row for each node of level 1; `None` if the observer breaks off.
pub(super) fn bounds(
    network: &Network,
    limits: &Limits,
    region: &Region,
    clean: &Matrix,
    pool: &ThreadPool,
    observer: &mut impl FnMut(usize, usize) -> ControlFlow<()>,
) -> Option<(Matrix, Matrix)> {
    let problem = Problem::new(network, limits, region);
    let (mut lo, mut hi) = (clean.clone(), clean.clone());
    let units = problem.weights.rows();
    for first in (0..units).step_by(BATCH) {
        let batch = first..(first + BATCH).min(units);
        let moves: Vec<UnitMoves> = pool.install(|| batch.clone().into_par_iter().map(|j| problem.moves(j)).collect());
        for (unit, moves) in batch.clone().zip(moves) {
            moves.apply(unit, &mut lo, &mut hi);
        }
        if observer(batch.end, units).is_break() {
            return None;
        }
    }
    Some((lo, hi))
}

/// `lo` and `hi` as [`bounds`] has them, with the flips that attain them where a derivative can need them.
pub(super) fn attained_bounds(
    network: &Network,
    limits: &Limits,
    region: &Region,
    clean: &Matrix,
) -> (Matrix, Matrix, Attained) {
    let problem = Problem::new(network, limits, region);
    let (mut lo, mut hi) = (clean.clone(), clean.clone());
    let units = 0..problem.weights.rows();
    let moves: Vec<_> = units.into_par_iter().map(|unit| problem.attained_moves(unit, clean)).collect();
    let mut flips = Vec::with_capacity(moves.len());
    for (unit, (moves, attained)) in moves.into_iter().enumerate() {
        moves.apply(unit, &mut lo, &mut hi);
        flips.push(attained);
    }
    (lo, hi, Attained { neighbourhoods: problem.neighbourhoods, flips })
}

/// The flips that attain bounds.
#[derive(Debug)]
pub(crate) struct Attained {
    neighbourhoods: Neighbourhoods,
    /// For each unit those behind hi, and those behind lo.
    flips: Vec<[Lists<AttainedFlip>; 2]>,
}

/// A flip of an attribute at a neighbour, given as its entry in the [`Neighbourhoods`].
type AttainedFlip = (u32, u32);

impl Attained {
    /// Adds the derivative by the weights to `gradient`, given those by lo and hi. The flips being fixed,
    /// `∂hi_mj / ∂W_dj = P_mn σ` and `σ = sign W_dj`, since only gains `P_mn σ W_dj > 0` are taken; for lo the sign
    /// turns.
    pub(super) fn add_gradient(&self, weight: &Matrix, by_lo: &Matrix, by_hi: &Matrix, gradient: &mut Matrix) {
        let columns: Vec<Vec<f64>> = (0..self.flips.len())
            .into_par_iter()
            .map(|unit| {
                let mut column = vec![0.0; weight.rows()];
                for (lists, derivative, direction) in
                    [(&self.flips[unit][0], by_hi, 1.0), (&self.flips[unit][1], by_lo, -1.0)]
                {
                    for place in 0..derivative.rows() {
                        let derivative = direction * derivative.get(place, unit);
                        for &(entry, attribute) in lists.of(place) {
                            let (_, p) = self.neighbourhoods.entries[entry as usize];
                            let sign = weight.get(attribute as usize, unit).signum();
                            column[attribute as usize] += derivative * p * sign;
                        }
                    }
                }
                column
            })
            .collect();
        for attribute in 0..weight.rows() {
            for (value, column) in gradient.row_mut(attribute).iter_mut().zip(&columns) {
                *value += column[attribute];
            }
        }
    }
}

/// Everything that the bounds of all units share.
struct Problem<'a> {
    network: &'a Network<'a>,
    limits: &'a Limits,
    nodes: &'a [u32],
    neighbourhoods: Neighbourhoods,
    /// A row for each unit.
    weights: Matrix,
    /// A node needs at most this many of the attributes with the largest gains: it may have all the others.
    most: usize,
}

impl<'a> Problem<'a> {
    fn new(network: &'a Network<'a>, limits: &'a Limits, region: &'a Region) -> Self {
        let nodes = region.level(0).nodes();
        let attributes = network.graph().attributes();
        let needed = |&node: &u32| capacity(limits, node) + attributes.row(node as usize).len();
        Self {
            network,
            limits,
            nodes,
            neighbourhoods: Neighbourhoods::new(network, region),
            weights: network.layers()[0].weight().transposed(),
            most: nodes.iter().map(needed).max().unwrap_or(0),
        }
    }

    /// How far `unit` can be moved.
    fn moves(&self, unit: usize) -> UnitMoves {
        let [up, down] = self.both_ways(unit).map(|column| {
            let mut moves = Vec::with_capacity(self.neighbourhoods.len());
            self.select(&column, |_, _| (), |selection: &Selection<()>| moves.push(selection.total()));
            moves
        });
        UnitMoves { up, down }
    }

    /// How far `unit` can be moved, and the flips that do so.
    fn attained_moves(&self, unit: usize, clean: &Matrix) -> (UnitMoves, [Lists<AttainedFlip>; 2]) {
        let mut flips = [Lists::default(), Lists::default()];
        let mut moves = [Vec::with_capacity(self.neighbourhoods.len()), Vec::with_capacity(self.neighbourhoods.len())];
        for ((column, flips), moves) in self.both_ways(unit).iter().zip(&mut flips).zip(&mut moves) {
            self.select(
                column,
                |entry, attribute| (entry, attribute),
                |selection: &Selection<AttainedFlip>| {
                    moves.push(selection.total());
                    flips.push(selection.best().iter().map(|&(_, flip)| flip));
                },
            );
        }
        let [up, down] = moves;
        // Lines depend on the bounds of unstable units, deeper bounds on those of active ones too.
        let deeper = self.network.model().hidden_layers() > 1;
        let needed = |place: usize| {
            let z = clean.get(place, unit);
            z + up[place] > 0.0 && (deeper || z - down[place] < 0.0)
        };
        flips.iter_mut().for_each(|lists| lists.retain(needed));
        (UnitMoves { up, down }, flips)
    }

    /// The weights of a unit, for its rise and for its fall.
    fn both_ways(&self, unit: usize) -> [Vec<f64>; 2] {
        let column = self.weights.row(unit);
        [column.to_vec(), column.iter().map(|w| -w).collect()]
    }

    /// Tells `visit` for each node of level 1 the flips that raise a unit with weights `column` most; `item` makes what
    /// the selection keeps of a flip from the neighbour's entry and the attribute.
    fn select<T: Copy>(&self, column: &[f64], item: impl Fn(u32, u32) -> T, mut visit: impl FnMut(&Selection<T>)) {
        let gains = NodeGains::compute(self, column);
        let mut selection = Selection::new(self.limits.global());
        for place in 0..self.neighbourhoods.len() {
            selection.clear();
            for entry in self.neighbourhoods.range(place) {
                let (n, weight) = self.neighbourhoods.entries[entry];
                if weight * gains.largest <= selection.threshold() {
                    break;
                }
                let (values, attributes) = gains.of(n as usize);
                selection.offer_sorted(weight, values, |i| item(entry as u32, attributes[i]));
            }
            visit(&selection);
        }
    }
}

/// Most flips at `node` that can be of use.
fn capacity(limits: &Limits, node: u32) -> usize {
    limits.local(NodeId(node)).min(limits.global())
}

/// For each node of level 1 its neighbours, as places in level 0, by decreasing weight.
#[derive(Debug)]
struct Neighbourhoods {
    offsets: Vec<usize>,
    entries: Vec<(u32, f64)>,
}

impl Neighbourhoods {
    fn new(network: &Network, region: &Region) -> Self {
        let mut offsets = vec![0];
        let mut entries: Vec<(u32, f64)> = Vec::new();
        for &m in region.level(1).nodes() {
            let (nodes, weights) = network.propagation().row(m as usize);
            let start = entries.len();
            entries.extend(nodes.iter().zip(weights).map(|(&n, &p)| (region.level(0).place(n) as u32, p)));
            entries[start..].sort_by(|a, b| b.1.total_cmp(&a.1));
            offsets.push(entries.len());
        }
        Self { offsets, entries }
    }

    fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    fn range(&self, place: usize) -> Range<usize> {
        self.offsets[place]..self.offsets[place + 1]
    }
}

/// One list after the other.
#[derive(Debug)]
struct Lists<T> {
    offsets: Vec<u32>,
    items: Vec<T>,
}

impl<T> Default for Lists<T> {
    fn default() -> Self {
        Self { offsets: vec![0], items: Vec::new() }
    }
}

impl<T: Copy> Lists<T> {
    fn push(&mut self, items: impl Iterator<Item = T>) {
        self.items.extend(items);
        self.offsets.push(self.items.len() as u32);
    }

    fn of(&self, list: usize) -> &[T] {
        &self.items[self.offsets[list] as usize..self.offsets[list + 1] as usize]
    }

    /// Empties every list for which `keep` is false.
    fn retain(&mut self, keep: impl Fn(usize) -> bool) {
        let (mut start, mut kept) = (0, 0);
        for list in 0..self.offsets.len() - 1 {
            let end = self.offsets[list + 1] as usize;
            if keep(list) {
                self.items.copy_within(start..end, kept);
                kept += end - start;
            }
            start = end;
            self.offsets[list + 1] = kept as u32;
        }
        self.items.truncate(kept);
        self.items.shrink_to_fit();
    }
}

/// How far one unit can be moved, for each node of level 1.
struct UnitMoves {
    up: Vec<f64>,
    down: Vec<f64>,
}

impl UnitMoves {
    fn apply(&self, unit: usize, lo: &mut Matrix, hi: &mut Matrix) {
        for (place, (up, down)) in self.up.iter().zip(&self.down).enumerate() {
            lo.row_mut(place)[unit] -= down;
            hi.row_mut(place)[unit] += up;
        }
    }
}

/// For each node of level 0 its min(q_n, Q) largest gains on one unit, in decreasing order.
struct NodeGains {
    offsets: Vec<usize>,
    gains: Vec<f64>,
    attributes: Vec<u32>,
    largest: f64,
}

impl NodeGains {
    fn compute(problem: &Problem, column: &[f64]) -> Self {
        let Problem { network, limits, nodes, most, .. } = *problem;
        let attributes = network.graph().attributes();
        let rising = rising_attributes(limits, column, most);
        let mut owner = vec![u32::MAX; column.len()];
        let mut all = Self { offsets: vec![0], gains: Vec::new(), attributes: Vec::new(), largest: 0.0 };
        let mut deletions = Vec::new();
        for &node in nodes {
            let capacity = capacity(limits, node);
            let row = attributes.row(node as usize);
            let start = all.gains.len();
            if capacity > 0 {
                row.iter().for_each(|&attribute| owner[attribute as usize] = node);
                let missing = rising.iter().filter(|&&(_, attribute)| owner[attribute as usize] != node);
                for &(gain, attribute) in missing.take(capacity) {
                    all.gains.push(gain);
                    all.attributes.push(attribute);
                }
                if limits.deletions() {
                    let full = all.gains.len() - start == capacity;
                    let threshold = if full { all.gains[all.gains.len() - 1] } else { 0.0 };
                    collect_deletions(limits, row, column, threshold, &mut deletions);
                    all.merge_decreasing(start, &deletions, capacity);
                }
                all.largest = all.gains.get(start).map_or(all.largest, |&gain| all.largest.max(gain));
            }
            all.offsets.push(all.gains.len());
        }
        all
    }

    /// The gains of a node, and the attributes whose flips they are.
    #[inline]
    fn of(&self, place: usize) -> (&[f64], &[u32]) {
        let range = self.offsets[place]..self.offsets[place + 1];
        (&self.gains[range.clone()], &self.attributes[range])
    }

    /// Merges decreasing `more` into the decreasing tail from `start`, keeping the `capacity` largest.
    fn merge_decreasing(&mut self, start: usize, more: &[(f64, u32)], capacity: usize) {
        let (mut left, mut right) = (self.gains.len() - start, more.len());
        let merged = left + right;
        self.gains.resize(start + merged, 0.0);
        self.attributes.resize(start + merged, 0);
        for place in (start..start + merged).rev() {
            if right == 0 {
                break;
            }
            if left > 0 && self.gains[start + left - 1] < more[right - 1].0 {
                left -= 1;
                self.gains[place] = self.gains[start + left];
                self.attributes[place] = self.attributes[start + left];
            } else {
                right -= 1;
                (self.gains[place], self.attributes[place]) = more[right];
            }
        }
        self.gains.truncate(start + capacity.min(merged));
        self.attributes.truncate(start + capacity.min(merged));
    }
}

/// The `most` attributes whose addition raises the unit most, largest weight first.
fn rising_attributes(limits: &Limits, column: &[f64], most: usize) -> Vec<(f64, u32)> {
    if !limits.additions() {
        return Vec::new();
    }
    let weights = column.iter().zip(0u32..).map(|(&weight, attribute)| (weight, attribute));
    let mut rising: Vec<_> =
        weights.filter(|&(weight, attribute)| weight > 0.0 && limits.flippable(AttributeId(attribute))).collect();
    let order = |a: &(f64, u32), b: &(f64, u32)| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1));
    if most < rising.len() {
        rising.select_nth_unstable_by(most, order);
        rising.truncate(most);
    }
    rising.sort_unstable_by(order);
    rising
}

/// Gains above `threshold` of removing attributes of `row`, decreasing.
fn collect_deletions(limits: &Limits, row: &[u32], column: &[f64], threshold: f64, deletions: &mut Vec<(f64, u32)>) {
    deletions.clear();
    for &attribute in row {
        let gain = -column[attribute as usize];
        if gain > threshold && limits.flippable(AttributeId(attribute)) {
            deletions.push((gain, attribute));
        }
    }
    deletions.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merging_keeps_the_largest() {
        let merge = |left: &[f64], right: &[f64], capacity| {
            let gains = [&[9.0][..], left].concat();
            let attributes = (0..gains.len() as u32).collect();
            let mut list = NodeGains { offsets: vec![0], gains, attributes, largest: 9.0 };
            let right: Vec<(f64, u32)> = right.iter().copied().zip(10..).collect();
            list.merge_decreasing(1, &right, capacity);
            (list.gains[1..].to_vec(), list.attributes[1..].to_vec())
        };
        assert_eq!(merge(&[5.0, 3.0, 1.0], &[4.0, 2.0], 4), (vec![5.0, 4.0, 3.0, 2.0], vec![1, 10, 2, 11]));
        assert_eq!(merge(&[], &[4.0, 2.0], 4), (vec![4.0, 2.0], vec![10, 11]));
        assert_eq!(merge(&[5.0], &[], 1), (vec![5.0], vec![1]));
        assert_eq!(merge(&[1.0, 1.0], &[1.0], 2), (vec![1.0, 1.0], vec![1, 2]));
    }

    #[test]
    fn emptied_lists_leave_the_others_as_they_were() {
        let mut lists = Lists::default();
        for list in [&[1, 2][..], &[], &[3], &[4, 5, 6]] {
            lists.push(list.iter().copied());
        }
        lists.retain(|list| list != 0);
        assert_eq!([0, 1, 2, 3].map(|list| lists.of(list).to_vec()), [vec![], vec![], vec![3], vec![4, 5, 6]]);
    }
}

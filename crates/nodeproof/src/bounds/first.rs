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

use std::ops::ControlFlow;

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
    let weights = network.layers()[0].weight().transposed();
    let neighbourhoods = Neighbourhoods::new(network, region);
    let (mut lo, mut hi) = (clean.clone(), clean.clone());
    let units = weights.rows();
    for first in (0..units).step_by(BATCH) {
        let batch = first..(first + BATCH).min(units);
        let unit_moves = |unit| UnitMoves::compute(network, limits, region, &neighbourhoods, weights.row(unit));
        let moves: Vec<UnitMoves> = pool.install(|| batch.clone().into_par_iter().map(unit_moves).collect());
        for (unit, UnitMoves { up, down }) in batch.clone().zip(moves) {
            for place in 0..lo.rows() {
                lo.row_mut(place)[unit] -= down[place];
                hi.row_mut(place)[unit] += up[place];
            }
        }
        if observer(batch.end, units).is_break() {
            return None;
        }
    }
    Some((lo, hi))
}

/// For each node of level 1 its neighbours, as places in level 0, by decreasing weight.
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

    fn of(&self, place: usize) -> &[(u32, f64)] {
        &self.entries[self.offsets[place]..self.offsets[place + 1]]
    }
}

/// How far one unit can be moved, for each node of level 1.
struct UnitMoves {
    up: Vec<f64>,
    down: Vec<f64>,
}

impl UnitMoves {
    fn compute(
        network: &Network,
        limits: &Limits,
        region: &Region,
        neighbourhoods: &Neighbourhoods,
        column: &[f64],
    ) -> Self {
        let falling: Vec<f64> = column.iter().map(|w| -w).collect();
        Self {
            up: moves(network, limits, region, neighbourhoods, column),
            down: moves(network, limits, region, neighbourhoods, &falling),
        }
    }
}

/// For each node of level 1 the largest rise of a unit with weights `column`.
fn moves(
    network: &Network,
    limits: &Limits,
    region: &Region,
    neighbourhoods: &Neighbourhoods,
    column: &[f64],
) -> Vec<f64> {
    let gains = NodeGains::compute(network, limits, region.level(0).nodes(), column);
    let mut selection = Selection::new(limits.global());
    (0..region.level(1).nodes().len())
        .map(|place| {
            selection.clear();
            for &(n, weight) in neighbourhoods.of(place) {
                if weight * gains.largest <= selection.threshold() {
                    break;
                }
                selection.offer_sorted(weight, gains.of(n as usize), |_| ());
            }
            selection.total()
        })
        .collect()
}

/// For each node of level 0 its min(q_n, Q) largest gains on one unit, in decreasing order.
struct NodeGains {
    offsets: Vec<usize>,
    gains: Vec<f64>,
    largest: f64,
}

impl NodeGains {
    fn compute(network: &Network, limits: &Limits, nodes: &[u32], column: &[f64]) -> Self {
        let attributes = network.graph().attributes();
        let rising = rising_attributes(limits, column);
        let mut owner = vec![u32::MAX; column.len()];
        let mut offsets = vec![0];
        let mut gains = Vec::new();
        let mut deletions = Vec::new();
        let mut largest = 0.0f64;
        for &node in nodes {
            let capacity = limits.local(NodeId(node)).min(limits.global());
            let row = attributes.row(node as usize);
            let start = gains.len();
            if capacity > 0 {
                row.iter().for_each(|&attribute| owner[attribute as usize] = node);
                let missing = rising.iter().filter(|&&(_, attribute)| owner[attribute as usize] != node);
                gains.extend(missing.take(capacity).map(|&(gain, _)| gain));
                if limits.deletions() {
                    let full = gains.len() - start == capacity;
                    let threshold = if full { gains[gains.len() - 1] } else { 0.0 };
                    collect_deletions(limits, row, column, threshold, &mut deletions);
                    merge_decreasing(&mut gains, start, &deletions, capacity);
                }
                largest = gains.get(start).map_or(largest, |&gain| largest.max(gain));
            }
            offsets.push(gains.len());
        }
        Self { offsets, gains, largest }
    }

    #[inline]
    fn of(&self, place: usize) -> &[f64] {
        &self.gains[self.offsets[place]..self.offsets[place + 1]]
    }
}

/// Attributes whose addition raises the unit, largest weight first.
fn rising_attributes(limits: &Limits, column: &[f64]) -> Vec<(f64, u32)> {
    if !limits.additions() {
        return Vec::new();
    }
    let weights = column.iter().zip(0u32..).map(|(&weight, attribute)| (weight, attribute));
    let mut rising: Vec<_> =
        weights.filter(|&(weight, attribute)| weight > 0.0 && limits.flippable(AttributeId(attribute))).collect();
    rising.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    rising
}

/// Gains above `threshold` of removing attributes of `row`, decreasing.
fn collect_deletions(limits: &Limits, row: &[u32], column: &[f64], threshold: f64, deletions: &mut Vec<f64>) {
    deletions.clear();
    for &attribute in row {
        let gain = -column[attribute as usize];
        if gain > threshold && limits.flippable(AttributeId(attribute)) {
            deletions.push(gain);
        }
    }
    deletions.sort_unstable_by(|a, b| b.total_cmp(a));
}

/// Merges decreasing `more` into the decreasing tail of `list` from `start`, keeping the `capacity` largest.
fn merge_decreasing(list: &mut Vec<f64>, start: usize, more: &[f64], capacity: usize) {
    let (mut left, mut right) = (list.len() - start, more.len());
    let merged = left + right;
    list.resize(start + merged, 0.0);
    for place in (0..merged).rev() {
        if right == 0 {
            break;
        }
        list[start + place] = if left > 0 && list[start + left - 1] < more[right - 1] {
            left -= 1;
            list[start + left]
        } else {
            right -= 1;
            more[right]
        };
    }
    list.truncate(start + capacity.min(merged));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merging_keeps_the_largest() {
        let merge = |left: &[f64], right: &[f64], capacity| {
            let mut list = [&[9.0][..], left].concat();
            merge_decreasing(&mut list, 1, right, capacity);
            list[1..].to_vec()
        };
        assert_eq!(merge(&[5.0, 3.0, 1.0], &[4.0, 2.0], 4), [5.0, 4.0, 3.0, 2.0]);
        assert_eq!(merge(&[], &[4.0, 2.0], 4), [4.0, 2.0]);
        assert_eq!(merge(&[5.0], &[], 1), [5.0]);
        assert_eq!(merge(&[1.0, 1.0], &[1.0], 2), [1.0, 1.0]);
    }
}

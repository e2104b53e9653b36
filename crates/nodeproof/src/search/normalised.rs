//! Searching where the ones of a row are divided by their number (Lemma 46 of `docs/maths.md`).
//!
//! With a query z of a row, t = μ · z and m' ≥ 1 ones left, flips gain `Σ σ (W_d · z − t) / m'` together, and −t if none is left. A row
//! is looked at as long as a flip of it may gain more than the least that one more flip gains so far, and of its additions those that may.

use super::{NormTable, Row};
use crate::dense::{Matrix, dot};
use crate::ids::{AttributeId, NodeId};
use crate::prepare::Shard;
use crate::selection::{OverRows, RowGains, RowScores, Selection};
use crate::slice::SlicedFlip;

/// Searches the best flips of a slice whose rows are divided.
pub(crate) struct NormalisedRows<'a> {
    pub(crate) shared: &'a Shard<'a>,
    /// Level 0 of the slice.
    pub(crate) nodes: &'a [u32],
    /// μ of the nodes of level 0 of the region.
    pub(crate) means: &'a Matrix,
    /// Attributes by falling norms.
    pub(crate) table: &'a NormTable,
    /// So many of them may be added; if these are not all, the best may be missing.
    pub(crate) count: usize,
}

/// The flips of a row that may be of use, by falling scores.
struct Found {
    additions: Vec<(f64, SlicedFlip)>,
    removals: Vec<(f64, SlicedFlip)>,
    gains: RowGains,
}

impl NormalisedRows<'_> {
    /// Puts the best admissible flips into `selection`, each with its part of what its row gains. `rows` are sorted by norm;
    /// `query(position, z)` writes the query of a row.
    pub(crate) fn search(
        &self,
        rows: &[Row],
        mut query: impl FnMut(usize, &mut [f64]),
        z: &mut [f64],
        selection: &mut Selection<SlicedFlip>,
    ) {
        let limits = self.shared.limits;
        let flips = limits.flips_within(self.nodes);
        let mut over = OverRows::new(flips);
        let mut all: Vec<Found> = Vec::new();
        let mut reaches: Vec<(f64, &Row)> =
            rows.iter().map(|row| (self.reach(row, flips, row.norm * self.table.longest), row)).collect();
        reaches.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.position.cmp(&b.1.position)));
        for (reach, row) in reaches {
            let least = over.threshold();
            if reach <= least {
                break;
            }
            query(row.position as usize, z);
            let node = self.nodes[row.position as usize];
            let mean = dot(z, self.means.row(self.shared.region.level(0).place(node)));
            if self.reach(row, flips, mean.abs()) <= least {
                continue;
            }
            let found = self.best_of(row.position, limits.local(NodeId(node)).min(flips), (z, mean), least);
            over.add(&found.gains, 1.0);
            all.push(found);
        }
        selection.reset(flips);
        for (found, taken) in all.iter().rev().zip(over.taken(flips)) {
            let (added, removed) = found.gains.way(taken);
            let gain = found.gains.totals()[taken] / (added + removed) as f64;
            let chosen = found.additions[..added].iter().chain(&found.removals[..removed]);
            chosen.for_each(|&(_, flip)| selection.offer(gain, flip));
        }
        selection.settle();
    }

    /// More than each flip of a row gains, given a bound of |t|; 0 if there may be none.
    fn reach(&self, row: &Row, flips: usize, mean: f64) -> f64 {
        let (limits, node) = (self.shared.limits, self.nodes[row.position as usize]);
        let most = limits.local(NodeId(node)).min(flips);
        if most == 0 {
            return 0.0;
        }
        let removed = if limits.deletions() { most } else { 0 };
        let fewest = self.own(node).len().saturating_sub(removed).max(1) as f64;
        // Rounding is far below the difference.
        (row.norm * self.table.longest + mean) / fewest * (1.0 + 1e-9)
    }

    fn own(&self, node: u32) -> &[u32] {
        self.shared.network.graph().attributes().row(node as usize)
    }

    /// The best of a row for each number of flips, z and t being given; additions that gain at most `least` are left out.
    fn best_of(&self, position: u32, most: usize, (z, mean): (&[f64], f64), least: f64) -> Found {
        let (network, limits) = (self.shared.network, self.shared.limits);
        let node = self.nodes[position as usize];
        let (own, weight) = (self.own(node), network.attribute_weight());
        let score = |d: u32| dot(z, weight.row(d as usize)) - mean;
        let removed = if limits.deletions() { most - 1 } else { 0 };
        let fewest = (own.len() + 1).saturating_sub(removed).max(1) as f64;
        let mut additions = Selection::new(most);
        if limits.additions() {
            let (floor, weights) = (least * fewest, (weight, &self.shared.tables.rough));
            self.table.visit_above(weights, z, self.count, floor + mean, |d, product| {
                let score = product - mean;
                if score > floor && own.binary_search(&d).is_err() {
                    additions.offer(score, (position, d));
                }
                additions.threshold().max(floor) + mean
            });
            additions.settle();
        }
        let additions = additions.best().to_vec();
        let removable = own.iter().filter(|&&d| limits.deletions() && limits.flippable(AttributeId(d)));
        let mut removals: Vec<(f64, SlicedFlip)> = removable.map(|&d| (-score(d), (position, d))).collect();
        removals.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let emptied = (!own.is_empty() && removals.len() == own.len()).then_some(-mean);
        removals.truncate(most);
        let scores = |of: &[(f64, SlicedFlip)]| of.iter().map(|&(score, _)| score).collect::<Vec<f64>>();
        let gains = RowGains::best(RowScores {
            ones: own.len(),
            capacity: most,
            additions: &scores(&additions),
            removals: &scores(&removals),
            emptied,
        });
        Found { additions, removals, gains }
    }
}

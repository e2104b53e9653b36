//! Finding the flips with the largest gains without looking at all of them.
//!
//! A row n of the attributes has a query vector z_n; adding attribute d gains `z_n · W_d`, removing it `−z_n · W_d`. Queries
//! look alike, so each is split into its part along a mean direction and a rest, `z = along · z̄ + rest`, and by Cauchy
//! and Schwarz
//!
//! ```text
//! z · W_d ≤ along · (z̄ · W_d) + ‖rest‖ · ‖W_d‖.
//! ```
//!
//! Rows are visited by decreasing norm of the query and attributes by decreasing `z̄ · W_d`, until no gain can enter the
//! selection any more. What is left is looked at in single precision first, and in double precision only if that leaves open
//! whether the gain can enter. The result is that of looking at every flip.

use std::cmp::Reverse;

use crate::budget::Limits;
use crate::dense::{Matrix, dot};
use crate::graph::{AttributeId, NodeId};
use crate::kernels::{InnerProduct, LANES, Work, dispatch};
use crate::network::Network;
use crate::selection::Selection;
use crate::slice::SlicedFlip;
use crate::sparse::Pattern;

/// Below this, squares may have lost digits to underflow.
pub(crate) const SAFE_SQUARE: f64 = 1e-280;

/// A number that is at least `√Σ x_j²`, up to rounding, even where squares underflow.
pub(crate) fn norm_above(x: &[f64]) -> f64 {
    let squares = dot(x, x);
    if squares > SAFE_SQUARE {
        return squares.sqrt();
    }
    x.iter().fold(0.0f64, |largest, x| largest.max(x.abs())) * (x.len() as f64).sqrt()
}

/// One in this many attributes is sorted.
const SORTED_SHARE: usize = 8;

/// What is known of the gain of flipping an attribute: its value for the mean query, and the norm that bounds how much other
/// queries differ.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reach {
    pub(crate) mean: f64,
    pub(crate) norm: f64,
}

/// An attribute that may be added, with its [`Reach`] rounded up.
#[derive(Debug, Clone, Copy)]
struct Addition {
    mean: f32,
    norm: f32,
    /// The largest norm from here on, if this is in order.
    rest: f32,
    attribute: u32,
}

/// Attributes with bounds on what flipping them can gain.
#[derive(Debug)]
pub(crate) struct Table {
    /// First the ones with the largest means, largest first, then the others in any order.
    additions: Vec<Addition>,
    /// How many are in order. Searches seldom come further, and sorting takes time.
    sorted: usize,
    /// Mean and norm of each attribute's deletion, rounded up, or [`NOT_ALLOWED`].
    deletions: Vec<[f32; 2]>,
    /// The largest mean and the largest norm of all, and of deletions.
    largest: Reach,
    largest_deletion: Reach,
}

/// The reach of a flip that is not allowed: no norm is negative.
const NOT_ALLOWED: [f32; 2] = [0.0, -1.0];

impl Table {
    /// Memory for each attribute.
    pub(crate) const BYTES_EACH: usize = size_of::<Addition>() + size_of::<[f32; 2]>();

    pub(crate) fn new(
        limits: &Limits,
        attributes: usize,
        addition: impl Fn(usize) -> Reach,
        deletion: impl Fn(usize) -> Reach,
    ) -> Self {
        let flippable = |attribute: usize| limits.flippable(AttributeId(attribute as u32));
        let mut additions = Vec::new();
        if limits.additions() {
            additions.extend((0..attributes).filter(|&d| flippable(d)).map(|d| {
                let Reach { mean, norm } = addition(d);
                Addition { mean: round_up(mean), norm: round_up(norm), rest: 0.0, attribute: d as u32 }
            }));
            additions.retain(|addition| addition.norm != 0.0);
        }
        let sorted = sort_head(&mut additions);
        let rounded = |d: usize| {
            let Reach { mean, norm } = deletion(d);
            if limits.deletions() && flippable(d) { [round_up(mean), round_up(norm)] } else { NOT_ALLOWED }
        };
        let deletions: Vec<[f32; 2]> = (0..attributes).map(rounded).collect();
        let largest_deletion =
            largest(deletions.iter().map(|&[mean, norm]| Reach { mean: mean.into(), norm: norm.into() }));
        let reaches = additions.iter().map(|a| Reach { mean: a.mean.into(), norm: a.norm.into() });
        let largest = largest(reaches.chain([largest_deletion]));
        Self { additions, sorted, deletions, largest, largest_deletion }
    }
}

/// Brings the additions with the largest means to the front, in order, and returns how many these are.
fn sort_head(additions: &mut [Addition]) -> usize {
    let key =
        |addition: &Addition| (Reverse(ordered(addition.mean)), Reverse(ordered(addition.norm)), addition.attribute);
    let sorted = additions.len().div_ceil(SORTED_SHARE);
    if sorted < additions.len() {
        additions.select_nth_unstable_by_key(sorted, key);
    }
    additions[..sorted].sort_unstable_by_key(key);
    let mut rest = additions[sorted..].iter().fold(0.0f32, |rest, addition| rest.max(addition.norm));
    for addition in additions[..sorted].iter_mut().rev() {
        rest = rest.max(addition.norm);
        addition.rest = rest;
    }
    sorted
}

fn largest(reaches: impl Iterator<Item = Reach>) -> Reach {
    let larger = |a: Reach, b: Reach| Reach { mean: a.mean.max(b.mean), norm: a.norm.max(b.norm) };
    reaches.reduce(larger).unwrap_or(Reach { mean: 0.0, norm: 0.0 })
}

/// A number that is ordered as `x` is.
fn ordered(x: f32) -> u32 {
    let bits = x.to_bits();
    if bits >> 31 == 0 { bits | 1 << 31 } else { !bits }
}

/// The smallest single that is at least `x`.
fn round_up(x: f64) -> f32 {
    let single = x as f32;
    if f64::from(single) < x { single.next_up() } else { single }
}

/// The first layer's weights in single precision, scaled so that no row is longer than 1.
///
/// For a query of length 1 an inner product of h terms is then off by at most `(h + 8) 2⁻²⁴`: half an ulp for each
/// rounding of an input, a product or a sum, and next to nothing for underflow.
#[derive(Debug)]
pub(crate) struct RoughWeights {
    width: usize,
    rows: Vec<f32>,
    /// Length of the longest row, the unit in which they are stored.
    unit: f64,
    /// How far an inner product may be off, with something to spare.
    slack: f64,
}

impl RoughWeights {
    pub(crate) fn new(weight: &Matrix) -> Self {
        let width = weight.columns().next_multiple_of(LANES);
        let unit = (0..weight.rows()).map(|row| norm_above(weight.row(row))).fold(0.0, f64::max);
        let mut rows = vec![0.0; weight.rows() * width];
        for (row, rough) in rows.chunks_exact_mut(width).enumerate() {
            for (rough, &w) in rough.iter_mut().zip(weight.row(row)) {
                *rough = (w / unit) as f32;
            }
        }
        Self { width, rows, unit, slack: 1.25 * (weight.columns() + 8) as f64 * f64::from(f32::EPSILON) / 2.0 }
    }

    #[inline(always)]
    fn row(&self, attribute: u32) -> &[f32] {
        &self.rows[attribute as usize * self.width..][..self.width]
    }
}

/// A row of the slice's attributes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    /// Its position in level 0.
    pub(crate) position: u32,
    /// The norm of its query.
    pub(crate) norm: f64,
    /// The query's length along the mean query, and the norm of the rest.
    pub(crate) along: f64,
    pub(crate) off: f64,
}

impl Row {
    /// A row whose query is compared with no mean.
    pub(crate) fn without_mean(position: u32, query: &[f64]) -> Self {
        let norm = norm_above(query);
        Self { position, norm, along: 0.0, off: norm }
    }

    /// A row whose query is compared with a mean of length 1, both ≥ 0.
    pub(crate) fn with_mean(position: u32, query: &[f64], mean: &[f64]) -> Self {
        let norm = norm_above(query);
        let along = dot(query, mean);
        let squares: f64 = query.iter().zip(mean).map(|(z, mean)| (z - along * mean) * (z - along * mean)).sum();
        // Far more than rounding can do to `along`, the rest and the means of a table.
        Self { position, norm, along, off: squares.sqrt() * (1.0 + SLACK) + norm * SLACK }
    }

    /// A bound on the gain of a flip with this reach; NaN, which bounds nothing, where numbers are too large for singles.
    #[inline(always)]
    fn bound(&self, mean: f64, norm: f64) -> f64 {
        self.along * mean + self.off * norm
    }
}

/// Relative slack in what is left out.
const SLACK: f64 = 1e-11;

/// Sorts rows by decreasing query norm.
pub(crate) fn sort_rows(rows: &mut [Row]) {
    rows.sort_unstable_by(|a, b| b.norm.total_cmp(&a.norm).then(a.position.cmp(&b.position)));
}

/// Searches the best flips of a slice.
#[derive(Debug)]
pub(crate) struct Search<'a> {
    attributes: &'a Pattern,
    weight: &'a Matrix,
    rough: &'a RoughWeights,
    limits: &'a Limits,
    row_best: Selection<SlicedFlip>,
    rough_z: Vec<f32>,
}

impl<'a> Search<'a> {
    pub(crate) fn new(network: &Network<'a>, limits: &'a Limits, rough: &'a RoughWeights) -> Self {
        Self {
            attributes: network.graph().attributes(),
            weight: network.layers()[0].weight(),
            rough,
            limits,
            row_best: Selection::new(0),
            rough_z: vec![0.0; rough.width],
        }
    }

    /// Puts the best admissible flips of `nodes` (level 0 of a slice) into `selection`. `rows` are sorted by norm;
    /// `query(position, z)` writes the query of a row.
    pub(crate) fn run(
        &mut self,
        table: &Table,
        nodes: &[u32],
        rows: &[Row],
        mut query: impl FnMut(usize, &mut [f64]),
        z: &mut [f64],
        selection: &mut Selection<SlicedFlip>,
    ) {
        selection.reset(self.limits.global());
        for &row in rows {
            if row.norm * table.largest.norm <= selection.threshold() {
                break;
            }
            if row.bound(table.largest.mean, table.largest.norm) <= selection.threshold() {
                continue;
            }
            let node = nodes[row.position as usize];
            let local = self.limits.local(NodeId(node));
            if local == 0 {
                continue;
            }
            query(row.position as usize, z);
            let attributes = self.attributes.row(node as usize);
            let floor = selection.threshold();
            let whole = local >= self.limits.global();
            self.row_best.reset(local);
            let target = if whole { &mut *selection } else { &mut self.row_best };
            let length = norm_above(z);
            for (rough, &z) in self.rough_z.iter_mut().zip(z.iter()) {
                *rough = (z / length) as f32;
            }
            dispatch(RowSearch {
                table,
                weight: self.weight,
                rough: self.rough,
                attributes,
                row,
                z,
                rough_z: &self.rough_z,
                rough_unit: length * self.rough.unit,
                floor,
                selection: target,
            });
            if !whole {
                self.row_best.settle();
                self.row_best.best().iter().for_each(|&(gain, flip)| selection.offer(gain, flip));
            }
        }
        selection.settle();
    }
}

/// One row of the slice's attributes, and what is needed to offer its flips.
struct RowSearch<'a> {
    table: &'a Table,
    weight: &'a Matrix,
    rough: &'a RoughWeights,
    attributes: &'a [u32],
    row: Row,
    z: &'a [f64],
    /// The query, scaled to length 1, and what an inner product with it stands for.
    rough_z: &'a [f32],
    rough_unit: f64,
    /// Gains up to this are of no use, whatever the selection says.
    floor: f64,
    selection: &'a mut Selection<SlicedFlip>,
}

impl Work for RowSearch<'_> {
    /// Offers all flips of the row that can enter the selection.
    #[inline(always)]
    fn run(self, inner_product: impl InnerProduct) {
        let Self { table, weight, rough, attributes, row, z, rough_z, rough_unit, floor, selection } = self;
        let position = self.row.position;
        let mut threshold = selection.threshold().max(floor);
        // A gain up to the threshold looks, in single precision, at most like this.
        let rough_limit = |threshold: f64| (threshold / rough_unit - rough.slack) as f32;
        let mut limit = rough_limit(threshold);
        let Reach { mean, norm } = table.largest_deletion;
        let deletions = if row.bound(mean, norm) <= threshold { &[] } else { attributes };
        for &attribute in deletions {
            let [mean, norm] = table.deletions[attribute as usize];
            if norm < 0.0 || row.bound(mean.into(), norm.into()) <= threshold {
                continue;
            }
            if -inner_product.rough(rough_z, rough.row(attribute)) <= limit {
                continue;
            }
            let gain = -inner_product.of(z, weight.row(attribute as usize));
            if gain > threshold {
                selection.offer(gain, (position, attribute));
                threshold = selection.threshold().max(floor);
                limit = rough_limit(threshold);
            }
        }
        for (place, &Addition { mean, norm, rest, attribute }) in table.additions.iter().enumerate() {
            if row.bound(mean.into(), norm.into()) <= threshold {
                if place < table.sorted && row.bound(mean.into(), rest.into()) <= threshold {
                    break;
                }
                continue;
            }
            if inner_product.rough(rough_z, rough.row(attribute)) <= limit {
                continue;
            }
            let gain = inner_product.of(z, weight.row(attribute as usize));
            if gain > threshold && attributes.binary_search(&attribute).is_err() {
                selection.offer(gain, (position, attribute));
                threshold = selection.threshold().max(floor);
                limit = rough_limit(threshold);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::norm_above;

    #[test]
    fn norms_survive_underflow() {
        assert_eq!(norm_above(&[3.0, 4.0]), 5.0);
        assert_eq!(norm_above(&[0.0, 0.0]), 0.0);
        assert!(norm_above(&[3e-200, 4e-200]) >= 5e-200);
        assert!(norm_above(&[f64::MIN_POSITIVE / 4.0]) > 0.0);
        assert_eq!(norm_above(&[1e200, 1e200]), f64::INFINITY);
    }
}

//! Finding the flips with the largest gains without looking at all of them.
//!
//! A row n of the attributes has a query vector z_n; adding attribute d gains `z_n · W_d`, removing it `−z_n · W_d`. By
//! Cauchy and Schwarz a gain is at most the query's norm times the attribute's, so rows are visited by decreasing
//! query norm and attributes by decreasing norm, until no gain can enter the selection any more. What is left is
//! looked at in single precision first, and in double precision only if that leaves open whether the gain can enter. The
//! result is that of looking at every flip.

use crate::budget::Limits;
use crate::dense::{Matrix, dot};
use crate::graph::{AttributeId, NodeId};
use crate::kernels::{InnerProduct, LANES, Work, dispatch};
use crate::network::Network;
use crate::selection::Selection;
use crate::slice::SlicedFlip;
use crate::sparse::Pattern;

/// Below this, squares may have lost digits to underflow.
const SAFE_SQUARE: f64 = 1e-280;

/// A number that is at least `√Σ x_j²`, up to rounding, even where squares underflow.
pub(crate) fn norm_above(x: &[f64]) -> f64 {
    let squares = dot(x, x);
    if squares > SAFE_SQUARE {
        return squares.sqrt();
    }
    x.iter().fold(0.0f64, |largest, x| largest.max(x.abs())) * (x.len() as f64).sqrt()
}

/// In place of a norm where an attribute may not be removed.
const NOT_ALLOWED: f64 = -1.0;

/// Attributes with bounds on what flipping them can gain per unit of query norm.
#[derive(Debug)]
pub(crate) struct Table {
    /// Norm and id of each attribute that may be added, largest norm first.
    additions: Vec<(f64, u32)>,
    /// Norm of each attribute for its deletion, or [`NOT_ALLOWED`].
    deletions: Vec<f64>,
    /// The largest norm of all.
    largest: f64,
    largest_deletion: f64,
}

impl Table {
    pub(crate) fn new(
        limits: &Limits,
        attributes: usize,
        addition: impl Fn(usize) -> f64,
        deletion: impl Fn(usize) -> f64,
    ) -> Self {
        let flippable = |attribute: usize| limits.flippable(AttributeId(attribute as u32));
        let mut additions = Vec::new();
        if limits.additions() {
            additions.extend((0..attributes).filter(|&d| flippable(d)).map(|d| (addition(d), d as u32)));
            additions.retain(|&(norm, _)| norm != 0.0);
            additions.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        }
        let deletions: Vec<f64> = (0..attributes)
            .map(|d| if limits.deletions() && flippable(d) { deletion(d) } else { NOT_ALLOWED })
            .collect();
        let largest_deletion = deletions.iter().copied().fold(0.0, f64::max);
        let largest = additions.first().map_or(0.0, |&(norm, _)| norm).max(largest_deletion);
        Self { additions, deletions, largest, largest_deletion }
    }
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

/// A row of the slice's attributes: its position in level 0 and the norm of its query.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    pub(crate) position: u32,
    pub(crate) norm: f64,
}

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
            if row.norm * table.largest <= selection.threshold() {
                break;
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
        let Self { table, weight, rough, attributes, z, rough_z, rough_unit, floor, selection, .. } = self;
        let Row { position, norm } = self.row;
        let mut threshold = selection.threshold().max(floor);
        // A gain up to the threshold looks, in single precision, at most like this.
        let rough_limit = |threshold: f64| (threshold / rough_unit - rough.slack) as f32;
        let mut limit = rough_limit(threshold);
        let deletions = if norm * table.largest_deletion > threshold { attributes } else { &[] };
        for &attribute in deletions {
            let attribute_norm = table.deletions[attribute as usize];
            if attribute_norm == NOT_ALLOWED || norm * attribute_norm <= threshold {
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
        for &(attribute_norm, attribute) in &table.additions {
            if norm * attribute_norm <= threshold {
                break;
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

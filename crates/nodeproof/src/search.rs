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
use std::sync::Arc;

use crate::budget::Limits;
use crate::dense::{Matrix, dot};
use crate::graph::NodeId;
use crate::kernels::{InnerProduct, LANES, Work, dispatch, vectorised};
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

/// Additions that are looked at together.
const CHUNK: usize = 16;
/// Thresholds from here on are far above what underflow can do to single precision.
const SAFE_SINGLE: f32 = 1e-30;
/// One in this many attributes is in the head of a table.
const HEAD_SHARE: usize = 8;

/// The gains of flipping attributes for the mean query, and the norms that bound how much those for other queries differ.
#[derive(Debug)]
pub(crate) struct Reaches {
    /// Gains of additions, and of deletions, rounded up.
    pub(crate) additions: Vec<f32>,
    pub(crate) deletions: Vec<f32>,
    /// Norms, rounded up, or [`Reaches::NOT_ALLOWED`].
    pub(crate) norms: Arc<Vec<f32>>,
}

impl Reaches {
    /// In place of the norm of an attribute that may not be flipped.
    pub(crate) const NOT_ALLOWED: f32 = -1.0;
    /// Memory for each attribute.
    pub(crate) const BYTES_EACH: usize = 4 * size_of::<f32>();
}

/// Attributes with bounds on what flipping them can gain.
#[derive(Debug)]
pub(crate) struct Table {
    reaches: Reaches,
    order: Order,
    /// The largest gain for the mean query of any flip, and of deletions; the largest norm.
    largest_mean: f64,
    largest_deletion: f64,
    largest_norm: f64,
    additions: bool,
    deletions: bool,
}

impl Table {
    pub(crate) fn new(limits: &Limits, reaches: Reaches) -> Self {
        let largest_norm = largest(&reaches.norms);
        let largest_deletion = if limits.deletions() { largest(&reaches.deletions) } else { 0.0 };
        let largest_addition = if limits.additions() { largest(&reaches.additions) } else { 0.0 };
        Self {
            largest_mean: f64::from(largest_deletion.max(largest_addition)),
            largest_deletion: f64::from(largest_deletion),
            largest_norm: f64::from(largest_norm),
            additions: limits.additions(),
            deletions: limits.deletions(),
            order: if limits.additions() { Order::new(&reaches) } else { Order::default() },
            reaches,
        }
    }

    /// Whether the addition comes after the head.
    #[inline(always)]
    fn is_in_tail(&self, attribute: usize) -> bool {
        ordered(self.reaches.additions[attribute]) < self.order.cut && self.reaches.norms[attribute] >= 0.0
    }
}

/// The additions of a table in the order in which they are visited.
#[derive(Debug, Default)]
struct Order {
    /// The ones with the largest means, largest first, each with the largest norm from it on. Searches seldom come
    /// further, and sorting takes time.
    head: Vec<(u32, f32)>,
    /// The smallest mean of these, [`ordered`]; all others have smaller ones.
    cut: u32,
    /// The largest norm of the others.
    tail_norm: f32,
}

impl Order {
    fn new(Reaches { additions, norms, .. }: &Reaches) -> Self {
        // The cut need not be exact, so a sample will do.
        let mut sample: Vec<u32> = additions.iter().step_by(HEAD_SHARE).map(|&mean| ordered(mean)).collect();
        let count = sample.len().div_ceil(HEAD_SHARE);
        if count == 0 {
            return Self::default();
        }
        let cut = *sample.select_nth_unstable_by(count - 1, |a, b| b.cmp(a)).1;
        let mut tail_norm = 0;
        let mut attributes = vec![0; additions.len()];
        let mut count = 0;
        let reaches = || additions.iter().zip(norms.iter());
        vectorised(|| {
            for (&mean, &norm) in reaches() {
                tail_norm = tail_norm.max(if ordered(mean) < cut { norm.to_bits() as i32 } else { 0 });
            }
        });
        let tail_norm = f32::from_bits(tail_norm as u32);
        for ((&mean, &norm), attribute) in reaches().zip(0u32..) {
            attributes[count] = attribute;
            count += usize::from((ordered(mean) >= cut) & (norm >= 0.0));
        }
        // The largest mean first, of equal ones the largest norm, of equal ones the smallest attribute.
        let key = |&attribute: &u32| {
            let (mean, norm) = (additions[attribute as usize], norms[attribute as usize]);
            (Reverse(u64::from(ordered(mean)) << 32 | u64::from(ordered(norm))), attribute)
        };
        let mut sorted: Vec<(Reverse<u64>, u32)> = attributes[..count].iter().map(key).collect();
        sorted.sort_unstable();
        let mut rest = tail_norm;
        let mut head: Vec<(u32, f32)> = Vec::with_capacity(sorted.len());
        for &(_, attribute) in sorted.iter().rev() {
            rest = rest.max(norms[attribute as usize]);
            head.push((attribute, rest));
        }
        head.reverse();
        Self { head, cut, tail_norm }
    }
}

/// The largest of `values` and 0. The bits of numbers from 0 on are ordered as they are, those of others are negative.
fn largest(values: &[f32]) -> f32 {
    let mut largest = 0;
    vectorised(|| values.iter().for_each(|x| largest = largest.max(x.to_bits() as i32)));
    f32::from_bits(largest as u32)
}

/// A number that is ordered as `x` is, with −0 below 0.
fn ordered(x: f32) -> u32 {
    let bits = x.to_bits();
    let turned = (bits as i32 >> 31) as u32;
    bits ^ (turned | 1 << 31)
}

/// The number that is ordered as `bits` is.
fn unordered(bits: u32) -> f32 {
    f32::from_bits(if bits >> 31 == 0 { !bits } else { bits & !(1 << 31) })
}

/// The smallest single that is at least `x`.
#[inline(always)]
pub(crate) fn round_up(x: f64) -> f32 {
    let single = x as f32;
    if f64::from(single) < x { single.next_up() } else { single }
}

/// How far an inner product of two vectors of length h and of norm at most 1 may be off in single precision, with
/// something to spare: `(h + 8) 2⁻²⁴` is half an ulp for each rounding of an input, a product or a sum and for a few
/// operations with the result, and underflow does next to nothing.
pub(crate) fn rough_slack(length: usize) -> f64 {
    1.25 * (length + 8) as f64 * f64::from(f32::EPSILON) / 2.0
}

/// The first layer's weights in single precision, scaled so that no row is longer than 1.
#[derive(Debug)]
pub(crate) struct RoughWeights {
    width: usize,
    rows: Vec<f32>,
    /// Length of the longest row, the unit in which they are stored.
    unit: f64,
    /// [`rough_slack`] of inner products with queries of length 1.
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
        Self { width, rows, unit, slack: rough_slack(weight.columns()) }
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
        // Where the query is so short that squares may underflow, nothing is said of its direction.
        if norm * norm <= SAFE_SQUARE {
            return Self::without_mean(position, query);
        }
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
            if row.norm * table.largest_norm <= selection.threshold() {
                break;
            }
            if row.bound(table.largest_mean, table.largest_norm) <= selection.threshold() {
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
                single: SingleRow::new(row),
                threshold: 0.0,
                single_threshold: 0.0,
                limit: 0.0,
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
    single: SingleRow,
    /// Gains up to this do not enter, in double precision and rounded down to single.
    threshold: f64,
    single_threshold: f32,
    /// The threshold for rough inner products.
    limit: f32,
}

impl Work for RowSearch<'_> {
    /// Offers all flips of the row that can enter the selection.
    #[inline(always)]
    fn run(mut self, inner_product: impl InnerProduct) {
        self.set_threshold();
        let (table, row) = (self.table, self.row);
        let Reaches { additions, deletions, norms } = &table.reaches;
        if table.deletions && self.may_enter(row.bound(table.largest_deletion, table.largest_norm)) {
            for &attribute in self.attributes {
                let d = attribute as usize;
                if norms[d] >= 0.0 && self.may_enter(row.bound(deletions[d].into(), norms[d].into())) {
                    self.offer(inner_product, attribute, -1.0);
                }
            }
        }
        if !table.additions {
            return;
        }
        let Order { head, cut, tail_norm } = &table.order;
        for &(attribute, rest) in head {
            let mean = f64::from(additions[attribute as usize]);
            if !self.may_enter(row.bound(mean, rest.into())) {
                return;
            }
            if self.may_enter(row.bound(mean, norms[attribute as usize].into())) {
                self.offer(inner_product, attribute, 1.0);
            }
        }
        if !self.may_enter(row.bound(unordered(*cut).into(), f64::from(*tail_norm))) {
            return;
        }
        let (means, norms) = (additions.chunks(CHUNK), norms.chunks(CHUNK));
        for ((means, norms), first) in means.zip(norms).zip((0..).step_by(CHUNK)) {
            if !self.any_may_enter(means, norms) {
                continue;
            }
            for ((&mean, &norm), d) in means.iter().zip(norms).zip(first..) {
                if self.may_enter(row.bound(mean.into(), norm.into())) && table.is_in_tail(d) {
                    self.offer(inner_product, d as u32, 1.0);
                }
            }
        }
    }
}

impl RowSearch<'_> {
    #[inline(always)]
    fn set_threshold(&mut self) {
        self.threshold = self.selection.threshold().max(self.floor);
        // A gain up to the threshold looks, in single precision, at most like this.
        self.limit = (self.threshold / self.rough_unit - self.rough.slack) as f32;
        self.single_threshold = (self.threshold as f32).next_down();
    }

    /// Whether a gain with this bound can enter; one that is bounded by NaN can.
    #[inline(always)]
    fn may_enter(&self, bound: f64) -> bool {
        let cannot = bound <= self.threshold;
        !cannot
    }

    /// Whether one of these additions may enter; a quick look in single precision, which errs on the side of yes.
    #[inline(always)]
    fn any_may_enter(&self, means: &[f32], norms: &[f32]) -> bool {
        // Below this, products may underflow.
        if self.single_threshold < SAFE_SINGLE {
            return true;
        }
        let mut all_below = true;
        for (&mean, &norm) in means.iter().zip(norms) {
            all_below &= self.single.along * mean + self.single.off * norm <= self.single_threshold;
        }
        !all_below
    }

    /// Offers the flip of an attribute that adds (sign 1) or removes it (sign −1), unless its gain is too small.
    #[inline(always)]
    fn offer(&mut self, inner_product: impl InnerProduct, attribute: u32, sign: f64) {
        if sign as f32 * inner_product.rough(self.rough_z, self.rough.row(attribute)) <= self.limit {
            return;
        }
        let gain = sign * inner_product.of(self.z, self.weight.row(attribute as usize));
        let possible = || sign < 0.0 || self.attributes.binary_search(&attribute).is_err();
        if gain > self.threshold && possible() {
            self.selection.offer(gain, (self.row.position, attribute));
            self.set_threshold();
        }
    }
}

/// A [`Row`]'s part along the mean and the rest in single precision, for bounds that are at least those in double.
#[derive(Debug, Clone, Copy)]
struct SingleRow {
    along: f32,
    off: f32,
}

impl SingleRow {
    /// A mean is at most its norm, so that rounding takes less than `1e-6 ‖z‖ · norm` from a bound.
    fn new(row: Row) -> Self {
        // Of numbers that singles cannot hold, nothing is said.
        if !(1e-30..1e30).contains(&row.norm) {
            return Self { along: f32::NAN, off: f32::NAN };
        }
        Self { along: row.along as f32, off: round_up(row.off * (1.0 + 1e-6) + 1e-6 * row.norm) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::budget::{Budget, LocalBudget};
    use crate::graph::Graph;

    /// Means and norms of which many are equal, and some are all that singles have.
    fn reaches() -> impl Strategy<Value = Vec<(f32, f32)>> {
        let mean = prop_oneof![
            4 => -1.0f32..1.0,
            1 => prop::sample::select(vec![-1.0, -0.5, -0.0, 0.0, 0.5, f32::MIN, f32::INFINITY, f32::from_bits(1)]),
        ];
        let norm = prop_oneof![
            4 => 0.0f32..2.0,
            1 => prop::sample::select(vec![0.0, 1.0, 1.0, f32::MAX, f32::INFINITY, Reaches::NOT_ALLOWED]),
        ];
        prop_oneof![
            prop::collection::vec((mean, norm.clone()), 0..200),
            prop::collection::vec((prop::sample::select(vec![-0.5f32, 0.0]), norm), 0..70),
        ]
    }

    proptest! {
        #[test]
        fn every_addition_is_in_head_or_tail(reaches in reaches()) {
            let (means, norms): (Vec<f32>, Vec<f32>) = reaches.into_iter().unzip();
            let additions = means.clone();
            let graph = Graph::new(1, 1, &[], &[]).unwrap();
            let limits = Budget::new(1, LocalBudget::Count(1)).limits(&graph).unwrap();
            let reaches = Reaches { additions, deletions: vec![0.0; means.len()], norms: Arc::new(norms.clone()) };
            let table = Table::new(&limits, reaches);
            let (order, allowed) = (&table.order, |d: usize| norms[d] >= 0.0);
            let cut = order.cut;
            let tail: Vec<usize> = (0..means.len()).filter(|&d| table.is_in_tail(d)).collect();
            let head: Vec<usize> = order.head.iter().map(|&(d, _)| d as usize).collect();
            let mut all = [&head[..], &tail[..]].concat();
            all.sort_unstable();
            prop_assert_eq!(all, (0..means.len()).filter(|&d| allowed(d)).collect::<Vec<_>>());
            prop_assert!(head.is_sorted_by(|&a, &b| means[a] >= means[b]));
            prop_assert!(head.last().is_none_or(|&d| means[d] >= unordered(cut)));
            prop_assert!(tail.iter().all(|&d| means[d] <= unordered(cut) && norms[d] <= order.tail_norm));
            for (i, &(_, rest)) in order.head.iter().enumerate() {
                prop_assert!(head[i..].iter().chain(&tail).all(|&d| norms[d] <= rest));
            }
            // Bounds are tight where they can be.
            let largest = |attributes: &[usize]| attributes.iter().map(|&d| norms[d]).fold(0.0, f32::max);
            prop_assert_eq!(order.tail_norm, largest(&tail));
        }

        #[test]
        fn singles_keep_their_order(a in any::<f32>(), b in any::<f32>()) {
            prop_assert_eq!(ordered(a).cmp(&ordered(b)), a.total_cmp(&b));
            prop_assert_eq!(unordered(ordered(a)).to_bits(), a.to_bits());
        }
    }

    #[test]
    fn norms_survive_underflow() {
        assert_eq!(norm_above(&[3.0, 4.0]), 5.0);
        assert_eq!(norm_above(&[0.0, 0.0]), 0.0);
        assert!(norm_above(&[3e-200, 4e-200]) >= 5e-200);
        assert!(norm_above(&[f64::MIN_POSITIVE / 4.0]) > 0.0);
        assert_eq!(norm_above(&[1e200, 1e200]), f64::INFINITY);
    }
}

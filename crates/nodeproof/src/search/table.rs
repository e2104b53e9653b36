//! Attributes in the order in which a search visits them, with bounds on what flipping them can gain.

use std::cmp::Reverse;
use std::sync::Arc;

use super::{CHUNK, Row, RowSearch, VisitingOrder};
use crate::budget::Limits;
use crate::kernels::{InnerProduct, vectorised};

/// One in this many attributes is in the head of a table.
const HEAD_SHARE: usize = 8;

/// The gains of flipping attributes for the mean query, and the norms that bound how much those for other queries differ.
#[derive(Debug)]
pub(super) struct Reaches {
    /// Gains of additions, and of deletions, rounded up.
    pub(super) additions: Vec<f32>,
    pub(super) deletions: Vec<f32>,
    /// Norms, rounded up, or [`Reaches::NOT_ALLOWED`].
    pub(super) norms: Arc<Vec<f32>>,
}

impl Reaches {
    /// In place of the norm of an attribute that may not be flipped.
    pub(super) const NOT_ALLOWED: f32 = -1.0;
    /// Memory for each attribute.
    pub(super) const BYTES_EACH: usize = 4 * size_of::<f32>();
}

/// Attributes with bounds on what flipping them can gain.
#[derive(Debug)]
pub(crate) struct Table {
    pub(super) reaches: Reaches,
    pub(super) order: Order,
    /// The largest gain for the mean query of any flip, and of deletions; the largest norm.
    pub(super) largest_mean: f64,
    pub(super) largest_deletion: f64,
    pub(super) largest_norm: f64,
    pub(super) additions: bool,
    pub(super) deletions: bool,
}

impl Table {
    pub(super) fn new(limits: &Limits, reaches: Reaches) -> Self {
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

impl VisitingOrder for &Table {
    fn largest_norm(&self) -> f64 {
        self.largest_norm
    }

    fn largest_gain(&self, row: &Row) -> f64 {
        row.bound(self.largest_mean, self.largest_norm)
    }

    #[inline(always)]
    fn visit(&mut self, row: &mut RowSearch, inner_product: impl InnerProduct) {
        let Reaches { additions, deletions, norms } = &self.reaches;
        if self.deletions && row.may_enter(row.row.bound(self.largest_deletion, self.largest_norm)) {
            for &attribute in row.attributes {
                let d = attribute as usize;
                if norms[d] >= 0.0 && row.may_enter(row.row.bound(deletions[d].into(), norms[d].into())) {
                    row.offer(inner_product, attribute, -1.0);
                }
            }
        }
        if !self.additions {
            return;
        }
        let Order { head, cut, tail_norm } = &self.order;
        for &(attribute, rest) in head {
            let mean = f64::from(additions[attribute as usize]);
            if !row.may_enter(row.row.bound(mean, rest.into())) {
                return;
            }
            if row.may_enter(row.row.bound(mean, norms[attribute as usize].into())) {
                row.offer(inner_product, attribute, 1.0);
            }
        }
        if !row.may_enter(row.row.bound(unordered(*cut).into(), f64::from(*tail_norm))) {
            return;
        }
        let (means, norms) = (additions.chunks(CHUNK), norms.chunks(CHUNK));
        for ((means, norms), first) in means.zip(norms).zip((0..).step_by(CHUNK)) {
            if !row.any_may_enter(means, norms) {
                continue;
            }
            for ((&mean, &norm), d) in means.iter().zip(norms).zip(first..) {
                if row.may_enter(row.row.bound(mean.into(), norm.into())) && self.is_in_tail(d) {
                    row.offer(inner_product, d as u32, 1.0);
                }
            }
        }
    }
}

/// The additions of a table in the order in which they are visited.
#[derive(Debug, Default)]
pub(super) struct Order {
    /// The ones with the largest means, largest first, each with the largest norm from it on. Searches seldom come
    /// further, and sorting takes time.
    pub(super) head: Vec<(u32, f32)>,
    /// The smallest mean of these, [`ordered`]; all others have smaller ones.
    pub(super) cut: u32,
    /// The largest norm of the others.
    pub(super) tail_norm: f32,
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
pub(super) fn unordered(bits: u32) -> f32 {
    f32::from_bits(if bits >> 31 == 0 { !bits } else { bits & !(1 << 31) })
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
        #![proptest_config(crate::seed::config(256))]

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
}

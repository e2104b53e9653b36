//! Searching where attributes are real values: a flip of an entry from x to an end of its range gains `(end − x) W_d · z`
//! (Lemma 49 of `docs/maths.md`).

use super::{NormTable, Row};
use crate::dense::dot;
use crate::ids::NodeId;
use crate::prepare::Shard;
use crate::selection::Selection;
use crate::slice::{DOWN, Slice, SlicedFlip};

/// Searches the best flips of a slice.
pub(crate) struct ValueRows<'a> {
    pub(crate) shared: &'a Shard<'a>,
    pub(crate) slice: &'a Slice,
    pub(crate) table: &'a NormTable,
}

impl ValueRows<'_> {
    /// Puts the best admissible flips into `selection`. `rows` are sorted by norm; `query(position, z)` writes the query of a row.
    pub(crate) fn search(
        &self,
        rows: &[Row],
        mut query: impl FnMut(usize, &mut [f64]),
        z: &mut [f64],
        selection: &mut Selection<SlicedFlip>,
    ) {
        let Shard { network, limits, .. } = self.shared;
        let weight = network.attribute_weight();
        let mut of_row = Selection::new(0);
        selection.reset(limits.global());
        for row in rows {
            // Rounding is far below the difference.
            let norm = row.norm * (1.0 + 1e-9);
            if norm * self.table.longest <= selection.threshold() {
                break;
            }
            let node = NodeId(self.slice.level(0)[row.position as usize]);
            of_row.reset(limits.local(node));
            query(row.position as usize, z);
            for (&d, &length) in self.table.attributes.iter().zip(&self.table.norms) {
                if norm * f64::from(length) <= selection.threshold().max(of_row.threshold()) {
                    break;
                }
                let product = dot(z, weight.row(d as usize));
                let flip = (row.position, if product < 0.0 { d | DOWN } else { d });
                let gain = self.shared.change(self.slice, flip) * product;
                if gain > selection.threshold() {
                    of_row.offer(gain, flip);
                }
            }
            of_row.settle();
            of_row.best().iter().for_each(|&(gain, flip)| selection.offer(gain, flip));
        }
        selection.settle();
    }
}

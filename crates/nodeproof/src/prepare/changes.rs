//! What flips do to the attributes, row by row (Lemma 50 of `docs/maths.md`).

use std::ops::Range;

use crate::budget::Limits;
use crate::dense::{Matrix, add_scaled};
use crate::graph::Graph;
use crate::ids::{AttributeId, NodeId};
use crate::slice::{DOWN, SlicedFlip, attribute_of};
use crate::values::Values;

/// Where a flip at a node brings its entry, one of real values.
pub(super) fn end(values: &Values, limits: &Limits, node: u32, flip: SlicedFlip) -> f64 {
    let (node, attribute) = (NodeId(node), AttributeId(attribute_of(flip) as u32));
    let value = values.get(node, attribute);
    let (low, high) = limits.range(values, node, attribute).unwrap_or((value, value));
    if flip.1 >= DOWN { low } else { high }
}

/// What a flip at a node changes its entry by, before rows are divided: of bits 1 if it adds the attribute, and −1 if it removes it.
#[inline]
pub(super) fn change(graph: &Graph, limits: &Limits, node: u32, flip: SlicedFlip) -> f64 {
    match graph.values() {
        None if graph.attributes().contains(node as usize, flip.1) => -1.0,
        None => 1.0,
        Some(values) => {
            end(values, limits, node, flip) - values.get(NodeId(node), AttributeId(attribute_of(flip) as u32))
        }
    }
}

/// What flips do to rows of the attributes, each change being made as a whole. Where rows are not divided, that is each flip alone. Where the
/// ones of a row are divided by their number, it is all flips of the row: with m' ones left,
///
/// ```text
/// ΔX_n = Σ σ (e_d − X_n) / m',   and −X_n if none is left.
/// ```
#[derive(Debug, Default)]
pub(crate) struct Changes {
    /// Attributes, and what is added there.
    entries: Vec<(u32, f64)>,
    /// For each change its row, its entries, and the multiple of the row as it is that is added besides.
    changes: Vec<(u32, Range<usize>, f64)>,
}

/// A change of one row: `ΔX_n = Σ amount e_d + multiple X_n`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Change<'c> {
    /// The row, numbered as those of the flips.
    pub(crate) row: u32,
    /// Attributes and amounts.
    pub(crate) entries: &'c [(u32, f64)],
    /// Of the row as it is.
    pub(crate) multiple: f64,
}

impl Changes {
    /// What `flips` do, the node of whose rows `node` tells.
    pub(crate) fn new(graph: &Graph, limits: &Limits, flips: &[SlicedFlip], node: impl Fn(u32) -> u32) -> Self {
        let mut all = Self::default();
        let amount = |flip: SlicedFlip| change(graph, limits, node(flip.0), flip);
        if !graph.kind().is_normalised() {
            for &flip in flips {
                let start = all.entries.len();
                all.entries.push((attribute_of(flip) as u32, amount(flip)));
                all.changes.push((flip.0, start..start + 1, 0.0));
            }
            return all;
        }
        let mut flips = flips.to_vec();
        flips.sort_unstable();
        for of_row in flips.chunk_by(|a, b| a.0 == b.0) {
            let (row, start) = (of_row[0].0, all.entries.len());
            let ones = graph.attributes().row(node(row) as usize).len() as f64;
            let more: f64 = of_row.iter().map(|&flip| amount(flip)).sum();
            let left = ones + more;
            let multiple = if left == 0.0 { -1.0 } else { -more / left };
            if left > 0.0 {
                all.entries.extend(of_row.iter().map(|&flip| (flip.1, amount(flip) / left)));
            }
            all.changes.push((row, start..all.entries.len(), multiple));
        }
        all
    }

    /// The changes.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Change<'_>> {
        let change = |(row, entries, multiple): &(u32, Range<usize>, f64)| Change {
            row: *row,
            entries: &self.entries[entries.clone()],
            multiple: *multiple,
        };
        self.changes.iter().map(change)
    }
}

impl Change<'_> {
    /// Adds `ΔX_n W` to `sums`, given W and, where rows are divided, `X_n W`.
    pub(crate) fn add_to(&self, sums: &mut [f64], weight: &Matrix, mean: Option<&[f64]>) {
        for &(attribute, amount) in self.entries {
            add_scaled(sums, amount, weight.row(attribute as usize));
        }
        if let Some(mean) = mean {
            add_scaled(sums, self.multiple, mean);
        }
    }
}

//! What flips take of targets, node by node that is flipped at.

use std::ops::Range;

use crate::budget::Limits;
use crate::engines::first_order::RowParts;
use crate::ids::NodeId;

/// A target whose prediction may change.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fallible {
    pub(crate) node: NodeId,
    /// The most flips that it is known to withstand.
    pub(crate) withstands: u32,
    /// Whether it is known what flips take of it.
    pub(crate) has_parts: bool,
}

/// What a target sees.
pub(crate) struct Seen {
    pub(crate) target: Fallible,
    /// Nodes that may be flipped at, in any order.
    pub(crate) nodes: Vec<u32>,
    /// A row for each of them, if that is known.
    pub(crate) rows: Option<Vec<RowParts>>,
}

/// What the flips of one node take of one target.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    /// The place of the target.
    pub(super) target: u32,
    /// At most this, of flips that are not listed.
    pub(super) cap: f32,
    /// At most this, of all.
    pub(super) most: f32,
    flips: Range<usize>,
}

/// A node that may be flipped at and that a target sees.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) node: NodeId,
    /// Most flips there.
    pub(super) most: usize,
    entries: Range<usize>,
}

/// What flips take of all targets, as parts of their margins.
#[derive(Debug)]
pub(crate) struct Table {
    pub(super) targets: Vec<Fallible>,
    pub(super) rows: Vec<Row>,
    entries: Vec<Entry>,
    flips: Vec<(u32, f32)>,
    /// Most flips in total.
    pub(super) global: usize,
    /// Attributes of the graph.
    pub(super) attributes: usize,
}

impl Table {
    pub(crate) fn new(seen: Vec<Seen>, limits: &Limits, nodes: usize, attributes: usize) -> Self {
        let mut counts = vec![0usize; nodes + 1];
        seen.iter().flat_map(|of| &of.nodes).for_each(|&n| counts[n as usize + 1] += 1);
        (0..nodes).for_each(|n| counts[n + 1] += counts[n]);
        let mut places = vec![(0u32, 0u32); counts[nodes]];
        let mut next = counts.clone();
        for (target, of) in seen.iter().enumerate() {
            for (row, &n) in of.nodes.iter().enumerate() {
                places[next[n as usize]] = (target as u32, row as u32);
                next[n as usize] += 1;
            }
        }
        let (mut rows, mut flips) = (Vec::new(), Vec::new());
        for (n, range) in counts.windows(2).enumerate().filter(|(_, range)| range[0] < range[1]) {
            let node = NodeId(n as u32);
            rows.push(Row { node, most: limits.local(node).min(limits.global()), entries: range[0]..range[1] });
        }
        let entry = |&(target, row): &(u32, u32)| {
            let parts = seen[target as usize].rows.as_ref().map(|rows| &rows[row as usize]);
            let start = flips.len();
            flips.extend(parts.iter().flat_map(|parts| &parts.flips).map(|&(d, part)| (d, above(part))));
            let cap = parts.map_or(0.0, |parts| above(parts.cap));
            let most = flips[start..].iter().map(|&(_, part)| part).fold(cap, f32::max);
            Entry { target, cap, most, flips: start..flips.len() }
        };
        let entries = places.iter().map(entry).collect();
        let targets = seen.iter().map(|of| of.target).collect();
        Self { targets, rows, entries, flips, global: limits.global(), attributes }
    }

    /// What is known of the flips of a row, target by target.
    pub(super) fn entries(&self, row: &Row) -> &[Entry] {
        &self.entries[row.entries.clone()]
    }

    /// The flips that are listed: attributes and parts.
    pub(super) fn listed(&self, entry: &Entry) -> &[(u32, f32)] {
        &self.flips[entry.flips.clone()]
    }

    /// What a flip takes of the target of an entry.
    pub(super) fn part(&self, entry: &Entry, attribute: u32) -> f32 {
        let listed = self.listed(entry);
        listed.binary_search_by_key(&attribute, |&(d, _)| d).map_or(entry.cap, |place| listed[place].1)
    }
}

/// A part, of which no more than 1 matters, as a number that is not below it.
fn above(part: f64) -> f32 {
    let part = part.min(1.0);
    let rounded = part as f32;
    if f64::from(rounded) < part { rounded.next_up() } else { rounded }
}

//! What flips take of targets, node by node that is flipped at.
//!
//! Where memory is short, a target keeps the nodes at which flips take most of it. Of all others it is known what a flip takes at most, wherever it
//! is made: what is taken *elsewhere* (Lemma 73 of `docs/maths.md`).

use std::ops::Range;

use crate::budget::Limits;
use crate::engines::first_order::RowParts;
use crate::graph::Graph;
use crate::ids::NodeId;
use crate::prepare::flips_anywhere;

/// A target whose prediction may change.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fallible {
    pub(crate) node: NodeId,
    /// The most flips that it is known to withstand.
    pub(crate) withstands: u32,
    /// Whether it is known what flips take of it.
    pub(crate) has_parts: bool,
    /// At most this is taken by a flip at a node that has no entry with it; `None` if it does not see these.
    pub(crate) elsewhere: Option<f32>,
}

/// What a target sees.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) node: NodeId,
    pub(crate) withstands: u32,
    /// Nodes that may be flipped at, in any order.
    pub(crate) nodes: Vec<u32>,
    /// A row for each of them, if that is known.
    pub(crate) rows: Option<Vec<RowParts>>,
}

/// What the flips of one node take of one target.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    node: u32,
    /// The place of the target.
    pub(super) target: u32,
    /// At most this, of flips that are not listed.
    pub(super) cap: f32,
    /// At most this, of all.
    pub(super) most: f32,
    flips: Range<u32>,
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
    /// Most flips in total: that the budget allows, and that there can be.
    pub(super) global: usize,
    pub(super) possible: usize,
    /// Attributes of the graph.
    pub(super) attributes: usize,
}

/// A table to which targets are added one by one. Where memory is short, fewer flips of later targets are listed, and then fewer of the nodes that
/// they see.
pub(crate) struct Filling {
    table: Table,
    /// Targets that are still to come.
    coming: usize,
    /// Bytes of a full table.
    memory: usize,
}

impl Filling {
    /// A table for so many targets of a graph, and of so many bytes.
    pub(crate) fn new(targets: usize, limits: &Limits, graph: &Graph, memory: usize) -> Self {
        let (global, possible) = (limits.global(), flips_anywhere(graph, limits));
        let (rows, entries, flips) = Default::default();
        let attributes = graph.attribute_count();
        let table = Table { targets: Vec::new(), rows, entries, flips, global, possible, attributes };
        Self { table, coming: targets, memory }
    }

    /// Adds a target.
    pub(crate) fn add(&mut self, seen: Seen) {
        let (room, listed) = self.room(seen.nodes.len());
        self.coming = self.coming.saturating_sub(1);
        let (Seen { node, withstands, nodes, mut rows }, elsewhere) = seen.nearest(room);
        if let Some(rows) = &mut rows {
            list_fewer(rows, listed);
        }
        let table = &mut self.table;
        let target = table.targets.len() as u32;
        table.targets.push(Fallible { node, withstands, has_parts: rows.is_some(), elsewhere });
        for (place, node) in nodes.into_iter().enumerate() {
            let parts = rows.as_ref().map(|rows| &rows[place]);
            let start = table.flips.len() as u32;
            table.flips.extend(parts.iter().flat_map(|parts| &parts.flips).map(|&(d, part)| (d, above(part))));
            // A price elsewhere is never lower by an entry.
            let cap = parts.map_or(0.0, |parts| above(parts.cap)).max(elsewhere.unwrap_or(0.0));
            let most = table.flips[start as usize..].iter().map(|&(_, part)| part).fold(cap, f32::max);
            table.entries.push(Entry { node, target, cap, most, flips: start..table.flips.len() as u32 });
        }
    }

    /// How many nodes there is room for that the next target sees, and how many flips may be listed of it if it sees so many: what later ones will
    /// see, if they see as many as earlier ones did, is kept free; of the rest lists may take all up to half of the memory, and then an equal share.
    fn room(&self, nodes: usize) -> (usize, usize) {
        let (of_entry, of_flip) = (size_of::<Entry>(), size_of::<(u32, f32)>());
        let Table { targets, entries, flips, .. } = &self.table;
        let (later, taken) = (self.coming.saturating_sub(1), self.table.bytes());
        let left = self.memory.saturating_sub(taken);
        let of_later = (entries.len() / targets.len().max(1)).saturating_mul(later).saturating_mul(of_entry);
        let free = left.saturating_sub(of_later);
        let room = free.max(left / (later + 1)) / of_entry;
        let of_nodes = nodes.min(room).saturating_mul(of_entry);
        let up_to_half = (self.memory / 2).saturating_sub(taken).saturating_sub(of_later);
        let of_flips = up_to_half.max(free / (later + 1)).saturating_sub(of_nodes);
        // Places of flips are kept in 32 bits.
        let listed = (of_flips / of_flip).min((u32::MAX as usize).saturating_sub(flips.len()));
        (room, listed)
    }

    /// The table, row by row.
    pub(crate) fn table(self, limits: &Limits) -> Table {
        let Table { mut entries, .. } = self.table;
        entries.sort_unstable_by_key(|entry| (entry.node, entry.target));
        let (mut rows, mut start) = (Vec::new(), 0);
        for of_row in entries.chunk_by(|a, b| a.node == b.node) {
            let (node, end) = (NodeId(of_row[0].node), start + of_row.len());
            rows.push(Row { node, most: limits.local(node).min(limits.global()), entries: start..end });
            start = end;
        }
        Table { rows, entries, ..self.table }
    }
}

impl Seen {
    /// What is seen at no more than so many nodes, those where flips take most, and at most what a flip takes elsewhere, if anything is seen there.
    fn nearest(mut self, room: usize) -> (Self, Option<f32>) {
        if self.nodes.len() <= room {
            return (self, None);
        }
        let Some(rows) = &mut self.rows else {
            self.nodes.clear();
            return (self, Some(0.0));
        };
        let mut mosts: Vec<f64> = rows.iter().map(RowParts::most).collect();
        let (_, &mut elsewhere, _) = mosts.select_nth_unstable_by(room, |a, b| b.total_cmp(a));
        rows.retain(|row| row.most().total_cmp(&elsewhere).is_gt());
        self.nodes = rows.iter().map(|row| row.node).collect();
        (self, Some(above(elsewhere)))
    }
}

impl RowParts {
    /// The most that a flip takes.
    fn most(&self) -> f64 {
        self.flips.iter().map(|&(_, part)| part).fold(self.cap, larger)
    }
}

/// Lists no more than so many flips, those that take most; the others take what their row's cap says then.
fn list_fewer(rows: &mut [RowParts], most: usize) {
    let mut parts: Vec<f64> = rows.iter().flat_map(|row| &row.flips).map(|&(_, part)| part).collect();
    if parts.len() <= most {
        return;
    }
    let (_, &mut largest, _) = parts.select_nth_unstable_by(most, |a, b| b.total_cmp(a));
    for row in rows {
        let others = row.flips.extract_if(.., |(_, part)| part.total_cmp(&largest).is_le());
        row.cap = others.map(|(_, part)| part).fold(row.cap, larger);
    }
}

/// The larger of two numbers, NaN if one of them is.
fn larger(a: f64, b: f64) -> f64 {
    if a > b || a.is_nan() { a } else { b }
}

impl Table {
    /// What it takes, but for what it takes for each target and row.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&self.entries[..]) + size_of_val(&self.flips[..])
    }

    /// What is known of the flips of a row, target by target.
    pub(super) fn entries(&self, row: &Row) -> &[Entry] {
        &self.entries[row.entries.clone()]
    }

    /// The flips that are listed: attributes and parts.
    pub(super) fn listed(&self, entry: &Entry) -> &[(u32, f32)] {
        &self.flips[entry.flips.start as usize..entry.flips.end as usize]
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

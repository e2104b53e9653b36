//! What is around one target, the same for all classes and base points.

use std::cell::Cell;

use super::base::Base;
use super::reach::Reach;
use super::rows;
use super::tables::Tables;
use crate::dense::Matrix;
use crate::engines::attack::{MarginErrors, errors_of};
use crate::ids::{AttributeId, ClassId, NodeId};
use crate::prepare::Shard;
use crate::slice::{DOWN, Hop, LeftOut, Slice, SlicedFlip, attribute_of};

/// For each node of the level that a term reads, the nodes that read it, with weights.
#[derive(Debug, Default)]
pub(super) struct Readers {
    offsets: Vec<u32>,
    entries: Vec<(u32, f64)>,
}

impl Readers {
    /// Those of a term, with `columns` nodes on the level that it reads.
    fn new(hop: &impl Hop, columns: usize) -> Self {
        let mut offsets = vec![0u32; columns + 1];
        let entries =
            || (0..hop.rows()).flat_map(|m| hop.row(m).filter(|&(_, p)| p != 0.0).map(move |(n, p)| (m, n, p)));
        entries().for_each(|(_, n, _)| offsets[n + 1] += 1);
        (0..columns).for_each(|n| offsets[n + 1] += offsets[n]);
        let mut next = offsets.clone();
        let mut all = vec![(0, 0.0); offsets[columns] as usize];
        for (m, n, p) in entries() {
            all[next[n] as usize] = (m as u32, p);
            next[n] += 1;
        }
        Self { offsets, entries: all }
    }

    #[inline]
    pub(super) fn of(&self, n: usize) -> &[(u32, f64)] {
        &self.entries[self.offsets[n] as usize..self.offsets[n + 1] as usize]
    }
}

/// What a flip does to `X_n W`: a factor times weights.
pub(super) struct Effect<'e> {
    pub(super) position: u32,
    pub(super) factor: f64,
    pub(super) weights: &'e [f64],
}

/// One target and everything in sight of it.
pub(super) struct Target<'t> {
    pub(super) shared: &'t Shard<'t>,
    pub(super) slice: &'t Slice,
    pub(super) tables: &'t Tables,
    /// For each layer those of its terms; nothing for terms of the constant 1.
    pub(super) readers: Vec<Vec<Readers>>,
    /// The most that one flip moves each unit, of all nodes and of all layers but the last here.
    pub(super) reaches: &'t Reach,
    pub(super) reach: Vec<Matrix>,
    /// The number of the first unit of each layer, and that of all units.
    pub(super) first_unit: Vec<usize>,
    /// Most flips at each node of level 0.
    pub(super) capacities: Vec<u32>,
    /// Most flips in total that can be made here.
    pub(super) most: usize,
    margin_errors: MarginErrors,
    /// Whether more was asked for than the slice has.
    asked_for_more: Cell<bool>,
}

impl<'t> Target<'t> {
    pub(super) fn new(shared: &'t Shard<'t>, slice: &'t Slice) -> Self {
        let layers = shared.network.layers();
        let readers = |(i, layer): (usize, &crate::model::Layer)| {
            let of_term = |(k, term): (usize, &crate::model::Term)| match crate::slice::level_of(term.source()) {
                Some(level) => Readers::new(slice.hop(i, k), slice.level(level).len()),
                None => Readers::default(),
            };
            layer.terms().iter().enumerate().map(of_term).collect()
        };
        let mut first_unit = vec![0];
        for (i, layer) in layers.iter().enumerate() {
            first_unit.push(first_unit[i] + slice.level(i + 1).len() * layer.units());
        }
        let tables = shared.tables.first_order(shared.network);
        let reaches = shared.normalised_reach().unwrap_or(&tables.reach);
        let reach = |layer: usize| {
            let (nodes, units) = (slice.level(layer + 1), layers[layer].units());
            let values = nodes.iter().flat_map(|&node| (0..units).map(move |j| reaches.unit(layer, node, j)));
            Matrix::from_values(nodes.len(), units, values.collect())
        };
        Self {
            shared,
            slice,
            reaches,
            reach: (0..layers.len() - 1).map(reach).collect(),
            tables,
            readers: layers.iter().enumerate().map(readers).collect(),
            first_unit,
            capacities: slice.level(0).iter().map(|&n| shared.limits.local(NodeId(n)) as u32).collect(),
            most: shared.flips_within(slice),
            margin_errors: MarginErrors::new(shared, slice),
            asked_for_more: Cell::new(false),
        }
    }

    /// Has it remember that something depends on what its slice leaves out.
    pub(super) fn ask_for_more(&self) {
        self.asked_for_more.set(true);
    }

    /// Whether nothing that was asked for depends on what its slice leaves out.
    pub(super) fn check_left_out(&self) -> Result<(), LeftOut> {
        if self.asked_for_more.get() { Err(LeftOut) } else { Ok(()) }
    }

    /// Most flips that nodes have left in total, given those of the nodes in its slice.
    pub(super) fn flips_left(&self, capacities: &[u32]) -> usize {
        if self.slice.is_whole() { capacities.iter().map(|&capacity| capacity as usize).sum() } else { usize::MAX }
    }

    /// Number of layers with a level of their own, and not the logits.
    pub(super) fn hidden(&self) -> usize {
        self.shared.network.layers().len() - 1
    }

    /// The layer of a unit, of those numbered through all layers, and its place there.
    pub(super) fn unit(&self, unit: u32) -> (usize, usize) {
        let layer = self.first_unit.partition_point(|&first| first <= unit as usize) - 1;
        (layer, unit as usize - self.first_unit[layer])
    }

    /// How far a pre-activation may be off by rounding.
    pub(super) fn error(&self, layer: usize, row: usize, j: usize) -> f64 {
        let place = self.shared.region.level(layer + 1).place(self.slice.level(layer + 1)[row]);
        errors_of(self.slice) * self.shared.bounds.layers[layer].error.unit(place, j)
    }

    /// How far the margin of a pair of classes may be off by rounding, whatever is flipped.
    pub(super) fn margin_error(&self, (y, k): (ClassId, ClassId)) -> f64 {
        errors_of(self.slice) * self.margin_errors.of(self.shared, y, k)
    }

    /// What a flip does to `X_n W`; `buffer` is where that is written if it is not to be found anywhere.
    #[inline]
    pub(super) fn effect<'e>(&'e self, base: &Base, flip: SlicedFlip, buffer: &'e mut Vec<f64>) -> Effect<'e> {
        let (weight, (position, d)) = (self.shared.network.attribute_weight(), flip);
        let Some(rows) = &base.rows else {
            let factor = if base.freed.contains(&flip) {
                self.shared.change_back(self.slice, flip)
            } else {
                self.shared.change(self.slice, flip)
            };
            return Effect { position, factor, weights: weight.row(attribute_of(flip)) };
        };
        buffer.clear();
        if d == rows::ALL {
            buffer.extend(rows.mean(self, position));
            return Effect { position, factor: -1.0, weights: buffer };
        }
        let sign = if d >= rows::KEPT { 1.0 } else { self.shared.change(self.slice, flip) };
        buffer.extend(weight.row(attribute_of(flip)).iter().zip(rows.mean(self, position)).map(|(w, mean)| w - mean));
        Effect { position, factor: sign / rows.fewest_with(self, base, flip), weights: buffer }
    }

    /// Calls `visit` with each node of a layer that reads what a flip does, the factor by which it does, and the weights.
    #[inline]
    pub(super) fn each_reader(&self, layer: usize, effect: &Effect, mut visit: impl FnMut(u32, f64, &[f64])) {
        for term in self.shared.network.attribute_terms_of(layer) {
            let weights = &effect.weights[term.columns.clone()];
            let readers = self.readers[layer][term.term].of(effect.position as usize).iter();
            readers.for_each(|&(m, p)| visit(m, p * effect.factor, weights));
        }
    }

    /// For each node of level 0 the sum of `|P_mn| norm(i, m)` over the rows m of layers i that read it.
    pub(super) fn row_norms(&self, norm: impl Fn(usize, usize) -> f64) -> Vec<f64> {
        let mut norms = vec![f64::MIN_POSITIVE; self.slice.level(0).len()];
        for term in self.shared.network.attribute_terms() {
            let hop = self.slice.hop(term.layer, term.term);
            for row in 0..hop.rows() {
                let norm = norm(term.layer, row);
                hop.row(row).for_each(|(n, p)| norms[n] += p.abs() * norm);
            }
        }
        norms
    }

    /// At least what [`Target::row_norms`] would be for every node of level 0 that the slice leaves out.
    pub(super) fn norm_left_out(&self, norm: impl Fn(usize, usize) -> f64) -> f64 {
        if self.slice.is_whole() {
            return 0.0;
        }
        (0..self.slice.level(1).len()).map(|row| norm(0, row) * self.slice.left_out(row)).sum::<f64>()
            + f64::MIN_POSITIVE
    }

    /// Pre-activations of all layers on the graph as it is.
    pub(super) fn clean(&self) -> Vec<Matrix> {
        let Shard { region, bounds, .. } = self.shared;
        let rows = |(i, clean): (usize, &Matrix)| {
            let (nodes, level) = (self.slice.level(i + 1), region.level(i + 1));
            let values = nodes.iter().flat_map(|&node| clean.row(level.place(node)).iter().copied());
            Matrix::from_values(nodes.len(), clean.columns(), values.collect())
        };
        bounds.clean.layers.iter().enumerate().map(rows).collect()
    }

    /// Bytes of [`Target::all_flips`] with their gains, at most.
    pub(super) fn bytes_of_all_flips(&self) -> usize {
        let flips = self.slice.level(0).len().saturating_mul(self.shared.network.model().attributes());
        let ways = if self.shared.network.graph().values().is_some() { 2 } else { 1 };
        flips.saturating_mul(ways).saturating_mul(size_of::<SlicedFlip>() + size_of::<(f64, SlicedFlip)>())
    }

    /// Every flip of the slice that is allowed, left, and moves something.
    pub(super) fn all_flips(&self, base: &Base) -> Vec<SlicedFlip> {
        if !self.slice.is_whole() {
            self.ask_for_more();
        }
        let Shard { network, limits, .. } = self.shared;
        let divided = base.rows.is_some();
        let moves = |&d: &u32| divided || network.attribute_weight().row(d as usize).iter().any(|&w| w != 0.0);
        let flippable = |&d: &u32| limits.flippable(AttributeId(d));
        let attributes: Vec<u32> = (0..network.model().attributes() as u32).filter(flippable).filter(moves).collect();
        let mut flips = Vec::new();
        for position in (0..self.slice.level(0).len() as u32).filter(|&n| base.capacities[n as usize] > 0) {
            if network.graph().values().is_some() {
                let ways = attributes.iter().flat_map(|&d| [(position, d), (position, d | DOWN)]);
                flips.extend(ways.filter(|&flip| self.goes_its_way(flip)));
                continue;
            }
            let allowed = |&flip: &SlicedFlip| {
                if self.shared.change(self.slice, flip) < 0.0 { limits.deletions() } else { limits.additions() }
            };
            flips.extend(attributes.iter().map(|&d| (position, d)).filter(allowed));
        }
        flips
    }

    /// Whether a flip of real values raises its entry, or lowers it if that is what it is for.
    pub(super) fn goes_its_way(&self, flip: SlicedFlip) -> bool {
        let change = self.shared.change(self.slice, flip);
        if flip.1 >= DOWN { change < 0.0 } else { change > 0.0 }
    }

    /// Roundings that the sums around this target go through at most: over the nodes and units of each layer, term by term, and over all
    /// units.
    pub(super) fn roundings(&self) -> usize {
        let layers = self.shared.network.layers();
        let widest = layers.iter().map(|layer| layer.units()).max().unwrap_or(0);
        let of_layer = |(i, layer): (usize, &crate::model::Layer)| {
            layer.terms().len() * (self.slice.level(i + 1).len() + layer.units() + widest)
        };
        let of_layers: usize = layers.iter().enumerate().map(of_layer).sum();
        let width = self.shared.network.attribute_weight().columns();
        let all = self.first_unit[self.hidden()];
        let mean = self.shared.longest_mean(self.slice);
        2 * (of_layers + mean + all + self.slice.level(0).len() + width + self.most) + 64
    }
}

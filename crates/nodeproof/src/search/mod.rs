//! Finding the flips with the largest gains without looking at all of them (Lemma 13 of `docs/maths.md`).
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

mod by_norm;
mod normalised;
mod pair_tables;
mod rough;
mod table;
mod values;

use std::sync::OnceLock;

use crate::budget::Limits;
use crate::dense::{Matrix, dot};
use crate::engines::first_order;
use crate::ids::NodeId;
use crate::kernels::{InnerProduct, Work, dispatch};
use crate::network::Network;
use crate::prepare::Shard;
use crate::selection::Selection;
use crate::slice::{Kept, RouteTables, Slice, SlicedFlip};
use crate::sparse::Pattern;

use by_norm::ByNorm;
pub(crate) use by_norm::NormTable;
pub(crate) use normalised::NormalisedRows;
pub(crate) use pair_tables::{PairNorms, PairTables};
pub(crate) use rough::RoughWeights;
use rough::round_up;
pub(crate) use rough::{SAFE_SQUARE, norm_above};
use values::ValueRows;

/// Additions that are looked at together.
const CHUNK: usize = 16;
/// Thresholds from here on are far above what underflow can do to single precision.
const SAFE_SINGLE: f32 = 1e-30;

/// Tables about attributes that depend on the network alone, not on the budget.
#[derive(Debug)]
pub(crate) struct AttributeTables {
    pub(crate) rough: RoughWeights,
    /// For each pair of classes the norms of [`PairTables`], where these are used.
    pub(crate) pair_norms: Option<PairNorms>,
    first_order: OnceLock<first_order::Tables>,
    routes: OnceLock<Option<RouteTables>>,
}

impl AttributeTables {
    /// The tables of `network`; those of pairs of classes only where `pairs` says so, they are not too large, and attributes are plain bits.
    pub(crate) fn new(network: &Network, pairs: bool) -> Self {
        let rough = RoughWeights::new(network.attribute_weight());
        let pair_norms = if pairs && network.graph().kind().is_bits() { PairNorms::new(network, &rough) } else { None };
        Self { rough, pair_norms, first_order: OnceLock::new(), routes: OnceLock::new() }
    }

    /// The tables of bounds of first order, made when they are asked for.
    pub(crate) fn first_order(&self, network: &Network) -> &first_order::Tables {
        self.first_order.get_or_init(|| first_order::Tables::new(network))
    }

    /// The tables of slices that are cut by the weights of nodes, made when they are asked for; `None` where these do not apply.
    pub(crate) fn routes(&self, network: &Network) -> Option<&RouteTables> {
        self.routes.get_or_init(|| RouteTables::new(network, Kept::default())).as_ref()
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

    /// A row of whose query no more is known than that it is not longer than `norm`.
    pub(crate) fn of_norm(position: u32, norm: f64) -> Self {
        Self { position, norm, along: 0.0, off: norm }
    }

    /// A row whose query is compared with a mean of length 1.
    pub(crate) fn with_mean(position: u32, query: &[f64], mean: &[f64]) -> Self {
        let norm = norm_above(query);
        // Where the query is so short that squares may underflow, nothing is said of its direction.
        if norm * norm <= SAFE_SQUARE {
            return Self::without_mean(position, query);
        }
        let along = dot(query, mean);
        // An upper bound of a gain bounds no gain of the opposite direction.
        if along <= 0.0 {
            return Self::without_mean(position, query);
        }
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

/// An order in which rows visit the attributes, and what it says of the gains beforehand.
pub(crate) trait VisitingOrder {
    /// At least the norm of the weights of every attribute.
    fn largest_norm(&self) -> f64;

    /// At least the gain of every flip of the row.
    fn largest_gain(&self, row: &Row) -> f64;

    /// Offers all flips of the row that can enter the selection.
    fn visit(&mut self, row: &mut RowSearch, inner_product: impl InnerProduct);
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
    pub(crate) fn new(network: &'a Network<'a>, limits: &'a Limits, rough: &'a RoughWeights) -> Self {
        Self {
            attributes: network.graph().attributes(),
            weight: network.attribute_weight(),
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
        order: impl VisitingOrder,
        nodes: &[u32],
        rows: &[Row],
        query: impl FnMut(usize, &mut [f64]),
        z: &mut [f64],
        selection: &mut Selection<SlicedFlip>,
    ) {
        selection.reset(self.limits.global());
        self.extend(order, nodes, rows, query, z, selection);
    }

    /// The same with what `selection` has so far, of other rows.
    pub(crate) fn extend(
        &mut self,
        mut order: impl VisitingOrder,
        nodes: &[u32],
        rows: &[Row],
        mut query: impl FnMut(usize, &mut [f64]),
        z: &mut [f64],
        selection: &mut Selection<SlicedFlip>,
    ) {
        for &row in rows {
            if row.norm * order.largest_norm() <= selection.threshold() {
                break;
            }
            if order.largest_gain(&row) <= selection.threshold() {
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
            let row = RowSearch {
                weight: self.weight,
                rough: self.rough,
                attributes,
                row,
                z,
                length,
                rough_z: &self.rough_z,
                rough_unit: length * self.rough.unit,
                floor,
                selection: target,
                single: SingleRow::new(row),
                threshold: 0.0,
                single_threshold: 0.0,
                limit: 0.0,
            };
            dispatch(Visit { order: &mut order, row });
            if !whole {
                self.row_best.settle_rows();
                self.row_best.best().iter().for_each(|&(gain, flip)| selection.offer_of_row(gain, flip));
            }
        }
        selection.settle_rows();
    }
}

/// Searches the best flips of a slice, of whatever kind the attributes are, with one table for everything.
#[derive(Debug)]
pub(crate) struct AnyKind<'a> {
    shared: &'a Shard<'a>,
    table: &'a NormTable,
    bits: Search<'a>,
}

impl<'a> AnyKind<'a> {
    pub(crate) fn new(shared: &'a Shard<'a>, table: &'a NormTable) -> Self {
        Self { shared, table, bits: shared.search() }
    }

    /// Puts the best admissible flips into `selection`; where rows are divided, each with its part of what its row gains. `rows` are sorted
    /// by norm; `query(position, z)` writes the query of a row.
    pub(crate) fn run(
        &mut self,
        slice: &Slice,
        rows: &[Row],
        query: impl FnMut(usize, &mut [f64]),
        z: &mut [f64],
        selection: &mut Selection<SlicedFlip>,
    ) {
        let (shared, nodes, table) = (self.shared, slice.level(0), self.table);
        match &shared.bounds.clean.means {
            _ if shared.network.graph().values().is_some() => {
                ValueRows { shared, slice, table }.search(rows, query, z, selection);
            }
            None => self.bits.run(ByNorm::new(table), nodes, rows, query, z, selection),
            Some(means) => {
                let count = usize::MAX;
                NormalisedRows { shared, nodes, means, table, count }.search(rows, query, z, selection);
            }
        }
    }
}

/// The visit of one row.
struct Visit<'a, O> {
    order: &'a mut O,
    row: RowSearch<'a>,
}

impl<O: VisitingOrder> Work for Visit<'_, O> {
    #[inline(always)]
    fn run(mut self, inner_product: impl InnerProduct) {
        self.row.set_threshold();
        self.order.visit(&mut self.row, inner_product);
    }
}

/// One row of the slice's attributes, and what is needed to offer its flips.
pub(crate) struct RowSearch<'a> {
    weight: &'a Matrix,
    rough: &'a RoughWeights,
    attributes: &'a [u32],
    row: Row,
    z: &'a [f64],
    length: f64,
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

    /// The query, scaled to length 1.
    fn direction(&self) -> Vec<f64> {
        self.z.iter().map(|z| z / self.length).collect()
    }

    /// From now on the query is compared with this mean.
    fn compare_with(&mut self, mean: &[f64]) {
        self.row = Row::with_mean(self.row.position, self.z, mean);
        self.single = SingleRow::new(self.row);
    }

    /// Offers the flip of an attribute that adds (sign 1) or removes it (sign −1), unless its gain is too small. Bounds are above gains, so that
    /// those are offered, too, that are equal to the threshold.
    #[inline(always)]
    fn offer(&mut self, inner_product: impl InnerProduct, attribute: u32, sign: f64) {
        let score = inner_product.rough(self.rough_z, self.rough.row(attribute));
        self.offer_scored(inner_product, attribute, sign, score);
    }

    /// The same, given the inner product of the scaled query with the weights of the attribute in single precision.
    #[inline(always)]
    fn offer_scored(&mut self, inner_product: impl InnerProduct, attribute: u32, sign: f64, score: f32) {
        if sign as f32 * score <= self.limit {
            return;
        }
        let gain = sign * inner_product.of(self.z, self.weight.row(attribute as usize));
        let possible = || sign < 0.0 || self.attributes.binary_search(&attribute).is_err();
        // Of equal gains in a row the smallest attributes are taken, in whatever order they come.
        if gain > self.floor && gain >= self.threshold && possible() {
            self.selection.offer_of_row(gain, (self.row.position, attribute));
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

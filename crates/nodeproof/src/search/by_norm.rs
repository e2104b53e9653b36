//! Attributes by the norms of their weights, for queries of which nothing is known beforehand.
//!
//! `|z · W_d| ≤ ‖z‖ ‖W_d‖` alone says little of a gain. But the queries of one target look alike, so the first row keeps its inner
//! products with the attributes that it visits, and its query is the mean with which those of the other rows are compared.

use super::rough::{RoughWeights, norm_above, round_up};
use super::{CHUNK, Row, RowSearch, VisitingOrder};
use crate::budget::Limits;
use crate::dense::Matrix;
use crate::ids::AttributeId;
use crate::kernels::{InnerProduct, Work, dispatch};
use crate::values::Values;

/// The attributes that may be flipped, by decreasing norm of what a flip does to `X_n W` before rows are divided: of their weights, times the
/// most that an entry changes by.
#[derive(Debug)]
pub(crate) struct NormTable {
    pub(super) attributes: Vec<u32>,
    /// Upper bounds of these norms, and rough weights, in the same order.
    pub(super) norms: Vec<f32>,
    rows: Vec<f32>,
    width: usize,
    /// For each attribute its place in the order, or [`NOT_ALLOWED`].
    places: Vec<u32>,
    additions: bool,
    deletions: bool,
    /// The largest of the norms, those of attributes included that may not be flipped: means of rows are over them, too.
    pub(super) longest: f64,
}

/// In place of the place of an attribute that may not be flipped.
const NOT_ALLOWED: u32 = u32::MAX;

impl NormTable {
    pub(crate) fn new(rough: &RoughWeights, limits: &Limits, values: Option<&Values>) -> Self {
        let mut lengths = rough.lengths();
        if let Some(values) = values {
            for (length, d) in lengths.iter_mut().zip(0..) {
                // Rounding is far below the difference, and what is not a number may be any.
                let changed = f64::from(*length) * values.widest(AttributeId(d)) * (1.0 + 1e-9);
                *length = if changed.is_nan() { f32::INFINITY } else { round_up(changed) };
            }
        }
        let mut attributes: Vec<u32> = (0u32..).take(lengths.len()).collect();
        attributes.retain(|&attribute| limits.flippable(AttributeId(attribute)));
        let norm = |attribute: u32| lengths[attribute as usize];
        attributes.sort_by(|&a, &b| norm(b).total_cmp(&norm(a)));
        let mut places = vec![NOT_ALLOWED; lengths.len()];
        attributes.iter().zip(0..).for_each(|(&attribute, place)| places[attribute as usize] = place);
        Self {
            norms: attributes.iter().map(|&attribute| norm(attribute)).collect(),
            rows: attributes.iter().flat_map(|&attribute| rough.row(attribute)).copied().collect(),
            width: rough.width,
            attributes,
            places,
            additions: limits.additions(),
            deletions: limits.deletions(),
            longest: lengths.iter().copied().fold(0.0, f32::max).into(),
        }
    }

    /// Calls `visit` with those of the first `count` attributes whose inner product with a query is above a limit, and with that; the limit
    /// is from then on what it returns. `rough` are the weights in single precision.
    pub(super) fn visit_above(
        &self,
        (weight, rough): (&Matrix, &RoughWeights),
        query: &[f64],
        count: usize,
        limit: f64,
        visit: impl FnMut(u32, f64) -> f64,
    ) {
        let length = norm_above(query);
        let mut direction = vec![0.0; self.width];
        direction.iter_mut().zip(query).for_each(|(rough, z)| *rough = (z / length) as f32);
        let unit = length * rough.unit;
        dispatch(VisitAbove {
            table: self,
            weight,
            query,
            direction,
            length,
            unit,
            slack: rough.slack,
            count,
            limit,
            visit,
        });
    }
}

/// The visit of [`NormTable::visit_above`].
struct VisitAbove<'a, F> {
    table: &'a NormTable,
    weight: &'a Matrix,
    query: &'a [f64],
    /// The query, scaled to length 1, in single precision.
    direction: Vec<f32>,
    /// The length of the query.
    length: f64,
    /// What an inner product of 1 with the direction stands for.
    unit: f64,
    /// How far one may be off.
    slack: f64,
    count: usize,
    limit: f64,
    visit: F,
}

impl<F: FnMut(u32, f64) -> f64> Work for VisitAbove<'_, F> {
    #[inline(always)]
    fn run(mut self, inner_product: impl InnerProduct) {
        let NormTable { attributes, norms, rows, width, .. } = self.table;
        // What looks at most like this in single precision is a product up to the limit. What is not a number says nothing.
        let looks = |limit: f64| ((limit / self.unit - self.slack) as f32).next_down();
        let mut rough_limit = looks(self.limit);
        let all = attributes.iter().zip(norms).zip(rows.chunks_exact(*width)).take(self.count);
        for ((&attribute, &norm), row) in all {
            if self.length * f64::from(norm) <= self.limit {
                break;
            }
            if inner_product.rough(&self.direction, row) <= rough_limit {
                continue;
            }
            let product = inner_product.of(self.query, self.weight.row(attribute as usize));
            if product > self.limit {
                self.limit = (self.visit)(attribute, product);
                rough_limit = looks(self.limit);
            }
        }
    }
}

/// The order of one search.
pub(crate) struct ByNorm<'a> {
    table: &'a NormTable,
    /// The query of the first row, scaled to length 1.
    mean: Option<Vec<f64>>,
    /// Upper bounds of the gains of adding, and of removing, the first attributes of the table for that query.
    gains: [Vec<f32>; 2],
}

impl<'a> ByNorm<'a> {
    pub(crate) fn new(table: &'a NormTable) -> Self {
        Self { table, mean: None, gains: [Vec::new(), Vec::new()] }
    }

    /// Visits the attributes of the first row, and keeps what later rows are compared with.
    #[inline(always)]
    fn visit_first(&mut self, row: &mut RowSearch, inner_product: impl InnerProduct) {
        let NormTable { attributes, norms, places, .. } = self.table;
        if self.table.deletions {
            for &attribute in row.attributes.iter().filter(|&&attribute| places[attribute as usize] != NOT_ALLOWED) {
                row.offer(inner_product, attribute, -1.0);
            }
        }
        self.mean = Some(row.direction());
        if !self.table.additions {
            return;
        }
        let mut scores = Vec::with_capacity(attributes.len());
        let weights = self.table.rows.chunks(CHUNK * self.table.width);
        for ((attributes, norms), weights) in attributes.chunks(CHUNK).zip(norms.chunks(CHUNK)).zip(weights) {
            if !row.may_enter(row.row.norm * f64::from(norms[0])) {
                break;
            }
            let first = scores.len();
            scores.extend(weights.chunks_exact(self.table.width).map(|w| inner_product.rough(row.rough_z, w)));
            for (&attribute, &score) in attributes.iter().zip(&scores[first..]) {
                row.offer_scored(inner_product, attribute, 1.0, score);
            }
        }
        self.gains = row.rough.products_from(scores);
    }

    /// Visits the attributes of a row with query `along · mean + rest`.
    #[inline(always)]
    fn visit_other(&self, row: &mut RowSearch, inner_product: impl InnerProduct) {
        let NormTable { attributes, norms, places, .. } = self.table;
        let [added, removed] = &self.gains;
        if self.table.deletions {
            for &attribute in row.attributes {
                let place = places[attribute as usize] as usize;
                let Some(&norm) = norms.get(place) else { continue };
                let mean = *removed.get(place).unwrap_or(&norm);
                if row.may_enter(row.row.bound(mean.into(), norm.into())) {
                    row.offer(inner_product, attribute, -1.0);
                }
            }
        }
        if !self.table.additions {
            return;
        }
        let known = attributes.chunks(CHUNK).zip(norms.chunks(CHUNK)).zip(added.chunks(CHUNK));
        for ((attributes, norms), means) in known {
            if !row.may_enter(row.row.norm * f64::from(norms[0])) {
                return;
            }
            if !row.any_may_enter(means, norms) {
                continue;
            }
            for ((&attribute, &norm), &mean) in attributes.iter().zip(norms).zip(means) {
                if row.may_enter(row.row.bound(mean.into(), norm.into())) {
                    row.offer(inner_product, attribute, 1.0);
                }
            }
        }
        for (&attribute, &norm) in attributes.iter().zip(norms).skip(added.len()) {
            if !row.may_enter(row.row.norm * f64::from(norm)) {
                return;
            }
            row.offer(inner_product, attribute, 1.0);
        }
    }
}

impl VisitingOrder for ByNorm<'_> {
    fn largest_norm(&self) -> f64 {
        self.table.norms.first().map_or(0.0, |&norm| norm.into())
    }

    fn largest_gain(&self, row: &Row) -> f64 {
        row.norm * self.largest_norm()
    }

    #[inline(always)]
    fn visit(&mut self, row: &mut RowSearch, inner_product: impl InnerProduct) {
        match &self.mean {
            None => self.visit_first(row, inner_product),
            Some(mean) => {
                row.compare_with(mean);
                self.visit_other(row, inner_product);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::budget::{Budget, Direction, LocalBudget};
    use crate::dense::dot;
    use crate::graph::Graph;
    use crate::ids::NodeId;
    use crate::model::{Model, Propagation};
    use crate::network::Network;
    use crate::search::{Search, sort_rows};
    use crate::selection::Selection;

    const NODES: usize = 6;
    const ATTRIBUTES: usize = 50;
    const UNITS: usize = 5;

    /// Numbers of which many are equal or 0, and some are of another size.
    fn numbers(count: usize) -> impl Strategy<Value = Vec<f64>> {
        let number = prop_oneof![4 => -1.0..1.0, 2 => prop::sample::select(vec![0.0, 0.5, -0.5]), 1 => -1e-3..1e-3];
        prop::collection::vec(number, count)
    }

    /// Queries that are close to multiples of one, as those of a target are, and others.
    fn queries() -> impl Strategy<Value = Vec<f64>> {
        let like =
            (numbers(UNITS), numbers(NODES), numbers(NODES * UNITS), 0.0..0.3).prop_map(|(one, by, other, share)| {
                (0..NODES * UNITS).map(|i| by[i / UNITS] * one[i % UNITS] + share * other[i]).collect()
            });
        prop_oneof![like, numbers(NODES * UNITS)]
    }

    /// The q largest gains of each row, of those the Q largest.
    fn best_gains(network: &Network, limits: &Limits, queries: &Matrix) -> Vec<f64> {
        let (attributes, weight) = (network.graph().attributes(), network.attribute_weight());
        let mut all = Vec::new();
        for n in 0..NODES {
            let flippable = (0..ATTRIBUTES as u32).filter(|&d| limits.flippable(AttributeId(d)));
            let mut gains: Vec<f64> = flippable
                .filter(|&d| if attributes.contains(n, d) { limits.deletions() } else { limits.additions() })
                .map(|d| {
                    let sign = if attributes.contains(n, d) { -1.0 } else { 1.0 };
                    sign * dot(queries.row(n), weight.row(d as usize))
                })
                .filter(|&gain| gain > 0.0)
                .collect();
            gains.sort_by(|a, b| b.total_cmp(a));
            gains.truncate(limits.local(NodeId(n as u32)));
            all.extend(gains);
        }
        all.sort_by(|a, b| b.total_cmp(a));
        all.truncate(limits.global());
        all
    }

    proptest! {
        #![proptest_config(crate::seed::config(512))]

        /// Whatever the sign of the limit, and while it rises.
        #[test]
        fn every_product_above_the_limit_is_visited(
            (weight, query) in (numbers(ATTRIBUTES * UNITS), numbers(UNITS)),
            (limit, rise) in (-1.0..1.0, prop::sample::select(vec![0.0, 0.05])),
            scale in prop::sample::select(vec![1.0, 0.0, 1e-150, 1e150]),
            protected in prop::collection::vec(0..ATTRIBUTES as u32, 0..30),
        ) {
            let graph = Graph::new(1, ATTRIBUTES, &[], &[]).unwrap();
            let budget = Budget::new(1, LocalBudget::Count(1)).protect_attributes(protected.into_iter().map(AttributeId));
            let limits = budget.limits(&graph).unwrap();
            let weight = Matrix::from_values(ATTRIBUTES, UNITS, weight);
            let query: Vec<f64> = query.iter().map(|z| z * scale).collect();
            let rough = RoughWeights::new(&weight);
            let table = NormTable::new(&rough, &limits, None);
            let (mut visited, mut last) = (Vec::new(), limit * scale);
            table.visit_above((&weight, &rough), &query, usize::MAX, last, |d, product| {
                visited.push((d, product));
                last += rise * scale;
                last
            });
            for d in (0..ATTRIBUTES as u32).filter(|&d| limits.flippable(AttributeId(d))) {
                let product = dot(&query, weight.row(d as usize));
                let found = visited.iter().find(|of| of.0 == d);
                prop_assert!(found.is_none_or(|of| of.1 == product && product > limit * scale));
                prop_assert!(found.is_some() || product <= last, "{d}: {product} > {last}");
            }
        }

        #[test]
        fn the_best_flips_are_found(
            (weight, queries) in (numbers(ATTRIBUTES * UNITS), queries()),
            ones in prop::collection::vec((0..NODES as u32, 0..ATTRIBUTES as u32), 0..100),
            (global, local) in (1u32..20, 0u32..20),
            (direction, protected) in (prop::sample::select(&Direction::ALL), prop::collection::vec(0..ATTRIBUTES as u32, 0..30)),
        ) {
            let graph = Graph::new(NODES, ATTRIBUTES, &[], &ones).unwrap();
            let layer = |inputs: usize, outputs: usize, values| (Matrix::from_values(inputs, outputs, values), vec![0.0; outputs]);
            let layers = vec![layer(ATTRIBUTES, UNITS, weight), layer(UNITS, 2, vec![1.0; 2 * UNITS])];
            let model = Model::gcn(layers, Propagation::SymmetricGcn).unwrap();
            let network = Network::new(&graph, &model).unwrap();
            let budget = Budget::new(global, LocalBudget::Count(local))
                .direction(direction)
                .protect_attributes(protected.into_iter().map(AttributeId));
            let limits = budget.limits(&graph).unwrap();
            let queries = Matrix::from_values(NODES, UNITS, queries);
            let rough = RoughWeights::new(network.attribute_weight());
            let table = NormTable::new(&rough, &limits, None);
            let mut rows: Vec<Row> = (0..NODES).map(|n| Row::without_mean(n as u32, queries.row(n))).collect();
            sort_rows(&mut rows);
            let nodes: Vec<u32> = (0..NODES as u32).collect();
            let mut selection = Selection::new(0);
            let query = |n: usize, z: &mut [f64]| z.copy_from_slice(queries.row(n));
            Search::new(&network, &limits, &rough)
                .run(ByNorm::new(&table), &nodes, &rows, query, &mut [0.0; UNITS], &mut selection);
            let found: Vec<f64> = selection.best().iter().map(|&(gain, _)| gain).collect();
            prop_assert_eq!(found, best_gains(&network, &limits, &queries));
        }
    }
}

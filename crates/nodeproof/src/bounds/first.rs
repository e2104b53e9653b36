//! Exact bounds of what a layer makes of the attributes (Lemmas 5 and 6 of `docs/maths.md`).
//!
//! `Z_mj = Σ_k Σ_n P_k,mn X_n W_k,j + b_j`, the sum over the terms k that read the attributes, is additive in the flips: one of
//! (n, d) raises it by `σ Σ_k P_k,mn W_k,dj`, σ = 1 − 2 X_nd. So with one term
//!
//! ```text
//! hi_mj = Z_mj + Σ of the Q largest |P_mn| · gain over the q_n largest gains (± σ W_dj)₊ of each neighbour n,
//! ```
//!
//! ± being the sign of P_mn, and `lo` with −σ (the paper's equations for R⁽²⁾ and S⁽²⁾). Each column of W is sorted once by
//! size, as far as needed. What a node can gain at an attribute is its weight's size, up if the weight is positive and the node
//! lacks the attribute or the weight is negative and the node has it, and down otherwise: so one bit a node and attribute, set
//! in one pass over the node's attributes, says which of the sorted weights are gains. They are visited from the largest on,
//! neighbours by decreasing |P_mn|, until none can enter the Q largest.
//!
//! A neighbour that several terms gather from, as the node itself behind a skip connection, has a column of its own,
//! `Σ_k P_k,mn W_k,j`, which is made and searched unless none of its gains can enter.

mod normalised;
mod values;

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};

use rayon::ThreadPool;
use rayon::prelude::*;

use super::{ByBounds, Ends};
use crate::budget::Limits;
use crate::dense::{Matrix, add_scaled};
use crate::graph::Graph;
use crate::ids::{AttributeId, NodeId};
use crate::network::Network;
use crate::prepare::Changes;
use crate::selection::Selection;
use crate::slice::{Region, SlicedFlip};
use crate::sparse::Pattern;

/// Units between two calls of the observer.
const BATCH: usize = 8;

/// The layer whose bounds are asked for, on a region.
pub(super) struct Asked<'a> {
    pub(super) network: &'a Network<'a>,
    pub(super) limits: &'a Limits,
    pub(super) region: &'a Region,
    /// For each attribute the places in level 0 of the nodes that have it.
    pub(super) places_with: &'a Pattern,
    pub(super) layer: usize,
    /// What the layer makes of the attributes as they are, biases included.
    pub(super) clean: &'a Matrix,
    /// μ = X W for each node of level 0, where rows are divided by the number of their ones.
    pub(super) means: Option<&'a Matrix>,
    /// Whether nothing but the sign of stable units matters, so that their bounds may be wider.
    pub(super) only_signs_matter: bool,
}

/// `lo` and `hi`, a row for each node of the layer's level; `None` if the observer, called with the number of units done,
/// breaks off.
pub(super) fn bounds(
    asked: Asked,
    pool: &ThreadPool,
    observer: &mut impl FnMut(usize) -> ControlFlow<()>,
) -> Option<(Matrix, Matrix)> {
    let (mut lo, mut hi) = (asked.clean.clone(), asked.clean.clone());
    let problem = Problem::new(asked);
    let units = lo.columns();
    for first in (0..units).step_by(BATCH) {
        let batch = first..(first + BATCH).min(units);
        let moves = |j: usize| problem.moves(j);
        let moves: Vec<UnitMoves> = pool.install(|| batch.clone().into_par_iter().map(moves).collect());
        for (unit, moves) in batch.clone().zip(moves) {
            moves.apply(unit, &mut lo, &mut hi);
        }
        if observer(batch.end).is_break() {
            return None;
        }
    }
    Some((lo, hi))
}

/// `lo` and `hi` as [`bounds`] has them, with the flips that attain them where a derivative can need them.
pub(super) fn attained_bounds(asked: Asked) -> (Matrix, Matrix, Attained) {
    let (mut lo, mut hi) = (asked.clean.clone(), asked.clean.clone());
    let problem = Problem::new(asked);
    let moves: Vec<_> = (0..lo.columns()).into_par_iter().map(|unit| problem.attained_moves(unit)).collect();
    let mut flips = Vec::with_capacity(moves.len());
    for (unit, (moves, attained)) in moves.into_iter().enumerate() {
        moves.apply(unit, &mut lo, &mut hi);
        flips.push(attained);
    }
    (lo, hi, Attained { neighbourhoods: problem.neighbourhoods, flips })
}

/// The flips that attain bounds.
#[derive(Debug)]
pub(crate) struct Attained {
    neighbourhoods: Neighbourhoods,
    /// For each unit those behind hi, and those behind lo. In place of a row they have its entry in the neighbourhoods.
    flips: Vec<[Lists<SlicedFlip>; 2]>,
}

impl Attained {
    /// The derivative by the weights of the layer's terms, each attributes × units, given those by lo and hi. The flips being
    /// fixed, `∂hi_mj / ∂W_k,dj = Σ_n P_k,mn ΔX_nd`, and so of lo (Lemmas 35 and 50). `add` is called with the term, the attribute, the unit and its derivative.
    pub(super) fn add_gradient(
        &self,
        (network, limits, region): (&Network, &Limits, &Region),
        weights: &[Matrix],
        by: &ByBounds,
        mut add: impl FnMut(usize, usize, &[f64]),
    ) {
        let of_unit = |unit: usize| match network.graph().kind().is_bits() {
            true => self.by_weights_of_bits(weights, by, unit),
            false => self.by_weights(network.graph(), limits, region.level(0).nodes(), weights, by, unit),
        };
        let columns: Vec<Vec<Vec<f64>>> = (0..self.flips.len()).into_par_iter().map(of_unit).collect();
        let mut row = vec![0.0; columns.len()];
        for (term, weight) in weights.iter().enumerate() {
            for attribute in 0..weight.rows() {
                row.iter_mut().zip(&columns).for_each(|(value, columns)| *value = columns[term][attribute]);
                add(term, attribute, &row);
            }
        }
    }

    /// Calls `visit` with the derivative by each end of a unit, and the flips that attain it.
    fn each_end(&self, by: &ByBounds, unit: usize, mut visit: impl FnMut(f64, Way, &[SlicedFlip])) {
        for (lists, way) in self.flips[unit].iter().zip([Way::Up, Way::Down]) {
            for place in 0..by.rows() {
                let Ends { lo, hi } = by.get(place, unit);
                let derivative = if matches!(way, Way::Up) { hi } else { lo };
                if derivative != 0.0 {
                    visit(derivative, way, lists.of(place));
                }
            }
        }
    }

    /// The derivatives by the weights of one unit, a column for each term.
    fn by_weights(
        &self,
        graph: &Graph,
        limits: &Limits,
        nodes: &[u32],
        weights: &[Matrix],
        by: &ByBounds,
        unit: usize,
    ) -> Vec<Vec<f64>> {
        let mut columns: Vec<Vec<f64>> = weights.iter().map(|weight| vec![0.0; weight.rows()]).collect();
        // By `X_n W` as it is.
        let mut by_rows = vec![vec![0.0; nodes.len()]; weights.len()];
        self.each_end(by, unit, |derivative, _, flips| {
            let place = |entry: u32| self.neighbourhoods.places[entry as usize] as usize;
            for change in Changes::new(graph, limits, flips, |entry| nodes[place(entry)]).iter() {
                let factors = self.neighbourhoods.factors(change.row as usize).iter();
                for ((p, column), by_rows) in factors.zip(&mut columns).zip(&mut by_rows) {
                    change.entries.iter().for_each(|&(d, amount)| column[d as usize] += derivative * p * amount);
                    by_rows[place(change.row)] += derivative * p * change.multiple;
                }
            }
        });
        for (column, by_rows) in columns.iter_mut().zip(&by_rows) {
            for (&node, by_row) in nodes.iter().zip(by_rows).filter(|(_, by_row)| **by_row != 0.0) {
                let own = graph.attributes().row(node as usize);
                own.iter().for_each(|&d| column[d as usize] += by_row / graph.kind().divisor(own.len()));
            }
        }
        columns
    }

    /// The same of bits: since only gains > 0 are taken, a flip changes its entry by the sign of `Σ_k P_k,mn W_k,dj` where it attains hi, and
    /// by the opposite where it attains lo.
    fn by_weights_of_bits(&self, weights: &[Matrix], by: &ByBounds, unit: usize) -> Vec<Vec<f64>> {
        let mut columns: Vec<Vec<f64>> = weights.iter().map(|weight| vec![0.0; weight.rows()]).collect();
        self.each_end(by, unit, |derivative, way, flips| {
            let derivative = if matches!(way, Way::Up) { derivative } else { -derivative };
            for &(entry, attribute) in flips {
                let (d, factors) = (attribute as usize, self.neighbourhoods.factors(entry as usize));
                let moved: f64 = factors.iter().zip(weights).map(|(p, weight)| p * weight.get(d, unit)).sum();
                for (column, p) in columns.iter_mut().zip(factors) {
                    column[d] += derivative * p * moved.signum();
                }
            }
        });
        columns
    }
}

/// Everything that the bounds of all units share.
struct Problem<'a> {
    asked: Asked<'a>,
    nodes: &'a [u32],
    neighbourhoods: Neighbourhoods,
    /// For each term a row for each unit.
    weights: Vec<Matrix>,
    /// Most flips at each node of level 0 that can be of use.
    capacities: Vec<usize>,
    largest_capacity: usize,
}

impl<'a> Problem<'a> {
    fn new(asked: Asked<'a>) -> Self {
        let Asked { network, limits, region, layer, .. } = asked;
        let nodes = region.level(0).nodes();
        let capacity = |&node: &u32| limits.local(NodeId(node)).min(limits.global());
        let capacities: Vec<usize> = nodes.iter().map(capacity).collect();
        let weights = network.attribute_terms_of(layer).map(|term| {
            let (weight, columns) = (network.attribute_weight(), &term.columns);
            let mut turned = Matrix::zeros(columns.len(), weight.rows());
            for attribute in 0..weight.rows() {
                for (unit, &w) in weight.row(attribute)[columns.clone()].iter().enumerate() {
                    turned.row_mut(unit)[attribute] = w;
                }
            }
            turned
        });
        Self {
            nodes,
            neighbourhoods: Neighbourhoods::new(network, region, layer),
            weights: weights.collect(),
            largest_capacity: capacities.iter().copied().max().unwrap_or(0),
            capacities,
            asked,
        }
    }

    /// How far `unit` can be moved.
    fn moves(&self, unit: usize) -> UnitMoves {
        let mut moves = UnitMoves::default();
        if !self.visit_other_kinds(unit, false, |up, down, _| moves.push(up, down)) {
            Unit::new(self, unit).select(|_, _| (), |up, down, _| moves.push(up, down));
        }
        moves
    }

    /// How far `unit` can be moved, and the flips that do so, up and down.
    fn attained_moves(&self, unit: usize) -> (UnitMoves, [Lists<SlicedFlip>; 2]) {
        let mut moves = UnitMoves::default();
        let mut flips = [Lists::default(), Lists::default()];
        let is_other = self.visit_other_kinds(unit, true, |up, down, selected| {
            moves.push(up, down);
            flips.iter_mut().zip(selected).for_each(|(flips, selected)| flips.push(selected.into_iter()));
        });
        if !is_other {
            Unit::new(self, unit).select(
                |entry, attribute| (entry, attribute),
                |up, down, selected| {
                    moves.push(up, down);
                    for (flips, selected) in flips.iter_mut().zip(selected) {
                        flips.push(selected.iter().map(|&(_, flip)| flip));
                    }
                },
            );
        }
        (moves, flips)
    }

    /// Calls `visit` for each node of the level how far the unit can be moved up and down and, where they are `wanted`, with the flips that
    /// do so; false, and no call, where attributes are plain bits.
    fn visit_other_kinds(&self, unit: usize, wanted: bool, visit: impl FnMut(f64, f64, [Vec<SlicedFlip>; 2])) -> bool {
        match (self.asked.means, self.asked.network.graph().values()) {
            (Some(means), _) => normalised::visit(self, means, unit, wanted, visit),
            (None, Some(values)) => values::visit(self, values, unit, wanted, visit),
            (None, None) => return false,
        }
        true
    }

    fn attributes(&self, place: usize) -> &'a [u32] {
        self.asked.network.graph().attributes().row(self.nodes[place] as usize)
    }
}

/// For each node of the layer's level its neighbours, as places in level 0, by decreasing weight.
#[derive(Debug)]
struct Neighbourhoods {
    offsets: Vec<usize>,
    places: Vec<u32>,
    /// P of each term for each neighbour.
    factors: Vec<f64>,
    terms: usize,
}

impl Neighbourhoods {
    fn new(network: &Network, region: &Region, layer: usize) -> Self {
        let matrices: Vec<_> = network.attribute_terms_of(layer).map(|of| network.matrix(layer, of.term)).collect();
        let terms = matrices.len();
        let mut all = Self { offsets: vec![0], places: Vec::new(), factors: Vec::new(), terms };
        for &m in region.level(layer + 1).nodes() {
            if let [matrix] = matrices[..] {
                all.push_row(matrix.row(m as usize), |n| region.level(0).place(n));
            } else {
                all.push_rows(matrices.iter().map(|matrix| matrix.row(m as usize)), |n| region.level(0).place(n));
            }
        }
        all
    }

    /// Adds the neighbours of a node in the only term.
    fn push_row(&mut self, (nodes, weights): (&[u32], &[f64]), place: impl Fn(u32) -> usize) {
        let mut entries: Vec<(u32, f64)> =
            nodes.iter().map(|&n| place(n) as u32).zip(weights.iter().copied()).collect();
        entries.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()));
        self.places.extend(entries.iter().map(|&(place, _)| place));
        self.factors.extend(entries.iter().map(|&(_, p)| p));
        self.offsets.push(self.places.len());
    }

    /// Adds the neighbours of a node in several terms.
    fn push_rows<'r>(&mut self, rows: impl Iterator<Item = (&'r [u32], &'r [f64])>, place: impl Fn(u32) -> usize) {
        let mut together: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
        for (term, (nodes, weights)) in rows.enumerate() {
            for (&n, &p) in nodes.iter().zip(weights) {
                together.entry(n).or_insert_with(|| vec![0.0; self.terms])[term] = p;
            }
        }
        let mut entries: Vec<(u32, Vec<f64>)> = together.into_iter().collect();
        let size = |factors: &[f64]| factors.iter().map(|p| p.abs()).sum::<f64>();
        entries.sort_by(|a, b| size(&b.1).total_cmp(&size(&a.1)));
        for (n, factors) in entries {
            self.places.push(place(n) as u32);
            self.factors.extend(factors);
        }
        self.offsets.push(self.places.len());
    }

    fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    fn factors(&self, entry: usize) -> &[f64] {
        &self.factors[entry * self.terms..(entry + 1) * self.terms]
    }

    fn range(&self, place: usize) -> Range<usize> {
        self.offsets[place]..self.offsets[place + 1]
    }
}

/// One list after the other.
#[derive(Debug)]
struct Lists<T> {
    offsets: Vec<u32>,
    items: Vec<T>,
}

impl<T> Default for Lists<T> {
    fn default() -> Self {
        Self { offsets: vec![0], items: Vec::new() }
    }
}

impl<T: Copy> Lists<T> {
    fn push(&mut self, items: impl Iterator<Item = T>) {
        self.items.extend(items);
        self.offsets.push(self.items.len() as u32);
    }

    fn of(&self, list: usize) -> &[T] {
        &self.items[self.offsets[list] as usize..self.offsets[list + 1] as usize]
    }
}

/// How far one unit can be moved, for each node of its layer.
#[derive(Default)]
struct UnitMoves {
    up: Vec<f64>,
    down: Vec<f64>,
}

impl UnitMoves {
    fn push(&mut self, up: f64, down: f64) {
        self.up.push(up);
        self.down.push(down);
    }

    fn apply(&self, unit: usize, lo: &mut Matrix, hi: &mut Matrix) {
        for (place, (up, down)) in self.up.iter().zip(&self.down).enumerate() {
            lo.row_mut(place)[unit] -= down;
            hi.row_mut(place)[unit] += up;
        }
    }
}

/// A way to move a unit.
#[derive(Debug, Clone, Copy)]
enum Way {
    Up,
    Down,
}

impl Way {
    /// The way to move what is multiplied by `factor` in order to move the product this way.
    fn through(self, factor: f64) -> Self {
        match (self, factor < 0.0) {
            (Self::Up, false) | (Self::Down, true) => Self::Up,
            (Self::Down, false) | (Self::Up, true) => Self::Down,
        }
    }
}

/// One unit of the layer.
struct Unit<'a> {
    problem: &'a Problem<'a>,
    unit: usize,
    /// Its weights in each term.
    columns: Vec<Column<'a>>,
    /// Moves by each attribute of a neighbour that several terms gather from, and the largest of them.
    moves: Vec<f64>,
    row: Selection<u32>,
}

impl<'a> Unit<'a> {
    fn new(problem: &'a Problem<'a>, unit: usize) -> Self {
        let columns = problem.weights.iter().map(|weights| Column::new(problem, weights.row(unit))).collect();
        Self { problem, unit, columns, moves: Vec::new(), row: Selection::new(0) }
    }

    /// Calls `visit` for each node of the level how far the unit can be moved up and down, and the flips that do so; `item`
    /// makes what it hears of a flip from the neighbour's entry and the attribute. Where the unit is stable by a wide
    /// margin and nothing but that matters, it hears of larger moves and no flips.
    fn select<T: Copy>(&mut self, item: impl Fn(u32, u32) -> T, mut visit: impl FnMut(f64, f64, [&[(f64, T)]; 2])) {
        let Problem { neighbourhoods, asked: Asked { limits, clean, only_signs_matter, .. }, .. } = self.problem;
        let (mut up, mut down) = (Selection::new(limits.global()), Selection::new(limits.global()));
        for place in 0..neighbourhoods.len() {
            let z = clean.get(place, self.unit);
            let most = self.most(place);
            if *only_signs_matter && (z >= most || z <= -most) {
                visit(most, most, [&[], &[]]);
                continue;
            }
            self.select_at(place, Way::Up, &item, &mut up);
            self.select_at(place, Way::Down, &item, &mut down);
            visit(up.total(), down.total(), [up.best(), down.best()]);
        }
    }

    /// What no admissible set can move the unit by at a node of the level, up or down.
    fn most(&self, place: usize) -> f64 {
        let Problem { neighbourhoods, asked: Asked { limits, .. }, .. } = self.problem;
        let (flips, mut entries) = (limits.global() as f64, neighbourhoods.range(place));
        match &self.columns[..] {
            // The first neighbour has the largest weight.
            [column] => {
                let largest = entries.next().map_or(0.0, |entry| neighbourhoods.factors(entry)[0].abs());
                flips * largest * column.largest()
            }
            _ => flips * entries.map(|entry| self.reach(entry)).fold(0.0, f64::max),
        }
    }

    /// The most that a flip at a neighbour can move the unit.
    #[inline]
    fn reach(&self, entry: usize) -> f64 {
        let factors = self.problem.neighbourhoods.factors(entry);
        factors.iter().zip(&self.columns).map(|(p, column)| p.abs() * column.largest()).sum()
    }

    fn select_at<T: Copy>(
        &mut self,
        place: usize,
        way: Way,
        item: impl Fn(u32, u32) -> T,
        selection: &mut Selection<T>,
    ) {
        let neighbourhoods = &self.problem.neighbourhoods;
        selection.clear();
        for entry in neighbourhoods.range(place) {
            if self.reach(entry) <= selection.threshold() {
                // Neighbours are sorted by the weight of the only term.
                if self.columns.len() == 1 {
                    break;
                }
                continue;
            }
            let (n, factors) = (neighbourhoods.places[entry] as usize, neighbourhoods.factors(entry));
            let counts = |&term: &usize| factors[term] != 0.0 && self.columns[term].largest() > 0.0;
            let mut terms = (0..factors.len()).filter(counts);
            let (first, second) = (terms.next(), terms.next());
            let mut offer = |gain: f64, attribute: u32| {
                let enters = gain > selection.threshold();
                if enters {
                    selection.offer(gain, item(entry as u32, attribute));
                }
                enters
            };
            match (first, second) {
                (Some(term), None) => {
                    let weight = factors[term].abs();
                    let way = way.through(factors[term]);
                    self.columns[term].offer(way, n, |size, attribute| offer(weight * size, attribute));
                }
                (Some(_), Some(_)) => {
                    self.search_column(way, n, factors);
                    self.row.best().iter().take_while(|&&(gain, attribute)| offer(gain, attribute)).for_each(drop);
                }
                (None, _) => {}
            }
        }
        selection.settle();
    }

    /// Puts the best flips of a neighbour that several terms gather from, as many as its budget allows, into the row.
    fn search_column(&mut self, way: Way, place: usize, factors: &[f64]) {
        let limits = self.problem.asked.limits;
        let sign = if matches!(way, Way::Up) { 1.0 } else { -1.0 };
        self.moves.clear();
        self.moves.resize(self.columns.first().map_or(0, |column| column.weights.len()), 0.0);
        for (&p, column) in factors.iter().zip(&self.columns) {
            add_scaled(&mut self.moves, sign * p, column.weights);
        }
        let has = self.problem.attributes(place);
        has.iter().for_each(|&d| self.moves[d as usize] *= if limits.deletions() { -1.0 } else { 0.0 });
        self.row.reset(self.problem.capacities[place]);
        let (moves, row) = (&self.moves, &mut self.row);
        let mut offer = |d: u32| {
            let gain = moves[d as usize];
            if gain > row.threshold() && limits.flippable(AttributeId(d)) {
                row.offer(gain, d);
            }
        };
        if limits.additions() {
            (0..moves.len() as u32).for_each(offer)
        } else {
            has.iter().for_each(|&d| offer(d))
        }
        row.settle();
    }
}

/// The weights of one unit in one term, and which of them are gains at which node of level 0.
struct Column<'a> {
    problem: &'a Problem<'a>,
    weights: &'a [f64],
    /// Size and attribute of the largest weights, largest first.
    top: Vec<(f64, u32)>,
    /// A bit for each of `top`: whether its weight is positive.
    positive: Vec<u64>,
    /// For each node a bit for each of `top`: whether it has the attribute.
    has: Vec<u64>,
    /// All other weights of additions that move the unit up or down, sorted when they are first needed.
    rest: [Option<Vec<(f64, u32)>>; 2],
}

/// A node may have some of the largest weights' attributes, so that it needs more.
const SPARE: usize = 12;
/// No more than this many weights of a unit are sorted beforehand.
const MOST: usize = 1 << 12;

impl<'a> Column<'a> {
    fn new(problem: &'a Problem<'a>, weights: &'a [f64]) -> Self {
        let top = largest_weights(problem.asked.limits, weights, problem.largest_capacity + SPARE);
        let words = top.len().div_ceil(64);
        let mut positive = vec![0; words];
        let mut has = vec![0; problem.nodes.len() * words];
        for (place, &(_, attribute)) in top.iter().enumerate() {
            let (word, bit) = (place / 64, place % 64);
            positive[word] |= u64::from(weights[attribute as usize] > 0.0) << bit;
            for &node in problem.asked.places_with.row(attribute as usize) {
                has[node as usize * words + word] |= 1 << bit;
            }
        }
        Self { problem, weights, top, positive, has, rest: [None, None] }
    }

    /// The size of the largest weight.
    fn largest(&self) -> f64 {
        self.top.first().map_or(0.0, |&(size, _)| size)
    }

    /// Offers the gains of a node from the largest on, as many as its budget allows, until one is refused.
    #[inline]
    fn offer(&mut self, way: Way, place: usize, mut offer: impl FnMut(f64, u32) -> bool) {
        let words = self.positive.len();
        let mut left = self.problem.capacities[place];
        for word in 0..words {
            let has = self.has[place * words + word];
            let mut gains = self.gains(way, has, self.positive[word]);
            while gains != 0 {
                let Some(&(size, attribute)) = self.top.get(64 * word + gains.trailing_zeros() as usize) else {
                    break;
                };
                if left == 0 || !offer(size, attribute) {
                    return;
                }
                left -= 1;
                gains &= gains - 1;
            }
        }
        if left > 0 && self.weights.len() > self.top.len() {
            self.offer_rest(way, place, left, offer);
        }
    }

    /// Which of 64 attributes are gains, given which of them a node has and which weights are positive.
    #[inline]
    fn gains(&self, way: Way, has: u64, positive: u64) -> u64 {
        let rising = match way {
            Way::Up => positive,
            Way::Down => !positive,
        };
        let limits = self.problem.asked.limits;
        let additions = if limits.additions() { rising & !has } else { 0 };
        let deletions = if limits.deletions() { !rising & has } else { 0 };
        additions | deletions
    }

    /// Goes on where the largest weights end.
    #[cold]
    fn offer_rest(&mut self, way: Way, place: usize, left: usize, mut offer: impl FnMut(f64, u32) -> bool) {
        let limits = self.problem.asked.limits;
        let row = self.problem.attributes(place);
        let size = |attribute: u32| (self.weights[attribute as usize].abs(), attribute);
        let after_top = |attribute: u32| self.top.last().is_none_or(|last| falling(last, &size(attribute)).is_lt());
        let in_rest = |attribute: u32| limits.flippable(AttributeId(attribute)) && after_top(attribute);
        let rises = |attribute: u32| match way {
            Way::Up => self.weights[attribute as usize] > 0.0,
            Way::Down => self.weights[attribute as usize] < 0.0,
        };
        let sorted = |attributes: &mut dyn Iterator<Item = u32>| {
            let mut sorted: Vec<(f64, u32)> = attributes.map(size).filter(|&(size, _)| size > 0.0).collect();
            sorted.sort_unstable_by(falling);
            sorted
        };
        let mut deletions = Vec::new();
        if limits.deletions() {
            deletions = sorted(&mut row.iter().copied().filter(|&attribute| in_rest(attribute) && !rises(attribute)));
        }
        let additions = self.rest[way as usize].take().unwrap_or_else(|| {
            let all = 0..self.weights.len() as u32;
            sorted(&mut all.filter(|&attribute| limits.additions() && in_rest(attribute) && rises(attribute)))
        });
        let mut missing = additions.iter().filter(|(_, attribute)| row.binary_search(attribute).is_err()).peekable();
        let mut deletions = deletions.iter().peekable();
        for _ in 0..left {
            let addition = missing.peek().map_or(0.0, |(size, _)| *size);
            let next = deletions.next_if(|(deletion, _)| *deletion > addition).or_else(|| missing.next());
            if !next.is_some_and(|&(size, attribute)| offer(size, attribute)) {
                break;
            }
        }
        self.rest[way as usize] = Some(additions);
    }
}

/// Size and attribute of the largest weights that an attacker can make use of, largest first: all from the largest on, until
/// there are `enough` of either sign.
fn largest_weights(limits: &Limits, weights: &[f64], enough: usize) -> Vec<(f64, u32)> {
    // Signs are as good as random, so that branches would be guessed wrong half of the time.
    let mut sizes = [vec![0.0; weights.len()], vec![0.0; weights.len()]];
    let mut counts = [0, 0];
    for (&weight, attribute) in weights.iter().zip(0u32..) {
        let sign = usize::from(weight < 0.0);
        sizes[sign][counts[sign]] = weight.abs();
        counts[sign] += usize::from((weight != 0.0) & limits.flippable(AttributeId(attribute)));
    }
    let cut = |sign: usize| {
        let sizes = &mut sizes[sign][..counts[sign]];
        if enough < sizes.len() { *sizes.select_nth_unstable_by(enough, |a, b| b.total_cmp(a)).1 } else { 0.0 }
    };
    let cut = [0, 1].map(cut).into_iter().fold(f64::INFINITY, f64::min);
    let sizes = weights.iter().zip(0u32..).map(|(weight, attribute)| (weight.abs(), attribute));
    let useful =
        |&(size, attribute): &(f64, u32)| size >= cut && size > 0.0 && limits.flippable(AttributeId(attribute));
    let mut top: Vec<(f64, u32)> = sizes.filter(useful).collect();
    if top.len() > MOST {
        top.select_nth_unstable_by(MOST, falling);
        top.truncate(MOST);
    }
    top.sort_unstable_by(falling);
    top
}

/// Largest first, of equal ones the smaller attribute.
fn falling(a: &(f64, u32), b: &(f64, u32)) -> Ordering {
    b.0.total_cmp(&a.0).then(a.1.cmp(&b.1))
}

#[cfg(test)]
mod tests;

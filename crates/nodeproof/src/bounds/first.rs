//! Exact bounds of the first layer (Lemmas 5 and 6 of `docs/maths.md`).
//!
//! `Z_mj = Σ_n P_mn X_n W_j + b_j` is additive in the flips: one of (n, d) raises it by `P_mn σ W_dj`, σ = 1 − 2 X_nd. So
//!
//! ```text
//! hi_mj = Z_mj + Σ of the Q largest P_mn · gain over the q_n largest gains (σ W_dj)₊ of each neighbour n,
//! ```
//!
//! and `lo` with −σ (the paper's equations for R⁽²⁾ and S⁽²⁾). Each column of W is sorted once by size, as far as
//! needed. What a node can gain at an attribute is its weight's size, up if the weight is positive and the node lacks the
//! attribute or the weight is negative and the node has it, and down otherwise: so one bit a node and attribute, set in
//! one pass over the node's attributes, says which of the sorted weights are gains. They are visited from the largest on,
//! neighbours by decreasing P_mn, until none can enter the Q largest.

use std::cmp::Ordering;
use std::ops::{ControlFlow, Range};

use rayon::ThreadPool;
use rayon::prelude::*;

use super::{ByBounds, Ends};
use crate::budget::Limits;
use crate::dense::Matrix;
use crate::ids::{AttributeId, NodeId};
use crate::network::Network;
use crate::selection::Selection;
use crate::slice::Region;
use crate::sparse::Pattern;

/// Units between two calls of the observer.
const BATCH: usize = 8;

/// `lo` and `hi`, a row for each node of level 1; `None` if the observer breaks off. With one hidden layer they may be wider
/// where a unit is stable by a wide margin.
pub(super) fn bounds(
    network: &Network,
    limits: &Limits,
    region: &Region,
    places_with: &Pattern,
    clean: &Matrix,
    pool: &ThreadPool,
    observer: &mut impl FnMut(usize, usize) -> ControlFlow<()>,
) -> Option<(Matrix, Matrix)> {
    let problem = Problem::new(network, limits, region, places_with, clean);
    let (mut lo, mut hi) = (clean.clone(), clean.clone());
    let units = problem.weights.rows();
    for first in (0..units).step_by(BATCH) {
        let batch = first..(first + BATCH).min(units);
        let moves: Vec<UnitMoves> = pool.install(|| batch.clone().into_par_iter().map(|j| problem.moves(j)).collect());
        for (unit, moves) in batch.clone().zip(moves) {
            moves.apply(unit, &mut lo, &mut hi);
        }
        if observer(batch.end, units).is_break() {
            return None;
        }
    }
    Some((lo, hi))
}

/// `lo` and `hi` as [`bounds`] has them, with the flips that attain them where a derivative can need them.
pub(super) fn attained_bounds(
    network: &Network,
    limits: &Limits,
    region: &Region,
    places_with: &Pattern,
    clean: &Matrix,
) -> (Matrix, Matrix, Attained) {
    let problem = Problem::new(network, limits, region, places_with, clean);
    let (mut lo, mut hi) = (clean.clone(), clean.clone());
    let units = 0..problem.weights.rows();
    let moves: Vec<_> = units.into_par_iter().map(|unit| problem.attained_moves(unit)).collect();
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
    /// For each unit those behind hi, and those behind lo.
    flips: Vec<[Lists<AttainedFlip>; 2]>,
}

/// A flip of an attribute at a neighbour, given as its entry in the [`Neighbourhoods`].
type AttainedFlip = (u32, u32);

impl Attained {
    /// Adds the derivative by the weights to `gradient`, given those by lo and hi. The flips being fixed,
    /// `∂hi_mj / ∂W_dj = P_mn σ` and `σ = sign W_dj`, since only gains `P_mn σ W_dj > 0` are taken; for lo the sign
    /// turns.
    pub(super) fn add_gradient(&self, weight: &Matrix, by: &ByBounds, gradient: &mut Matrix) {
        let columns: Vec<Vec<f64>> = (0..self.flips.len())
            .into_par_iter()
            .map(|unit| {
                let mut column = vec![0.0; weight.rows()];
                let ends: [fn(Ends) -> f64; 2] = [|by| by.hi, |by| -by.lo];
                for (lists, derivative) in self.flips[unit].iter().zip(ends) {
                    for place in 0..by.rows() {
                        let derivative = derivative(by.get(place, unit));
                        for &(entry, attribute) in lists.of(place) {
                            let (_, p) = self.neighbourhoods.entries[entry as usize];
                            let sign = weight.get(attribute as usize, unit).signum();
                            column[attribute as usize] += derivative * p * sign;
                        }
                    }
                }
                column
            })
            .collect();
        for attribute in 0..weight.rows() {
            for (value, column) in gradient.row_mut(attribute).iter_mut().zip(&columns) {
                *value += column[attribute];
            }
        }
    }
}

/// Everything that the bounds of all units share.
struct Problem<'a> {
    network: &'a Network<'a>,
    limits: &'a Limits,
    clean: &'a Matrix,
    nodes: &'a [u32],
    neighbourhoods: Neighbourhoods,
    /// A row for each unit.
    weights: Matrix,
    /// For each attribute the places in level 0 of the nodes that have it.
    places_with: &'a Pattern,
    /// Most flips at each node of level 0 that can be of use.
    capacities: Vec<usize>,
    largest_capacity: usize,
}

impl<'a> Problem<'a> {
    fn new(
        network: &'a Network<'a>,
        limits: &'a Limits,
        region: &'a Region,
        places_with: &'a Pattern,
        clean: &'a Matrix,
    ) -> Self {
        let nodes = region.level(0).nodes();
        let capacity = |&node: &u32| limits.local(NodeId(node)).min(limits.global());
        let capacities: Vec<usize> = nodes.iter().map(capacity).collect();
        Self {
            network,
            limits,
            clean,
            nodes,
            neighbourhoods: Neighbourhoods::new(network, region),
            weights: network.attribute_weight().transposed(),
            places_with,
            largest_capacity: capacities.iter().copied().max().unwrap_or(0),
            capacities,
        }
    }

    /// How far `unit` can be moved.
    fn moves(&self, unit: usize) -> UnitMoves {
        let mut moves = UnitMoves::default();
        Column::new(self, unit).select(|_, _| (), |up, down, _| moves.push(up, down));
        moves
    }

    /// How far `unit` can be moved, and the flips that do so, up and down.
    fn attained_moves(&self, unit: usize) -> (UnitMoves, [Lists<AttainedFlip>; 2]) {
        let mut moves = UnitMoves::default();
        let mut flips = [Lists::default(), Lists::default()];
        Column::new(self, unit).select(
            |entry, attribute| (entry, attribute),
            |up, down, selected| {
                moves.push(up, down);
                for (flips, selected) in flips.iter_mut().zip(selected) {
                    flips.push(selected.iter().map(|&(_, flip)| flip));
                }
            },
        );
        (moves, flips)
    }
}

/// For each node of level 1 its neighbours, as places in level 0, by decreasing weight.
#[derive(Debug)]
struct Neighbourhoods {
    offsets: Vec<usize>,
    entries: Vec<(u32, f64)>,
}

impl Neighbourhoods {
    fn new(network: &Network, region: &Region) -> Self {
        let mut offsets = vec![0];
        let mut entries: Vec<(u32, f64)> = Vec::new();
        for &m in region.level(1).nodes() {
            let (nodes, weights) = network.propagation().row(m as usize);
            let start = entries.len();
            entries.extend(nodes.iter().zip(weights).map(|(&n, &p)| (region.level(0).place(n) as u32, p)));
            entries[start..].sort_by(|a, b| b.1.total_cmp(&a.1));
            offsets.push(entries.len());
        }
        Self { offsets, entries }
    }

    fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// The largest weight of a node's neighbours.
    fn largest(&self, place: usize) -> f64 {
        self.entries[self.range(place)].first().map_or(0.0, |&(_, weight)| weight)
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

/// How far one unit can be moved, for each node of level 1.
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

/// The weights of one unit, and which of them are gains at which node of level 0.
struct Column<'a> {
    problem: &'a Problem<'a>,
    unit: usize,
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
    fn new(problem: &'a Problem<'a>, unit: usize) -> Self {
        let weights = problem.weights.row(unit);
        let top = largest_weights(problem.limits, weights, problem.largest_capacity + SPARE);
        let words = top.len().div_ceil(64);
        let mut positive = vec![0; words];
        let mut has = vec![0; problem.nodes.len() * words];
        for (place, &(_, attribute)) in top.iter().enumerate() {
            let (word, bit) = (place / 64, place % 64);
            positive[word] |= u64::from(weights[attribute as usize] > 0.0) << bit;
            for &node in problem.places_with.row(attribute as usize) {
                has[node as usize * words + word] |= 1 << bit;
            }
        }
        Self { problem, unit, weights, top, positive, has, rest: [None, None] }
    }

    /// Calls `visit` for each node of level 1 how far the unit can be moved up and down, and the flips that do so; `item`
    /// makes what it hears of a flip from the neighbour's entry and the attribute. Where the unit is stable by a wide
    /// margin and nothing but that matters, it hears of larger moves and no flips.
    fn select<T: Copy>(&mut self, item: impl Fn(u32, u32) -> T, mut visit: impl FnMut(f64, f64, [&[(f64, T)]; 2])) {
        let Problem { neighbourhoods, limits, clean, network, .. } = self.problem;
        // Lines depend on nothing but the sign of a stable unit, deeper bounds on its bounds.
        let only_signs_matter = network.model().hidden_layers() == 1;
        let (mut up, mut down) = (Selection::new(limits.global()), Selection::new(limits.global()));
        for place in 0..neighbourhoods.len() {
            let z = clean.get(place, self.unit);
            let most = limits.global() as f64 * neighbourhoods.largest(place) * self.largest();
            if only_signs_matter && (z >= most || z <= -most) {
                visit(most, most, [&[], &[]]);
                continue;
            }
            self.select_at(place, Way::Up, &item, &mut up);
            self.select_at(place, Way::Down, &item, &mut down);
            visit(up.total(), down.total(), [up.best(), down.best()]);
        }
    }

    /// The size of the largest weight.
    fn largest(&self) -> f64 {
        self.top.first().map_or(0.0, |&(size, _)| size)
    }

    fn select_at<T: Copy>(
        &mut self,
        place: usize,
        way: Way,
        item: impl Fn(u32, u32) -> T,
        selection: &mut Selection<T>,
    ) {
        let neighbourhoods = &self.problem.neighbourhoods;
        let largest = self.largest();
        selection.clear();
        for entry in neighbourhoods.range(place) {
            let (n, weight) = neighbourhoods.entries[entry];
            if weight * largest <= selection.threshold() {
                break;
            }
            self.offer(way, n as usize, |size, attribute| {
                let gain = weight * size;
                let enters = gain > selection.threshold();
                if enters {
                    selection.offer(gain, item(entry as u32, attribute));
                }
                enters
            });
        }
        selection.settle();
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
        let limits = self.problem.limits;
        let additions = if limits.additions() { rising & !has } else { 0 };
        let deletions = if limits.deletions() { !rising & has } else { 0 };
        additions | deletions
    }

    /// Goes on where the largest weights end.
    #[cold]
    fn offer_rest(&mut self, way: Way, place: usize, left: usize, mut offer: impl FnMut(f64, u32) -> bool) {
        let limits = self.problem.limits;
        let row = self.attributes(place);
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

    fn attributes(&self, place: usize) -> &'a [u32] {
        let Problem { network, nodes, .. } = self.problem;
        network.graph().attributes().row(nodes[place] as usize)
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

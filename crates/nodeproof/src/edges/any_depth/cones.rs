//! What each deletion moves the units by, as intervals, layer by layer (Lemma 63 of `docs/maths.md`).

use std::collections::HashMap;

use super::super::Problem;
use super::base::{Base, Part, parts};
use super::carry::Carrying;
use super::moves::{Gather, Moves, Span, Together};
use super::region::{NOWHERE, Region};
use super::rounding::Magnitude;
use super::senders::Senders;
use super::unit::Unit;

/// A candidate that sets of a subproblem may have.
#[derive(Debug, Clone)]
pub(super) struct Listed {
    /// Its place among the candidates.
    pub(super) candidate: usize,
    pub(super) ends: [u32; 2],
    /// How many of its edges may be deleted.
    pub(super) count: usize,
}

/// What a unit's activation exceeds its tangent by, because of one deletion.
#[derive(Debug, Clone, Copy)]
pub(super) struct Excess {
    pub(super) layer: u32,
    /// `place · units + unit`.
    pub(super) unit: u32,
    pub(super) by: f64,
}

/// The numbers of an end of a deletion, whatever others are made, too.
#[derive(Debug, Clone, Default)]
pub(super) struct End {
    /// Of each layer that it has units in: activations, but for the growth of its scale.
    pub(super) h: Vec<Option<Span>>,
    /// Of each layer without a scale: its parts, but for their growth.
    pub(super) gathered: Vec<Option<Span>>,
}

/// The moves of all listed deletions.
#[derive(Debug)]
pub(super) struct Cones {
    /// Of each hidden layer, for each deletion: how activations move. Where a layer reads no other, what all deletions at a node have in common
    /// is after that, for each of the senders; it is no part of the rows that are listed for a deletion itself. If sets have more than one, this is forgotten in the end.
    pub(super) h: Vec<Vec<Moves>>,
    pub(super) excesses: Vec<Vec<Excess>>,
    pub(super) senders: Senders,
    pub(super) ends: Vec<[End; 2]>,
    /// Most deletions at each node.
    pub(super) most: Vec<usize>,
    /// How many numbers it has, about.
    pub(super) size: usize,
}

impl Cones {
    fn numbers(&self) -> usize {
        let of_moves = self.h.iter().flatten().map(Moves::size);
        let of_excesses = self.excesses.iter().map(|excesses| 2 * excesses.len());
        let of_end = |end: &End| -> usize {
            end.h.iter().chain(&end.gathered).flatten().map(|span| span.centre.len() + span.radius.len() + 8).sum()
        };
        of_moves.chain(of_excesses).chain(self.ends.iter().flatten().map(of_end)).sum()
    }
}

/// More numbers than this are not kept.
const MOST: usize = 1 << 27;

/// What moves are computed from.
#[derive(Debug)]
pub(super) struct Making<'m> {
    pub(super) problem: &'m Problem<'m>,
    pub(super) region: &'m Region,
    pub(super) base: &'m Base,
    pub(super) magnitude: &'m Magnitude<'m>,
    pub(super) listed: &'m [Listed],
    /// Most deletions of a set.
    pub(super) left: usize,
    /// Most deletions at each node.
    pub(super) most: &'m [usize],
}

impl Making<'_> {
    /// The moves; `None` if they are too many to keep.
    pub(super) fn cones(&self) -> Option<Cones> {
        let mut cones = self.all_moves()?;
        if self.left > 1 {
            cones.h.clear();
        }
        cones.size = cones.numbers();
        Some(cones)
    }

    /// The same with the moves of all layers.
    pub(super) fn all_moves(&self) -> Option<Cones> {
        let layers = self.problem.network.layers();
        let last = layers.len() - 1;
        let end = || End { h: vec![None; layers.len()], gathered: vec![None; layers.len()] };
        let ends = self.listed.iter().map(|_| [end(), end()]).collect();
        let senders = Senders::new(self.base, self.listed);
        let excesses = vec![Vec::new(); senders.counts.len()];
        let mut cones = Cones { h: Vec::new(), excesses, senders, ends, most: self.most.to_vec(), size: 0 };
        let mut size = 0;
        for (i, layer) in layers.iter().enumerate() {
            let (parts, rows) = (parts(self.problem, i), self.region.rows[i].len());
            let is_divided = self.base.scales[i].is_none() && parts.iter().any(Option::is_some);
            if i == last && !is_divided {
                break;
            }
            let width = parts.len() * layer.units();
            let mut carrying = Carrying { gather: Gather::new(rows, width), made: HashMap::new() };
            let mut carried = Vec::new();
            for place in 0..if self.is_first(i) { 0 } else { cones.senders.nodes.len() } {
                let moves = self.carried(&cones, i, self.listed.len() + place, &parts, &mut carrying);
                size += moves.size();
                carried.push(moves);
            }
            let mut gathered = Vec::with_capacity(cones.senders.counts.len());
            for f in 0..if self.is_first(i) { cones.senders.counts.len() } else { self.listed.len() } {
                let moves = self.gathered(&cones, i, f, &parts, &mut carrying, &carried);
                size += moves.size();
                if size + rows * width * self.left > MOST {
                    return None;
                }
                gathered.push(moves);
            }
            if is_divided {
                let together = self.together(&cones, &gathered, i, width);
                self.add_ends(&mut cones, i, &gathered, &together);
            }
            if i < last {
                self.activate(&mut cones, i, &gathered, &parts);
            }
        }
        Some(cones)
    }

    fn together(&self, cones: &Cones, moves: &[Moves], i: usize, width: usize) -> Together {
        let count = |f: usize, row: u32| cones.senders.count(f, self.region.rows[i][row as usize]);
        Together::of(moves, count, self.left, self.region.rows[i].len(), width)
    }

    /// The places of a deletion's ends in a layer, with which end it is.
    pub(super) fn places(&self, i: usize, f: usize) -> impl Iterator<Item = (usize, u32)> {
        let place = move |(e, n): (usize, u32)| {
            let place = if n == NOWHERE { NOWHERE } else { self.region.places[i][n as usize] };
            (place != NOWHERE).then_some((e, place))
        };
        let ends = self.listed.get(f).map_or([NOWHERE; 2], |listed| listed.ends);
        ends.into_iter().enumerate().filter_map(place)
    }

    /// Notes what the ends of deletions gather at most.
    fn add_ends(&self, cones: &mut Cones, i: usize, gathered: &[Moves], together: &Together) {
        for (f, moves) in gathered.iter().enumerate() {
            for (e, place) in self.places(i, f) {
                let (base, sizes) =
                    (self.base.parts[i].row(place as usize), self.magnitude.sums[i].row(place as usize));
                let span = together.span(place, base, moves.of(place), self.magnitude.relative, sizes);
                cones.ends[f][e].gathered[i] = Some(span);
            }
        }
    }

    /// The moves of activations, the excesses, and where activations are at the ends.
    fn activate(&self, cones: &mut Cones, i: usize, gathered: &[Moves], parts: &[Part]) {
        let layer = &self.problem.network.layers()[i];
        let mut gather = Gather::new(self.region.rows[i].len(), layer.units());
        let moves =
            gathered.iter().enumerate().map(|(f, gathered)| self.summed(cones, i, f, gathered, parts, &mut gather));
        let mut moves: Vec<Moves> = moves.collect();
        let together = self.together(cones, &moves, i, layer.units());
        let (error, sums) = (self.magnitude.relative, &self.magnitude.sums[i]);
        let mut spans = Vec::new();
        for (f, moves) in moves.iter_mut().enumerate() {
            for (e, place) in self.places(i, f) {
                let z = self.base.z[i].row(place as usize);
                let span = together.span(place, z, moves.of(place), error, sums.row(place as usize));
                spans.push((f, e, place, span));
            }
            self.bend(&mut cones.excesses[f], i, moves, &together);
        }
        let moves: Vec<Moves> = moves.into_iter().map(Moves::without_zeros).collect();
        let together = self.together(cones, &moves, i, layer.units());
        let activation = layer.activation();
        for (f, e, place, z) in spans {
            let base = self.base.h[i].row(place as usize);
            let mut span = together.span(place, base, moves[f].of(place), error, sums.row(place as usize));
            span.within(|j| activation.of(z.centre[j] - z.radius[j]), |j| activation.of(z.centre[j] + z.radius[j]));
            cones.ends[f][e].h[i] = Some(span);
        }
        cones.h.push(moves);
    }

    /// From moves of pre-activations to those of activations.
    fn bend(&self, excesses: &mut Vec<Excess>, i: usize, moves: &mut Moves, together: &Together) {
        let layer = &self.problem.network.layers()[i];
        let (units, activation, left) = (layer.units(), layer.activation(), self.left as f64);
        let (below, error) = (activation.slope(), self.magnitude.relative);
        for (row, centre, radius) in moves.iter_mut() {
            let (z, sizes) = (self.base.z[i].row(row as usize), self.magnitude.sums[i].row(row as usize));
            for j in 0..units {
                let (low, high) = (centre[j] - radius[j], centre[j] + radius[j]);
                let unit = Unit { z: z[j], error: error * sizes[j], left, activation, most: together.most(row, j) };
                let (excess, low, high) = unit.bend(low, high);
                if excess > 0.0 {
                    excesses.push(Excess { layer: i as u32, unit: row * units as u32 + j as u32, by: excess });
                }
                (centre[j], radius[j]) = ((high + low) / 2.0, (high - low) / 2.0 + error * (high.abs() + low.abs()));
                if below == 0.0 && high == 0.0 && low == 0.0 {
                    (centre[j], radius[j]) = (0.0, 0.0);
                }
            }
        }
    }
}

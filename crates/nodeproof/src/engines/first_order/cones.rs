//! What one flip can do to the units above it, beyond what is linear.
//!
//! Under any r flips a pre-activation stays within `z + [Σ_f L_f, Σ_f U_f]` (Lemma 38 of `docs/maths.md`), and the same of the activation
//! with L' and U':
//!
//! ```text
//! activation    z ≤ 0:   U' = β U + (1 − β) ς relu(U − θ),   L' = β L
//!               z > 0:   U' = U + (1 − β) ς relu(−U − θ),    L' = L
//!               not sure U' = β U + (1 − β) relu(U),         L' = β L − (1 − β) relu(−L)
//! next layer    C = P C' W,   R = |P| R' |W|                 with centres C and radii R: U = C + R, L = C − R
//! ```
//!
//! with β the slope of the activation below 0, and θ and ς the unit's threshold and share (Lemma 36). The *excess* of the flip at a unit
//! is `(1 − β) ς relu(U − θ)` where z ≤ 0, and `(1 − β) ς relu(−L − θ)` where z > 0. Units with a share of 0 stay on their side, and are
//! linear.

use std::collections::HashMap;
use std::ops::Range;

use super::base::Base;
use super::target::{Effect, Readers, Target};
use crate::dense::{add_scaled, relu};
use crate::kernels::{Loops, add_activated_rows, add_rows, vectorised_loops};
use crate::model::{Activation, Source, Weight};
use crate::slice::SlicedFlip;

/// Excesses of flips at a base point, computed once each.
#[derive(Default)]
pub(super) struct Cones {
    known: HashMap<SlicedFlip, Cone>,
    /// Units, numbered through all layers, and excesses.
    entries: Vec<(u32, f64)>,
    /// Whether moves, too, are kept, and where: units that can get beyond 0, and what they are moved by, at least and at most.
    pub(super) keep_moves: bool,
    moves: Vec<(u32, (f64, f64))>,
    scratch: Scratch,
}

/// Where the entries and the moves of a flip are.
struct Cone {
    entries: Range<usize>,
    moves: Range<usize>,
}

#[derive(Default)]
struct Scratch {
    layers: Vec<Moves>,
    sums: Sums,
}

/// `P C'` and `|P| R'` of a term, a row for each node that reads it.
#[derive(Default)]
pub(super) struct Sums {
    pub(super) centre: Vec<f64>,
    pub(super) radius: Vec<f64>,
}

/// Moves of the nodes of one level.
#[derive(Default, Clone)]
pub(super) struct Moves {
    /// For each node of the level 1 + its place among those that are moved, or 0.
    place: Vec<u32>,
    pub(super) moved: Vec<u32>,
    /// C and R, a row for each node that is moved.
    pub(super) centre: Vec<f64>,
    pub(super) radius: Vec<f64>,
    /// Ends of the units of one node that bend.
    bent: Vec<(f64, f64)>,
}

impl Moves {
    fn reset(&mut self, nodes: usize) {
        if self.place.len() != nodes {
            self.place.clear();
            self.place.resize(nodes, 0);
        } else {
            self.moved.iter().for_each(|&row| self.place[row as usize] = 0);
        }
        self.moved.clear();
        self.centre.clear();
        self.radius.clear();
    }

    /// The place of a node that is moved among those that are.
    #[inline]
    pub(super) fn place_of(&self, row: u32) -> usize {
        self.place[row as usize] as usize - 1
    }

    /// The place of a node among those that are moved, which it is from now on.
    #[inline]
    fn touch(&mut self, row: u32) -> usize {
        let place = &mut self.place[row as usize];
        if *place == 0 {
            self.moved.push(row);
            *place = self.moved.len() as u32;
        }
        *place as usize - 1
    }
}

impl Cones {
    /// Forgets all flips: the base point is another one.
    pub(super) fn clear(&mut self) {
        self.known.clear();
        self.entries.clear();
        self.moves.clear();
    }

    /// Takes what is known of the flips of a base point, to be put back when that is looked at again.
    pub(super) fn take(&mut self) -> Self {
        let scratch = std::mem::take(&mut self.scratch);
        let keep_moves = self.keep_moves;
        std::mem::replace(self, Self { scratch, keep_moves, ..Self::default() })
    }

    /// Puts back what was taken.
    pub(super) fn put_back(&mut self, taken: Self) {
        let scratch = std::mem::take(&mut self.scratch);
        *self = Self { scratch, ..taken };
    }

    /// Bytes that are kept.
    pub(super) fn bytes(&self) -> usize {
        let of_flips = self.known.len() * size_of::<(SlicedFlip, Cone)>();
        of_flips + size_of_val(&self.entries[..]) + size_of_val(&self.moves[..])
    }

    /// The units at which a flip has an excess.
    pub(super) fn of(&mut self, target: &Target, base: &Base, flip: SlicedFlip) -> &[(u32, f64)] {
        let range = self.cone(target, base, flip).entries.clone();
        &self.entries[range]
    }

    /// The units that a flip moves and that can get beyond 0, and what it moves them by, at least and at most. Moves are kept from now on.
    pub(super) fn moves(&mut self, target: &Target, base: &Base, flip: SlicedFlip) -> &[(u32, (f64, f64))] {
        if !self.keep_moves {
            self.clear();
            self.keep_moves = true;
        }
        let range = self.cone(target, base, flip).moves.clone();
        &self.moves[range]
    }

    fn cone(&mut self, target: &Target, base: &Base, flip: SlicedFlip) -> &Cone {
        let Self { known, entries, keep_moves, moves, scratch } = self;
        known.entry(flip).or_insert_with(|| {
            let from = (entries.len(), moves.len());
            scratch.walk(target, base, flip, |unit, by, excess| {
                if excess > 0.0 {
                    entries.push((unit, excess));
                }
                if *keep_moves {
                    moves.push((unit, by));
                }
            });
            Cone { entries: from.0..entries.len(), moves: from.1..moves.len() }
        })
    }
}

impl Scratch {
    /// Carries a flip through the layers. `visit` hears of the units that it moves and that can get beyond 0.
    fn walk(&mut self, target: &Target, base: &Base, flip: SlicedFlip, mut visit: impl FnMut(u32, (f64, f64), f64)) {
        let layers = target.shared.network.layers();
        self.layers.resize_with(target.hidden(), Moves::default);
        let mut buffer = Vec::new();
        let effect = target.effect(base, flip, &mut buffer);
        for (layer, of) in layers.iter().enumerate().take(target.hidden()) {
            arrive(target, layer, &effect, &mut self.layers, &mut self.sums);
            let (moves, units) = (&mut self.layers[layer], of.units());
            let activation = of.activation();
            if activation != Activation::None {
                bend(moves, base, layer, units, activation, |row, j, moves, excess| {
                    visit((target.first_unit[layer] + row as usize * units + j) as u32, moves, excess);
                });
            }
        }
    }
}

/// Moves of a layer before its activation, given those of the layers below after theirs.
pub(super) fn arrive(target: &Target, layer: usize, effect: &Effect, layers: &mut [Moves], sums: &mut Sums) {
    let (below, above) = layers.split_at_mut(layer);
    let moves = &mut above[0];
    moves.reset(target.slice.level(layer + 1).len());
    touch_all(target, layer, effect.position, below, moves);
    let size = target.shared.network.layers()[layer].units() * moves.moved.len();
    moves.centre.resize(size, 0.0);
    moves.radius.resize(size, 0.0);
    add_effect(target, layer, effect, moves);
    add_layers(target, layer, below, moves, sums);
}

/// Finds the nodes of a layer that are moved.
fn touch_all(target: &Target, layer: usize, position: u32, below: &[Moves], moves: &mut Moves) {
    for (k, term) in target.shared.network.layers()[layer].terms().iter().enumerate() {
        let readers = &target.readers[layer][k];
        match term.source() {
            Source::Ones => {}
            Source::Attributes => readers.of(position as usize).iter().for_each(|&(m, _)| _ = moves.touch(m)),
            Source::Layer(source) => {
                let rows = below[source].moved.iter().flat_map(|&row| readers.of(row as usize));
                rows.for_each(|&(m, _)| _ = moves.touch(m));
            }
        }
    }
}

/// Adds what the flip itself does: `P_mn σ W_d`.
fn add_effect(target: &Target, layer: usize, effect: &Effect, moves: &mut Moves) {
    let units = target.shared.network.layers()[layer].units();
    target.each_reader(layer, effect, |m, p, weight| {
        let place = moves.place_of(m);
        add_scaled(&mut moves.centre[place * units..][..units], p, weight);
    });
}

/// Adds what it does through other layers.
fn add_layers(target: &Target, layer: usize, below: &[Moves], moves: &mut Moves, sums: &mut Sums) {
    let network = target.shared.network;
    let units = network.layers()[layer].units();
    for (k, term) in network.layers()[layer].terms().iter().enumerate() {
        let Source::Layer(source) = term.source() else { continue };
        let width = network.layers()[source].units();
        gather(target, (layer, k), width, &below[source], moves, sums);
        let Sums { centre: centres, radius: radii } = &*sums;
        for place in 0..moves.moved.len() {
            let (from, to) = (place * width..(place + 1) * width, place * units..(place + 1) * units);
            let sums = [&centres[from.clone()], &radii[from]];
            let out = [&mut moves.centre[to.clone()], &mut moves.radius[to]];
            vectorised_loops(AddProduct { weight: term.weight(), sums, out });
        }
    }
}

/// `P C'` and `|P| R'` of a term that reads a layer with moves `below`, a row for each node of `moves`.
pub(super) fn gather(
    target: &Target,
    (layer, k): (usize, usize),
    width: usize,
    below: &Moves,
    moves: &Moves,
    sums: &mut Sums,
) {
    for sums in [&mut sums.centre, &mut sums.radius] {
        sums.clear();
        sums.resize(moves.moved.len() * width, 0.0);
    }
    vectorised_loops(Gather { readers: &target.readers[layer][k], width, below, moves, sums });
}

/// The loops of [`gather`].
struct Gather<'g> {
    readers: &'g Readers,
    width: usize,
    below: &'g Moves,
    moves: &'g Moves,
    sums: &'g mut Sums,
}

impl Loops for Gather<'_> {
    #[inline(always)]
    fn run(self) {
        let Self { readers, width, below, moves, sums } = self;
        for (place, &row) in below.moved.iter().enumerate() {
            let range = place * width..(place + 1) * width;
            let (centre, radius) = (&below.centre[range.clone()], &below.radius[range]);
            for &(m, p) in readers.of(row as usize) {
                let at = moves.place_of(m) * width..;
                add_scaled(&mut sums.centre[at.clone()][..width], p, centre);
                add_scaled(&mut sums.radius[at][..width], p.abs(), radius);
            }
        }
    }
}

/// `C += C' W`, `R += R' |W|`.
struct AddProduct<'p> {
    weight: &'p Weight,
    sums: [&'p [f64]; 2],
    out: [&'p mut [f64]; 2],
}

impl<'p> Loops for AddProduct<'p> {
    #[inline(always)]
    fn run(self) {
        let ([centres, radii], [centre, radius]) = (self.sums, self.out);
        match self.weight {
            Weight::Scalar(w) => {
                add_scaled(centre, *w, centres);
                add_scaled(radius, w.abs(), radii);
            }
            Weight::Dense(weight) => {
                let rows = |of: &'p [f64]| of.iter().enumerate().map(move |(input, &x)| (x, weight.row(input)));
                add_rows(centre, rows(centres));
                // Few units bend, so that few have a radius.
                if radii.iter().any(|&radius| radius != 0.0) {
                    add_activated_rows(radius, rows(radii).filter(|(radius, _)| *radius != 0.0), f64::abs);
                }
            }
        }
    }
}

/// Through the activation; `visit` hears for each unit that can get beyond 0 of the least and the largest move, and of the excess.
pub(super) fn bend(
    moves: &mut Moves,
    base: &Base,
    layer: usize,
    units: usize,
    activation: Activation,
    mut visit: impl FnMut(u32, usize, (f64, f64), f64),
) {
    let Moves { moved, centre, radius, bent, .. } = moves;
    let slope = activation.slope();
    let rest = 1.0 - slope;
    for (place, &row) in moved.iter().enumerate() {
        let at = place * units..(place + 1) * units;
        let (centre, radius) = (&mut centre[at.clone()], &mut radius[at]);
        let of_row = base.units[layer].row(row as usize);
        bent.clear();
        for &j in base.open[layer].of(row as usize) {
            let (j, unit) = (j as usize, of_row[j as usize]);
            let (lower, upper) = (centre[j] - radius[j], centre[j] + radius[j]);
            let excess = rest * unit.excess(lower, upper);
            bent.push(if !unit.is_sure {
                (slope * lower - rest * relu(-lower), slope * upper + rest * relu(upper))
            } else if unit.on {
                (lower, upper + rest * unit.share * relu(-upper - unit.threshold))
            } else {
                (slope * lower, slope * upper + excess)
            });
            visit(row, j, (lower, upper), excess);
        }
        vectorised_loops(Scale { by: base.tangents[layer].row(row as usize), values: [centre, radius] });
        for (&j, &(lower, upper)) in base.open[layer].of(row as usize).iter().zip(&*bent) {
            (centre[j as usize], radius[j as usize]) = (0.5 * (upper + lower), 0.5 * (upper - lower));
        }
    }
}

/// Multiplies each of two rows by a third.
struct Scale<'s> {
    by: &'s [f64],
    values: [&'s mut [f64]; 2],
}

impl Loops for Scale<'_> {
    #[inline(always)]
    fn run(self) {
        for values in self.values {
            values.iter_mut().zip(self.by).for_each(|(value, by)| *value *= by);
        }
    }
}

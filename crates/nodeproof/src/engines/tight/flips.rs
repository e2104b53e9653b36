//! Flips around one target, listed one by one with the units they move.

use super::surroundings::Surroundings;
use crate::certificate::Obstacle;
use crate::engines::patience::Patience;
use crate::slice::SlicedFlip;

/// Flips, each with the units it moves. Those of a node stand together, in the order of falling potentials.
#[derive(Debug, Default)]
pub(crate) struct Flips {
    pub(crate) flips: Vec<SlicedFlip>,
    /// An upper bound on the gain of each, whatever the additive bound.
    pub(crate) potentials: Vec<f64>,
    offsets: Vec<usize>,
    entries: Vec<(u32, f64)>,
    units: usize,
    /// For each unit its moves up and its moves down.
    by_unit: Vec<[Moves; 2]>,
}

/// Moves of one unit in one direction, with the flips that make them.
#[derive(Debug, Default, Clone)]
pub(crate) struct Moves {
    /// The largest, largest first.
    pub(crate) largest: Vec<(f64, u32)>,
    /// The largest of the others, 0 if there are none.
    pub(crate) next: f64,
}

impl Moves {
    /// Sorts the moves and keeps about `enough`.
    fn sort(&mut self, enough: usize) {
        let falling = |a: &(f64, u32), b: &(f64, u32)| b.0.abs().total_cmp(&a.0.abs()).then(a.1.cmp(&b.1));
        if self.largest.len() > enough {
            let (_, next, _) = self.largest.select_nth_unstable_by(enough, falling);
            self.next = next.0;
            self.largest.truncate(enough);
        }
        self.largest.sort_unstable_by(falling);
    }
}

impl Flips {
    /// `potential` gives that of a flip, `matters` whether moves of a unit are kept.
    ///
    /// # Errors
    /// If a limit is reached before all moves are listed.
    pub(crate) fn new(
        around: &Surroundings,
        flips: Vec<SlicedFlip>,
        potential: impl Fn(SlicedFlip) -> f64,
        matters: impl Fn(usize) -> bool,
        patience: Patience,
    ) -> Result<Self, Obstacle> {
        let mut flips: Vec<(f64, SlicedFlip)> = flips.into_iter().map(|flip| (potential(flip), flip)).collect();
        flips.sort_unstable_by(|a, b| a.1.0.cmp(&b.1.0).then(b.0.total_cmp(&a.0)).then(a.1.cmp(&b.1)));
        let weight = around.shared.network.attribute_weight();
        let mut all = Self { offsets: vec![0], units: around.units(), ..Self::default() };
        for &(_, flip) in &flips {
            if let Some(obstacle) = patience.obstacle(all.bytes()) {
                return Err(obstacle);
            }
            let sign = around.sign(flip).unwrap_or(0.0);
            for &(m, p) in around.aggregators.of(flip.0) {
                for (j, &w) in weight.row(flip.1 as usize).iter().enumerate() {
                    let (unit, a) = (m as usize * around.width + j, p * (sign * w));
                    if a != 0.0 && matters(unit) {
                        all.entries.push((unit as u32, a));
                    }
                }
            }
            all.offsets.push(all.entries.len());
        }
        (all.potentials, all.flips) = flips.into_iter().unzip();
        Ok(all)
    }

    /// Bytes of the moves, which stand in two lists.
    pub(crate) fn bytes(&self) -> usize {
        2 * size_of_val(&self.entries[..])
    }

    /// Some of the flips alone, given in their order.
    pub(crate) fn restricted(&self, to: &[u32], most: usize) -> Self {
        let mut all = Self { offsets: vec![0], units: self.units, ..Self::default() };
        for &flip in to {
            all.flips.push(self.flips[flip as usize]);
            all.potentials.push(self.potentials[flip as usize]);
            all.entries.extend_from_slice(self.moves(flip));
            all.offsets.push(all.entries.len());
        }
        all.sort_by_unit(most);
        all
    }

    /// Makes the lists of each unit's moves, which bounds of subproblems need, of those that matter with `most` flips.
    pub(crate) fn sort_by_unit(&mut self, most: usize) {
        let mut lists: Vec<[Moves; 2]> = vec![Default::default(); self.units];
        for flip in 0..self.len() as u32 {
            for &(unit, a) in self.moves(flip) {
                lists[unit as usize][usize::from(a < 0.0)].largest.push((a, flip));
            }
        }
        lists.iter_mut().flatten().for_each(|moves| moves.sort(4 * most + 32));
        self.by_unit = lists;
    }

    pub(crate) fn len(&self) -> usize {
        self.flips.len()
    }

    /// The units that a flip moves, and how far.
    #[inline]
    pub(crate) fn moves(&self, flip: u32) -> &[(u32, f64)] {
        &self.entries[self.offsets[flip as usize]..self.offsets[flip as usize + 1]]
    }

    /// Moves of a unit up (0) or down (1).
    pub(crate) fn of_unit(&self, unit: usize, way: usize) -> &Moves {
        &self.by_unit[unit][way]
    }
}

//! The best attack so far, and what tries others.

use std::cmp::Ordering;

use super::attack::{Attack, AttackMargin};
use crate::certificate::Witness;
use crate::exact::compare_logits;
use crate::flip::Flip;
use crate::ids::ClassId;
use crate::prepare::Shard;
use crate::slice::{Slice, SlicedFlip};

/// The flips with the smallest margin found so far.
pub(crate) struct BestAttack {
    class: ClassId,
    /// The margin, rounded up.
    margin: f64,
    flips: Vec<SlicedFlip>,
    /// Whether the margin is not positive in exact arithmetic, whatever rounding leaves of it.
    settled: bool,
}

impl BestAttack {
    pub(crate) fn new(clean: AttackMargin) -> Self {
        Self { class: clean.class, margin: clean.margin.upper(), flips: Vec::new(), settled: false }
    }

    /// The smallest margin found, rounded up.
    pub(crate) fn margin(&self) -> f64 {
        self.margin
    }

    /// Whether the flips are a witness.
    pub(crate) fn succeeds(&self) -> bool {
        self.margin < 0.0 || self.settled
    }

    /// Whether the class is not even the predicted one without any flip.
    pub(crate) fn succeeds_without_flips(&self) -> bool {
        self.flips.is_empty() && self.succeeds()
    }

    /// Keeps `flips` if they lead to a smaller margin.
    pub(crate) fn improve(&mut self, found: AttackMargin, flips: impl Iterator<Item = SlicedFlip>) {
        if found.margin.upper() < self.margin && !self.settled {
            self.class = found.class;
            self.margin = found.margin.upper();
            self.flips.clear();
            self.flips.extend(flips);
        }
    }

    /// Keeps `flips`, with which the margin over `class` is not positive in exact arithmetic.
    pub(crate) fn settle(&mut self, class: ClassId, flips: Vec<SlicedFlip>) {
        if !self.succeeds() {
            *self = Self { class, margin: 0.0, flips, settled: true };
        }
    }

    /// The flips as a witness.
    pub(crate) fn witness(&self, slice: &Slice, shared: &Shard) -> Witness {
        let flips = self.flips.iter().map(|&flip| shared.flip(slice, flip));
        // A real value may have been brought back to where it was.
        let mut flips: Vec<Flip> = flips.filter(|flip| flip.is_of(shared.network.graph())).collect();
        flips.sort_unstable();
        Witness::new(flips, self.class, self.margin)
    }
}

/// Tries flips on the network itself, and remembers the best.
pub(crate) struct Attacks<'b, 'a> {
    pub(crate) shared: &'a Shard<'a>,
    pub(crate) slice: &'b Slice,
    pub(crate) y: ClassId,
    pub(crate) attack: &'b mut Attack<'a>,
    pub(crate) best: &'b mut BestAttack,
}

impl Attacks<'_, '_> {
    /// Tries flips; true if they are a witness.
    pub(super) fn attempt(&mut self, flips: impl Iterator<Item = SlicedFlip> + Clone) -> bool {
        let found = self.attack.margin(self.slice, self.y, flips.clone());
        self.best.improve(found, flips);
        self.best.succeeds()
    }

    /// The margin of y over k under the best flips so far, as computed.
    pub(super) fn margin_under_best(&mut self, k: ClassId) -> f64 {
        let _ = self.attack.margin(self.slice, self.y, self.best.flips.iter().copied());
        self.attack.margin_of(self.y, k)
    }

    /// Whether the margin of y over k under flips is positive, in exact arithmetic; otherwise remembers them, without
    /// those that it does not take.
    pub(super) fn holds(&mut self, k: ClassId, flips: impl Iterator<Item = SlicedFlip>) -> bool {
        let mut flips: Vec<SlicedFlip> = flips.collect();
        if self.exactly(k, &flips) == Ordering::Greater {
            return true;
        }
        for i in (0..flips.len()).rev() {
            let flip = flips.remove(i);
            if self.exactly(k, &flips) == Ordering::Greater {
                flips.insert(i, flip);
            }
        }
        // What is left may do more than they all do together.
        if !self.attempt(flips.iter().copied()) {
            self.best.settle(k, flips);
        }
        false
    }

    /// How the margin of y over k under flips compares with 0.
    fn exactly(&self, k: ClassId, flips: &[SlicedFlip]) -> Ordering {
        let flips: Vec<Flip> = flips.iter().map(|&flip| self.shared.flip(self.slice, flip)).collect();
        compare_logits(self.shared.network, self.slice.target(), &flips, self.y, k)
    }
}

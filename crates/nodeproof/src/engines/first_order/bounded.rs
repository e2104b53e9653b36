//! A bound over sets of flips, and what it says about the flips of a counterexample (Lemmas 22 and 42 of `docs/maths.md`).

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::base::Base;
use super::listing::{Listing, Rest, Scores};
use super::subproblem::Possible;
use super::target::Target;
use crate::certificate::Obstacle;
use crate::slice::{SlicedFlip, reversed};

/// A bound, and the flips behind it.
#[derive(Debug, Clone, Default)]
pub(super) struct Bounded {
    /// A lower bound of the margin, up to `error`; −∞ if nothing is known.
    pub(super) value: f64,
    pub(super) error: f64,
    pub(super) constant: f64,
    /// Flips with their gains, the largest first; all others gain at most `threshold`.
    pub(super) gains: Vec<(f64, SlicedFlip)>,
    pub(super) threshold: f64,
    /// The gain from which on flips were looked for.
    pub(super) asked: f64,
    /// The flips that attain the bound; perhaps fewer than are left.
    pub(super) selected: Vec<SlicedFlip>,
    /// Where the ones of rows are divided by their number, the moves that stand for them, and how many ones are left then.
    pub(super) moves: Vec<(SlicedFlip, usize)>,
    /// The gain of the last of the flips that are left.
    pub(super) last: f64,
    /// How many of the flips that are left are none of those that are listed.
    pub(super) filled: usize,
    /// What the flips that do not count gain.
    pub(super) freed: Vec<(f64, SlicedFlip)>,
    /// Rows that can lose all of their ones, where these are divided by their number, and what that gains.
    pub(super) emptied: Vec<(u32, f64)>,
    /// There, too, what moves score, and what is known of those of which that is not.
    pub(super) scores: Rc<Scores>,
    pub(super) rest: Rest,
    /// Whether all flips that a counterexample may have are among these, where the threshold does not tell.
    pub(super) is_complete: bool,
    /// What kept it from being computed.
    pub(super) cut: Option<Obstacle>,
}

impl Bounded {
    /// Every flip of a counterexample gains at least this.
    pub(super) fn needed(&self) -> f64 {
        self.last + self.value - self.error
    }

    /// Whether all flips that a counterexample may have have gains.
    pub(super) fn lists_needed(&self, base: &Base) -> bool {
        if base.rows.is_some() { self.is_complete } else { self.threshold < self.needed() }
    }

    /// Whether the gains of all selected flips were computed.
    pub(super) fn knows_selected(&self) -> bool {
        self.selected.iter().all(|flip| self.gains.iter().any(|(_, known)| known == flip))
    }

    /// Drops flips that no counterexample has, and tells which flips all of them have (Lemma 22); nothing but listed flips matters.
    pub(super) fn reduce(&mut self, target: &Target, base: &Base, possible: &mut Possible) -> Vec<SlicedFlip> {
        let lists_all = matches!(possible, Possible::These(_));
        let needed = match &base.rows {
            None => self.reduce_flips(base, lists_all, target.shared.network.graph().values().is_some()),
            Some(rows) => Listing::reduce(target, base, rows, self, lists_all),
        };
        if let Possible::These(flips) = possible {
            self.threshold = f64::NEG_INFINITY;
            *flips = self.gains.iter().map(|&(_, flip)| flip).collect();
        }
        needed
    }

    fn reduce_flips(&mut self, base: &Base, lists_all: bool, has_values: bool) -> Vec<SlicedFlip> {
        let mut at_node: HashMap<u32, (u32, f64)> = HashMap::new();
        let selected: HashSet<SlicedFlip> = self.selected.iter().copied().collect();
        for &(gain, flip) in self.gains.iter().filter(|(_, flip)| selected.contains(flip)) {
            let (count, least) = at_node.entry(flip.0).or_insert((0, gain));
            (*count, *least) = (*count + 1, least.min(gain));
        }
        let (spare, error) = (self.value - self.error, self.error);
        let full = |node: u32| at_node.get(&node).filter(|of| of.0 >= base.capacities[node as usize]);
        let lost = |node: u32| full(node).map_or(self.last, |of| of.1);
        let mut next = if lists_all { 0.0 } else { self.threshold.max(0.0) };
        let mut kept = Vec::with_capacity(self.gains.len());
        for &(gain, flip) in &self.gains {
            let is_selected = selected.contains(&flip);
            // A real value may move by as little as gains nothing.
            let most = if has_values { gain.max(0.0) } else { gain };
            let none_has_it = lists_all && !is_selected && most < spare + lost(flip.0);
            if !none_has_it {
                kept.push((gain, flip));
                if !is_selected {
                    next = next.max(gain);
                }
            }
        }
        let all_have = |&(gain, flip): &(f64, SlicedFlip)| {
            (selected.contains(&flip) && self.value + gain - next > error).then_some(flip)
        };
        let needed = kept.iter().filter_map(all_have).collect();
        self.gains = kept;
        needed
    }

    /// Has sets without a flip alone; the bound is to be computed anew.
    pub(super) fn drop_flip(&mut self, target: &Target, flip: SlicedFlip) {
        self.gains.retain(|&(_, other)| other != flip);
        self.rest.additions.retain(|&(_, other)| other != flip);
        self.rest.removals.retain(|&(_, other)| other != flip);
        if target.shared.change(target.slice, flip) < 0.0 {
            self.emptied.retain(|&(position, _)| position != flip.0);
        }
    }

    /// The moves of the selected flips, and which part of each is made: where rows are divided by the number of their ones, that of what it
    /// does with the fewest.
    pub(super) fn moves(&self, target: &Target, base: &Base) -> Vec<(SlicedFlip, f64)> {
        let Some(rows) = &base.rows else { return self.selected.iter().map(|&flip| (flip, 1.0)).collect() };
        let part = |flip: SlicedFlip, left: usize| match left {
            0 => 1.0,
            left => rows.fewest_with(target, base, flip) / left as f64,
        };
        self.moves.iter().map(|&(flip, left)| (flip, part(flip, left))).collect()
    }

    /// Selects nothing, for now.
    pub(super) fn clear_selection(&mut self) {
        self.selected.clear();
        self.moves.clear();
    }

    /// Selects flips of a row that leave it with so many ones, and the moves that stand for them.
    pub(super) fn select_moves(&mut self, flips: &[SlicedFlip], moves: &[SlicedFlip], left: usize) {
        self.selected.extend(flips);
        self.moves.extend(moves.iter().map(|&flip| (flip, left)));
    }

    /// The moves that stand for the selected flips.
    pub(super) fn moved(&self) -> impl Iterator<Item = SlicedFlip> + '_ {
        self.moves.iter().map(|&(flip, _)| flip)
    }

    /// What the margin is at least, whatever rounding did.
    pub(super) fn lower(&self) -> f64 {
        self.value - 1.01 * self.error.abs()
    }

    /// Whether the margin is positive for all sets.
    pub(super) fn is_positive(&self) -> bool {
        self.cut.is_none() && self.value > self.error
    }

    /// The same without knowing anything.
    pub(super) fn unknown(self, cut: Option<Obstacle>) -> Self {
        Self { value: f64::NEG_INFINITY, cut, ..self }
    }
}

/// Selects the admissible flips that gain most; whatever is not listed gains at most `threshold`.
pub(super) fn select(target: &Target, base: &Base, bounded: &mut Bounded, threshold: f64) {
    match &base.rows {
        None => select_flips(base, bounded, threshold, target.shared.network.graph().values().is_some()),
        Some(rows) => Listing::new(target, base, rows, bounded).select(target, base, rows, bounded),
    }
}

fn select_flips(base: &Base, bounded: &mut Bounded, threshold: f64, has_values: bool) {
    let mut capacities = base.capacities.clone();
    bounded.selected.clear();
    let mut total = 0.0;
    bounded.last = threshold;
    for &(gain, flip) in &bounded.gains {
        if gain <= threshold || bounded.selected.len() == base.left {
            break;
        }
        // An entry does not go both ways.
        let taken = has_values && bounded.selected.contains(&reversed(flip));
        if capacities[flip.0 as usize] > 0 && !taken {
            capacities[flip.0 as usize] -= 1;
            bounded.selected.push(flip);
            total += gain;
            bounded.last = gain;
        }
    }
    let others = base.left - bounded.selected.len();
    if others > 0 {
        bounded.last = threshold;
    }
    for &(gain, flip) in bounded.freed.iter().filter(|(gain, _)| *gain > 0.0) {
        bounded.selected.push(flip);
        total += gain;
    }
    bounded.filled = others;
    bounded.value = bounded.constant - total - others as f64 * threshold;
}

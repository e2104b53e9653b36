//! The bound over all sets of flips around a base point, and the flips that attain it (Lemmas 39 and 40 of `docs/maths.md`).

use std::collections::BTreeMap;

use super::base::Base;
use super::cones::Cones;
use super::linearisation::{Linearisation, UnitSlopes};
use super::screening::Screening;
use super::target::Target;
use crate::certificate::Obstacle;
use crate::dense::{Matrix, add_scaled};
use crate::engines::attack::Attack;
use crate::engines::patience::Patience;
use crate::forward::{self, Link, Values};
use crate::ids::ClassId;
use crate::model::{Activation, Source};
use crate::prepare::Order;
use crate::search::{ByNorm, Row, norm_above, sort_rows};
use crate::selection::Selection;
use crate::slice::SlicedFlip;

/// By what the threshold of screening falls from one look to the next.
const FALL: f64 = 0.75;
/// Of the constant's share that each flip may take, what the first threshold is at least.
const FIRST_SHARE: f64 = 0.98;
/// Steps of climbing.
const STEPS: usize = 12;

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
    /// The flips that attain the bound; perhaps fewer than are left.
    pub(super) selected: Vec<SlicedFlip>,
    /// The gain of the last of the flips that are left.
    pub(super) last: f64,
    /// What kept it from being computed.
    pub(super) cut: Option<Obstacle>,
}

impl Bounded {
    /// Every flip of a counterexample gains at least this.
    pub(super) fn needed(&self) -> f64 {
        self.last + self.value - self.error
    }

    /// Whether the margin is positive for all sets.
    pub(super) fn is_positive(&self) -> bool {
        self.cut.is_none() && self.value > self.error
    }

    /// The same without knowing anything.
    fn unknown(self, cut: Option<Obstacle>) -> Self {
        Self { value: f64::NEG_INFINITY, cut, ..self }
    }
}

/// Where the margin is bounded.
#[derive(Clone, Copy)]
pub(super) struct At<'p, 't> {
    pub(super) target: &'p Target<'t>,
    pub(super) base: &'p Base,
    pub(super) pair: (ClassId, ClassId),
}

/// Bounds one pair of classes around one base point after the other.
#[derive(Default)]
pub(super) struct Bounding {
    pub(super) linear: Linearisation,
    screening: Screening,
    pub(super) cones: Cones,
    /// For the relaxed forward pass: changes of pre-activations and activations.
    changes: Vec<Matrix>,
    sums: Vec<f64>,
}

impl Bounding {
    /// Lists flips by screening until the bound is positive, as good as it gets, or `try_flips` says that a witness was found.
    pub(super) fn by_screening(
        &mut self,
        at: At,
        attack: &mut Attack,
        slopes: Option<&UnitSlopes>,
        excluded: &[SlicedFlip],
        patience: &Patience,
        mut try_flips: impl FnMut(&mut Attack, &[SlicedFlip]) -> bool,
    ) -> Bounded {
        let At { target, base, pair } = at;
        self.linear.compute(target, base, attack, pair, slopes);
        let (constant, error) = (self.linear.constant, self.linear.error);
        let mut bounded = Bounded { value: constant, error, constant, ..Bounded::default() };
        if base.left == 0 {
            return bounded;
        }
        let share = FIRST_SHARE * constant / base.left as f64;
        let steepest = if base.flips.is_empty() { self.steepest(target) } else { None };
        if let Some((flips, _)) = &steepest
            && slopes.is_none()
            && !flips.is_empty()
            && try_flips(attack, flips)
        {
            return bounded.unknown(None);
        }
        self.screening.compute(target, base, &self.linear);
        let largest = self.screening.largest(base, target.tables.by_length.longest());
        // As many flips as are left gain at least this.
        let least = steepest.map_or(0.0, |(_, last)| last * (1.0 - 1e-9));
        let mut threshold = share.max(if least > 0.0 { least } else { 0.5 * largest });
        if threshold.is_nan() || threshold <= 0.0 {
            // Nothing moves anything, or numbers are too small to tell.
            bounded.threshold = largest;
            bounded.last = largest;
            bounded.value = constant - base.left as f64 * largest;
            return bounded;
        }
        loop {
            let listed =
                self.screening.above(target, base, &self.linear, threshold, patience).and_then(|mut listed| {
                    if !excluded.is_empty() {
                        listed.retain(|flip| excluded.binary_search(flip).is_err());
                    }
                    self.gains(target, base, &listed, patience)
                });
            match listed {
                Ok(gains) => bounded.gains = gains,
                Err(obstacle) => return bounded.unknown(Some(obstacle)),
            }
            bounded.threshold = threshold;
            select(base, &mut bounded, threshold);
            if bounded.is_positive() {
                return bounded;
            }
            if !bounded.selected.is_empty() && try_flips(attack, &bounded.selected) {
                return bounded;
            }
            let lists_all = threshold < bounded.needed() || constant - base.left as f64 * threshold > error;
            if bounded.selected.len() == base.left && (lists_all || constant <= error) {
                return bounded;
            }
            threshold = if threshold > least { (FALL * threshold).max(least) } else { FALL * threshold };
            // NaN, too, is no reason to go on.
            let goes_on = threshold > 1e-9 * largest && threshold > f64::MIN_POSITIVE;
            if !goes_on {
                return bounded;
            }
        }
    }

    /// The flips with the largest gains by the gradient alone, and the gain of the last if there are as many as may be made.
    fn steepest(&mut self, target: &Target) -> Option<(Vec<SlicedFlip>, f64)> {
        let Order::Norms(table) = &target.shared.order else { return None };
        let linear = &self.linear;
        let norms = target.row_norms(|layer, row| norm_above(linear.lambda[layer].row(row)));
        let mut rows: Vec<Row> =
            norms.iter().zip(0..).map(|(norm, position)| Row::of_norm(position, norm * (1.0 + 1e-9))).collect();
        sort_rows(&mut rows);
        let query = |position: usize, z: &mut [f64]| {
            linear.write_gradient(target, position, z);
            z.iter_mut().for_each(|z| *z = -*z);
        };
        let width = target.shared.network.attribute_weight().columns();
        let (mut z, mut selection) = (vec![0.0; width], Selection::new(0));
        let nodes = target.slice.level(0);
        target.shared.search().run(ByNorm::new(table), nodes, &rows, query, &mut z, &mut selection);
        let best = selection.best();
        let last = best.last().map_or(0.0, |&(gain, _)| if best.len() == target.most { gain } else { 0.0 });
        Some((best.iter().map(|&(_, flip)| flip).collect(), last))
    }

    /// The bound over sets of listed flips alone.
    pub(super) fn of_list(
        &mut self,
        at: At,
        attack: &Attack,
        slopes: Option<&UnitSlopes>,
        listed: &[SlicedFlip],
        patience: &Patience,
    ) -> Bounded {
        let At { target, base, pair } = at;
        self.linear.compute(target, base, attack, pair, slopes);
        let (constant, error) = (self.linear.constant, self.linear.error);
        let mut bounded = Bounded { value: constant, error, constant, ..Bounded::default() };
        match self.gains(target, base, listed, patience) {
            Ok(gains) => bounded.gains = gains,
            Err(obstacle) => return bounded.unknown(Some(obstacle)),
        }
        bounded.threshold = f64::NEG_INFINITY;
        select(base, &mut bounded, 0.0);
        bounded
    }

    /// The gains of flips, the largest first.
    fn gains(
        &mut self,
        target: &Target,
        base: &Base,
        listed: &[SlicedFlip],
        patience: &Patience,
    ) -> Result<Vec<(f64, SlicedFlip)>, Obstacle> {
        let mut gains = Vec::with_capacity(listed.len());
        for (i, &flip) in listed.iter().enumerate() {
            if i % 4 == 0
                && let Some(obstacle) = patience.obstacle(self.cones.bytes() + size_of_val(listed))
            {
                return Err(obstacle);
            }
            let excess = self.linear.excess_gain(self.cones.of(target, base, flip));
            gains.push((self.linear.linear_gain(target, flip) + excess, flip));
        }
        gains.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        Ok(gains)
    }

    /// Raises the bound by other slopes than the tangents where α > 0, for the flips that are listed in `bounded`; the rest is
    /// taken to gain no more than before, which is to be checked. The slopes, if they help.
    pub(super) fn climb(
        &mut self,
        at: At,
        attack: &Attack,
        bounded: &Bounded,
        from: &UnitSlopes,
        goal: f64,
        patience: &Patience,
    ) -> Option<UnitSlopes> {
        let At { target, base, pair } = at;
        let mut slopes = from.clone();
        let listed: Vec<SlicedFlip> = bounded.gains.iter().map(|&(_, flip)| flip).collect();
        let threshold = bounded.threshold.max(0.0);
        let mut best: Option<(f64, UnitSlopes)> = None;
        let mut now = bounded.clone();
        self.linear.compute(target, base, attack, pair, Some(&slopes));
        let mut pace = 1.0;
        for _ in 0..STEPS {
            let Some(direction) = self.direction(target, base, &slopes, &now.selected) else { break };
            let squares: f64 = direction.iter().flat_map(|direction| direction.values()).map(|d| d * d).sum();
            let step = pace * (goal - now.value) / squares;
            if !(step > 0.0 && step.is_finite()) {
                break;
            }
            for (layer, (slopes, direction)) in slopes.iter_mut().zip(&direction).enumerate() {
                let least = target.shared.network.layers()[layer].activation().slope();
                for (slope, direction) in slopes.values_mut().iter_mut().zip(direction.values()) {
                    *slope = (*slope + step * direction).clamp(least, 1.0);
                }
            }
            self.linear.compute(target, base, attack, pair, Some(&slopes));
            now.constant = self.linear.constant;
            now.error = self.linear.error;
            let Ok(gains) = self.gains(target, base, &listed, patience) else { break };
            now.gains = gains;
            select(base, &mut now, threshold);
            if best.as_ref().map_or(bounded.value, |best| best.0) < now.value {
                best = Some((now.value, slopes.clone()));
            } else {
                pace *= 0.5;
            }
            if now.is_positive() {
                break;
            }
        }
        best.map(|(_, slopes)| slopes)
    }

    /// `base` with the shares of units that suit the selected flips best; what is known of its flips is forgotten.
    pub(super) fn tuned(&mut self, target: &Target, base: &Base, selected: &[SlicedFlip]) -> Base {
        let mut moves: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
        for &flip in selected {
            for &(unit, _) in self.cones.of(target, base, flip) {
                if self.linear.against[unit as usize] > 0.0 {
                    moves.entry(unit).or_default();
                }
            }
        }
        for &flip in selected {
            self.cones.moves(target, base, flip, |unit, towards| {
                if let Some(moves) = moves.get_mut(&unit) {
                    moves.push(towards);
                }
            });
        }
        let mut tuned = base.clone();
        for (unit, moves) in moves {
            let unit = unit as usize;
            let layer = target.first_unit.partition_point(|&first| first <= unit) - 1;
            let (within, units) = (unit - target.first_unit[layer], target.shared.network.layers()[layer].units());
            tuned.tune(target, layer, within / units, within % units, &moves);
        }
        self.cones.clear();
        tuned
    }

    /// The derivative of the bound by the slopes: α times the pre-activation of the relaxed network under the selected flips.
    fn direction(
        &mut self,
        target: &Target,
        base: &Base,
        slopes: &UnitSlopes,
        selected: &[SlicedFlip],
    ) -> Option<Vec<Matrix>> {
        let network = target.shared.network;
        let mut excess = vec![0.0; self.linear.against.len()];
        for &flip in selected {
            self.cones.of(target, base, flip).iter().for_each(|&(unit, e)| excess[unit as usize] += e);
        }
        let mut direction = Vec::with_capacity(target.hidden());
        self.changes.clear();
        for layer in 0..target.hidden() {
            let mut change = Matrix::default();
            let rows = target.slice.level(layer + 1).len();
            let links: Vec<_> = network.layers()[layer]
                .terms()
                .iter()
                .enumerate()
                .filter_map(|(k, term)| match term.source() {
                    Source::Layer(source) => Some(Link {
                        hop: target.slice.hop(layer, k),
                        below: &self.changes[source],
                        columns: 0..self.changes[source].columns(),
                        activation: Activation::None,
                        weight: Some(term.weight()),
                    }),
                    _ => None,
                })
                .collect();
            let units = network.layers()[layer].units();
            forward::layer_into::<Values>(rows, &vec![0.0; units], &links, &mut self.sums, &mut change);
            for &flip in selected {
                target.each_reader(layer, flip, |m, p, weight| add_scaled(change.row_mut(m as usize), p, weight));
            }
            direction.push(self.bend(target, base, slopes, layer, &excess, &mut change));
            self.changes.push(change);
        }
        let any = direction.iter().flat_map(|direction| direction.values()).any(|&d| d != 0.0);
        any.then_some(direction)
    }

    /// From changes of pre-activations to those of relaxed activations; the result is α times the pre-activation where
    /// α > 0 and the slope can follow.
    fn bend(
        &self,
        target: &Target,
        base: &Base,
        slopes: &UnitSlopes,
        layer: usize,
        excess: &[f64],
        change: &mut Matrix,
    ) -> Matrix {
        let activation = target.shared.network.layers()[layer].activation();
        let mut direction = Matrix::zeros(change.rows(), change.columns());
        if activation == Activation::None {
            return direction;
        }
        for row in 0..change.rows() {
            let first = target.first_unit[layer] + row * change.columns();
            let (z, tangents, alpha) =
                (base.z[layer].row(row), base.tangents[layer].row(row), self.linear.alpha[layer].row(row));
            let slopes = slopes[layer].row(row);
            for (j, change) in change.row_mut(row).iter_mut().enumerate() {
                if alpha[j] > 0.0 {
                    let relaxed = z[j] + *change;
                    let (least, most) = (activation.slope(), 1.0);
                    let blocked = if relaxed > 0.0 { slopes[j] >= most } else { slopes[j] <= least };
                    direction.row_mut(row)[j] = if blocked { 0.0 } else { alpha[j] * relaxed };
                    *change = slopes[j] * relaxed - activation.of(z[j]);
                } else {
                    *change = tangents[j] * *change + excess[first + j];
                }
            }
        }
        direction
    }
}

/// Selects the admissible flips that gain most; whatever is not listed gains at most `threshold`.
pub(super) fn select(base: &Base, bounded: &mut Bounded, threshold: f64) {
    let mut capacities = base.capacities.clone();
    bounded.selected.clear();
    let mut total = 0.0;
    bounded.last = threshold;
    for &(gain, flip) in &bounded.gains {
        if gain <= threshold || bounded.selected.len() == base.left {
            break;
        }
        if capacities[flip.0 as usize] > 0 {
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
    bounded.value = bounded.constant - total - others as f64 * threshold;
}

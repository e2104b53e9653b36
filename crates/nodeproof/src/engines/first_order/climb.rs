//! Better lines, by climbing along the derivative of a bound (Lemma 39 of `docs/maths.md`).
//!
//! The flips that attain the bound are held fixed and carried through the *relaxed* network, in which lines stand for the activations.

use super::base::{Base, Unit};
use super::bound::{At, Bounding};
use super::bounded::{Bounded, select};
use super::lines::{Line, Lines};
use super::target::Target;
use crate::dense::{Matrix, add_scaled};
use crate::engines::patience::Patience;
use crate::forward::{self, Link, Values};
use crate::model::{Activation, Source};
use crate::slice::SlicedFlip;

/// So many flips are looked at in a climb, and so many times those that may be made: with half of that, others overtake them at large
/// budgets, and the bound falls.
const LOOKED_AT: (usize, usize) = (64, 8);

impl Bounding {
    /// Raises the bound by other lines than the tangents, for the first of the flips that are listed in `bounded`; the rest is taken to
    /// gain no more than before, which is to be checked. The lines, if they help.
    pub(super) fn climb(
        &mut self,
        at: At,
        bounded: &Bounded,
        from: Lines,
        goal: f64,
        patience: &Patience,
    ) -> Option<Lines> {
        let At { target, base, .. } = at;
        let mut lines = from;
        let (first, others) = bounded.gains.split_at(bounded.gains.len().min(LOOKED_AT.0 + LOOKED_AT.1 * base.left));
        let listed: Vec<SlicedFlip> = first.iter().map(|&(_, flip)| flip).collect();
        let threshold = others.first().map_or(bounded.asked, |&(gain, _)| gain).max(0.0);
        let mut best: Option<(f64, Lines)> = None;
        let mut now = bounded.clone();
        self.linear.compute(at, Some(&lines));
        let mut pace = 1.0;
        for _ in 0..self.tuning.steps {
            let Some(direction) = self.direction(target, base, &lines, &now) else { break };
            let squares: f64 = direction.iter().flat_map(|direction| direction.values()).map(|d| d * d).sum();
            let step = pace * (goal - now.value) / squares;
            if !(step > 0.0 && step.is_finite()) {
                break;
            }
            for (layer, (lines, direction)) in lines.iter_mut().zip(&direction).enumerate() {
                let least = target.shared.network.layers()[layer].activation().slope();
                let alpha = self.linear.alpha[layer].values();
                for ((line, direction), alpha) in lines.values_mut().iter_mut().zip(direction.values()).zip(alpha) {
                    if line.phase.is_some() {
                        let (least, most) = line.multipliers();
                        line.multiplier = (line.multiplier + step * direction * alpha.abs()).clamp(least, most);
                    } else if *alpha > 0.0 {
                        line.slope = (line.slope + step * direction).clamp(least, 1.0);
                    } else {
                        line.chord = (line.chord + step * direction).clamp(0.0, 1.0);
                    }
                }
            }
            self.linear.compute(at, Some(&lines));
            now.constant = self.linear.constant;
            now.error = self.linear.error;
            if self.set_gains(target, base, listed.iter().copied(), &mut now, patience).is_err() {
                break;
            }
            now.freed = self.freed(target, base);
            now.emptied = self.emptied(target, base, bounded.emptied.iter().map(|row| row.0));
            select(target, base, &mut now, threshold);
            if best.as_ref().map_or(bounded.value, |best| best.0) < now.value {
                best = Some((now.value, lines.clone()));
            } else {
                pace *= 0.5;
            }
            if now.is_positive() {
                break;
            }
        }
        best.map(|(_, lines)| lines)
    }

    /// The derivative of the bound by the lines: α times what they change of the activations of the relaxed network under the
    /// selected flips.
    fn direction(&mut self, target: &Target, base: &Base, lines: &Lines, bounded: &Bounded) -> Option<Vec<Matrix>> {
        let zeros = |z: &Matrix| Matrix::zeros(z.rows(), z.columns());
        let mut direction: Vec<Matrix> = base.z[..target.hidden()].iter().map(zeros).collect();
        self.relax(target, base, lines, bounded, |layer, unit| {
            direction[layer].values_mut()[unit.at] = unit.derivative();
        });
        let any = direction.iter().flat_map(|direction| direction.values()).any(|&d| d != 0.0);
        any.then_some(direction)
    }

    /// The units at which the relaxed network under the selected flips is furthest from the network, and could be less so if the sign
    /// of the pre-activation were known; the widest first.
    pub(super) fn widest_gaps(
        &mut self,
        target: &Target,
        base: &Base,
        lines: &Lines,
        bounded: &Bounded,
        count: usize,
    ) -> Vec<(usize, usize)> {
        let mut gaps: Vec<(f64, (usize, usize))> = Vec::new();
        self.relax(target, base, lines, bounded, |layer, unit| {
            let gap = unit.gap();
            if gap > 0.0 {
                gaps.push((gap, (layer, unit.at)));
            }
        });
        gaps.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        gaps.truncate(count);
        gaps.into_iter().map(|(_, unit)| unit).collect()
    }

    /// The excess of a flip that is made in part, unit by unit: exactly with one hidden layer, and otherwise at most that part of the whole.
    fn each_excess(
        &mut self,
        target: &Target,
        base: &Base,
        flip: SlicedFlip,
        part: f64,
        mut visit: impl FnMut(u32, f64),
    ) {
        if part == 1.0 || target.hidden() != 1 {
            self.cones.of(target, base, flip).iter().for_each(|&(unit, excess)| visit(unit, part * excess));
            return;
        }
        let rest = 1.0 - target.shared.network.layers()[0].activation().slope();
        for &(unit, (lower, upper)) in self.cones.moves(target, base, flip) {
            visit(unit, rest * base.units[0].values()[unit as usize].excess(part * lower, part * upper));
        }
    }

    /// Carries the selected flips through the relaxed network; `visit` hears of each unit with an activation, layer by layer.
    fn relax(
        &mut self,
        target: &Target,
        base: &Base,
        lines: &Lines,
        bounded: &Bounded,
        mut visit: impl FnMut(usize, Moved),
    ) {
        let network = target.shared.network;
        let mut excess = vec![0.0; self.linear.against.len()];
        let moves = bounded.moves(target, base);
        for &(flip, part) in &moves {
            self.each_excess(target, base, flip, part, |unit, by| excess[unit as usize] += by);
        }
        self.changes.clear();
        let mut buffer = Vec::new();
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
            for &(flip, part) in &moves {
                let mut effect = target.effect(base, flip, &mut buffer);
                effect.factor *= part;
                target.each_reader(layer, &effect, |m, p, weight| add_scaled(change.row_mut(m as usize), p, weight));
            }
            let activation = network.layers()[layer].activation();
            if activation != Activation::None {
                for (at, change) in change.values_mut().iter_mut().enumerate() {
                    let moved = Moved {
                        at,
                        activation,
                        line: lines[layer].values()[at],
                        unit: base.units[layer].values()[at],
                        tangent: base.tangents[layer].values()[at],
                        alpha: self.linear.alpha[layer].values()[at],
                        z: base.z[layer].values()[at],
                        change: *change,
                        excess: excess[target.first_unit[layer] + at],
                    };
                    *change = moved.relaxed(moved.line) - activation.of(moved.z);
                    visit(layer, moved);
                }
            }
            self.changes.push(change);
        }
    }
}

/// A unit of the relaxed network under some flips.
struct Moved {
    /// Its place in the layer.
    at: usize,
    activation: Activation,
    line: Line,
    unit: Unit,
    tangent: f64,
    alpha: f64,
    /// The pre-activation at the base point, by how much it is moved, and the excess of the flips.
    z: f64,
    change: f64,
    excess: f64,
}

impl Moved {
    /// The relaxed activation by a line.
    fn relaxed(&self, line: Line) -> f64 {
        let relaxed = line.relaxed(self.activation, self.z, self.tangent, self.alpha);
        relaxed.value + relaxed.slope * self.change + relaxed.excess * self.excess
    }

    /// The derivative of the bound by the line's parameter, a multiplier being counted in units of |α|; 0 if that cannot follow.
    fn derivative(&self) -> f64 {
        let (line, reached) = (self.line, self.z + self.change);
        let (derivative, now, range) = if line.phase.is_some() {
            (self.alpha.abs() * reached, line.multiplier, line.multipliers())
        } else if self.alpha > 0.0 {
            (self.alpha * reached, line.slope, (self.activation.slope(), 1.0))
        } else if line.ends == (f64::NEG_INFINITY, f64::INFINITY) {
            return 0.0;
        } else {
            let [whole, none] = [1.0, 0.0].map(|chord| self.relaxed(Line { chord, ..line }));
            (self.alpha * (whole - none), line.chord, (0.0, 1.0))
        };
        let blocked = if derivative > 0.0 { now >= range.1 } else { now <= range.0 };
        if blocked { 0.0 } else { derivative }
    }

    /// What the bound loses here, if the sign of the pre-activation is not known.
    fn gap(&self) -> f64 {
        let known = self.line.phase.is_some() || self.unit.share == 0.0;
        if known { 0.0 } else { self.alpha * (self.activation.of(self.z + self.change) - self.relaxed(self.line)) }
    }
}

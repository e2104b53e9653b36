//! The best additive bound on the margin over a subproblem (Lemma 19 of `docs/maths.md`).
//!
//! Every unit that can have both signs gets an [`Additive`] bound with parameters in [0, 1]: the slope of a convex unit's line,
//! and for a concave one the share of its threshold bound and the position of its sign split. The worst set of flips is then one
//! greedy selection.

use std::rc::Rc;

use super::ascent::Parameters;
use super::flips::Flips;
use super::subproblem::Subproblem;
use super::surroundings::Surroundings;
use super::tail::Tail;
use crate::dense::relu;
use crate::ids::ClassId;
use crate::relax::additive::Additive;
use crate::selection::Selection;
use crate::slice::SlicedFlip;

/// Stands for a flip that is not listed.
const UNLISTED: u32 = u32::MAX;

/// How one unit enters the bound.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Kind {
    /// It has no effect.
    Dead,
    /// `relu(x) = x`, or its phase says so.
    Linear,
    /// c > 0, both signs possible.
    Convex,
    /// c < 0, both signs possible.
    Concave,
}

/// The relaxation of one subproblem, ready to be evaluated for any parameters.
pub(crate) struct Bounding<'a> {
    around: &'a Surroundings<'a>,
    flips: Rc<Flips>,
    constant: f64,
    pub(super) coefficients: Vec<f64>,
    pub(super) z: Vec<f64>,
    pub(super) lo: Vec<f64>,
    pub(super) hi: Vec<f64>,
    pub(super) kinds: Vec<Kind>,
    bounds: Vec<Additive>,
    left: usize,
    capacities: Vec<u32>,
    free: Vec<bool>,
    gains: Vec<f64>,
    selection: Selection<u32>,
    row: Selection<u32>,
    used: Vec<u32>,
    pub(super) sums: Vec<Sums>,
    touched: Vec<u32>,
    /// For each node of level 0 the gain that another flip there has to exceed to be selected.
    thresholds: Vec<f64>,
    unlisted: Option<Rc<Vec<f64>>>,
}

/// Sums over the selected flips at one unit.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sums {
    pub(super) up: f64,
    pub(super) down: f64,
    pub(super) threshold: f64,
}

/// A bound with what was found on the way.
#[derive(Debug, Clone)]
pub(crate) struct Evaluation {
    /// The bound, up to rounding.
    pub(crate) bound: f64,
    /// The flips that attain it, without the fixed ones, by decreasing gain.
    pub(crate) selected: Vec<(f64, u32)>,
    /// The margin under the selected flips.
    pub(crate) margin: f64,
    /// Whether flips that are not listed had to be reckoned with.
    pub(crate) incomplete: bool,
}

impl<'a> Bounding<'a> {
    pub(crate) fn new(around: &'a Surroundings<'a>, pair: (ClassId, ClassId)) -> Self {
        let units = around.units();
        let zero = Additive::line(0.0, 0.0);
        let Tail { constant, coefficients } = Tail::new(around, pair);
        Self {
            around,
            constant,
            coefficients,
            z: Vec::new(),
            lo: vec![0.0; units],
            hi: vec![0.0; units],
            kinds: vec![Kind::Dead; units],
            bounds: vec![zero; units],
            left: 0,
            capacities: Vec::new(),
            free: Vec::new(),
            gains: Vec::new(),
            selection: Selection::new(0),
            row: Selection::new(0),
            used: vec![0; around.capacities.len()],
            sums: vec![Sums::default(); units],
            touched: Vec::new(),
            thresholds: Vec::new(),
            unlisted: None,
            flips: Rc::default(),
        }
    }

    /// Looks at other flips from now on.
    fn set_flips(&mut self, flips: &Rc<Flips>) {
        if !Rc::ptr_eq(&self.flips, flips) {
            self.flips = Rc::clone(flips);
            self.free = vec![false; flips.len()];
            self.gains = vec![f64::NAN; flips.len()];
        }
    }

    /// Takes up a subproblem: the pre-activations under its fixed flips, and their bounds.
    pub(crate) fn take(&mut self, subproblem: &Subproblem) {
        let around = self.around;
        self.set_flips(&subproblem.flips);
        self.left = around.most.saturating_sub(subproblem.fixed.len());
        self.capacities.clone_from(&around.capacities);
        self.z = around.clean();
        for &flip in &subproblem.fixed {
            self.capacities[self.flips.flips[flip as usize].0 as usize] -= 1;
            for &(unit, a) in self.flips.moves(flip) {
                self.z[unit as usize] += a;
            }
        }
        self.free.fill(false);
        subproblem.free.iter().for_each(|&flip| self.free[flip as usize] = true);
        self.unlisted.clone_from(&subproblem.unlisted);
        if self.unlisted.is_some() {
            self.take_common_bounds();
        } else {
            for unit in 0..self.z.len() {
                self.hi[unit] = self.z[unit] + self.reach(unit, 0);
                self.lo[unit] = self.z[unit] + self.reach(unit, 1);
            }
        }
        self.set_kinds(&subproblem.phases);
    }

    /// What each unit is, given bounds and phases.
    fn set_kinds(&mut self, phases: &[(u32, bool)]) {
        for (unit, kind) in self.kinds.iter_mut().enumerate() {
            let c = self.coefficients[unit];
            *kind = if c == 0.0 {
                Kind::Dead
            } else if self.lo[unit] >= 0.0 {
                Kind::Linear
            } else if self.hi[unit] <= 0.0 {
                Kind::Dead
            } else if c > 0.0 {
                Kind::Convex
            } else {
                Kind::Concave
            };
        }
        for &(unit, linear) in phases {
            let kind = &mut self.kinds[unit as usize];
            if self.coefficients[unit as usize] < 0.0 {
                *kind = if linear { Kind::Linear } else { Kind::Dead };
            }
        }
    }

    /// Takes up all admissible sets, with the bounds that all targets share.
    pub(crate) fn take_all(&mut self, flips: &Rc<Flips>) {
        let around = self.around;
        self.set_flips(flips);
        self.left = around.most;
        self.unlisted = None;
        self.capacities.clone_from(&around.capacities);
        self.z = around.clean();
        self.take_common_bounds();
        self.set_kinds(&[]);
    }

    /// Bounds that all targets share, moved by what is fixed.
    fn take_common_bounds(&mut self) {
        let around = self.around;
        let (bounds, clean) = (&around.shared.bounds.layers[0], &around.shared.bounds.clean.layers[0]);
        for unit in 0..self.z.len() {
            let (place, j) = (around.place(unit / around.width), unit % around.width);
            let moved = self.z[unit] - clean.get(place, j);
            (self.lo[unit], self.hi[unit]) = (bounds.lo.get(place, j) + moved, bounds.hi.get(place, j) + moved);
        }
    }

    /// The sum of the largest moves of a unit that the subproblem allows, up (0) or down (1).
    fn reach(&mut self, unit: usize, way: usize) -> f64 {
        let (mut sum, mut left) = (0.0, self.left);
        if left == 0 {
            return sum;
        }
        self.touched.clear();
        let moves = self.flips.of_unit(unit, way);
        for &(a, flip) in &moves.largest {
            if left == 0 {
                break;
            }
            let row = self.flips.flips[flip as usize].0;
            if self.free[flip as usize] && self.used[row as usize] < self.capacities[row as usize] {
                self.used[row as usize] += 1;
                self.touched.push(row);
                left -= 1;
                sum += a;
            }
        }
        self.touched.iter().for_each(|&row| self.used[row as usize] = 0);
        sum + left as f64 * moves.next
    }

    /// Evaluates the bound for parameters.
    pub(crate) fn evaluate(&mut self, parameters: &[Parameters], free: &[u32]) -> Evaluation {
        let mut bound = self.constant;
        for unit in 0..self.z.len() {
            let (z, ends) = (self.z[unit], (self.lo[unit], self.hi[unit]));
            let additive = match self.kinds[unit] {
                Kind::Dead => Additive::line(0.0, 0.0),
                Kind::Linear => Additive::line(z, 1.0),
                Kind::Convex => Additive::line(z, self.slope(parameters, unit)),
                Kind::Concave => {
                    let Parameters { share, position, .. } = parameters[unit];
                    let threshold = Additive::threshold(z, self.left);
                    if share == 1.0 {
                        threshold
                    } else {
                        threshold.mixed(Additive::sign_split(z, ends, position), share)
                    }
                }
            };
            bound += self.coefficients[unit] * additive.constant;
            self.bounds[unit] = additive;
        }
        self.select(free);
        bound -= self.selection.total();
        let mut selected: Vec<(f64, u32)> = self.selection.best().to_vec();
        let all = selected.len();
        selected.retain(|&(_, flip)| flip != UNLISTED);
        let incomplete = selected.len() < all;
        self.add_up(&selected);
        let margin = (0..self.z.len()).map(|unit| self.coefficients[unit] * relu(self.at(unit)));
        let margin = self.constant + margin.sum::<f64>();
        Evaluation { bound, selected, margin, incomplete }
    }

    /// The slope of a convex unit's line.
    pub(super) fn slope(&self, parameters: &[Parameters], unit: usize) -> f64 {
        let slope = parameters[unit].slope;
        if slope.is_nan() { self.hi[unit] / (self.hi[unit] - self.lo[unit]) } else { slope }
    }

    /// What `flip` takes from the bound.
    #[inline]
    fn gain(&self, flip: u32) -> f64 {
        let moves = self.flips.moves(flip).iter();
        -moves.map(|&(unit, a)| self.coefficients[unit as usize] * self.bounds[unit as usize].weight(a)).sum::<f64>()
    }

    /// The best free flips within the budget. Those of a node come by falling potential, so that the rest of them can be
    /// left out as soon as one cannot be selected.
    fn select(&mut self, free: &[u32]) {
        let flips = Rc::clone(&self.flips);
        self.gains.fill(f64::NAN);
        self.selection.reset(self.left);
        for row in free.chunk_by(|&a, &b| flips.flips[a as usize].0 == flips.flips[b as usize].0) {
            let node = flips.flips[row[0] as usize].0 as usize;
            self.row.reset(self.left.min(self.capacities[node] as usize));
            for &flip in row {
                let threshold = self.selection.threshold().max(self.row.threshold());
                if flips.potentials[flip as usize] <= threshold {
                    break;
                }
                let gain = self.gain(flip);
                self.gains[flip as usize] = gain;
                if gain > threshold {
                    self.row.offer(gain, flip);
                }
            }
            self.finish_row(node);
        }
        if self.unlisted.is_some() {
            let mut listed = vec![false; self.capacities.len()];
            free.iter().for_each(|&flip| listed[flips.flips[flip as usize].0 as usize] = true);
            for node in (0..listed.len()).filter(|&node| !listed[node]) {
                self.row.reset(self.left.min(self.capacities[node] as usize));
                self.finish_row(node);
            }
        }
        self.selection.settle();
        self.set_thresholds();
    }

    /// Adds as many unlisted flips to a node's selection as it may have, and offers the best of it to all nodes'.
    fn finish_row(&mut self, node: usize) {
        let gain = self.unlisted.as_ref().map_or(0.0, |unlisted| unlisted[node]);
        for _ in 0..self.left.min(self.capacities[node] as usize) {
            self.row.settle();
            if gain <= self.selection.threshold().max(self.row.threshold()) {
                break;
            }
            self.row.offer(gain, UNLISTED);
        }
        self.row.settle();
        self.row.best().iter().for_each(|&(gain, flip)| self.selection.offer(gain, flip));
    }

    /// A flip of a node with no budget left takes the place of one there, any other that of the last one selected.
    fn set_thresholds(&mut self) {
        let selected = self.selection.best();
        let last = self.selection.threshold();
        self.thresholds.clear();
        self.thresholds.resize(self.capacities.len(), last);
        for &(gain, flip) in selected.iter().filter(|(_, flip)| *flip != UNLISTED) {
            let row = self.flips.flips[flip as usize].0 as usize;
            self.used[row] += 1;
            if self.used[row] == self.capacities[row] {
                self.thresholds[row] = gain;
            }
        }
        for &(_, flip) in selected.iter().filter(|(_, flip)| *flip != UNLISTED) {
            self.used[self.flips.flips[flip as usize].0 as usize] = 0;
        }
    }

    /// The gain that another flip at a node of level 0 has to exceed to be selected.
    pub(crate) fn threshold(&self, position: u32) -> f64 {
        self.thresholds[position as usize]
    }

    /// The same for the node of a listed flip.
    pub(crate) fn threshold_for(&self, flip: u32) -> f64 {
        self.threshold(self.flips.flips[flip as usize].0)
    }

    /// The moves of the selected flips at every unit.
    fn add_up(&mut self, selected: &[(f64, u32)]) {
        self.sums.fill(Sums::default());
        for &(_, flip) in selected {
            for &(unit, a) in self.flips.moves(flip) {
                let sums = &mut self.sums[unit as usize];
                if a > 0.0 {
                    sums.up += a
                } else {
                    sums.down += a
                }
                sums.threshold += Additive::threshold(self.z[unit as usize], self.left).weight(a);
            }
        }
    }

    /// A unit's pre-activation under the selected flips.
    pub(super) fn at(&self, unit: usize) -> f64 {
        self.z[unit] + self.sums[unit].up + self.sums[unit].down
    }

    /// The gain of any flip at all with the bounds of the last evaluation.
    pub(crate) fn gain_anywhere(&self, flip: SlicedFlip) -> f64 {
        let around = self.around;
        let weight = around.shared.network.attribute_weight().row(flip.1 as usize);
        let sign = around.sign(flip).unwrap_or(0.0);
        let mut gain = 0.0;
        for &(m, p) in around.aggregators.of(flip.0) {
            let units = m as usize * around.width..;
            for (unit, &w) in units.zip(weight) {
                gain -= self.coefficients[unit] * self.bounds[unit].weight(p * (sign * w));
            }
        }
        gain
    }

    /// The gain of a free flip in the last evaluation.
    pub(crate) fn gain_of(&self, flip: u32) -> f64 {
        let gain = self.gains[flip as usize];
        if gain.is_nan() { self.gain(flip) } else { gain }
    }

    /// Flips that can still be made.
    pub(crate) fn left(&self) -> usize {
        self.left
    }

    /// The concave units with the largest gap between bound and ReLU under the selected flips, largest first.
    pub(crate) fn widest_gaps(&self, count: usize) -> Vec<u32> {
        let mut gaps: Vec<(f64, u32)> = Vec::new();
        for (unit, sums) in self.sums.iter().enumerate().filter(|&(unit, _)| self.kinds[unit] == Kind::Concave) {
            let additive = &self.bounds[unit];
            let bound = additive.total(sums.up, sums.down, sums.threshold);
            let gap = -self.coefficients[unit] * (bound - relu(self.at(unit)));
            if gap > 0.0 {
                gaps.push((gap, unit as u32));
            }
        }
        gaps.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        gaps.truncate(count);
        gaps.into_iter().map(|(_, unit)| unit).collect()
    }
}

//! A part of all admissible sets of flips, and the best bound on the margin over it.
//!
//! Some flips are in every set of the part and some in none; and of some concave units, whose term `−|c| relu(x)` is the
//! smaller of 0 and `−|c| x`, one of the two is taken instead. Every other unit gets an [`Additive`] bound with
//! parameters in [0, 1]: the slope of a convex unit's line, and for a concave one the share of its threshold bound and
//! the place of its sign split. The dual is concave in the slopes, and the parameters climb along its supergradient.

use std::rc::Rc;

use super::problem::{Flips, Surroundings};
use super::tail::Tail;
use crate::dense::relu;
use crate::graph::ClassId;
use crate::relaxation::additive::{Additive, split_range};
use crate::selection::Selection;
use crate::slice::SlicedFlip;

/// A part of all admissible sets.
#[derive(Debug, Clone)]
pub(super) struct Part {
    /// The flips that are listed.
    pub(super) flips: Rc<Flips>,
    /// For each node of level 0 the most that a flip of it gains that is not listed, or nothing if all that matter are.
    pub(super) unlisted: Option<Rc<Vec<f64>>>,
    /// Flips that every set has, as indices into [`Flips`].
    pub(super) fixed: Vec<u32>,
    /// Flips that a set may have.
    pub(super) free: Vec<u32>,
    /// Concave units that count as linear (`true`) or as 0 (`false`).
    pub(super) phases: Vec<(u32, bool)>,
    /// Parameters from which to climb on.
    pub(super) parameters: Rc<Vec<Parameters>>,
    /// A lower bound on the margin over the part, up to rounding.
    pub(super) bound: f64,
}

impl Part {
    /// All sets of `flips`.
    pub(super) fn all(flips: Rc<Flips>, parameters: Vec<Parameters>, bound: f64) -> Self {
        Self {
            free: (0..flips.len() as u32).collect(),
            flips,
            unlisted: None,
            fixed: Vec::new(),
            phases: Vec::new(),
            parameters: Rc::new(parameters),
            bound,
        }
    }

    /// Forgets flips that are neither fixed nor free.
    pub(super) fn compact(&mut self, most: usize) {
        let mut kept: Vec<u32> = self.fixed.iter().chain(&self.free).copied().collect();
        kept.sort_unstable();
        let place = |flip: &u32| kept.binary_search(flip).unwrap_or(0) as u32;
        let fixed = self.fixed.iter().map(place).collect();
        let free = self.free.iter().map(place).collect();
        (self.fixed, self.free) = (fixed, free);
        self.flips = Rc::new(self.flips.restricted(&kept, most));
    }
}

/// Parameters of one unit's bound.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Parameters {
    /// Of a convex unit's line; NaN where it has not been set.
    pub(super) slope: f64,
    /// Of the threshold bound.
    pub(super) share: f64,
    /// Of the sign split.
    pub(super) place: f64,
}

impl Parameters {
    /// The default slope, which depends on bounds, and the threshold bound.
    pub(super) const START: Self = Self { slope: f64::NAN, share: 1.0, place: 1.0 };
}

/// Stands for a flip that is not listed.
const UNLISTED: u32 = u32::MAX;

/// How one unit enters the bound.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    /// It has no effect.
    Dead,
    /// `relu(x) = x`, or its phase says so.
    Linear,
    /// c > 0, both signs possible.
    Convex,
    /// c < 0, both signs possible.
    Concave,
}

/// The relaxation of one part, ready to be evaluated for any parameters.
pub(super) struct Bounding<'a> {
    around: &'a Surroundings<'a>,
    flips: Rc<Flips>,
    pair: (ClassId, ClassId),
    /// The tail of a network with one hidden layer, which no part changes.
    tail: Option<Tail>,
    constant: f64,
    coefficients: Vec<f64>,
    z: Vec<f64>,
    lo: Vec<f64>,
    hi: Vec<f64>,
    kinds: Vec<Kind>,
    bounds: Vec<Additive>,
    left: usize,
    capacities: Vec<u32>,
    free: Vec<bool>,
    gains: Vec<f64>,
    selection: Selection<u32>,
    row: Selection<u32>,
    used: Vec<u32>,
    sums: Vec<Sums>,
    touched: Vec<u32>,
    /// For each node of level 0 the gain that another flip there has to exceed to be selected.
    thresholds: Vec<f64>,
    unlisted: Option<Rc<Vec<f64>>>,
}

/// Sums over the selected flips at one unit.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    up: f64,
    down: f64,
    threshold: f64,
}

/// A bound with what was found on the way.
#[derive(Debug, Clone)]
pub(super) struct Evaluation {
    /// The bound, up to rounding.
    pub(super) bound: f64,
    /// The flips that attain it, without the fixed ones, by decreasing gain.
    pub(super) selected: Vec<(f64, u32)>,
    /// `constant + Σ c_i relu(x_i)` under the selected flips: the margin itself with one hidden layer.
    pub(super) margin: f64,
    /// Whether flips that are not listed had to be reckoned with.
    pub(super) incomplete: bool,
}

/// How far a bound is to rise.
#[derive(Debug, Clone, Copy)]
pub(super) enum Aim {
    /// Above this.
    Above(f64),
    /// To the smallest margin seen, which it cannot exceed.
    SmallestMargin,
}

impl Aim {
    fn is_met(self, bound: f64, smallest: f64) -> bool {
        match self {
            Self::Above(enough) => bound > enough,
            Self::SmallestMargin => bound >= smallest,
        }
    }

    /// What to climb towards, given the smallest margin seen.
    fn height(self, smallest: f64) -> f64 {
        match self {
            Self::Above(enough) => smallest.max(enough),
            Self::SmallestMargin => smallest,
        }
    }
}

impl<'a> Bounding<'a> {
    pub(super) fn new(around: &'a Surroundings<'a>, pair: (ClassId, ClassId)) -> Self {
        let units = around.units();
        let zero = Additive::line(0.0, 0.0);
        Self {
            around,
            pair,
            tail: around.is_shallow().then(|| Tail::new(around, pair, &[], &[])),
            constant: 0.0,
            coefficients: Vec::new(),
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

    /// Takes up a part: the pre-activations under its fixed flips, their bounds and the coefficients.
    pub(super) fn take(&mut self, part: &Part) {
        let around = self.around;
        self.set_flips(&part.flips);
        self.left = around.most.saturating_sub(part.fixed.len());
        self.capacities.clone_from(&around.capacities);
        self.z = around.clean();
        for &flip in &part.fixed {
            self.capacities[self.flips.flips[flip as usize].0 as usize] -= 1;
            for &(unit, a) in self.flips.moves(flip) {
                self.z[unit as usize] += a;
            }
        }
        self.free.fill(false);
        part.free.iter().for_each(|&flip| self.free[flip as usize] = true);
        self.unlisted.clone_from(&part.unlisted);
        if self.unlisted.is_some() {
            self.take_common_bounds();
        } else {
            for unit in 0..self.z.len() {
                self.hi[unit] = self.z[unit] + self.reach(unit, 0);
                self.lo[unit] = self.z[unit] + self.reach(unit, 1);
            }
        }
        self.set_kinds(&part.phases);
    }

    /// Coefficients, and what each unit is, given bounds and phases.
    fn set_kinds(&mut self, phases: &[(u32, bool)]) {
        let around = self.around;
        match &self.tail {
            Some(tail) => {
                self.constant = tail.constant;
                self.coefficients.clone_from(&tail.coefficients);
            }
            None => {
                let tail = Tail::new(around, self.pair, &self.lo, &self.hi);
                (self.constant, self.coefficients) = (tail.constant, tail.coefficients);
            }
        }
        for (unit, kind) in self.kinds.iter_mut().enumerate() {
            let c = self.coefficients[unit];
            *kind = if c == 0.0 {
                Kind::Dead
            } else if !around.has_relu() || self.lo[unit] >= 0.0 {
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
            // With deeper layers the sign of a coefficient may have changed since; then the phase says nothing.
            if *kind == Kind::Concave || (self.coefficients[unit as usize] < 0.0 && *kind != Kind::Convex) {
                *kind = if linear { Kind::Linear } else { Kind::Dead };
            }
        }
    }

    /// Takes up all admissible sets, with the bounds that all targets share; of one hidden layer.
    pub(super) fn take_all(&mut self, flips: &Rc<Flips>) {
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
        let (bounds, clean) = (&around.shared.bounds.hidden[0], &around.shared.bounds.clean[0]);
        for unit in 0..self.z.len() {
            let (place, j) = (around.place(unit / around.width), unit % around.width);
            let moved = self.z[unit] - clean.get(place, j);
            (self.lo[unit], self.hi[unit]) = (bounds.lo.get(place, j) + moved, bounds.hi.get(place, j) + moved);
        }
    }

    /// The sum of the largest moves of a unit that the part allows, up (0) or down (1).
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
    pub(super) fn evaluate(&mut self, parameters: &[Parameters], free: &[u32]) -> Evaluation {
        let mut bound = self.constant;
        for unit in 0..self.z.len() {
            let (z, ends) = (self.z[unit], (self.lo[unit], self.hi[unit]));
            let additive = match self.kinds[unit] {
                Kind::Dead => Additive::line(0.0, 0.0),
                Kind::Linear => Additive::line(z, 1.0),
                Kind::Convex => Additive::line(z, self.slope(parameters, unit)),
                Kind::Concave => {
                    let Parameters { share, place, .. } = parameters[unit];
                    let threshold = Additive::threshold(z, self.left);
                    if share == 1.0 { threshold } else { threshold.mixed(Additive::sign_split(z, ends, place), share) }
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
        let has_relu = self.around.has_relu();
        let margin = (0..self.z.len()).map(|unit| {
            let x = self.at(unit);
            self.coefficients[unit] * if has_relu { relu(x) } else { x }
        });
        let margin = self.constant + margin.sum::<f64>();
        Evaluation { bound, selected, margin, incomplete }
    }

    /// The slope of a convex unit's line.
    fn slope(&self, parameters: &[Parameters], unit: usize) -> f64 {
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
    pub(super) fn threshold(&self, position: u32) -> f64 {
        self.thresholds[position as usize]
    }

    /// The same for the node of a listed flip.
    pub(super) fn threshold_for(&self, flip: u32) -> f64 {
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
    fn at(&self, unit: usize) -> f64 {
        self.z[unit] + self.sums[unit].up + self.sums[unit].down
    }

    /// Climbs from `parameters` for some steps, towards the smallest margin seen, until the bound is as high as `aim` says
    /// or `visit` breaks off. The best evaluation comes back, with its parameters in place.
    pub(super) fn climb(
        &mut self,
        parameters: &mut Vec<Parameters>,
        free: &[u32],
        steps: usize,
        aim: Aim,
        mut visit: impl FnMut(&Evaluation) -> bool,
    ) -> Evaluation {
        let mut best = self.evaluate(parameters, free);
        let mut goal = best.margin;
        let mut go_on = visit(&best);
        let mut current = parameters.clone();
        for unit in 0..current.len() {
            current[unit].slope = self.slope(&current, unit);
        }
        let mut velocity = vec![Parameters::default(); current.len()];
        let mut bound = best.bound;
        for _ in 0..steps {
            if !go_on || aim.is_met(best.bound, goal) {
                break;
            }
            if !self.step(&mut current, &mut velocity, aim.height(goal) - bound) {
                break;
            }
            let evaluation = self.evaluate(&current, free);
            bound = evaluation.bound;
            goal = goal.min(evaluation.margin);
            go_on = visit(&evaluation);
            if evaluation.bound > best.bound {
                best = evaluation;
                parameters.clone_from(&current);
            }
        }
        // The state of the last evaluation is left behind; callers look at gains, so they get those of the best.
        self.evaluate(parameters, free);
        best
    }

    /// One step of Polyak's length towards a bound that is higher by `missing`, with a heavy ball; false at a top.
    fn step(&self, parameters: &mut [Parameters], velocity: &mut [Parameters], missing: f64) -> bool {
        const INERTIA: f64 = 0.4;
        let inside = |value: f64, slope: f64| {
            if (value <= 0.0 && slope < 0.0) || (value >= 1.0 && slope > 0.0) { 0.0 } else { slope }
        };
        let mut ascent = Vec::with_capacity(parameters.len());
        let mut square = 0.0;
        for (unit, parameters) in parameters.iter().enumerate() {
            let mut by = self.supergradient(unit, parameters);
            by.slope = inside(parameters.slope, by.slope);
            by.share = inside(parameters.share, by.share);
            by.place = inside(parameters.place, by.place);
            square += by.slope * by.slope + by.share * by.share + by.place * by.place;
            ascent.push(by);
        }
        if square == 0.0 || missing.is_nan() {
            return false;
        }
        let length = missing / square;
        for ((parameters, velocity), by) in parameters.iter_mut().zip(velocity).zip(ascent) {
            let advance = |value: &mut f64, velocity: &mut f64, by: f64| {
                *velocity = INERTIA * *velocity + length * by;
                *value = (*value + *velocity).clamp(0.0, 1.0);
            };
            advance(&mut parameters.slope, &mut velocity.slope, by.slope);
            advance(&mut parameters.share, &mut velocity.share, by.share);
            advance(&mut parameters.place, &mut velocity.place, by.place);
        }
        true
    }

    /// The derivative of the bound by a unit's parameters, the selected flips being fixed.
    fn supergradient(&self, unit: usize, parameters: &Parameters) -> Parameters {
        let (c, z, sums) = (self.coefficients[unit], self.z[unit], self.sums[unit]);
        match self.kinds[unit] {
            Kind::Dead | Kind::Linear => Parameters::default(),
            Kind::Convex => Parameters { slope: c * self.at(unit), ..Parameters::default() },
            Kind::Concave => {
                let ends = (self.lo[unit], self.hi[unit]);
                let split = Additive::sign_split(z, ends, parameters.place);
                let by_split = split.total(sums.up, sums.down, 0.0);
                let by_threshold = relu(z) + sums.threshold;
                let (lowest, highest) = split_range(z, ends);
                let up = if ends.1 > z { sums.up / (ends.1 - z) } else { 0.0 };
                let down = if z > ends.0 { sums.down / (z - ends.0) } else { 0.0 };
                Parameters {
                    slope: 0.0,
                    share: c * (by_threshold - by_split),
                    place: c * (1.0 - parameters.share) * (highest - lowest) * (1.0 - up + down),
                }
            }
        }
    }

    /// The gain of any flip at all with the bounds of the last evaluation.
    pub(super) fn gain_anywhere(&self, flip: SlicedFlip) -> f64 {
        let around = self.around;
        let weight = around.shared.network.layers()[0].weight().row(flip.1 as usize);
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
    pub(super) fn gain_of(&self, flip: u32) -> f64 {
        let gain = self.gains[flip as usize];
        if gain.is_nan() { self.gain(flip) } else { gain }
    }

    /// Flips that can still be made.
    pub(super) fn left(&self) -> usize {
        self.left
    }

    /// The concave units with the largest gap between bound and ReLU under the selected flips, largest first.
    pub(super) fn widest_gaps(&self, count: usize) -> Vec<u32> {
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

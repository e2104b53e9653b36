//! The margin of first order, which deep networks are trained to make large, and its derivative (Lemma 44 of `docs/maths.md`).
//!
//! It is the margin of the graph as it is minus the gains of the steepest flips, which are held fixed: with E the sum of their excesses at
//! each unit, the value at the tampered attributes of a network with lines for activations, tangents and, where α < 0, with offset E. Its
//! derivative by weights and biases is that of any such network (`engines::derivative`), and α that by E. E itself depends on weights through
//! the moves of each flip, which are carried back layer by layer, and on pre-activations through the thresholds θ = |z| / r.

use super::base::{Base, Unit};
use super::bound::{At, Bounding};
use super::cones::{self, Moves};
use super::target::Target;
use crate::dense::{Matrix, add_scaled};
use crate::engines::derivative::{TargetDerivative, Term, add_relaxed};
use crate::ids::ClassId;
use crate::model::{Activation, Source, Weight};
use crate::prepare::Shard;
use crate::slice::{Slice, SlicedFlip};

/// The margins of one target after the other. Nothing is rounded down, and other flips may do more: they are for training, and prove
/// nothing.
#[derive(Default)]
pub(crate) struct Margins {
    bounding: Bounding,
    selected: Vec<SlicedFlip>,
    walk: Walk,
}

/// A target on the graph as it is.
pub(crate) struct CleanTarget<'t> {
    target: Target<'t>,
    base: Base,
    y: ClassId,
}

impl<'t> CleanTarget<'t> {
    /// The target of `slice`, whose class is `y`.
    pub(crate) fn new(shared: &'t Shard<'t>, slice: &'t Slice, y: ClassId) -> Self {
        let target = Target::new(shared, slice);
        Self { base: Base::clean(&target, y), target, y }
    }

    fn at(&self, other: ClassId) -> At<'_, 't> {
        At { target: &self.target, base: &self.base, pair: (self.y, other) }
    }
}

impl Margins {
    /// Starts with another target.
    pub(crate) fn begin(&mut self) {
        self.bounding.cones.clear();
    }

    /// The margin of y over `other` under the flips that gain most by the gradient, which are then in [`Margins::selected`]: what
    /// Lemma 39 leaves of it.
    pub(crate) fn of(&mut self, clean: &CleanTarget, other: ClassId) -> f64 {
        let Self { bounding, selected, .. } = self;
        bounding.linear.compute(clean.at(other), None);
        let steepest = bounding.steepest(&clean.target);
        *selected = steepest.unwrap_or_else(|| unreachable!("margins of first order are prepared with one table")).0;
        let gain = |&flip: &SlicedFlip| bounding.gain(&clean.target, &clean.base, flip);
        let gains: f64 = selected.iter().map(gain).sum();
        bounding.linear.constant - gains
    }

    /// The flips that were charged last.
    pub(crate) fn selected(&self) -> &[SlicedFlip] {
        &self.selected
    }

    /// The derivative of `Σ weight · margin` over `terms`.
    pub(crate) fn derivative(&mut self, clean: &CleanTarget, terms: &[Term]) -> TargetDerivative {
        let CleanTarget { target, base, .. } = clean;
        let (shared, slice) = (target.shared, target.slice);
        let mut by = TargetDerivative::zeros(shared.network, shared.places(slice));
        by.by_clean = zeros(base);
        by.by_clean.push(Matrix::default());
        let mut gradient = vec![0.0; shared.network.attribute_weight().columns()];
        for term in terms {
            self.bounding.linear.compute(clean.at(term.other), None);
            let mut offsets = zeros(base);
            let linear = &self.bounding.linear;
            for &flip in &term.flips {
                linear.write_gradient(target, flip.0 as usize, &mut gradient);
                let factor = term.weight * shared.sign(slice, flip);
                by.attributes.push(flip.1);
                by.by_attributes.extend(gradient.iter().map(|by| factor * by));
                self.walk.forth(target, base, flip, &mut offsets);
                self.walk.back(target, base, flip, term.weight, &linear.against, &mut by);
            }
            add_relaxed(shared, slice, term, &linear.lambda, &mut by, |layer, values, _| {
                let values = values.values_mut().iter_mut().zip(base.tangents[layer].values());
                let units = linear.alpha[layer].values().iter().zip(offsets[layer].values());
                for ((value, tangent), (&alpha, offset)) in values.zip(units) {
                    *value = *value * tangent + if alpha < 0.0 { *offset } else { 0.0 };
                }
            });
        }
        by
    }
}

/// A zero for each unit of all layers but the last.
fn zeros(base: &Base) -> Vec<Matrix> {
    base.units.iter().map(|units| Matrix::zeros(units.rows(), units.columns())).collect()
}

/// A flip on its way through the layers and back.
#[derive(Default)]
struct Walk {
    /// Moves of each layer, before and after the activation.
    before: Vec<Moves>,
    after: Vec<Moves>,
    /// Derivatives by ℓ, u and v of each layer.
    by: Vec<[Vec<f64>; 3]>,
    sums: [Vec<f64>; 3],
    by_sums: [Vec<f64>; 3],
    /// Units of a node with derivatives that are not 0.
    bent: Vec<(usize, [f64; 3])>,
}

impl Walk {
    /// Carries a flip through the layers, and adds its excess at each unit to `excesses`.
    fn forth(&mut self, target: &Target, base: &Base, flip: SlicedFlip, excesses: &mut [Matrix]) {
        self.after.resize_with(target.hidden(), Moves::default);
        self.before.resize_with(target.hidden(), Moves::default);
        for (layer, excesses) in excesses.iter_mut().enumerate() {
            cones::arrive(target, layer, flip, &mut self.after, &mut self.sums);
            let (moves, of) = (&mut self.after[layer], &target.shared.network.layers()[layer]);
            self.before[layer].clone_from(moves);
            if of.activation() != Activation::None {
                cones::bend(moves, base, layer, of.units(), of.activation(), |row, j, _, excess| {
                    excesses.row_mut(row as usize)[j] += excess;
                });
            }
        }
    }

    /// Carries derivatives back: that by a flip's excess at a unit is `−scale · against`.
    fn back(
        &mut self,
        target: &Target,
        base: &Base,
        flip: SlicedFlip,
        scale: f64,
        against: &[f64],
        by: &mut TargetDerivative,
    ) {
        let network = target.shared.network;
        self.by.resize_with(target.hidden(), Default::default);
        for (by, moves) in self.by.iter_mut().zip(&self.after) {
            for by in by {
                by.clear();
                by.resize(moves.linear.len(), 0.0);
            }
        }
        let start = by.by_attributes.len();
        by.attributes.push(flip.1);
        by.by_attributes.resize(start + network.attribute_weight().columns(), 0.0);
        for (layer, of) in network.layers().iter().enumerate().take(target.hidden()).rev() {
            if of.activation() != Activation::None {
                let against = &against[target.first_unit[layer]..];
                let by_excess = |row: usize, j: usize| -scale * against[row * of.units() + j];
                unbend(
                    &self.before[layer],
                    &mut self.by[layer],
                    base,
                    layer,
                    of.activation(),
                    by_excess,
                    &mut by.by_clean[layer],
                );
            }
            for term in network.attribute_terms_of(layer) {
                let sign = target.shared.sign(target.slice, flip);
                let row = &mut by.by_attributes[start..][term.columns.clone()];
                for &(m, p) in target.readers[layer][term.term].of(flip.0 as usize) {
                    let place = self.before[layer].place_of(m);
                    add_scaled(row, p * sign, &self.by[layer][0][place * of.units()..][..of.units()]);
                }
            }
            for (k, term) in of.terms().iter().enumerate() {
                if let Source::Layer(source) = term.source() {
                    self.through(target, (layer, k), source, term.weight(), &mut by.gradient.weights[layer][k]);
                }
            }
        }
    }

    /// Carries derivatives back through a term, and adds those by its weights.
    fn through(
        &mut self,
        target: &Target,
        (layer, k): (usize, usize),
        source: usize,
        weight: &Weight,
        gradient: &mut Option<Matrix>,
    ) {
        let layers = target.shared.network.layers();
        let (units, width, readers) = (layers[layer].units(), layers[source].units(), &target.readers[layer][k]);
        let places = self.before[layer].moved.len();
        cones::gather(target, (layer, k), width, &self.after[source], &self.before[layer], &mut self.sums);
        let (below, above) = self.by.split_at_mut(layer);
        let (below, above) = (&mut below[source], &above[0]);
        for by in &mut self.by_sums {
            by.clear();
            by.resize(places * width, 0.0);
        }
        for place in 0..places {
            let (from, to) = (place * width..(place + 1) * width, place * units..(place + 1) * units);
            let [by_linear, by_up, by_down] = [0, 1, 2].map(|i| &above[i][to.clone()]);
            let [linear, up, down] = [0, 1, 2].map(|i| &self.sums[i][from.clone()]);
            let [out_linear, out_up, out_down] = &mut self.by_sums;
            match weight {
                Weight::Scalar(w) => {
                    add_scaled(&mut out_linear[from.clone()], *w, by_linear);
                    let (by_up, by_down) = if *w > 0.0 { (by_up, by_down) } else { (by_down, by_up) };
                    add_scaled(&mut out_up[from.clone()], w.abs(), by_up);
                    add_scaled(&mut out_down[from], w.abs(), by_down);
                }
                Weight::Dense(weight) => {
                    // Few units have an excess.
                    let all = by_linear.iter().zip(by_up).zip(by_down).enumerate();
                    self.bent.clear();
                    self.bent.extend(all.map(|(j, ((&l, &u), &v))| (j, [l, u, v])).filter(|(_, by)| *by != [0.0; 3]));
                    if self.bent.is_empty() {
                        continue;
                    }
                    for (input, at) in from.enumerate() {
                        let row = weight.row(input);
                        [out_linear[at], out_up[at], out_down[at]] = by_input(row, &self.bent);
                        if let Some(gradient) = gradient {
                            let sums = [linear[input], up[input], down[input]];
                            add_by_weight(gradient.row_mut(input), row, sums, &self.bent);
                        }
                    }
                }
            }
        }
        let [by_linear, by_up, by_down] = below;
        for (place, &row) in self.after[source].moved.iter().enumerate() {
            let to = place * width..(place + 1) * width;
            for &(m, p) in readers.of(row as usize) {
                let from = self.before[layer].place_of(m) * width..;
                let [linear, up, down] = [0, 1, 2].map(|i| &self.by_sums[i][from.clone()][..width]);
                let (up, down) = if p > 0.0 { (up, down) } else { (down, up) };
                add_scaled(&mut by_linear[to.clone()], p, linear);
                add_scaled(&mut by_up[to.clone()], p.abs(), up);
                add_scaled(&mut by_down[to.clone()], p.abs(), down);
            }
        }
    }
}

/// The derivative by ℓ', u' and v' of one input, `row` of W being its weights and `by` the derivatives by ℓ, u and v of units.
fn by_input(row: &[f64], by: &[(usize, [f64; 3])]) -> [f64; 3] {
    let mut sums = [0.0; 3];
    for &(j, [by_linear, by_up, by_down]) in by {
        let positive = row[j].max(0.0);
        let negative = positive - row[j];
        sums[0] += by_linear * row[j];
        sums[1] += by_up * positive + by_down * negative;
        sums[2] += by_down * positive + by_up * negative;
    }
    sums
}

/// Adds the derivative by one input's weights, given its ℓ', u' and v'.
fn add_by_weight(gradient: &mut [f64], row: &[f64], [linear, up, down]: [f64; 3], by: &[(usize, [f64; 3])]) {
    for &(j, [by_linear, by_up, by_down]) in by {
        let bent = if row[j] > 0.0 { up * by_up + down * by_down } else { -(down * by_up + up * by_down) };
        gradient[j] += linear * by_linear + bent;
    }
}

/// From derivatives by the moves after an activation to those by the moves before it; thresholds pass theirs on to the pre-activations.
fn unbend(
    moves: &Moves,
    by: &mut [Vec<f64>; 3],
    base: &Base,
    layer: usize,
    activation: Activation,
    by_excess: impl Fn(usize, usize) -> f64,
    by_clean: &mut Matrix,
) {
    let (units, slope) = (base.units[layer].columns(), activation.slope());
    let rest = 1.0 - slope;
    let [by_linear, by_up, by_down] = by;
    for (place, &row) in moves.moved.iter().enumerate() {
        for (j, &unit) in base.units[layer].row(row as usize).iter().enumerate() {
            let at = place * units + j;
            let Unit { threshold, share, on, is_sure, .. } = unit;
            let (upper, lower) = (moves.linear[at] + moves.up[at], moves.linear[at] - moves.down[at]);
            let (by_rise, by_fall, by_excess) = (by_up[at], by_down[at], by_excess(row as usize, j));
            if !on || !is_sure {
                [&mut by_linear[at], &mut by_up[at], &mut by_down[at]].into_iter().for_each(|by| *by *= slope);
            }
            // By the largest move, by minus the least, and by the threshold.
            let (mut by_upper, mut by_lower, mut by_threshold) = (0.0, 0.0, 0.0);
            if !is_sure {
                by_upper = if upper > 0.0 { rest * (by_rise + if on { 0.0 } else { by_excess }) } else { 0.0 };
                by_lower = if lower < 0.0 { rest * (by_fall + if on { by_excess } else { 0.0 }) } else { 0.0 };
            } else if on {
                if -upper > threshold {
                    by_upper = -rest * share * by_rise;
                    by_threshold -= rest * share * by_rise;
                }
                if -lower > threshold {
                    by_lower = rest * share * by_excess;
                    by_threshold -= by_lower;
                }
            } else if upper > threshold {
                by_upper = rest * share * (by_rise + by_excess);
                by_threshold = -by_upper;
            }
            by_linear[at] += by_upper - by_lower;
            by_up[at] += by_upper;
            by_down[at] += by_lower;
            if by_threshold != 0.0 {
                let sign = if on { 1.0 } else { -1.0 };
                by_clean.row_mut(row as usize)[j] += sign * by_threshold / base.left as f64;
            }
        }
    }
}

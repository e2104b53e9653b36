//! The margin of first order, which deep networks are trained to make large, and its derivative (Lemma 44 of `docs/maths.md`).
//!
//! It is the margin of the graph as it is minus the gains of the steepest flips, which are held fixed: with E the sum of their excesses at
//! each unit, the value at the tampered attributes of a network with lines for activations, tangents and, where α < 0, with offset E. Its
//! derivative by weights and biases is that of any such network (`engines::derivative`), and α that by E. E itself depends on weights through
//! the moves of each flip, which are carried back layer by layer, and on pre-activations through the thresholds θ = |z| / r.

use super::base::{Base, Knows, Unit};
use super::bound::{At, Bounding};
use super::cones::{self, Moves, Sums};
use super::target::{Effect, Target};
use crate::dense::{Matrix, add_scaled, dot};
use crate::engines::derivative::{TargetDerivative, Term, add_relaxed};
use crate::ids::ClassId;
use crate::model::{Activation, Source, Weight};
use crate::prepare::{Change, Shard};
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
        Self { base: Base::clean(&target, y, Knows::Bounds), target, y }
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
        let CleanTarget { target, base, .. } = clean;
        if base.rows.is_some() {
            return bounding.linear.constant - self.gain_of_rows(target, base);
        }
        let gains: f64 = selected.iter().map(|&flip| bounding.gain(target, base, flip)).sum();
        bounding.linear.constant - gains
    }

    /// What the selected flips gain where the ones of rows are divided by their number, so that those of a row are one change.
    fn gain_of_rows(&mut self, target: &Target, base: &Base) -> f64 {
        let Self { bounding: Bounding { linear, .. }, selected, walk } = self;
        let (mut excesses, mut gains) = (zeros(base), 0.0);
        let mut gradient = vec![0.0; target.shared.network.attribute_weight().columns()];
        for change in target.shared.changes(target.slice, selected).iter() {
            walk.forth(target, base, change, &mut excesses);
            linear.write_gradient(target, change.row as usize, &mut gradient);
            gains -= dot(&gradient, &walk.effect);
        }
        for (excesses, &first) in excesses.iter().zip(&target.first_unit) {
            gains += dot(excesses.values(), &linear.against[first..][..excesses.values().len()]);
        }
        gains
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
            for change in shared.changes(slice, &term.flips).iter() {
                let node = slice.level(0)[change.row as usize];
                linear.write_gradient(target, change.row as usize, &mut gradient);
                by.add_change(change, node, term.weight, &gradient);
                self.walk.forth(target, base, change, &mut offsets);
                self.walk.back(target, base, change.row, term.weight, &linear.against, &mut by);
                by.add_change(change, node, 1.0, &self.walk.by_effect);
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

/// A change of a row on its way through the layers and back.
#[derive(Default)]
struct Walk {
    /// Moves of each layer, before and after the activation.
    before: Vec<Moves>,
    after: Vec<Moves>,
    /// Derivatives by C and R of each layer.
    by: Vec<[Vec<f64>; 2]>,
    sums: Sums,
    by_sums: [Vec<f64>; 2],
    /// What is done to `X_n W`, and the derivative by that.
    effect: Vec<f64>,
    by_effect: Vec<f64>,
    /// Units of a node with derivatives that are not 0.
    bent: Vec<(usize, [f64; 2])>,
}

impl Walk {
    /// Carries a change through the layers, and adds its excess at each unit to `excesses`.
    fn forth(&mut self, target: &Target, base: &Base, change: Change, excesses: &mut [Matrix]) {
        self.after.resize_with(target.hidden(), Moves::default);
        self.before.resize_with(target.hidden(), Moves::default);
        let weight = target.shared.network.attribute_weight();
        self.effect.clear();
        self.effect.resize(weight.columns(), 0.0);
        change.add_to(&mut self.effect, weight, target.shared.mean(target.slice, change.row));
        let effect = Effect { position: change.row, factor: 1.0, weights: &self.effect };
        for (layer, excesses) in excesses.iter_mut().enumerate() {
            cones::arrive(target, layer, &effect, &mut self.after, &mut self.sums);
            let (moves, of) = (&mut self.after[layer], &target.shared.network.layers()[layer]);
            self.before[layer].clone_from(moves);
            if of.activation() != Activation::None {
                cones::bend(moves, base, layer, of.units(), of.activation(), |row, j, _, excess| {
                    excesses.row_mut(row as usize)[j] += excess;
                });
            }
        }
    }

    /// Carries derivatives back, that by the change's excess at a unit being `−scale · against`, and leaves that by what it does to `X_n W`.
    fn back(
        &mut self,
        target: &Target,
        base: &Base,
        position: u32,
        scale: f64,
        against: &[f64],
        by: &mut TargetDerivative,
    ) {
        let network = target.shared.network;
        self.by.resize_with(target.hidden(), Default::default);
        for (by, moves) in self.by.iter_mut().zip(&self.after) {
            for by in by {
                by.clear();
                by.resize(moves.centre.len(), 0.0);
            }
        }
        self.by_effect.clear();
        self.by_effect.resize(network.attribute_weight().columns(), 0.0);
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
                let row = &mut self.by_effect[term.columns.clone()];
                for &(m, p) in target.readers[layer][term.term].of(position as usize) {
                    let place = self.before[layer].place_of(m);
                    add_scaled(row, p, &self.by[layer][0][place * of.units()..][..of.units()]);
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
            let [by_centre, by_radius] = [0, 1].map(|i| &above[i][to.clone()]);
            let [centre, radius] = [&self.sums.centre, &self.sums.radius].map(|sums| &sums[from.clone()]);
            let [out_centre, out_radius] = &mut self.by_sums;
            match weight {
                Weight::Scalar(w) => {
                    add_scaled(&mut out_centre[from.clone()], *w, by_centre);
                    add_scaled(&mut out_radius[from], w.abs(), by_radius);
                }
                Weight::Dense(weight) => {
                    // Few units have an excess.
                    let all = by_centre.iter().zip(by_radius).enumerate();
                    self.bent.clear();
                    self.bent.extend(all.map(|(j, (&c, &r))| (j, [c, r])).filter(|(_, by)| *by != [0.0; 2]));
                    if self.bent.is_empty() {
                        continue;
                    }
                    for (input, at) in from.enumerate() {
                        let row = weight.row(input);
                        [out_centre[at], out_radius[at]] = by_input(row, &self.bent);
                        if let Some(gradient) = gradient {
                            add_by_weight(gradient.row_mut(input), row, [centre[input], radius[input]], &self.bent);
                        }
                    }
                }
            }
        }
        let [by_centre, by_radius] = below;
        for (place, &row) in self.after[source].moved.iter().enumerate() {
            let to = place * width..(place + 1) * width;
            for &(m, p) in readers.of(row as usize) {
                let from = self.before[layer].place_of(m) * width..;
                let [centre, radius] = [0, 1].map(|i| &self.by_sums[i][from.clone()][..width]);
                add_scaled(&mut by_centre[to.clone()], p, centre);
                add_scaled(&mut by_radius[to.clone()], p.abs(), radius);
            }
        }
    }
}

/// The derivative by C' and R' of one input, `row` of W being its weights and `by` the derivatives by C and R of units.
fn by_input(row: &[f64], by: &[(usize, [f64; 2])]) -> [f64; 2] {
    let mut sums = [0.0; 2];
    for &(j, [by_centre, by_radius]) in by {
        sums[0] += by_centre * row[j];
        sums[1] += by_radius * row[j].abs();
    }
    sums
}

/// Adds the derivative by one input's weights, given its C' and R'.
fn add_by_weight(gradient: &mut [f64], row: &[f64], [centre, radius]: [f64; 2], by: &[(usize, [f64; 2])]) {
    for &(j, [by_centre, by_radius]) in by {
        gradient[j] += centre * by_centre + row[j].signum() * radius * by_radius;
    }
}

/// From derivatives by the moves after an activation to those by the moves before it; thresholds pass theirs on to the pre-activations.
fn unbend(
    moves: &Moves,
    by: &mut [Vec<f64>; 2],
    base: &Base,
    layer: usize,
    activation: Activation,
    by_excess: impl Fn(usize, usize) -> f64,
    by_clean: &mut Matrix,
) {
    let (units, slope) = (base.units[layer].columns(), activation.slope());
    let rest = 1.0 - slope;
    let [by_centre, by_radius] = by;
    for (place, &row) in moves.moved.iter().enumerate() {
        for (j, &unit) in base.units[layer].row(row as usize).iter().enumerate() {
            let at = place * units + j;
            let Unit { threshold, share, on, is_sure, .. } = unit;
            let (upper, lower) = (moves.centre[at] + moves.radius[at], moves.centre[at] - moves.radius[at]);
            // By U' and L', then by U and L.
            let (high, low) = (0.5 * (by_centre[at] + by_radius[at]), 0.5 * (by_centre[at] - by_radius[at]));
            let excess = by_excess(row as usize, j);
            let tangent = if on && is_sure { 1.0 } else { slope };
            let (mut by_upper, mut by_lower, mut by_threshold) = (tangent * high, tangent * low, 0.0);
            if !is_sure {
                by_upper += if upper > 0.0 { rest * (high + if on { 0.0 } else { excess }) } else { 0.0 };
                by_lower += if lower < 0.0 { rest * (low - if on { excess } else { 0.0 }) } else { 0.0 };
            } else if on {
                if -upper > threshold {
                    by_upper -= rest * share * high;
                    by_threshold -= rest * share * high;
                }
                if -lower > threshold {
                    by_lower -= rest * share * excess;
                    by_threshold -= rest * share * excess;
                }
            } else if upper > threshold {
                by_upper += rest * share * (high + excess);
                by_threshold -= rest * share * (high + excess);
            }
            (by_centre[at], by_radius[at]) = (by_upper + by_lower, by_upper - by_lower);
            if by_threshold != 0.0 {
                let sign = if on { 1.0 } else { -1.0 };
                by_clean.row_mut(row as usize)[j] += sign * by_threshold / base.left as f64;
            }
        }
    }
}

//! What each deletion takes from a margin at most (Lemma 64 of `docs/maths.md`).

use super::super::Problem;
use std::collections::BTreeSet;
use std::ops::Range;

use super::base::{Base, Step, add_product, growth, parts, width};
use super::cones::{Cones, Excess, Listed, Making};
use super::moves::Span;
use super::region::{NOWHERE, Region};
use super::rounding::Magnitude;
use super::rows::Rows;
use super::selection::Gain;
use crate::dense::{add_scaled, dot};
use crate::ids::ClassId;
use crate::model::{Source, Term, Weight};

/// The margin linearised at a base point.
#[derive(Debug)]
pub(super) struct Gradient<'g> {
    problem: &'g Problem<'g>,
    region: &'g Region,
    base: &'g Base,
    magnitude: &'g Magnitude<'g>,
    /// What is bounded: a margin, or a sum of activations of a node of a layer.
    layer: usize,
    place: usize,
    functional: Vec<f64>,
    /// Most deletions of a set.
    left: usize,
    /// Coefficients of activations, and those that the last layer alone makes, if sets have one deletion.
    alpha: Vec<Rows>,
    alpha_of_last: Vec<Rows>,
    /// Coefficients of pre-activations.
    lambda: Vec<Rows>,
    /// Of each term of each layer: coefficients of what its rows read, and of what is read of each node of the region over all rows.
    at_rows: Vec<Vec<Rows>>,
    at_nodes: Vec<Vec<Rows>>,
    /// The products of the latter with what terms read of nodes, where these are attributes or ones.
    sent: Vec<Vec<Vec<f64>>>,
    /// Terms of its layer, and nodes that these read, which are left out.
    apart: BTreeSet<(usize, u32)>,
}

impl<'g> Gradient<'g> {
    /// Of the lead of y over k, but for what some terms of the last layer read of some nodes.
    pub(super) fn of_margin(making: &'g Making<'g>, (y, k): (ClassId, ClassId), apart: BTreeSet<(usize, u32)>) -> Self {
        let last = making.problem.network.layers().len() - 1;
        let mut functional = vec![0.0; making.problem.network.layers()[last].units()];
        (functional[y.index()], functional[k.index()]) = (1.0, -1.0);
        Self::without(making, last, 0, functional, apart)
    }

    /// Of a sum of activations of a node of a layer.
    pub(super) fn of(making: &'g Making<'g>, layer: usize, place: usize, functional: Vec<f64>) -> Self {
        Self::without(making, layer, place, functional, BTreeSet::new())
    }

    fn without(
        making: &'g Making<'g>,
        layer: usize,
        place: usize,
        functional: Vec<f64>,
        apart: BTreeSet<(usize, u32)>,
    ) -> Self {
        let (problem, region, base, magnitude) = (making.problem, making.region, making.base, making.magnitude);
        let layers = problem.network.layers();
        let all = layers.iter().zip(&region.rows).take(layer + 1);
        let zeros: Vec<Rows> = all.map(|(layer, rows)| Rows::zeros(rows.len(), layer.units())).collect();
        let of_terms = vec![Vec::new(); layer + 1];
        let mut gradient = Self {
            problem,
            region,
            base,
            magnitude,
            layer,
            place,
            functional,
            left: making.left,
            alpha: zeros.clone(),
            alpha_of_last: Vec::new(),
            lambda: zeros,
            at_rows: of_terms.clone(),
            at_nodes: of_terms,
            sent: vec![Vec::new(); layer + 1],
            apart,
        };
        gradient.alpha[layer].row_mut(place).copy_from_slice(&gradient.functional);
        for i in (0..=layer).rev() {
            gradient.add_layer(i);
            if i == layer && making.left == 1 {
                gradient.alpha_of_last = gradient.alpha.clone();
            }
        }
        gradient
    }

    fn add_layer(&mut self, i: usize) {
        let (problem, region) = (self.problem, self.region);
        let (layer, last) = (&problem.network.layers()[i], problem.network.layers().len() - 1);
        let below = if i == last { 1.0 } else { layer.activation().slope() };
        let is_moved = |numbers: &[f64]| numbers.iter().any(|&x| x != 0.0);
        for (place, alpha) in self.alpha[i].iter().filter(|(_, alpha)| is_moved(alpha)) {
            let slopes = self.base.z[i].row(place).iter().map(|&z| if z > 0.0 { 1.0 } else { below });
            let lambda = self.lambda[i].row_mut(place);
            lambda.iter_mut().zip(alpha).zip(slopes).for_each(|((lambda, alpha), slope)| *lambda = alpha * slope);
        }
        let (base, alpha) = (self.base, &mut self.alpha);
        for (t, term) in layer.terms().iter().enumerate() {
            let share = problem.shares[term.propagation()];
            let width = width(problem, i, t);
            let mut at_rows = Rows::zeros(region.rows[i].len(), width);
            let is_mixed = share.mixed != 0.0;
            let mut at_nodes = Rows::zeros(if is_mixed { region.nodes.len() } else { 0 }, width);
            for (place, lambda) in self.lambda[i].iter() {
                let m = region.rows[i][place];
                let coefficients = at_rows.row_mut(place);
                back(coefficients, lambda, term);
                let mut add = |n: u32, factor: f64| {
                    if let Source::Layer(source) = term.source() {
                        let to = region.places[source][n as usize] as usize;
                        add_scaled(alpha[source].row_mut(to), factor, coefficients);
                    }
                };
                if share.identity != 0.0 {
                    add(m, share.identity);
                }
                let is_apart = |n: u32| i == self.layer && self.apart.contains(&(t, n));
                for n in base.readers(m).filter(|&n| is_mixed && !is_apart(n)) {
                    let entry = base.entry(term.propagation(), m, n);
                    if entry != 0.0 {
                        add(n, entry);
                        add_scaled(at_nodes.row_mut(n as usize), entry, coefficients);
                    }
                }
            }
            self.at_rows[i].push(at_rows);
            let mut sent = vec![0.0; region.nodes.len()];
            if !matches!(term.source(), Source::Layer(_)) {
                for (n, all) in at_nodes.iter() {
                    sent[n] = dot(all, base.read(problem, region, i, t, n as u32));
                }
            }
            self.at_nodes[i].push(at_nodes);
            self.sent[i].push(sent);
        }
    }

    /// The coefficients of what a term of the last layer reads, if it is a margin that is bounded.
    pub(super) fn read_by_target(&self, term: usize) -> &[f64] {
        self.at_rows[self.layer][term].row(0).unwrap_or(&[])
    }

    /// What is bounded, at the base point.
    pub(super) fn value(&self) -> f64 {
        dot(&self.functional, self.base.h[self.layer].row(self.place))
    }

    /// At most how far rounding takes its linear part.
    pub(super) fn slack(&self) -> f64 {
        let sizes = self.magnitude.sums[self.layer].row(self.place);
        let size: f64 = self.functional.iter().zip(sizes).map(|(x, size)| x.abs() * size).sum();
        16.0 * (self.problem.network.layers().len() + 1) as f64 * size * self.magnitude.relative
    }

    /// At most what a deletion takes of the margin, but for the growth of the last layer.
    pub(super) fn gain(&self, cones: &Cones, listed: &[Listed], f: usize) -> Gain {
        let all = self.ends(cones, listed, f, 0..self.layer + 1);
        let by_excess = Gain { fixed: self.excess(cones, listed, f), ends: all };
        if self.left > 1 || self.layer + 1 < self.problem.network.layers().len() {
            return by_excess;
        }
        let by_last = self.gain_by_last(cones, listed, f);
        if by_last.most([1, 1]) < by_excess.most([1, 1]) { by_last } else { by_excess }
    }

    /// What the excesses of a deletion cost.
    fn excess(&self, cones: &Cones, listed: &[Listed], f: usize) -> f64 {
        let own = &cones.senders.own[f];
        let is_own = |excess: &Excess| {
            let (i, unit) = (excess.layer as usize, excess.unit as usize);
            own.contains(&self.region.rows[i][unit / self.alpha[i].columns()])
        };
        let mut cost: f64 = cones.excesses[f].iter().map(|excess| self.cost(excess)).sum();
        for place in listed[f].ends.into_iter().filter_map(|n| cones.senders.place(n)) {
            let common = cones.excesses[place].iter().map(|excess| (self.cost(excess), excess));
            cost += common.filter(|&(cost, excess)| cost > 0.0 && !is_own(excess)).map(|(cost, _)| cost).sum::<f64>();
        }
        cost
    }

    fn cost(&self, excess: &Excess) -> f64 {
        let Some(alpha) = self.alpha.get(excess.layer as usize) else { return 0.0 };
        let (unit, units) = (excess.unit as usize, alpha.columns());
        alpha.row(unit / units).map_or(0.0, |alpha| (-alpha[unit % units]).max(0.0) * excess.by)
    }

    /// The same from the moves of what the last layer reads alone.
    fn gain_by_last(&self, cones: &Cones, listed: &[Listed], f: usize) -> Gain {
        let last = self.problem.network.layers().len() - 1;
        let mut fixed = 0.0;
        for (i, (moves, alpha)) in cones.h.iter().zip(&self.alpha_of_last).enumerate() {
            let reach = |row: u32, centre: &[f64], radius: &[f64]| {
                alpha.row(row as usize).map_or(0.0, |alpha| self.reach(alpha, -1.0, centre, radius))
            };
            fixed += moves[f].iter().map(|(row, centre, radius)| reach(row, centre, radius)).sum::<f64>();
            let common = listed[f].ends.into_iter().filter_map(|n| moves.get(cones.senders.place(n)?));
            for (row, centre, radius) in common.flat_map(|moves| moves.iter()) {
                if !cones.senders.own[f].contains(&self.region.rows[i][row as usize]) {
                    fixed += reach(row, centre, radius);
                }
            }
        }
        Gain { fixed, ends: self.ends(cones, listed, f, last..last + 1) }
    }

    /// What it takes by what it does to propagations in some layers, at each end, for each number of deletions there.
    pub(super) fn ends(&self, cones: &Cones, listed: &[Listed], f: usize, layers: Range<usize>) -> [Vec<f64>; 2] {
        let ends = listed[f].ends;
        [0, 1].map(|e| {
            let most = if ends[e] == NOWHERE { 0 } else { cones.most[ends[e] as usize] };
            let mut gains = vec![0.0; most];
            layers.clone().for_each(|i| self.add_direct(&mut gains, cones, f, (e, ends[1 - e]), i, ends[e]));
            gains
        })
    }

    /// Adds what it takes in a layer by what it does at one end, for each number of deletions there.
    fn add_direct(&self, gains: &mut [f64], cones: &Cones, f: usize, (e, other): (usize, u32), i: usize, n: u32) {
        if gains.is_empty() {
            return;
        }
        let (layer, degree) = (&self.problem.network.layers()[i], self.base.degrees[n as usize]);
        let places = &self.region.places[i];
        let place = |m: u32| (m != NOWHERE && places[m as usize] != NOWHERE).then(|| places[m as usize] as usize);
        for (t, term) in layer.terms().iter().enumerate() {
            let share = self.problem.shares[term.propagation()];
            let (scale, at_rows) = (self.base.source_scale(term), &self.at_rows[i][t]);
            let own = place(n).filter(|_| share.identity != 0.0).and_then(|place| at_rows.row(place));
            let is_mixed = share.mixed != 0.0 && !(i == self.layer && self.apart.contains(&(t, n)));
            let all = is_mixed.then(|| self.at_nodes[i][t].row(n as usize)).flatten();
            let cut = place(other).filter(|_| is_mixed).and_then(|place| at_rows.row(place));
            if own.or(all).or(cut).is_none() {
                continue;
            }
            let steps = (1..=gains.len()).map(|k| Step::of(Some(share.mixing), scale, degree, k));
            let of_own = |k: usize| share.identity * Step::of(None, scale, degree, k + 1).sent;
            // The row of the other end is among all that are added up.
            let of_cut = |step: Step| -(step.sent + step.cut) * self.base.entry(term.propagation(), other, n);
            let Source::Layer(source) = term.source() else {
                let read = self.base.read(self.problem, self.region, i, t, n);
                let [own, cut] = [own, cut].map(|row| row.map(|row| dot(row, read)));
                let all = all.map_or(0.0, |_| self.sent[i][t][n as usize]);
                for (k, (gain, step)) in gains.iter_mut().zip(steps).enumerate() {
                    let (own, cut) =
                        (own.map_or(0.0, |own| of_own(k) * own), cut.map_or(0.0, |cut| of_cut(step) * cut));
                    *gain -= own + step.sent * all + cut;
                }
                continue;
            };
            let Some(Span { centre, radius }) = &cones.ends[f][e].h[source] else { continue };
            if let (Some(all), None, None) = (all, own, cut) {
                let (linear, radii) = (dot(all, centre), self.radii(all, centre, radius));
                for (gain, step) in gains.iter_mut().zip(steps) {
                    *gain += step.sent.abs() * radii - step.sent * linear;
                }
                continue;
            }
            let mut coefficients = vec![0.0; at_rows.columns()];
            for (k, (gain, step)) in gains.iter_mut().zip(steps).enumerate() {
                coefficients.fill(0.0);
                if let Some(own) = own {
                    add_scaled(&mut coefficients, of_own(k), own);
                }
                if let Some(all) = all {
                    add_scaled(&mut coefficients, step.sent, all);
                }
                if let Some(cut) = cut {
                    add_scaled(&mut coefficients, of_cut(step), cut);
                }
                *gain += self.radii(&coefficients, centre, radius) - dot(&coefficients, centre);
            }
        }
        if let Some(lambda) = place(n).and_then(|place| self.lambda[i].row(place)) {
            self.add_gathered(gains, lambda, cones.ends[f][e].gathered[i].as_ref(), i, degree);
        }
    }

    /// Adds what it takes by what the end gathers, or by its bias.
    fn add_gathered(&self, gains: &mut [f64], lambda: &[f64], gathered: Option<&Span>, i: usize, degree: usize) {
        let layer = &self.problem.network.layers()[i];
        let units = layer.units();
        if let Some(mixing) = self.base.scales[i] {
            let by_bias = dot(lambda, layer.bias());
            for (gain, k) in gains.iter_mut().zip(1..) {
                *gain -= (1.0 / growth(Some(mixing), degree, k) - 1.0) / k as f64 * by_bias;
            }
            return;
        }
        let Some(Span { centre, radius }) = gathered else { return };
        for (p, part) in parts(self.problem, i).into_iter().enumerate().filter(|(_, part)| part.is_some()) {
            let (centre, radius) = (&centre[p * units..(p + 1) * units], &radius[p * units..(p + 1) * units]);
            let (linear, radii) = (dot(lambda, centre), self.radii(lambda, centre, radius));
            for (gain, k) in gains.iter_mut().zip(1..) {
                let by = (growth(part, degree, k) - 1.0) / k as f64;
                *gain += by.abs() * radii - by * linear;
            }
        }
    }

    /// The largest `factor · Σ a_j x_j` with each x_j so far from its centre at most.
    fn reach(&self, a: &[f64], factor: f64, centre: &[f64], radius: &[f64]) -> f64 {
        factor * dot(a, centre) + factor.abs() * self.radii(a, centre, radius)
    }

    /// At most how far `Σ a_j x_j` is from that of the centres.
    fn radii(&self, a: &[f64], centre: &[f64], radius: &[f64]) -> f64 {
        let error = self.magnitude.relative;
        a.iter().zip(centre).zip(radius).map(|((a, c), r)| a.abs() * (r + error * (c.abs() + r))).sum()
    }
}

/// `to = λ Wᵀ`, where a layer is read, and λ elsewhere.
fn back(to: &mut [f64], lambda: &[f64], term: &Term) {
    match (term.source(), term.weight()) {
        (Source::Layer(_), Weight::Dense(dense)) => {
            to.iter_mut().enumerate().for_each(|(input, to)| *to = dot(dense.row(input), lambda));
        }
        _ => add_product(to, 1.0, lambda, term),
    }
}

//! Finding the flips that may gain much, without a cone for each (Lemma 40 of `docs/maths.md`).
//!
//! Coefficients cU on (U)₊ and cL on (−L)₊ of every unit are carried back beside α, as their sum S and difference D:
//!
//! ```text
//! z ≤ 0:   cU = (β + ζ) a + ζ c,   cL = β b (b if the sign is not sure)   ζ = (1 − β) ς (1 − θ / X)₊,
//! z > 0:   cU = a,                 cL = b + ζ c                           a, b = (S ± D) / 2, arriving on (U')₊ and (−L')₊
//! through a layer: S' = |P|ᵀ S |W|ᵀ,   D' = Pᵀ D Wᵀ
//! at the attributes: gain ≤ σ W_d · h_n + |W_d| · k_n,   h = D / 2 − w,   k = S / 2,
//! ```
//!
//! with c what the excess of a flip costs at the unit (`Linearisation::against`).

use std::collections::BTreeMap;

use super::base::Base;
use super::linearisation::Linearisation;
use super::routes::norm_of_left_out;
use super::rows::Rows;
use super::target::Target;
use super::{LOWER, RAISE};
use crate::backward::transposed_term;
use crate::certificate::Obstacle;
use crate::dense::{Matrix, add_scaled};
use crate::engines::patience::Patience;
use crate::ids::AttributeId;
use crate::kernels::{Loops, vectorised_loops};
use crate::model::{Activation, Source};
use crate::search::SAFE_SQUARE;
use crate::slice::{DOWN, SlicedFlip, attribute_of};

/// Upper bounds of the gains of all flips around a base point.
#[derive(Default)]
pub(super) struct Screening {
    /// Upper bounds of `‖|h| + k‖` of each node of level 0.
    norms: Vec<f64>,
    /// The same of all nodes that the slice leaves out.
    norm_left_out: f64,
    sums: Vec<Matrix>,
    differences: Vec<Matrix>,
    back: Vec<f64>,
}

impl Screening {
    pub(super) fn compute(&mut self, target: &Target, base: &Base, linear: &Linearisation) {
        let (network, slice) = (target.shared.network, target.slice);
        for carried in [&mut self.sums, &mut self.differences] {
            carried.resize_with(target.hidden(), Matrix::default);
            for (i, carried) in carried.iter_mut().enumerate() {
                carried.reset(slice.level(i + 1).len(), network.layers()[i].units());
            }
        }
        for layer in (0..target.hidden()).rev() {
            self.bend(target, base, linear, layer);
            self.step_back(target, layer);
        }
        let norm = |layer: usize, row: usize| {
            let lambda = linear.lambda[layer].row(row);
            match self.sums.get(layer) {
                Some(sums) => norm_of(lambda.iter().zip(sums.row(row)).map(|(l, s)| l.abs() + s)),
                None => norm_of(lambda.iter().copied()),
            }
        };
        self.norms = target.row_norms(norm);
        self.norms.iter_mut().for_each(|norm| *norm *= RAISE);
        self.norm_left_out = match target.slice.left_out_nodes() {
            Some(nodes) => norm_of_left_out(target, linear, &self.sums, nodes),
            None => target.norm_left_out(norm) * RAISE,
        };
    }

    /// Writes h and k of a node of level 0.
    fn write_row(&self, target: &Target, linear: &Linearisation, position: usize, h: &mut [f64], k: &mut [f64]) {
        h.fill(0.0);
        k.fill(0.0);
        for term in target.shared.network.attribute_terms() {
            let (h, k) = (&mut h[term.columns.clone()], &mut k[term.columns.clone()]);
            for &(m, p) in target.readers[term.layer][term.term].of(position) {
                add_scaled(h, -p, linear.lambda[term.layer].row(m as usize));
                if term.layer < target.hidden() {
                    add_scaled(h, 0.5 * p, self.differences[term.layer].row(m as usize));
                    add_scaled(k, 0.5 * p.abs(), self.sums[term.layer].row(m as usize));
                }
            }
        }
    }

    /// Through the activation of a layer.
    fn bend(&mut self, target: &Target, base: &Base, linear: &Linearisation, layer: usize) {
        let activation = target.shared.network.layers()[layer].activation();
        if activation == Activation::None {
            return;
        }
        let slope = activation.slope();
        let against = &linear.against[target.first_unit[layer]..];
        let carried = [&mut self.sums[layer], &mut self.differences[layer]].map(Matrix::values_mut);
        let [tangents, falls, bent] = [&base.tangents, &base.falls, &base.bent].map(|of| of[layer].values());
        vectorised_loops(Bend { slope, carried, units: [tangents, falls, bent, against] });
    }

    /// Carries the coefficients of a layer back to what its terms read.
    fn step_back(&mut self, target: &Target, layer: usize) {
        let (network, slice) = (target.shared.network, target.slice);
        for (k, term) in network.layers()[layer].terms().iter().enumerate() {
            let Source::Layer(source) = term.source() else { continue };
            let hop = slice.hop(layer, k);
            let (below, above) = self.differences.split_at_mut(layer);
            let weight = target.tables.transposed(layer, k);
            transposed_term(hop, |p| p, weight, &above[0], &mut self.back, &mut below[source]);
            let (below, above) = self.sums.split_at_mut(layer);
            let weight = target.tables.transposed_magnitudes(layer, k);
            transposed_term(hop, f64::abs, weight, &above[0], &mut self.back, &mut below[source]);
        }
    }

    /// A bound on the gain of every flip of a node of level 0.
    pub(super) fn largest_of_row(&self, target: &Target, base: &Base, position: usize) -> f64 {
        self.norms[position] * longest_effect(target, base, position as u32)
    }

    /// A bound on the gain of every flip that is left.
    pub(super) fn largest(&self, target: &Target, base: &Base) -> f64 {
        let rows = self.norms.iter().zip(0u32..).zip(&base.capacities).filter(|&(_, &capacity)| capacity > 0);
        let larger = |a: f64, b: f64| if b > a || b.is_nan() { b } else { a };
        rows.map(|((norm, position), _)| norm * longest_effect(target, base, position))
            .fold(self.largest_left_out(target), larger)
    }

    /// A bound on the gain of every flip that the slice leaves out.
    fn largest_left_out(&self, target: &Target) -> f64 {
        if target.slice.is_whole() {
            return 0.0;
        }
        // Where rows are divided by the number of their ones, that is at least 1.
        let times = if target.shared.network.graph().kind().is_normalised() { 2.0 * RAISE } else { 1.0 };
        let largest = times * self.norm_left_out * target.tables.by_length.longest();
        if largest.is_nan() { f64::INFINITY } else { largest }
    }

    /// The lowest threshold above which the slice has every flip; 0 if it leaves nothing out.
    pub(super) fn lowest_threshold(&self, target: &Target) -> f64 {
        self.largest_left_out(target) * RAISE
    }

    /// Every flip that may gain at least `threshold`, which is positive, with the bound that says so.
    pub(super) fn above(
        &self,
        target: &Target,
        base: &Base,
        linear: &Linearisation,
        threshold: f64,
        patience: &Patience,
    ) -> Result<Above, Obstacle> {
        let all = self.above_floors(target, base, linear, (threshold, &|_| None), usize::MAX, patience)?;
        Ok(all.unwrap_or_default())
    }

    /// The same; where the ones of rows are divided by their number, additions are listed that may score more than a floor. `None` if there
    /// are more than `most`.
    pub(super) fn above_floors(
        &self,
        target: &Target,
        base: &Base,
        linear: &Linearisation,
        (threshold, floor): (f64, &dyn Fn(u32) -> Option<f64>),
        most: usize,
        patience: &Patience,
    ) -> Result<Option<Above>, Obstacle> {
        // Not with NaN, either.
        let sees_all = target.slice.is_whole() || self.largest_left_out(target) < threshold;
        if !sees_all {
            target.ask_for_more();
            return Err(Obstacle::Engine);
        }
        let (mut listed, mut removals, mut kept) = (Vec::new(), Vec::new(), Vec::new());
        let (mut floors, mut emptied) = (BTreeMap::new(), Vec::new());
        let (limits, network) = (target.shared.limits, target.shared.network);
        let (weight, attributes) = (network.attribute_weight(), network.graph().attributes());
        let by_length = &target.tables.by_length;
        let (mut h, mut k) = (vec![0.0; weight.columns()], vec![0.0; weight.columns()]);
        let mut bounds = Vec::new();
        for (position, &node) in target.slice.level(0).iter().enumerate() {
            let norm = self.norms[position];
            let longest = longest_effect(target, base, position as u32);
            if base.capacities[position] == 0 || norm * longest < threshold {
                continue;
            }
            if let Some(obstacle) = patience.obstacle(size_of_val(&listed[..])) {
                return Err(obstacle);
            }
            self.write_row(target, linear, position, &mut h, &mut k);
            let (h, k, own) = (&h, &k, attributes.row(node as usize));
            let norm = norm_of(h.iter().zip(k).map(|(h, k)| h.abs() + k)).min(norm);
            if norm * longest < threshold {
                continue;
            }
            if let Some(rows) = &base.rows {
                let row = NormalisedRow { target, base, rows, position: position as u32, own, query: (h, k, norm) };
                let usual = || threshold * (rows.ones(position as u32) + 1) as f64;
                let floor = floor(position as u32).unwrap_or_else(usual);
                row.list(floor, &mut bounds, [&mut listed, &mut removals, &mut kept]);
                if listed.len() > most {
                    return Ok(None);
                }
                floors.insert(position as u32, floor);
                emptied.extend(rows.can_be_emptied(target, base, position as u32).then_some(position as u32));
                continue;
            }
            if network.graph().values().is_some() {
                let attributes = by_length.down_to((threshold / norm).max(0.0));
                let flips = attributes.iter().filter(|&&d| limits.flippable(AttributeId(d))).flat_map(|&d| {
                    let (product, magnitude) = products(weight.row(d as usize), h, k);
                    let ways = [(d, magnitude + product), (d | DOWN, magnitude - product)];
                    ways.map(|(d, bound)| ((position as u32, d), bound))
                });
                for (flip, bound) in flips.filter(|&(flip, _)| target.goes_its_way(flip)) {
                    let bound = bound * target.shared.change(target.slice, flip).abs();
                    if may_reach(bound, threshold) {
                        listed.push((bound, flip));
                    }
                }
                continue;
            }
            if limits.deletions() {
                for &d in own.iter().filter(|&&d| may_reach(norm * by_length.of(d), threshold)) {
                    let (product, magnitude) = products(weight.row(d as usize), h, k);
                    if may_reach(magnitude - product, threshold) && limits.flippable(AttributeId(d)) {
                        listed.push((magnitude - product, (position as u32, d)));
                    }
                }
            }
            if limits.additions() {
                let attributes = by_length.down_to((threshold / norm).max(0.0));
                bounds.clear();
                vectorised_loops(AddBounds { attributes, weight, h, k, bounds: &mut bounds });
                for (&bound, &d) in bounds.iter().zip(attributes).filter(|&(&bound, _)| may_reach(bound, threshold)) {
                    if own.binary_search(&d).is_err() && limits.flippable(AttributeId(d)) {
                        listed.push((bound, (position as u32, d)));
                    }
                }
            }
        }
        Ok(Some(Above { flips: listed, removals, kept, floors, emptied }))
    }
}

/// Flips that may gain much.
#[derive(Default)]
pub(super) struct Above {
    /// With the bounds that say so: of gains, or where the ones of rows are divided by their number, of scores.
    pub(super) flips: Vec<(f64, SlicedFlip)>,
    /// There, removals of rows with such flips, likewise, and moves of the ones that are left where these can be fewer.
    pub(super) removals: Vec<(f64, SlicedFlip)>,
    pub(super) kept: Vec<(f64, SlicedFlip)>,
    /// There, additions that are not listed score at most this.
    pub(super) floors: BTreeMap<u32, f64>,
    /// Rows with such flips that can lose all of their ones, where these are divided by their number.
    pub(super) emptied: Vec<u32>,
}

impl Above {
    /// Leaves out flips, of a sorted list, that are not to be made.
    pub(super) fn exclude(&mut self, target: &Target, base: &Base, excluded: &[SlicedFlip]) {
        if excluded.is_empty() {
            return;
        }
        self.flips.retain(|(_, flip)| excluded.binary_search(flip).is_err());
        self.removals.retain(|(_, flip)| excluded.binary_search(flip).is_err());
        let keeps_some = |position: u32| {
            let mut own = base.rows.as_ref().map(|rows| rows.own(target, base, position)).into_iter().flatten();
            own.any(|d| excluded.binary_search(&(position, d)).is_ok())
        };
        self.emptied.retain(|&position| !keeps_some(position));
    }
}

/// An upper bound of `‖x‖` for what any flip of a node adds to `X_n W`.
fn longest_effect(target: &Target, base: &Base, position: u32) -> f64 {
    let longest = target.tables.by_length.longest();
    match &base.rows {
        None => longest,
        Some(rows) => 2.0 * longest / rows.fewest(base, position, false) * RAISE,
    }
}

/// A row whose ones are divided by their number (Lemma 47): a flip scores at most
///
/// ```text
/// σ (W_d − μ) · h + |W_d − μ| · k.
/// ```
struct NormalisedRow<'r> {
    target: &'r Target<'r>,
    base: &'r Base,
    rows: &'r Rows,
    position: u32,
    own: &'r [u32],
    /// h, k and the norm of both.
    query: (&'r [f64], &'r [f64], f64),
}

impl NormalisedRow<'_> {
    /// Lists all removals, and the additions that may score more than `floor`, with the bounds that say so.
    fn list(&self, floor: f64, bounds: &mut Vec<f64>, listed: [&mut Vec<(f64, SlicedFlip)>; 3]) {
        let [additions, removals, kept] = listed;
        // What is not a number bounds nothing.
        let bound = |score: f64| if score.is_nan() { f64::INFINITY } else { score };
        let Self { target, base, rows, position, own, query: (h, k, norm) } = *self;
        let (limits, weight) = (target.shared.limits, target.shared.network.attribute_weight());
        let (product, magnitude) = products(rows.mean(target, position), h, k);
        if limits.additions() {
            let needed = floor - (magnitude - product);
            let attributes = target.tables.by_length.down_to((needed / norm * LOWER).max(0.0));
            bounds.clear();
            vectorised_loops(AddBounds { attributes, weight, h, k, bounds });
            let likely = bounds.iter().zip(attributes).filter(|&(&of_added, _)| may_reach(of_added, needed));
            for (&of_added, &d) in likely {
                if own.binary_search(&d).is_err() && limits.flippable(AttributeId(d)) {
                    additions.push((bound(of_added + (magnitude - product)), (position, d)));
                }
            }
        }
        if limits.deletions() {
            for d in rows.own(target, base, position).filter(|&d| limits.flippable(AttributeId(d))) {
                let (of_own, size) = products(weight.row(d as usize), h, k);
                removals.push((bound(size - of_own + (magnitude + product)), (position, d)));
            }
        }
        if rows.can_be_halved(base, position) {
            for flip in rows.kept(target, base, position) {
                let (of_own, size) = products(weight.row(attribute_of(flip)), h, k);
                kept.push((bound(size + of_own + (magnitude - product)), flip));
            }
        }
    }
}

/// S and D of units through activations with a slope below 0.
struct Bend<'b> {
    slope: f64,
    carried: [&'b mut [f64]; 2],
    /// Tangents, what falls, what is bent, and what an excess costs.
    units: [&'b [f64]; 4],
}

impl Loops for Bend<'_> {
    #[inline(always)]
    fn run(self) {
        let ([sums, differences], [tangents, falls, bent, against]) = (self.carried, self.units);
        let units = tangents.iter().zip(falls).zip(bent).zip(against);
        for ((sum, difference), (((&tangent, fall), bent), against)) in sums.iter_mut().zip(differences).zip(units) {
            let (a, b) = (0.5 * (*sum + *difference), 0.5 * (*sum - *difference));
            // The slope below 0 is less than 1.
            let (on, bend) = (tangent == 1.0, bent * against);
            let up = if on { a } else { (self.slope + bent) * a + bend };
            let down = fall * b + if on { bend } else { 0.0 };
            (*sum, *difference) = (up + down, up - down);
        }
    }
}

/// Whether a gain with this bound may reach the threshold; NaN bounds nothing.
#[inline(always)]
fn may_reach(bound: f64, threshold: f64) -> bool {
    let cannot = bound < threshold;
    !cannot
}

/// An upper bound of `‖x‖`, even where squares underflow; NaN if there is one in x.
pub(super) fn norm_of(x: impl Iterator<Item = f64> + Clone) -> f64 {
    let squares: f64 = x.clone().map(|x| x * x).sum();
    let norm = if squares > SAFE_SQUARE || squares.is_nan() {
        squares.sqrt()
    } else {
        x.clone().fold(0.0f64, |largest, x| largest.max(x.abs())) * (x.count() as f64).sqrt()
    };
    norm * RAISE + f64::MIN_POSITIVE
}

/// Adds `W_d · h + |W_d| · k` of each of these attributes.
struct AddBounds<'a> {
    attributes: &'a [u32],
    weight: &'a Matrix,
    h: &'a [f64],
    k: &'a [f64],
    bounds: &'a mut Vec<f64>,
}

impl Loops for AddBounds<'_> {
    #[inline(always)]
    fn run(self) {
        for &d in self.attributes {
            let (product, magnitude) = products(self.weight.row(d as usize), self.h, self.k);
            self.bounds.push(magnitude + product);
        }
    }
}

/// `W_d · h` and `|W_d| · k`.
#[inline(always)]
fn products(weight: &[f64], h: &[f64], k: &[f64]) -> (f64, f64) {
    let (mut products, mut magnitudes) = ([0.0; 8], [0.0; 8]);
    let ((w8, w), (h8, h), (k8, k)) = (weight.as_chunks::<8>(), h.as_chunks::<8>(), k.as_chunks::<8>());
    for ((w, h), k) in w8.iter().zip(h8).zip(k8) {
        for lane in 0..8 {
            products[lane] += w[lane] * h[lane];
            magnitudes[lane] += w[lane].abs() * k[lane];
        }
    }
    let (mut product, mut magnitude): (f64, f64) = (products.iter().sum(), magnitudes.iter().sum());
    for ((w, h), k) in w.iter().zip(h).zip(k) {
        product += w * h;
        magnitude += w.abs() * k;
    }
    (product, magnitude)
}

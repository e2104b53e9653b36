//! An upper bound on what a flip can take from the margin, in whatever company: its *potential* (Lemma 20 of
//! `docs/maths.md`).
//!
//! With one hidden layer a ReLU moves by at most as much as its input, so that a flip with moves a_i takes at most
//!
//! ```text
//! Σ_{c_i > 0} c_i relu(−a_i) + Σ_{c_i < 0} −c_i relu(a_i)
//! ```
//!
//! from the margin and from any of its additive bounds. Only units that can be active count. For a node n the moves are
//! `P_mn σ W⁰_dj`, and the sum is an inner product of positive and negative parts of `W⁰_d` with
//! `Σ_m P_mn |c_mj|` over positive and over negative c. It is computed in single precision, for all attributes at once,
//! and rounded up.

use super::surroundings::Surroundings;
use crate::ids::AttributeId;
use crate::kernels::{InnerProduct, Work, dispatch};
use crate::search::RoughWeights;
use crate::slice::SlicedFlip;

/// What is needed to list the flips around a target.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    pub(crate) potentials: Potentials,
    pub(crate) tuning: Tuning,
}

/// What costs time and what saves it; results are right whatever the numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tuning {
    /// Flips that are listed at first, and for each flip of the budget.
    pub(crate) first: (usize, usize),
    /// With more that could be in a counterexample, those that hardly matter are not listed.
    pub(crate) many: usize,
    /// Steps of the ascent over all sets, and in each subproblem.
    pub(crate) steps: (usize, usize),
}

impl Default for Tuning {
    fn default() -> Self {
        Self { first: (200, 16), many: 4000, steps: (12, 4) }
    }
}

/// Adds to `values` what additions gain: for each unit j the weight of moves that lower it times negative weights, and of
/// those that raise it times positive ones, in units of `longest` times the largest weight.
struct AddProducts<'a> {
    rough: &'a RoughWeights,
    query: &'a [[f64; 2]],
    longest: f64,
    values: &'a mut [f32],
}

impl Work for AddProducts<'_> {
    // Without this the compiler may leave the loops outside of what is compiled for wide vectors.
    #[inline(always)]
    fn run(self, _: impl InnerProduct) {
        for (values, first) in self.values.chunks_mut(BLOCK).zip((0..).step_by(BLOCK)) {
            for (j, query) in self.query.iter().enumerate() {
                let [lowering, raising] = query.map(|weight| (weight / self.longest) as f32);
                let column = &self.rough.column(j)[first..];
                // Coefficients of one unit mostly have one sign, so that one of the two is 0.
                if lowering != 0.0 {
                    for (value, &w) in values.iter_mut().zip(column) {
                        *value += lowering * if w < 0.0 { -w } else { 0.0 };
                    }
                }
                if raising != 0.0 {
                    for (value, &w) in values.iter_mut().zip(column) {
                        *value += raising * if w > 0.0 { w } else { 0.0 };
                    }
                }
            }
        }
    }
}

/// The potential of every flip around one target, for one pair of classes.
#[derive(Debug, Default)]
pub(crate) struct Potentials {
    attributes: usize,
    /// A row for each node of level 0; 0 for flips that are not allowed or gain nothing.
    values: Vec<f32>,
}

/// A node's flips that are listed beside twice what it may have.
const SPARE: usize = 20;
/// Attributes whose potentials are computed together.
const BLOCK: usize = 256;
/// What potentials are raised by for each term, none of them negative: more than what rounding to singles takes.
const RAISE: f64 = f32::EPSILON as f64;
/// Sums of products in singles that are larger than this have lost next to nothing to underflow.
const SMALL: f32 = 1e-30;
/// Scales in this range are far from where singles overflow or underflow.
const SAFE: std::ops::Range<f64> = 1e-30..1e30;

impl Potentials {
    /// For coefficients c of all units; `active` says whether a unit can be active.
    pub(crate) fn compute(&mut self, around: &Surroundings, coefficients: &[f64], active: impl Fn(usize) -> bool) {
        let (width, attributes) = (around.width, around.shared.network.model().attributes());
        self.attributes = attributes;
        self.values.clear();
        self.values.resize(around.slice.level(0).len() * attributes, 0.0);
        // Per unit j the weight of moves that lower it and of those that raise it.
        let mut query = vec![[0.0f64; 2]; width];
        for position in 0..around.slice.level(0).len() as u32 {
            if around.capacities[position as usize] == 0 {
                continue;
            }
            query.fill([0.0; 2]);
            for &(m, p) in around.aggregators.of(position) {
                for (j, query) in query.iter_mut().enumerate() {
                    let unit = m as usize * width + j;
                    if active(unit) {
                        let c = coefficients[unit];
                        // What underflows here may be made up for by the weights.
                        query[usize::from(c < 0.0)] += (p * c.abs()).max(f64::MIN_POSITIVE);
                    }
                }
            }
            let longest = query.iter().flatten().copied().fold(0.0, f64::max);
            if longest == 0.0 {
                continue;
            }
            self.fill_row(around, position, &query, longest);
        }
    }

    /// The potentials of the flips of one node; `query` has per unit j the weight of moves that lower it and of those
    /// that raise it.
    fn fill_row(&mut self, around: &Surroundings, position: u32, query: &[[f64; 2]], longest: f64) {
        let values = &mut self.values[position as usize * self.attributes..][..self.attributes];
        let (limits, network, rough) = (around.shared.limits, around.shared.network, &around.shared.tables.rough);
        let weight = network.attribute_weight();
        let exact = |lowered: usize, attribute: usize| -> f64 {
            let terms = query.iter().zip(weight.row(attribute));
            terms.map(|(query, &w)| query[if w < 0.0 { lowered } else { 1 - lowered }] * w.abs()).sum()
        };
        let raise = 1.0 + RAISE * (query.len() + 8) as f64;
        let above = |potential: f64| ((potential * raise) as f32).next_up();
        let scale = longest * rough.unit * raise;
        if limits.additions() {
            if SAFE.contains(&scale) {
                dispatch(AddProducts { rough, query, longest, values });
                let scale = (scale as f32).next_up();
                for (attribute, value) in values.iter_mut().enumerate() {
                    if *value > SMALL {
                        *value = (*value * scale).max(f32::MIN_POSITIVE);
                    } else {
                        // Nothing, or too little for singles: an addition lowers units by negative weights.
                        let mut moves = query.iter().zip(weight.row(attribute));
                        let gains = moves.any(|(query, &w)| w != 0.0 && query[usize::from(w > 0.0)] != 0.0);
                        *value = if gains { above(exact(0, attribute)) } else { 0.0 };
                    }
                }
            } else {
                values.fill(f32::INFINITY);
            }
        }
        let node = around.slice.level(0)[position as usize] as usize;
        for &attribute in network.graph().attributes().row(node) {
            // A deletion lowers units by positive weights.
            let potential = if limits.deletions() { exact(1, attribute as usize) } else { 0.0 };
            let moves = limits.deletions() && weight.row(attribute as usize).iter().any(|&w| w != 0.0);
            values[attribute as usize] = if moves { above(potential) } else { 0.0 };
        }
        for (attribute, value) in (0u32..).zip(values) {
            if !limits.flippable(AttributeId(attribute)) {
                *value = 0.0;
            }
        }
    }

    pub(crate) fn of(&self, (position, attribute): SlicedFlip) -> f64 {
        self.values[position as usize * self.attributes + attribute as usize].into()
    }

    /// About `count` flips with the largest potentials, no more of a node than a few times what it may have; in the
    /// order of nodes.
    pub(crate) fn best(&self, around: &Surroundings, count: usize) -> Vec<SlicedFlip> {
        let mut all: Vec<(f32, SlicedFlip)> = Vec::new();
        let falling = |a: &(f32, SlicedFlip), b: &(f32, SlicedFlip)| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1));
        for (position, values) in (0u32..).zip(self.values.chunks_exact(self.attributes.max(1))) {
            let start = all.len();
            let positive = (0u32..).zip(values).filter(|&(_, &value)| value > 0.0);
            all.extend(positive.map(|(attribute, &value)| (value, (position, attribute))));
            let most = 2 * around.capacities[position as usize].min(around.most as u32) as usize + SPARE;
            if all.len() - start > most {
                all[start..].select_nth_unstable_by(most, falling);
                all.truncate(start + most);
            }
        }
        if all.len() > count {
            all.select_nth_unstable_by(count, falling);
            all.truncate(count);
        }
        let mut flips: Vec<SlicedFlip> = all.into_iter().map(|(_, flip)| flip).collect();
        flips.sort_unstable();
        flips
    }

    /// Flips with a potential above the cut of their node, in the order of nodes.
    pub(crate) fn above(&self, cut: impl Fn(u32) -> f64) -> Vec<SlicedFlip> {
        let mut flips = Vec::new();
        for (position, values) in (0u32..).zip(self.values.chunks_exact(self.attributes.max(1))) {
            let cut = cut(position);
            let above = (0u32..).zip(values).filter(|&(_, &value)| value > 0.0 && f64::from(value) > cut);
            flips.extend(above.map(|(attribute, _)| (position, attribute)));
        }
        flips
    }
}

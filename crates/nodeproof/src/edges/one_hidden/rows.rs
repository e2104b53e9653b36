//! What each row contributes to a margin at least, and what deletions gain there.

use super::seen::{Row, Seen};
use super::weights::{AllInputs, Weights};
use crate::dense::add_scaled;
use crate::edges::mixing::Mixing;

/// The hidden units of a row from which exactly so many edges are deleted, and how far they may be moved from there.
#[derive(Debug)]
struct State {
    z: Vec<f64>,
    /// Each of k deletions takes this from it on average, v: it has lost k v already, and a deletion moves it by what that takes less v.
    mean: Vec<f64>,
    /// What is received from others is multiplied by this.
    into: f64,
    /// θ_j = |z_j| / r, with r the number of moves.
    thresholds: Vec<f64>,
}

/// The linear part of `Σ_j a_j activation(z_j)`, and what moves gain beyond it where a < 0:
///
/// ```text
/// Σ_j a_j activation(z_j + Σ_f δ_fj) ≥ Σ_j a_j activation(z_j) − Σ_f gain(δ_f),
/// gain(δ) = Σ_j −a_j slope_j δ_j + Σ_{a_j < 0} |a_j| (1 − slope) (∓δ_j − |z_j| / r)₊
/// ```
///
/// for at most r moves: the activation is convex, and `(Σ_f δ_f − |z|)₊ ≤ Σ_f (δ_f − |z| / r)₊`.
#[derive(Debug)]
struct Bent<'s> {
    base: f64,
    linear: Vec<f64>,
    costs: Vec<f64>,
    signs: Vec<f64>,
    thresholds: &'s [f64],
}

impl<'s> Bent<'s> {
    fn new(state: &'s State, coefficients: impl Iterator<Item = f64>, below: f64) -> Self {
        let units = state.z.len();
        let (mut linear, mut costs, mut signs) = (vec![0.0; units], vec![0.0; units], vec![0.0; units]);
        let mut base = 0.0;
        for (j, a) in coefficients.enumerate() {
            let z = state.z[j];
            let is_on = z > 0.0;
            let slope = if is_on { 1.0 } else { below };
            base += a * slope * z;
            linear[j] = -a * slope;
            costs[j] = (-a).max(0.0) * (1.0 - below);
            signs[j] = if is_on { -1.0 } else { 1.0 };
        }
        Self { base, linear, costs, signs, thresholds: &state.thresholds }
    }

    /// At most what a move by `scale · sent + shift` gains.
    fn gain(&self, scale: f64, sent: &[f64], shift: Option<&[f64]>) -> f64 {
        let mut gain = 0.0;
        let units = self.linear.len();
        let (linear, costs, signs, thresholds) =
            (&self.linear[..units], &self.costs[..units], &self.signs[..units], &self.thresholds[..units]);
        match shift {
            Some(shift) => {
                for j in 0..units {
                    let by = scale * sent[j] + shift[j];
                    gain += linear[j] * by + costs[j] * (signs[j] * by - thresholds[j]).max(0.0);
                }
            }
            None => {
                for j in 0..units {
                    let by = scale * sent[j];
                    gain += linear[j] * by + costs[j] * (signs[j] * by - thresholds[j]).max(0.0);
                }
            }
        }
        gain
    }
}

/// What is known of the degree of the target after all deletions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum AtTarget {
    /// Each deletion at the target changes what it sends.
    Any,
    /// Exactly so many edges are deleted there.
    Exactly(usize),
}

/// All rows but that of the target, whatever the classes.
#[derive(Debug)]
pub(super) struct States {
    at_target: AtTarget,
    of_rows: Vec<Vec<State>>,
}

impl States {
    pub(super) fn new(seen: &Seen, weights: &Weights, inputs: &AllInputs, at_target: AtTarget) -> Self {
        let of = |row: &Row| states(seen, weights, inputs, row, at_target);
        Self { at_target, of_rows: seen.rows[1..].iter().map(of).collect() }
    }
}

/// How many edges of those that are at no row's edge to the target may be deleted.
fn others(seen: &Seen, at_target: AtTarget) -> usize {
    match at_target {
        AtTarget::Any => seen.left,
        AtTarget::Exactly(count) => seen.left - count,
    }
}

/// The states of a row that is not the target's, by the number of its deletions.
fn states(seen: &Seen, weights: &Weights, inputs: &AllInputs, row: &Row, at_target: AtTarget) -> Vec<State> {
    let Weights { mixing, ref bias, .. } = *weights;
    let (units, of_row) = (bias.len(), inputs.of(row.node));
    let sent = |end: usize| &inputs.of(seen.ends[end].node).sent.values[..];
    let mut others_sum = vec![0.0; units];
    for read in &row.reads {
        let from = match (read.end, at_target) {
            (0, AtTarget::Exactly(count)) => mixing.from(seen.rows[0].degree - count),
            (end, _) => seen.ends[end].from,
        };
        add_scaled(&mut others_sum, from, sent(read.end));
    }
    let mut mean = vec![0.0; units];
    let deletable = row.reads.iter().filter(|read| read.may_delete && read.end != 0);
    let mut count = 0;
    for read in deletable {
        add_scaled(&mut mean, seen.ends[read.end].from, sent(read.end));
        count += 1;
    }
    let all = others(seen, at_target);
    (0..=row.most.min(all))
        .map(|k| {
            let (degree, is_recentred) = (row.degree - k, k > 0);
            let into = mixing.into(degree);
            let mut z = bias.clone();
            add_scaled(&mut z, 1.0, &of_row.own.values);
            add_scaled(&mut z, mixing.own(degree, row.has_loop), &of_row.sent.values);
            add_scaled(&mut z, into, &others_sum);
            let mut mean = if is_recentred { mean.clone() } else { vec![0.0; units] };
            if is_recentred {
                mean.iter_mut().for_each(|v| *v *= into / count as f64);
                add_scaled(&mut z, -(k as f64), &mean);
            }
            let moves = moves(seen, mixing, row, k, at_target);
            let thresholds = thresholds(&z, moves);
            State { z, mean, into, thresholds }
        })
        .collect()
}

/// How many times the units of a row are moved at most, if k of its edges are deleted: by these, and by each change of what a neighbour
/// sends, of which a deletion elsewhere makes one or two.
fn moves(seen: &Seen, mixing: Mixing, row: &Row, k: usize, at_target: AtTarget) -> usize {
    if mixing != Mixing::Symmetric {
        return k;
    }
    let each = if row.has_triangles { 2 } else { 1 };
    match at_target {
        AtTarget::Any => k + (seen.left - k) * each,
        AtTarget::Exactly(count) => k + (seen.left - count - k) * each + if row.has_triangles { count } else { 0 },
    }
}

fn thresholds(z: &[f64], moves: usize) -> Vec<f64> {
    let share = |z: &f64| if moves == 0 { 0.0 } else { z.abs() / moves as f64 };
    z.iter().map(share).collect()
}

/// What rows contribute to one margin, but for a factor `into(d_t)` of all.
#[derive(Debug)]
pub(super) struct Gains {
    /// For each row but the target's (in its place), by the number of its deletions: what it contributes at least, and what deletions of its
    /// edges gain there.
    pub(super) of_states: Vec<Vec<OfState>>,
    /// For each row, what each of its neighbours gains there at most when it loses an edge elsewhere.
    pub(super) of_rises: Vec<Vec<f64>>,
    /// The sum of these over rows, for each end.
    pub(super) rises: Vec<f64>,
}

/// What a row contributes, from which so many edges are deleted.
#[derive(Debug)]
pub(super) struct OfState {
    pub(super) base: f64,
    /// What deleting the edge to each neighbour gains; −∞ where it may not be deleted.
    pub(super) deletions: Vec<f64>,
}

/// The difference of two columns.
pub(super) fn difference(row: &[f64], (y, k): (usize, usize)) -> f64 {
    row[y] - row[k]
}

impl Gains {
    pub(super) fn new(
        seen: &Seen,
        weights: &Weights,
        inputs: &AllInputs,
        states: &States,
        pair: (usize, usize),
    ) -> Self {
        let mixed: Vec<f64> = (0..weights.bias.len()).map(|j| difference(weights.mixed.row(j), pair)).collect();
        let sent = |end: usize| &inputs.of(seen.ends[end].node).sent.values[..];
        let (mut of_states, mut of_rises) = (vec![Vec::new()], vec![Vec::new()]);
        let mut rises = vec![0.0; seen.ends.len()];
        for (row, states_of) in seen.rows[1..].iter().zip(&states.of_rows) {
            let skipped = difference(&inputs.of(row.node).skipped.values, pair);
            let mut highest = vec![0.0f64; row.reads.len()];
            let of = states_of.iter().enumerate().map(|(k, state)| {
                let from = weights.mixing.from(row.degree - k);
                let bent = Bent::new(state, mixed.iter().map(|u| from * u), weights.slope);
                for (highest, read) in highest.iter_mut().zip(&row.reads) {
                    let is_known = read.end == 0 && states.at_target != AtTarget::Any;
                    let rise = seen.ends[read.end].rise;
                    if rise != 0.0 && !is_known {
                        *highest = highest.max(bent.gain(state.into * rise, sent(read.end), None));
                    }
                }
                let deletion = |read: &super::seen::Read| {
                    if k == 0 || !read.may_delete || read.end == 0 {
                        return f64::NEG_INFINITY;
                    }
                    bent.gain(-state.into * seen.ends[read.end].from, sent(read.end), Some(&state.mean))
                };
                OfState { base: bent.base + from * skipped, deletions: row.reads.iter().map(deletion).collect() }
            });
            of_states.push(of.collect());
            row.reads.iter().zip(&highest).for_each(|(read, gain)| rises[read.end] += gain);
            of_rises.push(highest);
        }
        Self { of_states, of_rises, rises }
    }
}

/// The row of the target itself, at which exactly so many edges are deleted.
#[derive(Debug)]
pub(super) struct OwnRow {
    /// What it contributes at least, with all that does not depend on other rows.
    pub(super) base: f64,
    /// By what the contributions of others are multiplied.
    pub(super) into: f64,
    /// For each row but the first: what its unlinking gains here, and what the loss of another of its edges does at most.
    pub(super) drops: Vec<f64>,
    pub(super) rises: Vec<f64>,
}

impl OwnRow {
    pub(super) fn new(seen: &Seen, weights: &Weights, inputs: &AllInputs, count: usize, pair: (usize, usize)) -> Self {
        let (row, mixing, units) = (&seen.rows[0], weights.mixing, weights.bias.len());
        let of_row = inputs.of(row.node);
        let sent = |end: usize| &inputs.of(seen.ends[end].node).sent.values[..];
        let degree = row.degree - count;
        let (into, own) = (mixing.into(degree), mixing.own(degree, row.has_loop));
        let mut z = weights.bias.clone();
        add_scaled(&mut z, 1.0, &of_row.own.values);
        add_scaled(&mut z, own, &of_row.sent.values);
        let mut mean = vec![0.0; units];
        let mut deletable = 0;
        for read in &row.reads {
            add_scaled(&mut z, into * seen.ends[read.end].from, sent(read.end));
            if read.may_delete {
                deletable += 1;
                add_scaled(&mut mean, seen.ends[read.end].from, sent(read.end));
            }
        }
        if count > 0 {
            mean.iter_mut().for_each(|v| *v *= into / deletable.max(1) as f64);
            add_scaled(&mut z, -(count as f64), &mean);
        }
        let moves = moves(seen, mixing, row, count, AtTarget::Any);
        let thresholds = thresholds(&z, moves);
        let state = State { z, mean, into, thresholds };
        let coefficient =
            |j: usize| own * difference(weights.mixed.row(j), pair) + difference(weights.own.row(j), pair);
        let bent = Bent::new(&state, (0..units).map(coefficient), weights.slope);
        let constant = difference(&weights.last_bias, pair)
            + difference(&of_row.skipped_own.values, pair)
            + own * difference(&of_row.skipped.values, pair);
        let (mut drops, mut rises) = (vec![f64::NEG_INFINITY; seen.rows.len()], vec![0.0; seen.rows.len()]);
        for read in &row.reads {
            if count > 0 && read.may_delete {
                drops[read.end] = bent.gain(-into * seen.ends[read.end].from, sent(read.end), Some(&state.mean));
            }
            let rise = seen.ends[read.end].rise;
            if rise != 0.0 {
                rises[read.end] = bent.gain(into * rise, sent(read.end), None).max(0.0);
            }
        }
        Self { base: bent.base + constant, into, drops, rises }
    }
}

/// The magnitudes of all that a margin adds up, whatever is deleted.
pub(super) fn size(seen: &Seen, weights: &Weights, inputs: &AllInputs, pair: (usize, usize)) -> f64 {
    let mixing = weights.mixing;
    let magnitude = |row: &[f64]| row[pair.0].abs() + row[pair.1].abs();
    let mut total = 0.0;
    let at_target = &seen.rows[0];
    let least = |row: &Row| row.degree.saturating_sub(seen.left.min(row.reads.len()));
    // The largest that any number of deletions makes of a weight; a mean over no neighbours is 0, and over one not.
    let into = |row: &Row| mixing.into(least(row)).max(mixing.into(least(row).max(1)));
    let own = |row: &Row| mixing.own(least(row), row.has_loop).max(mixing.own(least(row).max(1), row.has_loop));
    for (place, row) in seen.rows.iter().enumerate() {
        let of_row = inputs.of(row.node);
        let mut sizes: Vec<f64> = weights.bias.iter().map(|b| b.abs()).collect();
        add_scaled(&mut sizes, 1.0, &of_row.own.sizes);
        add_scaled(&mut sizes, own(row), &of_row.sent.sizes);
        for read in &row.reads {
            let end = &seen.ends[read.end];
            add_scaled(&mut sizes, into(row) * end.largest, &inputs.of(end.node).sent.sizes);
        }
        let of_units = |weight: &crate::dense::Matrix| -> f64 {
            sizes.iter().enumerate().map(|(j, size)| size * magnitude(weight.row(j))).sum()
        };
        let (mixed, skipped) = (of_units(&weights.mixed_sizes), magnitude(&of_row.skipped.sizes));
        if place == 0 {
            total +=
                magnitude(&weights.last_bias) + magnitude(&of_row.skipped_own.sizes) + of_units(&weights.own_sizes);
            total += own(row) * (mixed + skipped);
        } else {
            total += into(at_target) * mixing.from(least(row)) * (mixed + skipped);
        }
    }
    total
}

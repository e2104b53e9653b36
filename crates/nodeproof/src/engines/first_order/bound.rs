//! The bound over all sets of flips around a base point, and the flips that attain it (Lemmas 39 and 40 of `docs/maths.md`).

use std::collections::{BTreeMap, HashSet};
use std::rc::Rc;

use super::base::Base;
use super::bounded::{Bounded, select};
use super::cones::Cones;
use super::linearisation::Linearisation;
use super::lines::Lines;
use super::listing::{Listing, Needs, Rest, Scores};
use super::parts::{ClassParts, Listed};
use super::rows::{ALL, KEPT, Rows};
use super::screening::{Above, Screening};
use super::target::Target;
use super::{LOWER, RAISE};
use crate::certificate::Obstacle;
use crate::dense::Matrix;
use crate::engines::patience::Patience;
use crate::ids::ClassId;
use crate::model::Activation;
use crate::prepare::Order;
use crate::rounding::gamma_after;
use crate::search::{AnyKind, NormalisedRows, Row, norm_above, sort_rows};
use crate::selection::Selection;
use crate::slice::SlicedFlip;

/// By what the threshold of screening falls from one look to the next.
const FALL: f64 = 0.75;
/// The first threshold is at least this part of what each flip may gain for the bound to stay above 0. A bound that is positive then
/// is not looked at again, though it may be far below the margin.
const FIRST_SHARE: f64 = 0.98;
/// The last threshold is this part of the largest bound of a gain.
const SMALLEST_SHARE: f64 = 1e-9;

/// So many rows, and attributes of largest weights, are looked at for a first attack.
const STEEP: (usize, usize) = (16, 64);

/// So often the flips of rows that are divided are listed anew until none can be missing.
const LOOKS: usize = 3;

/// What costs time and what saves it; results are right whatever the numbers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tuning {
    /// Steps of climbing.
    pub(super) steps: usize,
    /// All flips that a counterexample may have are listed if they are no more than this, and so many times those that are anyway.
    pub(super) many: (usize, usize),
    /// Units of which the consequences of knowing their sign are tried.
    pub(super) signs: usize,
}

impl Default for Tuning {
    fn default() -> Self {
        Self { steps: 12, many: (256, 8), signs: 3 }
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
    pub(super) tuning: Tuning,
    /// Whether a bound is left as it is once the listed flips alone keep it from being positive. Branching needs to know the others, too.
    pub(super) gives_up: bool,
    /// For the relaxed forward pass: changes of pre-activations and activations.
    pub(super) changes: Vec<Matrix>,
    pub(super) sums: Vec<f64>,
}

impl Bounding {
    /// Lists flips by screening until the bound is positive, as good as it gets, or `try_flips` says that a witness was found.
    pub(super) fn by_screening(
        &mut self,
        at: At,
        lines: Option<&Lines>,
        (excluded, from): (&[SlicedFlip], Option<f64>),
        patience: &Patience,
        mut try_flips: impl FnMut(&[SlicedFlip]) -> bool,
    ) -> Bounded {
        let At { target, base, .. } = at;
        self.linear.compute(at, lines);
        let (constant, error) = (self.linear.constant, self.linear.error);
        let freed = self.freed(target, base);
        let mut bounded = Bounded { value: constant, error, constant, freed, filled: base.left, ..Bounded::default() };
        if base.left == 0 {
            select(target, base, &mut bounded, 0.0);
            return bounded;
        }
        let of_freed: f64 = bounded.freed.iter().map(|(gain, _)| gain.max(0.0)).sum();
        let share = FIRST_SHARE * (constant - of_freed) / base.left as f64;
        // What a flip gains depends on others of its row where that is divided, and on its entry where that is a real value.
        let is_bits = target.shared.network.graph().kind().is_bits();
        let steepest = if base.flips.is_empty() && is_bits { self.steepest(target) } else { None };
        if let Some((flips, _)) = &steepest
            && lines.is_none()
            && !flips.is_empty()
            && try_flips(flips)
        {
            return bounded.unknown(None);
        }
        self.screening.compute(target, base, &self.linear);
        let largest = self.screening.largest(target, base);
        // As many flips as are left gain at least this.
        let least = steepest.map_or(0.0, |(_, last)| last * LOWER);
        let mut first = share.max(if least > 0.0 { least } else { 0.5 * largest });
        // Where rows are divided, the bound of all gains is far from them, and above the share no bound is positive.
        if base.rows.is_some() && share > 0.0 {
            first = share;
        }
        // With a lower threshold, flips could be missing that the slice leaves out.
        let lowest = self.screening.lowest_threshold(target);
        let mut threshold = from.filter(|&from| from < first).unwrap_or(first);
        if threshold < lowest {
            threshold = lowest;
        }
        if threshold.is_nan() || threshold <= 0.0 {
            // Nothing moves anything, or numbers are too small to tell.
            bounded.threshold = largest;
            bounded.last = largest;
            bounded.value = constant - of_freed - base.left as f64 * largest;
            (bounded.filled, bounded.rest.others) = (base.left, largest);
            return bounded;
        }
        loop {
            let listed = self.screening.above(target, base, &self.linear, threshold, patience);
            let known = listed.and_then(|mut listed| {
                listed.exclude(target, base, excluded);
                self.largest_gains(at, listed, threshold, &mut bounded, patience)
            });
            if let Err(obstacle) = known {
                return bounded.unknown(Some(obstacle));
            }
            if bounded.is_positive() {
                return bounded;
            }
            if !bounded.selected.is_empty() && try_flips(&bounded.selected) {
                return bounded;
            }
            let is_hopeless = self.gives_up && bounded.value + bounded.filled as f64 * threshold <= 0.0;
            if bounded.filled == 0 || is_hopeless {
                return bounded;
            }
            let below = FALL * threshold;
            threshold = [least, lowest].into_iter().filter(|&level| level < threshold).fold(below, f64::max);
            // NaN, too, is no reason to go on.
            let goes_on = threshold > SMALLEST_SHARE * largest && threshold > f64::MIN_POSITIVE;
            if !goes_on {
                return bounded;
            }
        }
    }

    /// `bounded` with every flip that a counterexample may have listed, given what it was computed with.
    pub(super) fn list_needed(
        &mut self,
        at: At,
        lines: &Lines,
        excluded: &[SlicedFlip],
        bounded: &Bounded,
        patience: &Patience,
    ) -> Bounded {
        let At { target, base, .. } = at;
        let mut all = bounded.clone();
        let threshold = bounded.needed() * LOWER;
        self.linear.compute(at, Some(lines));
        self.screening.compute(target, base, &self.linear);
        if let Some(rows) = &base.rows {
            return match self.list_needed_of_rows(at, rows, excluded, bounded, patience) {
                Ok(listed) => listed.unwrap_or(all),
                Err(obstacle) => all.unknown(Some(obstacle)),
            };
        }
        let listed = self.screening.above(target, base, &self.linear, threshold, patience).and_then(|mut listed| {
            listed.exclude(target, base, excluded);
            if listed.flips.len() > self.tuning.many.0 + self.tuning.many.1 * bounded.gains.len() {
                return Ok(None);
            }
            self.gains(target, base, listed.flips.iter().map(|&(_, flip)| flip), patience).map(Some)
        });
        match listed {
            Ok(Some(gains)) => all.gains = gains,
            Ok(None) => return all,
            Err(obstacle) => return all.unknown(Some(obstacle)),
        }
        (all.threshold, all.asked) = (threshold, threshold);
        select(target, base, &mut all, threshold);
        all
    }

    /// The flips with the largest gains by the gradient alone, and the gain of the last if there are as many as may be made.
    pub(super) fn steepest(&mut self, target: &Target) -> Option<(Vec<SlicedFlip>, f64)> {
        let Order::Norms(table) = &target.shared.order else { return None };
        let (rows, query) = self.rows_and_query(target);
        let width = target.shared.network.attribute_weight().columns();
        let (mut z, mut selection) = (vec![0.0; width], Selection::new(0));
        let mut search = AnyKind::new(target.shared, table);
        search.run(target.slice, &rows, query, &mut z, &mut selection);
        let best = selection.best();
        let last = best.last().map_or(0.0, |&(gain, _)| if best.len() == target.most { gain } else { 0.0 });
        Some((best.iter().map(|&(_, flip)| flip).collect(), last))
    }

    /// Flips with large gains by the gradient alone where the ones of rows are divided by their number: additions of attributes with large
    /// weights, and removals.
    pub(super) fn steep_of_rows(&mut self, at: At) -> Vec<SlicedFlip> {
        let At { target, .. } = at;
        let shared = target.shared;
        let (Some(means), Order::Norms(table)) = (&shared.bounds.clean.means, &shared.order) else { return Vec::new() };
        self.linear.compute(at, None);
        let (mut rows, query) = self.rows_and_query(target);
        rows.truncate(STEEP.0);
        let search = NormalisedRows { shared, nodes: target.slice.level(0), means, table, count: STEEP.1 };
        let (mut z, mut selection) = (vec![0.0; shared.network.attribute_weight().columns()], Selection::new(0));
        search.search(&rows, query, &mut z, &mut selection);
        selection.best().iter().map(|&(_, flip)| flip).collect()
    }

    /// The rows of level 0 by falling norms of the gradient, and what writes that of a row, turned around.
    fn rows_and_query<'q>(&'q self, target: &'q Target) -> (Vec<Row>, impl FnMut(usize, &mut [f64]) + 'q) {
        let linear = &self.linear;
        let norms = target.row_norms(|layer, row| norm_above(linear.lambda[layer].row(row)));
        let mut rows: Vec<Row> =
            norms.iter().zip(0..).map(|(norm, position)| Row::of_norm(position, norm * RAISE)).collect();
        sort_rows(&mut rows);
        let query = move |position: usize, z: &mut [f64]| {
            linear.write_gradient(target, position, z);
            z.iter_mut().for_each(|z| *z = -*z);
        };
        (rows, query)
    }

    /// What flips take of the margin of a pair of classes at most, as parts of it. `None` if the margin is not sure to be positive, or at a
    /// limit.
    pub(super) fn parts(&mut self, at: At, listed: Listed, patience: &Patience) -> Option<ClassParts> {
        let At { target, base, .. } = at;
        self.linear.compute(at, None);
        let lead = self.linear.constant - self.linear.error;
        // Not with NaN, either.
        let is_sure = lead > f64::MIN_POSITIVE / listed.floor;
        if !is_sure {
            return None;
        }
        self.screening.compute(target, base, &self.linear);
        let part = |gain: f64| if gain.is_nan() { f64::INFINITY } else { gain.max(0.0) / lead * RAISE };
        let cap = |position| part(self.screening.largest_of_row(target, base, position)).min(listed.floor * RAISE);
        let mut caps: Vec<f64> = (0..target.capacities.len()).map(cap).collect();
        let above = self.screening.above(target, base, &self.linear, listed.floor * lead, patience).ok()?;
        let mut bounds = above.flips;
        bounds.iter_mut().filter(|(bound, _)| bound.is_nan()).for_each(|(bound, _)| *bound = f64::INFINITY);
        let mut flips = Vec::new();
        // Screening goes through them row by row.
        for of_row in bounds.chunk_by_mut(|a, b| a.1.0 == b.1.0) {
            let mut kept = &of_row[..];
            if of_row.len() > listed.most {
                let falling = |a: &(f64, SlicedFlip), b: &(f64, SlicedFlip)| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1));
                let (before, &mut (bound, (position, _)), _) = of_row.select_nth_unstable_by(listed.most, falling);
                (kept, caps[position as usize]) = (before, part(bound));
            }
            flips.extend(kept.iter().map(|&(bound, flip)| (flip, part(self.gain(target, base, flip).min(bound)))));
        }
        self.cones.clear();
        Some(ClassParts { caps, flips })
    }

    /// The bound over sets of listed flips alone.
    pub(super) fn of_list(
        &mut self,
        at: At,
        lines: Option<&Lines>,
        listed: &[SlicedFlip],
        patience: &Patience,
    ) -> Bounded {
        let At { target, base, .. } = at;
        self.linear.compute(at, lines);
        let (constant, error) = (self.linear.constant, self.linear.error);
        let mut bounded = Bounded { value: constant, error, constant, filled: base.left, ..Bounded::default() };
        if let Err(obstacle) = self.set_gains(target, base, listed.iter().copied(), &mut bounded, patience) {
            return bounded.unknown(Some(obstacle));
        }
        bounded.freed = self.freed(target, base);
        if let Some(rows) = &base.rows {
            let emptied = rows.emptied_by(target, base, listed);
            bounded.emptied = self.emptied(target, base, emptied.into_iter());
        }
        bounded.threshold = f64::NEG_INFINITY;
        select(target, base, &mut bounded, 0.0);
        bounded
    }

    /// The bound over sets of the flips in `listed`, which come with bounds of their gains, and of others, which gain at most
    /// `threshold`. Gains are computed by falling bounds, until none of the rest can be among the largest, or the bound is positive.
    fn largest_gains(
        &mut self,
        At { target, base, .. }: At,
        above: Above,
        threshold: f64,
        bounded: &mut Bounded,
        patience: &Patience,
    ) -> Result<(), Obstacle> {
        if let Some(rows) = &base.rows {
            return self.largest_of_rows((target, base, rows), above, threshold, bounded, patience);
        }
        let mut listed = above.flips;
        listed.iter_mut().filter(|(bound, _)| bound.is_nan()).for_each(|(bound, _)| *bound = f64::INFINITY);
        sort_falling(&mut listed);
        bounded.gains.clear();
        bounded.asked = threshold;
        let mut rest = &listed[..];
        loop {
            if let Some(obstacle) = patience.obstacle(self.cones.bytes() + 2 * size_of_val(&listed[..])) {
                return Err(obstacle);
            }
            let next;
            (next, rest) = rest.split_at(rest.len().min(base.left.max(bounded.gains.len())));
            bounded.gains.extend(self.gains(target, base, next.iter().map(|&(_, flip)| flip), patience)?);
            sort_falling(&mut bounded.gains);
            bounded.threshold = rest.first().map_or(threshold, |&(bound, _)| bound.max(threshold));
            select(target, base, bounded, bounded.threshold);
            if rest.is_empty() || bounded.filled == 0 || bounded.is_positive() {
                return Ok(());
            }
        }
    }

    /// The same where the ones of rows are divided by their number: gains are computed of flips that would be selected, as long as that
    /// changes the bound.
    fn largest_of_rows(
        &mut self,
        (target, base, rows): (&Target, &Base, &Rows),
        above: Above,
        threshold: f64,
        bounded: &mut Bounded,
        patience: &Patience,
    ) -> Result<(), Obstacle> {
        bounded.gains.clear();
        let mut scores = Scores::default();
        bounded.scores = Rc::default();
        (bounded.asked, bounded.threshold) = (threshold, threshold);
        self.take_over(target, base, above, threshold, bounded);
        let mut listing = Listing::new(target, base, rows, bounded);
        let mut known: HashSet<SlicedFlip> = HashSet::new();
        loop {
            if let Some(obstacle) = patience.obstacle(self.cones.bytes() + bounded.rest.bytes()) {
                return Err(obstacle);
            }
            listing.select(target, base, rows, bounded);
            let moved = bounded.moved().filter(|flip| flip.1 != ALL).chain(bounded.selected.iter().copied());
            let mut unknown: Vec<SlicedFlip> = moved.filter(|&flip| known.insert(flip)).collect();
            if unknown.is_empty() || bounded.is_positive() {
                break;
            }
            unknown.sort_unstable();
            for &flip in &unknown {
                let gain = self.score(target, base, rows, flip, &mut scores);
                bounded.gains.extend((flip.1 < KEPT).then_some((gain, flip)));
            }
            listing.learn(&unknown, &scores);
        }
        let Rest { additions, removals, kept, .. } = &mut bounded.rest;
        for flips in [additions, removals, kept] {
            flips.retain(|(_, flip)| scores.of(*flip).is_none());
        }
        bounded.scores = Rc::new(scores);
        sort_falling(&mut bounded.gains);
        Ok(())
    }

    /// Has a bound know what screening says of flips, and what rows gain that lose all of their ones.
    fn take_over(&mut self, target: &Target, base: &Base, above: Above, others: f64, bounded: &mut Bounded) {
        let Above { flips: additions, removals, kept, floors, emptied } = above;
        bounded.emptied = self.emptied(target, base, emptied.into_iter());
        bounded.rest = Rest { additions, removals, kept, floors, others };
    }

    /// `bounded` with every flip that a counterexample may have listed, where the ones of rows are divided by their number; `None` if these
    /// are too many, or cannot be told.
    fn list_needed_of_rows(
        &mut self,
        At { target, base, .. }: At,
        rows: &Rows,
        excluded: &[SlicedFlip],
        bounded: &Bounded,
        patience: &Patience,
    ) -> Result<Option<Bounded>, Obstacle> {
        let (threshold, mut all) = (bounded.needed() * LOWER, bounded.clone());
        let many = self.tuning.many.0 + self.tuning.many.1 * bounded.gains.len();
        let mut known = Listing::new(target, base, rows, bounded).needs(base, bounded);
        for _ in 0..LOOKS {
            let floor = |position: u32| {
                let before = bounded.rest.floors.get(&position).copied().unwrap_or(f64::INFINITY);
                let floor = known.get(&position).map_or(f64::INFINITY, Needs::addition).min(before);
                floor.is_finite().then_some(floor)
            };
            let above =
                self.screening.above_floors(target, base, &self.linear, (threshold, &floor), 4 * many, patience)?;
            let Some(mut above) = above else { return Ok(None) };
            above.exclude(target, base, excluded);
            all.gains.clear();
            self.take_over(target, base, above, threshold, &mut all);
            let needs = Listing::new(target, base, rows, &all).needs(base, &all);
            let is_listed =
                |(position, floor): (&u32, &f64)| needs.get(position).is_none_or(|of| of.addition() >= *floor);
            if all.rest.floors.iter().all(is_listed) {
                let Rest { additions, removals, .. } = std::mem::take(&mut all.rest);
                let is_met = |&(score, flip): &(f64, SlicedFlip), adds: bool| {
                    needs.get(&flip.0).is_none_or(|of| of.is_met_by(score, adds)).then_some(flip)
                };
                let added = additions.iter().filter_map(|flip| is_met(flip, true));
                let removed = removals.iter().filter_map(|flip| is_met(flip, false));
                let flips: Vec<SlicedFlip> = added.chain(removed).collect();
                if flips.len() > many {
                    return Ok(None);
                }
                self.set_gains(target, base, flips.into_iter(), &mut all, patience)?;
                (all.threshold, all.asked, all.is_complete) = (threshold, threshold, true);
                select(target, base, &mut all, 0.0);
                return Ok(Some(all));
            }
            known = needs;
        }
        Ok(None)
    }

    /// Has a bound know the gains of flips, and where the ones of rows are divided by their number, their scores.
    pub(super) fn set_gains(
        &mut self,
        target: &Target,
        base: &Base,
        listed: impl ExactSizeIterator<Item = SlicedFlip>,
        bounded: &mut Bounded,
        patience: &Patience,
    ) -> Result<(), Obstacle> {
        let Some(rows) = &base.rows else {
            bounded.gains = self.gains(target, base, listed, patience)?;
            return Ok(());
        };
        let mut scores = Scores::default();
        let listed: Vec<SlicedFlip> = listed.collect();
        let halved = rows.halved_by(target, base, &listed).into_iter();
        let kept = halved.flat_map(|position| rows.kept(target, base, position));
        bounded.gains.clear();
        for flip in listed.iter().copied().chain(kept) {
            if let Some(obstacle) =
                patience.obstacle(self.cones.bytes() + scores.bytes() + 4 * size_of_val(&listed[..]))
            {
                return Err(obstacle);
            }
            let gain = self.score(target, base, rows, flip, &mut scores);
            bounded.gains.extend((flip.1 < KEPT).then_some((gain, flip)));
        }
        sort_falling(&mut bounded.gains);
        bounded.scores = Rc::new(scores);
        Ok(())
    }

    /// The gain of a flip where its row is left with as few ones as can be. What it scores then, and otherwise, is added to `scores`: with one
    /// hidden layer, of whose units it moves u by `V_u / m'`,
    ///
    /// ```text
    /// m' g(1 / m') = −σ w_n · (W_d − μ_n) + Σ_u (1 − β) |α_u| ς_u relu(V_u − θ_u m'),
    /// ```
    ///
    /// and with more, at most what it scores with the fewest. Ones that are left, of m, have `θ_u max(m', m − m')` in place of `θ_u m'`.
    pub(super) fn score(
        &mut self,
        target: &Target,
        base: &Base,
        rows: &Rows,
        flip: SlicedFlip,
        scores: &mut Scores,
    ) -> f64 {
        let fewest = rows.fewest_with(target, base, flip);
        let possible = rows.possible(base, flip.0);
        if target.hidden() != 1 {
            let gain = self.gain(target, base, flip);
            scores.push(flip, possible.map(|_| gain * fewest));
            return gain;
        }
        let (least, most) = possible.into_inner();
        let linear = self.linear.linear_gain(target, base, flip) * fewest;
        let rest = 1.0 - target.shared.network.layers()[0].activation().slope();
        if flip.1 >= KEPT {
            let ones = rows.ones(flip.0);
            let (against, moves) = (&self.linear.against, self.cones.moves(target, base, flip));
            let score = |left: usize| {
                let times = left.max(ones.saturating_sub(left)) as f64;
                let excess = moves.iter().map(|&(unit, (lower, upper))| {
                    let of = &base.units[0].values()[unit as usize];
                    let beyond = of.towards(lower, upper) * fewest - of.threshold * times;
                    against[unit as usize] * of.share * if beyond < 0.0 { 0.0 } else { beyond }
                });
                linear + rest * excess.sum::<f64>()
            };
            scores.push(flip, (least..=most).map(score));
            return 0.0;
        }
        // Sums over the units that are beyond their threshold up to each number of ones, and no further.
        let mut bends = vec![(0.0, 0.0); most + 1 - least];
        for &(unit, (lower, upper)) in self.cones.moves(target, base, flip) {
            let of = &base.units[0].values()[unit as usize];
            let (weight, by) =
                (rest * self.linear.against[unit as usize] * of.share, of.towards(lower, upper) * fewest);
            let last = (by / of.threshold).min(most as f64);
            // Nothing is sure of what is not a number.
            if weight == 0.0 || last < least as f64 || by <= 0.0 {
                continue;
            }
            let bend = &mut bends[last as usize - least];
            *bend = (bend.0 + weight * by, bend.1 + weight * of.threshold);
        }
        let mut sums = (0.0, 0.0);
        for (place, bend) in bends.iter_mut().enumerate().rev() {
            sums = (sums.0 + bend.0, sums.1 + bend.1);
            bend.0 = linear + sums.0 - sums.1 * (least + place) as f64;
        }
        scores.push(flip, bends.iter().map(|bend| bend.0));
        let gain = bends[fewest as usize - least].0 / fewest;
        if gain.is_nan() { f64::INFINITY } else { gain }
    }

    /// The gains of flips, the largest first.
    pub(super) fn gains(
        &mut self,
        target: &Target,
        base: &Base,
        listed: impl ExactSizeIterator<Item = SlicedFlip>,
        patience: &Patience,
    ) -> Result<Vec<(f64, SlicedFlip)>, Obstacle> {
        let mut gains = Vec::with_capacity(listed.len());
        let bytes = listed.len() * size_of::<(f64, SlicedFlip)>();
        for (i, flip) in listed.enumerate() {
            if i % 4 == 0
                && let Some(obstacle) = patience.obstacle(self.cones.bytes() + bytes)
            {
                return Err(obstacle);
            }
            gains.push((self.gain(target, base, flip), flip));
        }
        sort_falling(&mut gains);
        Ok(gains)
    }

    /// The gain of a flip.
    pub(super) fn gain(&mut self, target: &Target, base: &Base, flip: SlicedFlip) -> f64 {
        let excess = self.linear.excess_gain(self.cones.of(target, base, flip));
        let gain = self.linear.linear_gain(target, base, flip) + excess;
        if gain.is_nan() { f64::INFINITY } else { gain }
    }

    /// What the flips that do not count gain.
    pub(super) fn freed(&mut self, target: &Target, base: &Base) -> Vec<(f64, SlicedFlip)> {
        base.freed.iter().map(|&flip| (self.gain(target, base, flip), flip)).collect()
    }

    /// What rows gain that lose all of their ones.
    pub(super) fn emptied(
        &mut self,
        target: &Target,
        base: &Base,
        positions: impl Iterator<Item = u32>,
    ) -> Vec<(u32, f64)> {
        positions.map(|position| (position, self.gain(target, base, (position, ALL)))).collect()
    }

    /// `base` with the shares of units that suit the selected flips best; what is known of its flips is forgotten.
    pub(super) fn tuned(&mut self, target: &Target, base: &Base, bounded: &Bounded) -> Base {
        let selected = bounded.moves(target, base);
        let mut moves: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
        for &(flip, _) in &selected {
            for &(unit, _) in self.cones.of(target, base, flip) {
                if self.linear.against[unit as usize] > 0.0 {
                    moves.entry(unit).or_default();
                }
            }
        }
        let keep_moves = self.cones.keep_moves;
        for &(flip, part) in &selected {
            for &(unit, (lower, upper)) in self.cones.moves(target, base, flip) {
                if let Some(moves) = moves.get_mut(&unit) {
                    let (layer, at) = target.unit(unit);
                    moves.push(part * base.units[layer].values()[at].towards(lower, upper));
                }
            }
        }
        let mut tuned = base.clone();
        for (unit, moves) in moves {
            let (layer, at) = target.unit(unit);
            let units = target.shared.network.layers()[layer].units();
            tuned.tune(target, layer, at / units, at % units, &moves);
        }
        self.cones.clear();
        self.cones.keep_moves = keep_moves;
        tuned
    }

    /// Ends of all units over the sets of `listed` flips (Lemma 43), and phases where they leave no choice; whether there can be such
    /// sets at all.
    pub(super) fn narrow(
        &mut self,
        target: &Target,
        base: &Base,
        listed: &[SlicedFlip],
        lines: &mut Lines,
        patience: &Patience,
    ) -> Result<bool, Obstacle> {
        let emptied = base.rows.as_ref().map_or_else(Vec::new, |rows| rows.emptied_by(target, base, listed));
        let all = || listed.iter().copied().chain(emptied.iter().map(|&position| (position, ALL)));
        let mut counts = vec![0u32; self.linear.against.len() + 1];
        for flip in all() {
            let moves = self.cones.moves(target, base, flip);
            moves.iter().for_each(|&(unit, _)| counts[unit as usize + 1] += 1);
            if let Some(obstacle) = patience.obstacle(self.cones.bytes()) {
                return Err(obstacle);
            }
        }
        for unit in 1..counts.len() {
            counts[unit] += counts[unit - 1];
        }
        let total = counts[counts.len() - 1] as usize;
        if let Some(obstacle) = patience.obstacle(self.cones.bytes() + total * size_of::<(f64, f64)>()) {
            return Err(obstacle);
        }
        let mut sorted = vec![(0.0, 0.0); total];
        let mut next = counts.clone();
        for flip in all() {
            for &(unit, range) in self.cones.moves(target, base, flip) {
                sorted[next[unit as usize] as usize] = range;
                next[unit as usize] += 1;
            }
        }
        // What the flips that do not count move each unit by, up and down.
        let mut freed = vec![(0.0, 0.0); if base.freed.is_empty() { 0 } else { counts.len() }];
        for &flip in &base.freed {
            for &(unit, (lower, upper)) in self.cones.moves(target, base, flip) {
                let (up, down) = &mut freed[unit as usize];
                *up += if upper.is_nan() { f64::INFINITY } else { upper.max(0.0) };
                *down += if lower.is_nan() { f64::INFINITY } else { (-lower).max(0.0) };
            }
        }
        let gamma = gamma_after(target.roundings());
        let mut side: Vec<f64> = Vec::new();
        let mut most = |range: &[(f64, f64)], of: fn(&(f64, f64)) -> f64| {
            side.clear();
            let moves = range.iter().map(of).map(|x| if x.is_nan() { f64::INFINITY } else { x });
            side.extend(moves.filter(|&x| x > 0.0));
            if side.len() > base.left {
                side.select_nth_unstable_by(base.left, |a, b| b.total_cmp(a));
                side.truncate(base.left);
            }
            side.iter().sum::<f64>()
        };
        let layers = target.shared.network.layers().iter().enumerate().take(target.hidden());
        for (layer, of) in layers.filter(|(_, of)| of.activation() != Activation::None) {
            let (first, units) = (target.first_unit[layer], of.units());
            let of_base = base.units[layer].values();
            for (at, line) in lines[layer].values_mut().iter_mut().enumerate() {
                if of_base[at].share == 0.0 {
                    line.phase = Some(of_base[at].on);
                    continue;
                }
                let range = &sorted[counts[first + at] as usize..counts[first + at + 1] as usize];
                let (z, error) = (base.z[layer].values()[at], target.error(layer, at / units, at % units));
                let of_freed = freed.get(first + at).copied().unwrap_or_default();
                let up = most(range, |&(_, upper)| upper) + of_freed.0;
                let down = most(range, |&(lower, _)| -lower) + of_freed.1;
                let reach = target.reach[layer].values()[at] * base.moves_left() as f64;
                let rounding = gamma * (reach + up + down + z.abs());
                let slack = 2.0 * error + rounding + f64::MIN_POSITIVE;
                line.ends = (line.ends.0.max(z - down - slack), line.ends.1.min(z + up + slack));
                match line.phase {
                    Some(true) if line.ends.1 < 0.0 => return Ok(false),
                    Some(false) if line.ends.0 > 0.0 => return Ok(false),
                    None if line.ends.0 >= 0.0 => line.phase = Some(true),
                    None if line.ends.1 <= 0.0 => line.phase = Some(false),
                    _ => {}
                }
            }
        }
        Ok(true)
    }
}

/// Sorts by falling gains or bounds, and flips that are level.
fn sort_falling(flips: &mut [(f64, SlicedFlip)]) {
    flips.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
}

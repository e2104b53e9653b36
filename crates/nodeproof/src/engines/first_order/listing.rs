//! The flips of rows whose ones are divided by their number, row by row, and the best of them (Lemmas 46 to 48 of `docs/maths.md`).

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap, HashSet};

use super::base::Base;
use super::bounded::Bounded;
use super::rows::{ALL, KEPT, Rows, most_flips};
use super::target::Target;
use crate::selection::{OverRows, RowGains, share};
use crate::slice::SlicedFlip;

/// Less than one in so many are a few.
const FEW: usize = 8;

/// What is known of flips whose gains were not computed.
#[derive(Debug, Clone, Default)]
pub(super) struct Rest {
    /// Listed flips, with bounds of their scores.
    pub(super) additions: Vec<(f64, SlicedFlip)>,
    pub(super) removals: Vec<(f64, SlicedFlip)>,
    /// Moves of the ones that are left of a row, likewise.
    pub(super) kept: Vec<(f64, SlicedFlip)>,
    /// Rows that were looked at: their removals are listed, and additions that are not score at most this.
    pub(super) floors: BTreeMap<u32, f64>,
    /// Flips of other rows gain at most so much each.
    pub(super) others: f64,
}

impl Rest {
    /// Bytes that it takes, about.
    pub(super) fn bytes(&self) -> usize {
        2 * (size_of_val(&self.additions[..]) + size_of_val(&self.removals[..]) + size_of_val(&self.kept[..]))
    }
}

/// What flips score for each number of ones that their row can be left with, from the fewest on ([`Rows::possible`]).
#[derive(Debug, Clone, Default)]
pub(super) struct Scores {
    /// Where those of a flip begin.
    starts: HashMap<SlicedFlip, u32>,
    values: Vec<f64>,
}

impl Scores {
    /// Adds those of a flip.
    pub(super) fn push(&mut self, flip: SlicedFlip, scores: impl Iterator<Item = f64>) {
        self.starts.insert(flip, self.values.len() as u32);
        // What is not a number counts as much as anything.
        self.values.extend(scores.map(|score| if score.is_nan() { f64::INFINITY } else { score }));
    }

    /// Bytes that they take, about.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&self.values[..]) + self.starts.len() * size_of::<(SlicedFlip, u32)>()
    }

    /// Where those of a flip begin, if they are known.
    pub(super) fn of(&self, flip: SlicedFlip) -> Option<u32> {
        self.starts.get(&flip).copied()
    }

    /// That which begins there, for the `place`-th of the numbers of ones that the row can be left with.
    #[inline]
    pub(super) fn at(&self, start: u32, place: usize) -> f64 {
        self.values[start as usize + place]
    }
}

/// By falling scores, and flips that are level by their number.
fn falling(a: &(f64, SlicedFlip), b: &(f64, SlicedFlip)) -> Ordering {
    b.0.total_cmp(&a.0).then(b.1.cmp(&a.1))
}

/// Inserts a score into a sorted list of at most so many of the largest.
#[inline]
fn insert(of: (f64, SlicedFlip), count: usize, sorted: &mut Vec<(f64, SlicedFlip)>) {
    let is_last = sorted.last().is_none_or(|last| falling(last, &of).is_lt());
    if sorted.len() < count || !is_last {
        sorted.truncate(count - 1);
        sorted.insert(sorted.partition_point(|other| falling(other, &of).is_lt()), of);
    }
}

/// Sorts so many of the largest scores into a list. A few of many are inserted one by one.
fn sort_largest(
    scores: impl ExactSizeIterator<Item = (f64, SlicedFlip)>,
    count: usize,
    sorted: &mut Vec<(f64, SlicedFlip)>,
) {
    sorted.clear();
    if count > scores.len() / FEW {
        sorted.extend(scores);
        sorted.sort_unstable_by(falling);
        sorted.truncate(count);
        return;
    }
    scores.for_each(|of| insert(of, count, sorted));
}

/// The additions of one row, or its removals, or the ones that are left of it.
#[derive(Debug, Clone, Default)]
struct Side {
    /// With bounds of their scores: so many of the largest, these first, and others.
    bounds: Vec<(f64, SlicedFlip)>,
    sorted: usize,
    /// Those whose scores are known, and where these begin.
    known: Vec<(SlicedFlip, u32)>,
    /// The largest of these scores, sorted, for each number of ones that the row can be left with.
    ranked: Vec<Vec<(f64, SlicedFlip)>>,
    /// Most of either that are asked for.
    most: usize,
    /// Others score at most this, if it is positive.
    floor: f64,
}

impl Side {
    /// How many there may be, of at most so many.
    fn len(&self, most: usize) -> usize {
        if self.floor > 0.0 { most } else { most.min(self.listed()) }
    }

    /// How many are listed.
    fn listed(&self) -> usize {
        self.bounds.len() + self.known.len()
    }

    /// Those that are listed.
    fn flips(&self) -> impl Iterator<Item = SlicedFlip> + '_ {
        self.bounds.iter().map(|of| of.1).chain(self.known.iter().map(|of| of.0))
    }

    /// Sorts bounds and scores, at least as many as are asked for.
    fn sort(&mut self, scores: &Scores, places: usize) {
        self.sort_bounds();
        self.ranked.resize_with(places, Vec::new);
        for (place, ranked) in self.ranked.iter_mut().enumerate() {
            let known = self.known.iter().map(|&(flip, start)| (scores.at(start, place), flip));
            sort_largest(known, self.most, ranked);
        }
    }

    fn sort_bounds(&mut self) {
        self.sorted = self.bounds.len().min(self.most.saturating_mul(2));
        if self.sorted < self.bounds.len() && self.sorted > 0 {
            self.bounds.select_nth_unstable_by(self.sorted - 1, falling);
        }
        self.bounds[..self.sorted].sort_unstable_by(falling);
    }

    /// Has it know what a flip of it scores.
    fn learn(&mut self, flip: SlicedFlip, start: u32, scores: &Scores) {
        let Some(place) = self.bounds.iter().position(|of| of.1 == flip) else { return };
        self.bounds.remove(place);
        self.known.push((flip, start));
        for (place, ranked) in self.ranked.iter_mut().enumerate() {
            insert((scores.at(start, place), flip), self.most, ranked);
        }
        self.sorted -= usize::from(place < self.sorted);
        if self.sorted < self.most.min(self.bounds.len()) {
            self.sort_bounds();
        }
    }

    /// Calls `take` with the largest scores, as many as are asked for, and their flips where these are listed.
    fn largest(&self, place: usize, count: usize, mut take: impl FnMut(f64, Option<SlicedFlip>)) {
        debug_assert!(count <= self.most, "no more are sorted");
        let (mut known, mut bounds) =
            (self.ranked[place].iter().peekable(), self.bounds[..self.sorted].iter().peekable());
        for _ in 0..self.len(count) {
            let bound = bounds.peek().map_or(f64::NEG_INFINITY, |of| of.0);
            let next = known.next_if(|of| of.0 >= bound).or_else(|| bounds.next()).or_else(|| known.next());
            match next {
                Some(&(score, flip)) if self.floor <= 0.0 || score > self.floor => take(score, Some(flip)),
                _ => take(self.floor, None),
            }
        }
    }
}

/// The flips of one row.
#[derive(Debug, Clone, Default)]
struct Row {
    position: u32,
    ones: usize,
    /// The fewest ones that it can be left with, but for none, and the most.
    possible: (usize, usize),
    /// Most flips in it.
    capacity: usize,
    additions: Side,
    removals: Side,
    /// Moves of the ones that are left, of those that may be removed and of those that may not; nothing if too little is known of them.
    kept: Side,
    forced: Side,
    /// What it gains to lose all ones.
    emptied: Option<f64>,
    gains: RowGains,
}

/// Sums of the largest scores of additions, removals and what is kept, of 0, 1, … of them.
#[derive(Debug, Default)]
struct Sums {
    added: Vec<f64>,
    removed: Vec<f64>,
    kept: Vec<f64>,
    forced: Vec<f64>,
}

impl Row {
    fn new(position: u32, ones: usize, possible: (usize, usize), capacity: usize) -> Self {
        let [additions, removals, kept] = [(); 3].map(|()| Side { most: capacity, ..Side::default() });
        let forced = Side { most: usize::MAX, ..Side::default() };
        let (emptied, gains) = Default::default();
        Self { position, ones, possible, capacity, additions, removals, kept, forced, emptied, gains }
    }

    /// How many numbers of ones it can be left with.
    fn places(&self) -> usize {
        self.possible.1 + 1 - self.possible.0
    }

    /// The sums of scores where so many ones are left.
    fn sum_up(&self, left: usize, sums: &mut Sums) {
        let (place, Sums { added, removed, kept, forced }) = (left - self.possible.0, sums);
        let (most, all) = (self.capacity, self.forced.listed());
        let sides = [(&self.additions, added, most), (&self.removals, removed, most), (&self.kept, kept, most)];
        for (side, sums, most) in sides.into_iter().chain([(&self.forced, forced, all)]) {
            let mut sum = 0.0;
            sums.clear();
            sums.push(sum);
            side.largest(place, most, |score, _| {
                sum += score;
                sums.push(sum);
            });
        }
    }

    /// The least sum of scores of moves that stand for so many additions and removals of the row: those of the removals, or, if these are as
    /// many, those of the ones that are left of what it had.
    fn sum_of(&self, sums: &Sums, (added, removed): (usize, usize)) -> Option<f64> {
        let of_flips = sums.added.get(added)? + sums.removed.get(removed)?;
        Some(match self.of_kept(sums, (added, removed)) {
            Some(of_kept) if of_kept < of_flips => of_kept,
            _ => of_flips,
        })
    }

    /// The sum of scores of additions and of the ones that are left, if these are no more than the removals.
    fn of_kept(&self, sums: &Sums, (added, removed): (usize, usize)) -> Option<f64> {
        let kept = self.ones.checked_sub(removed).filter(|&kept| kept <= removed)?;
        let chosen = kept.checked_sub(self.forced.listed())?;
        Some(sums.added.get(added)? + sums.kept.get(chosen)? + sums.forced.last()?)
    }

    /// Sorts what it has, as far as it is asked for.
    fn sort(&mut self, scores: &Scores) {
        let places = self.places();
        for side in [&mut self.additions, &mut self.removals, &mut self.kept, &mut self.forced] {
            side.sort(scores, places);
        }
    }

    /// Has it know which of its ones cannot be removed: those without a listed removal. They are not sorted yet.
    fn force(&mut self) {
        let Self { kept, forced, removals, .. } = self;
        let removable: Vec<SlicedFlip> = removals.flips().collect();
        let is_forced = |flip: SlicedFlip| !removable.contains(&(flip.0, flip.1 & !KEPT));
        forced.bounds.extend(kept.bounds.extract_if(.., |of| is_forced(of.1)));
        forced.known.extend(kept.known.extract_if(.., |of| is_forced(of.0)));
    }

    /// Each number of additions and removals, together at most `flips`, that leave so many ones.
    fn ways(&self, sums: &Sums, left: usize, flips: usize) -> impl Iterator<Item = (usize, usize)> + use<> {
        let (ones, most_added, most_removed) = (self.ones, sums.added.len() - 1, sums.removed.len() - 1);
        let ways = (ones.saturating_sub(left)..=most_removed).map(move |removed| (left + removed - ones, removed));
        ways.take_while(move |&(added, removed)| added <= most_added && added + removed <= flips)
    }

    /// Finds the best for each number of flips.
    fn settle(&mut self, sums: &mut Sums) {
        let listed = self.additions.len(self.capacity) + self.removals.len(self.capacity);
        let listed = listed.max(if self.emptied.is_some() { self.ones } else { 0 });
        let mut gains = RowGains::none(self.capacity.min(listed));
        let (least, most) = self.possible;
        let varies = self.varies();
        for left in least..=most {
            if varies || left == least {
                self.sum_up(left, sums);
            }
            for (added, removed) in self.ways(sums, left, self.capacity) {
                let Some(sum) = self.sum_of(sums, (added, removed)) else { break };
                gains.offer(added + removed, sum / left as f64, (added as u32, removed as u32));
            }
        }
        gains.settle(self.emptied.map(|gain| (self.ones, gain)));
        self.gains = gains;
    }

    /// Whether scores depend on how many ones are left.
    fn varies(&self) -> bool {
        [&self.additions, &self.removals, &self.kept, &self.forced].iter().any(|side| !side.known.is_empty())
    }

    /// The flips behind so many additions and removals, fewer where some of them are not listed, and the moves that stand for them, if any one
    /// is left.
    fn chosen(&self, (added, removed): (usize, usize)) -> Option<(Vec<SlicedFlip>, Vec<SlicedFlip>)> {
        let left = (self.ones + added).checked_sub(removed).filter(|&left| left > 0)?;
        let (place, mut sums, mut flips) = (left - self.possible.0, Sums::default(), Vec::new());
        self.sum_up(left, &mut sums);
        self.additions.largest(place, added, |_, flip| flips.extend(flip));
        let added_moves = flips.len();
        self.removals.largest(place, removed, |_, flip| flips.extend(flip));
        let way = (added, removed);
        let of_flips = sums.added.get(added).zip(sums.removed.get(removed)).map(|(a, r)| a + r);
        if !self.of_kept(&sums, way).zip(of_flips).is_some_and(|(of_kept, of_flips)| of_kept < of_flips) {
            return Some((flips.clone(), flips));
        }
        let mut moves: Vec<SlicedFlip> = flips[..added_moves].iter().copied().chain(self.forced.flips()).collect();
        let chosen = self.ones - removed - self.forced.listed();
        self.kept.largest(place, chosen, |_, flip| moves.extend(flip));
        flips.truncate(added_moves);
        flips.extend(self.removals.flips().filter(|flip| !moves.contains(&(flip.0, flip.1 | KEPT))));
        Some((flips, moves))
    }

    /// What flips of the row must score, given what other rows gain for each number of flips.
    fn needs(&self, others: &[f64], enough: f64, sums: &mut Sums) -> Needs {
        let (least, most) = self.possible;
        let none = || vec![f64::INFINITY; self.places()];
        let never = (f64::INFINITY, f64::INFINITY);
        let mut needs = Needs { additions: none(), removals: none(), least: never, emptied: false };
        let Some(flips) = self.capacity.checked_sub(1) else { return needs };
        let varies = self.varies();
        for left in least..=most {
            let place = left - least;
            if varies || left == least {
                self.sum_up(left, sums);
            }
            // With a further flip of the row, which is not among these.
            for (needs, adds) in [(&mut needs.additions, true), (&mut needs.removals, false)] {
                let before = if adds { left - 1 } else { left + 1 };
                for (added, removed) in self.ways(sums, before, flips) {
                    let needed = (enough - others[others.len() - 2 - added - removed]) * left as f64;
                    let with = if adds { (added + 1, removed) } else { (added, removed + 1) };
                    if self.of_kept(sums, with).is_some_and(|of_kept| of_kept < needed) {
                        continue;
                    }
                    let score = needed - sums.added[added] - sums.removed[removed];
                    needs[place] = if score.is_nan() { f64::NEG_INFINITY } else { needs[place].min(score) };
                }
            }
        }
        let least = |needs: &[f64]| needs.iter().copied().fold(f64::INFINITY, f64::min);
        needs.least = (least(&needs.additions), least(&needs.removals));
        if let Some(gain) = self.emptied {
            let too_little = gain + others[others.len() - 1 - self.ones.min(others.len() - 1)] < enough;
            needs.emptied = !too_little;
        }
        needs
    }
}

/// What flips of a row must score in order to be in a set that gains enough, for each number of ones that it can be left with.
#[derive(Debug, Clone)]
pub(super) struct Needs {
    additions: Vec<f64>,
    removals: Vec<f64>,
    /// The least of both.
    least: (f64, f64),
    /// Whether it may lose all of its ones.
    emptied: bool,
}

impl Needs {
    /// What additions must score at least.
    pub(super) fn addition(&self) -> f64 {
        self.least.0
    }

    /// Whether a flip that scores at most this may be in a set that gains enough.
    pub(super) fn is_met_by(&self, score: f64, adds: bool) -> bool {
        let cannot = score < if adds { self.least.0 } else { self.least.1 };
        !cannot || (!adds && self.emptied)
    }

    /// The same of one that scores this for each number of ones.
    fn is_met(&self, score: impl Fn(usize) -> f64, adds: bool) -> bool {
        let needs = if adds { &self.additions } else { &self.removals };
        let cannot = needs.iter().enumerate().all(|(place, need)| score(place) < *need);
        !cannot || (!adds && self.emptied)
    }
}

/// All rows with listed flips.
#[derive(Debug)]
pub(super) struct Listing {
    rows: Vec<Row>,
    sums: Sums,
}

impl Listing {
    /// The flips of a bound: those with gains, and the rest.
    pub(super) fn new(target: &Target, base: &Base, rows: &Rows, bounded: &Bounded) -> Self {
        let Rest { additions, removals, kept, floors, .. } = &bounded.rest;
        let mut places: Vec<u32> = vec![u32::MAX; base.capacities.len()];
        let mut all: Vec<Row> = Vec::new();
        let mut of = |all: &mut Vec<Row>, position: u32| {
            let place = &mut places[position as usize];
            if *place == u32::MAX {
                let (ones, capacity) = (rows.ones(position), most_flips(base, position));
                let possible = rows.possible(base, position).into_inner();
                all.push(Row::new(position, ones, possible, capacity));
                *place = all.len() as u32 - 1;
            }
            *place as usize
        };
        for &(gain, flip) in &bounded.gains {
            let (place, adds) = (of(&mut all, flip.0), target.shared.change(target.slice, flip) > 0.0);
            let side = if adds { &mut all[place].additions } else { &mut all[place].removals };
            match bounded.scores.of(flip) {
                Some(start) => side.known.push((flip, start)),
                None => side.bounds.push((gain * rows.fewest(base, flip.0, adds), flip)),
            }
        }
        for &flip in additions {
            let place = of(&mut all, flip.1.0);
            all[place].additions.bounds.push(flip);
        }
        for &flip in removals {
            let place = of(&mut all, flip.1.0);
            all[place].removals.bounds.push(flip);
        }
        for &flip in kept {
            let place = of(&mut all, flip.1.0);
            all[place].kept.bounds.push(flip);
        }
        for (&position, &floor) in floors {
            let place = of(&mut all, position);
            all[place].additions.floor = floor;
        }
        for &(position, gain) in &bounded.emptied {
            let place = of(&mut all, position);
            all[place].emptied = Some(gain);
        }
        all.retain(|row| row.capacity > 0);
        all.sort_unstable_by_key(|row| row.position);
        let mut sums = Sums::default();
        for row in &mut all {
            if rows.can_be_halved(base, row.position) {
                let kept = rows.kept(target, base, row.position);
                // What is known of a flip takes the place of its bound: none may count twice.
                row.kept.bounds.retain(|&(_, flip)| bounded.scores.of(flip).is_none());
                row.kept.known.extend(kept.filter_map(|flip| Some((flip, bounded.scores.of(flip)?))));
                debug_assert!(row.kept.listed() <= row.ones, "{row:?}");
                // Some of which nothing is known could be the best.
                if row.kept.listed() < row.ones {
                    row.kept = Side { most: row.capacity, ..Side::default() };
                }
                row.force();
            }
            row.sort(&bounded.scores);
            row.settle(&mut sums);
        }
        Self { rows: all, sums }
    }

    /// Has rows know what flips of theirs score.
    pub(super) fn learn(&mut self, flips: &[SlicedFlip], scores: &Scores) {
        for of_row in flips.chunk_by(|a, b| a.0 == b.0) {
            let Ok(place) = self.rows.binary_search_by_key(&of_row[0].0, |row| row.position) else { continue };
            let row = &mut self.rows[place];
            for (&flip, start) in of_row.iter().filter_map(|flip| Some((flip, scores.of(*flip)?))) {
                for side in [&mut row.additions, &mut row.removals, &mut row.kept, &mut row.forced] {
                    side.learn(flip, start, scores);
                }
            }
            row.settle(&mut self.sums);
        }
    }

    /// Selects the admissible flips that gain most (Lemma 46), as far as is known.
    pub(super) fn select(&self, target: &Target, base: &Base, rows: &Rows, bounded: &mut Bounded) {
        let mut over = OverRows::new(base.left);
        self.rows.iter().for_each(|row| over.add(&row.gains, 1.0));
        let others = bounded.rest.others;
        let totals = filled(over.totals(), others);
        bounded.value = bounded.constant - totals[base.left];
        bounded.last = totals[base.left] - totals[base.left.saturating_sub(1)];
        let worth = |&flips: &usize| over.totals()[flips] + (base.left - flips) as f64 * others;
        let best = (0..=base.left).rev().max_by(|a, b| worth(a).total_cmp(&worth(b))).unwrap_or(0);
        bounded.clear_selection();
        bounded.filled = if others > 0.0 { base.left - best } else { 0 };
        for (row, flips) in self.rows.iter().rev().zip(over.taken(best)) {
            let (added, removed) = row.gains.way(flips);
            if added + removed == 0 {
                continue;
            }
            match row.chosen((added, removed)) {
                Some((chosen, moves)) => {
                    bounded.filled += added + removed - chosen.len();
                    bounded.select_moves(&chosen, &moves, row.ones + added - removed);
                }
                None => {
                    let own: Vec<_> = rows.own(target, base, row.position).map(|d| (row.position, d)).collect();
                    bounded.select_moves(&own, &[(row.position, ALL)], 0);
                }
            }
        }
    }

    /// For each row what the others gain for each number of flips.
    fn without_each(&self, base: &Base, others: f64) -> Vec<Vec<f64>> {
        let mut before = vec![vec![0.0; base.left + 1]];
        for row in &self.rows {
            let mut totals = before[before.len() - 1].clone();
            share(&mut totals, &row.gains, 1.0, |_, _| ());
            before.push(totals);
        }
        let mut after = vec![0.0; base.left + 1];
        let mut all: Vec<Vec<f64>> = Vec::with_capacity(self.rows.len());
        for (row, before) in self.rows.iter().zip(&before).rev() {
            all.push(filled(&together(before, &after), others));
            share(&mut after, &row.gains, 1.0, |_, _| ());
        }
        all.reverse();
        all
    }

    /// What a counterexample needs of each row that is listed (Lemma 48): an addition of score A in a set with a additions and r removals of
    /// its row, so that `(A + the best others) / m' + what other rows gain with the flips that are left` comes up to what is needed.
    pub(super) fn needs(&mut self, base: &Base, bounded: &Bounded) -> BTreeMap<u32, Needs> {
        let without = self.without_each(base, bounded.rest.others);
        let most = self.rows.last().zip(without.last()).map_or(0.0, |(row, others)| most_with(&row.gains, others));
        let size = bounded.constant.abs() + most.abs() + bounded.rest.others;
        let enough = bounded.constant - bounded.error - SLACK * size;
        let (rows, sums) = (&self.rows, &mut self.sums);
        let needs = rows.iter().zip(&without);
        needs.map(|(row, others)| (row.position, row.needs(others, enough, sums))).collect()
    }

    /// Drops flips that no counterexample has, if all are listed, and tells which flips all of them have (Lemma 48).
    pub(super) fn reduce(
        target: &Target,
        base: &Base,
        rows: &Rows,
        bounded: &mut Bounded,
        lists_all: bool,
    ) -> Vec<SlicedFlip> {
        let mut listing = Self::new(target, base, rows, bounded);
        if lists_all {
            let needs = listing.needs(base, bounded);
            let scores = &bounded.scores;
            for row in &mut listing.rows {
                let Some(needs) = needs.get(&row.position) else { continue };
                for (side, adds) in [(&mut row.additions, true), (&mut row.removals, false)] {
                    side.known.retain(|&(_, start)| needs.is_met(|place| scores.at(start, place), adds));
                    side.bounds.retain(|&(score, _)| needs.is_met_by(score, adds));
                }
            }
            let sides = listing.rows.iter().flat_map(|row| [&row.additions, &row.removals]);
            let kept: HashSet<SlicedFlip> = sides.flat_map(Side::flips).collect();
            bounded.gains.retain(|(_, flip)| kept.contains(flip));
            let flips: Vec<SlicedFlip> = bounded.gains.iter().map(|&(_, flip)| flip).collect();
            let still = rows.emptied_by(target, base, &flips);
            bounded.emptied.retain(|row| still.contains(&row.0) && needs.get(&row.0).is_none_or(|needs| needs.emptied));
            for row in &mut listing.rows {
                row.emptied = row.emptied.filter(|_| bounded.emptied.iter().any(|of| of.0 == row.position));
                row.force();
                row.sort(scores);
                row.settle(&mut listing.sums);
            }
        }
        let without = listing.without_each(base, bounded.rest.others);
        let mut needed = Vec::new();
        for (row, others) in listing.rows.iter().zip(&without) {
            let known = row.additions.known.iter().chain(&row.removals.known).map(|&(flip, _)| flip);
            for flip in known.filter(|flip| bounded.selected.contains(flip)) {
                let mut fewer = row.clone();
                fewer.emptied = fewer.emptied.filter(|_| row.additions.known.iter().any(|other| other.0 == flip));
                fewer.additions.known.retain(|other| other.0 != flip);
                fewer.removals.known.retain(|other| other.0 != flip);
                fewer.force();
                fewer.sort(&bounded.scores);
                fewer.settle(&mut listing.sums);
                if bounded.constant - most_with(&fewer.gains, others) > bounded.error {
                    needed.push(flip);
                }
            }
        }
        needed
    }
}

/// Far above what rounding can do to a few sums.
const SLACK: f64 = 1e-12;

/// The most that 0, 1, … flips of all rows gain, those that are not listed at most `others` each.
fn filled(totals: &[f64], others: f64) -> Vec<f64> {
    let mut filled = totals.to_vec();
    for flips in 1..filled.len() {
        filled[flips] = filled[flips].max(filled[flips - 1] + others);
    }
    filled
}

/// The most that 0, 1, … flips gain that two groups of rows share.
fn together(a: &[f64], b: &[f64]) -> Vec<f64> {
    (0..a.len()).map(|flips| (0..=flips).map(|k| a[k] + b[flips - k]).fold(0.0, f64::max)).collect()
}

/// The most that a row and others gain together.
fn most_with(row: &RowGains, others: &[f64]) -> f64 {
    let last = others.len() - 1;
    row.totals()
        .iter()
        .take(others.len())
        .enumerate()
        .map(|(flips, gain)| gain + others[last - flips])
        .fold(0.0, f64::max)
}

//! The cuts of targets, their multipliers, and the right side of the bound for given multipliers (Lemma 73 of `docs/maths.md`).

use std::collections::{BTreeMap, BTreeSet};

use super::table::{Entry, Fallible, Row, Table};
use crate::ids::NodeId;
use crate::slice::DOWN;
use nodeproof_problem::CutMultipliers;

/// Of a part of the margin that is taken only what is beyond η counts; these are the Q η that there is a cut for.
pub(super) const BEYOND: [f64; 7] = [0.0, 0.2, 0.4, 0.6, 0.75, 0.9, 0.97];

/// Cuts of a target: the first counts flips, the others are those of [`BEYOND`].
pub(super) const CUTS: usize = 1 + BEYOND.len();

/// Multipliers of the cuts of all targets.
pub(super) type Multipliers = Vec<[f64; CUTS]>;

/// A flip that has a price: the place of its row, and its attribute, or [`ANY`].
pub(crate) type Priced = (u32, u32);

/// A flip that no target lists.
pub(super) const ANY: u32 = u32::MAX;

/// In place of a row, a node that no target has an entry with; its flips are [`ANY`].
pub(super) const ELSEWHERE: u32 = u32::MAX;

/// Which cuts are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cuts {
    /// Those that count flips alone.
    Counts,
    /// All of them.
    All,
}

impl Cuts {
    /// Whether a target has a cut.
    pub(super) fn has(self, cut: usize, target: &Fallible) -> bool {
        cut == 0 || (self == Self::All && target.has_parts)
    }
}

/// What a flip is in a cut that takes a part of a target's margin: the weight w.
pub(super) fn weight(cut: usize, part: f32, withstands: u32, global: usize) -> f64 {
    if cut == 0 {
        return 1.0 / (f64::from(withstands) + 1.0);
    }
    let beyond = BEYOND[cut - 1];
    let weight = (f64::from(part) - beyond / global as f64) / (1.0 - beyond);
    weight.clamp(0.0, 1.0)
}

/// The largest total price of an admissible set, and the set.
#[derive(Debug, Clone, Default)]
pub(super) struct Best {
    /// At most this many predictions change.
    pub(super) bound: f64,
    pub(super) flips: Vec<Priced>,
}

/// Adds up prices, reusing its memory.
pub(super) struct Prices<'t> {
    table: &'t Table,
    /// Of each attribute of the row at hand what is added to the price of any flip, and the attributes where that is something.
    more: Vec<f64>,
    touched: Vec<u32>,
    found: Vec<(f64, Priced)>,
}

impl<'t> Prices<'t> {
    pub(super) fn new(table: &'t Table) -> Self {
        let more = vec![0.0; 2 * table.attributes];
        Self { table, more, touched: Vec::new(), found: Vec::new() }
    }

    /// The bound for these multipliers, and an admissible set that attains it as far as prices tell: its flips are the dearest, at most so
    /// many of a row, and in all.
    pub(super) fn best(&mut self, multipliers: &Multipliers) -> Best {
        let (table, most) = (self.table, self.table.possible);
        let of = |(target, of): (&Fallible, _)| Active::new(of, target, table.global);
        let active: Vec<Active> = table.targets.iter().zip(multipliers).map(of).collect();
        let elsewhere: f64 = active.iter().map(|of| of.elsewhere).sum();
        let mut rows: Vec<(f64, u32)> = Vec::with_capacity(table.rows.len());
        let mut most_terms = 0;
        for (place, row) in (0u32..).zip(&table.rows) {
            most_terms = most_terms.max(table.entries(row).len());
            rows.push((elsewhere + self.dearest(row, &active), place));
        }
        rows.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        self.found.clear();
        let mut cheapest = elsewhere;
        for (dearest, place) in rows {
            // No flip of the other rows is dearer than those that were found, but for what rounding takes from the sum below as well.
            if dearest <= cheapest {
                break;
            }
            self.add_row(place, elsewhere, &active);
            if most > 0 && self.found.len() >= most {
                self.found.select_nth_unstable_by(most - 1, by_price);
                self.found.truncate(most);
                cheapest = self.found[most - 1].0.max(elsewhere);
            }
        }
        if elsewhere > 0.0 {
            // No flip that was found costs less.
            self.found.extend((self.found.len()..most).map(|_| (elsewhere, (ELSEWHERE, ANY))));
        }
        self.found.truncate(most);
        self.found.sort_unstable_by(by_price);
        let prices: f64 = self.found.iter().map(|&(price, _)| price).sum();
        let rest: f64 = multipliers.iter().map(|of| (1.0 - of.iter().sum::<f64>()).max(0.0)).sum();
        // Sums of so many terms. What is taken away in them is added in them, too, so that all together are at most three times the result.
        let terms = (CUTS * (most_terms + table.targets.len() + 4) * (most + 2) + 64) as f64;
        let bound = (prices + rest) * (1.0 + 8.0 * terms * f64::EPSILON) + 64.0 * terms * f64::EPSILON;
        Best { bound, flips: self.found.iter().map(|&(_, flip)| flip).collect() }
    }

    /// No flip of a row is dearer than one elsewhere by more than this.
    fn dearest(&self, row: &Row, active: &[Active]) -> f64 {
        let of_entry = |entry: &Entry| active[entry.target as usize].beyond_elsewhere(entry.most);
        self.table.entries(row).iter().map(of_entry).sum()
    }

    /// Adds the dearest flips of a row.
    fn add_row(&mut self, place: u32, elsewhere: f64, active: &[Active]) {
        let (table, attributes) = (self.table, self.table.attributes);
        let row = &table.rows[place as usize];
        let slot = |d: u32| (d & !DOWN) as usize + if d >= DOWN { attributes } else { 0 };
        let mut any = elsewhere;
        for entry in table.entries(row) {
            let of = &active[entry.target as usize];
            any += of.beyond_elsewhere(entry.cap);
            if of.gains.is_empty() {
                continue;
            }
            let cap = of.price(entry.cap);
            for &(d, part) in table.listed(entry) {
                let more = of.price(part) - cap;
                if more != 0.0 {
                    let sum = &mut self.more[slot(d)];
                    if *sum == 0.0 {
                        self.touched.push(d);
                    }
                    *sum += more;
                }
            }
        }
        let start = self.found.len();
        for d in self.touched.drain(..) {
            let more = std::mem::take(&mut self.more[slot(d)]);
            if more > 0.0 {
                self.found.push((any + more, (place, d)));
            }
        }
        let listed = self.found.len() - start;
        if listed > row.most {
            self.found[start..].select_nth_unstable_by(row.most, by_price);
            self.found.truncate(start + row.most);
        }
        if any > 0.0 {
            self.found.extend((listed.min(row.most)..row.most).map(|_| (any, (place, ANY))));
        }
    }
}

/// The multipliers of one target that are not 0.
struct Active {
    /// η, and the multiplier over `1 − Q η`, which caps at the multiplier.
    gains: Vec<(f64, f64, f64)>,
    /// What a flip costs that the target sees, beside what it takes.
    count: f64,
    /// What a flip costs at a node that the target has no entry with.
    elsewhere: f64,
}

impl Active {
    fn new(multipliers: &[f64; CUTS], target: &Fallible, global: usize) -> Self {
        let of = |(&beyond, &share): (&f64, &f64)| (beyond / global as f64, share / (1.0 - beyond), share);
        let gains = BEYOND.iter().zip(&multipliers[1..]).filter(|(_, share)| **share > 0.0).map(of).collect();
        let count = multipliers[0] * weight(0, 0.0, target.withstands, global);
        let mut active = Self { gains, count, elsewhere: 0.0 };
        active.elsewhere = target.elsewhere.map_or(0.0, |part| active.count + active.price(part));
        active
    }

    /// By how much a flip that the target sees and that takes this part costs more than one elsewhere.
    fn beyond_elsewhere(&self, part: f32) -> f64 {
        self.count + self.price(part) - self.elsewhere
    }

    /// What a flip that takes this part costs.
    fn price(&self, part: f32) -> f64 {
        let part = f64::from(part);
        self.gains.iter().map(|&(beyond, slope, share)| ((part - beyond) * slope).clamp(0.0, share)).sum()
    }
}

/// By falling prices, and flips that cost the same in order.
fn by_price(a: &(f64, Priced), b: &(f64, Priced)) -> std::cmp::Ordering {
    b.0.total_cmp(&a.0).then(a.1.cmp(&b.1))
}

/// The multipliers that are not 0, target by target.
pub(super) fn without_zeros(table: &Table, multipliers: &Multipliers) -> Vec<CutMultipliers> {
    let of = |(target, of): (&Fallible, &[f64; CUTS])| {
        let gains = BEYOND.iter().zip(&of[1..]).filter(|(_, share)| **share > 0.0);
        let gains: Vec<(f64, f64)> = gains.map(|(&beyond, &share)| (beyond, share)).collect();
        let is_some = of[0] > 0.0 || !gains.is_empty();
        is_some.then_some(CutMultipliers { node: target.node, withstands: target.withstands, count: of[0], gains })
    };
    table.targets.iter().zip(multipliers).filter_map(of).collect()
}

impl Table {
    /// The entries that a flip is about, each with the part that it takes; none of one elsewhere.
    pub(super) fn taken(&self, (row, attribute): Priced) -> impl Iterator<Item = (&Entry, f32)> {
        let part = move |entry: &Entry| if attribute == ANY { entry.cap } else { self.part(entry, attribute) };
        let entries = self.rows.get(row as usize).map_or(&[][..], |row| self.entries(row));
        entries.iter().map(move |entry| (entry, part(entry)))
    }

    /// The listed flips that take most of all targets together, and those that take all, a half or a quarter of most targets: so many of each.
    pub(crate) fn promising(&self, count: usize) -> Vec<Priced> {
        let least = [0.0, 1.0, 0.5, 0.25];
        let mut best: [Vec<(f64, Priced)>; 4] = Default::default();
        let mut of_row: BTreeMap<u32, [f64; 4]> = BTreeMap::new();
        for (place, row) in (0u32..).zip(&self.rows) {
            of_row.clear();
            for &(d, part) in self.entries(row).iter().flat_map(|entry| self.listed(entry)) {
                let of = of_row.entry(d).or_default();
                let value = |level: usize| if level == 0 { f64::from(part) } else { 1.0 };
                (0..4).filter(|&level| part >= least[level]).for_each(|level| of[level] += value(level));
            }
            for (level, best) in best.iter_mut().enumerate() {
                let more = of_row.iter().map(|(&d, of)| (of[level], (place, d)));
                best.extend(more.filter(|&(value, _)| value > 0.0));
                if best.len() > count {
                    best.select_nth_unstable_by(count, by_price);
                    best.truncate(count);
                }
            }
        }
        best.into_iter().flatten().map(|(_, flip)| flip).collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// The node of a flip.
    pub(crate) fn node_of(&self, (row, _): Priced) -> NodeId {
        self.rows[row as usize].node
    }
}

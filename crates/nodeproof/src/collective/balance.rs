//! Good multipliers, without a solver of linear programs: Frank–Wolfe on the dual problem, the attacker's.
//!
//! The attacker spreads Q flips y over all that there are so that as many targets as possible may fall, and target t falls to the degree
//!
//! ```text
//! min(1, s_t1, s_t2, …),   s_ti = Σ_f w_ti(f) y_f.
//! ```
//!
//! Smoothed by a temperature that falls, the minimum has the gradient λ_t = softmin(1, s_t1, s_t2, …) without the first; each step goes towards the set
//! that is dearest under it. Whatever λ, it gives a bound.

use std::collections::HashMap;
use std::ops::ControlFlow;

use super::prices::{ANY, CUTS, Cuts, Multipliers, Priced, Prices, weight, without_zeros};
use super::table::{Fallible, Table};
use nodeproof_problem::CutMultipliers;

/// Steps at most.
const STEPS: usize = 400;
/// The mean of the multipliers so far is tried so often.
const EVERY: usize = 10;
/// Multipliers below this are left out.
const SMALLEST: f64 = 3e-3;

/// The best multipliers that were found.
#[derive(Debug, Clone)]
pub(crate) struct Balance {
    /// At most so many predictions change.
    pub(crate) at_most: usize,
    pub(crate) multipliers: Vec<CutMultipliers>,
    /// Flips that were dear, with how often.
    dear: Vec<(f64, Priced)>,
}

impl Balance {
    /// The flips that were dear most often, so many.
    pub(crate) fn dearest(&self, count: usize) -> impl Iterator<Item = Priced> {
        self.dear.iter().take(count).map(|&(_, flip)| flip)
    }
}

/// The smallest bound over multipliers of these cuts. The observer hears of the steps done, and of all.
pub(crate) fn balance(
    table: &Table,
    cuts: Cuts,
    mut observer: impl FnMut(usize, usize) -> ControlFlow<()>,
) -> Option<Balance> {
    let mut prices = Prices::new(table);
    let mut walk = Walk::new(table, cuts);
    let mut best = Known { bound: f64::INFINITY, multipliers: Multipliers::new() };
    best.improve(prices.best(&walk.multipliers).bound, &walk.multipliers);
    for step in 0..STEPS {
        if observer(step, STEPS).is_break() {
            return None;
        }
        walk.weigh(step);
        let found = prices.best(&walk.multipliers);
        best.improve(found.bound, &walk.multipliers);
        if step % EVERY == EVERY - 1 {
            let mean = walk.mean();
            best.improve(prices.best(&mean).bound, &mean);
        }
        // No multipliers get below what the attacker reaches by spreading flips.
        if walk.reached() >= best.bound.floor() {
            break;
        }
        walk.go(&found.flips, step);
    }
    let at_most = (best.bound.floor() as usize).min(table.targets.len());
    let mut dear: Vec<(f64, Priced)> = walk.spread.into_iter().map(|(flip, part)| (part, flip)).collect();
    dear.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    Some(Balance { at_most, multipliers: without_zeros(table, &best.multipliers), dear })
}

/// The smallest bound so far, and its multipliers.
struct Known {
    bound: f64,
    multipliers: Multipliers,
}

impl Known {
    fn improve(&mut self, bound: f64, multipliers: &Multipliers) {
        if bound < self.bound {
            self.bound = bound;
            self.multipliers.clone_from(multipliers);
        }
    }
}

/// Where Frank–Wolfe is.
struct Walk<'t> {
    table: &'t Table,
    cuts: Cuts,
    /// s of each target.
    sums: Vec<[f64; CUTS]>,
    multipliers: Multipliers,
    /// Sums of the multipliers so far, each times how late it came.
    so_far: Multipliers,
    weight_so_far: f64,
    /// y, but for flips that no target lists.
    spread: HashMap<Priced, f64>,
    scale: f64,
}

impl<'t> Walk<'t> {
    fn new(table: &'t Table, cuts: Cuts) -> Self {
        let none = || vec![[0.0; CUTS]; table.targets.len()];
        Self {
            table,
            cuts,
            sums: none(),
            multipliers: none(),
            so_far: none(),
            weight_so_far: 0.0,
            spread: HashMap::new(),
            scale: 1.0,
        }
    }

    /// The multipliers at the sums so far.
    fn weigh(&mut self, step: usize) {
        let temperature = (0.5 / (1.0 + step as f64 / 10.0)).max(0.01);
        let time = (step + 1) as f64;
        for (place, target) in self.table.targets.iter().enumerate() {
            let (sums, of) = (&self.sums[place], &mut self.multipliers[place]);
            let has = |cut: usize| self.cuts.has(cut, target);
            let least = (0..CUTS).filter(|&cut| has(cut)).map(|cut| sums[cut]).fold(1.0, f64::min);
            let soft = |sum: f64| ((least - sum) / temperature).exp();
            let mut total = soft(1.0);
            for cut in 0..CUTS {
                of[cut] = if has(cut) { soft(sums[cut]) } else { 0.0 };
                total += of[cut];
            }
            for (of, so_far) in of.iter_mut().zip(&mut self.so_far[place]) {
                *of /= total;
                if *of < SMALLEST {
                    *of = 0.0;
                }
                *so_far += time * *of;
            }
        }
        self.weight_so_far += time;
    }

    /// The mean of the multipliers so far.
    fn mean(&self) -> Multipliers {
        let of = |so_far: &[f64; CUTS]| {
            so_far.map(|sum| Some(sum / self.weight_so_far).filter(|&of| of >= SMALLEST).unwrap_or(0.0))
        };
        self.so_far.iter().map(of).collect()
    }

    /// As many targets fall as the flips are spread.
    fn reached(&self) -> f64 {
        let of = |(target, sums): (&Fallible, &[f64; CUTS])| {
            let has = |&cut: &usize| self.cuts.has(cut, target);
            (0..CUTS).filter(has).map(|cut| sums[cut]).fold(1.0, f64::min)
        };
        self.table.targets.iter().zip(&self.sums).map(of).sum()
    }

    /// A step towards a set of flips.
    fn go(&mut self, flips: &[Priced], step: usize) {
        let by = 2.0 / (step as f64 + 2.0);
        self.sums.iter_mut().flatten().for_each(|sum| *sum *= 1.0 - by);
        if by == 1.0 {
            (self.scale, self.spread) = (1.0, HashMap::new());
        } else {
            self.scale *= 1.0 - by;
        }
        let (cuts, global) = (self.cuts, self.table.global);
        let weight = |cut: usize, part: f32, target: &Fallible| weight(cut, part, target.withstands, global);
        // Each flip counts as one elsewhere, and where it is seen by what it takes beyond that.
        for (target, sums) in self.table.targets.iter().zip(&mut self.sums) {
            let Some(elsewhere) = target.elsewhere else { continue };
            for cut in (0..CUTS).filter(|&cut| cuts.has(cut, target)) {
                sums[cut] += by * flips.len() as f64 * weight(cut, elsewhere, target);
            }
        }
        for &flip in flips {
            if flip.1 != ANY {
                *self.spread.entry(flip).or_default() += by / self.scale;
            }
            for (entry, part) in self.table.taken(flip) {
                let place = entry.target as usize;
                let target = &self.table.targets[place];
                for cut in (0..CUTS).filter(|&cut| cuts.has(cut, target)) {
                    let elsewhere = target.elsewhere.map_or(0.0, |elsewhere| weight(cut, elsewhere, target));
                    self.sums[place][cut] += by * (weight(cut, part, target) - elsewhere);
                }
            }
        }
    }
}

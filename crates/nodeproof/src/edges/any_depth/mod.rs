//! Bounds for networks of any depth: the margin linearised where some edges are gone, and what each further deletion takes from it (Lemmas
//! 60 to 67 and 71 of `docs/maths.md`).

mod apart;
mod base;
mod carry;
mod cones;
mod faint;
mod gains;
mod moves;
mod region;
mod rounding;
mod rows;
mod selection;
mod senders;
#[cfg(test)]
mod tests;
mod unit;

use std::collections::{BTreeMap, BTreeSet};

use self::base::{Base, growth, scale};
use self::cones::{Cones, Listed, Making};
use self::faint::Faint;
use self::gains::Gradient;
use self::region::{Candidate, NOWHERE, Region};
use self::rounding::Magnitude;
use self::selection::Gain;
use super::Problem;
use super::evaluate::{Sent, logits};
use super::search::{Idle, Relaxation, Relaxed, Selected};
use super::subproblem::Subproblem;
use crate::edge::Edge;
use crate::ids::{ClassId, NodeId};

/// Moves are computed anew once no more than this part of the deletions is left that they were computed for.
const FEWER: f64 = 0.7;
/// Once moves are so many numbers, those that were not looked at for longest are forgotten.
const REMEMBERED: usize = 1 << 24;
/// So many deletions are tried with each other.
const PROMISING: usize = 32;
/// Sets that are left out have at least this part of the margin.
const IDLE: f64 = 0.02;
/// Deletions that take at most such a part of each lead are not looked at closely; where they are what makes a bound negative, the next part
/// is tried.
const FAINT: [f64; 2] = [0.1, 0.01];

/// Bounds for any number of layers.
#[derive(Debug)]
pub(super) struct AnyDepth<'p> {
    problem: &'p Problem<'p>,
    target: NodeId,
    region: Region,
    candidates: Vec<Candidate>,
    magnitude: Magnitude<'p>,
    /// What deletions take at most of leads of a class, whichever others are made.
    faint: Option<(ClassId, Faint)>,
    /// Which parts of leads are faint, one after the other.
    parts: &'static [f64],
    /// What is known of subproblems, those that were looked at last at the end.
    known: Vec<Known>,
}

/// What is known of a subproblem, and of others with the same deletions.
#[derive(Debug)]
struct Known {
    deleted: Vec<Edge>,
    kept: BTreeSet<Edge>,
    /// Which part of leads is faint.
    part: Option<f64>,
    base: Base,
    listed: Vec<Listed>,
    /// `None` if they would be too many.
    cones: Option<Cones>,
    left: usize,
    /// For each class.
    gains: BTreeMap<ClassId, Linearised>,
}

/// The margin to a class, linearised.
#[derive(Debug)]
struct Linearised {
    /// The margin of the base point, rounded down.
    constant: f64,
    /// Of the listed deletions.
    gains: Vec<Gain>,
    closely: bool,
}

impl Linearised {
    /// The gains of some of the deletions that they were computed for.
    fn of<'l>(&'l self, all: &[Listed], some: &'l [Listed]) -> Vec<(&'l Listed, &'l Gain)> {
        let of: BTreeMap<usize, &Gain> = all.iter().map(|listed| listed.candidate).zip(&self.gains).collect();
        some.iter().map(|listed| (listed, of[&listed.candidate])).collect()
    }
}

/// A bound, and why it is what it is.
#[derive(Debug)]
struct Concluded {
    relaxed: Relaxed,
    /// Whether faint deletions make it negative.
    are_to_blame: bool,
}

impl<'p> AnyDepth<'p> {
    pub(super) fn new(problem: &'p Problem<'p>, target: NodeId) -> Self {
        let region = Region::new(problem, target);
        let candidates = region.candidates(problem);
        let magnitude = Magnitude::new(problem, &region);
        Self { problem, target, region, candidates, magnitude, faint: None, parts: &FAINT, known: Vec::new() }
    }

    /// The candidates that sets of a subproblem may have.
    fn listed(&self, sub: &Subproblem) -> Vec<Listed> {
        let limits = self.problem.limits;
        let listed = self.candidates.iter().enumerate().map(|(candidate, of)| {
            let count = of.alike.iter().filter(|&&edge| sub.may_delete(limits, edge)).count();
            Listed { candidate, ends: of.ends, count }
        });
        listed.filter(|listed| listed.count > 0).collect()
    }

    /// Makes what is to be known of a subproblem the last of what is known, unless what is known of another one will do.
    fn look(&mut self, sub: &Subproblem, listed: &[Listed], part: Option<f64>) {
        let total = |listed: &[Listed]| listed.iter().map(|listed| listed.count).sum::<usize>();
        let will_do = |known: &Known| {
            known.deleted == sub.deleted
                && known.part == part
                && total(listed) as f64 > FEWER * total(&known.listed) as f64
                && known.kept.is_subset(&sub.kept)
        };
        if let Some(place) = self.known.iter().position(will_do) {
            let known = self.known.remove(place);
            self.known.push(known);
            return;
        }
        let size = |known: &Known| known.base.size() + known.cones.as_ref().map_or(0, |cones| cones.size);
        while self.known.iter().map(size).sum::<usize>() > REMEMBERED {
            self.known.remove(0);
        }
        let left = sub.left(self.problem.limits).min(total(listed));
        let base = Base::new(self.problem, &self.region, sub);
        let mut most = vec![0; self.region.nodes.len()];
        for of in listed {
            of.ends.iter().filter(|&&n| n != NOWHERE).for_each(|&n| most[n as usize] += of.count);
        }
        for (most, &node) in most.iter_mut().zip(&self.region.nodes) {
            *most = (*most).min(left).min(sub.left_at(self.problem.limits, node));
        }
        let (problem, region, magnitude) = (self.problem, &self.region, &self.magnitude);
        let making = Making { problem, region, base: &base, magnitude, listed, left, most: &most };
        let cones = making.cones();
        let (deleted, kept) = (sub.deleted.clone(), sub.kept.clone());
        let gains = BTreeMap::new();
        self.known.push(Known { deleted, kept, part, base, listed: listed.to_vec(), cones, left, gains });
    }

    /// Computes what deletions take of leads of y at most, once.
    fn find_faint(&mut self, y: ClassId) {
        if !matches!(self.faint, Some((of, _)) if of == y) {
            let base = Base::new(self.problem, &self.region, &Subproblem::default());
            let faint = Faint::new(self.problem, &self.region, &self.magnitude, &base, &self.candidates, y);
            self.faint = Some((y, faint));
        }
    }

    /// The bound where faint deletions are not looked at closely; `None` if that makes it negative, or if there are none.
    fn without_faint(
        &mut self,
        sent: &mut Sent,
        sub: &Subproblem,
        listed: &[Listed],
        part: f64,
        pair: (ClassId, ClassId),
    ) -> Option<Relaxed> {
        let (_, all) = self.faint.as_ref()?;
        let (faint, strong): (Vec<&Listed>, Vec<&Listed>) =
            listed.iter().partition(|listed| all.is_faint(listed.candidate, part));
        let nowhere = |listed: &Listed| Listed { ends: [NOWHERE; 2], ..*listed };
        let taken =
            |listed: &Listed| Gain { fixed: all.takes(listed.candidate, pair.1), ends: [Vec::new(), Vec::new()] };
        let faint: Vec<(Listed, Gain)> = faint.into_iter().map(|listed| (nowhere(listed), taken(listed))).collect();
        if faint.is_empty() {
            return None;
        }
        let strong: Vec<Listed> = strong.into_iter().cloned().collect();
        let concluded = if strong.is_empty() {
            let constant = logits(self.problem, sent, sub, self.target).margin(pair.0.index(), pair.1.index()).0;
            let concluded = self.concluded(sub, constant, &[], &faint, 1.0);
            Some(concluded).filter(|concluded| concluded.relaxed.lower > 0.0)
        } else {
            self.relaxed(sub, strong, &faint, Some(part), pair)
        };
        concluded.filter(|concluded| !concluded.are_to_blame).map(|concluded| concluded.relaxed)
    }

    /// The bound where further edges may be deleted, some of which are looked at closely.
    fn relaxed(
        &mut self,
        sub: &Subproblem,
        listed: Vec<Listed>,
        faint: &[(Listed, Gain)],
        part: Option<f64>,
        pair: (ClassId, ClassId),
    ) -> Option<Concluded> {
        self.look(sub, &listed, part);
        let mut known = self.known.pop();
        let relaxed = known.as_mut().and_then(|known| self.bounded(known, sub, &listed, faint, pair));
        self.known.extend(known);
        relaxed
    }

    /// The bound from what is known; `None` if that is too little.
    fn bounded(
        &self,
        known: &mut Known,
        sub: &Subproblem,
        listed: &[Listed],
        faint: &[(Listed, Gain)],
        (y, k): (ClassId, ClassId),
    ) -> Option<Concluded> {
        let cones = known.cones.as_ref()?;
        let making = Making {
            problem: self.problem,
            region: &self.region,
            base: &known.base,
            magnitude: &self.magnitude,
            listed: &known.listed,
            left: known.left,
            most: &cones.most,
        };
        let linearised = |closely: bool| {
            if closely {
                let (constant, gains) = apart::linearised(&making, cones, (y, k));
                return Linearised { constant, gains, closely };
            }
            let gradient = Gradient::of_margin(&making, (y, k), BTreeSet::new());
            let gain = |f: usize| gradient.gain(cones, &known.listed, f);
            Linearised {
                constant: gradient.value() - gradient.slack(),
                gains: (0..known.listed.len()).map(gain).collect(),
                closely,
            }
        };
        let target = self.region.number(self.target) as usize;
        let scale = scale(self.problem, self.problem.network.layers().len() - 1);
        let growths = (1..=cones.most[target]).map(|k| growth(scale, known.base.degrees[target], k));
        let growth = growths.fold(1.0, f64::max);
        // Where edges are deleted already, a first bound was not enough.
        let at_once = known.left > 1 && !known.deleted.is_empty();
        let linear = known.gains.entry(k).or_insert_with(|| linearised(at_once));
        let concluded = self.concluded(sub, linear.constant, &linear.of(&known.listed, listed), faint, growth);
        if concluded.relaxed.lower > 0.0 || known.left <= 1 || linear.closely {
            return Some(concluded);
        }
        *linear = linearised(true);
        Some(self.concluded(sub, linear.constant, &linear.of(&known.listed, listed), faint, growth))
    }

    /// What follows from a margin at a base point, and from what deletions take of it; the margin may grow by so much.
    fn concluded(
        &self,
        sub: &Subproblem,
        constant: f64,
        strong: &[(&Listed, &Gain)],
        faint: &[(Listed, Gain)],
        growth: f64,
    ) -> Concluded {
        let left = sub.left(self.problem.limits);
        let of: Vec<(&Listed, &Gain)> =
            strong.iter().copied().chain(faint.iter().map(|(listed, gain)| (listed, gain))).collect();
        let most = selection::most(&of, left);
        let lower = |taken: f64| {
            let lower = constant - taken - self.magnitude.relative * taken.abs();
            if lower > 0.0 { lower } else { lower * growth }
        };
        let floor = IDLE * constant;
        let idle = of.iter().zip(&most.with).filter(|(_, with)| floor > 0.0 && lower(**with) > floor);
        let idle = idle.flat_map(|((listed, _), _)| self.candidates[listed.candidate].alike.iter().copied()).collect();
        let mut ranked: Vec<(f64, &Listed)> =
            strong.iter().map(|(listed, gain)| (gain.most([left; 2]), *listed)).collect();
        ranked.sort_by(|a, b| b.0.total_cmp(&a.0));
        let promising = ranked.iter().take(PROMISING).map(|(_, listed)| self.candidates[listed.candidate].alike[0]);
        let relaxed = Relaxed {
            lower: lower(most.total),
            selection: self.selection(sub, &ranked),
            promising: promising.collect(),
            idle: Some(Idle { edges: idle, floor }),
        };
        let are_to_blame =
            !faint.is_empty() && relaxed.lower <= 0.0 && lower(selection::most(strong, left).total) > 0.0;
        Concluded { relaxed, are_to_blame }
    }

    /// An admissible set of the deletions that gain the most.
    fn selection(&self, sub: &Subproblem, ranked: &[(f64, &Listed)]) -> Vec<Selected> {
        let (mut chosen, mut selection) = (sub.clone(), Vec::new());
        for &(gain, listed) in ranked.iter().filter(|(gain, _)| *gain > 0.0) {
            let limits = self.problem.limits;
            if chosen.left(limits) == 0 {
                break;
            }
            let all = &self.candidates[listed.candidate].alike;
            let alike: Vec<Edge> = all.iter().copied().filter(|&edge| sub.may_delete(limits, edge)).collect();
            for &edge in &alike {
                if chosen.may_delete(limits, edge) {
                    chosen = chosen.with(edge);
                    selection.push(Selected { edge, gain, alike: alike.clone() });
                }
            }
        }
        selection
    }
}

impl Relaxation for AnyDepth<'_> {
    fn bound(&mut self, sent: &mut Sent, sub: &Subproblem, y: ClassId, k: ClassId) -> Relaxed {
        let listed = self.listed(sub);
        if listed.is_empty() {
            let found = logits(self.problem, sent, sub, self.target);
            let lower = found.margin(y.index(), k.index()).0;
            return Relaxed { lower, ..Relaxed::default() };
        }
        self.find_faint(y);
        let relaxed = self.parts.iter().find_map(|&part| self.without_faint(sent, sub, &listed, part, (y, k)));
        let relaxed = relaxed.or_else(|| Some(self.relaxed(sub, listed, &[], None, (y, k))?.relaxed));
        relaxed.unwrap_or(Relaxed { lower: f64::NEG_INFINITY, ..Relaxed::default() })
    }

    fn candidates(&self) -> Vec<Edge> {
        self.candidates.iter().flat_map(|candidate| &candidate.alike).copied().collect()
    }
}

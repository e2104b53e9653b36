//! Bounds for networks of any depth: the margin linearised where some edges are gone, and what each further deletion takes from it (Lemmas
//! 60 to 67 of `docs/maths.md`).

mod apart;
mod base;
mod carry;
mod cones;
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

/// Bounds for any number of layers.
#[derive(Debug)]
pub(super) struct AnyDepth<'p> {
    problem: &'p Problem<'p>,
    target: NodeId,
    region: Region,
    candidates: Vec<Candidate>,
    magnitude: Magnitude<'p>,
    /// What is known of subproblems, those that were looked at last at the end.
    known: Vec<Known>,
}

/// What is known of a subproblem, and of others with the same deletions.
#[derive(Debug)]
struct Known {
    deleted: Vec<Edge>,
    kept: BTreeSet<Edge>,
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

impl<'p> AnyDepth<'p> {
    pub(super) fn new(problem: &'p Problem<'p>, target: NodeId) -> Self {
        let region = Region::new(problem, target);
        let candidates = region.candidates(problem);
        let magnitude = Magnitude::new(problem, &region);
        Self { problem, target, region, candidates, magnitude, known: Vec::new() }
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
    fn look(&mut self, sub: &Subproblem, listed: &[Listed]) {
        let total = |listed: &[Listed]| listed.iter().map(|listed| listed.count).sum::<usize>();
        let will_do = |known: &Known| {
            known.deleted == sub.deleted
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
        self.known.push(Known { deleted, kept, base, listed: listed.to_vec(), cones, left, gains });
    }

    /// The bound where further edges may be deleted.
    fn relaxed(&mut self, sub: &Subproblem, listed: Vec<Listed>, (y, k): (ClassId, ClassId)) -> Relaxed {
        self.look(sub, &listed);
        let mut known = self.known.pop();
        let relaxed = known.as_mut().and_then(|known| self.bounded(known, sub, &listed, (y, k)));
        self.known.extend(known);
        relaxed.unwrap_or(Relaxed { lower: f64::NEG_INFINITY, ..Relaxed::default() })
    }

    /// The bound from what is known; `None` if that is too little.
    fn bounded(
        &self,
        known: &mut Known,
        sub: &Subproblem,
        listed: &[Listed],
        (y, k): (ClassId, ClassId),
    ) -> Option<Relaxed> {
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
        // Where edges are deleted already, a first bound was not enough.
        let at_once = known.left > 1 && !known.deleted.is_empty();
        let linear = known.gains.entry(k).or_insert_with(|| linearised(at_once));
        let left = sub.left(self.problem.limits).min(known.left);
        let mut of = linear.of(&known.listed, listed);
        let mut most = selection::most(&of, left);
        if linear.constant <= most.total && known.left > 1 && !linear.closely {
            *linear = linearised(true);
            of = linear.of(&known.listed, listed);
            most = selection::most(&of, left);
        }
        let constant = linear.constant;
        let rounded = |taken: f64| taken + self.magnitude.relative * taken.abs();
        let lower = constant - rounded(most.total);
        let target = self.region.number(self.target) as usize;
        let scale = scale(self.problem, self.problem.network.layers().len() - 1);
        let growths = (1..=cones.most[target]).map(|k| growth(scale, known.base.degrees[target], k));
        let lower = if lower > 0.0 { lower } else { lower * growths.fold(1.0, f64::max) };
        let floor = IDLE * constant;
        let idle = of.iter().zip(&most.with).filter(|(_, with)| floor > 0.0 && constant - rounded(**with) > floor);
        let idle = idle.flat_map(|((listed, _), _)| self.candidates[listed.candidate].alike.iter().copied()).collect();
        let mut ranked: Vec<(f64, &Listed)> = of.iter().map(|(listed, gain)| (gain.most([left; 2]), *listed)).collect();
        ranked.sort_by(|a, b| b.0.total_cmp(&a.0));
        let selection = self.selection(sub, &ranked);
        let promising = ranked.iter().take(PROMISING).map(|(_, listed)| self.candidates[listed.candidate].alike[0]);
        Some(Relaxed { lower, selection, promising: promising.collect(), idle: Some(Idle { edges: idle, floor }) })
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
        self.relaxed(sub, listed, (y, k))
    }

    fn candidates(&self) -> Vec<Edge> {
        self.candidates.iter().flat_map(|candidate| &candidate.alike).copied().collect()
    }
}

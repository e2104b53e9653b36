//! Bounds against all admissible sets, and what they are made of.

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;

use super::super::Problem;
use super::super::evaluate::Sent;
use super::super::search::{Decision, Relaxation, Search};
use super::super::subproblem::Subproblem;
use super::super::tests::{Tiny, admissible, below, decided_by, hold, tiny};
use super::base::{Base, growth};
use super::cones::{Cones, Listed, Making};
use super::gains::Gradient;
use super::region::NOWHERE;
use super::{AnyDepth, Known, apart};
use crate::certificate::{Bound, Evidence};
use crate::edge::Edge;
use crate::engines::patience::Patience;
use crate::ids::ClassId;
use crate::network::Network;

proptest! {
    #![proptest_config(crate::seed::config(500))]

    #[test]
    fn any_depth_decides(of in tiny(0..=3)) {
        let (y, decision) = decided_by(&of, |problem, y| {
            Search::new(problem, AnyDepth::new(problem, of.target), of.target, y).decide(Patience::endless())
        });
        hold(&of, y, &decision)?;
    }

    /// The first bound of each class is below all margins, also where it is negative.
    #[test]
    fn bounds_are_below_all_margins(of in tiny(0..=3)) {
        let (y, bounds) = decided_by(&of, |problem, y| {
            let mut relaxation = AnyDepth::new(problem, of.target);
            let classes = of.model.classes() as u32;
            let bound = |k: u32| (ClassId(k) != y).then(|| {
                Bound::AtLeast(relaxation.bound(&mut Sent::default(), &Subproblem::default(), y, ClassId(k)).lower)
            });
            let margins = (0..classes).map(bound).collect();
            Decision { evidence: Evidence::Robust, margins, branches: 0 }
        });
        below(&of, y, &bounds)?;
    }

    /// What a set moves is within the sum of its deletions' cones, its ends are where they are said to be, and its gains suffice; without hidden
    /// layers they are what it takes.
    #[test]
    fn sets_move_what_their_deletions_move(of in tiny(0..=3), which in any::<prop::sample::Index>(), y in 0..2u32) {
        let network = Network::new(&of.graph, &of.model).unwrap();
        let limits = of.budget.limits(&of.graph).unwrap();
        let problem = Problem::new(&network, limits.edges().unwrap()).unwrap();
        let sets = admissible(&of);
        let set = &sets[which.index(sets.len())];
        let mut relaxation = AnyDepth::new(&problem, of.target);
        let sub = Subproblem::default();
        let listed = relaxation.listed(&sub);
        if listed.is_empty() {
            return Ok(());
        }
        relaxation.look(&sub, &listed);
        let known = relaxation.known.pop().unwrap();
        Moved { of: &of, problem: &problem, relaxation: &relaxation, known: &known, set }.check(ClassId(y), ClassId(1 - y))?;
    }
}

/// A set of deletions, and all that is known of the subproblem with none.
struct Moved<'m> {
    of: &'m Tiny,
    problem: &'m Problem<'m>,
    relaxation: &'m AnyDepth<'m>,
    known: &'m Known,
    set: &'m [Edge],
}

impl Moved<'_> {
    fn check(&self, y: ClassId, k: ClassId) -> TestCaseResult {
        let (region, known) = (&self.relaxation.region, self.known);
        let most = &known.cones.as_ref().unwrap().most;
        let making = Making {
            problem: self.problem,
            region,
            base: &known.base,
            magnitude: &self.relaxation.magnitude,
            listed: &known.listed,
            left: known.left,
            most,
        };
        let cones = making.all_moves().unwrap();
        let after =
            Base::new(self.problem, region, &Subproblem { deleted: self.set.to_vec(), ..Subproblem::default() });
        let candidates = &self.relaxation.candidates;
        let listed = |edge: &Edge| {
            let is_of = |listed: &Listed| candidates[listed.candidate].alike.contains(edge);
            known.listed.iter().position(is_of)
        };
        let made: Vec<usize> = self.set.iter().filter_map(listed).collect();
        for (i, rows) in region.rows.iter().enumerate() {
            for (place, &n) in rows.iter().enumerate() {
                self.check_row(&cones, &after, &made, i, place, n)?;
            }
        }
        for closely in [false, known.left > 1] {
            let gradient = Gradient::of_margin(&making, (y, k), BTreeSet::new());
            let gain = |f: usize| gradient.gain(&cones, &known.listed, f);
            let (constant, gains) = if closely {
                apart::linearised(&making, &cones, (y, k))
            } else {
                (gradient.value(), (0..known.listed.len()).map(gain).collect())
            };
            let taken = |&f: &usize| {
                let gain = &gains[f];
                let end = |e: usize| match known.listed[f].ends[e] {
                    NOWHERE => 0.0,
                    n => gain.ends[e][self.count(n) - 1],
                };
                gain.fixed + end(0) + end(1)
            };
            let bound = constant - made.iter().map(taken).sum::<f64>();
            let last = region.rows.len() - 1;
            let margin = after.z[last].get(0, y.index()) - after.z[last].get(0, k.index());
            let margin = margin / self.growth(last, region.rows[last][0]);
            prop_assert!(bound <= margin + 1e-9, "{bound} is above {margin}");
            if last == 0 && known.base.scales[0].is_some() {
                prop_assert!((bound - margin).abs() < 1e-9, "{bound} is not {margin}");
            }
        }
        Ok(())
    }

    /// How many of the deletions that the target may notice are at a node.
    fn count(&self, n: u32) -> usize {
        let node = self.relaxation.region.nodes[n as usize];
        let is_noticed = |edge: &&Edge| self.relaxation.candidates.iter().any(|of| of.alike.contains(edge));
        self.set.iter().filter(|edge| edge.ends().contains(&node)).filter(is_noticed).count()
    }

    fn growth(&self, layer: usize, n: u32) -> f64 {
        growth(self.known.base.scales[layer], self.known.base.degrees[n as usize], self.count(n))
    }

    fn check_row(&self, cones: &Cones, after: &Base, made: &[usize], i: usize, place: usize, n: u32) -> TestCaseResult {
        let (base, is_hidden) = (&self.known.base, i + 1 < self.of.model.layers().len());
        let h: Vec<f64> = after.h[i].row(place).iter().map(|h| h / self.growth(i, n)).collect();
        for j in (0..h.len()).filter(|_| is_hidden) {
            let (mut low, mut high) = (0.0, 0.0);
            let mut add = |f: usize| {
                if let Some((centre, radius)) = cones.h[i].get(f).and_then(|moves| moves.of(place as u32)) {
                    (low, high) = (low + centre[j] - radius[j], high + centre[j] + radius[j]);
                }
            };
            for &f in made {
                add(f);
                let is_own = cones.senders.own[f].contains(&n);
                let common = self.known.listed[f].ends.into_iter().filter(|_| !is_own);
                common.filter_map(|end| cones.senders.place(end)).for_each(&mut add);
            }
            let by = h[j] - base.h[i].get(place, j);
            prop_assert!((low - 1e-9..=high + 1e-9).contains(&by), "layer {i} moves by {by}, not {low} to {high}");
        }
        let ends = made.iter().flat_map(|&f| self.known.listed[f].ends.into_iter().zip(&cones.ends[f]));
        for (_, end) in ends.filter(|&(end, _)| end == n) {
            let units = self.of.model.layers()[i].units();
            let parts = super::base::parts(self.problem, i);
            let gathered: Vec<f64> = after.parts[i]
                .row(place)
                .iter()
                .enumerate()
                .map(|(at, x)| x / growth(parts[at / units], base.degrees[n as usize], self.count(n)))
                .collect();
            for (span, numbers) in [(end.h[i].as_ref(), &h), (end.gathered[i].as_ref(), &gathered)] {
                let Some(span) = span else { continue };
                for ((c, r), x) in span.centre.iter().zip(&span.radius).zip(numbers) {
                    prop_assert!((x - c).abs() <= r + 1e-9, "layer {i}: {x} is not within {r} of {c}");
                }
            }
        }
        Ok(())
    }
}

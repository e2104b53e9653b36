//! Bounds against all admissible sets, and what they are made of.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;

use super::super::evaluate::{FLOOR, Sent, logits};
use super::super::search::{Decision, Relaxation, Search};
use super::super::subproblem::Subproblem;
use super::super::tests::{Tiny, admissible, below, decided_by, hold, tiny};
use super::super::{Problem, TAME};
use super::base::{Base, growth};
use super::cones::{Cones, Listed, Making};
use super::faint::Everywhere;
use super::gains::Gradient;
use super::region::NOWHERE;
use super::{AnyDepth, FAINT, Known, apart, selection};
use crate::Values;
use crate::budget::{Budget, EdgeBudget, LocalBudget};
use crate::certificate::{Bound, Evidence};
use crate::dense::Matrix;
use crate::edge::Edge;
use crate::engines::patience::Patience;
use crate::exact::compare_margin;
use crate::graph::Graph;
use crate::ids::{ClassId, NodeId};
use crate::model::{Activation, Layer, Model, Propagation, Source, Term};
use crate::network::Network;

/// Which parts of a lead are faint: as it is, none, and so large ones that they are on tiny graphs.
fn parts() -> impl Strategy<Value = &'static [f64]> {
    prop::sample::select(vec![&FAINT[..], &[], &[f64::INFINITY, 1.0, 0.1], &[3.0], &[1.0, 0.5]])
}

proptest! {
    #![proptest_config(crate::seed::config(500))]

    #[test]
    fn any_depth_decides(of in tiny(0..=3), parts in parts()) {
        let (y, decision) = decided_by(&of, |problem, y| {
            let relaxation = AnyDepth { parts, ..AnyDepth::new(problem, of.target) };
            Search::new(problem, relaxation, of.target, y).decide(Patience::endless())
        });
        hold(&of, y, &decision)?;
    }

    /// No deletion takes more of a lead than is said of it, whichever others are made.
    #[test]
    fn deletions_take_what_is_said_at_most(of in tiny(0..=3), y in 0..2u32) {
        let network = Network::new(&of.graph, &of.model).unwrap();
        let limits = of.budget.limits(&of.graph).unwrap();
        let problem = Problem::new(&network, limits.edges().unwrap()).unwrap();
        let (mut relaxation, mut sent, k) = (AnyDepth::new(&problem, of.target), Sent::default(), ClassId(1 - y));
        relaxation.find_faint(ClassId(y));
        let (_, faint) = relaxation.faint.as_ref().unwrap();
        let base = |deleted| Base::new(&problem, &relaxation.region, &Subproblem { deleted, ..Subproblem::default() });
        let base_of_none = base(Vec::new());
        let everywhere = Everywhere::new(&problem, &relaxation.region, &relaxation.magnitude, &base_of_none);
        let mut lead = |deleted: Vec<Edge>| {
            let sub = Subproblem { deleted, ..Subproblem::default() };
            logits(&problem, &mut sent, &sub, of.target).margin(y as usize, k.index())
        };
        for set in admissible(&of) {
            for (sizes, h) in everywhere.sizes.iter().zip(base(set.clone()).h) {
                for (&size, h) in sizes.values().iter().zip(h.values()) {
                    prop_assert!(h.abs() <= size * (1.0 + 1e-9), "an activation is {h} with {set:?}, not {size} at most");
                }
            }
            let with = lead(set.clone());
            for edge in &set {
                let candidate = relaxation.candidates.iter().position(|of| of.alike.contains(edge));
                let most = candidate.map_or(0.0, |candidate| faint.takes(candidate, k));
                let without = lead(set.iter().copied().filter(|other| other != edge).collect());
                prop_assert!(without.0 - with.1 <= most, "{edge:?} of {set:?} takes {most} at most, not {without:?} to {with:?}");
            }
        }
    }

    /// The first bound of each class is below all margins, also where it is negative.
    #[test]
    fn bounds_are_below_all_margins(of in tiny(0..=3), parts in parts()) {
        let (y, bounds) = decided_by(&of, |problem, y| {
            let mut relaxation = AnyDepth { parts, ..AnyDepth::new(problem, of.target) };
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
        relaxation.look(&sub, &listed, None);
        let known = relaxation.known.pop().unwrap();
        Moved { of: &of, problem: &problem, relaxation: &relaxation, known: &known, set }.check(ClassId(y), ClassId(1 - y))?;
    }

    /// On a way down a search, with what is known of the subproblems before: bounds are below the margins of all sets of a subproblem, and those
    /// of sets with an idle edge are as large as is said.
    #[test]
    fn bounds_of_subproblems_are_below_their_margins(
        of in tiny(0..=3),
        way in prop::collection::vec((any::<prop::sample::Index>(), any::<bool>()), 6),
        parts in parts(),
    ) {
        let network = Network::new(&of.graph, &of.model).unwrap();
        let limits = of.budget.limits(&of.graph).unwrap();
        let problem = Problem::new(&network, limits.edges().unwrap()).unwrap();
        let mut relaxation = AnyDepth { parts, ..AnyDepth::new(&problem, of.target) };
        let (mut sub, mut sent, pair) = (Subproblem::default(), Sent::default(), (ClassId(0), ClassId(1)));
        let mut sets: Vec<(Vec<Edge>, Graph)> =
            admissible(&of).into_iter().map(|set| (set.clone(), of.graph.without_edges(&set).unwrap())).collect();
        for (which, is_deleted) in way {
            let found = relaxation.bound(&mut sent, &sub, pair.0, pair.1);
            let idle = found.idle.filter(|idle| idle.floor > FLOOR);
            let is_idle =
                |edge: &Edge| !sub.deleted.contains(edge) && idle.iter().any(|idle| idle.edges.contains(edge));
            for (set, graph) in &sets {
                let network = Network::new(graph, &of.model).unwrap();
                let mut bounds = vec![found.lower];
                bounds.extend(idle.iter().filter(|_| set.iter().any(is_idle)).map(|idle| idle.floor));
                for bound in bounds.into_iter().filter(|bound| bound.is_finite()) {
                    let found = compare_margin(&network, of.target, &[], pair, bound - FLOOR);
                    prop_assert!(found != Ordering::Less, "the bound {bound} is above the margin without {set:?}");
                }
            }
            let possible: Vec<Edge> =
                relaxation.candidates().into_iter().filter(|&edge| sub.may_delete(problem.limits, edge)).collect();
            if possible.is_empty() {
                break;
            }
            let edge = possible[which.index(possible.len())];
            sets.retain(|(set, _)| set.contains(&edge) == is_deleted);
            sub = if is_deleted { sub.with(edge) } else { sub.without([edge]) };
        }
    }
}

/// Of the largest numbers that are not refused, squares are part of the lengths of vectors.
#[test]
fn the_largest_numbers_do_not_overflow() {
    let (width, clique, count) = (96, 24, 24);
    let mut edges = vec![(0, 1), (0, clique + 1)];
    edges.extend((1..=clique).flat_map(|a| (1..a).map(move |b| (a, b))));
    let nodes = clique as usize + 2;
    let filled = |rows: usize, columns: usize| Matrix::from_values(rows, columns, vec![TAME; rows * columns]);
    let graph = Graph::new(nodes, width, &edges, &[]).unwrap();
    let graph = graph.with_values(Values::new(filled(nodes, width)).unwrap()).unwrap();
    let sum = Propagation::Polynomial { of: Box::new(Propagation::Adjacency), coefficients: vec![TAME, TAME] };
    let propagations = vec![sum, Propagation::RowMean, Propagation::Identity];
    let hidden = |source| {
        Layer::new(vec![Term::new(source, 0, filled(width, width)); count], vec![0.0; width], Activation::Relu)
    };
    let sources = [Source::Attributes, Source::Layer(0), Source::Layer(1)];
    // The mean of the neighbours, and the node itself, for class 0; nothing for class 1.
    let model = |mean: f64, own: f64| {
        let weight = |of: f64| Matrix::from_values(width, 2, [of, 0.0].repeat(width));
        let terms = vec![Term::new(Source::Layer(2), 1, weight(mean)), Term::new(Source::Layer(2), 2, weight(own))];
        let last = Layer::new(terms, vec![0.0; 2], Activation::None);
        let layers = sources.map(hidden).into_iter().chain([last]).collect();
        Model::new(width, propagations.clone(), layers).unwrap().with_kind(graph.kind())
    };
    let edge = Edge::between(NodeId(0), NodeId(1)).unwrap();
    let protected = graph.adjacency().iter().filter_map(|(a, b)| Edge::between(NodeId(a), NodeId(b)));
    let edges = EdgeBudget::new(1).protect(protected.filter(|&other| other != edge));
    let ratio = |graph: &Graph| {
        let logit = |model| Network::new(graph, &model).unwrap().logits_of(&[NodeId(0)]).get(0, 0);
        logit(model(1.0, 0.0)) / logit(model(0.0, 1.0))
    };
    let (before, after) = (ratio(&graph), ratio(&graph.without_edges(&[edge]).unwrap()));
    assert!(before > after, "{before} is not above {after}");
    let of = Tiny {
        model: model(1.0, -(before + after) / 2.0),
        budget: Budget::new(0, LocalBudget::Count(0)).delete_edges(edges),
        graph: graph.clone(),
        target: NodeId(0),
    };
    let (y, decision) = decided_by(&of, |problem, y| {
        Search::new(problem, AnyDepth::new(problem, of.target), of.target, y).decide(Patience::endless())
    });
    assert_eq!(y, ClassId(0));
    assert!(matches!(decision.evidence, Evidence::Witness(_)), "{decision:?}");
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
            let taken = made.iter().map(taken).sum::<f64>();
            let most = selection::most(&known.listed.iter().zip(&gains).collect::<Vec<_>>(), known.left);
            let least = made.iter().map(|&f| most.with[f]).fold(most.total, f64::min);
            prop_assert!(taken <= least + 1e-9, "a set takes {taken}, not {least} at most");
            let bound = constant - taken;
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

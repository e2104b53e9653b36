//! The radius of a node: the largest global budget that it withstands.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::time::Duration;

use super::{Certifier, CertifyError, Event, Finish, Verdict, Witness};
use crate::graph::{ClassId, NodeId};

/// What is known of the radius of one node.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Radius {
    /// The node.
    pub node: NodeId,
    /// The class that is certified.
    pub class: Option<ClassId>,
    /// The largest global budget under which it is proven robust; `None` if it is not even without flips.
    pub robust_up_to: Option<u32>,
    /// The smallest global budget under which it is proven nonrobust; `None` if it is under none that was asked for.
    pub nonrobust_from: Option<u32>,
    /// Flips that change the class under that budget. Where the radius is exact there is no smaller set.
    pub witness: Option<Witness>,
    /// Verdicts that were needed.
    pub verdicts: u32,
    /// Parts that branch and bound looked at, in all.
    pub branches: u64,
    /// Time spent on this node alone.
    pub time: Duration,
}

impl Radius {
    /// Whether no budget up to `most` is left undecided.
    pub fn is_exact(&self, most: u32) -> bool {
        let next = self.robust_up_to.map_or(Some(0), |robust| robust.checked_add(1));
        self.nonrobust_from == next || (self.nonrobust_from.is_none() && self.robust_up_to >= Some(most))
    }
}

/// The budget that is tried first.
const FIRST_BUDGET: u32 = 8;

/// What was learnt about one node so far. Robust under a budget is robust under smaller ones, nonrobust under larger ones.
#[derive(Debug, Default)]
struct Known {
    /// Budgets from here on are not known to be robust.
    not_robust: u32,
    nonrobust: Option<u32>,
    undecided: BTreeSet<u32>,
    class: Option<ClassId>,
    witness: Option<Witness>,
    verdicts: u32,
    branches: u64,
    time: Duration,
}

/// The budget to try of those from `start` to before `end`: the middle, but not much beyond twice the first, since most
/// radii are small and small budgets are cheap.
fn between(start: u32, end: u32) -> u32 {
    start + ((end - start) / 2).min(start.max(FIRST_BUDGET))
}

impl Known {
    /// The budget, up to `most`, whose verdict says most: one of those that may be the last robust one, then, if some were
    /// undecided, of those that may be the first nonrobust one.
    fn next(&self, most: u32) -> Option<u32> {
        let end = self.nonrobust.unwrap_or_else(|| most.saturating_add(1));
        // A larger budget may be robust where a smaller one was undecided: bounds that are not optimal need not be monotone.
        let mut open = self.undecided.range(self.not_robust..end.max(self.not_robust)).copied();
        let first_open = open.clone().next().unwrap_or(end);
        if self.not_robust < first_open {
            return Some(between(self.not_robust, first_open));
        }
        let last_open = open.next_back().map_or(self.not_robust, |open| open + 1);
        (last_open < end).then(|| between(last_open, end))
    }

    fn learn(&mut self, budget: u32, verdict: Verdict) {
        match verdict {
            Verdict::Robust { .. } => self.not_robust = self.not_robust.max(budget + 1),
            Verdict::Nonrobust { witness } => {
                // The witness needs no larger budget than its own size.
                let needed = budget.min(witness.flips.len() as u32);
                if self.nonrobust.is_none_or(|known| needed < known) {
                    self.nonrobust = Some(needed);
                    self.witness = Some(witness);
                }
            }
            Verdict::Undecided { .. } => {
                self.undecided.insert(budget);
            }
        }
    }

    fn radius(self, node: NodeId) -> Radius {
        Radius {
            node,
            class: self.class,
            robust_up_to: self.not_robust.checked_sub(1),
            nonrobust_from: self.nonrobust,
            witness: self.witness,
            verdicts: self.verdicts,
            branches: self.branches,
            time: self.time,
        }
    }
}

impl Certifier<'_> {
    /// The radius of each of `nodes` up to the global budget `most`, all else in the budget being as it is, by bisection:
    /// exact for every node that the engine decides under each budget it is asked about.
    ///
    /// The observer hears the round, how many nodes of it are done, and how many it has; it may break off, and the result
    /// is `None`.
    ///
    /// # Errors
    /// If a node does not exist or the settings do not fit the graph.
    pub fn radii(
        &self,
        nodes: &[NodeId],
        most: u32,
        mut observer: impl FnMut(usize, usize, usize) -> ControlFlow<()>,
    ) -> Result<Option<Vec<Radius>>, CertifyError> {
        let mut known: Vec<Known> = nodes.iter().map(|_| Known::default()).collect();
        for round in 1.. {
            let mut asked: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
            for (i, known) in known.iter().enumerate() {
                if let Some(budget) = known.next(most) {
                    asked.entry(budget).or_default().push(i);
                }
            }
            let total = asked.values().map(Vec::len).sum();
            let mut done = 0;
            for (global, group) in asked {
                let targets: Vec<NodeId> = group.iter().map(|&i| nodes[i]).collect();
                let mut members = group.iter();
                let finish = self.certify_under(&self.budget.clone().with_global(global), &targets, |event| {
                    if let Event::Certified(certificate) = event
                        && let Some(&i) = members.next()
                    {
                        let known = &mut known[i];
                        known.class = Some(certificate.class);
                        known.verdicts += 1;
                        known.branches += certificate.branches;
                        known.time += certificate.time;
                        known.learn(global, certificate.verdict);
                        done += 1;
                    }
                    observer(round, done, total)
                })?;
                if finish == Finish::Cancelled {
                    return Ok(None);
                }
            }
            if total == 0 {
                break;
            }
        }
        let radii = known.into_iter().zip(nodes).map(|(known, &node)| known.radius(node));
        Ok(Some(radii.collect()))
    }

    /// For each of `nodes` its certified radius, the largest global budget under which it is proven robust, with all else
    /// in the budget as it is: scans upwards from 1, each time over the nodes that were robust before, until none is or `most` is reached. A
    /// node that is not robust against a single flip has 0.
    ///
    /// The observer hears the global budget in question and how many nodes are tried under it, again and again while
    /// they are; it may break off, and the result is `None`.
    ///
    /// # Errors
    /// If a node does not exist or the settings do not fit the graph.
    pub fn certified_radii(
        &self,
        nodes: &[NodeId],
        most: u32,
        mut observer: impl FnMut(u32, usize) -> ControlFlow<()>,
    ) -> Result<Option<Vec<u32>>, CertifyError> {
        let mut largest = vec![0; nodes.len()];
        let mut left: Vec<usize> = (0..nodes.len()).collect();
        for global in 1..=most {
            let tried: Vec<NodeId> = left.iter().map(|&i| nodes[i]).collect();
            let mut robust = Vec::with_capacity(tried.len());
            let budget = self.budget.clone().with_global(global);
            let finish = self.certify_under(&budget, &tried, |event| {
                if let Event::Certified(certificate) = event {
                    robust.push(certificate.verdict.is_robust());
                }
                observer(global, tried.len())
            })?;
            if finish == Finish::Cancelled {
                return Ok(None);
            }
            let mut robust = robust.into_iter();
            left.retain(|_| robust.next().unwrap_or(false));
            left.iter().for_each(|&i| largest[i] = global);
            if left.is_empty() {
                break;
            }
        }
        Ok(Some(largest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::{Budget, Direction};
    use crate::certify::Engine;
    use crate::certify::tests::ring;

    #[test]
    fn scanning_agrees_with_certifying_under_each_budget() {
        let (graph, model) = ring(40);
        let nodes: Vec<NodeId> = graph.node_ids().collect();
        let budget = Budget::new(1, 1.into()).direction(Direction::AddOnly);
        let certifier = Certifier::new(&graph, &model).unwrap().budget(budget.clone());
        let largest = certifier.certified_radii(&nodes, 9, |_, _| ControlFlow::Continue(())).unwrap().unwrap();
        for global in 1..=9 {
            let certifier = Certifier::new(&graph, &model).unwrap().budget(budget.clone().with_global(global));
            for (certificate, &largest) in certifier.certify(&nodes).unwrap().iter().zip(&largest) {
                assert_eq!(certificate.verdict.is_robust(), global <= largest, "node {}", certificate.node);
            }
        }
        assert!(largest.iter().any(|&largest| largest < 9) && largest.iter().any(|&largest| largest > 0));
    }

    #[test]
    fn bisection_agrees_with_the_verdicts_under_each_budget() {
        let (graph, model) = ring(40);
        let nodes: Vec<NodeId> = graph.node_ids().collect();
        let budget = Budget::new(1, 1.into()).direction(Direction::AddOnly);
        let certifier = |engine| Certifier::new(&graph, &model).unwrap().budget(budget.clone()).engine(engine);
        for engine in Engine::ALL {
            let radii = certifier(engine).radii(&nodes, 9, |_, _, _| ControlFlow::Continue(())).unwrap().unwrap();
            for global in 0..=9 {
                let certifier = certifier(engine).budget(budget.clone().with_global(global));
                for (certificate, radius) in certifier.certify(&nodes).unwrap().iter().zip(&radii) {
                    let robust = radius.robust_up_to.is_some_and(|robust| global <= robust);
                    assert_eq!(certificate.verdict.is_robust(), robust, "{radius:?}");
                    let nonrobust = radius.nonrobust_from.is_some_and(|from| global >= from);
                    let witness = matches!(certificate.verdict, Verdict::Nonrobust { .. });
                    assert_eq!(witness, nonrobust, "{radius:?}");
                }
            }
            let exact = radii.iter().filter(|radius| radius.is_exact(9)).count();
            assert!(exact == nodes.len() || engine != Engine::Complete, "{engine:?}: {exact}");
        }
        let broken = certifier(Engine::Fast).radii(&nodes, 9, |round, _, _| {
            if round == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert_eq!(broken.unwrap(), None);
    }

    #[test]
    fn undecided_budgets_are_narrowed_from_both_sides() {
        let robust = || Verdict::Robust { margin: 1.0 };
        let undecided = || Verdict::Undecided { lower: -1.0, upper: 1.0 };
        let nonrobust = |flips| {
            let flip = |attribute| crate::budget::Flip { node: NodeId(0), attribute: crate::AttributeId(attribute) };
            let witness = Witness { flips: (0..flips).map(flip).collect(), class: ClassId(1), margin: -1.0 };
            Verdict::Nonrobust { witness }
        };
        // Robust up to 3, nonrobust from 9, undecided in between.
        let mut known = Known::default();
        let mut asked = 0;
        while let Some(budget) = known.next(20) {
            asked += 1;
            known.learn(
                budget,
                match budget {
                    0..=3 => robust(),
                    4..=8 => undecided(),
                    _ => nonrobust(budget),
                },
            );
        }
        let radius = known.radius(NodeId(0));
        assert_eq!((radius.robust_up_to, radius.nonrobust_from, asked <= 10), (Some(3), Some(9), true));
        assert!(!radius.is_exact(20));
        // What was undecided is robust after all once a larger budget is.
        let mut known = Known::default();
        for (budget, verdict) in [(2, undecided()), (1, robust()), (3, robust())] {
            assert_eq!(known.next(3), Some(budget));
            known.learn(budget, verdict);
        }
        assert_eq!(known.next(3), None);
        assert_eq!(known.radius(NodeId(0)).robust_up_to, Some(3));
        // A witness that is smaller than the budget says more than it was asked for.
        let mut known = Known::default();
        known.learn(10, nonrobust(4));
        assert_eq!((known.nonrobust, known.next(20)), (Some(4), Some(2)));
    }

    #[test]
    fn it_ends_at_the_largest_budget_asked_for_and_can_be_broken_off() {
        let (graph, model) = ring(40);
        let nodes: Vec<NodeId> = graph.node_ids().collect();
        let certifier = Certifier::new(&graph, &model).unwrap();
        let scan = |most, stop_at: u32| {
            let observer =
                |global, _| if global == stop_at { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
            certifier.certified_radii(&nodes, most, observer).unwrap()
        };
        assert!(scan(1, 0).unwrap().iter().all(|&largest| largest <= 1));
        assert_eq!(scan(0, 0).unwrap(), vec![0; 40]);
        assert_eq!(scan(9, 1), None);
    }
}

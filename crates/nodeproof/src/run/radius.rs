//! The radius of a node: the largest global budget that it withstands.
//!
//! Where more is asked for than positive margins, robust means that under each budget, with what may be lost in rounding under that one.
//!
//! Robust under a budget is robust under smaller ones, nonrobust under larger ones, so that verdicts under a few budgets
//! tell the radius (Lemma 27 of `docs/maths.md`). Budgets are tried in rounds over all nodes; everything that follows depends on the verdicts alone, so that
//! a search can be taken up again from a journal of them.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::time::Duration;

use super::certifier::{Certifier, Progress};
use super::worker::Worker;
use super::{CertifyError, Finish};
use crate::certificate::{Certificate, Verdict, Witness};
use crate::ids::{ClassId, NodeId};
use crate::proof::Proofs;
use crate::radius::{Found, Radius};
use crate::results::Trial;

/// The budget that is tried first.
const FIRST_BUDGET: u32 = 8;

/// What was learnt about one node so far.
#[derive(Debug, Default)]
struct Known {
    /// Budgets from here on are not known to be robust.
    not_robust: u32,
    nonrobust: Option<u32>,
    undecided: BTreeSet<u32>,
    class: Option<ClassId>,
    witness: Option<Witness>,
    /// Proofs for the largest budget that is known to be robust.
    proofs: Option<Proofs>,
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

    /// The budget after the last robust one, up to `most`, as long as none was refused; a scan begins with 1.
    fn next_of_scan(&self, most: u32) -> Option<u32> {
        let next = self.not_robust.max(1);
        let going = self.nonrobust.is_none() && self.undecided.is_empty();
        (going && next <= most).then_some(next)
    }

    fn learn(&mut self, Trial { budget, class, verdict, witness, proofs, branches, time, .. }: &Trial) {
        self.class = Some(*class);
        self.verdicts += 1;
        self.branches += branches;
        self.time += time.unwrap_or_default();
        match verdict {
            Verdict::Robust if self.not_robust > *budget => {}
            Verdict::Robust => (self.not_robust, self.proofs) = (budget.saturating_add(1), proofs.clone()),
            Verdict::Nonrobust => {
                // The witness needs no larger budget than its own size.
                let needed = witness.as_ref().map_or(*budget, |witness| (*budget).min(witness.size() as u32));
                if self.nonrobust.is_none_or(|known| needed < known) {
                    self.nonrobust = Some(needed);
                    self.witness.clone_from(witness);
                }
            }
            Verdict::Undecided => {
                self.undecided.insert(*budget);
            }
        }
    }

    /// Whether no budget up to `most` is left undecided.
    fn is_exact(&self, most: u32) -> bool {
        Radius::all_decided(self.not_robust.checked_sub(1), self.nonrobust, most)
    }

    fn found(&self, most: u32) -> Found {
        let mut found = Found::of_class(self.class);
        found.nonrobust_from = self.nonrobust;
        found.exact = self.is_exact(most);
        found.witness.clone_from(&self.witness);
        found.proofs.clone_from(&self.proofs);
        (found.verdicts, found.branches, found.time) = (self.verdicts, self.branches, Some(self.time));
        found
    }
}

/// Progress of a [`RadiusSearch`].
#[derive(Debug)]
#[non_exhaustive]
pub enum SearchEvent<'t> {
    /// Nothing new, but it goes on.
    Working,
    /// One more verdict, which [`RadiusSearch::learn`] takes if the search is to be taken up again.
    Verdict(&'t Trial),
}

/// A search for the radii of many nodes.
#[derive(Debug)]
pub struct RadiusSearch<'c> {
    certifier: &'c Certifier<'c>,
    nodes: &'c [NodeId],
    most: u32,
    scan: bool,
    known: Vec<Known>,
    round: usize,
    /// The budgets of this round, each with the nodes (as places in `nodes`) that are asked about under it.
    plan: Vec<(u32, Vec<usize>)>,
    /// The budget of the plan that is at hand, and how many of its nodes are done.
    group: usize,
    done: usize,
}

impl Certifier<'_> {
    /// A search for the radius of each of `nodes` up to the global budget `most`, all else being as in the settings, by
    /// bisection: exact for every node that the engine decides under each budget it is asked about.
    pub fn search_radii<'c>(&'c self, nodes: &'c [NodeId], most: u32) -> RadiusSearch<'c> {
        RadiusSearch::new(self, nodes, most, false)
    }

    /// The paper's search: scans budgets upwards from 1, each time over the nodes that were proven robust before, until none
    /// is or `most` is reached. A node that is not robust against a single flip has 0, and nothing is said about witnesses.
    pub fn scan_radii<'c>(&'c self, nodes: &'c [NodeId], most: u32) -> RadiusSearch<'c> {
        RadiusSearch::new(self, nodes, most, true)
    }

    /// The radii of `nodes` up to the global budget `most`, see [`Certifier::search_radii`].
    ///
    /// # Errors
    /// If a node does not exist or the settings do not fit the graph.
    pub fn radii(&self, nodes: &[NodeId], most: u32) -> Result<Vec<Radius>, CertifyError> {
        let mut search = self.search_radii(nodes, most);
        let _ = search.run(|_, _| ControlFlow::Continue(()))?;
        Ok(search.radii())
    }
}

impl<'c> RadiusSearch<'c> {
    fn new(certifier: &'c Certifier<'c>, nodes: &'c [NodeId], most: u32, scan: bool) -> Self {
        let known = nodes.iter().map(|_| Known::default()).collect();
        let mut search = Self { certifier, nodes, most, scan, known, round: 0, plan: Vec::new(), group: 0, done: 0 };
        search.next_round();
        search
    }

    /// The round that is at hand, counted from 1; of a scan, the global budget.
    pub fn round(&self) -> usize {
        self.round
    }

    /// Verdicts of this round that are there, and that there will be.
    pub fn progress(&self) -> (usize, usize) {
        let sizes = self.plan.iter().map(|(_, nodes)| nodes.len());
        (sizes.clone().take(self.group).sum::<usize>() + self.done, sizes.sum())
    }

    /// Whether no verdict is missing.
    pub fn is_finished(&self) -> bool {
        self.plan.is_empty()
    }

    /// Takes a verdict of an earlier run of the same search.
    ///
    /// # Errors
    /// If it is not the one that comes next.
    pub fn learn(&mut self, trial: &Trial) -> Result<(), String> {
        let Some((budget, places)) = self.plan.get(self.group) else {
            return Err("the search was over before".to_owned());
        };
        let node = self.nodes[places[self.done]];
        if (trial.node, trial.budget) != (node, *budget) {
            return Err(format!(
                "it is about node {} under a budget of {}, where node {node} under {budget} comes next",
                trial.node, trial.budget
            ));
        }
        self.take(trial);
        Ok(())
    }

    /// Goes on until the search is over or `observer` breaks off.
    ///
    /// # Errors
    /// If a node does not exist or the settings do not fit the graph.
    pub fn run(
        &mut self,
        mut observer: impl FnMut(&Self, SearchEvent) -> ControlFlow<()>,
    ) -> Result<Finish, CertifyError> {
        let certifier = self.certifier;
        let ready = certifier.ready_for_budgets(self.nodes)?;
        while let Some((budget, places)) = self.plan.get(self.group).cloned() {
            let all: Vec<NodeId> = places.iter().map(|&place| self.nodes[place]).collect();
            let left = &all[self.done..];
            let observer = |progress: Progress<Certificate>| match progress {
                Progress::Preparing { .. } | Progress::Working => observer(self, SearchEvent::Working),
                Progress::Done(certificate) => {
                    let trial = Trial::new(&certificate, budget);
                    self.take(&trial);
                    observer(self, SearchEvent::Verdict(&trial))
                }
            };
            let work = |worker: &mut Worker, node| worker.certify(node);
            let finish = match &ready {
                Some(ready) => certifier.look_at(ready, budget, (&all, left), work, observer)?,
                None => certifier.under(budget).certify_alone(left, observer)?,
            };
            if finish == Finish::Cancelled {
                return Ok(finish);
            }
        }
        Ok(Finish::Complete)
    }

    /// What is known of each node.
    pub fn radii(&self) -> Vec<Radius> {
        let graph = self.certifier.network.graph();
        let radius = |(&node, known): (&NodeId, &Known)| {
            if self.scan {
                return Radius::new(node, graph, Some(known.not_robust.saturating_sub(1)), None);
            }
            Radius::new(node, graph, known.not_robust.checked_sub(1), Some(known.found(self.most)))
        };
        self.nodes.iter().zip(&self.known).map(radius).collect()
    }

    /// Takes the verdict that comes next.
    fn take(&mut self, trial: &Trial) {
        let places = &self.plan[self.group].1;
        self.known[places[self.done]].learn(trial);
        self.done += 1;
        if self.done == places.len() {
            (self.group, self.done) = (self.group + 1, 0);
            if self.group == self.plan.len() {
                self.next_round();
            }
        }
    }

    /// Plans a round: which budget is tried for which node.
    fn next_round(&mut self) {
        let mut plan: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for (place, known) in self.known.iter().enumerate() {
            let next = if self.scan { known.next_of_scan(self.most) } else { known.next(self.most) };
            if let Some(budget) = next {
                plan.entry(budget).or_default().push(place);
            }
        }
        self.plan = plan.into_iter().collect();
        (self.round, self.group, self.done) = (self.round + 1, 0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::{Budget, Direction};
    use crate::flip::Flip;
    use crate::ids::AttributeId;
    use crate::run::certifier::tests::ring;
    use crate::settings::{Arithmetic, Engine};

    fn scanned(certifier: &Certifier, nodes: &[NodeId], most: u32) -> Vec<u32> {
        let mut search = certifier.scan_radii(nodes, most);
        let _ = search.run(|_, _| ControlFlow::Continue(())).unwrap();
        search.radii().iter().map(|radius| radius.robust_up_to.unwrap()).collect()
    }

    #[test]
    fn scanning_agrees_with_certifying_under_each_budget() {
        let (graph, model) = ring(40);
        let nodes: Vec<NodeId> = graph.node_ids().collect();
        let budget = Budget::new(1, 1.into()).direction(Direction::AddOnly);
        let certifier = Certifier::new(&graph, &model).unwrap().budget(budget.clone());
        let largest = scanned(&certifier, &nodes, 9);
        for global in 1..=9 {
            let certifier = Certifier::new(&graph, &model).unwrap().budget(budget.clone().with_global(global));
            for (certificate, &largest) in certifier.certify(&nodes).unwrap().iter().zip(&largest) {
                assert_eq!(certificate.is_robust(), global <= largest, "node {}", certificate.node);
            }
        }
        assert!(largest.iter().any(|&largest| largest < 9) && largest.iter().any(|&largest| largest > 0));
        assert!(scanned(&certifier, &nodes, 1).iter().all(|&largest| largest <= 1));
        assert_eq!(scanned(&certifier, &nodes, 0), vec![0; 40]);
    }

    #[test]
    fn bisection_agrees_with_the_verdicts_under_each_budget() {
        let (graph, model) = ring(40);
        let nodes: Vec<NodeId> = graph.node_ids().collect();
        let budget = Budget::new(1, 1.into()).direction(Direction::AddOnly);
        let certifier = |engine| Certifier::new(&graph, &model).unwrap().budget(budget.clone()).engine(engine);
        for engine in Engine::ALL {
            let radii = certifier(engine).radii(&nodes, 9).unwrap();
            for global in 0..=9 {
                let certifier = certifier(engine).budget(budget.clone().with_global(global));
                for (certificate, radius) in certifier.certify(&nodes).unwrap().iter().zip(&radii) {
                    let robust = radius.robust_up_to.is_some_and(|robust| global <= robust);
                    assert_eq!(certificate.is_robust(), robust, "{radius:?}");
                    let nonrobust = radius.nonrobust_from().is_some_and(|from| global >= from);
                    assert_eq!(certificate.witness().is_some(), nonrobust, "{radius:?}");
                }
            }
            let exact = radii.iter().filter(|radius| radius.is_exact()).count();
            assert!(exact == nodes.len() || engine != Engine::Complete, "{engine:?}: {exact}");
        }
    }

    /// The radii without the time they took.
    fn timeless(search: &RadiusSearch) -> Vec<Radius> {
        let mut radii = search.radii();
        radii.iter_mut().filter_map(|radius| radius.found.as_mut()).for_each(|found| found.time = None);
        radii
    }

    #[test]
    fn a_search_can_be_taken_up_again_after_any_verdict() {
        let (graph, model) = ring(30);
        let nodes: Vec<NodeId> = graph.node_ids().collect();
        let budget = Budget::new(1, 1.into());
        for (scan, margin) in [(false, 0.0), (true, 0.0), (false, 0.1)] {
            let certifier = Certifier::new(&graph, &model).unwrap().budget(budget.clone()).engine(Engine::Complete);
            let arithmetic = if margin == 0.0 { Arithmetic::Exact } else { Arithmetic::F32 };
            let certifier = certifier.margin(margin).arithmetic(arithmetic);
            let begin = || RadiusSearch::new(&certifier, &nodes, 9, scan);
            let (mut whole, mut journal) = (begin(), Vec::new());
            let _ = whole.run(|_, event| {
                if let SearchEvent::Verdict(trial) = event {
                    journal.push(trial.clone());
                }
                ControlFlow::Continue(())
            });
            assert!(whole.is_finished() && journal.len() > 40);
            for kept in [0, 1, 29, 30, 31, journal.len() - 1, journal.len()] {
                let mut search = begin();
                journal[..kept].iter().for_each(|trial| search.learn(trial).unwrap());
                assert_eq!(search.is_finished(), kept == journal.len());
                let _ = search.run(|_, _| ControlFlow::Continue(())).unwrap();
                assert_eq!(timeless(&search), timeless(&whole), "{kept} kept");
            }
            let mut search = begin();
            search.learn(&journal[0]).unwrap();
            assert!(search.learn(&journal[0]).unwrap_err().contains("comes next"), "a verdict twice");
            journal.iter().skip(1).for_each(|trial| search.learn(trial).unwrap());
            assert!(search.learn(&journal[0]).unwrap_err().contains("over"), "a verdict too many");
        }
    }

    #[test]
    fn it_can_be_broken_off() {
        let (graph, model) = ring(40);
        let nodes: Vec<NodeId> = graph.node_ids().collect();
        let certifier = Certifier::new(&graph, &model).unwrap();
        let mut search = certifier.search_radii(&nodes, 9);
        let finish = search.run(
            |search, _| {
                if search.round() == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            },
        );
        assert_eq!((finish.unwrap(), search.is_finished()), (Finish::Cancelled, false));
    }

    fn trial(budget: u32, verdict: Verdict, flips: u32) -> Trial {
        let (graph, model) = ring(10);
        let certificate = Certifier::new(&graph, &model).unwrap().certify(&[NodeId(0)]).unwrap().remove(0);
        let flip = |attribute| Flip { node: NodeId(0), attribute: AttributeId(attribute), to: 1.0 };
        let witness = Witness::new((0..flips).map(flip).collect(), ClassId(1), -1.0);
        let mut trial = Trial::new(&certificate, budget);
        (trial.verdict, trial.witness) = (verdict, (verdict == Verdict::Nonrobust).then_some(witness));
        trial
    }

    #[test]
    fn undecided_budgets_are_narrowed_from_both_sides() {
        // Robust up to 3, nonrobust from 9, undecided in between.
        let mut known = Known::default();
        let mut asked = 0;
        while let Some(budget) = known.next(20) {
            asked += 1;
            known.learn(&match budget {
                0..=3 => trial(budget, Verdict::Robust, 0),
                4..=8 => trial(budget, Verdict::Undecided, 0),
                _ => trial(budget, Verdict::Nonrobust, budget),
            });
        }
        assert_eq!((known.not_robust, known.nonrobust, asked <= 10), (4, Some(9), true));
        assert!(!known.is_exact(20));
        // What was undecided is robust after all once a larger budget is.
        let mut known = Known::default();
        for (budget, verdict) in [(2, Verdict::Undecided), (1, Verdict::Robust), (3, Verdict::Robust)] {
            assert_eq!(known.next(3), Some(budget));
            known.learn(&trial(budget, verdict, 0));
        }
        assert_eq!((known.next(3), known.not_robust), (None, 4));
        // A witness that is smaller than the budget says more than it was asked for.
        let mut known = Known::default();
        known.learn(&trial(10, Verdict::Nonrobust, 4));
        assert_eq!((known.nonrobust, known.next(20)), (Some(4), Some(2)));
    }
}

//! Branch and bound over deletions.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use super::Problem;
use super::evaluate::{FLOOR, Logits, Sent, logits};
use super::subproblem::Subproblem;
use crate::certificate::{Bound, Evidence, Obstacle, Witness, smallest};
use crate::edge::Edge;
use crate::engines::patience::Patience;
use crate::exact::compare_logits;
use crate::ids::{ClassId, NodeId};
use crate::network::Network;

/// A lower bound of the margin over all sets of a subproblem, and what it thinks the worst set is.
#[derive(Debug, Default)]
pub(super) struct Relaxed {
    /// Rounded down.
    pub(super) lower: f64,
    /// Further deletions.
    pub(super) selection: Vec<Selected>,
    /// Deletions that may be among the worst, to be tried in other sets.
    pub(super) promising: Vec<Edge>,
    /// Edges that need not be looked at any further.
    pub(super) idle: Option<Idle>,
}

impl Relaxed {
    /// The deletions of a subproblem together with those that are selected.
    fn selected(&self, sub: &Subproblem) -> Subproblem {
        self.selection.iter().fold(sub.clone(), |sub, of| sub.with(of.edge))
    }
}

/// Edges of which no set with a small margin has any.
#[derive(Debug)]
pub(super) struct Idle {
    pub(super) edges: BTreeSet<Edge>,
    /// Sets that have one of them have this margin at least, a positive one.
    pub(super) floor: f64,
}

/// A deletion that a relaxation selects.
#[derive(Debug)]
pub(super) struct Selected {
    pub(super) edge: Edge,
    /// What it seems to gain.
    pub(super) gain: f64,
    /// Edges of which it does not matter which one is deleted, this one included.
    pub(super) alike: Vec<Edge>,
}

/// What bounds margins of one target.
pub(super) trait Relaxation {
    /// The bound of `logit_y − logit_k`.
    fn bound(&mut self, sent: &mut Sent, sub: &Subproblem, y: ClassId, k: ClassId) -> Relaxed;

    /// Edges that matter to the target, whichever others are deleted.
    fn candidates(&self) -> Vec<Edge>;
}

/// What was found out about a target.
#[derive(Debug)]
pub(crate) struct Decision {
    pub(crate) evidence: Evidence,
    pub(crate) margins: Vec<Option<Bound>>,
    /// Subproblems that were looked at, but for the first of each class.
    pub(crate) branches: u64,
}

/// The search for deletions that change the class of one target.
pub(super) struct Search<'s, R> {
    pub(super) problem: &'s Problem<'s>,
    pub(super) relaxation: R,
    pub(super) target: NodeId,
    pub(super) y: ClassId,
    sent: Sent,
    /// The smallest margin found, rounded up, its class, and the deletions.
    best: (f64, ClassId, Vec<Edge>),
    branches: u64,
}

/// The lead over a class where its bound does not show that it is kept.
struct Lead {
    k: ClassId,
    relaxed: Relaxed,
}

/// What is left of a search, and what it has shown.
struct Tree {
    /// Subproblems with the classes that may take the lead there.
    open: Vec<(Subproblem, Vec<ClassId>)>,
    /// Of each class.
    shown: Vec<Shown>,
}

impl Tree {
    /// Leaves out sets with edges that are idle for all of the classes.
    fn without_idle(&mut self, sub: Subproblem, leads: &[Lead]) -> Subproblem {
        let idle = leads.iter().map(|lead| lead.relaxed.idle.as_ref().filter(|idle| idle.floor > FLOOR));
        let Some(all) = idle.collect::<Option<Vec<&Idle>>>() else { return sub };
        let in_all = all.iter().map(|idle| idle.edges.clone()).reduce(|a, b| &a & &b);
        let Some(edges) = in_all.filter(|edges| !edges.is_empty()) else { return sub };
        for (lead, idle) in leads.iter().zip(all) {
            self.shown[lead.k.index()].above(idle.floor - FLOOR);
        }
        sub.without(edges)
    }
}

/// What is known of the margins to a class in the sets that were left behind.
#[derive(Clone)]
struct Shown {
    lowest: f64,
    /// Whether only the sign of some is known.
    is_above_zero: bool,
}

impl Default for Shown {
    fn default() -> Self {
        Self { lowest: f64::INFINITY, is_above_zero: false }
    }
}

impl Shown {
    fn above(&mut self, lower: f64) {
        self.lowest = self.lowest.min(lower);
    }

    fn bound(&self) -> Bound {
        if self.is_above_zero { Bound::Positive } else { Bound::AtLeast(self.lowest) }
    }
}

/// Why a search ended early.
enum End {
    Witness,
    Obstacle(Obstacle),
}

impl End {
    fn obstacle(self) -> Option<Obstacle> {
        if let Self::Obstacle(obstacle) = self { Some(obstacle) } else { None }
    }
}

impl<'s, R: Relaxation> Search<'s, R> {
    pub(super) fn new(problem: &'s Problem<'s>, relaxation: R, target: NodeId, y: ClassId) -> Self {
        let best = (f64::INFINITY, y, Vec::new());
        Self { problem, relaxation, target, y, sent: Sent::default(), best, branches: 0 }
    }

    /// The verdict.
    pub(super) fn decide(mut self, patience: Patience) -> Decision {
        let mut margins = self.each_class(|_, _| Bound::Unknown);
        let classes = margins.len();
        let mut ended = self.attempt(&Subproblem::default()).err();
        if !self.problem.is_tame {
            ended = ended.or(Some(End::Obstacle(Obstacle::Overflow)));
        }
        let (y, mut started) = (self.y, Vec::new());
        for k in (0..classes as u32).map(ClassId).filter(|&k| k != y) {
            if matches!(ended, Some(End::Witness)) || !self.problem.is_tame {
                break;
            }
            match self.start(k, &mut margins[k.index()], patience) {
                Ok(root) => started.extend(root),
                Err(end) => ended = Some(end),
            }
        }
        if !matches!(ended, Some(End::Witness)) {
            ended = self.refute(started, &mut margins, patience).err().or(ended);
        }
        let (margin, class, edges) = self.best;
        let evidence = match (ended, smallest(&margins).1) {
            (Some(End::Witness), _) => Evidence::Witness(Witness::new(Vec::new(), class, margin).with_edges(edges)),
            (_, lower) if lower.is_positive() => Evidence::Robust,
            (ended, lower) => {
                let because = ended.and_then(End::obstacle);
                Evidence::Open { lower, upper: margin.is_finite().then_some(margin), because }
            }
        };
        Decision { evidence, margins, branches: self.branches }
    }

    /// Lower bounds of the margins over all admissible sets, without branching.
    pub(super) fn margins(mut self) -> Vec<Option<Bound>> {
        self.each_class(|search, k| {
            let (root, y) = (Subproblem::default(), search.y);
            let known =
                search.problem.is_tame.then(|| search.relaxation.bound(&mut search.sent, &root, y, k).lower - FLOOR);
            known.filter(|lower| lower.is_finite()).map_or(Bound::Unknown, Bound::AtLeast)
        })
    }

    /// A bound for each class but y.
    fn each_class(&mut self, mut bound: impl FnMut(&mut Self, ClassId) -> Bound) -> Vec<Option<Bound>> {
        let classes = (0..self.problem.network.model().classes() as u32).map(ClassId);
        classes.map(|k| (k != self.y).then(|| bound(self, k))).collect()
    }

    /// Bounds the margin to a class over all sets, and tries a few; `None` if the bound is positive.
    fn start(&mut self, k: ClassId, margin: &mut Option<Bound>, patience: Patience) -> Result<Option<Lead>, End> {
        let root = Subproblem::default();
        let relaxed = self.bound(&root, k);
        let lower = relaxed.lower;
        *margin = Some(if lower.is_finite() { Bound::AtLeast(lower) } else { Bound::Unknown });
        if lower > 0.0 {
            return Ok(None);
        }
        self.attempt(&relaxed.selected(&root))?;
        self.descend(&relaxed.promising, k, patience)?;
        Ok(Some(Lead { k, relaxed }))
    }

    /// Shows that no admissible set takes the lead over some classes, or finds one that takes it over some class. One tree for all of
    /// them, since most of what a bound is made of is the same for all classes.
    fn refute(&mut self, leads: Vec<Lead>, margins: &mut [Option<Bound>], patience: Patience) -> Result<(), End> {
        let asked: Vec<ClassId> = leads.iter().map(|lead| lead.k).collect();
        let mut tree = Tree { open: Vec::new(), shown: vec![Shown::default(); margins.len()] };
        self.divide(&mut tree, Subproblem::default(), leads, patience)?;
        while let Some((sub, classes)) = tree.open.pop() {
            self.branches += 1;
            let mut leads = Vec::new();
            for k in classes {
                let relaxed = self.bound(&sub, k);
                if relaxed.lower > 0.0 {
                    tree.shown[k.index()].above(relaxed.lower);
                } else {
                    self.attempt(&relaxed.selected(&sub))?;
                    leads.push(Lead { k, relaxed });
                }
            }
            self.divide(&mut tree, sub, leads, patience)?;
        }
        for k in asked {
            margins[k.index()] = Some(tree.shown[k.index()].bound());
        }
        Ok(())
    }

    fn bound(&mut self, sub: &Subproblem, k: ClassId) -> Relaxed {
        let relaxed = self.relaxation.bound(&mut self.sent, sub, self.y, k);
        Relaxed { lower: relaxed.lower - FLOOR, ..relaxed }
    }

    /// Opens the parts of a subproblem for the classes that its bounds leave open, on the deletion that seems worst for the worst of them.
    fn divide(&mut self, tree: &mut Tree, sub: Subproblem, leads: Vec<Lead>, patience: Patience) -> Result<(), End> {
        let classes: Vec<ClassId> = leads.iter().map(|lead| lead.k).collect();
        let sub = tree.without_idle(sub, &leads);
        let Some(worst) = leads.into_iter().min_by(|a, b| a.relaxed.lower.total_cmp(&b.relaxed.lower)) else {
            return Ok(());
        };
        let bytes = tree.open.len() * (size_of::<Subproblem>() + 64 * (sub.kept.len() + sub.deleted.len()));
        if !patience.branch {
            return Err(End::Obstacle(Obstacle::Engine));
        }
        if let Some(obstacle) = patience.obstacle(bytes) {
            return Err(End::Obstacle(obstacle));
        }
        let may = |edge: Edge| sub.may_delete(self.problem.limits, edge);
        let possible = worst.relaxed.selection.into_iter().filter(|of| may(of.edge));
        let chosen = possible.min_by(|a, b| b.gain.total_cmp(&a.gain)).or_else(|| {
            let edge = self.relaxation.candidates().into_iter().find(|&edge| may(edge))?;
            Some(Selected { edge, gain: 0.0, alike: vec![edge] })
        });
        match chosen {
            Some(of) => {
                self.attempt(&sub.with(of.edge))?;
                tree.open.push((sub.without(of.alike), classes.clone()));
                tree.open.push((sub.with(of.edge), classes));
            }
            // The set of the edges that are deleted already is the only one left.
            None => {
                for k in classes {
                    self.holds(&sub, k)?;
                    tree.shown[k.index()].is_above_zero = true;
                }
            }
        }
        Ok(())
    }

    /// Tries deletions on the network itself; an error if they are a witness.
    fn attempt(&mut self, sub: &Subproblem) -> Result<(), End> {
        if !self.problem.limits.admits(self.problem.network.graph(), &sub.deleted) {
            return Ok(());
        }
        let found = logits(self.problem, &mut self.sent, sub, self.target);
        let others = (0..found.values.len()).filter(|&k| k != self.y.index());
        let Some((upper, k)) = others.map(|k| (self.upper(&found, k), k)).min_by(|a, b| a.0.total_cmp(&b.0)) else {
            return Ok(());
        };
        if upper < self.best.0 {
            self.remember(upper, ClassId(k as u32), sub);
        }
        if upper < 0.0 { Err(End::Witness) } else { Ok(()) }
    }

    /// Tries deletions one after the other, each time the one of some edges that leaves the class the smallest lead over k.
    fn descend(&mut self, edges: &[Edge], k: ClassId, patience: Patience) -> Result<(), End> {
        let mut sub = Subproblem::default();
        while patience.branch && patience.obstacle(0).is_none() {
            let possible = edges.iter().filter(|&&edge| sub.may_delete(self.problem.limits, edge));
            let lead = |sub: &Subproblem, sent: &mut Sent| {
                logits(self.problem, sent, sub, self.target).margin(self.y.index(), k.index()).1
            };
            let tried = possible.map(|&edge| sub.with(edge)).map(|sub| (lead(&sub, &mut self.sent), sub));
            let Some((_, best)) = tried.min_by(|a, b| a.0.total_cmp(&b.0)) else { break };
            self.attempt(&best)?;
            sub = best;
        }
        Ok(())
    }

    /// At most the lead over k; where numbers are not tame, nothing is known of it.
    fn upper(&self, found: &Logits, k: usize) -> f64 {
        if self.problem.is_tame { found.margin(self.y.index(), k).1 } else { f64::INFINITY }
    }

    /// Whether deletions leave the class its lead over k, in exact arithmetic; an error if not, as they are a witness.
    fn holds(&mut self, sub: &Subproblem, k: ClassId) -> Result<(), End> {
        let network = self.problem.network;
        let graph = network.graph().without_edges(&sub.deleted);
        let graph = graph.unwrap_or_else(|error| unreachable!("edges of the graph, each once: {error}"));
        let other = Network::new(&graph, network.model());
        let other = other.unwrap_or_else(|error| unreachable!("the model fits the graph with more edges: {error}"));
        if compare_logits(&other, self.target, &[], self.y, k) == Ordering::Greater {
            return Ok(());
        }
        self.remember(0.0, k, sub);
        Err(End::Witness)
    }

    fn remember(&mut self, margin: f64, class: ClassId, sub: &Subproblem) {
        let mut edges = sub.deleted.clone();
        edges.sort_unstable();
        self.best = (margin, class, edges);
    }
}

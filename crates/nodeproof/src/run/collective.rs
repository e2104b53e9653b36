//! How many predictions one admissible set of flips can change at most, and an attack that changes many.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use super::certifier::Ready;
use super::schedule::each_target;
use super::worker::{Effort, Parts, Worker};
use super::{Certifier, CertifyError, Finish};
use crate::budget::Limits;
use crate::collective::{Balance, Cuts, Filling, Score, Seen, Table, Tampered, attack, balance, best_single};
use crate::engines::first_order::Listed;
use crate::flip::Flip;
use crate::graph::Graph;
use crate::ids::{AttributeId, ClassId, NodeId};
use crate::network::Network;
use crate::radius::Radius;
use crate::slice::DOWN;
use nodeproof_problem::Collective;

/// What [`Certifier::collective`] is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stage {
    /// What nodes have in common.
    Preparing,
    /// What flips take of each prediction.
    Taking,
    /// The bound over all predictions.
    Bounding,
    /// Flips that change many.
    Attacking,
}

/// Flips are listed that may take at least this part of an equal share of a margin, and no more than so many of a row.
const LISTED: (f64, usize) = (0.25, 48);
/// With a budget of 1 all flips are listed that may take this part of a margin.
const ALONE: f64 = 0.9;
/// So many flips of each kind are tried in an attack.
const TRIED: usize = 400;

impl Certifier<'_> {
    /// How many of the predictions of nodes an admissible set of flips can change at most, given the radii of the nodes under the same budget but for
    /// its global part, and an attack that changes some. The observer hears of steps done, and of all; `None` if it breaks off.
    ///
    /// # Errors
    /// If a node does not exist, the settings do not fit the graph or ask for something that there are no such bounds for.
    pub fn collective(
        &self,
        radii: &[Radius],
        mut observer: impl FnMut(Stage, usize, usize) -> ControlFlow<()>,
    ) -> Result<Option<Collective>, CertifyError> {
        let started = Instant::now();
        self.check_no_edges("collective certificates", &[])?;
        if self.settings.asks_for_more() {
            return Err(CertifyError::CollectiveAsksForMore);
        }
        let (graph, global) = (self.network.graph(), self.settings.budget.global());
        let limits = self.settings.budget.limits(graph)?;
        let open = Open::new(radii, global);
        let mut found = Collective::new(global, open.targets);
        found.alone = open.radii.len();
        let nodes: Vec<NodeId> = open.radii.iter().map(|radius| radius.node).collect();
        let Ready { prepared, pool, .. } = self.ready(&nodes)?;
        let tell = |done, total| observer(Stage::Preparing, done, total);
        let Some(shard) = prepared.shard(&limits, &nodes, &pool, tell) else { return Ok(None) };
        let effort = Effort::new(&self.settings, self.classes.as_deref(), started);
        let stopped = AtomicBool::new(false);
        let make = || Worker::new(&shard, effort, &stopped);

        let fallible = open.fallible();
        let mut classes: Vec<(NodeId, ClassId)> = Vec::new();
        let mut table = Filling::new(fallible.len(), &limits, graph, self.settings.memory_limit);
        let work = |worker: &mut Worker, (node, withstands)| (worker.parts(node, listed(global)), withstands);
        let finish = each_target(&fallible, &pool, &stopped, make, work, |of| {
            if let Some((Parts { node, class, sees, rows }, withstands)) = of {
                table.add(Seen { node, withstands, nodes: sees, rows });
                classes.push((node, class));
            }
            observer(Stage::Taking, classes.len(), fallible.len())
        });
        if finish == Finish::Cancelled {
            return Ok(None);
        }
        let table = table.table(&limits);

        let mut tell = |done, total| observer(Stage::Bounding, done, total);
        let Some(by_counts) = balance(&table, Cuts::Counts, &mut tell) else { return Ok(None) };
        let Some(by_all) = balance(&table, Cuts::All, &mut tell) else { return Ok(None) };
        let best = if by_all.at_most <= by_counts.at_most { &by_all } else { &by_counts };
        let fallen = open.radii.len() - fallible.len();
        (found.by_radii, found.at_most) = (fallen + by_counts.at_most, fallen + best.at_most);

        let mut worker = make();
        let single = self.single(&table, &limits, &mut worker, &mut tell);
        if let Some((changes, flip)) = single.filter(|&(changes, _)| changes <= best.at_most) {
            (found.at_most, found.flips) = (fallen + changes, flip.into_iter().collect());
        } else {
            found.multipliers.clone_from(&best.multipliers);
            let tried = candidates(&table, &[&by_all, &by_counts], &open, (graph, &limits));
            let tell = |done, total| observer(Stage::Attacking, done, total);
            let Some(flips) = self.attacked(&classes, &limits, &tried, tell) else { return Ok(None) };
            found.flips = flips;
        }
        found.flips.sort_unstable();
        found.changed = self.changed(&nodes, &found.flips, &mut worker);
        found.time = Some(started.elapsed());
        Ok(Some(found))
    }

    /// Most predictions that single flips change, and the flip that does, where a budget of 1 and attributes that are bits let all of them be
    /// tried.
    fn single(
        &self,
        table: &Table,
        limits: &Limits,
        worker: &mut Worker,
        observer: impl FnMut(usize, usize) -> ControlFlow<()>,
    ) -> Option<(usize, Option<Flip>)> {
        let graph = self.network.graph();
        if limits.global() != 1 || graph.values().is_some() {
            return None;
        }
        let falls = |flip: &Flip, nodes: &[NodeId]| {
            let fall = |&&node: &&NodeId| worker.falls(node, &[*flip], &self.network.logits_under(node, &[*flip]));
            nodes.iter().filter(fall).count()
        };
        let single = best_single(table, |node, d| flip_of(graph, limits, node, d), falls, observer)?;
        Some((single.at_most, single.best))
    }

    /// The flips of an attack.
    fn attacked(
        &self,
        classes: &[(NodeId, ClassId)],
        limits: &Limits,
        candidates: &[Flip],
        observer: impl FnMut(usize, usize) -> ControlFlow<()>,
    ) -> Option<Vec<Flip>> {
        let mut tampered = Tampered::new(&self.network);
        let score = Score::new(classes.iter().copied(), &tampered, self.network.graph(), limits);
        attack(&score, &mut tampered, candidates, observer)?;
        Some(tampered.flips().copied().collect())
    }

    /// The nodes whose predictions change under flips, by a pass over the graph that has them.
    fn changed(&self, nodes: &[NodeId], flips: &[Flip], worker: &mut Worker) -> Vec<NodeId> {
        let tampered = self.network.graph().with_flips(flips);
        let tampered = tampered.unwrap_or_else(|error| unreachable!("flips of this graph: {error}"));
        let logits = Network::with_matrices(&tampered, self.network.model(), self.network.matrices()).logits_of(nodes);
        let falls = |(row, node): (usize, &NodeId)| worker.falls(*node, flips, logits.row(row)).then_some(*node);
        nodes.iter().enumerate().filter_map(falls).collect()
    }
}

/// Which flips are listed under a global budget: with 1, all that may take most of a margin.
fn listed(global: u32) -> Listed {
    match global {
        0 | 1 => Listed { floor: ALONE, most: usize::MAX },
        _ => Listed { floor: LISTED.0 / f64::from(global), most: LISTED.1 },
    }
}

/// The nodes that are not proven robust on their own, in ascending order.
struct Open<'r> {
    radii: Vec<&'r Radius>,
    /// All nodes whose predictions count.
    targets: usize,
}

impl<'r> Open<'r> {
    fn new(radii: &'r [Radius], global: u32) -> Self {
        let mut radii: Vec<&Radius> = radii.iter().collect();
        radii.sort_by_key(|radius| (radius.node, radius.robust_up_to));
        radii.dedup_by_key(|radius| radius.node);
        let targets = radii.len();
        radii.retain(|radius| radius.robust_up_to.is_none_or(|up_to| up_to < global));
        Self { radii, targets }
    }

    /// Those that are proven robust without flips, and how many these withstand.
    fn fallible(&self) -> Vec<(NodeId, u32)> {
        self.radii.iter().filter_map(|radius| Some((radius.node, radius.robust_up_to?))).collect()
    }
}

/// The flip that an attribute of a node stands for, if there is one.
fn flip_of(graph: &Graph, limits: &Limits, node: NodeId, d: u32) -> Option<Flip> {
    let attribute = AttributeId(d & !DOWN);
    let flip = match graph.values() {
        None => Flip::of(graph, node, attribute),
        Some(values) => {
            let (low, high) = limits.range(values, node, attribute)?;
            Flip { node, attribute, to: if d >= DOWN { low } else { high } }
        }
    };
    limits.allows(graph, flip).then_some(flip)
}

/// Flips that an attack may need: those that take much, those that multipliers make dear, and those of known witnesses.
fn candidates(table: &Table, balances: &[&Balance], open: &Open, (graph, limits): (&Graph, &Limits)) -> Vec<Flip> {
    let priced = table.promising(TRIED).into_iter().chain(balances.iter().flat_map(|of| of.dearest(TRIED)));
    let flips = priced.filter_map(|flip| flip_of(graph, limits, table.node_of(flip), flip.1));
    let mut all: BTreeSet<Flip> = flips.collect();
    let witnesses = open.radii.iter().filter_map(|radius| radius.witness());
    let short = witnesses.filter(|witness| witness.flips.len() <= limits.global());
    all.extend(short.flat_map(|witness| witness.flips.iter().copied()).filter(|&flip| limits.allows(graph, flip)));
    all.into_iter().collect()
}

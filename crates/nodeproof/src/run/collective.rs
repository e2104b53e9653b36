//! How many predictions one admissible set of flips can change at most, and an attack that changes many.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use super::certifier::Ready;
use super::schedule::each_target;
use super::worker::{Effort, Parts, Worker};
use super::{Certifier, CertifyError};
use crate::budget::Limits;
use crate::collective::{Balance, Cuts, Fallible, Score, Seen, Table, Tampered, attack, balance, best_single};
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

/// Flips are listed that may take at least this part of an equal share of a margin, and so many of a row.
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
        let graph = self.network.graph();
        let limits = self.settings.budget.limits(graph)?;
        let global = self.settings.budget.global();
        let withstands = |radius: &Radius| radius.robust_up_to.is_some_and(|up_to| up_to >= global);
        let mut open: Vec<&Radius> = radii.iter().filter(|radius| !withstands(radius)).collect();
        open.sort_by_key(|radius| radius.node);
        open.dedup_by_key(|radius| radius.node);
        let mut found = Collective::new(global, radii.len());
        found.alone = open.len();
        let nodes: Vec<NodeId> = open.iter().map(|radius| radius.node).collect();
        let Ready { prepared, pool, started: _ } = self.ready(&nodes)?;
        let tell = |done, total| observer(Stage::Preparing, done, total);
        let Some(shard) = prepared.shard(&limits, &nodes, &pool, tell) else { return Ok(None) };
        let effort = Effort::new(&self.settings, self.classes.as_deref(), started);
        let stopped = AtomicBool::new(false);
        let make = || Worker::new(&shard, effort, &stopped);
        let fallible: Vec<NodeId> = open.iter().filter(|of| of.robust_up_to.is_some()).map(|of| of.node).collect();
        let listed = match global {
            0 | 1 => Listed { floor: ALONE, most: usize::MAX },
            _ => Listed { floor: LISTED.0 / f64::from(global), most: LISTED.1 },
        };
        let mut parts: Vec<Parts> = Vec::new();
        let work = |worker: &mut Worker, node: NodeId| worker.parts(node, listed);
        let _ = each_target(&fallible, &pool, &stopped, make, work, |of| {
            parts.extend(of);
            observer(Stage::Taking, parts.len(), fallible.len())
        });
        if parts.len() < fallible.len() {
            return Ok(None);
        }
        let (classes, table) = table(parts, &open, (graph, &limits));
        let fallen = open.len() - fallible.len();
        let mut tell = |done, total| observer(Stage::Bounding, done, total);
        let Some(by_counts) = balance(&table, Cuts::Counts, &mut tell) else { return Ok(None) };
        let Some(by_all) = balance(&table, Cuts::All, &mut tell) else { return Ok(None) };
        found.by_radii = fallen + by_counts.at_most;
        found.at_most = fallen + by_all.at_most.min(by_counts.at_most);
        let mut worker = make();
        let single = self.single(&table, &limits, &mut worker, &mut tell);
        if let Some(single) = single.filter(|of| fallen + of.0 <= found.at_most) {
            (found.at_most, found.flips) = (fallen + single.0, single.1.into_iter().collect());
        } else {
            let best = if by_all.at_most <= by_counts.at_most { &by_all } else { &by_counts };
            found.shares.clone_from(&best.shares);
            let tried = candidates(&table, &[&by_all, &by_counts], &open, (graph, &limits));
            let attacked =
                self.attacked(&classes, &limits, &tried, |done, total| observer(Stage::Attacking, done, total));
            let Some(flips) = attacked else { return Ok(None) };
            found.flips = flips;
        }
        found.flips.sort_unstable();
        found.changed = self.changed(&nodes, &found.flips, &mut worker)?;
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
    fn changed(&self, nodes: &[NodeId], flips: &[Flip], worker: &mut Worker) -> Result<Vec<NodeId>, CertifyError> {
        let graph = self.network.graph();
        let tampered = graph.with_flips(flips);
        let tampered = tampered.unwrap_or_else(|error| unreachable!("flips of this graph: {error}"));
        let logits = Network::with_matrices(&tampered, self.network.model(), self.network.matrices()).logits_of(nodes);
        let falls = |(row, node): (usize, &NodeId)| worker.falls(*node, flips, logits.row(row)).then_some(*node);
        Ok(nodes.iter().enumerate().filter_map(falls).collect())
    }
}

/// The classes of targets that may fall, and what flips take of them.
fn table(parts: Vec<Parts>, open: &[&Radius], (graph, limits): (&Graph, &Limits)) -> (Vec<(NodeId, ClassId)>, Table) {
    let classes = parts.iter().map(|of| (of.node, of.class)).collect();
    let withstood = open.iter().filter_map(|of| of.robust_up_to);
    let seen = parts.into_iter().zip(withstood).map(|(of, withstands)| Seen {
        target: Fallible { node: of.node, withstands, has_parts: of.rows.is_some() },
        nodes: of.sees,
        rows: of.rows,
    });
    (classes, Table::new(seen.collect(), limits, graph.nodes(), graph.attribute_count()))
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
fn candidates(table: &Table, balances: &[&Balance], open: &[&Radius], (graph, limits): (&Graph, &Limits)) -> Vec<Flip> {
    let priced = table.promising(TRIED).into_iter().chain(balances.iter().flat_map(|of| of.dearest(TRIED)));
    let flips = priced.filter_map(|flip| flip_of(graph, limits, table.node_of(flip), flip.1));
    let mut all: BTreeSet<Flip> = flips.collect();
    let witnesses = open.iter().filter_map(|radius| radius.witness());
    let short = witnesses.filter(|witness| witness.flips.len() <= limits.global());
    all.extend(short.flat_map(|witness| witness.flips.iter().copied()).filter(|&flip| limits.allows(graph, flip)));
    all.into_iter().collect()
}

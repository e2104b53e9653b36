//! A global budget of 1: all flips that may change a prediction are tried, so that the answer is exact (Lemma 74 of `docs/maths.md`).

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use super::prices::Priced;
use super::table::{Fallible, Table};
use crate::flip::Flip;
use crate::ids::NodeId;

/// What single flips do at most.
pub(crate) struct Single {
    /// At most so many targets fall.
    pub(crate) at_most: usize,
    /// The flip that brings down most.
    pub(crate) best: Option<Flip>,
}

/// The flip that brings down most targets, given which flips make an entry another one and whether a flip brings down a target. Each flip is
/// looked at that may bring down more than the best before. `None` if the observer breaks off, or if there is no telling.
pub(crate) fn best_single(
    table: &Table,
    flip: impl Fn(NodeId, u32) -> Option<Flip>,
    mut falls: impl FnMut(&Flip, &[NodeId]) -> usize,
    mut observer: impl FnMut(usize, usize) -> ControlFlow<()>,
) -> Option<Single> {
    let is_known = |target: &Fallible| target.has_parts && target.elsewhere.is_none_or(|part| part < 1.0);
    if !table.targets.iter().all(is_known) {
        return None;
    }
    let mut all: Vec<(Priced, Vec<NodeId>)> = Vec::new();
    for (place, row) in (0u32..).zip(&table.rows) {
        let mut of_row: BTreeMap<u32, Vec<NodeId>> = BTreeMap::new();
        for entry in table.entries(row) {
            if entry.cap >= 1.0 {
                return None;
            }
            for &(d, _) in table.listed(entry).iter().filter(|&&(_, part)| part >= 1.0) {
                of_row.entry(d).or_default().push(table.targets[entry.target as usize].node);
            }
        }
        all.extend(of_row.into_iter().map(|(d, nodes)| ((place, d), nodes)));
    }
    all.sort_by(|a, b| b.1.len().cmp(&a.1.len()).then(a.0.cmp(&b.0)));
    let mut best = Single { at_most: 0, best: None };
    for (looked, (priced, nodes)) in all.iter().enumerate() {
        if nodes.len() <= best.at_most {
            break;
        }
        if observer(looked, all.len()).is_break() {
            return None;
        }
        let Some(flip) = flip(table.node_of(*priced), priced.1) else { continue };
        let fallen = falls(&flip, nodes);
        if fallen > best.at_most {
            best = Single { at_most: fallen, best: Some(flip) };
        }
    }
    Some(best)
}

//! Sets of flips that change many predictions: one flip after the other, each the best beside those before, then exchanges.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::ops::ControlFlow;

use super::tampered::Tampered;
use crate::budget::Limits;
use crate::flip::Flip;
use crate::graph::Graph;
use crate::ids::{ClassId, NodeId};

/// What a target that still holds is worth at most, as a part of one that has fallen.
const HOLDS: f64 = 0.45;
/// The part of a margin without flips that makes e times as much of it.
const SCALE: f64 = 0.25;
/// Rounds of exchanges, and flips that are tried in place of each.
const ROUNDS: usize = 2;
const OTHERS: usize = 48;

/// How well an attack does: 1 for each target that falls, and less the further others are from it.
pub(crate) struct Score<'s> {
    /// Of each node its class, and the part of its margin that counts; none if it is no target.
    targets: Vec<Option<(ClassId, f64)>>,
    graph: &'s Graph,
    limits: &'s Limits,
}

impl<'s> Score<'s> {
    /// Of these targets, whose classes are given, on the network without flips.
    pub(crate) fn new(
        targets: impl Iterator<Item = (NodeId, ClassId)>,
        clean: &Tampered,
        graph: &'s Graph,
        limits: &'s Limits,
    ) -> Self {
        let mut all = vec![None; graph.nodes()];
        for (node, class) in targets {
            let scale = SCALE * margin(clean.logits(node).iter().copied(), class);
            all[node.index()] = Some((class, scale.max(f64::MIN_POSITIVE)));
        }
        Self { targets: all, graph, limits }
    }

    /// What a node is worth with these logits.
    fn of(&self, node: NodeId, logits: impl Iterator<Item = f64> + Clone) -> f64 {
        let Some((class, scale)) = self.targets[node.index()] else { return 0.0 };
        let margin = margin(logits, class);
        if margin <= 0.0 { 1.0 } else { HOLDS * (-margin / scale).exp() }
    }

    /// What a flip adds to the score.
    fn gain(&self, tampered: &mut Tampered, flip: &Flip) -> f64 {
        let moved: Vec<(NodeId, Vec<f64>)> = tampered
            .look(flip)
            .filter(|(node, _)| self.targets[node.index()].is_some())
            .map(|(node, change)| (node, change.to_vec()))
            .collect();
        let gain = |(node, change): &(NodeId, Vec<f64>)| {
            let before = tampered.logits(*node).iter().copied();
            let after = before.clone().zip(change).map(|(logit, change)| logit + change);
            self.of(*node, after) - self.of(*node, before)
        };
        moved.iter().map(gain).sum()
    }

    /// Whether a flip may be made beside those that are.
    fn allows(&self, tampered: &Tampered, flip: &Flip) -> bool {
        !tampered.is_flipped(flip)
            && tampered.flips_at(flip.node) < self.limits.local(flip.node)
            && self.limits.allows(self.graph, *flip)
    }

    /// The score of all nodes.
    fn total(&self, tampered: &Tampered) -> f64 {
        self.graph.node_ids().map(|node| self.of(node, tampered.logits(node).iter().copied())).sum()
    }
}

/// The lead of a class over the next.
fn margin(logits: impl Iterator<Item = f64> + Clone, class: ClassId) -> f64 {
    let own = logits.clone().nth(class.index()).unwrap_or(f64::NAN);
    let others = logits.enumerate().filter(|&(k, _)| k != class.index());
    others.map(|(_, logit)| own - logit).fold(f64::INFINITY, f64::min)
}

/// A flip that is waiting for its turn, and what it gained when it was last looked at.
struct Waiting {
    gain: f64,
    place: usize,
    /// How many flips were made then.
    made: usize,
}

impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> Ordering {
        self.gain.total_cmp(&other.gain).then(other.place.cmp(&self.place))
    }
}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Waiting {}

/// Makes flips, of these candidates, that score high; `None` if the observer, who hears of the flips made and of all, breaks off.
pub(crate) fn attack(
    score: &Score,
    tampered: &mut Tampered,
    candidates: &[Flip],
    mut observer: impl FnMut(usize, usize) -> ControlFlow<()>,
) -> Option<()> {
    let most = score.limits.global();
    let mut waiting = BinaryHeap::new();
    for (place, flip) in candidates.iter().enumerate() {
        if score.allows(tampered, flip) {
            waiting.push(Waiting { gain: score.gain(tampered, flip), place, made: 0 });
        }
    }
    let mut made = 0;
    while made < most
        && let Some(next) = waiting.pop()
    {
        if observer(made, most).is_break() {
            return None;
        }
        let flip = &candidates[next.place];
        if !score.allows(tampered, flip) {
            continue;
        }
        if next.made == made {
            if next.gain <= 0.0 {
                break;
            }
            tampered.toggle(flip);
            made += 1;
        } else {
            waiting.push(Waiting { gain: score.gain(tampered, flip), made, ..next });
        }
    }
    let mut others: Vec<Waiting> = waiting.into_vec();
    others.sort_by(|a, b| b.cmp(a));
    let others: Vec<Flip> = others.iter().take(OTHERS).map(|of| candidates[of.place]).collect();
    for _ in 0..ROUNDS {
        let before = score.total(tampered);
        let flips: Vec<Flip> = tampered.flips().copied().collect();
        for flip in flips {
            if observer(most, most).is_break() {
                return None;
            }
            exchange(score, tampered, flip, &others);
        }
        if score.total(tampered) <= before * (1.0 + 1e-9) {
            break;
        }
    }
    Some(())
}

/// Makes the best of some others in place of a flip.
fn exchange(score: &Score, tampered: &mut Tampered, flip: Flip, others: &[Flip]) {
    tampered.toggle(&flip);
    let mut best = (score.gain(tampered, &flip), flip);
    for other in others {
        if score.allows(tampered, other) {
            let gain = score.gain(tampered, other);
            if gain > best.0 + 1e-9 {
                best = (gain, *other);
            }
        }
    }
    tampered.toggle(&best.1);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lead_is_over_the_next_class() {
        assert_eq!(margin([1.0, 3.0, 2.5].into_iter(), ClassId(1)), 0.5);
        assert_eq!(margin([1.0, 3.0].into_iter(), ClassId(0)), -2.0);
    }
}

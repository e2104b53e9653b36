//! Engine `fast`: the dual once for every class, and the attack that falls out of it.

use std::time::Instant;

use super::attack::{Attack, AttackMargin};
use super::{Certificate, Engine, TargetClass, Verdict, Witness};
use crate::budget::Flip;
use crate::graph::{AttributeId, ClassId, NodeId};
use crate::network::largest;
use crate::relaxation::{Dual, Relaxation};
use crate::slice::{Slice, SlicedFlip, Slicer};

/// Certifies one target after the other, with scratch space of its own.
pub(super) struct Worker<'a> {
    shared: &'a Relaxation<'a>,
    target_class: TargetClass,
    slicer: Slicer<'a>,
    dual: Dual<'a>,
    attack: Attack<'a>,
}

impl<'a> Worker<'a> {
    pub(super) fn new(shared: &'a Relaxation<'a>, target_class: TargetClass) -> Self {
        let layers = shared.network.layers().len();
        Self {
            shared,
            target_class,
            slicer: Slicer::new(shared.network.propagation(), layers),
            dual: shared.dual(),
            attack: Attack::new(shared),
        }
    }

    pub(super) fn certify(&mut self, node: NodeId) -> Certificate {
        let start = Instant::now();
        let Relaxation { network, region, bounds, .. } = self.shared;
        let layers = network.layers().len();
        let logits = bounds.clean[layers - 1].row(region.level(layers).place(node.0));
        let predicted = largest(logits);
        let label = network.graph().label(node);
        let class = match (self.target_class, label) {
            (TargetClass::Label, Some(label)) => label,
            _ => predicted,
        };
        let slice = self.slicer.slice(node);
        let mut best: Option<BestAttack> = None;
        self.dual.begin(slice, class);
        let mut margins = vec![None; logits.len()];
        for k in (0..logits.len()).filter(|&k| k != class.index()) {
            let lower = self.dual.lower_bound(slice, class, ClassId(k as u32)).lower();
            margins[k] = Some(lower);
            if lower <= 0.0 {
                let no_flips = || BestAttack::new(self.attack.margin(slice, class, std::iter::empty()));
                let best = best.get_or_insert_with(no_flips);
                if !best.succeeds_without_flips() {
                    let selection = self.dual.selection().best();
                    let margin = self.attack.margin(slice, class, selection.iter().map(|&(_, flip)| flip));
                    best.improve(margin, selection);
                }
            }
        }
        let (worst_class, margin) = smallest(&margins);
        let verdict = match best {
            None => Verdict::Robust { margin },
            Some(best) if best.margin() < 0.0 => Verdict::Nonrobust { witness: best.witness(slice) },
            Some(best) => Verdict::Undecided { lower: margin, upper: best.margin() },
        };
        let engine = Engine::Fast;
        Certificate { node, label, predicted, class, verdict, margins, worst_class, engine, time: start.elapsed() }
    }
}

/// The class with the smallest margin, the first of several, and that margin.
fn smallest(margins: &[Option<f64>]) -> (ClassId, f64) {
    let mut worst = (ClassId(0), f64::INFINITY);
    for (k, margin) in margins.iter().enumerate() {
        if let Some(margin) = *margin
            && margin < worst.1
        {
            worst = (ClassId(k as u32), margin);
        }
    }
    worst
}

/// The flips with the smallest margin found so far.
struct BestAttack {
    found: AttackMargin,
    flips: Vec<SlicedFlip>,
}

impl BestAttack {
    fn new(clean: AttackMargin) -> Self {
        Self { found: clean, flips: Vec::new() }
    }

    fn margin(&self) -> f64 {
        self.found.margin.upper()
    }

    /// Whether the class is not even the predicted one without any flip.
    fn succeeds_without_flips(&self) -> bool {
        self.flips.is_empty() && self.margin() < 0.0
    }

    fn improve(&mut self, found: AttackMargin, selection: &[(f64, SlicedFlip)]) {
        if found.margin.upper() < self.margin() {
            self.found = found;
            self.flips.clear();
            self.flips.extend(selection.iter().map(|&(_, flip)| flip));
        }
    }

    fn witness(&self, slice: &Slice) -> Witness {
        let flip = |&(position, attribute): &SlicedFlip| Flip {
            node: NodeId(slice.level(0)[position as usize]),
            attribute: AttributeId(attribute),
        };
        let mut flips: Vec<Flip> = self.flips.iter().map(flip).collect();
        flips.sort_unstable();
        Witness { flips, class: self.found.class, margin: self.margin() }
    }
}

//! One target after the other: engine `fast`, the dual once for every class and the attack that falls out of it, and the
//! others where it leaves a target open.

use std::time::{Duration, Instant};

use super::attack::Attack;
use super::best::BestAttack;
use super::complete::{Attacks, Decider, Effort};
use super::{Certificate, Engine, Gap, TargetClass, Verdict};
use crate::graph::{ClassId, NodeId};
use crate::network::largest;
use crate::relaxation::{Dual, Relaxation};
use crate::slice::Slicer;

/// Certifies one target after the other, with scratch space of its own.
pub(super) struct Worker<'a> {
    shared: &'a Relaxation<'a>,
    slicer: Slicer<'a>,
    dual: Dual<'a>,
    attack: Attack<'a>,
    decider: Decider<'a>,
    settings: Settings,
}

/// How far to go for each target.
#[derive(Debug, Clone, Copy)]
pub(super) struct Settings {
    pub(super) target_class: TargetClass,
    pub(super) engine: Engine,
    /// Most time for one target.
    pub(super) time_limit: Option<Duration>,
    /// After this no target gets more than the fast engine.
    pub(super) deadline: Option<Instant>,
}

impl Settings {
    fn effort(&self, start: Instant) -> Effort {
        let own = self.time_limit.and_then(|limit| start.checked_add(limit));
        let deadline = [own, self.deadline].into_iter().flatten().min();
        Effort { branch: self.engine == Engine::Complete, deadline }
    }
}

impl<'a> Worker<'a> {
    pub(super) fn new(shared: &'a Relaxation<'a>, settings: Settings) -> Self {
        let layers = shared.network.layers().len();
        Self {
            shared,
            slicer: Slicer::new(shared.network.propagation(), layers),
            dual: shared.dual(),
            attack: Attack::new(shared),
            decider: Decider::new(shared),
            settings,
        }
    }

    /// Logits of a target on the graph as it is.
    fn logits(&self, node: NodeId) -> &'a [f64] {
        let Relaxation { network, region, bounds, .. } = self.shared;
        let layers = network.layers().len();
        bounds.clean[layers - 1].row(region.level(layers).place(node.0))
    }

    /// The class that is certified of a target.
    fn class(&self, node: NodeId) -> ClassId {
        match (self.settings.target_class, self.shared.network.graph().label(node)) {
            (TargetClass::Label, Some(label)) => label,
            _ => largest(self.logits(node)),
        }
    }

    /// Bound and best attack, both as good as they get without branching.
    pub(super) fn gap(&mut self, node: NodeId) -> Gap {
        let (classes, class) = (self.logits(node).len(), self.class(node));
        let slice = self.slicer.slice(node);
        let mut best = BestAttack::new(self.attack.margin(slice, class, std::iter::empty()));
        self.dual.begin(slice, class);
        let mut margins = vec![None; classes];
        for k in (0..classes).filter(|&k| k != class.index()) {
            margins[k] = Some(self.dual.lower_bound(slice, class, ClassId(k as u32)).lower());
            let selection = self.dual.selection().best();
            let margin = self.attack.margin(slice, class, selection.iter().map(|&(_, flip)| flip));
            best.improve(margin, selection.iter().map(|&(_, flip)| flip));
        }
        if self.settings.engine != Engine::Fast {
            let attacks = Attacks { shared: self.shared, slice, y: class, attack: &mut self.attack, best: &mut best };
            self.decider.tighten(slice, &mut margins, attacks);
        }
        Gap { node, lower: smallest(&margins).1, upper: best.margin() }
    }

    pub(super) fn certify(&mut self, node: NodeId) -> Certificate {
        let start = Instant::now();
        let (logits, class) = (self.logits(node), self.class(node));
        let (predicted, label) = (largest(logits), self.shared.network.graph().label(node));
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
                    best.improve(margin, selection.iter().map(|&(_, flip)| flip));
                }
            }
        }
        let (mut engine, mut branches) = (Engine::Fast, 0);
        if let Some(best) = &mut best
            && !best.succeeds()
            && self.settings.engine != Engine::Fast
        {
            let attacks = Attacks { shared: self.shared, slice, y: class, attack: &mut self.attack, best };
            let decision = self.decider.decide(slice, &mut margins, attacks, self.settings.effort(start));
            (engine, branches) = (decision.engine, decision.branches);
        }
        let (worst_class, margin) = smallest(&margins);
        let verdict = match best {
            Some(best) if best.succeeds() => Verdict::Nonrobust { witness: best.witness(slice) },
            Some(best) if margin <= 0.0 => Verdict::Undecided { lower: margin, upper: best.margin() },
            _ => Verdict::Robust { margin },
        };
        let time = start.elapsed();
        Certificate { node, label, predicted, class, verdict, margins, worst_class, engine, branches, time }
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

//! One target after the other: the `fast` engine, which evaluates the dual once for every class and tries the attack that
//! falls out of it, and the others where it leaves a target open.

use std::cmp::Ordering;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use super::Gap;
use crate::certificate::{Bound, Certificate, Evidence, Obstacle, smallest};
use crate::engines::attack::{Attack, MarginErrors};
use crate::engines::best::{Attacks, BestAttack};
use crate::engines::fast::Dual;
use crate::engines::first_order::{self, Listed, Raised, RowParts};
use crate::engines::patience::Patience;
use crate::exact::compare_logits;
use crate::flip::Flip;
use crate::ids::{ClassId, NodeId};
use crate::network::largest;
use crate::prepare::Shard;
use crate::proof::Proofs;
use crate::rounding::Approximate;
use crate::settings::{CertifySettings, Engine, TargetClass};
use crate::slice::{LeftOut, Slice, Slicer};

/// Certifies one target after the other, with scratch space of its own.
pub(super) struct Worker<'a> {
    shard: &'a Shard<'a>,
    slicer: Slicer<'a>,
    dual: Dual<'a>,
    attack: Attack<'a>,
    /// The engine to begin with.
    first: Engine,
    effort: Effort<'a>,
    stopped: &'a AtomicBool,
}

/// What flips take of a target.
pub(super) struct Parts {
    pub(super) node: NodeId,
    pub(super) class: ClassId,
    /// The nodes that it sees and that may be flipped at.
    pub(super) sees: Vec<u32>,
    /// A row for each of them.
    pub(super) rows: Option<Vec<RowParts>>,
}

/// How far to go for each target.
#[derive(Debug, Clone, Copy)]
pub(super) struct Effort<'e> {
    pub(super) target_class: TargetClass,
    /// The classes to certify of all nodes, if they do not follow from that.
    classes: Option<&'e [ClassId]>,
    pub(super) engine: Engine,
    /// Whether robust targets get proofs.
    proofs: bool,
    /// Most time for one target.
    time_limit: Option<Duration>,
    /// After this no target gets more than the `fast` engine.
    deadline: Option<Instant>,
    /// Most bytes of lists and subproblems of one target.
    memory_limit: usize,
}

impl<'e> Effort<'e> {
    /// What `settings` ask for in a run that started then, of these classes if they are given.
    pub(super) fn new(settings: &CertifySettings, classes: Option<&'e [ClassId]>, started: Instant) -> Self {
        Self {
            target_class: settings.target_class,
            classes,
            engine: settings.engine,
            proofs: settings.proofs,
            time_limit: settings.time_limit,
            deadline: settings.total_time_limit.and_then(|limit| started.checked_add(limit)),
            memory_limit: settings.memory_limit,
        }
    }

    /// Whether the dual is the bound to begin with, given the engine that is for the network.
    fn starts_with_dual(&self, first: Engine) -> bool {
        let is_late = self.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        self.engine == Engine::Fast || (first == Engine::Fast && !self.proofs) || is_late
    }

    /// When to give up a target that was begun at `start`.
    pub(super) fn patience(self, start: Instant, stopped: &AtomicBool) -> Patience<'_> {
        let own = self.time_limit.and_then(|limit| start.checked_add(limit));
        let deadline = [own, self.deadline].into_iter().flatten().min();
        Patience { branch: self.engine == Engine::Complete, deadline, memory: self.memory_limit, stopped }
    }
}

impl<'a> Worker<'a> {
    /// A worker that soon ends with whatever it has once `stopped` is set.
    pub(super) fn new(shard: &'a Shard<'a>, effort: Effort<'a>, stopped: &'a AtomicBool) -> Self {
        Self {
            shard,
            slicer: shard.network.slicer(),
            dual: Dual::new(shard),
            attack: Attack::new(shard),
            first: Engine::to_begin_with(shard.network.model()),
            effort,
            stopped,
        }
    }

    /// Another worker, which ends with this one.
    pub(super) fn beside<'b>(&self, shard: &'b Shard<'b>, effort: Effort<'b>) -> Worker<'b>
    where
        'a: 'b,
    {
        Worker::new(shard, effort, self.stopped)
    }

    /// The class that is certified of a target.
    fn class(&self, node: NodeId) -> ClassId {
        if let Some(classes) = self.effort.classes {
            return classes[node.index()];
        }
        match (self.effort.target_class, self.shard.network.graph().label(node)) {
            (TargetClass::Label, Some(label)) => label,
            _ => largest(self.shard.logits(node)),
        }
    }

    /// That for a target that is begun now.
    pub(super) fn patience(&self) -> Patience<'a> {
        self.effort.patience(Instant::now(), self.stopped)
    }

    /// Bound and best attack, both as good as they get without branching.
    pub(super) fn gap(&mut self, node: NodeId) -> Gap {
        let (margins, best) = self.without_branching(node, Raised::Smallest, self.patience());
        Gap { node, lower: smallest(&margins).1, upper: finite(best) }
    }

    /// The bounds of margins and the smallest margin of an attack, as good as they get without branching, whatever the verdict.
    pub(super) fn without_branching(
        &mut self,
        node: NodeId,
        of: Raised,
        patience: Patience,
    ) -> (Vec<Option<Bound>>, f64) {
        let (classes, class) = (self.shard.logits(node).len(), self.class(node));
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
        if self.effort.engine != Engine::Fast {
            let mut attacks =
                Attacks { shared: self.shard, slice, y: class, attack: &mut self.attack, best: &mut best };
            first_order::tighten(&mut margins, &mut attacks, of, patience);
        }
        (margins, best.margin())
    }

    /// What flips take of a target at most, if that is known, row by row of what it sees.
    pub(super) fn parts(&mut self, node: NodeId, listed: Listed) -> Parts {
        let (classes, class, patience) = (self.shard.logits(node).len(), self.class(node), self.patience());
        let slice = self.slicer.slice(node);
        self.dual.begin(slice, class);
        let others = (0..classes as u32).map(ClassId).filter(|&k| k != class);
        let open = others.filter(|&k| !self.dual.lower_bound(slice, class, k).lower().is_positive());
        let open: Vec<ClassId> = open.collect();
        let may_be_flipped = |&n: &u32| self.shard.limits.local(NodeId(n)) > 0;
        let sees = slice.level(0).iter().copied().filter(may_be_flipped).collect();
        let rows = first_order::parts(self.shard, slice, class, &open, listed, &patience);
        Parts { node, class, sees, rows }
    }

    /// Whether a target's class is level with another under admissible flips, or below, given the logits under them.
    pub(super) fn falls(&mut self, node: NodeId, flips: &[Flip], logits: &[f64]) -> bool {
        let y = self.class(node);
        let errors = MarginErrors::new(self.shard, self.slicer.slice(node));
        let others = (0..logits.len() as u32).map(ClassId).filter(|&k| k != y);
        others.into_iter().any(|k| {
            let error = errors.of(self.shard, y, k) + self.shard.overflow_error;
            let margin = Approximate { value: logits[y.index()] - logits[k.index()], error };
            let is_ahead = || compare_logits(self.shard.network, node, flips, y, k) == Ordering::Greater;
            margin.upper() < 0.0 || (!margin.lower().is_positive() && !is_ahead())
        })
    }

    /// The verdict on a target: from the `fast` engine, or, where it leaves the target open, from the others. What is far away is looked at
    /// only if it may matter.
    pub(super) fn certify(&mut self, node: NodeId) -> Certificate {
        let look = Look {
            shard: self.shard,
            node,
            class: self.class(node),
            first: self.first,
            starts_with_dual: self.effort.starts_with_dual(self.first),
            effort: self.effort,
            stopped: self.stopped,
            start: Instant::now(),
        };
        let Self { slicer, dual, attack, .. } = self;
        let first = look.shard.first_slice(slicer, node, look.starts_with_dual);
        look.certificate(first, dual, attack)
            .or_else(|LeftOut| look.certificate(slicer.slice(node), dual, attack))
            .unwrap_or_else(|LeftOut| unreachable!("nothing is left out of a whole slice"))
    }
}

/// What is asked about a target.
#[derive(Clone, Copy)]
struct Look<'a, 'l> {
    shard: &'a Shard<'a>,
    node: NodeId,
    class: ClassId,
    /// The engine to begin with, and whether its dual is the bound to begin with.
    first: Engine,
    starts_with_dual: bool,
    effort: Effort<'l>,
    stopped: &'l AtomicBool,
    start: Instant,
}

impl<'a> Look<'a, '_> {
    /// The verdict, if nothing that the slice leaves out may matter. What is undecided with proofs is looked at without them, too: their
    /// bounds lead to other flips, none of which may be a witness.
    fn certificate(&self, slice: &Slice, dual: &mut Dual<'a>, attack: &mut Attack<'a>) -> Result<Certificate, LeftOut> {
        let mut certificate = self.decided(slice, dual, attack)?;
        let because = certificate.undecided_because();
        // Where values between ends are what is left, all ends were tried.
        let is_open = because.is_some_and(|because| because != Obstacle::Values);
        let is_over = self.effort.patience(self.start, self.stopped).is_spent();
        if !is_open || !self.effort.proofs || self.effort.engine == Engine::Fast || is_over {
            return Ok(certificate);
        }
        let effort = Effort { proofs: false, ..self.effort };
        let without = Self { effort, starts_with_dual: effort.starts_with_dual(self.first), ..*self };
        let mut other = without.decided(slice, dual, attack)?;
        if other.witness().is_none() {
            certificate.time = Some(self.start.elapsed());
            return Ok(certificate);
        }
        (other.engine, other.branches) = (other.engine.max(certificate.engine), other.branches + certificate.branches);
        Ok(other)
    }

    /// The verdict of one look.
    fn decided(&self, slice: &Slice, dual: &mut Dual<'a>, attack: &mut Attack<'a>) -> Result<Certificate, LeftOut> {
        let Self { shard, node, class, effort, .. } = *self;
        let logits = shard.logits(node);
        let mut screened = Screened::unknown(logits.len(), class);
        if self.starts_with_dual {
            screened = Screened::new(slice, class, dual, attack, logits.len())?;
        } else {
            screened.best = Some(BestAttack::new(attack.margin(slice, class, std::iter::empty())));
        }
        let Screened { mut margins, mut best } = screened;
        let mut known = Proofs::new();
        let (mut engine, mut branches, mut because) = (Engine::Fast, 0, Obstacle::Engine);
        if !shard.overflow_error.is_finite() {
            because = Obstacle::Overflow;
        }
        let patience = effort.patience(self.start, self.stopped);
        if let Some(best) = &mut best
            && !best.succeeds()
            && effort.engine != Engine::Fast
        {
            let mut attacks = Attacks { shared: shard, slice, y: class, attack, best };
            let dual = (!self.starts_with_dual).then_some(dual);
            let short = effort.proofs.then_some(&mut known);
            let decision = first_order::decide(&mut margins, &mut attacks, dual, short, patience)?;
            (engine, branches, because) = (decision.engine, decision.branches, decision.obstacle);
        }
        let graph = shard.network.graph();
        let (_, lower) = smallest(&margins);
        let mut proofs = None;
        if effort.proofs && lower.is_positive() && best.as_ref().is_none_or(|best| !best.succeeds()) {
            let mut best = BestAttack::new(attack.margin(slice, class, std::iter::empty()));
            let mut attacks = Attacks { shared: shard, slice, y: class, attack, best: &mut best };
            if let Some(proven) = first_order::prove(&margins, &mut attacks, known, patience)? {
                (proofs, margins) = (Some(proven.proofs), proven.margins);
            }
        }
        let evidence = match best {
            Some(best) if best.succeeds() => Evidence::Witness(best.witness(slice, shard)),
            Some(best) if !lower.is_positive() => {
                Evidence::Open { lower, upper: finite(best.margin()), because: Some(because) }
            }
            _ => Evidence::Robust,
        };
        let mut certificate = Certificate::new(node, class, largest(logits), evidence, margins);
        (certificate.label, certificate.engine, certificate.branches) = (graph.label(node), engine, branches);
        certificate.proofs = proofs;
        certificate.time = Some(self.start.elapsed());
        Ok(certificate)
    }
}

/// What the dual says of a target, and the attacks that fall out of it where it proves nothing.
struct Screened {
    margins: Vec<Option<Bound>>,
    best: Option<BestAttack>,
}

impl Screened {
    /// Nothing is known of any margin.
    fn unknown(classes: usize, class: ClassId) -> Self {
        let margin = |k: usize| (k != class.index()).then_some(Bound::Unknown);
        Self { margins: (0..classes).map(margin).collect(), best: None }
    }

    /// What it says of the target of a slice, if nothing that this leaves out may matter.
    fn new(
        slice: &Slice,
        class: ClassId,
        dual: &mut Dual,
        attack: &mut Attack,
        classes: usize,
    ) -> Result<Self, LeftOut> {
        let mut screened = Self::unknown(classes, class);
        dual.begin(slice, class);
        for k in (0..classes).filter(|&k| k != class.index()) {
            let other = ClassId(k as u32);
            let lower = dual.lower_bound(slice, class, other).lower();
            if !dual.sees_enough(slice, class, other) {
                return Err(LeftOut);
            }
            screened.margins[k] = Some(lower);
            if !lower.is_positive() {
                let no_flips = || BestAttack::new(attack.margin(slice, class, std::iter::empty()));
                let best = screened.best.get_or_insert_with(no_flips);
                if !best.succeeds_without_flips() {
                    let selection = dual.selection().best();
                    let margin = attack.margin(slice, class, selection.iter().map(|&(_, flip)| flip));
                    best.improve(margin, selection.iter().map(|&(_, flip)| flip));
                }
            }
        }
        Ok(screened)
    }
}

/// The number, if it says anything.
fn finite(x: f64) -> Option<f64> {
    x.is_finite().then_some(x)
}

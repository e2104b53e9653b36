//! How many predictions one set of flips changes at most: a sum over the targets, each of which is looked at once (Definition 14 and Lemmas 72 to
//! 74 of `docs/maths.md`).

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;

use nodeproof_problem::results::{Collectives, Header, Radii};
use nodeproof_problem::{
    AttributeId, ClassId, Collective, CutMultipliers, Flip, Graph, Model, NodeId, Radius, TargetClass,
};

use crate::base::Base;
use crate::bound::Linearised;
use crate::interval::{down, larger, relu, up};
use crate::selection::{FIRST, gains_above, largest_of_row, largest_total};
use crate::{Checker, Claim, EMPTY, Mismatch, Rejection, compare, is_shown};

/// Flips that take less than this part of an equal share of a margin are not told from each other.
const LISTED: f64 = 0.2;

/// Radii of the nodes of a collective certificate, which are used where it cannot be shown without proofs what a node withstands.
pub struct KnownRadii<'a> {
    checker: Checker<'a>,
    radii: BTreeMap<NodeId, Radius>,
}

impl<'a> KnownRadii<'a> {
    /// Those of a file, for collective certificates.
    ///
    /// # Errors
    /// If they are about something else.
    pub fn new(radii: Radii, of: &Collectives, graph: &'a Graph, model: &'a Model) -> Result<Self, Mismatch> {
        let checker = Checker::of(&radii.header, graph, model)?;
        let Header { budget, target_class, .. } = &radii.header;
        if !budget.is_same_but_for_varied(&of.header.budget) || *target_class != of.header.target_class {
            return Err(Mismatch::Radii);
        }
        Ok(Self { checker, radii: radii.records.into_iter().map(|radius| (radius.node, radius)).collect() })
    }

    /// Whether a node is shown to withstand so many flips.
    fn show(&self, node: NodeId, flips: usize) -> bool {
        let robust_up_to = |radius: &Radius| radius.robust_up_to.filter(|_| radius.found.is_some());
        let is_enough = |radius: &&Radius| robust_up_to(radius).is_some_and(|up_to| up_to as usize >= flips);
        self.radii.get(&node).filter(is_enough).is_some_and(|radius| self.checker.radius(radius).is_ok())
    }
}

/// Checks one collective certificate. Its targets may be looked at in any order, and at the same time.
pub struct CollectiveChecker<'c, 'a> {
    checker: Checker<'a>,
    record: &'c Collective,
    multipliers: BTreeMap<NodeId, &'c CutMultipliers>,
    radii: Option<&'c KnownRadii<'a>>,
}

/// What one target adds to the bound.
pub struct Share {
    target: NodeId,
    /// The classes that may be meant; if they are several the target counts as changed.
    classes: Vec<ClassId>,
    /// `(1 − Σ λ)₊`; 0 if the target holds under all admissible sets.
    rest: f64,
    /// What it adds to the price of every flip of a node, and what to that of some flips beyond that.
    of_nodes: Vec<(NodeId, f64)>,
    of_flips: Vec<(Entry, f64)>,
    /// All single flips that may change it, where the certificate rests on trying these.
    single: Vec<Entry>,
}

/// What targets add together.
#[derive(Default)]
pub struct Shares {
    classes: BTreeMap<NodeId, Vec<ClassId>>,
    rest: f64,
    of_nodes: BTreeMap<NodeId, f64>,
    of_flips: BTreeMap<Entry, f64>,
    single: BTreeMap<Entry, Vec<NodeId>>,
}

/// A place of the attributes.
type Entry = (NodeId, AttributeId);

impl Shares {
    /// Adds one.
    pub fn add(&mut self, share: Share) {
        let add = |sum: &mut f64, price: f64| *sum = up(*sum + price);
        self.classes.insert(share.target, share.classes);
        add(&mut self.rest, share.rest);
        share.of_nodes.iter().for_each(|&(node, price)| add(self.of_nodes.entry(node).or_default(), price));
        share.of_flips.iter().for_each(|&(entry, more)| add(self.of_flips.entry(entry).or_default(), more));
        share.single.iter().for_each(|&entry| self.single.entry(entry).or_default().push(share.target));
    }
}

impl<'c, 'a> CollectiveChecker<'c, 'a> {
    /// A checker of one of some collective certificates.
    ///
    /// # Errors
    /// If they are about another graph or model, or something that there are no such certificates about.
    pub fn new(
        of: &Collectives,
        record: &'c Collective,
        radii: Option<&'c KnownRadii<'a>>,
        (graph, model): (&'a Graph, &'a Model),
    ) -> Result<Self, Mismatch> {
        let mut header = of.header.clone();
        if header.budget.edges().is_some() || header.margin != 0.0 || !header.arithmetic.is_exact() {
            return Err(Mismatch::Collective);
        }
        header.budget = header.budget.with_varied(record.global);
        let multipliers = record.multipliers.iter().map(|of| (of.node, of)).collect();
        Ok(Self { checker: Checker::of(&header, graph, model)?, record, multipliers, radii })
    }

    /// What a target adds.
    ///
    /// # Errors
    /// If there is no such node.
    pub fn share(&self, target: NodeId) -> Result<Share, Rejection> {
        let network = &self.checker.network;
        if target.index() >= network.graph.nodes() {
            return Err(Rejection::Unknown);
        }
        let region = self.checker.linked(target);
        let base = Base::clean(network, &region, network.limits.global());
        let (classes, of_nodes, of_flips, single) = (self.meant(&base), Vec::new(), Vec::new(), Vec::new());
        let class = classes[0];
        let mut share = Share { target, classes, rest: 1.0, of_nodes, of_flips, single };
        if share.classes.len() > 1 {
            return Ok(share);
        }
        if let Some(multipliers) = self.multipliers.get(&target) {
            self.add_cuts(&mut share, &base, multipliers);
        } else if let Some(parts) = self.rests_on_single_flips().then(|| Parts::of(&base, class, down(1.0))).flatten() {
            (share.rest, share.single) = (0.0, parts.reaching_one(&base.region.rows));
        } else if self.holds(&base, class) || self.is_known(target, base.most) {
            share.rest = 0.0;
        }
        Ok(share)
    }

    /// Whether the certificate is right, given what its targets add.
    ///
    /// # Errors
    /// Says what is wrong.
    pub fn judge(&self, shares: &Shares) -> Result<(), Rejection> {
        let Collective { at_most, flips, changed, targets, .. } = self.record;
        let network = &self.checker.network;
        if shares.classes.len() != *targets {
            return Err(Rejection::Targets);
        }
        if !network.limits.admits(network.graph, flips) {
            return Err(Rejection::Budget);
        }
        let falls = |node: NodeId| shares.classes.get(&node).is_some_and(|classes| self.falls(node, classes, flips));
        if let Some(&node) = changed.iter().find(|&&node| !falls(node)) {
            return Err(Rejection::Holds(node));
        }
        if !changed.is_sorted_by(|a, b| a < b) {
            return Err(Rejection::Targets);
        }
        let beside = if self.rests_on_single_flips() { self.most_by_one(shares) } else { self.dearest(shares) };
        let shown = up(shares.rest + beside).floor();
        // NaN shows nothing.
        let is_shown = shown <= *at_most as f64;
        if is_shown { Ok(()) } else { Err(Rejection::AtMost(shown)) }
    }

    /// The class that is certified; several if doubles cannot tell which one is predicted.
    fn meant(&self, base: &Base) -> Vec<ClassId> {
        let (target, checker) = (base.region.target(), &self.checker);
        let class = checker.certified(checker.network.graph.label(target), base.predicted());
        if checker.target_class == TargetClass::Label && checker.network.graph.label(target).is_some() {
            return vec![class];
        }
        let is_level = |&y: &ClassId| checker.others(y).all(|k| base.margin((y, k)).hi >= 0.0);
        let others = checker.others(class).filter(is_level);
        std::iter::once(class).chain(others).collect()
    }

    /// Whether the class holds in all sets of a base point, as far as is shown without proofs.
    fn holds(&self, base: &Base, class: ClassId) -> bool {
        let claim = |k: ClassId| Claim { pair: (class, k), above: 0.0, at_least: 0.0 };
        self.checker.others(class).all(|k| is_shown(base, claim(k), &EMPTY))
    }

    /// Whether radii tell that a node withstands so many flips.
    fn is_known(&self, node: NodeId, flips: usize) -> bool {
        self.radii.is_some_and(|radii| radii.show(node, flips))
    }

    /// Whether the certificate rests on trying all single flips (Lemma 74).
    fn rests_on_single_flips(&self) -> bool {
        let kind = self.checker.network.graph.kind();
        self.record.global == 1 && self.record.multipliers.is_empty() && !kind.is_values() && !kind.is_normalised()
    }

    /// Adds the prices of those cuts of a target that are shown to be cuts (Lemma 73).
    fn add_cuts(&self, share: &mut Share, base: &Base, multipliers: &CutMultipliers) {
        let CutMultipliers { withstands, count, ref gains, .. } = *multipliers;
        let (flips, class, mut sum) = (withstands as usize, share.classes[0], 0.0);
        let withstood = || Base::clean(&self.checker.network, base.region, flips);
        if count > 0.0 && (self.is_known(share.target, flips) || self.holds(&withstood(), class)) {
            let price = up(up(count) / (f64::from(withstands) + 1.0));
            share.of_nodes.extend(base.region.rows.iter().map(|&node| (node, price)));
            sum = count;
        }
        let are_cuts = gains.iter().all(|&(beyond, by)| (0.0..1.0).contains(&beyond) && by >= 0.0);
        if are_cuts && !gains.is_empty() && !self.checker.network.graph.kind().is_normalised() {
            let cuts: Vec<Cut> = gains.iter().map(|&of| Cut::new(of, base.most)).collect();
            let beyond = cuts.iter().map(|cut| cut.beyond).fold(f64::INFINITY, f64::min);
            if let Some(parts) = Parts::of(base, class, beyond.max(LISTED / base.most as f64)) {
                share.add_gains(&parts, &base.region.rows, &cuts);
                sum = gains.iter().fold(sum, |sum, &(_, multiplier)| down(sum + multiplier));
            }
        }
        share.rest = relu(up(1.0 - sum));
    }

    /// The largest price of an admissible set.
    fn dearest(&self, shares: &Shares) -> f64 {
        let limits = &self.checker.network.limits;
        let mut prices: Vec<f64> = Vec::new();
        for (&node, &any) in &shares.of_nodes {
            let most = limits.local(node).min(limits.global());
            let listed = shares.of_flips.range((node, AttributeId(0))..=(node, AttributeId(u32::MAX)));
            let mut of_node: Vec<f64> = listed.map(|(_, &more)| up(any + more)).collect();
            of_node.extend((0..most).map(|_| any));
            of_node.sort_by(by_falling);
            prices.extend(&of_node[..most]);
        }
        prices.sort_by(by_falling);
        prices.iter().take(limits.global()).fold(0.0, |sum, &price| up(sum + price))
    }

    /// How many targets one flip changes at most: flips are tried, those that may change most first.
    fn most_by_one(&self, shares: &Shares) -> f64 {
        let mut flips: Vec<_> = shares.single.iter().collect();
        flips.sort_by_key(|(_, targets)| Reverse(targets.len()));
        let mut most = 0;
        for (&(node, attribute), targets) in flips {
            if targets.len() <= most {
                break;
            }
            let flip = Flip::of(self.checker.network.graph, node, attribute);
            let falls = |target: &&NodeId| self.falls(**target, &shares.classes[*target], &[flip]);
            most = most.max(targets.iter().filter(falls).count());
        }
        most as f64
    }

    /// Whether flips change a target of one of these classes.
    fn falls(&self, target: NodeId, classes: &[ClassId], flips: &[Flip]) -> bool {
        let region = self.checker.linked(target);
        let is_level = |y, k| compare(&self.checker.network, &region, flips, (y, k), 0.0).is_le();
        classes.iter().any(|&y| self.checker.others(y).any(|k| is_level(y, k)))
    }
}

impl Share {
    /// Adds the prices of cuts of what flips take.
    fn add_gains(&mut self, parts: &Parts, rows: &[NodeId], cuts: &[Cut]) {
        let price = |part: f64| cuts.iter().fold(0.0, |sum, cut| up(sum + cut.price(part)));
        self.of_nodes.extend(rows.iter().zip(&parts.caps).map(|(&node, &cap)| (node, price(cap))));
        for (&(row, attribute), &part) in &parts.flips {
            let more = up(price(part) - price(parts.caps[row]));
            // NaN is kept.
            let is_as_cheap = more <= 0.0;
            if !is_as_cheap {
                self.of_flips.push(((rows[row], attribute), more));
            }
        }
    }
}

/// What flips take of the margin of a target at most (Lemma 72).
struct Parts {
    /// Of each row, for flips that are not listed.
    caps: Vec<f64>,
    flips: BTreeMap<(usize, AttributeId), f64>,
}

impl Parts {
    /// Lists all flips that may take more than this part of the margin over a class that may overtake; `None` if a margin may be used up without
    /// any.
    fn of(base: &Base, y: ClassId, floor: f64) -> Option<Self> {
        let mut all = Self { caps: vec![0.0; base.region.rows.len()], flips: BTreeMap::new() };
        let (mut open, mut listed) = (0, BTreeMap::new());
        for k in (0..base.network.model.classes() as u32).map(ClassId).filter(|&k| k != y) {
            let linear = Linearised::new(base, (y, k), &[]).filter(|linear| linear.constant > 0.0)?;
            let (queries, level) = (linear.queries(), down(linear.constant * floor));
            let above = |level: f64| gains_above(base, &linear, &queries, level);
            let holds = |gains, level| down(linear.constant - largest_total(base, gains, level).0) > 0.0;
            let high = FIRST * linear.constant / base.left as f64;
            if base.left == 0 || holds(above(high), high) {
                continue;
            }
            let gains = above(level);
            if holds(gains.clone(), level) {
                continue;
            }
            open += 1;
            let part = |gain: f64| up(gain / linear.constant);
            for (row, cap) in all.caps.iter_mut().enumerate().filter(|&(row, _)| base.capacities[row] > 0) {
                let most = largest_of_row(base, &queries[row]);
                *cap = larger(*cap, part(if most < level { most } else { level }));
            }
            for (gain, row, attribute) in gains {
                let of = all.flips.entry((row, attribute)).or_default();
                *of = larger(*of, part(gain));
                *listed.entry((row, attribute)).or_insert(0) += 1;
            }
        }
        // Where a class does not list a flip it takes what its cap says.
        for (flip, part) in all.flips.iter_mut().filter(|(flip, _)| listed[*flip] < open) {
            *part = larger(*part, all.caps[flip.0]);
        }
        Some(all)
    }

    /// The flips each of which may take a margin.
    fn reaching_one(&self, rows: &[NodeId]) -> Vec<Entry> {
        // NaN may be more.
        let holds = |part: f64| part < 1.0;
        let flips = self.flips.iter().filter(|&(_, &part)| !holds(part));
        flips.map(|(&(row, attribute), _)| (rows[row], attribute)).collect()
    }
}

/// A cut of what is taken beyond a part η of the margin.
struct Cut {
    /// At most η.
    beyond: f64,
    /// At most 1 − Qη.
    within: f64,
    multiplier: f64,
}

impl Cut {
    /// Given Qη and the multiplier.
    fn new((beyond, multiplier): (f64, f64), flips: usize) -> Self {
        Self { beyond: relu(down(beyond / flips as f64)), within: down(1.0 - beyond), multiplier }
    }

    /// At least what a flip costs that takes at most this part: `λ min(1, (p − η)₊ / (1 − Qη))`.
    fn price(&self, part: f64) -> f64 {
        if part <= self.beyond {
            return 0.0;
        }
        let weight = up(up(part - self.beyond) / self.within);
        up(self.multiplier * if weight > 1.0 { 1.0 } else { weight })
    }
}

/// Numbers that are none count as the largest.
fn by_falling(a: &f64, b: &f64) -> Ordering {
    let key = |x: f64| if x.is_nan() { f64::INFINITY } else { x };
    key(*b).total_cmp(&key(*a))
}

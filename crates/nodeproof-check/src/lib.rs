//! Checks certificates without the engines that found them.
//!
//! A certificate says of a node that no admissible set of flips changes its class, or names flips that do; or it says so of deletions of edges, too. This crate sees for itself
//! whether that is so. It has none of the engines' code; what it shares with them is how graphs, models, propagations, budgets and certificates
//! are read (`nodeproof-problem`). It has one bound of its own, in arithmetic that rounds outwards, and where a certificate says no more, that bound shows that each margin is positive. Otherwise the
//! certificate has a [`Proof`], slopes of lines or a tree of flips, and the bound shows it with these, and for each part of the tree.
//!
//! To be read in this order:
//!
//! | module | what it has |
//! |---|---|
//! | `interval`, `number` | numbers that are known up to rounding, and exact ones |
//! | `network` | the network, and the part that one node sees |
//! | `base` | the attributes with some flips made |
//! | `bound` | what is linear in further flips, and what each gains beyond that |
//! | `selection`, `rows` | what all of them gain at most |
//! | `arithmetic` | what an arithmetic that rounds may take off margins |
//! | `deletions` | the network without some edges, and all sets of them that one node may notice |
//! | `collective` | how many predictions one set changes at most |

mod arithmetic;
mod base;
mod bound;
mod collective;
mod deletions;
mod interval;
mod network;
mod number;
mod rows;
mod selection;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;

use nodeproof_problem::results::{GraphHeader, Header, ModelHeader};
use nodeproof_problem::{
    Arithmetic, Bound, BudgetError, Certificate, ClassId, Edge, Evidence, Flip, Graph, Limits, Model, ModelError,
    NodeId, Proof, Proofs, Radius, TargetClass, Witness,
};

use crate::arithmetic::{Rounding, logit_errors};
use crate::base::Base;
use crate::bound::Linearised;
pub use crate::collective::{CollectiveChecker, KnownRadii, Share, Shares};
use crate::deletions::Linked;
pub use crate::deletions::MOST_SETS;
use crate::interval::{Interval, larger, up};
use crate::network::{Network, Region, Rows};
use crate::number::Number;

/// Checks certificates of one model on one graph under one budget.
pub struct Checker<'a> {
    network: Network<'a>,
    target_class: TargetClass,
    /// What margins must exceed, and the arithmetic that rounds in which they must.
    margin: f64,
    rounding: Option<Rounding>,
}

/// Why a certificate is not accepted.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum NotAccepted {
    /// Something is wrong with it, or cannot be shown.
    #[error(transparent)]
    Rejected(#[from] Rejection),
    /// Nothing that was tried speaks against it, but not all was: there are more sets of deletions than [`MOST_SETS`].
    #[error("there are more than {MOST_SETS} sets of deletions, of which at most single deletions were tried")]
    NotChecked,
}

/// What is wrong with a certificate.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Rejection {
    /// The graph does not have the node, or the model not the class.
    #[error("there is no such node or class")]
    Unknown,
    /// The label is not the graph's.
    #[error("its label is not that of the graph")]
    Label,
    /// Another class is the one to certify, or is predicted.
    #[error("class {0} is not the one that is predicted, or not the one to certify")]
    Class(ClassId),
    /// A margin is missing.
    #[error("it says nothing of class {0}")]
    Missing(ClassId),
    /// A margin is smaller than is said on the graph as it is, or under the witness.
    #[error("the margin over class {0} is smaller than it says, without flips or under its witness")]
    Overclaimed(ClassId),
    /// A margin is not shown by its proof.
    #[error("the margin over class {0} is not shown to be as large as it says: its proof shows less")]
    Margin(ClassId),
    /// A margin is not shown without a proof, and there is none.
    #[error(
        "it has no proof, and what is tried without one does not show the margin over class {0}; it may be right all the same"
    )]
    Unproven(ClassId),
    /// A margin is smaller where some edges are deleted.
    #[error("the margin over class {0} is smaller than it says without the edges {edges}", edges = in_words(.1))]
    Unlinked(ClassId, Vec<Edge>),
    /// Numbers without some edges are not finite.
    #[error("numbers overflow where edges are deleted")]
    Overflow,
    /// A proof of the certified class, or of one that there is not.
    #[error("a proof is not of another class of the network")]
    Proof,
    /// Flips or deletions that the budget does not allow.
    #[error("its witness is not within the budget")]
    Budget,
    /// Flips or deletions that do not change the class.
    #[error("class {0} does not overtake under its witness, or not by as much as it says")]
    Witness(ClassId),
    /// Budgets that contradict each other, or the witness.
    #[error("its budgets contradict each other, or are not those of its witness")]
    Radius,
    /// A collective certificate lists other predictions than there are.
    #[error("it is not about as many predictions as it says, or does not list them in order")]
    Targets,
    /// A prediction that an attack is said to change holds.
    #[error("its attack does not change the prediction of node {0}")]
    Holds(NodeId),
    /// More predictions may change.
    #[error("what it rests on shows only that at most {0} change")]
    AtMost(f64),
}

/// What a file of certificates is not about.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Mismatch {
    /// Its header names another graph.
    #[error("the certificates are about another graph")]
    Graph,
    /// Its header names another model.
    #[error("the certificates are about another model")]
    Model,
    /// Edges may be deleted, and something keeps that from being checked.
    #[error("deletions of edges cannot be checked {0}")]
    Edges(&'static str),
    /// Radii are about other budgets or classes than collective certificates.
    #[error("the radii are about another budget or class")]
    Radii,
    /// Collective certificates speak of positive margins under flips alone.
    #[error(
        "there are no collective certificates about deletions of edges, margins or an arithmetic; create them without these"
    )]
    Collective,
    /// The model does not fit the graph.
    #[error(transparent)]
    Fit(#[from] ModelError),
    /// The budget does not fit the graph.
    #[error(transparent)]
    Budget(#[from] BudgetError),
}

impl<'a> Checker<'a> {
    /// A checker of certificates in a file with this header. The fingerprint of the graph is computed anew, whatever its file says.
    ///
    /// # Errors
    /// If the file is about another graph or model, or these do not belong together.
    pub fn of(header: &Header, graph: &'a Graph, model: &'a Model) -> Result<Self, Mismatch> {
        if !header.graph.is_same_graph(&GraphHeader::computed(graph)) {
            return Err(Mismatch::Graph);
        }
        if header.model != ModelHeader::new(model) {
            return Err(Mismatch::Model);
        }
        let checker = Self::new(graph, model, header.budget.limits(graph)?, header.target_class)?;
        checker.asking(header.margin, header.arithmetic)
    }

    /// A checker of certificates about this class of each node.
    ///
    /// # Errors
    /// If the model does not fit the graph, or is none of which deletions of edges can be checked, where there may be some.
    pub fn new(
        graph: &'a Graph,
        model: &'a Model,
        limits: Limits,
        target_class: TargetClass,
    ) -> Result<Self, Mismatch> {
        if limits.edges().is_some() && !graph.adjacency().is_symmetric() {
            return Err(Mismatch::Edges("in a graph with edges in one direction only"));
        }
        if limits.edges().is_some() && !model.propagations().iter().all(|propagation| propagation.follows_degrees()) {
            return Err(Mismatch::Edges("in a network with a propagation that does not follow from degrees"));
        }
        Ok(Self { network: Network::new(graph, model, limits)?, target_class, margin: 0.0, rounding: None })
    }

    /// One that asks for margins above this, however a network is evaluated in this arithmetic.
    ///
    /// # Errors
    /// If the magnitudes of a propagation cannot be computed, or edges may be deleted and numbers are not exact.
    pub fn asking(self, margin: f64, arithmetic: Arithmetic) -> Result<Self, Mismatch> {
        if self.network.limits.edges().is_some() && arithmetic.roundoff().is_some() {
            return Err(Mismatch::Edges("in an arithmetic that rounds"));
        }
        let rounding = arithmetic.roundoff().map(|roundoff| Rounding::new(roundoff, &self.network)).transpose()?;
        Ok(Self { margin, rounding, ..self })
    }

    /// Whether a certificate is right. One that leaves its node undecided claims nothing but what kind of node that is.
    ///
    /// # Errors
    /// Says what is wrong, or that there is too much to try.
    pub fn certificate(&self, certificate: &Certificate) -> Result<(), NotAccepted> {
        let Certificate { node, label, class, predicted, ref margins, .. } = *certificate;
        let region = self.region(node, label, &[class, predicted])?;
        let base = Base::clean(&self.network, &region, self.network.limits.global());
        self.check_class(&base, label, class, predicted)?;
        let said = |k: ClassId| margins.get(k.index()).copied().flatten();
        // Bounds that prove nothing are not proven, but none is above the margin without flips.
        let is_above = |&k: &ClassId| exceeds(said(k), base.margin((class, k)).hi);
        if let Some(k) = self.others(class).find(is_above) {
            return Err(Rejection::Overclaimed(k).into());
        }
        match &certificate.evidence {
            Evidence::Robust => self.robust(&base, class, certificate.proofs.as_ref(), said, self.varied()),
            Evidence::Witness(witness) if exceeds(said(witness.class), witness.margin) => {
                Err(Rejection::Overclaimed(witness.class).into())
            }
            Evidence::Witness(witness) => Ok(self.witness(&region, class, witness)?),
            _ => Ok(()),
        }
    }

    /// Whether a radius is right: the node is robust up to where it says, and a witness has as many flips, or deletions, as it says that it takes.
    ///
    /// # Errors
    /// Says what is wrong, or that there is too much to try.
    pub fn radius(&self, radius: &Radius) -> Result<(), NotAccepted> {
        let Radius { node, label, robust_up_to, ref found, .. } = *radius;
        let region = self.region(node, label, radius.class().as_slice())?;
        let (most, up_to) = (self.varied(), robust_up_to.unwrap_or(0) as usize);
        let has_edges = self.network.limits.edges().is_some();
        let base = Base::clean(&self.network, &region, if has_edges { self.network.limits.global() } else { up_to });
        // The class that it says is the certified one, which is the predicted one but for labels.
        let said = radius.class().filter(|_| self.target_class != TargetClass::Label || label.is_none());
        let predicted = said.unwrap_or_else(|| base.predicted());
        let class = radius.class().unwrap_or_else(|| self.certified(label, predicted));
        self.check_class(&base, label, class, predicted)?;
        if let Some(found) = found {
            let of = |witness: &Witness| if has_edges { witness.edges.len() } else { witness.flips.len() };
            let size = found.witness.as_ref().map(of);
            let fits = size == found.nonrobust_from.map(|from| from as usize)
                && robust_up_to.is_none_or(|robust| robust as usize <= most)
                && found.exact == Radius::all_decided(robust_up_to, found.nonrobust_from, most as u32);
            if !fits {
                return Err(Rejection::Radius.into());
            }
            if let Some(witness) = &found.witness {
                self.witness(&region, class, witness)?;
            }
        }
        if robust_up_to.is_none() || (found.is_none() && robust_up_to == Some(0)) {
            return Ok(());
        }
        let proofs = found.as_ref().and_then(|found| found.proofs.as_ref());
        let exceeding = if self.margin > 0.0 { Bound::AtLeast(self.margin) } else { Bound::Positive };
        self.robust(&base, class, proofs, |_| Some(exceeding), up_to)
    }

    /// At most how far each logit of a node is from that without rounding, under any flips within the budget (Lemma 53); nothing if no
    /// arithmetic is asked about.
    ///
    /// # Errors
    /// If there is no such node.
    pub fn logit_errors(&self, node: NodeId) -> Result<Option<Vec<f64>>, Rejection> {
        if node.index() >= self.network.graph.nodes() {
            return Err(Rejection::Unknown);
        }
        let region = self.linked(node);
        Ok(self.errors(&Base::clean(&self.network, &region, self.network.limits.global())))
    }

    fn errors(&self, base: &Base) -> Option<Vec<f64>> {
        self.rounding.as_ref().map(|rounding| logit_errors(base, rounding))
    }

    /// The region of a node, if there is that node with this label, and if there are these classes.
    fn region(&self, node: NodeId, label: Option<ClassId>, classes: &[ClassId]) -> Result<Region, Rejection> {
        let (graph, count) = (self.network.graph, self.network.model.classes());
        if node.index() >= graph.nodes() || classes.iter().any(|class| class.index() >= count) {
            return Err(Rejection::Unknown);
        }
        if label != graph.label(node) {
            return Err(Rejection::Label);
        }
        Ok(self.linked(node))
    }

    /// The region of a node with all edges.
    fn linked(&self, node: NodeId) -> Region {
        Region::new(&self.network, &Rows::of(&self.network.matrices), node)
    }

    /// The most deletions of edges where there may be some, and otherwise the most flips: what radii count.
    fn varied(&self) -> usize {
        let limits = &self.network.limits;
        limits.edges().map_or(limits.global(), |edges| edges.global())
    }

    /// Checks which class is predicted, and which one is to be certified.
    fn check_class(
        &self,
        base: &Base,
        label: Option<ClassId>,
        class: ClassId,
        predicted: ClassId,
    ) -> Result<(), Rejection> {
        if self.others(predicted).any(|k| base.margin((predicted, k)).hi < 0.0) {
            return Err(Rejection::Class(predicted));
        }
        if class == self.certified(label, predicted) { Ok(()) } else { Err(Rejection::Class(class)) }
    }

    /// The class to certify.
    fn certified(&self, label: Option<ClassId>, predicted: ClassId) -> ClassId {
        if self.target_class == TargetClass::Label { label.unwrap_or(predicted) } else { predicted }
    }

    fn others(&self, class: ClassId) -> impl Iterator<Item = ClassId> {
        (0..self.network.model.classes() as u32).map(ClassId).filter(move |&k| k != class)
    }

    /// Whether all margins of the sets of a base point without flips are as large as is said, and as is asked for, after any admissible
    /// deletion of at most so many edges, too.
    fn robust(
        &self,
        base: &Base,
        class: ClassId,
        proofs: Option<&Proofs>,
        said: impl Fn(ClassId) -> Option<Bound> + Copy,
        deletions: usize,
    ) -> Result<(), NotAccepted> {
        let Some(limits) = self.network.limits.edges() else { return Ok(self.holds(base, class, proofs, said)?) };
        let linked = Linked::new(base, limits);
        let (sets, are_all) = linked.sets(deletions);
        for edges in sets {
            let rows = linked.without(&edges).ok_or(Rejection::Overflow)?;
            let logits = linked.logits(&rows);
            let is_clear = |k: ClassId| {
                let margin = (logits[class.index()] + -logits[k.index()]).lo;
                said(k).is_some_and(|said| said.exceeds(self.margin) && margin > self.margin && margin >= said.value())
            };
            if base.left == 0 && self.others(class).all(is_clear) {
                continue;
            }
            let region = Region::new(&self.network, &rows, base.region.target());
            let left = Base::clean(&self.network, &region, base.most);
            self.holds(&left, class, proofs, said).map_err(|rejection| match rejection {
                Rejection::Unproven(k) if base.left == 0 && !edges.is_empty() => Rejection::Unlinked(k, edges),
                other => other,
            })?;
        }
        if are_all { Ok(()) } else { Err(NotAccepted::NotChecked) }
    }

    /// The same without deletions.
    fn holds(
        &self,
        base: &Base,
        class: ClassId,
        proofs: Option<&Proofs>,
        said: impl Fn(ClassId) -> Option<Bound>,
    ) -> Result<(), Rejection> {
        let of = |k: ClassId| proofs.and_then(|proofs| proofs.get(&k)).unwrap_or(&EMPTY);
        if proofs.is_some_and(|proofs| proofs.keys().any(|&k| k == class || k.index() >= self.network.model.classes()))
        {
            return Err(Rejection::Proof);
        }
        let errors = self.errors(base);
        self.others(class).try_for_each(|k| {
            let said = said(k).ok_or(Rejection::Missing(k))?;
            let error = |of: &Vec<f64>| up(self.margin + up(of[class.index()] + of[k.index()]));
            let above = errors.as_ref().map_or(self.margin, error);
            let claim = Claim { pair: (class, k), above, at_least: said.value() };
            let is_robust = above < f64::INFINITY && said.exceeds(self.margin) && is_shown(base, claim, of(k));
            match proofs {
                _ if is_robust => Ok(()),
                Some(_) => Err(Rejection::Margin(k)),
                None => Err(Rejection::Unproven(k)),
            }
        })
    }

    /// Flips and deletions within the budget bring a class level, or above, by as much as is said (Definition 6).
    fn witness(&self, region: &Region, class: ClassId, witness: &Witness) -> Result<(), Rejection> {
        let Witness { flips, edges, class: other, margin, .. } = witness;
        if *other == class || other.index() >= self.network.model.classes() {
            return Err(Rejection::Unknown);
        }
        let (limits, graph) = (&self.network.limits, self.network.graph);
        let may_delete = limits.edges().map_or(edges.is_empty(), |limits| limits.admits(graph, edges));
        if !limits.admits(graph, flips) || !may_delete {
            return Err(Rejection::Budget);
        }
        let readers = deletions::readers(&self.network, region);
        let rows = deletions::without(&self.network, &readers, edges).ok_or(Rejection::Overflow)?;
        let region = Region::new(&self.network, &rows, region.target());
        let is_small =
            *margin <= self.margin && compare(&self.network, &region, flips, (class, *other), *margin).is_le();
        if is_small { Ok(()) } else { Err(Rejection::Witness(*other)) }
    }
}

fn in_words(edges: &[Edge]) -> String {
    edges.iter().map(Edge::to_string).collect::<Vec<_>>().join(", ")
}

/// Whether a lower bound is above a number that the margin is not above.
fn exceeds(said: Option<Bound>, margin: f64) -> bool {
    said.is_some_and(|said| said.value() > margin)
}

static EMPTY: Proof = Proof { branches: Vec::new(), slopes: Vec::new() };

/// That the margin of a pair of classes exceeds one number, which is not negative, and is at least another.
#[derive(Clone, Copy)]
struct Claim {
    pair: (ClassId, ClassId),
    above: f64,
    at_least: f64,
}

/// Whether a proof shows a claim in all sets of a base point (Lemma 52).
fn is_shown(base: &Base, claim: Claim, proof: &Proof) -> bool {
    let mut rest = base.clone();
    for branch in &proof.branches {
        // A flip that no set may have splits nothing.
        let Some(with) = rest.with(branch.flip) else { return false };
        if !is_shown(&with, claim, &branch.proof) {
            return false;
        }
        rest.without.insert((branch.flip.node, branch.flip.attribute));
    }
    let Claim { pair, above, at_least } = claim;
    let Some(linear) = Linearised::new(&rest, pair, &proof.slopes) else { return false };
    let bound = selection::lower_bound(&rest, &linear, larger(above, at_least));
    if bound > above && bound >= at_least {
        return true;
    }
    // Without any flips left that do something, exact numbers decide.
    let is_alone = rest.freed().is_empty() && selection::is_alone(&rest);
    let compared = |with: f64| compare(rest.network, rest.region, &rest.flips, pair, with);
    is_alone && compared(above).is_gt() && compared(at_least).is_ge()
}

/// How the margin of the target under flips compares with a number: in intervals if these tell, and exactly otherwise.
fn compare(network: &Network, region: &Region, flips: &[Flip], (y, k): (ClassId, ClassId), with: f64) -> Ordering {
    let sums: Vec<_> = region.rows.iter().map(|&node| network.sum(node, flips)).collect();
    let z = region.forward(network, &sums, &Interval::of(1.0));
    let margin = z[z.len() - 1][0][y.index()] + -z[z.len() - 1][0][k.index()];
    if margin.hi < with || margin.lo > with {
        return if margin.hi < with { Ordering::Less } else { Ordering::Greater };
    }
    let (logits, one) = region.exact_logits(network, flips);
    let margin = logits[y.index()].plus(&logits[k.index()].times(-1.0));
    margin.plus(&one.times(-with)).sign()
}

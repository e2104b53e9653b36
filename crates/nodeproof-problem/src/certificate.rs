//! What is found out about a node under a budget: a verdict with its evidence (Definition 6 of `docs/maths.md`).

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::edge::Edge;
use crate::flip::Flip;
use crate::ids::{ClassId, NodeId};
use crate::proof::Proofs;
use crate::settings::Engine;

/// A lower bound on a margin over all admissible sets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bound {
    /// Nothing is known, since numbers may have overflowed.
    Unknown,
    /// The margin is positive, by how much is not known.
    Positive,
    /// The margin is at least this, rounded down.
    AtLeast(f64),
}

impl Bound {
    /// Whether the margin is known to be positive.
    pub fn is_positive(self) -> bool {
        match self {
            Self::Unknown => false,
            Self::Positive => true,
            Self::AtLeast(bound) => bound > 0.0,
        }
    }

    /// Whether the margin may be said to exceed this, which is not negative: one that is at least as large as what was asked for was found
    /// by asking for more.
    pub fn exceeds(self, asked: f64) -> bool {
        if asked == 0.0 { self.is_positive() } else { self.value() >= asked }
    }

    /// A number that the margin is not below: −∞ where nothing is known, 0 where it is known to be positive.
    pub fn value(self) -> f64 {
        match self {
            Self::Unknown => f64::NEG_INFINITY,
            Self::Positive => 0.0,
            Self::AtLeast(bound) => bound,
        }
    }

    /// The number that the margin is at least, if there is one.
    pub fn at_least(self) -> Option<f64> {
        match self {
            Self::AtLeast(bound) => Some(bound),
            Self::Unknown | Self::Positive => None,
        }
    }

    /// The stronger of two bounds on the same margin.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        if other.is_below(self) { self } else { other }
    }

    /// The same, with NaN, which bounds nothing, as what it is.
    fn known(self) -> Self {
        if matches!(self, Self::AtLeast(bound) if bound.is_nan()) { Self::Unknown } else { self }
    }

    /// Whether this says less than `other`. A positive margin of unknown size is above 0 and below every positive number.
    pub fn is_below(self, other: Self) -> bool {
        match (self.known(), other.known()) {
            (_, Self::Unknown) => false,
            (Self::Unknown, _) => true,
            (Self::AtLeast(a), Self::AtLeast(b)) => a < b,
            (Self::Positive, Self::AtLeast(b)) => b > 0.0,
            (Self::AtLeast(a), Self::Positive) => a <= 0.0,
            (Self::Positive, Self::Positive) => false,
        }
    }
}

/// Flips, and deletions of edges, that change a prediction.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Witness {
    /// The flips, by node and attribute; an admissible set.
    pub flips: Vec<Flip>,
    /// The edges that are deleted, in ascending order; an admissible set.
    pub edges: Vec<Edge>,
    /// The class that overtakes.
    pub class: ClassId,
    /// `logit_y − logit_class` under the flips, rounded up: negative, or 0 where it is 0 or too close to 0 for a double:
    /// a tie, which [`Engine::Fast`] leaves undecided. Positive only where a larger margin was asked for.
    pub margin: f64,
}

impl Witness {
    /// A witness of these parts.
    pub fn new(flips: Vec<Flip>, class: ClassId, margin: f64) -> Self {
        Self { flips, edges: Vec::new(), class, margin }
    }

    /// The same with these edges deleted, too.
    pub fn with_edges(mut self, edges: Vec<Edge>) -> Self {
        self.edges = edges;
        self
    }

    /// How many changes it takes: flips, and deletions of edges.
    pub fn size(&self) -> usize {
        self.flips.len() + self.edges.len()
    }

    /// Whether the flips only bring the class level.
    pub fn is_tie(&self) -> bool {
        self.margin == 0.0
    }
}

/// What a node's verdict rests on.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Evidence {
    /// Every margin of the certificate is positive: no admissible set of flips changes the class.
    Robust,
    /// These flips change the class.
    Witness(Witness),
    /// Neither could be shown.
    Open {
        /// The smallest margin over all admissible sets is not below this.
        lower: Bound,
        /// The smallest margin found under an admissible set: the truth lies between. `None` if nothing is known.
        upper: Option<f64>,
        /// What kept it from being decided; `None` in results that do not say.
        because: Option<Obstacle>,
    },
}

/// What keeps a node from being decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Obstacle {
    /// The strongest engine that was asked for does not branch.
    Engine,
    /// Real values between the ends of their ranges: no admissible ends are a witness, and others are not tried.
    Values,
    /// A time limit.
    Time,
    /// The memory limit.
    Memory,
    /// Numbers that may overflow.
    Overflow,
    /// The arithmetic that was asked about: margins hold without rounding, but may be lost in it.
    Arithmetic,
}

impl Evidence {
    /// The verdict that follows.
    pub fn verdict(&self) -> Verdict {
        match self {
            Self::Robust => Verdict::Robust,
            Self::Witness(_) => Verdict::Nonrobust,
            Self::Open { .. } => Verdict::Undecided,
        }
    }
}

/// What is known of a node under the budget, without the evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// No admissible set of flips changes the class.
    Robust,
    /// Flips that change it are known.
    Nonrobust,
    /// Neither is proven.
    Undecided,
}

impl Verdict {
    /// `robust`, `nonrobust` or `undecided`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Robust => "robust",
            Self::Nonrobust => "nonrobust",
            Self::Undecided => "undecided",
        }
    }
}

/// A verdict on one node, with what is needed to check it again.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Certificate {
    /// The node.
    pub node: NodeId,
    /// Its label, if it has one.
    pub label: Option<ClassId>,
    /// The class that the model predicts on the graph as it is.
    pub predicted: ClassId,
    /// The class that is certified, y: predicted or label, as [`TargetClass`](crate::settings::TargetClass) says.
    pub class: ClassId,
    /// What the verdict rests on.
    pub evidence: Evidence,
    /// Per class k a lower bound on `logit_y − logit_k` over all admissible sets; `None` for y itself.
    pub margins: Vec<Option<Bound>>,
    /// The class with the smallest lower bound.
    pub worst_class: ClassId,
    /// Of a robust node, where they were asked for and found: proofs for those classes for which a checker needs one.
    pub proofs: Option<Proofs>,
    /// The engine that settled the node, or the last one that tried.
    pub engine: Engine,
    /// Subproblems that branch and bound looked at.
    pub branches: u64,
    /// Time spent on this node alone, where it was asked for.
    pub time: Option<Duration>,
}

/// What counts of certificates are made from.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Outline {
    /// The node.
    pub node: NodeId,
    /// Its label, if it has one.
    pub label: Option<ClassId>,
    /// The class that the model predicts.
    pub predicted: ClassId,
    /// The verdict.
    pub verdict: Verdict,
    /// The smallest lower bound over all classes.
    pub margin: Bound,
    /// The engine that settled the node, or the last one that tried.
    pub engine: Engine,
    /// What kept an undecided node from being decided, if that is known.
    pub because: Option<Obstacle>,
    /// Whether it is robust, and comes with what a checker needs.
    pub proven: bool,
}

impl Certificate {
    /// What counts are made from.
    pub fn outline(&self) -> Outline {
        let &Self { node, label, predicted, engine, .. } = self;
        let (verdict, margin, because) = (self.verdict(), self.margin(), self.undecided_because());
        let proven = verdict == Verdict::Robust && self.proofs.is_some();
        Outline { node, label, predicted, verdict, margin, engine, because, proven }
    }

    /// A certificate of these parts; of the margins, one a class, the smallest makes the worst class.
    pub fn new(
        node: NodeId,
        class: ClassId,
        predicted: ClassId,
        evidence: Evidence,
        margins: Vec<Option<Bound>>,
    ) -> Self {
        let worst_class = smallest(&margins).0;
        let (label, proofs, engine, branches, time) = (None, None, Engine::Fast, 0, None);
        Self { node, label, predicted, class, evidence, margins, worst_class, proofs, engine, branches, time }
    }

    /// The verdict.
    pub fn verdict(&self) -> Verdict {
        self.evidence.verdict()
    }

    /// Whether the verdict is [`Verdict::Robust`].
    pub fn is_robust(&self) -> bool {
        self.verdict() == Verdict::Robust
    }

    /// The witness, if the node is nonrobust.
    pub fn witness(&self) -> Option<&Witness> {
        match &self.evidence {
            Evidence::Witness(witness) => Some(witness),
            _ => None,
        }
    }

    /// What kept an undecided node from being decided, if that is known.
    pub fn undecided_because(&self) -> Option<Obstacle> {
        match self.evidence {
            Evidence::Open { because, .. } => because,
            _ => None,
        }
    }

    /// The smallest lower bound over all classes.
    pub fn margin(&self) -> Bound {
        smallest(&self.margins).1
    }

    /// Takes over those of other bounds on the same margins that say more. An undecided node gets the smallest of them as its lower
    /// bound, or is robust after all, which takes [`Engine::Tight`].
    pub fn raise(&mut self, margins: &[Option<Bound>]) {
        for (known, other) in self.margins.iter_mut().zip(margins) {
            if let (Some(known), Some(other)) = (known, other) {
                *known = known.max(*other);
            }
        }
        let worst;
        (self.worst_class, worst) = smallest(&self.margins);
        match &mut self.evidence {
            Evidence::Open { .. } if worst.is_positive() => {
                (self.evidence, self.engine) = (Evidence::Robust, self.engine.max(Engine::Tight));
            }
            Evidence::Open { lower, .. } => *lower = lower.max(worst),
            Evidence::Robust | Evidence::Witness(_) => {}
        }
    }
}

/// The class with the smallest bound, the first of several, and that bound.
pub fn smallest(margins: &[Option<Bound>]) -> (ClassId, Bound) {
    let mut worst = (ClassId(0), Bound::AtLeast(f64::INFINITY));
    for (class, margin) in (0..).map(ClassId).zip(margins) {
        if let Some(margin) = *margin
            && margin.is_below(worst.1)
        {
            worst = (class, margin);
        }
    }
    worst
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_ordered_by_what_they_say() {
        let ascending =
            [Bound::Unknown, Bound::AtLeast(-1.0), Bound::AtLeast(0.0), Bound::Positive, Bound::AtLeast(1e-300)];
        for (i, a) in ascending.into_iter().enumerate() {
            for (j, b) in ascending.into_iter().enumerate() {
                assert_eq!(a.is_below(b), i < j, "{a:?} and {b:?}");
                assert_eq!(a.max(b), ascending[i.max(j)]);
            }
        }
        assert_eq!(ascending.map(Bound::is_positive), [false, false, false, true, true]);
    }

    #[test]
    fn other_bounds_raise_margins() {
        let open = Evidence::Open { lower: Bound::Unknown, upper: Some(0.5), because: Some(Obstacle::Time) };
        let margins = vec![None, Some(Bound::Unknown), Some(Bound::AtLeast(2.0))];
        let mut certificate = Certificate::new(NodeId(0), ClassId(0), ClassId(0), open, margins);
        certificate.raise(&[None, Some(Bound::AtLeast(-1.0)), Some(Bound::AtLeast(1.0))]);
        assert_eq!(certificate.margins, [None, Some(Bound::AtLeast(-1.0)), Some(Bound::AtLeast(2.0))]);
        assert_eq!((certificate.worst_class, certificate.verdict()), (ClassId(1), Verdict::Undecided));
        assert!(matches!(certificate.evidence, Evidence::Open { lower: Bound::AtLeast(-1.0), .. }));
        certificate.raise(&[None, Some(Bound::Positive), None]);
        assert_eq!((certificate.margin(), certificate.verdict()), (Bound::Positive, Verdict::Robust));
        assert_eq!(certificate.margins[2], Some(Bound::AtLeast(2.0)), "no bound takes none away");
    }

    #[test]
    fn the_first_of_the_smallest_is_the_worst() {
        let margins = [Some(Bound::Positive), None, Some(Bound::AtLeast(-1.0)), Some(Bound::AtLeast(-1.0))];
        assert_eq!(smallest(&margins), (ClassId(2), Bound::AtLeast(-1.0)));
        assert_eq!(smallest(&[None, Some(Bound::Unknown)]), (ClassId(1), Bound::Unknown));
        let (class, bound) = smallest(&[Some(Bound::AtLeast(1.0)), Some(Bound::AtLeast(f64::NAN))]);
        assert!(class == ClassId(1) && !bound.is_positive(), "NaN bounds nothing");
    }
}

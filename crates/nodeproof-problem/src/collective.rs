//! What one set of flips can do to all predictions together.

use std::time::Duration;

use crate::flip::Flip;
use crate::ids::NodeId;

/// How many predictions one admissible set of flips changes at most, and an attack that changes some.
///
/// A prediction is changed if its class is level with another or below, with flips or without.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Collective {
    /// The global budget.
    pub global: u32,
    /// How many predictions count.
    pub targets: usize,
    /// How many of them are not proven robust on their own.
    pub alone: usize,
    /// How many change at most, as far as the radii of single nodes and what nodes see tell.
    pub by_radii: usize,
    /// How many change at most.
    pub at_most: usize,
    /// The best attack that was found; ascending.
    pub flips: Vec<Flip>,
    /// The predictions that it changes; ascending.
    pub changed: Vec<NodeId>,
    /// What proves `at_most`, without zeros; nothing where all single flips were tried.
    pub multipliers: Vec<CutMultipliers>,
    /// Time spent.
    pub time: Option<Duration>,
}

impl Collective {
    /// The answer for so many predictions that count, before anything is known.
    pub fn new(global: u32, targets: usize) -> Self {
        Self {
            global,
            targets,
            alone: targets,
            by_radii: targets,
            at_most: targets,
            flips: Vec::new(),
            changed: Vec::new(),
            multipliers: Vec::new(),
            time: None,
        }
    }

    /// How many predictions change at least: by the attack.
    pub fn at_least(&self) -> usize {
        self.changed.len()
    }

    /// Whether the attack changes as many as any can.
    pub fn is_exact(&self) -> bool {
        self.at_least() == self.at_most
    }
}

/// The multipliers of the inequalities that a set has to meet if it changes a prediction (Lemma 73 of `docs/maths.md`).
#[derive(Debug, Clone, PartialEq)]
pub struct CutMultipliers {
    /// The node whose prediction it is.
    pub node: NodeId,
    /// So many flips are known not to change it.
    pub withstands: u32,
    /// Of the number of flips that the node sees.
    pub count: f64,
    /// Of what flips take of its margin beyond a part: Q times that part, and the multiplier.
    pub gains: Vec<(f64, f64)>,
}

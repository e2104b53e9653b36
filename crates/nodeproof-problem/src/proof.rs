//! What a checker needs to see for itself that a margin is positive.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::flip::Flip;
use crate::ids::{ClassId, NodeId};

/// Proofs for those classes for which a checker needs one.
pub type Proofs = BTreeMap<ClassId, Proof>;

/// Why no admissible set of flips makes a margin 0 or less: a tree of flips (Lemma 52 of `docs/maths.md`).
///
/// All sets fall into those that have the first flip, those of the rest that have the second, and so on, and those that have none of them.
/// For each of the first a branch has a proof of its own, and the last are left to the checker's bound, with slopes for some of its lines.
/// Where that bound is enough for all sets as it is, the proof is empty.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Proof {
    /// The flips, in this order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub branches: Vec<Branch>,
    /// Lines for the sets that have none of the flips, where others than the tangents are better.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slopes: Vec<UnitSlope>,
}

/// A line `slope · Z` below the activation of a unit with pre-activation Z (Lemma 39): a slope between the activation's two.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(from = "(u32, NodeId, u32, f64)", into = "(u32, NodeId, u32, f64)")]
pub struct UnitSlope {
    /// The layer, counted from 0.
    pub layer: u32,
    /// The node.
    pub node: NodeId,
    /// The unit of the layer.
    pub unit: u32,
    /// The slope.
    pub slope: f64,
}

impl From<(u32, NodeId, u32, f64)> for UnitSlope {
    fn from((layer, node, unit, slope): (u32, NodeId, u32, f64)) -> Self {
        Self { layer, node, unit, slope }
    }
}

impl From<UnitSlope> for (u32, NodeId, u32, f64) {
    fn from(UnitSlope { layer, node, unit, slope }: UnitSlope) -> Self {
        (layer, node, unit, slope)
    }
}

/// The sets that have a flip and none of those before it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Branch {
    /// The flip; of real values any change of its entry, with the value from which on the others are bounded.
    pub flip: Flip,
    /// Why the margin is positive with it.
    #[serde(default, skip_serializing_if = "Proof::is_empty")]
    pub proof: Proof,
}

impl Proof {
    /// Whether the checker's bound is enough for all sets.
    pub fn is_empty(&self) -> bool {
        self.branches.is_empty() && self.slopes.is_empty()
    }
}

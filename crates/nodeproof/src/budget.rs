//! What an attacker may change: how many flips in all, how many at one node, and which.
//!
//! A *flip* of (n, d) turns attribute d of node n from 0 to 1 or from 1 to 0. A set of flips is *admissible* when it
//! has at most Q flips in all (the global budget), at most q_n at each node n (the local budget), and only flips that
//! are allowed. Admissible sets are the independent sets of a truncated partition matroid, so taking the largest
//! gains greedily is exactly optimal for every additive objective; module `selection` does that.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::graph::{AttributeId, Graph, NodeId};

/// One change: attribute `attribute` of node `node` becomes 1 minus what it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Flip {
    /// The node.
    pub node: NodeId,
    /// The attribute.
    pub attribute: AttributeId,
}

impl Flip {
    /// Whether this flip turns a 0 of `graph` into a 1.
    pub fn adds(self, graph: &Graph) -> bool {
        !graph.attributes().contains(self.node.index(), self.attribute.0)
    }
}

/// Which flips are allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Direction {
    /// 0 to 1 and 1 to 0.
    #[default]
    Both,
    /// Only 0 to 1.
    AddOnly,
    /// Only 1 to 0.
    DeleteOnly,
}

/// The largest number of flips at one node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
#[non_exhaustive]
pub enum LocalBudget {
    /// This many.
    Count(u32),
    /// This share of the number of attributes, rounded down, but at least 1.
    Percent(Percent),
}

impl LocalBudget {
    /// The number of flips for a graph with `attributes` attributes.
    ///
    /// ```
    /// # use nodeproof::LocalBudget;
    /// let local: LocalBudget = "1%".parse()?;
    /// assert_eq!(local.count(2879), 28);
    /// assert_eq!(local.count(30), 1);
    /// # Ok::<(), nodeproof::BudgetError>(())
    /// ```
    pub fn count(self, attributes: usize) -> usize {
        match self {
            Self::Count(count) => count as usize,
            Self::Percent(percent) => percent.floor_of(attributes).max(1),
        }
    }
}

impl FromStr for LocalBudget {
    type Err = BudgetError;

    fn from_str(text: &str) -> Result<Self, BudgetError> {
        let bad = || BudgetError::Local(text.to_owned());
        match text.trim().strip_suffix('%') {
            Some(number) => Percent::parse(number.trim_end()).map(Self::Percent).ok_or_else(bad),
            None => text.trim().parse().map(Self::Count).map_err(|_| bad()),
        }
    }
}

impl From<u32> for LocalBudget {
    fn from(count: u32) -> Self {
        Self::Count(count)
    }
}

impl TryFrom<String> for LocalBudget {
    type Error = BudgetError;

    fn try_from(text: String) -> Result<Self, BudgetError> {
        text.parse()
    }
}

impl fmt::Display for LocalBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => count.fmt(f),
            Self::Percent(percent) => percent.fmt(f),
        }
    }
}

impl From<LocalBudget> for String {
    fn from(local: LocalBudget) -> Self {
        local.to_string()
    }
}

/// A percentage above 0 and up to 100 with at most nine decimals, kept exactly: 29 % of 100 is 29, not
/// ⌊28.999…⌋.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Percent {
    digits: u64,
    decimals: u32,
}

impl Percent {
    /// 1 %, the paper's share.
    pub const ONE: Self = Self { digits: 1, decimals: 0 };

    fn parse(text: &str) -> Option<Self> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let decimals = u32::try_from(fraction.len()).ok().filter(|&decimals| decimals <= 9)?;
        let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if whole.len() + fraction.len() == 0 || whole.len() > 3 || !all_digits(whole) || !all_digits(fraction) {
            return None;
        }
        let digits: u64 = format!("{whole}{fraction}").parse().ok()?;
        (digits > 0 && digits <= 100 * 10u64.pow(decimals)).then_some(Self { digits, decimals })
    }

    fn floor_of(self, count: usize) -> usize {
        let share = u128::from(self.digits) * count as u128 / (100 * 10u128.pow(self.decimals));
        share as usize
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scale = 10u64.pow(self.decimals);
        let (whole, fraction) = (self.digits / scale, self.digits % scale);
        match self.decimals as usize {
            0 => write!(f, "{whole}%"),
            decimals => write!(f, "{whole}.{fraction:0decimals$}%"),
        }
    }
}

/// What can be wrong with a budget.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum BudgetError {
    /// A local budget that is neither a count nor a percentage.
    #[error(
        "`{0}` is not a local budget; give a number of flips such as 28, or a share of the attributes such as 1% (above 0%, at most 100%)"
    )]
    Local(String),
    /// A node that the graph does not have.
    #[error("the budget names node {node}, but the graph has {nodes} nodes, numbered from 0")]
    Node {
        /// The node.
        node: NodeId,
        /// Number of nodes.
        nodes: usize,
    },
    /// An attribute that the graph does not have.
    #[error("the budget protects attribute {attribute}, but the graph has {attributes} attributes, numbered from 0")]
    Attribute {
        /// The attribute.
        attribute: AttributeId,
        /// Number of attributes.
        attributes: usize,
    },
}

/// How much an attacker may change.
///
/// ```
/// use nodeproof::{AttributeId, Budget, Direction, NodeId};
/// let budget = Budget::new(12, "1%".parse()?)
///     .direction(Direction::AddOnly)
///     .protect_attributes([AttributeId(3)])
///     .local_at(NodeId(7), 2);
/// # let _ = budget;
/// # Ok::<(), nodeproof::BudgetError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    global: u32,
    local: LocalBudget,
    #[serde(default)]
    direction: Direction,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    local_at: BTreeMap<NodeId, u32>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    protected_nodes: BTreeSet<NodeId>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    protected_attributes: BTreeSet<AttributeId>,
}

impl Budget {
    /// At most `global` flips in all and `local` at each node.
    pub fn new(global: u32, local: LocalBudget) -> Self {
        Self {
            global,
            local,
            direction: Direction::Both,
            local_at: BTreeMap::new(),
            protected_nodes: BTreeSet::new(),
            protected_attributes: BTreeSet::new(),
        }
    }

    /// Allows at most `global` flips in all, and leaves the rest as it is.
    pub fn with_global(mut self, global: u32) -> Self {
        self.global = global;
        self
    }

    /// Allows only flips in this direction.
    pub fn direction(mut self, direction: Direction) -> Self {
        self.direction = direction;
        self
    }

    /// Allows at most `count` flips at `node`, instead of the local budget of all nodes.
    pub fn local_at(mut self, node: NodeId, count: u32) -> Self {
        self.local_at.insert(node, count);
        self
    }

    /// Allows no flip at these nodes, whatever [`Budget::local_at`] says.
    pub fn protect_nodes(mut self, nodes: impl IntoIterator<Item = NodeId>) -> Self {
        self.protected_nodes.extend(nodes);
        self
    }

    /// Allows no flip of these attributes.
    pub fn protect_attributes(mut self, attributes: impl IntoIterator<Item = AttributeId>) -> Self {
        self.protected_attributes.extend(attributes);
        self
    }

    /// The global budget, Q.
    pub fn global(&self) -> u32 {
        self.global
    }

    /// Which flips are allowed.
    pub fn allowed(&self) -> Direction {
        self.direction
    }

    /// The local budget, q, of nodes without one of their own.
    pub fn local(&self) -> LocalBudget {
        self.local
    }

    /// Nodes with a local budget of their own, see [`Budget::local_at`].
    pub fn own_locals(&self) -> &BTreeMap<NodeId, u32> {
        &self.local_at
    }

    /// Nodes at which no flip is allowed.
    pub fn protected_nodes(&self) -> &BTreeSet<NodeId> {
        &self.protected_nodes
    }

    /// Attributes of which no flip is allowed.
    pub fn protected_attributes(&self) -> &BTreeSet<AttributeId> {
        &self.protected_attributes
    }

    /// Resolves the budget for `graph`.
    ///
    /// # Errors
    /// If it names a node or an attribute that the graph does not have.
    pub fn limits(&self, graph: &Graph) -> Result<Limits, BudgetError> {
        let attributes = graph.attribute_count();
        let mut local = vec![self.local.count(attributes).min(attributes) as u32; graph.nodes()];
        let own = self.local_at.iter().map(|(&node, &count)| (node, count));
        for (node, count) in own.chain(self.protected_nodes.iter().map(|&node| (node, 0))) {
            let place = local.get_mut(node.index()).ok_or(BudgetError::Node { node, nodes: graph.nodes() })?;
            *place = count.min(attributes as u32);
        }
        let mut flippable = vec![true; attributes];
        for &attribute in &self.protected_attributes {
            let place = flippable.get_mut(attribute.index()).ok_or(BudgetError::Attribute { attribute, attributes })?;
            *place = false;
        }
        Ok(Limits {
            global: self.global as usize,
            local,
            additions: self.direction != Direction::DeleteOnly,
            deletions: self.direction != Direction::AddOnly,
            flippable,
        })
    }
}

/// A [`Budget`] resolved for one graph: what every engine asks.
#[derive(Debug, Clone)]
pub struct Limits {
    global: usize,
    local: Vec<u32>,
    additions: bool,
    deletions: bool,
    flippable: Vec<bool>,
}

impl Limits {
    /// Most flips in all, Q.
    #[inline]
    pub fn global(&self) -> usize {
        self.global
    }

    /// Most flips at `node`, q_n; at most the number of attributes.
    #[inline]
    pub fn local(&self, node: NodeId) -> usize {
        self.local[node.index()] as usize
    }

    /// Whether attributes may be turned from 0 to 1.
    #[inline]
    pub fn additions(&self) -> bool {
        self.additions
    }

    /// Whether attributes may be turned from 1 to 0.
    #[inline]
    pub fn deletions(&self) -> bool {
        self.deletions
    }

    /// Whether `attribute` may be flipped at all.
    #[inline]
    pub fn flippable(&self, attribute: AttributeId) -> bool {
        self.flippable[attribute.index()]
    }

    /// Most flips at `nodes` together: the global budget, or less if their local budgets do not add up to it.
    pub fn flips_within(&self, nodes: &[u32]) -> usize {
        let local: usize = nodes.iter().map(|&node| self.local[node as usize] as usize).sum();
        local.min(self.global)
    }

    /// Whether `flip` on its own is within the budget.
    pub fn allows(&self, graph: &Graph, flip: Flip) -> bool {
        let direction = if flip.adds(graph) { self.additions } else { self.deletions };
        direction && self.global > 0 && self.local(flip.node) > 0 && self.flippable(flip.attribute)
    }

    /// Whether the set `flips` is admissible: allowed, no flip twice, within the local and the global budget.
    pub fn admits(&self, graph: &Graph, flips: &[Flip]) -> bool {
        let mut at_node: BTreeMap<NodeId, BTreeSet<AttributeId>> = BTreeMap::new();
        let distinct = flips.iter().all(|flip| at_node.entry(flip.node).or_default().insert(flip.attribute));
        distinct
            && flips.len() <= self.global
            && flips.iter().all(|&flip| self.allows(graph, flip))
            && at_node.iter().all(|(&node, attributes)| attributes.len() <= self.local(node))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_budgets_parse_exactly() {
        let count = |text: &str, attributes| text.parse::<LocalBudget>().unwrap().count(attributes);
        assert_eq!((count("28", 5), count(" 1% ", 2879), count("1%", 3703), count("1%", 99)), (28, 28, 37, 1));
        assert_eq!((count("29%", 100), count("0.5%", 1000), count("100%", 7), count("0.000000001%", 7)), (29, 5, 7, 1));
        for bad in ["", "-1", "1.5", "0%", "100.1%", "%", "1e3", "nan%", "4294967296", "1%%", "0.0000000001%", "+1%"] {
            assert_eq!(bad.parse::<LocalBudget>(), Err(BudgetError::Local(bad.to_owned())), "{bad}");
        }
        for text in ["28", "1%", "0.05%", "100%"] {
            assert_eq!(text.parse::<LocalBudget>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn limits_honour_every_feature() {
        let graph = Graph::new(3, 2, &[], &[(0, 0)]).unwrap();
        let flip = |node, attribute| Flip { node: NodeId(node), attribute: AttributeId(attribute) };
        let limits = Budget::new(2, LocalBudget::Count(1)).local_at(NodeId(1), 2).limits(&graph).unwrap();
        assert!(limits.admits(&graph, &[flip(1, 0), flip(1, 1)]));
        assert!(!limits.admits(&graph, &[flip(0, 0), flip(0, 1)]), "local budget");
        assert!(!limits.admits(&graph, &[flip(0, 0), flip(1, 0), flip(2, 0)]), "global budget");
        assert!(!limits.admits(&graph, &[flip(1, 0), flip(1, 0)]), "the same flip twice");

        let protected = Budget::new(2, LocalBudget::Count(1))
            .local_at(NodeId(1), 2)
            .protect_nodes([NodeId(1)])
            .protect_attributes([AttributeId(1)]);
        let limits = protected.limits(&graph).unwrap();
        assert!(limits.allows(&graph, flip(0, 0)) && !limits.allows(&graph, flip(1, 0)));
        assert!(!limits.allows(&graph, flip(0, 1)));

        let add = Budget::new(1, LocalBudget::Count(1)).direction(Direction::AddOnly).limits(&graph).unwrap();
        assert!(!add.allows(&graph, flip(0, 0)) && add.allows(&graph, flip(0, 1)));
        let delete = Budget::new(1, LocalBudget::Count(1)).direction(Direction::DeleteOnly).limits(&graph).unwrap();
        assert!(delete.allows(&graph, flip(0, 0)) && !delete.allows(&graph, flip(0, 1)));
    }

    #[test]
    fn unknown_ids_are_errors() {
        let graph = Graph::new(1, 1, &[], &[]).unwrap();
        let budget = Budget::new(1, LocalBudget::Count(1));
        assert!(matches!(budget.clone().local_at(NodeId(1), 1).limits(&graph), Err(BudgetError::Node { .. })));
        assert!(matches!(budget.clone().protect_nodes([NodeId(1)]).limits(&graph), Err(BudgetError::Node { .. })));
        let protected = budget.protect_attributes([AttributeId(1)]);
        assert!(matches!(protected.limits(&graph), Err(BudgetError::Attribute { .. })));
    }
}

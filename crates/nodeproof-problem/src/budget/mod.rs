//! What an attacker may change: how many flips in total, how many at one node, and which.
//!
//! A set of flips is *admissible* when it has at most Q flips in total (the global budget), at most q_n at each node n (the
//! local budget), and only flips that are allowed (Definition 5 of `docs/maths.md`).

mod edges;
mod limits;
mod local;
mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::edge::Edge;
use crate::graph::Graph;
use crate::ids::{AttributeId, NodeId};

pub use edges::{EdgeBudget, EdgeLimits};
pub use limits::Limits;
pub use local::{LocalBudget, Percent};

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

impl Direction {
    /// All directions.
    pub const ALL: [Self; 3] = [Self::Both, Self::AddOnly, Self::DeleteOnly];

    /// `both`, `add-only` or `delete-only`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Both => "both",
            Self::AddOnly => "add-only",
            Self::DeleteOnly => "delete-only",
        }
    }
}

impl FromStr for Direction {
    type Err = BudgetError;

    fn from_str(text: &str) -> Result<Self, BudgetError> {
        let found = Self::ALL.into_iter().find(|direction| direction.name() == text);
        found.ok_or_else(|| BudgetError::Direction(text.to_owned()))
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
    /// A global budget larger than what there is to flip.
    #[error(
        "a global budget of {global} is more than the {entries} attribute entries of the graph ({nodes} nodes × \
         {attributes} attributes); give a number of flips that an attacker could afford, such as 12"
    )]
    GlobalTooLarge {
        /// The global budget.
        global: u32,
        /// Attribute entries of the graph.
        entries: u128,
        /// Number of nodes.
        nodes: usize,
        /// Number of attributes.
        attributes: usize,
    },
    /// A local budget larger than the number of attributes.
    #[error(
        "a local budget of {local} is more than the {attributes} attributes that a node of the graph has; give at most \
         {attributes}, or a share such as 1%"
    )]
    LocalTooLarge {
        /// The local budget.
        local: LocalBudget,
        /// Number of attributes.
        attributes: usize,
    },
    /// A local budget of one node that is larger than the number of attributes.
    #[error("node {node} cannot have a local budget of {count} flips; give 0 to {attributes}")]
    OwnLocalTooLarge {
        /// The node.
        node: NodeId,
        /// Its local budget.
        count: u32,
        /// Number of attributes.
        attributes: usize,
    },
    /// A direction that does not exist.
    #[error("`{0}` is not a direction of flips; choose both, add-only or delete-only")]
    Direction(String),
    /// A node that the graph does not have.
    #[error("the budget names node {node}, but the graph has {nodes} nodes, numbered from 0")]
    Node {
        /// The node.
        node: NodeId,
        /// Number of nodes.
        nodes: usize,
    },
    /// An edge that the graph does not have.
    #[error("the budget protects the edge {edge}, which the graph does not have")]
    Edge {
        /// The edge.
        edge: Edge,
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
/// use nodeproof_problem::{AttributeId, Budget, Direction, NodeId};
/// let budget = Budget::new(12, "1%".parse()?)
///     .direction(Direction::AddOnly)
///     .protect_attributes([AttributeId(3)])
///     .local_at(NodeId(7), 2);
/// # let _ = budget;
/// # Ok::<(), nodeproof_problem::BudgetError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    edges: Option<EdgeBudget>,
}

impl Budget {
    /// At most `global` flips in total and `local` at each node.
    pub fn new(global: u32, local: LocalBudget) -> Self {
        Self {
            global,
            local,
            direction: Direction::Both,
            local_at: BTreeMap::new(),
            protected_nodes: BTreeSet::new(),
            protected_attributes: BTreeSet::new(),
            edges: None,
        }
    }

    /// Allows at most `global` flips in total, and leaves the rest as it is.
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

    /// Allows edges to be deleted, beside flips of attributes.
    pub fn delete_edges(mut self, edges: EdgeBudget) -> Self {
        self.edges = Some(edges);
        self
    }

    /// Allows no flip at these nodes, whatever [`Budget::local_at`] says, and no deletion of their edges.
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

    /// The global budget that searches for radii vary: that of deletions where edges may be deleted, and Q otherwise.
    pub fn varied(&self) -> u32 {
        self.edges.as_ref().map_or(self.global, EdgeBudget::global)
    }

    /// The same with another one of these.
    pub fn with_varied(mut self, global: u32) -> Self {
        match &mut self.edges {
            Some(edges) => *edges = edges.clone().with_global(global),
            None => self.global = global,
        }
        self
    }

    /// Whether another budget is the same but for [`Budget::varied`].
    pub fn is_same_but_for_varied(&self, other: &Self) -> bool {
        self.clone().with_varied(0) == other.clone().with_varied(0)
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

    /// The budget of flips on some of the nodes, in ascending order, which are numbered by their places.
    pub fn of_part(&self, nodes: &[u32]) -> Self {
        let place = |node: &NodeId| nodes.binary_search(&node.0).ok().map(|place| NodeId(place as u32));
        Self {
            local_at: self.local_at.iter().filter_map(|(node, &count)| Some((place(node)?, count))).collect(),
            protected_nodes: self.protected_nodes.iter().filter_map(place).collect(),
            edges: None,
            ..self.clone()
        }
    }

    /// Which edges may be deleted, if any may.
    pub fn edges(&self) -> Option<&EdgeBudget> {
        self.edges.as_ref()
    }

    /// Checks that the budget can have been meant for `graph`: no more flips than there are, in total and at each node, and
    /// only nodes and attributes that exist.
    ///
    /// # Errors
    /// If not.
    pub fn validate(&self, graph: &Graph) -> Result<(), BudgetError> {
        let (nodes, attributes, entries) = (graph.nodes(), graph.attribute_count(), graph.entries());
        if u128::from(self.global) > entries {
            return Err(BudgetError::GlobalTooLarge { global: self.global, entries, nodes, attributes });
        }
        if self.local.count(attributes) > attributes {
            return Err(BudgetError::LocalTooLarge { local: self.local, attributes });
        }
        if let Some((&node, &count)) = self.local_at.iter().find(|&(_, &count)| count as usize > attributes) {
            return Err(BudgetError::OwnLocalTooLarge { node, count, attributes });
        }
        self.limits(graph).map(drop)
    }

    /// The budget with global budgets of no more than there is to flip, and to delete, in `graph`: for searches up to a largest budget.
    pub fn capped(mut self, graph: &Graph) -> Self {
        self.global = u32::try_from(graph.entries()).map_or(self.global, |entries| self.global.min(entries));
        let edges = u32::try_from(graph.edges()).unwrap_or(u32::MAX);
        let varied = self.varied();
        if self.edges.is_some() { self.with_varied(varied.min(edges)) } else { self }
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
            let limit = local.get_mut(node.index()).ok_or(BudgetError::Node { node, nodes: graph.nodes() })?;
            *limit = count.min(attributes as u32);
        }
        let mut flippable = vec![true; attributes];
        for &attribute in &self.protected_attributes {
            let may_flip =
                flippable.get_mut(attribute.index()).ok_or(BudgetError::Attribute { attribute, attributes })?;
            *may_flip = false;
        }
        let edges = self.edges.as_ref().map(|edges| edges.limits(graph, &self.protected_nodes)).transpose()?;
        Ok(Limits {
            global: self.global as usize,
            local,
            additions: self.direction != Direction::DeleteOnly,
            deletions: self.direction != Direction::AddOnly,
            flippable,
            edges,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flip::Flip;

    #[test]
    fn limits_honour_every_feature() {
        let graph = Graph::new(3, 2, &[], &[(0, 0)]).unwrap();
        let flip = |node, attribute| Flip::of(&graph, NodeId(node), AttributeId(attribute));
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

    #[test]
    fn budgets_beyond_the_graph_are_refused() {
        let graph = Graph::new(3, 200, &[], &[]).unwrap();
        let budget = |global, local: &str| Budget::new(global, local.parse().unwrap());
        assert_eq!(budget(600, "1%").validate(&graph), Ok(()));
        assert!(budget(601, "1%").validate(&graph).unwrap_err().to_string().contains("600 attribute entries"));
        assert!(budget(1, "201").validate(&graph).unwrap_err().to_string().contains("at most 200"));
        let own = budget(1, "1").local_at(NodeId(2), 201);
        assert!(own.validate(&graph).unwrap_err().to_string().contains("node 2 cannot have"));
        assert!(matches!(budget(1, "1").protect_nodes([NodeId(3)]).validate(&graph), Err(BudgetError::Node { .. })));
        assert_eq!(budget(900, "1").capped(&graph).global(), 600);
    }

    #[test]
    fn directions_have_names() {
        for direction in Direction::ALL {
            assert_eq!(direction.name().parse(), Ok(direction));
        }
        assert!("sideways".parse::<Direction>().unwrap_err().to_string().contains("add-only"));
    }
}

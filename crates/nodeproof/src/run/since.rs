//! Which certificates an edit of the graph leaves as they are (Lemma 55 of `docs/maths.md`).
//!
//! A certificate is about what its target sees: rows of propagations, rows of attributes, local budgets. Where all of these are the same on
//! two graphs, bit for bit, so is the certificate, if numbers that engines take from the network as a whole are the same as well. What
//! differs is found by comparing the matrices themselves, and carried from the attributes to the targets, layer by layer.

use super::asked::Asked;
use super::{Certifier, CertifyError};
use crate::budget::{Budget, Limits};
use crate::graph::Graph;
use crate::ids::NodeId;
use crate::model::Model;
use crate::network::Network;
use crate::prepare::flips_anywhere;
use crate::relax::Slopes;
use crate::results::EarlierCertificates;
use crate::rounding::{cannot_overflow, floor_through_layers};
use crate::search::AttributeTables;
use crate::slice::{Kept, RouteTables, level_of};
use crate::sparse::SparseMatrix;

/// What certificates of an earlier run are about; all other settings are those of the certifier that they are compared with.
#[derive(Debug, Clone, Copy)]
pub struct Before<'b> {
    /// The graph as it was.
    pub graph: &'b Graph,
    /// The model as it was.
    pub model: &'b Model,
    /// The budget as it was.
    pub budget: &'b Budget,
}

/// The nodes whose certificates may be others than before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Touched {
    /// All of them.
    All(Everything),
    /// Those that are marked, one entry a node.
    Nodes(Vec<bool>),
}

/// What makes every certificate another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Everything {
    /// The model differs.
    Model,
    /// The budget differs for all nodes, or slopes are given.
    Budget,
    /// The number of attributes, what networks read of them, or ranges or largest values of real ones.
    Attributes,
    /// Bounds on rounding errors and on what slices leave out, which follow from the largest sums of weights in the whole graph, and from how many
    /// flips there can be.
    Rounding,
}

impl Everything {
    /// What it is, to be said after “because”.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Model => "the model is another one",
            Self::Budget => "the budget is another one for all nodes",
            Self::Attributes => "the attributes are others, or their ranges",
            Self::Rounding => {
                "bounds on rounding errors, or on what is left out, changed with the largest sums of the graph"
            }
        }
    }
}

impl Touched {
    /// Whether the certificate of `node` may be another one.
    pub fn contains(&self, node: NodeId) -> bool {
        match self {
            Self::All(_) => true,
            Self::Nodes(marked) => marked.get(node.index()).copied().unwrap_or(true),
        }
    }

    /// For each of `nodes` the place of its earlier certificate, if it has one and that is still the same.
    pub fn places(&self, earlier: &EarlierCertificates, nodes: &[NodeId]) -> Vec<Option<usize>> {
        let place = |&node: &NodeId| if self.contains(node) { None } else { earlier.find(node) };
        nodes.iter().map(place).collect()
    }

    /// Those of either.
    fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Nodes(mut marked), Self::Nodes(others)) => {
                marked.iter_mut().zip(others).for_each(|(marked, other)| *marked |= other);
                Self::Nodes(marked)
            }
            (all @ Self::All(_), _) | (_, all @ Self::All(_)) => all,
        }
    }
}

impl Certifier<'_> {
    /// The nodes whose certificates may be others than those of a certifier with the same settings, but for what is said of it. All others
    /// have, but for times, the same certificates, as long as no limit of time or memory kept either from an answer.
    ///
    /// ```
    /// use nodeproof::{Before, Budget, Certifier, Graph, Matrix, Model, NodeId, Propagation};
    /// let graph = |ones: &[(u32, u32)]| Graph::new(4, 2, &[(0, 1), (1, 2), (2, 3)], ones);
    /// let (before, after) = (graph(&[(0, 1)])?, graph(&[(0, 0)])?);
    /// let layer = || (Matrix::from_values(2, 2, vec![1.0, -1.0, 0.5, 2.0]), vec![0.0, 0.0]);
    /// let model = Model::gcn(vec![layer(), layer()], Propagation::SymmetricGcn)?;
    /// let budget = Budget::new(1, 1.into());
    /// let certifier = Certifier::new(&after, &model)?.budget(budget.clone());
    /// let touched = certifier.touched_since(Before { graph: &before, model: &model, budget: &budget })?;
    /// assert!(touched.contains(NodeId(2)) && !touched.contains(NodeId(3)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the model does not fit one of the graphs, or a budget its graph.
    pub fn touched_since(&self, before: Before) -> Result<Touched, CertifyError> {
        self.check_no_edges("certifying again what an edit touches", &["since"])?;
        let Before { graph, model, budget } = before;
        if !std::ptr::eq(model, self.network.model()) && model.fingerprint() != self.network.model().fingerprint() {
            return Ok(Touched::All(Everything::Model));
        }
        if self.slopes != Slopes::Default || !differs_at_nodes_only(budget, &self.settings.budget) {
            return Ok(Touched::All(Everything::Budget));
        }
        if !reads_alike(graph, self.network.graph()) {
            return Ok(Touched::All(Everything::Attributes));
        }
        let earlier = Certifier {
            network: self.network_on(graph)?,
            settings: self.settings.clone(),
            slopes: Slopes::Default,
            classes: None,
        };
        let limits = [self.settings.budget.limits(self.network.graph())?, budget.limits(graph)?];
        let touched = touched_by_labels(self.network.graph(), graph);
        if !self.settings.asks_for_more() {
            return Ok(touched.or(touched_in_network(self, &earlier, &limits)));
        }
        self.touched_of_more(&earlier, &limits, touched)
    }

    /// The same where margins must exceed more than 0, in addition to those that are `touched`.
    fn touched_of_more(
        &self,
        earlier: &Self,
        limits: &[Limits; 2],
        mut touched: Touched,
    ) -> Result<Touched, CertifyError> {
        let sides = [self, earlier];
        let asked = |side: usize| Asked::new(&sides[side].network, &self.settings, &limits[side]);
        let exceeded = [asked(0)?, asked(1)?];
        touched = touched.or(Touched::Nodes(exceeded[0].differences(&exceeded[1])));
        let without_rounding = [0, 1].map(|side| exceeded[side].without_rounding(&self.settings));
        for asked in [&exceeded, &without_rounding] {
            let model = |side: usize| asked[side].model(self.network.model());
            let models = [model(0)?, model(1)?];
            let of = |side: usize| sides[side].of_network(&models[side], &asked[side]);
            touched = touched.or(touched_in_network(&of(0)?, &of(1)?, limits));
        }
        Ok(touched)
    }

    /// The network on another graph; propagations that do not depend on more than the edges are made once for graphs with the same ones.
    fn network_on<'n>(&'n self, graph: &'n Graph) -> Result<Network<'n>, CertifyError> {
        if graph.adjacency() == self.network.graph().adjacency() {
            return Ok(Network::with_matrices(graph, self.network.model(), self.network.matrices()));
        }
        Ok(Network::new(graph, self.network.model())?)
    }
}

/// Whether two budgets are the same but for the local budgets of single nodes.
fn differs_at_nodes_only(a: &Budget, b: &Budget) -> bool {
    let of_all = |budget: &Budget| (budget.global(), budget.local(), budget.allowed());
    of_all(a) == of_all(b) && a.protected_attributes() == b.protected_attributes()
}

/// Whether what holds for all rows of attributes is the same in two graphs: their number, kind, ranges and largest values.
fn reads_alike(a: &Graph, b: &Graph) -> bool {
    let bits = |graph: &Graph| -> Option<Vec<[u64; 4]>> {
        let values = graph.values()?;
        let of = |d: u32| {
            let (d, (low, high)) = (crate::ids::AttributeId(d), values.range(crate::ids::AttributeId(d)));
            [low, high, values.largest(d), values.widest(d)].map(f64::to_bits)
        };
        Some((0..graph.attribute_count() as u32).map(of).collect())
    };
    a.attribute_count() == b.attribute_count() && a.kind() == b.kind() && bits(a) == bits(b)
}

/// The nodes that have another label than before, or were not there.
fn touched_by_labels(now: &Graph, before: &Graph) -> Touched {
    let differs = |node: NodeId| node.index() >= before.nodes() || now.label(node) != before.label(node);
    Touched::Nodes(now.node_ids().map(differs).collect())
}

/// The targets that see something in one network that is not so in the other, given the limits of both.
fn touched_in_network(now: &Certifier, before: &Certifier, limits: &[Limits; 2]) -> Touched {
    let (now, before) = (&now.network, &before.network);
    let of_all = |network: &Network, limits: &Limits| {
        (
            floor_through_layers(network).to_bits(),
            cannot_overflow(network, limits),
            flips_anywhere(network.graph(), limits),
        )
    };
    if of_all(now, &limits[0]) != of_all(before, &limits[1]) {
        return Touched::All(Everything::Rounding);
    }
    let rows = touched_rows(now, before);
    let mut inputs = touched_inputs((now.graph(), &limits[0]), (before.graph(), &limits[1]));
    if rows.iter().any(Option::is_some) && AttributeTables::new(now, now.has_one_hidden_layer()).pair_norms.is_none() {
        let [now, before] = [now, before].map(|network| RouteTables::new(network, Kept::default()));
        match now.zip(before).map(|(now, before)| now.differences(&before)) {
            Some(None) => return Touched::All(Everything::Rounding),
            Some(Some(differ)) => inputs.iter_mut().zip(differ).for_each(|(touched, differs)| *touched |= differs),
            None => {}
        }
    }
    let mut levels = vec![inputs];
    for layer in now.layers() {
        let terms: Vec<_> = layer.terms().iter().map(|term| (level_of(term.source()), term.propagation())).collect();
        let is_touched = |m: usize| {
            terms.iter().any(|&(level, propagation)| {
                let sees =
                    |level: usize| now.matrices()[propagation].row(m).0.iter().any(|&n| levels[level][n as usize]);
                rows[propagation].as_ref().is_some_and(|rows| rows[m]) || level.is_some_and(sees)
            })
        };
        let touched = (0..now.graph().nodes()).map(is_touched).collect();
        levels.push(touched);
    }
    Touched::Nodes(levels.pop().unwrap_or_default())
}

/// For each propagation the rows that are not the same, bit for bit; `None` where all are.
fn touched_rows(now: &Network, before: &Network) -> Vec<Option<Vec<bool>>> {
    let of = |(now, before): (&SparseMatrix, &SparseMatrix)| {
        let differs = |m: usize| m >= before.rows() || !same_row(now.row(m), before.row(m));
        (!std::ptr::eq(now, before)).then(|| (0..now.rows()).map(differs).collect())
    };
    now.matrices().iter().zip(before.matrices()).map(of).collect()
}

fn same_row(a: (&[u32], &[f64]), b: (&[u32], &[f64])) -> bool {
    a.0 == b.0 && same_bits(a.1, b.1)
}

fn same_bits(a: &[f64], b: &[f64]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits())
}

/// The nodes whose attributes or local budgets are not the same.
fn touched_inputs((now, limits): (&Graph, &Limits), (before, earlier): (&Graph, &Limits)) -> Vec<bool> {
    let same_values = |node: NodeId| match (now.values(), before.values()) {
        (Some(now), Some(before)) => same_bits(now.row(node), before.row(node)),
        (now, before) => now.is_none() && before.is_none(),
    };
    let is_same = |node: NodeId| {
        now.attributes().row(node.index()) == before.attributes().row(node.index())
            && same_values(node)
            && limits.local(node) == earlier.local(node)
    };
    now.node_ids().map(|node| node.index() >= before.nodes() || !is_same(node)).collect()
}

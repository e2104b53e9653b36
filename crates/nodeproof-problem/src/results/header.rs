//! What a file of results is about.

use std::ops::Range;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::SinceFields;
use super::lines::VERSION;
use crate::attributes::{AttributeKind, binarised_in_words};
use crate::budget::Budget;
use crate::certificate::Witness;
use crate::flip::Flip;
use crate::graph::{Graph, Part, Split};
use crate::ids::{ClassId, NodeId};
use crate::model::Model;
use crate::proof::Proof;
use crate::settings::{Arithmetic, CertifySettings, Engine, TargetClass, asked_in_words};

/// Which graph a file is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct GraphHeader {
    /// [`Graph::fingerprint`].
    pub fingerprint: String,
    /// Number of nodes.
    pub nodes: usize,
    /// Number of edges.
    pub edges: usize,
    /// Number of attributes.
    pub attributes: usize,
    /// What networks read of them.
    #[serde(default, skip_serializing_if = "AttributeKind::is_bits")]
    pub kind: AttributeKind,
    /// How many of their values were neither 0 nor 1 before they were counted as one of these ([`Graph::binarised`]).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub binarised: usize,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl GraphHeader {
    /// Names `graph`.
    pub fn new(graph: &Graph) -> Self {
        let (nodes, edges, attributes) = (graph.nodes(), graph.edges(), graph.attribute_count());
        let (kind, binarised) = (graph.kind(), graph.binarised());
        Self { fingerprint: graph.fingerprint(), nodes, edges, attributes, kind, binarised }
    }

    /// Names `graph` by a fingerprint that is computed here, whatever the file of the graph says.
    pub fn computed(graph: &Graph) -> Self {
        Self { fingerprint: graph.computed_fingerprint(), ..Self::new(graph) }
    }

    /// Whether two headers are about one graph, however that was read.
    pub fn is_same_graph(&self, other: &Self) -> bool {
        *self == Self { binarised: self.binarised, ..other.clone() }
    }
}

/// Where a split comes from, and its sizes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SplitFields {
    /// The file it was read from, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The seed it was drawn with, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Number of nodes in the train part.
    pub train: usize,
    /// Number of nodes in the validation part.
    pub validation: usize,
    /// Number of nodes in the test part.
    pub test: usize,
}

impl SplitFields {
    /// Describes `split`, read from `file` or drawn.
    pub fn new(split: &Split, file: Option<String>) -> Self {
        let size = |part| split.part(part).len();
        let (train, validation, test) = (size(Part::Train), size(Part::Validation), size(Part::Test));
        Self { file, seed: split.seed, train, validation, test }
    }
}

/// Which model a file is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ModelHeader {
    /// [`Model::fingerprint`].
    pub fingerprint: String,
    /// Number of layers; 2 with one hidden layer.
    pub layers: usize,
    /// Name of the propagation, or `several`.
    pub propagation: String,
    /// Number of classes.
    pub classes: usize,
}

impl ModelHeader {
    /// Names `model`.
    pub fn new(model: &Model) -> Self {
        Self {
            fingerprint: model.fingerprint(),
            layers: model.layers().len(),
            propagation: model.propagation_name().to_owned(),
            classes: model.classes(),
        }
    }
}

/// A budget as headers and metadata have it: with the local budget also as a count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BudgetFields {
    #[serde(flatten)]
    budget: Budget,
    local_count: usize,
}

impl BudgetFields {
    /// The fields of `budget`, for a graph with so many attributes.
    pub fn new(budget: &Budget, attributes: usize) -> Self {
        Self { budget: budget.clone(), local_count: budget.local().count(attributes) }
    }

    /// The fields as JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// One of several files that have the nodes of a run between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ShardFields {
    /// Which one, from 1 on.
    pub number: usize,
    /// How many there are.
    pub of: usize,
    /// Nodes of all of them together.
    pub nodes: usize,
}

impl ShardFields {
    /// The shard with a number of so many, of a run with so many nodes; `None` if there is no such shard.
    pub fn new(number: usize, of: usize, nodes: usize) -> Option<Self> {
        (1..=of).contains(&number).then_some(Self { number, of, nodes })
    }

    /// The places of its nodes among all. Shards follow each other, and have as many nodes as the others or one more.
    pub fn range(self) -> Range<usize> {
        let end = |number: usize| (self.nodes as u128 * number as u128 / self.of as u128) as usize;
        end(self.number - 1)..end(self.number)
    }
}

/// What certificates and radii are about: graph, model, budget, and how they were found.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Header {
    /// The strongest engine that was asked for.
    pub engine: Engine,
    /// Whose margins were certified.
    pub target_class: TargetClass,
    /// What the margins of robust nodes exceed.
    pub margin: f64,
    /// The arithmetic in which they do.
    pub arithmetic: Arithmetic,
    /// The graph.
    pub graph: GraphHeader,
    /// The model.
    pub model: ModelHeader,
    /// The budget; of radii, with the largest global budget that was tried.
    pub budget: Budget,
    /// Of radii: whether budgets were scanned upwards, so that only `robust_up_to` is known.
    pub scan: bool,
    /// Nodes that were asked for.
    pub nodes: usize,
    /// Which part of a run they are of, if not of all.
    pub shard: Option<ShardFields>,
    /// The earlier run that some certificates were carried over from, if there is one.
    pub since: Option<SinceFields>,
    /// Whether certificates come with proofs.
    pub proofs: bool,
    /// Whether the time of each node is kept.
    pub timings: bool,
}

impl Header {
    /// What results of `nodes` nodes under `settings` are about.
    pub fn new(graph: &Graph, model: &Model, settings: &CertifySettings, nodes: usize) -> Self {
        Self {
            engine: settings.engine,
            target_class: settings.target_class,
            margin: settings.margin,
            arithmetic: settings.arithmetic,
            graph: GraphHeader::new(graph),
            model: ModelHeader::new(model),
            budget: settings.budget.clone(),
            scan: false,
            nodes,
            shard: None,
            since: None,
            proofs: settings.proofs,
            timings: false,
        }
    }

    /// The budget in words, and what its flips are of.
    pub fn budget_in_words(&self) -> String {
        let GraphHeader { attributes, kind, binarised, .. } = self.graph;
        let asked = asked_in_words(self.margin, self.arithmetic);
        self.budget.in_words(attributes) + kind.beside_budget() + &binarised_in_words(binarised) + &asked
    }

    /// The same, of a scan.
    pub fn scan(mut self, scan: bool) -> Self {
        self.scan = scan;
        self
    }

    /// The same, of a shard.
    pub fn shard(mut self, shard: Option<ShardFields>) -> Self {
        self.shard = shard;
        self
    }

    /// The same, of certificates of which some were carried over from an earlier run.
    pub fn since(mut self, since: Option<SinceFields>) -> Self {
        self.since = since;
        self
    }

    /// The same, with the time of each node or without.
    pub fn timings(mut self, timings: bool) -> Self {
        self.timings = timings;
        self
    }

    /// The first line of a file in this format.
    pub(super) fn line(&self, format: &'static str) -> impl Serialize + '_ {
        #[derive(Serialize)]
        struct Line<'a> {
            format: &'static str,
            version: u64,
            nodeproof: &'static str,
            engine: Engine,
            #[serde(skip_serializing_if = "std::ops::Not::not")]
            scan: bool,
            class: TargetClass,
            #[serde(skip_serializing_if = "is_no_margin")]
            margin: f64,
            #[serde(skip_serializing_if = "Arithmetic::is_exact")]
            arithmetic: Arithmetic,
            graph: &'a GraphHeader,
            model: &'a ModelHeader,
            budget: BudgetFields,
            nodes: usize,
            #[serde(skip_serializing_if = "Option::is_none")]
            shard: Option<ShardFields>,
            #[serde(skip_serializing_if = "Option::is_none")]
            since: Option<&'a SinceFields>,
            #[serde(skip_serializing_if = "std::ops::Not::not")]
            proofs: bool,
            #[serde(skip_serializing_if = "std::ops::Not::not")]
            timings: bool,
        }
        Line {
            format,
            version: VERSION,
            nodeproof: env!("CARGO_PKG_VERSION"),
            engine: self.engine,
            scan: self.scan,
            class: self.target_class,
            margin: self.margin,
            arithmetic: self.arithmetic,
            graph: &self.graph,
            model: &self.model,
            budget: BudgetFields::new(&self.budget, self.graph.attributes),
            nodes: self.nodes,
            shard: self.shard,
            since: self.since.as_ref(),
            proofs: self.proofs,
            timings: self.timings,
        }
    }

    /// Reads the first line of a file.
    pub(super) fn read(mut value: Value) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Line {
            engine: Engine,
            #[serde(default)]
            scan: bool,
            class: TargetClass,
            #[serde(default)]
            margin: f64,
            #[serde(default)]
            arithmetic: Arithmetic,
            graph: GraphHeader,
            model: ModelHeader,
            budget: Budget,
            nodes: usize,
            #[serde(default)]
            shard: Option<ShardFields>,
            #[serde(default)]
            since: Option<SinceFields>,
            #[serde(default)]
            proofs: bool,
            #[serde(default)]
            timings: bool,
        }
        // Radii of version 1 have the global budget beside the others.
        let most = value["max_budget"].clone();
        let mut local_count = None;
        if let Some(budget) = value["budget"].as_object_mut() {
            local_count = budget.remove("local_count");
            if !most.is_null() {
                budget.insert("global".to_owned(), most);
            }
        }
        let line: Line = serde_json::from_value(value).map_err(|error| error.to_string())?;
        let Line {
            engine,
            scan,
            class,
            margin,
            arithmetic,
            graph,
            model,
            budget,
            nodes,
            shard,
            since,
            proofs,
            timings,
        } = line;
        let is_shard = |shard: &ShardFields| {
            ShardFields::new(shard.number, shard.of, shard.nodes).is_some_and(|shard| shard.range().len() == nodes)
        };
        if shard.is_some_and(|shard| !is_shard(&shard)) {
            return Err("its shard is none, or has another number of nodes".to_owned());
        }
        if since.as_ref().is_some_and(|since| since.carried > nodes) {
            return Err("more of its nodes are carried over than there are".to_owned());
        }
        if model.classes > MOST_CLASSES {
            return Err(format!("no model has {} classes", model.classes));
        }
        if !(margin >= 0.0 && margin.is_finite()) {
            return Err(format!("its margin is {margin:?}, and not a number from 0 on"));
        }
        if local_count.is_some_and(|count| count != budget.local().count(graph.attributes)) {
            return Err("its local budget as a count is not the one that it gives".to_owned());
        }
        let flips = graph.nodes as u128 * graph.attributes as u128;
        if u128::from(budget.global()) > flips.max(SMALL_BUDGET) {
            return Err("its largest budget exceeds the number of flips that there are".to_owned());
        }
        Ok(Self {
            engine,
            target_class: class,
            margin,
            arithmetic,
            graph,
            model,
            budget,
            scan,
            nodes,
            shard,
            since,
            proofs,
            timings,
        })
    }

    pub(super) fn check_node(&self, node: NodeId) -> Result<(), String> {
        below("node", node.0, self.graph.nodes)
    }

    pub(super) fn check_class(&self, class: ClassId) -> Result<(), String> {
        below("class", class.0, self.model.classes)
    }

    /// Checks that there may be such a flip.
    pub(super) fn check_flip(&self, flip: &Flip) -> Result<(), String> {
        self.check_node(flip.node)?;
        if !self.graph.kind.is_values() && flip.to != 0.0 && flip.to != 1.0 {
            return Err(format!("there is no value {}", flip.to));
        }
        below("attribute", flip.attribute.0, self.graph.attributes)
    }

    /// Checks that there may be the flips and units of a proof.
    pub(super) fn check_proof(&self, proof: &Proof) -> Result<(), String> {
        proof.slopes.iter().try_for_each(|of| {
            self.check_node(of.node)?;
            below("layer", of.layer, self.model.layers)
        })?;
        proof.branches.iter().try_for_each(|branch| {
            self.check_flip(&branch.flip)?;
            self.check_proof(&branch.proof)
        })
    }

    /// Checks a witness against the class that is certified, where that is known.
    pub(super) fn check_witness(&self, witness: &Witness, certified: Option<ClassId>) -> Result<(), String> {
        self.check_class(witness.class)?;
        if certified == Some(witness.class) {
            return Err("its witness leads to the class that is certified".to_owned());
        }
        witness.flips.iter().try_for_each(|flip| self.check_flip(flip))?;
        if witness.flips.len() > self.budget.global() as usize {
            return Err(format!("its witness has {} flips, more than the budget", witness.flips.len()));
        }
        witness.edges.iter().flat_map(|edge| edge.ends()).try_for_each(|node| self.check_node(node))?;
        if witness.edges.len() > self.budget.edges().map_or(0, |edges| edges.global() as usize) {
            return Err(format!("its witness deletes {}, more than the budget", witness.edges.len()));
        }
        if witness.margin.is_nan() || witness.margin > self.margin {
            return Err(format!("the margin under its witness is larger than {}", self.margin));
        }
        Ok(())
    }
}

/// A largest budget that needs no reason: curves up to it are small.
const SMALL_BUDGET: u128 = 1_000_000;
/// Most classes that a file may speak of.
const MOST_CLASSES: usize = 100_000;

fn is_no_margin(margin: &f64) -> bool {
    *margin == 0.0
}

fn below(what: &str, number: u32, count: usize) -> Result<(), String> {
    if (number as usize) < count { Ok(()) } else { Err(format!("there is no {what} {number}")) }
}

//! Deletions of edges: whether predictions hold when an attacker unlinks nodes (section *Edges* of `docs/maths.md`).
//!
//! A deletion changes the propagations themselves: an entry goes, and the degrees at both of its ends change the weights of all other
//! entries there. Attributes stay as they are.

mod any_depth;
#[cfg(test)]
mod checked;
mod copies;
#[cfg(test)]
mod enumeration;
mod evaluate;
mod losses;
mod mixing;
mod one_hidden;
mod reach;
mod search;
mod subproblem;

#[cfg(test)]
mod tests;

use self::any_depth::AnyDepth;
pub(crate) use self::copies::Copies;
pub(crate) use self::losses::Losses;
use self::mixing::Share;
use self::one_hidden::OneHidden;
pub(crate) use self::search::Decision;
use self::search::Search;
use crate::budget::EdgeLimits;
use crate::certificate::Bound;
use crate::edge::Edge;
use crate::engines::patience::Patience;
use crate::ids::{ClassId, NodeId};
use crate::model::Weight;
use crate::network::Network;

/// What makes a network one of which deletions cannot be decided.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EdgesError {
    /// A propagation that does not follow from degrees.
    #[error(
        "the propagation {0} cannot be computed anew where edges are deleted; networks of symmetric-gcn, row-normalised, row-mean, \
         adjacency and sums of one of these with the identity can be certified"
    )]
    Propagation(String),
    /// A network of more layers than rounding errors are bounded for.
    #[error(
        "deletions of edges are decided in networks of at most {most} layers; this one has {layers}. For flips of attributes, also \
         beside one deletion, there is no such limit"
    )]
    Layers {
        /// The layers of the network.
        layers: usize,
        /// The most there may be.
        most: usize,
    },
    /// Flips beside more than one deletion.
    #[error("flips of attributes beside more than one deletion are not decided yet; allow one deletion, or no flips")]
    Several,
    /// Something that is not done with deletions.
    #[error("{}", not_yet(.what, .options, str::to_owned))]
    NotYet {
        /// What it is.
        what: &'static str,
        /// The options that ask for it.
        options: &'static [&'static str],
    },
    /// A graph with edges in one direction only.
    #[error(
        "the graph has edges in one direction only, and deletions are of edges in both; read it as an undirected one"
    )]
    Directed,
}

impl EdgesError {
    /// The error, in which options are called as `name` says: `margin` is `--margin` where it is typed so.
    pub fn in_words(&self, name: impl Fn(&str) -> String) -> String {
        match self {
            Self::NotYet { what, options } => not_yet(what, options, name),
            other => other.to_string(),
        }
    }
}

fn not_yet(what: &str, options: &[&str], name: impl Fn(&str) -> String) -> String {
    let names: Vec<String> = options.iter().copied().chain(["delete_edges"]).map(name).collect();
    format!("{what} cannot be had with deletions of edges yet; leave out {}", names.join(" or "))
}

/// Products of a few numbers of each layer that are larger than this might overflow where they are squared for the length of a vector.
const TAME: f64 = 1e16;

/// Numbers are bounded by [`TAME`] for so many layers.
const MOST_LAYERS: usize = 4;

/// Which deletions are asked about, and of which network.
#[derive(Debug)]
pub(crate) struct Problem<'p> {
    network: &'p Network<'p>,
    limits: &'p EdgeLimits,
    /// One for each propagation of the model.
    shares: Vec<Share>,
    /// Units of the widest layer, or entries of the longest row of attributes.
    widest: usize,
    /// Whether no number is so large that products of those of all layers could overflow, or make what underflows matter.
    is_tame: bool,
}

impl<'p> Problem<'p> {
    /// The deletions that these limits admit.
    ///
    /// # Errors
    /// If the network is none that can be certified.
    pub(crate) fn new(network: &'p Network<'p>, limits: &'p EdgeLimits) -> Result<Self, EdgesError> {
        let (graph, model) = (network.graph(), network.model());
        if !graph.adjacency().is_symmetric() {
            return Err(EdgesError::Directed);
        }
        let share =
            |propagation| Share::of(propagation).ok_or_else(|| EdgesError::Propagation(format!("{propagation}")));
        let shares = model.propagations().iter().map(share).collect::<Result<Vec<_>, _>>()?;
        let layers = network.layers();
        let rows = graph.node_ids().map(|node| graph.row_length(node));
        let widest = rows.chain(layers.iter().map(|layer| layer.units())).max().unwrap_or(0);
        let terms = || layers.iter().flat_map(|layer| layer.terms());
        let of_weights = terms().flat_map(|term| match term.weight() {
            Weight::Dense(dense) => dense.values(),
            Weight::Scalar(factor) => std::slice::from_ref(factor),
        });
        let of_values = graph.values().map_or(&[][..], |values| values.entries().values());
        let of_layers = layers.iter().flat_map(|layer| layer.bias()).copied();
        let of_slopes = layers.iter().map(|layer| layer.activation().slope());
        let of_shares = shares.iter().flat_map(|share| [share.identity, share.mixed]);
        let is_tame = |x: f64| x.abs() <= TAME;
        let numbers = of_weights.chain(of_values).copied().chain(of_layers).chain(of_slopes).chain(of_shares);
        let is_tame = layers.len() <= MOST_LAYERS && { numbers }.all(is_tame);
        Ok(Self { network, limits, shares, widest, is_tame })
    }

    /// Whether the network is one whose layers are few enough for [`Problem::decide`].
    ///
    /// # Errors
    /// If they are not.
    pub(crate) fn check_depth(&self) -> Result<(), EdgesError> {
        let layers = self.network.layers().len();
        if layers <= MOST_LAYERS { Ok(()) } else { Err(EdgesError::Layers { layers, most: MOST_LAYERS }) }
    }

    /// The verdict on a target, about class y.
    pub(crate) fn decide(&self, target: NodeId, y: ClassId, patience: Patience) -> Decision {
        match OneHidden::new(self, target) {
            Some(relaxation) => Search::new(self, relaxation, target, y).decide(patience),
            None => Search::new(self, AnyDepth::new(self, target), target, y).decide(patience),
        }
    }

    /// Lower bounds of the margins of class y over the others, as far as they go without branching.
    pub(crate) fn margins(&self, target: NodeId, y: ClassId) -> Vec<Option<Bound>> {
        match OneHidden::new(self, target) {
            Some(relaxation) => Search::new(self, relaxation, target, y).margins(),
            None => Search::new(self, AnyDepth::new(self, target), target, y).margins(),
        }
    }

    /// The edges whose deletion alone is admissible and may matter to a target, the nearest first.
    pub(crate) fn single_deletions(&self, target: NodeId) -> Vec<Edge> {
        reach::edges(self, target)
    }

    /// At most how far, relatively to the magnitudes of all that is added up, rounding takes a number that is computed through all layers
    /// from rows of at most so many entries, twice over: propagations are rounded as well.
    fn relative_error(&self, longest: usize) -> f64 {
        let layers = self.network.layers();
        let terms = layers.iter().map(|layer| layer.terms().len()).max().unwrap_or(0);
        let operations = longest + self.widest + terms + 64;
        2.0 * (layers.len() + 1) as f64 * operations as f64 * f64::EPSILON
    }
}

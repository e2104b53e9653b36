//! How a graph on file is read, and what that changes in it.

use serde::{Deserialize, Serialize};

use crate::attributes::AttributeKind;
use crate::sparse::Pattern;

/// How a graph on file becomes a [`Graph`](super::Graph).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct GraphOptions {
    /// Count every attribute value > 0 as 1 instead of refusing values other than 0 and 1.
    pub binarise: bool,
    /// Let networks read the bits divided by the number of ones in their row ([`AttributeKind::NormalisedRows`]).
    #[serde(default)]
    pub normalise_rows: bool,
    /// Read attributes as real values ([`AttributeKind::RealValues`]).
    #[serde(default)]
    pub real_values: bool,
    /// Keep only the largest connected component; nodes are then renumbered.
    pub largest_component: bool,
    /// Keep self-loops that are on file (the symmetric GCN propagation then sees a 2 on their diagonal).
    pub keep_self_loops: bool,
    /// Keep the direction of edges: row m of the adjacency lists the nodes that m aggregates.
    pub directed: bool,
}

impl GraphOptions {
    /// The defaults: strict about attributes, undirected, no self-loops, all components.
    pub fn new() -> Self {
        Self::default()
    }

    /// What networks read of the attributes.
    pub fn kind(self) -> AttributeKind {
        match (self.real_values, self.normalise_rows) {
            (true, _) => AttributeKind::RealValues,
            (false, true) => AttributeKind::NormalisedRows,
            (false, false) => AttributeKind::Bits,
        }
    }

    /// The adjacency of these edges, which are gone through twice.
    pub(super) fn adjacency<I: Iterator<Item = (u32, u32)>>(self, nodes: usize, edges: impl Fn() -> I) -> Pattern {
        Pattern::from_entries(nodes, nodes, || {
            let kept = edges().filter(|(a, b)| a != b || self.keep_self_loops);
            kept.flat_map(|(a, b)| [Some((a, b)), (!self.directed).then_some((b, a))].into_iter().flatten())
        })
    }

    /// Sets [`GraphOptions::binarise`].
    pub fn binarise(mut self, yes: bool) -> Self {
        self.binarise = yes;
        self
    }

    /// Sets [`GraphOptions::normalise_rows`].
    pub fn normalise_rows(mut self, yes: bool) -> Self {
        self.normalise_rows = yes;
        self
    }

    /// Sets [`GraphOptions::real_values`].
    pub fn real_values(mut self, yes: bool) -> Self {
        self.real_values = yes;
        self
    }

    /// Sets [`GraphOptions::largest_component`].
    pub fn largest_component(mut self, yes: bool) -> Self {
        self.largest_component = yes;
        self
    }

    /// Sets [`GraphOptions::keep_self_loops`].
    pub fn keep_self_loops(mut self, yes: bool) -> Self {
        self.keep_self_loops = yes;
        self
    }

    /// Sets [`GraphOptions::directed`].
    pub fn directed(mut self, yes: bool) -> Self {
        self.directed = yes;
        self
    }
}

/// What was changed while a graph was read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Cleaning {
    /// Entries of the adjacency on file, explicit zeros not counted.
    pub edges_on_file: usize,
    /// Self-loops on file that were removed.
    pub self_loops_removed: usize,
    /// Entries of the adjacency that were there twice.
    pub duplicate_edges: usize,
    /// Edges on file in one direction only, whose other direction was added.
    pub directed_edges: usize,
    /// Edges with a weight other than 1, which was ignored.
    pub weights_ignored: usize,
    /// Attribute values other than 0 and 1 that were thresholded at > 0.
    pub attributes_binarised: usize,
    /// Explicit zeros among the attributes.
    pub attribute_zeros: usize,
    /// Attribute entries that were there twice.
    pub duplicate_attributes: usize,
    /// Nodes outside the largest component that were dropped.
    pub nodes_dropped: usize,
    /// Members of the file that are pickled or unknown and were not read.
    pub members_skipped: Vec<String>,
}

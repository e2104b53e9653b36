//! What a target sees of a graph, on the graph as it is and on many without one edge each, in one network (Lemma 69 of `docs/maths.md`).

use std::collections::{BTreeSet, HashMap};

use crate::edge::Edge;
use crate::graph::Graph;
use crate::ids::NodeId;
use crate::model::{Layer, Model, Propagation, Source, Term};
use crate::network::Network;
use crate::slice::{Region, level_of};
use crate::sparse::SparseMatrix;

/// Copies are made until they have so many rows, which bounds the memory that they need.
const MOST_ROWS: u32 = 1 << 14;

/// A network whose nodes have the attributes of the nodes that a target sees, and whose propagations are given. Each layer numbers its rows by
/// itself: first those of the graph as it is, then, edge by edge, copies of the rows that are others without the edge. All of them read the
/// same attributes.
#[derive(Debug)]
pub(crate) struct Copies {
    pub(crate) graph: Graph,
    pub(crate) model: Model,
    /// The nodes whose attributes they are, by their number.
    pub(crate) nodes: Vec<u32>,
    /// The edges that matter to the target; the copy without the first is node 1, and node 0 is the target as it is.
    pub(crate) edges: Vec<Edge>,
    /// Of each layer: the nodes of its rows on the graph as it is, their number, which is the first of a copy, and for each copy the number of
    /// the row that it is in place of.
    pub(super) originals: Vec<Vec<u32>>,
    pub(super) first_copies: Vec<u32>,
    pub(super) origins: Vec<Vec<u32>>,
}

impl Copies {
    /// The copies of a target without one of the first of these edges, which are taken from the iterator; `None` where an entry would not be
    /// finite.
    pub(crate) fn new(network: &Network, target: NodeId, edges: &mut impl Iterator<Item = Edge>) -> Option<Self> {
        let region = network.region(&[target]);
        let mut making = Making::new(network, &region);
        let (mut kept, before) = (Vec::new(), making.rows());
        while making.rows() - before < MOST_ROWS
            && let Some(edge) = edges.next()
        {
            if making.copy_without(edge)? {
                kept.push(edge);
            }
        }
        let nodes = region.level(0).nodes().to_vec();
        let size = making.sizes.iter().copied().max().unwrap_or(0);
        let padding = std::iter::repeat_n(target.0, (size as usize).saturating_sub(nodes.len()));
        let rows: Vec<u32> = nodes.iter().copied().chain(padding).collect();
        let (graph, model) = (network.graph().attributes_of(&rows), making.model(size));
        let levels = 1..=network.layers().len();
        let originals: Vec<Vec<u32>> = levels.map(|level| region.level(level).nodes().to_vec()).collect();
        let first_copies = originals.iter().map(|nodes| nodes.len() as u32).collect();
        Some(Self { graph, model, nodes, edges: kept, originals, first_copies, origins: making.origins })
    }

    /// The propagation of a term.
    pub(super) fn matrix(&self, term: &Term) -> &SparseMatrix {
        let custom = self.model.propagations()[term.propagation()].custom();
        custom.unwrap_or_else(|| unreachable!("all propagations of copies are given"))
    }
}

/// The copies so far.
struct Making<'m> {
    network: &'m Network<'m>,
    region: &'m Region,
    /// How many nodes each level has; the last is the most ones that a row adds up.
    sizes: Vec<u32>,
    /// Of each level the copies without the edge at hand.
    copies: Vec<HashMap<u32, u32>>,
    /// Of each layer, for each copy the row that it is in place of.
    origins: Vec<Vec<u32>>,
    /// Of each term of each layer: rows, columns, values.
    entries: Vec<Vec<Vec<(u32, u32, f64)>>>,
}

impl<'m> Making<'m> {
    /// The rows of the graph as it is.
    fn new(network: &'m Network<'m>, region: &'m Region) -> Self {
        let layers = network.layers();
        let levels = 0..=layers.len();
        let sizes = levels.map(|level| region.level(level).nodes().len() as u32).chain([0]).collect();
        let copies = vec![HashMap::new(); layers.len() + 1];
        let entries = layers.iter().map(|layer| vec![Vec::new(); layer.terms().len()]).collect();
        let origins = vec![Vec::new(); layers.len()];
        let mut making = Self { network, region, sizes, copies, origins, entries };
        for (i, layer) in layers.iter().enumerate() {
            for (row, &node) in region.level(i + 1).nodes().iter().enumerate() {
                for k in 0..layer.terms().len() {
                    making.add_row((i, k), row as u32, network.matrix(i, k).row(node as usize));
                }
            }
        }
        making
    }

    /// How many rows there are in all layers.
    fn rows(&self) -> u32 {
        self.sizes[1..=self.copies.len() - 1].iter().sum()
    }

    /// Adds a row of a term, whose columns are nodes of the graph.
    fn add_row(&mut self, (i, k): (usize, usize), row: u32, (nodes, values): (&[u32], &[f64])) {
        let level = level_of(self.network.layers()[i].terms()[k].source());
        let column = |(place, node): (usize, &u32)| match level {
            // The constant 1 is the same everywhere.
            None => place as u32,
            Some(level) => {
                let copy = self.copies[level].get(node).copied();
                copy.unwrap_or_else(|| self.region.level(level).place(*node) as u32)
            }
        };
        let columns: Vec<u32> = nodes.iter().enumerate().map(column).collect();
        if level.is_none() {
            let most = self.copies.len();
            self.sizes[most] = self.sizes[most].max(nodes.len() as u32);
        }
        self.entries[i][k].extend(columns.into_iter().zip(values).map(|(column, &value)| (row, column, value)));
    }

    /// Copies the rows that are others without an edge; whether that of the target is one. `None` where an entry would not be finite.
    fn copy_without(&mut self, edge: Edge) -> Option<bool> {
        self.copies.iter_mut().for_each(HashMap::clear);
        for i in 0..self.network.layers().len() {
            for node in self.candidates(edge, i) {
                self.copy_row(edge, i, node)?;
            }
        }
        Some(!self.copies[self.network.layers().len()].is_empty())
    }

    /// The nodes of a layer whose rows may be others.
    fn candidates(&self, edge: Edge, i: usize) -> BTreeSet<u32> {
        let adjacency = self.network.graph().adjacency();
        let around = |node: u32| adjacency.row(node as usize).iter().copied().chain([node]);
        let ends = edge.ends().map(|end| end.0);
        let mut nodes = BTreeSet::from(ends);
        for term in self.network.layers()[i].terms() {
            if self.network.model().propagations()[term.propagation()].reads_degrees() {
                nodes.extend(ends.into_iter().flat_map(around));
            }
            if let Source::Layer(source) = term.source() {
                nodes.extend(self.copies[source + 1].keys().copied().flat_map(around));
            }
        }
        nodes.retain(|&node| self.region.level(i + 1).contains(node));
        nodes
    }

    /// Copies a row of a layer if it is another without an edge.
    fn copy_row(&mut self, edge: Edge, i: usize, node: u32) -> Option<()> {
        let (network, terms) = (self.network, self.network.layers()[i].terms());
        let row = |term: &Term| {
            let propagation = &network.model().propagations()[term.propagation()];
            propagation.row_without(network.graph(), &[edge], NodeId(node))
        };
        let rows = terms.iter().map(row).collect::<Option<Vec<_>>>()?;
        let mut each = rows.iter().zip(terms).enumerate();
        if each.any(|(k, (row, term))| self.is_other(network.matrix(i, k), node, row, term)) {
            let copy = self.sizes[i + 1];
            self.sizes[i + 1] += 1;
            for (k, (nodes, values)) in rows.iter().enumerate() {
                self.add_row((i, k), copy, (nodes, values));
            }
            self.copies[i + 1].insert(node, copy);
            self.origins[i].push(self.region.level(i + 1).place(node) as u32);
        }
        Some(())
    }

    /// Whether a row of a term has other entries than it had, or reads a copy.
    fn is_other(&self, matrix: &SparseMatrix, node: u32, (nodes, values): &(Vec<u32>, Vec<f64>), term: &Term) -> bool {
        let (columns, entries) = matrix.row(node as usize);
        let before = columns.iter().zip(entries).filter(|(_, entry)| **entry != 0.0);
        let reads_copy = |level: usize| nodes.iter().any(|node| self.copies[level].contains_key(node));
        !before.eq(nodes.iter().zip(values)) || level_of(term.source()).is_some_and(reads_copy)
    }

    /// The layers with a propagation for each term, on so many nodes.
    fn model(&self, nodes: u32) -> Model {
        let of = self.network.model();
        let (mut propagations, mut layers) = (Vec::new(), Vec::new());
        for (layer, entries) in of.layers().iter().zip(&self.entries) {
            let terms = layer.terms().iter().zip(entries).map(|(term, entries)| {
                let matrix = SparseMatrix::from_triplets(nodes as usize, nodes as usize, entries);
                propagations.push(Propagation::Custom(matrix));
                Term::new(term.source(), propagations.len() - 1, term.weight().clone())
            });
            layers.push(Layer::new(terms.collect(), layer.bias().to_vec(), layer.activation()));
        }
        let model = Model::new(of.attributes(), propagations, layers);
        model.unwrap_or_else(|error| unreachable!("the layers of a model: {error}")).with_kind(of.kind())
    }
}

//! Attributed graphs: who is connected to whom, and which attributes each node has.

mod bundled;
mod error;
mod files;
mod flat;
mod flipped;
mod npz;
mod options;
mod split;
mod statistics;
mod synthetic;
mod unlinked;

use std::sync::OnceLock;

use sha2::{Digest, Sha256};

use crate::attributes::{AttributeKind, binarised_in_words};
use crate::budget::Budget;
use crate::bytes;
use crate::fingerprint::hex;
use crate::ids::{AttributeId, ClassId, NodeId};
use crate::sparse::Pattern;
use crate::values::Values;

pub use error::GraphError;
pub use flat::FlatError;
pub use options::{Cleaning, GraphOptions};
pub use split::{Part, Split, SplitError, SplitSize};
pub use statistics::{GraphStatistics, Spread};
pub use synthetic::Synthetic;

/// An attributed graph. Read-only once made.
#[derive(Debug, Clone, PartialEq)]
pub struct Graph {
    adjacency: Pattern,
    /// The bits; none where attributes are real values.
    attributes: Pattern,
    values: Option<Values>,
    kind: AttributeKind,
    binarised: usize,
    labels: Option<Vec<Option<ClassId>>>,
    classes: usize,
    names: Names,
    fingerprint: Fingerprint,
}

/// The fingerprint of a graph, once it is known. Graphs are equal whether it is or not.
#[derive(Debug, Clone, Default)]
struct Fingerprint {
    known: OnceLock<String>,
    /// Whether a file says so, and nobody has computed it.
    is_claimed: bool,
}

impl Fingerprint {
    /// What a file says.
    fn claimed(fingerprint: String) -> Self {
        Self { known: OnceLock::from(fingerprint), is_claimed: true }
    }
}

impl PartialEq for Fingerprint {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// The largest number of a class on file.
const LARGEST_LABEL: i64 = u16::MAX as i64;

/// Optional names of nodes, attributes and classes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Names {
    /// One name a node.
    pub nodes: Option<Vec<String>>,
    /// One name an attribute.
    pub attributes: Option<Vec<String>>,
    /// One name a class.
    pub classes: Option<Vec<String>>,
}

impl Graph {
    /// Makes an undirected graph without self-loops from `nodes` × `attributes` sizes, `edges` in any order and
    /// direction, and `(node, attribute)` pairs that are 1.
    ///
    /// # Errors
    /// If a size is 0 or an id is out of range.
    ///
    /// # Example
    /// ```
    /// use nodeproof_problem::Graph;
    /// let graph = Graph::new(3, 2, &[(0, 1), (1, 2)], &[(0, 0), (2, 1)])?;
    /// assert_eq!(graph.adjacency().row(1), [0, 2]);
    /// # Ok::<(), nodeproof_problem::GraphError>(())
    /// ```
    pub fn new(
        nodes: usize,
        attributes: usize,
        edges: &[(u32, u32)],
        attribute_pairs: &[(u32, u32)],
    ) -> Result<Self, GraphError> {
        Self::with_options(nodes, attributes, edges, attribute_pairs, GraphOptions::new())
    }

    /// Like [`Graph::new`], with edges treated as `options` say ([`GraphOptions::binarise`] has nothing to do here).
    ///
    /// # Errors
    /// If a size is 0 or an id is out of range.
    pub fn with_options(
        nodes: usize,
        attributes: usize,
        edges: &[(u32, u32)],
        attribute_pairs: &[(u32, u32)],
        options: GraphOptions,
    ) -> Result<Self, GraphError> {
        check_size("nodes", nodes)?;
        check_size("attributes", attributes)?;
        if nodes == 0 || attributes == 0 {
            return Err(GraphError::Empty { nodes, attributes });
        }
        check_pairs("adjacency", edges, nodes, nodes)?;
        check_pairs("attributes", attribute_pairs, nodes, attributes)?;
        let attributes = Pattern::from_pairs(nodes, attributes, attribute_pairs);
        let adjacency = options.adjacency(nodes, || edges.iter().copied());
        let graph = Self::of_parts(adjacency, attributes).of_kind(options.kind())?;
        Ok(if options.largest_component { graph.largest_component() } else { graph })
    }

    /// Adds labels, `None` where a node has none. The number of classes is that of the class names, or one more than the
    /// largest label.
    ///
    /// # Errors
    /// If there is not one entry a node, or there are fewer class names than classes.
    pub fn with_labels(mut self, labels: Vec<Option<ClassId>>) -> Result<Self, GraphError> {
        check_length("the list of labels", labels.len(), self.nodes(), "nodes")?;
        let labelled = labels.iter().flatten().map(|label| label.index() + 1).max().unwrap_or(0);
        let named = self.names.classes.as_ref().map(Vec::len);
        if let Some(named) = named.filter(|&named| named < labelled) {
            check_length("the list of class names", named, labelled, "classes")?;
        }
        self.classes = named.unwrap_or(labelled);
        self.labels = Some(labels);
        self.fingerprint = Fingerprint::default();
        Ok(self)
    }

    /// Adds names; white space around them is trimmed, and zeros, which arrays of strings are filled up with.
    ///
    /// # Errors
    /// If a list of names has the wrong length.
    pub fn with_names(mut self, names: Names) -> Result<Self, GraphError> {
        let trim = |names: Option<Vec<String>>| {
            let is_padding = |c: char| c.is_whitespace() || c == '\0';
            let trimmed = |name: String| match name.trim_matches(is_padding) {
                trimmed if trimmed.len() == name.len() => name,
                trimmed => trimmed.to_owned(),
            };
            names.map(|names| names.into_iter().map(trimmed).collect::<Vec<_>>())
        };
        let names =
            Names { nodes: trim(names.nodes), attributes: trim(names.attributes), classes: trim(names.classes) };
        if let Some(nodes) = &names.nodes {
            check_length("the list of node names", nodes.len(), self.nodes(), "nodes")?;
        }
        if let Some(attributes) = &names.attributes {
            check_length("the list of attribute names", attributes.len(), self.attribute_count(), "attributes")?;
        }
        if let Some(classes) = &names.classes {
            if classes.len() < self.classes {
                check_length("the list of class names", classes.len(), self.classes, "classes")?;
            }
            self.classes = classes.len();
        }
        self.names = names;
        Ok(self)
    }

    /// The same graph, of whose bits networks read this: if real values, then 0 and 1, which an attacker sets to anything between.
    ///
    /// # Panics
    /// If attributes are real values, which have no bits, or are to be and there are too many.
    pub fn with_kind(self, kind: AttributeKind) -> Self {
        self.of_kind(kind).unwrap_or_else(|error| panic!("{error}"))
    }

    fn of_kind(mut self, kind: AttributeKind) -> Result<Self, GraphError> {
        assert!(self.values.is_none() || kind.is_values(), "real values have no bits");
        if kind.is_values() && self.values.is_none() {
            let values = Values::of_bits(&self.attributes)?;
            return self.with_values(values);
        }
        (self.kind, self.fingerprint) = (kind, Fingerprint::default());
        Ok(self)
    }

    /// The same graph, of whose attributes so many values were neither 0 nor 1 and counted as 1 where they were above 0
    /// ([`GraphOptions::binarise`]). Verdicts are then about a network that reads 0 and 1, and say so.
    pub fn with_binarised(mut self, values: usize) -> Self {
        self.binarised = values;
        self
    }

    /// How many values of attributes were neither 0 nor 1 before they were counted as one of these.
    pub fn binarised(&self) -> usize {
        self.binarised
    }

    /// What to say of the attributes beside a budget; nothing for plain bits.
    pub fn beside_budget(&self) -> String {
        self.kind.beside_budget().to_owned() + &binarised_in_words(self.binarised)
    }

    /// A budget in words, and what its flips are of.
    pub fn budget_in_words(&self, budget: &Budget) -> String {
        budget.in_words(self.attribute_count()) + &self.beside_budget()
    }

    /// The same graph with these real values as attributes.
    ///
    /// ```
    /// use nodeproof_problem::{AttributeId, Graph, Matrix, NodeId, Values};
    /// let values = Values::new(Matrix::from_values(2, 3, vec![0.5, 0.0, 1.5, -2.0, 0.0, 1.0]))?;
    /// let graph = Graph::new(2, 3, &[(0, 1)], &[])?.with_values(values)?;
    /// assert_eq!(graph.value(NodeId(1), AttributeId(0)), -2.0);
    /// # Ok::<(), nodeproof_problem::GraphError>(())
    /// ```
    ///
    /// # Errors
    /// If they are not of as many nodes and attributes.
    pub fn with_values(mut self, values: Values) -> Result<Self, GraphError> {
        let (nodes, attributes) = (self.nodes(), self.attribute_count());
        check_length("the attribute matrix", values.entries().rows(), nodes, "nodes")?;
        check_length("the attribute matrix", values.entries().columns(), attributes, "attributes")?;
        self.attributes = Pattern::from_pairs(nodes, attributes, &[]);
        (self.values, self.kind) = (Some(values), AttributeKind::RealValues);
        self.fingerprint = Fingerprint::default();
        Ok(self)
    }

    /// The same graph with other ranges of its real values, see [`Values::with_ranges`].
    ///
    /// # Errors
    /// If attributes are bits, or the ranges do not fit.
    pub fn with_ranges(mut self, ranges: Vec<(f64, f64)>) -> Result<Self, GraphError> {
        let values = self.values.take().ok_or_else(|| GraphError::RangesOfBits(self.kind.in_words()))?;
        self.values = Some(values.with_ranges(ranges)?);
        self.fingerprint = Fingerprint::default();
        Ok(self)
    }

    /// Nodes with these attributes, and neither edges nor labels nor names.
    pub fn of_attributes(attributes: Pattern) -> Self {
        Self::of_parts(Pattern::from_pairs(attributes.rows(), attributes.rows(), &[]), attributes)
    }

    /// Some of the nodes with their attributes, in this order, and neither edges nor labels nor names.
    ///
    /// # Panics
    /// If one does not exist.
    pub fn attributes_of(&self, nodes: &[u32]) -> Self {
        let values = self.values.as_ref().map(|values| values.of_nodes(nodes));
        let of_bits = Self::of_attributes(self.attributes.of_rows(nodes));
        Self { values, kind: self.kind, binarised: self.binarised, ..of_bits }
    }

    /// Nodes with these edges and bits, and neither labels nor names.
    fn of_parts(adjacency: Pattern, attributes: Pattern) -> Self {
        Self {
            adjacency,
            attributes,
            values: None,
            kind: AttributeKind::Bits,
            binarised: 0,
            labels: None,
            classes: 0,
            names: Names::default(),
            fingerprint: Fingerprint::default(),
        }
    }

    /// Number of nodes, N.
    pub fn nodes(&self) -> usize {
        self.adjacency.rows()
    }

    /// Number of attributes, D.
    pub fn attribute_count(&self) -> usize {
        self.attributes.columns()
    }

    /// Number of attribute entries, N · D: flips that there are.
    pub fn entries(&self) -> u128 {
        self.nodes() as u128 * self.attribute_count() as u128
    }

    /// Number of classes, K, as far as labels and class names say; 0 if there are neither.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// Number of edges: an undirected one counts once, a self-loop once.
    pub fn edges(&self) -> usize {
        let loops = (0..self.nodes()).filter(|&n| self.adjacency.contains(n, n as u32)).count();
        let is_directed = |&(a, b): &(u32, u32)| !self.adjacency.contains(b as usize, a);
        let directed =
            if self.adjacency.is_symmetric() { 0 } else { self.adjacency.iter().filter(is_directed).count() };
        (self.adjacency.entries() - loops - directed) / 2 + loops + directed
    }

    /// The adjacency, N × N.
    pub fn adjacency(&self) -> &Pattern {
        &self.adjacency
    }

    /// What networks read of the attributes.
    pub fn kind(&self) -> AttributeKind {
        self.kind
    }

    /// The bits of the attributes, N × D; none of them is 1 where attributes are real values.
    pub fn attributes(&self) -> &Pattern {
        &self.attributes
    }

    /// The attributes, if they are real values.
    pub fn values(&self) -> Option<&Values> {
        self.values.as_ref()
    }

    /// An entry of the attributes: a bit, before any division, or a value.
    #[inline]
    pub fn value(&self, node: NodeId, attribute: AttributeId) -> f64 {
        match &self.values {
            None => f64::from(u8::from(self.attributes.contains(node.index(), attribute.0))),
            Some(values) => values.get(node, attribute),
        }
    }

    /// The attributes of a node that are not 0, with their [`Graph::value`].
    pub fn entries_of(&self, node: NodeId) -> impl Iterator<Item = (AttributeId, f64)> + '_ {
        let bits = self.attributes.row(node.index()).iter().map(|&attribute| (AttributeId(attribute), 1.0));
        let values =
            self.values.iter().flat_map(move |values| (0..).map(AttributeId).zip(values.row(node).iter().copied()));
        bits.chain(values.filter(|&(_, value)| value != 0.0))
    }

    /// How many attributes of a node are not 0.
    pub fn row_length(&self, node: NodeId) -> usize {
        match &self.values {
            None => self.attributes.row(node.index()).len(),
            Some(values) => values.row_length(node),
        }
    }

    /// Whether the graph has labels at all.
    pub fn has_labels(&self) -> bool {
        self.labels.is_some()
    }

    /// The label of `node`, if it has one.
    pub fn label(&self, node: NodeId) -> Option<ClassId> {
        self.labels.as_ref().and_then(|labels| labels[node.index()])
    }

    /// Names of nodes, attributes and classes.
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// The name of `node`, or `node 17`.
    pub fn node_name(&self, node: NodeId) -> String {
        name_or(&self.names.nodes, node.index(), "node")
    }

    /// The name of `attribute`, or `attribute 17`.
    pub fn attribute_name(&self, attribute: AttributeId) -> String {
        name_or(&self.names.attributes, attribute.index(), "attribute")
    }

    /// The name of `class`, or `class 3`.
    pub fn class_name(&self, class: ClassId) -> String {
        name_or(&self.names.classes, class.index(), "class")
    }

    /// All nodes in order.
    pub fn node_ids(&self) -> impl ExactSizeIterator<Item = NodeId> + use<> {
        (0..self.nodes() as u32).map(NodeId)
    }

    /// SHA-256 of sizes, edges, attributes with their kind and ranges, and labels as they are here, after cleaning: two graphs with the same
    /// fingerprint have the same certificates. It is computed once; that of a graph read from a `.graph` file is what the file says.
    pub fn fingerprint(&self) -> String {
        self.fingerprint.known.get_or_init(|| self.hashed(true)).clone()
    }

    /// The same, computed here, whatever a file says.
    pub fn computed_fingerprint(&self) -> String {
        if self.fingerprint.is_claimed { self.hashed(true) } else { self.fingerprint() }
    }

    /// Computes the fingerprint, if a file says what it is.
    ///
    /// # Errors
    /// If it is another one.
    pub fn verify_fingerprint(&self) -> Result<(), GraphError> {
        let (claimed, computed) = (self.fingerprint(), self.computed_fingerprint());
        if claimed == computed { Ok(()) } else { Err(GraphError::Fingerprint { claimed, computed }) }
    }

    /// The same but for the ranges of real values, which say nothing of what a network is trained on.
    pub fn fingerprint_without_ranges(&self) -> String {
        if self.values.is_some() { self.hashed(false) } else { self.fingerprint() }
    }

    fn hashed(&self, with_ranges: bool) -> String {
        let mut hash = Sha256::new();
        hash.update(b"nodeproof graph 1\n");
        if !self.kind.is_bits() {
            hash.update(self.kind.name());
        }
        for pattern in [&self.adjacency, &self.attributes] {
            hash.update((pattern.rows() as u64).to_le_bytes());
            hash.update((pattern.columns() as u64).to_le_bytes());
            for row in 0..pattern.rows() {
                hash.update((pattern.row(row).len() as u64).to_le_bytes());
                hash.update(bytes::of(pattern.row(row)));
            }
        }
        if let Some(values) = &self.values {
            values.add_to(&mut hash, with_ranges);
        }
        for label in self.labels.iter().flatten() {
            hash.update(label.map_or(u32::MAX, |class| class.0).to_le_bytes());
        }
        hex(&hash.finalize())
    }

    /// SHA-256 of the edges alone, the same for every graph with the same nodes and edges.
    pub fn edges_fingerprint(&self) -> String {
        let mut hash = Sha256::new();
        hash.update(b"nodeproof edges 1\n");
        hash.update((self.nodes() as u64).to_le_bytes());
        for (from, to) in self.adjacency.iter() {
            hash.update(from.to_le_bytes());
            hash.update(to.to_le_bytes());
        }
        hex(&hash.finalize())
    }

    /// Whether it has a self-loop, or an edge in one direction only: what [`Graph::read`] leaves out or adds by default.
    pub(crate) fn has_unusual_edges(&self) -> bool {
        (0..self.nodes()).any(|node| self.adjacency.contains(node, node as u32)) || !self.adjacency.is_symmetric()
    }

    /// The component of each node and the number of nodes in each component, direction of edges ignored.
    pub fn components(&self) -> (Vec<u32>, Vec<usize>) {
        let reverse: Vec<_> = self.adjacency.iter().map(|(a, b)| (b, a)).collect();
        let reverse = Pattern::from_pairs(self.nodes(), self.nodes(), &reverse);
        let mut component = vec![u32::MAX; self.nodes()];
        let mut sizes = Vec::new();
        let mut stack = Vec::new();
        for start in 0..self.nodes() {
            if component[start] != u32::MAX {
                continue;
            }
            let id = sizes.len() as u32;
            component[start] = id;
            stack.push(start);
            let mut size = 0;
            while let Some(node) = stack.pop() {
                size += 1;
                for &next in self.adjacency.row(node).iter().chain(reverse.row(node)) {
                    if component[next as usize] == u32::MAX {
                        component[next as usize] = id;
                        stack.push(next as usize);
                    }
                }
            }
            sizes.push(size);
        }
        (component, sizes)
    }

    /// The largest connected component (the first of several), its nodes renumbered in their old order.
    pub fn largest_component(&self) -> Self {
        let (component, sizes) = self.components();
        let largest = (0..sizes.len()).rev().max_by_key(|&id| sizes[id]).unwrap_or(0) as u32;
        let kept: Vec<u32> = (0..self.nodes() as u32).filter(|&node| component[node as usize] == largest).collect();
        let mut renumbered = vec![0u32; self.nodes()];
        for (new, &old) in (0..).zip(&kept) {
            renumbered[old as usize] = new;
        }
        let edges: Vec<_> = self
            .adjacency
            .iter()
            .filter(|&(a, _)| component[a as usize] == largest)
            .map(|(a, b)| (renumbered[a as usize], renumbered[b as usize]))
            .collect();
        let pairs: Vec<_> = self
            .attributes
            .iter()
            .filter(|&(node, _)| component[node as usize] == largest)
            .map(|(node, attribute)| (renumbered[node as usize], attribute))
            .collect();
        Self {
            adjacency: Pattern::from_pairs(kept.len(), kept.len(), &edges),
            attributes: Pattern::from_pairs(kept.len(), self.attribute_count(), &pairs),
            values: self.values.as_ref().map(|values| values.of_nodes(&kept)),
            kind: self.kind,
            binarised: self.binarised,
            labels: self.labels.as_ref().map(|labels| kept.iter().map(|&node| labels[node as usize]).collect()),
            classes: self.classes,
            names: Names {
                nodes: self.names.nodes.as_ref().map(|names| kept.iter().map(|&n| names[n as usize].clone()).collect()),
                ..self.names.clone()
            },
            fingerprint: Fingerprint::default(),
        }
    }
}

fn name_or(names: &Option<Vec<String>>, index: usize, what: &str) -> String {
    match names.as_ref().and_then(|names| names.get(index)) {
        Some(name) if !name.is_empty() => name.clone(),
        _ => format!("{what} {index}"),
    }
}

fn check_size(what: &'static str, count: usize) -> Result<(), GraphError> {
    if count >= u32::MAX as usize { Err(GraphError::TooLarge { what, count }) } else { Ok(()) }
}

fn check_length(what: &'static str, found: usize, expected: usize, unit: &'static str) -> Result<(), GraphError> {
    if found == expected { Ok(()) } else { Err(GraphError::Mismatch { what, found, expected, unit }) }
}

fn check_pairs(matrix: &'static str, pairs: &[(u32, u32)], rows: usize, columns: usize) -> Result<(), GraphError> {
    for &(row, column) in pairs {
        if row as usize >= rows {
            return Err(GraphError::NoSuchRow { matrix, row: row as usize, rows });
        }
        if column as usize >= columns {
            return Err(GraphError::OutOfRange { matrix, row: row as usize, column: column.into(), columns });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::Matrix;

    #[test]
    fn edges_are_symmetrised_and_cleaned() {
        let graph = Graph::new(4, 1, &[(0, 1), (1, 0), (2, 2), (1, 2), (1, 2)], &[]).unwrap();
        assert_eq!(graph.adjacency().row(1), [0, 2]);
        assert_eq!(graph.adjacency().row(2), [1]);
        assert_eq!(graph.edges(), 2);
        let kept =
            Graph::with_options(4, 1, &[(0, 1), (2, 2)], &[], GraphOptions::new().keep_self_loops(true)).unwrap();
        assert_eq!(kept.adjacency().row(2), [2]);
        assert_eq!(kept.edges(), 2);
        let directed = Graph::with_options(2, 1, &[(0, 1)], &[], GraphOptions::new().directed(true)).unwrap();
        assert_eq!((directed.adjacency().row(0), directed.adjacency().row(1)), (&[1u32][..], &[][..]));
        assert_eq!(directed.edges(), 1);
    }

    #[test]
    fn largest_component_keeps_labels_and_names_in_step() {
        let graph = Graph::new(5, 2, &[(0, 1), (2, 3), (3, 4)], &[(3, 1), (0, 0)])
            .unwrap()
            .with_labels((0..5).map(|n| Some(ClassId(n % 2))).collect())
            .unwrap()
            .with_names(Names { nodes: Some("a b c d e".split(' ').map(str::to_owned).collect()), ..Names::default() })
            .unwrap()
            .largest_component();
        assert_eq!(graph.nodes(), 3);
        assert_eq!(graph.adjacency().row(1), [0, 2]);
        assert_eq!(graph.attributes().row(1), [1]);
        assert_eq!(graph.label(NodeId(1)), Some(ClassId(1)));
        assert_eq!(graph.node_name(NodeId(0)), "c");
    }

    #[test]
    fn sizes_are_checked() {
        assert!(matches!(Graph::new(0, 1, &[], &[]), Err(GraphError::Empty { .. })));
        assert!(matches!(Graph::new(1, 1, &[(0, 1)], &[]), Err(GraphError::OutOfRange { .. })));
        assert!(matches!(Graph::new(1, 1, &[], &[(0, 1)]), Err(GraphError::OutOfRange { .. })));
        assert!(matches!(Graph::new(1, 5, &[], &[(1, 0)]), Err(GraphError::NoSuchRow { row: 1, rows: 1, .. })));
        let names = Names { classes: Some(vec!["only".to_owned()]), ..Names::default() };
        let labels = vec![Some(ClassId(1))];
        let (named, labelled) = (Graph::new(1, 1, &[], &[]).unwrap(), Graph::new(1, 1, &[], &[]).unwrap());
        assert!(named.with_names(names.clone()).unwrap().with_labels(labels.clone()).is_err(), "too few names");
        assert!(labelled.with_labels(labels).unwrap().with_names(names).is_err(), "in either order");
        let graph = Graph::new(2, 1, &[], &[]).unwrap();
        assert!(matches!(graph.with_labels(vec![None]), Err(GraphError::Mismatch { .. })));
    }

    #[test]
    fn edges_are_read_as_they_were_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("graph.npz");
        let options = GraphOptions::new().directed(true).keep_self_loops(true);
        for edges in [&[(0, 1), (1, 0)][..], &[(0, 1)], &[(0, 0)], &[(0, 1), (1, 0), (1, 1), (2, 0)]] {
            let graph = Graph::with_options(3, 2, edges, &[(0, 1)], options).unwrap();
            graph.write(&path).unwrap();
            let (back, cleaning) = Graph::read(&path, GraphOptions::new()).unwrap();
            assert_eq!(back.fingerprint(), graph.fingerprint());
            assert_eq!(cleaning, Cleaning { edges_on_file: edges.len(), ..Cleaning::default() });
            assert_eq!(back.edges_fingerprint(), graph.edges_fingerprint());
        }
        let [one, other] = [(0, 1), (1, 0)].map(|edge| Graph::with_options(3, 2, &[edge], &[], options).unwrap());
        assert_ne!(one.edges_fingerprint(), other.edges_fingerprint());
    }

    #[test]
    fn kinds_of_attributes_are_read_as_they_were_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("graph.npz");
        for pairs in [&[(0, 1), (0, 0), (2, 1)][..], &[(0, 1), (1, 0)], &[]] {
            let plain = Graph::new(3, 2, &[(0, 1)], pairs).unwrap();
            for kind in [AttributeKind::Bits, AttributeKind::NormalisedRows, AttributeKind::RealValues] {
                let graph = plain.clone().with_kind(kind);
                graph.write(&path).unwrap();
                let (back, _) = Graph::read(&path, GraphOptions::new()).unwrap();
                assert_eq!((back.kind(), back.fingerprint()), (kind, graph.fingerprint()));
                let (bits, _) = Graph::read(&path, GraphOptions::new().binarise(true)).unwrap();
                assert_eq!((bits.kind(), bits.attributes()), (AttributeKind::Bits, plain.attributes()));
                let (values, _) = Graph::read(&path, GraphOptions::new().real_values(true)).unwrap();
                assert_eq!(values.values().map(|values| values.entries().rows()), Some(3));
                if kind.is_values() {
                    continue;
                }
                let (normalised, _) = Graph::read(&path, GraphOptions::new().normalise_rows(true)).unwrap();
                assert_eq!(normalised.kind(), AttributeKind::NormalisedRows);
            }
        }
    }

    #[test]
    fn values_and_their_ranges_are_read_as_they_were_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("graph.npz");
        let values = Values::new(Matrix::from_values(3, 2, vec![0.1, -2.0, 0.0, 1e-300, 3.5, 0.25])).unwrap();
        let graph = Graph::new(3, 2, &[(0, 1)], &[]).unwrap().with_values(values).unwrap();
        let other = graph.clone().with_ranges(vec![(-1.0, 1.0), (0.5, 0.5)]).unwrap();
        assert_ne!(graph.fingerprint(), other.fingerprint());
        assert_eq!(graph.fingerprint_without_ranges(), other.fingerprint_without_ranges());
        for graph in [graph, other] {
            graph.write(&path).unwrap();
            let (back, cleaning) = Graph::read(&path, GraphOptions::new()).unwrap();
            assert_eq!((back.values(), back.fingerprint()), (graph.values(), graph.fingerprint()));
            let normalised = Graph::read(&path, GraphOptions::new().normalise_rows(true));
            assert!(matches!(normalised, Err(GraphError::RowsOfValues)));
            assert!(cleaning.members_skipped.is_empty());
            let (part, _) = Graph::read(&path, GraphOptions::new().largest_component(true)).unwrap();
            assert_eq!(part.values().unwrap().entries().values(), [0.1, -2.0, 0.0, 1e-300]);
            assert_eq!(part.values().unwrap().ranges(), graph.values().unwrap().ranges());
            let (bits, _) = Graph::read(&path, GraphOptions::new().binarise(true)).unwrap();
            assert_eq!(bits.attributes().iter().collect::<Vec<_>>(), [(0, 0), (1, 1), (2, 0), (2, 1)]);
        }
        let bits = Graph::new(1, 1, &[], &[]).unwrap();
        assert!(matches!(bits.clone().with_ranges(vec![(0.0, 1.0)]), Err(GraphError::RangesOfBits(_))));
        let values = Values::new(Matrix::zeros(1, 2)).unwrap();
        assert!(matches!(bits.with_values(values), Err(GraphError::Mismatch { unit: "attributes", .. })));
    }

    #[test]
    fn fingerprint_sees_edges_attributes_and_labels() {
        let plain = Graph::new(2, 2, &[(0, 1)], &[(0, 0)]).unwrap();
        let other = Graph::new(2, 2, &[(0, 1)], &[(0, 1)]).unwrap();
        let labelled = plain.clone().with_labels(vec![Some(ClassId(0)), None]).unwrap();
        assert_ne!(plain.fingerprint(), other.fingerprint());
        assert_ne!(plain.fingerprint(), labelled.fingerprint());
        assert_ne!(plain.fingerprint(), plain.clone().with_kind(AttributeKind::NormalisedRows).fingerprint());
        assert_eq!(plain.fingerprint(), plain.clone().fingerprint());
    }
}

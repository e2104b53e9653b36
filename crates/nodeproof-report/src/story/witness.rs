//! A witness as sentences: what to flip where, what to unlink, and what comes of it.

use std::collections::BTreeMap;

use nodeproof_problem::flip::as_plain_number;
use nodeproof_problem::{AttributeId, AttributeKind, ClassId, Edge, Flip, Graph, NodeId, Witness};
use serde::Serialize;

use super::{Named, number, value};
use crate::text::{self, Emphasis, Style, short_name};

/// Flips, and deletions of edges, that change a class, with names.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct WitnessStory {
    /// The flips.
    pub flips: Vec<FlipStory>,
    /// Rows whose attributes weigh more or less then, where they are divided by the number of ones in their row.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rows: Vec<RowStory>,
    /// The edges that are deleted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub edges: Vec<EdgeStory>,
    /// The class that overtakes.
    pub class: Named<ClassId>,
    /// The margin over it on the graph as it is.
    pub before: f64,
    /// The margin over it under the witness.
    pub after: f64,
}

/// A row whose attributes weigh more or less than before: 1 divided by their number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RowStory {
    /// The node.
    pub node: Named<NodeId>,
    /// Its attributes before the flips.
    pub before: usize,
    /// Its attributes after the flips.
    pub after: usize,
}

impl RowStory {
    /// Those of all nodes that are flipped at, as far as their number of attributes changes.
    fn all(graph: &Graph, flips: &[Flip]) -> Vec<Self> {
        if graph.kind() != AttributeKind::NormalisedRows {
            return Vec::new();
        }
        let mut after: BTreeMap<NodeId, usize> = BTreeMap::new();
        for flip in flips {
            let ones = after.entry(flip.node).or_insert_with(|| graph.attributes().row(flip.node.index()).len());
            *ones = if flip.adds() { *ones + 1 } else { ones.saturating_sub(1) };
        }
        let row = |(node, after): (NodeId, usize)| {
            let before = graph.attributes().row(node.index()).len();
            (before != after).then(|| Self { node: Named::node(graph, node), before, after })
        };
        after.into_iter().filter_map(row).collect()
    }

    /// What becomes of the attributes of the row.
    fn in_words(&self, emphasis: Emphasis) -> String {
        let weight = |ones: usize| if ones == 1 { "1".to_owned() } else { format!("1/{ones}") };
        let node = node_in_words(&self.node, emphasis);
        match (self.before, self.after) {
            (_, 0) => format!("{node} then has no attribute left"),
            (0, after) => format!("{node} then has {after}, of weight {}", weight(after)),
            (before, after) => {
                format!("attributes of {node} then weigh {} each instead of {}", weight(after), weight(before))
            }
        }
    }
}

/// One flip, with names.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct FlipStory {
    /// The node.
    pub node: Named<NodeId>,
    /// The attribute.
    pub attribute: Named<AttributeId>,
    /// Its old value, where attributes are real values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<f64>,
    /// Its new value.
    #[serde(serialize_with = "as_plain_number")]
    pub to: f64,
}

impl WitnessStory {
    /// The story of `witness`, whose margin is `before` on the graph as it is.
    pub fn new(graph: &Graph, witness: &Witness, before: f64) -> Self {
        Self {
            flips: witness.flips.iter().map(|&flip| FlipStory::new(graph, flip)).collect(),
            rows: RowStory::all(graph, &witness.flips),
            edges: witness.edges.iter().map(|&edge| EdgeStory::new(graph, edge)).collect(),
            class: Named::class(graph, witness.class),
            before,
            after: witness.margin,
        }
    }

    /// How many changes it takes: flips, and deletions of edges.
    pub fn size(&self) -> usize {
        self.flips.len() + self.edges.len()
    }

    /// Whether it only brings the class level.
    pub fn is_tie(&self) -> bool {
        self.after == 0.0
    }

    /// Whether it leaves a margin, though a smaller one than was asked for.
    pub fn comes_close(&self) -> bool {
        self.after > 0.0
    }

    /// The changes one a line, and what comes of them for `target`.
    pub fn in_words(&self, target: NodeId, style: Style) -> String {
        let outcome = text::paragraph(&self.outcome(), style.width);
        if self.size() == 0 {
            return outcome;
        }
        let line = |flip: &FlipStory| format!("  {}\n", flip.in_words(Some(target), style.emphasis));
        let row = |row: &RowStory| format!("  {}\n", row.in_words(style.emphasis));
        let unlink = |edge: &EdgeStory| format!("  {}\n", edge.in_words(Some(target), style.emphasis));
        let flips = self.flips.iter().map(line).chain(self.rows.iter().map(row));
        let lines: String = flips.chain(self.edges.iter().map(unlink)).collect();
        format!("witness\n{lines}\n{outcome}")
    }

    fn outcome(&self) -> String {
        let (winner, before, after) = (self.class.in_words(), number(self.before), number(self.after));
        if self.comes_close() {
            return format!("{winner} comes closer than asked: the margin over it goes from {before} to {after}");
        }
        match (self.size() == 0, self.is_tie()) {
            (true, true) => format!("{winner} is level as it is: the margin over it is {before}"),
            (true, false) => format!("{winner} wins as it is: the margin over it is {before}"),
            (false, true) => format!(
                "then {winner} is level: the margin over it goes from {before} to {after}, and nothing says which class wins"
            ),
            (false, false) => format!("then {winner} wins: the margin over it goes from {before} to {after}"),
        }
    }
}

impl FlipStory {
    /// The story of `flip`.
    pub fn new(graph: &Graph, flip: Flip) -> Self {
        let attribute = Named::attribute(graph, flip.attribute);
        let from = graph.values().map(|values| values.get(flip.node, flip.attribute));
        Self { node: Named::node(graph, flip.node), attribute, from, to: flip.to }
    }

    /// The flip as a sentence, seen from `target` if that is given.
    pub fn in_words(&self, target: Option<NodeId>, emphasis: Emphasis) -> String {
        let attribute = match &self.attribute.name {
            Some(name) => format!("“{}”", emphasis.strong(&short_name(name))),
            None => emphasis.strong(&format!("attribute {}", self.attribute.id)),
        };
        let (id, node) = (self.node.id, node_in_words(&self.node, emphasis));
        let itself = if Some(id) == target { ", the node itself" } else { "" };
        if let Some(from) = self.from {
            let verb = if self.to > from { "raise" } else { "lower" };
            return format!("{verb} {attribute} of {node}{itself} from {} to {}", value(from), value(self.to));
        }
        let (verb, preposition) = if self.to == 1.0 { ("add", "to") } else { ("remove", "from") };
        format!("{verb} {attribute} {preposition} {node}{itself}")
    }
}

/// An edge that is deleted: its two ends, with names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
#[non_exhaustive]
pub struct EdgeStory {
    /// The ends, the smaller id first.
    pub ends: [Named<NodeId>; 2],
}

impl EdgeStory {
    /// The story of the deletion of `edge`.
    pub fn new(graph: &Graph, edge: Edge) -> Self {
        Self { ends: edge.ends().map(|node| Named::node(graph, node)) }
    }

    /// The deletion as a sentence, seen from `target` if that is given, which then comes last.
    pub fn in_words(&self, target: Option<NodeId>, emphasis: Emphasis) -> String {
        let [a, b] = &self.ends;
        let (first, second) = if Some(a.id) == target { (b, a) } else { (a, b) };
        let itself = if Some(second.id) == target { ", the node itself" } else { "" };
        format!("unlink {} from {}{itself}", node_in_words(first, emphasis), node_in_words(second, emphasis))
    }
}

/// A node with its name, if it has one.
fn node_in_words(node: &Named<NodeId>, emphasis: Emphasis) -> String {
    match &node.name {
        Some(name) => format!("{} (node {})", emphasis.strong(&short_name(name)), node.id),
        None => emphasis.strong(&format!("node {}", node.id)),
    }
}

/// A flip as a sentence, seen from `target` if that is given: “add “bayesian” to A perceptron revisited (node 9), the node
/// itself”. Names are shortened and cannot steer a terminal.
pub fn flip_in_words(graph: &Graph, flip: Flip, target: Option<NodeId>, emphasis: Emphasis) -> String {
    FlipStory::new(graph, flip).in_words(target, emphasis)
}

/// The deletion of an edge as a sentence, seen from `target` if that is given: “unlink node 4 from A perceptron revisited (node 9), the
/// node itself”. Names are shortened and cannot steer a terminal.
pub fn edge_in_words(graph: &Graph, edge: Edge, target: Option<NodeId>, emphasis: Emphasis) -> String {
    EdgeStory::new(graph, edge).in_words(target, emphasis)
}

#[cfg(test)]
mod tests {
    use nodeproof_problem::{Matrix, Names, Values};

    use super::*;

    #[test]
    fn rows_tell_what_their_attributes_weigh() {
        let graph = Graph::new(3, 3, &[], &[(0, 0), (0, 1), (1, 0)]).unwrap();
        let flip = |node, d| Flip::of(&graph, NodeId(node), AttributeId(d));
        let words = |kind: AttributeKind, flips: &[Flip]| {
            let rows = RowStory::all(&graph.clone().with_kind(kind), flips);
            rows.iter().map(|row| row.in_words(Emphasis { bold: false })).collect::<Vec<_>>()
        };
        let flips = [flip(0, 0), flip(1, 0), flip(2, 0), flip(2, 1)];
        assert_eq!(
            words(AttributeKind::NormalisedRows, &flips),
            [
                "attributes of node 0 then weigh 1 each instead of 1/2",
                "node 1 then has no attribute left",
                "node 2 then has 2, of weight 1/2"
            ]
        );
        assert!(words(AttributeKind::Bits, &flips).is_empty());
        assert!(words(AttributeKind::NormalisedRows, &[flip(0, 0), flip(0, 2)]).is_empty(), "as many as before");
    }

    #[test]
    fn flips_of_real_values_name_them() {
        let values = Values::new(Matrix::from_values(1, 3, vec![0.0, 12.34567, -1e-7])).unwrap();
        let graph = Graph::new(1, 3, &[], &[]).unwrap().with_values(values).unwrap();
        let words = |d, to| {
            flip_in_words(
                &graph,
                Flip { node: NodeId(0), attribute: AttributeId(d), to },
                None,
                Emphasis { bold: false },
            )
        };
        assert_eq!(words(0, 0.0126315), "raise attribute 0 of node 0 from 0 to 0.01263");
        assert_eq!(words(1, -100_000.0), "lower attribute 1 of node 0 from 12.35 to -100000");
        assert_eq!(words(2, 1.0), "raise attribute 2 of node 0 from -1.000e-7 to 1");
    }

    #[test]
    fn flips_read_as_sentences_and_cannot_steer_a_terminal() {
        let graph = Graph::new(2, 1, &[], &[(1, 0)]).unwrap();
        let names = Names {
            nodes: Some(vec!["paper\u{1b}[2J".into(), "b".into()]),
            attributes: Some(vec!["bayesian".into()]),
            classes: None,
        };
        let named = graph.clone().with_names(names).unwrap();
        let words = |graph: &Graph, node, target, bold| {
            let flip = Flip::of(graph, NodeId(node), AttributeId(0));
            flip_in_words(graph, flip, target, Emphasis { bold })
        };
        assert_eq!(words(&named, 0, Some(NodeId(1)), false), "add “bayesian” to paper\\u{1b}[2J (node 0)");
        assert_eq!(words(&graph, 1, Some(NodeId(1)), false), "remove attribute 0 from node 1, the node itself");
        assert_eq!(words(&graph, 1, None, false), "remove attribute 0 from node 1");
        let bold = "remove “\u{1b}[1mbayesian\u{1b}[0m” from \u{1b}[1mb\u{1b}[0m (node 1)";
        assert_eq!(words(&named, 1, None, true), bold);
    }

    #[test]
    fn deletions_read_as_sentences_that_end_with_the_node_itself() {
        let graph = Graph::new(3, 1, &[(0, 1), (1, 2)], &[]).unwrap();
        let names = Names { nodes: Some(["ash\u{7}", "elm", ""].map(str::to_owned).to_vec()), ..Names::default() };
        let graph = graph.with_names(names).unwrap();
        let words = |a, b, target: Option<u32>, bold| {
            let edge = Edge::between(NodeId(a), NodeId(b)).unwrap();
            edge_in_words(&graph, edge, target.map(NodeId), Emphasis { bold })
        };
        assert_eq!(words(0, 1, None, false), "unlink ash\\u{7} (node 0) from elm (node 1)");
        assert_eq!(words(0, 1, Some(1), false), "unlink ash\\u{7} (node 0) from elm (node 1), the node itself");
        assert_eq!(words(0, 1, Some(0), false), "unlink elm (node 1) from ash\\u{7} (node 0), the node itself");
        assert_eq!(words(1, 2, Some(0), false), "unlink elm (node 1) from node 2");
        assert_eq!(
            words(1, 2, Some(1), true),
            "unlink \u{1b}[1mnode 2\u{1b}[0m from \u{1b}[1melm\u{1b}[0m (node 1), the node itself"
        );
    }
}

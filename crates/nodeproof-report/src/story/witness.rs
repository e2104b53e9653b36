//! A witness as sentences: what to flip where, and what comes of it.

use nodeproof_problem::{AttributeId, ClassId, Flip, Graph, NodeId, Witness};
use serde::Serialize;

use super::{Named, number};
use crate::text::{self, Emphasis, Style, short_name};

/// Flips that change a class, with names.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct WitnessStory {
    /// The flips.
    pub flips: Vec<FlipStory>,
    /// The class that overtakes.
    pub class: Named<ClassId>,
    /// The margin over it on the graph as it is.
    pub before: f64,
    /// The margin over it under the flips.
    pub after: f64,
}

/// One flip, with names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FlipStory {
    /// The node.
    pub node: Named<NodeId>,
    /// The attribute.
    pub attribute: Named<AttributeId>,
    /// Its new value.
    pub to: u8,
}

impl WitnessStory {
    /// The story of `witness`, whose margin is `before` without the flips.
    pub fn new(graph: &Graph, witness: &Witness, before: f64) -> Self {
        Self {
            flips: witness.flips.iter().map(|&flip| FlipStory::new(graph, flip)).collect(),
            class: Named::class(graph, witness.class),
            before,
            after: witness.margin,
        }
    }

    /// Whether the flips only bring the class level.
    pub fn is_tie(&self) -> bool {
        self.after >= 0.0
    }

    /// The flips one a line, and what comes of them for `target`.
    pub fn in_words(&self, target: NodeId, style: Style) -> String {
        let outcome = text::paragraph(&self.outcome(), style.width);
        if self.flips.is_empty() {
            return outcome;
        }
        let line = |flip: &FlipStory| format!("  {}\n", flip.in_words(Some(target), style.emphasis));
        format!("witness\n{}\n{outcome}", self.flips.iter().map(line).collect::<String>())
    }

    fn outcome(&self) -> String {
        let (winner, before, after) = (self.class.in_words(), number(self.before), number(self.after));
        match (self.flips.is_empty(), self.is_tie()) {
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
        Self { node: Named::node(graph, flip.node), attribute, to: flip.to }
    }

    /// The flip as a sentence, seen from `target` if that is given.
    pub fn in_words(&self, target: Option<NodeId>, emphasis: Emphasis) -> String {
        let attribute = match &self.attribute.name {
            Some(name) => format!("“{}”", emphasis.strong(&short_name(name))),
            None => emphasis.strong(&format!("attribute {}", self.attribute.id)),
        };
        let id = self.node.id;
        let node = match &self.node.name {
            Some(name) => format!("{} (node {id})", emphasis.strong(&short_name(name))),
            None => emphasis.strong(&format!("node {id}")),
        };
        let (verb, preposition) = if self.to == 1 { ("add", "to") } else { ("remove", "from") };
        let itself = if Some(id) == target { ", the node itself" } else { "" };
        format!("{verb} {attribute} {preposition} {node}{itself}")
    }
}

/// A flip as a sentence, seen from `target` if that is given: “add “bayesian” to A perceptron revisited (node 9), the node
/// itself”. Names are shortened and cannot steer a terminal.
pub fn flip_in_words(graph: &Graph, flip: Flip, target: Option<NodeId>, emphasis: Emphasis) -> String {
    FlipStory::new(graph, flip).in_words(target, emphasis)
}

#[cfg(test)]
mod tests {
    use nodeproof_problem::Names;

    use super::*;

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
}

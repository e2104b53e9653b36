//! Witnesses without what they do not need.

use std::cmp::Ordering;

use super::{Certifier, CertifyError};
use crate::certificate::{Certificate, Evidence, Witness};
use crate::edge::Edge;
use crate::exact::compare_margin;
use crate::flip::Flip;
use crate::graph::Graph;
use crate::ids::{ClassId, NodeId};
use crate::network::Network;

impl Certifier<'_> {
    /// Leaves out of the witness of a certificate, one after the other, the edges and flips without which the others still change the
    /// class, in exact arithmetic. All that is left is needed, but there may be a smaller witness of other changes.
    ///
    /// # Errors
    /// If the model does not fit the graph without some edges.
    pub fn leave_out_needless(&self, certificate: &mut Certificate) -> Result<(), CertifyError> {
        let (node, class) = (certificate.node, certificate.class);
        let Evidence::Witness(witness) = &mut certificate.evidence else { return Ok(()) };
        // A witness that takes the lead is to take it still, one that brings a class level may do just that.
        let least = if witness.margin < 0.0 { Ordering::Less } else { Ordering::Equal };
        let of = Target { node, pair: (class, witness.class), least };
        let (mut edges, mut flips) = (witness.edges.clone(), witness.flips.clone());
        for edge in &witness.edges {
            let fewer: Vec<Edge> = edges.iter().filter(|other| *other != edge).copied().collect();
            let Ok(graph) = self.network.graph().without_edges(&fewer) else { return Ok(()) };
            if of.falls(&self.on(&graph)?, &flips) {
                edges = fewer;
            }
        }
        let Ok(graph) = self.network.graph().without_edges(&edges) else { return Ok(()) };
        let network = self.on(&graph)?;
        for flip in &witness.flips {
            let fewer: Vec<Flip> = flips.iter().filter(|other| *other != flip).copied().collect();
            if of.falls(&network, &fewer) {
                flips = fewer;
            }
        }
        if edges.len() + flips.len() < witness.size() {
            let margin = of.margin(&network, &flips);
            *witness = Witness::new(flips, witness.class, margin).with_edges(edges);
        }
        Ok(())
    }

    /// The network on another graph.
    fn on<'g>(&'g self, graph: &'g Graph) -> Result<Network<'g>, CertifyError> {
        Ok(Network::new(graph, self.network.model())?)
    }
}

/// The margin of one class over another at a node, and what it takes to change the class.
struct Target {
    node: NodeId,
    pair: (ClassId, ClassId),
    least: Ordering,
}

impl Target {
    /// Whether flips change the class, in exact arithmetic.
    fn falls(&self, network: &Network, flips: &[Flip]) -> bool {
        compare_margin(network, self.node, flips, self.pair, 0.0) <= self.least
    }

    /// The margin under flips that change the class, rounded up, or 0 where that is too close to 0 for a double.
    fn margin(&self, network: &Network, flips: &[Flip]) -> f64 {
        let logits = network.logits_under(self.node, flips);
        let [own, other] = [self.pair.0, self.pair.1].map(|class| logits[class.index()]);
        let wider = (own.abs() + other.abs()) * 1e-12;
        let candidates = [own - other, own - other + wider];
        let is_above = |&margin: &f64| {
            margin < 0.0 && compare_margin(network, self.node, flips, self.pair, margin) != Ordering::Greater
        };
        candidates.into_iter().find(is_above).unwrap_or(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::{Budget, EdgeBudget};
    use crate::dense::Matrix;
    use crate::ids::AttributeId;
    use crate::model::{Model, Propagation};

    /// Node 0 counts the words of itself and of two neighbours, each of which has one; its class holds above a bias.
    fn example(bias: f64) -> (Graph, Model) {
        let graph = Graph::new(3, 3, &[(0, 1), (0, 2)], &[(0, 0), (1, 1), (2, 2)]).unwrap();
        let layer = (Matrix::from_values(3, 2, vec![1.0, 0.0, 1.0, 0.0, 1.0, 0.0]), vec![-bias, 0.0]);
        (graph.clone(), Model::gcn(vec![layer], Propagation::Adjacency).unwrap())
    }

    #[test]
    fn what_is_not_needed_is_left_out() {
        let (graph, _) = example(0.0);
        let flip = |node, attribute| Flip::of(&graph, NodeId(node), AttributeId(attribute));
        let edge = |a, b| Edge::between(NodeId(a), NodeId(b)).unwrap();
        let all = || (vec![flip(0, 0), flip(1, 1), flip(2, 2)], vec![edge(0, 1)]);
        // Of the sum of 2 an edge or a flip at a neighbour takes 1, and a flip at the node itself nothing.
        for (bias, margin, expected, left) in [
            (1.5, -1.5, (vec![flip(2, 2)], vec![]), -0.5),
            (0.5, -0.5, (vec![flip(1, 1), flip(2, 2)], vec![]), -0.5),
            (1.0, 0.0, (vec![flip(2, 2)], vec![]), 0.0),
            (1.0, -1.0, (vec![flip(1, 1), flip(2, 2)], vec![]), -1.0),
            (0.0, 0.0, (vec![flip(1, 1), flip(2, 2)], vec![]), 0.0),
        ] {
            let (graph, model) = example(bias);
            let budget = Budget::new(3, 1.into()).delete_edges(EdgeBudget::new(1));
            let certifier = Certifier::new(&graph, &model).unwrap().budget(budget);
            let (flips, edges) = all();
            let witness = Witness::new(flips, ClassId(1), margin).with_edges(edges);
            let evidence = Evidence::Witness(witness);
            let mut certificate = Certificate::new(NodeId(0), ClassId(0), ClassId(0), evidence, vec![None; 2]);
            certifier.leave_out_needless(&mut certificate).unwrap();
            let witness = certificate.witness().unwrap();
            assert_eq!((&witness.flips, &witness.edges), (&expected.0, &expected.1), "{bias}");
            assert_eq!(witness.margin, left, "{bias}");
            assert_eq!(certifier.recheck().unwrap().certificate(&certificate), Ok(()), "{bias}");
            let again = certificate.clone();
            certifier.leave_out_needless(&mut certificate).unwrap();
            assert_eq!(certificate, again, "nothing more can be left out");
        }
    }
}

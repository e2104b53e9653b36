//! A model on a graph: the propagation made, the shapes checked, ready to be evaluated.

use std::borrow::Cow;

use crate::dense::{Matrix, add_scaled, par_fill};
use crate::flip::Flip;
use crate::forward::{self, Activation, Values};
use crate::graph::Graph;
use crate::ids::{ClassId, NodeId};
use crate::kernels::add_rows;
use crate::model::{Layer, Model, ModelError};
use crate::slice::Region;
use crate::sparse::SparseMatrix;

/// A [`Model`] together with the [`Graph`] it is evaluated on.
#[derive(Debug, Clone)]
pub struct Network<'a> {
    graph: &'a Graph,
    model: &'a Model,
    propagation: Cow<'a, SparseMatrix>,
}

impl<'a> Network<'a> {
    /// Puts `model` on `graph`.
    ///
    /// # Errors
    /// If the model reads another number of attributes, has too few classes for the labels, or its propagation does
    /// not fit.
    pub fn new(graph: &'a Graph, model: &'a Model) -> Result<Self, ModelError> {
        if model.attributes() != graph.attribute_count() {
            let problem = format!(
                "its weight W0 reads {} attributes, but the graph has {}; use the graph it was trained on (and check \
                 that weights are stored as inputs × outputs)",
                model.attributes(),
                graph.attribute_count()
            );
            return Err(ModelError::Mismatch { problem });
        }
        if model.classes() < graph.classes() {
            let problem = format!(
                "it has {} classes, but the graph's labels or class names make {}; use the model that was trained \
                 on these labels",
                model.classes(),
                graph.classes()
            );
            return Err(ModelError::Mismatch { problem });
        }
        Ok(Self { graph, model, propagation: Cow::Owned(model.propagation().matrix(graph)?) })
    }

    /// Puts `model` on `graph`, for which it was made, with the matrix of its propagation at hand.
    pub(crate) fn with_propagation(graph: &'a Graph, model: &'a Model, propagation: &'a SparseMatrix) -> Self {
        Self { graph, model, propagation: Cow::Borrowed(propagation) }
    }

    /// The graph.
    pub fn graph(&self) -> &'a Graph {
        self.graph
    }

    /// The model.
    pub fn model(&self) -> &'a Model {
        self.model
    }

    /// The propagation P, N × N.
    pub fn propagation(&self) -> &SparseMatrix {
        &self.propagation
    }

    /// The layers, first to last.
    pub(crate) fn layers(&self) -> &'a [Layer] {
        self.model.layers()
    }

    /// The weight W⁰ that the attributes meet, attributes × units of the first layer.
    pub(crate) fn attribute_weight(&self) -> &'a Matrix {
        self.layers()[0].weight()
    }

    /// The part of the graph that `targets` see.
    pub(crate) fn region(&self, targets: &[NodeId]) -> Region {
        Region::around(&self.propagation, targets, self.layers().len())
    }

    /// The logits of all nodes, N × K.
    pub fn logits(&self) -> Matrix {
        let all: Vec<NodeId> = self.graph.node_ids().collect();
        let region = self.region(&all);
        self.outputs(&region, &self.attribute_sums(region.level(0).nodes()))
    }

    /// The logits of `node` after `flips`, computed on the part of the graph that the node sees. Without flips they
    /// equal its row of [`Network::logits`] to the last bit.
    ///
    /// ```
    /// use nodeproof::{Graph, Layer, Matrix, Model, Network, NodeId, Propagation};
    /// let graph = Graph::new(2, 1, &[(0, 1)], &[(1, 0)])?;
    /// let layer = Layer::new(Matrix::from_values(1, 2, vec![1.0, -1.0]), vec![0.0, 0.0]);
    /// let model = Model::new(vec![layer], Propagation::SymmetricGcn)?;
    /// let network = Network::new(&graph, &model)?;
    /// assert_eq!(network.logits_under(NodeId(0), &[]), [0.5, -0.5]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    /// If a node or an attribute does not exist.
    pub fn logits_under(&self, node: NodeId, flips: &[Flip]) -> Vec<f64> {
        let region = self.region(&[node]);
        let inputs = region.level(0);
        let mut sums = self.attribute_sums(inputs.nodes());
        for &flip in flips.iter().filter(|flip| inputs.contains(flip.node.0)) {
            let sign = if flip.adds() { 1.0 } else { -1.0 };
            let row = sums.row_mut(inputs.place(flip.node.0));
            add_scaled(row, sign, self.attribute_weight().row(flip.attribute.index()));
        }
        self.outputs(&region, &sums).row(0).to_vec()
    }

    /// The predicted class of every node.
    pub fn predictions(&self) -> Vec<ClassId> {
        let logits = self.logits();
        (0..logits.rows()).map(|row| largest(logits.row(row))).collect()
    }

    /// `Z⁰, …, Zᴸ` for every node of the region, from the [`Network::attribute_sums`] of its level 0; the last are logits.
    pub(crate) fn pre_activations(&self, region: &Region, sums: &Matrix) -> Vec<Matrix> {
        let mut all = vec![self.first_pre_activations(region, sums)];
        for (i, layer) in self.layers().iter().enumerate().skip(1) {
            let hop = region.hop(&self.propagation, i);
            all.push(forward::layer::<Values>(&hop, layer, &all[i - 1], Activation::Relu));
        }
        all
    }

    /// The last of the [`Network::pre_activations`], without keeping the others.
    fn outputs(&self, region: &Region, sums: &Matrix) -> Matrix {
        let layers = self.layers().iter().enumerate().skip(1);
        layers.fold(self.first_pre_activations(region, sums), |before, (i, layer)| {
            forward::layer::<Values>(&region.hop(&self.propagation, i), layer, &before, Activation::Relu)
        })
    }

    fn first_pre_activations(&self, region: &Region, sums: &Matrix) -> Matrix {
        forward::first::<Values>(&region.hop(&self.propagation, 0), self.layers()[0].bias(), sums)
    }

    /// `X_n W⁰` for each of `nodes`: the sum of the weights of the attributes that n has.
    pub(crate) fn attribute_sums(&self, nodes: &[u32]) -> Matrix {
        let weight = self.attribute_weight();
        par_fill(nodes.len(), weight.columns(), |row, sums| {
            let attributes = self.graph.attributes().row(nodes[row] as usize);
            add_rows(sums, attributes.iter().map(|&attribute| (1.0, weight.row(attribute as usize))));
        })
    }
}

/// The class with the largest logit, the first of several.
pub(crate) fn largest(logits: &[f64]) -> ClassId {
    let mut best = 0;
    for (class, &logit) in logits.iter().enumerate() {
        if logit > logits[best] {
            best = class;
        }
    }
    ClassId(best as u32)
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::ids::AttributeId;
    use crate::model::Propagation;

    #[test]
    fn a_slice_sees_what_the_whole_graph_sees() {
        for seed in 0..30 {
            let mut random = ChaCha8Rng::seed_from_u64(crate::seed::seed(seed));
            let mut pairs = |count: usize, to: u32| -> Vec<(u32, u32)> {
                (0..count).map(|_| (random.random_range(0..20), random.random_range(0..to))).collect()
            };
            let (edges, ones, flips) = (pairs(25, 20), pairs(40, 9), pairs(3, 9));
            let sizes: &[usize] = [&[9, 3][..], &[9, 4, 3], &[9, 5, 4, 2]][seed as usize % 3];
            let layers = sizes.windows(2).map(|pair| {
                let mut numbers =
                    |count: usize| (0..count).map(|_| random.random_range(-1.0..1.0)).collect::<Vec<f64>>();
                Layer::new(Matrix::from_values(pair[0], pair[1], numbers(pair[0] * pair[1])), numbers(pair[1]))
            });
            let model = Model::new(layers.collect(), Propagation::RowNormalised).unwrap();
            let graph = Graph::new(20, 9, &edges, &ones).unwrap();
            let network = Network::new(&graph, &model).unwrap();
            let whole = network.logits();

            let mut flips: Vec<Flip> =
                flips.iter().map(|&(node, d)| Flip::of(&graph, NodeId(node), AttributeId(d))).collect();
            flips.sort_unstable();
            flips.dedup();
            let mut tampered: Vec<(u32, u32)> = graph.attributes().iter().collect();
            for flip in &flips {
                let pair = (flip.node.0, flip.attribute.0);
                if flip.adds() { tampered.push(pair) } else { tampered.retain(|&other| other != pair) }
            }
            let tampered = Graph::new(20, 9, &edges, &tampered).unwrap();
            let expected = Network::new(&tampered, &model).unwrap().logits();
            for node in graph.node_ids() {
                assert_eq!(network.logits_under(node, &[]), whole.row(node.index()), "to the last bit");
                for (found, expected) in network.logits_under(node, &flips).iter().zip(expected.row(node.index())) {
                    assert!((found - expected).abs() < 1e-12);
                }
            }
        }
    }
}

//! A model on a graph: the propagations made, the shapes checked, ready to be evaluated.

use std::borrow::Cow;
use std::ops::Range;

use crate::dense::{Matrix, add_scaled, par_fill};
use crate::flip::Flip;
use crate::forward::{self, Carried, Link, Values};
use crate::graph::Graph;
use crate::ids::{AttributeId, ClassId, NodeId};
use crate::kernels::add_rows;
use crate::model::{Activation, Layer, Model, ModelError, Source, Weight};
use crate::slice::{DOWN, Region, RegionHop, Slicer};
use crate::sparse::SparseMatrix;

/// A [`Model`] together with the [`Graph`] it is evaluated on.
#[derive(Debug, Clone)]
pub struct Network<'a> {
    graph: &'a Graph,
    model: &'a Model,
    matrices: Cow<'a, [SparseMatrix]>,
    attribute_weight: Cow<'a, Matrix>,
    attribute_terms: Vec<AttributeTerm>,
    chain: Option<Vec<ChainLayer<'a>>>,
}

/// A term that reads the attributes.
#[derive(Debug, Clone)]
pub(crate) struct AttributeTerm {
    pub(crate) layer: usize,
    /// Its place among the terms of the layer.
    pub(crate) term: usize,
    /// The columns of [`Network::attribute_weight`] that are its weight.
    pub(crate) columns: Range<usize>,
}

/// A layer of a network whose layers form a chain: its one term reads the layer before.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChainLayer<'a> {
    pub(crate) weight: &'a Matrix,
    pub(crate) bias: &'a [f64],
}

/// What layers read: `X W` of the attributes for the weights of all terms that read them, the number 1, and pre-activations of
/// the layers so far.
struct Inputs<'i, N> {
    sums: &'i Matrix<N>,
    one: &'i Matrix<N>,
    layers: &'i [Matrix<N>],
}

impl<'a> Network<'a> {
    /// Puts `model` on `graph`.
    ///
    /// # Errors
    /// If the model reads another number of attributes, has too few classes for the labels, or one of its propagations does
    /// not fit.
    pub fn new(graph: &'a Graph, model: &'a Model) -> Result<Self, ModelError> {
        model.check_fits(graph)?;
        if graph.attribute_count() >= DOWN as usize {
            let problem = format!("a network can read less than {DOWN} attributes; leave out some");
            return Err(ModelError::Mismatch { problem });
        }
        let matrices = model.propagations().iter().map(|propagation| propagation.matrix(graph));
        let matrices = matrices.collect::<Result<Vec<_>, _>>()?;
        Ok(Self::of(graph, model, Cow::Owned(matrices)))
    }

    /// Puts `model` on `graph`, for which it was made, with the matrices of its propagations at hand.
    pub(crate) fn with_matrices(graph: &'a Graph, model: &'a Model, matrices: &'a [SparseMatrix]) -> Self {
        Self::of(graph, model, Cow::Borrowed(matrices))
    }

    fn of(graph: &'a Graph, model: &'a Model, matrices: Cow<'a, [SparseMatrix]>) -> Self {
        let (attribute_weight, attribute_terms) = attribute_weight(model);
        let chain = model.as_chain().filter(|_| model.is_plain());
        let chain = chain.map(|layers| layers.into_iter().map(|(weight, bias)| ChainLayer { weight, bias }).collect());
        Self { graph, model, matrices, attribute_weight, attribute_terms, chain }
    }

    /// The graph.
    pub fn graph(&self) -> &'a Graph {
        self.graph
    }

    /// The model.
    pub fn model(&self) -> &'a Model {
        self.model
    }

    /// The propagations of the model, each N × N.
    pub fn matrices(&self) -> &[SparseMatrix] {
        &self.matrices
    }

    /// The propagation of a term.
    pub(crate) fn matrix(&self, layer: usize, term: usize) -> &SparseMatrix {
        &self.matrices[self.layers()[layer].terms()[term].propagation()]
    }

    /// The layers, first to last.
    pub(crate) fn layers(&self) -> &'a [Layer] {
        self.model.layers()
    }

    /// The layers, if they form a chain of dense terms with ReLUs between, and no propagation has negative values: what the
    /// paper has, but perhaps with a propagation for each layer.
    pub(crate) fn chain(&self) -> Option<&[ChainLayer<'a>]> {
        self.chain.as_deref()
    }

    /// Whether it is a chain with one hidden layer.
    pub(crate) fn has_one_hidden_layer(&self) -> bool {
        self.chain().is_some_and(|layers| layers.len() == 2)
    }

    /// The weights W that the attributes meet, attributes × units, those of different terms side by side. A flip of attribute d
    /// changes what its node sends by ± row d.
    pub(crate) fn attribute_weight(&self) -> &Matrix {
        &self.attribute_weight
    }

    /// The terms that read the attributes, in the order of the columns of [`Network::attribute_weight`].
    pub(crate) fn attribute_terms(&self) -> &[AttributeTerm] {
        &self.attribute_terms
    }

    /// Those of one layer.
    pub(crate) fn attribute_terms_of(&self, layer: usize) -> impl Iterator<Item = &AttributeTerm> + Clone {
        self.attribute_terms.iter().filter(move |term| term.layer == layer)
    }

    /// The weight of such a term.
    pub(crate) fn attribute_weight_of(&self, term: &AttributeTerm) -> Matrix {
        let rows = (0..self.attribute_weight.rows()).flat_map(|d| &self.attribute_weight.row(d)[term.columns.clone()]);
        Matrix::from_values(self.attribute_weight.rows(), term.columns.len(), rows.copied().collect())
    }

    /// Whether a term of the layer reads the attributes.
    pub(crate) fn reads_attributes(&self, layer: usize) -> bool {
        self.attribute_terms_of(layer).next().is_some()
    }

    /// Whether a term of the layer reads another layer.
    pub(crate) fn reads_layers(&self, layer: usize) -> bool {
        self.layers()[layer].terms().iter().any(|term| matches!(term.source(), Source::Layer(_)))
    }

    /// What a layer makes of the attributes and of constants alone, biases included.
    pub(crate) fn attribute_part(&self, region: &Region, layer: usize, sums: &Matrix) -> Matrix {
        let one = Matrix::from_values(1, 1, vec![1.0]);
        let inputs = Inputs { sums, one: &one, layers: &[] };
        let terms = self.layers()[layer].terms().iter().enumerate();
        let of_others = terms.filter(|(_, term)| !matches!(term.source(), Source::Layer(_)));
        let links: Vec<_> = of_others.map(|(k, _)| self.link(region, layer, k, &inputs)).collect();
        forward::layer::<Values>(region.level(layer + 1).nodes().len(), self.layers()[layer].bias(), &links)
    }

    /// The part of the graph that `targets` see.
    pub(crate) fn region(&self, targets: &[NodeId]) -> Region {
        Region::around(self.model, &self.matrices, targets)
    }

    /// Cuts out what one target after the other sees.
    pub(crate) fn slicer(&self) -> Slicer<'_> {
        Slicer::new(self.model, &self.matrices)
    }

    /// P of a term on a region.
    pub(crate) fn hop<'r>(&'r self, region: &'r Region, layer: usize, term: usize) -> RegionHop<'r> {
        region.hop(self.matrix(layer, term), self.layers()[layer].terms()[term].source(), layer)
    }

    /// The logits of all nodes, N × K.
    pub fn logits(&self) -> Matrix {
        let all: Vec<NodeId> = self.graph.node_ids().collect();
        let region = self.region(&all);
        self.outputs(&region, &self.attribute_sums(region.level(0).nodes()))
    }

    /// The logits of `nodes`, a row for each in this order, computed on the part of the graph that they see. They equal the rows of
    /// [`Network::logits`] to the last bit.
    ///
    /// # Panics
    /// If a node does not exist.
    pub fn logits_of(&self, nodes: &[NodeId]) -> Matrix {
        let region = self.region(nodes);
        let found = self.outputs(&region, &self.attribute_sums(region.level(0).nodes()));
        let rows = nodes.iter().flat_map(|node| found.row(region.targets().place(node.0)));
        Matrix::from_values(nodes.len(), found.columns(), rows.copied().collect())
    }

    /// The logits of `node` after `flips`, computed on the part of the graph that the node sees. Without flips they
    /// equal its row of [`Network::logits`] to the last bit.
    ///
    /// ```
    /// use nodeproof::{Graph, Matrix, Model, Network, NodeId, Propagation};
    /// let graph = Graph::new(2, 1, &[(0, 1)], &[(1, 0)])?;
    /// let layer = (Matrix::from_values(1, 2, vec![1.0, -1.0]), vec![0.0, 0.0]);
    /// let model = Model::gcn(vec![layer], Propagation::SymmetricGcn)?;
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
        let mut seen: Vec<&Flip> = flips.iter().filter(|flip| inputs.contains(flip.node.0)).collect();
        seen.sort_by_key(|flip| flip.node);
        for flips in seen.chunk_by(|a, b| a.node == b.node) {
            let node = flips[0].node;
            let row = sums.row_mut(inputs.place(node.0));
            let (before, after) = self.divisors(node, flips.iter().map(|flip| flip.adds()));
            if before != 1.0 {
                row.iter_mut().for_each(|sum| *sum *= before);
            }
            for flip in flips {
                let change = flip.to - self.graph.value(node, flip.attribute);
                add_scaled(row, change, self.attribute_weight().row(flip.attribute.index()));
            }
            if after != 1.0 {
                row.iter_mut().for_each(|sum| *sum /= after);
            }
        }
        self.outputs(&region, &sums).row(0).to_vec()
    }

    /// The predicted class of every node.
    pub fn predictions(&self) -> Vec<ClassId> {
        let logits = self.logits();
        (0..logits.rows()).map(|row| largest(logits.row(row))).collect()
    }

    /// The class that these logits of a node predict: that of the largest, the first of several.
    pub fn predicted(logits: &[f64]) -> ClassId {
        largest(logits)
    }

    /// `Z⁰, …, Zᴸ` for every node of the region, from the [`Network::attribute_sums`] of its level 0; the last are logits.
    pub(crate) fn pre_activations(&self, region: &Region, sums: &Matrix) -> Vec<Matrix> {
        self.walk::<Values>(region, sums, 1.0, |_| ())
    }

    /// The last of the [`Network::pre_activations`], without keeping the others for longer than they are read.
    fn outputs(&self, region: &Region, sums: &Matrix) -> Matrix {
        self.last::<Values>(region, sums)
    }

    /// The logits of the region, whatever numbers are carried.
    pub(crate) fn last<C: Carried>(&self, region: &Region, sums: &Matrix<C::Number>) -> Matrix<C::Number> {
        let mut layers = self.walk::<C>(region, sums, C::constant(1.0, 0.0), |layers| {
            let done = layers.len();
            let read = |i: usize| self.readers(i).any(|reader| reader >= done);
            let idle = (0..done - 1).filter(|&i| !read(i)).collect::<Vec<_>>();
            idle.into_iter().for_each(|i| layers[i] = Matrix::default());
        });
        layers.pop().unwrap_or_default()
    }

    /// The layers that read layer `layer`.
    pub(crate) fn readers(&self, layer: usize) -> impl Iterator<Item = usize> {
        let reads = move |&i: &usize| self.layers()[i].terms().iter().any(|term| term.source() == Source::Layer(layer));
        (layer + 1..self.layers().len()).filter(reads)
    }

    /// All layers of a region, one after the other, with a number to stand for the constant 1; `visit` sees those so far after each.
    pub(crate) fn walk<C: Carried>(
        &self,
        region: &Region,
        sums: &Matrix<C::Number>,
        one: C::Number,
        mut visit: impl FnMut(&mut Vec<Matrix<C::Number>>),
    ) -> Vec<Matrix<C::Number>> {
        let one = Matrix::from_values(1, 1, vec![one]);
        let mut all = Vec::with_capacity(self.layers().len());
        for (i, layer) in self.layers().iter().enumerate() {
            let inputs = Inputs { sums, one: &one, layers: &all };
            let links = self.links(region, i, &inputs);
            let made = forward::layer::<C>(region.level(i + 1).nodes().len(), layer.bias(), &links);
            all.push(made);
            visit(&mut all);
        }
        all
    }

    fn links<'n, N>(
        &'n self,
        region: &'n Region,
        layer: usize,
        inputs: &Inputs<'n, N>,
    ) -> Vec<Link<'n, RegionHop<'n>, N>> {
        (0..self.layers()[layer].terms().len()).map(|term| self.link(region, layer, term, inputs)).collect()
    }

    fn link<'n, N>(
        &'n self,
        region: &'n Region,
        layer: usize,
        term: usize,
        inputs: &Inputs<'n, N>,
    ) -> Link<'n, RegionHop<'n>, N> {
        let of = &self.layers()[layer].terms()[term];
        let (below, columns, activation, weight) = match of.source() {
            Source::Attributes => (inputs.sums, self.attribute_columns(layer, term), Activation::None, None),
            Source::Ones => (inputs.one, 0..1, Activation::None, Some(of.weight())),
            Source::Layer(i) => {
                let source = &self.layers()[i];
                (&inputs.layers[i], 0..source.units(), source.activation(), Some(of.weight()))
            }
        };
        Link { hop: self.hop(region, layer, term), below, columns, activation, weight }
    }

    /// The columns of a term's weight in [`Network::attribute_weight`].
    pub(crate) fn attribute_columns(&self, layer: usize, term: usize) -> Range<usize> {
        let of = self.attribute_terms.iter().find(|of| (of.layer, of.term) == (layer, term));
        of.map_or(0..0, |of| of.columns.clone())
    }

    /// The largest magnitude of each attribute, where attributes are real values.
    pub(crate) fn value_sizes(&self) -> Option<impl Iterator<Item = f64>> {
        let attributes = (0..self.graph.attribute_count() as u32).map(AttributeId);
        self.graph.values().map(|values| attributes.map(|attribute| values.largest(attribute)))
    }

    /// What the ones of a node's row are divided by before and after flips, of which is told whether each adds an attribute.
    pub(crate) fn divisors(&self, node: NodeId, adds: impl Iterator<Item = bool>) -> (f64, f64) {
        let ones = self.graph.attributes().row(node.index()).len();
        let (added, removed) = adds.fold((0, 0), |(a, r), adds| if adds { (a + 1, r) } else { (a, r + 1) });
        let kind = self.graph.kind();
        (kind.divisor(ones), kind.divisor((ones + added).saturating_sub(removed)))
    }

    /// `X_n W` for each of `nodes`: the sum of the weights of the attributes that n has, divided as their kind says, or times their values.
    pub(crate) fn attribute_sums(&self, nodes: &[u32]) -> Matrix {
        let weight = self.attribute_weight();
        if let Some(values) = self.graph.values() {
            return par_fill(nodes.len(), weight.columns(), |row, sums| {
                let entries = values.row(NodeId(nodes[row])).iter().enumerate().filter(|&(_, &x)| x != 0.0);
                add_rows(sums, entries.map(|(d, &x)| (x, weight.row(d))));
            });
        }
        par_fill(nodes.len(), weight.columns(), |row, sums| {
            let attributes = self.graph.attributes().row(nodes[row] as usize);
            add_rows(sums, attributes.iter().map(|&attribute| (1.0, weight.row(attribute as usize))));
            let divisor = self.graph.kind().divisor(attributes.len());
            if divisor != 1.0 {
                sums.iter_mut().for_each(|sum| *sum /= divisor);
            }
        })
    }
}

/// The weights of all terms that read the attributes side by side, and which columns are whose.
fn attribute_weight(model: &Model) -> (Cow<'_, Matrix>, Vec<AttributeTerm>) {
    let (mut terms, mut weights, mut width) = (Vec::new(), Vec::new(), 0);
    for (i, layer) in model.layers().iter().enumerate() {
        for (k, term) in layer.terms().iter().enumerate().filter(|(_, term)| term.source() == Source::Attributes) {
            terms.push(AttributeTerm { layer: i, term: k, columns: width..width + layer.units() });
            weights.push(term.weight());
            width += layer.units();
        }
    }
    if let [Weight::Dense(weight)] = weights[..] {
        return (Cow::Borrowed(weight), terms);
    }
    let mut all = Matrix::zeros(model.attributes(), width);
    for attribute in 0..model.attributes() {
        for (weight, AttributeTerm { columns, .. }) in weights.iter().zip(&terms) {
            let row = &mut all.row_mut(attribute)[columns.clone()];
            match weight {
                Weight::Dense(weight) => row.copy_from_slice(weight.row(attribute)),
                Weight::Scalar(factor) => row[attribute] = *factor,
            }
        }
    }
    (Cow::Owned(all), terms)
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
    use crate::attributes::AttributeKind;
    use crate::model::Propagation;

    #[test]
    fn a_slice_sees_what_the_whole_graph_sees() {
        for seed in 0..30 {
            let mut random = ChaCha8Rng::seed_from_u64(crate::seed::seed(seed));
            let mut pairs = |count: usize, to: u32| -> Vec<(u32, u32)> {
                (0..count).map(|_| (random.random_range(0..20), random.random_range(0..to))).collect()
            };
            // Enough flips for some node to gain as many attributes as it loses.
            let (edges, ones, flips) = (pairs(25, 20), pairs(40, 9), pairs(40, 9));
            let sizes: &[usize] = [&[9, 3][..], &[9, 4, 3], &[9, 5, 4, 2]][seed as usize % 3];
            let layers = sizes.windows(2).map(|pair| {
                let mut numbers =
                    |count: usize| (0..count).map(|_| random.random_range(-1.0..1.0)).collect::<Vec<f64>>();
                (Matrix::from_values(pair[0], pair[1], numbers(pair[0] * pair[1])), numbers(pair[1]))
            });
            let kind = if seed % 2 == 0 { AttributeKind::Bits } else { AttributeKind::NormalisedRows };
            let model = Model::gcn(layers.collect(), Propagation::RowNormalised).unwrap().with_kind(kind);
            let graph = Graph::new(20, 9, &edges, &ones).unwrap().with_kind(kind);
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
            let tampered = Graph::new(20, 9, &edges, &tampered).unwrap().with_kind(kind);
            let some = [7, 19, 0, 7].map(NodeId);
            for (row, node) in some.iter().enumerate() {
                assert_eq!(network.logits_of(&some).row(row), whole.row(node.index()), "to the last bit");
            }
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

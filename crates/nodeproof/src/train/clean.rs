//! The network on the attributes as they are: logits of a set of targets, and the gradient of whatever is made of them.

use rayon::prelude::*;

use super::dropout::Dropout;
use crate::backward;
use crate::dense::{Matrix, add_scaled, par_fill};
use crate::forward::{self, Carried, Values};
use crate::gradient::Gradient;
use crate::graph::Graph;
use crate::ids::NodeId;
use crate::kernels::add_rows;
use crate::model::{Activation, Layer, Model, Source, Term, Weight};
use crate::slice::{Hop, Region, level_of};
use crate::sparse::{Pattern, SparseMatrix};

/// What a set of targets sees, for networks that are put together in one way.
#[derive(Debug)]
pub(super) struct CleanNetwork {
    /// The targets, ascending, each once.
    targets: Vec<u32>,
    /// For each layer those of its terms.
    hops: Vec<Vec<BothWays>>,
    /// The attributes of level 0, and for each attribute the places that have it.
    rows: Pattern,
    columns: Pattern,
    /// In their place the attributes of level 0, where they are real values.
    values: Option<Matrix>,
    /// What the ones of each row of level 0 are divided by.
    divisors: Vec<f64>,
}

/// P of a term between the level that it reads (columns) and that of its layer (rows), and its transpose. Of a term that reads
/// the constant 1 the one column has the sums of the rows of P.
#[derive(Debug)]
struct BothWays {
    forth: SparseMatrix,
    back: SparseMatrix,
}

impl BothWays {
    fn new(region: &Region, propagation: &SparseMatrix, source: Source, layer: usize) -> Self {
        let hop = region.hop(propagation, source, layer);
        let (rows, columns) = (hop.rows(), level_of(source).map_or(1, |level| region.level(level).nodes().len()));
        let row = |row: usize| hop.row(row).map(move |(column, p)| (row as u32, column as u32, p));
        let triplets: Vec<_> = (0..rows).flat_map(row).collect();
        let turned: Vec<_> = triplets.iter().map(|&(row, column, p)| (column, row, p)).collect();
        Self {
            forth: SparseMatrix::from_triplets(rows, columns, &triplets),
            back: SparseMatrix::from_triplets(columns, rows, &turned),
        }
    }
}

/// What the backward pass needs of the forward pass of one layer.
#[derive(Debug)]
struct Pass {
    /// `P h` of each term, a row for each place; nothing of terms whose weight is applied before P, or is no matrix.
    gathered: Vec<Matrix>,
    /// The activations, a row for each place.
    activations: Matrix,
    /// Their derivative by the pre-activations, dropout included; `None` for 1 everywhere.
    slope: Option<Matrix>,
}

/// What the backward pass needs of the forward pass of all layers.
#[derive(Debug)]
pub(super) struct Passes(Vec<Pass>);

impl Passes {
    /// The logits, a row for each target.
    pub(super) fn logits(&self) -> &Matrix {
        &self.0[self.0.len() - 1].activations
    }
}

impl CleanNetwork {
    /// What `targets` see of networks put together as `model` is, with these matrices for its propagations.
    pub(super) fn new(graph: &Graph, model: &Model, matrices: &[SparseMatrix], targets: &[NodeId]) -> Self {
        let region = Region::around(model, matrices, targets);
        let hop =
            |layer: usize, term: &Term| BothWays::new(&region, &matrices[term.propagation()], term.source(), layer);
        let layer = |(i, layer): (usize, &Layer)| layer.terms().iter().map(|term| hop(i, term)).collect();
        let inputs = region.level(0).nodes();
        let attribute_pairs: Vec<(u32, u32)> = inputs
            .iter()
            .zip(0u32..)
            .flat_map(|(&node, place)| graph.attributes().row(node as usize).iter().map(move |&d| (place, d)))
            .collect();
        let values = graph.values().map(|values| {
            let rows = inputs.iter().flat_map(|&node| values.row(NodeId(node)).iter().copied());
            Matrix::from_values(inputs.len(), graph.attribute_count(), rows.collect())
        });
        Self {
            targets: region.targets().nodes().to_vec(),
            values,
            hops: model.layers().iter().enumerate().map(layer).collect(),
            rows: Pattern::from_pairs(inputs.len(), graph.attribute_count(), &attribute_pairs),
            columns: graph.attributes().turned(inputs),
            divisors: inputs.iter().map(|&n| graph.kind().divisor(graph.attributes().row(n as usize).len())).collect(),
        }
    }

    /// Number of targets, each counted once.
    pub(super) fn targets(&self) -> usize {
        self.targets.len()
    }

    /// The row of a target's logits.
    ///
    /// # Panics
    /// If it is not one.
    pub(super) fn place(&self, target: NodeId) -> usize {
        self.targets.binary_search(&target.0).unwrap_or_else(|_| unreachable!("node {target} is a target"))
    }

    /// All layers, one after the other; the activations of the last are the logits of the targets.
    pub(super) fn forward(&self, layers: &[Layer], dropout: Option<Dropout>) -> Passes {
        let mut passes = Vec::with_capacity(layers.len());
        for (i, layer) in layers.iter().enumerate() {
            let (mut values, gathered) = self.layer(i, layer, &passes);
            let slope = layer.is_hidden().then(|| slopes(&values, layer.activation(), dropout, i));
            scale(&mut values, slope.as_ref());
            passes.push(Pass { gathered, activations: values, slope });
        }
        Passes(passes)
    }

    /// `Z = Σ P h W + b` of a layer, and `P h` of its terms.
    fn layer(&self, i: usize, layer: &Layer, before: &[Pass]) -> (Matrix, Vec<Matrix>) {
        let hops = &self.hops[i];
        let mut values = Matrix::zeros(hops[0].forth.rows(), layer.units());
        for (term, hop) in layer.terms().iter().zip(hops).filter(|(term, _)| term.source() == Source::Attributes) {
            add(&mut values, &forward::gathered(&hop.forth, &self.attribute_sums(term.weight(), layer.units())));
        }
        for row in 0..values.rows() {
            add_scaled(values.row_mut(row), 1.0, layer.bias());
        }
        let mut all = Vec::with_capacity(hops.len());
        for (term, hop) in layer.terms().iter().zip(hops) {
            let gathered = match term.source() {
                Source::Attributes => {
                    all.push(Matrix::default());
                    continue;
                }
                Source::Layer(source) => forward::gathered(&hop.forth, &before[source].activations),
                Source::Ones => forward::gathered(&hop.forth, &Matrix::from_values(1, 1, vec![1.0])),
            };
            add_products(&mut values, &gathered, term.weight());
            all.push(if term.weight().dense().is_some() { gathered } else { Matrix::default() });
        }
        (values, all)
    }

    /// The derivative of `Σ errors · logits`, for those of `passes`.
    pub(super) fn gradient(&self, layers: &[Layer], passes: &Passes, errors: Matrix) -> Gradient {
        let zeros = |term: &Term| term.weight().dense().map(|weight| Matrix::zeros(weight.rows(), weight.columns()));
        let mut gradient = Gradient {
            weights: layers.iter().map(|layer| layer.terms().iter().map(zeros).collect()).collect(),
            biases: layers.iter().map(|layer| vec![0.0; layer.units()]).collect(),
        };
        self.backward(layers, passes, errors, &mut gradient);
        gradient
    }

    /// From the derivative by the logits, `errors`, to the gradient, which replaces `gradient`.
    pub(super) fn backward(&self, layers: &[Layer], passes: &Passes, errors: Matrix, gradient: &mut Gradient) {
        gradient.clear();
        let passes = &passes.0;
        let mut by_activations: Vec<Option<Matrix>> = passes.iter().map(|_| None).collect();
        by_activations[passes.len() - 1] = Some(errors);
        for (i, layer) in layers.iter().enumerate().rev() {
            let Some(mut errors) = by_activations[i].take() else { continue };
            scale(&mut errors, passes[i].slope.as_ref());
            column_sums(&errors, &mut gradient.biases[i]);
            for (k, term) in layer.terms().iter().enumerate() {
                if let Some(by_weight) = &mut gradient.weights[i][k] {
                    *by_weight = match term.source() {
                        Source::Attributes => self.by_attribute_weight(&self.hops[i][k], &errors),
                        Source::Layer(_) | Source::Ones => product_transposed(&passes[i].gathered[k], &errors),
                    };
                }
                if let Source::Layer(source) = term.source() {
                    let by_gathered = backward::through_weight(term.weight(), &errors);
                    let back = forward::gathered(&self.hops[i][k].back, &by_gathered);
                    match &mut by_activations[source] {
                        Some(sum) => add(sum, &back),
                        none => *none = Some(back),
                    }
                }
            }
        }
    }

    /// The derivative by the weight of a term that reads the attributes, `Xᵀ Pᵀ errors`.
    fn by_attribute_weight(&self, hop: &BothWays, errors: &Matrix) -> Matrix {
        let mut by_sums = forward::gathered(&hop.back, errors);
        if let Some(values) = &self.values {
            return product_transposed(values, &by_sums);
        }
        for (place, divisor) in self.divisors.iter().enumerate() {
            divide(by_sums.row_mut(place), *divisor);
        }
        par_fill(self.columns.rows(), by_sums.columns(), |attribute, values| {
            add_rows(values, self.columns.row(attribute).iter().map(|&place| (1.0, by_sums.row(place as usize))));
        })
    }

    /// `X W` for each place of level 0.
    fn attribute_sums(&self, weight: &Weight, units: usize) -> Matrix {
        if let Some(values) = &self.values {
            return par_fill(values.rows(), units, |place, sums| Values::add_product(sums, values.row(place), weight));
        }
        par_fill(self.rows.rows(), units, |place, sums| {
            let attributes = self.rows.row(place).iter();
            match weight {
                Weight::Dense(weight) => add_rows(sums, attributes.map(|&d| (1.0, weight.row(d as usize)))),
                Weight::Scalar(factor) => attributes.for_each(|&d| sums[d as usize] = *factor),
            }
            divide(sums, self.divisors[place]);
        })
    }
}

/// Divides by what the ones of a row are divided by.
fn divide(values: &mut [f64], divisor: f64) {
    if divisor != 1.0 {
        values.iter_mut().for_each(|value| *value /= divisor);
    }
}

/// Derivative of the activations at pre-activations `z`, dropout included.
fn slopes(z: &Matrix, activation: Activation, dropout: Option<Dropout>, layer: usize) -> Matrix {
    par_fill(z.rows(), z.columns(), |row, slopes| {
        match dropout {
            Some(dropout) => dropout.factors(layer, row, slopes),
            None => slopes.fill(1.0),
        }
        for (slope, _) in slopes.iter_mut().zip(z.row(row)).filter(|&(_, &z)| z.is_nan() || z <= 0.0) {
            *slope *= activation.slope();
        }
    })
}

/// Multiplies each number by its factor.
fn scale(values: &mut Matrix, factors: Option<&Matrix>) {
    for (value, factor) in values.values_mut().iter_mut().zip(factors.iter().flat_map(|factors| factors.values())) {
        *value *= factor;
    }
}

fn add(sum: &mut Matrix, other: &Matrix) {
    add_scaled(sum.values_mut(), 1.0, other.values());
}

/// `values += sums W` for each row, in parallel.
fn add_products(values: &mut Matrix, sums: &Matrix, weight: &Weight) {
    let units = values.columns();
    let rows = values.values_mut().par_chunks_exact_mut(units).enumerate();
    rows.for_each(|(row, out)| Values::add_product(out, sums.row(row), weight));
}

fn column_sums(matrix: &Matrix, sums: &mut [f64]) {
    sums.fill(0.0);
    add_rows(sums, (0..matrix.rows()).map(|row| (1.0, matrix.row(row))));
}

/// `Aᵀ B`, rows summed in order.
fn product_transposed(a: &Matrix, b: &Matrix) -> Matrix {
    let columns: Vec<Vec<f64>> = (0..a.columns())
        .into_par_iter()
        .map(|column| {
            let mut sums = vec![0.0; b.columns()];
            add_rows(&mut sums, (0..a.rows()).map(|row| (a.get(row, column), b.row(row))));
            sums
        })
        .collect();
    Matrix::from_values(a.columns(), b.columns(), columns.concat())
}

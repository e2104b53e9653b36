//! Cross entropy of the exact network, and its gradient, on what a set of targets sees.

use rayon::prelude::*;

use super::dropout::Dropout;
use crate::backward;
use crate::dense::{Matrix, add_scaled, par_fill};
use crate::forward::{self, Carried, Values};
use crate::gradient::Gradient;
use crate::graph::Graph;
use crate::ids::{ClassId, NodeId};
use crate::kernels::add_rows;
use crate::model::{Activation, Layer, Model, Source, Term, Weight};
use crate::slice::{Hop, Region, level_of};
use crate::sparse::{Pattern, SparseMatrix};

/// The mean over targets of `−log softmax(logits)_label`.
#[derive(Debug)]
pub(super) struct CrossEntropy {
    /// For each layer those of its terms.
    hops: Vec<Vec<BothWays>>,
    /// The attributes of level 0, and for each attribute the places that have it.
    rows: Pattern,
    columns: Pattern,
    /// In their place the attributes of level 0, where they are real values.
    values: Option<Matrix>,
    /// What the ones of each row of level 0 are divided by.
    divisors: Vec<f64>,
    /// The label of each place of the last level.
    labels: Vec<ClassId>,
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
struct Pass {
    /// `P h` of each term, a row for each place; nothing of terms whose weight is applied before P, or is no matrix.
    gathered: Vec<Matrix>,
    /// The activations, a row for each place.
    activations: Matrix,
    /// Their derivative by the pre-activations, dropout included; `None` for 1 everywhere.
    slope: Option<Matrix>,
}

impl CrossEntropy {
    /// The cross entropy of `targets` for networks put together as `model` is, with these matrices for its propagations.
    pub(super) fn new(graph: &Graph, model: &Model, matrices: &[SparseMatrix], targets: &[(NodeId, ClassId)]) -> Self {
        let nodes: Vec<NodeId> = targets.iter().map(|&(node, _)| node).collect();
        let region = Region::around(model, matrices, &nodes);
        let hop =
            |layer: usize, term: &Term| BothWays::new(&region, &matrices[term.propagation()], term.source(), layer);
        let layer = |(i, layer): (usize, &Layer)| layer.terms().iter().map(|term| hop(i, term)).collect();
        let inputs = region.level(0).nodes();
        let attribute_pairs: Vec<(u32, u32)> = inputs
            .iter()
            .zip(0u32..)
            .flat_map(|(&node, place)| graph.attributes().row(node as usize).iter().map(move |&d| (place, d)))
            .collect();
        let mut labels = vec![ClassId(0); region.targets().nodes().len()];
        for &(node, label) in targets {
            labels[region.targets().place(node.0)] = label;
        }
        let values = graph.values().map(|values| {
            let rows = inputs.iter().flat_map(|&node| values.row(NodeId(node)).iter().copied());
            Matrix::from_values(inputs.len(), graph.attribute_count(), rows.collect())
        });
        Self {
            values,
            hops: model.layers().iter().enumerate().map(layer).collect(),
            rows: Pattern::from_pairs(inputs.len(), graph.attribute_count(), &attribute_pairs),
            columns: graph.attributes().turned(inputs),
            divisors: inputs.iter().map(|&n| graph.kind().divisor(graph.attributes().row(n as usize).len())).collect(),
            labels,
        }
    }

    /// The loss at `model`; `weight` times its gradient replaces `gradient`.
    pub(super) fn evaluate(
        &self,
        model: &Model,
        dropout: Option<Dropout>,
        weight: f64,
        gradient: &mut Gradient,
    ) -> f64 {
        let passes = self.forward(model, dropout);
        let (loss, mut errors) = self.loss(logits(&passes));
        errors.values_mut().iter_mut().for_each(|error| *error *= weight);
        self.backward(model, &passes, errors, gradient);
        loss
    }

    /// The loss at `model`, without dropout.
    pub(super) fn value(&self, model: &Model) -> f64 {
        self.loss(logits(&self.forward(model, None))).0
    }

    /// All layers, one after the other; the activations of the last are the logits of the targets.
    fn forward(&self, model: &Model, dropout: Option<Dropout>) -> Vec<Pass> {
        let mut passes = Vec::with_capacity(model.layers().len());
        for (i, layer) in model.layers().iter().enumerate() {
            let (mut values, gathered) = self.layer(i, layer, &passes);
            let slope = layer.is_hidden().then(|| slopes(&values, layer.activation(), dropout, i));
            scale(&mut values, slope.as_ref());
            passes.push(Pass { gathered, activations: values, slope });
        }
        passes
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

    /// The loss of these logits, and its derivative by them.
    fn loss(&self, logits: &Matrix) -> (f64, Matrix) {
        let count = logits.rows().max(1) as f64;
        let mut errors = logits.clone();
        let mut loss = 0.0;
        for (row, label) in self.labels.iter().enumerate() {
            let row = errors.row_mut(row);
            let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let own = row[label.index()] - largest;
            row.iter_mut().for_each(|logit| *logit = (*logit - largest).exp());
            let total: f64 = row.iter().sum();
            loss += total.ln() - own;
            row.iter_mut().for_each(|share| *share /= total * count);
            row[label.index()] -= 1.0 / count;
        }
        (loss / count, errors)
    }

    /// From the derivative by the logits to the gradient.
    fn backward(&self, model: &Model, passes: &[Pass], errors: Matrix, gradient: &mut Gradient) {
        gradient.clear();
        let mut by_activations: Vec<Option<Matrix>> = passes.iter().map(|_| None).collect();
        by_activations[passes.len() - 1] = Some(errors);
        for (i, layer) in model.layers().iter().enumerate().rev() {
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

/// The logits of the targets.
fn logits(passes: &[Pass]) -> &Matrix {
    &passes[passes.len() - 1].activations
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

//! Cross entropy of the exact network, and its gradient, on what a set of targets sees.

use rayon::prelude::*;

use super::dropout::Dropout;
use crate::backward;
use crate::dense::{Matrix, add_scaled, par_fill, relu};
use crate::forward::{self, Activation, Values};
use crate::gradient::Gradient;
use crate::graph::Graph;
use crate::ids::{ClassId, NodeId};
use crate::kernels::add_rows;
use crate::model::Model;
use crate::slice::Region;
use crate::sparse::{Pattern, SparseMatrix};

/// The mean over targets of `−log softmax(logits)_label`.
#[derive(Debug)]
pub(super) struct CrossEntropy {
    /// P between level i (columns) and level i + 1 (rows), and its transpose.
    hops: Vec<(SparseMatrix, SparseMatrix)>,
    /// The attributes of level 0, and for each attribute the places that have it.
    rows: Pattern,
    columns: Pattern,
    /// The label of each place of the last level.
    labels: Vec<ClassId>,
}

/// What the backward pass needs of the forward pass of one layer.
struct Pass {
    /// `P · input`, a row for each place (for the first layer: nothing).
    gathered: Matrix,
    /// Derivative of the activations: 0, or the factor of dropout.
    slope: Matrix,
}

impl CrossEntropy {
    pub(super) fn new(graph: &Graph, propagation: &SparseMatrix, targets: &[(NodeId, ClassId)], layers: usize) -> Self {
        let nodes: Vec<NodeId> = targets.iter().map(|&(node, _)| node).collect();
        let region = Region::around(propagation, &nodes, layers);
        let hop = |level: usize| {
            let mut triplets = Vec::new();
            for (row, &m) in region.level(level + 1).nodes().iter().enumerate() {
                let (columns, values) = propagation.row(m as usize);
                let entry = |(&n, &p)| (row as u32, region.level(level).place(n) as u32, p);
                triplets.extend(columns.iter().zip(values).map(entry));
            }
            let (rows, columns) = (region.level(level + 1).nodes().len(), region.level(level).nodes().len());
            let turned: Vec<_> = triplets.iter().map(|&(row, column, p)| (column, row, p)).collect();
            (SparseMatrix::from_triplets(rows, columns, &triplets), SparseMatrix::from_triplets(columns, rows, &turned))
        };
        let inputs = region.level(0).nodes();
        let attribute_pairs: Vec<(u32, u32)> = inputs
            .iter()
            .zip(0u32..)
            .flat_map(|(&node, place)| graph.attributes().row(node as usize).iter().map(move |&d| (place, d)))
            .collect();
        let turned: Vec<_> = attribute_pairs.iter().map(|&(place, attribute)| (attribute, place)).collect();
        let mut labels = vec![ClassId(0); region.level(layers).nodes().len()];
        for &(node, label) in targets {
            labels[region.level(layers).place(node.0)] = label;
        }
        Self {
            hops: (0..layers).map(hop).collect(),
            rows: Pattern::from_pairs(inputs.len(), graph.attribute_count(), &attribute_pairs),
            columns: Pattern::from_pairs(graph.attribute_count(), inputs.len(), &turned),
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
        let (logits, passes) = self.forward(model, dropout);
        let (loss, mut errors) = self.loss(&logits);
        errors.values_mut().iter_mut().for_each(|error| *error *= weight);
        self.backward(model, &passes, errors, gradient);
        loss
    }

    /// The loss at `model`, without dropout.
    pub(super) fn value(&self, model: &Model) -> f64 {
        self.loss(&self.forward(model, None).0).0
    }

    /// The logits of the targets, and what the backward pass needs of each layer.
    fn forward(&self, model: &Model, dropout: Option<Dropout>) -> (Matrix, Vec<Pass>) {
        let layers = model.layers();
        let mut passes = Vec::with_capacity(layers.len());
        let sums = self.attribute_sums(layers[0].weight());
        let mut values = forward::gathered::<Values>(&self.hops[0].0, &sums, Activation::None);
        for row in 0..values.rows() {
            add_scaled(values.row_mut(row), 1.0, layers[0].bias());
        }
        let mut gathered = Matrix::default();
        for (i, layer) in layers.iter().enumerate().skip(1) {
            let slope = slopes(&values, dropout, i - 1);
            for (value, slope) in values.values_mut().iter_mut().zip(slope.values()) {
                *value *= slope;
            }
            passes.push(Pass { gathered, slope });
            gathered = forward::gathered::<Values>(&self.hops[i].0, &values, Activation::None);
            values = forward::transformed(layer, &gathered);
        }
        passes.push(Pass { gathered, slope: Matrix::default() });
        (values, passes)
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
    fn backward(&self, model: &Model, passes: &[Pass], mut errors: Matrix, gradient: &mut Gradient) {
        for layer in (1..passes.len()).rev() {
            column_sums(&errors, &mut gradient.biases[layer]);
            gradient.weights[layer] = product_transposed(&passes[layer].gathered, &errors);
            let by_gathered = backward::through_weight(model.layers()[layer].weight(), &errors);
            errors = forward::gathered::<Values>(&self.hops[layer].1, &by_gathered, Activation::None);
            for (error, slope) in errors.values_mut().iter_mut().zip(passes[layer - 1].slope.values()) {
                *error *= slope;
            }
        }
        column_sums(&errors, &mut gradient.biases[0]);
        let by_sums = forward::gathered::<Values>(&self.hops[0].1, &errors, Activation::None);
        gradient.weights[0] = par_fill(self.columns.rows(), by_sums.columns(), |attribute, values| {
            add_rows(values, self.columns.row(attribute).iter().map(|&place| (1.0, by_sums.row(place as usize))));
        });
    }

    /// `X W⁰` for each place of level 0.
    fn attribute_sums(&self, weight: &Matrix) -> Matrix {
        par_fill(self.rows.rows(), weight.columns(), |place, sums| {
            add_rows(sums, self.rows.row(place).iter().map(|&attribute| (1.0, weight.row(attribute as usize))));
        })
    }
}

/// Derivative of the activations at pre-activations `z`, dropout included.
fn slopes(z: &Matrix, dropout: Option<Dropout>, layer: usize) -> Matrix {
    par_fill(z.rows(), z.columns(), |row, slopes| {
        match dropout {
            Some(dropout) => dropout.factors(layer, row, slopes),
            None => slopes.fill(1.0),
        }
        for (slope, &z) in slopes.iter_mut().zip(z.row(row)) {
            if relu(z) == 0.0 {
                *slope = 0.0;
            }
        }
    })
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

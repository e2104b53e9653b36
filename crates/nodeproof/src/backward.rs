//! The one walk over the layers from the logits back to the attributes, whatever is carried.
//!
//! A number that depends on `Z = Σ P h W + b` with coefficients (or derivatives) λ depends on what a term reads with
//! `Pᵀ λ Wᵀ`: each node's λ goes *through the weight*, and is then *spread* over the nodes that it gathers from.

use std::ops::Range;

use crate::dense::{add_scaled, dot, par_fill};
use crate::kernels::{InnerProduct, Loops, Work, add_rows, dispatch, vectorised_loops};
use crate::matrix::Matrix;
use crate::model::Weight;
use crate::slice::Hop;

/// A kind of coefficient that can be carried back through the layers.
pub(crate) trait CarriedBack {
    /// What is carried for each unit of a node.
    type Number: Clone + Default;

    /// Whether a node's coefficients have no effect.
    fn is_zero(&self, _above: &[Self::Number]) -> bool {
        false
    }

    /// `Σ_units λ_unit W_unit` over one row of the weight.
    fn through_weight(&self, above: &[Self::Number], weight: &[f64]) -> Self::Number;

    /// Appends `λ Wᵀ` to `back`.
    fn through_matrix(&self, above: &[Self::Number], weight: &Matrix, back: &mut Vec<Self::Number>) {
        back.extend((0..weight.rows()).map(|input| self.through_weight(above, weight.row(input))));
    }

    /// `below += p · back` at node `n` of the level below.
    fn spread(&self, n: usize, below: &mut [Self::Number], p: f64, back: &[Self::Number]);
}

/// Adds `Pᵀ λ Wᵀ` to `below`, where λ are the rows of `above`; `back` is scratch space.
pub(crate) fn term<C: CarriedBack>(
    carried: &C,
    hop: &impl Hop,
    weight: &Weight,
    above: &Matrix<C::Number>,
    back: &mut Vec<C::Number>,
    below: &mut Matrix<C::Number>,
) {
    for row in 0..above.rows() {
        let above = above.row(row);
        if carried.is_zero(above) {
            continue;
        }
        back.clear();
        match weight {
            Weight::Dense(weight) => carried.through_matrix(above, weight, back),
            Weight::Scalar(factor) => {
                back.extend(above.chunks(1).map(|unit| carried.through_weight(unit, &[*factor])));
            }
        }
        hop.row(row).for_each(|(n, p)| carried.spread(n, below.row_mut(n), p, back));
    }
}

/// Adds `Pᵀ λ Wᵀ` like [`term`], given Wᵀ and what to make of P: rows of Wᵀ are added up, which takes less time than inner products
/// and rounds differently.
pub(crate) fn transposed_term(
    hop: &impl Hop,
    of_p: impl Fn(f64) -> f64,
    transposed: &Weight,
    above: &Matrix,
    back: &mut Vec<f64>,
    below: &mut Matrix,
) {
    vectorised_loops(TransposedTerm { hop, of_p, transposed, above, back, below });
}

/// The loops of [`transposed_term`].
struct TransposedTerm<'t, H, F> {
    hop: &'t H,
    of_p: F,
    transposed: &'t Weight,
    above: &'t Matrix,
    back: &'t mut Vec<f64>,
    below: &'t mut Matrix,
}

impl<H: Hop, F: Fn(f64) -> f64> Loops for TransposedTerm<'_, H, F> {
    #[inline(always)]
    fn run(self) {
        let Self { hop, of_p, transposed, above, back, below } = self;
        for row in 0..above.rows() {
            let above = above.row(row);
            back.clear();
            match transposed {
                Weight::Dense(transposed) => {
                    back.resize(transposed.columns(), 0.0);
                    add_rows(back, above.iter().enumerate().map(|(unit, &lambda)| (lambda, transposed.row(unit))));
                }
                Weight::Scalar(factor) => back.extend(above.iter().map(|lambda| factor * lambda)),
            }
            hop.row(row).for_each(|(n, p)| add_scaled(below.row_mut(n), of_p(p), back));
        }
    }
}

/// Adds `Pᵀ λ` to some columns of `below`: the way back through a term whose weight was applied before the propagation, as
/// those that read the attributes are.
pub(crate) fn spread<C: CarriedBack>(
    carried: &C,
    hop: &impl Hop,
    above: &Matrix<C::Number>,
    columns: Range<usize>,
    below: &mut Matrix<C::Number>,
) {
    for row in 0..above.rows() {
        hop.row(row).for_each(|(n, p)| carried.spread(n, &mut below.row_mut(n)[columns.clone()], p, above.row(row)));
    }
}

/// `λ Wᵀ` for each row of λ, in parallel.
pub(crate) fn through_weight(weight: &Weight, above: &Matrix) -> Matrix {
    match weight {
        Weight::Dense(weight) => par_fill(above.rows(), weight.rows(), |row, back| {
            for (input, back) in back.iter_mut().enumerate() {
                *back = Coefficients.through_weight(above.row(row), weight.row(input));
            }
        }),
        Weight::Scalar(factor) => {
            let values = above.values().iter().map(|value| factor * value).collect();
            Matrix::from_values(above.rows(), above.columns(), values)
        }
    }
}

/// The coefficients or derivatives themselves, rounded as they come.
pub(crate) struct Coefficients;

impl CarriedBack for Coefficients {
    type Number = f64;

    #[inline]
    fn through_weight(&self, above: &[f64], weight: &[f64]) -> f64 {
        dot(above, weight)
    }

    fn through_matrix(&self, above: &[f64], weight: &Matrix, back: &mut Vec<f64>) {
        dispatch(Products { above, weight, back });
    }

    #[inline]
    fn spread(&self, _: usize, below: &mut [f64], p: f64, back: &[f64]) {
        add_scaled(below, p, back);
    }
}

/// `λ Wᵀ`, one inner product for each row of W.
struct Products<'a> {
    above: &'a [f64],
    weight: &'a Matrix,
    back: &'a mut Vec<f64>,
}

impl Work for Products<'_> {
    #[inline(always)]
    fn run(self, inner_product: impl InnerProduct) {
        let Self { above, weight, back } = self;
        back.extend((0..weight.rows()).map(|input| inner_product.of(above, weight.row(input))));
    }
}

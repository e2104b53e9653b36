//! The one walk over the layers from the attributes to the logits, whatever is carried.
//!
//! Layer i is a sum `Z = Σ_k P_k h_k W_k + b` over its terms: for each of them a node *gathers* `Σ_n P_mn h_n`, and the sums
//! are multiplied by W; terms that read the attributes find these multiplied by W already. What is carried through may be values
//! ([`Values`]), bounds with their errors ([`Intervals`]), bounds on the magnitude of all numbers on the way ([`Magnitudes`]),
//! or exact numbers (`exact::Exact`).

use std::ops::Range;

use crate::dense::{add_scaled, par_fill};
use crate::kernels::{add_activated_rows, add_rows};
use crate::matrix::Matrix;
use crate::model::{Activation, Weight};
use crate::rounding::{gamma_after, magnitude};
use crate::slice::Hop;

/// A kind of number that can be carried through the layers.
pub(crate) trait Carried: Sync {
    /// What is carried for each unit of a node.
    type Number: Clone + Default + Send + Sync;

    /// A number of the network itself, such as a bias. Here and below, `gamma` is what a sum may be off by, relative to the
    /// sum of the magnitudes of its terms.
    fn constant(x: f64, gamma: f64) -> Self::Number;

    /// `sums_j += Σ_n p_n h_nj` over `rows` of weights p_n and rows of pre-activations, h being their activations.
    fn gather<'r>(
        sums: &mut [Self::Number],
        rows: impl Iterator<Item = (f64, &'r [Self::Number])> + Clone,
        activation: Activation,
        gamma: f64,
    ) where
        Self::Number: 'r;

    /// `out += sums W`.
    fn add_product(out: &mut [Self::Number], sums: &[Self::Number], weight: &Weight);
}

/// One term of a layer on its way: what it gathers from, and what becomes of it.
pub(crate) struct Link<'l, H, N> {
    /// P.
    pub(crate) hop: H,
    /// The pre-activations that it reads, and which of their columns.
    pub(crate) below: &'l Matrix<N>,
    pub(crate) columns: Range<usize>,
    /// What they go through.
    pub(crate) activation: Activation,
    /// W; `None` where the pre-activations have been multiplied by it.
    pub(crate) weight: Option<&'l Weight>,
}

impl<'l, H: Hop, N: Clone + Default> Link<'l, H, N> {
    fn row(&self, row: usize) -> impl Iterator<Item = (f64, &'l [N])> + Clone {
        let (below, columns) = (self.below, &self.columns);
        let Range { start, end } = *columns;
        let width = below.columns();
        self.hop.row(row).map(move |(n, p)| (p, &below.values()[n * width + start..n * width + end]))
    }
}

/// `Z = Σ P h W + b`, in parallel; `links` are the terms.
pub(crate) fn layer<C: Carried>(rows: usize, bias: &[f64], links: &[Link<impl Hop, C::Number>]) -> Matrix<C::Number> {
    par_fill(rows, bias.len(), |row, out| layer_row::<C>(bias, links, row, &mut Vec::new(), out))
}

/// The same on the calling thread, reusing memory: `out` is replaced, `sums` is scratch space.
pub(crate) fn layer_into<C: Carried>(
    rows: usize,
    bias: &[f64],
    links: &[Link<impl Hop, C::Number>],
    sums: &mut Vec<C::Number>,
    out: &mut Matrix<C::Number>,
) {
    out.reset(rows, bias.len());
    for row in 0..rows {
        layer_row::<C>(bias, links, row, sums, out.row_mut(row));
    }
}

fn layer_row<C: Carried>(
    bias: &[f64],
    links: &[Link<impl Hop, C::Number>],
    row: usize,
    sums: &mut Vec<C::Number>,
    out: &mut [C::Number],
) {
    let gamma = gamma_of(links, row);
    out.iter_mut().zip(bias).for_each(|(out, &b)| *out = C::constant(b, gamma));
    add_terms::<C>(links, row, gamma, sums, out);
}

/// What a row of a layer may be off by, relative to the magnitudes of what is added up in it.
pub(crate) fn gamma_of<N: Clone + Default>(links: &[Link<impl Hop, N>], row: usize) -> f64 {
    gamma_after(links.iter().map(|link| link.hop.row_length(row) + link.columns.len()).sum::<usize>() + 8)
}

/// Adds the terms of a layer to a row of it.
pub(crate) fn add_terms<C: Carried>(
    links: &[Link<impl Hop, C::Number>],
    row: usize,
    gamma: f64,
    sums: &mut Vec<C::Number>,
    out: &mut [C::Number],
) {
    for link in links {
        let Some(weight) = link.weight else {
            C::gather(out, link.row(row), link.activation, gamma);
            continue;
        };
        sums.clear();
        sums.resize(link.columns.len(), C::Number::default());
        C::gather(sums, link.row(row), link.activation, gamma);
        C::add_product(out, sums, weight);
    }
}

/// `P h`, in parallel.
pub(crate) fn gathered(hop: &impl Hop, below: &Matrix) -> Matrix {
    par_fill(hop.rows(), below.columns(), |row, sums| add_rows(sums, hop.row(row).map(|(n, p)| (p, below.row(n)))))
}

/// The numbers themselves, rounded as they come.
pub(crate) struct Values;

impl Carried for Values {
    type Number = f64;

    fn constant(x: f64, _: f64) -> f64 {
        x
    }

    #[inline]
    fn gather<'r>(
        sums: &mut [f64],
        rows: impl Iterator<Item = (f64, &'r [f64])> + Clone,
        activation: Activation,
        _: f64,
    ) {
        match activation {
            Activation::None => add_rows(sums, rows),
            Activation::Relu => add_activated_rows(sums, rows, |x| Activation::Relu.of(x)),
            Activation::LeakyRelu(slope) => add_activated_rows(sums, rows, |x| if x > 0.0 { x } else { slope * x }),
        }
    }

    #[inline]
    fn add_product(out: &mut [f64], sums: &[f64], weight: &Weight) {
        match weight {
            Weight::Dense(weight) => {
                add_rows(out, sums.iter().enumerate().map(|(input, &factor)| (factor, weight.row(input))));
            }
            Weight::Scalar(factor) => add_scaled(out, *factor, sums),
        }
    }
}

/// Bounds on a pre-activation over all admissible sets, and how far it and they may be off by rounding.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Interval {
    pub(crate) lo: f64,
    pub(crate) hi: f64,
    pub(crate) error: f64,
}

impl Interval {
    /// Adds `factor · [lo, hi]`; a negative factor turns the ends around.
    #[inline]
    fn add(&mut self, factor: f64, lo: f64, hi: f64) {
        let (smaller, larger) = if factor >= 0.0 { (lo, hi) } else { (hi, lo) };
        self.lo += factor * smaller;
        self.hi += factor * larger;
    }

    /// Adds that of sums, whose rounding is in their error.
    #[inline]
    fn add_product(&mut self, w: f64, sum: &Interval) {
        self.add(w, sum.lo, sum.hi);
        self.error += magnitude(w * sum.error);
    }
}

/// Interval arithmetic (Lemma 7 of `docs/maths.md`): with σ the activation, which is monotone, a factor p or w takes the lower
/// end of what it multiplies to the lower end of the product where it is positive, and the upper one where it is negative. For
/// P ≥ 0, `W₊ = max(W, 0)` and `W₋ = max(−W, 0)`,
///
/// ```text
/// lo' = P (σ(lo) W₊ − σ(hi) W₋) + b,     hi' = P (σ(hi) W₊ − σ(lo) W₋) + b.
/// ```
///
/// The paper has `lo` and `hi` in place of `relu(lo)` and `relu(hi)`, and no b. That is not sound: a unit with hi < 0
/// contributes 0, not `hi · w`, so that its `hi'` is too low for w > 0 and its `lo'` too high for w < 0.
///
/// *Errors.* Ends and exact pre-activations alike are sums of products `p h w`, off by at most γ times the sum of their
/// magnitudes, and by the errors of the h, which count twice: adding them up rounds, too.
pub(crate) struct Intervals;

impl Carried for Intervals {
    type Number = Interval;

    fn constant(x: f64, gamma: f64) -> Interval {
        Interval { lo: x, hi: x, error: gamma * magnitude(x) }
    }

    fn gather<'r>(
        sums: &mut [Interval],
        rows: impl Iterator<Item = (f64, &'r [Interval])> + Clone,
        activation: Activation,
        gamma: f64,
    ) {
        for (p, row) in rows.filter(|&(p, _)| p != 0.0) {
            for (sum, unit) in sums.iter_mut().zip(row) {
                let (lo, hi) = (activation.of(unit.lo), activation.of(unit.hi));
                sum.add(p, lo, hi);
                sum.error += magnitude(p * (2.0 * unit.error + gamma * magnitude(lo.abs().max(hi.abs()))));
            }
        }
    }

    fn add_product(out: &mut [Interval], sums: &[Interval], weight: &Weight) {
        match weight {
            Weight::Dense(weight) => {
                for (input, sum) in sums.iter().enumerate() {
                    out.iter_mut().zip(weight.row(input)).for_each(|(out, &w)| out.add_product(w, sum));
                }
            }
            Weight::Scalar(factor) => out.iter_mut().zip(sums).for_each(|(out, sum)| out.add_product(*factor, sum)),
        }
    }
}

/// Bounds on the magnitude of a number, of all partial sums on the way to it, and of whatever underflows there (Lemma 28).
pub(crate) struct Magnitudes;

impl Carried for Magnitudes {
    type Number = f64;

    fn constant(x: f64, _: f64) -> f64 {
        magnitude(x)
    }

    fn gather<'r>(sums: &mut [f64], rows: impl Iterator<Item = (f64, &'r [f64])> + Clone, _: Activation, _: f64) {
        for (p, row) in rows {
            sums.iter_mut().zip(row).for_each(|(sum, &x)| *sum += magnitude(p * x));
        }
    }

    fn add_product(out: &mut [f64], sums: &[f64], weight: &Weight) {
        match weight {
            Weight::Dense(weight) => {
                for (input, &sum) in sums.iter().enumerate() {
                    out.iter_mut().zip(weight.row(input)).for_each(|(out, &w)| *out += magnitude(w * sum));
                }
            }
            Weight::Scalar(factor) => {
                out.iter_mut().zip(sums).for_each(|(out, &sum)| *out += magnitude(factor * sum));
            }
        }
    }
}

//! The one walk over the layers from the attributes to the logits, whatever is carried.
//!
//! Layer i turns activations `h` of the level below into `Z = P h W + b`: each node *gathers* `Σ_n P_mn h_n`, and the sums are
//! *transformed* by W and b. What is carried through may be values ([`Values`]), bounds with their errors ([`Intervals`]),
//! bounds on the magnitude of all numbers on the way ([`Magnitudes`]), or exact numbers (`exact::Exact`).

use crate::dense::{add_scaled, par_fill, relu};
use crate::kernels::{add_activated_rows, add_rows};
use crate::matrix::Matrix;
use crate::model::Layer;
use crate::rounding::{gamma_after, magnitude};
use crate::slice::Hop;

/// What a layer's pre-activations go through before they are gathered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Activation {
    /// Nothing: they are activations already.
    None,
    /// The rectifier.
    Relu,
}

/// A kind of number that can be carried through the layers.
pub(crate) trait Carried: Sync {
    /// What is carried for each unit of a node.
    type Number: Clone + Default + Send + Sync;

    /// A bias.
    fn bias(b: f64) -> Self::Number;

    /// `sums_j += Σ_n p_n h_nj` over `rows` of weights p_n and rows of pre-activations, h being their activations.
    fn gather<'r>(
        sums: &mut [Self::Number],
        rows: impl Iterator<Item = (f64, &'r [Self::Number])> + Clone,
        activation: Activation,
    ) where
        Self::Number: 'r;

    /// `out = sums W + b`, each of the sums being one of `terms` terms.
    fn transform(layer: &Layer, sums: &[Self::Number], terms: usize, out: &mut [Self::Number]);
}

/// `Z⁰ = P s + b⁰` from the attribute sums `s = X W⁰`, in parallel.
pub(crate) fn first<C: Carried>(hop: &impl Hop, bias: &[f64], sums: &Matrix<C::Number>) -> Matrix<C::Number> {
    par_fill(hop.rows(), bias.len(), |row, out| {
        out.iter_mut().zip(bias).for_each(|(out, &b)| *out = C::bias(b));
        C::gather(out, hop.row(row).map(|(n, p)| (p, sums.row(n))), Activation::None);
    })
}

/// `Z = P h W + b` from the pre-activations of the level below, in parallel.
pub(crate) fn layer<C: Carried>(
    hop: &impl Hop,
    layer: &Layer,
    below: &Matrix<C::Number>,
    activation: Activation,
) -> Matrix<C::Number> {
    par_fill(hop.rows(), layer.bias().len(), |row, out| {
        let mut sums = vec![C::Number::default(); below.columns()];
        layer_row::<C>(hop, layer, below, activation, row, &mut sums, out);
    })
}

/// The same on the calling thread, reusing memory: `out` is replaced, `sums` is scratch space.
pub(crate) fn layer_into<C: Carried>(
    hop: &impl Hop,
    layer: &Layer,
    below: &Matrix<C::Number>,
    activation: Activation,
    sums: &mut Vec<C::Number>,
    out: &mut Matrix<C::Number>,
) {
    out.reset(hop.rows(), layer.bias().len());
    for row in 0..hop.rows() {
        sums.clear();
        sums.resize(below.columns(), C::Number::default());
        layer_row::<C>(hop, layer, below, activation, row, sums, out.row_mut(row));
    }
}

fn layer_row<C: Carried>(
    hop: &impl Hop,
    layer: &Layer,
    below: &Matrix<C::Number>,
    activation: Activation,
    row: usize,
    sums: &mut [C::Number],
    out: &mut [C::Number],
) {
    C::gather(sums, hop.row(row).map(|(n, p)| (p, below.row(n))), activation);
    C::transform(layer, sums, hop.row_length(row), out);
}

/// `P h`, in parallel.
pub(crate) fn gathered<C: Carried>(
    hop: &impl Hop,
    below: &Matrix<C::Number>,
    activation: Activation,
) -> Matrix<C::Number> {
    par_fill(hop.rows(), below.columns(), |row, sums| {
        C::gather(sums, hop.row(row).map(|(n, p)| (p, below.row(n))), activation);
    })
}

/// `sums W + b` for each row, in parallel.
pub(crate) fn transformed(layer: &Layer, sums: &Matrix) -> Matrix {
    par_fill(sums.rows(), layer.bias().len(), |row, out| Values::transform(layer, sums.row(row), 0, out))
}

/// The numbers themselves, rounded as they come.
pub(crate) struct Values;

impl Carried for Values {
    type Number = f64;

    fn bias(b: f64) -> f64 {
        b
    }

    #[inline]
    fn gather<'r>(sums: &mut [f64], rows: impl Iterator<Item = (f64, &'r [f64])> + Clone, activation: Activation) {
        match activation {
            Activation::None => add_rows(sums, rows),
            Activation::Relu => add_activated_rows(sums, rows),
        }
    }

    fn transform(layer: &Layer, sums: &[f64], _: usize, out: &mut [f64]) {
        out.copy_from_slice(layer.bias());
        for (input, &factor) in sums.iter().enumerate() {
            add_scaled(out, factor, layer.weight().row(input));
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

/// Interval arithmetic for P ≥ 0 (Lemma 7 of `docs/maths.md`): with `W₊ = max(W, 0)` and
/// `W₋ = max(−W, 0)`,
///
/// ```text
/// lo' = P (relu(lo) W₊ − relu(hi) W₋) + b,     hi' = P (relu(hi) W₊ − relu(lo) W₋) + b.
/// ```
///
/// The paper has `lo` and `hi` in place of `relu(lo)` and `relu(hi)`, and no b. That is not sound: a unit with hi < 0
/// contributes 0, not `hi · w`, so that its `hi'` is too low for w > 0 and its `lo'` too high for w < 0.
pub(crate) struct Intervals;

impl Carried for Intervals {
    type Number = Interval;

    fn bias(b: f64) -> Interval {
        Interval { lo: b, hi: b, error: 0.0 }
    }

    fn gather<'r>(
        sums: &mut [Interval],
        rows: impl Iterator<Item = (f64, &'r [Interval])> + Clone,
        activation: Activation,
    ) {
        for (p, row) in rows {
            for (sum, unit) in sums.iter_mut().zip(row) {
                let (lo, hi) = match activation {
                    Activation::None => (unit.lo, unit.hi),
                    Activation::Relu => (relu(unit.lo), relu(unit.hi)),
                };
                sum.lo += p * lo;
                sum.hi += p * hi;
                sum.error += p * unit.error;
            }
        }
    }

    fn transform(layer: &Layer, sums: &[Interval], terms: usize, out: &mut [Interval]) {
        let gamma = gamma_after(terms + sums.len() + 8);
        for (out, &b) in out.iter_mut().zip(layer.bias()) {
            *out = Interval { lo: b, hi: b, error: gamma * magnitude(b) };
        }
        for (input, sum) in sums.iter().enumerate() {
            // Twice the error that comes from below: its own computation rounds, too.
            let error = 2.0 * sum.error + gamma * magnitude(sum.hi);
            for (out, &w) in out.iter_mut().zip(layer.weight().row(input)) {
                let (smaller, larger) = if w >= 0.0 { (sum.lo, sum.hi) } else { (sum.hi, sum.lo) };
                out.lo += smaller * w;
                out.hi += larger * w;
                out.error += magnitude(w) * error;
            }
        }
    }
}

/// Bounds on the magnitude of a number, of all partial sums on the way to it, and of whatever underflows there (Lemma 28).
pub(crate) struct Magnitudes;

impl Carried for Magnitudes {
    type Number = f64;

    fn bias(b: f64) -> f64 {
        magnitude(b)
    }

    fn gather<'r>(sums: &mut [f64], rows: impl Iterator<Item = (f64, &'r [f64])> + Clone, _: Activation) {
        for (p, row) in rows {
            sums.iter_mut().zip(row).for_each(|(sum, &x)| *sum += magnitude(p * x));
        }
    }

    fn transform(layer: &Layer, sums: &[f64], _: usize, out: &mut [f64]) {
        out.iter_mut().zip(layer.bias()).for_each(|(out, &b)| *out = magnitude(b));
        for (input, &sum) in sums.iter().enumerate() {
            out.iter_mut().zip(layer.weight().row(input)).for_each(|(out, &w)| *out += magnitude(w * sum));
        }
    }
}

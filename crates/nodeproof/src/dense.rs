//! Loops over dense rows, and matrices filled in parallel.

use rayon::prelude::*;

pub(crate) use nodeproof_problem::Matrix;

/// A matrix whose rows are filled by `fill(row, values)`, in parallel; the result does not depend on the number of threads.
pub(crate) fn par_fill<T: Clone + Default + Send>(
    rows: usize,
    columns: usize,
    fill: impl Fn(usize, &mut [T]) + Sync,
) -> Matrix<T> {
    let mut matrix = Matrix::zeros(rows, columns);
    if columns > 0 {
        let rows = matrix.values_mut().par_chunks_exact_mut(columns).enumerate();
        rows.for_each(|(row, values)| fill(row, values));
    }
    matrix
}

/// `Σ_j a_j b_j`, summed in eight interleaved lanes: one order of additions, whatever vectors the machine has.
#[inline(always)]
pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    debug_assert_eq!(a.len(), b.len());
    let (a8, a_rest) = a.as_chunks::<8>();
    let (b8, b_rest) = b.as_chunks::<8>();
    let mut lanes = [0.0; 8];
    for (x, y) in a8.iter().zip(b8) {
        for lane in 0..8 {
            lanes[lane] += x[lane] * y[lane];
        }
    }
    let rest: f64 = a_rest.iter().zip(b_rest).map(|(x, y)| x * y).sum();
    let four: [f64; 4] = std::array::from_fn(|lane| lanes[lane] + lanes[lane + 4]);
    (four[0] + four[2]) + (four[1] + four[3]) + rest
}

/// `a_j += factor · b_j`.
#[inline(always)]
pub(crate) fn add_scaled(a: &mut [f64], factor: f64, b: &[f64]) {
    debug_assert_eq!(a.len(), b.len());
    for (x, &y) in a.iter_mut().zip(b) {
        *x += factor * y;
    }
}

/// The rectifier, max(x, 0).
#[inline]
pub(crate) fn relu(x: f64) -> f64 {
    if x > 0.0 { x } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dot_of_every_length() {
        for length in 0..20 {
            let a: Vec<f64> = (0..length).map(f64::from).collect();
            let expected: f64 = a.iter().map(|x| x * x).sum();
            assert_eq!(dot(&a, &a), expected);
        }
    }
}

//! Dense row-major matrices and the loops over their rows.

use rayon::prelude::*;

/// A dense matrix of `f64`, row by row.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Matrix {
    rows: usize,
    columns: usize,
    values: Vec<f64>,
}

impl Matrix {
    /// A matrix of zeros.
    pub fn zeros(rows: usize, columns: usize) -> Self {
        Self { rows, columns, values: vec![0.0; rows * columns] }
    }

    /// A matrix with these values, row by row.
    ///
    /// # Panics
    /// If there are not `rows · columns` values.
    pub fn from_values(rows: usize, columns: usize, values: Vec<f64>) -> Self {
        let expected = rows.checked_mul(columns);
        assert_eq!(Some(values.len()), expected, "a {rows} × {columns} matrix needs rows times columns values");
        Self { rows, columns, values }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// All values, row by row.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// All values, row by row, to be changed.
    pub(crate) fn values_mut(&mut self) -> &mut [f64] {
        &mut self.values
    }

    /// Row `row`.
    #[inline]
    pub fn row(&self, row: usize) -> &[f64] {
        &self.values[row * self.columns..(row + 1) * self.columns]
    }

    /// Row `row`, to be changed.
    #[inline]
    pub fn row_mut(&mut self, row: usize) -> &mut [f64] {
        &mut self.values[row * self.columns..(row + 1) * self.columns]
    }

    /// The value at (`row`, `column`).
    #[inline]
    pub fn get(&self, row: usize, column: usize) -> f64 {
        self.values[row * self.columns + column]
    }

    /// Makes this a matrix of zeros of another shape, keeping its memory.
    pub(crate) fn reset(&mut self, rows: usize, columns: usize) {
        self.rows = rows;
        self.columns = columns;
        self.values.clear();
        self.values.resize(rows * columns, 0.0);
    }

    /// Fills each row by `fill(row, values)`, in parallel; the result does not depend on the number of threads.
    pub(crate) fn par_fill(rows: usize, columns: usize, fill: impl Fn(usize, &mut [f64]) + Sync) -> Self {
        let mut matrix = Self::zeros(rows, columns);
        if columns > 0 {
            let rows = matrix.values.par_chunks_exact_mut(columns).enumerate();
            rows.for_each(|(row, values)| fill(row, values));
        }
        matrix
    }

    /// The transpose.
    pub(crate) fn transposed(&self) -> Self {
        let mut turned = Self::zeros(self.columns, self.rows);
        for row in 0..self.rows {
            for (column, &value) in self.row(row).iter().enumerate() {
                turned.values[column * self.rows + row] = value;
            }
        }
        turned
    }
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

    #[test]
    fn transposed_twice_is_the_same() {
        let matrix = Matrix::from_values(2, 3, vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        assert_eq!(matrix.transposed().row(2), [3.0, 6.0]);
        assert_eq!(matrix.transposed().transposed(), matrix);
    }
}

//! Dense row-major matrices.

/// A dense matrix, row by row; of `f64` where nothing else is said.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Matrix<T = f64> {
    rows: usize,
    columns: usize,
    values: Vec<T>,
}

impl<T: Clone + Default> Matrix<T> {
    /// A matrix of zeros, or of what `T` is by default.
    pub fn zeros(rows: usize, columns: usize) -> Self {
        Self { rows, columns, values: vec![T::default(); rows * columns] }
    }

    /// A matrix with these values, row by row.
    ///
    /// # Panics
    /// If there are not `rows · columns` values.
    pub fn from_values(rows: usize, columns: usize, values: Vec<T>) -> Self {
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
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// All values, row by row, to be changed.
    pub fn values_mut(&mut self) -> &mut [T] {
        &mut self.values
    }

    /// Row `row`.
    #[inline]
    pub fn row(&self, row: usize) -> &[T] {
        &self.values[row * self.columns..(row + 1) * self.columns]
    }

    /// Row `row`, to be changed.
    #[inline]
    pub fn row_mut(&mut self, row: usize) -> &mut [T] {
        &mut self.values[row * self.columns..(row + 1) * self.columns]
    }

    /// The value at (`row`, `column`).
    #[inline]
    pub fn get(&self, row: usize, column: usize) -> T {
        self.values[row * self.columns + column].clone()
    }

    /// Makes this a matrix of zeros of another shape, keeping its memory.
    pub fn reset(&mut self, rows: usize, columns: usize) {
        self.rows = rows;
        self.columns = columns;
        self.values.clear();
        self.values.resize(rows * columns, T::default());
    }

    /// Makes it a matrix of this shape with values that are yet to be written.
    pub fn reshape(&mut self, rows: usize, columns: usize) {
        self.rows = rows;
        self.columns = columns;
        self.values.resize(rows * columns, T::default());
    }

    /// The transpose.
    pub fn transposed(&self) -> Self {
        let mut turned = Self::zeros(self.columns, self.rows);
        for row in 0..self.rows {
            for (column, value) in self.row(row).iter().enumerate() {
                turned.values[column * self.rows + row] = value.clone();
            }
        }
        turned
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transposed_twice_is_the_same() {
        let matrix = Matrix::from_values(2, 3, vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        assert_eq!(matrix.transposed().row(2), [3.0, 6.0]);
        assert_eq!(matrix.transposed().transposed(), matrix);
    }
}

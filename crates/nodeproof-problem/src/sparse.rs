//! Sparse matrices in compressed row form, with 32-bit column ids.

use std::ops::Range;

/// A sparse binary matrix: row `i` lists its columns in ascending order, each once.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Pattern {
    columns: usize,
    offsets: Vec<usize>,
    indices: Vec<u32>,
}

impl Pattern {
    /// Builds a matrix from `(row, column)` pairs in any order; repeated pairs count once.
    ///
    /// # Panics
    /// If a pair lies outside `rows` × `columns`.
    pub fn from_pairs(rows: usize, columns: usize, pairs: &[(u32, u32)]) -> Self {
        let mut offsets = vec![0usize; rows + 1];
        for &(row, column) in pairs {
            assert!((column as usize) < columns, "column {column} of {columns}");
            offsets[row as usize + 1] += 1;
        }
        for row in 0..rows {
            offsets[row + 1] += offsets[row];
        }
        let mut next = offsets.clone();
        let mut indices = vec![0u32; pairs.len()];
        for &(row, column) in pairs {
            let slot = &mut next[row as usize];
            indices[*slot] = column;
            *slot += 1;
        }
        let mut kept = 0;
        let mut start = 0;
        for row in 0..rows {
            let end = offsets[row + 1];
            indices[start..end].sort_unstable();
            let first = kept;
            for i in start..end {
                if kept == first || indices[kept - 1] != indices[i] {
                    indices[kept] = indices[i];
                    kept += 1;
                }
            }
            start = end;
            offsets[row + 1] = kept;
        }
        indices.truncate(kept);
        indices.shrink_to_fit();
        Self { columns, offsets, indices }
    }

    /// For each column the positions in `rows` of those rows that have an entry there.
    pub fn turned(&self, rows: &[u32]) -> Self {
        let mut offsets = vec![0usize; self.columns + 1];
        for &row in rows {
            self.row(row as usize).iter().for_each(|&column| offsets[column as usize + 1] += 1);
        }
        for column in 0..self.columns {
            offsets[column + 1] += offsets[column];
        }
        let mut next = offsets.clone();
        let mut indices = vec![0; offsets[self.columns]];
        for (position, &row) in rows.iter().enumerate() {
            for &column in self.row(row as usize) {
                indices[next[column as usize]] = position as u32;
                next[column as usize] += 1;
            }
        }
        Self { columns: rows.len(), offsets, indices }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Number of entries that are 1.
    pub fn entries(&self) -> usize {
        self.indices.len()
    }

    /// The columns of row `row`, ascending.
    #[inline]
    pub fn row(&self, row: usize) -> &[u32] {
        &self.indices[self.range(row)]
    }

    /// Whether the entry at (`row`, `column`) is 1. Logarithmic in the row's length.
    #[inline]
    pub fn contains(&self, row: usize, column: u32) -> bool {
        self.row(row).binary_search(&column).is_ok()
    }

    /// All entries as `(row, column)`, row by row.
    pub fn iter(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        (0..self.rows()).flat_map(move |row| self.row(row).iter().map(move |&c| (row as u32, c)))
    }

    /// Row starts, with the number of entries at the end.
    pub fn offsets(&self) -> &[usize] {
        &self.offsets
    }

    /// Column ids of all rows, one row after the other.
    pub fn indices(&self) -> &[u32] {
        &self.indices
    }

    #[inline]
    fn range(&self, row: usize) -> Range<usize> {
        self.offsets[row]..self.offsets[row + 1]
    }
}

/// A sparse matrix of `f64`: a [`Pattern`] with a value for each entry.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SparseMatrix {
    pattern: Pattern,
    values: Vec<f64>,
}

impl SparseMatrix {
    /// Gives each entry of `pattern` the value `value(row, column)`.
    pub fn from_pattern(pattern: Pattern, value: impl Fn(u32, u32) -> f64) -> Self {
        let values = pattern.iter().map(|(row, column)| value(row, column)).collect();
        Self { pattern, values }
    }

    /// Builds a matrix from `(row, column, value)` triplets in any order; values of the same position are summed,
    /// in the order given.
    ///
    /// # Panics
    /// If a triplet lies outside `rows` × `columns`.
    pub fn from_triplets(rows: usize, columns: usize, triplets: &[(u32, u32, f64)]) -> Self {
        let pairs: Vec<_> = triplets.iter().map(|&(row, column, _)| (row, column)).collect();
        let pattern = Pattern::from_pairs(rows, columns, &pairs);
        let mut values = vec![0.0; pattern.entries()];
        for &(row, column, value) in triplets {
            let range = pattern.range(row as usize);
            if let Ok(position) = pattern.indices[range.clone()].binary_search(&column) {
                values[range.start + position] += value;
            }
        }
        Self { pattern, values }
    }

    /// Where the entries are.
    pub fn pattern(&self) -> &Pattern {
        &self.pattern
    }

    /// The values of all rows, one row after the other.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.pattern.rows()
    }

    /// Columns and values of row `row`.
    #[inline]
    pub fn row(&self, row: usize) -> (&[u32], &[f64]) {
        let range = self.pattern.range(row);
        (&self.pattern.indices[range.clone()], &self.values[range])
    }

    /// The product with another matrix, entries of a row summed in the order of the columns that they pass through.
    pub fn times(&self, other: &Self) -> Self {
        let columns = other.pattern.columns;
        let (mut sums, mut seen) = (vec![0.0; columns], vec![false; columns]);
        let mut product =
            Self { pattern: Pattern { columns, offsets: vec![0], indices: Vec::new() }, values: Vec::new() };
        let mut touched: Vec<u32> = Vec::new();
        for row in 0..self.rows() {
            let (through, factors) = self.row(row);
            for (&middle, &factor) in through.iter().zip(factors) {
                let (targets, values) = other.row(middle as usize);
                for (&column, &value) in targets.iter().zip(values) {
                    if !std::mem::replace(&mut seen[column as usize], true) {
                        touched.push(column);
                    }
                    sums[column as usize] += factor * value;
                }
            }
            touched.sort_unstable();
            for column in touched.drain(..) {
                product.pattern.indices.push(column);
                product.values.push(std::mem::take(&mut sums[column as usize]));
                seen[column as usize] = false;
            }
            product.pattern.offsets.push(product.pattern.indices.len());
        }
        product
    }

    /// The sum with so many times the identity.
    pub fn plus_diagonal(&self, factor: f64) -> Self {
        let entries = self.pattern.iter().zip(&self.values).map(|((row, column), &value)| (row, column, value));
        let diagonal = (0..self.rows() as u32).map(|node| (node, node, factor));
        let all: Vec<_> = entries.chain(diagonal).collect();
        Self::from_triplets(self.rows(), self.pattern.columns, &all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_sorted_and_deduplicated() {
        let pattern = Pattern::from_pairs(3, 4, &[(2, 1), (0, 3), (0, 0), (2, 1), (0, 3)]);
        assert_eq!(pattern.row(0), [0, 3]);
        assert_eq!(pattern.row(1), [0u32; 0]);
        assert_eq!(pattern.row(2), [1]);
        assert_eq!(pattern.entries(), 3);
        assert!(pattern.contains(0, 3) && !pattern.contains(1, 3));
    }

    #[test]
    fn chosen_rows_are_turned() {
        let turned = Pattern::from_pairs(4, 3, &[(0, 0), (1, 2), (2, 0), (2, 2), (3, 1)]).turned(&[2, 0]);
        assert_eq!(turned, Pattern::from_pairs(3, 2, &[(0, 0), (0, 1), (2, 0)]));
    }

    #[test]
    fn triplets_of_one_place_are_summed() {
        let matrix = SparseMatrix::from_triplets(2, 2, &[(1, 0, 0.5), (0, 1, 2.0), (1, 0, 0.25)]);
        assert_eq!(matrix.row(0), (&[1u32][..], &[2.0][..]));
        assert_eq!(matrix.row(1), (&[0u32][..], &[0.75][..]));
    }
}

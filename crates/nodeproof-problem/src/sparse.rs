//! Sparse matrices in compressed row form, with 32-bit column ids.

use std::ops::Range;

/// A sparse binary matrix: row `i` lists its columns in ascending order, each once.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Pattern {
    columns: usize,
    offsets: Vec<usize>,
    indices: Vec<u32>,
}

/// What keeps offsets and columns from being a matrix, and in which row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Malformed {
    /// Offsets decrease there, or go beyond the indices.
    Offsets { row: usize },
    /// The columns of the row do not ascend.
    Order { row: usize },
    /// The last column of the row is none.
    Column { row: usize, column: u32 },
}

impl Pattern {
    /// Builds a matrix from `(row, column)` pairs in any order; repeated pairs count once.
    ///
    /// # Panics
    /// If a pair lies outside `rows` × `columns`.
    pub fn from_pairs(rows: usize, columns: usize, pairs: &[(u32, u32)]) -> Self {
        Self::from_entries(rows, columns, || pairs.iter().copied())
    }

    /// The same for pairs that need not be kept: they are gone through twice, and must be the same ones then.
    ///
    /// # Panics
    /// If a pair lies outside `rows` × `columns`.
    pub fn from_entries<I: Iterator<Item = (u32, u32)>>(rows: usize, columns: usize, pairs: impl Fn() -> I) -> Self {
        let mut offsets = vec![0usize; rows + 1];
        for (row, column) in pairs() {
            assert!((column as usize) < columns, "column {column} of {columns}");
            offsets[row as usize + 1] += 1;
        }
        for row in 0..rows {
            offsets[row + 1] += offsets[row];
        }
        let mut next = offsets.clone();
        let mut indices = vec![0u32; offsets[rows]];
        for (row, column) in pairs() {
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

    /// A matrix with these columns row by row, where `offsets` say, if each row has them ascending and once; what was given otherwise.
    ///
    /// # Panics
    /// If a column is not below `columns`, or the offsets are not those of as many indices.
    pub(crate) fn from_sorted(
        columns: usize,
        offsets: Vec<usize>,
        indices: Vec<u32>,
    ) -> Result<Self, (Vec<usize>, Vec<u32>)> {
        assert!(indices.iter().all(|&column| (column as usize) < columns), "columns are below {columns}");
        if !offsets.windows(2).all(|row| indices[row[0]..row[1]].is_sorted_by(|a, b| a < b)) {
            return Err((offsets, indices));
        }
        Ok(Self { columns, offsets, indices })
    }

    /// A matrix of what may come from anywhere, gone through once.
    ///
    /// # Errors
    /// If it is none: offsets must begin with 0, not decrease, and end with the number of indices; the columns of each row must ascend, and be
    /// below `columns`.
    pub(crate) fn checked(columns: usize, offsets: Vec<usize>, indices: Vec<u32>) -> Result<Self, Malformed> {
        if offsets.first() != Some(&0) {
            return Err(Malformed::Offsets { row: 0 });
        }
        for (row, ends) in offsets.windows(2).enumerate() {
            let here = indices.get(ends[0]..ends[1]).ok_or(Malformed::Offsets { row })?;
            if !here.is_sorted_by(|a, b| a < b) {
                return Err(Malformed::Order { row });
            }
            if let Some(&column) = here.last().filter(|&&column| column as usize >= columns) {
                return Err(Malformed::Column { row, column });
            }
        }
        if offsets.last() != Some(&indices.len()) {
            return Err(Malformed::Offsets { row: offsets.len() - 1 });
        }
        Ok(Self { columns, offsets, indices })
    }

    /// Whether `(b, a)` is an entry wherever `(a, b)` is.
    pub fn is_symmetric(&self) -> bool {
        if self.rows() != self.columns {
            return false;
        }
        // Rows that have column b come up in ascending order, as they stand in row b.
        let mut next = self.offsets[..self.rows()].to_vec();
        self.iter().all(|(a, b)| {
            let place = &mut next[b as usize];
            let has = *place < self.offsets[b as usize + 1] && self.indices[*place] == a;
            *place += 1;
            has
        })
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

    /// The same with 1 in each place of the diagonal of a square matrix.
    #[must_use]
    pub fn with_diagonal(&self) -> Self {
        let mut offsets = Vec::with_capacity(self.rows() + 1);
        offsets.push(0);
        let mut indices = Vec::with_capacity(self.entries() + self.rows());
        for row in 0..self.rows() {
            let (columns, own) = (self.row(row), row as u32);
            let (before, after) = columns.split_at(columns.partition_point(|&column| column < own));
            indices.extend_from_slice(before);
            indices.push(own);
            indices.extend_from_slice(after.strip_prefix(&[own]).unwrap_or(after));
            offsets.push(indices.len());
        }
        Self { columns: self.columns, offsets, indices }
    }

    /// Some of the rows, in this order.
    pub fn of_rows(&self, rows: &[u32]) -> Self {
        let mut offsets = Vec::with_capacity(rows.len() + 1);
        offsets.push(0);
        let mut indices = Vec::new();
        for &row in rows {
            indices.extend_from_slice(self.row(row as usize));
            offsets.push(indices.len());
        }
        Self { columns: self.columns, offsets, indices }
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

    /// Row starts and column ids.
    pub(crate) fn into_parts(self) -> (Vec<usize>, Vec<u32>) {
        (self.offsets, self.indices)
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

/// Where more than one column in so many has an entry, looking at all of them is faster than sorting those.
const SORTED_SHARE: usize = 16;

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

    /// A square matrix of the size `nodes` with these `rows`, ascending, at the places that `place` tells, and with their columns there, too;
    /// other rows are empty. Places keep the order of rows and columns.
    ///
    /// # Panics
    /// If the place of a row or of one of its columns is not below `nodes`, or places do not keep the order.
    pub fn renumbered(&self, nodes: usize, rows: &[u32], place: impl Fn(u32) -> u32) -> Self {
        let mut offsets = vec![0; nodes + 1];
        for &row in rows {
            offsets[place(row) as usize + 1] = self.row(row as usize).0.len();
        }
        for row in 0..nodes {
            offsets[row + 1] += offsets[row];
        }
        let (mut indices, mut values) = (Vec::with_capacity(offsets[nodes]), Vec::with_capacity(offsets[nodes]));
        for &row in rows {
            let (columns, entries) = self.row(row as usize);
            indices.extend(columns.iter().map(|&column| place(column)));
            values.extend_from_slice(entries);
        }
        let pattern = Pattern::from_sorted(nodes, offsets, indices);
        Self { pattern: pattern.unwrap_or_else(|_| panic!("places keep the order of columns")), values }
    }

    /// The same with magnitudes in place of values.
    #[must_use]
    pub fn absolute(&self) -> Self {
        Self { values: self.values.iter().map(|value| value.abs()).collect(), ..self.clone() }
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

    /// `A B + factor · I` with A this matrix and B another one, the entries of a row summed in the order of the columns that they
    /// pass through; `None` if it has more than `most` entries.
    pub fn times_plus_diagonal(&self, other: &Self, factor: f64, most: usize) -> Option<Self> {
        let columns = other.pattern.columns;
        let (mut sums, mut seen) = (vec![0.0; columns], vec![false; columns]);
        let mut product =
            Self { pattern: Pattern { columns, offsets: vec![0], indices: Vec::new() }, values: Vec::new() };
        let mut touched: Vec<u32> = Vec::new();
        for row in 0..self.rows() {
            let mut add = |column: u32, value: f64| {
                if !std::mem::replace(&mut seen[column as usize], true) {
                    touched.push(column);
                }
                sums[column as usize] += value;
            };
            let (through, factors) = self.row(row);
            for (&middle, &factor) in through.iter().zip(factors) {
                let (targets, values) = other.row(middle as usize);
                targets.iter().zip(values).for_each(|(&column, &value)| add(column, factor * value));
            }
            if factor != 0.0 {
                add(row as u32, factor);
            }
            if product.pattern.indices.len() + touched.len() > most {
                return None;
            }
            if touched.len() < columns / SORTED_SHARE {
                touched.sort_unstable();
            } else {
                touched.clear();
                touched.extend((0u32..).zip(&seen).filter(|&(_, &seen)| seen).map(|(column, _)| column));
            }
            for column in touched.drain(..) {
                product.pattern.indices.push(column);
                product.values.push(std::mem::take(&mut sums[column as usize]));
                seen[column as usize] = false;
            }
            product.pattern.offsets.push(product.pattern.indices.len());
        }
        Some(product)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_are_sorted_are_taken_as_they_are() {
        let taken = Pattern::from_sorted(4, vec![0, 2, 2, 3], vec![0, 3, 1]).unwrap();
        assert_eq!(taken, Pattern::from_pairs(3, 4, &[(2, 1), (0, 3), (0, 0)]));
        for indices in [vec![3, 0, 1], vec![3, 3, 1]] {
            assert_eq!(Pattern::from_sorted(4, vec![0, 2, 2, 3], indices.clone()).unwrap_err().1, indices);
        }
    }

    #[test]
    fn symmetry_is_seen() {
        let is_symmetric = |nodes: usize, pairs: &[(u32, u32)]| Pattern::from_pairs(nodes, nodes, pairs).is_symmetric();
        assert!(is_symmetric(3, &[(0, 1), (1, 0), (2, 2), (1, 2), (2, 1)]) && is_symmetric(2, &[]));
        for pairs in [&[(0, 1)][..], &[(1, 0)], &[(0, 1), (1, 2), (2, 0)], &[(0, 1), (1, 0), (0, 2)]] {
            assert!(!is_symmetric(3, pairs), "{pairs:?}");
        }
        assert!(!Pattern::from_pairs(2, 3, &[(0, 1), (1, 0)]).is_symmetric());
    }

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
    fn a_diagonal_is_added_where_there_is_none() {
        let pairs = [(0, 2), (1, 1), (1, 0), (2, 0), (2, 2), (2, 3), (3, 3)];
        let diagonal: Vec<_> = pairs.into_iter().chain((0..5).map(|place| (place, place))).collect();
        assert_eq!(Pattern::from_pairs(5, 5, &pairs).with_diagonal(), Pattern::from_pairs(5, 5, &diagonal));
    }

    /// Every `step`-th entry of a square matrix, and all of row 0.
    fn every(step: u32, nodes: u32) -> SparseMatrix {
        let places = (0..nodes * nodes).filter(|place| *place < nodes || place % step == 0);
        let triplets: Vec<_> = places.map(|place| (place / nodes, place % nodes, f64::from(place % 7) - 3.0)).collect();
        SparseMatrix::from_triplets(nodes as usize, nodes as usize, &triplets)
    }

    fn dense(matrix: &SparseMatrix) -> Vec<Vec<f64>> {
        let mut rows = vec![vec![0.0; matrix.pattern().columns]; matrix.rows()];
        for ((row, column), value) in matrix.pattern().iter().zip(matrix.values()) {
            rows[row as usize][column as usize] = *value;
        }
        rows
    }

    #[test]
    fn products_have_every_entry_once_and_in_order() {
        for (nodes, steps) in [(5, [1, 3]), (40, [11, 300]), (40, [300, 300]), (64, [64, 5])] {
            let [a, b] = steps.map(|step| every(step, nodes));
            let product = a.times_plus_diagonal(&b, 2.0, usize::MAX).unwrap();
            let (a, b, found) = (dense(&a), dense(&b), dense(&product));
            for (i, j) in (0..nodes as usize).flat_map(|i| (0..nodes as usize).map(move |j| (i, j))) {
                let sum: f64 = (0..nodes as usize).map(|k| a[i][k] * b[k][j]).sum();
                assert_eq!(found[i][j], sum + if i == j { 2.0 } else { 0.0 });
            }
            for row in 0..product.rows() {
                assert!(product.row(row).0.is_sorted_by(|a, b| a < b));
            }
            assert_eq!(product.pattern().offsets.len(), product.rows() + 1);
        }
    }

    #[test]
    fn products_that_are_too_large_are_not_made() {
        let matrix = every(11, 40);
        let entries = matrix.times_plus_diagonal(&matrix, 0.0, usize::MAX).unwrap().pattern().entries();
        assert!(matrix.times_plus_diagonal(&matrix, 0.0, entries).is_some());
        assert!(matrix.times_plus_diagonal(&matrix, 0.0, entries - 1).is_none());
    }

    #[test]
    fn chosen_rows_are_turned() {
        let turned = Pattern::from_pairs(4, 3, &[(0, 0), (1, 2), (2, 0), (2, 2), (3, 1)]).turned(&[2, 0]);
        assert_eq!(turned, Pattern::from_pairs(3, 2, &[(0, 0), (0, 1), (2, 0)]));
    }

    #[test]
    fn rows_are_chosen_and_renumbered() {
        let pattern = Pattern::from_pairs(4, 3, &[(0, 0), (1, 2), (2, 0), (2, 2), (3, 1)]);
        assert_eq!(pattern.of_rows(&[2, 1]), Pattern::from_pairs(2, 3, &[(0, 0), (0, 2), (1, 2)]));
        assert_eq!(pattern.of_rows(&[]), Pattern::from_pairs(0, 3, &[]));
        let matrix =
            SparseMatrix::from_triplets(6, 6, &[(1, 1, 1.0), (1, 5, 2.0), (3, 1, 3.0), (4, 0, 4.0), (5, 3, 5.0)]);
        // Nodes 1, 3 and 5 are left; of row 5 nobody asks.
        let renumbered = matrix.renumbered(3, &[1, 3], |node| node / 2);
        let expected = SparseMatrix::from_triplets(3, 3, &[(0, 0, 1.0), (0, 2, 2.0), (1, 0, 3.0)]);
        assert_eq!(renumbered, expected);
    }

    #[test]
    fn triplets_of_one_place_are_summed() {
        let matrix = SparseMatrix::from_triplets(2, 2, &[(1, 0, 0.5), (0, 1, 2.0), (1, 0, 0.25)]);
        assert_eq!(matrix.row(0), (&[1u32][..], &[2.0][..]));
        assert_eq!(matrix.row(1), (&[0u32][..], &[0.75][..]));
    }
}

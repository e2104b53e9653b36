//! Matrices of which few rows are not zero.

use super::region::NOWHERE;

/// The rows of a matrix that were written to; all others are zero.
#[derive(Debug, Clone, Default)]
pub(super) struct Rows {
    slots: Vec<u32>,
    written: Vec<u32>,
    columns: usize,
    values: Vec<f64>,
}

impl Rows {
    pub(super) fn zeros(rows: usize, columns: usize) -> Self {
        Self { slots: vec![NOWHERE; rows], columns, ..Self::default() }
    }

    pub(super) fn columns(&self) -> usize {
        self.columns
    }

    /// A row, unless nothing was written to it.
    pub(super) fn row(&self, row: usize) -> Option<&[f64]> {
        let slot = *self.slots.get(row).filter(|&&slot| slot != NOWHERE)? as usize;
        Some(&self.values[slot * self.columns..(slot + 1) * self.columns])
    }

    pub(super) fn row_mut(&mut self, row: usize) -> &mut [f64] {
        let slot = &mut self.slots[row];
        if *slot == NOWHERE {
            *slot = self.written.len() as u32;
            self.written.push(row as u32);
            self.values.resize(self.written.len() * self.columns, 0.0);
        }
        let start = *slot as usize * self.columns;
        &mut self.values[start..start + self.columns]
    }

    /// The rows that were written to, the first of them first.
    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, &[f64])> {
        self.written.iter().map(|&row| row as usize).zip(self.values.chunks_exact(self.columns.max(1)))
    }
}

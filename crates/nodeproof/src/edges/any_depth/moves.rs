//! What deletions move numbers of a layer by, and at most together.

use super::region::NOWHERE;
use crate::dense::{Matrix, add_scaled};

/// Numbers between `centre − radius` and `centre + radius`.
#[derive(Debug, Clone, Default)]
pub(super) struct Span {
    pub(super) centre: Vec<f64>,
    pub(super) radius: Vec<f64>,
}

impl Span {
    /// The numbers that are in another one, too.
    pub(super) fn within(&mut self, low: impl Fn(usize) -> f64, high: impl Fn(usize) -> f64) {
        for (j, (centre, radius)) in self.centre.iter_mut().zip(&mut self.radius).enumerate() {
            let (low, high) = ((*centre - *radius).max(low(j)), (*centre + *radius).min(high(j)));
            (*centre, *radius) = ((low + high) / 2.0, ((high - low) / 2.0).max(0.0));
        }
    }

    pub(super) fn zeros(width: usize) -> Self {
        Self { centre: vec![0.0; width], radius: vec![0.0; width] }
    }

    pub(super) fn exact(numbers: &[f64]) -> Self {
        Self { centre: numbers.to_vec(), radius: vec![0.0; numbers.len()] }
    }
}

/// What one deletion moves rows of a layer by.
#[derive(Debug, Clone, Default)]
pub(super) struct Moves {
    /// The places of the rows.
    pub(super) rows: Vec<u32>,
    width: usize,
    centre: Vec<f64>,
    radius: Vec<f64>,
}

impl Moves {
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &[f64], &[f64])> {
        let numbers = self.centre.chunks_exact(self.width.max(1)).zip(self.radius.chunks_exact(self.width.max(1)));
        self.rows.iter().zip(numbers).map(|(&row, (centre, radius))| (row, centre, radius))
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut [f64], &mut [f64])> {
        let radii = self.radius.chunks_exact_mut(self.width.max(1));
        let numbers = self.centre.chunks_exact_mut(self.width.max(1)).zip(radii);
        self.rows.iter().zip(numbers).map(|(&row, (centre, radius))| (row, centre, radius))
    }

    pub(super) fn of(&self, row: u32) -> Option<(&[f64], &[f64])> {
        let slot = self.rows.iter().position(|&other| other == row)?;
        let range = slot * self.width..(slot + 1) * self.width;
        Some((&self.centre[range.clone()], &self.radius[range]))
    }

    /// The same without rows that do not move.
    pub(super) fn without_zeros(mut self) -> Self {
        let (width, mut kept) = (self.width.max(1), 0);
        for slot in 0..self.rows.len() {
            let range = slot * width..(slot + 1) * width;
            let moves = |numbers: &[f64]| numbers.iter().any(|&x| x != 0.0);
            if moves(&self.centre[range.clone()]) || moves(&self.radius[range.clone()]) {
                self.centre.copy_within(range.clone(), kept * width);
                self.radius.copy_within(range, kept * width);
                self.rows[kept] = self.rows[slot];
                kept += 1;
            }
        }
        self.rows.truncate(kept);
        self.centre.truncate(kept * width);
        self.radius.truncate(kept * width);
        self
    }

    /// How many numbers it has.
    pub(super) fn size(&self) -> usize {
        2 * self.centre.len()
    }
}

/// Adds up the moves of one deletion.
#[derive(Debug)]
pub(super) struct Gather {
    slots: Vec<u32>,
    moves: Moves,
}

impl Gather {
    pub(super) fn new(rows: usize, width: usize) -> Self {
        Self { slots: vec![NOWHERE; rows], moves: Moves { width, ..Moves::default() } }
    }

    /// The centre and radius of `units` numbers of a row, from an offset on.
    pub(super) fn at(&mut self, row: u32, offset: usize, units: usize) -> (&mut [f64], &mut [f64]) {
        let (slot, moves) = (&mut self.slots[row as usize], &mut self.moves);
        if *slot == NOWHERE {
            *slot = moves.rows.len() as u32;
            moves.rows.push(row);
            moves.centre.resize(moves.rows.len() * moves.width, 0.0);
            moves.radius.resize(moves.rows.len() * moves.width, 0.0);
        }
        let start = *slot as usize * moves.width + offset;
        (&mut moves.centre[start..start + units], &mut moves.radius[start..start + units])
    }

    /// Adds moves of the same rows.
    pub(super) fn add(&mut self, moves: &Moves) {
        let width = self.moves.width;
        for (row, centre, radius) in moves.iter() {
            let (to_centre, to_radius) = self.at(row, 0, width);
            add_scaled(to_centre, 1.0, centre);
            add_scaled(to_radius, 1.0, radius);
        }
    }

    /// What has been added up since the last time.
    pub(super) fn take(&mut self) -> Moves {
        self.moves.rows.iter().for_each(|&row| self.slots[row as usize] = NOWHERE);
        let taken = self.moves.clone();
        self.moves.rows.clear();
        self.moves.centre.clear();
        self.moves.radius.clear();
        taken
    }
}

/// The largest moves of each number of some rows, up and down: what all deletions of a set can move it by, and all of them but one.
#[derive(Debug)]
pub(super) struct Together {
    all: [Matrix; 2],
    others: [Matrix; 2],
}

impl Together {
    /// Of sets of at most `left` deletions, with the moves of each, and how many there are of it in a row.
    pub(super) fn of(
        moves: &[Moves],
        count: impl Fn(usize, u32) -> usize,
        left: usize,
        rows: usize,
        width: usize,
    ) -> Self {
        let mut largest = [(); 2].map(|()| vec![0.0; rows * width * left]);
        // The smallest of the largest of each number.
        let mut smallest = [(); 2].map(|()| vec![0.0; rows * width]);
        for (f, moves) in moves.iter().enumerate() {
            for (row, centre, radius) in moves.iter() {
                let count = count(f, row);
                let start = row as usize * width;
                for (sign, (largest, smallest)) in [1.0, -1.0].into_iter().zip(largest.iter_mut().zip(&mut smallest)) {
                    let smallest = &mut smallest[start..start + width];
                    for (j, ((c, r), smallest)) in centre.iter().zip(radius).zip(smallest).enumerate() {
                        let by = sign * c + r;
                        if by > *smallest {
                            let place = (start + j) * left;
                            *smallest = insert(&mut largest[place..place + left], by, count);
                        }
                    }
                }
            }
        }
        let sum = |largest: &[f64], count: usize| {
            let sums = largest.chunks_exact(left.max(1)).map(|largest| largest[..count].iter().sum()).collect();
            Matrix::from_values(rows, width, sums)
        };
        Self {
            all: [sum(&largest[0], left), sum(&largest[1], left)],
            others: [sum(&largest[0], left - 1), sum(&largest[1], left - 1)],
        }
    }

    /// Where the numbers of a row are that one deletion moves by `moves`, and others, too; off by `error` times these sizes.
    pub(super) fn span(
        &self,
        row: u32,
        base: &[f64],
        moves: Option<(&[f64], &[f64])>,
        error: f64,
        sizes: &[f64],
    ) -> Span {
        let row = row as usize;
        let [all_up, all_down] = [self.all[0].row(row), self.all[1].row(row)];
        let [up, down] = [self.others[0].row(row), self.others[1].row(row)];
        let mut span = Span::zeros(base.len());
        for j in 0..base.len() {
            let (c, r) = moves.map_or((0.0, 0.0), |(c, r)| (c[j], r[j]));
            let (high, low) = ((c + r + up[j]).min(all_up[j]), (c - r - down[j]).max(-all_down[j]));
            let (size, half) = (sizes[j % sizes.len()] + base[j].abs() + high.abs() + low.abs(), (high - low) / 2.0);
            span.centre[j] = base[j] + (high + low) / 2.0;
            span.radius[j] = half.max(0.0) + error * size;
        }
        span
    }

    /// How far a number of a row moves up and down at most.
    pub(super) fn most(&self, row: u32, j: usize) -> [f64; 2] {
        [0, 1].map(|side: usize| self.all[side].get(row as usize, j))
    }
}

/// Puts a number into a list of the largest, the largest first, so many times; returns the last.
fn insert(largest: &mut [f64], by: f64, count: usize) -> f64 {
    let place = largest.partition_point(|&other| other >= by);
    let count = count.min(largest.len() - place);
    largest[place..].rotate_right(count);
    largest[place..place + count].fill(by);
    largest[largest.len() - 1]
}

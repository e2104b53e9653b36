//! Attributes that are real values, and the ranges that an attacker keeps to.

use sha2::{Digest, Sha256};

use crate::bytes;
use crate::graph::GraphError;
use crate::ids::{AttributeId, NodeId};
use crate::matrix::Matrix;
use crate::sparse::Pattern;

/// Most values of a graph: all of them are kept, zeros included.
const MOST: usize = 1 << 30;
/// Where only some are stored, so many are kept for each of these at most, so that a small file does not fill the memory.
const MOST_FOR_EACH: usize = 1 << 12;
/// So many are always kept.
const FEW: usize = 1 << 20;

/// Real values, nodes × attributes, and the range of each attribute: an attacker sets an entry to anything in it.
///
/// ```
/// use nodeproof_problem::{AttributeId, Matrix, Values};
/// let values = Values::new(Matrix::from_values(2, 2, vec![0.5, -1.0, 2.0, -3.0]))?;
/// assert_eq!(values.range(AttributeId(0)), (0.0, 2.0));
/// assert_eq!(values.range(AttributeId(1)), (-3.0, 0.0));
/// # Ok::<(), nodeproof_problem::GraphError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Values {
    entries: Matrix,
    ranges: Vec<(f64, f64)>,
    /// The smallest and the largest of 0, the entries and the range of each attribute.
    hulls: Vec<(f64, f64)>,
    /// How many entries of each node are not 0.
    lengths: Vec<u32>,
}

impl Values {
    /// These values. The range of an attribute is that of its column, with 0 in it.
    ///
    /// # Errors
    /// If a value is not a finite number.
    pub fn new(entries: Matrix) -> Result<Self, GraphError> {
        let mut ranges = vec![(0.0f64, 0.0f64); entries.columns()];
        let mut lengths = Vec::with_capacity(entries.rows());
        for row in 0..entries.rows() {
            lengths.push(entries.row(row).iter().filter(|&&value| value != 0.0).count() as u32);
            for ((column, &value), (low, high)) in (0u32..).zip(entries.row(row)).zip(&mut ranges) {
                if !value.is_finite() {
                    return Err(GraphError::NotFinite { matrix: "attributes", row, column, value });
                }
                (*low, *high) = (low.min(value), high.max(value));
            }
        }
        Ok(Self { entries, hulls: ranges.clone(), ranges, lengths })
    }

    /// A matrix of zeros to fill in with so many values that are stored, unless there would be too many.
    pub(crate) fn zeros(nodes: usize, attributes: usize, stored: usize) -> Result<Matrix, GraphError> {
        let most = stored.saturating_mul(MOST_FOR_EACH).clamp(FEW, MOST);
        match nodes.checked_mul(attributes) {
            Some(count) if count <= most => Ok(Matrix::zeros(nodes, attributes)),
            _ => Err(GraphError::TooManyValues { nodes, attributes, most }),
        }
    }

    /// 0 and 1, and anything between as their range.
    ///
    /// # Errors
    /// If there are too many.
    pub fn of_bits(bits: &Pattern) -> Result<Self, GraphError> {
        let mut entries = Self::zeros(bits.rows(), bits.columns(), bits.entries())?;
        bits.iter().for_each(|(node, attribute)| entries.row_mut(node as usize)[attribute as usize] = 1.0);
        Self::new(entries)?.with_ranges(vec![(0.0, 1.0); bits.columns()])
    }

    /// The same with other ranges, the lowest and the highest value of each attribute. Entries that are outside may stay as they are.
    ///
    /// # Errors
    /// If there is not one range an attribute, or one is not of finite numbers, the lower one first.
    pub fn with_ranges(mut self, ranges: Vec<(f64, f64)>) -> Result<Self, GraphError> {
        let expected = self.entries.columns();
        if ranges.len() != expected {
            let what = "the list of ranges";
            return Err(GraphError::Mismatch { what, found: ranges.len(), expected, unit: "attributes" });
        }
        let is_range = |&(low, high): &(f64, f64)| low.is_finite() && high.is_finite() && low <= high;
        if let Some(attribute) = ranges.iter().position(|range| !is_range(range)) {
            let (low, high) = ranges[attribute];
            return Err(GraphError::NoRange { attribute: AttributeId(attribute as u32), low, high });
        }
        for (hull, range) in self.hulls.iter_mut().zip(&ranges) {
            *hull = (hull.0.min(range.0), hull.1.max(range.1));
        }
        Ok(Self { ranges, ..self })
    }

    /// All values.
    pub fn entries(&self) -> &Matrix {
        &self.entries
    }

    /// The lowest and the highest value of each attribute.
    pub fn ranges(&self) -> &[(f64, f64)] {
        &self.ranges
    }

    /// The lowest and the highest value that an attacker gives to `attribute`.
    pub fn range(&self, attribute: AttributeId) -> (f64, f64) {
        self.ranges[attribute.index()]
    }

    /// The value of an entry.
    #[inline]
    pub fn get(&self, node: NodeId, attribute: AttributeId) -> f64 {
        self.entries.get(node.index(), attribute.index())
    }

    /// The row of a node.
    #[inline]
    pub fn row(&self, node: NodeId) -> &[f64] {
        self.entries.row(node.index())
    }

    /// No entry of `attribute` has, or can be given, a larger magnitude.
    pub fn largest(&self, attribute: AttributeId) -> f64 {
        let (low, high) = self.hulls[attribute.index()];
        low.abs().max(high.abs())
    }

    /// No entry of `attribute` can be changed by more than this, but for rounding.
    pub fn widest(&self, attribute: AttributeId) -> f64 {
        let (low, high) = self.hulls[attribute.index()];
        high - low
    }

    /// How many entries of a node are not 0.
    #[inline]
    pub fn row_length(&self, node: NodeId) -> usize {
        self.lengths[node.index()] as usize
    }

    /// Some of the nodes, in this order.
    pub(crate) fn of_nodes(&self, nodes: &[u32]) -> Self {
        let rows = nodes.iter().flat_map(|&node| self.entries.row(node as usize).iter().copied());
        let entries = Matrix::from_values(nodes.len(), self.entries.columns(), rows.collect());
        let lengths = nodes.iter().map(|&node| self.lengths[node as usize]).collect();
        Self { entries, ranges: self.ranges.clone(), hulls: self.hulls.clone(), lengths }
    }

    /// Adds the values, and perhaps their ranges, to a fingerprint.
    pub(crate) fn add_to(&self, hash: &mut Sha256, with_ranges: bool) {
        hash.update(bytes::of(self.entries.values()));
        if !with_ranges {
            return;
        }
        self.ranges.iter().for_each(|(low, high)| {
            hash.update(low.to_le_bytes());
            hash.update(high.to_le_bytes());
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_stored_values_do_not_fill_the_memory() {
        assert!(matches!(Values::zeros(1, 10_000_000, 0), Err(GraphError::TooManyValues { .. })));
        // Fewer than 4096 for each that is stored.
        assert_eq!(Values::zeros(3000, 3000, 2200).unwrap().rows(), 3000);
    }

    #[test]
    fn ranges_are_checked() {
        let values = || Values::new(Matrix::from_values(1, 2, vec![1.0, 2.0])).unwrap();
        let with = |ranges: &[(f64, f64)]| values().with_ranges(ranges.to_vec());
        assert_eq!(with(&[(2.0, 3.0), (0.0, 0.0)]).unwrap().largest(AttributeId(0)), 3.0);
        assert!(matches!(with(&[(0.0, 1.0)]), Err(GraphError::Mismatch { found: 1, .. })));
        for range in [(1.0, 0.0), (f64::NAN, 1.0), (0.0, f64::INFINITY)] {
            assert!(matches!(with(&[(0.0, 1.0), range]), Err(GraphError::NoRange { attribute: AttributeId(1), .. })));
        }
        let infinite = Values::new(Matrix::from_values(1, 2, vec![1.0, f64::INFINITY]));
        assert!(matches!(infinite, Err(GraphError::NotFinite { column: 1, .. })));
    }
}

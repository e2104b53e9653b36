//! What networks read of a node's attributes.

use serde::{Deserialize, Serialize};

/// What networks read of a node's row of attributes, and what an attacker changes there: one bit after the other, or one value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum AttributeKind {
    /// The bits themselves.
    #[default]
    Bits,
    /// Bits divided by the number of ones in their row: `x / max(1, Σ x)`, as PyTorch Geometric's `NormalizeFeatures` has it. A flip changes
    /// what all other ones of its row weigh.
    NormalisedRows,
    /// Real values. The attacker sets an entry to anything in the range of its attribute ([`Values`](crate::Values)).
    RealValues,
}

/// What to say beside a budget of attributes that were neither 0 nor 1; nothing if all were.
pub(crate) fn binarised_in_words(values: usize) -> String {
    match values {
        0 => String::new(),
        1 => "; attributes count as 1 where they are above 0 (1 value is neither 0 nor 1)".to_owned(),
        _ => format!("; attributes count as 1 where they are above 0 ({values} values are neither 0 nor 1)"),
    }
}

impl AttributeKind {
    /// The name that files have for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bits => "bits",
            Self::NormalisedRows => "normalised-rows",
            Self::RealValues => "real-values",
        }
    }

    /// The kind in words: “attributes are …”.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Bits => "0 or 1",
            Self::NormalisedRows => "0 or 1, divided by the number of ones in their row",
            Self::RealValues => "real values",
        }
    }

    /// What to add where attributes are mentioned; nothing for plain bits.
    pub fn in_addition(self) -> &'static str {
        match self {
            Self::Bits => "",
            Self::NormalisedRows => ", divided by the number of ones in their row",
            Self::RealValues => ", real values",
        }
    }

    /// What to add to a budget in words; nothing for plain bits.
    pub fn beside_budget(self) -> &'static str {
        match self {
            Self::Bits => "",
            Self::NormalisedRows => "; rows are normalised",
            Self::RealValues => "; a flip sets a value to any other in the range of its attribute",
        }
    }

    /// How to have a graph with attributes of this kind in place of one with others.
    pub fn in_place_of(self, other: Self) -> &'static str {
        match (self, other) {
            (Self::NormalisedRows, _) => "normalise the rows of the graph",
            (Self::RealValues, _) => "read the attributes of the graph as real values",
            (Self::Bits, Self::RealValues) => "do not read the attributes of the graph as real values",
            (Self::Bits, _) => "do not normalise the rows of the graph",
        }
    }

    /// What the ones of a row are divided by, given how many there are.
    #[inline]
    pub fn divisor(self, ones: usize) -> f64 {
        match self {
            Self::Bits | Self::RealValues => 1.0,
            Self::NormalisedRows => ones.max(1) as f64,
        }
    }

    /// Whether these are plain bits.
    pub fn is_bits(&self) -> bool {
        *self == Self::Bits
    }

    /// Whether ones are divided by their number in each row.
    pub fn is_normalised(&self) -> bool {
        *self == Self::NormalisedRows
    }

    /// Whether these are real values.
    pub fn is_values(&self) -> bool {
        *self == Self::RealValues
    }

    /// Whether these entries, sorted by rows, are bits divided by the number of ones in their row, as singles or doubles have them, and not all
    /// bits themselves.
    pub fn are_normalised_rows(entries: &[(u32, u32, f64)]) -> bool {
        let is_normalised = |row: &[(u32, u32, f64)]| {
            let ones = row.iter().filter(|&&(.., value)| value != 0.0);
            let expected = 1.0 / ones.clone().count() as f64;
            ones.into_iter().all(|&(.., value)| (value - expected).abs() <= f64::from(f32::EPSILON) * expected)
        };
        entries.iter().any(|&(.., value)| value != 0.0 && value != 1.0)
            && entries.chunk_by(|a, b| a.0 == b.0).all(is_normalised)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normalised_rows_are_recognised() {
        let third = f64::from(1.0f32 / 3.0);
        let thirds = [(0, 0, third), (0, 4, third), (0, 7, third)];
        let with = |more: &[(u32, u32, f64)]| AttributeKind::are_normalised_rows(&[&thirds, more].concat());
        assert!(with(&[]) && with(&[(1, 2, 1.0), (3, 0, 0.5), (3, 1, 0.0), (3, 2, 0.5)]));
        assert!(!with(&[(1, 2, 0.5)]) && !with(&[(1, 2, 1.0), (1, 3, 1.0)]) && !with(&[(1, 2, f64::NAN)]));
        assert!(!with(&[(1, 0, -0.5), (1, 1, 0.5)]) && !with(&[(1, 0, 0.500001), (1, 1, 0.5)]));
        assert!(
            !AttributeKind::are_normalised_rows(&[(0, 0, 1.0), (1, 2, 1.0)])
                && !AttributeKind::are_normalised_rows(&[])
        );
    }
}

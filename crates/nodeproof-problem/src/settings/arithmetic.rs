//! In which arithmetic a network is evaluated where its predictions are to hold.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::SettingsError;

/// The arithmetic that a verdict speaks of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Arithmetic {
    /// Real numbers: no rounding at all.
    #[default]
    Exact,
    /// Double precision.
    F64,
    /// Single precision.
    F32,
    /// Products read 11 bits of their factors, and add up in single precision, rounding or cutting off.
    Tf32,
    /// Numbers are stored with 8 bits; products add up in single precision, rounding or cutting off.
    Bf16,
}

/// How far numbers of an arithmetic are off: what an addition or a multiplication makes by at most `operation` times itself and `smallest`;
/// what is read as a factor, or is the result of a matrix product, by at most `stored` times itself and `smallest`. Numbers up to `largest`
/// do not overflow.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Roundoff {
    /// Relative error of a sum or product.
    pub operation: f64,
    /// Relative error of a factor, or of what a matrix product makes.
    pub stored: f64,
    /// Absolute error of what underflows, though it be set to 0.
    pub smallest: f64,
    /// The largest number that is safe from overflow.
    pub largest: f64,
}

impl Arithmetic {
    /// All of them, from the finest to the coarsest.
    pub const ALL: [Self; 5] = [Self::Exact, Self::F64, Self::F32, Self::Tf32, Self::Bf16];

    /// `exact`, `f64`, `f32`, `tf32` or `bf16`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::F64 => "f64",
            Self::F32 => "f32",
            Self::Tf32 => "tf32",
            Self::Bf16 => "bf16",
        }
    }

    /// Whether nothing is rounded.
    pub fn is_exact(&self) -> bool {
        *self == Self::Exact
    }

    /// How it rounds; `None` if it does not.
    pub fn roundoff(self) -> Option<Roundoff> {
        let of = |operation: i32, stored: i32, exponent: i32| Roundoff {
            operation: 2f64.powi(-operation),
            stored: 2f64.powi(-stored),
            smallest: 2f64.powi(-exponent),
            largest: 2f64.powi(exponent),
        };
        match self {
            Self::Exact => None,
            Self::F64 => Some(of(53, 53, 1022)),
            Self::F32 => Some(of(24, 24, 126)),
            Self::Tf32 => Some(of(23, 10, 126)),
            Self::Bf16 => Some(of(23, 8, 126)),
        }
    }
}

impl FromStr for Arithmetic {
    type Err = SettingsError;

    fn from_str(text: &str) -> Result<Self, SettingsError> {
        let found = Self::ALL.into_iter().find(|arithmetic| arithmetic.name() == text);
        found.ok_or_else(|| SettingsError::unknown("arithmetic", text, &Self::ALL.map(Self::name)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        for arithmetic in Arithmetic::ALL {
            assert_eq!(arithmetic.name().parse::<Arithmetic>().unwrap(), arithmetic);
            assert_eq!(serde_json::to_string(&arithmetic).unwrap(), format!("\"{}\"", arithmetic.name()));
        }
        assert!("f16".parse::<Arithmetic>().unwrap_err().to_string().contains("bf16"));
    }

    #[test]
    fn formats_round_by_half_of_their_last_bit() {
        let unit = |arithmetic: Arithmetic| arithmetic.roundoff().unwrap().operation;
        assert_eq!(unit(Arithmetic::F64), f64::EPSILON / 2.0);
        assert_eq!(unit(Arithmetic::F32), f64::from(f32::EPSILON) / 2.0);
        assert_eq!(Arithmetic::F32.roundoff().unwrap().smallest, f64::from(f32::MIN_POSITIVE));
        assert_eq!(Arithmetic::F64.roundoff().unwrap().smallest, f64::MIN_POSITIVE);
        assert_eq!(Arithmetic::Exact.roundoff(), None);
    }
}

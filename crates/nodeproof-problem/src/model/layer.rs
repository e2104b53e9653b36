//! Layers, and the terms that they are sums of.

use serde::{Deserialize, Serialize};

use crate::matrix::Matrix;

/// One layer: `Z = Σ_k P_k h_k W_k + b` over its terms, followed by an activation.
#[derive(Debug, Clone, PartialEq)]
pub struct Layer {
    pub(super) terms: Vec<Term>,
    pub(super) bias: Vec<f64>,
    pub(super) activation: Activation,
}

impl Layer {
    /// A layer with these terms, one bias a unit, and this activation behind it.
    pub fn new(terms: Vec<Term>, bias: Vec<f64>, activation: Activation) -> Self {
        Self { terms, bias, activation }
    }

    /// The terms.
    pub fn terms(&self) -> &[Term] {
        &self.terms
    }

    /// The bias, one entry a unit.
    pub fn bias(&self) -> &[f64] {
        &self.bias
    }

    /// Number of units.
    pub fn units(&self) -> usize {
        self.bias.len()
    }

    /// What its pre-activations go through.
    pub fn activation(&self) -> Activation {
        self.activation
    }

    /// Whether it is followed by something else than nothing.
    pub fn is_hidden(&self) -> bool {
        self.activation != Activation::None
    }
}

/// One summand `P h W` of a layer.
#[derive(Debug, Clone, PartialEq)]
pub struct Term {
    pub(super) source: Source,
    pub(super) propagation: usize,
    pub(super) weight: Weight,
}

impl Term {
    /// The summand `P h W` with h from `source` and P the model's propagation number `propagation`.
    pub fn new(source: Source, propagation: usize, weight: impl Into<Weight>) -> Self {
        Self { source, propagation, weight: weight.into() }
    }

    /// Where h comes from.
    pub fn source(&self) -> Source {
        self.source
    }

    /// Which of the model's propagations P is.
    pub fn propagation(&self) -> usize {
        self.propagation
    }

    /// W.
    pub fn weight(&self) -> &Weight {
        &self.weight
    }
}

/// What a term reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// The attributes X, nodes × attributes.
    Attributes,
    /// The activations of an earlier layer, nodes × units.
    Layer(usize),
    /// The constant 1, nodes × 1. Under a propagation whose rows have different sums this is a bias that differs from node
    /// to node.
    Ones,
}

/// What a term multiplies by, inputs × units.
#[derive(Debug, Clone, PartialEq)]
pub enum Weight {
    /// A matrix.
    Dense(Matrix),
    /// So many times the identity.
    Scalar(f64),
}

impl Weight {
    /// The matrix, if it is one.
    pub fn dense(&self) -> Option<&Matrix> {
        match self {
            Self::Dense(matrix) => Some(matrix),
            Self::Scalar(_) => None,
        }
    }

    /// Its numbers, row by row; one for a multiple of the identity.
    pub fn values(&self) -> &[f64] {
        match self {
            Self::Dense(matrix) => matrix.values(),
            Self::Scalar(factor) => std::slice::from_ref(factor),
        }
    }
}

/// In words: the size of a matrix, or the number.
impl std::fmt::Display for Weight {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Dense(matrix) => write!(f, "{} × {}", matrix.rows(), matrix.columns()),
            Self::Scalar(factor) => write!(f, "{}", four_digits(*factor)),
        }
    }
}

/// The number as words have it.
pub(super) fn four_digits(number: f64) -> f64 {
    format!("{number:.3e}").parse().unwrap_or(number)
}

impl From<Matrix> for Weight {
    fn from(matrix: Matrix) -> Self {
        Self::Dense(matrix)
    }
}

impl From<f64> for Weight {
    fn from(factor: f64) -> Self {
        Self::Scalar(factor)
    }
}

/// What pre-activations go through: `x` where x > 0, and slope times x elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Activation {
    /// Nothing, slope 1.
    #[default]
    None,
    /// The rectifier, slope 0.
    Relu,
    /// A leaky rectifier with a slope in [0, 1).
    LeakyRelu(f64),
}

impl Activation {
    /// The slope below 0.
    #[inline]
    pub fn slope(self) -> f64 {
        match self {
            Self::None => 1.0,
            Self::Relu => 0.0,
            Self::LeakyRelu(slope) => slope,
        }
    }

    /// The activation of x.
    #[inline]
    pub fn of(self, x: f64) -> f64 {
        match self {
            Self::None => x,
            _ if x > 0.0 => x,
            Self::Relu => 0.0,
            Self::LeakyRelu(slope) => slope * x,
        }
    }
}

impl std::fmt::Display for Activation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Relu => f.write_str("relu"),
            Self::LeakyRelu(slope) => write!(f, "leaky relu ({slope})"),
        }
    }
}

//! Graph convolutional networks: layers of weights, and the propagation between them.

mod files;
mod propagation;

use std::path::PathBuf;

use sha2::{Digest, Sha256};

use crate::fingerprint::hex;
use crate::matrix::Matrix;
use crate::npz::NpzError;

pub use propagation::Propagation;

/// What can be wrong with a model.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// A model needs at least one layer.
    #[error("the model has no layers; it needs at least a weight W0 and a bias b0")]
    NoLayers,
    /// Two tensors of the model do not fit each other.
    #[error("{tensor} has shape {found}, but {expected}")]
    Shape {
        /// The tensor.
        tensor: String,
        /// Its shape.
        found: String,
        /// The shape it should have, and why.
        expected: String,
    },
    /// A weight or bias that is NaN or infinite.
    #[error(
        "{tensor} holds {value} at position {position}; every weight and bias must be a finite number — was training cut off or did it diverge?"
    )]
    NotFinite {
        /// The tensor.
        tensor: String,
        /// Where in it, row-major.
        position: usize,
        /// The value.
        value: f64,
    },
    /// The model and the graph do not fit.
    #[error("the model does not fit the graph: {problem}")]
    Mismatch {
        /// What does not fit, and what to do.
        problem: String,
    },
    /// A propagation value that is negative, NaN or infinite.
    #[error(
        "the propagation is {value} at row {row}, column {column}; certificates need finite values ≥ 0 (bounds would \
         be wrong otherwise)"
    )]
    Propagation {
        /// The row.
        row: usize,
        /// The column.
        column: u32,
        /// The value.
        value: f64,
    },
    /// The file could not be read or written.
    #[error("cannot access {path}: {source}", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file is not a model.
    #[error("{path} is not a model that nodeproof can read: {problem}", path = path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong, and what to do.
        problem: String,
    },
    /// The `.npz` file is unreadable or lacks an array.
    #[error(transparent)]
    Npz(#[from] NpzError),
}

/// One layer: `x ↦ P x W + b`, followed by a ReLU unless it is the last.
#[derive(Debug, Clone, PartialEq)]
pub struct Layer {
    weight: Matrix,
    bias: Vec<f64>,
}

impl Layer {
    /// A layer with this weight (inputs × outputs) and bias (one entry an output).
    pub fn new(weight: Matrix, bias: Vec<f64>) -> Self {
        Self { weight, bias }
    }

    /// The weight, inputs × outputs.
    pub fn weight(&self) -> &Matrix {
        &self.weight
    }

    /// The bias, one entry an output.
    pub fn bias(&self) -> &[f64] {
        &self.bias
    }
}

/// A graph convolutional network of any depth: layers, and the propagation they share.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    layers: Vec<Layer>,
    propagation: Propagation,
}

impl Model {
    /// A model with these layers, first to last.
    ///
    /// # Errors
    /// If there are no layers, shapes do not chain, there are fewer than two classes, or a number is not finite.
    ///
    /// # Example
    /// ```
    /// use nodeproof_problem::{Layer, Matrix, Model, Propagation};
    /// let layer = Layer::new(Matrix::from_values(3, 2, vec![1.0, 0.0, 0.0, 1.0, 0.5, 0.5]), vec![0.0, 0.1]);
    /// let model = Model::new(vec![layer], Propagation::SymmetricGcn)?;
    /// assert_eq!((model.attributes(), model.classes(), model.hidden_layers()), (3, 2, 0));
    /// # Ok::<(), nodeproof_problem::ModelError>(())
    /// ```
    pub fn new(layers: Vec<Layer>, propagation: Propagation) -> Result<Self, ModelError> {
        let last = layers.last().ok_or(ModelError::NoLayers)?;
        let shape_error =
            |tensor: String, found: String, expected: String| ModelError::Shape { tensor, found, expected };
        for (i, layer) in layers.iter().enumerate() {
            let (inputs, outputs) = (layer.weight.rows(), layer.weight.columns());
            let found = format!("{inputs} × {outputs}");
            if inputs == 0 || outputs == 0 {
                return Err(shape_error(format!("W{i}"), found, "both sizes must be at least 1".to_owned()));
            }
            if i > 0 && inputs != layers[i - 1].weight.columns() {
                let before = layers[i - 1].weight.columns();
                let expected =
                    format!("W{} has {before} outputs, so W{i} must have {before} rows (inputs × outputs)", i - 1);
                return Err(shape_error(format!("W{i}"), found, expected));
            }
            if layer.bias.len() != outputs {
                let expected = format!("W{i} has {outputs} outputs, so b{i} must have {outputs} entries");
                return Err(shape_error(format!("b{i}"), layer.bias.len().to_string(), expected));
            }
            check_finite(format!("W{i}"), layer.weight.values())?;
            check_finite(format!("b{i}"), &layer.bias)?;
        }
        if last.weight.columns() < 2 {
            let i = layers.len() - 1;
            let expected = "a classifier needs at least two classes".to_owned();
            return Err(shape_error(format!("W{i}"), format!("{} × 1", last.weight.rows()), expected));
        }
        Ok(Self { layers, propagation })
    }

    /// The layers, first to last.
    pub fn layers(&self) -> &[Layer] {
        &self.layers
    }

    /// All weights and biases, tensor by tensor: W0, b0, W1, b1, …
    pub fn tensors(&self) -> impl Iterator<Item = &[f64]> {
        self.layers.iter().flat_map(|layer| [layer.weight.values(), &layer.bias])
    }

    /// All weights and biases, tensor by tensor, to be changed; whoever does keeps them finite.
    pub fn tensors_mut(&mut self) -> impl Iterator<Item = &mut [f64]> {
        self.layers.iter_mut().flat_map(|layer| [layer.weight.values_mut(), layer.bias.as_mut_slice()])
    }

    /// The propagation.
    pub fn propagation(&self) -> &Propagation {
        &self.propagation
    }

    /// Number of layers with a ReLU behind them.
    pub fn hidden_layers(&self) -> usize {
        self.layers.len() - 1
    }

    /// Number of attributes it reads, D.
    pub fn attributes(&self) -> usize {
        self.layers[0].weight.rows()
    }

    /// Number of classes, K.
    pub fn classes(&self) -> usize {
        self.layers[self.layers.len() - 1].weight.columns()
    }

    /// SHA-256 of propagation, weights and biases.
    pub fn fingerprint(&self) -> String {
        let mut hash = Sha256::new();
        hash.update(b"nodeproof model 1\n");
        hash.update(self.propagation.name().as_bytes());
        if let Propagation::Custom(matrix) = &self.propagation {
            for row in 0..matrix.rows() {
                let (columns, values) = matrix.row(row);
                hash.update((columns.len() as u64).to_le_bytes());
                for (column, value) in columns.iter().zip(values) {
                    hash.update(column.to_le_bytes());
                    hash.update(value.to_le_bytes());
                }
            }
        }
        for layer in &self.layers {
            hash.update((layer.weight.rows() as u64).to_le_bytes());
            hash.update((layer.weight.columns() as u64).to_le_bytes());
            for value in layer.weight.values().iter().chain(&layer.bias) {
                hash.update(value.to_le_bytes());
            }
        }
        hex(&hash.finalize())
    }
}

fn check_finite(tensor: String, values: &[f64]) -> Result<(), ModelError> {
    match values.iter().position(|value| !value.is_finite()) {
        Some(position) => Err(ModelError::NotFinite { tensor, position, value: values[position] }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layer(inputs: usize, outputs: usize) -> Layer {
        Layer::new(Matrix::zeros(inputs, outputs), vec![0.0; outputs])
    }

    #[test]
    fn every_wrong_dimension_is_named() {
        let make = |layers| Model::new(layers, Propagation::SymmetricGcn).unwrap_err().to_string();
        assert!(make(vec![]).contains("no layers"));
        assert!(make(vec![layer(3, 4), layer(5, 2)]).contains("W1 has shape 5 × 2"));
        assert!(make(vec![layer(3, 1)]).contains("two classes"));
        assert!(make(vec![layer(0, 2)]).contains("W0 has shape 0 × 2"));
        assert!(make(vec![Layer::new(Matrix::zeros(3, 2), vec![0.0; 3])]).contains("b0 has shape 3"));
        let bad = Layer::new(Matrix::from_values(1, 2, vec![1.0, f64::NAN]), vec![0.0; 2]);
        assert!(make(vec![bad]).contains("W0 holds NaN at position 1"));
        let bad = Layer::new(Matrix::zeros(1, 2), vec![f64::INFINITY, 0.0]);
        assert!(make(vec![bad]).contains("b0 holds inf"));
    }
}

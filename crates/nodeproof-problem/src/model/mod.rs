//! Graph neural networks: layers that are sums of terms `P h W`, and the propagations P.

mod description;
mod files;
mod layer;
mod propagation;

use std::path::PathBuf;

use sha2::{Digest, Sha256};

use crate::attributes::AttributeKind;
use crate::fingerprint::hex;
use crate::graph::Graph;
use crate::matrix::Matrix;
use crate::npz::NpzError;

pub use layer::{Activation, Layer, Source, Term, Weight};
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
    /// A layer that makes no sense.
    #[error("layer {layer} cannot be: {problem}")]
    Layer {
        /// The layer.
        layer: usize,
        /// What is wrong, and what to do.
        problem: String,
    },
    /// The model and the graph do not fit.
    #[error("the model does not fit the graph: {problem}")]
    Mismatch {
        /// What does not fit, and what to do.
        problem: String,
    },
    /// The model reads something else of the attributes than the graph has.
    #[error(
        "the model does not fit the graph: it reads attributes that are {}, but those of the graph are {}; {}",
        model.in_words(), graph.in_words(), model.in_place_of(*graph)
    )]
    Kind {
        /// What the model reads.
        model: AttributeKind,
        /// What the graph has.
        graph: AttributeKind,
    },
    /// A propagation value that is NaN or infinite.
    #[error("the propagation is {value} at row {row}, column {column}; every value must be a finite number")]
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

/// A graph neural network of any depth: propagations, and layers that are sums of terms.
///
/// ```text
/// Zⁱ = Σ_k P_k h_k W_k + bⁱ,     hⁱ = activation(Zⁱ),     logits of node t = row t of the last Z,
/// ```
///
/// each h_k being the attributes, the activations of an earlier layer, or the constant 1 ([`Source`]).
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    attributes: usize,
    kind: AttributeKind,
    propagations: Vec<Propagation>,
    layers: Vec<Layer>,
}

/// Weights and biases of layers that read one another in turn.
pub type Chain<'m> = Vec<(&'m Matrix, &'m [f64])>;

impl Model {
    /// A model that reads so many attributes, plain bits unless [`Model::with_kind`] says otherwise; terms name the propagations by their place in the list.
    ///
    /// # Errors
    /// If there are no layers, shapes do not chain, a term reads a later layer or nothing reads the attributes, the last
    /// layer has an activation, there are fewer than two classes, or a number is not finite.
    ///
    /// # Example
    /// GraphSAGE with means and root weights:
    /// ```
    /// use nodeproof_problem::{Activation, Layer, Matrix, Model, Propagation, Source, Term};
    /// let propagations = vec![Propagation::RowMean, Propagation::Identity];
    /// let layer = |source, inputs, units, activation| {
    ///     let term = |propagation| Term::new(source, propagation, Matrix::zeros(inputs, units));
    ///     Layer::new(vec![term(0), term(1)], vec![0.0; units], activation)
    /// };
    /// let layers = vec![
    ///     layer(Source::Attributes, 30, 16, Activation::Relu),
    ///     layer(Source::Layer(0), 16, 3, Activation::None),
    /// ];
    /// let model = Model::new(30, propagations, layers)?;
    /// assert_eq!((model.attributes(), model.classes(), model.hidden_layers()), (30, 3, 1));
    /// # Ok::<(), nodeproof_problem::ModelError>(())
    /// ```
    pub fn new(attributes: usize, propagations: Vec<Propagation>, layers: Vec<Layer>) -> Result<Self, ModelError> {
        let model = Self { attributes, kind: AttributeKind::Bits, propagations, layers };
        model.check()?;
        Ok(model)
    }

    /// Kipf and Welling's graph convolutional network: `Z⁰ = P X W⁰ + b⁰`, `Zⁱ = P relu(Zⁱ⁻¹) Wⁱ + bⁱ`, from weights (inputs ×
    /// outputs) and biases, first to last.
    ///
    /// # Errors
    /// As [`Model::new`].
    ///
    /// # Example
    /// ```
    /// use nodeproof_problem::{Matrix, Model, Propagation};
    /// let layer = (Matrix::from_values(3, 2, vec![1.0, 0.0, 0.0, 1.0, 0.5, 0.5]), vec![0.0, 0.1]);
    /// let model = Model::gcn(vec![layer], Propagation::SymmetricGcn)?;
    /// assert_eq!((model.attributes(), model.classes(), model.hidden_layers()), (3, 2, 0));
    /// # Ok::<(), nodeproof_problem::ModelError>(())
    /// ```
    pub fn gcn(layers: Vec<(Matrix, Vec<f64>)>, propagation: Propagation) -> Result<Self, ModelError> {
        let attributes = layers.first().map_or(0, |(weight, _)| weight.rows());
        let last = layers.len().saturating_sub(1);
        let layer = |(i, (weight, bias)): (usize, (Matrix, Vec<f64>))| {
            let source = if i == 0 { Source::Attributes } else { Source::Layer(i - 1) };
            let activation = if i == last { Activation::None } else { Activation::Relu };
            Layer::new(vec![Term::new(source, 0, weight)], bias, activation)
        };
        Self::new(attributes, vec![propagation], layers.into_iter().enumerate().map(layer).collect())
    }

    /// Weights, biases and propagation, if the model is one that [`Model::gcn`] makes.
    pub fn as_gcn(&self) -> Option<(Chain<'_>, &Propagation)> {
        let [propagation] = &self.propagations[..] else { return None };
        let chain = self.as_chain()?;
        Some((chain, propagation))
    }

    /// Weights and biases, if every layer but the first reads nothing but the one before it, through one dense term, and ReLUs
    /// are all there is between: a graph convolutional network, but perhaps with several propagations.
    pub fn as_chain(&self) -> Option<Chain<'_>> {
        let last = self.layers.len() - 1;
        let layer = |(i, layer): (usize, &'_ Layer)| -> Option<(&Matrix, &[f64])> {
            let source = if i == 0 { Source::Attributes } else { Source::Layer(i - 1) };
            let activation = if i == last { Activation::None } else { Activation::Relu };
            match &self.layers[i].terms[..] {
                [term] if term.source == source && layer.activation == activation => {
                    Some((term.weight.dense()?, &self.layers[i].bias))
                }
                _ => None,
            }
        };
        self.layers.iter().enumerate().map(layer).collect()
    }

    /// Whether it is a [chain](Model::as_chain) whose propagations have no negative entries: what the paper has.
    pub fn is_plain(&self) -> bool {
        self.as_chain().is_some() && self.propagations.iter().all(Propagation::is_nonnegative)
    }

    /// The layers, first to last.
    pub fn layers(&self) -> &[Layer] {
        &self.layers
    }

    /// The propagations that terms name.
    pub fn propagations(&self) -> &[Propagation] {
        &self.propagations
    }

    /// The name of the propagation, or `several`.
    pub fn propagation_name(&self) -> &'static str {
        match &self.propagations[..] {
            [propagation] => propagation.name(),
            _ => "several",
        }
    }

    /// The same layers with other propagations in place of these.
    ///
    /// # Errors
    /// If there are fewer.
    pub fn with_propagations(self, propagations: Vec<Propagation>) -> Result<Self, ModelError> {
        Ok(Self::new(self.attributes, propagations, self.layers)?.with_kind(self.kind))
    }

    /// All weights and biases, tensor by tensor: the weights of layer 0, b0, those of layer 1, b1, … Multiples of the identity
    /// are not among them.
    pub fn tensors(&self) -> impl Iterator<Item = &[f64]> {
        self.layers.iter().flat_map(|layer| {
            let weights = layer.terms.iter().filter_map(|term| term.weight.dense());
            weights.map(Matrix::values).chain([&layer.bias[..]])
        })
    }

    /// All weights and biases, tensor by tensor, to be changed; whoever does keeps them finite.
    pub fn tensors_mut(&mut self) -> impl Iterator<Item = &mut [f64]> {
        self.layers.iter_mut().flat_map(|layer| {
            let weights = layer.terms.iter_mut().filter_map(|term| match &mut term.weight {
                Weight::Dense(matrix) => Some(matrix.values_mut()),
                Weight::Scalar(_) => None,
            });
            weights.chain([layer.bias.as_mut_slice()])
        })
    }

    /// Puts other numbers in place of all weights and biases, tensor by tensor in the order of [`Model::tensors`], matrices row by
    /// row.
    ///
    /// # Errors
    /// If there is a tensor too few or too many, one has another number of entries, or a number is not finite. The model is then
    /// as it was.
    ///
    /// # Example
    /// ```
    /// use nodeproof_problem::{Matrix, Model, Propagation};
    /// let mut model = Model::gcn(vec![(Matrix::zeros(1, 2), vec![0.0, 0.0])], Propagation::SymmetricGcn)?;
    /// model.set_tensors(&[[0.5, -0.5], [1.0, 2.0]])?;
    /// assert_eq!(model.layers()[0].bias(), [1.0, 2.0]);
    /// let error = model.set_tensors(&[vec![0.5], vec![1.0, 2.0]]).unwrap_err().to_string();
    /// assert_eq!(error, "W0 has shape 1, but it must have 2 entries, 1 × 2 (inputs × outputs)");
    /// # Ok::<(), nodeproof_problem::ModelError>(())
    /// ```
    pub fn set_tensors(&mut self, tensors: &[impl AsRef<[f64]>]) -> Result<(), ModelError> {
        let shapes = self.tensor_shapes();
        let shape = |tensor: String, found: usize, expected| {
            Err(ModelError::Shape { tensor, found: found.to_string(), expected })
        };
        if tensors.len() != shapes.len() {
            let names: Vec<&str> = shapes.iter().map(|(name, _)| name.as_str()).collect();
            let expected = format!("the model has {}: {}", shapes.len(), names.join(", "));
            return shape("the list of tensors".to_owned(), tensors.len(), expected);
        }
        for (tensor, (name, sizes)) in tensors.iter().zip(shapes) {
            let (found, entries) = (tensor.as_ref().len(), sizes.iter().product::<usize>());
            if found != entries {
                let sizes = match sizes[..] {
                    [inputs, outputs] => format!(", {inputs} × {outputs} (inputs × outputs)"),
                    _ => String::new(),
                };
                return shape(name, found, format!("it must have {entries} entries{sizes}"));
            }
            check_finite(name, tensor.as_ref())?;
        }
        for (values, tensor) in self.tensors_mut().zip(tensors) {
            values.copy_from_slice(tensor.as_ref());
        }
        Ok(())
    }

    /// What messages and files call each of [`Model::tensors`], and its sizes: inputs and outputs of a weight, units of a bias.
    pub fn tensor_shapes(&self) -> Vec<(String, Vec<usize>)> {
        let of_layer = |(i, layer): (usize, &Layer)| {
            let weights = layer.terms.iter().enumerate().filter_map(move |(k, term)| Some((k, term.weight.dense()?)));
            let weight =
                |(k, weight): (usize, &Matrix)| (self.weight_name(i, k), vec![weight.rows(), weight.columns()]);
            weights.map(weight).chain([(format!("b{i}"), vec![layer.units()])]).collect::<Vec<_>>()
        };
        self.layers.iter().enumerate().flat_map(of_layer).collect()
    }

    /// Number of layers with an activation behind them.
    pub fn hidden_layers(&self) -> usize {
        self.layers.iter().filter(|layer| layer.is_hidden()).count()
    }

    /// Number of attributes it reads, D.
    pub fn attributes(&self) -> usize {
        self.attributes
    }

    /// What it reads of the attributes: that of the graph it was trained on.
    pub fn kind(&self) -> AttributeKind {
        self.kind
    }

    /// The same model, which reads this of the attributes.
    pub fn with_kind(mut self, kind: AttributeKind) -> Self {
        self.kind = kind;
        self
    }

    /// Checks that it reads what `graph` has.
    ///
    /// # Errors
    /// If it reads another number of attributes, or another kind, or has too few classes for the labels.
    pub fn check_fits(&self, graph: &Graph) -> Result<(), ModelError> {
        if self.attributes() != graph.attribute_count() {
            let problem = format!(
                "it reads {} attributes, but the graph has {}; use the graph it was trained on (and check \
                 that weights are stored as inputs × outputs)",
                self.attributes(),
                graph.attribute_count()
            );
            return Err(ModelError::Mismatch { problem });
        }
        if self.kind() != graph.kind() {
            return Err(ModelError::Kind { model: self.kind(), graph: graph.kind() });
        }
        if self.classes() < graph.classes() {
            let problem = format!(
                "it has {} classes, but the graph's labels or class names make {}; use the model that was trained \
                 on these labels",
                self.classes(),
                graph.classes()
            );
            return Err(ModelError::Mismatch { problem });
        }
        Ok(())
    }

    /// Number of classes, K.
    pub fn classes(&self) -> usize {
        self.layers[self.layers.len() - 1].units()
    }

    /// Number of inputs that a term has: attributes, units of a layer, or 1.
    pub fn width(&self, source: Source) -> usize {
        match source {
            Source::Attributes => self.attributes,
            Source::Layer(layer) => self.layers[layer].units(),
            Source::Ones => 1,
        }
    }

    /// What messages and files call the weight of a term: `W0`, or `W0.1` where the layer has several terms.
    pub fn weight_name(&self, layer: usize, term: usize) -> String {
        if self.layers[layer].terms.len() == 1 { format!("W{layer}") } else { format!("W{layer}.{term}") }
    }

    fn check(&self) -> Result<(), ModelError> {
        let last = self.layers.last().ok_or(ModelError::NoLayers)?;
        for i in 0..self.layers.len() {
            self.check_layer(i)?;
        }
        let i = self.layers.len() - 1;
        let reads_attributes = |term: &Term| term.source == Source::Attributes;
        if !self.layers.iter().flat_map(|layer| &layer.terms).any(reads_attributes) {
            let problem = "no term reads the attributes, so that none of them matters".to_owned();
            return Err(ModelError::Layer { layer: 0, problem });
        }
        if last.is_hidden() {
            let problem =
                "it is the last, whose pre-activations are the logits, and has an activation; add a layer that \
                           passes its activations on: one term with weight 1 and the identity"
                    .to_owned();
            return Err(ModelError::Layer { layer: i, problem });
        }
        if last.units() < 2 {
            let (tensor, found) = match last.terms[0].weight.dense() {
                Some(weight) => (self.weight_name(i, 0), format!("{} × 1", weight.rows())),
                None => (format!("b{i}"), "1".to_owned()),
            };
            let expected = "a classifier needs at least two classes".to_owned();
            return Err(ModelError::Shape { tensor, found, expected });
        }
        for propagation in &self.propagations {
            propagation.check_numbers()?;
        }
        Ok(())
    }

    fn check_layer(&self, i: usize) -> Result<(), ModelError> {
        let layer = &self.layers[i];
        let fail = |problem: String| Err(ModelError::Layer { layer: i, problem });
        if layer.terms.is_empty() {
            return fail("it has no terms; give it at least one".to_owned());
        }
        for (k, term) in layer.terms.iter().enumerate() {
            if let Source::Layer(source) = term.source
                && source >= i
            {
                return fail(format!("term {k} reads layer {source}, which does not come before it"));
            }
            if term.propagation >= self.propagations.len() {
                let count = self.propagations.len();
                return fail(format!("term {k} names propagation {}, but there are {count}", term.propagation));
            }
            self.check_weight(i, k)?;
        }
        if let Activation::LeakyRelu(slope) = layer.activation
            && !(0.0..1.0).contains(&slope)
        {
            return fail(format!("its leaky ReLU has slope {slope}; bounds need one in [0, 1)"));
        }
        check_finite(format!("b{i}"), &layer.bias)
    }

    fn check_weight(&self, i: usize, k: usize) -> Result<(), ModelError> {
        let (layer, term) = (&self.layers[i], &self.layers[i].terms[k]);
        let (name, inputs, units) = (self.weight_name(i, k), self.width(term.source), layer.units());
        let shape =
            |tensor: String, found: String, expected: String| Err(ModelError::Shape { tensor, found, expected });
        let Weight::Dense(weight) = &term.weight else {
            if inputs != units {
                let expected = format!(
                    "a term of layer {i} multiplies {inputs} inputs by a number, so b{i} must have {inputs} entries"
                );
                return shape(format!("b{i}"), units.to_string(), expected);
            }
            return check_finite(name, term.weight.values());
        };
        let found = format!("{} × {}", weight.rows(), weight.columns());
        if weight.rows() == 0 || weight.columns() == 0 {
            return shape(name, found, "both sizes must be at least 1".to_owned());
        }
        if weight.rows() != inputs {
            let expected = match term.source {
                Source::Layer(source) => {
                    let before = self.weight_name(source, 0);
                    format!("{before} has {inputs} outputs, so {name} must have {inputs} rows (inputs × outputs)")
                }
                Source::Attributes => format!("there are {inputs} attributes, so it must have {inputs} rows"),
                Source::Ones => "it multiplies the constant 1, so it must have one row".to_owned(),
            };
            return shape(name, found, expected);
        }
        if weight.columns() != units {
            let expected = format!(
                "{name} has {} outputs, so b{i} and every other weight of the layer must have as many",
                weight.columns()
            );
            return shape(format!("b{i}"), units.to_string(), expected);
        }
        check_finite(name, weight.values())
    }

    /// SHA-256 of propagations, weights and biases, and of what is read of the attributes.
    pub fn fingerprint(&self) -> String {
        let mut hash = Sha256::new();
        // Models that the first version of the format knew keep their fingerprints.
        let is_old =
            |propagation: &Propagation| self.kind.is_bits() && !matches!(propagation, Propagation::Polynomial { .. });
        match self.as_gcn().filter(|(_, propagation)| is_old(propagation)) {
            Some((_, propagation)) => {
                hash.update(b"nodeproof model 1\n");
                hash.update(propagation.name().as_bytes());
            }
            None => {
                hash.update(b"nodeproof model 2\n");
                hash.update(self.description().as_bytes());
            }
        }
        for matrix in self.propagations.iter().flat_map(Propagation::custom) {
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
            for weight in layer.terms.iter().filter_map(|term| term.weight.dense()) {
                hash.update((weight.rows() as u64).to_le_bytes());
                hash.update((weight.columns() as u64).to_le_bytes());
                weight.values().iter().for_each(|value| hash.update(value.to_le_bytes()));
            }
            layer.bias.iter().for_each(|value| hash.update(value.to_le_bytes()));
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

    fn layer(inputs: usize, outputs: usize) -> (Matrix, Vec<f64>) {
        (Matrix::zeros(inputs, outputs), vec![0.0; outputs])
    }

    #[test]
    fn fingerprints_tell_polynomials_apart() {
        let polynomial = |of, coefficients| Propagation::Polynomial { of: Box::new(of), coefficients };
        let propagations = [
            Propagation::SymmetricGcn,
            polynomial(Propagation::SymmetricGcn, vec![0.0, 1.0]),
            polynomial(Propagation::SymmetricGcn, vec![0.0, 0.0, 1.0]),
            polynomial(Propagation::SymmetricGcn, vec![0.0, 0.0, 2.0]),
            polynomial(Propagation::Adjacency, vec![0.0, 0.0, 1.0]),
        ];
        let fingerprint = |propagation| Model::gcn(vec![layer(3, 2)], propagation).unwrap().fingerprint();
        let mut fingerprints: Vec<String> = propagations.map(fingerprint).into();
        fingerprints.sort_unstable();
        assert!(fingerprints.is_sorted_by(|a, b| a < b));
    }

    #[test]
    fn every_wrong_dimension_is_named() {
        let make = |layers| Model::gcn(layers, Propagation::SymmetricGcn).unwrap_err().to_string();
        assert!(make(vec![]).contains("no layers"));
        assert!(make(vec![layer(3, 4), layer(5, 2)]).contains("W1 has shape 5 × 2"));
        assert!(make(vec![layer(3, 1)]).contains("two classes"));
        assert!(make(vec![layer(0, 2)]).contains("W0 has shape 0 × 2"));
        assert!(make(vec![(Matrix::zeros(3, 2), vec![0.0; 3])]).contains("b0 has shape 3"));
        assert!(
            make(vec![(Matrix::from_values(1, 2, vec![1.0, f64::NAN]), vec![0.0; 2])])
                .contains("W0 holds NaN at position 1")
        );
        assert!(make(vec![(Matrix::zeros(1, 2), vec![f64::INFINITY, 0.0])]).contains("b0 holds inf"));
    }

    #[test]
    fn layers_that_cannot_be_are_refused() {
        let dense = |source, inputs, units| Term::new(source, 0, Matrix::zeros(inputs, units));
        let first = || Layer::new(vec![dense(Source::Attributes, 3, 2)], vec![0.0; 2], Activation::Relu);
        let make = |layers| Model::new(3, vec![Propagation::Adjacency], layers).unwrap_err().to_string();
        let last = |terms| Layer::new(terms, vec![0.0; 2], Activation::None);
        assert!(make(vec![first()]).contains("it is the last"));
        assert!(make(vec![first(), last(vec![])]).contains("layer 1 cannot be: it has no terms"));
        assert!(make(vec![first(), last(vec![dense(Source::Layer(1), 2, 2)])]).contains("reads layer 1"));
        assert!(
            make(vec![last(vec![Term::new(Source::Attributes, 1, Matrix::zeros(3, 2))])]).contains("propagation 1")
        );
        assert!(make(vec![last(vec![dense(Source::Ones, 1, 2)])]).contains("no term reads the attributes"));
        let several = vec![dense(Source::Layer(0), 2, 2), dense(Source::Ones, 2, 2)];
        assert!(make(vec![first(), last(several)]).contains("W1.1 has shape 2 × 2, but it multiplies the constant 1"));
        assert!(
            make(vec![last(vec![Term::new(Source::Attributes, 0, 1.0)])])
                .contains("b0 has shape 2, but a term of layer 0 multiplies 3")
        );
        for slope in [1.0, -0.1, f64::NAN] {
            let leaky = Layer::new(vec![dense(Source::Attributes, 3, 2)], vec![0.0; 2], Activation::LeakyRelu(slope));
            assert!(make(vec![leaky, last(vec![Term::new(Source::Layer(0), 0, 1.0)])]).contains("slope"));
        }
    }
}

//! Models on file: `.safetensors` with metadata, and plain `.npz` of `W0, b0, W1, b1, …`.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;

use safetensors::SafeTensors;
use safetensors::tensor::Dtype;

use super::description::{self, Problem, Tensors};
use super::{Model, ModelError, Propagation};
use crate::matrix::Matrix;
use crate::npz::Archive;
use crate::sparse::SparseMatrix;
use crate::tensors::{self, Tensor, floats, tensor};

/// Value of the metadata key `format`.
const FORMAT: &str = "nodeproof-model";
/// How a zip file, and so an `.npz`, begins.
const ZIP_MAGIC: &[u8] = b"PK\x03\x04";
/// Version of the layout written here, and the one before it, which is read as well.
const VERSION: &str = "2";
const FIRST_VERSION: &str = "1";
/// Metadata keys of the version before, for what the description now has.
const FIRST_KEYS: [&str; 2] = ["layers", "propagation"];
/// Metadata key of the description.
const NETWORK: &str = "network";

impl Model {
    /// Reads a model: `.npz` with `W0, b0, W1, b1, …` (propagation: symmetric GCN) or `.safetensors`, as its first bytes
    /// tell.
    ///
    /// # Errors
    /// If the file is unreadable, damaged or not a model.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, ModelError> {
        let path = path.as_ref();
        let bytes = fs::read(path).map_err(|source| ModelError::Io { path: path.to_owned(), source })?;
        if is_npz(path, &bytes) {
            return Self::read_npz(path);
        }
        parse_safetensors(&bytes).map_err(|problem| match problem {
            Problem::Format(problem) => ModelError::Format { path: path.to_owned(), problem },
            Problem::Model(error) => error,
        })
    }

    /// Writes the model as `.safetensors`, with the description of its layers and the format version as metadata.
    ///
    /// # Errors
    /// If the file cannot be written; an existing file is then left as it was.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<(), ModelError> {
        self.write_with(path, &BTreeMap::new())
    }

    /// Writes the model as [`Model::write`] does, with more metadata, such as how it was trained.
    ///
    /// # Errors
    /// If the file cannot be written; an existing file is then left as it was.
    pub fn write_with(&self, path: impl AsRef<Path>, more: &BTreeMap<String, String>) -> Result<(), ModelError> {
        let path = path.as_ref();
        let own = [("format", FORMAT.to_owned()), ("version", VERSION.to_owned()), (NETWORK, self.description())];
        let mut metadata: HashMap<String, String> = more.clone().into_iter().collect();
        FIRST_KEYS.iter().for_each(|&key| drop(metadata.remove(key)));
        metadata.extend(own.map(|(key, value)| (key.to_owned(), value)));
        let written = tensors::write(path, self.named_tensors(), metadata);
        written.map_err(|source| ModelError::Io { path: path.to_owned(), source })
    }

    /// The metadata of a `.safetensors` file, such as how the model was trained; none for other files.
    ///
    /// # Errors
    /// If the file is unreadable or damaged.
    pub fn read_metadata(path: impl AsRef<Path>) -> Result<BTreeMap<String, String>, ModelError> {
        let path = path.as_ref();
        let bytes = fs::read(path).map_err(|source| ModelError::Io { path: path.to_owned(), source })?;
        if is_npz(path, &bytes) {
            return Ok(BTreeMap::new());
        }
        let damaged = |error| ModelError::Format { path: path.to_owned(), problem: tensors::damaged(error) };
        let (_, metadata) = SafeTensors::read_metadata(&bytes).map_err(damaged)?;
        Ok(metadata.metadata().clone().unwrap_or_default().into_iter().collect())
    }

    fn named_tensors(&self) -> Vec<(String, Tensor)> {
        let mut tensors = Vec::new();
        for (i, layer) in self.layers.iter().enumerate() {
            for (k, term) in layer.terms.iter().enumerate() {
                if let Some(weight) = term.weight.dense() {
                    let shape = vec![weight.rows(), weight.columns()];
                    tensors.push((self.weight_name(i, k), Tensor::floats(shape, weight.values())));
                }
            }
            tensors.push((format!("b{i}"), Tensor::floats(vec![layer.bias.len()], &layer.bias)));
        }
        for (place, propagation) in self.propagations.iter().enumerate() {
            let Some(matrix) = propagation.custom() else { continue };
            let pattern = matrix.pattern();
            let offsets = pattern.offsets().iter().flat_map(|&o| (o as u64).to_le_bytes()).collect();
            let indices = pattern.indices().iter().flat_map(|i| i.to_le_bytes()).collect();
            let (rows, entries) = (pattern.rows() + 1, pattern.entries());
            let offsets = Tensor { dtype: Dtype::U64, shape: vec![rows], bytes: offsets };
            let indices = Tensor { dtype: Dtype::U32, shape: vec![entries], bytes: indices };
            tensors.push((format!("P{place}.offsets"), offsets));
            tensors.push((format!("P{place}.indices"), indices));
            tensors.push((format!("P{place}.values"), Tensor::floats(vec![entries], matrix.values())));
        }
        tensors
    }

    fn read_npz(path: &Path) -> Result<Self, ModelError> {
        const LAYOUT: &str = "a model needs W0, b0, W1, b1, … (inputs × outputs; a layer without bias needs zeros)";
        let mut archive = Archive::open(path)?;
        let count = layer_count(archive.names().iter().map(String::as_str));
        let mut layers = Vec::new();
        for i in 0..count.max(1) {
            let (w, b) = (format!("W{i}"), format!("b{i}"));
            let array = archive.array(&w, LAYOUT)?;
            let weight = match (array.shape(), array.floats()) {
                (&[rows, columns], Some(values)) => Matrix::from_values(rows, columns, values),
                _ => return Err(archive.error(&w, "must be a two-dimensional array of numbers").into()),
            };
            let array = archive.array(&b, LAYOUT)?;
            let bias = (array.shape().len() == 1).then(|| array.floats()).flatten();
            let bias = bias.ok_or_else(|| archive.error(&b, "must be a one-dimensional array of numbers"))?;
            layers.push((weight, bias));
        }
        Self::gcn(layers, Propagation::SymmetricGcn)
    }
}

fn is_npz(path: &Path, bytes: &[u8]) -> bool {
    bytes.starts_with(ZIP_MAGIC) || path.extension().is_some_and(|extension| extension == "npz")
}

/// One more than the largest i for which there is a `Wi` or `bi`, so that a gap is found later.
fn layer_count<'a>(names: impl Iterator<Item = &'a str>) -> usize {
    let index = |name: &str| name.strip_prefix(['W', 'b'])?.parse::<u16>().ok();
    names.filter_map(index).map(|i| usize::from(i) + 1).max().unwrap_or(0)
}

fn parse_safetensors(bytes: &[u8]) -> Result<Model, Problem> {
    let tensors = SafeTensors::deserialize(bytes).map_err(tensors::damaged)?;
    let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(tensors::damaged)?;
    let metadata = metadata.metadata().clone().unwrap_or_default();
    let is_ours = metadata.get("format").is_some_and(|format| format == FORMAT);
    match metadata.get("version").map(String::as_str).filter(|_| is_ours) {
        Some(VERSION) => {
            let missing = || format!("its metadata lack `{NETWORK}`, which says how its layers are put together");
            Model::described(metadata.get(NETWORK).ok_or_else(missing)?, Ours(&tensors))
        }
        None if is_ours => Err(format!("it has no version of format {FORMAT}; write it again").into()),
        None | Some(FIRST_VERSION) => first_version(&tensors, &metadata),
        Some(version) => {
            Err(format!("it has version {version} of format {FORMAT}, this nodeproof reads {FIRST_VERSION} and {VERSION}; use a newer one").into())
        }
    }
}

/// A model of the first version, or the bare tensors of one: layers that share a propagation.
fn first_version(tensors: &SafeTensors, metadata: &HashMap<String, String>) -> Result<Model, Problem> {
    let count = layer_count(tensors.names().into_iter());
    if let Some(layers) = metadata.get("layers").filter(|layers| layers.parse() != Ok(count)) {
        return Err(format!("its metadata say {layers} layers, but its tensors make {count}").into());
    }
    let mut ours = Ours(tensors);
    let mut layers = Vec::new();
    for i in 0..count.max(1) {
        layers.push((ours.matrix(&format!("W{i}"))?, ours.vector(&format!("b{i}"))?));
    }
    let propagation = match metadata.get("propagation").map_or("symmetric-gcn", String::as_str) {
        "custom" => Propagation::Custom(sparse_matrix(tensors, "propagation")?),
        name => description::named(name)?,
    };
    Model::gcn(layers, propagation).map_err(Problem::Model)
}

/// The tensors of a file.
struct Ours<'a>(&'a SafeTensors<'a>);

impl Tensors for Ours<'_> {
    fn matrix(&mut self, name: &str) -> Result<Matrix, String> {
        match layer_floats(self.0, name)? {
            (shape, values) if shape.len() == 2 => Ok(Matrix::from_values(shape[0], shape[1], values)),
            _ => Err(format!("tensor {name} must have two dimensions, inputs × outputs")),
        }
    }

    fn vector(&mut self, name: &str) -> Result<Vec<f64>, String> {
        match layer_floats(self.0, name)? {
            (shape, values) if shape.len() == 1 => Ok(values),
            _ => Err(format!("tensor {name} must have one dimension")),
        }
    }

    fn sparse(&mut self, propagation: usize) -> Result<SparseMatrix, String> {
        sparse_matrix(self.0, &format!("P{propagation}"))
    }
}

/// Shape and values of a weight or bias.
fn layer_floats(tensors: &SafeTensors, name: &str) -> Result<(Vec<usize>, Vec<f64>), String> {
    tensor(tensors, name).map_err(|problem| format!("{problem}; a model needs W0, b0, W1, b1, …"))?;
    floats(tensors, name)
}

/// The square matrix whose parts are called `name.offsets`, `name.indices` and `name.values`.
fn sparse_matrix(tensors: &SafeTensors, name: &str) -> Result<SparseMatrix, String> {
    let part = |part: &str| format!("{name}.{part}");
    let typed = |name: &str, dtype: Dtype| {
        let tensor = tensor(tensors, name)?;
        if tensor.dtype() == dtype { Ok(tensor) } else { Err(format!("tensor {name} must have type {dtype:?}")) }
    };
    let offsets: Vec<u64> =
        typed(&part("offsets"), Dtype::U64)?.data().as_chunks::<8>().0.iter().map(|&b| u64::from_le_bytes(b)).collect();
    let indices: Vec<u32> =
        typed(&part("indices"), Dtype::U32)?.data().as_chunks::<4>().0.iter().map(|&b| u32::from_le_bytes(b)).collect();
    let (_, values) = floats(tensors, &part("values"))?;
    let rows = offsets.len().saturating_sub(1);
    let entries = indices.len() as u64;
    let well_formed = offsets.first() == Some(&0)
        && offsets.last() == Some(&entries)
        && offsets.is_sorted()
        && values.len() == indices.len()
        && rows < u32::MAX as usize
        && indices.iter().all(|&column| (column as usize) < rows);
    if !well_formed {
        return Err("its custom propagation is not a well-formed square sparse matrix".to_owned());
    }
    let triplets: Vec<_> = (0..rows)
        .flat_map(|row| (offsets[row] as usize..offsets[row + 1] as usize).map(move |i| (row as u32, i)))
        .map(|(row, i)| (row, indices[i], values[i]))
        .collect();
    Ok(SparseMatrix::from_triplets(rows, rows, &triplets))
}

#[cfg(test)]
mod tests {
    use super::super::{Activation, Layer, Source, Term};
    use super::*;

    fn model(propagation: Propagation) -> Model {
        let first = (Matrix::from_values(2, 3, vec![1.0, -0.25, 0.1, 1e-300, 3.0, 0.0]), vec![0.5, -1.0, 0.0]);
        let last = (Matrix::from_values(3, 2, vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), vec![0.0, 1.0]);
        Model::gcn(vec![first, last], propagation).unwrap()
    }

    fn custom() -> Propagation {
        Propagation::Custom(SparseMatrix::from_triplets(2, 2, &[(0, 0, 0.1), (0, 1, -0.2), (1, 0, 0.3)]))
    }

    /// A network with everything that a layer can have.
    fn several_terms() -> Model {
        let gin = Propagation::Polynomial { of: Box::new(Propagation::Adjacency), coefficients: vec![1.1, 1.0] };
        let power = Propagation::power(custom(), 3);
        let first = vec![
            Term::new(Source::Attributes, 0, Matrix::from_values(2, 2, vec![0.1, 1e-300, -3.0, 0.0])),
            Term::new(Source::Ones, 1, Matrix::from_values(1, 2, vec![0.3, 0.7])),
        ];
        let second = vec![Term::new(Source::Layer(0), 2, 0.1), Term::new(Source::Attributes, 1, 1.0)];
        let layers = vec![
            Layer::new(first, vec![0.5, -1.0], Activation::LeakyRelu(0.1)),
            Layer::new(second, vec![0.0, 0.1], Activation::Relu),
            Layer::new(vec![Term::new(Source::Layer(1), 3, 1.0)], vec![0.0; 2], Activation::None),
        ];
        Model::new(2, vec![gin, custom(), power, Propagation::Identity], layers).unwrap()
    }

    #[test]
    fn keys_of_the_first_version_are_not_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.safetensors");
        let more = ["layers", "propagation", "method"].map(|key| (key.to_owned(), "2".to_owned()));
        model(Propagation::SymmetricGcn).write_with(&path, &more.into()).unwrap();
        let metadata = Model::read_metadata(&path).unwrap();
        assert_eq!(metadata["method"], "2");
        assert!(FIRST_KEYS.iter().all(|&key| !metadata.contains_key(key)));
    }

    #[test]
    fn written_models_read_back_to_the_last_bit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.safetensors");
        let gcns = [Propagation::SymmetricGcn, Propagation::RowNormalised, custom()].map(model);
        for model in gcns.into_iter().chain([several_terms()]) {
            model.write(&path).unwrap();
            let back = Model::read(&path).unwrap();
            assert_eq!(back, model);
            assert_eq!(back.fingerprint(), model.fingerprint());
        }
    }

    #[test]
    fn files_of_the_first_version_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.safetensors");
        for propagation in [Propagation::SymmetricGcn, custom()] {
            let model = model(propagation);
            let own = |name: String| name.replace("P0.", "propagation.");
            let tensors = model.named_tensors().into_iter().map(|(name, tensor)| (own(name), tensor));
            let metadata =
                [("format", FORMAT), ("version", "1"), ("layers", "2"), ("propagation", model.propagation_name())];
            let metadata = metadata.map(|(key, value)| (key.to_owned(), value.to_owned()));
            fs::write(&path, safetensors::serialize(tensors, Some(metadata.into())).unwrap()).unwrap();
            assert_eq!(Model::read(&path).unwrap(), model);
        }
    }

    #[test]
    fn fingerprints_of_the_first_version_stay() {
        let expected = "5f814da76e27d8d385f50f2fa4f8c60e31701ba368c1e2d264bf5254ed3eb3bd";
        assert_eq!(model(Propagation::SymmetricGcn).fingerprint(), expected);
    }

    #[test]
    fn the_same_model_gives_the_same_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let bytes = |name: &str| {
            let path = folder.path().join(name);
            model(Propagation::SymmetricGcn).write(&path).unwrap();
            fs::read(path).unwrap()
        };
        assert_eq!(bytes("a"), bytes("b"));
    }

    #[test]
    fn damaged_files_are_errors() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.safetensors");
        model(Propagation::SymmetricGcn).write(&path).unwrap();
        let whole = fs::read(&path).unwrap();
        for length in [0, 4, 8, 40, whole.len() - 1] {
            fs::write(&path, &whole[..length]).unwrap();
            assert!(matches!(Model::read(&path), Err(ModelError::Format { .. })), "{length} bytes");
        }
        let mut huge = whole.clone();
        huge[..8].copy_from_slice(&u64::MAX.to_le_bytes());
        fs::write(&path, huge).unwrap();
        assert!(matches!(Model::read(&path), Err(ModelError::Format { .. })));
    }

    #[test]
    fn metadata_must_agree_with_the_tensors() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.safetensors");
        let write = |version: &str, key: &str, value: &str| {
            let metadata = [("format", FORMAT), ("version", version), (key, value)];
            let metadata = metadata.map(|(key, value)| (key.to_owned(), value.to_owned()));
            let tensors = model(Propagation::SymmetricGcn).named_tensors();
            fs::write(&path, safetensors::serialize(tensors, Some(metadata.into())).unwrap()).unwrap();
            Model::read(&path).unwrap_err().to_string()
        };
        assert!(write("3", "layers", "2").contains("version 3"));
        assert!(write("1", "layers", "3").contains("3 layers"));
        assert!(write("1", "propagation", "magic").contains("`magic`"));
        assert!(write("1", "propagation", "custom").contains("propagation.offsets"));
        assert!(write("2", "layers", "2").contains("`network`"));
        assert!(write("2", NETWORK, "[]").contains("damaged"));
        let network = model(Propagation::SymmetricGcn).description();
        assert!(write("2", NETWORK, &network.replace("symmetric-gcn", "magic")).contains("`magic`"));
        assert!(write("2", NETWORK, &network.replace("symmetric-gcn", "custom")).contains("P0.offsets"));
        assert!(write("2", NETWORK, &network.replace("\"layer\":0", "\"layer\":1")).contains("reads layer 1"));
    }
}

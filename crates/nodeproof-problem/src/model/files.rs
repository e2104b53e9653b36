//! Models on file: `.safetensors` with metadata, and plain `.npz` of `W0, b0, W1, b1, …`.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;

use safetensors::SafeTensors;
use safetensors::tensor::Dtype;

use super::{Layer, Model, ModelError, Propagation};
use crate::matrix::Matrix;
use crate::npz::Archive;
use crate::sparse::SparseMatrix;
use crate::tensors::{self, Tensor, floats, tensor};

/// Value of the metadata key `format`.
const FORMAT: &str = "nodeproof-model";
/// How a zip file, and so an `.npz`, begins.
const ZIP_MAGIC: &[u8] = b"PK\x03\x04";
/// Version of the layout written here.
const VERSION: &str = "1";

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

    /// Writes the model as `.safetensors`, with propagation, number of layers and format version as metadata.
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
        let own = [
            ("format", FORMAT.to_owned()),
            ("version", VERSION.to_owned()),
            ("layers", self.layers.len().to_string()),
            ("propagation", self.propagation.name().to_owned()),
        ];
        let mut metadata: HashMap<String, String> = more.clone().into_iter().collect();
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
            let shape = vec![layer.weight.rows(), layer.weight.columns()];
            tensors.push((format!("W{i}"), Tensor::floats(shape, layer.weight.values())));
            tensors.push((format!("b{i}"), Tensor::floats(vec![layer.bias.len()], &layer.bias)));
        }
        if let Propagation::Custom(matrix) = &self.propagation {
            let pattern = matrix.pattern();
            let offsets = pattern.offsets().iter().flat_map(|&o| (o as u64).to_le_bytes()).collect();
            let indices = pattern.indices().iter().flat_map(|i| i.to_le_bytes()).collect();
            let (rows, entries) = (pattern.rows() + 1, pattern.entries());
            tensors.push((OFFSETS.to_owned(), Tensor { dtype: Dtype::U64, shape: vec![rows], bytes: offsets }));
            tensors.push((INDICES.to_owned(), Tensor { dtype: Dtype::U32, shape: vec![entries], bytes: indices }));
            tensors.push((VALUES.to_owned(), Tensor::floats(vec![entries], matrix.values())));
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
            layers.push(Layer::new(weight, bias));
        }
        Self::new(layers, Propagation::SymmetricGcn)
    }
}

fn is_npz(path: &Path, bytes: &[u8]) -> bool {
    bytes.starts_with(ZIP_MAGIC) || path.extension().is_some_and(|extension| extension == "npz")
}

const OFFSETS: &str = "propagation.offsets";
const INDICES: &str = "propagation.indices";
const VALUES: &str = "propagation.values";

/// One more than the largest i for which there is a `Wi` or `bi`, so that a gap is found later.
fn layer_count<'a>(names: impl Iterator<Item = &'a str>) -> usize {
    let index = |name: &str| name.strip_prefix(['W', 'b'])?.parse::<u16>().ok();
    names.filter_map(index).map(|i| usize::from(i) + 1).max().unwrap_or(0)
}

enum Problem {
    Format(String),
    Model(ModelError),
}

impl From<String> for Problem {
    fn from(problem: String) -> Self {
        Self::Format(problem)
    }
}

fn parse_safetensors(bytes: &[u8]) -> Result<Model, Problem> {
    let tensors = SafeTensors::deserialize(bytes).map_err(tensors::damaged)?;
    let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(tensors::damaged)?;
    let metadata = metadata.metadata().clone().unwrap_or_default();
    if let Some(format) = metadata.get("format").filter(|&format| format == FORMAT) {
        let version = metadata.get("version").map_or("none", String::as_str);
        if version != VERSION {
            return Err(format!("it has version {version} of format {format}, this nodeproof reads {VERSION}").into());
        }
    }
    let count = layer_count(tensors.names().into_iter());
    if let Some(layers) = metadata.get("layers").filter(|layers| layers.parse() != Ok(count)) {
        return Err(format!("its metadata say {layers} layers, but its tensors make {count}").into());
    }
    let mut layers = Vec::new();
    for i in 0..count.max(1) {
        let (shape, values) = layer_floats(&tensors, &format!("W{i}"))?;
        let &[rows, columns] = &shape[..] else {
            return Err(format!("tensor W{i} must have two dimensions, inputs × outputs").into());
        };
        let (shape, bias) = layer_floats(&tensors, &format!("b{i}"))?;
        if shape.len() != 1 {
            return Err(format!("tensor b{i} must have one dimension").into());
        }
        layers.push(Layer::new(Matrix::from_values(rows, columns, values), bias));
    }
    let propagation = match metadata.get("propagation").map(String::as_str) {
        None | Some("symmetric-gcn") => Propagation::SymmetricGcn,
        Some("row-normalised") => Propagation::RowNormalised,
        Some("custom") => Propagation::Custom(custom_matrix(&tensors)?),
        Some(other) => {
            let known = "symmetric-gcn, row-normalised and custom";
            return Err(format!("its propagation is `{other}`; known ones are {known}").into());
        }
    };
    Model::new(layers, propagation).map_err(Problem::Model)
}

/// Shape and values of a weight or bias.
fn layer_floats(tensors: &SafeTensors, name: &str) -> Result<(Vec<usize>, Vec<f64>), String> {
    tensor(tensors, name).map_err(|problem| format!("{problem}; a model needs W0, b0, W1, b1, …"))?;
    floats(tensors, name)
}

fn custom_matrix(tensors: &SafeTensors) -> Result<SparseMatrix, String> {
    let typed = |name: &str, dtype: Dtype| {
        let tensor = tensor(tensors, name)?;
        if tensor.dtype() == dtype { Ok(tensor) } else { Err(format!("tensor {name} must have type {dtype:?}")) }
    };
    let offsets: Vec<u64> =
        typed(OFFSETS, Dtype::U64)?.data().as_chunks::<8>().0.iter().map(|&b| u64::from_le_bytes(b)).collect();
    let indices: Vec<u32> =
        typed(INDICES, Dtype::U32)?.data().as_chunks::<4>().0.iter().map(|&b| u32::from_le_bytes(b)).collect();
    let (_, values) = floats(tensors, VALUES)?;
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
    use super::*;

    fn model(propagation: Propagation) -> Model {
        let first =
            Layer::new(Matrix::from_values(2, 3, vec![1.0, -0.25, 0.1, 1e-300, 3.0, 0.0]), vec![0.5, -1.0, 0.0]);
        let last = Layer::new(Matrix::from_values(3, 2, vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), vec![0.0, 1.0]);
        Model::new(vec![first, last], propagation).unwrap()
    }

    #[test]
    fn written_models_read_back_to_the_last_bit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.safetensors");
        let custom = SparseMatrix::from_triplets(2, 2, &[(0, 0, 0.1), (0, 1, 0.2), (1, 0, 0.3)]);
        for propagation in [Propagation::SymmetricGcn, Propagation::RowNormalised, Propagation::Custom(custom)] {
            let model = model(propagation);
            model.write(&path).unwrap();
            let back = Model::read(&path).unwrap();
            assert_eq!(back, model);
            assert_eq!(back.fingerprint(), model.fingerprint());
        }
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
        let write = |key: &str, value: &str| {
            let metadata =
                HashMap::from([("format".to_owned(), FORMAT.to_owned()), ("version".to_owned(), VERSION.to_owned())]);
            let metadata = metadata.into_iter().chain([(key.to_owned(), value.to_owned())]).collect();
            fs::write(
                &path,
                safetensors::serialize(model(Propagation::SymmetricGcn).named_tensors(), Some(metadata)).unwrap(),
            )
            .unwrap();
            Model::read(&path).unwrap_err().to_string()
        };
        assert!(write("version", "2").contains("version 2"));
        assert!(write("layers", "3").contains("3 layers"));
        assert!(write("propagation", "magic").contains("`magic`"));
        assert!(write("propagation", "custom").contains("propagation.offsets"));
    }
}

//! Tensors on file, in the `.safetensors` format.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};
use std::path::Path;

use safetensors::tensor::{Dtype, TensorView, View};
use safetensors::{SafeTensorError, SafeTensors, serialize};

/// Writes tensors and metadata; the same ones give the same bytes.
pub(crate) fn write(path: &Path, tensors: Vec<(String, Tensor)>, metadata: HashMap<String, String>) -> io::Result<()> {
    let bytes = to_bytes(tensors, metadata)?;
    crate::files::replace(path, |file| file.write_all(&bytes))
}

/// What [`write`] writes.
pub(crate) fn to_bytes(tensors: Vec<(String, Tensor)>, metadata: HashMap<String, String>) -> io::Result<Vec<u8>> {
    sort_header(serialize(tensors, Some(metadata)).map_err(|error| io::Error::other(error.to_string()))?)
}

/// What to say of a file that is not in the format.
pub(crate) fn damaged(error: SafeTensorError) -> String {
    format!("{error}; it may be truncated, damaged or of another format")
}

/// Sorts the keys of a safetensors header, which the crate writes in the random order of a hash map, so that the same
/// tensors give the same bytes.
fn sort_header(mut bytes: Vec<u8>) -> io::Result<Vec<u8>> {
    let (length, rest) = bytes.split_first_chunk_mut::<8>().ok_or(io::ErrorKind::InvalidData)?;
    let header = rest.get_mut(..u64::from_le_bytes(*length) as usize).ok_or(io::ErrorKind::InvalidData)?;
    let sorted: BTreeMap<String, serde_json::Value> = serde_json::from_slice(header)?;
    let sorted = serde_json::to_vec(&sorted)?;
    header[..sorted.len()].copy_from_slice(&sorted);
    Ok(bytes)
}

/// The tensor `name`.
pub(crate) fn tensor<'a>(tensors: &SafeTensors<'a>, name: &str) -> Result<TensorView<'a>, String> {
    tensors.tensor(name).map_err(|_| {
        let mut names = tensors.names();
        names.sort_unstable();
        format!("tensor {name} is missing (it holds: {})", names.join(", "))
    })
}

/// Shape and values of tensor `name`.
pub(crate) fn floats(tensors: &SafeTensors, name: &str) -> Result<(Vec<usize>, Vec<f64>), String> {
    let tensor = tensor(tensors, name)?;
    let values = match tensor.dtype() {
        Dtype::F64 => tensor.data().as_chunks::<8>().0.iter().map(|&b| f64::from_le_bytes(b)).collect(),
        Dtype::F32 => tensor.data().as_chunks::<4>().0.iter().map(|&b| f32::from_le_bytes(b).into()).collect(),
        other => return Err(format!("tensor {name} has type {other:?}; store weights as F32 or F64")),
    };
    Ok((tensor.shape().to_vec(), values))
}

/// A tensor to be written.
pub(crate) struct Tensor {
    pub(crate) dtype: Dtype,
    pub(crate) shape: Vec<usize>,
    pub(crate) bytes: Vec<u8>,
}

impl Tensor {
    pub(crate) fn floats(shape: Vec<usize>, values: &[f64]) -> Self {
        Self { dtype: Dtype::F64, shape, bytes: values.iter().flat_map(|value| value.to_le_bytes()).collect() }
    }
}

impl View for Tensor {
    fn dtype(&self) -> Dtype {
        self.dtype
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        Cow::Borrowed(&self.bytes)
    }

    fn data_len(&self) -> usize {
        self.bytes.len()
    }
}

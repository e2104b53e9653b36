//! The description of a network (or, for a file of the first version, the name of its propagation) on the first line, and a tensor
//! on each of the others.
#![no_main]

use std::collections::HashMap;

use libfuzzer_sys::fuzz_target;
use nodeproof_fuzz::{Array, file, npz, use_model};
use safetensors::tensor::{Dtype, TensorView};

fuzz_target!(|text: &str| {
    let Some((first, rest)) = text.split_once('\n') else { return };
    let arrays = Array::all(rest);
    if first == "npz" {
        return use_model(&file("model", npz(&arrays)));
    }
    let metadata = match first.starts_with('{') {
        true => [("format", "nodeproof-model"), ("version", "2"), ("network", first)],
        false => [("format", "nodeproof-model"), ("version", "1"), ("propagation", first)],
    };
    let metadata: HashMap<_, _> = metadata.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    let tensors: HashMap<_, _> = arrays.iter().filter_map(|array| Some((array.name, tensor(array)?))).collect();
    if let Ok(bytes) = safetensors::serialize(tensors, Some(metadata)) {
        use_model(&file("model", bytes));
    }
});

/// The tensor of a line, unless it claims another size than it has: that is left to the target `model`.
fn tensor<'a>(array: &'a Array) -> Option<TensorView<'a>> {
    let dtype = match array.descr {
        "<f8" => Dtype::F64,
        "<f4" => Dtype::F32,
        "<u8" => Dtype::U64,
        "<u4" => Dtype::U32,
        _ => return None,
    };
    let sizes = array.sizes();
    // The library counts bits without looking whether they are too many.
    sizes.iter().try_fold(64usize, |product, &size| product.checked_mul(size))?;
    TensorView::new(dtype, sizes, &array.bytes).ok()
}

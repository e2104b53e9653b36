//! The bytes of a model, `.safetensors` or `.npz`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nodeproof_fuzz::{file, use_model};

fuzz_target!(|bytes: &[u8]| use_model(&file("model", bytes)));

//! The arrays of a graph, one a line, in an `.npz` whose checksums fit.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nodeproof_fuzz::{Array, file, npz, use_graph};

fuzz_target!(|text: &str| use_graph(&file("graph.npz", npz(&Array::all(text)))));

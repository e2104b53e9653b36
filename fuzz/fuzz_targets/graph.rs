//! The bytes of a graph's `.npz`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nodeproof_fuzz::{file, use_graph};

fuzz_target!(|bytes: &[u8]| use_graph(&file("graph.npz", bytes)));

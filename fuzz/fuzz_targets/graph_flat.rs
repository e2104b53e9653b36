//! The bytes of a graph's `.graph`, once more with a checksum that fits.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nodeproof_fuzz::{file, use_graph};

/// Where the checksum is.
const CHECKSUM: std::ops::Range<usize> = 28..32;

fuzz_target!(|bytes: &[u8]| {
    use_graph(&file("flat.graph", bytes));
    let mut sealed = bytes.to_vec();
    if sealed.len() < CHECKSUM.end {
        return;
    }
    let mut checksum = crc32fast::Hasher::new();
    checksum.update(&sealed[..CHECKSUM.start]);
    checksum.update(&sealed[CHECKSUM.end..]);
    sealed[CHECKSUM].copy_from_slice(&checksum.finalize().to_le_bytes());
    use_graph(&file("sealed.graph", sealed));
});

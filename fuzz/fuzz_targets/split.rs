//! Splits: JSON, the bytes of an `.npz`, or its arrays, one a line.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nodeproof_fuzz::{Array, file, npz, path};
use nodeproof_problem::{Part, Split};

const NODES: usize = 24;

fuzz_target!(|bytes: &[u8]| {
    let file = match (bytes.first(), std::str::from_utf8(bytes)) {
        (Some(b'{'), _) => file("split.json", bytes),
        (Some(b'P'), _) | (_, Err(_)) => file("split.npz", bytes),
        (_, Ok(text)) => file("split.npz", npz(&Array::all(text))),
    };
    let Ok(split) = Split::read(&file, NODES) else { return };
    let mut nodes = [split.part(Part::Train), split.part(Part::Unlabelled)].concat();
    nodes.sort_unstable();
    assert!(nodes.iter().map(|node| node.index()).eq(0..NODES), "each node is in one part");
    assert!(split.part(Part::Train).iter().all(|&node| split.is_labelled(node)));
    let copy = path("copy.json");
    split.write(&copy).unwrap();
    assert_eq!(Split::read(&copy, NODES).unwrap(), split);
});

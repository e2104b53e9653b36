//! What is written reads back, and nothing that is damaged, tampered with or hostile gets through.

use std::fs;
use std::io::Cursor;

use serde_json::{Value, json};

use super::read::{Problem, read_from};
use super::*;
use crate::graph::{Graph, GraphError, GraphOptions, Names};
use crate::ids::ClassId;
use crate::matrix::Matrix;
use crate::values::Values;

const KEPT: GraphOptions = GraphOptions {
    binarise: false,
    normalise_rows: false,
    real_values: false,
    largest_component: false,
    keep_self_loops: true,
    directed: true,
};

/// Four nodes with a self-loop and an edge in one direction, a row of nothing, labels and names.
fn bits() -> Graph {
    let strings = |texts: &[&str]| Some(texts.iter().map(|&text| text.to_owned()).collect());
    let edges = [(0, 1), (1, 0), (2, 2), (3, 0)];
    Graph::with_options(4, 3, &edges, &[(0, 0), (0, 2), (1, 1), (3, 2)], KEPT)
        .unwrap()
        .with_labels(vec![Some(ClassId(1)), None, Some(ClassId(0)), Some(ClassId(1))])
        .unwrap()
        .with_names(Names {
            nodes: strings(&["α", "", "c", "d e"]),
            attributes: None,
            classes: strings(&["x", "y", "z"]),
        })
        .unwrap()
        .with_binarised(7)
}

fn values() -> Graph {
    let entries = Matrix::from_values(2, 2, vec![0.5, -0.0, 1e-300, -7.25]);
    let values = Values::new(entries).unwrap().with_ranges(vec![(-1.0, 1.0), (0.5, 0.5)]).unwrap();
    Graph::new(2, 2, &[(0, 1)], &[]).unwrap().with_values(values).unwrap()
}

fn graphs() -> [Graph; 5] {
    let plain = Graph::new(1, 1, &[], &[]).unwrap();
    [
        bits(),
        bits().with_kind(AttributeKind::NormalisedRows),
        values(),
        bits().with_kind(AttributeKind::RealValues),
        plain,
    ]
}

fn bytes(graph: &Graph) -> Vec<u8> {
    let mut file = Cursor::new(Vec::new());
    write(graph, &mut file).unwrap();
    file.into_inner()
}

fn parse(bytes: &[u8]) -> Result<Graph, Problem> {
    read_from(&mut &*bytes, bytes.len() as u64)
}

/// What is wrong with the file.
fn problem(bytes: &[u8]) -> FlatError {
    match parse(bytes) {
        Err(Problem::File(error)) => error,
        other => panic!("{other:?}"),
    }
}

/// What is wrong with the graph.
fn graph_error(bytes: &[u8]) -> GraphError {
    match parse(bytes) {
        Err(Problem::Graph(error)) => error,
        other => panic!("{other:?}"),
    }
}

/// Where the arrays begin.
fn start(bytes: &[u8]) -> usize {
    PREFIX + u32::from_le_bytes(bytes[24..28].try_into().unwrap()) as usize
}

fn header(bytes: &[u8]) -> Value {
    serde_json::from_slice(&bytes[PREFIX..start(bytes)]).unwrap()
}

/// The same with a checksum that fits.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let mut checksum = crc32fast::Hasher::new();
    checksum.update(&bytes[..CHECKSUM]);
    checksum.update(&bytes[PREFIX..]);
    bytes[CHECKSUM..PREFIX].copy_from_slice(&checksum.finalize().to_le_bytes());
    bytes
}

/// The same with another header.
fn with_header(bytes: &[u8], header: &str) -> Vec<u8> {
    let mut header = header.as_bytes().to_vec();
    header.resize((PREFIX + header.len()).next_multiple_of(64) - PREFIX, b' ');
    let mut changed = [&bytes[..PREFIX], &header, &bytes[start(bytes)..]].concat();
    changed[24..28].copy_from_slice(&(header.len() as u32).to_le_bytes());
    sealed(changed)
}

/// The same with a header that was changed.
fn with_change(bytes: &[u8], change: impl FnOnce(&mut Value)) -> Vec<u8> {
    let mut header = header(bytes);
    change(&mut header);
    with_header(bytes, &header.to_string())
}

/// The same with other bytes at the beginning of an item of an array.
fn with_item(bytes: &[u8], array: &str, item: usize, new: &[u8]) -> Vec<u8> {
    let header = header(bytes);
    let of = header["arrays"].as_array().unwrap().iter().find(|of| of["name"] == array).unwrap();
    let at = start(bytes) + of["at"].as_u64().unwrap() as usize + item * new.len();
    let mut changed = bytes.to_vec();
    changed[at..at + new.len()].copy_from_slice(new);
    sealed(changed)
}

#[test]
fn everything_is_read_as_it_was_written() {
    for graph in graphs() {
        let bytes = bytes(&graph);
        let back = parse(&bytes).unwrap();
        assert_eq!(back, graph);
        assert_eq!((back.fingerprint(), back.binarised()), (graph.computed_fingerprint(), graph.binarised()));
        back.verify_fingerprint().unwrap();
        assert_eq!(self::bytes(&back), bytes, "the same graph gives the same bytes");
        for array in header(&bytes)["arrays"].as_array().unwrap() {
            assert_eq!((start(&bytes) as u64 + array["at"].as_u64().unwrap()) % 64, 0, "{array}");
        }
    }
}

/// Whatever the name of a file is, its content says what it is, and options do to it what they do to an `.npz`.
#[test]
fn both_layouts_are_read_alike() {
    let folder = tempfile::tempdir().unwrap();
    let [flat, npz] = ["flat.npz", "npz.graph"].map(|name| folder.path().join(name));
    for graph in graphs() {
        let right = folder.path().join("right.graph");
        graph.write(&right).unwrap();
        fs::rename(&right, &flat).unwrap();
        let right = folder.path().join("right.npz");
        graph.write(&right).unwrap();
        fs::rename(&right, &npz).unwrap();
        for options in 0..16 {
            let options = GraphOptions::new()
                .binarise(options & 1 > 0)
                .normalise_rows(options & 2 > 0)
                .real_values(options & 4 > 0)
                .largest_component(options & 8 > 0);
            match (Graph::read(&flat, options), Graph::read(&npz, options)) {
                (Ok(found), Ok(expected)) => {
                    assert_eq!(found.0.binarised(), graph.binarised() + expected.0.binarised(), "{options:?}");
                    assert_eq!(found.0.with_binarised(0), expected.0.with_binarised(0), "{options:?}");
                    assert_eq!(found.1, expected.1, "{options:?}");
                }
                (Err(found), Err(expected)) => assert_eq!(found.to_string(), expected.to_string()),
                (found, expected) => panic!("{options:?}: {found:?}, {expected:?}"),
            }
            if let Ok((graph, _)) = Graph::read(&flat, options) {
                graph.verify_fingerprint().unwrap();
            }
        }
    }
}

#[test]
fn files_that_end_too_early_or_too_late_are_refused() {
    for graph in [bits(), values()] {
        let whole = bytes(&graph);
        for length in 0..whole.len() {
            assert!(matches!(problem(&whole[..length]), FlatError::Truncated { .. }), "{length}");
        }
        let longer = [&whole[..], &[0]].concat();
        assert!(matches!(problem(&longer), FlatError::TrailingBytes { extra: 1 }));
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("short.graph");
    fs::write(&path, &bytes(&bits())[..9]).unwrap();
    let error = Graph::read(&path, GraphOptions::new()).unwrap_err().to_string();
    assert!(error.contains("short.graph is truncated: it has 9 bytes of 32"), "{error}");
    // A file that becomes shorter while it is read.
    let whole = bytes(&bits());
    let found = read_from(&mut &whole[..whole.len() - 1], whole.len() as u64);
    assert!(matches!(found, Err(Problem::File(FlatError::Io(_)))), "{found:?}");
}

#[test]
fn no_bit_can_change_unnoticed() {
    for graph in [bits(), values()] {
        let whole = bytes(&graph);
        for at in 0..whole.len() {
            for bit in 0..8 {
                let mut damaged = whole.clone();
                damaged[at] ^= 1 << bit;
                assert!(matches!(parse(&damaged), Err(Problem::File(_) | Problem::Graph(_))), "bit {bit} of byte {at}");
            }
        }
        let last = whole.len() - 1;
        let mut damaged = whole;
        damaged[last] ^= 1;
        assert!(matches!(problem(&damaged), FlatError::Checksum { .. }));
    }
}

#[test]
fn other_versions_and_byte_orders_are_refused() {
    let whole = bytes(&bits());
    let with = |at: usize, number: [u8; 4]| {
        let mut changed = whole.clone();
        changed[at..at + 4].copy_from_slice(&number);
        problem(&sealed(changed))
    };
    assert!(matches!(with(16, 2u32.to_le_bytes()), FlatError::Version { found: 2 }));
    assert!(matches!(with(20, BYTE_ORDER.to_be_bytes()), FlatError::ByteOrder));
    assert!(matches!(with(24, u32::MAX.to_le_bytes()), FlatError::Header { .. }));
    assert!(matches!(with(24, 97u32.to_le_bytes()), FlatError::Header { .. }));
    assert!(matches!(with(0, [0; 4]), FlatError::Header { .. }));
}

#[test]
fn headers_are_not_believed() {
    let whole = bytes(&bits());
    let change = |change: &dyn Fn(&mut Value)| problem(&with_change(&whole, change));
    let arrays = |change: &dyn Fn(&mut Vec<Value>)| {
        problem(&with_change(&whole, |header| change(header["arrays"].as_array_mut().unwrap())))
    };
    for wrong in [
        problem(&with_header(&whole, "{")),
        problem(&with_header(&whole, &"[".repeat(10_000))),
        change(&|header| header["more"] = json!(1)),
        change(&|header| header["nodes"] = json!(-1)),
        change(&|header| header["nodes"] = json!(5)),
        change(&|header| header["kind"] = json!("numbers")),
        change(&|header| header["kind"] = json!("real-values")),
        change(&|header| header["fingerprint"] = json!("F".repeat(64))),
        change(&|header| header["fingerprint"] = json!("")),
        arrays(&|arrays| arrays[1]["type"] = json!("<u8")),
        arrays(&|arrays| arrays[1]["type"] = json!("?")),
        arrays(&|arrays| arrays[1]["shape"] = json!([2, 2])),
        arrays(&|arrays| arrays[1]["shape"] = json!([])),
        arrays(&|arrays| arrays[1]["shape"] = json!([u64::MAX, 0])),
        arrays(&|arrays| arrays[1]["at"] = json!(65)),
        arrays(&|arrays| arrays[0]["at"] = json!(0.5)),
        arrays(&|arrays| arrays.swap(0, 1)),
        arrays(&|arrays| arrays[4]["name"] = json!("classes")),
    ] {
        assert!(matches!(wrong, FlatError::Header { .. }), "{wrong:?}");
        assert!(wrong.to_string().len() < 400, "{wrong}");
    }
    assert!(matches!(arrays(&|arrays| arrays.clear()), FlatError::TrailingBytes { .. }));
    // What a file claims to have it must have, before any of it is read.
    for shape in [json!([1u64 << 40]), json!([1u64 << 60]), json!([6])] {
        let claimed = arrays(&|arrays| arrays.last_mut().unwrap()["shape"] = shape.clone());
        assert!(matches!(claimed, FlatError::Truncated { .. }), "{claimed:?}");
    }
    let huge = change(&|header| header["nodes"] = json!(u32::MAX - 2));
    assert!(matches!(huge, FlatError::Header { .. }), "{huge:?}");
    let many = graph_error(&with_change(&whole, |header| header["nodes"] = json!(u32::MAX)));
    assert!(matches!(many, GraphError::TooLarge { .. }));
    let none = graph_error(&with_change(&whole, |header| header["attributes"] = json!(0)));
    assert!(matches!(none, GraphError::Empty { .. }));
    // 15 bytes lie before the columns of the adjacency, of which none may be something else.
    let mut hidden = whole.clone();
    let at = start(&whole) + 8 * 5;
    hidden[at] = 1;
    assert!(matches!(problem(&sealed(hidden)), FlatError::Array { array: "adjacency_columns", .. }));
}

#[test]
fn arrays_are_checked_where_the_checksum_fits() {
    let whole = bytes(&bits());
    let item = |array: &str, item: usize, new: &[u8]| with_item(&whole, array, item, new);
    let (long, short) = (|number: u64| number.to_le_bytes(), |number: u32| number.to_le_bytes());
    for offsets in ["adjacency_offsets", "attribute_offsets"] {
        for (place, number) in [(0, 1), (1, 9), (1, u64::MAX), (2, 0), (4, 3), (4, 5)] {
            let found = problem(&item(offsets, place, &long(number)));
            assert!(
                matches!(found, FlatError::Array { array, .. } if array == offsets),
                "{offsets} {place}: {found:?}"
            );
        }
    }
    let same = problem(&item("attribute_columns", 1, &short(0)));
    assert!(matches!(same, FlatError::Array { array: "attribute_columns", .. }), "{same:?}");
    let outside = graph_error(&item("attribute_columns", 1, &short(3)));
    assert!(matches!(outside, GraphError::OutOfRange { row: 0, column: 3, columns: 3, .. }), "{outside:?}");
    let outside = graph_error(&item("adjacency_columns", 3, &short(u32::MAX)));
    assert!(matches!(outside, GraphError::OutOfRange { row: 3, .. }), "{outside:?}");
    let label = problem(&item("labels", 0, &(1i32 << 16).to_le_bytes()));
    assert!(matches!(label, FlatError::Array { array: "labels", .. }), "{label:?}");
    let label = graph_error(&item("labels", 0, &3i32.to_le_bytes()));
    assert!(matches!(label, GraphError::Mismatch { what: "the list of class names", .. }), "{label:?}");
    for (place, number) in [(0, 1), (1, 3), (1, u64::MAX), (4, 5), (4, 7)] {
        let found = problem(&item("node_name_offsets", place, &long(number)));
        assert!(matches!(found, FlatError::Array { .. }), "{place}: {found:?}");
    }
    let text = problem(&item("node_name_text", 0, &[0xff]));
    assert!(matches!(text, FlatError::Array { array: "node_name_text", .. }), "{text:?}");
}

#[test]
fn values_and_ranges_are_checked_where_the_checksum_fits() {
    let whole = bytes(&values());
    let with = |array: &str, number: f64| graph_error(&with_item(&whole, array, 1, &number.to_le_bytes()));
    for number in [f64::NAN, f64::INFINITY] {
        assert!(matches!(with("attribute_values", number), GraphError::NotFinite { row: 0, column: 1, .. }));
        assert!(matches!(with("attribute_low", number), GraphError::NoRange { .. }));
    }
    assert!(matches!(with("attribute_low", 0.75), GraphError::NoRange { .. }), "the lower end comes first");
}

/// A fingerprint is used as it is on file, and not believed by those who compute it anew. Every change of the graph forgets it.
#[test]
fn fingerprints_on_file_are_claims() {
    let lie = "0".repeat(64);
    let whole = with_change(&bytes(&bits()), |header| header["fingerprint"] = json!(lie));
    let graph = parse(&whole).unwrap();
    assert_eq!(graph.fingerprint(), lie);
    assert_eq!(graph.computed_fingerprint(), bits().fingerprint());
    let error = graph.verify_fingerprint().unwrap_err();
    assert!(matches!(error, GraphError::Fingerprint { claimed, .. } if claimed == lie));
    assert_eq!(parse(&bytes(&graph)).unwrap().fingerprint(), bits().fingerprint(), "nor does it get into a new file");
    for changed in [
        graph.clone().with_labels(vec![None; 4]).unwrap(),
        graph.clone().with_kind(AttributeKind::NormalisedRows),
        graph.clone().with_kind(AttributeKind::RealValues),
        graph.largest_component(),
    ] {
        changed.verify_fingerprint().unwrap();
    }
    let whole = with_change(&bytes(&values()), |header| header["fingerprint"] = json!(lie));
    let changed = parse(&whole).unwrap().with_ranges(vec![(0.0, 1.0); 2]).unwrap();
    changed.verify_fingerprint().unwrap();
    assert_eq!(parse(&whole).unwrap().fingerprint_without_ranges(), values().fingerprint_without_ranges());
}

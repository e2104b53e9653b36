//! Graphs on file: what is written reads back, every trap of the layout is sprung, and nothing hostile gets through.

use std::io::{Cursor, Write};
use std::path::PathBuf;

use nodeproof_problem::{ClassId, Graph, GraphError, GraphOptions, Model, Names, NodeId};
use proptest::prelude::*;
use zip::CompressionMethod::{Deflated, Stored};

/// An `.npy` array with this type string, shape and data.
fn npy(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
    let mut array = b"\x93NUMPY\x01\x00".to_vec();
    array.extend((header.len() as u16).to_le_bytes());
    array.extend(header.as_bytes());
    array.extend(data);
    array
}

fn list(descr: &str, length: usize, data: impl Iterator<Item = u8>) -> Vec<u8> {
    npy(descr, &format!("({length},)"), &data.collect::<Vec<_>>())
}

fn int64(values: &[i64]) -> Vec<u8> {
    list("<i8", values.len(), values.iter().flat_map(|v| v.to_le_bytes()))
}

fn int32(values: &[i32]) -> Vec<u8> {
    list("<i4", values.len(), values.iter().flat_map(|v| v.to_le_bytes()))
}

fn int8(values: &[i8]) -> Vec<u8> {
    list("|i1", values.len(), values.iter().map(|&v| v as u8))
}

fn float32(values: &[f32]) -> Vec<u8> {
    list("<f4", values.len(), values.iter().flat_map(|v| v.to_le_bytes()))
}

type Members = Vec<(&'static str, Vec<u8>)>;

/// Members of a graph of three nodes and two attributes; tests replace some of them.
fn members() -> Members {
    vec![
        ("adj_data", float32(&[1.0, 2.0, 1.0])),
        ("adj_indices", int32(&[1, 2, 1])),
        ("adj_indptr", int32(&[0, 1, 2, 3])),
        ("adj_shape", int64(&[3, 3])),
        ("attr_data", int64(&[1, 1])),
        ("attr_indices", int32(&[1, 0])),
        ("attr_indptr", int32(&[0, 1, 1, 2])),
        ("attr_shape", int64(&[3, 2])),
        ("labels", int8(&[0, 1, -1])),
    ]
}

fn without(name: &str) -> Members {
    members().into_iter().filter(|member| member.0 != name).collect()
}

fn replace(name: &'static str, array: Vec<u8>) -> Members {
    let mut members = without(name);
    members.push((name, array));
    members
}

fn archive(members: &[(&str, Vec<u8>)], method: zip::CompressionMethod) -> Vec<u8> {
    let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, array) in members {
        let options = zip::write::SimpleFileOptions::default().compression_method(method);
        archive.start_file(format!("{name}.npy"), options).unwrap();
        archive.write_all(array).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn write(&self, bytes: &[u8]) -> PathBuf {
        let path = self.0.path().join("graph.npz");
        std::fs::write(&path, bytes).unwrap();
        path
    }

    fn read(&self, members: &[(&str, Vec<u8>)]) -> Result<Graph, GraphError> {
        Graph::read(self.write(&archive(members, Stored)), GraphOptions::new()).map(|(graph, _)| graph)
    }
}

#[test]
fn the_layout_is_read_stored_and_deflated() {
    for method in [Stored, Deflated] {
        let folder = Folder::new();
        let (graph, cleaning) = Graph::read(folder.write(&archive(&members(), method)), GraphOptions::new()).unwrap();
        assert_eq!((graph.nodes(), graph.attribute_count(), graph.classes(), graph.edges()), (3, 2, 2, 2));
        assert_eq!(graph.adjacency().row(1), [0, 2]);
        assert_eq!(graph.attributes().row(0), [1]);
        assert_eq!((graph.label(NodeId(1)), graph.label(NodeId(2))), (Some(ClassId(1)), None));
        assert_eq!((cleaning.edges_on_file, cleaning.directed_edges, cleaning.weights_ignored), (3, 1, 1));
    }
}

#[test]
fn names_are_trimmed_and_pickled_members_skipped() {
    let text = |names: &[&str]| {
        let codes = names.iter().flat_map(|name| {
            let mut codes: Vec<u32> = name.chars().map(u32::from).collect();
            codes.resize(4, 0);
            codes
        });
        list("<U4", names.len(), codes.flat_map(u32::to_le_bytes))
    };
    let mut members = members();
    members.push(("node_names", text(&["a\0\r", " b", "ç"])));
    members.push(("class_names", npy("|O", "(2,)", b"\x80\x04os.system")));
    members.push(("idx_to_node", npy("|O", "()", b"\x80\x04pickle")));
    members.push(("unknown", b"not even an array".to_vec()));
    let folder = Folder::new();
    let (graph, cleaning) = Graph::read(folder.write(&archive(&members, Stored)), GraphOptions::new()).unwrap();
    assert_eq!(graph.node_name(NodeId(0)), "a");
    assert_eq!(graph.node_name(NodeId(2)), "ç");
    assert_eq!(graph.class_name(ClassId(1)), "class 1");
    assert_eq!(cleaning.members_skipped, ["class_names", "idx_to_node", "unknown"]);
}

#[test]
fn attributes_must_be_binary_unless_asked() {
    let folder = Folder::new();
    let members = replace("attr_data", float32(&[0.3, 1.0]));
    let error = folder.read(&members).unwrap_err();
    assert!(matches!(error, GraphError::NotBinary { node: 0, attribute: 1, .. }), "{error}");
    let binarise = GraphOptions::new().binarise(true);
    let (graph, cleaning) = Graph::read(folder.write(&archive(&members, Stored)), binarise).unwrap();
    assert_eq!((graph.attributes().entries(), cleaning.attributes_binarised), (2, 1));
    let members = replace("attr_data", float32(&[-0.3, 0.0]));
    let (graph, cleaning) = Graph::read(folder.write(&archive(&members, Stored)), binarise).unwrap();
    assert_eq!((graph.attributes().entries(), cleaning.attribute_zeros), (0, 1), "neither is > 0");
}

#[test]
fn self_loops_and_duplicates_are_cleaned() {
    let mut members = replace("adj_indices", int32(&[0, 2, 2]));
    members.retain(|member| member.0 != "adj_indptr");
    members.push(("adj_indptr", int32(&[0, 1, 3, 3])));
    let folder = Folder::new();
    let path = folder.write(&archive(&members, Stored));
    let (graph, cleaning) = Graph::read(&path, GraphOptions::new()).unwrap();
    assert_eq!((graph.edges(), cleaning.self_loops_removed, cleaning.duplicate_edges), (1, 1, 1));
    let (graph, cleaning) = Graph::read(&path, GraphOptions::new().keep_self_loops(true)).unwrap();
    assert_eq!((graph.edges(), cleaning.self_loops_removed), (2, 0));
}

#[test]
fn every_way_a_graph_can_be_wrong_is_an_error() {
    let mut fewer_rows = replace("attr_shape", int64(&[2, 2]));
    fewer_rows.retain(|member| member.0 != "attr_indptr");
    fewer_rows.push(("attr_indptr", int32(&[0, 1, 2])));
    // No bytes, and still 17 terabytes of ranges.
    let none = |shape: &str| npy("<f8", shape, &[]);
    let without_rows: Members = vec![
        ("adj_data", float32(&[])),
        ("adj_indices", int32(&[])),
        ("adj_indptr", int32(&[0])),
        ("adj_shape", int64(&[0, 0])),
        ("attr_matrix", none("(0, 1099511627776)")),
        ("attr_low", none("(0,)")),
        ("attr_high", none("(0,)")),
    ];
    let cases: Vec<(&str, Members)> = vec![
        ("has no array `attr_shape`", without("attr_shape")),
        ("must be square", replace("adj_shape", int64(&[3, 4]))),
        ("claims 4294967296 rows", replace("adj_shape", int64(&[1 << 32, 1 << 32]))),
        ("holds the negative number -3", replace("adj_shape", int64(&[-3, 3]))),
        ("must hold two numbers", replace("adj_shape", int64(&[3]))),
        ("a matrix of 3 rows needs 4", replace("adj_indptr", int32(&[0, 1, 3]))),
        ("all must agree", replace("adj_indptr", int32(&[0, 1, 2, 4]))),
        ("all must agree", replace("adj_data", float32(&[1.0]))),
        ("decreases after row 1", replace("adj_indptr", int32(&[0, 3, 2, 3]))),
        ("only 3 columns", replace("adj_indices", int32(&[1, 3, 1]))),
        ("is NaN", replace("adj_data", float32(&[1.0, f32::NAN, 1.0]))),
        ("is inf", replace("attr_data", float32(&[f32::INFINITY, 1.0]))),
        ("the attribute matrix has 2 entries", fewer_rows),
        ("one-dimensional array of integers", replace("adj_indices", float32(&[1.0, 2.0, 1.0]))),
        ("the list of labels has 2 entries", replace("labels", int8(&[0, 1]))),
        ("one-dimensional array of integers", replace("labels", npy("|i1", "(3, 1)", &[0, 1, 0]))),
        ("claims 800 bytes of data", replace("labels", npy("<i8", "(100,)", &[0; 24]))),
        ("bytes of data but the file holds", replace("adj_indices", npy("<i4", "(4611686018427387904,)", &[0; 12]))),
        ("unsupported type", replace("attr_data", npy("<c16", "(2,)", &[0; 32]))),
        ("magic number", replace("labels", b"PK\x03\x04 not an array".to_vec())),
        ("0 nodes", without_rows),
    ];
    for (expected, members) in cases {
        let error = Folder::new().read(&members).unwrap_err().to_string();
        assert!(error.contains(expected), "expected `{expected}` in: {error}");
    }
}

/// Sparse matrices are kept dense where they are of real values, but not at any price.
#[test]
fn few_values_do_not_fill_the_memory() {
    let wide = replace("attr_shape", int64(&[3, 1 << 29]));
    let read = |options| Graph::read(Folder::new().write(&archive(&wide, Stored)), options).map(|(graph, _)| graph);
    assert_eq!(read(GraphOptions::new()).unwrap().attribute_count(), 1 << 29);
    let error = read(GraphOptions::new().real_values(true)).unwrap_err();
    assert!(matches!(error, GraphError::TooManyValues { .. }), "{error}");
}

#[test]
fn truncated_and_foreign_files_are_errors() {
    let folder = Folder::new();
    let whole = archive(&members(), Deflated);
    for length in (0..whole.len()).step_by(7) {
        assert!(Graph::read(folder.write(&whole[..length]), GraphOptions::new()).is_err(), "{length} bytes");
    }
    for foreign in [&b"hello"[..], b"\x93NUMPY\x01\x00", &[0; 1000], &[0xff; 1000]] {
        assert!(matches!(Graph::read(folder.write(foreign), GraphOptions::new()), Err(GraphError::Npz(_))));
    }
    assert!(Graph::read(folder.0.path(), GraphOptions::new()).is_err(), "a folder");
    assert!(Graph::read(folder.0.path().join("missing.npz"), GraphOptions::new()).is_err());
    assert!(Model::read(folder.write(&whole)).unwrap_err().to_string().contains("has no array `W0`"));
}

#[test]
fn a_failed_write_leaves_nothing_behind() {
    let folder = Folder::new();
    let graph = Graph::new(1, 1, &[], &[]).unwrap();
    assert!(matches!(graph.write(folder.0.path().join("no/such/folder.npz")), Err(GraphError::Write { .. })));
    assert_eq!(std::fs::read_dir(folder.0.path()).unwrap().count(), 0);
}

proptest! {
    #![proptest_config(crate::seed::config(256))]

    #[test]
    fn flipped_bytes_never_panic(position in 0usize..4000, value: u8) {
        let folder = Folder::new();
        let mut bytes = archive(&members(), Stored);
        let position = position % bytes.len();
        bytes[position] = value;
        let _ = Graph::read(folder.write(&bytes), GraphOptions::new());
    }

    #[test]
    fn written_graphs_read_back(
        nodes in 1usize..9,
        edges in prop::collection::vec((0u32..9, 0u32..9), 0..20),
        pairs in prop::collection::vec((0u32..9, 0u32..5), 0..20),
        labels in prop::collection::vec(prop::option::of(0u32..4), 9),
        names in prop::option::of(prop::collection::vec("[a-zç日]{0,6}", 9)),
    ) {
        let inside = |pair: &(u32, u32)| (pair.0 as usize) < nodes;
        let edges: Vec<_> = edges.into_iter().filter(|e| inside(e) && (e.1 as usize) < nodes).collect();
        let pairs: Vec<_> = pairs.into_iter().filter(inside).collect();
        let names = Names { nodes: names.map(|names| names[..nodes].to_vec()), ..Names::default() };
        let graph = Graph::new(nodes, 5, &edges, &pairs).unwrap()
            .with_labels(labels[..nodes].iter().map(|label| label.map(ClassId)).collect()).unwrap()
            .with_names(names).unwrap();
        let folder = Folder::new();
        let path = folder.0.path().join("graph.npz");
        graph.write(&path).unwrap();
        let (back, cleaning) = Graph::read(&path, GraphOptions::new()).unwrap();
        prop_assert_eq!(&back, &graph);
        prop_assert_eq!(cleaning.members_skipped.len(), 0);
        prop_assert_eq!(back.fingerprint(), graph.fingerprint());
    }
}

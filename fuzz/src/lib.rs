//! What several fuzz targets share: files, arrays written as text, and what is done with a graph and a model that were read.

use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use nodeproof::{Budget, Certifier, Engine, Graph, GraphOptions, Model, NodeId};

/// A path in this process's own folder for temporary files.
pub fn path(name: &str) -> PathBuf {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        let folder = std::env::temp_dir().join(format!("nodeproof-fuzz-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        folder
    });
    folder.join(name)
}

/// A file with these bytes.
pub fn file(name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
    let path = path(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

/// A file of `examples/papers`.
pub fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/papers").join(name)
}

/// The graph of `examples/papers`.
pub fn example_graph() -> Graph {
    Graph::read(example("graph.npz"), GraphOptions::new()).unwrap().0
}

/// An array as a line of text: name, type, shape and items, such as `adj_shape <i8 (2,) 3 3`. An `F` before the type means Fortran
/// order. Items are cut off or filled up with zeros to no size at all: a shape may claim what is not there.
pub struct Array<'a> {
    pub name: &'a str,
    pub descr: &'a str,
    pub fortran: bool,
    pub shape: &'a str,
    pub bytes: Vec<u8>,
}

impl<'a> Array<'a> {
    /// The arrays of all lines that are some.
    pub fn all(text: &'a str) -> Vec<Self> {
        text.lines().filter_map(Self::of_line).collect()
    }

    fn of_line(line: &'a str) -> Option<Self> {
        let mut words = line.split(' ');
        let (name, descr, shape) = (words.next()?, words.next()?, words.next()?);
        let (fortran, descr) = descr.strip_prefix('F').map_or((false, descr), |descr| (true, descr));
        let bytes = words.flat_map(|word| item(word, descr)).collect();
        Some(Self { name, descr, fortran, shape, bytes })
    }

    /// The sizes in its shape.
    pub fn sizes(&self) -> Vec<usize> {
        self.shape.trim_matches(['(', ')']).split(',').filter_map(|size| size.parse().ok()).collect()
    }

    fn npy(&self) -> Vec<u8> {
        let order = if self.fortran { "True" } else { "False" };
        let header = format!("{{'descr': '{}', 'fortran_order': {order}, 'shape': {}, }}\n", self.descr, self.shape);
        let length = (header.len() as u16).to_le_bytes();
        [b"\x93NUMPY\x01\x00", &length[..], header.as_bytes(), &self.bytes].concat()
    }
}

/// The bytes of an item of a type such as `<f4`.
fn item(word: &str, descr: &str) -> Vec<u8> {
    let kind = descr.trim_start_matches(['<', '>', '|']);
    let size: usize = kind.get(1..).and_then(|size| size.parse().ok()).unwrap_or(0);
    let mut bytes = match kind.as_bytes().first() {
        Some(b'f') if size == 4 => word.parse().unwrap_or(0f32).to_le_bytes().to_vec(),
        Some(b'f') => word.parse().unwrap_or(0f64).to_le_bytes().to_vec(),
        Some(b'U') => word.chars().flat_map(|c| u32::from(c).to_le_bytes()).collect(),
        Some(b'S') => word.as_bytes().to_vec(),
        _ => word.parse().unwrap_or(0i128).to_le_bytes().to_vec(),
    };
    let width = if kind.starts_with('U') { size.saturating_mul(4) } else { size };
    bytes.resize(width.min(4096), 0);
    if descr.starts_with('>') {
        bytes.reverse();
    }
    bytes
}

/// An `.npz` with these arrays, whose checksums fit.
pub fn npz(arrays: &[Array]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    for array in arrays {
        // A name that is there already is refused: the first one counts.
        if zip.start_file(format!("{}.npy", array.name), options).is_ok() {
            zip.write_all(&array.npy()).unwrap();
        }
    }
    zip.finish().unwrap().into_inner()
}

/// Every way to read a graph.
pub fn all_options() -> [GraphOptions; 5] {
    let plain = GraphOptions::new();
    [
        plain,
        plain.binarise(true).directed(true),
        plain.normalise_rows(true).keep_self_loops(true),
        plain.real_values(true),
        plain.binarise(true).largest_component(true),
    ]
}

/// Reads a graph in every way. What was read must be the same after it was written and read again.
pub fn use_graph(path: &Path) {
    for options in all_options() {
        let Ok((graph, _)) = Graph::read(path, options) else { continue };
        let statistics = graph.statistics();
        assert!(statistics.largest_component <= graph.nodes());
        for name in ["copy.npz", "copy.graph"] {
            let copy = self::path(name);
            graph.write(&copy).unwrap();
            let (back, _) = Graph::read(&copy, GraphOptions::new()).unwrap();
            // What a file says of its fingerprint may be wrong.
            assert_eq!(back.fingerprint(), graph.computed_fingerprint());
            assert_eq!((back.names(), back.values()), (graph.names(), graph.values()));
        }
    }
}

/// Reads a model, which must be the same after it was written and read again, and asks it about a graph of three nodes.
pub fn use_model(path: &Path) {
    let Ok(model) = Model::read(path) else { return };
    Model::read_metadata(path).unwrap();
    model.propagations().iter().for_each(|propagation| drop(propagation.to_string()));
    let copy = self::path("copy.safetensors");
    model.write(&copy).unwrap();
    let back = Model::read(&copy).unwrap();
    assert_eq!(back.fingerprint(), model.fingerprint());
    assert_eq!(back, model);
    if model.attributes() > 64 || model.layers().len() > 8 || model.classes() > 8 {
        return;
    }
    let attributes = model.attributes();
    let graph = Graph::new(3, attributes, &[(0, 1), (1, 2)], &[(0, 0), (2, attributes as u32 - 1)]).unwrap();
    let graph = graph.with_kind(model.kind());
    let Ok(certifier) = Certifier::new(&graph, &model) else { return };
    let certifier = certifier.budget(Budget::new(1, 1.into())).engine(Engine::Fast).threads(1);
    for certificate in certifier.certify(&[NodeId(0), NodeId(2)]).unwrap() {
        assert!(certificate.class.index() < model.classes());
    }
}

//! Small graphs and models on disk, and the binary to run on them.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use assert_cmd::Command;
use nodeproof::{ClassId, Graph, Matrix, Model, Names, Propagation};
use serde_json::Value;
use tempfile::TempDir;

/// A folder with a graph and a model that fit, and more on demand.
pub(crate) struct Fixture {
    folder: TempDir,
}

/// What a run left.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Fixture {
    /// Thirty nodes in a ring with chords, twelve attributes, three classes, all named.
    pub(crate) fn new() -> Self {
        let fixture = Self { folder: tempfile::tempdir().unwrap() };
        named(graph(30, 12)).write(fixture.path("graph.npz")).unwrap();
        model(12).write(fixture.path("model.safetensors")).unwrap();
        fixture
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        fs::write(self.path(name), bytes).unwrap();
    }

    pub(crate) fn exists(&self, name: &str) -> bool {
        self.path(name).exists()
    }

    /// The binary, to be run in the folder.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nodeproof"));
        command.current_dir(self.folder.path()).env_remove("NO_COLOR");
        command
    }

    /// Runs the binary on a line of arguments without white space in them.
    pub(crate) fn run(&self, line: &str) -> Run {
        self.run_all(&line.split_whitespace().collect::<Vec<_>>())
    }

    pub(crate) fn run_all(&self, arguments: &[&str]) -> Run {
        Run::of(self.command().args(arguments).output().unwrap())
    }

    /// Starts the binary on a line of arguments; it is killed when the test ends.
    pub(crate) fn start(&self, line: &str) -> Started {
        let child = std::process::Command::new(env!("CARGO_BIN_EXE_nodeproof"))
            .args(line.split_whitespace())
            .current_dir(self.folder.path())
            .env("TMPDIR", self.temporary())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        Started(Some(child.unwrap()))
    }

    /// Where runs that were started have their temporary files.
    pub(crate) fn temporary(&self) -> PathBuf {
        let folder = self.path("temporary");
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    /// Waits until a file is there and has so many bytes.
    pub(crate) fn wait_for(&self, name: &str, bytes: u64) {
        let patience = Instant::now();
        while fs::metadata(self.path(name)).map_or(0, |file| file.len()) < bytes {
            assert!(patience.elapsed() < Duration::from_secs(60), "{name} does not appear");
            sleep(Duration::from_millis(2));
        }
    }

    /// The names of all files, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder.path()).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Names and contents of all files, sorted.
    pub(crate) fn listing(&self) -> Vec<(String, Vec<u8>)> {
        let content = |name: &String| fs::read(self.path(name)).unwrap_or_default();
        self.names().into_iter().map(|name| (name.clone(), content(&name))).collect()
    }

    /// A folder with a model that was trained on `graph`, which is said with flags.
    pub(crate) fn trained(graph: &str, out: &str) -> Self {
        let fixture = Self::new();
        let train = "--method ce --global-budget 2 --steps 60 --hidden 8 --weight-decay 0 --quiet";
        fixture.run(&format!("train {graph} {train} --out {out}")).succeeded();
        fixture
    }

    /// Certifies the fixture's graph with these further arguments.
    pub(crate) fn certify(&self, more: &str) -> Run {
        self.run(&format!("certify --graph graph.npz --model model.safetensors --global-budget 2 {more}"))
    }
}

/// A run in the background.
pub(crate) struct Started(Option<Child>);

impl Started {
    pub(crate) fn id(&self) -> u32 {
        self.0.as_ref().unwrap().id()
    }

    pub(crate) fn ended(&mut self) -> bool {
        self.0.as_mut().unwrap().try_wait().unwrap().is_some()
    }

    /// Kills it in a way that it cannot notice; what it left, or `None` if it had ended before.
    pub(crate) fn kill(mut self) -> Option<Run> {
        let ended = self.ended();
        let mut child = self.0.take().unwrap();
        let _ = child.kill();
        let run = Run::of(child.wait_with_output().unwrap());
        ended.then_some(run)
    }

    /// Sends it a signal, such as `INT`.
    pub(crate) fn signal(&self, signal: &str) {
        let line = format!("kill -{signal} {}", self.id());
        std::process::Command::new("sh").args(["-c", &line]).status().unwrap();
    }

    /// Waits for its end.
    pub(crate) fn wait(mut self) -> Run {
        Run::of(self.0.take().unwrap().wait_with_output().unwrap())
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Run {
    fn of(output: Output) -> Self {
        Self {
            // A run that was killed has no code.
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Asserts success with nothing said on stderr.
    #[track_caller]
    pub(crate) fn succeeded(self) -> Self {
        assert_eq!((self.code, self.stderr.as_str()), (0, ""), "{}", self.stdout);
        self
    }
}

/// A connected graph with labels, without names.
pub(crate) fn graph(nodes: u32, attributes: u32) -> Graph {
    let ring = (0..nodes).map(|node| (node, (node + 1) % nodes));
    let chords = (0..nodes).step_by(3).map(|node| (node, (node * 7 + 5) % nodes));
    let edges: Vec<_> = ring.chain(chords).collect();
    let pairs: Vec<_> =
        (0..nodes).flat_map(|node| (0..3).map(move |i| (node, (node * (2 * i + 1) + i) % attributes))).collect();
    let labels = (0..nodes).map(|node| Some(ClassId(node % 3))).collect();
    Graph::new(nodes as usize, attributes as usize, &edges, &pairs).unwrap().with_labels(labels).unwrap()
}

pub(crate) fn named(graph: Graph) -> Graph {
    let list = |what: &str, count: usize| Some((0..count).map(|i| format!("{what} {i}")).collect());
    let names = Names {
        nodes: list("paper", graph.nodes()),
        attributes: list("word", graph.attribute_count()),
        classes: Some(["Theory", "Agents", "Logic"].map(str::to_owned).to_vec()),
    };
    graph.with_names(names).unwrap()
}

/// A model with one hidden layer and three classes.
pub(crate) fn model(attributes: usize) -> Model {
    let weight = |rows: usize, columns: usize, seed: usize| {
        let value = |i: usize| ((i * 37 + seed * 11) % 23) as f64 / 11.0 - 1.0;
        Matrix::from_values(rows, columns, (0..rows * columns).map(value).collect())
    };
    let layers =
        vec![(weight(attributes, 5, 1), vec![0.1, -0.2, 0.3, 0.0, 0.2]), (weight(5, 3, 2), vec![0.0, 0.1, 0.9])];
    Model::gcn(layers, Propagation::SymmetricGcn).unwrap()
}

/// A graph of one node and a model of which one flip makes two classes level.
pub(crate) fn write_tie(fixture: &Fixture) {
    let graph = Graph::new(1, 2, &[], &[(0, 0)]).unwrap();
    graph.with_labels(vec![Some(ClassId(0))]).unwrap().write(fixture.path("tie.npz")).unwrap();
    let weight = Matrix::from_values(2, 2, vec![1.0, 0.0, 0.0, 0.0]);
    let model = Model::gcn(vec![(weight, vec![0.0, 0.0])], Propagation::SymmetricGcn);
    model.unwrap().write(fixture.path("tie.safetensors")).unwrap();
}

/// A model whose numbers overflow on the fixture's graph.
pub(crate) fn write_overflowing(fixture: &Fixture) {
    let weight = |rows, columns| Matrix::from_values(rows, columns, vec![1e200; rows * columns]);
    let layers = vec![(weight(12, 2), vec![0.0; 2]), (weight(2, 3), vec![0.0; 3])];
    Model::gcn(layers, Propagation::SymmetricGcn).unwrap().write(fixture.path("huge.safetensors")).unwrap();
}

/// Copies the example graph and model of the repository.
pub(crate) fn copy_papers(fixture: &Fixture) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/papers");
    fs::copy(folder.join("graph.npz"), fixture.path("papers.npz")).unwrap();
    fs::copy(folder.join("model.safetensors"), fixture.path("papers.safetensors")).unwrap();
}

pub(crate) fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// An `.npy` array with a header that says `descr` and `shape`.
pub(crate) fn npy(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(data);
    bytes
}

pub(crate) fn floats(shape: &str, values: &[f64]) -> Vec<u8> {
    npy("<f8", shape, &values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<_>>())
}

pub(crate) fn integers(values: &[i64]) -> Vec<u8> {
    let shape = format!("({},)", values.len());
    npy("<i8", &shape, &values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<_>>())
}

/// An `.npz` archive of these members.
pub(crate) fn npz(path: &Path, members: &[(&str, Vec<u8>)]) {
    let mut archive = zip::ZipWriter::new(File::create(path).unwrap());
    let options = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    for (name, bytes) in members {
        archive.start_file(format!("{name}.npy"), options).unwrap();
        archive.write_all(bytes).unwrap();
    }
    archive.finish().unwrap();
}

/// A graph of two nodes and two attributes whose three attribute entries have these values.
pub(crate) fn graph_npz(path: &Path, values: [f64; 3]) {
    npz(
        path,
        &[
            ("adj_data", floats("(1,)", &[1.0])),
            ("adj_indices", integers(&[1])),
            ("adj_indptr", integers(&[0, 1, 1])),
            ("adj_shape", integers(&[2, 2])),
            ("attr_data", floats("(3,)", &values)),
            ("attr_indices", integers(&[0, 1, 1])),
            ("attr_indptr", integers(&[0, 2, 3])),
            ("attr_shape", integers(&[2, 2])),
        ],
    );
}

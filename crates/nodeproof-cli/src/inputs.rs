//! Files to graphs, models and splits, and to the question that is asked of them.

use std::error::Error;
use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{anyhow, bail};
use nodeproof::results::ShardFields;
use nodeproof::{
    AttributeKind, Certifier, CertifySettings, Cleaning, Graph, GraphError, GraphOptions, Model, ModelError, NodeId,
    NpzError, Split,
};
use nodeproof_report::text::counted;

use crate::cli::{FlipArguments, GraphArguments, GraphFlags, ModelArguments, ShardArguments};
use crate::since::Since;
use crate::{lists, terminal, words};

/// Where a graph comes from.
#[derive(Debug, Clone)]
pub(crate) enum GraphSource {
    /// The one that comes with nodeproof.
    Bundled,
    File(PathBuf),
}

impl From<OsString> for GraphSource {
    fn from(typed: OsString) -> Self {
        if typed == "bundled" { Self::Bundled } else { Self::File(typed.into()) }
    }
}

impl GraphSource {
    /// The file, if it is one.
    pub(crate) fn file(&self) -> Option<&Path> {
        match self {
            Self::Bundled => None,
            Self::File(path) => Some(path),
        }
    }

    /// Opens the file, if it is one, as [`check_readable`] does.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub(crate) fn check_readable(&self, option: &str) -> anyhow::Result<()> {
        self.file().map_or(Ok(()), |path| check_readable(path, option))
    }
}

/// What is asked: which nodes of which graph hold what against whom.
pub(crate) struct Question {
    pub(crate) graph: Graph,
    pub(crate) model: Model,
    pub(crate) split: Option<Split>,
    pub(crate) nodes: Vec<NodeId>,
    /// Which part of a larger question it is.
    pub(crate) shard: Option<ShardFields>,
    pub(crate) settings: CertifySettings,
    /// An earlier run that may have answered some of it.
    pub(crate) since: Option<Since>,
}

impl Question {
    /// The part of it that is in a shard, if one is asked for.
    pub(crate) fn part(mut self, shard: &ShardArguments) -> Self {
        self.shard = shard.keep(&mut self.nodes);
        self
    }

    /// The same, after an earlier run.
    pub(crate) fn since(mut self, since: Option<Since>) -> Self {
        self.since = since;
        self
    }

    /// The certifier that answers it.
    ///
    /// # Errors
    /// If the model or the settings do not fit the graph.
    pub(crate) fn certifier(&self) -> anyhow::Result<Certifier<'_>> {
        // Whether the model fits comes first: settings may need much memory for a graph that is not meant.
        let certifier = Certifier::new(&self.graph, &self.model).map_err(words::certifying)?;
        self.settings.validate(&self.graph, &self.nodes).map_err(words::settings)?;
        Ok(certifier.settings(self.settings.clone()))
    }
}

/// What is read from files before anything is asked.
pub(crate) struct Inputs {
    pub(crate) graph: Graph,
    pub(crate) model: Model,
    pub(crate) split: Option<Split>,
}

impl Inputs {
    /// Reads graph, model and split; notes what was cleaned unless `quiet`.
    ///
    /// # Errors
    /// If a file is unreadable.
    pub(crate) fn read(
        graph: &GraphArguments,
        model: &Path,
        split: Option<&Path>,
        quiet: bool,
    ) -> anyhow::Result<Self> {
        graph.graph.check_readable("--graph")?;
        check_readable(model, "--model")?;
        let graph = read_noted(graph, quiet)?;
        let (path, model) = (model, read_model(model)?);
        note_other_graph(path, &graph, quiet)?;
        let split = split.map(|path| read_split(path, &graph)).transpose()?;
        Ok(Self { graph, model, split })
    }

    /// What is asked about `nodes`.
    pub(crate) fn ask(self, nodes: Vec<NodeId>, settings: CertifySettings) -> Question {
        let Self { graph, model, split } = self;
        Question { graph, model, split, nodes, shard: None, settings, since: None }
    }
}

/// The files that a question is read from.
pub(crate) fn files<'a>(
    graph: &'a GraphArguments,
    model: &'a ModelArguments,
    flips: &'a FlipArguments,
) -> Vec<&'a Path> {
    let ranges = graph.flags.ranges.as_deref();
    graph.graph.file().into_iter().chain(ranges).chain([model.model.as_path()]).chain(flips.files()).collect()
}

/// Reads a graph; notes what was cleaned unless `quiet`.
///
/// # Errors
/// If the file is not a graph.
pub(crate) fn read_noted(arguments: &GraphArguments, quiet: bool) -> anyhow::Result<Graph> {
    let (graph, cleaning) = read_graph(&arguments.graph, &arguments.flags)?;
    note_cleaning(&cleaning, quiet);
    Ok(graph)
}

/// Reads a graph as the flags say.
///
/// # Errors
/// If the file is not a graph, or that of the ranges has none.
pub(crate) fn read_graph(source: &GraphSource, flags: &GraphFlags) -> anyhow::Result<(Graph, Cleaning)> {
    let (graph, cleaning) = read_plain_graph(source, flags)?;
    let Some(path) = &flags.ranges else { return Ok((graph, cleaning)) };
    check_readable(path, "--ranges")?;
    let ranges = lists::ranges(path, &graph)?;
    Ok((graph.with_ranges(ranges)?, cleaning))
}

/// Compares the fingerprint that the file gives, if it does, with that of the graph in it.
///
/// # Errors
/// If they differ.
pub(crate) fn verify(source: &GraphSource, graph: &Graph) -> anyhow::Result<()> {
    match source.file() {
        Some(path) => graph.verify_fingerprint().map_err(|error| in_file(path, error)),
        None => Ok(()),
    }
}

fn read_plain_graph(source: &GraphSource, flags: &GraphFlags) -> anyhow::Result<(Graph, Cleaning)> {
    let options = GraphOptions::new()
        .binarise(flags.binarise)
        .normalise_rows(flags.normalise_rows)
        .real_values(flags.real_values)
        .largest_component(flags.largest_component)
        .keep_self_loops(flags.keep_self_loops)
        .directed(flags.directed);
    let Some(path) = source.file() else { return Ok(bundled(options.kind())) };
    let named_as_model = path.extension().is_some_and(|extension| extension == "safetensors");
    Graph::read(path, options).map_err(|error| match error {
        _ if named_as_model => {
            anyhow!("{} is named as a model, not as a graph; give a graph's .npz", path.display())
        }
        GraphError::Npz(NpzError::Missing { found, .. }) if found.contains("W0") => {
            anyhow!("{} is a model, not a graph; give a graph's file", path.display())
        }
        error @ GraphError::NotBinary { .. } => {
            let text = format!("{}: {error} (--real-values, --binarise)", path.display());
            anyhow::Error::new(error).context(text)
        }
        error => in_file(path, error),
    })
}

/// The bundled graph, in which no flag finds anything to clean.
fn bundled(kind: AttributeKind) -> (Graph, Cleaning) {
    let graph = Graph::bundled().with_kind(kind);
    let mut cleaning = Cleaning::default();
    cleaning.edges_on_file = graph.adjacency().entries();
    (graph, cleaning)
}

/// Reads a model.
///
/// # Errors
/// If the file is not a model.
pub(crate) fn read_model(path: &Path) -> anyhow::Result<Model> {
    Model::read(path).map_err(|error| match error {
        ModelError::Npz(NpzError::Missing { found, .. }) if found.contains("adj_data") => {
            anyhow!("{} is a graph, not a model; give a model's file", path.display())
        }
        error => in_file(path, error),
    })
}

/// Reads a split of `graph`.
///
/// # Errors
/// If the file is not a split, or one of another graph.
pub(crate) fn read_split(path: &Path, graph: &Graph) -> anyhow::Result<Split> {
    check_readable(path, "--split")?;
    Split::read(path, graph.nodes()).map_err(|error| in_file(path, error))
}

/// Opens the file once, so that a wrong path is reported with the option it was given with.
///
/// # Errors
/// If the file cannot be opened.
pub(crate) fn check_readable(path: &Path, option: &str) -> anyhow::Result<()> {
    let checked = File::open(path).and_then(|file| file.metadata());
    match checked {
        Ok(metadata) if metadata.is_dir() => {
            bail!("cannot read {}: it is a directory; check the path given as {option}", path.display())
        }
        Ok(_) => Ok(()),
        Err(error) => bail!("cannot read {}: {error}; check the path given as {option}", path.display()),
    }
}

/// Names the file, unless the error does so itself.
fn in_file(path: &Path, error: impl Error + Send + Sync + 'static) -> anyhow::Error {
    let (path, text) = (path.display().to_string(), error.to_string());
    let named = if text.contains(&path) { text } else { format!("{path}: {text}") };
    anyhow::Error::new(error).context(named)
}

/// Notes if the model at `path` says that it was trained on another graph, or imported with other edges.
fn note_other_graph(path: &Path, graph: &Graph, quiet: bool) -> anyhow::Result<()> {
    let metadata = Model::read_metadata(path)?;
    if metadata.get("graph").is_some_and(|trained_on| *trained_on != graph.fingerprint_without_ranges()) {
        let note = "the model was trained on another graph, or on this one read with other options (--binarise, \
                    --keep-self-loops, …)";
        terminal::note(quiet, note);
    }
    if metadata.get("edges").is_some_and(|imported_with| *imported_with != graph.edges_fingerprint()) {
        let note = "the model was imported with a graph of other edges, and its propagation is that graph's, whatever edges \
                    this one has; import the module for this graph, or give the graph it was imported with (--directed, \
                    --keep-self-loops, …)";
        terminal::note(quiet, note);
    }
    Ok(())
}

/// Notes what was changed without being asked for, and how to have it otherwise.
pub(crate) fn note_cleaning(cleaning: &Cleaning, quiet: bool) {
    if cleaning.self_loops_removed > 0 {
        let loops = counted(cleaning.self_loops_removed, "self-loop");
        terminal::note(quiet, &format!("left out {loops} of the graph; --keep-self-loops keeps them"));
    }
    if cleaning.directed_edges > 0 {
        let edges = counted(cleaning.directed_edges, "edge");
        terminal::note(quiet, &format!("made {edges} undirected that had one direction; --directed keeps it"));
    }
    if cleaning.weights_ignored > 0 {
        let edges = counted(cleaning.weights_ignored, "edge");
        terminal::note(quiet, &format!("ignored the weights of {edges}: to nodeproof an edge has no weight"));
    }
}

//! Files to graphs, models and splits.

use std::error::Error;
use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{anyhow, bail};
use nodeproof::{Cleaning, Graph, GraphError, GraphOptions, Model, ModelError, NodeId, NpzError, Split};

use crate::budget::{BudgetOptions, CheckedBudget};
use crate::cli::{ClassChoice, GraphArguments, GraphFlags, ModelArguments};
use crate::terminal::{self, counted};

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

/// Everything a certifier needs.
pub(crate) struct Inputs {
    pub(crate) graph: Graph,
    pub(crate) model: Model,
    pub(crate) split: Option<Split>,
    pub(crate) budget: CheckedBudget,
}

impl Inputs {
    /// Reads all files and checks all but whether the model fits, which the certifier does; notes what was cleaned unless `quiet`.
    ///
    /// # Errors
    /// If a file is unreadable or two of them do not fit.
    pub(crate) fn read(
        graph: &GraphArguments,
        model: &ModelArguments,
        budget: &impl BudgetOptions,
        quiet: bool,
    ) -> anyhow::Result<Self> {
        graph.graph.check_readable("--graph")?;
        check_readable(&model.model, "--model")?;
        let (graph, cleaning) = read_graph(&graph.graph, &graph.flags)?;
        note_cleaning(&cleaning, quiet);
        let (path, model) = (&model.model, read_model(&model.model)?);
        note_other_graph(path, &graph, quiet)?;
        let split = budget.flips().split.as_deref().map(|path| read_split(path, &graph)).transpose()?;
        let budget = CheckedBudget::new(budget, &graph, split.as_ref())?;
        Ok(Self { graph, model, split, budget })
    }

    /// Refuses `--class label` for nodes without a label.
    ///
    /// # Errors
    /// If there is such a node among `nodes`.
    pub(crate) fn check_class(&self, class: ClassChoice, nodes: &[NodeId]) -> anyhow::Result<()> {
        if class == ClassChoice::Predicted {
            return Ok(());
        }
        if !self.graph.has_labels() {
            bail!(
                "--class label: the graph has no labels; add a `labels` array to its file, or certify the predicted \
                 classes (--class predicted)"
            );
        }
        let without = nodes.iter().filter(|&&node| self.graph.label(node).is_none()).count();
        match nodes.iter().find(|&&node| self.graph.label(node).is_none()) {
            None => Ok(()),
            Some(node) => bail!(
                "--class label: {} no label, the first is node {node}; leave such nodes out with --nodes, or certify \
                 the predicted classes (--class predicted)",
                if without == 1 { "1 node has".to_owned() } else { format!("{without} nodes have") }
            ),
        }
    }
}

/// Reads a graph as the flags say.
///
/// # Errors
/// If the file is not a graph.
pub(crate) fn read_graph(source: &GraphSource, flags: &GraphFlags) -> anyhow::Result<(Graph, Cleaning)> {
    let Some(path) = source.file() else { return Ok(bundled()) };
    let options = GraphOptions::new()
        .binarise(flags.binarise)
        .largest_component(flags.largest_component)
        .keep_self_loops(flags.keep_self_loops)
        .directed(flags.directed);
    let named_as_model = path.extension().is_some_and(|extension| extension == "safetensors");
    Graph::read(path, options).map_err(|error| match error {
        _ if named_as_model => {
            anyhow!(
                "{} is named as a model, not as a graph; give a graph's .npz (were --graph and --model swapped?)",
                path.display()
            )
        }
        GraphError::Npz(NpzError::Missing { found, .. }) if found.contains("W0") => {
            anyhow!(
                "{} is a model, not a graph; give a graph's file (were --graph and --model swapped?)",
                path.display()
            )
        }
        error => in_file(path, error),
    })
}

/// The bundled graph, in which no flag finds anything to do.
fn bundled() -> (Graph, Cleaning) {
    let graph = Graph::bundled();
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
            anyhow!(
                "{} is a graph, not a model; give a model's file (were --graph and --model swapped?)",
                path.display()
            )
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

/// Opens the file once, so that a wrong path is told together with the option it was given with.
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

/// Notes if the model at `path` says that it was trained on another graph.
fn note_other_graph(path: &Path, graph: &Graph, quiet: bool) -> anyhow::Result<()> {
    let metadata = Model::read_metadata(path)?;
    if metadata.get("graph").is_some_and(|trained_on| *trained_on != graph.fingerprint()) {
        let note = "the model was trained on another graph, or on this one read with other options (--binarise, \
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
    if cleaning.weights_ignored > 0 {
        let edges = counted(cleaning.weights_ignored, "edge");
        terminal::note(quiet, &format!("ignored the weights of {edges}: nodeproof knows edges only as there or not"));
    }
}

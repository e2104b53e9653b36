//! Splits of the nodes into parts: stratified by label, by seed, savable.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::Graph;
use crate::ids::NodeId;
use crate::nearest::did_you_mean;
use crate::npz::{Archive, NpzError};

/// A part of a [`Split`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Part {
    /// Nodes whose labels training sees: the labelled nodes.
    Train,
    /// Nodes held back for early stopping.
    Validation,
    /// All other nodes.
    Test,
    /// Every node outside [`Part::Train`].
    Unlabelled,
}

/// How many nodes of each class a part takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SplitSize {
    /// This share of each class, rounded to the nearest count, at least one node unless the share is 0.
    Fraction(f64),
    /// This many nodes of each class.
    PerClass(usize),
}

/// Nodes for training, validation and test; together every node of the graph, each once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Split {
    /// The seed it was drawn with, if it was drawn here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    train: Vec<NodeId>,
    validation: Vec<NodeId>,
    test: Vec<NodeId>,
}

/// What can be wrong with a split.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SplitError {
    /// A stratified split needs labels.
    #[error(
        "the graph has no labels, and a stratified split needs them; add a `labels` array or give the nodes by hand"
    )]
    NoLabels,
    /// A fraction outside [0, 1].
    #[error("a part of {0} of each class makes no sense; give a share between 0 and 1, such as 0.1, or 10%")]
    Fraction(f64),
    /// A class with fewer nodes than asked for.
    #[error(
        "class {class} has {found} labelled nodes, but the split asks for {train} of them for training and {validation} \
         for validation; ask for fewer"
    )]
    ClassTooSmall {
        /// The class.
        class: usize,
        /// Its labelled nodes.
        found: usize,
        /// Nodes asked for in train.
        train: usize,
        /// Nodes asked for in validation.
        validation: usize,
    },
    /// A node outside the graph or in two parts.
    #[error(
        "the split does not fit the graph of {nodes} nodes: node {node} is {problem}; use a split that was made for this \
         graph, read with the same options"
    )]
    Node {
        /// The node.
        node: u32,
        /// Number of nodes in the graph.
        nodes: usize,
        /// What is wrong.
        problem: &'static str,
    },
    /// There is no part of this name.
    #[error(
        "`{0}` is not a part of a split; there are train (or labelled), validation, test and unlabelled{hint}",
        hint = did_you_mean(.0, Part::NAMES)
    )]
    Part(String),
    /// The file could not be read or written.
    #[error("cannot access {path}: {source}", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file is not a split.
    #[error(
        "{path} is not a split ({problem}); write one with `nodeproof data split`, or an .npz with idx_train and idx_val",
        path = path.display()
    )]
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// The `.npz` file is unreadable.
    #[error(transparent)]
    Npz(#[from] NpzError),
}

impl Part {
    /// The names of all parts; the train part has two.
    pub const NAMES: [&str; 5] = ["train", "labelled", "validation", "test", "unlabelled"];

    /// The name of the part; the first one of two.
    pub fn name(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::Validation => "validation",
            Self::Test => "test",
            Self::Unlabelled => "unlabelled",
        }
    }
}

impl FromStr for Part {
    type Err = SplitError;

    fn from_str(name: &str) -> Result<Self, SplitError> {
        match name {
            "train" | "labelled" => Ok(Self::Train),
            "validation" => Ok(Self::Validation),
            "test" => Ok(Self::Test),
            "unlabelled" => Ok(Self::Unlabelled),
            other => Err(SplitError::Part(other.to_owned())),
        }
    }
}

impl Split {
    /// Draws a stratified split: of each class `train` and `validation` many nodes, all others to test. Nodes
    /// without a label go to test. The same graph, sizes and seed give the same split everywhere.
    ///
    /// # Errors
    /// If the graph has no labels or a class is too small.
    pub fn stratified(graph: &Graph, train: SplitSize, validation: SplitSize, seed: u64) -> Result<Self, SplitError> {
        if !graph.has_labels() {
            return Err(SplitError::NoLabels);
        }
        let mut by_class = vec![Vec::new(); graph.classes()];
        let mut split = Self { seed: Some(seed), train: Vec::new(), validation: Vec::new(), test: Vec::new() };
        for node in graph.node_ids() {
            match graph.label(node) {
                Some(class) => by_class[class.index()].push(node),
                None => split.test.push(node),
            }
        }
        for (class, nodes) in by_class.iter_mut().enumerate() {
            let mut random = ChaCha8Rng::seed_from_u64(seed);
            random.set_stream(class as u64);
            nodes.shuffle(&mut random);
            let (train, validation) = (count(train, nodes.len())?, count(validation, nodes.len())?);
            let (train, validation) = if nodes.is_empty() { (0, 0) } else { (train, validation) };
            if train + validation > nodes.len() {
                return Err(SplitError::ClassTooSmall { class, found: nodes.len(), train, validation });
            }
            let (first, rest) = nodes.split_at(train);
            let (second, rest) = rest.split_at(validation);
            split.train.extend(first);
            split.validation.extend(second);
            split.test.extend(rest);
        }
        for part in [&mut split.train, &mut split.validation, &mut split.test] {
            part.sort_unstable();
        }
        Ok(split)
    }

    /// A split with these nodes; those in neither list are for test.
    ///
    /// # Errors
    /// If a node is outside the graph of `nodes` nodes or given twice.
    pub fn new(nodes: usize, train: Vec<NodeId>, validation: Vec<NodeId>) -> Result<Self, SplitError> {
        let mut taken = vec![false; nodes];
        for &node in train.iter().chain(&validation) {
            let problem = match taken.get(node.index()) {
                None => "outside it",
                Some(true) => "given twice",
                Some(false) => {
                    taken[node.index()] = true;
                    continue;
                }
            };
            return Err(SplitError::Node { node: node.0, nodes, problem });
        }
        let test = (0..nodes as u32).map(NodeId).filter(|node| !taken[node.index()]).collect();
        let mut split = Self { seed: None, train, validation, test };
        split.train.sort_unstable();
        split.validation.sort_unstable();
        Ok(split)
    }

    /// The nodes of `part`, ascending.
    pub fn part(&self, part: Part) -> Vec<NodeId> {
        match part {
            Part::Train => self.train.clone(),
            Part::Validation => self.validation.clone(),
            Part::Test => self.test.clone(),
            Part::Unlabelled => {
                let mut nodes = [&self.validation[..], &self.test[..]].concat();
                nodes.sort_unstable();
                nodes
            }
        }
    }

    /// Number of nodes of the graph that it splits.
    pub fn nodes(&self) -> usize {
        self.train.len() + self.validation.len() + self.test.len()
    }

    /// Whether `node` is in [`Part::Train`].
    pub fn is_labelled(&self, node: NodeId) -> bool {
        self.train.binary_search(&node).is_ok()
    }

    /// Reads a split for a graph of `nodes` nodes: JSON as [`Split::write`] writes it, or an `.npz` with `idx_train`
    /// and, if there is one, `idx_val`, as the reference implementation saves it.
    ///
    /// # Errors
    /// If the file is unreadable or does not fit the graph.
    pub fn read(path: impl AsRef<Path>, nodes: usize) -> Result<Self, SplitError> {
        let path = path.as_ref();
        if path.extension().is_some_and(|extension| extension == "npz") {
            let mut archive = Archive::open(path)?;
            let train = read_ids(&mut archive, "idx_train", nodes)?;
            let validation =
                if archive.contains("idx_val") { read_ids(&mut archive, "idx_val", nodes)? } else { Vec::new() };
            return Self::new(nodes, train, validation);
        }
        let text = fs::read_to_string(path).map_err(|source| match source.kind() {
            io::ErrorKind::InvalidData => {
                SplitError::Format { path: path.to_owned(), problem: "it is not text".to_owned() }
            }
            _ => SplitError::Io { path: path.to_owned(), source },
        })?;
        let split: Self = serde_json::from_str(&text)
            .map_err(|error| SplitError::Format { path: path.to_owned(), problem: error.to_string() })?;
        let checked = Self { seed: split.seed, ..Self::new(nodes, split.train, split.validation)? };
        if checked.test != split.test {
            let problem = "its test part is not exactly the nodes left over".to_owned();
            return Err(SplitError::Format { path: path.to_owned(), problem });
        }
        Ok(checked)
    }

    /// Writes the split as JSON.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<(), SplitError> {
        let path = path.as_ref();
        crate::files::replace(path, |file| {
            serde_json::to_writer(&mut *file, self)?;
            file.write_all(b"\n")
        })
        .map_err(|source| SplitError::Io { path: path.to_owned(), source })
    }
}

fn count(size: SplitSize, of: usize) -> Result<usize, SplitError> {
    match size {
        SplitSize::PerClass(count) => Ok(count),
        SplitSize::Fraction(0.0) => Ok(0),
        SplitSize::Fraction(share) if share > 0.0 && share <= 1.0 => Ok(((share * of as f64).round() as usize).max(1)),
        SplitSize::Fraction(share) => Err(SplitError::Fraction(share)),
    }
}

fn read_ids(archive: &mut Archive, member: &str, nodes: usize) -> Result<Vec<NodeId>, NpzError> {
    let array = archive.array(member, "a split needs idx_train and may have idx_val")?;
    if array.shape().iter().any(|&length| length > nodes) {
        return Err(archive.error(member, format!("is longer than the graph, which has {nodes} nodes")));
    }
    let ids = array.integers().ok_or_else(|| archive.error(member, "must be an array of node ids"))?;
    ids.into_iter()
        .map(|id| {
            u32::try_from(id).map(NodeId).map_err(|_| archive.error(member, format!("holds {id}, not a node id")))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ClassId;

    fn graph() -> Graph {
        let labels = (0..100).map(|n| if n < 90 { Some(ClassId(n % 3)) } else { None }).collect();
        Graph::new(100, 1, &[], &[]).unwrap().with_labels(labels).unwrap()
    }

    #[test]
    fn stratified_takes_the_share_of_each_class() {
        let split = Split::stratified(&graph(), SplitSize::Fraction(0.1), SplitSize::PerClass(5), 7).unwrap();
        for class in 0..3 {
            let of_class = |part| split.part(part).iter().filter(|n| n.0 < 90 && n.0 % 3 == class).count();
            assert_eq!((of_class(Part::Train), of_class(Part::Validation), of_class(Part::Test)), (3, 5, 22));
        }
        let mut all = [split.part(Part::Train), split.part(Part::Unlabelled)].concat();
        all.sort_unstable();
        assert_eq!(all, (0..100).map(NodeId).collect::<Vec<_>>());
        assert!(split.part(Part::Train).iter().all(|&n| split.is_labelled(n)));
    }

    #[test]
    fn seeds_decide_the_split() {
        let draw =
            |seed| Split::stratified(&graph(), SplitSize::Fraction(0.1), SplitSize::Fraction(0.1), seed).unwrap();
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        // Drawn once with seed 1 and kept: a change of this list breaks every published split.
        assert_eq!(draw(1).part(Part::Train), [5, 20, 23, 24, 40, 61, 75, 81, 85].map(NodeId));
    }

    #[test]
    fn impossible_splits_are_errors() {
        let draw = |train| Split::stratified(&graph(), train, SplitSize::Fraction(0.0), 0);
        assert!(matches!(draw(SplitSize::PerClass(31)), Err(SplitError::ClassTooSmall { .. })));
        assert!(matches!(draw(SplitSize::Fraction(1.5)), Err(SplitError::Fraction(_))));
        assert!(matches!(draw(SplitSize::Fraction(f64::NAN)), Err(SplitError::Fraction(_))));
        let unlabelled = Graph::new(2, 1, &[], &[]).unwrap();
        let drawn = Split::stratified(&unlabelled, SplitSize::PerClass(1), SplitSize::PerClass(0), 0);
        assert!(matches!(drawn, Err(SplitError::NoLabels)));
        assert!(matches!(Split::new(2, vec![NodeId(0)], vec![NodeId(0)]), Err(SplitError::Node { .. })));
        assert!(matches!(Split::new(2, vec![NodeId(2)], vec![]), Err(SplitError::Node { .. })));
    }

    #[test]
    fn written_splits_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("split.json");
        let split = Split::stratified(&graph(), SplitSize::Fraction(0.2), SplitSize::Fraction(0.1), 3).unwrap();
        split.write(&path).unwrap();
        assert_eq!(Split::read(&path, 100).unwrap(), split);
        assert!(Split::read(&path, 99).is_err());
        std::fs::write(&path, "{}").unwrap();
        assert!(matches!(Split::read(&path, 100), Err(SplitError::Format { .. })));
    }
}

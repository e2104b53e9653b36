//! What can go wrong.

use std::io;
use std::path::PathBuf;

use nodeproof::checkpoint::CheckpointError;
use nodeproof::files::FileError;
use nodeproof::results::ResultsError;
use nodeproof::train::TrainError;
use nodeproof::{CertifyError, GraphError, ModelError, SplitError};
use nodeproof_report::plot::PlotError;

/// Why something cannot be measured or reproduced.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabError {
    /// Nodes cannot be certified.
    #[error(transparent)]
    Certify(#[from] CertifyError),
    /// A network cannot be trained.
    #[error(transparent)]
    Train(#[from] TrainError),
    /// A model does not fit, or its file cannot be read or written.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// A split cannot be drawn.
    #[error(transparent)]
    Split(#[from] SplitError),
    /// A checkpoint cannot be written.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// A file cannot be written.
    #[error(transparent)]
    File(#[from] FileError),
    /// A figure cannot be drawn.
    #[error(transparent)]
    Plot(#[from] PlotError),
    /// The system refused to start threads.
    #[error("cannot start {threads} threads: {problem}; ask for fewer")]
    Threads {
        /// Threads asked for.
        threads: usize,
        /// What the system said.
        problem: String,
    },
    /// A graph cannot be drawn.
    #[error("{nodes} nodes: {source}")]
    Synthetic {
        /// How many nodes it was to have.
        nodes: usize,
        /// Why.
        source: GraphError,
    },
    /// A data set cannot be read.
    #[error("{}: {source}", path.display())]
    Graph {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: GraphError,
    },
    /// There is no data set.
    #[error("there is none of cora_ml.npz, citeseer.npz and pubmed.npz in {}; put at least one of them there", folder.display())]
    NoData {
        /// Where they were looked for.
        folder: PathBuf,
    },
    /// A file was given in place of the folder with the data sets.
    #[error("{} is a file; give the folder that it is in", path.display())]
    NotAFolder {
        /// The file.
        path: PathBuf,
    },
    /// A folder for results cannot be made.
    #[error("cannot make the folder {}: {source}; choose a place where you may write", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// What was done before cannot be read.
    #[error("cannot read {}: {source}; choose another folder for the results", path.display())]
    Steps {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file that an earlier step wrote cannot be read.
    #[error("{source}; remove {} and run the same again, which makes a new one", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: ResultsError,
    },
    /// A step failed.
    #[error("{title}: {source}")]
    Step {
        /// The step.
        title: String,
        /// Why.
        source: Box<LabError>,
    },
}

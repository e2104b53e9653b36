//! What the paper reports: D. Zügner and S. Günnemann, *Certifiable Robustness and Robust Training for Graph
//! Convolutional Networks*, KDD 2019.

use nodeproof::{GraphOptions, Method};
use serde::Serialize;

/// Flips in total that the paper trains against.
pub(super) const BUDGET: u32 = 12;
/// Further budgets that networks are trained against (figure 9).
pub(super) const OTHER_BUDGETS: [u32; 2] = [24, 48];
/// Splits that the paper takes the mean of.
pub const SPLITS: u64 = 5;

/// Percentages of nodes by Q, figure 1.
pub(super) const CERTIFICATES: &str = include_str!("paper/cora_ml_ce_certificates.csv");
/// Percentages of robust nodes by Q, figure 6.
pub(super) const BY_TRAINING: &str = include_str!("paper/cora_ml_robust_by_training.csv");

/// The network that others are compared with, and the one that the paper proposes.
pub(super) const STANDARD: Method = Method::CrossEntropy;
pub(super) const ROBUST: Method = Method::RobustHingeUnlabelled;

/// What the paper calls a method of training: CE, RCE, RH or RH-U.
pub(super) fn name(method: Method) -> String {
    method.name().to_uppercase()
}

/// A row of the paper's table.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Row {
    /// Mean over nodes of the largest Q for which they are certified robust.
    pub radius: f64,
    /// Share of nodes certified robust under 12 flips.
    pub robust: f64,
    /// Accuracy on labelled nodes.
    pub labelled: f64,
    /// Accuracy on unlabelled nodes.
    pub unlabelled: f64,
}

const fn row(radius: f64, robust: f64, labelled: f64, unlabelled: f64) -> Row {
    Row { radius, robust, labelled, unlabelled }
}

/// A data set, and what the paper says of it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct DataSet {
    /// Name of its file, without `.npz`.
    pub stem: &'static str,
    /// What it is called.
    pub title: &'static str,
    /// Whether the paper keeps the self-loops that are on file.
    pub keep_self_loops: bool,
    /// Nodes, edges, attributes and classes.
    pub sizes: [usize; 4],
    /// Results of each [`Method`].
    pub rows: [Row; 4],
    /// By how much the mean largest Q is smaller with default slopes than with optimised ones, trained by cross entropy.
    pub drop: f64,
}

impl DataSet {
    /// How its file is read.
    pub(super) fn options(&self) -> GraphOptions {
        GraphOptions::new().binarise(true).keep_self_loops(self.keep_self_loops)
    }

    /// How its file is read, as options of the command line.
    pub fn flags(&self) -> &'static [&'static str] {
        if self.keep_self_loops { &["--binarise", "--keep-self-loops"] } else { &["--binarise"] }
    }
}

/// The data sets; the first one that is there is the one that single figures are about.
pub const DATA_SETS: [DataSet; 3] = [
    DataSet {
        stem: "cora_ml",
        title: "Cora-ML",
        keep_self_loops: false,
        sizes: [2995, 8416, 2879, 7],
        rows: [
            row(16.36, 0.54, 1.00, 0.83),
            row(38.58, 0.77, 1.00, 0.83),
            row(32.49, 0.74, 1.00, 0.83),
            row(35.58, 0.91, 1.00, 0.83),
        ],
        drop: 0.54,
    },
    DataSet {
        stem: "citeseer",
        title: "Citeseer",
        keep_self_loops: true,
        sizes: [3312, 4715, 3703, 6],
        rows: [
            row(6.77, 0.17, 1.00, 0.67),
            row(18.62, 0.58, 0.99, 0.69),
            row(15.51, 0.54, 0.99, 0.68),
            row(18.48, 0.76, 0.99, 0.68),
        ],
        drop: 0.18,
    },
    DataSet {
        stem: "pubmed",
        title: "PubMed",
        keep_self_loops: false,
        sizes: [19717, 44324, 500, 3],
        rows: [
            row(5.82, 0.15, 0.99, 0.86),
            row(50.68, 0.62, 0.88, 0.84),
            row(48.56, 0.62, 0.90, 0.85),
            row(47.56, 0.63, 0.90, 0.86),
        ],
        drop: 2.3,
    },
];

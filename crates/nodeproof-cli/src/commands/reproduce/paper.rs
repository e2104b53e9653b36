//! What the paper reports: D. Zügner and S. Günnemann, *Certifiable Robustness and Robust Training for Graph
//! Convolutional Networks*, KDD 2019.

/// Flips in all that the paper trains against.
pub(super) const BUDGET: u32 = 12;
/// Further budgets that networks are trained against (figure 9).
pub(super) const OTHER_BUDGETS: [u32; 2] = [24, 48];
/// Splits that the paper takes the mean of.
pub(super) const SPLITS: u64 = 5;

/// Percentages of nodes by Q, figure 1.
pub(super) const CERTIFICATES: &str = include_str!("paper/cora_ml_ce_certificates.csv");
/// Percentages of robust nodes by Q, figure 6.
pub(super) const BY_TRAINING: &str = include_str!("paper/cora_ml_robust_by_training.csv");

/// A way of training: as an option, and as the paper calls it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Method {
    pub(super) option: &'static str,
    pub(super) name: &'static str,
}

/// The ways of training, in the order of the paper's table.
pub(super) const METHODS: [Method; 4] = [
    Method { option: "ce", name: "CE" },
    Method { option: "rce", name: "RCE" },
    Method { option: "rh", name: "RH" },
    Method { option: "rh-u", name: "RH-U" },
];
pub(super) const STANDARD: Method = METHODS[0];
pub(super) const ROBUST: Method = METHODS[3];

/// A row of the paper's table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Row {
    /// Mean over nodes of the largest Q for which they are certified robust.
    pub(super) radius: f64,
    /// Share of nodes certified robust under 12 flips.
    pub(super) robust: f64,
    /// Accuracy on labelled nodes.
    pub(super) labelled: f64,
    /// Accuracy on unlabelled nodes.
    pub(super) unlabelled: f64,
}

const fn row(radius: f64, robust: f64, labelled: f64, unlabelled: f64) -> Row {
    Row { radius, robust, labelled, unlabelled }
}

/// A data set, and what the paper says of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct DataSet {
    /// Name of its file, without `.npz`.
    pub(super) stem: &'static str,
    /// What it is called.
    pub(super) title: &'static str,
    /// How its file is read.
    pub(super) flags: &'static [&'static str],
    /// Nodes, edges, attributes and classes.
    pub(super) sizes: [usize; 4],
    /// Results of [`METHODS`].
    pub(super) rows: [Row; 4],
    /// By how much the mean largest Q is smaller with default slopes than with optimised ones, trained by cross entropy.
    pub(super) drop: f64,
}

/// The data sets; the first one that is there is the one that single figures are about.
pub(super) const DATA_SETS: [DataSet; 3] = [
    DataSet {
        stem: "cora_ml",
        title: "Cora-ML",
        flags: &["--binarise"],
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
        flags: &["--binarise", "--keep-self-loops"],
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
        flags: &["--binarise"],
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

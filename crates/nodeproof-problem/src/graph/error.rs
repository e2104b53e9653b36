//! What can be wrong with a graph.

use std::path::PathBuf;

use super::flat::FlatError;
use crate::edge::Edge;
use crate::flip::Flip;
use crate::ids::AttributeId;
use crate::npz::NpzError;

/// What can be wrong with a graph.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GraphError {
    /// The file is unreadable or lacks an array.
    #[error(transparent)]
    Npz(#[from] NpzError),
    /// A `.graph` file is unreadable, damaged, or holds something else.
    #[error("{path} {problem}", path = path.display())]
    Flat {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: FlatError,
    },
    /// A `.graph` file says that its graph has another fingerprint.
    #[error(
        "the file says that the fingerprint of its graph is {claimed}, and it is {computed}; do not trust the file, and convert the graph again"
    )]
    Fingerprint {
        /// What the file says.
        claimed: String,
        /// What it is.
        computed: String,
    },
    /// The graph has no nodes or no attributes.
    #[error("the graph has {nodes} nodes and {attributes} attributes; both must be at least 1")]
    Empty {
        /// Number of nodes.
        nodes: usize,
        /// Number of attributes.
        attributes: usize,
    },
    /// More nodes or attributes than a 32-bit id can name.
    #[error("the graph has {count} {what}; at most {max} are supported", max = u32::MAX - 1)]
    TooLarge {
        /// `nodes` or `attributes`.
        what: &'static str,
        /// How many there are.
        count: usize,
    },
    /// The adjacency is not square.
    #[error("the adjacency has shape {rows} × {columns}; it must be square, one row and one column a node")]
    NotSquare {
        /// Its rows.
        rows: usize,
        /// Its columns.
        columns: usize,
    },
    /// Two parts of the graph disagree on the number of nodes, attributes or classes.
    #[error(
        "{what} has {found} entries but the graph has {expected} {unit}; they must agree, so write the graph again from one source"
    )]
    Mismatch {
        /// The part that disagrees.
        what: &'static str,
        /// Its size.
        found: usize,
        /// The size expected.
        expected: usize,
        /// What is counted.
        unit: &'static str,
    },
    /// An edge or an attribute points outside the graph.
    #[error(
        "the {matrix} has an entry in row {row}, but there are only {rows} rows, numbered from 0; correct it or the shape"
    )]
    NoSuchRow {
        /// `adjacency` or `attributes`.
        matrix: &'static str,
        /// The row.
        row: usize,
        /// Number of rows.
        rows: usize,
    },
    /// An edge or an attribute points outside the graph.
    #[error(
        "row {row} of the {matrix} has an entry in column {column}, but there are only {columns} columns; correct it or the shape"
    )]
    OutOfRange {
        /// `adjacency` or `attributes`.
        matrix: &'static str,
        /// The row.
        row: usize,
        /// The column.
        column: u64,
        /// Number of columns.
        columns: usize,
    },
    /// An attribute that is neither 0 nor 1, nor such a one divided by the number of ones in its row.
    #[error(
        "attribute {attribute} of node {node} is {value}, and not 0 or 1, or that divided by the number of ones in its row; read attributes as \
         real values, which an attacker sets to others, or binarise them to count every value > 0 as 1, and train on that"
    )]
    NotBinary {
        /// The node.
        node: usize,
        /// The attribute.
        attribute: u32,
        /// The value on file.
        value: f64,
    },
    /// A value that is not a finite number.
    #[error("row {row}, column {column} of the {matrix} is {value}; replace it by a finite number")]
    NotFinite {
        /// `adjacency` or `attributes`.
        matrix: &'static str,
        /// The row.
        row: usize,
        /// The column.
        column: u32,
        /// The value on file.
        value: f64,
    },
    /// Rows of real values that are to be normalised.
    #[error(
        "the file says that its attributes are real values, with ranges, and only rows of bits can be normalised; leave that out, or binarise \
         the attributes"
    )]
    RowsOfValues,
    /// More real values than are kept.
    #[error(
        "the graph has {nodes} nodes × {attributes} attributes, which is more than {most} real values; leave out attributes, or binarise them"
    )]
    TooManyValues {
        /// Number of nodes.
        nodes: usize,
        /// Number of attributes.
        attributes: usize,
        /// Most values that are kept.
        most: usize,
    },
    /// Numbers that are no range.
    #[error(
        "attribute {attribute} cannot have values from {low} to {high}; give two finite numbers, the lower one first"
    )]
    NoRange {
        /// The attribute.
        attribute: AttributeId,
        /// Its lowest value.
        low: f64,
        /// Its highest value.
        high: f64,
    },
    /// Ranges of attributes that are no real values.
    #[error(
        "ranges are for attributes that are real values, and these are {0}; read them as real values, or leave out the ranges"
    )]
    RangesOfBits(&'static str),
    /// A change of an entry that is none.
    #[error("attribute {} of node {} cannot become {}: it is {problem}", flip.attribute, flip.node, flip.to)]
    Flip {
        /// The change.
        flip: Flip,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A deletion of an edge that is none.
    #[error("the edge {edge} cannot be deleted: it is {problem}")]
    Edge {
        /// The edge.
        edge: Edge,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// No graph that is drawn by chance is like that.
    #[error("no such graph can be drawn: {must}")]
    Synthetic {
        /// What does not hold.
        must: &'static str,
    },
    /// The graph could not be written.
    #[error("cannot write {path}: {source}", path = path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

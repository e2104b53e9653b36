//! What can be wrong with a `.graph` file.

use std::io;

use super::VERSION;

/// What can be wrong with a `.graph` file, beside what can be wrong with the graph in it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FlatError {
    /// It could not be read.
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
    /// It ends before it should.
    #[error("is truncated: it has {found} bytes of {expected}; copy it once more, or convert the graph again")]
    Truncated {
        /// Bytes that it has.
        found: u64,
        /// Bytes that it should have, as far as that is known.
        expected: u64,
    },
    /// It goes on after its last array.
    #[error(
        "has {extra} bytes after its last array; it may be two files in one, or damaged, so convert the graph again"
    )]
    TrailingBytes {
        /// How many.
        extra: u64,
    },
    /// It has another version.
    #[error("has version {found} of the layout, and this program reads version {VERSION}; convert the graph again")]
    Version {
        /// Its version.
        found: u32,
    },
    /// Its numbers are not little-endian.
    #[error("has numbers of another byte order than little-endian; write it with `nodeproof data convert`")]
    ByteOrder,
    /// Its header is not that of a graph.
    #[error("has a header that cannot be read: {problem}; convert the graph again")]
    Header {
        /// What is wrong.
        problem: String,
    },
    /// An array is not the one that should be there.
    #[error("{problem} (array `{array}`); convert the graph again")]
    Array {
        /// The array.
        array: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// Bytes have changed.
    #[error(
        "is damaged: its checksum is {found:08x} and not {expected:08x}; copy it once more, or convert the graph again"
    )]
    Checksum {
        /// The checksum of its bytes.
        found: u32,
        /// The checksum that it gives.
        expected: u32,
    },
}

//! The `.graph` layout: the arrays of a graph as they lie in memory, one after the other, so that a large graph is opened as fast as its
//! file is read.
//!
//! ```text
//! 0   16 bytes   nodeproof graph⏎
//! 16  u32        version
//! 20  u32        byte order, 0x01020304
//! 24  u32        length of the header
//! 28  u32        CRC-32 of all other bytes
//! 32             the header, JSON, filled up with spaces
//!                the arrays, each from a multiple of 64 on
//! ```
//!
//! A file is read, and not mapped into memory: a mapped one can be changed by another program in the middle of a run, after it was checked.

mod error;
mod read;
#[cfg(test)]
mod tests;
mod write;

use serde::{Deserialize, Serialize};

use crate::attributes::AttributeKind;

pub use error::FlatError;
pub(super) use read::{begins, read};
pub(super) use write::write;

/// How such a file begins.
const MAGIC: [u8; 16] = *b"nodeproof graph\n";
/// The version of the layout.
pub(super) const VERSION: u32 = 1;
/// A number whose bytes tell their order.
const BYTE_ORDER: u32 = 0x0102_0304;
/// Bytes before the header: magic, version, byte order, length of the header, checksum.
const PREFIX: usize = 32;
/// Where the checksum is among them.
const CHECKSUM: usize = 28;
/// Arrays begin at multiples of this.
const ALIGNMENT: u64 = 64;
/// Longest header that is read.
const LONGEST_HEADER: u32 = 64 * 1024;

const ADJACENCY: [&str; 2] = ["adjacency_offsets", "adjacency_columns"];
const ATTRIBUTES: [&str; 2] = ["attribute_offsets", "attribute_columns"];
const VALUES: &str = "attribute_values";
const RANGES: [&str; 2] = ["attribute_low", "attribute_high"];
const LABELS: &str = "labels";
const NODE_NAMES: [&str; 2] = ["node_name_offsets", "node_name_text"];
const ATTRIBUTE_NAMES: [&str; 2] = ["attribute_name_offsets", "attribute_name_text"];
const CLASS_NAMES: [&str; 2] = ["class_name_offsets", "class_name_text"];

/// What a file says of itself.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    nodes: usize,
    attributes: usize,
    kind: AttributeKind,
    #[serde(default, skip_serializing_if = "is_zero")]
    binarised: usize,
    fingerprint: String,
    arrays: Vec<Array>,
}

/// An array of a file: a NumPy type, a shape, and where it begins after the header.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Array {
    name: String,
    r#type: String,
    shape: Vec<u64>,
    at: u64,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// The next multiple of the alignment.
fn aligned(at: u64) -> Option<u64> {
    at.checked_next_multiple_of(ALIGNMENT)
}

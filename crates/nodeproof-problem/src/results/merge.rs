//! The shards of a run, put together.

use std::collections::HashSet;

use super::{Header, Record, ShardFields, SinceFields};
use crate::ids::NodeId;

/// Why files are not the shards of one run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MergeError {
    /// There is no file.
    #[error("there are no shards")]
    None,
    /// A file has a whole run.
    #[error("it is no shard")]
    NotAShard {
        /// Its place among the files.
        file: usize,
    },
    /// A file is about something else than the first one.
    #[error("it is about another graph, model, budget or run than the first file")]
    Another {
        /// Its place among the files.
        file: usize,
    },
    /// Two files have the same shard.
    #[error("it is the shard {number}, as is another file")]
    Twice {
        /// Its place among the files.
        file: usize,
        /// The shard.
        number: usize,
    },
    /// Some shards are not among the files.
    #[error("{} of {of} shards are missing: {}", missing.len(), listed(missing))]
    Missing {
        /// The shards.
        missing: Vec<usize>,
        /// How many there are.
        of: usize,
    },
    /// Two shards have the same node.
    #[error("node {node} is in two shards; were they made with the same --nodes?")]
    Node {
        /// The node.
        node: NodeId,
    },
}

fn listed(numbers: &[usize]) -> String {
    let shown: Vec<String> = numbers.iter().take(10).map(usize::to_string).collect();
    shown.join(", ") + if numbers.len() > 10 { ", …" } else { "" }
}

/// What a run without shards would have written: its header, and the records of the files, given in any order.
///
/// # Errors
/// If the files are not all the shards of one run, each once.
pub fn merged<R: Record>(files: Vec<(Header, Vec<R>)>) -> Result<(Header, Vec<R>), MergeError> {
    let shard = |file: usize, header: &Header| header.shard.ok_or(MergeError::NotAShard { file });
    // Each part has a count of its own of what was carried over.
    let carried = files.iter().filter_map(|(header, _)| header.since.as_ref()).map(|since| since.carried).sum();
    let whole = |header: &Header, of: ShardFields| {
        let since = header.since.clone().map(|since| SinceFields { carried, ..since });
        Header { shard: None, nodes: of.nodes, since, ..header.clone() }
    };
    let (first, _) = files.first().ok_or(MergeError::None)?;
    let of = shard(0, first)?;
    let header = whole(first, of);
    let mut parts: Vec<Option<Vec<R>>> = (0..of.of.min(files.len())).map(|_| None).collect();
    let mut given = HashSet::new();
    for (file, (other, _)) in files.iter().enumerate() {
        let shard = shard(file, other)?;
        if (shard.of, shard.nodes) != (of.of, of.nodes) || whole(other, shard) != header {
            return Err(MergeError::Another { file });
        }
        if !given.insert(shard.number) {
            return Err(MergeError::Twice { file, number: shard.number });
        }
    }
    let missing: Vec<usize> = (1..=of.of).filter(|number| !given.contains(number)).collect();
    if !missing.is_empty() {
        return Err(MergeError::Missing { missing, of: of.of });
    }
    for (header, records) in files {
        if let Some(ShardFields { number, .. }) = header.shard {
            parts[number - 1] = Some(records);
        }
    }
    let records: Vec<R> = parts.into_iter().flatten().flatten().collect();
    let mut seen = HashSet::with_capacity(records.len());
    match records.iter().find(|record| !seen.insert(record.node())) {
        Some(record) => Err(MergeError::Node { node: record.node() }),
        None => Ok((header, records)),
    }
}

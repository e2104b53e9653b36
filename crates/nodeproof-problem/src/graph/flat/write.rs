//! Writing `.graph` files.

use std::io::{self, Seek, SeekFrom, Write};

use super::{
    ADJACENCY, ATTRIBUTE_NAMES, ATTRIBUTES, Array, BYTE_ORDER, CHECKSUM, CLASS_NAMES, Header, LABELS, MAGIC,
    NODE_NAMES, PREFIX, RANGES, VALUES, VERSION, aligned,
};
use crate::bytes::{self, Number};
use crate::graph::Graph;
use crate::sparse::Pattern;

/// Numbers that are turned into others while they are written, and held in memory.
const BLOCK: usize = 1 << 16;

/// Writes `graph`, with its fingerprint computed anew. The same graph gives the same bytes.
pub(in crate::graph) fn write(graph: &Graph, file: &mut (impl Write + Seek)) -> io::Result<()> {
    // Twice the same: arrays are listed, then written.
    let mut listing = Listing::default();
    arrays(graph, &mut listing)?;
    let mut header = serde_json::to_vec(&Header {
        nodes: graph.nodes(),
        attributes: graph.attribute_count(),
        kind: graph.kind(),
        binarised: graph.binarised(),
        fingerprint: graph.computed_fingerprint(),
        arrays: listing.arrays,
    })?;
    header.resize(padded(PREFIX + header.len())? - PREFIX, b' ');
    let mut prefix = [0; PREFIX];
    prefix[..16].copy_from_slice(&MAGIC);
    for (at, number) in [(16, VERSION), (20, BYTE_ORDER), (24, header.len() as u32)] {
        prefix[at..at + 4].copy_from_slice(&number.to_le_bytes());
    }
    let mut out = Body { out: file, checksum: crc32fast::Hasher::new(), at: 0 };
    out.checksum.update(&prefix[..CHECKSUM]);
    out.out.write_all(&prefix)?;
    out.bytes(&header)?;
    out.at = 0;
    arrays(graph, &mut out)?;
    let (file, checksum) = (out.out, out.checksum.finalize());
    file.seek(SeekFrom::Start(CHECKSUM as u64))?;
    file.write_all(&checksum.to_le_bytes())?;
    file.flush()
}

fn padded(length: usize) -> io::Result<usize> {
    aligned(length as u64).and_then(|length| usize::try_from(length).ok()).ok_or(io::ErrorKind::FileTooLarge.into())
}

/// Where arrays go, one after the other.
trait Arrays {
    /// An array with this shape, whose numbers come in blocks.
    fn array<T: Number>(
        &mut self,
        name: &str,
        shape: &[usize],
        blocks: impl Iterator<Item = impl AsRef<[T]>>,
    ) -> io::Result<()>;

    /// A list of numbers.
    fn list<T: Number>(&mut self, name: &str, numbers: &[T]) -> io::Result<()> {
        self.array(name, &[numbers.len()], [numbers].into_iter())
    }

    /// A list of things that become numbers.
    fn turned<F, T: Number>(&mut self, name: &str, things: &[F], turn: impl Fn(&F) -> T) -> io::Result<()> {
        let blocks = things.chunks(BLOCK).map(|block| block.iter().map(&turn).collect::<Vec<T>>());
        self.array(name, &[things.len()], blocks)
    }
}

/// All arrays of a graph, in their order.
fn arrays(graph: &Graph, to: &mut impl Arrays) -> io::Result<()> {
    pattern(to, ADJACENCY, graph.adjacency())?;
    match graph.values() {
        None => pattern(to, ATTRIBUTES, graph.attributes())?,
        Some(values) => {
            let entries = values.entries();
            to.array(VALUES, &[entries.rows(), entries.columns()], [entries.values()].into_iter())?;
            to.turned(RANGES[0], values.ranges(), |range| range.0)?;
            to.turned(RANGES[1], values.ranges(), |range| range.1)?;
        }
    }
    if let Some(labels) = &graph.labels {
        to.turned(LABELS, labels, |label| label.map_or(-1, |class| class.0 as i32))?;
    }
    let names = graph.names();
    for (arrays, names) in
        [(NODE_NAMES, &names.nodes), (ATTRIBUTE_NAMES, &names.attributes), (CLASS_NAMES, &names.classes)]
    {
        if let Some(names) = names {
            texts(to, arrays, names)?;
        }
    }
    Ok(())
}

fn pattern(to: &mut impl Arrays, names: [&str; 2], pattern: &Pattern) -> io::Result<()> {
    to.turned(names[0], pattern.offsets(), |&offset| offset as u64)?;
    to.list(names[1], pattern.indices())
}

fn texts(to: &mut impl Arrays, arrays: [&str; 2], texts: &[String]) -> io::Result<()> {
    let ends = texts.iter().scan(0u64, |end, text| {
        *end += text.len() as u64;
        Some(*end)
    });
    let offsets: Vec<u64> = std::iter::once(0).chain(ends).collect();
    to.list(arrays[0], &offsets)?;
    to.list(arrays[1], texts.concat().as_bytes())
}

/// Lists arrays.
#[derive(Default)]
struct Listing {
    arrays: Vec<Array>,
    end: u64,
}

impl Arrays for Listing {
    fn array<T: Number>(
        &mut self,
        name: &str,
        shape: &[usize],
        _: impl Iterator<Item = impl AsRef<[T]>>,
    ) -> io::Result<()> {
        let shape: Vec<u64> = shape.iter().map(|&size| size as u64).collect();
        let at = padded(usize::try_from(self.end).unwrap_or(usize::MAX))? as u64;
        self.end = at + shape.iter().product::<u64>() * size_of::<T>() as u64;
        self.arrays.push(Array { name: name.to_owned(), r#type: T::TYPE.to_owned(), shape, at });
        Ok(())
    }
}

/// Writes arrays, and sums up their bytes.
struct Body<'f, F> {
    out: &'f mut F,
    checksum: crc32fast::Hasher,
    at: u64,
}

impl<F: Write> Body<'_, F> {
    fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        for block in bytes.chunks(BLOCK) {
            self.checksum.update(block);
            self.out.write_all(block)?;
        }
        self.at += bytes.len() as u64;
        Ok(())
    }
}

impl<F: Write> Arrays for Body<'_, F> {
    fn array<T: Number>(
        &mut self,
        _: &str,
        _: &[usize],
        blocks: impl Iterator<Item = impl AsRef<[T]>>,
    ) -> io::Result<()> {
        let padding = self.at.next_multiple_of(super::ALIGNMENT) - self.at;
        self.bytes(&[0; super::ALIGNMENT as usize][..padding as usize])?;
        for block in blocks {
            self.bytes(&bytes::of(block.as_ref()))?;
        }
        Ok(())
    }
}

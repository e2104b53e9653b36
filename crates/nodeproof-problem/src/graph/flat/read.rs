//! Reading `.graph` files.
//!
//! A file may come from strangers: the lengths that it claims are compared with its own before any memory is asked for, its checksum tells
//! damage, and whatever the arrays hold is checked once while they are gone through.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use super::{
    ADJACENCY, ATTRIBUTE_NAMES, ATTRIBUTES, Array, BYTE_ORDER, CHECKSUM, CLASS_NAMES, FlatError, Header, LABELS,
    LONGEST_HEADER, MAGIC, NODE_NAMES, PREFIX, RANGES, VALUES, VERSION, aligned,
};
use crate::bytes::{self, Number};
use crate::graph::{Fingerprint, Graph, GraphError, LARGEST_LABEL, Names, check_size};
use crate::ids::ClassId;
use crate::matrix::Matrix;
use crate::sparse::{Malformed, Pattern};
use crate::values::Values;

/// Bytes that are read at once, so that their checksum is computed while they are near.
const BLOCK: usize = 1 << 18;

/// Whether a file begins as such files do, as far as it goes.
pub(in crate::graph) fn begins(file: &mut File) -> io::Result<bool> {
    let mut start = Vec::with_capacity(MAGIC.len());
    file.by_ref().take(MAGIC.len() as u64).read_to_end(&mut start)?;
    file.seek(SeekFrom::Start(0))?;
    Ok(!start.is_empty() && MAGIC.starts_with(&start))
}

/// Reads a graph as it was written, from a file of so many bytes; errors call it `path`.
pub(in crate::graph) fn read(path: &Path, file: &mut impl Read, length: u64) -> Result<Graph, GraphError> {
    read_from(file, length).map_err(|problem| match problem {
        Problem::File(problem) => GraphError::Flat { path: path.to_owned(), problem },
        Problem::Graph(error) => error,
    })
}

/// What is wrong with the file, or with the graph in it.
#[derive(Debug)]
pub(super) enum Problem {
    File(FlatError),
    Graph(GraphError),
}

impl From<FlatError> for Problem {
    fn from(error: FlatError) -> Self {
        Self::File(error)
    }
}

impl From<GraphError> for Problem {
    fn from(error: GraphError) -> Self {
        Self::Graph(error)
    }
}

/// Reads a graph from a file of so many bytes.
pub(super) fn read_from(file: &mut impl Read, length: u64) -> Result<Graph, Problem> {
    let mut body = Body::open(file, length)?;
    let header = body.header.clone();
    check_size("nodes", header.nodes)?;
    check_size("attributes", header.attributes)?;
    if header.nodes == 0 || header.attributes == 0 {
        return Err(GraphError::Empty { nodes: header.nodes, attributes: header.attributes }.into());
    }
    let adjacency = Compressed::read(&mut body, ADJACENCY)?;
    let attributes = if header.kind.is_values() {
        let entries = body.array::<f64>(VALUES, &[header.nodes, header.attributes])?;
        let low = body.array::<f64>(RANGES[0], &[header.attributes])?;
        let high = body.array::<f64>(RANGES[1], &[header.attributes])?;
        Attributes::Values(entries, low.into_iter().zip(high).collect())
    } else {
        Attributes::Bits(Compressed::read(&mut body, ATTRIBUTES)?)
    };
    let labels = if body.has_next(LABELS) { Some(body.array::<i32>(LABELS, &[header.nodes])?) } else { None };
    let [nodes, attribute_names, classes] = [NODE_NAMES, ATTRIBUTE_NAMES, CLASS_NAMES].map(|arrays| {
        let there = body.has_next(arrays[0]);
        there.then(|| Texts::read(&mut body, arrays)).transpose()
    });
    let (nodes, attribute_names, classes) = (nodes?, attribute_names?, classes?);
    body.finish()?;

    let adjacency = adjacency.checked("adjacency", header.nodes)?;
    let mut graph = match attributes {
        Attributes::Bits(bits) => {
            let bits = bits.checked("attributes", header.attributes)?;
            Graph { kind: header.kind, ..Graph::of_parts(adjacency, bits) }
        }
        Attributes::Values(entries, ranges) => {
            let none = Pattern::from_pairs(header.nodes, header.attributes, &[]);
            let values = Values::new(Matrix::from_values(header.nodes, header.attributes, entries))?;
            Graph::of_parts(adjacency, none).with_values(values.with_ranges(ranges)?)?
        }
    };
    if let Some(labels) = labels {
        graph = graph.with_labels(classes_of(labels)?)?;
    }
    let texts = |texts: Option<Texts>| texts.map(Texts::checked).transpose();
    let names = Names { nodes: texts(nodes)?, attributes: texts(attribute_names)?, classes: texts(classes)? };
    graph = graph.with_names(names)?.with_binarised(header.binarised);
    graph.fingerprint = Fingerprint::claimed(header.fingerprint);
    Ok(graph)
}

enum Attributes {
    Bits(Compressed),
    Values(Vec<f64>, Vec<(f64, f64)>),
}

fn classes_of(labels: Vec<i32>) -> Result<Vec<Option<ClassId>>, FlatError> {
    if let Some(label) = labels.iter().find(|&&label| i64::from(label) > LARGEST_LABEL) {
        let problem = format!("holds the class number {label}; at most {LARGEST_LABEL} is supported");
        return Err(FlatError::Array { array: LABELS, problem });
    }
    Ok(labels.into_iter().map(|label| u32::try_from(label).ok().map(ClassId)).collect())
}

/// A file whose arrays are read one after the other.
struct Body<'f, F> {
    file: &'f mut F,
    header: Header,
    /// Arrays that were read.
    read: usize,
    /// Bytes after the header that were read.
    at: u64,
    checksum: crc32fast::Hasher,
    expected_checksum: u32,
}

impl<'f, F: Read> Body<'f, F> {
    /// Reads the header. No array claims more than the file has after that.
    fn open(file: &'f mut F, length: u64) -> Result<Self, FlatError> {
        if length < PREFIX as u64 {
            return Err(FlatError::Truncated { found: length, expected: PREFIX as u64 });
        }
        let mut prefix = [0; PREFIX];
        read_exact(file, &mut prefix)?;
        let number = |at: usize| u32::from_le_bytes([prefix[at], prefix[at + 1], prefix[at + 2], prefix[at + 3]]);
        if !prefix.starts_with(&MAGIC) {
            return Err(header("it does not begin as such a file does"));
        }
        if number(20) != BYTE_ORDER {
            return Err(FlatError::ByteOrder);
        }
        if number(16) != VERSION {
            return Err(FlatError::Version { found: number(16) });
        }
        let header_length = number(24);
        if header_length > LONGEST_HEADER || !(PREFIX as u64 + u64::from(header_length)).is_multiple_of(64) {
            return Err(header(format!("it cannot have {header_length} bytes")));
        }
        let start = PREFIX as u64 + u64::from(header_length);
        if length < start {
            return Err(FlatError::Truncated { found: length, expected: start });
        }
        let mut text = vec![0; header_length as usize];
        read_exact(file, &mut text)?;
        let mut checksum = crc32fast::Hasher::new();
        checksum.update(&prefix[..CHECKSUM]);
        checksum.update(&text);
        let header = Header::parse(&text)?;
        let end = header.end().and_then(|end| end.checked_add(start));
        let expected = end.ok_or_else(|| self::header("its arrays are larger than any file"))?;
        if length < expected {
            return Err(FlatError::Truncated { found: length, expected });
        }
        if length > expected {
            return Err(FlatError::TrailingBytes { extra: length - expected });
        }
        Ok(Self { file, header, read: 0, at: 0, checksum, expected_checksum: number(CHECKSUM) })
    }

    /// Whether this array comes next.
    fn has_next(&self, name: &str) -> bool {
        self.header.arrays.get(self.read).is_some_and(|array| array.name == name)
    }

    /// The size of the array that comes next, a list with this name.
    fn length(&self, name: &'static str) -> Result<usize, FlatError> {
        let next = self.header.arrays.get(self.read).filter(|array| array.name == name);
        let next = next.ok_or_else(|| header(format!("the array `{name}` is missing, or at another place")))?;
        match next.shape[..] {
            [length] => usize::try_from(length).map_err(|_| header("an array is larger than the memory")),
            _ => Err(header(format!("the array `{name}` is no list"))),
        }
    }

    /// The next array, a list of any length.
    fn list<T: Number>(&mut self, name: &'static str) -> Result<Vec<T>, FlatError> {
        let length = self.length(name)?;
        self.array(name, &[length])
    }

    /// The next array, which must be this one. The file is as long as all arrays are, so there is as much to read.
    fn array<T: Number>(&mut self, name: &'static str, shape: &[usize]) -> Result<Vec<T>, FlatError> {
        let shape: Vec<u64> = shape.iter().map(|&size| size as u64).collect();
        let at = aligned(self.at).unwrap_or(u64::MAX);
        let expected = Array { name: name.to_owned(), r#type: T::TYPE.to_owned(), shape, at };
        match self.header.arrays.get(self.read) {
            Some(next) if *next == expected => self.read += 1,
            Some(next) => {
                let problem = format!("{} is where {} should be", in_words(next), in_words(&expected));
                return Err(header(problem));
            }
            None => return Err(header(format!("the array `{name}` is missing"))),
        }
        let mut padding = [0; 64];
        let padding = &mut padding[..(at - self.at) as usize];
        self.fill(padding)?;
        if padding.iter().any(|&byte| byte != 0) {
            let problem = "there is something else before its first number".to_owned();
            return Err(FlatError::Array { array: name, problem });
        }
        // No product overflows: that of each array was formed for the length of the file.
        let count = expected.shape.iter().product::<u64>();
        let count = usize::try_from(count).map_err(|_| header("an array is larger than the memory"))?;
        bytes::read(count, |bytes| self.fill(bytes))
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), FlatError> {
        self.at += bytes.len() as u64;
        for block in bytes.chunks_mut(BLOCK) {
            read_exact(self.file, block)?;
            self.checksum.update(block);
        }
        Ok(())
    }

    /// Ends with the last array, and compares checksums.
    fn finish(self) -> Result<(), FlatError> {
        if let Some(array) = self.header.arrays.get(self.read) {
            return Err(header(format!("{} should not be there", in_words(array))));
        }
        let (found, expected) = (self.checksum.finalize(), self.expected_checksum);
        if found == expected { Ok(()) } else { Err(FlatError::Checksum { found, expected }) }
    }
}

/// A file that becomes shorter while it is read is truncated.
fn read_exact(file: &mut impl Read, bytes: &mut [u8]) -> Result<(), FlatError> {
    file.read_exact(bytes).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => io::Error::other("it has become shorter while it was read").into(),
        _ => error.into(),
    })
}

fn header(problem: impl Into<String>) -> FlatError {
    FlatError::Header { problem: problem.into() }
}

fn in_words(array: &Array) -> String {
    let shape: Vec<String> = array.shape.iter().map(u64::to_string).collect();
    let short: String = array.name.chars().take(40).collect();
    let r#type: String = array.r#type.chars().take(8).collect();
    format!("the array `{short}` ({} of type {} at {})", shape.join(" × "), r#type, array.at)
}

impl Header {
    fn parse(text: &[u8]) -> Result<Self, FlatError> {
        let parsed: Self = serde_json::from_slice(text).map_err(|error| header(error.to_string()))?;
        let is_digit = |digit: u8| digit.is_ascii_digit() || (b'a'..=b'f').contains(&digit);
        if parsed.fingerprint.len() != 64 || !parsed.fingerprint.bytes().all(is_digit) {
            return Err(header("its fingerprint is not 64 hexadecimal digits"));
        }
        Ok(parsed)
    }

    /// Where the last array ends; `None` if an array is larger than any file.
    fn end(&self) -> Option<u64> {
        let end = |array: &Array| {
            let item = array.r#type.bytes().last().filter(u8::is_ascii_digit).map(|digit| u64::from(digit - b'0'))?;
            array.shape.iter().try_fold(item, |bytes, &size| bytes.checked_mul(size))?.checked_add(array.at)
        };
        self.arrays.iter().map(end).try_fold(0, |last, end| Some(last.max(end?)))
    }
}

/// Offsets and columns as they are on file.
struct Compressed {
    names: [&'static str; 2],
    offsets: Vec<u64>,
    columns: Vec<u32>,
}

impl Compressed {
    fn read<F: Read>(body: &mut Body<F>, names: [&'static str; 2]) -> Result<Self, FlatError> {
        let offsets = body.array(names[0], &[body.header.nodes + 1])?;
        Ok(Self { names, offsets, columns: body.list(names[1])? })
    }

    /// The matrix, if it is one.
    fn checked(self, matrix: &'static str, columns: usize) -> Result<Pattern, Problem> {
        let Self { names, offsets, columns: indices } = self;
        let wrong = |array: usize, problem: String| FlatError::Array { array: names[array], problem };
        let too_large = |_| wrong(0, "holds a number that is too large for this machine".to_owned());
        let offsets = offsets.into_iter().map(usize::try_from).collect::<Result<Vec<_>, _>>().map_err(too_large)?;
        Pattern::checked(columns, offsets, indices).map_err(|malformed| match malformed {
            Malformed::Offsets { row } => {
                wrong(0, format!("row {row} does not begin where the row before ends, or ends beyond the last column"))
                    .into()
            }
            Malformed::Order { row } => wrong(1, format!("the columns of row {row} do not ascend")).into(),
            Malformed::Column { row, column } => {
                GraphError::OutOfRange { matrix, row, column: column.into(), columns }.into()
            }
        })
    }
}

/// Texts as they are on file: where each begins and ends, and all of them in one.
struct Texts {
    names: [&'static str; 2],
    offsets: Vec<u64>,
    text: Vec<u8>,
}

impl Texts {
    fn read<F: Read>(body: &mut Body<F>, names: [&'static str; 2]) -> Result<Self, FlatError> {
        Ok(Self { names, offsets: body.list(names[0])?, text: body.list(names[1])? })
    }

    fn checked(self) -> Result<Vec<String>, FlatError> {
        let Self { names, offsets, text } = self;
        let wrong = |array: usize, problem: String| FlatError::Array { array: names[array], problem };
        if offsets.first() != Some(&0) || offsets.last() != Some(&(text.len() as u64)) {
            return Err(wrong(0, "does not go from the beginning of the text to its end".to_owned()));
        }
        let name = |(place, ends): (usize, &[u64])| {
            let ends = usize::try_from(ends[0]).ok().zip(usize::try_from(ends[1]).ok());
            let bytes = ends
                .and_then(|(start, end)| text.get(start..end))
                .ok_or_else(|| wrong(0, format!("decreases after name {place}")))?;
            let name = str::from_utf8(bytes).map_err(|_| wrong(1, format!("name {place} is no valid text")))?;
            Ok(name.to_owned())
        };
        offsets.windows(2).enumerate().map(name).collect()
    }
}

//! NumPy's `.npz` archives: a zip file with one `.npy` array a member.
//!
//! Files may come from strangers. A member is read only when it is asked for (pickled ones, which could run code in
//! Python, are never interpreted), a header is parsed without recursion, and memory grows with the bytes that the
//! file delivers, never with what a header claims.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufReader, Cursor, Read, Seek, Write};
use std::path::{Path, PathBuf};

use zip::ZipArchive;
use zip::result::ZipError;

use crate::matrix::Matrix;

/// Longest `.npy` header that is read; NumPy writes 118 bytes for a plain array.
const MAX_HEADER_BYTES: usize = 64 * 1024;
/// Most dimensions an array may have.
const MAX_DIMENSIONS: usize = 8;
/// Memory set aside before the first byte of an array has been seen.
const INITIAL_CAPACITY: usize = 1 << 20;

/// What can be wrong with an `.npz` file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NpzError {
    /// The file could not be opened, read or written.
    #[error("cannot access {path}: {source}", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file is not a zip archive.
    #[error(
        "{path} is not a readable .npz archive ({problem}); it may be truncated or of another format — write it again \
         with numpy.savez or numpy.savez_compressed",
        path = path.display()
    )]
    NotAnArchive {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// An array that is needed is not there.
    #[error("{path} has no array `{name}` (it holds: {found}); {remedy}", path = path.display())]
    Missing {
        /// The file.
        path: PathBuf,
        /// The array.
        name: String,
        /// The arrays that are there.
        found: String,
        /// What to do about it.
        remedy: &'static str,
    },
    /// An array is there but cannot be used.
    #[error("array `{name}` in {path} {problem}", path = path.display())]
    Array {
        /// The file.
        path: PathBuf,
        /// The array.
        name: String,
        /// What is wrong with it, and what to do.
        problem: String,
    },
}

/// What an archive is read from.
trait Source: Read + Seek {}
impl<T: Read + Seek> Source for T {}

/// An open `.npz` file.
pub(crate) struct Archive {
    path: PathBuf,
    zip: ZipArchive<Box<dyn Source>>,
    names: Vec<String>,
}

impl Archive {
    pub(crate) fn open(path: &Path) -> Result<Self, NpzError> {
        let io_error = |source| NpzError::Io { path: path.to_owned(), source };
        Self::of_file(path, File::open(path).map_err(io_error)?)
    }

    /// The archive in a file that is open.
    pub(crate) fn of_file(path: &Path, file: File) -> Result<Self, NpzError> {
        let io_error = |source| NpzError::Io { path: path.to_owned(), source };
        if file.metadata().map_err(io_error)?.is_dir() {
            return Err(io_error(io::Error::from(io::ErrorKind::IsADirectory)));
        }
        Self::new(path, Box::new(BufReader::new(file)))
    }

    /// An archive in memory; errors call it `name`.
    pub(crate) fn in_memory(name: &str, bytes: &'static [u8]) -> Result<Self, NpzError> {
        Self::new(Path::new(name), Box::new(Cursor::new(bytes)))
    }

    fn new(path: &Path, source: Box<dyn Source>) -> Result<Self, NpzError> {
        let io_error = |source| NpzError::Io { path: path.to_owned(), source };
        let not_an_archive = |error: ZipError| match error {
            ZipError::Io(source) if source.kind() != io::ErrorKind::UnexpectedEof => io_error(source),
            ZipError::InvalidArchive(_) | ZipError::Io(_) => {
                NpzError::NotAnArchive { path: path.to_owned(), problem: "it is not a whole zip file".to_owned() }
            }
            other => NpzError::NotAnArchive { path: path.to_owned(), problem: other.to_string() },
        };
        let zip = ZipArchive::new(source).map_err(not_an_archive)?;
        let mut names = Vec::with_capacity(zip.len());
        for name in zip.file_names() {
            let name = name.map_err(not_an_archive)?;
            names.push(name.strip_suffix(".npy").unwrap_or(&name).to_owned());
        }
        names.sort();
        Ok(Self { path: path.to_owned(), zip, names })
    }

    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    pub(crate) fn contains(&self, name: &str) -> bool {
        self.names.iter().any(|n| n == name)
    }

    /// The array `name`, or an error that lists what is there and says `remedy`.
    pub(crate) fn array(&mut self, name: &str, remedy: &'static str) -> Result<Array, NpzError> {
        if !self.contains(name) {
            let found = if self.names.is_empty() { "nothing".to_owned() } else { self.names.join(", ") };
            return Err(NpzError::Missing { path: self.path.clone(), name: name.to_owned(), found, remedy });
        }
        let path = self.path.clone();
        let failed = |problem: String| NpzError::Array { path, name: name.to_owned(), problem };
        let mut member = match self.zip.by_name(&format!("{name}.npy")) {
            Ok(member) => member,
            Err(error) => return Err(failed(format!("cannot be unpacked ({error}); write the file again"))),
        };
        let held = member.size();
        Array::read(&mut member, held).map_err(|error| failed(error.to_string()))
    }

    /// An error about array `name` in this file.
    pub(crate) fn error(&self, name: &str, problem: impl Display) -> NpzError {
        NpzError::Array { path: self.path.clone(), name: name.to_owned(), problem: problem.to_string() }
    }
}

/// Kind of the numbers in an array, the letter of NumPy's type string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Bool,
    Int,
    Uint,
    Float,
    Unicode,
    Bytes,
    Pickled,
}

/// An array as it was stored: its bytes, its shape and how to understand them.
pub(crate) struct Array {
    kind: Kind,
    item_bytes: usize,
    big_endian: bool,
    fortran_order: bool,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

#[derive(Debug, thiserror::Error)]
enum ArrayError {
    #[error("is not a NumPy array: {0}; write the file again with numpy.savez")]
    Header(&'static str),
    #[error("has the unsupported type {0}; store plain integers, floats or strings")]
    Type(String),
    #[error("claims {claimed} bytes of data but the file holds {held}; the file is truncated or damaged")]
    Short { claimed: u128, held: u64 },
    #[error("cannot be read ({0}); the file is truncated or damaged")]
    Io(#[from] io::Error),
}

impl Array {
    fn read(reader: &mut impl Read, held: u64) -> Result<Self, ArrayError> {
        let mut array = Self::read_header(reader)?;
        if array.kind == Kind::Pickled {
            return Ok(array);
        }
        let claimed = array
            .shape
            .iter()
            .try_fold(array.item_bytes as u128, |product, &dimension| product.checked_mul(dimension as u128));
        let claimed = claimed.unwrap_or(u128::MAX);
        if claimed > u128::from(held) {
            return Err(ArrayError::Short { claimed, held });
        }
        let claimed = claimed as usize;
        array.bytes = Vec::with_capacity(claimed.min(INITIAL_CAPACITY));
        reader.by_ref().take(claimed as u64).read_to_end(&mut array.bytes)?;
        if array.bytes.len() < claimed {
            return Err(ArrayError::Short { claimed: claimed as u128, held: array.bytes.len() as u64 });
        }
        // Reading to the end makes the archive compare its checksum.
        if reader.read(&mut [0u8; 1])? != 0 {
            return Err(ArrayError::Header("there is data past the end of the array"));
        }
        Ok(array)
    }

    fn read_header(reader: &mut impl Read) -> Result<Self, ArrayError> {
        let mut start = [0u8; 8];
        reader.read_exact(&mut start).map_err(|_| ArrayError::Header("it is shorter than a header"))?;
        if &start[..6] != b"\x93NUMPY" {
            return Err(ArrayError::Header("the magic number is missing"));
        }
        let mut length = [0u8; 4];
        let length_bytes = if start[6] == 1 { 2 } else { 4 };
        reader.read_exact(&mut length[..length_bytes])?;
        let length = u32::from_le_bytes(length) as usize;
        if length > MAX_HEADER_BYTES {
            return Err(ArrayError::Header("the header is unreasonably long"));
        }
        let mut text = vec![0u8; length];
        reader.read_exact(&mut text)?;
        let text = str::from_utf8(&text).map_err(|_| ArrayError::Header("the header is not text"))?;
        Self::parse_header(text)
    }

    /// Parses `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }`.
    fn parse_header(text: &str) -> Result<Self, ArrayError> {
        let after = |key: &str| {
            let (_, rest) = text.split_once(key)?;
            Some(rest.trim_start().strip_prefix(':')?.trim_start())
        };
        let descr = after("'descr'").ok_or(ArrayError::Header("the header has no 'descr'"))?;
        let descr = descr
            .strip_prefix('\'')
            .and_then(|rest| rest.split_once('\''))
            .map(|(descr, _)| descr)
            .ok_or_else(|| ArrayError::Type("of a record".to_owned()))?;
        let order = after("'fortran_order'").ok_or(ArrayError::Header("the header has no 'fortran_order'"))?;
        let shape = after("'shape'")
            .and_then(|rest| rest.strip_prefix('('))
            .and_then(|rest| rest.split_once(')'))
            .map(|(shape, _)| shape)
            .ok_or(ArrayError::Header("the header has no 'shape'"))?;
        let shape = shape
            .split(',')
            .map(str::trim)
            .filter(|part| !part.is_empty())
            .map(|part| part.parse().map_err(|_| ArrayError::Header("the shape is not a list of sizes")))
            .collect::<Result<Vec<usize>, _>>()?;
        if shape.len() > MAX_DIMENSIONS {
            return Err(ArrayError::Header("the array has too many dimensions"));
        }
        let (kind, item_bytes) = parse_descr(descr).ok_or_else(|| ArrayError::Type(format!("'{descr}'")))?;
        Ok(Self {
            kind,
            item_bytes,
            big_endian: descr.starts_with('>'),
            fortran_order: order.starts_with("True"),
            shape,
            bytes: Vec::new(),
        })
    }

    pub(crate) fn shape(&self) -> &[usize] {
        &self.shape
    }

    pub(crate) fn is_pickled(&self) -> bool {
        self.kind == Kind::Pickled
    }

    /// The items as floats, in row-major order; `None` if they are not numbers.
    pub(crate) fn floats(&self) -> Option<Vec<f64>> {
        let stored: Vec<f64> = match (self.kind, self.item_bytes) {
            (Kind::Float, 4) => self.items().map(|b| f64::from(f32::from_bits(b as u32))).collect(),
            (Kind::Float, 8) => self.items().map(f64::from_bits).collect(),
            (Kind::Float, _) | (Kind::Unicode | Kind::Bytes | Kind::Pickled, _) => return None,
            _ => self.integers()?.into_iter().map(|i| i as f64).collect(),
        };
        Some(self.row_major(stored))
    }

    /// The items as integers; `None` if they are not integers or do not fit.
    pub(crate) fn integers(&self) -> Option<Vec<i64>> {
        let unused_bits = 64 - 8 * self.item_bytes.min(8) as u32;
        match self.kind {
            Kind::Bool => Some(self.items().map(|b| i64::from(b != 0)).collect()),
            Kind::Uint => self.items().map(|b| i64::try_from(b).ok()).collect(),
            Kind::Int => Some(self.items().map(|b| ((b << unused_bits) as i64) >> unused_bits).collect()),
            _ => None,
        }
    }

    /// The items as integers below 2^32; `None` if they are not such.
    pub(crate) fn small_integers(&self) -> Option<Vec<u32>> {
        match self.kind {
            // Negative numbers fill all of their bits.
            Kind::Int | Kind::Uint if self.item_bytes == 4 => {
                let most = if self.kind == Kind::Int { i32::MAX as u32 } else { u32::MAX };
                self.items().map(|bits| Some(bits as u32).filter(|&number| number <= most)).collect()
            }
            _ => self.integers()?.into_iter().map(|number| u32::try_from(number).ok()).collect(),
        }
    }

    /// Whether all items are the number 1.
    pub(crate) fn is_ones(&self) -> bool {
        let one = match (self.kind, self.item_bytes) {
            (Kind::Float, 4) => u64::from(1f32.to_bits()),
            (Kind::Float, 8) => 1f64.to_bits(),
            (Kind::Bool | Kind::Int | Kind::Uint, _) => 1,
            _ => return false,
        };
        self.items().all(|bits| bits == one)
    }

    /// The items as strings; `None` if they are something else.
    pub(crate) fn strings(&self) -> Option<Vec<String>> {
        let decode = |item: &[u8]| match self.kind {
            Kind::Unicode => Some(self.decode_utf32(item)),
            Kind::Bytes => {
                let end = item.iter().rposition(|&b| b != 0).map_or(0, |last| last + 1);
                Some(String::from_utf8_lossy(&item[..end]).into_owned())
            }
            _ => None,
        };
        if self.item_bytes == 0 {
            return decode(&[]).map(|_| Vec::new());
        }
        self.bytes.chunks_exact(self.item_bytes).map(decode).collect()
    }

    fn decode_utf32(&self, item: &[u8]) -> String {
        let code = |b: &[u8]| {
            let word = [b[0], b[1], b[2], b[3]];
            if self.big_endian { u32::from_be_bytes(word) } else { u32::from_le_bytes(word) }
        };
        let codes: Vec<u32> = item.chunks_exact(4).map(code).collect();
        let end = codes.iter().rposition(|&c| c != 0).map_or(0, |last| last + 1);
        codes[..end].iter().map(|&c| char::from_u32(c).unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
    }

    /// The raw bits of each item of at most eight bytes, in stored order.
    fn items(&self) -> impl Iterator<Item = u64> + '_ {
        self.bytes.chunks_exact(self.item_bytes).map(|item| {
            let shift = |bits: u64, &byte: &u8| bits << 8 | u64::from(byte);
            if self.big_endian { item.iter().fold(0, shift) } else { item.iter().rev().fold(0, shift) }
        })
    }

    fn row_major(&self, stored: Vec<f64>) -> Vec<f64> {
        let &[rows, columns] = &self.shape[..] else { return stored };
        if !self.fortran_order {
            return stored;
        }
        (0..rows * columns).map(|i| stored[(i % columns) * rows + i / columns]).collect()
    }
}

/// Kind and bytes per item of a type string such as `<f4`.
fn parse_descr(descr: &str) -> Option<(Kind, usize)> {
    let rest = descr.trim_start_matches(['<', '>', '|', '=']);
    let mut letters = rest.chars();
    let letter = letters.next()?;
    if letter == 'O' {
        return Some((Kind::Pickled, 0));
    }
    let size: usize = letters.as_str().parse().ok()?;
    let number = |kind| matches!(size, 1 | 2 | 4 | 8).then_some((kind, size));
    match letter {
        'b' | '?' if size == 1 => Some((Kind::Bool, 1)),
        'i' => number(Kind::Int),
        'u' => number(Kind::Uint),
        'f' if size == 4 || size == 8 => Some((Kind::Float, size)),
        'U' => Some((Kind::Unicode, size.checked_mul(4)?)),
        'S' | 'a' => Some((Kind::Bytes, size)),
        _ => None,
    }
}

/// Writes `.npz` archives, members in the order given, without time stamps: same input, same bytes.
pub(crate) struct ArchiveWriter<W: Write + Seek> {
    zip: zip::ZipWriter<W>,
}

impl<W: Write + Seek> ArchiveWriter<W> {
    pub(crate) fn new(writer: W) -> Self {
        Self { zip: zip::ZipWriter::new(writer) }
    }

    pub(crate) fn integers<T: NpyInteger>(&mut self, name: &str, items: &[T]) -> io::Result<()> {
        self.start(name, T::DESCR, &format!("({},)", items.len()))?;
        let bytes: Vec<u8> = items.iter().flat_map(|&item| item.little_endian()).collect();
        self.zip.write_all(&bytes)
    }

    pub(crate) fn ones(&mut self, name: &str, count: usize) -> io::Result<()> {
        self.start(name, "<f4", &format!("({count},)"))?;
        self.zip.write_all(&1.0f32.to_le_bytes().repeat(count))
    }

    pub(crate) fn floats(&mut self, name: &str, items: &[f64]) -> io::Result<()> {
        self.doubles(name, &format!("({},)", items.len()), items)
    }

    pub(crate) fn matrix(&mut self, name: &str, matrix: &Matrix) -> io::Result<()> {
        self.doubles(name, &format!("({}, {})", matrix.rows(), matrix.columns()), matrix.values())
    }

    fn doubles(&mut self, name: &str, shape: &str, items: &[f64]) -> io::Result<()> {
        self.start(name, "<f8", shape)?;
        self.zip.write_all(&items.iter().flat_map(|item| item.to_le_bytes()).collect::<Vec<u8>>())
    }

    pub(crate) fn strings(&mut self, name: &str, items: &[String]) -> io::Result<()> {
        let width = items.iter().map(|item| item.chars().count()).max().unwrap_or(0).max(1);
        self.start(name, &format!("<U{width}"), &format!("({},)", items.len()))?;
        let mut bytes = Vec::with_capacity(4 * width * items.len());
        for item in items {
            bytes.extend(item.chars().flat_map(|c| u32::from(c).to_le_bytes()));
            bytes.resize(bytes.len() + 4 * (width - item.chars().count()), 0);
        }
        self.zip.write_all(&bytes)
    }

    pub(crate) fn finish(self) -> io::Result<W> {
        Ok(self.zip.finish()?)
    }

    fn start(&mut self, name: &str, descr: &str, shape: &str) -> io::Result<()> {
        let options = zip::write::SimpleFileOptions::default()
            .compression_method(zip::CompressionMethod::Deflated)
            .last_modified_time(zip::DateTime::default());
        self.zip.start_file(format!("{name}.npy"), options)?;
        let mut header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
        let padding = (64 - (10 + header.len() + 1) % 64) % 64;
        header.extend(std::iter::repeat_n(' ', padding));
        header.push('\n');
        self.zip.write_all(b"\x93NUMPY\x01\x00")?;
        self.zip.write_all(&(header.len() as u16).to_le_bytes())?;
        self.zip.write_all(header.as_bytes())
    }
}

/// Integer types that [`ArchiveWriter`] writes.
pub(crate) trait NpyInteger: Copy {
    /// NumPy's type string.
    const DESCR: &'static str;
    fn little_endian(self) -> Vec<u8>;
}

impl NpyInteger for i32 {
    const DESCR: &'static str = "<i4";
    fn little_endian(self) -> Vec<u8> {
        self.to_le_bytes().to_vec()
    }
}

impl NpyInteger for i64 {
    const DESCR: &'static str = "<i8";
    fn little_endian(self) -> Vec<u8> {
        self.to_le_bytes().to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn array(descr: &str, fortran: &str, shape: &str, data: &[u8]) -> Result<Array, ArrayError> {
        let header = format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}\n");
        let mut file = b"\x93NUMPY\x01\x00".to_vec();
        file.extend((header.len() as u16).to_le_bytes());
        file.extend(header.as_bytes());
        file.extend(data);
        Array::read(&mut &file[..], data.len() as u64)
    }

    #[test]
    fn reads_every_integer_width_and_byte_order() {
        let signed = array("|i1", "False", "(2,)", &[0xff, 5]).unwrap();
        assert_eq!(signed.integers().unwrap(), [-1, 5]);
        let big = array(">i4", "False", "(1,)", &[0xff, 0xff, 0xff, 0xfe]).unwrap();
        assert_eq!(big.integers().unwrap(), [-2]);
        let wide = array("<u8", "False", "(1,)", &[0xff; 8]).unwrap();
        assert_eq!(wide.integers(), None, "does not fit a signed number");
        assert_eq!(array("|b1", "False", "(2,)", &[1, 0]).unwrap().floats().unwrap(), [1.0, 0.0]);
    }

    #[test]
    fn fortran_order_is_turned() {
        let data: Vec<u8> = [1.0f32, 4.0, 2.0, 5.0, 3.0, 6.0].iter().flat_map(|f| f.to_le_bytes()).collect();
        let turned = array("<f4", "True", "(2, 3)", &data).unwrap();
        assert_eq!(turned.floats().unwrap(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    }

    #[test]
    fn strings_lose_their_padding() {
        let data: Vec<u8> =
            ['é', 'a', '\0', 'b', '\0', '\0'].iter().flat_map(|&c| u32::from(c).to_le_bytes()).collect();
        assert_eq!(array("<U3", "False", "(2,)", &data).unwrap().strings().unwrap(), ["éa", "b"]);
        assert_eq!(array("|S3", "False", "(1,)", b"ab\0").unwrap().strings().unwrap(), ["ab"]);
    }

    #[test]
    fn headers_that_claim_too_much_are_refused() {
        for shape in ["(9,)", "(18446744073709551615,)", "(4294967296, 4294967296, 4294967296)"] {
            assert!(matches!(array("<f8", "False", shape, &[0; 64]), Err(ArrayError::Short { .. })), "{shape}");
        }
    }

    #[test]
    fn malformed_headers_are_refused() {
        for shape in ["(-1,)", "(x,)", "3", "(1,1,1,1,1,1,1,1,1)"] {
            assert!(matches!(array("<f8", "False", shape, &[0; 8]), Err(ArrayError::Header(_))), "{shape}");
        }
        for descr in ["<c16", "<f2", "V8", "", "<f", "<U18446744073709551615"] {
            assert!(matches!(array(descr, "False", "(1,)", &[0; 16]), Err(ArrayError::Type(_))), "{descr}");
        }
        assert!(array("|O", "False", "(1,)", b"pickle").unwrap().is_pickled());
    }
}

//! JSON Lines with a running hash: one writer and one reader for all files of results.
//!
//! The first line is a header. Every other line is one record, an object whose last field `hash` is a checksum of the record
//! and of everything before it, so that no line can be changed, left out or moved without notice. Files of version 1 have no
//! hashes and are read as they are.

use std::fmt::{self, Write as _};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::ResultsError;
use crate::files::gzip;

/// The version that is written.
pub(super) const VERSION: u64 = 2;
/// The first version, which has no hashes.
const WITHOUT_HASHES: u64 = 1;

/// What comes before the digits of a hash at the end of a line.
const HASH_FIELD: &[u8] = b",\"hash\":\"";
/// Hexadecimal digits of a hash.
const HASH_DIGITS: usize = 16;

/// The running hash: after each line the first 8 bytes of SHA-256 of the hash before and the line without its `hash`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Chain([u8; HASH_DIGITS / 2]);

impl Chain {
    /// The hash after one more line.
    fn after(self, line: &[u8]) -> Self {
        self.after_parts([line])
    }

    /// The same of a line in parts.
    fn after_parts<'l>(self, parts: impl IntoIterator<Item = &'l [u8]>) -> Self {
        let mut hash = Sha256::new();
        hash.update(self.0);
        parts.into_iter().for_each(|part| hash.update(part));
        let mut next = Self::default();
        next.0.copy_from_slice(&hash.finalize()[..HASH_DIGITS / 2]);
        next
    }
}

/// As it is on file.
impl fmt::Display for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.digits().iter().try_for_each(|&digit| f.write_char(char::from(digit)))
    }
}

impl Chain {
    /// Its digits on file.
    fn digits(self) -> [u8; HASH_DIGITS] {
        let number = u64::from_be_bytes(self.0);
        std::array::from_fn(|place| {
            let digit = number >> (4 * (HASH_DIGITS - 1 - place)) & 15;
            b"0123456789abcdef"[digit as usize]
        })
    }
}

/// Bytes from the last field of a record to the end of its line.
const END: usize = HASH_FIELD.len() + HASH_DIGITS + 3;

/// What follows the other fields of a record on its line, whose hash this is.
fn end_of_record(hash: Chain) -> [u8; END] {
    let mut end = [0; END];
    let (field, rest) = end.split_at_mut(HASH_FIELD.len());
    let (digits, close) = rest.split_at_mut(HASH_DIGITS);
    field.copy_from_slice(HASH_FIELD);
    digits.copy_from_slice(&hash.digits());
    close.copy_from_slice(b"\"}\n");
    end
}

/// A record as it is on file, without its hash and what follows that.
#[derive(Debug, Clone, Copy)]
pub struct PlainRecord<'r>(pub(super) &'r [u8]);

impl<'r> PlainRecord<'r> {
    /// That of a line of a file with hashes, given without its end; `None` if it has none.
    pub(super) fn of_line(line: &'r [u8]) -> Option<Self> {
        split_hash(line).map(|([record, _], _)| Self(record))
    }

    /// What it says.
    pub(super) fn parse<T: DeserializeOwned>(self) -> serde_json::Result<T> {
        serde_json::from_slice(&[self.0, b"}"].concat())
    }
}

/// Writes a header and records, one a line.
#[derive(Debug)]
pub struct LineWriter<W: Write> {
    out: W,
    chain: Chain,
    line: Vec<u8>,
}

impl<W: Write> LineWriter<W> {
    /// Begins with `header`, which is handed on at once: a run that is cut off during its first second must leave a file
    /// that says what it is.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn begin(mut out: W, header: &impl Serialize) -> io::Result<Self> {
        let mut line = serde_json::to_vec(header)?;
        let chain = Chain::default().after(&line);
        line.push(b'\n');
        out.write_all(&line)?;
        out.flush()?;
        Ok(Self { out, chain, line })
    }

    /// Goes on after lines that end with this hash.
    pub fn resume(out: W, chain: Chain) -> Self {
        Self { out, chain, line: Vec::new() }
    }

    /// Writes a record.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn record(&mut self, record: &impl Serialize) -> io::Result<()> {
        self.line.clear();
        serde_json::to_writer(&mut self.line, record)?;
        self.finish_record()
    }

    /// Writes a record that was on file, with the hash that it gets here in place of the one that it had.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn plain_record(&mut self, record: PlainRecord) -> io::Result<()> {
        self.chain = self.chain.after_parts([record.0, b"}"]);
        self.out.write_all(record.0)?;
        self.out.write_all(&end_of_record(self.chain))
    }

    fn finish_record(&mut self) -> io::Result<()> {
        self.chain = self.chain.after(&self.line);
        // In place of the closing brace.
        self.line.pop_if(|last| *last == b'}').ok_or_else(|| io::Error::other("a record is not an object"))?;
        self.line.extend_from_slice(&end_of_record(self.chain));
        self.out.write_all(&self.line)
    }

    /// Hands everything on.
    ///
    /// # Errors
    /// If that fails.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// The hash so far.
    pub fn chain(&self) -> Chain {
        self.chain
    }

    /// What is written to.
    pub fn get_ref(&self) -> &W {
        &self.out
    }

    /// Ends the writing, and gives back what was written to.
    pub fn into_inner(self) -> W {
        self.out
    }
}

/// Reads a header and records, one a line; the last line is dropped if its end is missing.
pub struct LineReader<'a> {
    path: PathBuf,
    source: Box<dyn BufRead + 'a>,
    line: Vec<u8>,
    number: usize,
    /// Whether lines have hashes, and the one so far.
    chain: Option<Chain>,
    bytes: u64,
}

impl<'a> LineReader<'a> {
    /// Opens the file at `path`.
    ///
    /// # Errors
    /// If that fails.
    pub fn open(path: &Path) -> Result<Self, ResultsError> {
        let file = File::open(path).map_err(|source| ResultsError::Io { path: path.to_owned(), source })?;
        let source = gzip::reader(BufReader::new(file));
        Ok(Self::new(source.map_err(|source| ResultsError::Io { path: path.to_owned(), source })?, path))
    }

    /// Reads from `source`; errors call it `path`.
    pub fn new(source: impl BufRead + 'a, path: &Path) -> Self {
        Self { path: path.to_owned(), source: Box::new(source), line: Vec::new(), number: 0, chain: None, bytes: 0 }
    }

    /// Reads the header, whose `format` must be one of `formats`; `None` if its end is missing.
    ///
    /// # Errors
    /// If it is no header of these, or of another version.
    pub fn header(&mut self, formats: &[&str]) -> Result<Option<Value>, ResultsError> {
        let whole = self.next_line()?;
        let header: Value = serde_json::from_slice(&self.line).unwrap_or_default();
        if !whole {
            return Ok(None);
        }
        if !header["format"].as_str().is_some_and(|format| formats.contains(&format)) {
            return Err(ResultsError::NotResults { path: self.path.clone() });
        }
        match header["version"].as_u64() {
            Some(WITHOUT_HASHES) => {}
            Some(VERSION) => self.chain = Some(Chain::default().after(&self.line)),
            _ => return Err(ResultsError::Version { path: self.path.clone(), found: header["version"].to_string() }),
        }
        Ok(Some(header))
    }

    /// The line that was read last, without its end; at the end of the file what has none.
    pub fn line(&self) -> &[u8] {
        &self.line
    }

    /// Reads a record; `None` at the end.
    ///
    /// # Errors
    /// If the line is not a record, or not the one that was written there.
    pub fn record<T: DeserializeOwned>(&mut self) -> Result<Option<T>, ResultsError> {
        if !self.next_record()? {
            return Ok(None);
        }
        serde_json::from_slice(&self.line).map(Some).map_err(|error| self.damaged(error))
    }

    /// Reads a line and checks its hash, whatever the record is; `false` at the end.
    ///
    /// # Errors
    /// If it is not the one that was written there.
    pub(super) fn verify_record(&mut self) -> Result<bool, ResultsError> {
        self.next_record()
    }

    /// Reads the line of a record and checks its hash; `false` at the end.
    fn next_record(&mut self) -> Result<bool, ResultsError> {
        if !self.next_line()? {
            return Ok(false);
        }
        if let Some(chain) = self.chain {
            let problem = || self.damaged("its hash does not fit: the file was changed after it was written");
            let (record, hash) = split_hash(&self.line).ok_or_else(problem)?;
            let next = chain.after_parts(record);
            if *hash != next.digits() {
                return Err(problem());
            }
            self.chain = Some(next);
        } else if split_hash(&self.line).is_some() {
            return Err(
                self.damaged("it has a hash, but version 1 has none: the file was changed after it was written")
            );
        }
        Ok(true)
    }

    /// The hash so far, if lines have hashes.
    pub fn chain(&self) -> Option<Chain> {
        self.chain
    }

    /// Bytes up to the end of the last whole line that was read.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// An error about the line that was read last.
    pub fn damaged(&self, problem: impl ToString) -> ResultsError {
        ResultsError::Damaged { path: self.path.clone(), line: self.number, problem: problem.to_string() }
    }

    /// Reads the next line; `false` at the end, also before a line whose own end is missing.
    fn next_line(&mut self) -> Result<bool, ResultsError> {
        self.line.clear();
        let read = self.source.read_until(b'\n', &mut self.line);
        let read = read.map_err(|source| ResultsError::Io { path: self.path.clone(), source })?;
        self.number += 1;
        let whole = self.line.pop_if(|last| *last == b'\n').is_some();
        if whole {
            self.bytes += read as u64;
        }
        Ok(whole)
    }
}

/// A line as it was before its hash was added, in parts, and the digits of the hash.
fn split_hash(line: &[u8]) -> Option<([&[u8]; 2], &[u8])> {
    let before_digits = line.len().checked_sub(HASH_DIGITS + 2)?;
    let (start, end) = line.split_at(before_digits);
    let digits = end.strip_suffix(b"\"}")?;
    Some(([start.strip_suffix(HASH_FIELD)?, b"}"], digits))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written() -> Vec<u8> {
        let header = serde_json::json!({"format": "test", "version": VERSION});
        let mut writer = LineWriter::begin(Vec::new(), &header).unwrap();
        for node in 0..3 {
            writer.record(&serde_json::json!({ "node": node })).unwrap();
        }
        writer.into_inner()
    }

    /// The records of `bytes`, and the bytes up to the end of the last one.
    fn read(bytes: &[u8]) -> Result<(Vec<Value>, u64), String> {
        let mut reader = LineReader::new(bytes, Path::new("test"));
        let mut records = Vec::new();
        let read = (|| {
            reader.header(&["test"])?;
            while let Some(record) = reader.record()? {
                records.push(record);
            }
            Ok(reader.bytes())
        })();
        read.map(|bytes| (records, bytes)).map_err(|error: ResultsError| error.to_string())
    }

    #[test]
    fn what_was_written_reads_back_and_an_unfinished_line_is_dropped() {
        let bytes = written();
        assert_eq!(read(&bytes).unwrap().0.len(), 3);
        let (records, kept) = read(&bytes[..bytes.len() - 1]).unwrap();
        assert_eq!(records.len(), 2);
        let mut writer = LineWriter::begin(Vec::new(), &serde_json::json!({"format": "test", "version": 2})).unwrap();
        (0..2).for_each(|node| writer.record(&serde_json::json!({ "node": node })).unwrap());
        let mut resumed = LineWriter::resume(bytes[..kept as usize].to_vec(), writer.chain);
        resumed.record(&serde_json::json!({"node": 2})).unwrap();
        assert_eq!(resumed.into_inner(), bytes);
    }

    #[test]
    fn every_change_of_one_byte_is_noticed() {
        let bytes = written();
        let header = bytes.iter().position(|&byte| byte == b'\n').unwrap();
        for position in header + 1..bytes.len() {
            for flip in [1, 2, 0x20] {
                let mut changed = bytes.clone();
                changed[position] ^= flip;
                let whole = read(&changed).is_ok_and(|(records, _)| records.len() == 3);
                assert!(!whole, "byte {position}: {}", String::from_utf8_lossy(&changed));
            }
        }
        let lines: Vec<&[u8]> = bytes.split_inclusive(|&byte| byte == b'\n').collect();
        assert!(read(&[lines[0], lines[2], lines[3]].concat()).unwrap_err().contains("line 2"), "a line left out");
        assert!(read(&[lines[0], lines[1], lines[3], lines[2]].concat()).is_err(), "lines swapped");
        let older = String::from_utf8(bytes).unwrap().replace("\"version\":2", "\"version\":1");
        assert!(read(older.as_bytes()).unwrap_err().contains("it has a hash"), "the version changed");
    }
}

//! Results that are kept compressed, as gzip does: those whose name ends in `.gz`.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, Write};
use std::path::Path;

use flate2::Compression;
use flate2::bufread::MultiGzDecoder;
use flate2::write::GzEncoder;

/// How compressed data begin.
const MAGIC: [u8; 2] = [0x1f, 0x8b];

/// Whether what has this name is to be compressed.
pub(crate) fn is_named(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "gz")
}

/// Reads what `source` has, decompressed if it is compressed, whatever its name.
pub(crate) fn reader<'s>(mut source: impl BufRead + 's) -> io::Result<Box<dyn BufRead + 's>> {
    if source.fill_buf()?.starts_with(&MAGIC) {
        return Ok(Box::new(BufReader::new(MultiGzDecoder::new(source))));
    }
    Ok(Box::new(source))
}

/// Writes what `write` writes, compressed. The same data give the same bytes.
pub(crate) fn compressed(
    target: &mut dyn Write,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let mut encoder = GzEncoder::new(target, Compression::default());
    write(&mut encoder)?;
    encoder.finish()?.flush()
}

/// Writes all of a file, compressed.
pub(crate) fn compress(mut file: &File, target: &mut dyn Write) -> io::Result<()> {
    file.rewind()?;
    compressed(target, |target| io::copy(&mut file, target).map(drop))
}

//! Writing files so that a failure never leaves half of one behind.

use std::fs::{self, File};
use std::io;
use std::path::Path;

/// Writes a file beside `path` and moves it there once it is complete.
pub(crate) fn replace(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let mut name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_owned();
    name.push(format!(".{}.part", std::process::id()));
    let part = path.with_file_name(name);
    let written = File::create(&part).and_then(|mut file| write(&mut file)).and_then(|()| fs::rename(&part, path));
    if written.is_err() {
        // The first error is the one worth reporting.
        let _ = fs::remove_file(&part);
    }
    written
}

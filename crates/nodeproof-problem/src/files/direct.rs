//! Outputs that are written to as they are: stdout, devices and pipes.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use super::destination::Destination;

/// An open output that cannot be replaced as a whole.
#[derive(Debug)]
pub(super) enum Direct {
    Stdout(io::Stdout),
    Special(File),
}

impl Direct {
    /// Opens `destination`, which is not a regular file.
    pub(super) fn open(destination: &Destination) -> io::Result<Self> {
        match destination {
            Destination::Stdout => Ok(Self::Stdout(io::stdout())),
            Destination::File(path) => Self::special(path),
        }
    }

    /// Opens a device or a pipe.
    pub(super) fn special(path: &Path) -> io::Result<Self> {
        OpenOptions::new().write(true).open(path).map(Self::Special)
    }
}

impl Write for Direct {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Stdout(stdout) => stdout.write(bytes),
            Self::Special(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Stdout(stdout) => stdout.flush(),
            Self::Special(file) => file.flush(),
        }
    }
}

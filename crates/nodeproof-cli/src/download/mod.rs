//! Files from the network: fetched with patience, checked, and put in place whole or not at all.
//!
//! A file is kept in memory until its checksum is known to be right, so nothing unchecked ever lies on the disk.

mod cache;
mod catalogue;
mod checksum;
mod http;

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;
use std::time::Duration;

pub(crate) use cache::folder as cache_folder;
pub(crate) use catalogue::{DataSet, Mirror};
pub(crate) use checksum::Checksum;
pub(crate) use http::Client;

/// Most bytes of a file that are downloaded; the standard data sets have a few million.
pub(crate) const MOST_BYTES: u64 = 64_000_000;
/// Pause before the second attempt; each further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Why an attempt failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The next attempt may succeed.
    Passing(String),
    /// No further attempt would.
    Lasting(String),
}

/// Attempts until one succeeds or there is no more hope, at most `retries` times after the first; `pause` is told why the
/// last attempt failed, and how long to wait.
///
/// # Errors
/// The reason why the last attempt failed.
pub(crate) fn with_retries<T>(
    retries: u8,
    mut attempt: impl FnMut() -> Result<T, Failure>,
    mut pause: impl FnMut(&str, Duration),
) -> Result<T, String> {
    let mut wait = FIRST_PAUSE;
    for _ in 0..retries {
        match attempt() {
            Ok(done) => return Ok(done),
            Err(Failure::Lasting(why)) => return Err(why),
            Err(Failure::Passing(why)) => pause(&why, wait),
        }
        wait = (2 * wait).min(LONGEST_PAUSE);
    }
    attempt().map_err(|failure| match failure {
        Failure::Passing(why) if retries > 0 => format!("{why} (attempt {0} of {0})", u32::from(retries) + 1),
        Failure::Passing(why) | Failure::Lasting(why) => why,
    })
}

/// The checksum of the file at `path`, if there is one. Of a file that is too large to be a download, it is that of its
/// first bytes.
///
/// # Errors
/// If what is there cannot be read, or is not a file.
pub(crate) fn checksum_at(path: &Path) -> io::Result<Option<Checksum>> {
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Ok(there) if !there.is_file() => return Err(io::Error::other("it is not a file")),
        _ => {}
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
    Ok(Some(Checksum::of(&bytes)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::export::place;

    /// What comes of attempts that end like this, and the seconds between them.
    fn attempts(retries: u8, ends: &[Result<u8, Failure>]) -> (Result<u8, String>, Vec<u64>) {
        let (mut ends, mut pauses) = (ends.iter().cloned(), Vec::new());
        let result = with_retries(retries, || ends.next().unwrap(), |_, wait| pauses.push(wait.as_secs()));
        assert_eq!(ends.next(), None, "no attempt left out");
        (result, pauses)
    }

    #[test]
    fn passing_failures_are_retried_with_growing_pauses() {
        let passing = || Err(Failure::Passing("busy".to_owned()));
        assert_eq!(attempts(2, &[Ok(7)]), (Ok(7), vec![]));
        assert_eq!(attempts(2, &[passing(), passing(), Ok(7)]), (Ok(7), vec![1, 2]));
        let ends = [passing(), passing(), passing()];
        assert_eq!(attempts(2, &ends), (Err("busy (attempt 3 of 3)".to_owned()), vec![1, 2]));
        assert_eq!(attempts(0, &[passing()]), (Err("busy".to_owned()), vec![]));
        assert_eq!(attempts(7, &[(); 8].map(|()| passing())).1, [1, 2, 4, 8, 16, 30, 30]);
    }

    #[test]
    fn lasting_failures_are_not_retried() {
        let lasting = || Err(Failure::Lasting("gone".to_owned()));
        assert_eq!(attempts(2, &[lasting()]), (Err("gone".to_owned()), vec![]));
        let ends = [Err(Failure::Passing("busy".to_owned())), lasting()];
        assert_eq!(attempts(1, &ends), (Err("gone".to_owned()), vec![1]));
    }

    #[test]
    fn files_are_placed_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npz");
        assert_eq!(checksum_at(&path).unwrap(), None);
        for bytes in [&b"old"[..], b"new"] {
            place(&path, bytes).unwrap();
            assert_eq!(checksum_at(&path).unwrap(), Some(Checksum::of(bytes)));
        }
        // A file cannot take the place of a directory, and its first half is not left behind.
        let taken = folder.path().join("taken");
        fs::create_dir(&taken).unwrap();
        assert!(place(&taken, b"new").is_err());
        assert!(checksum_at(&taken).unwrap_err().to_string().contains("not a file"));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }
}

//! Locks, so that two runs never write the same output.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::FileError;
use super::destination::Destination;
use super::paths::{is_at, is_special, location, remove};
use crate::fingerprint::hex;

/// How often a file is opened again because another process has moved or removed it.
const ATTEMPTS: usize = 100;

/// The right to write an output, for one that is written as a whole at the end of a long run: a model, a checkpoint.
///
/// The lock is on a file in the directory for temporary files, which is named after the output, so that the
/// directory of the output stays clean. It ends with this value or with the process, however that ends; a lock file that a
/// killed process leaves behind stops nobody.
///
/// It is advisory: it stops other runs of nodeproof that have the same directory for temporary files, and nothing else.
/// Where files cannot be locked, and for devices and pipes, there is no lock, and the run continues without.
#[derive(Debug)]
#[must_use = "the lock ends with this value"]
pub struct Lock {
    /// The lock file and where it is.
    held: Option<(File, PathBuf)>,
}

impl Lock {
    /// Locks the output at `path`.
    ///
    /// # Errors
    /// If another run has locked it, or if it cannot be the name of a file.
    pub fn of_output(path: impl AsRef<Path>) -> Result<Self, FileError> {
        let path = path.as_ref();
        if is_special(path) {
            return Ok(Self { held: None });
        }
        Destination::File(path.to_owned()).check(&[])?;
        let output = location(path).map_err(FileError::unwritable(path))?;
        let lock_file = lock_file(&output);
        match acquire(&lock_file, &output) {
            Ok(file) => Ok(Self { held: Some((file, lock_file)) }),
            Err(TryLockError::WouldBlock) => Err(FileError::Busy { path: path.to_owned() }),
            Err(TryLockError::Error(_)) => Ok(Self { held: None }),
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if let Some((file, path)) = &self.held {
            remove(path, file);
        }
    }
}

/// Where the lock of the output at this destination is.
fn lock_file(output: &Path) -> PathBuf {
    let hash = Sha256::digest(output.as_os_str().as_encoded_bytes());
    std::env::temp_dir().join(format!("nodeproof-{}.lock", hex(&hash[..16])))
}

fn acquire(lock_file: &Path, output: &Path) -> Result<File, TryLockError> {
    for _ in 0..ATTEMPTS {
        // The directory is shared: only a file that was made here is written to, and others are not even opened for that.
        if let Ok(mut file) = OpenOptions::new().write(true).create_new(true).open(lock_file) {
            // The text is for people who wonder what the file is.
            let _ = writeln!(file, "A run of nodeproof is writing {}.", output.display());
        }
        match open_locked(lock_file, OpenOptions::new().read(true)) {
            // Whoever had the lock removed it in between.
            Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::NotFound => {}
            opened => return opened,
        }
    }
    Err(TryLockError::Error(io::ErrorKind::NotFound.into()))
}

/// Opens the regular file at `path` with these options and locks it. While it is locked, nobody else who uses this function
/// moves or removes it. Where files cannot be locked, it is only opened.
pub(super) fn open_locked(path: &Path, options: &OpenOptions) -> Result<File, TryLockError> {
    for _ in 0..ATTEMPTS {
        let file = open_regular(path, options).map_err(TryLockError::Error)?;
        if try_lock(&file) == Locked::ByOthers {
            return Err(TryLockError::WouldBlock);
        }
        // The process that had the lock may have moved the file to its final name, or removed it, before it let go.
        if is_at(path, &file) {
            return Ok(file);
        }
    }
    Err(TryLockError::Error(io::Error::other("it is moved or removed again and again")))
}

/// Opens the regular file at `path`. Links are not followed, and nothing waits for the other end of a pipe.
pub(super) fn open_regular(path: &Path, options: &OpenOptions) -> io::Result<File> {
    if fs::symlink_metadata(path).is_ok_and(|there| !there.is_file()) {
        let problem = format!("{} is in the way, which is not a regular file", path.display());
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, problem));
    }
    options.open(path)
}

/// What came of an attempt to lock a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Locked {
    ByUs,
    ByOthers,
    /// Files cannot be locked here.
    Never,
}

pub(super) fn try_lock(file: &File) -> Locked {
    match file.try_lock() {
        Ok(()) => Locked::ByUs,
        Err(TryLockError::WouldBlock) => Locked::ByOthers,
        Err(TryLockError::Error(_)) => Locked::Never,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.safetensors");
        let lock = Lock::of_output(&path).unwrap();
        let other = folder.path().join(".").join("model.safetensors");
        let text = Lock::of_output(&other).unwrap_err().to_string();
        assert!(
            text.ends_with("another run of nodeproof is writing it; wait for its end or choose another name"),
            "{text}"
        );
        let _beside = Lock::of_output(folder.path().join("model-2.safetensors")).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        let lock_file = lock_file(&location(&path).unwrap());
        assert!(fs::read_to_string(&lock_file).unwrap().contains("model.safetensors"));
        drop(lock);
        assert!(!lock_file.exists());
        drop(Lock::of_output(&path).unwrap());
    }

    #[test]
    fn a_lock_file_that_was_left_behind_stops_nobody() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model");
        let lock_file = lock_file(&location(&path).unwrap());
        fs::write(&lock_file, "left behind").unwrap();
        let lock = Lock::of_output(&path).unwrap();
        assert!(matches!(Lock::of_output(&path), Err(FileError::Busy { .. })));
        drop(lock);
        assert!(!lock_file.exists());
    }

    #[cfg(unix)]
    #[test]
    fn links_lead_to_the_same_lock_and_devices_have_none() {
        let folder = tempfile::tempdir().unwrap();
        let [path, link] = ["model", "link"].map(|name| folder.path().join(name));
        std::os::unix::fs::symlink("model", &link).unwrap();
        let _lock = Lock::of_output(&link).unwrap();
        assert!(matches!(Lock::of_output(&path), Err(FileError::Busy { .. })));
        let [_one, _two] = [(); 2].map(|()| Lock::of_output("/dev/null").unwrap());
        assert!(matches!(Lock::of_output(folder.path().join("no/model")), Err(FileError::NoDirectory { .. })));
    }

    #[cfg(unix)]
    #[test]
    fn nothing_is_written_through_a_link_in_the_place_of_a_lock() {
        let folder = tempfile::tempdir().unwrap();
        let [path, precious] = ["model", "precious"].map(|name| folder.path().join(name));
        fs::write(&precious, "precious").unwrap();
        let lock_file = lock_file(&location(&path).unwrap());
        std::os::unix::fs::symlink(&precious, &lock_file).unwrap();
        drop(Lock::of_output(&path).unwrap());
        fs::remove_file(&lock_file).unwrap();
        assert_eq!(fs::read(&precious).unwrap(), b"precious");
    }

    #[test]
    fn threads_that_compete_never_hold_a_lock_together() {
        use std::sync::atomic::{AtomicUsize, Ordering};
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model");
        let (holders, turns) = (AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..500 {
                        let Ok(_lock) = Lock::of_output(&path) else { continue };
                        assert_eq!(holders.fetch_add(1, Ordering::SeqCst), 0);
                        turns.fetch_add(1, Ordering::SeqCst);
                        holders.fetch_sub(1, Ordering::SeqCst);
                    }
                });
            }
        });
        assert!(turns.into_inner() > 0);
    }
}

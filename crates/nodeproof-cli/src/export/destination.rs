//! Where results go. Files are opened before any work and emptied only when all of them could be opened.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use anyhow::{anyhow, bail};

/// A file, or stdout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Destination {
    Stdout,
    File(PathBuf),
}

impl Destination {
    /// What `path`, given with `option`, means.
    ///
    /// # Errors
    /// If it can be seen without writing that nothing can be written there, or if it is one of the `inputs`.
    pub(crate) fn check(path: &Path, option: &str, inputs: &[&Path]) -> anyhow::Result<Self> {
        if path.as_os_str() == "-" {
            return Ok(Self::Stdout);
        }
        let folder = match path.parent() {
            Some(folder) if folder.as_os_str().is_empty() => Path::new("."),
            Some(folder) => folder,
            None => bail!("{option}: {} is not the name of a file; give one", path.display()),
        };
        if path.is_dir() {
            bail!("{option}: {} is a directory; give the name of a file in it", path.display());
        }
        if !folder.is_dir() {
            bail!(
                "{option}: cannot write {}: there is no directory {}; make it first",
                path.display(),
                folder.display()
            );
        }
        if inputs.iter().any(|input| is_same_file(path, input)) {
            bail!("{option}: {} is an input of this command; choose another name", path.display());
        }
        Ok(Self::File(path.to_owned()))
    }

    /// Whether both would write to the same place.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Stdout, Self::Stdout) => true,
            (Self::File(left), Self::File(right)) => is_same_file(left, right),
            _ => false,
        }
    }
}

/// Whether both names lead to one file, be it there or not.
fn is_same_file(left: &Path, right: &Path) -> bool {
    let place = |path: &Path| {
        fs::canonicalize(path).or_else(|_| {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
            Ok::<_, io::Error>(fs::canonicalize(folder)?.join(path.file_name().unwrap_or_default()))
        })
    };
    matches!((place(left), place(right)), (Ok(left), Ok(right)) if left == right)
}

/// Checks that `path` can be opened for writing, and leaves it as it was.
///
/// # Errors
/// If it cannot.
pub(crate) fn check_openable(path: &Path) -> anyhow::Result<()> {
    let existed = path.exists();
    let opened = OpenOptions::new().write(true).create(true).truncate(false).open(path);
    opened.map_err(|error| unwritable(path, &error))?;
    if !existed {
        fs::remove_file(path).map_err(|error| unwritable(path, &error))?;
    }
    Ok(())
}

/// Checks that `path` can be replaced by a file that is written beside it.
///
/// # Errors
/// If it cannot.
pub(crate) fn check_replaceable(path: &Path) -> anyhow::Result<()> {
    if is_special(path) {
        return check_openable(path);
    }
    let part = part_beside(path);
    File::create(&part).and_then(|_| fs::remove_file(&part)).map_err(|error| unwritable(path, &error))
}

/// Where this process writes what will replace `path`.
fn part_beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.part", std::process::id()));
    path.with_file_name(name)
}

/// Writes `bytes` beside `path` and moves them there once they are safe on the disk.
///
/// # Errors
/// If that fails; `path` is then as it was.
pub(crate) fn place(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // Through a link, to what it leads to.
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let part = part_beside(path);
    let write = |mut file: File| file.write_all(bytes).and_then(|()| file.sync_all());
    let placed = File::create(&part).and_then(write).and_then(|()| fs::rename(&part, path));
    if placed.is_err() {
        // The first error is the one worth reporting.
        let _ = fs::remove_file(&part);
    }
    placed
}

/// Makes `bytes` the content of the file `path`; a device or a pipe is written to.
///
/// # Errors
/// If that is not possible.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let replaced = if is_special(path) { fs::write(path, bytes) } else { place(path, bytes) };
    replaced.map_err(|error| unwritable(path, &error))
}

/// Whether something other than a file is there.
fn is_special(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| !metadata.is_file())
}

fn unwritable(path: &Path, error: &io::Error) -> anyhow::Error {
    anyhow!("cannot write {}: {error}; choose a place where you may write", path.display())
}

/// An open destination.
pub(crate) enum Opened {
    Stdout(io::Stdout),
    File(File),
}

impl Write for Opened {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Stdout(stdout) => stdout.write(bytes),
            Self::File(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Stdout(stdout) => stdout.flush(),
            Self::File(file) => file.flush(),
        }
    }
}

/// Opens all destinations; of each file the first `keep` bytes stay. If one fails, all are left as they were.
///
/// # Errors
/// If one cannot be opened for writing.
pub(crate) fn open_all(destinations: &[(Destination, u64)]) -> anyhow::Result<Vec<Opened>> {
    let mut opened = Vec::new();
    let mut created: Vec<&Path> = Vec::new();
    let mut open_one = |destination| match destination {
        &Destination::Stdout => Ok(Opened::Stdout(io::stdout())),
        Destination::File(path) => {
            let existed = path.exists();
            let file = OpenOptions::new().write(true).create(true).truncate(false).open(path);
            let file = file.map_err(|error| unwritable(path, &error))?;
            if !existed {
                created.push(path);
            }
            Ok(Opened::File(file))
        }
    };
    for (destination, _) in destinations {
        match open_one(destination) {
            Ok(one) => opened.push(one),
            Err(error) => {
                for path in created {
                    let _ = fs::remove_file(path);
                }
                return Err(error);
            }
        }
    }
    for (one, (destination, keep)) in opened.iter_mut().zip(destinations) {
        let Opened::File(file) = one else { continue };
        // Devices and pipes have nothing to cut off.
        if file.metadata().is_ok_and(|metadata| metadata.is_file()) {
            file.set_len(*keep)
                .and_then(|()| file.seek(SeekFrom::End(0)))
                .map_err(|error| destination.failure(error))?;
        }
    }
    Ok(opened)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_failure_leaves_all_files_as_they_were() {
        let folder = tempfile::tempdir().unwrap();
        let (old, new, bad) = (folder.path().join("old"), folder.path().join("new"), folder.path().join("no/file"));
        fs::write(&old, "kept").unwrap();
        let destinations = [&old, &new, &bad].map(|path| (Destination::File(path.clone()), 0));
        assert!(open_all(&destinations).is_err());
        assert_eq!(fs::read_to_string(&old).unwrap(), "kept");
        assert!(!new.exists());
        let mut opened = open_all(&[(Destination::File(old.clone()), 2), (Destination::File(new.clone()), 0)]).unwrap();
        opened[0].write_all(b"!").unwrap();
        assert_eq!(fs::read_to_string(&old).unwrap(), "ke!");
        assert!(new.exists());
    }

    #[test]
    fn a_file_is_replaced_as_a_whole_and_a_device_stays_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.html");
        fs::write(&path, "old and longer").unwrap();
        replace(&path, b"new").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        assert!(replace(&folder.path().join("no/file"), b"").is_err());
        if Path::new("/dev/null").exists() {
            check_replaceable(Path::new("/dev/null")).unwrap();
            replace(Path::new("/dev/null"), b"new").unwrap();
            assert!(!Path::new("/dev/null").is_file());
        }
    }

    #[test]
    fn places_that_cannot_work_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let input = folder.path().join("graph.npz");
        fs::write(&input, "").unwrap();
        let problem = |path: &Path| Destination::check(path, "--out", &[&input]).unwrap_err().to_string();
        assert!(problem(folder.path()).contains("is a directory"));
        assert!(problem(&folder.path().join("no/file")).contains("make it first"));
        assert!(problem(&folder.path().join("./graph.npz")).contains("is an input"));
        assert_eq!(Destination::check(Path::new("-"), "--out", &[]).unwrap(), Destination::Stdout);
    }
}

//! Files that are written as a whole, or not at all.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Seek, Write};
use std::path::{Path, PathBuf};

use tempfile::SpooledTempFile;

use super::destination::Destination;
use super::direct::Direct;
use super::lock::{Locked, open_regular, try_lock};
use super::paths::{
    directory_of, follow_links, is_at, is_special, keep_permissions, part_beside, remove, rename, sync,
};

/// Writes a file beside `path` and moves it there once it is complete and on the disk.
///
/// Whoever reads `path` finds the old file or the new one, never a part of one, also after a crash. A symbolic link stays,
/// and what it leads to is replaced. The permissions of an old file are kept. A device or a pipe is written to, but only
/// once `write` has succeeded.
///
/// Several processes and threads may replace the same file at the same time: each writes a file of its own, which it has
/// locked, and the last one to move it there wins. Until then the new file is called `.NAME.part`; what a killed process
/// leaves under that name is removed by the next one that writes `path`.
///
/// # Errors
/// If it cannot be written; what was there before is then left as it was, and nothing is left beside it.
pub fn replace(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    if is_special(path) {
        let mut file = tempfile::tempfile()?;
        write(&mut file)?;
        file.rewind()?;
        return io::copy(&mut file, &mut Direct::special(path)?).map(drop);
    }
    let target = follow_links(path)?;
    let mut part = Part::create(&target)?;
    keep_permissions(&target, &part.file);
    write(&mut part.file)?;
    sync(&part.file)?;
    rename(&part.path, &target)
}

/// A file that is being written, locked so that nobody takes it for one that was left behind. It is removed, unless it has
/// been moved away.
struct Part {
    path: PathBuf,
    file: File,
}

impl Part {
    /// Most processes that write the same file at the same time, or leave parts of it where files cannot be locked.
    const MOST: usize = 1000;

    fn create(target: &Path) -> io::Result<Self> {
        if target.file_name().is_none() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not the name of a file"));
        }
        for others in 0..Self::MOST {
            let path = part_beside(target, others);
            if let Some(file) = Self::claim(&path)? {
                return Ok(Self { path, file });
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Creates a file at `path`; `None` if the name belongs to somebody else.
    fn claim(path: &Path) -> io::Result<Option<File>> {
        Self::remove_leftover(path);
        match OpenOptions::new().read(true).write(true).create_new(true).open(path) {
            // Between creating and locking it, another process may have taken it for a leftover: then it is gone, or is
            // about to be.
            Ok(file) => Ok(Some(file).filter(|file| try_lock(file) != Locked::ByOthers && is_at(path, file))),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Removes what a killed process left at `path`. What is locked is being written; where files cannot be locked, nobody
    /// knows, and it stays.
    fn remove_leftover(path: &Path) {
        if let Ok(file) = open_regular(path, OpenOptions::new().read(true))
            && try_lock(&file) == Locked::ByUs
        {
            remove(path, &file);
        }
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        remove(&self.path, &self.file);
    }
}

/// An output that appears as a whole when it is committed, for a writer that is handed on and written to bit by bit.
///
/// Until then a small one is in memory and a large one in a file without a name beside its destination, so that nothing is left
/// behind however the process ends. [`AtomicFile::commit`] does what [`replace`] does. Stdout, devices and pipes are written
/// to at once.
#[derive(Debug)]
pub struct AtomicFile(Out);

#[derive(Debug)]
enum Out {
    Direct(BufWriter<Direct>),
    Spooled { path: PathBuf, spool: BufWriter<SpooledTempFile> },
}

impl AtomicFile {
    /// Most bytes that are held in memory.
    const IN_MEMORY: usize = 1 << 20;

    /// An output at `destination`, empty so far.
    ///
    /// # Errors
    /// If the device or pipe cannot be opened, or if the file has no directory.
    pub fn create(destination: &Destination) -> io::Result<Self> {
        match destination.regular() {
            Some(path) => Out::spooled(path).map(Self),
            None => Ok(Self(Out::Direct(BufWriter::new(Direct::open(destination)?)))),
        }
    }

    /// Puts the file where it belongs, as [`replace`] does.
    ///
    /// # Errors
    /// As [`replace`].
    pub fn commit(self) -> io::Result<()> {
        match self.0 {
            Out::Direct(mut out) => out.flush(),
            Out::Spooled { path, spool } => {
                let mut spool = spool.into_inner().map_err(io::IntoInnerError::into_error)?;
                spool.rewind()?;
                replace(&path, |file| io::copy(&mut spool, file).map(drop))
            }
        }
    }
}

impl Out {
    fn spooled(path: &Path) -> io::Result<Self> {
        let target = follow_links(path)?;
        let directory = directory_of(&target).canonicalize()?;
        let spool = BufWriter::new(tempfile::spooled_tempfile_in(AtomicFile::IN_MEMORY, directory));
        Ok(Self::Spooled { path: path.to_owned(), spool })
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.0 {
            Out::Direct(out) => out.write(bytes),
            Out::Spooled { spool, .. } => spool.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.0 {
            Out::Direct(out) => out.flush(),
            Out::Spooled { spool, .. } => spool.flush(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::tests::names;
    use std::fs;

    fn failure() -> io::Error {
        io::ErrorKind::StorageFull.into()
    }

    #[test]
    fn a_file_is_replaced_as_a_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.html");
        for text in ["old and longer", "new"] {
            replace(&path, |file| file.write_all(text.as_bytes())).unwrap();
            assert_eq!(
                (fs::read_to_string(&path).unwrap(), names(folder.path())),
                (text.to_owned(), "report.html".into())
            );
        }
        assert!(replace(&folder.path().join("no/file"), |_| Ok(())).is_err());
        assert!(replace(Path::new(""), |_| Ok(())).is_err());
        assert!(replace(folder.path(), |_| Ok(())).is_err());
    }

    #[test]
    fn a_failure_keeps_the_old_file_and_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model");
        fs::write(&path, "old").unwrap();
        let error = replace(&path, |file| file.write_all(b"half").and_then(|()| Err(failure()))).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        let panicked = std::panic::catch_unwind(|| replace(&path, |_| panic!("in the middle")));
        assert!(panicked.is_err());
        let mut file = AtomicFile::create(&Destination::of(&path)).unwrap();
        file.write_all(&vec![0; 3 << 20]).unwrap();
        file.flush().unwrap();
        assert_eq!(names(folder.path()), "model");
        drop(file);
        assert_eq!((fs::read_to_string(&path).unwrap(), names(folder.path())), ("old".to_owned(), "model".into()));
    }

    #[test]
    fn what_was_spooled_appears_when_it_is_committed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("table.csv");
        for length in [0, 10, 3 << 20] {
            let bytes: Vec<u8> = (0..length).map(|i| i as u8).collect();
            let mut file = AtomicFile::create(&Destination::of(&path)).unwrap();
            bytes.chunks(1000).for_each(|chunk| file.write_all(chunk).unwrap());
            assert!(fs::read(&path).unwrap_or_default() != bytes || length == 0);
            file.commit().unwrap();
            assert_eq!((fs::read(&path).unwrap() == bytes, names(folder.path())), (true, "table.csv".into()));
        }
        assert!(AtomicFile::create(&Destination::of(folder.path().join("no/file"))).is_err());
    }

    #[test]
    fn leftovers_disappear_and_parts_in_use_stay() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model");
        fs::write(folder.path().join(".model.part"), "left behind by a killed process").unwrap();
        replace(&path, |file| file.write_all(b"new")).unwrap();
        assert_eq!(names(folder.path()), "model");
        replace(&path, |outer| {
            replace(&path, |inner| inner.write_all(b"inner"))?;
            assert_eq!(fs::read(&path).unwrap(), b"inner");
            assert_eq!(names(folder.path()), ".model.part model");
            outer.write_all(b"outer")
        })
        .unwrap();
        assert_eq!((fs::read(&path).unwrap(), names(folder.path())), (b"outer".to_vec(), "model".into()));
        fs::create_dir(folder.path().join(".model.part")).unwrap();
        replace(&path, |file| file.write_all(b"beside a directory")).unwrap();
        assert_eq!(names(folder.path()), ".model.part model");
    }

    #[test]
    fn many_at_once_never_leave_a_torn_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model");
        let content = |writer: u8| vec![writer; 20_000 + usize::from(writer)];
        fs::write(&path, content(0)).unwrap();
        std::thread::scope(|scope| {
            for writer in 1..5 {
                let path = &path;
                scope.spawn(move || {
                    for _ in 0..40 {
                        replace(path, |file| content(writer).chunks(999).try_for_each(|part| file.write_all(part)))
                            .unwrap();
                        let there = fs::read(path).unwrap();
                        assert!(there == content(there[0]));
                    }
                });
            }
        });
        assert_eq!(names(folder.path()), "model");
    }

    #[cfg(unix)]
    #[test]
    fn links_and_permissions_stay() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let folder = tempfile::tempdir().unwrap();
        let other = tempfile::tempdir().unwrap();
        let [link, lost] = ["link", "lost"].map(|name| folder.path().join(name));
        let target = other.path().join("model");
        fs::write(&target, "old").unwrap();
        fs::set_permissions(&target, fs::Permissions::from_mode(0o640)).unwrap();
        symlink(&target, &link).unwrap();
        symlink(other.path().join("new"), &lost).unwrap();
        for path in [&link, &lost] {
            replace(path, |file| {
                assert_eq!(names(folder.path()), "link lost");
                file.write_all(b"new")
            })
            .unwrap();
            assert!(path.is_symlink());
            assert_eq!(fs::read(path).unwrap(), b"new");
        }
        assert_eq!(fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!((names(folder.path()), names(other.path())), ("link lost".into(), "model new".into()));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn devices_are_written_to() {
        let text = |file: &mut File| file.write_all(b"text").and_then(|()| file.rewind());
        replace(Path::new("/dev/null"), text).unwrap();
        assert_eq!(replace(Path::new("/dev/full"), text).unwrap_err().kind(), io::ErrorKind::StorageFull);
        for (path, full) in [("/dev/null", false), ("/dev/full", true)] {
            let mut file = AtomicFile::create(&Destination::of(path)).unwrap();
            file.write_all(b"text").unwrap();
            assert_eq!(file.commit().is_err(), full);
            assert!(Destination::of(path).is_special());
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_file_with_several_names_is_replaced_under_one() {
        let folder = tempfile::tempdir().unwrap();
        let [path, other] = ["path", "other"].map(|name| folder.path().join(name));
        fs::write(&path, "old").unwrap();
        fs::hard_link(&path, &other).unwrap();
        replace(&path, |file| file.write_all(b"new")).unwrap();
        assert_eq!((fs::read(&path).unwrap(), fs::read(&other).unwrap()), (b"new".to_vec(), b"old".to_vec()));
    }
}

//! Which file a path leads to, and the names of the files beside it that are used while it is written.

use std::ffi::OsStr;
use std::fs::{self, File, Metadata};
use std::io;
use std::path::{Path, PathBuf};

/// Most symbolic links that are followed one after the other.
const MOST_LINKS: usize = 40;

/// The directory that a path is in.
pub(super) fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|directory| !directory.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// What a path leads to through symbolic links, be it there or not.
pub(super) fn follow_links(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        match fs::read_link(&path) {
            Ok(target) => path = path.parent().unwrap_or(Path::new("")).join(target),
            Err(_) => return Ok(path),
        }
    }
    Err(io::Error::other("its symbolic links lead nowhere"))
}

/// The same path for all names of a file that differ in links and in `.` and `..`, be it there or not.
pub(super) fn location(path: &Path) -> io::Result<PathBuf> {
    let target = follow_links(path)?;
    Ok(fs::canonicalize(directory_of(&target))?.join(target.file_name().unwrap_or_default()))
}

/// Whether both names lead to one file: the same destination, or (on Unix) hard links of one file.
pub(super) fn is_same_file(left: &Path, right: &Path) -> bool {
    let same_place = matches!((location(left), location(right)), (Ok(left), Ok(right)) if left == right);
    let inode = |path: &Path| fs::metadata(path).ok().and_then(|there| inode(&there));
    same_place || inode(left).is_some_and(|left| inode(right) == Some(left))
}

/// Whether `path` itself, not a link there, is the open `file`. Where files have no numbers: whether it is anything.
pub(super) fn is_at(path: &Path, file: &File) -> bool {
    let (there, open) = (fs::symlink_metadata(path), file.metadata());
    matches!((there, open), (Ok(there), Ok(open)) if inode(&there) == inode(&open))
}

/// Removes `path` if it is the open `file`.
pub(super) fn remove(path: &Path, file: &File) {
    if is_at(path, file) {
        // Whoever calls this has a result or an error that matters more.
        let _ = fs::remove_file(path);
    }
}

/// Device and number of a file, where there is such a thing.
#[cfg(unix)]
fn inode(metadata: &Metadata) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    Some((metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
fn inode(_: &Metadata) -> Option<(u64, u64)> {
    None
}

/// Whether something is there that is neither a regular file nor a directory: a device, a pipe.
pub(super) fn is_special(path: &Path) -> bool {
    path.metadata().is_ok_and(|there| !there.is_file() && !there.is_dir())
}

/// Where results are until they are complete: `NAME.unfinished`.
pub(super) fn unfinished_beside(path: &Path) -> PathBuf {
    beside(path, "", ".unfinished")
}

/// Where a file is written before it is moved to its destination: `.NAME.part`, or `.NAME.1.part` and so on if others write it
/// at the same time.
pub(super) fn part_beside(path: &Path, others: usize) -> PathBuf {
    if others == 0 { beside(path, ".", ".part") } else { beside(path, ".", &format!(".{others}.part")) }
}

fn beside(path: &Path, before: &str, after: &str) -> PathBuf {
    let mut name = OsStr::new(before).to_owned();
    name.push(path.file_name().unwrap_or_default());
    name.push(after);
    path.with_file_name(name)
}

/// Gives `file`, which will replace `old`, the permissions that `old` has.
pub(super) fn keep_permissions(old: &Path, file: &File) {
    if let Ok(there) = fs::metadata(old) {
        // Fails only where files have no permissions of their own.
        let _ = file.set_permissions(there.permissions());
    }
}

/// Waits until `file` is on the disk.
pub(super) fn sync(file: &File) -> io::Result<()> {
    match file.sync_all() {
        Err(error) if error.kind() == io::ErrorKind::Unsupported => Ok(()),
        synced => synced,
    }
}

/// Moves `from` to `to` in the same directory, in one step that also survives a power failure where the system can do that.
pub(super) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)?;
    if cfg!(unix) {
        // The file has its name; only a power failure right now could still take that back.
        let _ = File::open(directory_of(to)).and_then(|directory| directory.sync_all());
    }
    Ok(())
}

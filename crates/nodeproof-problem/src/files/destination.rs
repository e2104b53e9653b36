//! Where an output goes.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use super::FileError;
use super::paths::{directory_of, follow_links, is_same_file, is_special, part_beside, unfinished_beside};

/// A file, or stdout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    /// Stdout.
    Stdout,
    /// A file, a device or a pipe.
    File(PathBuf),
}

impl Destination {
    /// What `path` means: `-` and `/dev/stdout` are stdout, everything else is the name of a file.
    pub fn of(path: impl AsRef<Path>) -> Self {
        let path = path.as_ref();
        if path == Path::new("-") || path == Path::new("/dev/stdout") {
            Self::Stdout
        } else {
            Self::File(path.to_owned())
        }
    }

    /// The path of a file.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Stdout => None,
            Self::File(path) => Some(path),
        }
    }

    /// Whether there is a device or a pipe: something that exists and is neither a regular file nor a directory.
    pub fn is_special(&self) -> bool {
        self.path().is_some_and(is_special)
    }

    /// The path of a file that can be replaced as a whole.
    pub(super) fn regular(&self) -> Option<&Path> {
        self.path().filter(|path| !is_special(path))
    }

    /// Whether writing to one would disturb the other: they are the same file, or one is a file beside the other that is
    /// used while the other is written.
    pub fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Stdout, Self::Stdout) => true,
            (Self::File(left), Self::File(right)) => {
                let right = written(right);
                written(left).iter().any(|left| right.iter().any(|right| is_same_file(left, right)))
            }
            _ => false,
        }
    }

    /// Checks what can be seen without writing. An input is recognised under all of its names: other spellings of its
    /// path, symbolic links, and (on Unix) hard links.
    ///
    /// # Errors
    /// If the path has no file name, is a directory, or is in none that exists, or if it is one of the `inputs`.
    pub fn check(&self, inputs: &[&Path]) -> Result<(), FileError> {
        let Self::File(path) = self else { return Ok(()) };
        if path.is_dir() {
            return Err(FileError::Directory { path: path.clone() });
        }
        if path.file_name().is_none() || ends_with_separator(path) {
            return Err(FileError::NoName { path: path.clone() });
        }
        let target = follow_links(path).map_err(FileError::unwritable(path))?;
        let directory = directory_of(&target);
        if !directory.is_dir() {
            return Err(FileError::NoDirectory { path: path.clone(), directory: directory.to_owned() });
        }
        let is_input =
            |name: &Path| inputs.iter().find(|input| is_same_file(name, input)).map(|&input| input.to_owned());
        let [target, beside @ ..] = written(path);
        if let Some(input) = is_input(&target) {
            return Err(FileError::Input { path: path.clone(), input });
        }
        match beside.iter().find_map(|name| is_input(name)) {
            Some(input) => Err(FileError::WorkingFileIsInput { path: path.clone(), input }),
            None => Ok(()),
        }
    }

    /// Checks that the file can be created or replaced, and leaves everything as it was. A file that is write-protected is
    /// not replaced. Devices and pipes are not opened: that would wait for a reader.
    ///
    /// # Errors
    /// If it cannot.
    pub fn check_writable(&self) -> Result<(), FileError> {
        match self {
            Self::Stdout => Ok(()),
            Self::File(path) => check_replaceable(path).map_err(FileError::unwritable(path)),
        }
    }

    /// What to say if writing here failed.
    pub fn failure(&self, source: io::Error) -> FileError {
        match self {
            Self::Stdout => FileError::Stdout { source },
            Self::File(path) => FileError::Write { path: path.clone(), source },
        }
    }
}

/// The files that are written on the way to `path`, itself first.
fn written(path: &Path) -> [PathBuf; 3] {
    // Links that lead nowhere are refused before anything is written.
    let target = follow_links(path).unwrap_or_else(|_| path.to_owned());
    let (unfinished, part) = (unfinished_beside(&target), part_beside(&target, 0));
    [target, unfinished, part]
}

fn ends_with_separator(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().last().is_some_and(|&last| std::path::is_separator(char::from(last)))
}

fn check_replaceable(path: &Path) -> io::Result<()> {
    if path.metadata().is_ok_and(|there| there.permissions().readonly()) {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it is write-protected"));
    }
    if is_special(path) {
        return Ok(());
    }
    let [target, beside @ ..] = written(path);
    match OpenOptions::new().write(true).open(&target) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    for name in beside {
        // A name may be as long as the system allows, and these are longer.
        match fs::symlink_metadata(name) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    // It has no name, so that nothing is left behind even if the process ends here.
    tempfile::tempfile_in(directory_of(&target)).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(path: &Path, inputs: &[&Path]) -> String {
        Destination::of(path).check(inputs).unwrap_err().to_string()
    }

    fn count(directory: &Path) -> usize {
        fs::read_dir(directory).unwrap().count()
    }

    #[test]
    fn places_that_cannot_work_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        assert!(problem(folder, &[]).contains("it is a directory; give the name of a file in it"));
        assert!(problem(Path::new(".."), &[]).contains("it is a directory"));
        assert!(problem(Path::new(""), &[]).contains("not the name of a file"));
        assert!(problem(&folder.join("out/"), &[]).contains("not the name of a file"));
        let missing = problem(&folder.join("no/file"), &[]);
        assert!(missing.contains("there is no directory") && missing.ends_with("/no; make it first"), "{missing}");
        fs::write(folder.join("file"), "").unwrap();
        assert!(problem(&folder.join("file/out"), &[]).contains("make it first"));
        Destination::of(folder.join("out")).check(&[&folder.join("file")]).unwrap();
        Destination::of("out").check(&[]).unwrap();
        assert_eq!(Destination::of("-"), Destination::Stdout);
        Destination::Stdout.check(&[Path::new("-")]).unwrap();
    }

    #[test]
    fn an_input_is_recognised_by_its_path() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let input = folder.join("graph.npz");
        for there in [false, true] {
            if there {
                fs::write(&input, "graph").unwrap();
            }
            let text = problem(&folder.join("./graph.npz"), &[Path::new("other"), &input]);
            assert!(text.contains("graph.npz, an input of this command; choose another name"), "{text}");
            let unfinished = folder.join("out.unfinished");
            assert!(problem(&folder.join("out"), &[&unfinished]).contains("until it is complete it is written to"));
            assert!(problem(&folder.join("out"), &[&folder.join(".out.part")]).contains(".out.part, an input"));
        }
        assert_eq!(fs::read(&input).unwrap(), b"graph");
    }

    #[cfg(unix)]
    #[test]
    fn an_input_is_recognised_through_links() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let [input, hard, soft, beside] = ["graph", "hard", "soft", "out.unfinished"].map(|name| folder.join(name));
        fs::write(&input, "graph").unwrap();
        fs::hard_link(&input, &hard).unwrap();
        fs::hard_link(&input, &beside).unwrap();
        std::os::unix::fs::symlink("hard", &soft).unwrap();
        for output in [&input, &hard, &soft] {
            for input in [&input, &hard, &soft] {
                assert!(problem(output, &[input]).contains("an input of this command"));
                assert!(Destination::of(output).is_same(&Destination::of(input)));
            }
        }
        assert!(problem(&folder.join("out"), &[&input]).contains("until it is complete"));
    }

    #[cfg(unix)]
    #[test]
    fn a_link_may_lead_to_a_file_that_is_not_there_yet() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let [link, lost, circle] = ["link", "lost", "circle"].map(|name| folder.join(name));
        std::os::unix::fs::symlink("new", &link).unwrap();
        std::os::unix::fs::symlink("no/new", &lost).unwrap();
        std::os::unix::fs::symlink("circle", &circle).unwrap();
        Destination::of(&link).check(&[]).unwrap();
        Destination::of(&link).check_writable().unwrap();
        assert!(problem(&link, &[&folder.join("new")]).contains("an input"));
        assert!(problem(&lost, &[]).contains("no; make it first"));
        assert!(problem(&circle, &[]).contains("its symbolic links lead nowhere"));
        assert_eq!(count(folder), 3);
    }

    #[test]
    fn outputs_that_disturb_each_other_are_the_same() {
        let same = |left: &str, right: &str| Destination::of(left).is_same(&Destination::of(right));
        assert!(same("-", "-") && same("a", "./a") && same("a", "a.unfinished") && same(".a.part", "a"));
        assert!(!same("a", "b") && !same("-", "a") && !same("a", "a.part"));
    }

    #[test]
    fn checking_for_writing_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let [old, new, long] = ["old".to_owned(), "new".to_owned(), "n".repeat(250)].map(|name| folder.join(name));
        fs::write(&old, "kept").unwrap();
        let modified = fs::metadata(&old).unwrap().modified().unwrap();
        let check = |path: &Path| Destination::of(path).check_writable().map_err(|error| error.to_string());
        check(&old).unwrap();
        check(&new).unwrap();
        Destination::Stdout.check_writable().unwrap();
        assert!(check(&folder.join("no/file")).unwrap_err().contains("choose a place where you may write"));
        if cfg!(unix) {
            check(&long).unwrap_err();
        }
        let mut permissions = fs::metadata(&old).unwrap().permissions();
        permissions.set_readonly(true);
        fs::set_permissions(&old, permissions).unwrap();
        assert!(check(&old).unwrap_err().contains("it is write-protected"));
        assert_eq!(fs::read(&old).unwrap(), b"kept");
        assert_eq!(fs::metadata(&old).unwrap().modified().unwrap(), modified);
        assert_eq!(count(folder), 1);
    }

    #[cfg(unix)]
    #[test]
    fn devices_are_special() {
        let null = Destination::of("/dev/null");
        assert!(null.is_special() && !Destination::Stdout.is_special() && !Destination::of("/dev").is_special());
        assert!(!Destination::of("no such file").is_special());
        null.check(&[]).unwrap();
        null.check_writable().unwrap();
    }
}

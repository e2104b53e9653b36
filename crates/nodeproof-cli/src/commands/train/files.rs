//! What `train` writes: checked before anything is done, numbered where there are several runs.

use std::path::{Path, PathBuf};

use anyhow::{anyhow, bail};
use nodeproof::files::{Destination, FileError, Lock};
use nodeproof::train::Checkpoint;

use crate::cli::TrainArguments;
use crate::outputs;

/// The files of one run.
#[derive(Debug, Clone)]
pub(in crate::commands) struct RunFiles {
    pub(in crate::commands) out: PathBuf,
    pub(in crate::commands) log: Option<PathBuf>,
    pub(in crate::commands) checkpoint: Option<PathBuf>,
    pub(in crate::commands) split: Option<PathBuf>,
}

impl RunFiles {
    /// The files of run `number`; without a number, those that were given.
    fn of(arguments: &TrainArguments, number: Option<usize>) -> Self {
        let name = |path: &PathBuf| number.map_or(path.clone(), |number| numbered(path, number));
        Self {
            out: name(&arguments.output.out),
            log: arguments.output.log.as_ref().map(name),
            checkpoint: arguments.output.checkpoint.as_ref().map(name),
            split: arguments.split.write_split.as_ref().map(name),
        }
    }

    /// All of them, with the options they were given with.
    fn all(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        let optional = [("--log", &self.log), ("--checkpoint", &self.checkpoint), ("--write-split", &self.split)];
        let there = optional.into_iter().filter_map(|(option, path)| Some((option, path.as_deref()?)));
        std::iter::once(("--out", self.out.as_path())).chain(there)
    }

    /// The files that hold results.
    pub(super) fn results(&self) -> impl Iterator<Item = &Path> {
        self.all().filter(|(option, _)| *option != "--checkpoint").map(|(_, path)| path)
    }

    /// Locks the files that are written as a whole; a log is locked where it is written.
    ///
    /// # Errors
    /// If another run writes one of them.
    pub(super) fn lock(&self) -> Result<Vec<Lock>, FileError> {
        let whole = self.all().filter(|(option, _)| *option != "--log");
        whole.map(|(_, path)| Lock::of_output(path)).collect()
    }
}

/// `m.safetensors` to `m-3.safetensors`.
fn numbered(path: &Path, number: usize) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(format!("-{number}"));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

/// The files of each run.
///
/// # Errors
/// If one cannot be written, or is an input or another output.
pub(super) fn check(arguments: &TrainArguments) -> anyhow::Result<Vec<RunFiles>> {
    let out = &arguments.output.out;
    if out.extension().is_none_or(|extension| extension != "safetensors") {
        bail!(
            "--out is {}; models are written as .safetensors; give it a name that ends in .safetensors",
            out.display()
        );
    }
    let runs = usize::from(arguments.split.splits);
    let files: Vec<_> = (0..runs).map(|run| RunFiles::of(arguments, (runs > 1).then_some(run))).collect();
    let inputs: Vec<&Path> = arguments.graph.graph.file().into_iter().chain(arguments.budget.flips.files()).collect();
    let mut taken: Vec<(&str, Destination)> = Vec::new();
    for (option, path) in files.iter().flat_map(RunFiles::all) {
        let destination = outputs::destination(path, option, &inputs)?;
        if destination == Destination::Stdout {
            bail!("{option} is written to a file; give its name");
        }
        if let Some((other, _)) = taken.iter().find(|(_, taken)| taken.is_same(&destination)) {
            bail!("{other} and {option} both write {}; give them different names", path.display());
        }
        if option == "--checkpoint" && !arguments.output.resume {
            check_checkpoint(path)?;
        }
        taken.push((option, destination));
    }
    Ok(files)
}

/// Refuses to put a checkpoint where something else goes.
fn check_checkpoint(path: &Path) -> anyhow::Result<()> {
    let empty = path.metadata().is_ok_and(|there| there.len() == 0);
    if path.is_file() && !empty && !Checkpoint::is_at(path) {
        let path = path.display();
        return Err(anyhow!(
            "--checkpoint: {path} exists and is not a checkpoint; give another name, or remove the file"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_before_the_extension() {
        let name = |path: &str| numbered(Path::new(path), 3).display().to_string();
        assert_eq!(name("a/m.safetensors"), "a/m-3.safetensors");
        assert_eq!((name("log"), name("m.2.jsonl")), ("log-3".to_owned(), "m.2-3.jsonl".to_owned()));
    }
}

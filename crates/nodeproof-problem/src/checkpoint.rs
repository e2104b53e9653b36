//! A training on file, to be continued: numbers in groups, how far it has come, and a hash of all of it.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use safetensors::SafeTensors;
use sha2::{Digest, Sha256};

use crate::files::replace;
use crate::fingerprint::hex;
use crate::tensors::{self, Tensor, floats};

const FORMAT: &str = "nodeproof-checkpoint";
/// Version 1 had no hash, so that nothing showed whether it is as it was written.
const VERSION: &str = "2";

/// Why training cannot be continued from a file, or not be written to one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// The file could not be read or written.
    #[error("cannot access {path}: {source}", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file is not a checkpoint.
    #[error(
        "{path} is not a checkpoint that nodeproof can read: {problem}; start again without resuming", path = path.display()
    )]
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// The checkpoint is one of another run.
    #[error(
        "{path} is a checkpoint of a run with another graph, split or settings; continue with those of that run, or start \
         again without resuming", path = path.display()
    )]
    OtherRun {
        /// The file.
        path: PathBuf,
    },
}

/// What is kept of a training.
#[derive(Debug, Clone, PartialEq)]
pub struct Checkpoint {
    /// A fingerprint of everything that the run depends on: only the same run can continue.
    pub run: String,
    /// How far it has come, as JSON.
    pub progress: String,
    /// Names of groups of numbers, such as `model`, each with its tensors in order.
    pub groups: Vec<(String, Vec<Vec<f64>>)>,
}

impl Checkpoint {
    /// Whether there is a checkpoint of some run at `path`.
    pub fn is_at(path: impl AsRef<Path>) -> bool {
        let metadata = fs::read(path).ok().and_then(|bytes| Some(SafeTensors::read_metadata(&bytes).ok()?.1));
        let metadata = metadata.and_then(|metadata| metadata.metadata().clone()).unwrap_or_default();
        metadata.get("format").is_some_and(|format| format == FORMAT)
    }

    /// The tensors of a group.
    pub fn group(&self, name: &str) -> Option<&[Vec<f64>]> {
        self.groups.iter().find(|(group, _)| group == name).map(|(_, tensors)| tensors.as_slice())
    }

    /// Writes the checkpoint.
    ///
    /// # Errors
    /// If the file cannot be written; an existing one is then left as it was.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<(), CheckpointError> {
        let path = path.as_ref();
        let written = self.to_bytes().and_then(|bytes| replace(path, |file| file.write_all(&bytes)));
        written.map_err(|source| CheckpointError::Io { path: path.to_owned(), source })
    }

    /// The file, the same for the same checkpoint.
    fn to_bytes(&self) -> io::Result<Vec<u8>> {
        let tensors = self.named().map(|(name, values)| (name, Tensor::floats(vec![values.len()], values))).collect();
        let metadata = [
            ("format", FORMAT.to_owned()),
            ("version", VERSION.to_owned()),
            ("run", self.run.clone()),
            ("progress", self.progress.clone()),
            ("hash", self.hash()),
        ];
        tensors::to_bytes(tensors, metadata.map(|(key, value)| (key.to_owned(), value)).into())
    }

    /// Reads the checkpoint of `run` at `path`.
    ///
    /// # Errors
    /// If the file is unreadable, not a checkpoint, one of another run, or not as it was written.
    pub fn read(path: impl AsRef<Path>, run: &str) -> Result<Self, CheckpointError> {
        let path = path.as_ref();
        let bytes = fs::read(path).map_err(|source| CheckpointError::Io { path: path.to_owned(), source })?;
        match Self::parse(&bytes) {
            Err(problem) => Err(CheckpointError::Format { path: path.to_owned(), problem }),
            Ok(checkpoint) if checkpoint.run != run => Err(CheckpointError::OtherRun { path: path.to_owned() }),
            Ok(checkpoint) => Ok(checkpoint),
        }
    }

    fn parse(bytes: &[u8]) -> Result<Self, String> {
        let tensors = SafeTensors::deserialize(bytes).map_err(tensors::damaged)?;
        let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(tensors::damaged)?;
        let metadata = metadata.metadata().clone().unwrap_or_default();
        let get = |key: &str| metadata.get(key).cloned().unwrap_or_default();
        if get("format") != FORMAT {
            return Err("its metadata do not say that it is one".to_owned());
        }
        if get("version") != VERSION {
            return Err(format!("it has version {}, this nodeproof reads {VERSION}", get("version")));
        }
        let mut members: Vec<(String, usize)> = Vec::new();
        for name in tensors.names() {
            let member = name.rsplit_once('.').and_then(|(group, i)| Some((group.to_owned(), i.parse().ok()?)));
            members.push(member.ok_or_else(|| format!("it has a tensor {name}, which no checkpoint has"))?);
        }
        members.sort_unstable();
        let mut checkpoint = Self { run: get("run"), progress: get("progress"), groups: Vec::new() };
        for (group, i) in members {
            let (_, values) = floats(&tensors, &format!("{group}.{i}"))?;
            match checkpoint.groups.last_mut() {
                Some((last, tensors)) if *last == group => tensors.push(values),
                _ => checkpoint.groups.push((group, vec![values])),
            }
        }
        // The hash covers the numbers; that the same bytes come out again, everything else.
        if checkpoint.hash() != get("hash") || checkpoint.to_bytes().ok().as_deref() != Some(bytes) {
            return Err("its hash does not fit: it was damaged or changed after it was written".to_owned());
        }
        Ok(checkpoint)
    }

    /// All tensors with their names.
    fn named(&self) -> impl Iterator<Item = (String, &Vec<f64>)> {
        let tensors = |(group, tensors)| (0..).zip(tensors).map(move |(i, values)| (format!("{group}.{i}"), values));
        self.groups.iter().map(|(group, values)| (group, values)).flat_map(tensors)
    }

    /// SHA-256 of everything, in an order that does not depend on how it is stored.
    fn hash(&self) -> String {
        let mut hash = Sha256::new();
        for text in [&self.run, &self.progress] {
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text);
        }
        let mut named: Vec<_> = self.named().collect();
        named.sort_by(|a, b| a.0.cmp(&b.0));
        for (name, values) in named {
            hash.update(name);
            hash.update((values.len() as u64).to_le_bytes());
            values.iter().for_each(|value| hash.update(value.to_le_bytes()));
        }
        hex(&hash.finalize())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checkpoint() -> Checkpoint {
        let tensors = |start: f64| (0..11).map(|i| vec![start, f64::from(i)]).collect();
        let groups = vec![("first".to_owned(), tensors(0.5)), ("model".to_owned(), tensors(-0.25))];
        Checkpoint { run: "abc".to_owned(), progress: r#"{"step":3}"#.to_owned(), groups }
    }

    #[test]
    fn checkpoints_read_back_and_belong_to_one_run() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.checkpoint");
        assert!(!Checkpoint::is_at(&path));
        checkpoint().write(&path).unwrap();
        assert!(Checkpoint::is_at(&path));
        assert_eq!(Checkpoint::read(&path, "abc").unwrap(), checkpoint());
        assert!(matches!(Checkpoint::read(&path, "other"), Err(CheckpointError::OtherRun { .. })));
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.checkpoint");
        checkpoint().write(&path).unwrap();
        let bytes = fs::read(&path).unwrap();
        for position in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[position] ^= 1 << (position % 8);
            fs::write(&path, &changed).unwrap();
            assert!(Checkpoint::read(&path, "abc").is_err(), "byte {position}");
        }
    }
}

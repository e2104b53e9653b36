//! `nodeproof data get`: the data sets of the paper, from the network or the cache.

use std::fs;
use std::path::{Path, PathBuf};
use std::process;
use std::thread;

use anyhow::{anyhow, bail};
use serde::Serialize;

use super::read_any;
use crate::cli::{DataGetArguments, GraphFlags};
use crate::download::{self, Checksum, Client, DataSet};
use crate::export;
use crate::inputs::GraphSource;
use crate::interrupt::Interrupt;
use crate::outcome::{self, Outcome};
use crate::progress::DownloadProgress;
use crate::terminal;

/// Downloads what is not there yet, and says where it is.
///
/// # Errors
/// If a data set cannot be had; those before it stay.
pub(crate) fn get(arguments: &DataGetArguments) -> anyhow::Result<Outcome> {
    let folder = match &arguments.out {
        Some(folder) => folder.clone(),
        None => download::cache_folder()?,
    };
    let progress = DownloadProgress::new(arguments.quiet);
    end_when_interrupted(&progress)?;
    let getter = Getter { arguments, folder, client: Client::new(arguments.timeout), progress };
    let got = arguments.data_sets.iter().map(|data_set| getter.get(data_set)).collect::<anyhow::Result<Vec<_>>>();
    getter.progress.clear();
    let got = got?;
    if arguments.json {
        terminal::print(&(serde_json::to_string_pretty(&got)? + "\n"))?;
    } else if !arguments.quiet {
        terminal::print(&in_words(&got))?;
    }
    Ok(Outcome::Done)
}

/// Ends the process at Ctrl-C, whatever it waits for: nothing is on the disk that could be taken for whole.
fn end_when_interrupted(progress: &DownloadProgress) -> anyhow::Result<()> {
    let progress = progress.clone();
    Interrupt::listen(move || {
        progress.clear();
        terminal::complain("interrupted; run the same command again for what is missing");
        process::exit(outcome::INTERRUPTED.into());
    })?;
    Ok(())
}

/// A data set that is in its place.
#[derive(Debug, Serialize)]
struct Got {
    name: String,
    file: PathBuf,
    checksum: String,
    url: String,
    downloaded: bool,
    /// What commands that read the graph should be told.
    flags: Vec<&'static str>,
}

struct Getter<'a> {
    arguments: &'a DataGetArguments,
    folder: PathBuf,
    client: Client,
    progress: DownloadProgress,
}

impl Getter<'_> {
    /// Sees to it that `data_set` is in the folder.
    fn get(&self, data_set: &DataSet) -> anyhow::Result<Got> {
        let path = self.folder.join(data_set.file());
        let there = self.is_there(data_set, &path)?;
        if !there {
            self.download(data_set, &path)?;
        }
        let flags = flags_for(&path);
        Ok(Got {
            name: data_set.name.clone(),
            file: path,
            checksum: data_set.checksum.to_string(),
            url: self.arguments.mirror.url(data_set),
            downloaded: !there,
            flags,
        })
    }

    /// Whether the file at `path` is the one meant. One that is not may be replaced in the cache only.
    fn is_there(&self, data_set: &DataSet, path: &Path) -> anyhow::Result<bool> {
        let found = download::checksum_at(path)
            .map_err(|error| anyhow!("cannot read {}: {error}; move it out of the way", path.display()))?;
        match found {
            None => Ok(false),
            Some(checksum) if checksum == data_set.checksum => Ok(true),
            Some(_) if self.arguments.out.is_some() => bail!(
                "{} is there, but is not the data set {} (its checksum is not {}); move it away, or choose another \
                 folder with --out",
                path.display(),
                data_set.name,
                data_set.checksum
            ),
            Some(_) if self.arguments.offline => {
                self.progress.note(&format!("{} is damaged or another file", path.display()));
                Ok(false)
            }
            Some(_) => {
                self.progress.note(&format!("{} is damaged or another file, and will be replaced", path.display()));
                Ok(false)
            }
        }
    }

    /// Downloads `data_set` to `path`.
    fn download(&self, data_set: &DataSet, path: &Path) -> anyhow::Result<()> {
        let url = self.arguments.mirror.url(data_set);
        let by_hand = format!(
            "you can get {url} by other means and put it at {}; nodeproof takes it if `git hash-object` of it is {}",
            path.display(),
            data_set.checksum
        );
        if self.arguments.offline {
            bail!("--offline: {} is not in {}; {by_hand}", data_set.name, self.folder.display());
        }
        fs::create_dir_all(&self.folder).map_err(|error| {
            anyhow!("cannot make {}: {error}; give a folder where you may write with --out", self.folder.display())
        })?;
        export::check_replaceable(path)?;
        let attempt = || {
            self.progress.start(&data_set.name);
            self.client.fetch(&url, |bytes, size| self.progress.received(bytes, size))
        };
        let bytes = download::with_retries(self.arguments.retries, attempt, |why, wait| {
            self.progress.note(&format!("{}: {why}; trying again in {} s", data_set.name, wait.as_secs()));
            thread::sleep(wait);
        })
        .map_err(|why| anyhow!("cannot download {}: {why}; {by_hand}", data_set.name))?;
        let checksum = Checksum::of(&bytes);
        if checksum != data_set.checksum {
            bail!(
                "{url} is not the data set {}: the checksum of its {} bytes is {checksum}, not {}; nothing of it was kept. A \
                 proxy or mirror may have sent something else: try again, or another --mirror",
                data_set.name,
                bytes.len(),
                data_set.checksum
            );
        }
        export::place(path, &bytes)
            .map_err(|error| anyhow!("cannot write {}: {error}; choose another folder with --out", path.display()))
    }
}

/// The flags that suit the graph at `path`, none if it is not a graph.
fn flags_for(path: &Path) -> Vec<&'static str> {
    let Ok((_, cleaning)) = read_any(&GraphSource::File(path.to_owned()), &GraphFlags::default()) else {
        return Vec::new();
    };
    let flags = [("--binarise", cleaning.attributes_binarised), ("--keep-self-loops", cleaning.self_loops_removed)];
    flags.into_iter().filter(|(_, count)| *count > 0).map(|(flag, _)| flag).collect()
}

fn in_words(got: &[Got]) -> String {
    let row = |got: &Got| {
        let came = if got.downloaded { "downloaded" } else { "there already" };
        vec![got.name.clone(), came.to_owned(), terminal::printable(&got.file.display().to_string())]
    };
    let header = ["data set", "", "file"].map(str::to_owned).to_vec();
    let mut text = terminal::table("lll", Some(header), got.iter().map(row).collect());
    text += "\nnext\n";
    for got in got {
        let words = ["nodeproof data info".to_owned(), terminal::quoted(&got.file.to_string_lossy())];
        let flags = got.flags.iter().map(|flag| (*flag).to_owned());
        text += &format!("  {}\n", words.into_iter().chain(flags).collect::<Vec<_>>().join(" "));
    }
    text
}

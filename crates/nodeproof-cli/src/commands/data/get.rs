//! `nodeproof data get`: the data sets of the paper, from the network or the cache.

use std::path::PathBuf;
use std::process;

use nodeproof_lab::reproduce::paper;
use nodeproof_report::text;
use serde::Serialize;

use crate::cli::DataGetArguments;
use crate::download::{self, DataSet, Getter};
use crate::interrupt::Interrupt;
use crate::outcome::{self, Outcome};
use crate::progress::DownloadProgress;
use crate::terminal;

/// Downloads what is not there yet, and says where it is.
///
/// # Errors
/// If a data set can neither be found nor downloaded; those before it stay.
pub(crate) fn get(arguments: &DataGetArguments) -> anyhow::Result<Outcome> {
    let folder = match &arguments.out {
        Some(folder) => folder.clone(),
        None => download::cache_folder()?,
    };
    let progress = DownloadProgress::new(arguments.quiet);
    end_when_interrupted(&progress)?;
    let getter = Getter::new(&arguments.mirror, &folder, arguments.out.is_none());
    let got = arguments.data_sets.iter().map(|&data_set| get_one(&getter, data_set, &progress));
    let got = got.collect::<anyhow::Result<Vec<_>>>();
    progress.clear();
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
    name: &'static str,
    file: PathBuf,
    checksum: &'static str,
    url: String,
    downloaded: bool,
    /// The options with which commands read it as the paper does.
    flags: &'static [&'static str],
}

fn get_one(getter: &Getter, data_set: DataSet, progress: &DownloadProgress) -> anyhow::Result<Got> {
    let downloaded = getter.get(data_set, &|event| progress.show(event))?;
    let DataSet { name, checksum } = data_set;
    let of_paper = paper::DATA_SETS.iter().find(|data| data.stem == name);
    let flags = of_paper.map_or(&[][..], |data| data.flags());
    Ok(Got { name, file: getter.path(data_set), checksum, url: getter.url(data_set), downloaded, flags })
}

fn in_words(got: &[Got]) -> String {
    let row = |got: &Got| {
        let came = if got.downloaded { "downloaded" } else { "there already" };
        vec![got.name.to_owned(), came.to_owned(), terminal::shown(&got.file)]
    };
    let header = ["data set", "", "file"].map(str::to_owned).to_vec();
    let mut words = text::table("lll", Some(header), got.iter().map(row).collect());
    words += "\nnext\n";
    for got in got {
        let file = text::quoted(&got.file.to_string_lossy());
        words += &format!("  nodeproof data info {file} {}\n", got.flags.join(" "));
    }
    words
}

//! Where the files of a command go, and its summary.

use std::io;
use std::path::Path;

use anyhow::bail;

use super::{Csv, Destination, Exported, Header, JsonLines, Kept, Output, check_openable, open_all};
use crate::cli::ResultArguments;
use crate::terminal;

/// The places of `--out` and `--csv`.
#[derive(Debug)]
pub(crate) struct Places {
    pub(crate) out: Option<Destination>,
    csv: Option<Destination>,
}

impl Places {
    /// What the options mean.
    ///
    /// # Errors
    /// If it can be seen without writing that it cannot work, or if one is among the `inputs`.
    pub(crate) fn check(arguments: &ResultArguments, inputs: &[&Path]) -> anyhow::Result<Self> {
        let check = |path: &Option<std::path::PathBuf>, option| {
            path.as_deref().map(|path| Destination::check(path, option, inputs)).transpose()
        };
        let places = Self { out: check(&arguments.out, "--out")?, csv: check(&arguments.csv, "--csv")? };
        if places.out.as_ref().zip(places.csv.as_ref()).is_some_and(|(out, csv)| out.is_same(csv)) {
            bail!("--out and --csv write to the same place; give them different files");
        }
        Ok(places)
    }

    /// Checks that all files can be opened for writing, and leaves them as they were.
    ///
    /// # Errors
    /// If one cannot.
    pub(crate) fn check_openable(&self) -> anyhow::Result<()> {
        self.all().try_for_each(|place| match place {
            Destination::File(path) => check_openable(path),
            Destination::Stdout => Ok(()),
        })
    }

    /// Opens the outputs. What is `kept` of an earlier run stays in --out; `fill` copies it to another format.
    ///
    /// # Errors
    /// If one cannot be written.
    pub(crate) fn open<R: Exported + 'static>(
        &self,
        header: &Header<R::About>,
        kept: Kept,
        fill: impl FnOnce(&mut Output<R>) -> anyhow::Result<()>,
    ) -> anyhow::Result<Vec<Output<R>>> {
        let out = self.out.iter().map(|place| (place.clone(), kept.bytes));
        let csv = self.csv.iter().map(|place| (place.clone(), 0));
        let mut opened = open_all(&out.chain(csv).collect::<Vec<_>>())?.into_iter();
        let mut next = |place: &Option<Destination>| place.clone().and_then(|place| Some((place, opened.next()?)));
        let mut outputs = Vec::new();
        if let Some((place, opened)) = next(&self.out) {
            let mut output = Output::new(Box::new(JsonLines::new(opened)), place);
            if kept.bytes == 0 {
                output.begin(header)?;
            }
            outputs.push(output);
        }
        if let Some((place, opened)) = next(&self.csv) {
            let mut output = Output::new(Box::new(Csv::new(opened)), place);
            output.begin(header)?;
            fill(&mut output)?;
            outputs.push(output);
        }
        Ok(outputs)
    }

    /// Prints the summary: on stdout, unless results go there.
    ///
    /// # Errors
    /// If it cannot be printed; that nobody reads it is no error.
    pub(crate) fn print_summary(&self, text: &str) -> anyhow::Result<()> {
        let printed = if self.all().any(|place| *place == Destination::Stdout) {
            use io::Write;
            io::stderr().write_all(text.as_bytes())
        } else {
            terminal::print(text)
        };
        match printed {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            Err(error) => bail!("cannot print the summary: {error}"),
            Ok(()) => Ok(()),
        }
    }

    /// The names of the files, for people.
    pub(crate) fn files(&self) -> Vec<String> {
        let file = |place: &Destination| match place {
            Destination::File(path) => Some(terminal::printable(&path.display().to_string())),
            Destination::Stdout => None,
        };
        self.all().filter_map(file).collect()
    }

    fn all(&self) -> impl Iterator<Item = &Destination> {
        [&self.out, &self.csv].into_iter().flatten()
    }
}

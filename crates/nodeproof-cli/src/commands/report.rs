//! `nodeproof report`: certificates and radii as a page to look at.

use std::path::Path;

use anyhow::{anyhow, bail};
use nodeproof_report::page::{Page, PageError};
use nodeproof_report::results::{Certificates, Radii, Results};

use crate::cli::ReportArguments;
use crate::export::{Destination, check_replaceable, replace};
use crate::inputs::{self, GraphSource};
use crate::outcome::Outcome;
use crate::terminal;
use crate::values::NamedFile;

/// Runs the command.
///
/// # Errors
/// If the files do not belong together or the report cannot be written.
pub(super) fn run(arguments: &ReportArguments) -> anyhow::Result<Outcome> {
    let mut taken: Vec<&Path> = arguments.files.iter().map(|file| file.path.as_path()).collect();
    taken.extend(arguments.graph.graph.file());
    taken.extend(arguments.split.as_deref());
    let Destination::File(out) = Destination::check(&arguments.out, "--out", &taken)? else {
        bail!("--out: a report is a file; give it a name such as report.html")
    };
    check_replaceable(&out)?;
    arguments.graph.graph.check_readable("--graph")?;
    let models = models(&arguments.files)?;
    let (graph, cleaning) = inputs::read_graph(&arguments.graph.graph, &arguments.graph.flags)?;
    inputs::note_cleaning(&cleaning, arguments.quiet);
    let split = arguments.split.as_deref().map(|path| inputs::read_split(path, &graph)).transpose()?;

    let mut page = Page::new(&graph, &graph_name(&arguments.graph.graph)).split(split.as_ref());
    if let Some(title) = &arguments.title {
        page = page.title(title);
    }
    let page = models.into_iter().fold(page, |page, model| page.model(&model.name, model.certificates, model.radii));
    let html = page.html().map_err(in_words)?;
    replace(&out, html.as_bytes())?;
    if !arguments.quiet {
        let size = html.len() as f64 / 1e6;
        let shown = terminal::printable(&out.display().to_string());
        terminal::print(&terminal::facts(&[("written", format!("{shown} ({size:.1} MB)"))]))?;
    }
    if arguments.open {
        open::that_detached(&out).map_err(|error| {
            anyhow!("{} was written, but no browser could be started: {error}; open it yourself", out.display())
        })?;
    }
    Ok(Outcome::Done)
}

/// The remedy for results that do not belong together are options.
fn in_words(error: PageError) -> anyhow::Error {
    match error {
        PageError::OtherGraph { .. } => {
            anyhow!("{error}; give --graph, --binarise, --keep-self-loops, … as they were given to certify and radius")
        }
        PageError::OtherBudget { .. } => {
            anyhow!(
                "{error}: --local-budget, --add-only, --protect-nodes, --class, … of certify and radius; NAME= names them"
            )
        }
        error => error.into(),
    }
}

/// What a graph is called: its file, without folder and extension.
fn graph_name(source: &GraphSource) -> String {
    let file = source.file().and_then(Path::file_stem);
    file.map_or("the bundled graph".to_owned(), |stem| stem.to_string_lossy().into_owned())
}

/// What there is of one model.
struct Model {
    name: String,
    /// Whether it was given its name.
    named: bool,
    fingerprint: String,
    certificates: Option<Certificates>,
    radii: Option<Radii>,
}

/// Reads the files and puts those of one model together: those of one name and, without a name, of one fingerprint.
fn models(files: &[NamedFile]) -> anyhow::Result<Vec<Model>> {
    let mut models: Vec<Model> = Vec::new();
    for file in files {
        let results = Results::read(&file.path)?;
        let fingerprint = match &results {
            Results::Certificates(certificates) => certificates.model.fingerprint.clone(),
            Results::Radii(radii) => radii.model.fingerprint.clone(),
            other => bail!(
                "{} has {}; a report takes certificates (`nodeproof certify --out`) and radii (`nodeproof radius --out`)",
                file.path.display(),
                other.kind()
            ),
        };
        let known = models.iter().position(|model| match &file.name {
            Some(name) if model.named => model.name == *name,
            _ => model.fingerprint == fingerprint,
        });
        let at = known.unwrap_or_else(|| {
            let (name, named) = (file.shown_name(), file.name.is_some());
            models.push(Model { name, named, fingerprint, certificates: None, radii: None });
            models.len() - 1
        });
        let model = &mut models[at];
        if let Some(name) = &file.name {
            (model.name, model.named) = (name.clone(), true);
        }
        let occupied = match &results {
            Results::Certificates(_) => model.certificates.is_some(),
            _ => model.radii.is_some(),
        };
        if occupied {
            bail!(
                "{} has {} of “{}”, but an earlier file has, too; give one of each, or different names (NAME=FILE)",
                file.path.display(),
                results.kind(),
                terminal::printable(&model.name)
            );
        }
        match results {
            Results::Certificates(certificates) => model.certificates = Some(certificates),
            Results::Radii(radii) => model.radii = Some(radii),
            _ => {}
        }
    }
    Ok(models)
}

//! `nodeproof report`: certificates, radii and collective certificates as a page to look at.

use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use nodeproof::files::Lock;
use nodeproof::results::{Certificates, Radii, Results};
use nodeproof::{Graph, Split};
use nodeproof_report::page::{ModelResults, Page, PageError};
use nodeproof_report::text::printable;

use super::check::{self, Of};
use crate::cli::ReportArguments;
use crate::inputs::{self, GraphSource};
use crate::outcome::Outcome;
use crate::values::NamedFile;
use crate::{outputs, terminal, words};

/// Runs the command.
///
/// # Errors
/// If the files do not belong together or the report cannot be written.
pub(super) fn run(arguments: &ReportArguments) -> anyhow::Result<Outcome> {
    let source = &arguments.graph.graph;
    let mut taken: Vec<&Path> = arguments.files.iter().map(|file| file.path.as_path()).collect();
    taken.extend(source.file());
    taken.extend(arguments.split.as_deref());
    let out = outputs::file(&arguments.out, "--out", &taken, "a report", "report.html")?;
    source.check_readable("--graph")?;
    let models = models(&arguments.files)?;
    let graph = inputs::read_noted(&arguments.graph, arguments.quiet)?;
    let split = arguments.split.as_deref().map(|path| inputs::read_split(path, &graph)).transpose()?;
    let (outcome, not_checked) = checked(&graph, &models, &arguments.check, arguments.quiet)?;
    if outcome != Outcome::Done {
        return Ok(outcome);
    }
    let (title, checked) = (arguments.title.clone(), (!arguments.check.is_empty()).then_some(not_checked));
    let report = Report { graph_name: graph_name(source), title, checked, models, out };
    let size = write(&graph, split.as_ref(), report)?;
    if !arguments.quiet {
        let (out, size) = (terminal::shown(&arguments.out), size as f64 / 1e6);
        let mut facts = vec![("written", format!("{out} ({size:.1} MB)"))];
        if let Some(not_checked) = checked {
            facts.splice(0..0, check::facts("results", not_checked));
        }
        terminal::print(&terminal::facts(&facts))?;
    }
    if arguments.open {
        open::that_detached(&arguments.out).map_err(|error| {
            let out = arguments.out.display();
            anyhow!("{out} was written, but no browser could be started: {error}; open it yourself")
        })?;
    }
    Ok(Outcome::Done)
}

/// Checks all results against the models in these files, if there are any; how many of them are not checked.
fn checked(graph: &Graph, models: &[Model], files: &[PathBuf], quiet: bool) -> anyhow::Result<(Outcome, usize)> {
    let mut all_not_checked = 0;
    let networks: Vec<nodeproof::Model> = files.iter().map(nodeproof::Model::read).collect::<Result<_, _>>()?;
    for model in models.iter().filter(|_| !files.is_empty()) {
        let network = networks.iter().find(|network| network.fingerprint() == model.fingerprint);
        let network = network
            .with_context(|| format!("--check: the model of “{}” is missing; give its file, too", model.name))?;
        let of = Of { graph, model: network, threads: 0, quiet };
        let ModelResults { certificates, radii, collectives } = &model.results;
        if let Some(found) = collectives {
            let outcome = of.accepts_collectives(&format!("“{}”", model.name), found, radii.as_ref())?;
            if outcome != Outcome::Done {
                return Ok((outcome, 0));
            }
        }
        let certificates = certificates.iter().cloned().map(Results::Certificates);
        for results in certificates.chain(radii.iter().cloned().map(Results::Radii)) {
            let (outcome, not_checked) = of.accepts(&format!("“{}”", model.name), &results)?;
            if outcome != Outcome::Done {
                return Ok((outcome, not_checked));
            }
            all_not_checked += not_checked;
        }
    }
    Ok((Outcome::Done, all_not_checked))
}

/// What a report is about, and where it goes.
pub(super) struct Report {
    pub(super) graph_name: String,
    pub(super) title: Option<String>,
    /// Of how many records it was not, if everything else was checked.
    pub(super) checked: Option<usize>,
    pub(super) models: Vec<Model>,
    pub(super) out: PathBuf,
}

/// Writes a report about models on `graph`; how many bytes it has.
///
/// # Errors
/// If the results do not belong together or the report cannot be written.
pub(super) fn write(graph: &Graph, split: Option<&Split>, report: Report) -> anyhow::Result<usize> {
    let _lock = Lock::of_output(&report.out).map_err(words::file)?;
    let mut page = Page::new(graph, &report.graph_name).split(split).checked(report.checked);
    if let Some(title) = &report.title {
        page = page.title(title);
    }
    let models = report.models.into_iter();
    let page = models.fold(page, |page, model| page.model(&model.name, model.results));
    let html = page.html().map_err(in_words)?;
    outputs::replace(&report.out, html.as_bytes())?;
    Ok(html.len())
}

/// The remedy for results that do not belong together are options.
fn in_words(error: PageError) -> anyhow::Error {
    match error {
        PageError::OtherGraph { .. } => {
            anyhow!(
                "{error}; give --graph, --binarise, --keep-self-loops, … as they were given to certify, radius and collective"
            )
        }
        PageError::OtherBudget { .. } => {
            anyhow!(
                "{error}: --local-budget, --add-only, --edges-per-node, --class, … of certify, radius and collective; NAME= names them"
            )
        }
        error => error.into(),
    }
}

impl Model {
    /// A model by this name.
    pub(super) fn new(name: String, certificates: Certificates, radii: Radii) -> Self {
        let fingerprint = certificates.header.model.fingerprint.clone();
        let results = ModelResults { certificates: Some(certificates), radii: Some(radii), ..ModelResults::default() };
        Self { name, named: true, fingerprint, results }
    }
}

/// What a graph is called: its file, without folder and extension.
pub(super) fn graph_name(source: &GraphSource) -> String {
    let file = source.file().and_then(Path::file_stem);
    file.map_or("the bundled graph".to_owned(), |stem| stem.to_string_lossy().into_owned())
}

/// What there is of one model.
pub(super) struct Model {
    name: String,
    /// Whether it was given its name.
    named: bool,
    fingerprint: String,
    results: ModelResults,
}

/// Reads the files and puts those of one model together: those of one name and, without a name, of one fingerprint.
///
/// # Errors
/// If a file has something else, or two have the same of one model.
pub(super) fn models(files: &[NamedFile]) -> anyhow::Result<Vec<Model>> {
    let mut models: Vec<Model> = Vec::new();
    for file in files {
        let results = Results::read(&file.path)?;
        let fingerprint = match &results {
            Results::Certificates(certificates) => certificates.header.model.fingerprint.clone(),
            Results::Radii(radii) => radii.header.model.fingerprint.clone(),
            Results::Collectives(found) => found.header.model.fingerprint.clone(),
            other => bail!(
                "{} has {}; a report takes certificates (`nodeproof certify --out`), radii (`nodeproof radius --out`) and \
                 collective certificates (`nodeproof collective --out`)",
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
            models.push(Model { name, named, fingerprint, results: ModelResults::default() });
            models.len() - 1
        });
        let model = &mut models[at];
        if let Some(name) = &file.name {
            (model.name, model.named) = (name.clone(), true);
        }
        let known = &mut model.results;
        let occupied = match &results {
            Results::Certificates(_) => known.certificates.is_some(),
            Results::Radii(_) => known.radii.is_some(),
            _ => known.collectives.is_some(),
        };
        if occupied {
            bail!(
                "{} has {} of “{}”, but an earlier file has, too; give one of each, or different names (NAME=FILE)",
                file.path.display(),
                results.kind(),
                printable(&model.name)
            );
        }
        match results {
            Results::Certificates(certificates) => known.certificates = Some(certificates),
            Results::Radii(radii) => known.radii = Some(radii),
            Results::Collectives(found) => known.collectives = Some(found),
            _ => {}
        }
    }
    Ok(models)
}

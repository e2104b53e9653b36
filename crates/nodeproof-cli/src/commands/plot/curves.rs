//! Figures of shares by global budget.

use std::path::Path;

use anyhow::bail;
use nodeproof::Engine;
use nodeproof::results::{Collectives, Radii};
use nodeproof_report::plot::figures::{self, Compared, Curves, Together};
use nodeproof_report::text::{counted, printable};

use super::output::Output;
use super::reference;
use crate::cli::{
    PlotCertificatesArguments, PlotCollectiveArguments, PlotComparisonArguments, PlotTruthArguments, RangeArguments,
};
use crate::outcome::Outcome;
use crate::values::NamedFile;

/// `nodeproof plot certificates`.
///
/// # Errors
/// If a file is not what it should be, or the figure cannot be written.
pub(super) fn certificates(arguments: &PlotCertificatesArguments) -> anyhow::Result<Outcome> {
    let files = [arguments.against.as_ref(), arguments.reference.reference.as_ref()];
    let mut inputs = vec![arguments.radii.path.as_path()];
    inputs.extend(files.into_iter().flatten().map(|file| file.path.as_path()));
    let output = Output::check(&arguments.figure, &inputs)?;
    let curves = Curves::of(&read(&arguments.radii.path, arguments.range)?);
    let against = arguments.against.as_ref();
    let against = against
        .map(|file| anyhow::Ok((file.shown_name(), Curves::of(&read(&file.path, arguments.range)?))))
        .transpose()?;
    let reference = reference::read(arguments.reference.reference.as_ref())?;
    let against = against.as_ref().map(|(name, curves)| (name.as_str(), curves));
    let name = arguments.radii.name.as_deref();
    output.write(figures::certificates((name, &curves), against, reference.as_ref()))
}

/// `nodeproof plot comparison`.
///
/// # Errors
/// If a file is not what it should be, or the figure cannot be written.
pub(super) fn comparison(arguments: &PlotComparisonArguments) -> anyhow::Result<Outcome> {
    let files = arguments.radii.iter().chain(&arguments.reference.reference);
    let inputs: Vec<&Path> = files.map(|file| file.path.as_path()).collect();
    let output = Output::check(&arguments.figure, &inputs)?;
    let trained_for = arguments.trained_for.as_ref().map(|budgets| budgets.0.as_slice()).unwrap_or_default();
    if trained_for.len() > arguments.radii.len() {
        let (budgets, models) = (counted(trained_for.len(), "budget"), counted(arguments.radii.len(), "model"));
        bail!("--trained-for: {budgets} for {models}; give at most one for each, in the same order");
    }
    let names: Vec<String> = arguments.radii.iter().map(NamedFile::shown_name).collect();
    if let Some((_, name)) = names.iter().enumerate().find(|(number, name)| names[..*number].contains(name)) {
        bail!("two models are called “{}”; give them different names (NAME=FILE)", printable(name));
    }
    let model = |(number, file): (usize, &NamedFile)| {
        let Curves { robust, attack, .. } = Curves::of(&read(&file.path, arguments.range)?);
        anyhow::Ok(Compared { name: file.shown_name(), robust, attack, trained_for: trained_for.get(number).copied() })
    };
    let models = arguments.radii.iter().enumerate().map(model).collect::<Result<Vec<_>, _>>()?;
    let reference = reference::read(arguments.reference.reference.as_ref())?;
    output.write(figures::comparison(&models, reference.as_ref()))
}

/// `nodeproof plot truth`.
///
/// # Errors
/// If the files are not about the same, or the figure cannot be written.
pub(super) fn truth(arguments: &PlotTruthArguments) -> anyhow::Result<Outcome> {
    let output = Output::check(&arguments.figure, &[&arguments.fast, &arguments.complete])?;
    let [fast, complete] = [&arguments.fast, &arguments.complete].map(|path| read(path, arguments.range));
    let (fast, complete) = (fast?, complete?);
    let most = fast.max_budget().min(complete.max_budget());
    let (fast, complete) = (fast.up_to(most), complete.up_to(most));
    check_engine(&fast, Engine::Fast, &arguments.fast)?;
    check_engine(&complete, Engine::Complete, &arguments.complete)?;
    if let Some(what) = difference(&fast, &complete) {
        bail!(
            "{} and {} are about different {what}; give radii of one model and one budget, by both engines",
            arguments.fast.display(),
            arguments.complete.display()
        );
    }
    output.write(figures::truth(&Curves::of(&fast), &Curves::of(&complete)))
}

/// `nodeproof plot collective`.
///
/// # Errors
/// If the file has something else, or the figure cannot be written.
pub(super) fn collective(arguments: &PlotCollectiveArguments) -> anyhow::Result<Outcome> {
    let output = Output::check(&arguments.figure, &[&arguments.file])?;
    output.write(figures::collective(&Together::of(&Collectives::read(&arguments.file)?)))
}

/// Refuses radii of another engine, and those of a scan, which knows of no witnesses.
fn check_engine(radii: &Radii, engine: Engine, path: &Path) -> anyhow::Result<()> {
    let found = radii.header.engine;
    if found != engine {
        bail!(
            "{} has radii of the `{}` engine, not of `{}`; give those of `fast` first and those of `complete` second \
             (`nodeproof radius --engine {}` makes them)",
            path.display(),
            found.name(),
            engine.name(),
            engine.name()
        );
    }
    if radii.header.scan {
        bail!("{} is a scan, which says nothing about witnesses; make the radii without --scan", path.display());
    }
    Ok(())
}

/// What two files are about differently, if anything.
fn difference(left: &Radii, right: &Radii) -> Option<&'static str> {
    let nodes = |radii: &Radii| radii.records.iter().map(|record| record.node).collect::<Vec<_>>();
    let (left_header, right_header) = (&left.header, &right.header);
    if left_header.graph != right_header.graph {
        Some("graphs")
    } else if left_header.model != right_header.model {
        Some("models")
    } else if left_header.budget != right_header.budget {
        Some("budgets")
    } else if left_header.target_class != right_header.target_class {
        Some("classes")
    } else if left_header.margin != right_header.margin {
        Some("margins")
    } else if left_header.arithmetic != right_header.arithmetic {
        Some("arithmetics")
    } else if nodes(left) != nodes(right) {
        Some("nodes")
    } else {
        None
    }
}

/// Reads radii, of at least one node, as far as they are shown.
///
/// # Errors
/// If the file has something else.
pub(super) fn read(path: &Path, range: RangeArguments) -> anyhow::Result<Radii> {
    let radii = Radii::read(path)?;
    if radii.records.is_empty() {
        bail!("{} has no nodes; give radii of at least one", path.display());
    }
    Ok(match range.up_to {
        Some(most) => radii.up_to(most),
        None => radii,
    })
}

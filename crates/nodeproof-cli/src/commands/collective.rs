//! `nodeproof collective`: how many predictions one set of flips can change.

use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::Path;

use anyhow::bail;
use nodeproof::files::{AtomicFile, Destination, FileError, Unfinished};
use nodeproof::results::{Collectives, Header, Radii};
use nodeproof::{Certifier, Collective, Graph, Radius, Stage};
use nodeproof_report::story::flip_in_words;
use nodeproof_report::text::{self, counted, percentage};
use serde::Serialize;

use super::radius::{self, Ended};
use crate::cli::CollectiveArguments;
use crate::inputs::{self, Inputs, Question};
use crate::interrupt::Interrupt;
use crate::outcome::Outcome;
use crate::outputs::{self, Output, ResultFiles};
use crate::progress::Progress;
use crate::run::{Clock, Time};
use crate::{budget, engine, lists, terminal, words};

/// Flips of an attack that are shown.
const SHOWN: usize = 12;

/// Runs the command.
///
/// # Errors
/// If the input is bad or an output cannot be written.
pub(crate) fn run(arguments: &CollectiveArguments) -> anyhow::Result<Outcome> {
    let (question, budgets, files) = read(arguments)?;
    let quiet = arguments.print.quiet;
    let certifier = question.certifier()?;
    let clock = Clock::start();
    let radii = match &arguments.radii {
        Some(path) => known_radii(path, &question, &certifier)?,
        None => match radius::find(&question, false, &ResultFiles::default(), quiet)? {
            Ended::Found(found) => found.radii,
            Ended::Interrupted { .. } => return Ok(interrupted("before the radii were found")),
        },
    };
    let header = Header::new(&question.graph, &question.model, &question.settings, question.nodes.len());
    let mut found = Collectives::new(header, question.nodes.clone(), budgets);
    let mut lines = Output::begin(files.out.as_ref(), |place| Unfinished::begin(place, &found.header_line()))?;
    for global in found.budgets.clone() {
        let Some(record) = answer(&question, &radii, global, quiet)? else {
            return Ok(interrupted(&format!("before the answer for {}", counted(global as usize, "flip"))));
        };
        lines.write(|lines| lines.record(&Collectives::line(&record)))?;
        found.records.push(record);
    }
    lines.end(Unfinished::finish)?;
    Output::begin(files.csv.as_ref(), |place| Ok(place.clone()))?.end(|place| table(&place, &found.records))?;
    if arguments.print.json {
        files.print_summary(&json(&found, clock.time())?)?;
    } else if !quiet {
        files.print_summary(&in_words(&question, &radii, &found, clock.time(), &files))?;
    }
    Ok(Outcome::Done)
}

/// What the arguments ask, under which global budgets, and where the answer goes. The budget is the largest of them.
fn read(arguments: &CollectiveArguments) -> anyhow::Result<(Question, Vec<u32>, ResultFiles)> {
    let CollectiveArguments { graph, model, flips, print, .. } = arguments;
    let mut budgets = arguments.global_budget.0.clone();
    budgets.sort_unstable();
    budgets.dedup();
    let mut taken = inputs::files(graph, model, flips);
    taken.extend(arguments.nodes.nodes.file().into_iter().chain(arguments.radii.as_deref()));
    let place = |path: &Option<_>, option| {
        path.as_deref().map(|path: &Path| outputs::destination(path, option, &taken)).transpose()
    };
    let (out, csv) = (place(&arguments.out, "--out")?, place(&arguments.csv, "--csv")?);
    if out.as_ref().zip(csv.as_ref()).is_some_and(|(out, csv)| out.is_same(csv)) {
        bail!("--out and --csv write to the same place; give them different files");
    }
    let files = ResultFiles { out, csv, ..ResultFiles::default() };
    let inputs = Inputs::read(graph, &model.model, flips.split.as_deref(), print.quiet)?;
    let split = inputs.split.as_ref();
    let nodes = lists::nodes(&arguments.nodes.nodes, &inputs.graph, split, "--nodes")?;
    let most = budgets.last().copied().unwrap_or(0);
    let budget = budget::read(most, flips, &inputs.graph, split)?;
    let mut settings = engine::settings(budget, model, &arguments.engine);
    settings.threads = arguments.threads.count();
    Ok((inputs.ask(nodes, settings), budgets, files))
}

/// The radii on file of the nodes asked about.
///
/// # Errors
/// If the file is not about them.
fn known_radii(path: &Path, question: &Question, certifier: &Certifier) -> anyhow::Result<Radii> {
    inputs::check_readable(path, "--radii")?;
    let mut radii = Radii::read(path)?;
    let Question { graph, model, settings, nodes, .. } = question;
    let file = path.display();
    if let Err(other) = radii.check_about(graph, model) {
        bail!("{file}: {other}, or leave out --radii");
    }
    let header = &radii.header;
    let differs = [
        (!header.budget.is_same_but_for_varied(&settings.budget), "budget (local, direction, protected)"),
        (header.target_class != settings.target_class, "--class"),
        (header.margin != 0.0, "--margin"),
        (!header.arithmetic.is_exact(), "--arithmetic"),
    ];
    if let Some((_, what)) = differs.iter().find(|(differs, _)| *differs) {
        bail!("{file} is about another {what}; give radii of the same question, or leave out --radii");
    }
    let recheck = certifier.recheck().map_err(words::certifying)?;
    for radius in &radii.records {
        if let Err(problem) = recheck.class_of_radius(radius) {
            bail!("{file}: the radius of node {} cannot be right: {problem}; leave out --radii", radius.node);
        }
    }
    radii.records.sort_by_key(|radius| radius.node);
    let known = |node| radii.records.binary_search_by_key(&node, |radius: &Radius| radius.node).ok();
    let places: Option<Vec<usize>> = nodes.iter().map(|&node| known(node)).collect();
    let Some(places) = places else {
        bail!("{file} has no radius of some of the nodes; give --nodes as `nodeproof radius` had it");
    };
    radii.records = places.into_iter().map(|place| radii.records[place].clone()).collect();
    Ok(radii)
}

/// The answer for one global budget; `None` if it was interrupted.
fn answer(question: &Question, radii: &Radii, global: u32, quiet: bool) -> anyhow::Result<Option<Collective>> {
    let progress = Progress::new(question.nodes.len(), quiet);
    let interrupt = Interrupt::of(&progress)?;
    let certifier = Certifier::new(&question.graph, &question.model).map_err(words::certifying)?;
    let mut settings = question.settings.clone();
    settings.budget = settings.budget.with_varied(global);
    let found = certifier.settings(settings).collective(&radii.records, |stage, done, total| {
        progress.stage(in_progress(stage), global, done, total);
        if interrupt.asked() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    progress.clear();
    found.map_err(words::certifying)
}

/// What is being done.
fn in_progress(stage: Stage) -> &'static str {
    match stage {
        Stage::Preparing => "preparing",
        Stage::Taking => "what flips take of each prediction",
        Stage::Bounding => "bounding all together",
        _ => "attacking",
    }
}

fn interrupted(when: &str) -> Outcome {
    let remedy = "keep radii with `nodeproof radius --out`, which can be resumed, and give them as --radii";
    terminal::complain(&format!("interrupted {when}; {remedy}"));
    Outcome::Interrupted
}

/// Writes a table of all answers.
fn table(place: &Destination, records: &[Collective]) -> Result<(), FileError> {
    let written = || -> io::Result<()> {
        let mut file = AtomicFile::create(place)?;
        writeln!(file, "global_budget,predictions,at_most,at_least,by_radii,alone")?;
        for of in records {
            let (most, least) = (of.at_most, of.at_least());
            writeln!(file, "{},{},{most},{least},{},{}", of.global, of.targets, of.by_radii, of.alone)?;
        }
        file.commit()
    };
    written().map_err(|error| place.failure(error))
}

fn json(found: &Collectives, time: Time) -> serde_json::Result<String> {
    #[derive(Serialize)]
    struct Json<H: Serialize, R: Serialize> {
        budgets: Vec<R>,
        #[serde(flatten)]
        time: Time,
        header: H,
    }
    let budgets = found.records.iter().map(Collectives::line).collect();
    Ok(serde_json::to_string_pretty(&Json { budgets, time, header: found.header_line() })? + "\n")
}

fn in_words(question: &Question, radii: &Radii, found: &Collectives, time: Time, files: &ResultFiles) -> String {
    let (graph, settings) = (&question.graph, &question.settings);
    let row = |of: &Collective| {
        let at_most = format!("{} ({})", of.at_most, percentage(of.at_most, of.targets));
        let found = if of.is_exact() { format!("{}, exact", of.at_least()) } else { of.at_least().to_string() };
        vec![of.global.to_string(), at_most, found, of.by_radii.to_string(), of.alone.to_string()]
    };
    let header = ["flips", "change at most", "attack changes", "by radii", "added up"].map(str::to_owned).to_vec();
    let table = text::table("rrrrr", Some(header), found.records.iter().map(row).collect());
    let limits = settings.budget.limits_in_words(graph.attribute_count());
    let mut facts = vec![
        ("predictions", question.nodes.len().to_string()),
        ("limits", if limits.is_empty() { "none but the number of flips".to_owned() } else { limits }),
        (
            "columns",
            "by radii: what follows from how many flips each prediction withstands and from what it sees. Added up: \
             predictions that are not proven to hold if all flips are for them"
                .to_owned(),
        ),
    ];
    let known = radii.max_budget();
    if found.budgets.last().is_some_and(|&most| most > known) {
        let note = format!("radii are known up to {known}, which counts as too few for larger budgets");
        facts.push(("note", note));
    }
    facts.push(("time", time.in_words()));
    facts.extend(files.names().map(|names| ("written", names)));
    format!("{table}\n{}{}", attack(graph, found), terminal::facts(&facts))
}

/// The flips of the attack under the largest budget, in words.
fn attack(graph: &Graph, found: &Collectives) -> String {
    let Some(of) = found.records.last().filter(|of| !of.flips.is_empty()) else { return String::new() };
    let emphasis = terminal::emphasis();
    let lines: String = of
        .flips
        .iter()
        .take(SHOWN)
        .map(|&flip| format!("  {}\n", flip_in_words(graph, flip, None, emphasis)))
        .collect();
    let more = match of.flips.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!("  … and {more} more; --out FILE keeps them all\n"),
    };
    let changes = counted(of.at_least(), "prediction");
    format!("{} that change {changes}:\n{lines}{more}\n", counted(of.flips.len(), "flip"))
}

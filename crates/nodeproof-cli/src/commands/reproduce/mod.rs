//! `nodeproof reproduce`: the paper's experiments, with its figures beside ours.

mod figures;
mod findings;
mod paper;
mod plan;
mod steps;
mod summary;

use std::fs;
use std::path::Path;

use anyhow::{Context, bail};
use nodeproof::Graph;

use crate::cli::{GraphFlags, ReproduceArguments};
use crate::export::replace;
use crate::inputs::{self, GraphSource};
use crate::outcome::Outcome;
use crate::summary::duration;
use crate::terminal;

use plan::{Plan, Source};
use steps::{Graphs, Ledger, Manner};
use summary::{Findings, Summary};

/// Runs the command.
///
/// # Errors
/// If there is no data set, or a file cannot be read or written.
pub(super) fn run(arguments: &ReproduceArguments) -> anyhow::Result<Outcome> {
    let (sources, missing) = sources(&arguments.data)?;
    let folder = &arguments.out;
    fs::create_dir_all(folder.join("figures")).with_context(|| {
        format!("cannot make the folder {}; choose a place where you may write with --out", folder.display())
    })?;
    let graphs = graphs(&sources)?;
    note_strangers(&sources, &graphs, arguments.quiet);
    let splits = if arguments.quick { 1 } else { paper::SPLITS };
    let threads = arguments.threads.count();
    let plan = Plan { sources: &sources, splits, folder };
    let steps = plan.steps();
    let mut ledger = Ledger::read(folder)?;
    if !arguments.quiet {
        terminal::print(&introduction(&plan, &missing, &steps, &graphs, &ledger))?;
    }
    if !steps::run(&steps, &graphs, &mut ledger, Manner { threads, quiet: arguments.quiet })? {
        return Ok(stopped());
    }

    let entries: Vec<_> =
        steps.iter().filter_map(|step| ledger.entry(step, &graphs[&step.source.file].fingerprint())).collect();
    let cpu_seconds = entries.iter().map(|entry| entry.cpu_seconds).sum();
    let findings = sources.iter().map(|source| find(&plan, source, &graphs[&source.file]));
    let findings: Vec<Findings> = findings.collect::<anyhow::Result<_>>()?;
    if !arguments.quiet {
        terminal::print("        drawing the figures\n")?;
    }
    let Some(figures) = figures::draw(&plan)? else { return Ok(stopped()) };
    let summary = Summary {
        findings,
        missing,
        splits,
        figures,
        machine: summary::machine(if threads == 0 { rayon::current_num_threads() } else { threads }),
        cpu_seconds,
    };
    replace(&folder.join("README.md"), summary.markdown().as_bytes())?;
    replace(&folder.join("table1.csv"), summary.csv().as_bytes())?;
    if !arguments.quiet {
        terminal::print(&ending(&summary, folder))?;
    }
    Ok(Outcome::Done)
}

fn stopped() -> Outcome {
    terminal::complain("stopped; run the same command to go on");
    Outcome::Interrupted
}

/// The data sets that are in `folder`, and titles of those that are not.
fn sources(folder: &Path) -> anyhow::Result<(Vec<Source>, Vec<&'static str>)> {
    if folder.is_file() {
        bail!("--data: {} is a file; give the folder that it is in", folder.display());
    }
    let (mut there, mut missing) = (Vec::new(), Vec::new());
    for data in paper::DATA_SETS {
        let file = folder.join(format!("{}.npz", data.stem));
        if file.is_file() { there.push(Source { data, file }) } else { missing.push(data.title) }
    }
    if there.is_empty() {
        bail!(
            "--data: there is none of cora_ml.npz, citeseer.npz and pubmed.npz in {}; `nodeproof data get cora_ml \
             citeseer pubmed --out {}` downloads them",
            folder.display(),
            folder.display()
        );
    }
    Ok((there, missing))
}

fn graphs(sources: &[Source]) -> anyhow::Result<Graphs> {
    let read = |source: &Source| {
        let has = |flag: &str| source.data.flags.contains(&flag);
        let flags = GraphFlags {
            binarise: has("--binarise"),
            keep_self_loops: has("--keep-self-loops"),
            ..GraphFlags::default()
        };
        let (graph, _) = inputs::read_graph(&GraphSource::File(source.file.clone()), &flags)?;
        Ok((source.file.clone(), graph))
    };
    sources.iter().map(read).collect()
}

/// Notes graphs that have the names of the paper's, but not their sizes.
fn note_strangers(sources: &[Source], graphs: &Graphs, quiet: bool) {
    for source in sources {
        let (nodes, expected) = (graphs[&source.file].nodes(), source.data.sizes[0]);
        if nodes != expected {
            let file = source.file.display();
            terminal::note(quiet, &format!("{file} is not the paper's: it has {nodes} nodes, not {expected}"));
        }
    }
}

fn introduction(plan: &Plan, missing: &[&str], steps: &[plan::Step], graphs: &Graphs, ledger: &Ledger) -> String {
    let titles: Vec<_> = plan.sources.iter().map(|source| source.data.title).collect();
    let fingerprints: Vec<String> = graphs.values().map(Graph::fingerprint).collect();
    let is_done = |step: &&plan::Step| fingerprints.iter().any(|graph| ledger.entry(step, graph).is_some());
    let done = steps.iter().filter(is_done).count();
    let mut facts = vec![("data", titles.join(", "))];
    if !missing.is_empty() {
        facts.push(("missing", missing.join(", ")));
    }
    facts.push(("splits", plan.splits.to_string()));
    let before = if done > 0 { format!(", {done} done before") } else { String::new() };
    facts.push(("steps", format!("{}{before}", steps.len())));
    terminal::facts(&facts) + "\n"
}

fn find<'a>(plan: &Plan<'a>, source: &'a Source, graph: &Graph) -> anyhow::Result<Findings> {
    Ok(Findings {
        data: source.data,
        sizes: [graph.nodes(), graph.edges(), graph.attribute_count(), graph.classes()],
        outcomes: plan.outcomes(source)?,
        slopes: plan.slopes(source)?,
    })
}

/// The paper's table for a terminal, and where everything is.
fn ending(summary: &Summary, folder: &Path) -> String {
    let header =
        ["", "", "largest Q\nours", "\npaper", "robust,\nQ = 12", "\npaper", "unlabelled\naccuracy", "\npaper"];
    let mut rows = Vec::new();
    for findings in &summary.findings {
        for outcome in &findings.outcomes {
            let paper = outcome.paper;
            rows.push(vec![
                findings.data.title.to_owned(),
                outcome.method.name.to_owned(),
                format!("{:.2}", outcome.radius.mean),
                format!("{:.2}", paper.radius),
                format!("{:.3}", outcome.robust.mean),
                format!("{:.2}", paper.robust),
                format!("{:.3}", outcome.unlabelled.mean),
                format!("{:.2}", paper.unlabelled),
            ]);
        }
    }
    let table = terminal::table("llrrrrrr", Some(header.map(str::to_owned).to_vec()), rows);
    let readme = terminal::printable(&folder.join("README.md").display().to_string());
    let facts = [("time", format!("{} CPU in all", duration(summary.cpu_seconds))), ("written", readme)];
    format!("\n{table}\n{}", terminal::facts(&facts))
}

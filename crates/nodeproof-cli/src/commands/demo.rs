//! `nodeproof demo`: what nodeproof does, on the bundled graph, within a minute.
//!
//! The demo runs the same commands that it shows, so that what they write is what a reader gets by typing them.

use std::cmp::Reverse;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use nodeproof::{Certifier, ClassId, Engine, Graph, NodeId, Witness};
use nodeproof_report::results::{Certificates, Record, VerdictName};

use super::certify::{self, Certified};
use super::explain::flips_in_words;
use super::line::{Line, named};
use super::{radius, train};
use crate::cli::{Command, DemoArguments};
use crate::outcome::Outcome;
use crate::summary::{Figures, duration};
use crate::terminal::{self, Emphasis, paragraph, short_class, short_name};

/// Flips in all that an attacker may make.
const BUDGET: u32 = 5;
/// What the complete engine may spend on a node.
const TIME_LIMIT: Duration = Duration::from_secs(1);
/// The largest budget for which radii are looked for.
const MAX_BUDGET: u32 = 40;
/// Nodes among which the one to tell of is looked for.
const CANDIDATES: usize = 40;

/// A network that the demo trains.
#[derive(Debug, Clone, Copy)]
struct Network {
    name: &'static str,
    method: &'static str,
    what: &'static str,
    /// Whether it draws the split that the other one uses too.
    draws_split: bool,
}

const NETWORKS: [Network; 2] = [
    Network { name: "standard", method: "ce", what: "A standard network, trained to be right", draws_split: true },
    Network {
        name: "robust",
        method: "rh-u",
        what: "A robust network, trained to withstand an attacker",
        draws_split: false,
    },
];

/// Runs the command.
///
/// # Errors
/// If a file cannot be written.
pub(crate) fn run(arguments: &DemoArguments) -> anyhow::Result<Outcome> {
    let start = Instant::now();
    let folder = &not_an_option(&arguments.out);
    fs::create_dir_all(folder).with_context(|| {
        format!("cannot make the folder {}; choose a place where you may write with --out", folder.display())
    })?;
    let demo = Demo { folder, emphasis: Emphasis::of_stdout(), quiet: arguments.quiet };
    let graph = Graph::bundled();
    terminal::print(&introduction(&graph))?;
    let mut networks = Vec::new();
    for (number, network) in NETWORKS.into_iter().enumerate() {
        terminal::print(&format!("\n{}\n", demo.emphasis.strong(&format!("{}  {}", number + 1, network.what))))?;
        match demo.train_and_certify(network)? {
            Some(certified) => networks.push(certified),
            None => return Ok(demo.stopped()),
        }
    }
    let [standard, robust] = &networks[..] else { bail!("two networks were trained, but {} came", networks.len()) };
    terminal::print(&format!("\n{}\n", demo.emphasis.strong("3  What an attacker can do")))?;
    terminal::print(&comparison(standard, robust))?;
    let told = demo.story(standard)?;
    terminal::print(&format!("\n{}\n", demo.emphasis.strong("4  To look at, and to hand on")))?;
    if !demo.show()? {
        return Ok(demo.stopped());
    }
    terminal::print(&demo.ending(&graph, told, start.elapsed().as_secs_f64()))?;
    Ok(Outcome::Done)
}

/// The same folder under a name that no command takes for an option or for stdout.
fn not_an_option(folder: &Path) -> PathBuf {
    if folder.to_string_lossy().starts_with('-') { Path::new(".").join(folder) } else { folder.to_owned() }
}

fn introduction(graph: &Graph) -> String {
    let classes = graph.names().classes.as_deref().unwrap_or_default();
    let classes: Vec<_> = classes.iter().map(|name| short_class(name)).collect();
    let text = format!(
        "A piece of WordNet comes with nodeproof: {} nouns in {} classes ({}), {} edges between them, and {} words of their \
         definitions. A graph convolutional network predicts the class of a noun from its words and those of its \
         neighbours, having seen the class of one noun in ten.",
        grouped(graph.nodes()),
        classes.len(),
        classes.join(", "),
        grouped(graph.edges()),
        grouped(graph.attribute_count()),
    );
    let attack = format!(
        "Somebody who wants a noun misjudged adds or removes words: {BUDGET} in all, wherever it hurts most. Which \
         predictions can be trusted?"
    );
    format!("{}\n{}", paragraph(&text), paragraph(&attack))
}

/// What both networks come to, side by side.
fn comparison(standard: &Certified, robust: &Certified) -> String {
    let figures = [standard, robust].map(|certified| certified.summary.figures());
    let all = |count: fn(&Figures) -> usize| {
        figures.each_ref().map(|parts| terminal::percentage(count(&parts.all), parts.all.nodes))
    };
    let accuracy = figures.each_ref().map(|parts| {
        let accuracy = parts.unlabelled.as_ref().and_then(|part| part.accuracy);
        accuracy.map_or("–".to_owned(), |share| format!("{:.1}%", 100.0 * share))
    });
    let row = |name: &str, [standard, robust]: [String; 2]| vec![name.to_owned(), standard, robust];
    let header = row("", NETWORKS.map(|network| network.name.to_owned()));
    let rows = vec![
        row("unlabelled nouns predicted right", accuracy),
        row(&format!("robust: proven, no {BUDGET} flips change the class"), all(|figures| figures.robust)),
        row("nonrobust: flips that change it are known", all(|figures| figures.nonrobust)),
        row("undecided", all(|figures| figures.undecided)),
    ];
    terminal::table("lrr", Some(header), rows)
}

/// What all parts of the demo need.
struct Demo<'a> {
    folder: &'a Path,
    emphasis: Emphasis,
    quiet: bool,
}

impl Demo<'_> {
    fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Says that the user stopped it.
    fn stopped(&self) -> Outcome {
        terminal::complain("the demo was stopped; it begins anew when it is run again");
        Outcome::Interrupted
    }

    /// Trains the network and certifies every node; `None` if the user stopped it.
    fn train_and_certify(&self, network: Network) -> anyhow::Result<Option<Certified>> {
        let Network { name, method, draws_split, .. } = network;
        let model = self.file(&format!("{name}.safetensors"));
        let log = self.file(&format!("{name}-training.jsonl"));
        let (split, certificates) = (self.file("split.json"), self.file(&certificates(network)));
        let (budget, time_limit) = (BUDGET.to_string(), TIME_LIMIT.as_secs().to_string());
        let split_option = if draws_split { "--write-split" } else { "--split" };

        let line = Line::new("train")
            .with("--graph", "bundled")
            .with("--method", method)
            .with("--global-budget", &budget)
            .with(split_option, &split)
            .with("--out", &model)
            .with("--log", &log);
        let Command::Train(arguments) = self.command(line)? else { bail!("train is no training") };
        let start = Instant::now();
        if train::train(&arguments)?.is_none() {
            return Ok(None);
        }
        terminal::print(&format!("trained in {}\n\n", duration(start.elapsed().as_secs_f64())))?;

        let line = Line::new("certify")
            .with("--graph", "bundled")
            .with("--model", &model)
            .with("--global-budget", &budget)
            .with("--split", &split)
            .with("--time-limit", &time_limit)
            .with("--out", &certificates);
        let Command::Certify(arguments) = self.command(line)? else { bail!("certify is no certifying") };
        let Some(certified) = certify::certify(&arguments)? else { return Ok(None) };
        if certified.run.interrupted {
            return Ok(None);
        }
        let nouns = grouped(certified.summary.all().nodes);
        terminal::print(&format!("certified {nouns} nouns in {}\n", duration(certified.run.seconds)))?;
        Ok(Some(certified))
    }

    /// Finds radii and makes plots and the report of both networks; `false` if the user stopped it.
    fn show(&self) -> anyhow::Result<bool> {
        let [standard, robust] = NETWORKS.map(|network| self.file(&format!("{}-radii.jsonl", network.name)));
        for (network, out) in NETWORKS.iter().zip([&standard, &robust]) {
            let line = Line::new("radius")
                .with("--graph", "bundled")
                .with("--model", self.file(&format!("{}.safetensors", network.name)))
                .with("--max-budget", MAX_BUDGET.to_string())
                .with("--time-limit", TIME_LIMIT.as_secs().to_string())
                .with("--out", out);
            let Command::Radius(arguments) = self.command(line)? else { bail!("radius is no radius") };
            if radius::find(&arguments)?.is_none() {
                return Ok(false);
            }
        }
        let line = Line::new("plot certificates")
            .named("robust training", &robust)
            .with("--against", named("standard training", &standard));
        self.run(line.with("--out", self.file("robustness.svg")).with("--out", self.file("robustness.png")))?;
        let mut line = Line::new("report");
        for (network, radii) in NETWORKS.into_iter().zip([&standard, &robust]) {
            let name = format!("{} training", network.name);
            line = line.named(&name, &self.file(&certificates(network))).named(&name, radii);
        }
        let line = line.with("--graph", "bundled").with("--split", self.file("split.json"));
        self.run(line.with("--out", self.file("report.html")))?;
        Ok(true)
    }

    /// Shows a command line, and runs it without a word.
    fn run(&self, line: Line) -> anyhow::Result<()> {
        self.print(&line)?;
        super::run(line.word("--quiet").parse()?)?;
        Ok(())
    }

    fn print(&self, line: &Line) -> anyhow::Result<()> {
        terminal::print(&format!("{}\n", self.emphasis.faint(&line.shown("$ ", terminal::line_width()))))?;
        Ok(())
    }

    /// Shows a command line, and parses it.
    fn command(&self, line: Line) -> anyhow::Result<Command> {
        self.print(&line)?;
        if self.quiet { line.word("--quiet").parse() } else { line.parse() }
    }

    /// Tells of a noun that one network loses and the other keeps; which it was, if there is one.
    fn story(&self, standard: &Certified) -> anyhow::Result<Option<NodeId>> {
        let graph = &standard.inputs.graph;
        let [lost, kept] = NETWORKS.map(|network| records(&self.file(&certificates(network))));
        let (lost, kept) = (lost?, kept?);
        let Some((record, witness)) = weakest(standard, &candidates(graph, &lost, &kept))? else { return Ok(None) };
        let node = NodeId(record.node);
        let name = self.emphasis.strong(&short_name(&graph.node_name(node)));
        let [own, other] =
            [ClassId(record.predicted), witness.class].map(|class| short_class(&graph.class_name(class)));
        let flips = flips_in_words(graph, node, &witness.flips, self.emphasis);
        let count = if flips.len() == 1 { "1 flip fools".to_owned() } else { format!("{} flips fool", flips.len()) };
        let both = format!("Both networks say rightly that “{name}” is of class {own}. {count} the standard one:");
        let then = format!(
            "Then it says {other}. The robust network keeps saying {own} whichever {BUDGET} words are flipped, which is \
             proven, not just tried."
        );
        let flips: String = flips.iter().map(|flip| format!("  {flip}\n")).collect();
        terminal::print(&format!("\n{}\n{flips}\n{}", paragraph(&both), paragraph(&then)))?;
        Ok(Some(node))
    }

    /// Where everything is, and what to look at next.
    fn ending(&self, graph: &Graph, told: Option<NodeId>, seconds: f64) -> String {
        let budget = BUDGET.to_string();
        let on_bundled = |command: &'static str, model: &str| {
            Line::new(command).with("--graph", "bundled").with("--model", self.file(model))
        };
        let mut next = Vec::new();
        if let Some(node) = told {
            let explain = on_bundled("explain", "robust.safetensors").with("--global-budget", &budget);
            next.push(("all margins of that noun", explain.with("--node", graph.node_name(node))));
        }
        let data = "data";
        next.push((
            "the data sets of the paper, and its experiments",
            Line::new("data get cora_ml").with("--out", data),
        ));
        next.push(("", Line::new("reproduce").with("--data", data).word("--quick")));
        let mut text = format!("\n{}\n", self.emphasis.strong("Next"));
        for (what, line) in next {
            let width = terminal::line_width().saturating_sub(2);
            let shown = line.shown("", width).replace('\n', "\n  ");
            if !what.is_empty() {
                text += &format!("  {}\n", self.emphasis.faint(&format!("# {what}")));
            }
            text += &format!("  {shown}\n");
        }
        let files = format!(
            "Open {} in a browser. Beside it are the plot, the networks, how they were trained, and certificate and radius \
             of every noun (docs/formats.md). What a certificate promises, and what it does not: docs/guarantee.md. All this \
             took {}.",
            terminal::printable(&self.file("report.html").display().to_string()),
            duration(seconds)
        );
        if std::env::var_os("CARGO").is_some() {
            text += "  # in this folder, `cargo run --release --` stands for `nodeproof`\n";
        }
        text + "\n" + &paragraph(&files)
    }
}

/// Name of the file with a network's certificates.
fn certificates(network: Network) -> String {
    format!("{}.jsonl", network.name)
}

/// A number with commas between thousands.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> = digits.as_bytes().rchunks(3).rev().filter_map(|group| str::from_utf8(group).ok()).collect();
    groups.join(",")
}

/// The certificates of a file.
fn records(path: &Path) -> anyhow::Result<Vec<Record>> {
    Ok(Certificates::read(path)?.records)
}

/// Nodes that both networks get right, and only the second keeps right; those with the most neighbours first, and before
/// all others those whose name says nothing of their class in parentheses.
fn candidates<'a>(graph: &Graph, standard: &'a [Record], robust: &[Record]) -> Vec<&'a Record> {
    let right = |record: &Record| record.label == Some(record.predicted);
    let pairs = standard.iter().zip(robust);
    let kept = pairs.filter(|(standard, robust)| {
        standard.verdict == VerdictName::Nonrobust
            && robust.verdict == VerdictName::Robust
            && right(standard)
            && right(robust)
    });
    let mut candidates: Vec<&Record> = kept.map(|(standard, _)| standard).collect();
    candidates.sort_by_key(|record| {
        let neighbours = graph.adjacency().row(record.node as usize).len();
        (graph.node_name(NodeId(record.node)).contains('('), Reverse(neighbours))
    });
    candidates.truncate(CANDIDATES);
    candidates
}

/// The candidate that the fewest flips change, and these.
fn weakest<'a>(standard: &Certified, candidates: &[&'a Record]) -> anyhow::Result<Option<(&'a Record, Witness)>> {
    let inputs = &standard.inputs;
    let nodes: Vec<NodeId> = candidates.iter().map(|record| NodeId(record.node)).collect();
    let certifier = Certifier::new(&inputs.graph, &inputs.model)?.budget(inputs.budget.budget().clone());
    let certifier = certifier.engine(Engine::Complete).time_limit(TIME_LIMIT);
    let radii = certifier.radii(&nodes, BUDGET, |_, _, _| ControlFlow::Continue(()))?.unwrap_or_default();
    let witnesses = candidates.iter().zip(radii).filter_map(|(&record, radius)| Some((record, radius.witness?)));
    Ok(witnesses.min_by_key(|(_, witness)| witness.flips.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_grouped() {
        assert_eq!([0, 999, 1000, 1234567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
    }
}

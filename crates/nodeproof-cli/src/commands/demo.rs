//! `nodeproof demo`: what nodeproof does, on the bundled graph, within a minute.
//!
//! The demo runs the same commands that it shows, so that what they write is what a reader gets by typing them.

use std::cmp::Reverse;
use std::ffi::OsString;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::Parser;
use nodeproof::{Certifier, ClassId, Engine, Graph, NodeId, Witness};
use nodeproof_report::results::{Record, VerdictName};

use super::certify::{self, Certified};
use super::explain::flips_in_words;
use super::train;
use crate::cli::{Cli, Command, DemoArguments};
use crate::outcome::Outcome;
use crate::summary::{Figures, duration};
use crate::terminal::{self, Emphasis, paragraph, short_class, short_name};

/// Flips in all that an attacker may make.
const BUDGET: u32 = 5;
/// What the complete engine may spend on a node.
const TIME_LIMIT: Duration = Duration::from_secs(1);
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
            None => {
                terminal::complain("the demo was stopped; it begins anew when it is run again");
                return Ok(Outcome::Interrupted);
            }
        }
    }
    let [standard, robust] = &networks[..] else { bail!("two networks were trained, but {} came", networks.len()) };
    terminal::print(&format!("\n{}\n", demo.emphasis.strong("3  What an attacker can do")))?;
    terminal::print(&comparison(standard, robust))?;
    let told = demo.story(standard)?;
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

    /// Shows a command line, and parses it.
    fn command(&self, line: Line) -> anyhow::Result<Command> {
        terminal::print(&format!("{}\n", self.emphasis.faint(&line.shown("$ ", terminal::line_width()))))?;
        let mut words = line.words();
        if self.quiet {
            words.push("--quiet".into());
        }
        Ok(Cli::try_parse_from(words)?.command)
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
        next.push(("how many flips each prediction withstands", on_bundled("radius", "robust.safetensors")));
        next.push(("a data set of the paper", Line::new("data get cora_ml")));
        let mut text = format!("\n{}\n", self.emphasis.strong("Next"));
        for (what, line) in next {
            let width = terminal::line_width().saturating_sub(2);
            let shown = line.shown("", width).replace('\n', "\n  ");
            text += &format!("  {}\n  {shown}\n", self.emphasis.faint(&format!("# {what}")));
        }
        let files = format!(
            "{} has the networks, how they were trained, and a certificate for every noun (docs/formats.md). What a \
             certificate promises, and what it does not: docs/guarantee.md. All this took {}.",
            terminal::printable(&self.folder.display().to_string()),
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

/// A command line of nodeproof.
struct Line {
    command: &'static str,
    options: Vec<(&'static str, OsString)>,
}

impl Line {
    /// `nodeproof command`, which may be several words.
    fn new(command: &'static str) -> Self {
        Self { command, options: Vec::new() }
    }

    fn with(mut self, option: &'static str, value: impl Into<OsString>) -> Self {
        self.options.push((option, value.into()));
        self
    }

    /// Its words.
    fn words(&self) -> Vec<OsString> {
        let mut words: Vec<OsString> = vec!["nodeproof".into()];
        words.extend(self.command.split(' ').map(OsString::from));
        words.extend(self.options.iter().flat_map(|(option, value)| [option.into(), value.clone()]));
        words
    }

    /// As a shell takes it after `prompt`, broken between options so that lines fit `width` where they can.
    fn shown(&self, prompt: &str, width: usize) -> String {
        let mut lines = vec![format!("{prompt}nodeproof {}", self.command)];
        for (option, value) in &self.options {
            let words = format!("{option} {}", terminal::quoted(&value.to_string_lossy()));
            match lines.last_mut() {
                // Room for a space, and for ` \` at the end.
                Some(line) if line.chars().count() + words.chars().count() + 3 <= width => {
                    *line += &format!(" {words}")
                }
                _ => lines.push(format!("      {words}")),
            }
        }
        lines.join(" \\\n")
    }
}

/// A number with commas between thousands.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> = digits.as_bytes().rchunks(3).rev().filter_map(|group| str::from_utf8(group).ok()).collect();
    groups.join(",")
}

/// The certificates of a file.
fn records(path: &Path) -> anyhow::Result<Vec<Record>> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let records = text.lines().skip(1).map(serde_json::from_str);
    records.collect::<Result<_, _>>().with_context(|| format!("{} is damaged", path.display()))
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
    fn commands_are_shown_as_a_shell_takes_them() {
        let line = Line::new("data get").with("--out", "a b").with("--mirror", "it's");
        assert_eq!(line.shown("$ ", 80), r"$ nodeproof data get --out 'a b' --mirror 'it'\''s'");
        assert_eq!(line.shown("", 33), "nodeproof data get --out 'a b' \\\n      --mirror 'it'\\''s'");
        assert_eq!(line.words(), ["nodeproof", "data", "get", "--out", "a b", "--mirror", "it's"]);
    }

    #[test]
    fn thousands_are_grouped() {
        assert_eq!([0, 999, 1000, 1234567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
    }
}

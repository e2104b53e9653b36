//! `nodeproof demo`: what nodeproof does, on the bundled graph, within a minute.
//!
//! Each step shows the command line that does the same, so that a reader gets the same files by typing it.

use std::cmp::Reverse;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use nodeproof::results::{Certificates, Radii};
use nodeproof::{
    Budget, Certificate, CertifySettings, Engine, Graph, LocalBudget, Method, Model, NodeId, Percent, Split, SplitSize,
    TrainSettings, Verdict, Witness,
};
use nodeproof_report::plot::figures::{self, Curves};
use nodeproof_report::story::flip_in_words;
use nodeproof_report::tally::Figures;
use nodeproof_report::text::{Emphasis, duration, grouped, percentage, short_class, short_name, table};

use super::certify::{self, Certified, Listener};
use super::line::{Line, named};
use super::plot;
use super::radius::{self, Ended};
use super::report::{self, Report};
use super::train::{self, Finished, Job, Plan, RunFiles};
use crate::cli::DemoArguments;
use crate::inputs::{GraphSource, Question};
use crate::outcome::Outcome;
use crate::outputs::ResultFiles;
use crate::terminal::{self, paragraph};
use crate::words;

/// Flips in total that an attacker may make.
const BUDGET: u32 = 5;
/// What the `complete` engine may spend on a node.
const TIME_LIMIT: Duration = Duration::from_secs(1);
/// The largest budget for which radii are looked for.
const MAX_BUDGET: u32 = 40;
/// Nodes among which the one to show is looked for.
const CANDIDATES: usize = 40;
/// Share of each class that is labelled.
const LABELLED: f64 = 0.1;

/// A network that the demo trains.
#[derive(Debug, Clone, Copy)]
struct Network {
    name: &'static str,
    method: Method,
    what: &'static str,
    /// Whether it draws the split that the other one uses too.
    draws_split: bool,
}

const NETWORKS: [Network; 2] = [
    Network {
        name: "standard",
        method: Method::CrossEntropy,
        what: "A standard network, trained to be right",
        draws_split: true,
    },
    Network {
        name: "robust",
        method: Method::RobustHingeUnlabelled,
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
    let folder = not_an_option(&arguments.out);
    fs::create_dir_all(&folder).with_context(|| {
        format!("cannot make the folder {}; choose a place where you may write with --out", folder.display())
    })?;
    let graph = Graph::bundled();
    let split = Split::stratified(&graph, SplitSize::Fraction(LABELLED), SplitSize::Fraction(0.0), 0)?;
    let demo = Demo { folder, graph, split, emphasis: terminal::emphasis(), quiet: arguments.quiet };
    terminal::print(&introduction(&demo.graph))?;
    let mut networks = Vec::new();
    for (number, network) in NETWORKS.into_iter().enumerate() {
        demo.heading(&format!("{}  {}", number + 1, network.what))?;
        let Some(trained) = demo.train(network)? else { return Ok(demo.stopped()) };
        let Some(certified) = demo.certify(network, trained.model)? else { return Ok(demo.stopped()) };
        networks.push(certified);
    }
    let [standard, robust] = &networks[..] else { bail!("two networks were trained, but {} came", networks.len()) };
    demo.heading("3  What an attacker can do")?;
    terminal::print(&comparison(&standard.1, &robust.1))?;
    let told = demo.story(&standard.0)?;
    demo.heading("4  To look at, and to hand on")?;
    if !demo.show(&standard.0, &robust.0)? {
        return Ok(demo.stopped());
    }
    terminal::print(&demo.ending(told, start.elapsed().as_secs_f64()))?;
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
        "Somebody who wants a noun misjudged adds or removes words: {BUDGET} in total, wherever it hurts most. Which \
         predictions can be trusted?"
    );
    format!("{}\n{}", paragraph(&text), paragraph(&attack))
}

/// What both networks come to, side by side.
fn comparison(standard: &Certified, robust: &Certified) -> String {
    let figures = [standard, robust].map(|certified| certified.summary.figures());
    let all =
        |count: fn(&Figures) -> usize| figures.each_ref().map(|parts| percentage(count(&parts.all), parts.all.nodes));
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
    table("lrr", Some(header), rows)
}

/// What an attacker may do within `global` flips.
fn budget(global: u32) -> Budget {
    Budget::new(global, LocalBudget::Percent(Percent::ONE))
}

/// What all steps of the demo need.
struct Demo {
    folder: PathBuf,
    graph: Graph,
    split: Split,
    emphasis: Emphasis,
    quiet: bool,
}

impl Demo {
    fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The file of a network's certificates.
    fn certificates(&self, network: Network) -> PathBuf {
        self.file(&format!("{}.jsonl", network.name))
    }

    fn heading(&self, text: &str) -> anyhow::Result<()> {
        Ok(terminal::print(&format!("\n{}\n", self.emphasis.strong(text)))?)
    }

    /// Shows the command line that does the same as the step that follows.
    fn show_line(&self, line: &Line) -> anyhow::Result<()> {
        let line = line.shown("$ ", terminal::line_width());
        Ok(terminal::print(&format!("{}\n", self.emphasis.faint(&line)))?)
    }

    /// Says that the user stopped it.
    fn stopped(&self) -> Outcome {
        terminal::complain("the demo was stopped; it starts from the beginning when it is run again");
        Outcome::Interrupted
    }

    /// Trains the network; `None` if the user stopped it.
    fn train(&self, network: Network) -> anyhow::Result<Option<Finished>> {
        let Network { name, method, draws_split, .. } = network;
        let (out, split) = (self.file(&format!("{name}.safetensors")), self.file("split.json"));
        let log = self.file(&format!("{name}-training.jsonl"));
        let split_option = if draws_split { "--write-split" } else { "--split" };
        let line = Line::new("train")
            .with("--graph", "bundled")
            .with("--method", method.name())
            .with("--global-budget", BUDGET.to_string())
            .with(split_option, &split)
            .with("--out", &out)
            .with("--log", &log);
        self.show_line(&line)?;
        let mut settings = TrainSettings::new(method);
        settings.budget = budget(BUDGET);
        let (read_from, split) =
            if draws_split { (None, Some(split)) } else { (Some(split.display().to_string()), None) };
        let files = RunFiles { out, log: Some(log), checkpoint: None, split };
        let plan = Plan::new(&self.graph, self.split.clone(), read_from, settings, files);
        let start = Instant::now();
        let Some(mut trained) = train::train(&self.graph, &Job::new(plan, self.quiet))? else { return Ok(None) };
        terminal::print(&format!("trained in {}\n\n", duration(start.elapsed().as_secs_f64())))?;
        Ok(trained.pop())
    }

    /// Certifies every noun with `model`; `None` if the user stopped it.
    fn certify(&self, network: Network, model: Model) -> anyhow::Result<Option<(Question, Certified)>> {
        let certificates = self.certificates(network);
        let line = self
            .on_bundled("certify", network)
            .with("--global-budget", BUDGET.to_string())
            .with("--split", self.file("split.json"))
            .with("--time-limit", TIME_LIMIT.as_secs().to_string())
            .with("--out", &certificates);
        self.show_line(&line)?;
        let mut settings = CertifySettings::new(budget(BUDGET));
        (settings.engine, settings.time_limit) = (Engine::Complete, Some(TIME_LIMIT));
        let (graph, nodes) = (self.graph.clone(), self.graph.node_ids().collect());
        let question =
            Question { graph, model, split: Some(self.split.clone()), nodes, shard: None, settings, since: None };
        let listener = Listener { quiet: self.quiet, to_the_end: true };
        let certified = certify::certify(&question, &ResultFiles::only(&certificates), listener)?;
        let Some(certified) = certified.filter(|certified| !certified.interrupted()) else { return Ok(None) };
        let (nouns, time) = (grouped(certified.summary.all().nodes), duration(certified.time.seconds));
        terminal::print(&format!("certified {nouns} nouns in {time}\n"))?;
        Ok(Some((question, certified)))
    }

    /// The command line `command` on the bundled graph and the network.
    fn on_bundled(&self, command: &'static str, network: Network) -> Line {
        let model = self.file(&format!("{}.safetensors", network.name));
        Line::new(command).with("--graph", "bundled").with("--model", model)
    }

    /// Shows a noun that one network loses and the other keeps; which it was, if there is one.
    fn story(&self, standard: &Question) -> anyhow::Result<Option<NodeId>> {
        let graph = &self.graph;
        let [lost, kept] = NETWORKS.map(|network| Certificates::read(self.certificates(network)));
        let (lost, kept) = (lost?.records, kept?.records);
        let candidates = candidates(graph, &lost, &kept);
        let Some((certificate, witness)) = weakest(standard, &candidates)? else { return Ok(None) };
        let node = certificate.node;
        let name = self.emphasis.strong(&short_name(&graph.node_name(node)));
        let [own, other] = [certificate.predicted, witness.class].map(|class| short_class(&graph.class_name(class)));
        let flips = witness.flips.iter().map(|&flip| flip_in_words(graph, flip, Some(node), self.emphasis));
        let count = match witness.flips.len() {
            1 => "1 flip fools".to_owned(),
            count => format!("{count} flips fool"),
        };
        let both = format!("Both networks rightly put “{name}” in class {own}. {count} the standard one:");
        let then = format!(
            "Then it says {other}. The robust network keeps saying {own} whichever {BUDGET} words are flipped, which is \
             proven, not just tried."
        );
        let flips: String = flips.map(|flip| format!("  {flip}\n")).collect();
        terminal::print(&format!("\n{}\n{flips}\n{}", paragraph(&both), paragraph(&then)))?;
        Ok(Some(node))
    }

    /// Finds radii and makes figures and the report of both networks; `false` if the user stopped it.
    fn show(&self, standard: &Question, robust: &Question) -> anyhow::Result<bool> {
        let files = NETWORKS.map(|network| self.file(&format!("{}-radii.jsonl", network.name)));
        let mut found = Vec::new();
        for ((network, question), out) in NETWORKS.into_iter().zip([standard, robust]).zip(&files) {
            let Some(radii) = self.radii(network, question, out)? else { return Ok(false) };
            found.push(radii);
        }
        let [standard, robust] = &found[..] else { bail!("two networks have radii, but {} came", found.len()) };
        self.draw(&files, standard, robust)?;
        self.report(&files, found)?;
        Ok(true)
    }

    /// Finds radii; `None` if the user stopped it.
    fn radii(&self, network: Network, question: &Question, out: &Path) -> anyhow::Result<Option<Radii>> {
        let line = self
            .on_bundled("radius", network)
            .with("--max-budget", MAX_BUDGET.to_string())
            .with("--time-limit", TIME_LIMIT.as_secs().to_string())
            .with("--out", out);
        self.show_line(&line)?;
        let mut settings = question.settings.clone();
        settings.budget = budget(MAX_BUDGET);
        let (graph, model) = (self.graph.clone(), question.model.clone());
        let question =
            Question { graph, model, split: None, nodes: question.nodes.clone(), shard: None, settings, since: None };
        match radius::find(&question, false, &ResultFiles::only(out), self.quiet)? {
            Ended::Found(found) => Ok(Some(found.radii)),
            Ended::Interrupted { .. } => Ok(None),
        }
    }

    fn draw(&self, files: &[PathBuf; 2], standard: &Radii, robust: &Radii) -> anyhow::Result<()> {
        let [standard_file, robust_file] = files;
        let (own, other) = ("robust training", "standard training");
        let outs = [self.file("robustness.svg"), self.file("robustness.png")];
        let line =
            Line::new("plot certificates").named(own, robust_file).with("--against", named(other, standard_file));
        self.show_line(&outs.iter().fold(line, |line, out| line.with("--out", out)))?;
        let (robust, standard) = (Curves::of(robust), Curves::of(standard));
        let figure = figures::certificates((Some(own), &robust), Some((other, &standard)), None);
        plot::Output::quietly(&outs)?.write(figure)?;
        Ok(())
    }

    fn report(&self, files: &[PathBuf; 2], found: Vec<Radii>) -> anyhow::Result<()> {
        let (mut line, mut models) = (Line::new("report"), Vec::new());
        for ((network, file), radii) in NETWORKS.into_iter().zip(files).zip(found) {
            let name = format!("{} training", network.name);
            let certificates = self.certificates(network);
            line = line.named(&name, &certificates).named(&name, file);
            models.push(report::Model::new(name, Certificates::read(&certificates)?, radii));
        }
        let out = self.file("report.html");
        let line = line.with("--graph", "bundled").with("--split", self.file("split.json")).with("--out", &out);
        self.show_line(&line)?;
        let graph_name = report::graph_name(&GraphSource::Bundled);
        report::write(&self.graph, Some(&self.split), Report { graph_name, title: None, checked: None, models, out })?;
        Ok(())
    }

    /// Where everything is, and what to look at next.
    fn ending(&self, told: Option<NodeId>, seconds: f64) -> String {
        let mut next = Vec::new();
        if let Some(node) = told {
            let explain = self.on_bundled("explain", NETWORKS[1]).with("--global-budget", BUDGET.to_string());
            next.push(("all margins of that noun", explain.with("--node", self.graph.node_name(node))));
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
            "Open {} in a browser. Beside it are the plot, the networks, how they were trained, and the certificate and radius \
             of every noun (docs/formats.md). What a certificate promises, and what it does not: docs/guarantee.md. All this \
             took {}.",
            terminal::shown(&self.file("report.html")),
            duration(seconds)
        );
        if std::env::var_os("CARGO").is_some() {
            text += "  # in this folder, `cargo run --release --` stands for `nodeproof`\n";
        }
        text + "\n" + &paragraph(&files)
    }
}

/// Nodes that both networks get right, and only the second keeps right; those with the most neighbours first, and before
/// all others those whose name says nothing of their class in parentheses.
fn candidates<'a>(graph: &Graph, standard: &'a [Certificate], robust: &[Certificate]) -> Vec<&'a Certificate> {
    let right = |certificate: &Certificate| certificate.label == Some(certificate.predicted);
    let pairs = standard.iter().zip(robust);
    let kept = pairs.filter(|(standard, robust)| {
        standard.verdict() == Verdict::Nonrobust && robust.is_robust() && right(standard) && right(robust)
    });
    let mut candidates: Vec<&Certificate> = kept.map(|(standard, _)| standard).collect();
    candidates.sort_by_key(|certificate| {
        let neighbours = graph.adjacency().row(certificate.node.index()).len();
        (graph.node_name(certificate.node).contains('('), Reverse(neighbours))
    });
    candidates.truncate(CANDIDATES);
    candidates
}

/// The candidate that the fewest flips change, and these.
fn weakest<'a>(
    standard: &Question,
    candidates: &[&'a Certificate],
) -> anyhow::Result<Option<(&'a Certificate, Witness)>> {
    let nodes: Vec<NodeId> = candidates.iter().map(|certificate| certificate.node).collect();
    let radii = standard.certifier()?.radii(&nodes, BUDGET).map_err(words::certifying)?;
    let witnesses = candidates.iter().zip(&radii).filter_map(|(&node, radius)| Some((node, radius.witness()?.clone())));
    Ok(witnesses.min_by_key(|(_, witness)| witness.flips.len()))
}

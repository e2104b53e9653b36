//! `nodeproof data`: facts about a graph, splits of its nodes, other layouts of it, downloads, and graphs drawn by chance.

mod convert;
#[cfg(feature = "download")]
mod get;
mod synth;

use std::path::Path;

use anyhow::bail;
use nodeproof::files::Lock;
use nodeproof::graph::Spread;
use nodeproof::{
    AttributeKind, ClassId, Cleaning, Graph, GraphError, GraphStatistics, NodeId, Part, Split, SplitSize, Values,
};
use nodeproof_report::text::{self, counted, percentage, short_class, short_name};
use serde::Serialize;

pub(crate) use convert::convert;
#[cfg(feature = "download")]
pub(crate) use get::get;
pub(crate) use synth::synth;

use crate::cli::{DataInfoArguments, DataSplitArguments, GraphFlags};
use crate::inputs::{self, GraphSource};
use crate::outcome::Outcome;
use crate::values::Share;
use crate::{outputs, terminal, words};

/// Shows facts about a graph.
///
/// # Errors
/// If the file is not a graph, or not the one that it says it is.
pub(crate) fn info(arguments: &DataInfoArguments) -> anyhow::Result<Outcome> {
    arguments.graph.check_readable("FILE")?;
    let (graph, cleaning) = read_any(&arguments.graph, &arguments.flags)?;
    inputs::verify(&arguments.graph, &graph)?;
    if cleaning.attributes_binarised > 0 && !arguments.flags.binarise {
        let values = counted(cleaning.attributes_binarised, "attribute value");
        let note = format!("{values} other than 0 and 1: facts are as with --binarise, which other commands need here");
        terminal::note(false, &note);
    }
    let statistics = graph.statistics();
    let text = if arguments.json {
        info_json(&graph, &statistics, &cleaning)?
    } else {
        let licence =
            if arguments.graph.file().is_none() { format!("\n{}", Graph::BUNDLED_LICENCE) } else { String::new() };
        info_in_words(&graph, &statistics, &cleaning) + &licence
    };
    terminal::print(&text)?;
    Ok(Outcome::Done)
}

/// Reads the graph; attributes that are not binary are counted as with --binarise.
fn read_any(source: &GraphSource, flags: &GraphFlags) -> anyhow::Result<(Graph, Cleaning)> {
    let strict = inputs::read_graph(source, flags);
    let Err(error) = strict else { return strict };
    if !error.chain().any(|cause| matches!(cause.downcast_ref(), Some(GraphError::NotBinary { .. }))) {
        return Err(error);
    }
    inputs::read_graph(source, &GraphFlags { binarise: true, ..flags.clone() })
}

fn info_json(graph: &Graph, statistics: &GraphStatistics, cleaning: &Cleaning) -> anyhow::Result<String> {
    #[derive(Serialize)]
    struct Json<'a> {
        fingerprint: String,
        kind: AttributeKind,
        statistics: &'a GraphStatistics,
        #[serde(skip_serializing_if = "Option::is_none")]
        class_names: Option<&'a [String]>,
        cleaning: &'a Cleaning,
    }
    let class_names = graph.names().classes.as_deref();
    let json = Json { fingerprint: graph.fingerprint(), kind: graph.kind(), statistics, class_names, cleaning };
    Ok(serde_json::to_string_pretty(&json)? + "\n")
}

fn info_in_words(graph: &Graph, statistics: &GraphStatistics, cleaning: &Cleaning) -> String {
    let s = statistics;
    let entries = s.nodes.saturating_mul(s.attributes);
    let names = [
        ("nodes", graph.names().nodes.is_some()),
        ("attributes", graph.names().attributes.is_some()),
        ("classes", graph.names().classes.is_some()),
    ];
    let named: Vec<_> = names.into_iter().filter(|(_, there)| *there).map(|(what, _)| what).collect();
    let components = match s.components {
        1 => "1".to_owned(),
        _ => format!("{}, the largest has {}", s.components, counted(s.largest_component, "node")),
    };
    let share = percentage(s.attribute_entries, entries);
    let of_entries = match graph.values() {
        None => format!("{share} of the entries are 1{}", graph.kind().in_addition()),
        Some(values) => format!("real values{}, {share} of the entries are not 0", extent(values)),
    };
    let mut facts = vec![
        ("nodes", s.nodes.to_string()),
        ("edges", format!("{}{}", s.edges, self_loops(s.self_loops))),
        ("attributes", format!("{}, {of_entries}", s.attributes)),
        ("classes", if s.classes > 0 { s.classes.to_string() } else { "unknown".to_owned() }),
        ("labelled", format!("{} ({})", counted(s.labelled, "node"), percentage(s.labelled, s.nodes))),
        ("named", if named.is_empty() { "nothing".to_owned() } else { named.join(", ") }),
        ("components", components),
        ("isolated", format!("{} without neighbours", counted(s.isolated, "node"))),
        ("empty", format!("{} without attributes", counted(s.empty_rows, "node"))),
    ];
    if let Some(homophily) = s.homophily {
        facts.push(("homophily", format!("{:.1}% of the edges join equal labels", 100.0 * homophily)));
    }
    facts.push(("fingerprint", graph.fingerprint()));
    let mut text = terminal::facts(&facts) + "\n" + &spreads(statistics);
    if s.labelled > 0 {
        text += "\n";
        text += &class_table(graph, statistics);
    }
    let cleaned = cleaned(cleaning);
    if !cleaned.is_empty() {
        text += "\nwhile reading\n";
        cleaned.iter().for_each(|line| text += &format!("  {line}\n"));
    }
    text
}

/// From the lowest to the highest value that an attacker gives to an attribute.
fn extent(values: &Values) -> String {
    let ends = values.ranges().iter().copied().reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
    ends.map(|(low, high)| format!(" from {low} to {high}")).unwrap_or_default()
}

fn self_loops(count: usize) -> String {
    if count > 0 { format!(", {} among them", counted(count, "self-loop")) } else { String::new() }
}

fn spreads(statistics: &GraphStatistics) -> String {
    let row = |name: &str, spread: &Spread| {
        let mean = format!("{:.1}", spread.mean);
        vec![name.to_owned(), spread.min.to_string(), spread.median.to_string(), mean, spread.max.to_string()]
    };
    let header = ["per node", "min", "median", "mean", "max"].map(str::to_owned).to_vec();
    let rows = vec![
        row("attributes", &statistics.attributes_per_node),
        row("neighbours", &statistics.degree),
        row("nodes within two hops", &statistics.two_hops),
    ];
    text::table("lrrrr", Some(header), rows)
}

fn class_table(graph: &Graph, statistics: &GraphStatistics) -> String {
    let header = ["class", "name", "nodes", "share"].map(str::to_owned).to_vec();
    let row = |(class, &size): (usize, &usize)| {
        let share = percentage(size, statistics.labelled);
        vec![class.to_string(), class_name(graph, class), size.to_string(), share]
    };
    let rows = statistics.class_sizes.iter().enumerate().map(row).collect();
    without_names(graph, "rlrr", header, rows)
}

/// The table, less its second column if the graph has no class names.
fn without_names(graph: &Graph, alignment: &str, mut header: Vec<String>, mut rows: Vec<Vec<String>>) -> String {
    let mut alignment = alignment.to_owned();
    if graph.names().classes.is_none() {
        alignment.remove(1);
        header.remove(1);
        rows.iter_mut().for_each(|row| drop(row.remove(1)));
    }
    text::table(&alignment, Some(header), rows)
}

fn class_name(graph: &Graph, class: usize) -> String {
    short_class(&graph.class_name(ClassId(class as u32)))
}

/// What was changed while reading, in words.
fn cleaned(cleaning: &Cleaning) -> Vec<String> {
    let c = cleaning;
    let counts = [
        (c.directed_edges, "edge", "edges", "in one direction only, made undirected"),
        (c.self_loops_removed, "self-loop", "self-loops", "left out; --keep-self-loops keeps them"),
        (c.duplicate_edges, "repeated adjacency entry", "repeated adjacency entries", "merged"),
        (c.weights_ignored, "edge weight", "edge weights", "other than 1 ignored"),
        (
            c.attributes_binarised,
            "attribute value",
            "attribute values",
            "other than 0 and 1 made binary, 1 if above 0; --real-values reads them as they are",
        ),
        (c.attribute_zeros, "attribute entry", "attribute entries", "stored as 0"),
        (c.duplicate_attributes, "repeated attribute entry", "repeated attribute entries", "merged"),
        (c.nodes_dropped, "node", "nodes", "outside the largest component left out"),
    ];
    let there = counts.into_iter().filter(|(count, ..)| *count > 0);
    let mut lines: Vec<String> = there
        .map(|(count, one, many, rest)| format!("{count} {} {rest}", if count == 1 { one } else { many }))
        .collect();
    if !c.members_skipped.is_empty() {
        let members: Vec<_> = c.members_skipped.iter().map(|member| short_name(member)).collect();
        lines.push(format!("arrays not read, being pickled or unknown: {}", members.join(", ")));
    }
    lines
}

/// Draws a split and writes it.
///
/// # Errors
/// If the graph cannot be split so, or the output cannot be written.
pub(crate) fn split(arguments: &DataSplitArguments) -> anyhow::Result<Outcome> {
    let source = &arguments.graph.graph;
    let out = outputs::file(&arguments.out, "--out", source.file().as_slice(), "a split", "split.json")?;
    source.check_readable("--graph")?;
    let train = train_size(arguments.train, arguments.train_per_class)?;
    let validation = size(arguments.validation, arguments.validation_per_class);
    let graph = inputs::read_noted(&arguments.graph, arguments.quiet)?;
    let split = Split::stratified(&graph, train, validation, arguments.seed)?;
    let _lock = Lock::of_output(&out).map_err(words::file)?;
    write_split(&split, &out)?;
    let sizes = ClassSizes::count(&graph, &split);
    if arguments.json {
        terminal::print(&(serde_json::to_string_pretty(&sizes)? + "\n"))?;
    } else if !arguments.quiet {
        terminal::print(&sizes_in_words(&graph, &sizes, arguments))?;
    }
    Ok(Outcome::Done)
}

/// The size of the train part.
///
/// # Errors
/// If it is empty.
pub(super) fn train_size(share: Share, per_class: Option<u32>) -> anyhow::Result<SplitSize> {
    let train = size(share, per_class);
    if matches!(train, SplitSize::PerClass(0)) || matches!(train, SplitSize::Fraction(share) if share == 0.0) {
        bail!(
            "the split would leave nothing to train on; give --train a share above 0%, or --train-per-class at least 1"
        );
    }
    Ok(train)
}

fn size(share: Share, per_class: Option<u32>) -> SplitSize {
    match per_class {
        Some(count) => SplitSize::PerClass(count as usize),
        None => SplitSize::Fraction(share.fraction()),
    }
}

/// Writes `split` as JSON.
///
/// # Errors
/// If the file cannot be written.
pub(super) fn write_split(split: &Split, path: &Path) -> anyhow::Result<()> {
    if let Err(error) = split.write(path) {
        bail!("{error}; choose a place where you may write");
    }
    Ok(())
}

/// Sizes of the parts, class by class; the last entry counts nodes without a label.
#[derive(Debug, Serialize)]
struct ClassSizes {
    seed: Option<u64>,
    train: Vec<usize>,
    validation: Vec<usize>,
    test: Vec<usize>,
    test_without_label: usize,
}

impl ClassSizes {
    fn count(graph: &Graph, split: &Split) -> Self {
        let sizes = |part| {
            let mut sizes = vec![0; graph.classes()];
            let label = |node: NodeId| graph.label(node);
            split.part(part).into_iter().filter_map(label).for_each(|class| sizes[class.index()] += 1);
            sizes
        };
        let unlabelled = split.part(Part::Test).into_iter().filter(|&node| graph.label(node).is_none()).count();
        Self {
            seed: split.seed,
            train: sizes(Part::Train),
            validation: sizes(Part::Validation),
            test: sizes(Part::Test),
            test_without_label: unlabelled,
        }
    }
}

fn sizes_in_words(graph: &Graph, sizes: &ClassSizes, arguments: &DataSplitArguments) -> String {
    let header = ["class", "name", "train", "validation", "test"].map(str::to_owned).to_vec();
    let parts = [&sizes.train, &sizes.validation, &sizes.test];
    let row = |class: usize| {
        let counts = parts.iter().map(|part| part[class].to_string());
        [class.to_string(), class_name(graph, class)].into_iter().chain(counts).collect()
    };
    let mut rows: Vec<Vec<String>> = (0..graph.classes()).map(row).collect();
    if sizes.test_without_label > 0 {
        let none = ["none".to_owned(), "no label".to_owned(), "0".to_owned(), "0".to_owned()];
        rows.push(none.into_iter().chain([sizes.test_without_label.to_string()]).collect());
    }
    let total = |part: &[usize]| part.iter().sum::<usize>();
    let totals = [total(&sizes.train), total(&sizes.validation), total(&sizes.test) + sizes.test_without_label];
    rows.push(["all".to_owned(), String::new()].into_iter().chain(totals.map(|count| count.to_string())).collect());
    let table = without_names(graph, "rlrrr", header, rows);
    let out = terminal::shown(&arguments.out);
    format!("{table}\n{}", terminal::facts(&[("seed", arguments.seed.to_string()), ("written", out)]))
}

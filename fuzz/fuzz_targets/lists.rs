//! What people type or write in text files: lists of nodes and attributes, ranges, budgets, and curves as CSV.
//!
//! These readers belong to the program, which is no library, so that their files are taken from there.
#![no_main]
#![allow(dead_code)]

use std::path::PathBuf;
use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use nodeproof::{Budget, Graph, LocalBudget, Names};
use nodeproof_fuzz::file;
use nodeproof_report::plot::figures;

#[path = "../../crates/nodeproof-cli/src/budget.rs"]
mod budget;
#[path = "../../crates/nodeproof-cli/src/lists.rs"]
mod lists;
#[path = "../../crates/nodeproof-cli/src/commands/plot/reference.rs"]
mod reference;
#[path = "../../crates/nodeproof-cli/src/values.rs"]
mod values;

/// What the files above use of the command line.
mod cli {
    pub(crate) struct FlipArguments {
        pub(crate) local_budget: nodeproof::LocalBudget,
        pub(crate) local_budget_file: Option<std::path::PathBuf>,
        pub(crate) add_only: bool,
        pub(crate) delete_only: bool,
        pub(crate) protect_nodes: Option<crate::values::NodeList>,
        pub(crate) protect_attributes: Option<String>,
    }
}

mod inputs {
    pub(crate) fn check_readable(_: &std::path::Path, _: &str) -> anyhow::Result<()> {
        Ok(())
    }
}

/// Ten nodes and twelve attributes, with names.
fn graph() -> &'static Graph {
    static GRAPH: OnceLock<Graph> = OnceLock::new();
    GRAPH.get_or_init(|| {
        let names = |count: u32| Some((0..count).map(|i| format!("{} {i}", ["a", "b", "7"][i as usize % 3])).collect());
        let names = Names { nodes: names(10), attributes: names(12), classes: None };
        let graph = Graph::new(10, 12, &[(0, 1)], &[(0, 3)]).unwrap().with_names(names).unwrap();
        graph.with_kind(nodeproof::AttributeKind::RealValues)
    })
}

fuzz_target!(|text: &str| {
    let graph = graph();
    let path = file("list", text);
    if let Ok(nodes) = lists::nodes(&values::NodeList::File(path.clone()), graph, None, "--nodes") {
        assert!(nodes.iter().all(|node| node.index() < graph.nodes()));
        assert!(nodes.len() <= graph.nodes(), "each node comes once");
    }
    if let Ok(ranges) = lists::ranges(&path, graph) {
        drop(graph.clone().with_ranges(ranges).map(|graph| graph.fingerprint()));
    }
    for budget in budgets(&path, text, graph) {
        if budget.validate(graph).is_ok() {
            budget.limits(graph).unwrap();
            budget.in_words(graph.attribute_count());
        }
    }
    let file = values::NamedFile { name: None, path };
    if let Ok(Some(reference)) = reference::read(Some(&file)) {
        let curves = figures::Curves { robust: vec![1.0, 0.5], nonrobust: Vec::new() };
        figures::certificates((None, &curves), None, Some(&reference)).svg();
    }
    use_values(text);
});

/// The budgets that the text may be a part of.
fn budgets(path: &PathBuf, text: &str, graph: &Graph) -> Vec<Budget> {
    let none = || cli::FlipArguments {
        local_budget: 1.into(),
        local_budget_file: None,
        add_only: false,
        delete_only: false,
        protect_nodes: None,
        protect_attributes: None,
    };
    let protect_nodes = text.parse().ok().filter(|list: &values::NodeList| list.file().is_none());
    let in_file = format!("@{}", path.display());
    let all = [
        cli::FlipArguments { local_budget_file: Some(path.clone()), ..none() },
        cli::FlipArguments { protect_nodes, ..none() },
        cli::FlipArguments { protect_attributes: Some(in_file), ..none() },
        cli::FlipArguments { local_budget: text.parse().unwrap_or(1.into()), ..none() },
    ];
    all.iter().filter_map(|arguments| budget::read(3, arguments, graph, None).ok()).collect()
}

/// The values of options.
fn use_values(text: &str) {
    if let Ok(local) = text.parse::<LocalBudget>() {
        assert_eq!(local.to_string().parse(), Ok(local));
        assert!(local.count(usize::MAX) >= 1 || local == LocalBudget::Count(0));
    }
    if let Ok(share) = text.parse::<values::Share>() {
        assert!((0.0..=1.0).contains(&share.fraction()));
        share.to_string().parse::<values::Share>().unwrap();
    }
    drop((values::global_budget(text), values::batch(text), values::time_limit(text), values::memory_limit(text)));
    drop((text.parse::<values::Budgets>(), text.parse::<values::HiddenSizes>(), values::positive_or_none(text)));
    drop((values::millimetres(text), values::dots_per_inch(text), lists::node(text, graph())));
}

//! From the options of a budget to a budget. Whether it fits the graph is checked with all other settings, by the library.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{anyhow, bail};
use nodeproof::{Budget, Direction, Edge, EdgeBudget, Graph, NodeId, Split};

use crate::cli::{EdgeArguments, FlipArguments, FlipOrEdgeArguments};
use crate::{lists, values};

/// The budget of at most `global` flips in total and what the options say about them.
///
/// # Errors
/// If the options name nodes or attributes that the graph does not have, or a file that cannot be read.
pub(crate) fn read(
    global: u32,
    arguments: &FlipArguments,
    graph: &Graph,
    split: Option<&Split>,
) -> anyhow::Result<Budget> {
    let mut budget = Budget::new(global, arguments.local_budget());
    if arguments.add_only {
        budget = budget.direction(Direction::AddOnly);
    }
    if arguments.delete_only {
        budget = budget.direction(Direction::DeleteOnly);
    }
    if let Some(path) = &arguments.local_budget_file {
        let own = own_budgets(path, graph)?;
        budget = own.into_iter().fold(budget, |budget, (node, count)| budget.local_at(node, count));
    }
    if let Some(list) = &arguments.protect_nodes {
        budget = budget.protect_nodes(lists::nodes(list, graph, split, "--protect-nodes")?);
    }
    if let Some(list) = &arguments.protect_attributes {
        budget = budget.protect_attributes(lists::attributes(list, graph)?);
    }
    Ok(budget)
}

/// Refuses limits of flips where none are made beside deletions; `remedy` is another way out than to leave them out.
///
/// # Errors
/// If there is such a limit.
pub(crate) fn check_limits(flips: &FlipArguments, edges: &EdgeArguments, remedy: &str) -> anyhow::Result<()> {
    match flips.limit_of_flips().filter(|_| edges.delete_edges.is_some()) {
        Some(limit) => {
            bail!("{limit} is about flips, and there are none beside these deletions; leave it out{remedy}")
        }
        None => Ok(()),
    }
}

/// The budget of an attacker who flips, deletes edges, or does both.
///
/// # Errors
/// If options contradict each other, name what the graph does not have, or a file that cannot be read.
pub(crate) fn read_both(
    arguments: &FlipOrEdgeArguments,
    graph: &Graph,
    split: Option<&Split>,
) -> anyhow::Result<Budget> {
    let FlipOrEdgeArguments { global_budget, flips, edges } = arguments;
    if global_budget.is_none() {
        check_limits(flips, edges, ", or add --global-budget for flips beside one deletion")?;
    }
    with_edges(read(global_budget.unwrap_or(0), flips, graph, split)?, edges, graph)
}

/// The same budget with what the options say about edges.
///
/// # Errors
/// If a file cannot be read, or names what is no edge of the graph.
pub(crate) fn with_edges(budget: Budget, arguments: &EdgeArguments, graph: &Graph) -> anyhow::Result<Budget> {
    let Some(global) = arguments.delete_edges else { return Ok(budget) };
    let mut edges = EdgeBudget::new(global).keep_one(arguments.keep_one_edge);
    if let Some(count) = arguments.edges_per_node {
        edges = edges.at_node(count);
    }
    if let Some(path) = &arguments.protect_edges {
        edges = edges.protect(protected_edges(path, graph)?);
    }
    Ok(budget.delete_edges(edges))
}

/// Reads lines of `node node`.
fn protected_edges(path: &Path, graph: &Graph) -> anyhow::Result<Vec<Edge>> {
    let mut edges = Vec::new();
    for (number, line) in values::lines(&lists::read(path)?) {
        let place = || format!("{}, line {number}", path.display());
        let fields: Vec<_> = values::items(line).collect();
        let ends = match &fields[..] {
            [] => continue,
            [a, b] => a.parse().ok().zip(b.parse().ok()),
            _ => None,
        };
        let Some((a, b)) = ends else {
            bail!("{}: `{}` is not an edge; write the ids of its two nodes, such as `17 3`", place(), line.trim());
        };
        let edge = Edge::between(NodeId(a), NodeId(b)).filter(|edge| edge.is_of(graph));
        edges.push(edge.ok_or_else(|| anyhow!("{}: the graph has no edge {a}–{b}; leave it out", place()))?);
    }
    Ok(edges)
}

/// Reads lines of `node count`.
fn own_budgets(path: &Path, graph: &Graph) -> anyhow::Result<BTreeMap<NodeId, u32>> {
    let mut first_line = BTreeMap::new();
    let mut own = BTreeMap::new();
    for (number, line) in values::lines(&lists::read(path)?) {
        let place = || format!("{}, line {number}", path.display());
        let fields: Vec<_> = values::items(line).collect();
        let (node, count) = match &fields[..] {
            [] => continue,
            [node, count] => (node.parse::<u32>().ok(), count.parse::<u32>().ok()),
            _ => (None, None),
        };
        let (Some(node), Some(count)) = (node, count) else {
            bail!("{}: `{}` is not a node id and a number of flips; write lines such as `17 3`", place(), line.trim());
        };
        if node as usize >= graph.nodes() {
            bail!("{}: {}", place(), lists::no_such_node(node, graph));
        }
        if let Some(first) = first_line.insert(node, number) {
            return Err(anyhow!("{}: node {node} is on line {first} already; keep one of the two", place()));
        }
        own.insert(NodeId(node), count);
    }
    Ok(own)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use clap::Parser;

    use super::*;
    use crate::cli::BudgetArguments;

    #[derive(Debug, Parser)]
    struct Only {
        #[command(flatten)]
        budget: BudgetArguments,
    }

    #[test]
    fn every_option_reaches_the_budget() {
        let graph = Graph::new(3, 200, &[], &[]).unwrap();
        let read = |line: &str| {
            let arguments = Only::parse_from(std::iter::once("test").chain(line.split(' '))).budget;
            super::read(arguments.global_budget, &arguments.flips, &graph, None)
        };
        let expected = Budget::new(12, "1%".parse().unwrap()).direction(Direction::AddOnly).protect_nodes([NodeId(1)]);
        assert_eq!(read("--global-budget 12 --add-only --protect-nodes 1").unwrap(), expected);
        let expected = Budget::new(1, 3.into()).direction(Direction::DeleteOnly);
        assert_eq!(read("--global-budget 1 --local-budget 3 --delete-only").unwrap(), expected);
        let missing = read("--global-budget 1 --protect-nodes 3").unwrap_err().to_string();
        assert!(missing.contains("node 3 does not exist"), "{missing}");
    }

    #[test]
    fn files_of_local_budgets_name_the_bad_line() {
        let graph = Graph::new(3, 200, &[], &[]).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("local");
        let read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            own_budgets(&path, &graph).map_err(|error| error.to_string())
        };
        assert_eq!(read("# node count\n0 3\n2,0 # none\n").unwrap(), [(NodeId(0), 3), (NodeId(2), 0)].into());
        for (text, words) in [
            ("0 1\n1\n", "line 2: `1` is not"),
            ("0 x", "line 1: `0 x`"),
            ("0 1 2", "line 1"),
            ("\n\n3 1", "line 3: node 3 does not exist"),
            ("0 1\n0 2", "line 2: node 0 is on line 1 already"),
            ("0 -1", "line 1"),
        ] {
            assert!(read(text).unwrap_err().contains(words), "{text:?}: {:?}", read(text));
        }
    }
}

//! From the budget options to a budget that fits the graph, and to words.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{anyhow, bail};
use nodeproof::{Budget, Direction, Graph, LocalBudget, NodeId, Split};
use nodeproof_report::results::ResultBudget;
use serde::Serialize;

use crate::cli::{BudgetArguments, BudgetListArguments, FlipArguments, MaxBudgetArguments};
use crate::{lists, values};

/// Options that make a budget.
pub(crate) trait BudgetOptions {
    /// Which flips are admissible.
    fn flips(&self) -> &FlipArguments;

    /// Most flips in all.
    ///
    /// # Errors
    /// If that cannot have been meant for `graph`.
    fn global(&self, graph: &Graph) -> anyhow::Result<u32>;
}

impl BudgetOptions for BudgetArguments {
    fn flips(&self) -> &FlipArguments {
        &self.flips
    }

    fn global(&self, graph: &Graph) -> anyhow::Result<u32> {
        check_global(self.global_budget, "--global-budget", graph)?;
        Ok(self.global_budget)
    }
}

impl BudgetOptions for MaxBudgetArguments {
    fn flips(&self) -> &FlipArguments {
        &self.flips
    }

    /// No set of flips is larger than the graph, so that neither is a budget worth trying.
    fn global(&self, graph: &Graph) -> anyhow::Result<u32> {
        Ok(u32::try_from(entries(graph)).map_or(self.max_budget, |entries| self.max_budget.min(entries)))
    }
}

impl BudgetOptions for BudgetListArguments {
    fn flips(&self) -> &FlipArguments {
        &self.flips
    }

    /// The largest.
    fn global(&self, graph: &Graph) -> anyhow::Result<u32> {
        self.budgets.0.iter().try_for_each(|&global| check_global(global, "--budgets", graph))?;
        Ok(self.budgets.0.iter().copied().max().unwrap_or(1))
    }
}

/// A budget checked against a graph.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct CheckedBudget {
    #[serde(flatten)]
    budget: Budget,
    local_count: usize,
}

impl CheckedBudget {
    /// Checks the options against `graph`.
    ///
    /// # Errors
    /// If the budget exceeds what the graph has, or names nodes or attributes that it does not have.
    pub(crate) fn new(options: &impl BudgetOptions, graph: &Graph, split: Option<&Split>) -> anyhow::Result<Self> {
        let (global, arguments) = (options.global(graph)?, options.flips());
        check_local(arguments.local_budget, graph)?;
        let mut budget = Budget::new(global, arguments.local_budget);
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
            let nodes = lists::nodes(list, graph, split, "--protect-nodes")?;
            budget = budget.protect_nodes(nodes);
        }
        if let Some(list) = &arguments.protect_attributes {
            let attributes = lists::attributes(list, graph)?;
            budget = budget.protect_attributes(attributes);
        }
        budget.limits(graph)?;
        Ok(Self { local_count: arguments.local_budget.count(graph.attribute_count()), budget })
    }

    /// The budget as the library knows it.
    pub(crate) fn budget(&self) -> &Budget {
        &self.budget
    }

    /// The budget as a person would say it.
    pub(crate) fn in_words(&self, graph: &Graph) -> String {
        ResultBudget::of(&self.budget, graph).in_words(graph.attribute_count())
    }

    /// The budget as a person would say it, but for the number of flips in all.
    pub(crate) fn local_in_words(&self, graph: &Graph) -> String {
        ResultBudget::of(&self.budget, graph).local_in_words(graph.attribute_count())
    }
}

/// Entries of the attributes: flips that there are.
fn entries(graph: &Graph) -> u128 {
    graph.nodes() as u128 * graph.attribute_count() as u128
}

/// Refuses a global budget that cannot have been meant.
fn check_global(global: u32, option: &str, graph: &Graph) -> anyhow::Result<()> {
    let (nodes, attributes, entries) = (graph.nodes(), graph.attribute_count(), entries(graph));
    if u128::from(global) > entries {
        bail!(
            "{option} {global} is more than the {entries} attribute entries of the graph ({nodes} nodes × {attributes} \
             attributes); give a number of flips that an attacker could afford, such as 12"
        );
    }
    Ok(())
}

/// Refuses a local budget that cannot have been meant.
fn check_local(local: LocalBudget, graph: &Graph) -> anyhow::Result<()> {
    let attributes = graph.attribute_count();
    if local.count(attributes) > attributes {
        bail!(
            "--local-budget {local} is more than the {attributes} attributes that a node of the graph has; give at most \
             {attributes}, or a share such as 1%"
        );
    }
    Ok(())
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
        if count as usize > graph.attribute_count() {
            let attributes = graph.attribute_count();
            bail!("{}: {count} flips are more than the {attributes} attributes of a node; give fewer", place());
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

    #[derive(Debug, Parser)]
    struct Only {
        #[command(flatten)]
        budget: BudgetArguments,
    }

    fn checked(line: &str) -> Result<CheckedBudget, String> {
        let graph = Graph::new(3, 200, &[], &[]).unwrap();
        let arguments = Only::parse_from(std::iter::once("test").chain(line.split(' '))).budget;
        CheckedBudget::new(&arguments, &graph, None).map_err(|error| error.to_string())
    }

    #[test]
    fn budgets_in_words_and_json() {
        let graph = Graph::new(3, 200, &[], &[]).unwrap();
        let budget = checked("--global-budget 12 --add-only --protect-nodes 1").unwrap();
        let words = "at most 12 flips, 2 at one node (1% of 200 attributes), only additions, 1 node protected";
        assert_eq!(budget.in_words(&graph), words);
        assert_eq!(
            serde_json::to_string(&budget).unwrap(),
            r#"{"global":12,"local":"1%","direction":"add-only","protected_nodes":[1],"local_count":2}"#
        );
        assert_eq!(
            checked("--global-budget 1 --local-budget 3").unwrap().in_words(&graph),
            "at most 1 flip, 3 at one node"
        );
    }

    #[test]
    fn budgets_beyond_the_graph_are_refused() {
        assert!(checked("--global-budget 600").is_ok());
        assert!(checked("--global-budget 601").unwrap_err().contains("600 attribute entries"));
        assert!(checked("--global-budget 1 --local-budget 201").unwrap_err().contains("at most 200"));
        assert!(checked("--global-budget 1 --protect-nodes 3").unwrap_err().contains("node 3 does not exist"));
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
            ("0 201", "line 1: 201 flips"),
            ("0 1\n0 2", "line 2: node 0 is on line 1 already"),
            ("0 -1", "line 1"),
        ] {
            assert!(read(text).unwrap_err().contains(words), "{text:?}: {:?}", read(text));
        }
    }
}

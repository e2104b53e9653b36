//! Lists of nodes and attributes, looked up in a graph.

use std::fs;
use std::path::Path;

use anyhow::{Context, anyhow, bail};
use nodeproof::{AttributeId, Graph, GraphError, NodeId, Split, nearest};

use crate::values::{self, IdRange, NodeList};

/// The nodes that `list` names, in its order, each once. `option` is the option it was given with.
///
/// # Errors
/// If a node does not exist, a file is unreadable, the split is missing, or the list is empty.
pub(crate) fn nodes(
    list: &NodeList,
    graph: &Graph,
    split: Option<&Split>,
    option: &str,
) -> anyhow::Result<Vec<NodeId>> {
    let nodes = match list {
        NodeList::All => graph.node_ids().collect(),
        NodeList::Part(part) => match split {
            Some(split) => split.part(*part),
            None => bail!("{option} names a part of a split, but there is no split; give one with --split FILE"),
        },
        NodeList::Ids(ranges) => expand(ranges.iter().cloned().map(|range| (range, option.to_owned())), graph)?,
        NodeList::File(path) => expand(ranges_in_file(path)?.into_iter(), graph)?,
    };
    if nodes.is_empty() {
        bail!("{option} names no node at all; give ids such as 0,4,10-20, or all");
    }
    Ok(nodes)
}

/// The ranges in the file, each with its place.
fn ranges_in_file(path: &Path) -> anyhow::Result<Vec<(IdRange, String)>> {
    let text = read(path)?;
    let mut ranges = Vec::new();
    for (number, line) in values::lines(&text) {
        let place = format!("{}, line {number}", path.display());
        for item in values::items(line) {
            let range = values::id_range(item).ok_or_else(|| {
                anyhow!(
                    "{place}: `{item}` is not a node id; give ids and ranges such as 4 or 10-20, one or more a line"
                )
            })?;
            ranges.push((range, place.clone()));
        }
    }
    Ok(ranges)
}

fn expand(ranges: impl Iterator<Item = (IdRange, String)>, graph: &Graph) -> anyhow::Result<Vec<NodeId>> {
    let mut seen = vec![false; graph.nodes()];
    let mut nodes = Vec::new();
    for (range, place) in ranges {
        if *range.end() as usize >= graph.nodes() {
            bail!("{place}: {}", no_such_node(*range.end(), graph));
        }
        for id in range {
            if !std::mem::replace(&mut seen[id as usize], true) {
                nodes.push(NodeId(id));
            }
        }
    }
    Ok(nodes)
}

/// What to say of a node that the graph does not have.
pub(crate) fn no_such_node(id: impl std::fmt::Display, graph: &Graph) -> String {
    let last = graph.nodes() - 1;
    format!("node {id} does not exist; the graph has {} nodes, so give ids from 0 to {last}", graph.nodes())
}

/// What stands before a name that could be taken for an id.
const NAME: &str = "name:";

/// The node with this id or, failing that, this name; with `name:` before it, the node with this name.
///
/// # Errors
/// If there is none, or several have the name.
pub(crate) fn node(text: &str, graph: &Graph) -> anyhow::Result<NodeId> {
    let text = text.trim();
    let (name, id) = match text.strip_prefix(NAME) {
        Some(name) => (name.trim(), None),
        None => (text, text.parse::<u32>().ok()),
    };
    if let Some(id) = id.filter(|&id| (id as usize) < graph.nodes()) {
        return Ok(NodeId(id));
    }
    let names = graph.names().nodes.as_deref();
    match find_name(names, name, "node")? {
        Some(id) => Ok(NodeId(id)),
        None if id.is_some() => bail!("--node: {}", no_such_node(name, graph)),
        None if names.is_some() => {
            let close = nearest(name, names.into_iter().flatten().map(String::as_str));
            let hint = close.map(|known| format!(" (did you mean `{known}`?)")).unwrap_or_default();
            let last = graph.nodes() - 1;
            bail!("--node: no node is called `{name}`{hint}; give its exact name, or an id from 0 to {last}")
        }
        None => bail!("--node: `{name}` is not an id, and the graph has no node names; give an id such as 17"),
    }
}

/// The file that a list of attributes is in, if it is in one.
pub(crate) fn attribute_file(list: &str) -> Option<&Path> {
    list.trim().strip_prefix('@').map(Path::new)
}

/// The attributes that `list` names: ids, ranges and names, or `@FILE` with any of these.
///
/// # Errors
/// If an attribute does not exist, a name is not unique, or a file is unreadable.
pub(crate) fn attributes(list: &str, graph: &Graph) -> anyhow::Result<Vec<AttributeId>> {
    let option = "--protect-attributes";
    let mut found = Vec::new();
    match attribute_file(list) {
        None => add_attributes(list, graph, option, &mut found)?,
        Some(path) => {
            for (number, line) in values::lines(&read(path)?) {
                add_attributes(line, graph, &format!("{}, line {number}", path.display()), &mut found)?;
            }
        }
    }
    if found.is_empty() {
        bail!("{option} names no attribute at all; give ids or names such as 3,10-20,bayesian");
    }
    Ok(found)
}

fn add_attributes(list: &str, graph: &Graph, place: &str, found: &mut Vec<AttributeId>) -> anyhow::Result<()> {
    for item in list.split(',').map(str::trim).filter(|item| !item.is_empty()) {
        let ranges = attribute_ranges(item, graph).with_context(|| place.to_owned())?;
        found.extend(ranges.into_iter().flatten().map(AttributeId));
    }
    Ok(())
}

/// The ranges of all attributes: those of the graph, but for the ones that the file has, `attributes, lowest value, highest value` a line.
///
/// # Errors
/// If the file is unreadable, an attribute does not exist, a number is none, or attributes are no real values.
pub(crate) fn ranges(path: &Path, graph: &Graph) -> anyhow::Result<Vec<(f64, f64)>> {
    let Some(values) = graph.values() else {
        bail!("--ranges: {} (--real-values)", GraphError::RangesOfBits(graph.kind().in_words()));
    };
    let mut ranges = values.ranges().to_vec();
    let text = read(path)?;
    for (number, line) in values::lines(&text).filter(|(_, line)| !line.trim().is_empty()) {
        let place = || format!("{}, line {number}", path.display());
        let mut fields = line.rsplitn(3, ',').map(str::trim);
        let (high, low, of) = (fields.next(), fields.next(), fields.next());
        let finite = |field: Option<&str>| field?.parse::<f64>().ok().filter(|value| value.is_finite());
        let (Some(low), Some(high), Some(of)) = (finite(low), finite(high), of) else {
            bail!(
                "{}: `{line}` is no range; give attributes, their lowest and their highest value, such as 10-20, 0, 1.5",
                place()
            );
        };
        let all = 0..=graph.attribute_count() as u32 - 1;
        let named = if of == "all" { vec![all] } else { attribute_ranges(of, graph).with_context(place)? };
        named.into_iter().flatten().for_each(|attribute| ranges[attribute as usize] = (low, high));
    }
    Ok(ranges)
}

/// What one item of a list names: an attribute by its name, which may contain white space, or several ids, ranges and names.
fn attribute_ranges(item: &str, graph: &Graph) -> anyhow::Result<Vec<IdRange>> {
    let names = graph.names().attributes.as_deref();
    if let Some(name) = item.strip_prefix(NAME) {
        let name = name.trim();
        let id = find_name(names, name, "attribute")?.ok_or_else(|| no_such_attribute(name, names))?;
        return Ok(vec![id..=id]);
    }
    let whole = if item.contains(char::is_whitespace) { find_name(names, item, "attribute")? } else { None };
    match whole {
        Some(id) => Ok(vec![id..=id]),
        None => item.split_whitespace().map(|word| attribute_range(word, graph)).collect(),
    }
}

fn attribute_range(word: &str, graph: &Graph) -> anyhow::Result<IdRange> {
    let names = graph.names().attributes.as_deref();
    let attributes = graph.attribute_count();
    let ids = values::id_range(word);
    if let Some(ids) = ids.clone().filter(|ids| (*ids.end() as usize) < attributes) {
        return Ok(ids);
    }
    match find_name(names, word, "attribute")? {
        Some(id) => Ok(id..=id),
        None if ids.is_some() => bail!(
            "attribute {word} does not exist; the graph has {attributes} attributes, so give ids from 0 to {}",
            attributes - 1
        ),
        None => Err(no_such_attribute(word, names)),
    }
}

fn no_such_attribute(name: &str, names: Option<&[String]>) -> anyhow::Error {
    match names {
        Some(names) => {
            let close = nearest(name, names.iter().map(String::as_str));
            let hint = close.map(|known| format!(" (did you mean `{known}`?)")).unwrap_or_default();
            anyhow!("no attribute is called `{name}`{hint}; give its exact name, or an id such as 3")
        }
        None => anyhow!("`{name}` is not an id, and the graph has no attribute names; give ids such as 3,10-20"),
    }
}

fn find_name(names: Option<&[String]>, name: &str, what: &str) -> anyhow::Result<Option<u32>> {
    let mut matches = names.unwrap_or_default().iter().enumerate().filter(|(_, known)| *known == name);
    match (matches.next(), matches.next()) {
        (None, _) => Ok(None),
        (Some((id, _)), None) => Ok(Some(id as u32)),
        (Some((first, _)), Some((second, _))) => {
            bail!("more than one {what} is called `{name}`, such as {first} and {second}; give an id instead")
        }
    }
}

/// The text of a list file.
///
/// # Errors
/// If it cannot be read.
pub(crate) fn read(path: &Path) -> anyhow::Result<String> {
    fs::read_to_string(path).map_err(|error| {
        anyhow!("cannot read the list {}: {error}; check the path and that it is text", path.display())
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use nodeproof::{Names, Part};

    use super::*;

    fn graph() -> Graph {
        let words = |text: &str| Some(text.split(';').map(str::to_owned).collect());
        Graph::new(4, 5, &[(0, 1)], &[])
            .unwrap()
            .with_names(Names { nodes: words("a;b;b;3"), attributes: words("x;y z;4;w;w"), classes: None })
            .unwrap()
    }

    fn ids(list: &str) -> Vec<u32> {
        nodes(&list.parse().unwrap(), &graph(), None, "--nodes").unwrap().into_iter().map(|node| node.0).collect()
    }

    fn problem<T: std::fmt::Debug>(result: anyhow::Result<T>) -> String {
        format!("{:#}", result.unwrap_err())
    }

    #[test]
    fn the_first_of_two_mentions_counts() {
        assert_eq!(ids("3,0-2,1"), [3, 0, 1, 2]);
        assert_eq!(ids("all"), [0, 1, 2, 3]);
    }

    #[test]
    fn unknown_nodes_are_named_before_ranges_are_expanded() {
        let list = "0-4294967295".parse().unwrap();
        let text = problem(nodes(&list, &graph(), None, "--nodes"));
        assert!(text.contains("node 4294967295 does not exist") && text.contains("0 to 3"), "{text}");
    }

    #[test]
    fn parts_need_a_split() {
        let list = NodeList::Part(Part::Train);
        assert!(problem(nodes(&list, &graph(), None, "--nodes")).contains("--split"));
        let split = Split::new(4, vec![NodeId(2)], vec![]).unwrap();
        assert_eq!(nodes(&list, &graph(), Some(&split), "--nodes").unwrap(), [NodeId(2)]);
        let empty = NodeList::Part(Part::Validation);
        assert!(problem(nodes(&empty, &graph(), Some(&split), "--nodes")).contains("no node at all"));
    }

    #[test]
    fn files_of_nodes_say_where_they_are_wrong() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ids");
        fs::write(&path, "# first\n1, 3\n\n0-1 2\n").unwrap();
        let list = NodeList::File(path.clone());
        assert_eq!(nodes(&list, &graph(), None, "--nodes").unwrap(), [1, 3, 0, 2].map(NodeId));
        fs::write(&path, "1\nx\n").unwrap();
        assert!(problem(nodes(&list, &graph(), None, "--nodes")).contains("line 2: `x`"));
        fs::write(&path, "1\n2\n9\n").unwrap();
        assert!(problem(nodes(&list, &graph(), None, "--nodes")).contains("line 3: node 9"));
    }

    #[test]
    fn a_node_is_an_id_before_it_is_a_name() {
        assert_eq!(node("3", &graph()).unwrap(), NodeId(3));
        assert_eq!(node(" a ", &graph()).unwrap(), NodeId(0));
        assert_eq!(node("name:3", &graph()).unwrap(), NodeId(3), "the name is that of node 3, too");
        assert_eq!(node("name: a", &graph()).unwrap(), NodeId(0));
        assert!(problem(node("name:1", &graph())).contains("no node is called `1`"));
        assert!(problem(node("b", &graph())).contains("such as 1 and 2"));
        assert!(problem(node("9", &graph())).contains("does not exist"));
        assert!(problem(node("c", &graph())).contains("no node is called `c`"));
    }

    #[test]
    fn attributes_are_ids_ranges_and_names() {
        let found = |list: &str| attributes(list, &graph()).map(|list| list.iter().map(|a| a.0).collect::<Vec<_>>());
        assert_eq!(found("x,2-3,y z").unwrap(), [0, 2, 3, 1]);
        assert_eq!(found("4").unwrap(), [4], "ids come before names");
        assert_eq!(found("name:4, name:y z,name: x").unwrap(), [2, 1, 0], "unless they are called names");
        assert!(problem(found("name:3")).contains("no attribute is called `3`"));
        assert!(problem(found("w")).contains("more than one"));
        assert!(problem(found("0,7")).contains("attribute 7 does not exist"));
        assert!(problem(found("q")).contains("no attribute is called"));
        assert!(problem(found(" , ")).contains("no attribute at all"));
    }
}

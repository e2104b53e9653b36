//! `nodeproof explain`, end to end.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Fixture, Run, json};
use nodeproof::Names;
use serde_json::Value;

fn explain(fixture: &Fixture, more: &[&str]) -> Run {
    let base = ["explain", "--graph", "graph.npz", "--model", "model.safetensors", "--global-budget", "2"];
    fixture.run_all(&[&base[..], more].concat())
}

/// The first node with this verdict, according to `certify`.
fn node_with(fixture: &Fixture, verdict: &str) -> Value {
    fixture.certify("--out all.jsonl").succeeded();
    let text = fixture.read("all.jsonl");
    text.lines().skip(1).map(json).find(|record| record["verdict"] == verdict).unwrap()
}

#[test]
fn a_nonrobust_node_comes_with_its_witness_in_words() {
    let fixture = Fixture::new();
    let record = node_with(&fixture, "nonrobust");
    let text = explain(&fixture, &["--node", &record["node"].to_string()]).succeeded().stdout;
    let flip = &record["witness"][0];
    let verb = if flip["to"] == 1 { "add" } else { "remove" };
    let words = format!("{verb} “word {}”", flip["attribute"]);
    assert!(text.contains(&words), "{words}\n{text}");
    assert!(text.contains(&format!("paper {} (node {})", flip["node"], flip["node"])), "{text}");
    for words in ["verdict", "nonrobust", "falls", "at most 2 flips", " wins: the margin over it goes from "] {
        assert!(text.contains(words), "{words}\n{text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 100) && !text.contains('\u{1b}'), "{text}");
}

#[test]
fn a_robust_node_holds_everywhere() {
    let fixture = Fixture::new();
    let record = node_with(&fixture, "robust");
    let text = explain(&fixture, &["--node", &record["node"].to_string()]).succeeded().stdout;
    assert!(text.contains("robust: no admissible set of flips") && text.contains("holds"), "{text}");
    assert!(!text.contains("falls") && !text.contains("witness"), "{text}");
}

#[test]
fn names_find_nodes_and_appear_in_the_text() {
    let fixture = Fixture::new();
    let text = explain(&fixture, &["--node", "paper 4"]).succeeded().stdout;
    assert!(text.contains("paper 4 (node 4)") && text.contains("Agents (class 1)"), "{text}");
    assert_eq!(text, explain(&fixture, &["--node", "4"]).succeeded().stdout);
    let run = explain(&fixture, &["--node", "paper 99"]);
    assert!(run.code == 2 && run.stderr.contains("no node is called `paper 99`"), "{}", run.stderr);
    let run = explain(&fixture, &["--node", "99"]);
    assert!(run.code == 2 && run.stderr.contains("ids from 0 to 29"), "{}", run.stderr);
}

#[test]
fn ids_stand_in_for_missing_names() {
    let fixture = Fixture::new();
    common::graph(30, 12).write(fixture.path("graph.npz")).unwrap();
    let record = node_with(&fixture, "nonrobust");
    let text = explain(&fixture, &["--node", &record["node"].to_string()]).succeeded().stdout;
    let flip = &record["witness"][0];
    assert!(text.contains(&format!("attribute {}", flip["attribute"])), "{text}");
    assert!(text.contains(&format!("node {}", flip["node"])), "{text}");
    let run = explain(&fixture, &["--node", "paper 4"]);
    assert!(run.code == 2 && run.stderr.contains("no node names"), "{}", run.stderr);
}

#[test]
fn json_agrees_with_the_certificate() {
    let fixture = Fixture::new();
    let record = node_with(&fixture, "nonrobust");
    let story = json(&explain(&fixture, &["--json", "--node", &record["node"].to_string()]).succeeded().stdout);
    assert_eq!((&story["node"]["id"], &story["verdict"]), (&record["node"], &record["verdict"]));
    assert_eq!(story["witness"]["after"], record["witness_margin"]);
    assert_eq!(story["witness"]["class"]["id"], record["witness_class"]);
    assert_eq!(story["witness"]["flips"].as_array().unwrap().len(), record["witness"].as_array().unwrap().len());
    let margins = story["margins"].as_array().unwrap();
    assert_eq!(margins.len(), 2);
    for margin in margins {
        let class = margin["class"]["id"].as_u64().unwrap() as usize;
        assert_eq!(margin["lower"], record["margins"][class]);
        assert!(margin["clean"].as_f64() >= margin["lower"].as_f64(), "attacks do not raise margins");
    }
    assert_eq!(story["budget"]["global"], 2);
}

#[test]
fn a_wrong_label_falls_without_any_flip() {
    let fixture = Fixture::new();
    fixture.certify("--out all.jsonl").succeeded();
    let text = fixture.read("all.jsonl");
    let wrong = text.lines().skip(1).map(json).find(|record| record["predicted"] != record["label"]).unwrap();
    let node = wrong["node"].to_string();
    let text = explain(&fixture, &["--class", "label", "--node", &node]).succeeded().stdout;
    assert!(text.contains("which is wrong") && text.contains("nonrobust"), "{text}");
}

#[test]
fn escape_sequences_in_names_do_not_reach_the_terminal() {
    let fixture = Fixture::new();
    let evil =
        |what: &str, count: usize| Some((0..count).map(|i| format!("{what}\u{1b}[2J\u{7}{i}\u{202e}")).collect());
    let names = Names { nodes: evil("n", 30), attributes: evil("a", 12), classes: evil("c", 3) };
    common::graph(30, 12).with_names(names).unwrap().write(fixture.path("graph.npz")).unwrap();
    let record = node_with(&fixture, "nonrobust");
    let steers = |text: &str| text.chars().any(|c| (c.is_control() && c != '\n') || c == '\u{202e}');
    let text = explain(&fixture, &["--node", &record["node"].to_string()]).succeeded().stdout;
    assert!(!steers(&text) && text.contains("\\u{1b}[2J"), "{text}");
    let text = fixture.run("data info graph.npz").succeeded().stdout;
    assert!(!steers(&text), "{text}");
}

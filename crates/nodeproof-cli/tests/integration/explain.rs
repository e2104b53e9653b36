//! `nodeproof explain`, end to end.
use nodeproof::Names;
use serde_json::Value;

use crate::common::{self, Fixture, Run, json};

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
fn the_smallest_set_of_flips_that_can_be_found_is_told() {
    let fixture = Fixture::new();
    fixture.run("radius --graph graph.npz --model model.safetensors --out radii.jsonl --local-budget 2").succeeded();
    let radii: Vec<Value> = fixture.read("radii.jsonl").lines().skip(1).map(json).collect();
    let mut smaller = 0;
    for radius in radii.iter().filter(|radius| radius["nonrobust_from"].as_u64().is_some_and(|from| from <= 6)) {
        let arguments = ["explain", "--graph", "graph.npz", "--model", "model.safetensors", "--local-budget", "2"];
        let node = radius["node"].to_string();
        let more = ["--global-budget", "6", "--node", &node, "--json"];
        let story = json(&fixture.run_all(&[&arguments[..], &more[..]].concat()).succeeded().stdout);
        let from = radius["nonrobust_from"].as_u64().unwrap();
        assert_eq!(story["witness"]["flips"].as_array().unwrap().len() as u64, from, "{radius} {story}");
        let text = fixture.run_all(&[&arguments[..], &more[..4]].concat()).succeeded().stdout;
        let words = match from {
            1 => "nonrobust: one flip changes the class".to_owned(),
            2 => "nonrobust: 2 flips change the class, and no single one does".to_owned(),
            from => format!("nonrobust: {from} flips change the class, and no {} do", from - 1),
        };
        assert!(text.contains(&words), "{words}\n{text}");
        smaller += usize::from(from < 6);
    }
    assert!(smaller > 0, "no node is changed by fewer flips than the budget allows");
}

#[test]
fn a_robust_node_comes_with_the_way_to_its_radius() {
    let fixture = Fixture::new();
    let node = node_with(&fixture, "robust")["node"].to_string();
    let text = explain(&fixture, &["--node", &node]).succeeded().stdout;
    assert!(text.contains(&format!("`nodeproof radius --nodes {node}` finds how many flips it withstands")), "{text}");
    assert!(!explain(&fixture, &["--node", &node, "--json"]).succeeded().stdout.contains("radius"));
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
    let [told, certified] =
        [&story["witness"]["flips"], &record["witness"]].map(|flips| flips.as_array().unwrap().len());
    assert!(told <= certified, "a smaller witness may be known");
    if told == certified {
        assert_eq!(story["witness"]["after"], record["witness_margin"]);
        assert_eq!(story["witness"]["class"]["id"], record["witness_class"]);
    }
    let margins = story["margins"].as_array().unwrap();
    assert_eq!(margins.len(), 2);
    for margin in margins {
        let class = margin["class"]["id"].as_u64().unwrap() as usize;
        let [raised, before] = [&margin["lower"], &record["margins"][class]].map(|bound| bound.as_f64().unwrap());
        assert!(raised >= before, "{raised} < {before}");
        if record["witness_class"] == class {
            assert!(raised <= record["witness_margin"].as_f64().unwrap(), "no bound is above a margin that was found");
        }
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

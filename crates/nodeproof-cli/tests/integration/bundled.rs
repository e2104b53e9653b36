//! The bundled graph, end to end.
use std::fs;
use std::path::Path;

use crate::common::{Fixture, json};

#[test]
fn it_is_the_file_in_the_repository() {
    let fixture = Fixture::new();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/wordnet.npz");
    let facts = |graph: &str| fixture.run_all(&["data", "info", graph]).succeeded().stdout;
    let (bundled, on_file) = (facts("bundled"), facts(file.to_str().unwrap()));
    let licence = bundled.strip_prefix(&on_file).unwrap_or_else(|| panic!("{bundled}"));
    assert!(licence.contains("WordNet 3.0 Copyright 2006 by Princeton University"), "it goes with every copy");
    assert!(!facts("bundled").contains("while reading"), "nothing to clean");
    let info = |graph: &str| json(&fixture.run_all(&["data", "info", graph, "--json"]).succeeded().stdout);
    assert_eq!(info("bundled"), info(file.to_str().unwrap()));
    assert_eq!(info("bundled")["statistics"]["nodes"], 3304);
}

#[test]
fn a_network_trained_on_it_is_certified_on_it() {
    let fixture = Fixture::new();
    fixture.run("data split --graph bundled --train 5% --seed 3 --out split.json --quiet").succeeded();
    let train = "train --graph bundled --method ce --global-budget 2 --steps 40 --split split.json --out m.safetensors";
    fixture.run(&format!("{train} --quiet")).succeeded();
    let certify = "certify --model m.safetensors --global-budget 2 --engine fast --nodes 0-99 --split split.json";
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/wordnet.npz");
    fs::copy(file, fixture.path("wordnet.npz")).unwrap();
    for (graph, out) in [("bundled", "a.jsonl"), ("wordnet.npz", "b.jsonl")] {
        fixture.run(&format!("{certify} --graph {graph} --out {out} --quiet")).succeeded();
    }
    assert_eq!(fixture.read("a.jsonl").lines().count(), 101, "a header and 100 certificates");
    assert_eq!(fixture.read("a.jsonl"), fixture.read("b.jsonl"));
    let radius = "radius --graph bundled --model m.safetensors --engine fast --nodes 0-3 --quiet --csv radii.csv";
    fixture.run(radius).succeeded();
    assert!(fixture.read("radii.csv").contains("bottom-feeder"));

    let explain = "explain --graph bundled --model m.safetensors --global-budget 5 --engine fast --node".split(' ');
    let arguments: Vec<_> = explain.chain(["salmon (food)"]).collect();
    let story = fixture.run_all(&arguments).succeeded().stdout;
    assert!(story.contains("salmon (food) (node"), "{story}");
}

#[test]
fn a_file_of_that_name_can_be_reached_and_written() {
    let fixture = Fixture::new();
    fs::copy(fixture.path("graph.npz"), fixture.path("bundled")).unwrap();
    let nodes = |graph: &str| {
        let info = json(&fixture.run(&format!("data info {graph} --json")).succeeded().stdout);
        info["statistics"]["nodes"].as_u64()
    };
    assert_eq!((nodes("bundled"), nodes("./bundled")), (Some(3304), Some(30)));
    let refused = fixture.run("data split --graph ./bundled --out bundled");
    assert!(refused.code == 2 && refused.stderr.contains("an input of this command"), "{}", refused.stderr);
    fixture.run("data split --graph bundled --out bundled --quiet").succeeded();
    assert!(fixture.read("bundled").starts_with('{'));
}

#[test]
fn a_model_that_does_not_fit_is_refused() {
    let fixture = Fixture::new();
    let run = fixture.run("certify --graph bundled --model model.safetensors --global-budget 2");
    assert!(run.code == 2 && run.stderr.contains("2048"), "{}", run.stderr);
    let run = fixture.run("certify --graph bundled --model bundled --global-budget 2");
    assert!(run.code == 2 && run.stderr.contains("check the path given as --model"), "{}", run.stderr);
}

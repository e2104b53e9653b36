//! `nodeproof demo`, end to end: the one test that trains on the bundled graph to the end.
use std::fs;

use crate::common::{Fixture, json};

#[test]
fn the_demo_shows_what_robust_training_is_good_for() {
    let fixture = Fixture::new();
    let text = fixture.run("demo --out shown --quiet").succeeded().stdout;
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let shares = |row: &str| -> Vec<f64> {
        let line = text.lines().find(|line| line.starts_with(row)).unwrap();
        line.split_whitespace().filter_map(|word| word.strip_suffix('%')?.parse().ok()).collect()
    };
    let (right, proven, undecided) = (shares("unlabelled nouns"), shares("robust:"), shares("undecided"));
    assert!(right.iter().all(|&share| share > 80.0), "{text}");
    assert!(proven[1] > proven[0] + 30.0, "{text}");
    assert_eq!(undecided, [0.0, 0.0], "{text}");
    assert!(text.contains("fool") && (text.contains("add “") || text.contains("remove “")), "{text}");

    for name in ["standard", "robust"] {
        let lines: Vec<_> =
            fs::read_to_string(fixture.path(&format!("shown/{name}.jsonl"))).unwrap().lines().map(json).collect();
        assert_eq!(lines.len(), 1 + 3304, "a header, and a line a noun");
        assert!(fixture.path(&format!("shown/{name}-training.jsonl")).exists());
        let info = json(&fixture.run(&format!("model info shown/{name}.safetensors --json")).succeeded().stdout);
        assert_eq!(info["classes"], 6);
    }
    for name in ["robustness.svg", "robustness.png", "standard-radii.jsonl", "robust-radii.jsonl"] {
        assert!(fixture.path(&format!("shown/{name}")).exists(), "{name}");
    }
    let report = fs::read_to_string(fixture.path("shown/report.html")).unwrap();
    assert!(report.contains(r#""name":"standard training""#) && report.contains(r#""name":"robust training""#));
    // The commands that are shown are those that are run: the first of them gives the same bytes once more.
    let train =
        "train --graph bundled --method ce --global-budget 5 --split shown/split.json --out again.safetensors --quiet";
    fixture.run(train).succeeded();
    let weights = |name: &str| nodeproof::Model::read(fixture.path(name)).unwrap();
    assert_eq!(weights("again.safetensors"), weights("shown/standard.safetensors"));
}

#[test]
fn a_folder_that_cannot_be_made_is_told() {
    let fixture = Fixture::new();
    fixture.write("file", "");
    let refused = fixture.run("demo --out file/demo");
    assert_eq!((refused.code, refused.stdout.as_str()), (2, ""));
    assert!(refused.stderr.contains("--out"), "{}", refused.stderr);
}

#[test]
fn shells_and_man_learn_every_command() {
    let fixture = Fixture::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = fixture.run(&format!("completions {shell}")).succeeded().stdout;
        assert!(script.contains("certify") && script.contains("global-budget"), "{shell}");
    }
    let page = fixture.run("man").succeeded().stdout;
    assert!(page.starts_with(".ie") && page.contains("nodeproof"), "{page}");
    fixture.run("man --out pages").succeeded();
    for name in ["nodeproof", "nodeproof-certify", "nodeproof-data-info", "nodeproof-bench-train"] {
        assert!(fixture.path(&format!("pages/{name}.1")).exists(), "{name}");
    }
    assert_eq!(fixture.run("completions tcl").code, 2);
}

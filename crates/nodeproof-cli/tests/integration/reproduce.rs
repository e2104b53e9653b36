//! `nodeproof reproduce`, on tiny graphs under the names of the paper's data sets.
use std::fs;

use nodeproof::Graph;

use crate::common::{self, Fixture, Run, json};

/// A folder `data` with two of the three data sets.
fn with_data() -> Fixture {
    let fixture = Fixture::new();
    fs::create_dir(fixture.path("data")).unwrap();
    // One attribute may be flipped at a node, since 1 % of them is less.
    for (name, nodes) in [("cora_ml", 40), ("citeseer", 30)] {
        let graph: Graph = common::graph(nodes, 12);
        graph.write(fixture.path(&format!("data/{name}.npz"))).unwrap();
    }
    fixture
}

#[test]
fn the_paper_is_repeated_and_a_second_run_has_nothing_to_do() {
    let fixture = with_data();
    let first = fixture.run("reproduce --data data --quick");
    assert!(first.stderr.contains("cora_ml.npz is not the paper's: it has 40 nodes, not 2995"), "{}", first.stderr);
    let text = done(first);
    assert!(text.contains("Cora-ML, Citeseer") && text.contains("PubMed"), "{text}");
    assert!(text.contains("1/23  Cora-ML, split 0, CE: train"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");

    let summary = fixture.read("reproduction/README.md");
    for method in ["CE", "RCE", "RH", "RH-U"] {
        for title in ["Cora-ML", "Citeseer"] {
            assert!(summary.contains(&format!("| {title} | {method} |")), "{summary}");
        }
    }
    assert!(summary.contains("left out: PubMed") && summary.contains("40 (paper 2995)"), "{summary}");
    assert!(summary.contains("(38.58, ") && summary.contains("| 0.54 |"), "the paper's figures: {summary}");
    let mut figures = 0;
    for line in summary.lines() {
        if let Some((_, rest)) = line.split_once("](figures/") {
            let name = rest.split_once(".png").map_or(rest, |(name, _)| name);
            if !name.contains(')') {
                figures += 1;
                assert!(fixture.path(&format!("reproduction/figures/{name}.svg")).exists(), "{name}");
                assert!(fixture.path(&format!("reproduction/figures/{name}.png")).exists(), "{name}");
            }
        }
    }
    assert_eq!(figures, 2 * 5 + 4);
    let published = fixture.read("reproduction/figures/methods-cora_ml.svg");
    assert!(
        published.contains("Zügner") && !fixture.read("reproduction/figures/methods-citeseer.svg").contains("Zügner")
    );
    let table = fixture.read("reproduction/table1.csv");
    assert_eq!(table.lines().count(), 1 + 2 * 4 * 4);
    assert!(table.contains("cora_ml,rh-u,robust_12,"), "{table}");

    let steps = fixture.read("reproduction/steps.jsonl");
    let again = done(fixture.run("reproduce --data data --quick --threads 1"));
    assert!(again.contains("23 done before") && !again.contains("1/23"), "{again}");
    assert_eq!(fixture.read("reproduction/steps.jsonl"), steps);
    let findings = |text: &str| text.split_once("## How").unwrap().0.to_owned();
    assert_eq!(findings(&fixture.read("reproduction/README.md")), findings(&summary));

    // What is missing is made again, and nothing else.
    fs::remove_file(fixture.path("reproduction/runs/citeseer/0/rh-radii-fast.jsonl")).unwrap();
    let mended = done(fixture.run("reproduce --data data --quick"));
    assert!(
        mended.contains("22 done before") && mended.contains("Citeseer, split 0, RH: radii, fast engine"),
        "{mended}"
    );
    assert_eq!(fixture.read("reproduction/table1.csv"), table);
    // So is what belongs to another graph.
    common::graph(31, 12).write(fixture.path("data/citeseer.npz")).unwrap();
    let changed = done(fixture.run("reproduce --data data --quick"));
    assert!(changed.contains("14 done before"), "{changed}");
    // Results of one graph are not taken for those of another that was there before.
    let old = common::graph(30, 12);
    old.write(fixture.path("data/citeseer.npz")).unwrap();
    let back = done(fixture.run("reproduce --data data --quick"));
    assert!(back.contains("14 done before"), "{back}");
    assert_eq!(fixture.read("reproduction/table1.csv"), table);
}

/// What a run printed that did everything; graphs that are not the paper's are noted.
#[track_caller]
fn done(run: Run) -> String {
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stderr.lines().all(|line| line.contains("is not the paper's")), "{}", run.stderr);
    run.stdout
}

#[test]
fn a_reproduction_can_be_followed() {
    let fixture = with_data();
    done(fixture.run("reproduce --data data --quick"));
    the_table_is_that_of_the_files(&fixture);
    the_commands_of_the_steps_give_the_same_bytes(&fixture);
}

/// What `steps.jsonl` says about a step can be run, and gives the same files.
fn the_commands_of_the_steps_give_the_same_bytes(fixture: &Fixture) {
    let steps = fixture.read("reproduction/steps.jsonl");
    let commands: Vec<String> = steps.lines().map(|line| json(line)["command"].as_str().unwrap().to_owned()).collect();
    for (words, files) in [
        (
            "train --graph data/cora_ml.npz --binarise --method rh-u --global-budget 12",
            vec!["rh-u.safetensors", "rh-u-training.jsonl"],
        ),
        ("train --graph data/cora_ml.npz --binarise --method ce", vec!["ce.safetensors", "ce-training.jsonl"]),
        ("ce.safetensors --engine complete", vec!["ce-radii-complete.jsonl"]),
    ] {
        let command = commands.iter().find(|command| command.contains(words)).unwrap();
        let bytes =
            || files.iter().map(|file| fs::read(fixture.path(&format!("reproduction/runs/cora_ml/0/{file}"))).unwrap());
        let before: Vec<_> = bytes().collect();
        let run = fixture.run(command.strip_prefix("nodeproof ").unwrap());
        assert_eq!(run.code, 0, "{command}: {}", run.stderr);
        assert!(bytes().eq(before), "{command}");
    }
}

/// The table, from the files that the steps left.
fn the_table_is_that_of_the_files(fixture: &Fixture) {
    let lines = fixture.read("reproduction/runs/citeseer/0/rce-radii-fast.jsonl");
    let radii: Vec<f64> =
        lines.lines().skip(1).map(|line| json(line)["robust_up_to"].as_f64().unwrap_or(0.0)).collect();
    let mean = radii.iter().sum::<f64>() / radii.len() as f64;
    let robust = radii.iter().filter(|&&radius| radius >= 12.0).count() as f64 / radii.len() as f64;
    let table = fixture.read("reproduction/table1.csv");
    let ours = |quantity: &str| -> f64 {
        let row = table.lines().find(|row| row.starts_with(&format!("citeseer,rce,{quantity},"))).unwrap();
        row.split(',').nth(3).unwrap().parse().unwrap()
    };
    assert!((ours("largest_q") - mean).abs() < 1e-12 && (ours("robust_12") - robust).abs() < 1e-12, "{table}");
    let info = json(&fixture.run("model info reproduction/runs/citeseer/0/rce.safetensors --json").succeeded().stdout);
    assert_eq!(info["training"]["accuracy_unlabelled"].as_f64().unwrap(), ours("accuracy_unlabelled"));
}

#[test]
fn what_cannot_be_is_told() {
    let fixture = Fixture::new();
    fs::create_dir(fixture.path("empty")).unwrap();
    fixture.write("file", "");
    for (line, problem) in [
        ("reproduce", "--data"),
        ("reproduce --data empty", "nodeproof data get cora_ml"),
        ("reproduce --data none", "there is none of cora_ml.npz"),
        ("reproduce --data file", "give the folder that it is in"),
    ] {
        let run = fixture.run(line);
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{line}");
        assert!(run.stderr.contains(problem), "{line}: {}", run.stderr);
    }
    let fixture = with_data();
    fixture.write("file", "");
    let run = fixture.run("reproduce --data data --out file/folder");
    assert!(run.code == 2 && run.stderr.contains("--out"), "{}", run.stderr);
    fixture.write("data/cora_ml.npz", "no graph");
    let run = fixture.run("reproduce --data data");
    assert!(run.code == 2 && run.stderr.contains("cora_ml.npz"), "{}", run.stderr);
}

//! `nodeproof collective`, end to end.
use serde_json::Value;

use crate::common::{self, Fixture, Run, json};

/// Asks about the example of the repository, with these further arguments.
fn collective(fixture: &Fixture, more: &str) -> Run {
    common::copy_papers(fixture);
    fixture.run(&format!("collective --graph papers.npz --model papers.safetensors --local-budget 2 {more}"))
}

fn radius(fixture: &Fixture, more: &str) -> Run {
    common::copy_papers(fixture);
    fixture.run(&format!("radius --graph papers.npz --model papers.safetensors {more} --out radii.jsonl"))
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(json).collect()
}

/// A record without what differs from run to run.
fn untimed(mut record: Value) -> Value {
    let fields = record.as_object_mut().unwrap();
    fields.remove("seconds");
    fields.remove("hash");
    record
}

#[test]
fn bounds_and_attacks_of_all_budgets_are_on_file() {
    let fixture = Fixture::new();
    let run = collective(&fixture, "--global-budget 4,1,2 --out out.jsonl --csv out.csv").succeeded();
    let all = lines(&fixture.read("out.jsonl"));
    assert_eq!((&all[0]["format"], &all[0]["budgets"]), (&"nodeproof-collective".into(), &json("[1,2,4]")));
    assert_eq!((&all[0]["budget"]["global"], &all[0]["nodes"]), (&4.into(), &24.into()));
    for (record, global) in all[1..].iter().zip([1, 2, 4]) {
        let number = |field: &str| record[field].as_u64().unwrap();
        assert_eq!((number("global"), number("targets")), (global, 24));
        let ordered = ["at_least", "at_most", "by_radii", "alone", "targets"].map(number);
        assert!(ordered.is_sorted(), "{record}");
        assert!(record["flips"].as_array().unwrap().len() as u64 <= global, "{record}");
        assert_eq!(record["changed"].as_array().unwrap().len() as u64, number("at_least"));
    }
    assert_eq!(all[1]["at_least"], all[1]["at_most"], "all single flips are tried");
    assert!(run.stdout.contains("exact") && run.stdout.contains("flips that change"), "{}", run.stdout);
    let table = fixture.read("out.csv");
    let row = format!("1,24,{},{},{},{}", all[1]["at_most"], all[1]["at_least"], all[1]["by_radii"], all[1]["alone"]);
    assert_eq!(table.lines().nth(1), Some(&*row));
}

#[test]
fn the_nodes_that_an_attack_changes_are_those_that_predict_says() {
    let fixture = Fixture::new();
    collective(&fixture, "--global-budget 3 --out out.jsonl").succeeded();
    let record = &lines(&fixture.read("out.jsonl"))[1];
    let (graph, _) = nodeproof::Graph::read(fixture.path("papers.npz"), Default::default()).unwrap();
    let model = nodeproof::Model::read(fixture.path("papers.safetensors")).unwrap();
    let flips: Vec<nodeproof::Flip> = serde_json::from_value(record["flips"].clone()).unwrap();
    let predictions = |graph: &nodeproof::Graph| nodeproof::Network::new(graph, &model).unwrap().predictions();
    let (before, after) = (predictions(&graph), predictions(&graph.with_flips(&flips).unwrap()));
    let changed: Vec<usize> = (0..before.len()).filter(|&node| before[node] != after[node]).collect();
    assert!(!changed.is_empty());
    assert_eq!(record["changed"], serde_json::to_value(changed).unwrap());
}

#[test]
fn radii_on_file_give_the_same_answer() {
    let fixture = Fixture::new();
    radius(&fixture, "--local-budget 2 --max-budget 4").succeeded();
    collective(&fixture, "--global-budget 2,4 --out found.jsonl").succeeded();
    collective(&fixture, "--global-budget 2,4 --radii radii.jsonl --threads 2 --out read.jsonl").succeeded();
    let records = |name: &str| lines(&fixture.read(name)).into_iter().skip(1).map(untimed).collect::<Vec<_>>();
    assert_eq!(records("found.jsonl"), records("read.jsonl"));
    let json: Value = json(&collective(&fixture, "--global-budget 2 --radii radii.jsonl --json").succeeded().stdout);
    assert_eq!(json["budgets"][0]["at_most"], records("read.jsonl")[0]["at_most"]);
}

#[test]
fn bounds_are_checked_and_less_is_rejected() {
    let fixture = Fixture::new();
    radius(&fixture, "--local-budget 2 --max-budget 4 --proof").succeeded();
    collective(&fixture, "--global-budget 1,2,4 --radii radii.jsonl --nodes 0-19 --out out.jsonl").succeeded();
    let check =
        |more: &str| fixture.run(&format!("check out.jsonl --graph papers.npz --model papers.safetensors {more}"));
    let run = check("--radii radii.jsonl").succeeded();
    assert!(run.stdout.contains("global budget of 1, 2, 4"), "{}", run.stdout);
    let shown: Value = json(&check("--radii radii.jsonl --json").succeeded().stdout);
    assert_eq!((&shown["accepted"], &shown["rejected"]), (&json("[1,2,4]"), &json("[]")));

    let mut found = nodeproof::results::Collectives::read(fixture.path("out.jsonl")).unwrap();
    assert_eq!(found.nodes.len(), 20);
    let record = &mut found.records[2];
    record.at_most = record.at_least() - 1;
    (record.flips, record.changed) = Default::default();
    let mut bytes = Vec::new();
    found.write(&mut bytes).unwrap();
    std::fs::write(fixture.path("out.jsonl"), bytes).unwrap();
    let run = check("--radii radii.jsonl");
    assert!(run.code == 1 && run.stdout.contains("at most"), "{} {}", run.code, run.stdout);
    let shown: Value = json(&check("--json").stdout);
    assert_eq!(shown["rejected"][0]["global_budget"], 4, "{shown}");
    assert!(check("").stdout.contains("--radii"), "the remedy is named");
}

#[test]
fn checks_of_something_else_are_refused() {
    let fixture = Fixture::new();
    radius(&fixture, "--local-budget 2 --max-budget 2 --proof").succeeded();
    collective(&fixture, "--global-budget 2 --radii radii.jsonl --out out.jsonl").succeeded();
    let check = |file: &str, more: &str| {
        fixture.run(&format!("check {file} --graph papers.npz --model papers.safetensors {more}"))
    };
    let refused = |run: Run, words: &str| assert!(run.code == 2 && run.stderr.contains(words), "{}", run.stderr);
    refused(check("radii.jsonl", "--radii radii.jsonl"), "--radii goes with collective certificates");
    refused(check("out.jsonl", "--radii out.jsonl"), "radii");
    refused(check("out.jsonl", "--radii no.jsonl"), "--radii");
    radius(&fixture, "--local-budget 3 --max-budget 2").succeeded();
    refused(check("out.jsonl", "--radii radii.jsonl"), "another budget");
    refused(fixture.run("check out.jsonl --graph bundled --model papers.safetensors"), "");
}

#[test]
fn some_predictions_and_protected_nodes_are_fewer() {
    let fixture = Fixture::new();
    collective(&fixture, "--global-budget 2 --nodes 0-11 --out half.jsonl").succeeded();
    let record = &lines(&fixture.read("half.jsonl"))[1];
    assert_eq!(record["targets"], 12);
    assert!(record["changed"].as_array().unwrap().iter().all(|node| node.as_u64() < Some(12)));
    collective(&fixture, "--global-budget 2 --protect-nodes all --out none.jsonl").succeeded();
    let record = &lines(&fixture.read("none.jsonl"))[1];
    assert_eq!((&record["at_most"], &record["flips"]), (&0.into(), &json("[]")));
}

#[test]
fn radii_of_another_question_are_refused() {
    let fixture = Fixture::new();
    for (asked, words) in [
        ("--local-budget 3 --max-budget 4", "another budget"),
        ("--local-budget 2 --max-budget 4 --add-only", "another budget"),
        ("--local-budget 2 --max-budget 4 --class label", "another --class"),
        ("--local-budget 2 --max-budget 4 --margin 0.1", "another --margin"),
        ("--local-budget 2 --max-budget 4 --engine fast --scan", "those of a scan"),
        ("--local-budget 2 --max-budget 4 --nodes 0-5", "no radius of some of the nodes"),
    ] {
        radius(&fixture, asked).succeeded();
        let run = collective(&fixture, "--global-budget 2 --radii radii.jsonl");
        assert!(run.code == 2 && run.stderr.contains(words), "{asked}: {}", run.stderr);
    }
    assert_eq!(collective(&fixture, "--global-budget 2 --radii papers.npz").code, 2);
    let run = collective(&fixture, "--global-budget 2 --radii no.jsonl");
    assert!(run.code == 2 && run.stderr.contains("--radii"), "{}", run.stderr);
}

#[test]
fn bad_budgets_and_outputs_are_refused() {
    let fixture = Fixture::new();
    for arguments in ["", "--global-budget 0", "--global-budget x", "--global-budget 1 --out o --csv o"] {
        assert_eq!(collective(&fixture, arguments).code, 2, "{arguments}");
    }
    let run = collective(&fixture, "--global-budget 1,100000");
    assert!(run.code == 2 && run.stderr.contains("100000"), "{}", run.stderr);
}

#[test]
fn files_of_collective_certificates_are_named_where_others_are_needed() {
    let fixture = Fixture::new();
    collective(&fixture, "--global-budget 1 --out out.jsonl").succeeded();
    for line in ["merge out.jsonl --out all.jsonl", "plot certificates out.jsonl --out figure.svg"] {
        let run = fixture.run(line);
        assert!(run.code == 2 && run.stderr.contains("has collective certificates"), "{line}: {}", run.stderr);
    }
}

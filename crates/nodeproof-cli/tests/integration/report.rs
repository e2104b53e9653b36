//! `nodeproof report`, on the real binary. What the page does with its data is tested in a browser, in `report/tests`.
use std::fs;
use std::os::unix::fs::PermissionsExt;

use nodeproof::{Graph, Names};
use serde_json::Value;

use crate::common::{self, Fixture, model, named};

/// The data in a report.
fn data(html: &str) -> Value {
    let (_, rest) = html.split_once(r#"<script type="application/json" id="data">"#).unwrap();
    serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
}

fn with_results() -> Fixture {
    let fixture = Fixture::new();
    fixture.certify("--out certificates.jsonl").succeeded();
    fixture.run("radius --graph graph.npz --model model.safetensors --max-budget 8 --out radii.jsonl").succeeded();
    fixture
}

#[test]
fn certificates_and_radii_of_one_model_belong_together() {
    let fixture = with_results();
    let run = fixture.run("report certificates.jsonl radii.jsonl --graph graph.npz").succeeded();
    assert!(run.stdout.contains("report.html"), "{}", run.stdout);
    let data = data(&fixture.read("report.html"));
    let models = data["models"].as_array().unwrap();
    assert_eq!(models.len(), 1);
    assert_eq!(models[0]["name"], "certificates");
    assert_eq!(models[0]["certificates"]["verdict"].as_array().unwrap().len(), 30);
    assert_eq!(models[0]["radii"]["curve"]["robust"].as_array().unwrap().len(), 9);
    assert_eq!(data["nodes"]["name"][3], "paper 3");
    assert_eq!(data["graph"]["classes"][2], "Logic");
    assert_eq!(data["title"], "Robustness on graph");
    fixture.run("report certificates.jsonl radii.jsonl --graph graph.npz --out again.html --quiet").succeeded();
    assert_eq!(fixture.read("report.html"), fixture.read("again.html"));
}

#[test]
fn models_are_shown_side_by_side_under_their_names() {
    let fixture = with_results();
    fixture.run("data split --graph graph.npz --train 20% --out split.json").succeeded();
    fixture.run("certify --graph graph.npz --model model.safetensors --global-budget 1 --out one.jsonl").succeeded();
    let line =
        "report --graph graph.npz two=certificates.jsonl one=one.jsonl two=radii.jsonl --split split.json --title T";
    fixture.run(line).succeeded();
    let data = data(&fixture.read("report.html"));
    let names: Vec<Value> = data["models"].as_array().unwrap().iter().map(|model| model["name"].clone()).collect();
    assert_eq!((names, &data["title"]), (vec!["two".into(), "one".into()], &Value::from("T")));
    assert!(data["models"][0]["radii"].is_object() && data["models"][1]["radii"].is_null());
    let labelled = data["nodes"]["part"].as_array().unwrap().iter().filter(|part| **part == 1).count();
    assert_eq!(labelled, 6);
}

/// Collective certificates of the same model, under the budget that [`with_results`] has.
fn with_collectives() -> Fixture {
    let fixture = with_results();
    fixture
        .run("collective --graph graph.npz --model model.safetensors --global-budget 3,1 --out together.jsonl --quiet")
        .succeeded();
    fixture
}

#[test]
fn collective_certificates_belong_to_the_others_of_their_model() {
    let fixture = with_collectives();
    fixture.run("report certificates.jsonl radii.jsonl together.jsonl --graph graph.npz").succeeded();
    let all = data(&fixture.read("report.html"));
    let [model] = &all["models"].as_array().unwrap()[..] else { panic!("not one model") };
    assert!(model["certificates"].is_object() && model["radii"].is_object());
    let records: Vec<Value> = fixture.read("together.jsonl").lines().skip(1).map(common::json).collect();
    let answers = model["collectives"]["answers"].as_array().unwrap();
    assert_eq!((answers.len(), &answers[0]["global"], &answers[1]["global"]), (2, &1.into(), &3.into()));
    for (answer, record) in answers.iter().zip(&records) {
        for field in ["global", "at_most", "at_least", "by_radii", "alone", "seconds"] {
            assert_eq!(answer[field], record[field], "{field}");
        }
        assert_eq!(answer["predictions"], record["targets"]);
        let node = |position: &Value| &all["nodes"]["id"][position.as_u64().unwrap() as usize];
        let changed: Vec<&Value> = answer["changed"].as_array().unwrap().iter().map(node).collect();
        assert_eq!(changed, record["changed"].as_array().unwrap().iter().collect::<Vec<_>>());
        let made = |flip: &Value| (node(&flip[0]).clone(), flip[1].clone());
        let written = |flip: &Value| (flip["node"].clone(), flip["attribute"].clone());
        assert_eq!(
            answer["flips"].as_array().unwrap().iter().map(made).collect::<Vec<_>>(),
            record["flips"].as_array().unwrap().iter().map(written).collect::<Vec<_>>()
        );
    }
    assert!(!answers[1]["changed"].as_array().unwrap().is_empty(), "the attack of the test changes nothing");
}

#[test]
fn collective_certificates_alone_are_enough() {
    let fixture = with_collectives();
    fixture.run("report standard=together.jsonl --graph graph.npz --title T").succeeded();
    let data = data(&fixture.read("report.html"));
    let model = &data["models"][0];
    assert_eq!((&model["name"], &data["nodes"]["subjects"]), (&"standard".into(), &0.into()));
    assert!(model["certificates"].is_null() && model["radii"].is_null() && model["collectives"].is_object());
}

#[test]
fn collective_certificates_are_checked_by_the_radii_beside_them() {
    let fixture = with_collectives();
    let report = "report m=together.jsonl m=radii.jsonl --graph graph.npz --check model.safetensors";
    let radius = "radius --graph graph.npz --model model.safetensors --max-budget 3 --quiet --proof --out radii.jsonl";
    fixture.run(radius).succeeded();
    let run = fixture.run(report).succeeded();
    assert!(run.stdout.contains("accepted"), "{}", run.stdout);
    assert_eq!(data(&fixture.read("report.html"))["checked"], true);

    let mut found = nodeproof::results::Collectives::read(fixture.path("together.jsonl")).unwrap();
    let record = &mut found.records[1];
    record.at_most = record.at_least() - 1;
    (record.flips, record.changed) = Default::default();
    let mut bytes = Vec::new();
    found.write(&mut bytes).unwrap();
    std::fs::write(fixture.path("together.jsonl"), bytes).unwrap();
    std::fs::remove_file(fixture.path("report.html")).unwrap();
    let run = fixture.run(report);
    assert!(run.code == 1 && run.stderr.contains("collective certificates of “m” are rejected"), "{}", run.stderr);
    assert!(!fixture.path("report.html").exists(), "nothing is written");
}

#[test]
fn collective_certificates_of_something_else_are_refused() {
    let fixture = with_collectives();
    let add_only =
        "collective --graph graph.npz --model model.safetensors --add-only --global-budget 1 --out adds.jsonl";
    fixture.run(add_only).succeeded();
    fixture
        .run("certify --graph graph.npz --model model.safetensors --margin 0.1 --global-budget 2 --out margin.jsonl");
    fixture
        .run("train --graph graph.npz --method ce --global-budget 2 --steps 2 --out ce.safetensors --quiet")
        .succeeded();
    fixture.run("radius --graph graph.npz --model ce.safetensors --max-budget 2 --out ce.jsonl").succeeded();
    named(common::graph(30, 13)).write(fixture.path("other.npz")).unwrap();
    let unfinished: String = fixture.read("together.jsonl").lines().take(2).map(|line| format!("{line}\n")).collect();
    fixture.write("cut.jsonl", unfinished);
    let changed = fixture.read("together.jsonl").replace("\"at_most\":", "\"at_most\": ");
    fixture.write("changed.jsonl", changed);
    for (line, problem) in [
        ("together.jsonl --graph other.npz", "certify, radius and collective"),
        (
            "together.jsonl together.jsonl --graph graph.npz",
            "has collective certificates of “together”, but an earlier file",
        ),
        ("a=together.jsonl a=adds.jsonl --graph graph.npz", "has collective certificates of “a”, but an earlier file"),
        (
            "certificates.jsonl adds.jsonl --graph graph.npz",
            "the certificates and the collective certificates of “certificates” are about different budgets",
        ),
        (
            "m=adds.jsonl m=radii.jsonl --graph graph.npz",
            "the radii and the collective certificates of “m” are about different budgets",
        ),
        ("margin.jsonl together.jsonl --graph graph.npz", "are about different margins"),
        (
            "m=ce.jsonl m=together.jsonl --graph graph.npz",
            "the radii and the collective certificates of “m” are of different models",
        ),
        ("cut.jsonl --graph graph.npz", "has 1 of 2"),
        ("changed.jsonl --graph graph.npz", "changed.jsonl"),
    ] {
        let run = fixture.run(&format!("report {line}"));
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{line}");
        assert!(run.stderr.contains(problem), "{line}: {}", run.stderr);
    }
    assert!(!fixture.exists("report.html"));
    let both = "report flips=certificates.jsonl adds=adds.jsonl --graph graph.npz";
    fixture.run(both).succeeded();
}

#[test]
fn hostile_names_stay_data() {
    let fixture = Fixture::new();
    let nasty = |what: &str, count: usize| {
        let name = |i: usize| match i % 4 {
            0 => format!("</script><script>alert('{what}{i}')</script>"),
            1 => format!("\u{202e}{what}\" onload='x' 🧑‍🚀{i}"),
            2 => format!("{what}{i} {}", "long ".repeat(2000)),
            _ => format!("__NODEPROOF_DATA__ {what}{i}"),
        };
        Some((0..count).map(name).collect())
    };
    let graph = common::graph(30, 12);
    let names = Names { nodes: nasty("node", 30), attributes: nasty("word", 12), classes: nasty("class", 3) };
    graph.with_names(names).unwrap().write(fixture.path("hostile.npz")).unwrap();
    let certify = "certify --graph hostile.npz --model model.safetensors --global-budget 2 --out certificates.jsonl";
    fixture.run(certify).succeeded();
    fixture.run_all(&["report", "<b>=certificates.jsonl", "--graph", "hostile.npz", "--title", "</title>"]).succeeded();
    let html = fixture.read("report.html");
    assert!(!html.contains("<script>alert"), "a name is markup");
    let data = data(&html);
    assert_eq!(data["nodes"]["name"][0], "</script><script>alert('node0')</script>");
    assert_eq!((&data["models"][0]["name"], &data["title"]), (&Value::from("<b>"), &Value::from("</title>")));
}

#[test]
fn what_does_not_fit_is_refused_with_a_remedy() {
    let fixture = with_results();
    named(common::graph(30, 13)).write(fixture.path("other.npz")).unwrap();
    model(13).write(fixture.path("other.safetensors")).unwrap();
    fixture.write("notes.txt", "hello\n");
    fixture
        .run("radius --graph graph.npz --model model.safetensors --add-only --max-budget 2 --out other.jsonl")
        .succeeded();
    let whole = fixture.read("certificates.jsonl");
    let cut: String = whole.lines().take(5).map(|line| format!("{line}\n")).collect();
    fixture.write("cut.jsonl", cut);
    fixture.run(
        "train --graph graph.npz --method ce --global-budget 2 --steps 2 --out ce.safetensors --log log.jsonl --quiet",
    );
    for (line, problem) in [
        ("report --graph graph.npz", "<[NAME=]FILE>..."),
        ("report certificates.jsonl", "--graph"),
        ("report none.jsonl --graph graph.npz", "cannot read none.jsonl"),
        ("report notes.txt --graph graph.npz", "not a file of certificates"),
        ("report cut.jsonl --graph graph.npz", "has 4 of 30 nodes"),
        ("report log.jsonl --graph graph.npz", "has steps of a training"),
        ("report certificates.jsonl --graph other.npz", "about another graph"),
        ("report certificates.jsonl certificates.jsonl --graph graph.npz", "an earlier file has, too"),
        ("report certificates.jsonl other.jsonl --graph graph.npz", "different budgets"),
        ("report certificates.jsonl --graph graph.npz --out certificates.jsonl", "is an input"),
        ("report certificates.jsonl --graph graph.npz --out no/report.html", "make it first"),
        ("report certificates.jsonl --graph graph.npz --out -", "a report is written to a file; give its name"),
    ] {
        let run = fixture.run(line);
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{line}");
        assert!(run.stderr.contains(problem), "{line}: {}", run.stderr);
    }
    assert!(!fixture.exists("report.html"));
}

#[test]
fn the_report_is_opened_where_that_is_asked_for() {
    let fixture = with_results();
    let opener = fixture.path("xdg-open");
    fs::write(&opener, "#!/bin/sh\nprintf '%s' \"$1\" > opened.part && mv opened.part opened\n").unwrap();
    fs::set_permissions(&opener, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", opener.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let run = |path: &str| {
        let mut command = fixture.command();
        command.env("PATH", path).args(["report", "certificates.jsonl", "--graph", "graph.npz", "--open", "--quiet"]);
        command.output().unwrap()
    };
    assert!(run(&path).status.success());
    for _ in 0..500 {
        if fixture.exists("opened") {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert_eq!(fixture.read("opened"), "report.html");
    let without = run("/nowhere");
    assert_eq!(without.status.code(), Some(2));
    assert!(String::from_utf8(without.stderr).unwrap().contains("report.html was written, but no browser"));
}

/// A graph that does not say what its nodes are called.
#[test]
fn names_are_not_needed() {
    let fixture = Fixture::new();
    let graph: Graph = common::graph(30, 12);
    graph.write(fixture.path("plain.npz")).unwrap();
    let certify = "certify --graph plain.npz --model model.safetensors --global-budget 2 --nodes 4-6 --out some.jsonl";
    fixture.run(certify).succeeded();
    fixture.run("report some.jsonl --graph plain.npz").succeeded();
    let data = data(&fixture.read("report.html"));
    assert_eq!((&data["nodes"]["name"][0], &data["graph"]["named"]), (&Value::from("node 4"), &Value::from(false)));
    assert_eq!(data["nodes"]["subjects"], 3);
}

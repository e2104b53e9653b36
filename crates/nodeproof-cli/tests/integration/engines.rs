//! The engines, their limits of time and `nodeproof bench engines`, end to end.
use serde_json::Value;

use crate::common::{self, Fixture, Run, json};

/// The example of the repository; one of its nodes needs branch and bound under this budget.
const PAPERS: &str = "--graph papers.npz --model papers.safetensors --global-budget 12 --local-budget 2";
const TIE: &str = "--graph tie.npz --model tie.safetensors --global-budget 1 --local-budget 1";

fn fixture() -> Fixture {
    let fixture = Fixture::new();
    common::copy_papers(&fixture);
    common::write_tie(&fixture);
    fixture
}

fn certify(fixture: &Fixture, more: &str) -> Run {
    fixture.run(&format!("certify {PAPERS} {more}")).succeeded()
}

fn summary(fixture: &Fixture, more: &str) -> Value {
    json(&certify(fixture, &format!("{more} --json")).stdout)
}

fn records(fixture: &Fixture, name: &str) -> Vec<Value> {
    fixture.read(name).lines().skip(1).map(json).collect()
}

/// The first node that the engine complete needed branches for.
fn branched(fixture: &Fixture) -> Value {
    certify(fixture, "--out all.jsonl");
    records(fixture, "all.jsonl").into_iter().find(|record| record.get("branches").is_some()).unwrap()
}

/// `text` as one line.
fn unwrapped(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_stronger_engine_settles_more_and_contradicts_nothing() {
    let fixture = fixture();
    let mut settled_before = 0;
    let mut verdicts_before: Vec<Value> = Vec::new();
    for engine in ["fast", "tight", "complete"] {
        let summary = summary(&fixture, &format!("--engine {engine} --out out.jsonl"));
        assert_eq!(summary["header"]["engine"], engine);
        let settled: u64 =
            ["fast", "tight", "complete"].map(|by| summary["settled"][by].as_u64().unwrap()).iter().sum();
        assert_eq!(settled + summary["all"]["undecided"].as_u64().unwrap(), 24, "{summary}");
        assert!(settled > settled_before, "{summary}");
        settled_before = settled;
        let verdicts: Vec<_> = records(&fixture, "out.jsonl").iter().map(|record| record["verdict"].clone()).collect();
        for (before, now) in verdicts_before.iter().zip(&verdicts) {
            assert!(before == now || *before == "undecided");
        }
        verdicts_before = verdicts;
    }
    assert_eq!(settled_before, 24, "complete settles all");
}

#[test]
fn complete_is_the_default_and_leaves_nothing_undecided() {
    let fixture = fixture();
    assert_eq!(summary(&fixture, "")["settled"], summary(&fixture, "--engine complete")["settled"]);
    let text = certify(&fixture, "").stdout;
    assert!(text.contains("engine  complete; settled by fast ") && !text.contains("hint"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn records_name_the_engine_that_settled_the_node_and_its_branches() {
    let fixture = fixture();
    certify(&fixture, "--out out.jsonl --csv out.csv");
    let all = records(&fixture, "out.jsonl");
    for engine in ["fast", "tight", "complete"] {
        assert!(all.iter().any(|record| record["engine"] == engine), "{engine}");
    }
    let csv = fixture.read("out.csv");
    for (record, row) in all.iter().zip(csv.lines().skip(1)) {
        let branches = record.get("branches").and_then(Value::as_u64);
        assert_eq!(branches.is_some(), record["engine"] == "complete", "{record}");
        let end = format!(",{},{},", record["engine"].as_str().unwrap(), branches.unwrap_or(0));
        assert!(row.ends_with(&end), "{row}");
    }
}

#[test]
fn bytes_do_not_depend_on_threads_with_any_engine() {
    let fixture = fixture();
    for engine in ["tight", "complete"] {
        certify(&fixture, &format!("--engine {engine} --time-limit none --threads 1 --out one.jsonl"));
        certify(&fixture, &format!("--engine {engine} --time-limit none --threads 2 --out two.jsonl"));
        assert_eq!(fixture.read("one.jsonl"), fixture.read("two.jsonl"), "{engine}");
    }
}

#[test]
fn a_weaker_engine_hints_at_a_stronger_one() {
    let fixture = fixture();
    for engine in ["fast", "tight"] {
        let undecided = summary(&fixture, &format!("--engine {engine}"))["all"]["undecided"].clone();
        let text = certify(&fixture, &format!("--engine {engine}")).stdout;
        assert!(
            text.contains(&format!("hint    --engine complete may settle the {undecided} undecided node")),
            "{text}"
        );
    }
}

#[test]
fn a_node_out_of_time_is_undecided_with_both_numbers() {
    let fixture = fixture();
    let node = branched(&fixture)["node"].clone();
    let more = format!("--nodes {node} --out out.jsonl");
    let text = certify(&fixture, &format!("{more} --time-limit 0")).stdout;
    assert!(text.contains("a longer --time-limit (now 0 s) may settle the 1 undecided node\n"), "{text}");
    let record = &records(&fixture, "out.jsonl")[0];
    assert_eq!(record["verdict"], "undecided");
    assert!(record["lower"].as_f64() <= Some(0.0) && record["upper"].as_f64() > Some(0.0), "{record}");
    let text = certify(&fixture, &format!("{more} --time-limit none --total-time-limit 0")).stdout;
    assert!(text.contains("a longer --total-time-limit (now 0 s) may settle"), "{text}");
    let summary = summary(&fixture, &format!("{more} --time-limit none"));
    assert_eq!((&summary["all"]["undecided"], &summary["settled"]["complete"]), (&0.into(), &1.into()));
}

#[test]
fn limits_of_time_may_differ_when_a_run_is_resumed() {
    let fixture = fixture();
    certify(&fixture, "--out out.jsonl");
    let whole = fixture.read("out.jsonl");
    let half: usize = whole.split_inclusive('\n').take(10).map(str::len).sum();
    fixture.write("out.jsonl.unfinished", &whole[..half]);
    certify(&fixture, "--out out.jsonl --resume --time-limit none --total-time-limit 3600");
    assert_eq!(fixture.read("out.jsonl"), whole);
}

#[test]
fn explain_names_the_engine() {
    let fixture = fixture();
    let record = branched(&fixture);
    let line = format!("explain {PAPERS} --node {}", record["node"]);
    let text = fixture.run(&line).succeeded().stdout;
    let words = format!("engine     settled by complete after {} subproblem", record["branches"]);
    assert!(text.contains(&words), "{words}\n{text}");
    assert!(unwrapped(&text).contains("every margin stays above 0") && text.contains(" > 0  holds"), "{text}");
    let story = json(&fixture.run(&format!("{line} --json")).succeeded().stdout);
    assert_eq!((&story["engine"], &story["branches"]), (&"complete".into(), &record["branches"]));

    let text = fixture.run(&format!("{line} --engine fast")).succeeded().stdout;
    for words in ["undecided: ", "a gap of ", "engine fast left it undecided", "hint --engine complete may settle it"] {
        assert!(unwrapped(&text).contains(words), "{words}\n{text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let text = fixture.run(&format!("{line} --time-limit 0")).succeeded().stdout;
    assert!(text.contains("hint       a longer --time-limit (now 0 s) may settle it"), "{text}");
    let refused = fixture.run(&format!("{line} --time-limit soon"));
    assert!(refused.code == 2 && refused.stderr.contains("number of seconds"), "{}", refused.stderr);
}

#[test]
fn a_tie_is_nonrobust_but_for_the_engine_fast() {
    let fixture = fixture();
    let verdict = |more: &str| {
        fixture.run(&format!("certify {TIE} {more} --out out.jsonl")).succeeded();
        records(&fixture, "out.jsonl").remove(0)
    };
    assert_eq!(verdict("--engine fast")["verdict"], "undecided");
    for engine in ["tight", "complete"] {
        let record = verdict(&format!("--engine {engine}"));
        assert_eq!((&record["verdict"], &record["witness_margin"]), (&"nonrobust".into(), &0.0.into()), "{record}");
    }
    let text = fixture.run(&format!("explain {TIE} --node 0")).succeeded().stdout;
    for words in ["nonrobust: one flip can bring another class level, a tie", "  ties\n", "then class 1 is level"] {
        assert!(text.contains(words), "{words}\n{text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn no_engine_is_recommended_where_numbers_overflow() {
    let fixture = fixture();
    common::write_overflowing(&fixture);
    let line = "--graph graph.npz --model huge.safetensors --global-budget 2";
    for engine in ["fast", "complete"] {
        let text = fixture.run(&format!("certify {line} --engine {engine}")).succeeded().stdout;
        assert!(text.contains("numbers overflow at 30 nodes") && !text.contains("may settle"), "{text}");
        let text = fixture.run(&format!("explain {line} --engine {engine} --node 1")).succeeded().stdout;
        assert!(text.contains("undecided") && !text.contains("hint"), "{text}");
    }
    let text = fixture.run("radius --graph graph.npz --model huge.safetensors --max-budget 3").succeeded().stdout;
    assert!(text.contains("30 nodes are not exact") && !text.contains("even without flips"), "{text}");
}

#[test]
fn the_benchmark_compares_the_engines() {
    let fixture = fixture();
    let line = "bench engines --graph papers.npz --model papers.safetensors --local-budget 2";
    let report = json(&fixture.run(&format!("{line} --json -q")).succeeded().stdout);
    let rows = report["rows"].as_array().unwrap();
    let keys: Vec<_> =
        rows.iter().map(|row| (row["global_budget"].as_u64().unwrap(), row["engine"].as_str().unwrap())).collect();
    let expected: Vec<_> =
        [5, 12, 25, 40].iter().flat_map(|&q| ["fast", "tight", "complete"].map(|engine| (q, engine))).collect();
    assert_eq!((&report["nodes"], keys), (&24.into(), expected));
    for row in rows {
        let nodes: u64 =
            ["robust", "nonrobust", "undecided"].iter().map(|&verdict| row[verdict].as_u64().unwrap()).sum();
        assert_eq!(nodes, 24, "{row}");
        let times = ["median_seconds", "percentile_95_seconds", "max_seconds"].map(|time| row[time].as_f64().unwrap());
        assert!(0.0 < times[0] && times.is_sorted() && row["cpu_seconds"].as_f64() > Some(0.0), "{row}");
        assert!(row["engine"] != "complete" || row["undecided"] == 0, "{row}");
    }
    let run = fixture.run(&format!("{line} --budgets 4,12 --sample 6"));
    assert!(run.code == 0 && run.stderr.contains("note: the tight engine, Q = 12, 6 nodes"), "{}", run.stderr);
    assert!(run.stdout.contains("6 of 24, evenly spaced") && run.stdout.contains("10 s a node"), "{}", run.stdout);
    assert!(run.stdout.lines().all(|line| line.chars().count() <= 80), "{}", run.stdout);
    let markdown = fixture.run(&format!("{line} --budgets 12 --time-limit 1 --markdown -q")).succeeded().stdout;
    assert!(
        markdown.lines().count() == 5 && markdown.lines().all(|line| line.matches('|').count() == 10),
        "{markdown}"
    );
}

#[test]
fn the_benchmark_of_growing_graphs_has_a_row_a_size() {
    let fixture = fixture();
    let line = "bench scale --sizes 300,100 --degree 4 --hub 20";
    let run = fixture.run(&format!("{line} --json"));
    assert!(run.code == 0 && run.stderr.contains("training a network on a graph of 100 nodes"), "{}", run.stderr);
    let report = json(&run.stdout);
    let rows = report["rows"].as_array().unwrap();
    assert_eq!(rows.iter().map(|row| row["nodes"].as_u64().unwrap()).collect::<Vec<_>>(), [100, 300]);
    for row in rows {
        let verdicts = ["robust", "nonrobust", "undecided"].iter().map(|&verdict| row[verdict].as_u64().unwrap());
        assert_eq!(Some(verdicts.sum()), row["nodes"].as_u64(), "{row}");
        assert!(row["cpu_seconds_per_node_in_all"].as_f64() > Some(0.0) && row["two_hop_entries"].as_f64() > Some(1.0));
    }
    assert!(report["exponent_of_nodes"].is_f64() && report["engine"] == "fast", "{report}");
    let text = fixture.run(&format!("{line} --engine complete --sample 9 -q")).succeeded().stdout;
    assert!(text.contains("complete, on one thread") && text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let markdown = fixture.run(&format!("{line} --markdown -q")).succeeded().stdout;
    assert_eq!(markdown.lines().filter(|line| line.matches('|').count() == 11).count(), 4, "{markdown}");
    for (more, words) in [
        ("--sizes 0", "numbers of nodes from 1 on"),
        ("--sizes 10", "(--sizes, --degree, --hub)"),
        ("--sizes 1000 --hub 2", "(--sizes, --degree, --hub)"),
        ("--sizes 100,x", "such as 1000,10000"),
        ("--sizes 100 --degree 4 --model papers.npz", "is a graph, not a model"),
        ("--sizes 100 --degree 4 --model papers.safetensors", "attributes"),
        ("--global-budget 0", "at least 1"),
        ("--json --markdown", "cannot be used with"),
    ] {
        let run = fixture.run(&format!("bench scale {more}"));
        assert!(run.code == 2 && run.stderr.contains(words), "{more}: {}", run.stderr);
    }
}

#[test]
fn the_benchmark_refuses_what_cannot_be_meant() {
    let fixture = fixture();
    let line = "bench engines --graph papers.npz --model papers.safetensors";
    for (more, words) in [
        ("--budgets 0", "at least 1"),
        ("--budgets 5,x", "whole number"),
        ("--budgets 5,99999", "99999 is more than"),
        ("--sample 0", "at least 1"),
        ("--time-limit -3", "number of seconds"),
        ("--json --markdown", "cannot be used with"),
    ] {
        let run = fixture.run(&format!("{line} {more}"));
        assert!(run.code == 2 && run.stderr.contains(words), "{more}: {}", run.stderr);
    }
}

//! Ctrl-C while `nodeproof certify` and `nodeproof radius` run.

#![cfg(unix)]
use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

use nodeproof::{Graph, Matrix, Model, Propagation};

use crate::common::{self, Fixture, json};

const ARGUMENTS: &str = "certify --graph large.npz --model large.safetensors --global-budget 20 --local-budget 5 --engine fast --threads 1 --out out.jsonl";

/// A graph that takes a while to certify.
fn fixture() -> Fixture {
    let fixture = Fixture::new();
    common::graph(40_000, 300).write(fixture.path("large.npz")).unwrap();
    common::model(300).write(fixture.path("large.safetensors")).unwrap();
    fixture
}

#[test]
fn an_interrupted_run_leaves_valid_lines_and_can_be_resumed() {
    let fixture = fixture();
    fixture.write("out.jsonl", "precious");
    let run = fixture.start(ARGUMENTS);
    // A header, and some certificates.
    fixture.wait_for("out.jsonl.unfinished", 10_000);
    run.signal("INT");
    let run = run.wait();
    assert_eq!(run.code, 130, "{}", run.stderr);

    let text = fixture.read("out.jsonl.unfinished");
    assert!(text.ends_with('\n'), "no half line");
    let done = text.lines().skip(1).map(|line| json(line)["node"].as_u64().unwrap()).collect::<Vec<_>>();
    assert!(done.iter().copied().eq(0..done.len() as u64) && done.len() < 40_000, "a prefix of the nodes");
    assert!(run.stderr.contains(&format!("interrupted after {} of 40000 nodes", done.len())), "{}", run.stderr);
    assert!(run.stderr.contains("add --resume to continue"), "{}", run.stderr);
    assert_eq!(fixture.read("out.jsonl"), "precious", "what was there stays until there is something better");

    let run = fixture.run(&format!("{ARGUMENTS} --resume --json"));
    assert_eq!(run.code, 0, "{}", run.stderr);
    let summary = json(&run.stdout);
    assert_eq!((&summary["all"]["nodes"], &summary["resumed"]), (&40_000.into(), &done.len().into()));
    let resumed = fixture.read("out.jsonl");
    assert!(resumed.starts_with(&text) && resumed.lines().count() == 40_001);
    assert!(!fixture.exists("out.jsonl.unfinished"));
}

#[test]
fn an_interrupted_search_for_radii_can_be_resumed() {
    let fixture = fixture();
    fixture.write("radii.jsonl", "precious");
    let line =
        "radius --graph large.npz --model large.safetensors --max-budget 12 --local-budget 5 --engine fast --threads 1";
    let run = fixture.start(&format!("{line} --out radii.jsonl"));
    // A header, and some verdicts.
    fixture.wait_for("radii.jsonl.unfinished", 10_000);
    run.signal("INT");
    let run = run.wait();
    assert_eq!((run.code, run.stdout.as_str()), (130, ""), "{}", run.stderr);
    let verdicts = fixture.read("radii.jsonl.unfinished").lines().count() - 1;
    let words = format!("interrupted after {verdicts} verdicts; add --resume to continue");
    assert!(run.stderr.contains(&words), "{words}\n{}", run.stderr);
    assert_eq!(fixture.read("radii.jsonl"), "precious");
    let run = fixture.run(&format!("{line} --out radii.jsonl --resume --json"));
    assert_eq!((run.code, &json(&run.stdout)["resumed"]), (0, &verdicts.into()), "{}", run.stderr);
    assert_eq!(fixture.read("radii.jsonl").lines().count(), 40_001);
    assert!(!fixture.exists("radii.jsonl.unfinished"));
}

#[test]
fn a_search_that_is_interrupted_at_once_leaves_nothing() {
    let fixture = fixture();
    let line = "radius --graph large.npz --model large.safetensors --local-budget 5 --engine fast --threads 1";
    let run = fixture.start(&format!("{line} --csv radii.csv"));
    wait_until_it_listens(run.id());
    run.signal("INT");
    let run = run.wait();
    assert_eq!((run.code, run.stdout.as_str()), (130, ""), "{}", run.stderr);
    assert!(run.stderr.contains("interrupted "), "{}", run.stderr);
    assert!(!fixture.exists("radii.csv"));
}

/// Whether some attributes' weights, all of them even, add up to an odd number: a question that takes a search over subsets, of which no
/// bound knows that the answer is no.
fn write_hard_problem(fixture: &Fixture) {
    const ATTRIBUTES: u32 = 60;
    let weights: Vec<f64> =
        (0..ATTRIBUTES).map(|d| 2.0 * f64::from((d * d * 7919 + d * 104_729 + 1) % 1_000_003)).collect();
    let odd = 2.0 * (weights.iter().sum::<f64>() / 6.0).floor() + 1.0;
    let first = weights.iter().flat_map(|&weight| [weight, -weight]).collect();
    let layers = vec![
        (Matrix::from_values(weights.len(), 2, first), vec![-odd, odd]),
        (Matrix::from_values(2, 2, vec![1.0, 0.0, 1.0, 0.0]), vec![0.0, 0.5]),
    ];
    Graph::new(1, ATTRIBUTES as usize, &[], &[]).unwrap().write(fixture.path("hard.npz")).unwrap();
    Model::gcn(layers, Propagation::Identity).unwrap().write(fixture.path("hard.safetensors")).unwrap();
}

#[test]
fn a_search_within_one_node_is_interrupted() {
    let fixture = Fixture::new();
    write_hard_problem(&fixture);
    let line =
        "certify --graph hard.npz --model hard.safetensors --global-budget 30 --local-budget 30 --time-limit 600";
    let run = fixture.start(&format!("{line} --out out.jsonl"));
    let start = Instant::now();
    wait_until_it_listens(run.id());
    sleep(Duration::from_millis(500));
    run.signal("INT");
    let run = run.wait();
    assert_eq!(run.code, 130, "{}", run.stderr);
    assert!(run.stderr.contains("interrupted after 0 of 1 node"), "{}", run.stderr);
    assert!(start.elapsed() < Duration::from_secs(300), "it was not the time limit that ended it");
}

/// Waits for a handler of SIGINT that the system knows of.
fn wait_until_it_listens(process: u32) {
    let patience = Instant::now();
    while !listens(process) {
        assert!(patience.elapsed() < Duration::from_secs(60), "the run does not begin");
        sleep(Duration::from_millis(5));
    }
}

/// Whether the process catches SIGINT; where the system does not say, after a while.
fn listens(process: u32) -> bool {
    const SIGINT: u64 = 2;
    let Ok(status) = fs::read_to_string(format!("/proc/{process}/status")) else {
        sleep(Duration::from_millis(500));
        return true;
    };
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap_or_default();
    u64::from_str_radix(caught.trim(), 16).is_ok_and(|signals| signals & (1 << (SIGINT - 1)) != 0)
}

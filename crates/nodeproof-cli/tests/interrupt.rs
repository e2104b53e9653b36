//! Ctrl-C while `nodeproof certify` and `nodeproof radius` run.

#![allow(clippy::unwrap_used)]
#![cfg(unix)]

mod common;

use std::fs;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use common::{Fixture, json};

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
    let child = Command::new(env!("CARGO_BIN_EXE_nodeproof"))
        .args(ARGUMENTS.split(' '))
        .current_dir(fixture.path(""))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Ctrl-C is listened for before the header is written.
    let patience = Instant::now();
    while fs::metadata(fixture.path("out.jsonl")).map_or(0, |file| file.len()) == 0 {
        assert!(patience.elapsed() < Duration::from_secs(60), "the run does not begin");
        sleep(Duration::from_millis(5));
    }
    sleep(Duration::from_millis(150));
    Command::new("sh").args(["-c", &format!("kill -INT {}", child.id())]).status().unwrap();
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();

    let text = fixture.read("out.jsonl");
    assert!(text.ends_with('\n'), "no half line");
    let done = text.lines().skip(1).map(|line| json(line)["node"].as_u64().unwrap()).collect::<Vec<_>>();
    assert!(done.iter().copied().eq(0..done.len() as u64), "a prefix of the nodes");
    match output.status.code() {
        Some(130) => {
            assert!(done.len() < 40_000);
            assert!(stderr.contains(&format!("interrupted after {} of 40000 nodes", done.len())), "{stderr}");
            assert!(stderr.contains("--resume"), "{stderr}");
        }
        // A very fast machine may be done before the signal.
        code => assert_eq!((code, done.len()), (Some(0), 40_000), "{stderr}"),
    }

    let run = fixture.run(&format!("{ARGUMENTS} --resume --json"));
    assert_eq!(run.code, 0, "{}", run.stderr);
    let summary = json(&run.stdout);
    assert_eq!((&summary["all"]["nodes"], &summary["resumed"]), (&40_000.into(), &done.len().into()));
    let resumed = fixture.read("out.jsonl");
    assert!(resumed.starts_with(&text) && resumed.lines().count() == 40_001);
}

#[test]
fn an_interrupted_search_for_radii_writes_nothing() {
    let fixture = fixture();
    fixture.write("radii.jsonl", "precious");
    let line = "radius --graph large.npz --model large.safetensors --local-budget 5 --engine fast --threads 1 --out radii.jsonl";
    let child = Command::new(env!("CARGO_BIN_EXE_nodeproof"))
        .args(line.split(' '))
        .current_dir(fixture.path(""))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A handler that is listening is one that the system knows of.
    let patience = Instant::now();
    while !listens(child.id()) {
        assert!(patience.elapsed() < Duration::from_secs(60), "the run does not begin");
        sleep(Duration::from_millis(5));
    }
    Command::new("sh").args(["-c", &format!("kill -INT {}", child.id())]).status().unwrap();
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(130), "{stderr}");
    assert!(stderr.contains("interrupted; nothing was written, since radii are at the end"), "{stderr}");
    assert_eq!((output.stdout.len(), fixture.read("radii.jsonl").as_str()), (0, "precious"));
}

/// Whether the process catches SIGINT; where the system does not tell, after a while.
fn listens(process: u32) -> bool {
    const SIGINT: u64 = 2;
    let Ok(status) = fs::read_to_string(format!("/proc/{process}/status")) else {
        sleep(Duration::from_millis(500));
        return true;
    };
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap_or_default();
    u64::from_str_radix(caught.trim(), 16).is_ok_and(|signals| signals & (1 << (SIGINT - 1)) != 0)
}

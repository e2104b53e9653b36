//! Runs that are killed again and again, at any moment: whatever is resumed ends in the same bytes, and nothing stays behind.

#![cfg(unix)]
use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::common::{self, Fixture};

/// Random numbers that are the same in every run of the test.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// A graph on which a search takes a while.
fn fixture(nodes: u32) -> Fixture {
    let fixture = Fixture::new();
    common::graph(nodes, 60).write(fixture.path("graph.npz")).unwrap();
    common::model(60).write(fixture.path("model.safetensors")).unwrap();
    fixture
}

/// Kills `line` so many times, lets it finish, and compares its outputs with those of a run that was left alone.
///
/// Every third time it is killed as soon as it has begun to write, however busy the machine is; otherwise at any moment of
/// its first two thirds, so that what was resumed is killed near its end, too.
fn survives(fixture: &Fixture, line: &str, kills: usize) {
    let outputs = ["out.jsonl", "out.csv"];
    let begin = Instant::now();
    fixture.run(&format!("{line} --out out.jsonl --csv out.csv")).succeeded();
    let longest = 2 * begin.elapsed().as_micros() as u64 / 3;
    let whole = outputs.map(|name| fixture.read(name));
    outputs.iter().for_each(|name| fs::remove_file(fixture.path(name)).unwrap());
    fixture.temporary();
    let names = fixture.names();
    let line = format!("{line} --out out.jsonl --csv out.csv --resume --quiet");

    let (mut random, mut in_the_middle) = (Random(12), 0);
    for kill in 0..kills {
        let mut run = fixture.start(&line);
        if kill % 3 == 0 {
            while !fixture.exists("out.jsonl.unfinished") && !run.ended() {
                sleep(Duration::from_micros(100));
            }
        } else {
            sleep(Duration::from_micros(random.below(longest)));
        }
        match run.kill() {
            // It was over before it could be killed: from the beginning again.
            Some(run) => {
                assert_eq!((run.code, run.stderr.as_str()), (0, ""), "kill {kill}");
                assert!(outputs.map(|name| fixture.read(name)) == whole, "kill {kill}");
                outputs.iter().for_each(|name| fs::remove_file(fixture.path(name)).unwrap());
            }
            None => in_the_middle += usize::from(fixture.exists("out.jsonl.unfinished")),
        }
    }
    assert!(in_the_middle > 0, "{kills} kills, none in the middle of a run");
    let last = fixture.start(&line).wait();
    assert_eq!((last.code, last.stderr.as_str()), (0, ""));
    assert!(outputs.map(|name| fixture.read(name)) == whole, "{in_the_middle} kills in the middle");
    let left: Vec<_> = fixture.names().into_iter().filter(|name| !outputs.contains(&name.as_str())).collect();
    assert_eq!(left, names, "nothing stays behind");
    assert_eq!(fs::read_dir(fixture.temporary()).unwrap().count(), 0, "no lock stays behind");
}

#[test]
fn a_search_for_radii_survives_a_hundred_kills() {
    let fixture = fixture(250);
    let line = "radius --graph graph.npz --model model.safetensors --max-budget 24 --local-budget 3 --threads 1";
    survives(&fixture, line, 100);
}

#[test]
fn a_scan_survives_kills() {
    let fixture = fixture(500);
    let line = "radius --graph graph.npz --model model.safetensors --max-budget 24 --local-budget 3 --threads 2 --engine \
                fast --scan";
    survives(&fixture, line, 30);
}

#[test]
fn certifying_survives_kills() {
    let fixture = fixture(600);
    let line = "certify --graph graph.npz --model model.safetensors --global-budget 12 --local-budget 3 --threads 1";
    survives(&fixture, line, 30);
}

//! What is written: by one run at a time, never over an input, and whole or not at all.

#![cfg(unix)]
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use crate::common::{self, Fixture, Run, json};

const BUSY: &str = "another run of nodeproof is writing it; wait for its end or choose another name";
const TRAIN: &str = "train --graph graph.npz --method ce --global-budget 2 --train 30% --steps 40 --quiet";

/// A graph that takes a while, for runs that must not be over too soon.
fn with_large() -> Fixture {
    let fixture = Fixture::new();
    common::graph(40_000, 300).write(fixture.path("large.npz")).unwrap();
    common::model(300).write(fixture.path("large.safetensors")).unwrap();
    fixture
}

/// Runs the second run of two in the same place for temporary files.
fn second(fixture: &Fixture, line: &str) -> Run {
    fixture.start(line).wait()
}

#[track_caller]
fn refused(run: &Run, words: &str) {
    assert!(run.code == 2 && run.stderr.contains(words), "wants: {words}\nsays: {}", run.stderr);
    assert_eq!(run.stdout, "");
}

/// What is compressed is read, checked and resumed as if it were not.
#[test]
fn results_are_compressed_on_request() {
    let fixture = Fixture::new();
    common::graph(60, 12).write(fixture.path("graph.npz")).unwrap();
    common::model(12).write(fixture.path("model.safetensors")).unwrap();
    let certify = "certify --graph graph.npz --model model.safetensors --global-budget 3 --local-budget 2 --quiet";
    let read = |name: &str| std::fs::read(fixture.path(name)).unwrap();
    fixture.run(&format!("{certify} --out plain.jsonl")).succeeded();
    fixture.run(&format!("{certify} --out packed.jsonl.gz")).succeeded();
    let packed = read("packed.jsonl.gz");
    assert!(packed.starts_with(&[0x1f, 0x8b]) && packed.len() < read("plain.jsonl").len() / 2);
    assert!(!fixture.path("packed.jsonl.gz.unfinished").exists());
    let of = |name: &str| nodeproof::results::Certificates::read(fixture.path(name)).unwrap();
    assert_eq!(of("packed.jsonl.gz"), of("plain.jsonl"));
    fixture.run(&format!("{certify} --out packed.jsonl.gz --resume")).succeeded();
    assert_eq!(read("packed.jsonl.gz"), packed, "resuming what is complete changes nothing");
    let other = fixture.run(&format!("{} --out packed.jsonl.gz --resume", certify.replace("budget 3", "budget 2")));
    assert_eq!(other.code, 2);
    assert!(other.stderr.contains("budget"), "{}", other.stderr);
    assert_eq!(read("packed.jsonl.gz"), packed);
    assert!(!fixture.path("packed.jsonl.gz.unfinished").exists(), "nothing is left behind");
    std::fs::write(fixture.path("packed.jsonl.gz"), &packed[..packed.len() - 20]).unwrap();
    assert_eq!(fixture.run("report packed.jsonl.gz --graph graph.npz").code, 2);
    let radius = "radius --graph graph.npz --model model.safetensors --max-budget 3 --local-budget 2 --quiet";
    fixture.run(&format!("{radius} --out plain-radii.jsonl")).succeeded();
    fixture.run(&format!("{radius} --out radii.jsonl.gz")).succeeded();
    assert!(read("radii.jsonl.gz").starts_with(&[0x1f, 0x8b]));
    let of = |name: &str| nodeproof::results::Radii::read(fixture.path(name)).unwrap();
    assert_eq!(of("radii.jsonl.gz"), of("plain-radii.jsonl"));
}

#[test]
fn two_runs_do_not_write_the_same_results() {
    let fixture = with_large();
    let large = "--graph large.npz --model large.safetensors --local-budget 5 --engine fast --threads 1";
    let small = "--graph graph.npz --model model.safetensors --out out.jsonl";
    for (command, budget) in [("certify", "--global-budget 20"), ("radius", "--max-budget 30")] {
        fixture.write("out.jsonl", "precious");
        let first = fixture.start(&format!("{command} {large} {budget} --out out.jsonl --csv out.csv"));
        fixture.wait_for("out.jsonl.unfinished", 1);
        let before = fs::read(fixture.path("out.jsonl")).unwrap();
        for resume in ["", "--resume"] {
            refused(&second(&fixture, &format!("certify {small} --global-budget 2 {resume}")), BUSY);
            refused(&second(&fixture, &format!("radius {small} --max-budget 2 {resume}")), BUSY);
        }
        refused(
            &second(
                &fixture,
                &format!("certify {small} --global-budget 2 --out ./out.jsonl").replacen("--out out.jsonl ", "", 1),
            ),
            BUSY,
        );
        refused(
            &second(&fixture, "certify --graph graph.npz --model model.safetensors --global-budget 2 --csv out.csv"),
            BUSY,
        );
        assert_eq!((before.as_slice(), first.kill().is_none()), (b"precious".as_slice(), true), "the first went on");
        // Nobody holds what a killed run held.
        second(&fixture, &format!("{command} {small} {} --csv out.csv", budget.replace("20", "2"))).succeeded();
        assert_ne!(fixture.read("out.jsonl"), "precious");
        assert!(!fixture.exists("out.jsonl.unfinished"));
        fs::remove_file(fixture.path("out.jsonl")).unwrap();
    }
}

#[test]
fn two_runs_do_not_train_into_the_same_files() {
    let fixture = Fixture::new();
    let long = TRAIN.replace("--steps 40", "--steps 2000000 --patience none");
    let files = "--out m.safetensors --log m.jsonl --checkpoint c --checkpoint-every 10 --write-split s.json";
    let first = fixture.start(&format!("{long} {files}"));
    fixture.wait_for("c", 1);
    for files in [
        "--out m.safetensors",
        "--out n.safetensors --log m.jsonl",
        "--out n.safetensors --checkpoint c",
        "--out n.safetensors --checkpoint c --resume",
        "--out n.safetensors --write-split s.json",
    ] {
        refused(&second(&fixture, &format!("{TRAIN} {files}")), BUSY);
    }
    refused(&second(&fixture, "data split --graph graph.npz --out s.json"), BUSY);
    refused(&second(&fixture, "model convert model.safetensors m.safetensors"), BUSY);
    assert!(first.kill().is_none() && !fixture.exists("n.safetensors") && !fixture.exists("m.safetensors"));
    second(&fixture, &format!("{TRAIN} {files}")).succeeded();
    assert_eq!(fixture.read("m.jsonl").lines().count(), 41);
    assert_eq!(fs::read_dir(fixture.temporary()).unwrap().count(), 0, "no lock stays");
}

#[test]
fn inputs_are_recognised_under_every_name() {
    let fixture = Fixture::new();
    fs::create_dir(fixture.path("folder")).unwrap();
    fs::hard_link(fixture.path("graph.npz"), fixture.path("hard")).unwrap();
    symlink("graph.npz", fixture.path("soft")).unwrap();
    symlink("../soft", fixture.path("folder/soft")).unwrap();
    fs::hard_link(fixture.path("model.safetensors"), fixture.path("weights")).unwrap();
    fixture.write("nodes.unfinished", "1 2");
    let before = fixture.listing();
    let base = "--graph graph.npz --model model.safetensors";
    let lines = |name: &str| {
        [
            format!("certify {base} --global-budget 2 --out {name}"),
            format!("certify {base} --global-budget 2 --out {name} --resume"),
            format!("certify {base} --global-budget 2 --csv {name}"),
            format!("radius {base} --out {name}"),
            format!("radius {base} --csv {name}"),
            format!("{TRAIN} --out m.safetensors --log {name}"),
            format!("{TRAIN} --out m.safetensors --checkpoint {name}"),
            format!("{TRAIN} --out m.safetensors --checkpoint {name} --resume"),
            format!("{TRAIN} --out m.safetensors --write-split {name}"),
            format!("data split --graph graph.npz --out {name}"),
        ]
    };
    for name in ["hard", "soft", "folder/soft", "folder/../hard", "graph.npz", "./graph.npz"] {
        for line in lines(name) {
            refused(&fixture.run(&line), "an input of this command; choose another name");
        }
    }
    refused(&fixture.run(&format!("certify {base} --global-budget 2 --out weights")), "an input of this command");
    // What is written on the way to the output counts, too.
    let on_the_way = format!("certify {base} --global-budget 2 --nodes @nodes.unfinished --out nodes");
    refused(&fixture.run(&on_the_way), "until it is complete it is written to nodes.unfinished, an input");
    assert_eq!(fixture.listing(), before);
}

#[test]
fn outputs_that_are_one_file_are_refused() {
    let fixture = Fixture::new();
    fixture.write("a", "");
    fs::hard_link(fixture.path("a"), fixture.path("b")).unwrap();
    symlink("c", fixture.path("d")).unwrap();
    for (one, other) in [("a", "b"), ("c", "d"), ("e", "e.unfinished")] {
        refused(&fixture.certify(&format!("--out {one} --csv {other}")), "same place; give them different files");
        let both = format!("{TRAIN} --out m.safetensors --log {one} --checkpoint {other}");
        refused(&fixture.run(&both), "--log and --checkpoint both write");
    }
}

/// Runs a line where no file may become larger than so many kilobytes.
fn limited(fixture: &Fixture, kilobytes: usize, line: &str) -> Run {
    // Without the trap, the signal would end the process before it could say anything.
    let program = env!("CARGO_BIN_EXE_nodeproof");
    let script = format!("trap '' XFSZ; ulimit -f {kilobytes}; exec {program} {line}");
    let output = Command::new("bash").args(["-c", &script]).current_dir(fixture.path("")).output().unwrap();
    Run {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

fn has_bash() -> bool {
    Command::new("bash").arg("-c").arg("true").status().is_ok_and(|status| status.success())
}

#[test]
fn a_full_disk_keeps_the_old_results_and_the_run() {
    if !has_bash() {
        return;
    }
    let fixture = Fixture::new();
    let base = "--graph graph.npz --model model.safetensors";
    for (command, more) in [("certify", "--global-budget 2"), ("radius", "--max-budget 6")] {
        let line = format!("{command} {base} {more}");
        fixture.run(&format!("{line} --out whole.jsonl --csv whole.csv")).succeeded();
        for (kilobytes, words) in [(0, "out.jsonl"), (3, "the records so far are in out.jsonl.unfinished")] {
            fixture.write("out.jsonl", "precious");
            fixture.write("out.csv", "a table");
            let run = limited(&fixture, kilobytes, &format!("{line} --out out.jsonl --csv out.csv"));
            refused(&run, words);
            assert!(run.stderr.contains("File too large") && run.stderr.contains("room"), "{}", run.stderr);
            assert_eq!((fixture.read("out.jsonl"), fixture.read("out.csv")), ("precious".into(), "a table".into()));
            assert_eq!(fixture.exists("out.jsonl.unfinished"), kilobytes > 0, "{command}");
            fs::remove_file(fixture.path("out.jsonl")).unwrap();
            fixture.run(&format!("{line} --out out.jsonl --csv out.csv --resume")).succeeded();
            assert_eq!(fixture.read("out.jsonl"), fixture.read("whole.jsonl"), "{command}");
            assert_eq!(fixture.read("out.csv"), fixture.read("whole.csv"), "{command}");
        }
        // A table alone: everything is known before it is written, and the old one stays.
        fixture.write("out.csv", "a table");
        refused(&limited(&fixture, 0, &format!("{line} --csv out.csv")), "cannot write out.csv: File too large");
        assert_eq!(fixture.read("out.csv"), "a table");
    }
    let names = fixture.names();
    assert!(names.iter().all(|name| !name.contains(".part") && !name.contains(".unfinished")), "{names:?}");
}

#[test]
fn a_full_disk_keeps_the_old_network_log_checkpoint_split_and_report() {
    if !has_bash() {
        return;
    }
    let fixture = Fixture::new();
    fixture.certify("--out certificates.jsonl").succeeded();
    let files = "--out m.safetensors --log m.jsonl --checkpoint c --write-split s.json";
    fixture.run(&format!("{TRAIN} {files}")).succeeded();
    fixture.write("report.html", "a report");
    let before = fixture.listing();
    for (kilobytes, line) in [
        (1, format!("{TRAIN} --seed 1 --out m.safetensors")),
        (1, format!("{TRAIN} --seed 1 --out n.safetensors --log m.jsonl")),
        (1, format!("{TRAIN} --seed 1 --out n.safetensors --checkpoint c")),
        (0, format!("{TRAIN} --seed 1 --out n.safetensors --write-split s.json")),
        (0, "data split --graph graph.npz --train 30% --out s.json".to_owned()),
        (0, "model convert model.safetensors m.safetensors".to_owned()),
        (1, "report certificates.jsonl --graph graph.npz".to_owned()),
    ] {
        let run = limited(&fixture, kilobytes, &line);
        assert!(run.code == 2 && run.stderr.contains("File too large"), "{line}: {}", run.stderr);
        let _ = fs::remove_file(fixture.path("m.jsonl.unfinished"));
        assert_eq!(fixture.listing(), before, "{line}");
    }
}

#[test]
fn pipes_and_devices_are_written_to() {
    let fixture = Fixture::new();
    fixture.certify("--out whole.jsonl --csv whole.csv").succeeded();
    let status = Command::new("mkfifo").arg(fixture.path("pipe")).status().unwrap();
    assert!(status.success());
    let run = fixture
        .start("certify --graph graph.npz --model model.safetensors --global-budget 2 --out pipe --csv /dev/null");
    assert_eq!(fixture.read("pipe"), fixture.read("whole.jsonl"));
    assert_eq!(run.wait().code, 0);
    let radius = "radius --graph graph.npz --model model.safetensors --max-budget 3";
    fixture.run(&format!("{radius} --out radii.jsonl")).succeeded();
    let run = fixture.start(&format!("{radius} --out pipe --resume"));
    assert_eq!(fixture.read("pipe"), fixture.read("radii.jsonl"));
    assert_eq!(run.wait().code, 0);
    fixture.certify("--out /dev/null --csv whole.csv").succeeded();
    fixture
        .run(&format!("{TRAIN} --out m.safetensors --log /dev/null --checkpoint c --checkpoint-every 10"))
        .succeeded();
    fixture.run(&format!("{TRAIN} --out m.safetensors --log /dev/null --checkpoint c --resume")).succeeded();
    fixture.run(&format!("{TRAIN} --out m.safetensors --checkpoint /dev/null")).succeeded();
    assert!(!Path::new("/dev/null").is_file());
    if Path::new("/dev/full").exists() {
        for more in ["--out /dev/full", "--csv /dev/full"] {
            refused(&fixture.certify(more), "No space left on device");
        }
        refused(&fixture.run(&format!("{radius} --out /dev/full")), "No space left on device");
    }
    let names = fixture.names();
    assert!(names.iter().all(|name| !name.contains(".part") && !name.contains(".unfinished")), "{names:?}");
}

#[test]
fn links_to_outputs_stay_links() {
    let fixture = Fixture::new();
    fs::create_dir(fixture.path("elsewhere")).unwrap();
    symlink("elsewhere/out.jsonl", fixture.path("out.jsonl")).unwrap();
    fixture.certify("--out out.jsonl").succeeded();
    assert!(fixture.path("out.jsonl").is_symlink());
    assert_eq!(json(fixture.read("elsewhere/out.jsonl").lines().next().unwrap())["nodes"], 30);
}

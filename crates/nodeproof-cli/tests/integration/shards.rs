//! Runs in parts: `--shard`, and `merge`.

use crate::common::{Fixture, json};

const RADIUS: &str = "radius --graph graph.npz --model model.safetensors --local-budget 2 --max-budget 4 --quiet";

/// Certifies all parts of a run with these options.
fn certify_parts(fixture: &Fixture, parts: usize, more: &str) -> String {
    let names: Vec<String> = (1..=parts).map(|part| format!("part-{part}.jsonl")).collect();
    for (name, part) in names.iter().zip(1..) {
        fixture.certify(&format!("--shard {part}/{parts} --out {name} {more}")).succeeded();
    }
    names.join(" ")
}

#[test]
fn parts_make_up_the_whole_byte_for_byte() {
    let fixture = Fixture::new();
    for (parts, more) in [(1, ""), (3, "--proof"), (4, "--nodes 20-29,3,7"), (7, "--nodes 0-4 --engine fast")] {
        fixture.certify(&format!("--out whole.jsonl {more}")).succeeded();
        let names = certify_parts(&fixture, parts, more);
        let reversed: Vec<&str> = names.split(' ').rev().collect();
        let run = fixture.run(&format!("merge {} --out merged.jsonl", reversed.join(" "))).succeeded();
        assert!(fixture.read("merged.jsonl") == fixture.read("whole.jsonl"), "{parts} parts, {more}");
        assert!(run.stdout.contains("merged.jsonl"), "{}", run.stdout);
        let run = fixture.run(&format!("merge {names} --out merged.jsonl --json")).succeeded();
        assert_eq!(json(&run.stdout)["parts"], parts);
        let run = fixture.run(&format!("merge {names} --out -"));
        assert!(
            run.code == 0 && run.stdout == fixture.read("whole.jsonl") && run.stderr.contains("merged"),
            "{}",
            run.stderr
        );
    }
}

#[test]
fn radii_have_parts_too() {
    let fixture = Fixture::new();
    fixture.run(&format!("{RADIUS} --out whole.jsonl")).succeeded();
    for part in 1..=2 {
        fixture.run(&format!("{RADIUS} --shard {part}/2 --out part-{part}.jsonl")).succeeded();
    }
    fixture.run("merge part-1.jsonl part-2.jsonl --out merged.jsonl.gz").succeeded();
    fixture.run("merge part-2.jsonl part-1.jsonl --out merged.jsonl --quiet").succeeded();
    assert!(fixture.read("merged.jsonl") == fixture.read("whole.jsonl"));
}

#[test]
fn a_part_is_resumed_as_the_same_part_alone() {
    let fixture = Fixture::new();
    fixture.certify("--shard 2/3 --out part.jsonl").succeeded();
    let whole = fixture.read("part.jsonl");
    let cut: String = whole.split_inclusive('\n').take(4).collect();
    std::fs::remove_file(fixture.path("part.jsonl")).unwrap();
    fixture.write("part.jsonl.unfinished", &cut);
    let run = fixture.certify("--shard 1/3 --out part.jsonl --resume");
    assert!(run.code == 2 && run.stderr.contains("cannot resume"), "{}", run.stderr);
    fixture.certify("--shard 2/3 --out part.jsonl --resume").succeeded();
    assert_eq!(fixture.read("part.jsonl"), whole);
}

#[test]
fn what_is_not_the_parts_of_one_run_is_refused() {
    let fixture = Fixture::new();
    certify_parts(&fixture, 3, "");
    fixture.certify("--out whole.jsonl").succeeded();
    fixture.certify("--shard 2/3 --engine fast --out fast.jsonl").succeeded();
    fixture.certify("--shard 2/4 --out four.jsonl").succeeded();
    fixture.run(&format!("{RADIUS} --shard 2/3 --out radii.jsonl")).succeeded();
    for (files, words) in [
        ("part-1.jsonl part-3.jsonl", "1 of 3 shards are missing: 2"),
        ("part-1.jsonl part-2.jsonl part-2.jsonl", "part-2.jsonl: it is the shard 2, as is another file"),
        ("part-1.jsonl whole.jsonl", "whole.jsonl: it is no shard; certify --shard"),
        ("part-1.jsonl fast.jsonl part-3.jsonl", "fast.jsonl: it is about another graph, model, budget or run"),
        ("part-1.jsonl four.jsonl part-3.jsonl", "four.jsonl: it is about another"),
        ("part-1.jsonl radii.jsonl part-3.jsonl", "some of the files have certificates and others radii"),
        ("part-1.jsonl none.jsonl", "none.jsonl"),
        ("graph.npz", "graph.npz"),
    ] {
        let before = fixture.listing();
        let run = fixture.run(&format!("merge {files} --out merged.jsonl"));
        assert!(run.code == 2 && run.stderr.contains(words), "wants: {words}\nsays: {}", run.stderr);
        assert!(fixture.listing() == before, "nothing is written");
    }
    let run = fixture.run("merge part-1.jsonl part-2.jsonl part-3.jsonl --out part-1.jsonl");
    assert!(run.code == 2, "{}", run.stderr);
    for shard in ["0/3", "4/3", "1/0", "1", "a/b", "-1/3", "1/3/4"] {
        let run = fixture.certify(&format!("--shard {shard}"));
        assert!(run.code == 2 && run.stderr.contains("such as 1/4"), "{shard}: {}", run.stderr);
    }
}

#[test]
fn parts_of_other_nodes_that_overlap_are_refused() {
    let fixture = Fixture::new();
    fixture.certify("--nodes 4-13 --shard 1/2 --out part-1.jsonl").succeeded();
    fixture.certify("--nodes 3-12 --shard 2/2 --out part-2.jsonl").succeeded();
    let run = fixture.run("merge part-1.jsonl part-2.jsonl --out merged.jsonl");
    assert!(run.code == 2 && run.stderr.contains("is in two shards"), "{}", run.stderr);
}

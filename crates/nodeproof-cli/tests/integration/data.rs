//! `nodeproof data`, end to end.
use crate::common::{self, Fixture, json};

#[test]
fn info_tells_sizes_and_classes() {
    let fixture = Fixture::new();
    let text = fixture.run("data info graph.npz").succeeded().stdout;
    for words in ["nodes", "30", "homophily", "Theory", "nodes within two hops", "33.3%", "fingerprint"] {
        assert!(text.contains(words), "{words}\n{text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn info_as_json() {
    let fixture = Fixture::new();
    let info = json(&fixture.run("data info graph.npz --json").succeeded().stdout);
    let statistics = &info["statistics"];
    assert_eq!((&statistics["nodes"], &statistics["attributes"]), (&30.into(), &12.into()));
    assert_eq!((&statistics["class_sizes"], &info["class_names"][2]), (&json("[10,10,10]"), &"Logic".into()));
    assert_eq!(info["cleaning"]["self_loops_removed"], 0);
    assert_eq!(info["fingerprint"].as_str().unwrap().len(), 64);
}

#[test]
fn info_suggests_to_binarise() {
    let fixture = Fixture::new();
    common::graph_npz(&fixture.path("counts.npz"), [1.0, 3.0, 0.5]);
    let run = fixture.run("data info counts.npz");
    assert!(run.code == 0 && run.stderr.contains("as with --binarise"), "{}", run.stderr);
    assert!(run.stdout.contains("2 attribute values other than 0 and 1"), "{}", run.stdout);
    let text = fixture.run("data info counts.npz --binarise").succeeded().stdout;
    assert!(text.contains("2 attribute values other than 0 and 1"), "{text}");
    assert!(text.contains("1 edge in one direction only"), "{text}");
    assert!(text.contains("unknown"), "no labels, no classes\n{text}");
}

/// Verdicts are about a network that reads 0 and 1, whatever was on file.
#[test]
fn results_say_that_attributes_were_binarised() {
    let fixture = Fixture::new();
    common::graph_npz(&fixture.path("counts.npz"), [1.0, 3.0, 0.5]);
    common::model(2).write(fixture.path("two.safetensors")).unwrap();
    let (graph, model) = ("--graph counts.npz --binarise", "--model two.safetensors");
    let certify = format!("certify {graph} {model} --global-budget 1 --out c.jsonl");
    let radius = format!("radius {graph} {model} --out r.jsonl");
    for command in [certify, radius] {
        let run = fixture.run(&command);
        let unwrapped = run.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        let words = "attributes count as 1 where they are above 0 (2 values are neither 0 nor 1)";
        assert!(run.code == 0 && unwrapped.contains(words), "{run:?}");
    }
    for file in ["c.jsonl", "r.jsonl"] {
        assert_eq!(json(fixture.read(file).lines().next().unwrap())["graph"]["binarised"], 2, "{file}");
    }
    assert_eq!(fixture.run(&format!("report c.jsonl {graph} --out report.html")).code, 0);
    assert!(fixture.read("report.html").contains(r#""binarised":2"#));
    let header = fixture.certify("--out bits.jsonl").succeeded();
    assert!(!fixture.read("bits.jsonl").contains("binarised"), "{header:?}");
}

#[test]
fn split_draws_the_same_every_time() {
    let fixture = Fixture::new();
    let draw = |more: &str| fixture.run(&format!("data split --graph graph.npz {more}")).succeeded().stdout;
    let text = draw("--train 20% --validation-per-class 1 --seed 7 --out a.json");
    for words in ["train", "validation", "Agents", "all", "a.json", "seed"] {
        assert!(text.contains(words), "{words}\n{text}");
    }
    let sizes = json(&draw("--train 0.2 --validation-per-class 1 --seed 7 --out b.json --json"));
    assert_eq!(fixture.read("a.json"), fixture.read("b.json"));
    assert_eq!((&sizes["train"], &sizes["validation"]), (&json("[2,2,2]"), &json("[1,1,1]")));
    assert_eq!(draw("--seed 8 --out c.json --quiet"), "");
    assert_ne!(fixture.read("a.json"), fixture.read("c.json"));
}

#[test]
fn impossible_splits_are_refused() {
    let fixture = Fixture::new();
    for (more, words) in [
        ("--train-per-class 11 --out split.json", "ask for fewer"),
        ("--train 0% --out split.json", "nothing to train on"),
        ("--train 110% --out split.json", "0% to 100%"),
        ("--train 10% --train-per-class 2 --out split.json", "cannot be used with"),
        ("--out no/split.json", "make it first"),
        ("--out graph.npz", "is an input"),
        ("--out -", "give its name"),
    ] {
        let run = fixture.run(&format!("data split --graph graph.npz {more}"));
        assert!(run.code == 2 && run.stderr.contains(words), "{more}: {}", run.stderr);
        assert!(!fixture.exists("split.json"), "{more}");
    }
    common::graph_npz(&fixture.path("bare.npz"), [1.0; 3]);
    let run = fixture.run("data split --graph bare.npz --out split.json");
    assert!(run.code == 2 && run.stderr.contains("no labels"), "{}", run.stderr);
}

#[test]
fn synth_draws_the_same_every_time() {
    let fixture = Fixture::new();
    let draw = |more: &str| fixture.run(&format!("data synth --nodes 600 --degree 5 --hub 60 --seed 3 {more}"));
    let sizes = json(&draw("--out drawn.npz --json").succeeded().stdout);
    assert_eq!((&sizes["nodes"], &sizes["classes"]), (&600.into(), &6.into()));
    let text = draw("--out again.npz").succeeded().stdout;
    assert!(text.contains("a node in the mean"), "{text}");
    let bytes = |name: &str| std::fs::read(fixture.path(name)).unwrap();
    assert_eq!(bytes("drawn.npz"), bytes("again.npz"));
    let info = json(&fixture.run("data info drawn.npz --json").succeeded().stdout);
    assert_eq!((&info["fingerprint"], &info["statistics"]["edges"]), (&sizes["fingerprint"], &sizes["edges"]));
    let run = draw("--classes 0 --out drawn.npz");
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("the number of classes must be from 1"), "{}", run.stderr);
}

/// Header and checksum of a `.graph` file, the former changed, the latter computed anew.
fn with_header(bytes: &[u8], change: impl FnOnce(String) -> String) -> Vec<u8> {
    let end = 32 + u32::from_le_bytes(bytes[24..28].try_into().unwrap()) as usize;
    let header = change(String::from_utf8(bytes[32..end].to_vec()).unwrap());
    let mut changed = [&bytes[..32], header.as_bytes(), &bytes[end..]].concat();
    let mut checksum = crc32fast::Hasher::new();
    checksum.update(&changed[..28]);
    checksum.update(&changed[32..]);
    changed[28..32].copy_from_slice(&checksum.finalize().to_le_bytes());
    changed
}

/// Whatever is asked of a graph, the answer is the same from either layout, and both turn into each other.
#[test]
fn converted_graphs_are_read_by_every_command() {
    let fixture = Fixture::new();
    let converted = json(&fixture.run("data convert graph.npz --out g.graph --json").succeeded().stdout);
    let text = fixture.run("data convert g.graph --out back.npz").succeeded().stdout;
    assert!(text.contains(converted["fingerprint"].as_str().unwrap()) && text.contains("back.npz"), "{text}");
    let bytes = |name: &str| std::fs::read(fixture.path(name)).unwrap();
    assert_eq!(bytes("back.npz"), bytes("graph.npz"));
    for command in [
        "data info FILE",
        "data info FILE --json --largest-component",
        "data info FILE --normalise-rows",
        "predict --graph FILE --model model.safetensors --json",
        "train --graph FILE --method ce --global-budget 2 --steps 3 --quiet --out m.safetensors",
    ] {
        let run = |name: &str| fixture.run(&command.replace("FILE", name)).succeeded().stdout;
        assert_eq!(run("g.graph"), run("graph.npz"), "{command}");
    }
    for (graph, out) in [("g.graph", "flat.jsonl"), ("graph.npz", "npz.jsonl")] {
        let certify =
            format!("certify --graph {graph} --model model.safetensors --global-budget 2 --out {out} --proof --check");
        fixture.run(&certify).succeeded();
    }
    assert_eq!(fixture.read("flat.jsonl"), fixture.read("npz.jsonl"));
    fixture.run("check npz.jsonl --graph g.graph --model model.safetensors").succeeded();
    // The layout is that of the content, whatever the name.
    std::fs::rename(fixture.path("g.graph"), fixture.path("named.npz")).unwrap();
    fixture.run("check npz.jsonl --graph named.npz --model model.safetensors").succeeded();
    fixture.run("data synth --nodes 100 --degree 3 --hub 10 --out drawn.graph").succeeded();
    assert!(bytes("drawn.graph").starts_with(b"nodeproof graph\n"));
}

#[test]
fn graphs_that_were_tampered_with_are_refused() {
    let fixture = Fixture::new();
    let converted = json(&fixture.run("data convert graph.npz --out g.graph --json").succeeded().stdout);
    let whole = std::fs::read(fixture.path("g.graph")).unwrap();
    let fingerprint = converted["fingerprint"].as_str().unwrap();
    let mut damaged = whole.clone();
    *damaged.last_mut().unwrap() ^= 1;
    for (bytes, words) in [
        (whole[..whole.len() - 1].to_vec(), "is truncated"),
        ([&whole[..], b"more"].concat(), "4 bytes after its last array"),
        (damaged, "is damaged: its checksum"),
        (with_header(&whole, |header| header.replacen("bits", "bats", 1)), "a header that cannot be read"),
    ] {
        fixture.write("wrong.graph", bytes);
        for command in ["data info wrong.graph", "data convert wrong.graph --out other.npz"] {
            let run = fixture.run(command);
            assert!(run.code == 2 && run.stderr.contains("wrong.graph"), "{command}: {}", run.stderr);
            assert!(run.stderr.split_whitespace().collect::<Vec<_>>().join(" ").contains(words), "{}", run.stderr);
        }
    }
    // A fingerprint that is not the graph's own is not noticed by those who certify, but by those who check.
    fixture.write("liar.graph", with_header(&whole, |header| header.replacen(fingerprint, &"0".repeat(64), 1)));
    for command in ["data info liar.graph", "data convert liar.graph --out other.npz"] {
        let run = fixture.run(command);
        assert!(run.code == 2 && run.stderr.contains("do not trust the file"), "{command}: {}", run.stderr);
    }
    assert!(!fixture.exists("other.npz"));
    let certify = "certify --graph liar.graph --model model.safetensors --global-budget 2 --out c.jsonl";
    fixture.run(certify).succeeded();
    for command in
        [format!("{certify} --proof --check"), "check c.jsonl --graph liar.graph --model model.safetensors".into()]
    {
        let run = fixture.run(&command);
        assert!(run.code == 2 && run.stderr.contains("about another graph"), "{command}: {}", run.stderr);
    }
    for (out, words) in [("g.graph", "is an input"), ("no/g.graph", "make it first"), ("-", "give its name")] {
        let run = fixture.run(&format!("data convert g.graph --out {out}"));
        assert!(run.code == 2 && run.stderr.contains(words), "{out}: {}", run.stderr);
    }
    assert_eq!(std::fs::read(fixture.path("g.graph")).unwrap(), whole);
}

//! `certify --since`: what an edit leaves as it is is carried over.

use nodeproof::{Graph, GraphOptions};

use crate::common::{Fixture, Run, json, model, named};

const SINCE: &str = "--since old.jsonl --since-graph graph.npz";

/// The fixture, with certificates of its graph in `old.jsonl`, and an edited graph in `new.npz`.
fn edited(more: &str) -> Fixture {
    let fixture = Fixture::new();
    fixture.certify(&format!("--out old.jsonl {more}")).succeeded();
    write_edited(&fixture, &[(4, 2)], &[]);
    fixture
}

/// Writes the fixture's graph with some attributes and edges the other way round.
fn write_edited(fixture: &Fixture, attributes: &[(u32, u32)], edges: &[(u32, u32)]) {
    let (graph, _) = Graph::read(fixture.path("graph.npz"), GraphOptions::new()).unwrap();
    let toggled = |mut pairs: Vec<(u32, u32)>, edits: &[(u32, u32)]| {
        for edit in edits {
            let before = pairs.len();
            pairs.retain(|pair| pair != edit);
            if pairs.len() == before {
                pairs.push(*edit);
            }
        }
        pairs
    };
    let undirected = graph.adjacency().iter().filter(|(a, b)| a < b).collect();
    let (edges, ones) = (toggled(undirected, edges), toggled(graph.attributes().iter().collect(), attributes));
    let labels = graph.node_ids().map(|node| graph.label(node)).collect();
    let new = Graph::new(graph.nodes(), graph.attribute_count(), &edges, &ones).unwrap();
    named(new.with_labels(labels).unwrap()).write(fixture.path("new.npz")).unwrap();
}

fn certify_new(fixture: &Fixture, more: &str) -> Run {
    fixture.run(&format!("certify --graph new.npz --model model.safetensors --global-budget 2 {more}"))
}

/// The records of a file, without their hashes.
fn records(fixture: &Fixture, name: &str) -> Vec<String> {
    let text = fixture.read(name);
    text.lines().skip(1).map(|line| line.split_once(",\"hash\":").unwrap().0.to_owned()).collect()
}

#[test]
fn records_are_those_of_a_full_run() {
    for (more, attributes, edges) in [
        ("", vec![(4, 2)], vec![]),
        ("--proof", vec![(4, 2), (5, 5)], vec![]),
        ("--engine fast", vec![], vec![(0, 2)]),
        ("--margin 0.125", vec![(4, 2)], vec![]),
        ("--arithmetic f32", vec![(4, 2)], vec![(3, 4)]),
        ("--class label", vec![(4, 2)], vec![]),
    ] {
        let fixture = edited(more);
        write_edited(&fixture, &attributes, &edges);
        let full = certify_new(&fixture, &format!("{more} --out full.jsonl --csv full.csv --json")).succeeded();
        let run = certify_new(&fixture, &format!("{more} {SINCE} --out new.jsonl --csv new.csv --json")).succeeded();
        assert_eq!(records(&fixture, "new.jsonl"), records(&fixture, "full.jsonl"), "{more}");
        assert_eq!(fixture.read("new.csv"), fixture.read("full.csv"), "{more}");
        let told = json(&run.stdout);
        let carried = told["header"]["since"]["carried"].as_u64().unwrap();
        assert!(carried > 0 && told["certified"].as_u64() == Some(30 - carried), "{more}: {}", run.stdout);
        let full = json(&full.stdout);
        for counts in ["all", "settled", "without_proof"] {
            assert_eq!(told[counts], full[counts], "{more}");
        }
        for reader in ["report new.jsonl --graph new.npz --out report.html", "merge new.jsonl --out merged.jsonl"] {
            assert_eq!(fixture.run(reader).code, if reader.starts_with("merge") { 2 } else { 0 }, "{reader}");
        }
        if more == "--proof" {
            fixture.run("check new.jsonl --graph new.npz --model model.safetensors").succeeded();
        }
    }
}

#[test]
fn the_header_says_where_records_come_from() {
    let fixture = edited("");
    let run = certify_new(&fixture, &format!("{SINCE} --out new.jsonl")).succeeded();
    assert!(
        run.stdout.contains("carried over from old.jsonl") && run.stdout.contains("certified again"),
        "{}",
        run.stdout
    );
    let header = |name: &str| json(fixture.read(name).lines().next().unwrap());
    let (old, new) = (header("old.jsonl"), header("new.jsonl"));
    let since = &new["since"];
    assert_eq!((&since["graph"], &since["model"]), (&old["graph"]["fingerprint"], &old["model"]["fingerprint"]));
    assert_ne!(since["graph"], new["graph"]["fingerprint"]);
    let last = fixture.read("old.jsonl").lines().last().map(json).unwrap();
    assert_eq!(since["hash"], last["hash"]);
    // A run may follow a run that followed another one.
    let again = "--since new.jsonl --out again.jsonl --json";
    let told = json(&certify_new(&fixture, again).succeeded().stdout);
    assert_eq!((&told["certified"], &told["header"]["since"]["carried"]), (&json("0"), &json("30")));
    assert_eq!(records(&fixture, "again.jsonl"), records(&fixture, "new.jsonl"));
}

#[test]
fn nodes_may_be_others() {
    let fixture = edited("--nodes 0-9");
    certify_new(&fixture, "--out full.jsonl --nodes 20,8,6,7,25 --quiet").succeeded();
    let run = certify_new(&fixture, &format!("{SINCE} --out new.jsonl --nodes 20,8,6,7,25 --json")).succeeded();
    assert_eq!(records(&fixture, "new.jsonl"), records(&fixture, "full.jsonl"));
    let carried = json(&run.stdout)["header"]["since"]["carried"].as_u64().unwrap();
    assert!((1..=3).contains(&carried), "{carried}");
}

#[test]
fn another_model_is_said_to_touch_everything() {
    let fixture = edited("");
    let text = "certify --graph graph.npz --model other.safetensors --global-budget 2 --since old.jsonl";
    fixture.run("certify --graph graph.npz --model model.safetensors --global-budget 2 --since old.jsonl").succeeded();
    let old = model(12);
    let chain = old.as_chain().unwrap().into_iter();
    let layers: Vec<_> = chain.map(|(weight, bias)| (weight.clone(), vec![0.25; bias.len()])).collect();
    let other = nodeproof::Model::gcn(layers, nodeproof::Propagation::SymmetricGcn).unwrap();
    other.write(fixture.path("other.safetensors")).unwrap();
    let run = fixture.run(text);
    assert!(run.code == 2 && run.stderr.contains("--since-model"), "{}", run.stderr);
    let run = fixture.run(&format!("{text} --since-model model.safetensors")).succeeded();
    let words = run.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("30 nodes certified again, because the model is another one"), "{}", run.stdout);
}

#[test]
fn parts_are_put_together_and_interrupted_runs_go_on() {
    let fixture = edited("");
    certify_new(&fixture, &format!("{SINCE} --out whole.jsonl --quiet")).succeeded();
    for part in 1..=2 {
        certify_new(&fixture, &format!("{SINCE} --shard {part}/2 --out part-{part}.jsonl --quiet")).succeeded();
    }
    fixture.run("merge part-1.jsonl part-2.jsonl --out merged.jsonl --quiet").succeeded();
    assert_eq!(fixture.read("merged.jsonl"), fixture.read("whole.jsonl"));
    certify_new(&fixture, "--shard 2/2 --out plain.jsonl --quiet").succeeded();
    let run = fixture.run("merge part-1.jsonl plain.jsonl --out mixed.jsonl");
    assert!(run.code == 2 && run.stderr.contains("plain.jsonl: it is about another"), "{}", run.stderr);
    let whole = fixture.read("whole.jsonl");
    for lines in [1, 2, 5, 12, 30] {
        let cut: String = whole.split_inclusive('\n').take(lines).collect();
        fixture.write("resumed.jsonl.unfinished", cut);
        certify_new(&fixture, &format!("{SINCE} --out resumed.jsonl --resume --quiet")).succeeded();
        assert_eq!(fixture.read("resumed.jsonl"), whole, "{lines}");
        std::fs::remove_file(fixture.path("resumed.jsonl")).unwrap();
    }
}

#[test]
fn what_was_cut_short_is_certified_again() {
    let fixture = edited("");
    let late = "certify --graph graph.npz --model model.safetensors --global-budget 3 --local-budget 2 --proof";
    fixture.run(&format!("{late} --total-time-limit 0 --time-limit 0 --out late.jsonl --quiet")).succeeded();
    let cut_short = records(&fixture, "late.jsonl");
    let cut_short =
        cut_short.iter().filter(|record| record.contains("\"proofs\":null") || record.contains("\"because\":\"time\""));
    let cut_short = cut_short.count();
    assert!(cut_short > 0, "{}", fixture.read("late.jsonl"));
    let told = json(&fixture.run(&format!("{late} --since late.jsonl --out new.jsonl --json")).succeeded().stdout);
    assert_eq!(told["certified"], cut_short);
    fixture.run(&format!("{late} --out full.jsonl --quiet")).succeeded();
    let verdict = |record: &String| record.split("\"margins\"").next().unwrap().to_owned();
    let verdicts = |name: &str| records(&fixture, name).iter().map(verdict).collect::<Vec<_>>();
    assert_eq!(verdicts("new.jsonl"), verdicts("full.jsonl"));
}

#[test]
fn what_does_not_belong_to_the_run_is_refused() {
    let fixture = edited("");
    let old = fixture.read("old.jsonl");
    let lines: Vec<&str> = old.split_inclusive('\n').collect();
    fixture.write("tampered.jsonl", old.replacen("\"verdict\":\"nonrobust\"", "\"verdict\":\"robust\"", 1));
    fixture.write(
        "left-out.jsonl",
        lines.iter().enumerate().filter(|&(i, _)| i != 3).map(|(_, line)| *line).collect::<String>(),
    );
    fixture.write("short.jsonl", lines[..20].concat());
    fixture.write("other-version.jsonl", old.replacen("\"version\":2", "\"version\":1", 1));
    fixture.write("program.jsonl", old.replacen("\"nodeproof\":\"", "\"nodeproof\":\"9", 1));
    fixture.run(
        "radius --graph graph.npz --model model.safetensors --local-budget 2 --max-budget 2 --out radii.jsonl --quiet",
    );
    let all = "--since old.jsonl --since-graph graph.npz";
    for (more, words) in [
        ("--since old.jsonl", "give the graph that it is about as --since-graph"),
        ("--since old.jsonl --since-graph new.npz", "old.jsonl was asked something else: graph.fingerprint"),
        (&format!("{all} --local-budget 2"), "budget.local"),
        (&format!("{all} --engine fast"), "engine: \"complete\" there, \"fast\" now; certify with its settings"),
        (&format!("{all} --add-only"), "budget.direction"),
        (&format!("{all} --class label"), "class: "),
        (&format!("{all} --margin 0.5"), "margin: "),
        (&format!("{all} --arithmetic f32"), "arithmetic: "),
        (&format!("{all} --protect-attributes 3"), "budget.protected_attributes"),
        (&format!("{all} --proof --out x.jsonl"), "proofs: "),
        (&format!("{all} --timings --out x.jsonl"), "timings: "),
        ("--since tampered.jsonl --since-graph graph.npz", "its hash does not fit"),
        ("--since left-out.jsonl --since-graph graph.npz", "line 4 is damaged"),
        ("--since short.jsonl --since-graph graph.npz", "has 19 of 30 nodes"),
        ("--since other-version.jsonl --since-graph graph.npz", "have no hashes"),
        ("--since program.jsonl --since-graph graph.npz", "damaged"),
        ("--since radii.jsonl --since-graph graph.npz", "has radii, not certificates"),
        ("--since graph.npz --since-graph graph.npz", "graph.npz is not a file of certificates"),
        ("--since none.jsonl --since-graph graph.npz", "check the path given as --since"),
        (&format!("{all} --out old.jsonl"), "is an input of this command"),
        ("--since-graph graph.npz", "--since"),
    ] {
        let before = fixture.listing();
        let run = certify_new(&fixture, more);
        assert!(run.code == 2 && run.stderr.contains(words), "{more} wants: {words}\nsays: {}", run.stderr);
        assert!(fixture.listing() == before, "{more}: nothing is written");
    }
}

#[test]
fn budgets_of_single_nodes_may_change() {
    let fixture = edited("");
    let more = "--since old.jsonl --protect-nodes 4";
    let full = fixture.certify("--protect-nodes 4 --out full.jsonl --quiet");
    full.succeeded();
    let run = fixture.certify(&format!("{more} --out new.jsonl --json")).succeeded();
    assert_eq!(records(&fixture, "new.jsonl"), records(&fixture, "full.jsonl"));
    let carried = json(&run.stdout)["header"]["since"]["carried"].as_u64().unwrap();
    assert!((1..30).contains(&carried), "{carried}");
}

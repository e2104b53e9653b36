//! Every way the input of `certify` can be wrong: exit code 2, a reason, a remedy, and no output.
use std::fs;

use crate::common::{self, Fixture, floats, graph_npz, integers, npy, npz};

/// Runs `certify` on these arguments with outputs and asserts that it is refused with all of `words`.
#[track_caller]
fn refused(fixture: &Fixture, line: &str, words: &[&str]) {
    let before = fixture.listing();
    let outputs = if line.contains("--out") { "" } else { "--out out.jsonl --csv out.csv" };
    let run = fixture.run(&format!("certify {line} {outputs}"));
    assert_eq!(run.code, 2, "{line}: {}", run.stderr);
    assert!(run.stderr.starts_with("error: "), "{line}: {}", run.stderr);
    for word in words {
        assert!(run.stderr.contains(word), "{line}: `{word}` is missing from: {}", run.stderr);
    }
    assert_eq!(run.stdout, "", "{line}");
    assert_eq!(fixture.listing(), before, "{line}: files came into being or changed");
}

/// The good arguments, less what the test replaces.
fn with_graph(graph: &str) -> String {
    format!("--graph {graph} --model model.safetensors --global-budget 2")
}

fn with_model(model: &str) -> String {
    format!("--graph graph.npz --model {model} --global-budget 2")
}

fn with(more: &str) -> String {
    format!("--graph graph.npz --model model.safetensors --global-budget 2 {more}")
}

#[test]
fn an_existing_output_survives_bad_input() {
    let fixture = Fixture::new();
    fixture.write("out.jsonl", "precious");
    refused(&fixture, &with("--nodes 99"), &["node 99"]);
    assert_eq!(fixture.read("out.jsonl"), "precious");
}

#[test]
fn non_binary_attributes() {
    let fixture = Fixture::new();
    graph_npz(&fixture.path("counts.npz"), [1.0, 0.3, 1.0]);
    refused(&fixture, &with_graph("counts.npz"), &["counts.npz", "node 0", "0.3", "--binarise"]);
    graph_npz(&fixture.path("nan.npz"), [1.0, f64::NAN, 1.0]);
    refused(&fixture, &with_graph("nan.npz"), &["NaN", "finite"]);
}

#[test]
fn weights_that_are_not_finite() {
    let fixture = Fixture::new();
    let whole = fs::read(fixture.path("model.safetensors")).unwrap();
    for (value, shown) in [(f64::NAN, "NaN"), (f64::INFINITY, "inf"), (f64::NEG_INFINITY, "-inf")] {
        let mut bytes = whole.clone();
        let last = bytes.len() - 8;
        bytes[last..].copy_from_slice(&value.to_le_bytes());
        fixture.write("bad.safetensors", bytes);
        refused(&fixture, &with_model("bad.safetensors"), &["bad.safetensors", shown, "must be a finite number"]);
    }
    let weights = [("W0", floats("(12, 3)", &[f64::NAN; 36])), ("b0", floats("(3,)", &[0.0; 3]))];
    npz(&fixture.path("bad.npz"), &weights);
    refused(&fixture, &with_model("bad.npz"), &["W0 holds NaN", "must be a finite number"]);
}

#[test]
fn a_model_for_another_graph() {
    let fixture = Fixture::new();
    common::model(13).write(fixture.path("other.safetensors")).unwrap();
    refused(&fixture, &with_model("other.safetensors"), &["13 attributes", "12", "use the graph it was trained on"]);
}

#[test]
fn layers_that_do_not_chain() {
    let fixture = Fixture::new();
    let members = [
        ("W0", floats("(12, 3)", &[0.0; 36])),
        ("b0", floats("(3,)", &[0.0; 3])),
        ("W1", floats("(4, 3)", &[0.0; 12])),
        ("b1", floats("(3,)", &[0.0; 3])),
    ];
    npz(&fixture.path("bad.npz"), &members);
    refused(&fixture, &with_model("bad.npz"), &["W1 has shape 4 × 3", "must have 3 rows"]);
}

#[test]
fn truncated_archives() {
    let fixture = Fixture::new();
    let whole = fs::read(fixture.path("graph.npz")).unwrap();
    for length in [0, 1, whole.len() / 2, whole.len() - 1] {
        fixture.write("cut.npz", &whole[..length]);
        refused(&fixture, &with_graph("cut.npz"), &["cut.npz", "truncated", "write it again"]);
    }
}

#[test]
fn an_array_that_claims_to_be_huge() {
    let fixture = Fixture::new();
    let huge = npy("<f8", "(1099511627776,)", &[0; 64]);
    let members = [
        ("adj_data", huge),
        ("adj_indices", integers(&[1])),
        ("adj_indptr", integers(&[0, 1, 1])),
        ("adj_shape", integers(&[2, 2])),
    ];
    npz(&fixture.path("huge.npz"), &members);
    refused(&fixture, &with_graph("huge.npz"), &["adj_data", "claims", "truncated or damaged"]);
}

#[test]
fn noise_instead_of_an_archive() {
    let fixture = Fixture::new();
    let noise: Vec<u8> = (0..5000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    fixture.write("noise.npz", &noise);
    refused(&fixture, &with_graph("noise.npz"), &["noise.npz", "not a readable .npz", "write it again"]);
    refused(&fixture, &with_model("noise.npz"), &["noise.npz", "not a readable .npz", "write it again"]);
}

#[test]
fn damaged_safetensors() {
    let fixture = Fixture::new();
    let whole = fs::read(fixture.path("model.safetensors")).unwrap();
    for length in [0, 7, 50, whole.len() - 1] {
        fixture.write("cut.safetensors", &whole[..length]);
        refused(&fixture, &with_model("cut.safetensors"), &["cut.safetensors", "truncated, damaged"]);
    }
    let mut huge = whole;
    huge[..8].copy_from_slice(&(u64::MAX / 2).to_le_bytes());
    fixture.write("huge.safetensors", huge);
    refused(&fixture, &with_model("huge.safetensors"), &["huge.safetensors", "truncated, damaged"]);
}

#[test]
fn nodes_that_do_not_exist_or_make_no_sense() {
    let fixture = Fixture::new();
    refused(&fixture, &with("--nodes 30"), &["node 30 does not exist", "ids from 0 to 29"]);
    refused(&fixture, &with("--nodes 3,20-4000000000"), &["node 4000000000 does not exist", "ids from 0 to 29"]);
    for garbage in ["x", "20-10", "1;2", "-", "1..3", "99999999999"] {
        refused(&fixture, &with(&format!("--nodes={garbage}")), &["--nodes", garbage, "0,4,10-20"]);
    }
    fixture.write("ids.txt", "1\n2 x\n");
    refused(&fixture, &with("--nodes @ids.txt"), &["ids.txt, line 2", "`x`", "give ids"]);
    fixture.write("none.txt", "# nothing\n");
    refused(&fixture, &with("--nodes @none.txt"), &["no node at all", "give ids"]);
    refused(&fixture, &with("--nodes @missing.txt"), &["missing.txt", "check the path"]);
}

#[test]
fn budgets_that_cannot_be_meant() {
    let fixture = Fixture::new();
    let base = "--graph graph.npz --model model.safetensors";
    refused(&fixture, &format!("{base} --global-budget 0"), &["--global-budget", "at least 1"]);
    refused(&fixture, &format!("{base} --global-budget -1"), &["--global-budget", "whole number"]);
    refused(&fixture, &format!("{base} --global-budget 361"), &["360 attribute entries", "such as 12"]);
    refused(&fixture, &format!("{base} --global-budget 99999999999"), &["--global-budget", "whole number"]);
    refused(&fixture, base, &["--global-budget"]);
    refused(&fixture, &with("--local-budget 0"), &["--local-budget", "at least 1"]);
    refused(&fixture, &with("--local-budget 0%"), &["--local-budget", "above 0%"]);
    refused(&fixture, &with("--local-budget 13"), &["12 attributes", "at most 12"]);
    refused(&fixture, &with("--local-budget 101%"), &["--local-budget", "at most 100%"]);
    refused(&fixture, &with("--add-only --delete-only"), &["--add-only", "cannot be used with"]);
}

#[test]
fn local_budget_files_name_the_bad_line() {
    let fixture = Fixture::new();
    fixture.write("local.txt", "# node count\n1 2\n3\n");
    refused(&fixture, &with("--local-budget-file local.txt"), &["local.txt, line 3", "write lines such as"]);
    fixture.write("local.txt", "30 2\n");
    refused(&fixture, &with("--local-budget-file local.txt"), &["local.txt, line 1", "node 30 does not exist"]);
    refused(&fixture, &with("--local-budget-file missing.txt"), &["missing.txt", "check the path"]);
}

#[test]
fn protected_things_must_exist() {
    let fixture = Fixture::new();
    refused(&fixture, &with("--protect-nodes 30"), &["--protect-nodes", "node 30 does not exist", "give ids"]);
    refused(&fixture, &with("--protect-attributes 12"), &["attribute 12 does not exist", "give ids"]);
    refused(&fixture, &with("--protect-attributes wrod"), &["no attribute is called `wrod`", "exact name"]);
}

#[test]
fn outputs_that_cannot_be_written() {
    let fixture = Fixture::new();
    fs::create_dir(fixture.path("folder")).unwrap();
    refused(&fixture, &with("--out no/out.jsonl"), &["--out", "no directory no", "make it first"]);
    refused(&fixture, &with("--out folder"), &["folder: it is a directory", "give the name of a file"]);
    refused(&fixture, &with("--out out.jsonl --csv folder"), &["--csv", "it is a directory"]);
    refused(&fixture, &with("--out same --csv same"), &["same place", "different files"]);
    refused(&fixture, &with("--out same --csv ./same"), &["same place", "different files"]);
    fixture.write("ids.txt", "1");
    refused(&fixture, &with("--nodes @ids.txt --out ids.txt"), &["is an input", "choose another name"]);
    refused(&fixture, &with("--out graph.npz"), &["is an input", "choose another name"]);
    refused(&fixture, &with("--out - --resume"), &["--resume", "name of the file"]);
}

#[cfg(unix)]
#[test]
fn folders_without_permission() {
    use std::os::unix::fs::PermissionsExt;
    let fixture = Fixture::new();
    let folder = fixture.path("locked");
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o555)).unwrap();
    // Whoever runs the tests as root may write anywhere.
    if fs::write(folder.join("probe"), "").is_err() {
        refused(&fixture, &with("--out locked/out.jsonl"), &["locked/out.jsonl", "where you may write"]);
        refused(&fixture, &with("--out out.jsonl --csv locked/out.csv"), &["locked/out.csv", "where you may write"]);
    }
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn labels_that_are_missing() {
    let fixture = Fixture::new();
    let bare = nodeproof::Graph::new(30, 12, &[], &[]).unwrap();
    bare.write(fixture.path("bare.npz")).unwrap();
    refused(&fixture, &(with_graph("bare.npz") + " --class label"), &["no labels", "--class predicted"]);
    let labels = (0..30).map(|node| (node > 1).then_some(nodeproof::ClassId(0))).collect();
    bare.with_labels(labels).unwrap().write(fixture.path("some.npz")).unwrap();
    refused(&fixture, &(with_graph("some.npz") + " --class label"), &["2 nodes have no label", "node 0", "--nodes"]);
}

#[test]
fn splits_that_do_not_fit() {
    let fixture = Fixture::new();
    refused(&fixture, &with("--nodes test"), &["no split", "--split FILE"]);
    refused(&fixture, &with("--split missing.json"), &["missing.json", "check the path given as --split"]);
    fixture.write("split.json", r#"{"train":[40],"validation":[],"test":[]}"#);
    refused(&fixture, &with("--split split.json"), &["split.json", "node 40 is outside", "made for this graph"]);
    fixture.write("split.json", "{}");
    refused(&fixture, &with("--split split.json"), &["split.json", "nodeproof data split"]);
}

#[test]
fn a_list_of_attributes_is_not_overwritten() {
    let fixture = Fixture::new();
    fixture.write("list.txt", "3\n");
    let run = fixture.certify("--protect-attributes @list.txt --csv list.txt");
    assert_eq!(run.code, 2, "{}", run.stderr);
    assert!(run.stderr.contains("is an input of this command"), "{}", run.stderr);
    assert_eq!(fixture.read("list.txt"), "3\n");
}

#[test]
fn files_that_are_not_there() {
    let fixture = Fixture::new();
    fs::create_dir(fixture.path("folder")).unwrap();
    refused(&fixture, &with_graph("missing.npz"), &["missing.npz", "check the path given as --graph"]);
    refused(&fixture, &with_model("missing.npz"), &["missing.npz", "check the path given as --model"]);
    refused(&fixture, &with_graph("folder"), &["folder", "is a directory", "check the path"]);
    refused(&fixture, &with_model("graph.npz"), &["graph.npz is a graph, not a model", "give a model's file"]);
}

#[test]
fn resuming_another_run() {
    let fixture = Fixture::new();
    fixture.certify("--out run.jsonl").succeeded();
    let other = "--graph graph.npz --model model.safetensors --global-budget 3 --out run.jsonl --resume";
    refused(&fixture, other, &["run.jsonl", "budget.global: 2 there, 3 now", "without --resume"]);
    refused(&fixture, &with("--nodes 1-29 --out run.jsonl --resume"), &["nodes: 30 there, 29 now", "without --resume"]);
    let order = format!("--nodes {} --out run.jsonl --resume", "1,0,2-29");
    refused(
        &fixture,
        &with(&order),
        &["line 2 does not fit", "about node 0, where node 1 comes next", "same settings"],
    );
    fixture.write("run.jsonl", "something else\n");
    refused(&fixture, &with("--out run.jsonl --resume"), &["not a file that this command writes", "without --resume"]);
    let run = fixture.certify("--resume");
    assert!(run.code == 2 && run.stderr.contains("--out <FILE>"), "{}", run.stderr);
}

#[test]
fn usage_errors_are_refused_too() {
    let fixture = Fixture::new();
    refused(&fixture, &with("--threads 9999"), &["--threads"]);
    refused(&fixture, &with("--fail-under 80"), &["--fail-under", "80%"]);
    refused(&fixture, &with("--class wrong"), &["predicted", "label"]);
    refused(&fixture, &with("--colour"), &["--colour"]);
    refused(&fixture, &with("--engine exact"), &["--engine", "fast, tight, complete"]);
}

#[test]
fn limits_of_time_that_make_no_sense() {
    let fixture = Fixture::new();
    for option in ["--time-limit", "--total-time-limit"] {
        for garbage in ["-1", "x", "nan", "inf", "1e300", "10s"] {
            refused(&fixture, &with(&format!("{option} {garbage}")), &[option, garbage, "such as 10", "none"]);
        }
    }
}

#[test]
fn resuming_with_another_engine() {
    let fixture = Fixture::new();
    fixture.certify("--engine fast --out run.jsonl").succeeded();
    let words = ["run.jsonl", r#"engine: "fast" there, "complete" now"#, "without --resume"];
    refused(&fixture, &with("--out run.jsonl --resume"), &words);
}

#[test]
fn names_in_errors_cannot_steer_a_terminal() {
    let fixture = Fixture::new();
    npz(&fixture.path("evil.npz"), &[("\u{1b}[2Jevil", integers(&[1]))]);
    let run = fixture.run(&format!("certify {}", with_graph("evil.npz")));
    assert!(run.code == 2 && !run.stderr.contains('\u{1b}') && run.stderr.contains("\\u{1b}[2Jevil"), "{}", run.stderr);
}

/// Graphs of few nodes with as many attributes as an id can name.
fn write_huge(fixture: &Fixture, nodes: i64) {
    let offsets: Vec<i64> = (0..=nodes).collect();
    npz(
        &fixture.path("huge.npz"),
        &[
            ("adj_data", floats("(0,)", &[])),
            ("adj_indices", integers(&[])),
            ("adj_indptr", integers(&vec![0; offsets.len()])),
            ("adj_shape", integers(&[nodes, nodes])),
            ("attr_data", floats(&format!("({nodes},)"), &vec![1.0; nodes as usize])),
            ("attr_indices", integers(&(0..nodes).map(|node| 3_999_999_999 - node).collect::<Vec<_>>())),
            ("attr_indptr", integers(&offsets)),
            ("attr_shape", integers(&[nodes, 4_000_000_000])),
            ("labels", integers(&(0..nodes).map(|node| node % 2).collect::<Vec<_>>())),
        ],
    );
}

#[test]
fn four_billion_attributes_are_an_error_and_not_the_end_of_all_memory() {
    let fixture = Fixture::new();
    for (nodes, words) in [(1, "the graph has 1 classes"), (2, "GB of memory; use fewer attributes")] {
        write_huge(&fixture, nodes);
        refused(&fixture, &with_graph("huge.npz"), &["12 attributes", "4000000000", "use the graph it was trained on"]);
        let info = fixture.run("data info huge.npz").succeeded().stdout;
        assert!(info.contains("4000000000"), "{info}");
        for method in ["ce", "rh-u"] {
            let line = "--graph huge.npz --train 100% --global-budget 3 --local-budget 2 --out huge.safetensors";
            let run = fixture.run(&format!("train {line} --method {method} --protect-attributes 3999999999"));
            assert!(run.code == 2 && run.stderr.contains(words), "{nodes} {method}: {}", run.stderr);
        }
        assert!(!fixture.exists("huge.safetensors"));
    }
}

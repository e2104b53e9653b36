//! `nodeproof certify`, end to end.
use std::fs;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::common::{self, Fixture, json};

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(json).collect()
}

#[test]
fn certificates_have_a_header_and_a_line_a_node() {
    let fixture = Fixture::new();
    let run = fixture.certify("--out out.jsonl").succeeded();
    assert!(run.stdout.contains("written") && run.stdout.contains("out.jsonl"), "{}", run.stdout);
    let text = fixture.read("out.jsonl");
    let all = lines(&text);
    assert_eq!(all.len(), 31);
    let header = &all[0];
    assert_eq!((&header["format"], &header["version"]), (&"nodeproof-certificates".into(), &2.into()));
    assert_eq!((&header["engine"], &header["class"]), (&"complete".into(), &"predicted".into()));
    assert_eq!((&header["graph"]["nodes"], &header["graph"]["attributes"]), (&30.into(), &12.into()));
    assert_eq!((&header["model"]["layers"], &header["model"]["propagation"]), (&2.into(), &"symmetric-gcn".into()));
    assert_eq!((&header["budget"]["global"], &header["budget"]["local"]), (&2.into(), &"1%".into()));
    assert_eq!((&header["budget"]["local_count"], &header["nodes"]), (&1.into(), &30.into()));
    for (node, record) in all[1..].iter().enumerate() {
        assert_eq!((&record["node"], &record["label"]), (&node.into(), &(node % 3).into()));
        let margins = record["margins"].as_array().unwrap();
        assert_eq!(margins.len(), 3);
        assert!(margins[record["class"].as_u64().unwrap() as usize].is_null());
        assert_eq!(record["class"], record["predicted"]);
        let fields = |names: &[&str]| names.iter().all(|name| record.get(name).is_some());
        match record["verdict"].as_str().unwrap() {
            "robust" => assert!(margins.iter().flatten_numbers().all(|margin| margin > 0.0)),
            "nonrobust" => {
                assert!(fields(&["witness", "witness_class", "witness_margin"]));
                let witness = record["witness"].as_array().unwrap();
                assert!((1..=2).contains(&witness.len()), "within the budget");
                assert!(record["witness_margin"].as_f64().unwrap() < 0.0);
            }
            "undecided" => assert!(fields(&["lower", "upper"])),
            other => panic!("{other}"),
        }
        assert!(record.get("seconds").is_none());
    }
}

trait Numbers<'a> {
    fn flatten_numbers(self) -> impl Iterator<Item = f64>;
}

impl<'a, I: Iterator<Item = &'a Value>> Numbers<'a> for I {
    fn flatten_numbers(self) -> impl Iterator<Item = f64> {
        self.filter_map(Value::as_f64)
    }
}

#[test]
fn verdicts_of_both_kinds_occur_in_the_fixture() {
    let fixture = Fixture::new();
    let all = json(&fixture.certify("--json").succeeded().stdout)["all"].clone();
    assert!(all["robust"].as_u64() > Some(0) && all["nonrobust"].as_u64() > Some(0), "{all}");
}

#[test]
fn csv_has_a_row_a_node() {
    let fixture = Fixture::new();
    fixture.certify("--csv out.csv --nodes 3,1 --engine fast").succeeded();
    let text = fixture.read("out.csv");
    let rows: Vec<_> = text.lines().collect();
    assert_eq!(
        rows[0],
        "node,name,label,predicted,class,verdict,margin,worst_class,flips,witness_margin,engine,branches,deleted_edges"
    );
    assert_eq!(rows.len(), 3);
    assert!(rows[1].starts_with("3,paper 3,0,") && rows[2].starts_with("1,paper 1,1,"), "{text}");
    assert!(rows[1].ends_with(",fast,0,"));
    common::graph(30, 12).write(fixture.path("graph.npz")).unwrap();
    fixture.certify("--csv out.csv").succeeded();
    assert!(fixture.read("out.csv").starts_with("node,label,predicted"), "no names, no column");
}

#[test]
fn the_summary_counts_all_nodes() {
    let fixture = Fixture::new();
    let run = fixture.certify("").succeeded();
    assert!(run.stdout.contains("robust") && run.stdout.contains("accuracy"), "{}", run.stdout);
    assert!(run.stdout.contains("at most 2 flips, 1 at one node (1% of 12 attributes)"), "{}", run.stdout);
    assert!(run.stdout.contains("nodes/s"), "{}", run.stdout);
    assert!(run.stdout.lines().all(|line| line.chars().count() <= 80), "{}", run.stdout);
    assert!(!run.stdout.contains('\u{1b}') && !run.stdout.contains("labelled"), "{}", run.stdout);
    let summary = json(&fixture.certify("--json").succeeded().stdout);
    let all = &summary["all"];
    let counts = ["robust", "nonrobust", "undecided"].map(|verdict| all[verdict].as_u64().unwrap());
    assert_eq!((counts.iter().sum::<u64>(), &all["nodes"]), (30, &30.into()));
    assert_eq!((&summary["interrupted"], &summary["header"]["nodes"]), (&false.into(), &30.into()));
}

#[test]
fn a_split_gives_rows_and_parts() {
    let fixture = Fixture::new();
    fixture.run("data split --graph graph.npz --train-per-class 2 --validation 10% --out split.json").succeeded();
    let run = fixture.certify("--split split.json").succeeded();
    assert!(run.stdout.contains("\nlabelled ") && run.stdout.contains("\nunlabelled "), "{}", run.stdout);
    let summary = json(&fixture.certify("--split split.json --json").succeeded().stdout);
    assert_eq!((&summary["labelled"]["nodes"], &summary["unlabelled"]["nodes"]), (&6.into(), &24.into()));
    for (part, nodes) in [("train", 6), ("validation", 3), ("test", 21), ("unlabelled", 24)] {
        let summary = json(&fixture.certify(&format!("--split split.json --json --nodes {part}")).succeeded().stdout);
        assert_eq!(summary["all"]["nodes"], nodes, "{part}");
    }
}

#[test]
fn the_gate_decides_the_exit_code() {
    let fixture = Fixture::new();
    assert_eq!(fixture.certify("--fail-under 0%").code, 0);
    let run = fixture.certify("--fail-under 100% --out out.jsonl");
    assert_eq!(run.code, 1);
    assert!(run.stderr.starts_with("failed: ") && run.stderr.contains("--fail-under 100%"), "{}", run.stderr);
    assert_eq!(fixture.read("out.jsonl").lines().count(), 31, "the results are written all the same");
    assert_eq!(fixture.certify("--fail-under 1.0 --quiet").code, 1);
}

#[test]
fn bytes_do_not_depend_on_threads() {
    let fixture = Fixture::new();
    fixture.certify("--threads 1 --out one.jsonl --csv one.csv").succeeded();
    fixture.certify("--threads 2 --out two.jsonl --csv two.csv").succeeded();
    assert_eq!(fixture.read("one.jsonl"), fixture.read("two.jsonl"));
    assert_eq!(fixture.read("one.csv"), fixture.read("two.csv"));
}

#[test]
fn timings_are_on_demand() {
    let fixture = Fixture::new();
    fixture.certify("--timings --out out.jsonl").succeeded();
    assert!(lines(&fixture.read("out.jsonl"))[1..].iter().all(|record| record["seconds"].as_f64().is_some()));
}

#[test]
fn resuming_gives_the_same_bytes_wherever_the_run_was_cut() {
    let fixture = Fixture::new();
    fixture.certify("--out whole.jsonl --csv whole.csv").succeeded();
    let whole = fixture.read("whole.jsonl");
    let header = whole.find('\n').unwrap() + 1;
    let second = header + whole[header..].find('\n').unwrap() + 1;
    for cut in [0, 10, header - 1, header, header + 7, second, second + 40, whole.len() - 1, whole.len()] {
        let _ = fs::remove_file(fixture.path("out.jsonl"));
        fixture.write("out.jsonl.unfinished", &whole[..cut]);
        let run = fixture.certify("--out out.jsonl --csv out.csv --resume --json").succeeded();
        let summary = json(&run.stdout);
        let kept = whole[..cut].matches('\n').count().saturating_sub(1);
        assert_eq!((&summary["all"]["nodes"], &summary["resumed"]), (&30.into(), &kept.into()), "cut at {cut}");
        assert_eq!(fixture.read("out.jsonl"), whole, "cut at {cut}");
        assert_eq!(fixture.read("out.csv"), fixture.read("whole.csv"), "cut at {cut}");
        assert!(!fixture.exists("out.jsonl.unfinished"), "cut at {cut}");
    }
    let run = fixture.certify("--out out.jsonl --resume --json").succeeded();
    assert_eq!(
        (&json(&run.stdout)["resumed"], fixture.read("out.jsonl")),
        (&30.into(), whole.clone()),
        "all was there"
    );
    let run = fixture.certify("--out fresh.jsonl --resume").succeeded();
    assert!(!run.stdout.contains("resumed"));
    assert_eq!(fixture.read("fresh.jsonl"), whole, "without a file, a run begins");
}

#[test]
fn certificates_to_stdout_push_the_summary_to_stderr() {
    let fixture = Fixture::new();
    let run = fixture.certify("--out -");
    assert_eq!(run.code, 0);
    assert_eq!(lines(&run.stdout).len(), 31);
    assert!(run.stderr.contains("nonrobust") && run.stderr.contains("budget"), "{}", run.stderr);
    let quiet = fixture.certify("--out - --quiet").succeeded();
    assert_eq!(quiet.stdout, run.stdout);
    assert!(!fixture.exists("-"));
    assert!(fixture.certify("--csv - --quiet").succeeded().stdout.starts_with("node,name"));
}

#[test]
fn quiet_means_quiet() {
    let fixture = Fixture::new();
    let run = fixture.certify("--quiet --out out.jsonl").succeeded();
    assert_eq!(run.stdout, "");
    assert_eq!(json(&fixture.certify("--quiet --json").succeeded().stdout)["all"]["nodes"], 30);
}

#[test]
fn a_closed_pipe_is_no_error() {
    let fixture = Fixture::new();
    // More rows than buffers hold.
    common::graph(3000, 12).write(fixture.path("large.npz")).unwrap();
    for (graph, format) in
        [("graph.npz", "--out"), ("graph.npz", "--csv"), ("large.npz", "--out"), ("large.npz", "--csv")]
    {
        let line = format!(
            "certify --graph {graph} --model model.safetensors --global-budget 1 --engine fast {format} - --quiet"
        );
        let mut child = Command::new(env!("CARGO_BIN_EXE_nodeproof"))
            .args(line.split(' '))
            .current_dir(fixture.path(""))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), stderr.as_str()), (Some(0), ""), "{line}");
    }
}

#[test]
fn a_closed_pipe_neither_cuts_other_files_short_nor_fails_a_gate() {
    let fixture = Fixture::new();
    fixture.certify("--csv whole.csv").succeeded();
    let line = "certify --graph graph.npz --model model.safetensors --global-budget 2 --out - --csv out.csv --quiet \
                --fail-under 0%";
    let mut child = Command::new(env!("CARGO_BIN_EXE_nodeproof"))
        .args(line.split_whitespace())
        .current_dir(fixture.path(""))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(fixture.read("out.csv"), fixture.read("whole.csv"));
}

#[test]
fn the_benchmark_compares_with_the_dense_formula() {
    let fixture = Fixture::new();
    let line = "bench certify --graph graph.npz --model model.safetensors --global-budget 2 --repeats 1 --sample 7 -q";
    let report = json(&fixture.run(&format!("{line} --json")).succeeded().stdout);
    assert_eq!((&report["nodes"], &report["sampled_nodes"]), (&30.into(), &7.into()));
    assert!(report["largest_difference"].as_f64().unwrap() < 1e-10, "{report}");
    assert!(fixture.run(line).succeeded().stdout.contains("dense formula"));
}

#[test]
fn timed_and_untimed_runs_are_not_mixed() {
    let fixture = Fixture::new();
    fixture.certify("--out out.jsonl").succeeded();
    let refused = fixture.certify("--out out.jsonl --resume --timings");
    assert_eq!(refused.code, 2, "{}", refused.stderr);
}

#[test]
fn node_lists_keep_their_order_and_drop_repeats() {
    let fixture = Fixture::new();
    fixture.write("ids.txt", "# some\n7, 2\n5-6 2\n");
    fixture.certify("--nodes @ids.txt --out out.jsonl").succeeded();
    let nodes: Vec<_> = lines(&fixture.read("out.jsonl"))[1..].iter().map(|r| r["node"].as_u64().unwrap()).collect();
    assert_eq!(nodes, [7, 2, 5, 6]);
}

#[test]
fn budget_options_reach_the_certificates() {
    let fixture = Fixture::new();
    fixture.write("local.txt", "3 2\n4,0 # not at all\n");
    let more = ["--add-only", "--local-budget", "3", "--local-budget-file", "local.txt", "--protect-nodes", "0-1"];
    let names = ["--protect-attributes", "2,word 5,7-8", "--out", "out.jsonl"];
    let base = ["certify", "--graph", "graph.npz", "--model", "model.safetensors", "--global-budget", "4"];
    let run = fixture.run_all(&[&base[..], &more[..], &names[..]].concat()).succeeded();
    for words in ["only additions", "2 nodes with a local budget", "2 nodes protected", "4 attributes protected"] {
        assert!(run.stdout.replace('\n', " ").split_whitespace().collect::<Vec<_>>().join(" ").contains(words));
    }
    let all = lines(&fixture.read("out.jsonl"));
    let budget = &all[0]["budget"];
    assert_eq!(budget["direction"], "add-only");
    assert_eq!(budget["local_at"], json(r#"{"3":2,"4":0}"#));
    assert_eq!((&budget["protected_nodes"], &budget["protected_attributes"]), (&json("[0,1]"), &json("[2,5,7,8]")));
    let flips = all[1..].iter().filter_map(|record| record["witness"].as_array()).flatten();
    for flip in flips {
        assert_eq!(flip["to"], 1);
        assert!(![0, 1, 4].contains(&flip["node"].as_u64().unwrap()));
        assert!(![2, 5, 7, 8].contains(&flip["attribute"].as_u64().unwrap()));
    }
}

#[test]
fn an_attribute_may_be_called_by_a_number() {
    let fixture = Fixture::new();
    let names = (0..12).map(|i| if i == 7 { "3".to_owned() } else { format!("word {i}") }).collect();
    let names = nodeproof::Names { attributes: Some(names), ..nodeproof::Names::default() };
    common::graph(30, 12).with_names(names).unwrap().write(fixture.path("graph.npz")).unwrap();
    for (list, attributes) in [("3", "[3]"), ("name:3", "[7]"), ("name:3,3", "[3,7]"), ("name:word 4,0-1", "[0,1,4]")] {
        let arguments = ["certify", "--graph", "graph.npz", "--model", "model.safetensors", "--global-budget", "2"];
        let more = ["--protect-attributes", list, "--out", "out.jsonl"];
        fixture.run_all(&[&arguments[..], &more[..]].concat()).succeeded();
        let header = json(fixture.read("out.jsonl").lines().next().unwrap());
        assert_eq!(header["budget"]["protected_attributes"], json(attributes), "{list}");
    }
    let run = fixture.certify("--protect-attributes name:5");
    assert!(run.code == 2 && run.stderr.contains("no attribute is called `5`"), "{}", run.stderr);
    let help = fixture.run("certify --help").stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(help.contains("name:3 the one that is called 3"), "{help}");
}

#[test]
fn labels_can_be_certified_instead_of_predictions() {
    let fixture = Fixture::new();
    fixture.certify("--class label --out out.jsonl").succeeded();
    let all = lines(&fixture.read("out.jsonl"));
    assert_eq!(all[0]["class"], "label");
    assert!(all[1..].iter().all(|record| record["class"] == record["label"]));
    let wrong = all[1..].iter().find(|record| record["predicted"] != record["label"]).unwrap();
    assert_eq!(wrong["verdict"], "nonrobust");
}

#[test]
fn an_existing_file_is_overwritten() {
    let fixture = Fixture::new();
    fixture.write("out.jsonl", "old ".repeat(100_000));
    fixture.certify("--nodes 0 --out out.jsonl").succeeded();
    assert_eq!(lines(&fixture.read("out.jsonl")).len(), 2);
}

#[test]
fn removed_self_loops_are_noted() {
    let fixture = Fixture::new();
    common::npz(
        &fixture.path("loops.npz"),
        &[
            ("adj_data", common::floats("(1,)", &[1.0])),
            ("adj_indices", common::integers(&[0])),
            ("adj_indptr", common::integers(&[0, 1])),
            ("adj_shape", common::integers(&[1, 1])),
            ("attr_data", common::floats("(1,)", &[1.0])),
            ("attr_indices", common::integers(&[11])),
            ("attr_indptr", common::integers(&[0, 1])),
            ("attr_shape", common::integers(&[1, 12])),
        ],
    );
    let line = "certify --graph loops.npz --model model.safetensors --global-budget 1";
    let run = fixture.run(line);
    assert_eq!((run.code, run.stderr.contains("--keep-self-loops")), (0, true), "{}", run.stderr);
    fixture.run(&format!("{line} --keep-self-loops")).succeeded();
    fixture.run(&format!("{line} --quiet")).succeeded();
}

#[test]
fn help_documents_exit_codes_and_examples() {
    let fixture = Fixture::new();
    let help = fixture.run("--help").succeeded().stdout;
    assert!(help.contains("Exit codes:") && help.contains("130"), "{help}");
    for command in ["certify", "explain", "radius", "data info", "data split", "model info", "model convert"] {
        let help = fixture.run(&format!("{command} --help")).succeeded().stdout;
        assert!(help.contains("Examples:"), "{command}");
    }
}

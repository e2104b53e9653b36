//! `nodeproof radius`, end to end.
use serde_json::Value;

use crate::common::{self, Fixture, Run, json};

/// Looks for radii in the fixture's graph with these further arguments.
fn radius(fixture: &Fixture, more: &str) -> Run {
    fixture.run(&format!("radius --graph graph.npz --model model.safetensors {more}"))
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(json).collect()
}

/// The example of the repository.
fn papers(fixture: &Fixture, more: &str) -> Run {
    common::copy_papers(fixture);
    fixture.run(&format!("radius --graph papers.npz --model papers.safetensors --local-budget 2 {more}"))
}

#[test]
fn the_largest_budget_may_be_called_global_budget_as_elsewhere() {
    let fixture = Fixture::new();
    radius(&fixture, "--max-budget 3 --out max.jsonl").succeeded();
    radius(&fixture, "--global-budget 3 --out global.jsonl").succeeded();
    assert_eq!(fixture.read("global.jsonl"), fixture.read("max.jsonl"));
}

#[test]
fn radii_have_a_header_and_a_line_a_node() {
    let fixture = Fixture::new();
    let run = radius(&fixture, "--max-budget 9 --out out.jsonl").succeeded();
    assert!(run.stdout.contains("written  out.jsonl") || run.stdout.contains("out.jsonl"), "{}", run.stdout);
    let all = lines(&fixture.read("out.jsonl"));
    assert_eq!(all.len(), 31);
    let header = &all[0];
    assert_eq!((&header["format"], &header["version"]), (&"nodeproof-radii".into(), &2.into()));
    assert_eq!(header["engine"], "complete");
    assert!(header["graph"]["fingerprint"].is_string() && header["model"]["fingerprint"].is_string());
    assert_eq!(header["budget"], json(r#"{"global":9,"local":"1%","direction":"both","local_count":1}"#));
    for (node, record) in all[1..].iter().enumerate() {
        assert_eq!((&record["node"], &record["label"]), (&node.into(), &(node % 3).into()));
        assert_eq!(record["exact"], true, "{record}");
        let robust = record["robust_up_to"].as_u64().unwrap();
        match record["nonrobust_from"].as_u64() {
            Some(from) => {
                assert_eq!((from, record["witness"].as_array().unwrap().len() as u64), (robust + 1, from), "{record}");
                assert!(record["witness_margin"].as_f64() <= Some(0.0));
            }
            None => assert!(robust == 9 && record.get("witness").is_none(), "{record}"),
        }
        assert!(
            record["verdicts"].as_u64() > Some(0) && record["branches"].is_u64() && record.get("seconds").is_none()
        );
    }
}

#[test]
fn radii_agree_with_certifying_on_both_sides() {
    let fixture = Fixture::new();
    for engine in ["fast", "complete"] {
        radius(&fixture, &format!("--max-budget 5 --engine {engine} --out out.jsonl")).succeeded();
        let radii = lines(&fixture.read("out.jsonl"));
        for global in 1..=5 {
            let line = format!("certify --graph graph.npz --model model.safetensors --global-budget {global}");
            fixture.run(&format!("{line} --engine {engine} --out c.jsonl")).succeeded();
            for (radius, certificate) in radii[1..].iter().zip(&lines(&fixture.read("c.jsonl"))[1..]) {
                let robust = radius["robust_up_to"].as_u64() >= Some(global);
                assert_eq!(certificate["verdict"] == "robust", robust, "{radius} {certificate}");
                let nonrobust = radius["nonrobust_from"].as_u64().is_some_and(|from| from <= global);
                assert_eq!(certificate["verdict"] == "nonrobust", nonrobust, "{radius} {certificate}");
                assert_eq!(radius["class"], certificate["class"]);
            }
        }
    }
}

/// The largest budget under which `certify` calls the node robust, with the same margin and in the same arithmetic.
#[test]
fn more_may_be_asked_for_than_positive_margins() {
    let fixture = Fixture::new();
    let files = "--graph graph.npz --model model.safetensors";
    for asked in ["--margin 0.05", "--arithmetic bf16", "--margin 0.02 --arithmetic f32"] {
        let run = radius(&fixture, &format!("--max-budget 4 {asked} --proof --check --out out.jsonl")).succeeded();
        let words = match asked {
            "--margin 0.05" => "; margins above 0.05",
            "--arithmetic bf16" => "; in bf16 arithmetic",
            _ => "; margins above 0.02; in f32 arithmetic",
        };
        let told = run.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(told.contains(words) && told.contains("all radii are accepted"), "{}", run.stdout);
        let radii = lines(&fixture.read("out.jsonl"));
        let mut largest = vec![0; radii.len() - 1];
        for global in 1..=4 {
            let certify = format!("certify {files} --global-budget {global} {asked} --proof --out c.jsonl --quiet");
            fixture.run(&certify).succeeded();
            for (largest, certificate) in largest.iter_mut().zip(&lines(&fixture.read("c.jsonl"))[1..]) {
                if certificate["verdict"] == "robust" {
                    *largest = global;
                }
            }
        }
        let found: Vec<_> = radii[1..].iter().map(|radius| radius["robust_up_to"].as_u64().unwrap_or(0)).collect();
        assert_eq!(found, largest, "{asked}");
        assert!(
            largest.iter().any(|&largest| largest < 4) && largest.iter().any(|&largest| largest > 0),
            "{largest:?}"
        );
        fixture.run(&format!("report out.jsonl {} --out page.html --quiet", "--graph graph.npz")).succeeded();
        assert!(fixture.read("page.html").contains(words), "{asked}");
        let resumed = radius(&fixture, "--max-budget 4 --proof --out out.jsonl --resume");
        assert!(resumed.code == 2 && resumed.stderr.contains("none now"), "{}", resumed.stderr);
    }
    let header = lines(&fixture.read("out.jsonl")).remove(0);
    assert_eq!((&header["margin"], &header["arithmetic"]), (&0.02.into(), &"f32".into()));
    let run = radius(&fixture, "--margin -1");
    assert!(run.code == 2 && run.stderr.contains("--margin"), "{}", run.stderr);
}

#[test]
fn radii_of_another_margin_or_arithmetic_are_rejected() {
    let fixture = Fixture::new();
    let check = |name: &str| fixture.run(&format!("check {name} --graph graph.npz --model model.safetensors")).code;
    radius(&fixture, "--max-budget 4 --margin 0.05 --arithmetic f32 --proof --out out.jsonl --quiet").succeeded();
    assert_eq!(check("out.jsonl"), 0);
    let forge = |set: &dyn Fn(&mut nodeproof::results::Header)| {
        let mut radii = nodeproof::results::Radii::read(fixture.path("out.jsonl")).unwrap();
        set(&mut radii.header);
        radii.write(std::fs::File::create(fixture.path("forged.jsonl")).unwrap()).unwrap();
        check("forged.jsonl")
    };
    assert_eq!(forge(&|_| {}), 0);
    assert_eq!(forge(&|header| header.arithmetic = nodeproof::Arithmetic::Bf16), 1, "it takes off more");
    assert_eq!(forge(&|header| header.margin = 0.5), 1, "fewer exceed it");
    assert_eq!(forge(&|header| header.margin = 0.0), 2, "some witnesses leave more");
}

#[test]
fn the_summary_counts_and_draws() {
    let fixture = Fixture::new();
    let run = papers(&fixture, "").succeeded();
    for words in
        ["nodes     exact  mean  median  largest", "24  100%", "engine  complete", "up to 100 flips tried", "█"]
    {
        assert!(run.stdout.contains(words), "{words}\n{}", run.stdout);
    }
    assert!(
        run.stdout.lines().all(|line| line.chars().count() <= 80) && !run.stdout.contains("hint"),
        "{}",
        run.stdout
    );
    let summary = json(&papers(&fixture, "--json --out out.jsonl").succeeded().stdout);
    let radii: Vec<u64> =
        lines(&fixture.read("out.jsonl"))[1..].iter().map(|record| record["robust_up_to"].as_u64().unwrap()).collect();
    assert_eq!((&summary["all"]["nodes"], &summary["all"]["exact"]), (&24.into(), &24.into()));
    let mean = radii.iter().sum::<u64>() as f64 / 24.0;
    assert!((summary["all"]["mean"].as_f64().unwrap() - mean).abs() < 1e-12, "{summary}");
    assert_eq!(summary["all"]["largest"].as_u64(), radii.iter().copied().max());
    let bars = summary["histogram"].as_array().unwrap();
    assert_eq!(bars.iter().map(|bar| bar["nodes"].as_u64().unwrap()).sum::<u64>(), 24);
    assert_eq!((&summary["withstand_all"], &summary["header"]["budget"]["global"]), (&0.into(), &100.into()));
}

#[test]
fn what_is_left_open_is_said() {
    let fixture = Fixture::new();
    let text = papers(&fixture, "--engine fast").succeeded().stdout;
    assert!(text.contains("are not exact; counted as the largest budget proven"), "{text}");
    assert!(text.contains("hint    --engine complete may make more radii exact"), "{text}");
    let text = papers(&fixture, "--max-budget 2").succeeded().stdout;
    assert!(text.contains("≥ 2") && text.contains("withstand all of --max-budget, and may withstand more"), "{text}");
    let open = json(&papers(&fixture, "--time-limit 0 --json").succeeded().stdout);
    assert!(open["all"]["exact"].as_u64() < Some(24), "{open}");
    let text = papers(&fixture, "--time-limit 0").succeeded().stdout;
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let hint = "a longer --time-limit (now 0 s) or a larger --memory-limit (now 1G) may make more radii exact";
    assert!(words.contains(hint), "{text}");
}

#[test]
fn the_scan_is_the_papers_measure() {
    let fixture = Fixture::new();
    let scan = json(&papers(&fixture, "--engine fast --scan --json --out out.jsonl --csv out.csv").succeeded().stdout);
    let all = lines(&fixture.read("out.jsonl"));
    assert_eq!((&all[0]["scan"], &all[0]["engine"]), (&true.into(), &"fast".into()));
    assert!(all[1..].iter().all(|record| record.get("exact").is_none() && record["robust_up_to"].is_u64()));
    assert!(scan["all"].get("exact").is_none(), "{scan}");
    assert_eq!(fixture.read("out.csv").lines().count(), 25);
    // The bounds of the engine fast fall with the budget here, so that bisection finds the same.
    let bisected = json(&papers(&fixture, "--engine fast --json").succeeded().stdout);
    assert_eq!(scan["all"]["mean"], bisected["all"]["mean"]);
    let text = papers(&fixture, "--engine fast --scan").succeeded().stdout;
    assert!(text.contains("as the paper does") && !text.contains("exact"), "{text}");
}

#[test]
fn csv_has_a_row_a_node() {
    let fixture = Fixture::new();
    radius(&fixture, "--nodes 3,1 --max-budget 4 --csv out.csv").succeeded();
    let text = fixture.read("out.csv");
    let rows: Vec<_> = text.lines().collect();
    let header = "node,name,label,class,robust_up_to,nonrobust_from,exact,witness_margin,verdicts,branches";
    assert_eq!((rows[0], rows.len()), (header, 3));
    assert!(rows[1].starts_with("3,paper 3,0,") && rows[2].starts_with("1,paper 1,1,"), "{text}");
}

#[test]
fn parts_of_a_split_have_rows() {
    let fixture = Fixture::new();
    fixture.run("data split --graph graph.npz --train-per-class 2 --validation 10% --out split.json").succeeded();
    let text = radius(&fixture, "--max-budget 4 --split split.json").succeeded().stdout;
    assert!(text.contains("\nlabelled ") && text.contains("\nunlabelled "), "{text}");
    let summary = json(&radius(&fixture, "--max-budget 4 --split split.json --nodes test --json").succeeded().stdout);
    assert_eq!((&summary["all"]["nodes"], summary.get("labelled")), (&21.into(), None));
}

#[test]
fn bytes_do_not_depend_on_threads_and_times_are_on_demand() {
    let fixture = Fixture::new();
    radius(&fixture, "--max-budget 6 --threads 1 --out one.jsonl --csv one.csv").succeeded();
    radius(&fixture, "--max-budget 6 --threads 2 --out two.jsonl --csv two.csv").succeeded();
    assert_eq!(fixture.read("one.jsonl"), fixture.read("two.jsonl"));
    assert_eq!(fixture.read("one.csv"), fixture.read("two.csv"));
    radius(&fixture, "--max-budget 6 --timings --out timed.jsonl").succeeded();
    let timed = lines(&fixture.read("timed.jsonl"));
    assert!(timed[0]["timings"] == true && timed[1..].iter().all(|record| record["seconds"].is_f64()));
}

#[test]
fn stdout_and_quiet_are_as_elsewhere() {
    let fixture = Fixture::new();
    let run = radius(&fixture, "--max-budget 4 --out -");
    assert_eq!((run.code, lines(&run.stdout).len()), (0, 31));
    assert!(run.stderr.contains("median") && run.stderr.contains("budget"), "{}", run.stderr);
    assert_eq!(radius(&fixture, "--max-budget 4 --out - --quiet").succeeded().stdout, run.stdout);
    assert_eq!(radius(&fixture, "--max-budget 4 --quiet").succeeded().stdout, "");
}

#[test]
fn a_tie_ends_a_radius() {
    let fixture = Fixture::new();
    common::write_tie(&fixture);
    let line = "radius --graph tie.npz --model tie.safetensors --local-budget 1 --out out.jsonl";
    fixture.run(line).succeeded();
    let all = lines(&fixture.read("out.jsonl"));
    assert_eq!(all[0]["budget"]["global"], 2, "no set of flips is larger than the graph");
    let record = &all[1];
    assert_eq!((&record["robust_up_to"], &record["nonrobust_from"]), (&0.into(), &1.into()), "{record}");
    assert_eq!((&record["exact"], &record["witness_margin"]), (&true.into(), &0.0.into()), "{record}");
}

#[test]
fn a_wrong_label_has_no_radius() {
    let fixture = Fixture::new();
    let run = radius(&fixture, "--max-budget 4 --class label --out out.jsonl").succeeded();
    assert!(run.stdout.contains("not robust even without flips; counted as 0"), "{}", run.stdout);
    let all = lines(&fixture.read("out.jsonl"));
    let wrong = all[1..].iter().find(|record| record["robust_up_to"].is_null()).unwrap();
    assert_eq!((&wrong["nonrobust_from"], &wrong["exact"]), (&0.into(), &true.into()));
    assert_eq!(wrong["witness"], json("[]"));
}

#[test]
fn bad_input_is_refused_with_a_remedy_and_no_output() {
    let fixture = Fixture::new();
    for (more, words) in [
        ("--max-budget 0", "at least 1"),
        ("--max-budget -1", "whole number"),
        ("--scan", "add --engine fast"),
        ("--scan --engine complete", "add --engine fast"),
        ("--scan --engine tight", "not tight"),
        ("--scan --engine fast --timings --out out.jsonl", "cannot be used with"),
        ("--timings", "--out <FILE>"),
        ("--time-limit never", "number of seconds"),
        ("--engine exact", "fast, tight, complete"),
        ("--nodes 30", "node 30 does not exist"),
        ("--nodes test", "--split FILE"),
        ("--local-budget 13", "at most 12"),
        ("--out graph.npz", "is an input"),
        ("--out same --csv same", "same place"),
        ("--csv no/out.csv", "make it first"),
    ] {
        let outputs = if more.contains("--out") { "" } else { "--out out.jsonl" };
        let outputs = if more == "--timings" { "" } else { outputs };
        let run = radius(&fixture, &format!("{more} {outputs}"));
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{more}: {}", run.stderr);
        assert!(run.stderr.starts_with("error: ") && run.stderr.contains(words), "{more}: {}", run.stderr);
        assert!(!fixture.exists("out.jsonl"), "{more}");
    }
}

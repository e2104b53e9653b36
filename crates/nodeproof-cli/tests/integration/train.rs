//! `nodeproof train` and `nodeproof bench train`, end to end.
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::common::{self, Fixture, Run, json};

/// A folder with the example graph.
fn fixture() -> Fixture {
    let fixture = Fixture::new();
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/papers/graph.npz");
    fs::copy(example, fixture.path("papers.npz")).unwrap();
    fixture
}

/// Trains on the example graph with these further arguments, and says nothing meanwhile.
fn train(fixture: &Fixture, more: &str) -> Run {
    fixture.run(&format!("train --graph papers.npz --global-budget 4 --local-budget 2 --train 30% -q {more}"))
}

fn bytes(fixture: &Fixture, name: &str) -> Vec<u8> {
    fs::read(fixture.path(name)).unwrap()
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(json).collect()
}

#[test]
fn every_method_trains_a_network_of_any_depth() {
    let fixture = fixture();
    for (method, more, steps, engine) in [
        ("ce", "", 8, "fast"),
        ("rce", "--hidden 6,5", 8, "tight"),
        ("rh", "--hidden none --propagation row-normalised", 8, "fast"),
        ("rh-u", "--hidden 7 --labelled-steps 3 --batch 5 --patience none", 11, "fast"),
    ] {
        let line = format!("--method {method} --steps 8 {more} --out {method}.safetensors --json");
        let summary = json(&train(&fixture, &line).succeeded().stdout);
        let run = &summary["runs"][0];
        assert_eq!((&summary["method"], &run["steps"], &run["resumed"]), (&method.into(), &steps.into(), &0.into()));
        assert_eq!((&run["all"]["nodes"], &run["labelled"]["nodes"]), (&24.into(), &6.into()));
        assert_eq!((&run["split"]["train"], &run["split"]["seed"]), (&6.into(), &0.into()));
        assert!(run["unlabelled"]["accuracy"].as_f64() > Some(0.0) && run["cpu_seconds"].as_f64().is_some(), "{run}");
        // What was trained can be certified, with the same verdicts of the same engine.
        let line = format!(
            "certify --graph papers.npz --model {method}.safetensors --global-budget 4 --local-budget 2 --engine {engine}"
        );
        let certified = json(&fixture.run(&format!("{line} --json")).succeeded().stdout);
        assert_eq!(certified["all"], run["all"], "{method}");
    }
}

#[test]
fn every_architecture_is_trained_certified_and_named() {
    let fixture = fixture();
    for (architecture, more, method, is_deep) in [
        ("gcn", "", "ce", false),
        ("sage", "--hidden 6,5", "rh", true),
        ("gin", "--hidden 6", "rce", true),
        ("sgc", "--propagation row-normalised", "rh-u --labelled-steps 2", false),
        ("appnp", "--hidden 6", "rh", false),
        ("gcnii", "--hidden 6,6", "rh-u --labelled-steps 2", true),
        ("mlp", "--hidden none", "rh", false),
    ] {
        let line =
            format!("--method {method} --architecture {architecture} --steps 6 {more} --out m.safetensors --json");
        let summary = json(&train(&fixture, &line).succeeded().stdout);
        assert_eq!(summary["architecture"], architecture);
        let (engine, worst_case) = if is_deep { ("tight", "first-order") } else { ("fast", "dual") };
        let line = "certify --graph papers.npz --model m.safetensors --global-budget 4 --local-budget 2 --json";
        let certified = json(&fixture.run(&format!("{line} --engine {engine}")).succeeded().stdout);
        assert_eq!(certified["all"], summary["runs"][0]["all"], "{architecture}");
        let info = json(&fixture.run("model info m.safetensors --json").succeeded().stdout);
        assert_eq!(info["training"]["architecture"], architecture);
        assert_eq!(info["training"]["options"]["architecture"], architecture);
        assert_eq!(info["training"]["options"]["worst_case"], worst_case);
    }
    let info = fixture.run("model info m.safetensors").succeeded().stdout;
    assert!(info.lines().any(|line| line.starts_with("architecture") && line.ends_with(" mlp")), "{info}");
}

#[test]
fn labels_may_count_from_one() {
    let fixture = Fixture::new();
    let graph = common::graph(30, 12);
    let labels = graph.node_ids().map(|node| graph.label(node).map(|label| nodeproof::ClassId(label.0 + 1))).collect();
    graph.with_labels(labels).unwrap().write(fixture.path("from-one.npz")).unwrap();
    let line = "--graph from-one.npz --global-budget 2 --method rh --train 30% --steps 5 --out m.safetensors --json -q";
    let run = json(&fixture.run(&format!("train {line}")).succeeded().stdout)["runs"][0].clone();
    assert_eq!((&run["all"]["nodes"], &run["split"]["train"]), (&30.into(), &9.into()));
    let certify = "certify --graph from-one.npz --model m.safetensors --global-budget 2 --engine fast --json";
    assert_eq!(json(&fixture.run(certify).succeeded().stdout)["all"], run["all"]);
}

#[test]
fn robust_training_makes_more_nodes_robust() {
    let fixture = fixture();
    let [standard, robust] = ["ce", "rh-u"].map(|method| {
        let run = train(&fixture, &format!("--method {method} --steps 60 --out m.safetensors --json")).succeeded();
        json(&run.stdout)["runs"][0]["all"]["robust"].as_u64().unwrap()
    });
    assert!(robust > standard, "{robust} > {standard}");
}

#[test]
fn the_summary_fits_and_tells_what_was_done() {
    let fixture = fixture();
    let line = "train --graph papers.npz --method rh --global-budget 4 --train-per-class 2 --validation 25% --steps 20 \
                --out m.safetensors --write-split split.json --average-radius --max-budget 3";
    let run = fixture.run(line);
    assert_eq!(run.code, 0, "{}", run.stderr);
    for words in
        ["nonrobust", "unlabelled", "rh, 20 steps", "at most 4 flips", "6 train, 6 validation, 12 test", "seed 0"]
    {
        assert!(run.stdout.contains(words), "{words}\n{}", run.stdout);
    }
    assert!(
        run.stdout.contains("average radius") && run.stdout.contains("m.safetensors, split.json"),
        "{}",
        run.stdout
    );
    assert!(run.stdout.lines().chain(run.stderr.lines()).all(|line| line.chars().count() <= 80), "{run:?}");
    assert_eq!(run.stderr.lines().count(), 10, "a line every tenth of the steps: {}", run.stderr);
    assert!(run.stderr.starts_with("step 2/20  loss "), "{}", run.stderr);
    // The split that was drawn is the split that was used.
    let read =
        "train --graph papers.npz --method rh --global-budget 4 --split split.json --steps 20 -q --out n.safetensors";
    assert_eq!(fixture.run(read).succeeded().stdout, "");
    let (drawn, read) = (Fixture::path(&fixture, "m.safetensors"), fixture.path("n.safetensors"));
    assert_eq!(nodeproof::Model::read(drawn).unwrap(), nodeproof::Model::read(read).unwrap());
}

#[test]
fn bytes_depend_neither_on_threads_nor_on_the_day() {
    let fixture = fixture();
    for (name, threads) in [("a", 1), ("b", 3)] {
        let line = "--method rh-u --steps 12 --labelled-steps 5 --batch 7 --log-margins 3";
        train(&fixture, &format!("{line} --threads {threads} --out m.safetensors --log {name}.jsonl")).succeeded();
        fs::rename(fixture.path("m.safetensors"), fixture.path(name)).unwrap();
    }
    assert_eq!(bytes(&fixture, "a"), bytes(&fixture, "b"));
    assert_eq!(fixture.read("a.jsonl"), fixture.read("b.jsonl"));
}

#[test]
fn the_log_has_a_header_and_a_line_a_step() {
    let fixture = fixture();
    train(&fixture, "--method ce --steps 25 --seed 3 --out m.safetensors --log m.jsonl").succeeded();
    let log = lines(&fixture.read("m.jsonl"));
    assert_eq!(log.len(), 26);
    let header = &log[0];
    assert_eq!((&header["format"], &header["version"]), (&"nodeproof-training-log".into(), &2.into()));
    assert_eq!((&header["options"]["method"], &header["options"]["seed"]), (&"ce".into(), &3.into()));
    assert_eq!((&header["budget"]["global"], &header["graph"]["nodes"]), (&4.into(), &24.into()));
    assert_eq!(header["split"], json(r#"{"seed":3,"train":6,"validation":0,"test":18}"#));
    for (i, line) in log[1..].iter().enumerate() {
        assert_eq!(line["step"], i + 1);
        assert!(line["loss"].as_f64().is_some() && line["labelled_margin"].is_null() && line.get("times").is_none());
        let looked = (i + 1) % 10 == 0 || i + 1 == 25;
        assert_eq!(line.get("accuracy_unlabelled").is_some(), looked, "{line}");
    }
    for (method, own) in [("ce", false), ("rh", true)] {
        let line = format!("--method {method} --steps 3 --out m.safetensors --log {method}.jsonl --log-margins 2");
        train(&fixture, &line).succeeded();
        let log = lines(&fixture.read(&format!("{method}.jsonl")));
        assert!(log[1..].iter().all(|line| line["labelled_margin"].is_f64() && line["unlabelled_margin"].is_f64()));
        assert_eq!(log[1]["robust_share"].is_f64(), own);
    }
}

/// What was not looked at is claimed nowhere, and the network is the same.
#[test]
fn nothing_is_said_of_a_network_that_was_not_evaluated() {
    let fixture = fixture();
    train(&fixture, "--method rh --steps 12 --out looked.safetensors").succeeded();
    let line = "--method rh --steps 12 --no-evaluation --log m.jsonl --out m.safetensors";
    let summary = json(&train(&fixture, &format!("{line} --json")).succeeded().stdout);
    let run = &summary["runs"][0];
    assert_eq!((&run["evaluated"], &run["steps"]), (&false.into(), &12.into()));
    for group in ["all", "labelled", "unlabelled", "average_radius"] {
        assert!(run.get(group).is_none(), "{run}");
    }
    let log = lines(&fixture.read("m.jsonl"));
    assert!(log.len() == 13 && log[1..].iter().all(|line| line.get("accuracy_labelled").is_none()), "{log:?}");
    let training = |model: &str| json(&fixture.run(&format!("model info {model} --json")).succeeded().stdout);
    let (looked, not) = (training("looked.safetensors"), training("m.safetensors"));
    assert_eq!(looked["fingerprint"], not["fingerprint"]);
    for fact in ["robust_share", "accuracy_labelled", "accuracy_unlabelled"] {
        assert!(looked["training"][fact].is_number() && not["training"].get(fact).is_none(), "{fact}: {not}");
    }
    let told = |more: &str| {
        let words = "train --graph papers.npz --global-budget 4 --local-budget 2 --train 30% --no-evaluation";
        let run = fixture.run(&format!("{words} {more}"));
        assert!(run.code == 0 && run.stderr.contains("accuracy – labelled"), "{}", run.stderr);
        run.stdout
    };
    let text = told("--method rh --steps 12 --out m.safetensors");
    assert!(text.contains("none (--no-evaluation); nodeproof certify says") && !text.contains('%'), "{text}");
    let text = told("--splits 2 --method ce --steps 3 --out s.safetensors");
    assert!(text.contains("--no-evaluation") && !text.contains("mean") && text.contains("s-1.safetensors"), "{text}");
}

#[test]
fn labelled_nodes_may_be_looked_at_in_batches() {
    let fixture = fixture();
    for method in ["ce", "rh-u"] {
        let fingerprint = |more: &str| {
            let line = format!("--method {method} --steps 9 --out m.safetensors --no-evaluation {more}");
            train(&fixture, &line).succeeded();
            let info = json(&fixture.run("model info m.safetensors --json").succeeded().stdout);
            (info["fingerprint"].as_str().unwrap().to_owned(), info["training"]["options"]["labelled_batch"].clone())
        };
        let (all, unsaid) = fingerprint("");
        assert!(unsaid.is_null());
        assert_eq!(fingerprint("--labelled-batch all"), (all.clone(), unsaid));
        assert_eq!(fingerprint("--labelled-batch 6").0, all, "there are six labelled nodes");
        let (some, told) = fingerprint("--labelled-batch 2");
        assert!(some != all && told == 2, "{method}: {told}");
        assert_eq!(fingerprint("--labelled-batch 2 --threads 3").0, some);
    }
}

#[test]
fn a_model_tells_how_it_was_trained() {
    let fixture = fixture();
    train(&fixture, "--method rce --steps 4 --seed 7 --add-only --protect-nodes train --out m.safetensors").succeeded();
    let text = fixture.run("model info m.safetensors").succeeded().stdout;
    for words in ["trained by    rce, 4 steps, seed 7", "at most 4 flips, 2 at one node, add-only, 6 nodes protected"] {
        assert!(text.contains(words), "{words}\n{text}");
    }
    assert!(
        text.contains("6 train, 0 validation, 18 test, drawn with seed 7") && text.contains("of all nodes"),
        "{text}"
    );
    let info = json(&fixture.run("model info m.safetensors --json").succeeded().stdout);
    let training = &info["training"];
    assert_eq!((&training["method"], &training["steps"], &training["seed"]), (&"rce".into(), &4.into(), &7.into()));
    assert_eq!((&training["options"]["steps"], &training["budget"]["global"]), (&4.into(), &4.into()));
    assert!(training["robust_share"].is_number() && training["accuracy_labelled"].is_number(), "{training}");
    assert!(json(&fixture.run("model info model.safetensors --json").succeeded().stdout).get("training").is_none());
}

const RESUMABLE: &str = "--method rh-u --steps 30 --labelled-steps 10 --batch 9 --validation 20% --log-margins 2 \
                         --checkpoint c --checkpoint-every 4 --out m.safetensors --log m.jsonl";

#[test]
fn a_resumed_run_ends_in_the_same_bytes() {
    let fixture = fixture();
    train(&fixture, RESUMABLE).succeeded();
    let (model, log, checkpoint) = (bytes(&fixture, "m.safetensors"), fixture.read("m.jsonl"), bytes(&fixture, "c"));
    let again = |what: &str, resumed: u64| {
        let run = train(&fixture, &format!("{RESUMABLE} --resume --json")).succeeded();
        let run = json(&run.stdout)["runs"][0].clone();
        assert_eq!((&run["steps"], &run["resumed"]), (&40.into(), &resumed.into()), "{what}");
        assert!(bytes(&fixture, "m.safetensors") == model && bytes(&fixture, "c") == checkpoint, "{what}");
        assert_eq!(fixture.read("m.jsonl"), log, "{what}");
    };
    again("finished", 40);
    fs::rename(fixture.path("m.jsonl"), fixture.path("m.jsonl.unfinished")).unwrap();
    fixture.write("m.jsonl", "of an earlier run");
    again("all steps taken, the log not finished", 40);
    for name in ["c", "m.safetensors", "m.jsonl"] {
        fs::remove_file(fixture.path(name)).unwrap();
    }
    again("nothing there", 0);

    let note = fixture.run(
        "train --graph papers.npz --method ce --global-budget 1 --steps 1 --train 30% \
                            --out n.safetensors --checkpoint none --resume",
    );
    assert!(note.code == 0 && note.stderr.contains("note: there is no checkpoint none yet"), "{}", note.stderr);
}

#[test]
fn what_cannot_be_resumed_is_refused() {
    let fixture = fixture();
    train(&fixture, RESUMABLE).succeeded();
    let log = fixture.read("m.jsonl");
    let refused = |more: &str, words: &str| {
        let run = train(&fixture, &format!("{RESUMABLE} --resume {more}"));
        assert!(run.code == 2 && run.stderr.contains(words), "{more}: {}", run.stderr);
    };
    refused("--seed 1", "another graph, split or settings");
    refused("--architecture sage", "another graph, split or settings");
    fixture.write("m.jsonl.unfinished", &log[..log.len() - 1]);
    refused("", "ends after step 39, but the checkpoint is one after step 40");
    fixture.write("m.jsonl.unfinished", log.replacen("\"seed\":0", "\"seed\":1", 1));
    refused("", "belongs to another run (split.seed: 1 there, 0 now)");
    fixture.write("m.jsonl.unfinished", log.replacen("\"step\":7,", "\"step\":8,", 1));
    refused("", "line 8 is damaged: its hash does not fit");
    fs::remove_file(fixture.path("m.jsonl.unfinished")).unwrap();
    fixture.write("m.jsonl", format!("{log}{{\"step\":41}}\n"));
    refused("", "line 42 is damaged");
    fs::remove_file(fixture.path("m.jsonl")).unwrap();
    refused("", "ends after step 0, but the checkpoint is one after step 40; begin without --resume");
    assert!(!fixture.exists("m.jsonl") && !fixture.exists("m.jsonl.unfinished"), "nothing is begun");
    fixture.write("c", "hello");
    refused("", "is not a checkpoint");
}

#[cfg(unix)]
mod killed {
    use std::process::{Child, Command, Stdio};
    use std::thread::sleep;
    use std::time::{Duration, Instant};

    use super::*;

    /// Enough steps to be caught in the middle of them.
    const LONG: &str = "train --graph papers.npz --global-budget 4 --local-budget 2 --train 30% --method rh --batch 4 \
                        --steps 1500 --hidden 8 --threads 1 --out m.safetensors --log m.jsonl --checkpoint c \
                        --checkpoint-every 5 --resume";

    /// A run that has written a checkpoint.
    fn begun(fixture: &Fixture) -> Child {
        let checkpoint = || fs::read(fixture.path("c")).ok();
        let before = checkpoint();
        let child = Command::new(env!("CARGO_BIN_EXE_nodeproof"))
            .args(LONG.split_whitespace())
            .current_dir(fixture.path(""))
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let patience = Instant::now();
        while checkpoint() == before {
            assert!(patience.elapsed() < Duration::from_secs(60), "the run does not begin");
            sleep(Duration::from_millis(2));
        }
        child
    }

    #[test]
    fn a_killed_run_goes_on_by_the_same_command() {
        let (whole, broken) = (fixture(), fixture());
        assert_eq!(whole.run(LONG).code, 0);

        let mut killed = begun(&broken);
        killed.kill().unwrap();
        killed.wait().unwrap();
        assert!(!broken.exists("m.safetensors"), "a very fast machine");

        let interrupted = begun(&broken);
        Command::new("sh").args(["-c", &format!("kill -TERM {}", interrupted.id())]).status().unwrap();
        let output = interrupted.wait_with_output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        if output.status.code() == Some(130) {
            assert!(stderr.contains("interrupted after") && stderr.contains("run the same command"), "{stderr}");
        } else {
            assert_eq!(output.status.code(), Some(0), "{stderr}");
        }

        assert_eq!(broken.run(LONG).code, 0);
        assert!(bytes(&broken, "m.safetensors") == bytes(&whole, "m.safetensors"));
        assert!(broken.read("m.jsonl") == whole.read("m.jsonl"));
    }
}

#[test]
fn splits_are_runs_of_their_own() {
    let fixture = fixture();
    let line = "--method rh --steps 10 --splits 3 --seed 5 --out m.safetensors --log m.jsonl --checkpoint c --write-split s.json";
    let summary = json(&train(&fixture, &format!("{line} --json")).succeeded().stdout);
    let runs = summary["runs"].as_array().unwrap();
    assert_eq!(runs.iter().map(|run| run["seed"].as_u64().unwrap()).collect::<Vec<_>>(), [5, 6, 7]);
    assert_eq!(runs.iter().map(|run| run["split"]["seed"].as_u64().unwrap()).collect::<Vec<_>>(), [5, 6, 7]);
    let over = summary["over_runs"].as_array().unwrap();
    let share = over.iter().find(|over| over["figure"] == "robust_share").unwrap();
    let mean = runs.iter().map(|run| run["all"]["robust_share"].as_f64().unwrap()).sum::<f64>() / 3.0;
    assert!((share["mean"].as_f64().unwrap() - mean).abs() < 1e-12 && share["standard_deviation"].is_f64(), "{share}");
    for i in 0..3 {
        let files = [format!("m-{i}.safetensors"), format!("m-{i}.jsonl"), format!("c-{i}"), format!("s-{i}.json")];
        assert!(files.iter().all(|name| fixture.exists(name)) && !fixture.exists("m.safetensors"));
    }
    // The same as a run on its own, but for nothing.
    train(&fixture, "--method rh --steps 10 --seed 6 --out own.safetensors").succeeded();
    assert_eq!(bytes(&fixture, "own.safetensors"), bytes(&fixture, "m-1.safetensors"));

    let models: Vec<_> = (0..3).map(|i| bytes(&fixture, &format!("m-{i}.safetensors"))).collect();
    fs::remove_file(fixture.path("c-2")).unwrap();
    let resumed = json(&train(&fixture, &format!("{line} --json --resume")).succeeded().stdout);
    let steps: Vec<_> =
        resumed["runs"].as_array().unwrap().iter().map(|run| run["resumed"].as_u64().unwrap()).collect();
    assert_eq!(steps, [10, 10, 0], "finished splits are not trained again");
    assert!((0..3).all(|i| bytes(&fixture, &format!("m-{i}.safetensors")) == models[i]));

    let line =
        "train --graph papers.npz --global-budget 4 --train 30% --method ce --steps 5 --splits 2 --out n.safetensors";
    let text = fixture.run(&format!("{line} --average-radius --max-budget 1")).stdout;
    assert!(text.contains("may withstand more"), "{text}");
    assert!(
        text.contains("\nmean ") && text.contains("\n± ") && text.contains("n-0.safetensors to n-1.safetensors"),
        "{text}"
    );
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn the_average_radius_agrees_with_certifying() {
    let fixture = fixture();
    let line = "--method rh --steps 30 --out m.safetensors --average-radius --max-budget 3 --json";
    let run = json(&train(&fixture, line).succeeded().stdout)["runs"][0].clone();
    let robust = |budget: u32| {
        let line = format!(
            "certify --graph papers.npz --model m.safetensors --global-budget {budget} --local-budget 2 --engine fast"
        );
        json(&fixture.run(&format!("{line} --json")).succeeded().stdout)["all"]["robust"].as_f64().unwrap()
    };
    let expected = (robust(1) + robust(2) + robust(3)) / 24.0;
    assert!((run["average_radius"]["all"].as_f64().unwrap() - expected).abs() < 1e-12, "{run}");
    let line = "radius --graph papers.npz --model m.safetensors --max-budget 3 --local-budget 2 --engine fast --scan";
    let scan = json(&fixture.run(&format!("{line} --json")).succeeded().stdout);
    assert!((scan["all"]["mean"].as_f64().unwrap() - expected).abs() < 1e-12, "{scan}");
}

#[test]
fn bad_input_is_refused_with_a_remedy_before_training() {
    let fixture = fixture();
    common::graph_npz(&fixture.path("bare.npz"), [1.0; 3]);
    fixture.run("data split --graph graph.npz --train 30% --out other.json").succeeded();
    let all: Vec<u32> = (2..24).collect();
    fixture.write("unseen.json", format!(r#"{{"train":[0,1],"validation":[],"test":{all:?}}}"#));
    let all: Vec<u32> = (0..24).collect();
    fixture.write("nobody.json", format!(r#"{{"train":[],"validation":[],"test":{all:?}}}"#));
    let ce = "--graph papers.npz --method ce --global-budget 4 --out m.safetensors";
    let rh = "--graph papers.npz --method rh --global-budget 4 --out m.safetensors";
    let with = |base: &str, more: &str| format!("{base} {more}");
    for (line, words) in [
        (
            "--graph bare.npz --method ce --global-budget 1 --out m.safetensors".to_owned(),
            "no labels to learn from; add",
        ),
        (with(ce, "--split unseen.json"), "no node in the train part of the split; draw"),
        (with(ce, "--split nobody.json"), "no labelled node; give the graph labels"),
        (with(ce, "--split other.json"), "use a split that was made for this graph"),
        (with(ce, "--split missing.json"), "check the path given as --split"),
        (with(ce, "--split other.json --train 10%"), "cannot be used with"),
        (with(ce, "--split other.json --splits 2"), "cannot be used with"),
        (with(ce, "--split other.json --write-split s.json"), "cannot be used with"),
        (with(ce, "--train 0%"), "nothing to train on; give --train a share above 0%"),
        (with(ce, "--train-per-class 0"), "--train-per-class at least 1"),
        (with(ce, "--train-per-class 100"), "ask for fewer"),
        (with(ce, "--train 100% --validation 50%"), "ask for fewer"),
        (with(ce, "--steps 0"), "--steps is 0; train for at least 1 step"),
        (with(ce, "--learning-rate NaN"), "--learning-rate is NaN; give a positive number"),
        (with(ce, "--learning-rate -1"), "--learning-rate is -1; give a positive number"),
        (with(ce, "--dropout 1"), "--dropout is 1; give a share"),
        (with(ce, "--attribute-dropout 0.1"), "method ce has no use for it"),
        (with(rh, "--attribute-dropout 1"), "--attribute-dropout is 1; give a share"),
        (with(ce, "--weight-decay -0.1"), "--weight-decay is -0.1; give 0 or"),
        (with(rh, "--cross-entropy-weight 0 --robust-weight 0"), "give at least one part a weight"),
        (with(rh, "--labelled-margin -1"), "--labelled-margin is -1; give 0 or"),
        (with(rh, "--batch 0"), "such as 256, or all"),
        (with(ce, "--labelled-batch 0"), "such as 256, or all"),
        (with(ce, "--no-evaluation --average-radius"), "cannot be used with"),
        (with(ce, "--no-evaluation --log m.jsonl --log-margins 2"), "cannot be used with"),
        (with(rh, "--patience 0"), "such as 50, or none"),
        (with(rh, "--clip 0"), "such as 1, or none"),
        (with(rh, "--hidden 0"), "such as 32 or 64,32, or none"),
        (with(rh, "--hidden 99999999999"), "smaller hidden layers"),
        (with(rh, "--architecture gat"), "[possible values: gcn, sage, gin, sgc, appnp, gcnii, mlp]"),
        (
            with(ce, "--architecture mlp --propagation symmetric-gcn"),
            "--propagation: architecture mlp has none to choose; leave it out, or choose gcn, sgc, appnp or gcnii",
        ),
        (with(ce, "--architecture sgc --hidden 32"), "--hidden is 32; sgc has no hidden layer, so leave it out"),
        (with(ce, "--architecture gin --hidden none"), "gin needs at least one hidden layer"),
        (with(ce, "--architecture gcnii --hidden 8,4"), "--hidden is 8,4; gcnii adds its first hidden layer"),
        (with(ce, "--batch 5"), "method ce has no use for it; leave it out, or choose rce, rh or rh-u"),
        (with(ce, "--robust-weight 1"), "--robust-weight: method ce has no use"),
        (with(ce, "--labelled-margin 1"), "choose rh or rh-u"),
        (with(rh, "--unlabelled-margin 1"), "--unlabelled-margin: method rh has no use"),
        (with(ce, "--warm-up 5"), "--warm-up: method ce has no use"),
        (with(ce, "--worst-case dual"), "--worst-case: method ce has no use"),
        (with(rh, "--worst-case exact"), "[possible values: dual, first-order]"),
        (with(rh, "--saturation 1"), "--saturation: method rh has no use"),
        (with(rh, "--labelled-steps 5"), "--labelled-steps: method rh has no use for it; leave it out, or choose rh-u"),
        (with(ce, "--method magic"), "cannot be used multiple times"),
        (with(ce, "--log no/m.jsonl"), "there is no directory no; make it first"),
        (with(ce, "--log papers.npz"), "is an input of this command; choose another name"),
        (with(ce, "--checkpoint papers.npz"), "is an input"),
        (with(ce, "--log m.safetensors"), "--out and --log both write m.safetensors; give them different names"),
        (with(ce, "--log x --checkpoint ./x"), "--log and --checkpoint both write"),
        (with(ce, "--splits 2 --log m-1.safetensors --splits 2"), "cannot be used multiple times"),
        (with(ce, "--log -"), "--log is written to a file; give its name"),
        (with(ce, "--resume"), "--checkpoint"),
        (with(ce, "--log-margins 3"), "--log"),
        (with(ce, "--max-budget 3"), "--average-radius"),
        ("--graph papers.npz --method ce --global-budget 4 --out m.npz".to_owned(), "written as .safetensors"),
        ("--graph papers.npz --method ce --global-budget 9999 --out m.safetensors".to_owned(), "720 attribute entries"),
        (
            "--graph gone.npz --method ce --global-budget 4 --out m.safetensors".to_owned(),
            "check the path given as --graph",
        ),
        ("--graph papers.npz --method ce --out m.safetensors".to_owned(), "--global-budget"),
    ] {
        let run = fixture.run(&format!("train {line}"));
        assert!(run.code == 2 && run.stderr.contains(words), "{line}\nwants: {words}\nsays: {}", run.stderr);
        assert_eq!(run.stdout, "", "{line}");
        assert!(!fixture.exists("m.safetensors") && !fixture.exists("x"), "{line}");
    }
}

/// Not even root can make files in `/proc`.
#[cfg(target_os = "linux")]
#[test]
fn a_place_where_nothing_can_be_written_is_found_before_training() {
    let fixture = fixture();
    for more in [
        "--out /proc/m.safetensors",
        "--out m.safetensors --log /proc/l",
        "--out m.safetensors --checkpoint /proc/c",
        "--out m.safetensors --write-split /proc/s",
    ] {
        let run = train(&fixture, &format!("--method ce --steps 5 {more}"));
        assert!(run.code == 2 && run.stderr.contains("choose a place where you may write"), "{more}: {}", run.stderr);
        assert!(!fixture.exists("m.safetensors"), "{more}");
    }
}

#[test]
fn divergence_is_told_with_a_remedy() {
    let fixture = fixture();
    let run = train(&fixture, "--method ce --learning-rate 1e308 --steps 9 --out m.safetensors");
    assert!(run.code == 2 && run.stderr.contains("try a smaller learning rate"), "{}", run.stderr);
}

#[test]
fn an_overwritten_checkpoint_is_noted() {
    let fixture = fixture();
    let line = "train --graph papers.npz --method ce --global-budget 1 --steps 2 --train 30% --out m.safetensors --checkpoint c";
    fixture.run(line);
    let run = fixture.run(line);
    assert!(run.code == 0 && run.stderr.contains("note: c is overwritten; --resume would"), "{}", run.stderr);
}

#[test]
fn a_checkpoint_takes_no_other_files_place() {
    let fixture = fixture();
    let line =
        "train --graph papers.npz --method ce --global-budget 1 --steps 2 --train 30% --out m.safetensors --checkpoint";
    fixture.write("notes", "years of work");
    fixture.write("empty", "");
    let run = fixture.run(&format!("{line} notes"));
    assert!(run.code == 2 && run.stderr.contains("is not a checkpoint; give another name"), "{}", run.stderr);
    assert_eq!(fixture.read("notes"), "years of work");
    assert_eq!(fixture.run(&format!("{line} empty")).code, 0);
}

#[test]
fn oddities_are_noted() {
    let fixture = fixture();
    let note = |more: &str| {
        let line = format!("train --graph papers.npz --global-budget 4 --out m.safetensors --method {more}");
        let run = fixture.run(&line);
        assert_eq!(run.code, 0, "{}", run.stderr);
        run.stderr
    };
    let long = note("rh --train 30% --steps 3 --warm-up 4");
    assert!(long.contains("note: --warm-up 4 is longer than all 3 steps"), "{long}");
    let all = note("rh-u --train 100% --steps 2 --labelled-steps 2 --warm-up 0");
    assert!(all.contains("note: rh-u has no unlabelled nodes"), "{all}");
    let nothing_odd = note("rh --train 30% --steps 3 --warm-up 3");
    assert!(!nothing_odd.contains("note:"), "{nothing_odd}");
}

#[test]
fn a_model_tells_the_graph_that_it_was_trained_on() {
    let fixture = fixture();
    train(&fixture, "--method ce --steps 2 --out m.safetensors").succeeded();
    let notes = |graph: &str| {
        let run = fixture.run(&format!("certify --graph {graph} --global-budget 1 --model m.safetensors"));
        assert_eq!(run.code, 0, "{}", run.stderr);
        run.stderr
    };
    assert!(!notes("papers.npz").contains("trained on another graph"));
    common::graph(9, 30).write(fixture.path("other.npz")).unwrap();
    assert!(notes("other.npz").contains("note: the model was trained on another graph"));
    fixture.run("model convert m.safetensors again.safetensors").succeeded();
    assert_eq!(bytes(&fixture, "again.safetensors"), bytes(&fixture, "m.safetensors"));
    fixture.run("model convert m.safetensors mean.safetensors --propagation row-normalised").succeeded();
    let info = json(&fixture.run("model info mean.safetensors --json").succeeded().stdout);
    assert!(info.get("training").is_none(), "{info}");
}

#[test]
fn the_benchmark_measures_steps() {
    let fixture = fixture();
    let line = "bench train --graph papers.npz --global-budget 4 --steps 2 --warm-up 3 -q";
    let report = json(&fixture.run(&format!("{line} --json")).succeeded().stdout);
    assert_eq!((&report["method"], &report["measured_steps"]), (&"rh-u".into(), &2.into()));
    let rows = report["rows"].as_array().unwrap();
    assert_eq!((rows.len(), &rows[0]["batch"]), (2, &40.into()));
    for row in rows {
        assert!(row["cpu_seconds_per_step"].is_f64());
        let shares = row["parts"].as_array().unwrap().iter().map(|part| part["share"].as_f64().unwrap());
        assert!((shares.sum::<f64>() - 1.0).abs() < 1e-9, "{row}");
    }
    let text = fixture.run(&format!("{line} --batch 40 --hidden 4")).succeeded().stdout;
    assert!(text.contains("40 (reference)") && text.contains("second phase") && text.contains("duals"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(fixture.run(&format!("{line} --method ce")).succeeded().stdout.contains("labelled nodes"));
}

#[test]
fn help_lists_the_defaults_of_each_method() {
    let fixture = fixture();
    let help = fixture.run("train --help").succeeded().stdout;
    assert!(
        help.contains("Defaults of the methods:") && help.contains("Examples:") && help.contains("--average-radius")
    );
    assert!(fixture.run("bench train --help").succeeded().stdout.contains("Examples:"));
}

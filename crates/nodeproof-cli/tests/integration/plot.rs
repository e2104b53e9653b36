//! `nodeproof plot`, on the real binary. What figures look like is tested in `nodeproof-report`.
use std::fs;

use nodeproof::{Graph, Matrix, Model, Propagation};

use crate::common::{Fixture, Run, graph, model, named};

const CURVES: &str = "Q,model,other\n0,100,100\n1,80.5,\n4,10,20\n";

/// Radii by both engines, a scan, certificates, and training logs.
fn with_results() -> Fixture {
    let fixture = Fixture::new();
    let radius = "radius --graph graph.npz --model model.safetensors --max-budget 8 --quiet";
    fixture.run(&format!("{radius} --out complete.jsonl")).succeeded();
    fixture.run(&format!("{radius} --engine fast --out fast.jsonl")).succeeded();
    fixture.run(&format!("{radius} --engine fast --scan --out scan.jsonl")).succeeded();
    fixture.certify("--out certificates.jsonl --quiet").succeeded();
    let collective = "collective --graph graph.npz --model model.safetensors --global-budget 1,3 --quiet";
    fixture.run(&format!("{collective} --out together.jsonl")).succeeded();
    fixture.write("curves.csv", CURVES);
    let train = "train --graph graph.npz --global-budget 2 --train 30% --steps 12 --quiet";
    for method in ["ce", "rh-u"] {
        let files = format!("--method {method} --out {method}.safetensors --log {method}.log --log-margins 5");
        fixture.run(&format!("{train} {files}")).succeeded();
    }
    fixture.run(&format!("{train} --method ce --out x.safetensors --log bare.log")).succeeded();
    fixture
}

/// Every figure, with all that it takes, but for the output.
const FIGURES: [&str; 9] = [
    "certificates fast.jsonl --against old=complete.jsonl --reference published=curves.csv",
    "certificates scan.jsonl",
    "comparison model=fast.jsonl complete.jsonl --trained-for 2,3 --reference curves.csv",
    "purity complete.jsonl --graph graph.npz",
    "degree complete.jsonl --graph graph.npz",
    "truth fast.jsonl complete.jsonl",
    "collective together.jsonl",
    "dynamics RH-U=rh-u.log ce.log",
    "gap --graph graph.npz --model model.safetensors --global-budget 2 --local-budget 1",
];

#[track_caller]
fn refused(run: Run, words: &[&str]) {
    assert_eq!(run.code, 2, "{}", run.stderr);
    assert!(words.iter().all(|word| run.stderr.contains(word)), "{words:?}\n{}", run.stderr);
    assert!(run.stdout.is_empty(), "{}", run.stdout);
}

#[test]
fn every_figure_is_drawn_as_its_name_says() {
    let fixture = with_results();
    for figure in FIGURES {
        let run = fixture.run(&format!("plot {figure} --out figure.svg --title Robustness")).succeeded();
        assert!(run.stdout.contains("figure.svg (84 × 58 mm)"), "{figure}: {}", run.stdout);
        let svg = fixture.read("figure.svg");
        assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n") && svg.contains(">Robustness</text>"), "{figure}");
        let run = fixture.run(&format!("plot {figure} --out again.SVG --title Robustness --quiet")).succeeded();
        assert_eq!((run.stdout.as_str(), fixture.read("again.SVG")), ("", svg), "{figure}: the same bytes");
        fixture.run(&format!("plot {figure} --out figure.png --dpi 100 --width 90 --height 60")).succeeded();
        let png = fs::read(fixture.path("figure.png")).unwrap();
        assert_eq!(&png[..8], b"\x89PNG\r\n\x1a\n", "{figure}");
        let side = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().unwrap());
        assert_eq!((side(16), side(20)), (354, 236), "{figure}: millimetres times pixels an inch");
    }
}

#[test]
fn names_are_those_given_or_those_of_files() {
    let fixture = with_results();
    fixture.run("plot comparison fast.jsonl mine=complete.jsonl --out f.svg").succeeded();
    let svg = fixture.read("f.svg");
    assert!(svg.contains(">fast</text>") && svg.contains(">mine</text>"), "{svg}");
    let nasty = "<script>\u{202e}\u{7}&\"'=complete.jsonl";
    fixture.run_all(&["plot", "comparison", nasty, "--title", "</svg>\n\u{1b}[31m", "--out", "f.svg"]).succeeded();
    let svg = fixture.read("f.svg");
    assert!(!svg.contains("<script") && svg.contains(">&lt;script&gt; &amp;&quot;&#39;</text>"), "{svg}");
    assert!(!svg.contains('\u{202e}') && !svg.contains('\u{7}') && !svg.contains('\u{1b}'), "{svg}");
    assert_eq!(svg.matches("</svg>").count(), 2, "the figure and its frame");
}

#[test]
fn dotted_curves_are_those_of_the_file() {
    let fixture = with_results();
    fixture.run("plot comparison model=fast.jsonl --reference published=curves.csv --out f.svg").succeeded();
    let svg = fixture.read("f.svg");
    assert!(svg.contains(">other</text>") && svg.contains(">published</text>"), "{svg}");
    assert_eq!(svg.matches(">model</text>").count(), 1, "a curve of the same name has the colour of the model");
}

#[test]
fn the_output_must_be_a_figure() {
    let fixture = with_results();
    let plot = |more: &str| fixture.run(&format!("plot certificates fast.jsonl {more}"));
    refused(plot(""), &["--out"]);
    refused(plot("--out figure.pdf"), &["figure.pdf", ".svg", ".png"]);
    refused(plot("--out figure"), &["neither in .svg nor in .png"]);
    refused(plot("--out -"), &["neither in .svg nor in .png"]);
    refused(plot("--out none/figure.svg"), &["there is no directory none"]);
    refused(plot("--out figure.svg --dpi 300"), &["--dpi", "no pixels"]);
    refused(plot("--out figure.png --dpi 0"), &["--dpi", "from 10 to 2400"]);
    refused(plot("--out figure.png --width 5"), &["--width", "from 30 to 1000"]);
    refused(plot("--out figure.png --height nan"), &["--height", "from 30 to 1000"]);
    refused(plot("--out figure.png --width 1000 --dpi 2400"), &["pixels", "choose another resolution"]);
    fixture.write("figure.svg", fixture.read("fast.jsonl"));
    refused(fixture.run("plot certificates figure.svg --out figure.svg"), &["is an input of this command"]);
    assert_eq!(fixture.read("figure.svg"), fixture.read("fast.jsonl"));
    assert!(!fixture.exists("figure.png"));
}

#[test]
fn files_of_another_kind_are_refused_with_a_remedy() {
    let fixture = with_results();
    let plot = |line: &str| fixture.run(&format!("plot {line} --out f.svg"));
    refused(plot("certificates certificates.jsonl"), &["has certificates, not radii", "radius --out"]);
    refused(plot("certificates none.jsonl"), &["cannot read none.jsonl"]);
    refused(plot("certificates graph.npz"), &["is not a file of certificates, radii or training steps"]);
    refused(plot("certificates fast.jsonl --against ce.log"), &["not radii"]);
    refused(plot("comparison fast.jsonl ce.log"), &["not radii"]);
    refused(plot("comparison"), &["RADII"]);
    refused(plot("comparison fast.jsonl --trained-for 2,3"), &["2 budgets for 1 model"]);
    refused(plot("dynamics fast.jsonl"), &["has radii", "train --log"]);
    refused(plot("dynamics bare.log"), &["has no margins", "--log-margins"]);
    refused(plot("collective fast.jsonl"), &["has radii, not collective certificates", "collective --out"]);
    refused(plot("certificates together.jsonl"), &["has collective certificates, not radii"]);
    refused(plot("purity scan.jsonl --graph graph.npz"), &["is a scan", "without --scan"]);
    assert!(!fixture.exists("f.svg"));
}

#[test]
fn radii_and_graph_must_belong_together() {
    let fixture = with_results();
    named(graph(31, 12)).write(fixture.path("other.npz")).unwrap();
    for figure in ["purity", "degree"] {
        let run = fixture.run(&format!("plot {figure} complete.jsonl --graph other.npz --out f.svg"));
        refused(run, &["is about another graph", "--binarise"]);
        refused(fixture.run(&format!("plot {figure} complete.jsonl --graph none.npz --out f.svg")), &["--graph"]);
    }
}

#[test]
fn truth_takes_both_engines_and_one_model() {
    let fixture = with_results();
    let truth = |line: &str| fixture.run(&format!("plot truth {line} --out f.svg"));
    refused(truth("complete.jsonl fast.jsonl"), &["of the `complete` engine, not of `fast`", "`fast` first"]);
    refused(truth("fast.jsonl fast.jsonl"), &["of the `fast` engine, not of `complete`"]);
    refused(truth("scan.jsonl complete.jsonl"), &["is a scan"]);
    let radius = "radius --graph graph.npz --quiet --out other.jsonl";
    fixture.run(&format!("{radius} --model model.safetensors --max-budget 8 --add-only")).succeeded();
    refused(truth("fast.jsonl other.jsonl"), &["different budgets"]);
    assert!(!fixture.exists("f.svg"));
    fixture.run(&format!("{radius} --model model.safetensors --max-budget 7")).succeeded();
    truth("fast.jsonl other.jsonl").succeeded();
    let up_to_seven = fixture.read("f.svg");
    truth("fast.jsonl complete.jsonl --up-to 7").succeeded();
    assert_eq!(fixture.read("f.svg"), up_to_seven);
    fixture.run(&format!("{radius} --model model.safetensors --max-budget 8 --nodes 0-9")).succeeded();
    refused(truth("fast.jsonl other.jsonl"), &["different nodes"]);
    fixture.run(&format!("{radius} --model ce.safetensors --max-budget 8")).succeeded();
    refused(truth("fast.jsonl other.jsonl"), &["different models"]);
}

#[test]
fn curves_from_elsewhere_must_be_percentages_by_budget() {
    let fixture = with_results();
    let plot = || fixture.run("plot certificates fast.jsonl --reference bad.csv --out f.svg");
    refused(plot(), &["cannot read bad.csv", "--reference"]);
    for (text, words) in [
        ("", ["bad.csv", "has no curves"]),
        ("Q\n1\n", ["bad.csv", "has no curves"]),
        ("Q,a\n", ["bad.csv", "no rows"]),
        ("Q,a\n1,2,3\n", ["bad.csv", "rows of the same length"]),
        ("Q,a\n0,50\none,40\n", ["line 3", "“one” is not a number"]),
        ("Q,a\n0,150\n", ["line 2", "from 0 to 100"]),
        ("Q,a\n0,nan\n", ["line 2", "from 0 to 100"]),
        ("Q,a\n-1,50\n", ["line 2", "is not a number from 0"]),
    ] {
        fixture.write("bad.csv", text);
        refused(plot(), &words);
    }
    fixture.write("bad.csv", b"Q,a\n0,\xff\xfe\n");
    refused(plot(), &["bad.csv"]);
}

#[test]
fn purity_leaves_out_nodes_with_unknown_neighbours_and_says_so() {
    let fixture = with_results();
    let radius = "radius --graph graph.npz --model model.safetensors --max-budget 3 --quiet --out some.jsonl";
    fixture.run(&format!("{radius} --nodes 0-27")).succeeded();
    let run = fixture.run("plot purity some.jsonl --graph graph.npz --out f.svg");
    assert_eq!((run.code, run.stderr.contains("left out")), (0, true), "{}", run.stderr);
    fixture.run("plot purity some.jsonl --graph graph.npz --out f.svg --quiet").succeeded();
    fixture.run("plot degree some.jsonl --graph graph.npz --out f.svg").succeeded();
    fixture.run(&format!("{radius} --nodes 3")).succeeded();
    refused(fixture.run("plot purity some.jsonl --graph graph.npz --out f.svg"), &["give radii of all nodes"]);
    fixture.run(&format!("{radius} --class label")).succeeded();
    refused(fixture.run("plot purity some.jsonl --graph graph.npz --out f.svg"), &["--class predicted"]);
}

#[test]
fn gaps_take_a_network_of_any_depth() {
    let fixture = Fixture::new();
    let layer = |rows, columns| (Matrix::from_values(rows, columns, vec![0.5; rows * columns]), vec![0.0; columns]);
    let deep = Model::gcn(vec![layer(12, 4), layer(4, 4), layer(4, 3)], Propagation::SymmetricGcn).unwrap();
    deep.write(fixture.path("deep.safetensors")).unwrap();
    let gap =
        |model: &str| fixture.run(&format!("plot gap --graph graph.npz --model {model} --global-budget 2 --out f.svg"));
    gap("deep.safetensors").succeeded();
    refused(gap("none.safetensors"), &["--model"]);
}

#[test]
fn a_graph_of_one_node_is_enough() {
    let fixture = Fixture::new();
    Graph::new(1, 12, &[], &[(0, 0)]).unwrap().write(fixture.path("one.npz")).unwrap();
    model(12).write(fixture.path("one.safetensors")).unwrap();
    let line = "radius --graph one.npz --model one.safetensors --max-budget 1 --quiet";
    fixture.run(&format!("{line} --out complete.jsonl")).succeeded();
    fixture.run(&format!("{line} --engine fast --out fast.jsonl")).succeeded();
    let collective =
        "collective --graph one.npz --model one.safetensors --global-budget 1 --quiet --out together.jsonl";
    fixture.run(collective).succeeded();
    for figure in [
        "certificates fast.jsonl",
        "comparison fast.jsonl complete.jsonl",
        "truth fast.jsonl complete.jsonl",
        "purity complete.jsonl --graph one.npz",
        "degree complete.jsonl --graph one.npz",
        "collective together.jsonl",
    ] {
        fixture.run(&format!("plot {figure} --out f.svg")).succeeded();
        fixture.run(&format!("plot {figure} --out f.png --dpi 50")).succeeded();
    }
}

#[test]
fn help_has_examples_that_fit_the_screen() {
    let fixture = Fixture::new();
    for figure in ["certificates", "comparison", "purity", "degree", "truth", "collective", "dynamics", "gap"] {
        let output = fixture.command().args(["plot", figure, "--help"]).env("COLUMNS", "80").output().unwrap();
        let help = String::from_utf8(output.stdout).unwrap();
        assert!(help.contains("Examples:"), "{figure}");
        assert!(help.lines().all(|line| line.chars().count() <= 80), "{figure}: {help}");
    }
}

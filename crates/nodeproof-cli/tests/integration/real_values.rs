//! Attributes that are real values, end to end.
use crate::common::{Fixture, json};

const GRAPH: &str = "--graph graph.npz --real-values";
const BUDGET: &str = "--model values.safetensors --global-budget 3 --local-budget 3";

fn trained() -> Fixture {
    Fixture::trained(GRAPH, "values.safetensors")
}

#[test]
fn what_is_trained_on_them_is_certified_on_them() {
    let fixture = trained();
    let model = json(&fixture.run("model info values.safetensors --json").succeeded().stdout);
    assert_eq!(model["kind"], "real-values");
    fixture.run(&format!("certify {GRAPH} {BUDGET} --out values.jsonl")).succeeded();
    let lines: Vec<_> = fixture.read("values.jsonl").lines().map(json).collect();
    assert_eq!(lines[0]["graph"]["kind"], "real-values");
    let nonrobust = lines[1..].iter().find(|record| record["verdict"] == "nonrobust").expect("some are nonrobust");
    let told = fixture.run(&format!("explain {GRAPH} {BUDGET} --node {}", nonrobust["node"])).succeeded().stdout;
    let unwrapped = told.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(unwrapped.contains("; a flip sets a value to any other in the range of its attribute"), "{told}");
    assert!(told.contains("from 0 to 1") || told.contains("from 1 to 0"), "{told}");
    let radius = "--model values.safetensors --max-budget 4 --local-budget 3 --out radii.jsonl";
    fixture.run(&format!("radius {GRAPH} {radius}")).succeeded();
    fixture.run(&format!("report values.jsonl {GRAPH} --out page.html")).succeeded();
    assert!(fixture.read("page.html").contains(", real values"));
}

/// Half of the way, all that a flip does is half as much: whoever withstands whole ones withstands them.
#[test]
fn ranges_say_how_far_a_flip_goes() {
    let fixture = trained();
    fixture.write("ranges.csv", "# every attribute\nall, 0, 0.5\n0-1, -0.25, 0.5\n");
    let robust = |more: &str| {
        fixture.run(&format!("certify {GRAPH} {more} {BUDGET} --out out.jsonl")).succeeded();
        let lines: Vec<_> = fixture.read("out.jsonl").lines().skip(1).map(json).collect();
        let values = lines.iter().flat_map(|record| record["witness"].as_array().cloned().unwrap_or_default());
        let values: Vec<f64> = values.map(|flip| flip["to"].as_f64().unwrap()).collect();
        (lines.iter().map(|record| record["verdict"] == "robust").collect::<Vec<_>>(), values)
    };
    let ((whole, to), (half, to_half)) = (robust(""), robust("--ranges ranges.csv"));
    assert!(whole.iter().zip(&half).all(|(whole, half)| !whole || *half), "{whole:?} {half:?}");
    assert!(half.iter().filter(|robust| **robust).count() > whole.iter().filter(|robust| **robust).count());
    assert!(to.iter().all(|to| [0.0, 1.0].contains(to)) && to_half.iter().all(|to| [-0.25, 0.0, 0.5].contains(to)));
    for (text, problem) in [
        ("0, 1\n", "line 1: `0, 1` is no range"),
        ("0, 1, 0\n", "attribute 0 cannot have values from 1 to 0"),
        ("0, 0, x\n", "is no range"),
        ("999, 0, 1\n", "attribute 999 does not exist"),
    ] {
        fixture.write("wrong.csv", text);
        let run = fixture.run(&format!("certify {GRAPH} --ranges wrong.csv {BUDGET}"));
        assert!(run.code == 2 && run.stderr.contains(problem), "{run:?}");
    }
    let run = fixture.run("certify --graph graph.npz --ranges ranges.csv --model model.safetensors --global-budget 1");
    assert!(run.code == 2 && run.stderr.contains("(--real-values)"), "{run:?}");
}

#[test]
fn other_kinds_are_refused_with_a_remedy() {
    let fixture = trained();
    let certify = |graph: &str, model: &str| fixture.run(&format!("certify {graph} --model {model} --global-budget 1"));
    for (graph, model, remedy) in [
        (
            "--graph graph.npz",
            "values.safetensors",
            "; read the attributes of the graph as real values (--real-values)",
        ),
        (GRAPH, "model.safetensors", "; do not read the attributes of the graph as real values (--real-values)"),
    ] {
        let run = certify(graph, model);
        assert!(run.code == 2 && run.stderr.contains(remedy), "{run:?}");
    }
    let run = fixture.run("data info graph.npz --real-values --binarise");
    assert!(run.code == 2 && run.stderr.contains("cannot be used with"), "{run:?}");
}

#[test]
fn data_info_says_what_networks_read() {
    let fixture = Fixture::new();
    let text = fixture.run("data info graph.npz --real-values").succeeded().stdout;
    assert!(text.contains("real values from 0 to 1,"), "{text}");
}

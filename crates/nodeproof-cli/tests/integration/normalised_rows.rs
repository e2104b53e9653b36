//! Attributes divided by the number of ones in their row, end to end.
use crate::common::{Fixture, json};

const GRAPH: &str = "--graph graph.npz --normalise-rows";

fn trained() -> Fixture {
    Fixture::trained(GRAPH, "rows.safetensors")
}

#[test]
fn what_is_trained_on_them_is_certified_on_them() {
    let fixture = trained();
    let model = json(&fixture.run("model info rows.safetensors --json").succeeded().stdout);
    assert_eq!(model["kind"], "normalised-rows");
    let budget = "--model rows.safetensors --global-budget 3 --local-budget 3";
    fixture.run(&format!("certify {GRAPH} {budget} --out rows.jsonl")).succeeded();
    let lines: Vec<_> = fixture.read("rows.jsonl").lines().map(json).collect();
    assert_eq!(lines[0]["graph"]["kind"], "normalised-rows");
    assert!(lines[1..].iter().all(|record| record["verdict"] != "undecided"));
    let nonrobust = lines[1..].iter().find(|record| record["verdict"] == "nonrobust").expect("some are nonrobust");
    let told = fixture.run(&format!("explain {GRAPH} {budget} --node {}", nonrobust["node"])).succeeded().stdout;
    assert!(told.contains("; rows are normalised"), "{told}");
    let weighs = ["then weigh 1", "then has no attribute left", "of weight"];
    let flips = nonrobust["witness"].as_array().unwrap();
    assert!(flips.len() > 1 || weighs.iter().any(|words| told.contains(words)), "{told}");
    let radius = "--model rows.safetensors --max-budget 4 --local-budget 3 --out radii.jsonl";
    fixture.run(&format!("radius {GRAPH} {radius}")).succeeded();
    for line in fixture.read("radii.jsonl").lines().skip(1).map(json) {
        let certified = &lines[1 + line["node"].as_u64().unwrap() as usize];
        let robust = line["robust_up_to"].as_u64().unwrap() >= 3;
        assert_eq!(robust, certified["verdict"] == "robust", "{line} {certified}");
    }
    fixture.run(&format!("report rows.jsonl {GRAPH} --out page.html")).succeeded();
    assert!(fixture.read("page.html").contains("divided by the number of ones in their row"));
}

#[test]
fn other_kinds_are_refused_with_a_remedy() {
    let fixture = trained();
    let certify = |graph: &str, model: &str| fixture.run(&format!("certify {graph} --model {model} --global-budget 1"));
    for (graph, model, remedy) in [
        ("--graph graph.npz", "rows.safetensors", "; normalise the rows of the graph (--normalise-rows)"),
        (GRAPH, "model.safetensors", "; do not normalise the rows of the graph (--normalise-rows)"),
    ] {
        let run = certify(graph, model);
        assert!(run.code == 2 && run.stderr.contains(remedy), "{run:?}");
    }
}

#[test]
fn data_info_says_what_networks_read() {
    let fixture = Fixture::new();
    let text = fixture.run("data info graph.npz --normalise-rows").succeeded().stdout;
    let unwrapped = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(unwrapped.contains("entries are 1, divided by the number of ones in their row"), "{text}");
    let json = json(&fixture.run("data info graph.npz --json").succeeded().stdout);
    assert_eq!(json["kind"], "bits");
}

//! `nodeproof model`, end to end.
use nodeproof::{Model, Propagation};
use serde_json::Value;

use crate::common::{Fixture, floats, json, npz};

fn weights(fixture: &Fixture) {
    let members = [
        ("W0", floats("(2, 3)", &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])),
        ("b0", floats("(3,)", &[0.0; 3])),
        ("W1", floats("(3, 2)", &[1.0; 6])),
        ("b1", floats("(2,)", &[0.5, -0.5])),
    ];
    npz(&fixture.path("weights.npz"), &members);
}

#[test]
fn info_tells_shapes_and_parameters() {
    let fixture = Fixture::new();
    let text = fixture.run("model info model.safetensors").succeeded().stdout;
    for words in ["symmetric-gcn", "parameters", "83", "relu", "fingerprint"] {
        assert!(text.contains(words), "{words}\n{text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let info = json(&fixture.run("model info model.safetensors --json").succeeded().stdout);
    assert_eq!((&info["parameters"], &info["classes"]), (&83.into(), &3.into()));
    let term = json(r#"{"reads":"layer 0","propagation":"symmetric-gcn","inputs":5}"#);
    let last = &info["layers"][1];
    assert_eq!((&last["outputs"], &last["parameters"], &last["activation"]), (&3.into(), &18.into(), &Value::Null));
    assert_eq!(last["terms"], Value::Array(vec![term]));
}

#[test]
fn convert_keeps_the_weights_and_sets_the_propagation() {
    let fixture = Fixture::new();
    weights(&fixture);
    fixture.run("model convert weights.npz plain.safetensors").succeeded();
    let plain = Model::read(fixture.path("plain.safetensors")).unwrap();
    assert_eq!(plain, Model::read(fixture.path("weights.npz")).unwrap());
    fixture.run("model convert weights.npz mean.safetensors --propagation row-normalised").succeeded();
    let mean = Model::read(fixture.path("mean.safetensors")).unwrap();
    assert_eq!((mean.propagations(), mean.layers()), (&[Propagation::RowNormalised][..], plain.layers()));
}

#[test]
fn convert_refuses_what_it_cannot_do() {
    let fixture = Fixture::new();
    weights(&fixture);
    let squared = Propagation::power(Propagation::SymmetricGcn, 2);
    let model = Model::read(fixture.path("weights.npz")).unwrap().with_propagations(vec![squared]).unwrap();
    model.write(fixture.path("squared.safetensors")).unwrap();
    for (line, words) in [
        ("model convert weights.npz out.npz", "written as .safetensors"),
        ("model convert weights.npz no/out.safetensors", "make it first"),
        ("model convert missing.npz out.safetensors", "check the path"),
        ("model convert graph.npz out.safetensors", "is a graph, not a model"),
        ("model convert weights.npz out.safetensors --propagation magic", "row-normalised"),
        ("model convert squared.safetensors out.safetensors --propagation row-normalised", "own is symmetric-gcn^2"),
    ] {
        let run = fixture.run(line);
        assert!(run.code == 2 && run.stderr.contains(words), "{line}: {}", run.stderr);
        assert!(!fixture.exists("out.npz") && !fixture.exists("out.safetensors"), "{line}");
    }
}

//! `nodeproof predict`, end to end.
use std::fs;

use nodeproof::{Activation, Graph, GraphOptions, Layer, Matrix, Model, Network, NodeId, Propagation, Source, Term};

use crate::common::{Fixture, json};

const LINE: &str = "predict --graph graph.npz --model model.safetensors";

fn read(fixture: &Fixture, model: &str) -> (Graph, Model) {
    let (graph, _) = Graph::read(fixture.path("graph.npz"), GraphOptions::new()).unwrap();
    (graph, Model::read(fixture.path(model)).unwrap())
}

/// A network with skips, a constant, a signed propagation and a leaky ReLU.
fn skips(attributes: usize, classes: usize) -> Model {
    let weight = |rows: usize, columns: usize| {
        let value = |i: usize| ((i * 37 + 11) % 23) as f64 / 11.0 - 1.0;
        Matrix::from_values(rows, columns, (0..rows * columns).map(value).collect())
    };
    let difference = Propagation::Polynomial { of: Box::new(Propagation::SymmetricGcn), coefficients: vec![1.0, -1.0] };
    let propagations = vec![Propagation::RowMean, Propagation::Identity, difference];
    let first = vec![Term::new(Source::Attributes, 2, weight(attributes, 4)), Term::new(Source::Ones, 0, weight(1, 4))];
    let second = vec![Term::new(Source::Layer(0), 0, weight(4, 4)), Term::new(Source::Layer(0), 1, 0.5)];
    let last = vec![
        Term::new(Source::Layer(1), 0, weight(4, classes)),
        Term::new(Source::Attributes, 1, weight(attributes, classes)),
    ];
    let layers = vec![
        Layer::new(first, vec![0.1; 4], Activation::LeakyRelu(0.2)),
        Layer::new(second, vec![0.0; 4], Activation::Relu),
        Layer::new(last, vec![0.0; classes], Activation::None),
    ];
    Model::new(attributes, propagations, layers).unwrap()
}

#[test]
fn the_logits_are_those_of_the_library() {
    let fixture = Fixture::new();
    let (graph, _) = read(&fixture, "model.safetensors");
    skips(graph.attribute_count(), 3).write(fixture.path("skips.safetensors")).unwrap();
    for name in ["model.safetensors", "skips.safetensors"] {
        let (graph, model) = read(&fixture, name);
        let network = Network::new(&graph, &model).unwrap();
        let line = format!("predict --graph graph.npz --model {name} --nodes 2,0 --json");
        let predictions = json(&fixture.run(&line).succeeded().stdout);
        for (prediction, node) in predictions.as_array().unwrap().iter().zip([2, 0]) {
            let logits: Vec<f64> =
                prediction["logits"].as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect();
            assert_eq!(
                (prediction["node"].as_u64(), &logits),
                (Some(node as u64), &network.logits_under(NodeId(node), &[]))
            );
            assert_eq!(prediction["predicted"].as_u64(), Some(u64::from(network.predictions()[node as usize].0)));
        }
    }
}

#[test]
fn a_table_has_all_nodes_and_the_screen_a_few() {
    let fixture = Fixture::new();
    let text = fixture.run(&format!("{LINE} --csv logits.csv")).succeeded().stdout;
    let (graph, _) = read(&fixture, "model.safetensors");
    assert!(text.contains("predicted") && text.contains("accuracy"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let table = fs::read_to_string(fixture.path("logits.csv")).unwrap();
    assert!(table.starts_with("node,name,label,predicted,logit_0,logit_1,logit_2\n"), "{table}");
    assert_eq!(table.lines().count(), 1 + graph.nodes());
    assert_eq!(fixture.run(&format!("{LINE} --csv -")).succeeded().stdout, table);
}

#[test]
fn a_network_of_terms_is_drawn_and_certified() {
    let fixture = Fixture::new();
    let (graph, _) = read(&fixture, "model.safetensors");
    skips(graph.attribute_count(), 3).write(fixture.path("skips.safetensors")).unwrap();
    let text = fixture.run("model info skips.safetensors").succeeded().stdout;
    for words in ["the constant 1", "identity − symmetric-gcn", "leaky relu (0.2)", "layer 1", "row-mean"] {
        assert!(text.contains(words), "{words}\n{text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let certify = "certify --graph graph.npz --model skips.safetensors --global-budget 1";
    let text = fixture.run(certify).succeeded().stdout;
    assert!(!text.contains("undecided node"), "{text}");
    let convert = fixture.run("model convert skips.safetensors other.safetensors --propagation row-normalised");
    assert!(convert.code == 2 && convert.stderr.contains("has 3 propagations"), "{}", convert.stderr);
}

#[test]
fn bad_input_is_refused() {
    let fixture = Fixture::new();
    for (line, words) in [
        ("predict --graph graph.npz --model missing.safetensors", "check the path"),
        ("predict --graph graph.npz --model graph.npz", "is a graph, not a model"),
        ("predict --graph graph.npz --model model.safetensors --nodes 99999", "99999"),
        ("predict --graph graph.npz --model model.safetensors --csv graph.npz", "is an input of this command"),
    ] {
        let run = fixture.run(line);
        assert!(run.code == 2 && run.stderr.contains(words), "{line}: {}", run.stderr);
    }
}

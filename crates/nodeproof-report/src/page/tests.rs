#![allow(clippy::unwrap_used)]

use nodeproof::{Budget, Certifier, Direction, Engine, Layer, Matrix, Model, Names, NodeId, Propagation, TargetClass};
use serde_json::{Value, json};

use super::*;

/// A ring of six nodes with three words, a network that counts two of them, and hostile names.
fn ring() -> (Graph, Model) {
    let edges: Vec<_> = (0..6).map(|node| (node, (node + 1) % 6)).collect();
    let ones: Vec<_> = (0..6).map(|node| (node, node / 3)).collect();
    let names = Names {
        nodes: Some((0..6).map(|node| format!("</script><script>alert({node})</script>")).collect()),
        attributes: Some(vec!["__NODEPROOF_DATA__".into(), "\u{202e}\"'\u{2028}".into(), "x".repeat(10_000)]),
        classes: None,
    };
    let graph = Graph::new(6, 3, &edges, &ones).unwrap().with_names(names).unwrap();
    let layers = vec![
        Layer::new(Matrix::from_values(3, 2, vec![1.0, -0.5, -0.5, 1.0, 0.1, 0.2]), vec![0.0, 0.05]),
        Layer::new(Matrix::from_values(2, 2, vec![1.0, 0.0, 0.0, 1.0]), vec![0.0; 2]),
    ];
    (graph, Model::new(layers, Propagation::SymmetricGcn).unwrap())
}

fn budget(global: u32) -> Budget {
    Budget::new(global, 2.into())
}

fn certificates(graph: &Graph, model: &Model, nodes: &[NodeId]) -> Certificates {
    let certifier = Certifier::new(graph, model).unwrap().budget(budget(2)).engine(Engine::Complete);
    let certified = certifier.certify(nodes).unwrap();
    Certificates::of(&certified, (graph, model), &budget(2), Engine::Complete, TargetClass::Predicted)
}

fn radii(graph: &Graph, model: &Model, nodes: &[NodeId]) -> Radii {
    let certifier = Certifier::new(graph, model).unwrap().budget(budget(9)).engine(Engine::Complete);
    let radii = certifier.radii(nodes, 9, |_, _, _| std::ops::ControlFlow::Continue(())).unwrap().unwrap();
    Radii::of(&radii, (graph, model), &budget(9), Engine::Complete, TargetClass::Predicted)
}

/// The data of a page, and what is around them.
fn parts(html: &str) -> (Value, String) {
    let (before, rest) = html.split_once(r#"<script type="application/json" id="data">"#).unwrap();
    let (data, after) = rest.split_once("</script>").unwrap();
    (serde_json::from_str(data).unwrap(), format!("{before}{after}"))
}

#[test]
fn the_data_say_what_the_results_say() {
    let (graph, model) = ring();
    let nodes: Vec<NodeId> = graph.node_ids().collect();
    let (certificates, radii) = (certificates(&graph, &model, &nodes), radii(&graph, &model, &nodes));
    let html = Page::new(&graph, "ring").model("m", Some(certificates.clone()), Some(radii.clone())).html().unwrap();
    let (data, _) = parts(&html);
    assert_eq!(data["graph"]["classes"], json!(["class 0", "class 1"]));
    assert_eq!(data["nodes"]["subjects"], 6);
    assert_eq!(data["nodes"]["degree"], json!([2, 2, 2, 2, 2, 2]));
    assert_eq!(data["nodes"]["part"], Value::Null);
    let shown = &data["models"][0];
    let of_node = &shown["certificates"];
    assert_eq!(of_node["budget"]["direction"], "both");
    for (at, record) in certificates.records.iter().enumerate() {
        assert_eq!(of_node["position"][at], record.node);
        assert_eq!(of_node["verdict"][at], record.verdict as u8);
        let flips = record.witness.iter().flatten().map(|flip| json!([flip.node, flip.attribute, flip.to])).collect();
        let expected = if record.witness.is_some() { Value::Array(flips) } else { Value::Null };
        assert_eq!(of_node["witness"][at], expected);
        assert_eq!(of_node["margins"][at], json!(record.margins));
        assert_eq!(
            (&of_node["witness_class"][at], &of_node["predicted"][at]),
            (&json!(record.witness_class), &json!(record.predicted))
        );
    }
    assert_eq!(shown["radii"]["curve"]["robust"].as_array().unwrap().len(), 10);
    assert_eq!((&shown["radii"]["target"], &shown["radii"]["notes"]), (&json!("predicted"), &json!([])));
    assert_eq!(shown["radii"]["robust_up_to"][0], json!(radii.records[0].robust_up_to));
    assert!(shown["purity"].as_array().unwrap().iter().all(Value::is_number));
    assert_eq!(html, Page::new(&graph, "ring").model("m", Some(certificates), Some(radii)).html().unwrap());
}

#[test]
fn a_scan_proves_nothing_without_flips() {
    let (graph, model) = ring();
    let nodes: Vec<NodeId> = graph.node_ids().collect();
    let mut radii = radii(&graph, &model, &nodes);
    radii.scan = true;
    radii.records.truncate(2);
    (radii.records[0].robust_up_to, radii.records[1].robust_up_to) = (Some(0), Some(3));
    let (data, _) = parts(&Page::new(&graph, "ring").model("m", None, Some(radii)).html().unwrap());
    let shown = &data["models"][0]["radii"];
    assert_eq!(shown["robust_up_to"], json!([null, 3]));
    assert_eq!((&shown["curve"]["robust"][0], &shown["curve"]["robust"][4]), (&json!(1), &json!(0)));
}

#[test]
fn names_cannot_leave_the_data() {
    let (graph, model) = ring();
    let nodes: Vec<NodeId> = graph.node_ids().collect();
    let certificates = certificates(&graph, &model, &nodes);
    let plain = Page::new(&graph, "a").model("m", Some(certificates.clone()), None).html().unwrap();
    let page = Page::new(&graph, "<b>").title("</script><img src=x onerror=alert(1)>");
    let html = page.model("<!--<script>", Some(certificates), Some(radii(&graph, &model, &nodes))).html().unwrap();
    let (data, around) = parts(&html);
    assert_eq!(around, parts(&plain).1, "nothing but the data differs");
    assert_eq!(data["title"], "</script><img src=x onerror=alert(1)>");
    assert_eq!(data["nodes"]["name"][1], "</script><script>alert(1)</script>");
    let attributes = data["attributes"].as_object().unwrap();
    assert!(attributes.values().all(|name| name.as_str().unwrap().chars().count() <= 301), "{attributes:?}");
}

#[test]
fn a_sample_of_nodes_is_shown_with_its_surroundings() {
    let (graph, model) = ring();
    let html =
        Page::new(&graph, "a").model("m", Some(certificates(&graph, &model, &[NodeId(4)])), None).html().unwrap();
    let (data, _) = parts(&html);
    assert_eq!((&data["nodes"]["subjects"], &data["nodes"]["id"][0]), (&json!(1), &json!(4)));
    assert_eq!(data["nodes"]["id"].as_array().unwrap().len(), 5, "two hops along the ring");
    assert_eq!(data["models"][0]["purity"], json!([null]), "predictions of its neighbours are not on file");
}

#[test]
fn what_does_not_belong_together_is_refused() {
    let (graph, model) = ring();
    let nodes: Vec<NodeId> = graph.node_ids().collect();
    let refused = |page: Page| page.html().unwrap_err();
    let ours = || certificates(&graph, &model, &nodes);
    assert!(matches!(refused(Page::new(&graph, "a")), PageError::Nothing));
    let other_graph = Graph::new(6, 3, &[], &[]).unwrap();
    assert!(matches!(
        refused(Page::new(&other_graph, "a").model("m", Some(ours()), None)),
        PageError::OtherGraph { .. }
    ));
    let layer = Layer::new(Matrix::zeros(3, 2), vec![0.0, 1.0]);
    let other = Model::new(vec![layer], Propagation::SymmetricGcn).unwrap();
    let mixed = Page::new(&graph, "a").model("m", Some(ours()), Some(radii(&graph, &other, &nodes)));
    assert!(matches!(refused(mixed), PageError::OtherModel { .. }));
    let mut larger = ours();
    larger.graph.nodes = 1000;
    assert!(matches!(refused(Page::new(&graph, "a").model("m", Some(larger), None)), PageError::OtherGraph { .. }));
    for what in ["budgets", "classes"] {
        let mut radii = radii(&graph, &model, &nodes);
        match what {
            "budgets" => radii.budget.budget = radii.budget.budget.direction(Direction::AddOnly),
            _ => radii.target_class = TargetClass::Label,
        }
        let error = refused(Page::new(&graph, "a").model("m", Some(ours()), Some(radii)));
        assert!(matches!(error, PageError::OtherBudget { what: found, .. } if found == what), "{error}");
    }
    let mut backwards = ours();
    let flip = backwards.records.iter_mut().filter_map(|record| record.witness.as_mut()).flatten().next().unwrap();
    flip.to = 1 - flip.to;
    assert!(matches!(refused(Page::new(&graph, "a").model("m", Some(backwards), None)), PageError::NoFlip { .. }));
    let twice = certificates(&graph, &model, &[NodeId(1), NodeId(1)]);
    assert!(matches!(refused(Page::new(&graph, "a").model("m", Some(twice), None)), PageError::Twice { node: 1, .. }));
}

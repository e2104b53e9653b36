use nodeproof_problem::radius::Found;
use nodeproof_problem::{
    Arithmetic, AttributeId, Bound, Budget, Certificate, CertifySettings, ClassId, Collective, Direction, EdgeBudget,
    Engine, Evidence, Flip, Matrix, Model, Names, Obstacle, Propagation, Radius, TargetClass, Witness,
};
use serde_json::{Value, json};

use super::*;

/// A ring of six nodes with three words and hostile names.
fn ring() -> Graph {
    let edges: Vec<_> = (0..6).map(|node| (node, (node + 1) % 6)).collect();
    let ones: Vec<_> = (0..6).map(|node| (node, node / 3)).collect();
    let names = Names {
        nodes: Some((0..6).map(|node| format!("</script><script>alert({node})</script>")).collect()),
        attributes: Some(vec!["__NODEPROOF_DATA__".into(), "\u{202e}\"'\u{2028}".into(), "x".repeat(10_000)]),
        classes: None,
    };
    Graph::new(6, 3, &edges, &ones).unwrap().with_names(names).unwrap()
}

/// What results of a model with this bias are about.
fn header(graph: &Graph, global: u32, bias: f64) -> Header {
    let model = Model::gcn(vec![(Matrix::zeros(3, 2), vec![0.0, bias])], Propagation::SymmetricGcn).unwrap();
    let mut settings = CertifySettings::new(Budget::new(global, 2.into()));
    settings.engine = Engine::Complete;
    Header::new(graph, &model, &settings, 6)
}

fn witness(graph: &Graph, node: NodeId) -> Witness {
    let flips = [0, 2].map(|attribute| Flip::of(graph, node, AttributeId(attribute)));
    Witness::new(flips.to_vec(), ClassId(1 - node.0 / 3), -0.5)
}

/// Certificates with every kind of evidence.
fn certificates(graph: &Graph, nodes: &[u32]) -> Certificates {
    let mut certificates = Certificates::new(header(graph, 2, 1.0));
    for &node in nodes {
        let (evidence, bound) = match node {
            1 | 5 => (Evidence::Witness(witness(graph, NodeId(node))), Bound::AtLeast(-0.75)),
            2 => (
                Evidence::Open { lower: Bound::AtLeast(-0.25), upper: Some(0.5), because: Some(Obstacle::Time) },
                Bound::AtLeast(-0.25),
            ),
            3 => (
                Evidence::Open { lower: Bound::Unknown, upper: None, because: Some(Obstacle::Overflow) },
                Bound::Unknown,
            ),
            4 => (Evidence::Robust, Bound::Positive),
            _ => (Evidence::Robust, Bound::AtLeast(0.25)),
        };
        let class = ClassId(node / 3);
        let margins = [0, 1].map(|other| (ClassId(other) != class).then_some(bound)).to_vec();
        certificates.records.push(Certificate::new(NodeId(node), class, class, evidence, margins));
    }
    certificates
}

fn radii(graph: &Graph, bias: f64) -> Radii {
    let mut radii = Radii::new(header(graph, 9, bias));
    for node in graph.node_ids() {
        let mut found = Found::of_class(Some(ClassId(node.0 / 3)));
        (found.nonrobust_from, found.exact, found.witness) = (Some(2), true, Some(witness(graph, node)));
        radii.records.push(Radius::new(node, graph, Some(1), Some(found)));
    }
    radii
}

fn known(certificates: Option<Certificates>, radii: Option<Radii>) -> ModelResults {
    ModelResults { certificates, radii, collectives: None }
}

/// Under one flip an attack that changes nothing, under two one that changes nodes 0 and 5.
fn collectives(graph: &Graph, bias: f64) -> Collectives {
    let answer = |global: u32, at_most: usize, flips: Vec<Flip>, changed: &[u32]| {
        let mut answer = Collective::new(global, 6);
        (answer.alone, answer.by_radii, answer.at_most) = (5, 4, at_most);
        (answer.flips, answer.changed) = (flips, changed.iter().copied().map(NodeId).collect());
        answer.time = Some(std::time::Duration::from_millis(1500));
        answer
    };
    let flips = witness(graph, NodeId(5)).flips;
    let nodes = (0..6).map(NodeId).collect();
    let mut found = Collectives::new(header(graph, 2, bias), nodes, vec![1, 2]);
    found.records = vec![answer(1, 1, Vec::new(), &[]), answer(2, 3, flips, &[0, 5])];
    found
}

fn together(collectives: Collectives) -> ModelResults {
    ModelResults { collectives: Some(collectives), ..ModelResults::default() }
}

const ALL: [u32; 6] = [0, 1, 2, 3, 4, 5];

/// The data of a page, and what is around them.
fn data_and_rest(html: &str) -> (Value, String) {
    let (before, rest) = html.split_once(r#"<script type="application/json" id="data">"#).unwrap();
    let (data, after) = rest.split_once("</script>").unwrap();
    (serde_json::from_str(data).unwrap(), format!("{before}{after}"))
}

#[test]
fn the_data_say_what_the_results_say() {
    let graph = ring();
    let (certificates, radii) = (certificates(&graph, &ALL), radii(&graph, 1.0));
    let html =
        Page::new(&graph, "ring").model("m", known(Some(certificates.clone()), Some(radii.clone()))).html().unwrap();
    let (data, _) = data_and_rest(&html);
    assert_eq!(data["graph"]["classes"], json!(["class 0", "class 1"]));
    assert_eq!(data["nodes"]["subjects"], 6);
    assert_eq!(data["nodes"]["degree"], json!([2, 2, 2, 2, 2, 2]));
    assert_eq!(data["nodes"]["part"], Value::Null);
    let shown = &data["models"][0]["certificates"];
    let budget = json!({
        "attack": "flips",
        "global": 2,
        "in_words": "at most 2 flips, 2 at one node",
        "limits_in_words": ", 2 at one node",
    });
    assert_eq!(shown["budget"], budget);
    assert_eq!((&shown["position"], &shown["verdict"]), (&json!(ALL), &json!([0, 1, 2, 2, 0, 1])));
    let margins =
        json!([[null, 0.25], [null, -0.75], [null, -0.25], ["unknown", null], ["positive", null], [-0.75, null]]);
    assert_eq!(shown["margins"], margins);
    assert_eq!(shown["bounds"], json!([null, null, [-0.25, 0.5], ["unknown", null], null, null]));
    assert_eq!(shown["witness"], json!([null, [[1, 0, 0], [1, 2, 1]], null, null, null, [[5, 0, 1], [5, 2, 1]]]));
    assert_eq!(shown["witness_class"], json!([null, 1, null, null, null, 0]));
    assert_eq!(shown["witness_margin"], json!([null, -0.5, null, null, null, -0.5]));
    assert_eq!((&shown["predicted"], &shown["class"]), (&json!([0, 0, 0, 1, 1, 1]), &json!([0, 0, 0, 1, 1, 1])));

    let shown = &data["models"][0]["radii"];
    assert_eq!(shown["curve"]["robust"], json!([6, 6, 0, 0, 0, 0, 0, 0, 0, 0]));
    assert_eq!((&shown["target"], &shown["budget"]["global"]), (&json!("predicted"), &json!(9)));
    assert_eq!((&shown["robust_up_to"], &shown["exact"][0]), (&json!([1, 1, 1, 1, 1, 1]), &json!(true)));
    assert_eq!(shown["witness"][0], json!([[0, 0, 0], [0, 2, 1]]));
    assert!(data["models"][0]["purity"].as_array().unwrap().iter().all(Value::is_number));
    assert_eq!(html, Page::new(&graph, "ring").model("m", known(Some(certificates), Some(radii))).html().unwrap());
}

#[test]
fn attacks_on_all_predictions_are_shown_with_what_they_change() {
    let graph = ring();
    let results = ModelResults { collectives: Some(collectives(&graph, 1.0)), ..known(None, Some(radii(&graph, 1.0))) };
    let (data, _) = data_and_rest(&Page::new(&graph, "ring").model("m", results).html().unwrap());
    let shown = &data["models"][0]["collectives"];
    assert_eq!((&shown["budget"]["global"], &shown["target"]), (&json!(2), &json!("predicted")));
    assert_eq!(shown["budget"]["limits_in_words"], ", 2 at one node");
    let answers = json!([
        {
            "global": 1, "predictions": 6, "at_most": 1, "at_least": 0, "by_radii": 4, "alone": 5, "seconds": 1.5,
            "flips": [], "changed": [],
        },
        {
            "global": 2, "predictions": 6, "at_most": 3, "at_least": 2, "by_radii": 4, "alone": 5, "seconds": 1.5,
            "flips": [[5, 0, 1], [5, 2, 1]], "changed": [0, 5],
        },
    ]);
    assert_eq!(shown["answers"], answers);
    assert_eq!(data["nodes"]["subjects"], 6);
}

/// Without verdicts or radii no node is a subject, but those of the attack have names.
#[test]
fn collective_certificates_make_a_report_alone() {
    let path: Vec<_> = (0..9).map(|node| (node, node + 1)).collect();
    let graph = Graph::new(10, 3, &path, &[(0, 0)]).unwrap();
    let (data, _) =
        data_and_rest(&Page::new(&graph, "path").model("m", together(collectives(&graph, 1.0))).html().unwrap());
    assert_eq!(data["nodes"]["subjects"], 0);
    assert_eq!(data["nodes"]["id"].as_array().unwrap()[..2], [json!(5), json!(0)]);
    let attack = &data["models"][0]["collectives"]["answers"][1];
    assert_eq!((&attack["flips"], &attack["changed"]), (&json!([[0, 0, 1], [0, 2, 1]]), &json!([1, 0])));
    assert_eq!(data["attributes"], json!({"0": "attribute 0", "2": "attribute 2"}));
    assert_eq!((&data["models"][0]["radii"], &data["models"][0]["purity"]), (&Value::Null, &json!([])));
}

#[test]
fn attacks_that_are_too_large_are_left_out() {
    let graph = ring();
    let mut found = collectives(&graph, 1.0);
    found.records[0].flips = vec![Flip::of(&graph, NodeId(1), AttributeId(1)); 200_000];
    let (data, _) = data_and_rest(&Page::new(&graph, "ring").model("m", together(found)).html().unwrap());
    let answers = &data["models"][0]["collectives"]["answers"];
    assert_eq!((&answers[1]["flips"], &answers[1]["changed"]), (&Value::Null, &Value::Null));
    assert_eq!((&answers[1]["at_least"], &data["attributes"]), (&json!(2), &json!({})));
}

#[test]
fn radii_say_what_margins_and_which_arithmetic_they_are_of() {
    let graph = ring();
    let mut radii = radii(&graph, 1.0);
    (radii.header.margin, radii.header.arithmetic) = (0.25, Arithmetic::F32);
    let (data, _) = data_and_rest(&Page::new(&graph, "ring").model("m", known(None, Some(radii))).html().unwrap());
    let shown = &data["models"][0]["radii"];
    let limits = ", 2 at one node; margins above 0.25; in f32 arithmetic";
    assert_eq!((&shown["arithmetic"], &shown["budget"]["limits_in_words"]), (&json!("f32"), &json!(limits)));
}

#[test]
fn a_scan_proves_nothing_without_flips() {
    let graph = ring();
    let mut radii = radii(&graph, 1.0);
    radii.header.scan = true;
    radii.records.truncate(2);
    (radii.records[0].robust_up_to, radii.records[1].robust_up_to) = (Some(0), Some(3));
    let (data, _) = data_and_rest(&Page::new(&graph, "ring").model("m", known(None, Some(radii))).html().unwrap());
    let shown = &data["models"][0]["radii"];
    assert_eq!(shown["robust_up_to"], json!([null, 3]));
    assert_eq!((&shown["curve"]["robust"][0], &shown["curve"]["robust"][4]), (&json!(1), &json!(0)));
}

#[test]
fn names_cannot_leave_the_data() {
    let graph = ring();
    let certificates = certificates(&graph, &ALL);
    let plain = Page::new(&graph, "a").model("m", known(Some(certificates.clone()), None)).html().unwrap();
    let page = Page::new(&graph, "<b>").title("</script><img src=x onerror=alert(1)>");
    let html = page.model("<!--<script>", known(Some(certificates), Some(radii(&graph, 1.0)))).html().unwrap();
    let (data, around) = data_and_rest(&html);
    assert_eq!(around, data_and_rest(&plain).1, "nothing but the data differs");
    assert_eq!(data["title"], "</script><img src=x onerror=alert(1)>");
    assert_eq!(data["nodes"]["name"][1], "</script><script>alert(1)</script>");
    let attributes = data["attributes"].as_object().unwrap();
    assert!(attributes.values().all(|name| name.as_str().unwrap().chars().count() <= 301), "{attributes:?}");
}

#[test]
fn a_sample_of_nodes_is_shown_with_its_surroundings() {
    let graph = ring();
    let html = Page::new(&graph, "a").model("m", known(Some(certificates(&graph, &[4])), None)).html().unwrap();
    let (data, _) = data_and_rest(&html);
    assert_eq!((&data["nodes"]["subjects"], &data["nodes"]["id"][0]), (&json!(1), &json!(4)));
    assert_eq!(data["nodes"]["id"].as_array().unwrap().len(), 5, "two hops along the ring");
    assert_eq!(data["models"][0]["purity"], json!([null]), "predictions of its neighbours are not on file");
}

/// Certificates about deletions, of which some node has a witness of this edge.
fn deletions(graph: &Graph, pair: (u32, u32)) -> Certificates {
    let mut certificates = certificates(graph, &ALL);
    let edges = EdgeBudget::new(2).at_node(1);
    certificates.header.budget = Budget::new(0, 2.into()).delete_edges(edges);
    let edge = Edge::between(NodeId(pair.0), NodeId(pair.1)).unwrap();
    for record in &mut certificates.records {
        if let Evidence::Witness(witness) = &mut record.evidence {
            *witness = Witness::new(Vec::new(), witness.class, witness.margin).with_edges(vec![edge]);
        }
    }
    certificates
}

#[test]
fn deletions_are_shown_with_both_ends() {
    let graph = ring();
    let mut searched = radii(&graph, 1.0);
    searched.header.budget = Budget::new(0, 2.into()).delete_edges(EdgeBudget::new(9).at_node(1));
    for record in &mut searched.records {
        let edge = Edge::between(record.node, NodeId((record.node.0 + 1) % 6)).unwrap();
        let found = record.found.as_mut().unwrap();
        found.witness = Some(Witness::new(Vec::new(), ClassId(1), -0.5).with_edges(vec![edge]));
    }
    let html =
        Page::new(&graph, "ring").model("m", known(Some(deletions(&graph, (4, 5))), Some(searched))).html().unwrap();
    let (data, _) = data_and_rest(&html);
    let [certified, searched] = ["certificates", "radii"].map(|of| &data["models"][0][of]);
    let budget = json!({
        "attack": "deletions",
        "global": 2,
        "in_words": "at most 2 edges deleted (1 at one node)",
        "limits_in_words": ", 1 at one node",
    });
    assert_eq!(certified["budget"], budget);
    assert_eq!(certified["witness"], json!([null, [], null, null, null, []]));
    assert_eq!(certified["witness_edges"], json!([null, [[4, 5]], null, null, null, [[4, 5]]]));
    assert_eq!((&searched["budget"]["global"], &searched["witness_edges"][5]), (&json!(9), &json!([[0, 5]])));
    assert_eq!(searched["curve"]["robust"], json!([6, 6, 0, 0, 0, 0, 0, 0, 0, 0]));
    let flips = Page::new(&graph, "ring").model("m", known(Some(certificates(&graph, &ALL)), None)).html().unwrap();
    assert_eq!(data_and_rest(&flips).0["models"][0]["certificates"]["witness_edges"], Value::Null);
}

/// The ends of a deleted edge are in the report even if nothing else asks for them.
#[test]
fn ends_of_deleted_edges_are_drawn() {
    let path: Vec<_> = (0..9).map(|node| (node, node + 1)).collect();
    let graph = Graph::new(10, 3, &path, &[(0, 0)]).unwrap();
    let mut certificates = deletions(&graph, (7, 8));
    certificates.records.truncate(2);
    let (data, _) =
        data_and_rest(&Page::new(&graph, "path").model("m", known(Some(certificates), None)).html().unwrap());
    assert_eq!(data["nodes"]["id"].as_array().unwrap()[..4], [0, 1, 7, 8].map(|node| json!(node)));
    assert_eq!(data["models"][0]["certificates"]["witness_edges"], json!([null, [[2, 3]]]));
}

#[test]
fn what_does_not_belong_together_is_refused() {
    let graph = ring();
    let refused =
        |certificates, radii| Page::new(&graph, "a").model("m", known(certificates, radii)).html().unwrap_err();
    let ours = || certificates(&graph, &ALL);
    assert!(matches!(Page::new(&graph, "a").html(), Err(PageError::Nothing)));
    let other = Graph::new(6, 3, &[], &[]).unwrap();
    assert!(matches!(refused(Some(certificates(&other, &ALL)), None), PageError::OtherGraph { .. }));
    assert!(matches!(refused(Some(ours()), Some(radii(&graph, 2.0))), PageError::OtherModel { .. }));
    let mut larger = ours();
    larger.header.graph.nodes = 1000;
    assert!(matches!(refused(Some(larger), None), PageError::OtherGraph { .. }));
    for what in ["budgets", "classes", "margins", "arithmetics"] {
        let mut radii = radii(&graph, 1.0);
        match what {
            "budgets" => radii.header.budget = radii.header.budget.direction(Direction::AddOnly),
            "classes" => radii.header.target_class = TargetClass::Label,
            "margins" => radii.header.margin = 0.5,
            _ => radii.header.arithmetic = Arithmetic::F32,
        }
        let mut all = ModelResults { collectives: Some(collectives(&graph, 1.0)), ..known(Some(ours()), None) };
        all.collectives.as_mut().unwrap().header = radii.header.clone();
        let error = Page::new(&graph, "a").model("m", all).html().unwrap_err();
        let words = format!("the certificates and the collective certificates of “m” are about different {what};");
        assert!(error.to_string().starts_with(&words), "{error}");
        let error = refused(Some(ours()), Some(radii));
        assert!(matches!(error, PageError::OtherBudget { what: found, .. } if found == what), "{error}");
    }
    let mut backwards = ours();
    let Evidence::Witness(witness) = &mut backwards.records[1].evidence else { panic!("no witness") };
    witness.flips[0].to = 1.0 - witness.flips[0].to;
    assert!(matches!(refused(Some(backwards), None), PageError::NoFlip { node: NodeId(1), .. }));
    let missing = refused(Some(deletions(&graph, (0, 2))), None);
    assert!(matches!(missing, PageError::NoEdge { .. }) && missing.to_string().contains("the edge 0–2"), "{missing}");
    let refused_together = |found| Page::new(&graph, "a").model("m", found).html().unwrap_err();
    let elsewhere = refused_together(together(collectives(&other, 1.0)));
    assert!(matches!(elsewhere, PageError::OtherGraph { .. }), "{elsewhere}");
    let other_model =
        ModelResults { collectives: Some(collectives(&graph, 2.0)), ..known(None, Some(radii(&graph, 1.0))) };
    let error = refused_together(other_model).to_string();
    assert!(error.contains("radii and the collective certificates of “m” are of different models"), "{error}");
    let mut nothing = collectives(&graph, 1.0);
    nothing.records[1].flips[0].to = 1.0 - nothing.records[1].flips[0].to;
    let error = refused_together(together(nothing));
    assert!(matches!(error, PageError::NoFlip { node: NodeId(5), .. }), "{error}");
    let twice = certificates(&graph, &[1, 1]);
    assert!(matches!(refused(Some(twice), None), PageError::Twice { node: NodeId(1), .. }));
}

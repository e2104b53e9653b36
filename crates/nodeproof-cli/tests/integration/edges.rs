//! Deletions of edges, end to end.

use nodeproof::results::Certificates;
use nodeproof::{
    AttributeId, Bound, Edge, Evidence, Flip, Graph, GraphOptions, Matrix, Model, Network, NodeId, Propagation,
};
use serde_json::{Value, json};

use crate::common::{self, Fixture, Run, json};

fn certify(fixture: &Fixture, more: &str) -> Run {
    fixture.run(&format!("certify --graph graph.npz --model model.safetensors --delete-edges {more}"))
}

fn refused(run: &Run, words: &str) {
    assert_eq!(run.code, 2, "{}", run.stderr);
    assert!(run.stderr.contains(words), "{}", run.stderr);
}

/// Every single deletion is tried for what is robust, and each witness for what is not.
#[test]
fn verdicts_are_what_the_network_does_without_the_edges() {
    let fixture = Fixture::new();
    let run = certify(&fixture, "1 --out out.jsonl --csv out.csv").succeeded();
    assert!(run.stdout.contains("at most 1 edge deleted"), "{}", run.stdout);
    let (graph, _) = Graph::read(fixture.path("graph.npz"), GraphOptions::new()).unwrap();
    let model = Model::read(fixture.path("model.safetensors")).unwrap();
    let predictions = |edges: &[Edge]| {
        let left = graph.without_edges(edges).unwrap();
        Network::new(&left, &model).unwrap().predictions()
    };
    let usual = predictions(&[]);
    let edges = graph.adjacency().iter().filter_map(|(a, b)| Edge::between(NodeId(a), NodeId(b)).filter(|_| a < b));
    let under: Vec<_> = edges.map(|edge| predictions(&[edge])).collect();
    let (text, table) = (fixture.read("out.jsonl"), fixture.read("out.csv"));
    let records: Vec<Value> = text.lines().map(json).collect();
    assert_eq!(records[0]["budget"]["edges"], json!({"global": 1}));
    let (mut robust, mut nonrobust) = (0, 0);
    for (node, record) in records[1..].iter().enumerate() {
        if record["verdict"] == "robust" {
            robust += 1;
            assert!(under.iter().all(|predictions| predictions[node] == usual[node]), "node {node}");
        } else {
            assert_eq!(record["verdict"], "nonrobust");
            nonrobust += 1;
            let edges: Vec<Edge> = serde_json::from_value(record["witness_edges"].clone()).unwrap();
            assert_ne!(predictions(&edges)[node], usual[node], "node {node}");
            assert_eq!(record["witness"], json!([]));
            let row = table.lines().nth(node + 1).unwrap();
            let deleted: Vec<String> = edges.iter().map(Edge::to_string).collect();
            assert!(row.ends_with(&format!(",{}", deleted.join("; "))), "{row}");
        }
    }
    assert!(robust > 0 && nonrobust > 0);
}

#[test]
fn parts_and_what_was_interrupted_come_to_the_same() {
    let fixture = Fixture::new();
    certify(&fixture, "2 --edges-per-node 1 --keep-one-edge --out whole.jsonl").succeeded();
    for part in 1..=2 {
        certify(&fixture, &format!("2 --edges-per-node 1 --keep-one-edge --shard {part}/2 --out {part}.jsonl"))
            .succeeded();
    }
    fixture.run("merge 1.jsonl 2.jsonl --out merged.jsonl --quiet").succeeded();
    assert_eq!(fixture.read("merged.jsonl"), fixture.read("whole.jsonl"));
    let whole = fixture.read("whole.jsonl");
    let some: String = whole.lines().take(12).map(|line| format!("{line}\n")).collect();
    fixture.write("resumed.jsonl.unfinished", some);
    let run = certify(&fixture, "2 --edges-per-node 1 --keep-one-edge --out resumed.jsonl --resume");
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!(fixture.read("resumed.jsonl"), whole);
}

/// Radii, and certificates under each number of deletions up to them.
#[test]
fn radii_are_where_verdicts_change() {
    let fixture = Fixture::new();
    let files = "--graph graph.npz --model model.safetensors";
    let run = fixture.run(&format!("radius {files} --delete-edges 3 --out radii.jsonl")).succeeded();
    assert!(run.stdout.contains("budget   up to 3 deletions tried\n"), "{}", run.stdout);
    let limited = "--edges-per-node 1 --keep-one-edge --engine fast --scan --nodes 0-3";
    let run = fixture.run(&format!("radius {files} --delete-edges 3 {limited}")).succeeded();
    for words in ["up to 3 deletions tried, 1 at one node, each node keeps one\n", "upwards from 1 deletion as"] {
        assert!(run.stdout.contains(words), "{words}\n{}", run.stdout);
    }
    let radii: Vec<Value> = fixture.read("radii.jsonl").lines().skip(1).map(json).collect();
    for count in 1..=3 {
        certify(&fixture, &format!("{count} --out under.jsonl")).succeeded();
        for (record, radius) in fixture.read("under.jsonl").lines().skip(1).map(json).zip(&radii) {
            let is_robust = radius["robust_up_to"].as_u64().is_some_and(|robust| count <= robust);
            assert_eq!(record["verdict"] == "robust", is_robust, "{radius}");
        }
    }
    let some = |radius: &&Value| radius["witness_edges"].as_array().is_some_and(|edges| edges.len() == 2);
    assert!(radii.iter().any(|radius| some(&radius)));
    refused(&fixture.run(&format!("radius {files} --delete-edges 3 --max-budget 2")), "--max-budget");
    fixture.run("plot certificates radii.jsonl --out radii.svg --quiet").succeeded();
}

/// A witness may have flips and a deletion, and what either of them alone refutes is not robust.
#[test]
fn flips_go_beside_one_deletion() {
    let fixture = Fixture::new();
    let verdicts = |name: &str| -> Vec<Value> { fixture.read(name).lines().skip(1).map(json).collect() };
    let run = certify(&fixture, "1 --global-budget 1 --out both.jsonl").succeeded();
    assert!(
        run.stdout.contains("at most 1 flip, 1 at one node (1% of 12 attributes), at most 1 edge"),
        "{}",
        run.stdout
    );
    certify(&fixture, "1 --out edges.jsonl").succeeded();
    fixture.run("certify --graph graph.npz --model model.safetensors --global-budget 1 --out flips.jsonl").succeeded();
    let (both, edges, flips) = (verdicts("both.jsonl"), verdicts("edges.jsonl"), verdicts("flips.jsonl"));
    for (node, record) in both.iter().enumerate() {
        let alone = [&edges[node], &flips[node]].iter().all(|record| record["verdict"] == "robust");
        assert!(record["verdict"] != "robust" || alone, "node {node}");
        assert!(record["verdict"] != "undecided", "node {node}");
    }
}

/// Explains a node of which at most three edges may be deleted.
fn explain(fixture: &Fixture, node: usize, more: &str) -> String {
    let files = "--graph graph.npz --model model.safetensors";
    fixture.run(&format!("explain {files} --delete-edges 3 --node {node} {more}")).succeeded().stdout
}

/// A story of flips beside a deletion has margins, lower bounds of what any flips without one of the edges leave, and a witness of which
/// each part is needed.
#[test]
fn stories_of_flips_beside_a_deletion_have_margins_and_no_needless_changes() {
    let fixture = Fixture::new();
    let files = "--graph graph.npz --model model.safetensors";
    certify(&fixture, "1 --global-budget 2 --out out.jsonl").succeeded();
    let records: Vec<Value> = fixture.read("out.jsonl").lines().skip(1).map(json).collect();
    let (graph, _) = Graph::read(fixture.path("graph.npz"), GraphOptions::new()).unwrap();
    let model = Model::read(fixture.path("model.safetensors")).unwrap();
    let flipped = |margin: &Value| margin["lower"].is_number();
    let (mut nonrobust, mut smaller) = (0, 0);
    for (node, record) in records.iter().enumerate().filter(|(_, record)| record["verdict"] == "nonrobust") {
        let run = fixture.run(&format!("explain {files} --global-budget 2 --delete-edges 1 --node {node} --json"));
        let story = json(&run.succeeded().stdout);
        nonrobust += 1;
        assert_eq!((&story["verdict"], &story["radius"]), (&json!("nonrobust"), &Value::Null));
        assert!(story["margins"].as_array().unwrap().iter().all(flipped), "{story}");
        let told = &story["witness"];
        let flips: Vec<Flip> = told["flips"].as_array().unwrap().iter().map(|flip| flip_of(&graph, flip)).collect();
        let edges: Vec<Edge> = told["edges"].as_array().map_or(Vec::new(), |edges| edges.iter().map(edge_of).collect());
        let before = record["witness"].as_array().unwrap().len()
            + record["witness_edges"].as_array().map_or(0, |edges| edges.len());
        smaller += usize::from(flips.len() + edges.len() < before);
        let class = |of: &Value| of["id"].as_u64().unwrap() as usize;
        let margin = |flips: &[Flip], edges: &[Edge]| {
            let left = graph.without_edges(edges).unwrap();
            let logits = Network::new(&left, &model).unwrap().logits_under(NodeId(node as u32), flips);
            logits[class(&story["class"])] - logits[class(&told["class"])]
        };
        let after = margin(&flips, &edges);
        assert!((after - told["after"].as_f64().unwrap()).abs() < 1e-9 && after <= 0.0, "{after} {story}");
        for i in 0..flips.len() {
            let fewer: Vec<Flip> = [&flips[..i], &flips[i + 1..]].concat();
            assert!(margin(&fewer, &edges) > 0.0, "flip {i} is not needed: {story}");
        }
        assert!(edges.is_empty() || margin(&flips, &[]) > 0.0, "the edge is not needed: {story}");
        for over in story["margins"].as_array().unwrap() {
            let lower = over["lower"].as_f64().unwrap();
            assert!(lower <= over["clean"].as_f64().unwrap(), "{story}");
            assert!(over["class"] != told["class"] || lower <= after + 1e-9, "{story}");
        }
    }
    assert!(nonrobust > 3 && smaller > 0, "{nonrobust} nonrobust, {smaller} smaller");
}

fn flip_of(graph: &Graph, told: &Value) -> Flip {
    let id = |what: &str| told[what]["id"].as_u64().unwrap() as u32;
    Flip::of(graph, NodeId(id("node")), AttributeId(id("attribute")))
}

fn edge_of(told: &Value) -> Edge {
    let [a, b] = [0, 1].map(|end| NodeId(told[end]["id"].as_u64().unwrap() as u32));
    Edge::between(a, b).unwrap()
}

/// Each story has the verdict of `certify` and the smallest witness of `radius`, with names, and the margin that the network has without
/// these edges.
#[test]
fn stories_name_the_nodes_to_unlink() {
    let fixture = Fixture::new();
    certify(&fixture, "3 --out out.jsonl").succeeded();
    let files = "--graph graph.npz --model model.safetensors";
    fixture.run(&format!("radius {files} --delete-edges 3 --out radii.jsonl")).succeeded();
    let (graph, _) = Graph::read(fixture.path("graph.npz"), GraphOptions::new()).unwrap();
    let model = Model::read(fixture.path("model.safetensors")).unwrap();
    let lines = |name: &str| -> Vec<Value> { fixture.read(name).lines().skip(1).map(json).collect() };
    let mut sizes = Vec::new();
    for (node, (record, radius)) in lines("out.jsonl").iter().zip(lines("radii.jsonl")).enumerate() {
        let (text, story) = (explain(&fixture, node, ""), json(&explain(&fixture, node, "--json")));
        assert!(text.contains("budget     at most 3 edges deleted\n"), "{text}");
        assert_eq!(story["verdict"], record["verdict"]);
        let margins = story["margins"].as_array().unwrap();
        assert!(margins.iter().all(|margin| margin["lower"].is_number()), "{story}");
        if record["verdict"] == "robust" {
            assert!(text.contains("robust: no admissible set of deletions changes the class"), "{text}");
            let hint =
                format!("`nodeproof radius --delete-edges 6 --nodes {node}` finds how many deletions it withstands");
            assert!(text.split_whitespace().collect::<Vec<_>>().join(" ").contains(&hint), "{text}");
            continue;
        }
        let ends = |edge: &Value| [0, 1].map(|end| edge[end]["id"].as_u64().unwrap() as u32);
        let told: Vec<[u32; 2]> = story["witness"]["edges"].as_array().unwrap().iter().map(ends).collect();
        assert_eq!(Some(told.len() as u64), radius["nonrobust_from"].as_u64(), "the smallest");
        sizes.push(told.len());
        for &[a, b] in &told {
            let (first, second) = if a as usize == node { (b, a) } else { (a, b) };
            let itself = if second as usize == node { ", the node itself" } else { "" };
            let words = format!("  unlink paper {first} (node {first}) from paper {second} (node {second}){itself}\n");
            assert!(text.contains(&words), "{words}\n{text}");
        }
        let edges: Vec<Edge> = told.iter().map(|&[a, b]| Edge::between(NodeId(a), NodeId(b)).unwrap()).collect();
        let left = graph.without_edges(&edges).unwrap();
        let logits = Network::new(&left, &model).unwrap().logits_under(NodeId(node as u32), &[]);
        let class = |of: &Value| of["id"].as_u64().unwrap() as usize;
        let after = logits[class(&story["class"])] - logits[class(&story["witness"]["class"])];
        assert!((after - story["witness"]["after"].as_f64().unwrap()).abs() < 1e-9, "{after} {story}");
        let over = margins.iter().find(|margin| margin["class"] == story["witness"]["class"]).unwrap();
        assert!(over["lower"].as_f64().unwrap() <= after + 1e-9, "a lower bound: {story}");
    }
    assert!(sizes.contains(&1) && sizes.contains(&2), "{sizes:?}");
}

#[test]
fn stories_keep_to_what_may_be_deleted() {
    let fixture = Fixture::new();
    certify(&fixture, "1 --out out.jsonl").succeeded();
    let records: Vec<Value> = fixture.read("out.jsonl").lines().skip(1).map(json).collect();
    let node = records.iter().position(|record| record["verdict"] == "nonrobust").unwrap();
    let limited = explain(&fixture, node, "--edges-per-node 1 --keep-one-edge");
    assert!(limited.contains("at most 3 edges deleted (1 at one node), each node keeps one\n"), "{limited}");
    let (graph, _) = Graph::read(fixture.path("graph.npz"), GraphOptions::new()).unwrap();
    fixture.write("edges.txt", graph.adjacency().iter().map(|(a, b)| format!("{a} {b}\n")).collect::<String>());
    let limits = "--edges-per-node 1 --keep-one-edge --protect-edges edges.txt --protect-nodes 3-5,7";
    let text = explain(&fixture, node, limits).split_whitespace().collect::<Vec<_>>().join(" ");
    let hint = format!("`nodeproof radius --delete-edges 6 {limits} --nodes {node}` finds how many deletions");
    assert!(text.contains(&hint), "{hint}\n{text}");
    let text = explain(&fixture, node, "--protect-edges edges.txt");
    assert!(text.contains("robust: no admissible set of deletions") && !text.contains("unlink"), "{text}");
    let files = "--graph graph.npz --model model.safetensors";
    let both = format!("explain {files} --global-budget 1 --delete-edges 1 --node {node}");
    let text = fixture.run(&both).succeeded().stdout;
    assert!(text.contains("nonrobust: one ") && text.contains("at most 1 flip, 1 at one node"), "{text}");
    refused(&fixture.run(&format!("explain {files} --node {node}")), "--global-budget");
}

/// The report has the witnesses, beside those of flips of the same model under another name.
#[test]
fn reports_show_deletions() {
    let fixture = Fixture::new();
    let files = "--graph graph.npz --model model.safetensors";
    certify(&fixture, "2 --out unlinked.jsonl").succeeded();
    fixture.run(&format!("radius {files} --delete-edges 3 --out radii.jsonl")).succeeded();
    fixture.run(&format!("certify {files} --global-budget 2 --out flips.jsonl")).succeeded();
    let named = "report unlinked=unlinked.jsonl unlinked=radii.jsonl flips=flips.jsonl --graph graph.npz --out r.html";
    fixture.run(named).succeeded();
    let page = fixture.read("r.html");
    let data = page.split_once(r#"id="data">"#).unwrap().1.split_once("</script>").unwrap().0;
    let report = json(data);
    let [unlinked, flips] = [0, 1].map(|model| &report["models"][model]["certificates"]);
    assert_eq!((&unlinked["budget"]["attack"], &flips["budget"]["attack"]), (&json!("deletions"), &json!("flips")));
    assert_eq!(report["models"][0]["radii"]["budget"]["global"], 3);
    let records = fixture.read("unlinked.jsonl");
    for (place, record) in records.lines().skip(1).map(json).enumerate() {
        let node = |position: &Value| report["nodes"]["id"][position.as_u64().unwrap() as usize].clone();
        let shown = unlinked["witness_edges"][place]
            .as_array()
            .map(|edges| edges.iter().map(|ends| json!([node(&ends[0]), node(&ends[1])])).collect::<Vec<Value>>());
        assert_eq!(json!(shown), record["witness_edges"], "node {place}");
    }
    assert_eq!(flips["witness_edges"], Value::Null);
    refused(&fixture.run("report unlinked.jsonl flips.jsonl --graph graph.npz --out r.html"), "flips.jsonl");
}

#[test]
fn protected_edges_stay() {
    let fixture = Fixture::new();
    let (graph, _) = Graph::read(fixture.path("graph.npz"), GraphOptions::new()).unwrap();
    let all: String = graph.adjacency().iter().map(|(a, b)| format!("{a} {b} # an edge\n")).collect();
    fixture.write("edges.txt", all);
    let run = certify(&fixture, "2 --protect-edges edges.txt --json").succeeded();
    assert_eq!(json(&run.stdout)["all"]["robust"], 30, "{}", run.stdout);
    fixture.write("none.txt", "0 1\n0 17\n");
    refused(&certify(&fixture, "2 --protect-edges none.txt"), "none.txt, line 2: the graph has no edge 0–17");
    fixture.write("odd.txt", "0 1 2\n");
    refused(&certify(&fixture, "2 --protect-edges odd.txt"), "`0 1 2` is not an edge");
}

/// What was written is accepted, at once or later, and what was changed since is not, with hashes that fit.
#[test]
fn certificates_and_radii_are_checked() {
    let fixture = Fixture::new();
    let files = "--graph graph.npz --model model.safetensors";
    let run = certify(&fixture, "2 --out out.jsonl --check --fail-under 1%").succeeded();
    assert!(run.stdout.contains("all certificates are accepted"), "{}", run.stdout);
    let run = fixture.run(&format!("radius {files} --delete-edges 3 --out radii.jsonl --check")).succeeded();
    assert!(run.stdout.contains("all radii are accepted"), "{}", run.stdout);
    let summary = json(&fixture.run(&format!("check out.jsonl {files} --json")).succeeded().stdout);
    assert!(summary["robust"].as_u64() > Some(0) && summary["nonrobust"].as_u64() > Some(0), "{summary}");
    refused(&certify(&fixture, "2 --out - --check"), "give --out the name of a file");
    let mut certificates = Certificates::read(fixture.path("out.jsonl")).unwrap();
    for record in &mut certificates.records {
        record.evidence = Evidence::Robust;
        record.margins.iter_mut().flatten().for_each(|margin| *margin = Bound::Positive);
        record.worst_class = nodeproof::certificate::smallest(&record.margins).0;
    }
    certificates.write(std::fs::File::create(fixture.path("forged.jsonl")).unwrap()).unwrap();
    let run = fixture.run(&format!("check forged.jsonl {files}"));
    assert_eq!(run.code, 1, "{}", run.stderr);
    let rejected = format!("rejected  {}", summary["nonrobust"]);
    assert!(run.stdout.contains(&rejected) && run.stdout.contains("without the edges"), "{}", run.stdout);
    assert!(!run.stdout.contains("--proof"), "there are no proofs to ask for: {}", run.stdout);
}

/// Node 0 has 20,101 sets of two deletions or fewer, and keeps its class under all of them; the others have few.
#[test]
fn nodes_with_too_many_sets_are_counted_apart() {
    let fixture = Fixture::new();
    let pairs: Vec<(u32, u32)> = (1..=200).map(|leaf| (0, leaf)).collect();
    let ones: Vec<(u32, u32)> = (0..=200).map(|node| (node, 0)).collect();
    Graph::new(201, 1, &pairs, &ones).unwrap().write(fixture.path("star.npz")).unwrap();
    let layer = (Matrix::from_values(1, 2, vec![1.0, 0.0]), vec![1.0, 0.0]);
    Model::gcn(vec![layer], Propagation::SymmetricGcn).unwrap().write(fixture.path("star.safetensors")).unwrap();
    let files = "--graph star.npz --model star.safetensors";
    let certify = format!("certify {files} --delete-edges 2 --out out.jsonl --check");
    let run = fixture.run(&format!("{certify} --fail-under 99%")).succeeded();
    let told = run.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    let words =
        "checked all certificates are accepted that could be checked not checked 1: more than 20,000 sets of deletions";
    assert!(told.contains(words), "{}", run.stdout);
    let run = fixture.run(&format!("{certify} --fail-under 100%"));
    assert_eq!(run.code, 1, "what was not checked does not count: {}", run.stdout);
    let words = "failed: 200 of 201 nodes (99.5%) are robust without 1 not checked, fewer than --fail-under 100%";
    assert!(run.stderr.contains(words), "{}", run.stderr);
    let run = fixture.run(&format!("check {files} out.jsonl")).succeeded();
    assert!(run.stdout.contains("200 robust, 0 nonrobust\nnot checked  1: more than"), "{}", run.stdout);
    assert!(run.stdout.contains("rejected     0\n"), "{}", run.stdout);
    let summary = json(&fixture.run(&format!("check {files} out.jsonl --json")).succeeded().stdout);
    assert_eq!((&summary["checked"], &summary["not_checked"]), (&json!(200), &json!([0])), "{summary}");
    fixture.run(&format!("radius {files} --delete-edges 2 --out radii.jsonl --check")).succeeded();
    let run = fixture.run("report out.jsonl radii.jsonl --graph star.npz --out r.html --check star.safetensors");
    let told = run.succeeded().stdout;
    assert!(told.contains("all results are accepted that could be checked") && told.contains("2: more than"), "{told}");
    assert!(fixture.read("r.html").contains(r#""checked":true,"not_checked":2"#));
}

/// `fast` settles what it decides, and `complete` where it has to branch; `tight` has the bound of `fast`.
#[test]
fn engines_are_named_for_what_they_decide() {
    let fixture = Fixture::new();
    common::copy_papers(&fixture);
    let found = |engine: &str| -> Vec<Value> {
        let certify = "certify --graph papers.npz --model papers.safetensors --delete-edges 5 --out out.jsonl --engine";
        fixture.run(&format!("{certify} {engine}")).succeeded();
        fixture.read("out.jsonl").lines().skip(1).map(json).collect()
    };
    let [fast, tight, complete] = ["fast", "tight", "complete"].map(found);
    let mut settled = [0, 0];
    for ((fast, tight), complete) in fast.iter().zip(&tight).zip(&complete) {
        assert_eq!((&fast["verdict"], &fast["engine"]), (&tight["verdict"], &json!("fast")), "{fast} {tight}");
        let is_open = fast["verdict"] == "undecided";
        assert_eq!(tight["engine"], if is_open { "tight" } else { "fast" }, "{tight}");
        // A witness that takes more tries than those of `fast`, but no branching, counts as its own.
        let branched = complete["branches"].as_u64() > Some(0) || (is_open && complete["verdict"] == "robust");
        assert_eq!(complete["engine"], if branched { "complete" } else { "fast" }, "{complete}");
        assert!(
            complete["verdict"] != "undecided" && (is_open || complete["verdict"] == fast["verdict"]),
            "{complete}"
        );
        settled[usize::from(branched)] += 1;
    }
    assert!(settled.iter().all(|&count| count > 2), "{settled:?}");
}

/// Along a path of seven nodes, node 0 notices two edges and node 3 four; node 7 has none.
#[test]
fn radii_without_a_limit_are_counted() {
    let fixture = Fixture::new();
    let edges: Vec<(u32, u32)> = (0..6).map(|node| (node, node + 1)).collect();
    let ones: Vec<(u32, u32)> = (0..8).map(|node| (node, 0)).collect();
    Graph::new(8, 1, &edges, &ones).unwrap().write(fixture.path("path.npz")).unwrap();
    let layer = (Matrix::from_values(1, 2, vec![1.0, 0.0]), vec![1.0, 0.0]);
    Model::gcn(vec![layer], Propagation::SymmetricGcn).unwrap().write(fixture.path("path.safetensors")).unwrap();
    let radius = "radius --graph path.npz --model path.safetensors --delete-edges 3 --out radii.jsonl";
    let told = fixture.run(radius).succeeded().stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told.contains("note 5 nodes withstand any number of deletions: all that may matter were tried"), "{told}");
    assert!(told.contains("hint 3 nodes withstand all of --delete-edges, and may withstand more"), "{told}");
    let told = fixture.run(&format!("{radius} --nodes 0,7")).succeeded().stdout;
    assert!(!told.contains("hint"), "there is no more to find: {told}");
    fixture.run("report radii.jsonl --graph path.npz --out r.html").succeeded();
    assert!(fixture.read("r.html").contains(r#""withstands_any":[true,true]"#));
    let plot = |line: &str| fixture.run(&format!("plot {line} --out figure.svg --quiet")).succeeded();
    plot("certificates radii.jsonl");
    assert!(fixture.read("figure.svg").contains(">Deletions Q<"));
    plot("comparison radii.jsonl");
    assert!(fixture.read("figure.svg").contains(">Deletions Q<"));
    for figure in ["degree", "purity"] {
        fixture.run(&format!("{radius} --nodes 0-7")).succeeded();
        plot(&format!("{figure} radii.jsonl --graph path.npz"));
        assert!(fixture.read("figure.svg").contains(">Most deletions withstood<"), "{figure}");
    }
}

/// Options that would do nothing are refused, with what to do.
#[test]
fn limits_of_flips_are_refused_where_there_are_none() {
    let fixture = Fixture::new();
    let files = "--graph graph.npz --model model.safetensors --delete-edges 1";
    fixture.write("local.txt", "0 1\n");
    for limit in
        ["--local-budget 2", "--local-budget-file local.txt", "--add-only", "--delete-only", "--protect-attributes 0"]
    {
        let option = limit.split(' ').next().unwrap();
        let words = format!("{option} is about flips, and there are none beside these deletions; leave it out");
        let more = "leave it out, or add --global-budget for flips beside one deletion";
        for command in ["certify", "explain --node 0"] {
            let run = fixture.run(&format!("{command} {files} {limit}"));
            refused(&run, &words);
            refused(&run, more);
            fixture.run(&format!("{command} {files} {limit} --global-budget 1")).succeeded();
        }
        let run = fixture.run(&format!("radius {files} {limit}"));
        refused(&run, &words);
        assert!(!run.stderr.contains("--global-budget"), "a radius has no flips beside deletions: {}", run.stderr);
    }
    certify(&fixture, "1 --protect-nodes 0").succeeded();
}

#[test]
fn what_is_about_attributes_alone_is_refused() {
    let fixture = Fixture::new();
    certify(&fixture, "1 --out out.jsonl").succeeded();
    for (more, words) in [
        ("2 --global-budget 1", "flips of attributes beside more than one deletion"),
        ("1 --proof --out new.jsonl", "deletions of edges have no proofs; leave out --proof"),
        ("1 --proof", "deletions of edges have no proofs; leave out --proof"),
        (
            "1 --margin 0.1",
            "margins above 0 cannot be had with deletions of edges yet; leave out --margin or --delete-edges",
        ),
        ("1 --arithmetic f32", "leave out --arithmetic or --delete-edges"),
        ("1 --since out.jsonl --out new.jsonl", "leave out --since or --delete-edges"),
        (
            "1 --global-budget 0",
            "with 0 flips there is nothing to prove; give at least 1, or --delete-edges without it",
        ),
    ] {
        refused(&certify(&fixture, more), words);
    }
    let files = "--graph graph.npz --model model.safetensors";
    refused(&fixture.run(&format!("certify {files}")), "--global-budget");
    for option in ["--max-budget 2", "--global-budget 2"] {
        let run = fixture.run(&format!("radius {files} --delete-edges 3 {option}"));
        refused(&run, "a radius is of flips alone or of deletions alone; leave out --max-budget (--global-budget) or");
    }
    refused(&fixture.run(&format!("radius {files} --delete-edges 3 --proof")), "deletions of edges have no proofs");
    refused(&fixture.run(&format!("radius {files} --proof")), "--proof is written with the results; give --out");
    for option in ["--delete-edges 0", "--delete-edges 1 --edges-per-node 0"] {
        refused(&fixture.run(&format!("certify {files} {option}")), "with 0 deletions there is nothing to prove");
    }
    refused(&fixture.run(&format!("certify {files} --global-budget 1 --keep-one-edge")), "--delete-edges");
}

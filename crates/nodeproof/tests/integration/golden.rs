//! Verdicts on Cora-ML and Citeseer against those of the authors' implementation.
//!
//! The values are in the folder that `NODEPROOF_GOLDEN` names, the graphs in `NODEPROOF_DATASETS`. `golden_ref_*` come
//! from the authors' code, cast to double precision: it divides by `hi − lo + 1e-9`, so its margins differ by up to
//! 5e-9. `all_nodes_f64_*` come from an independent evaluation of the same formulas. Both keep self-loops, which only
//! Citeseer has, and both certify the predicted class.
use std::path::{Path, PathBuf};

use nodeproof::{
    Bound, Budget, Certificate, Certifier, Engine, Evidence, Graph, GraphOptions, Model, Network, NodeId, Witness,
};

use crate::common::arrays::{folder, read};

fn folders() -> Option<(PathBuf, PathBuf)> {
    folder("NODEPROOF_DATASETS").zip(folder("NODEPROOF_GOLDEN"))
}

fn load(datasets: &Path, golden: &Path, data: &str, training: &str) -> (Graph, Model) {
    let options = GraphOptions::new().binarise(true).keep_self_loops(true);
    let (graph, _) = Graph::read(datasets.join(format!("{data}.npz")), options).unwrap();
    (graph, Model::read(golden.join(format!("{data}_s123_{training}.npz"))).unwrap())
}

fn certify(graph: &Graph, model: &Model, nodes: &[NodeId], global: u32) -> Vec<Certificate> {
    let budget = Budget::new(global, "1%".parse().unwrap());
    Certifier::new(graph, model).unwrap().budget(budget).certify(nodes).unwrap()
}

/// Holds the margins of `certificates` against `expected`, nodes × classes with 0 for the certified class.
fn compare(certificates: &[Certificate], expected: &[f64], what: &str) {
    let classes = expected.len() / certificates.len();
    for (certificate, expected) in certificates.iter().zip(expected.chunks(classes)) {
        assert_eq!(certificate.margins.len(), classes);
        for (margin, expected) in certificate.margins.iter().zip(expected) {
            let margin = margin.map_or(0.0, Bound::value);
            let close = (margin - expected).abs() <= 1e-6 + 1e-6 * expected.abs();
            assert!(close, "{what}, node {}: {margin}, not {expected}", certificate.node);
        }
    }
}

fn nodes_of(file: &Path) -> Vec<NodeId> {
    read(file, "nodes").iter().map(|&node| NodeId(node as u32)).collect()
}

fn compare_all(data: &str, training: &str, shares: [f64; 3]) {
    let Some((datasets, golden)) = folders() else { return };
    let (graph, model) = load(&datasets, &golden, data, training);
    for (kind, budgets) in [("golden_ref", [1, 5, 12, 25]), ("all_nodes", [1, 5, 12, 25])] {
        let file = match kind {
            "golden_ref" => format!("golden_ref_{data}_s123_{training}_f64.npz"),
            _ => format!("all_nodes_f64_{data}_s123_{training}.npz"),
        };
        let file = golden.join(file);
        let nodes = nodes_of(&file);
        for global in budgets {
            let certificates = certify(&graph, &model, &nodes, global);
            for (certificate, predicted) in certificates.iter().zip(read(&file, "pred")) {
                assert_eq!(f64::from(certificate.class.0), predicted, "node {}", certificate.node);
            }
            let what = format!("{kind} {data} {training}, Q = {global}");
            compare(&certificates, &read(&file, &format!("lb_Q{global}")), &what);
            if kind == "all_nodes" && global == 12 {
                compare_verdicts(&certificates, &file, shares);
            }
        }
    }
}

/// Node by node, then the shares of robust, nonrobust and undecided nodes.
fn compare_verdicts(certificates: &[Certificate], file: &Path, shares: [f64; 3]) {
    let (robust, nonrobust) = (read(file, "robust12"), read(file, "nonrobust12"));
    let mut counts = [0.0; 3];
    for (i, certificate) in certificates.iter().enumerate() {
        let kind = match certificate.evidence {
            Evidence::Robust => 0,
            Evidence::Witness(_) => 1,
            _ => 2,
        };
        let expected = if robust[i] > 0.0 {
            0
        } else if nonrobust[i] > 0.0 {
            1
        } else {
            2
        };
        assert_eq!(kind, expected, "node {} is {}", certificate.node, certificate.verdict().name());
        counts[kind] += 1.0;
    }
    let found = counts.map(|count| count / certificates.len() as f64);
    println!("robust, nonrobust, undecided: {found:.4?}");
    for (found, expected) in found.iter().zip(shares) {
        assert!((found - expected).abs() < 0.5e-4 + 1e-12, "{found}, not {expected}");
    }
}

#[test]
fn cora_ml_standard() {
    compare_all("cora_ml", "ce", [0.6467, 0.3295, 0.0237]);
}

#[test]
fn cora_ml_robust() {
    compare_all("cora_ml", "rhu", [0.9272, 0.0634, 0.0093]);
}

#[test]
fn citeseer_standard() {
    compare_all("citeseer", "ce", [0.1857, 0.7663, 0.0480]);
}

#[test]
fn citeseer_robust() {
    compare_all("citeseer", "rhu", [0.7877, 0.2098, 0.0024]);
}

/// Sees to it that a witness is admissible and changes the class of `node` in a plain forward pass.
fn check_witness(graph: &Graph, network: &Network, budget: &Budget, node: NodeId, witness: &Witness) {
    assert!(budget.limits(graph).unwrap().admits(graph, &witness.flips), "node {node}");
    let (clean, tampered) = (network.logits_under(node, &[]), network.logits_under(node, &witness.flips));
    let class = (0..clean.len()).max_by(|&a, &b| clean[a].total_cmp(&clean[b])).unwrap();
    assert_ne!(class, witness.class.index());
    assert!(tampered[witness.class.index()] > tampered[class], "node {node}: {tampered:?}");
}

/// The complete engine leaves no node open, agrees with the fast one where that decides, and its witnesses hold.
fn decide_all(data: &str, training: &str) {
    let Some((datasets, golden)) = folders() else { return };
    let (graph, model) = load(&datasets, &golden, data, training);
    let network = Network::new(&graph, &model).unwrap();
    let nodes: Vec<NodeId> = graph.node_ids().collect();
    let budget = Budget::new(12, "1%".parse().unwrap());
    let certifier = Certifier::new(&graph, &model).unwrap().budget(budget.clone());
    let fast = certifier.certify(&nodes).unwrap();
    for (certificate, fast) in certifier.engine(Engine::Complete).certify(&nodes).unwrap().iter().zip(&fast) {
        let undecided = matches!(fast.evidence, Evidence::Open { .. });
        assert!(undecided || certificate.evidence == fast.evidence, "node {}", fast.node);
        match &certificate.evidence {
            Evidence::Robust => {}
            Evidence::Witness(witness) => check_witness(&graph, &network, &budget, certificate.node, witness),
            other => panic!("node {}: {other:?}", certificate.node),
        }
    }
}

#[test]
fn every_node_is_decided() {
    for (data, training) in [("cora_ml", "ce"), ("cora_ml", "rhu"), ("citeseer", "ce"), ("citeseer", "rhu")] {
        decide_all(data, training);
    }
}

/// Radii of some nodes are exact, and their witnesses hold and are one flip larger.
#[test]
fn radii_of_cora_ml_are_exact() {
    let Some((datasets, golden)) = folders() else { return };
    let (graph, model) = load(&datasets, &golden, "cora_ml", "ce");
    let network = Network::new(&graph, &model).unwrap();
    let nodes: Vec<NodeId> = graph.node_ids().step_by(50).collect();
    let budget = Budget::new(1, "1%".parse().unwrap());
    let certifier = Certifier::new(&graph, &model).unwrap().budget(budget.clone()).engine(Engine::Complete);
    for radius in certifier.radii(&nodes, 20).unwrap() {
        assert!(radius.is_exact(), "{radius:?}");
        let Some(from) = radius.nonrobust_from() else { continue };
        let witness = radius.witness().unwrap();
        assert_eq!(witness.flips.len(), from as usize);
        check_witness(&graph, &network, &budget.clone().with_global(from), radius.node, witness);
    }
}

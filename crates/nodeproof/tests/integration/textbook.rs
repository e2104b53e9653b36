//! The engine against the paper's formulas: the same numbers, less a little for rounding.
use nodeproof::check::textbook::{Bounds, Textbook};
use nodeproof::{Bound, Budget, Certifier, Graph, GraphOptions, Matrix, Model, Network, NodeId, Slopes};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::common::arrays::folder;
use crate::common::seed::config;
use crate::common::{MEDIUM, Problem, SMALL, Sizes, problems, problems_with_slopes};

/// How far a margin may lie below the textbook's, relative to the problem's scale.
const TOLERANCE: f64 = 1e-10;

/// Whether a state of a unit hangs on rounding: with slopes from outside, the bound jumps where `lo` or `hi` crosses 0,
/// and the engine's bounds are a little wider than the textbook's. (With default slopes it does not jump.)
fn on_the_edge(bounds: &[Bounds], scale: f64) -> bool {
    let values = bounds.iter().flat_map(|bounds| bounds.lo.values().iter().chain(bounds.hi.values()));
    values.into_iter().any(|value| value.abs() < 1e-12 * scale)
}

/// So many attributes that the largest weights are not all weights.
const WIDE: Sizes = Sizes { nodes: 8, attributes: 150, hidden_layers: (1, 2), units: 5, global: 30 };

/// Gives one node after the other all attributes that raise, or all that lower, one of the first layer's units: flips of
/// the largest weights then gain nothing there.
fn crowd(problem: &mut Problem) {
    let Problem { layers, ones, nodes, .. } = problem;
    let first = &layers[0];
    ones.clear();
    for node in 0..*nodes as u32 {
        let (unit, up) = (node as usize / 2 % first.outputs, node % 2 == 0);
        let weight = |attribute: u32| first.weight[attribute as usize * first.outputs + unit];
        let chosen = (0..first.inputs as u32).filter(|&d| if up { weight(d) > 0.0 } else { weight(d) < 0.0 });
        ones.extend(chosen.map(|attribute| (node, attribute)));
    }
}

/// Holds the engine's margins of all nodes against the textbook's and gives the number of pairs compared.
fn compare(problem: &Problem, slopes: Option<&[Matrix]>) -> usize {
    let (graph, model) = (problem.graph(), problem.model());
    let network = Network::new(&graph, &model).unwrap();
    let limits = problem.budget().limits(&graph).unwrap();
    let textbook = Textbook::new(&network, &limits).unwrap();
    let scales = problem.scales();
    let given = slopes.map_or(Slopes::Default, |slopes| Slopes::Given(slopes.to_vec()));
    let mut compared = 0;
    for certificate in problem.certify(given) {
        let scale = scales[certificate.node.index()];
        if slopes.is_some() && on_the_edge(&textbook.bounds(certificate.node), scale) {
            continue;
        }
        let expected = textbook.lower_bounds(certificate.node, certificate.class, slopes);
        for (k, (margin, expected)) in certificate.margins.iter().zip(expected).enumerate() {
            let Some(margin) = margin.map(Bound::value) else {
                assert_eq!((k, expected), (certificate.class.index(), 0.0));
                continue;
            };
            // The textbook's own rounding may put it below the truth by a few units in the last place.
            assert!(margin <= expected + 1e-14 * scale, "node {}: {margin} > {expected}", certificate.node);
            assert!(margin >= expected - TOLERANCE * scale, "node {}: {margin} < {expected}", certificate.node);
            compared += 1;
        }
    }
    compared
}

proptest! {
    #![proptest_config(config(4000))]

    #[test]
    fn default_slopes_give_the_textbook_margins(problem in problems(SMALL)) {
        compare(&problem, None);
    }

    #[test]
    fn given_slopes_give_the_textbook_margins(
        (problem, slopes) in problems_with_slopes(Sizes { hidden_layers: (1, 3), ..SMALL })
    ) {
        compare(&problem, Some(&slopes));
    }
}

proptest! {
    #![proptest_config(config(300))]

    #[test]
    fn larger_problems_have_the_textbook_margins((problem, slopes) in problems_with_slopes(MEDIUM)) {
        compare(&problem, None);
        compare(&problem, Some(&slopes));
    }

    #[test]
    fn crowded_nodes_have_the_textbook_margins(mut problem in problems(WIDE)) {
        crowd(&mut problem);
        compare(&problem, None);
    }

    #[test]
    fn a_certificate_does_not_depend_on_who_else_is_certified(problem in problems(SMALL), picks in vec(0usize..12, 1..4)) {
        let (graph, model) = (problem.graph(), problem.model());
        let nodes: Vec<_> = picks.iter().map(|pick| NodeId((pick % problem.nodes) as u32)).collect();
        let certifier = Certifier::new(&graph, &model).unwrap().budget(problem.budget());
        let some = certifier.target_class(problem.target_class()).threads(2).certify(&nodes).unwrap();
        let all = problem.certify(Slopes::Default);
        prop_assert_eq!(some.len(), nodes.len());
        for (certificate, node) in some.iter().zip(nodes) {
            let mut expected = all[node.index()].clone();
            expected.time = certificate.time;
            prop_assert_eq!(certificate, &expected);
        }
    }
}

/// Not all problems with given slopes are left out for being on the edge.
#[test]
fn most_problems_with_given_slopes_are_compared() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::new(config(256));
    let (mut compared, mut nodes) = (0, 0);
    for _ in 0..300 {
        let sizes = Sizes { hidden_layers: (1, 3), ..SMALL };
        let (problem, slopes) = problems_with_slopes(sizes).new_tree(&mut runner).unwrap().current();
        nodes += problem.nodes;
        compared += compare(&problem, Some(&slopes));
    }
    println!("{compared} margins of {nodes} nodes compared");
    assert!(compared > nodes);
}

#[test]
fn cora_ml_has_the_textbook_margins() {
    let (Some(datasets), Some(golden)) = (folder("NODEPROOF_DATASETS"), folder("NODEPROOF_GOLDEN")) else { return };
    let options = GraphOptions::new().binarise(true);
    let (graph, _) = Graph::read(datasets.join("cora_ml.npz"), options).unwrap();
    let model = Model::read(golden.join("cora_ml_s123_ce.npz")).unwrap();
    let budget = Budget::new(12, "1%".parse().unwrap());
    // 1009 is coprime to the number of nodes: 50 different nodes, spread over the graph.
    let nodes: Vec<_> = (0..50u32).map(|i| NodeId((i * 1009 + 17) % graph.nodes() as u32)).collect();
    let certificates = Certifier::new(&graph, &model).unwrap().budget(budget.clone()).certify(&nodes).unwrap();
    let network = Network::new(&graph, &model).unwrap();
    let limits = budget.limits(&graph).unwrap();
    let textbook = Textbook::new(&network, &limits).unwrap();
    let mut largest: f64 = 0.0;
    for certificate in certificates {
        let expected = textbook.lower_bounds(certificate.node, certificate.class, None);
        for (margin, expected) in
            certificate.margins.iter().zip(expected).filter_map(|(a, b)| a.map(Bound::value).zip(Some(b)))
        {
            let difference = (expected - margin) / expected.abs().max(1.0);
            assert!((-1e-12..=TOLERANCE).contains(&difference), "node {}: {margin}, {expected}", certificate.node);
            largest = largest.max(difference);
        }
    }
    println!("largest difference: {largest:e}");
}

//! Flips that a search in some order could leave out: each of these networks was once called robust and is not.
use nodeproof::{Certifier, Evidence, Flip, NodeId};

use crate::common::exact::Dyadic;
use crate::common::{Dense, Problem, Spread};

fn dense(rows: &[[f64; 2]], bias: [f64; 2]) -> Dense {
    Dense { inputs: rows.len(), outputs: 2, weight: rows.concat(), bias: bias.to_vec() }
}

/// Adds `attribute` at `node`, which makes class 1 overtake at node 0, and sees to it that nobody calls node 0 robust.
fn assert_not_robust(problem: &Problem, node: u32, attribute: u32) {
    let flip = Flip::of(&problem.graph(), node.into(), attribute.into());
    let limits = problem.budget().limits(&problem.graph()).unwrap();
    assert!(limits.admits(&problem.graph(), &[flip]));
    let logits = problem.world::<Dyadic>().logits(&[flip]).swap_remove(0);
    assert!(logits[1] > logits[0], "the flip does not even flip the prediction");
    let (graph, model) = (problem.graph(), problem.model());
    let certifier = Certifier::new(&graph, &model).unwrap().budget(problem.budget());
    let certificate = certifier.certify(&[NodeId(0)]).unwrap().swap_remove(0);
    assert!(!matches!(certificate.evidence, Evidence::Robust), "{:?}", certificate.evidence);
}

/// The node has all attributes with large negative weights, so that the one that lowers unit 0 is not among the largest
/// weights, whose number is no multiple of 64.
#[test]
fn additions_behind_the_largest_weights_lower_a_unit() {
    let mut rows = vec![[-1.0, 0.0]; 14];
    rows.extend([[2.0, 0.0]; 14]);
    rows.push([-0.5, 1.0]);
    let layers = vec![dense(&rows, [14.2, 0.0]), dense(&[[0.0, 1.0], [0.0, 3.0]], [2.85, 0.0])];
    let ones = (0..14).map(|attribute| (0, attribute)).collect();
    assert_not_robust(&Problem { global: 1, ones, ..Problem::one_node(29, layers) }, 0, 28);
}

/// Node 0 sees units of nodes 1 and 2, of which only attributes of node 1 can be flipped: there unit 1 is dead, at node
/// 2 unit 0 is. So the mean query lies along unit 1, that of node 1 along unit 0.
fn across(spread: &[(u32, u32, f64)], layers: Vec<Dense>) -> Problem {
    Problem {
        nodes: 3,
        labels: vec![0; 3],
        ones: vec![(2, 2), (1, 3)],
        spread: Spread::Custom(spread.to_vec()),
        global: 1,
        protected_nodes: vec![0, 2],
        protected_attributes: vec![2, 3],
        ..Problem::one_node(4, layers)
    }
}

/// The last layer's weight of unit 0 is so small that its square is 0, and the first layer's make up for it.
#[test]
fn weights_whose_squares_underflow_have_a_norm() {
    let first = dense(&[[1e149, 1e-17], [1e150, 1e-30], [-1e152, 0.0], [0.0, -1e-10]], [0.0, 0.0]);
    let layers = vec![first, dense(&[[0.0, 1e-165], [0.0, 1.0]], [5e-16, 0.0])];
    assert_not_robust(&across(&[(0, 1, 1e-3), (0, 2, 1.0), (1, 1, 1e3), (2, 2, 1.0)], layers), 1, 1);
}

/// The query of node 1 is so small that its distance from the mean is 0 if it is computed from squares.
#[test]
fn queries_whose_squares_underflow_are_far_from_the_mean() {
    let first = dense(&[[1e29, 1e28], [1e30, 0.0], [0.0, 0.0], [0.0, -1e32]], [-1e-300, 0.0]);
    let layers = vec![first, dense(&[[0.0, 1.0], [0.0, 1.0]], [5e-136, 0.0])];
    assert_not_robust(&across(&[(0, 1, 1e-3), (0, 2, 1.0), (1, 1, 1e-162)], layers), 1, 1);
}

//! Branch and bound with next to no flips listed, against every admissible set.

use std::ops::ControlFlow;
use std::rc::Rc;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;
use crate::budget::{Budget, Limits, LocalBudget};
use crate::certificate::smallest;
use crate::dense::Matrix;
use crate::engines::tight::{Bounding, Flips, Parameters, Subproblem, Tuning};
use crate::graph::Graph;
use crate::ids::{AttributeId, NodeId};
use crate::model::{Model, Propagation};
use crate::network::{Network, largest};
use crate::prepare::Prepared;
use crate::relax::Slopes;
use crate::seed::seed;

const NODES: u32 = 5;
const ATTRIBUTES: u32 = 6;
/// Hardly a flip listed and hardly a step made, so that there is much left to do.
const TUNINGS: [Tuning; 4] = [
    Tuning { first: (1, 0), many: 0, steps: (0, 0) },
    Tuning { first: (1, 1), many: 3, steps: (1, 0) },
    Tuning { first: (1, 0), many: 8, steps: (2, 1) },
    Tuning { first: (200, 16), many: 4000, steps: (0, 0) },
];

/// A random problem with local budgets up to `local`.
fn random_problem(seed: u64, local: u32) -> (Graph, Model, Budget) {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut pairs = |count: usize, to: u32| -> Vec<(u32, u32)> {
        (0..count).map(|_| (random.random_range(0..NODES), random.random_range(0..to))).collect()
    };
    let (edges, ones) = (pairs(5, NODES), pairs(9, ATTRIBUTES));
    let mut numbers =
        |count: usize, size: f64| -> Vec<f64> { (0..count).map(|_| size * random.random_range(-1.0..1.0)).collect() };
    let layers = vec![
        (Matrix::from_values(ATTRIBUTES as usize, 5, numbers(5 * ATTRIBUTES as usize, 1.0)), numbers(5, 0.4)),
        (Matrix::from_values(5, 3, numbers(15, 1.0)), numbers(3, 0.5)),
    ];
    let model = Model::gcn(layers, Propagation::SymmetricGcn).unwrap();
    let budget = Budget::new(random.random_range(1..=3), LocalBudget::Count(random.random_range(1..=local)));
    (Graph::new(NODES as usize, ATTRIBUTES as usize, &edges, &ones).unwrap(), model, budget)
}

/// The smallest margin of `y` at `node` over all admissible sets.
fn smallest_margin(network: &Network, limits: &Limits, node: NodeId, y: ClassId) -> f64 {
    fn extend(graph: &Graph, flips: &mut Vec<Flip>, from: u32, visit: &mut dyn FnMut(&[Flip]) -> bool) {
        if !visit(flips) {
            return;
        }
        for next in from..NODES * ATTRIBUTES {
            flips.push(Flip::of(graph, NodeId(next / ATTRIBUTES), AttributeId(next % ATTRIBUTES)));
            extend(graph, flips, next + 1, visit);
            flips.pop();
        }
    }
    let mut least = f64::INFINITY;
    extend(network.graph(), &mut Vec::new(), 0, &mut |flips| {
        let admissible = limits.admits(network.graph(), flips);
        if admissible {
            let logits = network.logits_under(node, flips);
            let others = (0..logits.len()).filter(|&k| k != y.index());
            least = others.map(|k| logits[y.index()] - logits[k]).fold(least, f64::min);
        }
        admissible
    });
    least
}

#[test]
fn unlisted_flips_are_reckoned_with() {
    let (mut robust, mut nonrobust, mut branched) = (0, 0, 0);
    // In the last one nothing is gained at nodes that have budget left while a flip of another is fixed.
    for (seed, local) in (0..40).map(|i| (seed(i), 3)).chain([(156, 1)]) {
        let (graph, model, budget) = random_problem(seed, local);
        let network = Network::new(&graph, &model).unwrap();
        let limits = budget.limits(&graph).unwrap();
        let nodes: Vec<NodeId> = graph.node_ids().collect();
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let prepared = Prepared::new(&network, &nodes, &Slopes::Default, &pool);
        let shared = prepared.shard(&limits, &nodes, &pool, |_, _| ControlFlow::Continue(())).unwrap();
        let mut slicer = network.slicer();
        for &node in &nodes {
            let y = largest(&network.logits_under(node, &[]));
            let truth = smallest_margin(&network, &limits, node, y);
            for tuning in TUNINGS {
                let slice = slicer.slice(node);
                let mut attack = Attack::new(&shared);
                let mut best = BestAttack::new(attack.margin(slice, y, std::iter::empty()));
                // As if other engines had found nothing out.
                let mut margins: Vec<Option<Bound>> =
                    (0..3).map(|k| (k != y.index()).then_some(Bound::Unknown)).collect();
                let mut attacks = Attacks { shared: &shared, slice, y, attack: &mut attack, best: &mut best };
                let mut decider = Decider::new(&shared);
                decider.listing.tuning = tuning;
                let around = Surroundings::new(&shared, slice).unwrap();
                let nothing = Decision { engine: Engine::Fast, branches: 0, obstacle: Obstacle::Engine };
                let decision = decider.search(&around, &mut margins, &mut attacks, Patience::endless(), nothing);
                branched += usize::from(decision.branches > 0);
                assert!(truth.abs() > 1e-9, "seed {seed}: a tie is for other tests");
                assert_eq!(best.succeeds(), truth < 0.0, "seed {seed}, node {node}: {truth}");
                let (_, lower) = smallest(&margins);
                assert!(lower.value() <= truth + 1e-9, "seed {seed}, node {node}: {lower:?} > {truth}");
                assert!(best.succeeds() || lower.is_positive(), "seed {seed}, node {node}: {lower:?} is open");
                *if truth < 0.0 { &mut nonrobust } else { &mut robust } += 1;
            }
        }
    }
    assert!(robust > 100 && nonrobust > 100 && branched > 40, "{robust} {nonrobust} {branched}");
}

/// Forty attributes move the unit far, more than are sorted, and none of them is free; the last one moves it less, but
/// enough.
#[test]
fn moves_that_are_not_sorted_are_reckoned_with() {
    let attributes = 41;
    let weight: Vec<f64> = (0..attributes).map(|d| if d + 1 < attributes { 2.0 } else { 1.0 }).collect();
    let layers = vec![
        (Matrix::from_values(attributes, 1, weight), vec![-0.5]),
        (Matrix::from_values(1, 2, vec![0.0, 1.0]), vec![0.25, 0.0]),
    ];
    let model = Model::gcn(layers, Propagation::RowNormalised).unwrap();
    let graph = Graph::new(1, attributes, &[], &[]).unwrap();
    let network = Network::new(&graph, &model).unwrap();
    let limits = Budget::new(1, LocalBudget::Count(1)).limits(&graph).unwrap();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let prepared = Prepared::new(&network, &[NodeId(0)], &Slopes::Default, &pool);
    let shared = prepared.shard(&limits, &[NodeId(0)], &pool, |_, _| ControlFlow::Continue(())).unwrap();
    let mut slicer = network.slicer();
    let around = Surroundings::new(&shared, slicer.slice(NodeId(0))).unwrap();
    let potential = |_| f64::INFINITY;
    let mut flips = Flips::new(&around, around.all_flips(), potential, |_| true, Patience::endless()).unwrap();
    flips.sort_by_unit(around.most);
    let parameters = vec![Parameters::START; around.units()];
    let last = attributes as u32 - 1;
    let all = Subproblem::all(Rc::new(flips), parameters, f64::NEG_INFINITY);
    let subproblem = Subproblem { free: vec![last], ..all };
    let mut bounding = Bounding::new(&around, (ClassId(0), ClassId(1)));
    bounding.take(&subproblem);
    let evaluation = bounding.evaluate(&subproblem.parameters, &subproblem.free);
    assert!(evaluation.bound <= -0.25, "{} is above the margin with the last one", evaluation.bound);
}

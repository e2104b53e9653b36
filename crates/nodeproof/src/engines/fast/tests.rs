//! The fast path against the general one.

use std::ops::ControlFlow;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;
use crate::budget::{Budget, LocalBudget};
use crate::dense::Matrix;
use crate::graph::Graph;
use crate::ids::NodeId;
use crate::model::{Model, Propagation};
use crate::network::Network;
use crate::prepare::{Prepared, StepError};
use crate::relax::Slopes;
use crate::search::NormTable;
use crate::slice::Heaviest;

fn random_problem(random: &mut ChaCha8Rng) -> (Graph, Model) {
    let (nodes, attributes, hidden, classes) = (60, 80, random.random_range(1..20), 4);
    let mut pairs = |count: usize, to: u32| -> Vec<(u32, u32)> {
        (0..count).map(|_| (random.random_range(0..nodes), random.random_range(0..to))).collect()
    };
    let (edges, ones) = (pairs(120, nodes), pairs(400, attributes));
    let mut layer = |inputs: usize, outputs: usize| {
        let mut numbers = |count: usize| (0..count).map(|_| random.random_range(-1.0..1.0)).collect::<Vec<f64>>();
        (Matrix::from_values(inputs, outputs, numbers(inputs * outputs)), numbers(outputs))
    };
    let layers = vec![layer(attributes as usize, hidden), layer(hidden, classes)];
    let graph = Graph::new(nodes as usize, attributes as usize, &edges, &ones).unwrap();
    (graph, Model::gcn(layers, Propagation::SymmetricGcn).unwrap())
}

#[test]
fn the_fast_path_equals_the_general_one() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    for seed in 0..20 {
        let mut random = ChaCha8Rng::seed_from_u64(crate::seed::seed(seed));
        let (graph, model) = random_problem(&mut random);
        let network = Network::new(&graph, &model).unwrap();
        let budget = Budget::new(random.random_range(1..90), LocalBudget::Count(random.random_range(1..9)));
        let limits = budget.limits(&graph).unwrap();
        let nodes: Vec<NodeId> = graph.node_ids().collect();
        let prepared = Prepared::new(&network, &nodes, &Slopes::Default, &pool);
        let shard = || prepared.shard(&limits, &nodes, &pool, |_, _| ControlFlow::Continue(())).unwrap();
        let (fast, mut general) = (shard(), shard());
        general.order = Order::Norms(NormTable::new(&general.tables.rough, &limits, None));
        general.step_errors = StepError::of_layers(&network, &general.region, &general.bounds.layers);
        let (mut fast, mut general) = (Dual::new(&fast), Dual::new(&general));
        assert!(matches!((&fast, &general), (Dual::OneHidden(_), Dual::AnyDepth(_))));
        let mut slicer = network.slicer();
        for &node in &nodes {
            let slice = slicer.slice(node);
            for (y, k) in [(0, 1), (1, 0), (2, 3), (3, 1)].map(|(y, k)| (ClassId(y), ClassId(k))) {
                fast.begin(slice, y);
                general.begin(slice, y);
                let (one, any) = (fast.lower_bound(slice, y, k), general.lower_bound(slice, y, k));
                let scale = one.value.abs().max(1.0);
                assert!((one.value - any.value).abs() <= 1e-12 * scale, "{} and {}", one.value, any.value);
                assert!((one.value - any.value).abs() <= one.error + any.error);
                assert!((fast.selection().total() - general.selection().total()).abs() <= 1e-12 * scale);
            }
        }
    }
}

#[test]
fn the_heaviest_neighbours_are_enough_where_it_says_so() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let (mut enough, mut too_little) = (0, 0);
    for seed in 0..20 {
        let mut random = ChaCha8Rng::seed_from_u64(crate::seed::seed(seed));
        let (graph, model) = random_problem(&mut random);
        let network = Network::new(&graph, &model).unwrap();
        let budget = Budget::new(random.random_range(0..30), LocalBudget::Count(random.random_range(0..9)));
        let limits = budget.limits(&graph).unwrap();
        let nodes: Vec<NodeId> = graph.node_ids().collect();
        let prepared = Prepared::new(&network, &nodes, &Slopes::Default, &pool);
        let shard = prepared.shard(&limits, &nodes, &pool, |_, _| ControlFlow::Continue(())).unwrap();
        let heaviest = Heaviest::new(network.matrix(0, 0), random.random_range(1..4), 0);
        let (mut near, mut whole) = (Dual::new(&shard), Dual::new(&shard));
        let (mut near_slicer, mut slicer) = (network.slicer(), network.slicer());
        for &node in &nodes {
            let (part, slice) = (near_slicer.near(node, &heaviest), slicer.slice(node));
            let flips = |dual: &Dual, slice: &Slice| -> Vec<(f64, u32, u32)> {
                let flips = dual.selection().best().iter();
                flips.map(|&(gain, (position, d))| (gain, slice.level(0)[position as usize], d)).collect()
            };
            for (y, k) in [(0, 1), (1, 0), (2, 3), (3, 1)].map(|(y, k)| (ClassId(y), ClassId(k))) {
                near.begin(part, y);
                whole.begin(slice, y);
                let (of_part, of_whole) = (near.lower_bound(part, y, k), whole.lower_bound(slice, y, k));
                assert!(whole.sees_enough(slice, y, k));
                if !near.sees_enough(part, y, k) {
                    assert!(!part.is_whole());
                    too_little += 1;
                    continue;
                }
                enough += usize::from(!part.is_whole());
                assert_eq!(of_part.value, of_whole.value);
                assert!(of_part.error >= of_whole.error);
                assert_eq!(flips(&near, part), flips(&whole, slice));
            }
        }
    }
    assert!(enough > 100 && too_little > 100, "{enough} and {too_little}");
}

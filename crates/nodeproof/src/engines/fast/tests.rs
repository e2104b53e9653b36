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

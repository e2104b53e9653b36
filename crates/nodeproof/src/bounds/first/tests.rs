//! Bounds against sorting all gains, where weights tie and where there are more of them than are sorted beforehand.

use std::collections::BTreeSet;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;
use crate::budget::{Budget, Direction, LocalBudget};
use crate::graph::Graph;
use crate::model::{Model, Propagation};
use crate::seed::seed;
use crate::sparse::SparseMatrix;

/// Weights from which a column is drawn: many are equal, and some are 0.
const WEIGHTS: [&[f64]; 6] = [
    &[-1.0, -0.5, -0.0, 0.0, 0.5, 1.0],
    &[-1.0, -0.5, 0.5, 1.0],
    &[0.5, -0.5],
    &[1.0, 0.0],
    &[-1.0, -0.25, 0.0],
    &[0.0, -0.0],
];

struct Case {
    graph: Graph,
    model: Model,
    budget: Budget,
}

/// One of `choices`.
fn any<T: Copy>(random: &mut ChaCha8Rng, choices: &[T]) -> T {
    choices[random.random_range(0..choices.len())]
}

/// A random problem with `attributes` attributes and some `hidden` layers.
fn case(random: &mut ChaCha8Rng, attributes: usize, hidden: usize) -> Case {
    let (nodes, units) = (random.random_range(1..5u32), random.random_range(1..4));
    let columns: Vec<&[f64]> = (0..units).map(|_| any(random, &WEIGHTS)).collect();
    let noise = any(random, &[0.0, 0.0, 0.0, 0.5]);
    let mut weight = Vec::new();
    for _ in 0..attributes {
        weight.extend(columns.iter().map(|column| any(random, column) + noise * random.random_range(-1.0..1.0)));
    }
    let mut ones = Vec::new();
    for node in 0..nodes {
        // From this size on, and up to this attribute, no flip moves a unit one way.
        let (unit, up, share) = (random.random_range(0..units), random.random_bool(0.5), random.random_range(0.0..1.0));
        let (size, end) = (any(random, &[0.0, 0.5, 1.0, 9.0]), any(random, &[attributes, MOST]));
        for d in 0..attributes {
            let w = weight[d * units + unit];
            let exhausted = w.abs() >= size && d < end;
            let has = if exhausted { (w > 0.0) == up } else { random.random_bool(share) };
            if has {
                ones.push((node, d as u32));
            }
        }
    }
    let layer = |inputs, outputs, weight| (Matrix::from_values(inputs, outputs, weight), vec![0.25; outputs]);
    let mut layers = vec![layer(attributes, units, weight)];
    layers.extend((1..hidden).map(|_| layer(units, units, vec![1.0; units * units])));
    layers.push(layer(units, 2, vec![1.0; 2 * units]));
    let mut triplets = Vec::new();
    for (m, n) in (0..nodes).flat_map(|m| (0..nodes).map(move |n| (m, n))) {
        if random.random_bool(0.6) {
            triplets.push((m, n, any(random, &[0.0, 0.5, 0.5, 1.0])));
        }
    }
    let propagation = Propagation::Custom(SparseMatrix::from_triplets(nodes as usize, nodes as usize, &triplets));
    let d = attributes as u32;
    let (global, local) =
        (any(random, &[0, 1, 2, 5, 70, d, u32::MAX]), any(random, &[1, 2, 3, 20, d / 2 + 1, u32::MAX]));
    let direction = any(random, &[Direction::Both, Direction::Both, Direction::AddOnly, Direction::DeleteOnly]);
    let protected = any(random, &[0.0, 0.0, 0.0, 0.05, 0.5, 1.0]);
    let budget = Budget::new(global, LocalBudget::Count(local))
        .direction(direction)
        .local_at(NodeId(random.random_range(0..nodes)), random.random_range(0..40))
        .protect_attributes((0..d).map(AttributeId).filter(|_| random.random_bool(protected)));
    Case {
        graph: Graph::new(nodes as usize, attributes, &[], &ones).expect("a valid graph"),
        model: Model::gcn(layers, propagation).expect("a valid model"),
        budget,
    }
}

/// The most that `node` can move `unit` by, up and down, from all gains.
fn moves_of_all(network: &Network, limits: &Limits, node: u32, unit: usize) -> [f64; 2] {
    let weight = network.layers()[0].weight();
    let (neighbours, factors) = network.propagation().row(node as usize);
    [1.0, -1.0].map(|way| {
        let mut all = Vec::new();
        for (&n, &p) in neighbours.iter().zip(factors) {
            let mut gains = Vec::new();
            for d in 0..weight.rows() {
                let has = network.graph().attributes().contains(n as usize, d as u32);
                let direction = if has { limits.deletions() } else { limits.additions() };
                if direction && limits.flippable(AttributeId(d as u32)) {
                    gains.push(p * way * if has { -1.0 } else { 1.0 } * weight.get(d, unit));
                }
            }
            gains.sort_by(|a, b| b.total_cmp(a));
            all.extend(gains.into_iter().take(limits.local(NodeId(n))));
        }
        all.sort_by(|a, b| b.total_cmp(a));
        all.into_iter().take(limits.global()).filter(|&gain| gain > 0.0).sum()
    })
}

fn check(case: &Case) {
    let network = Network::new(&case.graph, &case.model).expect("they fit");
    let limits = case.budget.limits(&case.graph).expect("it fits");
    let targets: Vec<NodeId> = case.graph.node_ids().collect();
    let region = Region::around(network.propagation(), &targets, network.layers().len());
    let places_with = case.graph.attributes().turned(region.level(0).nodes());
    let clean = &network.pre_activations(&region, &network.attribute_sums(region.level(0).nodes()))[0];
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a pool");
    let go_on = &mut |_, _| ControlFlow::Continue(());
    let (lo, hi) = bounds(&network, &limits, &region, &places_with, clean, &pool, go_on).expect("it is not broken off");
    let (lo_too, hi_too, attained) = attained_bounds(&network, &limits, &region, &places_with, clean);
    assert_eq!((lo.values(), hi.values()), (lo_too.values(), hi_too.values()));
    for (place, &node) in region.level(1).nodes().iter().enumerate() {
        for unit in 0..clean.columns() {
            let z = clean.get(place, unit);
            let [up, down] = moves_of_all(&network, &limits, node, unit);
            let (lo, hi) = (lo.get(place, unit), hi.get(place, unit));
            let tolerance = 1e-12 * (1.0 + z.abs() + up + down);
            let exact = (lo - z + down).abs() <= tolerance && (hi - z - up).abs() <= tolerance;
            let wider = lo <= z - down + tolerance && hi >= z + up - tolerance;
            let stable = lo >= 0.0 || hi <= 0.0;
            let only_signs_matter = case.model.hidden_layers() == 1;
            assert!(exact || (only_signs_matter && wider && stable), "[{lo}, {hi}] is not {z} − {down} and + {up}");
            for (flips, bound) in attained.flips[unit].iter().zip([up, down]) {
                let flips = flips.of(place);
                if flips.is_empty() && stable && only_signs_matter {
                    continue;
                }
                let gain = |&(entry, d): &AttainedFlip| {
                    attained.neighbourhoods.entries[entry as usize].1
                        * network.layers()[0].weight().get(d as usize, unit).abs()
                };
                assert!((flips.iter().map(gain).sum::<f64>() - bound).abs() <= tolerance);
                assert_eq!(flips.iter().collect::<BTreeSet<_>>().len(), flips.len(), "a flip twice");
            }
        }
    }
}

#[test]
fn bounds_are_those_of_all_gains() {
    let mut random = ChaCha8Rng::seed_from_u64(seed(1));
    for i in 0..600 {
        let attributes = random.random_range(1..[10, 40, 140, 300][i % 4]);
        let hidden = random.random_range(1..3);
        check(&case(&mut random, attributes, hidden));
    }
}

#[test]
fn bounds_with_more_weights_than_are_sorted() {
    let mut random = ChaCha8Rng::seed_from_u64(seed(2));
    for _ in 0..60 {
        let attributes = random.random_range(MOST - 3..2 * MOST);
        check(&case(&mut random, attributes, 2));
    }
}

//! Bounds against sorting all gains, where weights tie and where there are more of them than are sorted beforehand.

use std::collections::BTreeSet;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;
use crate::budget::{Budget, Direction, LocalBudget};
use crate::graph::Graph;
use crate::model::{Activation, Layer, Model, Propagation, Source, Term};
use crate::network::AttributeTerm;
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

/// A random problem with `attributes` attributes, some `hidden` layers, and some `terms` in the first of them.
fn case(random: &mut ChaCha8Rng, attributes: usize, hidden: usize, terms: usize) -> Case {
    let (nodes, units) = (random.random_range(1..5u32), random.random_range(1..4));
    let columns: Vec<&[f64]> = (0..units).map(|_| any(random, &WEIGHTS)).collect();
    let noise = any(random, &[0.0, 0.0, 0.0, 0.5]);
    let mut weights = vec![Vec::new(); terms];
    for weight in &mut weights {
        for _ in 0..attributes {
            weight.extend(columns.iter().map(|column| any(random, column) + noise * random.random_range(-1.0..1.0)));
        }
    }
    let mut ones = Vec::new();
    for node in 0..nodes {
        // From this size on, and up to this attribute, no flip moves a unit one way.
        let (unit, up, share) = (random.random_range(0..units), random.random_bool(0.5), random.random_range(0.0..1.0));
        let (size, end) = (any(random, &[0.0, 0.5, 1.0, 9.0]), any(random, &[attributes, MOST]));
        for d in 0..attributes {
            let w = weights[0][d * units + unit];
            let exhausted = w.abs() >= size && d < end;
            let has = if exhausted { (w > 0.0) == up } else { random.random_bool(share) };
            if has {
                ones.push((node, d as u32));
            }
        }
    }
    let terms = weights
        .into_iter()
        .zip(0..)
        .map(|(weight, k)| Term::new(Source::Attributes, k, Matrix::from_values(attributes, units, weight)));
    let mut layers = vec![Layer::new(terms.collect(), vec![0.25; units], Activation::Relu)];
    let deeper = |i: usize, outputs: usize, activation: Activation| {
        let term = Term::new(Source::Layer(i - 1), 0, Matrix::from_values(units, outputs, vec![1.0; units * outputs]));
        Layer::new(vec![term], vec![0.25; outputs], activation)
    };
    layers.extend((1..hidden).map(|i| deeper(i, units, Activation::Relu)));
    layers.push(deeper(hidden, 2, Activation::None));
    let signed = random.random_bool(0.5);
    let propagations = (0..layers[0].terms().len()).map(|_| {
        let mut triplets = Vec::new();
        for (m, n) in (0..nodes).flat_map(|m| (0..nodes).map(move |n| (m, n))) {
            if random.random_bool(0.6) {
                let sign = if signed && random.random_bool(0.5) { -1.0 } else { 1.0 };
                triplets.push((m, n, sign * any(random, &[0.0, 0.5, 0.5, 1.0])));
            }
        }
        Propagation::Custom(SparseMatrix::from_triplets(nodes as usize, nodes as usize, &triplets))
    });
    let propagations = propagations.collect();
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
        model: Model::new(attributes, propagations, layers).expect("a valid model"),
        budget,
    }
}

/// What attribute d of node n adds to a unit of node m.
fn moved(network: &Network, (m, n): (u32, u32), d: usize, unit: usize) -> f64 {
    let term = |term: &AttributeTerm| {
        let (columns, values) = network.matrix(0, term.term).row(m as usize);
        let p = columns.iter().position(|&column| column == n).map_or(0.0, |place| values[place]);
        p * network.attribute_weight().get(d, term.columns.start + unit)
    };
    network.attribute_terms_of(0).map(term).sum()
}

/// The most that `node` can move `unit` by, up and down, from all gains.
fn moves_of_all(network: &Network, limits: &Limits, node: u32, unit: usize) -> [f64; 2] {
    let neighbours: BTreeSet<u32> =
        network.matrices().iter().flat_map(|matrix| matrix.row(node as usize).0).copied().collect();
    [1.0, -1.0].map(|way| {
        let mut all = Vec::new();
        for &n in &neighbours {
            let mut gains = Vec::new();
            for d in 0..network.model().attributes() {
                let has = network.graph().attributes().contains(n as usize, d as u32);
                let direction = if has { limits.deletions() } else { limits.additions() };
                if direction && limits.flippable(AttributeId(d as u32)) {
                    gains.push(way * if has { -1.0 } else { 1.0 } * moved(network, (node, n), d, unit));
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
    let region = network.region(&targets);
    let places_with = case.graph.attributes().turned(region.level(0).nodes());
    let clean = &network.pre_activations(&region, &network.attribute_sums(region.level(0).nodes()))[0];
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a pool");
    let only_signs_matter = case.model.hidden_layers() == 1;
    let asked = || Asked {
        network: &network,
        limits: &limits,
        region: &region,
        places_with: &places_with,
        layer: 0,
        clean,
        means: None,
        only_signs_matter,
    };
    let (lo, hi) = bounds(asked(), &pool, &mut |_| ControlFlow::Continue(())).expect("it is not broken off");
    let (lo_too, hi_too, attained) = attained_bounds(asked());
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
            assert!(exact || (only_signs_matter && wider && stable), "[{lo}, {hi}] is not {z} − {down} and + {up}");
            for (flips, bound) in attained.flips[unit].iter().zip([up, down]) {
                let flips = flips.of(place);
                if flips.is_empty() && stable && only_signs_matter {
                    continue;
                }
                let gain = |&(entry, d): &SlicedFlip| {
                    let n = region.level(0).nodes()[attained.neighbourhoods.places[entry as usize] as usize];
                    moved(&network, (node, n), d as usize, unit).abs()
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
        check(&case(&mut random, attributes, hidden, 1 + i % 3));
    }
}

#[test]
fn bounds_with_more_weights_than_are_sorted() {
    let mut random = ChaCha8Rng::seed_from_u64(seed(2));
    for _ in 0..60 {
        let attributes = random.random_range(MOST - 3..2 * MOST);
        check(&case(&mut random, attributes, 2, 1));
    }
}

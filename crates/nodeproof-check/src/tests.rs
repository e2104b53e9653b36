//! What the checker computes, held against all admissible sets of tiny problems, and networks evaluated in plain loops.

use nodeproof_problem::{
    Activation, AttributeId, AttributeKind, Budget, Direction, EdgeBudget, Found, GraphOptions, Layer, LocalBudget,
    Matrix, Propagation, Source, Term, UnitSlope, Values, Weight,
};

use super::*;
use crate::bound::Linearised;
use crate::rows::Row;

/// Far more than doubles are off in networks of this size.
const ROUNDING: f64 = 1e-9;

/// Numbers that look drawn (SplitMix64).
struct Draw {
    seed: u64,
    /// Whether numbers are halves, so that sums cancel.
    are_halves: bool,
}

impl Draw {
    fn new(seed: u64) -> Self {
        Self { seed, are_halves: seed.is_multiple_of(4) }
    }

    fn next(&mut self) -> u64 {
        self.seed = self.seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.seed ^ self.seed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ x >> 31
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    /// From -1 to 1, now and then 0.
    fn number(&mut self) -> f64 {
        if self.are_halves {
            return self.below(5) as f64 / 2.0 - 1.0;
        }
        if self.one_in(8) { 0.0 } else { (self.next() >> 11) as f64 / (1u64 << 52) as f64 - 1.0 }
    }

    fn numbers(&mut self, count: usize) -> Vec<f64> {
        (0..count).map(|_| self.number()).collect()
    }

    fn of<T: Clone>(&mut self, some: &[T]) -> T {
        some[self.below(some.len())].clone()
    }
}

/// A tiny problem: every admissible set can be gone through.
#[derive(Debug)]
struct Tiny {
    graph: Graph,
    model: Model,
    budget: Budget,
}

impl Tiny {
    fn drawn(draw: &mut Draw, kind: AttributeKind) -> Self {
        let nodes = 2 + draw.below(3) as u32;
        let attributes = if kind == AttributeKind::RealValues { 2 } else { 2 + draw.below(4) as u32 };
        let edges: Vec<_> = (0..nodes).flat_map(|m| (0..m).map(move |n| (m, n))).filter(|_| !draw.one_in(3)).collect();
        let ones: Vec<_> =
            (0..nodes).flat_map(|n| (0..attributes).map(move |d| (n, d))).filter(|_| draw.one_in(2)).collect();
        let graph = Graph::new(nodes as usize, attributes as usize, &edges, &ones).unwrap();
        let graph = if kind == AttributeKind::RealValues {
            let values =
                Matrix::from_values(nodes as usize, attributes as usize, draw.numbers((nodes * attributes) as usize));
            let values = Values::new(values).unwrap();
            let far = draw.of(&[1.0, 4.0]);
            let ranges =
                (0..attributes).map(|_| (far * draw.number().min(0.0), far * draw.number().max(0.0))).collect();
            graph.with_values(values.with_ranges(ranges).unwrap()).unwrap()
        } else {
            graph.with_kind(kind)
        };
        let model = scaled(draw, attributes as usize).with_kind(kind);
        let budget = Budget::new(1 + draw.below(3) as u32, LocalBudget::Count(1 + draw.below(3) as u32));
        let budget =
            budget.direction(draw.of(&[Direction::Both, Direction::Both, Direction::AddOnly, Direction::DeleteOnly]));
        let protected = draw.one_in(3).then(|| AttributeId(draw.below(attributes as usize) as u32));
        Self { graph, model, budget: budget.protect_attributes(protected) }
    }

    fn limits(&self) -> Limits {
        self.budget.limits(&self.graph).unwrap()
    }

    /// All admissible sets: of real values those that put entries to ends of their ranges.
    fn sets(&self) -> Vec<Vec<Flip>> {
        let (graph, limits) = (&self.graph, self.limits());
        let places =
            graph.node_ids().flat_map(|n| (0..graph.attribute_count() as u32).map(move |d| (n, AttributeId(d))));
        let flips = places.flat_map(|(node, attribute)| {
            let ends = match graph.values() {
                Some(values) => {
                    limits.range(values, node, attribute).map(|(low, high)| vec![low, high]).unwrap_or_default()
                }
                None => vec![1.0 - graph.value(node, attribute)],
            };
            ends.into_iter().map(move |to| Flip { node, attribute, to })
        });
        let mut sets = vec![Vec::new()];
        for flip in flips {
            let larger: Vec<Vec<Flip>> = sets.iter().map(|set| [&set[..], &[flip]].concat()).collect();
            sets.extend(larger.into_iter().filter(|set| limits.admits(graph, set)));
        }
        sets
    }

    /// The logits of a node with flips made.
    fn logits(&self, flips: &[Flip], node: NodeId) -> Vec<f64> {
        let (graph, nodes) = (&self.graph, self.graph.nodes());
        let row = |n: usize| {
            let mut row = vec![0.0; graph.attribute_count()];
            graph.entries_of(NodeId(n as u32)).for_each(|(d, x)| row[d.index()] = x);
            flips.iter().filter(|flip| flip.node.index() == n).for_each(|flip| row[flip.attribute.index()] = flip.to);
            let divisor =
                if graph.kind() == AttributeKind::NormalisedRows { row.iter().sum::<f64>().max(1.0) } else { 1.0 };
            row.into_iter().map(|x| x / divisor).collect::<Vec<f64>>()
        };
        let attributes: Vec<Vec<f64>> = (0..nodes).map(row).collect();
        let propagations: Vec<_> = self.model.propagations().iter().map(|of| of.matrix(graph).unwrap()).collect();
        let mut layers: Vec<Vec<Vec<f64>>> = Vec::new();
        for layer in self.model.layers() {
            let unit = |m: usize, k: usize| {
                let mut z = layer.bias()[k];
                for term in layer.terms() {
                    let (columns, entries) = propagations[term.propagation()].row(m);
                    for (&n, p) in columns.iter().zip(entries) {
                        let read = match term.source() {
                            Source::Ones => &vec![1.0],
                            Source::Attributes => &attributes[n as usize],
                            Source::Layer(source) => &layers[source][n as usize],
                        };
                        z += p * match term.weight() {
                            Weight::Dense(w) => read.iter().enumerate().map(|(j, h)| h * w.get(j, k)).sum::<f64>(),
                            Weight::Scalar(factor) => factor * read[k],
                        };
                    }
                }
                if z > 0.0 { z } else { layer.activation().slope() * z }
            };
            layers.push((0..nodes).map(|m| (0..layer.bias().len()).map(|k| unit(m, k)).collect()).collect());
        }
        layers.pop().unwrap().swap_remove(node.index())
    }

    fn margin(&self, flips: &[Flip], node: NodeId, (y, k): (ClassId, ClassId)) -> f64 {
        let logits = self.logits(flips, node);
        logits[y.index()] - logits[k.index()]
    }
}

/// Up to two hidden layers, whose terms read the attributes, constants, and all layers below.
fn model(draw: &mut Draw, attributes: usize) -> Model {
    let polynomial =
        Propagation::Polynomial { of: Box::new(Propagation::RowMean), coefficients: vec![0.5, -1.0, 0.75] };
    let propagations = vec![Propagation::SymmetricGcn, Propagation::Adjacency, Propagation::Identity, polynomial];
    let mut widths: Vec<usize> = (0..draw.below(3)).map(|_| 1 + draw.below(3)).collect();
    widths.push(2 + draw.below(2));
    let mut layers = Vec::new();
    for (i, &units) in widths.iter().enumerate() {
        let below = if i == 0 { Source::Attributes } else { Source::Layer(i - 1) };
        let mut sources = vec![below];
        let others = [Source::Attributes, Source::Ones, Source::Layer(0)];
        sources.extend(others.into_iter().filter(|&other| (i > 0 || other != Source::Layer(0)) && draw.one_in(4)));
        let terms = sources.into_iter().map(|source| {
            let inputs = match source {
                Source::Attributes => attributes,
                Source::Ones => 1,
                Source::Layer(source) => widths[source],
            };
            let propagation = draw.below(propagations.len());
            if inputs == units && draw.one_in(4) {
                return Term::new(source, propagation, Weight::Scalar(draw.number()));
            }
            Term::new(source, propagation, Matrix::from_values(inputs, units, draw.numbers(inputs * units)))
        });
        let terms = terms.collect();
        let activation = draw.of(&[Activation::Relu, Activation::Relu, Activation::LeakyRelu(0.25)]);
        let activation = if i + 1 == widths.len() { Activation::None } else { activation };
        layers.push(Layer::new(terms, draw.numbers(units), activation));
    }
    Model::new(attributes, propagations, layers).unwrap()
}

/// The same, now and then with larger numbers.
fn scaled(draw: &mut Draw, attributes: usize) -> Model {
    let mut model = model(draw, attributes);
    let scale = draw.of(&[1.0, 1.0, 5.0]);
    model.tensors_mut().flatten().for_each(|number| *number *= scale);
    model
}

const KINDS: [AttributeKind; 3] = [AttributeKind::Bits, AttributeKind::NormalisedRows, AttributeKind::RealValues];

/// Calls `judge` with problems of all kinds, the network of each, and the region of one of its nodes.
fn with_problems(count: usize, mut judge: impl FnMut(&mut Draw, &Tiny, &Network, &Region)) {
    for (seed, kind) in (0..count).flat_map(|seed| KINDS.map(|kind| (seed, kind))) {
        let mut draw = Draw::new(seed as u64);
        let tiny = Tiny::drawn(&mut draw, kind);
        let network = Network::new(&tiny.graph, &tiny.model, tiny.limits()).unwrap();
        let node = NodeId(draw.below(tiny.graph.nodes()) as u32);
        let region = Region::new(&network, &Rows::of(&network.matrices), node);
        judge(&mut draw, &tiny, &network, &region);
    }
}

/// Two classes.
fn pair(draw: &mut Draw, model: &Model) -> (ClassId, ClassId) {
    let y = draw.below(model.classes());
    let k = (y + 1 + draw.below(model.classes() - 1)) % model.classes();
    (ClassId(y as u32), ClassId(k as u32))
}

/// Slopes of lines below some of the activations.
fn slopes(draw: &mut Draw, network: &Network, region: &Region) -> Vec<UnitSlope> {
    let mut slopes = Vec::new();
    for (i, layer) in network.layers().iter().enumerate().take(network.layers().len() - 1) {
        for (&node, unit) in region.nodes[i].iter().flat_map(|node| (0..layer.units()).map(move |unit| (node, unit))) {
            if draw.one_in(4) {
                let below = layer.activation().slope();
                let slope = below + (1.0 - below) * draw.number().abs();
                slopes.push(UnitSlope { layer: i as u32, node, unit: unit as u32, slope });
            }
        }
    }
    slopes
}

#[test]
fn exact_logits_and_those_in_intervals_are_those_of_the_network() {
    with_problems(150, |draw, tiny, network, region| {
        let sets = tiny.sets();
        for flips in (0..4).map(|_| draw.of(&sets)) {
            let sums: Vec<_> = region.rows.iter().map(|&node| network.sum(node, &flips)).collect();
            let z = region.forward(network, &sums, &Interval::of(1.0));
            let (exact, one) = region.exact_logits(network, &flips);
            for ((expected, interval), exact) in
                tiny.logits(&flips, region.target()).iter().zip(&z[z.len() - 1][0]).zip(&exact)
            {
                assert!(interval.hi - interval.lo < ROUNDING && (interval.lo - expected).abs() < ROUNDING, "{tiny:?}");
                let below = exact.plus(&one.times(-interval.lo)).sign();
                let above = exact.plus(&one.times(-interval.hi)).sign();
                assert!(below.is_ge() && above.is_le(), "{tiny:?}, {flips:?}");
            }
        }
    });
}

/// Lemma 39: margins, additive in the flips of bits and values; Lemma 46 for the flips of one row that is divided.
#[test]
fn flips_gain_no_more_than_their_bounds() {
    with_problems(150, |draw, tiny, network, region| {
        let pair = pair(draw, &tiny.model);
        let base = Base::clean(network, region, network.limits.global());
        let linear = Linearised::new(&base, pair, &slopes(draw, network, region)).unwrap();
        let of_rows = |set: &[Flip]| set.iter().all(|flip| region.rows.binary_search(&flip.node).is_ok());
        let sets: Vec<_> = tiny.sets().into_iter().filter(|set| of_rows(set)).collect();
        let least = |set: &[Flip]| tiny.margin(set, region.target(), pair) + ROUNDING;
        let row_of = |flip: &Flip| region.rows.binary_search(&flip.node).unwrap();
        if tiny.graph.kind() != AttributeKind::NormalisedRows {
            let change = |flip: &Flip| {
                let by = flip.to - tiny.graph.value(flip.node, flip.attribute);
                network
                    .weight
                    .row(flip.attribute.index())
                    .iter()
                    .map(|&w| Interval::of(w).times(by))
                    .collect::<Vec<_>>()
            };
            let queries = linear.queries();
            for set in &sets {
                let gains = set.iter().map(|flip| linear.gain(row_of(flip), &change(flip), 1.0));
                assert!(linear.constant - gains.sum::<f64>() <= least(set), "{tiny:?}, {set:?}");
                for flip in set {
                    let gain = linear.gain(row_of(flip), &change(flip), 1.0);
                    let bound = queries[row_of(flip)].bound(&change(flip));
                    assert!(gain <= bound + ROUNDING, "{gain} > {bound}: {tiny:?}");
                }
            }
            return;
        }
        check_rows(tiny, &base, &linear, pair);
    });
}

/// Lemma 46, of each row by itself, however closely it is looked at.
fn check_rows(tiny: &Tiny, base: &Base, linear: &Linearised, pair: (ClassId, ClassId)) {
    let (region, limits, sets) = (base.region, &base.network.limits, tiny.sets());
    for (place, query) in linear.queries().iter().enumerate() {
        let (mut row, node) = (Row::new(base, place), region.rows[place]);
        let of_row = sets.iter().filter(|set| set.iter().all(|flip| flip.node == node));
        let gained = of_row.map(|set| (set, linear.constant - tiny.margin(set, region.target(), pair) - ROUNDING));
        let gained: Vec<_> = gained.collect();
        for level in [60.0, 20.0, 5.0, 2.0, 1.0, 0.5, 0.2, 0.05, 1e-6, 1e-6, 1e-6, 1e-6, 1e-6] {
            let gains = row.gains(linear, query, level);
            for (set, gained) in &gained {
                let most = gains.as_ref().map_or(level * set.len() as f64, |gains| gains[set.len()]);
                assert!(*gained <= most, "{gained} > {most}, {level}: {set:?}, {tiny:?}");
            }
            if level < 0.1 && gains.is_some() {
                (1..=limits.global().min(limits.local(node))).for_each(|flips| {
                    row.look_closer(flips);
                });
            }
        }
    }
}

/// Ones that are left stand for those that are removed only where they are no more: one removal lifts a unit from -0.6 to 0.4, which the
/// five ones that are left would share out so that little is seen of it.
#[test]
fn few_removals_are_not_shared_out() {
    let ones: Vec<_> = (0..6).map(|d| (0, d)).collect();
    let graph = Graph::new(1, 6, &[], &ones).unwrap().with_kind(AttributeKind::NormalisedRows);
    let first = (Matrix::from_values(6, 1, vec![-5.0, 1.0, 1.0, 1.0, 1.0, 1.0]), vec![-0.6]);
    let last = (Matrix::from_values(1, 2, vec![0.0, 1.0]), vec![1.0, 0.0]);
    let model = Model::gcn(vec![first, last], Propagation::Identity).unwrap().with_kind(graph.kind());
    let tiny = Tiny { graph, model, budget: Budget::new(3, LocalBudget::Count(3)) };
    let network = Network::new(&tiny.graph, &tiny.model, tiny.limits()).unwrap();
    let region = Region::new(&network, &Rows::of(&network.matrices), NodeId(0));
    let base = Base::clean(&network, &region, 3);
    let pair = (ClassId(0), ClassId(1));
    check_rows(&tiny, &base, &Linearised::new(&base, pair, &[]).unwrap(), pair);
}

/// One node with many ones, some of which are there to stay.
#[test]
fn flips_of_long_rows_gain_no_more_than_their_bounds() {
    for seed in 0..500 {
        let mut draw = Draw::new(seed);
        let attributes = 4 + draw.below(4);
        let ones: Vec<_> = (0..attributes as u32).filter(|_| !draw.one_in(3)).map(|d| (0, d)).collect();
        let graph = Graph::new(1, attributes, &[], &ones).unwrap().with_kind(AttributeKind::NormalisedRows);
        let model = scaled(&mut draw, attributes).with_kind(graph.kind());
        let flips = 1 + draw.below(6) as u32;
        let protected = (0..draw.below(3)).map(|_| AttributeId(draw.below(attributes) as u32)).collect::<Vec<_>>();
        let budget = Budget::new(flips, LocalBudget::Count(flips)).protect_attributes(protected);
        let tiny = Tiny { graph, model, budget };
        let network = Network::new(&tiny.graph, &tiny.model, tiny.limits()).unwrap();
        let region = Region::new(&network, &Rows::of(&network.matrices), NodeId(0));
        let base = Base::clean(&network, &region, network.limits.global());
        let pair = pair(&mut draw, &tiny.model);
        let linear = Linearised::new(&base, pair, &slopes(&mut draw, &network, &region)).unwrap();
        check_rows(&tiny, &base, &linear, pair);
    }
}

/// The bound of all sets of a base point is below their margins, whatever bound is wanted, and where it is alone there are no others.
#[test]
fn bounds_are_below_the_margins_of_all_sets() {
    let (mut reached, mut alone) = (0, 0);
    with_problems(200, |draw, tiny, network, region| {
        let pair = pair(draw, &tiny.model);
        let sets = tiny.sets();
        let clean = Base::clean(network, region, network.limits.global());
        let mut bases = vec![(clean.clone(), Vec::new(), Vec::new())];
        let mut without = Vec::new();
        let mut rest = clean;
        for flip in (0..3).filter_map(|_| draw.of(&sets).first().copied()) {
            let Some(with) = rest.with(flip) else { continue };
            bases.push((with, vec![flip], without.clone()));
            rest.without.insert((flip.node, flip.attribute));
            without.push(flip);
            bases.push((rest.clone(), Vec::new(), without.clone()));
        }
        for (base, with, without) in &bases {
            let is_same = |a: &Flip, b: &Flip| (a.node, a.attribute) == (b.node, b.attribute);
            let has = |set: &Vec<Flip>, flip: &Flip| set.iter().any(|other| is_same(other, flip));
            let is_in =
                |set: &&Vec<Flip>| with.iter().all(|flip| has(set, flip)) && !without.iter().any(|flip| has(set, flip));
            let margins = sets.iter().filter(is_in).map(|set| tiny.margin(set, region.target(), pair));
            let margins: Vec<f64> = margins.collect();
            let least = margins.iter().copied().fold(f64::INFINITY, f64::min);
            let slopes = slopes(draw, network, region);
            let linear = Linearised::new(base, pair, &slopes).unwrap();
            for wanted in [least - 1.0, least - 0.01, least * 0.9, least + 1e-6, least + 1.0, 0.0] {
                let bound = selection::lower_bound(base, &linear, wanted);
                assert!(
                    bound <= least + ROUNDING,
                    "{bound} for {wanted}, not {least}: {with:?}, {without:?}, {tiny:?}"
                );
                reached += usize::from(bound > wanted);
            }
            if selection::is_alone(base) && base.freed().is_empty() {
                let most = margins.into_iter().fold(f64::NEG_INFINITY, f64::max);
                assert!(most - least < ROUNDING, "{with:?}, {without:?}, {tiny:?}");
                alone += 1;
            }
        }
    });
    assert!(reached > 2_500 && alone > 50, "{reached}, {alone}");
}

/// A larger graph, of which a node may not see all, and a budget of deletions.
fn drawn_with_deletions(draw: &mut Draw) -> Tiny {
    let (nodes, attributes) = (7, 2);
    let count = 4 + draw.below(6);
    let edges: Vec<_> = (0..count).map(|_| (draw.below(7) as u32, draw.below(7) as u32)).collect();
    let ones: Vec<_> = (0..nodes).flat_map(|n| [(n, 0), (n, 1)]).filter(|_| draw.one_in(2)).collect();
    let options = GraphOptions::new().keep_self_loops(draw.one_in(3));
    let graph = Graph::with_options(nodes as usize, attributes, &edges, &ones, options).unwrap();
    let linear = Propagation::Polynomial { of: Box::new(Propagation::SymmetricGcn), coefficients: vec![0.5, -1.0] };
    let propagations = vec![Propagation::SymmetricGcn, Propagation::RowMean, Propagation::Adjacency, linear];
    let model = model(draw, attributes);
    let propagations = (0..model.propagations().len()).map(|_| draw.of(&propagations)).collect();
    let mut budget = EdgeBudget::new(1 + draw.below(3) as u32).keep_one(draw.one_in(3));
    if draw.one_in(2) {
        budget = budget.at_node(1 + draw.below(2) as u32);
    }
    if draw.one_in(3) {
        let edge = graph.adjacency().iter().find_map(|(a, b)| Edge::between(NodeId(a), NodeId(b)));
        budget = budget.protect(edge);
    }
    let budget = Budget::new(0, LocalBudget::Count(0)).delete_edges(budget);
    Tiny { graph, model: model.with_propagations(propagations).unwrap(), budget }
}

/// Lemma 68: of all admissible sets one is gone through that leaves the target as it is left, and what is computed of it is that of the
/// graph without these edges.
#[test]
fn sets_of_deletions_stand_for_all_others() {
    let mut fewer = 0;
    for seed in 0..300 {
        let mut draw = Draw::new(seed);
        let tiny = drawn_with_deletions(&mut draw);
        let network = Network::new(&tiny.graph, &tiny.model, tiny.limits()).unwrap();
        let node = NodeId(draw.below(tiny.graph.nodes()) as u32);
        let region = Region::new(&network, &Rows::of(&network.matrices), node);
        let base = Base::clean(&network, &region, 0);
        let limits = network.limits.edges().unwrap();
        let linked = Linked::new(&base, limits);
        let edges = tiny.graph.adjacency().iter().filter(|(a, b)| a < b);
        let mut all: Vec<Vec<Edge>> = vec![Vec::new()];
        let mut edges: Vec<Edge> = edges.filter_map(|(a, b)| Edge::between(NodeId(a), NodeId(b))).collect();
        edges.sort_unstable();
        for edge in edges {
            let larger: Vec<_> = all.iter().map(|set| [&set[..], &[edge]].concat()).collect();
            all.extend(larger.into_iter().filter(|set| limits.admits(&tiny.graph, set)));
        }
        let logits = |set: &Vec<Edge>| {
            let left = Tiny {
                graph: tiny.graph.without_edges(set).unwrap(),
                model: tiny.model.clone(),
                budget: tiny.budget.clone(),
            };
            left.logits(&[], node)
        };
        check_robust(&tiny, node, &all.iter().map(logits).collect::<Vec<_>>());
        for most in 0..=limits.global() {
            let (sets, are_all) = linked.sets(most);
            assert!(are_all && sets[0].is_empty());
            let mut tried = Vec::new();
            for set in &sets {
                let mut sorted = set.clone();
                sorted.sort_unstable();
                let is_new =
                    all.contains(&sorted) && set.len() <= most && !tried.iter().any(|(other, _)| other == &set);
                assert!(is_new, "{set:?}, {tiny:?}");
                let rows = linked.without(set).unwrap();
                let expected = logits(set);
                let left = Region::new(&network, &rows, node);
                let of_region = Base::clean(&network, &left, 0).z.pop().unwrap();
                for intervals in [&linked.logits(&rows), &of_region[0]] {
                    assert_eq!(intervals.len(), expected.len());
                    let is_close =
                        |(x, expected): (&Interval, &f64)| x.hi - x.lo < ROUNDING && (x.lo - expected).abs() < ROUNDING;
                    assert!(intervals.iter().zip(&expected).all(is_close), "{set:?}, {tiny:?}");
                }
                tried.push((set, expected));
            }
            let of_size: Vec<_> = all.iter().filter(|set| set.len() <= most).collect();
            for set in &of_size {
                let left = logits(set);
                let is_same =
                    |(_, other): &(_, Vec<f64>)| left.iter().zip(other).all(|(a, b)| (a - b).abs() < ROUNDING);
                assert!(tried.iter().any(is_same), "nothing stands for {set:?} at {node:?}: {tiny:?}");
            }
            fewer += of_size.len() - sets.len();
        }
    }
    assert!(fewer > 1_500, "{fewer}");
}

/// Node 0 reads 1 and 2 and their degrees. Nodes 3 and 4, which it does not see, may lose one edge each, so that 1–3 and 2–3 go not
/// together, and 1–3 does not stand for 1–4.
#[test]
fn edges_whose_other_ends_are_limited_do_not_stand_for_each_other() {
    let edges = [(0, 1), (0, 2), (1, 3), (2, 3), (1, 4), (4, 5)];
    for loops in [&[][..], &[(3, 3), (4, 4)]] {
        let options = GraphOptions::new().keep_self_loops(true);
        let graph = Graph::with_options(6, 1, &[&edges, loops].concat(), &[(1, 0), (2, 0)], options).unwrap();
        let layer = (Matrix::from_values(1, 2, vec![-1.0, 0.0]), vec![0.72, 0.0]);
        let model = Model::gcn(vec![layer], Propagation::SymmetricGcn).unwrap();
        let budget = Budget::new(0, LocalBudget::Count(0)).delete_edges(EdgeBudget::new(2).at_node(1));
        let tiny = Tiny { graph, model, budget };
        let edge = |a, b| Edge::between(NodeId(a), NodeId(b)).unwrap();
        let without = Rejection::Unlinked(ClassId(1), vec![edge(1, 4), edge(2, 3)]);
        assert_eq!(judged(&checker(&tiny), Bound::Positive), rejected(without), "{loops:?}");
    }
}

/// With flips beside deletions, what is not shown is not laid to the deletions.
#[test]
fn flips_beside_deletions_are_unproven() {
    let graph = Graph::new(2, 1, &[(0, 1)], &[(0, 0), (1, 0)]).unwrap();
    let layer = (Matrix::from_values(1, 2, vec![1.0, 0.0]), vec![0.0, 0.25]);
    let model = Model::gcn(vec![layer], Propagation::SymmetricGcn).unwrap();
    let judged_with = |flips: u32| {
        let budget = Budget::new(flips, LocalBudget::Count(2)).delete_edges(EdgeBudget::new(1));
        let tiny = Tiny { graph: graph.clone(), model: model.clone(), budget };
        judged(&checker(&tiny), Bound::AtLeast(0.3))
    };
    assert_eq!(judged_with(0), Ok(()));
    assert_eq!(judged_with(1), rejected(Rejection::Unproven(ClassId(1))));
    let layer = (Matrix::from_values(1, 2, vec![1.0, 0.0]), vec![0.0, 1.0]);
    let model = Model::gcn(vec![layer], Propagation::SymmetricGcn).unwrap();
    let tied = Tiny { graph, model, budget: Budget::new(0, 0.into()).delete_edges(EdgeBudget::new(1)) };
    assert_eq!(judged(&checker(&tied), Bound::Positive), rejected(Rejection::Unproven(ClassId(1))), "with all edges");
}

/// Robust verdicts are accepted just if they are right, given the logits that all sets of deletions leave.
fn check_robust(tiny: &Tiny, node: NodeId, logits: &[Vec<f64>]) {
    let y = (0..tiny.model.classes()).fold(0, |y, k| if logits[0][k] > logits[0][y] { k } else { y });
    let others = || (0..tiny.model.classes()).filter(|&k| k != y);
    let least = logits.iter().flat_map(|of| others().map(|k| of[y] - of[k])).fold(f64::INFINITY, f64::min);
    if least.abs() < 1e-6 {
        return;
    }
    for (asked, said) in [(0.0, 0.0), (0.0, 0.9), (0.0, 1.1), (0.5, 0.5), (0.9, 0.95), (0.9, 1.05), (1.1, 1.1)] {
        let (asked, said) = (asked * least.abs(), said * least.abs());
        let bound = if said == 0.0 { Bound::Positive } else { Bound::AtLeast(said) };
        let margins = (0..tiny.model.classes()).map(|k| (k != y).then_some(bound)).collect();
        let class = ClassId(y as u32);
        let certificate = Certificate::new(node, class, class, Evidence::Robust, margins);
        let checker = checker(tiny).asking(asked, Arithmetic::Exact).unwrap();
        let judged = checker.certificate(&certificate);
        assert_eq!(judged.is_ok(), least > asked && least >= said, "{judged:?}, {asked}, {said}, {least}: {tiny:?}");
    }
}

/// A node with four ones of 0.25 each against 0.625: two fewer are too few.
fn four_ones(global: u32) -> Tiny {
    let graph = Graph::new(1, 4, &[], &[(0, 0), (0, 1), (0, 2), (0, 3)]).unwrap();
    let layer = (Matrix::from_values(4, 2, [0.25, 0.0].repeat(4)), vec![0.0, 0.625]);
    let model = Model::gcn(vec![layer], Propagation::Identity).unwrap();
    Tiny { graph, model, budget: Budget::new(global, LocalBudget::Count(4)) }
}

fn removals(count: u32) -> Vec<Flip> {
    (0..count).map(|d| Flip { node: NodeId(0), attribute: AttributeId(d), to: 0.0 }).collect()
}

fn checker(of: &Tiny) -> Checker<'_> {
    Checker::new(&of.graph, &of.model, of.limits(), TargetClass::Predicted).unwrap()
}

fn rejected(rejection: Rejection) -> Result<(), NotAccepted> {
    Err(rejection.into())
}

/// What the checker says to a robust verdict with this bound.
fn judged(checker: &Checker, said: Bound) -> Result<(), NotAccepted> {
    let margins = vec![None, Some(said)];
    checker.certificate(&Certificate::new(NodeId(0), ClassId(0), ClassId(0), Evidence::Robust, margins))
}

#[test]
fn robust_verdicts_say_what_is_asked_for() {
    let (k, tiny) = (ClassId(1), four_ones(1));
    assert_eq!(judged(&checker(&tiny), Bound::Positive), Ok(()));
    assert_eq!(judged(&checker(&tiny), Bound::AtLeast(0.124)), Ok(()));
    // The margin is right, but not what a robust verdict needs.
    assert_eq!(judged(&checker(&tiny), Bound::AtLeast(0.0)), rejected(Rejection::Unproven(k)));
    assert_eq!(judged(&checker(&tiny), Bound::Unknown), rejected(Rejection::Unproven(k)));
    assert_eq!(judged(&checker(&tiny), Bound::AtLeast(0.126)), rejected(Rejection::Unproven(k)));
    assert_eq!(judged(&checker(&tiny), Bound::AtLeast(0.376)), rejected(Rejection::Overclaimed(k)));
    assert_eq!(judged(&checker(&four_ones(2)), Bound::Positive), rejected(Rejection::Unproven(k)));
    let asking = |margin| checker(&tiny).asking(margin, Arithmetic::Exact).unwrap();
    assert_eq!(judged(&asking(0.12), Bound::AtLeast(0.12)), Ok(()));
    assert_eq!(
        judged(&asking(0.12), Bound::Positive),
        rejected(Rejection::Unproven(k)),
        "0 is less than what is asked for"
    );
    assert_eq!(judged(&asking(0.125), Bound::AtLeast(0.125)), rejected(Rejection::Unproven(k)), "it is not more");
}

#[test]
fn radii_fit_their_witnesses() {
    let tiny = four_ones(3);
    let judged = |up_to: Option<u32>, from: Option<u32>, exact: bool, flips: Option<u32>, margin: f64| {
        let mut found = Found::of_class(Some(ClassId(0)));
        (found.nonrobust_from, found.exact) = (from, exact);
        found.witness = flips.map(|count| Witness::new(removals(count), ClassId(1), margin));
        checker(&tiny).radius(&Radius::new(NodeId(0), &tiny.graph, up_to, Some(found)))
    };
    let wrong = Err(NotAccepted::from(Rejection::Radius));
    assert_eq!(judged(Some(1), Some(2), true, Some(2), -0.125), Ok(()));
    assert_eq!(judged(Some(1), Some(3), false, Some(3), -0.375), Ok(()), "2 is left open");
    assert_eq!(judged(Some(1), None, false, None, 0.0), Ok(()));
    assert_eq!(judged(Some(1), Some(2), true, Some(3), -0.375), wrong, "more flips than it says");
    assert_eq!(judged(Some(1), Some(3), false, Some(2), -0.125), wrong, "fewer flips than it says");
    assert_eq!(judged(Some(1), Some(2), true, None, 0.0), wrong, "no witness");
    assert_eq!(judged(Some(1), None, false, Some(2), -0.125), wrong, "a witness of nothing");
    assert_eq!(judged(Some(1), Some(2), false, Some(2), -0.125), wrong, "nothing is left open");
    assert_eq!(judged(Some(1), Some(3), true, Some(3), -0.375), wrong, "2 is left open");
    assert_eq!(judged(Some(4), None, true, None, 0.0), wrong, "more than the budget");
    let scanned = |up_to| checker(&tiny).radius(&Radius::new(NodeId(0), &tiny.graph, Some(up_to), None));
    assert_eq!((scanned(0), scanned(1)), (Ok(()), Ok(())));
    assert_eq!(scanned(2), rejected(Rejection::Unproven(ClassId(1))));
    assert_eq!(judged(Some(2), Some(3), true, Some(3), -0.375), Err(Rejection::Unproven(ClassId(1)).into()));
    assert_eq!(judged(Some(1), Some(2), true, Some(2), -0.126), Err(Rejection::Witness(ClassId(1)).into()));
}

#[test]
fn what_there_is_not_is_rejected() {
    let tiny = four_ones(2);
    let robust = |node, class, predicted| {
        Certificate::new(
            NodeId(node),
            ClassId(class),
            ClassId(predicted),
            Evidence::Robust,
            vec![None, Some(Bound::Positive)],
        )
    };
    let judged = |certificate: &Certificate| checker(&tiny).certificate(certificate);
    assert_eq!(judged(&robust(1, 0, 0)), rejected(Rejection::Unknown));
    assert_eq!(judged(&robust(0, 2, 0)), rejected(Rejection::Unknown));
    assert_eq!(judged(&robust(0, 0, 2)), rejected(Rejection::Unknown));
    assert_eq!(judged(&robust(0, 1, 0)), rejected(Rejection::Class(ClassId(1))));
    assert_eq!(judged(&robust(0, 1, 1)), rejected(Rejection::Class(ClassId(1))));
    let mut labelled = robust(0, 0, 0);
    labelled.label = Some(ClassId(0));
    assert_eq!(judged(&labelled), rejected(Rejection::Label));
    for (class, expected) in [(0, Rejection::Proof), (1, Rejection::Margin(ClassId(1))), (2, Rejection::Proof)] {
        let mut proven = robust(0, 0, 0);
        proven.proofs = Some(Proofs::from([(ClassId(class), Proof::default())]));
        assert_eq!(judged(&proven), rejected(expected));
    }
    let mut missing = robust(0, 0, 0);
    missing.margins = vec![None, None];
    assert_eq!(judged(&missing), rejected(Rejection::Missing(ClassId(1))));
    let of_witness = |witness: Witness| {
        let margins = vec![None, Some(Bound::Unknown)];
        judged(&Certificate::new(NodeId(0), ClassId(0), ClassId(0), Evidence::Witness(witness), margins))
    };
    let overclaimed = |said: f64| {
        let evidence = Evidence::Witness(Witness::new(removals(2), ClassId(1), -0.125));
        let margins = vec![None, Some(Bound::AtLeast(said))];
        judged(&Certificate::new(NodeId(0), ClassId(0), ClassId(0), evidence, margins))
    };
    assert_eq!(overclaimed(-0.125), Ok(()));
    assert_eq!(overclaimed(-0.124), rejected(Rejection::Overclaimed(ClassId(1))), "the witness has less");
    let edge = Edge::between(NodeId(0), NodeId(1)).unwrap();
    assert_eq!(of_witness(Witness::new(removals(2), ClassId(1), -0.125)), Ok(()));
    assert_eq!(of_witness(Witness::new(removals(2), ClassId(1), 0.0)), Ok(()));
    assert_eq!(of_witness(Witness::new(removals(1), ClassId(1), 0.0)), rejected(Rejection::Witness(ClassId(1))));
    assert_eq!(of_witness(Witness::new(removals(1), ClassId(1), 0.125)), rejected(Rejection::Witness(ClassId(1))));
    assert_eq!(of_witness(Witness::new(removals(2), ClassId(0), 0.0)), rejected(Rejection::Unknown));
    assert_eq!(of_witness(Witness::new(removals(2), ClassId(2), 0.0)), rejected(Rejection::Unknown));
    assert_eq!(of_witness(Witness::new(removals(3), ClassId(1), -0.375)), rejected(Rejection::Budget));
    let with_edge = Witness::new(removals(2), ClassId(1), -0.125).with_edges(vec![edge]);
    assert_eq!(of_witness(with_edge), rejected(Rejection::Budget), "no edge may be deleted");
    assert_eq!(checker(&tiny).logit_errors(NodeId(1)), Err(Rejection::Unknown));
    assert_eq!(checker(&tiny).logit_errors(NodeId(0)), Ok(None));
}

/// Neither intervals without width nor exact numbers make a tie robust.
#[test]
fn ties_are_not_robust() {
    for bias in [0.0, 1.0] {
        let graph = Graph::new(1, 1, &[], &[(0, 0)]).unwrap();
        let model = Model::gcn(vec![(Matrix::zeros(1, 2), vec![bias; 2])], Propagation::Identity).unwrap();
        for global in [0, 1] {
            let tiny =
                Tiny { graph: graph.clone(), model: model.clone(), budget: Budget::new(global, LocalBudget::Count(1)) };
            assert_eq!(judged(&checker(&tiny), Bound::Positive), rejected(Rejection::Unproven(ClassId(1))));
        }
    }
}

/// What both logits may be off by is added to what is asked for.
#[test]
fn errors_of_both_logits_are_asked_for() {
    let tiny = four_ones(0);
    let checker = |margin| checker(&tiny).asking(margin, Arithmetic::Bf16).unwrap();
    let errors = checker(0.0).logit_errors(NodeId(0)).unwrap().unwrap();
    assert!(errors.len() == 2 && errors.iter().all(|&error| error > 0.01), "{errors:?}");
    let asked = |part: f64| 0.375 - part * (errors[0] + errors[1]);
    assert_eq!(judged(&checker(asked(1.01)), Bound::AtLeast(asked(1.01))), Ok(()));
    assert_eq!(judged(&checker(asked(0.99)), Bound::AtLeast(asked(0.99))), rejected(Rejection::Unproven(ClassId(1))));
}

#[test]
fn slopes_are_of_units_and_below_their_activations() {
    let graph = Graph::new(2, 1, &[], &[(0, 0)]).unwrap();
    let layer = |inputs, units| (Matrix::zeros(inputs, units), vec![1.0; units]);
    let model = Model::gcn(vec![layer(1, 3), layer(3, 2)], Propagation::Identity).unwrap();
    let network = Network::new(&graph, &model, Budget::new(0, 0.into()).limits(&graph).unwrap()).unwrap();
    let region = Region::new(&network, &Rows::of(&network.matrices), NodeId(0));
    let base = Base::clean(&network, &region, 0);
    let is_taken = |layer, node, unit, slope| {
        let slopes = [UnitSlope { layer, node: NodeId(node), unit, slope }];
        Linearised::new(&base, (ClassId(0), ClassId(1)), &slopes).is_some()
    };
    assert!(is_taken(0, 0, 2, 1.0) && is_taken(0, 0, 0, 0.0));
    assert!(!is_taken(0, 0, 3, 0.5), "there are three units");
    assert!(!is_taken(0, 1, 0, 0.5), "the target does not see node 1");
    assert!(!is_taken(2, 0, 0, 0.5), "there are two layers");
    assert!(!is_taken(0, 0, 0, 1.01) && !is_taken(0, 0, 0, -0.01) && !is_taken(0, 0, 0, f64::NAN));
}

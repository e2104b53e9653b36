//! The `tight` and the `complete` engine, and radii, attacked with numbers that are hard on floats: what they say is held
//! against exact arithmetic over every admissible set of flips.

use std::time::Duration;

use nodeproof::{
    Activation, Bound, Budget, Certificate, Certifier, ClassId, Engine, Evidence, Flip, Graph, Layer, LocalBudget,
    Matrix, Model, NodeId, Propagation, Radius, Source, SparseMatrix, Term, Verdict,
};
use proptest::prelude::*;

use crate::common::exact::{Dyadic, Number};
use crate::common::nasty::{decimal, tied, units, with_numbers};
use crate::common::seed::config;
use crate::common::{Dense, Problem, Sizes, Spread, TINY, World, margins, problems, with_normalised_rows};

/// Most sets that are tried for one problem in exact arithmetic.
const SETS: usize = 60;
const ENGINES: [Engine; 2] = [Engine::Tight, Engine::Complete];

fn dense(inputs: usize, outputs: usize, weight: &[f64], bias: &[f64]) -> Dense {
    Dense { inputs, outputs, weight: weight.to_vec(), bias: bias.to_vec() }
}

/// Holds everything that the engines say of `problem` against exact arithmetic.
fn check(problem: &Problem) -> Vec<Certificate> {
    check_engines(problem, &ENGINES)
}

/// Holds everything that these engines say of `problem` against exact arithmetic; the certificates of the last one.
fn check_engines(problem: &Problem, engines: &[Engine]) -> Vec<Certificate> {
    let (problem, sets) = problem.clone().enumerable(SETS);
    let world = problem.world::<Dyadic>();
    let mut all = Vec::new();
    for &engine in engines {
        let certificates = problem.certify_with(engine, Default::default());
        let classes: Vec<_> = certificates.iter().map(|certificate| certificate.class).collect();
        let smallest = world.smallest_margins(&sets, &classes);
        for (certificate, exact) in certificates.iter().zip(&smallest) {
            check_certificate(&problem, &world, &sets, exact, certificate);
            let decided = !matches!(certificate.evidence, Evidence::Open { .. });
            let overflowed = certificate.margins.iter().flatten().any(|&margin| margin == Bound::Unknown);
            assert!(decided || overflowed || engine != Engine::Complete, "{:?} is left open", certificate.evidence);
        }
        all = certificates;
    }
    all
}

fn check_certificate(
    problem: &Problem,
    world: &World<Dyadic>,
    sets: &[Vec<Flip>],
    exact: &[Dyadic],
    certificate: &Certificate,
) {
    let (node, class, zero) = (certificate.node.index(), certificate.class, Dyadic::of(0.0));
    let holds = |k: usize, lower: Bound| {
        world.is_at_least(&exact[k], lower.value()) && (exact[k] > zero || !lower.is_positive())
    };
    let others: Vec<usize> = (0..exact.len()).filter(|&k| k != class.index()).collect();
    for &k in &others {
        let lower = certificate.margins[k].unwrap();
        assert!(holds(k, lower), "node {node}, class {k}: {lower:?} is not a lower bound ({:?})", certificate.evidence);
    }
    match &certificate.evidence {
        Evidence::Robust => {
            assert!(certificate.margin().is_positive());
            for &k in &others {
                assert!(exact[k] > zero, "node {node} is not robust");
                assert!(holds(k, certificate.margin()), "node {node}: {:?} is not a lower bound", certificate.margin());
            }
        }
        Evidence::Witness(witness) => {
            let limits = problem.budget().limits(&problem.graph()).unwrap();
            assert!(limits.admits(&problem.graph(), &witness.flips), "{witness:?} is not admissible");
            assert!(sets.contains(&witness.flips), "{witness:?} is not admissible, by the problem's description");
            let with = &margins(&world.logits(&witness.flips)[node], class)[witness.class.index()];
            assert_ne!(witness.class, class);
            let tie = certificate.engine != Engine::Fast && witness.margin == 0.0;
            assert!(*with < zero || (tie && *with == zero), "{witness:?} does not flip node {node}");
            assert!(witness.margin < 0.0 || tie, "{witness:?} is no witness");
            assert!(world.is_at_most(with, witness.margin), "{witness:?} states too small a margin");
        }
        Evidence::Open { lower, upper, .. } => {
            assert_eq!(*lower, certificate.margin());
            let upper = upper.unwrap_or(f64::INFINITY);
            assert!(
                others.iter().any(|&k| world.is_at_most(&exact[k], upper)),
                "node {node}: {upper} is not an upper bound"
            );
        }
        other => panic!("unknown verdict {other:?}"),
    }
}

/// 2 to the power of `exponent`.
fn two(exponent: i32) -> f64 {
    2f64.powi(exponent)
}

/// The same problem, of one hidden layer, with every margin scaled by a power of two, and one unit more that moves by
/// `ballast` and that no class looks at.
fn scaled(mut problem: Problem, first: i32, last: i32, ballast: f64) -> Problem {
    let [hidden, output] = &mut problem.layers[..] else { panic!("one hidden layer") };
    let mut weight = Vec::new();
    for row in hidden.weight.chunks(hidden.outputs) {
        weight.extend(row.iter().map(|w| w * two(first)));
        weight.push(ballast);
    }
    hidden.weight = weight;
    hidden.bias.iter_mut().for_each(|b| *b *= two(first));
    hidden.bias.push(0.0);
    hidden.outputs += 1;
    output.weight.iter_mut().for_each(|w| *w *= two(last));
    output.weight.extend(vec![0.0; output.outputs]);
    output.bias.iter_mut().for_each(|b| *b *= two(first + last));
    output.inputs += 1;
    problem
}

proptest! {
    #![proptest_config(config(1500))]

    #[test]
    fn decimals(problem in with_numbers(decimal(-1..=1), decimal(0..=0))) {
        check(&problem);
    }

    #[test]
    fn mixed_magnitudes(problem in with_numbers(decimal(-8..=8), decimal(-8..=8))) {
        check(&problem);
    }

    #[test]
    fn exact_ties(problem in tied()) {
        check(&problem);
    }

    #[test]
    fn where_singles_end(problem in with_numbers(decimal(-40..=40), decimal(-20..=20))) {
        check(&problem);
    }

    #[test]
    fn tiny_numbers(problem in with_numbers(decimal(-323..=-300), decimal(-10..=0))) {
        check(&problem);
    }

    #[test]
    fn the_smallest_numbers(problem in with_numbers(units(), decimal(-1..=0))) {
        check(&problem);
    }

    #[test]
    fn tiny_weights_and_huge_factors(problem in with_numbers(decimal(-300..=-90), decimal(90..=200))) {
        check(&problem);
    }

    #[test]
    fn numbers_of_every_size(problem in with_numbers(decimal(-323..=300), decimal(-323..=300))) {
        check(&problem);
    }

    /// Where the ones of rows are divided by their number, all of that once more.
    #[test]
    fn normalised_rows(
        problem in with_normalised_rows(prop_oneof![
            with_numbers(decimal(-1..=1), decimal(0..=0)),
            with_numbers(decimal(-8..=8), decimal(-8..=8)),
            tied(),
            with_numbers(decimal(-40..=40), decimal(-20..=20)),
            with_numbers(decimal(-323..=-300), decimal(-10..=0)),
            with_numbers(units(), decimal(-1..=0)),
            with_numbers(decimal(-300..=-90), decimal(90..=200)),
            with_numbers(decimal(-323..=300), decimal(-323..=300)),
        ])
    ) {
        check_engines(&problem, &Engine::ALL);
    }

    /// Large biases that cancel, beside margins of next to nothing.
    #[test]
    fn large_biases_cancel(problem in with_numbers(decimal(-1..=1), decimal(0..=0)), size in 8..14, unit in 0usize..4) {
        let mut problem = problem;
        let last = problem.layers.len() - 1;
        let huge = 10f64.powi(size);
        problem.layers[last].bias.iter_mut().for_each(|bias| *bias += huge);
        if last > 0 {
            let unit = unit % problem.layers[0].outputs;
            problem.layers[0].bias[unit] += huge;
        }
        check(&problem);
    }

    /// Scales by powers of two change no verdict, however little singles hold of the numbers.
    #[test]
    fn scales_do_not_matter(
        problem in problems(Sizes { hidden_layers: (1, 1), ..TINY }),
        (first, last) in (-110..-90, 30..48), ballast in 40..50,
    ) {
        let (problem, _) = problem.enumerable(400);
        let scaled = scaled(problem.clone(), first, last, two(ballast));
        for engine in [Engine::Fast, Engine::Complete] {
            let [expected, found] = [&problem, &scaled].map(|problem| problem.certify_with(engine, Default::default()));
            for (expected, found) in expected.iter().zip(&found) {
                prop_assert_eq!(expected.verdict().name(), found.verdict().name());
                let margins = expected.margins.iter().flatten().zip(found.margins.iter().flatten());
                // Others stop at the first bound that is positive, which may be another one.
                for (&expected, &found) in margins.filter(|_| engine == Engine::Fast) {
                    let (expected, found) = (expected.value(), found.value() * two(-first - last));
                    prop_assert!((found - expected).abs() <= 1e-9 * (1.0 + expected.abs()), "{} {}", found, expected);
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(config(600))]

    /// Radii of every engine against the smallest set of flips that does it.
    #[test]
    fn radii_are_the_sizes_of_smallest_sets(
        problem in prop_oneof![3 => problems(TINY), 1 => with_normalised_rows(problems(TINY))],
        most in 0u32..5,
    ) {
        let (problem, sets) = Problem { global: most, ..problem }.enumerable(800);
        check_radii(&problem, &sets);
    }
}

/// The sizes of the smallest sets that change the class of each node, and that bring it to a tie at least.
fn smallest_sets(problem: &Problem, sets: &[Vec<Flip>], classes: &[ClassId]) -> Vec<[Option<u32>; 2]> {
    let (floats, exact, scales) = (problem.world::<f64>(), problem.world::<Dyadic>(), problem.scales());
    let mut smallest = vec![[None; 2]; problem.nodes];
    for flips in sets {
        let logits = floats.logits(flips);
        let mut exactly = None;
        for (node, found) in smallest.iter_mut().enumerate() {
            let class = classes[node];
            let rivals = |margins: Vec<f64>| {
                (0..margins.len()).filter(|&k| k != class.index()).map(|k| margins[k]).fold(f64::INFINITY, f64::min)
            };
            let margin = rivals(margins(&logits[node], class));
            let (overtaken, tied) = if margin.abs() > 1e-10 * scales[node] {
                (margin < 0.0, margin < 0.0)
            } else {
                let logits = &exactly.get_or_insert_with(|| exact.logits(flips))[node];
                let margins = margins(logits, class);
                let any =
                    |test: fn(&Dyadic) -> bool| (0..margins.len()).any(|k| k != class.index() && test(&margins[k]));
                (any(|margin| *margin < Dyadic::of(0.0)), any(|margin| *margin <= Dyadic::of(0.0)))
            };
            let size = flips.len() as u32;
            for (found, happens) in found.iter_mut().zip([overtaken, tied]) {
                if happens && found.is_none_or(|known| size < known) {
                    *found = Some(size);
                }
            }
        }
    }
    smallest
}

fn check_radii(problem: &Problem, sets: &[Vec<Flip>]) {
    let (graph, model) = (problem.graph(), problem.model());
    let nodes: Vec<NodeId> = graph.node_ids().collect();
    for engine in Engine::ALL {
        let certifier = Certifier::new(&graph, &model).unwrap().budget(problem.budget()).engine(engine).threads(1);
        let certifier = certifier.target_class(problem.target_class());
        let radii: Vec<Radius> = certifier.radii(&nodes, problem.global).unwrap();
        let classes: Vec<ClassId> = radii.iter().map(|radius| radius.class().unwrap()).collect();
        let truth = smallest_sets(problem, sets, &classes);
        let world = problem.world::<Dyadic>();
        for (radius, [overtaken, tied]) in radii.iter().zip(truth) {
            let withstands = tied.map_or(Some(problem.global), |size| size.checked_sub(1));
            assert!(radius.robust_up_to <= withstands, "{radius:?}: {tied:?}");
            let falls = if engine == Engine::Fast { overtaken } else { tied };
            assert!(radius.nonrobust_from().is_none_or(|from| falls.is_some_and(|size| from >= size)), "{radius:?}");
            if engine == Engine::Complete {
                assert!(radius.is_exact(), "{radius:?}");
                assert_eq!((radius.robust_up_to, radius.nonrobust_from()), (withstands, tied));
            }
            assert_eq!(radius.witness().is_some(), radius.nonrobust_from().is_some());
            if let Some(witness) = radius.witness() {
                assert_eq!(Some(witness.flips.len() as u32), radius.nonrobust_from(), "{radius:?}");
                assert!(sets.contains(&witness.flips), "{witness:?} is not admissible");
                let logits = &world.logits(&witness.flips)[radius.node.index()];
                let margin = &margins(logits, radius.class().unwrap())[witness.class.index()];
                assert!(world.is_at_most(margin, witness.margin) && witness.margin <= 0.0, "{radius:?}");
            }
        }
    }
}

proptest! {
    #![proptest_config(config(300))]

    #[test]
    fn threads_and_limits_of_no_time(problem in problems(TINY)) {
        let (problem, sets) = problem.enumerable(SETS);
        let (graph, model) = (problem.graph(), problem.model());
        let nodes: Vec<NodeId> = graph.node_ids().collect();
        let certifier = |threads: usize| {
            let certifier = Certifier::new(&graph, &model).unwrap().budget(problem.budget()).threads(threads);
            certifier.target_class(problem.target_class()).engine(Engine::Complete)
        };
        let certify = |certifier: Certifier| {
            let mut certificates = certifier.certify(&nodes).unwrap();
            certificates.iter_mut().for_each(|certificate| certificate.time = None);
            certificates
        };
        let one = certify(certifier(1));
        prop_assert_eq!(&one, &certify(certifier(3)));
        let classes: Vec<_> = one.iter().map(|certificate| certificate.class).collect();
        let world = problem.world::<Dyadic>();
        let smallest = world.smallest_margins(&sets, &classes);
        for hurried in [certifier(1).time_limit(Duration::ZERO), certifier(2).total_time_limit(Duration::ZERO)] {
            for (certificate, exact) in certify(hurried).iter().zip(&smallest) {
                check_certificate(&problem, &world, &sets, exact, certificate);
            }
        }
    }
}

/// Two factors of the propagation whose product underflows, and a weight that makes up for it: the flip moves the margin
/// by 10⁻¹⁷⁰ · 10⁻¹⁷⁰ · 10²⁵⁰, far more than the bias.
#[test]
fn factors_whose_product_underflows_count() {
    for ones in [vec![], vec![(0, 0)]] {
        let (sign, bias) = if ones.is_empty() { (1.0, 0.0) } else { (-1.0, 1e80) };
        let output = dense(1, 2, &[0.0, 1.0], &[1e-120, 0.0]);
        let first = dense(2, 1, &[sign * 1e250, sign * 1e200], &[bias]);
        let problem = Problem {
            spread: Spread::Custom(vec![(0, 0, 1e-170)]),
            global: 1,
            ones,
            ..Problem::one_node(2, vec![first.clone(), output.clone()])
        };
        check(&problem);
        let between = dense(1, 1, &[1e170], &[0.0]);
        check(&Problem { layers: vec![first, between, output], ..problem });
    }
}

/// Magnitudes of two propagations and two layers of weights whose products underflow in one order or another, though what a flip does to
/// the margin does not: attribute 1 takes the class its lead.
#[test]
fn products_that_underflow_in_any_order_are_not_lost() {
    let power = |exponent: i32| 2f64.powi(exponent / 2) * 2f64.powi(exponent - exponent / 2);
    let graph = Graph::new(1, 2, &[], &[]).unwrap();
    let mut cases = vec![(183, -208, -587, -948), (-500, 0, 0, -590), (-500, -100, 0, -700), (-60, 0, 0, -1020)];
    cases.extend([(-250, 0, 0, -850), (300, -300, -300, -900), (0, 0, 0, 0), (0, -900, 0, -900)]);
    for (first, unit, second, logit) in cases {
        for is_chain in [true, false] {
            let weight = [-3.0, 0.0, 0.0, 2.0].map(|w| w * power(unit - first)).to_vec();
            let mut terms = vec![Term::new(Source::Attributes, 0, Matrix::from_values(2, 2, weight))];
            if !is_chain {
                terms.push(Term::new(Source::Ones, 1, Matrix::zeros(1, 2)));
            }
            let identity = [1.0, 0.0, 0.0, 1.0].map(|w| w * power(logit - unit - second)).to_vec();
            let layers = vec![
                Layer::new(terms, vec![power(unit); 2], Activation::Relu),
                Layer::new(
                    vec![Term::new(Source::Layer(0), 1, Matrix::from_values(2, 2, identity))],
                    vec![1.5 * power(logit), 0.0],
                    Activation::None,
                ),
            ];
            let propagation = |p| Propagation::Custom(SparseMatrix::from_triplets(1, 1, &[(0, 0, power(p))]));
            let model = Model::new(2, vec![propagation(first), propagation(second)], layers).unwrap();
            for engine in Engine::ALL {
                let certifier = Certifier::new(&graph, &model).unwrap();
                let certifier = certifier.budget(Budget::new(1, LocalBudget::Count(1))).engine(engine);
                let verdict = certifier.certify(&[NodeId(0)]).unwrap()[0].verdict();
                let case = (first, unit, second, logit, is_chain, engine.name());
                assert_ne!(verdict, Verdict::Robust, "{case:?}");
                assert!(engine != Engine::Complete || verdict == Verdict::Nonrobust, "{case:?}");
            }
        }
    }
}

/// A factor and a weight whose product underflows, likewise.
#[test]
fn coefficients_that_underflow_count() {
    let first = dense(2, 1, &[1e250, 1e200], &[0.0]);
    let output = |bias| dense(1, 2, &[0.0, 1e-170], &[bias, 0.0]);
    for bias in [1e-120, f64::from_bits(1)] {
        let layers = vec![first.clone(), output(bias)];
        let spread = Spread::Custom(vec![(0, 1, 1e-170), (1, 1, 1.0)]);
        let nodes = Problem { nodes: 2, labels: vec![0; 2], global: 1, spread, ..Problem::one_node(2, layers) };
        check(&nodes);
        let layers = vec![first.clone(), dense(1, 1, &[1e-170], &[0.0]), output(bias)];
        check(&Problem { global: 1, ..Problem::one_node(2, layers) });
    }
}

/// A unit that floats take for dead is alive once the attribute is gone, by 10⁻¹⁸, and class 1 makes much of that.
#[test]
fn units_that_floats_take_for_dead_count() {
    let output = dense(1, 2, &[0.0, 1e30], &[0.1, 0.0]);
    let ones = vec![(0, 0)];
    let problem =
        Problem { ones, global: 1, ..Problem::one_node(1, vec![dense(1, 1, &[-0.1], &[1e-18]), output.clone()]) };
    assert_eq!(check(&problem)[0].verdict().name(), "nonrobust");
    let between = dense(1, 1, &[1.0], &[0.0]);
    let layers = vec![problem.layers[0].clone(), between, output];
    assert_eq!(check(&Problem { layers, ..problem })[0].verdict().name(), "nonrobust");
}

/// A target with 800 neighbours of 800 units each: 640,000 equal terms, of which floats make more than they are. Whoever
/// adds them up one after the other is off by more than a bound that counts neighbours and units allows.
#[test]
fn drift_over_all_units_is_covered() {
    let (neighbours, units) = (800u32, 800usize);
    let count = neighbours as usize * units;
    let add_up = |start: f64, term: f64| (0..count).fold(start, |sum, _| sum + term);
    // Of some terms that add up to somewhat less than a power of two the one that drifts most.
    let terms = (0..200).map(|i| two(17) / count as f64 * (0.99 - f64::from(i) / 1e4));
    let drifts = terms.map(|term| (add_up(-(count as f64) * term, term), term));
    let (drift, term) = drifts.fold((0.0, 0.0), |best, next| if next.0 > best.0 { next } else { best });
    let total = count as f64 * term;
    assert!(drift > 0.2 * count as f64 * f64::EPSILON / 2.0 * total, "{drift:e}");
    for against in [total, total * (1.0 + 1e-15)] {
        let entries = (1..=neighbours).flat_map(|n| [(0, n, 1.0), (n, 0, 1.0)]);
        let hidden = dense(1, units, &vec![0.0; units], &vec![1.0; units]);
        let output = dense(units, 2, &[term, 0.0].repeat(units), &[0.0, against]);
        let problem = Problem {
            nodes: neighbours as usize + 1,
            labels: vec![0; neighbours as usize + 1],
            spread: Spread::Custom(entries.collect()),
            ..Problem::one_node(1, vec![hidden, output])
        };
        let (graph, model) = (problem.graph(), problem.model());
        // One unit after the other, exactly.
        let exact = Dyadic::of(count as f64).times(&Dyadic::of(term)).minus(&Dyadic::of(against));
        assert!(exact <= Dyadic::of(two(-33)));
        for engine in ENGINES {
            let certifier = Certifier::new(&graph, &model).unwrap().budget(problem.budget()).engine(engine);
            let certifier = certifier.target_class(problem.target_class());
            let certificate = certifier.certify(&[NodeId(0)]).unwrap().remove(0);
            let positive = exact > Dyadic::of(0.0);
            assert!(positive || !certificate.is_robust(), "{:?}", certificate.evidence);
            let lower = certificate.margins[1].unwrap().value();
            assert!(exact.at_least(lower), "{lower} is not a lower bound");
        }
    }
}

/// Attribute 1 moves tens of thousands of units alike, and together they are worth somewhat more than what attribute 0
/// does: but not in singles, where every addition rounds down. Attribute 2 distracts the fast engine, to which a unit
/// that it cannot wake seems half awake, because attribute 3 could.
#[test]
fn drift_of_singles_is_covered() {
    let units = 1usize << 15;
    let (each, waking, lost) = (1.0 / units as f64, 204.0, 2.1);
    let drift = |x: f64| {
        let term = (each / waking) as f32 * (x / lost) as f32;
        let sum = (0..units).fold(0.0f32, |sum, _| sum + term);
        (f64::from(sum) / (x / lost / waking) - 1.0, x)
    };
    let drifts = (0..400).map(|i| drift(1.0 + f64::from(i) / 1000.0));
    let (drift, x) = drifts.fold((0.0, 1.0), |best, next| if next.0 < best.0 { next } else { best });
    assert!(drift < -2.5e-4, "{drift:e}");
    let a = x * (1.0 + drift / 4.0);
    // Beside the units that move alike, one of attribute 0 and the one that sleeps.
    let row = |alike: f64, alone: f64, asleep: f64| [vec![alike; units], vec![alone, asleep]].concat();
    let weight = [row(0.0, a, 0.0), row(x, 0.0, 0.0), row(0.0, 0.0, 0.99), row(0.0, -lost, 1.01)].concat();
    let hidden = dense(4, units + 2, &weight, &row(10.0, 10.0, -1.0));
    let weight: Vec<f64> = row(each, 1.0, waking).into_iter().flat_map(|w| [0.0, w]).collect();
    let output = dense(units + 2, 2, &weight, &[20.0 + (a + x) / 2.0, 0.0]);
    let problem = Problem { global: 1, local: 1, ..Problem::one_node(4, vec![hidden, output]) };
    let fast = problem.certify(Default::default()).remove(0);
    assert!(matches!(fast.evidence, Evidence::Open { .. }), "{:?}", fast.evidence);
    for engine in ENGINES {
        let certificate = problem.certify_with(engine, Default::default()).remove(0);
        let Evidence::Witness(witness) = &certificate.evidence else { panic!("{:?}", certificate.evidence) };
        assert_eq!(witness.flips, [Flip { node: NodeId(0), attribute: 1.into(), to: 1.0 }]);
    }
}

/// Weights of the first layer that are all subnormal, made up for by the second one's. Attribute 1 takes the class its lead,
/// by less than attribute 0 promises.
#[test]
fn subnormal_weights_are_not_lost() {
    let (tiny, huge, lead) = (two(-515) * two(-515), two(985), two(-45));
    let scaled = |numbers: [f64; 4]| numbers.map(|number| tiny * number);
    let hidden = dense(2, 2, &scaled([-5.0, 4.0, -4.5, 0.0]), &[6.0 * tiny, 6.0 * tiny]);
    let output = dense(2, 2, &[huge, 0.0, huge, 0.0], &[-9.0 * lead, 0.0]);
    let problem = Problem { global: 1, local: 1, ..Problem::one_node(2, vec![hidden, output]) };
    assert_eq!(check(&problem)[0].verdict().name(), "nonrobust");
}

proptest! {
    #![proptest_config(config(100))]

    /// The same, for weights of any shape.
    #[test]
    fn subnormal_weights_change_no_verdict(problem in problems(Sizes { hidden_layers: (1, 1), ..TINY })) {
        let (mut problem, _) = problem.enumerable(SETS);
        let Dense { weight, bias, .. } = &mut problem.layers[0];
        weight.iter_mut().chain(bias).for_each(|number| *number *= two(-520) * two(-510));
        problem.layers[1].weight.iter_mut().for_each(|weight| *weight *= two(960));
        problem.layers[1].bias.iter_mut().for_each(|bias| *bias *= two(-70));
        check(&problem);
    }
}

//! Verdicts are about real numbers, not about floats: everything that is said of tiny problems with nasty numbers is
//! held against exact arithmetic over every admissible set of flips.
//!
//! That the price of rounding is small (margins within 1e-10 of the plain formulas) is tested in `textbook.rs`.
use nodeproof::check::textbook::Textbook;
use nodeproof::{Certificate, ClassId, Engine, Evidence, Flip, Matrix, Network, NodeId, Slopes};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use crate::common::exact::{Dyadic, Number};
use crate::common::nasty::{decimal, tied, units, with_numbers};
use crate::common::seed::config;
use crate::common::{Dense, Problem, Spread, margins};
use crate::proofs::check_accepted;

const SETS: usize = 60;

/// Holds everything that the engines say of `problem` against exact arithmetic; the certificates of the fast one.
fn check(problem: &Problem) -> Vec<Certificate> {
    let (problem, sets) = problem.clone().enumerable(SETS);
    let certificates = problem.certify(Slopes::Default);
    let strongest = problem.certify_by(|certifier| certifier.engine(Engine::Complete));
    let classes: Vec<_> = certificates.iter().map(|certificate| certificate.class).collect();
    let world = problem.world::<Dyadic>();
    let smallest = world.smallest_margins(&sets, &classes);
    for (certificate, exact) in certificates.iter().chain(&strongest).zip(smallest.iter().cycle()) {
        hold(certificate, exact, |flips| world.logits(flips).swap_remove(certificate.node.index()));
    }
    certificates
}

/// Holds a certificate against the smallest margin over each class.
fn hold(certificate: &Certificate, exact: &[Dyadic], logits: impl Fn(&[Flip]) -> Vec<Dyadic>) {
    let zero = Dyadic::of(0.0);
    let (node, class) = (certificate.node.index(), certificate.class);
    for (k, margin) in certificate.margins.iter().enumerate() {
        if let Some(margin) = *margin {
            assert!(exact[k].at_least(margin.value()), "node {node}, class {k}: {margin:?} is not a lower bound");
        }
    }
    let mut others: Vec<&Dyadic> = exact.iter().enumerate().filter(|(k, _)| *k != class.index()).map(|k| k.1).collect();
    others.sort_by(|a, b| a.partial_cmp(b).unwrap());
    match &certificate.evidence {
        Evidence::Robust => {
            assert!(*others[0] > zero, "node {node} is not robust");
            assert!(certificate.margin().is_positive());
        }
        Evidence::Witness(witness) => {
            let with = &margins(&logits(&witness.flips), class)[witness.class.index()];
            let is_tie = witness.margin == 0.0 && certificate.engine != Engine::Fast;
            assert!(*with < zero || (is_tie && *with == zero), "{witness:?} does not flip node {node}");
            assert!(is_tie || witness.margin < 0.0, "{witness:?}");
            assert!(with.at_most(witness.margin), "{witness:?} states too small a margin");
        }
        Evidence::Open { lower, upper, .. } => {
            assert!(others[0].at_least(lower.value()), "node {node}: {lower:?} is not a lower bound");
            assert!(others[0].at_most(upper.unwrap_or(f64::INFINITY)), "node {node}: {upper:?} is not an upper bound");
        }
        other => panic!("unknown verdict {other:?}"),
    }
}

proptest! {
    #![proptest_config(config(2000))]

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
    fn tiny_numbers(problem in with_numbers(decimal(-323..=-300), decimal(-10..=0))) {
        check(&problem);
    }

    #[test]
    fn the_smallest_numbers(problem in with_numbers(units(), decimal(-1..=0))) {
        check(&problem);
    }
}

proptest! {
    #![proptest_config(config(2000))]

    #[test]
    fn tiny_and_ordinary_numbers(
        problem in with_numbers(prop_oneof![decimal(-323..=-300), decimal(-1..=1)], decimal(-323..=0))
    ) {
        check(&problem);
    }

    #[test]
    fn huge_numbers(problem in with_numbers(decimal(150..=300), decimal(-10..=10))) {
        check(&problem);
    }

    #[test]
    fn huge_weights_and_tiny_factors(problem in with_numbers(decimal(90..=300), decimal(-200..=-90))) {
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
}

/// How often the plain formulas in floats would call a node robust that is not, among `cases` problems.
fn false_by_floats(problems: impl Strategy<Value = Problem>, cases: usize) -> usize {
    let mut runner = TestRunner::new(config(256));
    let mut count = 0;
    for _ in 0..cases {
        let (problem, sets) = problems.new_tree(&mut runner).unwrap().current().enumerable(SETS);
        let (graph, model) = (problem.graph(), problem.model());
        let network = Network::new(&graph, &model).unwrap();
        let limits = problem.budget().limits(&graph).unwrap();
        let textbook = Textbook::new(&network, &limits).unwrap();
        let classes = vec![ClassId(0); problem.nodes];
        let exact = problem.world::<Dyadic>().smallest_margins(&sets, &classes);
        for node in graph.node_ids() {
            let lower = textbook.lower_bounds(node, ClassId(0), None);
            let wrong = |k: usize| lower[k] > 0.0 && exact[node.index()][k] <= Dyadic::of(0.0);
            count += usize::from((1..lower.len()).any(wrong));
        }
    }
    count
}

/// The problems above are hard enough: floats alone get many of them wrong.
#[test]
fn floats_alone_would_give_false_certificates() {
    let ties = false_by_floats(tied(), 300);
    println!("{ties} false certificates among 300 problems with ties");
    assert!(ties >= 50, "{ties}");
}

fn dense(inputs: usize, outputs: usize, weight: &[f64], bias: &[f64]) -> Dense {
    Dense { inputs, outputs, weight: weight.to_vec(), bias: bias.to_vec() }
}

/// The margin of class 0 against 1 at node 0, without flips: in floats, and whether it is positive, zero or negative.
fn clean_margin(problem: &Problem) -> (f64, std::cmp::Ordering) {
    let floats = problem.world::<f64>().logits(&[]);
    let exact = margins(&problem.world::<Dyadic>().logits(&[])[0], ClassId(0));
    (floats[0][0] - floats[0][1], exact[1].partial_cmp(&Dyadic::of(0.0)).unwrap())
}

fn not_robust(problem: &Problem) {
    let certificate = &check(problem)[0];
    assert!(!certificate.is_robust(), "{:?}", certificate.evidence);
    assert!(certificate.margins[1].unwrap().value() <= 0.0);
}

/// 0.1 + 0.2 + 0.3 > 0.3 + 0.2 + 0.1 in floats; as real numbers the two logits are equal.
#[test]
fn equal_sums_in_another_order_are_a_tie() {
    let weights = [0.1, 0.3, 0.2, 0.2, 0.3, 0.1];
    let ones = vec![(0, 0), (0, 1), (0, 2)];
    let linear = Problem { ones, ..Problem::one_node(3, vec![dense(3, 2, &weights, &[0.0, 0.0])]) };
    let hidden = dense(1, 3, &[0.0; 3], &[1.0; 3]);
    let one_hidden = Problem::one_node(1, vec![hidden.clone(), dense(3, 2, &weights, &[0.0, 0.0])]);
    let same = dense(3, 3, &[1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0], &[0.0; 3]);
    let two_hidden = Problem::one_node(1, vec![hidden, same, dense(3, 2, &weights, &[0.0, 0.0])]);
    for problem in [linear, one_hidden, two_hidden] {
        let (float, exact) = clean_margin(&problem);
        assert!(float > 0.0 && exact.is_eq(), "{float} {exact:?}");
        not_robust(&problem);
    }
}

/// 1 + 2^-60 - 1 is nothing in floats, and enough for a proof.
#[test]
fn a_margin_that_rounding_hides_is_proved() {
    let weights = [1.0, 0.0, (-60_f64).exp2(), 0.0, -1.0, 0.0];
    let ones = vec![(0, 0), (0, 1), (0, 2)];
    let layers = vec![dense(3, 2, &weights, &[0.0, 0.0])];
    let problem = Problem { ones, global: 0, ..Problem::one_node(3, layers) };
    let (float, exact) = clean_margin(&problem);
    assert!(float <= 0.0 && exact.is_gt(), "{float} {exact:?}");
    check_accepted(&problem).unwrap();
}

/// The tie is the work of a flip, and 1e-17 against the defender.
#[test]
fn a_flip_that_leads_to_a_tie_is_seen() {
    let weights = [0.1, 0.3, 0.2, 0.2, 0.3, 0.1];
    let hidden = dense(1, 3, &[1.0; 3], &[-0.75; 3]);
    let output = dense(3, 2, &weights, &[0.0, 1e-17]);
    let problem = Problem { global: 1, ..Problem::one_node(1, vec![hidden, output]) };
    let with = Problem { ones: vec![(0, 0)], ..problem.clone() };
    let (float, exact) = clean_margin(&with);
    assert!(float > 0.0 && exact.is_lt(), "{float} {exact:?}");
    not_robust(&problem);
    not_robust(&with);
}

/// Sums of thousands of terms: a hub with 200 neighbours and 60 attributes each. Under class 1 the attributes count the
/// other way round, so that every margin is 0 but for the order of the sums.
#[test]
fn long_sums_are_covered() {
    let (nodes, attributes, units) = (201u32, 60u32, 3);
    let number = |i: u32| f64::from((i * 7919) % 1000) / 1000.0;
    let ones: Vec<_> = (0..nodes).flat_map(|n| (0..attributes).map(move |d| (n, d))).collect();
    let problem = Problem {
        nodes: nodes as usize,
        labels: vec![0; nodes as usize],
        edges: (1..nodes).map(|n| (0, n)).collect(),
        ones,
        spread: Spread::Symmetric,
        ..Problem::one_node(attributes as usize, vec![])
    };
    let rows = (0..attributes).flat_map(|d| [number(d + 1), number(attributes - d)]).collect::<Vec<_>>();
    let linear = vec![dense(attributes as usize, 2, &rows, &[0.0, 0.0])];
    let same: Vec<f64> = (0..attributes).flat_map(|d| vec![number(d + 1); units]).collect();
    let output = dense(units, 2, &[0.1, 0.3, 0.2, 0.2, 0.3, 0.1], &[0.0, 0.0]);
    let hidden = vec![dense(attributes as usize, units, &same, &[0.1; 3]), output.clone()];
    let middle = dense(units, units, &[0.7; 9], &[0.1; 3]);
    let deeper = vec![hidden[0].clone(), middle, output];
    for layers in [linear, hidden, deeper] {
        let problem = Problem { layers, ..problem.clone() };
        assert!(clean_margin(&problem).1.is_eq());
        not_robust(&problem);
    }
}

/// The sum of `count` times `number`, in floats, and the middle between that and the exact sum: floats put the sum on
/// the wrong side of it.
fn drift(count: usize, number: f64) -> (f64, f64) {
    let float = (0..count).fold(0.0, |sum, _| sum + number);
    (float, (float + count as f64 * number) / 2.0)
}

/// 10,000 times 0.1 is more than 1000 in floats: every addition rounds the same way, and only an error bound that grows
/// with their number covers it. Here a logit is on the wrong side, for either class.
#[test]
fn drift_of_a_logit_is_covered() {
    let count = 10_000;
    let (float, middle) = drift(count, 0.1);
    assert!(float > middle && middle > 1000.0);
    let ones: Vec<_> = (0..count as u32).map(|d| (0, d)).collect();
    let weight = [0.1, 0.0].repeat(count);
    let problem = Problem { ones, ..Problem::one_node(count, vec![dense(count, 2, &weight, &[0.0, middle])]) };
    assert!(clean_margin(&problem).0 > 0.0 && clean_margin(&problem).1.is_lt());
    not_robust(&problem);
    // Class 1 is ahead of class 0; floats find a witness against it that is none.
    check(&Problem { labels: vec![1], ..problem.clone() });
    let with_hidden = |hidden: usize, labels: Vec<u32>| {
        let mut layers = vec![dense(count, 1, &vec![0.1; count], &[0.0])];
        layers.extend((1..hidden).map(|_| dense(1, 1, &[1.0], &[0.0])));
        layers.push(dense(1, 2, &[1.0, 0.0], &[0.0, middle]));
        Problem { layers, labels, ..problem.clone() }
    };
    for hidden in 1..=3 {
        not_robust(&with_hidden(hidden, vec![0]));
        check(&with_hidden(hidden, vec![1]));
    }
}

/// A unit that floats take for dead is alive, by 8e-11, and the margin hangs on it.
#[test]
fn drift_of_a_bound_is_covered() {
    let count = 10_000;
    let (float, middle) = drift(count, -0.1);
    assert!(float < middle && middle < -1000.0);
    let alive = (middle - -1000.0).abs();
    let ones: Vec<_> = (0..count as u32).map(|d| (0, d)).collect();
    let output = dense(1, 2, &[0.0, 1.0], &[alive / 4.0, 0.0]);
    let one_hidden = vec![dense(count, 1, &vec![-0.1; count], &[-middle]), output.clone()];
    // The first unit is 1000, the second −1000 and the middle.
    let (_, middle) = drift(count, 0.1);
    let two_hidden = vec![dense(count, 1, &vec![0.1; count], &[0.0]), dense(1, 1, &[-1.0], &[middle]), output.clone()];
    let mut three_hidden = two_hidden.clone();
    three_hidden.insert(2, dense(1, 1, &[1.0], &[0.0]));
    for layers in [one_hidden, two_hidden, three_hidden] {
        let problem = Problem { ones: ones.clone(), layers, ..Problem::one_node(count, vec![]) };
        assert!(clean_margin(&problem).0 > 0.0 && clean_margin(&problem).1.is_lt());
        not_robust(&problem);
        for slope in [0.0, 1.0] {
            let slopes = vec![Matrix::from_values(1, 1, vec![slope]); problem.hidden_layers()];
            let certificate = problem.certify(Slopes::Given(slopes)).swap_remove(0);
            assert!(!certificate.is_robust(), "{:?}", certificate.evidence);
        }
    }
}

/// 1000 flips of 0.1 each gain less than 100 in floats.
#[test]
fn drift_of_gains_is_covered() {
    let count = 1000;
    let (float, middle) = drift(count, 0.1);
    assert!(float < middle && middle < 100.0);
    let linear = vec![dense(count, 2, &[0.0, 0.1].repeat(count), &[middle, 0.0])];
    let output = dense(1, 2, &[0.0, 1.0], &[middle, 0.0]);
    let one_hidden = vec![dense(count, 1, &vec![0.1; count], &[0.0]), output.clone()];
    let two_hidden = vec![one_hidden[0].clone(), dense(1, 1, &[1.0], &[0.0]), output];
    let flips: Vec<_> = (0..count as u32).map(|d| Flip { node: NodeId(0), attribute: d.into(), to: 1.0 }).collect();
    for layers in [linear, one_hidden, two_hidden] {
        for global in [count as u32, 2000] {
            let problem = Problem { global, ..Problem::one_node(count, layers.clone()) };
            let exact = &margins(&problem.world::<Dyadic>().logits(&flips)[0], ClassId(0))[1];
            assert!(*exact < Dyadic::of(0.0));
            let certificate = problem.certify(Slopes::Default).swap_remove(0);
            assert!(!certificate.is_robust(), "{:?}", certificate.evidence);
            assert!(exact.at_least(certificate.margins[1].unwrap().value()));
        }
    }
}

/// 1 is lost beside 10¹⁶: margin 10¹⁶ + 1 − 10¹⁶ − 1.5.
#[test]
fn what_cancellation_swallows_counts() {
    let layer = dense(3, 2, &[1e16, 0.0, 0.75, 0.0, 0.0, 1e16], &[0.0, 0.75 + 2f64.powi(-52)]);
    let problem = Problem { ones: vec![(0, 0), (0, 1), (0, 2)], ..Problem::one_node(3, vec![layer]) };
    let (_, exact) = clean_margin(&problem);
    assert!(exact.is_lt());
    not_robust(&problem);
}

/// Products that underflow: six times ¼ of the second smallest float is 3 units, but 0 in floats; 2 units stand
/// against it.
#[test]
fn what_underflow_swallows_counts() {
    let unit = f64::from_bits(1);
    let nodes = 6;
    let spread = Spread::Custom((0..nodes).map(|n| (0, n, 0.25)).collect());
    let linear = Problem {
        nodes: nodes as usize,
        labels: vec![0; nodes as usize],
        ones: (0..nodes).map(|n| (n, 0)).collect(),
        spread: spread.clone(),
        ..Problem::one_node(1, vec![dense(1, 2, &[0.0, 2.0 * unit], &[2.0 * unit, 0.0])])
    };
    let each = Spread::Custom((0..nodes).map(|n| (0, n, 0.25)).chain((1..nodes).map(|n| (n, n, 1.0))).collect());
    let hidden = dense(1, 1, &[0.0], &[1.0]);
    let one_hidden = Problem {
        spread: each,
        layers: vec![hidden, dense(1, 2, &[0.0, 1.75 * unit], &[2.0 * unit, 0.0])],
        ..linear.clone()
    };
    let (float, exact) = clean_margin(&linear);
    assert!(float > 0.0 && exact.is_lt(), "{float} {exact:?}");
    not_robust(&linear);
    check(&one_hidden);
    // The same loss when a flip brings it about.
    let flips = Problem { ones: vec![], global: nodes, local: 1, ..linear };
    not_robust(&flips);
}

/// The product of two factors of the propagation underflows, but a weight in between makes up for it: the flip moves the
/// margin by 10⁻²⁰⁰ · 10⁻²⁰⁰ · 10³⁰⁰, far more than the bias.
#[test]
fn what_underflows_on_the_way_counts() {
    let output = dense(1, 2, &[0.0, 1.0], &[1e-150, 0.0]);
    let problem = Problem {
        spread: Spread::Custom(vec![(0, 0, 1e-200)]),
        global: 1,
        ..Problem::one_node(1, vec![dense(1, 1, &[1e300], &[0.0]), output.clone()])
    };
    not_robust(&problem);
    not_robust(&Problem { ones: vec![(0, 0)], ..problem.clone() });
    let between = dense(1, 1, &[1e200], &[0.0]);
    not_robust(&Problem { layers: vec![dense(1, 1, &[1e300], &[0.0]), between, output], ..problem });
}

/// The product of two weights underflows, 10⁻¹⁷³ · 10⁻¹⁵¹, but the propagation, 10⁸⁹ twice, makes up for it: without the
/// attribute, class 1 wins.
#[test]
fn weights_whose_product_underflows_count() {
    let problem = Problem {
        spread: Spread::Custom(vec![(0, 0, 1e89)]),
        ones: vec![(0, 0)],
        global: 1,
        ..Problem::one_node(1, vec![dense(1, 1, &[1e-173], &[0.0]), dense(1, 2, &[0.0, -1e-151], &[-1e-150, 0.0])])
    };
    not_robust(&problem);
}

/// A hidden value times its factor is subnormal, 3.7 · 10⁻³⁰⁹, and has lost digits before a weight of 10²⁰² makes them
/// count; no flips.
#[test]
fn digits_lost_on_the_way_count() {
    for (weight, bias) in
        [(-8.4e201, 0.0), (8.4e201, 0.0), (-8.4e201, 3.7e-309 * 8.4e201), (8.4e201, -3.7e-309 * 8.4e201)]
    {
        let problem = Problem {
            spread: Spread::Custom(vec![(0, 0, 1e-184)]),
            ones: vec![(0, 0)],
            ..Problem::one_node(1, vec![dense(1, 1, &[3.7e59], &[0.0]), dense(1, 2, &[weight, 0.0], &[bias, 0.0])])
        };
        check(&problem);
    }
}

/// Logits beyond the largest float: whatever is said, it is no false certificate and not NaN.
#[test]
fn overflow_is_no_certificate() {
    let hidden = dense(1, 2, &[1e200, -1e200], &[1e200, 1e200]);
    for output in [[1e200, 1e200, 1e200, 1e200], [1e200, 2e200, 1e200, 1e200], [1e200, -1e200, -1e200, 1e200]] {
        for global in [0, 1] {
            let output = dense(2, 2, &output, &[0.0, 1.0]);
            check(&Problem { global, ..Problem::one_node(1, vec![hidden.clone(), output]) });
        }
    }
    // inf − inf: class 1 wins by 2e400 − 1e400.
    let layers = vec![dense(1, 2, &[0.0, 0.0], &[1e200, 2e200]), dense(2, 2, &[1e200, 0.0, 0.0, 1e200], &[0.0, 0.0])];
    not_robust(&Problem::one_node(1, layers));
}

/// The exact arithmetic itself, by hand.
#[test]
fn dyadic_numbers_are_exact() {
    let of = Dyadic::of;
    assert!(of(0.1).plus(&of(0.2)) > of(0.3));
    assert!(of(0.1).plus(&of(0.2)).minus(&of(0.2)) == of(0.1));
    assert!(
        of(0.5).times(&of(f64::from_bits(1))).plus(&of(0.5).times(&of(f64::from_bits(1)))) == of(f64::from_bits(1))
    );
    assert!(of(f64::MAX).times(&of(f64::MAX)) > of(f64::MAX));
    assert!(of(-0.0) == of(0.0) && of(-1.5) < of(-1.25) && of(0.0).minus(&of(1e-320)) == of(-1e-320));
    assert!(of(1.0).at_least(1.0) && of(1.0).at_most(1.0) && !of(1.0).at_least(1.5) && !of(1.0).at_most(0.5));
    let flip = Flip { node: NodeId(0), attribute: 0.into(), to: 1.0 };
    let problem = Problem { global: 1, ..Problem::one_node(1, vec![dense(1, 2, &[0.1, 0.2], &[0.3, 0.0])]) };
    let logits = problem.world::<Dyadic>().logits(&[flip]);
    assert!(logits[0][0] == of(0.1).plus(&of(0.3)) && logits[0][1] == of(0.2));
}

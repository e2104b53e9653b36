//! Margins that must exceed more than 0, held against every admissible set of tiny problems, and arithmetic that rounds, held against
//! networks evaluated in it.

use nodeproof::{
    Arithmetic, Budget, Certificate, Certifier, Engine, Evidence, Flip, Graph, Matrix, Model, NodeId, Obstacle,
    Propagation, Radius, Slopes, SparseMatrix, TargetClass, Verdict,
};
use nodeproof_check::Checker;
use nodeproof_problem::Proofs;
use proptest::prelude::*;

use crate::brute_force::{FEW, LONG, SETS};
use crate::common::exact::{Dyadic, Number};
use crate::common::seed::config;
use crate::common::{Problem, TINY, World, problems, problems_of_terms, with_normalised_rows, with_values};

/// A number in single precision of which products read so many bits.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
struct Rounded<const BITS: u32>(f64);

/// The leading bits, rounded to nearest: Veltkamp's splitting.
fn leading(bits: u32, x: f64) -> f64 {
    let scaled = x * ((1u64 << (53 - bits)) as f64 + 1.0);
    scaled - (scaled - x)
}

impl<const BITS: u32> Number for Rounded<BITS> {
    const EXACT: bool = false;

    fn of(value: f64) -> Self {
        Self(leading(BITS, value))
    }

    fn plus(&self, other: &Self) -> Self {
        Self(leading(24, self.0 + other.0))
    }

    fn minus(&self, other: &Self) -> Self {
        Self(leading(24, self.0 - other.0))
    }

    fn times(&self, other: &Self) -> Self {
        Self(leading(24, leading(BITS, self.0) * leading(BITS, other.0)))
    }
}

#[test]
fn numbers_are_rounded_to_their_bits() {
    for x in [1.0, 1.1, -3.7e-5, 12345.678, 0.0] {
        assert_eq!(leading(24, x), f64::from(x as f32));
        assert!((leading(8, x) - x).abs() <= x.abs() / 256.0);
    }
    assert_eq!((leading(8, 257.0), leading(8, 258.0)), (256.0, 258.0));
}

/// Per node and class the smallest margin over all sets, in numbers of some kind.
struct Least<T> {
    world: World<T>,
    margins: Vec<Vec<T>>,
}

impl<T: Number> Least<T> {
    fn new(problem: &Problem, sets: &[Vec<Flip>]) -> Self {
        let classes: Vec<_> = problem.certify(Slopes::Default).iter().map(|certificate| certificate.class).collect();
        let world: World<T> = problem.world();
        let margins = world.smallest_margins(sets, &classes);
        Self { world, margins }
    }

    /// Whether all margins of a node are like this.
    fn all(&self, of: &Certificate, is_so: impl Fn(&World<T>, &T) -> bool) -> bool {
        let mut margins = self.margins[of.node.index()].iter().enumerate().filter(|&(k, _)| k != of.class.index());
        margins.all(|(_, margin)| is_so(&self.world, margin))
    }
}

impl Least<Dyadic> {
    fn exceeds(&self, of: &Certificate, asked: f64) -> bool {
        self.all(of, |world, margin| !world.is_at_most(margin, asked))
    }
}

fn checker<'p>(graph: &'p Graph, model: &'p Model, problem: &Problem) -> Checker<'p> {
    let limits = problem.budget().limits(graph).unwrap();
    Checker::new(graph, model, limits, problem.target_class()).unwrap()
}

/// A margin to ask for: one that a node has without flips, more or less, so that some nodes have more and some have less.
fn some_margin(problem: &Problem, pick: usize, part: f64) -> f64 {
    let found = problem.certify(Slopes::Default);
    let values = found.iter().flat_map(|of| of.margins.iter().flatten()).map(|margin| margin.value().abs());
    let values: Vec<f64> = values.filter(|value| value.is_finite() && *value < 1e50).collect();
    values.get(pick % values.len().max(1)).map_or(0.5, |value| value * part)
}

/// Every engine says the truth about margins above τ; the complete one always knows.
fn check_margin(problem: &Problem, sets: &[Vec<Flip>], asked: f64) -> Result<(), TestCaseError> {
    let (graph, model) = (problem.graph(), problem.model());
    let checker = checker(&graph, &model, problem).asking(asked, Arithmetic::Exact).unwrap();
    let least = Least::new(problem, sets);
    for engine in Engine::ALL {
        for certificate in problem.certify_by(|of| of.engine(engine).margin(asked).proofs(engine == Engine::Complete)) {
            let truth = least.exceeds(&certificate, asked);
            match &certificate.evidence {
                Evidence::Robust => prop_assert!(truth, "{engine:?}, {asked}: {certificate:?}"),
                Evidence::Witness(witness) => {
                    prop_assert!(!truth, "{engine:?}, {asked}: {certificate:?}");
                    prop_assert!(witness.margin <= asked, "{asked}: {witness:?}");
                    prop_assert_eq!(checker.certificate(&certificate), Ok(()), "{:?}", certificate);
                }
                _ => {
                    let may = engine != Engine::Complete || problem.values.is_some();
                    prop_assert!(may, "{asked}: {certificate:?}");
                }
            }
            if certificate.is_robust() && certificate.proofs.is_some() {
                prop_assert_eq!(checker.certificate(&certificate), Ok(()), "{:?}", certificate);
            }
        }
    }
    Ok(())
}

/// The radii that the complete engine finds up to the budget of a problem, with proofs where there are any.
fn radii(problem: &Problem, asked: f64, arithmetic: Arithmetic) -> Vec<Radius> {
    let (graph, model) = (problem.graph(), problem.model());
    let nodes: Vec<_> = graph.node_ids().collect();
    let certifier = Certifier::new(&graph, &model).unwrap().budget(problem.budget()).engine(Engine::Complete);
    let certifier = certifier.target_class(problem.target_class()).margin(asked).arithmetic(arithmetic).proofs(true);
    certifier.threads(1).radii(&nodes, problem.global).unwrap()
}

/// The radius above a margin is the largest budget whose sets all leave more, and the checker accepts it, but none that is larger, nor asks for
/// more.
fn check_radii_above(problem: &Problem, sets: &[Vec<Flip>], asked: f64) -> Result<(), TestCaseError> {
    let (graph, model) = (problem.graph(), problem.model());
    let checker = |asked| checker(&graph, &model, problem).asking(asked, Arithmetic::Exact).unwrap();
    let within = |most: u32| sets.iter().filter(move |set| set.len() <= most as usize).cloned().collect::<Vec<_>>();
    let least: Vec<_> = (0..=problem.global).map(|most| Least::<Dyadic>::new(problem, &within(most))).collect();
    let classes = problem.certify(Slopes::Default);
    for radius in radii(problem, asked, Arithmetic::Exact) {
        let of = &classes[radius.node.index()];
        let truth = (0..=problem.global).take_while(|&most| least[most as usize].exceeds(of, asked)).last();
        let may_be_open = problem.values.is_some();
        prop_assert!(radius.robust_up_to <= truth, "{asked}: {truth:?}, {radius:?}");
        prop_assert!(
            may_be_open || (radius.robust_up_to == truth && radius.is_exact()),
            "{asked}: {truth:?}, {radius:?}"
        );
        let first = truth.map_or(0, |robust| robust + 1);
        prop_assert!(radius.nonrobust_from().is_none_or(|from| from >= first), "{asked}: {truth:?}, {radius:?}");
        if radius.robust_up_to.is_some() && radius.found.as_ref().is_some_and(|found| found.proofs.is_none()) {
            continue;
        }
        prop_assert_eq!(checker(asked).radius(&radius), Ok(()), "{}: {:?}", asked, radius);
        let Some(from) = radius.nonrobust_from() else { continue };
        let mut larger = radius.clone();
        larger.robust_up_to = Some(from);
        let found = larger.found.as_mut().unwrap();
        (found.nonrobust_from, found.witness, found.proofs) = (None, None, Some(Proofs::new()));
        found.exact = from == problem.global;
        prop_assert!(checker(asked).radius(&larger).is_err(), "{asked}: {larger:?} is accepted in place of {radius:?}");
        if asked > 0.0 && radius.witness().is_some_and(|witness| witness.margin > 0.0) {
            prop_assert!(checker(0.0).radius(&radius).is_err(), "{radius:?} is accepted as one of margins above 0");
        }
    }
    Ok(())
}

/// A radius in an arithmetic is the largest budget under which the node is robust in it, and the checker accepts it.
fn check_radii_in(problem: &Problem) -> Result<(), TestCaseError> {
    let (graph, model) = (problem.graph(), problem.model());
    for arithmetic in [Arithmetic::F32, Arithmetic::Bf16] {
        let checker = checker(&graph, &model, problem).asking(0.0, arithmetic).unwrap();
        let exact = radii(problem, 0.0, Arithmetic::Exact);
        let verdicts: Vec<Vec<Verdict>> = (0..=problem.global)
            .map(|global| {
                let problem = Problem { global, ..problem.clone() };
                let found = problem.certify_by(|of| of.engine(Engine::Complete).arithmetic(arithmetic).proofs(true));
                found.iter().map(Certificate::verdict).collect()
            })
            .collect();
        for (radius, exact) in radii(problem, 0.0, arithmetic).iter().zip(&exact) {
            let of_node = |global: u32| verdicts[global as usize][radius.node.index()];
            let is = |verdict: Verdict| (0..=problem.global).filter(move |&global| of_node(global) == verdict);
            prop_assert_eq!(radius.robust_up_to, is(Verdict::Robust).next_back(), "{:?}: {:?}", arithmetic, radius);
            prop_assert_eq!(radius.nonrobust_from(), is(Verdict::Nonrobust).next(), "{:?}: {:?}", arithmetic, radius);
            prop_assert!(radius.robust_up_to <= exact.robust_up_to, "{arithmetic:?}: {radius:?}, {exact:?}");
            if radius.robust_up_to.is_none() || radius.found.as_ref().is_some_and(|found| found.proofs.is_some()) {
                prop_assert_eq!(checker.radius(radius), Ok(()), "{:?}: {:?}", arithmetic, radius);
            }
        }
    }
    Ok(())
}

/// Four bits of 0.25 each against 0.5 − 1 / 4096. Two flips leave a margin of 1 / 4096, which single precision tells, and 8 bits do not: there
/// the radius is smaller, and the larger one is rejected.
#[test]
fn radii_are_those_of_their_arithmetic() {
    let graph = Graph::new(1, 4, &[], &[(0, 0), (0, 1), (0, 2), (0, 3)]).unwrap();
    let layer = (Matrix::from_values(4, 2, [0.25, 0.0].repeat(4)), vec![0.0, 0.5 - 1.0 / 4096.0]);
    let model = Model::gcn(vec![layer], Propagation::Identity).unwrap();
    let certifier =
        || Certifier::new(&graph, &model).unwrap().budget(Budget::new(4, 4.into())).engine(Engine::Complete);
    let radius = |arithmetic| {
        let radii = certifier().arithmetic(arithmetic).proofs(true).radii(&[NodeId(0)], 4).unwrap();
        radii.into_iter().next().unwrap()
    };
    let [exact, f32, bf16] = [Arithmetic::Exact, Arithmetic::F32, Arithmetic::Bf16].map(radius);
    assert_eq!(
        [&exact, &f32, &bf16].map(|of| (of.robust_up_to, of.is_exact())),
        [(Some(2), true), (Some(2), true), (Some(1), false)]
    );
    let limits = || Budget::new(4, 4.into()).limits(&graph).unwrap();
    let check = |radius: &Radius, arithmetic| {
        let checker = Checker::new(&graph, &model, limits(), TargetClass::Predicted).unwrap();
        checker.asking(0.0, arithmetic).unwrap().radius(radius).is_ok()
    };
    assert!(check(&f32, Arithmetic::F32) && check(&f32, Arithmetic::Exact) && check(&bf16, Arithmetic::Bf16));
    assert!(!check(&f32, Arithmetic::Bf16), "8 bits do not tell");
}

/// What is robust in an arithmetic is so however it is evaluated there, and what is nonrobust is so without rounding.
fn check_arithmetic(problem: &Problem, sets: &[Vec<Flip>]) -> Result<(), TestCaseError> {
    let (graph, model) = (problem.graph(), problem.model());
    let least: Least<Dyadic> = Least::new(problem, sets);
    let in_f32: Least<Rounded<24>> = Least::new(problem, sets);
    let in_tf32: Least<Rounded<11>> = Least::new(problem, sets);
    let in_bf16: Least<Rounded<8>> = Least::new(problem, sets);
    for arithmetic in [Arithmetic::F64, Arithmetic::F32, Arithmetic::Tf32, Arithmetic::Bf16] {
        let checker = checker(&graph, &model, problem).asking(0.0, arithmetic).unwrap();
        let certificates = problem.certify_by(|of| of.engine(Engine::Complete).arithmetic(arithmetic).proofs(true));
        for certificate in certificates {
            match certificate.verdict() {
                Verdict::Robust => {
                    prop_assert!(least.exceeds(&certificate, 0.0), "{certificate:?}");
                    let holds = match arithmetic {
                        Arithmetic::F32 => in_f32.all(&certificate, |_, margin| margin.0 > 0.0),
                        Arithmetic::Tf32 => in_tf32.all(&certificate, |_, margin| margin.0 > 0.0),
                        Arithmetic::Bf16 => in_bf16.all(&certificate, |_, margin| margin.0 > 0.0),
                        _ => true,
                    };
                    prop_assert!(holds, "{arithmetic:?}: {certificate:?}");
                }
                Verdict::Nonrobust => prop_assert!(!least.exceeds(&certificate, 0.0), "{certificate:?}"),
                Verdict::Undecided => {
                    let because = certificate.undecided_because();
                    let may = matches!(because, Some(Obstacle::Arithmetic | Obstacle::Values));
                    prop_assert!(may, "{arithmetic:?}: {certificate:?}");
                }
            }
            if !certificate.is_robust() || certificate.proofs.is_some() {
                prop_assert_eq!(checker.certificate(&certificate), Ok(()), "{:?}: {:?}", arithmetic, certificate);
            }
        }
    }
    Ok(())
}

/// Verdicts without rounding and in an arithmetic, of a network with one layer whose propagation is computed step by step.
fn of_polynomial(
    graph: &Graph,
    of: Propagation,
    last: f64,
    steps: usize,
    layer: (Matrix, Vec<f64>),
) -> [Vec<Verdict>; 5] {
    let coefficients = [vec![0.0; steps], vec![last]].concat();
    let model = Model::gcn(vec![layer], Propagation::Polynomial { of: Box::new(of), coefficients }).unwrap();
    let nodes: Vec<_> = graph.node_ids().collect();
    Arithmetic::ALL.map(|arithmetic| {
        let certifier = Certifier::new(graph, &model).unwrap().budget(Budget::new(0, 0.into())).arithmetic(arithmetic);
        let certificates = certifier.engine(Engine::Complete).certify(&nodes).unwrap();
        certificates.iter().map(Certificate::verdict).collect()
    })
}

/// Twenty steps that each store numbers with 8 bits take off more than 0.1 of 1.32, as PyTorch has it.
#[test]
fn steps_of_a_polynomial_store_numbers() {
    let pairs: Vec<(u32, u32)> = (0..15).flat_map(|a| (0..a).map(move |b| (a, b))).collect();
    let graph = Graph::new(15, 2, &pairs, &(0..15).map(|n| (n, 0)).collect::<Vec<_>>()).unwrap();
    let layer = (Matrix::from_values(2, 2, vec![150.0 / 128.0, 0.0, 0.0, 0.0]), vec![0.0, 1.32]);
    let [exact, _, f32, _, bf16] = of_polynomial(&graph, Propagation::SymmetricGcn, 1.0, 20, layer);
    assert_eq!((exact, f32), (vec![Verdict::Robust; 15], vec![Verdict::Robust; 15]));
    assert_eq!(bf16, [Verdict::Undecided; 15]);
}

/// Polynomials of polynomials have more operations than can be counted.
#[test]
fn steps_within_steps_are_not_counted_wrongly() {
    let graph = Graph::new(1, 1, &[], &[(0, 0)]).unwrap();
    let coefficients = vec![0.0, 1.0, 0.0, 0.0];
    let nested = (0..40).fold(Propagation::Identity, |of, _| Propagation::Polynomial {
        of: Box::new(of),
        coefficients: coefficients.clone(),
    });
    let layer = (Matrix::from_values(1, 2, vec![1.0, 0.0]), vec![0.0, 0.0]);
    let [exact, f64, f32, ..] = of_polynomial(&graph, nested, 1.0, 1, layer);
    assert_eq!((exact, f64, f32), (vec![Verdict::Robust], vec![Verdict::Undecided], vec![Verdict::Undecided]));
}

/// 10⁻⁴⁴ on the way loses digits in single precision, though the result is 10⁻¹⁰.
#[test]
fn steps_of_a_polynomial_underflow() {
    let graph = Graph::new(1, 1, &[], &[(0, 0)]).unwrap();
    let of = Propagation::Custom(SparseMatrix::from_triplets(1, 1, &[(0, 0, 1.0001e-4)]));
    let layer = (Matrix::from_values(1, 2, vec![1.0, 0.0]), vec![0.0, 0.99e-10]);
    let [exact, f64, f32, ..] = of_polynomial(&graph, of, 1e34, 11, layer);
    assert_eq!((exact, f64), (vec![Verdict::Robust], vec![Verdict::Robust]));
    assert_eq!(f32, [Verdict::Undecided]);
}

proptest! {
    #![proptest_config(config(400))]

    #[test]
    fn margins_above_what_is_asked_on_bits(
        problem in prop_oneof![problems(TINY), problems_of_terms(TINY, 5)],
        (pick, part) in (any::<u8>(), prop_oneof![Just(1.0), 0.1..1.5]),
    ) {
        let (problem, sets) = problem.enumerable(SETS / 3);
        check_margin(&problem, &sets, some_margin(&problem, pick.into(), part))?;
    }

    #[test]
    fn margins_above_what_is_asked_on_normalised_rows(
        problem in with_normalised_rows(prop_oneof![problems(TINY), problems(LONG), problems_of_terms(TINY, 5)]),
        (pick, part) in (any::<u8>(), prop_oneof![Just(1.0), 0.1..1.5]),
    ) {
        let (problem, sets) = problem.enumerable(SETS / 3);
        check_margin(&problem, &sets, some_margin(&problem, pick.into(), part))?;
    }

    #[test]
    fn margins_above_what_is_asked_of_real_values(
        problem in with_values(prop_oneof![problems(FEW), problems_of_terms(FEW, 5)], FEW),
        (pick, part) in (any::<u8>(), prop_oneof![Just(1.0), 0.1..1.5]),
    ) {
        let (problem, sets) = problem.enumerable(SETS / 3);
        check_margin(&problem, &sets, some_margin(&problem, pick.into(), part))?;
    }

    #[test]
    fn networks_that_round_on_bits(problem in prop_oneof![problems(TINY), problems_of_terms(TINY, 5)]) {
        let (problem, sets) = problem.enumerable(SETS / 3);
        check_arithmetic(&problem, &sets)?;
    }

    #[test]
    fn networks_that_round_on_normalised_rows(
        problem in with_normalised_rows(prop_oneof![problems(TINY), problems(LONG), problems_of_terms(TINY, 5)]),
    ) {
        let (problem, sets) = problem.enumerable(SETS / 3);
        check_arithmetic(&problem, &sets)?;
    }

    #[test]
    fn networks_that_round_of_real_values(
        problem in with_values(prop_oneof![problems(FEW), problems_of_terms(FEW, 5)], FEW),
    ) {
        let (problem, sets) = problem.enumerable(SETS / 3);
        check_arithmetic(&problem, &sets)?;
    }

    #[test]
    fn radii_above_what_is_asked(
        problem in prop_oneof![
            2 => problems(TINY), 1 => problems_of_terms(TINY, 4), 1 => with_normalised_rows(problems(TINY)), 1 => with_values(problems(FEW), FEW),
        ],
        (pick, part) in (any::<u8>(), prop_oneof![Just(0.0), Just(1.0), 0.1..1.5]),
    ) {
        let (problem, sets) = problem.enumerable(SETS / 3);
        check_radii_above(&problem, &sets, some_margin(&problem, pick.into(), part))?;
    }
}

proptest! {
    #![proptest_config(config(60))]

    #[test]
    fn radii_in_an_arithmetic(
        problem in prop_oneof![
            2 => problems(TINY), 1 => problems_of_terms(TINY, 4), 1 => with_normalised_rows(problems(TINY)), 1 => with_values(problems(FEW), FEW),
        ],
    ) {
        let (problem, _) = problem.enumerable(SETS / 3);
        check_radii_in(&problem)?;
    }
}

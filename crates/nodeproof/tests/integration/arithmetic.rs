//! Margins that must exceed more than 0, held against every admissible set of tiny problems, and arithmetic that rounds, held against
//! networks evaluated in it.

use nodeproof::{
    Arithmetic, Budget, Certificate, Certifier, Engine, Evidence, Flip, Graph, Matrix, Model, Obstacle, Propagation,
    Slopes, SparseMatrix, Verdict,
};
use nodeproof_check::Checker;
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
}

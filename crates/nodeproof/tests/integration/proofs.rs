//! The checker, which shares no code with the engines, held against every admissible set of tiny problems: whatever certificates are
//! forged, none that it accepts is wrong.

use nodeproof::{Bound, Certificate, Certifier, ClassId, Engine, Evidence, Flip, NodeId, Slopes, TargetClass};
use nodeproof_check::{Checker, Mismatch};
use nodeproof_problem::{Branch, Proof, Proofs, UnitSlope};
use proptest::prelude::*;

use crate::brute_force::{CLOSE, FEW, LONG, SETS, Truth, dense_rows, dense_values, sharpened, shifted, thorough};
use crate::common::seed::config;
use crate::common::{Problem, TINY, problems, problems_of_terms, with_normalised_rows, with_values};

/// Numbers that stand for choices, one after the other.
struct Choices<'c>(std::iter::Cycle<std::slice::Iter<'c, u16>>);

impl Choices<'_> {
    fn below(&mut self, limit: usize) -> usize {
        usize::from(*self.0.next().unwrap()) % limit
    }
}

/// Any tree of flips, some of which are not allowed, or come twice, and slopes of lines, some of which are not below.
fn any_proof(flips: &[Flip], choices: &mut Choices, depth: usize) -> Proof {
    let count = if depth == 0 || flips.is_empty() { 0 } else { choices.below(4) };
    let branches = (0..count).map(|_| {
        let mut flip = flips[choices.below(flips.len())];
        match choices.below(120) {
            0 => flip.to = 1.0 - flip.to,
            1 => flip.attribute.0 += 1_000_000,
            2 => flip.node.0 += 1_000_000,
            _ => {}
        }
        Branch { flip, proof: any_proof(flips, choices, depth - 1) }
    });
    let branches: Vec<Branch> = branches.collect();
    let count = if flips.is_empty() { 0 } else { choices.below(8).saturating_sub(4) };
    let slopes = (0..count).map(|_| UnitSlope {
        layer: choices.below(5) as u32 / 4,
        node: flips[choices.below(flips.len())].node,
        unit: choices.below(3) as u32,
        slope: choices.below(100) as f64 / 97.0,
    });
    Proof { branches, slopes: slopes.collect() }
}

/// Forges certificates that call every node robust, and checks those that are accepted; how many are.
pub(crate) fn check_forged(problem: &Problem, sets: &[Vec<Flip>], choices: &[u16]) -> usize {
    let (graph, model) = (problem.graph(), problem.model());
    let limits = problem.budget().limits(&graph).unwrap();
    let checker = Checker::new(&graph, &model, limits, problem.target_class()).unwrap();
    let found = problem.certify(Slopes::Default);
    let truth = Truth::new(problem, sets, found.iter().map(|certificate| certificate.class).collect());
    let (flips, _) = problem.allowed();
    let mut choices = Choices(choices.iter().cycle());
    let mut accepted = 0;
    for of in &found {
        let (node, class) = (of.node.index(), of.class);
        let mut margins = of.margins.clone();
        for (k, margin) in margins.iter_mut().enumerate().filter(|(_, margin)| margin.is_some()) {
            // Most often that it is positive; or as much as is true, or a little more.
            let least = truth.smallest[node][k];
            let said = match choices.below(4) {
                0 => Bound::AtLeast(least * 0.9),
                1 => Bound::AtLeast(least + 2.0 * CLOSE * truth.scales[node]),
                _ => Bound::Positive,
            };
            *margin = Some(said);
        }
        let mut forged = Certificate::new(NodeId(node as u32), class, of.predicted, Evidence::Robust, margins);
        forged.label = of.label;
        let others = (0..model.classes() as u32).map(ClassId).filter(|&k| k != class);
        forged.proofs = Some(others.map(|k| (k, any_proof(&flips, &mut choices, 3))).collect());
        if checker.certificate(&forged).is_err() {
            continue;
        }
        accepted += 1;
        for (k, margin) in forged.margins.iter().enumerate().filter(|(k, _)| *k != class.index()) {
            assert!(truth.positive(node, k), "node {node} is accepted as robust, but class {k} can overtake");
            let said = margin.and_then(Bound::at_least).unwrap_or(0.0);
            let least = truth.smallest[node][k] + CLOSE * truth.scales[node];
            assert!(said <= least, "node {node}, class {k}: {said} is accepted, but the margin can be {least}");
        }
    }
    accepted
}

/// That the checker accepts what the complete engine says of all nodes.
pub(crate) fn check_accepted(problem: &Problem) -> Result<(), TestCaseError> {
    let (graph, model) = (problem.graph(), problem.model());
    let limits = problem.budget().limits(&graph).unwrap();
    let checker = Checker::new(&graph, &model, limits, problem.target_class()).unwrap();
    for certificate in problem.certify_by(|certifier| certifier.engine(Engine::Complete).proofs(true)) {
        let branches = certificate.branches > 0;
        prop_assert!(!branches || certificate.engine == Engine::Complete, "what branches is complete: {certificate:?}");
        if certificate.is_robust() && certificate.proofs.is_none() {
            prop_assert!(problem.values.is_some(), "no proof of {certificate:?}");
            continue;
        }
        prop_assert_eq!(checker.certificate(&certificate), Ok(()), "{:?}", certificate);
    }
    Ok(())
}

/// That the checker accepts radii, none that is larger, and no witness with a flip less.
fn check_radii(problem: &Problem) -> Result<(), TestCaseError> {
    let (graph, model) = (problem.graph(), problem.model());
    let nodes: Vec<NodeId> = graph.node_ids().collect();
    let budget = problem.budget().capped(&graph);
    let checker = Checker::new(&graph, &model, budget.limits(&graph).unwrap(), problem.target_class()).unwrap();
    let certifier = Certifier::new(&graph, &model).unwrap().budget(budget.clone()).target_class(problem.target_class());
    let radii = certifier.engine(Engine::Complete).proofs(true).threads(1).radii(&nodes, budget.global()).unwrap();
    for radius in radii {
        prop_assert_eq!(checker.radius(&radius), Ok(()), "{:?}", radius);
        let mut other = radius.clone();
        let found = other.found.as_mut().unwrap();
        found.class = Some(ClassId(u32::from(found.class == Some(ClassId(0)))));
        let is_tied = problem.target_class() == TargetClass::Predicted && radius.robust_up_to.is_none();
        prop_assert!(is_tied || checker.radius(&other).is_err(), "{other:?} is accepted, but it is {radius:?}");
        let Some(from) = radius.nonrobust_from() else { continue };
        let mut larger = radius.clone();
        larger.robust_up_to = Some(from);
        let found = larger.found.as_mut().unwrap();
        (found.nonrobust_from, found.witness, found.proofs) = (None, None, Some(Proofs::new()));
        found.exact = from == budget.global();
        prop_assert!(checker.radius(&larger).is_err(), "{larger:?} is accepted, but the radius is {radius:?}");
        let mut smaller = radius.clone();
        let found = smaller.found.as_mut().unwrap();
        let witness = found.witness.as_mut().unwrap();
        if witness.flips.pop().is_some() {
            found.nonrobust_from = Some(from - 1);
            prop_assert!(checker.radius(&smaller).is_err(), "{smaller:?} is accepted, but the radius is {radius:?}");
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(config(400))]

    #[test]
    fn radii_are_accepted_and_no_others(
        problem in prop_oneof![
            problems(TINY), problems_of_terms(TINY, 4), with_normalised_rows(problems(TINY)),
        ],
    ) {
        check_radii(&problem)?;
    }
}

proptest! {
    #![proptest_config(config(thorough(1_000)))]

    #[test]
    fn certificates_on_bits_are_accepted(problem in prop_oneof![problems(TINY), problems_of_terms(TINY, 5)]) {
        check_accepted(&problem)?;
    }

    #[test]
    fn certificates_on_normalised_rows_are_accepted(
        problem in with_normalised_rows(prop_oneof![problems(TINY), problems(LONG), problems_of_terms(TINY, 5)]),
    ) {
        check_accepted(&problem)?;
    }

    /// Where values between the ends of their ranges might matter, there may be no proof.
    #[test]
    fn certificates_on_real_values_are_accepted(
        problem in with_values(prop_oneof![problems(FEW), problems_of_terms(FEW, 5)], FEW)
    ) {
        check_accepted(&problem)?;
    }

    #[test]
    fn certificates_are_accepted_where_little_decides(
        problem in prop_oneof![1 => dense_rows(), 1 => problems(TINY), 1 => problems_of_terms(TINY, 4)],
    ) {
        let (problem, sets) = problem.enumerable(SETS / 3);
        check_accepted(&sharpened(&problem, &sets, &problem.certify_with(Engine::Fast, Slopes::Default)))?;
    }

    #[test]
    fn no_forged_certificate_on_bits_is_accepted(
        problem in prop_oneof![problems(TINY), problems_of_terms(TINY, 5)],
        choices in prop::collection::vec(any::<u16>(), 64),
    ) {
        let (problem, sets) = problem.enumerable(SETS / 3);
        check_forged(&problem, &sets, &choices);
    }

    #[test]
    fn no_forged_certificate_on_normalised_rows_is_accepted(
        problem in with_normalised_rows(prop_oneof![problems(TINY), problems(LONG), problems_of_terms(TINY, 5)]),
        choices in prop::collection::vec(any::<u16>(), 64),
    ) {
        let (problem, sets) = problem.enumerable(SETS / 3);
        check_forged(&problem, &sets, &choices);
    }

    #[test]
    fn no_forged_certificate_on_real_values_is_accepted(
        problem in with_values(prop_oneof![problems(FEW), problems_of_terms(FEW, 5)], FEW),
        choices in prop::collection::vec(any::<u16>(), 64),
    ) {
        let (problem, sets) = problem.enumerable(SETS);
        check_forged(&problem, &sets, &choices);
    }

    #[test]
    fn no_forged_certificate_is_accepted_where_little_decides(
        problem in prop_oneof![1 => dense_rows(), 1 => problems(TINY), 1 => problems_of_terms(TINY, 4)],
        choices in prop::collection::vec(any::<u16>(), 64),
    ) {
        let (problem, sets) = problem.enumerable(SETS / 3);
        let sharp = sharpened(&problem, &sets, &problem.certify_with(Engine::Fast, Slopes::Default));
        check_forged(&sharp, &sets, &choices);
    }
}

proptest! {
    #![proptest_config(config(thorough(1_000)))]

    /// Short proofs are looked for in other places than a witness is.
    #[test]
    fn no_witness_is_lost_to_proofs(
        problem in prop_oneof![
            2 => dense_values(), 1 => with_values(problems(FEW), FEW), 1 => dense_rows(), 1 => problems_of_terms(TINY, 4),
        ],
    ) {
        let (problem, sets) = problem.enumerable(SETS / 3);
        let certificates = problem.certify_with(Engine::Fast, Slopes::Default);
        for (part, engine) in [(0.0, Engine::Tight), (1.001, Engine::Tight), (1.001, Engine::Complete)] {
            let sharp = shifted(&problem, &sets, &certificates, part);
            let without = sharp.certify_with(engine, Slopes::Default);
            let with = sharp.certify_by(|certifier| certifier.engine(engine).proofs(true));
            for (without, with) in without.iter().zip(&with) {
                let is_lost = without.witness().is_some() && with.witness().is_none();
                prop_assert!(!is_lost, "{without:?}, {with:?}");
            }
        }
    }
}

#[test]
fn a_model_that_reads_something_else_is_refused() {
    use nodeproof::{AttributeKind, Budget, Graph, Matrix, Model, ModelError, Propagation, TargetClass};
    let graph = Graph::new(1, 2, &[], &[(0, 0)]).unwrap();
    let model = |attributes: usize| {
        Model::gcn(vec![(Matrix::zeros(attributes, 2), vec![1.0, 0.0])], Propagation::SymmetricGcn).unwrap()
    };
    let limits = || Budget::new(1, 1.into()).limits(&graph).unwrap();
    let refused = |model: &Model| Checker::new(&graph, model, limits(), TargetClass::Predicted).err();
    assert!(refused(&model(2)).is_none());
    assert!(matches!(refused(&model(3)), Some(Mismatch::Fit(ModelError::Mismatch { .. }))));
    assert!(matches!(
        refused(&model(2).with_kind(AttributeKind::NormalisedRows)),
        Some(Mismatch::Fit(ModelError::Kind { .. }))
    ));
}

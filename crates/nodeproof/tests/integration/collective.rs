//! How many predictions one set of flips changes: every admissible set of tiny problems, counted in exact arithmetic.
use std::ops::ControlFlow;

use nodeproof::{
    Arithmetic, AttributeKind, Budget, Certifier, ClassId, Collective, EdgeBudget, Engine, Flip, Graph, LocalBudget,
    Matrix, Model, NodeId, Propagation, Radius, Stage,
};
use proptest::prelude::*;

use crate::brute_force::{CLOSE, LONG, SETS};
use crate::common::exact::{Dyadic, Number};
use crate::common::seed::config;
use crate::common::{Problem, TINY, problems, problems_of_terms, with_normalised_rows, with_values};

/// Radii up to the global budget, cut off above `known`.
fn radii(certifier: &Certifier, nodes: &[NodeId], global: u32, known: u32) -> Vec<Radius> {
    let mut radii = certifier.radii(nodes, global).unwrap();
    for radius in &mut radii {
        radius.robust_up_to = radius.robust_up_to.map(|up_to| up_to.min(known));
    }
    radii
}

fn collective(problem: &Problem, known: u32, threads: usize) -> (Collective, Vec<ClassId>) {
    within(problem, known, threads, 1 << 30)
}

/// The same in a table of so many bytes.
fn within(problem: &Problem, known: u32, threads: usize, memory: usize) -> (Collective, Vec<ClassId>) {
    let (graph, model): (_, Model) = (problem.graph(), problem.model());
    let certifier = Certifier::new(&graph, &model).unwrap().budget(problem.budget()).engine(Engine::Complete);
    let certifier = certifier.target_class(problem.target_class()).threads(threads).memory_limit(memory);
    let nodes: Vec<NodeId> = graph.node_ids().collect();
    let classes = certifier.certify(&nodes).unwrap().iter().map(|of| of.class).collect();
    let radii = radii(&certifier, &nodes, problem.global, known);
    (certifier.collective(&radii, |_, _, _| ControlFlow::Continue(())).unwrap().unwrap(), classes)
}

/// The nodes whose class is level with another under flips, or below.
pub fn changed(problem: &Problem, classes: &[ClassId], flips: &[Flip]) -> Vec<NodeId> {
    let (scales, margins) = (problem.scales(), problem.world::<f64>().margins(flips, classes));
    let mut exactly = None;
    let mut falls = |node: usize| {
        (0..margins[node].len()).filter(|&k| k != classes[node].index()).any(|k| {
            if margins[node][k].abs() > CLOSE * scales[node] {
                return margins[node][k] < 0.0;
            }
            let exactly = exactly.get_or_insert_with(|| problem.world::<Dyadic>().margins(flips, classes));
            exactly[node][k] <= Dyadic::of(0.0)
        })
    };
    (0..classes.len()).filter(|&node| falls(node)).map(|node| NodeId(node as u32)).collect()
}

fn check(problem: Problem, known: u32) {
    check_within(problem, known, 1 << 30);
}

fn check_within(problem: Problem, known: u32, memory: usize) {
    let (problem, sets) = problem.enumerable(SETS);
    let (found, classes) = within(&problem, known, 1, memory);
    let most = sets.iter().map(|flips| changed(&problem, &classes, flips).len()).max().unwrap();
    assert!(most <= found.at_most, "{most} predictions can change, but at most {} are said to", found.at_most);
    assert!(found.at_most <= found.by_radii && found.by_radii <= found.alone && found.alone <= found.targets);
    let mut flips = found.flips.clone();
    flips.sort_unstable();
    assert!(sets.contains(&flips), "{flips:?} is not admissible");
    assert_eq!(changed(&problem, &classes, &flips), found.changed);
    let all_are_ahead = changed(&problem, &classes, &[]).is_empty();
    if problem.global == 1 && problem.kind == AttributeKind::Bits && all_are_ahead && memory > 10_000 {
        assert_eq!((most, most), (found.at_least(), found.at_most), "all single flips are tried");
    }
}

pub fn tiny() -> impl Strategy<Value = Problem> {
    prop_oneof![problems(TINY), problems(LONG), problems_of_terms(TINY, 4)]
}

fn known() -> impl Strategy<Value = u32> {
    prop_oneof![3 => Just(u32::MAX), 1 => 0u32..3]
}

proptest! {
    #![proptest_config(config(500))]

    #[test]
    fn no_set_changes_more_predictions(problem in tiny(), known in known()) {
        check(problem, known);
    }

    #[test]
    fn no_flip_changes_more_predictions(problem in tiny(), known in known()) {
        check(Problem { global: 1, ..problem }, known);
    }
}

proptest! {
    #![proptest_config(config(150))]

    #[test]
    fn nor_where_rows_are_normalised(problem in with_normalised_rows(tiny()), known in known()) {
        check(problem, known);
    }

    #[test]
    fn nor_of_real_values(problem in with_values(problems_of_terms(TINY, 4), TINY), known in known()) {
        check(problem, known);
    }

    #[test]
    fn nor_where_little_memory_is_left(problem in tiny(), memory in 0usize..600) {
        check_within(problem, u32::MAX, memory);
    }

    #[test]
    fn threads_make_no_difference(problem in tiny()) {
        let found = |threads| collective(&problem, u32::MAX, threads).0;
        let (one, three) = (found(1), found(3));
        prop_assert_eq!((one.at_most, one.flips, one.multipliers), (three.at_most, three.flips, three.multipliers));
    }
}

/// A graph of two linked nodes with two attributes, and a network that reads them.
fn pair() -> (Graph, Model) {
    let graph = Graph::new(2, 2, &[(0, 1)], &[(0, 0), (1, 0)]).unwrap();
    let layer = (Matrix::from_values(2, 2, vec![2.0, 0.0, 0.0, 1.0]), vec![0.0, 0.0]);
    (graph, Model::gcn(vec![layer], Propagation::SymmetricGcn).unwrap())
}

#[test]
fn what_is_not_covered_is_refused() {
    let (graph, model) = pair();
    let certifier = |budget| Certifier::new(&graph, &model).unwrap().budget(budget);
    let asked = |certifier: Certifier| {
        certifier.collective(&[], |_, _, _| ControlFlow::Continue(())).map(drop).map_err(|error| error.to_string())
    };
    let flips = || Budget::new(2, LocalBudget::Count(2));
    asked(certifier(flips())).unwrap();
    assert!(asked(certifier(flips()).margin(0.5)).unwrap_err().contains("positive margins"));
    assert!(asked(certifier(flips()).arithmetic(Arithmetic::F32)).unwrap_err().contains("positive margins"));
    let edges = certifier(Budget::new(0, LocalBudget::Count(0)).delete_edges(EdgeBudget::new(1)));
    assert!(asked(edges).unwrap_err().contains("collective certificates"));
}

#[test]
fn a_node_counts_once_by_the_least_that_it_is_said_to_withstand_and_observers_may_break_off() {
    let (graph, model) = pair();
    let certifier = Certifier::new(&graph, &model).unwrap().budget(Budget::new(2, LocalBudget::Count(2)));
    let radius = |node, up_to| Radius::new(NodeId(node), &graph, up_to, None);
    let radii = [radius(0, Some(2)), radius(1, Some(1)), radius(0, Some(1)), radius(0, Some(2))];
    let found = certifier.collective(&radii, |_, _, _| ControlFlow::Continue(())).unwrap().unwrap();
    assert_eq!((found.targets, found.alone, found.at_most), (2, 2, 2));
    assert_eq!(found.changed, [NodeId(0), NodeId(1)], "both read both nodes");
    for breaks_off_at in [Stage::Taking, Stage::Bounding, Stage::Attacking] {
        let observer = |stage, _, _| {
            if stage == breaks_off_at { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        assert_eq!(certifier.collective(&radii, observer).unwrap(), None, "{breaks_off_at:?}");
    }
}

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
    let (found, most, all_are_ahead) = sound(&problem, known, memory);
    if found.global == 1 && problem.kind == AttributeKind::Bits && all_are_ahead && memory > 10_000 {
        assert_eq!((most, most), (found.at_least(), found.at_most), "all single flips are tried");
    }
}

/// What is said of a problem, how many predictions change at most, and whether all hold without flips. No set changes more than is said, and the
/// attack changes what it says.
pub fn sound(problem: &Problem, known: u32, memory: usize) -> (Collective, usize, bool) {
    let (problem, sets) = problem.clone().enumerable(SETS);
    let (found, classes) = within(&problem, known, 1, memory);
    let most = sets.iter().map(|flips| changed(&problem, &classes, flips).len()).max().unwrap();
    assert!(most <= found.at_most, "{most} predictions can change, but at most {} are said to", found.at_most);
    assert!(found.at_most <= found.by_radii && found.by_radii <= found.alone && found.alone <= found.targets);
    let mut flips = found.flips.clone();
    flips.sort_unstable();
    assert!(sets.contains(&flips), "{flips:?} is not admissible");
    assert_eq!(changed(&problem, &classes, &flips), found.changed);
    (found, most, changed(&problem, &classes, &[]).is_empty())
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
        check_within(Problem { global: 1, ..problem.clone() }, u32::MAX, memory);
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

/// Two targets read the same node, and of its flips more take half of a margin than are listed; each target lists others of them.
#[test]
fn flips_that_are_not_listed_take_as_much_as_the_first_of_them() {
    let (half, context) = (60u32, 120u32);
    let weights = |d: u32| match d {
        d if d == context => [10.0, 9.0, 0.0, 0.0],
        d if d > context => [0.0, 0.0, 10.0, 9.0],
        d if d < half => [0.0, 0.52, 0.0, 0.51],
        _ => [0.0, 0.51, 0.0, 0.52],
    };
    let weight = Matrix::from_values(context as usize + 2, 4, (0..context + 2).flat_map(weights).collect());
    let ones = [(3, context), (4, context + 1)];
    let graph = Graph::new(5, context as usize + 2, &[(0, 2), (0, 3), (1, 2), (1, 4)], &ones).unwrap();
    let model = Model::gcn(vec![(weight, vec![0.0; 4])], Propagation::Adjacency).unwrap();
    for memory in [1 << 30, 1000] {
        let budget = Budget::new(2, LocalBudget::Count(2)).protect_nodes([0, 1, 3, 4].map(NodeId));
        let budget = budget.protect_attributes([context, context + 1].map(Into::into));
        let certifier = Certifier::new(&graph, &model).unwrap().budget(budget).memory_limit(memory);
        let radii = [0, 1].map(|node| Radius::new(NodeId(node), &graph, Some(1), None));
        let found = certifier.collective(&radii, |_, _, _| ControlFlow::Continue(())).unwrap().unwrap();
        assert_eq!((found.at_most, found.at_least()), (2, 2), "{memory}: {found:?}");
    }
}

/// What the flips of one set take of a target's margin over one class, by hand: some flips take little, and many of these are enough.
#[test]
fn flips_that_take_little_fill_what_those_that_take_much_leave() {
    let weight = |d: u32| [0.0, if d == 0 { 0.9 } else { 0.02 }];
    let weight = Matrix::from_values(9, 2, (0..9).flat_map(weight).collect());
    let graph = Graph::new(1, 9, &[], &[]).unwrap();
    let model = Model::gcn(vec![(weight, vec![1.0, 0.0])], Propagation::Identity).unwrap();
    let certifier = Certifier::new(&graph, &model).unwrap().budget(Budget::new(8, LocalBudget::Count(8)));
    let found =
        certifier.collective(&[Radius::new(NodeId(0), &graph, Some(4), None)], |_, _, _| ControlFlow::Continue(()));
    let found = found.unwrap().unwrap();
    assert_eq!(found.at_most, 1, "0.9 and seven times 0.02 are more than 1: {found:?}");
}

/// A flip that one class lists with little may take much of the margin over another that does not list it.
#[test]
fn flips_that_one_class_does_not_list_take_the_most_that_it_leaves_out() {
    let (shared, context) = (48..60u32, 120u32);
    for (much, little) in [(1, 2), (2, 1)] {
        let weights = |d: u32| {
            let mut of = [0.0; 5];
            match d {
                d if d == context => of[..3].copy_from_slice(&[10.0, 9.0, 9.0]),
                d if d > context => of[3..].copy_from_slice(&[10.0, 9.0]),
                _ => {
                    of[much] = if d < shared.end { 0.52 } else { 0.0 };
                    of[little] = if shared.contains(&d) { 0.4 } else { 0.0 };
                    of[4] = if shared.contains(&d) { 0.52 } else { 0.0 };
                }
            }
            if d == context - 1 {
                of[little] = 0.9;
            }
            of
        };
        let weight = Matrix::from_values(context as usize + 2, 5, (0..context + 2).flat_map(weights).collect());
        let ones = [(3, context), (4, context + 1)];
        let graph = Graph::new(5, context as usize + 2, &[(0, 2), (0, 3), (1, 2), (1, 4)], &ones).unwrap();
        let model = Model::gcn(vec![(weight, vec![0.0; 5])], Propagation::Adjacency).unwrap();
        let budget = Budget::new(2, LocalBudget::Count(2)).protect_nodes([0, 1, 3, 4].map(NodeId));
        let budget = budget.protect_attributes([context, context + 1].map(Into::into));
        let certifier = Certifier::new(&graph, &model).unwrap().budget(budget);
        let radii = [0, 1].map(|node| Radius::new(NodeId(node), &graph, Some(1), None));
        let found = certifier.collective(&radii, |_, _, _| ControlFlow::Continue(())).unwrap().unwrap();
        assert_eq!(found.at_most, 2, "two flips that both targets share change both: {found:?}");
    }
}

/// The answer for one node that two flips bring level, whatever is known of it.
fn of_one(weight: Matrix, bias: f64, ones: &[(u32, u32)], protected: std::ops::Range<u32>) -> Collective {
    let graph = Graph::new(1, weight.rows(), &[], ones).unwrap();
    let model = Model::gcn(vec![(weight, vec![bias, 0.0])], Propagation::Identity).unwrap();
    let budget = Budget::new(2, LocalBudget::Count(2)).protect_attributes(protected.map(Into::into));
    let certifier = Certifier::new(&graph, &model).unwrap().budget(budget);
    let radii = [Radius::new(NodeId(0), &graph, Some(1), None)];
    certifier.collective(&radii, |_, _, _| ControlFlow::Continue(())).unwrap().unwrap()
}

/// In single precision many parts are less than they are.
#[test]
fn parts_are_rounded_upwards() {
    for much in (501..1000).map(|part| f64::from(part) / 1000.0) {
        let weight = Matrix::from_values(2, 2, vec![0.0, much, 0.0, 1.0 - much]);
        let found = of_one(weight, 1.0, &[], 0..0);
        assert_eq!(found.at_most, 1, "{much} and the rest bring the classes level: {found:?}");
    }
}

/// The same numbers in another order, which add up to something else in doubles, and two flips that take half of the margin each.
#[test]
fn parts_are_of_what_margins_are_for_sure() {
    for large in 0..40u32 {
        let number = |i: u32| 1e9 * (f64::from(i % 8 + 1) * 0.618 + f64::from(large) * 0.37).fract();
        let weights = |d: u32| if d < 8 { [number(d), number(3 * d + 1)] } else { [0.0, 0.5] };
        let weight = Matrix::from_values(10, 2, (0..10).flat_map(weights).collect());
        let ones: Vec<(u32, u32)> = (0..8).map(|d| (0, d)).collect();
        let found = of_one(weight, 1.0, &ones, 0..8);
        assert_eq!(found.at_most, 1, "halves bring the classes level: {found:?}");
    }
}

/// A flip that there is no room to list is not tried, and so no telling what single flips do.
#[test]
fn flips_without_room_are_not_said_to_do_nothing() {
    let graph = Graph::new(1, 3, &[], &[]).unwrap();
    let weight = Matrix::from_values(3, 2, vec![0.0, 2.0, 0.0, 2.0, 0.0, 2.0]);
    let model = Model::gcn(vec![(weight, vec![1.0, 0.0])], Propagation::Identity).unwrap();
    for memory in 0..100 {
        let certifier = Certifier::new(&graph, &model).unwrap().budget(Budget::new(1, LocalBudget::Count(1)));
        let radii = [Radius::new(NodeId(0), &graph, Some(0), None)];
        let found = certifier.memory_limit(memory).collective(&radii, |_, _, _| ControlFlow::Continue(()));
        assert_eq!(found.unwrap().unwrap().at_most, 1, "{memory} bytes");
    }
}

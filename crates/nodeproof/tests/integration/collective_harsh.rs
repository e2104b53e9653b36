//! Collective certificates of problems that are hard on them: numbers of very different sizes, copies, hubs, near ties, and files that lie.
use nodeproof::results::{Collectives, Header, Radii};
use nodeproof::{ClassId, Collective, CutMultipliers, NodeId, Radius};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::brute_force::LONG;
use crate::collective::{sound, tiny};
use crate::collective_checked::Asked;
use crate::common::nasty::tied;
use crate::common::seed::config;
use crate::common::{Dense, Problem, Sizes, TINY, problems, problems_of_terms, with_normalised_rows, with_values};

/// Many nodes that see each other, few attributes.
const WIDE: Sizes = Sizes { nodes: 7, attributes: 2, hidden_layers: (1, 3), units: 3, global: 5 };

/// What is done to a problem.
#[derive(Debug, Clone, Copy)]
enum Twist {
    /// All weights of a layer times a power of ten.
    Scaled(usize, i32),
    /// One column of a layer times a power of ten.
    Unit(usize, usize, i32),
    /// A layer without weights.
    Zero(usize),
    /// All rows of attributes are that of node 0.
    Copies,
    /// Node 0 is linked with all.
    Hub,
    /// No node is linked.
    Apart,
    /// No attributes.
    Empty,
    /// As many flips as one may write down.
    Unlimited,
    /// Nothing may be flipped at this node.
    Fixed(u32),
    /// One flip at most at each node.
    OneEach,
    /// The last biases are nearly level.
    Level(f64),
    /// The first class leads by this.
    Lead(f64),
}

fn twist() -> impl Strategy<Value = Twist> {
    let tiny = prop_oneof![Just(0.0), Just(1e-16), Just(-1e-16), Just(1e-9), Just(5e-324)];
    prop_oneof![
        3 => (0usize..4, -6i32..=6).prop_map(|(layer, by)| Twist::Scaled(layer, by)),
        2 => (0usize..4, 0usize..4, -6i32..=6).prop_map(|(layer, unit, by)| Twist::Unit(layer, unit, by)),
        1 => (0usize..4).prop_map(Twist::Zero),
        2 => Just(Twist::Copies),
        2 => Just(Twist::Hub),
        1 => Just(Twist::Apart),
        1 => Just(Twist::Empty),
        1 => Just(Twist::Unlimited),
        1 => (0u32..8).prop_map(Twist::Fixed),
        2 => Just(Twist::OneEach),
        1 => tiny.prop_map(Twist::Level),
        3 => (0.0..6.0f64).prop_map(Twist::Lead),
    ]
}

/// Weights, biases and units of each layer, of several terms the first that has a matrix.
fn layers_of(problem: &mut Problem) -> Vec<(&mut [f64], &mut [f64], usize)> {
    match &mut problem.terms {
        Some(terms) => {
            let mut all = Vec::new();
            for layer in &mut terms.layers {
                let units = layer.bias.len();
                let first = layer.terms.iter_mut().find_map(|term| term.2.as_mut().ok());
                if let Some(values) = first {
                    all.push((&mut values[..], &mut layer.bias[..], units));
                }
            }
            all
        }
        None => problem
            .layers
            .iter_mut()
            .map(|Dense { weight, bias, outputs, .. }| (&mut weight[..], &mut bias[..], *outputs))
            .collect(),
    }
}

/// A problem to which all of this is done.
fn twisted(mut problem: Problem, twists: Vec<Twist>) -> Problem {
    let n = problem.nodes as u32;
    for twist in twists {
        let mut layers = layers_of(&mut problem);
        let count = layers.len();
        match twist {
            Twist::Scaled(layer, by) if count > 0 => {
                let (weight, bias, _) = &mut layers[layer % count];
                weight.iter_mut().chain(bias.iter_mut()).for_each(|w| *w *= 10f64.powi(by));
            }
            Twist::Unit(layer, unit, by) if count > 0 => {
                let (weight, _, units) = &mut layers[layer % count];
                let units = *units;
                weight.iter_mut().skip(unit % units).step_by(units).for_each(|w| *w *= 10f64.powi(by));
            }
            Twist::Zero(layer) if count > 0 => layers[layer % count].0.fill(0.0),
            Twist::Level(by) if count > 0 => {
                let bias = &mut layers[count - 1].1;
                let first = bias[0];
                bias.fill(first);
                bias[0] = first + by;
            }
            Twist::Lead(by) if count > 0 => layers[count - 1].1[0] += by,
            Twist::Copies => {
                let row: Vec<u32> = problem.ones.iter().filter(|of| of.0 == 0).map(|of| of.1).collect();
                problem.ones = (0..n).flat_map(|node| row.iter().map(move |&d| (node, d))).collect();
            }
            Twist::Hub => problem.edges = (1..n).map(|node| (0, node)).collect(),
            Twist::Apart => problem.edges.clear(),
            Twist::Empty => problem.ones.clear(),
            Twist::Unlimited => (problem.global, problem.local) = (u32::MAX, u32::MAX),
            Twist::Fixed(node) => problem.local_at.push((node % n, 0)),
            Twist::OneEach => problem.local = 1,
            _ => {}
        }
    }
    let mut seen = std::collections::BTreeSet::new();
    problem.local_at.reverse();
    problem.local_at.retain(|of| seen.insert(of.0));
    problem
}

fn any_problem() -> impl Strategy<Value = Problem> {
    let of = prop_oneof![3 => tiny(), 2 => problems(WIDE), 1 => problems(LONG), 1 => tied(), 2 => problems_of_terms(WIDE, 4)];
    (of, vec(twist(), 0..4)).prop_map(|(problem, twists)| twisted(problem, twists))
}

/// How far radii are known, and the bytes of tables.
fn limits() -> impl Strategy<Value = (u32, usize)> {
    let known = prop_oneof![3 => Just(u32::MAX), 2 => 0u32..3];
    let memory = prop_oneof![4 => Just(1usize << 30), 1 => 0usize..800];
    (known, memory)
}

/// Multipliers of any size of any nodes.
fn multipliers() -> impl Strategy<Value = Vec<CutMultipliers>> {
    let share = || {
        prop_oneof![
            Just(0.0),
            Just(1.0),
            0.0..1.5f64,
            Just(1.0 - 1e-16),
            Just(1e300),
            Just(f64::MAX),
            Just(5e-324),
            Just(1e-17),
            Just(f64::INFINITY),
            Just(f64::NAN),
            Just(-1.0),
            0.9..1.1f64
        ]
    };
    let beyond = || {
        prop_oneof![
            Just(0.0),
            Just(0.97),
            0.0..1.0f64,
            Just(1.0 - 1.2e-16),
            Just(5e-324),
            Just(1.0),
            Just(f64::NAN),
            Just(-0.5),
            Just(-0.0)
        ]
    };
    let withstands = prop_oneof![4 => 0u32..4, 1 => Just(u32::MAX), 1 => 4u32..100];
    let gains = vec((beyond(), share()), 0..4);
    let some = prop::collection::btree_map(0u32..8, (withstands, share(), gains), 0..8);
    some.prop_map(|of| {
        let multipliers =
            |(node, (withstands, count, gains))| CutMultipliers { node: NodeId(node), withstands, count, gains };
        of.into_iter().map(multipliers).collect()
    })
}

/// Radii that lie: budgets of other nodes, proofs of other nodes, more than was found.
fn lies(asked: &Asked, by: u32) -> Vec<Vec<Radius>> {
    let radii = &asked.radii;
    let mut all = vec![radii.clone()];
    let count = radii.len();
    for sort in 0..6u32 {
        let mut lie = radii.clone();
        for (place, radius) in lie.iter_mut().enumerate() {
            let other = &radii[(place + 1 + by as usize) % count];
            match sort {
                0 => radius.robust_up_to = Some(radius.robust_up_to.map_or(0, |up_to| up_to.saturating_add(by))),
                1 => (radius.robust_up_to, radius.found) = (other.robust_up_to, other.found.clone()),
                2 => {
                    radius.robust_up_to = Some(asked.problem.global);
                    if let (Some(found), Some(of)) = (&mut radius.found, &other.found) {
                        found.proofs = of.proofs.clone();
                        (found.witness, found.nonrobust_from, found.exact) = (None, None, true);
                    }
                }
                3 => {
                    radius.robust_up_to = Some(asked.problem.global);
                    if let Some(found) = &mut radius.found {
                        (found.witness, found.nonrobust_from, found.exact, found.proofs) = (None, None, true, None);
                    }
                }
                4 => {
                    radius.robust_up_to = Some(asked.problem.global);
                    if let Some(found) = &mut radius.found {
                        (found.witness, found.nonrobust_from, found.exact) = (None, None, true);
                        let classes = asked.model.classes() as u32;
                        found.class = found.class.map(|class| ClassId((class.0 + by) % classes));
                    }
                }
                _ => (radius.robust_up_to, radius.found) = (Some(u32::MAX), None),
            }
        }
        all.push(lie);
    }
    all
}

/// Nobody may claim that fewer predictions change than do, and the attack that was found is accepted.
fn less_is_not_accepted(problem: Problem, others: Vec<CutMultipliers>, by: u32) {
    let asked = Asked::new(problem);
    let found = &asked.found;
    assert!(asked.most <= found.at_most);
    let mut of_attack = found.clone();
    of_attack.multipliers.clear();
    of_attack.at_most = of_attack.targets;
    assert_eq!(asked.judged(&of_attack, None), Ok(()), "the attack that was found");
    let change = |change: fn(&mut CutMultipliers, u32)| {
        let mut changed = found.multipliers.clone();
        changed.iter_mut().for_each(|of| change(of, by));
        changed
    };
    let raised = change(|of, by| of.withstands = of.withstands.saturating_add(by));
    let stretched = change(|of, _| of.gains.iter_mut().for_each(|gain| gain.0 = 0.5 + 0.5 * gain.0));
    let doubled = change(|of, _| of.gains.iter_mut().for_each(|gain| gain.1 *= 2.0));
    let of_all = (0..found.targets as u32)
        .map(|node| CutMultipliers { node: NodeId(node), withstands: by, count: 1.0, gains: vec![] })
        .collect();
    let gains_of_all = (0..found.targets as u32)
        .map(|node| CutMultipliers {
            node: NodeId(node),
            withstands: 0,
            count: 0.0,
            gains: vec![(0.2 * f64::from(by), 1.0)],
        })
        .collect();
    let all_radii = lies(&asked, by);
    for multipliers in [found.multipliers.clone(), raised, stretched, doubled, of_all, gains_of_all, others, Vec::new()]
    {
        let mut record = Collective::new(found.global, found.targets);
        record.multipliers = multipliers;
        for radii in std::iter::once(None).chain(all_radii.iter().map(|radii| Some(&radii[..]))) {
            for too_few in (0..asked.most).rev().take(1) {
                record.at_most = too_few;
                let judged = asked.judged(&record, radii);
                assert!(judged.is_err(), "{} change, but {record:?} by {radii:?}", asked.most);
            }
        }
    }
}

proptest! {
    #![proptest_config(config(400))]

    #[test]
    fn no_set_changes_more_predictions(problem in any_problem(), (known, memory) in limits()) {
        sound(&problem, known, memory);
    }

    #[test]
    fn no_flip_changes_more_predictions(problem in any_problem(), (known, memory) in limits()) {
        sound(&Problem { global: 1, ..problem }, known, memory);
    }

    #[test]
    fn fewer_than_change_are_never_accepted(problem in any_problem(), others in multipliers(), by in 1u32..4) {
        less_is_not_accepted(problem, others, by);
    }

    #[test]
    fn nor_of_single_flips(problem in any_problem(), others in multipliers(), by in 1u32..4) {
        less_is_not_accepted(Problem { global: 1, ..problem }, others, by);
    }
}

proptest! {
    #![proptest_config(config(150))]

    #[test]
    fn nor_where_rows_are_normalised(problem in with_normalised_rows(any_problem()), others in multipliers(), by in 1u32..4, (known, memory) in limits()) {
        less_is_not_accepted(problem.clone(), others, by);
        sound(&problem, known, memory);
    }

    #[test]
    fn nor_of_single_flips_in_normalised_rows(problem in with_normalised_rows(any_problem()), others in multipliers(), by in 1u32..4) {
        less_is_not_accepted(Problem { global: 1, ..problem }, others, by);
    }

    #[test]
    fn nor_of_real_values(problem in with_values(problems_of_terms(TINY, 4), TINY), twists in vec(twist(), 0..3), others in multipliers(), by in 1u32..4, (known, memory) in limits()) {
        let problem = twisted(problem, twists);
        less_is_not_accepted(problem.clone(), others, by);
        sound(&problem, known, memory);
    }

    #[test]
    fn nor_of_one_real_value(problem in with_values(problems_of_terms(TINY, 4), TINY), twists in vec(twist(), 0..3), others in multipliers(), by in 1u32..4, (known, memory) in limits()) {
        let problem = Problem { global: 1, ..twisted(problem, twists) };
        less_is_not_accepted(problem.clone(), others, by);
        sound(&problem, known, memory);
    }
}

#[test]
fn radii_of_another_budget_are_refused() {
    let problem = Problem::one_node(
        2,
        vec![Dense { inputs: 2, outputs: 2, weight: vec![1.0, 0.0, 0.0, 1.0], bias: vec![1.0, 0.0] }],
    );
    let (graph, model) = (problem.graph(), problem.model());
    let settings = |local: u32| {
        let budget = nodeproof::Budget::new(2, nodeproof::LocalBudget::Count(local));
        nodeproof::CertifySettings::new(budget)
    };
    let header = |local| Header::new(&graph, &model, &settings(local), 1);
    let found = Collectives::new(header(2), vec![NodeId(0)], vec![2]);
    let known = |local| nodeproof_check::KnownRadii::new(Radii::new(header(local)), &found, &graph, &model).is_ok();
    assert!(known(2) && !known(1));
}

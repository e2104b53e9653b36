//! The checker of collective certificates: every admissible set of tiny problems, counted in exact arithmetic, and any multipliers.
use std::ops::ControlFlow;

use nodeproof::results::{Collectives, Header, Radii};
use nodeproof::{
    Activation, AttributeKind, CertifySettings, ClassId, Collective, CutMultipliers, Direction, Engine, Flip, Graph,
    Model, NodeId, Radius, Source,
};
use nodeproof_check::{CollectiveChecker, KnownRadii, Rejection, Shares};
use proptest::prelude::*;

use crate::brute_force::{CLOSE, SETS};
use crate::collective::{changed, tiny};
use crate::common::seed::config;
use crate::common::{
    Dense, LayerOfTerms, Problem, Spread, TINY, Terms, problems_of_terms, with_normalised_rows, with_values,
};

/// A problem, all of its sets, and what the engines say of it.
pub struct Asked {
    pub problem: Problem,
    graph: Graph,
    pub model: Model,
    settings: CertifySettings,
    classes: Vec<ClassId>,
    pub radii: Vec<Radius>,
    pub found: Collective,
    /// Most predictions that a set changes.
    pub most: usize,
}

impl Asked {
    pub fn new(problem: Problem) -> Self {
        let (problem, sets) = problem.enumerable(SETS);
        let (graph, model): (_, Model) = (problem.graph(), problem.model());
        let mut settings = CertifySettings::new(problem.budget());
        (settings.target_class, settings.engine, settings.proofs) = (problem.target_class(), Engine::Complete, true);
        settings.threads = 1;
        let certifier = nodeproof::Certifier::new(&graph, &model).unwrap().settings(settings.clone());
        let nodes: Vec<NodeId> = graph.node_ids().collect();
        let classes: Vec<ClassId> = certifier.certify(&nodes).unwrap().iter().map(|of| of.class).collect();
        let radii = certifier.radii(&nodes, problem.global).unwrap();
        let found = certifier.collective(&radii, |_, _, _| ControlFlow::Continue(())).unwrap().unwrap();
        let most = sets.iter().map(|flips| changed(&problem, &classes, flips).len()).max().unwrap();
        Self { problem, graph, model, settings, classes, radii, found, most }
    }

    /// Whether doubles cannot tell which class of a node is predicted.
    fn is_level(&self, node: NodeId) -> bool {
        let margins = &self.problem.world::<f64>().margins(&[], &self.classes)[node.index()];
        let others = (0..margins.len()).filter(|&k| k != self.classes[node.index()].index());
        others.map(|k| margins[k].abs()).fold(f64::INFINITY, f64::min) <= CLOSE * self.problem.scales()[node.index()]
    }

    pub fn judged(&self, record: &Collective, radii: Option<&[Radius]>) -> Result<(), Rejection> {
        let header = Header::new(&self.graph, &self.model, &self.settings, self.graph.nodes());
        let found = Collectives::new(header.clone(), self.graph.node_ids().collect(), vec![record.global]);
        let radii = radii.map(|radii| {
            let mut of = Radii::new(header);
            of.records = radii.to_vec();
            KnownRadii::new(of, &found, &self.graph, &self.model).unwrap()
        });
        let checker = CollectiveChecker::new(&found, record, radii.as_ref(), (&self.graph, &self.model)).unwrap();
        let mut shares = Shares::default();
        found.nodes.iter().for_each(|&node| shares.add(checker.share(node).unwrap()));
        checker.judge(&shares)
    }
}

/// Multipliers of some nodes, and what these are said to withstand.
fn multipliers() -> impl Strategy<Value = Vec<CutMultipliers>> {
    let share = || prop_oneof![Just(0.0), Just(1.0), 0.0..1.5f64];
    let beyond = prop_oneof![Just(0.0), Just(0.97), 0.0..1.0f64];
    let gains = prop::collection::vec((beyond, share()), 0..3);
    let some = prop::collection::btree_map(0u32..6, (0u32..4, share(), gains), 0..6);
    some.prop_map(|of| {
        let multipliers =
            |(node, (withstands, count, gains))| CutMultipliers { node: NodeId(node), withstands, count, gains };
        of.into_iter().map(multipliers).collect()
    })
}

/// Nobody may claim that fewer predictions change than do, whatever multipliers and radii are said to show it.
fn less_is_not_accepted(problem: Problem, others: Vec<CutMultipliers>) {
    let asked = Asked::new(problem);
    let mut more = asked.radii.clone();
    for radius in &mut more {
        radius.robust_up_to = Some(radius.robust_up_to.map_or(0, |up_to| up_to + 1));
    }
    let mut raised = asked.found.multipliers.clone();
    raised.iter_mut().for_each(|of| of.withstands += 1);
    for multipliers in [asked.found.multipliers.clone(), raised, others, Vec::new()] {
        let mut record = Collective::new(asked.found.global, asked.found.targets);
        record.multipliers = multipliers;
        for radii in [None, Some(&asked.radii[..]), Some(&more)] {
            for too_few in (0..asked.most).rev().take(2) {
                record.at_most = too_few;
                let judged = asked.judged(&record, radii);
                assert!(
                    matches!(judged, Err(Rejection::AtMost(_))),
                    "{} change, but {record:?}: {judged:?}",
                    asked.most
                );
            }
        }
    }
}

fn attacks_are_tried(problem: Problem, flips: Vec<Flip>) {
    let asked = Asked::new(problem);
    let mut record = asked.found.clone();
    (record.at_most, record.multipliers) = (record.targets, Vec::new());
    assert_eq!(asked.judged(&record, None), Ok(()), "the attack that was found");
    let of_graph = |flip: &Flip| flip.is_of(&asked.graph);
    record.flips = flips.into_iter().filter(of_graph).collect();
    let is_admissible = asked.problem.budget().limits(&asked.graph).unwrap().admits(&asked.graph, &record.flips);
    if is_admissible {
        let changed = changed(&asked.problem, &asked.classes, &record.flips);
        for node in asked.graph.node_ids() {
            record.changed = vec![node];
            match asked.judged(&record, None) {
                Ok(()) => assert!(changed.contains(&node) || asked.is_level(node), "{node} holds"),
                rejected => assert_eq!((rejected, changed.contains(&node)), (Err(Rejection::Holds(node)), false)),
            }
        }
        record.changed = changed.iter().chain(&changed).copied().collect();
        assert_eq!(asked.judged(&record, None).is_ok(), changed.is_empty(), "none counts twice");
    } else {
        assert_eq!(asked.judged(&record, None), Err(Rejection::Budget));
    }
}

proptest! {
    #![proptest_config(config(300))]

    #[test]
    fn fewer_than_change_are_never_accepted(problem in tiny(), others in multipliers()) {
        less_is_not_accepted(problem, others);
    }

    #[test]
    fn nor_of_single_flips(problem in tiny(), others in multipliers()) {
        less_is_not_accepted(Problem { global: 1, ..problem }, others);
    }

    #[test]
    fn what_engines_find_is_accepted_in_exact_radii(problem in tiny()) {
        let asked = Asked::new(problem);
        let judged = asked.judged(&asked.found, Some(&asked.radii));
        let is_level = asked.graph.node_ids().any(|node| asked.is_level(node));
        prop_assert!(judged.is_ok() || is_level, "{judged:?} of {:?}", asked.found);
    }
}

proptest! {
    #![proptest_config(config(150))]

    #[test]
    fn nor_where_rows_are_normalised(problem in with_normalised_rows(tiny()), others in multipliers()) {
        less_is_not_accepted(problem, others);
    }

    #[test]
    fn nor_of_real_values(problem in with_values(problems_of_terms(TINY, 4), TINY), others in multipliers()) {
        less_is_not_accepted(problem, others);
    }

    #[test]
    fn only_attacks_that_change_a_prediction_are_accepted(
        problem in tiny(),
        flips in prop::collection::vec((0u32..6, 0u32..6, any::<bool>()), 0..4),
    ) {
        let flip = |(node, attribute, adds)| Flip { node: NodeId(node), attribute: nodeproof::AttributeId(attribute), to: f64::from(u8::from(adds)) };
        attacks_are_tried(problem, flips.into_iter().map(flip).collect());
    }
}

/// What is said of a problem with multipliers of plain gain cuts, given that this many predictions change at most.
fn judged_by_gains(problem: Problem, multipliers: &[(u32, f64)], most: usize) {
    let asked = Asked::new(problem);
    assert_eq!(asked.most, most, "as many change");
    let mut record = Collective::new(asked.found.global, asked.found.targets);
    let of = |&(node, by): &(u32, f64)| CutMultipliers {
        node: NodeId(node),
        withstands: 0,
        count: 0.0,
        gains: vec![(0.0, by)],
    };
    record.multipliers = multipliers.iter().map(of).collect();
    for (at_most, is_right) in [(most - 1, false), (most, true)] {
        record.at_most = at_most;
        assert_eq!(asked.judged(&record, None).is_ok(), is_right, "at most {at_most}");
    }
}

/// A linear network of two classes, of which the first leads by 1; each attribute takes so much.
fn taking(parts: &[f64], problem: Problem) -> Problem {
    let weight = parts.iter().flat_map(|&part| [0.0, part]).collect();
    let layers = vec![Dense { inputs: parts.len(), outputs: 2, weight, bias: vec![1.0, 0.0] }];
    Problem { attributes: parts.len(), layers, ..problem }
}

/// Node 0 reads one flip of node 1 and four of node 2, none of which is listed: 0.85 and four times 0.04.
#[test]
fn rows_that_are_read_little_take_what_their_flips_do() {
    let spread = Spread::Custom(vec![(0, 1, 1.0), (0, 2, 0.0469)]);
    let alone = Problem::one_node(4, vec![]);
    let of = Problem { nodes: 3, labels: vec![0; 3], spread, global: 5, local_at: vec![(0, 0), (1, 1)], ..alone };
    judged_by_gains(taking(&[0.85; 4], of), &[(0, 1.0)], 1);
}

/// Nodes 0 and 1 read node 2, of which five flips change both; a third class of node 0 depends on node 3 alone.
#[test]
fn rows_take_the_most_of_all_classes() {
    let parts = [0.85, 0.0399, 0.0399, 0.0399, 0.0399];
    let none = Activation::None;
    let units = parts.into_iter().flat_map(|part| [part, 0.2005]).collect();
    let hidden = LayerOfTerms { terms: vec![(Source::Attributes, 0, Ok(units))], bias: vec![0.0; 2], activation: none };
    let (first, second) = (vec![0.0, 1.0, 0.0, 0.0, 0.0, 0.0], vec![0.0, 0.0, 0.0, 0.0, 0.0, 1.0]);
    let terms = vec![(Source::Layer(0), 1, Ok(first)), (Source::Layer(0), 2, Ok(second))];
    let last = LayerOfTerms { terms, bias: vec![1.0, 0.0, 0.0], activation: none };
    let read =
        |entries: &[(u32, u32)]| Spread::Custom(entries.iter().map(|&(reads, from)| (reads, from, 1.0)).collect());
    let spreads = vec![Spread::Identity, read(&[(0, 2), (1, 2)]), read(&[(0, 3)])];
    let terms = Some(Terms { spreads, layers: vec![hidden, last] });
    let (alone, local_at) = (Problem::one_node(5, vec![]), vec![(0, 0), (1, 0)]);
    let of = Problem { nodes: 4, labels: vec![0; 4], terms, global: 5, local_at, ..alone };
    judged_by_gains(of, &[(0, 0.1), (1, 1.0)], 2);
}

/// Where rows are divided by the number of their ones, an attribute without weight takes of the others.
#[test]
fn single_flips_of_divided_rows_are_not_told_by_their_weights() {
    let layers = vec![Dense { inputs: 2, outputs: 2, weight: vec![4.0, 0.0, 0.0, 0.0], bias: vec![0.0, 3.0] }];
    let kind = AttributeKind::NormalisedRows;
    let alone = Problem::one_node(2, layers);
    let of = Problem { kind, ones: vec![(0, 0)], direction: Direction::AddOnly, global: 1, ..alone };
    let asked = Asked::new(of);
    let mut record = Collective::new(1, 1);
    record.at_most = 0;
    assert_eq!(asked.most, 1);
    assert_eq!(asked.judged(&record, None), Err(Rejection::AtMost(1.0)));
}

#[test]
fn as_many_targets_count_as_it_says() {
    let asked = Asked::new(taking(&[0.5], Problem { global: 1, ..Problem::one_node(1, vec![]) }));
    for (targets, judged) in [(1, Ok(())), (2, Err(Rejection::Targets))] {
        assert_eq!(asked.judged(&Collective::new(1, targets), None), judged);
    }
}

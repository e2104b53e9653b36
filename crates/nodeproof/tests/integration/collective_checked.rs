//! The checker of collective certificates: every admissible set of tiny problems, counted in exact arithmetic, and any multipliers.
use std::ops::ControlFlow;

use nodeproof::results::{Collectives, Header, Radii};
use nodeproof::{CertifySettings, ClassId, Collective, CutMultipliers, Engine, Flip, Graph, Model, NodeId, Radius};
use nodeproof_check::{CollectiveChecker, KnownRadii, Rejection, Shares};
use proptest::prelude::*;

use crate::brute_force::{CLOSE, SETS};
use crate::collective::{changed, tiny};
use crate::common::seed::config;
use crate::common::{Problem, TINY, problems_of_terms, with_normalised_rows, with_values};

/// A problem, all of its sets, and what the engines say of it.
struct Asked {
    problem: Problem,
    graph: Graph,
    model: Model,
    settings: CertifySettings,
    classes: Vec<ClassId>,
    radii: Vec<Radius>,
    found: Collective,
    /// Most predictions that a set changes.
    most: usize,
}

impl Asked {
    fn new(problem: Problem) -> Self {
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

    fn judged(&self, record: &Collective, radii: Option<&[Radius]>) -> Result<(), Rejection> {
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

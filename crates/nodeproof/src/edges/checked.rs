//! The checker, which shares no code with the engines, held against all admissible sets of deletions.

use std::cell::RefCell;
use std::cmp::Ordering;
use std::collections::BTreeMap;

use nodeproof_check::{Checker, NotAccepted, Rejection};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use super::tests::{NODES, Tiny, admissible, tiny};
use crate::budget::{Budget, EdgeBudget, LocalBudget};
use crate::certificate::{Bound, Certificate, Evidence, Witness, smallest};
use crate::dense::Matrix;
use crate::edge::Edge;
use crate::exact::compare_margin;
use crate::flip::Flip;
use crate::graph::{Graph, GraphOptions};
use crate::ids::{AttributeId, ClassId, NodeId};
use crate::model::{Model, Propagation};
use crate::network::{Network, largest};
use crate::radius::{Found, Radius};
use crate::results::{Certificates, Header, Results};
use crate::run::Certifier;
use crate::settings::{Arithmetic, CertifySettings, Engine, TargetClass};

fn checker(of: &Tiny) -> Checker<'_> {
    Checker::new(&of.graph, &of.model, of.budget.limits(&of.graph).unwrap(), TargetClass::Predicted).unwrap()
}

/// A certificate about the target, with the same bound on all margins.
fn forged(of: &Tiny, evidence: Evidence, bound: Bound) -> Certificate {
    let network = Network::new(&of.graph, &of.model).unwrap();
    let y = largest(network.logits().row(of.target.index()));
    let margins = (0..of.model.classes()).map(|k| (k != y.index()).then_some(bound)).collect();
    Certificate::new(of.target, y, y, evidence, margins)
}

/// How the margin of a certificate's class over another one compares with a number without some edges.
fn compared(of: &Tiny, certificate: &Certificate, edges: &[Edge], k: ClassId, with: f64) -> Ordering {
    let left = of.graph.without_edges(edges).unwrap();
    compare_margin(&Network::new(&left, &of.model).unwrap(), of.target, &[], (certificate.class, k), with)
}

fn others(of: &Tiny, certificate: &Certificate) -> Vec<ClassId> {
    (0..of.model.classes() as u32).map(ClassId).filter(|&k| k != certificate.class).collect()
}

/// The smallest margin over all admissible sets, as a double near it.
fn least(of: &Tiny, certificate: &Certificate) -> f64 {
    let margins = admissible(of).into_iter().flat_map(|set| {
        let left = of.graph.without_edges(&set).unwrap();
        let logits = Network::new(&left, &of.model).unwrap();
        let row = logits.logits().row(of.target.index()).to_vec();
        others(of, certificate).into_iter().map(move |k| row[certificate.class.index()] - row[k.index()])
    });
    margins.fold(f64::INFINITY, f64::min)
}

proptest! {
    #![proptest_config(crate::seed::config(400))]

    /// Of deletions alone the checker decides: it accepts what is true, and nothing else.
    #[test]
    fn robust_verdicts_are_accepted_if_they_are_right(of in tiny(0..=3), part in prop::sample::select(vec![0.0, 0.5, 1.0, 1.5])) {
        let bound = if part == 0.0 { Bound::Positive } else { Bound::AtLeast(part) };
        let mut forged = forged(&of, Evidence::Robust, bound);
        if part > 0.0 {
            let bound = Bound::AtLeast(part * least(&of, &forged));
            forged.margins.iter_mut().flatten().for_each(|margin| *margin = bound);
        }
        let said = forged.margin();
        let holds = |set: &Vec<Edge>, k| {
            compared(&of, &forged, set, k, 0.0) == Ordering::Greater
                && compared(&of, &forged, set, k, said.value()) != Ordering::Less
        };
        let all_hold = admissible(&of).iter().all(|set| others(&of, &forged).into_iter().all(|k| holds(set, k)));
        let is_right = said.is_positive() && all_hold;
        prop_assert_eq!(checker(&of).certificate(&forged).is_ok(), is_right, "{:?}", checker(&of).certificate(&forged));
    }

    /// Witnesses of any edges, some of which the graph does not have, or may not lose, or twice.
    #[test]
    fn witnesses_are_accepted_if_they_are_right(
        of in tiny(0..=3),
        pairs in prop::collection::vec((0..NODES, 0..=NODES), 0..3),
        real in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
        k in 0..3u32,
        margin in prop::sample::select(vec![-0.5, -1e-3, 0.0, 0.25]),
    ) {
        let chance = pairs.into_iter().filter_map(|(a, b)| Edge::between(NodeId(a), NodeId(b)));
        let all: Vec<Edge> =
            of.graph.adjacency().iter().filter_map(|(a, b)| Edge::between(NodeId(a), NodeId(b))).collect();
        let some = real.iter().filter(|_| !all.is_empty()).map(|index| all[index.index(all.len())]);
        let mut edges: Vec<Edge> = if margin == -0.5 { chance.chain(some).collect() } else { some.collect() };
        edges.sort_unstable();
        let k = ClassId(k % of.model.classes() as u32);
        let evidence = Evidence::Witness(Witness::new(Vec::new(), k, margin).with_edges(edges.clone()));
        let forged = forged(&of, evidence, Bound::Unknown);
        let is_right = k != forged.class
            && admissible(&of).contains(&edges)
            && margin <= 0.0
            && compared(&of, &forged, &edges, k, margin) != Ordering::Greater;
        prop_assert_eq!(checker(&of).certificate(&forged).is_ok(), is_right, "{:?}", forged);
    }

    #[test]
    fn certificates_and_radii_are_accepted(of in tiny(0..=2)) {
        let nodes: Vec<NodeId> = of.graph.node_ids().collect();
        let certifier = || {
            Certifier::new(&of.graph, &of.model).unwrap().budget(of.budget.clone()).engine(Engine::Complete).threads(1)
        };
        for certificate in certifier().certify(&nodes).unwrap() {
            prop_assert_eq!(checker(&of).certificate(&certificate), Ok(()), "{:?}", certificate);
        }
        for radius in certifier().radii(&nodes, of.budget.varied()).unwrap() {
            prop_assert_eq!(checker(&of).radius(&radius), Ok(()), "{:?}", radius);
            let Some(from) = radius.nonrobust_from() else { continue };
            let mut larger = radius.clone();
            larger.robust_up_to = Some(from);
            let found = larger.found.as_mut().unwrap();
            (found.nonrobust_from, found.witness, found.exact) = (None, None, from == of.budget.varied());
            prop_assert!(checker(&of).radius(&larger).is_err(), "{larger:?} is accepted, but the radius is {radius:?}");
            let mut smaller = radius.clone();
            let found = smaller.found.as_mut().unwrap();
            if found.witness.as_mut().unwrap().edges.pop().is_some() {
                found.nonrobust_from = Some(from - 1);
                prop_assert!(checker(&of).radius(&smaller).is_err(), "{smaller:?} is accepted: {radius:?}");
            }
        }
    }
}

/// What reader and checker say to a file.
fn judge(certificates: &Certificates, graph: &Graph, model: &Model) -> Result<(), String> {
    let mut bytes = Vec::new();
    certificates.write(&mut bytes).unwrap();
    judge_bytes(&bytes, graph, model)
}

fn judge_bytes(bytes: &[u8], graph: &Graph, model: &Model) -> Result<(), String> {
    let results = Results::read_from(bytes, "file").map_err(|error| error.to_string())?;
    let Results::Certificates(read) = results else { return Err("something else".to_owned()) };
    let checker = Checker::of(&read.header, graph, model).map_err(|error| error.to_string())?;
    read.records.iter().try_for_each(|record| checker.certificate(record).map_err(|error| error.to_string()))
}

/// Files that were tampered with, with hashes that fit: what was done, and the file.
fn tampered(certificates: &Certificates, absent: Edge, choice: usize) -> Vec<(&'static str, Certificates)> {
    let mut all = Vec::new();
    for (place, record) in certificates.records.iter().enumerate() {
        let mut add = |kind, change: &dyn Fn(&mut Certificates)| {
            let mut other = certificates.clone();
            change(&mut other);
            other.records.iter_mut().for_each(|record| record.worst_class = smallest(&record.margins).0);
            all.push((kind, other));
        };
        let of_budget = |of: &mut Certificates, change: &dyn Fn(EdgeBudget) -> EdgeBudget| {
            let budget = of.header.budget.clone();
            let edges = change(budget.edges().unwrap().clone());
            of.header.budget = budget.delete_edges(edges);
        };
        add("margin", &|of| {
            let margins = of.records[place].margins.iter_mut().flatten();
            margins.for_each(|margin| *margin = Bound::AtLeast(1e6));
        });
        let Evidence::Witness(witness) = &record.evidence else {
            add("verdict", &|of| {
                let class = ClassId(u32::from(record.class == ClassId(0)));
                of.records[place].evidence = Evidence::Witness(Witness::new(Vec::new(), class, 0.0));
                of.records[place].margins.iter_mut().flatten().for_each(|margin| *margin = Bound::Unknown);
            });
            continue;
        };
        let with = |edges: Vec<Edge>, margin: f64| {
            move |of: &mut Certificates| {
                let other = Witness::new(Vec::new(), witness.class, margin).with_edges(edges.clone());
                of.records[place].evidence = Evidence::Witness(other);
            }
        };
        add("verdict", &|of| {
            of.records[place].margins.iter_mut().flatten().for_each(|margin| *margin = Bound::Positive);
            of.records[place].evidence = Evidence::Robust;
        });
        add("witness margin", &with(witness.edges.clone(), witness.margin - 1e6));
        add("absent edge", &with([&witness.edges[..], &[absent]].concat(), witness.margin));
        if !witness.edges.is_empty() {
            let edge = witness.edges[choice % witness.edges.len()];
            add("no deletions", &with(Vec::new(), witness.margin.min(-1e-300)));
            add("edge twice", &with([&witness.edges[..], &[edge]].concat(), witness.margin));
            add("global budget", &|of| of_budget(of, &|edges| edges.with_global(witness.edges.len() as u32 - 1)));
            add("budget of a node", &|of| of_budget(of, &|edges| edges.at_node(0)));
            add("protected edge", &|of| of_budget(of, &|edges| edges.protect([edge])));
            add("protected node", &|of| of.header.budget = of.header.budget.clone().protect_nodes([edge.ends()[1]]));
            add("budget of flips alone", &|of| of.header.budget = Budget::new(0, LocalBudget::Count(0)));
            add("flip", &|of| {
                let flip = Flip { node: record.node, attribute: AttributeId(0), to: 1.0 };
                let other = Witness::new(vec![flip], witness.class, witness.margin).with_edges(witness.edges.clone());
                of.records[place].evidence = Evidence::Witness(other);
            });
        }
    }
    all
}

#[test]
fn no_tampered_file_is_accepted() {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let counted = RefCell::new(&mut counts);
    let count = |kind| *counted.borrow_mut().entry(kind).or_default() += 1;
    let run = |(of, choice): (Tiny, usize)| {
        let nodes: Vec<NodeId> = of.graph.node_ids().collect();
        let pairs = nodes.iter().flat_map(|&a| nodes.iter().filter_map(move |&b| Edge::between(a, b)));
        let Some(absent) = { pairs }.find(|edge| !edge.is_of(&of.graph)) else { return Ok(()) };
        let settings = CertifySettings::new(of.budget.clone());
        let mut certificates = Certificates::new(Header::new(&of.graph, &of.model, &settings, nodes.len()));
        let certify = |budget: &Budget| {
            let certifier = Certifier::new(&of.graph, &of.model).unwrap().budget(budget.clone());
            certifier.engine(Engine::Complete).threads(1).certify(&nodes).unwrap()
        };
        certificates.records = certify(&of.budget);
        prop_assert_eq!(judge(&certificates, &of.graph, &of.model), Ok(()));
        let raised = of.budget.clone().with_varied(of.budget.varied() + 1);
        let is_lost = |(of, under_more): (&Certificate, &Certificate)| of.is_robust() && under_more.witness().is_some();
        if certificates.records.iter().zip(&certify(&raised)).any(is_lost) {
            let mut other = certificates.clone();
            other.header.budget = raised;
            prop_assert!(judge(&other, &of.graph, &of.model).is_err(), "more deletions get through: {other:?}");
            count("raised budget");
        }
        for (kind, other) in tampered(&certificates, absent, choice) {
            prop_assert!(judge(&other, &of.graph, &of.model).is_err(), "{kind} gets through: {other:?}");
            count(kind);
        }
        let mut bytes = Vec::new();
        certificates.write(&mut bytes).unwrap();
        prop_assert!(judge_bytes(&bytes[..choice % bytes.len()], &of.graph, &of.model).is_err(), "cut off");
        count("truncation");
        let mut lines: Vec<&[u8]> = bytes.split_inclusive(|&byte| byte == b'\n').collect();
        let place = choice % nodes.len();
        lines.swap(1 + place, 1 + (place + 1) % nodes.len());
        prop_assert!(judge_bytes(&lines.concat(), &of.graph, &of.model).is_err(), "another order");
        count("order");
        let mut model = of.model.clone();
        if let Some(weight) = model.tensors_mut().flatten().nth(choice % 2) {
            *weight = weight.next_up() + 1e-300;
        }
        prop_assert!(judge(&certificates, &of.graph, &model).is_err(), "another model");
        count("model");
        if let Some((a, b)) = of.graph.adjacency().iter().find(|(a, b)| a != b) {
            let edge = Edge::between(NodeId(a), NodeId(b)).unwrap();
            let left = of.graph.without_edges(&[edge]).unwrap();
            prop_assert!(judge(&certificates, &left, &of.model).is_err(), "another graph");
            count("graph");
        }
        Ok(())
    };
    TestRunner::new(crate::seed::config(200))
        .run(&(tiny(0..=2), 0..1_000_000usize), run)
        .unwrap_or_else(|failure| panic!("{failure}"));
    let is_enough = |(&kind, &count): (&&str, &usize)| count >= if kind == "raised budget" { 15 } else { 100 };
    assert!(counts.len() == 17 && counts.iter().all(is_enough), "{counts:?}");
}

/// A node that is joined to so many others, and a network that sees all of it.
fn star(leaves: u32, edges: EdgeBudget) -> Tiny {
    let pairs: Vec<(u32, u32)> = (1..=leaves).map(|leaf| (0, leaf)).collect();
    let ones: Vec<(u32, u32)> = (0..=leaves).map(|node| (node, 0)).collect();
    let graph = Graph::new(leaves as usize + 1, 1, &pairs, &ones).unwrap();
    let layer = (Matrix::from_values(1, 2, vec![1.0, 0.0]), vec![1.0, 0.0]);
    let model = Model::gcn(vec![layer], Propagation::SymmetricGcn).unwrap();
    let budget = Budget::new(0, LocalBudget::Count(0)).delete_edges(edges);
    Tiny { graph, model, budget, target: NodeId(0) }
}

#[test]
fn too_many_sets_are_not_gone_through() {
    let not_checked = Err(NotAccepted::NotChecked);
    let judged = |leaves: u32, edges: EdgeBudget, target: u32| {
        let of = Tiny { target: NodeId(target), ..star(leaves, edges) };
        checker(&of).certificate(&forged(&of, Evidence::Robust, Bound::Positive))
    };
    assert_eq!(judged(199, EdgeBudget::new(2), 0), Ok(()), "1 + 199 + 199 · 198 / 2 = 19,901 sets");
    assert_eq!(judged(200, EdgeBudget::new(2), 0), not_checked, "20,101 sets");
    assert_eq!(judged(200, EdgeBudget::new(2).keep_one(true), 0), Ok(()), "no leaf may lose its edge");
    assert_eq!(judged(30_000, EdgeBudget::new(1), 0), not_checked);
    assert_eq!(judged(30_000, EdgeBudget::new(10), 1), Ok(()), "it does not matter which other edges go");
    let words = judged(200, EdgeBudget::new(2), 0).unwrap_err().to_string();
    assert_eq!(words, "there are more than 20000 sets of deletions, of which at most single deletions were tried");
}

/// What is wrong is rejected, although there are too many sets: a margin with all edges, one without an edge, a witness.
#[test]
fn what_is_wrong_where_sets_are_too_many_is_rejected() {
    let of = star(200, EdgeBudget::new(2));
    let class = ClassId(1);
    let robust = |bound| checker(&of).certificate(&forged(&of, Evidence::Robust, bound));
    // 1 + 1/201 + 200/√(2 · 201) with all edges, and less without one.
    let margin = |degree: f64| 1.0 + 1.0 / degree + (degree - 1.0) / (2.0 * degree).sqrt();
    assert_eq!(robust(Bound::AtLeast(margin(200.0) - 1e-9)), Err(NotAccepted::NotChecked));
    let Err(NotAccepted::Rejected(Rejection::Unlinked(k, edges))) = robust(Bound::AtLeast(margin(200.0) + 1e-9)) else {
        panic!("a deletion makes it smaller")
    };
    assert_eq!((k, edges.len()), (class, 1));
    assert_eq!(robust(Bound::AtLeast(margin(201.0) + 1e-9)), Err(Rejection::Overclaimed(class).into()));
    let radius = |up_to: u32, found: Option<Witness>| {
        let mut all = Found::of_class(Some(ClassId(0)));
        all.nonrobust_from = found.as_ref().map(|witness| witness.edges.len() as u32);
        (all.exact, all.witness) = (found.is_none(), found);
        checker(&of).radius(&Radius::new(of.target, &of.graph, Some(up_to), Some(all)))
    };
    assert_eq!(radius(2, None), Err(NotAccepted::NotChecked));
    let edge = |leaf| Edge::between(of.target, NodeId(leaf)).unwrap();
    let witness = Witness::new(Vec::new(), class, -0.1).with_edges(vec![edge(1), edge(2)]);
    assert_eq!(radius(2, Some(witness)), Err(Rejection::Witness(class).into()));
}

/// Node 0 reads what its neighbours 1 and 2 have, and their degrees; it does not see the other ends of their other edges.
#[test]
fn deletions_beyond_what_is_seen_count_by_their_number() {
    let judged = |edges: &[(u32, u32)], bias: f64, budget: EdgeBudget| {
        let graph = Graph::new(5, 1, edges, &[(1, 0), (2, 0)]).unwrap();
        let layer = (Matrix::from_values(1, 2, vec![-1.0, 0.0]), vec![bias, 0.0]);
        let model = Model::gcn(vec![layer], Propagation::SymmetricGcn).unwrap();
        let budget = Budget::new(0, LocalBudget::Count(0)).delete_edges(budget);
        let of = Tiny { graph, model, budget, target: NodeId(0) };
        checker(&of).certificate(&forged(&of, Evidence::Robust, Bound::Positive))
    };
    let edge = |a, b| Edge::between(NodeId(a), NodeId(b)).unwrap();
    // 0.45 − 1/√(2 · 4), then 0.45 − 1/√(2 · 3), then 0.45 − 1/√(2 · 2).
    let leaves = [(0, 1), (1, 3), (1, 4)];
    assert_eq!(judged(&leaves, 0.45, EdgeBudget::new(1)), Ok(()));
    let both = Rejection::Unlinked(ClassId(1), vec![edge(1, 3), edge(1, 4)]).into();
    assert_eq!(judged(&leaves, 0.45, EdgeBudget::new(2)), Err(both), "one alone is not enough");
    // 0.72 − 1/√(3 · 3) − 1/√(3 · 2) < 0 without 1–4 and 2–3, and nothing else does it: 1–3 and 2–3 have an end in common.
    let shared = [(0, 1), (0, 2), (1, 3), (2, 3), (1, 4)];
    let one_each = Rejection::Unlinked(ClassId(1), vec![edge(1, 4), edge(2, 3)]).into();
    assert_eq!(judged(&shared, 0.72, EdgeBudget::new(2).at_node(1)), Err(one_each), "1–3 does not stand for 1–4");
    let protected = EdgeBudget::new(2).at_node(1).protect([edge(1, 4)]);
    assert_eq!(judged(&shared, 0.72, protected), Ok(()));
}

/// Doubles leave the sign of the margin open without edge 0–1, and exact numbers decide: 1/2 + 1/2 − 1 is a tie.
#[test]
fn ties_without_an_edge_are_found() {
    let graph = Graph::new(3, 1, &[(0, 1), (0, 2)], &[(0, 0), (1, 0), (2, 0)]).unwrap();
    let model = |bias: f64| {
        let layer = (Matrix::from_values(1, 2, vec![1.0, 0.0]), vec![bias, 0.0]);
        Model::gcn(vec![layer], Propagation::Adjacency).unwrap()
    };
    let budget = Budget::new(0, LocalBudget::Count(0)).delete_edges(EdgeBudget::new(1));
    let judged = |bias: f64| {
        let of = Tiny { graph: graph.clone(), model: model(bias), budget: budget.clone(), target: NodeId(0) };
        checker(&of).certificate(&forged(&of, Evidence::Robust, Bound::Positive))
    };
    let edge = Edge::between(NodeId(0), NodeId(1)).unwrap();
    assert_eq!(judged(-1.0), Err(Rejection::Unlinked(ClassId(1), vec![edge]).into()));
    assert_eq!(judged(f64::EPSILON / 2.0 - 1.0), Ok(()));
    let words = judged(-1.0).unwrap_err().to_string();
    assert_eq!(words, "the margin over class 1 is smaller than it says without the edges 0–1");
}

#[test]
fn what_cannot_be_checked_is_refused() {
    let refused = |graph: &Graph, propagation: Propagation, arithmetic: Arithmetic| {
        let layer = (Matrix::from_values(1, 2, vec![1.0, 0.0]), vec![0.0; 2]);
        let model = Model::gcn(vec![layer], propagation).unwrap();
        let budget = Budget::new(0, LocalBudget::Count(0)).delete_edges(EdgeBudget::new(1));
        let checker = Checker::new(graph, &model, budget.limits(graph).unwrap(), TargetClass::Predicted);
        let checker = checker.and_then(|checker| checker.asking(0.0, arithmetic));
        checker.err().map(|mismatch| mismatch.to_string())
    };
    let graph = Graph::new(3, 1, &[(0, 1), (1, 2)], &[]).unwrap();
    let directed = Graph::with_options(3, 1, &[(0, 1)], &[], GraphOptions::new().directed(true)).unwrap();
    let words = |of: &str| Some(format!("deletions of edges cannot be checked {of}"));
    assert_eq!(refused(&graph, Propagation::RowMean, Arithmetic::Exact), None);
    assert_eq!(
        refused(&directed, Propagation::RowMean, Arithmetic::Exact),
        words("in a graph with edges in one direction only")
    );
    let power = Propagation::power(Propagation::RowMean, 2);
    let expected = words("in a network with a propagation that does not follow from degrees");
    assert_eq!(refused(&graph, power, Arithmetic::Exact), expected);
    assert_eq!(refused(&graph, Propagation::RowMean, Arithmetic::F32), words("in an arithmetic that rounds"));
}

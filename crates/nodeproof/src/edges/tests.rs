//! Everything against all admissible sets, in exact arithmetic.

use std::cmp::Ordering;
use std::ops::ControlFlow;
use std::sync::Arc;

use nodeproof_check::Checker;
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;

use super::any_depth::AnyDepth;
use super::enumeration::Enumeration;
use super::evaluate::{Sent, logits};
use super::one_hidden::OneHidden;
use super::search::{Decision, Relaxation, Relaxed, Search};
use super::subproblem::Subproblem;
use super::{Copies, Losses, Problem};
use crate::attributes::AttributeKind;
use crate::budget::{Budget, EdgeBudget, LocalBudget};
use crate::certificate::{Bound, Certificate, Evidence, Obstacle};
use crate::dense::Matrix;
use crate::edge::Edge;
use crate::engines::patience::Patience;
use crate::exact::compare_margin;
use crate::flip::Flip;
use crate::graph::{Graph, GraphOptions};
use crate::ids::{AttributeId, ClassId, NodeId};
use crate::model::{Activation, Layer, Model, Propagation, Source, Term};
use crate::network::{Network, largest};
use crate::prepare::Prepared;
use crate::relax::Slopes;
use crate::run::{Certifier, Event, Finish};
use crate::settings::{Engine, TargetClass};
use crate::train::RobustLoss;

/// A tiny problem.
#[derive(Debug, Clone)]
pub(super) struct Tiny {
    pub(super) graph: Graph,
    pub(super) model: Model,
    pub(super) budget: Budget,
    pub(super) target: NodeId,
}

impl Tiny {
    /// The same problem with attributes of another kind.
    fn of_kind(self, kind: AttributeKind) -> Self {
        Self { graph: self.graph.with_kind(kind), model: self.model.with_kind(kind), ..self }
    }
}

pub(super) const NODES: u32 = 7;
const ATTRIBUTES: usize = 3;

fn propagations() -> impl Strategy<Value = Propagation> {
    let of = prop::sample::select(vec![
        Propagation::SymmetricGcn,
        Propagation::SymmetricGcn,
        Propagation::RowNormalised,
        Propagation::RowMean,
        Propagation::Adjacency,
    ]);
    (of, prop::option::weighted(0.2, (-1.0..1.5f64, -1.0..1.5f64))).prop_map(|(of, sum)| match sum {
        None => of,
        Some((constant, linear)) => Propagation::Polynomial { of: Box::new(of), coefficients: vec![constant, linear] },
    })
}

/// Whole numbers make ties, others do not; products of some underflow.
fn numbers(count: usize) -> impl Strategy<Value = Vec<f64>> {
    let minute = (-1.0..1.0f64, prop::sample::select(vec![0, 0, 0, -140, -600, -1060]));
    prop_oneof![
        6 => prop::collection::vec(-1.0..1.0f64, count),
        2 => prop::collection::vec((-2..=2i8).prop_map(f64::from), count),
        1 => prop::collection::vec(minute.prop_map(|(x, power)| x * 2f64.powi(power)), count),
    ]
}

fn matrix(rows: usize, columns: usize) -> impl Strategy<Value = Matrix> {
    numbers(rows * columns).prop_map(move |values| Matrix::from_values(rows, columns, values))
}

/// Layers with one propagation, the identity beside it or not, and so many hidden layers.
fn models(hidden: std::ops::RangeInclusive<usize>) -> impl Strategy<Value = Model> {
    (hidden, propagations(), 2..4usize, prop::sample::select(vec![0.0, 0.0, 0.25]), any::<[bool; 3]>()).prop_flat_map(
        |(hidden, propagation, classes, slope, [with_self, with_ones, skips])| {
            let widths: Vec<usize> = (0..hidden).map(|i| 4 - i).chain([classes]).collect();
            let mut layers = Vec::new();
            for (i, &units) in widths.iter().enumerate() {
                let (source, inputs) =
                    if i == 0 { (Source::Attributes, ATTRIBUTES) } else { (Source::Layer(i - 1), widths[i - 1]) };
                let more = (matrix(inputs, units), matrix(1, units), matrix(ATTRIBUTES, units));
                layers.push((Just(source), matrix(inputs, units), more, numbers(units)));
            }
            (layers, Just(propagation)).prop_map(move |(layers, propagation)| {
                let count = layers.len();
                let layer = |(i, (source, weight, (own, ones, skipped), bias)): (usize, _)| {
                    let mut terms = vec![Term::new(source, 0, Matrix::clone(&weight))];
                    if with_self {
                        terms.push(Term::new(source, 1, Matrix::clone(&own)));
                    }
                    if with_ones && i == 0 {
                        terms.push(Term::new(Source::Ones, 0, Matrix::clone(&ones)));
                    }
                    if skips && i + 1 == count && i > 0 {
                        terms.push(Term::new(Source::Attributes, 0, Matrix::clone(&skipped)));
                    }
                    let activation = match slope {
                        _ if i + 1 == count => Activation::None,
                        0.0 => Activation::Relu,
                        slope => Activation::LeakyRelu(slope),
                    };
                    Layer::new(terms, bias, activation)
                };
                let layers = layers.into_iter().enumerate().map(layer).collect();
                Model::new(ATTRIBUTES, vec![propagation, Propagation::Identity], layers).unwrap()
            })
        },
    )
}

fn graphs() -> impl Strategy<Value = Graph> {
    let edges = prop::collection::vec((0..NODES, 0..NODES), 3..12);
    let ones = prop::collection::vec((0..NODES, 0..ATTRIBUTES as u32), 0..14);
    (edges, ones, prop::bool::weighted(0.2)).prop_map(|(edges, ones, loops)| {
        let options = GraphOptions::new().keep_self_loops(loops);
        Graph::with_options(NODES as usize, ATTRIBUTES, &edges, &ones, options).unwrap()
    })
}

fn budgets() -> impl Strategy<Value = EdgeBudget> {
    (0..4u32, prop::option::weighted(0.3, 0..3u32), prop::bool::weighted(0.3)).prop_map(|(global, at_node, keep)| {
        let budget = EdgeBudget::new(global).keep_one(keep);
        at_node.map_or(budget.clone(), |count| budget.at_node(count))
    })
}

/// Problems with so many hidden layers.
pub(super) fn tiny(hidden: std::ops::RangeInclusive<usize>) -> impl Strategy<Value = Tiny> {
    let protected = (prop::option::weighted(0.2, 0..NODES), prop::option::weighted(0.2, any::<prop::sample::Index>()));
    (graphs(), models(hidden), budgets(), protected, 0..NODES).prop_map(
        |(graph, model, edges, (node, index), target)| {
            let all = all_edges(&graph);
            let edge = index.filter(|_| !all.is_empty()).map(|index| all[index.index(all.len())]);
            let budget = Budget::new(0, LocalBudget::Count(1)).delete_edges(edges.protect(edge));
            let budget = budget.protect_nodes(node.map(NodeId));
            Tiny { graph, model, budget, target: NodeId(target) }
        },
    )
}

fn all_edges(graph: &Graph) -> Vec<Edge> {
    let pairs = graph.adjacency().iter().filter(|(a, b)| a < b);
    pairs.filter_map(|(a, b)| Edge::between(NodeId(a), NodeId(b))).collect()
}

/// All admissible sets, and the network without the edges of each.
pub(super) fn admissible(of: &Tiny) -> Vec<Vec<Edge>> {
    let limits = of.budget.limits(&of.graph).unwrap();
    let edges = all_edges(&of.graph);
    let subset = |bits: u32| edges.iter().enumerate().filter(move |(i, _)| bits >> i & 1 == 1).map(|(_, &edge)| edge);
    let sets = (0..1u32 << edges.len()).filter(|bits| bits.count_ones() <= 3).map(|bits| subset(bits).collect());
    sets.filter(|set: &Vec<Edge>| limits.edges().unwrap().admits(&of.graph, set)).collect()
}

impl Relaxation for Box<dyn Relaxation + '_> {
    fn bound(&mut self, sent: &mut Sent, sub: &Subproblem, y: ClassId, k: ClassId) -> Relaxed {
        (**self).bound(sent, sub, y, k)
    }

    fn candidates(&self) -> Vec<Edge> {
        (**self).candidates()
    }
}

/// A verdict on a tiny problem by a relaxation, without limits.
pub(super) fn decided(
    of: &Tiny,
    make: impl for<'p> Fn(&'p Problem<'p>, NodeId) -> Box<dyn Relaxation + 'p>,
) -> (ClassId, Decision) {
    decided_by(of, |problem, y| {
        Search::new(problem, make(problem, of.target), of.target, y).decide(Patience::endless())
    })
}

/// A verdict on a tiny problem about the class that is predicted.
pub(super) fn decided_by(of: &Tiny, decide: impl Fn(&Problem, ClassId) -> Decision) -> (ClassId, Decision) {
    let network = Network::new(&of.graph, &of.model).unwrap();
    let limits = of.budget.limits(&of.graph).unwrap();
    let problem = Problem::new(&network, limits.edges().unwrap()).unwrap();
    let y = largest(network.logits().row(of.target.index()));
    (y, decide(&problem, y))
}

/// That a verdict is what all admissible sets say, its witness one of them, and no bound above any margin.
pub(super) fn hold(of: &Tiny, y: ClassId, decision: &Decision) -> TestCaseResult {
    let sets = admissible(of);
    let graphs: Vec<Graph> = sets.iter().map(|set| of.graph.without_edges(set).unwrap()).collect();
    let others = || (0..of.model.classes() as u32).map(ClassId).filter(|&k| k != y);
    let margin = |graph: &Graph, k: ClassId, with: f64| {
        compare_margin(&Network::new(graph, &of.model).unwrap(), of.target, &[], (y, k), with)
    };
    let is_robust = graphs.iter().all(|graph| others().all(|k| margin(graph, k, 0.0) == Ordering::Greater));
    match &decision.evidence {
        Evidence::Robust => prop_assert!(is_robust, "a false certificate"),
        Evidence::Witness(witness) => {
            let place = sets.iter().position(|set| *set == witness.edges);
            prop_assert!(place.is_some(), "{:?} is not admissible", witness.edges);
            let found = margin(&graphs[place.unwrap()], witness.class, witness.margin);
            prop_assert!(witness.margin <= 0.0 && found != Ordering::Greater, "no witness: {witness:?}");
        }
        _ => prop_assert!(false, "undecided: {decision:?}"),
    }
    below(of, y, decision)
}

/// That no bound is above any margin.
pub(super) fn below(of: &Tiny, y: ClassId, decision: &Decision) -> TestCaseResult {
    let graphs: Vec<Graph> = admissible(of).iter().map(|set| of.graph.without_edges(set).unwrap()).collect();
    let margin = |graph: &Graph, k: ClassId, with: f64| {
        compare_margin(&Network::new(graph, &of.model).unwrap(), of.target, &[], (y, k), with)
    };
    for k in (0..of.model.classes() as u32).map(ClassId).filter(|&k| k != y) {
        if let Some(Bound::AtLeast(bound)) = decision.margins[k.index()]
            && bound.is_finite()
        {
            let is_above = graphs.iter().any(|graph| margin(graph, k, bound) == Ordering::Less);
            prop_assert!(!is_above, "the bound {bound} for class {k} is above a margin");
        }
    }
    Ok(())
}

/// The same with another bias of the last layer, so that the smallest margin over a class is this number, but for rounding.
fn next_to_a_tie(mut of: Tiny, by: f64) -> Tiny {
    let logits = |set: &Vec<Edge>| {
        let left = of.graph.without_edges(set).unwrap();
        Network::new(&left, &of.model).unwrap().logits_of(&[of.target]).row(0).to_vec()
    };
    let logits: Vec<Vec<f64>> = admissible(&of).iter().map(logits).collect();
    let y = largest(&logits[0]).index();
    let k = (y + 1) % of.model.classes();
    let least = logits.iter().map(|row| row[y] - row[k]).fold(f64::INFINITY, f64::min);
    of.model.tensors_mut().last().unwrap()[k] += least - by;
    of
}

proptest! {
    #![proptest_config(crate::seed::config(300))]

    /// Where only the worst sets change the class, or none just barely.
    #[test]
    fn thin_margins_are_decided(of in tiny(0..=3), by in -1.0..1.0f64, power in prop::sample::select(vec![-60, -45, -20, -5])) {
        let of = next_to_a_tie(of, by * 2f64.powi(power));
        for is_one_hidden in [false, true] {
            let (y, decision) = decided(&of, |problem, target| match OneHidden::new(problem, target) {
                Some(relaxation) if is_one_hidden => Box::new(relaxation),
                _ => Box::new(AnyDepth::new(problem, target)),
            });
            hold(&of, y, &decision)?;
        }
    }

    /// Evaluation after deletions is that of the graph without these edges.
    #[test]
    fn evaluation_is_that_of_the_graph_without_the_edges(of in tiny(0..=3), which in any::<prop::sample::Index>()) {
        let network = Network::new(&of.graph, &of.model).unwrap();
        let limits = of.budget.limits(&of.graph).unwrap();
        let problem = Problem::new(&network, limits.edges().unwrap()).unwrap();
        let sets = admissible(&of);
        let set = &sets[which.index(sets.len())];
        let sub = Subproblem { deleted: set.clone(), ..Subproblem::default() };
        let found = logits(&problem, &mut Sent::default(), &sub, of.target);
        let left = of.graph.without_edges(set).unwrap();
        let left = Network::new(&left, &of.model).unwrap();
        for y in 0..of.model.classes() {
            prop_assert!((found.values[y] - left.logits().get(of.target.index(), y)).abs() <= 2.0 * found.errors[y]);
            prop_assert!(found.errors[y] < 1e-9);
            for k in (0..of.model.classes()).filter(|&k| k != y) {
                let pair = (ClassId(y as u32), ClassId(k as u32));
                let (lower, upper) = found.margin(y, k);
                prop_assert!(compare_margin(&left, of.target, &[], pair, lower) != Ordering::Less);
                prop_assert!(compare_margin(&left, of.target, &[], pair, upper) != Ordering::Greater);
            }
        }
    }

    #[test]
    fn enumeration_decides(of in tiny(0..=3)) {
        let (y, decision) = decided(&of, |problem, target| Box::new(Enumeration::new(problem, target)));
        hold(&of, y, &decision)?;
    }

    #[test]
    fn one_hidden_layer_is_decided(of in tiny(1..=1)) {
        let (y, decision) = decided(&of, |problem, target| Box::new(OneHidden::new(problem, target).unwrap()));
        hold(&of, y, &decision)?;
    }

    /// The front says what the search says, of all nodes, and stands by its witnesses.
    #[test]
    fn certifiers_decide(of in tiny(0..=2)) {
        let certifier = Certifier::new(&of.graph, &of.model).unwrap().budget(of.budget.clone());
        let certifier = certifier.engine(Engine::Complete).threads(2);
        let nodes: Vec<NodeId> = of.graph.node_ids().collect();
        let recheck = certifier.recheck().unwrap();
        for certificate in certifier.certify(&nodes).unwrap() {
            let of = Tiny { target: certificate.node, ..of.clone() };
            prop_assert_eq!(recheck.certificate(&certificate), Ok(()));
            let Certificate { class, evidence, margins, branches, .. } = certificate;
            hold(&of, class, &Decision { evidence, margins, branches })?;
        }
    }

    /// Raised margins are known over all classes, no weaker than before, and above no margin.
    #[test]
    fn raised_margins_are_bounds(of in tiny(0..=2)) {
        let certifier = Certifier::new(&of.graph, &of.model).unwrap().budget(of.budget.clone());
        let certifier = certifier.engine(Engine::Complete).threads(1);
        let before = certifier.certify(&[of.target]).unwrap().remove(0);
        let mut raised = before.clone();
        let finish = certifier.raise_margins(&mut raised, || ControlFlow::Continue(()));
        prop_assert_eq!((finish.unwrap(), raised.verdict()), (Finish::Complete, before.verdict()));
        for (raised, before) in raised.margins.iter().flatten().zip(before.margins.iter().flatten()) {
            prop_assert!(*raised != Bound::Unknown && !raised.is_below(*before), "{raised:?}, and {before:?} before");
        }
        let Certificate { class, evidence, margins, branches, .. } = raised;
        below(&of, class, &Decision { evidence, margins, branches })?;
    }

    /// A radius is the largest number of deletions that changes nothing, and its witness has one more; several budgets in one pass are those
    /// alone.
    #[test]
    fn radii_are_where_verdicts_change(of in tiny(0..=1)) {
        let most = of.budget.varied();
        let certifier = |budget| {
            let certifier = Certifier::new(&of.graph, &of.model).unwrap().budget(budget);
            certifier.engine(Engine::Complete).threads(1)
        };
        let under = |global| certifier(of.budget.clone().with_varied(global)).certify(&[of.target]).unwrap().remove(0);
        let several: Vec<Certificate> = (0..=most).map(under).collect();
        let radius = certifier(of.budget.clone()).radii(&[of.target], most).unwrap().remove(0);
        let robust = several.iter().take_while(|certificate| certificate.is_robust()).count() as u32;
        prop_assert_eq!(radius.robust_up_to, robust.checked_sub(1));
        prop_assert_eq!(radius.nonrobust_from(), (robust <= most).then_some(robust));
        prop_assert_eq!(radius.witness().map(|witness| witness.edges.len() as u32), radius.nonrobust_from());
        prop_assert_eq!(certifier(of.budget.clone()).recheck().unwrap().radius(&radius), Ok(()));
        let (budgets, mut found): (Vec<u32>, _) = ((0..=most).collect(), Vec::new());
        let finish = certifier(of.budget.clone()).certify_budgets(&[of.target], &budgets, |_, event| {
            if let Event::Certified(certificate) = event {
                found.push(certificate);
            }
            ControlFlow::Continue(())
        });
        prop_assert_eq!(finish.unwrap(), Finish::Complete);
        for (mut one, mut other) in found.into_iter().zip(several) {
            (one.time, other.time) = (None, None);
            prop_assert_eq!(one, other);
        }
    }
}

/// Target 0 leads by 1/2 + 2 [it has node 2] − [it has node 1], after terms of 1e16 have cancelled each other: 3/2 with all edges, −1/2 without
/// the one to node 2. Doubles lose the −1 where the terms are added up.
#[test]
fn terms_that_cancel_are_not_trusted() {
    let graph = Graph::new(3, 2, &[(0, 1), (0, 2)], &[(1, 0), (2, 1)]).unwrap();
    let matrix = |values: [f64; 4]| Matrix::from_values(2, 2, values.to_vec());
    let last = [[1e16, 0.0, 2.0, 0.0], [-1.0, 0.0, 0.0, 0.0], [-1e16, 0.0, 0.0, 0.0]];
    let terms = last.map(|values| Term::new(Source::Layer(0), 0, matrix(values)));
    let first = Term::new(Source::Attributes, 1, matrix([1.0, 0.0, 0.0, 1.0]));
    let layers = vec![
        Layer::new(vec![first], vec![0.0; 2], Activation::Relu),
        Layer::new(terms.to_vec(), vec![0.5, 0.0], Activation::None),
    ];
    let model = Model::new(2, vec![Propagation::Adjacency, Propagation::Identity], layers).unwrap();
    let budget = Budget::new(0, LocalBudget::Count(1)).delete_edges(EdgeBudget::new(1));
    let of = Tiny { graph, model, budget, target: NodeId(0) };
    for relaxation in 0..2 {
        let (y, decision) = decided(&of, |problem, target| match relaxation {
            0 => Box::new(OneHidden::new(problem, target).unwrap()),
            _ => Box::new(AnyDepth::new(problem, target)),
        });
        hold(&of, y, &decision).unwrap();
        assert!(matches!(decision.evidence, Evidence::Witness(_)), "{decision:?}");
    }
}

/// More deletions than there are edges are all of them, in the time that these take.
#[test]
fn huge_budgets_are_those_of_all_edges() {
    let graph = Graph::new(5, 2, &[(0, 1), (1, 2), (2, 3), (3, 0), (3, 4)], &[(0, 0), (2, 1), (4, 1)]).unwrap();
    let layer = |values: Vec<f64>| (Matrix::from_values(2, 2, values), vec![0.1, 0.0]);
    let layers = vec![layer(vec![1.0, -0.5, 0.3, 1.0]), layer(vec![1.0, -1.0, -0.5, 0.5])];
    let model = Model::gcn(layers, Propagation::SymmetricGcn).unwrap();
    let nodes: Vec<NodeId> = graph.node_ids().collect();
    let under = |global| {
        let budget = Budget::new(0, LocalBudget::Count(1)).delete_edges(EdgeBudget::new(global));
        let certifier = Certifier::new(&graph, &model).unwrap().budget(budget).engine(Engine::Complete);
        let found = certifier.certify(&nodes).unwrap();
        found.iter().map(|certificate| certificate.verdict()).collect::<Vec<_>>()
    };
    assert_eq!(under(u32::MAX), under(5));
}

/// All sets of at most so many flips that the budget admits.
fn flips(of: &Tiny) -> Vec<Vec<Flip>> {
    let limits = of.budget.limits(&of.graph).unwrap();
    let nodes = of.graph.node_ids();
    let one = nodes.flat_map(|node| (0..ATTRIBUTES as u32).map(move |d| (node, AttributeId(d))));
    let one: Vec<Flip> = one.map(|(node, attribute)| Flip::of(&of.graph, node, attribute)).collect();
    let pairs = one.iter().enumerate().flat_map(|(i, &a)| one[..i].iter().map(move |&b| vec![a, b]));
    let sets = std::iter::once(Vec::new()).chain(one.iter().map(|&flip| vec![flip])).chain(pairs);
    sets.filter(|set| limits.admits(&of.graph, set)).collect()
}

fn kinds() -> impl Strategy<Value = AttributeKind> {
    let kinds = [AttributeKind::Bits, AttributeKind::Bits, AttributeKind::NormalisedRows, AttributeKind::RealValues];
    prop::sample::select(kinds.to_vec())
}

/// Whether logits are the same but for rounding.
fn is_near(found: &[f64], expected: &[f64]) -> bool {
    found.iter().zip(expected).all(|(found, expected)| (found - expected).abs() <= 1e-9 * (1.0 + expected.abs()))
}

proptest! {
    #![proptest_config(crate::seed::config(400))]

    /// A copy has the logits of the graph without its edge, and an edge without a copy changes none.
    #[test]
    fn copies_are_of_the_graph_without_an_edge((of, kind) in (tiny(0..=3), kinds())) {
        let of = of.of_kind(kind);
        let budget = of.budget.clone().delete_edges(EdgeBudget::new(1));
        let limits = budget.limits(&of.graph).unwrap();
        let network = Network::new(&of.graph, &of.model).unwrap();
        let problem = Problem::new(&network, limits.edges().unwrap()).unwrap();
        let mut edges = problem.single_deletions(of.target).into_iter();
        let copies = Copies::new(&network, of.target, &mut edges).unwrap();
        let of_copies = Network::new(&copies.graph, &copies.model).unwrap();
        let logits = |node: usize| of_copies.logits_of(&[NodeId(node as u32)]).values().to_vec();
        let as_it_is = network.logits_of(&[of.target]);
        prop_assert!(is_near(&logits(0), as_it_is.values()));
        for edge in all_edges(&of.graph).into_iter().filter(|&edge| limits.edges().unwrap().may_delete(edge)) {
            let left = of.graph.without_edges(&[edge]).unwrap();
            let expected = Network::new(&left, &of.model).unwrap().logits_of(&[of.target]);
            let copy = copies.edges.iter().position(|&other| other == edge);
            prop_assert!(is_near(&copy.map_or(as_it_is.values().to_vec(), |copy| logits(copy + 1)), expected.values()));
        }
    }
}

/// What the deletion of each edge that matters takes from the margins at most, beside flips of the budget.
fn losses(of: &Tiny, y: ClassId) -> Vec<(Edge, Vec<f64>)> {
    let limits = of.budget.limits(&of.graph).unwrap();
    let network = Network::new(&of.graph, &of.model).unwrap();
    let problem = Problem::new(&network, limits.edges().unwrap()).unwrap();
    let mut edges = problem.single_deletions(of.target).into_iter();
    let copies = Copies::new(&network, of.target, &mut edges).unwrap();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let prepared = Prepared::new(&network, &[of.target], &Slopes::Default, &pool);
    let shard = prepared.shard(&limits, &[of.target], &pool, |_, _| ControlFlow::Continue(())).unwrap();
    let losses = Losses::new(&shard).unwrap().of(&copies, y);
    copies.edges.into_iter().zip(losses).collect()
}

proptest! {
    #![proptest_config(crate::seed::config(100))]

    /// No flips make an edge take more from a margin than is said, and without flips it takes just that.
    #[test]
    fn an_edge_takes_no_more_than_its_loss((of, kind) in (tiny(0..=3), kinds()), global in 0..3u32, local in 1..3u32) {
        let budget = of.budget.clone().delete_edges(EdgeBudget::new(1)).with_global(global).local_at(of.target, local);
        let of = Tiny { budget, ..of }.of_kind(kind);
        let network = Network::new(&of.graph, &of.model).unwrap();
        let y = Network::predicted(network.logits_of(&[of.target]).row(0));
        let flips = flips(&of);
        for (edge, losses) in losses(&of, y) {
            let left = of.graph.without_edges(&[edge]).unwrap();
            let left = Network::new(&left, &of.model).unwrap();
            for (k, &loss) in losses.iter().enumerate() {
                let lead = |network: &Network, flips: &[Flip]| {
                    let logits = network.logits_under(of.target, flips);
                    logits[y.index()] - logits[k]
                };
                for flips in &flips {
                    let taken = lead(&network, flips) - lead(&left, flips);
                    prop_assert!(taken <= loss + 1e-12 * (1.0 + taken.abs()), "{taken} is more than {loss}");
                    prop_assert!(global > 0 || (taken - loss).abs() < 1e-9 * (1.0 + taken.abs()), "{taken}, not {loss}");
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(crate::seed::config(40))]

    /// Flips beside one deletion, against all pairs of admissible sets.
    #[test]
    fn flips_beside_a_deletion_are_decided(
        (of, kind) in (tiny(0..=3), kinds()), global in 1..3u32, local in 1..3u32, keep: bool,
    ) {
        let edges = EdgeBudget::new(of.budget.varied().min(1)).keep_one(keep);
        let budget = of.budget.clone().delete_edges(edges).with_global(global).local_at(of.target, local);
        let of = Tiny { budget, ..of }.of_kind(kind);
        let certifier = Certifier::new(&of.graph, &of.model).unwrap().budget(of.budget.clone());
        let certificate = certifier.engine(Engine::Complete).threads(1).certify(&[of.target]).unwrap().remove(0);
        let y = certificate.class;
        let limits = of.budget.limits(&of.graph).unwrap();
        let checker = Checker::new(&of.graph, &of.model, limits, TargetClass::Predicted).unwrap();
        let (sets, flips) = (admissible(&of), flips(&of));
        let others = || (0..of.model.classes() as u32).map(ClassId).filter(|&k| k != y);
        let mut is_robust = true;
        for set in &sets {
            let left = of.graph.without_edges(set).unwrap();
            let network = Network::new(&left, &of.model).unwrap();
            for flips in &flips {
                for k in others() {
                    let of_pair = |with| compare_margin(&network, of.target, flips, (y, k), with);
                    is_robust &= of_pair(0.0) == Ordering::Greater;
                    if let Some(Bound::AtLeast(bound)) = certificate.margins[k.index()]
                        && bound.is_finite()
                    {
                        prop_assert!(of_pair(bound) != Ordering::Less, "the bound {bound} is above a margin");
                    }
                }
            }
        }
        match &certificate.evidence {
            Evidence::Robust => prop_assert!(is_robust, "a false certificate"),
            Evidence::Witness(_) => {
                let certifier = Certifier::new(&of.graph, &of.model).unwrap().budget(of.budget.clone());
                prop_assert_eq!(certifier.recheck().unwrap().certificate(&certificate), Ok(()));
                prop_assert_eq!(checker.certificate(&certificate), Ok(()));
            }
            // Values between the ends may matter.
            Evidence::Open { because: Some(Obstacle::Values), .. } if kind.is_values() => {}
            _ => prop_assert!(false, "undecided: {certificate:?}"),
        }
        let mut forged = certificate;
        forged.evidence = Evidence::Robust;
        forged.margins.iter_mut().flatten().for_each(|margin| *margin = Bound::Positive);
        prop_assert!(is_robust || checker.certificate(&forged).is_err(), "a false certificate is accepted");
    }
}

/// An entry that grows beyond all numbers once its edge is deleted.
#[test]
fn entries_that_are_not_finite_without_an_edge_leave_a_node_open() {
    let graph = Graph::new(2, 1, &[(0, 1)], &[(0, 0)]).unwrap();
    let layer = (Matrix::from_values(1, 2, vec![1.0, -1.0]), vec![0.0, 0.5]);
    let coefficients = vec![1e308, 1.2e308];
    let propagation = Propagation::Polynomial { of: Box::new(Propagation::RowNormalised), coefficients };
    let model = Model::gcn(vec![layer], propagation).unwrap();
    let budget = Budget::new(1, LocalBudget::Count(0)).delete_edges(EdgeBudget::new(1));
    let certificate = Certifier::new(&graph, &model).unwrap().budget(budget).certify(&[NodeId(0)]).unwrap().remove(0);
    assert_eq!(certificate.undecided_because(), Some(Obstacle::Overflow));
}

#[test]
fn what_is_not_done_with_deletions_is_refused() {
    let graph = Graph::new(3, 1, &[(0, 1), (1, 2)], &[(0, 0)]).unwrap();
    let layer = |weight| (Matrix::from_values(1, 2, weight), vec![0.0, 0.5]);
    let model = Model::gcn(vec![layer(vec![1.0, -1.0])], Propagation::SymmetricGcn).unwrap();
    let edges = Budget::new(0, LocalBudget::Count(0)).delete_edges(EdgeBudget::new(1));
    let certifier = || Certifier::new(&graph, &model).unwrap().budget(edges.clone());
    let refused = |certifier: Certifier| certifier.certify(&[NodeId(0)]).unwrap_err().to_string();
    let both = certifier().budget(edges.clone().with_global(1).with_varied(2));
    for (certifier, words) in [
        (both, "flips of attributes beside more than one deletion are not decided yet"),
        (certifier().margin(0.1), "margins above 0 cannot be had"),
        (certifier().proofs(true), "proofs cannot be had"),
        (certifier().slopes(Slopes::Given(Vec::new())), "slopes of one's own cannot be had"),
    ] {
        let error = refused(certifier);
        assert!(error.contains(words), "{error}");
    }
    assert!(RobustLoss::new(Arc::new(graph.clone()), model.clone(), &edges, None).is_err());

    let power = Model::gcn(vec![layer(vec![1.0, -1.0])], Propagation::power(Propagation::SymmetricGcn, 2)).unwrap();
    let certifier = Certifier::new(&graph, &power).unwrap().budget(edges.clone());
    assert!(refused(certifier).contains("the propagation symmetric-gcn^2 cannot be computed anew"));
    let inner = |_| (Matrix::from_values(2, 2, vec![1.0; 4]), vec![0.0; 2]);
    let deep = std::iter::once(layer(vec![1.0, -1.0])).chain((0..4).map(inner)).collect();
    let deep = Model::gcn(deep, Propagation::SymmetricGcn).unwrap();
    let certifier = Certifier::new(&graph, &deep).unwrap().budget(edges.clone());
    assert!(refused(certifier).contains("at most 4 layers; this one has 5"));
    let certifier = Certifier::new(&graph, &deep).unwrap().budget(edges.clone().with_global(1));
    assert_eq!(certifier.certify(&[NodeId(0)]).unwrap().len(), 1, "flips beside a deletion have no such limit");
    let options = GraphOptions::new().directed(true);
    let directed = Graph::with_options(3, 1, &[(0, 1)], &[], options).unwrap();
    let certifier = Certifier::new(&directed, &model).unwrap().budget(edges);
    assert!(refused(certifier).contains("one direction only"));
}

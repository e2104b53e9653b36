//! Every admissible set of flips of tiny problems, tried one by one: what the library says must hold for all of them.
use std::ops::ControlFlow;
use std::time::Duration;

use nodeproof::check::textbook::{Bounds, Textbook};
use nodeproof::{
    Activation, AttributeKind, Bound, Certificate, Certifier, ClassId, Engine, Evidence, Finish, Flip, Matrix, Network,
    NodeId, Obstacle, Slopes, Source, Verdict,
};
use proptest::prelude::*;

use crate::common::exact::{Dyadic, Number};
use crate::common::seed::config;
use crate::common::{
    Dense, LayerOfTerms, Problem, RealValues, Sizes, Spread, TINY, World, problems, problems_of_terms,
    problems_with_slopes, smallest, with_normalised_rows, with_values,
};

/// Most sets that are tried for one problem.
pub(crate) const SETS: usize = 1500;
/// Few nodes with many attributes.
pub(crate) const LONG: Sizes = Sizes { nodes: 2, attributes: 7, hidden_layers: (0, 2), units: 3, global: 6 };
/// Float margins closer to 0 than this, relative to the problem's scale, are looked at again in exact arithmetic.
pub(crate) const CLOSE: f64 = 1e-10;

/// The truth about one problem: per node and class the smallest margin over all admissible sets.
pub(crate) struct Truth<'a> {
    problem: &'a Problem,
    sets: &'a [Vec<Flip>],
    classes: Vec<ClassId>,
    /// The margins of each set, in doubles.
    margins: Vec<Vec<Vec<f64>>>,
    pub(crate) smallest: Vec<Vec<f64>>,
    pub(crate) scales: Vec<f64>,
    world: World<Dyadic>,
}

impl<'a> Truth<'a> {
    pub(crate) fn new(problem: &'a Problem, sets: &'a [Vec<Flip>], classes: Vec<ClassId>) -> Self {
        let world = problem.world::<f64>();
        let margins: Vec<_> = sets.iter().map(|flips| world.margins(flips, &classes)).collect();
        let (smallest, scales) = (smallest(&margins), problem.scales());
        Self { problem, sets, classes, margins, smallest, scales, world: problem.world() }
    }

    /// Whether the smallest margin is positive, decided exactly where doubles cannot decide.
    pub(crate) fn positive(&self, node: usize, class: usize) -> bool {
        let close = CLOSE * self.scales[node];
        if self.smallest[node][class].abs() > close {
            return self.smallest[node][class] > 0.0;
        }
        let may_be_less = |(margins, _): &(&Vec<Vec<f64>>, _)| margins[node][class] <= close;
        let mut closest = self.margins.iter().zip(self.sets).filter(may_be_less);
        closest.all(|(_, flips)| self.world.margins(flips, &self.classes)[node][class] > Dyadic::of(0.0))
    }

    fn check(&self, certificate: &Certificate) {
        let node = certificate.node.index();
        let class = certificate.class;
        let tolerance = CLOSE * self.scales[node];
        assert_eq!(class, self.classes[node]);
        let others: Vec<usize> = (0..self.smallest[node].len()).filter(|&k| k != class.index()).collect();

        assert_eq!(certificate.margins.len(), self.smallest[node].len());
        assert_eq!(certificate.margins[class.index()], None);
        for &k in &others {
            let lower = certificate.margins[k].expect("a bound for every other class").value();
            let least = self.smallest[node][k];
            assert!(lower <= least + tolerance, "node {node}, class {k}: bound {lower}, but the margin can be {least}");
        }
        let margin = certificate.margin();
        assert_eq!(certificate.margins[certificate.worst_class.index()], Some(margin));
        let truth = others.iter().map(|&k| self.smallest[node][k]).fold(f64::INFINITY, f64::min);

        match &certificate.evidence {
            Evidence::Robust => {
                assert!(margin.is_positive());
                for k in others {
                    assert!(self.positive(node, k), "node {node} is called robust, but class {k} can overtake");
                }
            }
            Evidence::Witness(witness) => {
                let limits = self.problem.budget().limits(&self.problem.graph()).unwrap();
                assert!(limits.admits(&self.problem.graph(), &witness.flips), "{witness:?} is not admissible");
                let mut flips = witness.flips.clone();
                flips.sort_unstable();
                assert!(self.sets.contains(&flips), "{witness:?} is not admissible, by the problem's description");
                assert_ne!(witness.class, class);
                let with = &self.world.margins(&flips, &self.classes)[node];
                let margin = &with[witness.class.index()];
                let tie = certificate.engine != Engine::Fast && witness.margin == 0.0;
                assert!(*margin < Dyadic::of(0.0) || tie, "{witness:?} does not flip node {node}");
                assert!(self.world.is_at_most(margin, witness.margin), "{witness:?} states another margin");
                assert!(witness.margin < 0.0 || tie, "{witness:?} is no witness");
                if self.problem.hidden_layers() == 0 && self.problem.kind == AttributeKind::Bits {
                    // A linear model: a flip with a gain is one without which a margin, that of the class for which it
                    // was selected, is larger.
                    for left_out in 0..flips.len() {
                        let mut fewer = flips.clone();
                        fewer.remove(left_out);
                        let without = &self.world.margins(&fewer, &self.classes)[node];
                        let gains = without.iter().zip(with).any(|(without, with)| without > with);
                        assert!(gains, "{:?} in {witness:?} gains nothing", flips[left_out]);
                    }
                }
            }
            Evidence::Open { lower, upper, .. } => {
                assert_eq!(*lower, margin);
                let (lower, upper) = (lower.value(), upper.unwrap_or(f64::INFINITY));
                assert!(lower <= truth + tolerance, "lower {lower}, truth {truth}");
                assert!(upper >= truth - tolerance, "upper {upper}, truth {truth}");
            }
            other => panic!("unknown verdict {other:?}"),
        }
    }
}

fn check(problem: &Problem, sets: &[Vec<Flip>], slopes: Slopes) -> Vec<Certificate> {
    check_with(problem, sets, Engine::Fast, slopes)
}

fn check_with(problem: &Problem, sets: &[Vec<Flip>], engine: Engine, slopes: Slopes) -> Vec<Certificate> {
    check_engines(problem, sets, [engine], slopes).into_iter().flatten().collect()
}

/// Holds the verdicts of several engines against the truth, which is found out once.
pub(crate) fn check_engines<const N: usize>(
    problem: &Problem,
    sets: &[Vec<Flip>],
    engines: [Engine; N],
    slopes: Slopes,
) -> [Vec<Certificate>; N] {
    check_all(problem, sets, engines.map(|engine| problem.certify_with(engine, slopes.clone())))
}

/// Holds several certificates for each node against the truth, which is found out once.
fn check_all<const N: usize>(
    problem: &Problem,
    sets: &[Vec<Flip>],
    all: [Vec<Certificate>; N],
) -> [Vec<Certificate>; N] {
    let logits = problem.world::<f64>().logits(&[]);
    let scales = problem.scales();
    for certificate in all.iter().flatten() {
        let (node, row) = (certificate.node.index(), &logits[certificate.node.index()]);
        let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        assert!(
            row[certificate.predicted.index()] >= largest - CLOSE * scales[node],
            "node {node} is predicted otherwise"
        );
        let label = ClassId(problem.labels[node]);
        assert_eq!(certificate.class, if problem.certify_labels { label } else { certificate.predicted });
    }
    let classes = all[0].iter().map(|certificate| certificate.class).collect();
    let truth = Truth::new(problem, sets, classes);
    for certificates in &all {
        assert_eq!(certificates.len(), problem.nodes);
        certificates.iter().for_each(|certificate| truth.check(certificate));
    }
    all
}

/// That nothing is left open.
fn check_decided(certificates: &[Certificate]) -> Result<(), TestCaseError> {
    for certificate in certificates {
        let decided = !matches!(certificate.evidence, Evidence::Open { .. });
        prop_assert!(decided, "node {}: {:?}", certificate.node, certificate.evidence);
    }
    Ok(())
}

proptest! {
    #![proptest_config(config(5000))]

    #[test]
    fn verdicts_hold_for_every_admissible_set(problem in problems(TINY)) {
        let (problem, sets) = problem.enumerable(SETS);
        check(&problem, &sets, Slopes::Default);
    }

    #[test]
    fn verdicts_with_given_slopes_hold_for_every_admissible_set(
        (problem, slopes) in problems_with_slopes(Sizes { hidden_layers: (1, 3), ..TINY })
    ) {
        let (problem, sets) = problem.enumerable(SETS / 2);
        check(&problem, &sets, Slopes::Given(slopes));
    }
}

proptest! {
    #![proptest_config(config(thorough(3_000)))]

    #[test]
    fn verdicts_on_layers_of_terms_hold_for_every_admissible_set(problem in problems_of_terms(TINY, 5)) {
        let (problem, sets) = problem.enumerable(SETS / 3);
        let [_, complete] = check_engines(&problem, &sets, [Engine::Fast, Engine::Complete], Slopes::Default);
        check_decided(&complete)?;
    }
}

proptest! {
    #![proptest_config(config(thorough(2_000)))]

    #[test]
    fn verdicts_on_normalised_rows_hold_for_every_admissible_set(
        problem in with_normalised_rows(prop_oneof![problems(TINY), problems_of_terms(TINY, 5)])
    ) {
        let (problem, sets) = problem.enumerable(SETS / 3);
        let [_, complete] = check_engines(&problem, &sets, [Engine::Fast, Engine::Complete], Slopes::Default);
        check_decided(&complete)?;
    }
}

proptest! {
    #![proptest_config(config(thorough(1_000)))]

    /// Of one or two nodes with many flips each, so that rows are emptied, and filled with others.
    #[test]
    fn verdicts_on_long_normalised_rows_hold_for_every_admissible_set(
        problem in with_normalised_rows(prop_oneof![problems(LONG), problems_of_terms(LONG, 3)]),
    ) {
        let (problem, sets) = problem.enumerable(SETS);
        let [_, complete] = check_engines(&problem, &sets, [Engine::Tight, Engine::Complete], Slopes::Default);
        check_decided(&complete)?;
    }
}

/// The problem with a bias that leaves a thousandth of the smallest margin of the first node, so that little decides on its verdict.
pub(crate) fn sharpened(problem: &Problem, sets: &[Vec<Flip>], certificates: &[Certificate]) -> Problem {
    shifted(problem, sets, certificates, 0.999)
}

/// The problem with a bias that takes this part off the smallest margin of the first node.
pub(crate) fn shifted(problem: &Problem, sets: &[Vec<Flip>], certificates: &[Certificate], part: f64) -> Problem {
    let classes: Vec<ClassId> = certificates.iter().map(|certificate| certificate.class).collect();
    let smallest = problem.world::<f64>().smallest_margins(sets, &classes);
    let others = smallest[0].iter().enumerate().filter(|&(k, _)| k != classes[0].index());
    let mut sharp = problem.clone();
    if let (Some((k, margin)), Some(last)) = (others.min_by(|a, b| a.1.total_cmp(b.1)), sharp.layers.last_mut()) {
        last.bias[k] += part * margin;
    }
    sharp
}

/// Two or three nodes with most of their few attributes, large weights, and one or two hidden layers of four units.
pub(crate) fn dense_rows() -> impl Strategy<Value = Problem> {
    let sizes = (2..=3usize, 4..=6usize, 1..=2usize, 2..=5u32, 2..=6u32);
    sizes.prop_flat_map(|(nodes, attributes, hidden, global, local)| {
        let widths: Vec<usize> = [vec![attributes], vec![4; hidden], vec![2]].concat();
        let layers: Vec<_> = widths.windows(2).map(|pair| dense_layer(pair[0], pair[1])).collect();
        let bits = prop::collection::vec(prop::bool::weighted(0.8), nodes * attributes);
        let spread = prop::sample::select(vec![Spread::RowMean, Spread::Symmetric]);
        (bits, spread, layers).prop_map(move |(bits, spread, layers)| {
            let cells = (0..nodes as u32).flat_map(|n| (0..attributes as u32).map(move |d| (n, d)));
            Problem {
                nodes,
                labels: vec![0; nodes],
                certify_labels: false,
                edges: (1..nodes as u32).map(|n| (0, n)).collect(),
                ones: cells.zip(bits).filter(|of| of.1).map(|of| of.0).collect(),
                kind: AttributeKind::NormalisedRows,
                spread,
                global,
                local,
                ..Problem::one_node(attributes, layers)
            }
        })
    })
}

fn dense_layer(inputs: usize, outputs: usize) -> impl Strategy<Value = Dense> {
    let weight = prop::collection::vec(-5.0..5.0, inputs * outputs);
    let bias = prop::collection::vec(-1.0..1.0, outputs);
    (weight, bias).prop_map(move |(weight, bias)| Dense { inputs, outputs, weight, bias })
}

proptest! {
    #![proptest_config(config(thorough(1_000)))]

    /// Where a node is robust or not by little, so that bounds have to be as good as they can be.
    #[test]
    fn verdicts_on_normalised_rows_hold_where_little_decides(problem in dense_rows()) {
        let (problem, sets) = problem.enumerable(SETS);
        let sharp = sharpened(&problem, &sets, &problem.certify_with(Engine::Fast, Slopes::Default));
        let [_, complete] = check_engines(&sharp, &sets, [Engine::Tight, Engine::Complete], Slopes::Default);
        check_decided(&complete)?;
    }
}

/// Few entries, each of which has many values.
pub(crate) const FEW: Sizes = Sizes { nodes: 3, attributes: 3, hidden_layers: (0, 3), units: 3, global: 4 };

proptest! {
    #![proptest_config(config(thorough(1_500)))]

    /// Values between the ends are tried as well, so that some nodes are nonrobust that no engine can tell.
    #[test]
    fn verdicts_on_real_values_hold_for_every_admissible_set(
        problem in with_values(prop_oneof![problems(FEW), problems_of_terms(FEW, 5)], FEW)
    ) {
        let (problem, sets) = problem.enumerable(2 * SETS);
        let engines = [Engine::Fast, Engine::Tight, Engine::Complete];
        let [_, _, complete] = check_engines(&problem, &sets, engines, Slopes::Default);
        check_decided_at_ends(&problem, &sets, &complete)?;
    }
}

proptest! {
    #![proptest_config(config(thorough(1_000)))]

    /// Where few sets of ends are witnesses, if any, and values between the ends of ranges often leave less of the margin.
    #[test]
    fn real_values_are_tried_at_all_ends_where_little_decides(problem in dense_values()) {
        let (problem, sets) = problem.enumerable(SETS);
        let certificates = problem.certify_with(Engine::Fast, Slopes::Default);
        for part in [0.999, 1.001] {
            let sharp = shifted(&problem, &sets, &certificates, part);
            let [complete] = check_engines(&sharp, &sets, [Engine::Complete], Slopes::Default);
            check_decided_at_ends(&sharp, &sets, &complete)?;
        }
    }
}

/// A few nodes with real values of wide ranges, some of them beyond these, large weights, and one or two hidden layers.
pub(crate) fn dense_values() -> impl Strategy<Value = Problem> {
    let values = |problem: Problem| {
        let entries = prop::collection::vec(prop::sample::select(vec![-3.0, -2.0, -1.0, 0.0, 0.5, 1.0, 2.0]), 18);
        let ranges = prop::collection::vec(prop::sample::select(vec![(-2.0, 2.0), (-2.0, 1.0), (0.0, 2.0)]), 6);
        (entries, ranges).prop_map(move |(mut entries, mut ranges)| {
            entries.truncate(problem.nodes * problem.attributes);
            ranges.truncate(problem.attributes);
            let values = Some(RealValues { entries, ranges, tried: 2 });
            Problem { kind: AttributeKind::RealValues, values, ones: vec![], ..problem.clone() }
        })
    };
    dense_rows().prop_flat_map(values)
}

/// Certificates are undecided only where values between the ends of their ranges may matter, and no set of ends is a witness.
pub(crate) fn check_decided_at_ends(
    problem: &Problem,
    sets: &[Vec<Flip>],
    certificates: &[Certificate],
) -> Result<(), TestCaseError> {
    let open: Vec<&Certificate> = certificates.iter().filter(|of| of.verdict() == Verdict::Undecided).collect();
    if open.is_empty() {
        return Ok(());
    }
    let is_end = |flip: &Flip| {
        let ranges = problem.values.as_ref().map(|values| values.ranges[flip.attribute.index()]);
        ranges.is_none_or(|(low, high)| [low, high].contains(&flip.to))
    };
    let ends: Vec<Vec<Flip>> = sets.iter().filter(|set| set.iter().all(is_end)).cloned().collect();
    let truth = Truth::new(problem, &ends, certificates.iter().map(|certificate| certificate.class).collect());
    for certificate in open {
        prop_assert_eq!(certificate.undecided_because(), Some(Obstacle::Values), "{:?}", certificate);
        let (node, classes) = (certificate.node.index(), certificate.margins.len());
        let mut others = (0..classes).filter(|&k| k != certificate.class.index());
        prop_assert!(others.all(|k| truth.positive(node, k)), "ends are a witness: {:?}", certificate);
    }
    Ok(())
}

proptest! {
    #![proptest_config(config(2_000))]

    /// Wherever a limit cuts the engines short: time, or memory that is as good as none, or just too little.
    #[test]
    fn verdicts_hold_where_limits_are_reached(
        problem in prop_oneof![
            2 => problems(TINY), 2 => problems_of_terms(TINY, 5), 1 => with_normalised_rows(problems(TINY))
        ],
        microseconds in 0u64..300,
        bytes in (0.0..12.0f64).prop_map(|power| power.exp2() as usize * 16),
    ) {
        let (problem, sets) = problem.enumerable(SETS / 3);
        let time = Duration::from_micros(microseconds);
        let hurried = problem.certify_by(|certifier| certifier.engine(Engine::Complete).time_limit(time));
        let cramped = problem.certify_by(|certifier| certifier.engine(Engine::Complete).memory_limit(bytes));
        for certificate in &cramped {
            prop_assert!(matches!(certificate.undecided_because(), None | Some(Obstacle::Memory)), "{certificate:?}");
        }
        check_all(&problem, &sets, [hurried, cramped]);
    }
}

proptest! {
    #![proptest_config(config(thorough(3_000)))]

    #[test]
    fn the_complete_engine_decides_every_node(problem in problems(TINY)) {
        let (problem, sets) = problem.enumerable(SETS);
        check_decided(&check_with(&problem, &sets, Engine::Complete, Slopes::Default))?;
    }
}

proptest! {
    #![proptest_config(config(3_000))]

    #[test]
    fn the_tight_engine_decides_what_the_fast_one_does(problem in problems(TINY)) {
        let (problem, sets) = problem.enumerable(SETS / 2);
        let fast = problem.certify(Slopes::Default);
        for (tight, fast) in check_with(&problem, &sets, Engine::Tight, Slopes::Default).iter().zip(&fast) {
            if !matches!(fast.evidence, Evidence::Open { .. }) {
                prop_assert_eq!(tight.verdict(), fast.verdict());
            }
            // At depth the tight engine begins with another bound, and stops as soon as that or an attack decides.
            let margins = tight.margins.iter().flatten().zip(fast.margins.iter().flatten());
            for (tight, fast) in margins.filter(|_| tight.verdict() != Verdict::Nonrobust) {
                prop_assert!(tight.is_positive() || !tight.is_below(*fast), "{tight:?} < {fast:?}");
            }
        }
    }
}

proptest! {
    #![proptest_config(config(1500))]

    /// Also where a limit had left a class, or the whole node, open.
    #[test]
    fn raised_margins_hold_for_every_admissible_set(
        problem in prop_oneof![problems(TINY), problems_of_terms(TINY, 5)],
        microseconds in prop_oneof![Just(0u64), Just(1_000_000)],
    ) {
        let (problem, sets) = problem.enumerable(SETS / 3);
        let (graph, model) = (problem.graph(), problem.model());
        let certifier = |time: u64| {
            let certifier = Certifier::new(&graph, &model).unwrap().budget(problem.budget()).threads(1);
            let certifier = certifier.target_class(problem.target_class()).engine(Engine::Complete);
            certifier.time_limit(Duration::from_micros(time))
        };
        let nodes: Vec<NodeId> = graph.node_ids().collect();
        let before = certifier(microseconds).certify(&nodes).unwrap();
        let mut raised = before.clone();
        for certificate in &mut raised {
            let finish = certifier(1_000_000).raise_margins(certificate, || ControlFlow::Continue(()));
            prop_assert_eq!(finish.unwrap(), Finish::Complete);
        }
        for (before, after) in before.iter().zip(&raised) {
            let is_lower = |(before, after): (&Option<Bound>, &Option<Bound>)| {
                before.zip(*after).is_some_and(|(before, after)| after.is_below(before))
            };
            prop_assert!(!before.margins.iter().zip(&after.margins).any(is_lower), "{:?}, {:?}", before, after);
            prop_assert!(before.verdict() == after.verdict() || after.is_robust());
        }
        check_all(&problem, &sets, [raised]);
    }

    #[test]
    fn the_smallest_margin_lies_within_every_gap(problem in problems(TINY)) {
        let (problem, sets) = problem.enumerable(SETS / 2);
        let (graph, model) = (problem.graph(), problem.model());
        let nodes: Vec<NodeId> = graph.node_ids().collect();
        let [fast, tight] = [Engine::Fast, Engine::Tight].map(|engine| {
            let certifier = Certifier::new(&graph, &model).unwrap().budget(problem.budget());
            let certifier = certifier.target_class(problem.target_class()).engine(engine).threads(1);
            certifier.gaps(&nodes, |_| ControlFlow::Continue(())).unwrap().unwrap()
        });
        let classes: Vec<ClassId> = problem.certify(Slopes::Default).iter().map(|certificate| certificate.class).collect();
        let smallest = problem.world::<f64>().smallest_margins(&sets, &classes);
        for (node, scale) in problem.scales().into_iter().enumerate() {
            let others = (0..smallest[node].len()).filter(|&k| k != classes[node].index());
            let truth = others.map(|k| smallest[node][k]).fold(f64::INFINITY, f64::min);
            for gap in [fast[node], tight[node]] {
                let (lower, upper) = (gap.lower.value(), gap.upper.unwrap_or(f64::INFINITY));
                prop_assert!(lower <= truth + CLOSE * scale && upper >= truth - CLOSE * scale, "{gap:?}, {truth}");
            }
            prop_assert!(tight[node].lower.value() >= fast[node].lower.value());
            prop_assert!(tight[node].upper <= fast[node].upper);
        }
    }
}

/// So many problems, or as many as it is worth: `NODEPROOF_THOROUGH=100000`.
pub(crate) fn thorough(cases: u32) -> u32 {
    match std::env::var("NODEPROOF_THOROUGH") {
        Ok(number) => number.parse().expect("NODEPROOF_THOROUGH is a number of problems"),
        Err(_) => cases,
    }
}

proptest! {
    #![proptest_config(config(2000))]

    #[test]
    fn bounds_hold_and_those_of_the_first_layer_are_attained(
        problem in problems(Sizes { hidden_layers: (1, 3), ..TINY })
    ) {
        let (problem, sets) = problem.enumerable(SETS);
        let (graph, model) = (problem.graph(), problem.model());
        let network = Network::new(&graph, &model).unwrap();
        let limits = problem.budget().limits(&graph).unwrap();
        let textbook = Textbook::new(&network, &limits).unwrap();
        for layer in 0..problem.hidden_layers() {
            let world = problem.world::<f64>().cut(layer);
            let scales = problem.world::<f64>().cut(layer).scales();
            let mut lo = vec![vec![f64::INFINITY; problem.layers[layer].outputs]; problem.nodes];
            let mut hi = vec![vec![f64::NEG_INFINITY; problem.layers[layer].outputs]; problem.nodes];
            for flips in &sets {
                for (node, row) in world.logits(flips).iter().enumerate() {
                    for (unit, &value) in row.iter().enumerate() {
                        lo[node][unit] = lo[node][unit].min(value);
                        hi[node][unit] = hi[node][unit].max(value);
                    }
                }
            }
            for target in graph.node_ids() {
                let Bounds { nodes, lo: lower, hi: upper } = &textbook.bounds(target)[layer];
                for (row, node) in nodes.iter().enumerate() {
                    let tolerance = 1e-12 * scales[node.index()];
                    for unit in 0..lower.columns() {
                        let (least, most) = (lo[node.index()][unit], hi[node.index()][unit]);
                        let (lower, upper) = (lower.get(row, unit), upper.get(row, unit));
                        prop_assert!(lower <= least + tolerance && upper >= most - tolerance);
                        if layer == 0 {
                            prop_assert!(lower >= least - tolerance && upper <= most + tolerance, "not attained");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn the_textbook_is_below_the_truth(
        (problem, slopes) in problems_with_slopes(TINY)
    ) {
        let (problem, sets) = problem.enumerable(SETS / 2);
        let (graph, model) = (problem.graph(), problem.model());
        let network = Network::new(&graph, &model).unwrap();
        let limits = problem.budget().limits(&graph).unwrap();
        let textbook = Textbook::new(&network, &limits).unwrap();
        let classes: Vec<_> = problem.labels.iter().map(|&label| ClassId(label)).collect();
        let smallest = problem.world::<f64>().smallest_margins(&sets, &classes);
        let clean = problem.world::<f64>().logits(&sets[sets.len() - 1]);
        let scales = problem.scales();
        for node in graph.node_ids() {
            let i = node.index();
            for given in [None, Some(&slopes[..])] {
                for (lower, least) in textbook.lower_bounds(node, classes[i], given).iter().zip(&smallest[i]) {
                    prop_assert!(*lower <= least + 1e-12 * scales[i], "{lower} > {least}");
                    // A linear model has nothing to relax.
                    let linear = problem.hidden_layers() == 0;
                    prop_assert!(!linear || *lower >= least - 1e-12 * scales[i], "{lower} < {least}");
                }
            }
            for (a, b) in textbook.logits(node, &sets[sets.len() - 1]).iter().zip(&clean[i]) {
                prop_assert!((a - b).abs() <= 1e-12 * scales[i]);
            }
        }
    }
}

/// Verdicts of all three kinds come up often, so that the properties above are not empty.
#[test]
fn random_problems_are_not_all_alike() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::new(config(256));
    let mut counts = [[0; 3]; 4];
    let (mut largest, mut active_at_zero) = (0, 0);
    for _ in 0..1000 {
        let problem = problems(TINY).new_tree(&mut runner).unwrap().current();
        let (problem, sets) = problem.enumerable(SETS);
        largest = largest.max(sets.len());
        for certificate in problem.certify(Slopes::Default) {
            let kind = match certificate.evidence {
                Evidence::Robust => 0,
                Evidence::Witness(_) => 1,
                _ => 2,
            };
            counts[problem.hidden_layers()][kind] += 1;
        }
        let (graph, model) = (problem.graph(), problem.model());
        let network = Network::new(&graph, &model).unwrap();
        let limits = problem.budget().limits(&graph).unwrap();
        for bounds in Textbook::new(&network, &limits).unwrap().bounds(NodeId(0)) {
            let pairs = bounds.lo.values().iter().zip(bounds.hi.values());
            active_at_zero += pairs.filter(|&(&lo, &hi)| lo == 0.0 && hi > 0.0).count();
        }
    }
    println!("robust, nonrobust, undecided by hidden layers: {counts:?}; lo == 0: {active_at_zero}; sets: {largest}");
    assert!(counts.iter().all(|kinds| kinds[0] >= 50 && kinds[1] >= 50), "{counts:?}");
    assert!(counts[1..].iter().all(|kinds| kinds[2] >= 15), "{counts:?}");
    assert!(active_at_zero >= 20 && largest > SETS / 2);
}

/// The same for layers of terms, by the number of layers.
#[test]
fn random_layers_of_terms_are_not_all_alike() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::new(config(256));
    let (mut counts, mut several_depths, mut signed, mut leaky) = ([[0; 3]; 5], 0, 0, 0);
    for _ in 0..2000 {
        let problem = problems_of_terms(TINY, 5).new_tree(&mut runner).unwrap().current();
        let (problem, _) = problem.enumerable(SETS / 2);
        let terms = problem.terms.as_ref().unwrap();
        for certificate in problem.certify(Slopes::Default) {
            let kind = match certificate.evidence {
                Evidence::Robust => 0,
                Evidence::Witness(_) => 1,
                _ => 2,
            };
            counts[terms.layers.len() - 1][kind] += 1;
        }
        let reads = |layer: &&LayerOfTerms| layer.terms.iter().any(|(source, ..)| *source == Source::Attributes);
        several_depths += usize::from(terms.layers.iter().filter(reads).count() > 1);
        let negative =
            |spread: &Spread| matches!(spread, Spread::Custom(entries) if entries.iter().any(|entry| entry.2 < 0.0));
        signed += usize::from(terms.spreads.iter().any(negative));
        leaky += usize::from(terms.layers.iter().any(|layer| matches!(layer.activation, Activation::LeakyRelu(_))));
    }
    println!("robust, nonrobust, undecided by layers: {counts:?}; {several_depths}, {signed}, {leaky}");
    assert!(counts.iter().all(|kinds| kinds[0] >= 50 && kinds[1] >= 50), "{counts:?}");
    assert!(counts[1..].iter().all(|kinds| kinds[2] >= 15), "{counts:?}");
    assert!(several_depths >= 500 && signed >= 500 && leaky >= 500, "{several_depths}, {signed}, {leaky}");
}

fn dense(inputs: usize, outputs: usize, weight: &[f64], bias: &[f64]) -> Dense {
    Dense { inputs, outputs, weight: weight.to_vec(), bias: bias.to_vec() }
}

fn certified(problem: &Problem) -> Certificate {
    let sets = problem.clone().enumerable(100_000).1;
    check(problem, &sets, Slopes::Default).swap_remove(0)
}

/// The smallest margin of node 0 against class 1.
fn truth(problem: &Problem) -> f64 {
    let classes = vec![ClassId(0); problem.nodes];
    problem.world::<f64>().smallest_margins(&problem.clone().enumerable(100_000).1, &classes)[0][1]
}

/// The paper's claim that its linear program has binary optima is false: the relaxation is −¼ here, the truth ¼.
#[test]
fn the_relaxation_is_not_integral() {
    let hidden = dense(1, 2, &[-1.0, 1.0], &[0.5, -0.5]);
    let problem =
        Problem { global: 1, ..Problem::one_node(1, vec![hidden, dense(2, 2, &[1.0, 0.0, 1.0, 0.0], &[-0.25, 0.0])]) };
    assert_eq!(truth(&problem), 0.25);
    let certificate = certified(&problem);
    let margin = certificate.margins[1].unwrap().value();
    assert!((margin + 0.25).abs() < 1e-12, "{margin}");
    assert!(matches!(certificate.evidence, Evidence::Open { .. }), "{:?}", certificate.evidence);
}

/// A unit with `lo == 0 < hi`: whoever takes it for dead sees a margin of ½ and a robust node.
#[test]
fn a_unit_that_starts_at_zero_is_alive() {
    let problem = Problem {
        global: 1,
        ..Problem::one_node(1, vec![dense(1, 1, &[1.0], &[0.0]), dense(1, 2, &[0.0, 1.0], &[0.5, 0.0])])
    };
    assert_eq!(truth(&problem), -0.5);
    let certificate = certified(&problem);
    assert!((certificate.margins[1].unwrap().value() + 0.5).abs() < 1e-12);
    assert!(matches!(certificate.evidence, Evidence::Witness(_)), "{:?}", certificate.evidence);
}

/// The same one layer further up, where the bound comes from intervals.
#[test]
fn a_deeper_unit_that_starts_at_zero_is_alive() {
    let layers = vec![dense(1, 1, &[1.0], &[0.0]), dense(1, 1, &[1.0], &[0.0]), dense(1, 2, &[0.0, 1.0], &[0.5, 0.0])];
    let problem = Problem { global: 1, ..Problem::one_node(1, layers) };
    assert_eq!(truth(&problem), -0.5);
    assert!(matches!(certified(&problem).evidence, Evidence::Witness(_)));
}

/// Four flips allowed, one possible: it is charged once.
#[test]
fn a_budget_larger_than_the_flips_charges_what_there_is() {
    for global in [1, 2, 4, 1000] {
        let problem = Problem {
            global,
            local: 5,
            ..Problem::one_node(1, vec![dense(1, 1, &[1.0], &[0.0]), dense(1, 2, &[0.0, 1.0], &[1.5, 0.0])])
        };
        assert_eq!(truth(&problem), 0.5);
        let certificate = certified(&problem);
        assert!((certificate.margins[1].unwrap().value() - 0.5).abs() < 1e-12, "Q = {global}: {certificate:?}");
        assert!(certificate.is_robust());
    }
}

/// Attribute 0 decides, attribute 1 does nothing at all, attribute 2 helps the defender, attribute 3 moves both classes
/// alike, node 1 is not connected.
#[test]
fn a_witness_holds_only_flips_that_gain() {
    for hidden_layers in 0..=3 {
        let mut layers = vec![dense(4, 2, &[0.0, 2.0, 0.0, 0.0, 1.0, 0.0, 1.0, 1.0], &[1.0, 0.0])];
        layers.extend((0..hidden_layers).map(|_| dense(2, 2, &[1.0, 0.0, 0.0, 1.0], &[0.0, 0.0])));
        let problem = Problem { nodes: 2, labels: vec![0, 0], global: 6, local: 4, ..Problem::one_node(4, layers) };
        let certificate = certified(&problem);
        let Evidence::Witness(witness) = certificate.evidence else { panic!("{:?}", certificate.evidence) };
        assert_eq!(witness.flips, [Flip { node: NodeId(0), attribute: 0.into(), to: 1.0 }]);
        assert_eq!(witness.class, ClassId(1));
    }
}

/// A label that the model does not predict falls without a flip, and the witness says so.
#[test]
fn a_misclassified_node_needs_no_flip() {
    let problem = Problem::one_node(1, vec![dense(1, 2, &[0.0, 0.0], &[0.0, 1.0])]);
    let certificate = certified(&problem);
    let Evidence::Witness(witness) = certificate.evidence else { panic!("{:?}", certificate.evidence) };
    assert!(witness.flips.is_empty());
    assert!((witness.margin + 1.0).abs() < 1e-12);
}

/// The paper's bounds of deeper layers, as printed: without ReLU and bias.
fn uncorrected(problem: &Problem, bounds: &[Bounds]) -> Vec<Bounds> {
    let world = problem.world::<f64>();
    let mut all = vec![bounds[0].clone()];
    for (layer, correct) in bounds.iter().enumerate().skip(1) {
        let before = &all[layer - 1];
        let weight = &world.layers[layer].terms[0].weight;
        let mut lo = Matrix::zeros(correct.nodes.len(), correct.lo.columns());
        let mut hi = lo.clone();
        for (row, node) in correct.nodes.iter().enumerate() {
            for &(n, p) in &world.propagations[0][node.index()] {
                let position = before.nodes.iter().position(|other| other.index() == n).unwrap();
                for (input, weights) in weight.iter().enumerate() {
                    let (least, most) = (before.lo.get(position, input), before.hi.get(position, input));
                    for (unit, &w) in weights.iter().enumerate() {
                        lo.row_mut(row)[unit] += p * (least * w.max(0.0) - most * (-w).max(0.0));
                        hi.row_mut(row)[unit] += p * (most * w.max(0.0) - least * (-w).max(0.0));
                    }
                }
            }
        }
        all.push(Bounds { nodes: correct.nodes.clone(), lo, hi });
    }
    all
}

/// Lower bounds on the margins of node 0 from [`uncorrected`] bounds.
fn uncorrected_lower_bounds(problem: &Problem) -> Vec<f64> {
    let (graph, model) = (problem.graph(), problem.model());
    let network = Network::new(&graph, &model).unwrap();
    let limits = problem.budget().limits(&graph).unwrap();
    let textbook = Textbook::new(&network, &limits).unwrap();
    let bounds = uncorrected(problem, &textbook.bounds(NodeId(0)));
    textbook.dual(NodeId(0), ClassId(problem.labels[0]), &bounds, None)
}

/// Margin 0.5 − relu(z) with z in [0, 1], whatever the two hidden layers are that make it.
fn a_false_certificate(first: Dense, second: Dense) {
    let last = dense(1, 2, &[0.0, 1.0], &[0.5, 0.0]);
    let problem = Problem { global: 1, ..Problem::one_node(1, vec![first, second, last]) };
    assert!(uncorrected_lower_bounds(&problem)[1] > 0.0, "the paper's bounds call this node robust");
    assert_eq!(truth(&problem), -0.5, "it is not");
    let certificate = certified(&problem);
    assert!(!certificate.is_robust());
    assert!(certificate.margins[1].unwrap().value() <= -0.5);
}

/// The first unit is dead, its pre-activation −1: without the ReLU, z seems to lie in [−1, 0].
#[test]
fn deeper_bounds_without_the_relu_give_false_certificates() {
    a_false_certificate(dense(1, 2, &[0.0, 1.0], &[-1.0, 0.0]), dense(2, 1, &[1.0, 1.0], &[0.0]));
}

/// z = 1 − x: without the bias, it seems to lie in [−1, 0].
#[test]
fn deeper_bounds_without_the_bias_give_false_certificates() {
    a_false_certificate(dense(1, 1, &[1.0], &[0.0]), dense(1, 1, &[-1.0], &[1.0]));
}

/// Holds the complete engine's verdicts against all sets; none may be undecided.
fn decided(problem: &Problem) {
    let sets = problem.clone().enumerable(100_000).1;
    for certificate in check_with(problem, &sets, Engine::Complete, Slopes::Default) {
        assert!(!matches!(certificate.evidence, Evidence::Open { .. }), "{:?}", certificate.evidence);
    }
}

/// Sets under which a split unit is on are not lost.
#[test]
fn both_phases_of_a_unit_are_searched() {
    let p = [(0, 0, 1.0), (0, 1, 1.0), (0, 2, 0.5), (1, 0, 0.5), (1, 1, 0.5), (1, 2, 1.0)];
    let more = [(2, 0, 0.5), (2, 1, 0.5), (2, 2, 0.5), (2, 3, 1.0), (3, 2, 2.0)];
    let first = [-1.0, 2.0, -0.5, 1.0, 1.0, -1.0, 0.5, 0.5, -1.0, 2.0, -1.0, -0.5];
    let layers = vec![
        dense(3, 4, &first, &[-1.0, 1.0, 0.0, -0.5]),
        dense(4, 2, &[2.0, 0.5, 0.5, -0.5, 0.5, -0.5, -0.5, 1.0], &[0.5, 0.5]),
    ];
    decided(&Problem {
        nodes: 4,
        ones: vec![(0, 1), (0, 2), (2, 1), (3, 0), (3, 1), (3, 2)],
        labels: vec![0; 4],
        certify_labels: false,
        spread: Spread::Custom([&p[..], &more[..]].concat()),
        global: 2,
        local: 2,
        local_at: vec![(3, 1)],
        ..Problem::one_node(3, layers)
    });
}

/// A node with one flip fixed and room for one more gets no third.
#[test]
fn fixed_flips_use_up_the_local_budget() {
    let first = [0.0, 0.5, -0.5, -0.5, 0.0, -0.5, -0.5, 0.0, 0.0, -0.5, -0.5, -0.5, -0.5, 0.0, 0.5, 0.0, 0.0, -0.5];
    let layers =
        vec![dense(6, 3, &first, &[0.5, -0.5, 0.5]), dense(3, 2, &[-0.5, 0.5, 0.0, 0.0, 0.0, 0.5], &[1.0, 0.0])];
    decided(&Problem {
        nodes: 2,
        ones: vec![(0, 0), (0, 1), (0, 2), (0, 4), (0, 5)],
        labels: vec![0; 2],
        certify_labels: false,
        spread: Spread::Custom(vec![(0, 0, 1.0), (0, 1, 1.0), (1, 1, 1.0)]),
        global: 9,
        local: 2,
        ..Problem::one_node(6, layers)
    });
}

/// Flips that gain less than nothing gain more where they count less.
#[test]
fn a_row_that_grows_takes_weight_from_what_gains_nothing() {
    let dense = |outputs: usize, weight: &[f64]| Dense {
        inputs: 3,
        outputs,
        weight: weight.to_vec(),
        bias: vec![0.0; outputs],
    };
    let problem = Problem {
        nodes: 3,
        labels: vec![0; 3],
        certify_labels: false,
        ones: vec![(0, 0)],
        kind: AttributeKind::NormalisedRows,
        spread: Spread::Custom(vec![(0, 1, 0.625), (0, 0, 0.125)]),
        global: 2,
        protected_attributes: vec![0],
        ..Problem::one_node(
            3,
            vec![
                dense(3, &[0.25, -2.0, 0.0, 0.0, 0.0, 0.0, -1.0, 1.25, 0.0]),
                dense(4, &[0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0]),
            ],
        )
    };
    let (problem, sets) = problem.enumerable(SETS);
    let certificates = check_with(&problem, &sets, Engine::Complete, Slopes::Default);
    assert_eq!(certificates[0].verdict(), Verdict::Nonrobust);
}

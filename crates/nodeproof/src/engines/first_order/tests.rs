//! The lemmas of bounds of first order, against every admissible set of small random networks.

use std::ops::ControlFlow;
use std::time::Instant;

use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::base::{Base, Knows, Unit};
use super::bound::{At, Bounding, Tuning};
use super::bounded::Bounded;
use super::branch::FEW;
use super::cones::Cones;
use super::derivative::{CleanTarget, Margins};
use super::linearisation::Linearisation;
use super::lines::{Line, Lines, tangents};
use super::listing::Scores;
use super::proof::prove;
use super::rows::{ALL, KEPT};
use super::screening::Screening;
use super::search::{Outcome, Search, decide};
use super::subproblem::Subproblem;
use super::target::Target;
use crate::attributes::AttributeKind;
use crate::budget::{Budget, Direction, LocalBudget};
use crate::certificate::{Bound, Obstacle};
use crate::dense::{Matrix, relu};
use crate::engines::attack::Attack;
use crate::engines::best::{Attacks, BestAttack};
use crate::engines::fast::Dual;
use crate::engines::patience::Patience;
use crate::flip::Flip;
use crate::graph::Graph;
use crate::ids::{AttributeId, ClassId, NodeId};
use crate::model::{Activation, Layer, Model, Propagation, Source, Term};
use crate::network::{Network, largest};
use crate::prepare::{Order, Prepared, Shard};
use crate::proof::Proofs;
use crate::relax::Slopes;
use crate::slice::{Heaviest, Kept, LeftOut, RouteTables, Slice, SlicedFlip, reversed};
use crate::sparse::SparseMatrix;
use crate::values::Values;

const NODES: u32 = 4;
const ATTRIBUTES: u32 = 3;
const UNITS: usize = 3;

proptest! {
    #![proptest_config(crate::seed::config(2000))]

    /// Lemma 36, with as many flips as are left and fewer.
    #[test]
    fn a_relu_is_below_what_each_flip_bends_of_it(
        z in -2.0..=0.0f64,
        moves in prop::collection::vec(-1.0..1.5f64, 0..5),
        spare in 0usize..3,
        above in 0.0..1.0f64,
        part in 0.0..=1.0f64,
    ) {
        let left = moves.len() + spare;
        let reached: f64 = z + moves.iter().sum::<f64>();
        let beyond = relu(reached) + above;
        let sure = z.abs();
        let whole = Unit::new(z, sure, (f64::NEG_INFINITY, f64::INFINITY), left);
        let least = if beyond > 0.0 { beyond / (beyond + sure) } else { 1.0 };
        let unit = whole.with_share((least + (1.0 - least) * part).clamp(1e-3, 1.0), sure, beyond, left);
        for unit in [whole, unit] {
            let bound: f64 = moves.iter().map(|&x| unit.share * relu(x - unit.threshold)).sum();
            prop_assert!(relu(reached) <= bound + 1e-9, "{reached} > {bound} of {unit:?}");
        }
    }
}

/// A graph, two to four layers of one to three terms with propagations of both signs, and a budget.
fn random_problem(random: &mut ChaCha8Rng) -> (Graph, Model, Budget) {
    let mut pairs = |count: usize, to: u32| -> Vec<(u32, u32)> {
        (0..count).map(|_| (random.random_range(0..NODES), random.random_range(0..to))).collect()
    };
    let (edges, ones) = (pairs(4, NODES), pairs(5, ATTRIBUTES));
    let mut numbers = |count: usize| (0..count).map(|_| random.random_range(-1.0..1.0)).collect::<Vec<f64>>();
    let signed: Vec<(u32, u32, f64)> = (0..NODES)
        .flat_map(|m| (0..NODES).map(move |n| (m, n)))
        .zip(numbers(16))
        .map(|((m, n), p)| (m, n, p))
        .collect();
    let signed = SparseMatrix::from_triplets(NODES as usize, NODES as usize, &signed[..]);
    let propagations = vec![Propagation::SymmetricGcn, Propagation::Identity, Propagation::Custom(signed)];
    let depth = random.random_range(2..=4);
    let mut layers = Vec::new();
    for i in 0..depth {
        let outputs = if i + 1 == depth { 2 } else { UNITS };
        let mut terms = Vec::new();
        for k in 0..random.random_range(1..=3usize) {
            let source = match random.random_range(0..4) {
                0 if i > 0 && k > 0 => Source::Ones,
                1 if i > 1 => Source::Layer(random.random_range(0..i)),
                2 if k > 0 => Source::Attributes,
                _ if i > 0 => Source::Layer(i - 1),
                _ => Source::Attributes,
            };
            let inputs = match source {
                Source::Attributes => ATTRIBUTES as usize,
                Source::Layer(_) => UNITS,
                Source::Ones => 1,
            };
            let weight: Vec<f64> = (0..inputs * outputs).map(|_| random.random_range(-1.0..1.0)).collect();
            terms.push(Term::new(source, random.random_range(0..3), Matrix::from_values(inputs, outputs, weight)));
        }
        let activation = match random.random_range(0..4) {
            _ if i + 1 == depth => Activation::None,
            0 => Activation::None,
            1 => Activation::LeakyRelu(0.25),
            _ => Activation::Relu,
        };
        let bias = (0..outputs).map(|_| random.random_range(-0.5..0.5)).collect();
        layers.push(Layer::new(terms, bias, activation));
    }
    let model = Model::new(ATTRIBUTES as usize, propagations, layers).unwrap();
    let budget = Budget::new(random.random_range(1..=3), LocalBudget::Count(random.random_range(1..=2)));
    (Graph::new(NODES as usize, ATTRIBUTES as usize, &edges, &ones).unwrap(), model, budget)
}

/// Calls `check` with some targets of random problems.
fn each_target(count: u64, check: impl FnMut(&Shard, &Slice, &mut ChaCha8Rng)) {
    each_target_of(AttributeKind::Bits, count, check);
}

/// The same with attributes of another kind.
fn each_target_of(kind: AttributeKind, count: u64, mut check: impl FnMut(&Shard, &Slice, &mut ChaCha8Rng)) {
    for i in 0..count {
        let mut random = ChaCha8Rng::seed_from_u64(crate::seed::seed(i));
        let (graph, model, budget) = random_problem(&mut random);
        let (graph, model) = (graph.with_kind(kind), model.with_kind(kind));
        let network = Network::new(&graph, &model).unwrap();
        let limits = budget.limits(&graph).unwrap();
        let nodes: Vec<NodeId> = graph.node_ids().collect();
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let prepared = Prepared::new(&network, &nodes, &Slopes::Default, &pool);
        let shared = prepared.shard(&limits, &nodes, &pool, |_, _| ControlFlow::Continue(())).unwrap();
        check(&shared, network.slicer().slice(nodes[i as usize % nodes.len()]), &mut random);
    }
}

/// All sets of `flips` that may be made beside those of the base point.
fn sets(base: &Base, flips: &[SlicedFlip]) -> Vec<Vec<SlicedFlip>> {
    let mut all = vec![Vec::new()];
    for &flip in flips.iter().filter(|flip| !base.flips.contains(flip)) {
        for set in all.clone() {
            let at_node = set.iter().filter(|other: &&SlicedFlip| other.0 == flip.0).count();
            if set.len() < base.left && at_node < base.capacities[flip.0 as usize] as usize {
                all.push([&set[..], &[flip]].concat());
            }
        }
    }
    all
}

/// Base points: the attributes as they are, and with a flip made.
fn bases(target: &Target, attack: &mut Attack, y: ClassId, random: &mut ChaCha8Rng) -> Vec<Base> {
    let clean = Base::clean(target, y, Knows::Bounds);
    let flips = target.all_flips(&clean);
    let mut bases = vec![clean];
    if !flips.is_empty() {
        let flip = flips[random.random_range(0..flips.len())];
        let _ = attack.margin(target.slice, y, [flip].into_iter());
        bases.push(Base::tried(target, attack, y, vec![flip], Knows::Bounds));
    }
    bases
}

/// Lines by chance, with ends over the sets of `flips`, and phases where they leave no choice.
fn random_lines(
    bounding: &mut Bounding,
    target: &Target,
    base: &Base,
    flips: &[SlicedFlip],
    random: &mut ChaCha8Rng,
) -> Lines {
    let mut lines = tangents(base);
    if random.random_bool(0.5) {
        let narrowed = bounding.narrow(target, base, flips, &mut lines, &Patience::endless());
        assert_eq!(narrowed, Ok(true), "nothing contradicts the ends");
    }
    for (layer, lines) in lines.iter_mut().enumerate() {
        let slope = target.shared.network.layers()[layer].activation().slope();
        for line in lines.values_mut() {
            (line.slope, line.chord) = (random.random_range(slope..=1.0), random.random_range(0.0..=1.0));
            line.multiplier = random_multiplier(line, random);
        }
    }
    lines
}

/// A multiplier that suits the phase of a line; often 0.
fn random_multiplier(line: &Line, random: &mut ChaCha8Rng) -> f64 {
    let (least, most) = line.multipliers();
    random.random_range(-2.0f64..2.0).clamp(least, most)
}

/// Lemmas 37 to 41 and 43: every set has the margin that its gains leave, whatever the lines, and whether or not the base point knows what
/// they know; no flip moves a unit further than its reach, and none leaves the ends.
#[test]
fn gains_bound_the_margin_of_every_set() {
    let (mut checked, mut bent, mut signed, mut multiplied, mut narrowed) = (0, 0, 0, 0, 0);
    each_target(150, |shared, slice, random| {
        let (target, mut attack) = (Target::new(shared, slice), Attack::new(shared));
        let y = largest(shared.logits(slice.target()));
        let pair = (y, ClassId(1 - y.0));
        for base in bases(&target, &mut attack, y, random) {
            let flips: Vec<SlicedFlip> =
                target.all_flips(&base).into_iter().filter(|flip| !base.flips.contains(flip)).collect();
            let mut bounding = Bounding::default();
            let at = At { target: &target, base: &base, pair };
            bounding.linear.compute(at, None);
            let mut lines = random_lines(&mut bounding, &target, &base, &flips, random);
            // A sign that is looked at on both sides.
            let is_open = |&(layer, at): &(usize, usize)| {
                let activation = shared.network.layers()[layer].activation();
                activation != Activation::None && lines[layer].values()[at].phase.is_none()
            };
            let units =
                (0..target.hidden()).flat_map(|layer| (0..lines[layer].values().len()).map(move |at| (layer, at)));
            let open: Vec<(usize, usize)> = units.filter(is_open).collect();
            let asked = (!open.is_empty()).then(|| open[random.random_range(0..open.len())]);
            let signs = asked.into_iter().flat_map(|unit| [Some((unit, false)), Some((unit, true))]);
            for sign in [None].into_iter().chain(signs) {
                if let Some(((layer, at), on)) = sign {
                    let line = &mut lines[layer].values_mut()[at];
                    line.phase = Some(on);
                    line.multiplier = random_multiplier(line, random);
                    multiplied += usize::from(line.multiplier != 0.0);
                }
                for lines in [None, Some(&lines)].into_iter().skip(usize::from(sign.is_some())) {
                    let base = match lines {
                        Some(lines) if random.random_bool(0.7) => base.clone().narrowed(&target, lines),
                        _ => base.clone(),
                    };
                    let units = |base: &Base| {
                        base.units.iter().flat_map(|units| units.values()).map(|unit| unit.share).sum::<f64>()
                    };
                    narrowed += usize::from(units(&base) < units(at.base));
                    let (mut linear, mut cones) = (Linearisation::default(), Cones::default());
                    linear.compute(At { base: &base, ..at }, lines);
                    let mut gain = |flip: SlicedFlip| {
                        let excess = linear.excess_gain(cones.of(&target, &base, flip));
                        bent += usize::from(excess > 0.0);
                        linear.linear_gain(&target, &base, flip) + excess
                    };
                    let gains: Vec<f64> = flips.iter().map(|&flip| gain(flip)).collect();
                    for set in sets(&base, &flips) {
                        let all = base.flips.iter().chain(&set).copied();
                        let _ = attack.margin(slice, y, all);
                        let z = |layer: usize| attack.pre_activations()[layer].values();
                        if let Some(((layer, at), on)) = sign {
                            signed += 1;
                            if (z(layer)[at] > 0.0) != on {
                                continue;
                            }
                        }
                        let of = |flip: &SlicedFlip| gains[flips.iter().position(|other| other == flip).unwrap()];
                        let bound = linear.constant - set.iter().map(of).sum::<f64>();
                        let margin = attack.margin_of(pair.0, pair.1);
                        assert!(margin >= bound - linear.error, "{margin} < {bound} with {set:?}");
                        checked += 1;
                        for layer in 0..target.hidden() {
                            let moved = z(layer).iter().zip(base.z[layer].values()).enumerate();
                            for (at, (moved, z)) in moved {
                                let reach = target.reach[layer].values()[at];
                                let is_near = set.len() != 1 || (moved - z).abs() <= reach + 1e-12;
                                assert!(is_near, "{moved} is too far from {z}: {reach}");
                                let (lo, hi) = lines.map_or((*moved, *moved), |lines| lines[layer].values()[at].ends);
                                assert!(lo - 1e-12 <= *moved && *moved <= hi + 1e-12, "{moved} is not in [{lo}, {hi}]");
                            }
                        }
                    }
                }
            }
        }
    });
    assert!(checked > 10_000 && bent > 500 && signed > 2_000, "{checked} {bent} {signed}");
    assert!(multiplied > 100 && narrowed > 50, "{multiplied} {narrowed}");
}

/// Lemma 45: every set has the margin that the scores of its flips leave, or those of the ones that it leaves of a row, where these are fewer.
#[test]
fn scores_bound_the_margin_of_every_set() {
    let (mut checked, mut halved, mut emptied) = (0, 0, 0);
    each_target_of(AttributeKind::NormalisedRows, 300, |shared, slice, random| {
        let (target, mut attack) = (Target::new(shared, slice), Attack::new(shared));
        let y = largest(shared.logits(slice.target()));
        let pair = (y, ClassId(1 - y.0));
        for base in bases(&target, &mut attack, y, random) {
            let rows = base.rows.as_ref().unwrap();
            let (mut bounding, mut scores) = (Bounding::default(), Scores::default());
            bounding.linear.compute(At { target: &target, base: &base, pair }, None);
            let flips = target.all_flips(&base);
            let positions = 0..slice.level(0).len() as u32;
            let kept: Vec<SlicedFlip> = positions.flat_map(|n| rows.kept(&target, &base, n)).collect();
            for &flip in flips.iter().chain(&kept).filter(|flip| base.capacities[flip.0 as usize] > 0) {
                bounding.score(&target, &base, rows, flip, &mut scores);
            }
            let all = sets(&base, &flips);
            for set in all.iter().filter(|set| base.left > 0 && !set.is_empty()) {
                let mut gains = 0.0;
                for position in 0..slice.level(0).len() as u32 {
                    let of_row: Vec<SlicedFlip> = set.iter().copied().filter(|flip| flip.0 == position).collect();
                    let removed = of_row.iter().filter(|&&flip| shared.change(slice, flip) < 0.0).count();
                    let ones = rows.ones(position);
                    let left = ones + of_row.len() - 2 * removed;
                    if of_row.is_empty() {
                        continue;
                    }
                    if left == 0 {
                        gains += bounding.gain(&target, &base, (position, ALL));
                        emptied += 1;
                        continue;
                    }
                    let place = left - rows.possible(&base, position).start();
                    let score = |flip: &SlicedFlip| scores.at(scores.of(*flip).unwrap(), place);
                    let of_flips: f64 = of_row.iter().map(score).sum();
                    let stays =
                        |flip: &&SlicedFlip| flip.0 == position && !of_row.contains(&(position, flip.1 & !KEPT));
                    let added = of_row.iter().filter(|&&flip| shared.change(slice, flip) > 0.0);
                    let of_kept: f64 = added.chain(kept.iter().filter(stays)).map(score).sum();
                    let is_halved = 2 * removed >= ones;
                    halved += usize::from(is_halved && of_kept < of_flips);
                    gains += if is_halved { of_kept.min(of_flips) } else { of_flips } / left as f64;
                }
                let _ = attack.margin(slice, y, base.flips.iter().chain(set).copied());
                let (margin, bound) = (attack.margin_of(pair.0, pair.1), bounding.linear.constant - gains);
                assert!(margin >= bound - bounding.linear.error, "{margin} < {bound} with {set:?}");
                checked += 1;
            }
        }
    });
    assert!(checked > 5_000 && halved > 100 && emptied > 100, "{checked} {halved} {emptied}");
}

/// Lemma 44: what is trained to be large is at most the margin under the flips that it charges, which keep to the budget.
#[test]
fn margins_of_first_order_are_below_those_of_their_flips() {
    let mut changed = 0;
    for kind in [AttributeKind::Bits, AttributeKind::NormalisedRows, AttributeKind::RealValues] {
        each_target_of(kind, 300, |shared, slice, _| {
            if matches!(shared.order, Order::Pairs(_)) {
                return;
            }
            let (mut attack, mut margins) = (Attack::new(shared), Margins::default());
            let y = largest(shared.logits(slice.target()));
            let (other, clean) = (ClassId(1 - y.0), CleanTarget::new(shared, slice, y));
            margins.begin();
            let bound = margins.of(&clean, other);
            let _ = attack.margin(slice, y, margins.selected().iter().copied());
            let margin = attack.margin_of(y, other);
            assert!(margin >= bound - 1e-9, "{margin} < {bound} with {:?}", margins.selected());
            assert!(margins.selected().len() <= shared.limits.global());
            for position in 0..slice.level(0).len() as u32 {
                let of_row = margins.selected().iter().filter(|flip| flip.0 == position).count();
                assert!(of_row <= shared.limits.local(NodeId(slice.level(0)[position as usize])));
            }
            changed += usize::from(margin < bound + 0.5 && margins.selected().len() > 1);
        });
    }
    assert!(changed > 300, "{changed}");
}

/// Lemmas 22 to 26: with hardly a flip listed, hardly a step made, and whatever is branched on, the search finds a counterexample
/// if there is one. Where few sets are left, it branches on flips alone.
#[test]
fn branching_decides_every_target() {
    branching_decides(AttributeKind::Bits, 150);
}

/// The same where the ones of rows are divided by their number (Lemmas 45 to 48).
#[test]
fn branching_decides_every_target_on_normalised_rows() {
    branching_decides(AttributeKind::NormalisedRows, 600);
}

fn branching_decides(kind: AttributeKind, count: u64) {
    let tunings = [
        Tuning { steps: 0, many: (0, 0), signs: 0 },
        Tuning { steps: 0, many: (0, 0), signs: 3 },
        Tuning { steps: 1, many: (3, 0), signs: 1 },
        Tuning { steps: 0, many: (1000, 0), signs: 3 },
        Tuning::default(),
    ];
    let (mut found, mut closed, mut branches, mut few) = (0, 0, 0, 0);
    each_target_of(kind, count, |shared, slice, _| {
        let (target, mut attack) = (Target::new(shared, slice), Attack::new(shared));
        let y = largest(shared.logits(slice.target()));
        let pair = (y, ClassId(1 - y.0));
        let base = Base::clean(&target, y, Knows::Bounds);
        let flips = target.all_flips(&base);
        let (all, is_few) = (sets(&base, &flips), base.left == 1 || flips.len() <= FEW);
        let margin = |attack: &mut Attack, set: &Vec<SlicedFlip>| {
            let _ = attack.margin(slice, y, set.iter().copied());
            attack.margin_of(pair.0, pair.1)
        };
        let truth = all.iter().map(|set| margin(&mut attack, set)).fold(f64::INFINITY, f64::min);
        if truth.abs() < 1e-9 {
            return; // A tie is for other tests.
        }
        let mut by_tuning = Vec::new();
        for tuning in tunings {
            let mut best = BestAttack::new(attack.margin(slice, y, std::iter::empty()));
            let mut attacks = Attacks { shared, slice, y, attack: &mut attack, best: &mut best };
            let mut search = Search::new(&target, &mut attacks, Patience::endless());
            search.bounding.tuning = tuning;
            let base = Base::clean(&target, y, Knows::Bounds);
            let (value, threshold, filled) = (f64::NEG_INFINITY, f64::INFINITY, base.left);
            let bounded = Bounded { value, threshold, filled, ..Bounded::default() };
            let (outcome, lower) = search.branch(Subproblem::all(base, pair, None, &bounded), bounded);
            branches += search.branches;
            by_tuning.push(search.branches);
            assert_eq!(outcome, if truth < 0.0 { Outcome::Found } else { Outcome::Closed }, "{tuning:?}: {truth}");
            assert!(lower.value() <= truth + 1e-9, "{tuning:?}: {lower:?} > {truth}");
            *if truth < 0.0 { &mut found } else { &mut closed } += 1;
        }
        if is_few {
            assert_eq!(by_tuning[0], by_tuning[1], "signs are tried where few sets are left");
            few += u32::from(by_tuning[0] > 0);
        }
    });
    assert!(found > 50 && closed > 50 && branches > 300 && few > 0, "{found} {closed} {branches} {few}");
}

/// What a slice leaves out does not matter where deciding and proving say nothing of it: verdicts are right, and bounds below every margin.
#[test]
fn what_is_left_out_does_not_matter_where_it_is_not_asked_for() {
    let (mut decided, mut proven, mut left_out) = ([0, 0], 0, 0);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    for i in 0..1000 {
        let mut random = ChaCha8Rng::seed_from_u64(crate::seed::seed(i));
        let (graph, model) = random_hubs(&mut random);
        let network = Network::new(&graph, &model).unwrap();
        let budget = Budget::new(random.random_range(1..=3), LocalBudget::Count(random.random_range(1..=2)));
        let limits = budget.limits(&graph).unwrap();
        let nodes: Vec<NodeId> = graph.node_ids().collect();
        let prepared = Prepared::new(&network, &nodes, &Slopes::Default, &pool);
        let shared = &prepared.shard(&limits, &nodes, &pool, |_, _| ControlFlow::Continue(())).unwrap();
        let heaviest = Heaviest::new(network.matrix(0, 0), 1, 0);
        let (mut near_slicer, mut slicer) = (network.slicer(), network.slicer());
        let node = nodes[random.random_range(0..nodes.len())];
        let (near, whole) = (near_slicer.near(node, &heaviest), slicer.slice(node));
        if near.is_whole() {
            continue;
        }
        let (mut attack, mut dual) = (Attack::new(shared), Dual::new(shared));
        let (logits, y) = (shared.logits(node), largest(shared.logits(node)));
        let mut truth = vec![f64::INFINITY; logits.len()];
        let target = Target::new(shared, whole);
        let clean = Base::clean(&target, y, Knows::Bounds);
        for set in sets(&clean, &target.all_flips(&clean)) {
            let _ = attack.margin(whole, y, set.into_iter());
            let others = truth.iter_mut().enumerate().filter(|(k, _)| *k != y.index());
            others.for_each(|(k, least)| *least = least.min(attack.margin_of(y, ClassId(k as u32))));
        }
        let least = truth.iter().copied().fold(f64::INFINITY, f64::min);
        if least.abs() < 1e-9 {
            continue; // A tie is for other tests.
        }
        for with_proofs in [false, true] {
            let mut margins: Vec<Option<Bound>> =
                (0..logits.len()).map(|k| (k != y.index()).then_some(Bound::Unknown)).collect();
            let mut best = BestAttack::new(attack.margin(near, y, std::iter::empty()));
            let mut attacks = Attacks { shared, slice: near, y, attack: &mut attack, best: &mut best };
            let mut known = Proofs::new();
            let short = with_proofs.then_some(&mut known);
            let Ok(_) = decide(&mut margins, &mut attacks, Some(&mut dual), short, Patience::endless()) else {
                left_out += 1;
                continue;
            };
            assert_eq!(best.succeeds(), least < 0.0, "{least}: {margins:?}");
            decided[usize::from(best.succeeds())] += 1;
            for (margin, truth) in margins.iter().zip(&truth) {
                assert!(margin.is_none_or(|margin| margin.value() <= truth + 1e-9), "{margin:?} > {truth}");
            }
            if with_proofs && least > 0.0 {
                let mut best = BestAttack::new(attack.margin(near, y, std::iter::empty()));
                let mut attacks = Attacks { shared, slice: near, y, attack: &mut attack, best: &mut best };
                match prove(&margins, &mut attacks, known, Patience::endless()) {
                    Ok(shown) => {
                        proven += 1;
                        let shown = shown.expect("there is no limit").margins;
                        let mut pairs = shown.iter().zip(&truth);
                        assert!(pairs.all(|(shown, truth)| shown.is_none_or(|shown| shown.value() <= *truth)));
                    }
                    Err(LeftOut) => left_out += 1,
                }
            }
        }
    }
    assert!(decided.iter().all(|&count| count > 50) && proven > 20 && left_out > 50, "{decided:?} {proven} {left_out}");
}

/// A graph of which one node has all others as neighbours, and a network with one hidden layer.
fn random_hubs(random: &mut ChaCha8Rng) -> (Graph, Model) {
    let nodes = random.random_range(5..=8u32);
    let mut edges: Vec<(u32, u32)> = (1..nodes).map(|node| (0, node)).collect();
    edges
        .extend((0..random.random_range(0..6)).map(|_| (random.random_range(0..nodes), random.random_range(0..nodes))));
    let ones: Vec<(u32, u32)> =
        (0..8).map(|_| (random.random_range(0..nodes), random.random_range(0..ATTRIBUTES))).collect();
    let classes = random.random_range(2..=3usize);
    let mut numbers =
        |count: usize, of: f64| -> Vec<f64> { (0..count).map(|_| random.random_range(-of..of)).collect() };
    let weights = (numbers(ATTRIBUTES as usize * UNITS, 1.0), numbers(UNITS * classes, 1.0));
    let biases = (numbers(UNITS, 0.5), numbers(classes, 0.3));
    let layers = vec![
        (Matrix::from_values(ATTRIBUTES as usize, UNITS, weights.0), biases.0),
        (Matrix::from_values(UNITS, classes, weights.1), biases.1),
    ];
    let model = Model::gcn(layers, Propagation::SymmetricGcn).unwrap();
    (Graph::new(nodes as usize, ATTRIBUTES as usize, &edges, &ones).unwrap(), model)
}

/// Lemma 75: what a slice that is cut by the weights of nodes leaves out does not matter where deciding and proving say nothing of it, and
/// never gains more than is said of it.
#[test]
fn what_is_cut_off_does_not_matter_where_it_is_not_asked_for() {
    let (mut decided, mut proven, mut left_out, mut bounded) = ([0, 0], 0, 0, 0);
    for kind in [AttributeKind::Bits, AttributeKind::NormalisedRows, AttributeKind::RealValues] {
        each_cut_of(kind, 700, |shared, cut, slice, random| {
            bounded += left_out_flips_gain_no_more((shared, cut, slice), random);
            let (node, mut attack, mut dual) = (slice.target(), Attack::new(shared), Dual::new(shared));
            let y = largest(shared.logits(node));
            let other = ClassId(1 - y.0);
            let target = Target::new(shared, slice);
            let clean = Base::clean(&target, y, Knows::Bounds);
            let mut truth = f64::INFINITY;
            let goes_both_ways = |set: &Vec<SlicedFlip>| set.iter().any(|&flip| set.contains(&reversed(flip)));
            for set in sets(&clean, &target.all_flips(&clean)).into_iter().filter(|set| !goes_both_ways(set)) {
                let _ = attack.margin(slice, y, set.into_iter());
                truth = truth.min(attack.margin_of(y, other));
            }
            if truth.abs() < 1e-9 {
                return; // A tie is for other tests.
            }
            for with_proofs in [false, true] {
                let mut margins = vec![None; 2];
                margins[other.index()] = Some(Bound::Unknown);
                let mut best = BestAttack::new(attack.margin(cut, y, std::iter::empty()));
                let mut attacks = Attacks { shared, slice: cut, y, attack: &mut attack, best: &mut best };
                let mut known = Proofs::new();
                let short = with_proofs.then_some(&mut known);
                let Ok(decision) = decide(&mut margins, &mut attacks, Some(&mut dual), short, Patience::endless())
                else {
                    left_out += 1;
                    continue;
                };
                // Not all real values are ends of their ranges.
                let is_open = decision.obstacle == Obstacle::Values && !best.succeeds();
                let is_robust = margins[other.index()].is_some_and(Bound::is_positive) && !best.succeeds();
                assert!(is_open || best.succeeds() || is_robust, "{truth}: {margins:?}");
                assert!(!best.succeeds() || truth < 0.0, "{truth} is not below 0");
                assert!(!is_robust || truth > 0.0, "{truth}: {margins:?}");
                decided[usize::from(best.succeeds())] += 1;
                let bound = margins[other.index()].unwrap();
                assert!(bound.value() <= truth + 1e-9, "{bound:?} > {truth}");
                if best.succeeds() {
                    let flips: Vec<Flip> = best.witness(cut, shared).flips;
                    let logits = shared.network.logits_under(node, &flips);
                    assert!(logits[y.index()] - logits[other.index()] <= 1e-9, "{flips:?} is no witness");
                }
                if with_proofs && is_robust {
                    let mut best = BestAttack::new(attack.margin(cut, y, std::iter::empty()));
                    let mut attacks = Attacks { shared, slice: cut, y, attack: &mut attack, best: &mut best };
                    match prove(&margins, &mut attacks, known, Patience::endless()) {
                        Ok(shown) => {
                            let Some(shown) = shown else { continue };
                            proven += 1;
                            assert!(shown.margins[other.index()].is_none_or(|shown| shown.value() <= truth));
                        }
                        Err(LeftOut) => left_out += 1,
                    }
                }
            }
        });
    }
    assert!(decided.iter().all(|&count| count > 200), "{decided:?}");
    assert!(proven > 100 && left_out > 200 && bounded > 5_000, "{proven} {left_out} {bounded}");
}

/// Lemma 75: with the flips of a cut slice the network has the pre-activations that it has with those of the whole one, and no flip at a node
/// that is left out gains more around a base point than is said of these; how many were looked at.
fn left_out_flips_gain_no_more((shared, cut, slice): (&Shard, &Slice, &Slice), random: &mut ChaCha8Rng) -> usize {
    let (near, whole) = (Target::new(shared, cut), Target::new(shared, slice));
    let (mut near_attack, mut attack) = (Attack::new(shared), Attack::new(shared));
    let y = largest(shared.logits(slice.target()));
    let position = |of: &Slice, node: u32| of.level(0).iter().position(|&other| other == node).unwrap() as u32;
    let in_whole = |&(at, d): &SlicedFlip| (position(slice, cut.level(0)[at as usize]), d);
    let clean = Base::clean(&whole, y, Knows::Bounds);
    let is_kept = |&(at, _): &SlicedFlip| cut.level(0).contains(&slice.level(0)[at as usize]);
    let (kept, gone): (Vec<SlicedFlip>, Vec<SlicedFlip>) = whole.all_flips(&clean).into_iter().partition(is_kept);
    let in_near = |&(at, d): &SlicedFlip| (position(cut, slice.level(0)[at as usize]), d);
    let mut flips: Vec<SlicedFlip> = kept.iter().map(in_near).collect();
    flips.truncate(random.random_range(0..=1));
    let others: Vec<SlicedFlip> = flips.iter().map(in_whole).collect();
    let found = near_attack.margin(cut, y, flips.iter().copied()).margin;
    let expected = attack.margin(slice, y, others.iter().copied()).margin;
    assert!((found.value - expected.value).abs() <= found.error + expected.error, "{found:?}, {expected:?}");
    for layer in 0..near.hidden() {
        for (row, &node) in cut.level(layer + 1).iter().enumerate() {
            let at = position_of(slice, layer + 1, node);
            let moved = attack.pre_activations()[layer].row(at);
            let pairs = near_attack.pre_activations()[layer].row(row).iter().zip(moved);
            assert!(pairs.clone().all(|(a, b)| (a - b).abs() < 1e-12), "layer {layer} of {node}");
        }
    }
    let tried =
        |target: &Target, attack: &Attack, flips: Vec<SlicedFlip>| Base::tried(target, attack, y, flips, Knows::Bounds);
    let (near_base, base) = (tried(&near, &near_attack, flips), tried(&whole, &attack, others));
    let pair = (y, ClassId(1 - y.0));
    let mut near_lines = tangents(&near_base);
    for (layer, lines) in near_lines.iter_mut().enumerate() {
        let slope = shared.network.layers()[layer].activation().slope();
        for line in lines.values_mut() {
            (line.slope, line.chord) = (random.random_range(slope..=1.0), random.random_range(0.0..=1.0));
            if random.random_bool(0.2) {
                line.phase = Some(random.random_bool(0.5));
                line.multiplier = random_multiplier(line, random);
            }
        }
    }
    // The same lines on the whole slice, and tangents where it has more.
    let mut lines = tangents(&base);
    for (layer, lines) in lines.iter_mut().enumerate() {
        for (row, &node) in cut.level(layer + 1).iter().enumerate() {
            let at = position_of(slice, layer + 1, node);
            lines.row_mut(at).copy_from_slice(near_lines[layer].row(row));
        }
    }
    let mut checked = 0;
    for (near_lines, lines) in [(None, None), (Some(&near_lines), Some(&lines))] {
        let (mut near_linear, mut linear) = (Linearisation::default(), Linearisation::default());
        near_linear.compute(At { target: &near, base: &near_base, pair }, near_lines);
        linear.compute(At { target: &whole, base: &base, pair }, lines);
        assert!((near_linear.constant - linear.constant).abs() < 1e-9);
        let (mut screening, mut near_cones, mut cones) = (Screening::default(), Cones::default(), Cones::default());
        screening.compute(&near, &near_base, &near_linear);
        let most = screening.lowest_threshold(&near);
        // What screening says of whole rows is at most that, too, which is closer than what their flips gain.
        let mut of_whole = Screening::default();
        of_whole.compute(&whole, &base, &linear);
        for (at, _) in slice.level(0).iter().enumerate().filter(|(_, node)| !cut.level(0).contains(node)) {
            let said = of_whole.largest_of_row(&whole, &base, at);
            assert!(said <= most * (1.0 + 1e-6) + 1e-12, "row {at} gains {said}, more than {most}");
        }
        for flip in gone.iter().filter(|flip| base.capacities[flip.0 as usize] > 0) {
            let gain = linear.linear_gain(&whole, &base, *flip) + linear.excess_gain(cones.of(&whole, &base, *flip));
            assert!(gain <= most + 1e-9, "{flip:?} gains {gain}, more than {most}");
            checked += 1;
        }
        for flip in kept.iter().filter(|flip| base.capacities[flip.0 as usize] > 0 && !base.flips.contains(flip)) {
            let gain = linear.linear_gain(&whole, &base, *flip) + linear.excess_gain(cones.of(&whole, &base, *flip));
            let flip = in_near(flip);
            let excess = near_linear.excess_gain(near_cones.of(&near, &near_base, flip));
            let near_gain = near_linear.linear_gain(&near, &near_base, flip) + excess;
            // Where fewer flips can be made in sight than the budget has, the whole slice knows it.
            let is_same = near_base.left != base.left || (gain - near_gain).abs() < 1e-9;
            assert!(is_same, "{flip:?} gains {gain}, not {near_gain}");
        }
    }
    checked
}

/// The position of a node on a level.
fn position_of(slice: &Slice, level: usize, node: u32) -> usize {
    slice.level(level).iter().position(|&other| other == node).unwrap()
}

/// Calls `check` with cut slices, and whole ones, of targets of random networks with up to three hidden layers on graphs with hubs.
fn each_cut_of(kind: AttributeKind, count: u64, mut check: impl FnMut(&Shard, &Slice, &Slice, &mut ChaCha8Rng)) {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    for i in 0..count {
        let mut random = ChaCha8Rng::seed_from_u64(crate::seed::seed(i));
        let (graph, model) = random_deep_hubs(&mut random);
        let mut graph = graph.with_kind(kind);
        if graph.values().is_some() && random.random_bool(0.5) {
            let count = graph.nodes() * ATTRIBUTES as usize;
            let values = (0..count).map(|_| f64::from(random.random_range(0..=4u8)) / 4.0).collect();
            let values = Matrix::from_values(graph.nodes(), ATTRIBUTES as usize, values);
            graph = graph.with_values(Values::new(values).unwrap()).unwrap();
        }
        let model = model.with_kind(kind);
        let network = Network::new(&graph, &model).unwrap();
        let limits = random_budget(&graph, &mut random).limits(&graph).unwrap();
        let nodes: Vec<NodeId> = graph.node_ids().collect();
        let prepared = Prepared::new(&network, &nodes, &Slopes::Default, &pool);
        let shared = prepared.shard(&limits, &nodes, &pool, |_, _| ControlFlow::Continue(())).unwrap();
        let kept = Kept {
            nodes: random.random_range(1..=3),
            readers: random.random_range(2..=9),
            few: 0,
            faint: [0.0, 0.2, 0.6, 0.9][random.random_range(0..4)],
            light: f64::INFINITY,
        };
        let tables = RouteTables::new(&network, kept).unwrap();
        let (mut cutter, mut slicer) = (network.slicer(), network.slicer());
        // The second time the slicer has been used before.
        for _ in 0..2 {
            let node = nodes[random.random_range(0..nodes.len())];
            let (cut, slice) = (cutter.cut(node, &tables), slicer.slice(node));
            if !cut.is_whole() {
                check(&shared, cut, slice, &mut random);
            }
        }
    }
}

/// At most three flips, and sometimes protected nodes and attributes, nodes with a budget of their own, or additions alone.
fn random_budget(graph: &Graph, random: &mut ChaCha8Rng) -> Budget {
    let global = [1, 1, 2, 2, 2, 2, 2, 3][random.random_range(0..8)];
    let mut budget = Budget::new(global, LocalBudget::Count(random.random_range(1..=2)));
    let mut node = || NodeId(random.random_range(0..graph.nodes() as u32));
    let nodes = [node(), node()];
    if random.random_bool(0.3) {
        budget = budget.protect_nodes([nodes[0]]).local_at(nodes[1], random.random_range(0..=3));
    }
    if random.random_bool(0.3) {
        budget = budget.protect_attributes([AttributeId(random.random_range(0..ATTRIBUTES))]);
    }
    if random.random_bool(0.3) { budget.direction(Direction::AddOnly) } else { budget }
}

/// A graph with a hub and perhaps nodes without edges, and one to three hidden layers of one to three terms, each of which reads the one
/// before or the constant 1, with propagations of both signs.
fn random_deep_hubs(random: &mut ChaCha8Rng) -> (Graph, Model) {
    let nodes = random.random_range(5..=7u32);
    let mut edges: Vec<(u32, u32)> = (1..nodes).filter(|_| random.random_bool(0.8)).map(|node| (0, node)).collect();
    edges
        .extend((0..random.random_range(0..5)).map(|_| (random.random_range(0..nodes), random.random_range(0..nodes))));
    let ones: Vec<(u32, u32)> =
        (0..8).map(|_| (random.random_range(0..nodes), random.random_range(0..ATTRIBUTES))).collect();
    let mut signed = Vec::new();
    for pair in edges.iter().flat_map(|&(a, b)| [(a, b), (b, b)]) {
        signed.push((pair.0, pair.1, [0.0, -0.25, -1.0, 0.5, 2.0][random.random_range(0..5)]));
    }
    signed.sort_by_key(|&(m, n, _)| (m, n));
    signed.dedup_by_key(|&mut (m, n, _)| (m, n));
    let signed = SparseMatrix::from_triplets(nodes as usize, nodes as usize, &signed);
    let propagations =
        vec![Propagation::SymmetricGcn, Propagation::RowNormalised, Propagation::Identity, Propagation::Custom(signed)];
    let depth = random.random_range(2..=4usize);
    let mut layers = Vec::new();
    for i in 0..depth {
        let outputs = if i + 1 == depth { 2 } else { UNITS };
        let mut terms = Vec::new();
        for k in 0..random.random_range(1..=3usize) {
            let (source, inputs) = match i {
                _ if k == 2 => (Source::Ones, 1),
                0 => (Source::Attributes, ATTRIBUTES as usize),
                i => (Source::Layer(i - 1), UNITS),
            };
            let weight: Vec<f64> = (0..inputs * outputs).map(|_| random.random_range(-1.0..1.0)).collect();
            let propagation = [0, 0, 1, 2, 3][random.random_range(0..5)];
            terms.push(Term::new(source, propagation, Matrix::from_values(inputs, outputs, weight)));
        }
        let activation = match random.random_range(0..6) {
            _ if i + 1 == depth => Activation::None,
            0 => Activation::None,
            1 => Activation::LeakyRelu(0.25),
            _ => Activation::Relu,
        };
        let bias = (0..outputs).map(|_| random.random_range(-0.5..0.5)).collect();
        layers.push(Layer::new(terms, bias, activation));
    }
    let model = Model::new(ATTRIBUTES as usize, propagations, layers).unwrap();
    (Graph::new(nodes as usize, ATTRIBUTES as usize, &edges, &ones).unwrap(), model)
}

/// A bound that was not finished proves nothing.
#[test]
fn nothing_is_known_when_time_is_up() {
    let mut cut = 0;
    each_target(100, |shared, slice, _| {
        let target = Target::new(shared, slice);
        let y = largest(shared.logits(slice.target()));
        let base = Base::clean(&target, y, Knows::Bounds);
        let at = At { target: &target, base: &base, pair: (y, ClassId(1 - y.0)) };
        let patience = Patience { deadline: Some(Instant::now()), ..Patience::endless() };
        let mut bounding = Bounding::default();
        let screened = bounding.by_screening(at, None, (&[], None), &patience, |_| false);
        let listed = bounding.of_list(at, None, &target.all_flips(&base), &patience);
        for bounded in [screened, listed] {
            assert!(bounded.cut.is_none() || !bounded.is_positive(), "{bounded:?}");
            cut += usize::from(bounded.cut.is_some());
        }
    });
    assert!(cut > 100, "{cut}");
}

/// Lemma 40: whatever gains at least the threshold is listed.
#[test]
fn screening_lists_every_flip_that_gains_enough() {
    let mut listed_and_not = [0, 0];
    each_target(200, |shared, slice, random| {
        let (target, mut attack) = (Target::new(shared, slice), Attack::new(shared));
        let y = largest(shared.logits(slice.target()));
        for base in bases(&target, &mut attack, y, random) {
            let (mut linear, mut screening, mut cones) =
                (Linearisation::default(), Screening::default(), Cones::default());
            linear.compute(At { target: &target, base: &base, pair: (y, ClassId(1 - y.0)) }, None);
            screening.compute(&target, &base, &linear);
            let flips = target.all_flips(&base);
            let gain = |flip: SlicedFlip| {
                linear.linear_gain(&target, &base, flip) + linear.excess_gain(cones.of(&target, &base, flip))
            };
            let gains: Vec<f64> = flips.iter().copied().map(gain).collect();
            let most = gains.iter().copied().fold(0.0, f64::max);
            for threshold in [0.25, 0.5, 0.9, 1.0].map(|share| share * most).into_iter().filter(|&t| t > 0.0) {
                let listed = screening.above(&target, &base, &linear, threshold, &Patience::endless()).unwrap();
                for (flip, &gain) in flips.iter().zip(&gains).filter(|(flip, _)| !base.flips.contains(flip)) {
                    let is_listed = listed.flips.iter().any(|(_, listed)| listed == flip);
                    assert!(is_listed || gain < threshold + linear.error, "{flip:?} gains {gain}, above {threshold}");
                    listed_and_not[usize::from(is_listed)] += 1;
                }
            }
        }
    });
    assert!(listed_and_not.iter().all(|&count| count > 500), "{listed_and_not:?}");
}

/// Lemma 40: the bound by screening is that over all flips, though few gains are computed, and the others are no larger than it says.
#[test]
fn the_largest_gains_are_found_among_few() {
    let (mut whole, mut left_out) = (0, 0);
    each_target(300, |shared, slice, random| {
        let (target, mut attack) = (Target::new(shared, slice), Attack::new(shared));
        let y = largest(shared.logits(slice.target()));
        for base in bases(&target, &mut attack, y, random).into_iter().filter(|base| base.left > 0) {
            let at = At { target: &target, base: &base, pair: (y, ClassId(1 - y.0)) };
            let mut bounding = Bounding::default();
            let flips: Vec<SlicedFlip> =
                target.all_flips(&base).into_iter().filter(|flip| !base.flips.contains(flip)).collect();
            let screened = bounding.by_screening(at, None, (&base.flips, None), &Patience::endless(), |_| false);
            let all = bounding.of_list(at, None, &flips, &Patience::endless());
            assert!(screened.value <= all.value + all.error, "{} > {}", screened.value, all.value);
            if screened.filled == 0 {
                assert!((screened.value - all.value).abs() <= all.error, "{} {}", screened.value, all.value);
                whole += 1;
            }
            for &(gain, flip) in &all.gains {
                let is_listed = screened.gains.iter().any(|&(_, listed)| listed == flip);
                assert!(is_listed || gain <= screened.threshold + all.error, "{gain} > {}", screened.threshold);
                left_out += usize::from(!is_listed && gain > 0.0);
            }
        }
    });
    assert!(whole > 200 && left_out > 200, "{whole} {left_out}");
}

/// Flips that exact arithmetic finds to be a witness are kept with their margin, not as a tie.
#[test]
fn what_exact_arithmetic_refutes_keeps_its_margin() {
    let mut refuted = 0;
    each_target(100, |shared, slice, _| {
        let (target, mut attack) = (Target::new(shared, slice), Attack::new(shared));
        let y = largest(shared.logits(slice.target()));
        let k = ClassId(1 - y.0);
        let base = Base::clean(&target, y, Knows::Bounds);
        for set in sets(&base, &target.all_flips(&base)) {
            let found = attack.margin(slice, y, set.iter().copied());
            if found.margin.upper() < 0.0 {
                let mut best = BestAttack::new(attack.margin(slice, y, std::iter::empty()));
                let mut attacks = Attacks { shared, slice, y, attack: &mut attack, best: &mut best };
                assert!(!attacks.holds(k, set.iter().copied()));
                assert!(best.succeeds() && best.margin() < 0.0, "{}", best.margin());
                refuted += 1;
            }
        }
    });
    assert!(refuted > 50, "{refuted}");
}

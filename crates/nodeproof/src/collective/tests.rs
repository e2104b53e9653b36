//! Bounds for given multipliers against sums over all admissible sets, and the best multipliers against a linear program.

use std::ops::ControlFlow;

use microlp::{ComparisonOp, OptimizationDirection, Problem};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::prices::{ANY, BEYOND, CUTS, ELSEWHERE, Multipliers, Priced, Prices, weight};
use super::table::Fallible;
use super::*;
use crate::budget::{Budget, Limits, LocalBudget};
use crate::engines::first_order::RowParts;
use crate::graph::Graph;
use crate::ids::NodeId;

const ATTRIBUTES: u32 = 4;

/// A table with random parts, of which some are not listed, and some elsewhere.
fn table(random: &mut ChaCha8Rng, global: u32, local: u32) -> Table {
    let (seen, graph, limits) = seen(random, global, local);
    let memory = if random.random_bool(0.5) { usize::MAX } else { random.random_range(0..1000) };
    filled(&seen, (&graph, &limits), memory)
}

/// What random targets see.
fn seen(random: &mut ChaCha8Rng, global: u32, local: u32) -> (Vec<Seen>, Graph, Limits) {
    let nodes = random.random_range(1..5u32);
    let graph = Graph::new(nodes as usize, ATTRIBUTES as usize, &[], &[]).unwrap();
    let limits = Budget::new(global, LocalBudget::Count(local)).limits(&graph).unwrap();
    let targets = random.random_range(1..7);
    let seen = (0..targets).map(|target| {
        let sees: Vec<u32> = (0..nodes).filter(|_| random.random_bool(0.7)).collect();
        let mut row = |&node: &u32| {
            let cap = random.random_range(0.0..0.5) / f64::from(global);
            let listed = (0..ATTRIBUTES).filter(|_| random.random_bool(0.4)).collect::<Vec<_>>();
            let flips = listed.into_iter().map(|d| (d, random.random_range(0.0..1.2))).collect();
            RowParts { node, cap, flips }
        };
        let rows: Vec<RowParts> = sees.iter().map(&mut row).collect();
        let has_parts = random.random_bool(0.9);
        let withstands = random.random_range(0..3);
        Seen { node: NodeId(target), withstands, nodes: sees, rows: has_parts.then_some(rows) }
    });
    (seen.collect(), graph, limits)
}

fn filled(seen: &[Seen], (graph, limits): (&Graph, &Limits), memory: usize) -> Table {
    let mut table = Filling::new(seen.len(), limits, graph, memory);
    seen.iter().for_each(|of| table.add(of.clone()));
    table.table(limits)
}

/// All flips: every attribute of each row, as many others as the row may have, and as many as there may be elsewhere.
fn flips(table: &Table) -> Vec<Priced> {
    let of_row = |(place, row): (u32, &super::table::Row)| {
        let any = (0..row.most).map(move |_| (place, ANY));
        (0..ATTRIBUTES).map(move |d| (place, d)).chain(any).collect::<Vec<_>>()
    };
    let elsewhere = (0..table.possible).map(|_| (ELSEWHERE, ANY));
    (0u32..).zip(&table.rows).flat_map(of_row).chain(elsewhere).collect()
}

/// What a flip is in each cut of each target.
fn weights(table: &Table, flip: Priced) -> Vec<[f64; CUTS]> {
    let taken: Vec<(u32, f32)> = table.taken(flip).map(|(entry, part)| (entry.target, part)).collect();
    let of = |(place, target): (u32, &Fallible)| {
        let listed = taken.iter().find(|(of, _)| *of == place).map(|&(_, part)| part);
        let part = listed.or(target.elsewhere);
        let weight = |cut: usize| part.map_or(0.0, |part| weight(cut, part, target.withstands, table.global));
        std::array::from_fn(|cut| if Cuts::All.has(cut, target) { weight(cut) } else { 0.0 })
    };
    (0u32..).zip(&table.targets).map(of).collect()
}

fn random_multipliers(random: &mut ChaCha8Rng, table: &Table) -> Multipliers {
    let of = |target: &Fallible| {
        let mut one = |cut: usize| {
            let some = Cuts::All.has(cut, target) && random.random_bool(0.4);
            if some { random.random_range(0.0..0.6) } else { 0.0 }
        };
        std::array::from_fn(&mut one)
    };
    table.targets.iter().map(of).collect()
}

/// The dearest admissible set, one flip after the other.
fn dearest(table: &Table, multipliers: &Multipliers) -> f64 {
    let price = |flip: Priced| -> f64 {
        let weights = weights(table, flip);
        weights.iter().flatten().zip(multipliers.iter().flatten()).map(|(w, of)| w * of).sum()
    };
    let mut prices: Vec<(f64, Priced)> = flips(table).into_iter().map(|flip| (price(flip), flip)).collect();
    prices.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut left: Vec<usize> = table.rows.iter().map(|row| row.most).collect();
    let mut total = 0.0;
    let mut made = 0;
    for (price, (row, _)) in prices {
        let left = left.get_mut(row as usize);
        if made < table.possible && left.as_ref().is_none_or(|left| **left > 0) {
            made += 1;
            left.into_iter().for_each(|left| *left -= 1);
            total += price;
        }
    }
    total
}

#[test]
fn the_bound_is_that_of_the_dearest_set() {
    let mut random = ChaCha8Rng::seed_from_u64(crate::seed::seed(1));
    for _ in 0..2000 {
        let (global, local) = (random.random_range(1..6), random.random_range(1..4));
        let table = table(&mut random, global, local);
        let multipliers = random_multipliers(&mut random, &table);
        let rest: f64 = multipliers.iter().map(|of| (1.0 - of.iter().sum::<f64>()).max(0.0)).sum();
        let (expected, found) = (dearest(&table, &multipliers) + rest, Prices::new(&table).best(&multipliers));
        assert!(found.bound >= expected && found.bound <= expected + 1e-9, "{} instead of {expected}", found.bound);
    }
}

/// The least bound over all multipliers, as the attacker's linear program has it.
fn least_bound(table: &Table) -> f64 {
    let mut program = Problem::new(OptimizationDirection::Maximize);
    let flips = flips(table);
    let spread: Vec<_> = flips.iter().map(|_| program.add_var(0.0, (0.0, 1.0))).collect();
    let falls: Vec<_> = table.targets.iter().map(|_| program.add_var(1.0, (0.0, 1.0))).collect();
    let weights: Vec<_> = flips.iter().map(|&flip| weights(table, flip)).collect();
    for (target, of) in table.targets.iter().enumerate() {
        for cut in (0..CUTS).filter(|&cut| Cuts::All.has(cut, of)) {
            let sum = spread.iter().zip(&weights).map(|(&y, weights)| (y, -weights[target][cut]));
            program.add_constraint([(falls[target], 1.0)].into_iter().chain(sum), ComparisonOp::Le, 0.0);
        }
    }
    for (place, row) in (0u32..).zip(&table.rows) {
        let of_row = flips.iter().zip(&spread).filter(|(flip, _)| flip.0 == place);
        program.add_constraint(of_row.map(|(_, &y)| (y, 1.0)), ComparisonOp::Le, row.most as f64);
    }
    program.add_constraint(spread.iter().map(|&y| (y, 1.0)), ComparisonOp::Le, table.possible as f64);
    program.solve().unwrap().into_solution().unwrap().objective()
}

#[test]
fn balanced_multipliers_come_close_to_those_of_a_linear_program() {
    let mut random = ChaCha8Rng::seed_from_u64(crate::seed::seed(2));
    let mut same = 0;
    for _ in 0..300 {
        let (global, local) = (random.random_range(1..6), random.random_range(1..4));
        let table = table(&mut random, global, local);
        let found = balance(&table, Cuts::All, |_, _| ControlFlow::Continue(())).unwrap();
        let least = least_bound(&table);
        assert!(found.at_most as f64 + 1e-6 >= least.floor(), "{} is below {least}", found.at_most);
        assert!(found.at_most <= (least + 0.1).floor() as usize + 1, "{} is far above {least}", found.at_most);
        same += usize::from(found.at_most == (least + 1e-6).floor() as usize);
    }
    assert!(same >= 270, "only {same} of 300 are those of the program");
}

#[test]
fn what_a_gain_takes_beyond_a_part_is_stretched_to_the_whole() {
    for (i, beyond) in BEYOND.into_iter().enumerate() {
        assert!((weight(i + 1, 1.0, 0, 1) - 1.0).abs() < 1e-15, "one flip that takes all is enough");
        assert_eq!(weight(i + 1, (beyond / 3.0) as f32 * 0.999, 0, 3), 0.0);
    }
    assert_eq!(weight(0, 0.0, 3, 9), 0.25);
}

/// In a table that may not grow flips take no less, and what is taken of a target is known at fewer nodes.
#[test]
fn where_memory_ends_flips_take_as_much_or_more() {
    let mut random = ChaCha8Rng::seed_from_u64(4);
    let (mut fewer, mut elsewhere) = (0, 0);
    for _ in 0..500 {
        let (seen, graph, limits) = seen(&mut random, 3, 2);
        let whole = filled(&seen, (&graph, &limits), usize::MAX);
        let memory = random.random_range(0..1500);
        let small = filled(&seen, (&graph, &limits), memory);
        let bytes = Table::bytes;
        assert!(bytes(&small) <= memory, "{} of {memory}", bytes(&small));
        elsewhere += small.targets.iter().filter(|of| of.elsewhere.is_some_and(|part| part > 0.0)).count();
        fewer += usize::from(bytes(&small) < bytes(&whole));
        for (before, now) in whole.targets.iter().zip(&small.targets) {
            assert_eq!((before.node, before.has_parts, before.elsewhere), (now.node, now.has_parts, None));
            assert_eq!(before.withstands, now.withstands);
        }
        let flips_at = |table: &Table, node: NodeId| {
            (0u32..).zip(&table.rows).find(|(_, row)| row.node == node).map(|(place, _)| place)
        };
        for (place, row) in (0u32..).zip(&whole.rows) {
            for d in (0..ATTRIBUTES).chain([ANY]) {
                let of_whole = weights(&whole, (place, d));
                let place = flips_at(&small, row.node).unwrap_or(ELSEWHERE);
                let of_small = weights(&small, if place == ELSEWHERE { (ELSEWHERE, ANY) } else { (place, d) });
                for (whole, small) in of_whole.iter().flatten().zip(of_small.iter().flatten()) {
                    assert!(small >= whole, "{small} is less than {whole}");
                }
            }
        }
    }
    assert!(fewer > 100 && elsewhere > 100, "{fewer}, {elsewhere}");
}

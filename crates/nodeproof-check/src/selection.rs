//! What the flips of any set gain together at most, and so the bound (Lemmas 39 and 40 of `docs/maths.md`).

use nodeproof_problem::{AttributeId, NodeId};

use crate::base::Base;
use crate::bound::{Linearised, Query};
use crate::interval::{Interval, down, larger, relu, up};
use crate::number::Number;
use crate::rows::Row;

/// The level from which on flips are looked at falls so often, first by this factor from one look to the next, then faster.
const LOOKS: usize = 32;
const FALL: f64 = 0.75;
/// It begins with this part of what each flip may gain for the bound to be positive.
pub(crate) const FIRST: f64 = 0.98;

/// A lower bound of the margin over all sets of a base point, if possible one above `wanted`.
pub(crate) fn lower_bound(base: &Base, linear: &Linearised, wanted: f64) -> f64 {
    let freed = base.freed().iter().map(|flip| {
        let row = base.region.rows.binary_search(&flip.node).unwrap_or_default();
        relu(gain_of_value(base, linear, row, flip.attribute, flip.to))
    });
    let constant = freed.fold(linear.constant, |sum, gain| down(sum - gain));
    if base.left == 0 {
        return constant;
    }
    let queries = linear.queries();
    let is_normalised = base.network.graph.kind().is_normalised();
    let count = if is_normalised { base.region.rows.len() } else { 0 };
    let mut rows: Vec<Row> = (0..count).map(|row| Row::new(base, row)).collect();
    let mut best = f64::NEG_INFINITY;
    let mut level = FIRST * (constant - wanted) / base.left as f64;
    for look in 0..LOOKS {
        // NaN is no level.
        let is_level = level > f64::MIN_POSITIVE;
        if !is_level {
            break;
        }
        let is_enough = |total: f64| down(constant - total) > wanted;
        let (total, is_final) = if is_normalised {
            (largest_of_rows(base, &mut rows, linear, &queries, level, is_enough), false)
        } else {
            largest_total(base, gains_above(base, linear, &queries, level), level)
        };
        best = best.max(down(constant - total));
        if is_enough(total) || is_final {
            break;
        }
        level *= if 3 * look < LOOKS { FALL } else { FALL.powi(4) };
    }
    best
}

/// The flips that may gain more than a level: at most what they gain, rows and attributes.
pub(crate) fn gains_above(
    base: &Base,
    linear: &Linearised,
    queries: &[Query],
    level: f64,
) -> Vec<(f64, usize, AttributeId)> {
    let (network, mut gains) = (base.network, Vec::new());
    let widest = network.widest;
    for (row, (&node, query)) in base.region.rows.iter().zip(queries).enumerate() {
        if base.capacities[row] == 0 {
            continue;
        }
        let entries = network.row(node, &base.flips);
        for &attribute in &network.by_length {
            let length = network.lengths[attribute.index()];
            if up(up(query.length * length) * widest) < level {
                break;
            }
            let weights = network.weight.row(attribute.index());
            let (added, taken) = query.bounds(weights, length);
            if up(larger(added, taken) * widest) <= level || !base.may_flip(row, attribute) {
                continue;
            }
            let value = entries.get(&attribute).copied().unwrap_or(0.0);
            let bound = |change: f64| if change < 0.0 { up(taken * -change) } else { up(added * change) };
            let changes = changes(base, node, attribute, value);
            if changes.iter().any(|change| !(bound(change.hi) <= level && bound(change.lo) <= level)) {
                gains.push((gain_of_value(base, linear, row, attribute, value), row, attribute));
            }
        }
    }
    gains
}

/// At most what any flip of a row gains.
pub(crate) fn largest_of_row(base: &Base, query: &Query) -> f64 {
    let longest = base.network.by_length.first().map_or(0.0, |d| base.network.lengths[d.index()]);
    up(up(query.length * longest) * base.network.widest)
}

/// The same where the ones of rows are divided by their number: at most what the best way of spending flips on rows gains. Rows that it
/// spends flips on are looked at more closely until that is little enough.
fn largest_of_rows(
    base: &Base,
    rows: &mut [Row],
    linear: &Linearised,
    queries: &[Query],
    level: f64,
    is_enough: impl Fn(f64) -> bool,
) -> f64 {
    let looked = rows.iter_mut().zip(queries).map(|(row, query)| row.gains(linear, query, level));
    let mut gains: Vec<Option<Vec<f64>>> = looked.collect();
    loop {
        let (total, spent) = best_way(base.left, &gains, level);
        if is_enough(total) {
            return total;
        }
        let closer: Vec<usize> =
            spent.into_iter().filter(|&(row, flips)| rows[row].look_closer(flips)).map(|(row, _)| row).collect();
        if closer.is_empty() {
            return total;
        }
        closer.into_iter().for_each(|row| gains[row] = rows[row].gains(linear, &queries[row], level));
    }
}

/// At most what flips gain that are spent on rows in the best way, and the rows with how many; flips of rows that are not known gain at most `level`.
fn best_way(left: usize, gains: &[Option<Vec<f64>>], level: f64) -> (f64, Vec<(usize, usize)>) {
    let mut totals: Vec<f64> = (0..=left).map(|count| up(count as f64 * level)).collect();
    let mut ways: Vec<(usize, Vec<usize>)> = Vec::new();
    for (row, gains) in gains.iter().enumerate().filter_map(|(row, gains)| Some((row, gains.as_ref()?))) {
        let mut on_row = vec![0; left + 1];
        for count in (1..=left).rev() {
            for k in 1..gains.len().min(count + 1) {
                let total = up(totals[count - k] + gains[k]);
                if total > totals[count] {
                    (totals[count], on_row[count]) = (total, k);
                }
            }
        }
        ways.push((row, on_row));
    }
    let (mut count, mut spent) = (left, Vec::new());
    for (row, on_row) in ways.into_iter().rev() {
        if on_row[count] > 0 {
            spent.push((row, on_row[count]));
            count -= on_row[count];
        }
    }
    (totals[left], spent)
}

/// Whether no flip is left that changes what the network reads, so that the base point is its only set.
pub(crate) fn is_alone(base: &Base) -> bool {
    let (network, is_normalised) = (base.network, base.network.graph.kind().is_normalised());
    let rows = base.region.rows.iter().enumerate().filter(|&(row, _)| base.left > 0 && base.capacities[row] > 0);
    let mut flips = rows.flat_map(|(row, &node)| {
        let entries = network.row(node, &base.flips);
        network.by_length.iter().filter(move |&&d| {
            let does_something = is_normalised || network.weight.row(d.index()).iter().any(|&w| w != 0.0);
            let value = entries.get(&d).copied().unwrap_or(0.0);
            let moves = || changes(base, node, d, value).iter().any(|change| *change != Interval::ZERO);
            does_something && base.may_flip(row, d) && moves()
        })
    });
    flips.next().is_none()
}

/// By what an entry can be changed at most: the ends of what it can become, less what it is.
fn changes(base: &Base, node: NodeId, attribute: AttributeId, value: f64) -> Vec<Interval> {
    let (network, limits) = (base.network, &base.network.limits);
    match network.graph.values() {
        None if value == 0.0 => limits.additions().then_some(Interval::of(1.0)).into_iter().collect(),
        None => limits.deletions().then_some(Interval::of(-1.0)).into_iter().collect(),
        Some(values) => {
            let ends = limits.range(values, node, attribute).map(|(low, high)| [low, high]);
            ends.into_iter().flatten().map(|end| Interval::of(end) + Interval::of(-value)).collect()
        }
    }
}

/// At most what a change of an entry gains that has a value now.
fn gain_of_value(base: &Base, linear: &Linearised, row: usize, attribute: AttributeId, value: f64) -> f64 {
    let weights = base.network.weight.row(attribute.index());
    let changes = changes(base, base.region.rows[row], attribute, value);
    changes.iter().map(|&change| linear.gain(row, &scaled(weights, change), 1.0)).fold(0.0, larger)
}

fn scaled(weights: &[f64], change: Interval) -> Vec<Interval> {
    weights.iter().map(|&w| change.times(w)).collect()
}

/// The largest total of as many gains as are left, with no more of a row than it has left, and flips that gain at most `level` in place of
/// those that are missing; and whether there are none of these.
pub(crate) fn largest_total(base: &Base, mut gains: Vec<(f64, usize, AttributeId)>, level: f64) -> (f64, bool) {
    let key = |gain: f64| if gain.is_nan() { f64::INFINITY } else { gain };
    gains.sort_by(|a, b| key(b.0).total_cmp(&key(a.0)));
    let mut capacities = base.capacities.clone();
    let (mut total, mut count) = (0.0, 0);
    for (gain, row, _) in gains {
        if gain <= level || count == base.left {
            break;
        }
        if capacities[row] > 0 {
            capacities[row] -= 1;
            count += 1;
            total = up(total + gain);
        }
    }
    (up(total + up((base.left - count) as f64 * level)), count == base.left)
}

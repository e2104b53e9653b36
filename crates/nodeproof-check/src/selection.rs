//! What the flips of any set gain together at most, and so the bound (Lemmas 39 and 40 of `docs/maths.md`).

use nodeproof_problem::{AttributeId, NodeId};

use crate::base::Base;
use crate::bound::{Linearised, Query};
use crate::interval::{Interval, down, larger, relu, up};
use crate::number::Number;
use crate::rows::{Care, Row};

/// The level from which on flips are looked at falls so often, first by this factor from one look to the next, then faster.
const LOOKS: usize = 32;
const FALL: f64 = 0.75;
/// It begins with this part of what each flip may gain for the bound to be positive.
const FIRST: f64 = 0.98;

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
    let cares = if is_normalised { &[Care::Little, Care::Some, Care::Much][..] } else { &[Care::Much] };
    let mut rows: Vec<Row> =
        if is_normalised { (0..base.region.rows.len()).map(|row| Row::new(base, row)).collect() } else { Vec::new() };
    let mut best = f64::NEG_INFINITY;
    for &care in cares {
        let mut level = FIRST * (constant - wanted) / base.left as f64;
        for look in 0..LOOKS {
            // NaN is no level.
            let is_level = level > f64::MIN_POSITIVE;
            if !is_level {
                return best;
            }
            let total = if is_normalised {
                largest_of_rows(base, &mut rows, linear, &queries, level, care)
            } else {
                largest_total(base, gains_above(base, linear, &queries, level), level)
            };
            let (total, is_final) = total;
            best = best.max(down(constant - total));
            if best > wanted {
                return best;
            }
            let is_hopeless = care != Care::Much && best + 2.0 * base.left as f64 * level < wanted;
            if is_final || is_hopeless {
                break;
            }
            level *= if 3 * look < LOOKS && care == cares[0] { FALL } else { FALL.powi(4) };
        }
    }
    best
}

/// The flips that may gain more than a level: rows, and at most what they gain.
fn gains_above(base: &Base, linear: &Linearised, queries: &[Query], level: f64) -> Vec<(f64, usize)> {
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
                gains.push((gain_of_value(base, linear, row, attribute, value), row));
            }
        }
    }
    gains
}

/// The same where the ones of rows are divided by their number: the best way of spending flips on rows, row by row.
fn largest_of_rows(
    base: &Base,
    rows: &mut [Row],
    linear: &Linearised,
    queries: &[Query],
    level: f64,
    care: Care,
) -> (f64, bool) {
    let mut totals: Vec<f64> = (0..=base.left).map(|count| up(count as f64 * level)).collect();
    for (row, query) in rows.iter_mut().zip(queries) {
        let Some(gains) = row.gains(linear, query, level, care) else { continue };
        for count in (0..=base.left).rev() {
            let ways = gains.iter().enumerate().take(count + 1).map(|(k, gain)| up(totals[count - k] + gain));
            totals[count] = ways.fold(0.0, larger);
        }
    }
    (totals[base.left], false)
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
fn largest_total(base: &Base, mut gains: Vec<(f64, usize)>, level: f64) -> (f64, bool) {
    let key = |gain: f64| if gain.is_nan() { f64::INFINITY } else { gain };
    gains.sort_by(|a, b| key(b.0).total_cmp(&key(a.0)));
    let mut capacities = base.capacities.clone();
    let (mut total, mut count) = (0.0, 0);
    for (gain, row) in gains {
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

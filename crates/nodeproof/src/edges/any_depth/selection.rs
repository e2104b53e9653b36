//! What the deletions of any set take together at most (Lemma 65 of `docs/maths.md`).

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::cones::Listed;
use super::region::NOWHERE;

/// At most what a deletion takes.
#[derive(Debug, Clone)]
pub(super) struct Gain {
    pub(super) fixed: f64,
    /// For each end, after each number of deletions there.
    pub(super) ends: [Vec<f64>; 2],
}

impl Gain {
    /// With at most so many deletions at each end.
    pub(super) fn most(&self, counts: [usize; 2]) -> f64 {
        self.fixed + self.at(0, 1..=counts[0]) + self.at(1, 1..=counts[1])
    }

    /// With exactly so many at one end, and at most so many at the other.
    pub(super) fn exactly(&self, end: usize, count: usize, at_other: usize) -> f64 {
        self.fixed + self.at(end, count..=count) + self.at(1 - end, 1..=at_other)
    }

    /// At least, with any numbers at its ends.
    pub(super) fn least(&self) -> f64 {
        let least = |of: &Vec<f64>| of.iter().copied().reduce(f64::min).unwrap_or(0.0);
        self.fixed + self.ends.iter().map(least).sum::<f64>()
    }

    /// What it takes of something else, too.
    pub(super) fn add(&mut self, other: &Self) {
        self.fixed += other.fixed;
        for (of, other) in self.ends.iter_mut().zip(&other.ends) {
            of.iter_mut().zip(other).for_each(|(gain, other)| *gain += other);
        }
    }

    fn at(&self, end: usize, counts: RangeInclusive<usize>) -> f64 {
        let of = &self.ends[end];
        let of = &of[(counts.start() - 1).min(of.len())..(*counts.end()).min(of.len())];
        if of.is_empty() { 0.0 } else { of.iter().copied().fold(f64::NEG_INFINITY, f64::max) }
    }
}

/// What sets of listed deletions take at most.
#[derive(Debug)]
pub(super) struct Most {
    /// All sets.
    pub(super) total: f64,
    /// For each listed deletion: the sets that have it.
    pub(super) with: Vec<f64>,
}

/// Of sets of at most `left` deletions, those without ends among others of any node. With κ the largest number of deletions at a node in a set, and n such a node, no other has more than
/// min(κ, left − κ + 1); so a set is made of κ deletions at n, and of left − κ others at most.
pub(super) fn most(listed: &[(&Listed, &Gain)], left: usize) -> Most {
    let mut at_node: BTreeMap<u32, Vec<(usize, usize)>> = BTreeMap::new();
    for (f, (listed, _)) in listed.iter().enumerate() {
        for (e, &n) in listed.ends.iter().enumerate().filter(|&(_, &n)| n != NOWHERE) {
            at_node.entry(n).or_default().push((f, e));
        }
    }
    let mut most = Most { total: 0.0, with: vec![f64::NEG_INFINITY; listed.len()] };
    add_elsewhere(&mut most, listed, left);
    for count in 1..=left {
        add_count(&mut most, listed, left, &at_node, count);
    }
    most
}

/// Of sets of deletions that are at no node.
fn add_elsewhere(most: &mut Most, listed: &[(&Listed, &Gain)], left: usize) {
    let elsewhere = || (0..listed.len()).filter(|&f| listed[f].0.ends == [NOWHERE; 2]);
    let mut order: Vec<usize> = elsewhere().filter(|&f| listed[f].1.fixed > 0.0).collect();
    order.sort_by(|&f, &g| listed[g].1.fixed.total_cmp(&listed[f].1.fixed));
    let taken = order.iter().flat_map(|&f| std::iter::repeat_n(listed[f].1.fixed, listed[f].0.count));
    let taken: Vec<f64> = taken.take(left).collect();
    let total: f64 = taken.iter().sum();
    most.total = most.total.max(total);
    let with_other = if left > 0 && taken.len() == left { total - taken[left - 1] } else { total };
    for f in elsewhere() {
        most.with[f] = most.with[f].max(with_other + listed[f].1.fixed);
    }
}

fn add_count(
    most: &mut Most,
    listed: &[(&Listed, &Gain)],
    left: usize,
    at_node: &BTreeMap<u32, Vec<(usize, usize)>>,
    count: usize,
) {
    let (elsewhere, others) = (count.min(left - count + 1), left - count);
    let gains: Vec<f64> = listed.iter().map(|(_, gain)| gain.most([elsewhere, elsewhere])).collect();
    let mut order: Vec<usize> = (0..listed.len()).filter(|&f| gains[f] > 0.0).collect();
    order.sort_by(|&f, &g| gains[g].total_cmp(&gains[f]));
    // The most of any node, with one of the others missing.
    let mut with_other = f64::NEG_INFINITY;
    for (n, at) in at_node {
        let there_are = at.iter().map(|&(f, _)| listed[f].0.count).sum::<usize>();
        if there_are < count || at.iter().any(|&(f, e)| listed[f].1.ends[e].len() < count) {
            continue;
        }
        let mut here: Vec<(f64, usize)> =
            at.iter().map(|&(f, e)| (listed[f].1.exactly(e, count, elsewhere), f)).collect();
        here.sort_by(|a, b| b.0.total_cmp(&a.0));
        let taken = here.iter().flat_map(|&(gain, f)| std::iter::repeat_n(gain, listed[f].0.count)).take(count);
        let taken: Vec<f64> = taken.collect();
        let all: f64 = taken.iter().sum();
        let rest = order.iter().filter(|&&f| !listed[f].0.ends.contains(n));
        let rest: Vec<f64> =
            rest.flat_map(|&f| std::iter::repeat_n(gains[f], listed[f].0.count)).take(others).collect();
        let total = all + rest.iter().sum::<f64>();
        most.total = most.total.max(total);
        for &(gain, f) in &here {
            most.with[f] = most.with[f].max(total - taken[count - 1].max(gain) + gain);
        }
        if others > 0 {
            with_other = with_other.max(if rest.len() == others { total - rest[others - 1] } else { total });
        }
    }
    for (with, gain) in most.with.iter_mut().zip(&gains) {
        *with = with.max(with_other + gain);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    const NODES: u32 = 4;
    const LEFT: usize = 4;

    fn deletion() -> impl Strategy<Value = (Listed, Gain)> {
        let node = || prop_oneof![4 => 0..NODES, 1 => Just(NOWHERE)];
        let taken = || prop::collection::vec(-1.0..3.0f64, LEFT);
        ([node(), node()], -1.0..3.0f64, [taken(), taken()]).prop_map(|(ends, fixed, mut taken)| {
            taken.iter_mut().zip(ends).filter(|(_, n)| *n == NOWHERE).for_each(|(of, _)| of.clear());
            (Listed { candidate: 0, ends, count: 1 }, Gain { fixed, ends: taken })
        })
    }

    /// Deletions between few nodes, and at none, with what they take after each number of deletions at their ends; each edge once.
    fn deletions() -> impl Strategy<Value = Vec<(Listed, Gain)>> {
        prop::collection::vec(deletion(), 1..7).prop_map(|mut all| {
            let mut seen = BTreeSet::new();
            all.retain(|(listed, _)| {
                let [a, b] = listed.ends;
                a == NOWHERE || b == NOWHERE || (a != b && seen.insert((a.min(b), a.max(b))))
            });
            all
        })
    }

    proptest! {
        #![proptest_config(crate::seed::config(2000))]

        /// No set takes more, and none that has a deletion more than what is said of that.
        #[test]
        fn sets_take_what_is_said_at_most(deletions in deletions(), left in 0..=LEFT) {
            let most = most(&deletions.iter().map(|(listed, gain)| (listed, gain)).collect::<Vec<_>>(), left);
            for bits in (0..1u32 << deletions.len()).filter(|bits| bits.count_ones() as usize <= left) {
                let set = || deletions.iter().enumerate().filter(|(f, _)| bits >> f & 1 == 1);
                let at = |n: u32| set().filter(|(_, (listed, _))| listed.ends.contains(&n)).count();
                let end = |(&n, of): (&u32, &Vec<f64>)| if n == NOWHERE { 0.0 } else { of[at(n) - 1] };
                let takes = |(_, (listed, gain)): (usize, &(Listed, Gain))| {
                    gain.fixed + listed.ends.iter().zip(&gain.ends).map(end).sum::<f64>()
                };
                let taken: f64 = set().map(takes).sum();
                for (of, said) in set().map(|(f, _)| ("that has it", most.with[f])).chain([("", most.total)]) {
                    prop_assert!(taken <= said + 1e-9, "the set {bits:b} takes {taken}, not {said}, as one {of}");
                }
            }
        }
    }
}

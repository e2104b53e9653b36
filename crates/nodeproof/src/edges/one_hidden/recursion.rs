//! The best way to spend deletions on rows: a recursion over rows, with how many of them are unlinked from the target and how many edges
//! are deleted elsewhere.

use super::rows::{Gains, OwnRow};
use super::seen::Seen;
use crate::edge::Edge;
use crate::edges::search::Selected;

/// Deletions that one row answers for, the best first.
#[derive(Debug, Clone)]
struct Offer {
    gain: f64,
    edge: Edge,
}

/// What a row contributes at least, by the number of deletions that it answers for, if it is kept.
#[derive(Debug)]
struct Choice {
    least: f64,
    /// The number of its deletions for which that is so.
    state: usize,
}

/// Everything that is added up for one number of deletions at the target.
pub(super) struct Recursion<'r> {
    seen: &'r Seen,
    gains: &'r Gains,
    own: &'r OwnRow,
    /// How many edges are deleted at the target, and elsewhere at most.
    drops: usize,
    left: usize,
    rest: Vec<(f64, usize)>,
}

/// The sum of the first numbers, for each count.
fn sums(gains: impl Iterator<Item = f64>) -> Vec<f64> {
    std::iter::once(0.0)
        .chain(gains.scan(0.0, |sum, gain| {
            *sum += gain;
            Some(*sum)
        }))
        .collect()
}

fn by_falling_gain(offers: &mut [Offer]) {
    offers.sort_by(|a, b| b.gain.total_cmp(&a.gain).then(a.edge.cmp(&b.edge)));
}

/// What one row adds to the margin: if it is kept and if it is unlinked, by the number of edges that it answers for.
struct Table {
    kept: Vec<Choice>,
    dropped: Option<Vec<f64>>,
}

impl<'r> Recursion<'r> {
    pub(super) fn new(seen: &'r Seen, gains: &'r Gains, own: &'r OwnRow, drops: usize) -> Self {
        let left = seen.left - drops;
        let mut rest: Vec<(f64, usize)> = Vec::new();
        for (place, of) in seen.rest.iter().enumerate() {
            let gain: f64 = own.into * of.ends.iter().flatten().map(|&end| gains.rises[end]).sum::<f64>();
            if gain > 0.0 {
                rest.extend(std::iter::repeat_n((gain, place), of.most.min(left)));
            }
        }
        rest.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        rest.truncate(left);
        Self { seen, gains, own, drops, left, rest }
    }

    /// What an edge of a row gains at other rows, at most; its other end is the row's neighbour in this place.
    fn elsewhere(&self, row: usize, place: usize) -> f64 {
        let (gains, own) = (self.gains, self.own);
        let end = self.seen.rows[row].reads[place].end;
        let mut gain = gains.rises[row] + (gains.rises[end] - gains.of_rises[row][place]).max(0.0);
        if let Some(other) = self.seen.ends[end].row {
            // The other end loses it, too, if it is kept.
            let reads = &self.seen.rows[other].reads;
            let back = reads.iter().position(|read| read.end == row).unwrap_or(0);
            gain = (gain - gains.of_rises[other][back]).max(0.0);
            gain += gains.of_states[other].iter().map(|state| state.deletions[back]).fold(0.0, f64::max);
        }
        gain * own.into
    }

    /// The edges that a row answers for, with what they gain elsewhere, and how many others it has that may be deleted.
    fn owned(&self, row: usize) -> (Vec<(usize, f64)>, usize) {
        let (mut owned, mut others) = (Vec::new(), 0);
        for (place, read) in self.seen.rows[row].reads.iter().enumerate() {
            if !read.may_delete || read.end == 0 {
                continue;
            }
            match self.seen.ends[read.end].row {
                Some(other) if other < row => others += 1,
                _ => owned.push((place, self.elsewhere(row, place))),
            }
        }
        (owned, others)
    }

    /// What the rows of the ends of an edge add at the target when they lose it.
    fn at_target(&self, row: usize, place: usize, is_kept: bool) -> f64 {
        let other = self.seen.ends[self.seen.rows[row].reads[place].end].row;
        let of_row = if is_kept { self.own.rises[row] } else { 0.0 };
        of_row + other.map_or(0.0, |other| self.own.rises[other])
    }

    fn edge(&self, row: usize, place: usize) -> Edge {
        let of = &self.seen.rows[row];
        let edge = Edge::between(of.node, self.seen.ends[of.reads[place].end].node);
        edge.unwrap_or_else(|| unreachable!("a row does not read itself"))
    }

    /// The deletions that a kept row answers for in a state, the best first.
    fn offers(&self, row: usize, owned: &[(usize, f64)], state: usize) -> Vec<Offer> {
        let of = &self.gains.of_states[row][state];
        let offer = |&(place, elsewhere): &(usize, f64)| {
            let gain = self.own.into * of.deletions[place] + elsewhere + self.at_target(row, place, true);
            Offer { gain, edge: self.edge(row, place) }
        };
        let mut offers: Vec<Offer> = owned.iter().map(offer).collect();
        by_falling_gain(&mut offers);
        offers
    }

    /// The deletions that a row which is unlinked from the target answers for.
    fn offers_of_dropped(&self, row: usize, owned: &[(usize, f64)]) -> Vec<Offer> {
        let offer = |&(place, elsewhere): &(usize, f64)| Offer {
            gain: elsewhere + self.at_target(row, place, false),
            edge: self.edge(row, place),
        };
        let mut offers: Vec<Offer> = owned.iter().map(offer).filter(|offer| offer.gain > 0.0).collect();
        by_falling_gain(&mut offers);
        offers.truncate(self.left);
        offers
    }

    /// What unlinking a row from the target gains, beside its contribution.
    fn drop_gain(&self, row: usize) -> f64 {
        let gains = self.gains;
        let to_target = self.seen.rows[row].reads.iter().position(|read| read.end == 0);
        let own_rise = to_target.map_or(0.0, |place| gains.of_rises[row][place]);
        let at_others = gains.rises[row] + (gains.rises[0] - own_rise).max(0.0);
        self.own.drops[row] + self.own.into * at_others
    }

    fn table(&self, row: usize) -> Table {
        let (owned, others) = self.owned(row);
        let mut kept: Vec<Choice> = Vec::new();
        for (state, of) in self.gains.of_states[row].iter().enumerate().take(self.left + 1) {
            let sums = if state == 0 {
                vec![0.0]
            } else {
                sums(self.offers(row, &owned, state).into_iter().take(state).map(|offer| offer.gain))
            };
            for answered in state.saturating_sub(others)..=state.min(sums.len() - 1) {
                while kept.len() <= answered {
                    kept.push(Choice { least: f64::INFINITY, state: 0 });
                }
                let least = self.own.into * of.base - sums[answered];
                if least < kept[answered].least || least.is_nan() {
                    kept[answered] = Choice { least, state };
                }
            }
        }
        let dropped = (self.seen.rows[row].may_drop && self.drops > 0).then(|| {
            let gain = self.drop_gain(row);
            let offers = self.offers_of_dropped(row, &owned);
            sums(offers.iter().map(|offer| offer.gain)).into_iter().map(|sum| -gain - sum).collect()
        });
        Table { kept, dropped }
    }

    /// A lower bound of the margin, but for rounding; and, if it is asked for, deletions by which it seems to be reached.
    pub(super) fn solve(&self, with_selection: bool) -> (f64, Vec<Selected>) {
        let width = self.left + 1;
        let at = |drops: usize, spent: usize| drops * width + spent;
        let mut best = vec![f64::INFINITY; (self.drops + 1) * width];
        best[0] = self.own.base;
        let tables: Vec<Table> = (1..self.seen.rows.len()).map(|row| self.table(row)).collect();
        let mut history = Vec::new();
        for table in &tables {
            let mut next = vec![f64::INFINITY; best.len()];
            for drops in 0..=self.drops {
                for spent in 0..width {
                    let before = best[at(drops, spent)];
                    if before == f64::INFINITY {
                        continue;
                    }
                    for (more, choice) in table.kept.iter().enumerate().take(width - spent) {
                        lower(&mut next[at(drops, spent + more)], before + choice.least);
                    }
                    if let Some(dropped) = table.dropped.as_ref().filter(|_| drops < self.drops) {
                        for (more, least) in dropped.iter().enumerate().take(width - spent) {
                            lower(&mut next[at(drops + 1, spent + more)], before + least);
                        }
                    }
                }
            }
            if with_selection {
                history.push(std::mem::replace(&mut best, next));
            } else {
                best = next;
            }
        }
        let of_rest = sums(self.rest.iter().map(|&(gain, _)| gain));
        let (mut lowest, mut end) = (f64::INFINITY, (0, 0));
        for spent in 0..width {
            let more = (self.left - spent).min(of_rest.len() - 1);
            let total = best[at(self.drops, spent)] - of_rest[more];
            if total < lowest || total.is_nan() {
                (lowest, end) = (total, (spent, more));
            }
        }
        let selection =
            if with_selection && lowest.is_finite() { self.selection(&tables, &history, end) } else { Vec::new() };
        (lowest, selection)
    }

    /// The deletions on the way to the lowest sum.
    fn selection(&self, tables: &[Table], history: &[Vec<f64>], (mut spent, rest): (usize, usize)) -> Vec<Selected> {
        let width = self.left + 1;
        let (mut selected, mut drops) = (Vec::new(), self.drops);
        let alone = |offer: Offer| Selected { edge: offer.edge, gain: offer.gain, alike: vec![offer.edge] };
        for row in (1..=tables.len()).rev() {
            let (table, before) = (&tables[row - 1], &history[row - 1]);
            let kept = table
                .kept
                .iter()
                .enumerate()
                .take(spent + 1)
                .map(|(more, choice)| (before[drops * width + spent - more] + choice.least, more, false));
            let dropped = table.dropped.iter().filter(|_| drops > 0).flat_map(|of| of.iter().enumerate());
            let dropped = dropped
                .take(spent + 1)
                .map(|(more, least)| (before[(drops - 1) * width + spent - more] + least, more, true));
            let Some((_, more, is_dropped)) = kept.chain(dropped).min_by(|a, b| a.0.total_cmp(&b.0)) else { break };
            let (owned, _) = self.owned(row);
            if is_dropped {
                let of = &self.seen.rows[row];
                let edge = Edge::between(self.seen.rows[0].node, of.node);
                let contribution = self.gains.of_states[row].first().map_or(0.0, |state| state.base);
                let gain = self.drop_gain(row) + self.own.into * contribution;
                selected.extend(edge.map(|edge| alone(Offer { gain, edge })));
                selected.extend(self.offers_of_dropped(row, &owned).into_iter().take(more).map(alone));
                drops -= 1;
            } else if more > 0 {
                let state = table.kept[more].state;
                selected.extend(self.offers(row, &owned, state).into_iter().take(more).map(alone));
            }
            spent -= more;
        }
        let mut used = vec![0; self.seen.rest.len()];
        for &(gain, place) in &self.rest[..rest] {
            let edges = &self.seen.rest[place].edges;
            selected.push(Selected { edge: edges[used[place]], gain, alike: edges[used[place]..].to_vec() });
            used[place] += 1;
        }
        selected.sort_by(|a, b| b.gain.total_cmp(&a.gain).then(a.edge.cmp(&b.edge)));
        selected
    }
}

/// The smaller of two numbers; one that is not a number stays.
fn lower(to: &mut f64, by: f64) {
    if by < *to || by.is_nan() {
        *to = by;
    }
}

//! What the deletion of one edge takes from margins at most, whatever is flipped beside it (Lemma 70 of `docs/maths.md`).

use super::copies::Copies;
use crate::dense::{Matrix, add_scaled};
use crate::forward::{Carried, Interval, Intervals};
use crate::ids::{ClassId, NodeId};
use crate::model::{Activation, Source, Term, Weight};
use crate::prepare::Shard;
use crate::rounding::{FLOOR, gamma_after, magnitude};

/// Bounds how far copies are from the graph as it is.
#[derive(Debug)]
pub(crate) struct Losses<'l> {
    /// Bounds of flips on the graph as it is.
    shard: &'l Shard<'l>,
    /// The most that a change of an entry of the attributes by its size adds to each column of the weights of the attributes.
    largest: Vec<f64>,
}

/// Columns of weights and what they are multiplied by: a unit of a layer, or the lead of one class over another.
type Combination = Vec<(usize, f64)>;

/// By how much what a term or a layer makes of the copy is more than what it makes of the graph as it is.
type Differences = Vec<Interval>;

impl<'l> Losses<'l> {
    /// `None` where numbers may overflow.
    pub(crate) fn new(shard: &'l Shard<'l>) -> Option<Self> {
        if !shard.overflow_error.is_finite() {
            return None;
        }
        let network = shard.network;
        let sizes: Option<Vec<f64>> = network.value_sizes().map(Iterator::collect);
        let mut largest = vec![0.0f64; network.attribute_weight().columns()];
        for d in 0..network.attribute_weight().rows() {
            let size = sizes.as_ref().map_or(1.0, |sizes| sizes[d]);
            let row = network.attribute_weight().row(d);
            largest.iter_mut().zip(row).for_each(|(largest, w)| *largest = largest.max(w.abs() * size));
        }
        largest.iter_mut().for_each(|largest| *largest = magnitude(*largest));
        Some(Self { shard, largest })
    }

    /// For each copy and each class, at most how much smaller the lead of class y over it is than on the graph as it is, whatever the same flips
    /// on both; infinite where nothing is known.
    pub(crate) fn of(&self, copies: &Copies, y: ClassId) -> Vec<Vec<f64>> {
        let sums = self.shard.network.attribute_sums(&copies.nodes);
        let mut known: Vec<Vec<Differences>> = Vec::new();
        let layers = copies.model.layers();
        for (i, layer) in layers.iter().enumerate() {
            let is_last = i + 1 == layers.len();
            let unit = |j: usize| if is_last { vec![(y.index(), 1.0), (j, -1.0)] } else { vec![(j, 1.0)] };
            let combinations: Vec<Combination> = (0..layer.units()).map(unit).collect();
            let making = Making { losses: self, copies, sums: &sums, known: &known, i, combinations };
            let weights: Vec<Option<Weight>> = layer.terms().iter().map(|term| making.weight(term)).collect();
            let rows = copies.origins[i].iter().enumerate();
            let made = rows.map(|(copy, &origin)| making.row(&weights, copy, origin)).collect();
            known.push(made);
        }
        let lost = |lead: &Interval| -lead.lo + widening(lead.lo, lead.error);
        let lost = |lead: &Interval| Some(lost(lead)).filter(|lost| lost.is_finite()).unwrap_or(f64::INFINITY);
        known.pop().iter().flatten().map(|leads| leads.iter().map(lost).collect()).collect()
    }
}

/// One layer of copies.
struct Making<'m> {
    losses: &'m Losses<'m>,
    copies: &'m Copies,
    /// What the nodes make of their attributes.
    sums: &'m Matrix,
    /// Of the layers below, how far activations of each copy are from those of its origin.
    known: &'m [Vec<Differences>],
    i: usize,
    combinations: Vec<Combination>,
}

impl Making<'_> {
    /// The weight of a term that reads a layer or the constant 1, for the combinations.
    fn weight(&self, term: &Term) -> Option<Weight> {
        if term.source() == Source::Attributes {
            return None;
        }
        if self.combinations.iter().all(|combination| combination.len() == 1) {
            return Some(term.weight().clone());
        }
        let width = self.copies.model.width(term.source());
        let entry = |input: usize, column: usize| match term.weight() {
            Weight::Dense(dense) => dense.get(input, column),
            Weight::Scalar(factor) => f64::from(u8::from(input == column)) * factor,
        };
        let of = |input: usize, combination: &Combination| -> f64 {
            combination.iter().map(|&(column, factor)| factor * entry(input, column)).sum()
        };
        let values =
            (0..width).flat_map(|input| self.combinations.iter().map(move |combination| of(input, combination)));
        Some(Weight::Dense(Matrix::from_values(width, self.combinations.len(), values.collect())))
    }

    /// How far the activations of a copy, or the leads of its logits, are from those of its origin.
    fn row(&self, weights: &[Option<Weight>], copy: usize, origin: u32) -> Differences {
        let layer = &self.copies.model.layers()[self.i];
        let copy = self.copies.first_copies[self.i] as usize + copy;
        let mut made = vec![Interval::default(); self.combinations.len()];
        for (k, (term, weight)) in layer.terms().iter().zip(weights).enumerate() {
            let rows = Rows::new(self.copies, self.i, k, [copy, origin as usize]);
            match (term.source(), weight) {
                (Source::Layer(source), Some(weight)) => self.add_layer(&mut made, source, &rows, weight),
                (Source::Ones, Some(weight)) => {
                    let one = [Interval { lo: rows.total, hi: rows.total, error: rows.gamma * rows.magnitude }];
                    Intervals::add_product(&mut made, &one, weight);
                }
                _ => self.add_attributes(&mut made, k, &rows),
            }
        }
        if self.i + 1 < self.copies.model.layers().len() {
            let node = self.copies.originals[self.i][origin as usize];
            let before = self.before(self.i, node);
            let activation = layer.activation();
            made.iter_mut().zip(before).for_each(|(unit, before)| *unit = activated(before, *unit, activation));
        }
        if made.iter().any(|unit| !(unit.lo.is_finite() && unit.hi.is_finite() && unit.error.is_finite())) {
            made.fill(Interval { lo: f64::NEG_INFINITY, hi: f64::INFINITY, error: 0.0 });
        }
        made
    }

    /// Bounds of the units of a node on the graph as it is.
    fn before(&self, layer: usize, node: u32) -> Vec<Interval> {
        let Shard { region, bounds, .. } = self.losses.shard;
        let (place, bounds) = (region.level(layer + 1).place(node), &bounds.layers[layer]);
        let unit = |j: usize| {
            let (lo, hi, error) = (bounds.lo.get(place, j), bounds.hi.get(place, j), bounds.error.unit(place, j));
            Interval { lo, hi, error }
        };
        (0..bounds.lo.columns()).map(unit).collect()
    }

    fn add_layer(&self, made: &mut [Interval], source: usize, rows: &Rows, weight: &Weight) {
        let activation = self.copies.model.layers()[source].activation();
        let mut gathered = vec![Interval::default(); self.copies.model.layers()[source].units()];
        for &(origin, change) in &rows.changes {
            let before = self.before(source, self.copies.originals[source][origin as usize]);
            Intervals::gather(&mut gathered, std::iter::once((change, &before[..])), activation, rows.gamma);
        }
        for &(copy, entry) in &rows.copied {
            let moved = &self.known[source][copy][..];
            Intervals::gather(&mut gathered, std::iter::once((entry, moved)), Activation::None, rows.gamma);
        }
        Intervals::add_product(made, &gathered, weight);
    }

    fn add_attributes(&self, made: &mut [Interval], k: usize, rows: &Rows) {
        let Losses { shard, largest } = self.losses;
        let (graph, limits) = (shard.network.graph(), shard.limits);
        let columns = shard.network.attribute_columns(self.i, k);
        let (mut flips, mut centre) = (Vec::with_capacity(rows.changes.len()), vec![0.0; columns.len()]);
        let (mut size, mut longest) = (0.0, 0);
        for &(place, change) in &rows.changes {
            let node = NodeId(self.copies.nodes[place as usize]);
            let ones = graph.row_length(node);
            longest = longest.max(ones);
            size += magnitude(change * (ones as f64 / graph.kind().divisor(ones)));
            flips.push((change.abs(), limits.local(node)));
            add_scaled(&mut centre, change, &self.sums.row(place as usize)[columns.clone()]);
        }
        let by_flips = most(flips, limits.global()) * if graph.kind().is_bits() { 1.0 } else { 2.0 };
        let gamma = rows.gamma + gamma_after(longest + 16);
        for (unit, combination) in made.iter_mut().zip(&self.combinations) {
            let centre: f64 = combination.iter().map(|&(column, factor)| factor * centre[column]).sum();
            let weight: f64 = combination.iter().map(|&(column, _)| largest[columns.start + column]).sum();
            let radius = by_flips * weight;
            unit.lo += centre - radius;
            unit.hi += centre + radius;
            unit.error += gamma * (magnitude(size * weight) + magnitude(radius)) + FLOOR;
        }
    }
}

/// The row of a term of a copy, and what it is of its origin.
struct Rows {
    /// Numbers of nodes on the graph as it is, and the entry of the copy, less that of the origin, where they are not the same.
    changes: Vec<(u32, f64)>,
    /// The copies that are read, by their number among the copies, and their entries.
    copied: Vec<(usize, f64)>,
    /// The sums of both rows, the one less the other, and of their magnitudes.
    total: f64,
    magnitude: f64,
    /// What sums over both rows may be off by.
    gamma: f64,
}

impl Rows {
    fn new(copies: &Copies, i: usize, k: usize, [copy, origin]: [usize; 2]) -> Self {
        let term = &copies.model.layers()[i].terms()[k];
        let matrix = copies.matrix(term);
        let (mut changes, mut copied): (Vec<(u32, f64)>, _) = (Vec::new(), Vec::new());
        let (mut total, mut size) = (0.0, 0.0);
        let (columns, entries) = matrix.row(copy);
        for (&column, &entry) in columns.iter().zip(entries) {
            let mut node = column;
            if let Source::Layer(source) = term.source()
                && column >= copies.first_copies[source]
            {
                let number = (column - copies.first_copies[source]) as usize;
                copied.push((number, entry));
                node = copies.origins[source][number];
            }
            changes.push((node, entry));
            total += entry;
            size += magnitude(entry);
        }
        let (before, were) = matrix.row(origin);
        for (&node, &entry) in before.iter().zip(were) {
            changes.push((node, -entry));
            total -= entry;
            size += magnitude(entry);
        }
        changes.sort_unstable_by_key(|&(node, _)| node);
        changes.dedup_by(|next, entry| {
            let is_same = next.0 == entry.0;
            entry.1 += if is_same { next.1 } else { 0.0 };
            is_same
        });
        changes.retain(|&(_, change)| change != 0.0);
        let width = |term: &Term| match term.source() {
            Source::Layer(_) => copies.model.width(term.source()),
            Source::Attributes | Source::Ones => 1,
        };
        let widths: usize = copies.model.layers()[i].terms().iter().map(width).sum();
        let gamma = gamma_after(2 * columns.len() + before.len() + widths + 64);
        Self { changes, copied, total, magnitude: size, gamma }
    }
}

/// The most that so many flips come to, given what one at each node comes to and how many there may be.
fn most(mut flips: Vec<(f64, usize)>, global: usize) -> f64 {
    flips.sort_by(|a, b| b.0.total_cmp(&a.0));
    let (mut left, mut total) = (global, 0.0);
    for (size, local) in flips {
        let taken = local.min(left);
        left -= taken;
        total += taken as f64 * size;
    }
    total
}

/// How far the activation of what is within `before` moves where that moves within `by`: the activation is convex, so that it moves the most, and
/// the least, at an end.
fn activated(before: Interval, by: Interval, activation: Activation) -> Interval {
    if activation == Activation::None {
        return by;
    }
    let lo = before.lo - widening(before.lo, before.error);
    let hi = before.hi + widening(before.hi, before.error);
    let (down, up) = (by.lo - widening(by.lo, by.error), by.hi + widening(by.hi, by.error));
    let moved = |at: f64, by: f64| activation.of(at + by) - activation.of(at);
    let error = 8.0 * f64::EPSILON * (lo.abs().max(hi.abs()) + down.abs().max(up.abs())) + FLOOR;
    Interval {
        lo: moved(if down >= 0.0 { lo } else { hi }, down),
        hi: moved(if up >= 0.0 { hi } else { lo }, up),
        error,
    }
}

/// More than the error of a number, and what adding it rounds.
fn widening(x: f64, error: f64) -> f64 {
    error + 4.0 * f64::EPSILON * (x.abs() + error) + FLOOR
}

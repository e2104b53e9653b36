//! What deletions add to a layer, and what their moves below carry there (Lemmas 60 to 62 of `docs/maths.md`).

use std::collections::HashMap;

use super::base::{Part, Step, add_product, add_radius, growth, parts_of};
use super::cones::{Cones, Making};
use super::moves::{Gather, Moves, Span};
use super::region::NOWHERE;
use crate::dense::{add_scaled, dot};
use crate::model::{Source, Term, Weight};

/// Adds up what moves carry from layer to layer.
#[derive(Debug)]
pub(super) struct Carrying {
    pub(super) gather: Gather,
    /// What terms make of moves that all deletions at a node have in common.
    pub(super) made: HashMap<(usize, u32, usize), Span>,
}

impl Making<'_> {
    /// Whether a layer reads no other.
    pub(super) fn is_first(&self, layer: usize) -> bool {
        let reads_layers = |term: &Term| matches!(term.source(), Source::Layer(_));
        !self.problem.network.layers()[layer].terms().iter().any(reads_layers)
    }

    /// Where a term adds what it reads of a node itself, and of others.
    fn offsets(&self, term: &Term, parts: &[Part], units: usize) -> [Option<usize>; 2] {
        let offset =
            |part: Option<Part>| part.and_then(|part| parts.iter().position(|&of| of == part)).map(|p| p * units);
        parts_of(self.problem, term).map(offset)
    }

    /// What is moved in a layer by moves of what it reads.
    pub(super) fn carried(&self, cones: &Cones, i: usize, f: usize, parts: &[Part], carrying: &mut Carrying) -> Moves {
        self.carry(cones, i, f, parts, carrying);
        carrying.gather.take()
    }

    fn carry(&self, cones: &Cones, i: usize, f: usize, parts: &[Part], carrying: &mut Carrying) {
        let units = self.problem.network.layers()[i].units();
        for (t, term) in self.problem.network.layers()[i].terms().iter().enumerate() {
            let Source::Layer(source) = term.source() else { continue };
            let Some(moves) = cones.h[source].get(f) else { continue };
            for (row, centre, radius) in moves.iter() {
                let n = self.region.rows[source][row as usize];
                let by = self.through(centre, radius, units, term);
                let add =
                    |to: (&mut [f64], &mut [f64]), entry: f64| add(to, (entry, 0.0), &by, self.magnitude.relative);
                self.to_readers((i, t), n, parts, &mut carrying.gather, add);
                if f >= self.listed.len() {
                    carrying.made.insert((t, n, f), by);
                }
            }
        }
    }

    /// Goes to all rows of a layer that read a node, with the factor by which they do.
    fn to_readers(
        &self,
        (i, t): (usize, usize),
        n: u32,
        parts: &[Part],
        gather: &mut Gather,
        mut add: impl FnMut((&mut [f64], &mut [f64]), f64),
    ) {
        let (layer, places) = (&self.problem.network.layers()[i], &self.region.places[i]);
        let (term, units) = (&layer.terms()[t], layer.units());
        let [identity, mixed] = self.offsets(term, parts, units);
        if let (Some(offset), true) = (identity, places[n as usize] != NOWHERE) {
            add(gather.at(places[n as usize], offset, units), self.problem.shares[term.propagation()].identity);
        }
        let Some(offset) = mixed else { return };
        for m in self.base.readers(n).filter(|&m| places[m as usize] != NOWHERE) {
            let entry = self.base.entry(term.propagation(), m, n);
            if entry != 0.0 {
                add(gather.at(places[m as usize], offset, units), entry);
            }
        }
    }

    /// Adds what the ends of a deletion carry in common with others, but for its own rows.
    fn add_common(
        &self,
        cones: &Cones,
        i: usize,
        f: usize,
        parts: &[Part],
        carrying: &mut Carrying,
        carried: &[Moves],
    ) {
        let error = self.magnitude.relative;
        for place in self.listed[f].ends.into_iter().filter_map(|n| cones.senders.place(n)) {
            let Some(common) = carried.get(place - self.listed.len()) else { continue };
            carrying.gather.add(common);
            for (t, &n) in (0..self.problem.network.layers()[i].terms().len())
                .flat_map(|t| cones.senders.own[f].iter().map(move |n| (t, n)))
            {
                let Some(by) = carrying.made.get(&(t, n, place)) else { continue };
                let take = |to: (&mut [f64], &mut [f64]), entry: f64| take(to, entry, by, error);
                self.to_readers((i, t), n, parts, &mut carrying.gather, take);
            }
        }
    }

    /// The moves of the parts of a layer, but for their growth.
    pub(super) fn gathered(
        &self,
        cones: &Cones,
        i: usize,
        f: usize,
        parts: &[Part],
        carrying: &mut Carrying,
        carried: &[Moves],
    ) -> Moves {
        let is_first = self.is_first(i);
        if !is_first {
            self.add_common(cones, i, f, parts, carrying, carried);
            self.carry(cones, i, f, parts, carrying);
        }
        let ends = match self.listed.get(f) {
            Some(listed) => listed.ends,
            None => [cones.senders.nodes[f - self.listed.len()], NOWHERE],
        };
        let gather = &mut carrying.gather;
        let (layer, places) = (&self.problem.network.layers()[i], &self.region.places[i]);
        let (units, error) = (layer.units(), self.magnitude.relative);
        // In a layer that reads no other, only its own rows, or only those of others.
        let own = cones.senders.own.get(f);
        let is_here = |m: u32| !is_first || own.map_or(m != ends[0], |own| own.contains(&m));
        for (t, term) in layer.terms().iter().enumerate() {
            let share = self.problem.shares[term.propagation()];
            let [identity, mixed] = self.offsets(term, parts, units);
            for (e, n) in ends.into_iter().enumerate().filter(|&(_, n)| n != NOWHERE) {
                let place = places[n as usize];
                let of_own = self.steps(None, term, n, |step| step.sent);
                let (sent, cut) = mixed.map_or(((0.0, 0.0), (0.0, 0.0)), |_| self.sent_and_cut(term, n));
                let other =
                    Some(ends[1 - e]).filter(|&m| m != NOWHERE && places[m as usize] != NOWHERE && mixed.is_some());
                let is_own = identity.is_some() && of_own != (0.0, 0.0) && place != NOWHERE && own.is_some();
                if !is_own && sent == (0.0, 0.0) && other.is_none() {
                    continue;
                }
                let by = match term.source() {
                    Source::Layer(source) => match &cones.ends[f][e].h[source] {
                        Some(span) => self.through(&span.centre, &span.radius, units, term),
                        None => continue,
                    },
                    _ => self.exact(i, t, n),
                };
                if let (Some(offset), true) = (identity, is_own) {
                    let (centre, radius) = of_own;
                    let factor = (share.identity * centre, share.identity.abs() * radius);
                    add(gather.at(place, offset, units), factor, &by, error);
                }
                let Some(offset) = mixed else { continue };
                for m in self.base.readers(n).filter(|&m| places[m as usize] != NOWHERE && is_here(m)) {
                    let entry = self.base.entry(term.propagation(), m, n);
                    let (centre, radius) = if Some(m) == other { cut } else { sent };
                    if entry != 0.0 && (centre, radius) != (0.0, 0.0) {
                        let factor = (entry * centre, entry.abs() * radius);
                        add(gather.at(places[m as usize], offset, units), factor, &by, error);
                    }
                }
            }
        }
        gather.take()
    }

    /// What a term reads of attributes or ones.
    fn exact(&self, i: usize, t: usize, n: u32) -> Span {
        let mut span = Span::exact(self.base.read(self.problem, self.region, i, t, n));
        if self.problem.network.layers()[i].terms()[t].source() == Source::Attributes {
            let sizes = &self.region.sizes.row(n as usize)[self.problem.network.attribute_columns(i, t)];
            add_scaled(&mut span.radius, self.magnitude.relative, sizes);
        }
        span
    }

    /// What a term makes of moves of what it reads.
    fn through(&self, centre: &[f64], radius: &[f64], units: usize, term: &Term) -> Span {
        let mut by = Span::zeros(units);
        add_product(&mut by.centre, 1.0, centre, term);
        add_radius(&mut by.radius, radius, term);
        let error = self.magnitude.relative * dot(centre, centre).sqrt();
        if let Weight::Dense(_) = term.weight() {
            let lengths = &self.magnitude.lengths;
            let lengths = lengths.iter().find(|(of, _)| std::ptr::eq(*of, term)).map(|(_, lengths)| &lengths[..]);
            add_scaled(&mut by.radius, error, lengths.unwrap_or(&[]));
        }
        by
    }

    /// A number of the steps of any number of deletions at a node, as its centre and radius.
    fn steps(&self, mixing: Part, term: &Term, n: u32, of: impl Fn(Step) -> f64) -> (f64, f64) {
        let (scale, degree) = (self.base.source_scale(term), self.base.degrees[n as usize]);
        self.middle(n, |k| of(Step::of(mixing, scale, degree, k)))
    }

    /// What a deletion at a node adds to the factor of what the node sends to others, and what it adds to that over its own edge. Either all
    /// deletions there add the same everywhere, and each takes away that much more over its edge; or they add nothing where an edge
    /// is deleted: whichever is the narrower.
    fn sent_and_cut(&self, term: &Term, n: u32) -> ((f64, f64), (f64, f64)) {
        let mixing = Some(self.problem.shares[term.propagation()].mixing);
        let same = [self.steps(mixing, term, n, |step| step.sent), self.steps(mixing, term, n, |step| -step.cut)];
        let (low, high) = (same[0].0 - same[0].1, same[0].0 + same[0].1);
        let (low, high) = (low.min(0.0), high.max(0.0));
        let or_none = ((low + high) / 2.0, (high - low) / 2.0);
        let readers = self.base.degrees[n as usize] as f64;
        if same[1].1 + readers * same[0].1 <= readers * or_none.1 || self.most[n as usize] < 2 {
            (same[0], same[1])
        } else {
            (or_none, (-1.0, 0.0))
        }
    }

    /// The middle of what is the case after any number of deletions at a node, and how far all of it is from that.
    fn middle(&self, n: u32, of: impl Fn(usize) -> f64) -> (f64, f64) {
        let numbers = (1..=self.most[n as usize]).map(of);
        let (low, high) =
            numbers.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high): (f64, f64), x| (low.min(x), high.max(x)));
        if low > high { (0.0, 0.0) } else { ((low + high) / 2.0, (high - low) / 2.0) }
    }

    /// The moves of pre-activations.
    pub(super) fn summed(
        &self,
        cones: &Cones,
        i: usize,
        f: usize,
        gathered: &Moves,
        parts: &[Part],
        gather: &mut Gather,
    ) -> Moves {
        let (layer, error) = (&self.problem.network.layers()[i], self.magnitude.relative);
        let units = layer.units();
        for (row, centre, radius) in gathered.iter() {
            let (to_centre, to_radius) = gather.at(row, 0, units);
            centre.chunks_exact(units.max(1)).for_each(|part| add_scaled(to_centre, 1.0, part));
            centre.chunks_exact(units.max(1)).for_each(|part| {
                to_radius.iter_mut().zip(part).for_each(|(to, by)| *to += error * by.abs());
            });
            radius.chunks_exact(units.max(1)).for_each(|part| add_scaled(to_radius, 1.0 + error, part));
        }
        for (e, place) in self.places(i, f) {
            let n = self.listed[f].ends[e];
            let degree = self.base.degrees[n as usize];
            if let Some(mixing) = self.base.scales[i] {
                let factor = self.middle(n, |k| (1.0 / growth(Some(mixing), degree, k) - 1.0) / k as f64);
                add(gather.at(place, 0, units), factor, &Span::exact(layer.bias()), error);
            } else if let Some(span) = &cones.ends[f][e].gathered[i] {
                for (p, mixing) in parts.iter().enumerate().filter(|(_, part)| part.is_some()) {
                    let factor = self.middle(n, |k| (growth(*mixing, degree, k) - 1.0) / k as f64);
                    let range = p * units..(p + 1) * units;
                    let span =
                        Span { centre: span.centre[range.clone()].to_vec(), radius: span.radius[range].to_vec() };
                    add(gather.at(place, 0, units), factor, &span, error);
                }
            }
        }
        gather.take()
    }
}

/// Adds the product of a factor, as centre and radius, and a span.
fn add(to: (&mut [f64], &mut [f64]), (centre, radius): (f64, f64), by: &Span, error: f64) {
    add_scaled(to.0, centre, &by.centre);
    let (reach, of_centre) = ((centre.abs() + radius) * (1.0 + error), radius + error * (centre.abs() + radius));
    for ((to, c), r) in to.1.iter_mut().zip(&by.centre).zip(&by.radius) {
        *to += reach * r + of_centre * c.abs();
    }
}

/// Takes away what was added with a factor.
fn take(to: (&mut [f64], &mut [f64]), factor: f64, by: &Span, error: f64) {
    add_scaled(to.0, -factor, &by.centre);
    for ((to, c), r) in to.1.iter_mut().zip(&by.centre).zip(&by.radius) {
        *to = (*to - factor.abs() * r).max(0.0) + error * (*to + factor.abs() * c.abs());
    }
}
